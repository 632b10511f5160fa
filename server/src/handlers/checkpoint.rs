//! `agent/checkpoint/*`.

use kode_engine::base::ids::CheckpointId;
use kode_protocol as wire;

use crate::convert::{self, error};
use crate::handlers::params::Params;
use crate::handlers::source::SessionSource;

/// Lists the checkpoints of a session.
pub(crate) async fn list<S: SessionSource>(
    source: &S,
    params: Params,
) -> Result<wire::ListCheckpointsResult, S::Error> {
    let params: wire::ListCheckpointsParams = params.read()?;
    let checkpoints = source.session(&params.session_id)?.edits().checkpoints();
    let names = source.names();
    let checkpoints = checkpoints.into_iter().map(|view| convert::review::checkpoint(view, names));
    Ok(wire::ListCheckpointsResult { checkpoints: checkpoints.collect() })
}

/// Begins to restore a checkpoint, or tells what that would do.
pub(crate) async fn restore<S: SessionSource>(
    source: &S,
    params: Params,
) -> Result<wire::RestoreCheckpointResult, S::Error> {
    let params: wire::RestoreCheckpointParams = params.read()?;
    let session = source.session(&params.session_id)?;
    let checkpoint = CheckpointId::from_external(params.checkpoint_id.as_str());
    let what = convert::review::restore_what_from_wire(params.what);
    let user_edits = convert::review::user_edits_from_wire(params.user_edits);
    if params.dry_run {
        let preview =
            session.edits().preview_restore(&checkpoint, what, user_edits).await.map_err(error::resolve)?;
        let preview = convert::review::preview(preview, source.names(), |target| session.display(target));
        return Ok(wire::RestoreCheckpointResult::Preview(preview));
    }
    let begun = session.edits().restore(&checkpoint, what, user_edits).map_err(error::resolve)?;
    let started = wire::StartedRestore { resolution_id: convert::resolution_id(&begun) };
    Ok(wire::RestoreCheckpointResult::Started(started))
}
