//! Side questions: a prompt `/btw QUESTION` is answered at once, also while a turn runs.
//!
//! Rule: the answer is one message of its own, so that it does not run into the text of a turn; the prompt is answered
//! after it.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{ContentChunk, Error, MessageId, SessionUpdate, StopReason};
use kode_engine::agent::session::side::SideError;
use kode_engine::base::ids::ItemId;
use kode_engine::model::ModelErrorKind;
use serde_json::{Value, json};

use super::prompts::aside_done;
use super::session::AcpSession;
use super::updates::meta;
use super::{error, sessions};

/// Answers a side question of a session.
///
/// # Errors
/// Why there is no answer.
pub(super) async fn ask(open: &Arc<AcpSession>, question: &str) -> Result<Value, Error> {
    let live = open.agent.engine.session_for_prompt(&open.id).await;
    let live = live.map_err(|problem| error::session(&problem))?;
    let answer = match live.side_questions().ask(question, |_| {}).await {
        Ok(answer) => answer,
        Err(SideError::Cancelled) => return Ok(aside_done(StopReason::Cancelled, None)),
        Err(problem) => return Err(failure(problem)),
    };
    let chunk = ContentChunk::new(answer.text.as_str().into());
    let chunk = chunk.message_id(MessageId::new(ItemId::generate().as_str()));
    let chunk = chunk.meta(meta(json!({ "sideQuestion": question })));
    sessions::updates(open).send(SessionUpdate::AgentMessageChunk(chunk)).await;
    let reason = if answer.is_whole { StopReason::EndTurn } else { StopReason::MaxTokens };
    Ok(aside_done(reason, Some(&answer)))
}

fn failure(problem: SideError) -> Error {
    match problem {
        SideError::Empty | SideError::TooLong => error::invalid_params(&problem.to_string()),
        SideError::Model(fault) if fault.kind == ModelErrorKind::Configuration => error::model(&fault),
        SideError::Model(fault) => error::internal(&format!("{} {}", fault.message, fault.hint())),
        SideError::Busy
        | SideError::Closed
        | SideError::ChatDisabled
        | SideError::Refused(_)
        | SideError::Cancelled
        | SideError::NoText(_)
        | SideError::Broken => error::internal(&problem.to_string()),
    }
}
