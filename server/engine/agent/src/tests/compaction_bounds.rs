//! The bounds of a compaction: bytes of pictures, the window of the model that is asked, and what others measure meanwhile.

use super::*;
use crate::core::thread::ThreadHandle;
use kode_mcp::Mcp;
use kode_model::Image;
use kode_model::fallback::{Fallback, Trigger};
use kode_model::profile::Profile;
use kode_record::compaction::Cause;
use kode_record::event::CompressionStep;
use kode_tool::languages::NoLanguages;
use kode_tools::built_in::built_in;

const MIB: usize = 1 << 20;

async fn turn(session: &Session, text: &str) -> Vec<EventRecord> {
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt(text)).unwrap();
    until(&mut events, is_done).await
}

/// Why conversations were compacted, and for how large a window.
fn causes(events: &[EventRecord]) -> Vec<(Cause, u64)> {
    let cause = |record: &EventRecord| match &record.event {
        Event::ContextCompression { step: CompressionStep::Started { cause, window, .. }, .. } => {
            Some((*cause, *window))
        }
        _ => None,
    };
    events.iter().filter_map(cause).collect()
}

fn ended_well(events: &[EventRecord]) -> bool {
    events.iter().any(|record| matches!(record.event, Event::Done { reason: TurnEnd::EndTurn, .. }))
}

fn too_long() -> Say {
    Say::Fail(ModelError::new(ModelErrorKind::ContextTooLong, "request too large"))
}

/// Puts pictures before the next prompt.
fn show(session: &Session, count: usize, bytes: usize) {
    let picture =
        |_| Block::Image(Image { media_type: "image/png".into(), data: "A".repeat(bytes), text: None });
    let (turn, item) = (TurnId::generate(), kode_base::ids::ItemId::generate());
    let content = (0..count).map(picture).collect();
    ThreadHandle::main(session.core()).commit(Record::Attached {
        turn,
        item,
        content,
        shown: vec![],
        instructed: vec![],
    });
}

/// Puts a text before the next prompt.
fn attach(session: &Session, bytes: usize) {
    let (turn, item) = (TurnId::generate(), kode_base::ids::ItemId::generate());
    let (content, shown, instructed) = (vec![text(&"x".repeat(bytes))], vec![], vec![]);
    let record = Record::Attached { turn, item, content, shown, instructed };
    ThreadHandle::main(session.core()).commit(record);
}

fn pictures(request: &ModelRequest) -> usize {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    blocks.filter(|block| matches!(block, Block::Image(_))).count()
}

#[tokio::test(start_paused = true)]
async fn pictures_that_are_too_much_for_a_request_make_room_even_in_the_only_message() {
    let bench = Bench::new(vec![too_long(), Say::Answer(vec![text("seen")])]);
    let session = bench.session();
    show(&session, 7, 6 * MIB);
    let ended = turn(&session, "what do you see?").await;
    assert_eq!(session.answer(), "seen");
    let requests = bench.requests();
    assert_eq!(requests.iter().map(pictures).collect::<Vec<_>>(), [7, 2]);
    let content = &requests[1].messages[0].content;
    assert!(matches!(&content[4], Block::Text { text } if text.contains("picture was left out")));
    assert_eq!(content.last(), Some(&text("what do you see?")));
    assert_eq!(causes(&ended).len(), 1);
    // The next compaction does not bring them back.
    turn(&session, "and now?").await;
    assert_eq!(pictures(bench.requests().last().unwrap()), 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_long_without_its_pictures_as_well_is_compacted_then() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    for round in 0..8 {
        turn(&session, &format!("prompt {round}: {}", "lorem ipsum ".repeat(100))).await;
    }
    show(&session, 5, 4 * MIB);
    bench.model.script.lock().unwrap().extend([too_long(), too_long()]);
    let ended = turn(&session, "what do you see?").await;
    assert_eq!(causes(&ended).iter().map(|(cause, _)| *cause).collect::<Vec<_>>(), [Cause::TooLong; 2]);
    assert!(ended_well(&ended));
    assert!(bench.requests().last().unwrap().messages.len() < 17);
}

#[tokio::test(start_paused = true)]
async fn while_a_fallback_that_reads_less_is_asked_its_window_counts() {
    let (own, small) = (Arc::new(FakeModel::default()), Arc::new(FakeModel::default()));
    let fallback = Fallback { profile: "small".to_owned(), triggers: vec![Trigger::RateLimited] };
    let main = Profile {
        name: "main".to_owned(),
        model: "large".to_owned(),
        context_window: 200_000,
        max_tokens: 1_000,
        max_retries: 0,
        fallback: Some(fallback),
        ..Profile::demo()
    };
    let other = Profile {
        name: "small".to_owned(),
        model: "small".to_owned(),
        context_window: 8_000,
        fallback: None,
        ..main.clone()
    };
    let home = tempfile::tempdir().unwrap();
    let models = Models::in_process(main, Arc::clone(&own) as Arc<dyn Model>)
        .with_in_process(other, Arc::clone(&small) as Arc<dyn Model>);
    let options = EngineOptions {
        home: AbsPath::new(home.path().join("state")).unwrap(),
        tools: Registry::default(),
        servers: Arc::new(Mcp::new(AbsPath::new(home.path().join("state")).unwrap())),
        languages: Arc::new(NoLanguages),
        host: Arc::new(NoEditor),
        models,
        policies: Arc::new(NoPolicyProvider),
        concurrency: CONCURRENCY,
        save_before_commands: true,
        deliveries: Deliveries::default(),
    };
    let engine = Engine::new(options);
    let roots = vec![AbsPath::new(home.path()).unwrap()];
    let session = engine.new_session(NewSession { roots, mode: Some(Mode::Default), model: None }).unwrap();
    let long = format!("read this: {}", "lorem ipsum dolor sit amet ".repeat(100));
    for _ in 0..14 {
        assert_eq!(causes(&turn(&session, &long).await), []);
    }
    let limited = ModelError::new(ModelErrorKind::RateLimited, "slow down");
    own.script.lock().unwrap().push_back(Say::Fail(limited));
    small.script.lock().unwrap().push_back(too_long());
    let ended = turn(&session, "go on").await;
    assert_eq!(causes(&ended), [(Cause::TooLong, 8_000)]);
    assert!(ended_well(&ended));
    // Its own model rests: the conversation is compacted before the other one fails.
    let mut seen = Vec::new();
    for _ in 0..14 {
        seen.extend(causes(&turn(&session, &long).await));
    }
    assert_eq!(seen.first(), Some(&(Cause::Threshold, 8_000)), "{seen:?}");
    assert!(small.requests.lock().unwrap().len() > 14);
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_are_those_of_the_messages_whoever_measures_meanwhile() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    for round in 0..5 {
        turn(&session, &format!("prompt {round}")).await;
    }
    let stop = std::sync::atomic::AtomicBool::new(false);
    let conversation = session.services().main_conversation();
    let context = &session.services().context;
    let models = session.models().now();
    let profile = models.profile(&conversation.model()).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                session.context_use().unwrap();
            }
        });
        let measured = scope.spawn(|| {
            let whole = |_| context.measure_whole(&conversation, profile).sizes.len();
            let sizes: Vec<_> = (0..200).map(whole).collect();
            stop.store(true, Ordering::SeqCst);
            sizes
        });
        assert!(measured.join().unwrap().into_iter().all(|sizes| sizes == 10));
    });
}

#[tokio::test(start_paused = true)]
async fn what_is_in_every_request_is_counted_again_when_the_mode_is_another() {
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), vec![], built_in());
    let session = bench.session();
    turn(&session, "go").await;
    let conversation = session.services().main_conversation();
    let context = &session.services().context;
    let models = session.models().now();
    let profile = models.profile(&conversation.model()).unwrap();
    let before = context.measure(&conversation, profile).usage;
    assert_eq!(context.measure(&conversation, profile).usage, before);
    session.set_mode(Mode::Plan);
    let planning = context.measure(&conversation, profile).usage;
    assert!(planning.parts.system != before.parts.system, "{planning:?} after {before:?}");
    session.set_mode(Mode::Default);
    assert_eq!(context.measure(&conversation, profile).usage, before);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_sent_uncounted_as_long_as_its_new_bytes_are_few() {
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), vec![], built_in());
    let session = bench.session();
    let conversation = session.services().main_conversation();
    let context = &session.services().context;
    let models = session.models().now();
    let profile = models.profile(&conversation.model()).unwrap();
    let small = Profile { context_window: 8_000, ..profile.clone() };
    assert!(context.is_far_from_limit(&conversation, profile), "nothing was said yet");
    assert!(!context.is_far_from_limit(&conversation, &small), "the window is small");
    turn(&session, "go").await;
    assert!(context.is_far_from_limit(&conversation, profile));
    let usage = context.measure(&conversation, profile).usage;
    let room = usize::try_from(usage.trigger.unwrap() - usage.tokens).unwrap();
    let half = room / 2 - 1_000;
    attach(&session, half);
    assert!(context.is_far_from_limit(&conversation, profile));
    attach(&session, half);
    assert!(context.is_far_from_limit(&conversation, profile));
    session.set_mode(Mode::Plan);
    assert!(!context.is_far_from_limit(&conversation, profile), "the parts of every request are not counted");
    session.set_mode(Mode::Default);
    attach(&session, 2_000);
    assert!(!context.is_far_from_limit(&conversation, profile), "each byte might be a token");
    assert!(context.measure(&conversation, profile).usage.tokens < usage.trigger.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_conversation_with_a_new_picture_is_counted() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    turn(&session, "go").await;
    let conversation = session.services().main_conversation();
    let context = &session.services().context;
    let models = session.models().now();
    let profile = models.profile(&conversation.model()).unwrap();
    assert!(context.is_far_from_limit(&conversation, profile));
    show(&session, 1, 10);
    assert!(!context.is_far_from_limit(&conversation, profile));
}
