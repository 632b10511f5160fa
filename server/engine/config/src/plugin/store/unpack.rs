//! Unpacking a package: a compressed archive of which all is in one folder.
//!
//! Rule: only plain files and folders come out of it, all below the folder they are meant for, within the bounds of plugins. These
//! hold while it is read, so that nothing is ever larger in memory or on disk than they say.

#[cfg(test)]
pub(super) mod tests;

use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use tar::{Archive, EntryType};

use crate::plugin::tree::{self, MAX_BYTES, MAX_DEPTH, MAX_ENTRIES};

/// The overhead of an archive besides its files' bytes: a block before each of them, and one that is filled up behind it.
const MAX_AROUND: u64 = 2 * 512 * MAX_ENTRIES as u64;

/// Unpacks an archive into a folder that is not there yet, without the one folder that all of it is in.
///
/// # Errors
/// Why it cannot be unpacked whole, without a period; the files written so far stay.
pub fn unpack(bytes: &[u8], into: &Path) -> Result<(), String> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::FileTooLarge => too_large(),
        // The library's text may be a sentence, or the end of a name.
        _ => format!("it cannot be unpacked: {}", error.to_string().trim_end_matches('.')),
    };
    let mut archive =
        Archive::new(BoundedReader { inner: MultiGzDecoder::new(bytes), left: MAX_BYTES + MAX_AROUND });
    let unwritable =
        |path: &Path, error: &io::Error| format!("{} cannot be written: {error}", path.display());
    fs::create_dir_all(into).map_err(|error| unwritable(into, &error))?;
    let (mut seen, mut left) = (0, MAX_BYTES);
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        seen += 1;
        if seen > MAX_ENTRIES {
            return Err(format!("there are more than {MAX_ENTRIES} files and folders in it"));
        }
        let kind = entry.header().entry_type();
        if kind == EntryType::XGlobalHeader {
            continue;
        }
        let named = entry.path().map_err(unreadable)?.into_owned();
        let Some(inner) = within(&named)? else { continue };
        let path = into.join(inner);
        match kind {
            EntryType::Directory => fs::create_dir_all(&path).map_err(|error| unwritable(&path, &error))?,
            EntryType::Regular | EntryType::Continuous => {
                let mut content = Vec::new();
                let read = (&mut entry).take(left + 1).read_to_end(&mut content).map_err(unreadable)?;
                left = left.checked_sub(read as u64).ok_or_else(too_large)?;
                let is_program = entry.header().mode().map_err(unreadable)? & 0o100 != 0;
                let folder = path.parent().unwrap_or(into);
                fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
                tree::write(&path, &content, is_program).map_err(|error| unwritable(&path, &error))?;
            }
            _ => return Err(format!("`{}` in it is neither a file nor a folder", named.display())),
        }
    }
    Ok(())
}

/// A path without its first folder; `None` for that folder itself.
fn within(named: &Path) -> Result<Option<PathBuf>, String> {
    let mut parts = Vec::new();
    for part in named.components() {
        match part {
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(format!("`{}` in it leads out of it", named.display()));
            }
        }
    }
    if parts.len() > MAX_DEPTH + 1 {
        return Err(format!("`{}` in it lies more than {MAX_DEPTH} folders deep", named.display()));
    }
    let inner: PathBuf = parts.into_iter().skip(1).collect();
    Ok(Some(inner).filter(|inner| !inner.as_os_str().is_empty()))
}

fn too_large() -> String {
    format!("its files are larger than {MAX_BYTES} bytes together")
}

/// A reader that ends with an error where there is more than there may be.
struct BoundedReader<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Read for BoundedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(read)
    }
}
