//! The refusals of the Responses API.
//!
//! Rule: the kept and the sent items are one list of items, in which every call has one output, and reasoning precedes
//! what it led to.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::chat::{called, declaration, missing, wrong_value};
use super::{is_document, is_image_url, known_fields};
use crate::scripted::playback::responses::{SEALED, seal_of};
use crate::scripted::refusal::Refusal;

/// The most characters of a call's id.
const MAX_CALL_ID: usize = 64;

/// The fewest tokens an answer may be limited to.
const MIN_OUTPUT_TOKENS: u64 = 16;

const REQUEST_FIELDS: &[&str] = &[
    "background",
    "context_management",
    "conversation",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

const INCLUDABLE: &[&str] = &[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    SEALED,
    "message.output_text.logprobs",
];

const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh"];
const SUMMARIES: &[&str] = &["auto", "concise", "detailed"];

/// Checks everything in a request but the conversation.
///
/// # Errors
/// In the API's manner.
pub(in crate::scripted) fn request(body: &Value) -> Result<(), Refusal> {
    let fields = body.as_object().ok_or_else(|| Refusal::invalid("The request body is not a JSON object"))?;
    if let Some(name) = fields.keys().find(|name| !REQUEST_FIELDS.contains(&name.as_str())) {
        return Err(Refusal::invalid(format!("Unknown parameter: '{name}'."))
            .param(name)
            .code("unknown_parameter"));
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        return Err(missing("model"));
    }
    for name in ["stream", "store", "parallel_tool_calls", "background"] {
        if !body[name].is_null() && !body[name].is_boolean() {
            return Err(wrong_value(name, "a boolean"));
        }
    }
    for name in ["instructions", "previous_response_id", "prompt_cache_key"] {
        if !body[name].is_null() && !body[name].is_string() {
            return Err(wrong_value(name, "a string"));
        }
    }
    let limit = &body["max_output_tokens"];
    if !limit.is_null() && limit.as_u64().is_none_or(|limit| limit < MIN_OUTPUT_TOKENS) {
        return Err(Refusal::invalid(format!(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {MIN_OUTPUT_TOKENS}."
        ))
        .param("max_output_tokens")
        .code("integer_below_min_value"));
    }
    for (name, most) in [("temperature", 2.0), ("top_p", 1.0)] {
        let value = &body[name];
        if !value.is_null() && value.as_f64().is_none_or(|number| !(0.0..=most).contains(&number)) {
            return Err(wrong_value(name, &format!("a number from 0 to {most}")));
        }
    }
    let included = body["include"].as_array().into_iter().flatten();
    for name in included {
        if name.as_str().is_none_or(|name| !INCLUDABLE.contains(&name)) {
            return Err(wrong_value("include", &format!("some of {INCLUDABLE:?}")));
        }
    }
    reasoning_options(&body["reasoning"])?;
    tools(&body["tools"])
}

fn reasoning_options(reasoning: &Value) -> Result<(), Refusal> {
    let Some(fields) = reasoning.as_object() else {
        return if reasoning.is_null() { Ok(()) } else { Err(wrong_value("reasoning", "an object")) };
    };
    known_fields(fields, &["effort", "summary", "generate_summary"], "reasoning")?;
    for (name, known) in [("effort", EFFORTS), ("summary", SUMMARIES)] {
        let value = &reasoning[name];
        if !value.is_null() && value.as_str().is_none_or(|value| !known.contains(&value)) {
            return Err(wrong_value(&format!("reasoning.{name}"), &format!("one of {known:?}")));
        }
    }
    Ok(())
}

fn tools(tools: &Value) -> Result<(), Refusal> {
    let Some(list) = tools.as_array() else {
        return if tools.is_null() { Ok(()) } else { Err(wrong_value("tools", "an array")) };
    };
    let mut names = HashSet::new();
    for (index, tool) in list.iter().enumerate() {
        let at = format!("tools[{index}]");
        if tool["type"] == "custom" {
            custom_tool(tool, &at, &mut names)?;
            continue;
        }
        if tool["type"] != "function" {
            return Err(wrong_value(&format!("{at}.type"), "'function' or 'custom'"));
        }
        declaration(tool, &at, &mut names)?;
        known(tool, &["type", "name", "description", "parameters", "strict"], &at)?;
    }
    Ok(())
}

/// Checks a tool whose calls are free text.
fn custom_tool<'a>(tool: &'a Value, at: &str, names: &mut HashSet<&'a str>) -> Result<(), Refusal> {
    known(tool, &["type", "name", "description", "format"], at)?;
    let name = tool["name"].as_str().ok_or_else(|| missing(&format!("{at}.name")))?;
    if !names.insert(name) {
        return Err(Refusal::invalid(format!("The tool {name} is declared twice.")).param("tools"));
    }
    let format = &tool["format"];
    let grammar = ["syntax", "definition"].iter().all(|field| format[field].is_string());
    match format["type"].as_str() {
        None if format.is_null() => Ok(()),
        Some("text") => Ok(()),
        Some("grammar")
            if grammar && ["lark", "regex"].contains(&format["syntax"].as_str().unwrap_or_default()) =>
        {
            Ok(())
        }
        _ => Err(wrong_value(&format!("{at}.format"), "text, or a grammar with syntax and definition")),
    }
}

/// Checks the items of a request, each by itself.
///
/// # Errors
/// In the API's manner.
pub(in crate::scripted) fn input(body: &Value, items: &[Arc<Value>]) -> Result<(), Refusal> {
    for (index, item) in items.iter().enumerate() {
        let at = format!("input[{index}]");
        match item["type"].as_str().unwrap_or("message") {
            "message" => message(item, &at)?,
            "function_call" => {
                known(item, &["type", "id", "call_id", "name", "arguments", "status"], &at)?;
                id_begins(item, "fc", &at)?;
                call_id(item, &at)?;
                called(item, &at)?;
            }
            "custom_tool_call" => {
                known(item, &["type", "id", "call_id", "name", "input", "status"], &at)?;
                id_begins(item, "ctc", &at)?;
                call_id(item, &at)?;
                if !item["input"].is_string() {
                    return Err(missing(&format!("{at}.input")));
                }
            }
            "function_call_output" | "custom_tool_call_output" => {
                known(item, &["type", "id", "call_id", "output", "status"], &at)?;
                call_id(item, &at)?;
                if !item["output"].is_string() {
                    parts(
                        &item["output"],
                        &format!("{at}.output"),
                        &["input_text", "input_image", "input_file"],
                    )?;
                }
            }
            "reasoning" => reasoning(body, item, &at)?,
            other => {
                return Err(Refusal::invalid(format!("Invalid value: '{other}'."))
                    .param(format!("{at}.type"))
                    .code("invalid_value"));
            }
        }
    }
    Ok(())
}

fn message(item: &Value, at: &str) -> Result<(), Refusal> {
    let role = item["role"].as_str().ok_or_else(|| missing(&format!("{at}.role")))?;
    let kinds: &[&str] = match role {
        "user" | "system" | "developer" => {
            known(item, &["type", "role", "content", "status"], at)?;
            &["input_text", "input_image", "input_file"]
        }
        "assistant" => {
            known(item, &["type", "role", "content", "id", "status", "phase"], at)?;
            id_begins(item, "msg", at)?;
            &["output_text", "refusal"]
        }
        other => return Err(wrong_value(&format!("{at}.role"), &format!("a role, and got '{other}'"))),
    };
    let at = format!("{at}.content");
    match item["content"].as_str() {
        Some(text) if text.trim().is_empty() => Err(wrong_value(&at, "a text that is not empty")),
        Some(_) => Ok(()),
        None => parts(&item["content"], &at, kinds),
    }
}

fn parts(content: &Value, at: &str, kinds: &[&str]) -> Result<(), Refusal> {
    let parts = content.as_array().filter(|parts| !parts.is_empty());
    let parts = parts.ok_or_else(|| wrong_value(at, "a string or an array of parts that is not empty"))?;
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let kind = part["type"].as_str().ok_or_else(|| missing(&format!("{at}.type")))?;
        if !kinds.contains(&kind) {
            return Err(Refusal::invalid(format!(
                "Invalid value: '{kind}'. Supported values are: {kinds:?}."
            ))
            .param(format!("{at}.type"))
            .code("invalid_value"));
        }
        let is_fine = match kind {
            "input_image" => {
                known(part, &["type", "image_url", "detail"], &at)?;
                part["image_url"].as_str().is_some_and(is_image_url)
            }
            "input_file" => {
                known(part, &["type", "filename", "file_data"], &at)?;
                part["filename"].as_str().is_some_and(|name| !name.is_empty())
                    && part["file_data"].as_str().is_some_and(is_document)
            }
            "refusal" => {
                known(part, &["type", "refusal"], &at)?;
                part["refusal"].is_string()
            }
            _ => {
                known(part, &["type", "text", "annotations", "logprobs"], &at)?;
                part["text"].as_str().is_some_and(|text| !text.is_empty())
            }
        };
        if !is_fine {
            return Err(wrong_value(&at, "a part that is not empty and of its type"));
        }
    }
    Ok(())
}

fn reasoning(body: &Value, item: &Value, at: &str) -> Result<(), Refusal> {
    known(item, &["type", "id", "summary", "content", "encrypted_content", "status"], at)?;
    let id = item["id"].as_str().ok_or_else(|| missing(&format!("{at}.id")))?;
    id_begins(item, "rs", at)?;
    let summary = item["summary"].as_array().ok_or_else(|| missing(&format!("{at}.summary")))?;
    if summary.iter().any(|part| part["type"] != "summary_text" || !part["text"].is_string()) {
        return Err(wrong_value(&format!("{at}.summary"), "an array of 'summary_text'"));
    }
    let Some(sealed) = item["encrypted_content"].as_str() else {
        // Nothing that is sent by itself is looked up, as with `store: false`.
        return Err(Refusal::new(
            404,
            format!("Item with id '{id}' not found. Items are not persisted when `store` is set to false."),
        )
        .param("input"));
    };
    if sealed.starts_with(&seal_of(&body["model"])) {
        return Ok(());
    }
    Err(Refusal::invalid(format!("The encrypted content for item {id} could not be verified."))
        .code("invalid_encrypted_content"))
}

/// Checks all items of the conversation, those that were kept and those that came now, against each other.
/// `needed` gives the reasoning that an item cannot be sent without.
///
/// # Errors
/// In the API's manner.
pub(in crate::scripted) fn conversation(
    items: &[Arc<Value>],
    needed: impl Fn(&str) -> Option<String>,
) -> Result<(), Refusal> {
    if items.is_empty() {
        return Err(missing("input"));
    }
    let mut open: HashSet<&str> = HashSet::new();
    let mut known_calls = HashSet::new();
    let mut kinds: HashMap<&str, &str> = HashMap::new();
    let mut known_items = HashSet::new();
    let mut reasoning: Option<&str> = None;
    for item in items {
        let kind = item["type"].as_str().unwrap_or("message");
        let id = item["id"].as_str().unwrap_or_default();
        let is_answer = matches!(kind, "function_call" | "custom_tool_call") || item["role"] == "assistant";
        if let Some(reasoning) = reasoning.take().filter(|_| !is_answer && kind != "reasoning") {
            return Err(lonely(reasoning));
        }
        if let Some(wanted) = needed(id).filter(|wanted| !known_items.contains(wanted.as_str())) {
            return Err(Refusal::invalid(format!(
                "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{wanted}'."
            ))
            .param("input"));
        }
        if !id.is_empty() && !known_items.insert(id) {
            return Err(Refusal::invalid(format!("Duplicate item found with id {id}.")).param("input"));
        }
        let call = item["call_id"].as_str().unwrap_or_default();
        match kind {
            "reasoning" => reasoning = Some(id),
            "function_call" | "custom_tool_call" => {
                if !known_calls.insert(call) {
                    return Err(Refusal::invalid(format!("The call {call} is made twice.")).param("input"));
                }
                open.insert(call);
                kinds.insert(call, kind);
            }
            "function_call_output" | "custom_tool_call_output"
                if kinds.get(call).is_some_and(|made| format!("{made}_output") != kind) =>
            {
                return Err(
                    Refusal::invalid(format!("The call {call} has a result of another type.")).param("input")
                );
            }
            "function_call_output" | "custom_tool_call_output" if !open.remove(call) => {
                return Err(Refusal::invalid(format!(
                    "No tool call found for function call output with call_id {call}."
                ))
                .param("input"));
            }
            "function_call_output" | "custom_tool_call_output" => {}
            _ => all_answered(&open)?,
        }
    }
    match reasoning {
        Some(reasoning) => Err(lonely(reasoning)),
        None => all_answered(&open),
    }
}

fn all_answered(open: &HashSet<&str>) -> Result<(), Refusal> {
    match open.iter().min() {
        None => Ok(()),
        Some(call) => {
            Err(Refusal::invalid(format!("No tool output found for function call {call}.")).param("input"))
        }
    }
}

fn lonely(reasoning: &str) -> Refusal {
    Refusal::invalid(format!(
        "Item '{reasoning}' of type 'reasoning' was provided without its required following item."
    ))
    .param("input")
}

fn id_begins(item: &Value, prefix: &str, at: &str) -> Result<(), Refusal> {
    match item["id"].as_str() {
        Some(id) if !id.starts_with(prefix) => Err(Refusal::invalid(format!(
            "Invalid '{at}.id': '{id}'. Expected an ID that begins with '{prefix}'."
        ))
        .param(format!("{at}.id"))
        .code("invalid_value")),
        Some(_) | None => Ok(()),
    }
}

fn call_id(item: &Value, at: &str) -> Result<(), Refusal> {
    let id = item["call_id"].as_str().filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| missing(&format!("{at}.call_id")))?;
    if id.chars().count() <= MAX_CALL_ID {
        return Ok(());
    }
    Err(Refusal::invalid(format!(
        "Invalid '{at}.call_id': string too long. Expected a string with maximum length {MAX_CALL_ID}."
    ))
    .param(format!("{at}.call_id"))
    .code("string_above_max_length"))
}

fn known(value: &Value, fields: &[&str], at: &str) -> Result<(), Refusal> {
    let given = value.as_object().ok_or_else(|| wrong_value(at, "an object"))?;
    match given.keys().find(|name| !fields.contains(&name.as_str())) {
        Some(name) => Err(Refusal::invalid(format!("Unknown parameter: '{at}.{name}'."))
            .param(format!("{at}.{name}"))
            .code("unknown_parameter")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(items: Value) -> Result<(), Refusal> {
        let items: Vec<Arc<Value>> = items.as_array().unwrap().iter().cloned().map(Arc::new).collect();
        input(&json!({"model": "m"}), &items)?;
        conversation(&items, |item| (item == "fc_needing").then(|| "rs_needed".to_owned()))
    }

    fn user(content: Value) -> Value {
        json!({"type": "message", "role": "user", "content": content})
    }

    fn call(id: &str) -> Value {
        json!({"type": "function_call", "call_id": id, "name": "Read", "arguments": "{}"})
    }

    fn output(id: &str) -> Value {
        json!({"type": "function_call_output", "call_id": id, "output": ""})
    }

    fn reasoning(id: &str) -> Value {
        json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "sealed:m:x"})
    }

    #[test]
    fn valid_conversations_pass() {
        let image =
            json!({"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "auto"});
        let text = json!({"type": "input_text", "text": "x"});
        let needing = json!({"type": "function_call", "id": "fc_needing", "call_id": "c", "name": "R", "arguments": "{}"});
        let said = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "y"}]});
        let items = json!([
            user(json!([text, image])),
            reasoning("rs_1"),
            call("a"),
            call("b"),
            output("b"),
            {"type": "function_call_output", "call_id": "a", "output": [text, image]},
            reasoning("rs_needed"),
            needing,
            output("c"),
            said,
            {"role": "user", "content": "more"},
        ]);
        assert_eq!(judged(items), Ok(()));
    }

    #[test]
    fn conversations_the_api_would_refuse_are_refused() {
        let hello = || user(json!("hello"));
        let said = |kind: &str| json!({"type": "message", "role": "assistant", "content": [{"type": kind, "text": "y"}]});
        let foreign =
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed:other:x"});
        for (items, expected) in [
            (json!([]), "input"),
            (json!([user(json!(" "))]), "not empty"),
            (json!([user(json!([{"type": "text", "text": "x"}]))]), "Supported values"),
            (json!([hello(), said("input_text")]), "Supported values"),
            (json!([hello(), call("a")]), "No tool output found for function call a"),
            (json!([hello(), call("a"), hello(), output("a")]), "No tool output"),
            (json!([hello(), output("a")]), "No tool call found"),
            (json!([hello(), call("a"), output("a"), output("a")]), "No tool call found"),
            (json!([hello(), call("a"), output("a"), call("a"), output("a")]), "twice"),
            (json!([hello(), reasoning("rs_1")]), "required following item"),
            (json!([hello(), reasoning("rs_1"), hello()]), "required following item"),
            (
                json!([hello(), {"type": "reasoning", "id": "rs_1", "summary": []}, said("output_text")]),
                "not found",
            ),
            (json!([hello(), foreign, said("output_text")]), "could not be verified"),
            (
                json!([hello(), {"type": "function_call", "id": "call_1", "call_id": "a", "name": "R", "arguments": "{}"}]),
                "begins with 'fc'",
            ),
            (
                json!([hello(), {"type": "function_call", "id": "fc_needing", "call_id": "a", "name": "R", "arguments": "{}"},
                    output("a")]),
                "without its required 'reasoning' item",
            ),
            (
                json!([hello(), {"type": "function_call", "call_id": "a", "name": "R", "arguments": "x"}]),
                "JSON",
            ),
            (json!([{"type": "tool_result"}]), "Invalid value"),
        ] {
            let refusal = judged(items.clone()).unwrap_err().message;
            assert!(refusal.contains(expected), "{items}: {refusal}");
        }
    }

    #[test]
    fn requests_the_api_would_refuse_are_refused() {
        for (fields, expected) in [
            (json!({"model": ""}), "model"),
            (json!({"messages": []}), "Unknown parameter: 'messages'"),
            (json!({"max_tokens": 100}), "Unknown parameter"),
            (json!({"max_output_tokens": 15}), ">= 16"),
            (json!({"store": "no"}), "store"),
            (json!({"include": ["everything"]}), "include"),
            (json!({"reasoning": {"effort": "much"}}), "effort"),
            (json!({"tools": [{"type": "function", "function": {"name": "a"}}]}), "tools[0].name"),
            (
                json!({"tools": [{"type": "function", "name": "a", "parameters": {"type": "object"}, "x": 1}]}),
                "x",
            ),
        ] {
            let mut body = json!({"model": "m", "input": "hello"});
            for (name, value) in fields.as_object().unwrap() {
                body[name] = value.clone();
            }
            let refusal = request(&body).unwrap_err().message;
            assert!(refusal.contains(expected), "{fields}: {refusal}");
        }
    }
}
