//! The paths of a policy as they are on this disk.
//!
//! Rule: all are resolved once for a command, by the process that guards its files, before the command can change a link; a
//! folder to write in that is not there is an error, a file to guard or hide that is not there is left out.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sandbox::SandboxPolicy;
use crate::sandbox::guard::{GuardScope, GuardSurvey, GuardedPath};
use kode_base::real_folders::RealFolders;

/// Folders of the system that can never be made writable; on no system does one of another system mean anything else.
const NEVER_WRITABLE: [&str; 13] = [
    "/",
    "/proc",
    "/dev",
    "/sys",
    "/System",
    "/Library",
    "/Applications",
    "/Users",
    "/Volumes",
    "/private",
    "/private/etc",
    "/private/var",
    "/private/var/db",
];
/// Folders that every sandbox of Linux has of its own.
#[cfg(target_os = "linux")]
const OWN: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/proc", "/dev"];

/// The answers of a disk about paths.
pub(crate) trait PathLookup {
    /// The path with all links followed.
    ///
    /// # Errors
    /// When nothing is there.
    fn real(&self, path: &Path) -> io::Result<PathBuf>;

    /// Whether a resolved path is a folder.
    fn is_folder(&self, path: &Path) -> bool;
}

/// The disk of this machine. Policies list some hundred paths in the same few folders.
#[derive(Default)]
pub(crate) struct OwnDisk(RefCell<RealFolders>);

impl PathLookup for OwnDisk {
    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.borrow_mut().real(path)
    }

    fn is_folder(&self, path: &Path) -> bool {
        path.is_dir()
    }
}

/// The paths of a policy, resolved.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PolicyPaths {
    /// Folders to write in, without the one for temporary files.
    pub(crate) writable: Vec<PathBuf>,
    /// The folder for temporary files.
    pub(crate) scratch: PathBuf,
    /// The hidden paths.
    pub(crate) hidden: Vec<PathBuf>,
    /// The visible paths in hidden ones.
    pub(crate) shown: Vec<PathBuf>,
    /// The read-only places beneath a writable folder.
    pub(crate) read_only: Vec<PathBuf>,
    /// The home folder.
    pub(crate) home: Option<PathBuf>,
}

impl PolicyPaths {
    /// Resolves the paths of a policy on the disk of this machine.
    pub(crate) fn of(policy: &SandboxPolicy) -> io::Result<Self> {
        Self::on(policy, &OwnDisk::default())
    }

    /// Resolves the paths of a policy.
    pub(crate) fn on(policy: &SandboxPolicy, disk: &dyn PathLookup) -> io::Result<Self> {
        let writable = policy.writable.iter().map(|folder| writable_folder(folder.as_path(), disk));
        let resolve = |paths: &[kode_base::paths::AbsPath]| {
            paths.iter().filter_map(|path| disk.real(path.as_path()).ok()).collect::<Vec<_>>()
        };
        let writable: Vec<PathBuf> = writable.collect::<io::Result<_>>()?;
        let all: BTreeSet<_> = resolve(&policy.hidden).into_iter().collect();
        // Files in a hidden folder are hidden with it, unless a folder to write in lies between.
        let is_covered = |path: &Path| {
            let mut above = path.ancestors().skip(1);
            let nearest =
                above.find(|folder| all.contains(*folder) || writable.iter().any(|root| root == folder));
            nearest.is_some_and(|folder| !writable.iter().any(|root| root == folder))
        };
        let hidden: Vec<_> = all.iter().filter(|path| !is_covered(path)).cloned().collect();
        Ok(Self {
            writable,
            scratch: writable_folder(policy.scratch.as_path(), disk)?,
            shown: resolve(&policy.shown)
                .into_iter()
                .filter(|path| hidden.iter().any(|hidden| path.starts_with(hidden)))
                .collect(),
            hidden,
            read_only: resolve(&policy.read_only),
            home: policy.home.as_ref().and_then(|home| disk.real(home.as_path()).ok()),
        })
    }

    /// Where guarded files are searched for.
    pub(crate) fn ground(&self) -> GuardScope {
        GuardScope {
            roots: self.writable.clone(),
            home: self.home.clone(),
            unseen: self.hidden.iter().cloned().collect(),
            hides: None,
            scripts: Vec::new(),
        }
    }

    /// The paths that may not be changed: those of the policy and the guarded ones, links resolved.
    pub(super) fn held(&self, survey: &GuardSurvey) -> BTreeSet<PathBuf> {
        self.held_on(survey, &OwnDisk::default())
    }

    /// As [`Self::held`], on another disk.
    pub(crate) fn held_on(&self, survey: &GuardSurvey, disk: &dyn PathLookup) -> BTreeSet<PathBuf> {
        let guarded = survey.found.iter().filter_map(|(path, guarded)| match guarded {
            GuardedPath::File | GuardedPath::Folder | GuardedPath::Unreadable => Some(path.clone()),
            GuardedPath::Link(_) => None,
        });
        let held = guarded.chain(self.link_targets_on(survey, disk)).chain(self.read_only.iter().cloned());
        let mut held: BTreeSet<_> = held.filter(|path| self.is_in_a_root(path)).collect();
        // Files in a held folder are held with it, unless a writable folder lies between.
        let is_covered = |path: &Path| {
            let mut above =
                path.ancestors().take_while(|folder| !self.writable.iter().any(|root| root == folder));
            above.nth(1).is_some_and(|first| {
                first
                    .ancestors()
                    .take_while(|folder| !self.writable.iter().any(|root| root == folder))
                    .any(|folder| held.contains(folder))
            })
        };
        let beneath: Vec<_> = held.iter().filter(|path| is_covered(path)).cloned().collect();
        for path in &beneath {
            held.remove(path);
        }
        held
    }

    /// The paths in folders to write in that guarded links lead to, and that are guarded with them.
    #[cfg(target_os = "linux")]
    pub(super) fn link_targets(&self, survey: &GuardSurvey) -> Vec<PathBuf> {
        self.link_targets_on(survey, &OwnDisk::default())
    }

    fn link_targets_on(&self, survey: &GuardSurvey, disk: &dyn PathLookup) -> Vec<PathBuf> {
        let links = survey.found.iter().filter(|(_, guarded)| matches!(guarded, GuardedPath::Link(_)));
        let targets = links.filter(|(path, _)| survey.holds_target(path));
        let targets = targets.filter_map(|(path, _)| disk.real(path).ok());
        targets.filter(|target| self.is_in_a_root(target)).collect()
    }

    /// Whether a path is there inside: folders that every sandbox has of its own cover what lies in them outside.
    #[cfg(target_os = "linux")]
    pub(super) fn is_seen(&self, path: &Path) -> bool {
        self.is_writable(path) || !OWN.iter().any(|own| path.starts_with(own))
    }

    pub(crate) fn is_in_a_root(&self, path: &Path) -> bool {
        self.writable.iter().any(|root| path.starts_with(root))
    }

    /// Whether a path lies in a folder to write in.
    pub(crate) fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().chain([&self.scratch]).any(|root| path.starts_with(root))
    }
}

fn writable_folder(folder: &Path, disk: &dyn PathLookup) -> io::Result<PathBuf> {
    let named = |error| io::Error::new(io::Error::kind(&error), format!("{}: {error}", folder.display()));
    let resolved = disk.real(folder).map_err(named)?;
    if !disk.is_folder(&resolved) {
        return Err(named(io::ErrorKind::NotADirectory.into()));
    }
    if NEVER_WRITABLE.iter().any(|never| resolved == Path::new(never)) {
        let message = format!("{} cannot be a folder to write in", resolved.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(resolved)
}
