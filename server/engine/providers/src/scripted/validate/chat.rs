//! The refusals of the Chat Completions API.
//!
//! Rule: every call is answered by a message with the role `tool` before anything else. Servers that are
//! compatible put histories into templates of their own, so arguments must be JSON and prompts must not be empty,
//! though the API itself would take them.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{NO_TOOLS, is_document, is_image_url, is_name, unsupported};
use crate::scripted::Quirks;
use crate::scripted::refusal::Refusal;
use crate::scripted::sealed;

/// The most characters of a tool's name.
const MAX_NAME: usize = 64;

/// The most characters of a call's id.
const MAX_CALL_ID: usize = 40;

/// The most tools.
const MAX_TOOLS: usize = 128;

const REQUEST_FIELDS: &[&str] = &[
    "messages",
    "model",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh"];

/// Checks the body of a request.
///
/// # Errors
/// In the API's manner.
pub(in crate::scripted) fn request(body: &Value, quirks: &Quirks, server: u64) -> Result<(), Refusal> {
    let fields = body.as_object().ok_or_else(|| Refusal::invalid("The request body is not a JSON object"))?;
    if let Some(name) = fields.keys().find(|name| !REQUEST_FIELDS.contains(&name.as_str())) {
        return Err(Refusal::invalid(format!("Unrecognized request argument supplied: {name}")));
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err(Refusal::invalid("you must provide a model parameter"));
    }
    limits(fields)?;
    stream(fields)?;
    tools(fields)?;
    let messages = body["messages"].as_array().filter(|messages| !messages.is_empty());
    let messages = messages.ok_or_else(|| missing("messages"))?;
    history(messages, quirks)?;
    if quirks.signed_calls {
        sealed::check_signatures(messages, server)?;
    }
    if quirks.reasoning_details {
        sealed::check_details(messages, server)?;
    }
    Ok(())
}

fn limits(fields: &Map<String, Value>) -> Result<(), Refusal> {
    let names = ["max_tokens", "max_completion_tokens"];
    let given: Vec<&str> = names.into_iter().filter(|name| fields.contains_key(*name)).collect();
    if given.len() > 1 {
        return Err(Refusal::invalid(
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
        )
        .code("invalid_parameter_combination"));
    }
    for name in given {
        if fields[name].as_u64().unwrap_or_default() == 0 {
            return Err(wrong_value(name, "an integer >= 1"));
        }
    }
    for (name, most) in [("temperature", 2.0), ("top_p", 1.0)] {
        let value = fields.get(name).filter(|value| !value.is_null());
        if value.is_some_and(|value| value.as_f64().is_none_or(|number| !(0.0..=most).contains(&number))) {
            return Err(wrong_value(name, &format!("a number from 0 to {most}")));
        }
    }
    match fields.get("reasoning_effort") {
        None | Some(Value::Null) => Ok(()),
        Some(effort) if effort.as_str().is_some_and(|effort| EFFORTS.contains(&effort)) => Ok(()),
        Some(_) => Err(wrong_value("reasoning_effort", &format!("one of {EFFORTS:?}"))),
    }
}

fn stream(fields: &Map<String, Value>) -> Result<(), Refusal> {
    let streamed = match fields.get("stream") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(streamed)) => *streamed,
        Some(_) => return Err(wrong_value("stream", "a boolean")),
    };
    match fields.get("stream_options") {
        None | Some(Value::Null) => Ok(()),
        Some(_) if !streamed => {
            Err(Refusal::invalid("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
                .param("stream_options"))
        }
        Some(Value::Object(options)) if options.get("include_usage").is_none_or(Value::is_boolean) => Ok(()),
        Some(_) => Err(wrong_value("stream_options", "an object")),
    }
}

fn tools(fields: &Map<String, Value>) -> Result<(), Refusal> {
    let Some(tools) = fields.get("tools").filter(|tools| !tools.is_null()) else {
        return match ["tool_choice", "parallel_tool_calls"].iter().find(|name| fields.contains_key(**name)) {
            Some(name) => {
                Err(Refusal::invalid(format!("'{name}' is only allowed when 'tools' are specified."))
                    .param(*name))
            }
            None => Ok(()),
        };
    };
    let tools = tools.as_array().ok_or_else(|| wrong_value("tools", "an array"))?;
    if tools.is_empty() || tools.len() > MAX_TOOLS {
        return Err(wrong_value("tools", &format!("an array of 1 to {MAX_TOOLS} tools")));
    }
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools[{index}]");
        known(tool, &["type", "function"], &at)?;
        let function = &tool["function"];
        known(function, &["name", "description", "parameters", "strict"], &format!("{at}.function"))?;
        if tool["type"] != "function" {
            return Err(wrong_value(&format!("{at}.type"), "'function'"));
        }
        declaration(function, &format!("{at}.function"), &mut names)?;
    }
    Ok(())
}

/// Checks what both OpenAI formats want of a declared function, whose fields are in `function`.
pub(super) fn declaration<'a>(
    function: &'a Value,
    at: &str,
    names: &mut HashSet<&'a str>,
) -> Result<(), Refusal> {
    let name = function["name"].as_str().ok_or_else(|| missing(&format!("{at}.name")))?;
    if !is_name(name, MAX_NAME) {
        return Err(Refusal::invalid(format!(
            "Invalid '{at}.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        ))
        .param(format!("{at}.name"))
        .code("invalid_value"));
    }
    if !names.insert(name) {
        return Err(Refusal::invalid(format!("Invalid '{at}.name': the name '{name}' is used twice.")));
    }
    if !function["description"].is_null() && !function["description"].is_string() {
        return Err(wrong_value(&format!("{at}.description"), "a string"));
    }
    let parameters = &function["parameters"];
    if parameters["type"] != "object"
        || !(parameters["properties"].is_object() || parameters["properties"].is_null())
    {
        return Err(Refusal::invalid(format!(
            "Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"'."
        ))
        .param(format!("{at}.parameters"))
        .code("invalid_function_parameters"));
    }
    match &function["strict"] {
        Value::Null | Value::Bool(_) => Ok(()),
        _ => Err(wrong_value(&format!("{at}.strict"), "a boolean")),
    }
}

fn history(messages: &[Value], quirks: &Quirks) -> Result<(), Refusal> {
    let mut open: HashSet<&str> = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages[{index}]");
        let role = message["role"].as_str().ok_or_else(|| missing(&format!("{at}.role")))?;
        if role != "tool" {
            all_answered(&open)?;
        }
        let wants_tools = role == "tool" || !message["tool_calls"].is_null();
        if quirks.no_tools && wants_tools {
            return Err(unsupported(&at, NO_TOOLS));
        }
        match role {
            "system" | "developer" if quirks.no_system_role => {
                return Err(Refusal::invalid(format!(
                    "{at}: the role '{role}' is not supported by this model"
                ))
                .param(format!("{at}.role"))
                .code("unsupported_value"));
            }
            "system" | "developer" => {
                known(message, &["role", "content", "name"], &at)?;
                content(&message["content"], &at, &["text"])?;
            }
            "user" => {
                known(message, &["role", "content", "name"], &at)?;
                content(&message["content"], &at, &["text", "image_url", "file"])?;
            }
            "assistant" => open = assistant(message, &at, quirks)?,
            "tool" => {
                known(message, &["role", "content", "tool_call_id"], &at)?;
                if !message["content"].is_string() {
                    content(&message["content"], &at, &["text"])?;
                }
                let id = message["tool_call_id"].as_str();
                let id = id.ok_or_else(|| missing(&format!("{at}.tool_call_id")))?;
                if !open.remove(id) {
                    return Err(Refusal::invalid(format!(
                        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'; {id} is not called or answered twice."
                    ))
                    .param(format!("{at}.role")));
                }
            }
            other => {
                return Err(Refusal::invalid(format!(
                    "Invalid value: '{other}'. Supported values are: 'system', 'developer', 'user', 'assistant' and 'tool'."
                ))
                .param(format!("{at}.role"))
                .code("invalid_value"));
            }
        }
    }
    all_answered(&open)
}

fn all_answered(open: &HashSet<&str>) -> Result<(), Refusal> {
    if open.is_empty() {
        return Ok(());
    }
    let mut missing: Vec<&str> = open.iter().copied().collect();
    missing.sort_unstable();
    Err(Refusal::invalid(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        missing.join(", ")
    ))
    .param("messages"))
}

/// Checks an answer and gives the ids of its calls.
fn assistant<'a>(message: &'a Value, at: &str, quirks: &Quirks) -> Result<HashSet<&'a str>, Refusal> {
    // Reasoning is no field of the API's own, but servers that send it want it back.
    let mut fields =
        vec!["role", "content", "refusal", "name", "tool_calls", "reasoning_content", "reasoning"];
    fields.extend(quirks.reasoning_details.then_some("reasoning_details"));
    known(message, &fields, at)?;
    let mut call_fields = vec!["id", "type", "function"];
    call_fields.extend(quirks.signed_calls.then_some("extra_content"));
    for name in ["reasoning_content", "reasoning", "refusal"] {
        if !message[name].is_null() && !message[name].is_string() {
            return Err(wrong_value(&format!("{at}.{name}"), "a string"));
        }
    }
    let Some(calls) = message["tool_calls"].as_array() else {
        if !message["tool_calls"].is_null() {
            return Err(wrong_value(&format!("{at}.tool_calls"), "an array"));
        }
        content(&message["content"], at, &["text", "refusal"])?;
        return Ok(HashSet::new());
    };
    if calls.is_empty() {
        return Err(Refusal::invalid(format!("Invalid '{at}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead."))
            .param(format!("{at}.tool_calls"))
            .code("empty_array"));
    }
    if !message["content"].is_null() && !message["content"].is_string() {
        content(&message["content"], at, &["text", "refusal"])?;
    }
    let mut ids = HashSet::new();
    for (index, call) in calls.iter().enumerate() {
        let at = format!("{at}.tool_calls[{index}]");
        known(call, &call_fields, &at)?;
        let function = &call["function"];
        known(function, &["name", "arguments"], &format!("{at}.function"))?;
        let id =
            call["id"].as_str().filter(|id| !id.is_empty()).ok_or_else(|| missing(&format!("{at}.id")))?;
        if id.chars().count() > MAX_CALL_ID {
            return Err(Refusal::invalid(format!(
                "Invalid '{at}.id': string too long. Expected a string with maximum length {MAX_CALL_ID}."
            ))
            .param(format!("{at}.id"))
            .code("string_above_max_length"));
        }
        if !ids.insert(id) {
            return Err(Refusal::invalid(format!("Duplicate value for 'tool_call_id' of {id} in {at}")));
        }
        if call["type"] != "function" {
            return Err(wrong_value(&format!("{at}.type"), "'function'"));
        }
        called(function, &format!("{at}.function"))?;
    }
    Ok(ids)
}

/// Checks name and arguments of a call, as both OpenAI formats have them.
pub(super) fn called(function: &Value, at: &str) -> Result<(), Refusal> {
    let name = function["name"].as_str().ok_or_else(|| missing(&format!("{at}.name")))?;
    if !is_name(name, MAX_NAME) {
        return Err(wrong_value(&format!("{at}.name"), "a name that matches '^[a-zA-Z0-9_-]+$'"));
    }
    let arguments = function["arguments"].as_str().ok_or_else(|| missing(&format!("{at}.arguments")))?;
    match serde_json::from_str::<Value>(arguments) {
        Ok(Value::Object(_)) => Ok(()),
        Ok(_) | Err(_) => Err(wrong_value(&format!("{at}.arguments"), "the JSON of an object")),
    }
}

/// Checks a content, which is a text or a list of parts of some types, and not empty.
fn content(content: &Value, at: &str, kinds: &[&str]) -> Result<(), Refusal> {
    let at = format!("{at}.content");
    let parts = match content {
        Value::String(text) if !text.trim().is_empty() => return Ok(()),
        Value::Array(parts) if !parts.is_empty() => parts,
        Value::Null => return Err(wrong_value(&at, "a string or an array of parts, and got null")),
        _ => return Err(wrong_value(&at, "a string or an array of parts that is not empty")),
    };
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let kind = part["type"].as_str().ok_or_else(|| missing(&format!("{at}.type")))?;
        if !kinds.contains(&kind) {
            return Err(Refusal::invalid(format!(
                "Invalid content type. '{kind}' is not supported here; supported are {kinds:?}."
            ))
            .param(at));
        }
        known(part, &["type", kind], &at)?;
        let is_fine = match kind {
            "image_url" => {
                known(&part[kind], &["url", "detail"], &at)?;
                part[kind]["url"].as_str().is_some_and(is_image_url)
            }
            "file" => {
                known(&part[kind], &["filename", "file_data"], &at)?;
                part[kind]["filename"].as_str().is_some_and(|name| !name.is_empty())
                    && part[kind]["file_data"].as_str().is_some_and(is_document)
            }
            _ => part[kind].as_str().is_some_and(|text| !text.is_empty()),
        };
        if !is_fine {
            return Err(wrong_value(&format!("{at}.{kind}"), "what is not empty and of its type"));
        }
    }
    Ok(())
}

fn known(value: &Value, fields: &[&str], at: &str) -> Result<(), Refusal> {
    let given = value.as_object().ok_or_else(|| wrong_value(at, "an object"))?;
    match given.keys().find(|name| !fields.contains(&name.as_str())) {
        Some(name) => Err(Refusal::invalid(format!(
            "Additional properties are not allowed ('{name}' was unexpected) - '{at}'"
        ))
        .param(at)),
        None => Ok(()),
    }
}

/// A part of the request that is not there.
pub(super) fn missing(param: &str) -> Refusal {
    Refusal::invalid(format!("Missing required parameter: '{param}'."))
        .param(param)
        .code("missing_required_parameter")
}

/// A part of the request that is something else than it should be.
pub(super) fn wrong_value(param: &str, expected: &str) -> Refusal {
    Refusal::invalid(format!("Invalid type for '{param}': expected {expected}."))
        .param(param)
        .code("invalid_type")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_messages(messages: Value) -> Value {
        json!({"model": "m", "messages": messages})
    }

    fn call(id: &str) -> Value {
        json!({"id": id, "type": "function", "function": {"name": "Read", "arguments": "{}"}})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": ""})
    }

    fn refusal(body: &Value) -> String {
        request(body, &Quirks::default(), 0).unwrap_err().message
    }

    #[test]
    fn valid_histories_pass() {
        let url = json!({"url": "data:image/png;base64,iVBORw0KGgo="});
        let messages = json!([
            {"role": "system", "content": "You."},
            {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": url}]},
            {"role": "assistant", "content": null, "reasoning_content": "r", "tool_calls": [call("a"), call("b")]},
            result("b"),
            result("a"),
            {"role": "user", "content": "and"},
            {"role": "assistant", "content": "yes"},
            {"role": "user", "content": "more"},
        ]);
        assert_eq!(request(&with_messages(messages), &Quirks::default(), 0), Ok(()));
    }

    #[test]
    fn histories_the_api_would_refuse_are_refused() {
        let assistant = |calls: Value| json!({"role": "assistant", "content": "", "tool_calls": calls});
        let user = |content: Value| json!({"role": "user", "content": content});
        let hello = || user(json!("hello"));
        let image = |url: &str| user(json!([{"type": "image_url", "image_url": {"url": url}}]));
        let file =
            |data: &str| user(json!([{"type": "file", "file": {"filename": "a.pdf", "file_data": data}}]));
        for (messages, expected) in [
            (json!([]), "messages"),
            (json!([user(json!(" "))]), "not empty"),
            (json!([user(json!([]))]), "not empty"),
            (json!([user(json!([{"type": "text", "text": ""}]))]), "not empty"),
            (json!([user(json!([{"type": "input_text", "text": "x"}]))]), "Invalid content type"),
            (json!([image("data:image/bmp;base64,AA==")]), "image_url"),
            (json!([file("data:image/png;base64,AA==")]), "file"),
            (json!([{"role": "tool", "tool_call_id": "a", "content": "x"}]), "preceeding"),
            (json!([{"role": "function", "content": "x"}]), "Supported values"),
            (json!([{"role": "assistant", "content": null}]), "null"),
            (json!([{"role": "user", "content": "x", "id": "1"}]), "'id' was unexpected"),
            (json!([assistant(json!([]))]), "empty array"),
            (json!([hello(), assistant(json!([call("a")]))]), "must be followed"),
            (json!([hello(), assistant(json!([call("a"), call("b")])), result("a"), hello()]), "messages: b"),
            (json!([hello(), assistant(json!([call("a")])), hello(), result("a")]), "must be followed"),
            (json!([hello(), assistant(json!([call("a")])), result("a"), result("a")]), "preceeding"),
            (json!([hello(), assistant(json!([call("a"), call("a")]))]), "Duplicate"),
            (json!([assistant(json!([call(&"x".repeat(41))]))]), "maximum length 40"),
            (
                json!([assistant(
                    json!([{"type": "function", "function": {"name": "R", "arguments": "{}"}}])
                )]),
                ".id",
            ),
            (
                json!([assistant(
                    json!([{"id": "a", "type": "function", "function": {"name": "R", "arguments": "{"}}])
                )]),
                "the JSON of an object",
            ),
            (
                json!([assistant(
                    json!([{"id": "a", "type": "function", "function": {"name": "R", "arguments": {}}}])
                )]),
                "arguments",
            ),
        ] {
            let refusal = refusal(&with_messages(messages.clone()));
            assert!(refusal.contains(expected), "{messages}: {refusal}");
        }
    }

    #[test]
    fn requests_the_api_would_refuse_are_refused() {
        let tool = |name: &str| json!({"type": "function", "function": {"name": name, "parameters": {"type": "object"}}});
        for (fields, expected) in [
            (json!({"model": ""}), "model"),
            (json!({"max_tokens": 0}), "max_tokens"),
            (json!({"max_tokens": 1, "max_completion_tokens": 1}), "same time"),
            (json!({"thinking": {}}), "Unrecognized request argument supplied: thinking"),
            (json!({"stream_options": {"include_usage": true}}), "only allowed when 'stream'"),
            (json!({"tools": []}), "1 to 128"),
            (json!({"tool_choice": "auto"}), "only allowed when 'tools'"),
            (json!({"tools": [tool("a"), tool("a")]}), "used twice"),
            (json!({"tools": [tool("a b")]}), "pattern"),
            (json!({"tools": [{"type": "function", "name": "a", "parameters": {}}]}), "unexpected"),
            (json!({"tools": [{"type": "function", "function": {"name": "a"}}]}), "JSON Schema"),
            (json!({"reasoning_effort": "much"}), "reasoning_effort"),
            (json!({"temperature": 3}), "temperature"),
        ] {
            let mut body = with_messages(json!([{"role": "user", "content": "hello"}]));
            for (name, value) in fields.as_object().unwrap() {
                body[name] = value.clone();
            }
            let refusal = refusal(&body);
            assert!(refusal.contains(expected), "{fields}: {refusal}");
        }
    }

    #[test]
    fn quirks_refuse_what_compatible_servers_lack() {
        let quirks = Quirks { no_system_role: true, no_tools: true, ..Quirks::default() };
        let messages = json!([{"role": "system", "content": "You."}, {"role": "user", "content": "x"}]);
        assert!(request(&with_messages(messages), &quirks, 0).is_err());
        let messages = json!([{"role": "assistant", "tool_calls": [call("a")]}, result("a")]);
        assert!(request(&with_messages(messages.clone()), &Quirks::default(), 0).is_ok());
        assert!(request(&with_messages(messages), &quirks, 0).is_err());
    }
}
