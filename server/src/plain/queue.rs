//! The queue, for editors without a plugin: the commands `kode.steer` and `kode.queue`.
//!
//! Rule: without an argument nothing is changed; the default is the next queued prompt.

use std::sync::Arc;

use kode_engine::agent::prompt::Prompt;
use kode_engine::agent::session::Session;
use kode_engine::agent::session::prompts::SubmitOutcome;
use kode_engine::base::ids::{QueueId, SessionId};
use kode_engine::config::command::btw;
use kode_engine::record::event::QueuedPrompt;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::convert::error::{self, RequestError};
use crate::convert::turn_of;
use crate::display::printable;
use crate::plain::aside;

/// The command that tells the running turn something.
pub(super) const STEER: &str = "kode.steer";
/// The command that lists what waits, and changes it.
pub(super) const QUEUE: &str = "kode.queue";

/// The argument of `kode.steer`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SteerArgument {
    text: String,
}

/// The argument of `kode.queue`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(super) struct QueueArgument {
    op: QueueOperation,
    /// The queued prompts; the default is the next one.
    queue_id: Option<String>,
    /// The new words.
    text: Option<String>,
    /// The one that it is moved before.
    before: Option<String>,
    session_id: Option<SessionId>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum QueueOperation {
    #[default]
    List,
    Edit,
    Remove,
    Move,
    Promote,
}

/// Tells the running turn something, or begins one.
pub(super) fn steer(agent: &Agent, steer: SteerArgument) -> Result<Value, RequestError> {
    let session = agent.plain_session().map_err(error::session)?;
    if let Some(question) = btw::asked(&steer.text) {
        return aside::ask(agent, &session, question);
    }
    Ok(submitted(&session, &session.prompts().steer(Prompt::from(steer.text)).map_err(error::submit)?))
}

/// The outcome of a prompt.
pub(super) fn submitted(session: &Session, submitted: &SubmitOutcome) -> Value {
    match submitted {
        SubmitOutcome::Started(turn) => json!({ "sessionId": session.id(), "turnId": turn }),
        SubmitOutcome::Queued(queue) => json!({ "sessionId": session.id(), "queueId": queue }),
        SubmitOutcome::Answered { turn, item } => {
            json!({ "sessionId": session.id(), "turnId": turn, "itemId": item })
        }
        SubmitOutcome::Steering { turn, queue } => {
            json!({ "sessionId": session.id(), "turnId": turn, "queueId": queue })
        }
    }
}

/// Lists what waits, or changes it: `{text, queue, steering, paused}`, with `turnId` where a prompt was sent ahead.
pub(super) fn change(agent: &Arc<Agent>, change: QueueArgument) -> Result<Value, RequestError> {
    let session = match &change.session_id {
        Some(id) => agent.engine.session(id),
        None => agent.plain_session(),
    };
    let session = session.map_err(error::session)?;
    if matches!(change.op, QueueOperation::List) {
        return Ok(list(&session));
    }
    let next = || session.snapshot(0).queue.into_iter().next().map(|prompt| prompt.id);
    let id = change.queue_id.map(QueueId::from_external).or_else(next);
    let id = id.ok_or_else(|| error::invalid_params("queueId", "no prompt waits"))?;
    let mut turn = None;
    match change.op {
        QueueOperation::List => {}
        QueueOperation::Edit => {
            let text = change.text.unwrap_or_default();
            session.prompts().edit_queued(&id, &text, None).map_err(error::queue)?;
        }
        QueueOperation::Remove => session.prompts().remove_queued(&id).map_err(error::queue)?,
        QueueOperation::Move => {
            let before = change.before.map(QueueId::from_external);
            session.prompts().move_queued(&id, before.as_ref()).map_err(error::queue)?;
        }
        QueueOperation::Promote => turn = Some(session.prompts().promote_queued(&id).map_err(error::queue)?),
    }
    let mut listed = list(&session);
    if let Some(turn) = turn.as_ref().and_then(turn_of) {
        listed["turnId"] = json!(turn);
    }
    Ok(listed)
}

fn list(session: &Session) -> Value {
    let now = session.snapshot(0);
    let line = |what: &str, prompt: &QueuedPrompt| {
        format!("{} {what}: {}", prompt.id, printable(prompt.text.lines().next().unwrap_or_default()))
    };
    let steering = now.steering.iter().map(|prompt| line("goes to the running turn", prompt));
    let mut lines: Vec<_> = steering.chain(now.queue.iter().map(|prompt| line("waits", prompt))).collect();
    if lines.is_empty() {
        lines.push("No prompt waits.".to_owned());
    }
    if now.queue_paused {
        lines.push(format!(
            "They do not start by themselves. Send a prompt, or run {QUEUE} with {{\"op\": \"promote\"}}."
        ));
    }
    let shown = |prompts: &[QueuedPrompt]| -> Vec<Value> {
        prompts.iter().map(|prompt| json!({ "queueId": prompt.id, "text": prompt.text })).collect()
    };
    json!({
        "text": lines.join("\n"),
        "queue": shown(&now.queue),
        "steering": shown(&now.steering),
        "paused": now.queue_paused,
    })
}
