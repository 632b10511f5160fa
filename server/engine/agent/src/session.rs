//! A session: one conversation, its journal, and the one task that runs its turns.
//!
//! Rule: every change goes through [`Session::commit`], which folds the record into the state, writes it and tells what
//! it tells, under one lock; so journal, memory and events never tell different stories.

pub mod agents;
pub mod apply;
pub mod background;
pub(crate) mod base;
pub mod changes;
mod checkpoint;
mod command;
mod committed;
pub(crate) mod conversation;
pub mod draft;
mod drive;
pub(crate) mod expand;
mod feed;
pub mod follower;
pub mod guard;
mod image;
pub(crate) mod isolated;
mod limits;
mod news;
pub(crate) mod open;
pub mod paging;
mod places;
pub(crate) mod proposal;
mod questions;
pub mod queue;
pub mod reminders;
pub mod replay;
mod resolve;
pub(crate) mod resume;
pub mod review;
pub mod rules;
mod servers;
mod slash;
mod snapshot;
pub mod spending;
pub mod standing;
pub mod state;
pub mod steering;
mod storage;
mod stored;
#[cfg(test)]
mod tests;
pub mod thread;
pub mod title;
pub mod todos;
mod told;
pub mod transcript;
mod turns;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use jiff::Timestamp;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::context::meter::Meters;
use crate::engine::desk::Desk;
use crate::hooks::state::HookState;
use crate::hooks::{HookChain, StartSource};
use crate::turn::route::Resting;
use agents::Agents;
use kode_base::effort::Effort;
use kode_base::ids::{ItemId, PermissionId, SessionId, TurnId};
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_base::question::QuestionBroker;
use kode_config::extension::Catalog;
use kode_config::extension::live::Extensions;
use kode_config::policy::PolicySource;
use kode_config::settings::TrustRequest;
use kode_journal::{Blobs, Journal};
use kode_model::models::{CurrentModels, Models, Pointer};
use kode_model::{Message, ModelError};
use kode_permission::{Broker, Deliveries, PermissionPrompt, PromptAnswer, PromptRespondError};
use kode_process::shell::Shell;
use kode_record::event::{Event, EventLog, Item, ItemBody};
use kode_record::record::Record;
use kode_text::edit::ledger::Ledger;
use kode_text::workspace::{WatchReport, Workspace};
use kode_tool::Registry;
use kode_tool::servers::McpServers;
use places::Places;
use review::ResolveError;
use spending::Spending;
use transcript::{Part, is_edit};
use turns::ActiveTurn;

pub use crate::input::Prompt;
pub(crate) use changes::{Changes, lock};
pub use open::Loading;
pub use queue::QUEUE_LIMIT;
pub use snapshot::Snapshot;
pub use state::SessionState;
pub use turns::{SubmitError, Submitted};

/// The longest title made from a prompt, in characters.
const TITLE_LIMIT: usize = 80;

/// What is to change in a session; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// The mode.
    pub mode: Option<Mode>,
    /// The name of the model profile.
    pub model: Option<String>,
    /// How hard models think; `Some(None)` is as the profile and the settings say.
    pub effort: Option<Option<Effort>>,
    /// The name of the style of the answers; `Some(None)` is that of the settings.
    pub output_style: Option<Option<String>>,
}

/// A live session.
pub struct Session {
    id: SessionId,
    /// Itself, for what goes on beside whoever began it.
    this: Weak<Self>,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) shell: Arc<Shell>,
    pub(crate) tools: Arc<Registry>,
    servers: servers::Used,
    pub(crate) models: CurrentModels,
    pub(crate) broker: Broker,
    questions: QuestionBroker,
    reminders: reminders::Reminders,
    extensions: Extensions,
    /// The skills and commands there are, as the turn found them.
    catalog: Mutex<Arc<Catalog>>,
    pub(crate) changes: Changes,
    pub(crate) agents: Agents,
    /// How full the context windows of its conversations are.
    pub(crate) meters: Meters,
    guard: Arc<guard::Guard>,
    /// What is kept of hooks.
    pub(crate) hooks: HookState,
    kept: standing::Kept,
    unwritten: draft::Unwritten,
    /// Held while it is told what is new of the disk.
    telling: Mutex<()>,
    /// The folder that worktrees of sub-agents are made in.
    pub(crate) worktrees: AbsPath,
    /// Places to run a call in; those that wait for the user or for other calls take none.
    pub(crate) places: Places,
    deliveries: Mutex<Arc<Deliveries>>,
    events: Arc<EventLog>,
    journal: Journal,
    base: base::Bases,
    state: Mutex<SessionState>,
    active: Mutex<Option<ActiveTurn>>,
    /// Calls that wait for the user; the session is paused while there are any.
    waiting: AtomicUsize,
    /// The turn limit of the command line.
    turn_limit: OnceLock<i64>,
    budgets: limits::Budgets,
    /// Models that are not asked for a while.
    pub(crate) resting: Resting,
    resumption: resume::Resumption,
    /// A model that is being asked for a title.
    titling: Mutex<Option<tokio::task::JoinHandle<()>>>,
    turns: mpsc::UnboundedSender<TurnId>,
    /// Commands that are answered beside the turns.
    beside: mpsc::Sender<slash::Beside>,
    /// What of the workspace's wishes the user was shown last.
    wishes_shown: Mutex<Vec<TrustRequest>>,
    cancel: CancellationToken,
    /// Whether its events go on when it is closed: another process writes it then.
    goes_on: AtomicBool,
}

/// What a session is made from.
pub(crate) struct Parts {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) shell: Arc<Shell>,
    pub(crate) tools: Arc<Registry>,
    pub(crate) servers: Arc<dyn McpServers>,
    pub(crate) models: CurrentModels,
    pub(crate) journal: Journal,
    pub(crate) blobs: Blobs,
    pub(crate) deliveries: Deliveries,
    pub(crate) policy: Arc<dyn PolicySource>,
    pub(crate) hooks: Arc<HookChain>,
    pub(crate) extensions: Extensions,
    pub(crate) concurrency: usize,
    pub(crate) state: SessionState,
    pub(crate) ledger: Ledger,
    pub(crate) events: Arc<EventLog>,
    pub(crate) base: base::Newest,
    pub(crate) desk: Arc<dyn Desk>,
    pub(crate) worktrees: AbsPath,
}

impl Session {
    /// Starts the session's task. One that was read from its journal is taken up first: `resumed` are the lines of it that
    /// could not be read.
    pub(crate) fn start(parts: Parts, resumed: Option<u64>) -> Arc<Self> {
        let Parts {
            workspace,
            shell,
            tools,
            servers,
            models,
            journal,
            blobs,
            deliveries,
            policy,
            hooks,
            extensions,
            concurrency,
            state,
            ledger,
            events,
            base,
            desk,
            worktrees,
        } = parts;
        let own = shell.tasks().outputs().map(|outputs| outputs.folder().clone());
        let changes = Changes::new(ledger, blobs, state.roots.clone());
        let start = if resumed.is_some() { StartSource::Resume } else { StartSource::Startup };
        let (log, feed) = (Arc::clone(&events), Arc::clone(&changes.feed));
        workspace.report_changes(move |report| {
            match &report {
                WatchReport::Changed { target, deleted: _ } => feed.look_at(target),
                WatchReport::NotWatching { .. } => {}
            }
            log.publish(report.into());
        });
        let (turns, receiver) = mpsc::unbounded_channel();
        let (beside, waiting) = mpsc::channel(slash::BESIDE_LIMIT);
        let session = Arc::new_cyclic(|this| Self {
            id: state.id.clone(),
            this: Weak::clone(this),
            workspace,
            shell,
            tools,
            servers: servers::Used::new(&servers, &events),
            models,
            broker: Broker::new(Arc::<EventLog>::clone(&events)),
            questions: QuestionBroker::new(Arc::<EventLog>::clone(&events)),
            reminders: reminders::Reminders::default(),
            extensions,
            catalog: Mutex::default(),
            changes,
            agents: Agents::default(),
            meters: Meters::default(),
            guard: Arc::new(guard::Guard::new(policy, own)),
            hooks: HookState::new(hooks, start),
            kept: standing::Kept::default(),
            unwritten: draft::Unwritten::default(),
            telling: Mutex::default(),
            worktrees,
            places: Places::new(concurrency),
            deliveries: Mutex::new(Arc::new(deliveries)),
            events,
            journal,
            base: base::Bases::new(base),
            state: Mutex::new(state),
            active: Mutex::new(None),
            waiting: AtomicUsize::new(0),
            turn_limit: OnceLock::new(),
            budgets: limits::Budgets::default(),
            resting: Resting::default(),
            resumption: resume::Resumption::default(),
            titling: Mutex::default(),
            turns,
            beside,
            wishes_shown: Mutex::default(),
            cancel: CancellationToken::new(),
            goes_on: AtomicBool::new(false),
        });
        session.follow_tasks();
        if let Some(skipped_records) = resumed {
            session.take_up(skipped_records);
        }
        session.workspace.observe_documents(&session.changes.feed);
        tokio::spawn(slash::answer_beside(Arc::clone(&session), waiting, Arc::clone(&desk)));
        tokio::spawn(drive::drive(Arc::clone(&session), receiver, desk));
        tokio::spawn(drive::follow_documents(Arc::clone(&session)));
        tokio::spawn(drive::follow_extensions(Arc::clone(&session)));
        tokio::spawn(draft::keep(Arc::clone(&session)));
        tokio::spawn(storage::keep(Arc::clone(&session)));
        session
    }

    /// The session's id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The session's events.
    #[must_use]
    pub fn events(&self) -> &Arc<EventLog> {
        &self.events
    }

    /// The session's mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.state().mode
    }

    /// Answers a permission prompt.
    ///
    /// # Errors
    /// [`PromptRespondError`], above all when somebody was first.
    pub fn respond(&self, id: &PermissionId, answer: PromptAnswer) -> Result<(), PromptRespondError> {
        self.broker.respond(id, answer)
    }

    /// The permission prompts that wait.
    #[must_use]
    pub fn pending(&self) -> Vec<PermissionPrompt> {
        self.broker.pending()
    }

    /// The profile that a name means in this workspace.
    ///
    /// # Errors
    /// When it means none, or one that cannot be used.
    pub fn model_named(&self, name: &str) -> Result<String, ModelError> {
        self.models().resolve_with(name, &self.in_force().policy.preferences.pointers)
    }

    /// The profile that a pointer points to in this workspace; what `main` points to is the session's own.
    #[must_use]
    pub fn pointer(&self, pointer: Pointer) -> String {
        if pointer == Pointer::Main {
            return self.state().model.clone();
        }
        self.models().pointer_with(pointer, &self.in_force().policy.preferences.pointers)
    }

    /// Changes mode and model; what is `None` stays. The model is used from the next model call on.
    pub fn configure(&self, mode: Option<Mode>, model: Option<String>) {
        self.configure_all(Configuration { mode, model, ..Configuration::default() });
    }

    /// Changes what is said; what is `None` stays. Model and effort are used from the next model call on, the style of the
    /// answers from the next turn on.
    pub fn configure_all(&self, wanted: Configuration) {
        let mut state = self.state();
        let mode = wanted.mode.unwrap_or(state.mode);
        let model = wanted.model.unwrap_or_else(|| state.model.clone());
        let effort = wanted.effort.unwrap_or(state.effort);
        let output_style = wanted.output_style.unwrap_or_else(|| state.output_style.clone());
        let is_same = mode == state.mode
            && model == state.model
            && effort == state.effort
            && output_style == state.output_style;
        if self.cancel.is_cancelled() || is_same {
            return;
        }
        let mode = mode.into();
        self.commit_locked(&mut state, Record::Configured { mode, model, effort, output_style });
    }

    /// The models as they are now.
    pub(crate) fn models(&self) -> Arc<Models> {
        self.models.now()
    }

    /// What the session has taken of its models since it began.
    #[must_use]
    pub fn spending(&self) -> Spending {
        self.state().spending.clone()
    }

    /// How changes reach the files: by the session's own rules if it has any, else by the user's.
    #[must_use]
    pub fn deliveries(&self) -> Arc<Deliveries> {
        Arc::clone(&lock(&self.deliveries))
    }

    /// Sets how changes reach the files from now on.
    pub fn deliver(&self, deliveries: Deliveries) {
        if self.cancel.is_cancelled() {
            return;
        }
        let record = Record::Delivering { rules: deliveries.rules() };
        self.commit(record);
        *lock(&self.deliveries) = Arc::new(deliveries);
    }

    /// The workspace folders.
    #[must_use]
    pub fn roots(&self) -> Vec<AbsPath> {
        self.workspace.roots().to_vec()
    }

    /// Whether the editor tells what its language servers say.
    #[must_use]
    pub fn can_diagnose(&self) -> bool {
        self.workspace.can_diagnose()
    }

    /// Where relative paths and commands start.
    #[must_use]
    pub fn cwd(&self) -> AbsPath {
        self.workspace.cwd()
    }

    /// What the model is sent, from message number `from` on, oldest first, each with its number.
    #[must_use]
    pub fn messages_from(&self, from: usize) -> Vec<(usize, Message)> {
        self.state().main.messages_from(from).map(|(number, message)| (number, message.clone())).collect()
    }

    /// Looks for agents, skills, commands and styles; what is found is what the next turn has.
    async fn look_for_extensions(&self) {
        let found = self.extensions.now().await;
        let catalog = self.with_touched(&found.catalog).await;
        self.guard.know_wishes(catalog.wishes().chain(found.agents.wishes()).cloned().collect());
        *lock(&self.catalog) = catalog;
        self.agents.know(&found.agents);
        self.kept.know(&found.styles);
    }

    /// What users' files add in the session's folders.
    #[must_use]
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// The skills and commands there are, as the turn found them.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&lock(&self.catalog))
    }

    /// The last text the model said; empty when it said none.
    #[must_use]
    pub fn answer(&self) -> String {
        self.state().main.answer()
    }

    /// The short form of a file or document for people: relative to the workspace where possible.
    #[must_use]
    pub fn display(&self, target: &kode_base::paths::Target) -> String {
        self.workspace.display(target)
    }

    /// The tool calls of this session and its sub-agents that changed files, oldest first. May wait for the disk.
    #[must_use]
    pub fn edit_items(&self) -> Vec<Item> {
        let parts: Vec<Part> = {
            let state = self.state();
            let threads =
                std::iter::once(&state.main).chain(state.agents.values().map(|agent| &agent.thread));
            threads.map(|thread| thread.items.edits()).collect()
        };
        let mut items: Vec<Item> = parts.into_iter().flat_map(Part::read_what_can_be).collect();
        items.retain(is_edit);
        items.sort_by_key(|item| item.timestamp);
        items
    }

    /// Cancels what runs and ends the session's task. The journal stays.
    pub fn close(&self) {
        let _no_prompt_is_taken_meanwhile = self.state();
        self.cancel.cancel();
        self.cancel_turn();
        self.shell.tasks().close();
    }

    /// As [`Session::close`], for another process that writes the session from then on: its events are not at an end.
    pub(crate) fn close_for_another(&self) {
        self.goes_on.store(true, Ordering::SeqCst);
        self.close();
    }

    /// Itself, to be kept by what goes on beside whoever began it.
    pub(crate) fn shared(&self) -> Option<Arc<Self>> {
        self.this.upgrade()
    }

    /// Fires when [`Session::close`] is called.
    pub(crate) fn cancel_token(&self) -> CancellationToken {
        self.cancel.child_token()
    }

    /// The folder that the journal lies in.
    pub(crate) fn journal_folder(&self) -> Option<&std::path::Path> {
        self.journal.path().parent()
    }

    /// Waits until [`Session::close`] is called.
    pub(crate) async fn closing(&self) {
        self.cancel.cancelled().await;
    }

    /// Whether commands run in the background.
    pub(crate) fn has_commands(&self) -> bool {
        self.state().background.running().next().is_some()
    }

    /// Whether [`Session::close`] was called.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Whether the session's task has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.turns.is_closed()
    }

    /// Waits until the session's task has ended after [`Session::close`].
    pub async fn closed(&self) {
        self.turns.closed().await;
    }

    // -- for the turn -------------------------------------------------------------------------------------------

    pub(crate) fn state(&self) -> MutexGuard<'_, SessionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Folds a record into the state, writes it and tells what it tells.
    pub(crate) fn commit(&self, record: Record) {
        self.commit_locked(&mut self.state(), record);
    }

    /// Commits a record when no turn runs.
    fn commit_when_idle(&self, record: Record) -> Result<(), ResolveError> {
        let mut state = self.state();
        if self.active().is_some() || state.has_agents_at_work() {
            return Err(ResolveError::Busy);
        }
        self.commit_locked(&mut state, record);
        Ok(())
    }

    /// Whether a turn runs.
    pub(crate) fn is_busy(&self) -> bool {
        self.active().is_some()
    }

    pub(crate) fn publish(&self, event: Event) {
        self.events.publish(event);
    }

    // -- inside -------------------------------------------------------------------------------------------------

    /// Nobody sees the state between its change and the writing: its lock is held all the while. The line has the number of
    /// the newest event, so none may come between; only what must be is done under the lock that gives numbers.
    fn commit_locked(&self, state: &mut SessionState, record: Record) {
        let prepared = self.journal.prepare(&record);
        let events = state.apply(record);
        match prepared {
            Ok(line) => {
                let at = line.written;
                self.events.tell(at, events, |seq| self.write_line(line, seq));
            }
            Err(error) => {
                self.events.tell(Timestamp::now(), events, |_| {});
                self.journal.note_refused(&error);
            }
        }
    }
}

/// Makes an item of a turn.
pub(crate) fn new_item(turn: &TurnId, body: ItemBody) -> Item {
    Item { id: ItemId::generate(), turn: turn.clone(), agent: None, timestamp: Timestamp::now(), body }
}

/// A title from the first line of a prompt.
pub(crate) fn title_from(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    match line.char_indices().nth(TITLE_LIMIT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
