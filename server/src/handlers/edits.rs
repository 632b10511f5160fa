//! `agent/edits/list`.

use kode_engine::event::{Item, ItemBody};
use kode_protocol as wire;
use serde_json::Value;

use crate::backend::Backend;
use crate::convert;
use crate::handlers::error::Failure;

/// Lists what the agent has changed, file by file.
pub(crate) async fn list(
    backend: &Backend,
    params: wire::ListEditsParams,
) -> Result<wire::ListEditsResult, Failure> {
    Ok(wire::ListEditsResult { files: files(&backend.session(&params.session_id)?.edit_items()) })
}

fn files(items: &[Item]) -> Vec<wire::EditedFile> {
    let mut files: Vec<wire::EditedFile> = Vec::new();
    for item in items {
        let ItemBody::ToolCall(call) = &item.body else { continue };
        let Some(report) = &call.structured else { continue };
        let several = report["files"].as_array();
        for change in several.map_or_else(|| std::slice::from_ref(report), Vec::as_slice) {
            let Some(mut file) = file(change) else { continue };
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
fn file(change: &Value) -> Option<wire::EditedFile> {
    let path = change["path"].as_str()?;
    let uri = match change["absolutePath"].as_str() {
        Some(absolute) => lsp_types::Url::from_file_path(absolute).ok()?.to_string(),
        None => path.to_owned(),
    };
    Some(wire::EditedFile {
        uri: wire::Uri::new(uri),
        path: path.to_owned(),
        added: change["added"].as_u64().unwrap_or_default(),
        removed: change["removed"].as_u64().unwrap_or_default(),
        changes: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use kode_engine::event::{CallOutcome, CallState, ToolCallItem};
    use kode_engine::ids::{CallId, ItemId, TurnId};
    use kode_engine::tools::ToolKind;
    use serde_json::json;

    use super::*;

    fn edit(report: Value) -> Item {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let mut call =
            ToolCallItem::pending(CallId::generate(), "Edit".into(), Some(ToolKind::Write), json!({}), at);
        let state = CallState::Completed;
        call.end(CallOutcome { state, display: String::new(), structured: Some(report), error: None }, at);
        let body = ItemBody::ToolCall(Box::new(call));
        Item { id: ItemId::generate(), turn: TurnId::generate(), timestamp: at, body }
    }

    #[test]
    fn changes_are_gathered_by_file_in_the_order_of_the_first() {
        let a = json!({ "path": "a b.rs", "absolutePath": "/w/a b.rs", "added": 2, "removed": 1, "unified": "1" });
        let b =
            json!({ "path": "untitled:U1", "absolutePath": null, "added": 1, "removed": 0, "unified": "2" });
        let again = json!({ "path": "a b.rs", "absolutePath": "/w/a b.rs", "added": 1, "removed": 4, "unified": "3" });
        let files = files(&[edit(a), edit(json!({ "files": [b, again] }))]);
        let seen: Vec<_> = files
            .iter()
            .map(|file| (file.uri.as_str(), file.added, file.removed, file.changes.len()))
            .collect();
        assert_eq!(seen, [("file:///w/a%20b.rs", 3, 5, 2), ("untitled:U1", 1, 0, 1)]);
    }
}
