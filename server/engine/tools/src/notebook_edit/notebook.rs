//! A notebook as text: where its cells are in the JSON, and the text edits that change one of them.
//!
//! Rule: nothing is parsed and written back. An edit replaces the span of a value or of a cell, laid out as the
//! notebook is, and every other byte stays.

use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use kode_base::call::{ToolError, ToolErrorKind};
use kode_text::edit::TextEdit;
use kode_text::edit::diff::line_changes;

/// The only major format that is edited.
const FORMAT: u64 = 4;

/// The first minor format in which cells have ids.
const FORMAT_MINOR_WITH_IDS: u64 = 5;

/// Cells that an error names.
const MAX_LISTED_CELLS: usize = 40;

/// The longest id the format allows, in bytes. A longer one is not repeated to the model.
const MAX_ID_BYTES: usize = 64;

/// How deep cells, their members and the lines of their source are in the JSON.
const CELL_DEPTH: usize = 2;
const MEMBER_DEPTH: usize = 3;
const LINE_DEPTH: usize = 4;

/// The kind of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CellType {
    /// A program.
    Code,
    /// Formatted text.
    Markdown,
}

/// A notebook that cannot be edited as asked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotebookError {
    /// It is no notebook at all.
    #[error("is not a notebook: {0}")]
    NotANotebook(String),
    /// It is in another major format.
    #[error("is a notebook of format {0}, but only format {FORMAT} can be edited")]
    Format(u64),
    /// There is no such cell.
    #[error("has no cell `{cell}`; {known}")]
    UnknownCell {
        /// The request.
        cell: String,
        /// The cells there are.
        known: String,
    },
    /// Several cells have this id.
    #[error("has several cells `{0}`")]
    AmbiguousCell(String),
    /// The cell is not one as the format has it.
    #[error("has a cell `{cell}` without `{member}`")]
    BrokenCell {
        /// The cell.
        cell: String,
        /// The missing part.
        member: &'static str,
    },
}

/// A notebook and its text.
pub(super) struct Notebook<'text> {
    text: &'text str,
    cells_span: Range<usize>,
    cells: Vec<Cell<'text>>,
    has_ids: bool,
    layout: JsonLayout<'text>,
}

struct Cell<'text> {
    span: Range<usize>,
    id: Option<String>,
    members: Members<'text>,
}

#[derive(Deserialize)]
struct Root<'text> {
    nbformat: Option<u64>,
    nbformat_minor: Option<u64>,
    #[serde(borrow)]
    cells: Option<&'text RawValue>,
}

/// The members of an object in their order, their values as they are written.
struct Members<'text>(Vec<(String, &'text RawValue)>);

/// How the JSON is laid out.
struct JsonLayout<'text> {
    /// `None` when everything is in one line.
    line_break: Option<&'text str>,
    indent: &'text str,
}

impl NotebookError {
    pub(super) fn into_tool_error(self, path: &str) -> ToolError {
        let hint = match &self {
            Self::NotANotebook(_) => "Read the file; ask the user for its intended content.",
            Self::Format(_) => {
                "Ask the user to convert it, for example with `jupyter nbconvert --to notebook`."
            }
            Self::UnknownCell { .. } => {
                "Name one of the cells there are, by its id or as `cell-0`, `cell-1`, ..."
            }
            Self::AmbiguousCell(_) => "Name the cell by its place: `cell-0` is the first.",
            Self::BrokenCell { .. } => "Delete the cell and insert it again.",
        };
        ToolError::new(ToolErrorKind::Mismatch, format!("`{path}` {self}"), hint)
    }
}

impl CellType {
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
        }
    }
}

impl<'text> Notebook<'text> {
    /// Finds the cells in the text of a notebook.
    ///
    /// # Errors
    /// [`NotebookError`] when it is no notebook of the one format.
    pub(super) fn parse(text: &'text str) -> Result<Self, NotebookError> {
        let not_json = |error: serde_json::Error| NotebookError::NotANotebook(error.to_string());
        let missing = |name: &str| NotebookError::NotANotebook(format!("it has no `{name}`"));
        let root: Root<'text> = serde_json::from_str(text).map_err(not_json)?;
        match root.nbformat {
            Some(FORMAT) => {}
            Some(other) => return Err(NotebookError::Format(other)),
            None => return Err(missing("nbformat")),
        }
        let cells_text = root.cells.ok_or_else(|| missing("cells"))?.get();
        let raw_cells: Vec<&'text RawValue> = serde_json::from_str(cells_text).map_err(not_json)?;
        let cells = raw_cells.into_iter().map(|raw| {
            let members: Members<'text> = serde_json::from_str(raw.get()).map_err(not_json)?;
            let id = members.text("id");
            Ok(Cell { span: span_in(text, raw.get()), id, members })
        });
        Ok(Self {
            text,
            cells_span: span_in(text, cells_text),
            cells: cells.collect::<Result<_, NotebookError>>()?,
            has_ids: root.nbformat_minor.is_some_and(|minor| minor >= FORMAT_MINOR_WITH_IDS),
            layout: JsonLayout::of(text),
        })
    }

    /// The place of a cell given by its id, or as `cell-N`, the first being `cell-0`.
    ///
    /// # Errors
    /// [`NotebookError`] when no cell or more than one matches.
    pub(super) fn find(&self, cell: &str) -> Result<usize, NotebookError> {
        let mut found = (0..self.cells.len()).filter(|at| self.cells[*at].id.as_deref() == Some(cell));
        match (found.next(), found.next()) {
            (Some(at), None) => return Ok(at),
            (Some(_), Some(_)) => return Err(NotebookError::AmbiguousCell(cell.to_owned())),
            (None, _) => {}
        }
        let place = cell.strip_prefix("cell-").and_then(|number| number.parse().ok());
        place.filter(|at| *at < self.cells.len()).ok_or_else(|| NotebookError::UnknownCell {
            cell: cell.chars().take(MAX_ID_BYTES).collect(),
            known: self.known_cells(),
        })
    }

    /// The name of a cell: its id, else its place.
    pub(super) fn name(&self, at: usize) -> String {
        let id = self.cells[at].id.clone().filter(|id| !id.is_empty() && id.len() <= MAX_ID_BYTES);
        id.unwrap_or_else(|| format!("cell-{at}"))
    }

    /// The edits that give a cell another source, and another type if one is given. What a code cell has put out
    /// is cleared: it belongs to the old source.
    ///
    /// # Errors
    /// [`NotebookError::BrokenCell`] when the cell has no type or no source.
    pub(super) fn replace(
        &self,
        at: usize,
        new_source: &str,
        cell_type: Option<CellType>,
    ) -> Result<Vec<TextEdit>, NotebookError> {
        let Cell { span, members, .. } = &self.cells[at];
        let broken = |member| NotebookError::BrokenCell { cell: self.name(at), member };
        let now = members.text("cell_type").ok_or_else(|| broken("cell_type"))?;
        let old_source = members.get("source").ok_or_else(|| broken("source"))?;
        let source = match old_source.get().starts_with('"') {
            true => json_string(new_source),
            false => self.source_lines(new_source),
        };
        if let Some(cell_type) = cell_type.filter(|cell_type| cell_type.name() != now) {
            return Ok(self.smallest(vec![(span.clone(), self.retyped(members, cell_type, &source))]));
        }
        let mut values = vec![("source", source)];
        if now == CellType::Code.name() {
            values.extend([("outputs", "[]".to_owned()), ("execution_count", "null".to_owned())]);
        }
        let values = values.into_iter();
        let edits =
            values.filter_map(|(name, value)| Some((span_in(self.text, members.get(name)?.get()), value)));
        Ok(self.smallest(edits.collect()))
    }

    /// The edits that put a new cell after another, or before all, and the name of the new cell.
    pub(super) fn insert(
        &self,
        after: Option<usize>,
        source: &str,
        cell_type: CellType,
    ) -> (Vec<TextEdit>, String) {
        let at = after.map_or(0, |after| after + 1);
        let id = self.has_ids.then(|| self.fresh_id());
        let string = |text: &str| json_string(text);
        let mut members = vec![("cell_type", string(cell_type.name()))];
        if cell_type == CellType::Code {
            members.push(("execution_count", "null".to_owned()));
        }
        members.extend(id.as_deref().map(|id| ("id", string(id))));
        members.push(("metadata", "{}".to_owned()));
        if cell_type == CellType::Code {
            members.push(("outputs", "[]".to_owned()));
        }
        members.push(("source", self.source_lines(source)));
        let cell = self.layout.object(&members, MEMBER_DEPTH);
        let separator = format!(",{}", self.layout.line(CELL_DEPTH));
        let edit = match (after, self.cells.first()) {
            (Some(after), _) => (end_of(&self.cells[after].span), format!("{separator}{cell}")),
            (None, Some(first)) => (first.span.start..first.span.start, format!("{cell}{separator}")),
            (None, None) => (self.cells_span.clone(), self.layout.list(&[cell], CELL_DEPTH)),
        };
        (vec![TextEdit { range: edit.0, new_text: edit.1 }], id.unwrap_or_else(|| format!("cell-{at}")))
    }

    /// The edits that remove a cell.
    pub(super) fn delete(&self, at: usize) -> Vec<TextEdit> {
        let span = &self.cells[at].span;
        let (range, new_text) = match (at.checked_sub(1), self.cells.get(at + 1)) {
            (Some(before), _) => (self.cells[before].span.end..span.end, String::new()),
            (None, Some(next)) => (span.start..next.span.start, String::new()),
            (None, None) => (self.cells_span.clone(), "[]".to_owned()),
        };
        vec![TextEdit { range, new_text }]
    }

    fn known_cells(&self) -> String {
        let names = (0..self.cells.len()).take(MAX_LISTED_CELLS).map(|at| self.name(at));
        let names = names.collect::<Vec<_>>().join(", ");
        match self.cells.len() {
            0 => "it has none".to_owned(),
            count if count > MAX_LISTED_CELLS => format!("its {count} cells are: {names}, ..."),
            _ => format!("its cells are: {names}"),
        }
    }

    /// The cell as another type: with the members such a cell must have and without those it must not.
    fn retyped(&self, members: &Members<'_>, cell_type: CellType, source: &str) -> String {
        let dropped: &[&str] = match cell_type {
            CellType::Code => &["attachments", "outputs", "execution_count"],
            CellType::Markdown => &["outputs", "execution_count"],
        };
        let name = json_string(cell_type.name());
        let mut written: Vec<(&str, String)> = Vec::new();
        for (key, value) in members.0.iter().filter(|(key, _)| !dropped.contains(&key.as_str())) {
            match key.as_str() {
                "cell_type" => written.push((key, name.clone())),
                "source" => {
                    if cell_type == CellType::Code {
                        written.push(("execution_count", "null".to_owned()));
                        written.push(("outputs", "[]".to_owned()));
                    }
                    written.push((key, source.to_owned()));
                }
                _ => written.push((key, value.get().to_owned())),
            }
        }
        self.layout.object(&written, MEMBER_DEPTH)
    }

    fn source_lines(&self, source: &str) -> String {
        let lines: Vec<String> = source.split_inclusive('\n').map(json_string).collect();
        self.layout.list(&lines, LINE_DEPTH)
    }

    /// An id that no cell has: the random end of a UUID.
    fn fresh_id(&self) -> String {
        loop {
            let id = Uuid::now_v7().simple().to_string().split_off(24);
            if self.cells.iter().all(|cell| cell.id.as_deref() != Some(&id)) {
                return id;
            }
        }
    }

    /// The edits that replace these spans, reduced to the lines that differ.
    fn smallest(&self, mut spans: Vec<(Range<usize>, String)>) -> Vec<TextEdit> {
        spans.sort_by_key(|(span, _)| span.start);
        let edits = spans.into_iter().flat_map(|(span, new_text)| {
            let changes = line_changes(&self.text[span.clone()], &new_text);
            changes.into_iter().map(move |edit| TextEdit {
                range: span.start + edit.range.start..span.start + edit.range.end,
                new_text: edit.new_text,
            })
        });
        edits.collect()
    }
}

impl Members<'_> {
    /// A member's value; of one that is written twice the last, which is the one that readers of JSON take.
    fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().rfind(|(key, _)| key == name).map(|(_, value)| *value)
    }

    fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a cell")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

impl<'text> JsonLayout<'text> {
    /// Taken from what precedes the first member of the notebook.
    fn of(text: &'text str) -> Self {
        let inside = text.trim_start().strip_prefix('{').unwrap_or_default();
        let white = &inside[..inside.len() - inside.trim_start().len()];
        match white.rfind('\n') {
            None => Self { line_break: None, indent: "" },
            Some(at) => {
                let line_break = if white[..at].ends_with('\r') { "\r\n" } else { "\n" };
                Self { line_break: Some(line_break), indent: &white[at + 1..] }
            }
        }
    }

    /// The indentation of a line at this depth.
    fn line(&self, depth: usize) -> String {
        self.line_break
            .map(|line_break| format!("{line_break}{}", self.indent.repeat(depth)))
            .unwrap_or_default()
    }

    fn list(&self, items: &[String], depth: usize) -> String {
        self.between("[", items, "]", depth)
    }

    fn object(&self, members: &[(&str, String)], depth: usize) -> String {
        let colon = if self.line_break.is_some() { ": " } else { ":" };
        let members = members.iter().map(|(name, value)| format!("{}{colon}{value}", json_string(name)));
        self.between("{", &members.collect::<Vec<_>>(), "}", depth)
    }

    fn between(&self, open: &str, items: &[String], close: &str, depth: usize) -> String {
        if items.is_empty() {
            return format!("{open}{close}");
        }
        let line = self.line(depth);
        let items = items.join(&format!(",{line}"));
        format!("{open}{line}{items}{}{close}", self.line(depth - 1))
    }
}

fn json_string(text: &str) -> String {
    Value::from(text).to_string()
}

/// Where a part borrowed from a text is in it.
fn span_in(text: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr().addr() - text.as_ptr().addr();
    start..start + part.len()
}

fn end_of(span: &Range<usize>) -> Range<usize> {
    span.end..span.end
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use kode_text::edit::change::apply_edits;

    fn written(layout: &str, notebook: &Value) -> String {
        match layout {
            "compact" => notebook.to_string(),
            indent => {
                let mut bytes = Vec::new();
                let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
                let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
                notebook.serialize(&mut serializer).unwrap();
                String::from_utf8(bytes).unwrap()
            }
        }
    }

    fn lines(source: &str) -> Vec<&str> {
        source.split_inclusive('\n').collect()
    }

    proptest! {
        #[test]
        fn only_the_cell_changes_and_the_layout_stays(
            sources in proptest::collection::vec("[a-z\"\\\\人\n\\[{]{0,12}", 1..5),
            new in "[a-z\"\\\\人\n\\[{]{0,12}",
            at in 0..5usize,
            operation in 0..4usize,
            layout in proptest::sample::select(vec![" ", "  ", "\t", "compact"]),
        ) {
            let at = at % sources.len();
            let cell = |source: &str| json!({
                "cell_type": "code", "execution_count": null, "metadata": {"x": [1, {"y": 2}]}, "outputs": [],
                "source": lines(source),
            });
            let cells: Vec<Value> = sources.iter().map(|source| cell(source)).collect();
            let notebook = |cells: &[Value]| json!({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4});
            let text = written(layout, &notebook(&cells));
            let parsed = Notebook::parse(&text).unwrap();
            let mut expected = cells.clone();
            let edits = match operation {
                0 => {
                    expected[at]["source"] = json!(lines(&new));
                    parsed.replace(at, &new, None).unwrap()
                }
                1 => {
                    expected.remove(at);
                    parsed.delete(at)
                }
                2 => {
                    let mut cell = cell(&new);
                    cell["metadata"] = json!({});
                    expected.insert(at + 1, cell);
                    parsed.insert(Some(at), &new, CellType::Code).0
                }
                _ => {
                    expected.insert(0, json!({"cell_type": "markdown", "metadata": {}, "source": lines(&new)}));
                    parsed.insert(None, &new, CellType::Markdown).0
                }
            };
            prop_assert_eq!(apply_edits(&text, &edits), written(layout, &notebook(&expected)));
        }
    }
}
