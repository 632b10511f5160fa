//! `agent/queue/update`.

use kode_engine::base::ids::QueueId;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;

/// Changes what waits.
pub(crate) async fn update(
    backend: &Backend,
    params: Params,
) -> Result<wire::UpdateQueueResult, RequestError> {
    let params: wire::UpdateQueueParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let id = |id: &wire::QueueId| QueueId::from_external(id.as_str());
    let changed = match params.op {
        wire::QueueOp::Edit(edit) => {
            let parts = edit.parts.map(|parts| convert::input::prompt(parts, None)).transpose();
            let parts = parts.map_err(|bad| error::invalid_params(&bad.path, &bad.message))?;
            session.prompts().edit_queued(
                &id(&edit.queue_id),
                &edit.text,
                parts.map(|prompt| prompt.parts().to_vec()),
            )
        }
        wire::QueueOp::Remove(remove) => session.prompts().remove_queued(&id(&remove.queue_id)),
        wire::QueueOp::Move(moved) => {
            session.prompts().move_queued(&id(&moved.queue_id), moved.before.as_ref().map(id).as_ref())
        }
        wire::QueueOp::Promote(promote) => {
            let submitted = session.prompts().promote_queued(&id(&promote.queue_id)).map_err(error::queue)?;
            return Ok(wire::UpdateQueueResult {
                turn_id: convert::turn_of(&submitted).map(convert::turn_id),
            });
        }
    };
    changed.map_err(error::queue)?;
    Ok(wire::UpdateQueueResult { turn_id: None })
}
