//! Trials of proposed texts: the diagnostics that a change would add and remove.
//!
//! Rule: no server is started for a trial, none waits for one, and no other request sees a proposed text. However a trial ends, the
//! server has the text of the user again.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::{Instant, interval, timeout_at};
use tokio_util::sync::CancellationToken;

use super::diagnose::{DiagnosticList, find, report};
use super::{WorkspaceServers, shown_target};
use crate::running::RunningLanguageServer;
use kode_base::paths::Target;
use kode_base::task;
use kode_text::edit::FileChange;
use kode_text::host::FileDiagnostics;
use kode_text::workspace::Workspace;
use kode_text::workspace::language::TriedFile;

/// How long a server that names no version has to publish nothing more during a trial.
const QUIET: Duration = Duration::from_millis(150);
/// How often the versions of open documents are compared during a trial.
const WATCH: Duration = Duration::from_millis(25);

/// A proposed text of a file.
struct ProposedText {
    target: Target,
    text: Arc<str>,
    /// The text that it is made from; `None` for a new file.
    base: Option<Arc<str>>,
}

impl WorkspaceServers {
    pub(super) async fn try_files(
        &self,
        workspace: &Workspace,
        files: &[FileChange],
        limit: Duration,
    ) -> Option<Vec<TriedFile>> {
        let deadline = Instant::now() + limit;
        let mut groups: Vec<(Arc<RunningLanguageServer>, Vec<ProposedText>)> = Vec::new();
        for file in files {
            let target = shown_target(workspace, &file.target).await;
            let Ok(instance) = self.instance(workspace, &target).await else { continue };
            let Some(running) = instance.if_running().await else { continue };
            let base = file.base.as_ref().map(|base| Arc::clone(&base.text));
            let proposed = ProposedText { target, text: file.new_text().into(), base };
            match groups.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &running)) {
                Some((_, group)) => group.push(proposed),
                None => groups.push((running, vec![proposed])),
            }
        }
        if groups.is_empty() {
            return None;
        }
        let trials = groups.into_iter().map(|(running, group)| try_on(running, workspace, group, deadline));
        let tried = tokio::select! {
            biased;
            () = typing(workspace) => return None,
            tried = timeout_at(deadline, join_all(trials)) => tried.ok()?,
        };
        let tried: Option<Vec<_>> = tried.into_iter().collect();
        Some(tried?.into_iter().flatten().collect())
    }
}

/// Waits until an open document has another version.
async fn typing(workspace: &Workspace) {
    let versions = || -> Vec<(Target, i32)> {
        workspace.documents().into_iter().map(|document| (document.target(), document.version)).collect()
    };
    let before = versions();
    let mut ticks = interval(WATCH);
    while versions() == before {
        ticks.tick().await;
    }
}

/// Tries texts on one server.
async fn try_on(
    running: Arc<RunningLanguageServer>,
    workspace: &Workspace,
    proposed: Vec<ProposedText>,
    deadline: Instant,
) -> Option<Vec<TriedFile>> {
    let existing: Vec<Target> =
        proposed.iter().filter(|file| file.base.is_some()).map(|file| file.target.clone()).collect();
    running.sync(workspace, &existing).await.ok()?;
    if running.state.work.is_loading() {
        return None;
    }
    let mut before = Vec::with_capacity(proposed.len());
    for file in &proposed {
        before.push(diagnostics_of_base(&running, file, deadline).await?);
    }
    // The texts are taken back by a task of its own: the caller may stop waiting at any moment.
    let stop = CancellationToken::new();
    let _stop = stop.clone().drop_guard();
    let trial = task::spawn(check(running, proposed, stop, deadline));
    let after = trial.await.ok()??;
    Some(before.into_iter().zip(after).map(|(before, after)| TriedFile { before, after }).collect())
}

async fn diagnostics_of_base(
    running: &RunningLanguageServer,
    file: &ProposedText,
    deadline: Instant,
) -> Option<FileDiagnostics> {
    let Some(base) = &file.base else {
        let none = DiagnosticList { list: Vec::new(), is_complete: true };
        return Some(report(&file.target, None, none, running.encoding));
    };
    let synced = running.text(&file.target).await.filter(|synced| synced.file.text == *base)?;
    let _turn = running.turn().await;
    let found = find(running, &file.target, (synced.version, synced.at), (deadline, QUIET)).await.ok()?;
    found.is_complete.then(|| report(&file.target, Some(base), found, running.encoding))
}

/// Has the server check proposed texts until it has, or the trial is stopped.
async fn check(
    running: Arc<RunningLanguageServer>,
    proposed: Vec<ProposedText>,
    stop: CancellationToken,
    deadline: Instant,
) -> Option<Vec<FileDiagnostics>> {
    let texts: Vec<_> = proposed.iter().map(|file| (file.target.clone(), Arc::clone(&file.text))).collect();
    let began = Instant::now();
    let of_version = async |versions: &[i64]| {
        let mut files = Vec::with_capacity(proposed.len());
        for (file, version) in proposed.iter().zip(versions) {
            let checking = find(&running, &file.target, (*version, began), (deadline, QUIET));
            let found = tokio::select! {
                biased;
                () = stop.cancelled() => return None,
                found = timeout_at(deadline, checking) => found.ok()?.ok()?,
            };
            if !found.is_complete {
                return None;
            }
            files.push(report(&file.target, Some(&file.text), found, running.encoding));
        }
        Some(files)
    };
    running.with_proposed(&texts, of_version).await
}
