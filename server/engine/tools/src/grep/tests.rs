//! Searching in files of a temporary folder, saved and unsaved.

use super::*;
use crate::testing::Fixture;

fn fixture(files: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::new();
    for (age, (path, text)) in files.iter().enumerate() {
        fixture.write(path, text);
        fixture.set_modified(path, 1_000_000 - age as u64);
    }
    fixture
}

/// Checks the text of a search, given as the arguments besides `pattern`.
async fn check(fixture: &Fixture, pattern: &str, mut arguments: Value, expected: &str) {
    arguments["pattern"] = json!(pattern);
    let found = fixture.text(Grep, arguments.clone()).await;
    assert_eq!(found, expected, "{arguments}");
}

#[tokio::test]
async fn each_mode_has_its_own_output() {
    let fixture = fixture(&[("b.rs", "one\ntwo one\n"), ("a/c.rs", "none\nOne\n"), ("d", "two\n")]);
    check(&fixture, "one", json!({}), "b.rs\na/c.rs").await;
    let lines = "a/c.rs:1:none\nb.rs:1:one\nb.rs:2:two one";
    check(&fixture, "one", json!({ "output_mode": "content" }), lines).await;
    let lines = "a/c.rs:none\nb.rs:one\nb.rs:two one";
    check(&fixture, "one", json!({ "output_mode": "content", "-n": false }), lines).await;
    let counts = "a/c.rs:2\nb.rs:2\n\n[4 matches in 2 files.]";
    check(&fixture, "one", json!({ "output_mode": "count", "-i": true }), counts).await;
    check(&fixture, "absent", json!({ "output_mode": "content" }), "No matches found").await;
}

#[tokio::test]
async fn results_are_given_to_machines_too() {
    let fixture = fixture(&[("a", "x\nx\n"), ("b", "x\n")]);
    let arguments = json!({ "pattern": "x", "output_mode": "content", "head_limit": 2 });
    let found = fixture.run(Grep, arguments).await.unwrap();
    assert_eq!(found.display, "3 matches in 2 files");
    let files = json!([{ "path": "a", "matches": 2 }]);
    let expected = json!({ "files": files, "totalFiles": 2, "totalMatches": 3, "truncated": true });
    assert_eq!(found.structured, Some(expected));
}

#[tokio::test]
async fn context_is_shown_around_matches() {
    let fixture = fixture(&[("a", "1\n2\nx\n4\n5\n6\n7\nx\n"), ("b", "x\n2\n")]);
    let content = |arguments: &str| {
        let mut arguments: Value = serde_json::from_str(arguments).unwrap();
        arguments["output_mode"] = json!("content");
        arguments
    };
    let after = "a:3:x\na-4-4\n--\na:8:x\n--\nb:1:x\nb-2-2";
    check(&fixture, "x", content(r#"{ "-A": 1 }"#), after).await;
    check(&fixture, "x", content(r#"{ "-B": 1, "path": "a" }"#), "a-2-2\na:3:x\n--\na-7-7\na:8:x").await;
    let both = "a-2-2\na:3:x\na-4-4\n--\na-7-7\na:8:x";
    check(&fixture, "x", content(r#"{ "-C": 1, "path": "a" }"#), both).await;
}

#[tokio::test]
async fn files_are_chosen_by_path_glob_and_type() {
    let files = ["src/a.rs", "src/b.ts", "lib/c.tsx", "lib/d.min.js", "lib/sub/e.py", ".github/f.yml"];
    let fixture = fixture(&files.map(|path| (path, "x")));
    let cases = [
        (json!({ "path": "src" }), "src/a.rs\nsrc/b.ts"),
        (json!({ "path": "src/a.rs", "type": "py" }), "src/a.rs"),
        (json!({ "type": "rust" }), "src/a.rs"),
        (json!({ "type": "ts" }), "src/b.ts\nlib/c.tsx"),
        (json!({ "glob": "*.{ts,tsx},*.py" }), "src/b.ts\nlib/c.tsx\nlib/sub/e.py"),
        (json!({ "glob": "!lib" }), "src/a.rs\nsrc/b.ts\n.github/f.yml"),
        (json!({ "glob": "lib/*", "type": "js" }), "lib/d.min.js"),
        (json!({ "glob": "*.yml" }), ".github/f.yml"),
    ];
    for (arguments, expected) in cases {
        check(&fixture, "x", arguments, expected).await;
    }
}

#[tokio::test]
async fn ignored_and_binary_files_are_not_searched_even_when_a_glob_names_them() {
    let fixture = fixture(&[("a.log", "x"), ("b.rs", "x"), (".git/c", "x"), ("d.bin", "x\n\0")]);
    fixture.write(".ignore", "*.log");
    for mode in ["content", "count", "files_with_matches"] {
        let found = fixture.text(Grep, json!({ "pattern": "x", "output_mode": mode })).await;
        assert!(found.starts_with("b.rs") && !found.contains("d.bin"), "{found}");
    }
    check(&fixture, "x", json!({ "glob": "*.log" }), "No matches found").await;
}

#[tokio::test]
async fn open_documents_replace_their_files_and_untitled_ones_are_searched_too() {
    let mut fixture = fixture(&[("a.rs", "saved\n"), ("b.rs", "saved\n")]);
    fixture.open("a.rs", "typed\n");
    fixture.open("new/c.rs", "typed\n");
    fixture.open_untitled("Untitled-1", "first\ntyped\n");
    let content = json!({ "output_mode": "content" });
    let typed = "a.rs:1:typed\nnew/c.rs:1:typed\nuntitled:Untitled-1:2:typed";
    check(&fixture, "typed", content.clone(), typed).await;
    check(&fixture, "saved", content, "b.rs:1:saved").await;
    check(&fixture, "typed", json!({ "path": "new" }), "new/c.rs").await;
    check(&fixture, "typed", json!({ "path": "new/c.rs" }), "new/c.rs").await;
    check(&fixture, "typed", json!({ "path": "untitled:Untitled-1" }), "untitled:Untitled-1").await;
    check(
        &fixture,
        "typed",
        json!({ "path": "a.rs", "output_mode": "count" }),
        "a.rs:1\n\n[1 match in 1 file.]",
    )
    .await;
    let by_language = fixture.text(Grep, json!({ "pattern": "first", "type": "rust" })).await;
    assert_eq!(by_language, "No matches found");
}

#[tokio::test]
async fn a_large_document_is_searched_across_the_pieces_it_is_stored_in() {
    let mut fixture = Fixture::new();
    let text: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
    fixture.open("big", &text);
    let arguments = json!({ "output_mode": "content" });
    check(&fixture, "^line 1999[89]$", arguments, "big:19999:line 19998\nbig:20000:line 19999").await;
}

#[tokio::test]
async fn matches_may_span_lines_when_asked_to() {
    let fixture = fixture(&[("a", "fn f(\n    x: u8,\n) {}\n")]);
    let arguments = json!({ "output_mode": "content", "multiline": true });
    check(&fixture, r"fn f\(.*\)", arguments, "a:1:fn f(\na:2:    x: u8,\na:3:) {}").await;
    check(&fixture, r"fn f\(.*\)", json!({}), "No matches found").await;
}

#[tokio::test]
async fn line_endings_and_encodings_do_not_hide_matches() {
    let fixture = Fixture::new();
    fixture.write("crlf", "one\r\ntwo\r\n");
    let utf16: Vec<u8> = "\u{feff}zéro\none\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    fixture.write("utf16", utf16);
    fixture.write("utf8-bom", "\u{feff}one\n");
    let content = json!({ "output_mode": "content" });
    check(&fixture, "^one$", content.clone(), "crlf:1:one\nutf16:2:one\nutf8-bom:1:one").await;
    check(&fixture, "zéro", content, "utf16:1:zéro").await;
}

#[tokio::test]
async fn a_page_of_results_says_where_the_next_one_begins() {
    let lines: String = (1..=10).map(|line| format!("x{line}\n")).collect();
    let fixture = fixture(&[("a", &lines), ("b", &lines)]);
    let page = |mode: &str, offset: usize, limit: usize| json!({ "output_mode": mode, "offset": offset, "head_limit": limit });
    let first =
        "a:1:x1\na:2:x2\n\n[These are the lines 1 to 2 of 20. Continue with offset 2, or narrow the search.]";
    check(&fixture, "x", page("content", 0, 2), first).await;
    let middle = "a:10:x10\nb:1:x1\n\n[These are the lines 10 to 11 of 20. Continue with offset 11, or narrow the search.]";
    check(&fixture, "x", page("content", 9, 2), middle).await;
    check(&fixture, "x", page("content", 18, 0), "b:9:x9\nb:10:x10").await;
    check(&fixture, "x", page("files_with_matches", 1, 5), "b").await;
    let beyond = "[There are only 2 files; nothing is left after offset 7.]";
    check(&fixture, "x", page("files_with_matches", 7, 5), beyond).await;
    let counts = "a:10\n\n[These are the files 1 to 1 of 2. Continue with offset 1, or narrow the search.]";
    check(&fixture, "x", page("count", 0, 1), counts).await;
}

#[tokio::test]
async fn results_are_bounded_in_characters_and_pages_join_without_a_gap() {
    let line = "x".repeat(400);
    let fixture = fixture(&[("a", &format!("{line}\n").repeat(120))]);
    let (mut offset, mut pages) = (0, 0);
    while offset < 120 {
        let arguments =
            json!({ "pattern": "x", "output_mode": "content", "head_limit": 0, "offset": offset });
        let text = fixture.text(Grep, arguments).await;
        assert!(text.chars().count() < MAX_CHARS + 200);
        let first = format!("a:{}:", offset + 1);
        assert!(text.starts_with(&first), "{first}");
        offset += text.lines().filter(|line| line.starts_with("a:")).count();
        pages += 1;
    }
    assert_eq!((offset, pages), (120, 3));
}

#[tokio::test]
async fn of_a_long_line_the_part_around_the_match_is_shown() {
    let fixture = fixture(&[("a", &format!("{}needle{}\n", "é".repeat(5_000), "z".repeat(5_000)))]);
    let found = fixture.text(Grep, json!({ "pattern": "needle", "output_mode": "content" })).await;
    assert!(found.starts_with("a:1:[4900 characters] é"), "{found}");
    assert!(found.ends_with("z [4606 characters]"), "{found}");
    assert!(found.contains("éneedlez"), "{found}");
}

#[tokio::test]
async fn files_that_cannot_be_read_are_mentioned() {
    let line = vec![b'y'; 65 * 1024 * 1024];
    let fixture = fixture(&[("a", "x")]);
    fixture.write("b", line);
    let found = fixture.text(Grep, json!({ "pattern": "x" })).await;
    assert!(found.starts_with("a\n\n[1 file or folder could not be searched, for example "), "{found}");
    assert!(found.contains("/b: "), "{found}");
}

#[tokio::test]
async fn arguments_that_cannot_work_are_refused_with_the_way_out() {
    let fixture = fixture(&[]);
    let cases = [
        (
            json!({ "pattern": "foo(" }),
            "`foo(` is not a valid regular expression at character 4: unclosed group",
            r"`foo\(`",
        ),
        (json!({ "pattern": "a(?=b)" }), "at character 2: look-around", r"a\(\?=b\)"),
        (json!({ "pattern": r"a\nb" }), "contains a line break", "`multiline`"),
        (json!({ "pattern": "" }), "empty", "Glob"),
        (json!({ "pattern": "x", "type": "rs" }), "`rs` is not a known file type", "`rust`"),
        (json!({ "pattern": "x", "type": "pyhton" }), "`pyhton` is not a known file type", "`python`"),
        (json!({ "pattern": "x", "type": "zzzzzz" }), "`zzzzzz` is not a known file type", "`*.ext`"),
        (json!({ "pattern": "x", "glob": "a[b" }), "a[b", "in pairs"),
        (json!({ "pattern": "x", "-C": 5000 }), "more than the 1000", "fewer"),
        (json!({ "pattern": "x", "path": "gone" }), "`gone` does not exist", "path"),
        (json!({ "pattern": "x", "path": "untitled:9" }), "`untitled:9` does not exist", "path"),
    ];
    for (input, message, hint) in cases {
        let error = fixture.plan(Grep, input).await.unwrap_err();
        assert!(error.message.contains(message), "{error:?}");
        assert!(error.hint.contains(hint), "{error:?}");
    }
}

#[tokio::test]
async fn what_is_searched_is_declared() {
    let mut fixture = fixture(&[("src/a", "x")]);
    fixture.open_untitled("1", "x");
    let cases = [
        (json!({ "pattern": "x" }), Target::File(fixture.root())),
        (json!({ "pattern": "x", "path": "src" }), Target::File(fixture.root().join("src"))),
        (json!({ "pattern": "x", "path": "untitled:1" }), Target::Untitled("untitled:1".to_owned())),
    ];
    for (input, target) in cases {
        assert_eq!(fixture.plan(Grep, input).await.unwrap().touches, [Touch::Read(target)]);
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_with_an_error() {
    let fixture = fixture(&[("a", "x")]);
    let context = fixture.context();
    context.cancel.cancel();
    let error = fixture.run_in(context, Grep, json!({ "pattern": "x" })).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Cancelled);
}

#[test]
fn a_stopped_search_does_not_read_on() {
    let mut fixture = fixture(&[]);
    fixture.open("a", "x");
    let documents = fixture.workspace().documents();
    let options = SearchOptions::default();
    let watch = SearchWatch::default();
    let mut scanner = Scanner::new(&search::matcher("x", options).unwrap(), options, &watch);
    let text = SearchText::Document(&documents[0].text);
    assert_eq!(scanner.count(text, SearchExtent::All).unwrap(), Tally { matches: 1, lines: 1 });
    watch.stop();
    assert!(scanner.count(text, SearchExtent::All).is_err());
}

#[test]
fn globs_are_split_at_commas_outside_braces() {
    let cases: [(&str, &[&str]); 4] = [
        ("", &[]),
        ("*.rs", &["*.rs"]),
        ("*.{ts,tsx}, !*.d.ts", &["*.{ts,tsx}", "!*.d.ts"]),
        ("}a,b", &["}a", "b"]),
    ];
    for (globs, expected) in cases {
        assert_eq!(split_globs(globs).collect::<Vec<_>>(), expected);
    }
}
