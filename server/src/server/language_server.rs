//! The methods of LSP: lifecycle, document sync, and what an editor asks for at a place of a document.
//!
//! Rule: no handler waits for the editor, a model or a tool. Sync handlers do all their work before their first await, which
//! the transport turns into arrival order.

use async_trait::async_trait;
use kode_engine::base::host_name::host_name;
use kode_engine::base::task;
use lsp_types::{
    CodeActionParams, CodeActionResponse, CodeLens, CodeLensParams, CompletionParams, CompletionResponse,
    DidChangeConfigurationParams, DidChangeTextDocumentParams, DidChangeWorkspaceFoldersParams,
    DidCloseTextDocumentParams, DidOpenTextDocumentParams, DidSaveTextDocumentParams, ExecuteCommandParams,
    Hover, HoverParams, InitializeParams, InitializeResult, InitializedParams, MarkupKind, MessageType,
    Registration, ServerInfo, TextDocumentPositionParams, Url, WillSaveTextDocumentParams,
};
use serde_json::Value;
use tower_lsp::LanguageServer;
use tower_lsp::jsonrpc::Result;

use super::capabilities::capabilities;
use crate::agent::{UserOptions, settings};
use crate::backend::Backend;
use crate::client::{ClientFacts, WorkspaceRoot};
use crate::plain::review::publish::ReviewPublisher;
use crate::plain::review::{self, SessionReview};
use crate::plain::{asking, chat, commands, completion};

#[async_trait]
impl LanguageServer for Backend {
    async fn initialize(&self, params: InitializeParams) -> Result<InitializeResult> {
        let root = params.root_uri.as_ref();
        let folders = params.workspace_folders.iter().flatten().map(|folder| &folder.uri);
        folders.chain(root).for_each(|uri| self.connection().documents.learn_spelling(uri));
        let facts = self.connection().facts.get_or_init(|| ClientFacts::new(params));
        tracing::info!(client = ?facts.name, version = ?facts.version, encoding = ?facts.encoding, "initialize");
        self.connection().documents.set_encoding(facts.encoding);
        self.connection().set_workspace_roots(&facts.roots);
        match (facts.editor_process(), facts.process_id) {
            (Some(process), _) => self.connection().lifecycle.watch_process(process),
            (None, Some(id)) => {
                tracing::warn!(
                    id,
                    "the editor's process is not above this one, as over SSH; it is not watched"
                );
            }
            (None, None) => {}
        }
        Ok(InitializeResult {
            capabilities: capabilities(facts),
            server_info: Some(ServerInfo {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            }),
        })
    }

    async fn initialized(&self, _params: InitializedParams) {
        #[cfg(unix)]
        crate::pairing::begin(self.front_end());
        let facts = self.connection().facts.get();
        if let Some(facts) = facts {
            let client = self.connection().client.clone();
            let mut problems = UserOptions::read(&facts.initialization_options).1;
            let roots = facts.roots.clone();
            task::spawn(async move {
                // A folder may be on a disk that hangs.
                let missing = task::spawn_blocking(move || missing_folders(&roots)).await;
                problems.extend(missing.unwrap_or_default());
                if !problems.is_empty() {
                    client.show_message(MessageType::WARNING, problems.join("\n")).await;
                }
            });
        }
        if facts.is_some_and(|facts| facts.configuration_registration) {
            let client = self.connection().client.clone();
            task::spawn(async move {
                let wanted = Registration {
                    id: "kode-configuration".to_owned(),
                    method: "workspace/didChangeConfiguration".to_owned(),
                    register_options: None,
                };
                if let Err(error) = client.register_capability(vec![wanted]).await {
                    tracing::info!(%error, "the editor does not report changes of its configuration");
                }
            });
        }
    }

    async fn did_change_configuration(&self, params: DidChangeConfigurationParams) {
        if let Some(agent) = self.front_end().live_agent() {
            settings::configuration_changed(agent, params.settings);
        }
    }

    async fn shutdown(&self) -> Result<()> {
        self.connection().lifecycle.end().await;
        Ok(())
    }

    async fn did_open(&self, params: DidOpenTextDocumentParams) {
        self.connection().documents.open(params.text_document);
    }

    async fn did_change(&self, params: DidChangeTextDocumentParams) {
        let uri = params.text_document.uri.clone();
        self.connection().documents.change(params);
        ReviewPublisher::text_changed(self.front_end(), &uri);
    }

    async fn did_close(&self, params: DidCloseTextDocumentParams) {
        self.connection().documents.close(&params.text_document);
    }

    async fn will_save(&self, params: WillSaveTextDocumentParams) {
        self.connection().documents.will_save(&params);
    }

    async fn did_save(&self, params: DidSaveTextDocumentParams) {
        self.connection().documents.saved(&params.text_document);
    }

    async fn code_action(&self, params: CodeActionParams) -> Result<Option<CodeActionResponse>> {
        let Some(facts) = self.connection().facts.get() else { return Ok(None) };
        let uri = &params.text_document.uri;
        let document = self.connection().documents.snapshot(uri);
        let editor = review::actions::ActionSupport::new(facts, document.as_ref());
        let mut offered = Vec::new();
        if let Some(agent) = self.front_end().live_agent() {
            let prompts = review::prompts::waiting(agent, facts);
            offered = review::prompts::actions(&prompts, &params, facts.code_action_literals);
            offered.extend(review::questions::actions(agent, facts, &params));
            let reviews = review::around(agent, reviews(self, uri));
            offered.extend(review::actions::actions(&reviews, &params, editor));
        }
        offered.extend(chat::offers::actions(self.front_end(), &params, document.as_ref()));
        offered.extend(asking::actions(self.front_end(), &params, document.as_ref()).await);
        Ok(Some(offered))
    }

    async fn code_lens(&self, params: CodeLensParams) -> Result<Option<Vec<CodeLens>>> {
        let uri = &params.text_document.uri;
        let mut lenses = review::lenses::lenses(&reviews(self, uri), uri);
        lenses.extend(chat::offers::lenses(self.front_end(), uri));
        Ok(Some(lenses))
    }

    async fn completion(&self, params: CompletionParams) -> Result<Option<CompletionResponse>> {
        Ok(completion::complete(self.front_end(), &params).await?.map(CompletionResponse::List))
    }

    async fn hover(&self, params: HoverParams) -> Result<Option<Hover>> {
        let TextDocumentPositionParams { text_document, position } = params.text_document_position_params;
        let markdown = self.connection().facts.get().is_some_and(|facts| facts.hover_markdown);
        let kind = if markdown { MarkupKind::Markdown } else { MarkupKind::PlainText };
        let encoding = self.connection().documents.encoding();
        Ok(review::hover::hover(&reviews(self, &text_document.uri), position, encoding, kind))
    }

    async fn execute_command(&self, params: ExecuteCommandParams) -> Result<Option<Value>> {
        commands::run(self.front_end(), &params.command, params.arguments).await.map(Some)
    }

    async fn did_change_workspace_folders(&self, params: DidChangeWorkspaceFoldersParams) {
        self.connection().change_workspace_roots(&params.event);
        if let Some(agent) = self.front_end().live_agent() {
            agent.watch_settings();
        }
    }
}

/// What follows from workspace folders that this host does not have, as when the editor runs on another host.
fn missing_folders(roots: &[WorkspaceRoot]) -> Vec<String> {
    let missing = roots.iter().filter(|root| !root.path.as_path().exists());
    let text = |root: &WorkspaceRoot| {
        format!(
            "The workspace folder {} does not exist on the host of kode-ls ({}). The agent works on open documents \
             alone: commands fail, and new files are created on that host. Give the workspace the same path on both \
             hosts, then restart kode-ls.",
            root.path,
            host_name()
        )
    };
    missing.map(text).collect()
}

/// The changes that wait in a document.
fn reviews(backend: &Backend, uri: &Url) -> Vec<SessionReview> {
    backend.front_end().live_agent().map(|agent| review::gather(agent, uri)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kode_protocol as wire;
    use serde_json::json;

    use super::*;
    use crate::plain::PlainFrontEnd;
    use crate::testing::TestClient;

    fn connect() -> (TestClient, Arc<PlainFrontEnd>) {
        let (service, socket) = crate::server::service();
        let front_end = Arc::clone(service.inner().front_end());
        (TestClient::connect((service, socket), Arc::clone(&front_end.connection.lifecycle)), front_end)
    }

    #[tokio::test]
    async fn initialize_says_what_was_negotiated_and_what_is_offered() {
        let (mut client, front_end) = connect();
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
        assert_eq!(front_end.connection.documents.encoding(), crate::lsp::PositionEncoding::Utf8);
    }

    #[tokio::test]
    async fn where_the_agent_has_changed_nothing_there_is_nothing_to_review() {
        let (mut client, front_end) = connect();
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
        assert!(front_end.live_agent().is_none(), "the agent is not started");
    }

    #[tokio::test]
    async fn virtual_documents_are_offered_to_clients_that_read_them() {
        let offered = json!({"schemes": ["kode-baseline", "kode-proposed"]});
        for (content, expected) in [
            (json!({"dynamicRegistration": true}), offered.clone()),
            (json!({}), offered),
            (json!(null), json!(null)),
        ] {
            let (mut client, _front_end) = connect();
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
        let (mut client, front_end) = connect();
        let folder = |name: &str| json!({"uri": format!("file:///{name}"), "name": name});
        let params = json!({"capabilities": {}, "workspaceFolders": [folder("a"), folder("b")]});
        client.request(1, "initialize", params).await;
        let event = json!({"added": [folder("c"), folder("b")], "removed": [folder("a"), folder("never")]});
        client.notify("workspace/didChangeWorkspaceFolders", json!({"event": event})).await;
        client.request(2, "shutdown", Value::Null).await;
        let names: Vec<_> =
            front_end.connection.workspace_roots().into_iter().map(|root| root.name).collect();
        assert_eq!(names, ["b", "c"]);
    }

    #[tokio::test]
    async fn shutdown_is_answered_when_everything_is_safe() {
        let (mut client, front_end) = connect();
        client.initialize(json!({})).await;
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        front_end.connection.lifecycle.at_end(async move { drop(receiver.await) });
        client.notify("textDocument/didSave", json!({"textDocument": {"uri": "file:///a"}})).await;
        client.send(json!({"id": 1, "method": "shutdown"})).await;
        let refused = client.request(2, "textDocument/hover", json!({})).await;
        assert_eq!(refused["error"]["code"], -32600, "no requests after shutdown");
        client.notify("exit", Value::Null).await;
        sender.send(()).unwrap();
        let answer = client.receive().await;
        assert_eq!(answer, json!({"jsonrpc": "2.0", "id": 1, "result": null}));
        assert_eq!(client.ended().await, crate::transport::ServeEnd::Orderly);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_id_that_means_nothing_here_ends_nothing() {
        let (mut client, _front_end) = connect();
        client.request(1, "initialize", json!({"capabilities": {}, "processId": i32::MAX})).await;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        client.request(2, "shutdown", Value::Null).await;
    }

    #[cfg(target_os = "linux")]
    #[tokio::test(start_paused = true)]
    async fn a_process_id_of_another_host_that_is_taken_here_ends_nothing() {
        let mut taken = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let (mut client, _front_end) = connect();
        client.request(1, "initialize", json!({"capabilities": {}, "processId": taken.id()})).await;
        taken.kill().unwrap();
        taken.wait().unwrap();
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        client.request(2, "shutdown", Value::Null).await;
    }
}
