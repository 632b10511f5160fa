//! The kernel's word that nothing has changed in the folders of a walk.
//!
//! Rule: "unchanged" is certain, but for a covered file that is written under a second name outside of these folders and made after
//! the walk. A folder is watched before anything in it is read. Where the kernel may stay silent nothing is watched, and the
//! caller walks: other systems, disks that other machines write, more folders than are watched, more workspaces at once.

#[cfg(target_os = "linux")]
mod linux;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kode_base::paths::AbsPath;

/// A watch over the folders of a workspace, shared by all who walk there.
#[derive(Debug)]
pub(super) struct TreeWatch {
    #[cfg(target_os = "linux")]
    folders: linux::WatchedFolders,
    #[cfg(not(target_os = "linux"))]
    never: std::convert::Infallible,
}

/// A moment from which on a watch reports each change.
#[derive(Clone, Debug)]
pub(super) struct WatchedMoment {
    watch: Arc<TreeWatch>,
    generation: u64,
}

impl TreeWatch {
    /// The watch over these roots; `None` where there can be none.
    pub(super) fn over(roots: &[AbsPath]) -> Option<Arc<Self>> {
        #[cfg(target_os = "linux")]
        {
            linux::shared(roots, |folders| Self { folders })
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = roots;
            None
        }
    }

    /// Watches a folder without its subfolders, and the ignore file of its repository. A folder that the kernel does not
    /// watch ends the whole watch.
    pub(super) fn enter(&self, folder: &Path) {
        #[cfg(target_os = "linux")]
        self.folders.enter(folder);
        #[cfg(not(target_os = "linux"))]
        {
            let _ = folder;
            match self.never {}
        }
    }

    /// This moment; `None` once something is not watched.
    pub(super) fn moment(self: &Arc<Self>) -> Option<WatchedMoment> {
        Some(WatchedMoment { watch: Arc::clone(self), generation: self.generation()? })
    }

    /// A number that is another after each change; `None` once something is not watched.
    fn generation(&self) -> Option<u64> {
        #[cfg(target_os = "linux")]
        {
            self.folders.generation()
        }
        #[cfg(not(target_os = "linux"))]
        {
            match self.never {}
        }
    }
}

impl WatchedMoment {
    /// Whether nothing has changed since.
    pub(super) fn is_now(&self) -> bool {
        self.watch.generation() == Some(self.generation)
    }

    /// The folders with changed files or new folders since; `None` where another walk is needed to know what has changed.
    pub(super) fn changed_folders(&self) -> Option<BTreeSet<PathBuf>> {
        #[cfg(target_os = "linux")]
        {
            self.watch.folders.changed_since(self.generation)
        }
        #[cfg(not(target_os = "linux"))]
        {
            match self.watch.never {}
        }
    }

    /// Whether everything entered since is watched.
    pub(super) fn is_whole(&self) -> bool {
        self.watch.generation().is_some()
    }
}
