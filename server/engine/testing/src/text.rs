//! A workspace in a temporary folder with an editor in memory, for tests of whatever reads and changes files.
//!
//! Rule: the editor behaves like a real one: it takes an edit only for the version it shows, and the user may be
//! quicker.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use ropey::Rope;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use kode_base::paths::{AbsPath, Target, real_path};
use kode_text::document::DocumentSnapshot;
use kode_text::edit::change::apply_edits;
use kode_text::edit::{AppliedFile, Author, ChangeSet, FileChange, TextEdit};
use kode_text::host::{
    DocumentEdit, DocumentEditOutcome, DocumentEvent, DocumentObserver, Host, SaveOutcome,
};
use kode_text::workspace::{ApplyError, OpenText, Portion, Workspace};

/// The events before an edit arrives at the editor.
#[derive(Clone, Debug)]
pub enum Meanwhile {
    /// The user has changed the text to this.
    Typed(String),
    /// The user has closed the document.
    Closed,
    /// The editor refuses.
    Refused,
    /// The editor refuses after so long.
    RefusedLate(Duration),
    /// The editor says nothing within the limit.
    Silent,
    /// The editor never answers at all.
    Hung,
}

/// An editor in memory.
#[derive(Default)]
pub struct FakeEditor {
    documents: Mutex<Vec<DocumentSnapshot>>,
    meanwhile: Mutex<VecDeque<Meanwhile>>,
    observers: Mutex<Vec<Weak<dyn DocumentObserver>>>,
    saving: Mutex<Saving>,
}

/// The result of asking the editor to save.
#[derive(Clone, Debug, Default)]
pub enum Saving {
    /// It cannot be asked.
    #[default]
    Impossible,
    /// It saves.
    Works,
    /// It says why not.
    Fails(&'static str),
    /// It never answers.
    Hangs,
}

impl FakeEditor {
    fn update(&self, target: &Target, text: &str) -> Option<DocumentSnapshot> {
        let mut documents = self.documents.lock();
        let document = documents.iter_mut().find(|document| document.target() == *target)?;
        let before = document.clone();
        document.text = Rope::from_str(text);
        document.version += 1;
        let after = document.clone();
        self.report(&documents, &DocumentEvent::Changed { before, after: after.clone(), edits: None });
        Some(after)
    }

    /// The open documents.
    pub fn documents_now(&self) -> Vec<Target> {
        self.documents().iter().map(DocumentSnapshot::target).collect()
    }

    /// What happens before the next edit without one arrives.
    pub fn meanwhile(&self, event: Meanwhile) {
        self.meanwhile.lock().push_back(event);
    }

    /// Whether something is to happen before an edit that has not arrived.
    pub fn is_expecting(&self) -> bool {
        !self.meanwhile.lock().is_empty()
    }

    /// The user changes a document, and the editor says exactly what.
    pub fn edit(&self, target: &Target, edits: Vec<TextEdit>) {
        let mut documents = self.documents.lock();
        let document = documents.iter_mut().find(|document| document.target() == *target).unwrap();
        let before = document.clone();
        document.text = Rope::from_str(&apply_edits(&document.text.to_string(), &edits));
        document.version += 1;
        let after = document.clone();
        self.report(&documents, &DocumentEvent::Changed { before, after, edits: Some(edits) });
    }

    /// The user opens a document.
    pub fn open(&self, document: DocumentSnapshot) {
        let mut documents = self.documents.lock();
        documents.push(document.clone());
        self.report(&documents, &DocumentEvent::Opened(document));
    }

    fn close(&self, target: &Target) {
        let mut documents = self.documents.lock();
        let place = documents.iter().position(|document| document.target() == *target).unwrap();
        let closed = documents.remove(place);
        self.report(&documents, &DocumentEvent::Closed(closed));
    }

    fn save(&self, target: &Target, by_user: bool) {
        let documents = self.documents.lock();
        let document = documents.iter().find(|document| document.target() == *target).unwrap().clone();
        std::fs::write(document.path.as_ref().unwrap(), document.text.to_string()).unwrap();
        self.report(&documents, &DocumentEvent::Saved { document, by_user });
    }

    /// Tells the observers while the documents are locked.
    fn report(&self, _locked: &MutexGuard<'_, Vec<DocumentSnapshot>>, event: &DocumentEvent) {
        let observers = self.observers.lock();
        observers.iter().filter_map(Weak::upgrade).for_each(|observer| observer.observe(event));
    }
}

#[async_trait]
impl Host for FakeEditor {
    fn document(&self, target: &Target) -> Option<DocumentSnapshot> {
        self.documents().into_iter().find(|document| document.target() == *target)
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        self.documents.lock().clone()
    }

    async fn edit_document(&self, edit: DocumentEdit) -> DocumentEditOutcome {
        let target = edit.base.target();
        let meanwhile = self.meanwhile.lock().pop_front();
        match meanwhile {
            Some(Meanwhile::Typed(text)) => {
                self.update(&target, &text);
            }
            Some(Meanwhile::Closed) => {
                self.close(&target);
            }
            Some(Meanwhile::Refused) => {
                return DocumentEditOutcome::Rejected { reason: "read-only buffer".to_owned() };
            }
            Some(Meanwhile::RefusedLate(time)) => {
                tokio::time::sleep(time).await;
                return DocumentEditOutcome::Rejected { reason: "the connection ended".to_owned() };
            }
            Some(Meanwhile::Silent) => {
                return DocumentEditOutcome::Unconfirmed { reason: "no didChange came".to_owned() };
            }
            Some(Meanwhile::Hung) => std::future::pending().await,
            None => {}
        }
        match self.document(&target) {
            None => DocumentEditOutcome::Closed,
            Some(now) if now.version != edit.base.version => DocumentEditOutcome::Stale,
            Some(now) => {
                let text = apply_edits(&now.text.to_string(), &edit.edits);
                self.update(&target, &text).map_or(DocumentEditOutcome::Closed, DocumentEditOutcome::Applied)
            }
        }
    }

    fn observe_documents(&self, observer: Weak<dyn DocumentObserver>) {
        self.observers.lock().push(observer);
    }

    fn can_save(&self) -> bool {
        !matches!(*self.saving.lock(), Saving::Impossible)
    }

    async fn save_document(&self, target: &Target) -> SaveOutcome {
        let saving = self.saving.lock().clone();
        match saving {
            _ if self.document(target).is_none() => SaveOutcome::NotOpen,
            Saving::Works => {
                self.save(target, false);
                SaveOutcome::Saved
            }
            Saving::Impossible => SaveOutcome::Failed { reason: "it cannot be asked".to_owned() },
            Saving::Fails(reason) => SaveOutcome::Failed { reason: reason.to_owned() },
            Saving::Hangs => std::future::pending().await,
        }
    }
}

/// A temporary workspace folder with its editor.
pub struct Rig {
    /// The editor.
    pub editor: Arc<FakeEditor>,
    /// Cancels what the rig applies.
    pub cancel: CancellationToken,
    workspace: Arc<Workspace>,
    root: AbsPath,
    _folder: TempDir,
}

impl Default for Rig {
    fn default() -> Self {
        Self::new()
    }
}

impl Rig {
    /// Makes an empty workspace `ws` in a fresh folder, so that there is an outside to it.
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap().join("ws");
        std::fs::create_dir(&root).unwrap();
        let editor = Arc::new(FakeEditor::default());
        let workspace = Arc::new(Workspace::new(editor.clone(), vec![root.clone()], root.clone()));
        Self { editor, cancel: CancellationToken::new(), workspace, root, _folder: folder }
    }

    /// Another session on the same files.
    pub fn other_session(&self) -> Arc<Workspace> {
        self.session_with(|workspace| workspace)
    }

    /// Another session on the same files, in a workspace that was made somewhat differently.
    pub fn session_with(&self, change: impl FnOnce(Workspace) -> Workspace) -> Arc<Workspace> {
        let workspace = Workspace::new(self.editor.clone(), vec![self.root.clone()], self.root.clone());
        Arc::new(change(workspace))
    }

    /// The workspace of the first session.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// The session reads a file or document, all of it.
    pub async fn read(&self, name: &str) {
        read(&self.workspace, name).await;
    }

    /// A change of one passage.
    pub async fn plan_edit(&self, name: &str, old: &str, new: &str) -> ChangeSet {
        plan_edit(&self.workspace, name, old, new).await
    }

    /// A change that creates a file.
    pub fn plan_new(&self, name: &str, content: &str) -> ChangeSet {
        let target = self.workspace.resolve(name).unwrap();
        let edits = vec![TextEdit { range: 0..0, new_text: content.to_owned() }];
        change(FileChange { target, base: None, edits })
    }

    /// Replaces one passage, as the pipeline does.
    pub async fn edit(&self, name: &str, old: &str, new: &str) -> Result<Vec<AppliedFile>, ApplyError> {
        let change = self.plan_edit(name, old, new).await;
        self.workspace.apply(change, &self.cancel).await
    }

    /// Creates a file, as the pipeline does.
    pub async fn create(&self, name: &str, content: &str) {
        let change = self.plan_new(name, content);
        self.workspace.apply(change, &self.cancel).await.unwrap();
    }

    /// The path of a file of the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name).into()
    }

    /// The same as a target.
    pub fn target(&self, name: &str) -> Target {
        Target::File(self.root.join(name))
    }

    /// Writes a file on disk, with its folders.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// The bytes of a file on disk.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    /// The text of a file on disk.
    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    /// Opens a file of the workspace in the editor with this text, or an untitled document.
    pub fn open(&self, name: &str, text: &str) {
        let is_untitled = name.starts_with("untitled:");
        let path = (!is_untitled).then(|| self.root.join(name));
        let uri = path.as_ref().map_or(name.to_owned(), |path| format!("file://{path}"));
        let language_id = "plaintext".to_owned();
        let document = DocumentSnapshot { uri, path, language_id, version: 1, text: Rope::from_str(text) };
        self.editor.open(document);
    }

    /// The user closes a document.
    pub fn close(&self, name: &str) {
        self.editor.close(&self.workspace().resolve(name).unwrap());
    }

    /// The user saves a document.
    pub fn save(&self, name: &str) {
        self.editor.save(&self.target(name), true);
    }

    /// The editor saves a document by itself.
    pub fn save_by_itself(&self, name: &str) {
        self.editor.save(&self.target(name), false);
    }

    /// The folder of the workspace.
    pub fn root(&self) -> &AbsPath {
        &self.root
    }

    /// Says what comes of asking the editor to save.
    pub fn set_saving(&self, saving: Saving) {
        *self.editor.saving.lock() = saving;
    }

    /// The text the editor shows.
    pub fn shown(&self, name: &str) -> String {
        let target = self.workspace().resolve(name).unwrap();
        self.editor.document(&target).unwrap().text.to_string()
    }

    /// The user types: the document's text becomes this.
    pub fn type_text(&self, name: &str, text: &str) {
        self.editor.update(&self.workspace().resolve(name).unwrap(), text).unwrap();
    }

    /// Makes something happen before the next edit arrives; several calls, several edits.
    pub fn meanwhile(&self, event: Meanwhile) {
        self.editor.meanwhile(event);
    }
}

/// A session reads a file or document, all of it.
pub async fn read(workspace: &Workspace, name: &str) {
    let OpenText::Whole(file) = workspace.open(&workspace.resolve(name).unwrap()).await.unwrap() else {
        panic!("{name} is too long to be read at once");
    };
    workspace.note_read(&file, &Portion::Whole);
}

/// A change of one passage.
pub async fn plan_edit(workspace: &Workspace, name: &str, old: &str, new: &str) -> ChangeSet {
    let target = workspace.resolve(name).unwrap();
    let file = workspace.text(&target).await.unwrap();
    let start = file.text.find(old).unwrap();
    let edits = vec![TextEdit { range: start..start + old.len(), new_text: new.to_owned() }];
    change(FileChange { target, base: Some(file), edits })
}

fn change(file: FileChange) -> ChangeSet {
    let (label, summary) = ("Kode: test".to_owned(), "test".to_owned());
    ChangeSet { label, summary, files: vec![file], removals: Vec::new(), author: Author::Agent }
}
