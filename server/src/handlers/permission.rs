//! `agent/permission/*`.

use kode_engine::ids::{HunkId, PermissionId};
use kode_engine::permission::Answer;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert;
use crate::handlers::error::{self, Failure};
use crate::handlers::params::Params;

/// Answers a prompt.
pub(crate) async fn respond(backend: &Backend, params: Params) -> Result<(), Failure> {
    let params: wire::RespondPermissionParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let answer = Answer {
        allow: params.decision == wire::PermissionDecision::Allow,
        scope: convert::scope_from_wire(params.scope),
        feedback: params.feedback,
        updated_input: params.updated_input,
        rules: params.rules,
        hunks: params.hunks.map(|hunks| hunks.iter().map(|id| HunkId::from_external(id.as_str())).collect()),
        by: backend.client_name(),
    };
    let id = PermissionId::from_external(params.permission_id.as_str());
    session.respond(&id, answer).map_err(error::respond)
}

/// Lists the prompts that wait.
pub(crate) async fn list(backend: &Backend, params: Params) -> Result<wire::ListPermissionsResult, Failure> {
    let params: wire::ListPermissionsParams = params.read()?;
    let sessions = match params.session_id {
        Some(id) => vec![backend.session(&id)?],
        None => backend.agent()?.engine.live_sessions(),
    };
    let prompts = sessions.iter().flat_map(|session| {
        let id = session.id().clone();
        session.pending().into_iter().map(move |prompt| convert::prompt(&id, prompt))
    });
    Ok(wire::ListPermissionsResult { permissions: prompts.collect() })
}
