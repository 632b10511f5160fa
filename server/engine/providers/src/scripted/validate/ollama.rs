//! The refusals of a strict Ollama server.
//!
//! Rule: stricter than the server, which puts almost anything into its templates: unknown fields, empty messages and results
//! without calls are refused, because a model would silently read nonsense.

use serde_json::{Map, Value};

use super::{NO_TOOLS, unsupported};
use crate::scripted::Quirks;
use crate::scripted::refusal::Refusal;

const REQUEST_FIELDS: &[&str] = &[
    "model",
    "messages",
    "stream",
    "format",
    "keep_alive",
    "tools",
    "options",
    "think",
    "truncate",
    "shift",
    "logprobs",
    "top_logprobs",
];

const OPTION_FIELDS: &[&str] = &["num_ctx", "num_predict", "temperature", "top_p", "top_k", "seed", "stop"];

const MESSAGE_FIELDS: &[&str] =
    &["role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"];

/// Checks the body of a request.
///
/// # Errors
/// In the server's manner.
pub(in crate::scripted) fn request(body: &Value, quirks: &Quirks) -> Result<(), Refusal> {
    known(body, REQUEST_FIELDS, "the request")?;
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err(Refusal::invalid("model is required"));
    }
    known(&body["options"], OPTION_FIELDS, "options")?;
    let mut open: Vec<&str> = Vec::new();
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        known(message, MESSAGE_FIELDS, &at)?;
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            return Err(Refusal::invalid(format!("{at}: the calls {open:?} have no results")));
        }
        let says = message["content"].as_str().is_some_and(|text| !text.trim().is_empty());
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        if quirks.no_tools && (role == "tool" || !calls.is_empty()) {
            return Err(unsupported(&at, NO_TOOLS));
        }
        match role {
            "system" | "user" if says || !message["images"].is_null() => {}
            "assistant" if says || !calls.is_empty() => {
                open = calls.iter().filter_map(|call| call["id"].as_str()).collect();
                if open.len() != calls.len()
                    || calls.iter().any(|call| !call["function"]["arguments"].is_object())
                {
                    return Err(Refusal::invalid(format!(
                        "{at}: a call needs an id and an object of arguments"
                    )));
                }
            }
            "tool" if says => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let Some(place) = open.iter().position(|known| *known == id) else {
                    return Err(Refusal::invalid(format!("{at}: the result {id} answers no call")));
                };
                open.remove(place);
            }
            _ => return Err(Refusal::invalid(format!("{at}: a message of the role `{role}` says nothing"))),
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(Refusal::invalid(format!("the calls {open:?} have no results")))
    }
}

fn known(value: &Value, fields: &[&str], at: &str) -> Result<(), Refusal> {
    let none = Map::new();
    match value.as_object().unwrap_or(&none).keys().find(|name| !fields.contains(&name.as_str())) {
        Some(name) => Err(Refusal::invalid(format!("unknown field {name} in {at}"))),
        None => Ok(()),
    }
}
