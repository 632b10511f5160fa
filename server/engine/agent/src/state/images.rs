//! Pictures that a note replaces, because a request was too long or because a provider refused them.
//!
//! Rule: a request that was too long loses its oldest pictures, no more than needed; a refused one loses the newest. The
//! note is where the picture was, so that no message and no block changes its place.

use std::ops::Range;

use kode_model::{Block, Message, Role};

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

/// Replaces the first `count` pictures by a note.
pub(crate) fn leave_out(messages: &mut [Message], count: usize) {
    replace(messages, 0..count, NOTE);
}

/// Replaces the last `count` pictures by a note with the provider's reason for refusing them.
pub(crate) fn leave_out_newest(messages: &mut [Message], count: usize, reason: &str) {
    let all = self::count(messages);
    let note = format!(
        "[A picture or document was left out here: the provider refused it. {reason} Ask the user for another form of it where \
         it counts.]"
    );
    replace(messages, all.saturating_sub(count)..all, &note);
}

/// The number of pictures in messages.
pub(crate) fn count(messages: &[Message]) -> usize {
    messages.iter().flat_map(|message| &message.content).map(|block| sizes(block).len()).sum()
}

/// The number of pictures that no answer of the model follows: no provider has accepted them in this conversation.
pub(crate) fn count_unanswered(messages: &[Message]) -> usize {
    let unanswered =
        messages.iter().rposition(|message| message.role == Role::Assistant).map_or(0, |at| at + 1);
    count(&messages[unanswered..])
}

/// Replaces the pictures of these numbers, counted from 0, by a note.
fn replace(messages: &mut [Message], numbers: Range<usize>, note: &str) {
    let mut number = 0;
    for block in messages.iter_mut().flat_map(|message| &mut message.content) {
        match block {
            _ if number >= numbers.end => return,
            Block::Image(_) => {
                if numbers.contains(&number) {
                    *block = Block::Text { text: note.to_owned() };
                }
                number += 1;
            }
            Block::ToolResult { content, images, .. } => {
                images.retain(|_| {
                    let is_kept = !numbers.contains(&number);
                    number += 1;
                    if !is_kept {
                        content.push('\n');
                        content.push_str(note);
                    }
                    is_kept
                });
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

#[cfg(test)]
mod tests {
    use super::*;
    use kode_model::Image;

    fn picture(name: &str) -> Image {
        Image { media_type: "image/png".to_owned(), data: name.to_owned(), text: None }
    }

    fn conversation() -> Vec<Message> {
        let result = Block::ToolResult {
            tool_use_id: "call".to_owned(),
            content: "read".to_owned(),
            images: vec![picture("c"), picture("d")],
            is_error: false,
        };
        vec![
            Message::user(vec![Block::Image(picture("a"))]),
            Message::assistant(vec![Block::Text { text: "seen".to_owned() }]),
            Message::user(vec![Block::Image(picture("b")), result]),
        ]
    }

    fn left(messages: &[Message]) -> String {
        let blocks = messages.iter().flat_map(|message| &message.content);
        let names = blocks.flat_map(|block| match block {
            Block::Image(image) => vec![image.data.to_string()],
            Block::ToolResult { images, .. } => images.iter().map(|image| image.data.to_string()).collect(),
            _ => Vec::new(),
        });
        names.collect()
    }

    #[test]
    fn the_newest_pictures_go_where_a_provider_refused_them_and_the_oldest_where_a_request_was_too_long() {
        for (count, newest, oldest) in [(0, "abcd", "abcd"), (1, "abc", "bcd"), (3, "a", "d"), (9, "", "")] {
            let mut messages = conversation();
            leave_out_newest(&mut messages, count, "It is broken.");
            assert_eq!(left(&messages), newest, "{count}");
            let mut messages = conversation();
            leave_out(&mut messages, count);
            assert_eq!(left(&messages), oldest, "{count}");
        }
    }

    #[test]
    fn pictures_that_a_model_has_answered_to_count_as_accepted() {
        let messages = conversation();
        assert_eq!((count(&messages), count_unanswered(&messages)), (4, 3));
        assert_eq!(count_unanswered(&messages[..1]), 1);
        assert_eq!(count_unanswered(&messages[..2]), 0);
    }
}
