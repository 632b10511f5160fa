//! Every adapter writes what its provider takes, whatever a conversation went through.

use std::collections::HashSet;

use proptest::prelude::*;

use crate::validity::{everywhere, message};
use crate::{anthropic, chat};
use kode_base::effort::Effort;
use kode_model::normalise::normalise;
use kode_model::{Block, History, Message, ModelRequest};

/// Histories in which no id is used by two calls, as no adapter lets it happen.
fn history(most: usize) -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 0..most).prop_map(|mut history| {
        let mut used = HashSet::new();
        for message in &mut history {
            message.content.retain(|block| match block {
                Block::ToolUse { id, .. } => used.insert(id.clone()),
                Block::Text { .. }
                | Block::Image(_)
                | Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::ToolResult { .. } => true,
            });
        }
        history
    })
}

proptest! {
    #[test]
    fn every_adapter_writes_what_its_provider_takes(
        history in history(12),
        reminders in prop::collection::vec("[a ]{0,2}", 0..2),
    ) {
        let messages = normalise(&history);
        let request = ModelRequest { messages: messages.into(), reminders, max_tokens: 8000, ..ModelRequest::default() };
        if let Err(what) = everywhere(&request) {
            prop_assert!(false, "{}", what);
        }
    }

    /// What an earlier request wrote is written alike in the next one, whichever messages follow or are changed meanwhile.
    #[test]
    fn a_request_of_a_history_that_grew_is_that_of_the_whole_history(
        mut history in history(40),
        changed in prop::option::of(0_usize..40),
        reminders in prop::collection::vec("[a ]{0,2}", 0..2),
    ) {
        // Most of what is generated is left out of requests.
        for message in history.iter_mut().filter(|message| message.content.len() > 1) {
            message.content.push(Block::Text { text: "said".to_owned() });
        }
        let mut messages = normalise(&history);
        let request = |messages: History| {
            let reminders = reminders.clone();
            ModelRequest { messages, reminders, max_tokens: 8000, effort: Some(Effort::High), ..ModelRequest::default() }
        };
        for (body, model) in [
            (anthropic::body_json as fn(&str, &ModelRequest) -> serde_json::Value, "claude-sonnet-5"),
            (anthropic::body_json, "claude-sonnet-4-5"),
            (chat::body_json, "gpt-4"),
        ] {
            for origin in messages.iter_mut().filter_map(|message| message.origin.as_mut()) {
                model.clone_into(&mut origin.model);
            }
            let mut grown = History::default();
            for (at, message) in messages.iter().enumerate() {
                grown.push(message.clone());
                if changed == Some(at)
                    && let Some(newest) = grown.last_mut()
                {
                    newest.content.push(Block::Text { text: "more".to_owned() });
                }
                let whole = History::from(grown.to_vec());
                prop_assert_eq!(body(model, &request(grown.clone())), body(model, &request(whole)), "{} at {}", model, at);
            }
        }
    }
}
