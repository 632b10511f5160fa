//! The digest of a session for the list: a fold of the lines of its journal.
//!
//! Rule: only the needed fields of a line are parsed, and no line is kept. A fold continues at its last end, so that the
//! cost follows the growth; of a large journal without a digest only the head and the tail are read.

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::path::Path;

use jiff::Timestamp;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::lines::LineReader;
use crate::prompt::PromptKind;
use crate::state::titles::title_from;
use kode_base::ids::{ResolutionId, SessionId, TurnId};
use kode_base::mode::{Mode, StoredMode};
use kode_base::paths::AbsPath;
use kode_journal::reader::trimmed;
use kode_model::Usage;
use kode_model::price::Cost;
use kode_record::title::TitledBy;

/// The most new bytes of a journal that are folded while a caller waits for the list.
pub(super) const FOLDED_AT_ONCE: u64 = 1024 * 1024;

/// The bytes of head and tail that are read of a journal with more new bytes.
const HEAD: u64 = 64 * 1024;
const TAIL: u64 = 64 * 1024;

/// The longest beginning of an answer that is kept, in characters.
const ANSWER_CHARS: usize = 160;

/// The digest of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionDigest {
    /// Nothing when the beginning of the journal was not found.
    pub(super) id: Option<SessionId>,
    pub(super) folder: Option<AbsPath>,
    pub(super) title: String,
    pub(super) titled: Option<TitledBy>,
    pub(super) archived: bool,
    pub(super) created: Option<Timestamp>,
    /// When something happened in it that is more than its title.
    pub(super) updated: Option<Timestamp>,
    /// Turns that have started, also those that the conversation went back before.
    pub(super) turns: u64,
    pub(super) model: String,
    pub(super) mode: Option<Mode>,
    cost: f64,
    is_cost_partial: bool,
    /// How the last answer begins.
    pub(super) answer: String,
    /// Whether lines in the middle were not read.
    pub(super) has_gap: bool,
    /// The number of the newest event before the last line.
    pub(super) seq: u64,
    /// The turn of the first prompt of the conversation.
    first: Option<TurnId>,
    /// The newest turn that a model call was charged to.
    charged: Option<TurnId>,
    /// The digest before the conversation went back before its first prompt.
    before: Option<Box<TitleBefore>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct TitleBefore {
    resolution: ResolutionId,
    title: String,
    titled: Option<TitledBy>,
    first: Option<TurnId>,
}

/// How much of a journal is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadDepth {
    /// A bounded number of bytes.
    Bounded,
    /// All that is new.
    Whole,
}

/// The first fields of every line.
#[derive(Deserialize)]
struct LineHead<'a> {
    #[serde(default)]
    seq: u64,
    written: Option<Timestamp>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
struct OpenedLine {
    session: SessionId,
    cwd: AbsPath,
    mode: StoredMode,
    model: String,
}

#[derive(Deserialize)]
struct PromptLine {
    turn: TurnId,
    item: ItemLine,
}

#[derive(Deserialize)]
struct AnswerLine {
    items: Vec<ItemLine>,
}

/// An item with its text.
#[derive(Deserialize)]
struct ItemLine {
    body: BodyLine,
}

#[derive(Deserialize)]
struct BodyLine {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct TitledLine {
    title: String,
    by: TitledBy,
}

#[derive(Deserialize)]
struct ArchivedLine {
    archived: bool,
}

#[derive(Deserialize)]
struct ChargedLine {
    turn: TurnId,
    usage: Usage,
    #[serde(default)]
    cost: Option<f64>,
}

#[derive(Deserialize)]
struct TurnEndLine {
    turn: TurnId,
    usage: Usage,
}

#[derive(Deserialize)]
struct ConfiguredLine {
    mode: StoredMode,
    model: String,
}

#[derive(Deserialize)]
struct RewoundLine {
    turn: TurnId,
    resolution: ResolutionId,
}

#[derive(Deserialize)]
struct UnwoundLine {
    resolution: ResolutionId,
}

#[derive(Deserialize)]
struct AgentLine<'a> {
    #[serde(borrow)]
    record: &'a serde_json::value::RawValue,
}

impl SessionDigest {
    /// The digest of a journal from its beginning. Returns also the end of its last complete line.
    pub(super) fn read(file: File, length: u64, reading: ReadDepth) -> io::Result<(Self, u64)> {
        Self::default().proceed(file, 0, length, reading)
    }

    /// Folds the lines after `folded` in a journal of `length` bytes. Returns also the end of its last complete line.
    pub(super) fn proceed(
        mut self,
        file: File,
        folded: u64,
        length: u64,
        reading: ReadDepth,
    ) -> io::Result<(Self, u64)> {
        let tail = length.saturating_sub(TAIL);
        let is_near = reading == ReadDepth::Whole || length.saturating_sub(folded) <= FOLDED_AT_ONCE;
        let mut lines = LineReader::from(file.try_clone()?, folded)?;
        if is_near {
            self.fold(&mut lines, u64::MAX)?;
            return Ok((self, lines.place()));
        }
        self.fold(&mut lines, folded.saturating_add(HEAD))?;
        if lines.place() < tail {
            self.has_gap = true;
            lines = LineReader::from(file, tail)?;
            // It most probably begins within a line.
            lines.read()?;
        }
        self.fold(&mut lines, u64::MAX)?;
        // A line as long as the tail leaves nothing whole in it: it is looked for again when it is over.
        Ok((self, lines.place()))
    }

    /// The cost of all model calls, if it is known of all.
    pub(super) fn cost(&self) -> Option<f64> {
        (!self.is_cost_partial && !self.has_gap).then_some(self.cost)
    }

    fn fold(&mut self, lines: &mut LineReader, until: u64) -> io::Result<()> {
        while lines.place() < until {
            match lines.read()? {
                Some(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Some(line) => {
                    if self.apply(line).is_none() {
                        tracing::debug!("a line of a journal says nothing for the list");
                    }
                }
                None => break,
            }
        }
        Ok(())
    }

    /// Folds one line; `None` when it cannot be read.
    fn apply(&mut self, line: &[u8]) -> Option<()> {
        let line = trimmed(line);
        fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
            serde_json::from_slice(line).ok()
        }
        let LineHead { seq, written, kind } = read(line)?;
        self.seq = self.seq.max(seq);
        let mut is_news = true;
        match kind.as_ref() {
            "opened" if self.id.is_none() => {
                let OpenedLine { session, cwd, mode, model } = read(line)?;
                (self.id, self.folder, self.created) = (Some(session), Some(cwd), written);
                (self.mode, self.model) = (mode.known(), model);
            }
            "prompt" => {
                let PromptLine { turn, item } = read(line)?;
                self.turns += 1;
                self.before = None;
                // A silent prompt names no session.
                if self.first.is_none() && !PromptKind::of(&item.body.text, &[]).is_silent() {
                    if self.titled.is_none() {
                        self.title = title_from(&item.body.text);
                    }
                    self.first = Some(turn);
                }
            }
            "answer" => {
                let AnswerLine { items } = read(line)?;
                let said =
                    |item: &&ItemLine| item.body.kind == "agentMessage" && !item.body.text.trim().is_empty();
                if let Some(item) = items.iter().rev().find(said) {
                    self.answer = beginning(&item.body.text);
                }
            }
            "titled" => {
                let TitledLine { title, by } = read(line)?;
                is_news = false;
                if by == TitledBy::User || self.titled != Some(TitledBy::User) {
                    (self.title, self.titled) = (title, Some(by));
                }
            }
            "archived" => {
                self.archived = read::<ArchivedLine>(line)?.archived;
                is_news = false;
            }
            "charged" => {
                self.charge(read(line)?);
                is_news = false;
            }
            "turnEnded" => {
                let TurnEndLine { turn, usage } = read(line)?;
                // Older journals do not have the cost of single calls.
                if self.charged.as_ref() != Some(&turn) {
                    self.is_cost_partial |= usage != Usage::default();
                }
            }
            "configured" => {
                let ConfiguredLine { mode, model } = read(line)?;
                (self.mode, self.model) = (mode.known(), model);
            }
            "rewound" => self.rewind(read(line)?),
            "unwound" => self.unwind(&read::<UnwoundLine>(line)?),
            "inAgent" => {
                let AgentLine { record } = read(line)?;
                let inner = record.get().as_bytes();
                if read::<LineHead<'_>>(inner)?.kind == "charged" {
                    self.charge(read(inner)?);
                }
            }
            // Loading and leaving a session write these.
            "resumed" | "drafted" => {
                read::<IgnoredAny>(line)?;
                is_news = false;
            }
            // That it is one object is all that matters.
            _ => drop(read::<IgnoredAny>(line)?),
        }
        if is_news && written.is_some() {
            self.updated = written;
        }
        Some(())
    }

    fn charge(&mut self, ChargedLine { turn, usage, cost }: ChargedLine) {
        let cost = Cost::known(cost, &usage);
        self.cost += cost.usd;
        self.is_cost_partial |= cost.is_partial;
        self.charged = Some(turn);
    }

    fn rewind(&mut self, RewoundLine { turn, resolution }: RewoundLine) {
        self.answer.clear();
        if self.first.as_ref() != Some(&turn) {
            return;
        }
        let (title, titled, first) = (self.title.clone(), self.titled, self.first.take());
        self.before = Some(Box::new(TitleBefore { resolution, title, titled, first }));
        if self.titled != Some(TitledBy::User) {
            self.title.clear();
            self.titled = None;
        }
    }

    fn unwind(&mut self, UnwoundLine { resolution }: &UnwoundLine) {
        let Some(before) = self.before.take_if(|before| before.resolution == *resolution) else { return };
        self.first = before.first;
        if self.titled != Some(TitledBy::User) {
            (self.title, self.titled) = (before.title, before.titled);
        }
    }
}

/// The title of the session in a journal, empty when it has none. A large journal is not read as a whole.
#[must_use]
pub fn title(journal: &Path) -> String {
    let read = File::open(journal).and_then(|file| {
        let length = file.metadata()?.len();
        SessionDigest::read(file, length, ReadDepth::Bounded)
    });
    read.map(|(digest, _)| digest.title).unwrap_or_default()
}

/// The first words of a text, on one line.
fn beginning(text: &str) -> String {
    let mut words = String::new();
    for word in text.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
        if let Some((end, _)) = words.char_indices().nth(ANSWER_CHARS) {
            words.truncate(end);
            words.push('…');
            break;
        }
    }
    words
}
