//! `agent/question/respond` and `agent/todos/list`.

use kode_engine::agent::engine::AttachedSession;
use kode_engine::base::ids::QuestionId;
use kode_engine::base::question::Reply;
use kode_protocol as wire;
use kode_protocol::ErrorKind;

use crate::backend::Backend;
use crate::convert::error::{self, RequestError};
use crate::convert::{self, question};
use crate::handlers::params::Params;
use crate::plain::page;

/// Answers a question.
pub(crate) async fn respond(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::RespondQuestionParams = params.read()?;
    let attached = backend.attached(&params.session_id)?;
    let mode = params.mode.map(convert::mode_from_wire);
    let reply = Reply {
        answers: params.answers.map(question::answers_from_wire),
        feedback: params.feedback,
        plan: params.plan,
        mode,
        skip_asks: params.skip_permission_asks,
        by: backend.client_name(),
    };
    let id = QuestionId::from_external(params.question_id.as_str());
    let session = match attached {
        AttachedSession::Live(session) => session,
        AttachedSession::Following(following) => {
            let relayed = following.reply(&id, reply).await;
            return relayed.map_err(|error| error::relay(error, ErrorKind::UnknownQuestion));
        }
    };
    if let Some(mode) = mode {
        session.gate().allow_mode(mode).await.map_err(error::mode)?;
    }
    let page = page::chosen(&session, &id, &reply);
    session.requests().reply(&id, reply).map_err(error::reply)?;
    page::open(backend.connection(), page);
    Ok(())
}

/// Lists what there is to do.
pub(crate) async fn todos(backend: &Backend, params: Params) -> Result<wire::ListTodosResult, RequestError> {
    let params: wire::ListTodosParams = params.read()?;
    let todos = backend.session(&params.session_id)?.todos();
    Ok(wire::ListTodosResult { counts: question::todo_counts(&todos), todos: question::todos(&todos) })
}
