//! Tests of spans and metrics, from events with times of the test.
//!
//! Rule: exporters keep what they get in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use kode_base::call::{ToolErrorKind, ToolKind};
use kode_base::ids::ItemId;
use kode_record::context::Pace;
use kode_record::event::{Bookmark, CallOutcome, CallState};
use opentelemetry::metrics::MeterProvider;
use opentelemetry::trace::{SpanId, TracerProvider};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData, ResourceMetrics};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};

use super::*;

struct Bench {
    spans: SessionSpans,
    session: SessionId,
    exported: InMemorySpanExporter,
    tracer: SdkTracerProvider,
    metrics: InMemoryMetricExporter,
    meter: SdkMeterProvider,
}

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millisecond(1_000_000 + ms).unwrap()
}

fn bench(content: bool) -> Bench {
    let (exported, metrics) = (InMemorySpanExporter::default(), InMemoryMetricExporter::default());
    let tracer = SdkTracerProvider::builder().with_simple_exporter(exported.clone()).build();
    let meter = SdkMeterProvider::builder().with_periodic_exporter(metrics.clone()).build();
    let sinks = Sinks {
        tracer: tracer.tracer(names::SCOPE),
        instruments: Instruments::of(&meter.meter(names::SCOPE)),
        content,
    };
    let session = SessionId::generate();
    let spans = SessionSpans::new(session.clone(), sinks);
    Bench { spans, session, exported, tracer, metrics, meter }
}

impl Bench {
    fn event(&mut self, ms: i64, event: Event) {
        let bookmark = Bookmark { seq: 1, timestamp: at(ms) };
        self.spans.follow(&EventRecord { session: self.session.clone(), bookmark, event });
    }

    fn spans(&self) -> BTreeMap<String, SpanData> {
        self.tracer.force_flush().unwrap();
        let spans = self.exported.get_finished_spans().unwrap();
        spans.into_iter().map(|span| (span.name.to_string(), span)).collect()
    }

    fn metrics(&self) -> Vec<ResourceMetrics> {
        self.meter.force_flush().unwrap();
        self.metrics.get_finished_metrics().unwrap()
    }

    fn done(&mut self, ms: i64, turn: &TurnId, reason: TurnEnd) {
        let done = Event::Done {
            turn: turn.clone(),
            reason,
            usage: Default::default(),
            cost: Default::default(),
            duration_ms: 0,
            model_calls: 2,
            tool_calls: 1,
            phases: Default::default(),
        };
        self.event(ms, done);
    }

    fn usage(&mut self, ms: i64, turn: &TurnId, agent: Option<&AgentId>, took_ms: u64) {
        let usage =
            serde_json::from_value(json!({ "inputTokens": 10, "outputTokens": 5, "cacheReadTokens": 100 }));
        let call = ModelCallUsage {
            usage: usage.unwrap(),
            model: "m-1".to_owned(),
            provider: "openai-responses".to_owned(),
            cost: Some(0.25),
            context: None,
            pace: Pace { took_ms: Some(took_ms), ..Pace::default() },
        };
        let (turn, agent) = (turn.clone(), agent.cloned());
        self.event(ms, Event::TokenUsage { turn, agent, call: Box::new(call) });
    }
}

fn attributes(span: &SpanData) -> BTreeMap<String, String> {
    span.attributes.iter().map(|entry| (entry.key.to_string(), entry.value.to_string())).collect()
}

fn took(span: &SpanData) -> u128 {
    span.end_time.duration_since(span.start_time).unwrap().as_millis()
}

fn call_item(turn: &TurnId, agent: Option<&AgentId>, kind: Option<ToolKind>, ms: i64) -> (Item, CallId) {
    let call = CallId::generate();
    let input = json!({ "command": "cat hunter2" });
    let body = ToolCallItem::pending(call.clone(), "Bash".to_owned(), kind, input, at(ms));
    let (id, turn, agent) = (ItemId::generate(), turn.clone(), agent.cloned());
    let body = ItemBody::ToolCall(Box::new(body));
    (Item { id, turn, agent, timestamp: at(ms), body }, call)
}

fn moved(item: &Item, state: CallState, ms: i64) -> Arc<Item> {
    let mut item = item.clone();
    let ItemBody::ToolCall(call) = &mut item.body else { panic!("a call") };
    match state {
        CallState::Executing => drop(call.enter(state, at(ms))),
        state => {
            let error = (state == CallState::Failed).then_some(ToolErrorKind::Timeout);
            let outcome = CallOutcome { state, display: "hunter3".to_owned(), structured: None, error };
            call.end(outcome, at(ms));
        }
    }
    item.into()
}

fn text(turn: &TurnId, body: ItemBody) -> Event {
    let (id, turn) = (ItemId::generate(), turn.clone());
    Event::ItemAdded { item: Item { id, turn, agent: None, timestamp: at(0), body }.into() }
}

fn answer(text: &str) -> ItemBody {
    let (text, model, duration_ms) = (text.to_owned(), None, None);
    ItemBody::AgentMessage { text, complete: true, interrupted: false, model, duration_ms }
}

/// A turn with two model calls and a call of a tool.
fn turn(bench: &mut Bench) {
    let turn = TurnId::generate();
    bench.event(0, Event::TurnStarted { turn: turn.clone() });
    bench.event(0, text(&turn, ItemBody::user_message("hunter1")));
    bench.usage(100, &turn, None, 80);
    let (item, _) = call_item(&turn, None, Some(ToolKind::Execute), 100);
    bench.event(110, Event::ToolStart { item: moved(&item, CallState::Executing, 110) });
    let ended = moved(&moved(&item, CallState::Executing, 110), CallState::Completed, 160);
    bench.event(160, Event::ToolEnd { item: ended });
    bench.event(170, text(&turn, answer("hunter4")));
    bench.done(200, &turn, TurnEnd::EndTurn);
}

#[test]
fn a_turn_has_its_model_calls_and_tools_as_children() {
    let mut bench = bench(false);
    turn(&mut bench);
    let spans = bench.spans();
    let names: Vec<_> = spans.keys().map(String::as_str).collect();
    assert_eq!(names, ["chat m-1", "execute_tool Bash", "invoke_agent kode-ls"]);
    let (root, chat, tool) =
        (&spans["invoke_agent kode-ls"], &spans["chat m-1"], &spans["execute_tool Bash"]);
    assert_eq!((took(root), took(chat), took(tool)), (200, 80, 50));
    assert_eq!(root.parent_span_id, SpanId::INVALID);
    for child in [chat, tool] {
        assert_eq!(child.parent_span_id, root.span_context.span_id());
        assert_eq!(attributes(child)[names::CONVERSATION], bench.session.as_str());
    }
    let of_root = attributes(root);
    assert_eq!(of_root[names::STOP_REASON], "end_turn");
    assert_eq!(of_root[names::MODEL], "m-1");
    let of_chat = attributes(chat);
    assert_eq!((of_chat[names::PROVIDER].as_str(), of_chat[names::OPERATION].as_str()), ("openai", "chat"));
    assert_eq!((of_chat[names::INPUT_TOKENS].as_str(), of_chat[names::OUTPUT_TOKENS].as_str()), ("110", "5"));
    assert_eq!(attributes(tool)[names::TOOL_OUTCOME], "completed");
}

#[test]
fn content_is_exported_only_where_it_is_wanted() {
    let mut without = bench(false);
    turn(&mut without);
    let spans = format!("{:?} {:?}", without.spans(), without.metrics());
    assert!(!spans.contains("hunter"), "{spans}");
    let mut with = bench(true);
    turn(&mut with);
    let spans = with.spans();
    let (root, tool) = (attributes(&spans["invoke_agent kode-ls"]), attributes(&spans["execute_tool Bash"]));
    assert!(
        root[names::INPUT_MESSAGES].contains("hunter1") && root[names::OUTPUT_MESSAGES].contains("hunter4")
    );
    assert!(tool[names::TOOL_ARGUMENTS].contains("hunter2") && tool[names::TOOL_RESULT].contains("hunter3"));
    assert!(!format!("{:?}", with.metrics()).contains("hunter"));
}

#[test]
fn a_call_that_failed_or_has_no_tool_is_an_error_without_its_words() {
    let mut bench = bench(false);
    let turn = TurnId::generate();
    bench.event(0, Event::TurnStarted { turn: turn.clone() });
    let (item, _) = call_item(&turn, None, None, 5);
    bench.event(9, Event::ToolEnd { item: moved(&item, CallState::Failed, 9) });
    let spans = bench.spans();
    let span = &spans["execute_tool unknown"];
    assert_eq!(attributes(span)[names::ERROR_TYPE], "timeout");
    assert_eq!(span.status, Status::error(""));
    assert!(!format!("{span:?}").contains("Bash"));
}

#[test]
fn sub_agents_are_nested_in_the_calls_that_they_work_for() {
    let mut bench = bench(false);
    let (turn, agent) = (TurnId::generate(), AgentId::generate());
    bench.event(0, Event::TurnStarted { turn: turn.clone() });
    let (item, call) = call_item(&turn, None, Some(ToolKind::Execute), 1);
    bench.event(2, Event::ToolStart { item: moved(&item, CallState::Executing, 2) });
    let (kind, description) = ("explore".to_owned(), "hunter5".to_owned());
    bench.event(3, Event::SubagentStarted { agent: agent.clone(), call, kind, description });
    bench.usage(20, &turn, Some(&agent), 10);
    let usage = Default::default();
    bench.event(30, Event::SubagentEnded { agent, ok: true, usage, duration_ms: 27 });
    let ended = moved(&moved(&item, CallState::Executing, 2), CallState::Completed, 40);
    bench.event(40, Event::ToolEnd { item: ended });
    bench.done(50, &turn, TurnEnd::Error);
    let spans = bench.spans();
    let id = |name: &str| spans[name].span_context.span_id();
    assert_eq!(spans["chat m-1"].parent_span_id, id("invoke_agent explore"));
    assert_eq!(spans["invoke_agent explore"].parent_span_id, id("execute_tool Bash"));
    assert_eq!(spans["execute_tool Bash"].parent_span_id, id("invoke_agent kode-ls"));
    assert_eq!(spans["invoke_agent kode-ls"].status, Status::error(""));
    assert!(!format!("{spans:?}").contains("hunter"));
}

#[test]
fn what_is_of_no_turn_is_a_trace_of_its_own_and_an_end_leaves_nothing_open() {
    let mut bench = bench(false);
    let turn = TurnId::generate();
    bench.event(0, Event::TurnStarted { turn });
    bench.usage(100, &TurnId::generate(), None, 10);
    assert_eq!(bench.spans()["chat m-1"].parent_span_id, SpanId::INVALID);
    bench.spans.close(at(300));
    assert_eq!(took(&bench.spans()["invoke_agent kode-ls"]), 300);
}

#[test]
fn metrics_count_tokens_time_and_money() {
    let mut bench = bench(false);
    turn(&mut bench);
    let exported = bench.metrics();
    let metrics: Vec<_> = exported.iter().flat_map(|exported| exported.scope_metrics()).collect();
    let named = |name: &str| {
        let metrics = metrics.iter().flat_map(|scope| scope.metrics());
        metrics.filter(|metric| metric.name() == name).last().expect("the metric")
    };
    let AggregatedMetrics::U64(MetricData::Histogram(tokens)) = named(names::TOKEN_USAGE).data() else {
        panic!("a histogram")
    };
    let mut sums: Vec<_> = tokens.data_points().map(|point| point.sum()).collect();
    sums.sort_unstable();
    assert_eq!(sums, [5, 110]);
    let AggregatedMetrics::F64(MetricData::Histogram(time)) = named(names::OPERATION_DURATION).data() else {
        panic!("a histogram")
    };
    assert!(time.data_points().all(|point| (point.sum() - 0.08).abs() < 1e-9));
    let AggregatedMetrics::F64(MetricData::Sum(cost)) = named(names::COST).data() else { panic!("a sum") };
    assert!(cost.data_points().all(|point| (point.value() - 0.25).abs() < 1e-9));
}

#[test]
fn a_prompt_waits_in_a_span_and_a_metric() {
    let mut bench = bench(false);
    bench.event(0, Event::TurnStarted { turn: TurnId::generate() });
    let prompt = json!({
        "id": "perm_1", "call": "call_1", "item": "item_1", "tool": "Bash", "title": "hunter1", "reason": "hunter2",
        "preview": { "kind": "paths", "paths": ["hunter3"] }, "risks": ["hunter4"], "scopes": ["once"], "offers": [],
        "input": { "command": "hunter5" }, "timestamp": at(5),
    });
    let prompt = Box::new(serde_json::from_value(prompt).unwrap());
    bench.event(5, Event::PermissionRequired { prompt });
    let decision = json!({
        "id": "perm_1", "call": "call_1", "outcome": "deny", "scope": "once", "by": "hunter6", "feedback": "hunter7",
    });
    bench.event(905, Event::PermissionDecided { decision: serde_json::from_value(decision).unwrap() });
    let spans = bench.spans();
    let span = &spans["wait_for_permission"];
    assert_eq!((took(span), attributes(span)[names::PERMISSION_OUTCOME].as_str()), (900, "deny"));
    let metrics = format!("{:?}", bench.metrics());
    assert!(metrics.contains(names::PERMISSION_WAIT) && metrics.contains("0.9"), "{metrics}");
    assert!(!metrics.contains("hunter") && !format!("{spans:?}").contains("hunter"));
}

#[test]
fn a_question_waits_in_a_span_of_its_call_without_a_word_of_it() {
    let mut bench = bench(false);
    let turn = TurnId::generate();
    bench.event(0, Event::TurnStarted { turn: turn.clone() });
    let (item, call) = call_item(&turn, None, Some(ToolKind::ReadOnly), 1);
    bench.event(1, Event::ToolStart { item: item.into() });
    for (id, call, ms) in [("question_1", Some(&call), 5), ("question_2", None, 6)] {
        let question = json!({
            "id": id, "call": call, "kind": "choice", "timestamp": at(ms),
            "questions": [{ "question": "hunter1", "header": "hunter2", "options": [], "multiSelect": false }],
        });
        let question = Box::new(serde_json::from_value(question).unwrap());
        bench.event(ms, Event::QuestionAsked { question });
    }
    let resolved = json!({ "id": "question_1", "call": call, "outcome": "answered", "by": "hunter3", "feedback": "hunter4" });
    bench.event(1_005, Event::QuestionAnswered { resolved: serde_json::from_value(resolved).unwrap() });
    let spans = bench.spans();
    let span = &spans["wait_for_answer"];
    assert_eq!((took(span), attributes(span)[names::QUESTION_OUTCOME].as_str()), (1_000, "answered"));
    assert_eq!(attributes(span)[names::QUESTION_KIND], "choice");
    assert!(!format!("{spans:?}").contains("hunter"));
    bench.spans.close(at(2_000));
    let ended = bench.exported.get_finished_spans().unwrap();
    let waits: Vec<_> = ended.iter().filter(|span| span.name == "wait_for_answer").collect();
    assert_eq!(waits.len(), 2, "the end leaves none open");
}

#[test]
fn providers_have_the_names_of_the_conventions() {
    let names = ["anthropic", "openai", "openai-responses", "vertex", "bedrock", "azure", "gemini", ""];
    let mapped = [
        "anthropic",
        "openai",
        "openai",
        "gcp.vertex_ai",
        "aws.bedrock",
        "azure.ai.openai",
        "gcp.gemini",
        "_OTHER",
    ];
    assert_eq!(names.map(provider_name), mapped);
}

#[test]
fn long_content_is_cut() {
    assert_eq!(cut(&"ö".repeat(MAX_CONTENT + 9)).chars().count(), MAX_CONTENT);
}
