//! The tasks of a live session: the one that runs its turns, and the one that follows its extensions.
//!
//! Rule: turns run one after another, in the one task. Both tasks end when the session is closed.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::history::base::BaseDue;
use crate::hooks::{Admission, IDLE, reject_prompt};
use crate::prompt::PromptKind;
use crate::session::Session;
use crate::session::commands::{SlashOutcome, take_command};
use crate::session::directory::SessionDirectory;
use crate::turn::resume::is_left_open;
use crate::turn::services::{Services, TurnContext};
use crate::turn::{self, TurnResult};
use kode_base::blocking;
use kode_base::ids::TurnId;
use kode_base::task;
use kode_config::extension::live::LoadedExtensions;

/// The session's one task: runs turn after turn until the session is closed.
pub(super) async fn drive(
    session: Arc<Session>,
    mut turns: mpsc::UnboundedReceiver<TurnId>,
    directory: Arc<dyn SessionDirectory>,
) {
    let services = Arc::clone(&session.services);
    // Problems of the settings are published before the first prompt.
    let gate = Arc::clone(&services.gate);
    task::spawn(async move { gate.refresh().await });
    services.instructions.begin_first_look();
    if session.history.wants_base() {
        session.history.write_base_if_due(BaseDue::Opened).await;
    }
    let mut is_idle_notified = true;
    loop {
        let turn = tokio::select! {
            biased;
            turn = turns.recv() => turn,
            () = services.core.closing() => None,
            () = tokio::time::sleep(IDLE), if !is_idle_notified => {
                is_idle_notified = true;
                let message = "kode-ls is waiting for your input.".to_owned();
                services.hooks.notify("idle_prompt", "Waiting", message);
                continue;
            }
        };
        let Some(turn) = turn else { break };
        let cancel = match services.turns.active().as_ref() {
            Some(active) if active.id == turn => active.cancel.clone(),
            _ => continue,
        };
        is_idle_notified = false;
        prepare(&services, &turn, &cancel).await;
        run_turn(&session, &*directory, &turn, &cancel).await;
    }
    end(&session).await;
}

/// Reads everything that a turn needs from the disk before its model is called.
async fn prepare(services: &Services, turn: &TurnId, cancel: &CancellationToken) {
    // Changed settings apply from here on.
    tokio::select! {
        _ = services.gate.refreshed() => {}
        () = cancel.cancelled() => {}
    }
    services.edits.enter_given_news(turn);
    // Beside each other: all of them wait for the disk, which must have the prompt before any model does.
    let instructions = async {
        services.instructions.load(turn, services.extensions.refresh()).await;
        services.hooks.report_waiting(turn);
    };
    let servers = async {
        tokio::select! {
            () = services.servers.begin() => {}
            () = cancel.cancelled() => {}
        }
    };
    let languages = services.environment.workspace.refresh_languages();
    tokio::join!(instructions, servers, languages, services.core.sync());
}

/// Runs a turn and records its end.
async fn run_turn(
    session: &Arc<Session>,
    directory: &dyn SessionDirectory,
    id: &TurnId,
    cancel: &CancellationToken,
) {
    let services = &session.services;
    let conversation = services.main_conversation();
    let turn = TurnContext { services, conversation: &conversation, id };
    services.goals.begin_turn();
    let outcome = AssertUnwindSafe(carry_out(session, directory, turn, cancel)).catch_unwind().await;
    let outcome = outcome.unwrap_or_else(|_| turn::failed(turn));
    services.goals.end_turn();
    services.servers.turn_ended();
    let workspace = Arc::clone(&services.environment.workspace);
    blocking(move || workspace.look_for_changes()).await;
    services.edits.gather_news();
    if is_left_open(turn, outcome.reason) {
        session.put_aside(id);
    } else {
        services.requests.end_hold();
        session.prompts.end_turn(id, &outcome);
        session.titles.begin(id);
    }
    services.core.sync().await;
    session.history.write_base_if_due(BaseDue::Turn).await;
    session.history.begin_summary();
}

/// Carries out the prompt of a turn, or resumes the turn.
async fn carry_out(
    session: &Arc<Session>,
    directory: &dyn SessionDirectory,
    turn: TurnContext<'_>,
    cancel: &CancellationToken,
) -> TurnResult {
    if let Some(point) = session.resumption.take_point() {
        return turn::resume(turn, point, cancel).await;
    }
    let services = turn.services;
    let Some(pending) = services.core.state().running.prompt.clone() else {
        return turn::run(turn, cancel).await;
    };
    let prompt = &pending.prompt;
    match prompt.kind() {
        PromptKind::Compaction { focus } => return turn::run_compaction(turn, focus.clone(), cancel).await,
        PromptKind::Note(note) => {
            services.input.take_note(turn.id, note, cancel).await;
            return TurnResult::without_model();
        }
        PromptKind::Text | PromptKind::BuiltIn { .. } | PromptKind::Named { .. } => {}
    }
    // Hooks see what a model gets, and nothing else.
    if !prompt.kind().is_silent() {
        services.hooks.session_start(turn.conversation, turn.id, cancel).await;
        match services.hooks.admit(turn.conversation, turn.id, prompt.text(), cancel).await {
            Admission::Accepted => {}
            Admission::Rejected(reason) => {
                reject_prompt(&turn.conversation.thread, turn.id, &reason);
                return TurnResult::by_hook();
            }
            Admission::Stopped => return TurnResult::by_hook(),
        }
    }
    let item = pending.item.clone();
    match take_command(session, directory, turn, pending, cancel).await {
        SlashOutcome::Input(text, parts) => {
            services.input.attach(turn.id, &item, (&text, &parts), cancel).await;
            turn::run(turn, cancel).await
        }
        SlashOutcome::Answered => TurnResult::of_command(cancel),
        SlashOutcome::Delegation(delegation) => turn::run_delegation(turn, *delegation, cancel).await,
    }
}

/// Ends the work of a session that is being closed, and writes the rest.
async fn end(session: &Arc<Session>) {
    let services = &session.services;
    services.hooks.session_end().await;
    session.titles.end().await;
    session.side_questions.end().await;
    services.environment.shell.tasks().closed().await;
    services.servers.leave().await;
    services.edits.close().await;
    session.drafts.write();
    services.core.sync().await;
    session.history.base_written().await;
    session.history.write_base_if_due(BaseDue::End).await;
    session.history.base_written().await;
    services.environment.workspace.stop_watching();
    session.history.settle_folder().await;
    services.core.release_journal();
    if !session.is_handed_over.load(Ordering::SeqCst) {
        services.core.events().close();
    }
}

/// Publishes changes of the files of agents, skills, commands and styles, and their problems.
pub(super) async fn follow_extensions(services: Arc<Services>) {
    let mut loaded = services.extensions.live().subscribe();
    let mut published: Option<Arc<LoadedExtensions>> = loaded.borrow_and_update().clone();
    if let Some(known) = &published {
        take_requests(&services, known).await;
    }
    loop {
        tokio::select! {
            () = services.core.closing() => return,
            changed = loaded.changed() => if changed.is_err() { return },
        }
        let Some(now) = loaded.borrow_and_update().clone() else { continue };
        // The files at the beginning of a session are no change; their problems are news all the same.
        if published.is_some() || !now.problems().is_empty() {
            services.core.publish((&*now).into());
        }
        take_requests(&services, &now).await;
        published = Some(now);
    }
}

/// Hands the trust requests of agents, skills and commands to the gatekeeper, which publishes the new ones.
async fn take_requests(services: &Services, loaded: &LoadedExtensions) {
    services.gate.set_extension_requests(loaded.trust_requests().cloned().collect());
    services.gate.refresh().await;
}
