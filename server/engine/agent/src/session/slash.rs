//! Prompts that are commands: found out when their turn begins, answered here or handed to the model.
//!
//! Rule: what a command has to say stands in the transcript and not in what the model is sent. A name that means nothing is
//! answered with those that are like it, and no model is asked.

mod control;
mod extensions;
mod plugin;
mod show;
mod trust;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::engine::desk::Desk;
use crate::input::Prompt;
use crate::session::conversation::Conversation;
use crate::session::state::Attaching;
use crate::session::{Session, new_item};
use kode_base::ids::{ItemId, TurnId};
use kode_config::command::{
    BUILT_INS, BuiltInCommand, BuiltInId, CommandReport, CommandSource, CommandUse, TypedCommand,
};
use kode_config::extension::nearest;
use kode_model::Block;
use kode_permission::equipment::Equipment;
use kode_record::event::{Item, ItemBody};
use kode_record::record::Record;
use kode_tool::delegation::Delegation;

/// So many commands wait at most to be answered beside a turn.
pub(super) const BESIDE_LIMIT: usize = 100;

/// What became of a prompt when it was looked at.
pub(super) enum Taken {
    /// It is words for the model, with what goes with them.
    Words(Prompt),
    /// It was answered; no model is asked.
    Answered,
    /// A sub-agent carries it out, and the model tells of it.
    Delegated(Delegation),
}

/// A command that is answered beside a turn, or where none runs.
#[derive(Debug)]
pub(super) struct Beside {
    turn: TurnId,
    item: ItemId,
    built_in: &'static BuiltInCommand,
    arguments: String,
}

/// What the carrying out of a command needs.
struct Bench<'a> {
    session: &'a Arc<Session>,
    desk: &'a dyn Desk,
    /// Whether it is carried out in a turn of its own.
    in_turn: bool,
    arguments: &'a str,
    cancel: &'a CancellationToken,
}

impl Session {
    /// Finds out what the prompt of a turn is, and answers it where it is a command that no model is asked for.
    pub(super) async fn take_command(
        self: &Arc<Self>,
        desk: &dyn Desk,
        turn: &TurnId,
        attaching: Attaching,
        cancel: &CancellationToken,
    ) -> Taken {
        let Attaching { item, prompt } = attaching;
        let Some(typed) = TypedCommand::read(&prompt.text) else { return Taken::Words(prompt) };
        let Some(built_in) = typed.built_in() else {
            return self.take_own_command(turn, &item, &prompt, typed, cancel).await;
        };
        let arguments = typed.arguments;
        if let Some((text, equipment)) = asked(built_in.which, arguments) {
            Conversation::main(self).equip(turn, equipment);
            self.say(turn, &item, typed, CommandSource::BuiltIn, text);
            return Taken::Words(Prompt { text: arguments.to_owned(), ..prompt });
        }
        let bench = Bench { session: self, desk, in_turn: true, arguments, cancel };
        let report = bench.carry_out(built_in).await;
        let goes_on = built_in.which == BuiltInId::Plan && !arguments.is_empty() && !report.failed;
        if !goes_on {
            self.note_command(turn, &item, typed, CommandSource::BuiltIn, Vec::new());
        }
        self.answer_command(turn, ItemId::generate(), typed, report);
        if goes_on {
            let text = arguments.to_owned();
            self.say(turn, &item, typed, CommandSource::BuiltIn, text.clone());
            return Taken::Words(Prompt { text, ..prompt });
        }
        Taken::Answered
    }

    /// Hands a command over that is to be answered at once, beside the running turn or where none runs. Nothing when it is
    /// none of these, or when too many wait.
    pub(super) fn begin_beside(&self, running: Option<&TurnId>, prompt: &str) -> Option<(TurnId, ItemId)> {
        let typed = TypedCommand::read(prompt)?;
        let built_in = typed.built_in().filter(|built_in| built_in.is_at_once(typed.arguments))?;
        if running.is_none() && !matches!(built_in.which, BuiltInId::Rewind | BuiltInId::Fork) {
            return None;
        }
        let turn = running.cloned().unwrap_or_else(TurnId::generate);
        let (item, arguments) = (ItemId::generate(), typed.arguments.to_owned());
        let beside = Beside { turn: turn.clone(), item: item.clone(), built_in, arguments };
        self.beside.try_send(beside).ok().map(|()| (turn, item))
    }

    /// Puts the words of a command to the model in the prompt's place.
    fn say(
        &self,
        turn: &TurnId,
        item: &ItemId,
        typed: TypedCommand<'_>,
        source: CommandSource,
        text: String,
    ) {
        self.note_command(turn, item, typed, source, self.with_news(text));
        self.note_told(turn);
    }

    fn note_command(
        &self,
        turn: &TurnId,
        item: &ItemId,
        typed: TypedCommand<'_>,
        source: CommandSource,
        content: Vec<Block>,
    ) {
        let (name, arguments) = (typed.name.to_owned(), typed.arguments.to_owned());
        let command = Some(CommandUse { name, arguments, source });
        let (turn, item) = (turn.clone(), item.clone());
        self.commit(Record::Commanded { turn, item, command, content });
    }

    /// Puts what a command says into the transcript.
    fn answer_command(&self, turn: &TurnId, id: ItemId, typed: TypedCommand<'_>, report: CommandReport) {
        let CommandReport { text, data, failed, go_to } = report;
        let (name, arguments) = (typed.name.to_owned(), typed.arguments.to_owned());
        let body = ItemBody::Command { name, arguments, text, data, failed, go_to };
        let item = Item { id, ..new_item(turn, body) };
        self.commit(Record::Item { item, streamed: false });
    }

    /// What is said of a name that means nothing.
    fn unknown(&self, name: &str) -> CommandReport {
        let catalog = self.catalog();
        let built_in =
            BUILT_INS.iter().flat_map(|one| std::iter::once(&one.name).chain(one.aliases)).copied();
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
}

/// Answers commands beside the turns, one after another, until the session is closed.
pub(super) async fn answer_beside(
    session: Arc<Session>,
    mut waiting: mpsc::Receiver<Beside>,
    desk: Arc<dyn Desk>,
) {
    loop {
        let beside = tokio::select! {
            biased;
            () = session.cancel.cancelled() => break,
            beside = waiting.recv() => beside,
        };
        let Some(Beside { turn, item, built_in, arguments }) = beside else { break };
        let cancel = session.cancel.child_token();
        if !session.is_busy() {
            session.look_for_extensions().await;
        }
        session.look().await;
        let bench =
            Bench { session: &session, desk: &*desk, in_turn: false, arguments: &arguments, cancel: &cancel };
        let report = AssertUnwindSafe(bench.carry_out(built_in)).catch_unwind().await;
        let report = report.unwrap_or_else(|_| {
            tracing::error!(command = built_in.name, "a command panicked");
            CommandReport::failure(
                "The command broke off because of a fault in kode-ls itself; the log has the details.",
            )
        });
        session.answer_command(
            &turn,
            item,
            TypedCommand { name: built_in.name, arguments: &arguments },
            report,
        );
        session.sync_soon();
    }
}

impl Bench<'_> {
    /// Carries out a built-in command that is answered without the model.
    async fn carry_out(&self, built_in: &BuiltInCommand) -> CommandReport {
        match built_in.which {
            BuiltInId::AddDir => self.add_folder().await,
            BuiltInId::Agents => self.agents(),
            BuiltInId::Clear => self.clear().await,
            BuiltInId::Config => self.config(),
            BuiltInId::Context => self.context(),
            BuiltInId::Cost => self.cost(),
            BuiltInId::Doctor => self.doctor().await,
            BuiltInId::Effort => self.effort(),
            BuiltInId::Elsewhere(instead) => CommandReport::text(instead),
            BuiltInId::Export => self.export().await,
            BuiltInId::Fork => self.fork().await,
            BuiltInId::Help => self.help().await,
            BuiltInId::Hooks => self.hooks().await,
            BuiltInId::Mcp => self.mcp(),
            BuiltInId::Memory => self.memory(),
            BuiltInId::Model => self.model(),
            BuiltInId::OutputStyle => self.output_style().await,
            BuiltInId::Permissions => self.permissions().await,
            BuiltInId::Plan => self.plan(),
            BuiltInId::Plugin => self.plugin().await,
            BuiltInId::ReloadSkills => self.reload_skills().await,
            BuiltInId::Rename => self.rename(),
            BuiltInId::Resume => self.resume().await,
            BuiltInId::Rewind => self.rewind(),
            BuiltInId::Skills => self.skills(),
            BuiltInId::Status => self.status().await,
            BuiltInId::Tasks => self.tasks(),
            BuiltInId::Todos => self.todos(),
            BuiltInId::Trust => self.trust().await,
            // Carried out by the turn itself.
            BuiltInId::Compact
            | BuiltInId::Commit
            | BuiltInId::Git
            | BuiltInId::Init
            | BuiltInId::PrComments
            | BuiltInId::Review
            | BuiltInId::SecurityReview => {
                let names = "`commit`, with a hint if you like, or `review`, with what to review";
                CommandReport::failure(format!("Say behind `/{}` what to do: {names}.", built_in.name))
            }
        }
    }
}

/// What a built-in command asks the model, with what it brings along; `None` when its arguments do not say what.
fn asked(which: BuiltInId, arguments: &str) -> Option<(String, Equipment)> {
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
