//! The messages that a server sends by itself: diagnostics, progress, and requests for configuration.
//!
//! Rule: the kept diagnostics are bounded by files and items; a server that publishes more loses the rest. No message
//! changes anything but the state in here.

use std::collections::HashMap;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::connection::ServerMessages;
use crate::results;
use crate::uri;
use crate::work::ServerWork;
use kode_base::paths::Target;

/// The most files whose diagnostics are kept.
const MAX_FILES: usize = 5_000;
/// The most diagnostics of a file that are kept.
const MAX_OF_FILE: usize = 1_000;

/// The diagnostics of a file as the server last published them.
#[derive(Clone, Debug)]
pub(crate) struct PublishedDiagnostics {
    /// The version of the text that they are about, where the server names it.
    pub(crate) version: Option<i64>,
    /// When they came.
    pub(crate) at: Instant,
    /// The diagnostics.
    pub(crate) list: Vec<Value>,
}

/// The state that a server's own messages lead to.
pub(crate) struct LanguageServerState {
    /// Work that the server reports.
    pub(crate) work: ServerWork,
    settings: Value,
    folders: Value,
    published: Mutex<HashMap<Target, PublishedDiagnostics>>,
    /// The edits of commands that run now; `None` when no command runs, so that no edit is applied unasked.
    captured: Mutex<Option<Vec<Value>>>,
    revision: watch::Sender<u64>,
}

impl LanguageServerState {
    /// The state of a server with these `settings`, of these workspace folders. `program` is its path or name.
    pub(crate) fn new(program: &str, settings: Value, folders: Value) -> Self {
        Self {
            work: ServerWork::new(program),
            settings,
            folders,
            published: Mutex::default(),
            captured: Mutex::default(),
            revision: watch::Sender::new(0),
        }
    }

    /// Notifies of every change of the state.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.revision.subscribe()
    }

    /// The diagnostics of a file as they were last published.
    pub(crate) fn published(&self, target: &Target) -> Option<PublishedDiagnostics> {
        self.published.lock().get(target).cloned()
    }

    /// Puts back the diagnostics that a file had before a proposed text.
    pub(crate) fn restore(&self, target: &Target, before: Option<PublishedDiagnostics>) {
        let mut published = self.published.lock();
        match before {
            Some(before) => drop(published.insert(target.clone(), before)),
            None => drop(published.remove(target)),
        }
    }

    /// All files with published diagnostics.
    pub(crate) fn published_files(&self) -> Vec<Target> {
        let published = self.published.lock();
        published
            .iter()
            .filter(|(_, known)| !known.list.is_empty())
            .map(|(target, _)| target.clone())
            .collect()
    }

    /// Keeps the edits that the server asks to apply, from now on.
    pub(crate) fn begin_capture(&self) {
        *self.captured.lock() = Some(Vec::new());
    }

    /// Returns the kept edits; later ones are refused.
    pub(crate) fn end_capture(&self) -> Vec<Value> {
        self.captured.lock().take().unwrap_or_default()
    }

    fn publish(&self, mut parameters: Value) {
        let target = parameters.get("uri").and_then(Value::as_str).and_then(uri::target);
        let Some(target) = target else { return };
        let version = parameters.get("version").and_then(Value::as_i64);
        let mut list = match parameters.get_mut("diagnostics").map(Value::take) {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        };
        list.truncate(MAX_OF_FILE);
        list.shrink_to_fit();
        let mut published = self.published.lock();
        if published.len() >= MAX_FILES && !published.contains_key(&target) {
            return;
        }
        published.insert(target, PublishedDiagnostics { version, at: Instant::now(), list });
    }

    /// The settings of a section, by its names with dots between them.
    fn setting(&self, section: &str) -> Value {
        let mut value = &self.settings;
        for name in section.split('.').filter(|name| !name.is_empty()) {
            match value.get(name) {
                Some(inner) => value = inner,
                None => return Value::Null,
            }
        }
        value.clone()
    }
}

impl ServerMessages for LanguageServerState {
    fn notification(&self, method: &str, parameters: Value) {
        match method {
            "textDocument/publishDiagnostics" => self.publish(parameters),
            _ => {
                if method == "window/logMessage" || method == "window/showMessage" {
                    let text = parameters.get("message").and_then(Value::as_str).unwrap_or_default();
                    tracing::debug!(text, "a language server logs");
                }
                if !self.work.take(method, &parameters) {
                    return;
                }
            }
        }
        self.revision.send_modify(|revision| *revision += 1);
    }

    fn request(&self, method: &str, parameters: &Value) -> Option<Value> {
        match method {
            "workspace/configuration" => {
                let items = parameters.get("items").and_then(Value::as_array).map(Vec::as_slice);
                let answers = items.unwrap_or_default().iter().take(1_000).map(|item| {
                    self.setting(item.get("section").and_then(Value::as_str).unwrap_or_default())
                });
                Some(answers.collect())
            }
            "workspace/workspaceFolders" => Some(self.folders.clone()),
            "workspace/applyEdit" => {
                let mut captured = self.captured.lock();
                let edit = parameters.get("edit").cloned();
                let is_kept = match (&mut *captured, edit) {
                    (Some(kept), Some(edit)) => {
                        kept.push(edit);
                        true
                    }
                    _ => false,
                };
                Some(json!({ "applied": is_kept }))
            }
            "client/registerCapability"
            | "client/unregisterCapability"
            | "window/workDoneProgress/create"
            | "window/showMessageRequest"
            | "workspace/semanticTokens/refresh"
            | "workspace/codeLens/refresh"
            | "workspace/inlayHint/refresh"
            | "workspace/inlineValue/refresh"
            | "workspace/diagnostic/refresh"
            | "workspace/foldingRange/refresh" => Some(Value::Null),
            "window/showDocument" => Some(json!({ "success": false })),
            _ => None,
        }
    }
}

/// The number of a severity that the server left out: an error, as the protocol recommends to take it.
pub(crate) const DEFAULT_SEVERITY: u32 = 1;

/// A diagnostic of a list that has the form of the protocol.
pub(crate) fn diagnostics(list: Vec<Value>) -> Vec<results::LspDiagnostic> {
    results::items(Value::Array(list))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kode_base::paths::AbsPath;

    fn state() -> LanguageServerState {
        LanguageServerState::new(
            "words",
            json!({ "python": { "analysis": { "mode": "strict" } } }),
            json!([{ "uri": "file:///w" }]),
        )
    }

    #[test]
    fn configuration_is_answered_section_by_section() {
        let items = json!({ "items": [{ "section": "python.analysis" }, { "section": "python.none" }, {}] });
        let answer = state().request("workspace/configuration", &items).unwrap();
        assert_eq!(answer[0], json!({ "mode": "strict" }));
        assert_eq!(answer[1], Value::Null);
        assert_eq!(answer[2]["python"]["analysis"]["mode"], "strict");
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_diagnostics_is_kept_within_bounds() {
        let state = state();
        let many = vec![json!({ "message": "x" }); MAX_OF_FILE * 2];
        for number in 0..MAX_FILES + 10 {
            let uri = format!("file:///w/{number}");
            let list = if number == 0 { many.clone() } else { vec![json!({})] };
            state.notification("textDocument/publishDiagnostics", json!({ "uri": uri, "diagnostics": list }));
        }
        let first = Target::File(AbsPath::new("/w/0").unwrap());
        assert_eq!(state.published(&first).unwrap().list.len(), MAX_OF_FILE);
        assert_eq!(state.published_files().len(), MAX_FILES);
    }

    #[tokio::test(start_paused = true)]
    async fn an_edit_that_nobody_asked_for_is_refused() {
        let state = state();
        let edit = json!({ "edit": { "changes": {} } });
        assert_eq!(state.request("workspace/applyEdit", &edit).unwrap()["applied"], false);
        state.begin_capture();
        assert_eq!(state.request("workspace/applyEdit", &edit).unwrap()["applied"], true);
        assert_eq!(state.end_capture(), [json!({ "changes": {} })]);
        assert_eq!(state.request("workspace/applyEdit", &edit).unwrap()["applied"], false);
    }
}
