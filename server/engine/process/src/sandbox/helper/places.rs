//! The paths of a policy as they are on this disk.
//!
//! Rule: all are resolved once, before the command can change a link; a folder to write in that is not there is an
//! error, a file to guard or hide that is not there is left out.

use std::io;
use std::path::{Path, PathBuf};

use std::collections::BTreeSet;

use crate::sandbox::SandboxPolicy;
use crate::sandbox::guard::{GuardScope, GuardSurvey, GuardedPath};
use kode_base::paths::real_path;

/// Folders of the system that can never be made writable.
const NEVER_WRITABLE: [&str; 4] = ["/", "/proc", "/dev", "/sys"];
/// Folders that every sandbox has of its own.
const OWN: [&str; 5] = ["/tmp", "/var/tmp", "/run", "/proc", "/dev"];

/// The paths of a policy, resolved.
#[derive(Debug)]
pub(super) struct PolicyPaths {
    /// Folders to write in, without the one for temporary files.
    pub(super) writable: Vec<PathBuf>,
    /// The folder for temporary files.
    pub(super) scratch: PathBuf,
    /// The hidden paths.
    pub(super) hidden: Vec<PathBuf>,
    /// The visible paths in hidden ones.
    pub(super) shown: Vec<PathBuf>,
    /// The read-only places beneath a writable folder.
    pub(super) read_only: Vec<PathBuf>,
    /// The home folder.
    pub(super) home: Option<PathBuf>,
}

impl PolicyPaths {
    /// Resolves the paths of a policy.
    pub(super) fn of(policy: &SandboxPolicy) -> io::Result<Self> {
        let writable = policy.writable.iter().map(|folder| writable(folder.as_path()));
        let resolve = |paths: &[kode_base::paths::AbsPath]| {
            paths.iter().filter_map(|path| real_path(path.as_path()).ok()).collect::<Vec<_>>()
        };
        let mut hidden = resolve(&policy.hidden);
        hidden.sort();
        // Files in a hidden folder are hidden with it.
        hidden.dedup_by(|inner, outer| inner.starts_with(outer));
        Ok(Self {
            writable: writable.collect::<io::Result<_>>()?,
            scratch: writable_scratch(policy)?,
            shown: resolve(&policy.shown)
                .into_iter()
                .filter(|path| hidden.iter().any(|hidden| path.starts_with(hidden)))
                .collect(),
            hidden,
            read_only: resolve(&policy.read_only),
            home: policy.home.as_ref().and_then(|home| real_path(home.as_path()).ok()),
        })
    }

    /// Where guarded files are searched for.
    pub(super) fn ground(&self) -> GuardScope {
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
        let guarded = survey.found.iter().filter_map(|(path, guarded)| match guarded {
            GuardedPath::File | GuardedPath::Folder | GuardedPath::Unreadable => Some(path.clone()),
            GuardedPath::Link(_) => None,
        });
        let held = guarded.chain(self.link_targets(survey)).chain(self.read_only.iter().cloned());
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
    pub(super) fn link_targets(&self, survey: &GuardSurvey) -> Vec<PathBuf> {
        let links = survey.found.iter().filter(|(_, guarded)| matches!(guarded, GuardedPath::Link(_)));
        let targets = links.filter(|(path, _)| survey.holds_target(path));
        let targets = targets.filter_map(|(path, _)| real_path(path).ok());
        targets.filter(|target| self.is_in_a_root(target)).collect()
    }

    /// Whether a path is there inside: folders that every sandbox has of its own cover what lies in them outside.
    pub(super) fn is_seen(&self, path: &Path) -> bool {
        self.is_writable(path) || !OWN.iter().any(|own| path.starts_with(own))
    }

    fn is_in_a_root(&self, path: &Path) -> bool {
        self.writable.iter().any(|root| path.starts_with(root))
    }

    /// Whether a path lies in a folder to write in.
    pub(super) fn is_writable(&self, path: &Path) -> bool {
        self.writable.iter().chain([&self.scratch]).any(|root| path.starts_with(root))
    }
}

fn writable_scratch(policy: &SandboxPolicy) -> io::Result<PathBuf> {
    writable(policy.scratch.as_path())
}

fn writable(folder: &Path) -> io::Result<PathBuf> {
    let named = |error| io::Error::new(io::Error::kind(&error), format!("{}: {error}", folder.display()));
    let resolved = real_path(folder).map_err(named)?;
    if !resolved.is_dir() {
        return Err(named(io::ErrorKind::NotADirectory.into()));
    }
    if NEVER_WRITABLE.iter().any(|never| resolved == Path::new(never)) {
        let message = format!("{} cannot be a folder to write in", resolved.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(resolved)
}
