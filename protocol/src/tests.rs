//! The messages on the wire.
//!
//! Rule: the JSON here is written by hand and is what clients in the field send and read; a test that fails says
//! that they would break.

use std::collections::BTreeSet;

use crate::queue::QueueOp;
use crate::{
    AgentEventParams, Amended, BackgroundExit, ClientKode, DocumentText, DocumentTextParams, EditSelection,
    ErrorData, ErrorKind, Event, InputPart, ItemBody, ListCheckpointsResult, ListEditsParams,
    ListEditsResult, ListSessionsParams, LoadSessionParams, MoveToBackgroundParams, MoveToBackgroundResult,
    NOTIFICATIONS, NewSessionParams, Preview, REQUESTS, ReadOutputParams, ReadOutputResult, Resolution,
    ResolveEditsParams, ResolveEditsResult, RespondPermissionParams, RestoreCheckpointParams,
    RestoreCheckpointResult, RevertEditsParams, SCHEMA_HASH, SERVER_REQUESTS, SaveDocumentsParams,
    SaveDocumentsResult, Scope, ServerKode, Snapshot, StartTurnParams, StartTurnResult, UserEdits, code,
};
use schemars::{JsonSchema, schema_for};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Reads the JSON and writes it again: nothing is lost, added or renamed.
fn check<T: Serialize + DeserializeOwned>(wire: &Value) -> T {
    let read: T = serde_json::from_value(wire.clone()).unwrap_or_else(|error| panic!("{error} in {wire}"));
    assert_eq!(serde_json::to_value(&read).unwrap(), *wire);
    read
}

fn read<T: DeserializeOwned>(wire: Value) -> T {
    serde_json::from_value(wire).unwrap_or_else(|error| panic!("{error}"))
}

/// The tags of a union, as its schema has them.
fn tags<T: JsonSchema>(tag: &str) -> BTreeSet<String> {
    let schema = schema_for!(T).to_value();
    let cases = schema["oneOf"].as_array().unwrap().iter();
    cases.map(|case| case["properties"][tag]["const"].as_str().unwrap().to_owned()).collect()
}

/// Checks one JSON per case, and that no case is missing.
fn check_union<T: Serialize + DeserializeOwned + JsonSchema>(tag: &str, cases: &[Value]) {
    cases.iter().for_each(|case| drop(check::<T>(case)));
    let shown: BTreeSet<_> = cases.iter().map(|case| case[tag].as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, tags::<T>(tag));
}

const AT: &str = "2025-03-01T09:30:00Z";

fn question() -> Value {
    json!({
        "sessionId": "ses_1", "questionId": "ques_1", "kind": "plan", "callId": "call_1", "itemId": "item_1",
        "questions": [{
            "question": "Which?", "header": "Color", "options": [{ "label": "red", "description": "warm" }],
            "multiSelect": false,
        }],
        "plan": "1. Paint.", "timestamp": AT,
    })
}

fn todo() -> Value {
    json!({ "content": "Paint", "status": "in_progress", "activeForm": "Painting" })
}

fn counts() -> Value {
    json!({ "total": 1, "pending": 0, "inProgress": 1, "completed": 0 })
}

fn item(body: Value) -> Value {
    json!({ "itemId": "item_1", "turnId": "turn_1", "timestamp": AT, "body": body })
}

fn ended_call() -> Value {
    json!({
        "type": "toolCall", "callId": "call_1", "name": "Edit", "title": "Edit a.rs", "kind": "write",
        "input": { "file_path": "a.rs" }, "state": "FAILED", "display": "no match",
        "structured": { "matches": 0 }, "error": "mismatch", "startedAt": AT, "endedAt": AT,
        "audit": [{ "state": "PENDING", "at": AT }, { "state": "FAILED", "at": AT }],
    })
}

fn item_bodies() -> Vec<Value> {
    vec![
        json!({ "type": "userMessage", "text": "hello" }),
        json!({ "type": "userMessage", "text": "hello", "attachments": [
            { "kind": "file", "label": "a.rs#L1-2", "uri": "file:///w/a.rs", "lines": 2, "bytes": 9, "cut": true },
            { "kind": "image", "label": "picture", "bytes": 0, "cut": false, "problem": "too large" },
        ] }),
        json!({ "type": "userMessage", "text": "/look a", "command":
            { "name": "look", "arguments": "a", "source": "skill" } }),
        json!({ "type": "command", "name": "clear", "arguments": "", "text": "A new session begins.", "data": { "a": 1 },
            "failed": true, "goTo": "ses_2" }),
        json!({ "type": "agentMessage", "text": "hi", "complete": true, "interrupted": false }),
        json!({ "type": "thinking", "text": "hm", "complete": false }),
        ended_call(),
        json!({
            "type": "toolCall", "callId": "call_2", "name": "Nonsense", "title": "Nonsense", "input": {},
            "state": "PENDING", "display": "", "audit": [],
        }),
        json!({ "type": "notice", "level": "warning", "text": "cut", "hint": "send `continue`", "kind": "continued" }),
        json!({ "type": "notice", "level": "info", "text": "compacted" }),
    ]
}

fn prompt() -> Value {
    json!({
        "sessionId": "ses_1", "permissionId": "perm_1", "callId": "call_1", "itemId": "item_1", "tool": "Bash",
        "title": "Run ls", "reason": "commands ask in this mode",
        "preview": { "type": "command", "command": "ls", "cwd": "/w", "sandboxed": true }, "risks": ["reads"],
        "scopes": ["once", "session"], "offers": [], "text": "", "input": { "command": "ls" }, "timestamp": AT,
    })
}

fn task() -> Value {
    json!({ "taskId": "bash_1", "callId": "call_1", "title": "npm run dev", "startedAt": AT })
}

fn ended_task() -> Value {
    let mut task = task();
    task["end"] = json!({ "endedAt": AT, "status": "exited", "exitCode": 1 });
    task
}

fn compression(step: Value) -> Value {
    json!({ "type": "context_compression", "turnId": "turn_1", "step": step })
}

fn usage() -> Value {
    json!({ "inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 4, "thinkingTokens": 5 })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn every_event_keeps_its_form() {
    let item = item(ended_call());
    check_union::<Event>(
        "type",
        &[
            json!({ "type": "turn_started", "turnId": "turn_1" }),
            json!({
                "type": "breakpoint_changed", "turnId": "turn_1", "breakpoint": "PRE_MODEL", "modelCall": 1,
                "maxModelCalls": 100,
            }),
            json!({ "type": "item_added", "item": item }),
            json!({ "type": "item_updated", "item": item }),
            json!({ "type": "text_chunk", "itemId": "item_1", "text": "a" }),
            json!({ "type": "think_chunk", "itemId": "item_1", "text": "a" }),
            json!({ "type": "side_answer", "askId": "1", "text": "a" }),
            json!({ "type": "tool:start", "item": item }),
            json!({ "type": "tool:progress", "itemId": "item_1", "callId": "call_1", "text": "50%" }),
            json!({ "type": "tool:end", "item": item }),
            json!({
                "type": "done", "turnId": "turn_1", "stopReason": "end_turn", "usage": usage(),
                "durationMs": 5, "modelCalls": 2, "toolCalls": 1,
                "phases": {
                    "compactCheckMs": 0, "promptBuildMs": 1, "normaliseMs": 0, "modelCallMs": 3, "toolExecutionMs": 1,
                    "nextMs": 0,
                },
            }),
            json!({ "type": "permission_required", "prompt": prompt() }),
            json!({
                "type": "permission_updated", "permissionId": "perm_1",
                "diagnostics": { "summary": "adds 1 error", "lines": ["a.rs:1:2 error: no"] },
            }),
            json!({
                "type": "permission_decided", "permissionId": "perm_1", "callId": "call_1",
                "outcome": "deny", "scope": "once", "by": "panel", "feedback": "not now",
            }),
            json!({ "type": "question_asked", "question": question() }),
            json!({
                "type": "question_answered", "questionId": "ques_1", "callId": "call_1", "outcome": "answered",
                "answers": [{ "labels": ["red"], "text": "dark" }], "feedback": "thanks", "by": "panel",
            }),
            json!({ "type": "todo_changed", "todos": [todo()], "counts": counts() }),
            json!({
                "type": "goal_changed", "goal": {
                    "text": "All tests pass", "check": "cargo test", "state": "active",
                    "since": "2026-01-02T03:04:05Z", "rounds": 1, "maxRounds": 20, "cost": 0.5, "maxCost": 2.0,
                    "durationMs": 1000, "maxMinutes": 30, "finding": "exit code 101",
                },
            }),
            json!({
                "type": "team_changed", "team": {
                    "members": [
                        { "name": "main", "state": "idle", "unread": 1 },
                        {
                            "name": "one", "agentId": "agent_1", "agentType": "general-purpose", "description": "Test it",
                            "state": "waiting", "waitsFor": "main", "unread": 0,
                        },
                    ],
                    "tasks": [{ "number": 1, "title": "a", "state": "claimed", "owner": "one", "blockedBy": [2] }],
                },
            }),
            json!({ "type": "todo_reminder", "reason": "stale" }),
            json!({ "type": "state_changed", "state": "WORKING" }),
            json!({ "type": "mode_changed", "mode": "acceptEdits", "model": "main" }),
            json!({
                "type": "queue_changed", "queue": [{ "queueId": "queue_1", "text": "next" }],
                "steering": [{ "queueId": "queue_2", "text": "now" }], "paused": true,
            }),
            json!({ "type": "draft_changed" }),
            json!({ "type": "draft_changed", "draft": { "text": "so", "parts": [{ "type": "text", "text": "a" }] } }),
            json!({ "type": "reminder", "kind": "editFailed", "agentId": "agent_1", "messages": 3 }),
            json!({
                "type": "hook_ran", "event": "PreToolUse", "name": "guard.sh", "durationMs": 12, "outcome": "blocked",
                "message": "not here",
            }),
            json!({ "type": "tool:queued", "callId": "call_1", "name": "Bash", "queueLength": 2 }),
            json!({ "type": "tool:timeout", "callId": "call_1", "name": "Bash" }),
            json!({ "type": "tool:denied", "callId": "call_1", "name": "Bash", "reason": "plan mode" }),
            json!({ "type": "tool_executed", "callId": "call_1", "name": "Bash", "durationMs": 9, "ok": true }),
            json!({ "type": "background_started", "task": task() }),
            json!({ "type": "background_ended", "task": ended_task() }),
            json!({ "type": "edits_changed", "uris": ["file:///w/a%20b.rs", "untitled:Untitled-1"] }),
            json!({
                "type": "edits_resolved", "resolutionId": "res_1", "action": "undo", "resolved": ["hunk_1"],
                "conflicts": ["hunk_2"], "failed": [{ "uri": "file:///w/a.rs", "reason": "read only" }],
            }),
            json!({ "type": "checkpoint_created", "checkpointId": "ckpt_1", "turnId": "turn_1" }),
            json!({ "type": "rewound", "itemId": "item_1" }),
            json!({ "type": "file_changed", "uri": "file:///w/a.rs", "deleted": false }),
            json!({
                "type": "trust_required", "count": 3, "files": ["/w/.kode/settings.json"],
                "summary": "2 hooks, 1 MCP server",
            }),
            json!({
                "type": "config_changed", "files": ["/w/.kode/settings.json"],
                "problems": [{ "severe": true, "message": "m", "file": "/w/.kode/settings.json", "line": 3 }],
                "withheld": [{
                    "key": "permissions.allow", "value": "Bash",
                    "source": { "layer": "project", "file": "/w/.kode/settings.json", "line": 4 },
                }],
            }),
            json!({
                "type": "mcp_changed",
                "servers": [{
                    "name": "git", "state": "needsAuth", "transport": "http", "target": "https://h.example/",
                    "source": { "layer": "project", "file": "/w/.mcp.json", "line": 4 }, "tools": 1, "prompts": 2,
                    "resources": 3, "failedAttempts": 1, "latencyMs": 4, "title": "Git 1.0", "changedTools": ["a"],
                    "notes": ["n"],
                    "failure": { "class": "auth", "message": "m", "hint": "h", "stderr": "s" },
                }],
            }),
            json!({
                "type": "extensions_changed", "agents": 5, "skills": 1, "commands": 2, "styles": 5,
                "problems": [{ "file": "/w/.claude/agents/a.md", "message": "m", "severe": true, "line": 2 }],
            }),
            json!({
                "type": "subagent_started", "agentId": "agent_1", "callId": "call_1", "agentType": "explore",
                "description": "Find it",
            }),
            json!({ "type": "subagent_ended", "agentId": "agent_1", "ok": true, "usage": usage(), "durationMs": 5 }),
            json!({ "type": "token_usage", "turnId": "turn_1", "usage": usage(), "model": "m" }),
            json!({
                "type": "token_usage", "turnId": "turn_1", "usage": usage(), "model": "m", "contextTokens": 5, "contextWindow": 9,
            }),
            json!({
                "type": "context_compression", "turnId": "turn_1", "agentId": "agent_1",
                "step": { "type": "started", "cause": "threshold", "messages": 9, "tokens": 102_400, "window": 128_000 },
            }),
            compression(json!({ "type": "progress", "written": 500 })),
            compression(json!({ "type": "unchanged", "reason": "it was cancelled" })),
            compression(json!({
                "type": "done", "windowId": "win_1", "cause": "asked", "messagesBefore": 9, "messagesAfter": 3,
                "tokensBefore": 900, "tokensAfter": 90, "trigger": 102_400, "model": "m", "usage": usage(), "durationMs": 7,
                "files": [
                    { "uri": "file:///w/a.rs", "shown": 3, "lines": 9 },
                    { "uri": "file:///w/b.rs", "shown": 0, "lines": 0, "problem": "it is gone" },
                ],
            })),
            json!({
                "type": "model_retry", "attempt": 1, "of": 3, "delayMs": 500, "nextAt": AT, "leftMs": 600_000,
                "kind": "server", "reason": "overloaded", "model": "m",
            }),
            json!({ "type": "title_changed", "title": "Mend the cache", "by": "user" }),
            json!({ "type": "archived_changed", "archived": true }),
            json!({
                "type": "lease_changed", "isMine": false,
                "writer": { "pid": 7, "host": "devbox", "client": "an editor", "version": "0.1.0", "since": AT },
            }),
            json!({
                "type": "agent_resumed", "sealed": ["call_1"], "strategy": "crash", "skippedRecords": 0,
                "sealedCalls": [{ "callId": "call_1", "state": "EXECUTING" }], "breakpoint": "TOOL_EXECUTING",
            }),
            json!({ "type": "storage_failure", "message": "disk full" }),
            json!({ "type": "storage_failure", "message": "written again", "recovered": true }),
            json!({ "type": "error", "message": "no key", "hint": "set one" }),
            json!({ "type": "gap", "since": 3, "oldest": 9 }),
        ],
    );
}

#[test]
fn a_background_command_and_a_page_of_output_keep_their_form() {
    check::<Event>(&json!({ "type": "background_started", "task": task() }));
    check::<Event>(&json!({ "type": "background_ended", "task": ended_task() }));
    for (status, facts) in [
        ("signaled", json!({ "signal": 9 })),
        ("killed", json!({})),
        ("endedWithSession", json!({})),
        ("failed", json!({ "reason": "no shell" })),
    ] {
        let mut end = facts;
        end["endedAt"] = json!(AT);
        end["status"] = json!(status);
        check::<BackgroundExit>(&end);
    }
    let page = json!({ "text": "a", "offset": 0, "nextOffset": 1, "totalBytes": 9, "complete": false });
    check::<ReadOutputResult>(&page);
    check::<ReadOutputParams>(&json!({ "sessionId": "s", "callId": "c", "offset": 1, "limit": 2 }));
    check::<ReadOutputParams>(&json!({ "sessionId": "s", "taskId": "bash_1" }));
    check::<MoveToBackgroundParams>(&json!({ "sessionId": "s", "callId": "call_1" }));
    check::<crate::LeaveParams>(&json!({}));
    check::<crate::LeaveResult>(&json!({ "outlives": true }));
    check::<MoveToBackgroundResult>(&json!({ "taskId": "bash_1" }));
}

#[test]
fn every_item_keeps_its_form() {
    check_union::<ItemBody>("type", &item_bodies());
}

#[test]
fn every_preview_keeps_its_form() {
    check_union::<Preview>(
        "type",
        &[
            json!({ "type": "command", "command": "ls", "cwd": "/w", "sandboxed": true }),
            json!({ "type": "diff", "paths": ["a.rs"], "unified": "@@" }),
            json!({ "type": "paths", "paths": ["/etc"] }),
        ],
    );
}

#[test]
fn every_error_has_its_kind_its_hint_and_a_code_of_its_own() {
    let cases = [
        json!({ "kind": "unknownSession", "hint": "h" }),
        json!({ "kind": "unknownPermission", "hint": "h" }),
        json!({ "kind": "unknownCall", "hint": "h" }),
        json!({ "kind": "unknownQuestion", "hint": "h" }),
        json!({ "kind": "unknownTask", "hint": "h" }),
        json!({ "kind": "unknownPrompt", "hint": "h" }),
        json!({ "kind": "chatDisabled", "hint": "h" }),
        json!({ "kind": "modelFailed", "hint": "h" }),
        json!({ "kind": "worktreeUnavailable", "hint": "h" }),
        json!({ "kind": "sessionBusy", "hint": "h" }),
        json!({ "kind": "unknownHunk", "hint": "h" }),
        json!({ "kind": "unknownResolution", "hint": "h" }),
        json!({ "kind": "unknownCheckpoint", "hint": "h" }),
        json!({ "kind": "unknownDocument", "hint": "h" }),
        json!({ "kind": "nothingToDo", "hint": "h" }),
        json!({ "kind": "alreadyResolved", "by": "panel", "hint": "h" }),
        json!({ "kind": "invalidParams", "path": "input[0].uri", "hint": "h" }),
        json!({ "kind": "modelNotConfigured", "hint": "h" }),
        json!({ "kind": "storageFailure", "hint": "h" }),
        json!({ "kind": "takeOverDeclined", "reason": "turnRunning", "pid": 7, "hint": "h" }),
        json!({ "kind": "writerSilent", "pid": 7, "hint": "h" }),
        json!({ "kind": "corrupted", "skipped": 3, "hint": "h" }),
        json!({ "kind": "internal", "hint": "h" }),
    ];
    check_union::<ErrorData>("kind", &cases);
    let codes: BTreeSet<_> = cases.iter().map(|case| check::<ErrorData>(case).kind.code()).collect();
    assert_eq!(codes.len(), cases.len());
    for own in codes.into_iter().filter(|own| ![code::INVALID_PARAMS, code::INTERNAL].contains(own)) {
        assert!((-32099..=-32000).contains(&own) && ![-32001, -32002].contains(&own), "{own}");
    }
}

#[test]
fn an_event_comes_with_its_session_place_and_channel() {
    check::<AgentEventParams>(&json!({
        "sessionId": "ses_1", "bookmark": { "seq": 7, "timestamp": AT }, "channel": "monitor",
        "event": { "type": "state_changed", "state": "READY" },
    }));
}

#[test]
fn a_snapshot_keeps_its_form() {
    check::<Snapshot>(&json!({
        "sessionId": "ses_1", "title": "Fix it", "bookmark": { "seq": 0, "timestamp": AT }, "state": "PAUSED",
        "mode": "bypassPermissions", "model": { "name": "main", "provider": "anthropic" },
        "items": item_bodies().into_iter().map(item).collect::<Vec<_>>(), "moreItems": true,
        "pendingPermissions": [prompt()], "questions": [question()], "todos": [todo()],
        "queue": [{ "queueId": "queue_1", "text": "next" }], "steering": [], "queuePaused": true,
        "draft": { "text": "so" },
        "tasks": [task()],
        "subagents": [{ "agentId": "agent_1", "callId": "call_1", "agentType": "explore", "description": "Find it" }],
        "usage": usage(),
    }));
}

#[test]
fn a_prompt_keeps_its_form() {
    let range = json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 2, "character": 4 } });
    let input = json!([
        { "type": "text", "text": "why?" },
        { "type": "mention", "uri": "file:///w/a.rs" },
        { "type": "mention", "uri": "file:///w/a.rs", "range": range },
        { "type": "symbol", "name": "main", "uri": "file:///w/a.rs", "range": range },
        { "type": "diagnostics", "uri": "file:///w/a.rs", "range": range, "message": "unused" },
        { "type": "diff", "staged": false, "revision": "main" },
        { "type": "session", "session": "ses_1" },
        { "type": "image", "mediaType": "image/png", "data": "iVBORw0KGgo=" },
        { "type": "pasted", "text": "log" },
        { "type": "selection", "uri": "untitled:Untitled-1", "range": range, "text": "x" },
    ]);
    check_union::<InputPart>("type", input.as_array().unwrap());
    check::<StartTurnParams>(&json!({
        "sessionId": "ses_1", "input": input, "delivery": "steer",
        "context": { "activeUri": "file:///w/a.rs", "selection": range, "openUris": ["file:///w/a.rs"],
            "selectedText": "x", "visibleRange": range },
    }));
    check_union::<StartTurnResult>(
        "type",
        &[
            json!({ "type": "started", "turnId": "turn_1" }),
            json!({ "type": "queued", "queueId": "queue_1" }),
            json!({ "type": "steering", "turnId": "turn_1", "queueId": "queue_1" }),
            json!({ "type": "answered", "turnId": "turn_1", "itemId": "item_1" }),
        ],
    );
}

#[test]
fn a_list_of_edits_keeps_its_form() {
    let range = json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 2, "character": 4 } });
    let hunk = json!({
        "hunkId": "hunk_1", "turnId": "turn_1", "callId": "call_1", "kind": "text", "state": "proposed",
        "range": range, "lineRange": { "start": 1, "end": 3 }, "oldText": "a\n", "newText": "b\nc\n",
        "added": 2, "removed": 1, "amended": false, "permissionId": "perm_1",
        "diagnostics": { "summary": "adds 1 error", "lines": ["a.rs:2:1 error: no"] },
    });
    check::<ListEditsResult>(&json!({
        "files": [{
            "uri": "file:///w/a.rs", "path": "a.rs", "version": 7, "reviewed": true, "baselineUri": "kode-baseline:///w/a.rs?x",
            "proposedUri": "kode-proposed:///w/a.rs?x", "added": 2, "removed": 1, "hunks": [hunk],
            "diagnostics": { "summary": "fixes 1 error", "lines": ["fixed: a.rs:9:1 error: no"] },
        }],
        "history": [{
            "uri": "file:///w/a.rs", "path": "a.rs", "added": 2, "removed": 1,
            "changes": [{ "callId": "call_1", "turnId": "turn_1", "unified": "@@" }],
        }],
    }));
    let params: ListEditsParams = read(json!({ "sessionId": "ses_1" }));
    assert_eq!((params.uri, params.history), (None, false));
}

#[test]
fn an_act_on_hunks_says_exactly_which() {
    let selections = [
        json!({ "type": "hunks", "sessionId": "ses_1", "hunkIds": ["hunk_1", "hunk_2"] }),
        json!({ "type": "file", "sessionId": "ses_1", "uri": "file:///w/a.rs" }),
        json!({ "type": "file", "uri": "file:///w/a.rs" }),
        json!({ "type": "turn", "sessionId": "ses_1", "turnId": "turn_1" }),
        json!({ "type": "session", "sessionId": "ses_1" }),
        json!({ "type": "all" }),
    ];
    check_union::<EditSelection>("type", &selections);
    for action in ["accept", "reject", "keep", "undo"] {
        check::<ResolveEditsParams>(
            &json!({ "selection": { "type": "all" }, "action": action, "amended": "undo" }),
        );
    }
    let params: ResolveEditsParams = read(json!({ "selection": { "type": "all" }, "action": "undo" }));
    assert_eq!(params.amended, Amended::Ask);
    for half in [json!({ "action": "undo" }), json!({ "selection": { "type": "all" } })] {
        assert!(serde_json::from_value::<ResolveEditsParams>(half.clone()).is_err(), "{half}");
    }
    check::<ResolveEditsResult>(&json!({
        "resolutions": [{ "sessionId": "ses_1", "resolutionId": "res_1" }],
        "refused": [{ "sessionId": "ses_2", "reason": "a turn is running" }],
    }));
    check::<RevertEditsParams>(&json!({ "sessionId": "ses_1", "resolutionId": "res_1" }));
    check::<RevertEditsParams>(&json!({ "sessionId": "ses_1" }));
    check::<Resolution>(&json!({ "sessionId": "ses_1", "resolutionId": "res_1" }));
}

#[test]
fn a_side_of_a_diff_keeps_its_form() {
    check::<DocumentTextParams>(&json!({ "sessionId": "ses_1", "uri": "file:///w/a.rs" }));
    check::<DocumentTextParams>(&json!({ "uri": "file:///w/a.rs" }));
    check::<DocumentText>(&json!({ "text": "a\n", "version": 3 }));
    check::<DocumentText>(&json!({ "text": "" }));
}

#[test]
fn a_restore_keeps_its_form() {
    check::<ListCheckpointsResult>(&json!({ "checkpoints": [{
        "checkpointId": "ckpt_1", "turnId": "turn_1", "itemId": "item_1", "title": "Fix it", "timestamp": AT,
        "uris": ["file:///w/a.rs"], "uncovered": ["file:///w/big.bin"],
    }] }));
    for what in ["conversation", "files", "both"] {
        check::<RestoreCheckpointParams>(&json!({
            "sessionId": "ses_1", "checkpointId": "ckpt_1", "what": what, "userEdits": "discard", "dryRun": true,
        }));
    }
    let least: RestoreCheckpointParams =
        read(json!({ "sessionId": "ses_1", "checkpointId": "ckpt_1", "what": "both" }));
    assert_eq!((least.user_edits, least.dry_run), (UserEdits::Keep, false));
    let file = json!({ "uri": "file:///w/a.rs", "path": "a.rs", "unified": "@@" });
    let troubled = json!({
        "uri": "file:///w/a.rs", "path": "a.rs", "unified": "", "userEdits": "@@", "problem": "too large",
    });
    check_union::<RestoreCheckpointResult>(
        "type",
        &[
            json!({ "type": "started", "resolutionId": "res_1" }),
            json!({ "type": "preview", "files": [file, troubled], "items": 4 }),
        ],
    );
}

#[test]
fn a_request_to_save_keeps_its_form() {
    check::<SaveDocumentsParams>(&json!({ "uris": ["file:///w/a%20b.rs"] }));
    check::<SaveDocumentsResult>(&json!({
        "saved": ["file:///w/a%20b.rs"], "failed": [{ "uri": "untitled:Untitled-1", "reason": "no file" }],
    }));
    assert_eq!(read::<SaveDocumentsResult>(json!({})), SaveDocumentsResult::default());
}

#[test]
fn what_is_left_out_has_its_default() {
    assert_eq!(read::<NewSessionParams>(json!({})), NewSessionParams::default());
    assert_eq!(read::<ListSessionsParams>(json!({})), ListSessionsParams::default());
    assert_eq!(read::<LoadSessionParams>(json!({ "sessionId": "ses_1" })).since, None);
    let turn: StartTurnParams = read(json!({ "sessionId": "ses_1", "input": [] }));
    assert_eq!(serde_json::to_value(turn.delivery).unwrap(), "queue");
    let answer = json!({ "sessionId": "ses_1", "permissionId": "perm_1", "decision": "allow" });
    assert_eq!(read::<RespondPermissionParams>(answer).scope, Scope::Once);
    let client: ClientKode = read(json!({ "protocolVersion": 1, "events": true }));
    assert_eq!(client, ClientKode { protocol_version: 1, events: true, ..ClientKode::default() });
}

#[test]
fn a_permission_is_never_given_by_half_an_answer() {
    for decision in [json!(null), json!("yes"), json!(true), json!("Allow")] {
        let answer = json!({ "sessionId": "ses_1", "permissionId": "perm_1", "decision": decision });
        assert!(serde_json::from_value::<RespondPermissionParams>(answer).is_err(), "{decision}");
    }
    let silent = json!({ "sessionId": "ses_1", "permissionId": "perm_1", "scope": "session" });
    assert!(serde_json::from_value::<RespondPermissionParams>(silent).is_err());
}

#[test]
fn what_a_newer_server_sends_is_skipped() {
    let event = json!({
        "sessionId": "ses_1", "bookmark": { "seq": 7, "timestamp": AT, "epoch": 2 }, "channel": "monitor",
        "event": { "type": "state_changed", "state": "READY", "since": AT }, "extra": {},
    });
    assert!(serde_json::from_value::<AgentEventParams>(event).is_ok());
    assert_eq!(read::<Event>(json!({ "type": "from_the_future", "todos": [] })), Event::Unknown);
    assert_eq!(read::<ItemBody>(json!({ "type": "plan", "steps": [1] })), ItemBody::Unknown);
    assert_eq!(read::<Preview>(json!({ "type": "picture", "data": "" })), Preview::Unknown);
    let error = read::<ErrorData>(json!({ "kind": "untrustedWorkspace", "hint": "trust it" }));
    assert_eq!(error, ErrorData { kind: ErrorKind::Unknown, hint: "trust it".into() });
}

#[test]
fn what_is_unknown_is_never_sent() {
    assert!(serde_json::to_value(Event::Unknown).is_err());
    assert!(serde_json::to_value(ItemBody::Unknown).is_err());
    assert!(serde_json::to_value(Preview::Unknown).is_err());
    assert!(serde_json::to_value(ErrorKind::Unknown).is_err());
}

#[test]
fn both_sides_report_their_protocol() {
    check::<ClientKode>(&json!({
        "protocolVersion": 1, "events": true, "permissionUi": true, "saveDocuments": false,
        "diagnostics": false, "languageServers": true, "diffUi": true, "userSettings": false,
        "askActions": true, "bell": true,
    }));
    let server: ServerKode = check(&json!({
        "protocolVersion": 1, "serverVersion": "0.1.0", "commands": ["kode.ask"], "schemaHash": SCHEMA_HASH,
    }));
    assert!(
        server.schema_hash.len() == 64 && server.schema_hash.chars().all(|char| char.is_ascii_hexdigit())
    );
}

#[test]
fn every_method_has_a_name_of_its_own_and_says_what_it_does() {
    let requests = REQUESTS.iter().chain(SERVER_REQUESTS).map(|entry| (entry.method, entry.doc));
    let methods: Vec<_> =
        requests.chain(NOTIFICATIONS.iter().map(|entry| (entry.method, entry.doc))).collect();
    assert_eq!(methods.iter().collect::<BTreeSet<_>>().len(), methods.len());
    for (method, doc) in methods {
        assert!(method.starts_with("agent/") && !doc.is_empty(), "{method}");
    }
}

#[test]
fn every_change_of_the_queue_keeps_its_form() {
    check_union::<QueueOp>(
        "type",
        &[
            json!({ "type": "edit", "queueId": "queue_1", "text": "so" }),
            json!({ "type": "edit", "queueId": "queue_1", "text": "so", "parts": [] }),
            json!({ "type": "remove", "queueId": "queue_1" }),
            json!({ "type": "move", "queueId": "queue_1", "before": "queue_2" }),
            json!({ "type": "promote", "queueId": "queue_1" }),
        ],
    );
}
