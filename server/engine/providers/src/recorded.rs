//! Answers of models from recorded bytes.
//!
//! Rule: a recording goes through the very code that what a server sends goes through, and nothing is asked for.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::{anthropic, chat, exchange, responses};
use kode_model::{DeltaSink, ModelError, ModelResponse, Wire};

/// What a recorded stream of server-sent events means, whose bytes came in these pieces and then ended.
///
/// # Errors
/// What the turn would have been told of such a stream, with what had arrived of the answer.
pub fn replay<'a>(
    wire: Wire,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    on_delta: &mut DeltaSink<'_>,
) -> Result<ModelResponse, ModelError> {
    match wire {
        Wire::AnthropicMessages => exchange::replay(anthropic::MessagesAnswer::to(&[]), pieces, on_delta),
        Wire::ChatCompletions => exchange::replay(chat::ChatAnswer::to(&[]), pieces, on_delta),
        Wire::Responses => {
            let answer = responses::ResponsesAnswer::to(&[], Arc::new(AtomicBool::new(true)));
            exchange::replay(answer, pieces, on_delta)
        }
    }
}
