//! Which messages stay as they are when a conversation is compacted.
//!
//! Rule: the kept messages can be sent: it begins neither with a result without its call nor ends a call without its result.
//! It is bounded by a number of messages and by tokens, whichever is less.

use kode_model::{Block, Message, Role};

/// The first message to be kept: of the latest `share` of the messages, moved back so that no call is parted from its
/// result, and forward until no more than `limit` tokens are kept. `sizes` are the tokens of each message. The newest
/// prompt is kept however long it is when nothing came after it. As many as there are messages when none is kept.
pub(super) fn kept_from(
    messages: &[Message],
    sizes: &[u64],
    share: f64,
    limit: u64,
    newest_prompt: Option<usize>,
) -> usize {
    let count = messages.len();
    let kept = portion(count, share).clamp(1, count.max(1));
    let mut from = count.saturating_sub(kept);
    while !is_beginning(messages, from) {
        from -= 1;
    }
    let mut tokens: u64 = sizes.get(from..).unwrap_or_default().iter().sum();
    while from < count && (tokens > limit || !is_beginning(messages, from)) {
        if newest_prompt == Some(from) && from + 1 == count && is_beginning(messages, from) {
            break;
        }
        tokens = tokens.saturating_sub(sizes.get(from).copied().unwrap_or_default());
        from += 1;
    }
    from
}

/// A share of a number, rounded up.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "counts of messages are far below what a float holds exactly"
)]
fn portion(count: usize, share: f64) -> usize {
    (count as f64 * share.clamp(0.0, 1.0)).ceil() as usize
}

/// Whether a history may begin with this message once the calls before it are gone.
fn is_beginning(messages: &[Message], at: usize) -> bool {
    at == 0
        || messages.get(at).is_none_or(|message| {
            message.role == Role::Assistant
                || !message.content.iter().any(|block| matches!(block, Block::ToolResult { .. }))
        })
}
