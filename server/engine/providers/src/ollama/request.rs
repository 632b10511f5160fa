//! Requests as Ollama's chat format wants them.
//!
//! Rule: the same request always gives the same bytes, and the parts that change come last, so that the
//! server's prompt cache finds the rest again. Nothing is sent that the model's capabilities do not have.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use crate::exchange::body::BodyContent;
use crate::unseen;
use kode_base::effort::Effort;
use kode_model::{Block, Capabilities, Image, InputSchema, Message, ModelRequest, Role, Wire};

/// The separator of texts that become one.
const BLANK_LINE: &str = "\n\n";

/// The result of a call that gave no text.
const NO_TEXT: &str = "(no output)";

/// Part of the names of models that take an effort and not just a switch for thinking.
const EFFORT_MODEL: &str = "gpt-oss";

/// How one model wants to be asked.
#[derive(Clone, Copy)]
pub(super) struct OllamaDialect<'a> {
    pub(super) model: &'a str,
    /// The host that serves it.
    pub(super) host: &'a str,
    pub(super) capabilities: Capabilities,
    /// The context window to serve, in tokens.
    pub(super) context_window: u64,
}

/// The body of a request.
#[derive(Serialize)]
pub(super) struct OllamaBody<'a> {
    model: &'a str,
    messages: Vec<OllamaMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<WireTool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<OllamaThinking>,
    options: OllamaOptions,
    /// Whether a prompt that is too long loses its beginning, and an answer's context slides: neither.
    truncate: bool,
    shift: bool,
}

impl BodyContent for OllamaBody<'_> {}

#[derive(Serialize)]
#[serde(untagged)]
enum OllamaThinking {
    Switch(bool),
    Effort(Effort),
}

#[derive(Serialize)]
struct OllamaOptions {
    num_ctx: u64,
    num_predict: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
}

#[derive(Default, Serialize)]
struct OllamaMessage<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<OllamaCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct OllamaCall<'a> {
    id: &'a str,
    function: OllamaCallFunction<'a>,
}

#[derive(Serialize)]
struct OllamaCallFunction<'a> {
    index: usize,
    name: &'a str,
    arguments: &'a Value,
}

#[derive(Serialize)]
struct WireTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: OllamaFunction<'a>,
}

#[derive(Serialize)]
struct OllamaFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a InputSchema,
}

/// The body that asks for the answer to `request`.
pub(super) fn body<'a>(dialect: OllamaDialect<'a>, request: &'a ModelRequest) -> OllamaBody<'a> {
    let capabilities = dialect.capabilities;
    let mut messages = Vec::with_capacity(request.messages.len() + 2);
    let system = joined(request.system.iter().map(String::as_str));
    let role = if capabilities.system_message { "system" } else { "user" };
    messages.extend(system.map(|text| OllamaMessage {
        role,
        content: text.into(),
        ..OllamaMessage::default()
    }));
    let mut names = HashMap::new();
    for message in &request.messages {
        match message.role {
            Role::User => user(&mut messages, message, &names, capabilities),
            Role::Assistant => {
                let origin = message.origin.as_ref();
                let is_own =
                    origin.is_some_and(|origin| origin.is(Wire::Ollama, dialect.model, dialect.host));
                messages.extend(assistant(message, is_own, &mut names));
            }
        }
    }
    if let Some(reminders) = joined(request.reminders.iter().map(String::as_str)) {
        say(&mut messages, reminders.into(), Vec::new());
    }
    let tools = request.tools.iter().filter(|_| capabilities.tool_use).map(|tool| WireTool {
        kind: "function",
        function: OllamaFunction {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.input_schema,
        },
    });
    OllamaBody {
        model: dialect.model,
        messages,
        tools: tools.collect(),
        stream: capabilities.streaming,
        think: capabilities.thinking.then(|| match request.effort {
            Some(effort) if dialect.model.contains(EFFORT_MODEL) => OllamaThinking::Effort(effort),
            Some(_) | None => OllamaThinking::Switch(true),
        }),
        options: OllamaOptions {
            num_ctx: dialect.context_window,
            num_predict: request.max_tokens,
            temperature: request.temperature.filter(|_| capabilities.temperature),
            top_p: request.top_p.filter(|_| capabilities.temperature),
        },
        truncate: false,
        shift: false,
    }
}

/// Results first, each a message of its own with its pictures; then what else the user says, as one message.
fn user<'a>(
    messages: &mut Vec<OllamaMessage<'a>>,
    message: &'a Message,
    names: &HashMap<&str, &'a str>,
    capabilities: Capabilities,
) {
    // The format has no place for documents.
    let capabilities = Capabilities { pdf: false, ..capabilities };
    let (mut texts, mut pictures) = (Vec::new(), Vec::new());
    for block in &message.content {
        match block {
            Block::ToolResult { tool_use_id, content, images, is_error: _ } => {
                let text = unseen::noted(content, images, capabilities);
                messages.push(OllamaMessage {
                    role: "tool",
                    content: if text.trim().is_empty() { NO_TEXT.into() } else { text },
                    images: unseen::taken(images, capabilities).map(data).collect(),
                    tool_name: names.get(tool_use_id.as_str()).copied(),
                    tool_call_id: Some(tool_use_id),
                    ..OllamaMessage::default()
                });
            }
            Block::Text { text } => texts.push(Cow::Borrowed(text.as_str())),
            Block::Image(image) if capabilities.takes(image) => pictures.push(data(image)),
            Block::Image(image) => texts.push(unseen::note(image).into()),
            Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::ToolUse { .. } => {}
        }
    }
    let text = joined(texts.iter().map(AsRef::as_ref)).unwrap_or_default();
    if !text.is_empty() || !pictures.is_empty() {
        say(messages, text.into(), pictures);
    }
}

/// Adds what the user says to the last message, if that is the user's, or as a new one.
fn say<'a>(messages: &mut Vec<OllamaMessage<'a>>, text: Cow<'a, str>, images: Vec<&'a str>) {
    match messages.last_mut().filter(|last| last.role == "user") {
        Some(last) => {
            last.content = joined([last.content.as_ref(), text.as_ref()]).unwrap_or_default().into();
            last.images.extend(images);
        }
        None => {
            messages.push(OllamaMessage { role: "user", content: text, images, ..OllamaMessage::default() })
        }
    }
}

/// An answer of a model; none if nothing of it can be sent. The model's own thinking goes back with the calls that it led
/// to, as the templates of thinking models expect it.
fn assistant<'a>(
    message: &'a Message,
    is_own: bool,
    names: &mut HashMap<&'a str, &'a str>,
) -> Option<OllamaMessage<'a>> {
    let (mut texts, mut thoughts, mut tool_calls) = (Vec::new(), Vec::new(), Vec::new());
    for block in &message.content {
        match block {
            Block::Text { text } => texts.push(text.as_str()),
            Block::Thinking { thinking, .. } => thoughts.push(thinking.as_str()),
            Block::ToolUse { id, name, input, input_error: _ } => {
                names.insert(id, name);
                let index = tool_calls.len();
                tool_calls
                    .push(OllamaCall { id, function: OllamaCallFunction { index, name, arguments: input } });
            }
            Block::Image(_) | Block::RedactedThinking { .. } | Block::ToolResult { .. } => {}
        }
    }
    let content = joined(texts);
    if content.is_none() && tool_calls.is_empty() {
        return None;
    }
    let thinking = joined(thoughts).filter(|_| is_own && !tool_calls.is_empty());
    let content = content.unwrap_or_default().into();
    Some(OllamaMessage { role: "assistant", content, thinking, tool_calls, ..OllamaMessage::default() })
}

/// The texts with something in them, with a blank line between them; none if none exist.
fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join(BLANK_LINE))
}

fn data(image: &Image) -> &str {
    &image.data
}
