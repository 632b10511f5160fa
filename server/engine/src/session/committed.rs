//! Notices commits: what is committed needs no looking at any more.
//!
//! Rule: looked for only while hunks wait, by the time stamp of git's own log; git is asked without anything that a
//! repository could make it run, and a folder without git costs nothing.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio_util::sync::CancellationToken;

use crate::paths::{AbsPath, Target};
use crate::session::Session;
use crate::shell::{CommandSpec, Exit, Shell};
use crate::workspace::blocking;

/// How often the log is looked at while hunks wait.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// How long git may take.
const GIT_LIMIT: Duration = Duration::from_secs(10);

/// Commands are given so many files at most; what is left waits for the next commit.
const MAX_FILES: usize = 500;

/// When the logs of the workspace folders were last written.
pub(super) type Seen = Vec<Option<SystemTime>>;

impl Session {
    /// When the folders' repositories have last moved.
    pub(super) async fn look_at_repositories(&self) -> Seen {
        let roots = self.workspace.roots().to_vec();
        let moved =
            |root: &AbsPath| std::fs::metadata(repository(root)?.log).and_then(|log| log.modified()).ok();
        blocking(move || roots.iter().map(moved).collect()).await
    }

    /// Takes the hunks of files off the list that are as they were committed.
    pub(super) async fn keep_committed(&self) {
        let waiting = self.sync_changes().ledger.applied_targets();
        // What the editor has not saved was not committed either.
        let unsaved = self.workspace.unsaved_documents().await;
        for root in self.workspace.roots() {
            let of_root =
                waiting.iter().filter(|target| target.file().is_some_and(|file| file.is_within(root)));
            let of_root: Vec<&Target> = of_root.take(MAX_FILES).collect();
            if of_root.is_empty() {
                continue;
            }
            let Some(dirty) = self.uncommitted(root, &of_root).await else { continue };
            for target in of_root {
                let is_clean = target.file().is_some_and(|file| !dirty.contains(file));
                if is_clean && !unsaved.contains(target) {
                    self.keep_applied(&mut self.sync_changes(), target);
                }
            }
        }
    }

    /// Those of the files that git says are not committed as they are; `None` when git cannot say.
    async fn uncommitted(&self, root: &AbsPath, targets: &[&Target]) -> Option<Vec<AbsPath>> {
        let folder = root.clone();
        let top = blocking(move || repository(&folder)).await?.top;
        let quoted = targets.iter().filter_map(|target| Some(quote(target.file()?.as_path().to_str()?)));
        let paths: Vec<String> = quoted.collect();
        let command = format!(
            "git --no-optional-locks -c core.fsmonitor=false -c core.hooksPath=/dev/null -c core.quotePath=false \
             status --porcelain --no-renames --untracked-files=all --ignored=matching -- {}",
            paths.join(" ")
        );
        let shell = Shell::new(root.clone());
        let spec = CommandSpec { command, timeout: GIT_LIMIT };
        let outcome = shell.run(spec, |_| {}, &CancellationToken::new()).await.ok()?;
        if outcome.exit != Exit::Code(0) || outcome.output.cut > 0 {
            tracing::debug!(exit = ?outcome.exit, "git does not say what is committed");
            return None;
        }
        let lines = outcome.output.text.lines().filter_map(|line| line.get(3..)).map(str::to_owned);
        // A name that git had to quote is not taken apart: nothing of this round is said to be committed then.
        let names: Vec<String> = lines.collect();
        if names.iter().any(|name| name.starts_with('"')) {
            return None;
        }
        Some(names.into_iter().map(|name| top.join(name)).collect())
    }
}

/// A git repository.
struct Repository {
    /// The folder that git's names count from.
    top: AbsPath,
    /// The log of what was checked out and committed.
    log: PathBuf,
}

/// The repository that a folder is in. In a linked work tree `.git` is a file that names the real folder.
fn repository(folder: &AbsPath) -> Option<Repository> {
    let mut top = folder.clone();
    loop {
        let git = top.join(".git");
        if git.as_path().is_dir() {
            return Some(Repository { log: git.join("logs/HEAD").into(), top });
        }
        if let Ok(text) = std::fs::read_to_string(&git)
            && let Some(named) = text.strip_prefix("gitdir:")
        {
            return Some(Repository { log: top.join(named.trim()).join("logs/HEAD").into(), top });
        }
        top = top.parent()?;
    }
}

fn quote(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}
