//! The methods `_kode/…`: what clients that know kode-ls can do beyond the protocol.
//!
//! Rule: each is the method `agent/…` of the language server by the same handler, with its parameters and results. Nothing is served
//! that is not in the table, and the table is what `initialize` announces.

use std::sync::Arc;

use agent_client_protocol_schema::v1::Error;
use futures::future::BoxFuture;

use kode_engine::agent::engine::{AttachedSession, Engine, ForkError, SessionError};
use kode_engine::agent::session::Session;
use kode_engine::agent::transfer::ForkPoint;
use kode_engine::base::ids::SessionId;
use kode_engine::record::resolution::ResolutionOutcome;
use kode_protocol as wire;
use serde::Serialize;
use serde_json::{Value, json};

use super::agent::AcpAgent;
use super::error;
use super::requests::AcpServer;
use super::session::AcpSession;
use crate::convert::error::RequestError;
use crate::convert::{self, UriNames};
use crate::documents::Documents;
use crate::handlers::method_table;
use crate::handlers::params::Params;
use crate::handlers::source::SessionSource;
use crate::handlers::{checkpoint, context, edits, sessions, transfer};

/// The beginning of the names.
const PREFIX: &str = "_kode/";

/// The notification that an act on hunks or a restore has ended.
const RESOLVED: &str = "_kode/edits/resolved";

/// A method. All have this type, as those of the language server.
type KodeMethod = for<'a> fn(&'a KodeSource, Params) -> BoxFuture<'a, Result<Value, KodeFailure>>;

/// The methods, in the order in which they are announced.
const METHODS: &[(&str, KodeMethod)] = method_table! {
    "_kode/checkpoint/list" => checkpoint::list,
    "_kode/checkpoint/restore" => checkpoint::restore,
    "_kode/edits/list" => edits::list,
    "_kode/edits/resolve" => edits::resolve,
    "_kode/edits/revert" => edits::revert,
    "_kode/session/fork" => transfer::fork,
    "_kode/session/rename" => sessions::rename,
    "_kode/context/get" => context::get,
};

/// A failed request in the form of this protocol.
pub(super) struct KodeFailure(Error);

/// The sessions of a connection.
struct KodeSource {
    server: Arc<AcpServer>,
    agent: Arc<AcpAgent>,
}

/// The announcement of the methods in `initialize`.
pub(super) fn announcement() -> Value {
    let methods: Vec<_> = METHODS.iter().map(|(name, _)| name).collect();
    json!({ "methods": methods, "fork": true, "checkpoints": true, "review": true, "steer": true })
}

impl AcpServer {
    /// Carries out a method of kode-ls.
    pub(super) async fn kode_method(
        self: &Arc<Self>,
        method: &str,
        params: Option<Value>,
    ) -> Result<Value, Error> {
        let known = METHODS.iter().find(|(name, _)| *name == method);
        let (_, call) = known.ok_or_else(|| error::unknown_method(method))?;
        self.check_login()?;
        let params = params.unwrap_or_else(|| json!({}));
        let id = params["sessionId"].as_str().or_else(|| params["selection"]["sessionId"].as_str());
        if let Some(open) = id.and_then(|id| self.open_session(id).ok()) {
            // One that another process writes is refused, as a prompt to it is.
            open.live().map_err(|problem| error::session(&problem))?;
            open.expect_reports();
            // The client's text is asked for before each use.
            open.agent.host.refresh(&open.id).await;
        }
        let source = KodeSource { server: Arc::clone(self), agent: self.agent()? };
        call(&source, Params::from(params)).await.map_err(|KodeFailure(error)| error)
    }
}

/// Reports the end of an act on hunks or of a restore to a client that has used the methods.
pub(super) async fn report_resolved(session: &AcpSession, outcome: &ResolutionOutcome) {
    if !session.expects_reports() {
        return;
    }
    let resolved = convert::review::resolved(outcome.clone(), UriNames::standard());
    if let Ok(Value::Object(mut report)) = serde_json::to_value(resolved) {
        report.insert("sessionId".to_owned(), json!(session.id.as_str()));
        session.peer.notify(RESOLVED, report).await;
    }
}

fn answer(outcome: Result<impl Serialize, KodeFailure>) -> Result<Value, KodeFailure> {
    serde_json::to_value(outcome?).map_err(|problem| KodeFailure(error::internal(&problem.to_string())))
}

impl SessionSource for KodeSource {
    type Error = KodeFailure;

    fn engine(&self) -> Result<&Engine, KodeFailure> {
        Ok(&self.agent.engine)
    }

    fn session(&self, id: &wire::SessionId) -> Result<Arc<Session>, KodeFailure> {
        let open = self.server.open_session(id.as_str()).map_err(KodeFailure)?;
        open.live().map_err(Self::refusal)
    }

    fn attached(&self, id: &wire::SessionId) -> Result<AttachedSession, KodeFailure> {
        self.session(id).map(AttachedSession::Live)
    }

    async fn fork(&self, id: &SessionId, at: ForkPoint) -> Result<Arc<Session>, ForkError> {
        let open = self.server.open_session(id.as_str()).map_err(|_| SessionError::Unknown(id.clone()))?;
        let session = open.live()?;
        self.agent.engine.fork_session(&session.roots(), id, at).await
    }

    fn refusal(problem: SessionError) -> KodeFailure {
        KodeFailure(error::session(&problem))
    }

    fn documents(&self) -> Option<&Documents> {
        None
    }
}

impl From<RequestError> for KodeFailure {
    fn from(problem: RequestError) -> Self {
        let hint = problem.data.as_ref().and_then(|data| data["hint"].as_str());
        // Hints name methods; those of this protocol have other names.
        let hint = hint.map(|hint| {
            hint.replace("agent/session/", "session/")
                .replace("agent/turn/", "session/")
                .replace("agent/", PREFIX)
        });
        let message = [problem.message.trim_end_matches('.'), &hint.unwrap_or_default()].join(". ");
        let code = i32::try_from(problem.code.code()).unwrap_or(-32_603);
        let mut said = Error::new(code, error::one_line(message.trim_end()));
        said.data = problem.data.map(|data| json!({ "kind": data["kind"], "path": data["path"] }));
        Self(said)
    }
}

#[cfg(test)]
mod tests {
    use kode_engine::agent::edits::review::ResolveError;

    use super::*;
    use crate::convert::error as lsp;

    #[test]
    fn every_method_is_one_of_kode_and_announced() {
        let announced = announcement();
        let names: Vec<_> = METHODS.iter().map(|(name, _)| *name).collect();
        assert_eq!(announced["methods"], json!(names));
        assert!(names.iter().all(|name| name.starts_with(PREFIX)), "{names:?}");
    }

    #[test]
    fn an_error_names_what_to_do_next_by_the_methods_of_this_protocol() {
        let KodeFailure(busy) = lsp::resolve(ResolveError::Busy).into();
        assert!(
            busy.message.ends_with("Cancel the turn with `session/cancel`, or wait for it."),
            "{}",
            busy.message
        );
        let KodeFailure(nothing) = lsp::resolve(ResolveError::Nothing { action: "undone" }).into();
        assert!(nothing.message.contains("`_kode/edits/list`"), "{}", nothing.message);
        assert_eq!(nothing.data.unwrap()["kind"], "nothingToDo");
        let KodeFailure(wrong) = lsp::invalid_params("action", "there is no such action").into();
        assert_eq!((i32::from(wrong.code), &wrong.data.unwrap()["path"]), (-32_602, &json!("action")));
    }
}
