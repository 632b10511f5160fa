//! Denials by files such as `.aiignore`, as the gate takes them.
//!
//! Rule: a denial names the file and the line that the user would have to change.

use std::fmt;

use kode_base::paths::{AbsPath, Target};

use crate::gate::CitedRule;
use crate::rules::{Behavior, FileRange, RuleSource, SettingsLayer};
use crate::{GateDecision, Verdict};

/// The denial of a path by an ignore file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredBy {
    /// The ignore file.
    pub file: AbsPath,
    /// The part of it that denies.
    pub cause: IgnoreCause,
}

/// The part of an ignore file that denies a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IgnoreCause {
    /// A line.
    Line {
        /// Its number, from 1.
        number: u32,
        /// Its text.
        pattern: String,
    },
    /// The whole file, because it cannot be read: why not.
    Unreadable(String),
}

impl IgnoredBy {
    /// The verdict on a call that touches the path.
    pub(crate) fn verdict(&self, target: &Target) -> Verdict {
        let (text, line) = match &self.cause {
            IgnoreCause::Line { number, pattern } => (pattern.clone(), number.saturating_sub(1)),
            IgnoreCause::Unreadable(_) => ("*".to_owned(), 0),
        };
        let place = FileRange { line, column: 0, end_line: line, end_column: 0 };
        let source = RuleSource {
            layer: SettingsLayer::IgnoreFile,
            file: Some(self.file.clone()),
            place: Some(place),
        };
        let rule = CitedRule { text, behavior: Behavior::Deny, source };
        let reason = format!("{target} is kept from the agent by {self}");
        Verdict { rule: Some(rule), decision: GateDecision::Deny, ..Verdict::deny(reason) }
    }
}

impl fmt::Display for IgnoredBy {
    /// As people are notified, for example ``line 3 (`secrets/`) of /w/.aiignore``.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            IgnoreCause::Line { number, pattern } => {
                write!(formatter, "line {number} (`{pattern}`) of {}", self.file)
            }
            IgnoreCause::Unreadable(why) => write!(formatter, "{}, which cannot be read: {why}", self.file),
        }
    }
}
