//! The language server: lifecycle and document sync, and the state every handler shares.
//!
//! Rule: no handler waits for the editor, a model or a tool; sync handlers do all they do before their first
//! await, which the transport turns into arrival order.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use async_trait::async_trait;
use kode_engine::agent::engine::Attached;
use kode_engine::agent::session::Session;
use kode_engine::base::ids::SessionId;
use kode_protocol as wire;
use lsp_types::{
    CodeActionKind, CodeActionOptions, CodeActionParams, CodeActionProviderCapability, CodeActionResponse,
    CodeLens, CodeLensOptions, CodeLensParams, CompletionOptions, CompletionParams, CompletionResponse,
    DidChangeConfigurationParams, DidChangeTextDocumentParams, DidChangeWorkspaceFoldersParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams, ExecuteCommandOptions,
    ExecuteCommandParams, Hover, HoverParams, HoverProviderCapability, InitializeParams, InitializeResult,
    InitializedParams, MarkupKind, MessageType, OneOf, Registration, SaveOptions, ServerCapabilities,
    ServerInfo, TextDocumentPositionParams, TextDocumentSyncCapability, TextDocumentSyncKind,
    TextDocumentSyncOptions, TextDocumentSyncSaveOptions, Url, WillSaveTextDocumentParams,
    WorkspaceFoldersServerCapabilities, WorkspaceServerCapabilities,
};
use serde_json::{Value, json};
use tower_lsp::jsonrpc::Result;
use tower_lsp::{Client, LanguageServer, LspService, LspServiceBuilder};

use crate::agent::{Agent, user_options};
use crate::client::{ClientFacts, WorkspaceRoot, root_of};
use crate::documents::{BASELINE_SCHEME, Documents, PROPOSED_SCHEME, Served};
use crate::handlers::error::{self, Failure};
use crate::lifecycle::Lifecycle;
use crate::lsp::newer::TEXT_DOCUMENT_CONTENT;
use crate::plain::chat::{self, Chats};
use crate::plain::review::publish::ReviewPublisher;
use crate::plain::review::{self, SessionReview};
use crate::plain::settings::SettingsTeller;
use crate::plain::{asking, commands, completion};
use crate::trust;

/// What all handlers share.
pub struct Shared {
    /// The way to the client.
    pub client: Client,
    /// The open documents.
    pub documents: Documents,
    /// What the client told about itself; empty before `initialize`.
    pub facts: OnceLock<ClientFacts>,
    /// The virtual documents that the client has read.
    pub(crate) served: Served,
    /// What the client has been told about the agent's changes.
    pub review: ReviewPublisher,
    /// What the client has been told about the settings.
    pub(crate) settings: SettingsTeller,
    /// The answers that are being written into chat documents.
    pub(crate) chats: Chats,
    /// The end of the server.
    pub lifecycle: Arc<Lifecycle>,
    roots: Mutex<Vec<WorkspaceRoot>>,
    /// Made at the first need; the text says why it cannot be had.
    agent: OnceLock<std::result::Result<Arc<Agent>, String>>,
}

impl Shared {
    fn new(client: Client) -> Self {
        Self {
            client,
            documents: Documents::default(),
            facts: OnceLock::new(),
            served: Served::default(),
            review: ReviewPublisher::default(),
            settings: SettingsTeller::default(),
            chats: Chats::default(),
            lifecycle: Arc::default(),
            roots: Mutex::default(),
            agent: OnceLock::new(),
        }
    }

    /// The folders of the workspace as they are now, in the client's order.
    #[must_use]
    pub fn workspace_roots(&self) -> Vec<WorkspaceRoot> {
        self.lock_roots().clone()
    }

    /// The agent, if anything has needed it yet; looking at its changes is no need.
    pub(crate) fn live_agent(&self) -> Option<&Arc<Agent>> {
        self.agent.get()?.as_ref().ok()
    }

    fn lock_roots(&self) -> MutexGuard<'_, Vec<WorkspaceRoot>> {
        self.roots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The handlers.
pub struct Backend {
    shared: Arc<Shared>,
}

/// The server with the methods of LSP, to which those beyond LSP are added.
#[must_use]
pub fn builder() -> LspServiceBuilder<Backend> {
    LspService::build(|client| Backend { shared: Arc::new(Shared::new(client)) })
}

impl Backend {
    /// What all handlers share.
    #[must_use]
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The agent, made at the first call.
    pub(crate) fn agent(&self) -> std::result::Result<&Arc<Agent>, Failure> {
        let made = self
            .shared
            .agent
            .get_or_init(|| Agent::new(Arc::clone(&self.shared)).map_err(|error| format!("{error:#}")));
        made.as_ref().map_err(|reason| error::no_home(reason))
    }

    /// The live session of that id.
    pub(crate) fn session(&self, id: &wire::SessionId) -> std::result::Result<Arc<Session>, Failure> {
        self.agent()?.engine.session(&SessionId::from_external(id.as_str())).map_err(error::session)
    }

    /// The session of that id to read from, also where another process writes it.
    pub(crate) fn attached(&self, id: &wire::SessionId) -> std::result::Result<Attached, Failure> {
        self.agent()?.engine.attached(&SessionId::from_external(id.as_str())).map_err(error::session)
    }

    /// The session of that id to hand a prompt to: one that nobody writes any more is taken over.
    pub(crate) async fn session_for_prompt(
        &self,
        id: &wire::SessionId,
    ) -> std::result::Result<Arc<Session>, Failure> {
        let id = SessionId::from_external(id.as_str());
        self.agent()?.session_for_prompt(&id).await.map_err(error::session)
    }

    /// What the client is called when its answers are told to others.
    pub(crate) fn client_name(&self) -> String {
        let name = self.shared.facts.get().and_then(|facts| facts.name.clone());
        name.unwrap_or_else(|| "the editor".to_owned())
    }

    /// The changes that wait in a document.
    fn reviews(&self, uri: &Url) -> Vec<SessionReview> {
        self.shared.live_agent().map(|agent| review::gather(agent, uri)).unwrap_or_default()
    }

    fn capabilities(facts: &ClientFacts) -> ServerCapabilities {
        let kode = wire::ServerKode {
            protocol_version: wire::PROTOCOL_VERSION,
            server_version: env!("CARGO_PKG_VERSION").to_owned(),
            commands: commands::names(),
            schema_hash: wire::SCHEMA_HASH.to_owned(),
        };
        let mut experimental = json!({ "kode": kode });
        if facts.text_document_content {
            experimental[TEXT_DOCUMENT_CONTENT] = json!({ "schemes": [BASELINE_SCHEME, PROPOSED_SCHEME] });
        }
        ServerCapabilities {
            code_action_provider: Some(CodeActionProviderCapability::Options(CodeActionOptions {
                code_action_kinds: Some(vec![
                    CodeActionKind::QUICKFIX,
                    review::actions::HERE,
                    review::actions::EVERYWHERE,
                    asking::ASKING,
                    chat::offers::CHAT,
                ]),
                ..CodeActionOptions::default()
            })),
            code_lens_provider: Some(CodeLensOptions { resolve_provider: Some(false) }),
            completion_provider: facts.completion.then(|| CompletionOptions {
                resolve_provider: Some(false),
                trigger_characters: Some(completion::TRIGGERS.map(str::to_owned).to_vec()),
                ..CompletionOptions::default()
            }),
            hover_provider: Some(HoverProviderCapability::Simple(true)),
            execute_command_provider: Some(ExecuteCommandOptions {
                commands: commands::names(),
                ..ExecuteCommandOptions::default()
            }),
            position_encoding: Some(facts.encoding.kind()),
            text_document_sync: Some(TextDocumentSyncCapability::Options(TextDocumentSyncOptions {
                open_close: Some(true),
                change: Some(TextDocumentSyncKind::INCREMENTAL),
                save: Some(TextDocumentSyncSaveOptions::SaveOptions(SaveOptions {
                    include_text: Some(false),
                })),
                will_save: Some(true),
                ..TextDocumentSyncOptions::default()
            })),
            workspace: Some(WorkspaceServerCapabilities {
                workspace_folders: Some(WorkspaceFoldersServerCapabilities {
                    supported: Some(true),
                    change_notifications: Some(OneOf::Left(true)),
                }),
                file_operations: None,
            }),
            experimental: Some(experimental),
            ..ServerCapabilities::default()
        }
    }
}

#[async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let facts = self.shared.facts.get_or_init(|| ClientFacts::new(params));
        tracing::info!(client = ?facts.name, version = ?facts.version, encoding = ?facts.encoding, "initialize");
        self.shared.documents.set_encoding(facts.encoding);
        self.shared.lock_roots().clone_from(&facts.roots);
        if let Some(process) = facts.process_id {
            self.shared.lifecycle.watch_process(process);
        }
        Ok(InitializeResult {
            capabilities: Self::capabilities(facts),
            server_info: Some(ServerInfo {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        })
    }

    async fn initialized(&self, _params: InitializedParams) {
        let facts = self.shared.facts.get();
        if let Some(Err(problem)) = facts.map(|facts| user_options(&facts.initialization_options)) {
            let client = self.shared.client.clone();
            tokio::spawn(async move { client.show_message(MessageType::WARNING, problem).await });
        }
        if facts.is_some_and(|facts| facts.configuration_registration) {
            let client = self.shared.client.clone();
            tokio::spawn(async move {
                let wanted = Registration {
                    id: "kode-configuration".to_owned(),
                    method: "workspace/didChangeConfiguration".to_owned(),
                    register_options: None,
                };
                if let Err(error) = client.register_capability(vec![wanted]).await {
                    tracing::info!(%error, "the editor does not tell of changes of its configuration");
                }
            });
        }
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        trust::configuration_changed(&self.shared, params.settings);
    }

    async fn shutdown(&self) -> Result<()> {
        self.shared.lifecycle.end().await;
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        self.shared.documents.open(params.text_document);
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let uri = params.text_document.uri.clone();
        self.shared.documents.change(params);
        ReviewPublisher::text_changed(&self.shared, &uri);
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.shared.documents.close(&params.text_document);
    }

    async fn will_save(&self, params: WillSaveTextDocumentParams) {
        self.shared.documents.will_save(&params);
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        self.shared.documents.saved(&params.text_document);
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        let Some(facts) = self.shared.facts.get() else { return Ok(None) };
        let uri = &params.text_document.uri;
        let document = self.shared.documents.snapshot(uri);
        let editor = review::actions::Editor::new(facts, document.as_ref());
        let mut offered = Vec::new();
        if let Some(agent) = self.shared.live_agent() {
            let prompts = review::prompts::waiting(agent, facts);
            offered = review::prompts::actions(&prompts, &params, facts.code_action_literals);
            let reviews = review::around(agent, self.reviews(uri));
            offered.extend(review::actions::actions(&reviews, &params, editor));
        }
        offered.extend(chat::offers::actions(&self.shared, &params, document.as_ref()));
        offered.extend(asking::actions(&self.shared, &params, document.as_ref()).await);
        Ok(Some(offered))
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        let uri = &params.text_document.uri;
        let mut lenses = review::lenses::lenses(&self.reviews(uri), uri);
        lenses.extend(chat::offers::lenses(&self.shared, uri));
        Ok(Some(lenses))
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        Ok(completion::complete(self, &params).await?.map(CompletionResponse::List))
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let TextDocumentPositionParams { text_document, position } = params.text_document_position_params;
        let markdown = self.shared.facts.get().is_some_and(|facts| facts.hover_markdown);
        let kind = if markdown { MarkupKind::Markdown } else { MarkupKind::PlainText };
        let encoding = self.shared.documents.encoding();
        Ok(review::hover::hover(&self.reviews(&text_document.uri), position, encoding, kind))
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        commands::run(self.agent()?, &params.command, params.arguments).await.map(Some)
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        let mut roots = self.shared.lock_roots();
        for folder in &params.event.removed {
            roots.retain(|root| root_of(&folder.uri, None).is_none_or(|removed| removed.path != root.path));
        }
        for folder in &params.event.added {
            if let Some(added) = root_of(&folder.uri, Some(&folder.name))
                && roots.iter().all(|root| root.path != added.path)
            {
                roots.push(added);
            }
        }
        drop(roots);
        if let Some(agent) = self.shared.live_agent() {
            agent.watch_settings();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestClient;

    fn connect() -> (TestClient, Arc<Shared>) {
        let (service, socket) = crate::server::service();
        let shared = Arc::clone(service.inner().shared());
        (TestClient::connect((service, socket), Arc::clone(&shared.lifecycle)), shared)
    }

    #[tokio::test]
    async fn initialize_says_what_was_negotiated_and_what_is_offered() {
        let (mut client, shared) = connect();
        let answer = client.initialize(json!({"general": {"positionEncodings": ["utf-8", "utf-16"]}})).await;
        assert_eq!(
            answer["result"],
            json!({
                "capabilities": {
                    "positionEncoding": "utf-8",
                    "textDocumentSync": {
                        "openClose": true, "change": 2, "willSave": true, "save": {"includeText": false},
                    },
                    "workspace": {"workspaceFolders": {"supported": true, "changeNotifications": true}},
                    "codeActionProvider": {
                        "codeActionKinds": ["quickfix", "refactor.kode.review", "source.kode.review", "refactor.kode.ask",
                            "refactor.kode.chat"],
                    },
                    "codeLensProvider": {"resolveProvider": false},
                    "hoverProvider": true,
                    "executeCommandProvider": {"commands": commands::names()},
                    "experimental": {"kode": {
                        "protocolVersion": 1,
                        "serverVersion": env!("CARGO_PKG_VERSION"),
                        "commands": commands::names(),
                        "schemaHash": wire::SCHEMA_HASH,
                    }},
                },
                "serverInfo": {"name": "kode-ls", "version": env!("CARGO_PKG_VERSION")},
            })
        );
        assert_eq!(shared.documents.encoding(), crate::lsp::PositionEncoding::Utf8);
    }

    #[tokio::test]
    async fn where_the_agent_has_changed_nothing_there_is_nothing_to_review() {
        let (mut client, shared) = connect();
        client.initialize(json!({})).await;
        let document = json!({"uri": "file:///a"});
        let position = json!({"line": 0, "character": 0});
        let range = json!({"start": position, "end": position});
        let context = json!({"diagnostics": []});
        let action = json!({"textDocument": document, "range": range, "context": context});
        let hover = json!({"textDocument": document, "position": position});
        assert_eq!(client.request(1, "textDocument/codeAction", action).await["result"], json!([]));
        let lens = json!({"textDocument": document});
        assert_eq!(client.request(2, "textDocument/codeLens", lens).await["result"], json!([]));
        assert_eq!(client.request(3, "textDocument/hover", hover).await["result"], Value::Null);
        assert!(shared.live_agent().is_none(), "looking costs nothing");
    }

    #[tokio::test]
    async fn virtual_documents_are_offered_to_clients_that_read_them() {
        let offered = json!({"schemes": ["kode-baseline", "kode-proposed"]});
        for (content, expected) in [
            (json!({"dynamicRegistration": true}), offered.clone()),
            (json!({}), offered),
            (json!(null), json!(null)),
        ] {
            let (mut client, _shared) = connect();
            let answer = client.initialize(json!({"workspace": {"textDocumentContent": content}})).await;
            let capabilities = &answer["result"]["capabilities"];
            assert_eq!(capabilities["workspace"]["textDocumentContent"], expected, "{content}");
            assert_eq!(capabilities["workspace"]["workspaceFolders"]["supported"], true);
            let experimental = capabilities["experimental"].as_object().unwrap();
            assert_eq!(experimental.keys().collect::<Vec<_>>(), ["kode"]);
        }
    }

    #[tokio::test]
    async fn workspace_folders_come_and_go() {
        let (mut client, shared) = connect();
        let folder = |name: &str| json!({"uri": format!("file:///{name}"), "name": name});
        let params = json!({"capabilities": {}, "workspaceFolders": [folder("a"), folder("b")]});
        client.request(1, "initialize", params).await;
        let event = json!({"added": [folder("c"), folder("b")], "removed": [folder("a"), folder("never")]});
        client.notify("workspace/didChangeWorkspaceFolders", json!({"event": event})).await;
        client.request(2, "shutdown", Value::Null).await;
        let names: Vec<_> = shared.workspace_roots().into_iter().map(|root| root.name).collect();
        assert_eq!(names, ["b", "c"]);
    }

    #[tokio::test]
    async fn shutdown_is_answered_when_everything_is_safe() {
        let (mut client, shared) = connect();
        client.initialize(json!({})).await;
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        shared.lifecycle.at_end(async move { drop(receiver.await) });
        client.notify("textDocument/didSave", json!({"textDocument": {"uri": "file:///a"}})).await;
        client.send(json!({"id": 1, "method": "shutdown"})).await;
        let refused = client.request(2, "textDocument/hover", json!({})).await;
        assert_eq!(refused["error"]["code"], -32600, "no requests after shutdown");
        client.notify("exit", Value::Null).await;
        sender.send(()).unwrap();
        let answer = client.receive().await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": null}));
        assert_eq!(client.ended().await, crate::transport::Ended::Orderly);
    }

    #[cfg(unix)]
    #[tokio::test(start_paused = true)]
    async fn the_server_ends_with_the_process_of_the_editor() {
        let mut editor = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (mut client, _shared) = connect();
        client.request(1, "initialize", json!({"capabilities": {}, "processId": editor.id()})).await;
        editor.kill().unwrap();
        editor.wait().unwrap();
        assert_eq!(client.ended().await, crate::transport::Ended::Abrupt);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_id_that_means_nothing_here_ends_nothing() {
        let (mut client, _shared) = connect();
        client.request(1, "initialize", json!({"capabilities": {}, "processId": i32::MAX})).await;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        client.request(2, "shutdown", Value::Null).await;
    }
}
