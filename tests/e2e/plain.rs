//! Editors without a plugin: the whole agent through commands, messages and progress.

use kode_e2e::{Client, Offer, Project, Script, call, say};
use serde_json::{Value, json};

fn script() -> Script {
    Script::default()
        .when("hello$", [say("Hello to you.")])
        .when(
            "^edit",
            [
                call("Read", json!({ "file_path": "{{cwd}}/a.txt" })),
                call(
                    "Edit",
                    json!({ "file_path": "{{cwd}}/a.txt", "old_string": "old", "new_string": "new" }),
                ),
                say("Edited."),
            ],
        )
        .when("^command", [call("Bash", json!({ "command": "expr ran" })), say("Ran or not.")])
        .when(
            "^twice",
            [
                call("Bash", json!({ "command": "expr same" })),
                call("Bash", json!({ "command": "expr same" })),
                say("Twice."),
            ],
        )
        .when("^hold", [say("Never said.").gate("hold", 0)])
}

fn project() -> Project {
    let project = Project::new(&script());
    project.write("a.txt", "old\n");
    project
}

fn execute(client: &Client, command: &str, argument: Value) -> Value {
    client.call("workspace/executeCommand", json!({ "command": command, "arguments": [argument] }))
}

fn ask(client: &Client, text: &str) {
    let answer = execute(client, "kode.ask", json!({ "text": text }));
    assert!(answer["sessionId"].is_string(), "{answer}");
}

/// Waits for the `n`th message request, counted from 0.
fn asked(client: &Client, n: usize) -> Value {
    client.wait_for("a message request", |received| received.of("window/showMessageRequest").nth(n).cloned())
}

/// Waits until the editor has shown a message with this text.
fn shown(client: &Client, text: &str) {
    client.wait_for(&format!("the message {text:?}"), |received| {
        let mut shown = received.of("window/showMessage");
        let contains = |message: &&Value| {
            message["params"]["message"].as_str().is_some_and(|message| message.contains(text))
        };
        shown.find(contains).map(drop)
    });
}

#[test]
fn a_question_is_answered_in_a_message_with_progress_meanwhile() {
    let project = project();
    let client = project.start();
    let capabilities = client.initialize(Offer::plain().params(&project.workspace()));
    let commands = capabilities["executeCommandProvider"]["commands"].as_array().unwrap();
    assert!(commands.contains(&json!("kode.ask")), "{capabilities}");
    ask(&client, "hello");
    shown(&client, "Hello to you.");
    client.wait_for("the whole progress", |received| {
        let steps: Vec<&Value> =
            received.of("$/progress").map(|message| &message["params"]["value"]).collect();
        let end = steps.iter().position(|step| step["kind"] == "end")?;
        assert_eq!((&steps[0]["kind"], &steps[0]["cancellable"]), (&json!("begin"), &json!(true)));
        assert_eq!(end, steps.len() - 1);
        Some(())
    });
    let events = client.look(|received| received.of("agent/event").count());
    assert_eq!(events, 0, "events are for those who asked for them");
}

#[test]
fn a_permission_is_asked_by_a_message_request() {
    let project = project();
    let client = project.connect(&Offer::plain());
    let uri = project.uri("a.txt");
    client.editor.open(&uri, "old\n");
    ask(&client, "edit");
    let request = asked(&client, 0);
    let message = request["params"]["message"].as_str().unwrap();
    for expected in ["a.txt", "-old", "+new", "mode Ask asks"] {
        assert!(message.contains(expected), "no {expected:?} in {message:?}");
    }
    let titles: Vec<&str> = request["params"]["actions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|action| action["title"].as_str().unwrap())
        .collect();
    let always = [
        "Allow for this session",
        "Allow all edits for this session",
        "Always allow in this project",
        "Always allow everywhere",
    ];
    assert_eq!(titles[..2], ["Deny", "Allow once"], "a stray key must not approve");
    assert_eq!(titles[2..], always);
    client.answer(&request, json!({ "title": "Allow once" }));
    shown(&client, "Edited.");
    assert_eq!(client.editor.text(&uri), "new\n");
}

#[test]
fn every_answer_to_a_message_request_does_what_it_says() {
    for (prompt, answer, asked_again, refused) in [
        ("command", json!({ "title": "Deny" }), false, true),
        ("twice", json!({ "title": "Allow for this session" }), false, false),
        ("twice", json!({ "title": "Allow once" }), true, false),
        ("command", json!({ "title": "Something of my own" }), false, true),
    ] {
        let project = project();
        let client = project.connect(&Offer::plain());
        ask(&client, prompt);
        let request = asked(&client, 0);
        client.answer(&request, answer.clone());
        if asked_again {
            client.answer(&asked(&client, 1), json!({ "title": "Allow once" }));
        }
        shown(&client, if prompt == "twice" { "Twice." } else { "Ran or not." });
        let requests = client.look(|received| received.of("window/showMessageRequest").count());
        assert_eq!(requests, 1 + usize::from(asked_again), "{prompt} {answer}");
        let (text, is_error) = project.model.last_results().pop().unwrap();
        assert_eq!(is_error, refused, "{prompt} {answer}: {text}");
    }
}

#[test]
fn a_message_request_nobody_answers_blocks_nobody() {
    let project = project();
    let client = project.connect(&Offer::plain());
    ask(&client, "command");
    asked(&client, 0);
    // Another conversation continues beside it, and the prompt can be answered by a command.
    execute(&client, "kode.newSession", Value::Null);
    ask(&client, "hello");
    shown(&client, "Hello to you.");
    let answer = execute(&client, "kode.allow", Value::Null);
    assert!(answer["permissionId"].is_string(), "{answer}");
    shown(&client, "Ran or not.");
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(!is_error && text.contains("ran"), "{text}");
}

#[test]
fn an_answer_that_comes_after_another_is_reported_so() {
    let project = project();
    let client = project.connect(&Offer::plain());
    ask(&client, "command");
    let request = asked(&client, 0);
    execute(&client, "kode.deny", json!({ "feedback": "use make instead" }));
    shown(&client, "Ran or not.");
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(is_error && text.contains("use make instead"), "{text}");
    client.answer(&request, json!({ "title": "Allow once" }));
    shown(&client, "already answered");
}

#[test]
fn an_editor_without_message_requests_is_reported_how_to_answer() {
    let project = project();
    let client = project.connect(&Offer::plain().with("/window", Value::Null));
    ask(&client, "command");
    shown(&client, "Answer with a code action");
    execute(&client, "kode.allow", Value::Null);
    shown(&client, "Ran or not.");
    assert_eq!(client.look(|received| received.of("window/showMessageRequest").count()), 0);
    assert_eq!(client.look(|received| received.of("$/progress").count()), 0);
}

/// The diagnostics that are in a document.
fn diagnostics(client: &Client, uri: &str) -> Vec<Value> {
    client.look(|received| {
        let all = received.of("textDocument/publishDiagnostics");
        let last = all.filter(|reported| reported["params"]["uri"] == uri).last();
        last.map(|reported| reported["params"]["diagnostics"].as_array().unwrap().clone()).unwrap_or_default()
    })
}

/// The code actions at the start of a line that answer a prompt, by their titles.
fn answers(client: &Client, uri: &str, line: u32) -> Vec<Value> {
    let at = json!({ "line": line, "character": 0 });
    let params = json!({
        "textDocument": { "uri": uri },
        "range": { "start": at, "end": at },
        "context": { "diagnostics": diagnostics(client, uri) },
    });
    let mut offered = client.call("textDocument/codeAction", params).as_array().unwrap().clone();
    offered.retain(|action| {
        let title = action["title"].as_str().unwrap();
        title.starts_with("Kode: Deny") || title.starts_with("Kode: Allow")
    });
    offered
}

#[test]
fn an_editor_without_message_requests_answers_by_a_code_action() {
    for (prompt, line) in [("command", 0), ("edit", 2)] {
        let project = Project::new(&script());
        project.write("a.txt", "one\ntwo\nold\n");
        let client = project.connect(&Offer::plain().with("/window", Value::Null));
        let uri = project.uri("a.txt");
        client.editor.open(&uri, "one\ntwo\nold\n");
        ask(&client, prompt);
        let reported = client.wait_for("the diagnostic", |received| {
            let mut all = received.of("textDocument/publishDiagnostics");
            let of_prompt = |reported: &Value| reported["code"] == "kode.permission";
            all.find_map(|all| {
                all["params"]["diagnostics"].as_array()?.iter().find(|it| of_prompt(it)).cloned()
            })
        });
        assert_eq!(
            (&reported["severity"], &reported["range"]["start"]["line"]),
            (&json!(3), &json!(line)),
            "{reported}"
        );
        assert!(reported["message"].as_str().unwrap().starts_with("Kode asks: "), "{reported}");
        let offered = answers(&client, &uri, line);
        let titles: Vec<_> = offered.iter().map(|action| action["title"].as_str().unwrap()).collect();
        assert!(
            titles[0].starts_with("Kode: Deny: ") && titles[1].starts_with("Kode: Allow once: "),
            "{titles:?}"
        );
        // This client takes no literals, so that the action is its command.
        client.call("workspace/executeCommand", offered[1].clone());
        shown(&client, if prompt == "edit" { "Edited." } else { "Ran or not." });
        let (text, is_error) = project.model.last_results().pop().unwrap();
        assert!(!is_error, "{prompt}: {text}");
        client.wait_for("the end of the diagnostic", |received| {
            let last = received.of("textDocument/publishDiagnostics").last()?;
            let left = last["params"]["diagnostics"].as_array()?;
            left.iter().all(|reported| reported["code"] != "kode.permission").then_some(())
        });
        assert!(answers(&client, &uri, line).is_empty());
    }
}

#[test]
fn a_proposal_that_is_rejected_is_no_hint_any_more() {
    let edits =
        json!([{ "old_string": "one", "new_string": "1" }, { "old_string": "three", "new_string": "3" }]);
    let edit = json!({ "file_path": "{{cwd}}/a.txt", "edits": edits });
    let read = call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    let project = Project::new(&Script::default().otherwise([read, call("MultiEdit", edit), say("Edited.")]));
    project.write("a.txt", "one\ntwo\nthree\n");
    let client = project.connect(&Offer::plain());
    let uri = project.uri("a.txt");
    client.editor.open(&uri, "one\ntwo\nthree\n");
    ask(&client, "edit");
    let hints = |count: usize| {
        client.wait_for(&format!("{count} hints"), |received| {
            let last = received.of("textDocument/publishDiagnostics").last()?;
            let reported = last["params"]["diagnostics"].as_array()?;
            (reported.len() == count).then(|| reported.clone())
        })
    };
    let first = hints(2)[0]["data"]["hunkId"].clone();
    execute(&client, "kode.rejectEdits", json!({ "hunkIds": [first] }));
    hints(1);
}

#[test]
fn a_closed_message_request_is_answered_by_a_code_action() {
    let project = project();
    let client = project.connect(&Offer::plain());
    let uri = project.uri("a.txt");
    client.editor.open(&uri, "old\n");
    ask(&client, "twice");
    let request = asked(&client, 0);
    client.answer(&request, Value::Null);
    shown(&client, "Still waiting");
    assert!(diagnostics(&client, &uri).is_empty(), "this editor can ask");
    let offered = answers(&client, &uri, 0);
    assert_eq!(offered[2]["arguments"][0]["scope"], "session");
    client.call("workspace/executeCommand", offered[2].clone());
    shown(&client, "Twice.");
    assert_eq!(client.look(|received| received.of("window/showMessageRequest").count()), 1);
}

#[test]
fn what_an_editor_does_not_report_can_be_said_in_its_options() {
    for (options, edited) in
        [(json!({}), false), (json!({ "clientCapabilities": { "workspace": { "applyEdit": true } } }), true)]
    {
        let project = project();
        let client = project.connect(&Offer::plain().with("/workspace", Value::Null).options(options));
        let uri = project.uri("a.txt");
        client.editor.open(&uri, "old\n");
        execute(&client, "kode.setMode", json!({ "mode": "acceptEdits" }));
        ask(&client, "edit");
        shown(&client, "Edited.");
        let (text, is_error) = project.model.last_results().pop().unwrap();
        assert_eq!(is_error, !edited, "{text}");
        assert_eq!(client.editor.text(&uri), if edited { "new\n" } else { "old\n" });
        if !edited {
            assert!(text.contains("clientCapabilities"), "it is said what to do: {text}");
        }
    }
}

#[test]
fn a_turn_is_cancelled_by_command_and_by_its_progress() {
    for by_progress in [false, true] {
        let project = project();
        let client = project.connect(&Offer::plain());
        ask(&client, "hold");
        project.model.wait_until_held("hold");
        let begin = client.wait_for("progress", |received| received.of("$/progress").next().cloned());
        if by_progress {
            let token = begin["params"]["token"].clone();
            client.notify("window/workDoneProgress/cancel", json!({ "token": token }));
        } else {
            let answer = execute(&client, "kode.cancel", Value::Null);
            assert_eq!(answer["cancelled"], true);
        }
        client.wait_for("the end of the progress", |received| {
            let mut steps = received.of("$/progress").map(|message| &message["params"]["value"]);
            steps.find(|step| step["kind"] == "end" && step["message"] == "cancelled").map(drop)
        });
        ask(&client, "hello");
        shown(&client, "Hello to you.");
    }
}

#[test]
fn commands_that_cannot_work_say_why() {
    let project = project();
    let client = project.connect(&Offer::plain());
    for (command, arguments, says) in [
        ("kode.fly", json!([]), "kode.ask"),
        ("kode.ask", json!([]), "text"),
        ("kode.ask", json!([{ "txt": "hello" }]), "text"),
        ("kode.ask", json!([{ "text": "  " }]), "empty"),
        ("kode.allow", json!([]), "no permission prompt"),
        ("kode.setMode", json!([{ "mode": "godlike" }]), "acceptEdits"),
        ("kode.model", json!([{ "model": "nobody" }]), "there are: demo, main"),
        ("kode.keepEdits", json!([]), "nothing to keep"),
        ("kode.undoEdits", json!([{ "hunkId": "hunk_1" }]), "hunkIds"),
        ("kode.undoEdits", json!([{ "uri": "a.txt" }]), "arguments"),
        ("kode.acceptEdits", json!([{ "all": true, "turnId": "turn_1" }]), "only one of"),
        ("kode.rejectEdits", json!([{ "sessionId": "ses_1" }]), "ses_1"),
        ("kode.revertEdits", json!([]), "no resolution"),
        ("kode.restore", json!([]), "no checkpoint yet"),
        ("kode.restore", json!([{ "checkpointId": "ckpt_1" }]), "ckpt_1"),
    ] {
        let params = json!({ "command": command, "arguments": arguments });
        let error = client.request("workspace/executeCommand", params).unwrap_err();
        assert!(error.message.contains(says) || error.hint().contains(says), "{command}: {error:?}");
    }
}

#[test]
fn lists_are_answered_and_shown() {
    let project = project();
    let client = project.connect(&Offer::plain());
    for (command, says) in
        [("kode.listEdits", "No change waits"), ("kode.checkpoints", "There is no checkpoint yet")]
    {
        let answer = execute(&client, command, Value::Null);
        assert!(answer["text"].as_str().unwrap().contains(says), "{command}: {answer}");
        shown(&client, says);
    }
}

#[test]
fn the_mode_is_set_by_command() {
    let project = project();
    let client = project.connect(&Offer::plain());
    execute(&client, "kode.setMode", json!({ "mode": "bypassPermissions" }));
    ask(&client, "command");
    shown(&client, "Ran or not.");
    assert_eq!(client.look(|received| received.of("window/showMessageRequest").count()), 0);
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(!is_error && text.contains("ran"), "{text}");
}

#[test]
fn the_model_is_named_or_picked_and_the_first_choice_changes_nothing() {
    let project = project();
    let other = Project::new(&Script::default().otherwise([say("The other speaks.")]));
    let options = json!({ "models": { "other": {
        "model": "other-model", "baseUrl": other.model.base_url(), "apiKey": "other-key-123",
    } } });
    let client = project.connect(&Offer::plain().options(options));
    let now = |client: &Client| execute(client, "kode.model", Value::Null)["model"].clone();
    let titles = |request: &Value| -> Vec<String> {
        let actions = request["params"]["actions"].as_array().unwrap();
        actions.iter().map(|action| action["title"].as_str().unwrap().to_owned()).collect()
    };

    let answer = execute(&client, "kode.model", Value::Null);
    assert_eq!((&answer["model"], &answer["models"]), (&json!("main"), &json!(["demo", "main", "other"])));
    let request = asked(&client, 0);
    let offered = titles(&request);
    assert_eq!(offered[0], "Cancel");
    assert!(offered[2].ends_with(", now)") && offered[3].contains("other-model"), "{offered:?}");
    client.answer(&request, json!({ "title": "Cancel" }));
    assert_eq!(now(&client), "main");

    client.answer(&asked(&client, 1), json!({ "title": offered[3] }));
    shown(&client, "Kode: other (other-model");
    ask(&client, "hello");
    shown(&client, "The other speaks.");
    assert_eq!((project.model.requests().len(), other.model.requests().len()), (0, 1));

    assert_eq!(execute(&client, "kode.model", json!({ "model": "main" })), json!({ "model": "main" }));
    ask(&client, "hello");
    shown(&client, "Hello to you.");
}

#[test]
fn an_editor_without_message_requests_is_shown_the_models() {
    let project = project();
    let client = project.connect(&Offer::plain().with("/window", Value::Null));
    let answer = execute(&client, "kode.model", Value::Null);
    assert!(answer["text"].as_str().unwrap().contains("main ("), "{answer}");
    shown(&client, "kode.model with");
    assert_eq!(client.look(|received| received.of("window/showMessageRequest").count()), 0);
}
