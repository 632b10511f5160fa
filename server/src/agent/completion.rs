//! Completions of a word in a prompt: files, sessions, resources, commands.
//!
//! Rule: answered from lists that are collected beside everything else; nothing else waits for it.

use std::sync::Arc;

use kode_engine::agent::input::complete::{Completion, CompletionSources, CursorWord};
use kode_engine::agent::session::Session;
use kode_engine::agent::sessions::{ListSessions, WorkspaceFilter};
use kode_engine::base::paths::AbsPath;
use kode_engine::base::task;

use super::Agent;
use crate::convert::error::{self, RequestError};

/// The number of newest sessions that are offered.
const MAX_SESSIONS: usize = 50;

/// The completions for a word of a prompt, best first: of a session, or without one those of the workspace.
///
/// # Errors
/// When the list of sessions cannot be made.
pub(crate) async fn candidates(
    agent: &Arc<Agent>,
    session: Option<&Session>,
    word: CursorWord<'_>,
) -> Result<Vec<Completion>, RequestError> {
    let roots: Vec<AbsPath> = match session {
        Some(session) => session.roots(),
        None => agent.folders(),
    };
    let own = session.map(|session| session.id().clone());
    let lister = Arc::clone(agent);
    let sessions = if word.typed.starts_with("session:") {
        let query = ListSessions::newest(WorkspaceFilter::These(agent.folders()), MAX_SESSIONS + 1);
        let listed = task::spawn_blocking(move || lister.engine.list_sessions(&query)).await;
        let listed = listed.map_err(|_| error::internal("the list of sessions could not be made"))?;
        let listed = listed.map_err(|bad| error::internal(&bad.to_string()))?.sessions;
        let others = listed.into_iter().filter(|session| Some(&session.id) != own.as_ref());
        others.take(MAX_SESSIONS).map(|session| (session.title, session.id.to_string())).collect()
    } else {
        Vec::new()
    };
    let open = agent.connection.documents.all().into_iter().filter_map(|document| document.path).collect();
    let servers = agent.engine.servers(&roots);
    let resources = servers.resources(None).into_iter().filter(|resource| !resource.uri.contains(['{', ' ']));
    let resources =
        resources.map(|resource| (format!("{}:{}", resource.server, resource.uri), resource.name)).collect();
    let prompts = servers.prompts().into_iter().map(|prompt| (prompt.command, prompt.description)).collect();
    let catalog = Arc::clone(&agent.engine.extensions(&roots).now().await.catalog);
    let can_diagnose = session.is_some_and(Session::can_diagnose);
    let shows_ignored = session.is_some_and(|session| session.gate().shows_ignored_files());
    let disabled_ignore_files =
        session.map(|session| session.gate().disabled_ignore_files()).unwrap_or_default();
    let known = CompletionSources {
        roots,
        open,
        sessions,
        resources,
        catalog,
        prompts,
        can_diagnose,
        shows_ignored,
        disabled_ignore_files,
    };
    Ok(agent.completer.complete(word, &known).await)
}
