//! The behaviours that the format's first program, codex, checks with its own scenarios: what becomes of the files.
//!
//! Rule: one row for each behaviour, with files of our own. Where ours differs the row says why.

use serde_json::json;

use super::tests::{apply, rig_with};

/// One behaviour.
struct Scenario {
    behavior: &'static str,
    before: &'static [(&'static str, &'static str)],
    /// The lines between the markers; with markers of its own where it begins with one.
    patch: &'static str,
    after: Outcome,
}

enum Outcome {
    /// These files have these texts, and those named last are gone.
    Files(&'static [(&'static str, &'static str)], &'static [&'static str]),
    /// The patch is refused, and every file stays: the error says this.
    Refused(&'static str),
}

use Outcome::{Files, Refused};

const SCENARIOS: [Scenario; 23] = [
    Scenario {
        behavior: "a file is added",
        before: &[],
        patch: "*** Add File: notes.md\n+First note",
        after: Files(&[("notes.md", "First note\n")], &[]),
    },
    Scenario {
        behavior: "one patch adds, deletes and changes files",
        before: &[("stays.txt", "alpha\nbeta\n"), ("goes.txt", "gone\n")],
        patch: "*** Add File: deep/er/new.txt\n+made\n*** Delete File: goes.txt\n*** Update File: stays.txt\n@@\n-beta\n+gamma",
        after: Files(&[("deep/er/new.txt", "made\n"), ("stays.txt", "alpha\ngamma\n")], &["goes.txt"]),
    },
    Scenario {
        behavior: "several sections change one file",
        before: &[("list.txt", "one\ntwo\nthree\nfour\n")],
        patch: "*** Update File: list.txt\n@@\n-two\n+2\n@@\n-four\n+4",
        after: Files(&[("list.txt", "one\n2\nthree\n4\n")], &[]),
    },
    Scenario {
        behavior: "a file moves into a folder that is made for it; others stay",
        before: &[("from/a.txt", "old text\n"), ("from/b.txt", "untouched\n")],
        patch: "*** Update File: from/a.txt\n*** Move to: to/some/a.txt\n@@\n-old text\n+new text",
        after: Files(&[("to/some/a.txt", "new text\n"), ("from/b.txt", "untouched\n")], &["from/a.txt"]),
    },
    Scenario {
        behavior: "a patch without files is refused",
        before: &[("a.txt", "kept\n")],
        patch: "",
        after: Refused("the patch changes no file"),
    },
    Scenario {
        behavior: "lines that the file does not have are refused",
        before: &[("a.txt", "apples\npears\n")],
        patch: "*** Update File: a.txt\n@@\n-something else entirely\n+x",
        after: Refused("section 1 was not found in `a.txt`"),
    },
    Scenario {
        behavior: "a missing file cannot be deleted",
        before: &[("a.txt", "kept\n")],
        patch: "*** Delete File: missing.txt",
        after: Refused("`missing.txt` does not exist"),
    },
    Scenario {
        behavior: "a changed file without a section is refused",
        before: &[("a.txt", "kept\n")],
        patch: "*** Update File: a.txt",
        after: Refused("`a.txt` has a section without lines"),
    },
    Scenario {
        behavior: "a missing file cannot be changed",
        before: &[("a.txt", "kept\n")],
        patch: "*** Update File: missing.txt\n@@\n-x\n+y",
        after: Refused("`missing.txt` does not exist"),
    },
    // Ours asks that a file was read before it is written over, which `rig_with` has done for all.
    Scenario {
        behavior: "a moved file takes the place of another one",
        before: &[("a.txt", "from here\n"), ("b/c.txt", "was there\n"), ("b/d.txt", "beside\n")],
        patch: "*** Update File: a.txt\n*** Move to: b/c.txt\n@@\n-from here\n+arrived",
        after: Files(&[("b/c.txt", "arrived\n"), ("b/d.txt", "beside\n")], &["a.txt"]),
    },
    Scenario {
        behavior: "an added file takes the place of another one",
        before: &[("twice.txt", "first text\n")],
        patch: "*** Add File: twice.txt\n+second text",
        after: Files(&[("twice.txt", "second text\n")], &[]),
    },
    Scenario {
        behavior: "a folder is not deleted",
        before: &[("folder/a.txt", "kept\n")],
        patch: "*** Delete File: folder",
        after: Refused("`folder` is a folder"),
    },
    Scenario {
        behavior: "a line that is no marker is refused",
        before: &[("a.txt", "kept\n")],
        patch: "*** Transmogrify File: a.txt",
        after: Refused("line 2 of the patch, `*** Transmogrify File: a.txt`, is not"),
    },
    Scenario {
        behavior: "the last line gets a line break when it is changed",
        before: &[("open.txt", "no break behind this")],
        patch: "*** Update File: open.txt\n@@\n-no break behind this\n+one\n+two",
        after: Files(&[("open.txt", "one\ntwo\n")], &[]),
    },
    // The other program leaves `made.txt` behind. Half of a patch is a state that neither the model nor the user has asked
    // for, and undoing it would be work for both: ours makes all files or none.
    Scenario {
        behavior: "a patch that fails in its second file has made the first",
        before: &[],
        patch: "*** Add File: made.txt\n+hello\n*** Update File: missing.txt\n@@\n-x\n+y",
        after: Refused("`missing.txt` does not exist"),
    },
    Scenario {
        behavior: "lines that are added alone go to the end",
        before: &[("log.txt", "one\ntwo\n")],
        patch: "*** Update File: log.txt\n@@\n+three\n+four",
        after: Files(&[("log.txt", "one\ntwo\nthree\nfour\n")], &[]),
    },
    Scenario {
        behavior: "blanks before the marker of a file do not matter",
        before: &[("a.txt", "before\n")],
        patch: "  *** Update File: a.txt\n@@\n-before\n+after",
        after: Files(&[("a.txt", "after\n")], &[]),
    },
    Scenario {
        behavior: "blanks around the markers of the patch do not matter",
        before: &[("a.txt", "red\n")],
        patch: " *** Begin Patch\n*** Update File: a.txt\n@@\n-red\n+blue\n*** End Patch ",
        after: Files(&[("a.txt", "blue\n")], &[]),
    },
    Scenario {
        behavior: "letters beyond ASCII are changed like others",
        before: &[("a.txt", "früh\nspät\n")],
        patch: "*** Update File: a.txt\n@@\n früh\n-spät\n+spät ☕",
        after: Files(&[("a.txt", "früh\nspät ☕\n")], &[]),
    },
    Scenario {
        behavior: "a file is deleted, and those beside it stay",
        before: &[("keep.txt", "keep\n"), ("old.txt", "old\n")],
        patch: "*** Delete File: old.txt",
        after: Files(&[("keep.txt", "keep\n")], &["old.txt"]),
    },
    Scenario {
        behavior: "blanks on the other sides of the markers of the patch do not matter",
        before: &[("a.txt", "red\n")],
        patch: "*** Begin Patch  \n*** Update File: a.txt\n@@\n-red\n+blue\n  *** End Patch",
        after: Files(&[("a.txt", "blue\n")], &[]),
    },
    Scenario {
        behavior: "a section may only take lines out",
        before: &[("lines.txt", "one\ntwo\nthree\n")],
        patch: "*** Update File: lines.txt\n@@\n one\n-two\n three",
        after: Files(&[("lines.txt", "one\nthree\n")], &[]),
    },
    Scenario {
        behavior: "a section may say that it ends the file",
        before: &[("tail.txt", "same\nx\nsame\n")],
        patch: "*** Update File: tail.txt\n@@\n-same\n+last\n*** End of File",
        after: Files(&[("tail.txt", "same\nx\nlast\n")], &[]),
    },
];

#[tokio::test]
async fn every_behavior_of_the_formats_first_program_is_ours_too_but_for_half_a_patch() {
    for Scenario { behavior, before, patch, after } in SCENARIOS {
        let rig = rig_with(before).await;
        let applied = match patch.contains("*** Begin Patch") {
            true => rig.call("apply_patch", json!({ "input": patch })).await,
            false => apply(&rig, patch).await,
        };
        match after {
            Files(texts, gone) => {
                applied.unwrap_or_else(|error| panic!("{behavior}: {error}"));
                for (name, text) in texts {
                    assert_eq!(rig.text(name), *text, "{behavior}: {name}");
                }
                assert!(!gone.iter().any(|name| rig.path(name).exists()), "{behavior}");
            }
            Refused(said) => {
                let error = applied.expect_err(behavior);
                assert!(error.message.contains(said), "{behavior}: {error}");
                for (name, text) in before {
                    assert_eq!(rig.text(name), *text, "{behavior}: {name}");
                }
                assert!(!rig.path("made.txt").exists(), "{behavior}");
            }
        }
    }
}
