//! The headers of source files: every file opens with a comment that says what it is for.
//!
//! Rule: everything is read that `.gitignore` leaves, in the languages of the product and its tests. Fixtures are input.

use std::fs;
use std::path::Path;

use ignore::WalkBuilder;

use crate::source::root;

/// How a header begins, by the ending of the file.
const HEADERS: &[(&str, &[&str])] = &[
    ("rs", &["//! "]),
    ("ts", &["// ", "/*"]),
    ("tsx", &["// ", "/*"]),
    ("js", &["// ", "/*"]),
    ("mjs", &["// ", "/*"]),
    ("css", &["/*"]),
    ("lua", &["--"]),
    ("py", &["\"\"\"", "# "]),
    ("sh", &["# "]),
];

/// Folders whose files are data of tests.
const DATA: &[&str] = &["tests/fixtures/", "tests/fuzz/seeds/"];

#[test]
fn every_source_file_opens_with_a_header() {
    let mut wrong = Vec::new();
    let mut checked = 0;
    for file in sources() {
        let ending = Path::new(&file).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let Some((_, beginnings)) = HEADERS.iter().find(|(known, _)| *known == ending) else { continue };
        let text = fs::read_to_string(root().join(&file)).expect("a source is text");
        checked += 1;
        if !has_header(&text, beginnings) {
            wrong.push(format!("{file}: the first line says what the file is for, as `{}…`.", beginnings[0]));
        }
    }
    assert!(checked > 1000, "only {checked} files were found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a file opens with a comment; a line for the system (`#!`) may be above it.
fn has_header(text: &str, beginnings: &[&str]) -> bool {
    let first = text.lines().find(|line| !line.starts_with("#!")).unwrap_or_default();
    beginnings.iter().any(|beginning| first.starts_with(beginning))
}

/// The files of the repository that git would track, from its root, without data of tests.
pub(crate) fn sources() -> Vec<String> {
    let mut sources = Vec::new();
    // The rules of `.gitignore` hold in a copy without `.git` too.
    for entry in WalkBuilder::new(root()).require_git(false).build() {
        let entry = entry.expect("the repository can be read");
        let file = entry.path().strip_prefix(root()).expect("an entry is below the root");
        let file = file.to_str().expect("a name in UTF-8").to_owned();
        let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
        if is_file && !DATA.iter().any(|folder| file.starts_with(folder)) {
            sources.push(file);
        }
    }
    sources
}
