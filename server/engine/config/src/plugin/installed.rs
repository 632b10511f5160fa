//! The plugins that the user has installed: ours, and those of another agent, which are only read.
//!
//! Rule: of two with one name ours counts. A record that cannot be read disables the plugins in it and is reported; a
//! folder in it is believed only where such plugins lie.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::PluginId;
use kode_base::paths::AbsPath;
use kode_base::regular;
use kode_permission::rules::{ProblemSeverity, SettingsProblem};

/// Our record, in that folder.
pub(super) const OURS: &str = "installed.json";

/// Our record of marketplaces, beside it.
pub(super) const MARKETPLACES: &str = "marketplaces.json";

/// The record of the other agent, in its folder of that name.
const THEIRS: &str = "installed_plugins.json";

/// The folder of what plugins keep, in the state folder.
const DATA: &str = "plugins";

/// The most bytes of a record.
pub(super) const MAX_BYTES: u64 = 4 << 20;

/// The most plugins that are checked.
const MAX_PLUGINS: usize = 500;

/// The known plugins on this machine.
#[derive(Clone, Debug, Default)]
pub struct InstalledPlugins {
    plugins: BTreeMap<PluginId, InstalledPlugin>,
    /// The names of the marketplaces that were added.
    marketplaces: BTreeSet<String>,
    /// The folder of the state in which plugins have folders of their own.
    data: Option<AbsPath>,
    /// The problems of the records.
    pub problems: Vec<SettingsProblem>,
}

/// A plugin that is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstalledPlugin {
    /// Its folder.
    pub root: AbsPath,
    /// Its version, where it is known.
    pub version: Option<String>,
    /// The digest of its files when it was installed; `None` where another agent has installed it.
    pub digest: Option<String>,
}

/// Where installed plugins are found.
#[derive(Clone, Debug, Default)]
pub struct PluginPaths {
    /// Our folder of plugins.
    pub ours: Option<AbsPath>,
    /// That of the other agent.
    pub theirs: Option<AbsPath>,
    /// The folder for the product's state.
    pub state: Option<AbsPath>,
}

/// Our record.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct InstallRecord {
    /// By `name@marketplace`.
    pub(super) plugins: BTreeMap<String, InstallEntry>,
}

/// A plugin in our record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct InstallEntry {
    /// Its version, if it says one.
    pub(super) version: Option<String>,
    /// Where it came from, as its marketplace says.
    pub(super) source: Value,
    /// Represents all its files.
    pub(super) digest: String,
    /// Its folder in that of plugins.
    pub(super) folder: String,
}

/// Our record of marketplaces.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MarketplaceRecord {
    /// By name.
    pub(super) marketplaces: BTreeMap<String, MarketplaceEntry>,
}

/// A marketplace in our record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MarketplaceEntry {
    /// Where it is to be had.
    pub(super) source: Value,
    /// The folder in that of plugins where it is kept; `None` where it is read in its own place.
    pub(super) folder: Option<String>,
}

/// A plugin in the record of the other agent.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ForeignPlugin {
    install_path: String,
    version: Option<String>,
    /// The project that it is installed for; for all if absent.
    project_path: Option<String>,
}

/// One, or one for each place that it is installed for.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ForeignEntry {
    Many(Vec<ForeignPlugin>),
    One(ForeignPlugin),
}

#[derive(Debug, Deserialize)]
struct ForeignRecord {
    plugins: BTreeMap<String, ForeignEntry>,
}

impl PluginPaths {
    /// The records, there or not.
    pub fn files(&self) -> impl Iterator<Item = AbsPath> {
        let of = |folder: &Option<AbsPath>, name: &str| folder.as_ref().map(|folder| folder.join(name));
        [of(&self.ours, OURS), of(&self.ours, MARKETPLACES), of(&self.theirs, THEIRS)].into_iter().flatten()
    }
}

impl InstalledPlugins {
    /// Reads the records, for work in these folders. Blocks on the disk.
    #[must_use]
    pub fn load(places: &PluginPaths, roots: &[AbsPath]) -> Self {
        let data = places.state.as_ref().map(|state| state.join(DATA));
        let mut installed = Self { data, ..Self::default() };
        if let Some(folder) = &places.ours {
            installed.take_ours(folder);
        }
        if let Some(folder) = &places.theirs {
            installed.take_theirs(folder, roots);
        }
        installed
    }

    /// The plugin of that name.
    #[must_use]
    pub fn find(&self, id: &PluginId) -> Option<&InstalledPlugin> {
        self.plugins.get(id)
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&PluginId, &InstalledPlugin)> {
        self.plugins.iter()
    }

    /// Whether a marketplace of that name was added.
    #[must_use]
    pub fn has_marketplace(&self, name: &str) -> bool {
        self.marketplaces.contains(name)
    }

    /// The folder for what a plugin keeps.
    #[must_use]
    pub fn data_of(&self, id: &PluginId, plugin: &InstalledPlugin) -> AbsPath {
        let folder = self.data.clone().unwrap_or_else(|| plugin.root.clone());
        folder.join(id.to_string())
    }

    fn take_ours(&mut self, folder: &AbsPath) {
        let added = self.read::<MarketplaceRecord>(&folder.join(MARKETPLACES)).unwrap_or_default();
        self.marketplaces = added.marketplaces.into_keys().collect();
        let Some(record) = self.read::<InstallRecord>(&folder.join(OURS)) else { return };
        for (id, entry) in record.plugins {
            let root = folder.join(&entry.folder);
            let is_inside = root.is_within(folder) && root != *folder;
            match PluginId::parse(&id) {
                Ok(id) if is_inside => {
                    let (version, digest) = (entry.version, Some(entry.digest));
                    self.add(id, InstalledPlugin { root, version, digest });
                }
                Ok(_) => {
                    self.report(&folder.join(OURS), format!("the folder of `{id}` is not a plugin folder"))
                }
                Err(reason) => self.report(&folder.join(OURS), reason),
            }
        }
    }

    fn take_theirs(&mut self, folder: &AbsPath, roots: &[AbsPath]) {
        let file = folder.join(THEIRS);
        let Some(record) = self.read::<ForeignRecord>(&file) else { return };
        for (id, entry) in record.plugins {
            let Ok(id) = PluginId::parse(&id) else { continue };
            let mut all = match entry {
                ForeignEntry::Many(all) => all,
                ForeignEntry::One(one) => vec![one],
            };
            let is_here =
                |path: &String| roots.iter().any(|root| root.as_path() == std::path::Path::new(path));
            all.retain(|one| one.project_path.as_ref().is_none_or(is_here));
            // Plugins that are installed for this project come before those for all.
            all.sort_by_key(|one| one.project_path.is_none());
            let Some(one) = all.into_iter().next() else { continue };
            let root = match AbsPath::new(&one.install_path) {
                Ok(root) => root,
                Err(_) => folder.join(&one.install_path),
            };
            self.add(id, InstalledPlugin { root, version: one.version, digest: None });
        }
    }

    fn add(&mut self, id: PluginId, plugin: InstalledPlugin) {
        if self.plugins.len() < MAX_PLUGINS {
            self.plugins.entry(id).or_insert(plugin);
        }
    }

    /// A record; `None` if absent, or it cannot be read, which is reported.
    fn read<T: serde::de::DeserializeOwned>(&mut self, file: &AbsPath) -> Option<T> {
        file.as_path().symlink_metadata().ok()?;
        let read = regular::read_text(file.as_path(), MAX_BYTES).map_err(|error| error.to_string());
        let read = read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
        read.map_err(|reason| self.report(file, reason)).ok()
    }

    fn report(&mut self, file: &AbsPath, reason: String) {
        self.problems.push(SettingsProblem {
            file: Some(file.clone()),
            place: None,
            severity: ProblemSeverity::Warning,
            message: format!("Plugins of this record are not used: {reason}."),
        });
    }
}
