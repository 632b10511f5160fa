//! Requests for a model that knows no tools.
//!
//! Rule: every call and every result becomes text in the form that the tool manual tells, always the same for the same
//! history. What users and tools say can neither end a result nor look like a call; nothing else of the request changes.

use std::borrow::Cow;
use std::collections::HashMap;

use super::reader::{CALL_CLOSE, CALL_OPEN};
use kode_model::{Block, History, Message, ModelRequest, Role, ToolDeclaration};

/// The model's instructions for calls of tools.
const MANUAL: &str = include_str!("../prompts/tool-manual.md");

/// The result of a call that gave no text.
const NO_TEXT: &str = "(no output)";

/// How the marks of calls and results begin, and how they look in quotes.
const MARKS: [(&str, &str); 4] = [
    ("<tool_call", "<\u{200b}tool_call"),
    ("</tool_call", "<\u{200b}/tool_call"),
    ("<tool_result", "<\u{200b}tool_result"),
    ("</tool_result", "<\u{200b}/tool_result"),
];

/// The request as the model gets it.
pub(super) fn reported(request: &ModelRequest) -> ModelRequest {
    let mut system = request.system.clone();
    if !request.tools.is_empty() {
        system.push(manual(&request.tools));
    }
    let mut names = HashMap::new();
    let messages = request.messages.iter().map(|message| Message {
        content: content(message, &mut names),
        ..Message { content: Vec::new(), role: message.role, origin: message.origin.clone() }
    });
    ModelRequest { system, messages: messages.collect(), tools: Vec::new(), ..settings(request) }
}

/// The request without what grows with the conversation.
fn settings(request: &ModelRequest) -> ModelRequest {
    ModelRequest {
        system: Vec::new(),
        messages: History::default(),
        reminders: request.reminders.iter().map(|text| neutral(text).into_owned()).collect(),
        tools: Vec::new(),
        tool_choice: request.tool_choice,
        max_tokens: request.max_tokens,
        temperature: request.temperature,
        top_p: request.top_p,
        effort: request.effort,
        cache_key: request.cache_key.clone(),
    }
}

/// The manual of these tools.
fn manual(tools: &[ToolDeclaration]) -> String {
    let mut manual = MANUAL.trim_end().to_owned();
    for ToolDeclaration { name, description, input_schema, grammar: _ } in tools {
        manual.push_str(&format!("\n\n## {name}\n\n{}\n\nArguments: {input_schema}", description.trim()));
    }
    manual
}

/// A text without marks: each gets a character into it that is not seen.
fn neutral(text: &str) -> Cow<'_, str> {
    let mut neutral = Cow::Borrowed(text);
    for (mark, quoted) in MARKS {
        if neutral.contains(mark) {
            neutral = neutral.replace(mark, quoted).into();
        }
    }
    neutral
}

/// The content of a message, texts and calls in a row as one text.
fn content<'a>(message: &'a Message, names: &mut HashMap<&'a str, &'a str>) -> Vec<Block> {
    let mut content: Vec<Block> = Vec::with_capacity(message.content.len());
    for block in &message.content {
        let (text, images): (Cow<'_, str>, _) = match block {
            Block::Text { text } if message.role == Role::User => (neutral(text), &[][..]),
            Block::Text { text } => (text.as_str().into(), &[][..]),
            Block::ToolUse { id, name, input, .. } => {
                names.insert(id, name);
                let written = input.get("invalid_arguments").and_then(serde_json::Value::as_str);
                let call = match written {
                    Some(written) => written.trim().to_owned(),
                    None => serde_json::json!({ "name": name, "arguments": input }).to_string(),
                };
                (format!("{CALL_OPEN}\n{call}\n{CALL_CLOSE}").into(), &[][..])
            }
            Block::ToolResult { tool_use_id, content, images, is_error } => {
                let name = names.get(tool_use_id.as_str()).copied().unwrap_or_default();
                let failed = if *is_error { " failed=\"true\"" } else { "" };
                let said = if content.trim().is_empty() { NO_TEXT.into() } else { neutral(content) };
                let result = format!("<tool_result name=\"{name}\"{failed}>\n{said}\n</tool_result>");
                (result.into(), images.as_slice())
            }
            Block::Image(_) | Block::Thinking { .. } | Block::RedactedThinking { .. } => {
                content.push(block.clone());
                continue;
            }
        };
        match content.last_mut() {
            Some(Block::Text { text: before }) => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            Some(
                Block::Image(_)
                | Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::ToolUse { .. }
                | Block::ToolResult { .. },
            )
            | None => content.push(Block::Text { text: text.into_owned() }),
        }
        content.extend(images.iter().cloned().map(Block::Image));
    }
    content
}
