//! The ids of the calls of one conversation.
//!
//! Rule: results are matched by id, so no id is used twice, whatever a server sends.

use std::collections::HashSet;

use kode_model::{Block, Message};

/// The id of a call that came without one.
const NAMELESS: &str = "call";

/// The ids of all calls of a conversation so far.
#[derive(Clone, Debug, Default)]
pub(super) struct CallIds {
    used: HashSet<String>,
}

impl CallIds {
    /// The ids in `history`.
    pub(super) fn of(history: &[Message]) -> Self {
        let ids = history.iter().flat_map(|message| &message.content).filter_map(|block| match block {
            Block::ToolUse { id, .. } => Some(id.clone()),
            Block::Text { .. }
            | Block::Image(_)
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolResult { .. } => None,
        });
        Self { used: ids.collect() }
    }

    /// The id itself, or one made from it when it was used before or is empty.
    pub(super) fn unique(&mut self, id: &str) -> String {
        let id = if id.is_empty() { NAMELESS } else { id };
        let mut unique = id.to_owned();
        let mut number = 2;
        while !self.used.insert(unique.clone()) {
            unique = format!("{id}-{number}");
            number += 1;
        }
        unique
    }
}
