//! The `MultiEdit` tool: several passages of one file replaced at once.
//!
//! Rule: all or nothing. Each edit applies to the result of the one before it and is checked as `Edit` checks its
//! own; the whole is one change and one undo step.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::replacement::{PassageReplacement, replace};
use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_tool::{CallContext, CallPlan, Tool, ToolFacts};

/// The most edits of one call.
const MAX_EDITS: usize = 200;

/// Arguments of `MultiEdit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MultiEditInput {
    /// The file to change: an absolute path, a path relative to the working folder, or the URI of an open document.
    pub file_path: String,
    /// The edits, in the order in which they are made.
    #[schemars(length(min = 1, max = MAX_EDITS))]
    pub edits: Vec<PassageEdit>,
}

/// One edit of `MultiEdit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PassageEdit {
    /// The passage to replace, exactly as it stands in the file after the edits before this one.
    pub old_string: String,
    /// What replaces it, taken literally. Must differ from old_string.
    pub new_string: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default)]
    pub replace_all: bool,
}

/// Replaces several passages of one file.
pub struct MultiEdit;

#[async_trait]
impl Tool for MultiEdit {
    type Input = MultiEditInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "MultiEdit",
            kind: ToolKind::Write,
            concurrency_safe: false,
            description: DESCRIPTION,
        }
    }

    async fn plan(&self, input: MultiEditInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        if input.edits.is_empty() || input.edits.len() > MAX_EDITS {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                format!("MultiEdit: `edits` has {} edits, not 1 to {MAX_EDITS}", input.edits.len()),
                "Give at least one edit; divide a longer list into several calls.",
            ));
        }
        let target = context.workspace.resolve(&input.file_path)?;
        let path = context.workspace.display(&target);
        let edits = (1..).zip(&input.edits).map(|(number, edit)| PassageReplacement {
            old: &edit.old_string,
            new: &edit.new_string,
            all: edit.replace_all,
            number: Some(number),
        });
        let replaced = replace(&target, &path, &edits.collect::<Vec<_>>(), context).await?;
        let summary = match (&replaced.base, input.edits.len(), replaced.count) {
            (None, ..) => format!("Created {path}"),
            (Some(_), 1, 1) => "Made 1 edit: replaced 1 occurrence".to_owned(),
            (Some(_), 1, count) => format!("Made 1 edit: replaced {count} occurrences"),
            (Some(_), edits, count) => format!("Made {edits} edits: replaced {count} occurrences"),
        };
        let verb = if replaced.base.is_some() { "Edit" } else { "Create" };
        Ok(replaced.into_plan(target, format!("{verb} {path}"), summary))
    }
}

const DESCRIPTION: &str = "\
Makes several edits of one file or open document at once. Prefer this to Edit when one file has to change in more \
than one place.

- Each edit follows the rules of Edit: the file has been read, old_string occurs exactly once unless \
replace_all is set.
- The edits are made in their order, each on the result of the one before. See to it that no edit removes what a \
later one looks for.
- Either all edits are made or none: when one fails, the file stays as it is and the error names the edit.
- To create a file give an empty old_string in the first edit.";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::rig::ToolRig;
    use kode_testing::text::Meanwhile;
    use kode_text::edit::TextEdit;
    use kode_tool::ToolOutput;

    fn input(file: &str, edits: &[(&str, &str)]) -> Value {
        let edits = edits.iter().map(|(old, new)| json!({"old_string": old, "new_string": new}));
        json!({"file_path": file, "edits": edits.collect::<Vec<_>>()})
    }

    async fn edit(rig: &ToolRig, file: &str, edits: &[(&str, &str)]) -> Result<ToolOutput, ToolError> {
        rig.call("MultiEdit", input(file, edits)).await
    }

    async fn rig_with(name: &str, bytes: impl AsRef<[u8]>) -> ToolRig {
        let rig = ToolRig::new();
        rig.write(name, bytes);
        rig.call("Read", json!({"file_path": name})).await.unwrap();
        rig
    }

    #[tokio::test]
    async fn edits_build_on_each_other_and_are_one_change_with_one_label() {
        let rig = rig_with("a.rs", "fn a() {}\r\nfn b() {}\r\nfn c() {}\r\n").await;
        let edits =
            [("fn b() {}", "fn b() {\n    a();\n}"), ("    a();", "    c();"), ("fn c()", "fn see()")];
        let change = rig.plan("MultiEdit", input("a.rs", &edits)).await;
        assert_eq!(change.label, "Kode: Edit a.rs");
        let expected = [(19..19, "\r\n    c();\r\n"), (25..26, "see")];
        let expected = expected.map(|(range, text)| TextEdit { range, new_text: text.to_owned() });
        assert_eq!(change.files[0].edits, expected);
        let output = edit(&rig, "a.rs", &edits).await.unwrap();
        assert_eq!(rig.text("a.rs"), "fn a() {}\r\nfn b() {\r\n    c();\r\n}\r\nfn see() {}\r\n");
        assert!(output.model_text.starts_with("Made 3 edits: replaced 3 occurrences\n"));
        edit(&rig, "a.rs", &[("see", "c")]).await.unwrap();
    }

    #[tokio::test]
    async fn a_failing_edit_is_named_and_leaves_the_file_untouched() {
        let rig = rig_with("a.txt", "one\ntwo\ntwo\n").await;
        for (edits, kind, code, message) in [
            (
                [("one", "1"), ("one", "2")],
                ToolErrorKind::Mismatch,
                None,
                "Edit 2: old_string was not found in `a.txt`",
            ),
            (
                [("one", "1"), ("two", "2")],
                ToolErrorKind::Mismatch,
                Some(1),
                "Edit 2: old_string occurs 2 times in `a.txt`, at lines 2, 3",
            ),
            (
                [("one", "1"), ("x", "x")],
                ToolErrorKind::InvalidInput,
                None,
                "Edit 2: `a.txt` was not changed: old_string and new_string are the same",
            ),
            (
                [("", "1"), ("one", "x")],
                ToolErrorKind::Mismatch,
                None,
                "Edit 1: `a.txt` exists and is not empty, but old_string is empty",
            ),
            (
                [("one", "1"), ("1", "one")],
                ToolErrorKind::Mismatch,
                None,
                "`a.txt` was not changed: the edits undo each other",
            ),
        ] {
            let error = edit(&rig, "a.txt", &edits).await.unwrap_err();
            assert_eq!((error.kind, error.code, error.message.as_str()), (kind, code, message));
            assert!(!error.hint.is_empty());
            assert_eq!(rig.text("a.txt"), "one\ntwo\ntwo\n");
        }
        let error = edit(&rig, "a.txt", &[("missing", "x")]).await.unwrap_err();
        assert!(error.hint.ends_with("None of the edits was made."), "{}", error.hint);
    }

    #[tokio::test]
    async fn what_edit_refuses_is_refused() {
        let rig = rig_with("a.txt", "one\n").await;
        rig.write("unread.txt", "x");
        rig.write("book.ipynb", "{}");
        for (file, message) in [
            ("unread.txt", "`unread.txt` has not been read in this session"),
            ("book.ipynb", "`book.ipynb` is a notebook, whose cells are not lines of text"),
            ("missing", "`missing` does not exist"),
        ] {
            assert_eq!(edit(&rig, file, &[("x", "y")]).await.unwrap_err().message, message);
        }
        rig.write("a.txt", "one\ntwo\n");
        let error = edit(&rig, "a.txt", &[("one", "1")]).await.unwrap_err();
        assert_eq!(error.message, "`a.txt` has changed on disk since it was read");
        for edits in [Vec::new(), vec![("a", "b"); MAX_EDITS + 1]] {
            let error = edit(&rig, "a.txt", &edits).await.unwrap_err();
            assert_eq!(error.kind, ToolErrorKind::InvalidInput);
        }
    }

    #[tokio::test]
    async fn a_file_is_created_by_an_empty_first_passage() {
        let rig = ToolRig::new();
        let output = edit(&rig, "x/new.txt", &[("", "one\ntwo\n"), ("two", "2")]).await.unwrap();
        assert_eq!(
            (rig.text("x/new.txt").as_str(), output.display.as_str()),
            ("one\n2\n", "Created x/new.txt (+2 -0)")
        );
    }

    #[tokio::test]
    async fn typing_between_plan_and_edit_is_kept() {
        let rig = rig_with("a.txt", "one\ntwo\nthree\nfour\n").await;
        rig.open("a.txt", "one\ntwo\nthree\nfour\n");
        rig.meanwhile(Meanwhile::Typed("one\ntwo!\nthree\nfour\n".to_owned()));
        edit(&rig, "a.txt", &[("one", "1"), ("four", "4")]).await.unwrap();
        assert_eq!(rig.shown("a.txt"), "1\ntwo!\nthree\n4\n");
    }

    #[tokio::test]
    async fn every_occurrence_is_replaced_and_counted() {
        let rig = rig_with("a.txt", "a b a\n").await;
        let input = json!({"file_path": "a.txt", "edits": [
            {"oldString": "a", "newString": "c", "replaceAll": "true"},
            {"old_string": "b", "new_string": "d", "replace_all": null},
        ]});
        let output = rig.call("MultiEdit", input).await.unwrap();
        assert!(output.model_text.starts_with("Made 2 edits: replaced 3 occurrences\n"));
        assert_eq!(rig.text("a.txt"), "c d c\n");
    }
}
