//! Side questions: their limits, and the ends of those that nothing waits for any more.

use super::*;
use crate::session::side::SideError;

#[tokio::test(start_paused = true)]
async fn an_answer_without_end_is_cut_at_its_limit() {
    let words = "word ".repeat(20_000);
    let bench = Bench::new(vec![Say::Hang(Box::leak(words.into_boxed_str()))]);
    let session = bench.session();
    let answer = session.side_questions().ask("why?", |_| {}).await.unwrap();
    assert!(!answer.is_whole && answer.text.len() >= 64 << 10, "{}", answer.text.len());
    assert_eq!(bench.requests()[0].max_tokens, 4_096, "tokens are limited as well");
}

#[tokio::test(start_paused = true)]
async fn what_a_question_took_is_charged_when_nothing_waits_for_it_any_more() {
    let bench = Bench::new(vec![Say::After(Duration::from_secs(5), vec![text("late")])]);
    let session = bench.session();
    let asked = tokio::time::timeout(Duration::from_secs(1), session.side_questions().ask("why?", |_| {}));
    assert!(asked.await.is_err());
    session.close();
    session.closed().await;
    assert_eq!(session.spending().usage().input_tokens, 1);
    assert_eq!(session.side_questions().ask("why?", |_| {}).await, Err(SideError::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_passes_is_tried_again_once_and_another_is_reported() {
    let fault = || ModelError::new(ModelErrorKind::Server, "overloaded");
    let answer = Say::Answer(vec![text("at last")]);
    let bench = Bench::new(vec![Say::Fail(fault()), answer, Say::Fail(fault()), Say::Fail(fault())]);
    let session = bench.session();
    let answer = session.side_questions().ask("why?", |_| {}).await.unwrap();
    assert_eq!((answer.text.as_str(), bench.requests().len()), ("at last", 2));
    assert_eq!(session.side_questions().ask("why?", |_| {}).await, Err(SideError::Model(fault())));
    assert_eq!(bench.requests().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn calls_are_refused_and_a_model_that_goes_on_calling_gave_no_answer() {
    let calls = |id: &str| Say::Answer(vec![call(id, "Probe", "return")]);
    let bench = Bench::new(vec![calls("a"), calls("b"), calls("c")]);
    let session = bench.session();
    let asked = session.side_questions().ask("why?", |_| {}).await;
    assert!(matches!(asked, Err(SideError::NoText(_))), "{asked:?}");
    let requests = bench.requests();
    assert_eq!(requests.len(), 3);
    let refused: Vec<_> = results(&requests[2]).into_iter().map(|(id, _, is_error)| (id, is_error)).collect();
    assert_eq!(refused, [("a".to_owned(), true), ("b".to_owned(), true)]);
    assert_eq!(session.history().messages_from(0).len(), 0, "nothing is in the conversation");
}
