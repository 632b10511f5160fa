//! The `NotebookEdit` tool: one cell of a Jupyter notebook replaced, inserted or deleted.
//!
//! Rule: only the cell changes. All else, metadata and layout of the file included, stays byte for byte, and a
//! notebook this session has not read as it is now is not touched.

mod notebook;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::replacement::{is_notebook, refuse_unread};
use crate::write::refuse_unwritable;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_text::edit::change::apply_edits;
use kode_text::edit::{Author, ChangeSet, FileChange, TextEdit};
use kode_text::workspace::Freshness;
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolFacts};
use notebook::Notebook;

pub use notebook::CellType;

/// Arguments of `NotebookEdit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotebookEditInput {
    /// The notebook: an absolute path or a path relative to the working folder, ending in `.ipynb`.
    pub notebook_path: String,
    /// The id of the cell, or `cell-N` with its place, `cell-0` being the first. To insert: the cell after which the
    /// new one is put; at the beginning if not given.
    #[serde(default)]
    pub cell_id: Option<String>,
    /// The whole new source of the cell, taken literally. Empty to delete.
    pub new_source: String,
    /// What the cell is. Needed to insert; to replace only if the type has to change.
    #[serde(default)]
    pub cell_type: Option<CellType>,
    /// What to do with the cell; replace its source if not given.
    #[serde(default)]
    pub edit_mode: EditMode,
}

/// The operation on a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EditMode {
    /// Its source is replaced.
    #[default]
    Replace,
    /// A new one is put after it.
    Insert,
    /// It is removed.
    Delete,
}

/// Changes a cell.
pub struct NotebookEdit;

#[async_trait]
impl Tool for NotebookEdit {
    type Input = NotebookEditInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "NotebookEdit",
            kind: ToolKind::Write,
            concurrency_safe: false,
            description: DESCRIPTION,
        }
    }

    async fn plan(&self, input: NotebookEditInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let workspace = &context.workspace;
        let target = workspace.resolve(&input.notebook_path)?;
        let path = workspace.display(&target);
        if !is_notebook(&target) {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                format!("`{path}` is not a notebook: its name does not end in .ipynb"),
                "Use Edit for other files.",
            ));
        }
        let file = workspace.text(&target).await?;
        let freshness = workspace.freshness(&file);
        refuse_unread(&file, freshness, &path)?;
        // A cell is replaced as a whole, and its place may not be the same any more.
        if freshness == Freshness::Changed {
            return Err(ToolError::new(
                ToolErrorKind::Mismatch,
                format!("the user has changed `{path}` in the editor since it was read"),
                "Read it again, then change the cell as it is now.",
            ));
        }
        let CellChange { edits, title, summary } = CellChange::new(&input, &file.text, &path)?;
        if edits.is_empty() {
            return Err(ToolError::new(
                ToolErrorKind::Mismatch,
                format!("`{path}` was not changed: the cell already has exactly this source and no outputs"),
                "Nothing needs to be written; continue with the next step.",
            ));
        }
        refuse_unwritable(&file, &apply_edits(&file.text, &edits), &path)?;
        let touches = vec![Touch::Write(target.clone())];
        let label = format!("Kode: {title}");
        let files = vec![FileChange { target, base: Some(file), edits }];
        Ok(CallPlan {
            title,
            touches,
            action: CallAction::Change(ChangeSet {
                label,
                summary,
                files,
                removals: Vec::new(),
                author: Author::Agent,
            }),
        })
    }
}

/// The edits that a call makes in the text of a notebook, shown to people as `path`.
///
/// # Errors
/// What the model learns when the call does not fit the notebook.
pub fn edits(input: &NotebookEditInput, text: &str, path: &str) -> Result<Vec<TextEdit>, ToolError> {
    CellChange::new(input, text, path).map(|change| change.edits)
}

const DESCRIPTION: &str = "\
Changes one cell of a Jupyter notebook (.ipynb): replaces its source, inserts a new cell or deletes one.

- Read the notebook first in this session; its JSON shows the cells with their ids.
- new_source is the cell's whole source as plain text, not as JSON.
- Replacing the source of a code cell clears its outputs and execution count, which belong to the old source.
- Everything else stays: other cells, metadata and the layout of the file.";

/// The result of a call.
struct CellChange {
    edits: Vec<TextEdit>,
    title: String,
    summary: String,
}

impl CellChange {
    fn new(input: &NotebookEditInput, text: &str, path: &str) -> Result<Self, ToolError> {
        let explain = |error: notebook::NotebookError| error.into_tool_error(path);
        let notebook = Notebook::parse(text).map_err(explain)?;
        let cell = input.cell_id.as_deref().map(|cell| notebook.find(cell)).transpose().map_err(explain)?;
        let named = || cell.ok_or_else(|| missing("cell_id", "the cell that has to change"));
        match input.edit_mode {
            EditMode::Replace => {
                let at = named()?;
                let name = notebook.name(at);
                Ok(Self {
                    edits: notebook.replace(at, &input.new_source, input.cell_type).map_err(explain)?,
                    title: format!("Replace cell {name} of {path}"),
                    summary: format!("Replaced the source of cell `{name}`"),
                })
            }
            EditMode::Insert => {
                let cell_type = input.cell_type.ok_or_else(|| missing("cell_type", "code or markdown"))?;
                let (edits, name) = notebook.insert(cell, &input.new_source, cell_type);
                let place = cell.map_or_else(
                    || "at the beginning".to_owned(),
                    |after| format!("after cell `{}`", notebook.name(after)),
                );
                Ok(Self {
                    edits,
                    title: format!("Insert a cell into {path}"),
                    summary: format!("Inserted cell `{name}` {place}"),
                })
            }
            EditMode::Delete => {
                let at = named()?;
                let name = notebook.name(at);
                Ok(Self {
                    edits: notebook.delete(at),
                    title: format!("Delete cell {name} of {path}"),
                    summary: format!("Deleted cell `{name}`"),
                })
            }
        }
    }
}

fn missing(field: &str, what: &str) -> ToolError {
    ToolError::new(
        ToolErrorKind::InvalidInput,
        format!("NotebookEdit: the field `{field}` is missing"),
        format!("Give {what} and make the call again."),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rig::ToolRig;
    use kode_tool::ToolOutput;

    /// As Jupyter writes it, with what a parser would lose: a number's form, an escape, the order of keys.
    const BOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "intro",
   "metadata": {"weight": 1.50},
   "source": "# Caf\u00e9"
  },
  {
   "cell_type": "code",
   "execution_count": 3,
   "id": "load",
   "metadata": {},
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": ["1\n"]
    }
   ],
   "source": [
    "import x\n",
    "print(1)"
   ]
  }
 ],
 "metadata": {
  "z": 1e3,
  "kernelspec": {"name": "python3"}
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
"##;

    async fn edit(rig: &ToolRig, input: Value) -> Result<ToolOutput, ToolError> {
        let mut input = input;
        input["notebook_path"] = json!("book.ipynb");
        rig.call("NotebookEdit", input).await
    }

    async fn rig_with(text: &str) -> ToolRig {
        let rig = ToolRig::new();
        rig.write("book.ipynb", text);
        rig.call("Read", json!({"file_path": "book.ipynb"})).await.unwrap();
        rig
    }

    /// The notebook with one passage replaced.
    fn with(old: &str, new: &str) -> String {
        assert_eq!(BOOK.matches(old).count(), 1, "{old:?}");
        BOOK.replace(old, new)
    }

    #[tokio::test]
    async fn replacing_a_code_cell_changes_its_source_and_clears_what_it_put_out() {
        let rig = rig_with(BOOK).await;
        let input = json!({"cell_id": "load", "new_source": "import x\nprint(\"é\")\n"});
        let output = edit(&rig, input.clone()).await.unwrap();
        let outputs =
            &BOOK[BOOK.find("[\n    {\n     \"name\"").unwrap()..BOOK.find(",\n   \"source\": [").unwrap()];
        let expected = with("\"print(1)\"", "\"print(\\\"é\\\")\\n\"").replace(outputs, "[]");
        assert_eq!(
            rig.text("book.ipynb"),
            expected.replace("\"execution_count\": 3", "\"execution_count\": null")
        );
        assert!(
            output.model_text.starts_with("Replaced the source of cell `load`\n"),
            "{}",
            output.model_text
        );
        let error = edit(&rig, input).await.unwrap_err();
        assert!(error.message.contains("already has exactly this source"), "{error}");
    }

    #[tokio::test]
    async fn a_source_that_is_one_string_stays_one() {
        let rig = rig_with(BOOK).await;
        edit(&rig, json!({"cell_id": "cell-0", "new_source": "# Tea\n"})).await.unwrap();
        assert_eq!(rig.text("book.ipynb"), with("\"# Caf\\u00e9\"", "\"# Tea\\n\""));
    }

    #[tokio::test]
    async fn of_a_source_that_is_written_twice_the_one_that_counts_is_replaced() {
        let source = "\"source\": \"# Caf\\u00e9\"";
        let twice = with(source, &format!("\"source\": \"old\",\n   {source}"));
        let rig = rig_with(&twice).await;
        edit(&rig, json!({"cell_id": "intro", "new_source": "# Tea"})).await.unwrap();
        let book: Value = serde_json::from_str(&rig.text("book.ipynb")).unwrap();
        assert_eq!(book["cells"][0]["source"], "# Tea");
    }

    #[tokio::test]
    async fn a_cell_may_change_its_type_and_gets_the_members_of_it() {
        let rig = rig_with(BOOK).await;
        let input = json!({"cell_id": "intro", "new_source": "1 + 1", "cell_type": "code"});
        edit(&rig, input).await.unwrap();
        let expected = r#"  {
   "cell_type": "code",
   "id": "intro",
   "metadata": {"weight": 1.50},
   "execution_count": null,
   "outputs": [],
   "source": "1 + 1"
  },"#;
        assert!(rig.text("book.ipynb").starts_with(&format!("{{\n \"cells\": [\n{expected}\n")));
        edit(&rig, json!({"cell_id": "load", "new_source": "a", "cell_type": "markdown"})).await.unwrap();
        let book: Value = serde_json::from_str(&rig.text("book.ipynb")).unwrap();
        let expected = json!({"cell_type": "markdown", "id": "load", "metadata": {}, "source": ["a"]});
        assert_eq!(book["cells"][1], expected);
    }

    #[tokio::test]
    async fn a_cell_is_inserted_with_a_fresh_id_and_can_be_named_by_it_at_once() {
        let rig = rig_with(BOOK).await;
        let input =
            json!({"cell_id": "intro", "new_source": "x", "cell_type": "code", "edit_mode": "insert"});
        let output = edit(&rig, input).await.unwrap();
        let book: Value = serde_json::from_str(&rig.text("book.ipynb")).unwrap();
        let id = book["cells"][1]["id"].as_str().unwrap().to_owned();
        assert!(output.model_text.starts_with(&format!("Inserted cell `{id}` after cell `intro`\n")));
        edit(&rig, json!({"cell_id": id, "new_source": "", "edit_mode": "delete"})).await.unwrap();
        assert_eq!(rig.text("book.ipynb"), BOOK);
        let input = json!({"new_source": "a\nb", "cell_type": "markdown", "edit_mode": "insert"});
        edit(&rig, input).await.unwrap();
        let book: Value = serde_json::from_str(&rig.text("book.ipynb")).unwrap();
        assert_eq!(book["cells"][0]["source"], json!(["a\n", "b"]));
        assert_eq!(book["cells"][1]["id"], "intro");
    }

    #[tokio::test]
    async fn all_cells_can_be_deleted_and_new_ones_be_put_into_an_empty_notebook() {
        let empty = "{\r\n  \"nbformat\": 4,\r\n  \"nbformat_minor\": 4,\r\n  \"cells\": []\r\n}";
        let rig = rig_with(empty).await;
        let input = json!({"new_source": "x", "cell_type": "markdown", "edit_mode": "insert"});
        edit(&rig, input).await.unwrap();
        assert_eq!(
            rig.text("book.ipynb"),
            empty.replace(
                "[]",
                "[\r\n    {\r\n      \"cell_type\": \"markdown\",\r\n      \"metadata\": {},\r\n      \"source\": \
                 [\r\n        \"x\"\r\n      ]\r\n    }\r\n  ]"
            )
        );
        edit(&rig, json!({"cell_id": "cell-0", "new_source": "", "edit_mode": "delete"})).await.unwrap();
        assert_eq!(rig.text("book.ipynb"), empty);
    }

    #[tokio::test]
    async fn what_cannot_be_done_is_refused_with_the_reason() {
        let rig = rig_with(BOOK).await;
        for (input, kind, message) in [
            (
                json!({"cell_id": "lost", "new_source": ""}),
                ToolErrorKind::Mismatch,
                "`book.ipynb` has no cell `lost`; its cells are: intro, load",
            ),
            (
                json!({"cell_id": "cell-2", "new_source": ""}),
                ToolErrorKind::Mismatch,
                "`book.ipynb` has no cell `cell-2`; its cells are: intro, load",
            ),
            (
                json!({"new_source": "x", "edit_mode": "insert"}),
                ToolErrorKind::InvalidInput,
                "NotebookEdit: the field `cell_type` is missing",
            ),
            (
                json!({"new_source": "x"}),
                ToolErrorKind::InvalidInput,
                "NotebookEdit: the field `cell_id` is missing",
            ),
        ] {
            let error = edit(&rig, input).await.unwrap_err();
            assert_eq!((error.kind, error.message.as_str()), (kind, message));
        }
        let input = json!({"notebook_path": "a.json", "new_source": "", "cell_id": "x"});
        let error = rig.call("NotebookEdit", input).await.unwrap_err();
        assert_eq!(error.message, "`a.json` is not a notebook: its name does not end in .ipynb");
    }

    #[tokio::test]
    async fn what_is_no_notebook_of_the_format_is_refused() {
        for (text, message) in [
            ("[1]", "is not a notebook: "),
            ("{\"cells\": [], ", "is not a notebook: EOF while parsing"),
            ("{\"cells\": []}", "is not a notebook: it has no `nbformat`"),
            ("{\"nbformat\": 4}", "is not a notebook: it has no `cells`"),
            (
                "{\"nbformat\": 3, \"worksheets\": []}",
                "is a notebook of format 3, but only format 4 can be edited",
            ),
            ("{\"nbformat\": 4, \"cells\": [{\"id\": \"x\"}, {\"id\": \"x\"}]}", "has several cells `x`"),
            ("{\"nbformat\": 4, \"cells\": [{\"id\": \"x\"}]}", "has a cell `x` without `cell_type`"),
        ] {
            let rig = rig_with(text).await;
            let error = edit(&rig, json!({"cell_id": "x", "new_source": ""})).await.unwrap_err();
            assert!(error.message.starts_with(&format!("`book.ipynb` {message}")), "{error}");
        }
    }

    #[tokio::test]
    async fn an_unread_or_changed_notebook_is_refused() {
        let rig = ToolRig::new();
        rig.write("book.ipynb", BOOK);
        let input = json!({"cell_id": "load", "new_source": "x"});
        let error = edit(&rig, input.clone()).await.unwrap_err();
        assert_eq!(error.message, "`book.ipynb` has not been read in this session");
        rig.call("Read", json!({"file_path": "book.ipynb"})).await.unwrap();
        rig.write("book.ipynb", with("1e3", "1e4"));
        let error = edit(&rig, input.clone()).await.unwrap_err();
        assert_eq!(error.message, "`book.ipynb` has changed on disk since it was read");
        rig.call("Read", json!({"file_path": "book.ipynb"})).await.unwrap();
        rig.open("book.ipynb", BOOK);
        let error = edit(&rig, input).await.unwrap_err();
        assert_eq!(error.message, "the user has changed `book.ipynb` in the editor since it was read");
    }
}
