//! A turn from prompt to answer: what the model is sent, what the editor is sent, what the client is notified.

use std::fs;
use std::path::{Path, PathBuf};

use kode_e2e::{Project, Script, Session, call, results_of, say, step, text_of};
use serde_json::{Value, json};

fn types(session: &Session<'_>) -> Vec<String> {
    let text = |event: &Value| event["type"].as_str().unwrap_or_default().to_owned();
    session.events().iter().map(text).collect()
}

fn place(types: &[String], wanted: &str) -> usize {
    types.iter().position(|found| found == wanted).unwrap_or_else(|| panic!("no {wanted} in {types:?}"))
}

/// All files below a folder.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn read_edit_bash() -> Script {
    Script::new([
        step()
            .thinking("First I look.")
            .text("I look at it.")
            .call("Read", json!({ "file_path": "{{cwd}}/src/a.txt" })),
        step().text("I change it.").call(
            "Edit",
            json!({
                "file_path": "{{cwd}}/src/a.txt", "old_string": "unsaved text", "new_string": "edited text",
            }),
        ),
        call("Bash", json!({ "command": "expr from-$((6 * 7))" })),
        say("All done."),
    ])
}

#[test]
fn a_turn_reads_the_buffer_edits_it_runs_a_command_and_answers() {
    let project = Project::new(&read_edit_bash());
    project.write("src/a.txt", "disk text\nsecond line\n");
    let client = project.open();
    let uri = project.uri("src/a.txt");
    client.editor.open(&uri, "unsaved text\nsecond line\n");
    let session = client.session();
    let turn = session.prompt("go");

    let edit = session.wait_permission(0);
    assert_eq!(edit["tool"], "Edit");
    let preview = edit["preview"]["unified"].as_str().unwrap();
    assert!(preview.contains("-unsaved text") && preview.contains("+edited text"), "{preview}");
    let snapshot = session.snapshot();
    assert_eq!(snapshot["state"], "PAUSED");
    assert_eq!(snapshot["pendingPermissions"], json!([edit]));
    assert!(client.editor.edits().is_empty(), "nothing is changed before the answer");
    session.allow(0);

    let bash = session.wait_permission(1);
    assert_eq!(bash["preview"]["command"], "expr from-$((6 * 7))");
    assert_eq!(client.editor.text(&uri), "edited text\nsecond line\n");
    session.allow(1);
    let done = session.wait_done(&turn);
    assert_eq!(done["stopReason"], "end_turn", "{done}");

    let [edit] = client.editor.edits().try_into().expect("one edit of the document");
    assert!(edit.applied);
    assert!(edit.params["label"].as_str().is_some_and(|label| !label.is_empty()), "{}", edit.params);
    assert_eq!(edit.params["edit"]["documentChanges"][0]["textDocument"]["version"], 1);
    assert_eq!(project.read("src/a.txt"), "disk text\nsecond line\n", "saving is the user's");

    let requests = project.model.requests();
    assert_eq!(requests.len(), 4);
    let results = |request: &Value| results_of(request["messages"].as_array().unwrap().last().unwrap());
    let read = results(&requests[1]);
    assert!(read[0].0.contains("unsaved text") && !read[0].0.contains("disk text"), "{read:?}");
    assert!(!results(&requests[2])[0].1);
    let bash = results(&requests[3]);
    assert!(bash[0].0.contains("from-42") && !bash[0].1, "{bash:?}");
    // The signed thinking goes back unchanged.
    let answer = &requests[1]["messages"][1]["content"];
    assert_eq!((&answer[0]["type"], &answer[0]["signature"]), (&json!("thinking"), &json!("signed")));
}

#[test]
fn events_come_in_order_and_without_gaps() {
    let project = Project::new(&read_edit_bash());
    project.write("src/a.txt", "unsaved text\n");
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("go");
    session.allow(0);
    session.allow(1);
    session.wait_done(&turn);
    session.wait_event("the session to be ready", |event| {
        event["type"] == "state_changed" && event["state"] == "READY"
    });

    let mut last = 0;
    for record in session.records() {
        let seq = record["bookmark"]["seq"].as_u64().unwrap();
        // Pieces of one text that are sent together carry the number of the last.
        let gathered = ["text_chunk", "think_chunk"].contains(&record["event"]["type"].as_str().unwrap());
        assert!(seq == last + 1 || (gathered && seq > last), "{seq} after {last}: {record}");
        last = seq;
    }
    let events = session.events();
    let states: Vec<&str> = events
        .iter()
        .filter(|event| event["type"] == "state_changed")
        .map(|event| event["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["WORKING", "PAUSED", "WORKING", "PAUSED", "WORKING", "READY"]);

    let types = types(&session);
    assert!(place(&types, "turn_started") < place(&types, "item_added"));
    for call in session.calls() {
        let of_call = |wanted: &str| {
            let found = events.iter().position(|event| {
                event["type"] == wanted && event["item"]["body"]["callId"] == call["callId"]
            });
            found.unwrap_or_else(|| panic!("no {wanted} for {call}"))
        };
        assert!(of_call("tool:start") < of_call("tool:end"), "{call}");
    }
    let message = events.iter().position(|event| event["item"]["body"]["type"] == "agentMessage").unwrap();
    assert!(message < place(&types, "tool:start"), "the model's words come before its first call runs");
    assert!(place(&types, "permission_required") < place(&types, "permission_decided"));

    // The snapshot is what the events add up to.
    let snapshot = session.snapshot();
    assert_eq!(snapshot["bookmark"]["seq"], last);
    assert_eq!((&snapshot["state"], &snapshot["pendingPermissions"]), (&json!("READY"), &json!([])));
}

#[cfg(unix)]
#[test]
fn the_journal_is_readable_by_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;

    let project = Project::new(&Script::new([say("Hello.")]));
    let client = project.open();
    client.session().run("hi");
    let journals: Vec<PathBuf> =
        files(&project.home()).into_iter().filter(|path| path.ends_with("journal.jsonl")).collect();
    let [journal] = journals.try_into().expect("one journal");
    assert_eq!(fs::metadata(&journal).unwrap().permissions().mode() & 0o777, 0o600);
    let folder = journal.parent().unwrap();
    assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o077, 0, "{}", folder.display());
    let text = fs::read_to_string(&journal).unwrap();
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
    assert!(!text.contains("test-key"));
}

#[test]
fn parallel_reads_get_their_results_in_the_order_of_the_calls() {
    let read = |name: &str| json!({ "file_path": format!("{{{{cwd}}}}/{name}.txt") });
    let reads = ["one", "two", "three", "four"];
    let all = reads.iter().fold(step(), |step, name| step.call("Read", read(name)));
    let project = Project::new(&Script::new([all, say("Read.")]));
    for name in reads {
        project.write(&format!("{name}.txt"), format!("this is {name}\n"));
    }
    let client = project.open();
    client.session().run("read all");
    let results = project.model.last_results();
    assert_eq!(results.len(), reads.len());
    for ((text, is_error), name) in results.iter().zip(reads) {
        assert!(text.contains(&format!("this is {name}")) && !is_error, "{results:?}");
    }
}

#[test]
fn a_prompt_handed_in_while_busy_is_queued_and_then_runs() {
    let script =
        Script::default().when("^first", [say("One.").gate("hold", 0)]).when("^second", [say("Two.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    let first = session.prompt("first");
    project.model.wait_until_held("hold");
    let queued = session.submit("second");
    assert!(queued["queueId"].is_string(), "{queued}");
    let queue = session.snapshot()["queue"].clone();
    assert_eq!(
        (queue[0]["queueId"].clone(), queue[0]["text"].clone()),
        (queued["queueId"].clone(), json!("second"))
    );
    project.model.release("hold");
    session.wait_done(&first);
    session.wait_event("the end of the second turn", |event| {
        event["type"] == "done" && event["turnId"] != first.as_str()
    });
    let prompts: Vec<String> = project.model.requests().iter().map(last_text).collect();
    assert_eq!(prompts, ["first", "second"]);
    assert_eq!(session.snapshot()["queue"], json!([]));
}

/// The newest prompt, without what the model is reminded of beside it.
fn last_text(request: &Value) -> String {
    let text = text_of(&request["messages"].as_array().unwrap().last().unwrap()["content"]);
    text.split("<system-reminder>").next().unwrap_or_default().to_owned()
}

#[test]
fn cancelling_while_the_model_streams_keeps_what_was_said_and_the_session_continues() {
    let script = Script::default()
        .when("^talk", [say("one two three four five six").chunk(4).gate("middle", 6)])
        .when("^again", [say("I am here.")]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session();
    let turn = session.prompt("talk");
    project.model.wait_until_held("middle");
    session.wait_event("the first words", |event| event["item"]["body"]["type"] == "agentMessage");
    session.call("agent/turn/cancel", json!({}));
    let done = session.wait_done(&turn);
    assert_eq!(done["stopReason"], "cancelled", "{done}");
    let items = session.items();
    let message = items.iter().find(|item| item["body"]["type"] == "agentMessage").unwrap();
    assert_eq!(message["body"]["interrupted"], true, "{message}");
    assert!(message["body"]["text"].as_str().unwrap().starts_with("one "), "{message}");

    assert_eq!(session.run("again")["stopReason"], "end_turn");
    let again = project.model.last_request();
    assert!(again["messages"][1]["content"][0]["text"].as_str().unwrap().starts_with("one "), "{again}");
}

#[test]
fn cancelling_a_turn_ends_its_command_and_withdraws_its_prompts() {
    let script = Script::default()
        .when("^run", [call("Bash", json!({ "command": "expr started; sleep 600" })), say("never")])
        .when("^ask", [call("Bash", json!({ "command": "expr asked" })), say("never")])
        .when("^after", [say("Fine.")]);
    let project = Project::new(&script);
    let client = project.open();

    let running = client.session_with(json!({ "mode": "bypassPermissions" }));
    let turn = running.prompt("run");
    running.wait_event("output of the command", |event| event["type"] == "tool:progress");
    running.call("agent/turn/cancel", json!({}));
    assert_eq!(running.wait_done(&turn)["stopReason"], "cancelled");
    assert_eq!(running.run("after")["stopReason"], "end_turn");

    let asking = client.session();
    let turn = asking.prompt("ask");
    let prompt = asking.wait_permission(0);
    asking.call("agent/turn/cancel", json!({}));
    assert_eq!(asking.wait_done(&turn)["stopReason"], "cancelled");
    assert_eq!(asking.snapshot()["pendingPermissions"], json!([]));
    let error = asking.respond(&prompt, json!({ "decision": "allow", "scope": "once" })).unwrap_err();
    assert_eq!((error.kind(), &error.data["by"]), ("alreadyResolved", &json!("cancel")), "{error:?}");
    assert_eq!(asking.run("after")["stopReason"], "end_turn");
}

#[test]
fn cancelling_one_call_leaves_its_siblings_alone() {
    let both = step()
        .call("Bash", json!({ "command": "expr begun; sleep 600" }))
        .call("Bash", json!({ "command": "expr sibling" }));
    let project = Project::new(&Script::new([both, say("Done.")]));
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    let turn = session.prompt("go");
    let start = session.wait_event("the first call to run", |event| event["type"] == "tool:start");
    let call = &start["item"]["body"]["callId"];
    session.call("agent/tool/cancel", json!({ "callId": call }));
    assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");
    let results = project.model.last_results();
    assert_eq!(results.len(), 2);
    assert!(results[0].1, "{results:?}");
    assert!(results[1].0.contains("sibling") && !results[1].1, "{results:?}");
}

#[test]
fn grep_finds_unsaved_and_untitled_text_and_not_what_is_gone() {
    let script =
        Script::new([call("Grep", json!({ "pattern": "needle", "output_mode": "content" })), say("Found.")]);
    let project = Project::new(&script);
    project
        .write("open.txt", "a needle that the user has removed\n")
        .write("closed.txt", "a needle on disk\n");
    let client = project.open();
    client.editor.open(&project.uri("open.txt"), "no such thing\nthe new needle is here\n");
    client.editor.open("untitled:Untitled-1", "an untitled needle\n");
    client.session().run("find");
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(!is_error, "{text}");
    for expected in ["the new needle is here", "a needle on disk", "an untitled needle"] {
        assert!(text.contains(expected), "no {expected:?} in {text}");
    }
    assert!(!text.contains("has removed"), "{text}");
}

#[test]
fn an_untitled_document_is_read_and_edited_by_its_uri() {
    let uri = "untitled:Untitled-1";
    let script = Script::new([
        call("Read", json!({ "file_path": uri })),
        call("Edit", json!({ "file_path": uri, "old_string": "draft", "new_string": "final" })),
        say("Edited."),
    ]);
    let project = Project::new(&script);
    let client = project.open();
    client.editor.open(uri, "a draft\n");
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    assert_eq!(session.run("edit it")["stopReason"], "end_turn");
    assert_eq!(client.editor.text(uri), "a final\n", "{:?}", project.model.last_results());
    assert_eq!(fs::read_dir(project.workspace()).unwrap().count(), 0, "nothing is written to disk");
}

#[test]
fn a_buffer_is_found_however_its_uri_is_written() {
    let path = "{{cwd}}/a b#ü%.txt";
    let script = Script::new([
        call("Read", json!({ "file_path": path })),
        call("Edit", json!({ "file_path": path, "old_string": "buffer", "new_string": "edited" })),
        say("Edited."),
    ]);
    for encoded in ["a%20b%23%C3%BC%25.txt", "a%20b%23%c3%bc%25.txt", "%61%20b%23%C3%BC%25%2Etxt"] {
        let project = Project::new(&script);
        project.write("a b#ü%.txt", "disk\n");
        let client = project.open();
        let uri = project.uri("x").replace("/x", &format!("/{encoded}"));
        client.editor.open(&uri, "buffer\n");
        client.session_with(json!({ "mode": "acceptEdits" })).run("edit");
        assert_eq!(client.editor.text(&uri), "edited\n", "{uri}: {:?}", project.model.last_results());
        assert_eq!(project.read("a b#ü%.txt"), "disk\n", "{uri}");
    }
}

#[test]
fn a_file_that_is_not_open_is_written_to_disk() {
    let script = Script::new([
        call("Write", json!({ "file_path": "{{cwd}}/new/file.txt", "content": "fresh\n" })),
        call("Read", json!({ "file_path": "{{cwd}}/old.txt" })),
        call("Edit", json!({ "file_path": "{{cwd}}/old.txt", "old_string": "b", "new_string": "B" })),
        say("Written."),
    ]);
    let project = Project::new(&script);
    project.write("old.txt", "a\r\nb\r\nc\n");
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("write");
    assert_eq!(project.read("new/file.txt"), "fresh\n", "{:?}", session.calls());
    assert_eq!(project.read("old.txt"), "a\r\nB\r\nc\n", "line endings stay as they were");
    assert!(client.editor.edits().is_empty());
}

#[test]
fn the_steps_of_a_turn_are_reported_with_the_number_of_each_model_call() {
    let project =
        Project::new(&Script::new([call("Bash", json!({ "command": "expr begun" })), say("Done.")]));
    let client = project.open();
    let session = client.session_with(json!({ "mode": "default" }));
    let turn = session.prompt("go");
    session.allow(0);
    session.wait_done(&turn);
    let events = session.events();
    let steps: Vec<_> = events.iter().filter(|event| event["type"] == "breakpoint_changed").collect();
    let names: Vec<_> = steps.iter().map(|step| step["breakpoint"].as_str().unwrap()).collect();
    let expected = [
        "PRE_MODEL",
        "STREAMING_MODEL",
        "TOOL_PENDING",
        "AWAITING_APPROVAL",
        "PRE_TOOL",
        "TOOL_EXECUTING",
        "POST_TOOL",
        "PRE_MODEL",
        "STREAMING_MODEL",
        "READY",
    ];
    assert_eq!(names, expected);
    let numbers: Vec<_> = steps.iter().filter_map(|step| step["modelCall"].as_u64()).collect();
    assert_eq!(numbers, [1, 2]);
    assert_eq!(steps[0]["maxModelCalls"], 100);
    let about = session.calls()[0]["callId"].clone();
    assert!(steps[3..6].iter().all(|step| step["callId"] == about), "{steps:#?}");
}

#[test]
fn an_edit_with_an_empty_old_text_creates_the_file() {
    let edit = json!({ "file_path": "{{cwd}}/new/a.txt", "old_string": "", "new_string": "hello\n" });
    let project = Project::new(&Script::new([call("Edit", edit), say("Created.")]));
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    assert_eq!(session.run("create it")["stopReason"], "end_turn");
    assert_eq!(project.read("new/a.txt"), "hello\n");
    assert_eq!(session.calls()[0]["display"], "Created new/a.txt (+1 -0)");
}
