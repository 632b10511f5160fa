//! The methods of the protocol.
//!
//! Rule: a method that is not in the table is answered with `method not found`, and nothing is announced that is not in it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use agent_client_protocol_schema::v1::{
    AGENT_METHOD_NAMES as METHODS, AuthenticateRequest, AuthenticateResponse, CancelNotification, Error,
    InitializeRequest, LogoutRequest, LogoutResponse, RequestId, SetSessionConfigOptionRequest,
    SetSessionConfigOptionResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use kode_engine::agent::engine::AttachedSession;
use kode_engine::base::ids::SessionId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::agent::{AcpAgent, LaunchOptions};
use super::initialize::{self, AcpClient};
use super::session::AcpSession;
use super::{config, error};
use crate::lifecycle::Lifecycle;
use kode_engine::acp::peer::RpcPeer;

/// The reply of a handler.
pub(super) enum RpcReply {
    /// The answer to the request.
    Now(Result<Value, Error>),
    /// The request is answered elsewhere.
    Later,
}

/// The agent's side of one connection.
pub(super) struct AcpServer {
    pub(super) peer: Arc<RpcPeer>,
    options: Arc<LaunchOptions>,
    lifecycle: Arc<Lifecycle>,
    client: OnceLock<Arc<AcpClient>>,
    agent: Mutex<Option<Arc<AcpAgent>>>,
    sessions: Mutex<HashMap<SessionId, Arc<AcpSession>>>,
    /// Whether the client has logged out and not authenticated since.
    is_logged_out: AtomicBool,
}

impl AcpServer {
    pub(super) fn new(peer: Arc<RpcPeer>, options: LaunchOptions, lifecycle: Arc<Lifecycle>) -> Arc<Self> {
        Arc::new(Self {
            peer,
            options: Arc::new(options),
            lifecycle,
            client: OnceLock::new(),
            agent: Mutex::default(),
            sessions: Mutex::default(),
            is_logged_out: AtomicBool::new(false),
        })
    }

    /// Carries out a request.
    pub(super) async fn call(
        self: &Arc<Self>,
        id: RequestId,
        method: &str,
        params: Option<Value>,
    ) -> RpcReply {
        match self.carry_out(id, method, params).await {
            Ok(reply) => reply,
            Err(error) => RpcReply::Now(Err(error)),
        }
    }

    async fn carry_out(
        self: &Arc<Self>,
        id: RequestId,
        method: &str,
        params: Option<Value>,
    ) -> Result<RpcReply, Error> {
        if method == METHODS.initialize {
            return result(self.initialize(read(method, params)?)?);
        }
        if self.client.get().is_none() {
            return Err(error::invalid_request("The connection is not initialized. Send initialize first."));
        }
        match method {
            _ if method == METHODS.authenticate => result(self.authenticate(read(method, params)?).await?),
            _ if method == METHODS.logout => result(self.logout(&read(method, params)?)),
            _ if method == METHODS.session_new => self.new_session(id, read(method, params)?).await,
            _ if method == METHODS.session_load => self.load_session(id, read(method, params)?).await,
            _ if method == METHODS.session_resume => self.resume_session(id, read(method, params)?).await,
            _ if method == METHODS.session_list => result(self.list_sessions(read(method, params)?).await?),
            _ if method == METHODS.session_delete => {
                result(self.delete_session(read(method, params)?).await?)
            }
            _ if method == METHODS.session_close => result(self.close_session(read(method, params)?).await?),
            _ if method == METHODS.session_prompt => self.prompt(id, read(method, params)?).await,
            _ if method == METHODS.session_set_mode => {
                let request: SetSessionModeRequest = read(method, params)?;
                let session = self.open_session(&request.session_id.0)?;
                let live = session.live().map_err(|error| error::session(&error))?;
                config::set_mode(&live, &request.mode_id.0).await?;
                result(SetSessionModeResponse::new())
            }
            _ if method == METHODS.session_set_config_option => {
                let request: SetSessionConfigOptionRequest = read(method, params)?;
                let session = self.open_session(&request.session_id.0)?;
                let live = session.live().map_err(|error| error::session(&error))?;
                config::set(&live, &request.config_id.0, &request.value).await?;
                let now = live.snapshot(0);
                let options = config::options(&session.agent, &AttachedSession::Live(live), &now);
                result(SetSessionConfigOptionResponse::new(options))
            }
            _ if method.starts_with('_') => result(self.kode_method(method, params).await?),
            _ => Err(error::unknown_method(method)),
        }
    }

    /// Takes a notification. An unknown one is ignored, as the protocol wants it.
    pub(super) fn notified(self: &Arc<Self>, method: &str, params: Option<Value>) {
        if method != METHODS.session_cancel {
            return tracing::debug!(method, "a notification is not known");
        }
        match read::<CancelNotification>(method, params) {
            Ok(cancel) => self.cancel(&cancel.session_id.0),
            Err(error) => tracing::warn!(%error, "a notification cannot be read"),
        }
    }

    fn initialize(&self, request: InitializeRequest) -> Result<impl Serialize + use<>, Error> {
        let client = Arc::new(AcpClient::of(request));
        let response = initialize::response(&client);
        match self.client.set(client) {
            Ok(()) => Ok(response),
            Err(_) => Err(error::invalid_request("The connection is initialized already.")),
        }
    }

    async fn authenticate(&self, request: AuthenticateRequest) -> Result<impl Serialize + use<>, Error> {
        if &*request.method_id.0 != initialize::MODELS {
            return Err(error::invalid_params(&format!(
                "There is no authentication method `{}` to call. Use `{}`.",
                request.method_id.0,
                initialize::MODELS
            )));
        }
        let agent = self.agent()?;
        agent.refresh_models().await;
        let models = agent.engine.models();
        let profile = agent.profile.as_deref().unwrap_or_else(|| models.default_name());
        models.profile(profile).map_err(|problem| error::model(&problem))?;
        self.is_logged_out.store(false, Ordering::Relaxed);
        Ok(AuthenticateResponse::new())
    }

    /// Forgets the authentication. Keys stay in the settings and the environment, which are the user's.
    fn logout(&self, _request: &LogoutRequest) -> LogoutResponse {
        self.is_logged_out.store(true, Ordering::Relaxed);
        LogoutResponse::new()
    }

    /// Refuses new work of a client that has logged out.
    ///
    /// # Errors
    /// `auth_required`.
    pub(super) fn check_login(&self) -> Result<(), Error> {
        match self.is_logged_out.load(Ordering::Relaxed) {
            true => Err(error::auth_required(&format!(
                "You are logged out. Authenticate with the method `{}`.",
                initialize::MODELS
            ))),
            false => Ok(()),
        }
    }

    /// The client; before `initialize` one without capabilities.
    pub(super) fn client(&self) -> Arc<AcpClient> {
        self.client.get().cloned().unwrap_or_default()
    }

    /// The engine, started by the first call.
    ///
    /// # Errors
    /// When there is no folder for the user's state.
    pub(super) fn agent(&self) -> Result<Arc<AcpAgent>, Error> {
        let mut agent = self.agent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(agent) = agent.as_ref() {
            return Ok(Arc::clone(agent));
        }
        let client = self.client();
        let started = AcpAgent::start(&self.options, &self.peer, &client, &self.lifecycle);
        let started = started.map_err(|error| error::internal(&format!("{error:#}")))?;
        *agent = Some(Arc::clone(&started));
        Ok(started)
    }

    /// The mode that the command line names for new sessions.
    pub(super) fn mode(&self) -> Option<kode_engine::base::mode::Mode> {
        self.options.mode
    }

    /// The sessions that the client has open. Never held across a wait.
    pub(super) fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<AcpSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session that the client has open.
    ///
    /// # Errors
    /// None of that id is open.
    pub(super) fn open_session(&self, id: &str) -> Result<Arc<AcpSession>, Error> {
        let found = self.sessions().get(&SessionId::from_external(id)).cloned();
        found.ok_or_else(|| error::unknown_session(id))
    }
}

/// The answer with this result.
pub(super) fn result(response: impl Serialize) -> Result<RpcReply, Error> {
    let value = serde_json::to_value(response).map_err(|problem| error::internal(&problem.to_string()))?;
    Ok(RpcReply::Now(Ok(value)))
}

/// The parameters of a method.
///
/// # Errors
/// Which of them does not fit, and why.
pub(super) fn read<P: DeserializeOwned>(method: &str, params: Option<Value>) -> Result<P, Error> {
    let params = params.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    serde_path_to_error::deserialize(params).map_err(|problem| {
        let (path, reason) = (problem.path().to_string(), problem.inner().to_string());
        let place = if path == "." { String::new() } else { format!(" at `{path}`") };
        error::invalid_params(&format!("The parameters of {method} cannot be read{place}: {reason}."))
    })
}
