//! The part of a conversation that a side question is asked about.
//!
//! Rule: it ends with a complete round, so that every provider takes it, and it is a prefix of what the conversation sends.

use std::collections::BTreeSet;

use kode_model::{Block, History, Message};

/// The longest description of a step, in characters.
const MAX_STEP: usize = 4_000;

/// The messages up to the last complete round, and the step after it in words; `None` where no calls are open.
pub(super) fn complete(history: &History) -> (History, Option<String>) {
    let Some(at) = history.iter().rposition(|message| calls(message).next().is_some()) else {
        return (history.clone(), None);
    };
    let answered: BTreeSet<&str> = history[at..].iter().flat_map(results).collect();
    if calls(&history[at]).all(|call| answered.contains(call)) {
        return (history.clone(), None);
    }
    let (done, open) = history.split_at(at);
    (done.to_vec().into(), Some(described(&open[0], &answered)))
}

fn calls(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(|block| match block {
        Block::ToolUse { id, .. } => Some(id.as_str()),
        _ => None,
    })
}

fn results(message: &Message) -> impl Iterator<Item = &str> {
    message.content.iter().filter_map(|block| match block {
        Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.as_str()),
        _ => None,
    })
}

/// An answer whose calls are open, in words.
fn described(answer: &Message, answered: &BTreeSet<&str>) -> String {
    let lines = answer.content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(format!("It said: {text}")),
        Block::ToolUse { id, name, input, .. } => {
            let state = if answered.contains(id.as_str()) { "done" } else { "waits or runs" };
            Some(format!("It called {name} with {input} ({state})."))
        }
        Block::Image(_)
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolResult { .. } => None,
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    match text.char_indices().nth(MAX_STEP) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn text(text: &str) -> Block {
        Block::Text { text: text.to_owned() }
    }

    fn call(id: &str) -> Block {
        let input = json!({ "command": "rm x" });
        Block::ToolUse { id: id.to_owned(), name: "Bash".to_owned(), input, input_error: None }
    }

    #[test]
    fn a_round_with_open_calls_is_left_out_and_described() {
        let begun = [
            Message::user(vec![text("go")]),
            Message::assistant(vec![call("a")]),
            Message::user(vec![Block::result("a", "ok", false)]),
        ];
        let open = Message::assistant(vec![text("Now this."), call("b"), call("c")]);
        let half = Message::user(vec![Block::result("b", "ok", false)]);
        let history: History = begun.iter().cloned().chain([open, half]).collect();
        let (messages, step) = complete(&history);
        assert_eq!(messages[..], begun);
        let step = step.unwrap();
        assert!(
            step.starts_with("It said: Now this.\nIt called Bash with {\"command\":\"rm x\"} (done)."),
            "{step}"
        );
        assert!(step.ends_with("(waits or runs)."), "{step}");
        let whole: History = begun.into_iter().collect();
        assert_eq!(complete(&whole), (whole.clone(), None));
        assert_eq!(complete(&History::default()), (History::default(), None));
    }

    #[test]
    fn a_long_step_is_cut() {
        let open = Message::assistant(vec![text(&"é".repeat(MAX_STEP)), call("a")]);
        let history: History = [Message::user(vec![text("go")]), open].into_iter().collect();
        let (_, step) = complete(&history);
        assert_eq!(step.unwrap().chars().count(), MAX_STEP + 1);
    }
}
