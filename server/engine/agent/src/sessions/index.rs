//! The index of stored sessions: one file beside each journal, and one for all sessions of a workspace.
//!
//! Rule: an entry is valid while length and time of its journal are the same. Where a journal has only
//! grown, reading continues at its end; any other change makes it read again. Unreadable index files are rebuilt. The
//! file for all sessions has two lines of JSON for each: the sort keys of a list, and the entry, which a list parses only
//! for the page that it shows.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use jiff::Timestamp;
use memchr::memchr;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::digest::{FOLDED_AT_ONCE, ReadDepth, SessionDigest};
use super::session_names;
use crate::sessions::JOURNAL;
use kode_base::file_moves;
use kode_journal::disk::TEMPORARY_PREFIX;

/// Version of the file beside a journal; others are not read.
const SUMMARY_VERSION: u32 = 2;

/// Version of the file for all sessions; others are not read.
const INDEX_VERSION: u32 = 4;

/// The file beside a journal.
const SUMMARY: &str = "summary.json";

/// The file for all sessions of a workspace.
const INDEX: &str = "index.jsonl";

/// The file for all sessions of earlier versions.
const EARLIER_INDEX: &str = "index.json";

/// The number of changed entries from which on the index is written: fewer are read quickly from their own files.
const WRITTEN_FROM: usize = 32;

/// An index larger than this is not read.
const MAX_INDEX_BYTES: u64 = 256 << 20;

/// A summary larger than this is not read.
const MAX_SUMMARY_BYTES: u64 = 1 << 20;

/// The number of sessions from which on two threads ask for the metadata of their journals.
const SPLIT_FROM: usize = 1_000;

/// The number of bytes before the end of the last read that identify the journal.
const CHECKED: u64 = 256;

/// The entry of a session in the list.
#[derive(Debug)]
pub(super) struct ListedEntry {
    seen: JournalStamp,
    /// [`IndexEntry::updated`].
    pub(super) updated: Timestamp,
    pub(super) archived: bool,
    pub(super) has_gap: bool,
    entry: EntryText,
}

/// The entry of a session, parsed or as it was read.
#[derive(Debug)]
enum EntryText {
    Parsed(Box<IndexEntry>),
    /// The place of its line in the text of the index.
    Read(Arc<Vec<u8>>, Range<usize>),
}

/// The first line of the index.
#[derive(Serialize, Deserialize)]
struct IndexHead {
    version: u32,
}

/// The first of the two lines of a session in the index.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct IndexLine<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    length: u64,
    modified: i128,
    updated: Timestamp,
    archived: bool,
    has_gap: bool,
}

/// The entry of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IndexEntry {
    seen: JournalStamp,
    /// Where the last whole line ended.
    folded: u64,
    /// A hash of the bytes before that place.
    check: String,
    /// Why nothing can be said of it, if nothing can.
    pub(super) problem: Option<String>,
    pub(super) digest: SessionDigest,
}

/// The metadata of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct JournalStamp {
    length: u64,
    /// When it was last written, in nanoseconds.
    modified: i128,
}

#[derive(Serialize, Deserialize)]
struct StoredDigest<T> {
    version: u32,
    entry: T,
}

/// The known sessions of a workspace.
#[derive(Debug, Default)]
pub(super) struct IndexedFolder {
    entries: HashMap<String, ListedEntry>,
    /// Whether the index was looked for.
    is_read: bool,
    /// Entries that the index on the disk does not have.
    unwritten: usize,
}

impl IndexedFolder {
    /// Reads the metadata of all sessions in the folder, and the changed journals.
    pub(super) fn look(&mut self, folder: &Path) {
        let stamped = if self.is_read {
            stamps(folder)
        } else {
            self.is_read = true;
            let (entries, stamped) = beside(|| read_index(folder), || stamps(folder));
            self.entries = entries.unwrap_or_default();
            stamped
        };
        let mut entries = HashMap::with_capacity(stamped.len());
        for (name, seen) in stamped {
            let known = self.entries.remove(&name);
            let entry = match (known, seen) {
                (Some(known), Ok(seen)) if known.seen == seen && !known.has_gap => known,
                (known, seen) => {
                    self.unwritten += 1;
                    let known = known.and_then(ListedEntry::into_parsed);
                    look_again(&journal_of(folder, &name), known, seen).into()
                }
            };
            entries.insert(name, entry);
        }
        self.unwritten += self.entries.len();
        self.entries = entries;
        if self.unwritten >= WRITTEN_FROM {
            match write_index(folder, &self.entries) {
                Ok(()) => self.unwritten = 0,
                Err(error) => tracing::debug!(%error, "the index of sessions was not written"),
            }
        }
    }

    /// The entries, by the names of the sessions' folders.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&String, &ListedEntry)> {
        self.entries.iter()
    }

    /// Forgets a session.
    pub(super) fn forget(&mut self, name: &str) {
        self.entries.remove(name);
    }
}

impl ListedEntry {
    /// All of it. `journal` is read where the index says nothing that can be parsed.
    pub(super) fn parsed(&self, journal: &Path) -> IndexEntry {
        let parsed = match &self.entry {
            EntryText::Parsed(entry) => return IndexEntry::clone(entry),
            EntryText::Read(text, line) => serde_json::from_slice(&text[line.clone()]),
        };
        parsed.unwrap_or_else(|error| {
            tracing::debug!(%error, path = %journal.display(), "an entry of the index of sessions is damaged");
            look_again(journal, None, JournalStamp::of(journal))
        })
    }

    fn into_parsed(self) -> Option<IndexEntry> {
        match self.entry {
            EntryText::Parsed(entry) => Some(*entry),
            EntryText::Read(text, line) => serde_json::from_slice(&text[line]).ok(),
        }
    }
}

impl From<IndexEntry> for ListedEntry {
    fn from(entry: IndexEntry) -> Self {
        Self {
            seen: entry.seen,
            updated: entry.updated(),
            archived: entry.digest.archived,
            has_gap: entry.digest.has_gap,
            entry: EntryText::Parsed(Box::new(entry)),
        }
    }
}

impl IndexEntry {
    /// When something last happened in it; of one that says nothing, when it was last written.
    pub(super) fn updated(&self) -> Timestamp {
        let modified = || Timestamp::from_nanosecond(self.seen.modified).unwrap_or_default();
        self.digest.updated.or(self.digest.created).unwrap_or_else(modified)
    }

    /// When the journal was last written.
    pub(super) fn modified(&self) -> Timestamp {
        Timestamp::from_nanosecond(self.seen.modified).unwrap_or(Timestamp::MAX)
    }

    /// Whether the journal is as it was when this was found out.
    fn is_of(&self, seen: JournalStamp) -> bool {
        self.seen == seen
    }

    /// Whether reading can continue where this entry ends.
    fn can_proceed(&self, file: &mut File, length: u64, reading: ReadDepth) -> bool {
        let is_enough = reading == ReadDepth::Bounded || !self.digest.has_gap;
        // Written without growth: it may have been changed. A short journal is read again.
        let is_rewritten = self.seen.length == length && length <= FOLDED_AT_ONCE;
        let mut is_same = || check(file, self.folded).is_ok_and(|check| check == self.check);
        is_enough
            && !is_rewritten
            && self.problem.is_none()
            && self.folded > 0
            && self.folded <= length
            && is_same()
    }

    fn unreadable(seen: JournalStamp, problem: String) -> Self {
        let (check, digest) = (String::new(), SessionDigest::default());
        Self { seen, folded: 0, check, problem: Some(problem), digest }
    }
}

impl JournalStamp {
    fn of(journal: &Path) -> io::Result<Self> {
        Ok(Self::from(&journal.metadata()?))
    }

    fn from(metadata: &std::fs::Metadata) -> Self {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.and_then(|time| i128::try_from(time.as_nanos()).ok()).unwrap_or_default();
        Self { length: metadata.len(), modified }
    }
}

/// The sessions of a folder, each with the metadata of its journal.
fn stamps(folder: &Path) -> Vec<(String, io::Result<JournalStamp>)> {
    let names: Vec<String> = session_names(folder).collect();
    let stamps_of = |names: &[String]| -> Vec<io::Result<JournalStamp>> {
        names.iter().map(|name| JournalStamp::of(&journal_of(folder, name))).collect()
    };
    let stamps = if names.len() < SPLIT_FROM {
        stamps_of(&names)
    } else {
        let (some, others) = names.split_at(names.len() / 2);
        let (mut stamps, rest) = beside(|| stamps_of(some), || stamps_of(others));
        stamps.extend(rest);
        stamps
    };
    names.into_iter().zip(stamps).collect()
}

/// The results of both, worked out at the same time where the system has a thread for it.
fn beside<A: Send, B>(first: impl FnOnce() -> A + Send + Copy, second: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("kode-index".to_owned()).spawn_scoped(scope, first);
        let second = second();
        // A thread that was not started, or that panicked, is replaced by this one.
        let first = thread.ok().and_then(|thread| thread.join().ok()).unwrap_or_else(first);
        (first, second)
    })
}

/// Finds out about a session whose entry is missing, old or not of the whole journal.
fn look_again(journal: &Path, known: Option<IndexEntry>, seen: io::Result<JournalStamp>) -> IndexEntry {
    let unread = JournalStamp { length: 0, modified: 0 };
    let seen = match seen {
        Ok(seen) => seen,
        Err(error) => return IndexEntry::unreadable(unread, format!("the journal cannot be read: {error}")),
    };
    // The one that knows more of it.
    let both = [known, read_summary(journal)].into_iter().flatten();
    match both.max_by_key(|entry| (!entry.digest.has_gap, entry.folded)) {
        Some(entry) if entry.is_of(seen) => entry,
        newest => read(journal, newest, ReadDepth::Bounded).unwrap_or_else(|error| {
            IndexEntry::unreadable(seen, format!("the journal cannot be read: {error}"))
        }),
    }
}

/// Reads a journal from the end of `known` on, or from its beginning.
fn read(journal: &Path, known: Option<IndexEntry>, reading: ReadDepth) -> io::Result<IndexEntry> {
    let mut file = File::open(journal)?;
    let seen = JournalStamp::from(&file.metadata()?);
    let known = known.filter(|known| known.can_proceed(&mut file, seen.length, reading));
    let read = match known {
        Some(known) => known.digest.proceed(file.try_clone()?, known.folded, seen.length, reading),
        None => SessionDigest::read(file.try_clone()?, seen.length, reading),
    };
    let (digest, folded) = read?;
    // One whose beginning is lost can be loaded all the same.
    let is_readable = digest.id.is_some() || digest.updated.is_some();
    let problem = match seen.length {
        _ if is_readable => None,
        0 => Some("the journal is empty".to_owned()),
        _ => Some("the journal is damaged: no line of it can be read".to_owned()),
    };
    Ok(IndexEntry { seen, folded, check: check(&mut file, folded)?, problem, digest })
}

/// Updates the file beside a journal and returns its digest. A failure costs time later, and nothing else.
pub(super) fn refresh(journal: &Path) -> Option<SessionDigest> {
    let entry = match read(journal, read_summary(journal), ReadDepth::Whole) {
        Ok(entry) => entry,
        Err(error) => {
            tracing::debug!(%error, path = %journal.display(), "a journal cannot be read");
            return None;
        }
    };
    let summary = StoredDigest { version: SUMMARY_VERSION, entry: &entry };
    let written = serde_json::to_vec(&summary).map_err(io::Error::from);
    if let Err(error) = written.and_then(|json| replace(&summary_of(journal), &json)) {
        tracing::debug!(%error, path = %journal.display(), "the summary of a session was not written");
    }
    Some(entry.digest)
}

/// A hash of the bytes before a place.
fn check(file: &mut File, end: u64) -> io::Result<String> {
    let start = end.saturating_sub(CHECKED);
    file.seek(SeekFrom::Start(start))?;
    let mut before = Vec::new();
    file.take(end - start).read_to_end(&mut before)?;
    Ok(Sha256::digest(&before).iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

fn read_summary(journal: &Path) -> Option<IndexEntry> {
    let StoredDigest { version, entry } =
        read_json::<StoredDigest<IndexEntry>>(&summary_of(journal), MAX_SUMMARY_BYTES)?;
    (version == SUMMARY_VERSION).then_some(entry)
}

/// The entries of the index, up to the first line that is damaged.
fn read_index(folder: &Path) -> Option<HashMap<String, ListedEntry>> {
    let text = Arc::new(read_bytes(&folder.join(INDEX), MAX_INDEX_BYTES)?);
    let mut end = 0;
    let mut next_line = || {
        let start = end;
        let length = memchr(b'\n', text.get(start..)?)?;
        end = start + length + 1;
        Some(start..start + length)
    };
    let head: IndexHead = serde_json::from_slice(&text[next_line()?]).ok()?;
    if head.version != INDEX_VERSION {
        return None;
    }
    let mut entries = HashMap::new();
    while let (Some(line), Some(entry)) = (next_line(), next_line()) {
        let Ok(line) = serde_json::from_slice::<IndexLine<'_>>(&text[line]) else { break };
        let IndexLine { id, length, modified, updated, archived, has_gap } = line;
        let (seen, entry) = (JournalStamp { length, modified }, EntryText::Read(Arc::clone(&text), entry));
        entries.insert(id.into_owned(), ListedEntry { seen, updated, archived, has_gap, entry });
    }
    Some(entries)
}

fn write_index(folder: &Path, entries: &HashMap<String, ListedEntry>) -> io::Result<()> {
    let mut text = Vec::new();
    add_line(&mut text, &IndexHead { version: INDEX_VERSION })?;
    for (id, listed) in entries {
        let ListedEntry { seen: JournalStamp { length, modified }, updated, archived, has_gap, entry } =
            listed;
        let (length, modified, updated) = (*length, *modified, *updated);
        let (archived, has_gap, id) = (*archived, *has_gap, Cow::Borrowed(id.as_str()));
        add_line(&mut text, &IndexLine { id, length, modified, updated, archived, has_gap })?;
        match entry {
            EntryText::Parsed(entry) => add_line(&mut text, entry)?,
            EntryText::Read(read, line) => {
                text.extend_from_slice(&read[line.clone()]);
                text.push(b'\n');
            }
        }
    }
    replace(&folder.join(INDEX), &text)?;
    match file_moves::remove_file(&folder.join(EARLIER_INDEX)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn add_line(text: &mut Vec<u8>, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *text, value)?;
    text.push(b'\n');
    Ok(())
}

fn read_json<T: DeserializeOwned>(path: &Path, limit: u64) -> Option<T> {
    serde_json::from_slice(&read_bytes(path, limit)?).ok()
}

fn read_bytes(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len().min(limit);
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    file.take(limit).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Replaces a file atomically, without a sync: a file that a power cut damages is rebuilt.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let mut temporary = tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(folder)?;
    temporary.write_all(bytes)?;
    file_moves::persist(temporary, path)
}

fn summary_of(journal: &Path) -> PathBuf {
    journal.with_file_name(SUMMARY)
}

fn journal_of(folder: &Path, name: &str) -> PathBuf {
    let mut path = folder.join(name);
    path.push(JOURNAL);
    path
}
