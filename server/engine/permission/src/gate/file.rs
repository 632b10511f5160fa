//! The verdict on one file or folder that is read or changed.
//!
//! Rule: a path is judged under the name it was given and under where that leads; either can forbid, both have to be
//! allowed.

use std::path::{Component, Path};

use crate::gate::Circumstances;
use crate::rules::{Behavior, PlacedRule, RuleSubject};
use crate::{EditDelivery, GateDecision, Sensitivity, Verdict};
use kode_base::mode::{ActionClass, Mode, Stance};
use kode_base::paths::Target;
use kode_base::steering::{is_ignore_file, is_steering, place_at_home};

/// The action on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TargetAccess {
    /// It is read.
    Read,
    /// It is made, changed or deleted.
    Write,
}

/// Judges a file that is read or changed. `allowed` is a rule that allows the tool whatever it touches.
pub(super) fn judge(
    access: TargetAccess,
    given: &Target,
    allowed: Option<&PlacedRule>,
    circumstances: &Circumstances<'_>,
) -> Verdict {
    let real = (circumstances.real)(given);
    let held_back = held_back(access, given, &real, circumstances);
    if held_back.decision == GateDecision::Deny {
        return held_back;
    }
    let granted = circumstances.grants.iter().any(|grant| match access {
        TargetAccess::Read => grant.covers_read(&real),
        TargetAccess::Write => grant.covers_write(&real),
    });
    // An ask rule asks every time; a yes of the user covers guarded and sensitive files too.
    if held_back.decision == GateDecision::Ask && (!granted || held_back.rule.is_some()) {
        return held_back;
    }
    if granted && circumstances.mode.stance(act(access)) != Stance::Refuse {
        return Verdict::allowed("the user has allowed it for this session");
    }
    let subject = subject(access, given, &real);
    let allowed = circumstances.rules.find(Behavior::Allow, &subject).or(allowed);
    match allowed.filter(|_| circumstances.may_be_allowed(act(access))) {
        Some(rule) => Verdict::by_rule(GateDecision::Allow, rule),
        None => by_mode(access, given, circumstances),
    }
}

/// The objections of rules, ignore files, secrets and guarded places; allowed without any.
pub(super) fn held_back(
    access: TargetAccess,
    given: &Target,
    real: &Target,
    circumstances: &Circumstances<'_>,
) -> Verdict {
    let subject = subject(access, given, real);
    if let Some(rule) = circumstances.rules.find(Behavior::Deny, &subject) {
        return Verdict::by_rule(GateDecision::Deny, rule);
    }
    if let Some(verdict) = ignored(given, real, circumstances) {
        return verdict;
    }
    let of =
        |target: &Target| target.file().map_or(Sensitivity::None, |path| circumstances.sensitive.of(path));
    let of_given = of(given);
    let of_real = if real == given { of_given } else { of(real) };
    let sensitivity = match (of_given, of_real) {
        (Sensitivity::High, _) | (_, Sensitivity::High) => Sensitivity::High,
        (Sensitivity::Medium, _) | (_, Sensitivity::Medium) => Sensitivity::Medium,
        (Sensitivity::None, Sensitivity::None) => Sensitivity::None,
    };
    // The folder of the product's state is refused; what this session's own commands wrote there is not.
    let is_own = || access == TargetAccess::Read && (circumstances.is_own)(given);
    if sensitivity == Sensitivity::High && !is_own() {
        return Verdict::deny(format!(
            "{given} looks like a secret; if it is not one, the user can say so under `sensitiveFiles` in \
                 their own settings"
        ));
    }
    if let Some(rule) = circumstances.rules.find(Behavior::Ask, &subject) {
        return Verdict::by_rule(GateDecision::Ask, rule);
    }
    if sensitivity == Sensitivity::Medium {
        return Verdict::ask(format!("{given} may hold other people's data")).within_session();
    }
    if access == TargetAccess::Read {
        return Verdict::allowed("nothing speaks against it");
    }
    match guarded(given, circumstances).or_else(|| guarded(real, circumstances)) {
        Some(reason) => Verdict::ask(reason).within_session(),
        None => Verdict::allowed("nothing speaks against it"),
    }
}

/// The denial of a path by an ignore file, under either name.
fn ignored(given: &Target, real: &Target, circumstances: &Circumstances<'_>) -> Option<Verdict> {
    let of = |target: &Target| {
        let denied = (circumstances.ignored_by)(target.file()?)?;
        Some(denied.verdict(target))
    };
    of(given).or_else(|| of(real).filter(|_| real != given))
}

fn by_mode(access: TargetAccess, target: &Target, circumstances: &Circumstances<'_>) -> Verdict {
    let verdict = Verdict::by_mode(circumstances.mode, act(access));
    let is_own = access == TargetAccess::Read && (circumstances.is_own)(target);
    let outside = !is_own && !(circumstances.contains)(target);
    let bypasses = circumstances.mode.stance(ActionClass::Reach) == Stance::Allow;
    match verdict.decision {
        GateDecision::Deny => verdict,
        _ if outside && !bypasses => {
            let verb = if access == TargetAccess::Read { "reads" } else { "changes" };
            Verdict::ask(format!("it {verb} {target}, which is outside the workspace"))
        }
        _ if access == TargetAccess::Read => verdict,
        _ => match (circumstances.delivery)(target) {
            Some(EditDelivery::Apply) if circumstances.mode != Mode::Approval => {
                Verdict::allowed("changes of this file are applied at once")
            }
            Some(EditDelivery::Propose) => {
                Verdict::ask("changes of this file are proposed first").within_session()
            }
            Some(EditDelivery::Apply) | None => verdict,
        },
    }
}

fn act(access: TargetAccess) -> ActionClass {
    match access {
        TargetAccess::Read => ActionClass::Look,
        TargetAccess::Write => ActionClass::Edit,
    }
}

fn subject<'a>(access: TargetAccess, given: &'a Target, real: &'a Target) -> RuleSubject<'a> {
    match access {
        TargetAccess::Read => RuleSubject::Read { given, real },
        TargetAccess::Write => RuleSubject::Write { given, real },
    }
}

/// Why a path is guarded. Where the workspace itself lies does not count, for it may be a working copy beneath a guarded
/// name; unless it is one of these folders, or directly in one.
fn guarded(target: &Target, circumstances: &Circumstances<'_>) -> Option<String> {
    let file = target.file()?;
    let inside = circumstances.roots.iter().filter(|root| guarded_end(root.as_path()).is_none());
    let inside = inside.filter_map(|root| file.as_path().strip_prefix(root.as_path()).ok());
    let path = inside.min_by_key(|path| path.components().count()).unwrap_or(file.as_path());
    if file.as_path().file_name().is_some_and(is_ignore_file) {
        return Some(format!("{target} decides which files are kept from the agent"));
    }
    if let Some(name) = path.components().find_map(guarded_name) {
        return Some(format!("files in {name} control what programs do later"));
    }
    let at_home = circumstances.home.and_then(|home| place_at_home(file.as_path(), home.as_path()));
    if let Some(place) = at_home {
        return Some(format!("files in ~/{place} control what programs do later"));
    }
    (circumstances.obeyed_by)(file).map(str::to_owned)
}

/// The guarded name among the last two of a path.
fn guarded_end(path: &Path) -> Option<String> {
    path.components().rev().take(2).find_map(guarded_name)
}

fn guarded_name(component: Component<'_>) -> Option<String> {
    let Component::Normal(name) = component else { return None };
    is_steering(name).then(|| name.to_string_lossy().into_owned())
}
