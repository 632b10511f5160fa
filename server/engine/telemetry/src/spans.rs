//! One session as spans and metrics: made of its events alone.
//!
//! Rule: times are those of the events; no attribute is content unless that is switched on, and then it is cut to
//! [`MAX_CONTENT`].

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use kode_base::ids::{AgentId, CallId, PermissionId, QuestionId, SessionId, TurnId};
use kode_base::question::{Question, QuestionResolution};
use kode_record::event::{
    Event, EventRecord, Item, ItemBody, ModelCallUsage, ModelRetry, ToolCallItem, TurnEnd,
};
use opentelemetry::trace::{SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;
use serde::Serialize;
use serde_json::{Value, json};

use crate::instruments::Instruments;
use crate::names;

/// The most characters of a piece of content.
pub(crate) const MAX_CONTENT: usize = 8_192;
/// The name of a tool that does not exist: what the model wrote instead is content.
const UNKNOWN_TOOL: &str = "unknown";

/// Where spans and metrics go.
#[derive(Clone)]
pub(crate) struct Sinks {
    pub(crate) tracer: SdkTracer,
    pub(crate) instruments: Instruments,
    /// Whether content is exported.
    pub(crate) content: bool,
}

/// The open spans of a session.
pub(crate) struct SessionSpans {
    session: SessionId,
    sinks: Sinks,
    turn: Option<OpenTurn>,
    /// Sub-agents at work.
    agents: HashMap<AgentId, Context>,
    /// Calls that run.
    calls: HashMap<CallId, Context>,
    /// Prompts that wait.
    prompts: HashMap<PermissionId, OpenPrompt>,
    /// Questions that wait.
    questions: HashMap<QuestionId, Context>,
}

struct OpenTurn {
    id: TurnId,
    span: Context,
    prompt: Vec<String>,
    answer: Option<String>,
}

struct OpenPrompt {
    span: Context,
    since: Timestamp,
}

/// A model call that has ended.
struct ModelCall<'a> {
    turn: &'a TurnId,
    agent: Option<&'a AgentId>,
    model: &'a str,
    provider: &'a str,
    /// Input, output, and the parts of both.
    tokens: [(&'static str, u64); 5],
    took: Option<Duration>,
    cost: Option<f64>,
}

impl SessionSpans {
    pub(crate) fn new(session: SessionId, sinks: Sinks) -> Self {
        let (agents, calls, prompts) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { session, sinks, turn: None, agents, calls, prompts, questions: HashMap::new() }
    }

    /// Follows one event.
    pub(crate) fn follow(&mut self, record: &EventRecord) {
        let at = record.bookmark.timestamp;
        match &record.event {
            Event::TurnStarted { turn } => self.begin_turn(turn, at),
            Event::ItemAdded { item } | Event::ItemUpdated { item } => self.keep_content(item),
            Event::ToolStart { item } => {
                if let ItemBody::ToolCall(call) = &item.body {
                    let span = self.begin_call(item, call, call.started.unwrap_or(at));
                    self.calls.insert(call.call.clone(), span);
                }
            }
            Event::ToolEnd { item } => {
                if let ItemBody::ToolCall(call) = &item.body {
                    self.end_call(item, call, at);
                }
            }
            Event::Done { turn, reason, usage, cost, model_calls, tool_calls, .. } => {
                let attributes = [
                    KeyValue::new(names::INPUT_TOKENS, whole(usage.prompt_tokens())),
                    KeyValue::new(names::OUTPUT_TOKENS, whole(usage.output_tokens)),
                    KeyValue::new(names::COST_USD, cost.usd),
                    KeyValue::new(names::MODEL_CALLS, i64::from(*model_calls)),
                    KeyValue::new(names::TOOL_CALLS, i64::from(*tool_calls)),
                ];
                self.end_turn(turn, *reason, attributes, at);
            }
            Event::TokenUsage { turn, agent, call } => {
                let ModelCallUsage { usage, model, provider, cost, pace, .. } = &**call;
                let tokens = [
                    (names::INPUT_TOKENS, usage.prompt_tokens()),
                    (names::OUTPUT_TOKENS, usage.output_tokens),
                    (names::CACHE_READ_TOKENS, usage.cache_read_tokens),
                    (names::CACHE_WRITE_TOKENS, usage.cache_write_tokens),
                    (names::REASONING_TOKENS, usage.thinking_tokens),
                ];
                let (agent, took) = (agent.as_ref(), pace.took_ms.map(Duration::from_millis));
                self.model_call(&ModelCall { turn, agent, model, provider, tokens, took, cost: *cost }, at);
            }
            Event::ModelRetry { retry } => self.retried(retry, at),
            Event::PermissionRequired { prompt } => {
                let parent = self.parent(prompt.agent.as_ref());
                let attributes = vec![
                    KeyValue::new(names::TOOL_NAME, prompt.tool.clone()),
                    KeyValue::new(names::TOOL_CALL, prompt.call.as_str().to_owned()),
                ];
                let span = self.begin(names::WAIT_FOR_PERMISSION.to_owned(), &parent, attributes, at);
                self.prompts.insert(prompt.id.clone(), OpenPrompt { span, since: at });
            }
            Event::PermissionDecided { decision } => {
                let (outcome, scope) = (name_of(&decision.outcome), name_of(&decision.scope));
                self.end_prompt(&decision.id, outcome, scope, at);
            }
            Event::QuestionAsked { question } => self.begin_question(question, at),
            Event::QuestionAnswered { resolved } => self.end_question(resolved, at),
            Event::SubagentStarted { agent, call, kind, .. } => self.begin_agent(agent, call, kind, at),
            Event::SubagentEnded { agent, ok, usage, .. } => {
                let tokens = (usage.prompt_tokens(), usage.output_tokens);
                self.end_agent(agent, *ok, tokens, at);
            }
            Event::EditsResolved { outcome } => {
                // To accept puts a hunk into the text, and decides no more about it.
                let decision = match outcome.action.map(|action| action.verb()) {
                    Some("keep") => "kept",
                    Some("reject" | "undo") => "undone",
                    Some(_) | None => return,
                };
                let hunks = outcome.resolved.len() as u64;
                if hunks > 0 {
                    self.sinks.instruments.edits(decision, hunks);
                }
            }
            _ => {}
        }
    }

    /// Ends what is open: the session has ended, or events were missed.
    pub(crate) fn close(&mut self, at: Timestamp) {
        let prompts = self.prompts.drain().map(|(_, prompt)| prompt.span);
        let questions = self.questions.drain().map(|(_, question)| question);
        let calls = self.calls.drain().map(|(_, call)| call);
        let agents = self.agents.drain().map(|(_, agent)| agent);
        let turn = self.turn.take().map(|turn| turn.span);
        prompts.chain(questions).chain(calls).chain(agents).chain(turn).for_each(|span| end(&span, at));
    }

    fn begin(&self, name: String, parent: &Context, attributes: Vec<KeyValue>, at: Timestamp) -> Context {
        self.begin_kind(SpanKind::Internal, name, parent, attributes, at)
    }

    fn begin_kind(
        &self,
        kind: SpanKind,
        name: String,
        parent: &Context,
        mut attributes: Vec<KeyValue>,
        at: Timestamp,
    ) -> Context {
        attributes.push(KeyValue::new(names::CONVERSATION, self.session.as_str().to_owned()));
        let tracer = &self.sinks.tracer;
        let builder = tracer.span_builder(name).with_kind(kind).with_start_time(SystemTime::from(at));
        let span = tracer.build_with_context(builder.with_attributes(attributes), parent);
        parent.with_span(span)
    }

    /// The span that something of a sub-agent, or of the session's own conversation, is in.
    fn parent(&self, agent: Option<&AgentId>) -> Context {
        let of_agent = agent.and_then(|agent| self.agents.get(agent));
        let of_turn = self.turn.as_ref().map(|turn| &turn.span);
        of_agent.or(of_turn).cloned().unwrap_or_default()
    }

    fn begin_turn(&mut self, turn: &TurnId, at: Timestamp) {
        if let Some(earlier) = self.turn.take() {
            end(&earlier.span, at);
        }
        let name = format!("{} {}", names::INVOKE_AGENT, names::SERVICE);
        let attributes = vec![
            KeyValue::new(names::OPERATION, names::INVOKE_AGENT),
            KeyValue::new(names::AGENT_NAME, names::SERVICE),
        ];
        let span = self.begin(name, &Context::new(), attributes, at);
        self.turn = Some(OpenTurn { id: turn.clone(), span, prompt: Vec::new(), answer: None });
    }

    fn end_turn(&mut self, turn: &TurnId, reason: TurnEnd, attributes: [KeyValue; 5], at: Timestamp) {
        let Some(open) = self.turn.take_if(|open| open.id == *turn) else { return };
        let span = open.span.span();
        span.set_attributes(attributes);
        span.set_attribute(KeyValue::new(names::STOP_REASON, name_of(&reason)));
        if reason == TurnEnd::Error {
            span.set_attribute(KeyValue::new(names::ERROR_TYPE, "_OTHER"));
            span.set_status(Status::error(""));
        }
        if self.sinks.content {
            let prompt = open.prompt.iter().map(|text| message("user", text)).collect();
            span.set_attribute(content(names::INPUT_MESSAGES, &Value::Array(prompt)));
            let answer = open.answer.iter().map(|text| message("assistant", text)).collect();
            span.set_attribute(content(names::OUTPUT_MESSAGES, &Value::Array(answer)));
        }
        end(&open.span, at);
    }

    /// Keeps prompt and answer of a turn, where content is exported.
    fn keep_content(&mut self, item: &Item) {
        let turn = self.turn.as_mut().filter(|turn| turn.id == item.turn && item.agent.is_none());
        let Some(turn) = turn.filter(|_| self.sinks.content) else { return };
        match &item.body {
            ItemBody::UserMessage { text, .. } => turn.prompt.push(cut(text)),
            ItemBody::AgentMessage { text, complete: true, .. } => turn.answer = Some(cut(text)),
            _ => {}
        }
    }

    fn model_call(&self, call: &ModelCall<'_>, at: Timestamp) {
        let is_of_turn = self.turn.as_ref().is_some_and(|turn| turn.id == *call.turn);
        let parent = match call.agent {
            // Titles and side questions are of no turn.
            None if !is_of_turn => Context::new(),
            agent => self.parent(agent),
        };
        let provider = provider_name(call.provider);
        let metered = [
            KeyValue::new(names::OPERATION, names::CHAT),
            KeyValue::new(names::PROVIDER, provider.to_owned()),
            KeyValue::new(names::MODEL, call.model.to_owned()),
        ];
        let [(_, input), (_, output), ..] = call.tokens;
        self.sinks.instruments.model_call(&metered, (input, output), call.took, call.cost);
        parent.span().set_attributes(metered[1..].iter().cloned());
        let mut attributes = metered.to_vec();
        attributes.extend(call.tokens.map(|(name, tokens)| KeyValue::new(name, whole(tokens))));
        attributes.extend(call.cost.map(|cost| KeyValue::new(names::COST_USD, cost)));
        let began = at.checked_sub(call.took.unwrap_or_default()).unwrap_or(at);
        let name = format!("{} {}", names::CHAT, call.model);
        end(&self.begin_kind(SpanKind::Client, name, &parent, attributes, began), at);
    }

    fn retried(&self, retry: &ModelRetry, at: Timestamp) {
        let Some(turn) = &self.turn else { return };
        let attributes = vec![
            KeyValue::new(names::ERROR_TYPE, name_of(&retry.kind)),
            KeyValue::new(names::RETRY_ATTEMPT, i64::from(retry.attempt)),
            KeyValue::new(names::MODEL, retry.model.clone()),
        ];
        turn.span.span().add_event_with_timestamp(names::MODEL_RETRY, SystemTime::from(at), attributes);
    }

    fn begin_call(&self, item: &Item, call: &ToolCallItem, at: Timestamp) -> Context {
        let tool = if call.kind.is_some() { call.name.clone() } else { UNKNOWN_TOOL.to_owned() };
        let mut attributes = vec![
            KeyValue::new(names::OPERATION, names::EXECUTE_TOOL),
            KeyValue::new(names::TOOL_NAME, tool.clone()),
            KeyValue::new(names::TOOL_TYPE, "function"),
            KeyValue::new(names::TOOL_CALL, call.call.as_str().to_owned()),
        ];
        if self.sinks.content {
            attributes.push(content(names::TOOL_ARGUMENTS, &call.input));
        }
        let parent = self.parent(item.agent.as_ref());
        self.begin(format!("{} {tool}", names::EXECUTE_TOOL), &parent, attributes, at)
    }

    fn end_call(&mut self, item: &Item, call: &ToolCallItem, at: Timestamp) {
        let at = call.ended.unwrap_or(at);
        // A call that was refused has never run.
        let open = self.calls.remove(&call.call);
        let open = open.unwrap_or_else(|| self.begin_call(item, call, call.started.unwrap_or(at)));
        let span = open.span();
        span.set_attribute(KeyValue::new(names::TOOL_OUTCOME, name_of(&call.state).to_lowercase()));
        if let Some(error) = call.error {
            span.set_attribute(KeyValue::new(names::ERROR_TYPE, name_of(&error)));
            span.set_status(Status::error(""));
        }
        if self.sinks.content {
            span.set_attribute(content(names::TOOL_RESULT, &json!(call.display)));
        }
        end(&open, at);
    }

    fn end_prompt(&mut self, id: &PermissionId, outcome: String, scope: String, at: Timestamp) {
        let Some(prompt) = self.prompts.remove(id) else { return };
        let waited = Duration::try_from(at.duration_since(prompt.since)).unwrap_or_default();
        let span = prompt.span.span();
        span.set_attribute(KeyValue::new(names::PERMISSION_OUTCOME, outcome.clone()));
        span.set_attribute(KeyValue::new(names::PERMISSION_SCOPE, scope));
        self.sinks.instruments.waited(waited, outcome);
        end(&prompt.span, at);
    }

    /// A question is in the call that asks it, or in the turn.
    fn begin_question(&mut self, question: &Question, at: Timestamp) {
        let call = question.call.as_ref().and_then(|call| self.calls.get(call)).cloned();
        let parent = call.unwrap_or_else(|| self.parent(None));
        let attributes = vec![KeyValue::new(names::QUESTION_KIND, name_of(&question.draft.kind))];
        let span = self.begin(names::WAIT_FOR_ANSWER.to_owned(), &parent, attributes, at);
        if let Some(earlier) = self.questions.insert(question.id.clone(), span) {
            end(&earlier, at);
        }
    }

    fn end_question(&mut self, resolved: &QuestionResolution, at: Timestamp) {
        let Some(open) = self.questions.remove(&resolved.id) else { return };
        open.span().set_attribute(KeyValue::new(names::QUESTION_OUTCOME, name_of(&resolved.outcome)));
        end(&open, at);
    }

    fn begin_agent(&mut self, agent: &AgentId, call: &CallId, kind: &str, at: Timestamp) {
        let parent = self.calls.get(call).cloned().unwrap_or_else(|| self.parent(None));
        let attributes = vec![
            KeyValue::new(names::OPERATION, names::INVOKE_AGENT),
            KeyValue::new(names::AGENT_NAME, kind.to_owned()),
            KeyValue::new(names::AGENT_ID, agent.as_str().to_owned()),
        ];
        let span = self.begin(format!("{} {kind}", names::INVOKE_AGENT), &parent, attributes, at);
        if let Some(earlier) = self.agents.insert(agent.clone(), span) {
            end(&earlier, at);
        }
    }

    fn end_agent(&mut self, agent: &AgentId, ok: bool, (input, output): (u64, u64), at: Timestamp) {
        let Some(open) = self.agents.remove(agent) else { return };
        let span = open.span();
        span.set_attribute(KeyValue::new(names::INPUT_TOKENS, whole(input)));
        span.set_attribute(KeyValue::new(names::OUTPUT_TOKENS, whole(output)));
        if !ok {
            span.set_status(Status::error(""));
        }
        end(&open, at);
    }
}

fn end(span: &Context, at: Timestamp) {
    span.span().end_with_timestamp(SystemTime::from(at));
}

/// A provider, as the conventions call it.
fn provider_name(provider: &str) -> &str {
    match provider {
        "openai-responses" => "openai",
        "gemini" => "gcp.gemini",
        "vertex" => "gcp.vertex_ai",
        "bedrock" => "aws.bedrock",
        "azure" => "azure.ai.openai",
        "" => "_OTHER",
        named => named,
    }
}

/// The name of a value of plain data.
fn name_of(value: &impl Serialize) -> String {
    let name = serde_json::to_value(value).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_else(|| "_OTHER".to_owned())
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A message in the form of the conventions.
fn message(role: &str, text: &str) -> Value {
    json!({ "role": role, "parts": [{ "type": "text", "content": text }] })
}

fn content(name: &'static str, value: &Value) -> KeyValue {
    KeyValue::new(name, cut(&value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_CONTENT).collect()
}

#[cfg(test)]
mod tests;
