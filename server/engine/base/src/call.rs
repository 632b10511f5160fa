//! A tool call as the permission gate sees it: what the call touches, what kind of tool makes it, and how it can fail.
//!
//! Rule: plain data. A tool declares these facts before anything runs; the gate and the loop act on them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use crate::command_shell::CommandShell;
use crate::paths::{AbsPath, Target};
use crate::powershell::SyntaxReading;

/// The effect of a tool on the world; drives the permission matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolKind {
    /// Looks only.
    ReadOnly,
    /// Changes files through change sets.
    Write,
    /// Runs something whose effects are not known beforehand.
    Execute,
}

/// Something a call touches, so that the gate can judge it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads a file, document or folder.
    Read(Target),
    /// Changes or creates a file or document.
    Write(Target),
    /// Runs a command line in a folder.
    Command {
        /// The command line, exactly.
        command: String,
        /// The folder it starts in.
        directory: AbsPath,
        /// Whether it is to run outside the sandbox, where there is one.
        outside_sandbox: bool,
        /// The language it is written in.
        language: CommandLanguage,
    },
    /// Fetches a web page.
    Fetch {
        /// The page.
        url: Url,
    },
    /// Uses something by its name: a kind of agent, a skill, a command, a search of the web.
    Named {
        /// The canonical name of the tool that uses it.
        tool: &'static str,
        /// The name, or the words searched for.
        name: String,
    },
    /// Delegates to another program, with effects that kode-ls does not know: a tool of an MCP server.
    Foreign {
        /// The canonical name of the tool.
        tool: String,
        /// The server and the exact arguments, for people.
        shown: String,
        /// Whether it is believed to look only.
        only_looks: bool,
    },
}

/// The language of a command line, with what it takes to judge the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CommandLanguage {
    /// That of bash.
    #[default]
    Bash,
    /// That of PowerShell, as its own parser reads the line.
    PowerShell(Arc<SyntaxReading>),
}

impl CommandLanguage {
    /// The shell that runs the line.
    #[must_use]
    pub fn shell(&self) -> CommandShell {
        match self {
            Self::Bash => CommandShell::Bash,
            Self::PowerShell(_) => CommandShell::PowerShell,
        }
    }

    /// The language of a shell whose lines are not parsed yet.
    #[must_use]
    pub fn unread(shell: CommandShell) -> Self {
        match shell {
            CommandShell::Bash => Self::Bash,
            CommandShell::PowerShell => Self::PowerShell(Arc::new(SyntaxReading::unread())),
        }
    }
}

impl Touch {
    /// The target that is read or written, if it is a file, folder or document.
    #[must_use]
    pub fn target(&self) -> Option<&Target> {
        match self {
            Self::Read(target) | Self::Write(target) => Some(target),
            Self::Command { .. } | Self::Fetch { .. } | Self::Named { .. } | Self::Foreign { .. } => None,
        }
    }

    /// The written target, if it lies within this folder.
    #[must_use]
    pub fn write_within(&self, folder: &Target) -> Option<&Target> {
        match (self, folder) {
            (Self::Write(target @ Target::File(path)), Target::File(folder)) if path != folder => {
                path.is_within(folder).then_some(target)
            }
            (
                Self::Read(_)
                | Self::Write(_)
                | Self::Command { .. }
                | Self::Fetch { .. }
                | Self::Named { .. }
                | Self::Foreign { .. },
                _,
            ) => None,
        }
    }
}

/// The classes of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolErrorKind {
    /// No tool has this name.
    UnknownTool,
    /// The arguments are not JSON or do not fit the schema.
    InvalidInput,
    /// The file, folder or document is not there.
    NotFound,
    /// The file cannot be read or written by this user, or lies where it must not.
    Forbidden,
    /// The text is not what the call took it for: unread, changed, no match, several matches.
    Mismatch,
    /// The user's typing and the edit overlap.
    Conflict,
    /// A rule, a mode or the user said no.
    Denied,
    /// It took too long.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// It ran and failed.
    Failed,
}

/// A failed call: what happened, where, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The class.
    pub kind: ToolErrorKind,
    /// The failure and its place.
    pub message: String,
    /// The next step; never empty.
    pub hint: String,
    /// A number some clients and reminders know: 1 means more than one match.
    pub code: Option<u32>,
    /// The details of the failure, for machines: the exit code of a command.
    pub structured: Option<Box<Value>>,
}

impl ToolError {
    /// An error with its hint.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into(), code: None, structured: None }
    }

    /// The text for the model.
    #[must_use]
    pub fn model_text(&self) -> String {
        format!("{}\n{}", self.message, self.hint)
    }
}

/// The lines of a file that a search shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// That it exists.
    Name,
    /// Its content.
    Content,
}

/// Whether a search may show something of a file. It may be shown when no rule and no secret speaks against it.
pub type ReadCheck = Arc<dyn Fn(&Target, Exposure) -> bool + Send + Sync>;
