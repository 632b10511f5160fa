//! The commands a rule speaks of: the text between the parentheses of `Bash(...)`.
//!
//! Rule: printing a pattern and reading it again gives the same pattern.

use std::fmt;
use std::str::FromStr;

use super::{Analysis, SimpleCommand};

/// The commands a rule speaks of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandPattern(String);

/// Why a text is no command pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// There is nothing in it.
    #[error("the command is empty; write `Bash` without parentheses for all commands")]
    Empty,
}

impl FromStr for CommandPattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        if text.trim().is_empty() { Err(BadPattern::Empty) } else { Ok(Self(text.to_owned())) }
    }
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl CommandPattern {
    /// Whether an allow rule with this text lets the command run.
    #[must_use]
    pub fn allows(&self, command: &SimpleCommand) -> bool {
        command.argv.iter().all(|word| word.literal) && command.text == self.0
    }

    /// Whether a deny or ask rule with this text concerns any part of a line.
    #[must_use]
    pub fn forbids(&self, analysis: &Analysis) -> bool {
        analysis.unknowns.iter().any(|unknown| unknown.opaque)
            || analysis.commands.iter().any(|command| self.allows(command))
    }
}
