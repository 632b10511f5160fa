//! Modes: how much the agent may do unasked.
//!
//! Rule: a mode is a row of one table, and only this file states its verdict on an act. A mode only ever speaks when no
//! rule does; it lifts neither a refusal nor an ask rule, nor the guard over places that steer other programs.

use serde::{Deserialize, Deserializer, Serialize};

/// How much the agent may do unasked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Reads run; edits and commands ask.
    #[default]
    Default,
    /// Reads and edits inside the workspace run; commands ask.
    AcceptEdits,
    /// Reads and read-only commands run; edits and other commands are refused.
    Plan,
    /// Reads and calls that a rule allows run; everything else is refused without asking.
    DontAsk,
    /// Everything runs unless a rule, a guard or the command floor blocks it.
    BypassPermissions,
    /// Everything asks, including reads.
    Approval,
    /// Reads and read-only commands run; edits are refused; other commands ask.
    Readonly,
}

/// A mode as it was written down, perhaps by a newer build with modes that this one does not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StoredMode {
    /// One of this build's.
    Known(Mode),
    /// The name of another.
    Unknown(String),
}

impl From<Mode> for StoredMode {
    fn from(mode: Mode) -> Self {
        Self::Known(mode)
    }
}

impl StoredMode {
    /// The mode; `None` where this build does not know it.
    #[must_use]
    pub fn known(&self) -> Option<Mode> {
        match self {
            Self::Known(mode) => Some(*mode),
            Self::Unknown(_) => None,
        }
    }

    /// The name of a mode that this build does not know.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        match self {
            Self::Known(_) => None,
            Self::Unknown(name) => Some(name),
        }
    }
}

/// Reads a mode that may be missing; one that this build does not know is as good as none.
pub fn known_or_none<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Mode>, D::Error> {
    let written = Option::<StoredMode>::deserialize(source)?;
    Ok(written.and_then(|mode| mode.known()))
}

/// The action of a call, as far as modes distinguish it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionClass {
    /// Checks files of the workspace, or runs a command that is known to do no more.
    Look,
    /// Changes files of the workspace.
    Edit,
    /// Runs a command whose effects are not known beforehand.
    Command,
    /// Sends something to a party outside, or lets something be used that acts by itself.
    Reach,
}

/// The verdict of a mode on an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stance {
    /// It runs.
    Allow,
    /// The user decides.
    Ask,
    /// It is refused.
    Refuse,
}

impl Mode {
    /// All modes in the order in which clients list them.
    pub const ALL: [Self; 7] = [
        Self::Default,
        Self::AcceptEdits,
        Self::Plan,
        Self::DontAsk,
        Self::BypassPermissions,
        Self::Approval,
        Self::Readonly,
    ];

    /// The name used in settings and on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::AcceptEdits => "acceptEdits",
            Self::Plan => "plan",
            Self::DontAsk => "dontAsk",
            Self::BypassPermissions => "bypassPermissions",
            Self::Approval => "approval",
            Self::Readonly => "readonly",
        }
    }

    /// The mode's name for people, as clients show it.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Default => "Ask",
            Self::AcceptEdits => "Edit",
            Self::Plan => "Plan",
            Self::DontAsk => "Never ask",
            Self::BypassPermissions => "Bypass",
            Self::Approval => "Ask for all",
            Self::Readonly => "Read only",
        }
    }

    /// The mode of that name, in this product's spelling or another agent's. `auto` means different things in
    /// different agents and is no name here; `dontAsk` refuses calls that no rule allows, whatever other agents take it
    /// for.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "default" | "DEFAULT" => Some(Self::Default),
            "acceptEdits" | "AUTO_EDIT" | "autoEdit" => Some(Self::AcceptEdits),
            "plan" | "PLAN" => Some(Self::Plan),
            "dontAsk" => Some(Self::DontAsk),
            "bypassPermissions" | "YOLO" | "yolo" => Some(Self::BypassPermissions),
            "approval" => Some(Self::Approval),
            "readonly" => Some(Self::Readonly),
            _ => None,
        }
    }

    /// The mode in which a part of the work is judged that is to keep to `limit`: that one, where it is nowhere looser
    /// than this.
    #[must_use]
    pub fn within(self, limit: Self) -> Self {
        let acts = [ActionClass::Look, ActionClass::Edit, ActionClass::Command, ActionClass::Reach];
        if acts.iter().all(|act| limit.stance(*act) >= self.stance(*act)) { limit } else { self }
    }

    /// The verdict of the mode on an action without a rule.
    #[must_use]
    pub fn stance(self, act: ActionClass) -> Stance {
        use Stance::{Allow, Ask, Refuse};
        let [look, edit, command, reach] = match self {
            Self::Default => [Allow, Ask, Ask, Ask],
            Self::AcceptEdits => [Allow, Allow, Ask, Ask],
            Self::Plan => [Allow, Refuse, Refuse, Ask],
            Self::DontAsk => [Allow, Refuse, Refuse, Refuse],
            Self::BypassPermissions => [Allow, Allow, Allow, Allow],
            Self::Approval => [Ask, Ask, Ask, Ask],
            Self::Readonly => [Allow, Refuse, Ask, Ask],
        };
        match act {
            ActionClass::Look => look,
            ActionClass::Edit => edit,
            ActionClass::Command => command,
            ActionClass::Reach => reach,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_found_by_its_name_and_by_the_names_of_other_agents() {
        for mode in Mode::ALL {
            assert_eq!(Mode::parse(mode.name()), Some(mode));
        }
        let others =
            [("AUTO_EDIT", Mode::AcceptEdits), ("YOLO", Mode::BypassPermissions), ("PLAN", Mode::Plan)];
        for (name, mode) in others {
            assert_eq!(Mode::parse(name), Some(mode));
        }
        assert_eq!(Mode::parse("auto"), None);
    }

    #[test]
    fn no_mode_is_stricter_about_looking_than_about_anything_else() {
        let severity = |stance| match stance {
            Stance::Allow => 0,
            Stance::Ask => 1,
            Stance::Refuse => 2,
        };
        for mode in Mode::ALL {
            for act in [ActionClass::Edit, ActionClass::Command, ActionClass::Reach] {
                assert!(
                    severity(mode.stance(act)) >= severity(mode.stance(ActionClass::Look)),
                    "{mode:?} {act:?}"
                );
            }
        }
    }

    #[test]
    fn a_limit_never_makes_a_mode_looser() {
        for mode in Mode::ALL {
            for limit in Mode::ALL {
                let within = mode.within(limit);
                for act in [ActionClass::Look, ActionClass::Edit, ActionClass::Command, ActionClass::Reach] {
                    assert!(within.stance(act) >= mode.stance(act), "{mode:?} {limit:?} {act:?}");
                }
            }
        }
        assert_eq!(Mode::BypassPermissions.within(Mode::Plan), Mode::Plan);
        assert_eq!(Mode::Default.within(Mode::BypassPermissions), Mode::Default);
        assert_eq!(Mode::DontAsk.within(Mode::Plan), Mode::DontAsk);
    }
}
