//! Requests as the Chat Completions format wants them.
//!
//! Rule: the same request always gives the same bytes, and the parts that change come last, so that the
//! provider's prompt cache finds the rest again. Nothing is sent that the model's capabilities do not have.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use super::sealed::{ChatSeal, ProviderFields};
use crate::exchange::body::BodyContent;
use crate::unseen;
use crate::written::{MessageFacts, MessageList};
use kode_base::effort::Effort;
use kode_model::{
    Block, Capabilities, History, Image, InputSchema, Message, ModelRequest, Role, ToolChoice, Wire,
    WrittenMessage,
};

/// The separator of texts that become one.
const BLANK_LINE: &str = "\n\n";

/// The result of a call that gave no text: some servers refuse an empty one.
const NO_TEXT: &str = "(no output)";

/// The result of a call that gave pictures alone; they follow in a message of their own.
const PICTURES_FOLLOW: &str = "(see the picture that follows)";

/// The data that goes back with an answer beside its texts and calls.
#[derive(Clone, Copy)]
struct ReturnedParts {
    /// The model itself gave the answer, at this host: its sealed data goes back.
    is_own: bool,
    /// The server wants reasoning back. Of another model's answer it gets an empty one.
    reasoning: bool,
    /// The server refuses calls without a signature.
    signed_calls: bool,
}

/// How one model wants to be asked.
#[derive(Clone, Copy)]
pub(super) struct ChatDialect<'a> {
    /// Its name.
    pub(super) model: &'a str,
    /// The host that serves it.
    pub(super) host: &'a str,
    pub(super) capabilities: Capabilities,
    /// Whether to ask for token counts at the end of a stream.
    pub(super) include_usage: bool,
    /// Whether the server keeps its cache by a key.
    pub(super) takes_cache_key: bool,
}

/// The body of a request.
#[derive(Serialize)]
pub(super) struct ChatBody<'a> {
    model: &'a str,
    messages: MessageList<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ChatTool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<Effort>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
}

impl BodyContent for ChatBody<'_> {
    fn written(&self) -> &[WrittenMessage] {
        &self.messages.written
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum ChatMessage<'a> {
    System {
        content: String,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        reasoning_details: Vec<Value>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<RequestCall<'a>>,
        #[serde(flatten)]
        extra: ProviderFields,
    },
    Tool {
        tool_call_id: &'a str,
        content: Cow<'a, str>,
    },
}

/// Texts alone are one text, which every server takes.
#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    Text(String),
    Parts(Vec<ChatPart<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatPart<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
    File { file: ChatFile },
}

#[derive(Serialize)]
struct ChatFile {
    filename: &'static str,
    file_data: String,
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct RequestCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
    #[serde(flatten)]
    extra: ProviderFields,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: String,
}

#[derive(Serialize)]
struct ChatTool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: DeclaredFunction<'a>,
}

#[derive(Serialize)]
struct DeclaredFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a InputSchema,
}

/// The body that asks for the answer to `request`.
pub(super) fn body<'a>(dialect: ChatDialect<'a>, request: &'a ModelRequest) -> ChatBody<'a> {
    let capabilities = dialect.capabilities;
    let mut messages = messages(dialect, &request.messages);
    let system = joined(request.system.iter().map(String::as_str));
    if let Some(system) = system {
        if capabilities.system_message {
            messages.first.push(ChatMessage::System { content: system });
        } else {
            prepend(&mut messages.new, system);
        }
    }
    if let Some(reminders) = joined(request.reminders.iter().map(String::as_str)) {
        say(&mut messages.new, vec![ChatPart::Text { text: reminders.into() }], request.messages.len());
    }
    let tools = request.tools.iter().filter(|_| capabilities.tool_use).map(|tool| ChatTool {
        kind: "function",
        function: DeclaredFunction {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.input_schema,
        },
    });
    let tools: Vec<_> = tools.collect();
    let tool_choice = (request.tool_choice == ToolChoice::None && !tools.is_empty()).then_some("none");
    let include_usage = capabilities.streaming && dialect.include_usage;
    let limit = Some(request.max_tokens);
    ChatBody {
        model: dialect.model,
        messages,
        tools,
        tool_choice,
        stream: capabilities.streaming,
        stream_options: include_usage.then_some(StreamOptions { include_usage }),
        max_tokens: limit.filter(|_| !capabilities.max_completion_tokens),
        max_completion_tokens: limit.filter(|_| capabilities.max_completion_tokens),
        temperature: request.temperature.filter(|_| capabilities.temperature),
        top_p: request.top_p.filter(|_| capabilities.temperature),
        reasoning_effort: request.effort.filter(|_| capabilities.thinking),
        prompt_cache_key: request.cache_key.as_deref().filter(|_| dialect.takes_cache_key),
    }
}

/// A message of a request, and the index behind its newest message of the history.
type NewMessage<'a> = (ChatMessage<'a>, usize);

/// The messages with something in them. What the user says in a row is one message: some servers want roles to
/// alternate. Those before the newest answer are kept for the next request.
fn messages<'a>(dialect: ChatDialect<'a>, history: &'a History) -> MessageList<ChatMessage<'a>> {
    let model = (dialect.model, dialect.host);
    let mut list = MessageList::of(history, Wire::ChatCompletions, model, dialect.capabilities);
    let called = rounds_with_calls(history);
    for (at, (message, called)) in history.iter().zip(called).enumerate().skip(list.start()) {
        match message.role {
            Role::User => push_user(&mut list.new, message, (dialect.capabilities, at + 1)),
            Role::Assistant => {
                let returned = ReturnedParts {
                    is_own: is_own(dialect, message),
                    reasoning: dialect.capabilities.sends_reasoning_back && called,
                    signed_calls: dialect.capabilities.signed_calls,
                };
                list.new.extend(assistant(message, returned).map(|message| (message, at + 1)));
            }
        }
    }
    if dialect.capabilities.system_message {
        let is_answer = |(message, _): &NewMessage<'_>| matches!(message, ChatMessage::Assistant { .. });
        let newest = list.new.iter().rposition(is_answer).unwrap_or_default();
        // Nothing is asked about them later.
        list.keep(history, newest, |_| MessageFacts { role: Role::User, note: false });
    }
    list
}

/// For each message whether tools were called between the words of the user that it is between. Models that want
/// their reasoning back want that of all such rounds, also of those that are over. Only the newest answer of a round can be without a
/// call, so that no later message changes this for those before.
fn rounds_with_calls(history: &[Message]) -> Vec<bool> {
    let begins_round = |message: &Message| {
        message.role == Role::User
            && message.content.iter().any(|block| !matches!(block, Block::ToolResult { .. }))
    };
    let calls =
        |message: &Message| message.content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
    let mut called = Vec::with_capacity(history.len());
    let mut rest = history;
    while !rest.is_empty() {
        let length = rest.iter().skip(1).position(begins_round).map_or(rest.len(), |next| next + 1);
        let (round, after) = rest.split_at(length);
        called.resize(called.len() + length, round.iter().any(calls));
        rest = after;
    }
    called
}

/// Whether a message is this model's own: reasoning and signatures are of no use to another one.
fn is_own(dialect: ChatDialect<'_>, message: &Message) -> bool {
    let origin = message.origin.as_ref();
    origin.is_some_and(|origin| origin.is(Wire::ChatCompletions, dialect.model, dialect.host))
}

/// Results first, each a message of its own; then their pictures and whatever else the user says, as one message.
fn push_user<'a>(
    messages: &mut Vec<NewMessage<'a>>,
    message: &'a Message,
    (capabilities, end): (Capabilities, usize),
) {
    let mut said = Vec::new();
    for block in &message.content {
        let Block::ToolResult { tool_use_id, content, images, is_error: _ } = block else { continue };
        let text = unseen::noted(content, images, capabilities);
        let content = if !text.trim().is_empty() {
            text
        } else if images.is_empty() {
            NO_TEXT.into()
        } else {
            PICTURES_FOLLOW.into()
        };
        messages.push((ChatMessage::Tool { tool_call_id: tool_use_id, content }, end));
        said.extend(unseen::taken(images, capabilities).map(picture));
    }
    said.extend(message.content.iter().filter_map(|block| match block {
        Block::Text { text } => text_part(text),
        Block::Image(image) if capabilities.takes(image) => Some(picture(image)),
        Block::Image(image) => Some(ChatPart::Text { text: unseen::note(image).into() }),
        Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. } => None,
    }));
    say(messages, said, end);
}

/// Adds what the user says to the last message, if that is the user's, or as a new one; `end` is behind it in the history.
fn say<'a>(messages: &mut Vec<NewMessage<'a>>, said: Vec<ChatPart<'a>>, end: usize) {
    if said.is_empty() {
        return;
    }
    let last = messages.pop_if(|(last, _)| matches!(last, ChatMessage::User { .. }));
    let mut parts = match last.map(|(last, _)| last) {
        Some(ChatMessage::User { content: UserContent::Text(text) }) => {
            vec![ChatPart::Text { text: text.into() }]
        }
        Some(ChatMessage::User { content: UserContent::Parts(parts) }) => parts,
        Some(ChatMessage::System { .. } | ChatMessage::Assistant { .. } | ChatMessage::Tool { .. })
        | None => Vec::new(),
    };
    parts.extend(said);
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            ChatPart::Text { text } => Some(text.as_ref()),
            ChatPart::ImageUrl { .. } | ChatPart::File { .. } => None,
        })
        .collect();
    let content = match texts {
        Some(texts) => UserContent::Text(texts.join(BLANK_LINE)),
        None => UserContent::Parts(parts),
    };
    messages.push((ChatMessage::User { content }, end));
}

/// Puts the system prompt before what the user says first, for models without a place for it.
fn prepend(messages: &mut Vec<NewMessage<'_>>, system: String) {
    match messages.first_mut().map(|(first, _)| first) {
        Some(ChatMessage::User { content: UserContent::Text(text) }) => {
            *text = format!("{system}{BLANK_LINE}{text}");
        }
        Some(ChatMessage::User { content: UserContent::Parts(parts) }) => match parts.first_mut() {
            Some(ChatPart::Text { text }) => *text = format!("{system}{BLANK_LINE}{text}").into(),
            Some(ChatPart::ImageUrl { .. } | ChatPart::File { .. }) | None => {
                parts.insert(0, ChatPart::Text { text: system.into() })
            }
        },
        Some(ChatMessage::System { .. } | ChatMessage::Assistant { .. } | ChatMessage::Tool { .. })
        | None => {
            messages.insert(0, (ChatMessage::User { content: UserContent::Text(system) }, 0));
        }
    }
}

/// An answer of the model; none if nothing of it can be sent.
fn assistant(message: &Message, returned: ReturnedParts) -> Option<ChatMessage<'_>> {
    let mut texts = Vec::new();
    let mut thoughts = Vec::new();
    let mut tool_calls: Vec<RequestCall<'_>> = Vec::new();
    let (mut of_message, mut of_call) = (ProviderFields::default(), ProviderFields::default());
    let mut reasoning_details = Vec::new();
    for block in &message.content {
        match block {
            Block::Text { text } => texts.push(text.as_str()),
            Block::Thinking { thinking, .. } => thoughts.push(thinking.as_str()),
            Block::ToolUse { id, name, input, input_error: _ } => {
                let extra = std::mem::take(&mut of_call);
                // One signature for each answer is enough: that of its first call.
                let wants_signature = returned.signed_calls && tool_calls.is_empty();
                tool_calls.push(RequestCall {
                    id,
                    kind: "function",
                    function: CalledFunction { name, arguments: input.to_string() },
                    extra: if wants_signature { extra.signed() } else { extra },
                });
            }
            Block::RedactedThinking { .. } if returned.is_own => match ChatSeal::of(block) {
                Some(ChatSeal::Call(extra)) => of_call = extra,
                Some(ChatSeal::Message(extra)) => of_message.merge(extra),
                Some(ChatSeal::ReasoningDetails(details)) => reasoning_details.extend(details),
                None => {}
            },
            Block::Image(_) | Block::RedactedThinking { .. } | Block::ToolResult { .. } => {}
        }
    }
    let content = joined(texts);
    if content.is_none() && tool_calls.is_empty() {
        return None;
    }
    let empty = || (!tool_calls.is_empty()).then(String::new);
    let reasoning_content = match (returned.reasoning, returned.is_own) {
        (true, true) => joined(thoughts).or_else(empty),
        (true, false) => empty(),
        (false, _) => None,
    };
    let extra = of_message;
    Some(ChatMessage::Assistant { content, reasoning_content, reasoning_details, tool_calls, extra })
}

/// The texts with something in them, with a blank line between them; none if none exist.
fn joined<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.trim().is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join(BLANK_LINE))
}

fn text_part(text: &str) -> Option<ChatPart<'_>> {
    (!text.trim().is_empty()).then_some(ChatPart::Text { text: text.into() })
}

fn picture<'a>(image: &Image) -> ChatPart<'a> {
    let url = format!("data:{};base64,{}", image.media_type, image.data);
    if image.is_pdf() {
        return ChatPart::File { file: ChatFile { filename: unseen::FILE_NAME, file_data: url } };
    }
    ChatPart::ImageUrl { image_url: ImageUrl { url } }
}

#[cfg(test)]
mod tests;
