//! `agent/mcp/*`.

use std::sync::Arc;

use kode_engine::tool::servers::McpServers;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;

/// The servers of a session, or of the workspace.
fn servers(
    backend: &Backend,
    session: Option<&wire::SessionId>,
) -> Result<Arc<dyn McpServers>, RequestError> {
    match session {
        Some(id) => Ok(Arc::clone(backend.session(id)?.servers())),
        None => {
            let agent = backend.agent()?;
            Ok(agent.engine.servers(&agent.folders()))
        }
    }
}

/// Lists the servers.
pub(crate) async fn list(backend: &Backend, params: Params) -> Result<wire::ListMcpResult, RequestError> {
    let params: wire::ListMcpParams = params.read()?;
    let servers = servers(backend, params.session_id.as_ref())?;
    servers.refresh().await;
    let listed = convert::mcp::servers(servers.list());
    Ok(wire::ListMcpResult { servers: listed, left_out: servers.left_out() })
}

/// Lists the tools of connected servers.
pub(crate) async fn tools(
    backend: &Backend,
    params: Params,
) -> Result<wire::ListMcpToolsResult, RequestError> {
    let params: wire::ListMcpToolsParams = params.read()?;
    let servers = servers(backend, params.session_id.as_ref())?;
    let tools = servers.tool_list(params.server.as_deref());
    Ok(wire::ListMcpToolsResult { tools: tools.into_iter().map(convert::mcp::tool).collect() })
}

/// Begins to connect to a server again.
pub(crate) async fn reconnect(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::McpServerParams = params.read()?;
    let servers = servers(backend, params.session_id.as_ref())?;
    servers.reconnect(&params.server).await.map_err(error::mcp)
}

/// Begins to sign in to a server.
pub(crate) async fn authenticate(
    backend: &Backend,
    params: Params,
) -> Result<wire::AuthenticateMcpResult, RequestError> {
    let params: wire::McpServerParams = params.read()?;
    let servers = servers(backend, params.session_id.as_ref())?;
    let page = servers.authenticate(&params.server).await.map_err(error::mcp)?;
    Ok(wire::AuthenticateMcpResult { url: page.url.to_string() })
}

/// Switches a server on.
pub(crate) async fn enable(backend: &Backend, params: Params) -> Result<(), RequestError> {
    switch(backend, params, true).await
}

/// Switches a server off.
pub(crate) async fn disable(backend: &Backend, params: Params) -> Result<(), RequestError> {
    switch(backend, params, false).await
}

async fn switch(backend: &Backend, params: Params, enabled: bool) -> Result<(), RequestError> {
    let params: wire::McpServerParams = params.read()?;
    let servers = servers(backend, params.session_id.as_ref())?;
    servers.enable(&params.server, enabled).await.map_err(error::mcp)
}
