//! The watch over the settings files of all workspaces that have sessions.
//!
//! Rule: each workspace is watched once for any number of sessions. The folders of the newest call are watched in the end,
//! whichever call finds its files first.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kode_engine::base::paths::AbsPath;
use kode_engine::base::task;
use kode_engine::config::settings::SettingsPolicies;
use kode_engine::config::settings::watch::FileWatch;

/// The folders of each workspace.
type WorkspaceFolders = BTreeSet<Vec<AbsPath>>;

/// A watch over settings files, until it is dropped.
pub(crate) struct SettingsWatch {
    files: FileWatch,
    /// The workspaces of the newest call.
    workspaces: Mutex<WorkspaceFolders>,
    /// Held while their files are determined.
    arming: Mutex<()>,
}

impl SettingsWatch {
    /// A watch over no workspace. It calls `changed` on its own thread when files are created, removed or modified.
    pub(crate) fn start(changed: impl Fn() + Send + 'static) -> Arc<Self> {
        let files = FileWatch::start(move |_| changed());
        Arc::new(Self { files, workspaces: Mutex::default(), arming: Mutex::default() })
    }

    /// Whether these are the workspaces of the newest call.
    pub(crate) fn is_of(&self, workspaces: &WorkspaceFolders) -> bool {
        *lock(&self.workspaces) == *workspaces
    }

    /// Watches the files that the settings of these workspaces depend on, and no others. Returns at once.
    pub(crate) fn watch(self: &Arc<Self>, workspaces: WorkspaceFolders, policies: &Arc<SettingsPolicies>) {
        *lock(&self.workspaces) = workspaces;
        let (watch, policies) = (Arc::clone(self), Arc::clone(policies));
        task::spawn_blocking(move || {
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
