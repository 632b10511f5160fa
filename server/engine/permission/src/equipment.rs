//! The equipment of a skill or command for the turn that uses it: rules, a model, how hard it thinks.
//!
//! Rule: it counts until the turn ends and never longer (for a sub-agent that works on, until that one has ended), is recorded
//! when it begins to count, and takes no refusal away: rules that deny and ask come before those that allow.

use serde::{Deserialize, Serialize};

use crate::rules::{Behavior, PlacedRule, Rule, RuleSource, SettingsLayer};
use kode_base::effort::Effort;

/// The equipment of a skill or command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Equipment {
    /// The calls that run unasked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Calls that always ask.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<String>,
    /// The forbidden calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
    /// The name of the model profile of the session's own conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard that model thinks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

impl Equipment {
    /// Whether nothing is declared.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes in what another one declares; its model settings replace the earlier ones.
    pub fn take(&mut self, other: Self) {
        for (known, new) in
            [(&mut self.allow, other.allow), (&mut self.ask, other.ask), (&mut self.deny, other.deny)]
        {
            let new: Vec<_> = new.into_iter().filter(|rule| !known.contains(rule)).collect();
            known.extend(new);
        }
        self.model = other.model.or_else(|| self.model.take());
        self.effort = other.effort.or(self.effort);
    }

    /// The rules, as the gate takes them. A text that is no rule was notified of when it was read.
    pub fn rules(&self) -> impl Iterator<Item = PlacedRule> {
        let of = |behavior: Behavior, rules: &[String]| {
            let placed = move |text: &String| {
                let rule = text.parse::<Rule>().ok().filter(|rule| rule.check(behavior).is_ok())?;
                let source = RuleSource { layer: SettingsLayer::Session, file: None, place: None };
                Some(PlacedRule { behavior, rule, source, root: None })
            };
            rules.iter().filter_map(placed).collect::<Vec<_>>()
        };
        let all =
            [of(Behavior::Deny, &self.deny), of(Behavior::Ask, &self.ask), of(Behavior::Allow, &self.allow)];
        all.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_later_adds_rules_and_replaces_the_model() {
        let one = |allow: &str, model: Option<&str>| Equipment {
            allow: vec![allow.to_owned()],
            model: model.map(str::to_owned),
            ..Equipment::default()
        };
        let mut equipment = one("Read", Some("a"));
        equipment.take(one("Bash(git log:*)", None));
        equipment.take(one("Read", Some("b")));
        assert_eq!(equipment.allow, ["Read", "Bash(git log:*)"]);
        assert_eq!(equipment.model.as_deref(), Some("b"));
        equipment.deny.push("no rule (".to_owned());
        assert_eq!(equipment.rules().count(), 2);
    }
}
