//! The files of a plugin as a whole: what represents all of them, and copying them.
//!
//! Rule: bounded in number, size and depth, for any content; a link counts only where it stays in the folder, and any entry
//! that is copied is plain files and folders alone.

use std::path::{Path, PathBuf};
use std::{fs, io};

use sha2::{Digest, Sha256};

use kode_base::paths::{AbsPath, real_path};
use kode_base::regular;

/// The most files and folders of a plugin, or of a marketplace.
pub(super) const MAX_ENTRIES: usize = 10_000;

/// The most bytes of all its files.
pub(super) const MAX_BYTES: u64 = 64 << 20;

/// Maximum depth of folders.
pub(super) const MAX_DEPTH: usize = 32;

/// The folder of a repository's own records, which is no part of what it holds.
const RECORDS: &str = ".git";

/// The content of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderTree {
    /// Represents the names, the contents and the marks of programs of all files: sixty-four hexadecimal digits.
    pub(crate) digest: String,
    /// All files and folders, the folder itself first.
    pub(crate) entries: Vec<AbsPath>,
}

impl FolderTree {
    /// Reads all of a folder. Blocks on the disk.
    ///
    /// # Errors
    /// Why it cannot be taken as a whole, without a period.
    pub(crate) fn of(root: &AbsPath) -> Result<Self, String> {
        let real = real(root.as_path())?;
        let mut walk = FolderWalk { left: MAX_BYTES, seen: 0 };
        let mut digest = Sha256::new();
        let mut entries = vec![root.clone()];
        let mut waiting = vec![(PathBuf::new(), 0)];
        while let Some((folder, depth)) = waiting.pop() {
            for name in walk.names(&root.as_path().join(&folder), depth)? {
                let relative = folder.join(&name);
                let path = root.as_path().join(&relative);
                entries.push(root.join(&relative));
                let metadata = fs::symlink_metadata(&path).map_err(|error| unreadable(&path, &error))?;
                let mut add = |kind: &[u8], bytes: &[u8]| {
                    let name = relative.as_os_str().as_encoded_bytes();
                    for part in [kind, name, bytes] {
                        digest.update((part.len() as u64).to_be_bytes());
                        digest.update(part);
                    }
                };
                if metadata.is_dir() {
                    add(b"folder", b"");
                    waiting.push((relative, depth + 1));
                } else if metadata.is_symlink() {
                    let target = fs::read_link(&path).map_err(|error| unreadable(&path, &error))?;
                    stays_within(&path, &real)?;
                    add(b"link", target.as_os_str().as_encoded_bytes());
                } else {
                    let bytes = walk.file(&path)?;
                    add(if is_program(&metadata) { b"program" } else { b"file" }, &bytes);
                }
            }
        }
        let digest = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { digest, entries })
    }
}

/// Copies a folder into one that is not there yet; links become what they lead to, and a repository's own records are left
/// out. Blocks on the disk.
///
/// # Errors
/// Why it cannot be copied whole, without a period; the files copied so far stay.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let real = real(from)?;
    let mut walk = FolderWalk { left: MAX_BYTES, seen: 0 };
    let mut waiting = vec![(real.clone(), to.to_path_buf(), 0)];
    while let Some((from, to, depth)) = waiting.pop() {
        fs::create_dir_all(&to).map_err(|error| format!("{} cannot be made: {error}", to.display()))?;
        for name in walk.names(&from, depth)? {
            if name == RECORDS {
                continue;
            }
            let (path, target) = (from.join(&name), to.join(&name));
            let path = stays_within(&path, &real)?;
            let metadata = fs::metadata(&path).map_err(|error| unreadable(&path, &error))?;
            if metadata.is_dir() {
                waiting.push((path, target, depth + 1));
            } else {
                let bytes = walk.file(&path)?;
                write(&target, &bytes, is_program(&metadata))
                    .map_err(|error| format!("{} cannot be written: {error}", target.display()))?;
            }
        }
    }
    Ok(())
}

/// The rest of the bounds.
struct FolderWalk {
    left: u64,
    seen: usize,
}

impl FolderWalk {
    fn names(&mut self, folder: &Path, depth: usize) -> Result<Vec<std::ffi::OsString>, String> {
        if depth > MAX_DEPTH {
            return Err(format!("{} lies more than {MAX_DEPTH} folders deep", folder.display()));
        }
        let read = fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
        let mut names = Vec::new();
        for entry in read {
            self.seen += 1;
            if self.seen > MAX_ENTRIES {
                return Err(format!("there are more than {MAX_ENTRIES} files and folders in it"));
            }
            names.push(entry.map_err(|error| unreadable(folder, &error))?.file_name());
        }
        names.sort();
        Ok(names)
    }

    fn file(&mut self, path: &Path) -> Result<Vec<u8>, String> {
        let bytes = regular::read(path, self.left).map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => format!("its files are larger than {MAX_BYTES} bytes together"),
            _ => unreadable(path, &error),
        })?;
        self.left -= bytes.len() as u64;
        Ok(bytes)
    }
}

/// Where a path leads, links followed.
fn real(path: &Path) -> Result<PathBuf, String> {
    real_path(path).map_err(|error| unreadable(path, &error))
}

/// Where something leads that must not lead out of a folder.
fn stays_within(path: &Path, folder: &Path) -> Result<PathBuf, String> {
    let found = real(path)?;
    if found.starts_with(folder) {
        return Ok(found);
    }
    Err(format!("{} is a link that leads out of it, to {}", path.display(), found.display()))
}

fn unreadable(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be read: {error}", path.display())
}

fn is_program(metadata: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        metadata.permissions().mode() & 0o100 != 0
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

/// Writes a file that is not there yet.
pub(super) fn write(path: &Path, bytes: &[u8], is_program: bool) -> io::Result<()> {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(if is_program { 0o755 } else { 0o644 });
    }
    #[cfg(not(unix))]
    let _ = is_program;
    options.open(path)?.write_all(bytes)
}
