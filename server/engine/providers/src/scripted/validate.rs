//! The refusals of the real APIs.
//!
//! Rule: at least as strict as the API, so that a test that passes here sends histories the API accepts.

pub(super) mod chat;
pub(super) mod gemini;
pub(super) mod messages;
pub(super) mod ollama;
pub(super) mod responses;

use serde_json::{Map, Value};

use super::playback::tokens;
use super::refusal::Refusal;
use super::script::Quirks;
use kode_model::Wire;

/// The types of pictures that all APIs take.
/// The type of documents that APIs read beside pictures.
const DOCUMENT_TYPE: &str = "application/pdf";

const IMAGE_TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const NO_TOOLS: &str = "This model does not support tools.";

/// Checks what a server refuses that does less than the API it imitates.
///
/// # Errors
/// In the API's manner.
pub(super) fn quirks(wire: Wire, body: &Value, quirks: &Quirks) -> Result<(), Refusal> {
    if let Some(name) = quirks.refused_fields.iter().find(|name| !body[name.as_str()].is_null()) {
        let instead = if name == "max_tokens" { " Use 'max_completion_tokens' instead." } else { "" };
        let message = match wire {
            Wire::AnthropicMessages => format!("{name}: Extra inputs are not permitted"),
            Wire::ChatCompletions | Wire::Responses | Wire::Gemini | Wire::Ollama => {
                format!("Unsupported parameter: '{name}' is not supported with this model.{instead}")
            }
        };
        return Err(unsupported(name, &message));
    }
    if quirks.no_streaming && body["stream"] == true {
        return Err(unsupported("stream", "Streaming is not supported with this model."));
    }
    if quirks.no_tools && body["tools"].as_array().is_some_and(|tools| !tools.is_empty()) {
        return Err(unsupported("tools", NO_TOOLS));
    }
    Ok(())
}

/// Refuses a request of this many bytes that is longer than the window, where the server refuses such.
///
/// # Errors
/// In the words of llama.cpp's server.
pub(super) fn window(bytes: usize, quirks: &Quirks) -> Result<(), Refusal> {
    let tokens = tokens(bytes);
    match quirks.refuses_above {
        Some(window) if tokens > window => Err(Refusal::invalid(format!(
            "request ({tokens} tokens) exceeds the available context size ({window} tokens), try increasing it"
        ))
        .code("exceed_context_size_error")),
        Some(_) | None => Ok(()),
    }
}

/// A part of the request that this server or model does not do.
fn unsupported(param: &str, message: &str) -> Refusal {
    Refusal::invalid(message).param(param).code("unsupported_parameter")
}

fn known_fields(fields: &Map<String, Value>, known: &[&str], at: &str) -> Result<(), String> {
    match fields.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{at}.{name}: Extra inputs are not permitted")),
        None => Ok(()),
    }
}

/// Whether a tool may be called so, where names have at most this many characters.
fn is_name(name: &str, longest: usize) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    !name.is_empty() && name.len() <= longest && name.bytes().all(allowed)
}

/// Whether a document is given as data of its type.
fn is_document(url: &str) -> bool {
    let data = url.strip_prefix("data:").and_then(|rest| rest.strip_prefix(DOCUMENT_TYPE));
    data.and_then(|rest| rest.strip_prefix(";base64,")).is_some_and(|data| !data.is_empty())
}

/// Whether an address of a picture is one the OpenAI APIs can fetch or read.
fn is_image_url(url: &str) -> bool {
    if url.starts_with("https://") || url.starts_with("http://") {
        return true;
    }
    let Some((kind, data)) = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) else {
        return false;
    };
    IMAGE_TYPES.contains(&kind) && !data.is_empty()
}
