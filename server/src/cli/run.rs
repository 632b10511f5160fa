//! `kode-ls run`: runs prompts without an editor, on the same engine and under the same rules.
//!
//! Rule: with a JSON format, standard output holds nothing but JSON. The exit code reports how the last turn ended.

mod beginning;
mod input;
mod output;
mod schema;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::{Args, ValueEnum};
use kode_engine::agent::prompt::Prompt;
use kode_engine::agent::session::Session;
use kode_engine::agent::session::prompts::{SubmitError, SubmitOutcome};
use kode_engine::config::budget::Budget;
use kode_engine::config::command::btw;
use kode_engine::record::event::{Subscription, TurnEnd, TurnOutcome};

use crate::cli::questions::Answerer;
use crate::cli::watch::{TurnReport, watch, watch_answer};
use crate::cli::{ModelArgs, aside};
use crate::signals::EndSignals;
use input::{Input, Source};
use output::Printer;
use schema::OutputSchema;

pub(super) use beginning::{RunSession, SessionArgs, begin, parse_mode};
pub(super) use output::figures;

/// The exit code with `--fail-on-denial` after a denied call.
const DENIED: u8 = 3;

/// The exit code of an interrupted run.
const INTERRUPTED: u8 = 130;

/// How often an answer that does not match its schema is sent back.
const CORRECTIONS: u32 = 2;

/// The arguments of `kode-ls run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit codes:
  0    the turn completed
  1    the turn failed, hit a limit, or its answer does not match the schema
  2    invalid arguments
  3    a call was denied (only with --fail-on-denial)
  130  interrupted

Standard input:
  git diff | kode-ls run \"review this\"     sends the prompt with the diff as context
  kode-ls run - < prompt.md                sends the file as the prompt")]
pub struct RunArgs {
    /// The prompt; `-` reads it from standard input. Piped input is attached as context
    prompt: Option<String>,

    #[command(flatten)]
    session: SessionArgs,

    /// Format of standard output
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    output_format: OutputFormat,

    /// With `stream-json`, include partial messages
    #[arg(long, help_heading = "Output")]
    include_partial_messages: bool,

    /// JSON Schema file that the final answer must match
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    output_schema: Option<PathBuf>,

    /// Exit with code 3 if a call was denied
    #[arg(long, help_heading = "Output")]
    fail_on_denial: bool,

    /// Format of standard input
    #[arg(long, value_enum, default_value_t, help_heading = "Input")]
    input_format: InputFormat,

    /// Maximum number of model calls; -1 is the built-in limit of 100 [default: from the settings]
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Safety")]
    max_turns: Option<i64>,

    /// Maximum cost of the turn in US dollars, for models with known prices [default: from the settings]
    #[arg(long, value_name = "USD", value_parser = parse_amount, help_heading = "Safety")]
    max_cost_usd: Option<f64>,

    /// Maximum duration of the turn in minutes [default: from the settings]
    #[arg(long, value_name = "N", value_parser = parse_amount, help_heading = "Safety")]
    max_minutes: Option<f64>,

    #[command(flatten)]
    model: ModelArgs,
}

/// Why a prompt was not accepted under a turn limit of 0.
const CHAT_DISABLED: &str =
    "chat is disabled: the turn limit is 0; give --max-turns another number, or remove it";

/// The format of standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum OutputFormat {
    /// The answer
    #[default]
    Text,
    /// One JSON object at the end
    Json,
    /// One JSON object per line: start, messages, result
    StreamJson,
}

/// The format of standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum InputFormat {
    /// The prompt, or its context
    #[default]
    Text,
    /// One JSON object per line, each a user message that starts a turn
    StreamJson,
}

fn parse_amount(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount| Budget::is_amount(*amount));
    amount.ok_or_else(|| "a number above 0".to_owned())
}

/// Runs prompts.
///
/// # Errors
/// When the session cannot start, or input or output fails. The outcome of a turn is the exit code.
pub async fn run(args: RunArgs) -> anyhow::Result<ExitCode> {
    let is_stream = args.output_format == OutputFormat::StreamJson;
    if args.include_partial_messages && !is_stream {
        return Ok(super::wrong("--include-partial-messages requires --output-format stream-json"));
    }
    let source = match (args.input_format, args.prompt) {
        (InputFormat::StreamJson, Some(_)) => {
            return Ok(super::wrong(
                "--input-format stream-json reads the prompts from standard input; remove the prompt argument",
            ));
        }
        (InputFormat::StreamJson, None) if !is_stream => {
            return Ok(super::wrong("--input-format stream-json requires --output-format stream-json"));
        }
        (InputFormat::StreamJson, None) => Source::Messages,
        (InputFormat::Text, prompt) => match Source::of(prompt) {
            Some(source) => source,
            None => {
                return Ok(super::wrong(
                    "a prompt is missing, for example: kode-ls run \"why does the build fail?\"",
                ));
            }
        },
    };
    let schema = args.output_schema.as_deref().map(OutputSchema::read).transpose()?;
    let mut asked = args.session;
    let rules = match asked.rules() {
        Ok(rules) => rules,
        Err(error) => return Ok(super::wrong(&format!("{error:#}"))),
    };
    if let Some(schema) = &schema {
        asked.add_instructions(&schema.instructions());
    }
    // Read the first prompt before a session exists.
    let mut input = Input::open(source);
    let mut next = input.next().await?;
    let begun = begin(asked, rules, &args.model).await?;
    let session = Arc::clone(&begun.session);
    if let Some(max_turns) = args.max_turns {
        session.turns().limit_turns(max_turns);
    }
    session.turns().limit_budget(Budget { max_cost_usd: args.max_cost_usd, max_minutes: args.max_minutes });
    let mut runner = Runner {
        events: session.events().subscribe(session.events().newest(), vec![]),
        printer: Printer::new(args.output_format, args.include_partial_messages, &session),
        session,
        schema: schema.map(Arc::new),
    };
    let outcome: anyhow::Result<ExitCode> = async {
        runner.printer.start(&begun.engine)?;
        let mut code = ExitCode::SUCCESS;
        while let Some(text) = next {
            let (reason, has_failed) = runner.carry_out(text).await?;
            code = exit_code(reason, has_failed);
            if reason.outcome() == TurnOutcome::Cancelled {
                return Ok(code);
            }
            next = input.next().await?;
        }
        let was_refused = args.fail_on_denial && runner.printer.was_refused();
        Ok(if was_refused { ExitCode::from(DENIED) } else { code })
    }
    .await;
    // Also after a write error: tasks must not outlive this process.
    runner.printer.proceed_hint(&begun);
    drop(runner);
    begun.end().await;
    outcome
}

/// Runs the prompts of one session.
struct Runner {
    session: Arc<Session>,
    events: Subscription,
    printer: Printer,
    schema: Option<Arc<OutputSchema>>,
}

impl Runner {
    /// Runs one prompt. Returns how the turn ended, and whether it failed although the turn completed.
    async fn carry_out(&mut self, text: String) -> anyhow::Result<(TurnEnd, bool)> {
        if let Some(question) = btw::asked(&text) {
            let mut signals = EndSignals::listen().context("could not listen for signals")?;
            self.printer.begin();
            let asked = aside::ask(&self.session, question, &mut signals).await;
            self.printer.note_aside(asked.text, asked.has_failed);
            self.printer.finish(&asked.report, None, None)?;
            return Ok((asked.report.reason, asked.has_failed));
        }
        let mut finished = self.turn(text).await?;
        let mut fault = None;
        let schema = self.schema.clone();
        if let Some(schema) = &schema {
            let mut corrections = 0;
            loop {
                fault = schema.fault(&self.session.answer());
                let Some(fault) = &fault else { break };
                if corrections == CORRECTIONS || finished.reason != TurnEnd::EndTurn {
                    break;
                }
                corrections += 1;
                finished = self.turn(schema.correction(fault)).await?;
            }
        }
        let value = schema.and_then(|schema| schema.value(&self.session.answer()));
        self.printer.finish(&finished, value, fault.as_deref())?;
        Ok((finished.reason, self.printer.has_failed(&finished) || fault.is_some()))
    }

    async fn turn(&mut self, text: String) -> anyhow::Result<TurnReport> {
        let Self { session, events, printer, .. } = self;
        printer.begin();
        let mut signals = EndSignals::listen().context("could not listen for signals")?;
        let submitted = match session.prompts().submit(Prompt::from(text)) {
            Err(SubmitError::ChatDisabled) => {
                printer.note_fault(CHAT_DISABLED);
                return Ok(TurnReport::of_none(TurnEnd::ChatDisabled));
            }
            submitted => submitted?,
        };
        match submitted {
            SubmitOutcome::Started(turn) => {
                watch(session, (events, &mut signals), &turn, Answerer::at_hand(), printer).await
            }
            SubmitOutcome::Answered { item, .. } => watch_answer(events, &item, printer).await,
            SubmitOutcome::Queued(_) | SubmitOutcome::Steering { .. } => {
                anyhow::bail!("the session was busy")
            }
        }
    }
}

fn exit_code(reason: TurnEnd, has_failed: bool) -> ExitCode {
    match reason.outcome() {
        TurnOutcome::Done if has_failed => ExitCode::FAILURE,
        TurnOutcome::Done => ExitCode::SUCCESS,
        TurnOutcome::Cancelled => ExitCode::from(INTERRUPTED),
        TurnOutcome::Unfinished => ExitCode::FAILURE,
    }
}
