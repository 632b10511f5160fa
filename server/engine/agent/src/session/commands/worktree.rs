//! The command that shows the worktree of a session, merges it into the workspace, or begins a session in a new one.
//!
//! Rule: it changes the workspace on the word `merge` alone, and never removes a worktree.

use std::fmt::Write as _;

use serde_json::json;

use super::CommandContext;
use crate::conversation::WorktreeIsolation;
use crate::edits::merge::MergeReport;
use kode_config::command::CommandReport;
use kode_process::worktree::WorktreeEnd;
use kode_process::worktree::changes::WorktreeRunner;

/// The answer of a session without a worktree.
const HINT: &str =
    "This session works in the workspace itself. `/worktree new` begins one in a git worktree of its own.";

/// The most files that are listed.
const LISTED: usize = 20;

impl CommandContext<'_> {
    pub(super) async fn worktree(&self) -> CommandReport {
        match (self.arguments, self.session.services.gate.isolation().cloned()) {
            ("new", _) => self.begin_in_worktree().await,
            ("", None) => CommandReport::text(HINT),
            ("merge", None) => CommandReport::failure(HINT),
            ("", Some(isolation)) => self.show_worktree(&isolation).await,
            ("merge", Some(isolation)) => self.merge_worktree(&isolation).await,
            (other, _) => CommandReport::failure(format!(
                "`{other}` is nothing to do with a worktree; say new or merge, or nothing to see it."
            )),
        }
    }

    async fn begin_in_worktree(&self) -> CommandReport {
        match self.directory.begin_in_worktree(self.session).await {
            Ok(id) => {
                let text = format!("The session `{id}` begins in a git worktree of its own.");
                CommandReport { go_to: Some(id), ..CommandReport::text(text) }
            }
            Err(error) => CommandReport::failure(format!("No session begins: {error}.")),
        }
    }

    async fn show_worktree(&self, isolation: &WorktreeIsolation) -> CommandReport {
        let worktree = &isolation.worktree;
        let sandbox = isolation.outer_sandbox();
        let shell = &self.session.services.environment.shell;
        let runner = WorktreeRunner { worktree, shell, sandbox: sandbox.as_ref() };
        let state = runner.state().await;
        let changes = match &state {
            Ok(WorktreeEnd::Kept { commits, files, size, .. }) => {
                let size = if size.is_empty() { String::new() } else { format!(" ({size})") };
                format!("{commits} commits since it began, {files} files not committed{size}")
            }
            Ok(WorktreeEnd::Removed | WorktreeEnd::Unknown { .. }) => "no changes".to_owned(),
            Err(reason) => format!("unknown: {reason}"),
        };
        let text = format!(
            "- Folder: `{}`\n- Branch: `{}`\n- Workspace: `{}`\n- Changes: {changes}\n\n`/worktree merge` takes them over into the \
             workspace, as changes to review. When it is no longer needed: `git worktree remove '{}'`, `git branch -D {}`.",
            worktree.path, worktree.branch, worktree.of, worktree.path, worktree.branch,
        );
        CommandReport::text(text).with(json!(worktree))
    }

    async fn merge_worktree(&self, isolation: &WorktreeIsolation) -> CommandReport {
        let worktree = &isolation.worktree;
        let sandbox = isolation.outer_sandbox();
        let services = &self.session.services;
        let runner =
            WorktreeRunner { worktree, shell: &services.environment.shell, sandbox: sandbox.as_ref() };
        let changes = match runner.changes(self.cancel).await {
            Ok(changes) => changes,
            Err(reason) => return CommandReport::failure(format!("Nothing was merged: {reason}.")),
        };
        let merged = services.edits.merge_worktree(worktree, isolation.outer(), &changes, self.cancel).await;
        let report = match merged {
            Ok(report) => report,
            Err(failure) => return CommandReport::failure(failure.to_string()),
        };
        let mut text = reported(&report);
        if let Err(reason) = runner.note_merged(&changes).await {
            let _ = write!(text, "\nThe next merge begins where the worktree began: {reason}.");
        }
        let left_out: Vec<_> = report.left_out.iter().map(|(path, _)| path.to_string_lossy()).collect();
        CommandReport::text(text).with(json!({ "merged": report.merged, "leftOut": left_out }))
    }
}

fn reported(report: &MergeReport) -> String {
    let MergeReport { merged, same, left_out } = report;
    let mut text = match merged.len() {
        0 => "The workspace has all changes of the worktree.".to_owned(),
        1 => "1 file of the workspace is changed, to be reviewed:".to_owned(),
        many => format!("{many} files of the workspace are changed, to be reviewed:"),
    };
    merged.iter().take(LISTED).for_each(|path| {
        let _ = write!(text, "\n- `{path}`");
    });
    if merged.len() > LISTED {
        let _ = write!(text, "\n- {} more", merged.len() - LISTED);
    }
    if !merged.is_empty() && *same > 0 {
        let _ = write!(text, "\n\nThe workspace has the changes of {same} more already.");
    }
    for (path, reason) in left_out.iter().take(LISTED) {
        let _ = write!(text, "\n\n`{}` is not merged: {reason}. Copy it yourself.", path.display());
    }
    text
}
