//! A workspace in a temporary folder for the tests of tools, with an editor that has documents open.
//!
//! Rule: files are written and documents opened before the workspace is asked for; the editor takes no edits.

use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use parking_lot::Mutex;
use ropey::Rope;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use kode_base::call::ToolError;
use kode_base::ids::CallId;
use kode_base::paths::{AbsPath, ResolvedPaths, Target, real_path};
use kode_process::shell::{MAX_TASKS_OVERALL, Outputs, Shell, Tasks};
use kode_text::document::DocumentSnapshot;
use kode_text::host::{
    DiagnosticsError, DocumentEdit, DocumentEditOutcome, DocumentObserver, FileDiagnostics, Host, SaveOutcome,
};
use kode_text::workspace::Workspace;
use kode_tool::{CallAction, CallContext, CallPlan, Tool, ToolOutput};

/// Files in a temporary folder and documents open beside them.
pub(crate) struct Fixture {
    folder: TempDir,
    outputs: TempDir,
    documents: Vec<DocumentSnapshot>,
    cancel: CancellationToken,
    progress: Arc<Mutex<Vec<String>>>,
    diagnostics: Option<Vec<FileDiagnostics>>,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            outputs: tempfile::tempdir().unwrap(),
            documents: Vec::new(),
            cancel: CancellationToken::new(),
            progress: Arc::default(),
            diagnostics: None,
        }
    }

    /// The only folder of the workspace, without links in its path.
    pub(crate) fn root(&self) -> AbsPath {
        AbsPath::new(real_path(self.folder.path()).unwrap()).unwrap()
    }

    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    /// Sets the modification time of a file to some seconds after the epoch.
    pub(crate) fn set_modified(&self, path: &str, seconds: u64) {
        let file = std::fs::File::options().write(true).open(self.root().join(path)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }

    pub(crate) fn open(&mut self, path: &str, text: &str) {
        let path = self.root().join(path);
        self.open_document(format!("file://{path}"), Some(path), text);
    }

    pub(crate) fn open_untitled(&mut self, name: &str, text: &str) {
        self.open_document(format!("untitled:{name}"), None, text);
    }

    /// Makes an editor that tells what its language servers say.
    pub(crate) fn diagnose(&mut self, diagnostics: Vec<FileDiagnostics>) {
        self.diagnostics = Some(diagnostics);
    }

    fn open_document(&mut self, uri: String, path: Option<AbsPath>, text: &str) {
        let language_id = "plaintext".to_owned();
        self.documents.push(DocumentSnapshot {
            uri,
            path,
            language_id,
            version: 1,
            text: Rope::from_str(text),
        });
    }

    pub(crate) fn workspace(&self) -> Arc<Workspace> {
        let host = Arc::new(Editor(self.documents.clone(), self.diagnostics.clone()));
        Arc::new(Workspace::new(host, vec![self.root()], self.root()))
    }

    /// No background commands yet; output is kept outside the workspace.
    fn tasks(&self) -> Tasks {
        let outputs = Outputs::new(AbsPath::new(self.outputs.path()).unwrap());
        Tasks::new(Some(Arc::new(outputs)), Arc::new(Semaphore::new(MAX_TASKS_OVERALL)))
    }

    pub(crate) fn context(&self) -> CallContext {
        let progress = Arc::clone(&self.progress);
        CallContext {
            call_id: CallId::generate(),
            workspace: self.workspace(),
            shell: Arc::new(Shell::new(self.root()).with_tasks(Arc::new(self.tasks()))),
            sandbox: None,
            resolved: ResolvedPaths::default(),
            agents: Arc::default(),
            catalog: Arc::new(kode_config::extension::Catalog::load(&[self.root()], None)),
            private_hosts: Arc::default(),
            may_read: Arc::new(|_, _| true),
            text_limit: None,
            ask: None,
            cancel: self.cancel.clone(),
            progress: Arc::new(move |text| progress.lock().push(text)),
        }
    }

    /// Everything the calls have reported while running.
    pub(crate) fn progress(&self) -> Vec<String> {
        self.progress.lock().clone()
    }

    pub(crate) async fn plan<T: Tool>(&self, tool: T, input: Value) -> Result<CallPlan, ToolError>
    where
        T::Input: DeserializeOwned,
    {
        tool.plan(serde_json::from_value(input).unwrap(), &self.context()).await
    }

    pub(crate) async fn run<T: Tool>(&self, tool: T, input: Value) -> Result<ToolOutput, ToolError> {
        self.run_in(self.context(), tool, input).await
    }

    pub(crate) async fn run_in<T: Tool>(
        &self,
        context: CallContext,
        tool: T,
        input: Value,
    ) -> Result<ToolOutput, ToolError> {
        let plan = tool.plan(serde_json::from_value(input).unwrap(), &context).await?;
        match plan.action {
            CallAction::Run(run) => run(context).await,
            CallAction::Change(_) => panic!("the tool makes a change set"),
            CallAction::Show(_)
            | CallAction::Ask(_)
            | CallAction::SetMode(_)
            | CallAction::SetTodos(_)
            | CallAction::Team(_)
            | CallAction::Delegate(_)
            | CallAction::Use(_) => {
                panic!("the tool wants the session")
            }
        }
    }

    /// The model's text of a call that works.
    pub(crate) async fn text<T: Tool>(&self, tool: T, input: Value) -> String {
        self.run(tool, input).await.unwrap().model_text
    }
}

struct Editor(Vec<DocumentSnapshot>, Option<Vec<FileDiagnostics>>);

#[async_trait]
impl Host for Editor {
    fn document(&self, target: &Target) -> Option<DocumentSnapshot> {
        self.0.iter().find(|document| document.target() == *target).cloned()
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        self.0.clone()
    }

    async fn edit_document(&self, _edit: DocumentEdit) -> DocumentEditOutcome {
        DocumentEditOutcome::Rejected { reason: "this editor takes no edits".to_owned() }
    }

    fn observe_documents(&self, _observer: Weak<dyn DocumentObserver>) {}

    fn can_save(&self) -> bool {
        false
    }

    async fn save_document(&self, _target: &Target) -> SaveOutcome {
        SaveOutcome::NotOpen
    }

    async fn diagnostics(&self, targets: &[Target]) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        let mut files = self.1.clone().ok_or(DiagnosticsError::Unavailable)?;
        files.retain(|file| targets.is_empty() || targets.contains(&file.target));
        Ok(files)
    }
}
