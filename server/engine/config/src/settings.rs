//! Settings files: where they are, what they say together, and writing rules into them.
//!
//! Rule: managed beats command line, editor, local, project, user and default. A broken file disables itself alone and is
//! reported. What a workspace's own files loosen counts only once the user has approved that very text; what they deny
//! always counts.

#![expect(clippy::disallowed_methods, reason = "settings name variables")]

pub mod declared;
mod editor;
pub mod effective;
mod exclude;
pub mod keys;
mod lock;
mod models;
mod plugins;
pub mod policy;
mod preference;
mod read;
mod scripts;
mod servers;
mod set;
pub mod statement;
#[cfg(test)]
mod tests;
mod text;
mod trust;
mod values;
pub mod watch;
mod write;

use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use crate::extension::FOLDERS;
use crate::extension::places::{OWN, XDG_NAME, user_folder};
use crate::plugin::installed::{InstalledPlugins, PluginPaths};
use kode_base::change_probe::ChangeProbe;
use kode_base::paths::AbsPath;
use kode_permission::rules::{
    Behavior, PlacedRule, ProblemSeverity, Rule, RuleSource, SettingsLayer, SettingsProblem,
};
use read::{FileOrigin, FileOwner};

pub use declared::Declarations;
pub use editor::{EditorSettings, EditorUpdate};
pub(crate) use lock::Lock;
pub use models::ModelValues;
pub use policy::{PolicyOptions, SettingsPolicies, SettingsPolicy};
pub(crate) use read::json;
pub use set::SetError;
pub use statement::{Statement, StatementStanding};
pub(crate) use text::{OPTIONS, SettingsText};
pub use trust::{ApprovedTrust, PendingTrust, Trust, TrustRequest, TrustState, TrustSummary, summary};
pub use values::{
    SandboxSettings, SensitiveFile, SettingsValues, SourcedValue, StatedPreferences, StatedProfile,
    StatedRemote,
};
pub use write::{SettingsScope, WriteOutcome};

/// How many of the folders of settings are ours to write into.
const OWN_FOLDERS: usize = 2;
/// The file that is for everyone who works here.
const SHARED: &str = "settings.json";
/// The file that is for this user alone.
const LOCAL: &str = "settings.local.json";
/// The file beside [`SHARED`], for keys about models and display; weaker than all of those of its layer.
const CONFIG: &str = "config.json";
/// The folder of another agent that keeps its models in such a file.
const FOREIGN_CONFIG_FOLDER: &str = ".blade";
/// The folder of an agent that has no such file, or keeps something else in it.
const WITHOUT_CONFIG: &str = ".claude";
/// The folder of plugins in a folder of the user's settings.
const PLUGINS: &str = "plugins";
/// The administrator's file.
const MANAGED: &str = "/etc/kode-ls/managed-settings.json";

/// Where settings come from.
#[derive(Clone, Debug)]
pub struct SettingsSources {
    /// The workspace folders; what the earlier one says is stronger.
    pub roots: Vec<AbsPath>,
    /// The home folder.
    pub home: Option<AbsPath>,
    /// The folders of the user's settings, the strongest first, as many as [`SettingsSources::new`] finds.
    pub user_folders: Vec<AbsPath>,
    /// The administrator's file.
    pub managed: Option<AbsPath>,
    /// Rules from the command line.
    pub command_line: Vec<(Behavior, String)>,
    /// The folder for state: approvals and locks.
    pub state: AbsPath,
    trust: Arc<Trust>,
    editor: EditorSettings,
    /// The value of a variable of the environment.
    variable: fn(&str) -> Option<String>,
}

/// The settings as of their last load.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The files that were found, the strongest first.
    pub files: Vec<AbsPath>,
    /// Typed values of all files together.
    pub values: SettingsValues,
    /// The rules in force, the strongest first.
    pub rules: Vec<PlacedRule>,
    /// Allow rules of the workspace's own files that are not in force, because the user has not approved them.
    pub untrusted: Vec<PlacedRule>,
    /// Everything, those rules included, that waits for the user's approval.
    pub withheld: Vec<WithheldSetting>,
    /// Entries in effect by approval.
    pub approved: Vec<WithheldSetting>,
    /// The statements of each file, key by key, the strongest first.
    pub statements: Vec<Statement>,
    /// Entries that other modules run, start or pass on.
    pub declared: Declarations,
    /// The problems.
    pub problems: Vec<SettingsProblem>,
    has_lost: bool,
    /// The statements of files about plugins, until they are settled.
    switches: Vec<plugins::PluginSwitch>,
    /// The digest of the contents of the files.
    contents: Vec<(AbsPath, u64)>,
    /// How often the editor had said something else.
    editor: u64,
    stamps: Vec<(AbsPath, Option<SettingsStamp>)>,
    /// Files that declarations name; their content is part of the approval.
    named: Vec<(AbsPath, Option<SettingsStamp>)>,
}

/// Something a file of the workspace asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WithheldSetting {
    /// The requests for approval, or the approved ones, for [`Trust::approve`].
    pub trust_request: TrustRequest,
    /// Its place.
    pub source: RuleSource,
}

impl WithheldSetting {
    /// The trust requests of a workspace file that is no file of settings.
    #[must_use]
    pub fn of_file(trust_request: TrustRequest) -> Self {
        let source =
            RuleSource { layer: SettingsLayer::Project, file: Some(trust_request.file.clone()), place: None };
        Self { trust_request, source }
    }
}

/// Why settings cannot be written or approved.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read or written.
    #[error("{file} cannot be read or written: {source}")]
    Io {
        /// The file.
        file: AbsPath,
        /// Why.
        source: io::Error,
    },
    /// The file does not hold what it should, and is left as it is.
    #[error("{file} is left alone because {reason}; repair it and try again")]
    Broken {
        /// The file.
        file: AbsPath,
        /// The problem.
        reason: String,
    },
    /// A link leads somewhere else.
    #[error("{file} is not written because it leads to {real}, outside of {within}; write that file by hand")]
    Outside {
        /// The file.
        file: AbsPath,
        /// Where it leads.
        real: AbsPath,
        /// Where it should be.
        within: AbsPath,
    },
    /// Another process writes it all the time.
    #[error("{file} is being written by another process; try again")]
    Busy {
        /// The file.
        file: AbsPath,
    },
    /// It is no file of ours.
    #[error("{file} belongs to another program and is only read here; change it by hand")]
    NotOurs {
        /// The file.
        file: AbsPath,
    },
    /// There is no such place.
    #[error("there is no folder for {0} settings; open a folder, or set HOME")]
    NoPlace(&'static str),
    /// The rule cannot have this behavior.
    #[error("the rule `{rule}` cannot be written: {reason}")]
    Rule {
        /// The rule.
        rule: String,
        /// Why.
        reason: String,
    },
}

/// The stamp of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingsStamp {
    modified: Option<SystemTime>,
    length: u64,
    /// Tells a file from another that took its name within the clock's resolution.
    identity: Option<(u64, u64, i64, i64)>,
}

/// A file that may hold settings.
struct SettingsFile<'a> {
    file: AbsPath,
    layer: SettingsLayer,
    root: AbsPath,
    owner: FileOwner<'a>,
}

impl SettingsSources {
    /// The usual places: the workspace folders, the user's folders as [`user_folder`] finds them, and the administrator's
    /// file.
    #[must_use]
    pub fn new(
        roots: Vec<AbsPath>,
        home: Option<AbsPath>,
        state: AbsPath,
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Self {
        let user_folders =
            FOLDERS.iter().filter_map(|name| user_folder(name, home.as_ref(), environment)).collect();
        let managed = AbsPath::new(MANAGED).ok();
        let editor = EditorSettings::default();
        let trust = Arc::new(Trust::new(&state, editor.clone()));
        let variable = |name: &str| std::env::var(name).ok();
        Self { roots, home, user_folders, managed, command_line: Vec::new(), state, trust, editor, variable }
    }

    /// The same with what an editor says.
    #[must_use]
    pub fn with_editor(self, editor: EditorSettings) -> Self {
        Self { trust: Arc::new(Trust::new(&self.state, editor.clone())), editor, ..self }
    }

    /// The user's approvals.
    #[must_use]
    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Reads everything. Never fails: problems are in [`Settings::problems`]. Blocks on the disk.
    #[must_use]
    pub fn load(&self) -> Settings {
        // The stamps come first: what changes while it is read makes the settings stale.
        let stamps = self.watched().map(|file| (file.clone(), SettingsStamp::of(&file))).collect();
        let mut settings = Settings { stamps, editor: self.editor.number(), ..Settings::default() };
        let installed = InstalledPlugins::load(&self.plugins(), &self.roots);
        if let Err(error) = self.trust.refresh() {
            settings.problems.push(SettingsProblem {
                file: Some(self.trust.file().clone()),
                place: None,
                severity: ProblemSeverity::Warning,
                message: format!("Nothing this workspace asks for counts as approved: {error}."),
            });
        }
        settings.problems.extend(self.unread_folder());
        for candidate in self.candidates().filter(|candidate| candidate.layer < SettingsLayer::CommandLine) {
            self.take(&candidate, &installed, &mut settings);
        }
        self.take_command_line(&mut settings);
        self.take_editor(&installed, &mut settings);
        for layer in [SettingsLayer::Local, SettingsLayer::Project, SettingsLayer::User] {
            for candidate in self.candidates().filter(|candidate| candidate.layer == layer) {
                self.take(&candidate, &installed, &mut settings);
            }
            for file in self.server_files(layer) {
                self.take_servers(&file, &installed, &mut settings);
            }
        }
        settings.settle_plugins(&installed);
        settings.settle_servers(self.trust.is_distrusted());
        settings
    }

    /// The report of settings in `~/.kode-ls` that the XDG folder hides.
    fn unread_folder(&self) -> Option<SettingsProblem> {
        let (used, home) = (self.user_folders.first()?, self.home.as_ref()?);
        let file = home.join(OWN).join(SHARED);
        let is_hidden = used.file_name() == XDG_NAME && file.as_path().exists();
        is_hidden.then(|| SettingsProblem {
            message: format!(
                "{file} is not read, because {used} is there. Move the settings into that folder."
            ),
            file: Some(file),
            place: None,
            severity: ProblemSeverity::Warning,
        })
    }

    /// Whether any file has changed, come or gone since these settings were loaded from here. Checks each without reading it.
    #[must_use]
    pub fn is_stale(&self, settings: &Settings) -> bool {
        let mut stamps = settings.stamps.iter().chain(&settings.named);
        !self.is_of_editor(settings) || stamps.any(|(file, stamp)| SettingsStamp::of(file) != *stamp)
    }

    /// Whether the editor says the same as when these settings were loaded.
    pub(crate) fn is_of_editor(&self, settings: &Settings) -> bool {
        self.editor.number() == settings.editor
    }

    /// All files that settings depend on, there or not.
    pub fn watched(&self) -> impl Iterator<Item = AbsPath> {
        let layers = [SettingsLayer::Local, SettingsLayer::Project, SettingsLayer::User];
        // A file of two layers is checked once.
        let servers = layers.into_iter().flat_map(|layer| self.server_files(layer));
        let servers =
            servers.filter(|file| file.shape != servers::ServersShape::OfProjects).map(|file| file.file);
        let plugins = self.plugins().files().collect::<Vec<_>>();
        let files = self.candidates().map(|candidate| candidate.file).chain(servers).chain(plugins);
        files.chain([self.trust.file().clone()])
    }

    /// Where the user's plugins are.
    #[must_use]
    pub fn plugins(&self) -> PluginPaths {
        let place = |folder: &str| {
            let at = FOLDERS.iter().position(|name| *name == folder);
            // Without a home folder the others may be any of them.
            let is_whole = self.user_folders.len() == FOLDERS.len();
            at.filter(|_| is_whole).map(|at| self.user_folders[at].join(PLUGINS))
        };
        PluginPaths { ours: place(".kode-ls"), theirs: place(".claude"), state: Some(self.state.clone()) }
    }

    /// The files, the strongest first.
    fn candidates(&self) -> impl Iterator<Item = SettingsFile<'_>> {
        let managed = self.managed.iter().map(|file| SettingsFile {
            file: file.clone(),
            layer: SettingsLayer::Managed,
            root: file_system_root(file),
            owner: FileOwner::Person,
        });
        let of_workspace = |layer, name: &'static str| {
            self.roots.iter().flat_map(move |root| {
                FOLDERS.iter().map(move |folder| SettingsFile {
                    file: root.join(folder).join(name),
                    layer,
                    root: root.clone(),
                    owner: FileOwner::Workspace(root),
                })
            })
        };
        let of_user = |name: &'static str| {
            self.user_folders.iter().map(move |folder| SettingsFile {
                file: folder.join(name),
                layer: SettingsLayer::User,
                root: folder.clone(),
                owner: FileOwner::Person,
            })
        };
        // Where the home folder is open as a workspace, the user's files are the user's.
        let is_user_file = |candidate: &SettingsFile<'_>| {
            let is_one = |folder: &AbsPath| {
                candidate.file == folder.join(SHARED) || candidate.file == folder.join(CONFIG)
            };
            !self.user_folders.iter().any(is_one)
        };
        let has_config = |candidate: &SettingsFile<'_>| {
            candidate.file.parent().is_some_and(|folder| folder.file_name() != WITHOUT_CONFIG)
        };
        managed
            .chain(of_workspace(SettingsLayer::Local, LOCAL))
            .chain(of_workspace(SettingsLayer::Project, SHARED).filter(is_user_file))
            .chain(of_workspace(SettingsLayer::Project, CONFIG).filter(has_config).filter(is_user_file))
            .chain(of_user(SHARED))
            .chain(of_user(CONFIG).filter(has_config))
    }

    fn take(&self, candidate: &SettingsFile<'_>, installed: &InstalledPlugins, settings: &mut Settings) {
        let text = match SettingsText::read(&candidate.file) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(reason) => {
                settings.files.push(candidate.file.clone());
                return settings.lose(SettingsProblem {
                    file: Some(candidate.file.clone()),
                    place: None,
                    severity: ProblemSeverity::Error,
                    message: read::broken(&reason),
                });
            }
        };
        settings.files.push(candidate.file.clone());
        settings.note_contents(&candidate.file, &text);
        let origin = FileOrigin {
            file: Some(&candidate.file),
            layer: candidate.layer,
            root: &candidate.root,
            owner: candidate.owner,
            home: self.home.as_ref(),
            trust: &self.trust,
            installed,
            variable: self.variable,
        };
        read::read(&origin, &text, settings);
    }

    /// The editor's settings: as the user's own what the client says is, and the rest where it narrows.
    fn take_editor(&self, installed: &InstalledPlugins, settings: &mut Settings) {
        let word = self.editor.word();
        // Without a folder of its own, relative paths in it mean nothing.
        let root = self.roots.first().or(self.home.as_ref()).unwrap_or(&self.state);
        for (value, owner) in [(&word.user_settings, FileOwner::Person), (&word.settings, FileOwner::Unknown)]
        {
            if value.is_null() {
                continue;
            }
            let text = SettingsText::new(format!("{value:#}"));
            let origin = FileOrigin {
                file: None,
                layer: SettingsLayer::Editor,
                root,
                owner,
                home: self.home.as_ref(),
                trust: &self.trust,
                installed,
                variable: self.variable,
            };
            read::read(&origin, &text, settings);
        }
    }

    fn take_command_line(&self, settings: &mut Settings) {
        for (behavior, text) in &self.command_line {
            let rule = text.parse::<Rule>().and_then(|rule| rule.check(*behavior).map(|()| rule));
            match rule {
                Ok(rule) => {
                    let source = RuleSource { layer: SettingsLayer::CommandLine, file: None, place: None };
                    let key = keys::key(&format!("permissions.{}", behavior.name()));
                    settings.statements.extend(key.map(|key| Statement {
                        key,
                        name: None,
                        value: text.clone().into(),
                        source: source.clone(),
                        standing: StatementStanding::InForce,
                    }));
                    settings.rules.push(PlacedRule { behavior: *behavior, rule, source, root: None });
                }
                Err(error) => {
                    let name = behavior.name();
                    let message =
                        format!("The rule `{text}` ({name}) of the command line is ignored: {error}.");
                    let problem = SettingsProblem {
                        file: None,
                        place: None,
                        severity: ProblemSeverity::Error,
                        message,
                    };
                    match behavior {
                        Behavior::Deny | Behavior::Ask => settings.lose(problem),
                        Behavior::Allow => {
                            settings
                                .problems
                                .push(SettingsProblem { severity: ProblemSeverity::Warning, ..problem });
                        }
                    }
                }
            }
        }
    }
}

impl Settings {
    /// Whether something that would have denied or asked could not be understood, so that the rules in force protect
    /// less than the user thinks. The problems of severity error say what.
    #[must_use]
    pub fn has_lost_protection(&self) -> bool {
        self.has_lost
    }

    /// After how many days untouched sessions are deleted; `None` for never, and while a file cannot be read: it may be the
    /// one that says never.
    #[must_use]
    pub fn cleanup_days(&self) -> Option<u32> {
        self.values.stated.preferences().cleanup_days.filter(|_| !self.has_lost)
    }

    /// A probe of the files that these settings depend on; `None` where the system has none for them. Blocks on the disk.
    pub(crate) fn probe(&self) -> Option<ChangeProbe> {
        ChangeProbe::of(self.stamps.iter().chain(&self.named).map(|(file, _)| file))
    }

    /// The digest of the contents of the files, so that a change of them can be told from a mere read of them.
    #[must_use]
    pub fn contents(&self) -> &[(AbsPath, u64)] {
        &self.contents
    }

    fn note_contents(&mut self, file: &AbsPath, text: &SettingsText) {
        let mut hasher = DefaultHasher::new();
        text.text.hash(&mut hasher);
        self.contents.push((file.clone(), hasher.finish()));
    }

    /// Makes the settings stale once one of these files changes.
    fn inspect(&mut self, files: impl Iterator<Item = AbsPath>) {
        for file in files {
            let stamp = SettingsStamp::of(&file);
            self.named.push((file, stamp));
        }
    }

    fn lose(&mut self, problem: SettingsProblem) {
        self.has_lost = true;
        self.problems.push(problem);
    }
}

impl SettingsStamp {
    /// `None` for a file that is not there or cannot be checked.
    pub(crate) fn of(file: &AbsPath) -> Option<Self> {
        let metadata = file.as_path().metadata().ok()?;
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            Some((metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()))
        };
        #[cfg(not(unix))]
        let identity = None;
        Some(Self { modified: metadata.modified().ok(), length: metadata.len(), identity })
    }
}

/// The content of an approval of commands for the files of a workspace that they name: a line for each with its content
/// now. Empty when they name none. Blocks on the disk.
pub(crate) fn contents_of_named(workspace: &AbsPath, commands: &str) -> String {
    let commands = serde_json::Value::String(commands.to_owned());
    scripts::named_files(workspace, &commands).iter().map(scripts::ReferencedFile::line).collect()
}

/// The approved part of an entry that a file of the workspace declares: its text, and a line for each file of the workspace
/// that it names. Blocks on the disk.
pub(crate) fn text_with_contents(workspace: &AbsPath, value: &serde_json::Value) -> String {
    let contents: String =
        scripts::named_files(workspace, value).iter().map(scripts::ReferencedFile::line).collect();
    format!("{value}{contents}")
}

/// Whether a hook runs a script in a folder, or may once a script is there. Blocks on the disk.
pub(crate) fn runs_script_in(folder: &AbsPath, hook: &serde_json::Value) -> bool {
    scripts::runs_script_in(folder, hook)
}

/// The files of the workspace that something which needs approval names. Blocks on the disk.
pub(crate) fn files_named_by(trust_request: &TrustRequest) -> impl Iterator<Item = AbsPath> {
    let text = serde_json::Value::String(trust_request.text.clone());
    scripts::named_files(&trust_request.root, &text).into_iter().map(|file| file.path)
}

fn file_system_root(file: &AbsPath) -> AbsPath {
    std::iter::successors(Some(file.clone()), AbsPath::parent).last().unwrap_or_else(|| file.clone())
}
