//! What a compaction did, as the journal keeps it, and the history as it was before.
//!
//! Rule: nothing of a conversation is lost by compacting it: what the model is sent from then on stands in the record,
//! and the window it names gives back what it was sent before.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, TurnId, WindowId};
use crate::model::{Block, History, Message, Usage};
use crate::paths::Target;
use crate::session::Session;

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// It came to the share of the context window that is set for it.
    Threshold,
    /// The user asked for it.
    Asked,
    /// A turn came to its limit of model calls and goes on.
    TurnLimit,
    /// The provider found the request too long.
    TooLong,
}

/// What a compaction did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Compaction {
    /// Names the history as it was before.
    pub window: WindowId,
    /// The turn in which it happened.
    pub turn: TurnId,
    /// Why.
    pub cause: Cause,
    /// What the user wanted kept above all, in their own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub focus: Option<String>,
    /// Messages before and after.
    pub messages: Change,
    /// Tokens of the next request before and after, as well as they are known.
    pub tokens: Change,
    /// The tokens from which on it is done unasked, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<u64>,
    /// The model that summarized, as the provider knows it; `None` when none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What that took.
    #[serde(default)]
    pub usage: Usage,
    /// Milliseconds from its start.
    #[serde(default)]
    pub duration_ms: u64,
    /// The first message of the window that was kept as it was, counted from 0.
    pub kept_from: usize,
    /// The summary; `None` when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why there is no summary, when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The files that stand beside it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<RecoveredFile>,
    /// What the model is told before the messages that were kept; nothing where all were kept but for pictures.
    pub head: Vec<Block>,
    /// How many pictures of the messages that were kept are left out, the oldest first.
    #[serde(default, skip_serializing_if = "is_none_left_out")]
    pub pictures_left_out: usize,
}

/// A number before and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Before.
    pub before: u64,
    /// After.
    pub after: u64,
}

/// A file whose text stands beside a summary, or should.
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
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) messages: History,
    /// The number of its first message.
    pub(crate) first: usize,
    pub(crate) compaction: Compaction,
}

impl Window {
    /// Whether something is told in the place of its messages.
    pub(crate) fn tells(&self) -> bool {
        !self.compaction.head.is_empty()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
fn is_none_left_out(pictures: &usize) -> bool {
    *pictures == 0
}

/// Some messages of a conversation as it was before it was compacted.
#[derive(Clone, Debug)]
pub struct WindowPage {
    /// The messages asked for, oldest first.
    pub messages: Vec<Message>,
    /// How many messages there were in all.
    pub total: usize,
}

impl Session {
    /// At most `limit` messages from number `from` on (the first is 0) of a conversation as it was before it was compacted;
    /// `None` as for [`Session::window`]. Past the end there are none.
    #[must_use]
    pub fn window_page(
        &self,
        agent: Option<&AgentId>,
        window: &WindowId,
        from: usize,
        limit: usize,
    ) -> Option<WindowPage> {
        let state = self.state();
        let whole = state.thread(agent)?.window(window)?;
        Some(WindowPage {
            messages: whole.iter().skip(from).take(limit).cloned().collect(),
            total: whole.len(),
        })
    }

    /// The messages of a conversation as they were before it was compacted; `None` when there was no such window, or
    /// the conversation went back before it.
    #[must_use]
    pub fn window(&self, agent: Option<&AgentId>, window: &WindowId) -> Option<Vec<Message>> {
        let state = self.state();
        Some(state.thread(agent)?.window(window)?.to_vec())
    }
}
