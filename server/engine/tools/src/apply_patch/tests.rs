//! Patches on files and open documents: all or nothing, and nothing that was not meant.

use serde_json::json;

use super::*;
use crate::rig::ToolRig;
use kode_testing::text::Meanwhile;
use kode_tool::ToolOutput;

/// A patch of these lines.
pub(super) async fn apply(rig: &ToolRig, lines: &str) -> Result<ToolOutput, ToolError> {
    let input = format!("*** Begin Patch\n{lines}\n*** End Patch");
    rig.call("apply_patch", json!({ "input": input })).await
}

pub(super) async fn rig_with(files: &[(&str, &str)]) -> ToolRig {
    let rig = ToolRig::new();
    for (name, text) in files {
        rig.write(name, text);
        rig.call("Read", json!({ "file_path": name })).await.unwrap();
    }
    rig
}

#[tokio::test]
async fn files_are_added_changed_moved_and_deleted_by_one_call() {
    let rig = rig_with(&[("a.rs", "one\ntwo\n"), ("old/b.rs", "x\ny\n"), ("c.rs", "gone\n")]).await;
    let output = apply(
        &rig,
        "*** Add File: new/d.rs\n+fresh\n*** Update File: a.rs\n@@\n-two\n+2\n*** Update File: old/b.rs\n*** Move to: kept/b.rs\n@@\n-y\n+z\n*** Delete File: c.rs",
    );
    let output = output.await.unwrap();
    assert_eq!((rig.text("new/d.rs"), rig.text("a.rs")), ("fresh\n".into(), "one\n2\n".into()));
    assert_eq!(rig.text("kept/b.rs"), "x\nz\n");
    assert!(!rig.path("old/b.rs").exists() && !rig.path("c.rs").exists());
    insta::assert_snapshot!(output.model_text, @r"
    Applied the patch to 4 files
    new/d.rs created: +1 -0
    a.rs changed: +1 -1
    @@ line 1: +1 -1
         1	one
         2	2
    kept/b.rs created: +2 -0
    old/b.rs moved to kept/b.rs
    c.rs deleted: -1
    ");
    insta::assert_snapshot!(output.display, @r"
    Created new/d.rs (+1 -0)
    Edited a.rs (+1 -1)
    Created kept/b.rs (+2 -0)
    Moved old/b.rs to kept/b.rs
    Deleted c.rs (+0 -1)
    ");
}

#[tokio::test]
async fn the_title_names_what_is_done_and_the_touches_every_place() {
    let rig = rig_with(&[("a.rs", "one\n"), ("b.rs", "x\n")]).await;
    let input = "*** Begin Patch\n*** Add File: new/d.rs\n+x\n*** Update File: a.rs\n*** Move to: e.rs\n*** Delete File: b.rs\n*** Add File: f.rs\n+x\n*** End Patch";
    let plan = ApplyPatch.plan(ApplyPatchInput { input: input.to_owned() }, &rig.context).await.unwrap();
    assert_eq!(plan.title, "Create new/d.rs, Move a.rs to e.rs, Delete b.rs and 1 more");
    let expected = ["new/d.rs", "new", "e.rs", "f.rs", "a.rs", "b.rs"];
    assert_eq!(plan.touches, expected.map(|name| Touch::Write(rig.target(name))));
}

#[tokio::test]
async fn a_patch_of_which_one_section_fails_changes_no_file() {
    let rig = rig_with(&[("a.rs", "one\ntwo\n"), ("b.rs", "fn value() {\n    compute(1);\n}\n")]).await;
    rig.write("unread.rs", "x\n");
    rig.write("book.ipynb", "{}");
    for (failing, message) in [
        (
            "*** Update File: b.rs\n@@\n-    compute(2);\n+    compute(3);",
            "section 1 was not found in `b.rs`. The nearest passage is at line 2:\n     2\t    compute(1);\nLine 1 of section 1 differs from line 2.",
        ),
        ("*** Update File: b.rs\n@@ fn other() {\n-}\n+)", "no line of `b.rs` is `fn other() {`"),
        ("*** Update File: unread.rs\n@@\n-x\n+y", "`unread.rs` has not been read in this session"),
        (
            "*** Update File: book.ipynb\n@@\n-x\n+y",
            "`book.ipynb` is a notebook, whose cells are not lines of text",
        ),
        ("*** Update File: none.rs\n@@\n-x\n+y", "`none.rs` does not exist"),
        ("*** Delete File: none.rs", "`none.rs` does not exist"),
        ("*** Add File: unread.rs\n+x", "`unread.rs` exists and has not been read in this session"),
        (
            "*** Update File: b.rs\n@@\n-}\n+}",
            "`b.rs` was not changed: the patch results in the text that it already has",
        ),
        ("*** Delete File: a.rs", "apply_patch: `input` does two things to `a.rs` that exclude each other"),
    ] {
        let error =
            apply(&rig, &format!("*** Update File: a.rs\n@@\n-two\n+2\n{failing}")).await.unwrap_err();
        assert_eq!(error.message, message, "{failing}");
        assert!(!error.hint.is_empty());
        assert_eq!(rig.text("a.rs"), "one\ntwo\n", "{failing}");
    }
    let error = apply(&rig, "hello").await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::InvalidInput);
    assert!(
        error.message.starts_with("apply_patch: `input` is no patch: line 2 of the patch, `hello`"),
        "{error}"
    );
}

#[tokio::test]
async fn sections_of_one_file_may_be_written_in_two_parts() {
    let rig = rig_with(&[("a.rs", "one\ntwo\nthree\n")]).await;
    apply(&rig, "*** Update File: a.rs\n@@\n-one\n+1\n*** Update File: a.rs\n@@\n 1\n-two\n+2")
        .await
        .unwrap();
    assert_eq!(rig.text("a.rs"), "1\n2\nthree\n");
}

#[tokio::test]
async fn a_file_that_was_read_is_written_over_by_an_added_or_a_moved_one() {
    let rig = rig_with(&[("a.rs", "from\n"), ("b.rs", "existing\n"), ("c.rs", "old\n")]).await;
    apply(&rig, "*** Update File: a.rs\n*** Move to: b.rs\n@@\n-from\n+new\n*** Add File: c.rs\n+new\n")
        .await
        .unwrap();
    assert_eq!((rig.text("b.rs"), rig.text("c.rs")), ("new\n".into(), "new\n".into()));
    assert!(!rig.path("a.rs").exists());
}

#[tokio::test]
async fn a_moved_file_keeps_its_encoding_and_its_mode() {
    use std::os::unix::fs::PermissionsExt;
    let rig = ToolRig::new();
    let text: Vec<u8> = "\u{feff}one\r\ntwo\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    rig.write("run.ps1", &text);
    std::fs::set_permissions(rig.path("run.ps1"), std::fs::Permissions::from_mode(0o750)).unwrap();
    rig.call("Read", json!({ "file_path": "run.ps1" })).await.unwrap();
    apply(&rig, "*** Update File: run.ps1\n*** Move to: bin/run.ps1\n@@\n-two\n+2").await.unwrap();
    let expected: Vec<u8> = "\u{feff}one\r\n2\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(rig.bytes("bin/run.ps1"), expected);
    assert_eq!(std::fs::metadata(rig.path("bin/run.ps1")).unwrap().permissions().mode() & 0o7777, 0o750);
}

#[tokio::test]
async fn typing_into_one_file_takes_the_whole_patch_back_and_stays() {
    let rig = rig_with(&[("a.rs", "one\ntwo\n"), ("b.rs", "x\nyes\n")]).await;
    rig.open("b.rs", "x\nyes\n");
    rig.meanwhile(Meanwhile::Typed("x\nye+s\n".to_owned()));
    let error = apply(
        &rig,
        "*** Add File: new/c.rs\n+c\n*** Update File: a.rs\n@@\n-two\n+2\n*** Update File: b.rs\n@@\n-yes\n+no",
    );
    let error = error.await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Conflict);
    assert!(
        error.message.ends_with("None of the files was changed: the others have their old text again."),
        "{error}"
    );
    assert_eq!((rig.text("a.rs"), rig.shown("b.rs")), ("one\ntwo\n".into(), "x\nye+s\n".into()));
    assert!(!rig.path("new/c.rs").exists());
}

#[tokio::test]
async fn another_indentation_is_reported_with_the_file() {
    let rig = rig_with(&[("a.go", "func f() {\n\trun(1)\n}\n")]).await;
    let output =
        apply(&rig, "*** Update File: a.go\n@@\n func f() {\n-    run(1)\n+    run(2)\n }").await.unwrap();
    assert_eq!(rig.text("a.go"), "func f() {\n\trun(2)\n}\n");
    assert!(
        output
            .model_text
            .contains("Note: a section of `a.go` stood at lines 1-3: the file has a tab for each 4 spaces."),
        "{}",
        output.model_text
    );
}
