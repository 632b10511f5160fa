//! The users' files for the agent: skills and commands, found in the folders of this agent and of others.
//!
//! Rule: a broken file is reported and left out alone; only the head of a file is kept, its text is read when it is
//! used. Looking runs nothing and grants nothing, and depends on the folders alone.

pub mod arguments;
pub(crate) mod copilot;
mod find;
pub mod front_matter;
pub(crate) mod head;
pub mod live;
pub mod places;
pub(crate) mod problem;
pub mod report;
mod survey;
pub mod template;
mod watch;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::hooks::declared::FileHooks;
use crate::plugin::Folders;
use crate::settings::TrustRequest;
use kode_base::command_shell::CommandShell;
use kode_base::effort::Effort;
use kode_base::paths::AbsPath;

/// The folders, beside the workspace's files and in the user's home, that are looked into; the first wins.
pub(crate) const FOLDERS: [&str; 4] = [".kode-ls", ".kode", ".claude", ".blade"];

/// The most characters of one entry in the list that the model reads.
const MAX_LISTED: usize = 1536;

/// The most characters of the whole list that the model reads.
const MAX_LIST: usize = 16_000;

/// Whether an addition is used by the model when it fits, or written for the user to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExtensionKind {
    /// `skills/<name>/SKILL.md`.
    Skill,
    /// `commands/**/*.md`.
    Command,
}

/// The owner of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExtensionScope {
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
}

impl ExtensionScope {
    /// Its name in lists.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Above => "above",
            Self::Below => "below",
            Self::User => "user",
            Self::Plugin => "plugin",
        }
    }
}

/// A skill or command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Which of them it is.
    pub kind: ExtensionKind,
    /// Its name.
    pub name: String,
    /// Its purpose and use, for the model; one text, bounded.
    pub listing: String,
    /// Its arguments, for people; may be empty.
    pub argument_hint: String,
    /// The names of its arguments by position.
    pub argument_names: Vec<String>,
    /// The number of the first argument where `$0` and `$1` count, if its head says so.
    pub argument_base: Option<usize>,
    /// Whether the model may use it by itself.
    pub model_may_call: bool,
    /// Whether the user may call it by its name.
    pub user_may_call: bool,
    /// Its owner.
    pub scope: ExtensionScope,
    /// The folder that holds the folder of settings in which it lies.
    pub root: AbsPath,
    /// The file.
    pub path: AbsPath,
    /// The folder that its relative paths mean.
    pub folder: AbsPath,
    /// The plugin that brings it, if one does.
    pub plugin: Option<Arc<Folders>>,
    /// Rules of what runs unasked in the turn that uses it.
    pub allowed_tools: Vec<String>,
    /// Rules of what does not run in the turn that uses it.
    pub disallowed_tools: Vec<String>,
    /// The model for the turn that uses it, by whatever names one.
    pub model: Option<String>,
    /// How hard the model thinks in that turn.
    pub effort: Option<Effort>,
    /// The type of sub-agent that carries it out, where one does.
    pub agent: Option<String>,
    /// Whether that one is not waited for.
    pub background: bool,
    /// Patterns of files; where there are any, the model is notified of it only once such a file was read or changed.
    pub paths: Vec<String>,
    /// The shell that its commands are written for.
    pub shell: CommandShell,
    /// The hooks that count once it was used.
    pub hooks: Option<FileHooks>,
    /// Its trust requests: a workspace file gets none of them by itself.
    pub trust_requests: Vec<TrustRequest>,
    /// The unsupported keys of its front matter, for people.
    pub notes: Vec<String>,
    /// Whether no file was touched yet of those that it is for.
    is_dormant: bool,
}

/// One that cannot be reached by its name, because another one has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowedExtension {
    /// The hidden ones.
    pub extension: Extension,
    /// The file that is used instead.
    pub by: AbsPath,
}

/// The skills and commands of a workspace and its user.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    skills: BTreeMap<String, Extension>,
    commands: BTreeMap<String, Extension>,
    /// The ones whose name another one has.
    pub shadowed: Vec<ShadowedExtension>,
    /// The files that are left out, with the reason.
    pub problems: Vec<(PathBuf, String)>,
}

impl Catalog {
    /// The skill or command of that name; the first match wins.
    #[must_use]
    pub fn find(&self, first: ExtensionKind, name: &str) -> Option<&Extension> {
        let (skill, command) = (self.skills.get(name), self.commands.get(name));
        match first {
            ExtensionKind::Skill => skill.or(command),
            ExtensionKind::Command => command.or(skill),
        }
    }

    /// The item of a typed name: a skill before a command.
    #[must_use]
    pub fn typed(&self, name: &str) -> Option<&Extension> {
        let may_call = |found: &&Extension| found.user_may_call;
        let skill = self.skills.get(name).filter(may_call);
        skill.or_else(|| self.commands.get(name).filter(may_call))
    }

    /// The names nearest to one that there is not, best first, of those that the model may call.
    #[must_use]
    pub fn nearest(&self, name: &str) -> Vec<&str> {
        let names: Vec<&str> = self.callable().map(|extension| extension.name.as_str()).collect();
        nearest(name, &names)
    }

    /// The list that the model reads of one kind; `None` when there is nothing it may use.
    #[must_use]
    pub fn listing(&self, kind: ExtensionKind) -> Option<String> {
        let of_kind: Vec<_> = self.callable().filter(|extension| extension.kind == kind).collect();
        let (mut text, mut listed) = (String::new(), 0);
        for extension in &of_kind {
            let hint = match extension.argument_hint.as_str() {
                "" => String::new(),
                hint => format!(" {hint}"),
            };
            let line = format!("- {}{hint}: {}\n", extension.name, extension.listing);
            if text.chars().count() + line.chars().count() > MAX_LIST {
                break;
            }
            text.push_str(&line);
            listed += 1;
        }
        if listed < of_kind.len() {
            let more: Vec<_> = of_kind[listed..].iter().map(|extension| extension.name.as_str()).collect();
            text.push_str(&format!("- and, without room to describe them: {}\n", more.join(", ")));
        }
        (!of_kind.is_empty()).then_some(text)
    }

    /// The trust requests of their files.
    pub fn trust_requests(&self) -> impl Iterator<Item = &TrustRequest> {
        self.all().flat_map(|extension| &extension.trust_requests)
    }

    /// Whether there is nothing the model may use.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.callable().next().is_none()
    }

    /// All of them that can be reached by their names.
    pub fn all(&self) -> impl Iterator<Item = &Extension> {
        self.skills.values().chain(self.commands.values())
    }

    fn callable(&self) -> impl Iterator<Item = &Extension> {
        self.all().filter(|extension| extension.model_may_call && !extension.is_dormant)
    }
}

/// The names most like one that there is not, best first.
pub fn nearest<'a>(name: &str, names: &[&'a str]) -> Vec<&'a str> {
    const MOST: usize = 3;
    const LIKENESS: f32 = 0.5;
    similar::get_close_matches(name, names, MOST, LIKENESS)
}

#[cfg(test)]
mod tests;
