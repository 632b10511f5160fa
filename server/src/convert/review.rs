//! Hunks, sides and checkpoints between the engine's types and those of the wire.
//!
//! Rule: as for all conversions, values only; positions are counted in the text that the ranges came with.

use std::collections::BTreeMap;

use kode_engine::agent::edits::review::{
    AmendedPolicy, CheckpointView, RestorePreview, RestoreWhat, ReviewSide, UserEdits,
};
use kode_engine::base::ids::{CallId, SessionId};
use kode_engine::base::paths::Target;
use kode_engine::record::resolution::ResolutionOutcome;
use kode_engine::text::edit::diff::LineCounts;
use kode_engine::text::edit::ledger::review::{FileReview, HunkKind, HunkState, HunkView, ReviewAction};
use kode_protocol as wire;
use ropey::Rope;

use crate::convert::permission::proposed_diagnostics;
use crate::convert::{
    UriNames, call_id, checkpoint_id, hunk_id, item_id, permission_id, resolution_id, timestamp, turn_id,
};
use crate::documents::SideUri;
use crate::lsp::PositionEncoding;

/// The hunks of a file of a session; `path` is its name for people.
#[must_use]
pub fn file(
    session: &SessionId,
    path: String,
    review: FileReview,
    encoding: PositionEncoding,
    names: UriNames<'_>,
) -> wire::EditedFile {
    let FileReview { target, text, version, hunks, diagnostics } = review;
    let hunks: Vec<_> = hunks.into_iter().map(|view| hunk(view, &text, encoding)).collect();
    let document = names.uri(&target);
    let side = |side| {
        let session = Some(session.as_str().to_owned());
        wire::Uri::new(SideUri { side, session, document: document.as_str().to_owned() }.to_uri())
    };
    wire::EditedFile {
        path,
        version,
        baseline_uri: side(ReviewSide::Baseline),
        proposed_uri: side(ReviewSide::Proposed),
        added: hunks.iter().map(|hunk| hunk.added).sum(),
        removed: hunks.iter().map(|hunk| hunk.removed).sum(),
        reviewed: false,
        hunks,
        diagnostics: diagnostics.map(proposed_diagnostics),
        uri: document,
    }
}

/// The states of the hunks of each call, counted. Proposed hunks are left out.
#[must_use]
pub fn calls(states: Vec<(CallId, HunkState)>) -> Vec<wire::CallEdits> {
    let mut counts: BTreeMap<CallId, wire::CallEdits> = BTreeMap::new();
    for (call, state) in states {
        let none = || wire::CallEdits { call_id: call_id(&call), open: 0, kept: 0, undone: 0 };
        let counted = counts.entry(call.clone()).or_insert_with(none);
        match state {
            HunkState::Proposed => {}
            HunkState::Applied | HunkState::Conflict => counted.open += 1,
            HunkState::Kept => counted.kept += 1,
            HunkState::Undone => counted.undone += 1,
        }
    }
    counts.into_values().filter(|counted| counted.open + counted.kept + counted.undone > 0).collect()
}

fn hunk(view: HunkView, text: &Rope, encoding: PositionEncoding) -> wire::Hunk {
    let lines = LineCounts::between(&view.old_text, &view.new_text);
    wire::Hunk {
        hunk_id: hunk_id(&view.id),
        turn_id: turn_id(&view.turn),
        call_id: call_id(&view.call),
        kind: hunk_kind(view.kind),
        state: hunk_state(view.state),
        range: encoding.range(text, view.range),
        line_range: wire::LineRange { start: line(view.lines.start), end: line(view.lines.end) },
        old_text: view.old_text,
        new_text: view.new_text,
        added: count(lines.added),
        removed: count(lines.removed),
        amended: view.amended,
        permission_id: view.permission.as_ref().map(permission_id),
        diagnostics: view.diagnostics.map(proposed_diagnostics),
    }
}

fn hunk_kind(kind: HunkKind) -> wire::HunkKind {
    match kind {
        HunkKind::Text => wire::HunkKind::Text,
        HunkKind::Created => wire::HunkKind::Created,
        HunkKind::Deleted => wire::HunkKind::Deleted,
        HunkKind::Binary => wire::HunkKind::Binary,
    }
}

fn hunk_state(state: HunkState) -> wire::HunkState {
    match state {
        HunkState::Proposed => wire::HunkState::Proposed,
        HunkState::Applied => wire::HunkState::Applied,
        HunkState::Kept => wire::HunkState::Kept,
        HunkState::Undone => wire::HunkState::Undone,
        HunkState::Conflict => wire::HunkState::Conflict,
    }
}

fn line(line: usize) -> u32 {
    u32::try_from(line).unwrap_or(u32::MAX)
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// How an act on hunks, or a restore, went.
#[must_use]
pub fn resolved(outcome: ResolutionOutcome, names: UriNames<'_>) -> wire::EditsResolved {
    let failed = outcome.failed.into_iter();
    wire::EditsResolved {
        resolution_id: resolution_id(&outcome.id),
        action: outcome.action.map(action),
        resolved: outcome.resolved.iter().map(hunk_id).collect(),
        conflicts: outcome.conflicts.iter().map(hunk_id).collect(),
        failed: failed
            .map(|(target, reason)| wire::EditFailure { uri: names.uri(&target), reason })
            .collect(),
    }
}

fn action(action: ReviewAction) -> wire::ReviewAction {
    match action {
        ReviewAction::Accept => wire::ReviewAction::Accept,
        ReviewAction::Reject => wire::ReviewAction::Reject,
        ReviewAction::Keep => wire::ReviewAction::Keep,
        ReviewAction::Undo => wire::ReviewAction::Undo,
    }
}

/// The client's action on hunks.
#[must_use]
pub fn action_from_wire(action: wire::ReviewAction) -> ReviewAction {
    match action {
        wire::ReviewAction::Accept => ReviewAction::Accept,
        wire::ReviewAction::Reject => ReviewAction::Reject,
        wire::ReviewAction::Keep => ReviewAction::Keep,
        wire::ReviewAction::Undo => ReviewAction::Undo,
    }
}

/// The client's choice where the user's own text is in a hunk.
#[must_use]
pub fn amended_from_wire(amended: wire::Amended) -> AmendedPolicy {
    match amended {
        wire::Amended::Ask => AmendedPolicy::Ask,
        wire::Amended::Undo => AmendedPolicy::Undo,
    }
}

/// A checkpoint.
#[must_use]
pub fn checkpoint(view: CheckpointView, names: UriNames<'_>) -> wire::Checkpoint {
    wire::Checkpoint {
        checkpoint_id: checkpoint_id(&view.id),
        turn_id: turn_id(&view.turn),
        item_id: item_id(&view.item),
        title: view.title,
        timestamp: timestamp(view.timestamp),
        uris: view.targets.iter().map(|target| names.uri(target)).collect(),
        uncovered: view.uncovered.iter().map(|target| names.uri(target)).collect(),
    }
}

/// The client's choice of restored parts.
#[must_use]
pub fn restore_what_from_wire(what: wire::RestoreWhat) -> RestoreWhat {
    match what {
        wire::RestoreWhat::Conversation => RestoreWhat::Conversation,
        wire::RestoreWhat::Files => RestoreWhat::Files,
        wire::RestoreWhat::Both => RestoreWhat::Both,
    }
}

/// The client's choice for the user's own changes.
#[must_use]
pub fn user_edits_from_wire(edits: wire::UserEdits) -> UserEdits {
    match edits {
        wire::UserEdits::Keep => UserEdits::Keep,
        wire::UserEdits::Discard => UserEdits::Discard,
    }
}

/// The effect of a restore; `shown` names files for people.
#[must_use]
pub fn preview(
    preview: RestorePreview,
    names: UriNames<'_>,
    shown: impl Fn(&Target) -> String,
) -> wire::RestorePreview {
    let files = preview.files.into_iter().map(|file| wire::RestoreFile {
        uri: names.uri(&file.target),
        path: shown(&file.target),
        unified: file.unified,
        user_edits: (!file.user_edits.is_empty()).then_some(file.user_edits),
        problem: file.problem,
    });
    wire::RestorePreview { files: files.collect(), items: count(preview.items) }
}

#[cfg(test)]
mod tests {
    use kode_engine::agent::edits::review::RestoreFile;
    use kode_engine::base::ids::{CallId, CheckpointId, HunkId, ItemId, PermissionId, TurnId};
    use kode_engine::base::proposed::ProposedDiagnostics;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::json;

    use super::*;

    fn view(range: std::ops::Range<usize>, lines: std::ops::Range<usize>, texts: [&str; 2]) -> HunkView {
        HunkView {
            id: HunkId::from_external("hunk_1"),
            turn: TurnId::from_external("turn_1"),
            call: CallId::from_external("call_1"),
            kind: HunkKind::Text,
            state: HunkState::Applied,
            range,
            lines,
            old_text: texts[0].into(),
            new_text: texts[1].into(),
            amended: false,
            permission: None,
            diagnostics: None,
        }
    }

    #[test]
    fn hunks_are_placed_in_the_text_they_came_with_and_counted_by_line() {
        let target = Target::Untitled("untitled:U1".into());
        let text = Rope::from_str("a😀b\nc\n");
        let proposed = HunkView {
            state: HunkState::Proposed,
            permission: Some(PermissionId::from_external("perm_1")),
            amended: true,
            diagnostics: Some(ProposedDiagnostics {
                summary: "adds 1 error".into(),
                lines: vec!["a:3:1".into()],
            }),
            ..view(9..9, 2..2, ["", "d\ne\n"])
        };
        let hunks = vec![view(5..6, 0..1, ["a😀\n", "a😀b\n"]), proposed];
        let elsewhere = ProposedDiagnostics { summary: "fixes 1 error".into(), lines: vec![] };
        let review = FileReview { target, text, version: Some(7), hunks, diagnostics: Some(elsewhere) };
        let session = SessionId::from_external("ses_1");
        let at = |line, character| json!({ "line": line, "character": character });
        let common = json!({ "hunkId": "hunk_1", "turnId": "turn_1", "callId": "call_1", "kind": "text" });
        let with = |own: serde_json::Value| {
            let mut all = common.as_object().unwrap().clone();
            all.extend(own.as_object().unwrap().clone());
            all
        };
        let first = with(json!({
            "state": "applied", "range": { "start": at(0, 3), "end": at(0, 4) },
            "lineRange": { "start": 0, "end": 1 }, "oldText": "a😀\n", "newText": "a😀b\n", "added": 1,
            "removed": 1, "amended": false,
        }));
        let second = with(json!({
            "state": "proposed", "range": { "start": at(2, 0), "end": at(2, 0) },
            "lineRange": { "start": 2, "end": 2 }, "oldText": "", "newText": "d\ne\n", "added": 2, "removed": 0,
            "amended": true, "permissionId": "perm_1",
            "diagnostics": { "summary": "adds 1 error", "lines": ["a:3:1"] },
        }));
        assert_eq!(
            serde_json::to_value(file(
                &session,
                "U1".into(),
                review,
                PositionEncoding::Utf16,
                UriNames::standard()
            ))
            .unwrap(),
            json!({
                "uri": "untitled:U1", "path": "U1", "version": 7,
                "baselineUri": "kode-baseline:///U1?ses_1;untitled:U1",
                "proposedUri": "kode-proposed:///U1?ses_1;untitled:U1",
                "added": 3, "removed": 1, "reviewed": false, "hunks": [first, second],
                "diagnostics": { "summary": "fixes 1 error", "lines": [] },
            })
        );
    }

    #[test]
    fn names_are_the_engines_own() {
        fn each<T: DeserializeOwned + Copy, W: Serialize>(names: &[&str], convert: impl Fn(T) -> W) {
            for name in names {
                let from: T = serde_json::from_value(json!(name)).unwrap();
                assert_eq!(serde_json::to_value(convert(from)).unwrap(), *name);
            }
        }
        each(&["proposed", "applied", "kept", "undone", "conflict"], hunk_state);
        each(&["text", "created", "deleted", "binary"], hunk_kind);
        each(&["accept", "reject", "keep", "undo"], action);
        each(&["accept", "reject", "keep", "undo"], action_from_wire);
        each(&["ask", "undo"], amended_from_wire);
        each(&["conversation", "files", "both"], restore_what_from_wire);
        each(&["keep", "discard"], user_edits_from_wire);
    }

    #[test]
    fn checkpoints_and_previews_pass_unchanged() {
        let untitled = || Target::Untitled("untitled:U1".into());
        let view = CheckpointView {
            id: CheckpointId::from_external("ckpt_1"),
            turn: TurnId::from_external("turn_1"),
            item: ItemId::from_external("item_1"),
            title: "Fix it".into(),
            timestamp: "2025-03-01T09:30:00Z".parse().unwrap(),
            targets: vec![untitled()],
            uncovered: vec![],
        };
        assert_eq!(
            serde_json::to_value(checkpoint(view, UriNames::standard())).unwrap(),
            json!({
                "checkpointId": "ckpt_1", "turnId": "turn_1", "itemId": "item_1", "title": "Fix it",
                "timestamp": "2025-03-01T09:30:00Z", "uris": ["untitled:U1"], "uncovered": [],
            })
        );
        let file = |user_edits: &str, problem: Option<&str>| RestoreFile {
            target: untitled(),
            unified: "@@".into(),
            user_edits: user_edits.into(),
            problem: problem.map(str::to_owned),
        };
        let files = vec![file("", None), file("@@ @@", Some("too large"))];
        assert_eq!(
            serde_json::to_value(
                preview(RestorePreview { files, items: 4 }, UriNames::standard(), |_| "U1".into())
            )
            .unwrap(),
            json!({
                "files": [
                    { "uri": "untitled:U1", "path": "U1", "unified": "@@" },
                    {
                        "uri": "untitled:U1", "path": "U1", "unified": "@@", "userEdits": "@@ @@",
                        "problem": "too large",
                    },
                ],
                "items": 4,
            })
        );
    }
}
