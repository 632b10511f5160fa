//! Conversations that are compacted: when, what stays, what fails, and what can be taken back.

mod files;
mod survival;

use super::*;
use crate::turn::compact;
use kode_journal as journal;
use kode_mcp::Mcp;
use kode_model::History;
use kode_model::profile::Profile;
use kode_providers::{anthropic, chat, responses};
use kode_record::compaction::Cause;
use kode_record::event::CompressionStep;
use kode_tool::languages::NoLanguages;
use kode_tools::built_in::built_in;

/// A model that answers by a script and summarizes by copying what it is given.
struct Copyist {
    name: &'static str,
    wire: Wire,
    script: Mutex<VecDeque<(Vec<Block>, u64)>>,
    /// The content of requests that are no summaries.
    requests: Mutex<Vec<Vec<Message>>>,
    asked: Mutex<Vec<String>>,
    fails: bool,
    hangs: bool,
}

impl Default for Copyist {
    fn default() -> Self {
        Self {
            name: kode_model::profile::DEMO_MODEL,
            wire: Wire::AnthropicMessages,
            script: Mutex::default(),
            requests: Mutex::default(),
            asked: Mutex::default(),
            fails: false,
            hangs: false,
        }
    }
}

impl Copyist {
    /// One that says this, and reports this many tokens for each request.
    fn saying(script: Vec<(Vec<Block>, u64)>) -> Self {
        Self { script: Mutex::new(script.into()), ..Self::default() }
    }
}

/// Number of characters that are copied.
const COPIED: usize = 1_200;

#[async_trait]
impl Model for Copyist {
    fn name(&self) -> &str {
        self.name
    }

    fn wire(&self) -> Wire {
        self.wire
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::ALL
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        _: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        assert_sendable(&request.messages);
        let answer = |content: Vec<Block>, input_tokens| {
            let usage = Usage { input_tokens, ..Usage::default() };
            let calls = content.iter().any(|block| matches!(block, Block::ToolUse { .. }));
            let stop_reason = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
            Ok(ModelResponse { id: None, content, stop_reason, usage })
        };
        if !request.system[0].starts_with("You write the record") {
            self.requests.lock().unwrap().push(request.messages.to_vec());
            let next = self.script.lock().unwrap().pop_front();
            let (content, tokens) = next.unwrap_or((vec![text("done")], 0));
            return answer(content, tokens);
        }
        let Block::Text { text: asked } = &request.messages[0].content[0] else { panic!("no transcript") };
        self.asked.lock().unwrap().push(asked.clone());
        if self.fails {
            return Err(ModelError::new(ModelErrorKind::BadRequest, "the summarizer is out"));
        }
        if self.hangs {
            cancel.cancelled().await;
            return Err(ModelError::new(ModelErrorKind::Cancelled, "cancelled"));
        }
        let copied: String = asked.chars().take(COPIED).collect();
        let headings = compact::HEADINGS.map(|heading| format!("# {heading}\n{heading}\n"));
        answer(vec![text(&format!("{}\n{copied}", headings.concat()))], 10)
    }
}

struct Office {
    engine: Engine,
    model: Arc<Copyist>,
    home: tempfile::TempDir,
}

impl Office {
    fn new(window: u64, model: Copyist) -> Self {
        Self::with(
            window,
            model,
            Registry::default(),
            Arc::new(NoEditor),
            Arc::new(NoPolicyProvider),
            |models, _| models,
        )
    }

    fn with(
        window: u64,
        model: Copyist,
        tools: Registry,
        host: Arc<dyn kode_text::host::Host>,
        policies: Arc<dyn PolicyProvider>,
        models: impl FnOnce(Models, &Arc<Copyist>) -> Models,
    ) -> Self {
        let (home, model) = (tempfile::tempdir().unwrap(), Arc::new(model));
        let profile = Profile { context_window: window, max_tokens: 1_000, ..Profile::demo() };
        let connected = Models::in_process(profile, Arc::clone(&model) as Arc<dyn Model>);
        let options = EngineOptions {
            home: AbsPath::new(home.path().join("state")).unwrap(),
            tools: Registry::default(),
            servers: Arc::new(Mcp::new(AbsPath::new(home.path().join("state")).unwrap())),
            languages: Arc::new(NoLanguages),
            host,
            models: models(connected, &model),
            policies,
            concurrency: CONCURRENCY,
            save_before_commands: true,
            deliveries: Deliveries::default(),
        };
        Self { engine: Engine::new(EngineOptions { tools, ..options }), model, home }
    }

    fn session(&self) -> Arc<Session> {
        let roots = vec![AbsPath::new(self.home.path()).unwrap()];
        self.engine.new_session(NewSession { roots, mode: Some(Mode::Default), model: None }).unwrap()
    }

    fn last_request(&self) -> String {
        format!("{:?}", self.model.requests.lock().unwrap().last().unwrap())
    }
}

/// Submits a prompt and waits for the end of its turn.
async fn turn(session: &Session, text: &str) -> Vec<EventRecord> {
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt(text)).unwrap();
    until(&mut events, is_done).await
}

fn steps(events: &[EventRecord]) -> Vec<CompressionStep> {
    let step = |record: &EventRecord| match &record.event {
        Event::ContextCompression { step, .. } => Some(step.clone()),
        _ => None,
    };
    events.iter().filter_map(step).collect()
}

fn notices(session: &Session) -> Vec<(NoticeLevel, String)> {
    let notice = |item: Arc<Item>| match &item.body {
        ItemBody::Notice { level, text, .. } => Some((*level, text.clone())),
        _ => None,
    };
    session.snapshot(usize::MAX).items.into_iter().filter_map(notice).collect()
}

fn history(session: &Session) -> History {
    session.core().state().main.messages.clone()
}

fn long(about: &str) -> String {
    format!("{about}: {}", "lorem ipsum dolor sit amet ".repeat(60))
}

#[tokio::test(start_paused = true)]
async fn a_conversation_is_compacted_before_the_call_that_comes_to_the_threshold() {
    let office = Office::new(20_000, Copyist::default());
    let session = office.session();
    turn(&session, "FIRST build the parser").await;
    let mut before = history(&session);
    let mut last = Vec::new();
    for round in 0..100 {
        before = history(&session);
        last = turn(&session, &long(&format!("prompt {round}"))).await;
        if !steps(&last).is_empty() {
            break;
        }
    }
    let steps = steps(&last);
    let CompressionStep::Started { cause: Cause::Threshold, tokens, window: 20_000, .. } = steps[0] else {
        panic!("{steps:?}")
    };
    assert!((16_000..17_500).contains(&tokens), "{tokens}");
    let Some(CompressionStep::Done { compaction }) = steps.last() else { panic!("{steps:?}") };
    assert!(compaction.tokens.after < compaction.tokens.before / 2, "{compaction:?}");
    assert!(notices(&session)[0].1.starts_with("Compacted "), "{:?}", notices(&session));
    let request = office.last_request();
    assert!(request.contains("FIRST build the parser") && request.contains("Next step"), "{request}");
    assert!(request.contains(&long("prompt ")[8..]), "the newest prompt is whole");
    let window = session.history().window(None, &compaction.window).await.unwrap();
    assert_eq!(window[..before.len()], before[..], "the journal gives back what was there");
    // The fold of a later process equals the current one.
    let now = history(&session);
    session.close();
    session.closed().await;
    let roots = [AbsPath::new(office.home.path()).unwrap()];
    let again = office.engine.load_session(&roots, session.id()).await.unwrap();
    assert_eq!(history(&again), now);
    assert_eq!(again.history().window(None, &compaction.window).await.unwrap(), window);
}

#[tokio::test(start_paused = true)]
async fn what_a_provider_reports_counts_and_not_the_estimate() {
    let model = Copyist::default();
    // Four times less than estimated is believed, and so is four times more.
    model.script.lock().unwrap().extend([(vec![text("one")], 1_900), (vec![text("two")], 0)]);
    let office = Office::new(2_000, model);
    let session = office.session();
    turn(&session, &long("first")).await;
    let use_ = session.context_use().unwrap();
    assert_eq!((use_.source, use_.window), (kode_record::tokens::CountSource::Reported, 2_000));
    assert!((1_900..1_950).contains(&use_.tokens), "{use_:?}");
    assert!(
        !steps(&turn(&session, "more").await).is_empty(),
        "the next call is too long by what was reported"
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_summary_the_latest_third_is_kept_and_both_sides_are_warned() {
    let office = Office::new(200_000, Copyist { fails: true, ..Copyist::default() });
    let session = office.session();
    for round in 0..20 {
        turn(&session, &long(&format!("prompt {round}"))).await;
    }
    let before = history(&session);
    turn(&session, "/compact").await;
    let after = history(&session);
    assert_eq!(before.len(), 40);
    assert_eq!(after[1..], before[29..], "twelve of forty, and the message the boundary moved to");
    let Block::Text { text: warning } = &after[0].content[0] else { panic!("no warning") };
    assert!(warning.contains("Warning") && warning.contains("prompt 0: lorem"), "{warning}");
    let notices = notices(&session);
    assert!(matches!(&notices[0], (NoticeLevel::Warning, text) if text.contains("the summarizer is out")));
}

#[tokio::test(start_paused = true)]
async fn cancelling_leaves_the_history_as_it_was() {
    let office = Office::new(200_000, Copyist { hangs: true, ..Copyist::default() });
    let session = office.session();
    for round in 0..5 {
        turn(&session, &long(&format!("prompt {round}"))).await;
    }
    let before = history(&session);
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt("/compact")).unwrap();
    until(&mut events, |event| matches!(event, Event::ContextCompression { .. })).await;
    session.turns().cancel();
    let ended = until(&mut events, is_done).await;
    assert!(
        ended.iter().any(|record| matches!(record.event, Event::Done { reason: TurnEnd::Cancelled, .. }))
    );
    assert_eq!(history(&session), before);
}

#[tokio::test(start_paused = true)]
async fn the_command_says_nothing_to_the_model_and_hands_its_focus_to_the_summary() {
    let office = Office::new(200_000, Copyist::default());
    let session = office.session();
    for round in 0..8 {
        turn(&session, &long(&format!("prompt {round}"))).await;
    }
    let before = history(&session);
    turn(&session, "/compact the parser").await;
    assert!(office.model.asked.lock().unwrap()[0].ends_with("kept above all: the parser"));
    turn(&session, "go on").await;
    assert!(!office.last_request().contains("/compact"));
    // The command is a prompt like others: going back before it brings the messages back.
    let checkpoint = &session.edits().checkpoints()[8];
    assert_eq!(checkpoint.title, "/compact the parser");
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session
        .edits()
        .restore(&checkpoint.id, review::RestoreWhat::Conversation, review::UserEdits::Keep)
        .unwrap();
    until(&mut events, |event| matches!(event, Event::EditsResolved { .. })).await;
    assert_eq!(history(&session), before);
}

#[tokio::test(start_paused = true)]
async fn after_fifty_compactions_the_first_instruction_is_known() {
    let office = Office::new(200_000, Copyist::default());
    let session = office.session();
    turn(&session, "FIRST build the parser and leave the lexer alone").await;
    for round in 0..50 {
        for _ in 0..3 {
            turn(&session, &long(&format!("prompt {round}"))).await;
        }
        let done = turn(&session, "/compact").await;
        assert!(matches!(steps(&done).last(), Some(CompressionStep::Done { .. })), "round {round}");
    }
    turn(&session, "go on").await;
    let request = office.last_request();
    assert!(request.contains("FIRST build the parser and leave the lexer alone"));
    assert!(request.len() < 40_000, "{}", request.len());
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_made_shorter_is_tried_three_times() {
    let model = Copyist::default();
    let office = Office::new(600, model);
    let session = office.session();
    for round in 0..6 {
        turn(&session, &format!("{} {round}", "word ".repeat(200))).await;
    }
    let asked = office.model.asked.lock().unwrap().len();
    // Each prompt is a change that allows for more tries; none of them continues without end.
    assert!(asked <= 6 * 6, "{asked}");
}

#[tokio::test(start_paused = true)]
async fn a_round_adds_to_the_history_and_copies_none_of_it() {
    let office = Office::new(200_000, Copyist::default());
    let session = office.session();
    turn(&session, "first").await;
    office.model.requests.lock().unwrap().clear();
    let place = || match &session.core().state().main.messages[0].content[0] {
        Block::Text { text } => text.as_ptr() as usize,
        _ => 0,
    };
    let first = place();
    for round in 0..30 {
        turn(&session, &format!("prompt {round}")).await;
    }
    assert_eq!(place(), first);
}

#[tokio::test(start_paused = true)]
async fn the_journal_of_a_compaction_can_be_read_again_line_by_line() {
    let office = Office::new(200_000, Copyist::default());
    let session = office.session();
    for round in 0..4 {
        turn(&session, &long(&format!("prompt {round}"))).await;
    }
    turn(&session, "/compact").await;
    let read = journal::read(session.core().journal().path()).unwrap();
    assert_eq!(read.skipped, 0);
    let compacted = read.records.iter().find_map(|record| match record {
        Record::Compacted { compaction } => Some(compaction),
        _ => None,
    });
    let compaction = compacted.unwrap();
    assert_eq!((compaction.cause, compaction.messages.before), (Cause::Asked, 8));
    assert!(compaction.summary.as_ref().unwrap().contains("Current work"));
    assert_eq!(compaction.model.as_deref(), Some(kode_model::profile::DEMO_MODEL));
}

/// Writes the body of a request to a model.
type Written = fn(&str, &ModelRequest) -> serde_json::Value;

/// Takes out the marks for the provider's cache.
fn without_marks(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(fields) => {
            fields.shift_remove("cache_control");
            fields.values_mut().for_each(without_marks);
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(without_marks),
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn each_request_of_a_turn_begins_with_the_one_before_byte_by_byte() {
    let calls = (0..30).map(|round| {
        let input = json!({ "pattern": format!("*.{round}") });
        let call = Block::ToolUse { id: format!("c{round}"), name: "Glob".into(), input, input_error: None };
        Say::Answer(vec![text("looking"), call])
    });
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), calls.collect(), built_in());
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    session.prompts().submit(prompt("look")).unwrap();
    until(&mut events, is_done).await;
    let requests = bench.requests();
    assert_eq!(requests.len(), 31);
    assert!(
        requests.iter().any(|request| !request.reminders.is_empty()),
        "reminders stand behind all that is kept"
    );
    let adapters: [(Written, &str); 3] =
        [(anthropic::body_json, "messages"), (responses::body_json, "input"), (chat::body_json, "messages")];
    for (written, history) in adapters {
        let mut before: Option<(String, String)> = None;
        for request in &requests {
            let bare = ModelRequest { reminders: vec![], ..request.clone() };
            let mut body = written("m", &bare);
            without_marks(&mut body);
            let messages = body.as_object_mut().unwrap().shift_remove(history).unwrap().to_string();
            let rest = body.to_string();
            if let Some((rest_before, messages_before)) = &before {
                assert_eq!(*rest_before, rest);
                assert!(
                    messages.starts_with(messages_before.trim_end_matches(']')),
                    "{messages_before}\n{messages}"
                );
            }
            before = Some((rest, messages));
        }
    }
}
