//! The paths of a policy as they are on this disk.
//!
//! Rule: all are resolved once, before the command can change a link; a folder to write in that is not there is an
//! error, a file to guard or hide that is not there is left out.

use std::io;
use std::path::{Path, PathBuf};

use crate::sandbox::SandboxPolicy;
use crate::sandbox::guard::{GuardSurvey, GuardedPath};

/// Folders of the system that nobody can be given to write in.
const NEVER_WRITABLE: [&str; 4] = ["/", "/proc", "/dev", "/sys"];

/// The paths of a policy, resolved.
#[derive(Debug)]
pub(super) struct PolicyPaths {
    /// Folders to write in, without the one for temporary files.
    pub(super) writable: Vec<PathBuf>,
    /// The folder for temporary files.
    pub(super) scratch: PathBuf,
    /// What is hidden.
    pub(super) hidden: Vec<PathBuf>,
    /// What may not be changed beneath a folder to write in.
    pub(super) read_only: Vec<PathBuf>,
    /// The home folder.
    pub(super) home: Option<PathBuf>,
}

impl PolicyPaths {
    /// Resolves the paths of a policy.
    pub(super) fn of(policy: &SandboxPolicy) -> io::Result<Self> {
        let writable = policy.writable.iter().map(|folder| writable(folder.as_path()));
        let resolve = |paths: &[kode_base::paths::AbsPath]| {
            paths.iter().filter_map(|path| path.as_path().canonicalize().ok()).collect::<Vec<_>>()
        };
        let mut hidden = resolve(&policy.hidden);
        hidden.sort();
        // What lies in something hidden is hidden with it.
        hidden.dedup_by(|inner, outer| inner.starts_with(outer));
        Ok(Self {
            writable: writable.collect::<io::Result<_>>()?,
            scratch: writable_scratch(policy)?,
            hidden,
            read_only: resolve(&policy.read_only),
            home: policy.home.as_ref().and_then(|home| home.as_path().canonicalize().ok()),
        })
    }

    /// Looks for guarded files.
    pub(super) fn survey(&self) -> GuardSurvey {
        GuardSurvey::of(&self.writable, self.home.as_deref())
    }

    /// The paths that may not be changed: those of the policy and the guarded ones, links resolved.
    pub(super) fn held(&self, survey: &GuardSurvey) -> Vec<PathBuf> {
        let guarded = survey.found.iter().filter_map(|(path, guarded)| match guarded {
            GuardedPath::File | GuardedPath::Folder => Some(path.clone()),
            GuardedPath::Link(_) => path.canonicalize().ok(),
        });
        let held = guarded.chain(self.read_only.iter().cloned());
        held.filter(|path| self.writable.iter().any(|root| path.starts_with(root))).collect()
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
    let resolved = folder.canonicalize().map_err(named)?;
    if !resolved.is_dir() {
        return Err(named(io::ErrorKind::NotADirectory.into()));
    }
    if NEVER_WRITABLE.iter().any(|never| resolved == Path::new(never)) {
        let message = format!("{} cannot be a folder to write in", resolved.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(resolved)
}
