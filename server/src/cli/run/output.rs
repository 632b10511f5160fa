//! The output of `kode-ls run`: the answer, or JSON.
//!
//! Rule: with a JSON format, standard output holds nothing but JSON. Unknown values are null, not zero.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use kode_engine::agent::engine::Engine;
use kode_engine::agent::session::Session;
use kode_engine::base::ids::ItemId;
use kode_engine::model::Role;
use kode_engine::record::event::{CallState, Event, ItemBody, ToolCallItem, TurnEnd};
use serde_json::{Value, json};

use super::OutputFormat;
use super::beginning::RunSession;
use crate::cli::screen::Screen;
use crate::cli::terminal;
use crate::cli::watch::{TurnReport, TurnView};
use crate::display::printable;

/// The maximum number of denied calls that are named.
const MAX_NAMED: usize = 5;

/// Prints events and results.
pub(super) struct Printer {
    format: OutputFormat,
    /// Whether pieces of answers are printed.
    has_pieces: bool,
    /// Messages of sub-agents, whose pieces are not printed.
    foreign: HashSet<ItemId>,
    session: Arc<Session>,
    screen: Screen,
    /// The number of messages that were printed or existed before. The prompt itself is not printed.
    printed: usize,
    /// The output of a slash command, and whether it failed.
    said: Option<(String, bool)>,
    /// Why the prompt was not accepted.
    fault: Option<&'static str>,
    /// The denied calls of the turn.
    refused: Vec<ToolCallItem>,
    /// Whether any call of the run was denied.
    was_refused: bool,
    /// The outcome of the last turn.
    last: Option<TurnReport>,
}

impl Printer {
    pub(super) fn new(format: OutputFormat, has_pieces: bool, session: &Arc<Session>) -> Self {
        Self {
            format,
            has_pieces,
            foreign: HashSet::new(),
            session: Arc::clone(session),
            screen: Screen::of_process(format == OutputFormat::Text),
            printed: 0,
            said: None,
            fault: None,
            refused: Vec::new(),
            was_refused: false,
            last: None,
        }
    }

    /// Prints the `init` object.
    ///
    /// # Errors
    /// When writing fails.
    pub(super) fn start(&self, engine: &Engine) -> io::Result<()> {
        if self.format != OutputFormat::StreamJson {
            return Ok(());
        }
        let snapshot = self.session.snapshot(0);
        let models = engine.models();
        let model = models.profile(&snapshot.model).map_or(snapshot.model.as_str(), |profile| &profile.model);
        let tools: Vec<_> = engine.tools().iter().map(|tool| tool.facts().name).collect();
        line(&json!({
            "type": "system", "subtype": "init", "session_id": snapshot.id, "model": model,
            "cwd": self.session.cwd().to_string(), "tools": tools, "permissionMode": snapshot.mode.name(),
        }))
    }

    /// Resets the state for the next prompt.
    pub(super) fn begin(&mut self) {
        self.printed = messages_with_prompt(&self.session);
        self.said = None;
        self.fault = None;
        self.refused.clear();
        self.screen.begin();
    }

    /// Notes why the prompt was not accepted.
    pub(super) fn note_fault(&mut self, fault: &'static str) {
        self.fault = Some(fault);
    }

    /// Takes the answer to a side question, or why there is none.
    pub(super) fn note_aside(&mut self, text: String, has_failed: bool) {
        self.said = Some((text, has_failed));
    }

    /// Whether any call was denied.
    pub(super) fn was_refused(&self) -> bool {
        self.was_refused
    }

    /// Whether the prompt was a slash command that failed.
    pub(super) fn has_failed(&self, finished: &TurnReport) -> bool {
        finished.model_calls == 0 && self.said.as_ref().is_some_and(|(_, failed)| *failed)
    }

    /// Prints the result of a turn. With a schema, `value` is the answer as JSON and `fault` the mismatch.
    ///
    /// # Errors
    /// When writing fails.
    pub(super) fn finish(
        &mut self,
        finished: &TurnReport,
        value: Option<Value>,
        fault: Option<&str>,
    ) -> io::Result<()> {
        self.last = Some(*finished);
        // A slash command without a model call is its own answer.
        let said = self.said.clone().filter(|_| finished.model_calls == 0);
        let is_of_model = said.is_none();
        let answer = match self.fault {
            // The newest answer of the session is that to another prompt.
            Some(_) => String::new(),
            None => said.map_or_else(|| self.session.answer(), |(text, _)| text),
        };
        if self.format != OutputFormat::Text {
            return self.result(finished, &answer, value, fault);
        }
        if let Some(fault) = self.fault {
            self.screen.line(&format!("error: {fault}"))?;
        }
        if let Some(fault) = fault {
            self.screen
                .line(&format!("error: The answer does not match the schema: {}", printable(fault)))?;
        }
        match value {
            _ if is_of_model && self.screen.streams() => {}
            Some(value) => terminal::output(&format!("{value}\n"))?,
            None if answer.is_empty() => {}
            None => terminal::answer(answer.trim_end())?,
        }
        self.report_refused()
    }

    fn result(
        &self,
        finished: &TurnReport,
        answer: &str,
        value: Option<Value>,
        fault: Option<&str>,
    ) -> io::Result<()> {
        let done = finished.reason == TurnEnd::EndTurn && !self.has_failed(finished) && fault.is_none();
        let refused = self.refused.iter().map(|call| {
            json!({
                "tool_name": call.name, "tool_use_id": call.call, "tool_input": call.input,
                "reason": call.display,
            })
        });
        let mut result = json!({
            "type": "result", "subtype": if done { "success" } else { "error" }, "is_error": !done,
            "stop_reason": finished.reason, "result": answer, "session_id": self.session.id(),
            "num_turns": finished.model_calls, "num_tool_calls": finished.tool_calls,
            "permission_denials": refused.collect::<Vec<_>>(),
            "duration_ms": finished.duration_ms,
            "total_cost_usd": finished.cost.total(), "phases": finished.phases,
            "usage": {
                "input_tokens": finished.usage.input_tokens,
                "output_tokens": finished.usage.output_tokens,
                "cache_read_input_tokens": finished.usage.cache_read_tokens,
                "cache_creation_input_tokens": finished.usage.cache_write_tokens,
            },
        });
        if let Some(value) = value {
            result["structured_output"] = value;
        }
        if let Some(fault) = self.fault {
            result["error"] = json!(fault);
        }
        if let Some(fault) = fault {
            result["schema_error"] = json!(fault);
        }
        line(&result)
    }

    /// Lists the denied calls for the user.
    fn report_refused(&mut self) -> io::Result<()> {
        let named: Vec<_> = self.refused.iter().take(MAX_NAMED).map(|call| printable(&call.title)).collect();
        match self.refused.len() {
            0 => Ok(()),
            1 => self.screen.line(&format!("! 1 call was denied: {}", named.join(", "))),
            count => self.screen.line(&format!("! {count} calls were denied: {}", named.join(", "))),
        }
    }

    /// Prints the cost of the turn, and how to continue.
    pub(super) fn proceed_hint(&mut self, begun: &RunSession) {
        if self.format != OutputFormat::Text || !self.screen.is_live() {
            return;
        }
        let mut parts = figures(self.last.as_ref());
        if begun.is_kept() {
            parts.push("continue with: kode-ls run -c \"…\"".to_owned());
        }
        if !parts.is_empty() {
            drop(self.screen.line(&terminal::dim(&format!("— {}", parts.join(" · ")))));
        }
    }

    /// Prints a piece of an answer. The first one comes with its item.
    fn piece(&mut self, event: &Event) -> io::Result<()> {
        let (item, text) = match event {
            Event::ItemAdded { item } if event.is_of_sub_agent() => {
                self.foreign.insert(item.id.clone());
                return Ok(());
            }
            Event::ItemAdded { item } => match &item.body {
                ItemBody::AgentMessage { text, .. } => (&item.id, text),
                _ => return Ok(()),
            },
            Event::TextChunk { item, text } if !self.foreign.contains(item) => (item, text),
            _ => return Ok(()),
        };
        if text.is_empty() {
            return Ok(());
        }
        line(&json!({
            "type": "stream_event", "session_id": self.session.id(), "item_id": item,
            "event": { "type": "content_block_delta", "delta": { "type": "text_delta", "text": text } },
        }))
    }

    /// Prints the new messages of the history.
    fn messages(&mut self) -> io::Result<()> {
        for (number, message) in self.session.history().messages_from(self.printed) {
            self.printed = number + 1;
            let role = &message.role;
            line(&json!({ "type": role, "message": message, "session_id": self.session.id() }))?;
        }
        Ok(())
    }
}

impl TurnView for Printer {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event {
            Event::ItemAdded { item } => {
                if let ItemBody::Command { text, failed, .. } = &item.body {
                    self.said = Some((text.clone(), *failed));
                }
            }
            Event::ToolEnd { item } => {
                if let ItemBody::ToolCall(call) = &item.body
                    && call.state == CallState::Denied
                {
                    self.refused.push(ToolCallItem::clone(call));
                    self.was_refused = true;
                }
            }
            _ => {}
        }
        if self.has_pieces {
            self.piece(event)?;
        }
        if self.format == OutputFormat::StreamJson {
            self.messages()?;
        }
        self.screen.event(event)
    }

    fn tick(&mut self) {
        self.screen.tick();
    }
}

/// The figures of a turn, as text.
pub(in crate::cli) fn figures(finished: Option<&TurnReport>) -> Vec<String> {
    let Some(finished) = finished.filter(|finished| finished.model_calls > 0) else { return Vec::new() };
    let count = |count: u32, one: &str| match count {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{count} {one}s")),
    };
    let tokens = finished.usage.output_tokens;
    let parts = [
        count(finished.model_calls, "model call"),
        count(finished.tool_calls, "tool call"),
        Some(format!("{tokens} output tokens")).filter(|_| tokens > 0),
        Some(format!("{}.{} s", finished.duration_ms / 1_000, finished.duration_ms % 1_000 / 100)),
        finished.cost.total().filter(|cost| *cost > 0.0).map(|cost| format!("${cost:.4}")),
    ];
    parts.into_iter().flatten().collect()
}

/// The number of messages once the prompt is added. A prompt after tool results joins their message.
fn messages_with_prompt(session: &Session) -> usize {
    match session.history().messages_from(0).last() {
        Some((number, message)) if message.role == Role::User => number + 1,
        Some((number, _)) => number + 2,
        None => 1,
    }
}

fn line(value: &Value) -> io::Result<()> {
    terminal::output(&format!("{value}\n"))
}
