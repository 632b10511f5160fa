//! Questions for editors without a plugin: message requests, and the command `kode.answer`.
//!
//! Rule: a question is asked in a task of its own and stays answerable by command as long as it waits; closing a
//! message answers nothing.

use std::sync::{Arc, Weak};

use kode_engine::agent::session::Session;
use kode_engine::base::ids::QuestionId;
use kode_engine::base::mode::Mode;
use kode_engine::base::question::{
    Inquiry, InquiryAnswer, LIMIT_STOP, PAGE_REFUSE, PLAN_REJECT, Question, QuestionKind, Reply,
};
use kode_engine::base::task;
use lsp_types::request::ShowMessageRequest;
use lsp_types::{MessageActionItem, MessageType, ShowMessageRequestParams};
use serde::Deserialize;
use serde_json::{Value, json};
use tower_lsp::Client;

use crate::agent::Agent;
use crate::connection::ClientConnection;
use crate::convert::error::{self, RequestError};
use crate::display::{both_ends, printable, question_lines};
use crate::plain::page;
use crate::plain::review::questions::has_actions;

/// The command that answers questions.
pub(super) const ANSWER: &str = "kode.answer";

/// Maximum characters of a question in a message.
const QUESTION_LIMIT: usize = 4_000;

/// Ends the choice of several options.
const DONE: &str = "Done";

/// Leaves a question without an answer.
const REFUSE: &str = "Do not answer";

/// Asks in a task of its own. A client that cannot, or whose user closes the message, gets the command.
pub(super) async fn ask(connection: &Arc<ClientConnection>, session: Weak<Session>, question: Question) {
    let client = connection.client.clone();
    if !connection.facts.get().is_some_and(|facts| facts.show_message_request) {
        let all = question.draft.questions.iter();
        let text: Vec<_> = all.map(|inquiry| text(&question, inquiry)).collect();
        let text = format!("{}\n{}", text.join("\n"), how_to_answer(&question));
        client.show_message(MessageType::WARNING, text).await;
        return;
    }
    let connection = Arc::clone(connection);
    task::spawn(async move {
        let reply = match answers(&client, &session, &question).await {
            MessageAnswer::Answered(answers) => Some(answers),
            MessageAnswer::Refused => None,
            MessageAnswer::Closed => {
                if session.upgrade().is_some_and(|session| waits(&session, &question)) {
                    let text = format!("Still waiting for an answer. {}", how_to_answer(&question));
                    client.show_message(MessageType::WARNING, text).await;
                }
                return;
            }
        };
        let Some(session) = session.upgrade() else { return };
        let by = "window/showMessageRequest".to_owned();
        let reply = Reply { answers: reply, by, ..Reply::default() };
        let page = page::chosen(&session, &question.id, &reply);
        match session.requests().reply(&question.id, reply) {
            Ok(()) => page::open(&connection, page),
            Err(error) => client.show_message(MessageType::INFO, error.to_string()).await,
        }
    });
}

/// Whether it is unanswered.
pub(super) fn waits(session: &Session, question: &Question) -> bool {
    session.requests().questions().iter().any(|waiting| waiting.id == question.id)
}

enum MessageAnswer {
    Answered(Vec<InquiryAnswer>),
    Refused,
    /// Without an answer; another client may have given it.
    Closed,
}

/// Asks one thing after the other.
async fn answers(client: &Client, session: &Weak<Session>, question: &Question) -> MessageAnswer {
    let mut answers = Vec::new();
    for inquiry in &question.draft.questions {
        let mut labels: Vec<String> = Vec::new();
        loop {
            if !session.upgrade().is_some_and(|session| waits(&session, question)) {
                return MessageAnswer::Closed;
            }
            let Some(chosen) = choose(client, text(question, inquiry), offered(inquiry, &labels)).await
            else {
                return MessageAnswer::Closed;
            };
            match chosen.as_str() {
                REFUSE if !is_option(inquiry, REFUSE) => return MessageAnswer::Refused,
                DONE if inquiry.multi_select && !labels.is_empty() => break,
                _ if !is_option(inquiry, &chosen) || labels.contains(&chosen) => {
                    return MessageAnswer::Closed;
                }
                _ => labels.push(chosen),
            }
            if !inquiry.multi_select || labels.len() == inquiry.options.len() {
                break;
            }
        }
        answers.push(InquiryAnswer { labels, text: None });
    }
    MessageAnswer::Answered(answers)
}

async fn choose(client: &Client, message: String, titles: Vec<String>) -> Option<String> {
    let actions = titles.into_iter();
    let actions = actions.map(|title| MessageActionItem { title, properties: Default::default() }).collect();
    let params = ShowMessageRequestParams { typ: MessageType::INFO, message, actions: Some(actions) };
    // Waits as long as the user does; nothing else waits for this task.
    match client.send_request::<ShowMessageRequest>(params).await {
        Ok(chosen) => chosen.map(|chosen| chosen.title),
        Err(error) => {
            tracing::warn!(%error, "the message request failed");
            None
        }
    }
}

fn is_option(inquiry: &Inquiry, label: &str) -> bool {
    inquiry.options.iter().any(|option| option.label == label)
}

fn offered(inquiry: &Inquiry, chosen: &[String]) -> Vec<String> {
    let left = inquiry.options.iter().map(|option| option.label.clone());
    let mut titles: Vec<String> = left.filter(|label| !chosen.contains(label)).collect();
    if !chosen.is_empty() {
        titles.push(DONE.to_owned());
    }
    // Some questions have an option of their own that says no.
    if ![PLAN_REJECT, LIMIT_STOP, PAGE_REFUSE].iter().any(|no| is_option(inquiry, no)) {
        titles.push(REFUSE.to_owned());
    }
    titles
}

fn text(question: &Question, inquiry: &Inquiry) -> String {
    if question.draft.page.is_some() {
        // An address is of bounded length and is never cut.
        return question_lines(question, inquiry).join("\n");
    }
    both_ends(&question_lines(question, inquiry).join("\n"), QUESTION_LIMIT)
}

/// How a question is answered without a message request.
fn how_to_answer(question: &Question) -> String {
    if has_actions(question) {
        return "Answer with a code action.".to_owned();
    }
    let answers: Vec<_> = question.draft.questions.iter().map(|_| "\"…\"").collect();
    let what = match question.draft.kind {
        QuestionKind::Choice | QuestionKind::Plan => "for each question an option, or your own words",
        QuestionKind::TurnLimit | QuestionKind::Rest | QuestionKind::Candidates => "one of the options",
    };
    format!("Answer with the command `{ANSWER}` and {{\"answers\": [{}]}}: {what}.", answers.join(", "))
}

/// The argument of `kode.answer`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct AnswerArgument {
    question_id: Option<String>,
    /// For each thing asked: an option, words, or a list of options.
    answers: Option<Vec<AnswerChoice>>,
    /// Whether the user does not want to answer.
    refuse: bool,
    feedback: Option<String>,
    /// The plan as the user has changed it, when they accept one.
    plan: Option<String>,
    /// The mode in which an accepted plan is carried out.
    mode: Option<Mode>,
    /// With the choice of one of two answers: whether its calls run without a prompt of their own.
    skip_permission_asks: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum AnswerChoice {
    One(String),
    Several(Vec<String>),
}

/// Answers the question that is named, or the only one that waits.
pub(super) async fn answer(
    connection: &Arc<ClientConnection>,
    agent: &Agent,
    argument: AnswerArgument,
) -> Result<Value, RequestError> {
    let sessions = agent.engine.live_sessions().into_iter();
    let mut waiting: Vec<(Arc<Session>, Question)> = sessions
        .flat_map(|session| {
            let questions = session.requests().questions();
            questions.into_iter().map(move |question| (Arc::clone(&session), question))
        })
        .collect();
    let named = argument.question_id.clone().map(QuestionId::from_external);
    if named.is_none() && waiting.len() > 1 {
        let several: Vec<_> = waiting.iter().map(|(_, question)| question.id.to_string()).collect();
        let message = format!("several questions wait, name one of them: {}", several.join(", "));
        return Err(error::invalid_params("questionId", &message));
    }
    waiting.retain(|(_, question)| named.as_ref().is_none_or(|id| question.id == *id));
    let (session, question) = waiting.pop().ok_or_else(|| error::unknown_question(named.as_ref()))?;
    if argument.answers.is_none() && !argument.refuse {
        let asked: Vec<_> =
            question.draft.questions.iter().map(|inquiry| printable(&inquiry.question)).collect();
        let message = format!("give an answer to each of these, or `refuse` as true: {}", asked.join(" | "));
        return Err(error::invalid_params("answers", &message));
    }
    let said = argument.answers.clone().filter(|_| !argument.refuse);
    let answers = said.map(|answers| {
        let inquiries = question.draft.questions.iter().map(Some).chain(std::iter::repeat(None));
        answers.into_iter().zip(inquiries).map(|(said, inquiry)| picked(inquiry, said)).collect()
    });
    if let Some(mode) = argument.mode {
        session.gate().allow_mode(mode).await.map_err(error::mode)?;
    }
    let AnswerArgument { feedback, plan, mode, skip_permission_asks: skip_asks, .. } = argument;
    let reply = Reply { answers, feedback, plan, mode, skip_asks, by: "command".to_owned() };
    let page = page::chosen(&session, &question.id, &reply);
    session.requests().reply(&question.id, reply).map_err(error::reply)?;
    page::open(connection, page);
    Ok(json!({ "questionId": question.id }))
}

/// The name of an option chooses it; any other text is an answer in words.
fn picked(inquiry: Option<&Inquiry>, said: AnswerChoice) -> InquiryAnswer {
    let said = match said {
        AnswerChoice::One(text) => vec![text],
        AnswerChoice::Several(texts) => texts,
    };
    let (labels, words): (Vec<_>, Vec<_>) =
        said.into_iter().partition(|text| inquiry.is_some_and(|inquiry| is_option(inquiry, text)));
    InquiryAnswer { labels, text: (!words.is_empty()).then(|| words.join("\n")) }
}
