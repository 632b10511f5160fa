//! `agent/client/focus`.

use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert::error::RequestError;
use crate::handlers::params::Params;

/// Notes whether the editor is in front. Starts no agent: there is nothing to be alerted of without one.
pub(crate) async fn report(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::ReportFocusParams = params.read()?;
    backend.connection().focus.set(params.focused);
    Ok(())
}
