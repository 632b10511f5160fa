//! A git worktree that a session or sub-agent works in by itself: made for it, and removed when nothing came of it.
//!
//! Rule: changes in a worktree are never removed from here; git itself is asked whether there is anything, and
//! asked again when no other process can reach it any more. Worktrees lie outside the repository, in a folder that outlives
//! the session.

pub mod changes;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::git::{GIT, GitRunner, quote};
use crate::plain_git::is_plain;
use crate::sandbox::Sandbox;
use crate::shell::Shell;
use kode_base::ids::AgentId;
use kode_base::paths::{AbsPath, real_path};
use kode_base::{blocking, file_moves};

/// How long git may take for one step. A large repository is written out whole.
const LIMIT: Duration = Duration::from_secs(300);

/// The prefix of worktree branches.
const BRANCHES: &str = "kode-ls/";

/// Number of characters of a commit's name that are shown.
const SHOWN_OF_COMMIT: usize = 10;

/// A worktree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Worktree {
    /// Its folder, links followed.
    pub path: AbsPath,
    /// The folder of the repository's files that it is beside, links followed.
    pub of: AbsPath,
    /// The folder of git's own files, which both share.
    pub git: AbsPath,
    /// The branch that was made for it.
    pub branch: String,
    /// The commit it began at.
    pub base: String,
}

/// The parameters of a worktree.
#[derive(Clone, Copy, Debug)]
pub struct WorktreeSpec<'a> {
    /// Where commands run.
    pub shell: &'a Shell,
    /// The sandbox of the commands in the workspace.
    pub sandbox: Option<&'a Arc<Sandbox>>,
    /// Whether the user has let git run what the repository's settings name, where nothing holds it.
    pub may_run_foreign: bool,
    /// The folder that worktrees are made in.
    pub folder: &'a AbsPath,
    /// The folder whose repository is meant.
    pub cwd: &'a AbsPath,
}

/// Why there is no worktree.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorktreeError {
    /// There is no repository to make one of.
    #[error("`{folder}` lies in no git repository with a commit: {reason}")]
    NoRepository {
        /// The folder.
        folder: AbsPath,
        /// The output of git.
        reason: String,
    },
    /// Git would run programs that the repository names, and nothing holds them.
    #[error(
        "the settings of the repository of `{folder}` name programs that git would run, and no sandbox holds them"
    )]
    NotPlain {
        /// The folder.
        folder: AbsPath,
    },
    /// Git, or the system, could not make it.
    #[error("no worktree could be made at `{path}`: {reason}")]
    Failed {
        /// Where it was to be.
        path: AbsPath,
        /// The error of git or the system.
        reason: String,
    },
}

/// The rest of a worktree when its sub-agent has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorktreeEnd {
    /// Nothing: there was nothing in it that was not there before.
    Removed,
    /// It is there, with the changes in it.
    Kept {
        /// The branch that is checked out in it; `HEAD` when none is.
        branch: String,
        /// Commits that were added.
        commits: usize,
        /// Files with changes that are not committed.
        files: usize,
        /// How much that is against where it began, in git's words; empty where git sees no change of known files.
        size: String,
    },
    /// It is there, and its state is unknown.
    Unknown {
        /// Why.
        reason: String,
    },
}

impl Worktree {
    /// Makes a worktree of the newest commit for the session or sub-agent of this id. One that was removed meanwhile is made again with the branch it
    /// had, if that is still there.
    ///
    /// # Errors
    /// [`WorktreeError`]; a partial worktree is removed again.
    pub async fn make(
        making: WorktreeSpec<'_>,
        id: &str,
        cancel: &CancellationToken,
    ) -> Result<Self, WorktreeError> {
        let folder = making.cwd.clone();
        let is_held = making.sandbox.is_some() || making.may_run_foreign;
        if !is_held && !blocking(move || is_plain(&folder)).await {
            return Err(WorktreeError::NotPlain { folder: making.cwd.clone() });
        }
        let repository = WorktreeSource::of(&making, cancel).await?;
        let folder = making.folder.join(repository.top.file_name());
        let made = folder.clone();
        // The sandbox holds by where folders are, and learns only of existing folders.
        let real = blocking(move || {
            std::fs::create_dir_all(&made)?;
            AbsPath::new(real_path(&made)?).map_err(std::io::Error::other)
        });
        let folder = real
            .await
            .map_err(|error| WorktreeError::Failed { path: folder.clone(), reason: error.to_string() })?;
        let (path, branch) = (folder.join(id), format!("{BRANCHES}{id}"));
        let worktree = Self {
            path: path.clone(),
            of: repository.top.clone(),
            git: repository.git,
            branch,
            base: repository.head,
        };
        let failed = |reason: String| WorktreeError::Failed { path: path.clone(), reason };
        let sandbox = making.sandbox.map(|sandbox| sandbox.writing_in(worktree.places_of_git(&folder), &[]));
        let sandbox = sandbox.transpose().map_err(|error| failed(error.to_string()))?;
        let sandbox = sandbox.map(|sandbox| Arc::new(sandbox.for_checkouts()));
        let runner = GitRunner { shell: making.shell, sandbox, limit: LIMIT };
        let (at, branch, base) = (quote(&path.to_string()), quote(&worktree.branch), quote(&worktree.base));
        let top = &repository.top;
        let has_branch = format!("{GIT} show-ref --verify --quiet refs/heads/{branch}");
        let has_branch = runner.run(top, &has_branch, cancel).await.is_ok();
        let line = match has_branch {
            // It began where it left the others.
            true => format!(
                "{GIT} worktree add --quiet --force {at} {branch} && {GIT} -C {at} merge-base HEAD {base}"
            ),
            false => format!("{GIT} worktree add --quiet --no-track -b {branch} {at} {base} && echo {base}"),
        };
        match runner.run(top, &line, cancel).await {
            Ok(said) => {
                let base = said.lines().last().unwrap_or_default().trim().to_owned();
                Ok(Self { base, ..worktree })
            }
            Err(reason) => {
                // Git takes away what it has started, unless it was ended at it.
                let branch =
                    if has_branch { String::new() } else { format!("; {GIT} branch --quiet -D {branch}") };
                let line = format!("{GIT} worktree remove --force {at}{branch}");
                if let Err(error) = runner.run(top, &line, &CancellationToken::new()).await {
                    tracing::debug!(%path, error, "nothing was left of a worktree that could not be made");
                }
                Err(failed(reason))
            }
        }
    }

    /// Whether its folder is there.
    pub async fn is_there(&self) -> bool {
        let pointer = self.path.join(".git");
        blocking(move || pointer.as_path().is_file()).await
    }

    /// Whether it was made for that sub-agent.
    pub fn is_of(&self, agent: &AgentId) -> bool {
        self.path.file_name() == agent.as_str()
    }

    /// Where a place of the repository is in it; `None` for what lies elsewhere.
    pub fn place_of(&self, place: &AbsPath) -> Option<AbsPath> {
        let relative = place.as_path().strip_prefix(self.of.as_path()).ok()?;
        Some(self.path.join(relative))
    }

    /// The folders that git writes in when it makes or removes it.
    fn places_of_git(&self, folder: &AbsPath) -> Vec<AbsPath> {
        vec![folder.clone(), self.git.clone()]
    }

    /// Checks the changes in it, and removes it without any. Takes no longer than git's steps may take, even if the
    /// caller has cancelled.
    pub async fn finish(&self, shell: &Shell, sandbox: Option<&Arc<Sandbox>>) -> WorktreeEnd {
        match self.look_and_remove(shell, sandbox).await {
            Ok(left) => left,
            Err(reason) => WorktreeEnd::Unknown { reason },
        }
    }

    async fn look_and_remove(
        &self,
        shell: &Shell,
        sandbox: Option<&Arc<Sandbox>>,
    ) -> Result<WorktreeEnd, String> {
        let (runner, folder) = self.runner(shell, sandbox)?;
        match self.look(&runner).await? {
            WorktreeEnd::Removed => self.remove(&runner, &folder).await.map(|()| WorktreeEnd::Removed),
            kept => Ok(kept),
        }
    }

    /// Git with the rights to write in it and in git's own folder, and the folder that it is in.
    fn runner<'a>(
        &self,
        shell: &'a Shell,
        sandbox: Option<&Arc<Sandbox>>,
    ) -> Result<(GitRunner<'a>, AbsPath), String> {
        let folder = self.path.parent().ok_or_else(|| "it has no folder".to_owned())?;
        let sandbox = sandbox.map(|sandbox| sandbox.writing_in(self.places_of_git(&folder), &[]));
        let sandbox = sandbox.transpose().map_err(|error| error.to_string())?;
        let sandbox = sandbox.map(|sandbox| Arc::new(sandbox.for_checkouts()));
        Ok((GitRunner { shell, sandbox, limit: LIMIT }, folder))
    }

    /// The changes in it; [`WorktreeEnd::Removed`] without changes.
    async fn look(&self, runner: &GitRunner<'_>) -> Result<WorktreeEnd, String> {
        let never = CancellationToken::new();
        let (base, branch) = (quote(&self.base), quote(&self.branch));
        // The branch may have been left for another commit.
        let look = format!(
            "changed=$({GIT} status --porcelain) || exit 1; \
             left=$({GIT} rev-parse --verify --quiet refs/heads/{branch} || {GIT} rev-parse HEAD); \
             {{ {GIT} rev-parse HEAD && {GIT} rev-list --count HEAD \"$left\" ^{base} -- && \
             {GIT} rev-parse --abbrev-ref HEAD && \
             if [ -n \"$changed\" ]; then printf '%s\\n' \"$changed\" | wc -l; else echo 0; fi && \
             {GIT} diff --shortstat {base}; }} 2>/dev/null"
        );
        let said = runner.run(&self.path, &look, &never).await?;
        let mut lines = said.lines().map(str::trim);
        let mut next = || lines.next().unwrap_or_default().to_owned();
        let (head, commits, checked_out, files) = (next(), next(), next(), next());
        let count = |text: &str| text.parse::<usize>().map_err(|_| format!("git says `{text}` for a number"));
        let (commits, files, size) = (count(&commits)?, count(&files)?, next());
        if head != self.base || files > 0 || commits > 0 {
            return Ok(WorktreeEnd::Kept { branch: checked_out, commits, files, size });
        }
        Ok(WorktreeEnd::Removed)
    }

    /// Removes it, unless it was changed just now: it is checked again at a hidden place.
    async fn remove(&self, runner: &GitRunner<'_>, folder: &AbsPath) -> Result<(), String> {
        let never = CancellationToken::new();
        let aside = folder.join(format!(".removed-{}", self.path.file_name()));
        let rename = |from: &AbsPath, to: &AbsPath| {
            let (from, to) = (from.clone(), to.clone());
            blocking(move || {
                file_moves::rename(from.as_path(), to.as_path()).map_err(|error| error.to_string())
            })
        };
        rename(&self.path, &aside).await?;
        let is_clean = match runner.run(&aside, &format!("{GIT} status --porcelain"), &never).await {
            Ok(changes) if changes.trim().is_empty() => Ok(()),
            Ok(_) => Err("it is in use".to_owned()),
            Err(reason) => Err(reason),
        };
        if let Err(reason) = is_clean {
            rename(&aside, &self.path).await?;
            return Err(reason);
        }
        // Not by git: the sandbox holds what tells where a worktree's repository is, as long as the worktree is there.
        blocking(move || file_moves::remove_all(aside.as_path()))
            .await
            .map_err(|error| format!("its rest: {error}"))?;
        let (at, base, branch) = (quote(&self.path.to_string()), quote(&self.base), quote(&self.branch));
        // A branch that says something else than where all began is not for us to take away.
        let forget = format!(
            "{GIT} worktree remove {at} || exit 1; \
             if [ \"$({GIT} rev-parse --verify --quiet refs/heads/{branch})\" = {base} ]; then {GIT} branch --quiet -D {branch}; fi"
        );
        runner.run(&self.of, &forget, &never).await.map(drop)
    }

    /// The text about it for its sub-agent.
    pub fn reported(&self, cwd: &AbsPath) -> String {
        format!(
            "# Your worktree\nYou work in a git worktree of your own, on the branch `{}`, which begins at the commit {}. Your \
             working directory is `{cwd}`. What is not committed in the workspace itself (`{}`) is not in it. The workspace you \
             may read and not change; whoever called you gets what you leave in the worktree, committed or not. Where a path of \
             the task lies in the workspace, take the same file of your worktree.",
            self.branch,
            short(&self.base),
            self.of,
        )
    }

    /// The text about it for the session that works in it.
    pub fn note_of_session(&self) -> String {
        format!(
            "# Your worktree\nThis session works in a git worktree of its own, on the branch `{}`, which begins at the commit {}. \
             Uncommitted changes of the workspace (`{}`) are not in it. You may read the workspace and not change it; the user \
             takes your changes over with `/worktree merge`, committed or not. Where a path of the user lies in the workspace, \
             take the same file of your worktree.",
            self.branch,
            short(&self.base),
            self.of,
        )
    }

    /// Its outcome, for the caller of its sub-agent, and as data.
    pub fn report(&self, left: &WorktreeEnd) -> (String, Value) {
        let Self { path, branch, base, .. } = self;
        let data = |is_kept: bool, more: Value| {
            let mut data = json!({ "path": path, "branch": branch, "base": base, "kept": is_kept });
            if let (Value::Object(data), Value::Object(more)) = (&mut data, more) {
                data.extend(more);
            }
            data
        };
        match left {
            WorktreeEnd::Removed => {
                let text = "It changed nothing in its git worktree, which is removed.".to_owned();
                (text, data(false, json!({})))
            }
            WorktreeEnd::Kept { branch: checked_out, commits, files, size } => {
                let size = if size.is_empty() { String::new() } else { format!("; {size}") };
                let at = quote(&path.to_string());
                let text = format!(
                    "It worked in a git worktree, and nothing of it is in the workspace yet: `{path}`, branch `{checked_out}`, \
                     {} since {}, {} not committed{size}. Look with `git -C {at} diff {}`; commits are taken over with `git merge \
                     {checked_out}`. When it is no longer needed: `git worktree remove {at}`, `git branch -D {branch}`.",
                    Count(*commits, "commit"),
                    short(base),
                    Count(*files, "changed file"),
                    short(base),
                );
                (text, data(true, json!({ "commits": commits, "uncommittedFiles": files })))
            }
            WorktreeEnd::Unknown { reason } => {
                let text = format!(
                    "It worked in a git worktree that is still there: `{path}`, branch `{branch}`. Its content could not be read: {reason}."
                );
                (text, data(true, json!({ "problem": reason })))
            }
        }
    }
}

fn short(commit: &str) -> &str {
    commit.get(..SHOWN_OF_COMMIT).unwrap_or(commit)
}

/// A number of things, in words.
struct Count(usize, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(number, what) = self;
        write!(formatter, "{number} {what}{}", if *number == 1 { "" } else { "s" })
    }
}

/// The nearest folder above a place, links followed, that has a `.git`.
fn above(place: &AbsPath) -> Option<AbsPath> {
    let real = real_path(place.as_path()).ok()?;
    let found = real.ancestors().find(|folder| folder.join(".git").exists())?;
    AbsPath::new(found).ok()
}

/// A repository.
struct WorktreeSource {
    top: AbsPath,
    git: AbsPath,
    head: String,
}

impl WorktreeSource {
    async fn of(making: &WorktreeSpec<'_>, cancel: &CancellationToken) -> Result<Self, WorktreeError> {
        let missing = |reason: String| WorktreeError::NoRepository { folder: making.cwd.clone(), reason };
        // The sandbox may show nothing else of where the workspace lies.
        let top = AbsPath::clone(making.cwd);
        let top =
            blocking(move || above(&top)).await.ok_or_else(|| missing("there is no `.git`".to_owned()))?;
        let sandbox = making.sandbox.map(|sandbox| sandbox.writing_in(Vec::new(), &[top]));
        let sandbox = sandbox.transpose().map_err(|error| missing(error.to_string()))?.map(Arc::new);
        let runner = GitRunner { shell: making.shell, sandbox, limit: LIMIT };
        let line = format!(
            "{GIT} rev-parse --path-format=absolute --show-toplevel --git-common-dir || exit 1; \
             {GIT} rev-parse --verify --quiet 'HEAD^{{commit}}' || {{ echo 'there is no commit yet'; exit 1; }}"
        );
        let said = runner.run(making.cwd, &line, cancel).await.map_err(missing)?;
        let mut lines = said.lines();
        let mut path = || {
            let path = lines.next().unwrap_or_default();
            AbsPath::new(path).map_err(|_| missing(format!("git says `{path}` for a folder")))
        };
        let (top, git) = (path()?, path()?);
        let head = lines.next().unwrap_or_default().trim().to_owned();
        Ok(Self { top, git, head })
    }
}
