//! Makes a history one that every provider takes.
//!
//! Rule: whatever the history went through (damage, interruption, compaction), what comes out has roles that alternate from
//! the user on, every call answered once and right after it, and no result without its call.

use crate::{Block, History, Message, Role};

/// Makes a history valid for sending: no empty blocks or messages, roles alternating from the user on, every call
/// answered once and right after it, no result without its call. A whole history comes out as it went in; a damaged
/// one loses what cannot be sent.
pub fn normalise(messages: &[Message]) -> Vec<Message> {
    let mut normal: Vec<Message> = Vec::with_capacity(messages.len());
    for message in merge(messages) {
        match message.role {
            Role::Assistant if normal.is_empty() => {}
            Role::Assistant => push(&mut normal, message),
            Role::User => {
                let calls = normal.last().map(calls).unwrap_or_default();
                let content = answer(&calls, message.content);
                push(&mut normal, Message::user(content));
            }
        }
    }
    let open = normal.last().map(calls).unwrap_or_default();
    push(&mut normal, Message::user(answer(&open, Vec::new())));
    normal
}

/// Adds a message to a history that is valid, at a cost that does not grow with it. The calls of the newest answer must
/// be answered by the next addition.
pub fn append(history: &mut History, mut message: Message) {
    clean(&mut message);
    match history.last().map(|last| last.role) {
        _ if message.content.is_empty() => {}
        None if message.role == Role::Assistant => {}
        Some(role) if role == message.role => {
            if let Some(last) = history.last_mut() {
                join(last, message);
            }
        }
        None | Some(_) => history.push(message),
    }
}

/// Leaves out empty parts, and makes neighbors of one role one message.
fn merge(messages: &[Message]) -> Vec<Message> {
    let mut merged = Vec::with_capacity(messages.len());
    for message in messages {
        let mut message = message.clone();
        clean(&mut message);
        push(&mut merged, message);
    }
    merged
}

/// Takes out what providers do not take.
fn clean(message: &mut Message) {
    message.content.retain(|block| !is_empty(block));
    // An answer that was cut before its call leaves thinking at its end, which providers do not take back.
    while message.role == Role::Assistant
        && matches!(message.content.last(), Some(Block::Thinking { .. } | Block::RedactedThinking { .. }))
    {
        message.content.pop();
    }
}

/// Joins a message of the same role. Two answers of one provider stay that provider's; otherwise only a side without
/// sealed data keeps its blocks whole, because a joined message has at most one provider to send sealed data back to.
fn join(last: &mut Message, mut message: Message) {
    let is_one = match (&last.origin, &message.origin) {
        (Some(origin), Some(other)) => origin.is_same_provider(other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    if !is_one {
        match (has_sealed(last), has_sealed(&message)) {
            (true, true) => {
                unseal(last);
                unseal(&mut message);
                last.origin = None;
            }
            (true, false) => {}
            (false, true) => last.origin = message.origin,
            (false, false) => last.origin = None,
        }
    }
    // One message made of two is no answer that a provider has kept.
    if let Some(origin) = &mut last.origin {
        origin.response_id = None;
    }
    last.content.extend(message.content);
}

/// Whether a block holds what only its provider reads.
fn is_sealed(block: &Block) -> bool {
    match block {
        Block::RedactedThinking { .. } => true,
        Block::Thinking { signature, .. } => !signature.is_empty(),
        Block::Text { .. } | Block::Image(_) | Block::ToolUse { .. } | Block::ToolResult { .. } => false,
    }
}

fn has_sealed(message: &Message) -> bool {
    message.content.iter().any(is_sealed)
}

fn unseal(message: &mut Message) {
    message.content.retain(|block| !is_sealed(block));
}

fn push(messages: &mut Vec<Message>, message: Message) {
    match messages.last_mut() {
        _ if message.content.is_empty() => {}
        Some(last) if last.role == message.role => join(last, message),
        _ => messages.push(message),
    }
}

/// The calls of an answer.
fn calls(message: &Message) -> Vec<String> {
    let id = |block: &Block| match block {
        Block::ToolUse { id, .. } => Some(id.clone()),
        _ => None,
    };
    message.content.iter().filter_map(id).collect()
}

/// The results of these calls in their order, then the rest; results of other calls are left out.
fn answer(calls: &[String], content: Vec<Block>) -> Vec<Block> {
    let (results, rest): (Vec<_>, Vec<_>) =
        content.into_iter().partition(|block| matches!(block, Block::ToolResult { .. }));
    let result_of = |call: &String| {
        let of =
            |block: &&Block| matches!(block, Block::ToolResult { tool_use_id, .. } if tool_use_id == call);
        results.iter().find(of).cloned().unwrap_or_else(|| {
            Block::result(
                call,
                "The result of this call was lost; check what it did before you repeat it.",
                true,
            )
        })
    };
    calls.iter().map(result_of).chain(rest).collect()
}

fn is_empty(block: &Block) -> bool {
    match block {
        Block::Text { text } => text.trim().is_empty(),
        Block::Thinking { thinking, signature } => thinking.is_empty() && signature.is_empty(),
        Block::Image(_)
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. }
        | Block::ToolResult { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{AnswerOrigin, Wire};

    fn text(role: Role, text: &str) -> Message {
        Message { role, content: vec![Block::Text { text: text.into() }], origin: None }
    }

    #[test]
    fn an_interrupted_history_becomes_one_that_can_be_sent() {
        let history = [
            text(Role::Assistant, "left over"),
            text(Role::User, "one"),
            text(Role::User, "[interrupted]"),
            text(Role::Assistant, " \n"),
            text(Role::User, "two"),
            text(Role::Assistant, "three"),
        ];
        let normal = normalise(&history);
        let shape: Vec<_> = normal.iter().map(|message| (message.role, message.content.len())).collect();
        assert_eq!(shape, [(Role::User, 3), (Role::Assistant, 1)]);
    }

    #[test]
    fn calls_and_results_are_paired_whatever_is_missing() {
        let call = |id: &str| Block::ToolUse {
            id: id.into(),
            name: "Read".into(),
            input: json!({}),
            input_error: None,
        };
        let result = |id: &str| Block::result(id, id, false);
        let assistant = |content| Message::assistant(content);
        let user = |content| Message::user(content);
        let whole = [
            text(Role::User, "one"),
            assistant(vec![call("a"), call("b")]),
            user(vec![result("a"), result("b")]),
            assistant(vec![call("c")]),
            user(vec![result("c"), Block::Text { text: "and".into() }]),
            text(Role::Assistant, "done"),
            text(Role::User, "two"),
        ];
        assert_eq!(normalise(&whole), whole);
        for missing in 0..whole.len() {
            let mut damaged = whole.to_vec();
            damaged.remove(missing);
            damaged.reverse();
            for history in [damaged.clone(), damaged.into_iter().rev().collect()] {
                let normal = normalise(&history);
                for (at, message) in normal.iter().enumerate() {
                    assert_eq!(message.role, if at % 2 == 0 { Role::User } else { Role::Assistant });
                    let answered = normal.get(at + 1).map(|next| {
                        let id = |block: &Block| match block {
                            Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.clone()),
                            _ => None,
                        };
                        next.content.iter().filter_map(id).collect::<Vec<_>>()
                    });
                    assert_eq!(
                        answered.unwrap_or_default(),
                        calls(message),
                        "without {missing}: {normal:#?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_joined_answer_keeps_the_sealed_data_of_one_provider_at_most() {
        let origin = |host: &str| AnswerOrigin {
            wire: Wire::ChatCompletions,
            model: "m".into(),
            host: Some(host.into()),
            response_id: Some("r".into()),
        };
        let sealed = |host: Option<&str>| Message {
            origin: host.map(origin),
            ..Message::assistant(vec![
                Block::RedactedThinking { data: format!("{host:?}") },
                Block::Text { text: "so".into() },
            ])
        };
        let plain =
            |host: Option<&str>| Message { origin: host.map(origin), ..text(Role::Assistant, "plain") };
        for (first, second, kept, owner) in [
            (sealed(Some("a")), sealed(Some("a")), 2, Some("a")),
            (sealed(Some("a")), sealed(Some("b")), 0, None),
            (sealed(Some("a")), plain(Some("b")), 1, Some("a")),
            (plain(None), sealed(Some("b")), 1, Some("b")),
            (plain(Some("a")), plain(Some("b")), 0, None),
            (sealed(None), sealed(None), 2, None),
            (sealed(None), sealed(Some("b")), 0, None),
        ] {
            let history = [text(Role::User, "one"), first, second, text(Role::User, "two")];
            let joined = normalise(&history).remove(1);
            let host = joined.origin.as_ref().and_then(|origin| origin.host.as_deref());
            let count = joined.content.iter().filter(|block| is_sealed(block)).count();
            assert_eq!((count, host), (kept, owner), "{joined:#?}");
            assert!(joined.origin.is_none_or(|origin| origin.response_id.is_none()));
            assert_eq!(joined.content.iter().filter(|block| matches!(block, Block::Text { .. })).count(), 2);
        }
    }

    #[test]
    fn thinking_at_the_end_of_a_cut_answer_is_not_sent_back() {
        let thinking = Block::Thinking { thinking: "hm".into(), signature: "signed".into() };
        let cut = Message::assistant(vec![thinking.clone()]);
        let whole = Message::assistant(vec![thinking, Block::Text { text: "so".into() }]);
        let history = [text(Role::User, "one"), cut, text(Role::User, "two"), whole.clone()];
        let normal = normalise(&history);
        assert_eq!(normal.len(), 2);
        assert_eq!(normal[1], whole);
    }
}
