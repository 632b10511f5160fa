//! A session on a disk that fails: it stays usable, users are notified, and a reload restores the state.

use super::*;
use kode_journal::disk::real;
use kode_permission::Scope;
use kode_testing::disk::faults::{Fault, Faulty, Plan};
use kode_tools::built_in::built_in;

impl Bench {
    fn on_disk(self, disk: &Faulty) -> Self {
        Self { engine: self.engine.on_disk(Arc::new(disk.clone())), ..self }
    }
}

fn bad_disk(plan: Option<Plan>) -> Faulty {
    Faulty::new(real(), plan)
}

fn script() -> Vec<Say> {
    vec![
        Say::Answer(vec![text("looking"), call("c0", "Probe", "return"), call("c1", "SafeProbe", "return")]),
        Say::Answer(vec![text("first done")]),
        Say::Answer(vec![call("d0", "Nothing", "")]),
        Say::Answer(vec![text("second done")]),
    ]
}

/// The view of people and models on a session.
fn seen(session: &Session) -> String {
    let snapshot = session.snapshot(usize::MAX);
    let (messages, spending) = (session.history().messages_from(0), session.spending());
    format!("{:?}\n{:?}\n{:?}\n{messages:?}\n{spending:?}", snapshot.title, snapshot.items, snapshot.mode)
}

fn storage_events(events: &[EventRecord]) -> Vec<bool> {
    let reported = events.iter().filter_map(|record| match &record.event {
        Event::StorageFailure { recovered, .. } => Some(*recovered),
        _ => None,
    });
    reported.collect()
}

/// Two turns on a disk that fails by plan and is well again afterwards. Answers how many calls there were.
async fn two_turns(plan: Plan) -> u64 {
    let disk = bad_disk(Some(plan));
    let bench = Bench::new(script()).on_disk(&disk);
    let new = NewSession { roots: vec![bench.root()], mode: Some(Mode::Default), model: None };
    let Ok(session) = bench.engine.new_session(new) else {
        assert!(disk.calls() >= plan.at, "{plan:?}");
        return u64::MAX;
    };
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("one")).unwrap();
    session.set_mode(Mode::AcceptEdits);
    session.prompts().submit(prompt("two")).unwrap();
    let mut done = 0;
    let mut reported = until(&mut events, |event| {
        done += usize::from(matches!(event, Event::Done { reason: TurnEnd::EndTurn, .. }));
        done == 2
    })
    .await;
    disk.fail_from_now_on(None);
    let calls = disk.calls();
    // A call of the writer may fail before the writer reports it, and the end is reported a moment after it has come.
    let has_failed_for_ever = plan.for_ever && disk.failures() > 0;
    if has_failed_for_ever
        || session.core().journal().is_failing()
        || storage_events(&reported).last() == Some(&false)
    {
        reported.extend(
            until(&mut events, |event| matches!(event, Event::StorageFailure { recovered: true, .. })).await,
        );
    }
    let reported = storage_events(&reported);
    assert!(reported.chunks(2).all(|pair| pair == [false, true]), "{plan:?}: {reported:?}");
    assert!(!has_failed_for_ever || reported.len() == 2, "{plan:?}: {reported:?}");
    let (live, id) = (seen(&session), session.id().clone());
    bench.engine.shutdown().await;
    let bench = Bench::in_home(bench.home, vec![]);
    let resumed = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
    assert_eq!(seen(&resumed), live, "{plan:?}");
    calls
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_disk_fails_at_any_call_continues_and_comes_back_whole() {
    for (fault, for_ever, step) in [(Fault::Io, false, 1), (Fault::NoSpace, true, 3), (Fault::Io, true, 5)] {
        let mut at = 1;
        while two_turns(Plan { fault, at, for_ever }).await >= at {
            at += step;
        }
        assert!(at > 30, "there were only {at} calls");
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusing_disk_is_tried_again_ever_less_often_and_at_once_when_a_record_gets_through() {
    let disk = bad_disk(None);
    let bench = Bench::new(vec![]).on_disk(&disk);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    disk.fail_from_now_on(Some(Fault::NoSpace));
    session.set_mode(Mode::Plan);
    until(&mut events, |event| matches!(event, Event::StorageFailure { recovered: false, .. })).await;
    let (began, mut calls, mut tries) = (tokio::time::Instant::now(), disk.calls(), Vec::new());
    while tries.len() < 7 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        if disk.calls() > std::mem::replace(&mut calls, disk.calls()) {
            tries.push(began.elapsed().as_secs_f64().round());
        }
    }
    assert_eq!(tries, [1.0, 3.0, 7.0, 15.0, 31.0, 61.0, 91.0]);
    disk.fail_from_now_on(None);
    let healed = tokio::time::Instant::now();
    session.set_mode(Mode::Default);
    until(&mut events, |event| matches!(event, Event::StorageFailure { recovered: true, .. })).await;
    assert!(healed.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_closed_while_records_wait_says_what_is_lost() {
    let disk = bad_disk(None);
    let bench = Bench::new(vec![]).on_disk(&disk);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    disk.fail_from_now_on(Some(Fault::Io));
    session.set_mode(Mode::Plan);
    session.close();
    session.closed().await;
    let mut reported = Vec::new();
    while let Ok(Some(batch)) = events.next().await {
        reported.extend(batch);
    }
    let reported: Vec<_> = reported
        .into_iter()
        .filter_map(|record| match record.event {
            Event::StorageFailure { message, .. } => Some(message),
            _ => None,
        })
        .collect();
    assert!(
        reported.last().is_some_and(|message| message.contains("the newest record was not kept")),
        "{reported:?}"
    );
}

/// The data that must be safe before the model learns of it, and before a call runs.
#[tokio::test]
async fn what_was_decided_and_done_is_on_the_disk_before_the_model_hears_of_it() {
    let disk = bad_disk(None);
    let input = json!({ "file_path": "a.txt", "content": "new\n" });
    let write = Block::ToolUse { id: "c0".into(), name: "Write".into(), input, input_error: None };
    let script = vec![Say::Answer(vec![write]), Say::Hang("hm")];
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), script, built_in()).on_disk(&disk);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, |event| matches!(event, Event::PermissionRequired { .. })).await;
    assert_eq!(session.core().journal().unsynced().iter().filter(|kind| *kind == "prompt").count(), 0);
    let answer = PromptAnswer {
        allow: true,
        scope: Scope::Once,
        feedback: None,
        updated_input: None,
        rules: None,
        hunks: None,
        mode: None,
        by: "test".to_owned(),
    };
    session.requests().respond(&session.requests().permissions()[0].id, answer).unwrap();
    let is_said = |item: &Item| matches!(item.body, ItemBody::AgentMessage { .. });
    until(&mut events, |event| matches!(event, Event::ItemAdded { item } if is_said(item))).await;
    let unsafe_by_now = session.core().journal().unsynced();
    for kind in ["decided", "edits", "prompt"] {
        assert!(!unsafe_by_now.iter().any(|unsynced| unsynced == kind), "{unsafe_by_now:?}");
    }
    let records = kode_journal::read(session.core().journal().path()).unwrap().records;
    assert!(records.iter().any(|record| matches!(record, Record::Edits { .. })));
    assert!(disk.syncs() < records.len() as u64, "{} syncs of {} records", disk.syncs(), records.len());
    // A prompt that waits is as safe as one that begins.
    session.prompts().submit(prompt("and then")).unwrap();
    while session.core().journal().unsynced().iter().any(|kind| kind == "queued") {
        tokio::task::yield_now().await;
    }
    session.turns().cancel();
    until(&mut events, is_done).await;
    while !session.core().journal().unsynced().is_empty() {
        tokio::task::yield_now().await;
    }
    let folder = session.core().journal().path().parent().unwrap().to_owned();
    bench.engine.shutdown().await;
    #[cfg(unix)]
    assert_private(&folder);
}

/// Whether everything in a folder is its user's alone.
#[cfg(unix)]
fn assert_private(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    let mode = |metadata: &std::fs::Metadata| metadata.permissions().mode() & 0o777;
    assert_eq!(mode(&folder.metadata().unwrap()), 0o700, "{}", folder.display());
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => assert_private(&path),
            Ok(metadata) => assert_eq!(mode(&metadata), 0o600, "{}", path.display()),
            // A file that is written beside its place and then renamed is gone at once.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{}", path.display()),
        }
    }
}
