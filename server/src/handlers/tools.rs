//! `agent/tools/register`.

use kode_engine::mcp::client_tools::ClientToolSpec;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;

/// Registers the tools of a provider in the client. Starts no agent: the tools wait for the first session.
pub(crate) async fn register(
    backend: &Backend,
    params: Params,
) -> Result<wire::RegisterToolsResult, RequestError> {
    let params: wire::RegisterToolsParams = params.read()?;
    let specs = params.tools.into_iter().map(|tool| ClientToolSpec {
        name: tool.name,
        description: tool.description,
        schema: tool.input_schema.into(),
    });
    let names = backend
        .connection()
        .tools
        .register(&params.provider, specs.collect())
        .map_err(|fault| error::invalid_params("tools", &fault.to_string()))?;
    Ok(wire::RegisterToolsResult { names: names.into_iter().map(str::to_owned).collect() })
}
