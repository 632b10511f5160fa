//! Edits between three texts, and a replacement in the first: the texts, what is looked for, what takes its place.
//!
//! Rule: the changes between two texts turn one into the other; two sets in a row come to the same as their composition;
//! a rebase onto the text the edits were made for gives what they give; a replacement puts in what it was told to.

use kode_engine::text::edit::change::apply_edits;
use kode_engine::text::edit::compose::compose_edits;
use kode_engine::text::edit::diff::{line_changes, word_changes};
use kode_engine::text::edit::matching::Matches;
use kode_engine::text::edit::rebase::{Rebase, rebase};

use crate::input::Input;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let [a, b, c, old, new] = std::array::from_fn(|_| input.text());
    let first = word_changes(&a, &b);
    assert_eq!(apply_edits(&a, &first), b);
    assert_eq!(apply_edits(&a, &line_changes(&a, &b)), b);
    let second = word_changes(&b, &c);
    assert_eq!(apply_edits(&a, &compose_edits(&first, &second)), c);
    match rebase(&a, &first, &c) {
        Rebase::Clean(moved) => {
            let merged = apply_edits(&c, &moved);
            assert!(a != c || merged == b, "nothing had changed: {merged:?} is not {b:?}");
        }
        Rebase::AlreadyApplied => {}
        Rebase::Conflict { line, .. } => assert!(a != c && line > 0),
    }
    let found = Matches::find(&a, &old);
    let replaced = apply_edits(&a, &found.replacements(&a, &old, &new));
    assert!(!found.ranges.is_empty() || replaced == a);
}
