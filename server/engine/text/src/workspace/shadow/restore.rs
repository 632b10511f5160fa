//! Restores the content at a path.
//!
//! Rule: only recognized content is replaced or removed, checked again in the last moment, by a folder that is held open; no
//! link is followed, nothing outside the workspace is touched, and of folders only those go that hold no file and are in
//! the way.

use std::fs::Metadata;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::shell_change::{FileImage, NotKeptReason};
use crate::workspace::shadow::tree::is_missing;
use crate::workspace::shadow::walk::Stat;
use kode_base::anchor::{Anchor, EntryType};
use kode_base::paths::{AbsPath, real_path};
use kode_base::vcs::is_vcs_folder;
use kode_journal::{BlobId, Blobs};

/// Mode bits that can be restored.
pub(super) const MODE_BITS: u32 = 0o7777;

/// Why a file was not restored. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// It differs from the expected content: it was changed since.
    #[error("`{0}` has changed since and was left as it is")]
    Changed(AbsPath),
    /// Its former or expected state is not known well enough.
    #[error("`{path}` cannot be restored: {reason}")]
    NotKept {
        /// The file.
        path: AbsPath,
        /// Why its bytes are not kept.
        reason: NotKeptReason,
    },
    /// It is not in the workspace, or is version control's.
    #[error("`{0}` is not among the files of the workspace that can be restored")]
    Outside(AbsPath),
    /// Something is where a folder or the file has to be.
    #[error("`{path}` cannot be restored: `{}` is in the way; move it elsewhere and try again", obstacle.display())]
    InTheWay {
        /// The file.
        path: AbsPath,
        /// The obstacle: a file or link in the place of a folder, or a folder with files in it.
        obstacle: PathBuf,
    },
    /// The system failed to write it, or its kept bytes are gone.
    #[error("`{path}` cannot be restored: {source}")]
    Io {
        /// The file.
        path: AbsPath,
        /// The error of the system.
        source: io::Error,
    },
}

/// A file to restore.
pub(super) struct FileRestore<'r> {
    pub(super) roots: &'r [AbsPath],
    pub(super) blobs: &'r Blobs,
    /// The size of the largest file that is kept.
    pub(super) max_bytes: u64,
    pub(super) path: &'r AbsPath,
    pub(super) expected: &'r FileImage,
}

impl FileRestore<'_> {
    /// Makes `wanted` of it, if it has the expected content.
    pub(super) fn put(&self, wanted: &FileImage) -> Result<(), RestoreError> {
        self.check_folders()?;
        if is_kept(wanted) && self.is(wanted) {
            return Ok(());
        }
        for image in [self.expected, wanted] {
            if let FileImage::NotKept { reason } = image {
                return Err(RestoreError::NotKept { path: self.path.clone(), reason: reason.clone() });
            }
        }
        if !self.is(self.expected) {
            return Err(RestoreError::Changed(self.path.clone()));
        }
        let is_done = match wanted {
            FileImage::Absent => self.remove(),
            FileImage::Kept { blob, mode } => self.write(blob, *mode),
            FileImage::Symlink { target } => self.link(target),
            FileImage::NotKept { reason } => {
                return Err(RestoreError::NotKept { path: self.path.clone(), reason: reason.clone() });
            }
        };
        if is_done? { Ok(()) } else { Err(RestoreError::Changed(self.path.clone())) }
    }

    fn remove(&self) -> Result<bool, RestoreError> {
        let Some(anchor) = self.anchor()? else { return Ok(true) };
        if !self.is_at(&anchor, self.expected) {
            return Ok(false);
        }
        match anchor.remove() {
            Ok(()) => Ok(true),
            Err(error) if is_missing(&error) => Ok(true),
            Err(error) => Err(self.io(error)),
        }
    }

    fn link(&self, target: &Path) -> Result<bool, RestoreError> {
        let anchor = self.make_room()?;
        anchor.link(target, || self.is_still(&anchor)).map_err(|error| self.io(error))
    }

    fn write(&self, blob: &BlobId, mode: u32) -> Result<bool, RestoreError> {
        let bytes = self.blobs.get(blob).map_err(|error| self.io(error))?;
        let anchor = self.make_room()?;
        let written = match anchor.facts() {
            Ok(facts) => anchor.replace(&bytes, &facts, mode, || self.is_still(&anchor)),
            Err(error) if is_missing(&error) => match anchor.create(&bytes, Some(mode)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                created => created.map(|()| true),
            },
            Err(error) => Err(error),
        };
        written.map_err(|error| self.io(error))
    }

    /// Makes the folders above the file, and removes a folder without files that is in its place.
    fn make_room(&self) -> Result<Anchor, RestoreError> {
        let path = self.path.as_path();
        if path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            match remove_folders(&self.real()?) {
                Ok(None) => {}
                Ok(Some(obstacle)) => return Err(self.in_the_way(obstacle)),
                Err(error) => return Err(self.io(error)),
            }
        }
        Anchor::open_or_make(&self.real()?).map_err(|error| self.io(error))
    }

    /// The file's name in its open folder; `None` when there is no such folder.
    fn anchor(&self) -> Result<Option<Anchor>, RestoreError> {
        match Anchor::open(&self.real()?) {
            Ok(anchor) => Ok(Some(anchor)),
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(self.io(error)),
        }
    }

    /// Where the file is by its workspace folder, of which alone links are followed.
    fn real(&self) -> Result<PathBuf, RestoreError> {
        let (root, beneath) = self.in_root()?;
        Ok(real_path(root).map_err(|error| self.io(error))?.join(beneath))
    }

    /// Whether the image equals the content at the path.
    fn is(&self, image: &FileImage) -> bool {
        match self.anchor() {
            Ok(Some(anchor)) => self.is_at(&anchor, image),
            Ok(None) => *image == FileImage::Absent,
            Err(_) => false,
        }
    }

    fn is_still(&self, anchor: &Anchor) -> bool {
        anchor.is_in_place() && self.is_at(anchor, self.expected)
    }

    fn is_at(&self, anchor: &Anchor, image: &FileImage) -> bool {
        let facts = match anchor.facts() {
            Ok(facts) => facts,
            Err(error) => return *image == FileImage::Absent && is_missing(&error),
        };
        match image {
            FileImage::Absent => facts.kind == EntryType::Folder,
            FileImage::Kept { blob, mode } => {
                facts.kind == EntryType::File && facts.mode == *mode && self.holds(anchor, blob)
            }
            FileImage::Symlink { target } => anchor.read_link().is_ok_and(|now| now == *target),
            FileImage::NotKept { .. } => false,
        }
    }

    fn holds(&self, anchor: &Anchor, blob: &BlobId) -> bool {
        let Ok(file) = anchor.open_file() else { return false };
        let mut bytes = Vec::new();
        // A byte more than the largest file that is kept makes it another file, whatever follows.
        let is_read = file.take(self.max_bytes + 1).read_to_end(&mut bytes).is_ok();
        is_read && BlobId::of(&bytes) == *blob
    }

    /// The workspace folder that the file is in, and its path beneath.
    fn in_root(&self) -> Result<(&AbsPath, &Path), RestoreError> {
        let root = self.roots.iter().find(|root| self.path.is_within(root) && self.path != *root);
        let beneath =
            root.and_then(|root| Some((root, self.path.as_path().strip_prefix(root.as_path()).ok()?)));
        beneath.ok_or_else(|| RestoreError::Outside(self.path.clone()))
    }

    /// The file lies in the workspace, and no link or file is on the way to it.
    fn check_folders(&self) -> Result<(), RestoreError> {
        let (root, beneath) = self.in_root()?;
        if beneath.components().any(|name| is_vcs_folder(Path::new(&name))) {
            return Err(RestoreError::Outside(self.path.clone()));
        }
        let folders = self.path.as_path().ancestors().skip(1).take_while(|folder| *folder != root.as_path());
        for folder in folders {
            match folder.symlink_metadata() {
                Ok(metadata) if !metadata.is_dir() => return Err(self.in_the_way(folder.to_path_buf())),
                Ok(_) => {}
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(self.io(error)),
            }
        }
        Ok(())
    }

    fn in_the_way(&self, obstacle: PathBuf) -> RestoreError {
        RestoreError::InTheWay { path: self.path.clone(), obstacle }
    }

    fn io(&self, source: io::Error) -> RestoreError {
        RestoreError::Io { path: self.path.clone(), source }
    }
}

/// The content at a path, with its bytes kept up to `max_bytes`. Links are followed in the path of the workspace folder
/// that it lies in, and of another path in that of its folder; no link that comes later is.
pub(super) fn image(roots: &[AbsPath], path: &AbsPath, blobs: &Blobs, max_bytes: u64) -> FileImage {
    let found = real_place(roots, path).and_then(|place| {
        let anchor = Anchor::open(&place)?;
        Ok((anchor.facts()?, anchor))
    });
    let not_kept = |reason| FileImage::NotKept { reason };
    let unreadable = |error| not_kept(NotKeptReason::unreadable(&error));
    let (facts, anchor) = match found {
        Ok(found) => found,
        Err(error) if is_missing(&error) => return FileImage::Absent,
        Err(error) => return unreadable(error),
    };
    match facts.kind {
        EntryType::Folder => FileImage::Absent,
        EntryType::Link => anchor.read_link().map_or_else(unreadable, |target| FileImage::Symlink { target }),
        EntryType::Other => not_kept(NotKeptReason::NotAFile),
        EntryType::File => match kept(&anchor, blobs, max_bytes) {
            Ok(Some(image)) => image,
            Ok(None) => not_kept(NotKeptReason::TooLarge { size: facts.size }),
            Err(error) => unreadable(error),
        },
    }
}

/// Keeps the bytes of the file that an anchor names; `None` when there are more of them than may be kept.
fn kept(anchor: &Anchor, blobs: &Blobs, max_bytes: u64) -> io::Result<Option<FileImage>> {
    let file = anchor.open_file()?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file any more"));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Ok(None);
    }
    Ok(Some(FileImage::Kept { blob: blobs.put(&bytes)?, mode: mode_of(&metadata) }))
}

/// The place of a path, with links followed as [`image`] says.
fn real_place(roots: &[AbsPath], path: &AbsPath) -> io::Result<PathBuf> {
    let path = path.as_path();
    let root = roots.iter().map(AbsPath::as_path).find(|root| path.starts_with(root) && path != *root);
    let folder = root.or(path.parent()).unwrap_or(path);
    let beneath = path.strip_prefix(folder).map_err(io::Error::other)?;
    Ok(real_path(folder)?.join(beneath))
}

/// The mode bits of a file that is no link.
pub(in crate::workspace) fn mode(path: &Path) -> Option<u32> {
    let metadata = path.symlink_metadata().ok()?;
    metadata.is_file().then(|| mode_of(&metadata))
}

fn is_kept(image: &FileImage) -> bool {
    match image {
        FileImage::Absent | FileImage::Kept { .. } | FileImage::Symlink { .. } => true,
        FileImage::NotKept { .. } => false,
    }
}

/// Removes a folder and those in it if there are no files in them; else returns one, and nothing is removed.
fn remove_folders(folder: &Path) -> io::Result<Option<PathBuf>> {
    let mut folders = vec![folder.to_path_buf()];
    let mut next = 0;
    while let Some(folder) = folders.get(next).cloned() {
        next += 1;
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                return Ok(Some(entry.path()));
            }
            folders.push(entry.path());
        }
    }
    // Deepest first. The system removes no folder that has got something in it meanwhile.
    folders.iter().rev().try_for_each(|folder| Anchor::open(folder)?.remove_folder())?;
    Ok(None)
}

/// The mode bits of a file as an image has them.
fn mode_of(metadata: &Metadata) -> u32 {
    Stat::of(metadata).mode & MODE_BITS
}
