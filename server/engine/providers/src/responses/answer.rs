//! An answer of the Responses format as it grows, event by event.
//!
//! Rule: what this build does not know is skipped; what had arrived can be had at any time; a tool call is in the
//! response only if its item is done and the answer is complete. Where servers number or name their items badly, what
//! an event is about is found by id, then by number, then it is the newest.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::item::{AnswerItem, ItemPart};
use super::wire::{ItemEvent, ResponseEvent, ResponsesUsage, TypedObject, WireEvent, WireItem, WireResponse};
use crate::call_ids::CallIds;
use crate::exchange::{AnswerFault, AnswerProgress, StreamedAnswer};
use crate::failure::ReportedError;
use kode_model::{DeltaSink, Message, ModelResponse, StopReason, Usage};
use kode_net::sse::SseEvent;

/// The most items of one answer. Real ones have some dozens.
const MAX_ITEMS: usize = 4096;

/// The end some servers send after the last event, as they do in another wire format.
const DONE_MARK: &str = "[DONE]";

/// The received part of an answer.
#[derive(Debug, Default)]
pub(crate) struct ResponsesAnswer {
    id: Option<String>,
    /// By their number in the output.
    items: BTreeMap<usize, AnswerItem>,
    /// The numbers of the items that have an id.
    numbers: HashMap<String, usize>,
    /// The block that the next item begins with.
    next_block: usize,
    /// The ids of all calls of the conversation.
    call_ids: CallIds,
    /// Whether a call has another id here than at the server.
    renamed: bool,
    end: Option<AnswerEnd>,
    usage: Usage,
    begun: bool,
    /// Told whether the conversation can continue from the server's copy of the answer.
    resumable: Arc<AtomicBool>,
}

#[derive(Debug)]
enum AnswerEnd {
    Completed,
    Cut(StopReason),
}

impl ResponsesAnswer {
    /// The answer to come to `history`. At its end `resumable` is set if the server's copy of it says the same.
    pub(crate) fn to(history: &[Message], resumable: Arc<AtomicBool>) -> Self {
        Self { call_ids: CallIds::of(history), resumable, ..Self::default() }
    }

    fn begin(&mut self, response: WireResponse) {
        self.begun = true;
        self.id = response.id.or(self.id.take());
        if let Some(usage) = &response.usage {
            self.usage = count(usage);
        }
    }

    /// Takes the end of the answer in, with what it says of the items.
    fn conclude(
        &mut self,
        mut response: WireResponse,
        assumed: &str,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<(), AnswerFault> {
        let output = std::mem::take(&mut response.output);
        let status = std::mem::take(&mut response.status);
        let reason = std::mem::take(&mut response.incomplete_details.reason);
        let error = response.error.take();
        self.begin(response);
        self.catch_up(output, on_delta)?;
        let status = if status.is_empty() { assumed } else { &status };
        match status {
            "completed" => self.end = Some(AnswerEnd::Completed),
            "incomplete" => self.end = Some(AnswerEnd::Cut(cut(reason))),
            "failed" | "cancelled" => {
                let reported = error.and_then(|error| ReportedError::of(&json!({ "error": error })));
                return Err(AnswerFault::Reported(reported.unwrap_or_else(|| ReportedError {
                    message: format!("the answer has {status}, without a reason"),
                    ..ReportedError::default()
                })));
            }
            _ => return Err(AnswerFault::NoStopReason),
        }
        Ok(())
    }

    /// Takes from the whole output what no event had told.
    fn catch_up(
        &mut self,
        output: Vec<Box<RawValue>>,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<(), AnswerFault> {
        for (number, raw) in output.into_iter().enumerate() {
            let item = read_item(&raw)?;
            let known = item.id.as_ref().and_then(|id| self.numbers.get(id).copied());
            match known.or_else(|| self.items.contains_key(&number).then_some(number)) {
                Some(known) => self.finish(known, item, &raw, on_delta),
                None => {
                    let number = self.open(Some(number), &item)?;
                    self.finish(number, item, &raw, on_delta);
                }
            }
        }
        Ok(())
    }

    /// Adds an item; gives its number.
    fn open(&mut self, number: Option<usize>, item: &WireItem) -> Result<usize, AnswerFault> {
        if self.items.len() == MAX_ITEMS {
            return Err(AnswerFault::Unreadable(format!("more than {MAX_ITEMS} items")));
        }
        let next = || self.items.last_key_value().map_or(0, |(last, _)| last + 1);
        let free = |number: &usize| *number < MAX_ITEMS && !self.items.contains_key(number);
        let number = number.filter(free).unwrap_or_else(next);
        let opened = AnswerItem::new(&item.kind, self.next_block);
        self.next_block += opened.blocks();
        self.items.insert(number, opened);
        if let Some(id) = &item.id {
            self.numbers.insert(id.clone(), number);
        }
        Ok(number)
    }

    /// The item has started.
    fn add(&mut self, event: ItemEvent, on_delta: &mut DeltaSink<'_>) -> Result<(), AnswerFault> {
        let item = read_item(&event.item)?;
        let known = item.id.as_ref().is_some_and(|id| self.numbers.contains_key(id));
        // A piece may have come before its beginning.
        let begun = event.output_index.filter(|number| {
            let early = |begun: &AnswerItem| !begun.done && begun.is(&item.kind);
            !self.is_named(*number) && self.items.get(number).is_some_and(early)
        });
        let number = match (known, begun) {
            (true, _) => return Ok(()),
            (false, Some(begun)) => begun,
            (false, None) => self.open(event.output_index, &item)?,
        };
        if let Some(id) = &item.id {
            self.numbers.insert(id.clone(), number);
        }
        self.announce(number, &item, on_delta);
        Ok(())
    }

    /// The item is done.
    fn end_item(&mut self, event: ItemEvent, on_delta: &mut DeltaSink<'_>) -> Result<(), AnswerFault> {
        let item = read_item(&event.item)?;
        let open =
            |number: &usize| self.items.get(number).is_some_and(|known| !known.done && known.is(&item.kind));
        let by_id = item.id.as_ref().and_then(|id| self.numbers.get(id).copied());
        let newest = || self.items.last_key_value().map(|(number, _)| *number);
        let number = match by_id {
            Some(number) => number,
            None => match event.output_index.or_else(newest).filter(open) {
                Some(number) => number,
                None => self.open(event.output_index, &item)?,
            },
        };
        self.finish(number, item, &event.item, on_delta);
        Ok(())
    }

    /// Completes an item from what the server says of it as a whole.
    fn finish(&mut self, number: usize, whole: WireItem, raw: &RawValue, on_delta: &mut DeltaSink<'_>) {
        if self.items.get(&number).is_none_or(|item| item.done || !item.is(&whole.kind)) {
            return;
        }
        self.announce(number, &whole, on_delta);
        if let Some(item) = self.items.get_mut(&number) {
            item.finish(whole, raw, on_delta);
        }
    }

    /// Shows that a call has started, once its name is known.
    fn announce(&mut self, number: usize, wire: &WireItem, on_delta: &mut DeltaSink<'_>) {
        let Some(item) = self.items.get_mut(&number).filter(|item| item.waits_for_name()) else { return };
        if wire.name.is_empty() {
            return;
        }
        let given = [&wire.call_id, wire.id.as_ref().unwrap_or(&wire.call_id)];
        let given = given.into_iter().find(|id| !id.is_empty()).map_or("", String::as_str);
        let unique = self.call_ids.unique(given);
        self.renamed |= unique != wire.call_id;
        item.name(unique, wire.name.clone(), on_delta);
    }

    /// Takes a piece of an item in, which it may be the first of.
    fn extend(
        &mut self,
        event: WireEvent,
        part: ItemPart,
        whole: bool,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<(), AnswerFault> {
        let by_id = event.item_id.as_ref().and_then(|id| self.numbers.get(id).copied());
        let by_number = || event.output_index.filter(|number| self.items.contains_key(number));
        let newest = || {
            let (number, _) = self.items.last_key_value().filter(|_| event.output_index.is_none())?;
            Some(*number)
        };
        let number = match by_id.or_else(by_number).or_else(newest) {
            Some(number) => number,
            None => {
                let kind = part.item_kind().to_owned();
                self.open(event.output_index, &WireItem { kind, id: event.item_id, ..WireItem::default() })?
            }
        };
        if let Some(item) = self.items.get_mut(&number) {
            let text = [event.delta, event.text, event.refusal, event.arguments, event.input];
            let text = text.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
            let index = if part == ItemPart::Summary { event.summary_index } else { event.content_index };
            item.extend(part, index, &text, whole, on_delta);
        }
        Ok(())
    }

    fn is_named(&self, number: usize) -> bool {
        self.numbers.values().any(|named| *named == number)
    }

    fn stop_reason(&self) -> StopReason {
        let has = |test: fn(&AnswerItem) -> bool| self.items.values().any(test);
        match &self.end {
            Some(AnswerEnd::Cut(reason)) => reason.clone(),
            Some(AnswerEnd::Completed) | None if has(AnswerItem::is_refusal) => StopReason::Refusal,
            Some(AnswerEnd::Completed) | None if has(AnswerItem::is_whole_call) => StopReason::ToolUse,
            Some(AnswerEnd::Completed) | None => StopReason::EndTurn,
        }
    }
}

impl StreamedAnswer for ResponsesAnswer {
    fn apply(
        &mut self,
        event: &SseEvent,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, AnswerFault> {
        if event.data.trim() == DONE_MARK {
            return Ok(AnswerProgress::SignOfLife);
        }
        let typed: TypedObject;
        let kind = if event.event.is_empty() {
            typed = read(event)?;
            typed.kind.as_str()
        } else {
            event.event.as_str()
        };
        match kind {
            "response.created" => self.begin(read::<ResponseEvent>(event)?.response),
            "response.output_item.added" => self.add(read(event)?, on_delta)?,
            "response.output_item.done" => self.end_item(read(event)?, on_delta)?,
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                let assumed = kind.trim_start_matches("response.");
                self.conclude(read::<ResponseEvent>(event)?.response, assumed, on_delta)?;
                return Ok(AnswerProgress::Done);
            }
            "error" => {
                let body: Value = read(event)?;
                return Err(AnswerFault::Reported(ReportedError::of(&body).unwrap_or_else(|| {
                    ReportedError {
                        message: "it reported an error without words".to_owned(),
                        ..ReportedError::default()
                    }
                })));
            }
            _ => {
                let Some((part, whole)) = ItemPart::of_event(kind) else {
                    return Ok(AnswerProgress::SignOfLife);
                };
                self.extend(read(event)?, part, whole, on_delta)?;
            }
        }
        Ok(AnswerProgress::Content)
    }

    fn apply_whole(&mut self, body: &[u8], on_delta: &mut DeltaSink<'_>) -> Result<(), AnswerFault> {
        let unreadable = |reason: String| AnswerFault::Unreadable(reason);
        let response: WireResponse =
            serde_json::from_slice(body).map_err(|error| unreadable(format!("its JSON body: {error}")))?;
        if response.status.is_empty() && response.error.is_some() {
            let reported = ReportedError::read(body);
            return Err(reported
                .map_or_else(|| unreadable("a JSON error without words".to_owned()), AnswerFault::Reported));
        }
        if response.object.as_deref().is_some_and(|object| object != "response") || response.status.is_empty()
        {
            return Err(unreadable("a JSON body that is no response".to_owned()));
        }
        self.conclude(response, "", on_delta)
    }

    fn into_response(self) -> ModelResponse {
        let stop_reason = self.stop_reason();
        let completed = matches!(self.end, Some(AnswerEnd::Completed));
        let keeps_calls = completed && stop_reason != StopReason::Refusal;
        let lost_call =
            self.items.values().any(|item| item.is_call() && !(keeps_calls && item.is_whole_call()));
        // The server wants the results of all calls it knows, by the ids it knows.
        self.resumable.store(completed && !lost_call && !self.renamed, Ordering::Release);
        let content = self.items.into_values().flat_map(|item| item.into_blocks(keeps_calls));
        ModelResponse { content: content.collect(), id: self.id, stop_reason, usage: self.usage }
    }

    fn into_partial(self) -> Option<ModelResponse> {
        if !self.begun && self.items.is_empty() {
            return None;
        }
        Some(ModelResponse {
            content: self.items.into_values().flat_map(|item| item.into_blocks(false)).collect(),
            id: self.id,
            stop_reason: StopReason::Other("interrupted".to_owned()),
            usage: self.usage,
        })
    }
}

fn cut(reason: String) -> StopReason {
    match reason.as_str() {
        "max_output_tokens" | "max_tokens" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        "" => StopReason::Other("incomplete".to_owned()),
        _ => StopReason::Other(reason),
    }
}

fn count(usage: &ResponsesUsage) -> Usage {
    let cached = usage.input_tokens_details.cached_tokens;
    Usage {
        input_tokens: usage.input_tokens.saturating_sub(cached),
        output_tokens: usage.output_tokens,
        cache_read_tokens: cached,
        cache_write_tokens: 0,
        thinking_tokens: usage.output_tokens_details.reasoning_tokens,
    }
}

/// An item as far as its type is known; of the others only type and id are read.
fn read_item(raw: &RawValue) -> Result<WireItem, AnswerFault> {
    let unreadable = |error: serde_json::Error| AnswerFault::Unreadable(format!("an item: {error}"));
    let TypedObject { kind } = serde_json::from_str(raw.get()).map_err(unreadable)?;
    if AnswerItem::knows(&kind) {
        serde_json::from_str(raw.get()).map_err(unreadable)
    } else {
        Ok(WireItem { kind, ..WireItem::default() })
    }
}

fn read<'a, T: Deserialize<'a>>(event: &'a SseEvent) -> Result<T, AnswerFault> {
    serde_json::from_str(&event.data).map_err(|error| {
        AnswerFault::Unreadable(format!("the event `{}` of its stream: {error}", event.event))
    })
}
