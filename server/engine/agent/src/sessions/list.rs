//! The list of sessions, in pages, the one last used first.
//!
//! Rule: every session is in it, also one that cannot be read, and says why. A page begins after a session's time and
//! id, so that whatever changes between two pages, the next one can be had.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::index::{IndexEntry, ListedEntry};
use super::locks::LockTable;
use super::size::{SessionSize, bytes_in};
use super::{Catalogue, WorkspaceFilter};
use crate::sessions::JOURNAL;
use kode_base::ids::SessionId;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_record::event::RunState;
use kode_record::title::TitledBy;

/// A query for the list.
#[derive(Clone, Debug)]
pub struct ListSessions {
    /// The workspaces whose sessions are meant.
    pub workspaces: WorkspaceFilter,
    /// Whether sessions that are archived are listed.
    pub archived: ArchiveFilter,
    /// The most sessions of a page.
    pub limit: usize,
    /// [`SessionPage::next`] of the page before.
    pub cursor: Option<String>,
    /// Whether the total size is counted.
    pub totals: bool,
    /// Whether large journals without a digest are read as a whole, however long that takes.
    pub thorough: bool,
}

/// Whether sessions that are archived are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArchiveFilter {
    /// They are left out.
    #[default]
    Hide,
    /// They alone.
    Only,
    /// They as well.
    Include,
}

/// Where a session is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionPresence {
    /// Live in this process.
    Live(RunState),
    /// On the disk.
    Stored,
    /// Live in another process.
    Elsewhere,
    /// On the disk, and cannot be read; the text says why.
    Unreadable(String),
}

/// A session in the list.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionSummary {
    /// The session.
    pub id: SessionId,
    /// The title; empty before the first prompt.
    pub title: String,
    /// The author of the title; `None` for the first line of its first prompt.
    pub titled: Option<TitledBy>,
    /// Whether it was archived.
    pub archived: bool,
    /// Where it is.
    pub presence: SessionPresence,
    /// Its working directory; `None` where its journal does not say.
    pub folder: Option<AbsPath>,
    /// When it began; `None` where its journal does not say.
    pub created: Option<Timestamp>,
    /// When something last happened in it.
    pub updated: Timestamp,
    /// Its turns so far; `None` where a large journal was not read as a whole yet.
    pub turns: Option<u64>,
    /// The name of its model profile; empty where its journal does not say.
    pub model: String,
    /// Its mode; `None` where its journal does not say.
    pub mode: Option<Mode>,
    /// Its size on the disk.
    pub size: SessionSize,
    /// Its cost in US dollars; `None` where a part is unknown.
    pub cost: Option<f64>,
    /// The first words of its last answer; empty without one.
    pub answer: String,
}

/// The total size of sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionTotals {
    /// How many there are, those that are archived included.
    pub sessions: u64,
    /// The room they take on the disk, in bytes.
    pub bytes: u64,
}

/// A page of the list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionPage {
    /// The sessions, the one last used first.
    pub sessions: Vec<SessionSummary>,
    /// The cursor of the next page; `None` on the last.
    pub next: Option<String>,
    /// The total size of all sessions, if requested.
    pub totals: Option<SessionTotals>,
    /// Whether there are large journals that were not read as a whole yet.
    pub has_gaps: bool,
}

/// A text that no page of the list was answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this cursor belongs to no page of the list; start without one")]
pub struct BadCursor;

/// The place of a session in the list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ListPosition {
    pub(super) updated: Reverse<Timestamp>,
    pub(super) id: String,
}

impl ListPosition {
    pub(super) fn parse(cursor: &str) -> Option<Self> {
        let (updated, id) = cursor.split_once('_')?;
        let updated = Reverse(Timestamp::from_nanosecond(updated.parse().ok()?).ok()?);
        super::is_session_id(id).then(|| Self { updated, id: id.to_owned() })
    }

    pub(super) fn cursor(&self) -> String {
        format!("{}_{}", self.updated.0.as_nanosecond(), self.id)
    }
}

/// A session as the index has it.
pub(super) struct StoredFolder {
    pub(super) place: ListPosition,
    pub(super) folder: PathBuf,
    pub(super) entry: IndexEntry,
}

impl Catalogue {
    /// A page of the list. `presence` returns the state of a session that is live in this process.
    ///
    /// # Errors
    /// [`BadCursor`].
    pub fn list(
        &self,
        query: &ListSessions,
        presence: &dyn Fn(&SessionId) -> Option<SessionPresence>,
    ) -> Result<SessionPage, BadCursor> {
        let after =
            query.cursor.as_deref().map(|cursor| ListPosition::parse(cursor).ok_or(BadCursor)).transpose()?;
        if query.thorough {
            self.close_gaps(&query.workspaces);
        }
        let limit = query.limit.max(1);
        let (page, next, has_gaps) = self.page(query, after.as_ref(), limit);
        let locks = LockTable::now();
        let sessions = page.into_iter().map(|found| summary(found, &locks, presence)).collect();
        let totals = query.totals.then(|| self.totals(&query.workspaces));
        Ok(SessionPage { sessions, next, totals, has_gaps })
    }

    /// Reads large journals as a whole of which only head and tail were read.
    pub fn close_gaps(&self, workspaces: &WorkspaceFilter) {
        for found in self.all(workspaces).into_iter().filter(|found| found.entry.digest.has_gap) {
            // Not under the lock: it may take long.
            super::refresh(&found.folder.join(JOURNAL));
        }
    }

    /// The total size of the sessions of workspaces.
    #[must_use]
    pub fn totals(&self, workspaces: &WorkspaceFilter) -> SessionTotals {
        /// The depth of a session's folders.
        const DEPTH: usize = 6;
        let mut totals = SessionTotals::default();
        for folder in self.folders_of(workspaces) {
            totals.sessions += super::session_names(&folder).count() as u64;
            totals.bytes += bytes_in(&folder, DEPTH);
        }
        totals
    }

    /// The sessions of a page; they alone are copied out of the index.
    fn page(
        &self,
        query: &ListSessions,
        after: Option<&ListPosition>,
        limit: usize,
    ) -> (Vec<StoredFolder>, Option<String>, bool) {
        let folders = self.folders_of(&query.workspaces);
        let mut known = self.known();
        for folder in &folders {
            known.entry(folder.clone()).or_default().look(folder);
        }
        let all = folders.iter().filter_map(|folder| Some((folder, known.get(folder)?)));
        let all =
            all.flat_map(|(path, folder)| folder.entries().map(move |(name, entry)| (path, name, entry)));
        let mut has_gaps = false;
        let mut listed: Vec<(Reverse<Timestamp>, &String, &PathBuf, &ListedEntry)> = Vec::new();
        for (path, name, entry) in all {
            has_gaps |= entry.has_gap;
            if !query.archived.is_listed(entry.archived) {
                continue;
            }
            let key = (Reverse(entry.updated), name);
            if after.is_none_or(|after| key > (after.updated, &after.id)) {
                listed.push((key.0, key.1, path, entry));
            }
        }
        // Entries after the page need no order.
        if listed.len() > limit {
            listed.select_nth_unstable_by_key(limit, |(updated, name, ..)| (*updated, *name));
        }
        let more = listed.len() > limit;
        listed.truncate(limit);
        listed.sort_unstable_by_key(|(updated, name, ..)| (*updated, *name));
        let copied = listed.into_iter().map(|(updated, name, path, entry)| {
            let folder = path.join(name);
            let entry = entry.parsed(&folder.join(JOURNAL));
            StoredFolder { place: ListPosition { updated, id: name.clone() }, folder, entry }
        });
        let page: Vec<StoredFolder> = copied.collect();
        let next = page.last().filter(|_| more).map(|last| last.place.cursor());
        (page, next, has_gaps)
    }

    /// All sessions, the one last used first.
    pub(super) fn all(&self, workspaces: &WorkspaceFilter) -> Vec<StoredFolder> {
        let query = ListSessions {
            workspaces: workspaces.clone(),
            archived: ArchiveFilter::Include,
            limit: usize::MAX,
            cursor: None,
            totals: false,
            thorough: false,
        };
        self.page(&query, None, usize::MAX).0
    }
}

impl ArchiveFilter {
    fn is_listed(self, is_archived: bool) -> bool {
        match self {
            Self::Hide => !is_archived,
            Self::Only => is_archived,
            Self::Include => true,
        }
    }
}

impl ListSessions {
    /// The newest sessions of workspaces, but for those that are archived.
    #[must_use]
    pub fn newest(workspaces: WorkspaceFilter, limit: usize) -> Self {
        let (archived, cursor) = (ArchiveFilter::Hide, None);
        Self { workspaces, archived, limit, cursor, totals: false, thorough: false }
    }
}

fn summary(
    found: StoredFolder,
    locks: &LockTable,
    presence: &dyn Fn(&SessionId) -> Option<SessionPresence>,
) -> SessionSummary {
    let StoredFolder { place, folder, entry } = found;
    let id = SessionId::from_external(place.id);
    let presence = presence(&id).unwrap_or_else(|| on_disk(&folder, &entry, locks));
    let digest = entry.digest;
    SessionSummary {
        id,
        presence,
        updated: place.updated.0,
        turns: (entry.problem.is_none() && !digest.has_gap).then_some(digest.turns),
        cost: digest.cost().filter(|_| entry.problem.is_none()),
        size: SessionSize::of(&folder),
        title: digest.title,
        titled: digest.titled,
        archived: digest.archived,
        folder: digest.folder,
        created: digest.created,
        model: digest.model,
        mode: digest.mode,
        answer: digest.answer,
    }
}

fn on_disk(folder: &Path, entry: &IndexEntry, locks: &LockTable) -> SessionPresence {
    if locks.is_held(&folder.join(JOURNAL)) {
        return SessionPresence::Elsewhere;
    }
    match &entry.problem {
        Some(problem) => SessionPresence::Unreadable(problem.clone()),
        None => SessionPresence::Stored,
    }
}
