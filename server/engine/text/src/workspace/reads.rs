//! The reads of this session: which text of which file, how much of it, and when.
//!
//! Rule: "read" is a fact of one session and one content; a session that has seen a part of a text has not seen the text.
//! A date or a version is only a reason not to look again, the hash decides. Memory is bounded: the text
//! unused for longest is forgotten, and must be read again.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::time::SystemTime;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::file_text::{FileText, TextSource, TextStamp, hash};
use crate::workspace::changes::{OutsideText, TargetContent};
use crate::workspace::{ChangeAuthor, Workspace};
use kode_base::paths::Target;

/// The most texts a session remembers to have read.
const MAX_TRACKED_READS: usize = 4_096;

/// The most separate parts of one text that are remembered; with more, the text must be read in larger parts.
const MAX_PARTS: usize = 256;

/// The session's state of a text compared with the current text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Never read in this session.
    Unread,
    /// As it was read.
    Current,
    /// Changed since it was read.
    Changed,
}

/// How much of a text was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Portion {
    /// All of it.
    Whole,
    /// Lines of it.
    Lines {
        /// The lines shown, from 1; empty when they were not shown in full.
        shown: Range<usize>,
        /// How many lines there are.
        total: usize,
    },
}

/// A text the session has read or edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessedText {
    /// The place of the text.
    pub target: Target,
    /// When it was last read or edited.
    pub at: Timestamp,
    /// When the file was last changed, as far as it was checked; `None` for open documents.
    pub modified: Option<SystemTime>,
}

/// The session's state of a text, as stored beyond the end of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownText {
    /// The place of the text.
    pub target: Target,
    /// SHA-256 of the text as the model has seen or made it.
    pub hash: [u8; 32],
    /// Whether every line of it was seen.
    pub is_whole: bool,
}

/// Which of the accessed texts come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessOrder {
    /// The texts that the session read first.
    First,
    /// The texts that it used last, newest first.
    Latest,
}

/// The texts the session knows. Nothing here checks a file.
#[derive(Default)]
pub(super) struct Reads {
    known: HashMap<Target, TextRecord>,
    by_use: BTreeMap<u64, Target>,
    clock: u64,
}

/// One text the session knows.
struct TextRecord {
    /// SHA-256 of the text as the model has seen or made it.
    hash: [u8; 32],
    seen: SeenLines,
    /// Of the moment it was last checked; the result is `change`.
    stamp: Option<TextStamp>,
    change: Option<OutsideVersion>,
    first_use: u64,
    last_use: u64,
    at: Timestamp,
    /// Grows whenever the session itself learns or changes the text: earlier checks become invalid.
    revision: u64,
}

/// Which lines of a text were seen.
enum SeenLines {
    Whole,
    /// Sorted, neither overlapping nor touching.
    Parts(Vec<Range<usize>>),
}

/// The result of others' changes in a text.
struct OutsideVersion {
    content: TargetContent,
    by: ChangeAuthor,
    /// Whether the model has been told.
    reported: bool,
}

impl Workspace {
    /// Notes that the session has read this text, or this part of it.
    pub fn note_read(&self, file: &FileText, portion: &Portion) {
        self.tracker.note(&file.target, file.text_hash(), Some(portion), Some(file.stamp.clone()));
        if matches!(file.source, TextSource::Disk) {
            self.tracker.watch(&file.target);
        }
    }

    /// Compares a text with what the session has read.
    pub fn freshness(&self, file: &FileText) -> Freshness {
        self.freshness_of(&file.target, &file.text)
    }

    /// Whether the session has seen every line of the text it knows of this target.
    pub fn has_read_whole(&self, target: &Target) -> bool {
        self.tracker.reads().is_whole(target)
    }

    /// The session's state of a target's text; `None` when it has not read it.
    pub fn known_text(&self, target: &Target) -> Option<KnownText> {
        let reads = self.tracker.reads();
        let (hash, is_whole) = (reads.hash_of(target)?, reads.is_whole(target));
        Some(KnownText { target: target.clone(), hash, is_whole })
    }

    /// Knows a text again that was known before the program ended.
    pub fn recall(&self, known: &KnownText) {
        let portion = match known.is_whole {
            true => Portion::Whole,
            false => Portion::Lines { shown: 0..0, total: usize::MAX },
        };
        self.tracker.note(&known.target, known.hash, Some(&portion), None);
        self.tracker.watch(&known.target);
    }

    /// At most `limit` of the texts the session has read or edited.
    pub fn accessed(&self, order: AccessOrder, limit: usize) -> Vec<AccessedText> {
        self.tracker.reads().accessed(order, limit)
    }

    /// Forgets all that was read: the conversation does not have it any more.
    pub fn forget_reads(&self) {
        let forgotten = self.tracker.reads().forget_all();
        forgotten.into_iter().for_each(|target| self.tracker.watch.release(target));
    }

    /// The text decides: the same text is current whether it comes from the disk or from the document that
    /// was opened on it since.
    pub(super) fn freshness_of(&self, target: &Target, text: &str) -> Freshness {
        match self.tracker.reads().hash_of(target) {
            None => Freshness::Unread,
            Some(read) if read == hash(text.as_bytes()) => Freshness::Current,
            Some(_) => Freshness::Changed,
        }
    }

    /// Notes that the session has made the text.
    pub(super) fn note_text(&self, target: &Target, text: &str) {
        self.tracker.note(target, hash(text.as_bytes()), None, None);
        self.tracker.watch(target);
    }

    /// Notes that the session has changed a text that others had changed before and that it has not read since.
    pub(super) fn note_merged(&self, target: &Target, old_text: &str, new_text: &str) {
        let (old, new) = (hash(old_text.as_bytes()), hash(new_text.as_bytes()));
        self.tracker.reads().merge(target, old, new);
    }
}

impl Reads {
    /// Notes a text that was read to an portion, or made by the session if absent. Answers the target that
    /// was forgotten for it.
    pub(super) fn note(
        &mut self,
        target: &Target,
        hash: [u8; 32],
        portion: Option<&Portion>,
        stamp: Option<TextStamp>,
    ) -> Option<Target> {
        self.clock += 1;
        let old = self.known.remove(target);
        if let Some(old) = &old {
            self.by_use.remove(&old.last_use);
        }
        let (first_use, revision) = old.as_ref().map_or((self.clock, 0), |old| (old.first_use, old.revision));
        let seen = match (portion, old) {
            (Some(portion), Some(TextRecord { seen, hash: known, .. })) if known == hash => {
                seen.with(portion)
            }
            (Some(portion), _) => SeenLines::Parts(Vec::new()).with(portion),
            // Unseen text stays unseen, and lines have moved.
            (None, Some(TextRecord { seen: SeenLines::Parts(_), .. })) => SeenLines::Parts(Vec::new()),
            (None, _) => SeenLines::Whole,
        };
        let (last_use, at) = (self.clock, Timestamp::now());
        let revision = revision + 1;
        let known = TextRecord { hash, seen, stamp, change: None, first_use, last_use, at, revision };
        self.known.insert(target.clone(), known);
        self.by_use.insert(last_use, target.clone());
        if self.known.len() <= MAX_TRACKED_READS {
            return None;
        }
        let (_, forgotten) = self.by_use.pop_first()?;
        self.known.remove(&forgotten);
        Some(forgotten)
    }

    /// Forgets one target.
    pub(super) fn forget(&mut self, target: &Target) {
        if let Some(known) = self.known.remove(target) {
            self.by_use.remove(&known.last_use);
        }
    }

    fn forget_all(&mut self) -> Vec<Target> {
        self.by_use.clear();
        std::mem::take(&mut self.known).into_keys().collect()
    }

    /// Notes that a change by others was changed in turn by the session: that is no further change by others.
    fn merge(&mut self, target: &Target, old: [u8; 32], new: [u8; 32]) {
        let Some(known) = self.known.get_mut(target) else { return };
        known.revision += 1;
        if let Some(change) =
            known.change.as_mut().filter(|change| change.content == TargetContent::Text(old))
        {
            change.content = TargetContent::Text(new);
        }
    }

    /// Invalidates earlier checks.
    pub(super) fn outdate(&mut self, target: &Target) {
        if let Some(known) = self.known.get_mut(target) {
            known.revision += 1;
        }
    }

    /// The starting point of a target's check: its revision, and the stamp of the last look. `None` when it is not
    /// known.
    pub(super) fn begin_look(&self, target: &Target) -> Option<(u64, Option<TextStamp>)> {
        self.known.get(target).map(|known| (known.revision, known.stamp.clone()))
    }

    /// Takes the result of a check. Answers whether it is an unreported change by others; `None` when
    /// the session changed the text during the look, which then says nothing.
    pub(super) fn end_look(&mut self, target: &Target, revision: u64, found: OutsideText) -> Option<bool> {
        let known = self.known.get_mut(target).filter(|known| known.revision == revision)?;
        known.stamp = found.stamp;
        if found.content == TargetContent::Text(known.hash) {
            known.change = None;
            return Some(false);
        }
        if known.change.as_ref().is_some_and(|change| change.content == found.content) {
            return Some(false);
        }
        known.change = Some(OutsideVersion { content: found.content, by: found.by, reported: false });
        Some(true)
    }

    /// Forgets the version of a document: it was opened again and counts from the start.
    pub(super) fn forget_version(&mut self, uri: &str) {
        for known in self.known.values_mut() {
            if matches!(&known.stamp, Some(TextStamp::Document { uri: stamped, .. }) if stamped == uri) {
                known.stamp = None;
            }
        }
    }

    /// The changes by others of which the model has not been told; from now on it has.
    pub(super) fn take_unreported(&mut self) -> Vec<(Target, TargetContent, ChangeAuthor)> {
        let mut unreported = Vec::new();
        for (target, known) in &mut self.known {
            if let Some(change) = known.change.as_mut().filter(|change| !change.reported) {
                change.reported = true;
                unreported.push((target.clone(), change.content, change.by));
            }
        }
        unreported.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        unreported
    }

    /// The targets used last, newest first.
    pub(super) fn latest(&self) -> impl Iterator<Item = &Target> {
        self.by_use.values().rev()
    }

    fn hash_of(&self, target: &Target) -> Option<[u8; 32]> {
        self.known.get(target).map(|known| known.hash)
    }

    fn is_whole(&self, target: &Target) -> bool {
        self.known.get(target).is_some_and(|known| matches!(known.seen, SeenLines::Whole))
    }

    fn accessed(&self, order: AccessOrder, limit: usize) -> Vec<AccessedText> {
        let mut targets: Vec<&Target> = self.latest().collect();
        if order == AccessOrder::First {
            targets.sort_by_key(|target| self.known.get(target).map(|known| known.first_use));
        }
        let accessed = |target: &Target| {
            let known = self.known.get(target)?;
            let modified = known.stamp.as_ref().and_then(TextStamp::modified);
            Some(AccessedText { target: target.clone(), at: known.at, modified })
        };
        targets.into_iter().take(limit).filter_map(accessed).collect()
    }
}

impl SeenLines {
    /// Adds the lines shown now.
    fn with(self, portion: &Portion) -> Self {
        let (Self::Parts(mut parts), Portion::Lines { shown, total }) = (self, portion) else {
            return Self::Whole;
        };
        parts.push(shown.clone());
        parts.retain(|part| !part.is_empty());
        parts.sort_by_key(|part| part.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(parts.len());
        for part in parts {
            match merged.last_mut() {
                Some(last) if part.start <= last.end => last.end = last.end.max(part.end),
                _ => merged.push(part),
            }
        }
        let is_whole = *total == 0 || merged.first().is_some_and(|part| part.start <= 1 && part.end > *total);
        merged.truncate(MAX_PARTS);
        if is_whole { Self::Whole } else { Self::Parts(merged) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Rig;

    #[tokio::test]
    async fn freshness_is_of_a_session_and_of_the_content() {
        let rig = Rig::new();
        let other = rig.other_session();
        rig.write("a.txt", "\u{feff}one");
        let target = rig.target("a.txt");
        let freshness =
            async |workspace: &Workspace| workspace.freshness(&workspace.text(&target).await.unwrap());
        assert_eq!(freshness(rig.workspace()).await, Freshness::Unread);
        rig.workspace().note_read(&rig.workspace().text(&target).await.unwrap(), &Portion::Whole);
        assert_eq!(freshness(rig.workspace()).await, Freshness::Current);
        assert_eq!(freshness(&other).await, Freshness::Unread);
        rig.write("a.txt", "\u{feff}one");
        assert_eq!(freshness(rig.workspace()).await, Freshness::Current, "a new date is no new content");
        rig.open("a.txt", "one");
        assert_eq!(freshness(rig.workspace()).await, Freshness::Current, "opening a file changes nothing");
        rig.type_text("a.txt", "one!");
        assert_eq!(freshness(rig.workspace()).await, Freshness::Changed);
    }

    const TEXT: [u8; 32] = [1; 32];
    const OTHER: [u8; 32] = [2; 32];

    fn target(number: usize) -> Target {
        Target::Untitled(number.to_string())
    }

    fn lines(shown: Range<usize>) -> Portion {
        Portion::Lines { shown, total: 10 }
    }

    #[test]
    fn parts_that_cover_a_text_make_it_read_and_those_of_another_text_do_not() {
        type Read = ([u8; 32], Portion);
        let cases: [(&[Read], bool); 8] = [
            (&[(TEXT, lines(1..11))], true),
            (&[(TEXT, lines(1..10))], false),
            (&[(TEXT, lines(6..11)), (TEXT, lines(1..4)), (TEXT, lines(3..6))], true),
            (&[(TEXT, lines(6..11)), (TEXT, lines(1..5))], false),
            (&[(TEXT, lines(1..6)), (OTHER, lines(6..11))], false),
            (&[(TEXT, Portion::Whole), (TEXT, lines(2..3))], true),
            (&[(TEXT, Portion::Whole), (OTHER, lines(2..3))], false),
            (&[(TEXT, Portion::Lines { shown: 1..1, total: 0 })], true),
        ];
        for (reads, expected) in cases {
            let mut known = Reads::default();
            for (hash, portion) in reads {
                known.note(&target(0), *hash, Some(portion), None);
            }
            assert_eq!(known.is_whole(&target(0)), expected, "{reads:?}");
        }
    }

    #[test]
    fn what_was_seen_in_part_stays_so_when_the_session_changes_it() {
        let mut reads = Reads::default();
        reads.note(&target(0), TEXT, Some(&lines(1..5)), None);
        reads.note(&target(0), OTHER, None, None);
        reads.note(&target(0), OTHER, Some(&lines(5..11)), None);
        assert!(!reads.is_whole(&target(0)));
        reads.note(&target(1), TEXT, None, None);
        reads.note(&target(1), OTHER, None, None);
        assert!(reads.is_whole(&target(1)), "it has made all of it");
    }

    #[test]
    fn what_was_not_used_for_longest_is_forgotten() {
        let mut reads = Reads::default();
        for number in 0..MAX_TRACKED_READS {
            assert_eq!(reads.note(&target(number), TEXT, Some(&Portion::Whole), None), None);
        }
        reads.note(&target(0), OTHER, None, None);
        assert_eq!(reads.note(&target(MAX_TRACKED_READS), TEXT, None, None), Some(target(1)));
        assert_eq!((reads.hash_of(&target(0)), reads.hash_of(&target(1))), (Some(OTHER), None));
        let accessed = |order| {
            let accessed = reads.accessed(order, 3).into_iter();
            accessed.map(|accessed| accessed.target).collect::<Vec<_>>()
        };
        assert_eq!(accessed(AccessOrder::First), [target(0), target(2), target(3)]);
        let last = MAX_TRACKED_READS;
        assert_eq!(accessed(AccessOrder::Latest), [target(last), target(0), target(last - 1)]);
    }
}
