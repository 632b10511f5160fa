//! Follows a turn to its end and answers its prompts.
//!
//! Rule: nothing is allowed that nobody said yes to: without a person and without `--yes` the answer is no.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use anyhow::Context;
use kode_engine::agent::session::Session;
use kode_engine::base::ids::{ItemId, TurnId};
use kode_engine::model::Usage;
use kode_engine::model::price::Cost;
use kode_engine::permission::{PermissionPrompt, PromptAnswer, Scope};
use kode_engine::record::event::{Event, ItemBody, Subscription, TurnEnd};
use kode_engine::record::phases::PhaseTimes;

use crate::cli::questions::{self, Answerer};
use crate::cli::terminal;
use crate::signals::EndSignals;

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

/// Follows the events until the turn is done. A signal that asks for the end cancels the turn.
pub(super) async fn watch(
    session: &Arc<Session>,
    mut events: Subscription,
    turn: &TurnId,
    answerer: Answerer,
    mut on_event: impl FnMut(&Event) -> io::Result<()>,
) -> anyhow::Result<TurnReport> {
    let mut signals = EndSignals::listen().context("could not listen for signals")?;
    loop {
        let batch = tokio::select! {
            batch = events.next() => batch,
            () = signals.next() => {
                session.turns().cancel();
                continue;
            }
        };
        let batch = batch.context("events were lost; the machine is too slow to follow")?;
        let batch = batch.context("the session ended before the turn did")?;
        for record in batch {
            on_event(&record.event).context("could not write the output")?;
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
                        usage,
                        duration_ms,
                        model_calls,
                        tool_calls,
                        phases,
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
    mut events: Subscription,
    answer: &ItemId,
    mut on_event: impl FnMut(&Event) -> io::Result<()>,
) -> anyhow::Result<TurnReport> {
    let (mut is_answered, mut restores, mut restored) = (false, false, false);
    while !is_answered || (restores && !restored) {
        let batch = events.next().await.context("events were lost; the machine is too slow to follow")?;
        for record in batch.context("the session ended before the command was answered")? {
            on_event(&record.event).context("could not write the output")?;
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
    Ok(TurnReport {
        reason: TurnEnd::EndTurn,
        usage: Usage::default(),
        duration_ms: 0,
        model_calls: 0,
        tool_calls: 0,
        phases: PhaseTimes::default(),
        cost: Cost::default(),
    })
}

fn answer(session: &Arc<Session>, prompt: PermissionPrompt, answerer: Answerer) {
    terminal::error_line(terminal::prompt(&prompt).trim_end());
    let fixed = |allow, by: &str, feedback: Option<&str>| PromptAnswer {
        allow,
        feedback: feedback.map(str::to_owned),
        by: by.to_owned(),
        ..PromptAnswer::default()
    };
    match answerer {
        Answerer::Yes => {
            terminal::error_line("  yes (--yes)");
            respond(session, &prompt, fixed(true, "--yes", None));
        }
        Answerer::Nobody => {
            terminal::error_line(
                "  no: nobody is there to be asked (choose a --mode, or run it in a terminal)",
            );
            let why = "Nobody is there to be asked: this is a run without a terminal.";
            respond(session, &prompt, fixed(false, "headless", Some(why)));
        }
        Answerer::Person => {
            let session = Arc::clone(session);
            // Reading a terminal cannot be cancelled, so it has a thread of its own; a late answer is refused.
            tokio::task::spawn_blocking(move || {
                let answer = ask(&prompt);
                respond(&session, &prompt, answer);
            });
        }
    }
}

fn respond(session: &Session, prompt: &PermissionPrompt, answer: PromptAnswer) {
    if let Err(error) = session.requests().respond(&prompt.id, answer) {
        terminal::error_line(&format!("  {error}"));
    }
}

fn ask(prompt: &PermissionPrompt) -> PromptAnswer {
    let mut stderr = io::stderr().lock();
    drop(write!(stderr, "{}", terminal::choices(prompt)).and_then(|()| stderr.flush()));
    drop(stderr);
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).unwrap_or(0);
    parse_answer(prompt, if read == 0 { "n" } else { line.trim() })
}

fn parse_answer(prompt: &PermissionPrompt, line: &str) -> PromptAnswer {
    let offers = |scope| prompt.scopes.contains(&scope);
    let (allow, scope, feedback) = match line {
        "y" | "Y" | "yes" => (true, Scope::Once, None),
        "s" | "S" if offers(Scope::Session) => (true, Scope::Session, None),
        "p" | "P" if offers(Scope::Project) => (true, Scope::Project, None),
        "u" | "U" if offers(Scope::User) => (true, Scope::User, None),
        "" | "n" | "N" | "no" => (false, Scope::Once, None),
        words => (false, Scope::Once, Some(words.to_owned())),
    };
    PromptAnswer { allow, scope, feedback, by: "terminal".to_owned(), ..PromptAnswer::default() }
}

#[cfg(test)]
mod tests {
    use kode_engine::base::ids::{CallId, ItemId, PermissionId};
    use kode_engine::permission::Preview;

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
            mode: None,
            scopes: vec![Scope::Once],
            offers: vec![],
            input: serde_json::json!({}),
            timestamp: jiff::Timestamp::now(),
        };
        let said = |line| parse_answer(&prompt, line);
        assert!(said("y").allow && said("yes").allow);
        for no in ["", "n", "no", "s", "yes please"] {
            assert!(!said(no).allow, "{no}");
        }
        assert_eq!(said("use cargo instead").feedback.as_deref(), Some("use cargo instead"));
        let offered = PermissionPrompt { scopes: vec![Scope::Once, Scope::Session], ..prompt.clone() };
        assert_eq!(parse_answer(&offered, "s").scope, Scope::Session);
    }
}
