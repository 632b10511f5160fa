//! The result of a compaction in the journal, and the history before it.
//!
//! Rule: nothing of a conversation is lost by compacting it: what the model is sent from then on is in the record,
//! and the window it names gives back what it was sent before.

use std::borrow::Cow;
use std::io;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use kode_base::ids::{TurnId, WindowId};
use kode_base::paths::Target;
use kode_journal::{Shelf, ShelfSlot};
use kode_model::{Block, History, Message, Usage};

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// It came to the share of the context window that is set for it.
    Threshold,
    /// The user asked for it.
    Asked,
    /// A turn came to its limit of model calls and continues.
    TurnLimit,
    /// The provider found the request too long.
    TooLong,
}

/// The result of a compaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// Names the history as it was before.
    pub window: WindowId,
    /// The turn in which it happened.
    pub turn: TurnId,
    /// Why.
    pub cause: Cause,
    /// The most important content for the summary, in the user's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Messages before and after.
    pub messages: BeforeAfter,
    /// Tokens of the next request before and after, as well as they are known.
    pub tokens: BeforeAfter,
    /// The tokens from which on it is done unasked, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<u64>,
    /// The model that summarized, as the provider knows it; `None` when none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its usage.
    #[serde(default)]
    pub usage: Usage,
    /// Milliseconds from its start.
    #[serde(default)]
    pub duration_ms: u64,
    /// The first message of the window that was kept as it was, counted from 0.
    pub kept_from: usize,
    /// The summary; `None` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why there is no summary, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The files that stand beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RecoveredFile>,
    /// The text for the model before the messages that were kept; nothing where all were kept but for pictures.
    pub head: Vec<Block>,
    /// How many pictures of the messages that were kept are left out, the oldest first.
    #[serde(default, skip_serializing_if = "is_none_left_out")]
    pub pictures_left_out: usize,
}

/// A number before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BeforeAfter {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// A file whose text is beside a summary, or should.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RecoveredFile {
    /// Which.
    pub target: Target,
    /// When it was last changed on the disk; `None` for open documents and files that cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<Timestamp>,
    /// SHA-256 of its text in hexadecimal, when it was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    /// How many of its lines are shown, from the first on.
    pub shown: usize,
    /// How many lines it has.
    pub lines: usize,
    /// Why it is not shown, when it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// A history as it was before it was compacted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompactedWindow {
    /// The messages as they were.
    pub messages: StoredMessages,
    /// The number of its first message.
    pub first: usize,
    /// The compaction that ended the window.
    pub compaction: Compaction,
}

/// The messages of a window: on the session's shelf, or in memory where it has none or could not take them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StoredMessages {
    /// In memory.
    Here(History),
    /// On the shelf.
    Shelved {
        /// Where.
        slot: ShelfSlot,
        /// How many there are.
        total: usize,
    },
}

impl StoredMessages {
    /// Puts messages on a shelf, if there is one that takes them.
    pub fn put(messages: History, shelf: Option<&Shelf>) -> Self {
        let Some(shelf) = shelf else { return Self::Here(messages) };
        let line = serde_json::to_vec(&*messages).map_err(io::Error::from);
        let put = line.and_then(|mut line| {
            line.push(b'\n');
            shelf.put(&line)
        });
        match put {
            Ok(slot) => Self::Shelved { slot, total: messages.len() },
            Err(error) => {
                tracing::warn!(%error, "the messages of a window stay in memory: they cannot be kept on disk");
                Self::Here(messages)
            }
        }
    }

    /// The messages, read back if they are not in memory.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(&self, shelf: Option<&Shelf>) -> io::Result<Cow<'_, [Message]>> {
        match self {
            Self::Here(messages) => Ok(Cow::Borrowed(messages)),
            Self::Shelved { slot, total: _ } => {
                let shelf = shelf.ok_or_else(|| io::Error::other("the session has no shelf"))?;
                let messages = serde_json::from_slice(&shelf.get(slot)?);
                messages.map(Cow::Owned).map_err(|error| {
                    tracing::warn!(%error, "the messages of a window cannot be read back");
                    shelf.condemn();
                    error.into()
                })
            }
        }
    }
}

impl CompactedWindow {
    /// Whether a text replaces its messages.
    pub fn reports(&self) -> bool {
        !self.compaction.head.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_none_left_out(pictures: &usize) -> bool {
    *pictures == 0
}
