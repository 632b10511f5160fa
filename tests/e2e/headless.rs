//! Runs without an editor: output formats, exit codes, and answers without a user.

use kode_e2e::{Project, Script, Session, call, run, say};
use serde_json::{Value, json};

fn script() -> Script {
    let read = call("Read", json!({ "file_path": "{{cwd}}/a.txt" }));
    let edit = json!({ "file_path": "{{cwd}}/a.txt", "old_string": "old", "new_string": "new" });
    Script::default()
        .when("^read", [read.clone(), say("It says: old.")])
        .when("^edit", [read, call("Edit", edit), say("Edited.")])
        .when("^command", [call("Bash", json!({ "command": "echo ran > ran.txt" })), say("Tried.")])
        .when("^fail", [say("Never said.").faults([json!({ "status": 400 })])])
}

fn project() -> Project {
    let project = Project::new(&script());
    project.write("a.txt", "old\n");
    project
}

fn lines(stdout: &str) -> Vec<Value> {
    let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line:?}"));
    stdout.lines().map(parse).collect()
}

#[test]
fn text_is_the_answer_alone_and_the_steps_go_to_standard_error() {
    let output = project().run(&["run", "read it"], "");
    assert_eq!((output.code, output.stdout.as_str()), (0, "It says: old.\n"), "{output:?}");
    assert!(output.stderr.contains("a.txt"), "{output:?}");
}

#[test]
fn json_is_one_object() {
    let output = project().run(&["run", "--output-format", "json", "read it"], "");
    let [result] = lines(&output.stdout).try_into().expect("one line");
    assert_eq!(output.code, 0, "{output:?}");
    for (field, expected) in [
        ("type", json!("result")),
        ("subtype", json!("success")),
        ("is_error", json!(false)),
        ("result", json!("It says: old.")),
        ("num_turns", json!(2)),
        ("num_tool_calls", json!(1)),
    ] {
        assert_eq!(result[field], expected, "{field} in {result}");
    }
    assert!(result["usage"].is_object() && result["session_id"].is_string(), "{result}");
}

#[test]
fn stream_json_is_one_object_a_line_from_start_to_result() {
    let output = project().run(&["run", "--output-format", "stream-json", "-"], "read it\n");
    assert_eq!(output.code, 0, "{output:?}");
    let lines = lines(&output.stdout);
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["system", "assistant", "user", "assistant", "result"], "{}", output.stdout);
    assert_eq!(lines[0]["subtype"], "init");
    assert!(lines[0]["tools"].as_array().unwrap().contains(&json!("Read")), "{}", lines[0]);
    assert_eq!(lines[1]["message"]["content"][0]["type"], "tool_use");
    assert_eq!(lines[2]["message"]["content"][0]["type"], "tool_result");
    assert_eq!(lines[4]["result"], "It says: old.");
    let session = &lines[0]["session_id"];
    assert!(
        session.is_string() && lines.iter().all(|line| line["session_id"] == *session),
        "{}",
        output.stdout
    );
}

#[test]
fn what_would_have_to_be_asked_is_refused_when_nobody_is_there() {
    let project = project();
    let output = project.run(&["run", "command please"], "");
    assert_eq!(output.code, 0, "the turn ended as it should: {output:?}");
    assert!(!project.path("ran.txt").exists());
    assert!(output.stderr.contains("denied: no terminal"), "{output:?}");
    let [(text, is_error)] = project.model.last_results().try_into().unwrap();
    assert!(is_error, "{text}");
}

#[test]
fn an_editor_follows_a_run_by_its_name() {
    let project = Project::new(&Script::new([say("Held.").gate("hold", 0)]));
    let output = std::thread::scope(|scope| {
        let run = scope.spawn(|| project.run(&["run", "hold on"], ""));
        project.model.wait_until_held("hold");
        let client = project.open();
        let listed = client.call("agent/session/list", json!({}));
        let session = Session::new(&client, listed["sessions"][0]["sessionId"].as_str().unwrap());
        let loaded = session.call("agent/session/load", json!({}));
        assert_eq!(loaded["following"]["by"]["client"], "kode-ls run", "{loaded}");
        project.model.release("hold");
        session.wait_event("the answer", |event| event["type"] == "done");
        client.shut_down();
        run.join().unwrap()
    });
    assert_eq!((output.code, output.stdout.as_str()), (0, "Held.\n"), "{output:?}");
}

#[test]
fn the_mode_lets_edits_through() {
    let project = project();
    let output = project.run(&["run", "--mode", "acceptEdits", "edit it"], "");
    assert_eq!(output.code, 0, "{output:?}");
    assert_eq!(project.read("a.txt"), "new\n");
}

#[test]
fn a_turn_that_fails_fails_the_run() {
    for format in ["text", "json", "stream-json"] {
        let output = project().run(&["run", "--output-format", format, "fail"], "");
        assert_eq!(output.code, 1, "{format}: {output:?}");
        if format != "text" {
            let last = lines(&output.stdout).pop().expect("a result");
            assert_eq!((&last["type"], &last["is_error"]), (&json!("result"), &json!(true)), "{last}");
        }
        assert!(output.stderr.contains("error"), "{output:?}");
    }
}

#[test]
fn a_run_that_may_not_call_the_model_says_so_in_the_format_that_was_asked_for() {
    let project = project();
    let run =
        |format: &str| project.run(&["run", "--max-turns", "0", "--output-format", format, "read it"], "");
    for format in ["json", "stream-json"] {
        let output = run(format);
        let last = lines(&output.stdout).pop().expect("a result");
        assert_eq!(
            (&last["type"], &last["is_error"], &last["stop_reason"], &last["num_turns"], output.code),
            (&json!("result"), &json!(true), &json!("chat_disabled"), &json!(0), 1),
            "{format}: {output:?}"
        );
        assert_eq!(last["result"], "");
        assert!(last["error"].as_str().unwrap().contains("the turn limit is 0"), "{last}");
    }
    let output = run("text");
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output:?}");
    assert_eq!(output.stderr.matches("the turn limit is 0").count(), 1, "{output:?}");
    assert!(project.model.requests().is_empty());
}

#[test]
fn without_a_key_the_run_says_what_to_set() {
    let home = tempfile::tempdir().unwrap();
    let environment = [("KODE_LS_HOME", home.path().to_str().unwrap())];
    let output = run(&["run", "hello"], Some(home.path()), &environment, "");
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.stderr.contains("ANTHROPIC_API_KEY"), "{output:?}");
    assert_eq!(output.stdout, "");
}

#[test]
fn the_demo_does_all_it_shows() {
    let output = run(&["demo", "--yes"], None, &[], "");
    assert_eq!(output.code, 0, "{output:?}");
    for expected in ["-    return \"Helo, \" + name", "+    return \"Hello, \" + name"] {
        assert!(output.stderr.contains(expected), "no {expected:?} in {}", output.stderr);
    }
    assert!(!output.stdout.contains("FAIL"), "{output:?}");
}

#[test]
fn the_demo_says_why_it_cannot_ask_without_a_terminal() {
    let output = run(&["demo"], None, &[], "");
    assert_ne!(output.code, 0, "{output:?}");
    assert!(output.stderr.contains("--yes"), "{output:?}");
}

#[test]
fn a_wrong_argument_is_answered_with_the_nearest_right_one() {
    for (arguments, expected) in [
        (&["run", "--output-fromat", "json", "x"][..], "--output-format"),
        (&["run", "--mode", "reckless", "x"], "acceptEdits"),
        (&["dmeo"], "demo"),
        (&["run", "--cwd", "/no/such/folder", "x"], "/no/such/folder"),
    ] {
        let output = run(arguments, None, &[], "");
        assert_ne!(output.code, 0, "{arguments:?}");
        assert!(output.stderr.contains(expected), "{arguments:?}: {}", output.stderr);
        assert_eq!(output.stdout, "", "{arguments:?}");
    }
}
