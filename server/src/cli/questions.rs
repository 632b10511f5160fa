//! Answers the model's questions at a terminal.
//!
//! Rule: without a user the answer is a refusal, at once; a plan alone is accepted by `--yes`, for that is a yes.

use std::sync::Arc;

use kode_engine::agent::session::Session;
use kode_engine::base::question::{Inquiry, InquiryAnswer, PLAN_ACCEPT, Question, QuestionKind, Reply};
use kode_engine::base::task;
use kode_engine::permission::NOBODY;

use crate::cli::terminal;
use crate::display::question_lines;

/// The answers to permission prompts and questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answerer {
    /// The person at the terminal.
    Person,
    /// `--yes`.
    Yes,
    /// No user: every prompt is refused.
    Nobody,
}

impl Answerer {
    /// A person if there is one.
    pub(super) fn at_hand() -> Self {
        if terminal::is_interactive() { Self::Person } else { Self::Nobody }
    }
}

/// Answers a question, or lets the person do it.
pub(super) fn answer(session: &Arc<Session>, question: Question, answerer: Answerer) {
    for inquiry in &question.draft.questions {
        terminal::error_line(&question_lines(&question, inquiry).join("\n"));
    }
    match answerer {
        Answerer::Yes if question.draft.kind == QuestionKind::Plan => {
            terminal::error_line("  yes (--yes)");
            let answers = vec![InquiryAnswer { labels: vec![PLAN_ACCEPT.to_owned()], text: None }];
            respond(
                session,
                &question,
                Reply { answers: Some(answers), by: "--yes".to_owned(), ..Reply::default() },
            );
        }
        Answerer::Yes | Answerer::Nobody => {
            terminal::error_line("  no answer: there is no terminal to ask in");
            let why = "No user can answer: this run is not interactive.".to_owned();
            respond(
                session,
                &question,
                Reply { feedback: Some(why), by: NOBODY.to_owned(), ..Reply::default() },
            );
        }
        Answerer::Person => {
            let session = Arc::clone(session);
            // Reading a terminal cannot be cancelled, so it has a thread of its own; a late answer is refused.
            task::spawn_blocking(move || {
                let waits = || session.requests().questions().iter().any(|waiting| waiting.id == question.id);
                let asked = question.draft.questions.iter();
                let answers: Option<Vec<InquiryAnswer>> = asked.map(|inquiry| ask(inquiry, waits)).collect();
                if waits() {
                    let reply = Reply { answers, by: "terminal".to_owned(), ..Reply::default() };
                    if let Some(page) = question.draft.opened(&reply) {
                        terminal::error_line(&format!("  Open this page in a browser: {}", page.address));
                    }
                    respond(&session, &question, reply);
                }
            });
        }
    }
}

fn respond(session: &Session, question: &Question, reply: Reply) {
    if let Err(error) = session.requests().reply(&question.id, reply) {
        terminal::error_line(&format!("  {error}"));
    }
}

/// One line from the person; nothing is no answer.
fn ask(inquiry: &Inquiry, is_wanted: impl Fn() -> bool) -> Option<InquiryAnswer> {
    let several = if inquiry.multi_select { ", several with commas" } else { "" };
    let line = terminal::line(&format!("  Number{several}, or words: "), is_wanted)?;
    read(inquiry, &line)
}

fn read(inquiry: &Inquiry, line: &str) -> Option<InquiryAnswer> {
    let label = |number: &str| {
        let at = number.trim().parse::<usize>().ok()?.checked_sub(1)?;
        inquiry.options.get(at).map(|option| option.label.clone())
    };
    let labels: Option<Vec<String>> = line.split(',').map(label).collect();
    match labels.filter(|labels| labels.len() == 1 || inquiry.multi_select) {
        Some(labels) => Some(InquiryAnswer { labels, text: None }),
        None if line.is_empty() => None,
        None => Some(InquiryAnswer { labels: Vec::new(), text: Some(line.to_owned()) }),
    }
}

#[cfg(test)]
mod tests {
    use kode_engine::base::question::QuestionOption;

    use super::*;

    #[test]
    fn a_line_is_read_as_numbers_of_options_or_as_words() {
        let option = |label: &str| QuestionOption { label: label.into(), description: String::new() };
        let inquiry = |multi_select| Inquiry {
            question: "Which?".into(),
            header: "Kind".into(),
            options: vec![option("red"), option("blue")],
            multi_select,
        };
        let said = |multi, line| {
            read(&inquiry(multi), line)
                .map(|picked| (picked.labels.join("+"), picked.text.unwrap_or_default()))
        };
        let chosen = |labels: &str| Some((labels.to_owned(), String::new()));
        let words = |text: &str| Some((String::new(), text.to_owned()));
        assert_eq!(said(false, "2"), chosen("blue"));
        assert_eq!(said(true, "1, 2"), chosen("red+blue"));
        assert_eq!(said(false, "1, 2"), words("1, 2"));
        assert_eq!(said(false, "3"), words("3"));
        assert_eq!(said(false, "green, please"), words("green, please"));
        assert_eq!(said(false, ""), None);
    }
}
