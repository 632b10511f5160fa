//! The reminders of a request: from the event to the text, once, and in nothing that is kept.

use super::*;
use kode_record::reminder::ReminderKind;
use kode_tools::built_in::built_in;

fn use_tool(id: &str, name: &str, input: serde_json::Value) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input, input_error: None }
}

/// How many reminders of each request hold a text.
fn reported(bench: &Bench, words: &str) -> Vec<usize> {
    let count = |request: ModelRequest| request.reminders.iter().filter(|text| text.contains(words)).count();
    bench.requests().into_iter().map(count).collect()
}

async fn assert_nowhere_kept(bench: Bench, session: &Session) {
    let history = format!("{:?}", session.history().messages_from(0));
    assert!(!history.contains("system-reminder"), "{history}");
    bench.engine.shutdown().await;
    let journal = std::fs::read_to_string(journal_of(bench.home.path())).unwrap();
    assert!(!journal.contains("system-reminder"), "{journal}");
}

#[tokio::test]
async fn what_others_changed_is_reported_once_also_between_the_calls_of_a_turn() {
    let script = vec![
        Say::Answer(vec![use_tool("c0", "Read", json!({ "file_path": "a.txt" }))]),
        Say::Answer(vec![use_tool("c1", "Probe", json!({ "what": "wait" }))]),
        Say::Answer(vec![use_tool("c2", "Probe", json!({ "what": "return" }))]),
    ];
    let mut tools = built_in();
    let probe = Probe::default();
    tools.add(probe.clone());
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), script, tools);
    let file = bench.root().join("a.txt");
    std::fs::write(&file, "one\n").unwrap();
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, |event| matches!(event, Event::ToolStart { item } if matches!(&item.body, ItemBody::ToolCall(call) if call.name == "Probe"))).await;
    std::fs::write(&file, "two\n").unwrap();
    until(&mut events, |event| matches!(event, Event::FileChanged { .. })).await;
    while probe.running.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let ended = until(&mut events, is_done);
    tokio::pin!(ended);
    let seen = loop {
        probe.go.notify_waiters();
        tokio::select! {
            seen = &mut ended => break seen,
            () = tokio::time::sleep(Duration::from_millis(5)) => {}
        }
    };
    assert_eq!(reported(&bench, "`a.txt`: on disk"), [0, 0, 1, 0]);
    let reminded = |record: &EventRecord| {
        matches!(record.event, Event::Reminder { kind: ReminderKind::FilesChanged, messages: 5, .. })
    };
    assert!(seen.iter().any(reminded), "{seen:?}");
    assert_nowhere_kept(bench, &session).await;
}

#[tokio::test]
async fn a_failed_edit_reminds_to_read_that_file_and_a_changed_mode_is_reported_once() {
    let edit = json!({ "file_path": "a.txt", "old_string": "nine", "new_string": "ten" });
    let script = vec![
        Say::Answer(vec![use_tool("c0", "Read", json!({ "file_path": "a.txt" }))]),
        Say::Answer(vec![use_tool("c1", "Edit", edit)]),
        Say::Answer(vec![text("well")]),
    ];
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), script, built_in());
    std::fs::write(bench.root().join("a.txt"), "one\n").unwrap();
    let session = bench.session();
    session.set_mode(Mode::AcceptEdits);
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let seen = until(&mut events, is_done).await;
    let begins = |record: &&EventRecord| {
        matches!(record.event, Event::Reminder { kind: ReminderKind::SessionStart, .. })
    };
    assert_eq!(seen.iter().filter(begins).count(), 1);
    assert_eq!(reported(&bench, "Read `a.txt` again"), [0, 0, 1]);
    session.set_mode(Mode::Plan);
    session.prompts().submit(prompt("plan it")).unwrap();
    let seen = until(&mut events, is_done).await;
    assert_eq!(seen.iter().filter(begins).count(), 1, "one for each query");
    session.set_mode(Mode::Default);
    session.prompts().submit(prompt("do it")).unwrap();
    until(&mut events, is_done).await;
    session.prompts().submit(prompt("more")).unwrap();
    until(&mut events, is_done).await;
    assert_eq!(reported(&bench, "set the mode to plan"), [0, 0, 0, 1, 0, 0]);
    assert_eq!(reported(&bench, "Plan mode is over"), [0, 0, 0, 0, 1, 0]);
    assert_nowhere_kept(bench, &session).await;
}
