//! Folders that a command made unreadable, opened to their owner while the guard judges their entries.
//!
//! Rule: a folder that cannot be read hides nothing from the guard for longer than the command runs. Its mode is restored after
//! the judgment.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use kode_base::beneath;

/// The rights of the owner to list and change a folder.
const OWNER: u32 = 0o700;
/// At most this many layers of unreadable folders are opened.
const MAX_LAYERS: usize = 64;

/// A folder with the rights of its owner. Dropping it restores its mode.
#[derive(Debug)]
pub(super) struct ReopenedFolder {
    folder: OwnedFd,
    mode: u32,
}

impl ReopenedFolder {
    /// Adds the rights of the owner.
    ///
    /// # Errors
    /// When the folder is gone, is a link, or belongs to another user.
    fn open(path: &Path) -> io::Result<Self> {
        let folder = beneath::pass_folder(path)?;
        let mode = fs::metadata(beneath::by_descriptor(&folder))?.mode() & 0o7777;
        fs::set_permissions(beneath::by_descriptor(&folder), Permissions::from_mode(mode | OWNER))?;
        Ok(Self { folder, mode })
    }
}

impl Drop for ReopenedFolder {
    fn drop(&mut self) {
        let mode = Permissions::from_mode(self.mode);
        if let Err(error) = fs::set_permissions(beneath::by_descriptor(&self.folder), mode) {
            tracing::debug!(%error, "The mode of a folder was not restored");
        }
    }
}

/// Opens unreadable folders, layer by layer. `unreadable` surveys and returns those to open; folders of other users stay closed.
///
/// # Errors
/// The first error of `unreadable`.
pub(super) fn reopen(
    mut unreadable: impl FnMut() -> io::Result<Vec<PathBuf>>,
) -> io::Result<Vec<ReopenedFolder>> {
    let (mut reopened, mut tried) = (Vec::new(), BTreeSet::new());
    for _ in 0..MAX_LAYERS {
        let before = reopened.len();
        for path in unreadable()? {
            if tried.insert(path.clone()) {
                reopened.extend(ReopenedFolder::open(&path).ok());
            }
        }
        if reopened.len() == before {
            break;
        }
    }
    Ok(reopened)
}
