//! Folders and how they are listed.

use super::*;
use crate::testing::Fixture;

fn fixture(files: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::new();
    for (path, text) in files {
        fixture.write(path, text);
        let path = fixture.root().join(path);
        for (path, mode) in [(path.clone(), 0o640), (path.parent().unwrap(), 0o755)] {
            std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        }
    }
    fixture
}

/// The lines of a listing without the first, which is the folder.
async fn lines(fixture: &Fixture, input: serde_json::Value) -> Vec<String> {
    fixture.text(Ls, input).await.lines().skip(1).map(str::to_owned).collect()
}

/// The names in a listing, indented by depth.
async fn names(fixture: &Fixture, input: serde_json::Value) -> Vec<String> {
    lines(fixture, input).await.iter().map(|line| line[22..].to_owned()).collect()
}

#[tokio::test]
async fn a_folder_is_a_tree_with_modes_and_sizes() {
    let fixture = fixture(&[("b.txt", "12345"), ("a/c/d", "1"), ("a.rs", ""), ("e\nf", "")]);
    std::os::unix::fs::symlink("a/c", fixture.root().join("link")).unwrap();
    let output = fixture.run(Ls, json!({})).await.unwrap();
    let expected = format!(
        "{}\n\
         drwxr-xr-x         -  a/\n\
         drwxr-xr-x         -    c/\n\
         -rw-r-----         1      d\n\
         -rw-r-----         0  a.rs\n\
         -rw-r-----         5  b.txt\n\
         -rw-r-----         0  e\\nf\n\
         lrwxrwxrwx         -  link -> a/c",
        fixture.root()
    );
    assert_eq!(output.model_text, expected);
    assert_eq!(output.display, "7 entries");
    let structured = output.structured.unwrap();
    assert_eq!(
        structured["entries"][2],
        json!({"path": "a/c/d", "kind": "file", "size": 1, "mode": "-rw-r-----"})
    );
}

#[tokio::test]
async fn hidden_and_ignored_files_are_left_out_and_hidden_ones_come_when_asked_for() {
    let fixture = fixture(&[(".env", ""), (".cfg/x", ""), (".git/config", ""), ("target/y", ""), ("z", "")]);
    fixture.write(".gitignore", "target\n");
    assert_eq!(names(&fixture, json!({})).await, ["z"]);
    assert_eq!(names(&fixture, json!({ "all": true })).await, [".cfg/", "  x", ".env", ".gitignore", "z"]);
    assert_eq!(names(&fixture, json!({ "path": "target" })).await, ["y"]);
}

#[tokio::test]
async fn patterns_and_depth_narrow_the_tree() {
    let fixture = fixture(&[("a/b/c.rs", ""), ("a/d.log", ""), ("e.rs", ""), ("f/g.txt", "")]);
    for (input, expected) in [
        (json!({ "depth": 1 }), vec!["a/", "e.rs", "f/"]),
        (json!({ "depth": 2 }), vec!["a/", "  b/", "  d.log", "e.rs", "f/", "  g.txt"]),
        (json!({ "ignore": ["*.log", "./f/"] }), vec!["a/", "  b/", "    c.rs", "e.rs"]),
        (json!({ "ignore": ["a/b", "/e.rs"] }), vec!["a/", "  d.log", "f/", "  g.txt"]),
        (json!({ "pattern": "*.rs" }), vec!["a/", "  b/", "    c.rs", "e.rs"]),
        (json!({ "pattern": "a/*" }), vec!["a/", "  d.log"]),
        (json!({ "path": "a", "depth": 1 }), vec!["b/", "d.log"]),
    ] {
        assert_eq!(names(&fixture, input.clone()).await, expected, "{input}");
    }
    let none = lines(&fixture, json!({ "pattern": "*.zig" })).await;
    assert!(none[0].starts_with("[Nothing is listed"), "{none:?}");
}

#[tokio::test]
async fn documents_that_were_never_saved_are_listed_with_their_folders() {
    let mut fixture = fixture(&[("a/old", "1")]);
    fixture.open("a/old", "changed");
    fixture.open("a/new", "typed");
    fixture.open("n/o/new", "ü");
    fixture.open(".h/new", "typed");
    assert_eq!(
        lines(&fixture, json!({})).await,
        [
            "drwxr-xr-x         -  a/",
            "(unsaved)          5    new",
            "-rw-r-----         1    old",
            "(unsaved)          -  n/",
            "(unsaved)          -    o/",
            "(unsaved)          2      new",
        ]
    );
    assert_eq!(names(&fixture, json!({ "path": "n" })).await, ["o/", "  new"]);
    assert_eq!(names(&fixture, json!({ "ignore": ["o"] })).await, ["a/", "  new", "  old"]);
}

#[tokio::test]
async fn the_nearest_entries_are_listed_and_all_are_counted() {
    let fixture = Fixture::new();
    for number in 0..MAX_ENTRIES + 5 {
        fixture.write(&format!("a/{number:04}"), "");
    }
    fixture.write("z", "");
    let output = fixture.run(Ls, json!({})).await.unwrap();
    let lines: Vec<&str> = output.model_text.lines().collect();
    assert_eq!(lines.len(), 1 + MAX_ENTRIES + 2);
    assert!(lines[MAX_ENTRIES].ends_with("  z") && lines[MAX_ENTRIES - 1].ends_with("0997"), "{lines:?}");
    assert!(lines.last().unwrap().contains("1000 nearest of 1007 entries"));
    assert_eq!(output.structured.unwrap()["truncated"], json!(true));
}

#[tokio::test]
async fn arguments_that_cannot_work_are_refused_with_the_reason() {
    let fixture = fixture(&[("file", "")]);
    for (input, kind, message) in [
        (json!({ "path": "gone" }), ToolErrorKind::NotFound, "`gone` does not exist"),
        (json!({ "path": "file" }), ToolErrorKind::InvalidInput, "`path` is `file`, which is not a folder"),
        (json!({ "path": "untitled:1" }), ToolErrorKind::InvalidInput, "not a folder"),
        (json!({ "ignore": ["a[b"] }), ToolErrorKind::InvalidInput, "`ignore`: `a[b` is not a glob pattern"),
        (json!({ "ignore": [""] }), ToolErrorKind::InvalidInput, "`ignore` holds an empty pattern"),
        (json!({ "pattern": "{" }), ToolErrorKind::InvalidInput, "`pattern`: `{`"),
        (json!({ "depth": 0 }), ToolErrorKind::InvalidInput, "`depth` is 0"),
    ] {
        let error = fixture.plan(Ls, input.clone()).await.unwrap_err();
        assert_eq!(error.kind, kind, "{input}");
        assert!(error.message.contains(message) && !error.hint.is_empty(), "{error:?}");
    }
}

#[tokio::test]
async fn the_folder_is_declared_and_a_cancelled_call_ends() {
    let fixture = fixture(&[("a/b", "")]);
    let plan = fixture.plan(Ls, json!({ "path": "a" })).await.unwrap();
    assert_eq!(plan.touches, [Touch::Read(Target::File(fixture.root().join("a")))]);
    let context = fixture.context();
    context.cancel.cancel();
    let error = fixture.run_in(context, Ls, json!({})).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Cancelled);
}
