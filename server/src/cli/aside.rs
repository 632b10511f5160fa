//! Side questions in a terminal: `/btw QUESTION` as a prompt.
//!
//! Rule: a question is answered like a command that shows something: its answer is the output, and nothing of it is stored.

use std::time::Instant;

use kode_engine::agent::session::Session;
use kode_engine::agent::session::side::SideError;
use kode_engine::model::price::Cost;
use kode_engine::record::event::TurnEnd;

use crate::cli::watch::TurnReport;
use crate::signals::EndSignals;

/// The outcome of a side question.
pub(super) struct AsideReport {
    pub(super) report: TurnReport,
    /// The answer, or why there is none; empty after an interruption.
    pub(super) text: String,
    /// Whether there is no answer.
    pub(super) has_failed: bool,
}

/// Asks a side question. A signal that asks for the end cancels it.
pub(super) async fn ask(session: &Session, question: &str, signals: &mut EndSignals) -> AsideReport {
    let began = Instant::now();
    let asked = tokio::select! {
        asked = session.side_questions().ask(question, |_| {}) => asked,
        () = signals.next() => Err(SideError::Cancelled),
    };
    let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    let of = |reason| TurnReport { duration_ms, ..TurnReport::of_none(reason) };
    match asked {
        Ok(answer) => {
            let cut = if answer.is_whole { "" } else { "\n\n[The answer was cut at its limit.]" };
            let (usage, cost) = (answer.usage, Cost::known(answer.cost, &answer.usage));
            let report = TurnReport { usage, cost, ..of(TurnEnd::EndTurn) };
            AsideReport { report, text: format!("{}{cut}", answer.text), has_failed: false }
        }
        Err(SideError::Cancelled) => {
            AsideReport { report: of(TurnEnd::Cancelled), text: String::new(), has_failed: true }
        }
        Err(error) => {
            let hint = match &error {
                SideError::Model(error) => error.hint(),
                _ => "",
            };
            let text = format!("The side question was not answered: {error} {hint}");
            AsideReport { report: of(TurnEnd::Error), text: text.trim_end().to_owned(), has_failed: true }
        }
    }
}
