//! Questions of the model to the user: answers, races, cancelling, plans; and the todo list and skills beside it.

use kode_e2e::{Client, Offer, Project, Reply, Script, Session, Step, call, say, step, text_of};
use serde_json::{Value, json};

fn question() -> Step {
    let options = json!([{ "label": "serde", "description": "The usual." }, { "label": "miniserde" }]);
    let inquiry = json!({ "question": "Which library?", "header": "Library", "options": options });
    call("AskUserQuestion", json!({ "questions": [inquiry] }))
}

fn wait_question(session: &Session<'_>) -> Value {
    session.wait_event("a question", |event| event["type"] == "question_asked")["question"].clone()
}

fn reply(session: &Session<'_>, question: &Value, label: &str) -> Result<Value, kode_e2e::RpcError> {
    session.request(
        "agent/question/respond",
        json!({ "questionId": question["questionId"], "answers": [{ "labels": [label] }] }),
    )
}

fn only_result(project: &Project) -> (String, bool) {
    let [result] = project.model.last_results().try_into().expect("one result");
    result
}

#[test]
fn a_question_waits_in_the_snapshot_and_its_answer_reaches_the_model() {
    let project = Project::new(&Script::new([question(), say("Thanks.")]));
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let asked = wait_question(&session);
    let snapshot = session.snapshot();
    assert_eq!((&snapshot["questions"], &snapshot["state"]), (&json!([asked]), &json!("PAUSED")));
    assert_eq!(asked["questions"][0]["options"][0]["label"], "serde");
    assert_eq!(session.calls()[0]["state"], "APPROVAL_REQUIRED");

    let wrong = reply(&session, &asked, "bincode").unwrap_err();
    assert_eq!(
        (wrong.kind(), &wrong.data["path"]),
        ("invalidParams", &json!("answers[0].labels")),
        "{wrong:?}"
    );
    let unknown = reply(&session, &json!({ "questionId": "ques_none" }), "serde").unwrap_err();
    assert_eq!(unknown.kind(), "unknownQuestion", "{unknown:?}");
    let words = json!({ "questionId": asked["questionId"], "answers": [{ "labels": ["serde"], "text": "with derive" }] });
    session.call("agent/question/respond", words);

    assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");
    let (text, is_error) = only_result(&project);
    assert!(!is_error && text.contains("Which library? → serde; with derive"), "{text}");
    let answered = session.wait_event("the answer", |event| event["type"] == "question_answered");
    assert_eq!((&answered["outcome"], &answered["by"]), (&json!("answered"), &json!("kode-e2e")));
    assert_eq!(session.snapshot()["questions"], json!([]));
}

#[test]
fn of_two_answers_the_first_counts_and_a_refusal_is_one() {
    let project = Project::new(&Script::new([question(), say("Thanks.")]));
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let asked = wait_question(&session);
    let refused = json!({ "questionId": asked["questionId"], "feedback": "you decide" });
    let both = [refused, json!({ "questionId": asked["questionId"], "answers": [{ "labels": ["serde"] }] })];
    let both = both.map(|mut params| {
        params["sessionId"] = json!(session.id);
        client.send_request("agent/question/respond", params)
    });
    let [first, second] = both.map(|request| client.await_answer(request));
    let (taken, late) = if first.is_ok() { (first, second) } else { (second, first) };
    let late = late.expect_err("only one answer is taken");
    assert!(taken.is_ok() && late.kind() == "alreadyResolved", "{late:?}");
    assert_eq!(late.data["by"], "kode-e2e");
    session.wait_done(&turn);
    let outcomes = session.events().into_iter().filter(|event| event["type"] == "question_answered");
    let [outcome] = <[Value; 1]>::try_from(outcomes.collect::<Vec<_>>()).expect("one outcome");
    let (text, is_error) = only_result(&project);
    assert_eq!(is_error, outcome["outcome"] == "refused", "{text}");
}

#[test]
fn a_cancelled_question_leaves_its_siblings_and_the_session_alone() {
    let script = Script::new([
        step()
            .call("AskUserQuestion", question_input())
            .call("Read", json!({ "file_path": "{{cwd}}/a.txt" })),
        say("Ok."),
    ]);
    let project = Project::new(&script);
    project.write("a.txt", "text\n");
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let asked = wait_question(&session);
    session.wait_event("the end of the other call", |event| {
        event["type"] == "tool:end" && event["item"]["body"]["name"] == "Read"
    });
    session.call("agent/tool/cancel", json!({ "callId": asked["callId"] }));
    assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");
    let results = project.model.last_results();
    assert!(results[0].1 && !results[1].1 && results[1].0.contains("text"), "{results:?}");
    assert_eq!(reply(&session, &asked, "serde").unwrap_err().data["by"], "cancel");
}

fn question_input() -> Value {
    let options = json!([{ "label": "serde" }, { "label": "miniserde" }]);
    json!({ "questions": [{ "question": "Which library?", "header": "Library", "options": options }] })
}

fn offered(request: &Value) -> Vec<String> {
    let tools = request["tools"].as_array().expect("tools").iter();
    tools.map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_plan_is_refused_with_words_and_then_accepted_and_nothing_is_edited_before() {
    let edit = json!({ "file_path": "{{cwd}}/new.txt", "content": "new\n" });
    let script = Script::new([
        call("EnterPlanMode", json!({})),
        call("Write", edit.clone()),
        call("ExitPlanMode", json!({ "plan": "1. Write `new.txt`." })),
        call("ExitPlanMode", json!({ "plan": "1. Write `new.txt`.\n2. Test." })),
        call("Write", edit),
        say("Done."),
    ]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    let first = wait_question(&session);
    assert_eq!(first["plan"], "1. Write `new.txt`.");
    assert_eq!(session.snapshot()["mode"], "plan");
    assert!(!project.path("new.txt").exists(), "plan mode lets nothing be written");
    let no = json!({
        "questionId": first["questionId"],
        "answers": [{ "labels": ["Keep planning"], "text": "and the tests?" }],
    });
    session.call("agent/question/respond", no);
    let second = session.wait_event("the second plan", |event| {
        event["type"] == "question_asked" && event["question"]["questionId"] != first["questionId"]
    })["question"]
        .clone();
    let results = project.model.last_results();
    assert!(results[0].1 && results[0].0.contains("and the tests?"), "{results:?}");
    reply(&session, &second, "Accept it and edit without asking").unwrap();
    assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");

    assert_eq!(session.snapshot()["mode"], "acceptEdits");
    assert_eq!(project.read("new.txt"), "new\n");
    let modes: Vec<Value> = session
        .events()
        .iter()
        .filter(|event| event["type"] == "mode_changed")
        .map(|event| event["mode"].clone())
        .collect();
    assert_eq!(modes, ["plan", "acceptEdits"]);
    let states: Vec<Value> = session.calls().iter().map(|call| call["state"].clone()).collect();
    assert_eq!(states, ["COMPLETED", "DENIED", "DENIED", "COMPLETED", "COMPLETED"]);
    let requests = project.model.requests();
    let (before, planning) = (offered(&requests[0]), offered(&requests[1]));
    for (tool, in_default, in_plan) in [
        ("Edit", true, false),
        ("Write", true, false),
        ("MultiEdit", true, false),
        ("EnterPlanMode", true, false),
        ("ExitPlanMode", false, true),
        ("TodoWrite", true, true),
        ("AskUserQuestion", true, true),
        ("Bash", true, true),
        ("Diagnostics", false, false),
        ("Skill", false, false),
    ] {
        let has = |tools: &[String]| tools.iter().any(|name| name == tool);
        assert_eq!((has(&before), has(&planning)), (in_default, in_plan), "{tool}");
    }
}

#[test]
fn the_todo_list_is_reported_listed_and_survives_a_kill() {
    let todos = json!([
        { "content": "Read", "status": "completed", "activeForm": "Reading" },
        { "content": "Edit", "status": "in_progress", "activeForm": "Editing" },
    ]);
    let held = say("Held.").gate("held", 0);
    let script = Script::new([call("TodoWrite", json!({ "todos": todos })), held]);
    let project = Project::new(&script);
    let id = {
        let client = project.open();
        let session = client.session();
        session.prompt("go");
        project.model.wait_until_held("held");
        let changed = session.wait_event("the list", |event| event["type"] == "todo_changed");
        let counts = json!({ "total": 2, "pending": 0, "inProgress": 1, "completed": 1 });
        assert_eq!((&changed["todos"], &changed["counts"]), (&todos, &counts));
        let (text, _) = only_result(&project);
        assert_eq!(text, "[x] Read\n[>] Edit (Editing)\n(1 of 2 done)");
        let id = session.id.clone();
        client.kill();
        client.wait_for_end();
        id
    };
    let client = project.open();
    let session = Session::new(&client, &id);
    assert_eq!(session.snapshot()["todos"], todos);
    let listed = session.call("agent/todos/list", json!({}));
    assert_eq!((&listed["todos"], &listed["counts"]["completed"]), (&todos, &json!(1)));
    project.model.release("held");
}

#[test]
fn the_first_request_alone_has_the_initial_reminder_and_the_history_none() {
    let project = Project::new(&Script::new([call("Glob", json!({ "pattern": "*" })), say("Done.")]));
    let client = project.open();
    let session = client.session();
    session.run("go");
    let has = |request: &Value| request["messages"].to_string().contains("There is no todo list yet");
    let requests = project.model.requests();
    assert_eq!(requests.iter().map(has).collect::<Vec<_>>(), [true, false]);
    let reminded = session.wait_event("the reminder", |event| event["type"] == "todo_reminder");
    assert_eq!(reminded["reason"], "initial");
}

#[test]
fn a_skill_is_listed_by_what_it_is_for_and_read_when_it_is_used() {
    let use_it = call("Skill", json!({ "skill": "release-it", "args": "1.2" }));
    let project = Project::new(&Script::new([use_it, say("Done.")]));
    let skill = "---\ndescription: Makes a release.\n---\nBump the version to $0.";
    project.write(".claude/skills/release-it/SKILL.md", skill);
    let client = project.open();
    let session = client.session();
    session.run("go");
    let request = project.model.last_request();
    let tools = request["tools"].as_array().unwrap();
    let listed = tools.iter().find(|tool| tool["name"] == "Skill").expect("it is offered");
    let description = text_of(&listed["description"]);
    assert!(
        description.contains("- release-it: Makes a release.") && !description.contains("Bump"),
        "{description}"
    );
    let (text, is_error) = only_result(&project);
    assert!(!is_error && text.ends_with("Bump the version to 1.2."), "{text}");
}

fn ask(client: &Client) {
    let arguments = json!([{ "text": "go" }]);
    client.call("workspace/executeCommand", json!({ "command": "kode.ask", "arguments": arguments }));
}

/// Waits for the `n`th message request, counted from 0.
fn asked(client: &Client, n: usize) -> Value {
    client.wait_for("a message request", |received| received.of("window/showMessageRequest").nth(n).cloned())
}

fn shown(client: &Client, text: &str) {
    client.wait_for(&format!("the message {text:?}"), |received| {
        let mut messages = received.of("window/showMessage");
        let fits =
            |message: &&Value| message["params"]["message"].as_str().is_some_and(|said| said.contains(text));
        messages.find(fits).map(drop)
    });
}

fn titles(request: &Value) -> Vec<String> {
    let actions = request["params"]["actions"].as_array().expect("actions").iter();
    actions.map(|action| action["title"].as_str().expect("a title").to_owned()).collect()
}

fn two_questions() -> Script {
    let mut input = question_input();
    let options = json!([{ "label": "fast" }, { "label": "small" }, { "label": "safe" }]);
    let several =
        json!({ "question": "What matters?", "header": "Aims", "options": options, "multiSelect": true });
    input["questions"].as_array_mut().unwrap().push(several);
    Script::new([call("AskUserQuestion", input), say("Thanks to you.")])
}

#[test]
fn an_editor_without_a_plugin_asks_one_thing_after_the_other_by_messages() {
    let project = Project::new(&two_questions());
    let client = project.connect(&Offer::plain());
    ask(&client);
    let first = asked(&client, 0);
    assert!(first["params"]["message"].as_str().unwrap().contains("Which library?"), "{first}");
    assert_eq!(titles(&first), ["serde", "miniserde", "Do not answer"]);
    client.answer(&first, json!({ "title": "serde" }));
    let second = asked(&client, 1);
    assert_eq!(titles(&second), ["fast", "small", "safe", "Do not answer"]);
    client.answer(&second, json!({ "title": "small" }));
    let third = asked(&client, 2);
    assert_eq!(titles(&third), ["fast", "safe", "Done", "Do not answer"]);
    client.answer(&third, json!({ "title": "safe" }));
    client.answer(&asked(&client, 3), json!({ "title": "Done" }));
    shown(&client, "Thanks to you.");
    let (text, is_error) = only_result(&project);
    assert!(!is_error && text.contains("→ serde") && text.contains("→ small, safe"), "{text}");
}

#[test]
fn a_closed_message_leaves_the_question_open_for_the_command() {
    let project = Project::new(&two_questions());
    let client = project.connect(&Offer::plain());
    ask(&client);
    client.answer(&asked(&client, 0), Value::Null);
    shown(&client, "kode.answer");
    let answer = |argument: Value| {
        let params = json!({ "command": "kode.answer", "arguments": [argument] });
        client.request("workspace/executeCommand", params)
    };
    let error = answer(json!({})).unwrap_err();
    assert!(error.kind() == "invalidParams" && error.message.contains("What matters?"), "{error:?}");
    answer(json!({ "answers": ["in words", ["fast", "safe"]] })).unwrap();
    shown(&client, "Thanks to you.");
    let (text, _) = only_result(&project);
    assert!(text.contains("→ in words") && text.contains("→ fast, safe"), "{text}");
    assert_eq!(answer(json!({ "refuse": true })).unwrap_err().kind(), "unknownQuestion");
}

#[test]
fn nobody_there_is_an_answer_at_once() {
    let project = Project::new(&Script::new([question(), say("On my own.")]));
    let output = project.run(&["run", "go"], "");
    assert_eq!((output.code, output.stdout.as_str()), (0, "On my own.\n"), "{output:?}");
    let (text, is_error) = only_result(&project);
    assert!(is_error && text.contains("No user can answer"), "{text}");
}

#[test]
fn what_the_language_servers_say_reaches_the_model_from_an_editor_that_reports_it() {
    let script = Script::new([call("Diagnostics", json!({ "path": "{{cwd}}/a.txt" })), say("Seen.")]);
    let project = Project::new(&script);
    project.write("a.txt", "äöü oops\n");
    let uri = project.uri("a.txt");
    let client = project.start();
    let reported = uri.clone();
    client.on_request("agent/editor/diagnostics", move |_, request| {
        assert_eq!(request["params"]["uris"], json!([reported]));
        let range = json!({ "start": { "line": 0, "character": 4 }, "end": { "line": 0, "character": 8 } });
        let diagnostic =
            json!({ "range": range, "severity": 1, "message": "unknown word", "source": "spell" });
        Reply::Result(json!({ "files": [{ "uri": reported, "version": 1, "diagnostics": [diagnostic] }] }))
    });
    let offer = Offer::kode().with("/experimental/kode/diagnostics", json!(true));
    client.initialize(offer.params(&project.workspace()));
    client.editor.open(&uri, "äöü oops\n");
    client.session().run("go");
    let (text, is_error) = only_result(&project);
    assert!(!is_error && text.contains("1:5 error: unknown word [spell]"), "{text}");
    assert!(offered(&project.model.last_request()).contains(&"Diagnostics".to_owned()));
}
