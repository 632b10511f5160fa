//! Where a turn runs: the session's own conversation, or that of one of its sub-agents.
//!
//! Rule: whatever is recorded through a conversation is recorded as its own, and what it shows says whose it is; all
//! else (files, changes, permissions, usage) is the session's, whoever does it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use jiff::Timestamp;

use crate::hooks::brought::Brought;
use crate::session::guard::Judged;
use crate::session::isolated::{Isolated, either};
use crate::session::thread::Thread;
use crate::session::{Session, SessionState, lock, new_item};
use crate::turn::Spent;
use crate::turn::phases::{Phase, Phases};
use kode_base::call::MayRead;
use kode_base::effort::Effort;
use kode_base::ids::{AgentId, ItemId, PermissionId, TurnId};
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_config::in_force::{EffectivePolicy, PolicyView};
use kode_model::profile::Profile;
use kode_model::{Block, Usage};
use kode_permission::equipment::Equipment;
use kode_permission::gate::GateCase;
use kode_process::shell::Shell;
use kode_record::context::ContextUse;
use kode_record::event::{CallOutcome, CallState, Item, ItemBody, NoticeKind, NoticeLevel};
use kode_record::record::{ExecutedCall, Record};
use kode_text::workspace::real_paths::RealPaths;
use kode_text::workspace::{KnownText, Workspace};
use kode_tool::Registry;

/// A conversation in which a turn runs.
pub(crate) struct Conversation<'a> {
    pub(crate) session: &'a Session,
    /// Whose it is; `None` for the session's own.
    pub(crate) agent: Option<AgentId>,
    /// Where its commands run: what one conversation's commands move does not move those of another.
    pub(crate) shell: Arc<Shell>,
    /// The tools that may be called in it.
    pub(crate) tools: Arc<Registry>,
    /// The most model calls of one turn of a sub-agent; `None` where the turn itself says so.
    pub(crate) model_call_limit: Option<u32>,
    /// How a sub-agent goes about its task; `None` for the session's own.
    pub(crate) assignment: Option<Assignment>,
    /// What the sub-agents have taken that were called in it, and the models that summarized it.
    spent: Mutex<Spent>,
    /// Whether a call has asked the turn to end.
    stop: AtomicBool,
    /// How long the parts of its turn took so far.
    phases: Mutex<Phases>,
    /// How often in a row compacting it was of no use.
    pub(crate) useless_compactions: AtomicU32,
    /// Whether it was said in its turn that the fallback is asked while the own model rests.
    pub(crate) rest_told: AtomicBool,
}

/// How a sub-agent goes about its task.
pub(crate) struct Assignment {
    /// The name of its type.
    pub(crate) kind: String,
    /// Its system prompt.
    pub(crate) prompt: String,
    /// The mode in which it works where the session's is not stricter.
    pub(crate) mode: Option<Mode>,
    /// The name of its model profile; `None` for that of the session.
    pub(crate) model: Option<String>,
    /// How hard its model thinks, where its type says so.
    pub(crate) effort: Option<Effort>,
    /// What the skills bring along that the sub-agents above it have used.
    pub(crate) inherited: Equipment,
    /// The tools of servers that run for it alone.
    pub(crate) own_tools: BTreeSet<&'static str>,
    /// The hooks that its type brings along, and those of the sub-agents above it.
    pub(crate) hooks: Vec<Brought>,
    /// The worktree it works in; `None` for the workspace itself.
    pub(crate) isolated: Option<Arc<Isolated>>,
    /// How many conversations stand above it.
    pub(crate) depth: usize,
    /// Is told the titles of the calls that begin to run.
    pub(crate) tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl<'a> Conversation<'a> {
    /// The session's own.
    pub(crate) fn main(session: &'a Session) -> Self {
        Self {
            session,
            agent: None,
            shell: Arc::clone(&session.shell),
            tools: Arc::clone(&session.tools),
            model_call_limit: None,
            assignment: None,
            spent: Mutex::default(),
            stop: AtomicBool::new(false),
            phases: Mutex::default(),
            useless_compactions: AtomicU32::new(0),
            rest_told: AtomicBool::new(false),
        }
    }

    /// That of a sub-agent at which nobody works.
    pub(crate) fn of_agent(session: &'a Session, agent: AgentId) -> Self {
        Self { agent: Some(agent), ..Self::main(session) }
    }

    /// That of a sub-agent that goes to work.
    pub(crate) fn of_assignment(
        session: &'a Session,
        agent: AgentId,
        tools: Registry,
        model_call_limit: u32,
        assignment: Assignment,
    ) -> Self {
        let (tools, assignment) = (Arc::new(tools), Some(assignment));
        let model_call_limit = Some(model_call_limit);
        let conversation = Self { tools, model_call_limit, assignment, ..Self::of_agent(session, agent) };
        let shell = Arc::new(session.shell.elsewhere(conversation.workspace().cwd()));
        Self { shell, ..conversation }
    }

    /// The mode in which its calls are judged, while the session is in `mode`.
    pub(crate) fn mode(&self, mode: Mode) -> Mode {
        self.mode_limit().map_or(mode, |limit| mode.within(limit))
    }

    /// The mode it keeps to where the session's is not stricter.
    pub(crate) fn mode_limit(&self) -> Option<Mode> {
        self.assignment.as_ref().and_then(|assignment| assignment.mode)
    }

    /// The name of its model profile.
    pub(crate) fn model(&self) -> String {
        let state = self.session.state();
        let of_turn = self.equipped(&state).and_then(|equipment| equipment.model.as_ref());
        let own = self.assignment.as_ref().and_then(|assignment| assignment.model.as_ref());
        of_turn.or(own).unwrap_or(&state.model).clone()
    }

    /// How hard its model is to think, where a skill, the type of a sub-agent or the user, who has `chosen`, has said so.
    pub(crate) fn effort(&self, chosen: Option<Effort>, state: &SessionState) -> Option<Effort> {
        let of_turn = self.equipped(state).and_then(|equipment| equipment.effort);
        let own = self.assignment.as_ref().and_then(|assignment| assignment.effort);
        of_turn.or(own).or(chosen)
    }

    /// Lets what a skill or command brings along count in this conversation until its turn ends.
    pub(crate) fn equip(&self, turn: &TurnId, equipment: Equipment) {
        if !equipment.is_empty() {
            self.commit(Record::Equipped { turn: turn.clone(), equipment });
        }
    }

    /// What the skills and commands of its turn bring along; of a sub-agent, of its own turn alone.
    fn equipped<'s>(&self, state: &'s SessionState) -> Option<&'s Equipment> {
        match &self.agent {
            None => Some(&state.equipment),
            Some(agent) => state.agents.get(agent).map(|agent| &agent.equipment),
        }
    }

    /// What counts here beside what counts in the whole session: what a sub-agent's own skills bring along, and those of the
    /// sub-agents above it.
    pub(crate) fn equipment(&self) -> Equipment {
        let Some(agent) = &self.agent else { return Equipment::default() };
        let inherited = self.assignment.as_ref().map(|assignment| assignment.inherited.clone());
        let mut equipment = inherited.unwrap_or_default();
        if let Some(agent) = self.session.state().agents.get(agent) {
            equipment.take(agent.equipment.clone());
        }
        equipment
    }

    /// The worktree it works in, where that is not the workspace itself.
    pub(crate) fn isolated(&self) -> Option<&Arc<Isolated>> {
        self.assignment.as_ref()?.isolated.as_ref()
    }

    /// The files as it sees them.
    pub(crate) fn workspace(&self) -> &Arc<Workspace> {
        self.isolated().map_or(&self.session.workspace, |isolated| &isolated.workspace)
    }

    /// What its calls are judged by now, with more that a file brings along.
    fn view(&self, equipment: &Equipment) -> PolicyView {
        let view = self.session.view(equipment);
        match self.isolated() {
            Some(isolated) => isolated.view(&view),
            None => view,
        }
    }

    /// What is in force for it now.
    pub(crate) fn in_force(&self) -> Arc<EffectivePolicy> {
        self.view(&self.equipment()).in_force
    }

    /// Judges a call of this conversation by everything that is in force now.
    pub(crate) fn judge(&self, case: &GateCase<'_>) -> Judged {
        self.judge_by(&self.equipment(), case, Session::judge_by)
    }

    /// Judges a command that stands in the text of a file, with what that file brings along.
    pub(crate) fn judge_embedded(&self, case: &GateCase<'_>, of_file: &Equipment) -> Judged {
        let mut equipment = self.equipment();
        equipment.take(of_file.clone());
        self.judge_by(&equipment, case, Session::judge_embedded)
    }

    fn judge_by(
        &self,
        equipment: &Equipment,
        case: &GateCase<'_>,
        judge: fn(&Session, &PolicyView, &GateCase<'_>, Mode) -> Judged,
    ) -> Judged {
        let mode = self.mode(self.session.mode());
        let in_workspace = judge(self.session, &self.session.view(equipment), case, mode);
        match self.isolated() {
            None => in_workspace,
            Some(isolated) => {
                isolated.judge(case, in_workspace, || judge(self.session, &self.view(equipment), case, mode))
            }
        }
    }

    /// Which files its searches may look into.
    pub(crate) fn may_read(&self) -> MayRead {
        let (mode, equipment) = (self.mode(self.session.mode()), self.equipment());
        let in_workspace = self.session.view(&equipment).may_read(mode);
        match self.isolated() {
            None => in_workspace,
            Some(_) => either(self.view(&equipment).may_read(mode), in_workspace),
        }
    }

    /// Which files it may be handed beside what it asks for.
    pub(crate) fn mentionable(&self) -> impl Fn(&Target, &RealPaths) -> Result<(), String> + Send + 'static {
        self.session.mentionable_in(self.view(&Equipment::default()))
    }

    /// The tools that its sub-agents can have: not those of servers that run for it alone.
    pub(crate) fn tools_for_agents(&self) -> Registry {
        match &self.assignment {
            Some(Assignment { own_tools, .. }) if !own_tools.is_empty() => {
                self.tools.only(|name| !own_tools.contains(name))
            }
            Some(_) | None => Registry::clone(&self.tools),
        }
    }

    /// How many conversations stand above it.
    pub(crate) fn depth(&self) -> usize {
        self.assignment.as_ref().map_or(0, |assignment| assignment.depth)
    }

    /// Enters what a model has taken for an answer, whole or broken off, with what it costs, and tells of it.
    /// `context` is how full the context window is now, where that was measured.
    pub(crate) fn charge(&self, turn: &TurnId, profile: &Profile, usage: Usage, context: Option<ContextUse>) {
        let cost = profile.prices.as_ref().and_then(|prices| prices.cost(&usage));
        let (turn, model) = (turn.clone(), profile.model.clone());
        self.commit(Record::Charged { turn, model, usage, cost, context });
    }

    /// Has the turn end when the calls that run have their results.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Whether a call has asked the turn to end.
    pub(crate) fn is_asked_to_stop(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Adds what a sub-agent, a summary, or an attempt that gave no answer has taken.
    pub(crate) fn spend(&self, spent: Spent) {
        *lock(&self.spent) += spent;
    }

    /// What its sub-agents, summaries and attempts without an answer have taken.
    pub(crate) fn spent(&self) -> Spent {
        *lock(&self.spent)
    }

    /// Does a part of a turn and notes how long it took.
    pub(crate) fn timed<T>(&self, phase: Phase, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let done = work();
        lock(&self.phases).end(phase, began);
        done
    }

    /// Notes how long a part of a turn took that began then and ends now.
    pub(crate) fn note_phase(&self, phase: Phase, began: Instant) {
        lock(&self.phases).end(phase, began);
    }

    /// How long the parts of its turn took so far.
    pub(crate) fn phases(&self) -> Phases {
        *lock(&self.phases)
    }

    /// Looks at what the conversation is now.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Thread) -> T) -> T {
        let state = self.session.state();
        match state.thread(self.agent.as_ref()) {
            Some(thread) => look(thread),
            None => look(&Thread::default()),
        }
    }

    /// Commits a record of this conversation.
    pub(crate) fn commit(&self, record: Record) {
        self.session.commit(match &self.agent {
            None => record,
            Some(agent) => Record::InAgent { agent: agent.clone(), record: Box::new(record) },
        });
    }

    /// Makes an item of this conversation.
    pub(crate) fn new_item(&self, turn: &TurnId, body: ItemBody) -> Item {
        Item { agent: self.agent.clone(), ..new_item(turn, body) }
    }

    /// Notes that a call waits for the user, and for which permission prompt if it is one; nothing new where that is known.
    pub(crate) fn call_waits(
        &self,
        item: &ItemId,
        title: &str,
        permission: Option<&PermissionId>,
        known: Vec<KnownText>,
    ) {
        let is_known = self.read(|thread| match thread.item(item).map(|item| &item.body) {
            Some(ItemBody::ToolCall(call)) => {
                let waits = call.state == CallState::ApprovalRequired && call.title == title;
                waits && thread.asked(item) == permission
            }
            Some(_) | None => false,
        });
        if !is_known {
            let (item, title, permission) = (item.clone(), title.to_owned(), permission.cloned());
            let (at, state) = (Timestamp::now(), CallState::ApprovalRequired);
            self.commit(Record::CallMoved { item, at, state, title, permission, known });
        }
    }

    /// Notes that a call begins to run, and tells of it, unless the transcript shows no call.
    pub(crate) fn call_begins(&self, item: &ItemId, title: &str) {
        if let Some(assignment) = &self.assignment {
            (assignment.tell)(title);
        }
        let (item, title) = (item.clone(), title.to_owned());
        let (at, state) = (Timestamp::now(), CallState::Executing);
        self.commit(Record::CallMoved { item, at, state, title, permission: None, known: Vec::new() });
    }

    /// Ends a call with its result, which has the instructions of some folders in it; `executed` where it was carried out or
    /// refused.
    pub(crate) fn end_call(
        &self,
        item: &ItemId,
        outcome: CallOutcome,
        (result, instructed): (Block, Vec<AbsPath>),
        executed: Option<ExecutedCall>,
    ) {
        let at = Timestamp::now();
        self.commit(Record::CallEnded { item: item.clone(), at, outcome, result, instructed, executed });
    }

    /// Adds a notice to the transcript.
    pub(crate) fn notice(&self, turn: &TurnId, level: NoticeLevel, text: String, hint: Option<String>) {
        self.put_notice(turn, ItemBody::Notice { level, text, hint, kind: None });
    }

    /// Adds a notice to the transcript that says what it is about; an empty hint is none.
    pub(crate) fn notice_of(
        &self,
        kind: NoticeKind,
        turn: &TurnId,
        (level, text, hint): (NoticeLevel, &str, &str),
    ) {
        let hint = (!hint.is_empty()).then(|| hint.to_owned());
        let (text, kind) = (text.to_owned(), Some(kind));
        self.put_notice(turn, ItemBody::Notice { level, text, hint, kind });
    }

    fn put_notice(&self, turn: &TurnId, body: ItemBody) {
        let item = self.new_item(turn, body);
        self.commit(Record::Item { item, streamed: false });
    }
}
