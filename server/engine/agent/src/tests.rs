//! A whole session with a model that says what the test wants: order, faults, cancelling, resuming.

mod agents;
mod candidates;
mod charges;
mod client;
mod compaction;
mod compaction_bounds;
mod course;
mod damage;
mod fallback;
mod faults;
mod goals;
mod input;
mod kept;
mod losses;
mod mentions;
mod paging;
mod plan;
mod property;
mod queue;
mod reminders;
mod replay;
mod rests;
mod shape;
mod side;
mod slash;
mod slow_settings;
mod storage;
mod team;
mod think;
mod titles;
mod two_engines;
mod unchanged_settings;
mod waiting;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::edits::review;
use crate::engine::{CONCURRENCY, Engine, EngineOptions, NewSession};
use crate::prompt::Prompt;
use crate::session::Session;
use crate::session::prompts::{SubmitError, SubmitOutcome};
use crate::state::SessionState;
use crate::state::config::ConfigChange;
use crate::state::new_item;
use crate::state::titles::title_from;
use kode_base::call::{ToolError, ToolKind};
use kode_base::effort::Effort;
use kode_base::ids::{CallId, CheckpointId, ItemId, QueueId, SessionId, TurnId};
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_config::policies::{NoPolicyProvider, PolicyProvider};
use kode_mcp::Mcp;
use kode_model::models::{Models, Pointer};
use kode_model::profile::Profile;
use kode_model::{
    Block, Capabilities, Delta, DeltaSink, Message, Model, ModelError, ModelErrorKind, ModelRequest,
    ModelResponse, Role, StopReason, Usage, Wire,
};
use kode_permission::{Deliveries, EditDelivery, EditDeliveryRule, PermissionPrompt, PromptAnswer};
use kode_record::event::{
    Event, EventRecord, Item, ItemBody, NoticeKind, NoticeLevel, QueuedPrompt, RunState, Subscription,
    TurnEnd,
};
use kode_record::record::Record;
use kode_text::host::{Host, NoEditor};
use kode_tool::languages::NoLanguages;
use kode_tool::{CallAction, CallContext, CallPlan, Registry, Tool, ToolFacts, ToolOutput};
use kode_tools::built_in::built_in;

/// The behavior of the model.
pub(super) enum Say {
    Answer(Vec<Block>),
    /// Answers after so long.
    After(Duration, Vec<Block>),
    /// Answers and stops for this reason.
    Ended(Vec<Block>, StopReason),
    Fail(ModelError),
    /// Streams a text and then waits until it is cancelled.
    Hang(&'static str),
}

#[derive(Default)]
struct FakeModel {
    script: Mutex<VecDeque<Say>>,
    requests: Mutex<Vec<ModelRequest>>,
    /// Its text in conversations that begin with a given text: those of sub-agents.
    tasks: Mutex<HashMap<String, VecDeque<Say>>>,
}

impl FakeModel {
    fn new(script: Vec<Say>) -> Arc<Self> {
        Arc::new(Self { script: Mutex::new(script.into()), ..Self::default() })
    }
}

#[async_trait]
impl Model for FakeModel {
    fn name(&self) -> &str {
        "fake"
    }

    fn wire(&self) -> Wire {
        Wire::AnthropicMessages
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        assert_sendable(&request.messages);
        self.requests.lock().unwrap().push(request.clone());
        let scripted = match request.messages[0].content.first() {
            Some(Block::Text { text }) => self.tasks.lock().unwrap().get_mut(text).map(VecDeque::pop_front),
            _ => None,
        };
        let scripted = scripted.unwrap_or_else(|| self.script.lock().unwrap().pop_front());
        let say = scripted.unwrap_or(Say::Answer(vec![text("done")]));
        match say {
            Say::Answer(content) => {
                let calls = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
                let stop_reason = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
                Ok(answered(content, stop_reason, on_delta))
            }
            Say::After(time, content) => {
                tokio::time::sleep(time).await;
                let calls = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
                let stop_reason = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
                Ok(answered(content, stop_reason, on_delta))
            }
            Say::Ended(content, stop_reason) => Ok(answered(content, stop_reason, on_delta)),
            Say::Fail(error) => Err(error),
            Say::Hang(words) => {
                on_delta(Delta::Text { index: 0, text: words.to_owned() });
                cancel.cancelled().await;
                let partial = ModelResponse {
                    id: None,
                    content: vec![text(words)],
                    stop_reason: StopReason::Other("interrupted".into()),
                    usage: Usage::default(),
                };
                Err(ModelError {
                    partial: Some(Box::new(partial)),
                    ..ModelError::new(ModelErrorKind::Cancelled, "cancelled")
                })
            }
        }
    }
}

/// Shows an answer piece by piece and gives it whole.
fn answered(content: Vec<Block>, stop_reason: StopReason, on_delta: &mut DeltaSink<'_>) -> ModelResponse {
    for (index, block) in content.iter().enumerate() {
        match block {
            Block::Text { text } => on_delta(Delta::Text { index, text: text.clone() }),
            Block::ToolUse { id, name, .. } => {
                on_delta(Delta::ToolUse { index, id: id.clone(), name: name.clone() });
            }
            _ => {}
        }
    }
    ModelResponse { id: None, content, stop_reason, usage: Usage { input_tokens: 1, ..Usage::default() } }
}

/// The demands of every provider: roles alternate from the user on, every call is answered once, right after it.
fn assert_sendable(messages: &[Message]) {
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        assert_eq!(message.role, if index % 2 == 0 { Role::User } else { Role::Assistant }, "{messages:#?}");
        assert!(!message.content.is_empty());
        let answered: Vec<String> = message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::ToolResult { tool_use_id, .. } => Some(tool_use_id.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(answered, open, "{messages:#?}");
        open = message
            .content
            .iter()
            .filter_map(|block| match block {
                Block::ToolUse { id, .. } => Some(id.clone()),
                _ => None,
            })
            .collect();
    }
    assert_eq!(open, Vec::<String>::new(), "{messages:#?}");
}

/// A tool that ends when it is let go, or at once; it counts how many run beside each other.
#[derive(Clone, Default)]
struct Probe {
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    go: Arc<Notify>,
    safe: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProbeInput {
    /// The behavior: `return`, `wait`, `panic`.
    what: String,
}

#[async_trait]
impl Tool for Probe {
    type Input = ProbeInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: if self.safe { "SafeProbe" } else { "Probe" },
            kind: ToolKind::ReadOnly,
            concurrency_safe: self.safe,
            description: "",
        }
    }

    async fn plan(&self, input: ProbeInput, _context: &CallContext) -> Result<CallPlan, ToolError> {
        let probe = self.clone();
        Ok(CallPlan {
            title: input.what.clone(),
            touches: vec![],
            action: CallAction::Run(Box::new(move |context| {
                Box::pin(async move {
                    let now = probe.running.fetch_add(1, Ordering::SeqCst) + 1;
                    probe.most.fetch_max(now, Ordering::SeqCst);
                    // Lets the neighbors begin, so that the most that can run at once do.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    match input.what.as_str() {
                        "panic" => panic!("the test wanted it"),
                        "wait" => tokio::select! {
                            () = probe.go.notified() => {}
                            () = context.cancel.cancelled() => {}
                        },
                        _ => {}
                    }
                    probe.running.fetch_sub(1, Ordering::SeqCst);
                    Ok(ToolOutput { model_text: input.what, ..ToolOutput::default() })
                })
            })),
        })
    }
}

pub(super) struct Bench {
    engine: Engine,
    model: Arc<FakeModel>,
    safe: Probe,
    home: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new(script: Vec<Say>) -> Self {
        Self::in_home(tempfile::tempdir().unwrap(), script)
    }

    fn in_home(home: tempfile::TempDir, script: Vec<Say>) -> Self {
        Self::with_probes(home, script, Registry::default())
    }

    /// With probes beside these tools.
    fn with_probes(home: tempfile::TempDir, script: Vec<Say>, mut tools: Registry) -> Self {
        let safe = Probe { safe: true, ..Probe::default() };
        tools.add(Probe::default());
        tools.add(safe.clone());
        Self { safe, ..Self::with_tools(home, script, tools) }
    }

    fn with_tools(home: tempfile::TempDir, script: Vec<Say>, tools: Registry) -> Self {
        Self::with_policies(home, script, tools, Arc::new(NoPolicyProvider))
    }

    fn with_policies(
        home: tempfile::TempDir,
        script: Vec<Say>,
        tools: Registry,
        policies: Arc<dyn PolicyProvider>,
    ) -> Self {
        Self::with_host(home, script, tools, policies, Arc::new(NoEditor))
    }

    fn with_host(
        home: tempfile::TempDir,
        script: Vec<Say>,
        tools: Registry,
        policies: Arc<dyn PolicyProvider>,
        host: Arc<dyn Host>,
    ) -> Self {
        let model = FakeModel::new(script);
        let models = Models::in_process(Profile::demo(), Arc::clone(&model) as Arc<dyn Model>);
        Self::with_models(home, (model, models), tools, policies, host)
    }

    fn with_models(
        home: tempfile::TempDir,
        (model, models): (Arc<FakeModel>, Models),
        tools: Registry,
        policies: Arc<dyn PolicyProvider>,
        host: Arc<dyn Host>,
    ) -> Self {
        let options = EngineOptions {
            home: AbsPath::new(home.path().join("state")).unwrap(),
            tools: Registry::default(),
            servers: Arc::new(Mcp::new(AbsPath::new(home.path().join("state")).unwrap())),
            languages: Arc::new(NoLanguages),
            host,
            models,
            policies,
            concurrency: CONCURRENCY,
            save_before_commands: true,
            deliveries: Deliveries::default(),
        };
        Self { engine: Engine::new(EngineOptions { tools, ..options }), model, safe: Probe::default(), home }
    }

    pub(super) fn root(&self) -> AbsPath {
        AbsPath::new(self.home.path()).unwrap()
    }

    pub(super) fn session(&self) -> Arc<Session> {
        let new = NewSession { roots: vec![self.root()], mode: Some(Mode::Default), model: None };
        self.engine.new_session(new).unwrap()
    }

    fn requests(&self) -> Vec<ModelRequest> {
        self.model.requests.lock().unwrap().clone()
    }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

fn call(id: &str, name: &str, what: &str) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input: json!({ "what": what }), input_error: None }
}

fn prompt(text: &str) -> Prompt {
    Prompt::from(text)
}

async fn until(events: &mut Subscription, mut found: impl FnMut(&Event) -> bool) -> Vec<EventRecord> {
    let mut seen = Vec::new();
    loop {
        let batch = tokio::time::timeout(Duration::from_secs(600), events.next()).await;
        let batch = batch.expect("the event never came").unwrap().expect("the session ended");
        let ended = batch.iter().any(|record| found(&record.event));
        seen.extend(batch);
        if ended {
            return seen;
        }
    }
}

fn is_done(event: &Event) -> bool {
    matches!(event, Event::Done { .. })
}

fn results(request: &ModelRequest) -> Vec<(String, String, bool)> {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    blocks
        .filter_map(|block| match block {
            Block::ToolResult { tool_use_id, content, is_error, images: _ } => {
                Some((tool_use_id.clone(), content.clone(), *is_error))
            }
            _ => None,
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn safe_calls_run_together_at_most_ten_and_results_come_in_call_order() {
    let calls = (0..25).map(|number| call(&format!("c{number}"), "SafeProbe", "return")).collect();
    let bench = Bench::new(vec![Say::Answer(calls)]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, is_done).await;
    assert_eq!(bench.safe.most.load(Ordering::SeqCst), 10);
    let order: Vec<_> = results(&bench.requests()[1]).into_iter().map(|(id, ..)| id).collect();
    assert_eq!(order, (0..25).map(|number| format!("c{number}")).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn every_kind_of_failed_call_becomes_an_error_result_and_the_loop_continues() {
    let mut invalid = call("c1", "Probe", "");
    if let Block::ToolUse { input_error, .. } = &mut invalid {
        *input_error = Some("expected `,` at column 3".into());
    }
    let wrong = Block::ToolUse { id: "c2".into(), name: "Probe".into(), input: json!({}), input_error: None };
    let bench = Bench::new(vec![Say::Answer(vec![
        call("c0", "Nothing", ""),
        invalid,
        wrong,
        call("c3", "Probe", "panic"),
        call("c4", "Probe", "return"),
    ])]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, is_done).await;
    let results = results(&bench.requests()[1]);
    let errors: Vec<_> = results.iter().map(|(.., is_error)| *is_error).collect();
    assert_eq!(errors, [true, true, true, true, false]);
    for ((_, content, _), expected) in results.iter().zip([
        "There is no tool `Nothing`",
        "expected `,` at column 3",
        "what",
        "a fault in kode-ls",
        "return",
    ]) {
        assert!(content.contains(expected), "{content}");
    }
    assert_eq!(session.answer(), "done");
}

#[tokio::test(start_paused = true)]
async fn prompts_handed_in_at_once_are_one_loop_and_none_is_lost() {
    let bench = Bench::new(vec![]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    let submitted: Vec<_> =
        (0..20).map(|number| session.prompts().submit(prompt(&format!("p{number}"))).unwrap()).collect();
    assert!(matches!(submitted[0], SubmitOutcome::Started(_)));
    assert!(submitted[1..].iter().all(|submitted| matches!(submitted, SubmitOutcome::Queued(_))));
    let mut done = 0;
    until(&mut events, |event| {
        done += usize::from(is_done(event));
        done == 20
    })
    .await;
    let requests = bench.requests();
    assert_eq!(requests.len(), 20);
    let last = &requests[19].messages;
    let asked: Vec<_> = last
        .iter()
        .filter(|message| message.role == Role::User)
        .map(|message| message.content[0].clone())
        .collect();
    assert_eq!(asked, (0..20).map(|number| text(&format!("p{number}"))).collect::<Vec<_>>());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_answer_keeps_its_words_and_the_next_prompt_is_valid() {
    let bench = Bench::new(vec![Say::Hang("half a thou")]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, |event| matches!(event, Event::ItemAdded { item } if matches!(item.body, ItemBody::AgentMessage { .. }))).await;
    assert!(session.turns().cancel());
    until(&mut events, |event| matches!(event, Event::Done { reason: TurnEnd::Cancelled, .. })).await;
    let items = session.snapshot(usize::MAX).items;
    assert!(items.iter().any(|item| matches!(&item.body, ItemBody::AgentMessage { text, interrupted: true, complete: true, .. } if text == "half a thou")));
    session.prompts().submit(prompt("again")).unwrap();
    until(&mut events, is_done).await;
    let last = bench.requests().pop().unwrap();
    assert_eq!(last.messages[1].content, [text("half a thou")]);
    assert_eq!(last.messages[2].content.last(), Some(&text("again")));
}

#[tokio::test(start_paused = true)]
async fn cancelling_one_call_leaves_its_siblings_alone() {
    let bench =
        Bench::new(vec![Say::Answer(vec![call("c0", "SafeProbe", "wait"), call("c1", "SafeProbe", "wait")])]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let mut started = 0;
    until(&mut events, |event| {
        started += usize::from(matches!(event, Event::ToolStart { .. }));
        started == 2
    })
    .await;
    assert!(session.turns().cancel_call(&CallId::from_external("c0")));
    until(&mut events, |event| matches!(event, Event::ToolEnd { .. })).await;
    assert!(!session.turns().cancel_call(&CallId::from_external("c0")));
    bench.safe.go.notify_waiters();
    until(&mut events, is_done).await;
    assert_eq!(results(&bench.requests()[1]).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_fault_is_tried_again_and_reported_and_a_lasting_one_ends_the_turn() {
    let fault = || Say::Fail(ModelError::new(ModelErrorKind::Server, "overloaded"));
    let bench = Bench::new(vec![
        fault(),
        fault(),
        Say::Answer(vec![text("at last")]),
        fault(),
        fault(),
        fault(),
        fault(),
    ]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    let seen = until(&mut events, is_done).await;
    assert_eq!(seen.iter().filter(|record| matches!(record.event, Event::ModelRetry { .. })).count(), 2);
    assert_eq!(session.answer(), "at last");
    session.prompts().submit(prompt("again")).unwrap();
    until(&mut events, |event| matches!(event, Event::Done { reason: TurnEnd::Error, .. })).await;
    let items = session.snapshot(usize::MAX).items;
    assert!(
        matches!(&items.last().unwrap().body, ItemBody::Notice { level: NoticeLevel::Error, text, hint: Some(_), kind: Some(NoticeKind::ApiError) } if text.contains("overloaded"))
    );
    session.prompts().submit(prompt("once more")).unwrap();
    until(&mut events, is_done).await;
    assert_eq!(session.answer(), "done");
}

/// Wherever the server is killed, and whichever line of the journal is lost: the rest is a session that continues with
/// a valid history.
#[tokio::test(start_paused = true)]
async fn a_session_killed_after_any_record_or_missing_any_continues() {
    let bench = Bench::new(vec![
        Say::Answer(vec![
            text("looking"),
            call("c0", "Probe", "return"),
            call("c1", "SafeProbe", "return"),
            call("c2", "SafeProbe", "return"),
        ]),
        Say::Answer(vec![call("d0", "Nothing", ""), text("hm")]),
        Say::Answer(vec![text("first done")]),
    ]);
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("one")).unwrap();
    session.prompts().submit(prompt("two")).unwrap();
    let mut done = 0;
    until(&mut events, |event| {
        done += usize::from(is_done(event));
        done == 2
    })
    .await;
    let whole = session.snapshot(usize::MAX).items;
    let id = session.id().clone();
    bench.engine.shutdown().await;

    let journal = journal_of(bench.home.path());
    let lines: Vec<String> = std::fs::read_to_string(&journal).unwrap().lines().map(str::to_owned).collect();
    assert!(lines.len() > 12, "{}", lines.len());
    assert_eq!(kode_journal::read::<Record>(&journal).unwrap().skipped, 0, "every record comes back");
    let mut bench = Bench::in_home(bench.home, vec![]);
    let cut = (1..=lines.len()).map(|kept| (kept, true, lines[..kept].join("\n") + "\n{\"v\":1,\"torn"));
    let holed = (1..lines.len()).map(|hole| {
        let kept: Vec<_> =
            lines.iter().enumerate().filter(|(at, _)| *at != hole).map(|(_, line)| line.as_str()).collect();
        (hole, false, kept.join("\n") + "\n")
    });
    for (kept, is_whole, damaged) in cut.chain(holed) {
        std::fs::write(&journal, damaged).unwrap();
        let session = bench.engine.load_session(&[bench.root()], &id).await.unwrap();
        let items = session.snapshot(usize::MAX).items;
        for item in &items {
            if let ItemBody::ToolCall(call) = &item.body {
                assert!(call.state.is_final(), "after {kept} records: {call:?}");
            }
        }
        // The items are those that were shown, but for a notice that the turn was cut off. They are in their order, unless
        // the line is lost that says where one began to show.
        let shown = items.iter().filter(|item| !matches!(item.body, ItemBody::Notice { .. }));
        let places = shown.map(|one| whole.iter().position(|other| one.id == other.id));
        let places: Vec<_> = places.map(|place| place.expect("an item that was shown")).collect();
        assert!(!is_whole || places.is_sorted(), "after {kept} records: {places:?}");
        let mut events = session.events().subscribe(session.events().newest(), vec![]);
        let waiting = session.snapshot(0).queue.len();
        session.prompts().submit(prompt("and now")).unwrap();
        let mut done = 0;
        until(&mut events, |event| {
            done += usize::from(is_done(event));
            done == waiting + 1
        })
        .await;
        // A new prompt comes first, and the queue continues after it.
        let request = bench.requests().remove(0);
        assert_eq!(
            request.messages.last().unwrap().content.last(),
            Some(&text("and now")),
            "after {kept} records"
        );
        bench.engine.shutdown().await;
        bench = Bench::in_home(bench.home, vec![]);
    }
}

/// A rule that spares the question does so for the files it names, not for what a link of that name leads to.
#[cfg(unix)]
#[tokio::test]
async fn a_link_does_not_lead_around_a_delivery_rule() {
    let write = |id: &str, path: &str| {
        let input = json!({ "file_path": path, "content": "new\n" });
        Block::ToolUse { id: id.into(), name: "Write".into(), input, input_error: None }
    };
    let script =
        vec![Say::Answer(vec![write("c0", "docs/plain.md")]), Say::Answer(vec![write("c1", "docs/l/x.rs")])];
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), script, built_in());
    for folder in ["docs", "src"] {
        std::fs::create_dir(bench.root().join(folder)).unwrap();
    }
    std::os::unix::fs::symlink("../src", bench.root().join("docs/l")).unwrap();
    let session = bench.session();
    let rule = EditDeliveryRule { glob: "docs/**".to_owned(), delivery: EditDelivery::Apply };
    session.gate().deliver(Deliveries::new(vec![rule]).unwrap());
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("go")).unwrap();
    until(&mut events, |event| matches!(event, Event::PermissionRequired { .. }) || is_done(event)).await;
    let asked: Vec<_> = session.requests().permissions().into_iter().map(|prompt| prompt.call).collect();
    assert_eq!(asked, [CallId::from_external("c1")]);
    assert!(bench.root().join("docs/plain.md").as_path().exists());
    assert!(!bench.root().join("src/x.rs").as_path().exists());
}

fn journal_of(home: &std::path::Path) -> std::path::PathBuf {
    let only = |folder: &std::path::Path| std::fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    only(&only(&home.join("state/sessions"))).join("journal.jsonl")
}

#[test]
fn a_title_is_the_first_line_cut_at_a_character() {
    assert_eq!(title_from("  fix it\nplease"), "fix it");
    let long = "ü".repeat(200);
    assert_eq!(title_from(&long), format!("{}…", "ü".repeat(80)));
}
