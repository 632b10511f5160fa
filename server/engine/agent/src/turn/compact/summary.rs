//! Has a model write the summary of a conversation.
//!
//! Rule: the request fits into the model's window; an answer is a summary only if it has text, and is asked
//! for once more where headings are missing. Whatever fails, the reason is reported, and its tokens are charged.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::transcript::transcript;
use super::{CompactionInput, within};
use crate::context::meter::scaled;
use crate::turn::attempt::{charge_apart, jitter, publish_retry, usage_of};
use crate::turn::route::by_rest;
use crate::turn::services::TurnContext;
use kode_model::models::Pointer;
use kode_model::profile::Profile;
use kode_model::retry::{self, Retry};
use kode_model::{
    Block, Delta, Message, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Usage,
};

/// How a summary is to be written.
const PROMPT: &str = include_str!("../../prompts/compact.md");

/// The headings of a summary, in order.
pub(crate) const HEADINGS: [&str; 9] = [
    "Primary request and intent",
    "Technical concepts",
    "Files and code",
    "Errors and fixes",
    "Problem solving",
    "All user messages",
    "Pending tasks",
    "Current work",
    "Next step",
];

/// A shorter text is no summary.
const MIN_SUMMARY_BYTES: usize = 80;

/// The most tokens a summary may have, and the share of the window as one part in this many.
const MAX_SUMMARY_TOKENS: u64 = 16_000;
const SUMMARY_PART: u64 = 4;

/// The share of the window that the text to summarize may take: counts of foreign models are not exact.
const TRANSCRIPT_SHARE: f64 = 0.7;

/// The most retries of a request that was too long, each with half the text.
const MAX_HALVINGS: u32 = 3;

/// The number of characters between two reports of progress.
const PROGRESS_CHARS: u64 = 500;

/// A summary.
pub(super) struct WrittenSummary {
    pub(super) text: String,
    /// The model that wrote it, as the provider knows it.
    pub(super) model: String,
    pub(super) usage: Usage,
}

/// The model that is asked.
struct SummaryWriter<'a> {
    turn: TurnContext<'a>,
    model: &'a dyn Model,
    profile: &'a Profile,
    /// Receives the number of written characters.
    written: &'a (dyn Fn(u64) + Sync),
    cancel: &'a CancellationToken,
}

/// Has the messages before `kept_from` summarized. The error says why there is no summary.
pub(super) async fn summarize(
    turn: TurnContext<'_>,
    before: &CompactionInput<'_>,
    (kept_from, focus): (usize, Option<&str>),
    written: &(dyn Fn(u64) + Sync),
    cancel: &CancellationToken,
) -> Result<WrittenSummary, String> {
    let models = turn.services.models.now();
    let (named, own) = (turn.services.models.pointer(Pointer::Compact), turn.conversation.model());
    let mut failure = String::new();
    // Where the model that is set for it cannot do it, the conversation's own may.
    for name in &by_rest(&turn.services.models, &[&named, &own]) {
        let Ok(profile) = models.profile(name) else { continue };
        let model = tokio::select! {
            model = models.connect(name) => model,
            () = cancel.cancelled() => return Err("it was cancelled".to_owned()),
        };
        let result = match model {
            Ok(model) => {
                let writer = SummaryWriter { turn, model: model.as_ref(), profile, written, cancel };
                writer.summarize(before, kept_from, focus).await
            }
            Err(error) => Err(error.to_string()),
        };
        match result {
            Err(reason) if !cancel.is_cancelled() => failure = reason,
            result => return result,
        }
    }
    Err(failure)
}

impl SummaryWriter<'_> {
    async fn summarize(
        &self,
        before: &CompactionInput<'_>,
        kept_from: usize,
        focus: Option<&str>,
    ) -> Result<WrittenSummary, String> {
        let (answer, mut usage) =
            self.first(before, kept_from, focus).await.map_err(|error| error.to_string())?;
        let (asked, mut text) = answer;
        let lacking = missing(&text);
        if !lacking.is_empty() {
            let words = format!(
                "Write the whole summary again with all nine headings, each on a line of its own. These are missing: {}.",
                lacking.join(", ")
            );
            let mut messages = vec![asked];
            if !text.trim().is_empty() {
                messages.push(Message::assistant(vec![Block::Text { text: text.clone() }]));
                messages.push(user(words));
            }
            match self.ask(messages).await {
                Ok(response) => {
                    usage += response.usage;
                    let again = text_of(&response);
                    if missing(&again).len() < lacking.len() {
                        text = again;
                    }
                }
                Err(error) if self.cancel.is_cancelled() => return Err(error.to_string()),
                // An incomplete summary is better than none.
                Err(error) => tracing::info!(%error, "a summary was not completed"),
            }
        }
        if text.trim().len() < MIN_SUMMARY_BYTES {
            return Err(format!("the model {} wrote none", self.profile.model));
        }
        let most = MAX_SUMMARY_TOKENS.min(before.profile.context_window / SUMMARY_PART);
        let text = within(text.trim(), most, before.counter);
        Ok(WrittenSummary { text, model: self.profile.model.clone(), usage })
    }

    /// Asks for the summary, with less text where it was too long. Returns the request and the answer.
    async fn first(
        &self,
        before: &CompactionInput<'_>,
        kept_from: usize,
        focus: Option<&str>,
    ) -> Result<((Message, String), Usage), ModelError> {
        let room = self.profile.context_window.saturating_sub(self.answer_tokens());
        let mut tokens = scaled(room, TRANSCRIPT_SHARE / before.measured.correction.max(1.0));
        let mut halvings = 0;
        loop {
            let older = before.messages.get(..kept_from).unwrap_or_default();
            let summary = before.summary.as_deref().filter(|_| before.head_blocks > 0);
            let text = transcript(older, before.head_blocks, summary, tokens, before.counter);
            let asked = user(question(&text, focus));
            match self.ask(vec![asked.clone()]).await {
                Ok(response) => return Ok(((asked, text_of(&response)), response.usage)),
                Err(error) if error.kind == ModelErrorKind::ContextTooLong && halvings < MAX_HALVINGS => {
                    halvings += 1;
                    tokens /= 2;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Asks, and tries again as the profile wants it.
    async fn ask(&self, messages: Vec<Message>) -> Result<ModelResponse, ModelError> {
        let request = ModelRequest {
            system: vec![PROMPT.to_owned()],
            messages: messages.into(),
            max_tokens: u32::try_from(self.answer_tokens()).unwrap_or(u32::MAX),
            temperature: self.profile.temperature,
            top_p: self.profile.top_p,
            ..ModelRequest::default()
        };
        let policy = self.profile.retry_policy();
        let (mut failed, mut waited) = (0, Duration::ZERO);
        loop {
            let error = match self.stream(&request).await {
                Ok(response) => {
                    self.charge(response.usage);
                    return Ok(response);
                }
                Err(error) => error,
            };
            // A broken attempt is charged as well.
            self.charge(usage_of(&error));
            failed += 1;
            match retry::decide(&error, failed, waited, &policy, jitter()) {
                Retry::After(wait) if !self.cancel.is_cancelled() => {
                    let (name, times) = (self.model.name(), (wait, waited));
                    publish_retry(&self.turn.services.core, name, &error, failed, times, &policy);
                    waited = waited.saturating_add(wait);
                    tokio::select! {
                        () = sleep(wait) => {}
                        () = self.cancel.cancelled() => return Err(error),
                    }
                }
                Retry::After(_) | Retry::Never => return Err(error),
            }
        }
    }

    async fn stream(&self, request: &ModelRequest) -> Result<ModelResponse, ModelError> {
        let (mut chars, mut reported) = (0_u64, 0_u64);
        let mut sink = |delta: Delta| {
            let (Delta::Text { text, .. } | Delta::Thinking { text, .. }) = delta else { return };
            chars += u64::try_from(text.chars().count()).unwrap_or(0);
            if chars >= reported + PROGRESS_CHARS {
                reported = chars;
                (self.written)(chars);
            }
        };
        if self.model.capabilities().streaming {
            self.model.stream(request, &mut sink, self.cancel).await
        } else {
            self.model.complete(request, self.cancel).await
        }
    }

    fn charge(&self, usage: Usage) {
        charge_apart(self.turn, self.profile, usage, || None);
    }

    fn answer_tokens(&self) -> u64 {
        u64::from(self.profile.max_tokens).min(self.profile.context_window / SUMMARY_PART).max(1)
    }
}

fn user(text: String) -> Message {
    Message::user(vec![Block::Text { text }])
}

fn question(transcript: &str, focus: Option<&str>) -> String {
    let focus = match focus {
        Some(focus) => format!("\n\nThe user wants this kept above all: {focus}"),
        None => String::new(),
    };
    format!("The conversation:\n\n{transcript}\n\nWrite its summary now, with the nine headings.{focus}")
}

fn text_of(response: &ModelResponse) -> String {
    let texts: Vec<_> = response
        .content
        .iter()
        .filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

/// The headings that a text does not have.
pub(super) fn missing(text: &str) -> Vec<&'static str> {
    let is_mark = |letter: char| !letter.is_alphabetic();
    let lines: Vec<String> = text.lines().map(|line| line.trim_matches(is_mark).to_lowercase()).collect();
    let has = |heading: &&str| lines.iter().any(|line| line.starts_with(&heading.to_lowercase()));
    HEADINGS.into_iter().filter(|heading| !has(heading)).collect()
}
