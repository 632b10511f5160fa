//! `agent/document/*` and `workspace/textDocumentContent`: the sides of a file under review.
//!
//! Rule: made from what sessions know of their changes, and never from the file; one that nothing is to be said about is the
//! client's to read.

use kode_engine::agent::edits::review::ReviewSide;
use kode_protocol as wire;
use lsp_types::MessageType;
use serde::{Deserialize, Serialize};

use crate::agent::sides;
use crate::backend::Backend;
use crate::convert::error::RequestError;
use crate::display::readable;
use crate::handlers::params::Params;
use crate::transport::frame::MAX_BODY;

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

/// A document that is too large to be followed.
#[derive(Debug, Deserialize)]
struct TooLargeDocument {
    uri: lsp_types::Url,
    bytes: u64,
}

/// Notes a document that is too large to be followed, and shows it to the user.
pub(crate) async fn too_large(backend: &Backend, params: Params) {
    let document: TooLargeDocument = match params.read() {
        Ok(document) => document,
        Err(error) => return tracing::warn!(?error, "a document that is too large has no legible URI"),
    };
    let connection = backend.connection();
    connection.documents.open_too_large(&document.uri, document.bytes);
    let name = document.uri.path_segments().and_then(Iterator::last).unwrap_or_default();
    let (megabytes, limit) = (document.bytes >> 20, MAX_BODY >> 20);
    let text = format!(
        "kode-ls does not follow `{name}`: its text is {megabytes} MB as the editor sends it, and the limit is {limit} MB. The agent \
         can neither read nor change this file while it is open here."
    );
    connection.client.show_message(MessageType::WARNING, readable(&text)).await;
}

/// Gives a text without the hunks that are neither kept nor undone.
pub(crate) async fn baseline(backend: &Backend, params: Params) -> Result<wire::DocumentText, RequestError> {
    let params: wire::DocumentTextParams = params.read()?;
    sides::text(backend.agent()?, params.session_id.as_ref(), &params.uri, ReviewSide::Baseline).await
}

/// Gives a text with the proposed hunks.
pub(crate) async fn proposed(backend: &Backend, params: Params) -> Result<wire::DocumentText, RequestError> {
    let params: wire::DocumentTextParams = params.read()?;
    sides::text(backend.agent()?, params.session_id.as_ref(), &params.uri, ReviewSide::Proposed).await
}

/// Gives the text of a virtual document.
pub(crate) async fn content(
    backend: &Backend,
    params: Params,
) -> Result<TextDocumentContentResult, RequestError> {
    let params: TextDocumentContentParams = params.read()?;
    let text = sides::virtual_text(backend.agent()?, &params.uri).await?;
    backend.connection().served.given(&params.uri, &text);
    Ok(TextDocumentContentResult { text })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::TestClient;

    async fn client() -> TestClient {
        let (service, socket) = crate::server::service();
        let lifecycle = service.inner().connection().lifecycle.clone();
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
