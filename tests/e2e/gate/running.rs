//! Calls that run: beside each other, in the sandbox, over files that must stay hidden; and what prompts show.
//!
//! Rule: a call that waits for the user holds back only what must come after it.

use kode_e2e::step;

use super::*;

#[test]
fn a_call_that_waits_for_the_user_does_not_hold_back_its_siblings() {
    let edit = |name: &str| json!({ "file_path": format!("{{{{cwd}}}}/{name}"), "old_string": "old", "new_string": "new" });
    let all = step()
        .call("Edit", edit("a.txt"))
        .call("Edit", edit("b.txt"))
        .call("Read", json!({ "file_path": "{{cwd}}/c.txt" }));
    let reads = ["a.txt", "b.txt"]
        .into_iter()
        .fold(step(), |step, name| step.call("Read", json!({ "file_path": format!("{{{{cwd}}}}/{name}") })));
    let desk = Desk::new(&Script::new([reads, all, say("ok")]));
    for name in ["a.txt", "b.txt", "c.txt"] {
        desk.project.write(name, "old\n");
    }
    desk.user(&json!({ "permissions": { "allow": ["Edit(//**/b.txt)"], "ask": ["Edit(//**/a.txt)"] } }));
    let client = desk.open();
    let session = client.session();
    let turn = session.prompt("go");
    session.wait_permission(0);
    let ended = |number: usize| {
        session.wait_event("the end of a sibling", |event| {
            let input = &event["item"]["body"]["input"];
            let (tool, name) = if number == 0 { ("Edit", "b.txt") } else { ("Read", "c.txt") };
            event["type"] == "tool:end"
                && event["item"]["body"]["name"] == tool
                && input["file_path"].as_str().is_some_and(|path| path.ends_with(name))
        })
    };
    for number in 0..2 {
        assert_eq!(ended(number)["item"]["body"]["state"], "COMPLETED");
    }
    assert_eq!(desk.project.read("b.txt"), "new\n");
    assert_eq!(desk.project.read("a.txt"), "old\n");
    assert_eq!(session.snapshot()["pendingPermissions"].as_array().unwrap().len(), 1);
    session.allow(0);
    session.wait_done(&turn);
    assert_eq!(desk.project.read("a.txt"), "new\n");
}

#[test]
fn no_more_calls_run_at_once_than_the_user_wants() {
    let reads = (0..25).fold(step(), |step, number| {
        step.call("Read", json!({ "file_path": format!("{{{{cwd}}}}/{number}.txt") }))
    });
    let desk = Desk::new(&Script::new([reads, say("ok")]));
    for number in 0..25 {
        desk.project.write(&format!("{number}.txt"), "text\n");
    }
    desk.user(&json!({ "tools": { "maxConcurrency": 1 } }));
    let client = desk.open();
    let session = client.session();
    session.run("go");
    let (mut running, mut most) = (0_i32, 0);
    for event in session.events() {
        match event["type"].as_str() {
            Some("tool:start") => running += 1,
            Some("tool:end") => running -= 1,
            _ => {}
        }
        most = most.max(running);
    }
    assert_eq!((running, most), (0, 1));
    assert_eq!(session.calls().len(), 25);
}

#[test]
fn a_command_that_hangs_is_ended_when_its_time_is_over() {
    let hang = call("Bash", json!({ "command": "sleep 600", "timeout": 200 }));
    let desk = Desk::new(&script([("hang", hang)]));
    desk.user(&json!({ "permissions": { "allow": ["Bash(sleep:*)"] } }));
    let client = desk.open();
    let session = client.session();
    session.run("hang");
    let [(text, is_error)] = desk.project.model.last_results().try_into().unwrap();
    assert!(is_error && text.contains("200 ms"), "{text}");
    assert!(session.events().iter().any(|event| event["type"] == "tool:timeout"));
}

#[test]
fn searches_leave_out_what_may_not_be_read() {
    let grep = call("Grep", json!({ "pattern": "needle", "path": "{{cwd}}" }));
    let glob = call("Glob", json!({ "pattern": "**/*", "path": "{{cwd}}" }));
    let desk = Desk::new(&script([("grep", grep), ("glob", glob), ("env", read(".env"))]));
    for name in ["open.txt", "private/a.txt", ".env"] {
        desk.project.write(name, "needle\n");
    }
    desk.user(&json!({ "permissions": { "deny": ["Read(//**/private/**)"] } }));
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("grep");
    let [(text, _)] = desk.project.model.last_results().try_into().unwrap();
    assert!(text.contains("open.txt") && !text.contains("private/a.txt") && !text.contains(".env"), "{text}");
    session.run("glob");
    let [(text, _)] = desk.project.model.last_results().try_into().unwrap();
    assert!(text.contains("open.txt") && !text.contains("private/a.txt"), "{text}");
    assert_eq!(fate(&session, "env").0, Fate::Refused);
}

#[test]
fn commands_run_in_the_sandbox_unless_the_user_lets_them_out() {
    let desk = Desk::new(&Script::default());
    let outside = desk.project.outside().join("user/outside.txt");
    let command = format!("touch '{}'", outside.display());
    let out = call("Bash", json!({ "command": command, "dangerouslyDisableSandbox": true }));
    let desk = Desk {
        project: Project::new(&script([
            ("in", bash(&command)),
            ("out", out),
            ("within", bash("touch within.txt")),
        ])),
    };
    std::fs::create_dir(desk.home()).unwrap();
    let allow = json!(["Bash(touch:*)"]);
    desk.user(&json!({ "permissions": { "allow": allow } }));
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    assert_eq!(fate(&session, "within").0, Fate::Ran);
    assert!(desk.project.path("within.txt").exists());
    let (fate_within, _, call) = fate(&session, "in");
    assert_eq!((fate_within, &call["state"]), (Fate::Ran, &json!("FAILED")), "{call}");
    let [(text, _)] = desk.project.model.last_results().try_into().unwrap();
    assert!(text.contains("Read-only file system") || text.contains("No such file"), "{text}");
    assert!(!outside.exists());
    let (asked, prompt, _) = fate(&session, "out");
    assert_eq!(asked, Fate::Asked);
    assert!(prompt["risks"].to_string().contains("outside the sandbox"), "{prompt}");

    let turn = session.prompt("out");
    session.allow(1);
    session.wait_done(&turn);
    assert!(outside.exists(), "{:?}", session.calls().last());
    std::fs::remove_file(&outside).unwrap();

    desk.user(&json!({ "permissions": { "allow": allow }, "sandbox": { "enabled": false } }));
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    assert_eq!(fate(&session, "in").0, Fate::Ran);
    assert!(outside.exists());
}

#[test]
fn who_never_wants_to_be_asked_has_it_refused() {
    let desk =
        Desk::new(&script([("write", write("a.txt")), ("tag", bash("git tag one")), ("look", bash("ls"))]));
    desk.user(&json!({ "permissions": { "allow": ["Bash(git tag:*)"] } }));
    let client = desk.open();
    let session = client.session_with(json!({ "mode": "dontAsk" }));
    let (fate_of_write, _, _) = fate(&session, "write");
    assert_eq!(fate_of_write, Fate::Refused);
    let [(text, is_error)] = desk.project.model.last_results().try_into().unwrap();
    assert!(is_error && text.contains("Never ask"), "{text}");
    assert_eq!(fate(&session, "tag").0, Fate::Ran);
    assert_eq!(fate(&session, "look").0, Fate::Ran);
}

#[test]
fn a_prompt_shows_both_ends_and_nothing_that_paints_over_it() {
    let long = format!("git tag first{}-last", "x".repeat(30_000));
    let sly = "git tag \u{202e}txet\u{202c} \u{1b}[2K\u{200b}end";
    let desk = Desk::new(&script([("long", bash(&long)), ("sly", bash(sly))]));
    let client = desk.open();
    let session = client.session();
    let (_, prompt, _) = fate(&session, "long");
    let text = prompt["text"].as_str().unwrap();
    assert!(text.contains("git tag first") && text.contains("-last") && text.len() < long.len(), "{text}");
    assert_eq!(prompt["scopes"], json!(["once"]), "nobody has seen all of it");
    let (_, prompt, _) = fate(&session, "sly");
    let text = prompt["text"].as_str().unwrap();
    assert!(text.contains("\\u{202e}") && text.contains("\\u{1b}") && text.contains("\\u{200b}"), "{text}");
    assert!(!text.contains(['\u{202e}', '\u{202c}', '\u{1b}', '\u{200b}']), "{text}");
}

#[test]
fn a_thought_is_thinking_and_no_answer() {
    let thinking = call("Think", json!({ "thought": "first a, then b" }));
    let desk = Desk::new(&Script::new([thinking, say("Done.")]));
    let client = desk.open();
    let session = client.session();
    session.run("go");
    let bodies: Vec<_> = session.items().into_iter().map(|item| item["body"].clone()).collect();
    let types: Vec<_> = bodies.iter().map(|body| body["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["userMessage", "thinking", "agentMessage"], "{bodies:?}");
    assert_eq!((&bodies[1]["text"], &bodies[1]["complete"]), (&json!("first a, then b"), &json!(true)));
    let [(text, is_error)] = desk.project.model.last_results().try_into().unwrap();
    assert!(!is_error && text == "Noted.", "{text}");
}

#[test]
fn events_report_that_a_call_waits_how_it_ended_and_how_long_it_took() {
    let calls = step()
        .call("Read", json!({ "file_path": "{{cwd}}/a.txt" }))
        .call("Read", json!({ "file_path": "{{cwd}}/missing.txt" }))
        .call("Bash", json!({ "command": "git stash drop" }));
    let desk = Desk::new(&Script::new([calls, say("ok")]));
    desk.project.write("a.txt", "text\n");
    desk.user(&json!({ "permissions": { "deny": ["Bash(git stash:*)"] } }));
    let client = desk.open();
    let session = client.session();
    session.run("go");
    let reported = |wanted: &str, fields: [&str; 2]| -> Vec<Value> {
        let events = session.events().into_iter().filter(|event| event["type"] == wanted);
        events.map(|event| json!(fields.map(|field| event[field].clone()))).collect()
    };
    let queued = reported("tool:queued", ["name", "queueLength"]);
    assert_eq!(queued, [json!(["Read", 1]), json!(["Read", 2]), json!(["Bash", 3])]);
    let mut executed = reported("tool_executed", ["name", "ok"]);
    executed.sort_by_key(Value::to_string);
    assert_eq!(executed, [json!(["Bash", false]), json!(["Read", false]), json!(["Read", true])]);
    assert!(reported("tool_executed", ["durationMs", "callId"]).iter().all(|call| call[0].is_u64()));
    let denied = reported("tool:denied", ["name", "reason"]);
    assert!(denied.len() == 1 && denied[0][0] == "Bash", "{denied:?}");
    assert!(denied[0][1].as_str().unwrap().contains("Bash(git stash:*)"), "{denied:?}");
    let failed = &session.calls()[1];
    assert_eq!((&failed["name"], &failed["error"]), (&json!("Read"), &json!("notFound")));
    assert!(failed["display"].as_str().unwrap().contains("missing.txt"), "{failed}");
}
