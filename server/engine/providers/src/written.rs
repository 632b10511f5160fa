//! The messages of a request, of which the oldest were written for an earlier request of the turn.
//!
//! Rule: a message of an earlier request has the bytes that it would be written in now. An adapter keeps only messages that no
//! later message changes.

use std::hash::{DefaultHasher, Hash, Hasher};

use kode_model::{Capabilities, History, Role, Wire, WrittenMessage};
use serde::ser::{Serialize, SerializeSeq, Serializer};

/// The messages of a request, oldest first.
pub(crate) struct MessageList<M> {
    form: u64,
    /// Those before the history.
    pub(crate) first: Vec<M>,
    /// Those that were written before.
    pub(crate) written: Vec<WrittenMessage>,
    /// The others, each with the index behind its newest message of the history.
    pub(crate) new: Vec<(M, usize)>,
}

/// The facts about a kept message, from its adapter.
pub(crate) struct MessageFacts {
    pub(crate) role: Role,
    pub(crate) note: bool,
}

impl<M: Serialize> MessageList<M> {
    /// A list with the messages of `history` that were written before for this model of this host.
    pub(crate) fn of(history: &History, wire: Wire, model: (&str, &str), capabilities: Capabilities) -> Self {
        let mut hasher = DefaultHasher::new();
        (wire, model, capabilities).hash(&mut hasher);
        let form = hasher.finish();
        Self { form, first: Vec::new(), written: history.written(form), new: Vec::new() }
    }

    /// The index of the first message of the history that has to be written.
    pub(crate) fn start(&self) -> usize {
        self.written.last().map_or(0, |last| last.end)
    }

    /// Writes the first `count` of the new messages, and keeps them with the history for its next request.
    pub(crate) fn keep(&mut self, history: &History, count: usize, facts: impl Fn(&M) -> MessageFacts) {
        let mut kept = 0;
        for (message, end) in &self.new[..count] {
            // A message without a written form fails with its request.
            let Ok(json) = serde_json::value::to_raw_value(message) else { break };
            let MessageFacts { role, note } = facts(message);
            self.written.push(WrittenMessage { end: *end, role, note, json: json.into() });
            kept += 1;
        }
        if kept > 0 {
            self.new.drain(..kept);
            history.keep_written(self.form, self.written.clone());
        }
    }
}

impl<M: Serialize> Serialize for MessageList<M> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let count = self.first.len() + self.written.len() + self.new.len();
        let mut list = serializer.serialize_seq(Some(count))?;
        self.first.iter().try_for_each(|message| list.serialize_element(message))?;
        self.written.iter().try_for_each(|message| list.serialize_element(&*message.json))?;
        self.new.iter().try_for_each(|(message, _)| list.serialize_element(message))?;
        list.end()
    }
}
