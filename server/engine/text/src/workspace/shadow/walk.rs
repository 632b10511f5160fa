//! Finds the files of the workspace and what the system says about them.
//!
//! Rule: files and links are found as the search tools find them (ignore files obeyed, hidden files seen, version
//! control folders not, links not followed); nothing is opened, and unchecked places are reported.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::Metadata;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use ignore::{DirEntry, WalkBuilder, WalkState};
use parking_lot::Mutex;

use crate::workspace::shadow::CoverageGap;
use crate::workspace::shadow::watch::TreeWatch;
use kode_base::paths::AbsPath;
use kode_base::vcs::is_vcs_folder;

/// Maximum number of unreadable folders that are named; more are like there being too much to check.
const MAX_UNREADABLE: usize = 20;

/// Files up to which one thread walks: it takes 4 µs for each, and threads that wait for each other's folders sleep for
/// milliseconds.
const ONE_THREAD: usize = 500;

/// Entries that a thread of the walk gathers before it hands them over.
const BATCH: usize = 256;

/// Files of a folder with the ignore rules for it and below.
pub(super) const RULE_FILES: [&str; 3] = [".gitignore", ".ignore", ".git/info/exclude"];

/// The metadata of a file without opening it. Equal ones mean the same content, unless the file was
/// written within the clock's granularity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stat {
    /// Seconds and nanoseconds since 1970, as the next.
    pub(super) modified: (i64, i64),
    /// When content, mode or name changed; programs cannot set it.
    pub(super) changed: (i64, i64),
    pub(super) size: u64,
    pub(super) device: u64,
    pub(super) inode: u64,
    /// File type and mode bits.
    pub(super) mode: u32,
}

/// The content at a path, folders aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathKind {
    File,
    Link,
    /// A pipe, a socket, a device.
    Special,
}

/// The ignore files of a folder.
pub(super) type IgnoreStamps = [Option<Stat>; RULE_FILES.len()];

/// The findings of a walk.
#[derive(Debug, Default)]
pub(super) struct WalkResult {
    pub(super) files: HashMap<OsString, (PathKind, Stat)>,
    /// The folders looked into, and the folders around the workspace's whose rules count as well.
    pub(super) folders: HashMap<OsString, IgnoreStamps>,
    /// Files that have other names as well.
    pub(super) linked: Vec<OsString>,
    /// Unchecked places.
    pub(super) gaps: Vec<CoverageGap>,
}

impl WalkResult {
    /// Whether everything was checked, folders aside that this user may not read.
    pub(super) fn is_complete(&self) -> bool {
        self.gaps.iter().all(|gap| matches!(gap, CoverageGap::Unreadable { .. }))
    }

    /// Adds a file or link. One that vanishes between the listing and its check is absent.
    fn add_file(&mut self, path: &Path) {
        let Ok(metadata) = path.symlink_metadata() else { return };
        let Some(kind) = kind(&metadata) else { return };
        if kind == PathKind::File && has_other_names(&metadata) {
            self.linked.push(path.into());
        }
        self.files.insert(path.into(), (kind, Stat::of(&metadata)));
    }

    fn note(&mut self, gap: CoverageGap) {
        if !self.gaps.contains(&gap) {
            self.gaps.push(gap);
        }
    }
}

impl Stat {
    pub(super) fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Self {
                modified: (metadata.mtime(), metadata.mtime_nsec()),
                changed: (metadata.ctime(), metadata.ctime_nsec()),
                size: metadata.size(),
                device: metadata.dev(),
                inode: metadata.ino(),
                mode: metadata.mode(),
            }
        }
        #[cfg(not(unix))]
        {
            let modified = metadata.modified().map(super::tree::clock).unwrap_or_default();
            let mode = if metadata.permissions().readonly() { 0o444 } else { 0o644 };
            let size = metadata.len();
            Self { modified, changed: modified, size, device: 0, inode: 0, mode }
        }
    }
}

#[cfg(unix)]
const TYPE_BITS: u32 = 0o170_000;
#[cfg(unix)]
const FOLDER: u32 = 0o040_000;

impl Stat {
    /// That at a path; `None` where nothing is.
    pub(super) fn at(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().map(|metadata| Self::of(&metadata))
    }

    #[cfg(unix)]
    pub(super) fn is_folder(&self) -> bool {
        self.mode & TYPE_BITS == FOLDER
    }

    #[cfg(not(unix))]
    pub(super) fn is_folder(&self) -> bool {
        false
    }

    /// The identity of a folder, without its content.
    pub(super) fn of_a_folder(&self) -> Self {
        Self { modified: (0, 0), changed: (0, 0), size: 0, ..*self }
    }
}

/// The content at a path; `None` for a folder.
pub(super) fn kind(metadata: &Metadata) -> Option<PathKind> {
    let kind = metadata.file_type();
    match () {
        () if kind.is_dir() => None,
        () if kind.is_symlink() => Some(PathKind::Link),
        () if kind.is_file() => Some(PathKind::File),
        () => Some(PathKind::Special),
    }
}

/// Checks everything beneath `roots`, at `limit` files at most and until `deadline`. `known` is the number of files at the last
/// check, if there was one. Each folder is watched before it is read.
pub(super) fn find(
    roots: &[AbsPath],
    limit: usize,
    deadline: Instant,
    known: Option<usize>,
    watch: Option<&Arc<TreeWatch>>,
) -> WalkResult {
    let found = Mutex::new(WalkResult::default());
    let Some((first, more)) = roots.split_first() else { return WalkResult::default() };
    let mut builder = WalkBuilder::new(first);
    for root in more {
        builder.add(root);
    }
    if known.is_some_and(|files| files <= ONE_THREAD) {
        builder.threads(1);
    }
    if let Some(watch) = watch {
        roots.iter().for_each(|root| watch.enter(root.as_path()));
    }
    let watch = watch.cloned();
    builder
        .hidden(false)
        .require_git(false)
        .filter_entry(move |entry| {
            let is_walked = entry.depth() == 0 || !is_vcs_folder(entry.path());
            if let (true, Some(watch)) =
                (is_walked && entry.file_type().is_some_and(|kind| kind.is_dir()), &watch)
            {
                watch.enter(entry.path());
            }
            is_walked
        })
        .build_parallel()
        .run(|| {
            let mut batch = Batch { own: WalkResult::default(), all: &found };
            Box::new(move |entry| {
                match entry {
                    Ok(entry) => batch.add(&entry),
                    Err(error) => batch.fail(&error),
                }
                if Instant::now() >= deadline {
                    batch.own.note(CoverageGap::OutOfTime);
                    return WalkState::Quit;
                }
                if batch.own.files.len() >= BATCH && batch.hand_over() > limit {
                    batch.own.note(CoverageGap::TooManyFiles { limit });
                    return WalkState::Quit;
                }
                WalkState::Continue
            })
        });
    let mut found = found.into_inner();
    for folder in roots.iter().flat_map(|root| root.as_path().ancestors().skip(1)) {
        found.folders.entry(folder.into()).or_insert_with(|| rules(folder));
    }
    if found.files.len() > limit {
        found.note(CoverageGap::TooManyFiles { limit });
    }
    found
}

/// Checks the files of one folder, as [`find`] would, and all of a folder in it that was not found before, and adds them; `None` when
/// that is not certain.
pub(super) fn find_in(
    folder: &Path,
    found: &mut WalkResult,
    limit: usize,
    deadline: Instant,
    watch: Option<&Arc<TreeWatch>>,
) -> Option<()> {
    let mut builder = WalkBuilder::new(folder);
    builder.max_depth(Some(1)).hidden(false).require_git(false);
    builder.filter_entry(|entry| entry.depth() == 0 || !is_vcs_folder(entry.path()));
    for entry in builder.build() {
        let entry = entry.ok()?;
        if !entry.file_type().is_some_and(|kind| kind.is_dir()) {
            found.add_file(entry.path());
        } else if !found.folders.contains_key(entry.path().as_os_str()) {
            let new = AbsPath::new(entry.path()).ok()?;
            let mut new = find(&[new], limit, deadline, Some(0), watch);
            if !new.gaps.is_empty() {
                return None;
            }
            found.files.extend(new.files);
            let is_new = |path: &OsString| Path::new(path).starts_with(entry.path());
            found.folders.extend(new.folders.into_iter().filter(|(path, _)| is_new(path)));
            found.linked.append(&mut new.linked);
        }
    }
    Some(())
}

/// The findings of one thread that are not handed over yet.
struct Batch<'f> {
    own: WalkResult,
    all: &'f Mutex<WalkResult>,
}

impl Batch<'_> {
    fn add(&mut self, entry: &DirEntry) {
        if entry.depth() == 0 || entry.file_type().is_some_and(|kind| kind.is_dir()) {
            self.own.folders.insert(entry.path().into(), rules(entry.path()));
            return;
        }
        self.own.add_file(entry.path());
    }

    fn fail(&mut self, error: &ignore::Error) {
        if error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            return;
        }
        match folder_of(error).and_then(|path| AbsPath::new(path).ok()) {
            Some(path) => self.own.note(CoverageGap::Unreadable { path, error: error.to_string() }),
            None => self.own.note(CoverageGap::Failed { error: error.to_string() }),
        }
    }

    /// Returns how many files all have found.
    fn hand_over(&mut self) -> usize {
        let mut own = std::mem::take(&mut self.own);
        let mut all = self.all.lock();
        all.files.extend(own.files.drain());
        all.folders.extend(own.folders.drain());
        all.linked.append(&mut own.linked);
        for gap in own.gaps {
            if all.gaps.len() < MAX_UNREADABLE {
                all.note(gap);
            } else {
                all.note(CoverageGap::Failed {
                    error: "more folders than can be named cannot be read".to_owned(),
                });
            }
        }
        all.files.len()
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.hand_over();
    }
}

#[cfg(unix)]
fn has_other_names(metadata: &Metadata) -> bool {
    std::os::unix::fs::MetadataExt::nlink(metadata) > 1
}

#[cfg(not(unix))]
fn has_other_names(_metadata: &Metadata) -> bool {
    false
}

fn rules(folder: &Path) -> IgnoreStamps {
    RULE_FILES.map(|name| Stat::at(&folder.join(name)))
}

fn folder_of(error: &ignore::Error) -> Option<&Path> {
    match error {
        ignore::Error::WithPath { path, .. } => Some(path),
        ignore::Error::WithDepth { err, .. } | ignore::Error::WithLineNumber { err, .. } => folder_of(err),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn beside_the_files_of_a_folder_new_folders_alone_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let write = |name: &str| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        };
        ["a", "known/b", "known/deep/c"].into_iter().for_each(write);
        fs::write(root.join(".gitignore"), "ignored\n*.log\n").unwrap();
        let deadline = Instant::now() + std::time::Duration::from_secs(60);
        let before = find(std::slice::from_ref(&root), 100, deadline, None, None);
        ["new/d", "new/deep/e", "new/.git/f", "new/g.log", "ignored/h", "known/deep/i"]
            .into_iter()
            .for_each(write);
        let mut found = WalkResult { folders: before.folders, ..WalkResult::default() };
        find_in(root.as_path(), &mut found, 100, deadline, None).unwrap();
        let mut names: Vec<_> = found.files.keys().collect();
        names.sort();
        let expected =
            [".gitignore", "a", "new/d", "new/deep/e"].map(|name| OsString::from(root.join(name).as_path()));
        assert_eq!(names, expected.iter().collect::<Vec<_>>());
        for name in ["new", "new/deep", "known/deep"] {
            assert!(found.folders.contains_key(root.join(name).as_path().as_os_str()), "{name}");
        }
        // Too many files for a part of the workspace may be few enough for all of it.
        fs::create_dir(root.join("more")).unwrap();
        ["more/1", "more/2", "more/3"].into_iter().for_each(write);
        assert!(find_in(root.as_path(), &mut found, 2, deadline, None).is_none());
    }
}
