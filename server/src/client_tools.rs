//! The calls of tools that the client has registered.
//!
//! Rule: a call that is given up is reported to the client once, so that it can stop; its later answer is dropped.

use std::sync::Arc;

use futures::future::BoxFuture;
use kode_engine::base::task;
use kode_engine::mcp::client_tools::{ClientToolCall, ClientTools, ToolClient};
use kode_protocol as wire;
use serde_json::Value;
use tokio::sync::oneshot;
use tower_lsp::Client;

use crate::convert::call_id;

/// Carries out calls by requests to a client.
struct RequestingClient(Client);

/// The tools of a client, of which none is registered yet.
pub(crate) fn tools_of(client: &Client) -> Arc<ClientTools> {
    Arc::new(ClientTools::new(Arc::new(RequestingClient(client.clone()))))
}

impl ToolClient for RequestingClient {
    fn call(&self, call: ClientToolCall) -> BoxFuture<'static, Result<Value, String>> {
        let client = self.0.clone();
        Box::pin(async move {
            let id = call_id(&call.call);
            let params = wire::CallToolParams {
                call_id: id.clone(),
                provider: call.provider,
                name: call.tool,
                arguments: call.arguments,
            };
            let (sender, answer) = oneshot::channel();
            let asked = client.clone();
            // The request is owned by a task of its own: the service cannot bear an answer no caller waits for.
            task::spawn(async move {
                let _ = sender.send(asked.send_request::<wire::CallTool>(params).await);
            });
            let mut cancelling = CancelGuard { client, id: Some(id) };
            let answer = answer.await;
            cancelling.id = None;
            match answer {
                Ok(Ok(result)) => serde_json::to_value(result).map_err(|error| error.to_string()),
                Ok(Err(error)) => Err(error.message.trim_end_matches('.').to_owned()),
                Err(_) => Err("the connection to the editor ended".to_owned()),
            }
        })
    }
}

/// Reports a call that is given up.
struct CancelGuard {
    client: Client,
    /// The call, until it is answered.
    id: Option<wire::CallId>,
}

impl Drop for CancelGuard {
    fn drop(&mut self) {
        let Some(call_id) = self.id.take() else { return };
        let client = self.client.clone();
        task::spawn(async move {
            client.send_notification::<wire::ToolCancelled>(wire::ToolCancelledParams { call_id }).await;
        });
    }
}
