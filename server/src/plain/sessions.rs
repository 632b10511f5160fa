//! The commands for stored sessions: resume, title and search.
//!
//! Rule: the first choice of the picker changes nothing; the command answers before anything is picked. Where the client
//! cannot ask, the list is shown, and ids say which is meant.

use std::sync::Arc;

use kode_engine::agent::sessions::{
    ListSessions, SearchSessions, SessionPresence, SessionSummary, WorkspaceFilter,
};
use kode_engine::base::ids::SessionId;
use kode_engine::base::task;
use lsp_types::request::ShowMessageRequest;
use lsp_types::{MessageActionItem, MessageType, ShowMessageRequestParams};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::review::publish::report;
use crate::agent::Agent;
use crate::convert::error::{self, RequestError};
use crate::convert::{self, UriNames};
use crate::display::printable;

/// The command that continues with another conversation.
pub(super) const SESSIONS: &str = "kode.sessions";
/// The command that gives a conversation a title.
pub(super) const RENAME: &str = "kode.renameSession";
/// The command that puts a conversation away.
pub(super) const ARCHIVE: &str = "kode.archiveSession";
/// The command that deletes a conversation.
pub(super) const DELETE: &str = "kode.deleteSession";
/// The command that searches all conversations.
pub(super) const SEARCH: &str = "kode.searchSessions";

/// Maximum number of conversations to pick from, the newest; the others can be named.
const OFFERED: usize = 10;

/// Maximum number of listed ones where nothing can be picked.
const LISTED: usize = 30;

/// Maximum number of reported hits.
const FOUND: usize = 30;

/// The choice that changes nothing; first, because a stray key takes the first.
const CANCEL: &str = "Cancel";

/// The argument of `kode.sessions`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct ChooseSession {
    /// The conversation to continue with; picked when it is not said.
    session_id: Option<SessionId>,
}

/// The argument of `kode.renameSession`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RenameArgument {
    title: String,
    #[serde(default)]
    session_id: Option<SessionId>,
}

/// The argument of `kode.archiveSession`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ArchiveArgument {
    session_id: SessionId,
    #[serde(default = "yes")]
    archived: bool,
}

/// The argument of `kode.deleteSession`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeleteArgument {
    session_id: SessionId,
}

/// The argument of `kode.searchSessions`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SearchArgument {
    query: String,
}

fn yes() -> bool {
    true
}

/// Lets the named conversation continue with the next prompt: `{sessionId, title}`. Without an id the user picks, `{asked,
/// sessions}`; a client that cannot ask shows the list, `{text, sessions}`.
pub(super) async fn choose(agent: &Arc<Agent>, choose: ChooseSession) -> Result<Value, RequestError> {
    if let Some(id) = choose.session_id {
        let title = agent.continue_with(&id).await.map_err(error::session)?;
        return Ok(json!({ "sessionId": id, "title": title }));
    }
    let (lister, query) = (Arc::clone(agent), newest(agent, LISTED));
    let listed = task::spawn_blocking(move || lister.engine.list_sessions(&query)).await;
    let listed = listed.map_err(|_| error::internal("the list of sessions could not be made"))?;
    let sessions = listed.map_err(|bad| error::internal(&bad.to_string()))?.sessions;
    let names = UriNames::of(&agent.connection.documents);
    let wire: Vec<_> =
        sessions.iter().cloned().map(|session| convert::sessions::summary(session, names)).collect();
    let mut answer = json!({ "sessions": wire });
    if agent.connection.facts.get().is_some_and(|facts| facts.show_message_request) {
        let usable = |session: &&SessionSummary| {
            matches!(session.presence, SessionPresence::Live(_) | SessionPresence::Stored)
                && !session.title.is_empty()
        };
        let offered: Vec<_> = sessions.iter().filter(usable).take(OFFERED).map(offered).collect();
        answer["asked"] = json!(offered.len());
        pick(agent, offered);
    } else {
        let how = format!("Continue one by {SESSIONS} with {{\"sessionId\": \"ID\"}}.");
        let lines = sessions.iter().map(|session| format!("{}  {}", session.id, offered(session).1));
        let text = lines.chain([how]).collect::<Vec<_>>().join("\n");
        report(&agent.connection, &text);
        answer["text"] = json!(text);
    }
    Ok(answer)
}

/// Gives a conversation a title, the current one when none is named: `{sessionId, title}`.
pub(super) async fn rename(agent: &Agent, rename: RenameArgument) -> Result<Value, RequestError> {
    let id = match rename.session_id {
        Some(id) => id,
        None => agent.plain_session().map_err(error::session)?.id().clone(),
    };
    let renamed = agent.engine.rename_session(&WorkspaceFilter::All, &id, &rename.title).await;
    renamed.map_err(error::session)?;
    Ok(json!({ "sessionId": id, "title": rename.title }))
}

/// Archives a conversation, or restores it from the archive: `{sessionId, archived}`.
pub(super) async fn archive(agent: &Agent, archive: ArchiveArgument) -> Result<Value, RequestError> {
    let ArchiveArgument { session_id: id, archived } = archive;
    let done = agent.engine.archive_session(&WorkspaceFilter::All, &id, archived).await;
    done.map_err(error::session)?;
    Ok(json!({ "sessionId": id, "archived": archived }))
}

/// Deletes a conversation: `{sessionId}`.
pub(super) async fn delete(agent: &Agent, delete: DeleteArgument) -> Result<Value, RequestError> {
    agent.delete_session(&delete.session_id).await.map_err(error::session)?;
    Ok(json!({ "sessionId": delete.session_id }))
}

/// Searches the conversations of the workspace: `{text, hits, more}`.
pub(super) async fn search(agent: &Agent, search: SearchArgument) -> Result<Value, RequestError> {
    let catalogue = Arc::clone(agent.engine.catalogue());
    let (workspaces, text) = (WorkspaceFilter::These(agent.folders()), search.query);
    let query = SearchSessions { workspaces, text, limit: FOUND, cursor: None };
    let cancel = CancellationToken::new();
    let _cancelled_with_the_request = cancel.clone().drop_guard();
    let found = task::spawn_blocking(move || catalogue.search(&query, &cancel)).await;
    let found = found.map_err(|_| error::internal("the sessions could not be searched"))?;
    let page = found.map_err(|bad| error::query(&bad))?;
    let line = |hit: &kode_engine::agent::sessions::Hit| {
        format!("{}: {}", printable(&hit.title), printable(&hit.snippet))
    };
    let mut lines: Vec<_> = page.hits.iter().map(line).collect();
    if lines.is_empty() {
        lines.push("Nothing found.".to_owned());
    }
    let page = convert::sessions::search_page(page, agent.connection.documents.encoding());
    Ok(json!({ "text": lines.join("\n"), "hits": page.hits, "more": page.next_cursor.is_some() }))
}

fn newest(agent: &Agent, limit: usize) -> ListSessions {
    ListSessions::newest(WorkspaceFilter::These(agent.folders()), limit)
}

/// A conversation to pick, and its label. Titles can be the same; times hardly.
fn offered(session: &SessionSummary) -> (SessionId, String) {
    let time = session.updated.strftime("%Y-%m-%d %H:%M:%SZ");
    let title = if session.title.is_empty() { "(no prompt yet)" } else { &session.title };
    (session.id.clone(), printable(&format!("{title} ({time})")))
}

/// Asks which conversation is to continue; the answer is carried out by a task of its own.
fn pick(agent: &Arc<Agent>, offered: Vec<(SessionId, String)>) {
    let agent = Arc::clone(agent);
    task::spawn(async move {
        let titles = [CANCEL].into_iter().chain(offered.iter().map(|(_, title)| title.as_str()));
        let actions =
            titles.map(|title| MessageActionItem { title: title.to_owned(), properties: Default::default() });
        let request = ShowMessageRequestParams {
            typ: MessageType::INFO,
            message: "Kode: Which conversation should continue?".to_owned(),
            actions: Some(actions.collect()),
        };
        let chosen = match agent.connection.client.send_request::<ShowMessageRequest>(request).await {
            Ok(chosen) => chosen.map(|chosen| chosen.title),
            Err(error) => {
                tracing::warn!(%error, "the message request failed");
                None
            }
        };
        let Some((id, _)) = offered.into_iter().find(|(_, title)| Some(title) == chosen.as_ref()) else {
            return;
        };
        let text = match agent.continue_with(&id).await {
            Ok(title) => format!("Kode: the next prompt continues \"{}\".", printable(&title)),
            Err(error) => format!("Kode: {error}"),
        };
        report(&agent.connection, &text);
    });
}
