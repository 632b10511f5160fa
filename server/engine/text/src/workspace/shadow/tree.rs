//! A shadow's knowledge of the workspace at one moment, gathered with as little reading as possible.
//!
//! Rule: a content is carried over only while nothing says that the file may have changed: its stat is the same and
//! was older than the clock's granularity when the content was read. Unknown state is reported as unknown.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::shell_change::NotKeptReason;
use crate::workspace::shadow::pack::Pack;
use crate::workspace::shadow::walk::{self, IgnoreStamps, PathKind, RULE_FILES, Stat, WalkResult};
use crate::workspace::shadow::watch::{TreeWatch, WatchedMoment};
use crate::workspace::shadow::{Coverage, CoverageGap, ShadowLimits};
use kode_base::paths::AbsPath;
use kode_journal::{BlobId, Blobs};

/// Seconds within which two writes may leave the same times on a file: FAT counts in steps of two, and the others
/// are finer. A file that was written so shortly before it was read is read again.
pub(super) const CLOCK_GRANULARITY: i64 = 2;

/// The most files with other names that are asked for one by one: a write under another name is reported for that name alone.
const MAX_LINKED: usize = 1_000;

/// The files of the workspace at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct FileTree {
    pub(super) files: HashMap<OsString, TreeEntry>,
    pub(super) pack: Pack,
    folders: HashMap<OsString, IgnoreStamps>,
    /// Whether everything was checked but what the gaps name by its path.
    is_complete: bool,
    gaps: Vec<CoverageGap>,
    /// The proof that the tree is current; `None` where only another walk shows it.
    current: Option<CurrentProof>,
}

/// The proof that a tree is current.
#[derive(Clone, Debug)]
struct CurrentProof {
    moment: WatchedMoment,
    /// Whether files are in it that a look before a command forgets.
    has_hidden: bool,
    /// Files with other names.
    linked: Vec<OsString>,
    /// Paths without a watch that decide which files are covered, with their stamps: the roots, ignore files of folders above them and of
    /// the user, files with other names.
    stats: Vec<(PathBuf, Option<Stat>)>,
}

/// The known state of a file.
#[derive(Clone, Debug)]
pub(super) struct TreeEntry {
    pub(super) stat: Stat,
    pub(super) content: EntryContent,
    /// Whether a later write would show in the stat.
    is_settled: bool,
}

/// The known content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryContent {
    /// In the pack.
    Bytes(BlobId),
    /// A link to this.
    Link(PathBuf),
    /// Unknown.
    Unknown(NotKeptReason),
}

/// The handling of a known file that exists and that the walk has not come by, because it is ignored by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HiddenFiles {
    /// It is checked nevertheless: it was covered when the command began.
    Follow,
    /// It is forgotten, like any ignored file.
    Forget,
}

/// Whether there was a file at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence {
    /// There was none.
    Certain,
    /// There may have been one.
    Unknown,
}

/// The limits of a check, and where contents are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanResources<'m> {
    pub(super) roots: &'m [AbsPath],
    pub(super) blobs: &'m Blobs,
    pub(super) limits: &'m ShadowLimits,
    pub(super) watch: Option<&'m Arc<TreeWatch>>,
}

impl TreeEntry {
    /// Whether nothing has touched the file until `later`, as far as the stat alone tells.
    pub(super) fn is_untouched(&self, later: &Self) -> bool {
        // Without the bytes there is nothing better to go by.
        let is_unknown = [self, later].iter().any(|held| matches!(held.content, EntryContent::Unknown(_)));
        self.stat == later.stat && (self.is_settled || is_unknown)
    }

    pub(super) fn kind(&self) -> PathKind {
        match self.content {
            EntryContent::Unknown(NotKeptReason::NotAFile) => PathKind::Special,
            EntryContent::Link(_) => PathKind::Link,
            EntryContent::Bytes(_) | EntryContent::Unknown(_) => PathKind::File,
        }
    }

    /// Whether the file need not be read again to know this much, its stat being the same.
    fn is_final(&self) -> bool {
        match &self.content {
            EntryContent::Bytes(_) | EntryContent::Link(_) => self.is_settled,
            EntryContent::Unknown(NotKeptReason::TooLarge { .. } | NotKeptReason::NotAFile) => true,
            EntryContent::Unknown(
                NotKeptReason::NoRoom
                | NotKeptReason::OutOfTime
                | NotKeptReason::PermissionDenied
                | NotKeptReason::NotCovered
                | NotKeptReason::Failed { .. },
            ) => false,
        }
    }

    fn kept_bytes(&self) -> u64 {
        match &self.content {
            EntryContent::Bytes(_) => self.stat.size,
            EntryContent::Link(_) | EntryContent::Unknown(_) => 0,
        }
    }
}

impl FileTree {
    /// Checks the workspace, knowing what it was at an earlier moment.
    pub(super) fn look(base: &Self, means: ScanResources<'_>, hidden: HiddenFiles) -> Self {
        let ScanResources { roots, limits, watch, .. } = means;
        let walk_deadline = Instant::now() + limits.walk_time;
        let known = (!base.folders.is_empty()).then_some(base.files.len());
        let proof = watch.and_then(|watch| CurrentProof::begin(watch.moment()?, roots));
        let changed = proof.as_ref().and_then(|_| base.found_in_changed_folders(means, walk_deadline));
        let mut found = match changed {
            Some(found) => found,
            None => walk::find(roots, limits.files, walk_deadline, known, watch),
        };
        let linked = std::mem::take(&mut found.linked);
        let mut files = HashMap::with_capacity(found.files.len());
        let (walked, was_complete) = (found.files.len(), found.is_complete());
        if hidden == HiddenFiles::Follow || !was_complete {
            files = follow(base, &mut found, means, walk_deadline);
        }
        let has_hidden = was_complete && found.files.len() > walked;
        let proof = proof.filter(|_| files.is_empty());
        let proof = proof.and_then(|proof| proof.with(linked, &found, has_hidden));
        let mut unread = Vec::new();
        // Files known before come first, so that covered files stay covered.
        let is_known = |path: &OsString| base.files.contains_key(path);
        let (known, new): (Vec<_>, Vec<_>) =
            std::mem::take(&mut found.files).into_iter().partition(|(path, _)| is_known(path));
        for (path, (kind, stat)) in known.into_iter().chain(new) {
            match base.files.get(&path) {
                Some(held) if held.stat == stat && held.is_final() => {
                    files.insert(path, held.clone());
                }
                before if before.is_some() || files.len() + unread.len() < limits.files => {
                    let is_kept = before.is_some_and(|held| held.kept_bytes() > 0);
                    unread.push(UnreadFile { is_kept, path, kind, stat });
                }
                Some(_) | None => found.gaps.push(CoverageGap::TooManyFiles { limit: limits.files }),
            }
        }
        found.gaps.dedup();
        let is_complete = found.is_complete();
        let WalkResult { folders, gaps, .. } = found;
        let mut tree = Self { files, pack: base.pack.clone(), folders, is_complete, gaps, current: proof };
        tree.read(unread, means);
        tree.compact(means);
        if !tree.is_exhaustive() {
            tree.current = None;
        }
        tree
    }

    /// Whether a look would find the same.
    pub(super) fn is_current(&self, hidden: HiddenFiles) -> bool {
        let proof = self.current.as_ref();
        proof.is_some_and(|proof| (hidden == HiddenFiles::Follow || !proof.has_hidden) && proof.holds())
    }

    /// The findings of a walk, of which only new folders are read and those with changed files; `None` where more may have changed.
    fn found_in_changed_folders(&self, means: ScanResources<'_>, deadline: Instant) -> Option<WalkResult> {
        let proof = self.current.as_ref()?;
        // A hidden file and a removed one look the same here.
        if proof.has_hidden || !proof.are_stats_same() {
            return None;
        }
        let changed = proof.moment.changed_folders()?;
        let is_changed =
            |path: &OsStr| Path::new(path).parent().is_some_and(|folder| changed.contains(folder));
        let mut found =
            WalkResult { folders: self.folders.clone(), gaps: self.gaps.clone(), ..WalkResult::default() };
        found.files.reserve(self.files.len());
        for (path, held) in &self.files {
            if !is_changed(path) {
                found.files.insert(path.clone(), (held.kind(), held.stat));
            } else if !self.folders.contains_key(Path::new(path).parent()?.as_os_str()) {
                return None;
            }
        }
        found.linked.extend(proof.linked.iter().filter(|path| !is_changed(path)).cloned());
        // Others are ignored by now.
        for folder in changed.iter().filter(|folder| self.folders.contains_key(folder.as_os_str())) {
            walk::find_in(folder, &mut found, means.limits.files, deadline, means.watch)?;
        }
        Some(found)
    }

    /// Whether another look would learn no more of files that have not changed.
    fn is_exhaustive(&self) -> bool {
        let is_bounded = |gap: &CoverageGap| matches!(gap, CoverageGap::TooManyFiles { .. });
        let may_be_read = |held: &TreeEntry| {
            matches!(
                held.content,
                EntryContent::Unknown(
                    NotKeptReason::OutOfTime | NotKeptReason::NotCovered | NotKeptReason::Failed { .. }
                )
            )
        };
        self.gaps.iter().all(is_bounded) && !self.files.values().any(may_be_read)
    }

    /// Makes all files look as if they had been written long before they were read.
    #[cfg(test)]
    pub(super) fn settle(&mut self) {
        self.files.values_mut().for_each(|held| held.is_settled = true);
    }

    /// How much of the workspace is known.
    pub(super) fn coverage(&self) -> Coverage {
        let is_kept = |held: &&TreeEntry| !matches!(held.content, EntryContent::Unknown(_));
        let kept = self.files.values().filter(is_kept).count();
        Coverage { files: self.files.len(), kept, gaps: self.gaps.clone() }
    }

    /// Tells for any path of `later` that is not in this tree whether there was no file.
    pub(super) fn absence(&self, later: &Self) -> impl Fn(&OsStr) -> Absence {
        let is_complete = self.is_complete;
        let unreadable = self.gaps.iter().filter_map(|gap| match gap {
            CoverageGap::Unreadable { path, .. } => Some(path.as_path().as_os_str().to_owned()),
            CoverageGap::TooManyFiles { .. }
            | CoverageGap::OutOfTime
            | CoverageGap::Failed { .. }
            | CoverageGap::Storage { .. } => None,
        });
        let unignored = self.folders.iter().filter_map(|(folder, before)| {
            let after = later.folders.get(folder)?;
            (before != after && !self.ignores_more(later, Path::new(folder), before, after))
                .then(|| folder.clone())
        });
        let unknown: HashSet<OsString> = unreadable.chain(unignored).collect();
        move |path| {
            let is_beneath_unknown =
                || Path::new(path).ancestors().any(|folder| unknown.contains(folder.as_os_str()));
            if !is_complete || (!unknown.is_empty() && is_beneath_unknown()) {
                Absence::Unknown
            } else {
                Absence::Certain
            }
        }
    }

    /// Whether the ignore files of a folder have only been added to, so that files seen by their later state were
    /// seen by the earlier one too.
    fn ignores_more(&self, later: &Self, folder: &Path, before: &IgnoreStamps, after: &IgnoreStamps) -> bool {
        let text = |tree: &Self, name: &str, stat: &Option<Stat>| match stat {
            None => Some(Vec::new()),
            Some(_) => match &tree.files.get(folder.join(name).as_os_str())?.content {
                EntryContent::Bytes(id) => tree.pack.get(id).ok(),
                EntryContent::Link(_) | EntryContent::Unknown(_) => None,
            },
        };
        RULE_FILES.iter().zip(before.iter().zip(after)).filter(|(_, (before, after))| before != after).all(
            |(name, (before, after))| {
                let (Some(before), Some(after)) = (text(self, name, before), text(later, name, after)) else {
                    return false;
                };
                let is_whole = before.last().is_none_or(|byte| *byte == b'\n');
                after.strip_prefix(before.as_slice()).is_some_and(|added| {
                    is_whole && !added.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"!"))
                })
            },
        )
    }

    /// Reads files until time or room is used up.
    fn read(&mut self, mut unread: Vec<UnreadFile>, means: ScanResources<'_>) {
        // Covered files stay covered; of the others the small ones come first, so that as many as possible are.
        unread.sort_unstable_by_key(|file| (!file.is_kept, file.stat.size));
        let carried: u64 = self.files.values().map(TreeEntry::kept_bytes).sum();
        let mut reader = ContentReader {
            means,
            pack: self.pack.clone(),
            deadline: Instant::now() + means.limits.read_time,
            room: means.limits.total_bytes.saturating_sub(carried),
            failure: None,
        };
        for file in unread {
            // Files that have vanished meanwhile are absent.
            if let Some(held) = reader.held(&file) {
                self.files.insert(file.path, held);
            }
        }
        self.gaps.extend(reader.failure.map(|error| CoverageGap::Storage { error }));
    }

    /// Leaves contents behind that no file has any more, once they are as much as those in use may be.
    fn compact(&mut self, means: ScanResources<'_>) {
        if self.pack.length() <= means.limits.total_bytes.saturating_mul(2) {
            return;
        }
        let compacted = Pack::default();
        let used = self.files.values().filter_map(|held| match &held.content {
            EntryContent::Bytes(id) => Some(id),
            EntryContent::Link(_) | EntryContent::Unknown(_) => None,
        });
        for id in used {
            if let Err(error) = self.pack.get(id).and_then(|bytes| compacted.put(&bytes, means.blobs)) {
                tracing::warn!(%error, "the contents of the workspace stay as large as they are");
                return;
            }
        }
        self.pack = compacted;
    }
}

impl CurrentProof {
    /// Before a walk through `roots`. Their folders are watched from then on.
    fn begin(moment: WatchedMoment, roots: &[AbsPath]) -> Option<Self> {
        let above = roots.iter().flat_map(|root| root.as_path().ancestors().skip(1));
        let rules = above.flat_map(|folder| RULE_FILES.iter().map(|name| folder.join(name)));
        let rules = rules.chain(ignore::gitignore::gitconfig_excludes_path());
        let mut stats: Vec<_> = rules.map(|path| (path.clone(), Stat::at(&path))).collect();
        for root in roots {
            // A link may lead to another folder later.
            let stat = Stat::at(root.as_path()).filter(Stat::is_folder)?;
            stats.push((root.as_path().to_owned(), Some(stat.of_a_folder())));
        }
        Some(Self { moment, has_hidden: false, linked: Vec::new(), stats })
    }

    /// After the walk; `None` where its watches are not enough. `linked` are the found files with other names.
    fn with(mut self, linked: Vec<OsString>, found: &WalkResult, has_hidden: bool) -> Option<Self> {
        if linked.len() > MAX_LINKED || !self.moment.is_whole() {
            return None;
        }
        let devices: HashSet<u64> =
            self.stats.iter().filter_map(|(_, stat)| Some(stat.as_ref()?.device)).collect();
        if !found.files.values().all(|(_, stat)| devices.contains(&stat.device)) {
            return None;
        }
        let stats = linked.iter().map(|path| {
            let stat = found.files.get(path).map(|(_, stat)| *stat);
            (PathBuf::from(path), stat)
        });
        self.stats.extend(stats);
        Some(Self { has_hidden, linked, ..self })
    }

    fn holds(&self) -> bool {
        self.are_stats_same() && self.moment.is_now()
    }

    fn are_stats_same(&self) -> bool {
        let is_same = |(path, stat): &(PathBuf, Option<Stat>)| match (stat, Stat::at(path)) {
            (Some(before), Some(now)) if now.is_folder() => before.of_a_folder() == now.of_a_folder(),
            (before, now) => before == &now,
        };
        self.stats.iter().all(is_same)
    }
}

/// A file to be read.
#[derive(Debug)]
struct UnreadFile {
    path: OsString,
    kind: PathKind,
    stat: Stat,
    /// Whether its earlier bytes are kept.
    is_kept: bool,
}

/// Reads files within bounds.
struct ContentReader<'m> {
    means: ScanResources<'m>,
    pack: Pack,
    deadline: Instant,
    /// Bytes that may still be kept.
    room: u64,
    /// Why nothing can be kept any more.
    failure: Option<String>,
}

impl ContentReader<'_> {
    /// The knowledge of a file; `None` when it is gone.
    fn held(&mut self, file: &UnreadFile) -> Option<TreeEntry> {
        // Before the stat that counts, so that a write in between is noticed.
        let now = clock(SystemTime::now());
        let content = match file.kind {
            PathKind::Special => Ok((file.stat, EntryContent::Unknown(NotKeptReason::NotAFile))),
            PathKind::Link => {
                std::fs::read_link(&file.path).map(|target| (file.stat, EntryContent::Link(target)))
            }
            PathKind::File => match self.refusal(file.stat.size) {
                Some(reason) => Ok((file.stat, EntryContent::Unknown(reason))),
                None => self.keep(Path::new(&file.path)),
            },
        };
        let (stat, content) = match content {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => (file.stat, EntryContent::Unknown(NotKeptReason::unreadable(&error))),
        };
        let is_settled = stat.modified.0.max(stat.changed.0) + CLOCK_GRANULARITY < now.0;
        let held = TreeEntry { stat, content, is_settled };
        self.room = self.room.saturating_sub(held.kept_bytes());
        Some(held)
    }

    /// Why a file of this size is not read.
    fn refusal(&self, size: u64) -> Option<NotKeptReason> {
        if size > self.means.limits.file_bytes {
            Some(NotKeptReason::TooLarge { size })
        } else if size > self.room {
            Some(NotKeptReason::NoRoom)
        } else if Instant::now() >= self.deadline {
            Some(NotKeptReason::OutOfTime)
        } else {
            self.failure.clone().map(|error| NotKeptReason::Failed { error })
        }
    }

    /// Reads a file and keeps its bytes.
    fn keep(&mut self, path: &Path) -> io::Result<(Stat, EntryContent)> {
        let (file, mut stat) = open(path)?;
        let mut bytes = Vec::with_capacity(usize::try_from(stat.size.min(self.room)).unwrap_or_default());
        let limit = self.room.min(self.means.limits.file_bytes);
        file.take(limit + 1).read_to_end(&mut bytes)?;
        let size = bytes.len() as u64;
        if let Some(reason) = self.refusal(size) {
            return Ok((stat, EntryContent::Unknown(reason)));
        }
        // It may be growing; the stat then differs at the next look, whatever size is noted here.
        stat.size = size;
        match self.pack.put(&bytes, self.means.blobs) {
            Ok(id) => Ok((stat, EntryContent::Bytes(id))),
            Err(error) => {
                let error = format!("{}: {error}", self.means.blobs.folder().display());
                self.failure = Some(error.clone());
                Ok((stat, EntryContent::Unknown(NotKeptReason::Failed { error })))
            }
        }
    }
}

/// Opens a regular file, and neither follows a link nor waits for the other end of a pipe that has taken its place.
pub(super) fn open(path: &Path) -> io::Result<(File, Stat)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() {
        Ok((file, Stat::of(&metadata)))
    } else {
        Err(io::Error::other("it is not a regular file any more"))
    }
}

/// Checks the known files that the walk has not come by, after it has watched their folders, and adds those that exist. Returns
/// those of which nothing can be learned, as they were.
fn follow(
    base: &FileTree,
    found: &mut WalkResult,
    means: ScanResources<'_>,
    deadline: Instant,
) -> HashMap<OsString, TreeEntry> {
    let mut unknown = HashMap::new();
    let mut folders = HashMap::new();
    for (path, held) in &base.files {
        if found.files.contains_key(path) {
            continue;
        }
        if Instant::now() >= deadline {
            unknown.insert(path.clone(), held.clone());
            continue;
        }
        let file = Path::new(path);
        let is_reached = file.parent().is_some_and(|folder| is_real_folder(folder, means, &mut folders));
        if !is_reached {
            continue;
        }
        match file.symlink_metadata() {
            Ok(metadata) => {
                let stat = Stat::of(&metadata);
                found.files.extend(walk::kind(&metadata).map(|kind| (path.clone(), (kind, stat))));
            }
            Err(error) if is_missing(&error) => {}
            Err(_) => {
                unknown.insert(path.clone(), held.clone());
            }
        }
    }
    if !unknown.is_empty() && found.gaps.is_empty() {
        found.gaps.push(CoverageGap::OutOfTime);
    }
    unknown
}

/// Whether a folder is reached from its root without following a link. One that cannot be checked counts as
/// reached: the check of its content will tell.
fn is_real_folder(folder: &Path, means: ScanResources<'_>, known: &mut HashMap<PathBuf, bool>) -> bool {
    if means.roots.iter().any(|root| root.as_path() == folder) {
        return true;
    }
    if let Some(is_real) = known.get(folder) {
        return *is_real;
    }
    let is_below_real = folder.parent().is_some_and(|parent| is_real_folder(parent, means, known));
    if let (true, Some(watch)) = (is_below_real, means.watch) {
        watch.enter(folder);
    }
    let is_real = is_below_real
        && match folder.symlink_metadata() {
            Ok(metadata) => metadata.is_dir(),
            Err(error) => !is_missing(&error),
        };
    known.insert(folder.to_path_buf(), is_real);
    is_real
}

/// Whether an error says that nothing is there.
pub(super) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Seconds and nanoseconds since 1970.
pub(super) fn clock(time: SystemTime) -> (i64, i64) {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    (i64::try_from(since.as_secs()).unwrap_or(i64::MAX), i64::from(since.subsec_nanos()))
}
