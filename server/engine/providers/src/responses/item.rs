//! One item of an answer: a message, reasoning or a call.
//!
//! Rule: the shown text is never longer than the final item; what the server says of a whole item wins
//! over the pieces that came before.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::wire::{WireItem, WirePart};
use crate::arguments;
use kode_model::{Block, Delta, DeltaSink};

/// The argument that the text of a call becomes when the call is free text.
pub(super) const FREEFORM_ARGUMENT: &str = "input";

/// The separator of two parts of one item.
const BETWEEN_PARTS: &str = "\n\n";

/// One item of an answer.
#[derive(Debug)]
pub(super) struct AnswerItem {
    /// The first of its blocks.
    block: usize,
    content: ItemContent,
    /// Whether it ended, as a whole.
    pub(super) done: bool,
}

#[derive(Debug)]
enum ItemContent {
    Message {
        text: TextParts,
        refused: bool,
    },
    Reasoning {
        summary: TextParts,
        text: TextParts,
        /// The whole item as the server wrote it, where that can be sent back.
        sealed: Option<String>,
    },
    Call {
        /// Id and name, once they are known.
        named: Option<(String, String)>,
        arguments: String,
        /// Whether the arguments are free text, and not JSON.
        is_freeform: bool,
    },
    /// A kind of item this build does not know.
    Unknown,
}

/// Which part of an item a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemPart {
    /// The text of the model.
    Text,
    /// Why it says nothing.
    Refusal,
    /// A summary of its reasoning.
    Summary,
    /// Its reasoning itself.
    Reasoning,
    /// The arguments of a call.
    Arguments,
    /// The text of a call that is free text.
    FreeformText,
}

impl ItemPart {
    /// The part an event is about, and whether it brings the whole of it.
    pub(super) fn of_event(kind: &str) -> Option<(Self, bool)> {
        Some(match kind {
            "response.output_text.delta" => (Self::Text, false),
            "response.output_text.done" => (Self::Text, true),
            "response.refusal.delta" => (Self::Refusal, false),
            "response.refusal.done" => (Self::Refusal, true),
            "response.reasoning_summary_text.delta" => (Self::Summary, false),
            "response.reasoning_summary_text.done" => (Self::Summary, true),
            "response.reasoning_text.delta" => (Self::Reasoning, false),
            "response.reasoning_text.done" => (Self::Reasoning, true),
            "response.function_call_arguments.delta" => (Self::Arguments, false),
            "response.function_call_arguments.done" => (Self::Arguments, true),
            "response.custom_tool_call_input.delta" => (Self::FreeformText, false),
            "response.custom_tool_call_input.done" => (Self::FreeformText, true),
            _ => return None,
        })
    }

    /// The type of the items that have it.
    pub(super) fn item_kind(self) -> &'static str {
        match self {
            Self::Text | Self::Refusal => "message",
            Self::Summary | Self::Reasoning => "reasoning",
            Self::Arguments => "function_call",
            Self::FreeformText => "custom_tool_call",
        }
    }
}

impl AnswerItem {
    /// An empty item of that type.
    pub(super) fn new(kind: &str, block: usize) -> Self {
        let content = match kind {
            "message" => ItemContent::Message { text: TextParts::default(), refused: false },
            "reasoning" => ItemContent::Reasoning {
                summary: TextParts::default(),
                text: TextParts::default(),
                sealed: None,
            },
            "function_call" | "custom_tool_call" => ItemContent::Call {
                named: None,
                arguments: String::new(),
                is_freeform: kind == "custom_tool_call",
            },
            _ => ItemContent::Unknown,
        };
        Self { block, content, done: false }
    }

    /// Whether items of that type are read.
    pub(super) fn knows(kind: &str) -> bool {
        matches!(kind, "message" | "reasoning" | "function_call" | "custom_tool_call")
    }

    /// Whether it is of that type.
    pub(super) fn is(&self, kind: &str) -> bool {
        match &self.content {
            ItemContent::Message { .. } => kind == "message",
            ItemContent::Reasoning { .. } => kind == "reasoning",
            ItemContent::Call { is_freeform: true, .. } => kind == "custom_tool_call",
            ItemContent::Call { is_freeform: false, .. } => kind == "function_call",
            ItemContent::Unknown => !Self::knows(kind),
        }
    }

    /// How many blocks it may become.
    pub(super) fn blocks(&self) -> usize {
        match &self.content {
            ItemContent::Message { .. } | ItemContent::Call { .. } => 1,
            ItemContent::Reasoning { .. } => 2,
            ItemContent::Unknown => 0,
        }
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self.content, ItemContent::Call { .. })
    }

    /// Whether it is a call that can be run.
    pub(super) fn is_whole_call(&self) -> bool {
        self.done && matches!(self.content, ItemContent::Call { named: Some(_), .. })
    }

    /// Whether it says that the model declines.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.content, ItemContent::Message { refused: true, .. })
    }

    /// Whether it is a call that has not been shown.
    pub(super) fn waits_for_name(&self) -> bool {
        matches!(self.content, ItemContent::Call { named: None, .. })
    }

    /// The call has this id and name.
    pub(super) fn name(&mut self, id: String, name: String, on_delta: &mut DeltaSink<'_>) {
        if let ItemContent::Call { named, .. } = &mut self.content {
            on_delta(Delta::ToolUse { index: self.block, id: id.clone(), name: name.clone() });
            *named = Some((id, name));
        }
    }

    /// Takes a piece of a part in, or the whole part.
    pub(super) fn extend(
        &mut self,
        part: ItemPart,
        index: usize,
        piece: &str,
        whole: bool,
        on_delta: &mut DeltaSink<'_>,
    ) {
        if self.done || piece.is_empty() {
            return;
        }
        let block = self.block;
        match (&mut self.content, part) {
            (ItemContent::Message { text, refused }, ItemPart::Text | ItemPart::Refusal) => {
                *refused |= part == ItemPart::Refusal;
                text.take(index, piece, whole, |text| on_delta(Delta::Text { index: block, text }));
            }
            (ItemContent::Reasoning { summary, text, .. }, ItemPart::Summary | ItemPart::Reasoning) => {
                let (parts, other) =
                    if part == ItemPart::Summary { (summary, text) } else { (text, summary) };
                // Of summary and reasoning, what comes first is shown.
                let shows = other.is_empty();
                parts.take(index, piece, whole, |text| {
                    if shows {
                        on_delta(Delta::Thinking { index: block, text });
                    }
                });
            }
            (ItemContent::Call { arguments, .. }, ItemPart::Arguments | ItemPart::FreeformText) => {
                if whole {
                    arguments.clear();
                }
                arguments.push_str(piece);
            }
            (
                ItemContent::Message { .. }
                | ItemContent::Reasoning { .. }
                | ItemContent::Call { .. }
                | ItemContent::Unknown,
                _,
            ) => {}
        }
    }

    /// Takes in what the server says of the whole item, `raw` as it wrote it.
    pub(super) fn finish(&mut self, whole: WireItem, raw: &RawValue, on_delta: &mut DeltaSink<'_>) {
        for (index, WirePart { kind, text, refusal }) in whole.content.iter().enumerate() {
            match kind.as_str() {
                "refusal" => self.extend(ItemPart::Refusal, index, refusal, true, on_delta),
                "reasoning_text" => self.extend(ItemPart::Reasoning, index, text, true, on_delta),
                "output_text" | "text" => self.extend(ItemPart::Text, index, text, true, on_delta),
                _ => {}
            }
        }
        for (index, part) in whole.summary.iter().enumerate() {
            self.extend(ItemPart::Summary, index, &part.text, true, on_delta);
        }
        let arguments = match whole.arguments {
            Value::Null => String::new(),
            Value::String(json) => json,
            value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                value.to_string()
            }
        };
        let arguments = if whole.input.is_empty() { arguments } else { whole.input };
        self.extend(ItemPart::Arguments, 0, &arguments, true, on_delta);
        if let ItemContent::Reasoning { sealed, .. } = &mut self.content {
            // Without either it only names something that the server may not have any more.
            let is_alone = !whole.encrypted_content.is_empty() || !whole.content.is_empty();
            *sealed = is_alone.then(|| raw.get().to_owned());
        }
        // The server cut an incomplete item off.
        self.done = whole.status != "incomplete";
    }

    /// Its blocks in a message: none, one or two.
    pub(super) fn into_blocks(self, keeps_calls: bool) -> Vec<Block> {
        match self.content {
            ItemContent::Message { text, .. } => {
                let text = text.joined();
                if text.is_empty() { Vec::new() } else { vec![Block::Text { text }] }
            }
            ItemContent::Reasoning { summary, text, sealed } => {
                let thinking = if summary.is_empty() { text } else { summary }.joined();
                let shown = Block::Thinking { thinking, signature: String::new() };
                let shown = Some(shown).filter(
                    |block| !matches!(block, Block::Thinking { thinking, .. } if thinking.is_empty()),
                );
                let sealed = sealed.map(|data| Block::RedactedThinking { data });
                shown.into_iter().chain(sealed).collect()
            }
            ItemContent::Call { named: Some((id, name)), arguments: text, is_freeform }
                if keeps_calls && self.done =>
            {
                // Calls are only kept of answers that said all they wanted.
                let (input, input_error) = match is_freeform {
                    true => (json!({ FREEFORM_ARGUMENT: text }), None),
                    false => arguments::input(text, true),
                };
                vec![Block::ToolUse { id, name, input, input_error }]
            }
            ItemContent::Call { .. } | ItemContent::Unknown => Vec::new(),
        }
    }
}

/// The parts of a text, by number.
#[derive(Debug, Default)]
struct TextParts {
    parts: BTreeMap<usize, String>,
    /// The part that was shown last.
    shown: Option<usize>,
}

impl TextParts {
    fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Takes a piece of a part in, or the whole part; shows the new part.
    fn take(&mut self, index: usize, piece: &str, whole: bool, mut show: impl FnMut(String)) {
        let part = self.parts.entry(index).or_default();
        let new = if whole {
            let new = piece.strip_prefix(part.as_str()).unwrap_or_default().to_owned();
            piece.clone_into(part);
            new
        } else {
            part.push_str(piece);
            piece.to_owned()
        };
        if new.is_empty() {
            return;
        }
        let continues = self.shown.is_none_or(|shown| shown == index);
        self.shown = Some(index);
        show(if continues { new } else { format!("{BETWEEN_PARTS}{new}") });
    }

    fn joined(self) -> String {
        self.parts.into_values().collect::<Vec<_>>().join(BETWEEN_PARTS)
    }
}
