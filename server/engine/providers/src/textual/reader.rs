//! The text of an answer, split into text and calls.
//!
//! Rule: the blocks do not depend on where the text was cut. A mark counts only where a line begins, and not in a code
//! fence; what may still become one is held back, and no more than that. What follows a call as its made-up result is
//! dropped.

use serde_json::{Map, Value, json};

use crate::arguments;
use crate::call_ids::CallIds;
use kode_model::{Block, Delta, DeltaSink};

/// The beginning of a call.
pub(super) const CALL_OPEN: &str = "<tool_call>";

/// The end of a call.
pub(super) const CALL_CLOSE: &str = "</tool_call>";

/// The beginning of a result. Models that were not made for tools continue with what they expect it to be.
const RESULT_OPEN: &str = "<tool_result";

/// The name of a call that says none.
const NAMELESS: &str = "tool_call";

/// The names of models for the arguments of a call.
const ARGUMENT_KEYS: [&str; 4] = ["arguments", "parameters", "input", "args"];

/// The most characters of a call that name it although it cannot be read.
const MAX_NAME_CHARS: usize = 64;

/// An answer as it grows.
pub(super) struct TextualReader<'a, 'b> {
    blocks: Vec<Block>,
    ids: CallIds,
    on_delta: &'a mut DeltaSink<'b>,
    /// The block of the model's answer that grows: its number there, and whether it is text.
    growing: Option<(usize, bool)>,
    place: ReaderPlace,
    /// Text that has come and is not placed yet.
    held: String,
    /// How much of the held text is known to hold no end of the call that has started.
    searched: usize,
    /// White space after the text, which counts only when more text follows.
    blank: String,
    /// The emitted part of the line.
    line: String,
    /// The code fence that is open.
    fence: Option<OpenFence>,
}

/// The mark of a code fence, and its length.
#[derive(Clone, Copy)]
struct OpenFence {
    mark: char,
    length: usize,
}

/// The place of the next character in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReaderPlace {
    LineStart,
    WithinLine,
    Call,
    /// After a made-up result.
    Dropped,
}

/// The beginning of a line.
enum LineMark {
    Call,
    Result,
    Unclear,
    None,
}

impl<'a, 'b> TextualReader<'a, 'b> {
    /// A reader whose calls get ids that are not among `ids`.
    pub(super) fn new(ids: CallIds, on_delta: &'a mut DeltaSink<'b>) -> Self {
        Self {
            blocks: Vec::new(),
            ids,
            on_delta,
            growing: None,
            place: ReaderPlace::LineStart,
            held: String::new(),
            searched: 0,
            blank: String::new(),
            line: String::new(),
            fence: None,
        }
    }

    /// Takes the next piece of the model's answer in.
    pub(super) fn show(&mut self, delta: Delta) {
        match delta {
            Delta::Text { index, text } => {
                if self.growing != Some((index, true)) {
                    self.end(false);
                    self.growing = Some((index, true));
                }
                self.held.push_str(&text);
                self.advance();
            }
            Delta::Thinking { index, text } => {
                if self.growing != Some((index, false)) {
                    self.end(false);
                    self.growing = Some((index, false));
                    self.blocks.push(Block::Thinking { thinking: String::new(), signature: String::new() });
                }
                let index = self.blocks.len() - 1;
                (self.on_delta)(Delta::Thinking { index, text });
            }
            // No tools were declared, but a server that reads calls out of texts by itself may say this.
            Delta::ToolUse { name, id, .. } => {
                self.end(false);
                self.push_call(Block::ToolUse { id, name, input: json!({}), input_error: None });
            }
        }
    }

    /// Takes a block of the model's answer as it is.
    pub(super) fn keep(&mut self, block: Block) {
        self.end(false);
        match block {
            call @ Block::ToolUse { .. } => self.push_call(call),
            other => self.blocks.push(other),
        }
    }

    /// The text has ended. `may_close` says whether a call without an end may be given one.
    pub(super) fn end(&mut self, may_close: bool) {
        let held = std::mem::take(&mut self.held);
        match self.place {
            ReaderPlace::LineStart | ReaderPlace::WithinLine => self.say(&held),
            ReaderPlace::Call if may_close => self.call(&held, true),
            ReaderPlace::Call | ReaderPlace::Dropped => {}
        }
        self.place = ReaderPlace::LineStart;
        self.growing = None;
        self.blank.clear();
        self.line.clear();
        self.fence = None;
    }

    /// The text and calls of the answer.
    pub(super) fn into_blocks(self) -> Vec<Block> {
        self.blocks
    }

    /// Places as much of what has come as can be placed.
    fn advance(&mut self) {
        loop {
            match self.place {
                ReaderPlace::Dropped => {
                    self.held.clear();
                    return;
                }
                ReaderPlace::WithinLine => {
                    let line = self.take_line();
                    self.say(&line);
                }
                ReaderPlace::LineStart => match self.mark() {
                    LineMark::Unclear => return,
                    LineMark::Call => {
                        let begins = self.held.find(CALL_OPEN).unwrap_or_default() + CALL_OPEN.len();
                        self.held.drain(..begins);
                        self.searched = 0;
                        self.place = ReaderPlace::Call;
                    }
                    LineMark::Result => self.place = ReaderPlace::Dropped,
                    LineMark::None => self.place = ReaderPlace::WithinLine,
                },
                ReaderPlace::Call => match self.call_end() {
                    Some(end) => {
                        let body: String = self.held.drain(..end).collect();
                        self.held.drain(..CALL_CLOSE.len());
                        self.call(&body, true);
                        // More calls may follow in the same line.
                        self.place = ReaderPlace::LineStart;
                    }
                    None => return,
                },
            }
            if self.held.is_empty() {
                return;
            }
        }
    }

    /// The beginning of the line with the held text.
    fn mark(&self) -> LineMark {
        if self.fence.is_some() {
            return LineMark::None;
        }
        let line = self.held.trim_start_matches([' ', '\t']);
        let after_call = self.blocks.iter().any(|block| matches!(block, Block::ToolUse { .. }));
        if line.starts_with(CALL_OPEN) {
            LineMark::Call
        } else if after_call && line.starts_with(RESULT_OPEN) {
            LineMark::Result
        } else if CALL_OPEN.starts_with(line) || (after_call && RESULT_OPEN.starts_with(line)) {
            LineMark::Unclear
        } else {
            LineMark::None
        }
    }

    /// The rest of a line with its end, or what there is of it.
    fn take_line(&mut self) -> String {
        let Some(end) = self.held.find('\n') else {
            self.line.push_str(&self.held);
            return std::mem::take(&mut self.held);
        };
        let rest: String = self.held.drain(..=end).collect();
        self.line.push_str(&rest);
        self.fence = OpenFence::after(self.fence, &self.line);
        self.line.clear();
        self.place = ReaderPlace::LineStart;
        rest
    }

    /// Where the end of the call is that has started: JSON has no line breaks in its strings, so an end mark that begins a
    /// line is one, and any other is one if the call is whole there.
    fn call_end(&mut self) -> Option<usize> {
        let from = self.searched;
        // A mark may have started at the end of what has come.
        let unclear = self.held.len().saturating_sub(CALL_CLOSE.len() - 1).max(from);
        let boundary = (from..=unclear).rev().find(|at| self.held.is_char_boundary(*at));
        self.searched = boundary.unwrap_or(from);
        let marks = self.held[from..].match_indices(CALL_CLOSE).map(|(at, _)| from + at);
        let mut ends = marks.filter(|at| {
            let before = &self.held[..*at];
            let begins_line = before.trim_end_matches([' ', '\t']).ends_with('\n');
            begins_line || serde_json::from_str::<Map<String, Value>>(before).is_ok()
        });
        ends.next()
    }

    fn say(&mut self, text: &str) {
        self.blank.push_str(text);
        let said = self.blank.trim_end().len();
        if said == 0 {
            return;
        }
        let rest = self.blank.split_off(said);
        let said = std::mem::replace(&mut self.blank, rest);
        if let Some(Block::Text { text }) = self.blocks.last_mut() {
            text.push_str(&said);
            let index = self.blocks.len() - 1;
            return (self.on_delta)(Delta::Text { index, text: said });
        }
        let index = self.blocks.len();
        let text = said.trim_start().to_owned();
        self.blocks.push(Block::Text { text: text.clone() });
        (self.on_delta)(Delta::Text { index, text });
    }

    fn call(&mut self, body: &str, may_close: bool) {
        self.blank.clear();
        let (name, input, input_error) = call_of(body, may_close);
        self.push_call(Block::ToolUse { id: String::new(), name, input, input_error });
    }

    fn push_call(&mut self, call: Block) {
        let index = self.blocks.len();
        if let Block::ToolUse { id, name, input, input_error } = call {
            let id = self.ids.unique(&id);
            (self.on_delta)(Delta::ToolUse { index, id: id.clone(), name: name.clone() });
            self.blocks.push(Block::ToolUse { id, name, input, input_error });
        }
    }
}

impl OpenFence {
    /// The fence that is open after a line, where `open` was before it.
    fn after(open: Option<Self>, line: &str) -> Option<Self> {
        const SHORTEST: usize = 3;
        let line = line.trim();
        let begins = line.chars().next().filter(|mark| matches!(mark, '`' | '~'));
        let Some(mark) = begins else { return open };
        let rest = line.trim_start_matches(mark);
        let length = line.len() - rest.len();
        match open {
            Some(fence) => {
                let closes = mark == fence.mark && length >= fence.length && rest.is_empty();
                (!closes).then_some(fence)
            }
            // With more of its marks behind it, it is code within a line.
            None => (length >= SHORTEST && !rest.contains('`')).then_some(Self { mark, length }),
        }
    }
}

/// The name and the input of a call, and why it cannot be read if it cannot.
fn call_of(body: &str, may_close: bool) -> (String, Value, Option<String>) {
    let unreadable = |name: String, reason: &str| {
        let input = json!({ "invalid_arguments": body.trim() });
        let error = format!("The call could not be read: {reason}");
        (name, input, Some(error))
    };
    let mut call = match arguments::read(body, may_close) {
        Ok(call) => call,
        Err(reason) => return unreadable(guessed_name(body).unwrap_or(NAMELESS).to_owned(), &reason),
    };
    let Some(Value::String(name)) = call.remove("name") else {
        return unreadable(NAMELESS.to_owned(), "it has no `name`.");
    };
    match ARGUMENT_KEYS.iter().find_map(|key| call.remove(*key)) {
        None | Some(Value::Null) => (name, json!({}), None),
        Some(input @ Value::Object(_)) => (name, input, None),
        Some(Value::String(text)) => {
            let (input, error) = arguments::input(text, may_close);
            (name, input, error)
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_)) => {
            unreadable(name, "its `arguments` are no object.")
        }
    }
}

/// The name in a call that is no JSON, so that the right tool is named in the answer to it.
fn guessed_name(body: &str) -> Option<&str> {
    let rest = body.split_once("\"name\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    let name = rest.strip_prefix('"')?.split_once('"')?.0;
    (!name.is_empty() && name.chars().count() <= MAX_NAME_CHARS).then_some(name)
}
