//! The model that is asked while the own one rests, and the notices about it.

use super::charges::{profile, two};
use super::course::asked_or_done;
use super::*;
use crate::turn::compact;
use kode_model::fallback::{Fallback, Trigger};
use kode_model::profile::Profile;

/// The own model's profile, which names the other for these faults.
fn own(triggers: Vec<Trigger>) -> Profile {
    let fallback = Some(Fallback { profile: "other".to_owned(), triggers });
    Profile { fallback, max_retries: 0, ..profile("main") }
}

fn other() -> Profile {
    Profile { max_retries: 0, ..profile("other") }
}

fn said(words: &str) -> Say {
    Say::Answer(vec![text(words)])
}

fn fails(kind: ModelErrorKind) -> Say {
    Say::Fail(ModelError::new(kind, "it failed"))
}

fn reported(session: &Session) -> Vec<String> {
    let notice = |item: Arc<Item>| match item.body.clone() {
        ItemBody::Notice { kind: Some(NoticeKind::Fallback), text, .. } => Some(text),
        _ => None,
    };
    session.snapshot(usize::MAX).items.into_iter().filter_map(notice).collect()
}

/// Submits a prompt; answers how its turn ended and its last text.
async fn ask(session: &Session, words: &str) -> (Option<TurnEnd>, String) {
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt(words)).unwrap();
    (asked_or_done(&mut events).await, session.answer())
}

#[tokio::test(start_paused = true)]
async fn while_the_own_model_rests_it_is_asked_when_the_fallback_fails() {
    let ends = |words: &str| (Some(TurnEnd::EndTurn), words.to_owned());
    let first = vec![fails(ModelErrorKind::Server), said("own again"), said("own as ever")];
    let second = vec![
        said("other"),
        Say::Answer(vec![call("c0", "SafeProbe", "return")]),
        said("other again"),
        fails(ModelErrorKind::Authentication),
    ];
    let (bench, _) = two((own(Trigger::usual()), first), (other(), second), Arc::new(NoPolicyProvider));
    let session = bench.session();
    assert_eq!(ask(&session, "one").await, ends("other"));
    assert_eq!(reported(&session).len(), 1);
    // A turn of two rounds that begins with the fallback says so once.
    assert_eq!(ask(&session, "two").await, ends("other again"));
    assert_eq!((bench.requests().len(), reported(&session).len()), (1, 2), "{:?}", reported(&session));
    assert_eq!(ask(&session, "three").await, ends("own again"));
    let notices = reported(&session);
    assert_eq!(notices.len(), 4, "{notices:?}");
    assert!(notices[3].contains("model-of-other failed as well, asking model-of-main"), "{notices:?}");
    // Its rest is over.
    assert_eq!(ask(&session, "four").await, ends("own as ever"));
    assert_eq!((bench.requests().len(), reported(&session).len()), (3, 4));
}

#[tokio::test(start_paused = true)]
async fn when_both_fail_the_turn_fails_and_each_was_asked_once() {
    let failing = || vec![fails(ModelErrorKind::Server), fails(ModelErrorKind::Server)];
    let models = ((own(Trigger::usual()), failing()), (other(), failing()));
    let (bench, second) = two(models.0, models.1, Arc::new(NoPolicyProvider));
    let session = bench.session();
    for turn in 1..=2 {
        assert_eq!(ask(&session, "go").await.0, Some(TurnEnd::Error));
        let asked = second.requests.lock().unwrap().len();
        assert_eq!((bench.requests().len(), asked), (turn, turn), "turn {turn}");
    }
}

#[tokio::test(start_paused = true)]
async fn while_the_own_model_rests_its_fallback_writes_the_summary() {
    let summary = compact::HEADINGS.map(|heading| format!("# {heading}\n{heading}\n")).concat();
    let long = "lorem ipsum dolor sit amet ".repeat(300);
    let first = vec![fails(ModelErrorKind::Server), said(&summary)];
    let second = vec![said(&long), said(&long), said(&summary), fails(ModelErrorKind::BadRequest)];
    let (bench, other) = two((own(Trigger::usual()), first), (other(), second), Arc::new(NoPolicyProvider));
    let session = bench.session();
    ask(&session, "one").await;
    ask(&session, "two").await;
    let asked = || (bench.requests().len(), other.requests.lock().unwrap().len());
    assert_eq!(asked(), (1, 2));
    let compaction = || session.core().state().main.compacted().cloned();
    ask(&session, "/compact").await;
    assert_eq!((asked(), compaction().unwrap().model.as_deref()), ((1, 3), Some("model-of-other")));
    // When the fallback cannot write it either, the own model is asked all the same.
    other.script.lock().unwrap().push_front(said(&long));
    other.script.lock().unwrap().push_front(said(&long));
    ask(&session, "three").await;
    ask(&session, "four").await;
    ask(&session, "/compact").await;
    assert_eq!((asked(), compaction().unwrap().model.as_deref()), ((2, 6), Some("model-of-main")));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_too_long_puts_no_model_to_rest() {
    let first = vec![fails(ModelErrorKind::ContextTooLong), said("own")];
    let own = own(vec![Trigger::ContextTooLong]);
    let (bench, _) = two((own, first), (other(), vec![said("other")]), Arc::new(NoPolicyProvider));
    let session = bench.session();
    assert_eq!(ask(&session, "one").await.1, "other");
    assert_eq!(ask(&session, "two").await.1, "own");
    assert_eq!(reported(&session).len(), 1);
}
