//! Keeping what guarded files say before a command, and putting it back afterwards.
//!
//! Rule: either all of it is kept or no command is run. Only different files are touched, and the found ones are set aside
//! before.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::aside::Quarantine;
use super::survey::GuardSurvey;
#[cfg(target_os = "linux")]
use super::survey::GuardedPath;
use crate::sandbox::{GuardReport, RestoredPath};

/// The largest file that is kept, in bytes.
const MAX_FILE: u64 = 4 << 20;
/// How much is kept of all files together, in bytes.
const MAX_BYTES: u64 = 64 << 20;
/// How many files are kept.
const MAX_FILES: usize = 20_000;
/// The end of the names of hooks that git never runs.
const SAMPLE: &str = ".sample";
/// The program that obeys a restored file, for people.
const OBEYED_BY: &str = "other programs";

/// Guarded files as they were.
#[derive(Debug, Default)]
pub(crate) struct GuardSnapshot {
    entries: BTreeMap<PathBuf, SnapshotEntry>,
    bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum SnapshotEntry {
    File { content: Vec<u8>, mode: u32 },
    Link(PathBuf),
    Folder,
}

impl GuardSnapshot {
    /// All that is guarded, with the contents of guarded folders. `targets` are the paths that guarded links lead to.
    ///
    /// # Errors
    /// The files that could not be kept.
    #[cfg(target_os = "linux")]
    pub(crate) fn contents(survey: &GuardSurvey, targets: &[PathBuf]) -> io::Result<Self> {
        let mut kept = Self::default();
        let readable = survey.found.iter().filter(|(_, guarded)| **guarded != GuardedPath::Unreadable);
        for path in readable.map(|(path, _)| path).chain(targets) {
            kept.keep(path)?;
        }
        Ok(kept)
    }

    /// Guarded files that have other names, by which they can be changed although they are held.
    ///
    /// # Errors
    /// The files that could not be kept.
    pub(crate) fn linked(survey: &GuardSurvey) -> io::Result<Self> {
        let mut kept = Self::default();
        for path in &survey.linked {
            kept.keep(path)?;
        }
        Ok(kept)
    }

    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn keep(&mut self, path: &Path) -> io::Result<()> {
        if self.entries.len() >= MAX_FILES {
            let message = format!("more than {MAX_FILES} guarded files would have to be put back after it");
            return Err(io::Error::other(message));
        }
        let Some(entry) = self.entry(path)? else { return Ok(()) };
        let is_folder = entry == SnapshotEntry::Folder;
        self.entries.insert(path.to_path_buf(), entry);
        if is_folder && let Ok(entries) = fs::read_dir(path) {
            for entry in entries.flatten().filter(|entry| !is_sample(&entry.path())) {
                self.keep(&entry.path())?;
            }
        }
        Ok(())
    }

    fn entry(&mut self, path: &Path) -> io::Result<Option<SnapshotEntry>> {
        let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(None) };
        if metadata.is_symlink() {
            return Ok(fs::read_link(path).ok().map(SnapshotEntry::Link));
        }
        if metadata.is_dir() {
            return Ok(Some(SnapshotEntry::Folder));
        }
        if !metadata.is_file() {
            return Ok(None);
        }
        if metadata.len() > MAX_FILE || self.bytes + metadata.len() > MAX_BYTES {
            let message = format!("{} is too large to be put back after it", path.display());
            return Err(io::Error::other(message));
        }
        let content = fs::read(path)?;
        self.bytes += content.len() as u64;
        Ok(Some(SnapshotEntry::File { content, mode: metadata.permissions().mode() }))
    }

    /// Restores different files; replaced ones go into the store.
    #[must_use]
    pub(crate) fn restore(&self, store: &Quarantine) -> GuardReport {
        let mut report = GuardReport::default();
        for (path, entry) in &self.entries {
            match put_back(path, entry, store) {
                Ok(None) => {}
                Ok(Some(restored)) => report.restored.push(restored),
                Err(error) => report.changed.push((path.clone(), error.to_string())),
            }
        }
        for path in self.intruders() {
            match store.take(&path, OBEYED_BY) {
                Ok(Some(aside)) => report.restored.push(RestoredPath { path, set_aside: Some(aside.kept) }),
                Ok(None) => {}
                Err(error) => report.changed.push((path, error.to_string())),
            }
        }
        report
    }

    /// New files in existing guarded folders.
    fn intruders(&self) -> Vec<PathBuf> {
        let folders = self.entries.iter().filter(|(_, entry)| **entry == SnapshotEntry::Folder);
        let found = folders.filter_map(|(folder, _)| fs::read_dir(folder).ok()).flatten().flatten();
        let found = found.map(|entry| entry.path());
        found.filter(|path| !self.entries.contains_key(path) && !is_sample(path)).collect()
    }
}

fn is_sample(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(SAMPLE.as_bytes())
        && fs::symlink_metadata(path).is_ok_and(|found| found.is_file())
}

/// Has a link lead again where it led; whether it did not.
pub(super) fn put_link_back(path: &Path, target: &Path, store: &Quarantine) -> io::Result<bool> {
    Ok(put_back(path, &SnapshotEntry::Link(target.to_path_buf()), store)?.is_some())
}

/// Makes a path what it was, if it is not.
fn put_back(path: &Path, entry: &SnapshotEntry, store: &Quarantine) -> io::Result<Option<RestoredPath>> {
    if is_still(path, entry)? {
        return Ok(None);
    }
    // Never write through a link that the command has put above: it may lead out of the workspace.
    let above: Vec<_> = path.ancestors().skip(1).filter(|folder| folder.is_symlink()).collect();
    for link in above.into_iter().rev() {
        store.take(link, OBEYED_BY)?;
    }
    let set_aside = store.take(path, OBEYED_BY)?.map(|aside| aside.kept);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    match entry {
        SnapshotEntry::Folder => fs::create_dir(path)?,
        SnapshotEntry::Link(target) => symlink(target, path)?,
        SnapshotEntry::File { content, mode } => {
            File::create_new(path)?.write_all(content)?;
            fs::set_permissions(path, Permissions::from_mode(*mode))?;
        }
    }
    Ok(Some(RestoredPath { path: path.to_path_buf(), set_aside }))
}

fn is_still(path: &Path, entry: &SnapshotEntry) -> io::Result<bool> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    Ok(match entry {
        SnapshotEntry::Folder => metadata.is_dir(),
        SnapshotEntry::Link(target) => metadata.is_symlink() && fs::read_link(path)? == *target,
        SnapshotEntry::File { content, mode } => {
            metadata.is_file()
                && metadata.permissions().mode() == *mode
                && metadata.len() == content.len() as u64
                && fs::read(path)? == *content
        }
    })
}
