//! The plugins and marketplaces that the user has fetched, in the user's folder of plugins.
//!
//! Rule: a fetched plugin is first completed in a folder of its own and then moved in one step, so that a failure
//! leaves the old one. Nothing that was fetched is run. One process at a time changes the records.

pub(super) mod download;
mod git;
pub(super) mod npm;
pub mod unpack;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tempfile::TempDir;

use super::installed::{
    InstallEntry, InstallRecord, InstalledPlugins, MARKETPLACES, MAX_BYTES, MarketplaceEntry,
    MarketplaceRecord, OURS, PluginPaths,
};
use super::marketplace::{self, Marketplace, PluginOffer, PluginSource};
use super::tree::{self, FolderTree};
use super::{FOLDERS, Plugin, PluginId, document, manifest};
use crate::extension::places::check_within;
use crate::settings::{Lock, SettingsError};
use kode_base::paths::AbsPath;
use kode_base::{atomic, blocking, file_moves, regular};
use kode_permission::rules::SettingsProblem;

pub use unpack::unpack;

/// The folders of plugins and of marketplaces, in that of the store.
const PLUGINS_FOLDER: &str = "store";
const MARKETPLACES_FOLDER: &str = "marketplaces";

/// The prefix of unfinished folders.
const UNFINISHED: &str = ".new-";

/// The mode of the records.
const MODE: u32 = 0o600;

/// The most bytes of a list.
const MAX_LIST: usize = document::MAX_BYTES as usize;

/// How long fetching something may take.
const LIMIT: Duration = Duration::from_secs(180);

/// The fetched files, in their unfinished folder.
const FETCHED: &str = "fetched";

/// Number of digits of a digest in the name of a folder.
const DIGITS: usize = 16;

/// Why something of plugins is not done; nothing is changed then.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no folder for plugins.
    #[error("there is no folder for plugins; set HOME or KODE_LS_CONFIG_DIR")]
    NoFolder,
    /// A file or folder cannot be read or written.
    #[error("{file} cannot be read or written: {source}")]
    Io {
        /// The file or folder.
        file: AbsPath,
        /// Why.
        source: io::Error,
    },
    /// A record does not hold what it should, and is left as it is.
    #[error("{file} is left alone because {reason}; repair it or remove it, and try again")]
    Broken {
        /// The record.
        file: AbsPath,
        /// The problem.
        reason: String,
    },
    /// Another process changes it.
    #[error(transparent)]
    Busy(#[from] SettingsError),
    /// The named item is missing.
    #[error("{0}")]
    Missing(String),
    /// It cannot be used.
    #[error("{what} cannot be used: {reason}")]
    Unusable {
        /// The subject.
        what: String,
        /// Why, without a period.
        reason: String,
    },
    /// It could not be fetched.
    #[error("{address} could not be fetched: {reason}")]
    Fetch {
        /// Where from.
        address: String,
        /// Why.
        reason: String,
    },
}

/// The fetched plugins and marketplaces of the user.
#[derive(Clone, Debug)]
pub struct Store {
    places: PluginPaths,
    folder: AbsPath,
    state: AbsPath,
}

/// A marketplace that was added.
#[derive(Clone, Debug, PartialEq)]
pub struct AddedMarketplace {
    /// Its name.
    pub name: String,
    /// Where it is to be had.
    pub source: PluginSource,
    /// Where its list is on this machine.
    place: AbsPath,
    /// Whether it was fetched from elsewhere.
    is_fetched: bool,
}

/// A plugin that was fetched and does not count yet. Dropping it takes it away.
#[derive(Debug)]
pub struct StagedPlugin {
    id: PluginId,
    entry: InstallEntry,
    /// The plugin as it lies there now.
    pub plugin: Arc<Plugin>,
    /// Whether the very same is installed and whole.
    pub is_installed: bool,
    folder: TempDir,
}

impl Store {
    /// The store in the user's folder. Nothing is read or made yet.
    ///
    /// # Errors
    /// [`StoreError::NoFolder`].
    pub fn new(places: PluginPaths) -> Result<Self, StoreError> {
        let (folder, state) = places.ours.clone().zip(places.state.clone()).ok_or(StoreError::NoFolder)?;
        Ok(Self { places, folder, state })
    }

    /// The marketplaces that were added, in the order of their names. Blocks on the disk.
    ///
    /// # Errors
    /// [`StoreError`], when the record cannot be read.
    pub fn marketplaces(&self) -> Result<Vec<AddedMarketplace>, StoreError> {
        let record: MarketplaceRecord = self.read(MARKETPLACES)?;
        record.marketplaces.into_iter().map(|(name, entry)| self.added(name, &entry)).collect()
    }

    /// The list of a marketplace, with its problems. Blocks on the disk.
    ///
    /// # Errors
    /// [`StoreError`], when the name is unknown or its list cannot be used.
    pub fn marketplace(&self, name: &str) -> Result<(Marketplace, Vec<SettingsProblem>), StoreError> {
        let (marketplace, problems, _) = self.list_of(name)?;
        Ok((marketplace, problems))
    }

    /// Adds a marketplace, or fetches one again that was added from the same place.
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn add(&self, source: PluginSource) -> Result<Marketplace, StoreError> {
        let unusable = |reason| StoreError::Unusable { what: source.shown(), reason };
        let source = source.clone().of_marketplace().map_err(unusable)?;
        let fetched = self.fetched(&source).await?;
        let store = self.clone();
        blocking(move || store.take_marketplace(source, fetched, None)).await
    }

    /// Fetches a marketplace again.
    ///
    /// # Errors
    /// [`StoreError`]; it is as it was then.
    pub async fn update_marketplace(&self, name: &str) -> Result<Marketplace, StoreError> {
        let (store, wanted) = (self.clone(), name.to_owned());
        let source = blocking(move || store.find(&wanted).map(|added| added.source)).await?;
        let fetched = self.fetched(&source).await?;
        let (store, name) = (self.clone(), name.to_owned());
        blocking(move || store.take_marketplace(source, fetched, Some(&name))).await
    }

    /// Forgets a marketplace. Plugins installed from it stay. Blocks on the disk.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn remove_marketplace(&self, name: &str) -> Result<(), StoreError> {
        let gone = self.change(MARKETPLACES, |record: &mut MarketplaceRecord| {
            let gone = record.marketplaces.remove(name);
            gone.ok_or_else(|| StoreError::Missing(format!("there is no marketplace `{name}`")))
        })?;
        self.take_away(gone.folder.as_deref().map(Path::new));
        Ok(())
    }

    /// Fetches a plugin of a marketplace, which counts only once it is [installed](Self::install).
    ///
    /// # Errors
    /// [`StoreError`].
    pub async fn stage(&self, id: &PluginId) -> Result<StagedPlugin, StoreError> {
        let (store, wanted) = (self.clone(), id.clone());
        let (mut offer, root, is_fetched) = blocking(move || store.offer(&wanted)).await?;
        let unusable = |reason: String| StoreError::Unusable { what: format!("the plugin `{id}`"), reason };
        let source = offer.source.clone().map_err(unusable)?;
        let folder = self.unfinished()?;
        let place = folder_of(&folder)?;
        let from = match &source {
            PluginSource::Inside(path) => inside(&root, path).map_err(unusable)?,
            // A list from elsewhere has no say about folders of this machine.
            PluginSource::Directory(path) if !is_fetched => path.clone(),
            PluginSource::Directory(_) | PluginSource::File(_) | PluginSource::Web(_) => {
                return Err(unusable(format!(
                    "its source {} is not one a marketplace may name",
                    source.shown()
                )));
            }
            PluginSource::Git { address, reference, folder } => {
                let into = place.join(FETCHED);
                git::fetch(address, reference.as_deref(), &into).await?;
                inside(&into, folder.as_deref().unwrap_or(".")).map_err(unusable)?
            }
            PluginSource::Npm { package, version, registry } => {
                let into = place.join(FETCHED);
                let fetched = npm::fetch(package, version.as_deref(), registry.as_deref(), &into).await?;
                offer.version = Some(fetched);
                into
            }
        };
        let (store, id) = (self.clone(), id.clone());
        blocking(move || store.make_whole(id, &offer, &source, &from, folder)).await
    }

    /// Lets a plugin that was fetched replace the installed one of its name. Blocks on the disk.
    ///
    /// # Errors
    /// [`StoreError`]; the installed one stays then.
    pub fn install(&self, staged: StagedPlugin) -> Result<(), StoreError> {
        let StagedPlugin { id, entry, folder, .. } = staged;
        let made = folder_of(&folder)?.join(&id.name);
        let target = self.folder.join(&entry.folder);
        let before = self.change(OURS, |record: &mut InstallRecord| {
            let is_whole = FolderTree::of(&target).is_ok_and(|tree| tree.digest == entry.digest);
            if !is_whole {
                let parent = target.parent().unwrap_or_else(|| target.clone());
                let failed = |source| StoreError::Io { file: target.clone(), source };
                remove(target.as_path()).map_err(failed)?;
                fs::create_dir_all(&parent).map_err(failed)?;
                file_moves::rename(made.as_path(), target.as_path()).map_err(failed)?;
            }
            Ok(record.plugins.insert(id.to_string(), entry.clone()))
        })?;
        let is_left = |before: &InstallEntry| before.folder != entry.folder;
        if let Some(before) = before.filter(is_left) {
            self.take_away(Path::new(&before.folder).parent());
        }
        Ok(())
    }

    /// Takes away a plugin that was installed here; what it kept for itself stays, in the folder that is given back. Blocks on
    /// the disk.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn uninstall(&self, id: &PluginId) -> Result<AbsPath, StoreError> {
        let installed = InstalledPlugins::load(&self.places, &[]);
        let found = installed.find(id);
        if let Some(theirs) = found.filter(|found| found.digest.is_none()) {
            let reason = format!(
                "another agent has installed it, in {}; uninstall it there, or switch it off with `kode-ls plugin disable {id}`",
                theirs.root
            );
            return Err(StoreError::Unusable { what: format!("the plugin `{id}`"), reason });
        }
        let data = found.map(|found| installed.data_of(id, found));
        let gone = self.change(OURS, |record: &mut InstallRecord| {
            let gone = record.plugins.remove(&id.to_string());
            gone.ok_or_else(|| StoreError::Missing(format!("the plugin `{id}` is not installed")))
        })?;
        self.take_away(Path::new(&gone.folder).parent());
        Ok(data.unwrap_or_else(|| self.state.clone()))
    }

    /// The plugins that are installed, those of the other agent too. Blocks on the disk.
    #[must_use]
    pub fn installed(&self) -> InstalledPlugins {
        InstalledPlugins::load(&self.places, &[])
    }

    /// The plugin of a name: with its marketplace behind `@`, or alone where only one marketplace that was added has
    /// it. Blocks on the disk.
    ///
    /// # Errors
    /// [`StoreError`], naming what may be meant.
    pub fn meant(&self, name: &str) -> Result<PluginId, StoreError> {
        if name.contains('@') {
            let unusable = |reason| StoreError::Unusable { what: "this name".to_owned(), reason };
            return PluginId::parse(name).map_err(unusable);
        }
        let installed = self.installed();
        let mut ids: Vec<PluginId> = installed.iter().map(|(id, _)| id.clone()).collect();
        for added in self.marketplaces()? {
            let offers = self.list_of(&added.name).map(|(list, ..)| list.plugins).unwrap_or_default();
            let id = |offer: PluginOffer| PluginId { name: offer.name, marketplace: added.name.clone() };
            ids.extend(offers.into_iter().map(id));
        }
        ids.retain(|id| id.name == name);
        ids.sort();
        ids.dedup();
        match ids.as_slice() {
            [one] => Ok(one.clone()),
            [] => Err(StoreError::Missing(format!(
                "no marketplace that was added has a plugin `{name}`; `kode-ls plugin marketplace add SOURCE` adds one"
            ))),
            several => {
                let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                Err(StoreError::Missing(format!("`{name}` may be any of {}; name one", names.join(", "))))
            }
        }
    }

    fn added(&self, name: String, entry: &MarketplaceEntry) -> Result<AddedMarketplace, StoreError> {
        let broken = |reason: String| StoreError::Broken { file: self.folder.join(MARKETPLACES), reason };
        let source =
            PluginSource::read(&entry.source).and_then(PluginSource::of_marketplace).map_err(broken)?;
        let kept = entry.folder.as_ref().map(|folder| self.kept(folder)).transpose()?;
        let is_fetched = kept.is_some();
        let place = match (&source, kept) {
            (PluginSource::Git { folder, .. }, Some(kept)) => kept.join(folder.as_deref().unwrap_or(".")),
            (_, Some(kept)) => kept,
            (PluginSource::Directory(path) | PluginSource::File(path), None) => path.clone(),
            (
                PluginSource::Git { .. }
                | PluginSource::Inside(_)
                | PluginSource::Web(_)
                | PluginSource::Npm { .. },
                None,
            ) => {
                return Err(broken(format!("the marketplace `{name}` has no folder")));
            }
        };
        Ok(AddedMarketplace { name, source, place, is_fetched })
    }

    /// A folder of a record, which must be one of the store.
    fn kept(&self, folder: &str) -> Result<AbsPath, StoreError> {
        let found = self.folder.join(folder);
        if found.is_within(&self.folder) && found != self.folder {
            return Ok(found);
        }
        let reason = format!("it names the folder `{folder}`, which is not a plugin folder");
        Err(StoreError::Broken { file: self.folder.join(MARKETPLACES), reason })
    }

    fn find(&self, name: &str) -> Result<AddedMarketplace, StoreError> {
        let found = self.marketplaces()?.into_iter().find(|added| added.name == name);
        found.ok_or_else(|| {
            StoreError::Missing(format!(
                "there is no marketplace `{name}`; `kode-ls plugin marketplace list` lists those that were added"
            ))
        })
    }

    fn list_of(&self, name: &str) -> Result<(Marketplace, Vec<SettingsProblem>, bool), StoreError> {
        let added = self.find(name)?;
        let mut problems = Vec::new();
        let list = read_list(&added.source, &added.place, &mut problems)?;
        Ok((list, problems, added.is_fetched))
    }

    fn offer(&self, id: &PluginId) -> Result<(PluginOffer, AbsPath, bool), StoreError> {
        let (list, _, is_fetched) = self.list_of(&id.marketplace)?;
        let offer = list.find(&id.name).cloned().ok_or_else(|| {
            StoreError::Missing(format!("the marketplace `{}` has no plugin `{}`", id.marketplace, id.name))
        })?;
        Ok((offer, list.root, is_fetched))
    }

    /// The parts of a marketplace to fetch.
    async fn fetched(&self, source: &PluginSource) -> Result<Option<TempDir>, StoreError> {
        match source {
            PluginSource::Inside(_)
            | PluginSource::Directory(_)
            | PluginSource::File(_)
            | PluginSource::Npm { .. } => Ok(None),
            PluginSource::Git { address, reference, .. } => {
                let folder = self.unfinished()?;
                git::fetch(address, reference.as_deref(), &folder_of(&folder)?.join(FETCHED)).await?;
                Ok(Some(folder))
            }
            PluginSource::Web(address) => {
                let bytes = download::fetch(address, "application/json", MAX_LIST).await?;
                let folder = self.unfinished()?;
                let file = folder_of(&folder)?.join(FETCHED).join(FOLDERS[0]).join(marketplace::FILE);
                blocking(move || {
                    let failed = |source| StoreError::Io { file: file.clone(), source };
                    fs::create_dir_all(file.as_path().parent().unwrap_or(file.as_path())).map_err(failed)?;
                    tree::write(file.as_path(), &bytes, false).map_err(failed)
                })
                .await?;
                Ok(Some(folder))
            }
        }
    }

    fn take_marketplace(
        &self,
        source: PluginSource,
        fetched: Option<TempDir>,
        expected: Option<&str>,
    ) -> Result<Marketplace, StoreError> {
        let made = match &fetched {
            Some(folder) => {
                let (from, to) = (folder_of(folder)?.join(FETCHED), folder_of(folder)?.join("whole"));
                let unusable = |reason| StoreError::Unusable { what: source.shown(), reason };
                tree::copy(from.as_path(), to.as_path()).map_err(unusable)?;
                Some(to)
            }
            None => None,
        };
        let place = match (&source, &made) {
            (PluginSource::Git { folder, .. }, Some(made)) => {
                let unusable = |reason| StoreError::Unusable { what: source.shown(), reason };
                inside(made, folder.as_deref().unwrap_or(".")).map_err(unusable)?
            }
            (PluginSource::Web(_), Some(made)) => made.clone(),
            (PluginSource::Directory(path) | PluginSource::File(path), _) => path.clone(),
            (
                PluginSource::Git { .. }
                | PluginSource::Inside(_)
                | PluginSource::Web(_)
                | PluginSource::Npm { .. },
                _,
            ) => {
                return Err(no_list(&self.folder, &[]));
            }
        };
        let list = read_list(&source, &place, &mut Vec::new())?;
        if let Some(expected) = expected.filter(|expected| *expected != list.name) {
            let reason = format!("its name is now `{}`; remove it and add it again", list.name);
            return Err(StoreError::Unusable { what: format!("the marketplace `{expected}`"), reason });
        }
        let number = uuid::Uuid::now_v7().simple().to_string();
        let folder = made.as_ref().map(|_| format!("{MARKETPLACES_FOLDER}/{}-{number}", list.name));
        let before = self.change(MARKETPLACES, |record: &mut MarketplaceRecord| {
            let said = source.to_value();
            if let Some(known) = record.marketplaces.get(&list.name).filter(|known| known.source != said) {
                let known = PluginSource::read(&known.source)
                    .map_or_else(|_| "elsewhere".to_owned(), |known| known.shown());
                let reason = format!("it is there already, from {known}; remove that one first");
                return Err(StoreError::Unusable {
                    what: format!("the marketplace `{}`", list.name),
                    reason,
                });
            }
            if let Some((made, folder)) = made.as_ref().zip(folder.as_ref()) {
                let target = self.folder.join(folder);
                let failed = |source| StoreError::Io { file: target.clone(), source };
                fs::create_dir_all(self.folder.join(MARKETPLACES_FOLDER)).map_err(failed)?;
                file_moves::rename(made.as_path(), target.as_path()).map_err(failed)?;
            }
            let entry = MarketplaceEntry { source: said, folder: folder.clone() };
            Ok(record.marketplaces.insert(list.name.clone(), entry))
        })?;
        self.take_away(before.and_then(|before| before.folder).as_deref().map(Path::new));
        Ok(list)
    }

    /// Makes a plugin whole in an unfinished folder.
    fn make_whole(
        &self,
        id: PluginId,
        offer: &PluginOffer,
        source: &PluginSource,
        from: &AbsPath,
        folder: TempDir,
    ) -> Result<StagedPlugin, StoreError> {
        let root = folder_of(&folder)?.join(&id.name);
        let unusable = |reason: String| StoreError::Unusable { what: format!("the plugin `{id}`"), reason };
        tree::copy(from.as_path(), root.as_path()).map_err(unusable)?;
        if manifest::file_in(&root).is_none() {
            let file = root.join(FOLDERS[0]).join(manifest::FILE);
            let failed = |source| StoreError::Io { file: file.clone(), source };
            fs::create_dir_all(root.join(FOLDERS[0])).map_err(failed)?;
            let said = format!("{:#}\n", manifest::from_marketplace(&offer.said));
            tree::write(file.as_path(), said.as_bytes(), false).map_err(failed)?;
        }
        let digest = FolderTree::of(&root).map_err(unusable)?.digest;
        let installed = self.installed();
        let before = installed.find(&id).filter(|before| before.digest.as_ref() == Some(&digest));
        let is_installed =
            before.is_some_and(|before| FolderTree::of(&before.root).is_ok_and(|tree| tree.digest == digest));
        let plugin = Plugin::open(&root, &self.state, Some(&id.name));
        if let Some(fault) = plugin.fault() {
            return Err(unusable(fault.trim_end_matches('.').to_owned()));
        }
        let entry = InstallEntry {
            version: plugin.version.clone().or_else(|| offer.version.clone()),
            source: source.to_value(),
            folder: format!("{PLUGINS_FOLDER}/{}/{}/{}", id.marketplace, &digest[..DIGITS], id.name),
            digest,
        };
        Ok(StagedPlugin { id, entry, plugin: Arc::new(plugin), is_installed, folder })
    }

    /// A folder for unfinished files.
    fn unfinished(&self) -> Result<TempDir, StoreError> {
        let failed = |source| StoreError::Io { file: self.folder.clone(), source };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        tempfile::Builder::new().prefix(UNFINISHED).tempdir_in(&self.folder).map_err(failed)
    }

    fn read<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, StoreError> {
        let file = self.folder.join(name);
        match regular::read_text(file.as_path(), MAX_BYTES) {
            Ok(text) => serde_json::from_str(&text)
                .map_err(|error| StoreError::Broken { file, reason: error.to_string() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
            Err(source) => Err(StoreError::Io { file, source }),
        }
    }

    /// Changes a record, one process at a time. What fails leaves it as it is.
    fn change<T: DeserializeOwned + Serialize + Default, R>(
        &self,
        name: &str,
        change: impl FnOnce(&mut T) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let file = self.folder.join(name);
        let failed = |source| StoreError::Io { file: file.clone(), source };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let _lock = Lock::take(&self.state, &file)?;
        let mut record: T = self.read(name)?;
        let done = change(&mut record)?;
        let bytes = serde_json::to_vec_pretty(&record).map_err(|error| failed(error.into()))?;
        match file.as_path().symlink_metadata() {
            Ok(metadata) => {
                atomic::replace_as(file.as_path(), &bytes, &metadata, MODE, || true)
                    .map(|_| ())
                    .map_err(failed)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                atomic::create_as(file.as_path(), &bytes, MODE).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        Ok(done)
    }

    /// Removes a folder that no record names any more. What stays because of an error is reported to the log.
    fn take_away(&self, folder: Option<&Path>) {
        let Some(folder) = folder.map(|folder| self.folder.join(folder)) else { return };
        if !folder.is_within(&self.folder) || folder == self.folder {
            return;
        }
        if let Err(error) = remove(folder.as_path()) {
            tracing::warn!(%error, %folder, "a folder that is no longer used is left");
        }
    }
}

/// The list in a place, which was fetched from a source.
fn read_list(
    source: &PluginSource,
    place: &AbsPath,
    problems: &mut Vec<SettingsProblem>,
) -> Result<Marketplace, StoreError> {
    let mut list = Marketplace::read(place, problems).ok_or_else(|| no_list(place, problems))?;
    if matches!(source, PluginSource::Web(_)) {
        for offer in &mut list.plugins {
            if let Ok(PluginSource::Inside(path)) = &offer.source {
                offer.source = Err(format!(
                    "a list at a web address has no folder `{path}`; add its repository instead"
                ));
            }
        }
    }
    Ok(list)
}

/// The list that a place does not have.
fn no_list(place: &AbsPath, problems: &[SettingsProblem]) -> StoreError {
    let reason = match problems.first() {
        Some(problem) => problem.message.trim_end_matches('.').to_owned(),
        None => "there is no `.claude-plugin/marketplace.json` in it".to_owned(),
    };
    StoreError::Unusable { what: place.to_string(), reason }
}

/// A folder in another, which must not lead out of it.
fn inside(root: &AbsPath, path: &str) -> Result<AbsPath, String> {
    let found = root.join(path);
    if Path::new(path).is_absolute() || !found.is_within(root) {
        return Err(format!("`{path}` leads out of {root}"));
    }
    check_within(found.as_path(), Some(root))?;
    if found.as_path().is_dir() { Ok(found) } else { Err(format!("`{path}` is not a folder in {root}")) }
}

fn folder_of(folder: &TempDir) -> Result<AbsPath, StoreError> {
    AbsPath::new(folder.path()).map_err(|error| StoreError::Missing(error.to_string()))
}

fn remove(folder: &Path) -> io::Result<()> {
    match file_moves::remove_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
