//! Asks the system with one call whether anything has happened to a set of paths.
//!
//! Rule: "unchanged" is certain: the kernel queues an event before the call that caused it returns. Where it may stay silent
//! there is no probe, and the caller compares stamps: other systems, disks that other machines write, more paths than are watched.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod mounts;

use crate::paths::AbsPath;

#[cfg(target_os = "linux")]
pub use mounts::MountTable;

/// Whether the kernel sees each change on the disk that a path lies on.
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_reported(path: &std::path::Path) -> bool {
    linux::is_reported(path).unwrap_or(false)
}

/// A probe over paths, there or not, and over the folders and links on the way to them. Dropping it ends it.
#[derive(Debug)]
pub struct ChangeProbe {
    #[cfg(target_os = "linux")]
    paths: linux::ProbedPaths,
    #[cfg(not(target_os = "linux"))]
    never: std::convert::Infallible,
}

impl ChangeProbe {
    /// A probe that sees changes from now on; `None` where the system cannot report each. Blocks on the disk.
    #[must_use]
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a AbsPath>) -> Option<Self> {
        Self::with(paths, true)
    }

    /// The same for what a path leads to, and not for the contents of that file or folder.
    #[must_use]
    pub fn of_names<'a>(paths: impl IntoIterator<Item = &'a AbsPath>) -> Option<Self> {
        Self::with(paths, false)
    }

    fn with<'a>(paths: impl IntoIterator<Item = &'a AbsPath>, contents: bool) -> Option<Self> {
        #[cfg(target_os = "linux")]
        {
            let paths = paths.into_iter().map(AbsPath::as_path);
            linux::ProbedPaths::of(paths, contents).map(|paths| Self { paths })
        }
        #[cfg(not(target_os = "linux"))]
        {
            drop((paths, contents));
            None
        }
    }

    /// Whether nothing has happened to the paths since the probe was made; `false` for good afterwards, and while another probe
    /// is made. Never blocks on the disk.
    #[must_use]
    pub fn is_unchanged(&self) -> bool {
        #[cfg(target_os = "linux")]
        {
            self.paths.is_unchanged()
        }
        #[cfg(not(target_os = "linux"))]
        {
            match self.never {}
        }
    }
}
