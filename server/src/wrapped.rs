//! The language server that an editor is served together with, as the agent sees it: it answers in place of an instance of the
//! agent's own.
//!
//! Rule: it is asked over a bounded queue and every wait has a limit. A closed file is open in the server for the time of one request.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use kode_engine::base::paths::Target;
use kode_engine::languages::{EditorAnswer, EditorFailure, EditorRequest, ServerWork, known_language};
use kode_protocol as wire;
use lsp_types::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::documents::target;

/// Requests of the agent that wait to be sent.
const MAX_REQUESTS: usize = 64;
/// The most bytes of a closed file that the server is given.
const MAX_FILE: u64 = 8 << 20;
/// The most extensions of open documents that are kept.
const MAX_EXTENSIONS: usize = 256;
/// The most files whose diagnostics are kept.
const MAX_FILES: usize = 10_000;
/// How long a server that is asked for diagnostics may take.
const PULL_LIMIT: Duration = Duration::from_secs(5);

/// How long a request waits before it is sent again whose text had moved, or which the server gave up.
const RETRY_DELAYS: [Duration; 3] =
    [Duration::from_millis(100), Duration::from_millis(400), Duration::from_millis(1_500)];

/// A message of the agent to the server.
#[derive(Debug)]
pub(crate) enum WrappedMessage {
    /// A question of its tools.
    Request(WrappedRequest),
    /// Files that it has changed on the disk, each a `FileEvent`.
    FilesChanged(Vec<Value>),
}

/// A request of the agent for the server.
#[derive(Debug)]
pub(crate) struct WrappedRequest {
    /// The method.
    pub(crate) method: String,
    /// The parameters.
    pub(crate) params: Value,
    /// The document or file that it is about.
    pub(crate) document: Option<ClosedText>,
    /// When the answer is of no use any more.
    pub(crate) deadline: Instant,
    /// Where the answer goes.
    pub(crate) answer: oneshot::Sender<Result<Value, EditorFailure>>,
}

/// A file for a server that may not have it open.
#[derive(Clone, Debug)]
pub(crate) struct ClosedText {
    /// The file.
    pub(crate) target: Target,
    /// Its URI.
    pub(crate) uri: String,
    /// The id of its language.
    pub(crate) language: String,
    /// Its text on the disk; `None` for an unreadable file.
    pub(crate) text: Option<String>,
}

/// The diagnostics that a server published about a file.
#[derive(Clone, Debug)]
pub(crate) struct PublishedDiagnostics {
    /// The file as the server spells it.
    pub(crate) uri: String,
    /// The version of the document.
    pub(crate) version: Option<i32>,
    /// The array of diagnostics in the bytes of the message.
    pub(crate) list: Bytes,
    /// The number of this publication.
    pub(crate) number: u64,
}

/// The server.
pub(crate) struct WrappedServer {
    program: PathBuf,
    messages: mpsc::Sender<WrappedMessage>,
    is_ready: AtomicBool,
    /// Whether it is asked for diagnostics and publishes none.
    is_pulled: AtomicBool,
    /// Whether it computes the edits that go with files being moved.
    moves_files: AtomicBool,
    state: Mutex<WrappedState>,
    published: watch::Sender<u64>,
}

struct WrappedState {
    /// The languages of the documents that were open, and of the files that it has named, by extension.
    languages: HashMap<String, String>,
    diagnostics: HashMap<Target, PublishedDiagnostics>,
    /// The work of the present process.
    work: Arc<ServerWork>,
}

impl WrappedServer {
    /// A server whose program has this name or path, and what it is to be sent.
    pub(crate) fn new(program: &OsStr) -> (Self, mpsc::Receiver<WrappedMessage>) {
        let (messages, queue) = mpsc::channel(MAX_REQUESTS);
        let work = Arc::new(ServerWork::new(&program.to_string_lossy()));
        let server = Self {
            program: PathBuf::from(program),
            messages,
            is_ready: AtomicBool::new(false),
            is_pulled: AtomicBool::new(false),
            moves_files: AtomicBool::new(false),
            state: Mutex::new(WrappedState { languages: HashMap::new(), diagnostics: HashMap::new(), work }),
            published: watch::Sender::new(0),
        };
        (server, queue)
    }

    /// Its name, for people.
    pub(crate) fn name(&self) -> String {
        let name = self.program.file_name().unwrap_or(self.program.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// Whether it answers.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// Notes whether it answers.
    pub(crate) fn set_ready(&self, is_ready: bool) {
        self.is_ready.store(is_ready, Ordering::Release);
    }

    /// Notes whether it is asked for diagnostics.
    pub(crate) fn set_pulled(&self, is_pulled: bool) {
        self.is_pulled.store(is_pulled, Ordering::Release);
    }

    /// Notes whether it computes the edits that go with files being moved.
    pub(crate) fn set_moves_files(&self, moves_files: bool) {
        self.moves_files.store(moves_files, Ordering::Release);
    }

    /// Whether it computes the edits that go with files being moved.
    pub(crate) fn moves_files(&self) -> bool {
        self.moves_files.load(Ordering::Acquire)
    }

    /// Notes that a process of it starts.
    pub(crate) fn note_start(&self) {
        self.lock().work = Arc::new(ServerWork::new(&self.program.to_string_lossy()));
    }

    /// Work that the current process reports.
    pub(crate) fn work(&self) -> Arc<ServerWork> {
        Arc::clone(&self.lock().work)
    }

    /// The work that it has not finished, in words.
    pub(crate) fn unfinished(&self) -> Option<String> {
        self.work().unfinished()
    }

    /// Notes the language of a document that the editor has opened.
    pub(crate) fn note_language(&self, target: &Target, language: &str) {
        let Some(extension) = extension(target) else { return };
        let mut state = self.lock();
        if state.languages.len() < MAX_EXTENSIONS {
            state.languages.insert(extension, language.to_owned());
        }
    }

    /// Notes the extensions that it has named as its own, with their languages. Those of the editor's documents stay.
    pub(crate) fn note_named(&self, named: Vec<(String, String)>) {
        let mut state = self.lock();
        for (extension, language) in named {
            if state.languages.len() < MAX_EXTENSIONS {
                state.languages.entry(extension).or_insert(language);
            }
        }
    }

    /// The language of a file that it serves: one like a document that the editor has opened, one that the server has named, or
    /// one of a well-known server.
    pub(crate) fn language(&self, target: &Target) -> Option<String> {
        self.language_of_extension(&extension(target)?)
    }

    /// Whether it serves files with this extension, which is in lower case.
    pub(crate) fn serves(&self, extension: &str) -> bool {
        self.language_of_extension(extension).is_some()
    }

    fn language_of_extension(&self, extension: &str) -> Option<String> {
        let seen = self.lock().languages.get(extension).cloned();
        seen.or_else(|| known_language(&self.program, extension).map(str::to_owned))
    }

    /// Keeps what it has published about a file.
    pub(crate) fn publish(&self, uri: String, version: Option<i32>, list: Bytes) {
        let mut number = 0;
        self.published.send_modify(|all| {
            *all += 1;
            number = *all;
        });
        let mut state = self.lock();
        let key = key(&uri);
        if state.diagnostics.len() < MAX_FILES || state.diagnostics.contains_key(&key) {
            state.diagnostics.insert(key, PublishedDiagnostics { uri, version, list, number });
        }
    }

    /// The diagnostics that it published about a file.
    pub(crate) fn published(&self, uri: &str) -> Option<PublishedDiagnostics> {
        self.lock().diagnostics.get(&key(uri)).cloned()
    }

    /// Forgets what it has published, and returns it.
    pub(crate) fn take_published(&self) -> Vec<PublishedDiagnostics> {
        std::mem::take(&mut self.lock().diagnostics).into_values().collect()
    }

    /// Asks it; no answer means that it does not serve the file.
    ///
    /// # Errors
    /// [`EditorFailure`].
    pub(crate) async fn request(
        &self,
        request: EditorRequest,
        encoding: &str,
    ) -> Result<Vec<EditorAnswer>, EditorFailure> {
        let EditorRequest { method, mut parameters, limit, server } = request;
        if server.is_some_and(|server| server != self.name()) {
            return Ok(Vec::new());
        }
        let uri = parameters.pointer("/textDocument/uri").and_then(Value::as_str).map(str::to_owned);
        let document = match uri {
            Some(uri) => match self.closed_text(&uri).await {
                Some(document) => Some(document),
                None => return Ok(Vec::new()),
            },
            None => None,
        };
        if method == "textDocument/codeAction" {
            self.add_diagnostics(&mut parameters);
        }
        let work = self.work();
        if work.is_settling() {
            work.ready().await;
        }
        let result = self.ask(&method, &parameters, document.as_ref(), limit).await?;
        let (server, encoding) = (self.name(), Some(encoding.to_owned()));
        Ok(vec![EditorAnswer { server, encoding, result }])
    }

    /// Notifies it of files that the agent has changed on the disk.
    pub(crate) fn files_changed(&self, changes: Vec<Value>) {
        if self.messages.try_send(WrappedMessage::FilesChanged(changes)).is_err() {
            tracing::debug!("the wrapped server is not notified of changed files");
        }
    }

    /// Sends a request, again where the server gave it up. One about a version of a text is asked again by the caller, who has
    /// the next version.
    async fn ask(
        &self,
        method: &str,
        params: &Value,
        document: Option<&ClosedText>,
        limit: Duration,
    ) -> Result<Value, EditorFailure> {
        let is_exact = params.pointer("/textDocument/version").is_some();
        let mut delays = RETRY_DELAYS.iter();
        loop {
            let answer = self.send(method.to_owned(), params.clone(), document.cloned(), limit).await;
            match (answer, delays.next()) {
                (Err(EditorFailure::Moved), Some(delay)) if !is_exact => sleep(*delay).await,
                (answer, _) => return answer,
            }
        }
    }

    async fn send(
        &self,
        method: String,
        params: Value,
        document: Option<ClosedText>,
        limit: Duration,
    ) -> Result<Value, EditorFailure> {
        let gone = || EditorFailure::NoAnswer(format!("{} does not run", self.name()));
        let (answer, answered) = oneshot::channel();
        let deadline = Instant::now() + limit;
        let request = WrappedRequest { method, params, document, deadline, answer };
        self.messages.try_send(WrappedMessage::Request(request)).map_err(|_| gone())?;
        match timeout_at(deadline, answered).await {
            Ok(answered) => answered.unwrap_or_else(|_| Err(gone())),
            Err(_) => {
                let reason = format!("{} did not answer within {} s", self.name(), limit.as_secs());
                Err(EditorFailure::NoAnswer(reason))
            }
        }
    }

    /// A file that it serves; `None` for one that it does not serve.
    async fn closed_text(&self, uri: &str) -> Option<ClosedText> {
        let target = key(uri);
        let language = self.language(&target)?;
        let text = match target.file() {
            Some(path) => small_text(path.as_path()).await,
            None => None,
        };
        Some(ClosedText { target, uri: uri.to_owned(), language, text })
    }

    /// Adds the diagnostics of the lines to a request for their code actions.
    fn add_diagnostics(&self, params: &mut Value) {
        let uri = params.pointer("/textDocument/uri").and_then(Value::as_str).unwrap_or_default();
        let line = |of: &Value, end: &str| of["range"][end]["line"].as_u64().unwrap_or_default();
        let (first, last) = (line(params, "start"), line(params, "end"));
        let list = self.published(uri).map(|known| parse_list(&known.list)).unwrap_or_default();
        let concerned =
            list.into_iter().filter(|one| line(one, "end") >= first && line(one, "start") <= last);
        params["context"]["diagnostics"] = concerned.collect();
    }

    /// Its diagnostics of these files, or of all. `versions` are the open documents among them; they are waited for at most this
    /// long.
    pub(crate) async fn diagnostics(
        &self,
        uris: &[(wire::Uri, Option<i32>)],
        settle: Option<Duration>,
    ) -> wire::EditorDiagnosticsResult {
        if self.is_pulled.load(Ordering::Acquire) {
            let asked = uris.iter().map(|(uri, version)| self.pull(uri, *version));
            return wire::EditorDiagnosticsResult {
                files: join_all(asked).await.into_iter().flatten().collect(),
            };
        }
        if let Some(settle) = settle {
            // After the limit, the answer has the results so far.
            let _ = timeout(settle, self.settled(uris)).await;
        }
        let state = self.lock();
        let all = state.diagnostics.values();
        let found = all.filter(|known| {
            uris.is_empty() || uris.iter().any(|(uri, _)| key(uri.as_str()) == key(&known.uri))
        });
        let file = |known: &PublishedDiagnostics| wire::EditorFileDiagnostics {
            uri: wire::Uri::new(known.uri.as_str()),
            version: known.version,
            diagnostics: parse_list(&known.list).iter().filter_map(diagnostic).collect(),
        };
        wire::EditorDiagnosticsResult { files: found.map(file).collect() }
    }

    /// Waits until it has published about the present versions.
    async fn settled(&self, uris: &[(wire::Uri, Option<i32>)]) {
        let mut published = self.published.subscribe();
        let began = *published.borrow_and_update();
        let is_settled = |(uri, version): &(wire::Uri, Option<i32>)| {
            let known = self.published(uri.as_str());
            version.is_none()
                || known.is_some_and(|known| match known.version {
                    Some(known) => Some(known) >= *version,
                    None => known.number > began,
                })
        };
        while !uris.iter().all(is_settled) {
            if published.changed().await.is_err() {
                return;
            }
        }
    }

    async fn pull(&self, uri: &wire::Uri, version: Option<i32>) -> Option<wire::EditorFileDiagnostics> {
        let document = self.closed_text(uri.as_str()).await?;
        let params = json!({ "textDocument": { "uri": uri.as_str() } });
        let asked = self.ask("textDocument/diagnostic", &params, Some(&document), PULL_LIMIT);
        let report = asked.await.ok()?;
        let items = report["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let diagnostics = items.iter().filter_map(diagnostic).collect();
        Some(wire::EditorFileDiagnostics { uri: uri.clone(), version, diagnostics })
    }

    fn lock(&self) -> MutexGuard<'_, WrappedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file or document of a URI, the same for every spelling.
pub(crate) fn key(uri: &str) -> Target {
    Url::parse(uri).map_or_else(|_| Target::Untitled(uri.to_owned()), |uri| target(&uri))
}

fn extension(target: &Target) -> Option<String> {
    let path = match target {
        Target::File(path) => path.as_path(),
        Target::Untitled(uri) => Path::new(uri),
    };
    Some(path.extension()?.to_str()?.to_lowercase())
}

/// The text of a file that is small enough; `None` where it cannot be read.
async fn small_text(path: &Path) -> Option<String> {
    let size = tokio::fs::metadata(path).await.ok()?;
    if !size.is_file() || size.len() > MAX_FILE {
        return None;
    }
    tokio::fs::read_to_string(path).await.ok()
}

fn parse_list(list: &[u8]) -> Vec<Value> {
    serde_json::from_slice(list).unwrap_or_default()
}

/// A diagnostic of LSP for the agent; `None` where it has another form.
fn diagnostic(value: &Value) -> Option<wire::EditorDiagnostic> {
    let code = match &value["code"] {
        Value::String(code) => Some(code.clone()),
        Value::Number(code) => Some(code.to_string()),
        _ => None,
    };
    Some(wire::EditorDiagnostic {
        range: lsp_types::Range::deserialize(&value["range"]).ok()?,
        severity: value["severity"].as_u64().and_then(|severity| u8::try_from(severity).ok()),
        message: value["message"].as_str()?.to_owned(),
        source: value["source"].as_str().map(str::to_owned),
        code,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_published_is_found_under_every_spelling() {
        let (server, _messages) = WrappedServer::new(OsStr::new("/opt/pyright-langserver"));
        server.publish("file:///w/a%20b".to_owned(), Some(3), Bytes::from_static(b"[1]"));
        let known = server.published("file:///w/a b").unwrap();
        assert_eq!((known.version, known.list.as_ref()), (Some(3), b"[1]".as_slice()));
        assert_eq!((server.take_published().len(), server.published("file:///w/a b").is_none()), (1, true));
    }

    #[test]
    fn files_are_served_by_what_is_known_of_the_program_by_what_it_names_and_by_what_the_editor_has_opened() {
        let (server, _messages) = WrappedServer::new(OsStr::new("/opt/pyright-langserver"));
        let language = |uri: &str| server.language(&key(uri));
        assert_eq!(language("file:///w/a.py").as_deref(), Some("python"));
        assert_eq!(language("file:///w/a.word"), None);
        server.note_language(&key("file:///w/b.word"), "words");
        assert_eq!(language("file:///w/a.word").as_deref(), Some("words"));
        let named = [("word", "other"), ("mine", "my")];
        server.note_named(
            named.map(|(extension, language)| (extension.to_owned(), language.to_owned())).to_vec(),
        );
        assert_eq!(language("file:///w/a.word").as_deref(), Some("words"), "the editor knows it better");
        assert!(server.serves("mine") && server.serves("py") && !server.serves("rs"));
    }

    #[tokio::test(start_paused = true)]
    async fn code_actions_are_asked_for_with_the_diagnostics_of_their_lines() {
        let (server, _messages) = WrappedServer::new(OsStr::new("words"));
        let at = |line: u32| json!({ "start": { "line": line, "character": 0 }, "end": { "line": line, "character": 1 } });
        let list = json!([{ "range": at(1), "message": "in" }, { "range": at(4), "message": "out" }]);
        server.publish("file:///w/a".to_owned(), None, Bytes::from(list.to_string()));
        let mut params = json!({ "textDocument": { "uri": "file:///w/a" }, "range": at(1), "context": {} });
        server.add_diagnostics(&mut params);
        assert_eq!(params["context"]["diagnostics"], json!([{ "range": at(1), "message": "in" }]));
    }

    fn symbols() -> EditorRequest {
        let (method, limit) = ("workspace/symbol".to_owned(), Duration::from_secs(20));
        EditorRequest { method, parameters: json!({ "query": "a" }), limit, server: None }
    }

    async fn sent(messages: &mut mpsc::Receiver<WrappedMessage>) -> WrappedRequest {
        match messages.recv().await {
            Some(WrappedMessage::Request(request)) => request,
            other => panic!("{other:?} is no request"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_until_a_server_that_was_just_started_has_read_its_project() {
        let (server, mut messages) = WrappedServer::new(OsStr::new("words"));
        let report = |kind: &str| json!({ "token": 1, "value": { "kind": kind, "title": "Loading" } });
        server.work().take("$/progress", &report("begin"));
        assert_eq!(server.unfinished().as_deref(), Some("Loading"));
        let play = async {
            sleep(Duration::from_secs(5)).await;
            assert!(messages.try_recv().is_err(), "it is busy");
            server.work().take("$/progress", &report("end"));
            sent(&mut messages).await.answer.send(Ok(json!(1))).unwrap();
        };
        let (answers, ()) = tokio::join!(server.request(symbols(), "utf-8"), play);
        let [answer] = answers.unwrap().try_into().unwrap();
        assert_eq!((answer.result, answer.encoding.as_deref()), (json!(1), Some("utf-8")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_the_server_gives_up_is_sent_again_within_bounds() {
        let (server, mut messages) = WrappedServer::new(OsStr::new("words"));
        let play = async {
            for _ in 0..=RETRY_DELAYS.len() {
                sent(&mut messages).await.answer.send(Err(EditorFailure::Moved)).unwrap();
            }
        };
        let (answer, ()) = tokio::join!(server.request(symbols(), "utf-8"), play);
        assert_eq!(answer, Err(EditorFailure::Moved));
    }
}
