//! The display of clients: a snapshot and the events after it, live and in the next run of a session, from any bookmark.

use std::path::Path;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::client::{Client, is_transient};
use super::property::{Counting, script, turns};
use super::*;
use crate::edits::review::{RestoreWhat, UserEdits};
use kode_record::draft::PromptDraft;
use kode_record::event::log::LIFE_JUMP;

/// The acts of a user.
#[derive(Clone, Debug)]
enum Act {
    Submit,
    Steer,
    Draft(Option<usize>),
    Plan(bool),
    Drop,
    Cancel,
    Rewind,
    Wait(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => Just(Act::Submit),
        1 => Just(Act::Steer),
        1 => prop::option::of(prop_oneof![Just(3_usize), Just(10_000)]).prop_map(Act::Draft),
        1 => any::<bool>().prop_map(Act::Plan),
        1 => Just(Act::Drop),
        1 => Just(Act::Cancel),
        1 => Just(Act::Rewind),
        3 => (0_u64..3_000).prop_map(Act::Wait),
    ];
    prop::collection::vec(act, 1..12)
}

async fn act(session: &Arc<Session>, act: &Act, number: usize) {
    match act {
        Act::Submit => drop(session.prompts().submit(prompt(&format!("p{number}"))).unwrap()),
        Act::Steer => drop(session.prompts().steer(prompt(&format!("s{number}"))).unwrap()),
        Act::Draft(length) => {
            let draft =
                length.map(|length| PromptDraft { text: "d".repeat(length), ..PromptDraft::default() });
            session.drafts().set(draft).unwrap();
        }
        Act::Plan(plan) => session.set_mode(if *plan { Mode::Plan } else { Mode::Default }),
        Act::Drop => {
            if let Some(first) = session.snapshot(0).queue.first() {
                session.prompts().remove_queued(&first.id).unwrap();
            }
        }
        Act::Cancel => drop(session.turns().cancel()),
        Act::Rewind => {
            let turn = session.core().state().main.turns().last().cloned();
            if let Some(turn) = turn {
                // Refused while a turn runs.
                let (what, edits) = (RestoreWhat::Conversation, UserEdits::Keep);
                drop(session.edits().restore(&CheckpointId::before(&turn), what, edits));
            }
        }
        Act::Wait(ms) => tokio::time::sleep(Duration::from_millis(*ms)).await,
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(std::fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// The session as it would be resumed, had its process been killed now.
async fn next_life(bench: &Bench, session: &Session) -> (Bench, Arc<Session>) {
    let home = tempfile::tempdir().unwrap();
    copy(&bench.home.path().join("state"), &home.path().join("state"));
    let next = Bench::in_home(home, vec![]);
    let roots = [bench.root()];
    let session = next.engine.load_session_reporting(&roots, session.id(), Some(0), |_| {}).await.unwrap();
    (next, session)
}

/// All events of records come again, under the same numbers; the others have no record.
fn assert_replayed(live: &[EventRecord], replayed: &[EventRecord]) {
    let newest = live.last().map_or(0, |record| record.bookmark.seq);
    let mut replayed = replayed.iter().take_while(|record| record.bookmark.seq <= newest).peekable();
    for record in live {
        match replayed.next_if(|known| known.bookmark.seq == record.bookmark.seq) {
            Some(known) => assert_eq!(known, record),
            None => assert!(is_transient(&record.event) || is_long_draft(&record.event), "lost: {record:#?}"),
        }
    }
    assert_eq!(replayed.next(), None, "told only in the next life");
}

/// Whether it reports a draft that is written later, or taken away before it was.
fn is_long_draft(event: &Event) -> bool {
    matches!(event, Event::DraftChanged { draft }
        if draft.as_ref().is_none_or(|draft| draft.text.len() > 1_000))
}

async fn run(turns: &[property::Turn], acts: &[Act]) {
    let mut tools = Registry::default();
    tools.add(Counting::default());
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), script(turns), tools);
    let session = bench.session();
    let mut first = Client::of(&session);
    let mut clients = vec![first.clone()];
    for (number, one) in acts.iter().enumerate() {
        act(&session, one, number).await;
        clients.push(Client::of(&session));
    }
    first.catch_up(&session);
    first.assert_shows(&session);
    for client in &clients {
        let mut live = client.clone();
        live.catch_up(&session);
        live.assert_shows(&session);
    }
    // Clients that hung on to the last moment of the life that ends here.
    clients.push(first.clone());

    let (next, resumed) = next_life(&bench, &session).await;
    let mut all = resumed.events().subscribe(0, vec![]);
    let mut replayed = Vec::new();
    loop {
        let batch = all.ready().unwrap();
        if batch.is_empty() {
            break;
        }
        replayed.extend(batch);
    }
    assert_replayed(&first.seen, &replayed);
    assert!(resumed.events().newest() > LIFE_JUMP);
    for client in &mut clients {
        client.catch_up(&resumed);
        client.assert_shows(&resumed);
    }
    resumed.prompts().submit(prompt("last")).unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    for client in &mut clients {
        client.catch_up(&resumed);
        client.assert_shows(&resumed);
    }
    next.engine.shutdown().await;
    bench.engine.shutdown().await;
}

#[test]
fn from_any_bookmark_a_client_shows_what_a_fresh_snapshot_shows_live_and_in_the_next_life() {
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let ran = runner.run(&(turns(), acts()), |(turns, acts)| {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(run(&turns, &acts));
        Ok(())
    });
    ran.unwrap();
}
