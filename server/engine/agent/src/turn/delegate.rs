//! What a sub-agent does for one call.
//!
//! Rule: the call gets one result whatever happens, and when it has it nothing of the sub-agent runs any more; a
//! sub-agent never has more tools or rights than the conversation that called it, and its tokens count to its turn.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::hooks::brought::Brought;
use crate::session::agents::MAX_DEPTH;
use crate::session::conversation::{Assignment, Conversation};
use crate::session::isolated::Isolated;
use crate::session::thread::Thread;
use crate::turn::ending::seal;
use crate::turn::pipeline::cancelled;
use crate::turn::sample::Call;
use crate::turn::taken_up::Again;
use crate::turn::{self, Ended, Spent, TakenUp, is_left_open};
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::ids::{AgentId, TurnId};
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
use kode_tool::servers::McpServers;
use kode_tool::{ProgressReporter, ToolOutput};

/// The most model calls of a sub-agent for one call.
pub(crate) const AGENT_MODEL_CALL_LIMIT: u32 = 50;

/// Why a call has no result when its sub-agent could not go on.
const NOT_TAKEN_UP: &str = "its sub-agent could not go on after the server had ended";

/// What a sub-agent is told that begins with a copy of the conversation that calls it.
const FORKED: &str = "What stands above is the conversation of the agent that calls you, up to this call. You are its sub-agent and \
    have your own instructions: do the task below and nothing else of what was asked for above, and answer once.";

/// Progress is told so often at most.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

/// Runs a sub-agent to the end of its work. Boxed, for a sub-agent may call sub-agents.
pub(super) fn run<'a>(
    parent: &'a Conversation<'a>,
    call: &'a Call,
    delegation: Delegation,
    progress: ProgressReporter,
    cancel: &'a CancellationToken,
) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
    async move {
        // Who is waited for waits as well.
        if delegation.in_background && parent.agent.is_none() && call.again.is_none() {
            return start(parent, call, delegation).await;
        }
        let types = parent.session.agents.types();
        let kind = types.find(&delegation.kind)?;
        let again = match &call.again {
            Some(Again::Agent(agent, taken_up)) => Some((agent.clone(), taken_up.as_ref().clone())),
            Some(Again::Permission(..) | Again::Question(_)) | None => None,
        };
        let (id, again) = again.map_or((None, None), |(agent, taken_up)| (Some(agent), Some(taken_up)));
        let id = id.or_else(|| delegation.resume.clone()).unwrap_or_else(AgentId::generate);
        let agents = &parent.session.agents;
        let _at_work = agents.begin(&id).ok_or_else(|| busy(&id))?;
        let _place = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled()),
            place = agents.place(parent.depth()) => place,
        };
        let servers = begin_servers(parent, &call.turn, kind, cancel).await;
        let work = Work { call, kind, delegation: &delegation, id, servers: servers.as_deref() };
        let done = work.run(parent, again, progress, cancel).await;
        if let Some(servers) = &servers {
            servers.end().await;
        }
        done
    }
    .boxed()
}

/// Has a sub-agent work in the background: the call has its result at once, and what comes of the work is told as that of a
/// command in the background.
async fn start(
    parent: &Conversation<'_>,
    call: &Call,
    delegation: Delegation,
) -> Result<ToolOutput, ToolError> {
    let session = parent.session.shared().ok_or_else(cancelled)?;
    let title = format!("{}: {}", delegation.kind, delegation.description);
    let (kind, own) = (delegation.kind.clone(), call.clone());
    // What counts in this turn counts for its work to the end, above all what is not to run.
    let carried = Equipment { model: None, effort: None, ..session.state().equipment.clone() };
    let delegation = Delegation { in_background: false, carried, ..delegation };
    let work = move |cancel: CancellationToken| async move {
        let parent = Conversation::main(&session);
        match run(&parent, &own, delegation, Arc::new(drop), &cancel).await {
            Ok(output) => (Exit::Code(0), output.model_text),
            Err(error) => {
                let exit =
                    if error.kind == ToolErrorKind::Cancelled { Exit::Cancelled } else { Exit::Code(1) };
                (exit, format!("{} {}", error.message, error.hint))
            }
        }
    };
    let started = parent.session.shell.start_work(call.id.clone(), title, work).await;
    let task = started.map_err(|error| {
        let hint =
            "Wait for one of them with BashOutput, end one with KillShell, or leave `run_in_background` out.";
        ToolError::new(ToolErrorKind::Failed, format!("No sub-agent was started: {error}."), hint)
    })?;
    let id = task.id();
    Ok(ToolOutput {
        model_text: format!(
            "A sub-agent works on it in the background as {id}. Go on without it: you are told when it has ended. BashOutput \
             with this id gives its answer, with `block` as soon as there is one; KillShell ends it."
        ),
        display: format!("In the background as {id}"),
        structured: Some(json!({ "type": kind, "taskId": id })),
        ..ToolOutput::default()
    })
}

/// What a sub-agent is to do.
struct Work<'a> {
    call: &'a Call,
    kind: &'a AgentType,
    delegation: &'a Delegation,
    id: AgentId,
    /// The servers that run for it alone.
    servers: Option<&'a dyn McpServers>,
}

impl Work<'_> {
    /// Has it done to its end; `again`: from where it was when the server ended.
    async fn run(
        &self,
        parent: &Conversation<'_>,
        again: Option<TakenUp>,
        progress: ProgressReporter,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, ToolError> {
        let (turn, kind) = (&self.call.turn, self.kind);
        let isolated = self.isolated(parent, again.is_some(), &progress, cancel).await?;
        let mut conversation = match self.conversation(parent, isolated.clone(), progress).await {
            Ok(conversation) => conversation,
            Err(error) => {
                self.end_isolation(parent, isolated.as_deref()).await;
                return Err(error);
            }
        };
        let beginning = beginning(&conversation, self.call, kind, cancel).await;
        if let Some(assignment) = &mut conversation.assignment {
            assignment.prompt.push_str(&beginning);
            let said = self.servers.map(|servers| servers.instructions()).filter(|said| !said.is_empty());
            assignment.prompt.extend(said.map(|said| format!("\n\n{said}")));
            let told = isolated.as_ref().map(|isolated| isolated.worktree.told(&isolated.workspace.cwd()));
            assignment.prompt.extend(told.map(|told| format!("\n\n{told}")));
        }
        let work = async {
            match again {
                Some(taken_up) => turn::go_on(&conversation, turn, taken_up, cancel).await,
                None => {
                    self.begin(&conversation, parent.agent.as_ref());
                    conversation.fire_subagent_start(turn, cancel).await;
                    turn::run(&conversation, turn, cancel).await
                }
            }
        };
        let ended = AssertUnwindSafe(work).catch_unwind().await;
        let ended = ended.unwrap_or_else(|_| turn::failed(&conversation, turn));
        parent.spend(ended.spent);
        if is_left_open(&conversation, turn, ended.reason) {
            return Err(cancelled());
        }
        conversation.commit(ended.record(turn));
        let left = self.end_isolation(parent, isolated.as_deref()).await;
        let result = result(&conversation, kind, &self.id, ended);
        match left {
            Some((text, data)) => told_of(result, &text, data),
            None => result,
        }
    }

    /// The worktree it works in, which is made where it is to have one of its own; `None` for the workspace itself.
    async fn isolated(
        &self,
        parent: &Conversation<'_>,
        is_taken_up: bool,
        progress: &ProgressReporter,
        cancel: &CancellationToken,
    ) -> Result<Option<Arc<Isolated>>, ToolError> {
        let session = parent.session;
        let place = |worktree| Some(Arc::new(Isolated::new(session, parent.workspace(), worktree)));
        let known = session.state().agents.get(&self.id).and_then(|agent| agent.worktree.clone());
        let was_isolated = known.is_some();
        match known {
            Some(worktree) if worktree.is_there().await => return Ok(place(worktree)),
            Some(worktree) if is_taken_up => {
                let message = format!("The worktree `{}` of the sub-agent is gone.", worktree.path);
                let hint = "Begin a new sub-agent for what is left to do.";
                return Err(ToolError::new(ToolErrorKind::NotFound, message, hint));
            }
            Some(_) | None => {}
        }
        let is_wanted = self.delegation.is_isolated || self.kind.is_isolated || was_isolated;
        if is_taken_up || !is_wanted {
            return Ok(parent.isolated().cloned());
        }
        progress("Making a git worktree".to_owned());
        let sandbox = session.in_force().policy.sandbox.clone();
        let making = WorktreeSpec {
            shell: &session.shell,
            sandbox: sandbox.as_ref(),
            may_run_foreign: self.delegation.may_run_foreign,
            folder: &session.worktrees,
            cwd: &parent.workspace().cwd(),
        };
        let made = Worktree::make(making, &self.id, cancel).await;
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

    /// Removes the worktree that was made for it, if nothing came of it, and says what became of it.
    async fn end_isolation(
        &self,
        parent: &Conversation<'_>,
        isolated: Option<&Isolated>,
    ) -> Option<(String, Value)> {
        let worktree = &isolated.filter(|isolated| isolated.worktree.is_of(&self.id))?.worktree;
        let session = parent.session;
        let sandbox = session.in_force().policy.sandbox.clone();
        let left = worktree.finish(&session.shell, sandbox.as_ref()).await;
        Some(worktree.report(&left))
    }

    /// The conversation in which it is done.
    async fn conversation<'a>(
        &self,
        parent: &Conversation<'a>,
        isolated: Option<Arc<Isolated>>,
        progress: ProgressReporter,
    ) -> Result<Conversation<'a>, ToolError> {
        let (kind, id) = (self.kind, &self.id);
        let depth = parent.depth() + 1;
        let own: Vec<_> = self.servers.map(|servers| servers.own_tools()).unwrap_or_default();
        let own_tools = own.iter().map(|tool| tool.facts().name).collect();
        let tools = parent.tools_for_agents().with(own).for_agent(kind, depth < MAX_DEPTH)?;
        // A project's file may name a model of another provider, or one that costs more.
        let waiting = parent.session.unapproved(kind.wishes.clone()).await;
        tell_waiting_hooks(parent, kind, &self.call.turn, &waiting);
        let chosen = parent.session.chosen(kind.model.as_deref(), kind.effort, &waiting);
        let known = parent.session.state().agents.get(id).and_then(|agent| agent.model.clone());
        let model = match &self.delegation.model {
            Some(named) => Some(parent.session.model_named(named).map_err(|error| {
                let hint = "Leave `model` out to use the type's own.";
                ToolError::new(ToolErrorKind::InvalidInput, error.to_string(), hint)
            })?),
            // A file may name a model that is not there: it is then that of the session.
            None => known.or_else(|| chosen.model?.ok()).or_else(|| {
                // Where nothing is said about sub-agents, they have the model of the session.
                let task = parent.session.pointer(Pointer::Task);
                (kind.file.is_none() && task != parent.session.models().default_name()).then_some(task)
            }),
        };
        let own = kind.hooks.clone().map(|hooks| Brought { hooks, is_of_agent: true });
        let hooks = parent.hooks_for_agents().into_iter().chain(own).collect();
        let mut inherited = parent.equipment();
        inherited.take(self.delegation.carried.clone());
        let limit = kind.max_turns.map_or(AGENT_MODEL_CALL_LIMIT, |turns| turns.min(AGENT_MODEL_CALL_LIMIT));
        let assignment = Assignment {
            kind: kind.name.clone(),
            prompt: kind.prompt.clone(),
            mode: match (kind.mode, parent.mode_limit()) {
                (Some(mode), Some(limit)) => Some(limit.within(mode)),
                (mode, limit) => mode.or(limit),
            },
            model: model.or_else(|| parent.assignment.as_ref()?.model.clone()),
            effort: chosen.effort.or_else(|| parent.assignment.as_ref()?.effort),
            inherited,
            own_tools,
            hooks,
            isolated,
            depth,
            tell: teller(progress),
        };
        Ok(Conversation::of_assignment(parent.session, id.clone(), tools, limit, assignment))
    }

    /// Writes the beginning: that there is the sub-agent, what it knows of what was said to whoever calls it, and what it is
    /// asked.
    fn begin(&self, conversation: &Conversation<'_>, parent: Option<&AgentId>) {
        let Self { call, kind, delegation, .. } = self;
        let record = Record::Delegated {
            agent: self.id.clone(),
            turn: call.turn.clone(),
            call: call.id.clone(),
            kind: kind.name.clone(),
            description: delegation.description.clone(),
            model: conversation.assignment.as_ref().and_then(|assignment| assignment.model.clone()),
            worktree: conversation.isolated().map(|isolated| isolated.worktree.clone()),
        };
        conversation.session.commit(record);
        let text = delegation.prompt.clone();
        let item = conversation.new_item(&call.turn, ItemBody::user_message(text.clone()));
        let mut content = vec![Block::Text { text }];
        // One that goes on knows what it began with.
        if kind.fork_context && delegation.resume.is_none() {
            conversation.commit(Record::Begun { copies: parent.cloned() });
            content.insert(0, Block::Text { text: reminder(FORKED) });
        }
        let (turn, parts) = (call.turn.clone(), Vec::new());
        let options = TurnOptions::default();
        conversation.commit(Record::Prompt { turn, queued: None, item, content, parts, options });
    }
}

/// Ends the sub-agent of a call that was taken up, where it did not come to go on, after those that it called.
pub(super) fn give_up(parent: &Conversation<'_>, call: &Call) {
    let Some(Again::Agent(agent, taken_up)) = &call.again else { return };
    let usage = {
        let state = parent.session.state();
        let at_work = state.agents.get(agent).filter(|agent| agent.turn.as_ref() == Some(&call.turn));
        at_work.map(|agent| agent.charged)
    };
    let Some(usage) = usage else { return };
    let conversation = Conversation::of_agent(parent.session, agent.clone());
    match taken_up.as_ref() {
        TakenUp::Calls(calls) => calls.iter().for_each(|call| give_up(&conversation, call)),
        TakenUp::Limit(_) => {}
    }
    seal(&conversation, NOT_TAKEN_UP);
    let (turn, reason, figures) = (call.turn.clone(), TurnEnd::Error, TurnFigures::default());
    conversation.commit(Record::TurnEnded { turn, reason, usage, figures });
}

/// Starts the servers that the file of a type describes and waits until they are there or cannot be. Tells the user which
/// servers that it names a sub-agent of it has to do without.
async fn begin_servers(
    parent: &Conversation<'_>,
    turn: &TurnId,
    kind: &AgentType,
    cancel: &CancellationToken,
) -> Option<Arc<dyn McpServers>> {
    let of_session = parent.session.servers();
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
            parent.notice(
                turn,
                NoticeLevel::Warning,
                text,
                Some("`/mcp` lists the servers of the settings.".to_owned()),
            );
        }
    }
    own
}

/// Tells the user, once in a turn, that hooks of a type wait for their approval.
fn tell_waiting_hooks(parent: &Conversation<'_>, kind: &AgentType, turn: &TurnId, waiting: &[TrustRequest]) {
    let (Some(file), true) = (&kind.file, waiting.iter().any(|wish| wish.key.starts_with(HOOKS_KEY))) else {
        return;
    };
    let text = format!("Hooks of the agent `{}` wait for your approval and do not run: {file}.", kind.name);
    if parent.session.hooks.is_news(turn, HookEvent::SubagentStart, &text) {
        let main = Conversation::main(parent.session);
        let hint = "`/trust` shows and approves what they run.";
        main.notice_of(NoticeKind::Hook, turn, (NoticeLevel::Warning, &text, hint));
    }
}

/// What stands behind the prompt of its type: the skills that it begins with, and its notes.
async fn beginning(
    conversation: &Conversation<'_>,
    call: &Call,
    kind: &AgentType,
    cancel: &CancellationToken,
) -> String {
    let (session, mut text) = (conversation.session, String::new());
    let catalog = session.catalog();
    for name in &kind.skills {
        let expanded = match catalog.find(ExtensionKind::Skill, name) {
            Some(skill) => session.expand(conversation, &call.turn, skill, "", cancel).await,
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
        let (kind, workspace) = (kind.clone(), Arc::clone(&session.workspace));
        let told = blocking(move || {
            let project = workspace.roots().first().cloned().unwrap_or_else(|| workspace.cwd());
            notes::told(&kind, &project)
        });
        if let Some(notes) = told.await {
            text.push_str(&format!("\n\n# Notes\n{notes}"));
        }
    }
    text
}

/// The call's result: the last words, and how to go on.
fn result(
    conversation: &Conversation<'_>,
    kind: &AgentType,
    id: &AgentId,
    ended: Ended,
) -> Result<ToolOutput, ToolError> {
    let Spent { usage, model_calls, tool_calls } = ended.spent;
    let answer = conversation.read(Thread::turn_answer);
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
    let partial = if answer.is_empty() { String::new() } else { format!("\nIts last words:\n{answer}") };
    let message = format!("The sub-agent {id} {why}.{partial}");
    Err(ToolError { structured: Some(Box::new(structured)), ..ToolError::new(kind_of, message, hint) })
}

/// The result with what became of the sub-agent's worktree.
fn told_of(result: Result<ToolOutput, ToolError>, text: &str, data: Value) -> Result<ToolOutput, ToolError> {
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

/// Tells the call what its sub-agent begins to do, not too often.
fn teller(progress: ProgressReporter) -> Box<dyn Fn(&str) + Send + Sync> {
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
