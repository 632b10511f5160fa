//! Compacting a conversation: a summary replaces its older messages.
//!
//! Rule: the history is as it was until all that takes its place is there, so that cancelling or failing loses nothing;
//! the replacement is smaller, can be sent, and has the newest prompt in full. The replaced messages stay in the journal.

mod files;
mod head;
mod plan;
mod summary;
pub(super) mod transcript;

use std::sync::atomic::Ordering;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::context::meter::{Measurement, MessageSizes, scaled};
use crate::context::tokens::Counter;
use crate::state::images;
use crate::state::thread::SentPrompt;
use crate::turn::route::Route;
use crate::turn::services::TurnContext;
use files::FileExcerpt;
use head::HistoryHead;
use kode_base::ids::{TurnId, WindowId};
use kode_model::profile::Profile;
use kode_model::{Block, History, Message, ModelError, Usage};
use kode_record::compaction::{BeforeAfter, Cause, Compaction};
use kode_record::event::{CompressionStep, Event, NoticeKind, NoticeLevel, TurnEnd};
use kode_record::record::Record;
#[cfg(test)]
pub(crate) use summary::HEADINGS;
use summary::WrittenSummary;

/// The share of the messages that is kept.
const KEPT_SHARE: f64 = 0.2;

/// The share of the messages that is kept when there is no summary.
const KEPT_WITHOUT_SUMMARY: f64 = 0.3;

/// The share of the window that kept messages may take.
const KEPT_TOKENS_SHARE: f64 = 0.25;

/// The share of the window that kept messages may take when there is no summary.
const KEPT_TOKENS_WITHOUT_SUMMARY: f64 = 0.4;

/// The newest prompt stays in its place unless it takes more than this share of what the conversation may have.
const KEPT_PROMPT_SHARE: f64 = 0.75;

/// Number of times that the messages kept without a summary are halved; after that the head is as well.
const MAX_HALVINGS: u32 = 10;
const KEPT_HALVINGS: u32 = 4;

/// Fewer messages are not worth compacting.
const MIN_MESSAGES: usize = 3;

/// So often in a row a conversation is compacted to no use before it is given up, until another prompt comes.
const MAX_USELESS: u32 = 3;

/// A request to compact a conversation.
#[derive(Clone, Debug)]
pub(crate) struct CompactionRequest {
    /// Why.
    pub(crate) cause: Cause,
    /// The focus of the summary, given by the user.
    pub(crate) focus: Option<String>,
}

/// The outcome of a compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CompactionOutcome {
    /// The conversation is shorter now.
    Compacted,
    /// Its pictures are fewer now; all else is as it was.
    PicturesLeftOut,
    /// It is as it was: there is nothing to leave out, or it would not have become shorter.
    Unchanged,
    /// It is as it was: the turn was cancelled.
    Cancelled,
    /// It is as it was: a hook held it back, for this reason.
    HeldBack(String),
}

/// A conversation before it is compacted.
struct CompactionInput<'a> {
    profile: &'a Profile,
    messages: History,
    /// The tokens of each message, counted.
    sizes: Vec<u64>,
    counter: Counter,
    measured: Measurement,
    /// The newest prompt, and the user's messages after it, oldest first.
    prompt: Option<SentPrompt>,
    steered: Vec<SentPrompt>,
    first_instruction: Option<String>,
    /// The newest summary there is.
    summary: Option<String>,
    /// The number of blocks of the first message that describe the compaction before.
    head_blocks: usize,
}

/// The replacement of a history.
struct CompactionOutput {
    kept_from: usize,
    summary: Option<WrittenSummary>,
    failure: Option<String>,
    files: Vec<FileExcerpt>,
    head: Vec<Block>,
    tokens: u64,
    /// Pictures of the kept messages that are left out, the oldest first.
    pictures: usize,
}

/// Compacts the conversation before a model call if it has grown to the limit set for it.
pub(crate) async fn before_call(turn: TurnContext<'_>, cancel: &CancellationToken) {
    // The call reports a profile that cannot be used.
    let Ok(profile) = next_profile(turn) else { return };
    let context = &turn.services.context;
    // It is counted while the model works on its answer.
    if context.is_far_from_limit(turn.conversation, &profile) {
        return;
    }
    let usage = context.measure(turn.conversation, &profile).usage;
    let Some(trigger) = usage.trigger else { return };
    let useless = &turn.conversation.useless_compactions;
    if usage.tokens < trigger || useless.load(Ordering::Relaxed) >= MAX_USELESS {
        return;
    }
    let request = CompactionRequest { cause: Cause::Threshold, focus: None };
    let outcome = compact_for(turn, &profile, request, cancel).await;
    match outcome {
        CompactionOutcome::Cancelled => return,
        CompactionOutcome::HeldBack(reason) => {
            // It is asked again with the next prompt.
            useless.store(MAX_USELESS, Ordering::Relaxed);
            report_held_back(turn, &reason);
            return;
        }
        CompactionOutcome::Compacted | CompactionOutcome::PicturesLeftOut | CompactionOutcome::Unchanged => {}
    }
    if turn.services.context.measure(turn.conversation, &profile).usage.tokens < trigger {
        useless.store(0, Ordering::Relaxed);
    } else if useless.fetch_add(1, Ordering::Relaxed) + 1 == MAX_USELESS {
        let text = "The conversation cannot be made short enough for the model's context window.".to_owned();
        let hint = "Begin a new session, or choose a model that can read more; nothing is lost.".to_owned();
        turn.notice(NoticeLevel::Warning, text, Some(hint));
    }
}

/// The profile by whose window a conversation is measured while `asked` is asked: its own, or that one if it can read
/// less.
///
/// # Errors
/// When its own cannot be used.
pub(crate) fn narrower(turn: TurnContext<'_>, asked: &str) -> Result<Profile, ModelError> {
    let models = turn.services.models.now();
    let own = models.profile(&turn.conversation.model())?;
    let is_narrower = |asked: &&Profile| asked.context_window < own.context_window;
    Ok(models.profile(asked).ok().filter(is_narrower).unwrap_or(own).clone())
}

/// As [`narrower`], for the profile that is asked next.
fn next_profile(turn: TurnContext<'_>) -> Result<Profile, ModelError> {
    let asked = Route::begin(turn, false)?.profile().to_owned();
    narrower(turn, &asked)
}

/// Compacts the conversation because the user asked for it. Returns how the turn ends.
pub(crate) async fn on_request(turn: TurnContext<'_>, focus: String, cancel: &CancellationToken) -> TurnEnd {
    let focus = (!focus.is_empty()).then_some(focus);
    match compact(turn, CompactionRequest { cause: Cause::Asked, focus }, cancel).await {
        CompactionOutcome::Compacted | CompactionOutcome::PicturesLeftOut => TurnEnd::EndTurn,
        CompactionOutcome::Unchanged => {
            let text = "The conversation is as it was: compacting it would not make it shorter.".to_owned();
            turn.notice(NoticeLevel::Info, text, None);
            TurnEnd::EndTurn
        }
        CompactionOutcome::Cancelled => TurnEnd::Cancelled,
        CompactionOutcome::HeldBack(reason) => {
            report_held_back(turn, &reason);
            TurnEnd::EndTurn
        }
    }
}

fn report_held_back(turn: TurnContext<'_>, reason: &str) {
    let text = format!("A hook held the compaction back: {reason}");
    turn.notice_of(NoticeKind::Hook, (NoticeLevel::Warning, &text, ""));
}

/// Compacts the conversation, whatever its size. Nothing may be added to it meanwhile.
pub(crate) async fn compact(
    turn: TurnContext<'_>,
    request: CompactionRequest,
    cancel: &CancellationToken,
) -> CompactionOutcome {
    let Ok(profile) = next_profile(turn) else { return CompactionOutcome::Unchanged };
    compact_for(turn, &profile, request, cancel).await
}

/// Compacts the conversation for the model of a profile. Nothing may be added to it meanwhile.
pub(crate) async fn compact_for(
    turn: TurnContext<'_>,
    profile: &Profile,
    request: CompactionRequest,
    cancel: &CancellationToken,
) -> CompactionOutcome {
    let started = Instant::now();
    let before = CompactionInput::of(turn, profile);
    let publish = |step| {
        let (id, agent) = (turn.id.clone(), turn.conversation.agent().cloned());
        turn.services.core.publish(Event::ContextCompression { turn: id, agent, step });
    };
    let unchanged = |outcome, reason: &str| {
        publish(CompressionStep::Unchanged { reason: reason.to_owned() });
        outcome
    };
    publish(CompressionStep::Started {
        cause: request.cause,
        messages: count(before.messages.len()),
        tokens: before.measured.usage.tokens,
        window: profile.context_window,
    });
    if request.cause == Cause::TooLong
        && let Some(after) = without_pictures(&before)
    {
        let compaction = record(&before, &after, turn.id, request, started);
        commit(turn, compaction, after);
        turn.services.core.sync().await;
        return CompactionOutcome::PicturesLeftOut;
    }
    let kept_from = before.kept_from(KEPT_SHARE, KEPT_TOKENS_SHARE);
    if before.messages.len() < MIN_MESSAGES || kept_from == 0 {
        return unchanged(CompactionOutcome::Unchanged, "there is nothing to leave out");
    }
    let sizes = (count(before.messages.len()), before.measured.usage.tokens);
    let asked = (request.cause, request.focus.as_deref());
    if let Some(reason) =
        turn.services.hooks.before_compaction(turn.conversation, turn.id, asked, sizes, cancel).await
    {
        return unchanged(CompactionOutcome::HeldBack(reason), "a hook held it back");
    }
    let written = |written| publish(CompressionStep::Progress { written });
    let summary =
        summary::summarize(turn, &before, (kept_from, request.focus.as_deref()), &written, cancel).await;
    let after = match summary {
        _ if cancel.is_cancelled() => return unchanged(CompactionOutcome::Cancelled, "it was cancelled"),
        Ok(summary) => with_summary(turn, &before, kept_from, summary).await,
        Err(failure) => without_summary(&before, failure),
    };
    if cancel.is_cancelled() {
        return unchanged(CompactionOutcome::Cancelled, "it was cancelled");
    }
    if after.tokens >= before.measured.usage.tokens {
        return unchanged(CompactionOutcome::Unchanged, "it would not become shorter");
    }
    let compaction = record(&before, &after, turn.id, request, started);
    commit(turn, compaction.clone(), after);
    turn.services.hooks.after_compaction(turn.conversation, turn.id, &compaction, cancel).await;
    turn.services.core.sync().await;
    CompactionOutcome::Compacted
}

impl<'a> CompactionInput<'a> {
    fn of(turn: TurnContext<'_>, profile: &'a Profile) -> Self {
        let MessageSizes { measured, sizes, counter } =
            turn.services.context.measure_whole(turn.conversation, profile);
        turn.read(|thread| Self {
            profile,
            messages: thread.messages.clone(),
            sizes,
            counter,
            measured,
            prompt: thread.newest_prompt(),
            steered: thread.steered(),
            first_instruction: thread.first_instruction(),
            summary: thread.summary().map(str::to_owned),
            head_blocks: thread.head_blocks(),
        })
    }

    fn kept_from(&self, share: f64, tokens_share: f64) -> usize {
        let limit = scaled(self.profile.context_window, tokens_share / self.measured.correction);
        // A prompt that would leave no room for the rest is quoted in the head, which cuts it.
        let most = scaled(self.limit(), KEPT_PROMPT_SHARE);
        let fits = |at: &usize| self.corrected(self.sizes.get(*at).copied().unwrap_or_default()) <= most;
        let prompt = self.prompt.as_ref().and_then(|prompt| prompt.at).filter(fits);
        plan::kept_from(&self.messages, &self.sizes, share, limit, prompt)
    }

    /// The tokens of a request that begins with `head`, before what follows it from message `kept_from` on.
    fn tokens_after(&self, head: &[Block], kept_from: usize) -> u64 {
        let kept: u64 = self.sizes.iter().skip(kept_from).sum();
        self.corrected(self.measured.fixed + self.counter.blocks(head) + kept)
    }

    fn corrected(&self, tokens: u64) -> u64 {
        scaled(tokens, self.measured.correction)
    }

    /// Tokens from which on the conversation is compacted, or what the model can read when that is switched off.
    fn limit(&self) -> u64 {
        let usage = &self.measured.usage;
        usage.trigger.unwrap_or_else(|| usage.window.saturating_sub(usage.reserved))
    }
}

async fn with_summary(
    turn: TurnContext<'_>,
    before: &CompactionInput<'_>,
    kept_from: usize,
    summary: WrittenSummary,
) -> CompactionOutput {
    let mut head = HistoryHead::of(before, kept_from, 1).with_summary(&summary.text).into_blocks();
    let bare = before.tokens_after(&head, kept_from);
    let room = before.limit().min(before.measured.usage.tokens).saturating_sub(bare) / 2;
    let files = files::recover(&turn.services.gate, turn.conversation, before, room).await;
    head.extend(files::blocks(&files));
    let tokens = before.tokens_after(&head, kept_from);
    CompactionOutput { kept_from, summary: Some(summary), failure: None, files, head, tokens, pictures: 0 }
}

/// Keeps more of the messages, with a note of the missing ones for the model.
fn without_summary(before: &CompactionInput<'_>, failure: String) -> CompactionOutput {
    let (mut share, mut part, mut rounds) = (KEPT_TOKENS_WITHOUT_SUMMARY, 1, 0);
    loop {
        let kept_from = before.kept_from(KEPT_WITHOUT_SUMMARY, share);
        let head = HistoryHead::of(before, kept_from, part)
            .with_warning(&failure, before.summary.as_deref())
            .into_blocks();
        let tokens = before.tokens_after(&head, kept_from);
        if tokens < before.limit() || rounds >= MAX_HALVINGS {
            return CompactionOutput {
                kept_from,
                summary: None,
                failure: Some(failure),
                files: Vec::new(),
                head,
                tokens,
                pictures: 0,
            };
        }
        // The head becomes shorter once there is hardly a message more to leave out.
        if kept_from + 1 >= before.messages.len() || rounds >= KEPT_HALVINGS {
            part *= 2;
        }
        (share, rounds) = (share / 2.0, rounds + 1);
    }
}

/// Puts notes in the place of the oldest pictures, where they are more than a request may have that was too long.
fn without_pictures(before: &CompactionInput<'_>) -> Option<CompactionOutput> {
    let pictures = images::over(&before.messages, images::MAX_BYTES);
    if pictures == 0 {
        return None;
    }
    let mut messages = before.messages.to_vec();
    images::leave_out(&mut messages, pictures);
    let count = |messages: &[Message]| -> u64 {
        messages.iter().map(|message| before.counter.blocks(&message.content)).sum()
    };
    let saved = before.corrected(count(&before.messages).saturating_sub(count(&messages)));
    let tokens = before.measured.usage.tokens.saturating_sub(saved);
    let (head, files) = (Vec::new(), Vec::new());
    Some(CompactionOutput { kept_from: 0, summary: None, failure: None, files, head, tokens, pictures })
}

fn record(
    before: &CompactionInput<'_>,
    after: &CompactionOutput,
    turn: &TurnId,
    request: CompactionRequest,
    started: Instant,
) -> Compaction {
    let messages = before.messages.len();
    let head_is_apart =
        before.messages.get(after.kept_from).is_none_or(|first| first.role == kode_model::Role::Assistant);
    let left = messages - after.kept_from + usize::from(head_is_apart && !after.head.is_empty());
    let summary = after.summary.as_ref();
    Compaction {
        window: WindowId::generate(),
        turn: turn.clone(),
        cause: request.cause,
        focus: request.focus,
        messages: BeforeAfter { before: count(messages), after: count(left) },
        tokens: BeforeAfter { before: before.measured.usage.tokens, after: after.tokens },
        trigger: before.measured.usage.trigger,
        model: summary.map(|summary| summary.model.clone()),
        usage: summary.map_or_else(Usage::default, |summary| summary.usage),
        duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        kept_from: after.kept_from,
        summary: summary.map(|summary| summary.text.clone()),
        failure: after.failure.clone(),
        files: after.files.iter().map(|recovered| recovered.file.clone()).collect(),
        head: after.head.clone(),
        pictures_left_out: after.pictures,
    }
}

fn commit(turn: TurnContext<'_>, compaction: Compaction, after: CompactionOutput) {
    let (messages, tokens) = (compaction.messages, compaction.tokens);
    turn.commit(Record::Compacted { compaction: Box::new(compaction) });
    if after.pictures > 0 {
        let what = format!("Left out the {} oldest pictures: the request was too long.", after.pictures);
        turn.notice(NoticeLevel::Info, what, None);
        return;
    }
    let workspace = &turn.services.environment.workspace;
    // The messages with the reads and the editor's content are gone. Sub-agents share the reads of the session.
    if turn.conversation.is_main() {
        workspace.forget_reads();
        turn.services.input.forget_editor();
    }
    after.files.iter().for_each(|excerpt| excerpt.note(workspace));
    let what = format!(
        "Compacted {} messages, {} → {} tokens.",
        messages.before,
        in_thousands(tokens.before),
        in_thousands(tokens.after)
    );
    match after.failure {
        None => turn.notice(NoticeLevel::Info, what, None),
        Some(failure) => {
            let text = format!("{what} There is no summary of the older ones: {failure}.");
            let hint = "The model knows only the newest messages; tell it what else counts. \
                        Nothing is lost from the transcript.";
            turn.notice(NoticeLevel::Warning, text, Some(hint.to_owned()));
        }
    }
}

/// A number of tokens for people.
fn in_thousands(tokens: u64) -> String {
    if tokens < 1_000 { tokens.to_string() } else { format!("{}k", (tokens + 500) / 1_000) }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// A text of at most `tokens` tokens: its beginning and its end, with the cut marked.
fn within(text: &str, tokens: u64, counter: Counter) -> String {
    let counted = counter.text(text);
    if counted <= tokens {
        return text.to_owned();
    }
    // A little less, for the mark, and because tokens are not spread evenly over the text.
    let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
    let keep = bytes.saturating_mul(tokens) / counted.max(1) * 9 / 10;
    transcript::both_ends(text, usize::try_from(keep).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests;
