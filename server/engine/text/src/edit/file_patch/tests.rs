//! The format by its cases, and that what a diff says is what a patch does.

use proptest::prelude::*;

use super::*;
use crate::edit::change::apply_edits;

fn patch(lines: &str) -> Result<Vec<FilePatch>, PatchSyntaxError> {
    FilePatch::parse(&format!("*** Begin Patch\n{lines}\n*** End Patch"))
}

/// The text that the sections of one changed file lead to.
fn patched(text: &str, lines: &str) -> Result<String, SectionFault> {
    let files = patch(&format!("*** Update File: a\n{lines}")).unwrap();
    let [FilePatch::Update { sections, .. }] = files.as_slice() else { panic!("{files:?}") };
    let patched = PatchedText::of(text, sections, false).map_err(|refusal| refusal.fault)?;
    Ok(apply_edits(text, &patched.edits))
}

#[test]
fn files_are_added_deleted_changed_and_moved() {
    let files = patch(
        "*** Add File: new/a.txt\n+one\n+\n+two\n*** Delete File: b.txt\n\n*** Update File: c.txt\n*** Move to: d.txt\n@@ fn c()\n-x\n+y\n",
    );
    let section = PatchSection {
        headers: vec!["fn c()".to_owned()],
        lines: vec![PatchLine::Removed("x".to_owned()), PatchLine::Added("y".to_owned())],
        is_at_end: false,
    };
    let expected = [
        FilePatch::Add { path: "new/a.txt".to_owned(), text: "one\n\ntwo\n".to_owned() },
        FilePatch::Delete { path: "b.txt".to_owned() },
        FilePatch::Update {
            path: "c.txt".to_owned(),
            moved_to: Some("d.txt".to_owned()),
            sections: vec![section],
        },
    ];
    assert_eq!(files.unwrap(), expected);
}

#[test]
fn padding_and_the_wrappings_of_shells_do_not_matter() {
    let plain = patch("*** Update File: a\n@@\n-x\n+y").unwrap();
    for text in [
        "\n*** Begin Patch  \n  *** Update File: a  \n@@  \n-x\n+y\n\n  *** End Patch\n\n",
        "<<'EOF'\n*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n*** End Patch\nEOF\n",
        "```\n*** Begin Patch\r\n*** Update File: a\r\n-x\r\n+y\r\n*** End Patch\r\n```",
    ] {
        assert_eq!(FilePatch::parse(text).unwrap(), plain, "{text:?}");
    }
}

#[test]
fn what_is_no_patch_is_refused_with_the_line() {
    for (lines, said) in [
        ("", "the patch changes no file"),
        ("hello", "line 2 of the patch, `hello`, is not `*** Add File: PATH`"),
        ("*** Add File:\n+x", "line 2 of the patch names no file"),
        ("*** Update File: a\n", "`a` has a section without lines in the patch, at line 2"),
        ("*** Update File: a\n@@\n kept", "`a` has a section without lines in the patch, at line 3"),
        ("*** Update File: a\n@@\n-x\nplain", "line 5 of the patch, `plain`, is not `@@`"),
        ("*** Update File: a\n@@@ x\n-x", "line 3 of the patch, `@@@ x`, is not `@@`"),
        ("*** Rename File: a", "line 2 of the patch, `*** Rename File: a`, is not"),
    ] {
        let error = patch(lines).unwrap_err().to_string();
        assert!(error.starts_with(said), "{lines:?}: {error}");
    }
    for (text, expected) in [
        ("*** Add File: a\n+x", PatchSyntaxError::NoBegin),
        ("*** Begin Patch\n*** Add File: a\n+x", PatchSyntaxError::NoEnd),
        ("*** Begin Patch", PatchSyntaxError::NoEnd),
    ] {
        assert_eq!(FilePatch::parse(text).unwrap_err(), expected, "{text:?}");
    }
}

#[test]
fn sections_change_the_lines_they_name() {
    for (text, lines, expected) in [
        ("a\nb\nc\n", "@@\n a\n-b\n+B\n c", "a\nB\nc\n"),
        ("a\nb\nc\nd\n", "@@\n-b\n+B\n@@\n-d\n+D", "a\nB\nc\nD\n"),
        ("a\nb\nc\n", "@@\n-a\n-b\n-c", ""),
        ("a\n\nc\n", "@@\n a\n\n-c\n+C", "a\n\nC\n"),
        ("a\nb\n", "@@\n+c\n+d", "a\nb\nc\nd\n"),
        ("a\nb", "@@\n+c", "a\nb\nc\n"),
        ("a\nno end", "@@\n-no end\n+one\n+two", "a\none\ntwo\n"),
        ("a\nno end", "@@\n-a\n+A", "A\nno end"),
        ("x\ny\nx\ny\n", "@@\n-x\n+X\n y\n*** End of File", "x\ny\nX\ny\n"),
        ("a\r\nb\r\n", "@@\n-b\n+B\n+C", "a\r\nB\r\nC\r\n"),
        (
            "one\nfn b() {\n  x\n}\nfn c() {\n  x\n}\n",
            "@@ fn c()\n-  x\n+  y",
            "one\nfn b() {\n  x\n}\nfn c() {\n  y\n}\n",
        ),
        (
            "class A:\n  def f:\n    x\nclass B:\n  def f:\n    x\n",
            "@@ class B:\n@@ def f:\n-    x\n+    y",
            "class A:\n  def f:\n    x\nclass B:\n  def f:\n    y\n",
        ),
        ("say “hi” now\n", "@@\n-say \"hi\" now\n+say no", "say no\n"),
        ("a  \nwhole line\n", "@@\n a\n-whole line\n+other line", "a  \nother line\n"),
        (
            "if x:\n\tfirst()\n\tsecond()\n",
            "@@\n     first()\n-    second()\n+    third()",
            "if x:\n\tfirst()\n\tthird()\n",
        ),
        // The whole section one level off, the other way round, and at the end of a text without a line break.
        (
            "    first_one();\n    second_one();\n",
            "@@\n first_one();\n-second_one();\n+third();",
            "    first_one();\n    third();\n",
        ),
        (
            "first_one();\nsecond_one();",
            "@@\n     first_one();\n-    second_one();\n+    third();",
            "first_one();\nthird();",
        ),
        // Trailing blanks, and characters that an editor makes typographic: lines that stay keep theirs.
        (
            "kept_line()  \nold_line()\n",
            "@@\n kept_line()\n-old_line() \n+new_line()",
            "kept_line()  \nnew_line()\n",
        ),
        (
            "total = high - low # \"it's\"\nend()\n",
            "@@\n-total = high – low # “it’s”\n+total = high – 1 # “it’s on”\n end()",
            "total = high - 1 # \"it's on\"\nend()\n",
        ),
        ("say “hi” – now\n", "@@\n-say \"hi\" – now\n+say \"ho\" – now", "say “ho” – now\n"),
        ("a\nb\nc\n", "@@ -2,1 +2,1 @@\n-b\n+B", "a\nB\nc\n"),
        ("café\nnaïve\n", "@@\n-naïve\n+naïve ✅", "café\nnaïve ✅\n"),
    ] {
        assert_eq!(patched(text, lines).as_deref(), Ok(expected), "{text:?} {lines:?}");
    }
}

#[test]
fn a_section_that_leaves_a_doubt_is_refused() {
    for (text, lines, fault) in [
        ("a\n", "@@\n-missing line\n+x", SectionFault::NotFound),
        ("x\ny\nx\n", "@@\n-x\n+X", SectionFault::Ambiguous(vec![1, 3])),
        ("a\n", "@@ fn nowhere()\n-a\n+b", SectionFault::NoHeader("fn nowhere()".to_owned())),
        ("a\nb\n", "@@ a\n+b", SectionFault::NoPlace),
        ("a\nb\n", "@@\n-a\n+b\n*** End of File", SectionFault::NotAtEnd),
        ("a\nb\n", "@@\n-a\n+1\n@@\n-a\n+2", SectionFault::Overlap),
        (
            "    long_name(1)\nx\nlong_name(1)\n",
            "@@\n-  long_name(1)\n+  y",
            SectionFault::Ambiguous(vec![1, 3]),
        ),
    ] {
        assert_eq!(patched(text, lines), Err(fault), "{text:?} {lines:?}");
    }
    // The lines stand there otherwise, and what the new ones are does not follow.
    for (text, lines, place) in [
        ("    one();\n    two();\n", "@@\n-one();\n-two();\n+    six();", 0..2),
        ("x\nsay(“longer”, “x”)\n", "@@\n-say(\"longer\", \"x\")\n+say(\"longer\", \"x\", \"y\")", 1..2),
    ] {
        let fault = patched(text, lines).unwrap_err();
        assert!(
            matches!(&fault, SectionFault::Unclear { lines, .. } if *lines == place),
            "{lines:?}: {fault:?}"
        );
    }
    // One line of two differs: no change of indentation leads there.
    assert_eq!(
        patched("  one();\n    two();\n", "@@\n-one();\n-two();\n+six();"),
        Err(SectionFault::NotFound)
    );
}

#[test]
fn a_section_for_a_text_that_changed_since_stands_there_as_given_or_is_refused() {
    let sections = |lines: &str| match patch(&format!("*** Update File: a\n{lines}")).unwrap().remove(0) {
        FilePatch::Update { sections, .. } => sections,
        other => panic!("{other:?}"),
    };
    let text = "    first_one();\n    second_one();\n";
    let shifted = sections("@@\n first_one();\n-second_one();\n+third();");
    assert_eq!(PatchedText::of(text, &shifted, true).unwrap_err().fault, SectionFault::NotFound);
    assert!(PatchedText::of(text, &sections("@@\n-    first_one();"), true).is_ok());
}

proptest! {
    /// A patch made from two texts turns one into the other, or is refused because its lines stand there twice.
    #[test]
    fn a_patch_of_two_texts_leads_from_one_to_the_other(
        old in proptest::collection::vec("[a-e]{1,3}", 0..20),
        new in proptest::collection::vec("[a-e]{1,3}", 0..20),
    ) {
        let join = |lines: &[String]| lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect::<String>();
        let (old_text, new_text) = (join(&old), join(&new));
        prop_assume!(old_text != new_text);
        let diff = similar::TextDiff::from_lines(&old_text, &new_text);
        let mut lines = String::new();
        for group in diff.grouped_ops(1) {
            lines.push_str("@@\n");
            for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
                lines.push_str(&format!("{}{}", change.tag(), change.value()));
            }
        }
        match patched(&old_text, lines.trim_end_matches('\n')) {
            Ok(text) => prop_assert_eq!(text, new_text),
            Err(SectionFault::Ambiguous(places)) => prop_assert!(places.len() > 1),
            // Additions alone go to the end, also where a diff has them at the beginning of an empty text.
            Err(fault) => prop_assert!(false, "{fault:?}"),
        }
    }

    #[test]
    fn any_text_is_read_without_a_panic(text in "(\\*\\*\\* (Begin Patch|End Patch|Add File: a|Update File: b|Move to: c|End of File)\n|@@ ?[a-c]?\n|[-+ ][a-c]?\n|\n){0,20}") {
        if let Ok(files) = FilePatch::parse(&text) {
            for file in files {
                if let FilePatch::Update { sections, .. } = file {
                    let _ = PatchedText::of("a\nb\nc\na\n", &sections, false);
                }
            }
        }
    }
}
