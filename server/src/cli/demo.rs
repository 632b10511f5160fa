//! `kode-ls demo`: one complete turn in a temporary project, with the built-in scripted model.
//!
//! Rule: nothing is acted: the scripted model is served on loopback and asked through the real provider code, the
//! tools and the gate are the real ones, and the exit code says whether all of it happened.

#![expect(clippy::disallowed_methods, reason = "it writes the project of the demo")]

use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use kode_engine::agent::engine::{CONCURRENCY, Engine, EngineOptions, NewSession};
use kode_engine::agent::prompt::Prompt;
use kode_engine::agent::session::prompts::SubmitOutcome;
use kode_engine::base::mode::Mode;
use kode_engine::base::paths::{AbsPath, real_path};
use kode_engine::config::policies::NoPolicyProvider;
use kode_engine::mcp::Mcp;
use kode_engine::model::models::Models;
use kode_engine::model::profile::Profile;
use kode_engine::permission::Deliveries;
use kode_engine::providers::connector::Providers;
use kode_engine::record::event::{CallState, Event, Item, ItemBody, TurnEnd};
use kode_engine::text::host::NoEditor;
use kode_engine::tool::languages::NoLanguages;
use kode_engine::tools::built_in::built_in;

use crate::cli::questions::Answerer;
use crate::cli::screen::Screen;
use crate::cli::terminal;
use crate::cli::watch::{TurnView, watch};
use crate::signals::EndSignals;

/// The prompt; the script recognizes it.
const PROMPT: &str = "Fix the greeting in this demo-project: it says `Helo`.";

/// The arguments of `kode-ls demo`.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// Allow every permission prompt
    #[arg(long)]
    yes: bool,
}

/// Plays the demo.
///
/// # Errors
/// What cannot be started; whether the turn did all it should is the exit code.
pub async fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let folder = tempfile::Builder::new().prefix("kode-ls-demo-").tempdir().context("no temporary folder")?;
    let root = real_path(folder.path()).context("no temporary folder")?;
    let project = root.join("project");
    lay_out(&project).context("could not write the demo project")?;
    let demo = Profile::demo();
    let name = demo.name.clone();
    let home = AbsPath::new(root.join("state"))?;
    let engine = Engine::new(EngineOptions {
        home: home.clone(),
        tools: built_in(),
        servers: Arc::new(Mcp::new(home)),
        languages: Arc::new(NoLanguages),
        host: Arc::new(NoEditor),
        models: Models::new(Ok(demo), Arc::new(Providers)),
        policies: Arc::new(NoPolicyProvider),
        concurrency: CONCURRENCY,
        save_before_commands: true,
        deliveries: Deliveries::default(),
    });
    let roots = vec![AbsPath::new(&project)?];
    let session = engine.new_session(NewSession { roots, mode: Some(Mode::Default), model: Some(name) })?;
    terminal::error_line(
        "A scripted model, served on loopback, works on a temporary project. Nothing leaves this machine.",
    );
    terminal::error_line(&format!("\n> {PROMPT}\n"));

    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    let mut signals = EndSignals::listen().context("could not listen for signals")?;
    let SubmitOutcome::Started(turn) = session.prompts().submit(Prompt::from(PROMPT))? else {
        anyhow::bail!("a new session was busy");
    };
    let answerer = if args.yes { Answerer::Yes } else { Answerer::at_hand() };
    let mut shown = DemoView(Screen::of_process(true));
    shown.0.begin();
    let finished = watch(&session, (&mut events, &mut signals), &turn, answerer, &mut shown).await?;
    let has_streamed = shown.0.streams();
    drop(shown);

    let items = session.snapshot(usize::MAX).items;
    let answer = session.answer();
    terminal::output("\n")?;
    if !has_streamed {
        terminal::answer(answer.trim())?;
        terminal::output("\n")?;
    }
    let greeting = std::fs::read_to_string(project.join("src/greeting.py")).unwrap_or_default();
    let completed = |tool| items.iter().any(|item| is_completed(item, tool));
    let checks = [
        ("the file was read", completed("Read")),
        ("the project was searched", completed("Grep")),
        ("the edit is on disk", completed("Edit") && greeting.contains("\"Hello, \"")),
        ("the command ran", completed("Bash")),
        ("the model answered", finished.reason == TurnEnd::EndTurn && !answer.is_empty()),
    ];
    // A refused call is no failure of the demo.
    let refused = items.iter().filter(|item| is_refused(item)).count();
    for (what, happened) in checks {
        let mark = match happened {
            true => "ok  ",
            false if refused > 0 && answerer == Answerer::Person => "no  ",
            false => "FAIL",
        };
        terminal::output(&format!("{mark} {what}\n"))?;
    }
    engine.shutdown().await;
    let all = checks.iter().all(|(_, happened)| *happened);
    if refused > 0 && answerer == Answerer::Person {
        terminal::error_line(
            "The demo is incomplete: you refused a call. Nothing was changed without your permission.",
        );
        return Ok(ExitCode::SUCCESS);
    }
    if !all && answerer == Answerer::Nobody {
        terminal::error_line(
            "The demo is incomplete: there was no terminal to ask in. Run it in a \
             terminal, or with --yes.",
        );
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn lay_out(project: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(project.join("src"))?;
    std::fs::write(project.join("README.md"), "# Greeting\n\nPrints a friendly greeting.\n")?;
    std::fs::write(
        project.join("src/greeting.py"),
        "def greet(name):\n    return \"Helo, \" + name\n\n\nif __name__ == \"__main__\":\n    print(greet(\"world\"))\n",
    )
}

fn is_completed(item: &Item, tool: &str) -> bool {
    matches!(&item.body, ItemBody::ToolCall(call) if call.name == tool && call.state == CallState::Completed)
}

fn is_refused(item: &Item) -> bool {
    matches!(&item.body, ItemBody::ToolCall(call) if call.state == CallState::Denied)
}

/// The output of the turn, with a diff for each change.
struct DemoView(Screen);

impl TurnView for DemoView {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.0.event(event)?;
        show_diff(event);
        Ok(())
    }

    fn tick(&mut self) {
        self.0.tick();
    }
}

fn show_diff(event: &Event) {
    let Event::ToolEnd { item } = event else { return };
    let ItemBody::ToolCall(call) = &item.body else { return };
    if let Some(unified) = call.structured.as_ref().and_then(|result| result["unified"].as_str()) {
        terminal::error_line(terminal::diff(unified).trim_end());
    }
}
