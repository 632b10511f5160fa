//! The `kode.*` commands of `workspace/executeCommand`: the whole agent for an editor that has nothing else.
//!
//! Rule: one table of names, one small function each; a command that cannot do what it should says why and what to
//! do instead.

mod table;

use std::sync::Arc;

use kode_engine::agent::session::Session;
use kode_engine::base::ids::{PermissionId, SessionId};
use kode_engine::base::mode::Mode;
use kode_engine::permission::{PermissionPrompt, PromptAnswer, Scope};
use kode_engine::text::edit::ledger::review::ReviewAction;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::convert::error::{self, RequestError};
use crate::display::printable;
use crate::plain::review::list::list;
use crate::plain::review::publish::report;
use crate::plain::review::resolve::{REVERT, resolve, revert};
use crate::plain::review::restore::{checkpoints, restore};
pub use table::{COMMANDS, EditorCommand, names};

use crate::plain::{PlainFrontEnd, aside, asking, chat, models, questions, queue, sessions, settings};

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
struct CancelArgument {
    session_id: Option<SessionId>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct CompactArgument {
    focus: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RespondArgument {
    permission_id: Option<String>,
    feedback: Option<String>,
    /// The scope of the permission.
    scope: Option<Scope>,
    /// The new mode of the session.
    mode: Option<Mode>,
}

/// Makes this editor the one that continues with a session.
const TAKE_OVER: &str = "kode.takeOver";

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TakeOverArgument {
    session_id: String,
    #[serde(default)]
    force: bool,
}

#[derive(Debug, Deserialize)]
struct SetModeArgument {
    mode: String,
}

/// Runs a command.
///
/// # Errors
/// [`RequestError`]: an unknown command, arguments that do not fit, or what the session says.
pub(crate) async fn run(
    front_end: &Arc<PlainFrontEnd>,
    command: &str,
    arguments: Vec<Value>,
) -> Result<Value, RequestError> {
    let agent = front_end.agent()?;
    let argument = arguments.into_iter().next().unwrap_or(Value::Null);
    match command {
        aside::BTW => aside::btw(agent, parse(command, argument)?).await,
        asking::ASK => asking::ask(agent, parse(command, argument)?).await,
        chat::SEND => chat::send(front_end, parse(command, argument)?).await,
        queue::STEER => queue::steer(agent, parse(command, argument)?),
        queue::QUEUE => shown(agent, queue::change(agent, parse(command, argument)?)?),
        "kode.cancel" => Ok(cancel(agent, &parse(command, argument)?)),
        "kode.allow" => respond(agent, parse(command, argument)?, true),
        "kode.deny" => respond(agent, parse(command, argument)?, false),
        questions::ANSWER => questions::answer(&front_end.connection, agent, parse(command, argument)?).await,
        "kode.setMode" => set_mode(agent, &parse::<SetModeArgument>(command, argument)?.mode).await,
        models::MODEL => models::choose(agent, &parse(command, argument)?),
        "kode.newSession" => {
            agent.forget_plain_session();
            Ok(json!({ "sessionId": agent.plain_session().map_err(error::session)?.id() }))
        }
        TAKE_OVER => take_over(agent, parse(command, argument)?).await,
        sessions::SESSIONS => sessions::choose(agent, parse(command, argument)?).await,
        sessions::RENAME => sessions::rename(agent, parse(command, argument)?).await,
        sessions::ARCHIVE => sessions::archive(agent, parse(command, argument)?).await,
        sessions::DELETE => sessions::delete(agent, parse(command, argument)?).await,
        sessions::SEARCH => shown(agent, sessions::search(agent, parse(command, argument)?).await?),
        "kode.compact" => compact(agent, &parse(command, argument)?),
        "kode.acceptEdits" => resolve(agent, ReviewAction::Accept, &parse(command, argument)?),
        "kode.rejectEdits" => resolve(agent, ReviewAction::Reject, &parse(command, argument)?),
        "kode.keepEdits" => resolve(agent, ReviewAction::Keep, &parse(command, argument)?),
        "kode.undoEdits" => resolve(agent, ReviewAction::Undo, &parse(command, argument)?),
        REVERT => revert(front_end, agent, &parse(command, argument)?),
        "kode.listEdits" => shown(agent, list(agent, &parse(command, argument)?)?),
        "kode.checkpoints" => shown(agent, checkpoints(agent, &parse(command, argument)?)?),
        "kode.restore" => restore(agent, parse(command, argument)?).await,
        settings::TRUST => shown(agent, settings::trust(agent, parse(command, argument)?).await?),
        settings::RULES => shown(agent, settings::rules(agent, &parse(command, argument)?).await?),
        _ => Err(error::invalid_params(
            "command",
            &format!("there is no command `{command}`; there are: {}", names().join(", ")),
        )),
    }
}

/// A list as the answer, and shown to those whose editor does nothing with an answer.
fn shown(agent: &Agent, listed: Value) -> Result<Value, RequestError> {
    report(&agent.connection, listed["text"].as_str().unwrap_or_default());
    Ok(listed)
}

/// Cancels the turn of one conversation, or of all: a turn of an older one can be reached in no other way.
fn cancel(agent: &Agent, cancel: &CancelArgument) -> Value {
    let is_meant = |session: &Arc<Session>| cancel.session_id.as_ref().is_none_or(|id| id == session.id());
    let sessions = agent.engine.live_sessions();
    let cancelled = sessions.iter().filter(|session| {
        let (turn, aside) = match is_meant(session) {
            true => (session.turns().cancel(), session.side_questions().cancel()),
            false => (false, false),
        };
        turn || aside
    });
    let cancelled = cancelled.count();
    json!({ "cancelled": cancelled > 0 })
}

async fn take_over(agent: &Agent, wanted: TakeOverArgument) -> Result<Value, RequestError> {
    let id = SessionId::from_external(wanted.session_id);
    let session = agent.take_over(&id, wanted.force).await.map_err(error::session)?;
    // Requests without a session of their own continue in this one.
    agent.set_plain_session(&session);
    Ok(json!({ "sessionId": session.id() }))
}

fn compact(agent: &Agent, compact: &CompactArgument) -> Result<Value, RequestError> {
    let session = agent.plain_session().map_err(error::session)?;
    Ok(queue::submitted(
        &session,
        &session.prompts().compact(compact.focus.as_deref()).map_err(error::submit)?,
    ))
}

/// Answers the prompt that is named, or the only one that waits: which of several is meant would be a guess.
fn respond(agent: &Agent, respond: RespondArgument, allow: bool) -> Result<Value, RequestError> {
    let sessions = agent.engine.live_sessions().into_iter();
    let waiting: Vec<_> = sessions
        .flat_map(|session| {
            let pending = session.requests().permissions();
            pending.into_iter().map(move |prompt| (Arc::clone(&session), prompt))
        })
        .collect();
    let named = respond.permission_id.map(PermissionId::from_external);
    let found: Option<(Arc<Session>, PermissionPrompt)> = match &named {
        Some(id) => waiting.into_iter().find(|(_, prompt)| prompt.id == *id),
        None if waiting.len() > 1 => {
            let several: Vec<_> = waiting
                .iter()
                .map(|(_, prompt)| format!("{} ({})", prompt.id, printable(&prompt.title)))
                .collect();
            let message = format!("several prompts wait, name one of them: {}", several.join(", "));
            return Err(error::invalid_params("permissionId", &message));
        }
        None => waiting.into_iter().next(),
    };
    let (session, prompt) = found.ok_or_else(|| error::unknown_permission(named.as_ref()))?;
    let answer = PromptAnswer {
        allow,
        scope: respond.scope.filter(|_| allow).unwrap_or(Scope::Once),
        feedback: respond.feedback,
        updated_input: None,
        rules: None,
        hunks: None,
        mode: respond.mode.filter(|_| allow),
        by: "command".to_owned(),
    };
    session.requests().respond(&prompt.id, answer).map_err(error::respond)?;
    Ok(json!({ "permissionId": prompt.id, "title": prompt.title }))
}

async fn set_mode(agent: &Agent, name: &str) -> Result<Value, RequestError> {
    let mode = Mode::parse(name).ok_or_else(|| {
        let names: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
        error::invalid_params("mode", &format!("there is no mode `{name}`; there are: {}", names.join(", ")))
    })?;
    let session = agent.plain_session().map_err(error::session)?;
    session.gate().allow_mode(mode).await.map_err(error::mode)?;
    session.set_mode(mode);
    Ok(json!({ "mode": mode.name() }))
}

/// Reads a command's one argument; without one all of its fields are absent.
fn parse<T: DeserializeOwned>(command: &str, argument: Value) -> Result<T, RequestError> {
    let argument = if argument.is_null() { json!({}) } else { argument };
    serde_json::from_value(argument).map_err(|reason| {
        error::invalid_params("arguments[0]", &format!("{command} cannot be run: {reason}"))
    })
}
