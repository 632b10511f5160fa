//! Requests as the Responses format wants them.
//!
//! Rule: the same request always gives the same bytes, so that the provider's prompt cache finds it again. Reasoning
//! goes back only to the model it came from, byte for byte, and never without an item of its answer after it; ids and
//! names that the API would refuse are rewritten the same way wherever they stand.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Serialize;
use serde_json::value::RawValue;

use super::OwnModel;
use super::item::FREEFORM_ARGUMENT;
use crate::exchange::body::BodyContent;
use crate::unseen;
use kode_base::effort::Effort;
use kode_model::{
    Block, Capabilities, Image, InputSchema, Message, ModelRequest, Role, ToolChoice, ToolDeclaration,
};

/// The smallest limit of output tokens the API accepts.
const MIN_OUTPUT_TOKENS: u32 = 16;

/// The longest id the API accepts from us, in bytes.
const MAX_ID_BYTES: usize = 64;

/// The longest function name the API accepts.
const MAX_NAME_CHARS: usize = 64;

/// The name of a function without a usable name.
const UNNAMED: &str = "unnamed";

/// The effort asked for when none is set.
const DEFAULT_EFFORT: Effort = Effort::Medium;

/// The features of the API that a request uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Features {
    /// Whether the server keeps the answer, to continue from.
    pub(super) stored: bool,
    /// Whether the model takes reasoning settings, and no sampling ones.
    pub(super) reasoning: bool,
    /// Whether a model without reasoning settings takes sampling ones.
    pub(super) sampling: bool,
    /// Whether summaries of the reasoning are asked for.
    pub(super) summaries: bool,
    /// Whether reasoning is asked for in the sealed form that can be sent back.
    pub(super) sealed: bool,
    /// Whether earlier reasoning is sent back.
    pub(super) reasoning_back: bool,
    /// Whether calls of tools with a grammar are free text.
    pub(super) freeform: bool,
    /// The input types of the model.
    pub(super) capabilities: Capabilities,
}

/// Where in the history the server can continue: it has everything up to that message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResponseBookmark<'a> {
    /// The server's id of the answer.
    pub(super) response: &'a str,
    /// The first message it does not have.
    pub(super) next: usize,
}

/// The body of a request.
#[derive(Serialize)]
pub(super) struct ResponsesBody<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_response_id: Option<&'a str>,
    input: Vec<InputItem<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<DeclaredTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<ReasoningOptions>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    store: bool,
    truncation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<Cow<'a, str>>,
    stream: bool,
}

impl BodyContent for ResponsesBody<'_> {}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum DeclaredTool<'a> {
    Function { name: &'a str, description: &'a str, parameters: &'a InputSchema, strict: bool },
    Custom { name: &'a str, description: &'a str, format: CallGrammar<'a> },
}

/// The grammar that the server holds the text of a call to.
#[derive(Serialize)]
#[serde(tag = "type", rename = "grammar")]
struct CallGrammar<'a> {
    syntax: &'static str,
    definition: &'a str,
}

#[derive(Serialize)]
struct ReasoningOptions {
    effort: Effort,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputItem<'a> {
    Message {
        role: Role,
        content: Vec<InputItemPart<'a>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        /// JSON as a string.
        arguments: String,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: CallOutput<'a>,
    },
    CustomToolCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a str,
    },
    CustomToolCallOutput {
        call_id: Cow<'a, str>,
        output: CallOutput<'a>,
    },
    /// A whole item as the server wrote it.
    #[serde(untagged)]
    Reasoning(&'a RawValue),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputItemPart<'a> {
    InputText { text: Cow<'a, str> },
    OutputText { text: &'a str },
    InputImage { image_url: String, detail: &'static str },
    InputFile { filename: &'static str, file_data: String },
}

#[derive(Serialize)]
#[serde(untagged)]
enum CallOutput<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<InputItemPart<'a>>),
}

/// The body that asks for the answer to `request`, from `bookmark` on if there is one.
pub(super) fn body<'a>(
    own: OwnModel<'a>,
    features: Features,
    request: &'a ModelRequest,
    bookmark: Option<ResponseBookmark<'a>>,
) -> ResponsesBody<'a> {
    let reasoning = features.reasoning.then(|| ReasoningOptions {
        effort: request.effort.unwrap_or(DEFAULT_EFFORT),
        summary: features.summaries.then_some("auto"),
    });
    // The API takes no sampling settings together with reasoning.
    let samples = features.sampling && !features.reasoning;
    let sampling = if samples { (request.temperature, request.top_p) } else { (None, None) };
    let begun = bookmark.map_or(0, |bookmark| bookmark.next);
    let sealed = features.reasoning && features.sealed;
    ResponsesBody {
        model: own.model,
        instructions: instructions(&request.system),
        previous_response_id: bookmark.map(|bookmark| bookmark.response),
        input: input(own, features, request, begun),
        tools: request.tools.iter().map(|tool| declared(tool, features.freeform)).collect(),
        tool_choice: (request.tool_choice == ToolChoice::None && !request.tools.is_empty()).then_some("none"),
        max_output_tokens: request.max_tokens.max(MIN_OUTPUT_TOKENS),
        temperature: sampling.0,
        top_p: sampling.1,
        reasoning,
        include: if sealed { &["reasoning.encrypted_content"] } else { &[] },
        store: features.stored,
        truncation: "disabled",
        prompt_cache_key: request.cache_key.as_deref().map(short_id),
        stream: true,
    }
}

fn instructions(system: &[String]) -> Option<String> {
    let parts: Vec<&str> = system.iter().map(String::as_str).filter(|text| is_said(text)).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

fn declared(tool: &ToolDeclaration, freeform: bool) -> DeclaredTool<'_> {
    let ToolDeclaration { name, description, input_schema: parameters, grammar } = tool;
    match grammar.filter(|_| freeform) {
        Some(definition) => {
            DeclaredTool::Custom { name, description, format: CallGrammar { syntax: "lark", definition } }
        }
        // Strict functions may have no optional arguments, and ours have some.
        None => DeclaredTool::Function { name, description, parameters, strict: false },
    }
}

/// The calls of a history that are free text, by their ids.
#[derive(Default)]
struct FreeformCalls<'a>(HashMap<&'a str, &'a str>);

impl<'a> FreeformCalls<'a> {
    fn of(request: &'a ModelRequest) -> Self {
        let is_freeform =
            |name: &str| request.tools.iter().any(|tool| tool.name == name && tool.grammar.is_some());
        let blocks = request.messages.iter().flat_map(|message| &message.content);
        let calls = blocks.filter_map(|block| match block {
            Block::ToolUse { id, name, input, .. } if is_freeform(name) => {
                let text = input.get(FREEFORM_ARGUMENT)?.as_str()?;
                (input.as_object()?.len() == 1).then_some((id.as_str(), text))
            }
            Block::ToolUse { .. }
            | Block::Text { .. }
            | Block::Image(_)
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolResult { .. } => None,
        });
        Self(calls.collect())
    }

    fn text(&self, id: &str) -> Option<&'a str> {
        self.0.get(id).copied()
    }
}

/// The items from message `begun` on.
fn input<'a>(
    own: OwnModel<'_>,
    features: Features,
    request: &'a ModelRequest,
    begun: usize,
) -> Vec<InputItem<'a>> {
    let messages = &request.messages[begun..];
    let calls = if features.freeform { FreeformCalls::of(request) } else { FreeformCalls::default() };
    let mut items = Vec::with_capacity(messages.len());
    for message in messages {
        match message.role {
            Role::User => say(&mut items, message, &calls, features.capabilities),
            Role::Assistant => {
                answer(&mut items, message, &calls, features.reasoning_back && own.gave(message));
            }
        }
    }
    let reminders = request.reminders.iter().filter(|text| is_said(text));
    for reminder in reminders {
        push_part(&mut items, Role::User, InputItemPart::InputText { text: reminder.into() });
    }
    items
}

/// The texts of the user and the tools: results first, so that each is close to its call.
fn say<'a>(
    items: &mut Vec<InputItem<'a>>,
    message: &'a Message,
    calls: &FreeformCalls<'a>,
    capabilities: Capabilities,
) {
    let results = message.content.iter().filter_map(|block| match block {
        Block::ToolResult { tool_use_id, content, images, is_error: _ } => {
            let output = output(content, images, capabilities);
            let call_id = short_id(tool_use_id);
            Some(match calls.text(tool_use_id) {
                Some(_) => InputItem::CustomToolCallOutput { call_id, output },
                None => InputItem::FunctionCallOutput { call_id, output },
            })
        }
        Block::Text { .. }
        | Block::Image(_)
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. } => None,
    });
    items.extend(results);
    for block in &message.content {
        match block {
            Block::Text { text } if is_said(text) => {
                push_part(items, Role::User, InputItemPart::InputText { text: text.into() });
            }
            Block::Image(image) if capabilities.takes(image) => push_part(items, Role::User, picture(image)),
            Block::Image(image) => {
                push_part(items, Role::User, InputItemPart::InputText { text: unseen::note(image).into() });
            }
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolUse { .. }
            | Block::ToolResult { .. } => {}
        }
    }
}

/// The model's text. The API wants an item of the same answer after each one of reasoning, so reasoning waits for
/// what follows it.
fn answer<'a>(
    items: &mut Vec<InputItem<'a>>,
    message: &'a Message,
    calls: &FreeformCalls<'a>,
    reasoning_back: bool,
) {
    let mut waiting = Vec::new();
    // Two answers in a row are two messages.
    let mut joins = false;
    for block in &message.content {
        match block {
            Block::Text { text } if is_said(text) => {
                joins &= waiting.is_empty();
                items.append(&mut waiting);
                if joins {
                    push_part(items, Role::Assistant, InputItemPart::OutputText { text });
                } else {
                    items.push(InputItem::Message {
                        role: Role::Assistant,
                        content: vec![InputItemPart::OutputText { text }],
                    });
                }
                joins = true;
            }
            Block::ToolUse { id, name, input, input_error: _ } => {
                items.append(&mut waiting);
                let (call_id, name) = (short_id(id), function_name(name));
                items.push(match calls.text(id) {
                    Some(input) => InputItem::CustomToolCall { call_id, name, input },
                    None => InputItem::FunctionCall { call_id, name, arguments: input.to_string() },
                });
                joins = false;
            }
            Block::RedactedThinking { data } if reasoning_back => {
                // An item of another type cannot be sent back.
                if let Ok(item) = serde_json::from_str::<&RawValue>(data) {
                    waiting.push(InputItem::Reasoning(item));
                }
            }
            // The shown form of reasoning is for people.
            Block::Text { .. }
            | Block::Image(_)
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolResult { .. } => {}
        }
    }
}

/// Adds a part to the last item if that is a message of the same role, else as a message of its own.
fn push_part<'a>(items: &mut Vec<InputItem<'a>>, whose: Role, part: InputItemPart<'a>) {
    match items.last_mut() {
        Some(InputItem::Message { role, content }) if *role == whose => content.push(part),
        Some(
            InputItem::Message { .. }
            | InputItem::FunctionCall { .. }
            | InputItem::FunctionCallOutput { .. }
            | InputItem::CustomToolCall { .. }
            | InputItem::CustomToolCallOutput { .. }
            | InputItem::Reasoning(_),
        )
        | None => items.push(InputItem::Message { role: whose, content: vec![part] }),
    }
}

fn output<'a>(content: &'a str, images: &'a [Image], capabilities: Capabilities) -> CallOutput<'a> {
    let text = unseen::noted(content, images, capabilities);
    let mut taken = unseen::taken(images, capabilities).map(picture).peekable();
    if taken.peek().is_none() {
        return CallOutput::Text(text);
    }
    let text = is_said(&text).then_some(InputItemPart::InputText { text });
    CallOutput::Parts(text.into_iter().chain(taken).collect())
}

fn picture(image: &Image) -> InputItemPart<'_> {
    let url = format!("data:{};base64,{}", image.media_type, image.data);
    if image.is_pdf() {
        return InputItemPart::InputFile { filename: unseen::FILE_NAME, file_data: url };
    }
    InputItemPart::InputImage { image_url: url, detail: "auto" }
}

fn is_said(text: &str) -> bool {
    !text.trim().is_empty()
}

/// An id; one that is too long, as other providers give to calls, keeps its beginning and gets a hash.
fn short_id(id: &str) -> Cow<'_, str> {
    const HASH_DIGITS: usize = 16;
    if id.len() <= MAX_ID_BYTES {
        return Cow::Borrowed(id);
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let mut end = MAX_ID_BYTES - HASH_DIGITS - 1;
    while !id.is_char_boundary(end) {
        end -= 1;
    }
    Cow::Owned(format!("{}-{:0HASH_DIGITS$x}", &id[..end], hasher.finish()))
}

/// The name of a called function. Models also call what there is not, by names the API does not take back.
fn function_name(name: &str) -> Cow<'_, str> {
    let is_fine = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    if name.is_empty() {
        Cow::Borrowed(UNNAMED)
    } else if name.len() <= MAX_NAME_CHARS && name.chars().all(is_fine) {
        Cow::Borrowed(name)
    } else {
        let fine = name.chars().map(|char| if is_fine(char) { char } else { '_' });
        Cow::Owned(fine.take(MAX_NAME_CHARS).collect())
    }
}

#[cfg(test)]
mod tests;
