//! Thinking by a call.
//!
//! Rule: for people it is thinking, for the model a call that has its result.

use serde_json::Value;

use super::*;
use kode_tools::think::Think;

fn think(id: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: "think".into(), input, input_error: None }
}

#[tokio::test(start_paused = true)]
async fn a_thought_is_thinking_in_the_transcript_and_an_answered_call_in_the_history() {
    let mut tools = Registry::default();
    tools.add(Think);
    let calls = vec![think("c0", json!({ "thought": "first a" })), think("c1", json!({}))];
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), vec![Say::Answer(calls)], tools);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let seen = until(&mut events, is_done).await;

    let items = session.snapshot(10).items;
    let thoughts: Vec<_> =
        items.iter().filter(|item| matches!(item.body, ItemBody::Thinking { .. })).collect();
    let [thought] = thoughts.as_slice() else { panic!("{items:?}") };
    assert_eq!(thought.body, ItemBody::Thinking { text: "first a".into(), complete: true });
    // Output that is no thought is a failed call, so that it is visible.
    assert_eq!(items.iter().filter(|item| item.is_call()).count(), 1, "{items:?}");
    assert_eq!(session.answer(), "done");
    for record in seen {
        if let Event::ToolStart { item } | Event::ToolEnd { item } = record.event {
            assert_ne!(item.id, thought.id);
        }
    }
    let requests = bench.requests();
    assert_sendable(&requests[1].messages);
    let reported: Vec<_> = results(&requests[1]).into_iter().map(|(id, content, _)| (id, content)).collect();
    assert_eq!(reported[0], ("c0".to_owned(), "Noted.".to_owned()));
    assert!(reported[1].1.contains("thought"), "{reported:?}");
}
