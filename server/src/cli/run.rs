//! `kode-ls run`: one prompt without an editor, on the same engine and under the same rules.
//!
//! Rule: with a JSON format standard output holds JSON alone; the exit code says how the turn ended: 0 done, 1 not
//! done, 130 interrupted.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, ValueEnum};
use kode_engine::agent::engine::{Engine, EngineOptions, NewSession};
use kode_engine::agent::prompt::Prompt;
use kode_engine::agent::session::Session;
use kode_engine::agent::session::prompts::SubmitOutcome;
use kode_engine::agent::sessions::{ListSessions, WorkspaceFilter};
use kode_engine::agent::state::config::ConfigChange;
use kode_engine::agent::transfer::ForkPoint;
use kode_engine::base::ids::SessionId;
use kode_engine::base::mode::Mode;
use kode_engine::base::paths::AbsPath;
use kode_engine::config::budget::Budget;
use kode_engine::mcp::Mcp;
use kode_engine::model::Role;
use kode_engine::permission::Deliveries;
use kode_engine::record::event::{Event, ItemBody, NoticeLevel, TurnEnd, TurnOutcome};
use kode_engine::text::host::NoEditor;
use kode_engine::tools::web_search::CurrentSearch;
use serde_json::{Value, json};

use crate::cli::questions::Answerer;
use crate::cli::watch::{TurnReport, watch, watch_answer};
use crate::cli::{ModelArgs, terminal, working_directory};
use crate::display::{printable, retry_line};
use crate::home;
use crate::policies;

/// The arguments of `kode-ls run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// What to do; `-` reads it from standard input
    prompt: String,
    /// Folder to work in [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    cwd: Option<PathBuf>,

    /// Go on with the session of the folder that was used last
    #[arg(short, long, conflicts_with = "resume", help_heading = "Session")]
    r#continue: bool,
    /// Go on with this session; the beginning of its id, or of what follows `ses_`, is enough
    #[arg(short, long, value_name = "ID", help_heading = "Session")]
    resume: Option<String>,
    /// Leave that session as it is and go on in a copy of it
    #[arg(long, help_heading = "Session")]
    fork: bool,

    /// What standard output gets
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    output_format: OutputFormat,

    /// What the agent may do unasked [default: as the settings say]
    #[arg(long, value_name = "MODE", value_parser = parse_mode, help_heading = "Safety")]
    mode: Option<Mode>,

    /// The most model calls; -1 is the built-in limit of 100 [default: as the settings say]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Safety")]
    max_turns: Option<i64>,

    /// What the turn may cost in US dollars, as far as prices are known [default: as the settings say]
    #[arg(long, value_name = "USD", value_parser = parse_amount, help_heading = "Safety")]
    max_cost_usd: Option<f64>,

    /// How many minutes the turn may go on [default: as the settings say]
    #[arg(long, value_name = "N", value_parser = parse_amount, help_heading = "Safety")]
    max_minutes: Option<f64>,

    #[command(flatten)]
    model: ModelArgs,
}

/// What standard output gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// The answer
    #[default]
    Text,
    /// One JSON object at the end
    Json,
    /// One JSON object a line: start, messages as they come, result
    StreamJson,
}

fn parse_amount(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount| Budget::is_amount(*amount));
    amount.ok_or_else(|| "a number above 0".to_owned())
}

fn parse_mode(name: &str) -> Result<Mode, String> {
    Mode::parse(name).ok_or_else(|| {
        let names: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
        format!("one of {}", names.join(", "))
    })
}

/// Carries out one prompt.
///
/// # Errors
/// What cannot be started or written; how the turn itself ended is the exit code.
pub async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let cwd = working_directory(args.cwd.as_ref())?;
    let text = match args.prompt.as_str() {
        "-" => {
            let mut text = String::new();
            io::stdin().read_to_string(&mut text).context("could not read the prompt from standard input")?;
            text
        }
        _ => args.prompt,
    };
    let policies = policies::all()?;
    let (models, profile) = args.model.models(&policies);
    let equipment = policies::equipment(&policies);
    if let Some(problem) = equipment.search.problem() {
        terminal::error_line(&format!("! {}", printable(&problem)));
    }
    let search = CurrentSearch::default();
    search.set(equipment.provider);
    let home = home::folder()?;
    let options = EngineOptions {
        home: home.clone(),
        tools: policies::tools(&search),
        servers: Arc::new(Mcp::new(home)),
        host: Arc::new(NoEditor),
        models,
        policies: Arc::new(policies),
        concurrency: equipment.concurrency,
        save_before_commands: true,
        deliveries: Deliveries::default(),
    };
    let engine = Engine::new(options);
    let beginning = Beginning { mode: args.mode, profile, fork: args.fork };
    let session = match (args.resume.as_deref(), args.r#continue) {
        (None, false) => {
            anyhow::ensure!(!args.fork, "--fork needs a session to copy: add --continue or --resume ID");
            engine.new_session(NewSession {
                roots: vec![cwd],
                mode: beginning.mode,
                model: beginning.profile,
            })?
        }
        (id, _) => taken_up(&engine, &cwd, id, beginning).await?,
    };
    if let Some(max_turns) = args.max_turns {
        session.turns().limit_turns(max_turns);
    }
    let printed = messages_with_prompt(&session);
    let mut printer =
        Printer { format: args.output_format, session: Arc::clone(&session), printed, said: None };
    session.turns().limit_budget(Budget { max_cost_usd: args.max_cost_usd, max_minutes: args.max_minutes });
    let events = session.events().subscribe(session.events().newest(), vec![]);
    let submitted = session.prompts().submit(Prompt::from(text))?;

    let outcome = async {
        printer.start(&engine)?;
        let show = |event: &Event| printer.event(event);
        let finished = match submitted {
            SubmitOutcome::Started(turn) => watch(&session, events, &turn, Answerer::at_hand(), show).await?,
            SubmitOutcome::Answered { item, .. } => watch_answer(events, &item, show).await?,
            SubmitOutcome::Queued(_) | SubmitOutcome::Steering { .. } => {
                anyhow::bail!("the session was busy")
            }
        };
        printer.finish(&finished)?;
        Ok(if printer.has_failed(&finished) { ExitCode::FAILURE } else { exit_code(finished.reason) })
    }
    .await;
    // Also when nobody reads the output any more: what runs must not outlive this process.
    engine.shutdown().await;
    outcome
}

/// What the arguments say of a session.
struct Beginning {
    mode: Option<Mode>,
    profile: Option<String>,
    fork: bool,
}

/// The session of the folder with this id, or the one used last, or a copy of it.
async fn taken_up(
    engine: &Engine,
    cwd: &AbsPath,
    id: Option<&str>,
    beginning: Beginning,
) -> anyhow::Result<Arc<Session>> {
    let folders = std::slice::from_ref(cwd);
    let id = which(engine, id, cwd).await?;
    let Beginning { mode, profile, fork } = beginning;
    let session = match fork {
        true => engine.fork_session(folders, &id, ForkPoint::End).await?,
        false => engine.load_session(folders, &id).await?,
    };
    if let Some(mode) = mode {
        session.gate().allow_mode(mode).await?;
    }
    let model = profile.map(|name| session.models().named(&name)).transpose()?;
    session.configure(ConfigChange { mode, model, ..ConfigChange::default() });
    Ok(session)
}

/// The session that is meant, among those of a folder: the one that is named, or the one used last.
async fn which(engine: &Engine, id: Option<&str>, cwd: &AbsPath) -> anyhow::Result<SessionId> {
    let (catalogue, here) = (Arc::clone(engine.catalogue()), WorkspaceFilter::These(vec![cwd.clone()]));
    let wanted = id.map(str::to_owned);
    let found = tokio::task::spawn_blocking(move || match wanted {
        Some(wanted) => catalogue.complete(&here, &wanted).map(Some).map_err(anyhow::Error::from),
        None => {
            let page = catalogue.list(&ListSessions::newest(here, 1), &|_| None)?;
            Ok(page.sessions.into_iter().next().map(|session| session.id))
        }
    });
    found.await??.with_context(|| format!("there is no session of {cwd} to go on with"))
}

/// How many messages the conversation has once the prompt is in it: behind results, it stands in their message.
fn messages_with_prompt(session: &Session) -> usize {
    match session.history().messages_from(0).last() {
        Some((number, message)) if message.role == Role::User => number + 1,
        Some((number, _)) => number + 2,
        None => 1,
    }
}

fn exit_code(reason: TurnEnd) -> ExitCode {
    match reason.outcome() {
        TurnOutcome::Done => ExitCode::SUCCESS,
        TurnOutcome::Cancelled => ExitCode::from(130),
        TurnOutcome::Unfinished => ExitCode::FAILURE,
    }
}

struct Printer {
    format: OutputFormat,
    session: Arc<Session>,
    /// Messages of the history that were printed, or were there before; the prompt itself is not printed.
    printed: usize,
    /// What a command said, and whether it was not carried out.
    said: Option<(String, bool)>,
}

impl Printer {
    fn start(&self, engine: &Engine) -> io::Result<()> {
        if self.format != OutputFormat::StreamJson {
            return Ok(());
        }
        let snapshot = self.session.snapshot(0);
        let models = engine.models();
        let model = models.profile(&snapshot.model).map_or(snapshot.model.as_str(), |profile| &profile.model);
        let tools: Vec<_> = engine.tools().iter().map(|tool| tool.facts().name).collect();
        line(&json!({
            "type": "system", "subtype": "init", "session_id": snapshot.id, "model": model,
            "cwd": self.session.cwd().to_string(), "tools": tools, "permissionMode": snapshot.mode.name(),
        }))
    }

    /// Whether what was asked for is a command that was not carried out.
    fn has_failed(&self, finished: &TurnReport) -> bool {
        finished.model_calls == 0 && self.said.as_ref().is_some_and(|(_, failed)| *failed)
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Event::ItemAdded { item } = event
            && let ItemBody::Command { text, failed, .. } = &item.body
        {
            self.said = Some((text.clone(), *failed));
        }
        if self.format == OutputFormat::StreamJson {
            for (number, message) in self.session.history().messages_from(self.printed) {
                self.printed = number + 1;
                let role = &message.role;
                line(&json!({ "type": role, "message": message, "session_id": self.session.id() }))?;
            }
        }
        narrate(event);
        Ok(())
    }

    fn finish(&self, finished: &TurnReport) -> io::Result<()> {
        // A command that no model was asked for is its own answer.
        let said = self.said.clone().filter(|_| finished.model_calls == 0);
        let answer = said.map_or_else(|| self.session.answer(), |(text, _)| text);
        match self.format {
            OutputFormat::Text if answer.is_empty() => Ok(()),
            OutputFormat::Text => terminal::answer(answer.trim_end()),
            OutputFormat::Json | OutputFormat::StreamJson => {
                let done = finished.reason == TurnEnd::EndTurn && !self.has_failed(finished);
                line(&json!({
                    "type": "result", "subtype": if done { "success" } else { "error" }, "is_error": !done,
                    "stop_reason": finished.reason, "result": answer, "session_id": self.session.id(),
                    "num_turns": finished.model_calls, "num_tool_calls": finished.tool_calls,
                    "duration_ms": finished.duration_ms,
                    // What is not known is null, and no zero.
                    "total_cost_usd": finished.cost.total(), "phases": finished.phases,
                    "usage": {
                        "input_tokens": finished.usage.input_tokens,
                        "output_tokens": finished.usage.output_tokens,
                        "cache_read_input_tokens": finished.usage.cache_read_tokens,
                        "cache_creation_input_tokens": finished.usage.cache_write_tokens,
                    },
                }))
            }
        }
    }
}

fn line(value: &Value) -> io::Result<()> {
    terminal::output(&format!("{value}\n"))
}

/// Says on standard error what happens, one line a step; of sub-agents nothing but what comes of them.
pub(super) fn narrate(event: &Event) {
    if event.is_of_sub_agent() {
        return;
    }
    match event {
        Event::ToolEnd { item } => {
            if let ItemBody::ToolCall(call) = &item.body {
                let state = serde_json::to_value(call.state).unwrap_or_default();
                let state = state.as_str().unwrap_or_default().to_lowercase();
                let (title, display) = (printable(&call.title), printable(&call.display));
                terminal::error_line(&format!("• {title} ({state}) {display}"));
            }
        }
        Event::ModelRetry { retry } => terminal::error_line(&format!("… {}", retry_line(retry))),
        Event::ItemAdded { item } => {
            if let ItemBody::Notice { level, text, hint, kind: _ } = &item.body {
                let mark = match level {
                    NoticeLevel::Info => "i",
                    NoticeLevel::Warning => "!",
                    NoticeLevel::Error => "error:",
                };
                let hint = hint.as_deref().unwrap_or_default();
                terminal::error_line(&format!("{mark} {} {}", printable(text), printable(hint)));
            }
        }
        Event::StorageFailure { message, recovered } => {
            let mark = if *recovered { "i" } else { "!" };
            terminal::error_line(&format!("{mark} {}", printable(message)));
        }
        _ => {}
    }
}
