//! `agent/document/*` and `workspace/textDocumentContent`: the sides of a file under review.
//!
//! Rule: made from what sessions know of their changes, and never from the file; one that nothing is to be said about is the
//! client's to read.

use std::sync::Arc;

use kode_engine::agent::engine::Attached;
use kode_engine::agent::session::review::Side;
use kode_engine::base::ids::SessionId;
use kode_protocol as wire;
use serde::{Deserialize, Serialize};

use crate::backend::{Backend, Shared};
use crate::documents::SideUri;
use crate::handlers::edits::target;
use crate::handlers::error::{self, Failure};
use crate::handlers::params::Params;
use crate::lsp::newer::{TextDocumentContentRefresh, TextDocumentContentRefreshParams};

/// Which virtual document is wanted; as LSP 3.18 has it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TextDocumentContentParams {
    uri: String,
}

/// The text of a virtual document; as LSP 3.18 has it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextDocumentContentResult {
    text: String,
}

/// Gives a text without the hunks that are neither kept nor undone.
pub(crate) async fn baseline(backend: &Backend, params: Params) -> Result<wire::DocumentText, Failure> {
    let params: wire::DocumentTextParams = params.read()?;
    backend.agent()?;
    text(backend.shared(), params.session_id.as_ref(), &params.uri, Side::Baseline).await
}

/// Gives a text with the proposed hunks.
pub(crate) async fn proposed(backend: &Backend, params: Params) -> Result<wire::DocumentText, Failure> {
    let params: wire::DocumentTextParams = params.read()?;
    backend.agent()?;
    text(backend.shared(), params.session_id.as_ref(), &params.uri, Side::Proposed).await
}

/// Gives the text of a virtual document.
pub(crate) async fn content(backend: &Backend, params: Params) -> Result<TextDocumentContentResult, Failure> {
    let params: TextDocumentContentParams = params.read()?;
    // Asked for before anything is read, so that there is somebody to read it from.
    backend.agent()?;
    let text = virtual_text(backend.shared(), &params.uri).await?;
    backend.shared().served.given(&params.uri, &text);
    Ok(TextDocumentContentResult { text })
}

/// Asks the client to read those virtual documents again that are another text now.
pub(crate) async fn refresh(shared: &Arc<Shared>) {
    if !shared.facts.get().is_some_and(|facts| facts.text_document_content) {
        return;
    }
    for uri in shared.served.uris() {
        let text = virtual_text(shared, &uri).await.ok();
        if !shared.served.is_another(&uri, text.as_deref()) {
            continue;
        }
        let client = shared.client.clone();
        // The request is owned by a task of its own: the service cannot bear an answer nobody waits for.
        tokio::spawn(async move {
            let params = TextDocumentContentRefreshParams { uri };
            if let Err(error) = client.send_request::<TextDocumentContentRefresh>(params).await {
                tracing::debug!(%error, "the client did not read a document again");
            }
        });
    }
}

async fn virtual_text(shared: &Shared, uri: &str) -> Result<String, Failure> {
    let wrong = || error::invalid_params("uri", &format!("`{uri}` is no document of this server"));
    let SideUri { side, session, document } = SideUri::parse(uri).ok_or_else(wrong)?;
    let session = session.map(wire::SessionId::new);
    Ok(text(shared, session.as_ref(), &wire::Uri::new(document), side).await?.text)
}

async fn text(
    shared: &Shared,
    session: Option<&wire::SessionId>,
    uri: &wire::Uri,
    side: Side,
) -> Result<wire::DocumentText, Failure> {
    let target = target("uri", uri)?;
    let engine = shared.live_agent().map(|agent| &agent.engine);
    let sessions = match (session, engine) {
        (Some(id), Some(engine)) => {
            let id = SessionId::from_external(id.as_str());
            vec![engine.attached(&id).map_err(error::session)?]
        }
        (None, Some(engine)) => engine.all_attached(),
        (_, None) => Vec::new(),
    };
    for session in sessions {
        match session {
            Attached::Live(session) => {
                let Some(review) = session.review_of(&target) else { continue };
                // A side that is no file is an empty text: what is shown beside a file that was made or deleted.
                let text = session.side(&target, side).unwrap_or_default();
                return Ok(wire::DocumentText { text, version: review.version });
            }
            Attached::Following(following) => {
                let text = following.side(target.clone(), side).await.map_err(error::followed_changes)?;
                let Some(text) = text else { continue };
                return Ok(wire::DocumentText { text, version: None });
            }
        }
    }
    let document = shared.documents.snapshot_of(&target);
    let document = document.ok_or_else(|| error::unknown_document(uri.as_str()))?;
    Ok(wire::DocumentText { text: document.text.to_string(), version: Some(document.version) })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::TestClient;

    async fn client() -> TestClient {
        let (service, socket) = crate::server::service();
        let lifecycle = service.inner().shared().lifecycle.clone();
        let mut client = TestClient::connect((service, socket), lifecycle);
        client.initialize(json!({})).await;
        client
    }

    #[tokio::test]
    async fn sides_of_a_file_without_hunks_are_its_text_in_the_editor() {
        let mut client = client().await;
        let document =
            json!({ "uri": "untitled:Untitled-1", "languageId": "rust", "version": 3, "text": "ä\n" });
        client.notify("textDocument/didOpen", json!({ "textDocument": document })).await;
        for method in ["agent/document/baseline", "agent/document/proposed"] {
            let answer = client.request(1, method, json!({ "uri": "untitled:Untitled-1" })).await;
            assert_eq!(answer["result"], json!({ "text": "ä\n", "version": 3 }), "{method}");
        }
        let uri = "kode-baseline:///Untitled-1?;untitled:Untitled-1";
        let answer = client.request(1, "workspace/textDocumentContent", json!({ "uri": uri })).await;
        assert_eq!(answer["result"], json!({ "text": "ä\n" }));
    }

    #[tokio::test]
    async fn what_is_no_document_is_said_to_be_none() {
        let mut client = client().await;
        let failed = async |client: &mut TestClient, method: &str, params: Value| {
            let answer = client.request(1, method, params).await;
            let data = &answer["error"]["data"];
            (data["kind"].as_str().map(str::to_owned), data["path"].as_str().map(str::to_owned))
        };
        let kind = |kind: &str| (Some(kind.to_owned()), None);
        let at = |path: &str| (Some("invalidParams".to_owned()), Some(path.to_owned()));
        let content = "workspace/textDocumentContent";
        for (method, params, expected) in [
            ("agent/document/baseline", json!({ "uri": "file:///no/such" }), kind("unknownDocument")),
            ("agent/document/baseline", json!({ "uri": "no such" }), at("uri")),
            ("agent/document/proposed", json!({ "uri": 7 }), at("uri")),
            ("agent/document/proposed", json!({}), at("")),
            (
                "agent/document/proposed",
                json!({ "uri": "file:///a", "sessionId": "ses_0" }),
                kind("unknownSession"),
            ),
            (content, json!({ "uri": "file:///a" }), at("uri")),
            (content, json!({ "uri": "kode-proposed:///a?;file:///a" }), kind("unknownDocument")),
            (content, json!({ "uri": "kode-proposed:///a?ses_0;file:///a" }), kind("unknownSession")),
        ] {
            let shown = params.to_string();
            assert_eq!(failed(&mut client, method, params).await, expected, "{method} {shown}");
        }
    }
}
