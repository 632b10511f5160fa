//! One answer of the model: asked for, shown while it streams, tried again on a fault, and recorded.
//!
//! Rule: only a whole answer's calls are acted on; text that was shown is never taken back, it stays as interrupted. A
//! fault is met in this order: the profile's retries, its fallback, and where the history is too long a compaction, once.

mod record;
mod stream;

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::context;
use crate::session::conversation::Conversation;
use crate::turn::attempt::{charge_beside, jitter, tell_retry, usage_of};
use crate::turn::next::Cut;
use crate::turn::phases::Phase;
use crate::turn::route::Route;
use crate::turn::taken_up::Again;
use crate::turn::{candidates, compact};
use kode_base::ids::{CallId, ItemId, TurnId};
use kode_config::agents::TASK;
use kode_model::fallback::Trigger;
use kode_model::profile::Profile;
use kode_model::retry::{self, Retry};
use kode_model::{
    Block, Message, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, StopReason, Usage,
};
use kode_record::context::ContextUse;
use kode_record::record::Record;
use kode_tool::delegation::Delegation;
use record::{keep_partial, leave, record};

pub(super) use stream::{Shown, canonical};

/// A whole answer, as the loop needs it.
pub(super) struct Answer {
    pub(super) stop_reason: StopReason,
    /// Its tokens, and those of another that was not chosen.
    pub(super) usage: Usage,
    /// The calls, in order.
    pub(super) calls: Vec<Call>,
    /// What was cut off, if its token limit was what ended it.
    pub(super) cut: Cut,
    /// The last text in it; empty when there is none.
    pub(super) text: String,
}

/// A call the model made.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(super) turn: TurnId,
    pub(super) id: CallId,
    pub(super) item: ItemId,
    pub(super) name: String,
    pub(super) input: Value,
    /// Why the arguments could not be read, when they could not.
    pub(super) input_error: Option<String>,
    /// Who has seen the call in an answer they chose and said that it runs unasked.
    pub(super) spared_by: Option<String>,
    /// What it waited for when the server ended; `None` for a call that nobody was asked about.
    pub(super) again: Option<Again>,
}

/// How asking ended.
pub(super) enum Sample {
    Answer(Answer),
    Cancelled,
    /// The user chose none of two answers; what they took.
    NotChosen(Usage),
    Failed {
        error: ModelError,
        /// How often it was tried.
        attempts: u32,
    },
}

/// What the loop wants of an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wish {
    /// The fallback is asked, if there is one.
    pub(super) fallback_first: bool,
    /// Two answers are asked for, and the user chooses.
    pub(super) candidates: bool,
}

/// An answer that came, before it is recorded.
pub(super) struct Given {
    pub(super) response: ModelResponse,
    pub(super) shown: Shown,
    /// Tokens of another answer that was not chosen.
    pub(super) other: Usage,
    /// Who chose the answer and said that its calls run unasked.
    pub(super) spared_by: Option<String>,
}

/// How asking one model ended.
pub(super) enum Outcome {
    Given(Box<Given>),
    NotChosen(Usage),
}

/// Why there is no answer.
pub(super) struct Fault {
    pub(super) error: ModelError,
    /// What was shown of the last attempt.
    pub(super) shown: Shown,
    /// How often it was tried.
    pub(super) attempts: u32,
}

/// Asks the model, with retries and its fallback, and records what it said.
pub(super) async fn sample(
    conversation: &Conversation<'_>,
    turn: &TurnId,
    wish: Wish,
    cancel: &CancellationToken,
) -> Sample {
    let mut route = match Route::begin(conversation, turn, wish.fallback_first) {
        Ok(route) => route,
        Err(error) => return Sample::Failed { error, attempts: 0 },
    };
    let mut compacted = false;
    loop {
        let asker = match Asker::connect(conversation, turn, route.profile(), cancel).await {
            Ok(asker) => asker,
            Err(_) if cancel.is_cancelled() => return Sample::Cancelled,
            Err(error) if route.turn_from(&error) => continue,
            Err(error) => return Sample::Failed { error, attempts: 0 },
        };
        let request = asker.request();
        let began = Instant::now();
        let outcome = if wish.candidates {
            candidates::ask(&asker, &request).await
        } else {
            let asked = asker.ask(&request, Display::Live).await;
            asked.map(|(response, shown)| Outcome::given(response, shown))
        };
        conversation.note_phase(Phase::ModelCall, began);
        // The history grows in place while no request shares it.
        drop(request);
        let mut fault = match outcome {
            Ok(Outcome::NotChosen(spent)) => return Sample::NotChosen(spent),
            Ok(Outcome::Given(mut given)) => {
                let spent = given.response.usage;
                let refused = given.response.stop_reason == StopReason::Refusal;
                if refused && route.fall_back(Trigger::Refusal, None) {
                    leave(conversation, &mut given.shown);
                    asker.charge_beside(spent);
                    continue;
                }
                let mut usage = spent;
                usage += given.other;
                let answer = record(&asker, *given, usage);
                asker.tell_usage(spent);
                return Sample::Answer(answer);
            }
            Err(fault) => fault,
        };
        let cancelled = fault.error.kind == ModelErrorKind::Cancelled || cancel.is_cancelled();
        if !cancelled && route.turn_from(&fault.error) {
            leave(conversation, &mut fault.shown);
            continue;
        }
        if !cancelled && fault.error.kind == ModelErrorKind::ContextTooLong && !compacted {
            leave(conversation, &mut fault.shown);
            match makes_room(conversation, turn, route.profile(), cancel).await {
                compact::Outcome::Compacted => {
                    compacted = true;
                    continue;
                }
                // That can happen once: then they are few enough.
                compact::Outcome::PicturesLeftOut => continue,
                compact::Outcome::Unchanged | compact::Outcome::Cancelled | compact::Outcome::HeldBack(_) => {
                }
            }
        }
        keep_partial(&asker, &fault.error, &mut fault.shown);
        if cancelled {
            return Sample::Cancelled;
        }
        return Sample::Failed { error: fault.error, attempts: fault.attempts };
    }
}

/// Records a call of Task that the user has made and not the model.
pub(super) fn call_of_task(conversation: &Conversation<'_>, turn: &TurnId, delegation: Delegation) -> Call {
    let Delegation { kind, description, prompt, model, in_background, .. } = delegation;
    let mut input = json!({
        "description": description, "prompt": prompt, "subagent_type": kind, "run_in_background": in_background,
    });
    if let Some(model) = model {
        input["model"] = Value::String(model);
    }
    let id = CallId::generate();
    let item =
        conversation.new_item(turn, stream::pending_call(conversation, id.as_str(), TASK, input.clone()));
    let call = Call {
        turn: turn.clone(),
        id: id.clone(),
        item: item.id.clone(),
        name: TASK.to_owned(),
        input: input.clone(),
        input_error: None,
        spared_by: None,
        again: None,
    };
    let (name, id) = (TASK.to_owned(), id.as_str().to_owned());
    let message = Message::assistant(vec![Block::ToolUse { id, name, input, input_error: None }]);
    conversation.commit(Record::Answer {
        turn: turn.clone(),
        message,
        items: vec![item],
        usage: Usage::default(),
        streamed: Vec::new(),
        duration_ms: None,
    });
    call
}

/// Compacts a conversation that the model of profile `asked` cannot read.
async fn makes_room(
    conversation: &Conversation<'_>,
    turn: &TurnId,
    asked: &str,
    cancel: &CancellationToken,
) -> compact::Outcome {
    let (began, request) =
        (Instant::now(), compact::Request { cause: kode_record::compaction::Cause::TooLong, focus: None });
    let Ok(profile) = compact::narrower(conversation, asked) else { return compact::Outcome::Unchanged };
    let outcome = compact::compact_for(conversation, turn, &profile, request, cancel).await;
    conversation.note_phase(Phase::CompactCheck, began);
    outcome
}

impl Outcome {
    /// An answer as it came.
    pub(super) fn given(response: ModelResponse, shown: Shown) -> Self {
        let other = Usage::default();
        Self::Given(Box::new(Given { response, shown, other, spared_by: None }))
    }
}

/// Whether an answer is shown while it streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Display {
    Live,
    Hidden,
}

/// One model that is asked for one answer.
pub(super) struct Asker<'a> {
    pub(super) conversation: &'a Conversation<'a>,
    pub(super) turn: &'a TurnId,
    pub(super) cancel: &'a CancellationToken,
    pub(super) profile: Profile,
    model: Arc<dyn Model>,
}

impl<'a> Asker<'a> {
    async fn connect(
        conversation: &'a Conversation<'a>,
        turn: &'a TurnId,
        profile: &str,
        cancel: &'a CancellationToken,
    ) -> Result<Self, ModelError> {
        let models = conversation.session.models();
        let model = tokio::select! {
            model = models.connect(profile) => model?,
            () = cancel.cancelled() => {
                return Err(ModelError::new(ModelErrorKind::Cancelled, "the turn was cancelled"));
            }
        };
        let profile = models.profile(profile)?.clone();
        Ok(Self { conversation, turn, cancel, profile, model })
    }

    /// The request for the next answer.
    fn request(&self) -> ModelRequest {
        let (began, before) = (Instant::now(), self.conversation.phases().of(Phase::Normalise));
        let request = context::request(self.conversation, &self.profile);
        // What the history took within is counted by itself.
        let within = self.conversation.phases().of(Phase::Normalise).saturating_sub(before);
        self.conversation.note_phase(Phase::PromptBuild, began + within);
        request
    }

    /// Asks, with the profile's retries.
    pub(super) async fn ask(
        &self,
        request: &ModelRequest,
        display: Display,
    ) -> Result<(ModelResponse, Shown), Fault> {
        let policy = self.profile.retry_policy();
        let (mut attempts, mut waited) = (0, Duration::ZERO);
        loop {
            let mut shown = Shown::of(self.model.name());
            self.conversation.session.request_handed_over();
            let asked = match display {
                Display::Live => {
                    let (conversation, turn) = (self.conversation, self.turn);
                    stream::stream(conversation, turn, self.model.as_ref(), request, &mut shown, self.cancel)
                        .await
                }
                Display::Hidden => self.model.stream(request, &mut |_| {}, self.cancel).await,
            };
            shown.end();
            let error = match asked {
                Ok(response) => return Ok((response, shown)),
                Err(error) => error,
            };
            attempts += 1;
            // What broke off is paid for as well.
            self.charge_beside(usage_of(&error));
            let cancelled = error.kind == ModelErrorKind::Cancelled || self.cancel.is_cancelled();
            let decision = if cancelled {
                Retry::Never
            } else {
                retry::decide(&error, attempts, waited, &policy, jitter())
            };
            let Retry::After(delay) = decision else { return Err(Fault { error, shown, attempts }) };
            // The next attempt starts anew: what this one has shown stays on the screen, and out of the history.
            leave(self.conversation, &mut shown);
            let times = (delay, waited);
            let hurry = self.conversation.session.hurry();
            // Made before clients see the wait, so that an early request to retry is not lost.
            let hurried = hurry.notified();
            tell_retry(self.conversation, self.model.name(), &error, attempts, times, &policy);
            waited = waited.saturating_add(delay);
            tokio::select! {
                () = sleep(delay) => {}
                () = hurried => {}
                () = self.cancel.cancelled() => {
                    let error = ModelError::new(ModelErrorKind::Cancelled, error.message);
                    return Err(Fault { error, shown, attempts });
                }
            }
        }
    }

    /// Tells what an answer took.
    pub(super) fn tell_usage(&self, usage: Usage) {
        self.conversation.charge(self.turn, &self.profile, usage, self.context());
    }

    /// Tells what was taken for no answer of the turn.
    pub(super) fn charge_beside(&self, usage: Usage) {
        charge_beside(self.conversation, self.turn, &self.profile, usage, || self.context());
    }

    /// How full the narrower of the context windows is: that of the conversation's own model or of the one that is asked.
    fn context(&self) -> Option<ContextUse> {
        let profile = compact::narrower(self.conversation, &self.profile.name);
        profile.ok().map(|profile| self.conversation.measure(&profile).usage)
    }
}
