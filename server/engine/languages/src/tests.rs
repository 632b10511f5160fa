//! A server of ours behind the client: what it is sent, what it answers, and how it fails.
//!
//! Rule: the clock is paused, so that every limit is reached at once; the server is a function of the messages it gets.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream, duplex};

use crate::editor::NoEditorServers;
use crate::launch::{LaunchedProgram, Launcher};
use crate::running::IDLE_LIMIT;
use crate::service::{Instances, WorkspaceServers};
use crate::{uri, wire};
use kode_base::paths::{AbsPath, Target};
use kode_config::language_servers::LanguageServerDefinition;
use kode_config::policy::Policy;
use kode_config::settings::Declarations;
use kode_config::settings::declared::{Approval, Declaration};
use kode_permission::rules::{RuleSource, SettingsLayer};
use kode_process::shell::Secrets;
use kode_process::shell::error_output::ErrorOutput;
use kode_testing::text::Rig;
use kode_text::edit::{FileChange, TextEdit};
use kode_text::host::FileDiagnostics;
use kode_text::workspace::language::{
    DiagnosticsRequest, LanguageError, LanguageServers, PlaceKind, ServerStart, TextPosition, TriedFile,
};

/// The reaction of the server to a message.
enum Act {
    /// It answers a request.
    Answer(Value),
    /// It answers with an error of this code.
    Refuse(i64),
    /// It sends notifications, and answers a request with nothing.
    Notify(Vec<(&'static str, Value)>),
    /// It does nothing.
    Silence,
    /// It ends.
    End,
}

type Script = Arc<dyn Fn(&str, &Value) -> Act + Send + Sync>;

/// Starts servers that follow a script, and keeps what they are sent.
struct Scripted {
    script: Script,
    starts: AtomicUsize,
    received: Arc<Mutex<Vec<(String, Value)>>>,
}

#[async_trait::async_trait]
impl Launcher for Scripted {
    async fn launch(&self, _: &LanguageServerDefinition, _: &AbsPath) -> Result<LaunchedProgram, String> {
        self.starts.fetch_add(1, Ordering::SeqCst);
        let (input, server_input) = duplex(1 << 16);
        let (output, server_output) = duplex(1 << 16);
        let (script, received) = (Arc::clone(&self.script), Arc::clone(&self.received));
        tokio::spawn(serve(server_input, output, script, received));
        Ok(LaunchedProgram {
            input: Box::new(input),
            output: Box::new(server_output),
            errors: ErrorOutput::default(),
            process: None,
        })
    }
}

async fn serve(
    input: DuplexStream,
    mut output: DuplexStream,
    script: Script,
    received: Arc<Mutex<Vec<(String, Value)>>>,
) {
    let mut input = BufReader::new(input);
    while let Ok(Some(message)) = wire::read(&mut input).await {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        received.lock().push((method.clone(), message["params"].clone()));
        let mut sent = Vec::new();
        let id = message.get("id").filter(|id| !id.is_null());
        match script(&method, &message["params"]) {
            Act::Answer(result) => sent.extend(id.map(|id| json!({ "id": id, "result": result }))),
            Act::Refuse(code) => {
                let error = json!({ "code": code, "message": "not now" });
                sent.extend(id.map(|id| json!({ "id": id, "error": error })));
            }
            Act::Notify(messages) => {
                let messages = messages.into_iter();
                sent.extend(messages.map(|(method, params)| json!({ "method": method, "params": params })));
                sent.extend(id.map(|id| json!({ "id": id, "result": null })));
            }
            Act::Silence => {}
            Act::End => return,
        }
        for message in sent {
            if output.write_all(&wire::frame(&message)).await.is_err() {
                return;
            }
        }
    }
}

/// A workspace with one server.
struct Bench {
    rig: Rig,
    servers: Arc<WorkspaceServers>,
    launcher: Arc<Scripted>,
}

fn entry() -> Declaration {
    Declaration {
        name: "words".to_owned(),
        value: json!({ "command": "words", "extensionToLanguage": { ".word": "words" } }),
        source: RuleSource { layer: SettingsLayer::User, file: None, place: None },
        root: AbsPath::new("/").unwrap(),
        approval: Approval::NotNeeded,
        plugin: None,
    }
}

impl Bench {
    fn new(script: impl Fn(&str, &Value) -> Act + Send + Sync + 'static) -> Self {
        let rig = Rig::new();
        rig.write("a.word", "alpha\nbeta\n");
        let declared = Declarations { language_servers: vec![entry()], ..Declarations::default() };
        let policy = Arc::new(Policy { declared: Arc::new(declared), ..Policy::default() });
        let script: Script = Arc::new(script);
        let launcher = Arc::new(Scripted { script, starts: AtomicUsize::new(0), received: Arc::default() });
        let made = Arc::clone(&launcher);
        let servers = WorkspaceServers::new(
            Arc::new(Instances::default()),
            vec![rig.root().clone()],
            (Arc::new(policy), Secrets::default()),
            (Box::new(move |_, _| Arc::clone(&made) as Arc<dyn Launcher>), Arc::new(NoEditorServers)),
        );
        Self { rig, servers: Arc::new(servers), launcher }
    }

    fn target(&self) -> Target {
        Target::File(self.rig.root().join("a.word"))
    }

    async fn references(&self) -> Result<usize, LanguageError> {
        let workspace = self.rig.workspace();
        let file = workspace.text(&self.target()).await.unwrap();
        let at = TextPosition { file: &file, offset: 0 };
        self.servers.references(workspace, at).await.map(|answer| answer.value.len())
    }

    async fn diagnostics(&self) -> (bool, Vec<String>) {
        let targets = [self.target()];
        let limit = Duration::from_secs(2);
        let request = DiagnosticsRequest { targets: &targets, limit, start: ServerStart::All };
        let mut files = self.servers.diagnostics(self.rig.workspace(), request).await.unwrap();
        let file = files.remove(0);
        (file.is_outdated, file.diagnostics.into_iter().map(|one| one.message).collect())
    }

    fn received(&self, method: &str) -> Vec<Value> {
        let received = self.launcher.received.lock();
        received.iter().filter(|(known, _)| known == method).map(|(_, params)| params.clone()).collect()
    }

    fn starts(&self) -> usize {
        self.launcher.starts.load(Ordering::SeqCst)
    }
}

fn capabilities(more: Value) -> Value {
    let mut capabilities = json!({
        "positionEncoding": "utf-8", "referencesProvider": true, "definitionProvider": true, "renameProvider": true,
    });
    for (name, value) in more.as_object().unwrap() {
        capabilities[name] = value.clone();
    }
    json!({ "capabilities": capabilities })
}

/// The script of a server that does `act` and else what it should.
fn normal(act: impl Fn(&str, &Value) -> Option<Act>) -> impl Fn(&str, &Value) -> Act {
    move |method, parameters| {
        act(method, parameters).unwrap_or_else(|| match method {
            "initialize" => Act::Answer(capabilities(json!({}))),
            "exit" => Act::End,
            "textDocument/references" => Act::Answer(json!([])),
            _ => Act::Answer(Value::Null),
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_a_timeout_that_names_it() {
    let bench = Bench::new(normal(|method, _| (method == "textDocument/references").then_some(Act::Silence)));
    let error = bench.references().await.unwrap_err();
    assert_eq!(error.to_string(), "the language server words did not answer within 30 s");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let cancelled = bench.received("$/cancelRequest").len();
    assert_eq!((cancelled, bench.starts()), (1, 1), "it runs on, and is asked to stop");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_introduce_itself_is_not_waited_for_again_at_once() {
    let bench = Bench::new(|_, _| Act::Silence);
    let error = bench.references().await.unwrap_err().to_string();
    assert!(error.contains("did not answer within 30 s of its start"), "{error}");
    let began = tokio::time::Instant::now();
    assert_eq!(bench.references().await.unwrap_err().to_string(), error);
    assert_eq!((bench.starts(), began.elapsed()), (1, Duration::ZERO));
    tokio::time::advance(Duration::from_secs(61)).await;
    bench.references().await.unwrap_err();
    assert_eq!(bench.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_share_one_start() {
    let bench = Bench::new(normal(|_, _| None));
    let (one, other, third) = tokio::join!(bench.references(), bench.references(), bench.references());
    assert_eq!((one, other, third, bench.starts()), (Ok(0), Ok(0), Ok(0), 1));
    assert_eq!(bench.received("textDocument/didOpen").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_idle_server_is_ended_and_started_again_by_the_next_call() {
    let bench = Bench::new(normal(|_, _| None));
    bench.references().await.unwrap();
    tokio::time::sleep(IDLE_LIMIT / 2).await;
    bench.references().await.unwrap();
    tokio::time::sleep(IDLE_LIMIT / 2 + Duration::from_secs(1)).await;
    assert_eq!(bench.received("shutdown").len(), 0, "the last call was not long ago");
    tokio::time::sleep(IDLE_LIMIT).await;
    assert_eq!((bench.received("shutdown").len(), bench.received("exit").len()), (1, 1));
    bench.references().await.unwrap();
    assert_eq!(bench.starts(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_keeps_ending_is_given_up_for_a_while() {
    let bench = Bench::new(normal(|method, _| (method == "textDocument/references").then_some(Act::End)));
    for _ in 0..4 {
        let error = bench.references().await.unwrap_err().to_string();
        assert!(error.contains("it ended"), "{error}");
    }
    let error = bench.references().await.unwrap_err().to_string();
    assert!(error.contains("it ended 4 times within 10 minutes"), "{error}");
    tokio::time::sleep(Duration::from_secs(601)).await;
    bench.references().await.unwrap_err();
    assert_eq!(bench.starts(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_means_again_is_asked_for_again() {
    let asked = AtomicUsize::new(0);
    let bench = Bench::new(normal(move |method, _| {
        let is_early = method == "textDocument/references" && asked.fetch_add(1, Ordering::SeqCst) < 2;
        is_early.then_some(Act::Refuse(-32801))
    }));
    assert_eq!(bench.references().await, Ok(0));
    assert_eq!(bench.received("textDocument/references").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn texts_are_sent_when_a_request_needs_them_and_as_the_user_sees_them() {
    let bench = Bench::new(normal(|_, _| None));
    bench.rig.open("a.word", "unsaved\n");
    bench.rig.write("b.word", "closed\n");
    bench.rig.open("c.other", "of no language\n");
    bench.references().await.unwrap();
    let opened = bench.received("textDocument/didOpen");
    assert_eq!(opened.len(), 1);
    assert_eq!(opened[0]["textDocument"]["text"], "unsaved\n");
    assert_eq!(opened[0]["textDocument"]["uri"], uri::of_target(&bench.target()));
    bench.rig.type_text("a.word", "typed\n");
    assert_eq!(bench.received("textDocument/didChange").len(), 0, "typing costs no message");
    bench.references().await.unwrap();
    bench.references().await.unwrap();
    let changed = bench.received("textDocument/didChange");
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0]["contentChanges"][0]["text"], "typed\n");
    // A closed document is what the disk has.
    bench.rig.close("a.word");
    bench.references().await.unwrap();
    let changed = bench.received("textDocument/didChange");
    assert_eq!(changed[1]["contentChanges"][0]["text"], "alpha\nbeta\n");
}

#[tokio::test(start_paused = true)]
async fn edits_of_a_version_that_moved_are_asked_for_once_more_and_then_refused() {
    let bench = Bench::new(normal(|method, parameters| {
        (method == "textDocument/rename").then(|| {
            let document = json!({ "uri": parameters["textDocument"]["uri"], "version": 99 });
            Act::Answer(json!({ "documentChanges": [{ "textDocument": document, "edits": [] }] }))
        })
    }));
    let workspace = bench.rig.workspace();
    let file = workspace.text(&bench.target()).await.unwrap();
    let at = TextPosition { file: &file, offset: 0 };
    let error = bench.servers.rename(workspace, at, "omega").await.unwrap_err();
    assert_eq!(error, LanguageError::Moved("a.word".to_owned(), "words".to_owned()));
    assert_eq!(bench.received("textDocument/rename").len(), 2);
    // A position of another text is invalid.
    bench.rig.open("a.word", "other\n");
    let error = bench.servers.rename(workspace, at, "omega").await.unwrap_err();
    assert!(matches!(error, LanguageError::Moved(..)), "{error}");
    assert_eq!(bench.received("textDocument/rename").len(), 2);
}

/// The notification of these diagnostics.
fn published(parameters: &Value, version: Option<i64>, message: &str) -> (&'static str, Value) {
    let zero = json!({ "line": 0, "character": 0 });
    let diagnostic = json!({ "range": { "start": zero, "end": zero }, "severity": 1, "message": message });
    let parameters = json!({
        "uri": parameters["textDocument"]["uri"], "version": version, "diagnostics": [diagnostic],
    });
    ("textDocument/publishDiagnostics", parameters)
}

#[tokio::test(start_paused = true)]
async fn diagnostics_of_an_older_text_are_not_taken_for_those_of_the_new_one() {
    let bench = Bench::new(normal(|method, parameters| match method {
        "textDocument/didOpen" => Some(Act::Notify(vec![published(parameters, Some(1), "first")])),
        // It is slow: it still works on the text before.
        "textDocument/didChange" => Some(Act::Notify(vec![published(parameters, Some(1), "late")])),
        _ => None,
    }));
    assert_eq!(bench.diagnostics().await, (false, vec!["first".to_owned()]));
    bench.rig.write("a.word", "other\n");
    let began = tokio::time::Instant::now();
    assert_eq!(bench.diagnostics().await, (true, vec!["late".to_owned()]));
    assert_eq!(began.elapsed(), Duration::from_secs(2), "it was waited for until the limit");
}

#[tokio::test(start_paused = true)]
async fn diagnostics_without_a_version_are_complete_when_no_more_come() {
    let bench = Bench::new(normal(|method, parameters| {
        (method == "textDocument/didOpen").then(|| {
            Act::Notify(vec![published(parameters, None, "syntax"), published(parameters, None, "meaning")])
        })
    }));
    assert_eq!(bench.diagnostics().await, (false, vec!["meaning".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn diagnostics_are_pulled_where_the_server_offers_it() {
    let bench = Bench::new(normal(|method, _| match method {
        "initialize" => Some(Act::Answer(capabilities(json!({ "diagnosticProvider": {} })))),
        "textDocument/diagnostic" => {
            let zero = json!({ "line": 1, "character": 0 });
            let item = json!({ "range": { "start": zero, "end": zero }, "message": "pulled" });
            Some(Act::Answer(json!({ "kind": "full", "items": [item] })))
        }
        _ => None,
    }));
    assert_eq!(bench.diagnostics().await, (false, vec!["pulled".to_owned()]));
}

impl Bench {
    /// The messages of diagnostics before and after a proposed text.
    async fn try_text(&self, text: &str) -> Option<(Vec<String>, Vec<String>)> {
        let base = self.rig.workspace().text(&self.target()).await.unwrap();
        let edits = vec![TextEdit { range: 0..base.text.len(), new_text: text.to_owned() }];
        let file = FileChange { target: self.target(), base: Some(base), edits };
        let limit = Duration::from_millis(500);
        let mut tried = self.servers.try_changes(self.rig.workspace(), &[file], limit).await?;
        let messages =
            |file: FileDiagnostics| file.diagnostics.into_iter().map(|one| one.message).collect::<Vec<_>>();
        let TriedFile { before, after } = tried.remove(0);
        Some((messages(before), messages(after)))
    }

    /// The texts that the server was given after the first.
    fn changed_texts(&self) -> Vec<String> {
        let changed = self.received("textDocument/didChange");
        changed.iter().map(|one| one["contentChanges"][0]["text"].as_str().unwrap().to_owned()).collect()
    }
}

/// The script of a server that publishes the text itself as its only diagnostic, and is silent about one that begins with `slow`.
fn echo(method: &str, parameters: &Value) -> Option<Act> {
    let document = &parameters["textDocument"];
    let text = match method {
        "textDocument/didOpen" => &document["text"],
        "textDocument/didChange" => &parameters["contentChanges"][0]["text"],
        _ => return None,
    };
    let text = text.as_str().unwrap();
    let version = document["version"].as_i64();
    Some(match text.starts_with("slow") {
        true => Act::Silence,
        false => Act::Notify(vec![published(parameters, version, text)]),
    })
}

#[tokio::test(start_paused = true)]
async fn a_trial_leaves_the_server_with_the_text_of_the_user() {
    let bench = Bench::new(normal(echo));
    assert_eq!(bench.try_text("new").await, None);
    assert_eq!(bench.starts(), 0, "no server is started for it");
    bench.references().await.unwrap();
    let text = "alpha\nbeta\n".to_owned();
    assert_eq!(bench.try_text("new").await, Some((vec![text.clone()], vec!["new".to_owned()])));
    assert_eq!(bench.changed_texts(), ["new", &text]);
    assert_eq!(bench.diagnostics().await, (false, vec![text]));
}

#[tokio::test(start_paused = true)]
async fn a_trial_ends_at_its_limit_and_when_the_user_types() {
    let bench = Bench::new(normal(echo));
    bench.rig.open("a.word", "first");
    bench.references().await.unwrap();
    let began = tokio::time::Instant::now();
    assert_eq!(bench.try_text("slow").await, None);
    assert_eq!(began.elapsed(), Duration::from_millis(500));
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(bench.changed_texts(), ["slow", "first"]);
    let began = tokio::time::Instant::now();
    let typing = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        bench.rig.type_text("a.word", "typed");
    };
    let (tried, ()) = tokio::join!(bench.try_text("slow again"), typing);
    assert_eq!(tried, None);
    assert!(began.elapsed() < Duration::from_millis(200), "{:?}", began.elapsed());
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(bench.changed_texts()[2..], ["slow again", "first"]);
    assert_eq!(bench.diagnostics().await, (false, vec!["typed".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_capability_that_is_missing_costs_no_request() {
    let bench = Bench::new(normal(|_, _| None));
    let workspace = bench.rig.workspace();
    let file = workspace.text(&bench.target()).await.unwrap();
    let at = TextPosition { file: &file, offset: 0 };
    let error = bench.servers.places(workspace, at, PlaceKind::Implementation).await.unwrap_err();
    assert_eq!(error.to_string(), "the language server words does not support implementations");
    assert_eq!(bench.received("textDocument/implementation").len(), 0);
}
