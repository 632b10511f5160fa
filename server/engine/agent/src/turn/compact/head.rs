//! The text that replaces the compacted messages.
//!
//! Rule: it is a part of the user's side that states that it is not the user's text; the first instruction is in it as
//! in the original wording, and so are the newest prompt and the later messages of the user if their messages are gone,
//! together within one share of the window. What it quotes cannot end it early.

use super::{CompactionInput, within};
use crate::state::images;
use crate::state::thread::SentPrompt;
use kode_model::Block;

/// The share of the window, as one part in this many, that the first instruction may take.
const FIRST_INSTRUCTION_PART: u64 = 32;

/// The share of the window, as one part in this many, that the newest prompt and later messages of the user may take.
const PROMPT_PART: u64 = 4;

/// The share of the window, as one part in this many, that a summary may take.
const SUMMARY_PART: u64 = 8;

/// The most quoted messages of the user after the newest prompt; the newest are kept.
const MAX_STEERED: usize = 20;

/// Less of a text is not worth quoting.
const MIN_QUOTED: u64 = 20;

const TAG: &str = "conversation-summary";

const WITH_SUMMARY: &str = "\
The conversation before this point was left out because the context window is limited. This summary of it was written by \
a model; it is not a message of the user. Messages that follow it are newer than the summary and unchanged. Continue \
the work from there; do not repeat finished work, and do not mention the summary. Files have to be read again before \
they are changed, but for those whose text is below.";

const WITHOUT_SUMMARY: &str = "\
Warning: the conversation before this point was left out because the context window is limited, and no summary of it could \
be written. You do not know the work done in it. This note is not a message of the user. Read the files and the messages \
below before you continue, do not repeat finished work, and ask the user where something important is missing.";

/// The head of a compacted history, under construction.
pub(super) struct HistoryHead<'a> {
    before: &'a CompactionInput<'a>,
    /// The newest prompt where its message is gone, and the user's messages after it.
    prompt: Option<&'a SentPrompt>,
    steered: Vec<&'a SentPrompt>,
    /// The divisor of all quotas.
    part: u64,
    text: String,
}

/// A quoted block.
struct QuotedBlock<'a> {
    block: &'a Block,
    is_typed: bool,
}

impl<'a> HistoryHead<'a> {
    /// The head of a history that continues with message `kept_from`, with all it quotes `part` times shorter than it may be.
    pub(super) fn of(before: &'a CompactionInput<'a>, kept_from: usize, part: u64) -> Self {
        let is_lost = |saying: &&SentPrompt| saying.at.is_none_or(|at| at < kept_from);
        let prompt = before.prompt.as_ref().filter(is_lost);
        let mut steered: Vec<_> = before.steered.iter().filter(is_lost).collect();
        steered.drain(..steered.len().saturating_sub(MAX_STEERED));
        Self { before, prompt, steered, part, text: String::new() }
    }

    /// Adds a summary.
    pub(super) fn with_summary(mut self, summary: &str) -> Self {
        let summary = self.share(summary, SUMMARY_PART);
        let first = self.first_instruction();
        self.text = format!("{WITH_SUMMARY}\n{first}\nThe summary:\n\n{summary}");
        self
    }

    /// Adds the reason why there is no summary, and an older one.
    pub(super) fn with_warning(mut self, failure: &str, older: Option<&str>) -> Self {
        let first = self.first_instruction();
        self.text = format!("{WITHOUT_SUMMARY}\nThe reason: {failure}.\n{first}");
        if let Some(older) = older {
            let older = self.share(older, SUMMARY_PART);
            self.text = format!("{}\nA summary of what came long before:\n\n{older}", self.text);
        }
        self
    }

    /// The blocks.
    pub(super) fn into_blocks(self) -> Vec<Block> {
        let quoted = self.text.replace(&format!("</{TAG}"), &format!("<\u{200b}/{TAG}"));
        let mut blocks = vec![Block::Text { text: format!("<{TAG}>\n{quoted}\n</{TAG}>") }];
        let mut sayings = Vec::new();
        if let Some(prompt) = self.prompt {
            sayings.push(("The newest prompt of the user, to which the work that follows belongs:", prompt));
        }
        let later = "Later messages of the user during the work on that prompt:";
        sayings.extend(self.steered.iter().map(|said| (later, *said)));
        let quoted: Vec<_> = sayings.iter().flat_map(|(_, said)| parts(said)).collect();
        let mut shared = self.shared(&quoted).into_iter();
        for (what, said) in sayings {
            blocks.push(Block::Text { text: what.to_owned() });
            blocks.extend(shared.by_ref().take(parts(said).count()).flatten());
        }
        blocks
    }

    /// The quoted text, cut to the common limit: typed text comes first, then its attachments.
    /// `None` for a block without room.
    fn shared(&self, quoted: &[QuotedBlock<'_>]) -> Vec<Option<Block>> {
        let counter = self.before.counter;
        let mut left = self.before.profile.context_window / PROMPT_PART / self.part;
        let mut picture_bytes = images::MAX_BYTES;
        let mut shared: Vec<_> = quoted.iter().map(|_| None).collect();
        for is_typed in [true, false] {
            let of = quoted.iter().enumerate().filter(|(_, quoted)| quoted.is_typed == is_typed);
            let mut sized: Vec<_> =
                of.map(|(at, quoted)| (counter.blocks(std::slice::from_ref(quoted.block)), at)).collect();
            // Short blocks leave the rest of their share to long ones.
            sized.sort_unstable();
            let count = u64::try_from(sized.len()).unwrap_or(u64::MAX);
            for ((size, at), others) in sized.into_iter().zip((1..=count).rev()) {
                let share = left / others;
                let block = quoted[at].block;
                let bytes = images::bytes(std::slice::from_ref(block));
                let cut = match block {
                    _ if size <= share && bytes <= picture_bytes => block.clone(),
                    Block::Text { text } if share >= MIN_QUOTED => {
                        Block::Text { text: within(text, share, counter) }
                    }
                    Block::Image(_) if share >= MIN_QUOTED => Block::Text { text: images::NOTE.to_owned() },
                    Block::Text { .. }
                    | Block::Image(_)
                    | Block::Thinking { .. }
                    | Block::RedactedThinking { .. }
                    | Block::ToolUse { .. }
                    | Block::ToolResult { .. } => continue,
                };
                let cut = std::slice::from_ref(&cut);
                left = left.saturating_sub(counter.blocks(cut));
                picture_bytes = picture_bytes.saturating_sub(images::bytes(cut));
                shared[at] = cut.first().cloned();
            }
        }
        shared
    }

    fn first_instruction(&self) -> String {
        match &self.before.first_instruction {
            Some(first) => {
                let first = self.share(first, FIRST_INSTRUCTION_PART);
                format!("\nThe first instruction of the user, word for word:\n\n{first}\n")
            }
            None => String::new(),
        }
    }

    fn share(&self, text: &str, part: u64) -> String {
        within(text, self.before.profile.context_window / part / self.part, self.before.counter)
    }
}

/// The quotable blocks of a message.
fn parts(said: &SentPrompt) -> impl Iterator<Item = QuotedBlock<'_>> {
    let is_said = |block: &Block| matches!(block, Block::Text { .. } | Block::Image(_));
    let blocks = said.blocks.iter().enumerate().filter(move |(_, block)| is_said(block));
    blocks.map(|(at, block)| QuotedBlock { block, is_typed: at < said.words })
}
