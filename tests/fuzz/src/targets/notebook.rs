//! Changes to cells of notebooks: the action, the cell's place, its new type, its new source, the notebook.
//!
//! Rule: a notebook stays one; all cells but the one that is meant mean what they meant, and the one has the new
//! source.

use kode_engine::text::edit::change::apply_edits;
use kode_engine::tools::notebook_edit::{CellType, EditMode, NotebookEditInput, edits};
use serde_json::Value;

use crate::input::Input;

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let edit_mode = [EditMode::Replace, EditMode::Insert, EditMode::Delete][input.below(3)];
    let named = input.below(8);
    let cell_type = [None, Some(CellType::Code), Some(CellType::Markdown)][input.below(3)];
    let new_source = input.text().into_owned();
    let text = input.text();
    let cell_id = format!("cell-{named}");
    let call = NotebookEditInput {
        notebook_path: "a.ipynb".to_owned(),
        cell_id: Some(cell_id.clone()),
        new_source: new_source.clone(),
        cell_type,
        edit_mode,
    };
    let Ok(edits) = edits(&call, &text, "a.ipynb") else { return };
    let Some(mut before) = cells(&text) else { return };
    // A cell that is called so goes before the one at that place.
    let at = before.iter().position(|cell| cell["id"] == cell_id.as_str()).unwrap_or(named);
    let changed = apply_edits(&text, &edits);
    let mut after = cells(&changed).unwrap_or_else(|| panic!("no notebook any more: {changed}"));
    match edit_mode {
        EditMode::Replace => {
            before.remove(at);
            assert_eq!(source(&after.remove(at)), new_source, "{changed}");
        }
        EditMode::Insert => assert_eq!(source(&after.remove(at + 1)), new_source, "{changed}"),
        EditMode::Delete => {
            before.remove(at);
        }
    }
    assert_eq!(before, after, "{changed}");
}

/// The cells of a notebook.
fn cells(text: &str) -> Option<Vec<Value>> {
    let book: Value = serde_json::from_str(text).ok()?;
    book["cells"].as_array().cloned()
}

/// The source of a cell, in either of its forms.
fn source(cell: &Value) -> String {
    match &cell["source"] {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    }
}
