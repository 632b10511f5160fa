//! The queue: its order, changes, pauses and kills; and messages to the running turn.

use super::*;
use crate::state::queue::QueueError;
use crate::state::queue::STEERING_LIMIT;
use kode_record::draft::PromptDraft;

fn held() -> Say {
    Say::Answer(vec![call("c0", "SafeProbe", "wait")])
}

/// A turn whose call waits.
async fn busy(bench: &Bench) -> (Arc<Session>, Subscription) {
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, |event| matches!(event, Event::ToolStart { .. })).await;
    while bench.safe.running.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (session, events)
}

async fn let_go(bench: &Bench) {
    // The call listens once it has run for a moment.
    tokio::time::sleep(Duration::from_millis(50)).await;
    bench.safe.go.notify_waiters();
}

fn queued(session: &Session, words: &str) -> QueueId {
    match session.prompts().submit(prompt(words)).unwrap() {
        SubmitOutcome::Queued(id) => id,
        other => panic!("{other:?}"),
    }
}

fn steered(session: &Session, words: &str) -> QueueId {
    match session.prompts().steer(prompt(words)).unwrap() {
        SubmitOutcome::Steering { queue, .. } => queue,
        other => panic!("{other:?}"),
    }
}

fn waiting(session: &Session) -> (Vec<String>, Vec<String>, bool) {
    let now = session.snapshot(0);
    let texts = |prompts: Vec<QueuedPrompt>| prompts.into_iter().map(|prompt| prompt.text).collect();
    (texts(now.queue), texts(now.steering), now.queue_paused)
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn asked(session: &Session) -> Vec<String> {
    let items = session.snapshot(usize::MAX).items.into_iter();
    let asked = items.filter_map(|item| match item.body.clone() {
        ItemBody::UserMessage { text, .. } => Some(text),
        _ => None,
    });
    asked.collect()
}

async fn done(events: &mut Subscription, count: usize) {
    let mut seen = 0;
    until(events, |event| {
        seen += usize::from(is_done(event));
        seen == count
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_edited_dropped_and_moved_until_it_begins() {
    let bench = Bench::new(vec![held()]);
    let (session, mut events) = busy(&bench).await;
    let ids = ["a", "b", "c", "d"].map(|words| queued(&session, words));
    let [a, b, c, d] = &ids;
    session.prompts().move_queued(d, Some(a)).unwrap();
    session.prompts().move_queued(a, None).unwrap();
    session.prompts().move_queued(b, Some(b)).unwrap();
    session.prompts().remove_queued(c).unwrap();
    session.prompts().edit_queued(b, "b2", None).unwrap();
    let order = waiting(&session).0;
    assert_eq!(order, ["d", "b2", "a"]);
    assert_eq!(session.prompts().edit_queued(b, " ", None), Err(QueueError::Empty));
    assert_eq!(session.prompts().remove_queued(c), Err(QueueError::Unknown(c.clone())));
    assert_eq!(session.prompts().move_queued(a, Some(c)), Err(QueueError::Unknown(c.clone())));
    let_go(&bench).await;
    done(&mut events, 4).await;
    assert_eq!(asked(&session), [vec!["go".to_owned()], order].concat());
    assert_eq!(session.prompts().edit_queued(b, "late", None), Err(QueueError::Begun(b.clone())));
    assert_eq!(session.prompts().promote_queued(a), Err(QueueError::Begun(a.clone())));
}

#[tokio::test(start_paused = true)]
async fn after_a_cancel_nothing_begins_by_itself_and_a_new_prompt_comes_first() {
    let bench = Bench::new(vec![held()]);
    let (session, mut events) = busy(&bench).await;
    queued(&session, "one");
    let two = queued(&session, "two");
    steered(&session, "unheard");
    assert!(session.turns().cancel());
    let seen = until(&mut events, |event| matches!(event, Event::QueueChanged { paused: true, .. })).await;
    assert!(seen.iter().any(|record| matches!(record.event, Event::Done { reason: TurnEnd::Cancelled, .. })));
    assert_eq!(waiting(&session), (strings(&["unheard", "one", "two"]), vec![], true));
    let reported = |item: &Arc<Item>| matches!(&item.body, ItemBody::Notice { text, .. } if text.starts_with("3 prompts"));
    assert!(session.snapshot(usize::MAX).items.iter().any(reported));
    let SubmitOutcome::Started(_) = session.prompts().promote_queued(&two).unwrap() else {
        panic!("it begins")
    };
    done(&mut events, 3).await;
    assert_eq!(asked(&session), ["go", "two", "unheard", "one"]);
    let SubmitOutcome::Started(_) = session.prompts().submit(prompt("again")).unwrap() else {
        panic!("it begins")
    };
}

#[tokio::test(start_paused = true)]
async fn what_waits_survives_a_kill_and_continues_when_asked() {
    let bench = Bench::new(vec![held()]);
    let (session, _events) = busy(&bench).await;
    queued(&session, "one");
    let two = queued(&session, "two");
    steered(&session, "unheard");
    session.prompts().move_queued(&two, Some(&session.snapshot(0).queue[0].id)).unwrap();
    session.drafts().set(Some(PromptDraft { text: "half".into(), parts: json!([1]) })).unwrap();
    tokio::time::sleep(crate::session::drafts::WRITE_INTERVAL * 2).await;
    // The state that a killed server leaves.
    let journal = std::fs::read(journal_of(bench.home.path())).unwrap();
    let id = session.id().clone();
    bench.engine.shutdown().await;
    std::fs::write(journal_of(bench.home.path()), journal).unwrap();
    let bench = Bench::in_home(bench.home, vec![]);
    let session = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
    assert_eq!(waiting(&session), (strings(&["unheard", "two", "one"]), vec![], true));
    assert_eq!(session.snapshot(0).draft, Some(PromptDraft { text: "half".into(), parts: json!([1]) }));
    session.prompts().edit_queued(&two, "two, better", None).unwrap();
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    let SubmitOutcome::Started(_) = session.prompts().submit(prompt("go on")).unwrap() else {
        panic!("it begins")
    };
    assert_eq!(session.snapshot(0).draft, None, "what is sent is no draft any more");
    done(&mut events, 4).await;
    assert_eq!(asked(&session), ["go", "go on", "unheard", "two, better", "one"]);
    assert_eq!(waiting(&session), (vec![], vec![], false));
}

#[tokio::test(start_paused = true)]
async fn what_is_said_meanwhile_reaches_the_next_call_of_the_turn_in_order() {
    let bench = Bench::new(vec![held(), Say::Answer(vec![text("so")])]);
    let (session, mut events) = busy(&bench).await;
    let later = queued(&session, "a third thing");
    steered(&session, "first");
    let second = steered(&session, "scond");
    session.prompts().edit_queued(&second, "second", None).unwrap();
    let SubmitOutcome::Steering { .. } = session.prompts().promote_queued(&later).unwrap() else {
        panic!("a turn runs")
    };
    assert_eq!(waiting(&session), (vec![], strings(&["first", "second", "a third thing"]), false));
    let_go(&bench).await;
    done(&mut events, 1).await;
    let requests = bench.requests();
    assert_eq!(requests.len(), 2);
    let last = &requests[1].messages.last().unwrap().content;
    assert!(matches!(last[0], Block::ToolResult { .. }), "after the results: {last:?}");
    assert_eq!(last[1..], ["first", "second", "a third thing"].map(text));
    assert!(requests[1].reminders.iter().any(|text| text.contains("while you were working")));
    let steered = |item: &&Arc<Item>| matches!(item.body, ItemBody::UserMessage { steered: true, .. });
    assert_eq!(session.snapshot(usize::MAX).items.iter().filter(steered).count(), 3);
    assert_eq!(session.edits().checkpoints().len(), 1, "what was said meanwhile began no turn");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_would_end_continues_with_what_was_said_meanwhile() {
    let bench = Bench::new(vec![Say::Hang("half"), Say::Answer(vec![text("taken in")])]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    assert!(
        matches!(session.prompts().steer(prompt("go")).unwrap(), SubmitOutcome::Started(_)),
        "no turn runs"
    );
    until(&mut events, |event| matches!(event, Event::ItemAdded { item } if matches!(item.body, ItemBody::AgentMessage { .. }))).await;
    for number in 0..STEERING_LIMIT {
        steered(&session, &number.to_string());
    }
    assert_eq!(session.prompts().steer(prompt("x")), Err(SubmitError::SteeringFull));
    session.turns().cancel();
    done(&mut events, 1).await;
    assert_eq!(waiting(&session).0.len(), STEERING_LIMIT);

    let bench = Bench::new(vec![Say::Answer(vec![text("first answer")])]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    // Before the turn has started to run: it is reported with its first call.
    steered(&session, "and this");
    done(&mut events, 1).await;
    assert_eq!(bench.requests()[0].messages.last().unwrap().content, [text("go"), text("and this")]);
}

#[tokio::test(start_paused = true)]
async fn a_long_draft_that_changes_with_every_key_is_written_every_few_seconds_and_a_short_one_at_once() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    let draft = |text: &str| Some(PromptDraft { text: text.to_owned(), ..PromptDraft::default() });
    let written = || {
        let records = kode_journal::read(&journal_of(bench.home.path())).unwrap().records;
        let drafts = records.into_iter().filter_map(|record| match record {
            Record::Drafted { draft } => Some(draft.map(|draft| draft.text)),
            _ => None,
        });
        drafts.collect::<Vec<_>>()
    };
    for length in 10_000..=10_100 {
        session.drafts().set(draft(&"a".repeat(length))).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(session.snapshot(0).draft, draft(&"a".repeat(10_100)));
    assert_eq!(written(), []);
    tokio::time::sleep(crate::session::drafts::WRITE_INTERVAL * 2).await;
    assert_eq!(written(), [Some("a".repeat(10_100))]);
    session.drafts().set(draft("last")).unwrap();
    assert_eq!(written().len(), 2);
    session.drafts().set(draft(&"b".repeat(10_000))).unwrap();
    session.close();
    session.closed().await;
    let last = "b".repeat(10_000);
    assert_eq!(written(), [Some("a".repeat(10_100)), Some("last".to_owned()), Some(last.clone())]);
    let session = bench.engine.load_session(&[bench.root()], session.id()).await.unwrap();
    assert_eq!(session.snapshot(0).draft, draft(&last));
}
