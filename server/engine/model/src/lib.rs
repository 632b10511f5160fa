//! Models behind one request and response form: messages, profiles, prices and limits.
//!
//! Rule: providers translate between these types and their wire and know nothing else of the engine; a tool call
//! in a response is complete, or it is not in the response.
//!
//! Must not know: wire formats, tools, sessions.
//! Used by: providers, config, tool, record, tools, mcp, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod catalog;
pub mod fallback;
mod history;
pub mod image;
pub mod models;
pub mod normalise;
pub mod price;
pub mod profile;
pub mod provider;
pub mod retry;
mod schema;

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use kode_base::capacity;
use kode_base::effort::Effort;
use kode_net::http::HttpError;

pub use history::{History, WrittenMessage};
pub use schema::InputSchema;

/// The author of the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The user, and the results of tools.
    User,
    /// The model.
    Assistant,
}

/// One message of the history, in the form every provider's adapter understands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author of the message.
    pub role: Role,
    /// Its content, in order.
    pub content: Vec<Block>,
    /// Which model gave it, where a model did: reasoning and stored state are only good for the one they came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<AnswerOrigin>,
}

impl Message {
    /// A message of the user, or results of tools.
    #[must_use]
    pub fn user(content: Vec<Block>) -> Self {
        Self { role: Role::User, content, origin: None }
    }

    /// An answer whose model is not known.
    #[must_use]
    pub fn assistant(content: Vec<Block>) -> Self {
        Self { role: Role::Assistant, content, origin: None }
    }
}

/// The wire formats that models are asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// Anthropic Messages.
    AnthropicMessages,
    /// OpenAI Chat Completions, and compatible servers.
    ChatCompletions,
    /// OpenAI Responses.
    Responses,
    /// Gemini's own format.
    Gemini,
    /// Ollama's own chat format.
    Ollama,
}

/// Which model gave an answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerOrigin {
    /// The wire format it was asked in.
    pub wire: Wire,
    /// Its name as the provider knows it.
    pub model: String,
    /// Host of the provider, with the port unless it is the scheme's own. `None` in journals of builds that did not
    /// record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The provider's id of the answer, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
}

impl AnswerOrigin {
    /// Whether the answer came from `model` at `host`, asked in `wire`. Sealed data goes back to that provider only.
    #[must_use]
    pub fn is(&self, wire: Wire, model: &str, host: &str) -> bool {
        self.wire == wire && self.model == model && self.host.as_deref().is_none_or(|own| own == host)
    }

    /// Whether both answers came from one model of one provider.
    #[must_use]
    pub fn is_same_provider(&self, other: &Self) -> bool {
        (self.wire, &self.model, &self.host) == (other.wire, &other.model, &other.host)
    }
}

/// A picture or a PDF document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Its type: `image/png`, `image/jpeg`, `image/gif`, `image/webp` or `application/pdf`.
    pub media_type: String,
    /// Its bytes in base64.
    pub data: String,
    /// The text of a document, page by page, or a note why it has none. Models that take no documents read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image(Image),
    /// The model's reasoning, which some providers want back unchanged.
    Thinking {
        /// The reasoning as shown.
        thinking: String,
        /// The provider's proof that it is unchanged; empty when there was none.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        signature: String,
    },
    /// Data that only its provider reads: sealed reasoning, or a signature. It precedes the text or call that it
    /// belongs to, and goes back to that provider alone.
    RedactedThinking {
        /// The sealed data, unchanged. Its format is the business of the adapter that received it.
        data: String,
    },
    /// A call of a tool.
    ToolUse {
        /// The model's id of the call.
        id: String,
        /// The tool's name as the model wrote it.
        name: String,
        /// The arguments; an object. Arguments that were no JSON object are kept as `{"invalid_arguments": "<raw>"}`.
        #[serde(deserialize_with = "capacity::read")]
        input: Value,
        /// Why the arguments could not be read, when they could not; such a call is answered by an error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input_error: Option<String>,
    },
    /// The result of a call.
    ToolResult {
        /// The call it answers.
        tool_use_id: String,
        /// The text for the model.
        content: String,
        /// Pictures that belong to it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        /// Whether the call failed, for whatever reason.
        #[serde(default)]
        is_error: bool,
    },
}

impl Block {
    /// The same block, without room for more in the arguments of a call.
    #[must_use]
    pub fn exact(self) -> Self {
        match self {
            Self::ToolUse { id, name, input, input_error } => {
                Self::ToolUse { id, name, input: capacity::exact(input), input_error }
            }
            other @ (Self::Text { .. }
            | Self::Image(_)
            | Self::Thinking { .. }
            | Self::RedactedThinking { .. }
            | Self::ToolResult { .. }) => other,
        }
    }

    /// The result of a call as text alone.
    #[must_use]
    pub fn result(call: impl Into<String>, content: impl Into<String>, is_error: bool) -> Self {
        Self::ToolResult { tool_use_id: call.into(), content: content.into(), images: Vec::new(), is_error }
    }
}

/// A tool as the model is notified of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDeclaration {
    /// Its name.
    pub name: String,
    /// Its purpose and use.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: InputSchema,
    /// A Lark grammar of its only argument `input`, for APIs that take a call as free text.
    pub grammar: Option<&'static str>,
}

/// Whether a model may call the tools of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// It is to call none. Sent only where that keeps the provider's cache of the conversation; elsewhere the caller refuses
    /// calls.
    None,
}

/// A request to a model of any provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelRequest {
    /// The parts of the system prompt, in order.
    pub system: Vec<String>,
    /// The history, oldest first, valid for sending: roles alternate, every call has its result.
    pub messages: History,
    /// Texts for this request alone, each a text of its own after the newest message of the user. It changes from
    /// request to request, so nothing of it is cached.
    pub reminders: Vec<String>,
    /// The tools the model may call.
    pub tools: Vec<ToolDeclaration>,
    /// Whether it may call them.
    pub tool_choice: ToolChoice,
    /// The most tokens the answer may have.
    pub max_tokens: u32,
    /// Sampling temperature, if not the provider's own.
    pub temperature: Option<f32>,
    /// Nucleus sampling, if not the provider's own.
    pub top_p: Option<f32>,
    /// Reasoning effort, if not the provider's own.
    pub effort: Option<Effort>,
    /// The same for all requests of one conversation, for providers that keep a cache by it.
    pub cache_key: Option<String>,
}

/// Tokens of one answer, as the provider reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Input that was not cached.
    pub input_tokens: u64,
    /// Output, reasoning included.
    pub output_tokens: u64,
    /// Input that was read from the provider's cache.
    pub cache_read_tokens: u64,
    /// Input that was written to the provider's cache.
    pub cache_write_tokens: u64,
    /// The part of the output that is reasoning, where the provider says so.
    pub thinking_tokens: u64,
}

impl Usage {
    /// Whether the provider reported it: every request has tokens.
    #[must_use]
    pub fn is_reported(&self) -> bool {
        *self != Self::default()
    }

    /// How many tokens the request took up, cached or not.
    #[must_use]
    pub fn prompt_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.cache_read_tokens).saturating_add(self.cache_write_tokens)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_write_tokens += other.cache_write_tokens;
        self.thinking_tokens += other.thinking_tokens;
    }
}

/// A limit of a provider that is counted by time, and how much of it is used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageWindow {
    /// The counted unit: `requests`, `tokens`, or the length of a plan's window.
    pub name: String,
    /// The used share, from 0 to 1.
    pub used: f64,
    /// When it is reset, where the provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets: Option<jiff::Timestamp>,
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// It had said all.
    EndTurn,
    /// It wants tools run.
    ToolUse,
    /// The token limit cut it off.
    MaxTokens,
    /// It met a stop sequence.
    StopSequence,
    /// It declined to answer, or a filter did.
    Refusal,
    /// The provider paused a long answer and wants to be called again with it.
    PauseTurn,
    /// Something this build does not know; treated as an end.
    Other(String),
}

/// A whole answer.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelResponse {
    /// The provider's id of the answer, if any.
    pub id: Option<String>,
    /// The answer's blocks, complete.
    pub content: Vec<Block>,
    /// Why it ended.
    pub stop_reason: StopReason,
    /// Its cost.
    pub usage: Usage,
}

/// A piece of an answer while it streams. Only for showing: the whole arrives as [`ModelResponse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More text; `index` is the block it belongs to.
    Text {
        /// Number of the block within the answer.
        index: usize,
        /// The new text.
        text: String,
    },
    /// More reasoning.
    Thinking {
        /// Number of the block within the answer.
        index: usize,
        /// The new text.
        text: String,
    },
    /// A tool call has started; its arguments follow in the response.
    ToolUse {
        /// Number of the block within the answer.
        index: usize,
        /// The model's id of the call.
        id: String,
        /// The tool's name.
        name: String,
    },
}

/// The abilities of a model, as its provider serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Capabilities {
    /// Whether it streams.
    pub streaming: bool,
    /// Whether it calls tools.
    pub tool_use: bool,
    /// Whether it shows reasoning.
    pub thinking: bool,
    /// Whether it has a place for the system prompt.
    pub system_message: bool,
    /// Whether it sees pictures.
    pub images: bool,
    /// Whether the provider takes PDF documents for it.
    pub pdf: bool,
    /// Whether it lets the request choose temperature and nucleus sampling.
    pub temperature: bool,
    /// Whether the limit of an answer is called `max_completion_tokens` in Chat Completions, and not `max_tokens`.
    pub max_completion_tokens: bool,
    /// Whether it wants the reasoning back that led to calls of tools. Only Chat Completions has a say in it: the
    /// other formats seal reasoning, and want it back always.
    pub sends_reasoning_back: bool,
    /// Whether the server refuses a history whose calls lack the model's signature (Gemini 3 and later).
    pub signed_calls: bool,
    /// Whether the model was trained on patches of several files (GPT-5 and later).
    pub patches: bool,
}

impl Capabilities {
    /// Everything a model can do. What only some servers demand is not in it.
    pub const ALL: Self = Self {
        streaming: true,
        tool_use: true,
        thinking: true,
        system_message: true,
        images: true,
        pdf: true,
        temperature: true,
        max_completion_tokens: true,
        sends_reasoning_back: true,
        signed_calls: false,
        patches: false,
    };

    /// Whether the model gets the picture or document itself, and not a note or text in its place.
    #[must_use]
    pub fn takes(&self, image: &Image) -> bool {
        if image.is_pdf() { self.pdf } else { self.images }
    }
}

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelErrorKind {
    /// The profile cannot work: no key, bad address.
    Configuration,
    /// The key was refused (401, 403).
    Authentication,
    /// The account has no credit left (402, or as the server names it).
    Payment,
    /// The server found the request wrong (400, 404, 422 …).
    BadRequest,
    /// The request is longer than what the model can read, or than what the server takes (400, 413).
    ContextTooLong,
    /// Too many requests (429).
    RateLimited,
    /// The server failed or is overloaded (5xx, 529).
    Server,
    /// The connection could not be made or broke before an answer began.
    Network,
    /// The answer broke off in the middle.
    Interrupted,
    /// The server sent something that is no answer in its wire format.
    Protocol,
    /// The user cancelled.
    Cancelled,
}

/// A failed request: what happened, where, and what to do next.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The class of the fault; decides about retries.
    pub kind: ModelErrorKind,
    /// The failure and its place; never holds a key.
    pub message: String,
    /// HTTP status, if one arrived.
    pub status: Option<u16>,
    /// How long the server asked to wait.
    pub retry_after: Option<Duration>,
    /// The context window that the server named, in tokens, where the request was too long for it.
    pub context_window: Option<u64>,
    /// The received part of the interrupted answer: text and reasoning, never a tool call. Its content has
    /// no empty blocks and may be empty when only the usage is known.
    pub partial: Option<Box<ModelResponse>>,
}

impl From<HttpError> for ModelError {
    fn from(error: HttpError) -> Self {
        Self::new(ModelErrorKind::Configuration, error.to_string())
    }
}

impl ModelError {
    /// An error without status.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            status: None,
            retry_after: None,
            context_window: None,
            partial: None,
        }
    }

    /// The next step of the user.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self.kind {
            ModelErrorKind::Configuration => {
                "Run `kode-ls setup` in a terminal, or choose the profile `demo`, which needs no key."
            }
            ModelErrorKind::Authentication => "Check the API key and the address it is for.",
            ModelErrorKind::Payment => {
                "Add credit to the account at the provider, or choose another model; the conversation is kept."
            }
            ModelErrorKind::BadRequest => {
                "Check the model name and the profile's limits; the conversation is kept."
            }
            ModelErrorKind::ContextTooLong => {
                "Compact the conversation with /compact, or choose a model that can read more; nothing is lost."
            }
            ModelErrorKind::RateLimited => {
                "Wait a little, or choose another model; the conversation is kept."
            }
            ModelErrorKind::Server => "The provider has a problem; try again, the conversation is kept.",
            ModelErrorKind::Network => {
                "Check the network, the proxy and the address; the conversation is kept."
            }
            ModelErrorKind::Interrupted => "The received part is kept; send `continue` to resume.",
            ModelErrorKind::Protocol => {
                "Check that the address speaks the wire format of the profile's provider."
            }
            ModelErrorKind::Cancelled => "Nothing to do.",
        }
    }
}

/// Receives the pieces of an answer while it streams. Called in order, must not block.
pub type DeltaSink<'a> = dyn FnMut(Delta) + Send + 'a;

/// A model that can be asked.
#[async_trait]
pub trait Model: Send + Sync {
    /// The model's name as the provider knows it.
    fn name(&self) -> &str;

    /// The wire format it is asked in.
    fn wire(&self) -> Wire;

    /// Its abilities.
    fn capabilities(&self) -> Capabilities;

    /// The provider's limits as its newest answer told them; empty where it tells none.
    fn usage_windows(&self) -> Vec<UsageWindow> {
        Vec::new()
    }

    /// Asks once, handing over pieces as they arrive. No retries: those are [`retry`]'s.
    ///
    /// # Errors
    /// [`ModelError`]; dropped or cancelled requests leave nothing running.
    async fn stream(
        &self,
        request: &ModelRequest,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError>;

    /// Asks once for the whole answer.
    ///
    /// # Errors
    /// As [`Model::stream`].
    async fn complete(
        &self,
        request: &ModelRequest,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        self.stream(request, &mut |_| {}, cancel).await
    }
}
