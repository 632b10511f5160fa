//! The verdict on one call: run, ask, or refuse.
//!
//! Rule: a pure function of the call, the rules, the mode and the standing answers. A deny rule, an ignore file, the floor and a
//! secret always refuse; an ask rule and a guarded place ask in every mode; a rule that allows comes
//! before the mode. Nothing here turns a refusal into anything else, and a rule never allows what the parser does not
//! understand.

mod command;
mod file;
mod guess;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::rules::{Behavior, PlacedRule, RuleSet, RuleSubject};
use crate::{EditDelivery, Grant, IgnoredBy, Sensitive};
use kode_base::call::{Exposure, ToolKind, Touch};
use kode_base::mask::masked_text;
use kode_base::mode::{ActionClass, Mode, Stance};
use kode_base::paths::{AbsPath, Target};
use kode_command::{Analysis, CommandPattern};

/// The verdict on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum GateDecision {
    /// It runs.
    Allow,
    /// The user decides.
    Ask,
    /// It is refused.
    Deny,
}

/// How far a yes of the user's may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerReach {
    /// This call alone: the user has a rule that says to ask.
    Never,
    /// The very same thing, until the session ends.
    Session,
    /// As far as a rule can.
    Rule,
}

/// The verdict on a call, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The verdict.
    pub decision: GateDecision,
    /// Why, for people and for the model; without a final period.
    pub reason: String,
    /// The rule that decided, if one did.
    pub rule: Option<CitedRule>,
    /// How far a yes may reach, where the user decides.
    pub standing: AnswerReach,
}

/// A rule as it is named to people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedRule {
    /// Its text, without secrets.
    pub text: String,
    /// Its effect.
    pub behavior: Behavior,
    /// Its place.
    pub source: crate::rules::RuleSource,
}

impl Confinement {
    /// Whether a command line always runs outside the sandbox.
    #[must_use]
    pub fn excludes(&self, analysis: &Analysis) -> bool {
        match self {
            Self::Sandbox { excluded, .. } => analysis.is_all_of(excluded),
            Self::Off | Self::Missing(_) => false,
        }
    }
}

/// A call, as far as the gate checks it.
#[derive(Clone, Copy, Debug)]
pub struct GateCase<'a> {
    /// The tool's canonical name.
    pub tool: &'a str,
    /// Its effect on the world.
    pub kind: ToolKind,
    /// The arguments.
    pub input: &'a Value,
    /// The touches of the call.
    pub touches: &'a [Touch],
}

/// The sandbox of the commands while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confinement {
    /// Nothing, and the user wants it so.
    Off,
    /// A sandbox.
    Sandbox {
        /// Whether what runs in it needs no question.
        runs_unasked: bool,
        /// Whether commands may run outside of it at all when a call says so.
        may_leave: bool,
        /// Commands that always run outside of it, because the user wants it so.
        excluded: Vec<CommandPattern>,
    },
    /// Nothing, because there is no sandbox here; why not.
    Missing(String),
}

/// The context of the gate besides the call.
pub struct Circumstances<'a> {
    /// The session's mode.
    pub mode: Mode,
    /// The rules in force.
    pub rules: &'a RuleSet,
    /// The session's standing answers.
    pub grants: &'a [Grant],
    /// Which files hold secrets.
    pub sensitive: &'a Sensitive,
    /// Why a path is kept from the agent by a file such as `.aiignore`, if it is; links are not followed.
    pub ignored_by: &'a dyn Fn(&AbsPath) -> Option<IgnoredBy>,
    /// The files that the repository around a folder tracks, and ignore files keep from the agent.
    pub tracked_ignored: &'a dyn Fn(&AbsPath) -> Vec<(AbsPath, IgnoredBy)>,
    /// The sandbox of the commands.
    pub confinement: &'a Confinement,
    /// Why the rules protect less than the user thinks, if they do.
    pub lost: Option<&'a str>,
    /// The home folder.
    pub home: Option<&'a AbsPath>,
    /// The workspace folders, by name and with links followed.
    pub roots: &'a [AbsPath],
    /// Whether a target lies in the workspace or a folder added to it, links followed.
    pub contains: &'a dyn Fn(&Target) -> bool,
    /// Whether a target is the session's own, such as the kept output of its commands: reading it never asks.
    pub is_own: &'a dyn Fn(&Target) -> bool,
    /// Where a target leads, links followed.
    pub real: &'a dyn Fn(&Target) -> Target,
    /// How changes reach a target, where a rule says so.
    pub delivery: &'a dyn Fn(&Target) -> Option<EditDelivery>,
    /// Whether the settings of the repository a folder lies in name no program that git would run.
    pub is_plain_git: &'a dyn Fn(&AbsPath) -> bool,
    /// Why a file runs later, or decides what does, where settings name it.
    pub obeyed_by: &'a dyn Fn(&AbsPath) -> Option<&'static str>,
    /// Whether the program that a shell takes for a name lies where the agent may not write.
    pub is_program_from_outside: &'a dyn Fn(&str) -> bool,
}

impl Circumstances<'_> {
    /// Whether a rule, or an answer of the user's, may allow what the mode refuses. In plan mode nothing is changed, and in
    /// readonly mode no file, whatever was allowed.
    fn may_be_allowed(&self, act: ActionClass) -> bool {
        match self.mode {
            Mode::Plan => act == ActionClass::Look,
            Mode::Readonly => act != ActionClass::Edit,
            Mode::Default | Mode::AcceptEdits | Mode::DontAsk | Mode::BypassPermissions | Mode::Approval => {
                true
            }
        }
    }
}

/// Judges a call. A tool that touches nothing is judged by its kind.
#[must_use]
pub fn judge(case: &GateCase<'_>, circumstances: &Circumstances<'_>) -> Verdict {
    let mut verdict = judge_all(case, circumstances);
    if let (Some(lost), GateDecision::Allow, false) =
        (circumstances.lost, verdict.decision, case.touches.is_empty())
    {
        // An unreadable rule may have forbidden this.
        verdict = Verdict::ask(format!("settings cannot be read in full ({lost})")).within_session();
    }
    match (verdict.decision, circumstances.mode) {
        (GateDecision::Ask, Mode::DontAsk) => Verdict {
            decision: GateDecision::Deny,
            reason: format!("mode dontAsk never asks, and {}", verdict.reason),
            ..verdict
        },
        _ => verdict,
    }
}

fn judge_all(case: &GateCase<'_>, circumstances: &Circumstances<'_>) -> Verdict {
    let rules = circumstances.rules;
    let tool = RuleSubject::Tool { name: case.tool, input: case.input };
    if let Some(rule) = rules.find(Behavior::Deny, &tool) {
        return Verdict::by_rule(GateDecision::Deny, rule);
    }
    let asked = rules.find(Behavior::Ask, &tool).map(|rule| Verdict::by_rule(GateDecision::Ask, rule));
    let allowed = rules.find(Behavior::Allow, &tool);
    let touches = case.touches.iter().map(|touch| judge_touch(touch, allowed, circumstances));
    let untouched = case.touches.is_empty().then(|| judge_kind(case, allowed, circumstances));
    asked
        .into_iter()
        .chain(touches)
        .chain(untouched)
        .fold(Verdict::allowed("nothing speaks against it"), Verdict::and)
}

fn judge_kind(
    case: &GateCase<'_>,
    allowed: Option<&PlacedRule>,
    circumstances: &Circumstances<'_>,
) -> Verdict {
    let act = match case.kind {
        ToolKind::ReadOnly => return Verdict::allowed("it only looks"),
        ToolKind::Write => ActionClass::Edit,
        ToolKind::Execute => ActionClass::Command,
    };
    match allowed.filter(|_| circumstances.may_be_allowed(act)) {
        Some(rule) => Verdict::by_rule(GateDecision::Allow, rule),
        None => Verdict::by_mode(circumstances.mode, act),
    }
}

fn judge_touch(touch: &Touch, allowed: Option<&PlacedRule>, circumstances: &Circumstances<'_>) -> Verdict {
    match touch {
        Touch::Read(target) => file::judge(file::TargetAccess::Read, target, allowed, circumstances),
        Touch::Write(target) => file::judge(file::TargetAccess::Write, target, allowed, circumstances),
        Touch::Command { command, directory, outside_sandbox, language } => {
            let outside_sandbox = *outside_sandbox;
            let command = command::GateLine { command, directory, outside_sandbox, language };
            command::judge(&command, allowed, circumstances)
        }
        Touch::Fetch { url } => {
            let host = url.host_str().unwrap_or_default();
            let verdict =
                judge_subject(&RuleSubject::Fetch { host }, ActionClass::Reach, allowed, circumstances);
            match verdict.rule {
                None if verdict.decision == GateDecision::Ask => {
                    Verdict::ask(format!("{host} learns of the request, and its page reaches the model"))
                }
                _ => verdict,
            }
        }
        Touch::Named { tool, name } => {
            let act = if *tool == "WebSearch" { ActionClass::Reach } else { ActionClass::Look };
            judge_subject(&RuleSubject::Named { tool, name }, act, allowed, circumstances)
        }
        // The rules for the tool as a whole are all there are for it.
        Touch::Foreign { tool: _, shown: _, only_looks } => {
            let act = if *only_looks { ActionClass::Look } else { ActionClass::Reach };
            match allowed.filter(|_| circumstances.may_be_allowed(act)) {
                Some(rule) => Verdict::by_rule(GateDecision::Allow, rule),
                None => Verdict::by_mode(circumstances.mode, act),
            }
        }
    }
}

fn judge_subject(
    subject: &RuleSubject<'_>,
    act: ActionClass,
    allowed: Option<&PlacedRule>,
    circumstances: &Circumstances<'_>,
) -> Verdict {
    let rules = circumstances.rules;
    if let Some(rule) = rules.find(Behavior::Deny, subject) {
        return Verdict::by_rule(GateDecision::Deny, rule);
    }
    if let Some(rule) = rules.find(Behavior::Ask, subject) {
        return Verdict::by_rule(GateDecision::Ask, rule);
    }
    match rules.find(Behavior::Allow, subject).or(allowed) {
        Some(rule) => Verdict::by_rule(GateDecision::Allow, rule),
        None => Verdict::by_mode(circumstances.mode, act),
    }
}

/// Whether a search may show something of a file: a name that no rule denies, a content that nothing speaks against.
#[must_use]
pub fn may_read(target: &Target, look: Exposure, circumstances: &Circumstances<'_>) -> bool {
    let real = (circumstances.real)(target);
    let verdict = file::held_back(file::TargetAccess::Read, target, &real, circumstances);
    match (look, verdict.decision) {
        (_, GateDecision::Allow) | (Exposure::Name, GateDecision::Ask) => true,
        (Exposure::Name, GateDecision::Deny) => verdict.rule.is_none(),
        (Exposure::Content, GateDecision::Ask) => {
            verdict.rule.is_none() && circumstances.grants.iter().any(|grant| grant.covers_read(&real))
        }
        (Exposure::Content, GateDecision::Deny) => false,
    }
}

/// The objections to giving the model a file that the user has named themselves. That it lies outside the workspace does
/// not.
#[must_use]
pub fn judge_named(target: &Target, circumstances: &Circumstances<'_>) -> Verdict {
    let tool = RuleSubject::Tool { name: "Read", input: &Value::Null };
    for (behavior, decision) in [(Behavior::Deny, GateDecision::Deny), (Behavior::Ask, GateDecision::Ask)] {
        if let Some(rule) = circumstances.rules.find(behavior, &tool) {
            return Verdict::by_rule(decision, rule);
        }
    }
    if let Some(lost) = circumstances.lost {
        return Verdict::ask(format!("settings cannot be read in full ({lost})"));
    }
    let real = (circumstances.real)(target);
    let verdict = file::held_back(file::TargetAccess::Read, target, &real, circumstances);
    let is_granted = || circumstances.grants.iter().any(|grant| grant.covers_read(&real));
    match verdict.decision {
        GateDecision::Ask if verdict.rule.is_none() && is_granted() => {
            Verdict::allowed("the user has allowed it for this session")
        }
        GateDecision::Allow | GateDecision::Ask | GateDecision::Deny => verdict,
    }
}

/// As [`judge_named`], for what a prompt names. A path in the workspace that leads out of it by a link names no file outside: it
/// is judged as a read of the model is.
pub fn judge_attached(target: &Target, circumstances: &Circumstances<'_>) -> Verdict {
    let verdict = judge_named(target, circumstances);
    let is_inside = |file: &AbsPath| circumstances.roots.iter().any(|root| file.is_within(root));
    let leads_out = target.file().is_some_and(is_inside) && !(circumstances.contains)(target);
    if verdict.decision != GateDecision::Allow || !leads_out {
        return verdict;
    }
    let tool = RuleSubject::Tool { name: "Read", input: &Value::Null };
    let allowed = circumstances.rules.find(Behavior::Allow, &tool);
    let verdict = file::judge(file::TargetAccess::Read, target, allowed, circumstances);
    let real = (circumstances.real)(target);
    match verdict.decision {
        GateDecision::Ask if verdict.rule.is_none() && real != *target => {
            let reason = format!("{target} is a link out of the workspace; name {real} itself to attach it");
            Verdict { reason, ..verdict }
        }
        GateDecision::Allow | GateDecision::Ask | GateDecision::Deny => verdict,
    }
}

impl Verdict {
    pub(crate) fn allowed(reason: impl Into<String>) -> Self {
        Self { decision: GateDecision::Allow, reason: reason.into(), rule: None, standing: AnswerReach::Rule }
    }

    pub(crate) fn ask(reason: impl Into<String>) -> Self {
        Self { decision: GateDecision::Ask, reason: reason.into(), rule: None, standing: AnswerReach::Rule }
    }

    /// A refusal.
    pub fn deny(reason: impl Into<String>) -> Self {
        Self { decision: GateDecision::Deny, reason: reason.into(), rule: None, standing: AnswerReach::Never }
    }

    fn within_session(self) -> Self {
        Self { standing: AnswerReach::Session, ..self }
    }

    fn by_rule(decision: GateDecision, placed: &PlacedRule) -> Self {
        let verb = match decision {
            GateDecision::Allow => "allows it",
            GateDecision::Ask => "asks for it",
            GateDecision::Deny => "denies it",
        };
        // It reaches people and the model.
        let text = masked_text(&placed.rule.to_string());
        let cited = CitedRule { text, behavior: placed.behavior, source: placed.source.clone() };
        Self {
            decision,
            reason: format!("the rule {} in {} {verb}", cited.text, cited.source),
            rule: Some(cited),
            standing: AnswerReach::Never,
        }
    }

    fn by_mode(mode: Mode, act: ActionClass) -> Self {
        let what = match act {
            ActionClass::Look => "reading files",
            ActionClass::Edit => "changing files",
            ActionClass::Command => "running commands",
            ActionClass::Reach => "reaching anything outside",
        };
        match mode.stance(act) {
            Stance::Allow => Self::allowed(format!("mode {} allows it", mode.label())),
            Stance::Ask => Self::ask(format!("mode {} asks before {what}", mode.label())),
            Stance::Refuse => Self::deny(format!("mode {} does not allow {what}", mode.label())),
        }
    }

    /// The stricter of two verdicts, the first of equals; a yes reaches only as far as both let it.
    fn and(self, other: Self) -> Self {
        let standing = match (self.decision, other.decision) {
            (GateDecision::Ask, GateDecision::Ask) => self.standing.min(other.standing),
            (GateDecision::Ask, _) => self.standing,
            (_, GateDecision::Ask) => other.standing,
            _ => self.standing.min(other.standing),
        };
        // Of two that allow, the one that names a rule says more.
        let says_more = other.decision == self.decision && self.rule.is_none() && other.rule.is_some();
        let stricter = if other.decision > self.decision || says_more { other } else { self };
        Self { standing, ..stricter }
    }
}
