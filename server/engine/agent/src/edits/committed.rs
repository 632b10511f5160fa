//! Detecting commits: committed hunks need no review any more.
//!
//! Rule: only what git's own records and the bytes on disk prove is treated as committed: the file is, byte for byte,
//! the one in the last commit of the repository it lies in, and holds what the ledger knows. Looked for only while hunks
//! wait, by the time stamp of git's own log; of git only its objects are asked, so that nothing a repository could make
//! it run (filters, hooks, transports) is run. A folder without git costs nothing.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use ropey::Rope;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use crate::edits::EditBook;
use crate::edits::Edits;
use kode_base::command_shell::CommandShell;
use kode_base::paths::{AbsPath, Target, slashed};
use kode_base::{blocking, regular};
use kode_journal::BlobId;
use kode_process::outcome::Exit;
use kode_process::shell::CommandSpec;
use kode_text::edit::ledger::review::HunkState;
use kode_text::shell_change::FileImage;
use kode_text::workspace::overlay::FileOnDisk;

/// The interval of reading the log while hunks wait.
pub(crate) const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// How long git may take.
const GIT_LIMIT: Duration = Duration::from_secs(10);

/// A file that names the folder of a repository is not larger, in bytes.
const MAX_POINTER: u64 = 64 << 10;

/// The most files of one git command.
const MAX_FILES_OF_COMMAND: usize = 100;

/// The most files that are compared; the rest waits for the next commit.
const MAX_FILES: usize = 500;

/// Before each command: the repository is the one around the folder, whatever the server was started in, and objects
/// that are missing are not fetched.
const GIT_ENVIRONMENT: &str = "unset GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY \
     GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE; export GIT_NO_LAZY_FETCH=1 GIT_ALLOW_PROTOCOL=none; ";

/// Git, which believes the objects and takes names as they are.
const GIT: &str =
    "git --no-replace-objects --literal-pathspecs -c core.hooksPath=/dev/null -c core.fsmonitor=false";

/// When the logs of the workspace folders were last written.
pub(crate) type LogTimes = Vec<Option<SystemTime>>;

impl Edits {
    /// When git's logs of the workspace folders were last written.
    pub(crate) async fn log_times(&self) -> LogTimes {
        let roots = self.workspace.roots().to_vec();
        let moved =
            |root: &AbsPath| std::fs::metadata(repository(root)?.log).and_then(|log| log.modified()).ok();
        blocking(move || roots.iter().map(moved).collect()).await
    }

    /// Takes the hunks of files off the list that are as they were committed.
    pub(crate) async fn keep_committed(&self) {
        // The changes of a running command are not entered yet.
        if self.feed.is_command_running() {
            return;
        }
        let mut waiting = self.synced().ledger.applied_targets();
        waiting.truncate(MAX_FILES);
        let mut of_repository: BTreeMap<AbsPath, Vec<CommitCandidate>> = BTreeMap::new();
        for target in waiting {
            self.catch_up_with(&target).await;
            let Some(file) = self.workspace.file_on_disk(&target).await else { continue };
            let candidate = blocking(move || CommitCandidate::of(target, file)).await;
            if let Some((top, candidate)) = candidate {
                of_repository.entry(top).or_default().push(candidate);
            }
        }
        for (top, candidates) in &of_repository {
            for candidates in candidates.chunks(MAX_FILES_OF_COMMAND) {
                let committed = self.committed(top, candidates).await.unwrap_or_default();
                for (candidate, committed) in candidates.iter().zip(committed) {
                    let mut book = self.synced();
                    if candidate.is(&committed) && book.holds(candidate) {
                        self.keep_applied(&mut book, &candidate.target);
                    }
                }
            }
        }
    }

    /// The entries of files in the last commit of a repository, in their order; `None` where git fails.
    async fn committed(&self, top: &AbsPath, candidates: &[CommitCandidate]) -> Option<Vec<HeadEntry>> {
        let paths: Vec<String> = candidates.iter().map(|candidate| quote(&candidate.name)).collect();
        let listed = self.git(top, &format!("{GIT} ls-tree -z HEAD -- {}", paths.join(" "))).await?;
        let listed: BTreeMap<&str, &str> = listed.split('\0').filter_map(blob_of_entry).collect();
        let is_missing = |candidate: &&CommitCandidate| candidate.file.is_none();
        let missing: Vec<&CommitCandidate> = candidates.iter().filter(is_missing).collect();
        // That git knows nothing of a file is no proof that its removal was committed; that it once did is.
        let once = missing.iter().map(|candidate| {
            format!(r#"printf '%s\0' "$({GIT} rev-list --max-count=1 HEAD -- {})""#, quote(&candidate.name))
        });
        let once = match missing.is_empty() {
            true => String::new(),
            false => self.git(top, &once.collect::<Vec<_>>().join("; ")).await?,
        };
        let known = missing.iter().zip(once.split('\0')).filter(|(_, commit)| !commit.is_empty());
        let removed: Vec<&str> = known.map(|(candidate, _)| candidate.name.as_str()).collect();
        let committed = candidates.iter().map(|candidate| match listed.get(candidate.name.as_str()) {
            Some(id) => HeadEntry::Blob((*id).to_owned()),
            None if removed.contains(&candidate.name.as_str()) => HeadEntry::Removed,
            None => HeadEntry::Unknown,
        });
        Some(committed.collect())
    }

    /// The output of a git command; `None` where it fails or prints too much.
    async fn git(&self, top: &AbsPath, command: &str) -> Option<String> {
        let command = format!("{GIT_ENVIRONMENT}{{ {command}; }} 2>/dev/null");
        let (directory, timeout) = (top.clone(), GIT_LIMIT);
        let spec =
            CommandSpec { command, shell: CommandShell::Bash, directory, timeout, sandbox: None, call: None };
        let shell = self.shell.elsewhere(top.clone());
        let outcome = shell.run(spec, |_| {}, &CancellationToken::new()).await.ok()?;
        if outcome.exit != Exit::Code(0) || outcome.output.cut > 0 {
            tracing::debug!(exit = ?outcome.exit, %top, "git does not report the committed files");
            return None;
        }
        Some(outcome.output.text)
    }
}

/// The entry of a file in the last commit.
#[derive(Debug)]
enum HeadEntry {
    /// It is in it, under this object id.
    Blob(String),
    /// It is not in it and was in an earlier one.
    Removed,
    /// It never was in one, or is no plain file there.
    Unknown,
}

/// A file whose hunks may be committed.
struct CommitCandidate {
    target: Target,
    /// Its path in its repository, links followed.
    name: String,
    /// The bytes on disk; `None` for a missing file.
    file: Option<Vec<u8>>,
    /// Its text, if it is one.
    text: Option<String>,
}

impl CommitCandidate {
    /// The file with the folder of its repository; `None` when it is in none, or has a name that is not asked for: the
    /// answer could not be told from others.
    fn of(target: Target, file: FileOnDisk) -> Option<(AbsPath, Self)> {
        let FileOnDisk { real, bytes, text } = file;
        let top = repository(&real.parent()?)?.top;
        let relative = real.as_path().strip_prefix(top.as_path()).ok().filter(|name| name.to_str().is_some());
        let name = slashed(relative?);
        (!name.contains(char::is_control)).then_some((top, Self { target, name, file: bytes, text }))
    }

    /// Whether the file is the committed one.
    fn is(&self, committed: &HeadEntry) -> bool {
        match (committed, &self.file) {
            (HeadEntry::Blob(id), Some(bytes)) => blob_id(bytes, id.len()).as_ref() == Some(id),
            (HeadEntry::Removed, None) => true,
            (HeadEntry::Blob(_), None) | (HeadEntry::Removed, Some(_)) | (HeadEntry::Unknown, _) => false,
        }
    }
}

impl EditBook {
    /// Whether what the ledger knows of a target is what the file holds: its text, and what files became as a whole.
    fn holds(&self, candidate: &CommitCandidate) -> bool {
        let is_text = self.ledger.text(&candidate.target).is_none_or(|known| match &candidate.text {
            Some(text) => is_same_text(known, text),
            // Of a file that is gone the ledger keeps the last text.
            None => candidate.file.is_none(),
        });
        let applied = self.ledger.applied(&candidate.target).into_iter();
        let undone: Vec<_> = applied.map(|hunk| (hunk, HunkState::Undone)).collect();
        // Of several, the newest is the current one, and it comes first.
        let whole = self.ledger.replacements(&undone).into_iter().next();
        is_text
            && whole.is_none_or(|whole| match (&whole.expected, &candidate.file) {
                (FileImage::Kept { blob, .. }, Some(bytes)) => *blob == BlobId::of(bytes),
                (FileImage::Absent, None) => true,
                (
                    FileImage::Kept { .. }
                    | FileImage::Absent
                    | FileImage::Symlink { .. }
                    | FileImage::NotKept { .. },
                    _,
                ) => false,
            })
    }
}

/// Whether texts are the same but for line endings, which editors show as they like.
fn is_same_text(known: &Rope, text: &str) -> bool {
    let without_returns = |byte: &u8| *byte != b'\r';
    known.bytes().filter(without_returns).eq(text.bytes().filter(without_returns))
}

/// Git's id of a file with these bytes, in as many hexadecimal digits as its repository has.
fn blob_id(bytes: &[u8], digits: usize) -> Option<String> {
    fn of<D: Digest>(bytes: &[u8]) -> Vec<u8> {
        let head = format!("blob {}\0", bytes.len());
        D::new().chain_update(head).chain_update(bytes).finalize().to_vec()
    }
    let digest = match digits {
        40 => of::<Sha1>(bytes),
        64 => of::<Sha256>(bytes),
        _ => return None,
    };
    Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Name and object id of a plain file in `git ls-tree -z`.
fn blob_of_entry(entry: &str) -> Option<(&str, &str)> {
    let (facts, name) = entry.split_once('\t')?;
    match facts.split(' ').collect::<Vec<_>>().as_slice() {
        ["100644" | "100755", "blob", id] => Some((name, *id)),
        _ => None,
    }
}

/// A git repository.
struct GitRepository {
    /// The folder of its files.
    top: AbsPath,
    /// The log of checkouts and commits.
    log: PathBuf,
}

/// The repository that a folder is in. In a linked work tree `.git` is a file that names the real folder.
fn repository(folder: &AbsPath) -> Option<GitRepository> {
    let mut top = folder.clone();
    loop {
        let git = top.join(".git");
        if git.as_path().is_dir() {
            return Some(GitRepository { log: git.join("logs/HEAD").into(), top });
        }
        if let Ok(text) = regular::read_text(git.as_path(), MAX_POINTER)
            && let Some(named) = text.strip_prefix("gitdir:")
        {
            return Some(GitRepository { log: top.join(named.trim()).join("logs/HEAD").into(), top });
        }
        top = top.parent()?;
    }
}

fn quote(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}
