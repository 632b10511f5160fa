//! Cleanup of old sessions, and of unused files of others.
//!
//! Rule: it is done at most once a day, by one process. Sessions that are archived, that are open anywhere, or that cannot
//! be read are not deleted. Nothing is deleted before a cleanup has announced it, a day or more ahead.

#![expect(clippy::disallowed_methods, reason = "it notes its own announcements")]

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use jiff::{SignedDuration, Timestamp};

use super::index::{IndexEntry, ListedEntry};
use super::remove::{empty, hold, trash};
use super::size::SessionSize;
use super::sweep::{MIN_AGE, SweepReport, is_older, needless, old_files, remove, remove_stumps};
use super::{Catalogue, TRASH_PREFIX, WorkspaceFilter};
use crate::sessions::{JOURNAL, OUTPUT, UNFINISHED};
use kode_base::private;
use kode_journal::disk::DiskFile;

/// How often it is cleaned up.
const INTERVAL: SignedDuration = SignedDuration::from_hours(24);

/// Says when it was cleaned up last.
const MARK: &str = ".cleaned";

/// The period whose deletions were announced, in days.
const ANNOUNCED: &str = ".announced";

/// The most files that are removed while a journal is locked: a process that loads the session waits for a moment only.
const REMOVED_AT_ONCE: usize = 32;

/// The time that a journal is unlocked between.
const PAUSE: Duration = Duration::from_millis(10);

/// How it is cleaned up.
#[derive(Clone, Copy, Debug)]
pub struct CleanupOptions {
    /// The time.
    pub now: Timestamp,
    /// The days without use after which a session is deleted; `None` means never.
    pub days: Option<u32>,
    /// Whether the caller shows the user an announcement. Without it, a cleanup deletes only announced sessions.
    pub announces: bool,
}

/// How sessions that are old are handled.
#[derive(Clone, Copy)]
struct CleanupPlan {
    now: Timestamp,
    /// Files that have changed since then are searched.
    since: Timestamp,
    /// The age from which a session is old; `None` without one.
    age: Option<Duration>,
    /// Whether old sessions are deleted; otherwise they are counted.
    deletes: bool,
}

/// The result for one session.
enum SessionCleanup {
    Kept,
    /// Its size in bytes.
    Deleted(u64),
    /// It is old, and its deletion was not announced. Its size in bytes.
    Due(u64),
}

/// The result of a cleanup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanupReport {
    /// Sessions that were deleted.
    pub sessions: u64,
    /// Files of other sessions that were deleted.
    pub files: u64,
    /// The room that all of it took, in bytes.
    pub bytes: u64,
    /// Sessions that the next cleanups will delete; only in the cleanup that announces it.
    pub due: u64,
    /// The room that those sessions take, in bytes.
    pub due_bytes: u64,
    /// Old output of commands in other sessions that the next cleanups will delete; as `due`.
    pub due_files: u64,
}

impl Catalogue {
    /// Cleans up if that was not done for a day; `None` when it was, or another process does it.
    ///
    /// # Errors
    /// The error of the system for the folder of all sessions. Errors of single sessions are logged.
    pub fn clean_up(&self, options: CleanupOptions) -> io::Result<Option<CleanupReport>> {
        if !self.root.is_dir() {
            return Ok(None);
        }
        let mut opening = private::file_options();
        let mut mark = opening.write(true).create(true).truncate(false).open(self.root.join(MARK))?;
        if mark.try_lock().is_err() {
            return Ok(None);
        }
        let last = read_mark(&mut mark)?;
        let is_due =
            last.is_none_or(|last| last > options.now || options.now.duration_since(last) >= INTERVAL);
        if !is_due {
            return Ok(None);
        }
        write_mark(&mut mark, options.now)?;
        // Later files were not read yet, or were too young.
        let since = last.and_then(|last| last.checked_sub(INTERVAL).ok()).unwrap_or(Timestamp::MIN);
        let announced = announced_days(&self.root.join(ANNOUNCED))?;
        let plan = CleanupPlan {
            now: options.now,
            since,
            age: options.days.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60)),
            deletes: options.days.is_some_and(|days| announced.is_some_and(|announced| announced <= days)),
        };
        let mut cleaned = CleanupReport::default();
        // Whether one was archived is known only when all of it was read.
        self.close_gaps(&WorkspaceFilter::All);
        for workspace in self.folders_of(&WorkspaceFilter::All) {
            self.clean_workspace(&workspace, plan, &mut cleaned);
        }
        match options.days {
            Some(days) if options.announces && cleaned.due + cleaned.due_files > 0 => {
                std::fs::write(self.root.join(ANNOUNCED), format!("{days}\n"))?;
            }
            _ => cleaned = CleanupReport { due: 0, due_bytes: 0, due_files: 0, ..cleaned },
        }
        tracing::info!(
            sessions = cleaned.sessions,
            files = cleaned.files,
            bytes = cleaned.bytes,
            "cleaned up the stored sessions"
        );
        Ok(Some(cleaned))
    }

    fn clean_workspace(&self, workspace: &Path, plan: CleanupPlan, cleaned: &mut CleanupReport) {
        let now = SystemTime::from(plan.now);
        let mut swept = SweepReport::default();
        trash(workspace, TRASH_PREFIX).iter().for_each(|trash| empty(trash));
        // A fork that is being written takes no hour.
        let is_left = |folder: &&PathBuf| is_older(folder, MIN_AGE, now);
        trash(workspace, UNFINISHED).iter().filter(is_left).for_each(|folder| empty(folder));
        remove_stumps(workspace, now, &mut swept);
        let entries: Vec<(String, IndexEntry)> = {
            let mut known = self.known();
            let folder = known.entry(workspace.to_path_buf()).or_default();
            folder.look(workspace);
            let parsed = |(name, entry): (&String, &ListedEntry)| {
                (name.clone(), entry.parsed(&workspace.join(name).join(JOURNAL)))
            };
            folder.entries().map(parsed).collect()
        };
        for (name, entry) in entries {
            let folder = workspace.join(&name);
            match clean_session(self, &folder, &entry, plan, &mut swept) {
                Ok(SessionCleanup::Kept) => {}
                Ok(SessionCleanup::Deleted(bytes)) => {
                    tracing::info!(session = name, title = entry.digest.title, "deleted an old session");
                    cleaned.sessions += 1;
                    cleaned.bytes += bytes;
                }
                Ok(SessionCleanup::Due(bytes)) => {
                    cleaned.due += 1;
                    cleaned.due_bytes += bytes;
                }
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                Err(error) => tracing::warn!(%error, session = name, "a session was not cleaned up"),
            }
        }
        cleaned.files += swept.files;
        cleaned.due_files += swept.due;
        cleaned.bytes += swept.bytes;
    }
}

/// Deletes an old session, or removes the unused files of another.
fn clean_session(
    catalogue: &Catalogue,
    folder: &Path,
    entry: &IndexEntry,
    plan: CleanupPlan,
    swept: &mut SweepReport,
) -> io::Result<SessionCleanup> {
    let is_old = |touched: Timestamp| {
        plan.age.is_some_and(|age| {
            plan.now.duration_since(touched) > SignedDuration::try_from(age).unwrap_or(SignedDuration::MAX)
        })
    };
    let touched = entry.modified().max(entry.updated());
    let is_kept = entry.digest.archived || entry.digest.has_gap || entry.problem.is_some();
    if is_old(touched) && !is_kept {
        let bytes = SessionSize::of(folder).total;
        let Some(held) = hold_untouched(&folder.join(JOURNAL), entry)? else {
            return Ok(SessionCleanup::Kept);
        };
        if !plan.deletes {
            return Ok(SessionCleanup::Due(bytes));
        }
        return catalogue.discard(folder, Some(held)).map(|()| SessionCleanup::Deleted(bytes));
    }
    let now = SystemTime::from(plan.now);
    let mut outputs: Vec<_> = match plan.age.filter(|_| !entry.digest.archived) {
        Some(age) => old_files(&folder.join(OUTPUT), age, now).collect(),
        None => Vec::new(),
    };
    if !plan.deletes {
        swept.due += outputs.len() as u64;
        outputs.clear();
    }
    if outputs.is_empty() && touched < plan.since {
        return Ok(SessionCleanup::Kept);
    }
    let journal = folder.join(JOURNAL);
    // An open session is not searched. The search takes long and runs without the lock.
    if hold_untouched(&journal, entry)?.is_none() {
        return Ok(SessionCleanup::Kept);
    }
    let gone: Vec<_> = outputs.into_iter().chain(needless(folder, now)?).collect();
    for (at, some) in gone.chunks(REMOVED_AT_ONCE).enumerate() {
        if at > 0 {
            std::thread::sleep(PAUSE);
        }
        let Some(_held) = hold_untouched(&journal, entry)? else { break };
        some.iter().for_each(|path| remove(path, swept));
    }
    Ok(SessionCleanup::Kept)
}

/// The period whose deletions were announced; `None` before any was.
fn announced_days(file: &Path) -> io::Result<Option<u32>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Ok(text.trim().parse().ok()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Locks a journal that has not changed since it was searched.
fn hold_untouched(journal: &Path, entry: &IndexEntry) -> io::Result<Option<Arc<dyn DiskFile>>> {
    let Some(held) = hold(journal)? else { return Ok(None) };
    let modified = Timestamp::try_from(journal.metadata()?.modified()?).unwrap_or(Timestamp::MAX);
    Ok((modified == entry.modified()).then_some(held))
}

fn read_mark(mark: &mut File) -> io::Result<Option<Timestamp>> {
    let mut text = String::new();
    match mark.take(100).read_to_string(&mut text) {
        Ok(_) => Ok(text.trim().parse().ok()),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(None),
        Err(error) => Err(error),
    }
}

fn write_mark(mark: &mut File, now: Timestamp) -> io::Result<()> {
    mark.set_len(0)?;
    mark.seek(SeekFrom::Start(0))?;
    writeln!(mark, "{now}")
}
