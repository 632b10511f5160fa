//! An answer as Markdown, piece by piece as it comes.
//!
//! Rule: returned text is never changed, and it does not depend on how the pieces were cut; no line of a model can
//! be one that means something in a chat document.

use std::collections::HashMap;

use kode_engine::base::ids::ItemId;
use kode_engine::record::event::{CallState, Item, ItemBody, NoticeLevel, ToolCallItem};

use super::layout::{is_reserved, may_be_reserved};
use crate::display::{both_ends, printable, readable};

/// Maximum characters of a line about a call.
const LINE_LIMIT: usize = 200;
/// Maximum characters of a command's own answer.
const COMMAND_LIMIT: usize = 20_000;

/// Writes the answer of one turn.
#[derive(Debug, Default)]
pub(super) struct AnswerText {
    /// The text that was made and not returned.
    out: String,
    /// How much of each item's text was taken.
    taken: HashMap<ItemId, usize>,
    /// The begun line of a text, held back as long as it could become one that means something.
    held: String,
    /// The line of the text so far, where it was not held back.
    line: String,
    /// The last written text.
    last: LastPiece,
    /// The fence of a code block that is open: its character and length.
    fence: Option<(char, usize)>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum LastPiece {
    #[default]
    Nothing,
    /// The text of this item.
    Text(ItemId),
    /// A line about a call.
    Line,
}

impl AnswerText {
    /// Takes what came to the end of a message.
    pub(super) fn chunk(&mut self, item: &ItemId, text: &str) {
        let Some(taken) = self.taken.get_mut(item) else { return };
        *taken += text.len();
        self.write(item, text);
    }

    /// Takes an item as it is now.
    pub(super) fn item(&mut self, item: &Item) {
        match &item.body {
            ItemBody::AgentMessage { text, .. } => {
                let taken = self.taken.entry(item.id.clone()).or_default();
                if let Some(rest) = text.get(*taken..).filter(|rest| !rest.is_empty()) {
                    *taken = text.len();
                    let rest = rest.to_owned();
                    self.write(&item.id, &rest);
                }
            }
            ItemBody::ToolCall(call) if call.state.is_final() => self.once(item, |words| words.call(call)),
            ItemBody::Command { text, .. } => {
                let text = both_ends(text.trim(), COMMAND_LIMIT);
                self.once(item, |words| words.write(&item.id, &text));
            }
            ItemBody::Notice { level: NoticeLevel::Info, .. } => {}
            ItemBody::Notice { text, hint, .. } => {
                let text = format!("{text} {}", hint.as_deref().unwrap_or_default());
                self.once(item, |words| words.about(&format!("**Note:** {}", escaped(&one_line(&text)))));
            }
            ItemBody::UserMessage { text, steered: true, .. } => {
                self.once(item, |words| words.about(&format!("**You:** {}", escaped(&one_line(text)))));
            }
            ItemBody::ToolCall(_) | ItemBody::UserMessage { .. } | ItemBody::Thinking { .. } => {}
        }
    }

    /// A line about what waits for the user.
    pub(super) fn waits(&mut self, why: &str, what: &str) {
        self.about(&format!("{why}: {}", code(&one_line(what))));
    }

    /// A line about how it ended.
    pub(super) fn end(&mut self, how: &str) {
        self.about(&format!("**{how}**"));
    }

    /// A line about what happens.
    fn about(&mut self, what: &str) {
        self.end_text();
        if self.last != LastPiece::Line && self.last != LastPiece::Nothing {
            self.out.push('\n');
        }
        self.out.push_str("- ");
        self.out.push_str(what);
        self.out.push('\n');
        self.last = LastPiece::Line;
    }

    /// Ends the answer: the held back text comes, and nothing stays open.
    pub(super) fn finish(&mut self) {
        self.end_text();
    }

    /// The text made since the last request.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Puts back what could not be shown.
    pub(super) fn put_back(&mut self, text: &str) {
        self.out.insert_str(0, text);
    }

    /// Whether there is something to hand out.
    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    fn once(&mut self, item: &Item, write: impl FnOnce(&mut Self)) {
        if self.taken.insert(item.id.clone(), 0).is_none() {
            write(self);
        }
    }

    fn call(&mut self, call: &ToolCallItem) {
        let mark = match call.state {
            CallState::Completed => "",
            CallState::Denied => "refused: ",
            CallState::Failed | CallState::Sealed => "failed: ",
            CallState::Pending | CallState::ApprovalRequired | CallState::Executing => return,
        };
        // The line has the title already.
        let repeated = format!("The user refused: {}.", call.title);
        let result = call.display.trim().lines().next().filter(|line| *line != repeated).unwrap_or_default();
        let dash = if result.is_empty() { "" } else { ": " };
        let title = code(&one_line(&call.title));
        self.about(&format!("{mark}{title}{dash}{}", escaped(&one_line(result))));
    }

    fn write(&mut self, item: &ItemId, text: &str) {
        if !matches!(&self.last, LastPiece::Text(last) if last == item) {
            self.end_text();
            if self.last != LastPiece::Nothing {
                self.out.push('\n');
            }
            self.last = LastPiece::Text(item.clone());
        }
        for piece in text.split_inclusive('\n') {
            self.piece(&piece.replace('\r', ""));
        }
    }

    /// Takes a part of one line, its ending included where it has come.
    fn piece(&mut self, piece: &str) {
        if self.line.is_empty() {
            self.held.push_str(piece);
            let whole = self.held.ends_with('\n');
            if !whole && may_be_reserved(&self.held) {
                return;
            }
            let held = std::mem::take(&mut self.held);
            if is_reserved(held.trim_end_matches('\n')) {
                self.out.push('\\');
            }
            self.line = held;
            self.out.push_str(&readable(&self.line));
        } else {
            self.line.push_str(piece);
            self.out.push_str(&readable(piece));
        }
        if self.line.ends_with('\n') {
            let line = std::mem::take(&mut self.line);
            self.look_for_fence(&line);
        }
    }

    fn look_for_fence(&mut self, line: &str) {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let line = line.trim();
        let Some(mark) = line.chars().next().filter(|mark| matches!(mark, '`' | '~') && indent < 4) else {
            return;
        };
        let length = line.chars().take_while(|char| *char == mark).count();
        let info = &line[length..];
        match self.fence {
            Some((open, least)) if open == mark && length >= least && info.is_empty() => self.fence = None,
            None if length >= 3 && !(mark == '`' && info.contains('`')) => self.fence = Some((mark, length)),
            Some(_) | None => {}
        }
    }

    /// Ends the text of an item: the line, and a code block that it left open.
    fn end_text(&mut self) {
        if !self.held.is_empty() || !self.line.is_empty() {
            self.piece("\n");
        }
        if let Some((mark, length)) = self.fence.take() {
            self.out.extend(std::iter::repeat_n(mark, length));
            self.out.push('\n');
        }
    }
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    both_ends(&printable(&line), LINE_LIMIT).replace('\n', " ")
}

/// A text as code, whatever it holds.
fn code(text: &str) -> String {
    let mut run = 0;
    let longest = text.chars().fold(0, |longest: usize, char| {
        run = if char == '`' { run + 1 } else { 0 };
        longest.max(run)
    });
    let fence = "`".repeat(longest + 1);
    let space = if longest > 0 { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// Escapes text for Markdown. Code spans stay.
fn escaped(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of parts is an even number of backticks: every other part is a span.
    if parts.len().is_multiple_of(2) || parts.iter().skip(1).step_by(2).any(|span| span.is_empty()) {
        return without_spans(text);
    }
    let spans = parts.iter().enumerate().map(|(at, part)| match at % 2 {
        0 => without_spans(part),
        _ => format!("`{part}`"),
    });
    spans.collect()
}

fn without_spans(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|') {
            safe.push('\\');
        }
        safe.push(char);
    }
    safe
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kode_engine::base::ids::{CallId, TurnId};
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::layout::ChatLayout;
    use std::sync::Arc;

    use super::*;

    fn item(body: ItemBody) -> Arc<Item> {
        let turn = TurnId::generate();
        Item { id: ItemId::generate(), turn, agent: None, timestamp: Timestamp::UNIX_EPOCH, body }.into()
    }

    fn message(text: &str) -> Arc<Item> {
        let (complete, interrupted) = (true, false);
        item(ItemBody::AgentMessage {
            text: text.to_owned(),
            complete,
            interrupted,
            model: None,
            duration_ms: None,
        })
    }

    fn ended(title: &str, state: CallState, display: &str) -> Arc<Item> {
        let at = Timestamp::UNIX_EPOCH;
        let mut call = ToolCallItem::pending(CallId::generate(), "Read".into(), None, Value::Null, at);
        (call.title, call.state, call.display) = (title.to_owned(), state, display.to_owned());
        item(ItemBody::ToolCall(Box::new(call)))
    }

    fn all(items: &[Arc<Item>]) -> String {
        let mut words = AnswerText::default();
        items.iter().for_each(|item| words.item(item));
        words.finish();
        words.take()
    }

    #[test]
    fn calls_are_lines_between_texts() {
        let written = all(&[
            message("I look."),
            ended("Read a.txt", CallState::Completed, "2 lines\nmore"),
            ended("Bash `ls`", CallState::Denied, "no *thanks*"),
            message("Done."),
        ]);
        let expected =
            "I look.\n\n- `Read a.txt`: 2 lines\n- refused: `` Bash `ls` ``: no \\*thanks\\*\n\nDone.\n";
        assert_eq!(written, expected);
    }

    #[test]
    fn code_spans_are_not_escaped_and_a_refusal_does_not_repeat_its_title() {
        assert_eq!(escaped("run `a_b` and *c*"), r"run `a_b` and \*c\*");
        assert_eq!(escaped("an odd ` and *c*"), r"an odd \` and \*c\*");
        assert_eq!(escaped("``x``"), r"\`\`x\`\`");
        let refused = ended("Run `ls`", CallState::Denied, "The user refused: Run `ls`.");
        assert_eq!(all(&[refused]), "- refused: `` Run `ls` ``\n");
    }

    #[test]
    fn a_code_block_that_was_left_open_is_closed() {
        assert_eq!(all(&[message("```rust\nfn a() {")]), "```rust\nfn a() {\n```\n");
        assert_eq!(all(&[message("~~~~\n```\nx\n~~~~")]), "~~~~\n```\nx\n~~~~\n");
    }

    #[test]
    fn an_item_is_written_once_however_often_it_is_reported() {
        let (said, call) = (message("one"), ended("Read", CallState::Completed, ""));
        let again = [said.clone(), said.clone(), call.clone(), call, said];
        assert_eq!(all(&again), "one\n\n- `Read`\n");
    }

    proptest! {
        #[test]
        fn however_a_text_is_cut_it_is_written_the_same_and_means_nothing(
            lines in proptest::collection::vec(
                prop_oneof![
                    Just("## You"), Just("## Kode  "), Just("<!-- kode session ses_1 -->"), Just("```"),
                    Just("<!-- kode answering turn_1 -->"), Just("text"), Just("## Your"), Just(""),
                ],
                1..8,
            ),
            cuts in proptest::collection::vec(1_usize..5, 0..60),
        ) {
            let said = message(&lines.join("\n"));
            let whole = all(std::slice::from_ref(&said));
            let mut words = AnswerText::default();
            let mut begun = said.clone();
            let ItemBody::AgentMessage { text, .. } = &said.body else { unreachable!() };
            if let ItemBody::AgentMessage { text, .. } = &mut Arc::make_mut(&mut begun).body {
                text.clear();
            }
            words.item(&begun);
            let (mut rest, mut cuts, mut written) = (text.as_str(), cuts.into_iter(), String::new());
            while !rest.is_empty() {
                let (piece, left) = rest.split_at(cuts.next().unwrap_or(1).min(rest.len()));
                words.chunk(&said.id, piece);
                written.push_str(&words.take());
                rest = left;
            }
            words.item(&said);
            words.finish();
            written.push_str(&words.take());
            prop_assert_eq!(&written, &whole);
            let layout = ChatLayout::of(&written);
            prop_assert!(layout.session.is_none() && layout.answering.is_none() && layout.begin == 0);
        }
    }
}
