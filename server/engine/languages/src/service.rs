//! The language servers of workspaces: which instance answers, and its answers as plain data.
//!
//! Rule: instances are shared by all sessions of a process, one for each root and definition. When settings withdraw or change an
//! entry, its instance is ended before the next call. Places in files that rules hide are left out by the caller.

#![expect(clippy::disallowed_methods, reason = "servers are found on the PATH")]

mod ask;
mod diagnose;
mod edit;
mod moves;
mod offer;
mod trial;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use parking_lot::Mutex;
use serde_json::Value;

use crate::documents::SyncedText;
use crate::editor::{self, EDITOR, EditorServer, EditorServers, FileRequest, NoEditorServers};
use crate::instance::Instance;
use crate::launch::{Launcher, ProcessLauncher};
use crate::positions::Encoding;
use crate::running::{Feature, RunningLanguageServer};
use crate::selection::{ServerSelection, root_of};
use kode_base::blocking;
use kode_base::paths::{AbsPath, Target};
use kode_base::secret::Secret;
use kode_config::language_servers::LanguageServerDefinition;
use kode_config::policy::{Policy, PolicySource};
use kode_process::sandbox::Sandbox;
use kode_process::shell::Secrets;
use kode_text::edit::FileChange;
use kode_text::host::{DiagnosticsError, FileDiagnostics};
use kode_text::workspace::Workspace;
use kode_text::workspace::language::{
    Answer, CallDirection, CallNode, CodeAction, DiagnosticsRequest, LanguageError, LanguageServers, Place,
    PlaceKind, Symbol, TextPosition, TriedFile,
};
use kode_tool::languages::LanguagePool;
use offer::WorkspaceSurvey;

/// The most files whose proposed actions are kept.
const MAX_ACTION_FILES: usize = 50;

/// The language servers of all workspaces of a process.
pub struct Languages {
    instances: Arc<Instances>,
    workspaces: Mutex<HashMap<Vec<AbsPath>, Weak<WorkspaceServers>>>,
    editor: Arc<dyn EditorServers>,
}

impl Default for Languages {
    fn default() -> Self {
        Self::with_editor(Arc::new(NoEditorServers))
    }
}

/// Makes the launcher for a policy and the secrets that it withholds.
type LauncherSource = Box<dyn Fn(&Policy, Vec<Secret>) -> Arc<dyn Launcher> + Send + Sync>;

/// All instances, by root and definition.
#[derive(Default)]
pub(crate) struct Instances(Mutex<HashMap<(AbsPath, String), Arc<Instance>>>);

/// The servers of one workspace.
pub(crate) struct WorkspaceServers {
    instances: Arc<Instances>,
    roots: Vec<AbsPath>,
    policy: Arc<dyn PolicySource>,
    secrets: Secrets,
    state: Mutex<ServersState>,
    is_available: AtomicBool,
    /// The last proposed actions of files, each with the server that proposed it.
    actions: Mutex<HashMap<Target, Vec<(ResultSource, Value)>>>,
    /// The servers of the editor.
    editor: Arc<dyn EditorServers>,
    /// Whether a server of the editor answered about files with an extension.
    served: Mutex<HashMap<String, bool>>,
    /// Makes the launcher of a policy.
    launchers: LauncherSource,
}

#[derive(Default)]
struct ServersState {
    selection: Option<Arc<ServerSelection>>,
    /// The secrets that the launcher withholds.
    secrets: Vec<Secret>,
    surveyed: Option<Arc<WorkspaceSurvey>>,
}

impl Languages {
    /// Servers of an editor come before instances of ours.
    #[must_use]
    pub fn with_editor(editor: Arc<dyn EditorServers>) -> Self {
        Self { instances: Arc::default(), workspaces: Mutex::default(), editor }
    }

    /// The servers of workspace folders: the same for all sessions of the same folders.
    fn servers(
        &self,
        roots: &[AbsPath],
        secrets: &Secrets,
        policy: &dyn Fn() -> Arc<dyn PolicySource>,
    ) -> Arc<WorkspaceServers> {
        let mut workspaces = self.workspaces.lock();
        if let Some(known) = workspaces.get(roots).and_then(Weak::upgrade) {
            return known;
        }
        workspaces.retain(|_, servers| servers.strong_count() > 0);
        let made = Arc::new(WorkspaceServers::new(
            Arc::clone(&self.instances),
            roots.to_vec(),
            (policy(), secrets.clone()),
            (Box::new(launcher), Arc::clone(&self.editor)),
        ));
        workspaces.insert(roots.to_vec(), Arc::downgrade(&made));
        made
    }
}

fn launcher(policy: &Policy, secrets: Vec<Secret>) -> Arc<dyn Launcher> {
    let variables = policy.declared.variables();
    Arc::new(ProcessLauncher {
        secrets,
        variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        sandbox: policy.sandbox.clone(),
    })
}

#[async_trait]
impl LanguagePool for Languages {
    fn of(
        &self,
        roots: &[AbsPath],
        secrets: &Secrets,
        policy: &dyn Fn() -> Arc<dyn PolicySource>,
    ) -> Option<Arc<dyn LanguageServers>> {
        Some(self.servers(roots, secrets, policy))
    }

    async fn end(&self) {
        self.instances.end(|_| true).await;
    }
}

impl Instances {
    /// The instance of a definition for a root; made if absent.
    fn of(
        &self,
        definition: &Arc<LanguageServerDefinition>,
        root: AbsPath,
        launcher: &Arc<dyn Launcher>,
    ) -> Arc<Instance> {
        let key = (root.clone(), format!("{}/{}", definition.name, definition.digest));
        let mut instances = self.0.lock();
        let instance = instances
            .entry(key)
            .or_insert_with(|| Instance::new(Arc::clone(definition), root, Arc::clone(launcher)));
        Arc::clone(instance)
    }

    /// All instances within these folders.
    fn within(&self, roots: &[AbsPath]) -> Vec<Arc<Instance>> {
        let instances = self.0.lock();
        let is_within = |instance: &&Arc<Instance>| roots.iter().any(|root| instance.root.is_within(root));
        instances.values().filter(is_within).cloned().collect()
    }

    /// Ends the chosen instances and waits until they are gone.
    async fn end(&self, is_chosen: impl Fn(&Instance) -> bool) {
        let chosen: Vec<_> = {
            let mut instances = self.0.lock();
            let keys: Vec<_> =
                instances.iter().filter(|(_, one)| is_chosen(one)).map(|(key, _)| key.clone()).collect();
            keys.iter().filter_map(|key| instances.remove(key)).collect()
        };
        join_all(chosen.iter().map(|instance| instance.end())).await;
    }
}

/// A running server with the text of a request.
struct ReadyServer {
    running: Arc<RunningLanguageServer>,
    /// The file under the name that the editor opened it by.
    target: Target,
}

/// The server that a result is from.
#[derive(Clone)]
pub(crate) enum ResultSource {
    /// An instance of ours.
    Own(Arc<RunningLanguageServer>),
    /// A server of the editor.
    Editor(EditorServer),
}

/// The results of a request about a file.
struct LanguageResults {
    /// At least one, each with its server.
    list: Vec<(ResultSource, Value)>,
    /// The file under the name that the editor opened it by.
    target: Target,
    /// The texts that the results are about.
    texts: LanguageTexts,
}

/// The texts that results are about.
enum LanguageTexts {
    /// The state of our own instance.
    Own(HashMap<Target, SyncedText>),
    /// The versions of the documents that were open in the editor.
    Editor(HashMap<Target, i32>),
}

impl WorkspaceServers {
    pub(crate) fn new(
        instances: Arc<Instances>,
        roots: Vec<AbsPath>,
        (policy, secrets): (Arc<dyn PolicySource>, Secrets),
        (launchers, editor): (LauncherSource, Arc<dyn EditorServers>),
    ) -> Self {
        Self {
            instances,
            roots,
            policy,
            secrets,
            state: Mutex::default(),
            is_available: AtomicBool::new(false),
            actions: Mutex::default(),
            editor,
            served: Mutex::default(),
            launchers,
        }
    }

    /// The servers under the settings as they are now. Instances that these no longer allow are ended.
    async fn selection(&self) -> Arc<ServerSelection> {
        let source = Arc::clone(&self.policy);
        let policy = blocking(move || source.current()).await;
        let secrets = self.secrets.all();
        let (selection, is_same_sandbox) = {
            let mut state = self.state.lock();
            if let Some(known) = &state.selection
                && Arc::ptr_eq(&known.policy, &policy)
                && state.secrets == secrets
            {
                return Arc::clone(known);
            }
            let before = state.selection.as_ref();
            let is_same = before.is_none_or(|before| {
                has_same_surroundings(&before.policy, &policy) && state.secrets == secrets
            });
            let launcher = (self.launchers)(&policy, secrets.clone());
            let path = std::env::var("PATH").unwrap_or_default();
            let selection = Arc::new(ServerSelection::of(policy, launcher, path, self.roots.clone()));
            state.selection = Some(Arc::clone(&selection));
            state.secrets = secrets;
            state.surveyed = None;
            (selection, is_same)
        };
        let roots = &self.roots;
        let is_withdrawn = |instance: &Instance| {
            let is_ours = roots.iter().any(|root| instance.root.is_within(root));
            let is_known = instance.definition.needs_sandbox || selection.has(&instance.definition);
            is_ours && !(is_same_sandbox && is_known)
        };
        self.instances.end(is_withdrawn).await;
        selection
    }

    /// The instance that serves a file.
    async fn instance(&self, workspace: &Workspace, target: &Target) -> Result<Arc<Instance>, LanguageError> {
        let Some(path) = target.file().cloned() else {
            return Err(LanguageError::NoServer(target.to_string()));
        };
        let selection = self.selection().await;
        // A sub-agent may work in a worktree of its own.
        let roots: Vec<AbsPath> = workspace.roots().iter().chain(workspace.real_roots()).cloned().collect();
        let (definition, root) = blocking({
            let selection = Arc::clone(&selection);
            move || {
                let definition = selection.server_of(&path)?;
                let root = root_of(&definition, &path, &roots);
                Ok((definition, root))
            }
        })
        .await?;
        let root = root.ok_or_else(|| LanguageError::NoServer(workspace.display(target)))?;
        Ok(self.instances.of(&definition, root, &selection.launcher))
    }

    /// The running server of a file, with the text of it as the user sees it now.
    async fn prepare(&self, workspace: &Workspace, target: &Target) -> Result<ReadyServer, LanguageError> {
        let target = shown_target(workspace, target).await;
        if let Err(error) = workspace.text(&target).await {
            return Err(LanguageError::Unreadable(error.to_string()));
        }
        let running = self.instance(workspace, &target).await?.running().await?;
        let wanted = std::slice::from_ref(&target);
        running.sync(workspace, wanted).await?;
        if running.state.work.is_settling() {
            running.state.work.ready().await;
            running.sync(workspace, wanted).await?;
        }
        Ok(ReadyServer { running, target })
    }

    /// Asks about a file: the servers of the editor, or the own instance where none of them answers. `parameters` makes the
    /// parameters from the name of the file and the unit of columns.
    async fn ask(
        &self,
        workspace: &Workspace,
        about: FileRequest<'_>,
        (feature, method): (Feature, &str),
        parameters: impl Fn(&Target, Encoding) -> Value,
    ) -> Result<LanguageResults, LanguageError> {
        let mut failure = None;
        if self.editor.is_offered() {
            let target = shown_target(workspace, about.target).await;
            let about = FileRequest { target: &target, ..about };
            let encoding = Encoding::parse(self.editor.encoding()).unwrap_or_default();
            let made = parameters(&target, encoding);
            match editor::ask(&self.editor, workspace, method, &made, Some(&about)).await {
                Ok(found) => {
                    self.note_served(&target, !found.list.is_empty());
                    if !found.list.is_empty() {
                        let list = found.list.into_iter();
                        let list =
                            list.map(|(server, value)| (ResultSource::Editor(server), value)).collect();
                        return Ok(LanguageResults {
                            list,
                            target,
                            texts: LanguageTexts::Editor(found.versions),
                        });
                    }
                }
                Err(error @ LanguageError::Unavailable { .. }) => failure = Some(error),
                Err(error) => return Err(error),
            }
        }
        match (self.ask_own(workspace, about, (feature, method), parameters).await, failure) {
            (Err(LanguageError::NoServer(_)), Some(failure)) => Err(failure),
            (results, _) => results,
        }
    }

    async fn ask_own(
        &self,
        workspace: &Workspace,
        about: FileRequest<'_>,
        (feature, method): (Feature, &str),
        parameters: impl Fn(&Target, Encoding) -> Value,
    ) -> Result<LanguageResults, LanguageError> {
        let ReadyServer { running, target } = self.prepare(workspace, about.target).await?;
        let texts = running.texts().await;
        if let Some(file) = about.file.filter(|_| about.is_exact)
            && texts.get(&target).is_none_or(|synced| synced.file.text != file.text)
        {
            return Err(LanguageError::Moved(workspace.display(&target), running.name.clone()));
        }
        let result = running.request(feature, method, &parameters(&target, running.encoding)).await?;
        Ok(LanguageResults {
            list: vec![(ResultSource::Own(running), result)],
            target,
            texts: LanguageTexts::Own(texts),
        })
    }

    /// The instances of the workspace that run.
    async fn running(&self, workspace: &Workspace) -> Vec<Arc<RunningLanguageServer>> {
        let roots: Vec<AbsPath> = workspace.roots().iter().chain(workspace.real_roots()).cloned().collect();
        let instances = self.instances.within(&roots);
        let running = join_all(instances.iter().map(|instance| instance.if_running())).await;
        running.into_iter().flatten().collect()
    }
}

/// The name that a file has in the editor, where it is open there under another one; else its own.
async fn shown_target(workspace: &Workspace, target: &Target) -> Target {
    match workspace.open_document(target).await {
        Some(document) => document.target(),
        None => target.clone(),
    }
}

/// Whether programs have the same surroundings under both policies.
fn has_same_surroundings(one: &Policy, other: &Policy) -> bool {
    let is_alike = |one: &Sandbox, other: &Sandbox| one.is_like(other);
    let has_same_sandbox = match (&one.sandbox, &other.sandbox) {
        (Some(one), Some(other)) => is_alike(one, other),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    };
    has_same_sandbox && one.declared.variables().eq(other.declared.variables())
}

impl ResultSource {
    fn name(&self) -> &str {
        match self {
            Self::Own(running) => &running.name,
            Self::Editor(server) => &server.name,
        }
    }

    fn encoding(&self) -> Encoding {
        match self {
            Self::Own(running) => running.encoding,
            Self::Editor(server) => server.encoding,
        }
    }

    /// Asks the same server for more about a result.
    async fn request(
        &self,
        feature: Feature,
        method: &str,
        parameters: &Value,
    ) -> Result<Value, LanguageError> {
        match self {
            Self::Own(running) => running.request(feature, method, parameters).await,
            Self::Editor(server) => server.request(method, parameters).await,
        }
    }

    /// The work that the server has not finished, as far as it is known.
    fn unfinished(&self) -> Option<String> {
        match self {
            Self::Own(running) => running.state.work.unfinished(),
            Self::Editor(server) => server.unfinished(),
        }
    }
}

impl LanguageResults {
    /// The results with a value made of them.
    fn answer<T>(&self, value: T) -> Answer<T> {
        Answer { value, unfinished: self.list.iter().find_map(|(source, _)| source.unfinished()) }
    }

    /// The texts that an instance of ours had; empty for servers of the editor.
    fn own_texts(&self) -> &HashMap<Target, SyncedText> {
        static NONE: LazyLock<HashMap<Target, SyncedText>> = LazyLock::new(HashMap::new);
        match &self.texts {
            LanguageTexts::Own(texts) => texts,
            LanguageTexts::Editor(_) => &NONE,
        }
    }

    /// The texts of files that edits change.
    ///
    /// # Errors
    /// [`LanguageError::Moved`] for a document that has another version by now.
    async fn texts_of(
        &self,
        targets: Vec<Target>,
        workspace: &Workspace,
    ) -> Result<HashMap<Target, SyncedText>, LanguageError> {
        let versions = match &self.texts {
            LanguageTexts::Own(texts) => return Ok(texts.clone()),
            LanguageTexts::Editor(versions) => versions,
        };
        let mut texts = HashMap::new();
        for target in targets {
            let Some(version) = versions.get(&target).copied() else { continue };
            let file = workspace.text(&target).await;
            let file = file.ok().filter(|file| file.version() == Some(version));
            let Some(file) = file else {
                return Err(LanguageError::Moved(workspace.display(&target), EDITOR.to_owned()));
            };
            texts.insert(
                target,
                SyncedText { file, version: version.into(), at: tokio::time::Instant::now() },
            );
        }
        Ok(texts)
    }
}

#[async_trait]
impl LanguageServers for WorkspaceServers {
    async fn refresh(&self, workspace: &Workspace) {
        self.refresh_offer(workspace).await;
    }

    fn is_available(&self) -> bool {
        self.is_available.load(Ordering::Relaxed)
    }

    fn knows_language(&self, target: &Target) -> bool {
        let state = self.state.lock();
        let selection = state.selection.as_ref();
        target.file().is_some_and(|path| {
            selection.is_some_and(|selection| selection.knows(path)) || self.is_served_by_editor(path)
        })
    }

    async fn outline(
        &self,
        workspace: &Workspace,
        target: &Target,
    ) -> Result<Answer<Vec<Symbol>>, LanguageError> {
        self.ask_outline(workspace, target).await
    }

    async fn find_symbols(
        &self,
        workspace: &Workspace,
        query: &str,
    ) -> Result<Answer<Vec<Symbol>>, LanguageError> {
        self.ask_symbols(workspace, query).await
    }

    async fn places(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
        kind: PlaceKind,
    ) -> Result<Answer<Vec<Place>>, LanguageError> {
        self.ask_places(workspace, at, kind).await
    }

    async fn references(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
    ) -> Result<Answer<Vec<Place>>, LanguageError> {
        self.ask_references(workspace, at).await
    }

    async fn hover(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
    ) -> Result<Answer<Option<String>>, LanguageError> {
        self.ask_hover(workspace, at).await
    }

    async fn calls(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
        direction: CallDirection,
        levels: usize,
    ) -> Result<Answer<Vec<CallNode>>, LanguageError> {
        self.ask_calls(workspace, at, direction, levels).await
    }

    async fn rename(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
        new_name: &str,
    ) -> Result<Answer<Vec<FileChange>>, LanguageError> {
        self.ask_rename(workspace, at, new_name).await
    }

    async fn moves(
        &self,
        workspace: &Workspace,
        moved: &[(Target, Target)],
    ) -> Result<Vec<FileChange>, LanguageError> {
        self.ask_moves(workspace, moved).await
    }

    async fn actions(
        &self,
        workspace: &Workspace,
        target: &Target,
        lines: (u32, u32),
        kind: Option<&str>,
    ) -> Result<Answer<Vec<CodeAction>>, LanguageError> {
        self.ask_actions(workspace, target, lines, kind).await
    }

    async fn apply_action(
        &self,
        workspace: &Workspace,
        target: &Target,
        id: &str,
    ) -> Result<Answer<(String, Vec<FileChange>)>, LanguageError> {
        self.ask_apply(workspace, target, id).await
    }

    async fn format(
        &self,
        workspace: &Workspace,
        target: &Target,
        lines: Option<(u32, u32)>,
    ) -> Result<Answer<Vec<FileChange>>, LanguageError> {
        self.ask_format(workspace, target, lines).await
    }

    async fn diagnostics(
        &self,
        workspace: &Workspace,
        request: DiagnosticsRequest<'_>,
    ) -> Result<Vec<FileDiagnostics>, DiagnosticsError> {
        self.ask_diagnostics(workspace, request).await
    }

    async fn try_changes(
        &self,
        workspace: &Workspace,
        files: &[FileChange],
        limit: Duration,
    ) -> Option<Vec<TriedFile>> {
        self.try_files(workspace, files, limit).await
    }

    async fn files_changed(&self, workspace: &Workspace, files: &[(Target, bool)]) {
        self.notify_changed(workspace, files).await;
    }
}
