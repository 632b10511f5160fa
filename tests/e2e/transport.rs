//! The connection: malformed input, wrong requests, the ends of a server, and the clients there are.

use kode_e2e::{Client, Encoding, Offer, Project, Script, call, frame, say};
use serde_json::{Value, json};

fn project() -> Project {
    Project::new(&Script::new([say("Hello.")]))
}

/// A document over the limit of messages, as far as a server reads it.
fn document_over_the_limit(method: &str, uri: &str) -> Vec<u8> {
    let document = json!({ "uri": uri, "languageId": "plaintext", "version": 2 });
    let params = json!({ "textDocument": document, "contentChanges": [] });
    let body = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    format!("Content-Length: {}\r\n\r\n{body}\r\n", 300 << 20).into_bytes()
}

#[test]
fn a_file_is_left_alone_while_it_is_open_with_a_text_over_the_limit() {
    let read = || call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    let edit = || {
        let input = json!({ "file_path": "{{cwd}}/a.txt", "old_string": "one", "new_string": "two" });
        call("Edit", input)
    };
    let steps = (0..3).flat_map(|_| [read(), edit(), say("Done.")]);
    let project = Project::new(&Script::new(steps));
    project.write("a.txt", "one\n");
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    let uri = project.uri("a.txt");
    for method in ["textDocument/didOpen", "textDocument/didChange"] {
        if method == "textDocument/didChange" {
            client.editor.open(&uri, "one\n");
        }
        client.send_bytes(document_over_the_limit(method, &uri));
        let message = client.wait_for("the message to the user", |received| {
            received.of("window/showMessage").next().map(|shown| shown["params"]["message"].clone())
        });
        assert!(message.as_str().unwrap().contains("does not follow `a.txt`"), "{message}");
        client.forget();
        session.run("edit");
        let calls = session.calls();
        let [read, edited] = &calls[calls.len() - 2..] else { panic!("{calls:?}") };
        for call in [read, edited] {
            assert!(call["display"].to_string().contains("too large to be followed"), "{call}");
        }
        assert_eq!(project.read("a.txt"), "one\n");
    }
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    session.run("edit");
    assert_eq!(project.read("a.txt"), "two\n");
}

/// Shows that the server still serves.
fn assert_serves(client: &Client, what: &str) {
    let session = client.session();
    assert_eq!(session.run("hi")["stopReason"], "end_turn", "{what}");
}

#[test]
fn malformed_frames_are_answered_and_the_server_continues() {
    let batch = br#"[{"jsonrpc":"2.0","id":7,"method":"shutdown"}]"#;
    let framed = |body: &[u8]| frame(body);
    let table: Vec<(&str, Vec<u8>, i64)> = vec![
        ("bad JSON", framed(b"{\"jsonrpc\": \"2.0\", "), -32700),
        ("an empty body", framed(b""), -32700),
        ("not UTF-8", framed(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}"), -32700),
        ("deep nesting", framed("[".repeat(100_000).as_bytes()), -32700),
        ("a batch", framed(batch), -32600),
        ("a number", framed(b"7"), -32600),
        ("no method", framed(br#"{"jsonrpc":"2.0"}"#), -32600),
        ("a wrong version", framed(br#"{"jsonrpc":"1.0","method":"m"}"#), -32600),
        ("text between frames", b"hello, are you there?\r\n".to_vec(), -32700),
        ("a header without length", b"Content-Type: x\r\n\r\n".to_vec(), -32700),
        ("a length that is no number", b"Content-Length: many\r\n\r\n".to_vec(), -32700),
        ("a huge length", b"Content-Length: 99999999999\r\n\r\n{}\r\n".to_vec(), -32600),
        ("a length beyond all numbers", b"Content-Length: 99999999999999999999999\r\n\r\n".to_vec(), -32600),
    ];
    let project = project();
    let client = project.open();
    for (count, (what, bytes, code)) in table.into_iter().enumerate() {
        client.send_bytes(bytes);
        // The text after a malformed frame on the same line may be lost; the next frame must not be.
        client.send_bytes(b"\r\n".to_vec());
        let answer =
            client.wait_for(&format!("an answer to {what}"), |received| received.strays.get(count).cloned());
        assert_eq!(answer["error"]["code"], code, "{what}: {answer}");
        assert_eq!(answer["id"], Value::Null, "{what}: {answer}");
        assert!(client.request("agent/session/list", json!({})).is_ok(), "{what}");
    }
    assert_serves(&client, "after all of it");
}

#[test]
fn headers_are_read_in_any_case_and_with_others_beside_them() {
    let project = project();
    let client = project.open();
    let body = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "nope/nope" }).to_string();
    for (count, header) in [
        "content-length: {}\r\n\r\n",
        "CONTENT-LENGTH:{}\r\n\r\n",
        "Content-Type: application/vscode-jsonrpc; charset=utf-8\r\nContent-Length: {}\r\n\r\n",
        "Content-Length: {}\n\n",
    ]
    .into_iter()
    .enumerate()
    {
        let body = body("text ids are ids");
        client.send_bytes((header.replace("{}", &body.len().to_string()) + &body).into_bytes());
        let answer = client.wait_for(header, |received| received.strays.get(count).cloned());
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("text ids are ids"), &json!(-32601)));
    }
}

#[test]
fn a_frame_may_arrive_in_pieces_and_many_at_once() {
    let project = project();
    let client = project.open();
    let one = frame(json!({ "jsonrpc": "2.0", "id": "x", "method": "nope/nope" }).to_string().as_bytes());
    for byte in &one {
        client.send_bytes(vec![*byte]);
    }
    client.send_bytes(one.repeat(9));
    client.wait_for("ten answers", |received| (received.strays.len() == 10).then_some(()));
}

#[test]
fn requests_that_are_wrong_get_the_errors_of_the_protocol() {
    let project = project();
    let client = project.start();
    for method in ["agent/session/new", "textDocument/hover", "nope/nope", "shutdown"] {
        let early = client.request(method, json!({})).unwrap_err();
        assert_eq!(early.code, -32002, "{method}: {early:?}");
    }
    client.initialize(Offer::kode().params(&project.workspace()));
    let place = json!({
        "textDocument": { "uri": "file:///a.txt" }, "position": { "line": 0, "character": 0 },
    });
    for (method, params, code) in [
        ("nope/nope", json!({}), -32601),
        ("textDocument/definition", place, -32601),
        ("agent/turn/start", json!({}), -32602),
        ("agent/turn/start", json!({ "sessionId": 7 }), -32602),
        ("agent/turn/start", json!([1, 2]), -32602),
        ("agent/turn/start", Value::Null, -32602),
        ("agent/session/new", json!({ "mode": "godlike" }), -32602),
        ("workspace/executeCommand", json!({ "command": 7 }), -32602),
    ] {
        let error = client.request(method, params.clone()).unwrap_err();
        assert_eq!(error.code, code, "{method} {params}: {error:?}");
        assert!(!error.message.is_empty(), "{method} {params}");
        if method.starts_with("agent/") && !params.is_null() {
            assert_eq!(error.kind(), "invalidParams", "{method} {params}: {error:?}");
        }
    }
    assert_serves(&client, "after wrong requests");
    client.request("shutdown", Value::Null).unwrap();
    for method in ["agent/session/new", "textDocument/hover", "nope/nope", "initialize", "shutdown"] {
        let late = client.request(method, json!({})).unwrap_err();
        assert_eq!(late.code, -32600, "{method}: {late:?}");
    }
    client.notify("exit", Value::Null);
    assert_eq!(client.wait_for_exit(), 0);
}

#[test]
fn wrong_notifications_and_answers_to_nothing_hurt_nobody() {
    let project = project();
    let client = project.open();
    client.notify("nope/nope", json!({}));
    client.notify("$/nope", json!({}));
    client.notify("$/cancelRequest", json!({ "id": 4711 }));
    client.notify("textDocument/didChange", json!({ "nonsense": true }));
    client.notify(
        "textDocument/didChange",
        json!({ "textDocument": { "uri": "file:///never/opened", "version": 2 }, "contentChanges": [] }),
    );
    client.notify("textDocument/didClose", json!({ "textDocument": { "uri": "file:///never/opened" } }));
    client.send(&json!({ "jsonrpc": "2.0", "id": 4711, "result": null }));
    client.send(&json!({ "jsonrpc": "2.0", "id": "never asked", "error": { "code": 1, "message": "no" } }));
    assert_serves(&client, "after nonsense");
}

#[test]
fn the_exit_code_says_whether_shutdown_came_first() {
    let project = project();
    assert_eq!(project.open().shut_down(), 0);

    let abrupt = project.open();
    abrupt.notify("exit", Value::Null);
    assert_eq!(abrupt.wait_for_exit(), 1);

    let late = project.open();
    late.call("shutdown", Value::Null);
    let error = late.request("agent/session/new", json!({})).unwrap_err();
    assert_eq!(error.code, -32600, "no work after shutdown: {error:?}");
    late.notify("exit", Value::Null);
    assert_eq!(late.wait_for_exit(), 0);
}

/// Whether any process has this text in its command line.
fn is_running(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let named = |line: Vec<u8>| String::from_utf8_lossy(&line).contains(mark);
    processes.into_iter().any(|process| std::fs::read(process.path().join("cmdline")).is_ok_and(named))
}

#[test]
fn the_server_ends_with_its_input_and_takes_its_commands_along() {
    // By a name and not by a number: in the sandbox processes have numbers of their own.
    let mark = format!("kode-e2e-mark-{}", std::process::id());
    let command =
        format!("echo begun; bash -c 'exec -a {mark} sleep 600' & bash -c 'exec -a {mark} sleep 600'");
    let project = Project::new(&Script::new([call("Bash", json!({ "command": command })), say("never")]));
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.prompt("go");
    session.wait_event("output of the command", |event| event["type"] == "tool:progress");
    assert!(is_running(&mark));
    client.close_input();
    assert_eq!(client.wait_for_exit(), 1);
    assert!(!is_running(&mark), "the command outlives the server");
}

#[test]
fn a_second_initialize_is_refused() {
    let project = project();
    let client = project.open();
    let error = client.request("initialize", Offer::kode().params(&project.workspace())).unwrap_err();
    assert_eq!(error.code, -32600, "{error:?}");
    assert_serves(&client, "after a second initialize");
}

#[test]
fn the_arguments_editors_add_change_nothing() {
    for arguments in [&["--stdio"][..], &["lsp"], &["lsp", "--stdio"]] {
        let project = project();
        let client = project.start_as(arguments, &[]);
        client.initialize(Offer::kode().params(&project.workspace()));
        assert_serves(&client, &arguments.join(" "));
    }
}

#[test]
fn the_server_ends_with_the_process_of_its_editor() {
    let project = project();
    let client = project.connect_below_editor(&project.workspace());
    client.session();
    client.kill();
    client.wait_for_end();
}

#[test]
fn a_workspace_folder_that_the_host_does_not_have_is_reported() {
    let project = project();
    let missing = project.outside().join("elsewhere");
    for (folder, is_reported) in [(missing.clone(), true), (project.workspace(), false)] {
        let client = project.start();
        let mut params = Offer::kode().params(&folder);
        // Reported in any case, so that the absence of the other can be seen.
        params["initializationOptions"] = json!({ "delivery": 7 });
        client.initialize(params);
        let message = client.wait_for("a warning", |received| {
            let mut shown = received.of("window/showMessage");
            shown.next().map(|message| message["params"]["message"].as_str().unwrap().to_owned())
        });
        let name = format!("{} does not exist on the host", missing.display());
        assert_eq!(message.contains(&name), is_reported, "{message}");
    }
}

#[test]
fn standard_output_holds_frames_alone_whatever_a_command_prints() {
    let noise =
        "seq 1 60000; seq 1 60000 >&2; printf 'Content-Length: 5\\r\\n\\r\\nhello'; echo end-of-noise";
    let project = Project::new(&Script::new([call("Bash", json!({ "command": noise })), say("Loud.")]));
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    assert_eq!(session.run("go")["stopReason"], "end_turn");
    let [(text, _)] = project.model.last_results().try_into().unwrap();
    assert!(text.len() < 200_000, "{} bytes of output went to the model", text.len());
    assert!(text.contains("end-of-noise"), "the end is what matters most");
    assert_eq!(client.shut_down(), 0);
}

/// The parts of `initialize` in which the editors there are differ.
fn editors() -> Vec<(&'static str, Value, Encoding)> {
    let edits = |edit: Value| json!({ "applyEdit": true, "workspaceEdit": edit });
    vec![
        (
            "VS Code",
            json!({
                "workspace": edits(json!({
                    "documentChanges": true, "failureHandling": "textOnlyTransactional",
                    "changeAnnotationSupport": { "groupsOnLabel": true },
                })),
                "general": { "positionEncodings": ["utf-16"] },
                "window": { "workDoneProgress": true, "showMessage": {} },
            }),
            Encoding::Utf16,
        ),
        (
            "Neovim",
            json!({
                "workspace": edits(json!({ "resourceOperations": ["rename", "create", "delete"] })),
                "general": { "positionEncodings": ["utf-8", "utf-16", "utf-32"] },
                "window": { "workDoneProgress": true },
            }),
            Encoding::Utf8,
        ),
        (
            "Helix",
            json!({
                "workspace": edits(json!({ "documentChanges": true, "failureHandling": "abort" })),
                "general": { "positionEncodings": ["utf-8", "utf-32", "utf-16"] },
            }),
            Encoding::Utf8,
        ),
        (
            "Eglot",
            json!({
                "workspace": edits(json!({ "documentChanges": true })),
                "general": { "positionEncodings": ["utf-32", "utf-8", "utf-16"] },
            }),
            Encoding::Utf32,
        ),
    ]
}

#[test]
fn edits_arrive_rightly_in_every_position_encoding() {
    let text = "über 😀 naïve\r\n\u{feff}𝄞𝄞 target 😀\r\nlast line without an end 😀";
    let script = Script::new([
        call("Read", json!({ "file_path": "{{cwd}}/a.txt" })),
        call(
            "Edit",
            json!({ "file_path": "{{cwd}}/a.txt", "old_string": "target 😀", "new_string": "💥 hit" }),
        ),
        say("Edited."),
    ]);
    for (name, capabilities, encoding) in editors() {
        let project = Project::new(&script);
        project.write("a.txt", text);
        let client = project.start();
        let reported =
            client.initialize(Offer::capabilities(capabilities).panel().params(&project.workspace()));
        let chosen = Encoding::of(reported["positionEncoding"].as_str().unwrap());
        assert_eq!(chosen, encoding, "{name}");
        let uri = project.uri("a.txt");
        client.editor.open(&uri, text);
        // Typing in front of the place: the server must count what the editor counts.
        client.editor.type_text(&uri, &kode_e2e::Typing::before("𝄞 target", "é😀"));
        let session = client.session_with(json!({ "mode": "acceptEdits" }));
        assert_eq!(session.run("edit")["stopReason"], "end_turn", "{name}");
        let expected = text.replace("𝄞 target 😀", "é😀𝄞 💥 hit");
        assert_eq!(client.editor.text(&uri), expected, "{name}: {:?}", project.model.last_results());
    }
}

#[test]
fn a_client_that_offers_nothing_and_names_nobody_is_served() {
    let script = Script::new([
        call("Read", json!({ "file_path": "{{cwd}}/a.txt" })),
        call("Edit", json!({ "file_path": "{{cwd}}/a.txt", "old_string": "old", "new_string": "new" })),
        say("I could not edit."),
    ]);
    let project = Project::new(&script);
    project.write("a.txt", "old\n");
    let client = project.start();
    let mut params = Offer::bare().params(&project.workspace());
    params["clientInfo"] = Value::Null;
    client.initialize(params);
    client.editor.open(&project.uri("a.txt"), "old\n");
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.submit("edit");
    client.wait_for("the answer as a message", |received| {
        let mut messages = received.of("window/showMessage");
        messages.find(|message| message["params"]["message"] == "I could not edit.").map(drop)
    });
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(is_error && text.contains("applyEdit"), "{text}");
    assert!(client.editor.edits().is_empty(), "nothing is sent that was not offered");
    assert_eq!(project.read("a.txt"), "old\n", "an open document is never changed behind the editor's back");
}
