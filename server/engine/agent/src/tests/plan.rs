//! Plans: changed by the user, turned down without a word, and kept to by sub-agents.

use super::*;
use kode_base::question::{InquiryAnswer, PLAN_ACCEPT, PLAN_REJECT, Reply};
use kode_tools::built_in::built_in;

fn present(id: &str, plan: &str) -> Say {
    let input = json!({ "plan": plan });
    Say::Answer(vec![Block::ToolUse { id: id.into(), name: "ExitPlanMode".into(), input, input_error: None }])
}

async fn planning(script: Vec<Say>) -> (Bench, Arc<Session>, Subscription) {
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), script, built_in());
    let session = bench.session();
    session.set_mode(Mode::Plan);
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, |event| matches!(event, Event::QuestionAsked { .. })).await;
    (bench, session, events)
}

fn reply(label: &str) -> Reply {
    let picked = InquiryAnswer { labels: vec![label.to_owned()], text: None };
    Reply { answers: Some(vec![picked]), by: "test".into(), ..Reply::default() }
}

fn structured(session: &Session) -> serde_json::Value {
    let of = |item: Arc<Item>| match item.body.clone() {
        ItemBody::ToolCall(call) => call.structured,
        _ => None,
    };
    session.snapshot(usize::MAX).items.into_iter().rev().find_map(of).unwrap()
}

#[tokio::test]
async fn a_plan_that_the_user_changed_is_the_one_accepted_and_carried_out_in_the_mode_they_chose() {
    let (bench, session, mut events) = planning(vec![present("c0", "1. All of it.")]).await;
    let plan = Some("1. Half of it.".to_owned());
    let id = session.requests().questions()[0].id.clone();
    session
        .requests()
        .reply(&id, Reply { plan, mode: Some(Mode::BypassPermissions), ..reply(PLAN_ACCEPT) })
        .unwrap();
    until(&mut events, is_done).await;
    assert_eq!(session.mode(), Mode::BypassPermissions);
    let (_, content, is_error) = results(&bench.requests()[1]).remove(0);
    assert!(!is_error && content.contains("This is the plan they accepted:\n1. Half of it."), "{content}");
    let reported =
        json!({ "accepted": true, "mode": "bypassPermissions", "plan": "1. Half of it.", "edited": true });
    assert_eq!(structured(&session), reported);
    assert!(bench.requests()[1].reminders.iter().all(|text| !text.contains("mode to")), "the result says it");
}

#[tokio::test]
async fn a_plan_that_is_turned_down_without_a_word_ends_the_turn_in_plan_mode() {
    let (bench, session, mut events) =
        planning(vec![present("c0", "1. All."), present("c1", "1. Less.")]).await;
    let id = session.requests().questions()[0].id.clone();
    session.requests().reply(&id, reply(PLAN_REJECT)).unwrap();
    let seen = until(&mut events, is_done).await;
    assert!(seen.iter().any(|record| matches!(record.event, Event::Done { reason: TurnEnd::EndTurn, .. })));
    assert_eq!((bench.requests().len(), session.mode()), (1, Mode::Plan));
    assert_eq!(structured(&session), json!({ "accepted": false, "plan": "1. All.", "edited": false }));
    session.prompts().submit(prompt("with tests")).unwrap();
    until(&mut events, |event| matches!(event, Event::QuestionAsked { .. })).await;
    let last = bench.requests()[1].messages.last().unwrap().content.clone();
    assert!(
        matches!(&last[0], Block::ToolResult { is_error: true, .. }) && last[1] == text("with tests"),
        "{last:?}"
    );
    let id = session.requests().questions()[0].id.clone();
    session.requests().reply(&id, Reply { feedback: Some("and docs".into()), ..reply(PLAN_REJECT) }).unwrap();
    until(&mut events, is_done).await;
    let (_, content, _) = results(&bench.requests()[2]).pop().unwrap();
    assert!(content.contains("They said: and docs"), "{content}");
    assert_eq!(structured(&session)["feedback"], "and docs");
}
