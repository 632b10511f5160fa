//! Standing answers of one session: what the user has allowed until it ends.
//!
//! Rule: a grant covers the very thing the user saw, or what the rule covers that the user was shown, and nothing else.

use serde::{Deserialize, Serialize};

use crate::standing;
use kode_base::call::Touch;
use kode_base::command_shell::CommandShell;
use kode_base::paths::{AbsPath, Target};

/// A permanent permission of a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Grant {
    /// This command line in this folder.
    #[serde(rename_all = "camelCase")]
    Command {
        /// The command line, exactly.
        command: String,
        /// The folder it starts in.
        directory: AbsPath,
        /// The shell that runs it.
        #[serde(default)]
        shell: CommandShell,
    },
    /// This command line in this folder, outside the sandbox.
    #[serde(rename_all = "camelCase")]
    Outside {
        /// The command line, exactly.
        command: String,
        /// The folder it starts in.
        directory: AbsPath,
        /// The shell that runs it.
        #[serde(default)]
        shell: CommandShell,
    },
    /// Changes to this file or document, links followed, by whichever tool.
    Write(Target),
    /// Reading this file, document or folder, links followed.
    Read(Target),
    /// The permission of this rule, in the form people write rules.
    Rule(String),
}

impl Grant {
    /// The permanent permission for exactly this call: one grant for each thing it touches that there can be
    /// such a yes to.
    #[must_use]
    pub fn for_touches(touches: &[Touch], real: &dyn Fn(&Target) -> Target) -> Vec<Self> {
        let grant = |touch: &Touch| match touch {
            Touch::Read(target) => Some(Self::Read(real(target))),
            Touch::Write(target) => Some(Self::Write(real(target))),
            Touch::Command { command, directory, outside_sandbox, language } => {
                let (command, directory, shell) = (command.clone(), directory.clone(), language.shell());
                Some(if *outside_sandbox {
                    Self::Outside { command, directory, shell }
                } else {
                    Self::Command { command, directory, shell }
                })
            }
            Touch::Fetch { url } => standing::host_rule(url).map(Self::Rule),
            Touch::Named { tool, name } => Some(Self::Rule(standing::named_rule(tool, name))),
            Touch::Foreign { tool, .. } => Some(Self::Rule(tool.clone())),
        };
        touches.iter().filter_map(grant).collect()
    }

    /// The grant as a rule, in the form people write rules.
    #[must_use]
    pub fn rule(&self) -> String {
        match self {
            Self::Command { command, directory, shell } => {
                format!("{}({command}) in {directory}", shell.tool())
            }
            Self::Outside { command, directory, shell } => {
                format!("{}({command}) in {directory}, outside the sandbox", shell.tool())
            }
            Self::Write(target) => format!("Edit({target})"),
            Self::Read(target) => format!("Read({target})"),
            Self::Rule(rule) => rule.clone(),
        }
    }

    /// Whether this is a yes to reading a file, its links followed. Who may change a file may read it.
    #[must_use]
    pub fn covers_read(&self, real: &Target) -> bool {
        matches!(self, Self::Read(granted) | Self::Write(granted) if granted == real)
    }

    /// Whether this is a yes to changing a file, its links followed.
    #[must_use]
    pub fn covers_write(&self, real: &Target) -> bool {
        matches!(self, Self::Write(granted) if granted == real)
    }

    /// Whether this is a yes to a command line of a shell in a folder, within the sandbox or outside of it.
    #[must_use]
    pub fn covers_command(
        &self,
        runs_in: CommandShell,
        line: &str,
        folder: &AbsPath,
        outside_sandbox: bool,
    ) -> bool {
        match self {
            Self::Command { command, directory, shell } => {
                !outside_sandbox && *shell == runs_in && command == line && directory == folder
            }
            Self::Outside { command, directory, shell } => {
                outside_sandbox && *shell == runs_in && command == line && directory == folder
            }
            Self::Write(_) | Self::Read(_) | Self::Rule(_) => false,
        }
    }
}
