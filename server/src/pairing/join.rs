//! The side of `kode-ls acp` in a pair: the documents of the editor as they are there, edited through its language server.
//!
//! Rule: an event of a document is entered before the answer that follows it is seen. A text that cannot be what the server has
//! ends the pair. Once it has ended no document is open any more, and each is reported as closed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use kode_engine::acp::lines::{MessageReader, OUTBOX, write_lines};
use kode_engine::acp::message::RpcMessage;
use kode_engine::acp::peer::{PeerCallError, RpcPeer};
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::base::task;
use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::edit::change::apply_edits;
use kode_engine::text::host::{
    DiagnosticsError, DocumentEdit, DocumentEditOutcome, DocumentEvent, DocumentObserver, FileDiagnostics,
    Host, SaveOutcome,
};
use ropey::Rope;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::place;
use super::wire::{
    DELETE, DIAGNOSE, DiagnoseParams, EDIT, EVENT, EditParams, HELLO, HUNKS, Hello, HunkParams, PairEvent,
    PairOffer, PairedDocument, SAVE, VERSION, Welcome, WireDiagnostics, WireEdit, WireSave,
};
use crate::documents::SAVE_LIMIT;
use crate::host::EDIT_LIMIT;
use crate::lsp::position::PositionEncoding;
use crate::plain::review::publish::HunkFile;

/// How long finding and greeting a language server may take: a new session waits for it.
const PAIR_LIMIT: Duration = Duration::from_millis(500);

/// How much longer an answer may take than the server itself waits for the editor.
const ANSWER_GRACE: Duration = Duration::from_secs(5);

/// How long diagnostics may take.
const DIAGNOSE_LIMIT: Duration = Duration::from_secs(15);

/// The editor, as its language server shows it.
pub(crate) struct PairedEditor {
    /// The name of the editor.
    pub(crate) name: String,
    peer: Arc<RpcPeer>,
    mirror: Arc<Mirror>,
    can_save: bool,
    can_diagnose: bool,
    locale: Option<String>,
    /// The unit of positions of the editor.
    pub(crate) encoding: PositionEncoding,
    _tasks: [OwnTask; 2],
}

/// A task that ends with this.
struct OwnTask(JoinHandle<()>);

impl Drop for OwnTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The documents of the editor as its events add up.
#[derive(Default)]
struct Mirror {
    state: Mutex<MirrorState>,
    /// Fires when the pair has ended.
    gone: CancellationToken,
}

#[derive(Default)]
struct MirrorState {
    documents: HashMap<String, DocumentSnapshot>,
    observers: Vec<Weak<dyn DocumentObserver>>,
}

impl PairedEditor {
    /// Pairs with the language server that the editor above this process runs for a folder; `None` without one.
    pub(crate) async fn find(cwd: &AbsPath) -> Option<Arc<Self>> {
        let at = cwd.clone();
        let pairing = async move {
            let offer = task::spawn_blocking(move || place::find(&at)).await.ok()??;
            match Self::greet(&offer).await {
                Ok(paired) => Some(paired),
                Err(why) => {
                    tracing::info!(why, process = offer.process, "a language server cannot be paired with");
                    None
                }
            }
        };
        timeout(PAIR_LIMIT, pairing).await.ok()?
    }

    async fn greet(offer: &PairOffer) -> Result<Arc<Self>, String> {
        let stream = UnixStream::connect(&offer.socket).await.map_err(|error| error.to_string())?;
        let credentials = stream.peer_cred().map_err(|error| error.to_string())?;
        if credentials.uid() != rustix::process::geteuid().as_raw() {
            return Err("another user listens there".to_owned());
        }
        let (input, output) = stream.into_split();
        let (outbox, queue) = mpsc::channel(OUTBOX);
        let (peer, mirror) = (RpcPeer::new(outbox), Arc::new(Mirror::default()));
        let writer = task::spawn(async move {
            if let Err(error) = write_lines(output, queue).await {
                tracing::debug!(%error, "the language server of a pair reads no more");
            }
        });
        let reader = task::spawn(read_all(MessageReader::new(input), Arc::clone(&peer), Arc::clone(&mirror)));
        let tasks = [OwnTask(writer), OwnTask(reader)];
        let hello = Hello { version: VERSION, token: offer.token.clone() };
        let welcome: Welcome =
            peer.request(HELLO, hello, Some(PAIR_LIMIT)).await.map_err(|error| error.to_string())?;
        let Welcome { editor, documents, can_save, can_diagnose, locale, encoding } = welcome;
        mirror.add(documents.into_iter().map(DocumentSnapshot::from));
        Ok(Arc::new(Self {
            name: editor,
            peer,
            mirror,
            can_save,
            can_diagnose,
            locale,
            encoding,
            _tasks: tasks,
        }))
    }

    /// Whether the language server is still there.
    pub(crate) fn is_there(&self) -> bool {
        !self.mirror.gone.is_cancelled()
    }

    /// Fires when the pair has ended.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.mirror.gone.clone()
    }
}

/// Reads what the server sends, until it goes or sends what cannot be.
async fn read_all(mut lines: MessageReader<OwnedReadHalf>, peer: Arc<RpcPeer>, mirror: Arc<Mirror>) {
    while let Ok(Some(line)) = lines.next().await {
        match RpcMessage::of(&line) {
            RpcMessage::Answer { id, outcome } => peer.resolve(&id, outcome),
            RpcMessage::Notification { method, params } if method == EVENT => {
                let event = serde_json::from_value::<PairEvent>(params.unwrap_or_default());
                let is_entered = event.is_ok_and(|event| mirror.enter(event));
                if !is_entered {
                    tracing::warn!("a document of a pair is not what its language server has; the pair ends");
                    break;
                }
            }
            RpcMessage::Request { .. } | RpcMessage::Notification { .. } | RpcMessage::Invalid { .. } => {
                break;
            }
        }
    }
    peer.close();
    mirror.end();
}

impl Mirror {
    fn state(&self) -> MutexGuard<'_, MirrorState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds documents, where events have not shown newer ones.
    fn add(&self, documents: impl Iterator<Item = DocumentSnapshot>) {
        let mut state = self.state();
        for document in documents {
            let known = state.documents.get(&document.uri);
            if known.is_none_or(|known| known.version < document.version) {
                state.documents.insert(document.uri.clone(), document);
            }
        }
    }

    /// Enters an event. Answers whether the documents are those of the server.
    fn enter(&self, event: PairEvent) -> bool {
        let mut state = self.state();
        match event {
            PairEvent::Opened { document } => {
                let document = DocumentSnapshot::from(document);
                state.documents.insert(document.uri.clone(), document.clone());
                state.publish(&DocumentEvent::Opened(document));
            }
            PairEvent::Changed { uri, version, edits, text, length } => {
                // Earlier changes are in the documents of the answer.
                let Some(before) = state.documents.get(&uri).filter(|known| known.version < version).cloned()
                else {
                    return true;
                };
                let Some(text) = changed(&before.text, edits.as_deref(), text) else { return false };
                if text.len_bytes() != length {
                    return false;
                }
                let after = DocumentSnapshot { version, text, ..before.clone() };
                state.documents.insert(uri, after.clone());
                state.publish(&DocumentEvent::Changed { before, after, edits });
            }
            PairEvent::Saved { uri, by_user } => {
                if let Some(document) = state.documents.get(&uri).cloned() {
                    state.publish(&DocumentEvent::Saved { document, by_user });
                }
            }
            PairEvent::Closed { uri } => {
                if let Some(document) = state.documents.remove(&uri) {
                    state.publish(&DocumentEvent::Closed(document));
                }
            }
        }
        true
    }

    /// Ends the pair: nothing is open here any more.
    fn end(&self) {
        self.gone.cancel();
        let mut state = self.state();
        for (_, document) in std::mem::take(&mut state.documents) {
            state.publish(&DocumentEvent::Closed(document));
        }
    }
}

impl MirrorState {
    fn publish(&mut self, event: &DocumentEvent) {
        self.observers.retain(|observer| match observer.upgrade() {
            Some(observer) => {
                observer.observe(event);
                true
            }
            None => false,
        });
    }
}

/// The text after a change; `None` for edits that do not fit.
fn changed(
    before: &Rope,
    edits: Option<&[kode_engine::text::edit::TextEdit]>,
    text: Option<String>,
) -> Option<Rope> {
    let Some(edits) = edits else { return text.map(|text| Rope::from_str(&text)) };
    let mut after = before.clone();
    let mut end = before.len_bytes();
    for edit in edits.iter().rev() {
        let is_boundary =
            |at: usize| at <= before.len_bytes() && before.char_to_byte(before.byte_to_char(at)) == at;
        if edit.range.start > edit.range.end
            || edit.range.end > end
            || !is_boundary(edit.range.start)
            || !is_boundary(edit.range.end)
        {
            return None;
        }
        end = edit.range.start;
        let at = before.byte_to_char(edit.range.start);
        after.remove(at..before.byte_to_char(edit.range.end));
        after.insert(at, &edit.new_text);
    }
    Some(after)
}

fn unconfirmed(error: &PeerCallError) -> DocumentEditOutcome {
    let reason = match error {
        PeerCallError::Gone => "the language server of the editor ended meanwhile".to_owned(),
        error => format!("the language server of the editor: {error}"),
    };
    DocumentEditOutcome::Unconfirmed { reason }
}

#[async_trait]
impl Host for PairedEditor {
    fn document(&self, target: &Target) -> Option<DocumentSnapshot> {
        self.mirror.state().documents.values().find(|document| document.target() == *target).cloned()
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        self.mirror.state().documents.values().cloned().collect()
    }

    async fn edit_document(&self, edit: DocumentEdit) -> DocumentEditOutcome {
        let DocumentEdit { base, edits, label } = edit;
        let target = base.target();
        let expected = apply_edits(&base.text.to_string(), &edits);
        let params = EditParams { uri: base.uri, version: base.version, edits, label };
        let answer = self.peer.request::<_, WireEdit>(EDIT, params, Some(EDIT_LIMIT + ANSWER_GRACE)).await;
        match answer {
            Ok(WireEdit::Applied) => match self.document(&target) {
                // The event that shows the edit was entered before the answer.
                Some(shown) if shown.version != base.version || shown.text == *expected => {
                    DocumentEditOutcome::Applied(shown)
                }
                Some(_) => DocumentEditOutcome::Unconfirmed { reason: "no change was seen".to_owned() },
                None => DocumentEditOutcome::Closed,
            },
            Ok(WireEdit::Stale) => DocumentEditOutcome::Stale,
            Ok(WireEdit::Closed) => DocumentEditOutcome::Closed,
            Ok(WireEdit::Rejected { reason }) => DocumentEditOutcome::Rejected { reason },
            Ok(WireEdit::Unconfirmed { reason }) => DocumentEditOutcome::Unconfirmed { reason },
            Err(error) => unconfirmed(&error),
        }
    }

    fn observe_documents(&self, observer: Weak<dyn DocumentObserver>) {
        self.mirror.state().observers.push(observer);
    }

    fn can_save(&self) -> bool {
        self.can_save
    }

    async fn save_document(&self, target: &Target) -> SaveOutcome {
        let Some(document) = self.document(target) else { return SaveOutcome::NotOpen };
        let params = PairedDocument { uri: document.uri, version: None };
        match self.peer.request::<_, WireSave>(SAVE, params, Some(SAVE_LIMIT + ANSWER_GRACE)).await {
            Ok(outcome) => outcome.into(),
            Err(error) => SaveOutcome::Failed { reason: error.to_string() },
        }
    }

    async fn delete_document(&self, document: &DocumentSnapshot) -> bool {
        let params = PairedDocument { uri: document.uri.clone(), version: Some(document.version) };
        self.peer.request(DELETE, params, Some(EDIT_LIMIT + ANSWER_GRACE)).await.unwrap_or_else(|error| {
            tracing::info!(%error, "a document of a pair was not deleted");
            false
        })
    }

    fn locale(&self) -> Option<String> {
        self.locale.clone()
    }

    fn can_diagnose(&self) -> bool {
        self.can_diagnose && self.is_there()
    }

    async fn diagnostics(&self, targets: &[Target]) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        self.diagnose(targets, None).await
    }

    async fn settled_diagnostics(
        &self,
        targets: &[Target],
        limit: Duration,
    ) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        self.diagnose(targets, Some(limit)).await
    }
}

impl PairedEditor {
    /// Shows the hunks of a session in place of those that were shown by this number before.
    pub(crate) async fn show_hunks(&self, number: u64, files: Vec<HunkFile>) {
        let params = HunkParams { number, files };
        if let Err(error) = self.peer.request::<_, ()>(HUNKS, params, Some(ANSWER_GRACE)).await {
            tracing::debug!(%error, "the hunks of a session are not shown in the editor");
        }
    }

    async fn diagnose(
        &self,
        targets: &[Target],
        settle: Option<Duration>,
    ) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        let settle_ms = settle.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
        let limit = settle.unwrap_or_default() + DIAGNOSE_LIMIT;
        let params = DiagnoseParams { targets: targets.to_vec(), settle_ms };
        let found: Result<Vec<WireDiagnostics>, _> = self.peer.request(DIAGNOSE, params, Some(limit)).await;
        let found = found.map_err(|error| DiagnosticsError::Failed(error.to_string()))?;
        Ok(found.into_iter().map(FileDiagnostics::from).collect())
    }
}

#[cfg(test)]
mod tests {
    use kode_engine::text::edit::TextEdit;

    use super::*;
    use crate::pairing::wire::WireDocument;

    fn opened(text: &str) -> PairEvent {
        let (uri, language_id) = ("file:///w/a.txt".to_owned(), String::new());
        let path = AbsPath::new("/w/a.txt").ok();
        PairEvent::Opened {
            document: WireDocument { uri, path, language_id, version: 1, text: text.to_owned() },
        }
    }

    fn change(version: i32, edits: &[(usize, usize, &str)], length: usize) -> PairEvent {
        let edit = |&(start, end, text): &(usize, usize, &str)| TextEdit {
            range: start..end,
            new_text: text.to_owned(),
        };
        let edits = Some(edits.iter().map(edit).collect());
        PairEvent::Changed { uri: "file:///w/a.txt".to_owned(), version, edits, text: None, length }
    }

    #[test]
    fn a_mirror_follows_edits_and_notices_what_cannot_be() {
        let mirror = Mirror::default();
        assert!(mirror.enter(change(2, &[], 0)), "an unknown document is in the answer later");
        assert!(mirror.enter(opened("aéb")));
        assert!(mirror.enter(change(2, &[(0, 1, "XX"), (3, 4, "")], 4)));
        assert_eq!(mirror.state().documents["file:///w/a.txt"].text, *"XXé");
        assert!(mirror.enter(change(2, &[(0, 9, "")], 0)), "it is in the text already");
        for (edits, length) in
            [(&[(3, 4, "")][..], 3), (&[(0, 9, "")], 0), (&[(2, 1, "")], 4), (&[(0, 1, "")], 9)]
        {
            assert!(!mirror.enter(change(3, edits, length)), "{edits:?}");
        }
        mirror.end();
        assert!(mirror.state().documents.is_empty() && mirror.gone.is_cancelled());
    }
}
