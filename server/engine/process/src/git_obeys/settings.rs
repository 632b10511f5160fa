//! The paths in the workspace that a repository's settings name: hooks, further settings, filters and other programs.
//!
//! Rule: it errs on the side of too much. A value that can mean a path is treated as one; how git itself reads quotes and
//! comments matters only in that nothing it could read is missed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kode_base::regular;

use super::folders::folded;
use super::stamp::InodeStamp;
use crate::plain_git::WRITING_HOOKS;
use kode_base::paths::real_path;

/// How many settings files one includes after the other are read; git stops there as well.
const MAX_DEPTH: usize = 10;
/// How much of one is read, in bytes.
const MAX_SETTINGS: u64 = 1 << 20;
/// How many files are read for one repository.
const MAX_FILES: usize = 64;
/// Sections that name neither programs nor files.
const HARMLESS: [&str; 5] = ["user", "branch", "remote", "color", "advice"];
/// Settings of other sections that do not either.
const HARMLESS_SETTINGS: [(&str, &str); 6] = [
    ("core", "worktree"),
    ("core", "excludesfile"),
    ("submodule", "url"),
    ("submodule", "path"),
    ("submodule", "branch"),
    ("submodule", "active"),
];
/// Settings whose value is the path of a file or folder that git obeys, by section and name.
const PATHS: [(&str, &str); 6] = [
    ("core", "hookspath"),
    ("core", "fsmonitor"),
    ("core", "attributesfile"),
    ("include", "path"),
    ("includeif", "path"),
    ("init", "templatedir"),
];

/// Values that switch something on or off and name no path.
const SWITCHES: [&str; 9] = ["", "true", "false", "yes", "no", "on", "off", "1", "0"];

/// Hooks that git runs when it only looks, or answers; the others are [`WRITING_HOOKS`].
const OTHER_HOOKS: [&str; 4] =
    ["post-index-change", "fsmonitor-watchman", "reference-transaction", "proc-receive"];

/// Hooks that git runs from a folder that is otherwise the workspace's.
pub(crate) fn hooks() -> impl Iterator<Item = &'static str> {
    WRITING_HOOKS.into_iter().chain(OTHER_HOOKS)
}

/// Where the settings of a repository are, and what relative paths in them mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettingsPlace<'a> {
    /// The git folder.
    pub(crate) folder: &'a Path,
    /// The folder of its files; the git folder itself for a repository without.
    pub(crate) worktree: &'a Path,
    /// The home folder.
    pub(crate) home: Option<&'a Path>,
}

/// The paths in settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedPaths {
    /// Files and folders that git obeys, existing or not.
    pub(crate) obeyed: Vec<PathBuf>,
    /// Files that could be programs it runs; folders of these names are not meant.
    pub(crate) programs: Vec<PathBuf>,
    /// The files that said so, as they were.
    pub(crate) sources: BTreeMap<PathBuf, Option<InodeStamp>>,
}

impl NamedPaths {
    /// Reads the settings of a repository and those of the user that apply in it.
    pub(crate) fn by(place: &SettingsPlace<'_>) -> Self {
        let mut named = Self::default();
        let own = ["config", "config.worktree"].map(|name| place.folder.join(name));
        let home = place
            .home
            .into_iter()
            .flat_map(|home| [".gitconfig", ".config/git/config"].map(|name| home.join(name)));
        for file in own.into_iter().chain(home).chain([PathBuf::from("/etc/gitconfig")]) {
            named.read(&file, place, 0);
        }
        named
    }

    /// Whether the files that said so are as they were.
    pub(crate) fn is_current(&self) -> bool {
        self.sources.iter().all(|(file, stamp)| InodeStamp::of(file) == *stamp)
    }

    /// Whether a file is one of these, or lies in a folder that git obeys. Hooks among the files of the workspace do not make
    /// all of it obeyed.
    pub(crate) fn covers(&self, file: &Path, worktree: &Path) -> bool {
        let resolved = |path: &PathBuf| real_path(path).unwrap_or_else(|_| folded(path));
        let obeys = |path: &PathBuf| {
            let path = resolved(path);
            let holds_workspace = worktree.starts_with(&path);
            file.starts_with(&path) && (!holds_workspace || file.parent() == Some(&path) && is_hook(file))
        };
        self.obeyed.iter().any(obeys)
            || self.programs.iter().any(|path| resolved(path) == file && file.is_file())
    }

    fn read(&mut self, file: &Path, place: &SettingsPlace<'_>, depth: usize) {
        if depth > MAX_DEPTH || self.sources.len() >= MAX_FILES || self.sources.contains_key(file) {
            return;
        }
        self.sources.insert(file.to_path_buf(), InodeStamp::of(file));
        let Ok(bytes) = regular::read(file, MAX_SETTINGS) else { return };
        for GitSetting { section, name, value } in settings(&String::from_utf8_lossy(&bytes)) {
            if HARMLESS.contains(&&*section) || HARMLESS_SETTINGS.contains(&(&*section, &*name)) {
                continue;
            }
            let is_switch = SWITCHES.iter().any(|switch| value.eq_ignore_ascii_case(switch));
            if PATHS.contains(&(&*section, &*name)) && !is_switch {
                let is_include = section.starts_with("include");
                let from = if is_include { file.parent().unwrap_or(file) } else { place.worktree };
                let path = resolved(&value, from, place.home);
                if is_include {
                    self.read(&path, place, depth + 1);
                }
                self.obeyed.push(path);
            }
            let words =
                value.split(|letter: char| letter.is_whitespace() || "'\"`;|&()<>!=".contains(letter));
            let paths = words.filter(|word| !word.is_empty());
            self.programs.extend(paths.map(|word| resolved(word, place.worktree, place.home)));
        }
    }
}

fn is_hook(file: &Path) -> bool {
    hooks().any(|hook| file.file_name().is_some_and(|name| name == hook))
}

/// The path that a value means.
fn resolved(value: &str, from: &Path, home: Option<&Path>) -> PathBuf {
    match (value.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below),
        _ => from.join(value),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct GitSetting {
    section: String,
    name: String,
    value: String,
}

/// The settings in a text, names in lower case and labels of sections left out.
fn settings(text: &str) -> Vec<GitSetting> {
    let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
    let mut section = String::new();
    let mut found = Vec::new();
    for line in joined.lines() {
        let mut rest = line.trim();
        if let Some(header) = rest.strip_prefix('[') {
            // A label may hold a bracket; git ends it at its quote.
            let end = closing(header);
            let name = header.get(..end).unwrap_or(header);
            let name =
                name.split(|letter: char| letter.is_whitespace() || letter == '.' || letter == '"').next();
            section = name.unwrap_or_default().to_ascii_lowercase();
            rest = header.get(end + 1..).unwrap_or_default().trim();
        }
        if rest.is_empty() || rest.starts_with(['#', ';']) {
            continue;
        }
        let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
        let (name, value) = (name.trim().to_ascii_lowercase(), unquoted(value.trim()));
        found.push(GitSetting { section: section.clone(), name, value });
    }
    found
}

/// Where the header of a section ends.
fn closing(header: &str) -> usize {
    let (mut quoted, mut escaped) = (false, false);
    for (at, letter) in header.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => quoted = !quoted,
            ']' if !quoted => return at,
            _ => {}
        }
    }
    header.len()
}

/// A value without its quotes, and without the comment after it.
fn unquoted(value: &str) -> String {
    let (mut text, mut quoted) = (String::new(), false);
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => quoted = !quoted,
            '\\' => match letters.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('b') => {
                    text.pop();
                }
                Some(other) => text.push(other),
                None => {}
            },
            '#' | ';' if !quoted => break,
            other => text.push(other),
        }
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn named(files: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let base = real_path(folder.path()).unwrap();
        for (file, text) in files {
            fs::create_dir_all(base.join(file).parent().unwrap()).unwrap();
            fs::write(base.join(file), text).unwrap();
        }
        let (git, home) = (base.join("w/.git"), base.join("home"));
        let named =
            NamedPaths::by(&SettingsPlace { folder: &git, worktree: &base.join("w"), home: Some(&home) });
        let relative = |paths: &[PathBuf]| {
            let name = |path: &PathBuf| path.strip_prefix(&base).map(|path| path.display().to_string());
            paths.iter().filter_map(|path| name(path).ok()).collect::<Vec<_>>()
        };
        (relative(&named.obeyed), relative(&named.programs))
    }

    #[test]
    fn hooks_and_included_settings_are_obeyed_wherever_they_are_named() {
        let (obeyed, _) = named(&[
            (
                "w/.git/config",
                "[core] hooksPath = .githooks # ours\n[Include]\n\tpath = ../shared.gitconfig\n",
            ),
            ("w/shared.gitconfig", "[core \"x\"]\n[include]\npath=\"more;config\"\n"),
            ("w/more;config", "[core]\n\thooksPath=~/hooks\n"),
            ("home/.gitconfig", "[init]\ntemplateDir=templates"),
        ]);
        let expected = [
            "w/.githooks",
            "home/hooks",
            "w/.git/../more;config",
            "w/.git/../shared.gitconfig",
            "w/templates",
        ];
        // The names of an included file precede those of the file itself.
        for path in expected {
            let is_there = obeyed.iter().any(|found| {
                found == path || path.ends_with("more;config") && found.ends_with("more;config")
            });
            assert!(is_there, "{path} in {obeyed:?}");
        }
    }

    #[test]
    fn programs_of_filters_and_drivers_are_named() {
        let (_, programs) = named(&[(
            "w/.git/config",
            "[filter \"a]b\"]\n\tclean = python3 tools/clean.py \\\n --fast\n[alias]\n t = \"!./run.sh && x\"\n\
             [remote \"origin\"]\n url = lib/x\n",
        )]);
        for path in ["w/tools/clean.py", "w/./run.sh"] {
            assert!(programs.iter().any(|found| found == path), "{path} in {programs:?}");
        }
        assert!(!programs.iter().any(|found| found == "w/lib/x"), "{programs:?}");
    }
}
