//! The users' files for the agent in one workspace, kept ready and renewed when a file changes.
//!
//! Rule: files are read in the background and only when one of them has come, gone or changed; readers get the
//! last result. A turn checks the stamps first, so that no change is missed where nothing can be watched.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use tokio::sync::{Mutex, Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::agents::AgentTypes;
use crate::extension::find::beside;
use crate::extension::places::{ExtensionFolders, ExtensionPart};
use crate::extension::problem::FileFault;
use crate::extension::survey::StampSurvey;
use crate::extension::watch::{ExtensionWatch, settled};
use crate::extension::{Catalog, ExtensionKind};
use crate::hooks::declared::FileHooks;
use crate::plugin::Plugin;
use crate::settings::{TrustRequest, files_named_by};
use crate::style::Styles;
use kode_base::blocking;
use kode_base::paths::{AbsPath, real_path};
use kode_base::task;
use kode_permission::rules::SettingsProblem;

/// Says whether a name means a model.
pub type HasModel = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The plugins that are on, as settings are now. Blocks on the disk.
pub type PluginsInUse = Arc<dyn Fn() -> Vec<Arc<Plugin>> + Send + Sync>;

/// The users' files of one workspace. Clones are the same one; the last one dropped ends the watching.
#[derive(Clone)]
pub struct Extensions {
    shared: Arc<SharedExtensions>,
    stop: Arc<DropGuard>,
}

/// The same as a weak reference.
#[derive(Debug)]
pub struct WeakExtensions(Weak<SharedExtensions>, Weak<DropGuard>);

/// How many there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtensionCounts {
    /// Types of sub-agents.
    pub agents: usize,
    /// Skills.
    pub skills: usize,
    /// Commands of files.
    pub commands: usize,
    /// Output styles.
    pub styles: usize,
}

/// The read files.
#[derive(Clone, Debug, Default)]
pub struct LoadedExtensions {
    /// The types of sub-agents.
    pub agents: Arc<AgentTypes>,
    /// The skills and commands.
    pub catalog: Arc<Catalog>,
    /// The output styles.
    pub styles: Arc<Styles>,
    /// How often files were read before, for this workspace.
    pub generation: u64,
    /// The plugins that were on.
    plugins: Vec<Arc<Plugin>>,
    survey: StampSurvey,
}

struct SharedExtensions {
    places: ExtensionFolders,
    plugins: PluginsInUse,
    has_model: HasModel,
    loaded: watch::Sender<Option<Arc<LoadedExtensions>>>,
    /// Held while files are read, so that they are read once.
    reading: Mutex<()>,
    changed: Arc<Notify>,
}

impl Extensions {
    /// Begins to read and to watch; nothing waits for it. Must be called in a runtime.
    #[must_use]
    pub fn begin(places: ExtensionFolders, plugins: PluginsInUse, has_model: HasModel) -> Self {
        let (loaded, reading) = (watch::Sender::new(None), Mutex::default());
        let changed = Arc::default();
        let shared = Arc::new(SharedExtensions { places, plugins, has_model, loaded, reading, changed });
        let stop = CancellationToken::new();
        let (follower, stopped) = (Arc::clone(&shared), stop.clone());
        task::spawn(async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = follower.follow() => {}
            }
        });
        Self { shared, stop: Arc::new(stop.drop_guard()) }
    }

    /// The same as a weak reference.
    pub fn downgrade(&self) -> WeakExtensions {
        WeakExtensions(Arc::downgrade(&self.shared), Arc::downgrade(&self.stop))
    }

    /// The current state: checks whether a file has changed, and reads only then.
    pub async fn now(&self) -> Arc<LoadedExtensions> {
        self.shared.renew().await
    }

    /// The last result; `None` before the first one. Reads no file.
    #[must_use]
    pub fn known(&self) -> Option<Arc<LoadedExtensions>> {
        self.shared.loaded.borrow().clone()
    }

    /// The problems of files, as they were read last. Checks no file.
    #[must_use]
    pub fn problems(&self) -> Vec<SettingsProblem> {
        self.known().map(|loaded| loaded.problems()).unwrap_or_default()
    }

    /// Looks again soon: settings may say something else of plugins.
    pub fn look_again(&self) {
        self.shared.changed.notify_one();
    }

    /// Notified after each read.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Arc<LoadedExtensions>>> {
        self.shared.loaded.subscribe()
    }
}

impl WeakExtensions {
    /// The same again, while anybody has it.
    pub fn upgrade(&self) -> Option<Extensions> {
        let stop = self.1.upgrade()?;
        Some(Extensions { shared: self.0.upgrade()?, stop })
    }
}

impl LoadedExtensions {
    /// Reads everything. Blocks on the disk.
    #[must_use]
    pub fn read(places: &ExtensionFolders, has_model: &dyn Fn(&str) -> bool) -> Self {
        // The survey comes first: what changes while files are read makes it stale.
        let mut survey = StampSurvey::of(places);
        let mut catalog = Catalog::default();
        let others = || (AgentTypes::load(places), Styles::load(places));
        let (mut agents, styles) = beside(others, || catalog = Catalog::found_in(places));
        agents.check(&|skill| is_skill(&catalog, skill), has_model);
        // A script that is swapped asks again, as a file does.
        for file in catalog.trust_requests().chain(agents.trust_requests()).flat_map(files_named_by) {
            survey.inspect(&file);
        }
        let (agents, catalog, styles) = (Arc::new(agents), Arc::new(catalog), Arc::new(styles));
        let plugins = places.plugins.clone();
        let loaded = Self { agents, catalog, styles, generation: 0, plugins, survey };
        for problem in loaded.problems() {
            let file = problem.file.map(|file| file.to_string()).unwrap_or_default();
            tracing::warn!(file, "{}", problem.message);
        }
        loaded
    }

    /// The trust requests of workspace files that needs the user's approval.
    pub fn trust_requests(&self) -> impl Iterator<Item = &TrustRequest> {
        self.catalog.trust_requests().chain(self.agents.trust_requests())
    }

    /// How many there are of each kind.
    #[must_use]
    pub fn counts(&self) -> ExtensionCounts {
        let of_kind = |kind| self.catalog.all().filter(|extension| extension.kind == kind).count();
        ExtensionCounts {
            agents: self.agents.iter().count(),
            skills: of_kind(ExtensionKind::Skill),
            commands: of_kind(ExtensionKind::Command),
            styles: self.styles.iter().count(),
        }
    }

    /// The problems of files.
    #[must_use]
    pub fn problems(&self) -> Vec<SettingsProblem> {
        let of_catalog = self.catalog.problems.iter().filter_map(|(path, reason)| {
            let file = AbsPath::new(path).ok()?;
            let what = if path.ends_with("SKILL.md") { "skill" } else { "command" };
            Some(FileFault::error(format!("This {what} is left out: {reason}.")).of(&file, ""))
        });
        let of_hooks = self.catalog.all().filter_map(|extension| extension.hooks.as_ref());
        let of_hooks = of_hooks.flat_map(FileHooks::problems);
        let others = self.agents.problems.iter().chain(&self.styles.problems).cloned();
        others.chain(of_catalog).chain(of_hooks).collect()
    }
}

impl SharedExtensions {
    async fn follow(self: Arc<Self>) {
        let mut read = self.renew().await;
        let concerned = self.concerned();
        let concerns = move |path: &std::path::Path| {
            concerned.iter().any(|folder| path.starts_with(folder) || folder.starts_with(path))
        };
        let mut watch = ExtensionWatch::new(Arc::clone(&self.changed), concerns);
        loop {
            let shared = Arc::clone(&self);
            let arranged = blocking(move || {
                let wanted = shared.watched();
                watch.arrange(wanted);
                watch
            });
            watch = arranged.await;
            // Events before the folders were watched; there may be other folders by then.
            let now = self.renew().await;
            if now.generation == read.generation {
                settled(&self.changed).await;
                read = self.renew().await;
            } else {
                read = now;
            }
        }
    }

    async fn renew(self: &Arc<Self>) -> Arc<LoadedExtensions> {
        let _one_at_a_time = self.reading.lock().await;
        let known = self.loaded.borrow().clone();
        let shared = Arc::clone(self);
        let (loaded, is_new) = blocking(move || match known {
            Some(known) if !known.survey.is_stale() && known.plugins == (shared.plugins)() => (known, false),
            known => {
                let generation = known.map_or(0, |known| known.generation + 1);
                let places = shared.places.with_plugins((shared.plugins)());
                let loaded = LoadedExtensions::read(&places, &*shared.has_model);
                (Arc::new(LoadedExtensions { generation, ..loaded }), true)
            }
        })
        .await;
        if is_new {
            self.loaded.send_replace(Some(Arc::clone(&loaded)));
        }
        loaded
    }

    /// The folders that there may be something in, as the system may call them.
    fn concerned(&self) -> Vec<PathBuf> {
        let places = self.places_now();
        let folders =
            ExtensionPart::ALL.into_iter().flat_map(|part| places.of(part)).map(|place| place.folder);
        let folders: BTreeSet<PathBuf> = folders.map(PathBuf::from).collect();
        let real = places.bases().into_iter().filter_map(|base| {
            let real = real_path(base.as_path()).ok().filter(|real| real != base.as_path())?;
            Some((base, real))
        });
        let real: Vec<_> = real.collect();
        let renamed = folders.iter().flat_map(|folder| {
            real.iter().filter_map(|(base, real)| Some(real.join(folder.strip_prefix(base).ok()?)))
        });
        renamed.chain(folders.iter().cloned()).collect()
    }

    /// The folders to watch: those with files, those that they lie in, and those that they would lie in.
    fn watched(&self) -> Vec<AbsPath> {
        let places = self.places_now();
        let survey = self.loaded.borrow().as_ref().map(|loaded| loaded.survey.folders().to_vec());
        let beside = ExtensionPart::ALL.into_iter().flat_map(|part| places.of(part));
        let beside = beside.filter_map(|place| place.folder.parent());
        survey.unwrap_or_default().into_iter().chain(beside).chain(places.bases()).collect()
    }

    /// The places, with the plugins that were on when files were read last.
    fn places_now(&self) -> ExtensionFolders {
        let loaded = self.loaded.borrow();
        self.places.with_plugins(loaded.as_ref().map(|loaded| loaded.plugins.clone()).unwrap_or_default())
    }
}

fn is_skill(catalog: &Catalog, name: &str) -> bool {
    catalog.find(ExtensionKind::Skill, name).is_some()
}

#[cfg(test)]
mod tests;
