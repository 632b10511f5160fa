//! Finds out what a command has changed in the workspace, with the bytes from before, so that it can be undone.
//!
//! Rule: a shadow never holds up a command: it reports content that it cannot check or keep, and all its bounds are
//! here. Nothing outside the workspace's folders is read, no link is followed, and ignored files are not covered.

mod pack;
mod restore;
mod tree;
mod walk;
mod watch;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use crate::shell_change::{FileImage, NotKeptReason, ShellChange};
use crate::workspace::shadow::pack::Pack;
use crate::workspace::shadow::restore::{FileRestore, MODE_BITS};
use crate::workspace::shadow::tree::{
    Absence, CLOCK_GRANULARITY, EntryContent, FileTree, HiddenFiles, ScanResources, TreeEntry,
};
use crate::workspace::shadow::walk::{PathKind, Stat};
use crate::workspace::shadow::watch::TreeWatch;
use kode_base::paths::AbsPath;
use kode_journal::{BlobId, Blobs};
use parking_lot::Mutex;

pub use restore::RestoreError;
pub(super) use restore::mode as mode_at;

/// Files checked. A walk over this many still takes less time than most commands; larger trees are mostly made of
/// what ought to be ignored.
const MAX_FILES: usize = 50_000;

/// The largest file whose bytes are kept: sources are smaller, and larger files are mostly made by programs.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Bytes kept of all files together. On the disk it is up to twice as much, until the session is closed.
const MAX_TOTAL_BYTES: u64 = 128 << 20;

/// How long a walk may take before the command has waited long enough for it.
const MAX_WALK_TIME: Duration = Duration::from_secs(3);

/// How long files are read. The rest is read before the next command.
const MAX_READ_TIME: Duration = Duration::from_secs(3);

/// The limits of a shadow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowLimits {
    /// Files and links checked.
    pub files: usize,
    /// Bytes kept of one file.
    pub file_bytes: u64,
    /// Bytes kept of all files together.
    pub total_bytes: u64,
    /// Time for finding the files.
    pub walk_time: Duration,
    /// Time for reading those that have changed.
    pub read_time: Duration,
}

impl Default for ShadowLimits {
    fn default() -> Self {
        Self {
            files: MAX_FILES,
            file_bytes: MAX_FILE_BYTES,
            total_bytes: MAX_TOTAL_BYTES,
            walk_time: MAX_WALK_TIME,
            read_time: MAX_READ_TIME,
        }
    }
}

/// How much of the workspace is covered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Files and links that were checked.
    pub files: usize,
    /// The changed files that could be restored.
    pub kept: usize,
    /// Unchecked places. Changes there may be missing.
    pub gaps: Vec<CoverageGap>,
}

/// Something that was not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CoverageGap {
    /// There are more files than are checked.
    TooManyFiles {
        /// How many are.
        limit: usize,
    },
    /// There was no time for more.
    OutOfTime,
    /// A folder cannot be read.
    Unreadable {
        /// The folder.
        path: AbsPath,
        /// The error of the system.
        error: String,
    },
    /// The system failed, and did not say where.
    Failed {
        /// Its error.
        error: String,
    },
    /// Contents could not be kept. Changes are reported nevertheless.
    Storage {
        /// The error of the system.
        error: String,
    },
}

impl fmt::Display for CoverageGap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyFiles { limit } => {
                write!(formatter, "the workspace has more than the {limit} files that are compared")
            }
            Self::OutOfTime => formatter.write_str("there was no time to compare all files"),
            Self::Unreadable { path, error } => write!(formatter, "`{path}` cannot be read: {error}"),
            Self::Failed { error } => write!(formatter, "some files could not be read: {error}"),
            Self::Storage { error } => write!(formatter, "file contents could not be kept: {error}"),
        }
    }
}

/// The workspace as it was before a command.
#[derive(Clone, Debug)]
pub struct Scan {
    tree: Arc<FileTree>,
    /// The clock before it.
    started: (i64, i64),
}

impl Scan {
    /// How much is covered.
    #[must_use]
    pub fn coverage(&self) -> Coverage {
        self.tree.coverage()
    }

    /// Whether the last change of a file's content, mode or name was before it.
    fn is_younger_than(&self, stat: &Stat) -> bool {
        stat.changed.0 + CLOCK_GRANULARITY < self.started.0
    }
}

/// The changes of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellChanges {
    /// The changed files and links: first those that were there before, then the created ones, each by name. To
    /// bring back the former state, they are restored from the last to the first, and from the first to the last to
    /// do it again.
    pub changes: Vec<ShellChange>,
    /// How much was covered, gaps from before and after the command.
    pub coverage: Coverage,
}

/// The known state of the workspace's files from one command to the next. All its methods block.
#[derive(Debug)]
pub struct Shadow {
    roots: Vec<AbsPath>,
    /// Further folders whose files can be restored, although no command is followed there.
    restorable: Vec<AbsPath>,
    blobs: Blobs,
    limits: ShadowLimits,
    tree: Mutex<Arc<FileTree>>,
    /// Nothing where there can be none.
    watch: OnceLock<Option<Arc<TreeWatch>>>,
}

impl Shadow {
    /// A shadow of the folders `roots` that knows nothing yet and keeps contents in `blobs`. Touches no file.
    #[must_use]
    pub fn new(roots: Vec<AbsPath>, blobs: Blobs, limits: ShadowLimits) -> Self {
        let is_nested = |root: &AbsPath| roots.iter().any(|other| other != root && root.is_within(other));
        let mut outer: Vec<AbsPath> = roots.iter().filter(|root| !is_nested(root)).cloned().collect();
        outer.sort();
        outer.dedup();
        let (restorable, tree, watch) = Default::default();
        Self { roots: outer, restorable, blobs, limits, tree, watch }
    }

    /// The same, which also restores files of these folders, where no command is followed.
    #[must_use]
    pub fn restoring_in(self, folders: &[AbsPath]) -> Self {
        Self { restorable: folders.to_vec(), ..self }
    }

    /// The folders whose files can be restored.
    fn places(&self) -> Vec<AbsPath> {
        self.roots.iter().chain(&self.restorable).cloned().collect()
    }

    /// Checks the workspace before a command, and keeps what has changed since the last look. Where the kernel reports no
    /// change it costs nothing, else the reading of changed folders and files, or a walk.
    #[must_use]
    pub fn before(&self) -> Scan {
        let base = Arc::clone(&self.tree.lock());
        self.look(&base, HiddenFiles::Forget)
    }

    /// Checks the workspace after a command and reports the differences. With several commands at a time the
    /// changes of one are also told for the others.
    ///
    /// A file that was touched and not changed is not told, unless its bytes are not kept.
    #[must_use]
    pub fn after(&self, scan: &Scan) -> ShellChanges {
        self.since(scan).0
    }

    /// As [`Self::after`], with the workspace as it was found: what changes from then on is between that scan and the next.
    #[must_use]
    pub fn since(&self, scan: &Scan) -> (ShellChanges, Scan) {
        let before = &scan.tree;
        let later = self.look(before, HiddenFiles::Follow);
        let after = &later.tree;
        let mut coverage = after.coverage();
        for gap in before.coverage().gaps {
            if !coverage.gaps.contains(&gap) {
                coverage.gaps.push(gap);
            }
        }
        let mut keeper = BlobCollector { blobs: &self.blobs, ids: HashSet::new(), failure: None };
        let mut changes: Vec<_> = differences(scan, after)
            .into_iter()
            .filter_map(|difference| {
                let path = AbsPath::new(PathBuf::from(difference.path)).ok()?;
                let image = |side, tree: &FileTree, keeper: &mut BlobCollector<'_>| match side {
                    TreeSide::Absent => FileImage::Absent,
                    TreeSide::Uncertain => FileImage::NotKept { reason: NotKeptReason::NotCovered },
                    TreeSide::There(held) => keeper.image(held, &tree.pack),
                };
                let old = image(difference.before, before, &mut keeper);
                let new = image(difference.after, after, &mut keeper);
                Some(ShellChange { path, before: old, after: new })
            })
            .collect();
        changes.sort_by(|one, other| {
            let is_created = |change: &ShellChange| change.before == FileImage::Absent;
            (is_created(one), &one.path).cmp(&(is_created(other), &other.path))
        });
        if let Some(error) = keeper.finish() {
            changes.iter_mut().for_each(|change| change.forget(&error));
            coverage.gaps.push(CoverageGap::Storage { error });
        }
        (ShellChanges { changes, coverage }, later)
    }

    /// Makes `wanted` of a file, link or absence that is `expected` by now; does nothing when it is `wanted`
    /// already. Folders are made as needed, with the permissions new folders get. Owner and mode bits come back,
    /// access control lists and extended attributes do not.
    ///
    /// # Errors
    /// [`RestoreError`]; the file is as it was then.
    pub fn restore_file(
        &self,
        path: &AbsPath,
        expected: &FileImage,
        wanted: &FileImage,
    ) -> Result<(), RestoreError> {
        let max_bytes = self.limits.file_bytes;
        let roots = &self.places();
        FileRestore { roots, blobs: &self.blobs, max_bytes, path, expected }.put(wanted)
    }

    /// The content at a path now; its bytes are kept.
    #[must_use]
    pub fn image(&self, path: &AbsPath) -> FileImage {
        restore::image(&self.places(), path, &self.blobs, self.limits.file_bytes)
    }

    /// The mode bits of a file as an image has them; `None` if absent, or a link.
    #[must_use]
    pub fn mode(&self, path: &AbsPath) -> Option<u32> {
        restore::mode(path.as_path())
    }

    fn means(&self) -> ScanResources<'_> {
        let watch = self.watch.get_or_init(|| TreeWatch::over(&self.roots)).as_ref();
        ScanResources { roots: &self.roots, blobs: &self.blobs, limits: &self.limits, watch }
    }

    fn look(&self, base: &Arc<FileTree>, hidden: HiddenFiles) -> Scan {
        let started = tree::clock(SystemTime::now());
        let tree = if base.is_current(hidden) {
            Arc::clone(base)
        } else {
            Arc::new(FileTree::look(base, self.means(), hidden))
        };
        *self.tree.lock() = Arc::clone(&tree);
        Scan { tree, started }
    }
}

impl ShellChange {
    /// Gives up the bytes.
    fn forget(&mut self, error: &str) {
        for image in [&mut self.before, &mut self.after] {
            if let FileImage::Kept { .. } = image {
                *image = FileImage::NotKept { reason: NotKeptReason::Failed { error: error.to_owned() } };
            }
        }
    }
}

/// A path that is different in two trees.
struct Difference<'t> {
    path: OsString,
    before: TreeSide<'t>,
    after: TreeSide<'t>,
}

#[derive(Clone, Copy)]
enum TreeSide<'t> {
    Absent,
    /// There may or may not have been a file.
    Uncertain,
    There(&'t TreeEntry),
}

fn differences<'t>(scan: &'t Scan, after: &'t Arc<FileTree>) -> Vec<Difference<'t>> {
    let mut differences = Vec::new();
    let before = &scan.tree;
    if Arc::ptr_eq(before, after) {
        return differences;
    }
    let mut push = |path: &OsStr, before, after| {
        differences.push(Difference { path: path.to_owned(), before, after });
    };
    for (path, old) in &before.files {
        match after.files.get(path) {
            Some(new) if is_same(old, new) => {}
            Some(new) => push(path, TreeSide::There(old), TreeSide::There(new)),
            None if old.kind() == PathKind::Special => {}
            None => push(path, TreeSide::There(old), TreeSide::Absent),
        }
    }
    let absence = before.absence(after);
    for (path, new) in &after.files {
        if before.files.contains_key(path) || new.kind() == PathKind::Special {
            continue;
        }
        match absence(path) {
            Absence::Certain => push(path, TreeSide::Absent, TreeSide::There(new)),
            // Not covered before, and not touched by the command.
            Absence::Unknown if scan.is_younger_than(&new.stat) => {}
            Absence::Unknown => push(path, TreeSide::Uncertain, TreeSide::There(new)),
        }
    }
    differences
}

fn is_same(old: &TreeEntry, new: &TreeEntry) -> bool {
    let mode = |held: &TreeEntry| held.stat.mode & MODE_BITS;
    match (&old.content, &new.content) {
        _ if old.is_untouched(new) => true,
        (EntryContent::Bytes(old_id), EntryContent::Bytes(new_id)) => {
            old_id == new_id && mode(old) == mode(new)
        }
        (EntryContent::Link(old), EntryContent::Link(new)) => old == new,
        (EntryContent::Unknown(_), EntryContent::Unknown(_)) => {
            old.kind() == PathKind::Special && new.kind() == PathKind::Special
        }
        (EntryContent::Bytes(_) | EntryContent::Link(_) | EntryContent::Unknown(_), _) => false,
    }
}

/// Makes blobs of the contents that are needed.
struct BlobCollector<'k> {
    blobs: &'k Blobs,
    ids: HashSet<BlobId>,
    failure: Option<String>,
}

impl BlobCollector<'_> {
    fn image(&mut self, held: &TreeEntry, pack: &Pack) -> FileImage {
        let id = match &held.content {
            EntryContent::Link(target) => return FileImage::Symlink { target: target.clone() },
            EntryContent::Unknown(reason) => return FileImage::NotKept { reason: reason.clone() },
            EntryContent::Bytes(id) => *id,
        };
        if self.failure.is_none() && !self.ids.contains(&id) {
            match pack.get(&id).and_then(|bytes| self.blobs.put_unsynced(&bytes)) {
                // Of a scratch file that was damaged: the content it has now is not the one that was there.
                Ok(kept) if kept != id => self.failure = Some("the bytes were damaged meanwhile".to_owned()),
                Ok(_) => {
                    self.ids.insert(id);
                }
                Err(error) => self.failure = Some(error.to_string()),
            }
        }
        match &self.failure {
            Some(error) => FileImage::NotKept { reason: NotKeptReason::Failed { error: error.clone() } },
            None => FileImage::Kept { blob: id, mode: held.stat.mode & MODE_BITS },
        }
    }

    /// Makes the blobs survive a power cut. Returns why not, if they may not.
    fn finish(self) -> Option<String> {
        let ids: Vec<_> = self.ids.into_iter().collect();
        self.failure.or_else(|| self.blobs.sync(&ids).err().map(|error| error.to_string()))
    }
}
