//! One ignore file, read and compiled.
//!
//! Rule: a file is compiled again only when its stamp has changed. A line that is no pattern matches nothing and is reported; it
//! takes no other line with it.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use parking_lot::Mutex;

use kode_base::regular;
use kode_permission::IgnoreCause;

/// How large an ignore file may be, in bytes. A larger one counts as one that cannot be read.
const MAX_BYTES: u64 = 128 * 1024;
/// How many compiled files are kept.
const MAX_KEPT: usize = 4_096;
/// Whether names are compared without letter case, as the file system does.
const IS_FOLDED: bool = cfg!(target_os = "macos");

/// An ignore file.
#[derive(Debug)]
pub(super) struct ParsedIgnoreFile {
    /// The compiled lines; why there are none, if the file cannot be read.
    pub(super) matcher: Result<Gitignore, String>,
    /// Lines that are no patterns: number from 1, text and fault.
    pub(super) faults: Vec<(u32, String, String)>,
    /// Each pattern as it is compiled, with the last line that has it: number from 1 and text.
    lines: HashMap<String, (u32, String)>,
}

/// The state of a file when it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct IgnoreFileStamp {
    size: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    identity: (u64, u64, i64, i64),
}

/// The compiled files by their paths, each with its stamp.
type CompiledFiles = HashMap<PathBuf, (IgnoreFileStamp, Arc<ParsedIgnoreFile>)>;

static KEPT: LazyLock<Mutex<CompiledFiles>> = LazyLock::new(Mutex::default);

impl IgnoreFileStamp {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            size: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            identity: (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl ParsedIgnoreFile {
    /// The file at a path; `None` without a file.
    pub(super) fn at(path: &Path) -> Option<Arc<Self>> {
        let metadata = match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => return None,
            Ok(metadata) => metadata,
            Err(error) => return may_count(&error).then_some(Arc::new(Self::unreadable(&error))),
        };
        let stamp = IgnoreFileStamp::of(&metadata);
        if let Some((known, file)) = KEPT.lock().get(path)
            && *known == stamp
        {
            return Some(Arc::clone(file));
        }
        let file = Arc::new(match regular::read(path, MAX_BYTES) {
            Ok(bytes) => Self::parse(&String::from_utf8_lossy(&bytes)),
            Err(error) => Self::unreadable(&error),
        });
        let mut kept = KEPT.lock();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(path.to_path_buf(), (stamp, Arc::clone(&file)));
        Some(file)
    }

    /// Compiles the text of an ignore file.
    pub(super) fn parse(text: &str) -> Self {
        let mut builder = GitignoreBuilder::new("");
        let (mut lines, mut faults) = (HashMap::new(), Vec::new());
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, number) in text.lines().zip(1..) {
            let pattern = with_literal_braces(line);
            let pattern = if pattern.ends_with("\\ ") { &*pattern } else { pattern.trim_end() };
            let shown = line.trim_end().to_owned();
            let added = builder.case_insensitive(IS_FOLDED).map(|_| ());
            match added.and_then(|()| builder.add_line(None, pattern).map(|_| ())) {
                Ok(()) if pattern.is_empty() || pattern.starts_with('#') => {}
                Ok(()) => drop(lines.insert(pattern.to_owned(), (number, shown))),
                Err(error) => faults.push((number, shown, fault_of(error))),
            }
        }
        let matcher = builder.build().map_err(|error| format!("its lines cannot be used together: {error}"));
        Self { matcher, faults, lines }
    }

    /// How many lines are patterns.
    pub(super) fn patterns(&self) -> u64 {
        self.matcher.as_ref().map_or(0, |matcher| matcher.num_ignores() + matcher.num_whitelists())
    }

    /// The line of a pattern as it was compiled.
    pub(super) fn line_of(&self, pattern: &str) -> IgnoreCause {
        let (number, pattern) = self.lines.get(pattern).cloned().unwrap_or((0, pattern.to_owned()));
        IgnoreCause::Line { number, pattern }
    }

    fn unreadable(error: &io::Error) -> Self {
        Self { matcher: Err(error.to_string()), faults: Vec::new(), lines: HashMap::new() }
    }
}

/// Whether a file that cannot be checked may be there and count. In a folder that lets nothing pass, there is nothing to keep.
fn may_count(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
    !matches!(error.kind(), NotFound | NotADirectory | PermissionDenied)
}

/// The fault of a line, without the line.
fn fault_of(error: ignore::Error) -> String {
    match error {
        ignore::Error::Glob { err, .. } => err,
        other => other.to_string(),
    }
}

/// The line with `{` and `}` as letters, which they are in ignore files.
fn with_literal_braces(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let (mut is_escaped, mut is_in_class) = (false, false);
    for letter in line.chars() {
        if !is_escaped && !is_in_class && matches!(letter, '{' | '}') {
            text.push('\\');
        }
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '[' => is_in_class = true,
            ']' => is_in_class = false,
            _ => {}
        }
        text.push(letter);
    }
    text
}
