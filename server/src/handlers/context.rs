//! `agent/context/get`, `agent/context/window` and `agent/session/compact`.
//!
//! Rule: a page is bounded in messages and in bytes, whatever the client asks for.

use kode_engine::base::ids::{AgentId, WindowId};
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;
use crate::handlers::source::SessionSource;
use crate::handlers::turn::reported;

/// Says how full the context window of a session is.
pub(crate) async fn get<S: SessionSource>(source: &S, params: Params) -> Result<wire::ContextUse, S::Error> {
    let params: wire::GetContextParams = params.read()?;
    let session = source.session(&params.session_id)?;
    let context = session.context_use().map_err(|missing| error::model(&missing))?;
    Ok(convert::context::context_use(&context))
}

/// The most messages of a page.
const MOST_MESSAGES: usize = 200;

/// A page ends before the message with which it would have more bytes of JSON than this; its first one is always there.
const MOST_BYTES: usize = 1 << 20;

/// Gives a page of the messages of a conversation as they were before it was compacted.
pub(crate) async fn window(backend: &Backend, params: Params) -> Result<wire::WindowPage, RequestError> {
    let params: wire::GetWindowParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    if params.limit == 0 {
        return Err(error::invalid_params("limit", "a page has at least 1 message"));
    }
    let agent = params.agent_id.as_ref().map(|id| AgentId::from_external(id.as_str()));
    let id = WindowId::from_external(&params.window_id);
    let from = usize::try_from(params.from).unwrap_or(usize::MAX);
    let limit = usize::try_from(params.limit).unwrap_or(MOST_MESSAGES).min(MOST_MESSAGES);
    let page = session.history().window_page(agent, id, from, limit).await.map_err(error::paging)?;
    Ok(convert::context::window_page(&page, params.from, MOST_BYTES))
}

/// Begins to compact the conversation, or has it done after the prompts that wait.
pub(crate) async fn compact(
    backend: &Backend,
    params: Params,
) -> Result<wire::StartTurnResult, RequestError> {
    let params: wire::CompactSessionParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    Ok(reported(session.prompts().compact(params.focus.as_deref()).map_err(error::submit)?))
}
