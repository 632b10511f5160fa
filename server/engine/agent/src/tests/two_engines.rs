//! Two engines on one home: the one that writes a session, and the one that follows it.

use super::client::Client;
use super::*;
use crate::engine::{AttachedSession, SessionError};
use crate::history::following::FollowedSession;
use kode_journal::lease::LeaseRefusal;
use kode_mcp::Mcp;
use kode_model::profile::Profile;
use kode_tool::languages::NoLanguages;

/// Another engine on the same home.
fn other(bench: &Bench, script: Vec<Say>) -> Bench {
    let home = tempfile::tempdir().unwrap();
    let model = FakeModel::new(script);
    let options = EngineOptions {
        home: AbsPath::new(bench.home.path().join("state")).unwrap(),
        tools: Registry::default(),
        servers: Arc::new(Mcp::new(AbsPath::new(bench.home.path().join("state")).unwrap())),
        languages: Arc::new(NoLanguages),
        host: Arc::new(NoEditor),
        models: Models::in_process(Profile::demo(), Arc::clone(&model) as Arc<dyn Model>),
        policies: Arc::new(NoPolicyProvider),
        concurrency: CONCURRENCY,
        save_before_commands: true,
        deliveries: Deliveries::default(),
    };
    Bench { engine: Engine::new(options), model, safe: Probe::default(), home }
}

async fn follows(engine: &Bench, root: &AbsPath, session: &Session) -> Arc<FollowedSession> {
    match engine.engine.attach(std::slice::from_ref(root), session.id(), None, |_| {}).await.unwrap() {
        AttachedSession::Following(following) => following,
        AttachedSession::Live(_) => panic!("two write one session"),
    }
}

fn is_ready(event: &Event) -> bool {
    matches!(event, Event::StateChanged { state: RunState::Ready })
}

fn is_lease(event: &Event) -> bool {
    matches!(event, Event::LeaseChanged { .. })
}

/// A prompt and all that it leads to.
async fn asks(session: &Arc<Session>, text: &str) {
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt(text)).unwrap();
    until(&mut events, is_ready).await;
}

#[tokio::test]
async fn a_second_engine_sees_the_same_under_the_same_numbers_and_takes_over_when_it_may() {
    let bench = Bench::new(vec![Say::Answer(vec![text("one")])]);
    let session = bench.session();
    let (second, root) = (other(&bench, vec![Say::Answer(vec![text("three")])]), bench.root());
    asks(&session, "first").await;
    let following = follows(&second, &root, &session).await;
    let mut client = Client::showing(following.snapshot(usize::MAX));
    client.assert_shows(&session);
    let mut events = following.events().subscribe(following.events().newest(), vec![]);
    asks(&session, "second").await;
    let seen = until(&mut events, is_ready).await;
    client.catch_up_with(following.events());
    client.assert_shows(&session);
    client.assert_shows_as(&Client::showing(following.snapshot(usize::MAX)));
    let mut live = session.events().subscribe(0, vec![]);
    let live = live.ready().unwrap();
    let reported: Vec<_> = seen.into_iter().filter(|record| !is_lease(&record.event)).collect();
    assert!(!reported.is_empty() && reported.iter().all(|record| live.contains(record)), "{reported:#?}");

    let refused = second.engine.session(session.id()).err().unwrap();
    assert!(
        matches!(&refused, SessionError::Followed { by: Some(by) } if by.pid == std::process::id()),
        "{refused}"
    );
    let mut first = session.events().subscribe(session.events().newest(), vec![]);
    let taken = second.engine.take_over(session.id(), false).await.unwrap();
    // The one that wrote it follows now, and its clients continue from where they were.
    until(&mut first, |event| matches!(event, Event::LeaseChanged { is_mine: false, .. })).await;
    asks(&taken, "third").await;
    until(&mut first, is_done).await;
    let seen = until(&mut events, is_done).await;
    let is_mine = |event: &Event| matches!(event, Event::LeaseChanged { is_mine: true, .. });
    assert!(seen.iter().any(|record| is_mine(&record.event)), "{seen:#?}");
    client.catch_up_with(following.events());
    client.assert_shows(&taken);
    let mut back = Client::of(&session);
    back.catch_up_with(session.events());
    let followed = bench.engine.following(taken.id()).unwrap();
    Client::showing(followed.snapshot(usize::MAX)).assert_shows(&taken);
    second.engine.shutdown().await;
    bench.engine.shutdown().await;
}

#[tokio::test]
async fn a_turn_keeps_its_session_unless_it_is_taken_by_force() {
    let bench = Bench::new(vec![Say::Hang("and then")]);
    let session = bench.session();
    let (second, root) = (other(&bench, vec![]), bench.root());
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let says = |event: &Event| matches!(event, Event::ItemAdded { item } if matches!(item.body, ItemBody::AgentMessage { .. }));
    until(&mut events, says).await;
    let following = follows(&second, &root, &session).await;
    let declined = second.engine.take_over(session.id(), false).await.err().unwrap();
    assert!(matches!(&declined, SessionError::Declined { why: LeaseRefusal::TurnRunning, .. }), "{declined}");
    let taken = second.engine.take_over(session.id(), true).await.unwrap();
    let mut seen = until(&mut events, is_done).await;
    let done = seen.pop().unwrap();
    let ended = seen
        .iter()
        .chain([&done])
        .any(|record| matches!(record.event, Event::Done { reason: TurnEnd::Cancelled, .. }));
    assert!(ended, "as when the user cancels it: {seen:#?}");
    assert_eq!(taken.snapshot(0).state, RunState::Ready);
    asks(&taken, "go on").await;
    let mut client = Client::showing(following.snapshot(usize::MAX));
    client.bookmark = taken.events().newest();
    client.catch_up(&taken);
    second.engine.shutdown().await;
    bench.engine.shutdown().await;
}

#[tokio::test]
async fn two_that_ask_at_once_have_it_one_after_the_other_and_one_writes() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    let root = bench.root();
    let (second, third) = (other(&bench, vec![]), other(&bench, vec![]));
    asks(&session, "first").await;
    follows(&second, &root, &session).await;
    follows(&third, &root, &session).await;
    let (one, two) = tokio::join!(
        second.engine.take_over(session.id(), false),
        third.engine.take_over(session.id(), false)
    );
    assert!(one.is_ok() && two.is_ok(), "whoever is second asks the first: {:?} {:?}", one.err(), two.err());
    // The releasing process follows a moment later.
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    let writes = |bench: &&Bench| bench.engine.session(session.id()).is_ok();
    while [&bench, &second, &third].into_iter().filter(writes).count() > 1 {
        events.next().await.unwrap();
    }
    assert_eq!([&second, &third].into_iter().filter(writes).count(), 1);
    for bench in [&second, &third, &bench] {
        bench.engine.shutdown().await;
    }
}

#[tokio::test]
async fn whoever_follows_learns_that_nobody_writes_and_takes_over_with_a_prompt() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    let (second, root) = (other(&bench, vec![]), bench.root());
    asks(&session, "first").await;
    let following = follows(&second, &root, &session).await;
    let mut events = following.events().subscribe(following.events().newest(), vec![]);
    bench.engine.shutdown().await;
    until(&mut events, |event| matches!(event, Event::LeaseChanged { writer: None, .. })).await;
    assert!(second.engine.following(session.id()).is_some(), "nobody takes it unasked");
    let taken = second.engine.session_for_prompt(session.id()).await.unwrap();
    asks(&taken, "second").await;
    second.engine.shutdown().await;
}

#[tokio::test]
async fn what_was_deleted_here_or_elsewhere_is_not_taken_over_and_not_made_again() {
    let bench = Bench::new(vec![]);
    let (second, third, root) = (other(&bench, vec![]), other(&bench, vec![]), bench.root());
    let session = bench.session();
    asks(&session, "first").await;
    follows(&second, &root, &session).await;
    follows(&third, &root, &session).await;
    let folder = session.core().journal().path().parent().unwrap().to_path_buf();
    bench.engine.shutdown().await;
    second.engine.delete_session(&crate::sessions::WorkspaceFilter::All, session.id()).await.unwrap();
    assert!(second.engine.following(session.id()).is_none(), "nobody follows what is no more");
    for engine in [&second.engine, &third.engine] {
        let refused = engine.session_for_prompt(session.id()).await.err().unwrap();
        assert!(matches!(&refused, SessionError::Unknown(_)), "{refused}");
        assert!(engine.following(session.id()).is_none());
    }
    assert!(!folder.exists());
}
