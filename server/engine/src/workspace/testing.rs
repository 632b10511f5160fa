//! A workspace in a temporary folder with an editor in memory, for tests of whatever reads and changes files.
//!
//! Rule: the editor behaves like a real one: it takes an edit only for the version it shows, and the user may be
//! quicker.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use ropey::Rope;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::edit::change::apply_edits;
use crate::edit::{ChangeSet, diff};
use crate::host::{DocumentEdit, DocumentEditOutcome, DocumentObserver, DocumentSnapshot, Host, SaveOutcome};
use crate::ids::CallId;
use crate::paths::{AbsPath, Target};
use crate::shell::Shell;
use crate::tools::{
    Action, CallContext, Registry, ToolError, ToolOutput, edit, multi_edit, notebook_edit, read, write,
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
}

impl FakeEditor {
    fn update(&self, target: &Target, text: &str) -> Option<DocumentSnapshot> {
        let mut documents = self.documents.lock().unwrap();
        let document = documents.iter_mut().find(|document| document.target() == *target)?;
        document.text = Rope::from_str(text);
        document.version += 1;
        Some(document.clone())
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
                self.documents.lock().unwrap().retain(|document| document.target() != target);
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

    fn observe_documents(&self, _observer: Weak<dyn DocumentObserver>) {}

    fn can_save(&self) -> bool {
        false
    }

    async fn save_document(&self, _target: &Target) -> SaveOutcome {
        SaveOutcome::NotOpen
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

    fn session(editor: &Arc<FakeEditor>, root: &AbsPath) -> CallContext {
        let workspace = Workspace::new(editor.clone(), vec![root.clone()], root.clone());
        CallContext {
            call_id: CallId::generate(),
            workspace: Arc::new(workspace),
            shell: Arc::new(Shell::new(root.clone())),
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
        self.editor.documents.lock().unwrap().push(document);
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
        }
    }

    /// The change set a call would have applied.
    pub(crate) async fn plan(&self, tool: &str, input: Value) -> ChangeSet {
        match self.tools.find(tool).unwrap().plan(input, &self.context).await.unwrap().action {
            Action::Change(change) => change,
            Action::Run(_) => panic!("{tool} plans no change"),
        }
    }
}
