//! `agent/session/ask`.
//!
//! Rule: the request waits for the model, as long as the client does not cancel it; nothing else waits for it.

use std::sync::Arc;

use kode_engine::record::event::Event;
use kode_protocol as wire;

use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;

/// Answers a side question.
pub(crate) async fn ask(backend: &Backend, params: Params) -> Result<wire::AskSessionResult, RequestError> {
    let params: wire::AskSessionParams = params.read()?;
    let session = backend.session_for_prompt(&params.session_id).await?;
    let (events, ask) = (Arc::clone(session.events()), params.ask_id);
    let written = move |text: String| {
        if let Some(ask) = &ask {
            events.publish(Event::SideAnswer { ask: ask.as_str().to_owned(), text });
        }
    };
    let answer = session.side_questions().ask(&params.question, written).await.map_err(error::side)?;
    Ok(wire::AskSessionResult {
        answer: answer.text,
        is_whole: answer.is_whole,
        model: answer.model,
        usage: convert::usage(answer.usage),
        cost: answer.cost,
    })
}
