//! A language server that runs: its handshake, its capabilities, its texts and its requests.
//!
//! Rule: the texts of a request are synchronized under one lock, so that the server gets them in order; a server that says it is
//! still busy is waited for within a bound, and the result says when it was not done.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{RwLock, RwLockReadGuard};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::{LanguageConnection, RequestFailure, ServerMessages};
use crate::documents::{ServerDocuments, SyncedText};
use crate::launch::{self, LaunchedProgram};
use crate::messages::LanguageServerState;
use crate::positions::Encoding;
use crate::uri;
use kode_base::paths::{AbsPath, Target};
use kode_base::task;
use kode_config::language_servers::LanguageServerDefinition;
use kode_process::shell::error_output::ErrorOutput;
use kode_process::shell::served::ServedProcess;
use kode_text::workspace::Workspace;
use kode_text::workspace::language::LanguageError;

/// The longest wait for the answer to a request.
pub(crate) const REQUEST_LIMIT: Duration = Duration::from_secs(30);
/// The time without a request after which a server is ended.
pub(crate) const IDLE_LIMIT: Duration = Duration::from_secs(600);

/// The answers that mean "ask again": the content changed, or the server cancelled the request.
const TRY_AGAIN: [i64; 2] = [-32801, -32802];
/// The waits before a request is sent again.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1_500)];
/// The most characters of a server's error that are shown.
const MAX_REASON: usize = 500;

/// A feature of the protocol: its capability, and its name in errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Feature {
    pub(crate) capability: &'static str,
    pub(crate) name: &'static str,
}

/// A server that runs.
pub(crate) struct RunningLanguageServer {
    pub(crate) name: String,
    pub(crate) encoding: Encoding,
    pub(crate) state: Arc<LanguageServerState>,
    definition: Arc<LanguageServerDefinition>,
    root: AbsPath,
    connection: Arc<LanguageConnection>,
    capabilities: Value,
    documents: tokio::sync::Mutex<ServerDocuments>,
    /// Held by all requests together, and by a trial of proposed texts alone.
    turns: RwLock<()>,
    used: Arc<Mutex<Instant>>,
    errors: ErrorOutput,
    ending: CancellationToken,
    ended: CancellationToken,
}

impl Drop for RunningLanguageServer {
    fn drop(&mut self) {
        self.ending.cancel();
    }
}

impl RunningLanguageServer {
    /// Connects to a program that was started, and introduces the client.
    ///
    /// # Errors
    /// Why the server is of no use, without a period.
    pub(crate) async fn start(
        launched: LaunchedProgram,
        definition: Arc<LanguageServerDefinition>,
        root: AbsPath,
    ) -> Result<Arc<Self>, String> {
        let LaunchedProgram { input, output, errors, process } = launched;
        let folders = json!([{ "uri": uri::of_path(&root), "name": root.file_name() }]);
        let settings = definition.settings.clone();
        let state = Arc::new(LanguageServerState::new(&definition.command, settings, folders.clone()));
        let messages = Arc::clone(&state) as Arc<dyn ServerMessages>;
        let connection = Arc::new(LanguageConnection::start(output, input, messages));
        let (ending, ended) = (CancellationToken::new(), CancellationToken::new());
        let used = Arc::new(Mutex::new(Instant::now()));
        let life = ServerLife {
            connection: Arc::clone(&connection),
            process,
            used: Arc::clone(&used),
            ending: ending.clone(),
            limit: definition.shutdown_timeout,
        };
        let over = ended.clone();
        task::spawn(async move {
            let _over = over.drop_guard();
            life.follow().await;
        });
        // A handshake that fails ends the program.
        let guard = ending.clone().drop_guard();
        let parameters = initialize(&definition, &root, folders);
        let answer = connection.request("initialize", &parameters, definition.startup_timeout).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => {
                guard.disarm().cancel();
                ended.cancelled().await;
                errors.settle().await;
                return Err(failed_start(&failure, &definition, &errors));
            }
        };
        let capabilities = answer.get("capabilities").cloned().unwrap_or_default();
        let encoding = capabilities.get("positionEncoding").and_then(Value::as_str);
        let encoding = encoding.and_then(Encoding::parse).unwrap_or_default();
        let lost = |_| "it ended during its start".to_owned();
        connection.notify("initialized", &json!({})).await.map_err(lost)?;
        if !definition.settings.is_null() {
            let settings = json!({ "settings": definition.settings });
            connection.notify("workspace/didChangeConfiguration", &settings).await.map_err(lost)?;
        }
        state.work.begin();
        tracing::info!(server = definition.name, %root, "a language server has started");
        Ok(Arc::new(Self {
            name: definition.name.clone(),
            encoding,
            state,
            definition,
            root,
            connection,
            capabilities,
            documents: tokio::sync::Mutex::default(),
            turns: RwLock::default(),
            used,
            errors,
            ending: guard.disarm(),
            ended,
        }))
    }

    /// Whether a file is in its root and of a language that it serves.
    pub(crate) fn serves(&self, path: &AbsPath) -> bool {
        path.is_within(&self.root) && self.definition.language_of(path).is_some()
    }

    /// Whether it can be asked.
    pub(crate) fn is_open(&self) -> bool {
        self.connection.is_open() && !self.ending.is_cancelled()
    }

    /// Whether it was asked to end, or had been idle too long: its end is no fault then.
    pub(crate) fn was_ended(&self) -> bool {
        self.ending.is_cancelled()
    }

    /// Whether the server has a capability.
    pub(crate) fn has(&self, capability: &str) -> bool {
        let found = self.capabilities.get(capability);
        found.is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
    }

    /// Whether an option of a capability is switched on.
    pub(crate) fn has_nested(&self, capability: &str, option: &str) -> bool {
        let found = self.capabilities.get(capability).and_then(|options| options.get(option));
        found == Some(&Value::Bool(true))
    }

    /// Whether the server computes the edits that go with files being moved.
    pub(crate) fn moves_files(&self) -> bool {
        let option = self.capabilities.pointer("/workspace/fileOperations/willRename");
        option.is_some_and(|option| !option.is_null())
    }

    /// Ends the server and waits until its process is gone.
    pub(crate) async fn end(&self) {
        self.ending.cancel();
        self.ended.cancelled().await;
    }

    /// Gives the server the texts as the user sees them, those of `wanted` among them.
    ///
    /// # Errors
    /// [`LanguageError::Failed`] when the server has ended.
    pub(crate) async fn sync(&self, workspace: &Workspace, wanted: &[Target]) -> Result<(), LanguageError> {
        *self.used.lock() = Instant::now();
        let mut documents = self.documents.lock().await;
        let texts = (workspace, wanted);
        let synced =
            timeout(REQUEST_LIMIT, documents.sync(&self.connection, &self.definition, &self.root, texts));
        match synced.await {
            Ok(result) => result.map_err(|failure| self.failure(failure)),
            Err(_) => Err(self.failure(RequestFailure::Timeout)),
        }
    }

    /// Gives the server proposed texts, has `check` check them by their versions, and takes them back. `None` when requests
    /// are under way, which would see them, or the server has ended.
    pub(crate) async fn with_proposed<T>(
        &self,
        texts: &[(Target, Arc<str>)],
        check: impl AsyncFnOnce(&[i64]) -> Option<T>,
    ) -> Option<T> {
        let _turn = self.turns.try_write().ok()?;
        let mut documents = self.documents.try_lock().ok()?;
        let before: Vec<_> = texts.iter().map(|(target, _)| self.state.published(target)).collect();
        let mut versions = Vec::with_capacity(texts.len());
        for (target, text) in texts {
            let proposed = documents.propose(&self.connection, &self.definition, (target, text)).await;
            versions.push(proposed.ok()?);
        }
        let checked = check(&versions).await;
        for ((target, _), before) in texts.iter().zip(before) {
            documents.withdraw(&self.connection, target).await.ok()?;
            self.state.restore(target, before);
        }
        checked
    }

    /// All texts that the server has now.
    pub(crate) async fn texts(&self) -> HashMap<Target, SyncedText> {
        self.documents.lock().await.texts()
    }

    /// The text of a file that the server has now.
    pub(crate) async fn text(&self, target: &Target) -> Option<SyncedText> {
        self.documents.lock().await.text(target)
    }

    /// Asks for something that the server must have a capability for.
    ///
    /// # Errors
    /// [`LanguageError`].
    pub(crate) async fn request(
        &self,
        feature: Feature,
        method: &str,
        parameters: &Value,
    ) -> Result<Value, LanguageError> {
        let _turn = self.turn().await;
        self.exchange(feature, method, parameters).await
    }

    /// Waits until no trial of proposed texts is under way. None begins before the result is dropped.
    pub(crate) async fn turn(&self) -> RwLockReadGuard<'_, ()> {
        self.turns.read().await
    }

    /// Asks within a turn that the caller has.
    ///
    /// # Errors
    /// [`LanguageError`].
    pub(crate) async fn exchange(
        &self,
        feature: Feature,
        method: &str,
        parameters: &Value,
    ) -> Result<Value, LanguageError> {
        if !self.has(feature.capability) {
            return Err(LanguageError::Unsupported { server: self.name.clone(), request: feature.name });
        }
        let mut delays = RETRY_DELAYS.iter();
        loop {
            *self.used.lock() = Instant::now();
            let failure = match self.connection.request(method, parameters, REQUEST_LIMIT).await {
                Ok(result) => {
                    *self.used.lock() = Instant::now();
                    return Ok(result);
                }
                Err(failure) => failure,
            };
            let may_retry =
                matches!(&failure, RequestFailure::Refused { code, .. } if TRY_AGAIN.contains(code));
            match delays.next().filter(|_| may_retry) {
                Some(delay) => sleep(*delay).await,
                None => return Err(self.failure(failure)),
            }
        }
    }

    /// Notifies the server that files have changed on the disk.
    ///
    /// # Errors
    /// [`LanguageError::Failed`] when the server has ended.
    pub(crate) async fn files_changed(&self, changes: Vec<Value>) -> Result<(), LanguageError> {
        let parameters = json!({ "changes": changes });
        let sent = self.connection.notify("workspace/didChangeWatchedFiles", &parameters);
        sent.await.map_err(|failure| self.failure(failure))
    }

    fn failure(&self, failure: RequestFailure) -> LanguageError {
        let server = self.name.clone();
        match failure {
            RequestFailure::Timeout => LanguageError::Timeout { server, seconds: REQUEST_LIMIT.as_secs() },
            RequestFailure::Refused { message, .. } => {
                LanguageError::Failed { server, reason: message.chars().take(MAX_REASON).collect() }
            }
            RequestFailure::Closed(reason) => {
                let reason = format!("{reason}{}", last_error(&self.errors));
                LanguageError::Failed { server, reason }
            }
        }
    }
}

/// The task of a server from its start to its end: it owns the process.
struct ServerLife {
    connection: Arc<LanguageConnection>,
    process: Option<ServedProcess>,
    used: Arc<Mutex<Instant>>,
    ending: CancellationToken,
    limit: Duration,
}

impl ServerLife {
    /// Waits for the end of the server, or for the time to end it, and sees to it that nothing of it is left.
    async fn follow(self) {
        loop {
            let idle = *self.used.lock() + IDLE_LIMIT;
            tokio::select! {
                reason = self.connection.closed() => {
                    tracing::info!(reason, "a language server has ended");
                    break;
                }
                () = self.ending.cancelled() => {
                    self.say_goodbye().await;
                    break;
                }
                () = tokio::time::sleep_until(idle) => {
                    if *self.used.lock() + IDLE_LIMIT <= Instant::now() {
                        self.ending.cancel();
                    }
                }
            }
        }
        self.connection.close("it was ended");
        if let Some(process) = self.process {
            let end = process.end().await;
            tracing::debug!(end = launch::describe(&end), "the process of a language server is gone");
        }
    }

    async fn say_goodbye(&self) {
        if self.connection.request("shutdown", &Value::Null, self.limit).await.is_ok() {
            // One that has closed its input meanwhile is ending.
            drop(self.connection.notify("exit", &Value::Null).await);
            drop(timeout(self.limit, self.connection.closed()).await);
        }
    }
}

fn failed_start(
    failure: &RequestFailure,
    definition: &LanguageServerDefinition,
    errors: &ErrorOutput,
) -> String {
    let reason = match failure {
        RequestFailure::Timeout => {
            format!("it did not answer within {} s of its start", definition.startup_timeout.as_secs())
        }
        RequestFailure::Refused { message, .. } => format!("it refused to start: {message}"),
        RequestFailure::Closed(reason) => reason.clone(),
    };
    format!("{reason}{}", last_error(errors))
}

/// The last line of a server's error output, in parentheses; empty if absent.
fn last_error(errors: &ErrorOutput) -> String {
    let text = errors.text();
    let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    if last.is_empty() {
        return String::new();
    }
    let last: String = last.trim().chars().take(MAX_REASON).collect();
    format!(" (its last output: {last})")
}

/// The parameters of `initialize`. No process id: in the sandbox the server could not see ours, and would end.
fn initialize(definition: &LanguageServerDefinition, root: &AbsPath, folders: Value) -> Value {
    let mut parameters = json!({
        "processId": null,
        "clientInfo": { "name": "kode-ls", "version": env!("CARGO_PKG_VERSION") },
        "rootUri": uri::of_path(root),
        "rootPath": root.to_string(),
        "workspaceFolders": folders,
        "capabilities": capabilities(),
    });
    if !definition.initialization_options.is_null()
        && let Some(object) = parameters.as_object_mut()
    {
        object.insert("initializationOptions".to_owned(), definition.initialization_options.clone());
    }
    parameters
}

/// The capabilities of this client. Servers watch files by themselves, because a client that does would watch every folder of
/// the workspace for each of them.
fn capabilities() -> Value {
    let kinds: Vec<u32> = (1..=26).collect();
    json!({
        "general": { "positionEncodings": ["utf-8", "utf-16", "utf-32"] },
        "window": { "workDoneProgress": true },
        "experimental": { "serverStatusNotification": true },
        "workspace": {
            "applyEdit": true,
            "configuration": true,
            "workspaceFolders": true,
            "didChangeConfiguration": { "dynamicRegistration": false },
            "didChangeWatchedFiles": { "dynamicRegistration": false },
            "symbol": { "symbolKind": { "valueSet": kinds } },
            "executeCommand": {},
            "fileOperations": { "dynamicRegistration": false, "willRename": true },
            "workspaceEdit": {
                "documentChanges": true,
                "resourceOperations": ["create"],
                "failureHandling": "abort",
            },
        },
        "textDocument": {
            "synchronization": { "didSave": true },
            "definition": { "linkSupport": true },
            "declaration": { "linkSupport": true },
            "typeDefinition": { "linkSupport": true },
            "implementation": { "linkSupport": true },
            "references": {},
            "hover": { "contentFormat": ["markdown", "plaintext"] },
            "documentSymbol": {
                "hierarchicalDocumentSymbolSupport": true,
                "symbolKind": { "valueSet": kinds },
            },
            "callHierarchy": {},
            "rename": { "prepareSupport": true },
            "formatting": {},
            "rangeFormatting": {},
            "codeAction": {
                "codeActionLiteralSupport": {
                    "codeActionKind": { "valueSet": ["", "quickfix", "refactor", "refactor.extract",
                        "refactor.inline", "refactor.rewrite", "source", "source.organizeImports",
                        "source.fixAll"] },
                },
                "isPreferredSupport": true,
                "disabledSupport": true,
                "dataSupport": true,
                "resolveSupport": { "properties": ["edit", "command"] },
            },
            "publishDiagnostics": { "versionSupport": true },
            "diagnostic": { "dynamicRegistration": false },
        },
    })
}
