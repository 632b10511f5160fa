//! The commands that users type after `/`: the built-in ones, and what a command leaves in the transcript.
//!
//! Rule: one table says all there is to know of the built-in commands, and a file never takes the name of one of them. A
//! command that only shows or steers is answered without the model, and the model gets nothing of it.

pub mod btw;
pub mod compact;
pub mod goal;
mod table;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use kode_base::ids::SessionId;

pub use table::BUILT_INS;

/// The server that the arguments of `/mcp` sign in to, empty if they name none; `None` where they ask for something else.
#[must_use]
pub fn mcp_login(arguments: &str) -> Option<&str> {
    let (word, server) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
    (word == "login").then(|| server.trim())
}

/// A built-in command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuiltInCommand {
    /// Which one it is.
    pub which: BuiltInId,
    /// Its name, without the `/`.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// Its arguments, for people; may be empty.
    pub argument_hint: &'static str,
    /// Its effect, for people.
    pub description: &'static str,
    /// How it is carried out.
    pub effect: CommandEffect,
}

/// How a built-in command is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandEffect {
    /// It shows something, at once.
    Show,
    /// It changes something; some of them only show a state without arguments.
    Control,
    /// It asks the model something.
    Prompt,
    /// It belongs to a terminal: it says what to do in an editor.
    Elsewhere,
}

/// The built-in commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each stands with its description in the table")]
pub enum BuiltInId {
    AddDir,
    Agents,
    Btw,
    Clear,
    Compact,
    Config,
    Context,
    Cost,
    Doctor,
    Effort,
    Elsewhere(&'static str),
    Export,
    Fork,
    Git,
    Goal,
    Commit,
    Help,
    Hooks,
    Init,
    Mcp,
    Memory,
    Model,
    OutputStyle,
    Permissions,
    Plan,
    Plugin,
    PrComments,
    ReloadSkills,
    Rename,
    Resume,
    Review,
    Rewind,
    Sandbox,
    SecurityReview,
    Skills,
    Status,
    Tasks,
    Todos,
    Trust,
    Worktree,
}

impl BuiltInCommand {
    /// The built-in command of a name or an alias.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        BUILT_INS.iter().find(|built_in| built_in.name == name || built_in.aliases.contains(&name))
    }

    /// Whether it is answered at once, while a turn runs as well.
    #[must_use]
    pub fn is_at_once(&self, arguments: &str) -> bool {
        match self.effect {
            CommandEffect::Show | CommandEffect::Elsewhere => true,
            CommandEffect::Prompt => false,
            CommandEffect::Control => match self.which {
                BuiltInId::Model
                | BuiltInId::Effort
                | BuiltInId::OutputStyle
                | BuiltInId::Permissions
                | BuiltInId::Plugin
                | BuiltInId::Resume
                | BuiltInId::Trust => arguments.is_empty(),
                BuiltInId::Goal => goal::is_at_once(arguments),
                // A sign-in has a turn of its own, which can be cancelled.
                BuiltInId::Mcp => mcp_login(arguments).is_none(),
                // They take the conversation as it is, without a turn that has just begun.
                BuiltInId::Rewind | BuiltInId::Fork => true,
                _ => false,
            },
        }
    }

    /// Whether a model has to be asked for it.
    #[must_use]
    pub fn asks_model(&self, arguments: &str) -> bool {
        match self.which {
            BuiltInId::Compact => true,
            BuiltInId::Plan => !arguments.is_empty(),
            BuiltInId::Goal => matches!(goal::read(arguments), Ok(goal::GoalCommand::Set(_))),
            _ => self.effect == CommandEffect::Prompt,
        }
    }
}

/// A command as it is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedCommand<'a> {
    /// Its name, without the `/`.
    pub name: &'a str,
    /// The text after it, without blanks around it.
    pub arguments: &'a str,
}

impl<'a> TypedCommand<'a> {
    /// The command in a prompt, if it begins with one. Text that looks like a path or code is not a command.
    #[must_use]
    pub fn read(prompt: &'a str) -> Option<Self> {
        let rest = prompt.trim().strip_prefix('/')?;
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (name, arguments) = (&rest[..end], rest[end..].trim());
        let is_part = |char: char| char.is_alphanumeric() || "_-:.".contains(char);
        let is_name = name.starts_with(char::is_alphanumeric) && name.chars().all(is_part);
        is_name.then_some(Self { name, arguments })
    }

    /// The built-in command that is meant.
    #[must_use]
    pub fn built_in(&self) -> Option<&'static BuiltInCommand> {
        BuiltInCommand::find(self.name)
    }
}

/// The command that a prompt was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandUse {
    /// Its name, without the `/`.
    pub name: String,
    /// The text behind it.
    pub arguments: String,
    /// Where it comes from.
    pub source: CommandSource,
}

/// Where a command comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CommandSource {
    /// It is built in.
    BuiltIn,
    /// A Markdown file of commands.
    Command,
    /// A skill.
    Skill,
}

/// The output of a command.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandReport {
    /// For people, in Markdown.
    pub text: String,
    /// The same for machines, in the command's own form.
    pub data: Option<Value>,
    /// Whether it was not carried out.
    pub failed: bool,
    /// The session to continue with from now on.
    pub go_to: Option<SessionId>,
}

impl CommandReport {
    /// Something to read.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Why it was not carried out.
    pub fn failure(text: impl Into<String>) -> Self {
        Self { text: text.into(), failed: true, ..Self::default() }
    }

    /// The same with its form for machines.
    pub fn with(self, data: Value) -> Self {
        Self { data: Some(data), ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_command_is_a_name_behind_a_slash_and_no_path() {
        for (prompt, expected) in [
            ("/help", Some(("help", ""))),
            (" /git:commit  a b \n", Some(("git:commit", "a b"))),
            ("/review\nall of it", Some(("review", "all of it"))),
            ("/usr/bin is full", None),
            ("// a comment", None),
            ("/* a comment */", None),
            ("/", None),
            ("see /help", None),
        ] {
            let read = TypedCommand::read(prompt).map(|typed| (typed.name, typed.arguments));
            assert_eq!(read, expected, "{prompt}");
        }
    }

    #[test]
    fn a_sign_in_is_a_word_of_its_own() {
        for (arguments, expected) in [
            ("login", Some("")),
            ("login  hub ", Some("hub")),
            ("logins", None),
            ("tools login", None),
            ("", None),
        ] {
            assert_eq!(mcp_login(arguments), expected, "{arguments:?}");
        }
    }

    #[test]
    fn no_two_commands_have_a_name_and_each_says_what_it_does() {
        let mut names = BTreeSet::new();
        for built_in in BUILT_INS {
            for name in std::iter::once(&built_in.name).chain(built_in.aliases) {
                assert!(names.insert(*name), "{name} twice");
                assert_eq!(
                    TypedCommand::read(&format!("/{name}")).unwrap().built_in().unwrap().which,
                    built_in.which
                );
            }
            assert!(!built_in.description.is_empty(), "{}", built_in.name);
            let is_elsewhere = matches!(built_in.which, BuiltInId::Elsewhere(_));
            assert_eq!(is_elsewhere, built_in.effect == CommandEffect::Elsewhere, "{}", built_in.name);
        }
    }

    #[test]
    fn what_only_shows_is_answered_at_once() {
        let at_once = |text: &str| {
            let typed = TypedCommand::read(text).unwrap();
            typed.built_in().unwrap().is_at_once(typed.arguments)
        };
        for (text, now) in [
            ("/cost", true),
            ("/model", true),
            ("/model quick", false),
            ("/plugin", true),
            ("/plugin enable x", false),
            ("/rewind 1", true),
            ("/clear", false),
            ("/goal", true),
            ("/goal clear", true),
            ("/goal clear the cache", false),
            ("/compact", false),
            ("/plan", false),
            ("/plan the move", false),
            ("/init", false),
            ("/login", true),
        ] {
            assert_eq!(at_once(text), now, "{text}");
        }
    }
}
