//! Keeping what guarded files say before a command, and putting it back afterwards.
//!
//! Rule: what is kept is bounded, and what did not fit is said. Only what differs is touched, and what is found
//! there goes aside before.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{GuardSurvey, GuardedPath};
use crate::sandbox::{GuardReport, RestoredPath};

/// The largest file that is kept.
const MAX_FILE: u64 = 1 << 20;
/// How much is kept of all files together.
const MAX_BYTES: u64 = 32 << 20;
/// How many files are kept.
const MAX_FILES: usize = 2000;

/// Guarded files as they were.
#[derive(Debug)]
pub(crate) struct GuardSnapshot {
    survey: GuardSurvey,
    entries: BTreeMap<PathBuf, SnapshotEntry>,
    bytes: u64,
    incomplete: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
enum SnapshotEntry {
    File { content: Vec<u8>, mode: u32 },
    Link(PathBuf),
    Folder,
}

impl GuardSnapshot {
    /// Only what can be replaced although all else is held: links.
    #[must_use]
    pub(crate) fn links(survey: GuardSurvey) -> Self {
        let links = survey.found.iter().filter_map(|(path, guarded)| match guarded {
            GuardedPath::Link(target) => Some((path.clone(), SnapshotEntry::Link(target.clone()))),
            GuardedPath::File | GuardedPath::Folder => None,
        });
        Self { entries: links.collect(), bytes: 0, incomplete: survey.incomplete.clone(), survey }
    }

    /// All that is guarded, with what is in guarded folders.
    #[must_use]
    pub(crate) fn contents(survey: GuardSurvey) -> Self {
        let incomplete = survey.incomplete.clone();
        let mut kept = Self { entries: BTreeMap::new(), bytes: 0, incomplete, survey };
        let paths: Vec<_> = kept.survey.found.keys().cloned().collect();
        for path in paths {
            kept.keep(&path);
        }
        kept
    }

    fn keep(&mut self, path: &Path) {
        if self.entries.len() >= MAX_FILES {
            self.incomplete.get_or_insert_with(|| {
                format!("more than {MAX_FILES} guarded files; the others are not put back when changed")
            });
            return;
        }
        let Some(entry) = self.entry(path) else { return };
        let is_folder = entry == SnapshotEntry::Folder;
        self.entries.insert(path.to_path_buf(), entry);
        if let (true, Ok(entries)) = (is_folder, fs::read_dir(path)) {
            for entry in entries.flatten() {
                self.keep(&entry.path());
            }
        }
    }

    fn entry(&mut self, path: &Path) -> Option<SnapshotEntry> {
        let metadata = fs::symlink_metadata(path).ok()?;
        if metadata.is_symlink() {
            return fs::read_link(path).ok().map(SnapshotEntry::Link);
        }
        if metadata.is_dir() {
            return Some(SnapshotEntry::Folder);
        }
        if !metadata.is_file() {
            return None;
        }
        if metadata.len() > MAX_FILE || self.bytes + metadata.len() > MAX_BYTES {
            self.incomplete.get_or_insert_with(|| {
                format!("{} is too large to be put back if it is changed", path.display())
            });
            return None;
        }
        let content = fs::read(path).ok()?;
        self.bytes += content.len() as u64;
        Some(SnapshotEntry::File { content, mode: metadata.permissions().mode() })
    }

    /// Says what is new, and puts back what differs; what is replaced goes into the folder `aside`.
    #[must_use]
    pub(crate) fn restore(&self, after: &GuardSurvey, aside: &Path) -> GuardReport {
        let mut report = GuardReport {
            created: after.beyond(&self.survey),
            incomplete: self.incomplete.clone().or_else(|| after.incomplete.clone()),
            ..GuardReport::default()
        };
        for (path, entry) in &self.entries {
            match put_back(path, entry, aside) {
                Ok(None) => {}
                Ok(Some(restored)) => report.restored.push(restored),
                Err(error) => report.changed.push((path.clone(), error.to_string())),
            }
        }
        for path in self.intruders() {
            match set_aside(&path, aside) {
                Ok(set_aside) => report.restored.push(RestoredPath { path, set_aside }),
                Err(error) => report.changed.push((path, error.to_string())),
            }
        }
        report
    }

    /// What is new in guarded folders that were there.
    fn intruders(&self) -> Vec<PathBuf> {
        // When not all was kept, what was left out looks new.
        if self.incomplete.is_some() {
            return Vec::new();
        }
        let folders = self.entries.iter().filter(|(_, entry)| **entry == SnapshotEntry::Folder);
        let found = folders.filter_map(|(folder, _)| fs::read_dir(folder).ok()).flatten().flatten();
        found.map(|entry| entry.path()).filter(|path| !self.entries.contains_key(path)).collect()
    }
}

/// Makes a path what it was, if it is not.
fn put_back(path: &Path, entry: &SnapshotEntry, aside: &Path) -> io::Result<Option<RestoredPath>> {
    if is_still(path, entry)? {
        return Ok(None);
    }
    // Never write through a link that the command has put above: it may lead out of the workspace.
    let above: Vec<_> = path.ancestors().skip(1).filter(|folder| folder.is_symlink()).collect();
    for link in above.into_iter().rev() {
        self::set_aside(link, aside)?;
    }
    let set_aside = set_aside(path, aside)?;
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
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
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

/// Takes away what is at a path, keeping it under a name of its own.
fn set_aside(path: &Path, aside: &Path) -> io::Result<Option<PathBuf>> {
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(None) };
    fs::create_dir_all(aside)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = fs::read_dir(aside)?.count();
    let kept = aside.join(format!("{number}-{name}"));
    match fs::rename(path, &kept) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices && metadata.is_file() => {
            fs::copy(path, &kept)?;
            fs::remove_file(path)?;
        }
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices && metadata.is_symlink() => {
            symlink(fs::read_link(path)?, &kept)?;
            fs::remove_file(path)?;
        }
        Err(error) => return Err(error),
    }
    Ok(Some(kept))
}
