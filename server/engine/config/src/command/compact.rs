//! The command that compacts a conversation.
//!
//! Rule: its argument is what the summary focuses on.

/// The command that users type for a compaction.
pub const COMMAND: &str = "/compact";

/// The focus of a prompt that asks to compact the conversation, empty when it names none; `None` for any other prompt.
pub fn asked(prompt: &str) -> Option<&str> {
    let rest = prompt.trim().strip_prefix(COMMAND)?;
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then(|| rest.trim())
}
