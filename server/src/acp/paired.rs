//! The editor's language server as the host of sessions: the documents of the pair while it lasts, the client's own files after it.
//!
//! Rule: a session is paired when it is opened, with the language server of the same editor and workspace. When the pair ends the
//! user gets one warning, and the session continues alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::base::task;
use kode_engine::record::event::NoticeLevel;
use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::host::{
    DiagnosticsError, DocumentEdit, DocumentEditOutcome, DocumentObserver, FileDiagnostics, Host, SaveOutcome,
};

use super::session::AcpSession;
use super::sessions::updates;
use crate::pairing::PairedEditor;

/// The pairs of one connection, by the first folder of their sessions.
#[derive(Default)]
pub(super) struct EditorPairs(Mutex<HashMap<AbsPath, Arc<PairedEditor>>>);

impl EditorPairs {
    fn known(&self) -> MutexGuard<'_, HashMap<AbsPath, Arc<PairedEditor>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The pair of a folder, if there is one.
    pub(super) fn of(&self, folder: &AbsPath) -> Option<Arc<PairedEditor>> {
        self.known().get(folder).filter(|editor| editor.is_there()).cloned()
    }

    /// Looks for the language server of a folder, where there is no pair yet. Waits for a limited time.
    pub(super) async fn find(&self, folder: &AbsPath) {
        if self.of(folder).is_some() {
            return;
        }
        let found = PairedEditor::find(folder).await;
        let mut known = self.known();
        known.retain(|_, editor| editor.is_there());
        if let Some(editor) = found {
            tracing::info!(editor = editor.name, %folder, "paired with the language server of the editor");
            known.entry(folder.clone()).or_insert(editor);
        }
    }
}

/// Tells the client of a session, once, when its pair has ended.
pub(super) fn report_end(open: &Arc<AcpSession>, editor: &Arc<PairedEditor>) {
    let (open, ended, editor) = (Arc::downgrade(open), editor.ended(), editor.name.clone());
    task::spawn(async move {
        ended.cancelled().await;
        let Some(open) = open.upgrade() else { return };
        let text = format!("The language server of {editor} has ended: unsaved text is no longer seen.");
        let hint = "Save your files before a prompt. A new session is paired again once the server runs.";
        updates(&open).notice(NoticeLevel::Warning, &text, Some(hint), None).await;
    });
}

/// The host of a paired session.
pub(super) struct PairedFiles {
    pub(super) editor: Arc<PairedEditor>,
    /// The host of the session without the pair.
    pub(super) own: Arc<dyn Host>,
}

impl PairedFiles {
    fn now(&self) -> &dyn Host {
        match self.editor.is_there() {
            true => &*self.editor,
            false => &*self.own,
        }
    }
}

#[async_trait]
impl Host for PairedFiles {
    fn document(&self, target: &Target) -> Option<DocumentSnapshot> {
        self.now().document(target)
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        self.now().documents()
    }

    async fn edit_document(&self, edit: DocumentEdit) -> DocumentEditOutcome {
        self.now().edit_document(edit).await
    }

    fn observe_documents(&self, observer: Weak<dyn DocumentObserver>) {
        self.editor.observe_documents(Weak::clone(&observer));
        self.own.observe_documents(observer);
    }

    fn can_save(&self) -> bool {
        self.now().can_save()
    }

    async fn save_document(&self, target: &Target) -> SaveOutcome {
        self.now().save_document(target).await
    }

    async fn delete_document(&self, document: &DocumentSnapshot) -> bool {
        self.now().delete_document(document).await
    }

    async fn refresh_document(&self, target: &Target) {
        self.now().refresh_document(target).await;
    }

    async fn create_document(&self, target: &Target, text: &str) -> Option<DocumentEditOutcome> {
        self.now().create_document(target, text).await
    }

    fn locale(&self) -> Option<String> {
        self.now().locale()
    }

    fn can_diagnose(&self) -> bool {
        self.now().can_diagnose()
    }

    async fn diagnostics(&self, targets: &[Target]) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        self.now().diagnostics(targets).await
    }

    async fn settled_diagnostics(
        &self,
        targets: &[Target],
        limit: Duration,
    ) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        self.now().settled_diagnostics(targets, limit).await
    }
}
