//! The relay between an editor and a server that tests play, with the real agent.
//!
//! Rule: tests talk frames at both ends and wait for messages; time limits use a paused clock.

use std::ffi::OsString;
use std::sync::mpsc;

use kode_engine::process::shell::served::ServiceEnd;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;

use super::child::{ChildLauncher, LaunchedChild};
use super::serve;
use crate::testing::frame;
use crate::transport::ServeEnd;
use crate::transport::frame::FrameReader;

/// Room for messages on their way, each direction.
const ROOM: usize = 1 << 20;

/// One end of a connection, played by a test.
struct End {
    output: DuplexStream,
    input: FrameReader<DuplexStream>,
}

impl End {
    async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.send_text(&message.to_string()).await;
    }

    async fn send_text(&mut self, text: &str) {
        self.output.write_all(&frame(text.as_bytes())).await.unwrap();
    }

    async fn receive_text(&mut self) -> String {
        let body = self.input.next().await.unwrap().expect("the connection was closed").unwrap();
        String::from_utf8(body.to_vec()).unwrap()
    }

    async fn receive(&mut self) -> Value {
        serde_json::from_str(&self.receive_text().await).unwrap()
    }

    /// The next message with this method.
    async fn expect(&mut self, method: &str) -> Value {
        loop {
            let message = self.receive().await;
            if message["method"] == method {
                return message;
            }
        }
    }

    /// The next answer to a request with this id.
    async fn answer(&mut self, id: i64) -> Value {
        loop {
            let message = self.receive().await;
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }
}

struct Rig {
    editor: End,
    launched: mpsc::Receiver<End>,
    serving: JoinHandle<ServeEnd>,
}

fn wire() -> (End, DuplexStream, DuplexStream) {
    let (output, other_input) = duplex(ROOM);
    let (other_output, input) = duplex(ROOM);
    (End { output, input: FrameReader::new(input) }, other_input, other_output)
}

impl Rig {
    fn start() -> Self {
        let (sender, launched) = mpsc::channel();
        Self::start_with(
            Box::new(move || {
                let (end, input, output) = wire();
                drop(sender.send(end));
                Ok(LaunchedChild { input: Box::new(output), output: Box::new(input), process: None })
            }),
            launched,
        )
    }

    fn start_with(launch: ChildLauncher, launched: mpsc::Receiver<End>) -> Self {
        let (editor, input, output) = wire();
        let serving =
            tokio::spawn(
                async move { serve((input, output), &OsString::from("words-server"), launch).await },
            );
        Self { editor, launched, serving }
    }

    /// Sends `initialize`, and returns the end of the server that was started for it, which has received it.
    async fn ask_to_initialize(&mut self, capabilities: Value) -> (End, Value) {
        let params = json!({ "processId": null, "capabilities": capabilities });
        self.editor.send(json!({ "id": 0, "method": "initialize", "params": params })).await;
        let mut server = self.server().await;
        let request = server.receive().await;
        (server, request)
    }

    async fn server(&mut self) -> End {
        loop {
            match self.launched.try_recv() {
                Ok(end) => return end,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    }

    /// The whole handshake with a server that has these capabilities.
    async fn initialize(&mut self, offered: Value) -> End {
        let (mut server, request) = self.ask_to_initialize(json!({})).await;
        server.send(json!({ "id": request["id"], "result": { "capabilities": offered } })).await;
        self.editor.answer(0).await;
        self.editor.send(json!({ "method": "initialized", "params": {} })).await;
        assert_eq!(server.receive().await["method"], "initialized");
        server
    }

    async fn ask(&mut self, id: i64, method: &str, params: Value) {
        self.editor.send(json!({ "id": id, "method": method, "params": params })).await;
    }
}

fn document(text: &str) -> Value {
    json!({ "method": "textDocument/didOpen", "params": { "textDocument": {
        "uri": "file:///w/a.word", "languageId": "words", "version": 1, "text": text,
    } } })
}

fn place() -> Value {
    json!({ "textDocument": { "uri": "file:///w/a.word" }, "position": { "line": 0, "character": 0 } })
}

#[tokio::test]
async fn the_encoding_of_the_server_holds_for_both() {
    let mut rig = Rig::start();
    let general = json!({ "general": { "positionEncodings": ["utf-8", "utf-16"] } });
    let (mut server, request) = rig.ask_to_initialize(general.clone()).await;
    let sent = &request["params"]["capabilities"];
    assert_eq!(sent["general"], general["general"], "the server gets what the editor sent");
    let offered = json!({ "capabilities": { "definitionProvider": true } });
    server.send(json!({ "id": request["id"], "result": offered })).await;
    let answer = rig.editor.answer(0).await;
    let capabilities = &answer["result"]["capabilities"];
    assert_eq!(capabilities["positionEncoding"], "utf-16");
    assert_eq!(capabilities["definitionProvider"], true);
    assert_eq!(capabilities["experimental"]["kode"]["protocolVersion"], 1);
}

#[tokio::test]
async fn a_request_passes_unchanged_but_for_its_id_and_so_does_its_answer() {
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({ "definitionProvider": true })).await;
    rig.editor.send_text(r#"{ "params" :{"x": 1.50, "s":"\ud83d"}, "id":"a" , "method":"textDocument/definition","jsonrpc":"2.0"}"#).await;
    let got = server.receive_text().await;
    let id = serde_json::from_str::<Value>(&got.replace(r"\ud83d", "")).unwrap()["id"].clone();
    assert_eq!(
        got,
        format!(
            r#"{{ "params" :{{"x": 1.50, "s":"\ud83d"}}, "id":{id} , "method":"textDocument/definition","jsonrpc":"2.0"}}"#
        )
    );
    server.send_text(&format!(r#"{{"jsonrpc":"2.0","result":[ 1e3 ],"id": {id}}}"#)).await;
    assert_eq!(rig.editor.receive_text().await, r#"{"jsonrpc":"2.0","result":[ 1e3 ],"id": "a"}"#);
}

#[tokio::test]
async fn requests_of_both_servers_reach_the_editor_under_different_ids() {
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({})).await;
    server.send(json!({ "id": 1, "method": "workspace/configuration", "params": { "items": [] } })).await;
    let asked = rig.editor.expect("workspace/configuration").await;
    server.send(json!({ "method": "$/cancelRequest", "params": { "id": 1 } })).await;
    assert_eq!(rig.editor.expect("$/cancelRequest").await["params"]["id"], asked["id"]);
    rig.editor.send(json!({ "id": asked["id"], "result": ["x"] })).await;
    let answer = server.receive().await;
    assert_eq!((&answer["id"], &answer["result"]), (&json!(1), &json!(["x"])));
}

#[tokio::test]
async fn progress_is_known_to_the_agent_and_not_shown_by_an_editor_that_has_none() {
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({})).await;
    server
        .send(json!({ "id": 5, "method": "window/workDoneProgress/create", "params": { "token": "t" } }))
        .await;
    let answer = server.receive().await;
    assert_eq!((&answer["id"], &answer["result"]), (&json!(5), &Value::Null));
    for kind in ["begin", "report", "end"] {
        let value = json!({ "kind": kind, "title": "Loading" });
        server.send(json!({ "method": "$/progress", "params": { "token": "t", "value": value } })).await;
    }
    // Results in pieces are asked for by the editor.
    server.send(json!({ "method": "$/progress", "params": { "token": "p", "value": [1] } })).await;
    assert_eq!(rig.editor.receive().await["params"], json!({ "token": "p", "value": [1] }));
}

#[tokio::test]
async fn a_cancelled_request_is_cancelled_at_the_server_under_its_id() {
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({ "definitionProvider": true })).await;
    rig.ask(7, "textDocument/definition", place()).await;
    let asked = server.receive().await;
    rig.editor.send(json!({ "method": "$/cancelRequest", "params": { "id": 7 } })).await;
    let cancelled = server.receive().await;
    assert_eq!((&cancelled["method"], &cancelled["params"]["id"]), (&json!("$/cancelRequest"), &asked["id"]));
}

#[tokio::test]
async fn commands_and_methods_of_the_agent_go_to_the_agent_and_all_others_to_the_server() {
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({ "executeCommandProvider": { "commands": ["theirs"] } })).await;
    rig.ask(1, "workspace/executeCommand", json!({ "command": "theirs", "arguments": [] })).await;
    assert_eq!(server.receive().await["params"]["command"], "theirs");
    rig.ask(2, "workspace/executeCommand", json!({ "command": "kode.setMode", "arguments": [] })).await;
    assert!(rig.editor.answer(2).await["error"].is_object(), "it wants a mode");
    rig.ask(3, "agent/session/new", json!({ "mode": 7 })).await;
    assert_eq!(rig.editor.answer(3).await["error"]["code"], -32602);
}

#[tokio::test]
async fn an_answer_of_the_server_alone_passes_as_it_is() {
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({ "textDocumentSync": 1, "hoverProvider": true })).await;
    rig.editor.send(document("alpha")).await;
    assert_eq!(server.receive().await["method"], "textDocument/didOpen");
    rig.ask(1, "textDocument/hover", place()).await;
    let id = server.receive().await["id"].clone();
    server.send_text(&format!(r#"{{"id":{id}, "result": {{"contents":"a" }} }}"#)).await;
    assert_eq!(rig.editor.receive_text().await, r#"{"id":1, "result": {"contents":"a" } }"#);
}

#[tokio::test]
async fn where_the_server_has_no_provider_the_agent_answers_alone() {
    let mut rig = Rig::start();
    let _server = rig.initialize(json!({})).await;
    rig.ask(1, "textDocument/codeLens", json!({ "textDocument": { "uri": "file:///w/a.word" } })).await;
    assert_eq!(rig.editor.answer(1).await["result"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_initialize_is_left_and_the_agent_serves() {
    let mut rig = Rig::start();
    let (_server, _) = rig.ask_to_initialize(json!({})).await;
    let answer = rig.editor.answer(0).await;
    assert_eq!(answer["result"]["serverInfo"]["name"], "kode-ls");
    rig.editor.send(json!({ "method": "initialized", "params": {} })).await;
    let text = rig.editor.expect("window/showMessage").await["params"]["message"].to_string();
    assert!(text.contains("words-server: it did not answer `initialize` within 15 s"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_started_is_reported_and_the_agent_serves() {
    let (_sender, launched) = mpsc::channel();
    let launch: ChildLauncher = Box::new(|| Err(ServiceEnd::NotFound("no such file".to_owned())));
    let mut rig = Rig::start_with(launch, launched);
    rig.ask(0, "initialize", json!({ "capabilities": {} })).await;
    assert!(rig.editor.answer(0).await["result"]["capabilities"]["codeActionProvider"].is_object());
    rig.editor.send(json!({ "method": "initialized", "params": {} })).await;
    let text = rig.editor.expect("window/showMessage").await["params"]["message"].to_string();
    assert!(text.contains("could not be started: no such file"), "{text}");
    rig.ask(1, "textDocument/definition", place()).await;
    let error = rig.editor.answer(1).await["error"]["message"].to_string();
    assert!(error.contains("restart the language server"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_agent_is_not_kept_waiting_by_a_server_that_hangs() {
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({ "textDocumentSync": 2, "codeActionProvider": true })).await;
    rig.editor.send(document("alpha")).await;
    server.receive().await;
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 5 } });
    let action = json!({ "textDocument": { "uri": "file:///w/a.word" }, "range": range, "context": { "diagnostics": [] } });
    rig.ask(1, "textDocument/codeAction", action).await;
    let asked = server.receive().await;
    // The agent has actions here, and the server never answers.
    let actions = rig.editor.answer(1).await["result"].clone();
    assert!(actions.as_array().is_some_and(|actions| !actions.is_empty()), "{actions}");
    assert_eq!(server.receive().await["params"]["id"], asked["id"], "it is asked to stop");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ended_is_started_again_with_the_texts_that_the_editor_shows() {
    let mut rig = Rig::start();
    let offered = json!({ "textDocumentSync": 2, "definitionProvider": true });
    let mut server = rig.initialize(offered.clone()).await;
    rig.editor.send(document("alpha")).await;
    let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 0 } });
    let change = json!({ "textDocument": { "uri": "file:///w/a.word", "version": 2 },
        "contentChanges": [{ "range": range, "text": "new " }] });
    rig.editor.send(json!({ "method": "textDocument/didChange", "params": change })).await;
    server.receive().await;
    server.receive().await;
    let published = json!({ "uri": "file:///w/a.word", "diagnostics": [{ "message": "old" }] });
    server.send(json!({ "method": "textDocument/publishDiagnostics", "params": published })).await;
    rig.editor.expect("textDocument/publishDiagnostics").await;
    server
        .send(json!({ "id": 9, "method": "client/registerCapability",
        "params": { "registrations": [{ "id": "w", "method": "workspace/didChangeWatchedFiles" }] } }))
        .await;
    rig.editor.expect("client/registerCapability").await;
    rig.ask(1, "textDocument/definition", place()).await;
    server.receive().await;
    drop(server);
    let error = rig.editor.answer(1).await["error"]["message"].to_string();
    assert!(error.contains("words-server: it ended"), "{error}");
    let cleared = rig.editor.expect("textDocument/publishDiagnostics").await;
    assert_eq!(cleared["params"]["diagnostics"], json!([]));
    let taken_back = rig.editor.expect("client/unregisterCapability").await;
    assert_eq!(taken_back["params"]["unregisterations"][0]["id"], "w");
    let text = rig.editor.expect("window/showMessage").await["params"]["message"].to_string();
    assert!(text.contains("It is started again"), "{text}");
    let mut server = rig.server().await;
    let request = server.receive().await;
    assert_eq!(request["method"], "initialize");
    server.send(json!({ "id": request["id"], "result": { "capabilities": offered } })).await;
    assert_eq!(server.receive().await["method"], "initialized");
    let opened = server.receive().await["params"]["textDocument"].clone();
    assert_eq!((&opened["text"], &opened["version"]), (&json!("new alpha"), &json!(2)));
    assert_eq!(opened["languageId"], "words");
    rig.ask(2, "textDocument/definition", place()).await;
    let id = server.receive().await["id"].clone();
    server.send(json!({ "id": id, "result": 1 })).await;
    assert_eq!(rig.editor.answer(2).await["result"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ends_again_and_again_is_left_after_three_restarts() {
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({})).await;
    for _ in 0..super::restart::MAX_RESTARTS {
        drop(server);
        server = rig.server().await;
        let request = server.receive().await;
        server.send(json!({ "id": request["id"], "result": { "capabilities": {} } })).await;
        server.expect("initialized").await;
    }
    drop(server);
    let text = loop {
        let text = rig.editor.expect("window/showMessage").await["params"]["message"].to_string();
        if !text.contains("It is started again and") {
            break text;
        }
    };
    assert!(text.contains("was started again 3 times"), "{text}");
    rig.ask(1, "agent/commands/list", json!({ "sessionId": "none" })).await;
    assert!(rig.editor.answer(1).await["error"].is_object(), "the agent goes on");
}

#[tokio::test]
async fn shutdown_is_answered_when_both_are_done_and_exit_ends_both() {
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({})).await;
    rig.ask(1, "shutdown", Value::Null).await;
    let asked = server.receive().await;
    assert_eq!(asked["method"], "shutdown");
    server.send(json!({ "id": asked["id"], "result": null })).await;
    assert_eq!(rig.editor.answer(1).await["result"], Value::Null);
    rig.editor.send(json!({ "method": "exit" })).await;
    assert_eq!(server.receive().await["method"], "exit");
    assert_eq!(rig.serving.await.unwrap(), ServeEnd::Orderly);
}

#[tokio::test]
async fn the_end_of_the_editor_is_the_end_of_the_server() {
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({})).await;
    drop(rig.editor);
    assert!(server.input.next().await.unwrap().is_none(), "its input ends");
    assert_eq!(rig.serving.await.unwrap(), ServeEnd::Abrupt);
}

#[tokio::test]
async fn a_hundred_thousand_messages_pass_byte_for_byte() {
    const MESSAGES: usize = 100_000;
    let mut rig = Rig::start();
    let mut server = rig.initialize(json!({ "definitionProvider": true })).await;
    let text = |number: usize, id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0" ,"id":{id},"method":"textDocument/definition","params":{{"n":{number},"f":1.0e2}}}}"#
        )
    };
    let Rig { mut editor, .. } = rig;
    let End { mut output, mut input } = std::mem::replace(&mut editor, wire().0);
    let writing = tokio::spawn(async move {
        for number in 0..MESSAGES {
            let body = text(number, &format!("\"e{number}\""));
            output.write_all(&frame(body.as_bytes())).await.unwrap();
        }
        output
    });
    let serving = tokio::spawn(async move {
        for number in 0..MESSAGES {
            let got = server.receive_text().await;
            let id = serde_json::from_str::<Value>(&got).unwrap()["id"].to_string();
            assert_eq!(got, text(number, &id));
            server.send_text(&format!(r#"{{ "id":{id}, "jsonrpc":"2.0","result":[{number} ]}}"#)).await;
        }
        server
    });
    for number in 0..MESSAGES {
        let body = input.next().await.unwrap().unwrap().unwrap();
        assert_eq!(
            body,
            format!(r#"{{ "id":"e{number}", "jsonrpc":"2.0","result":[{number} ]}}"#).as_bytes()
        );
    }
    writing.await.unwrap();
    serving.await.unwrap();
}
