//! Side questions: the command `kode.btw`, and `/btw QUESTION` as a prompt of `kode.ask` and of chat documents.
//!
//! Rule: the command answers at once, because editors wait for commands; the answer is a message, and whole in the log.

use std::sync::Arc;

use kode_engine::agent::session::Session;
use kode_engine::agent::session::side::SideError;
use kode_engine::base::task;
use lsp_types::MessageType;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::convert::error::{self, RequestError};
use crate::display::{both_ends, printable, readable};
use crate::plain::view::ANSWER_LIMIT;

/// The command that asks a side question.
pub(super) const BTW: &str = "kode.btw";

/// Maximum characters of the question above its answer.
const QUESTION_LIMIT: usize = 80;

/// The argument of `kode.btw`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BtwArgument {
    text: String,
}

/// Asks about the conversation of prompts without one of their own: `{sessionId}`.
pub(super) async fn btw(agent: &Agent, argument: BtwArgument) -> Result<Value, RequestError> {
    let session = agent.plain_session_for_prompt().await.map_err(error::session)?;
    ask(agent, &session, &argument.text)
}

/// Has a side question answered by messages: `{sessionId}`.
///
/// # Errors
/// When it is empty.
pub(super) fn ask(agent: &Agent, session: &Arc<Session>, question: &str) -> Result<Value, RequestError> {
    let question = question.trim().to_owned();
    if question.is_empty() {
        return Err(error::invalid_params("text", "the question is empty"));
    }
    let (client, session_id) = (agent.connection.client.clone(), session.id().clone());
    let side = Arc::clone(session.side_questions());
    task::spawn(async move {
        let asked = side.ask(&question, |_| {}).await;
        let title = both_ends(&printable(&question), QUESTION_LIMIT).replace('\n', " ");
        let (kind, text) = match asked {
            Ok(answer) => (MessageType::INFO, answer.text),
            // The user has ended it.
            Err(SideError::Cancelled | SideError::Closed) => return,
            Err(problem) => {
                let problem = error::side(problem);
                let hint = problem.data.as_ref().and_then(|data| data["hint"].as_str()).unwrap_or_default();
                (MessageType::ERROR, format!("{} {hint}", problem.message))
            }
        };
        let text = format!("/btw {title}\n\n{}", readable(text.trim()));
        client.log_message(MessageType::LOG, &text).await;
        client.show_message(kind, both_ends(&text, ANSWER_LIMIT)).await;
    });
    Ok(json!({ "sessionId": session_id }))
}
