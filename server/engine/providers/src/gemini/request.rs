//! Requests as Gemini's format wants them.
//!
//! Rule: the same request always gives the same bytes, and the parts that change come last, so that the
//! provider's implicit cache finds the rest again. Roles alternate, and the results of an answer's calls come together
//! right after it.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json};

use super::sealed::GeminiSeal;
use crate::exchange::body::BodyContent;
use crate::unseen;
use kode_base::effort::Effort;
use kode_model::{Block, Capabilities, Image, InputSchema, Message, ModelRequest, Role, Wire};

/// The signature that Google documents for calls that no Gemini model made, or whose signature is lost.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// How the names of models begin that take a thinking budget in tokens; later ones take a level.
const BUDGET_MODELS: [&str; 2] = ["gemini-1", "gemini-2"];

/// GeminiPart of the names of models that know a medium thinking level.
const MEDIUM_MODEL: &str = "flash";

/// Thinking budgets in tokens, from low to high effort.
const BUDGETS: [u32; 3] = [1_024, 8_192, 24_576];

/// The result of a call that gave no text.
const NO_TEXT: &str = "(no output)";

/// How one model wants to be asked.
#[derive(Clone, Copy)]
pub(super) struct GeminiDialect<'a> {
    pub(super) model: &'a str,
    /// The host that serves it.
    pub(super) host: &'a str,
    pub(super) capabilities: Capabilities,
}

/// The body of a request.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<GeminiTurn<'a>>,
    contents: Vec<GeminiTurn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<GeminiTools<'a>>,
    generation_config: GenerationConfig,
}

impl BodyContent for GeminiBody<'_> {}

#[derive(Serialize)]
struct GeminiTurn<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<GeminiPart<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiPart<'a> {
    #[serde(flatten)]
    data: PartContent<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<Cow<'a, str>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum PartContent<'a> {
    Text(Cow<'a, str>),
    #[serde(rename_all = "camelCase")]
    InlineData {
        mime_type: &'a str,
        data: &'a str,
    },
    FunctionCall {
        id: &'a str,
        name: &'a str,
        args: &'a Value,
    },
    FunctionResponse {
        id: &'a str,
        name: &'a str,
        response: Value,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiTools<'a> {
    function_declarations: Vec<GeminiDeclaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeminiDeclaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a InputSchema,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    max_output_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u32>,
}

impl<'a> From<PartContent<'a>> for GeminiPart<'a> {
    fn from(data: PartContent<'a>) -> Self {
        Self { data, thought: None, thought_signature: None }
    }
}

/// The body that asks for the answer to `request`.
pub(super) fn body<'a>(dialect: GeminiDialect<'a>, request: &'a ModelRequest) -> GeminiBody<'a> {
    let capabilities = dialect.capabilities;
    let mut contents = contents(dialect, &request.messages);
    let system: Vec<GeminiPart<'_>> = request.system.iter().filter_map(|text| text_part(text)).collect();
    let mut system_instruction = None;
    if capabilities.system_message {
        system_instruction = (!system.is_empty()).then_some(GeminiTurn { role: None, parts: system });
    } else {
        let first = contents.first_mut().filter(|first| first.role == Some("user"));
        match first {
            Some(first) => drop(first.parts.splice(..0, system)),
            None => push(&mut contents, "user", system),
        }
    }
    push(&mut contents, "user", request.reminders.iter().filter_map(|text| text_part(text)).collect());
    let declarations: Vec<_> = request
        .tools
        .iter()
        .filter(|_| capabilities.tool_use)
        .map(|tool| GeminiDeclaration {
            name: &tool.name,
            description: &tool.description,
            parameters_json_schema: &tool.input_schema,
        })
        .collect();
    let tools = (!declarations.is_empty()).then_some(GeminiTools { function_declarations: declarations });
    GeminiBody {
        system_instruction,
        contents,
        tools: tools.into_iter().collect(),
        generation_config: GenerationConfig {
            max_output_tokens: request.max_tokens,
            temperature: request.temperature.filter(|_| capabilities.temperature),
            top_p: request.top_p.filter(|_| capabilities.temperature),
            thinking_config: capabilities.thinking.then(|| thinking(dialect.model, request.effort)),
        },
    }
}

fn thinking(model: &str, effort: Option<Effort>) -> ThinkingConfig {
    let name = model.rsplit('/').next().unwrap_or(model);
    let [low, medium, high] = BUDGETS;
    let takes_budget = BUDGET_MODELS.iter().any(|begin| name.starts_with(begin));
    let budget = effort.filter(|_| takes_budget).map(|effort| match effort {
        Effort::Low => low,
        Effort::Medium => medium,
        Effort::High => high,
    });
    let level = effort.filter(|_| !takes_budget).and_then(|effort| match effort {
        Effort::Low => Some("low"),
        // Without one in the middle, the model's own is.
        Effort::Medium => name.contains(MEDIUM_MODEL).then_some("medium"),
        Effort::High => Some("high"),
    });
    ThinkingConfig { include_thoughts: true, thinking_level: level, thinking_budget: budget }
}

fn contents<'a>(dialect: GeminiDialect<'_>, history: &'a [Message]) -> Vec<GeminiTurn<'a>> {
    let mut contents = Vec::with_capacity(history.len() + 1);
    // Results name the function that they are of.
    let mut names: HashMap<&str, &str> = HashMap::new();
    for message in history {
        match message.role {
            Role::User => push(&mut contents, "user", user(message, &names, dialect.capabilities)),
            Role::Assistant => {
                names.extend(message.content.iter().filter_map(|block| match block {
                    Block::ToolUse { id, name, .. } => Some((id.as_str(), name.as_str())),
                    _ => None,
                }));
                push(&mut contents, "model", model(dialect, message));
            }
        }
    }
    contents
}

/// Adds parts to the last content if it is of that role, else as a content of its own.
fn push<'a>(contents: &mut Vec<GeminiTurn<'a>>, role: &'static str, parts: Vec<GeminiPart<'a>>) {
    match contents.last_mut() {
        _ if parts.is_empty() => {}
        Some(last) if last.role == Some(role) => last.parts.extend(parts),
        Some(_) | None => contents.push(GeminiTurn { role: Some(role), parts }),
    }
}

/// Results first, in the order of their calls; then their pictures, and what else the user says.
fn user<'a>(
    message: &'a Message,
    names: &HashMap<&str, &'a str>,
    capabilities: Capabilities,
) -> Vec<GeminiPart<'a>> {
    let (mut results, mut rest) = (Vec::new(), Vec::new());
    for block in &message.content {
        match block {
            Block::ToolResult { tool_use_id, content, images, is_error } => {
                let text = unseen::noted(content, images, capabilities);
                let text = if text.trim().is_empty() { NO_TEXT.into() } else { text };
                let field = if *is_error { "error" } else { "output" };
                let name = names.get(tool_use_id.as_str()).copied().unwrap_or_default();
                let response = json!({ field: text });
                results.push(PartContent::FunctionResponse { id: tool_use_id, name, response }.into());
                rest.extend(unseen::taken(images, capabilities).map(picture));
            }
            Block::Text { text } => rest.extend(text_part(text)),
            Block::Image(image) if capabilities.takes(image) => rest.push(picture(image)),
            Block::Image(image) => rest.push(PartContent::Text(unseen::note(image).into()).into()),
            Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::ToolUse { .. } => {}
        }
    }
    results.extend(rest);
    results
}

/// The parts of an answer. Those that the model itself signed are the very parts it sent.
fn model<'a>(dialect: GeminiDialect<'_>, message: &'a Message) -> Vec<GeminiPart<'a>> {
    let origin = message.origin.as_ref();
    let is_own = origin.is_some_and(|origin| origin.is(Wire::Gemini, dialect.model, dialect.host));
    let mut parts = Vec::new();
    let mut sealed = None;
    let mut has_called = false;
    for block in &message.content {
        match block {
            Block::RedactedThinking { .. } if is_own => sealed = GeminiSeal::of(block),
            Block::Thinking { thinking, signature } if is_own && !signature.is_empty() => {
                parts.push(GeminiPart {
                    data: PartContent::Text(thinking.into()),
                    thought: Some(true),
                    thought_signature: Some(signature.into()),
                })
            }
            Block::Text { text } => match sealed.take() {
                Some(GeminiSeal::TextSignature { signature, tail }) => {
                    parts.extend(signed(text, signature, tail))
                }
                Some(GeminiSeal::CallSignature(_)) | None => parts.extend(text_part(text)),
            },
            Block::ToolUse { id, name, input, input_error: _ } => {
                let own = match sealed.take() {
                    Some(GeminiSeal::CallSignature(signature)) => Some(signature.into()),
                    Some(GeminiSeal::TextSignature { .. }) | None => None,
                };
                // One signature for each answer is enough: that of its first call.
                let wanted = dialect.capabilities.signed_calls && !has_called;
                let placeholder = wanted.then_some(Cow::Borrowed(NO_SIGNATURE));
                has_called = true;
                parts.push(GeminiPart {
                    thought_signature: own.or(placeholder),
                    ..PartContent::FunctionCall { id, name, args: input }.into()
                });
            }
            Block::Image(_)
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolResult { .. } => {}
        }
    }
    parts
}

/// A text whose last `tail` bytes were a part of their own with a signature.
fn signed(text: &str, signature: String, tail: usize) -> impl Iterator<Item = GeminiPart<'_>> {
    let (before, end) = match text.len().checked_sub(tail).and_then(|at| text.split_at_checked(at)) {
        Some(split) => split,
        None => ("", text),
    };
    let end =
        GeminiPart { thought_signature: Some(signature.into()), ..PartContent::Text(end.into()).into() };
    text_part(before).into_iter().chain(std::iter::once(end))
}

fn text_part(text: &str) -> Option<GeminiPart<'_>> {
    (!text.trim().is_empty()).then(|| PartContent::Text(text.into()).into())
}

fn picture(image: &Image) -> GeminiPart<'_> {
    PartContent::InlineData { mime_type: &image.media_type, data: &image.data }.into()
}
