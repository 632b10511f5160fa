//! Tests of Bash: the model's view of a command, and further remarks.
//!
//! Rule: a test waits for what a command writes, never for a time.

use super::*;
use crate::read::Read;
use crate::rig::ToolRig;
use crate::testing::Fixture;
use kode_testing::text::Saving;

async fn failure(fixture: &Fixture, input: serde_json::Value) -> ToolError {
    fixture.run(Bash, input).await.unwrap_err()
}

#[tokio::test]
async fn output_of_a_command_that_works_is_given_with_its_facts() {
    let fixture = Fixture::new();
    let found = fixture.run(Bash, json!({ "command": "echo out; echo err >&2" })).await.unwrap();
    assert_eq!(found.model_text, "out\nerr");
    let structured = found.structured.unwrap();
    assert_eq!(structured["exitCode"], 0);
    assert_eq!(structured["timedOut"], false);
    assert_eq!(structured["truncatedChars"], 0);
    assert_eq!(fixture.text(Bash, json!({ "command": "true" })).await, "(no output)");
}

#[tokio::test]
async fn a_failed_command_is_an_error_with_code_and_output() {
    let fixture = Fixture::new();
    let error = failure(&fixture, json!({ "command": "echo why; exit 3" })).await;
    assert_eq!((error.kind, &*error.message), (ToolErrorKind::Failed, "Exit code 3\nwhy"));
    let error = failure(&fixture, json!({ "command": "no-such-program" })).await;
    assert!(error.message.starts_with("Exit code 127\n") && error.hint.contains("not found"), "{error:?}");
    let error = failure(&fixture, json!({ "command": "kill -9 $$" })).await;
    assert_eq!(error.message, "Ended by signal 9\n(no output)");
}

#[tokio::test]
async fn a_timeout_names_the_milliseconds_and_keeps_the_output() {
    let fixture = Fixture::new();
    let error = failure(&fixture, json!({ "command": "echo begun; sleep 600", "timeout": 300 })).await;
    assert_eq!(error.kind, ToolErrorKind::Timeout);
    assert!(error.message.contains("300 ms") && error.message.ends_with("\nbegun"), "{error:?}");
}

#[tokio::test]
async fn a_cancelled_command_keeps_its_output() {
    let fixture = Fixture::new();
    let mut context = fixture.context();
    let cancel = context.cancel.clone();
    context.progress = Arc::new(move |text| {
        if text.contains("begun") {
            cancel.cancel();
        }
    });
    let command = json!({ "command": "echo begun; sleep 600" });
    let error = fixture.run_in(context, Bash, command).await.unwrap_err();
    assert_eq!(error.kind, ToolErrorKind::Cancelled);
    assert!(error.message.ends_with("\nbegun"), "{error:?}");
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_the_cut_is_reported() {
    let fixture = Fixture::new();
    let command = "head -c 1000000 /dev/zero | tr '\\0' x";
    let found = fixture.run(Bash, json!({ "command": command })).await.unwrap();
    assert_eq!(found.structured.unwrap()["truncatedChars"], 973_000);
    assert!(found.model_text.contains("973000 characters of output cut here"));
    let (shown, note) = found.model_text.split_once("\n\nNote: ").unwrap();
    assert_eq!(shown.matches('x').count(), 27_000);
    assert!(note.starts_with("the whole output is in `"), "{note}");
}

#[tokio::test]
async fn arguments_that_cannot_work_are_refused() {
    let fixture = Fixture::new();
    let cases = [
        (json!({ "command": " " }), "empty"),
        (json!({ "command": "a\0b" }), "NUL"),
        (json!({ "command": "x".repeat(MAX_COMMAND + 1) }), "100001 bytes"),
        (json!({ "command": "true", "timeout": 600_001 }), "the maximum is 600000 ms"),
        (json!({ "command": "true", "timeout": 0 }), "the minimum 1 ms"),
    ];
    for (input, message) in cases {
        let error = fixture.plan(Bash, input).await.unwrap_err();
        assert_eq!(error.kind, ToolErrorKind::InvalidInput);
        assert!(error.message.contains(message), "{error:?}");
    }
}

#[tokio::test]
async fn the_command_is_declared_exactly_and_titled_shortly() {
    let fixture = Fixture::new();
    let long = "y".repeat(MAX_TITLE + 1);
    let cases = [
        (json!({ "command": "ls -l\n" }), "Run `ls -l`".to_owned()),
        (json!({ "command": "cd a\nls" }), "Run `cd a…`".to_owned()),
        (json!({ "command": long }), format!("Run `{}…`", &long[1..])),
    ];
    for (input, title) in cases {
        let plan = fixture.plan(Bash, input.clone()).await.unwrap();
        assert_eq!(plan.title, title);
        let command = input["command"].as_str().unwrap().to_owned();
        let is_command =
            |touch: &Touch| matches!(touch, Touch::Command { command: given, .. } if *given == command);
        assert!(plan.touches.iter().all(is_command) && plan.touches.len() == 1);
    }
}

#[tokio::test]
async fn the_folder_is_carried_over_until_it_leaves_the_workspace() {
    let fixture = Fixture::new();
    fixture.write("sub/file", "");
    let context = fixture.context();
    let run = async |command: &str| {
        let input = json!({ "command": command });
        fixture.run_in(context.clone(), Bash, input).await.unwrap().model_text
    };
    run("cd sub").await;
    assert_eq!(run("ls").await, "file");
    let left = run("cd /; pwd").await;
    assert!(left.starts_with("/\n\nNote: `/` is outside the workspace"), "{left}");
    assert_eq!(run("pwd").await, fixture.root().to_string());
}

#[tokio::test]
async fn files_with_unsaved_text_are_named() {
    let mut fixture = Fixture::new();
    for (path, saved, shown) in [
        ("same", "a\nb\n", "a\nb\n"),
        ("crlf", "a\r\nb\n", "a\nb\n"),
        ("bom", "\u{feff}a\n", "a\n"),
        ("changed", "a\n", "b\n"),
    ] {
        fixture.write(path, saved);
        fixture.open(path, shown);
    }
    fixture.write("latin1", b"\xe9");
    fixture.open("latin1", "é");
    fixture.open("new", "");
    fixture.open_untitled("1", "text");
    let text = fixture.text(Bash, json!({ "command": "echo done" })).await;
    assert_eq!(text, "done\n\nNote: the command did not see unsaved text of `changed`, `new`.");

    let files: Vec<String> = (0..7).map(|number| number.to_string()).collect();
    assert_eq!(named(&files), "`0`, `1`, `2`, `3`, `4` and 2 more");
}

#[tokio::test]
async fn the_output_is_reported_while_the_command_runs() {
    let fixture = Fixture::new();
    let mut context = fixture.context();
    let proceed = fixture.root().join("go-on");
    let report = Arc::clone(&context.progress);
    context.progress = Arc::new(move |text| {
        std::fs::write(&proceed, "").unwrap();
        report(text);
    });
    let command = "echo first; until [ -e go-on ]; do sleep 0.01; done; echo second";
    let found = fixture.run_in(context, Bash, json!({ "command": command })).await.unwrap();
    assert_eq!(found.model_text, "first\nsecond");
    assert_eq!(fixture.progress()[0], "first\n");
}

#[tokio::test(start_paused = true)]
async fn reports_come_at_once_and_then_not_too_often_with_the_end_of_the_output() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let mut reporter = Reporter::new({
        let reports = Arc::clone(&reports);
        Arc::new(move |text| reports.lock().push(text))
    });
    let seen = || std::mem::take(&mut *reports.lock());
    reporter.push("a");
    assert_eq!(seen(), ["a"]);
    reporter.push("b");
    reporter.push("c");
    assert_eq!(seen(), [""; 0]);
    tokio::time::advance(PROGRESS_INTERVAL).await;
    reporter.flush();
    reporter.flush();
    assert_eq!(seen(), ["abc"]);
    tokio::time::advance(PROGRESS_INTERVAL).await;
    reporter.push(&"é".repeat(MAX_PROGRESS + 1));
    assert_eq!(seen(), ["é".repeat(MAX_PROGRESS)]);
}

#[tokio::test]
async fn a_command_in_the_background_is_named_at_once() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let input = json!({ "command": "sleep 600", "run_in_background": true, "timeout": 5 });
    let plan = fixture.plan(Bash, input.clone()).await.unwrap();
    assert_eq!(plan.title, "Run `sleep 600` in the background");
    assert!(matches!(&*plan.touches, [Touch::Command { command, .. }] if command == "sleep 600"));
    let found = fixture.run_in(context.clone(), Bash, input.clone()).await.unwrap();
    assert!(found.model_text.starts_with("bash_1 (`sleep 600`) runs in the background."), "{found:?}");
    assert!(found.model_text.contains("`timeout` has no effect"), "{found:?}");
    assert_eq!(found.structured.unwrap()["taskId"], "bash_1");
    let mut errors = Vec::new();
    for _ in 0..4 {
        errors.push(fixture.run_in(context.clone(), Bash, input.clone()).await.err());
    }
    let refused = errors.pop().flatten().unwrap();
    assert!(errors.iter().all(Option::is_none), "{errors:?}");
    assert!(
        refused.message.contains("bash_1 (`sleep 600`)") && refused.hint.contains("KillShell"),
        "{refused:?}"
    );
    context.shell.tasks().close();
    context.shell.tasks().closed().await;
}

#[tokio::test]
async fn the_whole_of_long_output_is_kept_and_where_is_reported() {
    let fixture = Fixture::new();
    let command = json!({ "command": "seq 1 20000" });
    let found = fixture.run(Bash, command).await.unwrap();
    let file = found.structured.unwrap()["outputFile"].as_str().unwrap().to_owned();
    assert!(found.model_text.contains(&format!("the whole output is in `{file}`")), "{}", found.model_text);
    let whole: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(std::fs::read_to_string(file).unwrap(), whole);
}

#[tokio::test]
async fn kept_output_that_was_read_may_grow_without_a_word() {
    let fixture = Fixture::new();
    let context = fixture.context();
    let found = fixture.run_in(context.clone(), Bash, json!({ "command": "seq 1 20000" })).await.unwrap();
    let file = found.structured.unwrap()["outputFile"].as_str().unwrap().to_owned();
    let read = fixture.run_in(context.clone(), Read, json!({ "file_path": file })).await.unwrap();
    assert!(read.model_text.contains("2000\t2000"), "{read:?}");
    std::fs::write(file, "changed").unwrap();
    context.workspace.look_for_changes();
    assert_eq!(context.workspace.reminder(&context.workspace.take_changes()), None);
}

/// Two open documents, one of which the agent has edited, and an editor that saves.
async fn unsaved() -> ToolRig {
    let rig = ToolRig::new();
    for file in ["agent.txt", "user.txt"] {
        rig.write(file, "one\n");
        rig.open(file, "one\n");
    }
    rig.call("Read", json!({"file_path": "agent.txt"})).await.unwrap();
    let input = json!({"file_path": "agent.txt", "old_string": "one", "new_string": "two"});
    rig.call("Edit", input).await.unwrap();
    rig.type_text("user.txt", "typed\n");
    rig.set_saving(Saving::Works);
    rig
}

async fn shown(rig: &ToolRig) -> String {
    rig.call("Bash", json!({"command": "cat agent.txt user.txt"})).await.unwrap().model_text
}

#[tokio::test]
async fn commands_see_what_the_agent_edited_and_the_users_typing_stays_unsaved() {
    let rig = unsaved().await;
    let note = "Note: the command did not see unsaved text of `user.txt`.";
    assert_eq!(shown(&rig).await, format!("two\none\n\n{note}"));
    rig.type_text("agent.txt", "two, and typed\n");
    let note = "Note: the command did not see unsaved text of `agent.txt`, `user.txt`.";
    assert_eq!(shown(&rig).await, format!("two\none\n\n{note}"), "now only the user has changed it");
}

#[tokio::test]
async fn a_save_that_fails_is_reported_and_the_command_runs() {
    let rig = unsaved().await;
    rig.set_saving(Saving::Fails("the disk is full"));
    let text = shown(&rig).await;
    let expected =
        "one\none\n\nNote: `agent.txt` could not be saved before the command ran: the disk is full.";
    assert!(text.starts_with(expected), "{text}");
    rig.set_saving(Saving::Works);
    assert_eq!(rig.workspace().save_before_command().await, [], "what failed is tried again");
    assert_eq!(rig.text("agent.txt"), "two\n");
}
