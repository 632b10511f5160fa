//! Side questions: answered from the conversation as it is, also while a turn runs.
//!
//! Rule: a question and its answer are in no journal and in no other request; only their tokens are charged. No tool runs for
//! them. The request begins with what the conversation sends itself, so that the provider's cache of it is read.

mod rounds;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::conversation::Conversation;
use crate::core::lock;
use crate::core::thread::ThreadHandle;
use crate::turn::limit::TurnLimit;
use crate::turn::services::Services;
use kode_base::reminder::reminder;
use kode_base::task;
use kode_model::profile::Profile;
use kode_model::retry::{self, Retry, RetryPolicy};
use kode_model::{Block, Delta, Message, Model, ModelError, ModelRequest, ModelResponse, StopReason, Usage};
use kode_record::options::TurnOptions;

/// The instructions of a side question.
const PROMPT: &str = include_str!("../prompts/side_question.md");

/// The most side questions of a session at a time.
pub const SIDE_LIMIT: usize = 2;

/// The longest side question, in characters.
pub const MAX_QUESTION: usize = 20_000;

/// The longest answer, in bytes; the rest of a longer one is not waited for.
const MAX_ANSWER: usize = 64 << 10;

/// The most tokens of an answer without reasoning. With reasoning the limit of the conversation stays: some providers make
/// the budget of the reasoning from it, and read no cache where that changes.
const MAX_TOKENS: u32 = 4_096;

/// How often calls of tools are refused before there is no answer.
const MAX_REFUSALS: u32 = 2;

/// A failed request is tried again once, and only where that is soon: a user waits for it.
const RETRIES: u32 = 1;
const RETRY_WAIT: Duration = Duration::from_secs(10);

/// The time for which text is gathered before it is shown.
const GATHER: Duration = Duration::from_millis(50);

/// The result of a call in a side question.
const REFUSED: &str = "Refused: no tool runs for a side question. Answer it from the conversation.";

/// The answer to a side question.
#[derive(Clone, Debug, PartialEq)]
pub struct SideAnswer {
    /// The text, in Markdown.
    pub text: String,
    /// Whether it is the whole answer; false where a limit cut it.
    pub is_whole: bool,
    /// The model, as its provider calls it.
    pub model: String,
    /// The tokens of all its requests.
    pub usage: Usage,
    /// Their cost in US dollars, if that is known.
    pub cost: Option<f64>,
}

/// Why a side question has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SideError {
    /// It has no text.
    #[error("the question is empty: write it behind `/btw`")]
    Empty,
    /// It is too long.
    #[error("the question is longer than {MAX_QUESTION} characters")]
    TooLong,
    /// Too many are being answered.
    #[error("{SIDE_LIMIT} side questions of this session are being answered already")]
    Busy,
    /// The session was closed.
    #[error("the session is closed; load it again to continue")]
    Closed,
    /// The turn limit is zero.
    #[error("chat is disabled: the turn limit is 0")]
    ChatDisabled,
    /// A hook refused it.
    #[error("a hook refused the question: {0}")]
    Refused(String),
    /// It was cancelled.
    #[error("the question was cancelled")]
    Cancelled,
    /// The model failed.
    #[error("{0}")]
    Model(ModelError),
    /// The model wrote no text.
    #[error("the model {0} gave no answer in text; no tool runs for a side question")]
    NoText(String),
    /// A fault of ours.
    #[error("the question broke off because of a fault in kode-ls; the log has the details")]
    Broken,
}

/// Answers the side questions of a session.
pub struct SideQuestions {
    services: Arc<Services>,
    slots: Arc<Semaphore>,
    /// Cancels those that are being answered.
    running: Mutex<CancellationToken>,
}

/// A side question that is being answered.
struct Asking<W> {
    services: Arc<Services>,
    question: String,
    written: W,
    cancel: CancellationToken,
    /// Released when all its tokens are charged.
    _slot: OwnedSemaphorePermit,
}

impl SideQuestions {
    pub(super) fn new(services: &Arc<Services>) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(SIDE_LIMIT));
        let running = Mutex::new(services.core.cancel_token());
        Arc::new(Self { services: Arc::clone(services), slots, running })
    }

    /// Answers a question from the conversation as it is now; `written` receives the text piece by piece. Dropping the
    /// future cancels it.
    ///
    /// # Errors
    /// [`SideError`].
    pub async fn ask(
        &self,
        question: &str,
        written: impl Fn(String) + Send + Sync + 'static,
    ) -> Result<SideAnswer, SideError> {
        let question = question.trim();
        if question.is_empty() {
            return Err(SideError::Empty);
        }
        if question.chars().nth(MAX_QUESTION).is_some() {
            return Err(SideError::TooLong);
        }
        let core = &self.services.core;
        if core.is_closing() {
            return Err(SideError::Closed);
        }
        let mode = core.state().config.mode;
        if self.services.turns.limit_of(&TurnOptions::default(), mode) == TurnLimit::Disabled {
            return Err(SideError::ChatDisabled);
        }
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| SideError::Busy)?;
        let cancel = lock(&self.running).child_token();
        let _cancels = cancel.clone().drop_guard();
        let asking = Asking {
            services: Arc::clone(&self.services),
            question: question.to_owned(),
            written,
            cancel,
            _slot: slot,
        };
        // A task of its own: it charges the tokens also where nothing waits for the answer any more.
        task::spawn(asking.answer()).await.unwrap_or_else(|fault| {
            tracing::error!(%fault, "a side question broke off");
            Err(SideError::Broken)
        })
    }

    /// Cancels all that are being answered; false when none is.
    pub fn cancel(&self) -> bool {
        let is_any = self.slots.available_permits() < SIDE_LIMIT;
        let next = self.services.core.cancel_token();
        std::mem::replace(&mut *lock(&self.running), next).cancel();
        is_any
    }

    /// Waits until no side question is being answered any more, and takes no other one.
    pub(super) async fn end(&self) {
        let all = u32::try_from(SIDE_LIMIT).unwrap_or(u32::MAX);
        let ended = self.slots.acquire_many(all).await;
        self.slots.close();
        drop(ended);
    }
}

impl<W: Fn(String) + Send + Sync + 'static> Asking<W> {
    async fn answer(self) -> Result<SideAnswer, SideError> {
        let cancel = self.cancel.clone();
        let prepared = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(self.cancelled()),
            prepared = self.prepare() => prepared?,
        };
        let (model, profile, mut request) = prepared;
        let mut answer = SideAnswer {
            text: String::new(),
            is_whole: true,
            model: profile.model.clone(),
            usage: Usage::default(),
            cost: Some(0.0),
        };
        for _ in 0..=MAX_REFUSALS {
            let response = self.request(model.as_ref(), &profile, &request, &mut answer).await?;
            let text = text_of(&response.content);
            if !text.is_empty() {
                answer.text = text;
            }
            answer.is_whole &= response.stop_reason != StopReason::MaxTokens;
            if !answer.is_whole || !refuse_calls(&mut request, response) {
                break;
            }
        }
        match answer.text.is_empty() {
            true => Err(SideError::NoText(answer.model)),
            false => Ok(answer),
        }
    }

    /// The model, its profile and the request.
    async fn prepare(&self) -> Result<(Arc<dyn Model>, Profile, ModelRequest), SideError> {
        let services = &self.services;
        let conversation = services.main_conversation();
        if !services.turns.is_busy() {
            services.extensions.refresh().await;
            services.gate.refresh().await;
        }
        let texts = services.hooks.admit_aside(&conversation, &self.question, &self.cancel).await;
        let texts = texts.map_err(SideError::Refused)?;
        let name = conversation.model();
        let models = services.models.served(&name).await;
        let model = models.connect(&name).await.map_err(SideError::Model)?;
        let profile = models.profile(&name).map_err(SideError::Model)?.clone();
        let instructions = services.instructions.current_or_first().await;
        let (messages, texts) = self.messages(&conversation, texts);
        let mut request =
            services.context.side_request(&conversation, &profile, (messages, texts), &instructions);
        if request.effort.is_none() {
            request.max_tokens = request.max_tokens.min(MAX_TOKENS);
        }
        Ok((model, profile, request))
    }

    /// The conversation up to its last complete round, and the texts that follow it.
    fn messages(
        &self,
        conversation: &Conversation,
        hooks: Vec<String>,
    ) -> (kode_model::History, Vec<String>) {
        let history = conversation.thread.read(|thread| thread.messages.clone());
        let (messages, step) = rounds::complete(&history);
        let mut instructions = PROMPT.trim_end().to_owned();
        if let Some(step) = step {
            instructions.push_str("\n\nThe step that the agent is at, which is not over:\n");
            instructions.push_str(&step);
        }
        for text in hooks {
            instructions.push_str("\n\nA hook says of the question:\n");
            instructions.push_str(&text);
        }
        (messages, vec![reminder(&instructions), self.question.clone()])
    }

    /// Makes one request, again where that may help, and charges its tokens to the answer.
    async fn request(
        &self,
        model: &dyn Model,
        profile: &Profile,
        request: &ModelRequest,
        answer: &mut SideAnswer,
    ) -> Result<ModelResponse, SideError> {
        let own = profile.retry_policy();
        let policy = RetryPolicy {
            max_retries: own.max_retries.min(RETRIES),
            total_wait: own.total_wait.min(RETRY_WAIT),
            ..own
        };
        let mut attempt = 0;
        loop {
            attempt += 1;
            let (ended, shown) = self.stream(model, request).await;
            let usage = match &ended {
                Ok(response) => response.usage,
                Err(error) => error.partial.as_ref().map(|partial| partial.usage).unwrap_or_default(),
            };
            self.charge(profile, usage, answer);
            let error = match ended {
                Ok(response) => return Ok(response),
                Err(error) => error,
            };
            if self.cancel.is_cancelled() {
                return Err(self.cancelled());
            }
            if shown >= MAX_ANSWER
                && let Some(partial) = error.partial
            {
                answer.is_whole = false;
                return Ok(*partial);
            }
            // Text that was shown is not shown twice.
            let retry = match shown {
                0 => retry::decide(&error, attempt, Duration::ZERO, &policy, 0.0),
                _ => Retry::Never,
            };
            let Retry::After(wait) = retry else { return Err(SideError::Model(error)) };
            tokio::select! {
                () = sleep(wait) => {}
                () = self.cancel.cancelled() => return Err(self.cancelled()),
            }
        }
    }

    /// Asks the model once, and shows its text as it arrives. Returns the number of its bytes as well.
    async fn stream(
        &self,
        model: &dyn Model,
        request: &ModelRequest,
    ) -> (Result<ModelResponse, ModelError>, usize) {
        let limit = self.cancel.child_token();
        if !model.capabilities().streaming {
            return (model.complete(request, &limit).await, 0);
        }
        let (gathered, arrived) = (Mutex::new(String::new()), Notify::new());
        let mut sink = |delta: Delta| {
            if let Delta::Text { text, .. } = delta {
                lock(&gathered).push_str(&text);
                arrived.notify_one();
            }
        };
        let mut shown = 0;
        let mut show = || {
            let text = std::mem::take(&mut *lock(&gathered));
            shown += text.len();
            if !text.is_empty() {
                (self.written)(text);
            }
            if shown >= MAX_ANSWER {
                limit.cancel();
            }
        };
        let answer = model.stream(request, &mut sink, &limit);
        tokio::pin!(answer);
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut answer => break ended,
                () = arrived.notified() => {}
            }
            tokio::select! {
                biased;
                ended = &mut answer => break ended,
                () = sleep(GATHER) => show(),
            }
        };
        show();
        (ended, shown)
    }

    fn charge(&self, profile: &Profile, usage: Usage, answer: &mut SideAnswer) {
        if usage == Usage::default() {
            return;
        }
        let cost = ThreadHandle::main(&self.services.core).charge_aside(profile, usage);
        answer.usage += usage;
        answer.cost = answer.cost.zip(cost).map(|(known, more)| known + more);
    }

    fn cancelled(&self) -> SideError {
        if self.services.core.is_closing() { SideError::Closed } else { SideError::Cancelled }
    }
}

/// Adds the calls of a response to a request, each refused; false where it has none.
fn refuse_calls(request: &mut ModelRequest, response: ModelResponse) -> bool {
    let calls = response.content.iter().filter_map(|block| match block {
        Block::ToolUse { id, .. } => Some(Block::result(id.as_str(), REFUSED, true)),
        Block::Text { .. }
        | Block::Image(_)
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolResult { .. } => None,
    });
    let refusals: Vec<Block> = calls.collect();
    if refusals.is_empty() {
        return false;
    }
    // What stood behind the history is part of it now, before the calls.
    let texts = std::mem::take(&mut request.reminders).into_iter().map(|text| Block::Text { text });
    let asked = Message::user(texts.collect());
    if !asked.content.is_empty() {
        kode_model::normalise::append(&mut request.messages, asked);
    }
    kode_model::normalise::append(&mut request.messages, Message::assistant(response.content));
    kode_model::normalise::append(&mut request.messages, Message::user(refusals));
    true
}

/// The text of an answer.
fn text_of(content: &[Block]) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Image(_)
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n\n").trim().to_owned()
}
