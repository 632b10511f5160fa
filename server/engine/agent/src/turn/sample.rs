//! One answer of the model: asked for, shown while it streams, tried again on a fault, and recorded.
//!
//! Rule: only a whole answer's calls are acted on; text that was shown is never taken back, it stays as interrupted. A
//! fault is met in this order: the profile's retries, its fallback, a compaction, once, where the history is too long, and
//! a request without the pictures that the provider refused.

mod record;
mod stream;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::conversation::phases::Phase;
use crate::turn::attempt::{charge_apart, jitter, publish_retry, usage_of};
use crate::turn::candidates;
use crate::turn::compact::{self, CompactionOutcome, CompactionRequest};
use crate::turn::next::CutPart;
use crate::turn::pictures;
use crate::turn::resume::PendingRequest;
use crate::turn::route::Route;
use crate::turn::services::TurnContext;
use crate::turn::window::{self, WindowFit};
use kode_base::ids::{CallId, ItemId, TurnId};
use kode_config::agents::TASK;
use kode_model::fallback::Trigger;
use kode_model::profile::Profile;
use kode_model::retry::{self, Retry};
use kode_model::{
    Block, Message, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, StopReason, Usage,
};
use kode_record::compaction::Cause;
use kode_record::context::{ContextUse, Pace};
use kode_record::record::Record;
use kode_tool::delegation::Delegation;
use record::{keep_partial, leave, record};

pub(super) use stream::{StreamedItems, canonical};

/// A whole answer, as the loop needs it.
pub(super) struct ModelAnswer {
    pub(super) stop_reason: StopReason,
    /// Its tokens, and those of another that was not chosen.
    pub(super) usage: Usage,
    /// The calls, in order.
    pub(super) calls: Vec<ModelToolCall>,
    /// The part that the token limit cut off, where it ended the answer.
    pub(super) cut: CutPart,
    /// The last text; empty if absent.
    pub(super) text: String,
}

/// A call the model made.
#[derive(Clone, Debug)]
pub(crate) struct ModelToolCall {
    pub(super) turn: TurnId,
    pub(super) id: CallId,
    pub(super) item: ItemId,
    pub(super) name: String,
    pub(super) input: Value,
    /// Why the arguments could not be read, when they could not.
    pub(super) input_error: Option<String>,
    /// The user has seen the call in a chosen answer and allowed it.
    pub(super) spared_by: Option<String>,
    /// The request that it waited for when the server ended; `None` where it waited for none.
    pub(super) pending: Option<PendingRequest>,
}

/// The outcome of a sample.
pub(super) enum Sample {
    Answer(ModelAnswer),
    Cancelled,
    /// The user chose none of two answers; their tokens.
    NotChosen(Usage),
    Failed {
        error: ModelError,
        /// The number of attempts.
        attempts: u32,
    },
}

/// The options of a sample.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SampleOptions {
    /// The fallback is asked, if there is one.
    pub(super) fallback_first: bool,
    /// Two answers are asked for, and the user chooses.
    pub(super) candidates: bool,
}

/// A received answer, before it is recorded.
pub(super) struct ReceivedAnswer {
    pub(super) response: ModelResponse,
    pub(super) shown: StreamedItems,
    /// Tokens of another answer that was not chosen.
    pub(super) other: Usage,
    /// The client that chose the answer and let its calls run unasked.
    pub(super) spared_by: Option<String>,
}

/// The outcome of calling one model.
pub(super) enum SampleOutcome {
    Answer(Box<ReceivedAnswer>),
    NotChosen(Usage),
}

/// A failed sample.
pub(super) struct SampleFault {
    pub(super) error: ModelError,
    /// The items that the last attempt has shown.
    pub(super) shown: StreamedItems,
    /// The number of attempts.
    pub(super) attempts: u32,
}

/// Calls the model, with retries and its fallback, and records its answer.
pub(super) async fn sample(
    turn: TurnContext<'_>,
    options: SampleOptions,
    cancel: &CancellationToken,
) -> Sample {
    let mut route = match Route::begin(turn, options.fallback_first) {
        Ok(route) => route,
        Err(error) => return Sample::Failed { error, attempts: 0 },
    };
    let mut compacted = false;
    loop {
        let caller = match ModelCaller::connect(turn, route.profile(), cancel).await {
            Ok(caller) => caller,
            Err(_) if cancel.is_cancelled() => return Sample::Cancelled,
            Err(error) if route.turn_from(&error) => continue,
            Err(error) => return Sample::Failed { error, attempts: 0 },
        };
        match window::fit(turn, &caller.profile) {
            WindowFit::Fits => {}
            WindowFit::TooLong if !compacted => {
                compacted = true;
                make_room(turn, route.profile(), cancel).await;
                continue;
            }
            WindowFit::TooLong => {
                return Sample::Failed { error: window::too_long(&caller.profile), attempts: 0 };
            }
            WindowFit::Never(error) if route.turn_from(&error) => continue,
            WindowFit::Never(error) => return Sample::Failed { error, attempts: 0 },
        }
        let request = caller.request();
        let began = Instant::now();
        let outcome = if options.candidates {
            candidates::ask(&caller, &request).await
        } else {
            let (asked, ()) = tokio::join!(caller.ask(&request, AnswerDisplay::Live), caller.prepare_calls());
            asked.map(|(response, shown)| SampleOutcome::of(response, shown))
        };
        turn.conversation.note_phase(Phase::ModelCall, began);
        // The history grows in place while no request shares it.
        drop(request);
        let mut fault = match outcome {
            Ok(SampleOutcome::NotChosen(spent)) => return Sample::NotChosen(spent),
            Ok(SampleOutcome::Answer(mut given)) => {
                let spent = given.response.usage;
                let refused = given.response.stop_reason == StopReason::Refusal;
                if refused && route.fall_back(Trigger::Refusal, None) {
                    leave(&turn.conversation.thread, &mut given.shown);
                    caller.charge_apart(spent);
                    continue;
                }
                caller.check_prompt(spent).await;
                let mut usage = spent;
                usage += given.other;
                let pace = caller.pace(&given.shown, spent);
                let answer = record(&caller, *given, usage);
                caller.charge(spent, pace);
                return Sample::Answer(answer);
            }
            Err(fault) => fault,
        };
        let cancelled = fault.error.kind == ModelErrorKind::Cancelled || cancel.is_cancelled();
        if let Some(window) = fault.error.context_window {
            caller.learn_window(window).await;
        }
        if !cancelled && route.turn_from(&fault.error) {
            leave(&turn.conversation.thread, &mut fault.shown);
            continue;
        }
        if !cancelled && fault.error.kind == ModelErrorKind::ContextTooLong && !compacted {
            leave(&turn.conversation.thread, &mut fault.shown);
            match make_room(turn, route.profile(), cancel).await {
                CompactionOutcome::Compacted => {
                    compacted = true;
                    continue;
                }
                // That can happen once: then they are few enough.
                CompactionOutcome::PicturesLeftOut => continue,
                CompactionOutcome::Unchanged
                | CompactionOutcome::Cancelled
                | CompactionOutcome::HeldBack(_) => {}
            }
        }
        if !cancelled && pictures::leave_out_refused(turn, &fault.error) {
            leave(&turn.conversation.thread, &mut fault.shown);
            continue;
        }
        keep_partial(&caller, &fault.error, &mut fault.shown);
        if cancelled {
            return Sample::Cancelled;
        }
        return Sample::Failed { error: fault.error, attempts: fault.attempts };
    }
}

/// Records a call of Task that the user has made and not the model.
pub(super) fn call_of_task(turn: TurnContext<'_>, delegation: Delegation) -> ModelToolCall {
    let Delegation { kind, description, prompt, model, in_background, .. } = delegation;
    let mut input = json!({
        "description": description, "prompt": prompt, "subagent_type": kind, "run_in_background": in_background,
    });
    if let Some(model) = model {
        input["model"] = Value::String(model);
    }
    let id = CallId::generate();
    let item = turn.new_item(stream::pending_call(turn.conversation, id.as_str(), TASK, input.clone()));
    let call = ModelToolCall {
        turn: turn.id.clone(),
        id: id.clone(),
        item: item.id.clone(),
        name: TASK.to_owned(),
        input: input.clone(),
        input_error: None,
        spared_by: None,
        pending: None,
    };
    let (name, id) = (TASK.to_owned(), id.as_str().to_owned());
    let message = Message::assistant(vec![Block::ToolUse { id, name, input, input_error: None }]);
    turn.commit(Record::Answer {
        turn: turn.id.clone(),
        message,
        items: vec![item],
        usage: Usage::default(),
        streamed: Vec::new(),
        duration_ms: None,
        mode: None,
    });
    call
}

/// Compacts a conversation that the model of profile `asked` cannot read.
async fn make_room(turn: TurnContext<'_>, asked: &str, cancel: &CancellationToken) -> CompactionOutcome {
    let (began, request) = (Instant::now(), CompactionRequest { cause: Cause::TooLong, focus: None });
    let Ok(profile) = compact::narrower(turn, asked) else { return CompactionOutcome::Unchanged };
    let outcome = compact::compact_for(turn, &profile, request, cancel).await;
    turn.conversation.note_phase(Phase::CompactCheck, began);
    outcome
}

impl SampleOutcome {
    /// An answer as it came.
    pub(super) fn of(response: ModelResponse, shown: StreamedItems) -> Self {
        let other = Usage::default();
        Self::Answer(Box::new(ReceivedAnswer { response, shown, other, spared_by: None }))
    }
}

/// Whether an answer is shown while it streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnswerDisplay {
    Live,
    Hidden,
}

/// A model that is called for one answer.
pub(super) struct ModelCaller<'a> {
    pub(super) turn: TurnContext<'a>,
    pub(super) cancel: &'a CancellationToken,
    pub(super) profile: Profile,
    model: Arc<dyn Model>,
}

impl<'a> ModelCaller<'a> {
    async fn connect(
        turn: TurnContext<'a>,
        profile: &str,
        cancel: &'a CancellationToken,
    ) -> Result<Self, ModelError> {
        let services = turn.services;
        let connected = async {
            let models = services.models.served(profile).await;
            let model = models.connect(profile).await?;
            Ok::<_, ModelError>((model, models))
        };
        let (model, models) = tokio::select! {
            connected = connected => connected?,
            () = cancel.cancelled() => {
                return Err(ModelError::new(ModelErrorKind::Cancelled, "the turn was cancelled"));
            }
        };
        let profile = models.profile(profile)?.clone();
        Ok(Self { turn, cancel, profile, model })
    }

    /// The request for the next answer.
    fn request(&self) -> ModelRequest {
        let conversation = self.turn.conversation;
        let (began, before) = (Instant::now(), conversation.phases().of(Phase::Normalise));
        let request = self.turn.services.context.request(conversation, &self.profile);
        // The time of copying the history is a phase of its own.
        let within = conversation.phases().of(Phase::Normalise).saturating_sub(before);
        conversation.note_phase(Phase::PromptBuild, began + within);
        request
    }

    /// Asks, with the profile's retries.
    pub(super) async fn ask(
        &self,
        request: &ModelRequest,
        display: AnswerDisplay,
    ) -> Result<(ModelResponse, StreamedItems), SampleFault> {
        let policy = self.profile.retry_policy();
        let (mut attempts, mut waited) = (0, Duration::ZERO);
        loop {
            let mut shown = StreamedItems::of(self.model.name());
            self.turn.services.servers.request_sent();
            let asked = match display {
                AnswerDisplay::Live => {
                    stream::stream(self.turn, self.model.as_ref(), request, &mut shown, self.cancel).await
                }
                AnswerDisplay::Hidden => self.model.stream(request, &mut |_| {}, self.cancel).await,
            };
            shown.end();
            let error = match asked {
                Ok(response) => return Ok((response, shown)),
                Err(error) => error,
            };
            attempts += 1;
            // A broken attempt is charged as well.
            self.charge_apart(usage_of(&error));
            let cancelled = error.kind == ModelErrorKind::Cancelled || self.cancel.is_cancelled();
            let decision = if cancelled {
                Retry::Never
            } else {
                retry::decide(&error, attempts, waited, &policy, jitter())
            };
            let Retry::After(delay) = decision else { return Err(SampleFault { error, shown, attempts }) };
            // The next attempt starts over: the items of this one stay in the transcript, and out of the history.
            leave(&self.turn.conversation.thread, &mut shown);
            let times = (delay, waited);
            let notifier = self.turn.services.turns.retry_notifier();
            // Created before clients see the wait, so that an early request to retry is not lost.
            let retry_now = notifier.notified();
            publish_retry(&self.turn.services.core, self.model.name(), &error, attempts, times, &policy);
            waited = waited.saturating_add(delay);
            tokio::select! {
                () = sleep(delay) => {}
                () = retry_now => {}
                () = self.cancel.cancelled() => {
                    let error = ModelError::new(ModelErrorKind::Cancelled, error.message);
                    return Err(SampleFault { error, shown, attempts });
                }
            }
        }
    }

    /// Charges the tokens of an answer.
    pub(super) fn charge(&self, usage: Usage, pace: Pace) {
        let thread = &self.turn.conversation.thread;
        thread.charge_at(self.turn.id, &self.profile, usage, self.context(), pace);
    }

    /// The pace of an answer, and how much of the provider's limits is used.
    fn pace(&self, shown: &StreamedItems, usage: Usage) -> Pace {
        let tokens_per_second = shown.tokens_per_second(usage.output_tokens);
        Pace { tokens_per_second, took_ms: shown.took_ms(), limits: self.model.usage_windows() }
    }

    /// Charges tokens that no answer of the turn counts.
    pub(super) fn charge_apart(&self, usage: Usage) {
        charge_apart(self.turn, &self.profile, usage, || self.context());
    }

    /// Counts the conversation and starts the watching of files. It runs while the model works, so that neither a request nor
    /// the calls of its answer wait for it.
    async fn prepare_calls(&self) {
        // The task of the connection comes first.
        tokio::task::yield_now().await;
        let _ = self.context();
        self.turn.conversation.workspace().start_watching();
    }

    /// How full the narrower of the context windows is: that of the conversation's own model or of the one that is asked.
    fn context(&self) -> Option<ContextUse> {
        let profile = compact::narrower(self.turn, &self.profile.name).ok()?;
        Some(self.turn.services.context.measure(self.turn.conversation, &profile).usage)
    }
}
