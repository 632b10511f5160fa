//! `agent/edits/*`: what the agent has changed, and what the user does about it.
//!
//! Rule: looking reads memory alone, acting begins and answers; an act that a session cannot start is reported and never
//! hidden.

use std::sync::Arc;

use kode_engine::agent::edits::review::ResolveError;
use kode_engine::agent::engine::AttachedSession;
use kode_engine::agent::history::following::FollowedSession;
use kode_engine::agent::session::Session;
use kode_engine::base::ids::{HunkId, ResolutionId, TurnId};
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::record::event::{Item, ItemBody};
use kode_engine::text::edit::ledger::review::Selection;
use kode_protocol as wire;
use ropey::Rope;
use serde_json::Value;

use crate::backend::Backend;
use crate::convert::error::{self, RequestError};
use crate::convert::{self, UriNames};
use crate::handlers::params::Params;
use crate::handlers::source::SessionSource;

/// Lists what the agent has changed, file by file and hunk by hunk.
pub(crate) async fn list<S: SessionSource>(
    source: &S,
    params: Params,
) -> Result<wire::ListEditsResult, S::Error> {
    let params: wire::ListEditsParams = params.read()?;
    let wanted = params.uri.as_ref().map(|uri| convert::target_from_wire("uri", uri)).transpose()?;
    let session = match source.attached(&params.session_id)? {
        AttachedSession::Live(session) => session,
        AttachedSession::Following(following) => return Ok(followed(source, &following, wanted).await?),
    };
    let reviews = match &wanted {
        Some(target) => session.edits().review_of(target).into_iter().collect(),
        None => session.edits().review(),
    };
    let (encoding, names) = (source.encoding(), source.names());
    let files = reviews.into_iter().map(|file| {
        let path = session.display(&file.target);
        let is_reviewed = session.edits().is_reviewed(&file);
        wire::EditedFile {
            reviewed: is_reviewed,
            ..convert::review::file(session.id(), path, file, encoding, names)
        }
    });
    let mut history =
        if params.history { history(&session.history().read_edit_items().await, names) } else { Vec::new() };
    if let Some(wanted) = &wanted {
        history
            .retain(|file| convert::target_from_wire("uri", &file.uri).is_ok_and(|target| target == *wanted));
    }
    let calls =
        if wanted.is_none() { convert::review::calls(session.edits().hunk_states()) } else { Vec::new() };
    Ok(wire::ListEditsResult { files: files.collect(), history, calls })
}

/// Lists what a session has changed that another server writes.
async fn followed(
    source: &impl SessionSource,
    following: &Arc<FollowedSession>,
    wanted: Option<Target>,
) -> Result<wire::ListEditsResult, RequestError> {
    let mut reviews = following.review().await.map_err(error::followed_changes)?;
    reviews.retain(|file| wanted.as_ref().is_none_or(|wanted| file.target == *wanted));
    let (encoding, names) = (source.encoding(), source.names());
    let files = reviews.into_iter().map(|mut file| {
        let path = following.display(&file.target);
        // The recorded text there can differ from the open one here.
        let document = source.documents().and_then(|documents| documents.snapshot_of(&file.target));
        let document = document.filter(|document| document.text == file.text);
        file.version = document.map(|document| document.version);
        convert::review::file(following.id(), path, file, encoding, names)
    });
    Ok(wire::ListEditsResult { files: files.collect(), history: Vec::new(), calls: Vec::new() })
}

/// Begins to accept, reject, keep or undo hunks.
pub(crate) async fn resolve<S: SessionSource>(
    source: &S,
    params: Params,
) -> Result<wire::ResolveEditsResult, S::Error> {
    let params: wire::ResolveEditsParams = params.read()?;
    let (session, selection) = selection(params.selection)?;
    let action = convert::review::action_from_wire(params.action);
    let amended = convert::review::amended_from_wire(params.amended);
    let words = params.text.filter(|text| !text.trim().is_empty());
    let words = words.as_deref();
    let mut result = wire::ResolveEditsResult { resolutions: Vec::new(), refused: Vec::new() };
    if let Some(id) = session {
        let session = source.session(&id)?;
        let begun =
            session.edits().resolve_saying(&selection, action, amended, words).map_err(error::resolve)?;
        result.resolutions.push(resolution(&session, &begun));
        return Ok(result);
    }
    for session in source.engine()?.live_sessions() {
        match session.edits().resolve_saying(&selection, action, amended, words) {
            Ok(begun) => result.resolutions.push(resolution(&session, &begun)),
            Err(ResolveError::Nothing { .. }) => {}
            Err(
                reason @ (ResolveError::UnknownHunk(_)
                | ResolveError::UnknownResolution
                | ResolveError::UnknownCheckpoint(_)
                | ResolveError::FilesOff
                | ResolveError::Busy
                | ResolveError::Closed),
            ) => result.refused.push(wire::RefusedResolution {
                session_id: convert::session_id(session.id()),
                reason: reason.to_string(),
            }),
        }
    }
    if result.resolutions.is_empty() && result.refused.is_empty() {
        return Err(error::resolve(ResolveError::Nothing { action: action.verb() }).into());
    }
    Ok(result)
}

/// Marks the changes of a file as reviewed, or removes the mark.
pub(crate) async fn review(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::MarkReviewedParams = params.read()?;
    let target = convert::target_from_wire("uri", &params.uri)?;
    let session = backend.session(&params.session_id)?;
    session.edits().mark_reviewed(&target, params.reviewed).map_err(error::resolve)
}

/// Puts a text into a document as a change of the agent's.
pub(crate) async fn propose(
    backend: &Backend,
    params: Params,
) -> Result<wire::ProposeEditsResult, RequestError> {
    let params: wire::ProposeEditsParams = params.read()?;
    let session = backend.session(&params.session_id)?;
    let target = convert::target_from_wire("uri", &params.uri)?;
    let encoding = backend.connection().documents.encoding();
    let place = |text: &Rope| match params.range {
        Some(range) => encoding.byte_range(text, range),
        None => 0..text.len_bytes(),
    };
    let hunks = session.edits().apply_text(&target, place, &params.text).await.map_err(error::apply_text)?;
    Ok(wire::ProposeEditsResult { hunk_ids: hunks.iter().map(convert::hunk_id).collect() })
}

/// Begins to take an act or a restore back.
pub(crate) async fn revert<S: SessionSource>(
    source: &S,
    params: Params,
) -> Result<wire::Resolution, S::Error> {
    let params: wire::RevertEditsParams = params.read()?;
    let session = source.session(&params.session_id)?;
    let id = params.resolution_id.map(|id| ResolutionId::from_external(id.as_str()));
    let begun = session.edits().revert(id.as_ref()).map_err(error::resolve)?;
    Ok(resolution(&session, &begun))
}

fn resolution(session: &Arc<Session>, id: &ResolutionId) -> wire::Resolution {
    wire::Resolution {
        session_id: convert::session_id(session.id()),
        resolution_id: convert::resolution_id(id),
    }
}

/// The session of the hunks, and which; no session means all live ones.
fn selection(selection: wire::EditSelection) -> Result<(Option<wire::SessionId>, Selection), RequestError> {
    Ok(match selection {
        wire::EditSelection::Hunks(part) => {
            if part.hunk_ids.is_empty() {
                return Err(error::invalid_params("selection.hunkIds", "no hunk is named"));
            }
            let hunks = part.hunk_ids.iter().map(|id| HunkId::from_external(id.as_str()));
            (Some(part.session_id), Selection::Hunks(hunks.collect()))
        }
        wire::EditSelection::File(part) => {
            (part.session_id, Selection::File(convert::target_from_wire("selection.uri", &part.uri)?))
        }
        wire::EditSelection::Turn(part) => {
            (Some(part.session_id), Selection::Turn(TurnId::from_external(part.turn_id.as_str())))
        }
        wire::EditSelection::Session(part) => (Some(part.session_id), Selection::Session),
        wire::EditSelection::All => (None, Selection::Session),
    })
}

fn history(items: &[Arc<Item>], names: UriNames<'_>) -> Vec<wire::FileHistory> {
    let mut files: Vec<wire::FileHistory> = Vec::new();
    for item in items {
        let ItemBody::ToolCall(call) = &item.body else { continue };
        let Some(report) = &call.structured else { continue };
        let several = report["files"].as_array();
        for change in several.map_or_else(|| std::slice::from_ref(report), Vec::as_slice) {
            let Some(mut file) = changed_file(change, names) else { continue };
            file.changes.push(wire::EditChange {
                call_id: convert::call_id(&call.call),
                turn_id: convert::turn_id(&item.turn),
                unified: change["unified"].as_str().unwrap_or_default().to_owned(),
            });
            match files.iter_mut().find(|known| known.uri == file.uri) {
                Some(known) => {
                    known.added += file.added;
                    known.removed += file.removed;
                    known.changes.append(&mut file.changes);
                }
                None => files.push(file),
            }
        }
    }
    files
}

/// A file of an edit tool's report, without its changes.
fn changed_file(change: &Value, names: UriNames<'_>) -> Option<wire::FileHistory> {
    let path = change["path"].as_str()?;
    let uri = match change["absolutePath"].as_str() {
        Some(absolute) => names.uri(&Target::File(AbsPath::new(absolute).ok()?)),
        None => wire::Uri::new(path),
    };
    Some(wire::FileHistory {
        uri,
        path: path.to_owned(),
        added: change["added"].as_u64().unwrap_or_default(),
        removed: change["removed"].as_u64().unwrap_or_default(),
        changes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use kode_engine::base::call::ToolKind;
    use kode_engine::base::ids::{CallId, ItemId};
    use kode_engine::record::event::{CallOutcome, CallState, ToolCallItem};
    use serde_json::json;

    use super::*;

    fn edit(report: Value) -> Arc<Item> {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let mut call =
            ToolCallItem::pending(CallId::generate(), "Edit".into(), Some(ToolKind::Write), json!({}), at);
        let state = CallState::Completed;
        call.end(CallOutcome { state, display: String::new(), structured: Some(report), error: None }, at);
        let body = ItemBody::ToolCall(Box::new(call));
        Item { id: ItemId::generate(), turn: TurnId::generate(), agent: None, timestamp: at, body }.into()
    }

    #[test]
    fn changes_are_gathered_by_file_in_the_order_of_the_first() {
        let a = json!({ "path": "a b.rs", "absolutePath": "/w/a b.rs", "added": 2, "removed": 1, "unified": "1" });
        let b =
            json!({ "path": "untitled:U1", "absolutePath": null, "added": 1, "removed": 0, "unified": "2" });
        let again = json!({ "path": "a b.rs", "absolutePath": "/w/a b.rs", "added": 1, "removed": 4, "unified": "3" });
        let files = history(&[edit(a), edit(json!({ "files": [b, again] }))], UriNames::standard());
        let seen: Vec<_> = files
            .iter()
            .map(|file| (file.uri.as_str(), file.added, file.removed, file.changes.len()))
            .collect();
        assert_eq!(seen, [("file:///w/a%20b.rs", 3, 5, 2), ("untitled:U1", 1, 0, 1)]);
    }

    #[test]
    fn a_selection_means_what_it_says() {
        let read = |value: Value| selection(serde_json::from_value(value).unwrap());
        let session = || Some(wire::SessionId::new("s"));
        let file = || Selection::File(Target::File(AbsPath::new("/w/a b.rs").unwrap()));
        let hunks = ["h1", "h2"].map(HunkId::from_external).to_vec();
        for (value, expected) in [
            (
                json!({ "type": "hunks", "sessionId": "s", "hunkIds": ["h1", "h2"] }),
                (session(), Selection::Hunks(hunks)),
            ),
            (json!({ "type": "file", "sessionId": "s", "uri": "file:///w/./a b.rs" }), (session(), file())),
            (json!({ "type": "file", "uri": "file:///w/a%20b.rs" }), (None, file())),
            (
                json!({ "type": "turn", "sessionId": "s", "turnId": "t" }),
                (session(), Selection::Turn(TurnId::from_external("t"))),
            ),
            (json!({ "type": "session", "sessionId": "s" }), (session(), Selection::Session)),
            (json!({ "type": "all" }), (None, Selection::Session)),
        ] {
            assert_eq!(read(value).unwrap(), expected);
        }
        for (value, path) in [
            (json!({ "type": "hunks", "sessionId": "s", "hunkIds": [] }), "selection.hunkIds"),
            (json!({ "type": "file", "uri": "a.rs" }), "selection.uri"),
        ] {
            assert_eq!(read(value).unwrap_err().data.unwrap()["path"], path);
        }
    }
}
