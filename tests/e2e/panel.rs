//! The needs of a panel beside the events of a session: titles at once, lists that follow other windows, texts that are put
//! in by hand, words to the model about a review, virtual documents that follow the text.

use kode_e2e::{Client, Offer, Project, Script, call, say};
use serde_json::{Value, json};

fn script() -> Script {
    Script::default()
        .when(
            "^edit",
            [
                call("Read", json!({ "file_path": "{{cwd}}/a.txt" })),
                call(
                    "MultiEdit",
                    json!({ "file_path": "{{cwd}}/a.txt", "edits": [
                        { "old_string": "one", "new_string": "ONE" },
                        { "old_string": "five", "new_string": "FIVE" },
                    ] }),
                ),
                say("Edited."),
            ],
        )
        .otherwise([say("Said.")])
}

const TEXT: &str = "one\ntwo\nthree\nfour\nfive\n";

fn project() -> Project {
    let project = Project::new(&script());
    project.write("a.txt", TEXT);
    project
}

fn last_prompt(project: &Project) -> String {
    let request = project.model.last_request();
    let messages = request["messages"].as_array().unwrap();
    messages.iter().rev().find(|message| message["role"] == "user").unwrap()["content"].to_string()
}

#[test]
fn the_first_prompt_gives_the_session_its_title_at_once() {
    let project = project();
    let client = project.open();
    let session = client.session();
    session.run("find the bug\nand mend it");
    let named = session.wait_event("a title", |event| event["type"] == "title_changed");
    assert_eq!(named["title"], "find the bug");
    let titles = |events: Vec<Value>| events.iter().filter(|event| event["type"] == "title_changed").count();
    session.run("and another one");
    assert_eq!(titles(session.events()), 1, "later prompts name nothing");
    let first = session.events().iter().position(|event| event["type"] == "title_changed").unwrap();
    let is_answer = |event: &Value| event["item"]["body"]["type"] == "agentMessage";
    let answer = session.events().iter().position(is_answer).unwrap();
    assert!(first < answer, "before the model has answered");
}

#[test]
fn a_window_that_lists_sessions_is_reported_when_another_one_changes_them() {
    let project = project();
    let (one, two) = (project.open(), project.open());
    let reported = |client: &Client| client.look(|received| received.of("agent/session/listChanged").count());
    let wait = |client: &Client, before: usize| {
        client.wait_for("news of the list", |received| {
            (received.of("agent/session/listChanged").count() > before).then_some(())
        });
    };
    one.call("agent/session/list", json!({}));
    let session = two.session();
    session.run("hello");
    wait(&one, 0);
    let listed = |client: &Client| client.call("agent/session/list", json!({}))["sessions"].clone();
    let before = reported(&one);
    session.call("agent/session/rename", json!({ "title": "Renamed" }));
    wait(&one, before);
    assert_eq!(listed(&one)[0]["title"], "Renamed");
    let before = reported(&one);
    session.call("agent/session/delete", json!({}));
    wait(&one, before);
    assert_eq!(listed(&one), json!([]));
    assert_eq!(reported(&two), 0, "who has not listed sessions is not told");
}

#[test]
fn a_text_that_the_user_applies_is_a_hunk_like_the_agents_own() {
    let project = project();
    let client = project.open();
    let uri = project.uri("a.txt");
    client.editor.open(&uri, TEXT);
    let session = client.session();
    session.run("hello");
    let range = json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 2, "character": 0 } });
    let applied = session.call("agent/edits/propose", json!({ "uri": uri, "range": range, "text": "TWO\n" }));
    assert_eq!(client.editor.text(&uri), TEXT.replace("two", "TWO"));
    let [hunk] = session.hunks().try_into().unwrap();
    assert_eq!((&hunk["state"], &hunk["oldText"]), (&json!("applied"), &json!("two\n")));
    assert_eq!(applied["hunkIds"], json!([hunk["hunkId"]]));
    session.run("what now?");
    assert!(
        last_prompt(&project).contains("put a text of your answer into `a.txt`"),
        "{}",
        last_prompt(&project)
    );
    session.resolve(&[&hunk], "undo");
    assert_eq!(client.editor.text(&uri), TEXT);

    // A file that is not there is made, one outside the workspace is not.
    session.call("agent/edits/propose", json!({ "uri": project.uri("new/b.txt"), "text": "made\n" }));
    assert_eq!(project.read("new/b.txt"), "made\n");
    let outside = url::Url::from_file_path(project.outside().join("c.txt")).unwrap();
    for (params, says) in [
        (json!({ "uri": outside, "text": "x" }), "open it first"),
        (json!({ "uri": uri, "text": TEXT }), "has this text already"),
        (json!({ "uri": "no uri", "text": "x" }), "is not a URI"),
    ] {
        let error = session.request("agent/edits/propose", params).unwrap_err();
        assert!(error.message.contains(says), "{error:?}");
    }
    assert!(!project.outside().join("c.txt").exists());
}

#[test]
fn what_the_user_says_about_hunks_reaches_the_model() {
    let project = project();
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("edit");
    session.wait_permission(0);
    let hunks = session.hunks();
    let decide = |hunk: &Value, action: &str, text: &str| {
        let selection = json!({ "type": "hunks", "sessionId": session.id, "hunkIds": [hunk["hunkId"]] });
        let params = json!({ "selection": selection, "action": action, "text": text });
        client.call("agent/edits/resolve", params)
    };
    decide(&hunks[0], "accept", "the first is fine");
    decide(&hunks[1], "reject", "leave five alone");
    session.wait_done(&turn);
    assert_eq!(project.read("a.txt"), TEXT.replace("one", "ONE"));
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    for expected in ["accepted only a part", "the first is fine", "leave five alone"] {
        assert!(text.contains(expected) && !is_error, "no {expected:?} in {text}");
    }
    assert!(!text.contains("Made") && text.contains("a.txt changed: +1 -1"), "{text}");
    decide(&session.hunks()[0], "keep", "I like\nthis one");
    session.run("go on");
    let prompt = last_prompt(&project);
    assert!(prompt.contains("I like") && prompt.contains("this one"), "{prompt}");
    session.run("and on");
    assert!(!last_prompt(&project).contains("I like"), "it is told once");
}

#[test]
fn a_virtual_document_that_was_read_is_read_again_when_it_is_another_text() {
    for is_offered in [true, false] {
        let project = project();
        let content = if is_offered { json!({ "dynamicRegistration": false }) } else { Value::Null };
        let client = project.connect(&Offer::kode().with("/workspace/textDocumentContent", content));
        let uri = project.uri("a.txt");
        client.editor.open(&uri, TEXT);
        let session = client.session_with(json!({ "mode": "acceptEdits" }));
        session.run("edit");
        let [file] = session.edited_files().try_into().unwrap();
        let baseline = file["baselineUri"].clone();
        let read =
            || client.call("workspace/textDocumentContent", json!({ "uri": baseline }))["text"].clone();
        assert_eq!(read(), TEXT);
        let hunks = session.hunks();
        session.resolve(&[&hunks[0]], "keep");
        let asked = |received: &kode_e2e::Received| {
            received
                .of("workspace/textDocumentContent/refresh")
                .map(|one| one["params"]["uri"].clone())
                .next()
        };
        if is_offered {
            assert_eq!(client.wait_for("a refresh", asked), baseline);
            assert_eq!(read(), TEXT.replace("one", "ONE"));
        } else {
            session.run("hello");
            assert_eq!(client.look(asked), None);
        }
    }
}
