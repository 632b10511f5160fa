//! Pages that servers ask the user to open, in an editor with a panel, in one without, and without a user to ask.
//!
//! Rule: the browser's part is played by the test, which asks the page of the server and so has it report that it is done.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use kode_e2e::{Client, Offer, Project, Reply, Script, Session, call, say};
use serde_json::{Value, json};

use super::{faulty, program, user_home};

/// Opens a page of the faulty server, as a browser would.
pub(crate) fn visit(address: &str) {
    let url = url::Url::parse(address).unwrap();
    let mut stream = TcpStream::connect((url.host_str().unwrap(), url.port().unwrap())).unwrap();
    write!(stream, "GET /pay HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.ends_with("Paid"), "{said}");
}

/// A project whose model calls this tool, and the log of its server.
fn project(tool: &str, input: Value) -> Project {
    Project::new(&Script::new([call(&format!("mcp__fault__{tool}"), input), say("Done.")]))
}

fn entry(log: &Path) -> Value {
    let mut entry = program(&faulty(), &[""]);
    entry["env"] = json!({ "FAULT_LOG": log });
    entry
}

fn settings(project: &Project) -> String {
    let home = user_home(project);
    std::fs::create_dir_all(home.join(".kode-ls")).unwrap();
    let log = project.outside().join("fault.log");
    let settings = json!({
        "mcpServers": { "fault": entry(&log) }, "sandbox": { "enabled": false },
        "permissions": { "allow": ["mcp__fault"] },
    });
    std::fs::write(home.join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    home.to_str().unwrap().to_owned()
}

fn open(project: &Project, offer: &Offer) -> Client {
    let home = settings(project);
    let client = project.start_as(&[], &[("KODE_LS_MCP_WAIT", "30000"), ("HOME", &home)]);
    client.initialize(offer.params(&project.workspace()));
    client
}

/// An editor with a panel that opens pages.
fn with_pages() -> Offer {
    Offer::kode().with("/window/showDocument/support", json!(true))
}

fn question(session: &Session<'_>) -> Value {
    session.wait_event("the question", |event| event["type"] == "question_asked")["question"].clone()
}

fn respond(session: &Session<'_>, question: &Value, label: &str) {
    let answers = json!([{ "labels": [label] }]);
    session
        .call("agent/question/respond", json!({ "questionId": question["questionId"], "answers": answers }));
}

fn lines(question: &Value) -> Vec<String> {
    question["questions"][0]["question"].as_str().unwrap().lines().map(str::to_owned).collect()
}

/// The files below a folder that have this text in them.
pub(crate) fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let found = |path: PathBuf| match path.is_dir() {
        true => files_with(&path, text),
        false => {
            let read = std::fs::read(&path).unwrap_or_default();
            String::from_utf8_lossy(&read).contains(text).then_some(path).into_iter().collect()
        }
    };
    entries.flat_map(|entry| found(entry.path())).collect()
}

fn shown_documents(client: &Client) -> Vec<Value> {
    client.look(|received| received.of("window/showDocument").cloned().collect())
}

fn last_result(project: &Project) -> (String, bool) {
    let [result] = project.model.last_results().try_into().unwrap();
    result
}

#[test]
fn a_page_is_opened_by_the_editor_after_a_yes_to_its_whole_address() {
    let project = project("page", json!({}));
    let client = open(&project, &with_pages());
    client.on_request("window/showDocument", |_, _| Reply::Result(json!({ "success": true })));
    let session = client.session();
    let turn = session.prompt("go");
    let asked = question(&session);
    let [why, address, host, message] = <[String; 4]>::try_from(lines(&asked)).unwrap();
    let address = address.strip_prefix("Address: ").unwrap();
    assert!(address.starts_with("http://127.0.0.1:") && address.ends_with("/pay?id=page-1"), "{address}");
    assert_eq!(
        (why.as_str(), host.as_str(), message.as_str()),
        ("The MCP server `fault` asks you to open a page.", "Host: 127.0.0.1", "Message: Pay the toll.")
    );
    assert_eq!(shown_documents(&client), Vec::<Value>::new());
    respond(&session, &asked, "Open the page");
    session.wait_done(&turn);
    assert_eq!(last_result(&project), (r#"{"action":"accept"}"#.to_owned(), false));
    let shown = client.wait_for("the page", |received| received.of("window/showDocument").next().cloned());
    let params = &shown["params"];
    assert_eq!((&params["uri"], &params["external"]), (&json!(address), &json!(true)));
    client.shut_down();
    assert_eq!(files_with(&project.home(), "/pay?id="), Vec::<PathBuf>::new());
}

#[test]
fn a_no_opens_nothing_and_other_addresses_are_not_asked_about() {
    let project = project("page", json!({}));
    let client = open(&project, &with_pages());
    let session = client.session();
    let turn = session.prompt("go");
    respond(&session, &question(&session), "Do not open it");
    session.wait_done(&turn);
    assert_eq!(last_result(&project).0, r#"{"action":"decline"}"#);
    assert_eq!(shown_documents(&client), Vec::<Value>::new());

    let project = self::project("page", json!({ "url": "file:///etc/passwd" }));
    let client = open(&project, &with_pages());
    let session = client.session();
    session.run("go");
    assert_eq!(last_result(&project).0, r#"{"action":"decline"}"#);
    assert!(session.events().iter().all(|event| event["type"] != "question_asked"));
}

#[test]
fn an_editor_without_a_panel_asks_by_a_message_and_shows_the_address_it_cannot_open() {
    let project = project("page", json!({ "url": "https://bank.example@evil.example/\u{202e}x" }));
    let client = open(&project, &Offer::plain());
    client.on_request("window/showMessageRequest", |_, request| {
        let text = request["params"]["message"].as_str().unwrap();
        assert!(
            text.contains("Address: https://bank.example@evil.example/\\u{202e}x Host: evil.example"),
            "{text}"
        );
        Reply::Result(json!({ "title": "Open the page" }))
    });
    client
        .call("workspace/executeCommand", json!({ "command": "kode.ask", "arguments": [{ "text": "go" }] }));
    let message = client.wait_for("the address", |received| {
        received
            .of("window/showMessage")
            .find(|message| message["params"]["message"].as_str().unwrap().starts_with("Open this page"))
            .cloned()
    });
    let text = "Open this page in a browser: https://bank.example@evil.example/%E2%80%AEx";
    assert_eq!(message["params"]["message"], text);
}

#[test]
fn a_call_that_needs_a_page_first_is_made_again_when_the_server_reports_that_it_is_done() {
    let project = project("toll", json!({}));
    let client = open(&project, &with_pages());
    client.on_request("window/showDocument", |_, request| {
        let address = request["params"]["uri"].as_str().unwrap().to_owned();
        std::thread::spawn(move || visit(&address));
        Reply::Result(json!({ "success": true }))
    });
    let session = client.session();
    let turn = session.prompt("go");
    respond(&session, &question(&session), "Open the page");
    session.wait_done(&turn);
    assert_eq!(last_result(&project), ("the toll is paid".to_owned(), false));
}

#[test]
fn a_call_whose_server_reports_nothing_is_made_again_when_the_user_says_so() {
    let project = project("toll", json!({}));
    let client = open(&project, &with_pages());
    client.on_request("window/showDocument", |_, _| Reply::Result(json!({ "success": true })));
    let session = client.session();
    let turn = session.prompt("go");
    respond(&session, &question(&session), "Open the page");
    let second = session.wait_event("the second question", |event| {
        event["type"] == "question_asked" && lines(&event["question"])[0].starts_with("Have you finished")
    });
    respond(&session, &second["question"], "I have finished");
    session.wait_done(&turn);
    assert_eq!(last_result(&project).0, "the toll is paid");
}

#[test]
fn a_refused_page_fails_the_call_and_a_cancel_ends_the_wait() {
    let project = project("toll", json!({}));
    let client = open(&project, &with_pages());
    let session = client.session();
    let turn = session.prompt("go");
    respond(&session, &question(&session), "Do not open it");
    session.wait_done(&turn);
    let (text, is_error) = last_result(&project);
    assert!(is_error && text.contains("and the user did not open it"), "{text}");

    let project = self::project("toll", json!({}));
    let client = open(&project, &with_pages());
    let session = client.session();
    let turn = session.prompt("go");
    question(&session);
    session.call("agent/turn/cancel", json!({}));
    assert_eq!(session.wait_done(&turn)["stopReason"], "cancelled");
    assert_eq!(session.snapshot()["questions"], json!([]));
}

#[test]
fn pages_are_announced_only_where_a_user_can_be_asked() {
    let announced = |project: &Project| {
        let log = std::fs::read_to_string(project.outside().join("fault.log")).unwrap();
        let line = log.lines().find_map(|line| line.strip_prefix("elicitation ")).unwrap_or_default();
        serde_json::from_str::<Value>(line).unwrap()
    };
    let project = project("echo", json!({ "text": "hello" }));
    let client = open(&project, &with_pages());
    client.session().run("go");
    assert_eq!(announced(&project)["url"], json!({}));

    let project = self::project("echo", json!({ "text": "hello" }));
    let home = settings(&project);
    let ran = project.run_as(&["run", "go"], "", &[("KODE_LS_MCP_WAIT", "30000"), ("HOME", &home)]);
    assert!(ran.stdout.contains("Done."), "{ran:?}");
    assert_eq!(announced(&project)["url"], Value::Null);
    assert!(announced(&project)["form"].is_object());
}
