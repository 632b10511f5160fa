//! Editors without a plugin review what the agent has changed: actions, lenses, hints, hovers and commands.

use kode_e2e::{Client, Offer, Project, Reply, Script, Typing, call, say};
use serde_json::{Value, json};

const TEXT: &str = "zero\none\ntwo 🙂\nthree\nfour\nfive\nsix\nseven\neight\nnine\n";
const CHANGED: &str = "zero\none\n2 🙂\n2.5\nthree\nfour\nfive\nsix\nseven\nnine\n";

fn project() -> Project {
    let script = Script::default().when(
        "^edit",
        [
            call("Read", json!({ "file_path": "{{cwd}}/a.txt" })),
            call(
                "MultiEdit",
                json!({
                    "file_path": "{{cwd}}/a.txt",
                    "edits": [
                        { "old_string": "two 🙂\n", "new_string": "2 🙂\n2.5\n" },
                        { "old_string": "eight\n", "new_string": "" },
                    ],
                }),
            ),
            say("Edited."),
        ],
    );
    let project = Project::new(&script);
    project.write("a.txt", TEXT);
    project
}

/// An editor that can do what review has upgrades for.
fn offer() -> Offer {
    Offer::plain()
        .with("/workspace/codeLens/refreshSupport", json!(true))
        .with("/workspace/workspaceEdit/changeAnnotationSupport", json!({}))
        .with("/textDocument/codeAction/codeActionLiteralSupport/codeActionKind/valueSet", json!([]))
        .with("/textDocument/codeAction/honorsChangeAnnotations", json!(true))
        .with("/textDocument/hover/contentFormat", json!(["markdown"]))
}

fn connect(project: &Project, offer: &Offer) -> Client {
    let client = project.connect(offer);
    client.on_request("workspace/codeLens/refresh", |_, _| Reply::Result(Value::Null));
    client
}

/// A client whose agent may edit unasked and has made two changes in an open document.
fn edited(project: &Project, offer: &Offer) -> (Client, String) {
    let client = connect(project, offer);
    let uri = project.uri("a.txt");
    client.editor.open(&uri, TEXT);
    execute(&client, "kode.setMode", json!({ "mode": "acceptEdits" }));
    execute(&client, "kode.ask", json!({ "text": "edit" }));
    hints(&client, &uri, &["kode.applied", "kode.applied"]);
    assert_eq!(client.editor.text(&uri), CHANGED);
    (client, uri)
}

fn execute(client: &Client, command: &str, argument: Value) -> Value {
    client.call("workspace/executeCommand", json!({ "command": command, "arguments": [argument] }))
}

/// Carries out a command of an action or lens.
fn run(client: &Client, command: &Value) -> Value {
    execute(client, command["command"].as_str().expect("a command"), command["arguments"][0].clone())
}

/// Waits until the newest diagnostics of the document have these codes; gives them.
fn hints(client: &Client, uri: &str, codes: &[&str]) -> Vec<Value> {
    client.wait_for(&format!("diagnostics {codes:?}"), |received| {
        let of_document =
            received.of("textDocument/publishDiagnostics").filter(|message| message["params"]["uri"] == uri);
        let newest = of_document.last()?["params"]["diagnostics"].as_array()?.clone();
        let shown: Vec<&str> = newest.iter().filter_map(|hint| hint["code"].as_str()).collect();
        (shown == codes).then_some(newest)
    })
}

fn actions(client: &Client, uri: &str, line: u64) -> Vec<Value> {
    let at = json!({ "line": line, "character": 0 });
    let context = json!({ "diagnostics": [], "triggerKind": 1 });
    let params =
        json!({ "textDocument": { "uri": uri }, "range": { "start": at, "end": at }, "context": context });
    client.call("textDocument/codeAction", params).as_array().unwrap().clone()
}

fn action(client: &Client, uri: &str, line: u64, title: &str) -> Value {
    let actions = actions(client, uri, line);
    let found = actions.iter().find(|action| action["title"] == title);
    found.unwrap_or_else(|| panic!("no {title:?} in {actions:#?}")).clone()
}

fn lenses(client: &Client, uri: &str) -> Vec<(u64, String)> {
    let lenses = client.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let lenses = lenses.as_array().unwrap().iter();
    let shown = lenses.map(|lens| {
        let line = lens["range"]["start"]["line"].as_u64().unwrap();
        (line, lens["command"]["title"].as_str().unwrap().to_owned())
    });
    shown.collect()
}

/// Waits until the log of the client says how a decision went.
fn logged(client: &Client, text: &str) {
    client.wait_for(&format!("{text:?} in the log"), |received| {
        let mut logged = received.of("window/logMessage");
        let contains = |message: &&Value| {
            message["params"]["message"].as_str().is_some_and(|message| message.contains(text))
        };
        logged.find(contains).map(drop)
    });
}

#[test]
fn changes_are_seen_and_decided_about_in_the_open_document() {
    let project = project();
    let (client, uri) = edited(&project, &offer());
    let shown = hints(&client, &uri, &["kode.applied", "kode.applied"]);
    assert_eq!(shown[0]["message"], "Kode changed 2 lines (MultiEdit, +2 -1)");
    assert_eq!(shown[1]["message"], "Kode removed 1 line (MultiEdit, +0 -1)");
    let expected = [
        (0, "Keep all 2"),
        (0, "Undo all 2"),
        (2, "Keep +2 -1"),
        (2, "Undo"),
        (9, "Keep +0 -1"),
        (9, "Undo"),
    ];
    let expected = expected.map(|(line, title)| (line, format!("Kode: {title}")));
    assert_eq!(lenses(&client, &uri), expected);
    let at =
        |line: u64| json!({ "textDocument": { "uri": uri }, "position": { "line": line, "character": 0 } });
    let hover = client.call("textDocument/hover", at(3));
    let text = hover["contents"]["value"].as_str().unwrap();
    assert!(text.contains("```diff\n-two 🙂\n+2 🙂\n+2.5\n```"), "{text}");
    assert_eq!(client.call("textDocument/hover", at(5)), Value::Null);

    let undo = action(&client, &uri, 2, "Kode: Undo this change (lines 3-4, +2 -1)");
    run(&client, &undo["command"]);
    hints(&client, &uri, &["kode.applied"]);
    logged(&client, "1 change undone");
    assert_eq!(client.editor.text(&uri), TEXT.replace("eight\n", ""));
    assert_eq!(lenses(&client, &uri).len(), 2);

    let back = action(&client, &uri, 0, "Kode: Undo the last decision");
    run(&client, &back["command"]);
    logged(&client, "1 change taken out or put back");
    hints(&client, &uri, &["kode.applied", "kode.applied"]);
    assert_eq!(client.editor.text(&uri), CHANGED);

    run(&client, &action(&client, &uri, 0, "Kode: Keep all in this file (2 changes)")["command"]);
    hints(&client, &uri, &[]);
    assert_eq!(lenses(&client, &uri), []);
    assert_eq!(actions(&client, &uri, 2), Vec::<Value>::new());
    assert_eq!(client.editor.text(&uri), CHANGED);
    assert!(client.look(|received| received.of("workspace/codeLens/refresh").count()) > 1);
}

#[test]
fn places_move_with_what_is_typed() {
    let project = project();
    let (client, uri) = edited(&project, &offer());
    client.editor.type_text(&uri, &Typing::before("zero", "🙂 above\n"));
    client.wait_for("hints one line further down", |received| {
        let newest = received.of("textDocument/publishDiagnostics").last()?;
        (newest["params"]["diagnostics"][0]["range"]["start"]["line"] == 3).then_some(())
    });
    assert_eq!(lenses(&client, &uri)[2].0, 3);
    run(&client, &action(&client, &uri, 3, "Kode: Undo this change (lines 4-5, +2 -1)")["command"]);
    logged(&client, "1 change undone");
    assert_eq!(client.editor.text(&uri), format!("🙂 above\n{}", TEXT.replace("eight\n", "")));
}

#[test]
fn what_the_user_has_typed_into_a_change_is_not_undone_unasked() {
    let project = project();
    let (client, uri) = edited(&project, &offer());
    client.editor.type_text(&uri, &Typing::after("2.", " mine "));
    execute(&client, "kode.undoEdits", Value::Null);
    hints(&client, &uri, &["kode.conflict"]);
    client.wait_for("the warning", |received| {
        let mut shown = received.of("window/showMessage");
        shown
            .find(|message| {
                message["params"]["message"].as_str().is_some_and(|text| text.contains("a.txt:3"))
            })
            .map(drop)
    });
    let amended = CHANGED.replace("2.5", "2. mine 5").replace("nine", "eight\nnine");
    assert_eq!(client.editor.text(&uri), amended);
    let undo = action(&client, &uri, 3, "Kode: Undo, leaving what I typed (lines 3-4, +2 -1)");
    run(&client, &undo["command"]);
    hints(&client, &uri, &[]);
    let text = client.editor.text(&uri);
    assert!(text.contains(" mine") && text.contains("two 🙂") && !text.contains("2."), "{text:?}");
}

#[test]
fn a_proposed_change_is_accepted_hunk_by_hunk() {
    let project = project();
    let client = connect(&project, &offer());
    let uri = project.uri("a.txt");
    client.editor.open(&uri, TEXT);
    execute(&client, "kode.ask", json!({ "text": "edit" }));
    let shown = hints(&client, &uri, &["kode.proposed", "kode.proposed"]);
    assert_eq!(shown[1]["range"]["start"]["line"], 8);
    let preview = action(&client, &uri, 2, "Kode: Preview this change (line 3, +2 -1)");
    let edit = &preview["edit"]["documentChanges"][0];
    assert_eq!(edit["edits"][0]["newText"], "2 🙂\n2.5\n");
    assert_eq!(edit["textDocument"]["version"], 1);
    run(&client, &action(&client, &uri, 2, "Kode: Allow this change (line 3, +2 -1)")["command"]);
    run(&client, &action(&client, &uri, 8, "Kode: Deny this change (line 9, +0 -1)")["command"]);
    hints(&client, &uri, &["kode.applied"]);
    assert_eq!(client.editor.text(&uri), CHANGED.replace("nine", "eight\nnine"));
}

#[test]
fn a_checkpoint_is_picked_and_gone_back_to() {
    let project = project();
    let (client, uri) = edited(&project, &offer());
    client.wait_for("the end of the turn", |received| {
        received.of("window/showMessage").find(|message| message["params"]["message"] == "Edited.").map(drop)
    });
    let asked = |n: usize| {
        client.wait_for("a question", |received| received.of("window/showMessageRequest").nth(n).cloned())
    };
    assert_eq!(execute(&client, "kode.restore", Value::Null), json!({ "asked": 1 }));
    let question = asked(0);
    let choices = question["params"]["actions"].as_array().unwrap();
    assert_eq!((choices.len(), &choices[0]["title"]), (2, &json!("Cancel")), "{question}");
    client.answer(&question, choices[0].clone());

    let known = execute(&client, "kode.checkpoints", Value::Null);
    assert_eq!(known["checkpoints"][0]["title"], "edit");
    assert_eq!(known["checkpoints"][0]["files"], json!(["a.txt"]));
    let id = &known["checkpoints"][0]["checkpointId"];
    let dry =
        execute(&client, "kode.restore", json!({ "checkpointId": id, "what": "files", "dryRun": true }));
    assert!(dry["files"][0]["unified"].as_str().unwrap().contains("+eight"), "{dry}");
    assert_eq!(client.editor.text(&uri), CHANGED, "nothing is done yet");

    execute(&client, "kode.restore", json!({ "what": "files" }));
    let question = asked(1);
    client.answer(&question, question["params"]["actions"][1].clone());
    hints(&client, &uri, &[]);
    assert_eq!(client.editor.text(&uri), TEXT);
}

#[test]
fn hints_are_for_those_who_have_nothing_else_unless_the_user_says_otherwise() {
    for (offer, expected) in [
        (offer().options(json!({ "reviewDiagnostics": "off" })), false),
        (offer().panel(), false),
        (offer().panel().options(json!({ "reviewDiagnostics": "on" })), true),
    ] {
        let project = project();
        let client = connect(&project, &offer);
        let uri = project.uri("a.txt");
        client.editor.open(&uri, TEXT);
        execute(&client, "kode.setMode", json!({ "mode": "acceptEdits" }));
        execute(&client, "kode.ask", json!({ "text": "edit" }));
        client.wait_for("the end of the turn", |received| {
            let ends = |message: &&Value| {
                message["params"]["event"]["type"] == "done" || message["params"]["message"] == "Edited."
            };
            received.of("agent/event").chain(received.of("window/showMessage")).find(ends).map(drop)
        });
        assert_eq!(lenses(&client, &uri).len(), 6);
        client.wait_for("a refresh", |received| received.of("workspace/codeLens/refresh").next().map(drop));
        if expected {
            hints(&client, &uri, &["kode.applied", "kode.applied"]);
        } else {
            // Diagnostics are published before the refresh.
            let reported = client.look(|received| received.of("textDocument/publishDiagnostics").count());
            assert_eq!(reported, 0);
        }
    }
}
