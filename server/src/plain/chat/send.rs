//! The command `kode.send`: sends the text below the last heading of a chat document.
//!
//! Rule: answers at once; an unavailable conversation is an error and never silently restarted, because a user who
//! continues with one must not find themselves in an empty one.

use std::sync::Arc;
use std::time::Duration;

use kode_engine::agent::engine::{AttachedSession, SessionError};
use kode_engine::agent::prompt::Prompt;
use kode_engine::agent::session::Session;
use kode_engine::agent::session::prompts::SubmitOutcome;
use kode_engine::base::ids::SessionId;
use kode_engine::base::task;
use kode_engine::config::command::btw;
use kode_engine::record::event::RunState;
use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::edit::TextEdit;
use lsp_types::{MessageType, Position, Url};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::answer::{self, AnswerStart, FirstEdit, behind, with_endings};
use super::layout::{ANSWER, ChatLayout, PROMPT, answering_line, session_line};
use super::{MAX_BYTES, SUFFIX, is_chat};
use crate::agent::{Agent, EventFilter};
use crate::convert::error::{self, RequestError};
use crate::documents;
use crate::plain::queue::submitted;
use crate::plain::{PlainFrontEnd, aside};

/// The command that sends a chat document.
pub(crate) const SEND: &str = "kode.send";

/// So often it is looked whether a turn has ended.
const ENDING_LOOKS: u32 = 10;

/// The time between two looks.
const ENDING_PAUSE: Duration = Duration::from_millis(50);

/// The argument of `kode.send`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub(crate) struct SendArgument {
    /// The document; the only chat document that is open when it is not said.
    uri: Option<Url>,
    /// The place of the cursor, where the editor tells it: earlier prompts are not sent again.
    position: Option<Position>,
    /// Whether a new conversation begins, whatever the document is bound to.
    fresh: bool,
}

/// Sends the prompt of a chat document: `{sessionId, turnId}`.
pub(crate) async fn send(
    front_end: &Arc<PlainFrontEnd>,
    wanted: SendArgument,
) -> Result<Value, RequestError> {
    let (agent, connection) = (front_end.agent()?, &front_end.connection);
    let document = chat_document(agent, wanted.uri.as_ref())?;
    let uri = Url::parse(&document.uri).map_err(|bad| error::invalid_params("uri", &bad.to_string()))?;
    let text = document.text.to_string();
    let layout = ChatLayout::of(&text);
    let bound = layout.session.clone().or_else(|| front_end.chats.remembered(&uri)).filter(|_| !wanted.fresh);
    if let Some(question) = btw::asked(layout.prompt_in(&text)) {
        let bound = bound.ok_or_else(|| {
            error::chat(
                "a side question is about a conversation, and this document has none yet",
                "Send a prompt first, or ask without `/btw`.",
            )
        })?;
        return aside::ask(agent, &conversation(agent, &bound).await?, question);
    }
    if !is_written(front_end, &uri, &layout).await {
        return Err(busy("an answer is being written into this document"));
    }
    if let Some(place) = &layout.answering {
        let bound = bound.as_ref().ok_or_else(|| {
            let message =
                "an answer in this document was interrupted, and its conversation is not named any more";
            error::chat(
                message,
                &format!("Write `{PROMPT}` in place of the line `<!-- kode answering … -->`."),
            )
        })?;
        let session = conversation(agent, bound).await?;
        let since = session.snapshot(0).bookmark.seq;
        let turn = place.turn.clone();
        let begin =
            AnswerStart { uri: uri.clone(), turn: turn.clone(), only: None, since, first: FirstEdit::Again };
        return start(front_end, &session, begin)
            .map(|()| json!({ "sessionId": session.id(), "turnId": turn }));
    }
    let at = wanted.position.map(|at| connection.documents.encoding().byte_offset(&document.text, at));
    if at.is_some_and(|at| at < layout.begin && layout.begin < text.len()) {
        return Err(error::chat(
            "this text was already sent",
            &format!("Only text below the last line `{PROMPT}` is sent. Write your prompt there."),
        ));
    }
    let prompt = layout.prompt_in(&text);
    if prompt.is_empty() {
        return Err(error::chat(
            "there is nothing to send",
            &format!("Write your prompt below a line `{PROMPT}` at the end of the document, and send again."),
        ));
    }
    let session = match &bound {
        Some(id) => conversation(agent, id).await?,
        None => agent.new_session(None, None, None).map_err(error::session)?,
    };
    agent.set_plain_session(&session);
    if !is_idle(&session).await {
        return Err(busy("a turn of this conversation runs"));
    }
    let since = session.events().newest();
    let sent = session.prompts().submit(Prompt::from(prompt)).map_err(error::submit)?;
    let (turn, only) = match &sent {
        SubmitOutcome::Started(turn) | SubmitOutcome::Steering { turn, .. } => (turn.clone(), None),
        SubmitOutcome::Answered { turn, item } => (turn.clone(), Some(item.clone())),
        SubmitOutcome::Queued(id) => {
            // Another client was quicker. The queued prompt would be answered elsewhere.
            session.prompts().remove_queued(id).map_err(error::queue)?;
            return Err(busy("a turn of this conversation has just started"));
        }
    };
    let range = behind(&text, layout.prompt.end);
    let open = if text[..range.start].ends_with('\n') { "" } else { "\n" };
    let binding = match layout.session.as_ref() == Some(session.id()) {
        true => String::new(),
        false => format!("{}\n\n", session_line(session.id())),
    };
    let new_text = format!("{open}\n{binding}{ANSWER}\n\n{}\n", answering_line(&turn));
    let edit = TextEdit { range, new_text: with_endings(&new_text, &text) };
    let first = FirstEdit::Prompt { base: document, edit };
    if connection.facts.get().is_some_and(|facts| facts.apply_edit) {
        start(front_end, &session, AnswerStart { uri, turn, only, since, first })?;
    } else {
        let client = connection.client.clone();
        task::spawn(async move {
            let text = "Kode: answers cannot be written into documents, because this editor does not offer \
                 workspace/applyEdit. The answer is shown here when it is complete.";
            client.show_message(MessageType::INFO, text).await;
        });
        front_end.chats.remember(&uri, session.id());
    }
    Ok(submitted(&session, &sent))
}

fn start(
    front_end: &Arc<PlainFrontEnd>,
    session: &Arc<Session>,
    begin: AnswerStart,
) -> Result<(), RequestError> {
    if !front_end.chats.begin(&begin.uri, session.id()) {
        return Err(busy("an answer is being written into this document"));
    }
    answer::start(front_end, session, begin);
    Ok(())
}

/// Whether no answer is being written. One whose last edit the document shows already may not have heard so yet.
async fn is_written(front_end: &PlainFrontEnd, uri: &Url, layout: &ChatLayout) -> bool {
    let is_writing = || front_end.chats.writing(uri).is_some();
    for _ in 0..ENDING_LOOKS {
        if !is_writing() || layout.answering.is_some() {
            break;
        }
        sleep(ENDING_PAUSE).await;
    }
    !is_writing()
}

/// Whether no turn runs. One that has said all it had to say may still be ending.
async fn is_idle(session: &Session) -> bool {
    for _ in 0..ENDING_LOOKS {
        if session.snapshot(0).state == RunState::Ready {
            return true;
        }
        sleep(ENDING_PAUSE).await;
    }
    false
}

/// The conversation of a document, resumed where it is not live.
async fn conversation(agent: &Agent, id: &SessionId) -> Result<Arc<Session>, RequestError> {
    if let Ok(session) = agent.engine.session(id) {
        return Ok(session);
    }
    let gone = |error: SessionError| match error {
        SessionError::Unknown(_) => error::chat(
            &format!(
                "the conversation `{id}` that this document names was not found: it was deleted, or \
                     belongs to another machine or workspace"
            ),
            "Send it as a new conversation: the code action “Kode: Send as a new conversation”, or `kode.send` with \
             {\"fresh\": true}.",
        ),
        other => error::session(other),
    };
    match agent.load_session(id, None, EventFilter::default()).await.map_err(gone)? {
        AttachedSession::Live(session) => Ok(session),
        AttachedSession::Following(_) => agent.session_for_prompt(id).await.map_err(error::session),
    }
}

fn chat_document(agent: &Agent, uri: Option<&Url>) -> Result<DocumentSnapshot, RequestError> {
    let documents = &agent.connection.documents;
    let invalid = |message: String| error::invalid_params("uri", &message);
    let Some(uri) = uri else {
        let mut open: Vec<_> = documents.all().into_iter().filter(is_chat).collect();
        return match (open.pop(), open.len()) {
            (Some(document), 0) => Ok(document),
            (Some(last), _) => {
                let named = open.iter().chain([&last]).map(|document| document.uri.as_str());
                let named = named.collect::<Vec<_>>().join(", ");
                Err(invalid(format!("several chat documents are open, name one of them: {named}")))
            }
            (None, _) => {
                Err(invalid(format!("no chat document is open: open one whose name ends in `{SUFFIX}`")))
            }
        };
    };
    let document = documents
        .snapshot_of(&documents::target(uri))
        .ok_or_else(|| invalid(format!("{uri} is not open")))?;
    if !is_chat(&document) {
        let message = format!(
            "{uri} is not a chat document: the name of one ends in `{SUFFIX}`, and it has at most {} MB",
            MAX_BYTES >> 20
        );
        return Err(invalid(message));
    }
    Ok(document)
}

fn busy(message: &str) -> RequestError {
    error::busy(
        message,
        "Wait until the answer is complete, or stop it with `kode.cancel`. Text that you write meanwhile stays.",
    )
}
