//! The changes in a worktree since it began, or since they were last merged, file by file.
//!
//! Rule: git itself says which files changed, committed or not, and gives both texts as a checkout would have them. The state
//! that was merged is kept by a reference, so that git does not drop it.

use std::fs;
use std::path::{Component, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Worktree, WorktreeEnd, WorktreeError};
use crate::git::{GIT, GitRunner, quote};
use crate::plain_git::is_plain;
use crate::sandbox::Sandbox;
use crate::shell::Shell;
use kode_base::paths::{self, AbsPath};
use kode_base::{blocking, file_moves};

/// The most changed files.
pub const MAX_FILES: usize = 1_000;

/// The most bytes of one file; a longer one is left out.
const MAX_BYTES: u64 = 4 << 20;

/// The most bytes of all files.
const MAX_ALL: u64 = 128 << 20;

/// The most bytes of a command line that reads files.
const LINE: usize = 32 << 10;

/// Why a file with a name that is no text, or leads out of the repository, is left out.
const BAD_NAME: &str = "its name cannot be used";

/// The prefix of references to merged states.
const MERGED: &str = "refs/kode-ls/merged/";

/// The commands that git is run by.
#[derive(Clone, Copy, Debug)]
pub struct WorktreeRunner<'a> {
    /// The worktree.
    pub worktree: &'a Worktree,
    /// Where commands run.
    pub shell: &'a Shell,
    /// The sandbox of the commands.
    pub sandbox: Option<&'a Arc<Sandbox>>,
}

/// The changes in a worktree.
#[derive(Debug)]
pub struct WorktreeChanges {
    /// The changed files, in the order of their paths.
    pub files: Vec<ChangedFile>,
    /// Changed paths that cannot be merged as text, with the reason.
    pub left_out: Vec<(PathBuf, &'static str)>,
    /// The tree that holds all of them.
    tree: String,
}

/// A changed file.
#[derive(Debug)]
pub struct ChangedFile {
    /// Its path in the repository.
    pub path: PathBuf,
    /// Its bytes before; `None` where it was not there.
    pub before: Option<Vec<u8>>,
    /// Its bytes in the worktree; `None` where it is gone.
    pub after: Option<Vec<u8>>,
}

/// A line of git about a changed file.
#[derive(Debug, PartialEq, Eq)]
struct DiffEntry {
    path: PathBuf,
    before: Option<Side>,
    after: Option<Side>,
}

/// One side of it.
#[derive(Debug, PartialEq, Eq)]
struct Side {
    mode: String,
    blob: String,
}

impl WorktreeRunner<'_> {
    /// The state of the worktree; [`WorktreeEnd::Removed`] where nothing changed since it began.
    ///
    /// # Errors
    /// The error of git, for people.
    pub async fn state(&self) -> Result<WorktreeEnd, String> {
        self.worktree.look(&self.runner().await?).await
    }

    /// Reads the changes since it began, or since the last merge. Commits and the index stay as they are.
    ///
    /// # Errors
    /// The error of git or the system, or that there are too many, for people.
    pub async fn changes(&self, cancel: &CancellationToken) -> Result<WorktreeChanges, String> {
        let folder = self.scratch();
        let made = folder.clone();
        blocking(move || {
            // An interrupted merge may have left files.
            let _ = file_moves::remove_all(made.as_path());
            fs::create_dir_all(made.as_path()).map_err(|error| error.to_string())
        })
        .await?;
        let changes = self.read(&folder, cancel).await;
        let removed = blocking(move || file_moves::remove_all(folder.as_path())).await;
        if let Err(error) = removed {
            tracing::warn!(%error, "the folder of a merge stays");
        }
        changes
    }

    /// Notes that these changes are merged: the next ones begin there.
    ///
    /// # Errors
    /// The error of git, for people.
    pub async fn note_merged(&self, changes: &WorktreeChanges) -> Result<(), String> {
        let line = format!(
            "commit=$({GIT} -c user.name=kode-ls -c user.email=kode-ls@localhost -c commit.gpgSign=false commit-tree {} \
             -m 'Merged by kode-ls') && {GIT} update-ref {} \"$commit\"",
            quote(&changes.tree),
            quote(&self.merged()),
        );
        self.runner().await?.run(&self.worktree.path, &line, &CancellationToken::new()).await.map(drop)
    }

    fn merged(&self) -> String {
        format!("{MERGED}{}", self.worktree.path.file_name())
    }

    /// The folder that git writes its answers into: beside the worktree, hidden.
    fn scratch(&self) -> AbsPath {
        let name = format!(".merge-{}", self.worktree.path.file_name());
        self.worktree
            .path
            .parent()
            .map_or_else(|| self.worktree.path.join(&name), |beside| beside.join(&name))
    }

    /// Git in the worktree. Without a sandbox it runs only where the repository names no program.
    async fn runner(&self) -> Result<GitRunner<'_>, String> {
        let path = self.worktree.path.clone();
        if self.sandbox.is_none() && !blocking(move || is_plain(&path)).await {
            return Err(WorktreeError::NotPlain { folder: self.worktree.path.clone() }.to_string());
        }
        self.worktree.runner(self.shell, self.sandbox).map(|(runner, _)| runner)
    }

    async fn read(&self, folder: &AbsPath, cancel: &CancellationToken) -> Result<WorktreeChanges, String> {
        let runner = self.runner().await?;
        let at = |name: &str| quote(&folder.join(name).to_string());
        // In an index of its own: the staged changes of the worktree stay staged.
        let line = format!(
            "base=$({GIT} rev-parse --verify --quiet {}) || base={}; \
             cp \"$({GIT} rev-parse --path-format=absolute --git-path index)\" {index} || exit 1; \
             export GIT_INDEX_FILE={index}; \
             {GIT} add --all && tree=$({GIT} write-tree) && \
             {GIT} diff-tree -r -z --no-renames \"$base\" \"$tree\" > {changes} && echo \"$tree\"",
            quote(&format!("{}^{{commit}}", self.merged())),
            quote(&self.worktree.base),
            index = at("index"),
            changes = at("changes"),
        );
        let said = runner.run(&self.worktree.path, &line, cancel).await?;
        let tree = said.lines().last().unwrap_or_default().trim().to_owned();
        let list = folder.join("changes");
        let listed = blocking(move || fs::read(list.as_path())).await.map_err(|error| error.to_string())?;
        let entries = parse(&listed)?;
        if entries.len() > MAX_FILES {
            return Err(format!("{} files changed; at most {MAX_FILES} are merged this way", entries.len()));
        }
        let (entries, left_out) = divide(entries);
        let sides = entries.iter().flat_map(|entry| {
            let path = &entry.path;
            [&entry.before, &entry.after].into_iter().flatten().map(move |side| (path, side.blob.as_str()))
        });
        for line in lines_reading(sides, folder) {
            runner.run(&self.worktree.path, &line, cancel).await?;
        }
        let folder = folder.clone();
        blocking(move || collect(entries, left_out, tree, &folder)).await
    }
}

/// The command lines that write each blob, as a checkout at its path would have it, into a file of the folder: `0`, `1`, and so on.
fn lines_reading<'a>(sides: impl Iterator<Item = (&'a PathBuf, &'a str)>, folder: &AbsPath) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (number, (path, blob)) in sides.enumerate() {
        let path = quote(&path.to_string_lossy());
        let to = quote(&folder.join(number.to_string()).to_string());
        let part = format!("{GIT} cat-file --filters --path={path} {blob} > {to}");
        match lines.last_mut().filter(|line| line.len() + part.len() < LINE) {
            Some(line) => {
                line.push_str(" && ");
                line.push_str(&part);
            }
            None => lines.push(part),
        }
    }
    lines
}

/// The changed files with their bytes. Blocks on the disk.
fn collect(
    entries: Vec<DiffEntry>,
    mut left_out: Vec<(PathBuf, &'static str)>,
    tree: String,
    folder: &AbsPath,
) -> Result<WorktreeChanges, String> {
    let (mut files, mut number, mut all) = (Vec::with_capacity(entries.len()), 0, 0);
    for DiffEntry { path, before, after } in entries {
        let mut is_long = false;
        let mut next = |side: Option<Side>| {
            if side.is_none() {
                return Ok::<_, String>(None);
            }
            let file = folder.join(number.to_string());
            number += 1;
            let size = fs::metadata(file.as_path()).map_err(|error| error.to_string())?.len();
            if size > MAX_BYTES {
                is_long = true;
                return Ok(None);
            }
            all += size;
            if all > MAX_ALL {
                return Err(format!("the changed files have more than {} MiB", MAX_ALL >> 20));
            }
            fs::read(file.as_path()).map(Some).map_err(|error| error.to_string())
        };
        let (before, after) = (next(before)?, next(after)?);
        match is_long {
            true => left_out.push((path, "longer than 4 MiB")),
            false => files.push(ChangedFile { path, before, after }),
        }
    }
    Ok(WorktreeChanges { files, left_out, tree })
}

/// The entries that can be merged as text, and the paths of the others with the reason.
fn divide(entries: Vec<DiffEntry>) -> (Vec<DiffEntry>, Vec<(PathBuf, &'static str)>) {
    let (mut taken, mut left_out) = (Vec::new(), Vec::new());
    for entry in entries {
        let modes = [&entry.before, &entry.after].into_iter().flatten().map(|side| side.mode.as_str());
        let reason = modes.into_iter().find_map(|mode| match mode {
            "120000" => Some("a symbolic link"),
            "160000" => Some("a submodule"),
            _ => None,
        });
        let is_plain = entry.path.components().all(|part| matches!(part, Component::Normal(_)));
        let reason = reason.or((!is_plain || entry.path.to_str().is_none()).then_some(BAD_NAME));
        match reason {
            Some(reason) => left_out.push((entry.path, reason)),
            None => taken.push(entry),
        }
    }
    (taken, left_out)
}

/// Reads the output of `git diff-tree -r -z --no-renames`.
fn parse(bytes: &[u8]) -> Result<Vec<DiffEntry>, String> {
    let mut parts = bytes.split(|byte| *byte == 0).filter(|part| !part.is_empty());
    let mut entries = Vec::new();
    while let Some(facts) = parts.next() {
        let wrong = || format!("git says `{}` of a change", String::from_utf8_lossy(facts));
        let text =
            std::str::from_utf8(facts).ok().and_then(|text| text.strip_prefix(':')).ok_or_else(wrong)?;
        let words: Vec<&str> = text.split(' ').collect();
        let [before_mode, after_mode, before, after, _status] = words[..] else { return Err(wrong()) };
        let path = parts.next().ok_or_else(wrong)?;
        let side = |mode: &str, blob: &str| {
            (mode != "000000").then(|| Side { mode: mode.to_owned(), blob: blob.to_owned() })
        };
        entries.push(DiffEntry {
            path: paths::from_bytes(path).ok_or_else(wrong)?,
            before: side(before_mode, before),
            after: side(after_mode, after),
        });
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0123456789012345678901234567890123456789";

    fn entry(path: &str, before: Option<&str>, after: Option<&str>) -> DiffEntry {
        let side = |mode: &str| Side { mode: mode.to_owned(), blob: ONE.to_owned() };
        DiffEntry { path: path.into(), before: before.map(side), after: after.map(side) }
    }

    #[test]
    fn changed_files_are_read_from_the_words_of_git() {
        let said = format!(
            ":100644 100755 {ONE} {ONE} M\0a b\nc\0:000000 100644 {ONE} {ONE} A\0new\0:100644 000000 {ONE} {ONE} D\0old\0"
        );
        let expected = vec![
            entry("a b\nc", Some("100644"), Some("100755")),
            entry("new", None, Some("100644")),
            entry("old", Some("100644"), None),
        ];
        assert_eq!(parse(said.as_bytes()), Ok(expected));
        assert_eq!(parse(b""), Ok(vec![]));
        for wrong in ["x\0a\0", ":1 2 3\0a\0", ":100644 100644 a b M\0"] {
            assert!(parse(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn links_submodules_and_foreign_names_are_left_out_with_the_reason() {
        let foreign = paths::from_bytes(b"\xff").unwrap();
        let mut odd = entry("x", None, Some("100644"));
        odd.path.clone_from(&foreign);
        let entries = vec![
            entry("link", None, Some("120000")),
            entry("module", Some("160000"), Some("160000")),
            entry("../out", None, Some("100644")),
            odd,
            entry("text", Some("100644"), Some("100644")),
        ];
        let (taken, left_out) = divide(entries);
        assert_eq!(taken, [entry("text", Some("100644"), Some("100644"))]);
        let reasons: Vec<_> = left_out.iter().map(|(_, reason)| *reason).collect();
        assert_eq!(reasons, ["a symbolic link", "a submodule", BAD_NAME, BAD_NAME]);
    }

    #[test]
    fn command_lines_that_read_files_are_bounded() {
        let folder = AbsPath::new("/tmp/merge").unwrap();
        let paths: Vec<_> = (0..2_000).map(|number| PathBuf::from(format!("it's {number}"))).collect();
        let lines = lines_reading(paths.iter().map(|path| (path, ONE)), &folder);
        assert!(lines.len() > 1 && lines.iter().all(|line| line.len() < LINE), "{}", lines.len());
        assert!(
            lines[0].starts_with(GIT) && lines[0].contains(r"--path='it'\''s 0' "),
            "{}",
            &lines[0][..200]
        );
        assert!(lines.last().unwrap().ends_with("> '/tmp/merge/1999'"));
    }
}
