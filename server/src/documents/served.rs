//! The virtual documents that the client has read: it is told when one of them is another text.
//!
//! Rule: bounded, the one read last stays longest; a text is told once, and only when it differs from what was given.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many are remembered.
const MAX_SERVED: usize = 64;

/// The virtual documents that the client has read.
#[derive(Debug, Default)]
pub struct Served {
    /// Their URIs and what their texts were in short, the one read last at the end.
    read: Mutex<VecDeque<(String, u64)>>,
}

impl Served {
    /// Notes that the client was given this text.
    pub fn given(&self, uri: &str, text: &str) {
        let mut read = self.lock();
        read.retain(|(known, _)| known != uri);
        if read.len() >= MAX_SERVED {
            read.pop_front();
        }
        read.push_back((uri.to_owned(), in_short(text)));
    }

    /// Those that are another text now, by what `now` says of them; none of them is named again for the same text. One
    /// without a text is forgotten.
    pub fn changed(&self, now: impl Fn(&str) -> Option<String>) -> Vec<String> {
        // Nobody is held up while texts are made.
        let known: Vec<(String, u64)> = self.lock().iter().cloned().collect();
        let mut changed = Vec::new();
        for (uri, before) in known {
            let after = now(&uri).map(|text| in_short(&text));
            if after == Some(before) {
                continue;
            }
            let mut read = self.lock();
            match after {
                Some(after) => {
                    read.iter_mut().filter(|(known, _)| *known == uri).for_each(|(_, told)| *told = after);
                    drop(read);
                    changed.push(uri);
                }
                None => read.retain(|(known, _)| *known != uri),
            }
        }
        changed
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
        let served = Served::default();
        served.given("a", "one");
        served.given("b", "same");
        let now = |uri: &str| Some(if uri == "a" { "two" } else { "same" }.to_owned());
        assert_eq!(served.changed(now), ["a"]);
        assert_eq!(served.changed(now), [] as [String; 0]);
        assert_eq!(served.changed(|_| None), [] as [String; 0]);
        assert!(served.lock().is_empty());
        for number in 0..2 * MAX_SERVED {
            served.given(&number.to_string(), "");
        }
        assert_eq!(served.lock().len(), MAX_SERVED);
    }
}
