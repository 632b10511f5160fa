//! The connection to one client: the handle that sends to it, its capabilities, open documents and workspace folders.
//!
//! Rule: state of the connection only. It knows no agent, so every layer above can use it.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kode_engine::mcp::client_tools::ClientTools;
use lsp_types::WorkspaceFoldersChangeEvent;
use tower_lsp::Client;

use crate::client::{ClientFacts, WorkspaceRoot, root_of};
use crate::client_tools;
use crate::documents::{Documents, VirtualDocuments};
use crate::lifecycle::Lifecycle;
use crate::wrapped::WrappedServer;

/// Whether the editor is in front, as far as its client reports it.
#[derive(Debug, Default)]
pub(crate) struct EditorFocus(AtomicU8);

/// A report of the focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FocusReport {
    /// The client reports none.
    Unknown,
    /// The editor is in front.
    InFront,
    /// Another window is.
    Away,
}

impl EditorFocus {
    /// Notes a report of the client.
    pub(crate) fn set(&self, is_in_front: bool) {
        self.0.store(if is_in_front { 1 } else { 2 }, Ordering::Relaxed);
    }

    /// The newest report.
    pub(crate) fn get(&self) -> FocusReport {
        match self.0.load(Ordering::Relaxed) {
            0 => FocusReport::Unknown,
            1 => FocusReport::InFront,
            _ => FocusReport::Away,
        }
    }
}

/// The connection to one client.
pub struct ClientConnection {
    /// Sends notifications and requests to the client.
    pub client: Client,
    /// The open documents.
    pub documents: Documents,
    /// The client's capabilities and options; empty before `initialize`.
    pub facts: OnceLock<ClientFacts>,
    /// The virtual documents that the client has read.
    pub(crate) served: VirtualDocuments,
    /// The language server that the editor is served together with, if there is one.
    pub(crate) wrapped: Option<Arc<WrappedServer>>,
    /// The tools that the client has registered.
    pub(crate) tools: Arc<ClientTools>,
    /// Whether the editor is in front.
    pub(crate) focus: EditorFocus,
    /// The end of the server.
    pub lifecycle: Arc<Lifecycle>,
    roots: Mutex<Vec<WorkspaceRoot>>,
}

impl ClientConnection {
    /// A connection on which no `initialize` has arrived.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            tools: client_tools::tools_of(&client),
            client,
            documents: Documents::default(),
            facts: OnceLock::new(),
            served: VirtualDocuments::default(),
            wrapped: None,
            focus: EditorFocus::default(),
            lifecycle: Arc::default(),
            roots: Mutex::default(),
        }
    }

    /// The same, served together with this language server.
    #[must_use]
    pub(crate) fn beside(self, wrapped: Arc<WrappedServer>) -> Self {
        Self { wrapped: Some(wrapped), ..self }
    }

    /// The current folders of the workspace, in the client's order.
    #[must_use]
    pub fn workspace_roots(&self) -> Vec<WorkspaceRoot> {
        self.lock_roots().clone()
    }

    /// Replaces the folders of the workspace.
    pub(crate) fn set_workspace_roots(&self, roots: &[WorkspaceRoot]) {
        *self.lock_roots() = roots.to_vec();
    }

    /// Removes and adds folders of the workspace; a folder that is present is not added twice.
    pub(crate) fn change_workspace_roots(&self, event: &WorkspaceFoldersChangeEvent) {
        let mut roots = self.lock_roots();
        for folder in &event.removed {
            roots.retain(|root| root_of(&folder.uri, None).is_none_or(|removed| removed.path != root.path));
        }
        for folder in &event.added {
            if let Some(added) = root_of(&folder.uri, Some(&folder.name))
                && roots.iter().all(|root| root.path != added.path)
            {
                roots.push(added);
            }
        }
    }

    fn lock_roots(&self) -> MutexGuard<'_, Vec<WorkspaceRoot>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
