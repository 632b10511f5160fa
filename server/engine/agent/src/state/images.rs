//! Pictures in the place of which a note stands: their bytes count against what a provider takes, whatever their tokens.
//!
//! Rule: the oldest go first, no more than needed, and a note says where one was.

use kode_model::{Block, Message};

/// The most bytes, as they are sent, that pictures of a request may have once it was too long.
pub(crate) const MAX_BYTES: usize = 16 << 20;

/// The text that replaces an image.
pub(crate) const NOTE: &str =
    "[A picture was left out here: the request was too long. Ask to see it again where it counts.]";

/// How many pictures have to be left out, the oldest first, for the rest to have at most `limit` bytes.
pub(crate) fn over(messages: &[Message], limit: usize) -> usize {
    let sizes: Vec<usize> = messages.iter().flat_map(|message| &message.content).flat_map(sizes).collect();
    let mut bytes = 0_usize;
    let fits = |size: &&usize| {
        bytes = bytes.saturating_add(**size);
        bytes <= limit
    };
    sizes.len() - sizes.iter().rev().take_while(fits).count()
}

/// The bytes of the pictures in blocks.
pub(crate) fn bytes(blocks: &[Block]) -> usize {
    blocks.iter().flat_map(sizes).sum()
}

/// Puts a note in the place of the first `count` pictures.
pub(crate) fn leave_out(messages: &mut [Message], count: usize) {
    let mut left = count;
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        match block {
            _ if left == 0 => return,
            Block::Image(_) => {
                *block = Block::Text { text: NOTE.to_owned() };
                left -= 1;
            }
            Block::ToolResult { content, images, .. } => {
                let gone = images.len().min(left);
                for _ in images.drain(..gone) {
                    content.push('\n');
                    content.push_str(NOTE);
                }
                left -= gone;
            }
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolUse { .. } => {}
        }
    }
}

fn sizes(block: &Block) -> Vec<usize> {
    match block {
        Block::Image(image) => vec![image.data.len()],
        Block::ToolResult { images, .. } => images.iter().map(|image| image.data.len()).collect(),
        Block::Text { .. }
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolUse { .. } => Vec::new(),
    }
}
