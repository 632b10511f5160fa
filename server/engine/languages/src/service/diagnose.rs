//! Diagnostics: pulled where the server offers it, else awaited until the server has published those of the current text.
//!
//! Rule: diagnostics of an older text are never treated as those of the current one; incomplete ones are marked.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout_at};

use super::{WorkspaceServers, shown_target};
use crate::messages::{self, DEFAULT_SEVERITY};
use crate::positions::{Encoding, LineIndex, PositionRange};
use crate::running::{Feature, RunningLanguageServer};
use crate::uri;
use kode_base::paths::Target;
use kode_text::host::{Diagnostic, DiagnosticSeverity, DiagnosticsError, FileDiagnostics};
use kode_text::workspace::Workspace;
use kode_text::workspace::language::{DiagnosticsRequest, LanguageError, ServerStart};

const PULL: Feature = Feature { capability: "diagnosticProvider", name: "diagnostics" };

/// How long a server that names no version has to publish nothing more for its diagnostics to count as complete: some publish
/// those of the syntax first.
pub(super) const QUIET: Duration = Duration::from_millis(400);
/// How long the diagnostics for a code action are waited for.
const ACTION_LIMIT: Duration = Duration::from_secs(2);

/// The diagnostics of a file as its server has them.
pub(super) struct DiagnosticList {
    pub(super) list: Vec<Value>,
    pub(super) is_complete: bool,
}

impl WorkspaceServers {
    pub(super) async fn ask_diagnostics(
        &self,
        workspace: &Workspace,
        request: DiagnosticsRequest<'_>,
    ) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        let deadline = Instant::now() + request.limit;
        if request.targets.is_empty() {
            return self.all_known(workspace, deadline).await;
        }
        let asked =
            request.targets.iter().map(|target| self.of_file(workspace, target, request.start, deadline));
        let (mut files, mut failure) = (Vec::new(), None);
        for result in join_all(asked).await {
            match result {
                Ok(file) => files.extend(file),
                Err(error) => failure = Some(error),
            }
        }
        match failure {
            Some(error) if files.is_empty() => Err(DiagnosticsError::Failed(error.to_string())),
            _ => Ok(files),
        }
    }

    /// The diagnostics of a file; `None` where its server does not run and is not to be started.
    async fn of_file(
        &self,
        workspace: &Workspace,
        target: &Target,
        start: ServerStart,
        deadline: Instant,
    ) -> Result<Option<FileDiagnostics>, LanguageError> {
        let shown = shown_target(workspace, target).await;
        let instance = self.instance(workspace, &shown).await?;
        // Where the editor has servers, a second one for each is started for no edit.
        let is_wanted = !instance.definition.needs_sandbox && !self.editor.is_offered();
        let is_started = match start {
            ServerStart::All => true,
            ServerStart::Configured => is_wanted,
            ServerStart::Running => false,
        };
        let running = match is_started {
            true => match timeout_at(deadline, instance.running()).await {
                Ok(running) => Some(running?),
                Err(_) => return Ok(Some(unknown(target))),
            },
            false => instance.if_running().await,
        };
        let Some(running) = running else { return Ok(None) };
        let checked = async {
            running.sync(workspace, std::slice::from_ref(&shown)).await?;
            if running.state.work.is_settling() {
                running.state.work.ready().await;
            }
            Ok::<_, LanguageError>(())
        };
        match timeout_at(deadline, checked).await {
            Ok(checked) => checked?,
            Err(_) => return Ok(Some(unknown(target))),
        }
        let Some(synced) = running.text(&shown).await else { return Ok(Some(unknown(target))) };
        let _turn = running.turn().await;
        let found = find(&running, &shown, (synced.version, synced.at), (deadline, QUIET)).await?;
        let mut file = report(&shown, Some(&synced.file.text), found, running.encoding);
        file.target = target.clone();
        Ok(Some(file))
    }

    /// All files of running servers that have diagnostics, the open documents among them.
    async fn all_known(
        &self,
        workspace: &Workspace,
        deadline: Instant,
    ) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        let running = self.running(workspace).await;
        let open: Vec<Target> = workspace.documents().iter().map(|document| document.target()).collect();
        if running.is_empty() && open.is_empty() {
            let reason = "no language server runs yet. Name a file".to_owned();
            return Err(DiagnosticsError::Failed(reason));
        }
        let asked = open
            .iter()
            .filter(|target| workspace.contains(target))
            .map(|target| self.of_file(workspace, target, ServerStart::All, deadline));
        // A document without a server has no diagnostics.
        let mut files: Vec<FileDiagnostics> =
            join_all(asked).await.into_iter().filter_map(|file| file.ok().flatten()).collect();
        for running in running {
            for target in running.state.published_files() {
                if files.iter().any(|known| known.target == target) {
                    continue;
                }
                let synced = running.text(&target).await;
                let list = running.state.published(&target).map(|known| known.list).unwrap_or_default();
                files.push(report(
                    &target,
                    synced.as_ref().map(|synced| &*synced.file.text),
                    DiagnosticList { list, is_complete: true },
                    running.encoding,
                ));
            }
        }
        Ok(files)
    }

    /// The diagnostics of a range in the form of the protocol, for its code actions.
    pub(super) async fn diagnostics_at(
        &self,
        _workspace: &Workspace,
        running: &Arc<RunningLanguageServer>,
        target: &Target,
        range: PositionRange,
    ) -> Vec<Value> {
        let Some(synced) = running.text(target).await else { return Vec::new() };
        let _turn = running.turn().await;
        let since = (synced.version, synced.at);
        let Ok(found) = find(running, target, since, (Instant::now() + ACTION_LIMIT, QUIET)).await else {
            return Vec::new();
        };
        let touches = |diagnostic: &Value| {
            let at = diagnostic.get("range").cloned().and_then(|at| serde_json::from_value(at).ok());
            at.is_some_and(|at: PositionRange| at.start <= range.end && range.start <= at.end)
        };
        found.list.into_iter().filter(touches).collect()
    }

    pub(super) async fn notify_changed(&self, workspace: &Workspace, files: &[(Target, bool)]) {
        const CREATED: u32 = 1;
        const CHANGED: u32 = 2;
        let change = |(target, is_created): &(Target, bool)| {
            let kind = if *is_created { CREATED } else { CHANGED };
            json!({ "uri": uri::of_target(target), "type": kind })
        };
        let changes: Vec<Value> = files.iter().map(change).collect();
        if !changes.is_empty() && self.editor.is_offered() {
            self.editor.files_changed(changes.clone());
        }
        for running in self.running(workspace).await {
            // A server that has ended reads the files when it starts again.
            drop(running.files_changed(changes.clone()).await);
        }
    }
}

/// The diagnostics of a text that the server has: of its version, or published after it came. The caller has a turn.
pub(super) async fn find(
    running: &RunningLanguageServer,
    target: &Target,
    (version, at): (i64, Instant),
    (deadline, quiet): (Instant, Duration),
) -> Result<DiagnosticList, LanguageError> {
    if running.has(PULL.capability) {
        let parameters = json!({ "textDocument": { "uri": uri::of_target(target) } });
        let pulled =
            timeout_at(deadline, running.exchange(PULL, "textDocument/diagnostic", &parameters)).await;
        let Ok(pulled) = pulled else { return Ok(DiagnosticList { list: Vec::new(), is_complete: false }) };
        let mut list = match pulled?.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => items,
            _ => Vec::new(),
        };
        // Some servers pull their own and publish those of other programs.
        list.extend(running.state.published(target).map(|known| known.list).unwrap_or_default());
        list.dedup();
        return Ok(DiagnosticList { list, is_complete: running.state.work.unfinished().is_none() });
    }
    let mut changes = running.state.changes();
    loop {
        changes.mark_unchanged();
        let published = running.state.published(target);
        let calm = match &published {
            Some(known) => match known.version {
                Some(known_version) if known_version >= version => Some(known.at),
                None if known.at >= at => Some(known.at + quiet),
                Some(_) | None => None,
            },
            None => None,
        };
        let now = Instant::now();
        let is_complete = calm.is_some_and(|calm| calm <= now);
        if is_complete || now >= deadline {
            let list = published.map(|known| known.list).unwrap_or_default();
            return Ok(DiagnosticList { list, is_complete });
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = sleep_until(calm.map_or(deadline, |calm| calm.min(deadline))) => {}
        }
    }
}

fn unknown(target: &Target) -> FileDiagnostics {
    FileDiagnostics { target: target.clone(), is_outdated: true, diagnostics: Vec::new() }
}

pub(super) fn report(
    target: &Target,
    text: Option<&str>,
    found: DiagnosticList,
    encoding: Encoding,
) -> FileDiagnostics {
    let index = text.map(LineIndex::new);
    let diagnostics = messages::diagnostics(found.list).into_iter().map(|diagnostic| {
        let start = diagnostic.range.start;
        let column = index.as_ref().map_or(start.character, |index| {
            index.position(index.offset(start, encoding), Encoding::Utf32).character
        });
        let text = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            // Markup, as the newest version of the protocol allows.
            Value::Object(markup) => {
                markup.get("value").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
            other => other.to_string(),
        };
        Diagnostic {
            line: start.line + 1,
            column: column + 1,
            severity: match diagnostic.severity.unwrap_or(DEFAULT_SEVERITY) {
                1 => DiagnosticSeverity::Error,
                2 => DiagnosticSeverity::Warning,
                3 => DiagnosticSeverity::Information,
                _ => DiagnosticSeverity::Hint,
            },
            message: text(&diagnostic.message),
            source: diagnostic.source.unwrap_or_default(),
            code: text(&diagnostic.code),
        }
    });
    FileDiagnostics {
        target: target.clone(),
        is_outdated: !found.is_complete,
        diagnostics: diagnostics.collect(),
    }
}
