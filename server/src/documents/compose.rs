//! The changes of one notification as edits of the text before it.
//!
//! Rule: the text itself is never checked, only its offsets and inserted text, so that a change costs what it
//! brings and not what the document holds.

use kode_engine::text::edit::TextEdit;
use kode_engine::text::edit::compose::compose_edits;

/// Changes that were made one after the other.
#[derive(Debug, Default)]
pub(super) struct ComposedChanges {
    /// Edits that follow each other, each of them a run of changes at most half as long as the one before it, so that
    /// many changes are composed in few and balanced steps.
    runs: Vec<ChangeRun>,
    /// Whether a change replaced the whole text.
    whole: bool,
}

#[derive(Debug)]
struct ChangeRun {
    changes: usize,
    edits: Vec<TextEdit>,
}

impl ComposedChanges {
    /// Adds a change: an edit of the text that the changes so far have led to.
    pub(super) fn push(&mut self, edit: TextEdit) {
        if self.whole {
            return;
        }
        let mut newest = ChangeRun { changes: 1, edits: vec![edit] };
        while let Some(last) = self.runs.pop_if(|last| last.changes <= newest.changes) {
            newest = last.then(newest);
        }
        self.runs.push(newest);
    }

    /// Notes a change that replaced the whole text and does not say what of it.
    pub(super) fn replace_all(&mut self) {
        self.whole = true;
    }

    /// All changes as edits of the first text: sorted, neither overlapping nor touching. `None` when the whole text was
    /// replaced.
    pub(super) fn finish(self) -> Option<Vec<TextEdit>> {
        if self.whole {
            return None;
        }
        let all = self.runs.into_iter().rev().reduce(|later, earlier| earlier.then(later));
        let mut edits = all.map(|run| run.edits).unwrap_or_default();
        edits.retain(|edit| !edit.range.is_empty() || !edit.new_text.is_empty());
        Some(edits)
    }
}

impl ChangeRun {
    fn then(self, later: Self) -> Self {
        Self { changes: self.changes + later.changes, edits: compose_edits(&self.edits, &later.edits) }
    }
}

#[cfg(test)]
mod tests {
    use kode_engine::text::edit::change::apply_edits;
    use proptest::prelude::*;

    use super::*;

    fn edit(range: std::ops::Range<usize>, new_text: &str) -> TextEdit {
        TextEdit { range, new_text: new_text.to_owned() }
    }

    fn composed(changes: &[TextEdit]) -> Vec<TextEdit> {
        let mut composed = ComposedChanges::default();
        changes.iter().cloned().for_each(|change| composed.push(change));
        composed.finish().unwrap()
    }

    proptest! {
        #[test]
        fn composed_changes_come_to_the_same_as_one_after_the_other(
            base in "[a-dä😀]{0,20}",
            steps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), "[x-zü]{0,3}"), 0..20),
        ) {
            let mut text = base.clone();
            let mut changes = Vec::new();
            for (a, b, new_text) in steps {
                let boundaries: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
                let (a, b) = (*a.get(&boundaries), *b.get(&boundaries));
                changes.push(edit(a.min(b)..a.max(b), &new_text));
                text.replace_range(a.min(b)..a.max(b), &new_text);
            }
            let composed = composed(&changes);
            prop_assert_eq!(apply_edits(&base, &composed), text);
            for pair in composed.windows(2) {
                prop_assert!(pair[0].range.end < pair[1].range.start, "{:?}", composed);
            }
        }
    }

    #[test]
    fn what_lies_apart_stays_apart_whatever_the_order() {
        let from_the_end = [edit(8..9, "C"), edit(4..5, "B"), edit(0..1, "A")];
        let expected = [edit(0..1, "A"), edit(4..5, "B"), edit(8..9, "C")];
        assert_eq!(composed(&from_the_end), expected);
        let from_the_start = [edit(0..1, "A"), edit(4..5, "B"), edit(8..9, "C")];
        assert_eq!(composed(&from_the_start), expected);
    }

    #[test]
    fn many_changes_are_composed_in_balanced_steps() {
        let mut changes = ComposedChanges::default();
        (0..13).for_each(|_| changes.push(edit(0..0, "x")));
        let runs: Vec<_> = changes.runs.iter().map(|run| run.changes).collect();
        assert_eq!(runs, [8, 4, 1]);
        assert_eq!(changes.finish().unwrap(), [edit(0..0, "xxxxxxxxxxxxx")]);
    }

    #[test]
    fn what_comes_to_nothing_is_no_edit_and_a_whole_text_is_none_at_all() {
        assert_eq!(composed(&[]), []);
        assert_eq!(composed(&[edit(3..3, "")]), []);
        assert_eq!(composed(&[edit(3..3, "x"), edit(3..4, "")]), []);
        let mut changes = ComposedChanges::default();
        changes.push(edit(0..0, "x"));
        changes.replace_all();
        changes.push(edit(0..0, "y"));
        assert_eq!(changes.finish(), None);
    }
}
