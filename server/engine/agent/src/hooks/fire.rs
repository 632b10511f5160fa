//! A moment comes: the hooks that are for it run, beside each other, and what they say is made into one.
//!
//! Rule: where there is no hook for a moment, nothing is looked up and nothing waits. Each run is told as an event; what
//! went wrong is told to the user once in a turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::combine::{One, combine};
use super::list::LastRun;
use super::output::{Choice, Ended, PermissionAnswer, Run, Said, read};
use super::run::Command;
use super::{MAX_TEXT, http, prompt, transcript};
use crate::session::conversation::Conversation;
use crate::session::{Session, lock};
use kode_base::blocking;
use kode_base::ids::TurnId;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_config::hooks::config::{HookAction, HookHandler};
use kode_config::hooks::event::HookEvent;
use kode_config::hooks::matcher::MatchSubject;
use kode_config::in_force::EffectivePolicy;
use kode_permission::gate::GateCase;
use kode_process::outcome::Exit;
use kode_record::event::{Event, NoticeKind, NoticeLevel};
use kode_record::hook::HookOutcome;

/// A moment at which hooks may run.
#[derive(Clone)]
pub(crate) struct Moment<'a> {
    pub(crate) event: HookEvent,
    /// What matchers are compared with.
    pub(crate) value: Option<&'a str>,
    /// What hooks are told besides what they are told always.
    pub(crate) fields: Map<String, Value>,
    pub(crate) call: Option<&'a GateCase<'a>>,
    /// The turn, where one runs.
    pub(crate) turn: Option<&'a TurnId>,
    /// The most time there is, whatever handlers say.
    pub(crate) limit: Option<Duration>,
}

/// What came of a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Fired {
    /// How many hooks ran.
    pub(crate) ran: usize,
    pub(crate) choice: Option<(Choice, String)>,
    /// Why something is held back, or has to go on.
    pub(crate) block: Option<String>,
    pub(crate) updated_input: Option<Value>,
    pub(crate) updated_output: Option<Value>,
    /// What the model is told, each of bounded length.
    pub(crate) context: Vec<String>,
    /// Why the turn stops.
    pub(crate) stop: Option<String>,
    pub(crate) permission: Option<PermissionAnswer>,
    pub(crate) permission_is_of_workspace: bool,
    pub(crate) session_title: Option<String>,
    pub(crate) initial_message: Option<String>,
    /// What the user is told.
    pub(super) messages: Vec<String>,
    pub(super) problems: Vec<String>,
}

impl<'a> Moment<'a> {
    /// A moment of a turn without a call.
    pub(crate) fn new(event: HookEvent, turn: Option<&'a TurnId>, fields: Value) -> Self {
        let fields = match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        };
        Self { event, value: None, fields, call: None, turn, limit: None }
    }
}

impl Fired {
    /// Everything in it that is put into a conversation or shown.
    fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        let answer = self.permission.as_mut().and_then(|answer| answer.message.as_mut());
        let choice = self.choice.as_mut().map(|(_, reason)| reason);
        let single = [self.block.as_mut(), self.stop.as_mut(), self.initial_message.as_mut(), choice, answer];
        self.context.iter_mut().chain(&mut self.messages).chain(single.into_iter().flatten())
    }
}

/// What is told to hooks as they are started: the same but for where the transcript is.
pub(super) struct Payload {
    fields: Map<String, Value>,
    transcript: Option<AbsPath>,
    /// Where those find it that run in the sandbox.
    transcript_inside: Option<AbsPath>,
}

impl Payload {
    /// As one JSON object.
    pub(super) fn json(&self, is_inside: bool) -> String {
        let transcript = if is_inside { &self.transcript_inside } else { &self.transcript };
        let path = transcript.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut fields = self.fields.clone();
        fields.insert("transcript_path".to_owned(), json!(path));
        Value::Object(fields).to_string()
    }
}

impl Session {
    /// The folder of the session's own files.
    pub(super) fn own_folder(&self) -> Option<AbsPath> {
        self.journal_folder().and_then(|folder| AbsPath::new(folder).ok())
    }
}

impl Conversation<'_> {
    /// Runs the hooks of a moment and makes one of what they say.
    pub(crate) async fn fire(&self, moment: Moment<'_>, cancel: &CancellationToken) -> Fired {
        if !self.has_hooks(moment.event) {
            return Fired::default();
        }
        // Whoever approves and whoever swaps a script is heard at once: the files are looked at again.
        let in_force = self.session.look().await;
        let handlers = self.at(&in_force, &moment).await;
        if handlers.is_empty() {
            return Fired::default();
        }
        let payload = self.payload(&moment, &handlers, &in_force).await;
        let runs = handlers.iter().map(|handler| self.run(handler, &moment, &payload, &in_force, cancel));
        let mut fired = combine(join_all(runs).await);
        for text in fired.texts() {
            *text = self.bounded(std::mem::take(text)).await;
        }
        self.tell(&moment, &mut fired);
        fired
    }

    async fn at(&self, in_force: &EffectivePolicy, moment: &Moment<'_>) -> Vec<Arc<HookHandler>> {
        let brought = self.brought_hooks(in_force).await;
        let subject = MatchSubject { value: moment.value, call: moment.call, workspace: self.workspace() };
        let handlers = in_force.hooks.at(moment.event, subject, Vec::new());
        let mut handlers = brought.at(moment.event, subject, handlers);
        handlers.retain(|handler| !handler.once || self.session.hooks.may_run_once(handler.key));
        handlers
    }

    /// What all hooks of a moment are told.
    async fn payload(
        &self,
        moment: &Moment<'_>,
        handlers: &[Arc<HookHandler>],
        in_force: &EffectivePolicy,
    ) -> Payload {
        let session = self.session;
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        put("session_id", json!(session.id()));
        if let Some(turn) = moment.turn {
            put("prompt_id", json!(turn));
        }
        // In its place, whatever else there is.
        put("transcript_path", Value::Null);
        put("cwd", json!(self.workspace().cwd().to_string()));
        put("permission_mode", json!(mode_name(self.mode(session.mode()))));
        put("hook_event_name", json!(moment.event.name()));
        let effort = {
            let state = session.state();
            self.effort(state.effort.or(in_force.policy.preferences.effort), &state)
        };
        if let Some(effort) = effort {
            put("effort", json!({ "level": effort }));
        }
        if let Some(agent) = &self.agent {
            put("agent_id", json!(agent));
            let kind = self.assignment.as_ref().map(|assignment| assignment.kind.clone());
            let kind = kind.or_else(|| session.state().agents.get(agent).map(|agent| agent.kind.clone()));
            put("agent_type", json!(kind));
        }
        put("project_dir", json!(session.workspace.cwd().to_string()));
        put("timestamp", json!(Timestamp::now().to_string()));
        fields.extend(moment.fields.clone());
        let inside = handlers.iter().find_map(|handler| Command::sandbox_of(handler, in_force));
        let is_outside = handlers.iter().any(|handler| Command::sandbox_of(handler, in_force).is_none());
        let transcript = match session.own_folder().filter(|_| is_outside) {
            Some(folder) => session.transcript_in(&folder, None).await,
            None => None,
        };
        let transcript_inside = match &inside {
            Some(sandbox) => session.transcript_in(sandbox.scratch(), None).await,
            None => None,
        };
        if let (HookEvent::SubagentStop, Some(agent)) = (moment.event, &self.agent) {
            let folder =
                inside.as_ref().map(|sandbox| sandbox.scratch().clone()).or_else(|| session.own_folder());
            if let Some(folder) = folder
                && let Some(path) = session.transcript_in(&folder, Some(agent)).await
            {
                fields.insert("agent_transcript_path".to_owned(), json!(path.to_string()));
            }
        }
        Payload { fields, transcript, transcript_inside }
    }

    /// Runs one hook to its end.
    async fn run(
        &self,
        handler: &Arc<HookHandler>,
        moment: &Moment<'_>,
        payload: &Payload,
        in_force: &EffectivePolicy,
        cancel: &CancellationToken,
    ) -> One {
        let session = self.session;
        let began = Instant::now();
        let limit = moment.limit.map_or(handler.timeout, |limit| limit.min(handler.timeout));
        let said = if handler.is_async {
            self.start_in_background(handler, payload, in_force)
        } else {
            let running = async {
                let place = session.hooks.places.acquire().await;
                let ended = self.ended(handler, payload, in_force, limit, cancel).await;
                drop(place);
                read(moment.event, &ended)
            };
            tokio::select! {
                said = running => said,
                // Waiting for a place has an end as well.
                () = cancel.cancelled() => Said { outcome: Some(HookOutcome::Cancelled), ..Said::default() },
            }
        };
        let duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.note_run(handler, &said, duration_ms);
        One { said, head: handler.action.head(), is_of_workspace: handler.is_of_workspace() }
    }

    async fn ended(
        &self,
        handler: &HookHandler,
        payload: &Payload,
        in_force: &EffectivePolicy,
        limit: Duration,
        cancel: &CancellationToken,
    ) -> Run {
        let head = handler.action.head();
        let done = |exit, stdout, stderr, missing| Run { exit, stdout, stderr, missing, head: head.clone() };
        let (exit, stdout) = match &handler.action {
            HookAction::Command { .. } => {
                let command = Command::new(self.session, handler, payload, in_force, limit).await;
                let ended = match &command {
                    Ok(command) => command.run(self.session, cancel).await,
                    Err(reason) => Err(reason.clone()),
                };
                return match (ended, command) {
                    (Ok(piped), Ok(command)) => {
                        let missing = command.missing(&piped.stderr);
                        done(Ended::Exit(piped.exit), piped.stdout, piped.stderr, missing)
                    }
                    (Err(reason), _) | (_, Err(reason)) => {
                        done(Ended::NotStarted(reason), String::new(), String::new(), None)
                    }
                };
            }
            HookAction::Http { url, headers, allowed } => {
                let lookup = |name: &str| Command::variable(self.session, handler, name);
                let request =
                    http::Request { url, headers, allowed, body: payload.json(false), lookup: &lookup };
                within(limit, cancel, http::post(request)).await
            }
            HookAction::Prompt { prompt, model } => {
                let question = prompt::question(prompt, &payload.json(false));
                within(limit, cancel, prompt::ask(self, question, model.as_deref(), cancel)).await
            }
        };
        done(exit, stdout, String::new(), None)
    }

    /// Starts a hook that nobody waits for.
    fn start_in_background(
        &self,
        handler: &Arc<HookHandler>,
        payload: &Payload,
        in_force: &EffectivePolicy,
    ) -> Said {
        let session = self.session;
        let Ok(place) = Arc::clone(&session.hooks.background).try_acquire_owned() else {
            let error =
                format!("`{}` was not started: too many hooks run in the background", handler.action.head());
            return Said { outcome: Some(HookOutcome::Failed), error: Some(error), ..Said::default() };
        };
        let spec = match Command::spec(session, handler, payload, in_force, handler.timeout) {
            Ok(spec) => spec,
            Err(error) => {
                return Said { outcome: Some(HookOutcome::NotSetUp), error: Some(error), ..Said::default() };
            }
        };
        let (shell, events, cancel) =
            (Arc::clone(&session.shell), Arc::clone(session.events()), session.cancel_token());
        let (handler, last) = (Arc::clone(handler), Arc::clone(session.hooks.last()));
        tokio::spawn(async move {
            let began = Instant::now();
            let ended = shell.run_piped(spec, &cancel).await;
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
            events.publish(Event::HookRan { event, name, duration_ms, outcome, message });
            drop(place);
        });
        Said { outcome: Some(HookOutcome::InBackground), ..Said::default() }
    }

    fn note_run(&self, handler: &HookHandler, said: &Said, duration_ms: u64) {
        let (outcome, message) = (said.outcome(), said.message());
        let run = LastRun { at: Timestamp::now(), outcome, duration_ms, message: message.clone() };
        lock(self.session.hooks.last()).insert(handler.key, run);
        let (event, name) = (handler.event.name().to_owned(), handler.action.head());
        self.session.publish(Event::HookRan { event, name, duration_ms, outcome, message });
    }

    /// Tells the user what hooks want them to know, and what went wrong.
    fn tell(&self, moment: &Moment<'_>, fired: &mut Fired) {
        let problems = std::mem::take(&mut fired.problems);
        let Some(turn) = moment.turn else {
            problems
                .iter()
                .for_each(|problem| tracing::warn!(event = moment.event.name(), problem, "a hook failed"));
            return;
        };
        // What a sub-agent's hooks say is for the user as well.
        let main = Conversation::main(self.session);
        for message in std::mem::take(&mut fired.messages) {
            main.notice_of(NoticeKind::Hook, turn, (NoticeLevel::Info, &message, ""));
        }
        for problem in problems {
            if self.session.hooks.is_news(turn, moment.event, &problem) {
                let text = format!("A hook of {}: {problem}.", moment.event.name());
                let hint = "It held nothing back. `agent/hooks/list` tells where it stands.";
                main.notice_of(NoticeKind::Hook, turn, (NoticeLevel::Warning, &text, hint));
            }
        }
    }

    /// A text as it may be put into a conversation: what is too long goes on in a file whose path it tells.
    async fn bounded(&self, text: String) -> String {
        let Some((end, _)) = text.char_indices().nth(MAX_TEXT) else { return text };
        let folder = self.session.shell.tasks().outputs().map(|outputs| outputs.folder().clone());
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
                    tracing::warn!(%error, "the rest of what a hook says could not be kept");
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
}

/// How something other than a command ended within its time: with a text, or in its own way.
async fn within(
    limit: Duration,
    cancel: &CancellationToken,
    work: impl Future<Output = Result<String, String>>,
) -> (Ended, String) {
    tokio::select! {
        biased;
        () = cancel.cancelled() => (Ended::Exit(Exit::Cancelled), String::new()),
        ended = tokio::time::timeout(limit, work) => match ended {
            Ok(Ok(text)) => (Ended::Exit(Exit::Code(0)), text),
            Ok(Err(reason)) => (Ended::Failed(reason), String::new()),
            Err(_) => (Ended::Exit(Exit::TimedOut), String::new()),
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
