//! How far a turn goes: its limit, what repeats itself, announcements, cut answers.

use super::charges::{profile, two};
use super::waiting::Settings;
use super::*;
use crate::turn::next::{CONTINUED_LIMIT, REPEAT_LIMIT};
use kode_base::question::{InquiryAnswer, LIMIT_GO_ON, LIMIT_STOP, QuestionKind, Reply};
use kode_config::budget::Budget;
use kode_config::policy::Policy;
use kode_config::preferences::Preferences;
use kode_model::price::Prices;
use kode_model::profile::Profile;
use kode_record::options::TurnOptions;

#[tokio::test(start_paused = true)]
async fn how_long_an_answer_took_stands_with_its_last_text_and_in_the_journal() {
    let slow = Say::After(Duration::from_millis(1_500), vec![text("first"), text("last")]);
    let bench = Bench::new(vec![slow]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, is_done).await;
    let durations = |session: &Session| -> Vec<_> {
        let of = |item: Arc<Item>| match item.body {
            ItemBody::AgentMessage { duration_ms, .. } => Some(duration_ms),
            _ => None,
        };
        session.snapshot(usize::MAX).items.into_iter().filter_map(of).collect()
    };
    assert_eq!(durations(&session), [None, Some(1_500)]);
    let id = session.id().clone();
    session.close();
    session.closed().await;
    let journal = std::fs::read_to_string(session.core().journal().path()).unwrap();
    let answer = journal.lines().find(|line| line.contains("\"type\":\"answer\"")).unwrap();
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["durationMs"], 1_500);
    let again = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
    assert_eq!(durations(&again), [None, Some(1_500)]);
}

pub(super) fn limited(text: &str, max_turns: i64) -> Prompt {
    let options = TurnOptions { max_turns: Some(max_turns), ..TurnOptions::default() };
    prompt(text).with_options(options)
}

pub(super) fn reply(label: Option<&str>) -> Reply {
    let answers = label.map(|label| vec![InquiryAnswer { labels: vec![label.to_owned()], text: None }]);
    Reply { answers, by: "test".to_owned(), ..Reply::default() }
}

/// Waits for a question or the end of the turn; the end's reason when it came.
pub(super) async fn asked_or_done(events: &mut Subscription) -> Option<TurnEnd> {
    let is_asked = |event: &Event| matches!(event, Event::QuestionAsked { .. });
    let seen = until(events, |event| is_asked(event) || is_done(event)).await;
    seen.into_iter().find_map(|record| match record.event {
        Event::Done { reason, .. } => Some(reason),
        _ => None,
    })
}

fn works(number: usize) -> Say {
    Say::Answer(vec![call(&format!("c{number}"), "SafeProbe", &format!("return {number}"))])
}

fn notices(session: &Session, wanted: NoticeKind) -> usize {
    let is = |item: &&Arc<Item>| matches!(&item.body, ItemBody::Notice { kind, .. } if *kind == Some(wanted));
    session.snapshot(usize::MAX).items.iter().filter(is).count()
}

#[tokio::test(start_paused = true)]
async fn at_its_limit_the_user_says_whether_the_turn_continues() {
    let bench = Bench::new((0..20).map(works).collect());
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    let calls = || session.snapshot(usize::MAX).items.iter().filter(|item| item.is_call()).count();
    session.prompts().submit(limited("go", 2)).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    assert_eq!(calls(), 2);
    let question = session.requests().questions().remove(0);
    assert_eq!((question.draft.kind, question.call.clone()), (QuestionKind::TurnLimit, None));
    session.requests().reply(&question.id, reply(Some(LIMIT_GO_ON))).unwrap();
    // The conversation is compacted, and the count starts over.
    let is_asked = |event: &Event| matches!(event, Event::QuestionAsked { .. });
    let seen = until(&mut events, |event| is_asked(event) || is_done(event)).await;
    let compacts = |event: &Event| matches!(event, Event::ContextCompression { .. });
    assert!(seen.iter().any(|record| compacts(&record.event)), "{seen:#?}");
    assert_eq!(calls(), 4);
    let question = session.requests().questions().remove(0);
    session.requests().reply(&question.id, reply(Some(LIMIT_STOP))).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::MaxTurns));
    assert_eq!(notices(&session, NoticeKind::TurnLimit), 1);
    // A missing user is a denial as well.
    session.prompts().submit(limited("again", 1)).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    session.requests().reply(&session.requests().questions()[0].id, reply(None)).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::MaxTurns));
    // Cancelling while it is asked is cancelling.
    bench.model.script.lock().unwrap().push_back(works(9));
    session.prompts().submit(limited("once more", 1)).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    session.turns().cancel();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::Cancelled));
    assert!(session.requests().questions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn with_a_limit_of_zero_there_is_no_chat() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    assert_eq!(session.prompts().submit(limited("go", 0)), Err(SubmitError::ChatDisabled));
    session.turns().limit_turns(3);
    assert!(session.prompts().submit(limited("go", 0)).is_ok(), "the command line wins");
    assert!(bench.requests().len() <= 1);
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_asks_nothing_continues_as_long_as_something_new_happens() {
    let script: Vec<Say> = (0..500).map(works).collect();
    let bench = Bench::new(script);
    let session = bench.session();
    session.set_mode(Mode::BypassPermissions);
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::EndTurn));
    assert_eq!(bench.requests().len(), 501);
    let same = |number: usize| Say::Answer(vec![call(&format!("s{number}"), "SafeProbe", "return")]);
    bench.model.script.lock().unwrap().extend((0..100).map(same));
    session.prompts().submit(prompt("again")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    assert_eq!(bench.requests().len(), 501 + REPEAT_LIMIT as usize);
    session.requests().reply(&session.requests().questions()[0].id, reply(Some(LIMIT_STOP))).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::Repetition));
    // Where there is a limit it is stop enough.
    session.prompts().submit(limited("once more", 60)).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    assert_eq!(bench.requests().len(), 501 + REPEAT_LIMIT as usize + 60);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_only_promises_is_asked_twice_to_do_it() {
    let promise = || Say::Answer(vec![text("Let me first look at it.")]);
    let bench = Bench::new(vec![promise(), promise(), promise(), works(0), promise(), works(1)]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::EndTurn));
    assert_eq!((bench.requests().len(), notices(&session, NoticeKind::IncompleteIntent)), (3, 2));
    assert_eq!(session.answer(), "Let me first look at it.");
    // A call counts the promises again.
    session.prompts().submit(prompt("again")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::EndTurn));
    assert_eq!(bench.requests().len(), 3 + 4);
    // In plan mode an announcement is the wanted answer.
    session.set_mode(Mode::Plan);
    bench.model.script.lock().unwrap().push_back(promise());
    session.prompts().submit(prompt("plan")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::EndTurn));
    assert_eq!(bench.requests().len(), 3 + 4 + 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_cut_by_its_token_limit_is_continued_whatever_was_cut() {
    let thinking = Block::Thinking { thinking: "hm".into(), signature: "signed".into() };
    let cut = |content: Vec<Block>| Say::Ended(content, StopReason::MaxTokens);
    let bench = Bench::new(vec![
        cut(vec![text("It is a lo")]),
        cut(vec![thinking]),
        cut(vec![text("and then"), call("c0", "Probe", "return")]),
        Say::Answer(vec![text("ng story.")]),
    ]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let seen = until(&mut events, is_done).await;
    assert!(seen.iter().any(|record| matches!(&record.event, Event::Done { reason: TurnEnd::EndTurn, .. })));
    assert_eq!(notices(&session, NoticeKind::Continued), 1, "one notice for all of it");
    let last = bench.requests().pop().unwrap();
    let reported: Vec<String> =
        last.messages.iter().map(|message| format!("{:?}", message.content)).collect();
    let reported = reported.join("\n");
    for said in ["It is a lo", "exactly where it stopped", "Think less", "and then", "in smaller pieces"] {
        assert!(reported.contains(said), "{said}: {reported}");
    }
    let (_, content, is_error) = results(&last).remove(0);
    assert!(is_error && content.contains("token limit"), "{content}");
    assert!(!seen.iter().any(|record| matches!(record.event, Event::ToolStart { .. })), "nothing of it ran");
    // Not for ever.
    let again = (0..9).map(|_| Say::Ended(vec![text("on and on")], StopReason::MaxTokens));
    bench.model.script.lock().unwrap().extend(again);
    session.prompts().submit(prompt("again")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::MaxTokens));
    assert_eq!(bench.requests().len(), 4 + 1 + CONTINUED_LIMIT as usize);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_turn_says_what_it_took() {
    let bench = Bench::new(vec![works(0), works(1)]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let seen = until(&mut events, is_done).await;
    let done = seen.into_iter().find(|record| is_done(&record.event)).unwrap().event;
    let Event::Done { model_calls, tool_calls, usage, phases, duration_ms, .. } = done else {
        unreachable!()
    };
    assert_eq!((model_calls, tool_calls, usage.input_tokens), (3, 2, 3));
    let sum = phases.compact_check_ms
        + phases.prompt_build_ms
        + phases.normalise_ms
        + phases.model_call_ms
        + phases.tool_execution_ms
        + phases.next_ms;
    assert!(sum <= duration_ms, "{phases:?} in {duration_ms}");
}

#[tokio::test(start_paused = true)]
async fn a_retry_says_how_often_when_and_for_how_long() {
    let limited = ModelError {
        retry_after: Some(Duration::from_secs(7)),
        ..ModelError::new(ModelErrorKind::RateLimited, "too many requests")
    };
    let bench = Bench::new(vec![Say::Fail(limited)]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let seen = until(&mut events, is_done).await;
    let retry = seen.into_iter().find_map(|record| match record.event {
        Event::ModelRetry { retry } => Some(retry),
        _ => None,
    });
    let retry = retry.unwrap();
    assert_eq!((retry.attempt, retry.of, retry.kind), (1, 3, ModelErrorKind::RateLimited));
    assert!((7_000..=8_750).contains(&retry.delay_ms) && retry.left_ms == 600_000, "{retry:?}");
    assert_eq!((retry.reason.as_str(), retry.model.as_str()), ("too many requests", "fake"));
    assert_eq!(session.answer(), "done");
}

#[tokio::test(start_paused = true)]
async fn a_mode_that_asks_nothing_asks_when_the_time_of_its_budget_is_over() {
    let slow = |number: usize| {
        Say::After(
            Duration::from_secs(40),
            vec![call(&format!("c{number}"), "SafeProbe", &format!("return {number}"))],
        )
    };
    let bench = Bench::new((0..50).map(slow).collect());
    let session = bench.session();
    session.set_mode(Mode::BypassPermissions);
    let mut events = session.events().subscribe(0, vec![]);
    let budget = Budget { max_minutes: Some(1.0), max_cost_usd: Some(1.0) };
    let options = TurnOptions { budget, ..TurnOptions::default() };
    session.prompts().submit(prompt("go").with_options(options)).unwrap();
    let calls = || session.snapshot(usize::MAX).items.iter().filter(|item| item.is_call()).count();
    for asked in 1..=3 {
        assert_eq!(asked_or_done(&mut events).await, None);
        assert_eq!(calls(), 2 * asked, "the calls of the last answer have run");
        let question = session.requests().questions().remove(0);
        assert_eq!(question.draft.kind, QuestionKind::TurnLimit);
        assert!(question.draft.questions[0].question.contains("run for 1 minutes"), "{question:?}");
        session
            .requests()
            .reply(&question.id, reply(Some(if asked < 3 { LIMIT_GO_ON } else { LIMIT_STOP })))
            .unwrap();
    }
    assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::Budget));
    assert_eq!(notices(&session, NoticeKind::TurnLimit), 1);
}

#[tokio::test(start_paused = true)]
async fn a_turn_asks_when_it_has_cost_as_much_as_its_budget() {
    let prices = Prices { input: 1_000_000.0, output: 0.0, cache_read: None, cache_write: None, above: None };
    // A token of every answer, a dollar a token.
    let own = Profile { prices: Some(prices), ..profile("main") };
    let script = (0..50).map(works).collect();
    let settings = Settings::default();
    let (bench, _) = two((own, script), (profile("other"), vec![]), Arc::new(settings.clone()));
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    let budget = |dollars| Budget { max_cost_usd: Some(dollars), max_minutes: None };
    let preferences = Preferences { budget: budget(3.0), ..Preferences::default() };
    settings.set(Policy { preferences, ..Policy::default() });
    let mut asked = Vec::new();
    for dollars in [None, Some(2.0)] {
        let options =
            TurnOptions { budget: dollars.map(budget).unwrap_or_default(), ..TurnOptions::default() };
        let before = bench.requests().len();
        session.prompts().submit(prompt("go").with_options(options)).unwrap();
        assert_eq!(asked_or_done(&mut events).await, None);
        asked.push(bench.requests().len() - before);
        session.requests().reply(&session.requests().questions()[0].id, reply(None)).unwrap();
        assert_eq!(asked_or_done(&mut events).await, Some(TurnEnd::Budget));
    }
    assert_eq!(asked, [3, 2], "what is said with a prompt wins over the settings");
    session.turns().limit_budget(budget(1.0));
    let before = bench.requests().len();
    session.prompts().submit(prompt("go")).unwrap();
    assert_eq!(asked_or_done(&mut events).await, None);
    assert_eq!(bench.requests().len() - before, 1, "the command line wins over both");
}
