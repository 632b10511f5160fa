//! `agent/session/list`, `rename`, `archive`, `delete` and `search`: all sessions there are, live or not.
//!
//! Rule: what reads the disk does so on a thread that may wait; a client that cancels a search ends it.

use std::sync::Arc;

use kode_engine::agent::sessions::{ListSessions, SearchSessions, WorkspaceFilter};
use kode_engine::base::ids::SessionId;
use kode_engine::base::paths::AbsPath;
use kode_engine::base::task;
use kode_protocol as wire;
use tokio_util::sync::CancellationToken;

use crate::agent::{self, Agent};
use crate::backend::Backend;
use crate::convert::error::{self, RequestError};
use crate::convert::{self, UriNames};
use crate::documents::file_path;
use crate::handlers::params::Params;
use crate::handlers::session::limit;
use crate::handlers::source::SessionSource;

/// Sessions of a page, unless the client wants another number.
const DEFAULT_PAGE: usize = 50;
/// The most sessions of a page.
const MOST_PAGE: usize = 1_000;
/// Hits of a page, unless the client wants another number.
const DEFAULT_HITS: usize = 50;

/// Lists the sessions of the workspace.
pub(crate) async fn list(
    backend: &Backend,
    params: Params,
) -> Result<wire::ListSessionsResult, RequestError> {
    let params: wire::ListSessionsParams = params.read()?;
    let agent = backend.agent()?;
    agent::watch_list(agent);
    let query = ListSessions {
        workspaces: workspaces(agent, params.folder.as_ref())?,
        archived: convert::sessions::archived_from_wire(params.archived),
        limit: limit(params.limit, DEFAULT_PAGE, MOST_PAGE),
        cursor: params.cursor,
        totals: params.totals,
        thorough: false,
    };
    let lister = Arc::clone(agent);
    let listed = task::spawn_blocking(move || {
        let listed = lister.engine.list_sessions(&query);
        if listed.as_ref().is_ok_and(|page| page.has_gaps) {
            // The next list then says all of it.
            let catalogue = Arc::clone(lister.engine.catalogue());
            task::spawn_blocking(move || catalogue.close_gaps(&query.workspaces));
        }
        listed
    });
    let listed = listed.await.map_err(|_| error::internal("the list of sessions could not be made"))?;
    let page = listed.map_err(|bad| error::invalid_params("cursor", &bad.to_string()))?;
    Ok(convert::sessions::page(page, UriNames::of(&backend.connection().documents)))
}

/// Gives a session a title.
pub(crate) async fn rename<S: SessionSource>(source: &S, params: Params) -> Result<(), S::Error> {
    let params: wire::RenameSessionParams = params.read()?;
    let id = SessionId::from_external(params.session_id.as_str());
    let engine = source.engine()?;
    engine.rename_session(&WorkspaceFilter::All, &id, &params.title).await.map_err(S::refusal)
}

/// Puts a session away, or takes it out again.
pub(crate) async fn archive(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::ArchiveSessionParams = params.read()?;
    let id = SessionId::from_external(params.session_id.as_str());
    let engine = &backend.agent()?.engine;
    engine.archive_session(&WorkspaceFilter::All, &id, params.archived).await.map_err(error::session)
}

/// Deletes a session.
pub(crate) async fn delete(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::DeleteSessionParams = params.read()?;
    let id = SessionId::from_external(params.session_id.as_str());
    backend.agent()?.delete_session(&id).await.map_err(error::session)
}

/// Searches the sessions of the workspace.
pub(crate) async fn search(
    backend: &Backend,
    params: Params,
) -> Result<wire::SearchSessionsResult, RequestError> {
    let params: wire::SearchSessionsParams = params.read()?;
    let agent = backend.agent()?;
    let query = SearchSessions {
        workspaces: workspaces(agent, params.folder.as_ref())?,
        text: params.query,
        limit: limit(params.limit, DEFAULT_HITS, kode_engine::agent::sessions::MAX_HITS),
        cursor: params.cursor,
    };
    let catalogue = Arc::clone(agent.engine.catalogue());
    let cancel = CancellationToken::new();
    // A request that is cancelled is dropped here.
    let _cancelled_with_the_request = cancel.clone().drop_guard();
    let found = task::spawn_blocking(move || catalogue.search(&query, &cancel)).await;
    let found = found.map_err(|_| error::internal("the sessions could not be searched"))?;
    let page = found.map_err(|bad| error::query(&bad))?;
    Ok(convert::sessions::search_page(page, backend.connection().documents.encoding()))
}

/// The workspaces whose sessions are meant: that of a folder, or those of the client.
fn workspaces(agent: &Agent, folder: Option<&wire::Uri>) -> Result<WorkspaceFilter, RequestError> {
    let Some(uri) = folder else { return Ok(WorkspaceFilter::These(agent.folders())) };
    let path: Option<AbsPath> = lsp_types::Url::parse(uri.as_str()).ok().as_ref().and_then(file_path);
    let wrong = || error::invalid_params("folder", &format!("{uri} is not a folder on this machine"));
    Ok(WorkspaceFilter::These(vec![path.ok_or_else(wrong)?]))
}
