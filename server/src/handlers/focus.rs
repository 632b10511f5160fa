//! `agent/client/focus` and `agent/client/leave`.

use kode_protocol as wire;

use crate::agent::Agent;
use crate::backend::Backend;
use crate::convert::error::RequestError;
use crate::handlers::params::Params;

/// Notes whether the editor is in front. Starts no agent: there is nothing to be alerted of without one.
pub(crate) async fn report(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::ReportFocusParams = params.read()?;
    backend.connection().focus.set(params.focused);
    Ok(())
}

/// Notes that the client goes and may come back; where a turn runs, the server outlives the connection.
pub(crate) async fn leave(backend: &Backend, params: Params) -> Result<wire::LeaveResult, RequestError> {
    let _: wire::LeaveParams = params.read()?;
    let outlives = backend.started_agent().is_some_and(Agent::outlive);
    Ok(wire::LeaveResult { outlives })
}
