//! The work of a sub-agent for one call.
//!
//! Rule: the call gets one result whatever happens, and nothing of the sub-agent runs after it. A sub-agent never has more
//! tools or rights than the conversation that called it, and its tokens are charged to the caller's turn.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::conversation::{Assignment, CarriedHooks, Conversation, WorkUsage, WorktreeIsolation};
use crate::core::Core;
use crate::core::thread::ThreadHandle;
use crate::hooks::carried::carried_for_agents;
use crate::state::thread::Thread;
use crate::turn::agent_slots::MAX_DEPTH;
use crate::turn::ending::seal;
use crate::turn::expand::expand_extension;
use crate::turn::pipeline::cancelled;
use crate::turn::resume::{PendingRequest, ResumePoint, is_left_open};
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use crate::turn::{self, TurnResult, guest, team};
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::ids::AgentId;
use kode_base::{blocking, reminder};
use kode_config::agents::{AgentType, notes};
use kode_config::extension::ExtensionKind;
use kode_config::hooks::declared::HOOKS_KEY;
use kode_config::hooks::event::HookEvent;
use kode_config::settings::TrustRequest;
use kode_model::models::Pointer;
use kode_model::{Block, Usage};
use kode_permission::equipment::Equipment;
use kode_process::outcome::Exit;
use kode_process::worktree::{Worktree, WorktreeError, WorktreeSpec};
use kode_record::event::{ItemBody, NoticeKind, NoticeLevel, TurnEnd, TurnOutcome};
use kode_record::options::TurnOptions;
use kode_record::record::{Record, TurnFigures};
use kode_tool::delegation::Delegation;
use kode_tool::names::SEND_MESSAGE;
use kode_tool::servers::McpServers;
use kode_tool::{ProgressReporter, ToolOutput};

/// The most model calls of a sub-agent for one call.
pub(crate) const AGENT_MODEL_CALL_LIMIT: u32 = 50;

/// Why a call has no result when its sub-agent could not be resumed.
const NOT_RESUMED: &str = "its sub-agent could not go on after the server had ended";

/// The note to a sub-agent that begins with a copy of its caller's conversation.
const FORKED: &str = "The messages above are the conversation of the agent that calls you, up to this call. You are its sub-agent and \
    have your own instructions: do the task below and no other task of the conversation, and answer once.";

/// The shortest time between two reports of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Runs a sub-agent to the end of its work. Boxed, for a sub-agent may call sub-agents.
pub(super) fn run<'a>(
    parent: TurnContext<'a>,
    call: &'a ModelToolCall,
    delegation: Delegation,
    progress: ProgressReporter,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
    run_as(parent, call, (delegation, AgentId::generate()), progress, cancel)
}

/// As [`run`]; a new sub-agent has the id `new`.
fn run_as<'a>(
    parent: TurnContext<'a>,
    call: &'a ModelToolCall,
    (delegation, new): (Delegation, AgentId),
    progress: ProgressReporter,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
    async move {
        // A sub-agent that is waited for waits for its own as well.
        if delegation.in_background && parent.conversation.is_main() && call.pending.is_none() {
            return start(parent, call, delegation).await;
        }
        let services = parent.services;
        let types = services.extensions.agent_types();
        let kind = types.find(&delegation.kind)?;
        if kind.runs.is_some() {
            guest::may_work(parent, &kind.name)?;
        }
        let (id, point) = match &call.pending {
            Some(PendingRequest::Agent(agent, point)) => (Some(agent.clone()), Some(point.as_ref().clone())),
            Some(PendingRequest::Permission(..) | PendingRequest::Question(_)) | None => (None, None),
        };
        if kind.runs.is_some() && point.is_some() {
            let message = format!("The guest `{}` has ended with the server.", kind.name);
            let hint = "Its changes so far are kept. Start it again for the remaining work, or do the rest yourself.";
            return Err(ToolError::new(ToolErrorKind::Failed, message, hint));
        }
        let id = id.or_else(|| delegation.resume.clone()).unwrap_or(new);
        let _at_work = services.agent_slots.begin(&id).ok_or_else(|| busy(&id))?;
        let _slot = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled()),
            slot = services.agent_slots.take(parent.conversation.depth()) => slot,
        };
        let servers = begin_servers(parent, kind, cancel).await;
        let work = AgentWork { call, kind, delegation: &delegation, id, servers: servers.as_deref() };
        let done = work.run(parent, point, progress, cancel).await;
        if let Some(servers) = &servers {
            servers.end().await;
        }
        done
    }
    .boxed()
}

/// Starts a sub-agent in the background: the call has its result at once, and the end of the work is reported like that of a
/// background command.
async fn start(
    parent: TurnContext<'_>,
    call: &ModelToolCall,
    delegation: Delegation,
) -> Result<ToolOutput, ToolError> {
    let services = Arc::clone(parent.services);
    let title = format!("{}: {}", delegation.kind, delegation.description);
    let (kind, own) = (delegation.kind.clone(), call.clone());
    let id = delegation.resume.clone().unwrap_or_else(AgentId::generate);
    let membership = team::join(&services.core, &id, &delegation)?;
    let name = membership.name().to_owned();
    // The equipment of this turn, above all its refusals, applies to the whole work.
    let carried = Equipment { model: None, effort: None, ..services.core.state().running.equipment.clone() };
    let delegation = Delegation { in_background: false, carried, ..delegation };
    let work = move |cancel: CancellationToken| async move {
        // Held to the end: with it the sub-agent leaves the team, however its work ends.
        let _membership = membership.begun();
        let conversation = services.main_conversation();
        let parent = TurnContext { services: &services, conversation: &conversation, id: &own.turn };
        match run_as(parent, &own, (delegation, id), Arc::new(drop), &cancel).await {
            Ok(output) => (Exit::Code(0), output.model_text),
            Err(error) => {
                let exit =
                    if error.kind == ToolErrorKind::Cancelled { Exit::Cancelled } else { Exit::Code(1) };
                (exit, format!("{} {}", error.message, error.hint))
            }
        }
    };
    let started = parent.services.environment.shell.start_work(call.id.clone(), title, work).await;
    let task = started.map_err(|error| {
        let hint =
            "Wait for one of them with BashOutput, end one with KillShell, or leave `run_in_background` out.";
        ToolError::new(ToolErrorKind::Failed, format!("No sub-agent was started: {error}."), hint)
    })?;
    let id = task.id();
    Ok(ToolOutput {
        model_text: format!(
            "A sub-agent works on it in the background as {id}. Continue without it: a message reports its end. BashOutput \
             with this id gives its answer, with `block` as soon as there is one; KillShell ends it. Its name is `{name}`: \
             SendMessage and WaitForMessage exchange messages with it, and TeamTasks keeps a list of tasks that all share."
        ),
        display: format!("In the background as {id}"),
        structured: Some(json!({ "type": kind, "taskId": id, "name": name })),
        ..ToolOutput::default()
    })
}

/// The work of a sub-agent.
struct AgentWork<'a> {
    call: &'a ModelToolCall,
    kind: &'a AgentType,
    delegation: &'a Delegation,
    id: AgentId,
    /// The servers that run for it alone.
    servers: Option<&'a dyn McpServers>,
}

impl AgentWork<'_> {
    /// Runs it to its end, from `point` on where it is resumed.
    async fn run(
        &self,
        parent: TurnContext<'_>,
        point: Option<ResumePoint>,
        progress: ProgressReporter,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let (id, kind) = (&self.call.turn, self.kind);
        let isolation = self.isolation(parent, point.is_some(), &progress, cancel).await?;
        let mut conversation = match self.conversation(parent, isolation.clone(), progress).await {
            Ok(conversation) => conversation,
            Err(error) => {
                self.end_isolation(parent, isolation.as_deref()).await;
                return Err(error);
            }
        };
        let services = parent.services;
        let beginning =
            beginning(TurnContext { services, conversation: &conversation, id }, kind, cancel).await;
        if let Some(assignment) = &mut conversation.assignment {
            assignment.prompt.push_str(&beginning);
            let said = self.servers.map(|servers| servers.instructions()).filter(|said| !said.is_empty());
            assignment.prompt.extend(said.map(|said| format!("\n\n{said}")));
            let note =
                isolation.as_ref().map(|isolation| isolation.worktree.reported(&isolation.workspace.cwd()));
            assignment.prompt.extend(note.map(|note| format!("\n\n{note}")));
            if conversation.tools.find(SEND_MESSAGE).is_some() {
                assignment.prompt.extend(team::note(&services.core, &self.id));
            }
        }
        let turn = TurnContext { services, conversation: &conversation, id };
        let mut around = String::new();
        let work = async {
            match point {
                Some(point) => turn::resume(turn, point, cancel).await,
                None => {
                    self.begin(turn, parent.conversation.agent());
                    services.hooks.subagent_start(&conversation, id, cancel).await;
                    let Some(program) = &kind.runs else { return turn::run(turn, cancel).await };
                    let prompt = self.prompt_of_guest(&conversation);
                    let done = guest::run(turn, (program, &kind.name), (self.call, prompt), cancel).await;
                    around = done.around;
                    done.turn
                }
            }
        };
        let outcome = AssertUnwindSafe(work).catch_unwind().await;
        let outcome = outcome.unwrap_or_else(|_| turn::failed(turn));
        parent.conversation.spend(outcome.spent);
        if is_left_open(turn, outcome.reason) {
            return Err(cancelled());
        }
        turn.commit(outcome.record(id));
        let left = self.end_isolation(parent, isolation.as_deref()).await;
        let result = match &kind.runs {
            Some(_) => result_of_guest(&conversation.thread, kind, (&self.id, &around), outcome),
            None => result(&conversation.thread, kind, &self.id, outcome),
        };
        match left {
            Some((text, data)) => with_worktree(result, &text, data),
            None => result,
        }
    }

    /// The worktree it works in, which is made where it is to have one of its own; `None` for the workspace itself.
    async fn isolation(
        &self,
        parent: TurnContext<'_>,
        is_resumed: bool,
        progress: &ProgressReporter,
        cancel: &CancellationToken,
    ) -> Result<Option<Arc<WorktreeIsolation>>, ToolError> {
        let services = parent.services;
        let (workspace, caller) = (&services.environment.workspace, parent.conversation.workspace());
        let place = |worktree| Some(Arc::new(WorktreeIsolation::new(workspace, caller, worktree)));
        let known = services.core.state().agents.get(&self.id).and_then(|agent| agent.worktree.clone());
        let was_isolated = known.is_some();
        match known {
            Some(worktree) if worktree.is_there().await => return Ok(place(worktree)),
            Some(worktree) if is_resumed => {
                let message = format!("The worktree `{}` of the sub-agent is gone.", worktree.path);
                let hint = "Start a new sub-agent for the remaining work.";
                return Err(ToolError::new(ToolErrorKind::NotFound, message, hint));
            }
            Some(_) | None => {}
        }
        let is_wanted = self.delegation.is_isolated || self.kind.is_isolated || was_isolated;
        if is_resumed || !is_wanted {
            return Ok(parent.conversation.isolation().cloned());
        }
        progress("Making a git worktree".to_owned());
        let sandbox = services.gate.in_force().policy.sandbox.clone();
        let making = WorktreeSpec {
            shell: &services.environment.shell,
            sandbox: sandbox.as_ref(),
            may_run_foreign: self.delegation.may_run_foreign,
            folder: &services.worktrees,
            cwd: &caller.cwd(),
        };
        let made = Worktree::make(making, self.id.as_str(), cancel).await;
        made.map(place).map_err(|error| {
            let hint = match &error {
                WorktreeError::NoRepository { .. } => {
                    "Worktrees need a git repository with a commit. Use another type of agent, or do the work yourself."
                }
                WorktreeError::NotPlain { .. } => {
                    "Call it with Task, so that the user is asked, or use another type of agent."
                }
                WorktreeError::Failed { .. } => "Use another type of agent, or do the work yourself.",
            };
            ToolError::new(ToolErrorKind::Failed, format!("The sub-agent did not begin: {error}."), hint)
        })
    }

    /// Removes the worktree that was made for it, if it has no changes, and returns the outcome.
    async fn end_isolation(
        &self,
        parent: TurnContext<'_>,
        isolation: Option<&WorktreeIsolation>,
    ) -> Option<(String, Value)> {
        let worktree = &isolation.filter(|isolation| isolation.worktree.is_of(&self.id))?.worktree;
        let services = parent.services;
        let sandbox = services.gate.in_force().policy.sandbox.clone();
        let left = worktree.finish(&services.environment.shell, sandbox.as_ref()).await;
        Some(worktree.report(&left))
    }

    /// The conversation of the sub-agent.
    async fn conversation(
        &self,
        parent: TurnContext<'_>,
        isolation: Option<Arc<WorktreeIsolation>>,
        progress: ProgressReporter,
    ) -> Result<Conversation, ToolError> {
        let (kind, id, services) = (self.kind, &self.id, parent.services);
        let caller = parent.conversation;
        let depth = caller.depth() + 1;
        let own: Vec<_> = self.servers.map(|servers| servers.own_tools()).unwrap_or_default();
        let own_tools = own.iter().map(|tool| tool.facts().name).collect();
        let tools = caller.tools_for_agents().with(own).for_agent(kind, depth < MAX_DEPTH)?;
        // A project's file may name a model of another provider, or one that costs more.
        let waiting = services.gate.unapproved(kind.trust_requests.clone()).await;
        report_waiting_hooks(parent, kind, &waiting);
        let chosen = services.models.chosen(kind.model.as_deref(), kind.effort, &waiting);
        let known = services.core.state().agents.get(id).and_then(|agent| agent.model.clone());
        let model = match &self.delegation.model {
            Some(named) => Some(services.models.named(named).map_err(|error| {
                let hint = "Leave `model` out to use the type's own.";
                ToolError::new(ToolErrorKind::InvalidInput, error.to_string(), hint)
            })?),
            // A file may name a model that is not there: it is then that of the session.
            None => known.or_else(|| chosen.model?.ok()).or_else(|| {
                // Where no setting names a model for sub-agents, they have that of the session.
                let task = services.models.pointer(Pointer::Task);
                (kind.file.is_none() && task != services.models.now().default_name()).then_some(task)
            }),
        };
        let own = kind.hooks.clone().map(|hooks| CarriedHooks { hooks, is_of_agent: true });
        let hooks = carried_for_agents(caller).into_iter().chain(own).collect();
        let mut inherited = caller.equipment();
        inherited.take(self.delegation.carried.clone());
        let limit = kind.max_turns.map_or(AGENT_MODEL_CALL_LIMIT, |turns| turns.min(AGENT_MODEL_CALL_LIMIT));
        let assignment = Assignment {
            kind: kind.name.clone(),
            prompt: kind.prompt.clone(),
            mode: match (kind.mode, caller.mode_limit()) {
                (Some(mode), Some(limit)) => Some(limit.within(mode)),
                (mode, limit) => mode.or(limit),
            },
            model: model.or_else(|| caller.assignment.as_ref()?.model.clone()),
            effort: chosen.effort.or_else(|| caller.assignment.as_ref()?.effort),
            inherited,
            own_tools,
            hooks,
            isolation,
            depth,
            progress: call_counter(progress),
        };
        let (core, environment) = (&services.core, &services.environment);
        Ok(Conversation::of_agent(core, environment, id.clone(), (tools, limit), assignment))
    }

    /// The task of a guest: the text of its type, and what it is to do.
    fn prompt_of_guest(&self, conversation: &Conversation) -> String {
        let of_type = conversation.assignment.as_ref().map(|assignment| assignment.prompt.trim());
        match of_type.filter(|text| !text.is_empty()) {
            Some(text) => format!("{text}\n\n{}", self.delegation.prompt),
            None => self.delegation.prompt.clone(),
        }
    }

    /// Records the beginning: the sub-agent, its knowledge of the caller's conversation, and its task.
    fn begin(&self, turn: TurnContext<'_>, parent: Option<&AgentId>) {
        let Self { call, kind, delegation, .. } = self;
        let conversation = turn.conversation;
        turn.services.core.commit(Record::Delegated {
            agent: self.id.clone(),
            turn: call.turn.clone(),
            call: call.id.clone(),
            kind: kind.name.clone(),
            description: delegation.description.clone(),
            model: conversation.assignment.as_ref().and_then(|assignment| assignment.model.clone()),
            worktree: conversation.isolation().map(|isolation| isolation.worktree.clone()),
        });
        let text = delegation.prompt.clone();
        let item = turn.new_item(ItemBody::user_message(text.clone()));
        let mut content = vec![Block::Text { text }];
        // A resumed sub-agent knows its beginning.
        if kind.fork_context && delegation.resume.is_none() {
            turn.commit(Record::Begun { copies: parent.cloned() });
            content.insert(0, Block::Text { text: reminder(FORKED) });
        }
        let (id, parts, options) = (call.turn.clone(), Vec::new(), TurnOptions::default());
        turn.commit(Record::Prompt { turn: id, queued: None, item, content, parts, options });
    }
}

/// Ends the sub-agent of a resumed call that did not continue, after the sub-agents that it called.
pub(super) fn give_up(core: &Arc<Core>, call: &ModelToolCall) {
    let Some(PendingRequest::Agent(agent, point)) = &call.pending else { return };
    let usage = {
        let state = core.state();
        let at_work = state.agents.get(agent).filter(|agent| agent.turn.as_ref() == Some(&call.turn));
        at_work.map(|agent| agent.charged)
    };
    let Some(usage) = usage else { return };
    match point.as_ref() {
        ResumePoint::Calls(calls) => calls.iter().for_each(|call| give_up(core, call)),
        ResumePoint::Limit(_) => {}
    }
    let thread = ThreadHandle::of_agent(core, agent.clone());
    seal(&thread, NOT_RESUMED);
    let (turn, reason, figures) = (call.turn.clone(), TurnEnd::Error, TurnFigures::default());
    thread.commit(Record::TurnEnded { turn, reason, usage, figures });
}

/// Starts the servers that the file of a type describes and waits until they run or cannot. Notifies the user of servers
/// that the type names and the sub-agent does without.
async fn begin_servers(
    parent: TurnContext<'_>,
    kind: &AgentType,
    cancel: &CancellationToken,
) -> Option<Arc<dyn McpServers>> {
    let of_session = parent.services.servers.all();
    let own = kind.own_servers.clone().map(|file| of_session.of_file(file));
    if let Some(own) = &own {
        own.begin().await;
        tokio::select! {
            () = own.settled(own.start_limit()) => {}
            () = cancel.cancelled() => {}
        }
    }
    let all: Vec<&Arc<dyn McpServers>> = own.iter().chain([of_session]).collect();
    for name in &kind.servers {
        let absence = match all.iter().find_map(|servers| servers.info(name).ok()) {
            Some(server) => server.absence(),
            None => Some("there is no such server".to_owned()),
        };
        if let Some(absence) = absence {
            let text = format!("The agent `{}` does without the MCP server `{name}`: {absence}.", kind.name);
            let hint = "`/mcp` lists the servers of the settings.".to_owned();
            parent.notice(NoticeLevel::Warning, text, Some(hint));
        }
    }
    own
}

/// Notifies the user, once in a turn, of hooks of a type that wait for approval.
fn report_waiting_hooks(parent: TurnContext<'_>, kind: &AgentType, waiting: &[TrustRequest]) {
    let (Some(file), true) =
        (&kind.file, waiting.iter().any(|trust_request| trust_request.key.starts_with(HOOKS_KEY)))
    else {
        return;
    };
    let text = format!("Hooks of the agent `{}` wait for your approval and do not run: {file}.", kind.name);
    if parent.services.hooks.is_news(parent.id, HookEvent::SubagentStart, &text) {
        let hint = "`/trust` shows and approves what they run.";
        let main = ThreadHandle::main(&parent.services.core);
        main.notice_of(NoticeKind::Hook, parent.id, (NoticeLevel::Warning, &text, hint));
    }
}

/// The text behind the prompt of a type: its skills and its notes.
async fn beginning(turn: TurnContext<'_>, kind: &AgentType, cancel: &CancellationToken) -> String {
    let (services, mut text) = (turn.services, String::new());
    let catalog = services.extensions.catalog();
    for name in &kind.skills {
        let expanded = match catalog.find(ExtensionKind::Skill, name) {
            Some(skill) => expand_extension(turn, skill, "", cancel).await,
            None => Err("there is no such skill".to_owned()),
        };
        match expanded {
            Ok(expanded) => text.push_str(&format!("\n\n# Skill {}", expanded.text)),
            Err(reason) => {
                tracing::warn!(skill = name, agent = kind.name, reason, "a sub-agent begins without a skill");
                text.push_str(&format!("\n\nThe skill {name} cannot be given to you: {reason}."));
            }
        }
    }
    if kind.memory.is_some() {
        let (kind, workspace) = (kind.clone(), Arc::clone(&services.environment.workspace));
        let notes = blocking(move || {
            let project = workspace.roots().first().cloned().unwrap_or_else(|| workspace.cwd());
            notes::reported(&kind, &project)
        });
        if let Some(notes) = notes.await {
            text.push_str(&format!("\n\n# Notes\n{notes}"));
        }
    }
    text
}

/// The result of the call: the last output of the sub-agent, and how to resume it.
fn result(
    thread: &ThreadHandle,
    kind: &AgentType,
    id: &AgentId,
    ended: TurnResult,
) -> Result<ToolOutput, ToolError> {
    let WorkUsage { usage, model_calls, tool_calls } = ended.spent;
    let answer = thread.read(Thread::turn_answer);
    let structured = json!({
        "agentId": id, "type": kind.name, "stopReason": ended.reason, "usage": usage,
        "modelCalls": model_calls, "toolCalls": tool_calls,
    });
    let why = match ended.reason {
        TurnEnd::EndTurn => {
            let said = if answer.is_empty() { "(The sub-agent ended without an answer.)" } else { &answer };
            let (calls, tokens) = (counted(tool_calls, "tool call"), counted(tokens(usage), "token"));
            return Ok(ToolOutput {
                model_text: format!(
                    "{said}\n\n[{id}: {calls}, {tokens}. Pass this id as `resume` to go on.]"
                ),
                display: format!("{calls}, {tokens}"),
                structured: Some(structured),
                ..ToolOutput::default()
            });
        }
        TurnEnd::Cancelled => "was cancelled by the user".to_owned(),
        TurnEnd::MaxTokens => "was cut off by its token limit".to_owned(),
        TurnEnd::MaxTurns => {
            format!("stopped after {}", counted(model_calls, "model call"))
        }
        TurnEnd::Budget => "stopped because the budget of the turn is used up".to_owned(),
        TurnEnd::Repetition => "made the same call over and over".to_owned(),
        TurnEnd::IncompleteIntent => "only announced what it was going to do".to_owned(),
        TurnEnd::NotChosen | TurnEnd::ChatDisabled => "was not asked".to_owned(),
        TurnEnd::Hook => "was stopped by a hook".to_owned(),
        TurnEnd::Refusal => "declined to answer".to_owned(),
        TurnEnd::Error => {
            format!("failed: {}", ended.failure.as_deref().unwrap_or("a fault in kode-ls itself"))
        }
    };
    let (kind_of, hint) = match ended.reason.outcome() {
        TurnOutcome::Cancelled => (ToolErrorKind::Cancelled, "Do not repeat it unless asked to."),
        TurnOutcome::Done | TurnOutcome::Unfinished => {
            (ToolErrorKind::Failed, "Pass its id as `resume` to let it go on, or do the rest yourself.")
        }
    };
    let partial = if answer.is_empty() { String::new() } else { format!("\nIts last output:\n{answer}") };
    let message = format!("The sub-agent {id} {why}.{partial}");
    Err(ToolError { structured: Some(Box::new(structured)), ..ToolError::new(kind_of, message, hint) })
}

/// The result of the call of a guest: its last output, and the files that it changed itself.
fn result_of_guest(
    thread: &ThreadHandle,
    kind: &AgentType,
    (id, around): (&AgentId, &str),
    ended: TurnResult,
) -> Result<ToolOutput, ToolError> {
    let answer = thread.read(Thread::turn_answer);
    let structured = json!({
        "agentId": id, "type": kind.name, "stopReason": ended.reason, "guest": true,
    });
    let note = if around.is_empty() { String::new() } else { format!("\n\n[{around}]") };
    let why = match ended.reason {
        TurnEnd::EndTurn => {
            let said = if answer.is_empty() { "(The guest ended without an answer.)" } else { &answer };
            return Ok(ToolOutput {
                model_text: format!("{said}{note}"),
                display: format!("The guest {} has ended", kind.name),
                structured: Some(structured),
                ..ToolOutput::default()
            });
        }
        TurnEnd::Cancelled => "was cancelled".to_owned(),
        TurnEnd::MaxTokens => "was cut off by its token limit".to_owned(),
        TurnEnd::Refusal => "declined to answer".to_owned(),
        TurnEnd::Error => match &ended.failure {
            Some(failure) => format!("failed: {failure}"),
            None => "failed because of a fault in kode-ls itself".to_owned(),
        },
        _ => "stopped at its own limit".to_owned(),
    };
    let error_kind = match ended.reason.outcome() {
        TurnOutcome::Cancelled => ToolErrorKind::Cancelled,
        TurnOutcome::Done | TurnOutcome::Unfinished => ToolErrorKind::Failed,
    };
    let partial = if answer.is_empty() { String::new() } else { format!("\nIts last output:\n{answer}") };
    let message = format!("The guest `{}` {why}.{partial}{note}", kind.name);
    let hint = "A guest cannot be resumed: start it again for the remaining work, or do the rest yourself.";
    Err(ToolError { structured: Some(Box::new(structured)), ..ToolError::new(error_kind, message, hint) })
}

/// The result with the outcome of the sub-agent's worktree.
fn with_worktree(
    result: Result<ToolOutput, ToolError>,
    text: &str,
    data: Value,
) -> Result<ToolOutput, ToolError> {
    match result {
        Ok(mut output) => {
            output.model_text.push_str(&format!("\n\n[{text}]"));
            if let Some(structured) = &mut output.structured {
                structured["worktree"] = data;
            }
            Ok(output)
        }
        Err(mut error) => {
            error.message.push_str(&format!("\n[{text}]"));
            if let Some(structured) = error.structured.as_deref_mut() {
                structured["worktree"] = data;
            }
            Err(error)
        }
    }
}

fn busy(id: &AgentId) -> ToolError {
    let message = format!("The sub-agent {id} works for another call.");
    ToolError::new(ToolErrorKind::Failed, message, "Wait for its result first.")
}

/// Reports the number of begun calls and the title of the last one, at most every [`PROGRESS_INTERVAL`].
fn call_counter(progress: ProgressReporter) -> Box<dyn Fn(&str) + Send + Sync> {
    let state = Mutex::new((0_u32, None::<Instant>));
    Box::new(move |title| {
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, last) = &mut *state;
        *count += 1;
        let now = Instant::now();
        if last.is_none_or(|last| now.duration_since(last) >= PROGRESS_INTERVAL) {
            *last = Some(now);
            progress(format!("{} · {title}", counted(*count, "tool")));
        }
    })
}

fn tokens(usage: Usage) -> u64 {
    usage.input_tokens + usage.output_tokens + usage.cache_read_tokens + usage.cache_write_tokens
}

fn counted(number: impl Into<u64>, what: &str) -> String {
    match number.into() {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}
