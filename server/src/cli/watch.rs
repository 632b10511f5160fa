//! Follows a turn to its end and answers its prompts.
//!
//! Rule: nothing is allowed without a yes: without a person and without `--yes` the answer is no.

use std::io;
use std::sync::Arc;

use anyhow::Context;
use kode_engine::agent::session::Session;
use kode_engine::base::ids::{ItemId, TurnId};
use kode_engine::base::task;
use kode_engine::model::Usage;
use kode_engine::model::price::Cost;
use kode_engine::permission::{NOBODY, PermissionPrompt, PromptAnswer};
use kode_engine::record::event::{Event, ItemBody, Subscription, TurnEnd};
use kode_engine::record::phases::PhaseTimes;
use tokio::time::{MissedTickBehavior, interval};

use crate::answers::choices;
use crate::cli::questions::{self, Answerer};
use crate::cli::screen::TICK;
use crate::cli::terminal;
use crate::signals::EndSignals;

/// The view of a turn.
pub(super) trait TurnView {
    /// Shows an event.
    ///
    /// # Errors
    /// When writing fails.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// Updates what changes with time.
    fn tick(&mut self) {}
}

/// How a turn ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnReport {
    pub(super) reason: TurnEnd,
    pub(super) usage: Usage,
    pub(super) duration_ms: u64,
    pub(super) model_calls: u32,
    pub(super) tool_calls: u32,
    pub(super) phases: PhaseTimes,
    pub(super) cost: Cost,
}

impl TurnReport {
    /// Of a prompt that began no turn.
    pub(super) fn of_none(reason: TurnEnd) -> Self {
        Self {
            reason,
            usage: Usage::default(),
            duration_ms: 0,
            model_calls: 0,
            tool_calls: 0,
            phases: PhaseTimes::default(),
            cost: Cost::default(),
        }
    }
}

/// Follows the events until the turn is done. A signal that asks for the end cancels the turn; the caller listens for signals
/// before it submits the prompt, so that none is lost.
pub(super) async fn watch(
    session: &Arc<Session>,
    (events, signals): (&mut Subscription, &mut EndSignals),
    turn: &TurnId,
    answerer: Answerer,
    view: &mut dyn TurnView,
) -> anyhow::Result<TurnReport> {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let batch = tokio::select! {
            batch = events.next() => batch,
            () = signals.next() => {
                session.turns().cancel();
                continue;
            }
            _ = ticks.tick() => {
                view.tick();
                continue;
            }
        };
        let batch = batch.context("events were lost; the machine is too slow to follow")?;
        let batch = batch.context("the session ended before the turn did")?;
        for record in batch {
            view.event(&record.event).context("could not write the output")?;
            match record.event {
                Event::PermissionRequired { prompt } => answer(session, *prompt, answerer),
                Event::QuestionAsked { question } => questions::answer(session, *question, answerer),
                Event::Done {
                    turn: done,
                    reason,
                    usage,
                    duration_ms,
                    model_calls,
                    tool_calls,
                    phases,
                    cost,
                } if done == *turn => {
                    return Ok(TurnReport {
                        reason,
                        usage: *usage,
                        duration_ms,
                        model_calls,
                        tool_calls,
                        phases: *phases,
                        cost,
                    });
                }
                _ => {}
            }
        }
    }
}

/// Follows the events until a command is answered that begins no turn, and what it does is done.
pub(super) async fn watch_answer(
    events: &mut Subscription,
    answer: &ItemId,
    view: &mut dyn TurnView,
) -> anyhow::Result<TurnReport> {
    let (mut is_answered, mut restores, mut restored) = (false, false, false);
    while !is_answered || (restores && !restored) {
        let batch = events.next().await.context("events were lost; the machine is too slow to follow")?;
        for record in batch.context("the session ended before the command was answered")? {
            view.event(&record.event).context("could not write the output")?;
            match &record.event {
                Event::ItemAdded { item } if item.id == *answer => {
                    is_answered = true;
                    let ItemBody::Command { data, .. } = &item.body else { continue };
                    restores = data.as_ref().is_some_and(|data| data["resolutionId"].is_string());
                }
                Event::EditsResolved { .. } => restored = true,
                _ => {}
            }
        }
    }
    Ok(TurnReport::of_none(TurnEnd::EndTurn))
}

fn answer(session: &Arc<Session>, prompt: PermissionPrompt, answerer: Answerer) {
    terminal::error_line(terminal::prompt(&prompt, answerer != Answerer::Person).trim_end());
    let fixed = |allow, by: &str| PromptAnswer { allow, by: by.to_owned(), ..PromptAnswer::default() };
    match answerer {
        Answerer::Yes => {
            terminal::error_line("  yes (--yes)");
            respond(session, &prompt, fixed(true, "--yes"));
        }
        Answerer::Nobody => {
            terminal::error_line(
                "  denied: no terminal to ask in (use --mode or --allowed-tools, or run in a terminal)",
            );
            respond(session, &prompt, fixed(false, NOBODY));
        }
        Answerer::Person => {
            let session = Arc::clone(session);
            // Reading the terminal blocks.
            task::spawn_blocking(move || {
                let waits = || session.requests().permissions().iter().any(|waiting| waiting.id == prompt.id);
                while let Some(line) = terminal::line("  Number, y or n, or a reason why not: ", waits) {
                    match parse_answer(&prompt, &line) {
                        TerminalAnswer::Answer(answer) => return respond(&session, &prompt, answer),
                        TerminalAnswer::ShowAll => {
                            terminal::error_line(terminal::prompt(&prompt, true).trim_end())
                        }
                        TerminalAnswer::Unknown => terminal::error_line("  There is no such answer."),
                    }
                }
                // The end of the input denies, unless another client has answered.
                if waits() {
                    respond(&session, &prompt, fixed_no());
                }
            });
        }
    }
}

fn fixed_no() -> PromptAnswer {
    PromptAnswer { by: "terminal".to_owned(), ..PromptAnswer::default() }
}

fn respond(session: &Session, prompt: &PermissionPrompt, answer: PromptAnswer) {
    if let Err(error) = session.requests().respond(&prompt.id, answer) {
        terminal::error_line(&format!("  {error}"));
    }
}

/// The meaning of a line.
#[derive(Debug, PartialEq)]
enum TerminalAnswer {
    Answer(PromptAnswer),
    /// Show the whole prompt.
    ShowAll,
    /// A number that is not offered.
    Unknown,
}

fn parse_answer(prompt: &PermissionPrompt, line: &str) -> TerminalAnswer {
    let choices = choices(prompt);
    let numbered = |number: usize| {
        let chosen = number.checked_sub(1).and_then(|at| choices.get(at));
        chosen.map_or(TerminalAnswer::Unknown, |choice| TerminalAnswer::Answer(choice.answer("terminal")))
    };
    match line {
        "" | "n" | "N" | "no" => numbered(1),
        "y" | "Y" | "yes" => numbered(2),
        "d" | "D" => TerminalAnswer::ShowAll,
        words => match words.parse() {
            Ok(number) => numbered(number),
            Err(_) => TerminalAnswer::Answer(PromptAnswer { feedback: Some(words.to_owned()), ..fixed_no() }),
        },
    }
}

#[cfg(test)]
mod tests {
    use kode_engine::base::ids::{CallId, ItemId, PermissionId};
    use kode_engine::permission::{Preview, Scope};

    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let prompt = PermissionPrompt {
            id: PermissionId::generate(),
            call: CallId::generate(),
            item: ItemId::generate(),
            agent: None,
            tool: "Bash".into(),
            title: "Run ls".into(),
            reason: "test".into(),
            preview: Preview::Command { command: "ls".into(), cwd: "/".into(), sandboxed: false },
            risks: vec![],
            notes: Vec::new(),
            diagnostics: None,
            mode: None,
            scopes: vec![Scope::Once],
            offers: vec![],
            input: serde_json::json!({}),
            timestamp: jiff::Timestamp::now(),
        };
        let said = |prompt: &PermissionPrompt, line| match parse_answer(prompt, line) {
            TerminalAnswer::Answer(answer) => answer,
            other => panic!("{line} is {other:?}"),
        };
        for yes in ["y", "yes", "2"] {
            assert!(said(&prompt, yes).allow, "{yes}");
        }
        for no in ["", "n", "no", "1", "s", "yes please", "-2", "2nd"] {
            assert!(!said(&prompt, no).allow, "{no}");
        }
        assert_eq!(said(&prompt, "use cargo instead").feedback.as_deref(), Some("use cargo instead"));
        assert_eq!(parse_answer(&prompt, "0"), TerminalAnswer::Unknown);
        assert_eq!(parse_answer(&prompt, "3"), TerminalAnswer::Unknown);
        assert_eq!(parse_answer(&prompt, "d"), TerminalAnswer::ShowAll);
        let offered = PermissionPrompt { scopes: vec![Scope::Once, Scope::Session], ..prompt.clone() };
        assert_eq!(said(&offered, "3").scope, Scope::Session);
    }
}
