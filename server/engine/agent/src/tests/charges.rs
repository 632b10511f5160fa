//! Paid tokens are charged, regardless of the outcome.

use std::collections::BTreeMap;

use super::waiting::Settings;
use super::*;
use crate::turn::compact;
use kode_config::policy::Policy;
use kode_config::preferences::Preferences;
use kode_model::fallback::{Fallback, Trigger};
use kode_model::models::Pointer;
use kode_model::price::Prices;
use kode_model::profile::Profile;
use kode_record::options::TurnOptions;

pub(super) fn profile(name: &str) -> Profile {
    Profile { name: name.to_owned(), model: format!("model-of-{name}"), ..Profile::demo() }
}

/// An engine with two models: the own of its sessions, and another.
pub(super) fn two(
    own: (Profile, Vec<Say>),
    other: (Profile, Vec<Say>),
    policies: Arc<dyn PolicyProvider>,
) -> (Bench, Arc<FakeModel>) {
    let (first, second) = (FakeModel::new(own.1), FakeModel::new(other.1));
    let models = Models::in_process(own.0, Arc::clone(&first) as Arc<dyn Model>)
        .with_in_process(other.0, Arc::clone(&second) as Arc<dyn Model>);
    let mut tools = Registry::default();
    tools.add(Probe { safe: true, ..Probe::default() });
    let home = tempfile::tempdir().unwrap();
    (Bench::with_models(home, (first, models), tools, policies, Arc::new(NoEditor)), second)
}

/// Fails after this many tokens were read.
fn breaks(kind: ModelErrorKind, input_tokens: u64) -> Say {
    let usage = Usage { input_tokens, ..Usage::default() };
    let stop_reason = StopReason::Other("interrupted".into());
    let partial = ModelResponse { id: None, content: vec![], stop_reason, usage };
    Say::Fail(ModelError { partial: Some(Box::new(partial)), ..ModelError::new(kind, "it broke off") })
}

/// The charges by model and price, in order, and the tokens that the end of the turn names.
fn charged(events: &[EventRecord]) -> (Vec<(u64, String, Option<f64>)>, u64) {
    let charges = events.iter().filter_map(|record| match &record.event {
        Event::TokenUsage { call, .. } => Some((call.usage.input_tokens, call.model.clone(), call.cost)),
        _ => None,
    });
    let total = events.iter().find_map(|record| match &record.event {
        Event::Done { usage, .. } => Some(usage.input_tokens),
        _ => None,
    });
    (charges.collect(), total.unwrap())
}

fn tokens(events: &[EventRecord]) -> (Vec<u64>, u64) {
    let (charges, total) = charged(events);
    (charges.into_iter().map(|(tokens, ..)| tokens).collect(), total)
}

#[tokio::test(start_paused = true)]
async fn attempts_that_broke_off_are_charged_and_in_what_the_turn_took() {
    let fallback = Some(Fallback { profile: "other".to_owned(), triggers: Trigger::usual() });
    let own = Profile { max_retries: 1, fallback, ..profile("main") };
    let script = vec![breaks(ModelErrorKind::Interrupted, 5), breaks(ModelErrorKind::Interrupted, 7)];
    let (bench, _) = two((own, script), (profile("other"), vec![]), Arc::new(NoPolicyProvider));
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let seen = until(&mut events, is_done).await;
    assert_eq!(tokens(&seen), (vec![5, 7, 1], 13));
    let spent: Vec<_> = session.spending().turns().map(|turn| turn.usage.input_tokens).collect();
    assert_eq!(spent, [13]);
}

#[tokio::test(start_paused = true)]
async fn what_broke_off_for_good_is_charged() {
    let own = Profile { max_retries: 0, ..profile("main") };
    let script = vec![breaks(ModelErrorKind::Interrupted, 5)];
    let (bench, _) = two((own, script), (profile("other"), vec![]), Arc::new(NoPolicyProvider));
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    assert_eq!(tokens(&until(&mut events, is_done).await), (vec![5], 5));
}

#[tokio::test(start_paused = true)]
async fn the_first_of_two_answers_is_charged_when_the_second_is_cancelled() {
    let bench = Bench::new(vec![Say::Answer(vec![text("first")]), Say::Hang("sec")]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    let options = TurnOptions { candidate_answers: Some(true), ..TurnOptions::default() };
    session.prompts().submit(prompt("go").with_options(options)).unwrap();
    while bench.requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    session.turns().cancel();
    assert_eq!(tokens(&until(&mut events, is_done).await), (vec![1], 1));
}

/// A summary that is one by its headings.
fn summary() -> Say {
    let headings = compact::HEADINGS.map(|heading| format!("# {heading}\n{heading}\n"));
    Say::Answer(vec![text(&headings.concat())])
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_asked_of_whom_the_workspace_names_and_each_attempt_is_charged_at_its_price() {
    let priced = |name: &str, input: f64| {
        let prices = Some(Prices { input, output: 0.0, cache_read: None, cache_write: None, above: None });
        // The same model at two prices.
        Profile { model: "shared".to_owned(), prices, max_retries: 1, ..profile(name) }
    };
    let settings = Settings::default();
    let pointers = BTreeMap::from([(Pointer::Compact, "other".to_owned())]);
    let preferences = Preferences { pointers, ..Preferences::default() };
    settings.set(Policy { preferences, ..Policy::default() });
    let failing = vec![breaks(ModelErrorKind::Network, 5), breaks(ModelErrorKind::BadRequest, 7)];
    let own = (priced("main", 1e6), vec![]);
    let (bench, second) = two(own, (priced("other", 2e6), failing), Arc::new(settings));
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    for round in 0..8 {
        session.prompts().submit(prompt(&format!("{round} {}", "lorem ipsum dolor ".repeat(90)))).unwrap();
        until(&mut events, is_done).await;
    }
    bench.model.script.lock().unwrap().push_back(summary());
    session.prompts().submit(prompt("/compact")).unwrap();
    let seen = until(&mut events, is_done).await;
    let of = |tokens: u64, cost: f64| (tokens, "shared".to_owned(), Some(cost));
    assert_eq!(charged(&seen), (vec![of(5, 10.0), of(7, 14.0), of(1, 1.0)], 13));
    assert_eq!(second.requests.lock().unwrap().len(), 2);
    let retries: Vec<_> = seen
        .iter()
        .filter_map(|record| match &record.event {
            Event::ModelRetry { retry } => Some((retry.attempt, retry.kind)),
            _ => None,
        })
        .collect();
    assert_eq!(retries, [(1, ModelErrorKind::Network)]);
    // One that writes it without a fault is paid for once, at its own price.
    second.script.lock().unwrap().push_back(summary());
    for round in 0..3 {
        session.prompts().submit(prompt(&format!("{round} {}", "lorem ipsum dolor ".repeat(90)))).unwrap();
        until(&mut events, is_done).await;
    }
    session.prompts().submit(prompt("/compact")).unwrap();
    assert_eq!(charged(&until(&mut events, is_done).await), (vec![of(1, 2.0)], 1));
}
