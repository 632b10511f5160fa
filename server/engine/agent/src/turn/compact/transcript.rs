//! A conversation as a text that can be summarized.
//!
//! Rule: it has the length that is asked for, whatever the conversation is: verbose results are cut to their ends, repeated
//! reads are left out, and when that is not enough the middle is; every cut is marked.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::context::tokens::Counter;
use kode_model::{Block, Message, Role};

/// How long results may be, in bytes, from the first try to the last.
const RESULT_BYTES: [usize; 4] = [8_000, 2_000, 600, 200];

/// The factor by which a message may be longer than a result.
const SAID_FACTOR: usize = 4;

/// One part in this many of a text that is cut in the middle is kept at the beginning.
const BEGINNING_PART: u64 = 4;

/// The messages as a text of at most `tokens`. Of the first message `head` blocks report an older compaction: in their
/// place is its `summary`.
pub(in crate::turn) fn transcript(
    messages: &[Message],
    head: usize,
    summary: Option<&str>,
    tokens: u64,
    counter: Counter,
) -> String {
    let repeated = repeated_reads(messages);
    let mut entries = Vec::new();
    for bytes in RESULT_BYTES {
        entries = messages
            .iter()
            .enumerate()
            .map(|(at, message)| {
                let skipped = if at == 0 { head } else { 0 };
                entry(message, skipped, &repeated, bytes)
            })
            .collect();
        if let (Some(summary), Some(first)) = (summary, entries.first_mut()) {
            *first = format!("[An older summary]\n{summary}\n\n{first}");
        }
        if entries.iter().map(|entry| counter.text(entry)).sum::<u64>() <= tokens {
            return entries.concat();
        }
    }
    without_middle(&entries, tokens, counter)
}

/// The beginning and the end of a text, together of at most `bytes` bytes, with the cut marked.
pub(in crate::turn) fn both_ends(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let (mut start, mut end) = (bytes * 2 / 3, text.len() - bytes / 3);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    while !text.is_char_boundary(end) {
        end += 1;
    }
    format!("{}\n[… {} bytes left out …]\n{}", &text[..start], end - start, &text[end..])
}

/// The results of reads of files that were read again later.
fn repeated_reads(messages: &[Message]) -> HashSet<&str> {
    let mut later = HashSet::new();
    let mut repeated = HashSet::new();
    for block in messages.iter().rev().flat_map(|message| message.content.iter().rev()) {
        if let Block::ToolUse { id, name, input, .. } = block
            && let Some(path) = input.get("file_path").and_then(serde_json::Value::as_str)
            && name == "Read"
            && !later.insert((path, input.get("offset").and_then(serde_json::Value::as_u64)))
        {
            repeated.insert(id.as_str());
        }
    }
    repeated
}

fn entry(message: &Message, skipped: usize, repeated: &HashSet<&str>, bytes: usize) -> String {
    let who = match message.role {
        Role::User => "User",
        Role::Assistant => "Agent",
    };
    let mut text = String::new();
    for block in message.content.iter().skip(skipped) {
        let _ = match block {
            Block::Text { text: said } => {
                writeln!(text, "[{who}]\n{}\n", both_ends(said, bytes * SAID_FACTOR))
            }
            Block::Image(_) => writeln!(text, "[{who} shows a picture]\n"),
            // Answers and calls contain the result of thinking.
            Block::Thinking { .. } | Block::RedactedThinking { .. } => Ok(()),
            Block::ToolUse { name, input, .. } => {
                writeln!(text, "[Agent calls {name}] {}\n", both_ends(&input.to_string(), bytes))
            }
            Block::ToolResult { tool_use_id, .. } if repeated.contains(tool_use_id.as_str()) => {
                writeln!(text, "[Result] (left out: the file was read again later)\n")
            }
            Block::ToolResult { content, images, is_error, .. } => {
                let kind = if *is_error { "Error" } else { "Result" };
                let pictures = if images.is_empty() { "" } else { " (with pictures)" };
                writeln!(text, "[{kind}{pictures}]\n{}\n", both_ends(content, bytes))
            }
        };
    }
    text
}

/// The first and the last entries that fit.
fn without_middle(entries: &[String], tokens: u64, counter: Counter) -> String {
    let sizes: Vec<u64> = entries.iter().map(|entry| counter.text(entry)).collect();
    let fitting = |sizes: &mut dyn Iterator<Item = &u64>, limit: u64| {
        let mut taken = 0_u64;
        let mut fits = |size: &&u64| {
            taken += **size;
            taken <= limit
        };
        sizes.take_while(&mut fits).count()
    };
    let first = fitting(&mut sizes.iter(), tokens / BEGINNING_PART).max(usize::from(!entries.is_empty()));
    let used: u64 = sizes.iter().take(first).sum();
    let last = fitting(&mut sizes.iter().skip(first).rev(), tokens.saturating_sub(used));
    let left_out = entries.len() - first - last;
    let beginning = super::within(&entries[..first].concat(), tokens, counter);
    format!("{beginning}[… {left_out} messages left out …]\n\n{}", entries[entries.len() - last..].concat())
}
