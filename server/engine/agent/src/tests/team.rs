//! Waits for a message: their bound, their end by the user, and their state for clients.
//!
//! Rule: the clock is the test's, and the awaited sub-agent works longer than every wait.

use serde_json::Value;
use tokio::time::Instant;

use super::*;
use kode_record::team::MemberState;
use kode_tools::send_message::SendMessage;
use kode_tools::task::Task;
use kode_tools::wait_for_message::WaitForMessage;

/// How long the sub-agent works.
const WORK: Duration = Duration::from_secs(3_000);

fn block(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input, input_error: None }
}

/// A session whose model starts `one` in the background and then makes this call.
fn bench(wait: Value) -> Bench {
    let task = json!({ "description": "d", "prompt": "sit", "name": "one", "run_in_background": true });
    let script = vec![
        Say::Answer(vec![block("t0", "Task", task)]),
        Say::Answer(vec![block("w0", "WaitForMessage", wait)]),
    ];
    let mut tools = Registry::default();
    tools.add(Task);
    tools.add(SendMessage);
    tools.add(WaitForMessage);
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), script, tools);
    let sits = VecDeque::from([Say::After(WORK, vec![text("done")])]);
    bench.model.tasks.lock().unwrap().insert("sit".to_owned(), sits);
    bench
}

fn main_state(event: &Event) -> Option<MemberState> {
    match event {
        Event::TeamChanged { team: Some(team) } => Some(team.members[0].state.clone()),
        _ => None,
    }
}

fn is_waiting(event: &Event) -> bool {
    matches!(main_state(event), Some(MemberState::WaitingFor(_)))
}

fn last_result(bench: &Bench) -> (String, bool) {
    let is_main = |request: &&ModelRequest| request.messages[0].content == [text("go")];
    let requests = bench.requests();
    let (_, text, is_error) = results(requests.iter().rfind(is_main).unwrap()).pop().unwrap();
    (text, is_error)
}

#[tokio::test(start_paused = true)]
async fn a_wait_is_over_at_its_bound_and_shows_until_then() {
    let bench = bench(json!({ "from": "one", "timeout_seconds": 7 }));
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let seen = until(&mut events, is_waiting).await;
    let began = Instant::now();
    let shown = seen.iter().rev().find_map(|record| main_state(&record.event));
    assert_eq!(shown, Some(MemberState::WaitingFor(Some("one".to_owned()))));
    let seen = until(&mut events, is_done).await;
    assert!(
        (Duration::from_secs(6)..Duration::from_secs(60)).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
    assert_eq!(
        last_result(&bench),
        ("No message of `one` came in 7 s. Continue with other work, or wait once more.".to_owned(), false)
    );
    let states: Vec<_> = seen.iter().filter_map(|record| main_state(&record.event)).collect();
    assert_eq!(states, [MemberState::Working, MemberState::Idle], "the wait, and then the turn, are over");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_user_cancels_or_says_something() {
    for steers in [false, true] {
        let bench = bench(json!({ "timeout_seconds": 600 }));
        let session = bench.session();
        let mut events = session.events().subscribe(0, vec![]);
        session.prompts().submit(prompt("go")).unwrap();
        until(&mut events, is_waiting).await;
        match steers {
            true => drop(session.prompts().steer(prompt("hurry")).unwrap()),
            false => assert!(session.turns().cancel()),
        }
        let began = Instant::now();
        until(&mut events, is_done).await;
        assert!(began.elapsed() < Duration::from_secs(600), "it was not the bound");
        let main = session.snapshot(0).team.unwrap().members.remove(0);
        assert_eq!(main.state, MemberState::Idle);
        if steers {
            assert_eq!(
                last_result(&bench),
                ("No message came; the user has written one to you.".to_owned(), false)
            );
        }
    }
}
