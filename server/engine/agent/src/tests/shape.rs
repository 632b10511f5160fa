//! The size of the session's types: a component that grows back into the session fails here.

use std::fs;
use std::path::{Path, PathBuf};

const MAX_FIELDS: usize = 12;
const MAX_METHODS: usize = 60;
const MAX_FILES: usize = 6;
const MAX_STATE_FIELDS: usize = 24;

/// The sources of this crate without its tests, each with its path below `src`.
fn sources() -> Vec<(PathBuf, String)> {
    fn collect(root: &Path, folder: &Path, sources: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(root, &path, sources);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let place = path.strip_prefix(root).unwrap().to_path_buf();
                sources.push((place, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    collect(&root, &root, &mut sources);
    sources.retain(|(place, _)| !place.starts_with("tests") && !place.ends_with("tests.rs"));
    sources
}

/// The lines of each block of a source that begins with a line of this beginning.
fn blocks<'a>(source: &'a str, beginning: &str) -> Vec<Vec<&'a str>> {
    let mut lines = source.lines();
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        if line.starts_with(beginning) {
            blocks.push(lines.by_ref().take_while(|line| *line != "}").collect());
        }
    }
    blocks
}

fn fields(sources: &[(PathBuf, String)], name: &str) -> usize {
    let of = sources.iter().flat_map(|(_, source)| blocks(source, &format!("pub struct {name} {{")));
    let is_field = |line: &&&str| {
        let line = line.strip_prefix("    ").unwrap_or_default();
        line.starts_with(|first: char| first.is_ascii_lowercase())
    };
    let counts: Vec<_> = of.map(|block| block.iter().filter(is_field).count()).collect();
    assert_eq!(counts.len(), 1, "one {name}");
    counts[0]
}

#[test]
fn the_session_only_connects_its_components() {
    let sources = sources();
    let of_session: Vec<_> = sources
        .iter()
        .map(|(place, source)| (place, blocks(source, "impl Session {").concat()))
        .filter(|(_, lines)| !lines.is_empty())
        .collect();
    let is_method = |line: &&&str| {
        let line = line.strip_prefix("    ").unwrap_or_default();
        let line =
            line.strip_prefix("pub").map_or(line, |line| line.split_once(' ').map_or("", |line| line.1));
        line.starts_with("fn ") || line.starts_with("async fn ")
    };
    let methods: usize = of_session.iter().map(|(_, lines)| lines.iter().filter(is_method).count()).sum();
    let files: Vec<_> = of_session.iter().map(|(place, _)| place).collect();
    assert!((1..=MAX_FILES).contains(&files.len()), "{files:?}");
    assert!((1..=MAX_METHODS).contains(&methods), "Session has {methods} methods; {MAX_METHODS} may be");
    for (name, most) in [("Session", MAX_FIELDS), ("SessionState", MAX_STATE_FIELDS)] {
        let count = fields(&sources, name);
        assert!((1..=most).contains(&count), "{name} has {count} fields; {most} may be");
    }
}

#[test]
fn session_and_conversation_have_methods_in_their_own_folder_alone() {
    for (place, source) in sources() {
        for (name, folder) in [("Session", "session"), ("Conversation", "conversation")] {
            let is_at_home = place.starts_with(folder) || place == Path::new(folder).with_extension("rs");
            let is_method_block = |line: &str| {
                let line = line.split('<').next().unwrap_or_default().trim_end_matches([' ', '{']);
                line == format!("impl {name}")
            };
            assert!(
                is_at_home || !source.lines().any(is_method_block),
                "{} has methods of {name}",
                place.display()
            );
        }
    }
}
