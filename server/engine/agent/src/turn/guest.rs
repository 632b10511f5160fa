//! The work of a guest: another agent, in the place of the loop.
//!
//! Rule: a request of a guest takes the way of every call, with rules, hooks, prompts and the ledger. Its own actions are
//! marked as not ours, and the files that it changed so are in the review all the same.

mod desk;
mod program;
mod tools;

use std::time::{Duration, Instant};

use tokio::sync::MutexGuard;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::turn::TurnResult;
use crate::turn::ending::{close, seal};
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use desk::Desk;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::ids::ChangeId;
use kode_base::mode::Mode;
use kode_config::agents::guest::GuestProgram;
use kode_record::event::{NoticeLevel, TurnEnd};
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::ledger::review::HunkKind;
use kode_tool::guest::{GuestEnd, GuestJob};

/// How long a cancelled guest waits for calls that run alone.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);

/// The most files that a text names.
const MAX_NAMED: usize = 10;

/// The work of a guest that has ended.
pub(super) struct GuestResult {
    pub(super) turn: TurnResult,
    /// A sentence on the files that it changed itself; empty where it changed none.
    pub(super) around: String,
}

/// Why a guest may not work in this mode: it could change files without asking anybody.
///
/// # Errors
/// The refusal.
pub(super) fn may_work(turn: TurnContext<'_>, kind: &str) -> Result<(), ToolError> {
    let mode = turn.mode();
    if !matches!(mode, Mode::Plan | Mode::Readonly) {
        return Ok(());
    }
    let message = format!(
        "The guest `{kind}` cannot be kept from changing files, and mode {} allows none.",
        mode.label()
    );
    Err(ToolError::new(ToolErrorKind::Denied, message, "Use another type of sub-agent, or do without it."))
}

/// Has a guest do its task, which is the prompt of its type and that of the `call` it works for.
pub(super) async fn run(
    turn: TurnContext<'_>,
    (program, kind): (&GuestProgram, &str),
    (call, prompt): (&ModelToolCall, String),
    cancel: &CancellationToken,
) -> GuestResult {
    let started = Instant::now();
    let services = turn.services;
    // Its changes are those of the call in the transcript that it works for.
    let change = ChangeOrigin {
        id: ChangeId::generate(),
        turn: call.turn.clone(),
        call: call.id.clone(),
        kind: HunkKind::Text,
        permission: None,
    };
    let ended = match program::ready(turn, program).await {
        Ok((program, mode)) => {
            {
                let _exclusive = alone(turn, cancel).await;
                services.edits.guest_begins(change.clone()).await;
            }
            let cwd = turn.conversation.workspace().cwd();
            let job = GuestJob { name: kind.to_owned(), program, mode, cwd, prompt };
            let desk = Desk::new(turn, kind, cancel);
            let ended = match &services.guests {
                Some(guests) => guests.run(job, &desk, cancel).await,
                None => Err(no_guests(kind)),
            };
            desk.finish();
            // Requests that it did not wait for.
            seal(&turn.conversation.thread, "the guest ended before it had its answer");
            let last = {
                let _exclusive = alone(turn, cancel).await;
                services.edits.guest_ends(&change.id).await
            };
            let around = desk.around(last);
            services.core.sync().await;
            (ended, around)
        }
        Err(error) => (Err(error), Vec::new()),
    };
    let (ended, around) = ended;
    let around = named(&around);
    if !around.is_empty() {
        let hint = "They are in the review, where they can be undone. No rule was asked before.";
        let text = format!("The guest `{kind}` changed files around kode-ls: {around}.");
        turn.notice(NoticeLevel::Warning, text, Some(hint.to_owned()));
    }
    // Codex ends its turn as cancelled when the user denies what it asks for.
    let gave_up = ended == Ok(GuestEnd::Cancelled) && !cancel.is_cancelled();
    let (reason, failure) = match ended {
        Ok(GuestEnd::Cancelled) if gave_up => (TurnEnd::EndTurn, None),
        Ok(GuestEnd::Finished) => (TurnEnd::EndTurn, None),
        Ok(GuestEnd::MaxTokens) => (TurnEnd::MaxTokens, None),
        Ok(GuestEnd::MaxTurns) => (TurnEnd::MaxTurns, None),
        Ok(GuestEnd::Refused) => (TurnEnd::Refusal, None),
        Ok(GuestEnd::Cancelled) => (TurnEnd::Cancelled, None),
        Err(_) if cancel.is_cancelled() => (TurnEnd::Cancelled, None),
        Err(error) => (TurnEnd::Error, Some(error.model_text())),
    };
    if let Some(failure) = &failure {
        turn.notice(NoticeLevel::Error, failure.clone(), None);
    }
    close(turn, reason, 0);
    if reason == TurnEnd::EndTurn {
        // It cannot be held back: it has ended.
        services.hooks.before_stop(turn.conversation, turn.id, false, cancel).await;
    }
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let (spent, phases) = (turn.conversation.spent(), turn.conversation.phases().times());
    let mut facts = Vec::new();
    if !around.is_empty() {
        facts.push(format!("It changed files itself, around kode-ls: {around}."));
    }
    if gave_up {
        facts.push(
            "It ended its turn before it had finished, as some agents do when a request is denied."
                .to_owned(),
        );
    }
    let around = facts.join(" ");
    GuestResult { turn: TurnResult { reason, spent, duration_ms, phases, failure }, around }
}

/// Waits until no call runs that must run alone. A cancelled guest waits for a moment and then no longer: changes by such a call
/// meanwhile may count as the guest's.
async fn alone<'a>(turn: TurnContext<'a>, cancel: &CancellationToken) -> Option<MutexGuard<'a, ()>> {
    let patience = async {
        cancel.cancelled().await;
        sleep(CANCEL_PATIENCE).await;
    };
    tokio::select! {
        biased;
        exclusive = turn.services.agent_slots.exclusive() => Some(exclusive),
        () = patience => None,
    }
}

/// The names of files, in a line.
fn named(files: &[String]) -> String {
    let mut names = files.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = files.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        names.push_str(&format!(" and {more} more"));
    }
    names
}

fn no_guests(kind: &str) -> ToolError {
    let message = format!("The guest `{kind}` cannot work here: this program runs no guests.");
    ToolError::new(ToolErrorKind::Failed, message, "Use another type of sub-agent.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_files_are_counted() {
        let files: Vec<String> = (0..12).map(|number| format!("{number}")).collect();
        assert_eq!(named(&files[..2]), "0, 1");
        assert_eq!(named(&files), "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more");
    }
}
