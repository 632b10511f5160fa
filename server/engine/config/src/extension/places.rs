//! Where the files of users are looked for that add agents, skills, commands and output styles.
//!
//! Rule: the strongest place comes first. A folder is only checked, never made. What a project brings must lie in that
//! project, links followed; the user's own files may lie wherever the user has put them.

#![expect(clippy::disallowed_methods, reason = "a variable names the folder of the settings")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::extension::{FOLDERS, copilot};
use crate::plugin::{Folders, Plugin};
use kode_base::paths::{AbsPath, real_path};

/// The folder of kode-ls itself in a workspace, and in a home without an XDG folder of it.
pub(crate) const OWN: &str = ".kode-ls";

/// Its name in the XDG folder of settings.
pub(crate) const XDG_NAME: &str = "kode-ls";

/// Where an administrator's files lie.
pub(crate) const MANAGED: &str = "/etc/kode-ls";

/// A kind of file that users add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExtensionPart {
    /// Types of sub-agents.
    Agents,
    /// Skills.
    Skills,
    /// Commands.
    Commands,
    /// Output styles.
    Styles,
}

impl ExtensionPart {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Agents, Self::Skills, Self::Commands, Self::Styles];

    /// The name of the folder of such files.
    #[must_use]
    pub fn folder(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Skills => "skills",
            Self::Commands => "commands",
            Self::Styles => "output-styles",
        }
    }
}

/// The owner of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ExtensionOrigin {
    /// The administrator's.
    Managed,
    /// The project's.
    Project,
    /// The user's, for all projects.
    User,
    /// A plugin's that is on.
    Plugin,
    /// Built in.
    BuiltIn,
}

impl ExtensionOrigin {
    /// The name shown to people and told to clients.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
            Self::BuiltIn => "built-in",
        }
    }
}

/// A folder that is looked into, or one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionFolder {
    /// The folder, or of a plugin the file; mostly absent.
    pub folder: AbsPath,
    /// The session of the files lie in it.
    pub origin: ExtensionOrigin,
    /// The folder that links must not lead out of; `None` for files that may lie anywhere.
    pub within: Option<AbsPath>,
    /// The plugin it is from.
    pub plugin: Option<Arc<Folders>>,
}

impl ExtensionFolder {
    /// The name of an item from there: a plugin's name precedes it.
    #[must_use]
    pub fn name_of(&self, own: &str) -> String {
        match &self.plugin {
            Some(plugin) => format!("{}:{own}", plugin.name),
            None => own.to_owned(),
        }
    }
}

/// The folders of a workspace and its user.
#[derive(Clone, Debug, Default)]
pub struct ExtensionFolders {
    /// The workspace folders, the strongest first.
    pub roots: Vec<AbsPath>,
    /// The home folder.
    pub home: Option<AbsPath>,
    /// The folders of the user's own files, the strongest first.
    pub user: Vec<AbsPath>,
    /// The folder of the administrator's files.
    pub managed: Option<AbsPath>,
    /// The plugins that are on.
    pub plugins: Vec<Arc<Plugin>>,
}

impl ExtensionFolders {
    /// The usual places of these workspace folders and of the user whose program this is.
    #[must_use]
    pub fn usual(roots: Vec<AbsPath>) -> Self {
        let home = std::env::home_dir().and_then(|home| AbsPath::new(home).ok());
        let (user, managed) = (user_folders(home.as_ref()), AbsPath::new(MANAGED).ok());
        Self { roots, user, home, managed, plugins: Vec::new() }
    }

    /// The places of these workspace folders and of the user at home there, whatever the environment says.
    #[must_use]
    pub fn at_home(roots: &[AbsPath], home: Option<&AbsPath>) -> Self {
        let user = home.map(|home| FOLDERS.map(|folder| home.join(folder)).to_vec()).unwrap_or_default();
        Self { roots: roots.to_vec(), home: home.cloned(), user, managed: None, plugins: Vec::new() }
    }

    /// The same with these plugins on.
    #[must_use]
    pub fn with_plugins(&self, plugins: Vec<Arc<Plugin>>) -> Self {
        Self { plugins, ..self.clone() }
    }

    /// The folders that files of one kind are looked for in, the strongest first.
    #[must_use]
    pub fn of(&self, part: ExtensionPart) -> Vec<ExtensionFolder> {
        let name = part.folder();
        let place = |folder: AbsPath, origin, within| ExtensionFolder {
            folder: folder.join(name),
            origin,
            within,
            plugin: None,
        };
        let managed =
            self.managed.iter().filter(|_| matches!(part, ExtensionPart::Agents | ExtensionPart::Styles));
        let managed = managed.map(|folder| place(folder.clone(), ExtensionOrigin::Managed, None));
        let user = self.user.iter().map(|folder| place(folder.clone(), ExtensionOrigin::User, None));
        let mut places: Vec<_> = managed.collect();
        let (project, user) = (self.of_projects(part), user.collect::<Vec<_>>());
        match part {
            // A skill of the user wins over one of the project.
            ExtensionPart::Skills => places.extend(user.into_iter().chain(project)),
            ExtensionPart::Agents | ExtensionPart::Commands | ExtensionPart::Styles => {
                places.extend(project.into_iter().chain(user))
            }
        }
        places.extend(self.of_plugins(part));
        places
    }

    /// The folders and files of plugins.
    pub(crate) fn of_plugins(&self, part: ExtensionPart) -> impl Iterator<Item = ExtensionFolder> {
        self.plugins.iter().flat_map(move |plugin| {
            let of_part = plugin.parts.iter().filter(move |(of, _)| *of == part);
            of_part.map(|(_, path)| ExtensionFolder {
                folder: path.clone(),
                origin: ExtensionOrigin::Plugin,
                within: Some(plugin.folders.root.clone()),
                plugin: Some(Arc::clone(&plugin.folders)),
            })
        })
    }

    /// The folders that the others lie in and that are there in any case, for watchers.
    pub(crate) fn bases(&self) -> Vec<AbsPath> {
        let projects = self.roots.iter().flat_map(|root| project_folders(root, self.home.as_ref()));
        let user = self.user.iter().filter_map(AbsPath::parent);
        let plugins = self.plugins.iter().map(|plugin| plugin.folders.root.clone());
        let mut bases: Vec<_> = projects.chain(user).chain(self.managed.clone()).chain(plugins).collect();
        bases.sort();
        bases.dedup();
        bases
    }

    fn of_projects(&self, part: ExtensionPart) -> Vec<ExtensionFolder> {
        let mut places = Vec::new();
        for root in &self.roots {
            let folders = match part {
                ExtensionPart::Agents | ExtensionPart::Skills | ExtensionPart::Commands => {
                    project_folders(root, self.home.as_ref())
                }
                ExtensionPart::Styles => vec![root.clone()],
            };
            let top = folders.last().cloned();
            let place = |folder| ExtensionFolder {
                folder,
                origin: ExtensionOrigin::Project,
                within: top.clone(),
                plugin: None,
            };
            for folder in folders.iter().flat_map(|folder| FOLDERS.map(|name| folder.join(name))) {
                // Where the home folder is open as a workspace, the user's files are the user's.
                if !self.user.contains(&folder) {
                    places.push(place(folder.join(part.folder())));
                }
            }
            let of_copilot = match part {
                ExtensionPart::Agents => Some(copilot::AGENTS),
                ExtensionPart::Commands => Some(copilot::PROMPTS),
                ExtensionPart::Skills | ExtensionPart::Styles => None,
            };
            if let Some(name) = of_copilot {
                places.extend(folders.iter().map(|folder| place(folder.join(name))));
            }
        }
        places
    }
}

/// The folders of the user's own files, the strongest first: where the environment names them, else beneath home.
pub(crate) fn user_folders(home: Option<&AbsPath>) -> Vec<AbsPath> {
    let environment = |name: &str| std::env::var_os(name);
    FOLDERS.iter().filter_map(|folder| user_folder(folder, home, &environment)).collect()
}

/// One of the user's folders. That of kode-ls itself is `kode-ls` in the XDG folder of settings where that is there, else
/// `.kode-ls` beneath home; a variable that names a place wins. A variable that is no absolute path is ignored.
pub(crate) fn user_folder(
    folder: &str,
    home: Option<&AbsPath>,
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Option<AbsPath> {
    let named = |variable: &str| {
        let value = environment(variable).filter(|value| !value.is_empty())?;
        let place = AbsPath::new(PathBuf::from(value));
        place.inspect_err(|error| tracing::warn!(%error, variable, "a folder of settings is ignored")).ok()
    };
    let beneath = || home.map(|home| home.join(folder));
    match folder {
        OWN => named("KODE_LS_CONFIG_DIR").or_else(|| {
            let base = named("XDG_CONFIG_HOME").or_else(|| home.map(|home| home.join(".config")));
            base.map(|base| base.join(XDG_NAME)).filter(|place| place.as_path().is_dir()).or_else(beneath)
        }),
        ".kode" => named("KODE_CONFIG_DIR").or_else(beneath),
        ".claude" => named("CLAUDE_CONFIG_DIR").or_else(beneath),
        _ => beneath(),
    }
}

/// The folder and those it lies in, up to that of its repository, the nearest first; the folder alone when it is in none.
/// The user's home is no project.
pub(crate) fn project_folders(root: &AbsPath, home: Option<&AbsPath>) -> Vec<AbsPath> {
    let mut folders = vec![root.clone()];
    loop {
        let Some(last) = folders.last() else { return folders };
        if last.join(".git").as_path().exists() {
            return folders;
        }
        match last.parent() {
            Some(parent) if Some(&parent) != home => folders.push(parent),
            Some(_) | None => return vec![root.clone()],
        }
    }
}

/// Whether a file, links followed, lies where its place allows; if not, why.
pub(crate) fn check_within(path: &Path, within: Option<&AbsPath>) -> Result<(), String> {
    let Some(within) = within else { return Ok(()) };
    let real = |path: &Path| real_path(path).map_err(|error| format!("it cannot be read: {error}"));
    let found = real(path)?;
    if found.starts_with(real(within.as_path())?) {
        return Ok(());
    }
    Err(format!("it is a link that leads out of {within}, to {}", found.display()))
}
