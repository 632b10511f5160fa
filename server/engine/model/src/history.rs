//! The messages of a conversation, shared by the conversation and the requests made from it.
//!
//! Rule: making a request costs nothing that grows with the conversation. One that still lives when the conversation
//! grows keeps what it has, at the price of a copy; so a request is dropped before its answer is recorded. A message is
//! hashed once, and in one turn written once for its model, unless it or one before it is changed.

use std::hash::{DefaultHasher, Hasher};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::{fmt, io};

use parking_lot::Mutex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use kode_base::capacity;

use super::{Message, Role};

/// Messages, oldest first. A clone shares them.
#[derive(Clone, Default)]
pub struct History(Arc<SharedHistory>);

/// The messages and their cached facts.
#[derive(Default)]
struct SharedHistory {
    messages: Vec<Message>,
    /// The fingerprint of the first message, of the first two, and so on, as far as requested.
    fingerprints: Mutex<Vec<u64>>,
    /// The oldest messages as the newest request wrote them.
    written: Mutex<WrittenMessages>,
}

/// Messages of requests, written for one model.
#[derive(Clone, Default)]
struct WrittenMessages {
    /// The model and its wire format.
    form: u64,
    messages: Vec<WrittenMessage>,
}

/// A message of a request as its wire format has it. It may hold several of the history, and one of the history may be several.
#[derive(Clone, Debug)]
pub struct WrittenMessage {
    /// The index behind its newest message of the history.
    pub end: usize,
    /// The author of the message.
    pub role: Role,
    /// What its adapter has to know of it for other messages.
    pub note: bool,
    /// It as JSON.
    pub json: Arc<RawValue>,
}

impl WrittenMessages {
    /// Drops those that hold a message of the history from this index on.
    fn truncate(&mut self, count: usize) {
        let known = self.messages.partition_point(|written| written.end <= count);
        self.messages.truncate(known);
    }
}

impl History {
    /// Adds a message to the end.
    pub fn push(&mut self, message: Message) {
        capacity::push(&mut Arc::make_mut(&mut self.0).messages, message);
    }

    /// The newest message, to be changed.
    pub fn last_mut(&mut self) -> Option<&mut Message> {
        let SharedHistory { messages, fingerprints, written } = Arc::make_mut(&mut self.0);
        let others = messages.len().saturating_sub(1);
        fingerprints.get_mut().truncate(others);
        written.get_mut().truncate(others);
        messages.last_mut()
    }

    /// The oldest messages as they were kept for this form by [`History::keep_written`].
    pub fn written(&self, form: u64) -> Vec<WrittenMessage> {
        let written = self.0.written.lock();
        if written.form == form { written.messages.clone() } else { Vec::new() }
    }

    /// Keeps the oldest messages as they are written for a form, which names the model, its wire format and whatever else
    /// decides how they are written. They must be written alike in whichever request follows. Those of other forms are forgotten.
    pub fn keep_written(&self, form: u64, messages: Vec<WrittenMessage>) {
        *self.0.written.lock() = WrittenMessages { form, messages };
    }

    /// Forgets how messages are written: they take as much memory as the messages.
    pub fn forget_written(&self) {
        *self.0.written.lock() = WrittenMessages::default();
    }

    /// A hash of the first `count` messages, or of all if there are fewer, within this process. Messages that were hashed
    /// before are not hashed again. None if one has no written form.
    pub fn fingerprint(&self, count: usize) -> Option<u64> {
        let count = count.min(self.0.messages.len());
        let mut known = self.0.fingerprints.lock();
        for message in self.0.messages.iter().take(count).skip(known.len()) {
            let mut hasher = HashWriter::default();
            hasher.0.write_u64(known.last().copied().unwrap_or_default());
            serde_json::to_writer(&mut hasher, message).ok()?;
            known.push(hasher.0.finish());
        }
        Some(count.checked_sub(1).and_then(|last| known.get(last)).copied().unwrap_or_default())
    }
}

impl Clone for SharedHistory {
    fn clone(&self) -> Self {
        let known = self.fingerprints.lock().clone();
        let written = self.written.lock().clone();
        Self {
            messages: self.messages.clone(),
            fingerprints: Mutex::new(known),
            written: Mutex::new(written),
        }
    }
}

/// Hashes the written bytes, without a copy of it.
#[derive(Default)]
struct HashWriter(DefaultHasher);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("History").field(&self.0.messages).finish()
    }
}

impl PartialEq for History {
    fn eq(&self, other: &Self) -> bool {
        self.0.messages == other.0.messages
    }
}

impl Serialize for History {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.messages.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for History {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Vec::deserialize(deserializer).map(Self::from)
    }
}

impl Deref for History {
    type Target = [Message];

    fn deref(&self) -> &[Message] {
        &self.0.messages
    }
}

impl DerefMut for History {
    fn deref_mut(&mut self) -> &mut [Message] {
        let SharedHistory { messages, fingerprints, written } = Arc::make_mut(&mut self.0);
        // Whatever is changed may be changed anywhere.
        fingerprints.get_mut().clear();
        written.get_mut().messages.clear();
        messages.as_mut_slice()
    }
}

impl From<Vec<Message>> for History {
    fn from(messages: Vec<Message>) -> Self {
        Self(Arc::new(SharedHistory { messages, ..SharedHistory::default() }))
    }
}

impl FromIterator<Message> for History {
    fn from_iter<I: IntoIterator<Item = Message>>(messages: I) -> Self {
        messages.into_iter().collect::<Vec<_>>().into()
    }
}

impl<'a> IntoIterator for &'a History {
    type Item = &'a Message;
    type IntoIter = std::slice::Iter<'a, Message>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Block;

    fn said(text: &str) -> Message {
        Message::user(vec![Block::Text { text: text.into() }])
    }

    fn hashed(history: &History) -> usize {
        history.0.fingerprints.lock().len()
    }

    #[test]
    fn only_what_is_new_is_hashed() {
        let mut history = History::from(vec![said("a"), said("b")]);
        let two = history.fingerprint(2);
        let shared = history.clone();
        drop(shared);
        history.push(said("c"));
        assert_eq!(hashed(&history), 2, "what was hashed stays known");
        assert_ne!(history.fingerprint(usize::MAX), two);
        assert_eq!((hashed(&history), history.fingerprint(2)), (3, two));
        history.last_mut().unwrap().content.clear();
        assert_eq!(hashed(&history), 2, "the newest message alone is hashed again");
        // The fingerprint of a history that was hashed piece by piece is that of the same one hashed at once.
        let whole = History::from(history.to_vec());
        assert_eq!(history.fingerprint(3), whole.fingerprint(3));
    }

    #[test]
    fn written_messages_are_kept_for_one_form_until_one_of_them_is_changed() {
        let kept = |count: usize| {
            let written = |end| WrittenMessage {
                end,
                role: Role::User,
                note: false,
                json: serde_json::value::to_raw_value(&end).unwrap().into(),
            };
            let history = History::from(vec![said("a"), said("b"), said("c")]);
            history.keep_written(7, (1..=count).map(written).collect());
            history
        };
        let ends = |history: &History, form| {
            history.written(form).into_iter().map(|written| written.end).collect::<Vec<_>>()
        };
        let mut history = kept(3);
        history.push(said("d"));
        assert_eq!((ends(&history, 7), ends(&history, 8)), (vec![1, 2, 3], vec![]));
        history.last_mut().unwrap().content.clear();
        assert_eq!(ends(&history, 7), [1, 2, 3], "the newest one was not written");
        let shared = history.clone();
        let mut newest = kept(3);
        newest.last_mut().unwrap().content.clear();
        assert_eq!(ends(&newest, 7), [1, 2]);
        let mut earlier = shared.clone();
        earlier[0] = said("x");
        assert_eq!((ends(&earlier, 7), ends(&shared, 7)), (vec![], vec![1, 2, 3]));
        shared.forget_written();
        assert!(ends(&history, 7).is_empty(), "they are shared like the messages");
    }

    #[test]
    fn whatever_is_changed_changes_the_fingerprint() {
        let history = History::from(vec![said("a"), said("b")]);
        let before = history.fingerprint(2);
        let mut earlier = history.clone();
        earlier[0] = said("x");
        let mut newest = history.clone();
        *newest.last_mut().unwrap() = said("x");
        let (mut one, mut other) = (history.clone(), history.clone());
        one.push(said("c"));
        other.push(said("d"));
        let all = [&earlier, &newest].map(|history| history.fingerprint(2));
        assert!(all.iter().all(|changed| changed.is_some() && *changed != before), "{all:?}");
        assert_ne!(one.fingerprint(3), other.fingerprint(3));
        assert_eq!((one.fingerprint(2), history.fingerprint(2)), (before, before));
    }
}
