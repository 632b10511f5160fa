//! The editor as the engine sees it: open documents, edits of them through `workspace/applyEdit`, their saves, and what
//! its language servers say.
//!
//! Rule: an edit counts as made when the document has shown it, whatever the editor answers, and every wait for
//! the editor has a limit. Edits of one document go one after the other.

mod diagnostics;
mod languages;

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use kode_engine::base::paths::Target;
use kode_engine::base::task;
use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::edit::TextEdit;
use kode_engine::text::host::{
    DiagnosticsError, DocumentEdit, DocumentEditOutcome, DocumentObserver, FileDiagnostics, Host, SaveOutcome,
};
use kode_protocol as wire;
use lsp_types::request::ApplyWorkspaceEdit;
use lsp_types::{
    ApplyWorkspaceEditParams, DeleteFile, DeleteFileOptions, DocumentChangeOperation, DocumentChanges, OneOf,
    OptionalVersionedTextDocumentIdentifier, ResourceOp, TextDocumentEdit, Url, WorkspaceEdit,
};
use ropey::Rope;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tower_lsp::jsonrpc::ErrorCode;

use crate::client::ClientFacts;
use crate::connection::ClientConnection;
use crate::documents::{EditExpectation, EditSettlement, ExpectError, SAVE_LIMIT, target};
use crate::lsp::PositionEncoding;

pub(crate) use languages::EditorLanguages;

/// How long one edit may take, waiting for earlier edits of the document included.
pub const EDIT_LIMIT: Duration = Duration::from_secs(30);

/// How long an edit may take that is late, where its maker waits for it before anything else.
const LATE_LIMIT: Duration = Duration::from_secs(600);

/// How long the document may take to show an edit the editor says it has applied.
pub const SHOW_GRACE: Duration = Duration::from_secs(5);

/// How long after a refusal a change of the document may arrive that explains it.
pub const STALE_GRACE: Duration = Duration::from_secs(1);

/// How long a document that has moved may take to show a versioned edit the editor says it has applied.
pub const DROP_GRACE: Duration = Duration::from_secs(1);

/// Why no open document is changed in an editor that does not tell that it applies edits.
const NO_EDITS: &str = "the editor does not offer workspace/applyEdit; where it can apply edits all the same, \
    initializationOptions can say so: {\"clientCapabilities\": {\"workspace\": {\"applyEdit\": true}}}";

/// The engine's host over one LSP client.
pub struct LspHost {
    connection: Arc<ClientConnection>,
}

/// The editor's answer about an edit.
enum EditAnswer {
    Applied,
    Refused(String),
    Illegible(String),
}

impl LspHost {
    /// A host for the client of this server.
    #[must_use]
    pub fn new(connection: Arc<ClientConnection>) -> Self {
        Self { connection }
    }

    /// Edits an open document as [`Host::edit_document`] does, for one who continues however late the editor reports it: for
    /// ten minutes, in which no other edit of the document is made.
    pub(crate) async fn edit_patiently(&self, edit: DocumentEdit) -> DocumentEditOutcome {
        self.edit_within(edit, LATE_LIMIT, LATE_LIMIT).await
    }

    /// Edits an open document, which may take so long, and so long to show what the editor says it has applied.
    async fn edit_within(&self, edit: DocumentEdit, limit: Duration, grace: Duration) -> DocumentEditOutcome {
        let deadline = Instant::now() + limit;
        let facts = match self.connection.facts.get() {
            Some(facts) if facts.apply_edit => facts,
            Some(_) | None => return rejected(NO_EDITS),
        };
        let Ok(uri) = Url::parse(&edit.base.uri) else {
            return rejected(&format!("`{}` is not a URI", edit.base.uri));
        };
        let Some(turn) = self.connection.documents.edit_turn(&edit.base) else {
            return DocumentEditOutcome::Closed;
        };
        let seconds = limit.as_secs();
        let Ok(_turn) = timeout_at(deadline, turn.lock()).await else {
            return unconfirmed(&format!(
                "an earlier edit of the document was still under way after {seconds} s"
            ));
        };
        let mut expectation = match self.connection.documents.expect(&edit.base, &edit.edits) {
            Ok(expectation) => expectation,
            Err(ExpectError::Stale) => return DocumentEditOutcome::Stale,
            Err(ExpectError::Closed) => return DocumentEditOutcome::Closed,
        };
        let text_edits = to_lsp(&edit.base.text, &edit.edits, facts.encoding);
        if text_edits.is_empty() {
            return DocumentEditOutcome::Applied(edit.base);
        }
        let workspace_edit = workspace_edit(uri, edit.base.version, text_edits, facts.document_changes);
        let answer = self.send(ApplyWorkspaceEditParams { label: Some(edit.label), edit: workspace_edit });
        tokio::select! {
            biased;
            settled = expectation.settled() => settled.into(),
            answer = answer => match answer {
                Ok(answer) => {
                    let deadline_to_show = deadline.min(Instant::now() + grace);
                    after_answer(answer, expectation, deadline_to_show, facts.document_changes).await
                }
                Err(_) => unconfirmed("the connection to the editor ended"),
            },
            () = sleep_until(deadline) => unconfirmed(&format!(
                "the editor neither answered workspace/applyEdit nor showed the new text within {seconds} s"
            )),
        }
    }

    /// Sends the edit. The request is owned by a task of its own that lives until the answer comes, because the
    /// service cannot bear an answer no caller waits for.
    fn send(&self, params: ApplyWorkspaceEditParams) -> oneshot::Receiver<EditAnswer> {
        let (sender, answer) = oneshot::channel();
        let client = self.connection.client.clone();
        task::spawn(async move {
            let answer = match client.send_request::<ApplyWorkspaceEdit>(params).await {
                Ok(response) if response.applied => EditAnswer::Applied,
                Ok(response) => EditAnswer::Refused(
                    response.failure_reason.unwrap_or_else(|| "the editor gave no reason".to_owned()),
                ),
                Err(error) if error.code == ErrorCode::ParseError => {
                    EditAnswer::Illegible(error.message.into_owned())
                }
                Err(error) => EditAnswer::Refused(error.message.into_owned()),
            };
            // The listener is gone when the document has already shown the edit.
            let _ = sender.send(answer);
        });
        answer
    }

    /// Asks the editor to save a document; the request is owned by a task of its own as well.
    fn ask_to_save(&self, document: &DocumentSnapshot) -> oneshot::Receiver<SaveOutcome> {
        let (sender, answer) = oneshot::channel();
        let connection = Arc::clone(&self.connection);
        let asked = document.target();
        let params = wire::SaveDocumentsParams { uris: vec![wire::Uri::new(document.uri.as_str())] };
        task::spawn(async move {
            let outcome = match connection.client.send_request::<wire::SaveDocuments>(params).await {
                Ok(result) => save_outcome(&asked, result),
                Err(error) => not_saved(&error.message),
            };
            if outcome != SaveOutcome::Saved {
                connection.documents.save_refused(&asked);
            }
            // The listener is gone when the document was already saved.
            let _ = sender.send(outcome);
        });
        answer
    }
}

#[async_trait]
impl Host for LspHost {
    fn document(&self, target: &Target) -> Option<DocumentSnapshot> {
        self.connection.documents.snapshot_of(target)
    }

    fn too_large(&self, target: &Target) -> Option<u64> {
        self.connection.documents.too_large(target)
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        self.connection.documents.all()
    }

    async fn edit_document(&self, edit: DocumentEdit) -> DocumentEditOutcome {
        self.edit_within(edit, EDIT_LIMIT, SHOW_GRACE).await
    }

    fn observe_documents(&self, observer: Weak<dyn DocumentObserver>) {
        self.connection.documents.observe(observer);
    }

    fn can_save(&self) -> bool {
        self.connection.facts.get().is_some_and(|facts| facts.kode.save_documents)
    }

    async fn save_document(&self, target: &Target) -> SaveOutcome {
        let documents = &self.connection.documents;
        let Some(document) = documents.snapshot_of(target) else { return SaveOutcome::NotOpen };
        if !self.can_save() {
            return not_saved("the editor does not offer to save documents when asked");
        }
        let Some(expectation) = documents.expect_save(target) else { return SaveOutcome::NotOpen };
        let answer = self.ask_to_save(&document);
        tokio::select! {
            biased;
            () = expectation.saved() => SaveOutcome::Saved,
            answer = answer => {
                answer.unwrap_or_else(|_| not_saved("the connection to the editor ended"))
            }
            () = tokio::time::sleep(SAVE_LIMIT) => {
                not_saved("the editor neither saved the document nor gave a reason within 10 s")
            }
        }
    }

    async fn delete_document(&self, document: &DocumentSnapshot) -> bool {
        let can = |facts: &&ClientFacts| facts.apply_edit && facts.delete_files;
        let (Some(_), Ok(uri)) = (self.connection.facts.get().filter(can), Url::parse(&document.uri)) else {
            return false;
        };
        let Some(turn) = self.connection.documents.edit_turn(document) else { return false };
        let Ok(_turn) = timeout(EDIT_LIMIT, turn.lock()).await else { return false };
        let answer = self.send(ApplyWorkspaceEditParams {
            label: Some("Kode: Delete the file that was created".to_owned()),
            edit: deletion(uri, document.version),
        });
        matches!(timeout(EDIT_LIMIT, answer).await, Ok(Ok(EditAnswer::Applied)))
    }

    fn locale(&self) -> Option<String> {
        self.connection.facts.get().and_then(|facts| facts.locale.clone())
    }

    fn can_diagnose(&self) -> bool {
        self.connection.wrapped.as_ref().is_some_and(|wrapped| wrapped.is_ready())
            || self.connection.facts.get().is_some_and(|facts| facts.kode.diagnostics)
    }

    async fn diagnostics(&self, targets: &[Target]) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        if !self.can_diagnose() {
            return Err(DiagnosticsError::Unavailable);
        }
        diagnostics::ask(&self.connection, targets, None).await
    }

    async fn settled_diagnostics(
        &self,
        targets: &[Target],
        limit: Duration,
    ) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        if !self.can_diagnose() {
            return Err(DiagnosticsError::Unavailable);
        }
        diagnostics::ask(&self.connection, targets, Some(limit).filter(|limit| !limit.is_zero())).await
    }
}

/// The editor's answer about one document it was asked to save.
fn save_outcome(asked: &Target, result: wire::SaveDocumentsResult) -> SaveOutcome {
    let is_asked = |uri: &wire::Uri| Url::parse(uri.as_str()).is_ok_and(|uri| target(&uri) == *asked);
    if result.saved.iter().any(is_asked) {
        return SaveOutcome::Saved;
    }
    match result.failed.into_iter().find(|failure| is_asked(&failure.uri)) {
        Some(failure) => SaveOutcome::Failed { reason: failure.reason },
        None => not_saved("the editor did not report the result"),
    }
}

fn not_saved(reason: &str) -> SaveOutcome {
    SaveOutcome::Failed { reason: reason.to_owned() }
}

impl From<EditSettlement> for DocumentEditOutcome {
    fn from(settled: EditSettlement) -> Self {
        match settled {
            EditSettlement::Shown(snapshot) => Self::Applied(snapshot),
            EditSettlement::Closed => Self::Closed,
        }
    }
}

/// The document decides; the answer only says how long to check it and the name of the result.
async fn after_answer(
    answer: EditAnswer,
    mut expectation: EditExpectation,
    deadline_to_show: Instant,
    versioned: bool,
) -> DocumentEditOutcome {
    let said = match answer {
        EditAnswer::Refused(reason) => {
            return match timeout(STALE_GRACE, expectation.moved()).await {
                Ok(()) => expectation.seen().map_or(DocumentEditOutcome::Stale, Into::into),
                Err(_) => DocumentEditOutcome::Rejected { reason },
            };
        }
        EditAnswer::Applied => {
            // Neovim drops an edit whose version has passed and says that it applied it; the text that made the
            // version pass comes after that.
            if versioned
                && timeout_at(deadline_to_show, expectation.moved()).await.is_ok()
                && let Err(_) = timeout(DROP_GRACE, expectation.settled()).await
            {
                return DocumentEditOutcome::Stale;
            }
            "said it applied the edit".to_owned()
        }
        EditAnswer::Illegible(error) => format!("gave an illegible answer ({error})"),
    };
    match timeout_at(deadline_to_show, expectation.settled()).await {
        Ok(settled) => settled.into(),
        Err(_) => {
            unconfirmed(&format!("the editor {said}, but the document did not show the new text in time"))
        }
    }
}

fn rejected(reason: &str) -> DocumentEditOutcome {
    DocumentEditOutcome::Rejected { reason: reason.to_owned() }
}

fn unconfirmed(reason: &str) -> DocumentEditOutcome {
    DocumentEditOutcome::Unconfirmed { reason: reason.to_owned() }
}

fn workspace_edit(uri: Url, version: i32, edits: Vec<lsp_types::TextEdit>, versioned: bool) -> WorkspaceEdit {
    if !versioned {
        return WorkspaceEdit { changes: Some([(uri, edits)].into()), ..WorkspaceEdit::default() };
    }
    let text_document = OptionalVersionedTextDocumentIdentifier { uri, version: Some(version) };
    let edits = edits.into_iter().map(OneOf::Left).collect();
    WorkspaceEdit {
        document_changes: Some(DocumentChanges::Edits(vec![TextDocumentEdit { text_document, edits }])),
        ..WorkspaceEdit::default()
    }
}

/// Deletes the file of a document that has this version: an edit without content carries the version, for a deletion has none.
fn deletion(uri: Url, version: i32) -> WorkspaceEdit {
    let text_document = OptionalVersionedTextDocumentIdentifier { uri: uri.clone(), version: Some(version) };
    let edit = TextDocumentEdit { text_document, edits: Vec::new() };
    let options =
        DeleteFileOptions { recursive: None, ignore_if_not_exists: Some(true), annotation_id: None };
    let delete = ResourceOp::Delete(DeleteFile { uri, options: Some(options) });
    WorkspaceEdit {
        document_changes: Some(DocumentChanges::Operations(vec![
            DocumentChangeOperation::Edit(edit),
            DocumentChangeOperation::Op(delete),
        ])),
        ..WorkspaceEdit::default()
    }
}

/// The edits in positions of the base text, without those that change nothing.
fn to_lsp(base: &Rope, edits: &[TextEdit], encoding: PositionEncoding) -> Vec<lsp_types::TextEdit> {
    whole_line_endings(base, edits)
        .into_iter()
        .filter(|edit| base.byte_slice(edit.range.clone()) != edit.new_text.as_str())
        .map(|edit| lsp_types::TextEdit { range: encoding.range(base, edit.range), new_text: edit.new_text })
        .collect()
}

/// No position lies between `\r` and `\n`, so an edit that begins or ends there takes the other half in and puts
/// it back.
fn whole_line_endings(base: &Rope, edits: &[TextEdit]) -> Vec<TextEdit> {
    let splits =
        |at: usize| at > 0 && at < base.len_bytes() && base.byte(at - 1) == b'\r' && base.byte(at) == b'\n';
    let mut whole: Vec<TextEdit> = Vec::with_capacity(edits.len());
    for edit in edits {
        match whole.last_mut() {
            Some(last) if last.range.end == edit.range.start && splits(edit.range.start) => {
                last.range.end = edit.range.end;
                last.new_text.push_str(&edit.new_text);
            }
            _ => whole.push(edit.clone()),
        }
    }
    for edit in &mut whole {
        if splits(edit.range.start) {
            edit.range.start -= 1;
            edit.new_text.insert(0, '\r');
        }
        if splits(edit.range.end) {
            edit.range.end += 1;
            edit.new_text.push('\n');
        }
    }
    whole
}

#[cfg(test)]
mod tests;
