//! Every adapter writes what its provider takes, whatever a conversation went through.

use std::collections::HashSet;

use proptest::prelude::*;

use crate::validity::{everywhere, message};
use kode_model::normalise::normalise;
use kode_model::{Block, Message, ModelRequest};

/// Histories in which no id is used by two calls, as no adapter lets it happen.
fn history() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 0..12).prop_map(|mut history| {
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
        history in history(),
        reminders in prop::collection::vec("[a ]{0,2}", 0..2),
    ) {
        let messages = normalise(&history);
        let request = ModelRequest { messages: messages.into(), reminders, max_tokens: 8000, ..ModelRequest::default() };
        if let Err(what) = everywhere(&request) {
            prop_assert!(false, "{}", what);
        }
    }
}
