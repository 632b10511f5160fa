//! A text and a patch for it in the format of `apply_patch`.
//!
//! Rule: any text is read without a panic. What a patch leads to has as many lines as the text has, without those that the
//! patch takes out and with those that it puts in, and no line that is in neither.

use std::collections::HashMap;

use kode_engine::text::edit::change::apply_edits;
use kode_engine::text::edit::file_patch::{FilePatch, PatchLine, PatchSection, PatchedText};
use kode_engine::text::edit::passage::PassageNote;

use crate::input::Input;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let [text, patch] = std::array::from_fn(|_| input.text());
    let Ok(files) = FilePatch::parse(&patch) else { return };
    for file in files {
        if let FilePatch::Update { sections, .. } = file {
            check(&text, &sections);
        }
    }
}

fn check(text: &str, sections: &[PatchSection]) {
    let Ok(patched) = PatchedText::of(text, sections, false) else { return };
    let result = apply_edits(text, &patched.edits);
    let (mut removed, mut added) = (0, Vec::new());
    for line in sections.iter().flat_map(|section| &section.lines) {
        match line {
            PatchLine::Context(_) => {}
            PatchLine::Removed(_) => removed += 1,
            PatchLine::Added(line) => added.push(line.as_str()),
        }
    }
    assert_eq!(lines(&result).len() + removed, lines(text).len() + added.len(), "{text:?} became {result:?}");
    // The characters of repaired lines are judged by the target `edits`.
    if patched.notes.iter().any(|note| matches!(note, PassageNote::Repaired { .. })) {
        return;
    }
    let mut known: HashMap<String, usize> = HashMap::new();
    for line in lines(text).into_iter().chain(added.into_iter().map(str::to_owned)) {
        *known.entry(line.trim().to_owned()).or_default() += 1;
    }
    for line in lines(&result) {
        let left = known.get_mut(line.trim()).filter(|left| **left > 0);
        *left.unwrap_or_else(|| panic!("{line:?} is new in {result:?}")) -= 1;
    }
}

/// The lines of a text without their breaks.
fn lines(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let text = text.strip_suffix('\n').unwrap_or(&text);
    if text.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() }
}
