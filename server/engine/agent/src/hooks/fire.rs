//! Running the hooks of an event: side by side, with one combined reply.
//!
//! Rule: without a hook for an event nothing is read and nothing waits. Each run is published as an event; the user is
//! notified of a problem once in a turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::HookRunner;
use super::combine::{HandlerReply, combine};
use super::list::LastRun;
use super::output::{HandlerExit, HandlerOutput, HandlerRun, HookChoice, PermissionAnswer, read};
use super::run::HookCommand;
use super::{MAX_TEXT, http, prompt, transcript};
use crate::conversation::Conversation;
use crate::core::lock;
use kode_base::blocking;
use kode_base::ids::TurnId;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_base::task;
use kode_config::hooks::config::{HookAction, HookHandler};
use kode_config::hooks::event::HookEvent;
use kode_config::hooks::matcher::MatchSubject;
use kode_config::in_force::EffectivePolicy;
use kode_permission::gate::GateCase;
use kode_process::outcome::Exit;
use kode_record::event::{Event, NoticeKind, NoticeLevel};
use kode_record::hook::HookOutcome;

/// Why a hook did not run that was approved when its event began.
const CHANGED: &str = "it, or a script it names, was changed before it ran, and waits for your approval";

/// An event at which hooks may run.
#[derive(Clone)]
pub(crate) struct HookTrigger<'a> {
    pub(crate) event: HookEvent,
    /// The value that matchers are compared with.
    pub(crate) value: Option<&'a str>,
    /// The fields of this event.
    pub(crate) fields: Map<String, Value>,
    pub(crate) call: Option<&'a GateCase<'a>>,
    /// The turn, where one runs.
    pub(crate) turn: Option<&'a TurnId>,
    /// The most time, whatever the timeouts of handlers.
    pub(crate) limit: Option<Duration>,
}

/// The combined reply of the hooks of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HookReply {
    /// The number of hooks that ran.
    pub(crate) ran: usize,
    pub(crate) choice: Option<(HookChoice, String)>,
    /// Why the event is blocked.
    pub(crate) block: Option<String>,
    pub(crate) updated_input: Option<Value>,
    pub(crate) updated_output: Option<Value>,
    /// Texts for the model, each of bounded length.
    pub(crate) context: Vec<String>,
    /// Why the turn stops.
    pub(crate) stop: Option<String>,
    pub(crate) permission: Option<PermissionAnswer>,
    pub(crate) permission_is_of_workspace: bool,
    pub(crate) session_title: Option<String>,
    pub(crate) initial_message: Option<String>,
    /// Messages for the user.
    pub(super) messages: Vec<String>,
    pub(super) problems: Vec<String>,
}

impl<'a> HookTrigger<'a> {
    /// An event without a call.
    pub(crate) fn new(event: HookEvent, turn: Option<&'a TurnId>, fields: Value) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Self { event, value: None, fields, call: None, turn, limit: None }
    }
}

impl HookReply {
    /// The texts that are put into a conversation or shown.
    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let answer = self.permission.as_mut().and_then(|answer| answer.message.as_mut());
        let choice = self.choice.as_mut().map(|(_, reason)| reason);
        let single = [self.block.as_mut(), self.stop.as_mut(), self.initial_message.as_mut(), choice, answer];
        self.context.iter_mut().chain(&mut self.messages).chain(single.into_iter().flatten())
    }
}

/// The input of hooks: the same for all but the place of the transcript.
pub(super) struct HookPayload {
    fields: Map<String, Value>,
    transcript: Option<AbsPath>,
    /// Its place inside the sandbox.
    transcript_inside: Option<AbsPath>,
}

/// The hooks of one event while they run.
struct HookFiring<'a> {
    conversation: &'a Conversation,
    trigger: &'a HookTrigger<'a>,
    payload: &'a HookPayload,
    in_force: &'a EffectivePolicy,
    cancel: &'a CancellationToken,
}

impl HookPayload {
    /// As one JSON object.
    pub(super) fn json(&self, is_inside: bool) -> String {
        let transcript = if is_inside { &self.transcript_inside } else { &self.transcript };
        let path = transcript.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut fields = self.fields.clone();
        fields.insert("transcript_path".to_owned(), json!(path));
        Value::Object(fields).to_string()
    }
}

impl HookRunner {
    /// Runs the hooks of an event in a conversation and combines their replies.
    pub(super) async fn fire(
        &self,
        conversation: &Conversation,
        trigger: HookTrigger<'_>,
        cancel: &CancellationToken,
    ) -> HookReply {
        if !self.has_hooks(conversation, trigger.event) {
            return HookReply::default();
        }
        // Approvals and script edits take effect immediately, so the files are read again.
        let in_force = self.gate.refreshed().await;
        let handlers = self.handlers(conversation, &trigger, &in_force).await;
        if handlers.is_empty() {
            return HookReply::default();
        }
        let payload = self.payload(conversation, &trigger, &handlers, &in_force).await;
        let firing =
            HookFiring { conversation, trigger: &trigger, payload: &payload, in_force: &in_force, cancel };
        let runs = handlers.iter().map(|handler| self.run(handler, &firing));
        let mut reply = combine(join_all(runs).await);
        for text in reply.texts() {
            *text = self.bounded(std::mem::take(text)).await;
        }
        self.report(&trigger, &mut reply);
        reply
    }

    async fn handlers(
        &self,
        conversation: &Conversation,
        trigger: &HookTrigger<'_>,
        in_force: &EffectivePolicy,
    ) -> Vec<Arc<HookHandler>> {
        let mut handlers = self.matching(conversation, trigger, in_force).await;
        handlers.retain(|handler| !handler.once || self.state.may_run_once(handler.key));
        handlers
    }

    /// The handlers of an event that are in force, with those that have run their one time.
    async fn matching(
        &self,
        conversation: &Conversation,
        trigger: &HookTrigger<'_>,
        in_force: &EffectivePolicy,
    ) -> Vec<Arc<HookHandler>> {
        let carried = self.carried_hooks(conversation, in_force).await;
        let subject =
            MatchSubject { value: trigger.value, call: trigger.call, workspace: conversation.workspace() };
        let handlers = in_force.hooks.at(trigger.event, subject, Vec::new());
        carried.at(trigger.event, subject, handlers)
    }

    /// Whether a hook is approved in its current form: it may have waited for others, which may have changed its script.
    async fn is_still_approved(&self, handler: &HookHandler, firing: &HookFiring<'_>) -> bool {
        if !handler.is_of_workspace() {
            return true;
        }
        let in_force = self.gate.refreshed().await;
        let handlers = self.matching(firing.conversation, firing.trigger, &in_force).await;
        handlers.iter().any(|now| now.key == handler.key && now.source.file == handler.source.file)
    }

    /// The input of all hooks of an event.
    async fn payload(
        &self,
        conversation: &Conversation,
        trigger: &HookTrigger<'_>,
        handlers: &[Arc<HookHandler>],
        in_force: &EffectivePolicy,
    ) -> HookPayload {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("session_id", json!(self.core.id()));
        if let Some(turn) = trigger.turn {
            put("prompt_id", json!(turn));
        }
        // In its place, whatever else there is.
        put("transcript_path", Value::Null);
        put("cwd", json!(conversation.workspace().cwd().to_string()));
        put("permission_mode", json!(mode_name(conversation.current_mode())));
        put("hook_event_name", json!(trigger.event.name()));
        let effort = {
            let state = self.core.state();
            conversation.effort(state.config.effort.or(in_force.policy.preferences.effort), &state)
        };
        if let Some(effort) = effort {
            put("effort", json!({ "level": effort }));
        }
        if let Some(agent) = conversation.agent() {
            put("agent_id", json!(agent));
            let kind = conversation.assignment.as_ref().map(|assignment| assignment.kind.clone());
            let kind = kind.or_else(|| self.core.state().agents.get(agent).map(|agent| agent.kind.clone()));
            put("agent_type", json!(kind));
        }
        put("project_dir", json!(self.project().to_string()));
        put("timestamp", json!(Timestamp::now().to_string()));
        fields.extend(trigger.fields.clone());
        let inside = handlers.iter().find_map(|handler| HookCommand::sandbox_of(handler, in_force));
        let is_outside = handlers.iter().any(|handler| HookCommand::sandbox_of(handler, in_force).is_none());
        let transcript = match self.own_folder().filter(|_| is_outside) {
            Some(folder) => self.transcript_in(&folder, None).await,
            None => None,
        };
        let transcript_inside = match &inside {
            Some(sandbox) => self.transcript_in(sandbox.scratch(), None).await,
            None => None,
        };
        if let (HookEvent::SubagentStop, Some(agent)) = (trigger.event, conversation.agent()) {
            let folder =
                inside.as_ref().map(|sandbox| sandbox.scratch().clone()).or_else(|| self.own_folder());
            if let Some(folder) = folder
                && let Some(path) = self.transcript_in(&folder, Some(agent)).await
            {
                fields.insert("agent_transcript_path".to_owned(), json!(path.to_string()));
            }
        }
        HookPayload { fields, transcript, transcript_inside }
    }

    /// Runs one hook to its end.
    async fn run(&self, handler: &Arc<HookHandler>, firing: &HookFiring<'_>) -> HandlerReply {
        let began = Instant::now();
        let limit = firing.trigger.limit.map_or(handler.timeout, |limit| limit.min(handler.timeout));
        let output = if handler.is_async {
            self.start_in_background(handler, firing)
        } else {
            let running = async {
                let permit = self.state.permits.acquire().await;
                let ended = match self.is_still_approved(handler, firing).await {
                    true => self.ended(handler, firing, limit).await,
                    false => HandlerRun::not_started(handler.action.head(), CHANGED),
                };
                drop(permit);
                read(firing.trigger.event, &ended)
            };
            tokio::select! {
                output = running => output,
                // Waiting for a permit ends as well.
                () = firing.cancel.cancelled() => {
                    HandlerOutput { outcome: Some(HookOutcome::Cancelled), ..HandlerOutput::default() }
                }
            }
        };
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.note_run(handler, &output, duration_ms);
        HandlerReply { output, head: handler.action.head(), is_of_workspace: handler.is_of_workspace() }
    }

    async fn ended(&self, handler: &HookHandler, firing: &HookFiring<'_>, limit: Duration) -> HandlerRun {
        let HookFiring { payload, in_force, cancel, .. } = *firing;
        let head = handler.action.head();
        let done =
            |exit, stdout, stderr, missing| HandlerRun { exit, stdout, stderr, missing, head: head.clone() };
        let (exit, stdout) = match &handler.action {
            HookAction::Command { .. } => {
                let command = HookCommand::new(self, handler, payload, in_force, limit).await;
                let ended = match &command {
                    Ok(command) => command.run(self, cancel).await,
                    Err(reason) => Err(reason.clone()),
                };
                return match (ended, command) {
                    (Ok(piped), Ok(command)) => {
                        let missing = command.missing(&piped.stderr);
                        done(HandlerExit::Exit(piped.exit), piped.stdout, piped.stderr, missing)
                    }
                    (Err(reason), _) | (_, Err(reason)) => {
                        done(HandlerExit::NotStarted(reason), String::new(), String::new(), None)
                    }
                };
            }
            HookAction::Http { url, headers, allowed } => {
                let lookup = |name: &str| HookCommand::variable(self, handler, name);
                let request =
                    http::HookRequest { url, headers, allowed, body: payload.json(false), lookup: &lookup };
                within(limit, cancel, http::post(request)).await
            }
            HookAction::Prompt { prompt, model } => {
                let question = prompt::question(prompt, &payload.json(false));
                let asking = self.ask_model(firing.conversation, question, model.as_deref(), cancel);
                within(limit, cancel, asking).await
            }
        };
        done(exit, stdout, String::new(), None)
    }

    /// Starts a hook in the background.
    fn start_in_background(&self, handler: &Arc<HookHandler>, firing: &HookFiring<'_>) -> HandlerOutput {
        let Ok(permit) = Arc::clone(&self.state.background).try_acquire_owned() else {
            let error =
                format!("`{}` was not started: too many hooks run in the background", handler.action.head());
            let outcome = Some(HookOutcome::Failed);
            return HandlerOutput { outcome, error: Some(error), ..HandlerOutput::default() };
        };
        let spec = HookCommand::spec(self, handler, firing.payload, firing.in_force, handler.timeout);
        let spec = match spec {
            Ok(spec) => spec,
            Err(error) => {
                let outcome = Some(HookOutcome::NotSetUp);
                return HandlerOutput { outcome, error: Some(error), ..HandlerOutput::default() };
            }
        };
        let (core, shell) = (Arc::clone(&self.core), Arc::clone(&self.environment.shell));
        let (handler, last) = (Arc::clone(handler), Arc::clone(self.state.last()));
        task::spawn(async move {
            let began = Instant::now();
            let ended = shell.run_piped(spec, &core.cancel_token()).await;
            let outcome = match &ended {
                Ok(piped) => match piped.exit {
                    Exit::Code(0) => HookOutcome::Ok,
                    Exit::Code(_) | Exit::Signal(_) => HookOutcome::Failed,
                    Exit::TimedOut => HookOutcome::TimedOut,
                    Exit::Cancelled => HookOutcome::Cancelled,
                },
                Err(_) => HookOutcome::NotSetUp,
            };
            let message = ended.err();
            let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let at = Timestamp::now();
            lock(&last).insert(handler.key, LastRun { at, outcome, duration_ms, message: message.clone() });
            let (event, name) = (handler.event.name().to_owned(), handler.action.head());
            core.publish(Event::HookRan { event, name, duration_ms, outcome, message });
            drop(permit);
        });
        HandlerOutput { outcome: Some(HookOutcome::InBackground), ..HandlerOutput::default() }
    }

    fn note_run(&self, handler: &HookHandler, output: &HandlerOutput, duration_ms: u64) {
        let (outcome, message) = (output.outcome(), output.message());
        let run = LastRun { at: Timestamp::now(), outcome, duration_ms, message: message.clone() };
        lock(self.state.last()).insert(handler.key, run);
        let (event, name) = (handler.event.name().to_owned(), handler.action.head());
        self.core.publish(Event::HookRan { event, name, duration_ms, outcome, message });
    }

    /// Notifies the user of the messages and problems of hooks.
    fn report(&self, trigger: &HookTrigger<'_>, reply: &mut HookReply) {
        let problems = std::mem::take(&mut reply.problems);
        let Some(turn) = trigger.turn else {
            problems
                .iter()
                .for_each(|problem| tracing::warn!(event = trigger.event.name(), problem, "a hook failed"));
            return;
        };
        // The messages of a sub-agent's hooks are for the user as well.
        let main = self.main_thread();
        for message in std::mem::take(&mut reply.messages) {
            main.notice_of(NoticeKind::Hook, turn, (NoticeLevel::Info, &message, ""));
        }
        for problem in problems {
            if self.state.is_news(turn, trigger.event, &problem) {
                let text = format!("A hook of {}: {problem}.", trigger.event.name());
                let hint = "It blocked nothing. `agent/hooks/list` shows where it is configured.";
                main.notice_of(NoticeKind::Hook, turn, (NoticeLevel::Warning, &text, hint));
            }
        }
    }

    /// A text as it may be put into a conversation: the rest of a long one is written to a file whose path it names.
    async fn bounded(&self, text: String) -> String {
        let Some((end, _)) = text.char_indices().nth(MAX_TEXT) else { return text };
        let folder = self.environment.shell.tasks().outputs().map(|outputs| outputs.folder().clone());
        let rest = text[end..].chars().count();
        let mut shown = text[..end].to_owned();
        let kept = match folder {
            Some(folder) => {
                let file = folder.join(format!("hook-{}.txt", uuid::Uuid::now_v7().simple()));
                let path = file.clone();
                let written = blocking(move || {
                    std::fs::create_dir_all(folder.as_path())?;
                    transcript::replace(path.as_path(), text.as_bytes())
                });
                written.await.map(|()| file).inspect_err(|error| {
                    tracing::warn!(%error, "the rest of a hook's text could not be kept");
                })
            }
            None => Err(std::io::ErrorKind::NotFound.into()),
        };
        shown.push_str(&match kept {
            Ok(file) => format!("\n[{rest} characters more; all of it is in {file}]"),
            Err(_) => format!("\n[{rest} characters more, which are not kept]"),
        });
        shown
    }

    /// The folder of the session's own files.
    pub(super) fn own_folder(&self) -> Option<AbsPath> {
        self.core.folder().and_then(|folder| AbsPath::new(folder).ok())
    }
}

/// How something other than a command ended within its time: with a text, or in its own way.
async fn within(
    limit: Duration,
    cancel: &CancellationToken,
    work: impl Future<Output = Result<String, String>>,
) -> (HandlerExit, String) {
    tokio::select! {
        biased;
        () = cancel.cancelled() => (HandlerExit::Exit(Exit::Cancelled), String::new()),
        ended = tokio::time::timeout(limit, work) => match ended {
            Ok(Ok(text)) => (HandlerExit::Exit(Exit::Code(0)), text),
            Ok(Err(reason)) => (HandlerExit::Failed(reason), String::new()),
            Err(_) => (HandlerExit::Exit(Exit::TimedOut), String::new()),
        },
    }
}

/// The mode, by the names that scripts know.
fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Default | Mode::Approval => "default",
        Mode::AcceptEdits => "acceptEdits",
        Mode::Plan | Mode::Readonly => "plan",
        Mode::DontAsk => "dontAsk",
        Mode::BypassPermissions => "bypassPermissions",
    }
}
