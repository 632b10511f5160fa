//! Commands and skills of files that the user has typed.
//!
//! Rule: the model gets the whole text or none of it; what goes wrong is told to the user alone.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::input::Prompt;
use crate::session::Session;
use crate::session::conversation::Conversation;
use crate::session::expand::Expanded;
use crate::session::slash::Taken;
use kode_base::blocking;
use kode_base::ids::{ItemId, TurnId};
use kode_base::paths::AbsPath;
use kode_config::command::{CommandReport, CommandSource, TypedCommand};
use kode_config::extension::arguments::split;
use kode_config::extension::{Catalog, ExtensionKind};
use kode_model::Block;
use kode_permission::equipment::Equipment;
use kode_record::event::NoticeLevel;
use kode_record::record::Record;
use kode_text::workspace::AccessOrder;
use kode_tool::delegation::Delegation;
use kode_tool::offer::McpPromptPart;

/// So many of the files that were read or changed last say which skills are of use.
const MAX_TOUCHED: usize = 200;

impl Session {
    /// Takes a prompt that names a command of no table.
    pub(super) async fn take_own_command(
        &self,
        turn: &TurnId,
        item: &ItemId,
        prompt: &Prompt,
        typed: TypedCommand<'_>,
        cancel: &CancellationToken,
    ) -> Taken {
        let catalog = self.catalog();
        let Some(extension) = catalog.typed(typed.name) else {
            if let Some(taken) = self.take_server_prompt(turn, item, prompt, typed, cancel).await {
                return taken;
            }
            if is_path(typed.name).await {
                return self.take_words(turn, item, prompt);
            }
            self.answer_command(turn, ItemId::generate(), typed, self.unknown(typed.name));
            return Taken::Answered;
        };
        let source = match extension.kind {
            ExtensionKind::Command => CommandSource::Command,
            ExtensionKind::Skill => CommandSource::Skill,
        };
        let conversation = Conversation::main(self);
        let expanded = match self.expand(&conversation, turn, extension, typed.arguments, cancel).await {
            Ok(expanded) => expanded,
            Err(reason) => {
                self.note_command(turn, item, typed, source, Vec::new());
                let report = CommandReport::failure(format!("`/{}` was not run: {reason}", typed.name));
                self.answer_command(turn, ItemId::generate(), typed, report);
                return Taken::Answered;
            }
        };
        let Expanded { extension, text, words, equipment, notes } = expanded;
        if !notes.is_empty() {
            let said = format!("`/{}`: {}.", typed.name, notes.join("; "));
            conversation.notice(turn, NoticeLevel::Warning, said, None);
        }
        conversation.bring_hooks(turn, extension.hooks);
        if let Some(kind) = extension.agent {
            let what = match extension.background {
                true => " in the background; tell them so, and what comes of it once you are told",
                false => "; tell them what comes of it",
            };
            let said = format!("The user has run `/{}`. A sub-agent carries it out{what}.", typed.name);
            self.say(turn, item, typed, source, said);
            let (description, model) = (format!("/{}", typed.name), equipment.model.clone());
            // It works by the same rules; model and effort are its own.
            conversation.equip(turn, Equipment { model: None, effort: None, ..equipment });
            let (resume, in_background) = (None, extension.background);
            return Taken::Delegated(Delegation {
                kind,
                description,
                prompt: text,
                model,
                resume,
                is_isolated: false,
                may_run_foreign: false,
                in_background,
                carried: Equipment::default(),
            });
        }
        conversation.equip(turn, equipment);
        self.say(turn, item, typed, source, text);
        Taken::Words(Prompt { text: words, ..prompt.clone() })
    }

    /// Takes a prompt that names a prompt of an MCP server; `None` when there is no such one.
    async fn take_server_prompt(
        &self,
        turn: &TurnId,
        item: &ItemId,
        prompt: &Prompt,
        typed: TypedCommand<'_>,
        cancel: &CancellationToken,
    ) -> Option<Taken> {
        let found = self.servers().prompts().into_iter().find(|known| known.command == typed.name)?;
        let arguments: Vec<_> = split(typed.arguments)
            .into_iter()
            .map(|word| match word.split_once('=') {
                Some((name, value)) if found.arguments.iter().any(|known| known.name == name) => {
                    (Some(name.to_owned()), value.to_owned())
                }
                Some(_) | None => (None, word),
            })
            .collect();
        let given = tokio::select! {
            given = self.servers().prompt(&found.server, &found.name, &arguments) => given,
            () = cancel.cancelled() => return Some(Taken::Answered),
        };
        let parts = match given {
            Ok(parts) => parts,
            Err(failure) => {
                self.note_command(turn, item, typed, CommandSource::Command, Vec::new());
                let report = CommandReport::failure(format!("`/{}` was not run: {failure}", typed.name));
                self.answer_command(turn, ItemId::generate(), typed, report);
                return Some(Taken::Answered);
            }
        };
        let text = |part: McpPromptPart| match part {
            McpPromptPart::Text(text) => text,
            McpPromptPart::Image(_) => "[an image that is not shown here]".to_owned(),
        };
        let text = parts.into_iter().map(text).collect::<Vec<_>>().join("\n\n");
        self.say(turn, item, typed, CommandSource::Command, text);
        // What a server says names no file of the user's.
        Some(Taken::Words(Prompt { text: String::new(), ..prompt.clone() }))
    }

    /// Takes a prompt that begins like a command and is none.
    fn take_words(&self, turn: &TurnId, item: &ItemId, prompt: &Prompt) -> Taken {
        let content = self.with_news(prompt.text.clone());
        let (of, item) = (turn.clone(), item.clone());
        self.commit(Record::Commanded { turn: of, item, command: None, content });
        self.note_told(turn);
        Taken::Words(prompt.clone())
    }

    /// A text for the model, with what it was not told yet before it.
    pub(super) fn with_news(&self, text: String) -> Vec<Block> {
        let news = self.changes.news_for_prompt();
        news.into_iter().chain([text]).map(|text| Block::Text { text }).collect()
    }

    /// The skills and commands there are now, those of folders that were worked in included.
    pub async fn skills_and_commands(&self) -> Arc<Catalog> {
        let found = self.extensions.now().await;
        self.with_touched(&found.catalog).await
    }

    /// These skills and commands, and those of folders that were worked in.
    pub(in crate::session) async fn with_touched(&self, found: &Arc<Catalog>) -> Arc<Catalog> {
        let touched = self.workspace.accessed(AccessOrder::Latest, MAX_TOUCHED);
        let touched: Vec<AbsPath> = touched.iter().filter_map(|one| one.target.file().cloned()).collect();
        if touched.is_empty() {
            return Arc::clone(found);
        }
        let (found, roots) = (Catalog::clone(found), self.workspace.roots().to_vec());
        Arc::new(blocking(move || found.having_touched(&roots, &touched)).await)
    }
}

/// Whether a name behind a slash is that of something on the disk.
async fn is_path(name: &str) -> bool {
    tokio::fs::metadata(format!("/{name}")).await.is_ok()
}
