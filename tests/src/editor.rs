//! An editor: documents with versions, typing, and `workspace/applyEdit` answered as real clients do, or as bad ones
//! do.
//!
//! Rule: the text here is the user's screen. Everything that changes it is sent to the server under the same lock, so
//! that the order of the changes is the order of the notifications.

mod policy;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::{Value, json};

use crate::LIMIT;
use crate::connection::{Connection, Reply};
use crate::position::{Encoding, offset_of, position_of};

pub use policy::{Policy, SaveReason, Typing};

/// Some editors count more than one version for one notification.
const SKIPPED_VERSIONS: i64 = 3;

/// A change of a document that the user made.
#[derive(Clone, Debug)]
pub struct Act {
    /// The document.
    pub uri: String,
    /// The author of the step that the user has made, taken back or brought back.
    pub step_by: Writer,
    /// Its text before.
    pub before: String,
    /// Its text then.
    pub after: String,
}

/// An edit of the agent as it arrived.
#[derive(Clone, Debug)]
pub struct ReceivedEdit {
    /// The parameters of `workspace/applyEdit`.
    pub params: Value,
    /// Whether it was applied.
    pub applied: bool,
}

#[derive(Clone, Debug)]
struct Document {
    text: String,
    version: i64,
    /// The inverse of each step, the newest last.
    undo: Vec<UndoStep>,
    /// The steps that bring undone ones back.
    redo: Vec<UndoStep>,
}

/// The inverse or the repetition of a step.
#[derive(Clone, Debug)]
struct UndoStep {
    changes: Vec<Change>,
    by: Writer,
}

/// The author of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The user, by typing.
    User,
    /// The agent, by an edit.
    Agent,
}

#[derive(Default)]
struct State {
    documents: BTreeMap<String, Document>,
    encoding: Encoding,
    /// Whether changes are sent as whole texts.
    sends_whole_texts: bool,
    next: VecDeque<Policy>,
    always: Option<Policy>,
    received: Vec<ReceivedEdit>,
    typed: Vec<String>,
    acts: Vec<Act>,
    /// Requests that are answered later.
    late: Vec<Value>,
}

/// An editor on a connection. Clones are the same editor.
#[derive(Clone)]
pub struct Editor {
    connection: Arc<Connection>,
    state: Arc<Mutex<State>>,
    /// Told after every edit of the agent's, carried out or not.
    edited: Arc<Condvar>,
}

/// One change of a document: byte range and new text.
type Change = (std::ops::Range<usize>, String);

impl Editor {
    /// An editor that answers `workspace/applyEdit` on this connection.
    #[must_use]
    pub fn new(connection: Arc<Connection>) -> Self {
        let editor =
            Self { connection: Arc::clone(&connection), state: Arc::default(), edited: Arc::default() };
        let (state, edited) = (Arc::clone(&editor.state), Arc::clone(&editor.edited));
        connection.on_request("workspace/applyEdit", move |connection, request| {
            let reply = lock(&state).answer(connection, request);
            edited.notify_all();
            reply
        });
        editor
    }

    /// Sets what positions count, once the server has chosen.
    pub fn set_encoding(&self, encoding: Encoding) {
        self.lock().encoding = encoding;
    }

    /// Sets whether changes are sent as whole texts, as some servers want them.
    pub fn set_whole_texts(&self, sends_whole_texts: bool) {
        self.lock().sends_whole_texts = sends_whole_texts;
    }

    /// Opens a document.
    pub fn open(&self, uri: &str, text: &str) {
        self.open_as(uri, "plaintext", text);
    }

    /// Opens a document in a language.
    pub fn open_as(&self, uri: &str, language: &str, text: &str) {
        self.lock().open(&self.connection, uri, language, text);
    }

    /// Closes a document.
    pub fn close(&self, uri: &str) {
        self.lock().close(&self.connection, uri);
    }

    /// Renames a file whose document is open, as a file tree does: the document is open under the new URI, with what was not
    /// saved.
    ///
    /// # Panics
    /// When the document is not open or the file cannot be renamed.
    pub fn rename(&self, uri: &str, new: &str) {
        self.lock().rename(&self.connection, uri, new);
    }

    /// Types into a document.
    ///
    /// # Panics
    /// When the document is not open or does not hold the place.
    pub fn type_text(&self, uri: &str, typing: &Typing) {
        self.lock().type_text(&self.connection, uri, typing);
    }

    /// Takes the newest step back, typed or made by the agent: what the user's undo key does. Gives whether there was
    /// one.
    ///
    /// # Panics
    /// When the document is not open.
    pub fn undo(&self, uri: &str) -> bool {
        let mut state = self.lock();
        let Some(step) = state.document_mut(uri).undo.pop() else { return false };
        let changes = state.send_user_change(&self.connection, uri, &step.changes, step.by);
        state.document_mut(uri).redo.push(UndoStep { changes, by: step.by });
        true
    }

    /// Brings back the newest step that was taken back: what the user's redo key does. Gives whether there was one.
    ///
    /// # Panics
    /// When the document is not open.
    pub fn redo(&self, uri: &str) -> bool {
        let mut state = self.lock();
        let Some(step) = state.document_mut(uri).redo.pop() else { return false };
        let changes = state.send_user_change(&self.connection, uri, &step.changes, step.by);
        state.document_mut(uri).undo.push(UndoStep { changes, by: step.by });
        true
    }

    /// Writes a document to its file and tells the server, with the reason first where one is given.
    ///
    /// # Panics
    /// When the document is not open or cannot be written.
    pub fn save(&self, uri: &str, reason: Option<SaveReason>) {
        let state = self.lock();
        let identifier = json!({ "uri": uri });
        if let Some(reason) = reason {
            let params = json!({ "textDocument": identifier, "reason": reason as u8 });
            self.connection.notify("textDocument/willSave", params);
        }
        std::fs::write(path_of(uri), &state.document(uri).text).expect("it can be written");
        self.connection.notify("textDocument/didSave", json!({ "textDocument": identifier }));
    }

    /// Answers what [`Policy::AnswerLate`] has left unanswered.
    pub fn answer_late(&self) {
        self.lock().answer_late(&self.connection);
    }

    /// Whether a document is open.
    #[must_use]
    pub fn is_open(&self, uri: &str) -> bool {
        self.lock().documents.contains_key(uri)
    }

    /// The text on the screen.
    ///
    /// # Panics
    /// When the document is not open.
    #[must_use]
    pub fn text(&self, uri: &str) -> String {
        self.lock().document(uri).text.clone()
    }

    /// Waits until the text on the screen is as wanted, the agent's edits changing it; gives it.
    ///
    /// # Panics
    /// When it does not become so within [`LIMIT`], or the document is not open.
    pub fn wait_text(&self, uri: &str, what: &str, is_wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + LIMIT;
        let mut state = self.lock();
        loop {
            let text = &state.document(uri).text;
            if is_wanted(text) {
                return text.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited for {what}, but the text is {text:?}");
            state = self.edited.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until an edit of the agent has arrived, applied or not.
    ///
    /// # Panics
    /// When none arrives within [`LIMIT`].
    pub fn wait_edit(&self) {
        let deadline = Instant::now() + LIMIT;
        let mut state = self.lock();
        while state.received.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited for an edit of the agent");
            state = self.edited.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The version of the document.
    ///
    /// # Panics
    /// When the document is not open.
    #[must_use]
    pub fn version(&self, uri: &str) -> i64 {
        self.lock().document(uri).version
    }

    /// The byte offset of an LSP position in the document as it is.
    ///
    /// # Panics
    /// When there is no such place.
    #[must_use]
    pub fn offset(&self, uri: &str, position: &Value) -> usize {
        let state = self.lock();
        offset_of(&state.document(uri).text, position, state.encoding)
    }

    /// The handling of the next edit; further calls are for the edits after it.
    pub fn next(&self, policy: Policy) {
        self.lock().next.push_back(policy);
    }

    /// The handling of every edit without an act in [`Editor::next`].
    pub fn always(&self, policy: Policy) {
        self.lock().always = Some(policy);
    }

    /// Forgets what [`Editor::next`] reported, received messages and the typed text.
    pub fn forget(&self) {
        let mut state = self.lock();
        state.next.clear();
        state.received.clear();
        state.typed.clear();
        state.acts.clear();
    }

    /// Everything the user has typed, in whichever document.
    #[must_use]
    pub fn typed(&self) -> Vec<String> {
        self.lock().typed.clone()
    }

    /// Everything the user has done to documents: typed, deleted, taken back and brought back.
    #[must_use]
    pub fn acts(&self) -> Vec<Act> {
        self.lock().acts.clone()
    }

    /// Takes the acts of [`Editor::acts`], which are forgotten.
    #[must_use]
    pub fn take_acts(&self) -> Vec<Act> {
        std::mem::take(&mut self.lock().acts)
    }

    /// The edits that arrived so far.
    #[must_use]
    pub fn edits(&self) -> Vec<ReceivedEdit> {
        self.lock().received.clone()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn document(&self, uri: &str) -> &Document {
        self.documents.get(uri).unwrap_or_else(|| panic!("{uri} is not open in the editor"))
    }

    fn document_mut(&mut self, uri: &str) -> &mut Document {
        self.documents.get_mut(uri).unwrap_or_else(|| panic!("{uri} is not open in the editor"))
    }

    fn answer_late(&mut self, connection: &Connection) {
        for request in self.late.drain(..) {
            connection.answer(&request, json!({ "applied": true }));
        }
    }

    fn answer(&mut self, connection: &Connection, request: &Value) -> Reply {
        let params = &request["params"];
        let policy = self.next.pop_front().or_else(|| self.always.clone()).unwrap_or(Policy::Apply);
        if let Policy::TypeFirst(typings) = &policy {
            let uri = edits_of(params).remove(0).0;
            typings.iter().for_each(|typing| self.type_text(connection, &uri, typing));
        }
        match &policy {
            Policy::CloseFirst => self.close(connection, &edits_of(params).remove(0).0),
            Policy::RenameFirst(new) => self.rename(connection, &edits_of(params).remove(0).0, new),
            _ => {}
        }
        let refusal = match &policy {
            Policy::Reject(reason) => Some(reason.clone()),
            Policy::Ignore | Policy::Lie => Some("not even tried".to_owned()),
            _ => self.misfit(params),
        };
        let applied = refusal.is_none();
        self.received.push(ReceivedEdit { params: params.clone(), applied });
        let yes = json!({ "applied": true });
        if matches!(policy, Policy::AnswerFirst) && applied {
            connection.answer(request, yes.clone());
        }
        if matches!(policy, Policy::HangUp) {
            connection.hang_up();
        }
        if applied {
            self.apply(connection, params, &policy);
        }
        if matches!(policy, Policy::AnswerLate) && applied {
            self.late.push(request.clone());
            return Reply::Silence;
        }
        match (policy, refusal) {
            (Policy::NeverAnswer | Policy::Ignore | Policy::HangUp, _) | (Policy::AnswerFirst, None) => {
                Reply::Silence
            }
            (Policy::Partly, None) => Reply::Result(
                json!({ "applied": false, "failureReason": "a place was not there", "failedChange": 0 }),
            ),
            (Policy::Lie, _) | (_, None) => Reply::Result(yes),
            (_, Some(reason)) => Reply::Result(json!({ "applied": false, "failureReason": reason })),
        }
    }

    /// Why an edit cannot be applied: a document that is not open or not in the version the edit is for.
    fn misfit(&self, params: &Value) -> Option<String> {
        edits_of(params).into_iter().find_map(|(uri, version, _)| match self.documents.get(&uri) {
            None => Some(format!("{uri} is not open")),
            Some(document) if version.is_some_and(|version| version != document.version) => {
                Some(format!("{uri} has changed meanwhile"))
            }
            Some(_) => None,
        })
    }

    fn apply(&mut self, connection: &Connection, params: &Value, policy: &Policy) {
        for (uri, _, edits) in edits_of(params) {
            let document = self.document(&uri).clone();
            let mut changes: Vec<Change> =
                edits.iter().map(|edit| document.change_of(edit, self.encoding)).collect();
            if changes.is_empty() {
                continue;
            }
            if matches!(policy, Policy::Partly) {
                changes.truncate(1);
            }
            // From the end, so that no change moves another; the protocol says they do not overlap.
            changes.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
            let overlap = changes.windows(2).any(|pair| pair[1].0.end > pair[0].0.start);
            assert!(!overlap, "overlapping edits: {params}");
            if let Policy::TypeInBatch(typings) | Policy::TypeInWhole(typings) = policy {
                let mut after = document.clone();
                for change in &changes {
                    after.replace(change);
                }
                let before = after.text.clone();
                for typing in typings {
                    let change = typing.change(&after.text);
                    after.replace(&change);
                    changes.push(change);
                    self.typed.push(typing.insert.clone());
                }
                self.acts.push(Act { uri: uri.clone(), step_by: Writer::User, before, after: after.text });
            }
            let mut back = match policy {
                Policy::TypeInWhole(_) => self.replace_whole(connection, &uri, &changes),
                Policy::InPieces => {
                    let pieces = changes.iter().map(std::slice::from_ref);
                    let mut back: Vec<Change> =
                        pieces.flat_map(|piece| self.send_change(connection, &uri, piece)).collect();
                    back.reverse();
                    back
                }
                _ => self.send_change(connection, &uri, &changes),
            };
            // In one notification, but two steps to the user, who has typed last.
            let of_user = if matches!(policy, Policy::Partly) { 0 } else { changes.len() - edits.len() };
            let agents = back.split_off(of_user);
            let document = self.document_mut(&uri);
            document.take_step(agents, Writer::Agent);
            if !back.is_empty() {
                document.take_step(back, Writer::User);
            }
            if matches!(policy, Policy::Twice) {
                self.apply_again(connection, &uri, &changes);
            }
            if let Policy::TypeThenAnswer(typings) = policy {
                typings.iter().for_each(|typing| self.type_text(connection, &uri, typing));
            }
        }
        for uri in deletions_of(params) {
            self.documents.remove(&uri);
            std::fs::remove_file(path_of(&uri)).expect("it can be deleted");
            connection.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
        }
    }

    /// Makes the first of changes that were made already once more, if it fits the text. What it removes counts as removed by the
    /// user: the editor has done it, and not the server.
    fn apply_again(&mut self, connection: &Connection, uri: &str, changes: &[Change]) {
        let text = &self.document(uri).text;
        let Some(change) = changes.iter().find(|(range, _)| text.get(range.clone()).is_some()).cloned()
        else {
            return;
        };
        let back = self.send_user_change(connection, uri, &[change], Writer::User);
        self.document_mut(uri).take_step(back, Writer::User);
    }

    fn close(&mut self, connection: &Connection, uri: &str) {
        self.documents.remove(uri);
        connection.notify("textDocument/didClose", json!({ "textDocument": { "uri": uri } }));
    }

    /// Renames the file of a document, which stays open with its unsaved changes.
    fn rename(&mut self, connection: &Connection, uri: &str, new: &str) {
        let text = self.document(uri).text.clone();
        std::fs::rename(path_of(uri), path_of(new)).expect("it can be renamed");
        self.close(connection, uri);
        self.open(connection, new, "plaintext", &text);
    }

    fn open(&mut self, connection: &Connection, uri: &str, language: &str, text: &str) {
        let (undo, redo) = (Vec::new(), Vec::new());
        self.documents.insert(uri.to_owned(), Document { text: text.to_owned(), version: 1, undo, redo });
        let document = json!({ "uri": uri, "languageId": language, "version": 1, "text": text });
        connection.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn replace_whole(&mut self, connection: &Connection, uri: &str, changes: &[Change]) -> Vec<Change> {
        let document = self.document_mut(uri);
        let mut back: Vec<Change> = changes.iter().map(|change| document.replace(change)).collect();
        back.reverse();
        document.version += SKIPPED_VERSIONS;
        let identifier = json!({ "uri": uri, "version": document.version });
        let params = json!({ "textDocument": identifier, "contentChanges": [{ "text": document.text }] });
        connection.notify("textDocument/didChange", params);
        back
    }

    fn type_text(&mut self, connection: &Connection, uri: &str, typing: &Typing) {
        let change = typing.change(&self.document(uri).text);
        self.typed.push(typing.insert.clone());
        let back = self.send_user_change(connection, uri, &[change], Writer::User);
        self.document_mut(uri).take_step(back, Writer::User);
    }

    fn send_user_change(
        &mut self,
        connection: &Connection,
        uri: &str,
        changes: &[Change],
        step_by: Writer,
    ) -> Vec<Change> {
        let before = self.document(uri).text.clone();
        let back = self.send_change(connection, uri, changes);
        let after = self.document(uri).text.clone();
        self.acts.push(Act { uri: uri.to_owned(), step_by, before, after });
        back
    }

    /// Makes changes, each on the text the one before has left, and tells the server in one notification; gives the
    /// changes that take them back.
    fn send_change(&mut self, connection: &Connection, uri: &str, changes: &[Change]) -> Vec<Change> {
        let (encoding, sends_whole_texts) = (self.encoding, self.sends_whole_texts);
        let document = self.document_mut(uri);
        document.version += 1;
        let mut back = Vec::with_capacity(changes.len());
        let mut events: Vec<Value> = changes
            .iter()
            .map(|change| {
                let position = |offset| position_of(&document.text, offset, encoding);
                let range = json!({ "start": position(change.0.start), "end": position(change.0.end) });
                back.push(document.replace(change));
                json!({ "range": range, "text": change.1 })
            })
            .collect();
        back.reverse();
        if sends_whole_texts {
            events = vec![json!({ "text": document.text })];
        }
        let identifier = json!({ "uri": uri, "version": document.version });
        let params = json!({ "textDocument": identifier, "contentChanges": events });
        connection.notify("textDocument/didChange", params);
        self.answer_late(connection);
        back
    }
}

impl Document {
    fn change_of(&self, edit: &Value, encoding: Encoding) -> Change {
        let offset = |end: &str| offset_of(&self.text, &edit["range"][end], encoding);
        (offset("start")..offset("end"), edit["newText"].as_str().expect("a new text").to_owned())
    }

    /// Makes a change; gives the one that takes it back.
    fn replace(&mut self, (range, text): &Change) -> Change {
        let old = self.text[range.clone()].to_owned();
        self.text.replace_range(range.clone(), text);
        (range.start..range.start + text.len(), old)
    }

    fn take_step(&mut self, changes: Vec<Change>, by: Writer) {
        self.undo.push(UndoStep { changes, by });
        self.redo.clear();
    }
}

/// The edits of a workspace edit by document: URI, version where it has one, text edits.
fn edits_of(params: &Value) -> Vec<(String, Option<i64>, Vec<Value>)> {
    let edits = |value: &Value| value.as_array().unwrap_or_else(|| panic!("{params} has no edits")).clone();
    let edit = &params["edit"];
    if let Some(changes) = edit["documentChanges"].as_array() {
        return changes
            .iter()
            .filter(|change| change["kind"].is_null())
            .map(|change| {
                let document = &change["textDocument"];
                let uri = document["uri"].as_str().expect("a URI").to_owned();
                (uri, document["version"].as_i64(), edits(&change["edits"]))
            })
            .collect();
    }
    let changes = edit["changes"].as_object().unwrap_or_else(|| panic!("{params} has no changes"));
    changes.iter().map(|(uri, changes)| (uri.clone(), None, edits(changes))).collect()
}

/// The files that an edit deletes, by URI.
fn deletions_of(params: &Value) -> Vec<String> {
    let changes = params["edit"]["documentChanges"].as_array().cloned().unwrap_or_default();
    let deletions = changes.iter().filter(|change| change["kind"] == "delete");
    deletions.map(|change| change["uri"].as_str().expect("a URI").to_owned()).collect()
}

fn path_of(uri: &str) -> std::path::PathBuf {
    url::Url::parse(uri).ok().and_then(|uri| uri.to_file_path().ok()).expect("a file")
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
