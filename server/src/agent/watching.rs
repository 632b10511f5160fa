//! The watch over the settings files of all workspaces that are worked in.
//!
//! Rule: each workspace is watched once however many sessions it has, and what is watched in the end are the folders that were
//! named last, whoever is first to know their files.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kode_engine::base::paths::AbsPath;
use kode_engine::config::settings::SettingsPolicies;
use kode_engine::config::settings::watch::FileWatch;

/// The folders of workspaces, those of each together.
type Workspaces = BTreeSet<Vec<AbsPath>>;

/// A watch over settings files. Dropping it ends it.
pub(crate) struct SettingsWatch {
    files: FileWatch,
    /// The workspaces that were named last.
    workspaces: Mutex<Workspaces>,
    /// Held while the files of those are found out.
    arming: Mutex<()>,
}

impl SettingsWatch {
    /// A watch over no workspace yet. `changed` is called on its thread when files have come, gone or changed.
    pub(crate) fn start(changed: impl Fn() + Send + 'static) -> Arc<Self> {
        let files = FileWatch::start(move |_| changed());
        Arc::new(Self { files, workspaces: Mutex::default(), arming: Mutex::default() })
    }

    /// Whether these workspaces are those that were named last.
    pub(crate) fn is_of(&self, workspaces: &Workspaces) -> bool {
        *lock(&self.workspaces) == *workspaces
    }

    /// Watches the files that the settings of these workspaces depend on by now, and no others. Nothing waits for it.
    pub(crate) fn watch(self: &Arc<Self>, workspaces: Workspaces, policies: &Arc<SettingsPolicies>) {
        *lock(&self.workspaces) = workspaces;
        let (watch, policies) = (Arc::clone(self), Arc::clone(policies));
        tokio::task::spawn_blocking(move || {
            let _one_after_the_other = lock(&watch.arming);
            let workspaces = lock(&watch.workspaces).clone();
            let files: BTreeSet<_> = workspaces.iter().flat_map(|roots| policies.watched(roots)).collect();
            watch.files.watch(files);
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
