//! The engine's values on the wire.
//!
//! Rule: the JSON is written by hand; every case of the engine has a line here, and every event of the wire is known
//! to come from somewhere.

use std::collections::BTreeSet;
use std::sync::Arc;

use kode_engine::base::ids::QuestionId;
use kode_engine::base::ids::{ItemId, TaskId};
use kode_engine::base::paths::AbsPath;
use kode_engine::base::proposed::ProposedDiagnostics;
use kode_engine::base::question::{
    Question, QuestionDraft, QuestionKind, QuestionOutcome, QuestionResolution,
};
use kode_engine::base::todo::TodoReminderReason;
use kode_engine::config::extension::live::ExtensionCounts;
use kode_engine::model::ModelErrorKind;
use kode_engine::model::price::Cost;
use kode_engine::permission::{
    Offer, PermissionOutcome, PermissionPrompt, PermissionResolution, Preview, Scope,
};
use kode_engine::process::shell::TaskEnd;
use kode_engine::record::background::BackgroundTask;
use kode_engine::record::context::Pace;
use kode_engine::record::event::{
    Breakpoint, CallState, CompressionStep, Event, EventRecord, Gap, Item, ItemBody, ModelCallUsage,
    ModelRetry, NoticeLevel, ResumeStrategy, SealedCall, ToolCallItem, TurnEnd,
};
use kode_engine::record::goal::{Goal, GoalBounds, GoalCheck, GoalState};
use kode_engine::record::hook::HookOutcome;
use kode_engine::record::options::TurnOptions;
use kode_engine::record::phases::PhaseTimes;
use kode_engine::record::reminder::ReminderKind;
use kode_engine::record::resolution::ResolutionOutcome;
use kode_engine::record::team::{MemberState, TeamMember, TeamTask, TeamTaskState, TeamView};
use kode_engine::record::title::TitledBy;
use kode_engine::text::edit::ledger::review::ReviewAction;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::item::{notice_level, tool_error_kind};
use super::permission::scope;
use super::*;

const AT: &str = "2025-03-01T09:30:00Z";

fn at() -> Timestamp {
    AT.parse().unwrap()
}

fn call() -> CallId {
    CallId::from_external("call_1")
}

fn agent() -> AgentId {
    AgentId::from_external("agent_1")
}

fn goal() -> Goal {
    Goal {
        text: "All tests pass".to_owned(),
        check: GoalCheck::Command { command: "cargo test".to_owned() },
        bounds: GoalBounds { rounds: 20, cost_usd: None, minutes: Some(30) },
        turn: turn(),
        since: Timestamp::UNIX_EPOCH,
        cost_before: 0.0,
        state: GoalState::OutOfTime,
        rounds: 1,
        duration_ms: 1_800_000,
        cost_usd: 0.5,
        finding: None,
    }
}

fn team() -> TeamView {
    let main = TeamMember {
        name: "main".to_owned(),
        agent: None,
        kind: String::new(),
        description: String::new(),
        state: MemberState::Idle,
        unread: 2,
    };
    let state = MemberState::WaitingFor(Some("main".to_owned()));
    let one = TeamMember { name: "one".to_owned(), agent: Some(agent()), state, unread: 0, ..main.clone() };
    let (title, owner) = ("a".to_owned(), Some("one".to_owned()));
    let task = TeamTask { number: 1, title, state: TeamTaskState::Claimed, owner, blocked_by: vec![] };
    TeamView { members: vec![main, one], tasks: vec![task] }
}

#[test]
fn a_team_says_who_waits_for_whom() {
    let wire = serde_json::to_value(super::team::team(team())).unwrap();
    let expected = json!({
        "members": [
            { "name": "main", "state": "idle", "unread": 2 },
            { "name": "one", "agentId": "agent_1", "state": "waiting", "waitsFor": "main", "unread": 0 },
        ],
        "tasks": [{ "number": 1, "title": "a", "state": "claimed", "owner": "one" }],
    });
    assert_eq!(wire, expected);
}

fn turn() -> TurnId {
    TurnId::from_external("turn_1")
}

fn item_with(body: ItemBody) -> Item {
    Item { id: ItemId::from_external("item_1"), turn: turn(), agent: Some(agent()), timestamp: at(), body }
}

fn call_item() -> ToolCallItem {
    serde_json::from_value(json!({
        "call": "call_1", "name": "Edit", "title": "Edit a.rs", "kind": "write", "input": { "any": [1] },
        "state": "COMPLETED", "display": "done", "structured": { "patch": [null] }, "started": AT, "ended": AT,
        "audit": [{ "state": "PENDING", "at": AT }, { "state": "COMPLETED", "at": AT }],
    }))
    .unwrap()
}

fn prompt() -> PermissionPrompt {
    PermissionPrompt {
        id: PermissionId::from_external("perm_1"),
        call: call(),
        item: ItemId::from_external("item_1"),
        agent: None,
        tool: "Bash".into(),
        title: "Run ls".into(),
        reason: "commands ask".into(),
        preview: Preview::Command { command: "ls".into(), cwd: "/w".into(), sandboxed: true },
        risks: vec!["reads".into()],
        notes: Vec::new(),
        diagnostics: None,
        mode: None,
        scopes: vec![Scope::Once, Scope::Session, Scope::Project, Scope::User],
        offers: vec![Offer { scope: Scope::Session, rules: vec!["Bash(ls)".into()], spared: None }],
        input: json!({ "command": "ls" }),
        timestamp: at(),
    }
}

fn on_the_wire(event: Event) -> Value {
    let bookmark = Bookmark { seq: 7, timestamp: at() };
    let record = EventRecord { session: SessionId::from_external("ses_1"), bookmark, event };
    serde_json::to_value(super::event(record, UriNames::standard())).unwrap()
}

fn body_on_the_wire(body: ItemBody) -> Value {
    serde_json::to_value(item(item_with(body).into(), UriNames::standard())).unwrap()["body"].take()
}

/// One event of every case, with the name and channel it has on the wire.
#[expect(clippy::too_many_lines, reason = "a table")]
fn events() -> Vec<(Event, &'static str, &'static str)> {
    let item = || Arc::new(item_with(ItemBody::ToolCall(Box::new(call_item()))));
    let item_id = || ItemId::from_external("item_1");
    let (text, name, reason) = (|| "text".to_owned(), || "Bash".to_owned(), || "reason".to_owned());
    let usage = Usage { input_tokens: 1, ..Usage::default() };
    let done = Event::Done {
        turn: turn(),
        reason: TurnEnd::EndTurn,
        usage: Box::new(usage),
        cost: Cost::default(),
        duration_ms: 5,
        model_calls: 2,
        tool_calls: 1,
        phases: Box::new(PhaseTimes { model_call_ms: 4, ..PhaseTimes::default() }),
    };
    let sealed = vec![SealedCall { call: call(), state: Some(CallState::Executing) }];
    let retry = ModelRetry {
        attempt: 1,
        of: 3,
        delay_ms: 500,
        next: at(),
        left_ms: 600_000,
        kind: ModelErrorKind::RateLimited,
        reason: reason(),
        model: name(),
    };
    let decision = PermissionResolution {
        id: PermissionId::from_external("perm_1"),
        call: call(),
        outcome: PermissionOutcome::Deny,
        scope: Scope::Once,
        by: "panel".into(),
        feedback: None,
    };
    let queued =
        QueuedPrompt { id: QueueId::from_external("queue_1"), text: text(), options: TurnOptions::default() };
    let executed = Event::ToolExecuted { call: call(), name: name(), duration_ms: 9, ok: true };
    let outcome = ResolutionOutcome {
        id: ResolutionId::from_external("res_1"),
        action: Some(ReviewAction::Keep),
        resolved: vec![HunkId::from_external("hunk_1")],
        conflicts: vec![HunkId::from_external("hunk_2")],
        failed: vec![(Target::Untitled("untitled:U1".into()), reason())],
    };
    let checkpoint = CheckpointId::from_external("ckpt_1");
    let changed = Target::Untitled("untitled:U1".into());
    vec![
        (Event::TurnStarted { turn: turn() }, "turn_started", "progress"),
        (
            Event::BreakpointChanged {
                turn: turn(),
                breakpoint: Breakpoint::PreModel,
                call: None,
                model_call: Some(1),
                max_model_calls: Some(100),
            },
            "breakpoint_changed",
            "monitor",
        ),
        (Event::ItemAdded { item: item() }, "item_added", "progress"),
        (Event::ItemUpdated { item: item() }, "item_updated", "progress"),
        (Event::TextChunk { item: item_id(), text: text() }, "text_chunk", "progress"),
        (Event::ThinkChunk { item: item_id(), text: text() }, "think_chunk", "progress"),
        (Event::ToolStart { item: item() }, "tool:start", "progress"),
        (Event::ToolProgress { item: item_id(), call: call(), text: text() }, "tool:progress", "progress"),
        (Event::ToolEnd { item: item() }, "tool:end", "progress"),
        (done, "done", "progress"),
        (Event::PermissionRequired { prompt: Box::new(prompt()) }, "permission_required", "control"),
        (
            Event::PermissionUpdated {
                id: PermissionId::from_external("perm_1"),
                diagnostics: ProposedDiagnostics { summary: "adds 1 error".into(), lines: vec![] },
            },
            "permission_updated",
            "control",
        ),
        (Event::PermissionDecided { decision }, "permission_decided", "control"),
        (Event::QuestionAsked { question: Box::new(question()) }, "question_asked", "control"),
        (Event::QuestionAnswered { resolved: resolved().into() }, "question_answered", "control"),
        (Event::TodoChanged { todos: vec![] }, "todo_changed", "monitor"),
        (Event::GoalChanged { goal: Some(Box::new(goal())) }, "goal_changed", "monitor"),
        (Event::TeamChanged { team: Some(Box::new(team())) }, "team_changed", "monitor"),
        (Event::McpChanged { servers: vec![] }, "mcp_changed", "monitor"),
        (Event::TodoReminder { reason: TodoReminderReason::Initial }, "todo_reminder", "monitor"),
        (
            Event::Reminder { kind: ReminderKind::FilesChanged, agent: Some(agent()), messages: 3 },
            "reminder",
            "monitor",
        ),
        (
            Event::HookRan {
                event: text(),
                name: name(),
                duration_ms: 3,
                outcome: HookOutcome::Blocked,
                message: None,
            },
            "hook_ran",
            "monitor",
        ),
        (Event::StateChanged { state: RunState::Paused }, "state_changed", "monitor"),
        (
            Event::ModeChanged {
                mode: Mode::Plan,
                model: name(),
                effort: None,
                output_style: None,
                sandbox: None,
            },
            "mode_changed",
            "monitor",
        ),
        (
            Event::QueueChanged { queue: vec![queued.clone()], steering: vec![queued], paused: true },
            "queue_changed",
            "monitor",
        ),
        (Event::TitleChanged { title: name(), by: Some(TitledBy::Model) }, "title_changed", "monitor"),
        (Event::ArchivedChanged { archived: true }, "archived_changed", "monitor"),
        (Event::DraftChanged { draft: None }, "draft_changed", "monitor"),
        (Event::ToolQueued { call: call(), name: name(), queue_length: 3 }, "tool:queued", "monitor"),
        (Event::ToolTimeout { call: call(), name: name() }, "tool:timeout", "monitor"),
        (Event::ToolDenied { call: call(), name: name(), reason: reason() }, "tool:denied", "monitor"),
        (executed, "tool_executed", "monitor"),
        (Event::BackgroundStarted { task: task(None).into() }, "background_started", "monitor"),
        (Event::BackgroundEnded { task: task(Some(TaskEnd::Killed)).into() }, "background_ended", "monitor"),
        (Event::EditsChanged { targets: vec![] }, "edits_changed", "monitor"),
        (Event::EditsResolved { outcome: outcome.into() }, "edits_resolved", "monitor"),
        (Event::CheckpointCreated { checkpoint, turn: turn() }, "checkpoint_created", "monitor"),
        (Event::Rewound { item: ItemId::from_external("item_1") }, "rewound", "progress"),
        (Event::FileChanged { target: changed, deleted: true }, "file_changed", "monitor"),
        (
            Event::ExtensionsChanged { counts: ExtensionCounts::default(), problems: vec![] },
            "extensions_changed",
            "monitor",
        ),
        (
            Event::ConfigChanged { files: vec![], problems: vec![], withheld: vec![] },
            "config_changed",
            "monitor",
        ),
        (Event::TrustRequired { waiting: Default::default() }, "trust_required", "monitor"),
        (Event::SideAnswer { ask: name(), text: text() }, "side_answer", "progress"),
        (
            Event::SubagentStarted { agent: agent(), call: call(), kind: name(), description: text() },
            "subagent_started",
            "monitor",
        ),
        (
            Event::SubagentEnded { agent: agent(), ok: true, usage, duration_ms: 5 },
            "subagent_ended",
            "monitor",
        ),
        (
            Event::TokenUsage {
                turn: turn(),
                agent: None,
                call: Box::new(ModelCallUsage {
                    usage,
                    model: name(),
                    provider: name(),
                    cost: Some(0.5),
                    context: None,
                    pace: Pace::default(),
                }),
            },
            "token_usage",
            "monitor",
        ),
        (
            Event::ContextCompression {
                turn: turn(),
                agent: None,
                step: CompressionStep::Progress { written: 1 },
            },
            "context_compression",
            "monitor",
        ),
        (Event::ModelRetry { retry: retry.into() }, "model_retry", "monitor"),
        (
            Event::AgentResumed {
                sealed,
                strategy: ResumeStrategy::Crash,
                skipped_records: 2,
                breakpoint: Breakpoint::ToolExecuting,
            },
            "agent_resumed",
            "monitor",
        ),
        (Event::LeaseChanged { writer: None, is_mine: false }, "lease_changed", "monitor"),
        (Event::StorageFailure { message: text(), recovered: true }, "storage_failure", "monitor"),
        (Event::Error { message: text(), hint: text() }, "error", "monitor"),
    ]
}

fn question() -> Question {
    Question {
        id: QuestionId::from_external("question_1"),
        call: Some(call()),
        item: Some(ItemId::from_external("item_1")),
        draft: QuestionDraft {
            kind: QuestionKind::Choice,
            questions: vec![],
            plan: None,
            candidates: vec![],
            until: None,
            page: None,
        },
        timestamp: at(),
    }
}

fn resolved() -> QuestionResolution {
    QuestionResolution {
        id: QuestionId::from_external("question_1"),
        call: Some(call()),
        outcome: QuestionOutcome::Cancelled,
        answers: vec![],
        feedback: None,
        plan: None,
        mode: None,
        by: "cancel".to_owned(),
    }
}

fn task(end: Option<TaskEnd>) -> BackgroundTask {
    BackgroundTask {
        id: TaskId::numbered(1),
        call: call(),
        title: "npm run dev".to_owned(),
        started: at(),
        ended: end.map(|end| (at(), end)),
    }
}

#[test]
fn every_event_has_its_name_and_channel() {
    for (event, name, channel) in events() {
        let wire = on_the_wire(event);
        assert_eq!((wire["event"]["type"].as_str(), wire["channel"].as_str()), (Some(name), Some(channel)));
        assert_eq!(wire["sessionId"], "ses_1");
        assert_eq!(wire["bookmark"], json!({ "seq": 7, "timestamp": AT }));
    }
}

#[test]
fn every_event_of_the_wire_comes_from_the_engine_but_the_gap() {
    let schema: Value =
        serde_json::from_str(include_str!("../../../protocol/generated/schema.json")).unwrap();
    let known = schema["$defs"]["Event"]["oneOf"].as_array().unwrap().iter();
    let known: BTreeSet<_> =
        known.map(|case| case["properties"]["type"]["const"].as_str().unwrap()).collect();
    let made = events().into_iter().map(|(_, name, _)| name).chain(["gap"]);
    assert_eq!(made.collect::<BTreeSet<_>>(), known);
}

#[test]
fn facts_of_an_event_pass_unchanged() {
    let body = |wanted: &str| {
        let event = events().into_iter().find(|(_, name, _)| *name == wanted).unwrap().0;
        on_the_wire(event)["event"].take()
    };
    assert_eq!(
        body("done"),
        json!({
            "type": "done", "turnId": "turn_1", "stopReason": "end_turn", "durationMs": 5, "modelCalls": 2,
            "toolCalls": 1, "cost": 0.0,
            "phases": {
                "compactCheckMs": 0, "promptBuildMs": 0, "normaliseMs": 0, "modelCallMs": 4, "toolExecutionMs": 0,
                "nextMs": 0,
            },
            "usage": { "inputTokens": 1, "outputTokens": 0, "cacheReadTokens": 0, "cacheWriteTokens": 0, "thinkingTokens": 0 },
        })
    );
    assert_eq!(
        body("permission_decided"),
        json!({
            "type": "permission_decided", "permissionId": "perm_1", "callId": "call_1", "outcome": "deny",
            "scope": "once", "by": "panel",
        })
    );
    assert_eq!(
        body("edits_resolved"),
        json!({
            "type": "edits_resolved", "resolutionId": "res_1", "action": "keep", "resolved": ["hunk_1"],
            "conflicts": ["hunk_2"], "failed": [{ "uri": "untitled:U1", "reason": "reason" }],
        })
    );
    assert_eq!(
        body("file_changed"),
        json!({ "type": "file_changed", "uri": "untitled:U1", "deleted": true })
    );
    assert_eq!(
        body("background_ended")["task"],
        json!({
            "taskId": "bash_1", "callId": "call_1", "title": "npm run dev", "startedAt": AT,
            "end": { "endedAt": AT, "status": "killed" },
        })
    );
    assert_eq!(
        body("tool:queued"),
        json!({ "type": "tool:queued", "callId": "call_1", "name": "Bash", "queueLength": 3 })
    );
}

#[test]
fn a_gap_is_at_the_place_of_the_client() {
    let reported = gap(&SessionId::from_external("ses_1"), Gap { since: 3, oldest: 9 });
    assert_eq!((reported.bookmark.seq, reported.channel), (3, wire::Channel::Monitor));
    assert_eq!(reported.event, wire::Event::Gap(wire::Gap { since: 3, oldest: 9 }));
}

#[test]
fn a_tool_call_keeps_its_input_and_result_as_they_are() {
    assert_eq!(
        body_on_the_wire(ItemBody::ToolCall(Box::new(call_item()))),
        json!({
            "type": "toolCall", "callId": "call_1", "name": "Edit", "title": "Edit a.rs", "kind": "write",
            "input": { "any": [1] }, "state": "COMPLETED", "display": "done",
            "structured": { "patch": [null] }, "startedAt": AT, "endedAt": AT,
            "audit": [{ "state": "PENDING", "at": AT }, { "state": "COMPLETED", "at": AT }],
        })
    );
}

#[test]
fn every_item_has_its_type() {
    let text = || "text".to_owned();
    let bodies = [
        (ItemBody::user_message(text()), json!({ "type": "userMessage", "text": "text" })),
        (
            ItemBody::AgentMessage {
                text: text(),
                complete: true,
                interrupted: false,
                model: None,
                duration_ms: Some(7),
            },
            json!({
                "type": "agentMessage", "text": "text", "complete": true, "interrupted": false, "durationMs": 7,
            }),
        ),
        (
            ItemBody::Thinking { text: text(), complete: false },
            json!({ "type": "thinking", "text": "text", "complete": false }),
        ),
        (
            ItemBody::Notice { level: NoticeLevel::Warning, text: text(), hint: None, kind: None },
            json!({ "type": "notice", "level": "warning", "text": "text" }),
        ),
    ];
    for (body, expected) in bodies {
        assert_eq!(body_on_the_wire(body), expected);
    }
}

#[test]
fn a_prompt_carries_all_that_an_answer_needs() {
    let session = SessionId::from_external("ses_1");
    assert_eq!(
        serde_json::to_value(super::prompt(&session, prompt())).unwrap(),
        json!({
            "sessionId": "ses_1", "permissionId": "perm_1", "callId": "call_1", "itemId": "item_1",
            "tool": "Bash", "title": "Run ls", "reason": "commands ask",
            "preview": { "type": "command", "command": "ls", "cwd": "/w", "sandboxed": true }, "risks": ["reads"],
            "scopes": ["once", "session", "project", "user"],
            "offers": [{ "scope": "session", "rules": ["Bash(ls)"] }],
            "text": "Run ls\n! reads\nIn /w:\n$ ls\nReason: commands ask",
            "input": { "command": "ls" }, "timestamp": AT,
        })
    );
}

#[test]
fn names_of_modes_states_and_kinds_are_the_engines_own() {
    for from in Mode::ALL {
        assert_eq!(serde_json::to_value(mode(from)).unwrap(), from.name());
        assert_eq!(mode_from_wire(mode(from)), from);
    }
    for from in [Scope::Once, Scope::Session, Scope::Project, Scope::User] {
        assert_eq!(scope_from_wire(scope(from)), from);
    }
    fn each<T: DeserializeOwned + Copy, W: Serialize>(names: &[&str], convert: impl Fn(T) -> W) {
        for name in names {
            let engine: T = serde_json::from_value(json!(name)).unwrap();
            assert_eq!(serde_json::to_value(convert(engine)).unwrap(), *name);
        }
    }
    each(
        &["PENDING", "APPROVAL_REQUIRED", "EXECUTING", "COMPLETED", "FAILED", "DENIED", "SEALED"],
        call_state,
    );
    each(
        &[
            "end_turn",
            "max_tokens",
            "max_turns",
            "refusal",
            "cancelled",
            "error",
            "repetition",
            "incomplete_intent",
            "not_chosen",
            "chat_disabled",
        ],
        turn::stop_reason,
    );
    each(
        &["apiError", "fallback", "continued", "incompleteIntent", "turnLimit", "interrupted"],
        turn::notice_kind,
    );
    each(&["READY", "WORKING", "PAUSED"], run_state);
    each(&["info", "warning", "error"], notice_level);
    each(&["readOnly", "write", "execute"], tool_kind);
    each(&["unknownTool", "invalidInput", "notFound", "forbidden", "mismatch"], tool_error_kind);
    each(&["conflict", "denied", "timeout", "cancelled", "failed"], tool_error_kind);
}

#[cfg(unix)]
#[test]
fn paths_become_encoded_uris_and_untitled_documents_keep_theirs() {
    for (path, expected) in [
        ("/w/a b.rs", "file:///w/a%20b.rs"),
        ("/w/ü#?%.rs", "file:///w/%C3%BC%23%3F%25.rs"),
        ("/", "file:///"),
    ] {
        let target = Target::File(AbsPath::new(path).unwrap());
        assert_eq!(UriNames::standard().uri(&target), wire::Uri::new(expected));
    }
    for untitled in ["untitled:Untitled-1", "untitled:/w/A b"] {
        let target = Target::Untitled(untitled.into());
        assert_eq!(UriNames::standard().uri(&target), wire::Uri::new(untitled));
    }
}
