//! Removes unused files of a session: blobs that its journal does not name, and unfinished files.
//!
//! Rule: a removing process holds the journal, and nothing was added to it since it was looked through. A content stays if
//! its name is anywhere in the journal, damaged lines included, and while it is young: its record may still be on its way.
//! A journal that cannot be read sweeps nothing.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::sessions::{BLOBS, JOURNAL};
use kode_base::file_moves;
use kode_journal::BlobId;
use kode_journal::disk::TEMPORARY_PREFIX;

/// The least age of a removed file.
pub(super) const MIN_AGE: Duration = Duration::from_secs(60 * 60);

/// The length of the name of a content.
const NAME: usize = 64;

/// How much of a journal is looked through at once.
const STEP: usize = 256 * 1024;

/// The removed files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SweepReport {
    /// Files.
    pub(crate) files: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Files that are old enough, whose deletion was not announced.
    pub(crate) due: u64,
}

/// Sweeps the folder of a session, whose journal the caller holds.
///
/// # Errors
/// The error of the system; nothing is removed then.
pub(crate) fn sweep(folder: &Path, now: SystemTime) -> io::Result<SweepReport> {
    let mut swept = SweepReport::default();
    needless(folder, now)?.iter().for_each(|path| remove(path, &mut swept));
    Ok(swept)
}

/// The removable files of a session's folder, as long as nothing is added to its journal.
///
/// # Errors
/// The error of the system.
pub(super) fn needless(folder: &Path, now: SystemTime) -> io::Result<Vec<PathBuf>> {
    let blobs = folder.join(BLOBS);
    let mut needless: Vec<PathBuf> = stumps(folder, now).chain(stumps(&blobs, now)).collect();
    let mut unnamed: HashMap<BlobId, PathBuf> = old_files(&blobs, MIN_AGE, now)
        .filter_map(|path| Some((path.file_name()?.to_str()?.parse().ok()?, path)))
        .collect();
    if !unnamed.is_empty() {
        strike_out_named(&mut File::open(folder.join(JOURNAL))?, &mut unnamed)?;
        needless.extend(unnamed.into_values());
    }
    Ok(needless)
}

/// Removes abandoned unfinished files.
pub(super) fn remove_stumps(folder: &Path, now: SystemTime, swept: &mut SweepReport) {
    stumps(folder, now).for_each(|path| remove(&path, swept));
}

fn stumps(folder: &Path, now: SystemTime) -> impl Iterator<Item = PathBuf> {
    let is_stump = |path: &PathBuf| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(TEMPORARY_PREFIX))
    };
    old_files(folder, MIN_AGE, now).filter(is_stump)
}

/// The files in a folder that were last written longer ago than `age`.
pub(super) fn old_files(folder: &Path, age: Duration, now: SystemTime) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.map(|entry| entry.path()).filter(move |path| is_older(path, age, now))
}

/// Whether something was last written longer ago than `age`.
pub(super) fn is_older(path: &Path, age: Duration, now: SystemTime) -> bool {
    let modified = path.symlink_metadata().and_then(|metadata| metadata.modified()).ok();
    modified.and_then(|modified| now.duration_since(modified).ok()).is_some_and(|old| old > age)
}

/// Removes a file; one that refuses takes room and harms nothing.
pub(super) fn remove(path: &Path, swept: &mut SweepReport) {
    let bytes = path.metadata().map_or(0, |metadata| metadata.len());
    match file_moves::remove_file(path) {
        Ok(()) => {
            swept.files += 1;
            swept.bytes += bytes;
        }
        Err(error) => tracing::warn!(%error, path = %path.display(), "an unused file stays"),
    }
}

/// Removes the blobs from `unnamed` that the journal names.
fn strike_out_named(journal: &mut impl Read, unnamed: &mut HashMap<BlobId, PathBuf>) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(STEP + NAME);
    while !unnamed.is_empty() {
        let kept = bytes.len();
        if journal.take(STEP as u64).read_to_end(&mut bytes)? == 0 && kept == bytes.len() {
            break;
        }
        for run in bytes.split(|byte| !is_digit(*byte)) {
            // Mostly one; in what only looks like names, every place may be the beginning of one.
            for window in run.windows(NAME) {
                if let Some(id) = std::str::from_utf8(window).ok().and_then(|name| name.parse().ok()) {
                    unnamed.remove::<BlobId>(&id);
                }
            }
        }
        // A name may continue in the next read.
        let run = bytes.iter().rev().take(NAME - 1).take_while(|byte| is_digit(**byte)).count();
        bytes.drain(..bytes.len() - run);
    }
    Ok(())
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a few bytes at a time.
    struct Drop<'a>(&'a [u8]);

    impl Read for Drop<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.0.len().min(buffer.len()).min(7);
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    #[test]
    fn a_name_counts_wherever_it_is() {
        let ids: Vec<_> = (0..4_u8).map(|byte| BlobId::of(&[byte])).collect();
        let journal = format!(r#"{{"base":"{}"}}{}half of a line {}ff"{}"#, ids[0], '\n', ids[1], ids[2]);
        for padding in [0, STEP - 70, STEP - 20] {
            let journal = format!("{}{journal}", " ".repeat(padding));
            let mut unnamed = ids.iter().map(|id| (*id, PathBuf::new())).collect();
            strike_out_named(&mut Drop(journal.as_bytes()), &mut unnamed).unwrap();
            assert_eq!(unnamed.keys().collect::<Vec<_>>(), [&ids[3]], "{padding}");
        }
    }
}
