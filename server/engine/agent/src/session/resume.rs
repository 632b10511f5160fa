//! How a session is taken up from its journal: what was unfinished is sealed or asked again, and what streamed is kept.
//!
//! When the server ends in order, what waits for the user is left open for that.
//!
//! Rule: nothing runs and no model is asked by itself on taking up; only unfinished calls get a result, once, and taking
//! up again what was taken up adds nothing but the note that it was.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::watch;

use crate::hooks::EndReason;
use crate::session::conversation::Conversation;
use crate::session::turns::ActiveTurn;
use crate::session::{Session, SessionState, lock, new_item};
use crate::turn::{self, AskedAgain, TakenUp};
use kode_base::blocking;
use kode_base::ids::{AgentId, TurnId};
use kode_base::mode::{Mode, WrittenMode};
use kode_record::event::{
    CallState, Item, ItemBody, NoticeKind, NoticeLevel, ResumeStrategy, SealedCall, TurnEnd,
};
use kode_record::record::{Record, TurnFigures};

/// Why a call has no result when the server ended before it.
const SERVER_ENDED: &str = "the server ended before the call did";

/// What the model is told behind an answer that broke off when the server ended.
const BROKEN_OFF: &str = "[The program ended here, in the middle of your answer.]";

/// So long loading a session waits at most until the user was asked again what they were asked before.
const ASKING_LIMIT: Duration = Duration::from_secs(5);

/// What holds back a turn that was taken up, until the user has answered.
#[derive(Debug)]
pub(crate) struct Resumption {
    waiting: Mutex<Waiting>,
    is_attended: watch::Sender<bool>,
    /// Whether what waits for the user is left to the next life of the session.
    is_left: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    /// What the turn's task goes on with, until it has taken it.
    taken_up: Option<TakenUp>,
    /// What the user is asked again.
    asked: Vec<AskedAgain>,
}

impl Default for Resumption {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            is_attended: watch::Sender::new(true),
            is_left: AtomicBool::new(false),
        }
    }
}

impl Session {
    /// As [`Session::close`], because the server ends: what waits for the user then is not cancelled, but asked again when
    /// the session is loaded. A turn that the user has cancelled before ends all the same.
    pub(crate) fn close_with_server(&self, reason: EndReason) {
        let goes_on = self.active().as_ref().is_some_and(|active| !active.cancel.is_cancelled());
        if goes_on {
            self.resumption.is_left.store(true, Ordering::SeqCst);
        }
        self.close_for(reason);
    }

    /// Whether the server ends, so that what waits for the user is not at an end.
    pub(crate) fn is_left_to_next_life(&self) -> bool {
        self.resumption.is_left.load(Ordering::SeqCst)
    }

    /// Ends the work at a turn that stays open in the books, for the next life of the session to go on with.
    pub(super) fn put_aside(&self, turn: &TurnId) {
        let _nobody_looks_meanwhile = self.state();
        *self.active() = None;
        tracing::info!(session = %self.id, %turn, "the turn waits for the user, and is left open");
    }

    /// Brings a session that was read from its journal into a state from which it can go on.
    pub(super) fn take_up(&self, skipped_records: u64) {
        let strategy = self.strategy();
        let taken_up = TakenUp::of(self);
        self.keep_what_streamed();
        let sealed = self.seal_lost_calls(taken_up.as_ref());
        self.withdraw_all_proposals();
        self.end_lost_tasks();
        self.end_lost_agents(taken_up.as_ref());
        let mut state = self.state();
        if let Some(turn) = state.turn.clone() {
            match taken_up {
                Some(taken_up) => self.go_on_with(&state, turn, taken_up),
                None => self.break_off(&mut state, turn),
            }
        }
        if skipped_records > 0 {
            self.note_damage(&mut state, skipped_records);
        }
        let (sealed, states) = sealed
            .into_iter()
            .map(|sealed| (sealed.call, sealed.state.unwrap_or(CallState::Pending)))
            .unzip();
        // Written every time: what is told in this life is numbered above all that was told in an earlier one.
        self.commit_locked(&mut state, Record::Resumed { sealed, skipped_records, states, strategy });
        self.replace_lost_model(&mut state);
        // Prompts that waited when the server ended go on waiting for a person: nothing runs by itself on a resume.
    }

    /// What the turn goes on with that was taken up, for its task.
    pub(super) fn taken_up(&self) -> Option<TakenUp> {
        lock(&self.resumption.waiting).taken_up.take()
    }

    /// Notes that the user has answered: what was taken up may go on.
    pub(crate) fn note_answer(&self) {
        self.resumption.is_attended.send_if_modified(|is_attended| !std::mem::replace(is_attended, true));
    }

    /// Whether the user has answered since the session was taken up, or was asked nothing then.
    pub(crate) fn is_attended(&self) -> bool {
        *self.resumption.is_attended.borrow()
    }

    /// Waits until the user has answered something.
    pub(crate) async fn attended(&self) {
        // The sender lives as long as the session.
        drop(self.resumption.is_attended.subscribe().wait_for(|is_attended| *is_attended).await);
    }

    /// Waits until all is asked again that was asked when the server ended, or needs no answer any more; not for ever.
    pub(crate) async fn asked_again(&self) {
        let mut events = self.events.subscribe(self.events.newest(), Vec::new());
        let asked = async {
            // After a gap the next look tells as well.
            while !self.has_asked_again() && !matches!(events.next().await, Ok(None)) {}
        };
        if tokio::time::timeout(ASKING_LIMIT, asked).await.is_err() {
            tracing::warn!(session = %self.id, "what waited for the user is not asked again yet");
        }
    }

    fn has_asked_again(&self) -> bool {
        let asked = lock(&self.resumption.waiting).asked.clone();
        if asked.is_empty() || !self.is_busy() {
            return true;
        }
        let (prompts, questions) = (self.broker.pending(), self.questions());
        let state = self.state();
        let is_open = |call| {
            let mut threads = state.agents.values().map(|agent| &agent.thread).chain([&state.main]);
            threads.any(|thread| thread.item_of(call).is_some())
        };
        asked.iter().all(|asked| match asked {
            Some(call) => {
                prompts.iter().any(|prompt| prompt.call == *call)
                    || questions.iter().any(|question| question.call.as_ref() == Some(call))
                    || !is_open(call)
            }
            None => questions.iter().any(|question| question.call.is_none()),
        })
    }

    /// Whether the server had ended in the middle of something.
    fn strategy(&self) -> ResumeStrategy {
        let state = self.state();
        let is_unfinished = state.turn.is_some() || state.background.running().next().is_some();
        if is_unfinished { ResumeStrategy::Crash } else { ResumeStrategy::Manual }
    }

    /// Makes what streamed when the server ended an answer that broke off.
    fn keep_what_streamed(&self) {
        let agents: Vec<_> = self.state().agents.keys().cloned().collect();
        let agents = agents.into_iter().map(|agent| Conversation::of_agent(self, agent));
        for conversation in agents.chain([Conversation::main(self)]) {
            let answer = conversation.read(|thread| thread.broken_off_answer(Timestamp::now()));
            let Some(answer) = answer else { continue };
            let said = match &answer {
                Record::Answer { turn, message, .. } if !message.content.is_empty() => Some(turn.clone()),
                _ => None,
            };
            conversation.commit(answer);
            if let Some(turn) = said {
                conversation.commit(Record::Remark { turn, text: BROKEN_OFF.to_owned() });
            }
        }
    }

    /// Gives the calls that do not go on a result, those of sub-agents first.
    fn seal_lost_calls(&self, taken_up: Option<&TakenUp>) -> Vec<SealedCall> {
        let agents: Vec<_> = self.state().agents.keys().cloned().collect();
        let agents = agents.into_iter().map(|agent| Conversation::of_agent(self, agent));
        let conversations = agents.chain([Conversation::main(self)]);
        let sealed = conversations.flat_map(|conversation| {
            let goes_on = taken_up.map(|taken_up| taken_up.calls_of(conversation.agent.as_ref()));
            turn::seal_but(&conversation, SERVER_ENDED, &goes_on.unwrap_or_default())
        });
        sealed.collect()
    }

    /// Ends the work of sub-agents that does not go on.
    fn end_lost_agents(&self, taken_up: Option<&TakenUp>) {
        let goes_on =
            |agent: &AgentId| taken_up.is_some_and(|taken_up| !taken_up.calls_of(Some(agent)).is_empty());
        let lost: Vec<_> = {
            let state = self.state();
            let at_work = state
                .agents
                .iter()
                .filter_map(|(id, agent)| Some((id.clone(), agent.turn.clone()?, agent.charged)));
            at_work.filter(|(id, ..)| !goes_on(id)).collect()
        };
        for (agent, turn, usage) in lost {
            let (reason, figures) = (TurnEnd::Error, TurnFigures::default());
            let record = Record::TurnEnded { turn, reason, usage, figures };
            Conversation::of_agent(self, agent).commit(record);
        }
    }

    /// Lets the turn go on in which the user was asked something.
    fn go_on_with(&self, state: &SessionState, turn: TurnId, taken_up: TakenUp) {
        let active = ActiveTurn {
            id: turn.clone(),
            options: state.options,
            cancel: self.cancel.child_token(),
            calls: std::collections::HashMap::new(),
            hurry: Arc::default(),
        };
        *self.active() = Some(active);
        self.resumption.is_attended.send_replace(false);
        {
            let mut waiting = self.resumption.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.asked = taken_up.asked_again();
            waiting.taken_up = Some(taken_up);
        }
        // The receiver is gone only when the session is closed.
        drop(self.turns.send(turn));
    }

    /// Ends a turn in which nobody was asked anything.
    fn break_off(&self, state: &mut SessionState, turn: TurnId) {
        // What a prompt pointed at and nobody looked up is gone: the files may be others by now.
        let is_lost = state.attaching.as_ref().is_some_and(|attaching| !attaching.prompt.parts.is_empty());
        let hint = match is_lost {
            true => "What went with the prompt had not been read yet: hand it in again.",
            false => "Send `continue` to go on from here.",
        };
        self.commit_locked(state, interrupted(&turn, hint));
        let (usage, figures) = (state.spending.usage_of(&turn), TurnFigures::default());
        self.commit_locked(state, Record::TurnEnded { turn, reason: TurnEnd::Error, usage, figures });
    }

    /// Tells people in the transcript that a part of it may be missing; once for the same damage.
    fn note_damage(&self, state: &mut SessionState, lines: u64) {
        let text = match lines {
            1 => "A record of this session could not be read.".to_owned(),
            lines => format!("{lines} records of this session could not be read."),
        };
        let is_told = |item: &Item| matches!(&item.body, ItemBody::Notice { text: told, kind: Some(NoticeKind::Damaged), .. } if *told == text);
        if state.main.items.backwards().any(|item| is_told(&item)) {
            return;
        }
        let turn = state.main.turns().last().cloned().unwrap_or_else(TurnId::generate);
        let hint = format!(
            "What they told is missing here and for the model; everything else is as it was. The journal is kept as it \
             is: {}",
            self.journal.path().display()
        );
        let (level, kind) = (NoticeLevel::Warning, Some(NoticeKind::Damaged));
        let item = new_item(&turn, ItemBody::Notice { level, text, hint: Some(hint), kind });
        self.commit_locked(state, Record::Item { item, streamed: false });
    }

    /// Lets the main model answer where that of the session is not known any more.
    fn replace_lost_model(&self, state: &mut SessionState) {
        let models = self.models();
        let Err(error) = models.profile(&state.model) else { return };
        let lost = state.model.clone();
        let model = models.default_name().to_owned();
        if model == lost {
            // Which one it is does not matter then; the next turn says what is missing.
            return;
        }
        tracing::warn!(session = %self.id, %lost, %error, "the model profile of the session is gone");
        let text =
            format!("The model profile `{lost}` of this session is gone; `{model}` answers from now on.");
        let hint = "Choose another one, or bring the profile back into the settings.";
        self.tell_of_loss(state, &text, hint);
        // One that is not known is told of later, and is kept until then.
        let mode = state.unknown_mode.clone().map_or(state.mode.into(), WrittenMode::Unknown);
        let (effort, output_style) = (state.effort, state.output_style.clone());
        self.commit_locked(state, Record::Configured { mode, model, effort, output_style });
    }

    /// Looks whether the mode still counts and the folders are still there, and tells in the transcript what is gone.
    pub(crate) async fn look_for_losses(self: &Arc<Self>) {
        let session = Arc::clone(self);
        let look = move || {
            session.replace_lost_mode();
            session.tell_of_lost_folders();
        };
        blocking(look).await;
    }

    /// Lets the default mode count where that of the session was switched off meanwhile, or is none of this build's.
    fn replace_lost_mode(&self) {
        let in_force = self.in_force();
        let mut state = self.state();
        let mode = Mode::default();
        let text = match (&state.unknown_mode, in_force.policy.allow_mode(state.mode)) {
            (Some(lost), _) => {
                format!("This version of kode-ls does not know the mode `{lost}` of this session.")
            }
            (None, Err(error)) => {
                format!("The mode {} of this session counts no more: {error}.", state.mode.name())
            }
            (None, Ok(_)) => return,
        };
        self.tell_of_loss(&mut state, &text, &format!("The mode is now {}.", mode.name()));
        let mode = mode.into();
        let (model, effort) = (state.model.clone(), state.effort);
        let output_style = state.output_style.clone();
        self.commit_locked(&mut state, Record::Configured { mode, model, effort, output_style });
    }

    /// Tells in the transcript which folders are gone that the session works in; once for each.
    fn tell_of_lost_folders(&self) {
        let lost: Vec<_> = self.roots().into_iter().filter(|root| !root.as_path().is_dir()).collect();
        let mut state = self.state();
        for root in lost {
            let text = format!("The folder `{root}` that this session works in is gone.");
            let is_told =
                |item: &Item| matches!(&item.body, ItemBody::Notice { text: told, .. } if *told == text);
            if !state.main.items.backwards().any(|item| is_told(&item)) {
                let hint = "Bring the folder back to go on; until then the tools find nothing there, and commands \
                            do not run.";
                self.tell_of_loss(&mut state, &text, hint);
            }
        }
    }

    /// Tells in the transcript what of the session is gone.
    fn tell_of_loss(&self, state: &mut SessionState, text: &str, hint: &str) {
        let turn = state.turn.clone().or_else(|| state.main.turns().last().cloned());
        let body = ItemBody::Notice {
            level: NoticeLevel::Warning,
            text: text.to_owned(),
            hint: Some(hint.to_owned()),
            kind: None,
        };
        let item = new_item(&turn.unwrap_or_else(TurnId::generate), body);
        self.commit_locked(state, Record::Item { item, streamed: false });
    }
}

/// What the transcript says where the server ended.
pub(crate) fn interrupted(turn: &TurnId, hint: &str) -> Record {
    let body = ItemBody::Notice {
        level: NoticeLevel::Warning,
        text: "The server ended in the middle of this turn.".to_owned(),
        hint: Some(hint.to_owned()),
        kind: Some(NoticeKind::Interrupted),
    };
    Record::Item { item: new_item(turn, body), streamed: false }
}
