//! Resuming a session from its journal: unfinished calls are sealed or asked again, and streamed text is kept.
//!
//! When the server ends in order, requests that wait for the user stay open for the next run.
//!
//! Rule: a resume runs nothing and calls no model. Only unfinished calls get a result, once; a second resume adds nothing but
//! its record.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;

use crate::core::thread::ThreadHandle;
use crate::core::{Core, lock};
use crate::hooks::EndReason;
use crate::session::Session;
use crate::state::SessionState;
use crate::turn::resume::{RepeatedRequest, ResumePoint};
use crate::turn::turns::ActiveTurn;
use crate::turn::{interrupted, seal_except, team};
use kode_base::blocking;
use kode_base::ids::{AgentId, TurnId};
use kode_base::mode::{Mode, StoredMode};
use kode_record::event::{
    Breakpoint, CallState, Item, ItemBody, NoticeKind, NoticeLevel, ResumeStrategy, SealedCall, TurnEnd,
};
use kode_record::record::{Record, TurnFigures};

/// Why a call has no result when the server ended before it.
const SERVER_ENDED: &str = "the server ended before the call did";

/// The model's note behind an answer that broke off when the server ended.
const BROKEN_OFF: &str = "[The program ended here, in the middle of your answer.]";

/// The most time that loading a session waits for its repeated requests.
const REPEAT_LIMIT: Duration = Duration::from_secs(5);

/// The turn that a resumed session continues.
#[derive(Debug, Default)]
pub(super) struct Resumption(Mutex<ResumedTurn>);

#[derive(Debug, Default)]
struct ResumedTurn {
    /// The point at which the session's task resumes it, until the task has taken it.
    point: Option<ResumePoint>,
    /// The requests that are made again.
    requests: Vec<RepeatedRequest>,
}

impl Resumption {
    /// The resume point, for the session's task; once.
    pub(super) fn take_point(&self) -> Option<ResumePoint> {
        lock(&self.0).point.take()
    }
}

impl Session {
    /// As [`Session::close`], because the server ends: requests that wait for the user are not cancelled, but made again when
    /// the session is loaded. A turn that the user has cancelled before ends nevertheless.
    pub(crate) fn close_with_server(&self, reason: EndReason) {
        let continues =
            self.services.turns.active().as_ref().is_some_and(|active| !active.cancel.is_cancelled());
        if continues {
            self.services.requests.keep_for_next_run();
        }
        self.close_for(reason);
    }

    /// Ends the work on a turn that stays open in the journal, for the next run of the session.
    pub(super) fn put_aside(&self, turn: &TurnId) {
        let _state = self.core().state();
        *self.services.turns.active() = None;
        tracing::info!(session = %self.id(), %turn, "the turn waits for the user, and is left open");
    }

    /// Brings a session that was read from its journal into a state from which it can continue.
    pub(super) fn resume(&self, skipped_records: u64) {
        let strategy = strategy(self.core());
        let breakpoint = breakpoint(self.core());
        let point = ResumePoint::of(self.core());
        keep_streamed(self.core());
        let sealed = seal_lost_calls(self.core(), point.as_ref());
        self.services.edits.withdraw_all_proposals();
        self.tasks.end_lost();
        end_lost_agents(self.core(), point.as_ref());
        team::end_lost(self.core());
        let mut state = self.core().state();
        if let Some(turn) = state.running.id.clone() {
            match point {
                Some(point) => self.resume_turn(&state, turn, point),
                None => break_off(self.core(), &mut state, turn),
            }
        }
        if skipped_records > 0 {
            note_damage(self.core(), &mut state, skipped_records);
        }
        let (sealed, states) = sealed
            .into_iter()
            .map(|sealed| (sealed.call, sealed.state.unwrap_or(CallState::Pending)))
            .unzip();
        // Written every time: the events of this run have higher numbers than those of every earlier one.
        self.core()
            .commit_to(&mut state, Record::Resumed { sealed, skipped_records, states, strategy, breakpoint });
        self.replace_lost_model(&mut state);
        // Prompts that waited when the server ended continue waiting for a person: nothing runs by itself on a resume.
    }

    /// Waits until all requests of the run before are made again, or need no answer any more; for a limited time.
    pub(crate) async fn requests_repeated(&self) {
        let mut events = self.events().subscribe(self.events().newest(), Vec::new());
        let repeated = async {
            // After a gap the next event serves as well.
            while !self.has_repeated_requests() && !matches!(events.next().await, Ok(None)) {}
        };
        if tokio::time::timeout(REPEAT_LIMIT, repeated).await.is_err() {
            tracing::warn!(session = %self.id(), "the requests of the run before are not made again yet");
        }
    }

    fn has_repeated_requests(&self) -> bool {
        let requests = lock(&self.resumption.0).requests.clone();
        if requests.is_empty() || !self.is_busy() {
            return true;
        }
        let (prompts, questions) = (self.services.requests.permissions(), self.services.requests.questions());
        let state = self.core().state();
        let is_open = |call| {
            let mut threads = state.agents.values().map(|agent| &agent.thread).chain([&state.main]);
            threads.any(|thread| thread.item_of(call).is_some())
        };
        requests.iter().all(|request| match request {
            Some(call) => {
                prompts.iter().any(|prompt| prompt.call == *call)
                    || questions.iter().any(|question| question.call.as_ref() == Some(call))
                    || !is_open(call)
            }
            None => questions.iter().any(|question| question.call.is_none()),
        })
    }

    /// Resumes the turn in which requests waited for the user.
    fn resume_turn(&self, state: &SessionState, turn: TurnId, point: ResumePoint) {
        let active = ActiveTurn::new(self.core(), turn.clone(), state.running.options.clone());
        *self.services.turns.active() = Some(active);
        self.services.requests.hold_until_attended();
        {
            let mut resumed = lock(&self.resumption.0);
            resumed.requests = point.repeated_requests();
            resumed.point = Some(point);
        }
        self.prompts.run(turn);
    }

    /// Replaces the model of the session by the main model where it is not known any more.
    fn replace_lost_model(&self, state: &mut SessionState) {
        let models = self.services.models.now();
        let Err(error) = models.profile(&state.config.model) else { return };
        let lost = state.config.model.clone();
        let model = models.default_name().to_owned();
        if model == lost {
            // The next turn reports it.
            return;
        }
        tracing::warn!(session = %self.core().id(), %lost, %error, "the model profile of the session is gone");
        let text =
            format!("The model profile `{lost}` of this session is gone; `{model}` answers from now on.");
        let hint = "Choose another one, or bring the profile back into the settings.";
        report_loss(self.core(), state, &text, hint);
        // An unknown mode is kept, and reported later.
        let mode = state.config.unknown_mode.clone().map_or(state.config.mode.into(), StoredMode::Unknown);
        let (effort, output_style) = (state.config.effort, state.config.output_style.clone());
        let sandbox = state.config.sandbox.clone();
        self.core().commit_to(state, Record::Configured { mode, model, effort, output_style, sandbox });
    }

    /// Replaces a mode that does not apply any more, and adds notices of folders that are gone.
    pub(crate) async fn check_losses(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let check = move || {
            session.replace_lost_mode();
            session.report_lost_folders();
        };
        blocking(check).await;
    }

    /// Replaces the mode of the session by the default one where it was disabled meanwhile, or is unknown to this build.
    fn replace_lost_mode(&self) {
        let in_force = self.services.gate.in_force();
        let mut state = self.core().state();
        let mode = Mode::default();
        let text = match (&state.config.unknown_mode, in_force.policy.allow_mode(state.config.mode)) {
            (Some(lost), _) => {
                format!("This version of kode-ls does not know the mode `{lost}` of this session.")
            }
            (None, Err(error)) => {
                format!("The mode {} of this session no longer applies: {error}.", state.config.mode.name())
            }
            (None, Ok(_)) => return,
        };
        report_loss(self.core(), &mut state, &text, &format!("The mode is now {}.", mode.name()));
        let mode = mode.into();
        let (model, effort) = (state.config.model.clone(), state.config.effort);
        let (output_style, sandbox) = (state.config.output_style.clone(), state.config.sandbox.clone());
        self.core().commit_to(&mut state, Record::Configured { mode, model, effort, output_style, sandbox });
    }

    /// Adds a notice of each folder of the session that is gone, once.
    fn report_lost_folders(&self) {
        let workspace = &self.services().environment.workspace;
        let lost: Vec<_> =
            workspace.roots().iter().filter(|root| !root.as_path().is_dir()).cloned().collect();
        let mut state = self.core().state();
        for root in lost {
            let text = format!("The folder `{root}` that this session works in is gone.");
            let is_reported = |item: &Item| matches!(&item.body, ItemBody::Notice { text: reported, .. } if *reported == text);
            if !state.main.items.backwards().any(|item| is_reported(&item)) {
                let hint = "Restore the folder to continue. Until then the tools find nothing there, and \
                     commands do not run.";
                report_loss(self.core(), &mut state, &text, hint);
            }
        }
    }
}

/// Whether the server had ended in the middle of something.
fn strategy(core: &Arc<Core>) -> ResumeStrategy {
    let state = core.state();
    let is_unfinished = state.running.id.is_some() || state.background.running().next().is_some();
    if is_unfinished { ResumeStrategy::Crash } else { ResumeStrategy::Manual }
}

/// The step that the turn had reached when the server ended, as far as the journal tells.
fn breakpoint(core: &Arc<Core>) -> Breakpoint {
    let state = core.state();
    if state.running.id.is_none() {
        return Breakpoint::Ready;
    }
    let open = state.main.unanswered();
    let has = |wanted: CallState| {
        open.iter().any(|item| matches!(&item.body, ItemBody::ToolCall(call) if call.state == wanted))
    };
    let last = state.main.items.backwards().next();
    match last.as_ref().map(|item| &item.body) {
        _ if has(CallState::ApprovalRequired) => Breakpoint::AwaitingApproval,
        _ if has(CallState::Executing) => Breakpoint::ToolExecuting,
        _ if !open.is_empty() => Breakpoint::ToolPending,
        _ if state.main.broken_off_answer(Timestamp::now()).is_some() => Breakpoint::StreamingModel,
        Some(ItemBody::ToolCall(_)) => Breakpoint::PostTool,
        _ => Breakpoint::PreModel,
    }
}

/// Records text that streamed when the server ended as an answer that broke off.
fn keep_streamed(core: &Arc<Core>) {
    for thread in ThreadHandle::all(core) {
        let answer = thread.read(|thread| thread.broken_off_answer(Timestamp::now()));
        let Some(answer) = answer else { continue };
        let said = match &answer {
            Record::Answer { turn, message, .. } if !message.content.is_empty() => Some(turn.clone()),
            _ => None,
        };
        thread.commit(answer);
        if let Some(turn) = said {
            thread.commit(Record::Remark { turn, text: BROKEN_OFF.to_owned() });
        }
    }
}

/// Gives the calls that are not resumed a result, those of sub-agents first.
fn seal_lost_calls(core: &Arc<Core>, point: Option<&ResumePoint>) -> Vec<SealedCall> {
    let threads = ThreadHandle::all(core).into_iter();
    let sealed = threads.flat_map(|thread| {
        let resumed = point.map(|point| point.calls_of(thread.agent.as_ref()));
        seal_except(&thread, SERVER_ENDED, &resumed.unwrap_or_default())
    });
    sealed.collect()
}

/// Ends the work of sub-agents that are not resumed.
fn end_lost_agents(core: &Arc<Core>, point: Option<&ResumePoint>) {
    let is_resumed = |agent: &AgentId| point.is_some_and(|point| !point.calls_of(Some(agent)).is_empty());
    let lost: Vec<_> = {
        let state = core.state();
        let at_work = state
            .agents
            .iter()
            .filter_map(|(id, agent)| Some((id.clone(), agent.turn.clone()?, agent.charged)));
        at_work.filter(|(id, ..)| !is_resumed(id)).collect()
    };
    for (agent, turn, usage) in lost {
        let (reason, figures) = (TurnEnd::Error, TurnFigures::default());
        let record = Record::TurnEnded { turn, reason, usage, figures };
        ThreadHandle::of_agent(core, agent).commit(record);
    }
}

/// Ends a turn in which no request waited for the user.
fn break_off(core: &Arc<Core>, state: &mut SessionState, turn: TurnId) {
    // Unread attachments are gone: the files may be others by now.
    let is_lost = state.running.prompt.as_ref().is_some_and(|pending| !pending.prompt.parts().is_empty());
    let hint = match is_lost {
        true => "The attachments of the prompt had not been read yet: send it again.",
        false => "Send `continue` to resume from here.",
    };
    core.commit_to(state, interrupted(&turn, hint));
    let (usage, figures) = (state.spending.usage_of(&turn), TurnFigures::default());
    core.commit_to(state, Record::TurnEnded { turn, reason: TurnEnd::Error, usage, figures });
}

/// Adds a notice that a part of the transcript may be missing; once for the same damage.
fn note_damage(core: &Arc<Core>, state: &mut SessionState, lines: u64) {
    let text = match lines {
        1 => "A record of this session could not be read.".to_owned(),
        lines => format!("{lines} records of this session could not be read."),
    };
    let is_reported = |item: &Item| matches!(&item.body, ItemBody::Notice { text: reported, kind: Some(NoticeKind::Damaged), .. } if *reported == text);
    if state.main.items.backwards().any(|item| is_reported(&item)) {
        return;
    }
    let turn = state.main.turns().last().cloned().unwrap_or_else(TurnId::generate);
    let hint = format!(
        "Their content is missing here and for the model; everything else is unchanged. The journal is \
             kept as it is: {}",
        core.journal().path().display()
    );
    let (level, kind) = (NoticeLevel::Warning, Some(NoticeKind::Damaged));
    core.add_item(state, &turn, ItemBody::Notice { level, text, hint: Some(hint), kind });
}

/// Adds a notice of a loss.
pub(super) fn report_loss(core: &Arc<Core>, state: &mut SessionState, text: &str, hint: &str) {
    let turn = state.running.id.clone().or_else(|| state.main.turns().last().cloned());
    let body = ItemBody::Notice {
        level: NoticeLevel::Warning,
        text: text.to_owned(),
        hint: Some(hint.to_owned()),
        kind: None,
    };
    core.add_item(state, &turn.unwrap_or_else(TurnId::generate), body);
}
