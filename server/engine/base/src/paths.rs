//! Absolute paths as a type, and what a tool call can point at.
//!
//! Rule: past the edge of the engine no path is relative and none holds `.` or `..`; a text without a file (an
//! untitled document) is named by its URI and never mistaken for a path.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The path with all links followed, in the form that other paths have: on Windows without the prefix for long paths, which no
/// rule, root or program expects.
///
/// # Errors
/// The system's error: nothing is there, or a folder on the way cannot be entered.
#[cfg_attr(not(windows), expect(clippy::disallowed_methods, reason = "the one place that asks the system"))]
pub fn real_path(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    #[cfg(windows)]
    return dunce::canonicalize(path);
    #[cfg(not(windows))]
    std::fs::canonicalize(path)
}

/// The path that these bytes are, as programs such as git print it; `None` where paths are text and the bytes are no UTF-8.
#[must_use]
pub fn from_bytes(bytes: &[u8]) -> Option<PathBuf> {
    #[cfg(unix)]
    return Some(PathBuf::from(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes)));
    #[cfg(not(unix))]
    std::str::from_utf8(bytes).ok().map(PathBuf::from)
}

/// Where macOS shows the volume of the user's data a second time.
const DATA_VOLUME: &str = "/System/Volumes/Data";
/// The folders of that volume that have another name at the root.
const OF_DATA_VOLUME: [&str; 8] =
    ["Applications", "Library", "Users", "Volumes", "cores", "opt", "private", "usr/local"];

/// The name at the root of what macOS shows there and in the volume of the user's data: a rule for the one holds for the other.
fn by_the_root(path: PathBuf) -> PathBuf {
    match path.strip_prefix(DATA_VOLUME) {
        Ok(below) if OF_DATA_VOLUME.iter().any(|top| below.starts_with(top)) => Path::new("/").join(below),
        Ok(_) | Err(_) => path,
    }
}

/// An absolute path, normalised in its text alone (`.` and `..` folded, links not followed).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "PathBuf", into = "PathBuf")]
pub struct AbsPath(PathBuf);

/// A path that should have been absolute.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not an absolute path", .0.display())]
pub struct NotAbsolute(pub PathBuf);

impl AbsPath {
    /// Takes an absolute path and folds `.` and `..`.
    ///
    /// # Errors
    /// [`NotAbsolute`] for a relative path.
    pub fn new(path: impl AsRef<Path>) -> Result<Self, NotAbsolute> {
        let path = path.as_ref();
        if path.is_absolute() { Ok(Self(normalise(path))) } else { Err(NotAbsolute(path.to_path_buf())) }
    }

    /// Joins a relative path, or takes an absolute one as it is.
    #[must_use]
    pub fn join(&self, path: impl AsRef<Path>) -> Self {
        Self(normalise(&self.0.join(path)))
    }

    /// The path for the standard library.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// The folder this path is in; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        self.0.parent().map(|parent| Self(parent.to_path_buf()))
    }

    /// The last component as text, lossy; empty for the root.
    #[must_use]
    pub fn file_name(&self) -> String {
        self.0.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Whether `self` is `ancestor` or lies beneath it, component by component.
    #[must_use]
    pub fn is_within(&self, ancestor: &Self) -> bool {
        self.0.starts_with(&ancestor.0)
    }
}

impl AsRef<Path> for AbsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<PathBuf> for AbsPath {
    type Error = NotAbsolute;

    fn try_from(path: PathBuf) -> Result<Self, NotAbsolute> {
        Self::new(path)
    }
}

impl From<AbsPath> for PathBuf {
    fn from(path: AbsPath) -> Self {
        path.0
    }
}

impl fmt::Display for AbsPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(formatter)
    }
}

/// A relative path as text for people, models, patterns and git: with `/` between its names on every system.
#[must_use]
pub fn slashed(relative: &Path) -> String {
    let names: Vec<_> = relative.components().map(|name| name.as_os_str().to_string_lossy()).collect();
    names.join("/")
}

/// A name or path on one line. Line ends, other control characters and characters that turn the direction of writing are
/// escaped, so that no name can pass for another or for lines of its own.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_deceptive(letter) { line.extend(letter.escape_default()) } else { line.push(letter) }
    }
    Cow::Owned(line)
}

/// Whether a character changes how others are shown instead of being shown itself.
#[must_use]
pub fn is_deceptive(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// The paths of a call with where each led when the call was judged, links followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvedPaths(Arc<BTreeMap<AbsPath, AbsPath>>);

impl ResolvedPaths {
    /// Where a path led; `None` when the call was not judged by it.
    #[must_use]
    pub fn get(&self, path: &AbsPath) -> Option<&AbsPath> {
        self.0.get(path)
    }
}

impl FromIterator<(AbsPath, AbsPath)> for ResolvedPaths {
    fn from_iter<I: IntoIterator<Item = (AbsPath, AbsPath)>>(paths: I) -> Self {
        Self(Arc::new(paths.into_iter().collect()))
    }
}

fn normalise(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(component),
        }
    }
    if cfg!(target_os = "macos") { by_the_root(normal) } else { normal }
}

/// The target of a tool call: a file, or an open document that has no file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// A file on disk, whether it exists or not, open in the editor or not.
    File(AbsPath),
    /// An open document without a file, by its URI (`untitled:Untitled-1`).
    Untitled(String),
}

impl Target {
    /// The file, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&AbsPath> {
        match self {
            Self::File(path) => Some(path),
            Self::Untitled(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.fmt(formatter),
            Self::Untitled(uri) => formatter.write_str(uri),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_the_data_volume_of_macos_is_named_by_the_root() {
        for (path, named) in [
            ("/System/Volumes/Data/Users/ada/.ssh", "/Users/ada/.ssh"),
            ("/System/Volumes/Data/private/etc", "/private/etc"),
            ("/System/Volumes/Data/usr/local/bin", "/usr/local/bin"),
            ("/System/Volumes/Data/usr/bin", "/System/Volumes/Data/usr/bin"),
            ("/System/Volumes/Data", "/System/Volumes/Data"),
            ("/System/Volumes/Database/Users", "/System/Volumes/Database/Users"),
            ("/Users/ada", "/Users/ada"),
        ] {
            assert_eq!(by_the_root(PathBuf::from(path)), Path::new(named), "{path}");
        }
    }

    #[test]
    fn dots_are_folded_and_relative_paths_refused() {
        assert_eq!(AbsPath::new("/a/./b/../c").unwrap().as_path(), Path::new("/a/c"));
        assert_eq!(AbsPath::new("/../..").unwrap().as_path(), Path::new("/"));
        assert!(AbsPath::new("a/b").is_err());
    }

    #[test]
    fn a_path_with_line_ends_in_it_stays_on_one_line() {
        assert_eq!(one_line("a.txt\n@@ -1 +1 @@\r\u{1b}[2K"), "a.txt\\n@@ -1 +1 @@\\r\\u{1b}[2K");
        assert_eq!(one_line("a\u{202e}txt.sh"), "a\\u{202e}txt.sh");
        assert_eq!(one_line("plain é"), "plain é");
    }

    #[test]
    fn containment_is_by_component_and_not_by_text() {
        let root = AbsPath::new("/w/app").unwrap();
        assert!(root.join("src/main.rs").is_within(&root));
        assert!(!AbsPath::new("/w/app-secrets").unwrap().is_within(&root));
        assert!(!root.join("../other").is_within(&root));
    }
}
