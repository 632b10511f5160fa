//! Permission rules on the wire.
//!
//! Rule: values only, no decisions; lines are counted from 1, as people count them.

use kode_engine::permission::explain::Explanation;
use kode_engine::permission::rules::{Behavior, PlacedRule, Problem, Severity, Source};
use kode_engine::session::rules::RulesInForce;
use kode_engine::settings::Withheld;
use kode_protocol as wire;

use crate::convert;

/// What is in force in a session.
#[must_use]
pub fn in_force(rules: RulesInForce) -> wire::ListRulesResult {
    wire::ListRulesResult {
        mode: convert::mode(rules.mode),
        rules: rules.rules.iter().map(entry).collect(),
        withheld: rules.withheld.iter().map(withheld).collect(),
        problems: rules.problems.into_iter().map(problem).collect(),
    }
}

/// What is wrong with the settings, and what of them waits for approval.
#[must_use]
pub fn changed(problems: Vec<Problem>, waiting: &[Withheld]) -> wire::ConfigChanged {
    wire::ConfigChanged {
        problems: problems.into_iter().map(problem).collect(),
        withheld: waiting.iter().map(withheld).collect(),
    }
}

/// What a rule says.
#[must_use]
pub fn behavior(behavior: Behavior) -> wire::RuleBehavior {
    match behavior {
        Behavior::Deny => wire::RuleBehavior::Deny,
        Behavior::Ask => wire::RuleBehavior::Ask,
        Behavior::Allow => wire::RuleBehavior::Allow,
    }
}

/// What a client wants a rule to say.
#[must_use]
pub fn behavior_from_wire(behavior: wire::RuleBehavior) -> Behavior {
    match behavior {
        wire::RuleBehavior::Deny => Behavior::Deny,
        wire::RuleBehavior::Ask => Behavior::Ask,
        wire::RuleBehavior::Allow => Behavior::Allow,
    }
}

/// What would become of a call.
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
pub fn problem(problem: Problem) -> wire::SettingsProblem {
    wire::SettingsProblem {
        severe: problem.severity == Severity::Error,
        message: problem.message,
        file: problem.file.map(|file| file.to_string()),
        line: problem.place.map(|place| place.line + 1),
    }
}

fn entry(placed: &PlacedRule) -> wire::RuleEntry {
    wire::RuleEntry {
        behavior: behavior(placed.behavior),
        rule: placed.rule.to_string(),
        source: source(&placed.source),
    }
}

/// Something that waits for the user's approval.
#[must_use]
pub fn withheld(withheld: &Withheld) -> wire::WithheldSetting {
    wire::WithheldSetting {
        key: withheld.wish.key.clone(),
        value: withheld.wish.text.clone(),
        source: source(&withheld.source),
    }
}

/// Where something stands.
pub(super) fn source(source: &Source) -> wire::RuleSource {
    wire::RuleSource {
        layer: source.layer.name().to_owned(),
        file: source.file.as_ref().map(ToString::to_string),
        line: source.place.map(|place| place.line + 1),
    }
}
