//! Checkpoints over the wire: what tools and commands did since a prompt is taken out, what the user did stays.
//!
//! Rule: files are compared by bytes and mode, and with what they were before anything began.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use kode_e2e::{Client, Project, Script, Session, Typing, call, say};
use serde_json::{Value, json};

/// Bytes that are no text in any encoding.
const BINARY: &[u8] = b"\x00\x01\x02\xff\xfe\x00binary\x00";

const OPEN: &str = "one\ntwo\nthree\nfour\nfive\n";

/// Bytes and mode of every file of a project.
type Files = BTreeMap<String, (Vec<u8>, u32)>;

fn files(project: &Project) -> Files {
    let workspace = project.workspace();
    let entries = crate::turn::files(&workspace).into_iter();
    entries
        .map(|path| {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            let name = path.strip_prefix(&workspace).unwrap().to_str().unwrap().to_owned();
            (name, (fs::read(&path).unwrap(), mode))
        })
        .collect()
}

/// Three prompts: tools, then commands that do everything commands can do to files, then tools again.
fn script() -> Script {
    let path = |name: &str| format!("{{{{cwd}}}}/{name}");
    let edit = |name: &str, old: &str, new: &str| {
        call("Edit", json!({ "file_path": path(name), "old_string": old, "new_string": new }))
    };
    let command = "printf 'made\\n' > made.txt && sed -i s/alpha/ALPHA/ text.txt && rm doomed.txt \
                   && chmod +x tool.sh && mv old-name.txt new-name.txt && printf '\\000new\\377' > data.bin \
                   && mkdir -p deep/er && printf x > deep/er/file";
    Script::default()
        .when(
            "^first",
            [
                call("Read", json!({ "file_path": path("open.txt") })),
                edit("open.txt", "two", "TWO"),
                call("Write", json!({ "file_path": path("tool/new.txt"), "content": "by a tool\n" })),
                say("First done."),
            ],
        )
        .when("^second", [call("Bash", json!({ "command": command })), say("Second done.")])
        .when(
            "^third",
            [
                edit("open.txt", "four", "FOUR"),
                call("Read", json!({ "file_path": path("text.txt") })),
                edit("text.txt", "ALPHA", "ALPHA again"),
                say("Third done."),
            ],
        )
        .when(
            "^mixed",
            [
                call("Read", json!({ "file_path": path("text.txt") })),
                edit("text.txt", "alpha", "ALPHA"),
                call("Bash", json!({ "command": "chmod +x text.txt" })),
                edit("text.txt", "gamma", "GAMMA"),
                call("Bash", json!({ "command": "rm text.txt" })),
                call("Write", json!({ "file_path": path("text.txt"), "content": "anew\n" })),
                call("Bash", json!({ "command": "printf '\\000' > text.txt" })),
                say("Mixed done."),
            ],
        )
        .when("^held", [say("Held.").gate("held", 0)])
        .otherwise([say("Going on.")])
}

fn project() -> Project {
    let project = Project::new(&script());
    project
        .write("open.txt", OPEN)
        .write("text.txt", "alpha\r\nbeta\r\ngamma\r\n")
        .write("doomed.txt", "doomed\n")
        .write("tool.sh", "#!/bin/sh\n")
        .write("old-name.txt", "renamed\n")
        .write("data.bin", BINARY);
    project
}

/// A session after the three prompts.
fn after_three(client: &Client) -> Session<'_> {
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    for prompt in ["first, with tools", "second, with commands", "third, with tools"] {
        assert_eq!(session.run(prompt)["stopReason"], "end_turn");
        let failed: Vec<Value> =
            session.calls().into_iter().filter(|call| call["state"] != "COMPLETED").collect();
        assert_eq!(failed, [] as [Value; 0]);
    }
    session
}

fn checkpoints(session: &Session<'_>) -> Vec<Value> {
    session.call("agent/checkpoint/list", json!({}))["checkpoints"].as_array().unwrap().clone()
}

fn restore(session: &Session<'_>, checkpoint: &Value, what: &str, user_edits: &str) -> Value {
    let params = json!({ "checkpointId": checkpoint["checkpointId"], "what": what, "userEdits": user_edits });
    let answer = session.call("agent/checkpoint/restore", params);
    assert_eq!(answer["type"], "started", "{answer}");
    let outcome = session.wait_resolved(answer["resolutionId"].as_str().unwrap());
    assert_eq!(outcome["action"], Value::Null, "{outcome}");
    outcome
}

fn preview(session: &Session<'_>, checkpoint: &Value, what: &str, user_edits: &str) -> Value {
    let id = &checkpoint["checkpointId"];
    let params = json!({ "checkpointId": id, "what": what, "userEdits": user_edits, "dryRun": true });
    let answer = session.call("agent/checkpoint/restore", params);
    assert_eq!(answer["type"], "preview", "{answer}");
    answer
}

/// The preview of one file.
fn of_file<'a>(preview: &'a Value, name: &str) -> &'a Value {
    let files = preview["files"].as_array().unwrap();
    files.iter().find(|file| file["path"] == name).unwrap_or_else(|| panic!("no {name} in {preview}"))
}

fn names(uris: &Value) -> Vec<String> {
    let name = |uri: &Value| uri.as_str().unwrap().split("/workspace/").last().unwrap().to_owned();
    let mut names: Vec<String> = uris.as_array().unwrap().iter().map(name).collect();
    names.sort();
    names
}

/// The texts of the messages in the newest request.
fn sent(project: &Project) -> String {
    project.model.last_request()["messages"].to_string()
}

#[test]
fn there_is_a_checkpoint_before_each_prompt_with_the_files_it_changed() {
    let project = project();
    let client = project.open();
    client.editor.open(&project.uri("open.txt"), OPEN);
    let session = after_three(&client);
    let [first, second, third] = checkpoints(&session).try_into().unwrap();
    assert_eq!(first["title"], "first, with tools");
    assert_eq!(names(&first["uris"]), ["open.txt", "tool/new.txt"]);
    let by_commands = [
        "data.bin",
        "deep/er/file",
        "doomed.txt",
        "made.txt",
        "new-name.txt",
        "old-name.txt",
        "text.txt",
        "tool.sh",
    ];
    assert_eq!(names(&second["uris"]), by_commands);
    assert_eq!(names(&third["uris"]), ["open.txt", "text.txt"]);
    for checkpoint in [&first, &second, &third] {
        assert_eq!(checkpoint["uncovered"], json!([]));
        session.wait_event("its event", |event| {
            event["type"] == "checkpoint_created" && event["checkpointId"] == checkpoint["checkpointId"]
        });
    }
}

#[test]
fn files_go_back_and_what_the_user_did_stays() {
    let project = project();
    let before = files(&project);
    let client = project.open();
    let uri = project.uri("open.txt");
    client.editor.open(&uri, OPEN);
    let session = after_three(&client);
    let after = files(&project);
    let [first, _, third] = checkpoints(&session).try_into().unwrap();
    client.editor.type_text(&uri, &Typing::after("three", " mine"));
    project.write("text.txt", "ALPHA again\r\nbeta mine\r\ngamma\r\n");

    let reported = preview(&session, &first, "files", "keep");
    assert_eq!(reported["items"], 0, "the conversation stays");
    let open = of_file(&reported, "open.txt");
    let unified = open["unified"].as_str().unwrap();
    assert!(unified.contains("-TWO") && unified.contains("+two") && unified.contains("-FOUR"), "{unified}");
    assert!(!unified.contains("-three mine"), "what the user did stays: {unified}");
    assert!(open["userEdits"].as_str().unwrap().contains("+three mine"), "{open}");
    assert!(
        of_file(&reported, "text.txt")["userEdits"].as_str().unwrap().contains("+beta mine"),
        "{reported}"
    );
    assert_eq!(of_file(&reported, "made.txt")["userEdits"], Value::Null);
    for name in ["data.bin", "tool.sh", "doomed.txt", "old-name.txt", "new-name.txt"] {
        let file = of_file(&reported, name);
        assert!(file["problem"].is_null() && file["unified"] != "", "{file}");
    }
    let discarding = preview(&session, &first, "files", "discard");
    assert!(of_file(&discarding, "open.txt")["unified"].as_str().unwrap().contains("-three mine"));
    assert_eq!(client.editor.edits().len(), 2, "looking does nothing");
    assert_eq!(after.keys().collect::<Vec<_>>(), files(&project).keys().collect::<Vec<_>>());

    let outcome = restore(&session, &third, "files", "keep");
    assert_eq!(outcome["failed"], json!([]));
    assert_eq!(client.editor.text(&uri), OPEN.replace("two", "TWO").replace("three", "three mine"));
    assert_eq!(project.read("text.txt"), "ALPHA\r\nbeta mine\r\ngamma\r\n");

    let outcome = restore(&session, &first, "files", "keep");
    assert_eq!(outcome["failed"], json!([]));
    assert_eq!(client.editor.text(&uri), OPEN.replace("three", "three mine"));
    let mut expected = before;
    expected.get_mut("text.txt").unwrap().0 = b"alpha\r\nbeta mine\r\ngamma\r\n".to_vec();
    assert_eq!(files(&project), expected);
    assert_eq!(session.hunks(), [] as [Value; 0]);
    assert_eq!(checkpoints(&session).len(), 3, "the conversation stays");
}

#[test]
fn both_go_back_and_come_again() {
    let project = project();
    let before = files(&project);
    let client = project.open();
    let uri = project.uri("open.txt");
    client.editor.open(&uri, OPEN);
    let session = after_three(&client);
    let (after, items) = (files(&project), session.items());
    let [_, second, _] = checkpoints(&session).try_into().unwrap();

    let reported = preview(&session, &second, "both", "keep");
    let of_second = items.iter().position(|item| item["itemId"] == second["itemId"]).unwrap();
    assert_eq!(reported["items"], items.len() - of_second);
    let restored = restore(&session, &second, "both", "keep");
    assert_eq!(restored["failed"], json!([]));
    session.wait_event("the way back", |event| {
        event["type"] == "rewound" && event["itemId"] == second["itemId"]
    });
    assert_eq!(session.items(), items[..of_second]);
    assert_eq!(client.editor.text(&uri), OPEN.replace("two", "TWO"));
    let mut expected = before;
    expected.insert("tool/new.txt".to_owned(), (b"by a tool\n".to_vec(), 0o644));
    assert_eq!(files(&project), expected);
    session.run("go on");
    let history = sent(&project);
    assert!(history.contains("first, with tools") && history.contains("go on"), "{history}");
    assert!(
        !history.contains("second, with") && !history.contains("chmod") && !history.contains("third, with")
    );

    // A restart changes nothing of it.
    let (id, items) = (session.id.clone(), session.items());
    assert!(items.len() > of_second && after != files(&project));
    drop(client);
    let client = project.open();
    assert_eq!(Session::new(&client, &id).items(), items);
}

#[test]
fn a_restore_is_taken_back_with_the_conversation() {
    let project = project();
    let client = project.open();
    let uri = project.uri("open.txt");
    client.editor.open(&uri, OPEN);
    let session = after_three(&client);
    let (after, items, text) = (files(&project), session.items(), client.editor.text(&uri));
    let [first, ..] = <[Value; 3]>::try_from(checkpoints(&session)).unwrap();
    let restored = restore(&session, &first, "both", "keep");
    assert_eq!(session.items(), [] as [Value; 0]);
    client.editor.type_text(&uri, &Typing::after("five", " mine"));

    let back = session.revert(restored["resolutionId"].as_str());
    assert_eq!(back["failed"], json!([]));
    assert_eq!(files(&project), after);
    assert_eq!(client.editor.text(&uri), text.replace("five", "five mine"));
    assert_eq!(session.items(), items);
    session.run("go on");
    assert!(sent(&project).contains("third, with tools"));
}

#[test]
fn a_restore_cut_short_by_a_kill_is_finished_at_the_next_start() {
    let project = project();
    let before = files(&project);
    let client = project.open();
    let session = after_three(&client);
    let after = files(&project);
    let homes = crate::turn::files(&project.home()).into_iter();
    let journal = homes.clone().find(|path| path.ends_with("journal.jsonl")).expect("a journal");
    let length = fs::metadata(&journal).unwrap().len();
    let [first, ..] = <[Value; 3]>::try_from(checkpoints(&session)).unwrap();
    restore(&session, &first, "both", "keep");
    assert_eq!(files(&project), before);
    client.kill();

    // The state right after the conversation had gone back, and before any file had.
    let text = fs::read_to_string(&journal).unwrap();
    let of_rewound = text[usize::try_from(length).unwrap()..].lines().next().unwrap();
    assert!(of_rewound.contains("rewound"), "{of_rewound}");
    let cut = length + u64::try_from(of_rewound.len()).unwrap() + 1;
    fs::OpenOptions::new().write(true).open(&journal).unwrap().set_len(cut).unwrap();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        fs::remove_file(project.path(name)).unwrap();
    }
    for (name, (bytes, mode)) in &after {
        project.write(name, bytes);
        fs::set_permissions(project.path(name), fs::Permissions::from_mode(*mode)).unwrap();
    }

    let client = project.open();
    let again = Session::new(&client, &session.id);
    again.call("agent/session/load", json!({}));
    assert_eq!(again.items(), [] as [Value; 0]);
    assert_eq!(files(&project), before, "a session that is loaded has its files where its conversation is");
    let text = fs::read_to_string(&journal).unwrap();
    assert!(text.contains("restored"), "it is noted, so that later starts change nothing");
    project.write("open.txt", "mine\n");
    client.kill();
    let client = project.open();
    Session::new(&client, &session.id).call("agent/session/load", json!({}));
    assert_eq!(fs::read_to_string(project.path("open.txt")).unwrap(), "mine\n");
}

#[test]
fn discarding_makes_files_what_they_were_to_the_byte() {
    let project = project();
    let before = files(&project);
    let client = project.open();
    let uri = project.uri("open.txt");
    client.editor.open(&uri, OPEN);
    let session = after_three(&client);
    let [first, ..] = <[Value; 3]>::try_from(checkpoints(&session)).unwrap();
    client.editor.type_text(&uri, &Typing::after("TWO", " mine"));
    project
        .write("text.txt", "quite\nsomething\nelse\n")
        .write("tool/new.txt", "by a tool\nand by me\n")
        .write("made.txt", "made by me\n")
        .write("mine.txt", "the agent had nothing to do with it\n");

    let outcome = restore(&session, &first, "files", "discard");
    assert_eq!(outcome["failed"], json!([]), "{outcome}");
    assert_eq!(client.editor.text(&uri), OPEN);
    let mut expected = before;
    expected.insert("mine.txt".to_owned(), (b"the agent had nothing to do with it\n".to_vec(), 0o644));
    assert_eq!(files(&project), expected);

    session.revert(outcome["resolutionId"].as_str());
    assert_eq!(client.editor.text(&uri), OPEN.replace("two", "TWO mine").replace("four", "FOUR"));
    assert_eq!(project.read("text.txt"), "quite\nsomething\nelse\n");
}

#[test]
fn edits_and_commands_on_one_file_are_taken_back_in_their_order() {
    for is_restarted in [false, true] {
        let project = project();
        let before = files(&project);
        let client = project.open();
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        session.run("mixed");
        let id = session.id.clone();
        assert!(session.calls().iter().all(|call| call["state"] == "COMPLETED"), "{:?}", session.calls());
        assert_eq!(fs::read(project.path("text.txt")).unwrap(), b"\0");
        if is_restarted {
            client.kill();
        }
        let client = if is_restarted { project.open() } else { client };
        let session = Session::new(&client, &id);
        assert!(!session.items().is_empty());
        let [checkpoint] = checkpoints(&session).try_into().unwrap();
        let outcome = restore(&session, &checkpoint, "files", "keep");
        assert_eq!(outcome["failed"], json!([]), "{is_restarted} {:?}", files(&project)["text.txt"]);
        assert_eq!(files(&project), before, "{is_restarted}");
        let outcome = session.revert(outcome["resolutionId"].as_str());
        assert_eq!(outcome["failed"], json!([]), "{is_restarted}");
        assert_eq!(fs::read(project.path("text.txt")).unwrap(), b"\0", "{is_restarted}");
    }
}

#[test]
fn nothing_goes_back_while_a_turn_runs() {
    let project = project();
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    let turn = session.prompt("held");
    project.model.wait_until_held("held");
    let [checkpoint] = checkpoints(&session).try_into().unwrap();
    for what in ["conversation", "files", "both"] {
        let params = json!({ "checkpointId": checkpoint["checkpointId"], "what": what });
        let error = session.request("agent/checkpoint/restore", params).unwrap_err();
        assert_eq!(error.kind(), "sessionBusy", "{what}: {error:?}");
        assert!(!error.hint().is_empty(), "{what}: {error:?}");
    }
    let unknown = json!({ "checkpointId": "cp_none", "what": "files" });
    assert_eq!(session.request("agent/checkpoint/restore", unknown).unwrap_err().kind(), "unknownCheckpoint");
    project.model.release("held");
    session.wait_done(&turn);
    session.wait_event("the session to be ready", |event| {
        event["type"] == "state_changed" && event["state"] == "READY"
    });
    restore(&session, &checkpoint, "both", "keep");
    assert_eq!(session.items(), [] as [Value; 0]);
}
