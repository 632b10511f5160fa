//! Data of a Chat Completions provider that has to come back: signatures of calls, and sealed reasoning.
//!
//! Rule: the data is kept as it came and in its order, and goes back to the provider that sent it and to no other. A call
//! without a signature, where the server wants one, gets the placeholder that Google documents for calls of other models.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use kode_model::Block;

/// The value that Google documents for calls that no Gemini model made, or whose signature is lost.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// The place of the signature within `extra_content`.
const SIGNATURE: &str = "/google/thought_signature";

/// The types of reasoning details that arrive in pieces, and the field that grows.
const GROWING: [(&str, &str); 2] = [("reasoning.text", "text"), ("reasoning.summary", "summary")];

/// Data of a provider, as a block keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChatSeal {
    /// Fields of the call that follows.
    Call(ProviderFields),
    /// Fields of the message.
    Message(ProviderFields),
    /// `reasoning_details` of the message: the whole list, in order.
    ReasoningDetails(Vec<Value>),
}

/// The fields that providers add to a call or a message and want back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ProviderFields {
    /// Of Google's servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) extra_content: Option<Value>,
    /// Of LiteLLM's proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) provider_specific_fields: Option<Value>,
}

impl ChatSeal {
    /// The data in a block; `None` for blocks of other kinds and of other wire formats.
    pub(super) fn of(block: &Block) -> Option<Self> {
        let Block::RedactedThinking { data } = block else { return None };
        serde_json::from_str(data).ok()
    }

    /// The block that keeps the data; `None` for empty data.
    pub(super) fn into_block(self) -> Option<Block> {
        let is_empty = match &self {
            Self::Call(extra) | Self::Message(extra) => *extra == ProviderFields::default(),
            Self::ReasoningDetails(details) => details.is_empty(),
        };
        if is_empty {
            return None;
        }
        serde_json::to_string(&self).ok().map(|data| Block::RedactedThinking { data })
    }
}

impl ProviderFields {
    /// Adds what another piece of the same call or message says.
    pub(super) fn merge(&mut self, piece: Self) {
        for (known, new) in [
            (&mut self.extra_content, piece.extra_content),
            (&mut self.provider_specific_fields, piece.provider_specific_fields),
        ] {
            match (known.as_mut(), new.filter(|new| !new.is_null())) {
                (_, None) => {}
                (None, new @ Some(_)) => *known = new,
                (Some(known), Some(new)) => merge(known, new),
            }
        }
    }

    /// The fields with a placeholder for the signature, unless they hold one.
    pub(super) fn signed(mut self) -> Self {
        let in_extra = self.extra_content.as_ref().and_then(|extra| extra.pointer(SIGNATURE));
        let in_fields = self.provider_specific_fields.as_ref();
        let in_fields = in_fields.and_then(|fields| fields.get("thought_signature"));
        if in_extra.or(in_fields).is_none() {
            let placeholder = json!({"google": {"thought_signature": NO_SIGNATURE}});
            self.merge(Self { extra_content: Some(placeholder), ..Self::default() });
        }
        self
    }
}

/// Overlays `new` on `known`: objects field by field, everything else whole.
fn merge(known: &mut Value, new: Value) {
    match (known, new) {
        (Value::Object(known), Value::Object(new)) => {
            for (name, value) in new {
                match known.get_mut(&name) {
                    Some(known) => merge(known, value),
                    None => {
                        known.insert(name, value);
                    }
                }
            }
        }
        (known, new) => *known = new,
    }
}

/// Adds an element of `reasoning_details` to the list. Texts and summaries stream in pieces of one element: a piece
/// belongs to the newest element if both have the same type and index.
pub(super) fn add_detail(details: &mut Vec<Value>, piece: Value) {
    let kind = piece["type"].as_str();
    let growing = GROWING.iter().find(|(grows, _)| kind == Some(grows));
    let same = |last: &Value| last["type"] == piece["type"] && last["index"] == piece["index"];
    // A signature ends its element.
    let is_open = |last: &Value| last["signature"].is_null();
    match (growing, details.last_mut().filter(|last| same(last) && is_open(last))) {
        (Some((_, field)), Some(last)) => {
            let (Value::Object(last), Value::Object(piece)) = (last, piece) else { return };
            extend(last, piece, field);
        }
        (None, _) | (_, None) => details.push(piece),
    }
}

fn extend(last: &mut Map<String, Value>, piece: Map<String, Value>, field: &str) {
    for (name, value) in piece.into_iter().filter(|(_, value)| !value.is_null()) {
        match (last.get_mut(&name), value) {
            (Some(Value::String(known)), Value::String(more)) if name == field => known.push_str(&more),
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extra(value: Value) -> ProviderFields {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn data_survives_its_block() {
        let call = ChatSeal::Call(extra(json!({"extra_content": {"google": {"thought_signature": "s"}}})));
        let details = ChatSeal::ReasoningDetails(vec![json!({"type": "reasoning.encrypted", "data": "d"})]);
        for sealed in [call, details] {
            assert_eq!(ChatSeal::of(&sealed.clone().into_block().unwrap()), Some(sealed));
        }
        assert_eq!(ChatSeal::Call(ProviderFields::default()).into_block(), None);
        for foreign in ["sealed", r#"{"type":"reasoning","id":"rs_1"}"#, "", "[]"] {
            assert_eq!(ChatSeal::of(&Block::RedactedThinking { data: foreign.into() }), None, "{foreign}");
        }
    }

    #[test]
    fn pieces_of_one_call_add_up() {
        let mut known = ProviderFields::default();
        known.merge(extra(json!({"extra_content": null})));
        assert_eq!(known, ProviderFields::default());
        known.merge(extra(json!({"extra_content": {"google": {"a": 1}}})));
        known.merge(extra(json!({"extra_content": {"google": {"thought_signature": "s"}, "b": 2}})));
        assert_eq!(known.extra_content, Some(json!({"google": {"a": 1, "thought_signature": "s"}, "b": 2})));
    }

    #[test]
    fn only_an_unsigned_call_gets_the_placeholder() {
        let placeholder = json!({"google": {"thought_signature": NO_SIGNATURE}});
        assert_eq!(ProviderFields::default().signed().extra_content, Some(placeholder));
        let other = extra(json!({"extra_content": {"google": {"a": 1}}})).signed().extra_content;
        assert_eq!(other, Some(json!({"google": {"a": 1, "thought_signature": NO_SIGNATURE}})));
        for signed in [
            json!({"extra_content": {"google": {"thought_signature": "s"}}}),
            json!({"provider_specific_fields": {"thought_signature": "s"}}),
        ] {
            assert_eq!(extra(signed.clone()).signed(), extra(signed));
        }
    }

    #[test]
    fn details_in_pieces_become_the_whole_list_in_order() {
        let pieces = [
            json!({"type": "reasoning.text", "text": "I ", "signature": null, "format": "f", "index": 0}),
            json!({"type": "reasoning.text", "text": "think.", "format": "f", "index": 0}),
            json!({"type": "reasoning.text", "text": "", "signature": "sig", "index": 0}),
            json!({"type": "reasoning.encrypted", "data": "AB", "id": "r1", "index": 1}),
            json!({"type": "reasoning.encrypted", "data": "CD", "id": "r2", "index": 1}),
            json!({"type": "reasoning.summary", "summary": "a", "index": 2}),
            json!({"type": "reasoning.summary", "summary": "b", "index": 2}),
            json!({"type": "reasoning.summary", "summary": "c", "index": 3}),
            json!({"type": "reasoning.new_kind", "x": 1}),
            json!("odd"),
        ];
        let mut details = Vec::new();
        pieces.into_iter().for_each(|piece| add_detail(&mut details, piece));
        assert_eq!(
            Value::from(details),
            json!([
                {"type": "reasoning.text", "text": "I think.", "signature": "sig", "format": "f", "index": 0},
                {"type": "reasoning.encrypted", "data": "AB", "id": "r1", "index": 1},
                {"type": "reasoning.encrypted", "data": "CD", "id": "r2", "index": 1},
                {"type": "reasoning.summary", "summary": "ab", "index": 2},
                {"type": "reasoning.summary", "summary": "c", "index": 3},
                {"type": "reasoning.new_kind", "x": 1},
                "odd",
            ])
        );
    }
}
