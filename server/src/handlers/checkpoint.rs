//! `agent/checkpoint/*`.

use kode_engine::base::ids::CheckpointId;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert::error::{self, RequestError};
use crate::convert::{self, UriNames};
use crate::handlers::params::Params;

/// Lists the checkpoints of a session.
pub(crate) async fn list(
    backend: &Backend,
    params: Params,
) -> Result<wire::ListCheckpointsResult, RequestError> {
    let params: wire::ListCheckpointsParams = params.read()?;
    let checkpoints = backend.session(&params.session_id)?.edits().checkpoints();
    let names = UriNames::of(&backend.connection().documents);
    let checkpoints = checkpoints.into_iter().map(|view| convert::review::checkpoint(view, names));
    Ok(wire::ListCheckpointsResult { checkpoints: checkpoints.collect() })
}

/// Begins to restore a checkpoint, or tells what that would do.
pub(crate) async fn restore(
    backend: &Backend,
    params: Params,
) -> Result<wire::RestoreCheckpointResult, RequestError> {
    let params: wire::RestoreCheckpointParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let checkpoint = CheckpointId::from_external(params.checkpoint_id.as_str());
    let what = convert::review::restore_what_from_wire(params.what);
    let user_edits = convert::review::user_edits_from_wire(params.user_edits);
    if params.dry_run {
        let preview =
            session.edits().preview_restore(&checkpoint, what, user_edits).await.map_err(error::resolve)?;
        let preview =
            convert::review::preview(preview, UriNames::of(&backend.connection().documents), |target| {
                session.display(target)
            });
        return Ok(wire::RestoreCheckpointResult::Preview(preview));
    }
    let begun = session.edits().restore(&checkpoint, what, user_edits).map_err(error::resolve)?;
    let started = wire::StartedRestore { resolution_id: convert::resolution_id(&begun) };
    Ok(wire::RestoreCheckpointResult::Started(started))
}
