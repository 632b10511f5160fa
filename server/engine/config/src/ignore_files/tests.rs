//! Which paths ignore files keep from the agent, compared with git where git is there.

use std::fs;
use std::path::Path;

use super::report::{IgnoreReport, LineFault};
use super::*;
use kode_base::paths::real_path;

/// A folder with these files; a text follows `=`.
fn folder(files: &[&str]) -> (tempfile::TempDir, AbsPath) {
    let kept = tempfile::tempdir().unwrap();
    let place = AbsPath::new(real_path(kept.path()).unwrap()).unwrap();
    for file in files {
        let (name, text) = file.split_once('=').unwrap_or((file, ""));
        let path = place.join(name);
        fs::create_dir_all(path.as_path().parent().unwrap()).unwrap();
        fs::write(path.as_path(), text).unwrap();
    }
    (kept, place)
}

/// The line that denies a path, as `file:line`.
fn by(place: &AbsPath, path: &str) -> Option<String> {
    let denied = IgnoreLook::default().denies(place.join(path).as_path())?;
    let file = denied.file.as_path().strip_prefix(place.as_path()).unwrap().display().to_string();
    Some(match denied.cause {
        IgnoreCause::Line { number, .. } => format!("{file}:{number}"),
        IgnoreCause::Unreadable(_) => file,
    })
}

#[test]
fn the_nearest_file_of_a_name_decides_and_every_name_can_deny() {
    let (_kept, place) = folder(&[
        ".aiignore=# keys\n*.key\n/build/\n!public.key\n",
        "sub/.aiignore=!sub.key\n*.txt\n",
        ".cursorignore=public.key\nsub/*.md\n",
        "sub/a.md",
    ]);
    for (path, line) in [
        ("a.key", Some(".aiignore:2")),
        ("deep/er/a.key", Some(".aiignore:2")),
        ("public.key", Some(".cursorignore:1")),
        ("sub/sub.key", None),
        ("sub/deep/sub.key", None),
        ("sub.key", Some(".aiignore:2")),
        ("sub/a.txt", Some("sub/.aiignore:2")),
        ("a.txt", None),
        ("sub/a.md", Some(".cursorignore:2")),
        ("sub/deep/a.md", None),
        ("deep/sub/a.md", None),
        ("build/out", Some(".aiignore:3")),
        ("sub/build/out", None),
    ] {
        assert_eq!(by(&place, path).as_deref(), line, "{path}");
    }
}

#[test]
fn patterns_mean_what_they_mean_to_git() {
    let lines = [
        "a", "/a", "a/", "a/b", "/a/b/", "*.c", "**/b", "a/**", "a/**/c", "!a/b", "!*.c", "\\!x", "\\#y",
        "x[ab]", "{a,b}", "a b", "trail   ", "x?z", "**/b/**", "!b/", "*", "!*/", "# a", "",
    ];
    let paths = [
        "a", "b", "a/b", "a/b/c", "b/a", "a.c", "a/x.c", "!x", "#y", "xa", "{a,b}", "a b", "trail", "xyz",
        "d/b/e", "d/a",
    ];
    // Every pair of lines has a folder of its own, in one repository.
    let (_kept, place) = folder(&[]);
    let pairs: Vec<_> =
        lines.iter().flat_map(|first| lines.iter().map(move |second| (first, second))).collect();
    let mut all = Vec::new();
    for (number, (first, second)) in pairs.iter().enumerate() {
        let inside = place.join(number.to_string());
        fs::create_dir(inside.as_path()).unwrap();
        for name in [".gitignore", ".aiignore"] {
            fs::write(inside.join(name).as_path(), format!("{first}\n{second}\n")).unwrap();
        }
        all.extend(paths.iter().map(|path| format!("{number}/{path}")));
    }
    let git = |arguments: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "core.excludesFile="]).args(arguments).current_dir(&place);
        git.stdin(fs::File::open(place.join("paths").as_path()).unwrap());
        String::from_utf8(git.output().unwrap().stdout).unwrap()
    };
    fs::write(place.join("paths").as_path(), all.join("\n")).unwrap();
    git(&["init", "--quiet"]);
    let said = git(&["check-ignore", "--no-index", "--stdin"]);
    let by_git: std::collections::BTreeSet<_> = said.lines().map(|line| line.trim_matches('"')).collect();
    assert!(by_git.len() > 1_000, "git is needed: {}", by_git.len());
    for path in &all {
        let (number, _) = path.split_once('/').unwrap();
        let pair = pairs[number.parse::<usize>().unwrap()];
        assert_eq!(by(&place, path).is_some(), by_git.contains(&**path), "{pair:?} {path}");
    }
}

#[test]
fn a_change_counts_from_the_next_look_on() {
    let (_kept, place) = folder(&["sub/a.txt"]);
    assert_eq!(by(&place, "sub/a.txt"), None);
    for (text, line) in
        [("*.txt\n", Some("sub/.aiignore:1")), ("\n*.tx?\n", Some("sub/.aiignore:2")), ("x\n", None)]
    {
        fs::write(place.join("sub/.aiignore").as_path(), text).unwrap();
        assert_eq!(by(&place, "sub/a.txt").as_deref(), line, "{text}");
    }
    fs::write(place.join(".geminiignore").as_path(), "sub\n").unwrap();
    assert_eq!(by(&place, "sub/a.txt").as_deref(), Some(".geminiignore:1"));
    fs::remove_file(place.join(".geminiignore").as_path()).unwrap();
    assert_eq!(by(&place, "sub/a.txt"), None);
}

#[test]
fn a_file_that_cannot_be_read_takes_all_beneath_its_folder() {
    let (_kept, place) = folder(&["sub/a", "b"]);
    fs::write(place.join("sub/.aiignore").as_path(), vec![b'x'; 200_000]).unwrap();
    assert_eq!(by(&place, "sub/a").as_deref(), Some("sub/.aiignore"));
    assert_eq!(by(&place, "b"), None);
    // A folder of that name is no ignore file.
    fs::create_dir(place.join(".codexignore").as_path()).unwrap();
    assert_eq!(by(&place, "b"), None);
}

#[test]
fn a_link_to_an_ignore_file_is_one() {
    let (_kept, place) = folder(&[".aiignore=x\n", "sub/x"]);
    std::os::unix::fs::symlink("../.aiignore", place.join("sub/.claudeignore").as_path()).unwrap();
    fs::write(place.join("sub/.aiignore").as_path(), "!x\n").unwrap();
    assert_eq!(by(&place, "sub/x").as_deref(), Some("sub/.claudeignore:1"));
}

#[test]
fn files_of_a_workspace_count_in_its_copies() {
    let (_kept, place) = folder(&["w/.aiignore=/secrets/\n", "w/deep/.aiignore=*.txt\n"]);
    let (_other, copy) = folder(&["secrets/a", "deep/a.txt", "deep/b"]);
    let denied = |path: &str| IgnoreLook::default().denies(copy.join(path).as_path()).is_some();
    assert!(!denied("secrets/a"));
    count_in_copy(&copy, &place.join("w"));
    assert!(denied("secrets/a") && denied("deep/a.txt") && !denied("deep/b"));
    assert!(IgnoreLook::default().denies(Path::new("/")).is_none());
}

#[test]
fn the_report_counts_patterns_and_paths_and_names_bad_lines() {
    let (_kept, place) = folder(&[
        ".aiignore=secrets/\n*.key\n[z-a]\n\\\n",
        "secrets/a",
        "secrets/b",
        "src/x.key",
        "src/.cursorignore=# nothing\n",
        "src/y",
    ]);
    let report = IgnoreReport::of(&place, &[]);
    let own: Vec<_> = report.files.iter().filter(|file| file.file.is_within(&place)).collect();
    assert_eq!(own.iter().map(|file| (file.patterns, file.paths)).collect::<Vec<_>>(), [(2, 2), (0, 0)]);
    let lines: Vec<_> = own[0].faults.iter().map(|LineFault { line, text, .. }| (*line, &**text)).collect();
    assert_eq!(lines, [(3, "[z-a]"), (4, "\\")]);
    assert!(report.is_complete && own[1].faults.is_empty());
}
