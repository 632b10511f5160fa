//! The bounds of goals: time that is gathered over turns and restarts, and money where prices are known.
//!
//! Rule: the clock is the runtime's, which does not move until a test moves it.

use super::*;
use kode_record::goal::{Goal, GoalState};

/// The goal that a prompt sets, and the text of the answer to it.
async fn set(session: &Session, words: &str) -> (Option<Goal>, String) {
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt(words)).unwrap();
    until(&mut events, is_done).await;
    let items = session.snapshot(usize::MAX).items;
    let text = items.iter().rev().find_map(|item| match &item.body {
        ItemBody::Command { text, .. } => Some(text.clone()),
        _ => None,
    });
    (session.services().goals.now(), text.unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_goal_is_that_of_its_turns_alone_and_survives_a_restart() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    // The mode lets no check run: the turn ends with the goal active.
    let (goal, said) = set(&session, "/goal --check false --minutes 1 Do it").await;
    let goal = goal.unwrap_or_else(|| panic!("{said}"));
    session.services().goals.set(Some(Goal { state: GoalState::Active, duration_ms: 0, ..goal }));
    let goals = &session.services().goals;
    goals.begin_turn();
    tokio::time::advance(Duration::from_secs(40)).await;
    assert_eq!(goals.now().unwrap().duration_ms, 40_000, "while the turn runs");
    goals.end_turn();
    tokio::time::advance(Duration::from_secs(3_600)).await;
    assert_eq!(goals.now().unwrap().duration_ms, 40_000, "no turn runs");

    bench.engine.close_session(session.id()).unwrap();
    session.closed().await;
    let session = bench.engine.load_session(&[bench.root()], session.id()).await.unwrap();
    let goals = &session.services().goals;
    assert_eq!((goals.now().unwrap().duration_ms, goals.exhausted()), (40_000, None), "after the restart");
    goals.begin_turn();
    tokio::time::advance(Duration::from_secs(19)).await;
    assert_eq!(goals.exhausted(), None);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(goals.exhausted(), Some(GoalState::OutOfTime));
    goals.end_turn();
}

#[tokio::test(start_paused = true)]
async fn a_bound_of_money_is_refused_where_the_model_has_no_price() {
    let model = FakeModel::new(vec![]);
    let profile = Profile { prices: None, ..Profile::demo() };
    let models = Models::in_process(profile, Arc::clone(&model) as Arc<dyn Model>);
    let (tools, policies) = (Registry::default(), Arc::new(NoPolicyProvider));
    let bench = Bench::with_models(
        tempfile::tempdir().unwrap(),
        (model, models),
        tools,
        policies,
        Arc::new(NoEditor),
    );
    let session = bench.session();
    let (goal, said) = set(&session, "/goal --check false --cost 1 Do it").await;
    assert_eq!(goal, None);
    assert!(
        said.contains("the prices of the model") && said.contains("`--rounds` and `--minutes`"),
        "{said}"
    );
    assert!(bench.requests().is_empty(), "the model is not asked");
}
