//! The tasks of a live session: the one that runs its turns, and the one that keeps up with the editor; and how it is
//! taken up from its journal.
//!
//! Rule: turns run one after another, in the one task; both tasks end when the session is closed.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::event::{Item, ItemBody, NoticeKind, NoticeLevel, TurnEnd};
use crate::ids::TurnId;
use crate::input::note;
use crate::journal::Record;
use crate::journal::record::TurnFigures;
use crate::model::Usage;
use crate::session::base::Due;
use crate::session::conversation::Conversation;
use crate::session::state::{Attaching, SessionState};
use crate::session::{Session, committed, new_item};
use crate::turn::{self, Ended, compact};
use crate::workspace::blocking;

impl Session {
    /// Brings a session that was read from its journal into a state from which it can go on.
    pub(super) fn take_up(&self, skipped_records: u64) {
        let sealed = turn::seal_all(self, "the server ended before the call did");
        self.withdraw_all_proposals();
        self.end_lost_tasks();
        let mut state = self.state();
        if let Some(turn) = state.turn.clone() {
            // What a prompt pointed at and nobody looked up is gone: the files may be others by now.
            let is_lost =
                state.attaching.as_ref().is_some_and(|attaching| !attaching.prompt.parts.is_empty());
            let hint = match is_lost {
                true => "What went with the prompt had not been read yet: hand it in again.",
                false => "Send `continue` to go on from here.",
            };
            let item = new_item(
                &turn,
                ItemBody::Notice {
                    level: NoticeLevel::Warning,
                    text: "The server ended in the middle of this turn.".to_owned(),
                    hint: Some(hint.to_owned()),
                    kind: Some(NoticeKind::Interrupted),
                },
            );
            self.commit_locked(&mut state, Record::Item { item, streamed: false });
            let (usage, figures) = (Usage::default(), TurnFigures::default());
            let record = Record::TurnEnded { turn, reason: TurnEnd::Error, usage, figures };
            self.commit_locked(&mut state, record);
        }
        if skipped_records > 0 {
            self.note_damage(&mut state, skipped_records);
        }
        // Written every time: what is told in this life is numbered above all that was told in an earlier one.
        self.commit_locked(&mut state, Record::Resumed { sealed, skipped_records });
        // Prompts that waited when the server ended go on waiting for a person: nothing runs by itself on a resume.
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
}

/// The session's one task: runs turn after turn until the session is closed.
pub(super) async fn drive(session: Arc<Session>, mut turns: mpsc::UnboundedReceiver<TurnId>) {
    // What is wrong with the settings is told before anybody asks anything.
    let looker = Arc::clone(&session);
    tokio::task::spawn_blocking(move || looker.in_force());
    if session.base.is_wanted() {
        session.keep_base(Due::Now).await;
    }
    loop {
        let turn = tokio::select! {
            biased;
            turn = turns.recv() => turn,
            () = session.cancel.cancelled() => None,
        };
        let Some(turn) = turn else { break };
        let cancel = match session.active().as_ref() {
            Some(active) if active.id == turn => active.cancel.clone(),
            _ => continue,
        };
        session.note_told(&turn);
        session.look_for_extensions().await;
        session.find_agent_types().await;
        session.look_up_standing(&turn).await;
        session.sync().await;
        let ended = AssertUnwindSafe(run(&session, &turn, &cancel)).catch_unwind().await;
        let ended = ended.unwrap_or_else(|_| turn::failed(&Conversation::main(&session), &turn));
        let workspace = Arc::clone(&session.workspace);
        blocking(move || workspace.look_for_changes()).await;
        session.gather_news();
        session.end_turn(&turn, &ended);
        session.begin_titling(&turn);
        session.sync().await;
        session.keep_base(Due::Turn).await;
        session.begin_summary();
    }
    session.end_titling().await;
    session.shell.tasks().closed().await;
    session.close_changes().await;
    session.write_draft();
    session.sync().await;
    session.base_kept().await;
    session.keep_base(Due::Now).await;
    session.base_kept().await;
    session.workspace.stop_watching();
    session.settle_folder().await;
    session.release_journal();
    if !session.goes_on.load(Ordering::SeqCst) {
        session.events.close();
    }
}

/// Looks up what goes with the prompt of a turn, then runs the turn.
async fn run(session: &Session, turn: &TurnId, cancel: &CancellationToken) -> Ended {
    let is_prompt = |attaching: &Attaching| compact::asked(&attaching.prompt.text).is_none();
    let attaching = session.state().attaching.clone().filter(is_prompt);
    if let Some(Attaching { item, prompt }) = attaching {
        if let Some(note) = note::of(&prompt) {
            session.take_note(turn, note, cancel).await;
            return Ended::without_model();
        }
        session.attach(turn, &item, &prompt, cancel).await;
    }
    turn::carry_out(&Conversation::main(session), turn, cancel).await
}

/// Keeps the ledger up with what happens in the editor until the session is closed.
pub(super) async fn follow_documents(session: Arc<Session>) {
    let mut seen = session.look_at_repositories().await;
    let mut looks = tokio::time::interval(committed::LOOK_INTERVAL);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            biased;
            () = session.cancel.cancelled() => break,
            () = session.changes.feed.arrived() => {
                session.take_in_typing().await;
                drop(session.sync_changes());
                session.look_at_stale().await;
            }
            _ = looks.tick() => {
                session.write_changes();
                // What a running command changes is not entered yet: its commits are looked at afterwards.
                if session.changes.feed.is_command_running()
                    || session.sync_changes().ledger.applied_targets().is_empty()
                {
                    continue;
                }
                if session.changes.feed.is_command_running() {
                    continue;
                }
                let now = session.look_at_repositories().await;
                if now != std::mem::replace(&mut seen, now.clone()) {
                    session.keep_committed().await;
                }
            }
        }
    }
}
