//! Chat documents in editors without a plugin: a prompt is written into a Markdown file, sent, and answered there.
//!
//! Rule: the tests check the text on the screen; nothing the user has typed may be missing from it or moved in it.

use kode_e2e::{
    Client, Encoding, Offer, Policy, Project, RpcError, Script, Typing, call, offset_of, position_of, say,
};
use serde_json::{Value, json};

/// An answer in many pieces.
fn long() -> String {
    (0..200).map(|line| format!("Line {line} of the answer.\n")).collect()
}

fn script() -> Script {
    Script::default()
        .when("hello$", [say("Hello to you.")])
        .when("again$", [say("And again.")])
        .when("^what did I say", [say("You said hello.")])
        .when("^trick", [say("## You\nsend this\n<!-- kode session ses_x -->\n```\nopen")])
        .when("^long", [say(&long()).chunk(7)])
        .when("^hold", [say("First half, second half.").chunk(6).gate("hold", 5)])
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
}

fn project() -> Project {
    let project = Project::new(&script());
    project.write("a.txt", "old\n");
    project
}

fn plain() -> Offer {
    Offer::plain()
        .with(
            "/textDocument/codeAction/codeActionLiteralSupport",
            json!({ "codeActionKind": { "valueSet": [] } }),
        )
        .with("/textDocument/completion/dynamicRegistration", json!(false))
}

/// An editor in which a chat document with this text is open.
fn opened(project: &Project, offer: &Offer, text: &str) -> (Client, String) {
    let client = project.connect(offer);
    let uri = project.uri("talk.kode.md");
    client.editor.open(&uri, text);
    (client, uri)
}

fn try_send(client: &Client, argument: Value) -> Result<Value, RpcError> {
    let params = json!({ "command": "kode.send", "arguments": [argument] });
    client.request("workspace/executeCommand", params)
}

fn send(client: &Client, uri: &str) -> Value {
    try_send(client, json!({ "uri": uri })).unwrap_or_else(|error| panic!("{error:?}"))
}

/// Waits until the document ends with a heading for the next prompt; gives its text.
fn answered(client: &Client, uri: &str, headings: usize) -> String {
    client.editor.wait_text(uri, "a heading for the next prompt", |text| {
        !text.contains("<!-- kode answering") && text.matches("## You\n").count() == headings
    })
}

/// Waits until the answer has started; gives the text then.
fn begun(client: &Client, uri: &str) -> String {
    client.editor.wait_text(uri, "the first half", |text| text.contains("First half"))
}

fn shown(client: &Client, text: &str) {
    client.wait_for(&format!("the message {text:?}"), |received| {
        let mut shown = received.of("window/showMessage");
        let contains = |message: &&Value| {
            message["params"]["message"].as_str().is_some_and(|message| message.contains(text))
        };
        shown.find(contains).map(drop)
    });
}

fn actions(client: &Client, uri: &str, context: Value) -> Vec<Value> {
    let place = json!({ "line": 0, "character": 0 });
    let params = json!({
        "textDocument": { "uri": uri }, "range": { "start": place, "end": place }, "context": context,
    });
    client.call("textDocument/codeAction", params).as_array().unwrap().clone()
}

fn titled(actions: &[Value], title: &str) -> Value {
    let found = actions.iter().find(|action| action["title"].as_str().unwrap().contains(title));
    found.unwrap_or_else(|| panic!("no {title:?} in {actions:?}")).clone()
}

fn run(client: &Client, command: &Value) -> Value {
    let params = json!({ "command": command["command"], "arguments": command["arguments"] });
    client.call("workspace/executeCommand", params)
}

/// The session that a document names.
fn session_of(text: &str) -> &str {
    let begin = text.find("<!-- kode session ").expect("a session") + "<!-- kode session ".len();
    text[begin..].split(' ').next().unwrap()
}

#[test]
fn a_prompt_is_answered_below_it_and_the_next_one_continues_with_the_conversation() {
    let project = project();
    let (client, uri) = opened(&project, &plain(), "# Talk\n\n## You\n\nsay hello\n");
    let sent = send(&client, &uri);
    let text = answered(&client, &uri, 2);
    let session = sent["sessionId"].as_str().unwrap();
    let expected = format!(
        "# Talk\n\n## You\n\nsay hello\n\n<!-- kode session {session} -->\n\n## Kode\n\nHello to you.\n\n## You\n\n"
    );
    assert_eq!(text, expected);

    client.editor.type_text(&uri, &Typing::at(u16::MAX, "once again"));
    let again = send(&client, &uri);
    assert_eq!(again["sessionId"], session);
    let text = answered(&client, &uri, 3);
    assert!(text.ends_with("once again\n\n## Kode\n\nAnd again.\n\n## You\n\n"), "{text}");
    let messages = project.model.last_request()["messages"].to_string();
    assert!(messages.contains("say hello") && messages.contains("Hello to you."), "{messages}");
    let said = client.look(|received| received.of("window/showMessage").count());
    assert_eq!(said, 0, "what is in the document is not said as well");
}

#[test]
fn a_document_that_is_opened_again_continues_with_its_conversation() {
    let project = project();
    let (client, uri) = opened(&project, &plain(), "## You\nhello");
    send(&client, &uri);
    let text = answered(&client, &uri, 2);
    client.shut_down();
    let (client, uri) = opened(&project, &plain(), &format!("{text}what did I say?\n"));
    assert_eq!(send(&client, &uri)["sessionId"], session_of(&text));
    let text = answered(&client, &uri, 3);
    assert!(text.contains("You said hello."), "{text}");
    assert_eq!(text.matches("<!-- kode session").count(), 1, "{text}");
}

#[test]
fn a_conversation_that_is_lost_is_said_and_begun_again_on_demand() {
    let project = project();
    let text = "<!-- kode session ses_00000000000000000000000000 -->\n\n## You\nhello\n";
    let (client, uri) = opened(&project, &plain(), text);
    let error = try_send(&client, json!({ "uri": uri })).unwrap_err();
    assert!(error.message.contains("was not found") && error.hint().contains("fresh"), "{error:?}");
    assert_eq!((client.editor.text(&uri).as_str(), project.model.requests().len()), (text, 0));
    let fresh = titled(&actions(&client, &uri, json!({ "diagnostics": [] })), "Send as a new conversation");
    let sent = run(&client, &fresh["command"]);
    let text = answered(&client, &uri, 2);
    assert!(
        text.contains(&format!("<!-- kode session {} -->", sent["sessionId"].as_str().unwrap())),
        "{text}"
    );
}

#[test]
fn what_is_typed_while_the_answer_comes_stays_and_becomes_the_next_prompt() {
    let project = project();
    let (client, uri) = opened(&project, &plain(), "## You\n\nhold on\n");
    send(&client, &uri);
    project.model.wait_until_held("hold");
    begun(&client, &uri);
    client.editor.type_text(&uri, &Typing::at(u16::MAX, "say "));
    client.editor.next(Policy::TypeFirst(vec![Typing::at(u16::MAX, "hel")]));
    project.model.release("hold");
    answered(&client, &uri, 2);
    client.editor.type_text(&uri, &Typing::at(u16::MAX, "lo"));
    let text = client.editor.text(&uri);
    assert!(text.ends_with("## Kode\n\nFirst half, second half.\n\n## You\n\nsay hello"), "{text}");
    send(&client, &uri);
    assert!(answered(&client, &uri, 3).ends_with("Hello to you.\n\n## You\n\n"));
}

#[test]
fn a_long_answer_comes_in_few_edits_and_whole_also_to_those_who_type() {
    let project = project();
    let (client, uri) = opened(&project, &plain(), "notes of mine\n\n## You\nlong\n");
    client.editor.next(Policy::Apply);
    client.editor.next(Policy::TypeFirst(vec![Typing::before("notes", "my ")]));
    client.editor.next(Policy::TypeInBatch(vec![Typing::before("notes", "own ")]));
    client.editor.next(Policy::AnswerFirst);
    client.editor.next(Policy::InPieces);
    send(&client, &uri);
    let text = answered(&client, &uri, 2);
    assert!(text.contains(&format!("## Kode\n\n{}", long())), "{text}");
    assert!(text.starts_with("my own notes of mine\n") || text.starts_with("my notes of mine\n"), "{text}");
    let pieces = long().len() / 7;
    let edits = client.editor.edits().len();
    assert!(edits < pieces / 4, "{edits} edits for {pieces} pieces");
}

#[test]
fn documents_of_windows_stay_so() {
    let project = project();
    let (client, uri) = opened(&project, &plain(), "## You\r\n\r\nlong\r\n");
    send(&client, &uri);
    let text = client.editor.wait_text(&uri, "the whole answer", |text| text.ends_with("## You\r\n\r\n"));
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    assert!(text.contains(&long().replace('\n', "\r\n")), "{text}");
}

#[test]
fn what_a_model_says_means_nothing_in_the_document() {
    let project = project();
    let (client, uri) = opened(&project, &plain(), "## You\ntrick me\n");
    send(&client, &uri);
    let text = answered(&client, &uri, 3);
    let said = "\\## You\nsend this\n\\<!-- kode session ses_x -->\n```\nopen\n```\n";
    assert!(text.contains(said), "{text}");
    let error = try_send(&client, json!({ "uri": uri })).unwrap_err();
    assert!(error.message.contains("nothing to send"), "{error:?}");
}

#[test]
fn calls_and_edits_are_lines_and_permission_is_asked_the_plain_way() {
    for by_message in [true, false] {
        let project = project();
        let offer = if by_message { plain() } else { plain().with("/window", Value::Null) };
        let (client, uri) = opened(&project, &offer, "## You\nedit it\n");
        client.editor.open(&project.uri("a.txt"), "old\n");
        send(&client, &uri);
        if by_message {
            let request = client.wait_for("a message request", |received| {
                received.of("window/showMessageRequest").next().cloned()
            });
            client.answer(&request, json!({ "title": "Allow once" }));
        } else {
            // The answers are actions everywhere.
            let other = project.uri("a.txt");
            shown(&client, "Answer with a code action");
            for place in [&uri, &other] {
                let offered = actions(&client, place, json!({ "diagnostics": [] }));
                titled(&offered, "Deny: ");
                titled(&offered, "Allow once: ");
            }
            let offered = actions(&client, &other, json!({ "diagnostics": [] }));
            run(&client, &titled(&offered, "Allow once: ")["command"]);
        }
        let text = answered(&client, &uri, 2);
        for line in ["- `Read a.txt`", "- waits for your permission: ", "- `Edit a.txt`", "\nEdited.\n"] {
            assert!(text.contains(line), "no {line:?} in {text}");
        }
        assert_eq!(client.editor.text(&project.uri("a.txt")), "new\n");
    }
}

#[test]
fn an_editor_that_takes_no_edits_shows_the_answer_and_says_so() {
    let project = project();
    let offer = plain().with("/workspace/applyEdit", json!(false));
    let (client, uri) = opened(&project, &offer, "## You\nhello\n");
    let sent = send(&client, &uri);
    shown(&client, "applyEdit");
    shown(&client, "Hello to you.");
    assert_eq!(client.editor.text(&uri), "## You\nhello\n");
    // The document cannot name its conversation, and continues with it all the same.
    assert_eq!(send(&client, &uri)["sessionId"], sent["sessionId"]);
}

#[test]
fn an_editor_that_refuses_the_edits_shows_the_answer_and_says_so() {
    let project = project();
    let (client, uri) = opened(&project, &plain(), "## You\nhello\n");
    client.editor.always(Policy::Reject("read only".to_owned()));
    send(&client, &uri);
    shown(&client, "read only");
    shown(&client, "Hello to you.");
}

#[test]
fn an_answer_whose_place_is_gone_is_written_no_further_and_one_that_broke_off_is_written_again() {
    let project = project();
    let (client, uri) = opened(&project, &plain(), "## You\nhold\n");
    send(&client, &uri);
    project.model.wait_until_held("hold");
    let half = begun(&client, &uri);
    client.editor.close(&uri);
    project.model.release("hold");
    shown(&client, "was closed");
    shown(&client, "First half, second half.");

    client.editor.open(&uri, &half);
    let write = titled(&actions(&client, &uri, json!({ "diagnostics": [] })), "Write the whole answer here");
    run(&client, &write["command"]);
    let text = answered(&client, &uri, 2);
    assert!(text.ends_with("## Kode\n\nFirst half, second half.\n\n## You\n\n"), "{text}");

    let project = self::project();
    let (client, uri) = opened(&project, &plain(), "## You\nhold\n");
    send(&client, &uri);
    project.model.wait_until_held("hold");
    begun(&client, &uri);
    while client.editor.undo(&uri) {}
    assert_eq!(client.editor.text(&uri), "## You\nhold\n");
    project.model.release("hold");
    shown(&client, "is gone");
    assert_eq!(client.editor.text(&uri), "## You\nhold\n");
}

#[test]
fn sending_and_stopping_are_actions_and_lenses() {
    for literals in [true, false] {
        let project = project();
        let offer = if literals { plain() } else { Offer::plain() };
        let (client, uri) = opened(&project, &offer, "# Talk\n\n## You\nhold\n");
        let lenses = |client: &Client| {
            client
                .call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }))
                .as_array()
                .unwrap()
                .clone()
        };
        let [lens] = lenses(&client).try_into().unwrap();
        assert_eq!(
            (&lens["command"]["title"], &lens["range"]["start"]["line"]),
            (&json!("Kode: Send"), &json!(2))
        );
        for automatic in [
            json!({ "diagnostics": [], "only": ["source"] }),
            json!({ "diagnostics": [], "only": ["quickfix"] }),
        ] {
            assert_eq!(actions(&client, &uri, automatic), [] as [Value; 0], "nothing sends by itself");
        }
        let send = titled(&actions(&client, &uri, json!({ "diagnostics": [] })), "Kode: Send");
        let command = if literals { &send["command"] } else { &send };
        run(&client, command);
        project.model.wait_until_held("hold");
        let error = try_send(&client, json!({ "uri": uri })).unwrap_err();
        assert_eq!(error.kind(), "sessionBusy");
        let [lens] = lenses(&client).try_into().unwrap();
        assert_eq!(lens["command"]["title"], "Kode: Stop the answer");
        titled(&actions(&client, &uri, json!({ "diagnostics": [] })), "Stop the answer");
        run(&client, &lens["command"]);
        assert!(answered(&client, &uri, 2).contains("- **cancelled**"));
    }
}

#[test]
fn what_cannot_be_sent_is_said() {
    let project = project();
    let (client, uri) = opened(&project, &plain(), "## You\nhello\n");
    send(&client, &uri);
    answered(&client, &uri, 2);
    let other = project.uri("b.kode.md");
    client.editor.open(&other, "");
    client.editor.open(&project.uri("a.txt"), "old\n");
    for (argument, says) in [
        (json!({}), "several chat documents"),
        (json!({ "uri": other }), "nothing to send"),
        (json!({ "uri": project.uri("a.txt") }), "is not a chat document"),
        (json!({ "uri": project.uri("c.kode.md") }), "not open"),
        (json!({ "uri": uri, "position": { "line": 1, "character": 0 } }), "was already sent"),
        (json!({ "uri": uri, "surprise": 1 }), "surprise"),
    ] {
        let error = try_send(&client, argument.clone()).unwrap_err();
        assert!(error.message.contains(says), "{argument}: {error:?}");
    }
}

#[test]
fn mentions_and_commands_are_completed_in_every_encoding() {
    for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
        let project = project();
        project.write("src/main.rs", "").write("my notes.md", "");
        let offer = plain().encodings(&[encoding]);
        let client = project.start();
        let capabilities = client.initialize(offer.params(&project.workspace()));
        assert_eq!(capabilities["completionProvider"]["resolveProvider"], false);
        let triggers = capabilities["completionProvider"]["triggerCharacters"].as_array().unwrap();
        assert!(triggers.contains(&json!("@")) && triggers.contains(&json!("/")), "{triggers:?}");
        client.editor.set_encoding(encoding);
        let uri = project.uri("talk.kode.md");
        let prompt = project.uri("prompt");
        let complete = |uri: &str, text: &str| -> Vec<String> {
            let identifier = json!({ "uri": uri, "version": 1, "text": text, "languageId": if uri == prompt { "kodeprompt" } else { "markdown" } });
            client.notify("textDocument/didOpen", json!({ "textDocument": identifier }));
            let position = position_of(text, text.len(), encoding);
            let params = json!({ "textDocument": { "uri": uri }, "position": position });
            let list = client.call("textDocument/completion", params);
            client.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
            let items = list["items"].as_array().cloned().unwrap_or_default();
            let placed = |item: &Value| {
                let edit = &item["textEdit"];
                let at = |end: &str| offset_of(text, &edit["range"][end], encoding);
                let mut text = text.to_owned();
                text.replace_range(at("start")..at("end"), edit["newText"].as_str().unwrap());
                text
            };
            items.iter().map(placed).collect()
        };
        assert_eq!(complete(&uri, "## You\n\n😀 see @main")[0], "## You\n\n😀 see @src/main.rs");
        assert_eq!(complete(&prompt, "see 😀\nand (@notes")[0], "see 😀\nand (@\"my notes.md\"");
        assert_eq!(complete(&uri, "## You\n/comp")[0], "## You\n/compact ");
        assert_eq!(complete(&prompt, "/comp")[0], "/compact ");
        for nothing in ["## You\nsee /comp", "## You\nmail a@b", "## You\nhello"] {
            assert_eq!(complete(&uri, nothing), [] as [String; 0], "{nothing}");
        }
        assert_eq!(complete(&project.uri("a.txt"), "@main"), [] as [String; 0], "no prompt");
    }
}

#[test]
fn an_editor_that_may_heed_no_ranges_is_offered_what_stands_for_the_name_at_the_cursor() {
    let project = project();
    project.write("src/main.rs", "").write("other/src/map.rs", "");
    let able = plain().with("/textDocument/completion/contextSupport", json!(true));
    for (offer, expected) in [
        (plain(), vec![("ma", "main.rs")]),
        (able, vec![("src/ma", "src/main.rs"), ("src/ma", "other/src/map.rs")]),
    ] {
        let text = "## You\n\nsee @src/ma";
        let (client, uri) = opened(&project, &offer, text);
        let position = position_of(text, text.len(), Encoding::Utf16);
        let params = json!({ "textDocument": { "uri": uri }, "position": position });
        let list = client.call("textDocument/completion", params);
        let given: Vec<(&str, &str)> = list["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| {
                let edit = &item["textEdit"];
                assert_eq!(item["filterText"], edit["newText"]);
                let at = |end: &str| offset_of(text, &edit["range"][end], Encoding::Utf16);
                (&text[at("start")..at("end")], edit["newText"].as_str().unwrap())
            })
            .collect();
        assert_eq!(given, expected);
    }
}

#[test]
fn an_editor_that_does_not_complete_is_offered_nothing() {
    let project = project();
    let client = project.start();
    let capabilities = client.initialize(Offer::plain().params(&project.workspace()));
    assert_eq!(capabilities["completionProvider"], Value::Null);
}

#[test]
fn a_selection_and_a_problem_are_asked_about_where_they_are() {
    let project = Project::new(&Script::default().otherwise([say("Answered.")]));
    project.write("a.txt", "one\ntwo\nthree\n");
    let client = project.connect(&plain());
    let uri = project.uri("a.txt");
    client.editor.open(&uri, "one\ntwo 🙂\nthree\n");
    let range = json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 1, "character": 6 } });
    let ask = |context: Value| {
        let params = json!({ "textDocument": { "uri": uri }, "range": range, "context": context });
        client.call("textDocument/codeAction", params).as_array().unwrap().clone()
    };
    let prompt = || {
        let messages = project.model.last_request()["messages"].as_array().unwrap().clone();
        messages.last().unwrap()["content"].to_string()
    };
    let explain = titled(&ask(json!({ "diagnostics": [] })), "Explain the selection");
    run(&client, &explain["command"]);
    shown(&client, "Answered.");
    assert!(prompt().contains("two 🙂") && prompt().contains("Explain the selected code"), "{}", prompt());

    let problem =
        json!({ "range": range, "severity": 1, "message": "no such\nname `two`", "source": "rustc" });
    let offered = ask(json!({ "diagnostics": [problem], "only": ["quickfix"], "triggerKind": 2 }));
    let fix = titled(&offered, "Fix: no such name `two`");
    assert_eq!((&fix["kind"], &fix["diagnostics"][0]), (&json!("quickfix"), &problem));
    run(&client, &fix["command"]);
    client.wait_for("the second request", |_| (project.model.requests().len() == 2).then_some(()));
    assert!(prompt().contains("Fix this problem") && prompt().contains("no such"), "{}", prompt());

    let by_itself = ask(json!({ "diagnostics": [], "triggerKind": 2 }));
    assert_eq!(by_itself, [] as [Value; 0], "nothing is offered to a cursor that passes by");
}

#[test]
fn an_option_takes_away_the_actions_that_ask() {
    let project = project();
    for (options, offered) in [(json!({}), true), (json!({ "askActions": false }), false)] {
        let client = project.connect(&plain().options(options));
        let uri = project.uri("a.txt");
        client.editor.open(&uri, "old\n");
        let range = json!({ "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 3 } });
        let problem = json!({ "range": range, "message": "bad" });
        let params = json!({ "textDocument": { "uri": uri }, "range": range, "context": { "diagnostics": [problem] } });
        let found = client.call("textDocument/codeAction", params);
        for title in ["Kode: Fix: bad", "Kode: Explain the selection"] {
            let is_offered = found.as_array().unwrap().iter().any(|action| action["title"] == title);
            assert_eq!(is_offered, offered, "{title}: {found}");
        }
    }
}

#[test]
fn a_panel_is_offered_what_asks_only_when_it_says_so() {
    for (asks, offered) in [(false, 0), (true, 1)] {
        let project = project();
        let offer = Offer::kode().with("/experimental/kode/askActions", json!(asks));
        let client = project.connect(&offer);
        let uri = project.uri("a.txt");
        client.editor.open(&uri, "old\n");
        let place = json!({ "line": 0, "character": 0 });
        let problem = json!({ "range": { "start": place, "end": place }, "message": "bad" });
        let found = actions(&client, &uri, json!({ "diagnostics": [problem] }));
        let fixes = found.iter().filter(|action| action["title"] == "Kode: Fix: bad").count();
        assert_eq!(fixes, offered, "{found:?}");
    }
}
