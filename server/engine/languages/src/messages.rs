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
use crate::known;
use crate::results;
use crate::uri;
use kode_base::paths::Target;

/// The most files whose diagnostics are kept.
const MAX_FILES: usize = 5_000;
/// The most diagnostics of a file that are kept.
const MAX_OF_FILE: usize = 1_000;
/// The most kinds of work in progress that are kept.
const MAX_PROGRESS: usize = 100;
/// The most characters of a title of work in progress.
const MAX_TITLE: usize = 200;

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
    settings: Value,
    folders: Value,
    published: Mutex<HashMap<Target, PublishedDiagnostics>>,
    progress: Mutex<HashMap<String, String>>,
    /// Whether the server says that it has nothing left to do; `None` for one that does not say.
    is_quiescent: Mutex<Option<bool>>,
    /// Until when a server that searches for the files of its project is expected to log the end of it.
    search_limit: Mutex<Option<Instant>>,
    /// When work in progress last began or ended.
    changed: Mutex<Instant>,
    /// The edits of commands that run now; `None` when no command runs, so that no edit is applied unasked.
    captured: Mutex<Option<Vec<Value>>>,
    revision: watch::Sender<u64>,
}

impl LanguageServerState {
    /// The state of a server with these `settings`, of these workspace folders.
    pub(crate) fn new(settings: Value, folders: Value) -> Self {
        Self {
            settings,
            folders,
            published: Mutex::default(),
            progress: Mutex::default(),
            is_quiescent: Mutex::default(),
            search_limit: Mutex::default(),
            changed: Mutex::new(Instant::now()),
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

    /// Expects the server to log the end of its search for files. One that settings keep from logging counts as done at `limit`.
    pub(crate) fn expect_search(&self, limit: Instant) {
        *self.search_limit.lock() = Some(limit);
    }

    /// The work in progress, in words; `None` when the server is idle. A server that reports its status may build and check
    /// while it is idle.
    pub(crate) fn unfinished(&self) -> Option<String> {
        if self.search_limit.lock().is_some_and(|limit| Instant::now() < limit) {
            return Some("searching for the files of the project".to_owned());
        }
        match *self.is_quiescent.lock() {
            Some(true) => None,
            Some(false) => Some("loading the project".to_owned()),
            None => self.progress.lock().values().next().cloned(),
        }
    }

    /// Whether the server reports that it loads its project.
    pub(crate) fn is_loading(&self) -> bool {
        *self.is_quiescent.lock() == Some(false)
    }

    /// When work in progress last began or ended.
    pub(crate) fn changed_at(&self) -> Instant {
        *self.changed.lock()
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

    fn report_progress(&self, parameters: &Value) {
        let Some(token) = parameters.get("token").map(Value::to_string) else { return };
        let value = parameters.get("value").unwrap_or(&Value::Null);
        let mut progress = self.progress.lock();
        match value.get("kind").and_then(Value::as_str) {
            Some("begin") if progress.len() < MAX_PROGRESS => {
                let title = value.get("title").and_then(Value::as_str).unwrap_or("working");
                progress.insert(token, title.chars().take(MAX_TITLE).collect());
            }
            Some("end") => {
                progress.remove(&token);
            }
            _ => return,
        }
        *self.changed.lock() = Instant::now();
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
            "$/progress" => self.report_progress(&parameters),
            "experimental/serverStatus" => {
                *self.is_quiescent.lock() = parameters.get("quiescent").and_then(Value::as_bool);
                *self.changed.lock() = Instant::now();
            }
            "window/logMessage" | "window/showMessage" => {
                let text = parameters.get("message").and_then(Value::as_str).unwrap_or_default();
                tracing::debug!(text, "a language server logs");
                if !known::ends_search(text) || self.search_limit.lock().take().is_none() {
                    return;
                }
                *self.changed.lock() = Instant::now();
            }
            _ => return,
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
    use std::time::Duration;

    use super::*;
    use kode_base::paths::AbsPath;

    fn state() -> LanguageServerState {
        LanguageServerState::new(
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
    async fn work_in_progress_is_known_until_its_end() {
        let state = state();
        let report = |kind: &str| json!({ "token": 1, "value": { "kind": kind, "title": "Indexing" } });
        state.notification("$/progress", report("begin"));
        assert_eq!(state.unfinished().as_deref(), Some("Indexing"));
        state.notification("$/progress", report("report"));
        state.notification("$/progress", report("end"));
        assert_eq!(state.unfinished(), None);
        state.notification("experimental/serverStatus", json!({ "quiescent": false }));
        assert!(state.unfinished().is_some() && state.is_loading());
        state.notification("$/progress", report("begin"));
        state.notification("experimental/serverStatus", json!({ "quiescent": true }));
        assert_eq!(state.unfinished(), None, "a check of the code is no loading");
    }

    #[tokio::test(start_paused = true)]
    async fn a_search_for_files_goes_on_until_the_server_logs_its_end() {
        let state = state();
        let log = |text: &str| state.notification("window/logMessage", json!({ "type": 3, "message": text }));
        log("Found 1 source file");
        let expect = || state.expect_search(Instant::now() + Duration::from_secs(60));
        expect();
        log("Searching for source files");
        assert!(state.unfinished().is_some());
        log("Found 2 source files");
        assert_eq!(state.unfinished(), None);
        expect();
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_eq!(state.unfinished(), None, "a server that does not log");
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
