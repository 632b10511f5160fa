//! Prompts that are commands: answered here, or expanded for the model.
//!
//! Rule: the output of a command is in the transcript and not in the requests to the model. An unknown name is answered with
//! the names that are like it, and no model is called.

mod control;
mod extensions;
mod goal;
mod login;
mod plugin;
mod show;
mod trust;
mod worktree;

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use goal::GoalEffect;

use crate::prompt::PromptKind;
use crate::session::Session;
use crate::session::directory::SessionDirectory;
use crate::state::new_item;
use crate::state::turn::PendingPrompt;
use crate::turn::services::{Services, TurnContext};
use kode_base::ids::{ItemId, TurnId};
use kode_config::command::{BUILT_INS, BuiltInCommand, BuiltInId, CommandReport, CommandSource, CommandUse};
use kode_config::extension::nearest;
use kode_config::settings::TrustRequest;
use kode_model::Block;
use kode_permission::equipment::Equipment;
use kode_record::event::{Item, ItemBody};
use kode_record::prompt::PromptPart;
use kode_record::record::Record;
use kode_tool::delegation::Delegation;

/// The most commands that wait to be answered in the background.
const COMMAND_LIMIT: usize = 100;

/// The outcome of the command of a turn.
pub(super) enum SlashOutcome {
    /// A message for the model, with its attachments.
    Input(String, Vec<PromptPart>),
    /// An answer; no model is called.
    Answered,
    /// A sub-agent carries it out, and the model reports the result.
    Delegation(Box<Delegation>),
}

/// A name and its arguments, as the user typed them.
#[derive(Clone, Copy)]
struct CommandLine<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// A command that is answered while a turn runs, or without one.
#[derive(Debug)]
pub(super) struct QueuedCommand {
    turn: TurnId,
    item: ItemId,
    command: &'static BuiltInCommand,
    arguments: String,
}

/// The commands of a session that are answered in the background.
pub(super) struct CommandQueue {
    queue: mpsc::Sender<QueuedCommand>,
    /// The trust requests that the user was shown last.
    requests_shown: Mutex<Vec<TrustRequest>>,
}

/// The context of a built-in command.
struct CommandContext<'a> {
    session: &'a Arc<Session>,
    directory: &'a dyn SessionDirectory,
    /// Whether it has a turn of its own.
    in_turn: bool,
    arguments: &'a str,
    cancel: &'a CancellationToken,
}

impl CommandQueue {
    /// The receiver gets the commands to answer.
    pub(super) fn new() -> (Arc<Self>, mpsc::Receiver<QueuedCommand>) {
        let (queue, receiver) = mpsc::channel(COMMAND_LIMIT);
        (Arc::new(Self { queue, requests_shown: Mutex::default() }), receiver)
    }

    /// Queues a command that is answered at once, also while a turn runs; `None` for any other prompt, or when too many wait.
    pub(super) fn answer_at_once(
        &self,
        running: Option<&TurnId>,
        prompt: &PromptKind,
    ) -> Option<(TurnId, ItemId)> {
        let PromptKind::BuiltIn { command, arguments, .. } = prompt else { return None };
        if !command.is_at_once(arguments) {
            return None;
        }
        if running.is_none() && !matches!(command.which, BuiltInId::Rewind | BuiltInId::Fork) {
            return None;
        }
        let turn = running.cloned().unwrap_or_else(TurnId::generate);
        let (item, arguments) = (ItemId::generate(), arguments.clone());
        let queued = QueuedCommand { turn: turn.clone(), item: item.clone(), command, arguments };
        self.queue.try_send(queued).ok().map(|()| (turn, item))
    }
}

/// Answers or expands the prompt of a turn where it is a command.
pub(super) async fn take_command(
    session: &Arc<Session>,
    directory: &dyn SessionDirectory,
    turn: TurnContext<'_>,
    pending: PendingPrompt,
    cancel: &CancellationToken,
) -> SlashOutcome {
    let PendingPrompt { item, prompt } = pending;
    let kind = prompt.kind().clone();
    let (command, name, arguments) = match &kind {
        PromptKind::Text | PromptKind::Note(_) | PromptKind::Compaction { .. } => {
            let (text, parts) = prompt.into_input();
            return SlashOutcome::Input(text, parts);
        }
        PromptKind::Named { name, arguments } => {
            return extensions::take_named(turn, &item, &prompt, CommandLine { name, arguments }, cancel)
                .await;
        }
        PromptKind::BuiltIn { command, name, arguments } => (*command, name, arguments),
    };
    let (services, line) = (turn.services, CommandLine { name, arguments });
    let parts = prompt.into_input().1;
    if let Some((text, equipment)) = expand_built_in(command.which, arguments) {
        turn.conversation.equip(turn.id, equipment);
        replace_prompt(services, turn.id, &item, line, CommandSource::BuiltIn, text);
        return SlashOutcome::Input(arguments.clone(), parts);
    }
    let context = CommandContext { session, directory, in_turn: true, arguments, cancel };
    // The text for the model, where the command has it work.
    let (report, begins) = match command.which {
        BuiltInId::Goal => match context.goal(Some(turn.id)) {
            GoalEffect::Answer(report) => (report, None),
            GoalEffect::Begin(report, text) => (report, Some(text)),
        },
        which => {
            let report = context.carry_out(command).await;
            let plans = which == BuiltInId::Plan && !arguments.is_empty() && !report.failed;
            (report, plans.then(|| arguments.clone()))
        }
    };
    if begins.is_none() {
        record_use(services, turn.id, &item, line, CommandSource::BuiltIn, Vec::new());
    }
    record_answer(services, turn.id, ItemId::generate(), line, report);
    match begins {
        Some(text) => {
            replace_prompt(services, turn.id, &item, line, CommandSource::BuiltIn, text);
            SlashOutcome::Input(arguments.clone(), parts)
        }
        None => SlashOutcome::Answered,
    }
}

/// Replaces the prompt by the text of a command for the model.
fn replace_prompt(
    services: &Services,
    turn: &TurnId,
    item: &ItemId,
    line: CommandLine<'_>,
    source: CommandSource,
    text: String,
) {
    record_use(services, turn, item, line, source, with_news(services, text));
    services.edits.enter_given_news(turn);
}

/// Records that the prompt of a turn was a command; `content` is its text for the model.
fn record_use(
    services: &Services,
    turn: &TurnId,
    item: &ItemId,
    line: CommandLine<'_>,
    source: CommandSource,
    content: Vec<Block>,
) {
    let (name, arguments) = (line.name.to_owned(), line.arguments.to_owned());
    let command = Some(CommandUse { name, arguments, source });
    let (turn, item) = (turn.clone(), item.clone());
    services.core.commit(Record::Commanded { turn, item, command, content });
}

/// Adds the output of a command to the transcript.
fn record_answer(
    services: &Services,
    turn: &TurnId,
    id: ItemId,
    line: CommandLine<'_>,
    report: CommandReport,
) {
    let CommandReport { text, data, failed, go_to } = report;
    let (name, arguments, data) = (line.name.to_owned(), line.arguments.to_owned(), data.map(Box::new));
    let body = ItemBody::Command { name, arguments, text, data, failed, go_to };
    let item = Item { id, ..new_item(turn, body) };
    services.core.commit(Record::Item { item, streamed: false });
}

/// A text for the model, with the news that it does not have yet before it.
fn with_news(services: &Services, text: String) -> Vec<Block> {
    let news = services.edits.take_news();
    news.into_iter().chain([text]).map(|text| Block::Text { text }).collect()
}

/// The answer to a name that nothing has.
fn unknown(services: &Services, name: &str) -> CommandReport {
    let catalog = services.extensions.catalog();
    let built_in = BUILT_INS.iter().flat_map(|one| std::iter::once(&one.name).chain(one.aliases)).copied();
    let own = catalog.all().filter(|one| one.user_may_call).map(|one| one.name.as_str());
    let names: Vec<&str> = built_in.chain(own).collect();
    let nearest = nearest(name, &names);
    let hint = match nearest.as_slice() {
        [] => "`/help` lists them.".to_owned(),
        nearest => {
            let nearest: Vec<_> = nearest.iter().map(|name| format!("`/{name}`")).collect();
            format!("Did you mean {}? `/help` lists all.", nearest.join(", "))
        }
    };
    let data = json!({ "unknown": name, "nearest": nearest });
    CommandReport::failure(format!("There is no command `/{name}`. {hint}")).with(data)
}

/// Answers the queued commands, one after another, until the session is closed.
pub(super) async fn answer_queued(
    session: Arc<Session>,
    mut waiting: mpsc::Receiver<QueuedCommand>,
    directory: Arc<dyn SessionDirectory>,
) {
    let services = Arc::clone(&session.services);
    loop {
        let queued = tokio::select! {
            biased;
            () = services.core.closing() => break,
            queued = waiting.recv() => queued,
        };
        let Some(QueuedCommand { turn, item, command, arguments }) = queued else { break };
        let cancel = services.core.cancel_token();
        if !session.is_busy() {
            services.extensions.refresh().await;
        }
        services.gate.refresh().await;
        let context = CommandContext {
            session: &session,
            directory: &*directory,
            in_turn: false,
            arguments: &arguments,
            cancel: &cancel,
        };
        let report = AssertUnwindSafe(context.carry_out(command)).catch_unwind().await;
        let report = report.unwrap_or_else(|_| {
            tracing::error!(command = command.name, "a command panicked");
            CommandReport::failure(
                "The command broke off because of a fault in kode-ls itself; the log has the details.",
            )
        });
        let line = CommandLine { name: command.name, arguments: &arguments };
        record_answer(&services, &turn, item, line, report);
        services.core.sync_soon();
    }
}

impl CommandContext<'_> {
    /// Carries out a built-in command that is answered without the model.
    async fn carry_out(&self, command: &BuiltInCommand) -> CommandReport {
        match command.which {
            BuiltInId::AddDir => self.add_folder().await,
            BuiltInId::Agents => self.agents(),
            BuiltInId::Btw => CommandReport::failure(
                "A side question is answered beside the conversation and waits in no queue. Type `/btw` with the question as a \
                 prompt of its own.",
            ),
            BuiltInId::Clear => self.clear().await,
            BuiltInId::Config => self.config(),
            BuiltInId::Context => self.context(),
            BuiltInId::Cost => self.cost(),
            BuiltInId::Doctor => self.doctor().await,
            BuiltInId::Effort => self.effort(),
            BuiltInId::Elsewhere(instead) => CommandReport::text(instead),
            BuiltInId::Export => self.export().await,
            BuiltInId::Fork => self.fork().await,
            BuiltInId::Goal => match self.goal(None) {
                GoalEffect::Answer(report) | GoalEffect::Begin(report, _) => report,
            },
            BuiltInId::Help => self.help().await,
            BuiltInId::Hooks => self.hooks().await,
            BuiltInId::Mcp => self.mcp().await,
            BuiltInId::Memory => self.memory(),
            BuiltInId::Model => self.model().await,
            BuiltInId::OutputStyle => self.output_style().await,
            BuiltInId::Permissions => self.permissions().await,
            BuiltInId::Plan => self.plan(),
            BuiltInId::Plugin => self.plugin().await,
            BuiltInId::ReloadSkills => self.reload_skills().await,
            BuiltInId::Rename => self.rename(),
            BuiltInId::Resume => self.resume().await,
            BuiltInId::Rewind => self.rewind(),
            BuiltInId::Sandbox => self.sandbox(),
            BuiltInId::Skills => self.skills(),
            BuiltInId::Status => self.status().await,
            BuiltInId::Tasks => self.tasks(),
            BuiltInId::Todos => self.todos(),
            BuiltInId::Trust => self.trust().await,
            BuiltInId::Worktree => self.worktree().await,
            // Carried out by the turn itself.
            BuiltInId::Compact
            | BuiltInId::Commit
            | BuiltInId::Git
            | BuiltInId::Init
            | BuiltInId::PrComments
            | BuiltInId::Review
            | BuiltInId::SecurityReview => {
                let names = "`commit`, with a hint if you like, or `review`, with what to review";
                CommandReport::failure(format!("Say behind `/{}` what to do: {names}.", command.name))
            }
        }
    }
}

/// The text of a built-in command for the model, with its equipment; `None` where the arguments do not determine it.
fn expand_built_in(which: BuiltInId, arguments: &str) -> Option<(String, Equipment)> {
    const COMMIT: &str = include_str!("../prompts/commands/commit.md");
    const REVIEW: &str = include_str!("../prompts/commands/review.md");
    let (prompt, arguments) = match which {
        BuiltInId::Init => (include_str!("../prompts/commands/init.md"), arguments),
        BuiltInId::Commit => (COMMIT, arguments),
        BuiltInId::Review => (REVIEW, arguments),
        BuiltInId::SecurityReview => (include_str!("../prompts/commands/security_review.md"), arguments),
        BuiltInId::PrComments => (include_str!("../prompts/commands/pr_comments.md"), arguments),
        BuiltInId::Git => {
            let (what, rest) = arguments.split_once(char::is_whitespace).unwrap_or((arguments, ""));
            match what {
                "commit" => (COMMIT, rest.trim()),
                "review" => (REVIEW, rest.trim()),
                _ => return None,
            }
        }
        _ => return None,
    };
    let mut text = prompt.trim_end().to_owned();
    if !arguments.is_empty() {
        text.push_str("\n\nThe user said with it: ");
        text.push_str(arguments);
    }
    let mut equipment = Equipment::default();
    if prompt == COMMIT {
        // A commit is asked for in every mode: that is what the user confirms.
        equipment.ask = ["Bash(git commit:*)", "Bash(git push:*)"].map(str::to_owned).to_vec();
    }
    Some((text, equipment))
}
