//! The `Edit` tool: one passage of a file replaced by another.
//!
//! Rule: rather refuse than guess. Only a text this session has read is edited, only where the old passage is there
//! exactly once (or everywhere, when asked for), and every refusal shows the current text and the next step.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::replacement::{PassageReplacement, replace};
use kode_base::call::{ToolError, ToolKind};
use kode_tool::{CallContext, CallPlan, Tool, ToolFacts};

/// Arguments of `Edit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EditInput {
    /// The file to change: an absolute path, a path relative to the working folder, or the URI of an open document.
    pub file_path: String,
    /// The passage to replace, exactly as it stands in the file, without line numbers. Empty only to create a file.
    pub old_string: String,
    /// What replaces it, taken literally. Must differ from old_string.
    pub new_string: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default)]
    pub replace_all: bool,
}

/// Replaces a passage.
pub struct Edit;

#[async_trait]
impl Tool for Edit {
    type Input = EditInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts { name: "Edit", kind: ToolKind::Write, concurrency_safe: false, description: DESCRIPTION }
    }

    async fn plan(&self, input: EditInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let target = context.workspace.resolve(&input.file_path)?;
        let path = context.workspace.display(&target);
        let replacement = PassageReplacement {
            old: &input.old_string,
            new: &input.new_string,
            all: input.replace_all,
            number: None,
        };
        let replaced = replace(&target, &path, &[replacement], context).await?;
        let (verb, summary) = match (&replaced.base, replaced.count) {
            (None, _) => ("Create", format!("Created {path}")),
            (Some(_), 1) => ("Edit", "Replaced 1 occurrence".to_owned()),
            (Some(_), count) => ("Edit", format!("Replaced {count} occurrences")),
        };
        Ok(replaced.into_plan(target, format!("{verb} {path}"), summary))
    }
}

const DESCRIPTION: &str = "\
Replaces a passage of a file or an open document. Prefer this to Write for existing files: it costs far less and \
leaves everything else as it is.

- Read the file first in this session; an edit of an unread file is refused.
- old_string must occur in the file exactly once, indentation included and without the line numbers of Read. Add \
surrounding lines until it is unique, or set replace_all to replace every occurrence (useful to rename).
- Copy indentation exactly. Line breaks and curly quotes need not be copied exactly; the file keeps its own.
- To delete text give an empty new_string. To create a file give an empty old_string.
- The file's encoding, line endings and permissions are kept. What the user types meanwhile is kept, too.";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::rig::ToolRig;
    use kode_base::call::{ToolErrorKind, Touch};
    use kode_tool::ToolOutput;

    fn input(file: &str, old: &str, new: &str) -> Value {
        json!({"file_path": file, "old_string": old, "new_string": new})
    }

    async fn edit(rig: &ToolRig, file: &str, old: &str, new: &str) -> Result<ToolOutput, ToolError> {
        rig.call("Edit", input(file, old, new)).await
    }

    async fn rig_with(name: &str, bytes: impl AsRef<[u8]>) -> ToolRig {
        let rig = ToolRig::new();
        rig.write(name, bytes);
        rig.call("Read", json!({"file_path": name})).await.unwrap();
        rig
    }

    #[tokio::test]
    async fn occurrences_side_by_side_are_counted_one_by_one() {
        let rig = rig_with("a.txt", "aaaa b aa\n").await;
        let all = json!({"file_path": "a.txt", "old_string": "aa", "new_string": "c", "replace_all": true});
        let output = rig.call("Edit", all).await.unwrap();
        assert_eq!(rig.text("a.txt"), "cc b c\n");
        assert!(output.model_text.starts_with("Replaced 3 occurrences"), "{}", output.model_text);
    }

    #[tokio::test]
    async fn a_small_file_is_edited_and_reported() {
        let rig = rig_with("src/a.rs", "fn a() {}\nfn b() {}\n").await;
        let output = edit(&rig, "src/a.rs", "fn b() {}", "fn b() {\n    a();\n}").await.unwrap();
        assert_eq!(rig.text("src/a.rs"), "fn a() {}\nfn b() {\n    a();\n}\n");
        assert_eq!(output.display, "Edited src/a.rs (+3 -1)");
        insta::assert_snapshot!(output.model_text, @r"
        Replaced 1 occurrence
        src/a.rs changed: +3 -1
        @@ line 1: +3 -1
             1	fn a() {}
             2	fn b() {
             3	    a();
             4	}
        ");
        let structured = output.structured.unwrap();
        assert_eq!(structured["path"], "src/a.rs");
        assert_eq!(structured["absolutePath"], rig.target("src/a.rs").to_string());
        assert_eq!(structured["patch"][0]["oldStart"], 1);
        assert_eq!((&structured["encoding"], &structured["lineEnding"]), (&json!("UTF-8"), &json!("LF")));
        assert!(
            structured["unified"].as_str().unwrap().starts_with("--- a/src/a.rs\n+++ b/src/a.rs\n@@ -1,2")
        );
    }

    #[tokio::test]
    async fn a_second_edit_needs_no_second_read() {
        let rig = rig_with("a.txt", "one two\n").await;
        edit(&rig, "a.txt", "one", "1").await.unwrap();
        edit(&rig, "a.txt", "two", "2").await.unwrap();
        assert_eq!(rig.text("a.txt"), "1 2\n");
    }

    #[tokio::test]
    async fn two_occurrences_are_refused_with_their_count_and_lines() {
        let rig = rig_with("a.txt", "x\ny\nx\n").await;
        let error = edit(&rig, "a.txt", "x", "z").await.unwrap_err();
        assert_eq!((error.kind, error.code), (ToolErrorKind::Mismatch, Some(1)));
        assert_eq!(error.message, "old_string occurs 2 times in `a.txt`, at lines 1, 3");
        let all = json!({"file_path": "a.txt", "old_string": "x", "new_string": "z", "replace_all": "true"});
        let output = rig.call("Edit", all).await.unwrap();
        assert!(output.model_text.starts_with("Replaced 2 occurrences"));
        assert_eq!(rig.text("a.txt"), "z\ny\nz\n");
    }

    #[tokio::test]
    async fn what_cannot_be_edited_is_refused_with_the_reason() {
        let rig = rig_with("a.txt", "let value = compute(1);\n").await;
        rig.write("unread.txt", "x");
        rig.write("book.ipynb", "{}");
        rig.write("data.bin", b"a\0\x01b");
        rig.write("view.tsx", "x");
        for (file, old, new, kind, message) in [
            (
                "a.txt",
                "x",
                "x",
                ToolErrorKind::InvalidInput,
                "`a.txt` was not changed: old_string and new_string are the same",
            ),
            (
                "book.ipynb",
                "a",
                "b",
                ToolErrorKind::Mismatch,
                "`book.ipynb` is a notebook, whose cells are not lines of text",
            ),
            (
                "a.txt",
                "",
                "b",
                ToolErrorKind::Mismatch,
                "`a.txt` exists and is not empty, but old_string is empty",
            ),
            ("view.ts", "a", "b", ToolErrorKind::NotFound, "`view.ts` does not exist"),
            ("data.bin", "a", "b", ToolErrorKind::Mismatch, "`data.bin` is not text but binary data"),
            (
                "unread.txt",
                "x",
                "y",
                ToolErrorKind::Mismatch,
                "`unread.txt` has not been read in this session",
            ),
            (
                "a.txt",
                "nowhere to be seen",
                "y",
                ToolErrorKind::Mismatch,
                "old_string was not found in `a.txt`",
            ),
            (
                "a.txt",
                "let value = compute(2);",
                "y",
                ToolErrorKind::Mismatch,
                "old_string was not found in `a.txt`. The nearest passage is at line 1:\n     1\tlet value = compute(1);\nLine 1 of old_string differs from line 1.",
            ),
        ] {
            let error = edit(&rig, file, old, new).await.unwrap_err();
            assert_eq!((error.kind, error.message.as_str()), (kind, message));
            assert!(!error.hint.is_empty());
        }
        assert_eq!(edit(&rig, "view.ts", "a", "b").await.unwrap_err().hint, "Did you mean `view.tsx`?");
    }

    #[tokio::test]
    async fn another_indentation_is_applied_to_the_new_text_and_reported() {
        let rig = rig_with("a.go", "func f() {\n\tif ok {\n\t\trun(1)\n\t}\n}\n").await;
        let new = "    if ok {\n        run(2)\n        log()\n    }";
        let output = edit(&rig, "a.go", "    if ok {\n        run(1)\n    }", new).await.unwrap();
        assert_eq!(rig.text("a.go"), "func f() {\n\tif ok {\n\t\trun(2)\n\t\tlog()\n\t}\n}\n");
        insta::assert_snapshot!(output.model_text, @r"
        Replaced 1 occurrence
        Note: old_string stood at lines 2-4: the file has a tab for each 4 spaces. The new text was indented alike.
        a.go changed: +2 -1
        @@ line 1: +2 -1
             1	func f() {
             2		if ok {
             3			run(2)
             4			log()
             5		}
             6	}
        ");
    }

    #[tokio::test]
    async fn an_indentation_that_leaves_a_doubt_is_refused_with_the_passage() {
        let text = "if a:\n    run(first)\n    stop()\nif b:\n        run(first)\n        stop()\n";
        let rig = rig_with("a.py", text).await;
        let twice = edit(&rig, "a.py", "run(first)\nstop()", "x").await.unwrap_err();
        assert_eq!(twice.code, Some(1));
        insta::assert_snapshot!(twice.message, @"old_string was not found in `a.py`. With another indentation or other characters it is at lines 2, 5");
        let uneven = edit(&rig, "a.py", "if b:\n\trun(first)\n      stop()", "x").await.unwrap_err();
        insta::assert_snapshot!(uneven.message, @r"
        old_string was not found in `a.py`. The nearest passage is at lines 4-6:
             4	if b:
             5	        run(first)
             6	        stop()
        Line 5 begins with 8 spaces, line 2 of old_string with 1 tab.
        Line 6 begins with 8 spaces, line 3 of old_string with 6 spaces.
        ");
        let shifted = "  if b:\n          run(first)\n          stop()";
        let shallow = edit(&rig, "a.py", shifted, "  if b:\nrun(other)").await.unwrap_err();
        insta::assert_snapshot!(shallow.message, @r"
        old_string was not found in `a.py`. With another indentation it is at lines 4-6:
             4	if b:
             5	        run(first)
             6	        stop()
        The file has 2 spaces less before each line.
        ");
        assert_eq!(rig.text("a.py"), text);
    }

    #[tokio::test]
    async fn a_refusal_shows_at_most_sixty_lines() {
        let lines: String = (0..200).map(|line| format!("let value_{line} = compute({line});\n")).collect();
        let rig = rig_with("a.txt", &lines).await;
        let error = edit(&rig, "a.txt", &lines.replace("compute(7)", "compute(x)"), "y").await.unwrap_err();
        assert!(error.message.contains("Line 8 of old_string differs from line 8."), "{error}");
        assert!(error.message.lines().count() <= 60, "{error}");
    }

    #[tokio::test]
    async fn a_read_counts_only_in_its_own_session() {
        let rig = rig_with("a.txt", "x\n").await;
        let error = rig.call_in(&rig.other_context(), "Edit", input("a.txt", "x", "y")).await.unwrap_err();
        assert_eq!(error.message, "`a.txt` has not been read in this session");
    }

    #[tokio::test]
    async fn a_file_that_changed_on_disk_must_be_read_again() {
        let rig = rig_with("a.txt", "one\ntwo\n").await;
        rig.write("a.txt", "one\ntwo\nthree\n");
        let error = edit(&rig, "a.txt", "one", "1").await.unwrap_err();
        assert_eq!(error.message, "`a.txt` has changed on disk since it was read");
        rig.call("Read", json!({"file_path": "a.txt"})).await.unwrap();
        edit(&rig, "a.txt", "one", "1").await.unwrap();
    }

    #[tokio::test]
    async fn typing_since_the_read_does_not_hinder_a_unique_edit() {
        let rig = rig_with("a.txt", "one\ntwo\n").await;
        rig.open("a.txt", "one\ntwo\nthree\n");
        edit(&rig, "a.txt", "two", "2").await.unwrap();
        assert_eq!(rig.shown("a.txt"), "one\n2\nthree\n");
        rig.type_text("a.txt", "one\none\n");
        let all = json!({"file_path": "a.txt", "old_string": "one", "new_string": "1", "replace_all": true});
        let error = rig.call("Edit", all).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::Mismatch);
        assert_eq!(rig.shown("a.txt"), "one\none\n");
    }

    #[tokio::test]
    async fn an_empty_old_string_creates_a_file_with_its_folders_or_fills_an_empty_one() {
        let rig = ToolRig::new();
        let plan = Edit.plan(
            EditInput {
                file_path: "x/y/new.txt".to_owned(),
                old_string: String::new(),
                new_string: "hello\n".to_owned(),
                replace_all: false,
            },
            &rig.context,
        );
        let plan = plan.await.unwrap();
        let expected = ["x/y/new.txt", "x/y", "x"].map(|name| Touch::Write(rig.target(name)));
        assert_eq!((plan.title.as_str(), plan.touches.as_slice()), ("Create x/y/new.txt", &expected[..]));
        let output = edit(&rig, "x/y/new.txt", "", "hello\n").await.unwrap();
        assert_eq!(
            (rig.text("x/y/new.txt").as_str(), output.display.as_str()),
            ("hello\n", "Created x/y/new.txt (+1 -0)")
        );
        rig.write("empty.txt", "");
        edit(&rig, "empty.txt", "", "filled").await.unwrap();
        assert_eq!(rig.text("empty.txt"), "filled");
    }

    #[tokio::test]
    async fn a_character_the_encoding_lacks_is_refused_before_anybody_is_asked() {
        let (bytes, _, _) = encoding_rs::GBK.encode("人人生而自由,在尊严和权利上一律平等。\r\n");
        let rig = rig_with("gbk.txt", &bytes).await;
        let error = edit(&rig, "gbk.txt", "自由", "\u{1f600}").await.unwrap_err();
        assert!(error.message.contains("cannot be written in GBK"), "{error}");
        assert_eq!(rig.bytes("gbk.txt"), &*bytes);
    }

    /// Every way a text may be written, with a place for one word.
    fn written() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
        let line =
            proptest::sample::select(vec!["人人生而自由", "在尊严和权利上一律平等", "plain", "", "“引号”"]);
        let line_break = proptest::sample::select(vec!["\n", "\r\n", "\r"]);
        let lines = proptest::collection::vec((line, line_break), 2..8);
        let form = proptest::sample::select(vec!["utf-8", "bom", "utf-16le", "utf-16be", "gbk"]);
        (lines.clone(), lines, any::<bool>(), form).prop_map(|(before, after, ends_with_break, form)| {
            let join = |lines: Vec<(&str, &str)>| -> String {
                lines.into_iter().map(|(a, b)| [a, b].concat()).collect()
            };
            let (before, mut after) = (join(before), join(after));
            if !ends_with_break {
                after.push_str("没有换行");
            }
            let encode = |word: &str| {
                let text = format!("律平等{before}{word}{after}");
                match form {
                    "bom" => format!("\u{feff}{text}").into_bytes(),
                    "utf-16le" => {
                        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect()
                    }
                    "utf-16be" => {
                        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect()
                    }
                    "gbk" => encoding_rs::GBK.encode(&text).0.into_owned(),
                    _ => text.into_bytes(),
                }
            };
            (encode("MARK"), encode("mark 2"))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_byte_outside_the_edit_stays((before, after) in written()) {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let rig = rig_with("a.txt", &before).await;
                edit(&rig, "a.txt", "MARK", "mark 2").await.unwrap();
                assert_eq!(rig.bytes("a.txt"), after);
            });
        }
    }
}
