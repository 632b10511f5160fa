//! What the gate goes by in one session: policy, standing answers, workspace.
//!
//! Rule: every verdict is made from one consistent picture, and a setting that has changed counts from the next call on: whoever
//! begins something looks at the files first, together with those who ask at the same time. Looking waits for the disk on a thread of
//! its own, one at a time, and what was seen takes the place of what was known; everything else goes by what was seen last and waits
//! for no disk.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::session::{Session, lock};
use kode_base::blocking;
use kode_base::call::{MayRead, ToolKind};
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_config::hooks::config::Hooks;
use kode_config::in_force::{EffectivePolicy, PolicyView, SessionAdditions};
use kode_config::policy::{KeepRuleError, ModeDisabled, Policy, PolicySource};
use kode_config::settings::{TrustRequest, TrustSummary, WithheldSetting};
use kode_permission::equipment::Equipment;
use kode_permission::gate::{self, GateCase};
use kode_permission::rules::places::real_on_disk;
use kode_permission::rules::{Behavior, Rule, RuleError, SettingsProblem};
use kode_permission::{GateDecision, Scope, Spared, Verdict};
use kode_process::sandbox::Sandbox;
use kode_record::event::{Event, ItemBody};
use kode_text::workspace::real_paths::RealPaths;
use kode_tool::declared::declared;

/// So many of the newest calls are looked at to say what a rule would have spared.
const SPARED_LOOK: usize = 50;

/// The picture the gate goes by, made anew when what it is made from has changed.
pub(crate) struct Guard {
    source: Arc<dyn PolicySource>,
    /// The session's own folders, links followed, which need no question to be read.
    own: Vec<AbsPath>,
    /// Held while the files are looked at: however slow the disk is, it holds up one thread of a session.
    looking: Arc<tokio::sync::Mutex<()>>,
    /// How many looks have begun, and the number of the newest that was told. One that began after somebody asked serves them,
    /// so that calls that run at once look together.
    begun: AtomicU64,
    told_of: AtomicU64,
    /// What was seen last. Never held while a file is looked at.
    in_force: Mutex<Option<Arc<EffectivePolicy>>>,
    /// What files of the workspace that are no settings ask for.
    beside: Mutex<Arc<Vec<TrustRequest>>>,
    told: Mutex<Told>,
}

/// What the session's clients have been told of the settings.
#[derive(Debug, Default)]
struct Told {
    complaints: Complaints,
    /// What stood for the contents of the files; none before the first look.
    contents: Option<Vec<(AbsPath, u64)>>,
    /// What was asked about, by its digest.
    asked: BTreeSet<String>,
    /// What files that are no settings ask for, as it stood when it was looked at last.
    beside: Beside,
    /// The policy whose variables commands get.
    policy: Option<Arc<Policy>>,
}

/// What files that are no settings ask for and the user has not approved, by one policy.
#[derive(Debug, Default)]
struct Beside {
    wishes: Arc<Vec<TrustRequest>>,
    policy: Option<Arc<Policy>>,
    waiting: Vec<WithheldSetting>,
    /// What of it is to be asked about, by its digest.
    to_ask: Vec<String>,
}

/// A verdict, and what holds the call back if it runs: both from one picture.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    /// What is to happen.
    pub(crate) verdict: Verdict,
    /// The sandbox its commands run in; none when there is none, or when they are to run outside of it.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
}

/// What of the settings is not in force although somebody wants it to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Complaints {
    /// What cannot be used.
    pub problems: Vec<SettingsProblem>,
    /// What files of the workspace ask for and the user has not approved.
    pub withheld: Vec<WithheldSetting>,
}

impl fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl Guard {
    /// What counts by `source`, with the session's `own` folders.
    pub(crate) fn new(source: Arc<dyn PolicySource>, own: impl IntoIterator<Item = AbsPath>) -> Self {
        // Where they lead now: what leads elsewhere later is no longer the session's own.
        let own = own.into_iter().map(|folder| real_on_disk(&folder)).collect();
        let (looking, begun, told_of, in_force, beside, told) = Default::default();
        Self { source, own, looking, begun, told_of, in_force, beside, told }
    }

    /// Takes in what files of the workspace ask for that are no settings.
    pub(crate) fn know_wishes(&self, wishes: Vec<TrustRequest>) {
        let mut known = lock(&self.beside);
        if **known != wishes {
            *known = Arc::new(wishes);
        }
    }

    /// What of that waits now, unless that is known: the same policy says the same of the same wishes. Waits for the disk.
    fn look_beside(&self, policy: &Arc<Policy>) -> Option<Beside> {
        let wishes = Arc::clone(&lock(&self.beside));
        {
            let known = &lock(&self.told).beside;
            let is_same = |known: &Arc<Policy>| Arc::ptr_eq(known, policy);
            if known.policy.as_ref().is_some_and(is_same) && Arc::ptr_eq(&known.wishes, &wishes) {
                return None;
            }
        }
        let waiting: Vec<&TrustRequest> =
            wishes.iter().filter(|wish| !self.source.is_approved(wish)).collect();
        let to_ask = waiting.iter().filter(|wish| !self.source.is_put_off(wish)).map(|wish| wish.digest());
        let to_ask = to_ask.collect();
        let waiting = waiting.into_iter().cloned().map(WithheldSetting::of_file).collect();
        Some(Beside { wishes, policy: Some(Arc::clone(policy)), waiting, to_ask })
    }

    /// Looks at the files; what is seen counts from now on. Waits for the disk.
    fn look(&self, added: &SessionAdditions) -> Arc<EffectivePolicy> {
        let policy = self.source.current();
        let known = lock(&self.in_force).clone();
        let made = match known {
            Some(known) if Arc::ptr_eq(&known.policy, &policy) && known.has(added) => return known,
            known => self.made(policy, added, known.as_deref()),
        };
        *lock(&self.in_force) = Some(Arc::clone(&made));
        made
    }

    /// What was seen last, with what the session adds by now; `None` before anything was. Looks at no settings file.
    fn now(&self, added: &SessionAdditions) -> Option<Arc<EffectivePolicy>> {
        let known = lock(&self.in_force).clone()?;
        if known.has(added) {
            return Some(known);
        }
        let made = self.made(Arc::clone(&known.policy), added, Some(&known));
        let mut newest = lock(&self.in_force);
        match &*newest {
            // Whoever looked meanwhile has seen something newer.
            Some(newer) if !Arc::ptr_eq(&newer.policy, &made.policy) => {
                let policy = Arc::clone(&newer.policy);
                drop(newest);
                Some(self.made(policy, added, Some(&made)))
            }
            Some(_) | None => {
                *newest = Some(Arc::clone(&made));
                Some(made)
            }
        }
    }

    fn made(
        &self,
        policy: Arc<Policy>,
        added: &SessionAdditions,
        known: Option<&EffectivePolicy>,
    ) -> Arc<EffectivePolicy> {
        let SessionAdditions { grants, equipment, cwd } = added;
        let known = known.filter(|known| known.policy.declared == policy.declared && known.cwd == *cwd);
        let hooks = match known {
            Some(known) => Arc::clone(&known.hooks),
            None => Arc::new(Hooks::of(&policy.declared, cwd)),
        };
        let mut made =
            EffectivePolicy { own: self.own.clone(), ..EffectivePolicy::new(policy, grants, equipment, cwd) };
        made.problems.extend(hooks.problems.iter().cloned());
        Arc::new(EffectivePolicy { hooks, ..made })
    }
}

impl Session {
    /// Looks at the settings files, tells what has changed, and gives what the gate goes by from now on. However long the disk
    /// takes, only whoever waits for this waits for it.
    pub(crate) async fn look(&self) -> Arc<EffectivePolicy> {
        let guard = Arc::clone(&self.guard);
        let begun_before = guard.begun.load(Ordering::SeqCst);
        let looking = Arc::clone(&guard.looking).lock_owned().await;
        if guard.told_of.load(Ordering::SeqCst) > begun_before {
            return self.in_force();
        }
        let (number, added) = (guard.begun.fetch_add(1, Ordering::SeqCst) + 1, self.added());
        // It is told before anybody else looks: of two looks the newer is told last.
        let look = move || {
            let in_force = guard.look(&added);
            let beside = guard.look_beside(&in_force.policy);
            (in_force, beside, looking)
        };
        let (in_force, beside, _looking) = blocking(look).await;
        self.tell_settings(&in_force, beside);
        self.guard.told_of.store(number, Ordering::SeqCst);
        in_force
    }

    /// As [`Session::look`], for those who need nothing of it.
    pub async fn look_at_settings(&self) {
        self.look().await;
    }

    /// Looks at the settings for the first time, and tells nobody. Blocks on the disk.
    pub(crate) fn know_settings(&self) {
        self.guard.look(&self.added());
    }

    /// What the gate goes by, as the settings were when they were looked at last. Looks at no settings file, but for the first
    /// time.
    pub(crate) fn in_force(&self) -> Arc<EffectivePolicy> {
        let added = self.added();
        self.guard.now(&added).unwrap_or_else(|| self.guard.look(&added))
    }

    fn added(&self) -> SessionAdditions {
        let (grants, equipment) = {
            let state = self.state();
            (state.grants.clone(), state.equipment.clone())
        };
        SessionAdditions { grants, equipment, cwd: self.workspace.cwd() }
    }

    /// Tells what has changed since it was told last.
    fn tell_settings(&self, in_force: &EffectivePolicy, beside: Option<Beside>) {
        let mut told = lock(&self.guard.told);
        if let Some(beside) = beside {
            told.beside = beside;
        }
        let policy = &in_force.policy;
        let known = told.contents.replace(policy.contents.clone());
        let files = known.map(|known| changed(&known, &policy.contents)).unwrap_or_default();
        let complaints =
            Complaints { problems: in_force.problems.clone(), withheld: policy.withheld.clone() };
        if !files.is_empty() || told.complaints != complaints {
            told.complaints = complaints.clone();
            let Complaints { problems, withheld } = complaints;
            self.publish(Event::ConfigChanged { files, problems, withheld });
        }
        if !told.policy.as_ref().is_some_and(|known| Arc::ptr_eq(known, policy)) {
            self.shell.set_variables(policy.declared.variables());
            told.policy = Some(Arc::clone(policy));
        }
        // What is wished for no more may be asked about again, should it come back.
        let to_ask: BTreeSet<String> = policy.to_ask.iter().chain(&told.beside.to_ask).cloned().collect();
        if !to_ask.is_subset(&told.asked) {
            let waiting = TrustSummary::of(policy.withheld.iter().chain(&told.beside.waiting));
            self.publish(Event::TrustRequired { waiting });
        }
        told.asked = to_ask;
    }

    /// What was told last of what is wrong with the settings. Looks at no file.
    #[must_use]
    pub fn complaints(&self) -> Complaints {
        lock(&self.guard.told).complaints.clone()
    }

    /// How much waits for the user's word, as was told last; none where nothing does. Looks at no file.
    #[must_use]
    pub fn trust_waiting(&self) -> Option<TrustSummary> {
        let told = lock(&self.guard.told);
        let waiting: Vec<_> = told.complaints.withheld.iter().chain(&told.beside.waiting).collect();
        (!waiting.is_empty()).then(|| TrustSummary::of(waiting))
    }

    /// Judges a call by what is in force, and says what is to hold it back by the same settings.
    pub(crate) fn judge(&self, case: &GateCase<'_>, mode: Mode) -> Judged {
        self.judge_by(&self.view(&Equipment::default()), case, mode)
    }

    /// What calls are judged by now, with more that a skill or command brings along.
    pub(crate) fn view(&self, equipment: &Equipment) -> PolicyView {
        PolicyView { in_force: self.in_force_with(equipment), workspace: Arc::clone(&self.workspace) }
    }

    /// What the gate goes by now, with more that a skill or command brings along.
    pub(crate) fn in_force_with(&self, equipment: &Equipment) -> Arc<EffectivePolicy> {
        let in_force = self.in_force();
        match equipment.is_empty() {
            true => in_force,
            false => Arc::new(in_force.with_equipment(equipment, &self.workspace.cwd())),
        }
    }

    /// As [`Session::judge_by`], for a command in the text of a file: whoever plans runs only what looks, whatever rules allow.
    pub(crate) fn judge_embedded(&self, view: &PolicyView, case: &GateCase<'_>, mode: Mode) -> Judged {
        let judged = self.judge_by(view, case, mode);
        let is_allowed = judged.verdict.decision == GateDecision::Allow;
        if view.in_force.mode(mode) != Mode::Plan || !is_allowed {
            return judged;
        }
        let without = PolicyView { in_force: Arc::new(view.in_force.without_allowance()), ..view.clone() };
        let verdict = self.judge_by(&without, case, mode).verdict;
        let verdict = match verdict.decision {
            GateDecision::Allow => judged.verdict,
            GateDecision::Ask | GateDecision::Deny => {
                Verdict::deny("in plan mode the commands of a file run only where they change nothing")
            }
        };
        Judged { verdict, ..judged }
    }

    /// Judges a call by this view of things.
    pub(crate) fn judge_by(&self, view: &PolicyView, case: &GateCase<'_>, mode: Mode) -> Judged {
        let PolicyView { in_force, workspace } = view;
        let mode = in_force.mode(mode);
        let deliveries = self.deliveries();
        let delivery = |target: &Target| {
            let of = |target: &Target| {
                let named = (target, workspace.roots());
                deliveries.reaching(named, (&workspace.real(target), workspace.real_roots()))
            };
            // A folder is made for what is written into it.
            of(target)
                .or_else(|| case.touches.iter().find_map(|touch| touch.write_within(target).and_then(of)))
        };
        let verdict = in_force.judge(case, mode, workspace, &delivery);
        Judged { verdict, sandbox: in_force.sandbox_for(case.touches) }
    }

    /// Whether a call would run unasked if there were these rules beside what is in force now.
    pub(crate) fn would_run(&self, case: &GateCase<'_>, mode: Mode, rules: &[String]) -> bool {
        let with = self.in_force().with_rules(rules, &self.workspace.cwd());
        let verdict = with.judge(case, with.mode(mode), &self.workspace, &|_| None);
        verdict.decision == GateDecision::Allow
    }

    /// Whether the model may be handed a file that the user has named.
    ///
    /// # Errors
    /// Why not: a rule, a secret, or something that the user would be asked for.
    pub(crate) fn may_mention(&self, target: &Target) -> Result<(), String> {
        self.mentionable()(target, &RealPaths::default())
    }

    /// As [`Session::may_mention`] by what is in force now, for work that goes on without the session.
    pub(crate) fn mentionable(&self) -> impl Fn(&Target, &RealPaths) -> Result<(), String> + Send + 'static {
        self.mentionable_in(self.view(&Equipment::default()))
    }

    /// As [`Session::mentionable`], by this view of things.
    pub(crate) fn mentionable_in(
        &self,
        view: PolicyView,
    ) -> impl Fn(&Target, &RealPaths) -> Result<(), String> + Send + 'static {
        let (PolicyView { in_force, workspace }, mode) = (view, self.mode());
        move |target, real_paths| {
            let verdict = in_force.within(mode, &workspace, real_paths, &|_| None, |circumstances| {
                gate::judge_named(target, circumstances)
            });
            if verdict.decision == GateDecision::Allow { Ok(()) } else { Err(verdict.reason) }
        }
    }

    /// Which files a search may look into: those that may be read without anybody being asked.
    pub(crate) fn may_read(&self, mode: Mode) -> MayRead {
        self.view(&Equipment::default()).may_read(mode)
    }
}

impl Session {
    /// Where the policy comes from.
    pub(crate) fn policy_source(&self) -> Arc<dyn PolicySource> {
        Arc::clone(&self.guard.source)
    }

    /// Whether the session may be put into a mode now. Looks at the settings files.
    ///
    /// # Errors
    /// [`ModeDisabled`], when the settings have switched it off.
    pub async fn allow_mode(&self, mode: Mode) -> Result<Mode, ModeDisabled> {
        self.look().await.policy.allow_mode(mode)
    }

    /// Whether standing answers can be kept beyond this session.
    pub(crate) fn can_keep_rules(&self) -> bool {
        self.guard.source.can_keep()
    }

    /// Keeps rules that allow, in the settings. Answers what could not be kept.
    pub(crate) async fn keep_rules(&self, scope: Scope, rules: Vec<String>) -> Vec<KeepRuleError> {
        let source = Arc::clone(&self.guard.source);
        blocking(move || {
            let keep = |text: &String| {
                let bad = |error: RuleError| KeepRuleError::BadRule {
                    rule: text.clone(),
                    reason: error.to_string(),
                };
                source.keep(scope, Behavior::Allow, &text.parse::<Rule>().map_err(bad)?)
            };
            rules.iter().map(keep).filter_map(Result::err).collect()
        })
        .await
    }

    /// What rules would have spared the user among the newest calls of this session.
    pub(crate) fn spared_by(&self, rules: &[String]) -> Spared {
        let cwd = self.workspace.cwd();
        let calls: Vec<_> = {
            let state = self.state();
            let calls = state.main.items.newest().iter().rev().filter_map(|item| match &item.body {
                ItemBody::ToolCall(call) => Some((call.name.clone(), call.kind?, call.input.clone())),
                _ => None,
            });
            calls.take(SPARED_LOOK).collect()
        };
        let (without, mode) = (self.in_force(), self.mode());
        let with = without.with_rules(rules, &cwd);
        let resolve = |path: &str| self.workspace.resolve(path).ok();
        let runs = |picture: &EffectivePolicy, (tool, kind, input): &(String, ToolKind, Value)| {
            let touches = declared(tool, input, &cwd, &resolve)?;
            let case = GateCase { tool, kind: *kind, input, touches: &touches };
            Some(picture.judge(&case, mode, &self.workspace, &|_| None).decision == GateDecision::Allow)
        };
        let spared = calls
            .iter()
            .filter(|call| runs(&without, call) == Some(false) && runs(&with, call) == Some(true));
        Spared { matched: count(spared.count()), of: count(calls.len()) }
    }
}

/// The files whose contents are others, those that have come or gone among them.
fn changed(before: &[(AbsPath, u64)], now: &[(AbsPath, u64)]) -> Vec<AbsPath> {
    let other = |one: &[(AbsPath, u64)], other: &[(AbsPath, u64)]| {
        let news = one.iter().filter(|entry| !other.contains(entry));
        news.map(|(file, _)| file.clone()).collect::<Vec<_>>()
    };
    let mut files = other(now, before);
    files.extend(other(before, now).into_iter().filter(|file| now.iter().all(|(known, _)| known != file)));
    files
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
