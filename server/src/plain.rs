//! The front end for editors without a plugin: progress, messages, code actions, lenses, diagnostics and commands.
//!
//! Rule: every form is optional for the client; each prompt and each decision can be made by command as well.

mod aside;
pub(crate) mod asking;
pub(crate) mod chat;
pub mod commands;
pub(crate) mod completion;
mod models;
pub(crate) mod page;
mod questions;
mod queue;
pub(crate) mod review;
mod sessions;
pub(crate) mod settings;
mod view;

use std::sync::{Arc, OnceLock, Weak};

use kode_engine::agent::engine::AttachedSession;

use crate::agent::{self, Agent, FrontEnd, SessionView};
use crate::connection::ClientConnection;
use crate::convert::error::{self, RequestError};
use chat::ChatDocuments;
use review::publish::ReviewPublisher;
use settings::SettingsNotices;
use view::{FollowedView, PlainView};

/// The front end of one connection, with the agent that it starts.
pub struct PlainFrontEnd {
    /// The connection to the client.
    pub(crate) connection: Arc<ClientConnection>,
    /// Publishes the agent's changes.
    pub(crate) publisher: ReviewPublisher,
    /// The messages about settings that were shown.
    settings: SettingsNotices,
    /// The answers that are being written into chat documents.
    chats: ChatDocuments,
    /// Started by the first request that needs it; an error says why it cannot start.
    agent: OnceLock<Result<Arc<Agent>, String>>,
}

impl PlainFrontEnd {
    /// A front end that shows nothing yet.
    #[must_use]
    pub(crate) fn new(connection: Arc<ClientConnection>) -> Self {
        Self {
            connection,
            publisher: ReviewPublisher::default(),
            settings: SettingsNotices::default(),
            chats: ChatDocuments::default(),
            agent: OnceLock::new(),
        }
    }

    /// The agent, if a request has started it. Reading its changes does not start it.
    pub(crate) fn live_agent(&self) -> Option<&Arc<Agent>> {
        self.agent.get()?.as_ref().ok()
    }

    /// The agent, started by the first call.
    ///
    /// # Errors
    /// `storageFailure` when there is no folder for the user's state.
    pub(crate) fn agent(self: &Arc<Self>) -> Result<&Arc<Agent>, RequestError> {
        let started = self.agent.get_or_init(|| {
            let this: Weak<Self> = Arc::downgrade(self);
            agent::start(&self.connection, this).map_err(|error| format!("{error:#}"))
        });
        started.as_ref().map_err(|reason| error::no_home(reason))
    }
}

impl FrontEnd for PlainFrontEnd {
    fn view(self: Arc<Self>, attached: &AttachedSession) -> Box<dyn SessionView> {
        match attached {
            AttachedSession::Live(session) => Box::new(PlainView::new(self, session)),
            AttachedSession::Following(_) => Box::new(FollowedView::new(self)),
        }
    }

    fn settings_changed(self: Arc<Self>) {
        ReviewPublisher::settings_changed(&self);
    }
}
