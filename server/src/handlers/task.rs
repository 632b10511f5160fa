//! `agent/tasks/*` and `agent/output/read`.

use kode_engine::agent::session::tasks::OutputOwner;
use kode_engine::base::ids::{CallId, TaskId};
use kode_engine::process::shell::MAX_PAGE_BYTES;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;

/// Lists the background commands of a session.
pub(crate) async fn list(backend: &Backend, params: Params) -> Result<wire::ListTasksResult, RequestError> {
    let params: wire::ListTasksParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let tasks = session.tasks().list().into_iter().map(convert::task).collect();
    Ok(wire::ListTasksResult { tasks })
}

/// Begins to end a background command.
pub(crate) async fn stop(backend: &Backend, params: Params) -> Result<wire::CancelResult, RequestError> {
    let params: wire::StopTaskParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let id = TaskId::from_external(params.task_id.as_str());
    let cancelled = session.tasks().stop(&id).map_err(error::output)?;
    Ok(wire::CancelResult { cancelled })
}

/// Moves the command that a call runs to the background.
pub(crate) async fn move_to_background(
    backend: &Backend,
    params: Params,
) -> Result<wire::MoveToBackgroundResult, RequestError> {
    let params: wire::MoveToBackgroundParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let call = CallId::from_external(params.call_id.as_str());
    let task = session.tasks().move_to_background(&call).map_err(|error| error::move_call(&error))?;
    Ok(wire::MoveToBackgroundResult { task_id: wire::TaskId::new(task.as_str()) })
}

/// Sends a message of the user to a sub-agent in the background.
pub(crate) async fn send(backend: &Backend, params: Params) -> Result<wire::SendToTeamResult, RequestError> {
    let params: wire::SendToTeamParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let to = session.tasks().send(&params.to, &params.text).map_err(|error| error::team(&error))?;
    Ok(wire::SendToTeamResult { to })
}

/// Gives a page of an output.
pub(crate) async fn read(backend: &Backend, params: Params) -> Result<wire::ReadOutputResult, RequestError> {
    let params: wire::ReadOutputParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let of = match (params.call_id, params.task_id) {
        (Some(call), None) => OutputOwner::Call(CallId::from_external(call.as_str())),
        (None, Some(task)) => OutputOwner::Task(TaskId::from_external(task.as_str())),
        (Some(_), Some(_)) => {
            return Err(error::invalid_params("taskId", "`callId` and `taskId` cannot both be given"));
        }
        (None, None) => return Err(error::invalid_params("", "one of `callId` and `taskId` must be given")),
    };
    let limit = params.limit.map_or(MAX_PAGE_BYTES, |limit| usize::try_from(limit).unwrap_or(MAX_PAGE_BYTES));
    if limit == 0 {
        return Err(error::invalid_params("limit", "`limit` must be at least 1"));
    }
    let output =
        session.tasks().read_output(of, params.offset.unwrap_or(0), limit).await.map_err(error::output)?;
    Ok(wire::ReadOutputResult {
        text: output.page.text,
        offset: output.page.offset,
        next_offset: output.page.next,
        total_bytes: output.page.total,
        complete: output.is_complete,
    })
}
