//! Parts of LSP that `lsp_types` lacks, carried through its types under `experimental`.
//!
//! Rule: only `initialize` is touched, and only to move a capability to where it can be read or belongs; on the wire
//! everything is where LSP has it.

use lsp_types::request::Request as LspRequest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_lsp::jsonrpc::{Request, Response};

/// Where `workspace.textDocumentContent` of client and server is in `experimental` on its way.
pub(crate) const TEXT_DOCUMENT_CONTENT: &str = "workspace.textDocumentContent";

/// Asks the client to read a virtual document again.
#[derive(Debug)]
pub(crate) enum TextDocumentContentRefresh {}

/// Which virtual document is to be read again.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextDocumentContentRefreshParams {
    /// The document.
    pub(crate) uri: String,
}

impl LspRequest for TextDocumentContentRefresh {
    type Params = TextDocumentContentRefreshParams;
    type Result = ();
    const METHOD: &'static str = "workspace/textDocumentContent/refresh";
}

/// Moves what the client offers to where the types keep it.
pub(crate) fn carry_in(request: Request) -> Request {
    if request.method() != "initialize" {
        return request;
    }
    let (method, id, params) = request.into_parts();
    let mut carried = Request::build(method);
    if let Some(mut params) = params {
        if let Some(capabilities) = params.get_mut("capabilities") {
            let offered = capabilities.pointer_mut("/workspace/textDocumentContent").map(Value::take);
            let experimental = capabilities.as_object_mut().map(|all| all.entry("experimental"));
            if let (Some(offered), Some(experimental)) = (offered, experimental) {
                put(experimental.or_insert(Value::Null), TEXT_DOCUMENT_CONTENT, offered);
            }
        }
        carried = carried.params(params);
    }
    match id {
        Some(id) => carried.id(id).finish(),
        None => carried.finish(),
    }
}

/// Moves what the server offers to where LSP has it. `response` answers `initialize`.
pub(crate) fn carry_out(response: Response) -> Response {
    let (id, mut result) = response.into_parts();
    if let Ok(result) = &mut result
        && let Some(capabilities) = result.get_mut("capabilities").and_then(Value::as_object_mut)
    {
        let experimental = capabilities.get_mut("experimental").and_then(Value::as_object_mut);
        if let Some(offered) = experimental.and_then(|all| all.shift_remove(TEXT_DOCUMENT_CONTENT)) {
            put(capabilities.entry("workspace").or_insert(Value::Null), "textDocumentContent", offered);
        }
    }
    Response::from_parts(id, result)
}

/// Puts a value into an object that may not be there yet; other values stay unchanged.
fn put(object: &mut Value, key: &str, value: Value) {
    if object.is_null() {
        *object = Value::Object(serde_json::Map::new());
    }
    if let Some(object) = object.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn carried_in(capabilities: Value) -> Value {
        let params = json!({ "capabilities": capabilities });
        let request = Request::build("initialize").params(params).id(1).finish();
        let (_, id, params) = carry_in(request).into_parts();
        assert_eq!(id, Some(1.into()));
        params.unwrap().pointer_mut("/capabilities/experimental").map(Value::take).unwrap_or_default()
    }

    #[test]
    fn what_a_client_offers_comes_in_beside_what_it_has_put_there_itself() {
        let offered = json!({ "textDocumentContent": { "dynamicRegistration": true } });
        let carried = json!({ "dynamicRegistration": true });
        assert_eq!(carried_in(json!({ "workspace": offered })), json!({ TEXT_DOCUMENT_CONTENT: carried }));
        assert_eq!(
            carried_in(json!({ "workspace": offered, "experimental": { "kode": 1 } })),
            json!({ "kode": 1, TEXT_DOCUMENT_CONTENT: carried })
        );
        assert_eq!(
            carried_in(json!({ "workspace": {}, "experimental": { "kode": 1 } })),
            json!({ "kode": 1 })
        );
        for odd in [json!({ "workspace": offered, "experimental": 7 }), json!([]), json!(null)] {
            carried_in(odd);
        }
    }

    #[test]
    fn what_the_server_offers_goes_out_where_lsp_has_it() {
        let offered = json!({ "schemes": ["x"] });
        let experimental = json!({ "kode": 1, TEXT_DOCUMENT_CONTENT: offered });
        let result = json!({ "capabilities": { "workspace": { "a": 1 }, "experimental": experimental } });
        let (id, result) = carry_out(Response::from_ok(1.into(), result)).into_parts();
        assert_eq!(id, 1.into());
        assert_eq!(
            result.unwrap()["capabilities"],
            json!({ "workspace": { "a": 1, "textDocumentContent": offered }, "experimental": { "kode": 1 } })
        );
    }
}
