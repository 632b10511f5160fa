//! Whatever a conversation went through, every adapter writes a request that its provider takes.
//!
//! Rule: what the providers document as refused is checked here, on histories of several models with gaps, cuts and
//! joined answers; an adapter that is added gets its check here as well.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use kode_model::{AnswerOrigin, Block, Image, Message, ModelRequest, Wire};
use kode_providers::{anthropic, chat, gemini, ollama, responses};

/// The model that is asked; others of that name speak another wire format.
pub const MODEL: &str = "gpt-5";

/// A message as it comes: from the user or a tool, or of this model, of others, or of unknown origin.
pub fn message() -> impl Strategy<Value = Message> {
    let origin = prop_oneof![
        3 => (0..9u8).prop_map(|id| origin(Wire::Responses, MODEL, Some(format!("resp_{id}")))),
        1 => Just(origin(Wire::Responses, "other", Some("resp_1".into()))),
        3 => Just(origin(Wire::AnthropicMessages, MODEL, None)),
        1 => Just(origin(Wire::ChatCompletions, MODEL, None)),
        2 => Just(origin(Wire::Gemini, MODEL, None)),
        1 => Just(origin(Wire::Ollama, MODEL, None)),
        1 => Just(None),
    ];
    let answer = origin.prop_flat_map(|origin| {
        let wire = origin.as_ref().map(|origin| origin.wire);
        prop::collection::vec(answer_block(wire), 0..6)
            .prop_map(move |content| Message { origin: origin.clone(), ..Message::assistant(content) })
    });
    prop_oneof![answer, prop::collection::vec(user_block(), 0..5).prop_map(Message::user)]
}

fn origin(wire: Wire, model: &str, response_id: Option<String>) -> Option<AnswerOrigin> {
    Some(AnswerOrigin { wire, model: model.to_owned(), host: None, response_id })
}

fn text() -> impl Strategy<Value = Block> {
    "[a ]{0,2}".prop_map(|text| Block::Text { text })
}

fn picture() -> Image {
    Image { media_type: "image/png".into(), data: "cA==".into(), text: None }
}

/// The output of a model, its reasoning in the form of its wire format.
fn answer_block(wire: Option<Wire>) -> impl Strategy<Value = Block> {
    let signature = if wire == Some(Wire::Responses) { "" } else { "[s]{0,1}" };
    let thinking =
        ("[a-z]{0,1}", signature).prop_map(|(thinking, signature)| Block::Thinking { thinking, signature });
    let sealed = (0..9u8).prop_map(move |id| {
        let data = match wire {
            Some(Wire::Responses) => {
                let item = json!({"type": "reasoning", "id": format!("rs_{id}"), "summary": [], "encrypted_content": "g"});
                item.to_string()
            }
            Some(Wire::Gemini) => {
                let signature = json!({"signature": "g", "tail": id});
                json!({"text_signature": signature}).to_string()
            }
            Some(Wire::ChatCompletions) => {
                let extra = json!({"google": {"thought_signature": "g"}});
                json!({"call": {"extra_content": extra}}).to_string()
            }
            Some(Wire::AnthropicMessages | Wire::Ollama) | None => "sealed".to_owned(),
        };
        Block::RedactedThinking { data }
    });
    let call = (0..6u8).prop_map(|id| Block::ToolUse {
        id: format!("call_{id}"),
        name: "Read".into(),
        input: json!({"a": 1}),
        input_error: None,
    });
    prop_oneof![3 => text(), 1 => thinking, 2 => sealed, 3 => call]
}

fn user_block() -> impl Strategy<Value = Block> {
    let result = (0..6u8, any::<bool>()).prop_map(|(id, pictured)| Block::ToolResult {
        tool_use_id: format!("call_{id}"),
        content: if pictured { String::new() } else { "done".into() },
        images: if pictured { vec![picture()] } else { Vec::new() },
        is_error: false,
    });
    prop_oneof![2 => text(), 1 => Just(Block::Image(picture())), 3 => result]
}

fn field<'a>(object: &'a Value, name: &str) -> &'a str {
    object[name].as_str().unwrap_or_default()
}

fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The ids in this field of the blocks of that type.
fn ids<'a>(blocks: &'a [Value], kind: &str, name: &str) -> Vec<&'a str> {
    blocks.iter().filter(|block| field(block, "type") == kind).map(|block| field(block, name)).collect()
}

fn messages_format(body: &Value) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in list(body, "messages").iter().enumerate() {
        let content = list(message, "content");
        let role = field(message, "role");
        let ensure = |holds: bool, what: &str| {
            if holds { Ok(()) } else { Err(format!("message {at}: {what}")) }
        };
        ensure(role == if at % 2 == 0 { "user" } else { "assistant" }, "roles alternate from the user on")?;
        ensure(!content.is_empty(), "there is content")?;
        let results = ids(content, "tool_result", "tool_use_id");
        ensure(results == open, "the calls before are answered, each once, and no others")?;
        ensure(
            ids(&content[..results.len()], "tool_result", "tool_use_id") == results,
            "results come first",
        )?;
        open = ids(content, "tool_use", "id");
        let thinks = |block: &Value| field(block, "type").ends_with("thinking");
        for block in content {
            let users = matches!(field(block, "type"), "tool_result" | "image");
            ensure(!users || role == "user", "results and pictures are the user's")?;
            let models = field(block, "type") == "tool_use" || thinks(block);
            ensure(!models || role == "assistant", "calls and reasoning are the model's")?;
            let blank = field(block, "type") == "text" && field(block, "text").trim().is_empty();
            ensure(!blank, "no text is blank")?;
            let unsigned = field(block, "type") == "thinking" && field(block, "signature").is_empty();
            ensure(!unsigned, "reasoning is signed")?;
            ensure(!field(block, "data").contains("rs_"), "reasoning is of this wire format")?;
        }
        ensure(!content.last().is_some_and(thinks), "reasoning is not the end")?;
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are not answered")) }
}

fn responses_format(body: &Value) -> Result<(), String> {
    let mut open: HashSet<&str> = HashSet::new();
    let items = list(body, "input");
    for (at, item) in items.iter().enumerate() {
        let next = items.get(at + 1).unwrap_or(&Value::Null);
        let ensure = |holds: bool, what: &str| {
            if holds { Ok(()) } else { Err(format!("item {at}: {what}")) }
        };
        match field(item, "type") {
            "message" => {
                let parts = list(item, "content");
                ensure(!parts.is_empty(), "there is content")?;
                for part in parts {
                    let of_model = field(part, "type") == "output_text";
                    ensure(
                        of_model == (field(item, "role") == "assistant"),
                        "parts are of the message's side",
                    )?;
                    let is_picture = field(part, "type") == "input_image";
                    ensure(is_picture || !field(part, "text").trim().is_empty(), "no text is blank")?;
                }
            }
            "reasoning" => {
                let followed = matches!(field(next, "type"), "reasoning" | "function_call")
                    || field(next, "role") == "assistant";
                ensure(followed, "an item of the same answer follows reasoning")?;
            }
            "function_call" => ensure(open.insert(field(item, "call_id")), "a call has an id of its own")?,
            "function_call_output" => {
                ensure(open.remove(field(item, "call_id")), "an output answers a call")?;
            }
            other => return Err(format!("item {at} is of the type {other:?}")),
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are not answered")) }
}

fn chat_format(body: &Value) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    let mut last_role = "";
    for (at, message) in list(body, "messages").iter().enumerate() {
        let ensure = |holds: bool, what: &str| {
            if holds { Ok(()) } else { Err(format!("message {at}: {what}")) }
        };
        let role = field(message, "role");
        ensure(role != "user" || last_role != "user", "what the user says in a row is one message")?;
        ensure(role == "tool" || open.is_empty(), "results follow their calls")?;
        match role {
            "user" => {
                let text = |part: &Value| {
                    field(part, "type") == "image_url" || !field(part, "text").trim().is_empty()
                };
                let parts = list(message, "content");
                let said = if parts.is_empty() {
                    !field(message, "content").trim().is_empty()
                } else {
                    parts.iter().all(text)
                };
                ensure(said, "no text is blank")?;
            }
            "assistant" => {
                open = list(message, "tool_calls").iter().map(|call| field(call, "id")).collect();
                let says = !field(message, "content").trim().is_empty();
                ensure(says || (message["content"].is_null() && !open.is_empty()), "there is content")?;
            }
            "tool" => {
                let answered = open.iter().position(|id| *id == field(message, "tool_call_id"));
                let answered = answered.ok_or_else(|| format!("message {at}: a result answers a call"))?;
                open.remove(answered);
                ensure(!field(message, "content").trim().is_empty(), "a result says something")?;
            }
            other => return Err(format!("message {at} has the role {other:?}")),
        }
        last_role = role;
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are not answered")) }
}

fn gemini_format(body: &Value) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (at, content) in list(body, "contents").iter().enumerate() {
        let parts = list(content, "parts");
        let ensure = |holds: bool, what: &str| {
            if holds { Ok(()) } else { Err(format!("content {at}: {what}")) }
        };
        let of = |field: &'static str| {
            let found = parts.iter().map(move |part| &part[field]).filter(|data| !data.is_null());
            found.map(|data| data["id"].as_str().unwrap_or_default()).collect::<Vec<_>>()
        };
        let role = field(content, "role");
        ensure(role == if at % 2 == 0 { "user" } else { "model" }, "roles alternate from the user on")?;
        ensure(!parts.is_empty(), "there are parts")?;
        let results = of("functionResponse");
        ensure(results == open, "the calls before are answered, each once, and no others")?;
        let first = parts.iter().take(results.len());
        ensure(
            first.filter(|part| !part["functionResponse"].is_null()).count() == results.len(),
            "results come first",
        )?;
        open = of("functionCall");
        ensure(open.is_empty() || role == "model", "calls are the model's")?;
        for part in parts {
            let is_signed = !part["thoughtSignature"].is_null();
            let blank = part["text"].as_str().is_some_and(|text| text.trim().is_empty());
            ensure(!blank || is_signed, "no text is blank")?;
            let named = part["functionResponse"]["name"].as_str().is_none_or(|name| !name.is_empty());
            ensure(named, "a result names its function")?;
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are not answered")) }
}

fn ollama_format(body: &Value) -> Result<(), String> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in list(body, "messages").iter().enumerate() {
        let ensure = |holds: bool, what: &str| {
            if holds { Ok(()) } else { Err(format!("message {at}: {what}")) }
        };
        let says = !field(message, "content").trim().is_empty();
        let calls = list(message, "tool_calls");
        ensure(field(message, "role") == "tool" || open.is_empty(), "results follow their calls")?;
        ensure(says || !calls.is_empty() || !list(message, "images").is_empty(), "there is content")?;
        match field(message, "role") {
            "assistant" => open = calls.iter().map(|call| field(call, "id")).collect(),
            "tool" => {
                let answered = open.iter().position(|id| *id == field(message, "tool_call_id"));
                let answered = answered.ok_or_else(|| format!("message {at}: a result answers a call"))?;
                open.remove(answered);
            }
            _ => {}
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("{open:?} are not answered")) }
}

/// Whether every provider takes a request. The error names the problem and shows the body.
pub fn everywhere(request: &ModelRequest) -> Result<(), String> {
    for (body, check) in [
        (anthropic::body_json(MODEL, request), messages_format as fn(&Value) -> Result<(), String>),
        (responses::body_json(MODEL, request), responses_format),
        (chat::body_json(MODEL, request), chat_format),
        (gemini::body_json(MODEL, request), gemini_format),
        (ollama::body_json(MODEL, request), ollama_format),
    ] {
        check(&body).map_err(|what| format!("{what}: {body:#}"))?;
    }
    Ok(())
}
