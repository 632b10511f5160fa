//! The planned writes of a change of files, recorded before it writes.
//!
//! Rule: written ahead of the effect, so that a restart knows the done work. A change counts as made only where each of its
//! edits is found at exactly one place; what the user typed around or within it since is left to the user.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use kode_base::paths::Target;
use kode_journal::BlobId;
use kode_text::edit::change::apply_edits;
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::{AppliedFile, FileChange, TextEdit};
use kode_text::file_text::{FileText, TextSource};

/// The most bytes of text that are kept on each side of an edit.
const MAX_CONTEXT: usize = 200;

/// A change that is about to be made in one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Intent {
    /// The target of the change.
    pub target: Target,
    /// Its owner.
    pub change: ChangeOrigin,
    /// Whether the file is made by it.
    pub created: bool,
    /// The edits, of the text before.
    pub edits: Vec<TextEdit>,
    /// The removed text, edit by edit.
    pub removed: Vec<String>,
    /// The text around each edit afterwards. Journals of earlier versions have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<EditContext>,
    /// The hash of the text afterwards.
    pub after: BlobId,
    /// Whether its call has ended without an answer of the editor, which may have made it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unanswered: bool,
}

/// The text on both sides of an edit as it is afterwards. A side is empty at the beginning or the end of the text only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditContext {
    /// The end of the text before the edit.
    pub before: String,
    /// The beginning of the text after the edit.
    pub after: String,
}

impl Intent {
    /// The record before a change of this file is written.
    pub fn of(file: &FileChange, change: &ChangeOrigin) -> Self {
        let (old, new) = (file.old_text(), file.new_text());
        let removed =
            file.edits.iter().map(|edit| old.get(edit.range.clone()).unwrap_or_default().to_owned());
        Self {
            target: file.target.clone(),
            change: change.clone(),
            created: file.base.is_none(),
            edits: file.edits.clone(),
            removed: removed.collect(),
            contexts: contexts(&new, &file.edits),
            after: BlobId::of(new.as_bytes()),
            is_unanswered: false,
        }
    }

    /// The change as it was made, when this text shows that it was. The new text of the result is without what the user typed
    /// within an edit since.
    pub fn made(&self, now: &FileText) -> Option<AppliedFile> {
        let places = match BlobId::of(now.text.as_bytes()) == self.after {
            true => self.expected_places()?,
            false => self.found_places(&now.text)?,
        };
        let with = |texts: &mut dyn Iterator<Item = &String>| {
            let edits = places.iter().cloned().zip(texts);
            let edits: Vec<_> =
                edits.map(|(range, text)| TextEdit { range, new_text: text.clone() }).collect();
            apply_edits(&now.text, &edits)
        };
        let old_text = with(&mut self.removed.iter());
        let new_text = with(&mut self.edits.iter().map(|edit| &edit.new_text));
        let is_closed = matches!(now.source, TextSource::Disk);
        let bytes = (is_closed && !self.created).then(|| now.format.encode(&old_text).ok()).flatten();
        Some(AppliedFile {
            target: self.target.clone(),
            created: self.created,
            edits: self.edits_of(&places)?,
            old_text,
            new_text,
            rebased: 0,
            format: is_closed.then_some(now.format),
            shown: None,
            bytes: bytes.map(Into::into),
        })
    }

    /// Where the new texts of the edits are in the text that the change leads to.
    fn expected_places(&self) -> Option<Vec<Range<usize>>> {
        let mut moved = 0_usize;
        let place = |edit: &TextEdit| {
            let start = (edit.range.start + moved).checked_sub(self.shrunk_before(edit))?;
            moved += edit.new_text.len();
            Some(start..start + edit.new_text.len())
        };
        self.edits.iter().map(place).collect()
    }

    /// Where the new texts of the edits are in a text that was changed since, each at one place and in their order.
    fn found_places(&self, now: &str) -> Option<Vec<Range<usize>>> {
        if self.contexts.len() != self.edits.len() {
            return None;
        }
        let mut end = 0;
        let mut places = Vec::with_capacity(self.edits.len());
        for ((edit, removed), context) in self.edits.iter().zip(&self.removed).zip(&self.contexts) {
            let place = context.find(now, (removed, &edit.new_text))?;
            if place.start < end {
                return None;
            }
            end = place.end;
            places.push(place);
        }
        Some(places)
    }

    /// The edits that lead from the old text to the new one, where the new texts stand at these places of a text now.
    fn edits_of(&self, places: &[Range<usize>]) -> Option<Vec<TextEdit>> {
        let (mut grown, mut shrunk) = (0_usize, 0_usize);
        let edits = self.edits.iter().zip(&self.removed).zip(places).map(|((edit, removed), place)| {
            let start = (place.start + grown).checked_sub(shrunk)?;
            grown += removed.len();
            shrunk += place.len();
            Some(TextEdit { range: start..start + removed.len(), new_text: edit.new_text.clone() })
        });
        edits.collect()
    }

    /// Bytes that the edits before this one take out.
    fn shrunk_before(&self, edit: &TextEdit) -> usize {
        let before = self.edits.iter().take_while(|before| before.range.start < edit.range.start);
        before.map(|before| before.range.len()).sum()
    }
}

impl EditContext {
    /// The place of an edit's new text, with what the user typed within it since. `None` where the edit was not made, or
    /// where several places are possible.
    fn find(&self, now: &str, (removed, new): (&str, &str)) -> Option<Range<usize>> {
        let Self { before, after } = self;
        if self.whole(now, removed).is_some() {
            return None;
        }
        if let Some(place) = self.whole(now, new) {
            return Some(place);
        }
        // The user typed next to the edit: one side of it is whole.
        if !new.is_empty() {
            let place = |start: usize| start..start + new.len();
            let is_at_start = !removed.starts_with(new) && !before.is_empty();
            if let Some(at) = is_at_start.then(|| only(now, &format!("{before}{new}"))).flatten() {
                return Some(place(at + before.len()));
            }
            let is_at_end = !removed.ends_with(new) && !after.is_empty();
            if let Some(at) = is_at_end.then(|| only(now, &format!("{new}{after}"))).flatten() {
                return Some(place(at));
            }
        }
        self.around_typing(now, (removed, new))
    }

    /// The place of a text between both contexts, its place once.
    fn whole(&self, now: &str, text: &str) -> Option<Range<usize>> {
        let Self { before, after } = self;
        let at = only(now, &format!("{before}{text}{after}"))?;
        let place = at + before.len()..at + before.len() + text.len();
        let is_first = !before.is_empty() || place.start == 0;
        let is_last = !after.is_empty() || place.end == now.len();
        (is_first && is_last).then_some(place)
    }

    /// The place between both contexts, where the text in it is nearer to the new text than to the removed one.
    fn around_typing(&self, now: &str, (removed, new): (&str, &str)) -> Option<Range<usize>> {
        let start = match self.before.as_str() {
            "" => 0,
            before => only(now, before)? + before.len(),
        };
        let end = match self.after.as_str() {
            "" => now.len(),
            after => only(now, after)?,
        };
        let text = now.get(start..end)?;
        let distance = |other: &str| text.len().max(other.len()) - shared(text, other);
        let is_made = distance(new) < distance(removed) && shared(text, new) * 2 >= new.len();
        is_made.then_some(start..end)
    }
}

/// The contexts of edits, in the text that they lead to.
fn contexts(new: &str, edits: &[TextEdit]) -> Vec<EditContext> {
    let (mut grown, mut shrunk) = (0, 0);
    let context = |edit: &TextEdit| {
        let start = edit.range.start + grown - shrunk;
        let end = start + edit.new_text.len();
        grown += edit.new_text.len();
        shrunk += edit.range.len();
        let first = (start.saturating_sub(MAX_CONTEXT)..=start).find(|at| new.is_char_boundary(*at));
        let last = (end..=new.len().min(end + MAX_CONTEXT)).rev().find(|at| new.is_char_boundary(*at));
        let (first, last) = (first.unwrap_or(start), last.unwrap_or(end));
        EditContext { before: new[first..start].to_owned(), after: new[end..last].to_owned() }
    };
    edits.iter().map(context).collect()
}

/// The place of a text that occurs exactly once.
fn only(text: &str, part: &str) -> Option<usize> {
    text.find(part).filter(|first| text.rfind(part) == Some(*first))
}

/// How many bytes two texts share at their beginnings and ends.
fn shared(one: &str, other: &str) -> usize {
    let shorter = one.len().min(other.len());
    let equal = |(a, b): &(u8, u8)| a == b;
    let first = one.bytes().zip(other.bytes()).take_while(equal).count();
    let last = one.bytes().rev().zip(other.bytes().rev()).take_while(equal).count();
    (first + last).min(shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "fn one() {\n    1\n}\n\nfn two() {\n    2\n}\n\nfn three() {\n    3\n}\n";

    fn edit(removed: &str, new_text: &str) -> TextEdit {
        let start = OLD.find(removed).unwrap();
        TextEdit { range: start..start + removed.len(), new_text: new_text.to_owned() }
    }

    /// The places of these edits in a text, as the texts that stand there.
    fn found<'t>(edits: &[TextEdit], now: &'t str) -> Option<Vec<&'t str>> {
        let new = apply_edits(OLD, edits);
        let removed: Vec<_> = edits.iter().map(|edit| &OLD[edit.range.clone()]).collect();
        let mut places = Vec::new();
        for ((edit, removed), context) in edits.iter().zip(removed).zip(contexts(&new, edits)) {
            places.push(&now[context.find(now, (removed, &edit.new_text))?]);
        }
        Some(places)
    }

    #[test]
    fn an_edit_is_found_wherever_one_letter_was_typed() {
        let edits = [edit("2", "20 + 2"), edit("fn three", "pub fn third")];
        let new = apply_edits(OLD, &edits);
        for at in 0..=new.len() {
            let typed = format!("{}x{}", &new[..at], &new[at..]);
            let places = found(&edits, &typed).unwrap_or_else(|| panic!("not found in {typed:?}"));
            for (place, edit) in places.iter().zip(&edits) {
                assert!(place.replace('x', "") == edit.new_text, "{place:?} for {edit:?} in {typed:?}");
            }
        }
    }

    #[test]
    fn an_edit_that_was_not_made_is_not_found_wherever_one_letter_was_typed() {
        let edits = [edit("    2\n", ""), edit("three()", "three(many: u32)"), edit("1", "1 + 1")];
        for edit in edits {
            assert_eq!(found(std::slice::from_ref(&edit), OLD), None);
            for at in 0..=OLD.len() {
                let typed = format!("{}x{}", &OLD[..at], &OLD[at..]);
                assert_eq!(found(std::slice::from_ref(&edit), &typed), None, "{edit:?} in {typed:?}");
            }
        }
    }

    #[test]
    fn an_edit_that_could_be_at_two_places_is_not_found() {
        let edits = [edit("2", "20 + 2")];
        let new = apply_edits(OLD, &edits);
        assert_eq!(found(&edits, &format!("{new}{new}")), None);
    }
}
