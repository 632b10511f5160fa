//! Answers of models from recorded bytes.
//!
//! Rule: a recording goes through the very code that what a server sends goes through, and nothing is asked for.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::exchange::framing::Framing;
use crate::{anthropic, chat, exchange, gemini, ollama, responses};
use kode_model::{DeltaSink, ModelError, ModelResponse, Wire};

/// The answer in a recorded stream, server-sent events or lines as the wire format has them, whose bytes came in these
/// pieces and then ended.
///
/// # Errors
/// The turn's view of such a stream, with the received part of the answer.
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
        Wire::Gemini => exchange::replay(gemini::GeminiAnswer::to(&[]), pieces, on_delta),
        Wire::Ollama => {
            exchange::replay_framed(Framing::lines(), ollama::OllamaAnswer::to(&[]), pieces, on_delta)
        }
    }
}
