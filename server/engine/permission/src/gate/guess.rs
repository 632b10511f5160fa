//! Which files an operand can mean that the text of a command line alone does not tell.
//!
//! Rule: a guess is there to find what speaks against a command, so it rather names too many files than too few; it is
//! complete, and may speak for a command, only where the shell can mean nothing else. Names on disk are checked, contents
//! are not, and no more than a bound of them.

use std::fs;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobSet};
use ignore::WalkBuilder;

use kode_base::paths::{AbsPath, real_path};

/// Maximum number of files an operand may expand to before it is unknown.
const MAX_FILES: usize = 500;
/// The longest part of a pattern that is looked up, in bytes.
const MAX_PATTERN: usize = 4_096;
/// Maximum number of names of a folder that are checked.
const MAX_NAMES: usize = 5_000;
/// Maximum number of files beneath a folder that are checked.
const MAX_BENEATH: usize = 20_000;

/// The files an operand can mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Guess {
    /// The files, existing or not.
    pub(super) paths: Vec<AbsPath>,
    /// Whether it can mean nothing else.
    pub(super) is_complete: bool,
}

/// The files that `operand`, unchanged in the line, can mean to a command that runs in one of `places`.
pub(super) fn files(operand: &str, places: &[AbsPath], home: Option<&AbsPath>) -> Guess {
    let is_quoted = operand.contains(['"', '\'', '\\']);
    let bare: String = operand.chars().filter(|letter| !matches!(letter, '"' | '\'' | '\\')).collect();
    let mut guess = Guess { paths: Vec::new(), is_complete: !is_quoted && places.len() == 1 };
    for place in places {
        let text = in_full(&bare, place, home);
        // Unexpanded text may be anything; as a pattern it may be any name.
        let is_open = text.contains(['$', '`', '{', '}', '~']);
        guess.is_complete &= !is_open;
        let pattern = if is_open { without_expansions(&text) } else { text };
        // A variable alone may be any file: to take it for all of them would refuse everything.
        if is_open && pattern.chars().all(|letter| matches!(letter, '*' | '/' | '.')) {
            continue;
        }
        if pattern.contains(['*', '?', '[', '{']) {
            guess.is_complete &= matching(place, &pattern, &mut guess.paths);
        } else {
            guess.paths.extend(plain(place, &pattern));
        }
    }
    guess
}

/// The files beneath a folder, bounded by the number that is checked, and whether those are all. A hidden or ignored file is
/// left out on request, as `rg` does.
pub(super) fn beneath(folder: &AbsPath, visible_only: bool) -> (Vec<AbsPath>, bool) {
    let mut walk = WalkBuilder::new(folder.as_path());
    walk.standard_filters(visible_only).follow_links(false).require_git(false);
    let mut found = Vec::new();
    for entry in walk.build() {
        if found.len() == MAX_BENEATH {
            return (found, false);
        }
        match entry {
            Ok(entry) => found.extend(AbsPath::new(entry.path()).ok()),
            // An unlistable folder is unreadable for a command of the same user too.
            Err(error) => tracing::debug!(%error, "a folder beneath could not be listed"),
        }
    }
    (found, true)
}

/// The text with known values put in: the home folder and the working directory.
fn in_full(text: &str, place: &AbsPath, home: Option<&AbsPath>) -> String {
    let mut text = text.to_owned();
    if let Some(home) = home {
        if text == "~" || text.starts_with("~/") {
            text.replace_range(..1, &home.to_string());
        }
        text = text.replace("${HOME}", &home.to_string()).replace("$HOME", &home.to_string());
    }
    text.replace("${PWD}", &place.to_string()).replace("$PWD", &place.to_string())
}

/// A pattern for what a text with variables in it can become: each of them may be any part of a name.
fn without_expansions(text: &str) -> String {
    let mut pattern = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '$' | '`' => {
                match letters.peek() {
                    Some('{') => while letters.next().is_some_and(|next| next != '}') {},
                    Some('(') => while letters.next().is_some_and(|next| next != ')') {},
                    _ => while letters.next_if(|next| next.is_alphanumeric() || *next == '_').is_some() {},
                }
                pattern.push('*');
            }
            '~' => pattern.push('*'),
            other => pattern.push(other),
        }
    }
    pattern
}

/// A path without patterns: as its text says, and as the system takes `..` behind a link.
fn plain(place: &AbsPath, text: &str) -> Vec<AbsPath> {
    let lexical = place.join(text);
    let physical = real_path(place.as_path().join(text)).ok().and_then(|path| AbsPath::new(path).ok());
    let mut paths = vec![lexical];
    paths.extend(physical.filter(|physical| text.contains("..") && *physical != paths[0]));
    paths
}

/// Adds the files on disk that a pattern matches; false when they are too many, or the pattern cannot be read.
fn matching(place: &AbsPath, pattern: &str, found: &mut Vec<AbsPath>) -> bool {
    let start = if pattern.starts_with('/') { PathBuf::from("/") } else { place.as_path().to_path_buf() };
    let mut folders = vec![start];
    let mut parts = pattern.split('/').filter(|part| !part.is_empty()).peekable();
    let mut is_complete = true;
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        let mut next = Vec::new();
        for folder in &folders {
            is_complete &= step(folder, part, &mut next);
        }
        if next.len() > MAX_FILES {
            next.truncate(MAX_FILES);
            is_complete = false;
        }
        if is_last {
            found.extend(next.iter().filter_map(|path| AbsPath::new(path).ok()));
            return is_complete;
        }
        folders = next;
    }
    is_complete
}

/// A matcher of names; `None` for a pattern that cannot be read, or is too large to be made into one.
fn matcher(part: &str) -> Option<GlobSet> {
    if part.len() > MAX_PATTERN {
        return None;
    }
    let glob = GlobBuilder::new(part).build().ok()?;
    // One glob alone is compiled in a way that panics where it is too large.
    GlobSet::builder().add(glob).build().ok()
}

/// The matches of one part of a pattern in a folder; false when that cannot be told.
fn step(folder: &Path, part: &str, next: &mut Vec<PathBuf>) -> bool {
    if !part.contains(['*', '?', '[', '{']) {
        next.push(folder.join(part));
        return true;
    }
    // A star of the shell matches no leading dot, but options of the shell can change that.
    let Some(matcher) = matcher(part) else { return false };
    let Ok(entries) = fs::read_dir(folder) else { return true };
    let mut seen = 0;
    for entry in entries.flatten() {
        seen += 1;
        if seen > MAX_NAMES {
            return false;
        }
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".") && !part.starts_with('.');
        if !is_hidden && matcher.is_match(&name) {
            next.push(entry.path());
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> (tempfile::TempDir, AbsPath) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["src/a.rs", "src/b.rs", "src/.env", "secrets/x", ".env"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
        (folder, root)
    }

    fn names(guess: &Guess, root: &AbsPath) -> Vec<String> {
        let relative =
            |path: &AbsPath| path.as_path().strip_prefix(root.as_path()).unwrap().display().to_string();
        let mut names: Vec<_> = guess.paths.iter().map(relative).collect();
        names.sort();
        names
    }

    #[test]
    fn a_pattern_means_the_files_it_matches_and_nothing_else() {
        let (_keep, root) = tree();
        let guess = files("src/*.rs", std::slice::from_ref(&root), None);
        assert_eq!(
            (names(&guess, &root), guess.is_complete),
            (vec!["src/a.rs".into(), "src/b.rs".into()], true)
        );
        let dots = files("src/../.env", std::slice::from_ref(&root), None);
        assert_eq!((names(&dots, &root), dots.is_complete), (vec![".env".into()], true));
    }

    #[test]
    fn what_may_become_anything_is_matched_as_a_pattern_and_never_complete() {
        let (_keep, root) = tree();
        for operand in [".en*", "\"$PWD/.env\"", "$X.env", ".e$X", "${X:-.env}"] {
            let guess = files(operand, std::slice::from_ref(&root), None);
            let is_pattern_alone = operand == ".en*";
            assert_eq!(guess.is_complete, is_pattern_alone, "{operand}");
            if !operand.starts_with("${") {
                let dotenv = root.join(".env");
                let hidden_star = operand == "$X.env";
                assert!(hidden_star || guess.paths.contains(&dotenv), "{operand}: {guess:?}");
            }
        }
        let places = [root.clone(), root.join("secrets")];
        let guess = files("x", &places, None);
        assert_eq!((names(&guess, &root), guess.is_complete), (vec!["secrets/x".into(), "x".into()], false));
    }

    #[test]
    fn home_is_a_known_place() {
        let home = AbsPath::new("/home/u").unwrap();
        let place = [AbsPath::new("/w").unwrap()];
        let guess = files("~/.ssh/id_rsa", &place, Some(&home));
        assert_eq!(guess.paths, [AbsPath::new("/home/u/.ssh/id_rsa").unwrap()]);
        assert!(guess.is_complete);
    }

    #[test]
    fn what_is_hidden_beneath_a_folder_is_left_out_on_request() {
        let (_keep, root) = tree();
        let has_dotenv = |visible_only| beneath(&root, visible_only).0.contains(&root.join(".env"));
        assert!(has_dotenv(false) && !has_dotenv(true));
    }
}
