//! `window/workDoneProgress/cancel`: the cancel button of an editor that shows our progress.

use lsp_types::{NumberOrString, WorkDoneProgressCancelParams};

use crate::backend::Backend;

/// Cancels the turn whose progress it is. The token is the turn's id; any other belongs to another request.
pub(crate) async fn cancel(backend: &Backend, params: WorkDoneProgressCancelParams) {
    let NumberOrString::String(token) = params.token else { return };
    let Ok(agent) = backend.agent() else { return };
    for session in agent.engine.live_sessions() {
        session.turns().cancel_of(&token);
    }
}
