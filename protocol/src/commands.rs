//! The commands that can be typed after `/`: built-in ones, those of files, and skills.
//!
//! Rule: hidden and omitted files are listed as well, with the reason, so that users see why a file does
//! nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::FileProblem;
use crate::text::SessionId;

/// The session of the commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListCommandsParams {
    /// The session, whose folders are looked into; without it those of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// The commands, as their files say now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListCommandsResult {
    /// The built-in ones first, then skills and commands of files in the order of their names, then those that are hidden.
    pub commands: Vec<CommandInfo>,
    /// Files that are left out, and why.
    pub problems: Vec<FileProblem>,
    /// How users extend the agent, and who sets each of these off.
    pub extension_points: Vec<ExtensionPoint>,
}

/// A command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandInfo {
    /// Its name, without the `/`.
    pub name: String,
    /// Its kind.
    pub kind: CommandKind,
    /// Other names of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Its effect, for people.
    pub description: String,
    /// Its arguments, for people; may be empty.
    pub argument_hint: String,
    /// How it is carried out; absent for commands that are not built in, which always asks the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<CommandEffect>,
    /// The owner of its file; absent when it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<CommandScope>,
    /// The path of its file; absent when it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the user may call it.
    pub user_invocable: bool,
    /// Whether the model may call it by itself.
    pub model_invocable: bool,
    /// The command that is used instead, because that has its name: a file, or `built-in`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadowed_by: Option<String>,
    /// The unapproved requests of its file: `shell`, `allowedTools`. Known for sessions alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// The unsupported parts of its file, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// The kind of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CommandKind {
    /// It is built in.
    BuiltIn,
    /// A Markdown file of commands.
    Command,
    /// A skill.
    Skill,
    /// A kind that this build does not know.
    #[serde(other)]
    Other,
}

/// How a built-in command is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CommandEffect {
    /// It shows something, at once, while a turn runs as well.
    Show,
    /// It changes something.
    Control,
    /// It asks the model something.
    Prompt,
    /// It belongs to a terminal: it says what to do in an editor.
    Elsewhere,
    /// An effect that this build does not know.
    #[serde(other)]
    Other,
}

/// The owner of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CommandScope {
    /// The workspace's.
    Project,
    /// That of a folder above it, in the same repository.
    Above,
    /// That of a folder in it in which something was read or changed.
    Below,
    /// The user's own.
    User,
    /// That of a plugin that is on.
    Plugin,
    /// One that this build does not know.
    #[serde(other)]
    Other,
}

/// A way in which users extend the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionPoint {
    /// `hooks`, `commands`, `agents` or `skills`.
    pub kind: String,
    /// Whether it is set off by what happens.
    pub automatic: bool,
    /// Whether the user sets it off.
    pub manual: bool,
    /// Whether the model calls it.
    pub model_callable: bool,
}
