//! The shells that run commands, as a value.
//!
//! Rule: a command is written for one of them, and is judged and run as a command of that one.

use serde::{Deserialize, Serialize};

/// A shell that runs commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CommandShell {
    /// Bash, the usual one.
    #[default]
    Bash,
    /// PowerShell.
    PowerShell,
}

impl CommandShell {
    /// All of them, the usual one first.
    pub const ALL: [Self; 2] = [Self::Bash, Self::PowerShell];

    /// The canonical name of the tool that runs its commands.
    #[must_use]
    pub const fn tool(self) -> &'static str {
        match self {
            Self::Bash => "Bash",
            Self::PowerShell => "PowerShell",
        }
    }

    /// The shell whose commands the tool of this canonical name runs.
    #[must_use]
    pub fn of_tool(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shell| shell.tool() == name)
    }
}
