//! Edits that were made one after the other, as edits of the first text.
//!
//! Rule: the text itself is never checked, only offsets and inserted text, so that composing costs what the
//! edits bring and not what the text holds.

use std::collections::VecDeque;

use crate::edit::TextEdit;

/// The edits that come to the same as `first` and then `second`. Both are sorted and do not overlap; the result does
/// not even touch.
#[must_use]
pub fn compose_edits(first: &[TextEdit], second: &[TextEdit]) -> Vec<TextEdit> {
    let (mut first, mut second) = (first.iter().peekable(), second.iter().peekable());
    let mut composed = Vec::new();
    // By how much the edits of `first` that have been passed moved what follows them.
    let (mut removed, mut inserted) = (0, 0);
    loop {
        let first_start = first.peek().map(|edit| edit.range.start + inserted - removed);
        let second_start = second.peek().map(|edit| edit.range.start);
        let Some(start) = first_start.into_iter().chain(second_start).min() else { return composed };
        let base_start = start + removed - inserted;
        let mut group =
            EditGroup { middle: VecDeque::new(), taken: start, end: start, new_text: String::new() };
        // Everything that touches the group, in offsets of the text between the two.
        loop {
            if let Some(edit) = first.next_if(|edit| edit.range.start + inserted - removed <= group.end) {
                group.insert(edit.range.start + inserted - removed, &edit.new_text);
                removed += edit.range.len();
                inserted += edit.new_text.len();
            } else if let Some(edit) = second.next_if(|edit| edit.range.start <= group.end) {
                group.replace(edit);
            } else {
                break;
            }
        }
        group.keep_until(group.end);
        let range = base_start..group.end + removed - inserted;
        if !range.is_empty() || !group.new_text.is_empty() {
            composed.push(TextEdit { range, new_text: group.new_text });
        }
    }
}

/// Edits of both sides that touch each other.
struct EditGroup<'a> {
    /// The insertions of the first edits into the text between the two, by its place there. Whatever of the group the second
    /// edits leave is in here, for one edit touches the next.
    middle: VecDeque<(usize, &'a str)>,
    /// How far the second edits, and what they left, have been taken over.
    taken: usize,
    /// Where the group ends.
    end: usize,
    new_text: String,
}

impl<'a> EditGroup<'a> {
    fn insert(&mut self, at: usize, text: &'a str) {
        self.middle.push_back((at, text));
        self.end = self.end.max(at + text.len());
    }

    fn replace(&mut self, edit: &TextEdit) {
        self.keep_until(edit.range.start);
        self.new_text.push_str(&edit.new_text);
        self.taken = edit.range.end;
        self.end = self.end.max(self.taken);
    }

    fn keep_until(&mut self, until: usize) {
        while let Some((at, text)) = self.middle.front().copied()
            && self.taken < until
        {
            let ends = at + text.len();
            if ends <= self.taken {
                self.middle.pop_front();
                continue;
            }
            let kept = self.taken.saturating_sub(at)..until.min(ends) - at;
            self.new_text.push_str(&text[kept]);
            self.taken = until.min(ends);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::edit::change::apply_edits;

    fn edits(text: &str, cuts: &[(usize, String)]) -> Vec<TextEdit> {
        let mut ends: Vec<usize> = cuts.iter().map(|(at, _)| at % (text.len() + 1)).collect();
        ends.sort_unstable();
        let ranges = ends.chunks_exact(2).map(|pair| pair[0]..pair[1]);
        ranges
            .zip(cuts)
            .map(|(range, (_, new_text))| TextEdit { range, new_text: new_text.clone() })
            .collect()
    }

    proptest! {
        #[test]
        fn composed_edits_come_to_the_same(
            text in "[a-d]{0,20}",
            first in proptest::collection::vec((0..40usize, "[x-z]{0,3}"), 0..8),
            second in proptest::collection::vec((0..40usize, "[X-Z]{0,3}"), 0..8),
        ) {
            let first = edits(&text, &first);
            let middle = apply_edits(&text, &first);
            let second = edits(&middle, &second);
            let composed = compose_edits(&first, &second);
            prop_assert_eq!(apply_edits(&text, &composed), apply_edits(&middle, &second));
            for pair in composed.windows(2) {
                prop_assert!(pair[0].range.end < pair[1].range.start, "{:?}", composed);
            }
        }
    }

    #[test]
    fn what_lies_apart_stays_apart() {
        let edit = |range, new_text: &str| TextEdit { range, new_text: new_text.to_owned() };
        let first = [edit(0..1, "xyz")];
        let second = [edit(1..2, ""), edit(6..7, "F")];
        assert_eq!(compose_edits(&first, &second), [edit(0..1, "xz"), edit(4..5, "F")]);
    }
}
