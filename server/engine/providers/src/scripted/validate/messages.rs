//! The refusals of the Messages API.
//!
//! Rule: users and the model take turns, and every call has its result at once and first.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{DOCUMENT_TYPE, IMAGE_TYPES, is_name, known_fields};

/// The most characters of a tool's name.
const MAX_NAME: usize = 128;

/// The most blocks that may be marked for the cache.
const MAX_CACHE_MARKS: usize = 4;

const REQUEST_FIELDS: &[&str] = &[
    "model",
    "max_tokens",
    "system",
    "messages",
    "tools",
    "stream",
    "temperature",
    "top_p",
    "thinking",
    "output_config",
    "metadata",
    "stop_sequences",
    "tool_choice",
    "top_k",
];

/// Checks the body of a request.
///
/// # Errors
/// Where the fault is and what it is, in the API's manner.
pub(in crate::scripted) fn request(body: &Value) -> Result<(), String> {
    let body = body.as_object().ok_or("The request body is not a JSON object")?;
    known_fields(body, REQUEST_FIELDS, "")?;
    if body.get("model").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err("model: Field required".to_owned());
    }
    let max_tokens = body.get("max_tokens").and_then(Value::as_u64).unwrap_or_default();
    if max_tokens == 0 {
        return Err("max_tokens: Input should be greater than or equal to 1".to_owned());
    }
    if let Some(system) = body.get("system") {
        system_prompt(system)?;
    }
    if let Some(tools) = body.get("tools") {
        tool_declarations(tools)?;
    }
    if let Some(thinking) = body.get("thinking") {
        reasoning(thinking, max_tokens)?;
    }
    let messages = body.get("messages").and_then(Value::as_array).ok_or("messages: Field required")?;
    history(messages)?;
    match cache_marks(&Value::Object(body.clone())) {
        0..=MAX_CACHE_MARKS => Ok(()),
        more => Err(format!(
            "A maximum of {MAX_CACHE_MARKS} blocks with cache_control may be provided. Found {more}"
        )),
    }
}

fn system_prompt(system: &Value) -> Result<(), String> {
    match system {
        Value::String(_) => Ok(()),
        Value::Array(blocks) => blocks.iter().enumerate().try_for_each(|(index, block)| {
            let at = format!("system.{index}");
            match block.as_object() {
                Some(fields) if fields.get("type").is_some_and(|kind| kind == "text") => text(fields, &at),
                _ => Err(format!("{at}: Input should be a text block")),
            }
        }),
        _ => Err("system: Input should be a string or a list of blocks".to_owned()),
    }
}

fn tool_declarations(tools: &Value) -> Result<(), String> {
    let tools = tools.as_array().ok_or("tools: Input should be a list")?;
    let mut names = HashSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let name = tool["name"].as_str().unwrap_or_default();
        if !is_name(name, MAX_NAME) {
            return Err(format!(
                "tools.{index}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            ));
        }
        if !names.insert(name) {
            return Err("tools: Tool names must be unique".to_owned());
        }
        if tool["input_schema"]["type"] != "object" {
            return Err(format!("tools.{index}.input_schema.type: Field required"));
        }
    }
    Ok(())
}

fn reasoning(thinking: &Value, max_tokens: u64) -> Result<(), String> {
    if thinking["type"] != "enabled" {
        return Ok(());
    }
    match thinking["budget_tokens"].as_u64() {
        None | Some(0..1024) => {
            Err("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024".to_owned())
        }
        Some(budget) if budget >= max_tokens => {
            Err("`max_tokens` must be greater than `thinking.budget_tokens`".to_owned())
        }
        Some(_) => Ok(()),
    }
}

fn history(messages: &[Value]) -> Result<(), String> {
    if messages.is_empty() {
        return Err("messages: at least one message is required".to_owned());
    }
    let mut unanswered: Vec<&str> = Vec::new();
    let mut ids = HashSet::new();
    for (index, message) in messages.iter().enumerate() {
        let at = format!("messages.{index}");
        let expected = if index % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            return Err(format!("{at}: roles must alternate, starting with `user`; expected `{expected}`"));
        }
        let blocks = match &message["content"] {
            Value::String(content) if !content.trim().is_empty() => &[][..],
            Value::Array(blocks) if !blocks.is_empty() => blocks,
            _ => return Err(format!("{at}: all messages must have non-empty content")),
        };
        for (number, block) in blocks.iter().enumerate() {
            self::block(block, expected, &format!("{at}.content.{number}"))?;
        }
        if expected == "assistant" {
            unanswered = calls(blocks);
            if let Some(id) = unanswered.iter().find(|id| !ids.insert(**id)) {
                return Err(format!("{at}: `tool_use` ids must be unique; {id} is used twice"));
            }
        } else {
            results(blocks, &std::mem::take(&mut unanswered), &at)?;
        }
    }
    if unanswered.is_empty() {
        return Ok(());
    }
    Err(format!(
        "messages: `tool_use` ids were found without `tool_result` blocks after: {}",
        unanswered.join(", ")
    ))
}

fn block(block: &Value, role: &str, at: &str) -> Result<(), String> {
    let fields = block.as_object().ok_or_else(|| format!("{at}: Input should be an object"))?;
    let string = |name: &str| fields.get(name).and_then(Value::as_str);
    let filled = |name: &str| match string(name) {
        Some(value) if !value.is_empty() => Ok(()),
        _ => Err(format!("{at}.{name}: Field required")),
    };
    match (role, string("type").unwrap_or_default()) {
        (_, "text") => text(fields, at),
        ("assistant", "thinking") => {
            known_fields(fields, &["type", "thinking", "signature"], at)?;
            filled("signature")
        }
        ("assistant", "redacted_thinking") => {
            known_fields(fields, &["type", "data"], at)?;
            filled("data")
        }
        ("assistant", "tool_use") => {
            known_fields(fields, &["type", "id", "name", "input", "cache_control"], at)?;
            filled("id")?;
            filled("name")?;
            if fields.get("input").is_some_and(Value::is_object) {
                return Ok(());
            }
            Err(format!("{at}.tool_use.input: Input should be a valid dictionary"))
        }
        ("user", "image") => source(fields, &IMAGE_TYPES, at),
        ("user", "document") => source(fields, &[DOCUMENT_TYPE], at),
        ("user", "tool_result") => {
            known_fields(fields, &["type", "tool_use_id", "content", "is_error", "cache_control"], at)?;
            filled("tool_use_id")?;
            result_content(fields.get("content"), &format!("{at}.content"))
        }
        (role, kind) => {
            Err(format!("{at}: a message of the {role} cannot have a block of the type `{kind}`"))
        }
    }
}

fn text(fields: &Map<String, Value>, at: &str) -> Result<(), String> {
    known_fields(fields, &["type", "text", "cache_control"], at)?;
    match fields.get("text").and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => Ok(()),
        _ => Err(format!("{at}: text content blocks must contain non-whitespace text")),
    }
}

/// Checks the source of a picture or document.
fn source(fields: &Map<String, Value>, types: &[&str], at: &str) -> Result<(), String> {
    known_fields(fields, &["type", "source", "cache_control"], at)?;
    let source = fields.get("source").and_then(Value::as_object);
    let source = source.ok_or_else(|| format!("{at}.source: Field required"))?;
    known_fields(source, &["type", "media_type", "data"], &format!("{at}.source"))?;
    let string = |name: &str| source.get(name).and_then(Value::as_str).unwrap_or_default();
    if string("type") != "base64" {
        return Err(format!("{at}.source.type: Input should be 'base64'"));
    }
    if !types.contains(&string("media_type")) {
        return Err(format!("{at}.source.media_type: Input should be one of {types:?}"));
    }
    match string("data") {
        "" => Err(format!("{at}.source.data: image cannot be empty")),
        _ => Ok(()),
    }
}

/// Checks what a result holds: nothing, a text, or texts and pictures.
fn result_content(content: Option<&Value>, at: &str) -> Result<(), String> {
    let blocks = match content {
        None | Some(Value::String(_)) => return Ok(()),
        Some(Value::Array(blocks)) => blocks,
        Some(_) => return Err(format!("{at}: Input should be a string or a list of blocks")),
    };
    blocks.iter().enumerate().try_for_each(|(index, block)| {
        let at = format!("{at}.{index}");
        match (block.as_object(), block["type"].as_str()) {
            (Some(fields), Some("text")) => text(fields, &at),
            (Some(fields), Some("image")) => source(fields, &IMAGE_TYPES, &at),
            (Some(fields), Some("document")) => source(fields, &[DOCUMENT_TYPE], &at),
            _ => Err(format!("{at}: a result can only hold text, images and documents")),
        }
    })
}

fn calls(blocks: &[Value]) -> Vec<&str> {
    let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
    calls.filter_map(|block| block["id"].as_str()).collect()
}

/// Checks that the message of the user begins with exactly one result for each call.
fn results(blocks: &[Value], calls: &[&str], at: &str) -> Result<(), String> {
    let is_result = |block: &&Value| block["type"] == "tool_result";
    let leading = blocks.iter().take_while(is_result).count();
    if blocks.iter().filter(is_result).count() > leading {
        return Err(format!("{at}: `tool_result` blocks must come first"));
    }
    let mut open: HashSet<&str> = calls.iter().copied().collect();
    for block in &blocks[..leading] {
        let id = block["tool_use_id"].as_str().unwrap_or_default();
        if !open.remove(id) {
            return Err(format!("{at}: unexpected `tool_use_id` found in `tool_result` blocks: {id}"));
        }
    }
    let mut missing: Vec<&str> = open.into_iter().collect();
    missing.sort_unstable();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{at}: `tool_use` ids were found without `tool_result` blocks immediately after: {}",
        missing.join(", ")
    ))
}

/// How many blocks of the system prompt, the tools and the messages are marked for the cache.
fn cache_marks(body: &Value) -> usize {
    let marked = |list: &Value| {
        let items = list.as_array().into_iter().flatten();
        items.filter(|item| !item["cache_control"].is_null()).count()
    };
    let messages = body["messages"].as_array().into_iter().flatten();
    marked(&body["system"])
        + marked(&body["tools"])
        + messages.map(|message| marked(&message["content"])).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with_messages(messages: Value) -> Value {
        json!({"model": "m", "max_tokens": 10, "stream": true, "messages": messages})
    }

    fn call(id: &str) -> Value {
        json!({"type": "tool_use", "id": id, "name": "Read", "input": {}})
    }

    fn result(id: &str) -> Value {
        json!({"type": "tool_result", "tool_use_id": id, "content": "", "is_error": false})
    }

    fn image() -> Value {
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}})
    }

    fn with_source(source: Value) -> Value {
        json!([{"role": "user", "content": [{"type": "image", "source": source}]}])
    }

    #[test]
    fn valid_histories_pass() {
        let text = json!({"type": "text", "text": "x"});
        for messages in [
            json!([{"role": "user", "content": "hello"}]),
            json!([
                {"role": "user", "content": [text]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "", "signature": "s"}, {"type": "redacted_thinking", "data": "d"},
                    text, call("a"), call("b")]},
                {"role": "user", "content": [result("b"), result("a"), text, image()]},
                {"role": "assistant", "content": [text, call("c")]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c", "content": [text, image()]}, text]},
            ]),
        ] {
            assert_eq!(request(&with_messages(messages.clone())), Ok(()), "{messages}");
        }
    }

    #[test]
    fn histories_the_api_would_refuse_are_refused() {
        let user = |content: Value| json!({"role": "user", "content": content});
        let assistant = |content: Value| json!({"role": "assistant", "content": content});
        let hello = || user(json!("hello"));
        for (messages, expected) in [
            (json!([]), "at least one"),
            (json!([assistant(json!("hi"))]), "alternate"),
            (json!([hello(), hello()]), "alternate"),
            (json!([user(json!(" "))]), "non-empty"),
            (json!([user(json!([]))]), "non-empty"),
            (json!([user(json!([{"type": "text", "text": "\n"}]))]), "non-whitespace"),
            (json!([user(json!([{"type": "text", "text": "a", "extra": 1}]))]), "extra: Extra inputs"),
            (json!([user(json!([call("a")]))]), "cannot have"),
            (json!([hello(), assistant(json!([call("a")]))]), "without"),
            (json!([hello(), assistant(json!([call("a")])), hello()]), "without"),
            (
                json!([hello(), assistant(json!([call("a"), call("a")])), user(json!([result("a")]))]),
                "unique",
            ),
            (
                json!([
                    hello(),
                    assistant(json!([call("a")])),
                    user(json!([result("a")])),
                    assistant(json!([call("a")])),
                    user(json!([result("a")]))
                ]),
                "unique",
            ),
            (json!([hello(), assistant(json!([call("a")])), user(json!([result("b")]))]), "unexpected"),
            (
                json!([hello(), assistant(json!([call("a")])), user(json!([result("a"), result("a")]))]),
                "unexpected",
            ),
            (
                json!([
                    hello(),
                    assistant(json!([call("a")])),
                    user(json!([{"type": "text", "text": "x"}, result("a")]))
                ]),
                "come first",
            ),
            (
                json!([
                    hello(),
                    assistant(json!([{"type": "tool_use", "id": "a", "name": "R", "input": "x"}]))
                ]),
                "dictionary",
            ),
            (
                json!([
                    hello(),
                    assistant(
                        json!([{"type": "tool_use", "id": "a", "name": "R", "input": {}, "input_error": "x"}])
                    )
                ]),
                "input_error",
            ),
            (
                json!([hello(), assistant(json!([{"type": "thinking", "thinking": "x", "signature": ""}]))]),
                "signature",
            ),
            (with_source(json!({"type": "base64", "media_type": "image/bmp", "data": "x"})), "media_type"),
            (
                with_source(json!({"type": "base64", "media_type": "application/pdf", "data": "x"})),
                "media_type",
            ),
            (with_source(json!({"type": "base64", "media_type": "image/png", "data": ""})), "empty"),
            (with_source(json!({"type": "file", "file_id": "x"})), "file_id"),
            (json!([hello(), assistant(json!([image()]))]), "cannot have"),
            (
                json!([
                    hello(),
                    assistant(json!([call("a")])),
                    user(json!([{"type": "tool_result", "tool_use_id": "a", "content": [call("b")]}]))
                ]),
                "only hold",
            ),
        ] {
            let refusal = request(&with_messages(messages.clone())).unwrap_err();
            assert!(refusal.contains(expected), "{messages}: {refusal}");
        }
    }

    #[test]
    fn requests_the_api_would_refuse_are_refused() {
        let tool = |name: &str| json!({"name": name, "description": "", "input_schema": {"type": "object"}});
        let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
        for (field, value, expected) in [
            ("model", json!(""), "model"),
            ("max_tokens", json!(0), "max_tokens"),
            ("input_error", json!("x"), "Extra inputs"),
            ("system", json!([{"type": "text", "text": ""}]), "non-whitespace"),
            ("system", json!([marked, marked, marked, marked, marked]), "Found 5"),
            ("tools", json!([tool("a"), tool("a")]), "unique"),
            ("tools", json!([tool("a b")]), "pattern"),
            ("tools", json!([{"name": "a", "input_schema": {}}]), "input_schema"),
            ("thinking", json!({"type": "enabled", "budget_tokens": 10}), "1024"),
        ] {
            let mut body = with_messages(json!([{"role": "user", "content": "hello"}]));
            body[field] = value;
            let refusal = request(&body).unwrap_err();
            assert!(refusal.contains(expected), "{field}: {refusal}");
        }
        assert!(request(&json!([])).is_err());
    }
}
