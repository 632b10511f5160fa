//! A turn whose provider takes no requests for hours: it rests until the limit is reset.

use super::course::{asked_or_done, reply};
use super::*;
use kode_base::question::{QuestionKind, REST_RETRY, REST_STOP};
use kode_record::event::NoticeKind;

/// A limit that is reset after this many seconds.
fn limited(seconds: u64) -> Say {
    Say::Fail(ModelError {
        retry_after: Some(Duration::from_secs(seconds)),
        ..ModelError::new(ModelErrorKind::RateLimited, "you have used up your plan")
    })
}

fn errors(session: &Session) -> usize {
    let is =
        |item: &&Arc<Item>| matches!(&item.body, ItemBody::Notice { kind: Some(NoticeKind::ApiError), .. });
    session.snapshot(usize::MAX).items.iter().filter(is).count()
}

#[tokio::test(start_paused = true)]
async fn a_turn_rests_until_the_limit_is_reset_and_continues_by_itself() {
    let bench = Bench::new(vec![limited(3 * 60 * 60)]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    let began = tokio::time::Instant::now();
    session.prompts().submit(prompt("go")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    let question = session.requests().questions().remove(0);
    assert_eq!((question.draft.kind, question.call.clone()), (QuestionKind::Rest, None));
    assert!(question.draft.until.is_some());
    assert!(question.draft.questions[0].question.contains("accepts no more requests until "), "{question:?}");
    tokio::time::sleep(Duration::from_secs(3 * 60 * 60)).await;
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::EndTurn));
    let rested = began.elapsed();
    assert!(
        rested >= Duration::from_secs(3 * 60 * 60 - 60) && rested < Duration::from_secs(3 * 60 * 60 + 60),
        "{rested:?}"
    );
    assert_eq!((bench.requests().len(), session.answer().as_str(), errors(&session)), (2, "done", 0));
    assert!(session.requests().questions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_resting_turn_asks_again_or_ends_as_the_user_says() {
    let bench = Bench::new(vec![limited(7_200), limited(7_200)]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    session.requests().reply(&session.requests().questions()[0].id, reply(Some(REST_RETRY))).unwrap();
    // The limit still holds.
    assert_eq!(asked_or_done(&mut events).await, None);
    session.requests().reply(&session.requests().questions()[0].id, reply(Some(REST_STOP))).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::Error));
    assert_eq!((bench.requests().len(), errors(&session)), (2, 1));
    // Cancelling a rest is cancelling.
    bench.model.script.lock().unwrap().push_back(limited(7_200));
    session.prompts().submit(prompt("again")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    session.turns().cancel();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::Cancelled));
    assert_eq!(errors(&session), 1);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_reset_soon_is_waited_for_without_a_question() {
    let bench = Bench::new(vec![limited(400)]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::EndTurn));
    assert_eq!(bench.requests().len(), 2);
}
