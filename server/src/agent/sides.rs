//! The sides of a file under review, as texts and as the virtual documents that show them.
//!
//! Rule: made from what sessions have recorded of their changes, never from the file on disk.

use kode_engine::agent::edits::review::ReviewSide;
use kode_engine::agent::engine::AttachedSession;
use kode_engine::base::ids::SessionId;
use kode_engine::base::task;
use kode_protocol as wire;

use super::Agent;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::documents::SideUri;
use crate::lsp::newer::{TextDocumentContentRefresh, TextDocumentContentRefreshParams};

/// Asks the client to read the virtual documents again whose text has changed.
pub(crate) async fn refresh(agent: &Agent) {
    let connection = &agent.connection;
    if !connection.facts.get().is_some_and(|facts| facts.text_document_content) {
        return;
    }
    for uri in connection.served.uris() {
        let text = virtual_text(agent, &uri).await.ok();
        if !connection.served.is_another(&uri, text.as_deref()) {
            continue;
        }
        let client = connection.client.clone();
        // The request is owned by a task of its own: the service cannot bear an answer no caller waits for.
        task::spawn(async move {
            let params = TextDocumentContentRefreshParams { uri };
            if let Err(error) = client.send_request::<TextDocumentContentRefresh>(params).await {
                tracing::debug!(%error, "the client did not read a document again");
            }
        });
    }
}

/// The text of a virtual document.
///
/// # Errors
/// As [`text`], and `invalidParams` for a URI that is not virtual.
pub(crate) async fn virtual_text(agent: &Agent, uri: &str) -> Result<String, RequestError> {
    let wrong = || error::invalid_params("uri", &format!("`{uri}` is not a document of this server"));
    let SideUri { side, session, document } = SideUri::parse(uri).ok_or_else(wrong)?;
    let session = session.map(wire::SessionId::new);
    Ok(text(agent, session.as_ref(), &wire::Uri::new(document), side).await?.text)
}

/// One side of a file under review, or the text of an open document without hunks.
///
/// # Errors
/// `unknownSession`, `unknownDocument`, or `storageFailure` when the journal of a followed session cannot be read.
pub(crate) async fn text(
    agent: &Agent,
    session: Option<&wire::SessionId>,
    uri: &wire::Uri,
    side: ReviewSide,
) -> Result<wire::DocumentText, RequestError> {
    let target = convert::target_from_wire("uri", uri)?;
    let sessions = match session {
        Some(id) => {
            let id = SessionId::from_external(id.as_str());
            vec![agent.engine.attached(&id).map_err(error::session)?]
        }
        None => agent.engine.all_attached(),
    };
    for session in sessions {
        match session {
            AttachedSession::Live(session) => {
                let Some(review) = session.edits().review_of(&target) else { continue };
                // A side that is no file is an empty text: the other side of a file that was made or deleted.
                let text = session.edits().side(&target, side).unwrap_or_default();
                return Ok(wire::DocumentText { text, version: review.version });
            }
            AttachedSession::Following(following) => {
                let text = following.side(target.clone(), side).await.map_err(error::followed_changes)?;
                let Some(text) = text else { continue };
                return Ok(wire::DocumentText { text, version: None });
            }
        }
    }
    let document = agent.connection.documents.snapshot_of(&target);
    let document = document.ok_or_else(|| error::unknown_document(uri.as_str()))?;
    Ok(wire::DocumentText { text: document.text.to_string(), version: Some(document.version) })
}
