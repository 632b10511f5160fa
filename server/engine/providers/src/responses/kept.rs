//! Which answers the server keeps, and after which history it gave them.
//!
//! Rule: a conversation continues from a kept answer only if everything before that answer is, byte for byte, what the
//! server received; after a compaction, a rewind or a restart everything is sent again. At most [`MAX_KEPT`] answers
//! are known at a time, the newest. No message is hashed twice
//! for it, and nothing before the newest of them is checked.

use std::collections::VecDeque;

use super::OwnModel;
use super::request::ResponseBookmark;
use kode_model::{History, Role};
use parking_lot::Mutex;

/// Maximum number of answers that are known at a time; of each conversation the newest counts.
const MAX_KEPT: usize = 256;

/// The answers a server keeps.
#[derive(Default)]
pub(super) struct StoredAnswers {
    answers: Mutex<VecDeque<StoredAnswer>>,
}

struct StoredAnswer {
    id: String,
    /// Of the history it was the answer to.
    fingerprint: u64,
}

impl StoredAnswers {
    /// The newest answer of the history that the server can continue from. None where nothing would follow it.
    pub(super) fn bookmark<'a>(
        &self,
        own: OwnModel<'_>,
        history: &'a History,
    ) -> Option<ResponseBookmark<'a>> {
        // The newest one mostly is it, so nothing before it is checked.
        let answers = history.iter().enumerate().rev().skip(1);
        let own = answers.filter(|(_, message)| message.role == Role::Assistant && own.gave(message));
        let mut named =
            own.filter_map(|(at, message)| Some((at, message.origin.as_ref()?.response_id.as_deref()?)));
        let (at, response) = named.find(|(at, id)| {
            let kept = self.fingerprint_of(id);
            kept.is_some() && kept == history.fingerprint(*at)
        })?;
        Some(ResponseBookmark { response, next: at + 1 })
    }

    /// The fingerprint of the history that a kept answer was given to.
    fn fingerprint_of(&self, id: &str) -> Option<u64> {
        let answers = self.answers.lock();
        answers.iter().find(|answer| answer.id == id).map(|answer| answer.fingerprint)
    }

    /// Remembers that the server keeps the answer `id` to the first `count` messages of `history`.
    pub(super) fn remember(&self, id: String, history: &History, count: usize) {
        let Some(fingerprint) = history.fingerprint(count) else { return };
        let mut answers = self.answers.lock();
        answers.push_front(StoredAnswer { id, fingerprint });
        answers.truncate(MAX_KEPT);
    }

    /// Forgets an answer that the server does not keep any more.
    pub(super) fn forget(&self, id: &str) {
        let mut answers = self.answers.lock();
        answers.retain(|answer| answer.id != id);
    }
}
