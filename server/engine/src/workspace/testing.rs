//! A workspace in a temporary folder with an editor in memory, for tests of whatever reads and changes files.
//!
//! Rule: the editor behaves like a real one: it takes an edit only for the version it shows, and the user may be
//! quicker.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use async_trait::async_trait;
use ropey::Rope;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::edit::change::apply_edits;
use crate::edit::{ChangeSet, TextEdit, diff};
use crate::host::{
    DocumentEdit, DocumentEditOutcome, DocumentEvent, DocumentObserver, DocumentSnapshot, Host, SaveOutcome,
};
use crate::ids::CallId;
use crate::paths::{AbsPath, Target};
use crate::shell::Shell;
use crate::tools::{
    Action, CallContext, Registry, ToolError, ToolOutput, bash, edit, multi_edit, notebook_edit, read, write,
};
use crate::workspace::Workspace;

/// What happens before an edit arrives at the editor.
#[derive(Clone, Debug)]
pub(crate) enum Meanwhile {
    /// The user has changed the text to this.
    Typed(String),
    /// The user has closed the document.
    Closed,
    /// The editor refuses.
    Refused,
    /// The editor says nothing within the limit.
    Silent,
    /// The editor never answers at all.
    Hung,
}

/// An editor in memory.
#[derive(Default)]
pub(crate) struct FakeEditor {
    documents: Mutex<Vec<DocumentSnapshot>>,
    meanwhile: Mutex<VecDeque<Meanwhile>>,
    observers: Mutex<Vec<Weak<dyn DocumentObserver>>>,
    saving: Mutex<Saving>,
}

/// What comes of asking the editor to save.
#[derive(Clone, Debug, Default)]
pub(crate) enum Saving {
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
        let mut documents = self.documents.lock().unwrap();
        let document = documents.iter_mut().find(|document| document.target() == *target)?;
        let before = document.clone();
        document.text = Rope::from_str(text);
        document.version += 1;
        let after = document.clone();
        self.tell(&documents, &DocumentEvent::Changed { before, after: after.clone(), edits: None });
        Some(after)
    }

    /// The open documents.
    pub(crate) fn documents_now(&self) -> Vec<Target> {
        self.documents().iter().map(DocumentSnapshot::target).collect()
    }

    /// The user changes a document, and the editor says exactly what.
    pub(crate) fn edit(&self, target: &Target, edits: Vec<TextEdit>) {
        let mut documents = self.documents.lock().unwrap();
        let document = documents.iter_mut().find(|document| document.target() == *target).unwrap();
        let before = document.clone();
        document.text = Rope::from_str(&apply_edits(&document.text.to_string(), &edits));
        document.version += 1;
        let after = document.clone();
        self.tell(&documents, &DocumentEvent::Changed { before, after, edits: Some(edits) });
    }

    /// The user opens a document.
    pub(crate) fn open(&self, document: DocumentSnapshot) {
        let mut documents = self.documents.lock().unwrap();
        documents.push(document.clone());
        self.tell(&documents, &DocumentEvent::Opened(document));
    }

    fn close(&self, target: &Target) {
        let mut documents = self.documents.lock().unwrap();
        let place = documents.iter().position(|document| document.target() == *target).unwrap();
        let closed = documents.remove(place);
        self.tell(&documents, &DocumentEvent::Closed(closed));
    }

    fn save(&self, target: &Target, by_user: bool) {
        let documents = self.documents.lock().unwrap();
        let document = documents.iter().find(|document| document.target() == *target).unwrap().clone();
        std::fs::write(document.path.as_ref().unwrap(), document.text.to_string()).unwrap();
        self.tell(&documents, &DocumentEvent::Saved { document, by_user });
    }

    /// Tells the observers while the documents are locked.
    fn tell(&self, _locked: &MutexGuard<'_, Vec<DocumentSnapshot>>, event: &DocumentEvent) {
        let observers = self.observers.lock().unwrap();
        observers.iter().filter_map(Weak::upgrade).for_each(|observer| observer.observe(event));
    }
}

#[async_trait]
impl Host for FakeEditor {
    fn document(&self, target: &Target) -> Option<DocumentSnapshot> {
        self.documents().into_iter().find(|document| document.target() == *target)
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        self.documents.lock().unwrap().clone()
    }

    async fn edit_document(&self, edit: DocumentEdit) -> DocumentEditOutcome {
        let target = edit.base.target();
        let meanwhile = self.meanwhile.lock().unwrap().pop_front();
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
        self.observers.lock().unwrap().push(observer);
    }

    fn can_save(&self) -> bool {
        !matches!(*self.saving.lock().unwrap(), Saving::Impossible)
    }

    async fn save_document(&self, target: &Target) -> SaveOutcome {
        let saving = self.saving.lock().unwrap().clone();
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

/// A temporary workspace folder with its editor, and the tools that work on files.
pub(crate) struct Rig {
    pub(crate) editor: Arc<FakeEditor>,
    pub(crate) context: CallContext,
    tools: Registry,
    root: AbsPath,
    _folder: TempDir,
}

impl Rig {
    /// Makes an empty workspace `ws` in a fresh folder, so that there is an outside to it.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path().canonicalize().unwrap()).unwrap().join("ws");
        std::fs::create_dir(&root).unwrap();
        let editor = Arc::new(FakeEditor::default());
        let mut tools = Registry::default();
        tools.add(bash::Bash);
        tools.add(edit::Edit);
        tools.add(multi_edit::MultiEdit);
        tools.add(notebook_edit::NotebookEdit);
        tools.add(read::Read);
        tools.add(write::Write);
        let context = Self::session(&editor, &root);
        Self { editor, context, tools, root, _folder: folder }
    }

    /// Another session on the same files.
    pub(crate) fn other_session(&self) -> CallContext {
        Self::session(&self.editor, &self.root)
    }

    /// Another session on the same files, in a workspace that was made somewhat differently.
    pub(crate) fn session_with(&self, change: impl FnOnce(Workspace) -> Workspace) -> CallContext {
        let workspace = Workspace::new(self.editor.clone(), vec![self.root.clone()], self.root.clone());
        CallContext { workspace: Arc::new(change(workspace)), ..self.other_session() }
    }

    fn session(editor: &Arc<FakeEditor>, root: &AbsPath) -> CallContext {
        let workspace = Workspace::new(editor.clone(), vec![root.clone()], root.clone());
        CallContext {
            call_id: CallId::generate(),
            workspace: Arc::new(workspace),
            shell: Arc::new(Shell::new(root.clone())),
            sandbox: None,
            agents: Arc::default(),
            catalog: Arc::default(),
            may_read: Arc::new(|_, _| true),
            ask: None,
            cancel: CancellationToken::new(),
            progress: Arc::new(|_| {}),
        }
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.context.workspace
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name).into()
    }

    pub(crate) fn target(&self, name: &str) -> Target {
        Target::File(self.root.join(name))
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.bytes(name)).unwrap()
    }

    /// Opens a file of the workspace in the editor with this text, or an untitled document.
    pub(crate) fn open(&self, name: &str, text: &str) {
        let is_untitled = name.starts_with("untitled:");
        let path = (!is_untitled).then(|| self.root.join(name));
        let uri = path.as_ref().map_or(name.to_owned(), |path| format!("file://{path}"));
        let language_id = "plaintext".to_owned();
        let document = DocumentSnapshot { uri, path, language_id, version: 1, text: Rope::from_str(text) };
        self.editor.open(document);
    }

    /// The user closes a document.
    pub(crate) fn close(&self, name: &str) {
        self.editor.close(&self.workspace().resolve(name).unwrap());
    }

    /// The user saves a document.
    pub(crate) fn save(&self, name: &str) {
        self.editor.save(&self.target(name), true);
    }

    /// The editor saves a document by itself.
    pub(crate) fn save_by_itself(&self, name: &str) {
        self.editor.save(&self.target(name), false);
    }

    /// The folder of the workspace.
    pub(crate) fn root(&self) -> &AbsPath {
        &self.root
    }

    /// Says what comes of asking the editor to save.
    pub(crate) fn set_saving(&self, saving: Saving) {
        *self.editor.saving.lock().unwrap() = saving;
    }

    /// The text the editor shows.
    pub(crate) fn shown(&self, name: &str) -> String {
        let target = self.workspace().resolve(name).unwrap();
        self.editor.document(&target).unwrap().text.to_string()
    }

    /// The user types: the document's text becomes this.
    pub(crate) fn type_text(&self, name: &str, text: &str) {
        self.editor.update(&self.workspace().resolve(name).unwrap(), text).unwrap();
    }

    /// Makes something happen before the next edit arrives; several calls, several edits.
    pub(crate) fn meanwhile(&self, event: Meanwhile) {
        self.editor.meanwhile.lock().unwrap().push_back(event);
    }

    /// Calls a tool and has its changes applied, as the pipeline does.
    pub(crate) async fn call(&self, tool: &str, input: Value) -> Result<ToolOutput, ToolError> {
        self.call_in(&self.context, tool, input).await
    }

    pub(crate) async fn call_in(
        &self,
        context: &CallContext,
        tool: &str,
        input: Value,
    ) -> Result<ToolOutput, ToolError> {
        match self.tools.find(tool).unwrap().plan(input, context).await?.action {
            Action::Run(run) => run(context.clone()).await,
            Action::Change(change) => {
                let summary = change.summary.clone();
                let applied = context.workspace.apply(change, &context.cancel).await?;
                Ok(diff::report(&summary, &applied, &context.workspace))
            }
            Action::Ask(_)
            | Action::SetMode(_)
            | Action::SetTodos(_)
            | Action::Delegate(_)
            | Action::Use(_) => {
                panic!("{tool} wants a session")
            }
        }
    }

    /// The change set a call would have applied.
    pub(crate) async fn plan(&self, tool: &str, input: Value) -> ChangeSet {
        match self.tools.find(tool).unwrap().plan(input, &self.context).await.unwrap().action {
            Action::Change(change) => change,
            Action::Run(_)
            | Action::Ask(_)
            | Action::SetMode(_)
            | Action::SetTodos(_)
            | Action::Delegate(_)
            | Action::Use(_) => {
                panic!("{tool} plans no change")
            }
        }
    }
}
