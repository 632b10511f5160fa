//! `kode-ls chat`: a conversation in the terminal.
//!
//! Rule: between turns the line editor owns the terminal; during a turn only permission prompts and questions read from it.

mod editor;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use clap::Args;
use kode_engine::agent::engine::Engine;
use kode_engine::agent::prompt::Prompt;
use kode_engine::agent::session::Session;
use kode_engine::agent::session::prompts::SubmitOutcome;
use kode_engine::base::ids::SessionId;
use kode_engine::config::command::btw;
use kode_engine::record::event::{Event, ItemBody, Subscription};

use crate::cli::questions::Answerer;
use crate::cli::run::{RunSession, SessionArgs, begin, figures};
use crate::cli::screen::Screen;
use crate::cli::watch::{TurnReport, TurnView, watch, watch_answer};
use crate::cli::{ModelArgs, aside, terminal};
use crate::display::printable;
use crate::home;
use crate::signals::EndSignals;
use editor::{EditorLine, LineEditor};

/// The file of the prompt history, in the state folder.
const HISTORY: &str = "chat-history";

/// The arguments of `kode-ls chat`.
#[derive(Debug, Default, Args)]
pub struct ChatArgs {
    /// The first prompt
    prompt: Option<String>,

    #[command(flatten)]
    session: SessionArgs,

    #[command(flatten)]
    model: ModelArgs,
}

/// Whether standard input, output and error are terminals.
pub(super) fn can_talk() -> bool {
    terminal::is_interactive() && io::stdout().is_terminal()
}

/// Two lines for a terminal where no conversation can start.
pub(super) fn introduction(problem: &str) -> String {
    format!(
        "kode-ls is a coding agent that editors start as a language server. `kode-ls help` lists its commands.\n{problem}\n"
    )
}

/// Runs the conversation until the user ends it.
///
/// # Errors
/// When the session cannot start, or the terminal fails.
pub async fn run(args: ChatArgs) -> anyhow::Result<ExitCode> {
    if !can_talk() {
        return Ok(super::wrong("`kode-ls chat` requires a terminal. Use `kode-ls run` in scripts"));
    }
    let rules = match args.session.rules() {
        Ok(rules) => rules,
        Err(error) => return Ok(super::wrong(&format!("{error:#}"))),
    };
    let begun = begin(args.session, rules, &args.model).await?;
    let outcome = Chat::new(&begun)?.talk(args.prompt).await;
    if begun.is_kept() {
        terminal::error_line(&terminal::dim("— continue with: kode-ls chat -c"));
    }
    begun.end().await;
    outcome.map(|()| ExitCode::SUCCESS)
}

struct Chat {
    engine: Engine,
    session: Arc<Session>,
    events: Subscription,
    editor: LineEditor,
    view: ChatView,
}

impl Chat {
    fn new(begun: &RunSession) -> anyhow::Result<Self> {
        let (engine, session) = (begun.engine.clone(), Arc::clone(&begun.session));
        let events = session.events().subscribe(session.events().newest(), vec![]);
        let history = home::folder()?.join(HISTORY);
        let editor = LineEditor::start(engine.clone(), session.roots(), history.as_path().to_owned());
        Ok(Self { engine, session, events, editor, view: ChatView::new() })
    }

    async fn talk(&mut self, first: Option<String>) -> anyhow::Result<()> {
        let snapshot = self.session.snapshot(0);
        let models = self.engine.models();
        let model = models.profile(&snapshot.model).map_or(snapshot.model.as_str(), |profile| &profile.model);
        let (mode, folder) = (snapshot.mode.name(), self.session.cwd());
        terminal::error_line(&format!(
            "kode-ls {} · {} · mode {mode} · {}",
            env!("CARGO_PKG_VERSION"),
            printable(model),
            printable(&folder.to_string())
        ));
        terminal::error_line(&terminal::dim(
            "Tab completes / and @ · \\ at the end continues the line · Ctrl-C stops · Ctrl-D exits",
        ));
        let mut next = first;
        loop {
            let text = match next.take() {
                Some(text) => text,
                None => match self.editor.read(&format!("\n{}> ", self.mark())).await? {
                    EditorLine::Text(text) => text,
                    EditorLine::Nothing => continue,
                    EditorLine::End => return Ok(()),
                },
            };
            match text.trim() {
                "" => continue,
                "/quit" | "/exit" => return Ok(()),
                // The name of the list on the command line.
                "/sessions" => self.turn("/resume".to_owned()).await?,
                text => self.turn(text.to_owned()).await?,
            }
        }
    }

    /// The mode, unless it is the default one.
    fn mark(&self) -> String {
        match self.session.mode() {
            kode_engine::base::mode::Mode::Default => String::new(),
            mode => format!("{} ", mode.name()),
        }
    }

    async fn turn(&mut self, text: String) -> anyhow::Result<()> {
        self.view.begin();
        let mut signals = EndSignals::listen().context("could not listen for signals")?;
        if let Some(question) = btw::asked(&text) {
            let asked = aside::ask(&self.session, question, &mut signals).await;
            self.view.said = Some(asked.text).filter(|text| !text.is_empty());
            return Ok(self.view.finish(&asked.report)?);
        }
        let submitted = match self.session.prompts().submit(Prompt::from(text)) {
            Ok(submitted) => submitted,
            Err(error) => {
                terminal::error_line(&format!("error: {error}"));
                return Ok(());
            }
        };
        let finished = match submitted {
            SubmitOutcome::Started(turn) => {
                let sources = (&mut self.events, &mut signals);
                watch(&self.session, sources, &turn, Answerer::Person, &mut self.view).await?
            }
            SubmitOutcome::Answered { item, .. } => {
                watch_answer(&mut self.events, &item, &mut self.view).await?
            }
            SubmitOutcome::Queued(_) | SubmitOutcome::Steering { .. } => {
                terminal::error_line("! Another window is running a turn. The prompt is queued.");
                return Ok(());
            }
        };
        self.view.finish(&finished)?;
        if let Some(id) = self.view.go_to.take() {
            self.go_to(&id).await?;
        }
        Ok(())
    }

    /// Continues in another session.
    async fn go_to(&mut self, id: &SessionId) -> anyhow::Result<()> {
        self.session = self.engine.load_session(&self.session.roots(), id).await?;
        self.events = self.session.events().subscribe(self.session.events().newest(), vec![]);
        Ok(())
    }
}

/// The view of a turn.
struct ChatView {
    screen: Screen,
    /// The output of a slash command.
    said: Option<String>,
    /// The session to continue with.
    go_to: Option<SessionId>,
}

impl ChatView {
    fn new() -> Self {
        Self { screen: Screen::of_process(true), said: None, go_to: None }
    }

    fn begin(&mut self) {
        self.said = None;
        self.screen.begin();
    }

    fn finish(&mut self, finished: &TurnReport) -> io::Result<()> {
        if let Some(said) = self.said.take() {
            self.screen.line("")?;
            return terminal::answer(said.trim_end());
        }
        let figures = figures(Some(finished));
        if !figures.is_empty() {
            self.screen.line(&terminal::dim(&format!("— {}", figures.join(" · "))))?;
        }
        Ok(())
    }
}

impl TurnView for ChatView {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        if let Event::ItemAdded { item } = event
            && let ItemBody::Command { text, go_to, .. } = &item.body
        {
            self.said = Some(text.clone());
            self.go_to.clone_from(go_to);
        }
        self.screen.event(event)
    }

    fn tick(&mut self) {
        self.screen.tick();
    }
}
