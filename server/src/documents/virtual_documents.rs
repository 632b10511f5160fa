//! The virtual documents that the client has read, so that it can be notified when their text changes.
//!
//! Rule: bounded; the newest read stays longest. A text is reported once, and only when it differs from the text that was read.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of documents that are remembered.
const MAX_SERVED: usize = 64;

/// The virtual documents that the client has read.
#[derive(Debug, Default)]
pub struct VirtualDocuments {
    /// URI and digest of each text, the newest read at the end.
    read: Mutex<VecDeque<(String, u64)>>,
}

impl VirtualDocuments {
    /// Notes that the client was given this text.
    pub fn given(&self, uri: &str, text: &str) {
        let mut read = self.lock();
        read.retain(|(known, _)| known != uri);
        if read.len() >= MAX_SERVED {
            read.pop_front();
        }
        read.push_back((uri.to_owned(), in_short(text)));
    }

    /// The documents that are remembered.
    #[must_use]
    pub fn uris(&self) -> Vec<String> {
        self.lock().iter().map(|(uri, _)| uri.clone()).collect()
    }

    /// Notes the text that a document has now, and says whether it is another one than the client knows. A document without
    /// a text is forgotten.
    pub fn is_another(&self, uri: &str, now: Option<&str>) -> bool {
        let mut read = self.lock();
        let Some(now) = now.map(in_short) else {
            read.retain(|(known, _)| known != uri);
            return false;
        };
        let known = read.iter_mut().find(|(known, _)| known == uri);
        known.is_some_and(|(_, reported)| std::mem::replace(reported, now) != now)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(String, u64)>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn in_short(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_changed_is_named_once_and_few_are_remembered() {
        let served = VirtualDocuments::default();
        served.given("a", "one");
        served.given("b", "same");
        for (uri, now, is_another) in [("a", "two", true), ("a", "two", false), ("b", "same", false)] {
            assert_eq!(served.is_another(uri, Some(now)), is_another, "{uri}");
        }
        for uri in served.uris() {
            assert!(!served.is_another(&uri, None), "{uri}");
        }
        assert_eq!(served.uris(), [] as [String; 0]);
        for number in 0..2 * MAX_SERVED {
            served.given(&number.to_string(), "");
        }
        assert_eq!(served.lock().len(), MAX_SERVED);
    }
}
