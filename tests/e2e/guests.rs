//! Guests: another agent, as a program of its own, works as a sub-agent and asks here for files and permissions.
//!
//! Rule: the guest is a real process that speaks the protocol; its answers are read from its own log, and its work from
//! the disk and the review.

#[cfg(target_os = "linux")]
mod real;

use std::fs;
use std::path::PathBuf;

use kode_e2e::system::is_running;
use kode_e2e::{Client, Offer, Project, Script, Session, Typing, binary, call, say};
use serde_json::{Value, json};

/// The program of the guest.
fn guest() -> PathBuf {
    binary().with_file_name(format!("scripted-guest{}", std::env::consts::EXE_SUFFIX))
}

/// A project whose user has the agent `visitor`, a guest with these steps.
struct House {
    project: Project,
}

impl House {
    fn new(steps: Value) -> Self {
        Self::with(json!({ "steps": steps }), "")
    }

    /// A house whose guest has this script, and more lines in `runs`.
    fn with(script: Value, more: &str) -> Self {
        let task = json!({ "description": "the visit", "prompt": "Do it.", "subagent_type": "visitor" });
        let project =
            Project::new(&Script::default().otherwise([call("Task", task), say("It was a nice visit.")]));
        let house = Self { project };
        house.project.write("a.txt", "one\ntwo\nthree\n");
        fs::create_dir_all(house.home().join(".claude/agents")).unwrap();
        fs::create_dir_all(house.log_file().parent().unwrap()).unwrap();
        house.settings(json!({}));
        fs::write(house.home().join(".claude/agents/visitor.md"), house.agent(more)).unwrap();
        let script = script.to_string().replace("{{cwd}}", house.project.workspace().to_str().unwrap());
        fs::write(house.project.outside().join("log/guest.json"), script).unwrap();
        house
    }

    fn home(&self) -> PathBuf {
        self.project.outside().join("user")
    }

    /// The user's settings: these permissions, and no question because of the sandbox alone, which a guest leaves.
    fn settings(&self, permissions: Value) {
        let excluded = [format!("{}:*", guest().display()), "echo:*".to_owned()];
        let settings = json!({ "permissions": permissions, "sandbox": { "excludedCommands": excluded } });
        fs::write(self.home().join(".claude/settings.json"), settings.to_string()).unwrap();
    }

    /// The file of the agent.
    fn agent(&self, more: &str) -> String {
        let (guest, script, log) = (guest(), self.project.outside().join("log/guest.json"), self.log_file());
        let runs = json!({ "command": guest, "args": [script, log] });
        let runs = runs.as_object().unwrap().iter();
        let runs: String = runs.map(|(key, value)| format!("  {key}: {value}\n")).collect();
        format!("---\nname: visitor\ndescription: Visits.\nruns:\n{runs}{more}---\nYou are a guest here.\n")
    }

    fn log_file(&self) -> PathBuf {
        self.project.outside().join("log/guest.log")
    }

    /// The log of the guest so far.
    fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.log_file()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The answers to its requests of a method.
    fn answers(&self, method: &str) -> Vec<Value> {
        self.log().into_iter().filter(|entry| entry["method"] == method).collect()
    }

    /// The processes that the guest has noted: its own, and those that it has started.
    #[cfg(target_os = "linux")]
    fn processes(&self) -> Vec<u32> {
        let ids = self.log().into_iter().filter(|entry| !entry["child"].is_null());
        let ids = ids.flat_map(|entry| [entry["child"].as_u64(), entry["own"].as_u64()]);
        ids.map(|id| id.unwrap().try_into().unwrap()).collect()
    }

    /// Waits until they have ended: killed ones may still be about to end.
    #[cfg(target_os = "linux")]
    fn wait_until_nothing_is_left(&self) {
        let deadline = std::time::Instant::now() + kode_e2e::LIMIT;
        while let Some(left) = self.processes().into_iter().find(|id| is_running(*id)) {
            assert!(std::time::Instant::now() < deadline, "process {left} is left");
            std::thread::yield_now();
        }
    }

    fn open(&self) -> Client {
        self.open_as(&[])
    }

    fn open_as(&self, more: &[(&str, &str)]) -> Client {
        let home = self.home();
        let mut variables = vec![("HOME", home.to_str().unwrap())];
        variables.extend(more);
        let client = self.project.start_as(&[], &variables);
        client.initialize(Offer::kode().params(&self.project.workspace()));
        client
    }

    /// The result of the call that the guest worked for.
    fn result(&self) -> (String, bool) {
        self.project.model.last_results().pop().expect("the call has a result")
    }
}

/// The calls in the transcript of the guest.
fn calls_of_guest(session: &Session<'_>) -> Vec<Value> {
    let bodies = items_of_guest(session).into_iter().map(|item| item["body"].clone());
    bodies.filter(|body| body["type"] == "toolCall").collect()
}

fn items_of_guest(session: &Session<'_>) -> Vec<Value> {
    let begun = session.wait_event("the guest", |event| event["type"] == "subagent_started");
    let agent = session.call("agent/subagent/load", json!({ "agentId": begun["agentId"] }));
    agent["items"].as_array().unwrap().clone()
}

fn texts(items: &[Value], kind: &str) -> Vec<String> {
    let bodies = items.iter().map(|item| &item["body"]).filter(|body| body["type"] == kind);
    bodies.map(|body| body["text"].as_str().unwrap_or_default().to_owned()).collect()
}

fn accepting(client: &Client) -> Session<'_> {
    client.session_with(json!({ "mode": "bypassPermissions" }))
}

#[test]
fn the_list_of_agents_names_the_program_of_a_guest() {
    let house = House::new(json!([]));
    let client = house.open();
    let session = client.session();
    let listed = session.call("agent/agents/list", json!({}));
    let runs: Vec<_> =
        listed["agents"].as_array().unwrap().iter().filter(|one| !one["runs"].is_null()).collect();
    let [visitor] = runs[..] else { panic!("{listed}") };
    let runs = visitor["runs"].as_str().unwrap();
    assert!(visitor["name"] == "visitor" && runs.contains(guest().to_str().unwrap()), "{visitor}");
}

#[test]
fn a_guest_reads_unsaved_text_and_its_writes_are_in_the_review_and_undone() {
    let house = House::new(json!([
        { "think": "Let me " }, { "think": "see." },
        { "replace": ["{{cwd}}/a.txt", "two", "TWO"] },
        { "write": ["{{cwd}}/sub/new.txt", "made\n"] },
        { "say": "I have " }, { "say": "done it." },
    ]));
    let client = house.open();
    let uri = house.project.uri("a.txt");
    client.editor.open(&uri, "one\ntwo\nthree\n");
    client.editor.type_text(&uri, &Typing::before("three", "typed\n"));
    let session = accepting(&client);
    session.run("go");
    assert_eq!(client.editor.text(&uri), "one\nTWO\ntyped\nthree\n");
    assert_eq!(house.project.read("a.txt"), "one\ntwo\nthree\n", "the editor saves, and the guest does not");
    assert_eq!(house.project.read("sub/new.txt"), "made\n");
    assert_eq!(house.answers("fs/read_text_file")[0]["result"]["content"], "one\ntwo\ntyped\nthree\n");
    let prompt = house.log().into_iter().find_map(|entry| Some(entry["prompt"].as_str()?.to_owned()));
    assert_eq!(prompt.as_deref(), Some("You are a guest here.\n\nDo it."));
    assert_eq!(house.result(), ("I have done it.".to_owned(), false));
    let items = items_of_guest(&session);
    assert_eq!(texts(&items, "thinking"), ["Let me see."]);
    assert_eq!(texts(&items, "agentMessage"), ["I have done it."]);
    let calls = calls_of_guest(&session);
    let shown: Vec<_> = calls.iter().map(|call| (call["name"].as_str(), call["state"].as_str())).collect();
    let done = Some("COMPLETED");
    assert_eq!(shown, [(Some("Read"), done), (Some("Write"), done), (Some("Write"), done)], "{calls:#?}");
    let hunks = session.hunks();
    assert_eq!(hunks.len(), 2, "{hunks:#?}");
    session.resolve(&hunks.iter().collect::<Vec<_>>(), "undo");
    assert_eq!(client.editor.text(&uri), "one\ntwo\ntyped\nthree\n");
    assert!(!house.project.path("sub/new.txt").exists());
}

#[test]
fn what_the_user_types_after_the_guest_has_read_is_kept() {
    let wish = json!({ "toolCall": { "toolCallId": "1", "title": "Look around", "kind": "other" } });
    let house = House::new(json!([
        { "read": "{{cwd}}/a.txt" },
        { "permit": wish },
        { "write": ["{{cwd}}/a.txt", "ONE\ntwo\nthree\n"] },
        { "write": ["{{cwd}}/a.txt", "ONE\ntwo\nTHREE\n"] },
    ]));
    let client = house.open();
    let uri = house.project.uri("a.txt");
    client.editor.open(&uri, "one\ntwo\nthree\n");
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    let turn = session.prompt("go");
    session.allow(0);
    session.wait_permission(1);
    client.editor.type_text(&uri, &Typing::before("two", "typed\n"));
    session.allow(1);
    session.wait_done(&turn);
    assert_eq!(client.editor.text(&uri), "ONE\ntyped\ntwo\nTHREE\n");
    assert!(house.answers("fs/write_text_file").iter().all(|answer| answer["error"].is_null()));
}

#[test]
fn rules_modes_and_the_user_decide_on_what_a_guest_asks_for() {
    let wish = |id: &str, input: Value| {
        json!({ "permit": {
            "toolCall": { "toolCallId": id, "title": "Run it", "kind": "execute", "rawInput": input },
            "then": [{ "say": format!("{id} yes. ") }], "otherwise": [{ "say": format!("{id} no. ") }],
        } })
    };
    let house = House::new(json!([
        wish("allowed", json!({ "command": "echo by-rule" })),
        wish("denied", json!({ "command": "curl http://example.com" })),
        wish("asked", json!({ "command": "make install" })),
        wish("refused", json!({ "command": "make clean" })),
        { "read": "{{cwd}}/.env" },
        { "write": ["{{cwd}}/locked/x.txt", "no\n"] },
    ]));
    house.project.write(".env", "SECRET=1\n");
    house.settings(json!({
        "allow": ["Bash(echo:*)"], "deny": ["Bash(curl:*)", "Read(.env)", "Edit(locked/**)"],
    }));
    let client = house.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    let turn = session.prompt("go");
    let start = session.allow(0);
    assert!(start["preview"]["command"].as_str().unwrap().contains("scripted-guest"), "{start:#}");
    let asked = session.allow(1);
    assert_eq!(asked["preview"]["command"], "make install", "{asked:#}");
    assert_eq!((&asked["tool"], &asked["title"]), (&json!("Guest"), &json!("Run it")));
    assert!(asked["risks"].to_string().contains("outside the sandbox"), "{asked:#}");
    let refused = session.wait_permission(2);
    session.respond(&refused, json!({ "decision": "deny", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    let said = texts(&items_of_guest(&session), "agentMessage");
    assert_eq!(said, ["allowed yes. ", "denied no. ", "asked yes. ", "refused no. "]);
    let chosen: Vec<_> = house
        .answers("session/request_permission")
        .into_iter()
        .map(|answer| answer["result"]["outcome"]["optionId"].clone())
        .collect();
    assert_eq!(chosen, ["once", "no", "once", "no"], "a lasting answer is never given");
    assert!(
        house.answers("fs/read_text_file")[0]["error"]["message"].as_str().unwrap().contains("Read(.env)")
    );
    assert!(
        house.answers("fs/write_text_file")[0]["error"]["message"]
            .as_str()
            .unwrap()
            .contains("Edit(locked/**)")
    );
    assert!(!house.project.path("locked").exists());
    let states: Vec<_> = calls_of_guest(&session).iter().map(|call| call["state"].clone()).collect();
    assert_eq!(states, ["FAILED", "DENIED", "FAILED", "DENIED", "DENIED", "DENIED"], "{states:?}");
}

#[test]
fn what_a_guest_does_itself_is_marked_and_its_changes_of_files_are_undone() {
    let report = |id: &str, kind: &str, status: &str| {
        json!({ "update": { "sessionUpdate": "tool_call", "toolCallId": id, "title": format!("{kind} {id}"), "kind": kind,
            "status": status } })
    };
    let done = |id: &str| {
        json!({ "update": { "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "completed",
            "content": [{ "type": "content", "content": { "type": "text", "text": "Some output." } }] } })
    };
    let house = House::new(json!([
        report("1", "execute", "in_progress"), done("1"),
        // A write waits until earlier reports are entered.
        { "write": ["{{cwd}}/b.txt", "ours\n"] },
        report("2", "edit", "in_progress"), { "disk": ["{{cwd}}/a.txt", "one\nTWO\nthree\n"] }, done("2"),
        { "write": ["{{cwd}}/b.txt", "ours, too\n"] },
        report("3", "read", "completed"),
        { "disk": ["{{cwd}}/c.txt", "silently\n"] },
        { "say": "Done." },
    ]));
    let client = house.open();
    let session = accepting(&client);
    session.run("go");
    let calls = calls_of_guest(&session);
    let shown: Vec<_> = calls
        .iter()
        .map(|call| (call["title"].as_str().unwrap(), call["display"].as_str().unwrap()))
        .collect();
    let shown_at = |title: &str| shown.iter().find(|(of, _)| *of == title).unwrap().1;
    assert_eq!(shown_at("execute 1"), "Done by the guest itself: not ours, cannot be undone", "{calls:#?}");
    assert_eq!(shown_at("edit 2"), "Changed around kode-ls, in the review: a.txt");
    assert_eq!(shown_at("read 3"), "Done by the guest itself");
    assert_eq!(calls.iter().filter(|call| call["name"] == "Write").count(), 2);
    assert_eq!(calls[0]["structured"]["ours"], json!(false));
    let (result, _) = house.result();
    assert_eq!(result, "Done.\n\n[It changed files itself, around kode-ls: a.txt, c.txt.]");
    let notices = texts(&items_of_guest(&session), "notice");
    assert_eq!(notices, ["The guest `visitor` changed files around kode-ls: a.txt, c.txt."]);
    let files: Vec<_> = session.edited_files().iter().map(|file| file["path"].clone()).collect();
    assert_eq!(files, ["a.txt", "b.txt", "c.txt"]);
    let hunks = session.hunks();
    session.resolve(&hunks.iter().collect::<Vec<_>>(), "undo");
    assert_eq!(house.project.read("a.txt"), "one\ntwo\nthree\n");
    assert!(!house.project.path("b.txt").exists() && !house.project.path("c.txt").exists());
}

#[test]
fn a_cancelled_guest_is_told_so_and_nothing_of_it_is_left() {
    let house = House::new(json!([
        { "spawn": "1000" }, { "say": "Waiting." },
        { "permit": { "toolCall": { "toolCallId": "1", "title": "Go on", "kind": "other" } } },
        { "wait": true },
    ]));
    let client = house.open();
    let session = client.session();
    let turn = session.prompt("go");
    session.allow(0);
    session.wait_permission(1);
    session.call("agent/turn/cancel", json!({}));
    let done = session.wait_done(&turn);
    assert_eq!(done["stopReason"], "cancelled");
    let outcome = &house.answers("session/request_permission")[0]["result"]["outcome"];
    assert_eq!(outcome["outcome"], "cancelled");
    let ids = house.log().into_iter().find(|entry| !entry["child"].is_null()).unwrap();
    for id in [&ids["child"], &ids["own"]] {
        assert!(!is_running(id.as_u64().unwrap().try_into().unwrap()), "process {id} is left");
    }
}

#[test]
fn a_guest_that_gives_up_after_a_denied_request_does_not_count_as_cancelled() {
    let request = json!({ "toolCall": { "toolCallId": "1", "title": "Go on", "kind": "other" }, "otherwise": [{ "stop": "cancelled" }] });
    let house = House::new(json!([{ "say": "Half of it." }, { "permit": request }]));
    let client = house.open();
    let session = client.session();
    let turn = session.prompt("go");
    session.allow(0);
    let prompt = session.wait_permission(1);
    session.respond(&prompt, json!({ "decision": "deny", "scope": "once" })).unwrap();
    assert_eq!(session.wait_done(&turn)["stopReason"], "end_turn");
    let (result, is_error) = house.result();
    assert!(!is_error && result.contains("Half of it."), "{result}");
    assert!(result.contains("It ended its turn before it had finished"), "{result}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_guest_leaves_no_process_behind_however_it_ends() {
    let wish = json!({ "permit": { "toolCall": { "toolCallId": "1", "title": "Go on", "kind": "other" } } });
    let steps = json!([{ "spawn": "1000" }, { "leave": "1000" }, wish, { "wait": true }]);
    for is_crash in [false, true] {
        let house = House::new(steps.clone());
        let client = house.open();
        let session = client.session();
        let turn = session.prompt("go");
        session.allow(0);
        session.wait_permission(1);
        assert_eq!(house.processes().len(), 4);
        if is_crash {
            client.kill();
        } else {
            session.call("agent/turn/cancel", json!({}));
            session.wait_done(&turn);
        }
        house.wait_until_nothing_is_left();
    }
    for last in [json!({ "say": "Done." }), json!({ "exit": 3 })] {
        let house = House::new(json!([{ "spawn": "1000" }, { "leave": "1000" }, last]));
        let client = house.open();
        accepting(&client).run("go");
        assert_eq!(house.processes().len(), 4);
        house.wait_until_nothing_is_left();
    }
}

#[test]
fn a_guest_that_breaks_off_costs_its_call_alone_and_keeps_what_it_has_done() {
    let house = House::new(json!([
        { "write": ["{{cwd}}/a.txt", "one\nTWO\nthree\n"] },
        { "say": "Half of it. " }, { "complain": "out of memory" }, { "exit": 3 },
    ]));
    let client = house.open();
    let session = accepting(&client);
    assert_eq!(session.run("go")["stopReason"], "end_turn");
    let (error, is_error) = house.result();
    assert!(is_error && error.contains("exit code 3") && error.contains("out of memory"), "{error}");
    assert!(error.contains("Half of it."), "{error}");
    assert_eq!((session.hunks().len(), house.project.read("a.txt").as_str()), (1, "one\nTWO\nthree\n"));
}

#[test]
fn guests_that_do_not_speak_the_protocol_or_are_not_signed_in_say_so() {
    for (script, expected) in [
        (json!({ "steps": [], "version": 2 }), "speaks version 2 of the protocol alone"),
        (
            json!({ "steps": [], "refuses": { "code": -32_000, "message": "log in first" } }),
            "is not signed in: log in first",
        ),
        (
            json!({ "steps": [], "refuses": { "code": -32_603, "message": "Internal error", "data": { "details": "No model." } } }),
            "answered `session/new` with an error: Internal error (No model.)",
        ),
        (json!({ "steps": [{ "raw": "x\n".repeat(40) }, { "wait": true }] }), "no messages of the protocol"),
    ] {
        let house = House::with(script, "");
        let client = house.open();
        assert_eq!(accepting(&client).run("go")["stopReason"], "end_turn");
        let (error, is_error) = house.result();
        assert!(is_error && error.contains(expected), "{error}");
    }
    let house = House::new(
        json!([{ "raw": "Welcome!" }, { "raw": "[]" }, { "ask": { "method": "terminal/create", "params": {} } }, { "say": "Well." }]),
    );
    let client = house.open();
    accepting(&client).run("go");
    assert_eq!(house.result().0, "Well.");
    assert_eq!(house.answers("terminal/create")[0]["error"]["code"], -32_601);
}

#[test]
fn a_guest_works_in_the_mode_that_its_file_names() {
    let house = House::with(json!({ "steps": [{ "say": "Hello." }] }), "  mode: asking\n");
    let client = house.open();
    accepting(&client).run("go");
    assert_eq!(house.result(), ("Hello.".to_owned(), false));
    let modes: Vec<_> =
        house.log().into_iter().filter_map(|mut entry| Some(entry.get_mut("mode")?.take())).collect();
    assert_eq!(modes, ["asking"]);
    let house = House::with(json!({ "steps": [{ "say": "Hello." }] }), "  mode: bold\n");
    let client = house.open();
    accepting(&client).run("go");
    let (error, is_error) = house.result();
    assert!(is_error && error.contains("has no mode `bold`; it offers: free, asking"), "{error}");
}

#[test]
fn a_command_that_only_the_title_names_is_denied_by_rules_and_allowed_by_none() {
    let wish = |id: &str, title: &str| {
        json!({ "permit": {
            "toolCall": { "toolCallId": id, "title": title, "kind": "execute" },
            "then": [{ "say": format!("{id} yes. ") }], "otherwise": [{ "say": format!("{id} no. ") }],
        } })
    };
    let house = House::new(json!([wish("denied", "curl http://example.com"), wish("asked", "echo hello")]));
    house.settings(json!({ "allow": ["Bash(echo:*)"], "deny": ["Bash(curl:*)"] }));
    let client = house.open();
    let session = client.session();
    let turn = session.prompt("go");
    session.allow(0);
    let asked = session.allow(1);
    assert_eq!(asked["preview"]["command"], "echo hello", "{asked:#}");
    session.wait_done(&turn);
    assert_eq!(texts(&items_of_guest(&session), "agentMessage"), ["denied no. ", "asked yes. "]);
}

#[test]
fn a_change_that_a_guest_asks_for_is_shown_and_its_very_write_is_not_asked_for_again() {
    let diff = |old: &str, new: &str| {
        json!({ "permit": { "toolCall": {
            "toolCallId": new, "title": "Edit", "kind": "edit",
            "content": [{ "type": "diff", "path": "{{cwd}}/a.txt", "oldText": old, "newText": new }],
        } } })
    };
    let house = House::new(json!([
        { "read": "{{cwd}}/a.txt" },
        diff("one\ntwo\nthree\n", "one\nTWO\nthree\n"),
        { "write": ["{{cwd}}/a.txt", "one\nTWO\nthree\n"] },
        diff("three", "THREE"),
        { "write": ["{{cwd}}/a.txt", "one\nTWO\nother\n"] },
    ]));
    let client = house.open();
    let session = client.session();
    let turn = session.prompt("go");
    session.allow(0);
    let shown = |prompt: &Value| prompt["preview"]["unified"].as_str().unwrap_or_default().to_owned();
    assert!(shown(&session.allow(1)).contains("-two\n+TWO"));
    assert!(shown(&session.allow(2)).contains("-three\n+THREE"));
    assert_eq!(house.project.read("a.txt"), "one\nTWO\nthree\n");
    let other = session.wait_permission(3);
    assert!(other["tool"] == "Write" && shown(&other).contains("-three\n+other"), "{other:#}");
    session.respond(&other, json!({ "decision": "deny", "scope": "once" })).unwrap();
    session.wait_done(&turn);
    assert_eq!(house.project.read("a.txt"), "one\nTWO\nthree\n");
}

#[test]
fn a_guest_that_also_writes_the_file_itself_changes_unsaved_text_once() {
    let wish = |id: &str, path: &str| {
        json!({ "permit": { "toolCall": {
            "toolCallId": id, "title": "Edit", "kind": "edit", "locations": [{ "path": path }],
        } } })
    };
    let house = House::new(json!([
        wish("1", "{{cwd}}/a.txt"),
        { "disk": ["{{cwd}}/a.txt", "one\nTWO\nthree\n"] },
        { "write": ["{{cwd}}/a.txt", "one\nTWO\nthree\n"] },
        wish("2", "{{cwd}}/new.txt"),
        { "disk": ["{{cwd}}/new.txt", "made\n"] },
        { "write": ["{{cwd}}/new.txt", "made\n"] },
    ]));
    let client = house.open();
    let uri = house.project.uri("a.txt");
    client.editor.open(&uri, "one\ntwo\nthree\n");
    client.editor.type_text(&uri, &Typing::before("three", "typed\n"));
    let session = accepting(&client);
    session.run("go");
    assert_eq!(client.editor.text(&uri), "one\nTWO\ntyped\nthree\n");
    let errors: Vec<_> =
        house.answers("fs/write_text_file").into_iter().map(|answer| answer["error"].clone()).collect();
    assert_eq!(errors, [Value::Null, Value::Null]);
    let files: Vec<_> = session.edited_files().iter().map(|file| file["path"].clone()).collect();
    assert_eq!(files, ["a.txt", "new.txt"]);
    let hunks = session.hunks();
    session.resolve(&hunks.iter().collect::<Vec<_>>(), "undo");
    assert_eq!(client.editor.text(&uri), "one\ntwo\ntyped\nthree\n");
    assert_eq!(house.project.read("a.txt"), "one\ntwo\nthree\n");
    assert!(!house.project.path("new.txt").exists());
}

#[test]
fn a_file_that_is_not_there_is_an_error_for_all_but_the_guest_that_cannot_make_it_then() {
    for (name, expected) in [("scripted-guest", Value::Null), ("gemini-cli", json!(""))] {
        let house = House::with(json!({ "name": name, "steps": [{ "read": "{{cwd}}/new.txt" }] }), "");
        let client = house.open();
        accepting(&client).run("go");
        let answer = &house.answers("fs/read_text_file")[0];
        assert_eq!(answer["result"]["content"], expected, "{answer}");
        assert_eq!(answer["error"]["code"].is_null(), expected.is_string(), "{answer}");
    }
}

#[test]
fn a_guest_gets_no_key_unless_the_user_hands_it_over_by_name() {
    let house = House::with(
        json!({ "steps": [{ "environment": "ANTHROPIC_API_KEY" }, { "environment": "MINE" }, { "environment": "COPY" }, { "environment": "PATH" }] }),
        "  env: { MINE: \"${ANTHROPIC_API_KEY}\" }\n",
    );
    let client = house.open_as(&[("ANTHROPIC_API_KEY", "sk-secret"), ("COPY", "sk-secret")]);
    accepting(&client).run("go");
    let value = |name: &str| {
        house.log().into_iter().find(|entry| entry["variable"] == name).unwrap()["value"].clone()
    };
    assert_eq!((value("ANTHROPIC_API_KEY"), value("MINE")), (Value::Null, json!("sk-secret")));
    assert_eq!(value("COPY"), Value::Null, "the same key under another name");
    assert!(value("PATH").is_string());
}

#[test]
fn a_guest_of_the_project_waits_for_approval_and_modes_that_change_nothing_have_none() {
    let house = House::new(json!([{ "say": "Hello." }]));
    for mode in ["plan", "readonly"] {
        let client = house.open();
        let session = client.session_with(json!({ "mode": mode }));
        let turn = session.prompt("go");
        if session.permission_or_end(&turn, 0).is_some() {
            session.allow(0);
        }
        session.wait_done(&turn);
        let (error, is_error) = house.result();
        assert!(is_error && house.log().is_empty(), "{mode}: {error}");
    }
    fs::remove_file(house.home().join(".claude/agents/visitor.md")).unwrap();
    house.project.write(".claude/agents/visitor.md", house.agent(""));
    let client = house.open();
    let session = accepting(&client);
    session.run("go");
    let (error, is_error) = house.result();
    assert!(is_error && error.contains("waits for the user's approval") && house.log().is_empty(), "{error}");
    let waiting = client.call("agent/trust/list", json!({}))["waiting"].clone();
    let runs =
        waiting.as_array().unwrap().iter().find(|asked| asked["key"] == "runs").expect("it is asked for");
    client.call("agent/trust/approve", json!({ "digests": [runs["digest"]] }));
    session.run("go");
    assert_eq!(house.result(), ("Hello.".to_owned(), false));
}

#[test]
fn a_guest_in_the_sandbox_changes_the_workspace_by_its_requests_alone() {
    let house = House::with(
        json!({ "steps": [
            { "ask": { "method": "fs/write_text_file", "params": { "path": "{{cwd}}/a.txt", "content": "asked\n" } } },
            { "say": "Asked. " }, { "disk": ["{{cwd}}/b.txt", "around\n"] }, { "say": "Written." },
        ] }),
        &format!("  sandbox: true\n  writable: [{}]\n", "\"${LOG_FOLDER}\""),
    );
    let folder = house.log_file().parent().unwrap().to_str().unwrap().to_owned();
    let client = house.open_as(&[("LOG_FOLDER", &folder)]);
    accepting(&client).run("go");
    assert_eq!(house.project.read("a.txt"), "asked\n");
    assert!(!house.project.path("b.txt").exists());
    let (error, is_error) = house.result();
    assert!(is_error && error.contains("Asked.") && !error.contains("Written."), "{error}");
}
