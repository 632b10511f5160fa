//! Plugins: folders that bring commands, agents, skills, output styles, hooks, MCP servers and language servers together,
//! and the marketplaces they come from.
//!
//! Rule: of a plugin nothing counts before it is installed and enabled, and exactly the installed files are used; a path in
//! it never leads out of it; nothing in it is run by reading, installing or updating it.

mod brought;
mod document;
pub mod installed;
mod manifest;
pub mod marketplace;
pub mod store;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt;
use std::sync::Arc;

use crate::extension::places::ExtensionPart;
use crate::settings::declared::Declaration;
use kode_base::paths::AbsPath;
use kode_permission::rules::{ProblemSeverity, RuleSource, SettingsProblem};

pub(crate) use tree::FolderTree;

/// The folders of a manifest or of a marketplace's list, in the plugin or marketplace; the first that is there counts.
pub(crate) const FOLDERS: [&str; 2] = [".kode-plugin", ".claude-plugin"];

/// The most characters of the name of a plugin or marketplace.
const MAX_NAME: usize = 64;

/// The folder a plugin lies in, by the names that its texts know.
const ROOT: [&str; 2] = ["CLAUDE_PLUGIN_ROOT", "KODE_PLUGIN_ROOT"];

/// The folder of its own data, by the names that its texts know.
const DATA: [&str; 2] = ["CLAUDE_PLUGIN_DATA", "KODE_PLUGIN_DATA"];

/// A plugin of a marketplace, written `name@marketplace`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginId {
    /// The plugin's name.
    pub name: String,
    /// The marketplace's name.
    pub marketplace: String,
}

impl PluginId {
    /// Reads `name@marketplace`.
    ///
    /// # Errors
    /// Its problems, without a period.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, marketplace) = text
            .split_once('@')
            .ok_or_else(|| format!("`{text}` is not of the form `plugin@marketplace`"))?;
        check_name(name)?;
        check_name(marketplace)?;
        Ok(Self { name: name.to_owned(), marketplace: marketplace.to_owned() })
    }
}

impl fmt::Display for PluginId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}@{}", self.name, self.marketplace)
    }
}

/// Whether something may be the name of a plugin or a marketplace: it becomes a part of the names of commands, tools and
/// folders.
///
/// # Errors
/// Its problems, without a period.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_' | '.');
    let begins = name.starts_with(|char: char| char.is_ascii_alphanumeric());
    if begins && name.len() <= MAX_NAME && name.chars().all(fits) {
        return Ok(());
    }
    Err(format!("`{name}` is no name: letters, digits, `-`, `_` and `.`, {MAX_NAME} of them at most"))
}

/// Where a plugin lies, for all that comes from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folders {
    /// The plugin's name.
    pub name: String,
    /// The folder with its files.
    pub root: AbsPath,
    /// The folder for its own data; it need not be there yet.
    pub data: AbsPath,
}

impl Folders {
    /// The value of a name in a text of the plugin.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        let of = |names: [&str; 2], folder: &AbsPath| names.contains(&name).then(|| folder.to_string());
        of(ROOT, &self.root).or_else(|| of(DATA, &self.data))
    }

    /// The variables that what the plugin has run is given.
    pub fn variables(&self) -> impl Iterator<Item = (String, String)> {
        let root = ROOT.map(|name| (name.to_owned(), self.root.to_string()));
        root.into_iter().chain(DATA.map(|name| (name.to_owned(), self.data.to_string())))
    }

    /// Makes the folder for the plugin's own data, if need be. Where that fails the plugin finds none, and the log says why.
    pub fn make_data(&self) {
        if let Err(error) = std::fs::create_dir_all(&self.data) {
            tracing::warn!(plugin = self.name, %error, folder = %self.data, "a plugin has no folder of its own");
        }
    }
}

/// A plugin as its files describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plugin {
    /// Where it lies.
    pub folders: Arc<Folders>,
    /// Its version, if it says one.
    pub version: Option<String>,
    /// Its purpose; may be empty.
    pub description: String,
    /// Its manifest; `None` where it has none.
    pub manifest: Option<AbsPath>,
    /// The folders and files with agents, skills, commands and styles.
    pub parts: Vec<(ExtensionPart, AbsPath)>,
    /// Its hooks, a group each.
    pub hooks: Vec<Declaration>,
    /// Its MCP servers.
    pub servers: Vec<Declaration>,
    /// Its language servers.
    pub language_servers: Vec<Declaration>,
    /// Its problems.
    pub problems: Vec<SettingsProblem>,
    /// The files that were looked for to read this.
    pub(crate) files: Vec<AbsPath>,
}

impl Plugin {
    /// Why it cannot be used at all, if it cannot.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        let error = self.problems.iter().find(|problem| {
            problem.severity == ProblemSeverity::Error
                && (problem.file.is_none() || problem.file == self.manifest)
        });
        error.map(|problem| problem.message.as_str())
    }
}

/// A plugin that is installed, or that settings name.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginListing {
    /// `name@marketplace`.
    pub id: String,
    /// The version that is installed, where it is known.
    pub version: Option<String>,
    /// Where it is installed; `None` when it is not.
    pub root: Option<AbsPath>,
    /// The setting that switches it; `None` without one.
    pub source: Option<RuleSource>,
    /// Its state.
    pub state: PluginState,
}

/// The state of a plugin.
#[derive(Clone, Debug, PartialEq)]
pub enum PluginState {
    /// It counts.
    On(Arc<Plugin>),
    /// It is installed and not enabled.
    Off,
    /// A file of the workspace enables it, and that waits for the user's approval.
    Waiting,
    /// It does not count, for this reason, which is reported with what to do.
    LeftOut(String),
}

impl PluginState {
    /// Its name in lists.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::On(_) => "on",
            Self::Off => "off",
            Self::Waiting => "waiting",
            Self::LeftOut(_) => "left out",
        }
    }
}
