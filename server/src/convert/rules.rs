//! Permission rules on the wire.
//!
//! Rule: values only, no decisions; lines are counted from 1, as people count them.

use kode_engine::agent::explain::Explanation;
use kode_engine::agent::gate::ActiveRules;
use kode_engine::base::mask::masked_text;
use kode_engine::base::paths::AbsPath;
use kode_engine::config::settings::{StatementStanding, TrustState, TrustSummary, WithheldSetting, summary};
use kode_engine::permission::rules::{Behavior, PlacedRule, ProblemSeverity, RuleSource, SettingsProblem};
use kode_protocol as wire;

use crate::convert;

/// The state in force in a session.
#[must_use]
pub fn in_force(rules: ActiveRules) -> wire::ListRulesResult {
    wire::ListRulesResult {
        mode: convert::mode(rules.mode),
        rules: rules.rules.iter().map(entry).collect(),
        withheld: rules.withheld.iter().map(withheld).collect(),
        problems: rules.problems.into_iter().map(problem).collect(),
    }
}

/// The problems of the settings, and what of them waits for approval.
#[must_use]
pub fn changed(
    files: &[AbsPath],
    problems: Vec<SettingsProblem>,
    waiting: &[WithheldSetting],
) -> wire::ConfigChanged {
    wire::ConfigChanged {
        files: files.iter().map(ToString::to_string).collect(),
        problems: problems.into_iter().map(problem).collect(),
        withheld: waiting.iter().map(withheld).collect(),
    }
}

/// The text of a rule.
#[must_use]
pub fn behavior(behavior: Behavior) -> wire::RuleBehavior {
    match behavior {
        Behavior::Deny => wire::RuleBehavior::Deny,
        Behavior::Ask => wire::RuleBehavior::Ask,
        Behavior::Allow => wire::RuleBehavior::Allow,
    }
}

/// The client's behavior for a rule.
#[must_use]
pub fn behavior_from_wire(behavior: wire::RuleBehavior) -> Behavior {
    match behavior {
        wire::RuleBehavior::Deny => Behavior::Deny,
        wire::RuleBehavior::Ask => Behavior::Ask,
        wire::RuleBehavior::Allow => Behavior::Allow,
    }
}

/// The verdict on a call.
#[must_use]
pub fn explanation(explained: Explanation) -> wire::ExplainPermissionResult {
    wire::ExplainPermissionResult {
        decision: behavior(explained.decision),
        rule: explained.rule,
        source: explained.source,
        reason: explained.reason,
        proposed: explained.proposed,
    }
}

/// Something in the settings that cannot be used.
#[must_use]
pub fn problem(problem: SettingsProblem) -> wire::SettingsProblem {
    wire::SettingsProblem {
        severe: problem.severity == ProblemSeverity::Error,
        message: problem.message,
        line: problem.place.filter(|_| problem.file.is_some()).map(|place| place.line + 1),
        file: problem.file.map(|file| file.to_string()),
    }
}

fn entry(placed: &PlacedRule) -> wire::RuleEntry {
    wire::RuleEntry {
        behavior: behavior(placed.behavior),
        rule: masked_text(&placed.rule.to_string()),
        source: source(&placed.source),
    }
}

/// The state of a statement in a file.
#[must_use]
pub fn standing(standing: StatementStanding) -> wire::ConfigStanding {
    match standing {
        StatementStanding::InForce => wire::ConfigStanding::InForce,
        StatementStanding::Waiting => wire::ConfigStanding::Waiting,
        StatementStanding::Ignored => wire::ConfigStanding::Ignored,
    }
}

/// How much waits for the user's word.
#[must_use]
pub fn trust_required(waiting: TrustSummary) -> wire::TrustRequired {
    wire::TrustRequired {
        count: u32::try_from(waiting.count).unwrap_or(u32::MAX),
        files: waiting.files.iter().map(ToString::to_string).collect(),
        summary: waiting.summary,
    }
}

/// The trust requests of workspace files.
#[must_use]
pub fn trust(state: TrustState) -> wire::ListTrustResult {
    let summary = summary(state.waiting.iter().map(|waiting| waiting.trust_request.key.as_str()));
    let waiting = state.waiting.into_iter().map(|waiting| wire::PendingTrust {
        digest: waiting.digest,
        text: waiting.trust_request.shown(),
        key: waiting.trust_request.key,
        source: source(&waiting.source),
        earlier: waiting.earlier,
        dismissed: waiting.is_dismissed,
    });
    let approved = state.approved.into_iter().map(|approved| wire::ApprovedTrust {
        digest: approved.digest,
        text: approved.trust_request.shown(),
        key: approved.trust_request.key,
        source: source(&approved.source),
    });
    wire::ListTrustResult {
        distrusted: state.is_distrusted,
        summary,
        waiting: waiting.collect(),
        approved: approved.collect(),
    }
}

/// Something that waits for the user's approval.
#[must_use]
pub fn withheld(withheld: &WithheldSetting) -> wire::WithheldSetting {
    wire::WithheldSetting {
        key: withheld.trust_request.key.clone(),
        value: withheld.trust_request.shown(),
        source: source(&withheld.source),
    }
}

/// The place of a setting.
#[must_use]
pub fn source(source: &RuleSource) -> wire::RuleSource {
    // The editor's settings are in no file, and so on no line.
    let place = source.place.filter(|_| source.file.is_some());
    wire::RuleSource {
        layer: source.layer.name().to_owned(),
        file: source.file.as_ref().map(ToString::to_string),
        line: place.map(|place| place.line + 1),
    }
}
