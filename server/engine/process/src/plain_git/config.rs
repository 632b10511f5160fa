//! Whether a settings file of git names no program.
//!
//! Rule: an allow-list of sections and settings, in the plainest way of writing them; what git may read in another way
//! than it looks (quotes, escapes, control characters) is not plain.

use kode_base::paths::real_path;
use std::path::Path;

/// More of a settings file is not checked.
const MAX_CONFIG: u64 = 256 * 1024;

/// The sections whose settings name no programs.
const PLAIN_SECTIONS: [&str; 6] = ["user", "branch", "push", "pull", "color", "advice"];

/// Settings of the section `extensions` that name no programs: how the repository is stored.
const PLAIN_EXTENSIONS: [&str; 4] = ["objectformat", "compatobjectformat", "refstorage", "worktreeconfig"];

/// Settings of the section `core` that name no programs.
const PLAIN_CORE: [&str; 12] = [
    "repositoryformatversion",
    "filemode",
    "bare",
    "logallrefupdates",
    "ignorecase",
    "precomposeunicode",
    "symlinks",
    "autocrlf",
    "eol",
    "quotepath",
    "abbrev",
    "untrackedcache",
];

/// The repository whose settings are checked.
pub(super) struct ConfigFolder<'a> {
    /// Its git folder.
    pub folder: &'a Path,
    /// The folder that its files lie in, if it has them.
    pub worktree: Option<&'a Path>,
}

/// Whether a settings file names no program; true as well if absent.
pub(super) fn is_plain_file(path: &Path, place: &ConfigFolder<'_>) -> bool {
    if !super::exists(path) {
        return true;
    }
    super::read(path, MAX_CONFIG).is_some_and(|text| is_plain_text(&text, place))
}

fn is_plain_text(text: &str, place: &ConfigFolder<'_>) -> bool {
    if text.contains(|c: char| c.is_control() && c != '\n' && c != '\t') {
        return false;
    }
    let mut section = String::new();
    text.split('\n').map(|line| line.trim_matches([' ', '\t'])).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let Some(name) = section_name(rest) else { return false };
            section = name;
            return matches!(&*section, "core" | "remote" | "submodule" | "extensions")
                || PLAIN_SECTIONS.contains(&&*section);
        }
        is_plain_setting(&section, line, place)
    })
}

/// The section that a header opens, without its `[`; `None` when it is not written plainly.
fn section_name(rest: &str) -> Option<String> {
    // Settings behind the header on its own line are rare and not looked into.
    let header = rest.strip_suffix(']')?;
    let (name, label) = match header.split_once(" \"") {
        Some((name, label)) => (name, label.strip_suffix('"')?),
        None => (header, ""),
    };
    let is_plain = is_name(name) && !label.contains(['"', '\\', '[', ']', '#', ';']);
    is_plain.then(|| name.to_ascii_lowercase())
}

fn is_plain_setting(section: &str, line: &str, place: &ConfigFolder<'_>) -> bool {
    let (name, value) = line.split_once('=').unwrap_or((line, ""));
    let name = name.trim_matches([' ', '\t']).to_ascii_lowercase();
    let value = value.trim_matches([' ', '\t']);
    if !is_name(&name) || value.contains(['"', '\\']) {
        return false;
    }
    match section {
        "core" if name == "worktree" => leads_home(value, place),
        "core" => PLAIN_CORE.contains(&&*name),
        "remote" => {
            matches!(&*name, "url" | "fetch" | "pushurl" | "push" | "tagopt" | "prune" | "pushdefault")
        }
        "extensions" => PLAIN_EXTENSIONS.contains(&&*name),
        "submodule" => matches!(&*name, "url" | "active" | "branch"),
        other => PLAIN_SECTIONS.contains(&other),
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Whether the folder that `core.worktree` names is the one the repository was found by, as it is for a submodule.
fn leads_home(value: &str, place: &ConfigFolder<'_>) -> bool {
    if value.contains(['#', ';']) {
        return false;
    }
    let Some(worktree) = place.worktree.and_then(|worktree| real_path(worktree).ok()) else {
        return false;
    };
    real_path(place.folder.join(value)).is_ok_and(|named| named == worktree)
}
