//! Moving edits onto a text that changed under them: a three-way merge of edits, base and what the user has now.
//!
//! Rule: whatever the user did stays exactly as it is. An edit is moved only when no change of theirs reaches into
//! the bytes it replaces; where text touches text the order is: theirs before ours when they inserted at the start
//! of what we replace, ours before theirs when they inserted at its end. Two insertions at one place have no
//! right order and are a conflict, unless they are the same text.

use crate::edit::TextEdit;
use crate::edit::change::apply_edits;
use crate::edit::diff::{common_ends, split_lines, word_changes};

/// The outcome of edits that met a changed text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rebase {
    /// The edits in byte offsets of the text as it is now, without those that are already in it.
    Clean(Vec<TextEdit>),
    /// The text as it is now has all the edits in it.
    AlreadyApplied,
    /// The user changed the very text an edit replaces.
    Conflict {
        /// The edit, in offsets of the base text.
        ours: TextEdit,
        /// The lines that stand at its place now.
        theirs: String,
        /// The number of the first of these lines, from 1.
        line: usize,
    },
}

/// Moves `edits`, computed on `base`, onto `now`.
#[must_use]
pub fn rebase(base: &str, edits: &[TextEdit], now: &str) -> Rebase {
    let ours: Vec<TextEdit> = edits.iter().filter_map(|edit| trimmed(base, edit)).collect();
    if ours.is_empty() || contains(base, edits, now) {
        return Rebase::AlreadyApplied;
    }
    if base == now {
        return Rebase::Clean(edits.to_vec());
    }
    let theirs = word_changes(base, now);
    let mut clean = Vec::with_capacity(ours.len());
    // Everything of theirs before the current edit has been passed, and has moved the text by this offset.
    let (mut passed, mut removed, mut inserted) = (0, 0, 0);
    for edit in ours {
        while let Some(change) = theirs.get(passed)
            && change.range.end <= edit.range.start
            && !(change.range.is_empty() && edit.range.is_empty() && change.range.start == edit.range.start)
        {
            removed += change.range.len();
            inserted += change.new_text.len();
            passed += 1;
        }
        let met = theirs[passed..].iter().take_while(|change| change.range.start <= edit.range.end);
        let overlapping: Vec<&TextEdit> = met.filter(|change| overlaps(&edit, change)).collect();
        if overlapping == [&edit] {
            continue;
        }
        let start = edit.range.start + inserted - removed;
        if let (Some(first), Some(last)) = (overlapping.first(), overlapping.last()) {
            let from = start - edit.range.start.saturating_sub(first.range.start);
            let length = overlapping.iter().map(|change| change.new_text.len()).sum::<usize>()
                + (last.range.end.max(edit.range.end) - first.range.start.min(edit.range.start))
                - overlapping.iter().map(|change| change.range.len()).sum::<usize>();
            let (line, theirs) = lines_around(now, from, from + length);
            return Rebase::Conflict { ours: edit, theirs, line };
        }
        clean.push(TextEdit { range: start..start + edit.range.len(), new_text: edit.new_text });
    }
    if clean.is_empty() { Rebase::AlreadyApplied } else { Rebase::Clean(clean) }
}

/// Whether `now` is `base` with `edits` applied and, at most, other changes besides.
///
/// Three things must hold: what the edits put in is there whole, at most with insertions in it; what they took out has not come
/// back; and `now` is closer to the edited text than to the base. The last one keeps text that merely repeats itself
/// (a second blank line, another `}`) from being treated as ours.
#[must_use]
pub fn contains(base: &str, edits: &[TextEdit], now: &str) -> bool {
    let edited = apply_edits(base, edits);
    if edited == now {
        return true;
    }
    if base == now {
        return false;
    }
    let since = word_changes(&edited, now);
    if size(&since) >= size(&word_changes(base, now)) {
        return false;
    }
    let (mut removed, mut inserted) = (0, 0);
    edits.iter().filter_map(|edit| trimmed(base, edit)).all(|edit| {
        let start = edit.range.start + inserted - removed;
        let ours = start..start + edit.new_text.len();
        removed += edit.range.len();
        inserted += edit.new_text.len();
        let at = since.partition_point(|change| change.range.end < ours.start);
        let near = || since[at..].iter().take_while(|change| change.range.start <= ours.end);
        let is_beside = |change: &TextEdit| change.range.end <= ours.start || change.range.start >= ours.end;
        let is_whole = near().all(|change| is_beside(change) || change.range.is_empty());
        let brought_back: String = near().map(|change| change.new_text.as_str()).collect();
        is_whole && !resembles(&base[edit.range], &brought_back)
    })
}

/// The edit without what stays the same at its ends; `None` when it changes nothing.
fn trimmed(base: &str, edit: &TextEdit) -> Option<TextEdit> {
    let (prefix, suffix) = common_ends(&base[edit.range.clone()], &edit.new_text);
    let range = edit.range.start + prefix..edit.range.end - suffix;
    let new_text = edit.new_text[prefix..edit.new_text.len() - suffix].to_owned();
    (!range.is_empty() || !new_text.is_empty()).then_some(TextEdit { range, new_text })
}

fn overlaps(ours: &TextEdit, theirs: &TextEdit) -> bool {
    let (ours, theirs) = (&ours.range, &theirs.range);
    if ours.is_empty() && theirs.is_empty() {
        return ours.start == theirs.start;
    }
    ours.start.max(theirs.start) < ours.end.min(theirs.end)
        || (ours.is_empty() && theirs.start < ours.start && ours.start < theirs.end)
        || (theirs.is_empty() && ours.start < theirs.start && theirs.start < ours.end)
}

fn size(changes: &[TextEdit]) -> usize {
    changes.iter().map(|change| change.range.len() + change.new_text.len()).sum()
}

/// Whether half or more of the removed text is in `text` in its order.
fn resembles(removed: &str, text: &str) -> bool {
    let lost: usize = word_changes(removed, text).iter().map(|change| change.range.len()).sum();
    !removed.is_empty() && (removed.len() - lost) * 2 >= removed.len()
}

fn lines_around(text: &str, start: usize, end: usize) -> (usize, String) {
    let is_break = |character| character == '\n' || character == '\r';
    let from = text[..start].rfind(is_break).map_or(0, |at| at + 1);
    let to = text[end..].find(is_break).map_or(text.len(), |at| end + at);
    (split_lines(&text[..from]).len() + 1, text[from..to].to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn edit(base: &str, old: &str, new: &str) -> TextEdit {
        let start = base.find(old).unwrap();
        TextEdit { range: start..start + old.len(), new_text: new.to_owned() }
    }

    fn insertion(at: usize, text: &str) -> TextEdit {
        TextEdit { range: at..at, new_text: text.to_owned() }
    }

    fn rebased(base: &str, edits: &[TextEdit], now: &str) -> String {
        match rebase(base, edits, now) {
            Rebase::Clean(edits) => apply_edits(now, &edits),
            other => panic!("{other:?}"),
        }
    }

    const BASE: &str = "fn main() {\n    one();\n    two();\n}\n";

    #[test]
    fn typing_elsewhere_moves_the_edit_and_keeps_the_typing() {
        let ours = [edit(BASE, "one()", "first()")];
        for (now, expected) in [
            (
                "// hi\nfn main() {\n    one();\n    two();\n}\n",
                "// hi\nfn main() {\n    first();\n    two();\n}\n",
            ),
            ("fn main() {\n    one();\n    tw();\n}\n", "fn main() {\n    first();\n    tw();\n}\n"),
            ("fn main() {\n    one(); // é\n}\n", "fn main() {\n    first(); // é\n}\n"),
            ("fn main() {\n    xone();\n    two();\n}\n", "fn main() {\n    xfirst();\n    two();\n}\n"),
        ] {
            assert_eq!(rebased(BASE, &ours, now), expected);
        }
    }

    #[test]
    fn typing_into_the_replaced_text_is_a_conflict_that_shows_the_line() {
        let ours = edit(BASE, "one()", "first()");
        let now = "\nfn main() {\n    on2e();\n    two();\n}\n";
        let conflict = rebase(BASE, std::slice::from_ref(&ours), now);
        let Rebase::Conflict { theirs, line, .. } = conflict else { panic!("{conflict:?}") };
        assert_eq!((theirs.as_str(), line), ("    on2e();", 3));
    }

    #[test]
    fn touching_changes_have_a_fixed_order() {
        let base = "a b c";
        assert_eq!(rebased(base, &[edit(base, "b", "B")], "a 1b c"), "a 1B c");
        assert_eq!(rebased(base, &[edit(base, "b", "B")], "a b1 c"), "a B1 c");
        assert_eq!(rebased(base, &[insertion(2, "X")], "a 1 c"), "a X1 c");
        assert_eq!(rebased(base, &[insertion(3, "X")], "a 1 c"), "a 1X c");
        assert!(matches!(rebase(base, &[insertion(2, "X")], "a 1b c"), Rebase::Conflict { .. }));
    }

    #[test]
    fn a_change_the_user_made_as_well_is_not_made_twice() {
        let base = "a b c";
        let ours = [edit(base, "a", "A"), edit(base, "c", "C")];
        assert_eq!(rebase(base, &ours, "A b C"), Rebase::AlreadyApplied);
        assert_eq!(rebased(base, &ours, "A b c"), "A b C");
        assert_eq!(rebase(base, &[insertion(2, "X")], "a Xb c"), Rebase::AlreadyApplied);
    }

    #[test]
    fn containing_an_edit_is_not_feigned_by_text_that_repeats() {
        let braces = "f() {\n}\ng() {\n}\n";
        let cases = [
            ("x\nx\n", insertion(0, "x\n"), "x\nx\n"),
            ("x\nx\n", insertion(0, "x\n"), "x\n1\nx\n"),
            (braces, insertion(6, "call();\n"), "f() {\n}\ng() {\ncall();\n}\n"),
            ("hello world", edit("hello world", " world", ""), "hello wxrld"),
            ("hello world", edit("hello world", " world", ""), "1 hello world"),
            ("a b", edit("a b", "b", "c"), "a b c"),
            ("a b c", edit("a b c", "b", "long"), "a lng c"),
            ("a b c", edit("a b c", "b", "long"), "a lo1g c"),
        ];
        for (base, ours, now) in cases {
            assert!(!contains(base, &[ours], now), "{base:?} {now:?}");
        }
    }

    #[test]
    fn containing_an_edit_survives_typing_around_it() {
        let ours = [edit(BASE, "one()", "first()"), edit(BASE, "    two();\n", "")];
        for now in [
            "fn main() {\n    first();\n}\n",
            "fn main() {\n    first();\n    more\n}\n",
            "// top\nfn main() {\n    first(); // é\n}\n",
            "fn main() {\n    xfirst();\n}\n\n",
            "fn main() {\n    fi_rst();\n}\n",
        ] {
            assert!(contains(BASE, &ours, now), "{now:?}");
        }
    }

    /// Edits over `base` whose new texts are drawn from one alphabet, so that one can tell whose a character is.
    fn edits(base: &'static str, alphabet: &'static str) -> impl Strategy<Value = Vec<TextEdit>> {
        let places = proptest::collection::btree_set(0..=base.len(), 0..7);
        (places, proptest::collection::vec(alphabet, 3)).prop_map(|(places, texts)| {
            let places: Vec<usize> = places.into_iter().collect();
            let pairs = places.chunks_exact(2).zip(texts);
            pairs.map(|(pair, new_text)| TextEdit { range: pair[0]..pair[1], new_text }).collect()
        })
    }

    fn only(text: &str, keep: fn(&char) -> bool) -> String {
        text.chars().filter(keep).collect()
    }

    const PROSE: &str = "ab cd\nef gh\n\nab cd ij\r\nkl\nmn op\nef\n";

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn no_character_of_the_user_is_lost_moved_or_altered(
            ours in edits(PROSE, "[A-C \n]{0,4}"),
            theirs in edits(PROSE, "[1-3 \n]{0,4}"),
        ) {
            let now = apply_edits(PROSE, &theirs);
            if let Rebase::Clean(clean) = rebase(PROSE, &ours, &now) {
                let mut position = 0;
                for edit in &clean {
                    prop_assert!(position <= edit.range.start);
                    position = edit.range.end;
                    let replaced = &now[edit.range.clone()];
                    prop_assert!(!replaced.contains(|c: char| c.is_ascii_digit()), "{:?}", replaced);
                }
                let merged = apply_edits(&now, &clean);
                prop_assert_eq!(only(&merged, char::is_ascii_digit), only(&now, char::is_ascii_digit));
                let inserted: String = ours.iter().map(|edit| edit.new_text.as_str()).collect();
                prop_assert_eq!(
                    only(&merged, char::is_ascii_uppercase),
                    only(&inserted, char::is_ascii_uppercase)
                );
            }
        }

        #[test]
        fn applied_edits_are_recognized(ours in edits(PROSE, "[A-C \n]{0,4}")) {
            let now = apply_edits(PROSE, &ours);
            prop_assert!(contains(PROSE, &ours, &now));
            prop_assert_eq!(rebase(PROSE, &ours, &now), Rebase::AlreadyApplied);
        }

        #[test]
        fn typing_alone_is_never_taken_for_the_edits(
            ours in edits(PROSE, "[A-C]{1,4}"),
            theirs in edits(PROSE, "[1-3 \n]{0,4}"),
        ) {
            let now = apply_edits(PROSE, &theirs);
            prop_assert!(ours.is_empty() || !contains(PROSE, &ours, &now));
        }

        #[test]
        fn a_moved_edit_is_recognized_beside_the_users_insertions(
            line in 0_usize..20,
            typed_line in 0_usize..20,
        ) {
            let base: String = (0..20).map(|number| format!("line {number}\n")).collect();
            let ours = [edit(&base, &format!("line {line}\n"), &format!("LINE {line}\nMORE\n"))];
            let typed_at = base.find(&format!("line {typed_line}\n")).unwrap();
            let now = apply_edits(&base, &[insertion(typed_at, "typed ")]);
            if let Rebase::Clean(clean) = rebase(&base, &ours, &now) {
                prop_assert!(contains(&base, &ours, &apply_edits(&now, &clean)));
            } else {
                prop_assert_eq!(line, typed_line);
            }
        }
    }
}
