//! The tasks of a live session: the one that runs its turns, and the one that keeps up with the editor.
//!
//! Rule: turns run one after another, in the one task; both tasks end when the session is closed.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engine::desk::Desk;
use crate::hooks::moments::{Admission, IDLE};
use crate::input::note;
use crate::session::base::Due;
use crate::session::conversation::Conversation;
use crate::session::slash::Taken;
use crate::session::state::Attaching;
use crate::session::{Session, committed};
use crate::turn::{self, Ended};
use kode_base::blocking;
use kode_base::ids::TurnId;
use kode_config::command::is_unsaid;
use kode_config::extension::live::LoadedExtensions;
use kode_journal::lease::LeaseRefusal;

impl Session {
    /// What runs in it that would end with it.
    pub(crate) fn at_work(&self) -> Option<LeaseRefusal> {
        self.work_of(self.has_commands())
    }

    /// Ends the session for another process, unless something runs in it.
    ///
    /// # Errors
    /// What runs.
    pub(crate) fn close_for_another_if_idle(&self) -> Result<(), LeaseRefusal> {
        // Locked to the end: no prompt is taken meanwhile.
        let state = self.state();
        if let Some(why) = self.work_of(state.background.running().next().is_some()) {
            return Err(why);
        }
        self.goes_on.store(true, Ordering::SeqCst);
        self.cancel.cancel();
        self.shell.tasks().close();
        Ok(())
    }

    fn work_of(&self, has_commands: bool) -> Option<LeaseRefusal> {
        if self.is_busy() || self.is_resolving() {
            Some(LeaseRefusal::TurnRunning)
        } else if has_commands {
            Some(LeaseRefusal::CommandsRunning)
        } else {
            None
        }
    }
}

/// The session's one task: runs turn after turn until the session is closed.
pub(super) async fn drive(
    session: Arc<Session>,
    mut turns: mpsc::UnboundedReceiver<TurnId>,
    desk: Arc<dyn Desk>,
) {
    // What is wrong with the settings is told before anybody asks anything.
    let looker = Arc::clone(&session);
    tokio::spawn(async move { looker.look().await });
    session.begin_first_sight();
    if session.base.is_wanted() {
        session.keep_base(Due::Now).await;
    }
    let mut is_idle_told = true;
    loop {
        let turn = tokio::select! {
            biased;
            turn = turns.recv() => turn,
            () = session.cancel.cancelled() => None,
            () = tokio::time::sleep(IDLE), if !is_idle_told => {
                is_idle_told = true;
                session.notify("idle_prompt", "Waiting", "kode-ls is waiting for your input.".to_owned());
                continue;
            }
        };
        let Some(turn) = turn else { break };
        let cancel = match session.active().as_ref() {
            Some(active) if active.id == turn => active.cancel.clone(),
            _ => continue,
        };
        // What has changed in the settings counts from here on.
        tokio::select! {
            _ = session.look() => {}
            () = cancel.cancelled() => {}
        }
        session.note_told(&turn);
        is_idle_told = false;
        // Beside each other: all of them wait for the disk, which has the prompt before any model does.
        let stands = async {
            let (surroundings, ()) = tokio::join!(session.surroundings(), session.look_for_extensions());
            session.look_up_standing(&turn, surroundings);
            session.tell_waiting_hooks(&turn);
        };
        let servers = async {
            tokio::select! {
                () = session.begin_servers() => {}
                () = cancel.cancelled() => {}
            }
        };
        tokio::join!(stands, servers, session.sync());
        let ended = AssertUnwindSafe(run(&session, &*desk, &turn, &cancel)).catch_unwind().await;
        let ended = ended.unwrap_or_else(|_| turn::failed(&Conversation::main(&session), &turn));
        session.let_servers_start();
        let workspace = Arc::clone(&session.workspace);
        blocking(move || workspace.look_for_changes()).await;
        session.gather_news();
        if turn::is_left_open(&Conversation::main(&session), &turn, ended.reason) {
            session.put_aside(&turn);
        } else {
            session.end_turn(&turn, &ended);
            session.begin_titling(&turn);
        }
        session.sync().await;
        session.keep_base(Due::Turn).await;
        session.begin_summary();
    }
    session.fire_session_end().await;
    session.end_titling().await;
    session.shell.tasks().closed().await;
    session.leave_servers().await;
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

/// Tells when files of agents, skills, commands or styles have changed, and what is wrong with them.
pub(super) async fn follow_extensions(session: Arc<Session>) {
    let mut read = session.extensions.subscribe();
    let mut told: Option<Arc<LoadedExtensions>> = read.borrow_and_update().clone();
    if let Some(known) = &told {
        look_at_wishes(&session, known).await;
    }
    loop {
        tokio::select! {
            () = session.cancel.cancelled() => return,
            changed = read.changed() => if changed.is_err() { return },
        }
        let Some(now) = read.borrow_and_update().clone() else { continue };
        let problems = now.problems();
        // What there is when a session begins is no change; what is wrong with it is news all the same.
        if told.is_some() || !problems.is_empty() {
            session.publish((&*now).into());
        }
        look_at_wishes(&session, &now).await;
        told = Some(now);
    }
}

/// Tells what files of agents, skills and commands ask for, where that is news.
async fn look_at_wishes(session: &Arc<Session>, loaded: &LoadedExtensions) {
    session.guard.know_wishes(loaded.wishes().cloned().collect());
    session.look().await;
}

/// Looks up what goes with the prompt of a turn, then runs the turn; or goes on with one that was taken up.
async fn run(session: &Arc<Session>, desk: &dyn Desk, turn: &TurnId, cancel: &CancellationToken) -> Ended {
    if let Some(taken_up) = session.taken_up() {
        return turn::go_on(&Conversation::main(session), turn, taken_up, cancel).await;
    }
    let is_prompt =
        |attaching: &Attaching| kode_config::command::compact::asked(&attaching.prompt.text).is_none();
    let attaching = session.state().attaching.clone().filter(is_prompt);
    if let Some(attaching) = attaching {
        if let Some(note) = note::of(&attaching.prompt) {
            session.take_note(turn, note, cancel).await;
            return Ended::without_model();
        }
        // What no model is asked for is nothing that hooks see.
        if !is_unsaid(&attaching.prompt.text) {
            let conversation = Conversation::main(session);
            conversation.fire_session_start(turn, cancel).await;
            match conversation.admit(turn, &attaching.prompt.text, cancel).await {
                Admission::Taken => {}
                Admission::Refused(reason) => {
                    conversation.refuse_prompt(turn, &reason);
                    return Ended::by_hook();
                }
                Admission::Stopped => return Ended::by_hook(),
            }
        }
        let item = attaching.item.clone();
        match session.take_command(desk, turn, attaching, cancel).await {
            Taken::Words(prompt) => session.attach(turn, &item, &prompt, cancel).await,
            Taken::Answered => return Ended::without_model(),
            Taken::Delegated(delegation) => {
                return turn::begin_with(&Conversation::main(session), turn, delegation, cancel).await;
            }
        }
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
