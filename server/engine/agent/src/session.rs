//! A session: its components, and the one task that runs its turns.
//!
//! Rule: a session only connects its components. Work on prompts, edits, requests and history is done by the component for
//! it; the session itself begins, is resumed and is closed here.

pub mod commands;
pub(crate) mod directory;
pub mod drafts;
mod drive;
pub mod prompts;
mod queue;
mod resume;
pub mod side;
pub mod tasks;
mod titles;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::context::{ContextBuilder, ContextBuilderParts};
use crate::conversation::WorktreeIsolation;
use crate::core::Core;
use crate::core::editor::EditorMemo;
use crate::core::environment::Environment;
use crate::edits::{Edits, EditsParts};
use crate::extensions::SessionExtensions;
use crate::gate::Gatekeeper;
use crate::history::base::{BaseTurns, NewestBase};
use crate::history::{SessionHistory, Snapshot};
use crate::hooks::{EndReason, HookChain, HookParts, HookRunner, StartSource};
use crate::input::{InputParts, InputReader};
use crate::instructions::InstructionLoader;
use crate::models::SessionModels;
use crate::requests::UserRequests;
use crate::servers::SessionServers;
use crate::sessions::SessionError;
use crate::state::SessionState;
use crate::state::config::ConfigChange;
use crate::state::spending::Spending;
use crate::state::titles::TitleError;
use crate::turn::agent_slots::AgentSlots;
use crate::turn::call_slots::CallSlots;
use crate::turn::goals::Goals;
use crate::turn::services::Services;
use crate::turn::turns::Turns;
use commands::CommandQueue;
use directory::SessionDirectory;
use drafts::Drafts;
use kode_base::ids::SessionId;
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_base::task;
use kode_base::todo::Todo;
use kode_config::extension::live::Extensions;
use kode_config::policy::PolicySource;
use kode_journal::lease::LeaseRefusal;
use kode_journal::{Blobs, Journal};
use kode_model::ModelError;
use kode_model::models::CurrentModels;
use kode_permission::Deliveries;
use kode_process::shell::Shell;
use kode_record::context::ContextUse;
use kode_record::event::{Event, EventLog, RunState};
use kode_record::record::Record;
use kode_record::title::TitledBy;
use kode_text::edit::ledger::Ledger;
use kode_text::workspace::Workspace;
use kode_tool::Registry;
use kode_tool::guest::GuestRunner;
use kode_tool::servers::McpServers;
use prompts::{PromptParts, Prompts};
use resume::Resumption;
use side::SideQuestions;
use tasks::BackgroundTasks;
use titles::TitleWriter;

/// A live session.
pub struct Session {
    services: Arc<Services>,
    history: Arc<SessionHistory>,
    prompts: Arc<Prompts>,
    commands: Arc<CommandQueue>,
    drafts: Arc<Drafts>,
    tasks: Arc<BackgroundTasks>,
    titles: Arc<TitleWriter>,
    side_questions: Arc<SideQuestions>,
    resumption: Resumption,
    /// Whether another process writes the session when it is closed here: its events do not end then.
    is_handed_over: AtomicBool,
}

/// The parts that a session is made from.
pub(crate) struct SessionParts {
    pub(crate) workspace: Arc<Workspace>,
    /// Its isolation in a worktree, where it works in one.
    pub(crate) isolation: Option<Arc<WorktreeIsolation>>,
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
    pub(crate) base: NewestBase,
    pub(crate) base_turns: BaseTurns,
    pub(crate) directory: Arc<dyn SessionDirectory>,
    pub(crate) worktrees: AbsPath,
    /// Runs guests; `None` where none can work.
    pub(crate) guests: Option<Arc<dyn GuestRunner>>,
}

impl Session {
    /// Starts the session's task. A stored session is resumed first; `resumed` is the number of unreadable lines of its
    /// journal.
    pub(crate) fn start(parts: SessionParts, resumed: Option<u64>) -> Arc<Self> {
        let start = if resumed.is_some() { StartSource::Resume } else { StartSource::Startup };
        let directory = Arc::clone(&parts.directory);
        let base_turns = parts.base_turns.clone();
        let (services, base) = services(parts, start);
        let history = SessionHistory::new(&services.core, &services.edits, base_turns, base);
        let (commands, queued) = CommandQueue::new();
        let (prompts, begun) = Prompts::new(&PromptParts {
            core: &services.core,
            workspace: &services.environment.workspace,
            edits: &services.edits,
            turns: &services.turns,
            commands: &commands,
        });
        let session = Arc::new(Self {
            drafts: Drafts::new(&services.core),
            tasks: BackgroundTasks::new(&services.core, &services.environment.shell),
            titles: TitleWriter::new(&services.core, &services.gate, &services.models),
            side_questions: SideQuestions::new(&services),
            services,
            history,
            prompts,
            commands,
            resumption: Resumption::default(),
            is_handed_over: AtomicBool::new(false),
        });
        session.tasks.follow();
        if let Some(skipped_records) = resumed {
            session.resume(skipped_records);
        }
        let services = &session.services;
        services.edits.observe_documents();
        task::spawn(commands::answer_queued(Arc::clone(&session), queued, Arc::clone(&directory)));
        task::spawn(drive::drive(Arc::clone(&session), begun, directory));
        task::spawn(crate::edits::follow(Arc::clone(&services.edits)));
        task::spawn(crate::edits::follow_diagnostics(Arc::clone(&services.edits)));
        task::spawn(drive::follow_extensions(Arc::clone(services)));
        task::spawn(drafts::keep(Arc::clone(&session.drafts)));
        task::spawn(crate::core::keep(Arc::clone(&services.core)));
        session
    }

    /// Reports to the user that the session is not stored, and why.
    pub(crate) fn report_not_stored(&self, refusal: &SessionError) {
        let message = format!("This session is not stored: {refusal}. It ends with kode-ls.");
        let hint = "Make room on the disk, or set KODE_LS_HOME to a folder that can be written, and start \
             a new session.";
        resume::report_loss(self.core(), &mut self.core().state(), &message, hint);
        self.core().publish(Event::StorageFailure { message, recovered: false });
    }

    /// The core.
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.services.core
    }

    /// The components that its turns work with.
    pub(crate) fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        self.services.core.id()
    }

    /// The events.
    #[must_use]
    pub fn events(&self) -> &Arc<EventLog> {
        self.services.core.events()
    }

    /// The permission gate.
    #[must_use]
    pub fn gate(&self) -> &Arc<Gatekeeper> {
        &self.services.gate
    }

    /// The models.
    #[must_use]
    pub fn models(&self) -> &Arc<SessionModels> {
        &self.services.models
    }

    /// The requests to the user.
    #[must_use]
    pub fn requests(&self) -> &Arc<UserRequests> {
        &self.services.requests
    }

    /// The agent's edits, and the user's actions on them.
    #[must_use]
    pub fn edits(&self) -> &Arc<Edits> {
        &self.services.edits
    }

    /// The extensions of users' files.
    #[must_use]
    pub fn extensions(&self) -> &Arc<SessionExtensions> {
        &self.services.extensions
    }

    /// The MCP servers of its folders.
    #[must_use]
    pub fn servers(&self) -> &Arc<dyn McpServers> {
        self.services.servers.all()
    }

    /// The instructions in the system prompt.
    #[must_use]
    pub fn instructions(&self) -> &Arc<InstructionLoader> {
        &self.services.instructions
    }

    /// The hooks.
    #[must_use]
    pub fn hooks(&self) -> &Arc<HookRunner> {
        &self.services.hooks
    }

    /// The running turn.
    #[must_use]
    pub fn turns(&self) -> &Arc<Turns> {
        &self.services.turns
    }

    /// The stored history.
    #[must_use]
    pub fn history(&self) -> &Arc<SessionHistory> {
        &self.history
    }

    /// The prompts.
    #[must_use]
    pub fn prompts(&self) -> &Arc<Prompts> {
        &self.prompts
    }

    /// The side questions.
    #[must_use]
    pub fn side_questions(&self) -> &Arc<SideQuestions> {
        &self.side_questions
    }

    /// The draft.
    #[must_use]
    pub fn drafts(&self) -> &Arc<Drafts> {
        &self.drafts
    }

    /// The background commands.
    #[must_use]
    pub fn tasks(&self) -> &Arc<BackgroundTasks> {
        &self.tasks
    }

    /// The mode.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.services.core.state().config.mode
    }

    /// Changes mode, model, effort and output style. Model and effort apply from the next model call on, the output style
    /// from the next turn on.
    pub fn configure(&self, change: ConfigChange) {
        self.services.core.configure(change);
    }

    /// Changes the mode.
    pub fn set_mode(&self, mode: Mode) {
        self.services.core.set_mode(mode);
    }

    /// The workspace folders.
    #[must_use]
    pub fn roots(&self) -> Vec<AbsPath> {
        self.services.core.state().roots.clone()
    }

    /// The folder in which relative paths and commands start.
    #[must_use]
    pub fn cwd(&self) -> AbsPath {
        self.services.environment.workspace.cwd()
    }

    /// The short form of a file or document for people: relative to the workspace where possible.
    #[must_use]
    pub fn display(&self, target: &Target) -> String {
        self.services.environment.workspace.display(target)
    }

    /// Whether the editor publishes the diagnostics of its language servers.
    #[must_use]
    pub fn can_diagnose(&self) -> bool {
        self.services.environment.workspace.can_diagnose()
    }

    /// The usage and the cost of its model calls since it began.
    #[must_use]
    pub fn spending(&self) -> Spending {
        self.services.core.state().spending.clone()
    }

    /// The fill of the context window of the session's own conversation now.
    ///
    /// # Errors
    /// When its model profile cannot be used.
    pub fn context_use(&self) -> Result<ContextUse, ModelError> {
        let conversation = self.services.main_conversation();
        let models = self.services.models.now();
        let profile = models.profile(&conversation.model())?;
        Ok(self.services.context.measure(&conversation, profile).usage)
    }

    /// The last text of the model; empty where it has none.
    #[must_use]
    pub fn answer(&self) -> String {
        self.services.core.state().main.answer()
    }

    /// The todo list.
    #[must_use]
    pub fn todos(&self) -> Vec<Todo> {
        self.services.core.state().todos.list().to_vec()
    }

    /// The session as it is now, with at most `items` of its newest items.
    #[must_use]
    pub fn snapshot(&self, items: usize) -> Snapshot {
        let (snapshot, part) = {
            let state = self.services.core.state();
            let (snapshot, part) = Snapshot::of(&state, self.events().newest(), items);
            let requests = &self.services.requests;
            let live = Snapshot {
                state: self.run_state(),
                pending: requests.permissions(),
                questions: requests.questions(),
                context: self.services.context.last_use(),
                ..snapshot
            };
            (live, part)
        };
        // Older items are read from the disk without the lock.
        Snapshot { items: part.read_what_can_be(), ..snapshot }
    }

    fn run_state(&self) -> RunState {
        if !self.is_busy() {
            RunState::Ready
        } else if self.services.requests.is_waiting() {
            RunState::Paused
        } else {
            RunState::Working
        }
    }

    /// Gives the session a title of the user's.
    ///
    /// # Errors
    /// [`TitleError`]; the title stays as it is then.
    pub fn rename(&self, title: &str) -> Result<(), TitleError> {
        self.services.core.set_title(title, TitledBy::User)
    }

    /// Archives the session, or takes it out of the archive. False when it was closed meanwhile.
    pub fn archive(&self, archived: bool) -> bool {
        let core = &self.services.core;
        let mut state = core.state();
        if core.is_closing() {
            return false;
        }
        if state.archived != archived {
            core.commit_to(&mut state, Record::Archived { archived });
        }
        true
    }

    /// Cancels its work and ends the session's task. The journal stays.
    pub fn close(&self) {
        // Locked: no prompt is accepted meanwhile.
        let _state = self.services.core.state();
        self.services.core.close();
        self.services.turns.cancel();
        self.services.environment.shell.tasks().close();
    }

    /// As [`Self::close`], with a reason for the hooks of the session's end.
    pub(crate) fn close_for(&self, reason: EndReason) {
        self.services.hooks.end_with(reason);
        self.close();
    }

    /// Closes the session if no turn runs; false when one does.
    pub(crate) fn close_if_idle(&self) -> bool {
        // Locked to the end: no prompt is accepted meanwhile.
        let _state = self.services.core.state();
        if self.is_busy() || self.services.edits.is_resolving() {
            return false;
        }
        self.services.core.close();
        self.services.environment.shell.tasks().close();
        true
    }

    /// As [`Self::close`], for another process that writes the session from then on: its events do not end.
    pub(crate) fn hand_over(&self) {
        self.is_handed_over.store(true, Ordering::SeqCst);
        self.close();
    }

    /// As [`Self::hand_over`], unless something runs in the session.
    ///
    /// # Errors
    /// The work that runs.
    pub(crate) fn hand_over_if_idle(&self) -> Result<(), LeaseRefusal> {
        // Locked to the end: no prompt is accepted meanwhile.
        let state = self.services.core.state();
        if let Some(work) = self.work_with(state.background.running().next().is_some()) {
            return Err(work);
        }
        self.is_handed_over.store(true, Ordering::SeqCst);
        self.services.core.close();
        self.services.environment.shell.tasks().close();
        Ok(())
    }

    /// The work in the session that would end with it.
    pub(crate) fn work(&self) -> Option<LeaseRefusal> {
        self.work_with(self.tasks.are_running())
    }

    fn work_with(&self, has_commands: bool) -> Option<LeaseRefusal> {
        if self.is_busy() || self.services.edits.is_resolving() {
            Some(LeaseRefusal::TurnRunning)
        } else if has_commands {
            Some(LeaseRefusal::CommandsRunning)
        } else {
            None
        }
    }

    /// Whether the session is being closed.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.services.core.is_closing()
    }

    /// Whether the session's task has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.prompts.is_closed()
    }

    /// Waits until no model is called for a title any more.
    #[cfg(test)]
    pub(crate) async fn titles_written(&self) {
        self.titles.end().await;
    }

    /// Waits until the session's task has ended.
    pub async fn closed(&self) {
        self.prompts.closed().await;
    }

    /// Whether a turn runs.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.services.turns.is_busy()
    }
}

/// The components of a session, and the base that it was opened from.
fn services(parts: SessionParts, start: StartSource) -> (Arc<Services>, NewestBase) {
    let SessionParts { workspace, shell, tools, journal, state, events, .. } = parts;
    let environment = Environment { workspace, shell, tools };
    let core = Arc::new(Core::new(state, journal, events));
    let Environment { workspace, shell, tools } = &environment;
    let policy = (parts.policy, parts.isolation);
    let gate = Gatekeeper::new(&core, (workspace, shell, tools), policy, parts.deliveries);
    let requests = UserRequests::new(&core);
    let editor = Arc::new(EditorMemo::default());
    let edits =
        EditsParts { core: &core, workspace, shell, gate: &gate, requests: &requests, editor: &editor };
    let edits = Edits::new(&edits, parts.ledger, parts.blobs);
    edits.watch_workspace();
    let models = SessionModels::new(&core, &gate, parts.models);
    let extensions = SessionExtensions::new(&environment, &gate, parts.extensions);
    let servers = SessionServers::new(&core, parts.servers);
    let instructions = InstructionLoader::new(&core, &environment, &gate, &extensions);
    let hooks = HookParts {
        core: &core,
        environment: &environment,
        gate: &gate,
        models: &models,
        extensions: &extensions,
    };
    let hooks = HookRunner::new(&hooks, parts.hooks, start);
    let context = ContextBuilder::new(&ContextBuilderParts {
        core: &core,
        environment: &environment,
        gate: &gate,
        extensions: &extensions,
        instructions: &instructions,
        servers: &servers,
    });
    let input = InputReader::new(&InputParts {
        core: &core,
        environment: &environment,
        gate: &gate,
        servers: &servers,
        instructions: &instructions,
        editor: &editor,
    });
    let (turns, goals) = (Turns::new(&core, &gate), Goals::new(&core));
    let services = Services {
        core,
        environment,
        gate,
        models,
        requests,
        edits,
        extensions,
        servers,
        instructions,
        hooks,
        context,
        input,
        turns,
        goals,
        call_slots: CallSlots::new(parts.concurrency),
        agent_slots: AgentSlots::default(),
        worktrees: parts.worktrees,
        guests: parts.guests,
    };
    (Arc::new(services), parts.base)
}
