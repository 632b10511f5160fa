//! Commands and skills of files that the user has typed.
//!
//! Rule: the model gets the whole text or none of it; a failure is reported to the user alone.

use tokio_util::sync::CancellationToken;

use super::{CommandLine, SlashOutcome, record_answer, record_use, replace_prompt, unknown, with_news};
use crate::hooks::carried::use_hooks;
use crate::prompt::Prompt;
use crate::turn::expand::{ExtensionExpansion, expand_extension};
use crate::turn::services::TurnContext;
use kode_base::ids::ItemId;
use kode_config::command::{CommandReport, CommandSource};
use kode_config::extension::ExtensionKind;
use kode_config::extension::arguments::split;
use kode_permission::equipment::Equipment;
use kode_record::event::NoticeLevel;
use kode_record::record::Record;
use kode_tool::delegation::Delegation;
use kode_tool::offer::McpPromptPart;

/// Takes a prompt that names no built-in command.
pub(super) async fn take_named(
    turn: TurnContext<'_>,
    item: &ItemId,
    prompt: &Prompt,
    line: CommandLine<'_>,
    cancel: &CancellationToken,
) -> SlashOutcome {
    let services = turn.services;
    let catalog = services.extensions.catalog();
    let Some(extension) = catalog.typed(line.name) else {
        if let Some(outcome) = take_server_prompt(turn, item, prompt, line, cancel).await {
            return outcome;
        }
        if is_path(line.name).await {
            return take_text(turn, item, prompt);
        }
        record_answer(services, turn.id, ItemId::generate(), line, unknown(services, line.name));
        return SlashOutcome::Answered;
    };
    let source = match extension.kind {
        ExtensionKind::Command => CommandSource::Command,
        ExtensionKind::Skill => CommandSource::Skill,
    };
    let expansion = match expand_extension(turn, extension, line.arguments, cancel).await {
        Ok(expansion) => expansion,
        Err(reason) => {
            record_use(services, turn.id, item, line, source, Vec::new());
            let report = CommandReport::failure(format!("`/{}` was not run: {reason}", line.name));
            record_answer(services, turn.id, ItemId::generate(), line, report);
            return SlashOutcome::Answered;
        }
    };
    let ExtensionExpansion { extension, text, words, equipment, notes } = expansion;
    if !notes.is_empty() {
        let text = format!("`/{}`: {}.", line.name, notes.join("; "));
        turn.notice(NoticeLevel::Warning, text, None);
    }
    use_hooks(&turn.conversation.thread, turn.id, extension.hooks);
    if let Some(kind) = extension.agent {
        let what = match extension.background {
            true => " in the background; tell them so, and report its result when you receive it",
            false => "; tell them what comes of it",
        };
        let text_for_model = format!("The user has run `/{}`. A sub-agent carries it out{what}.", line.name);
        replace_prompt(services, turn.id, item, line, source, text_for_model);
        let (description, model) = (format!("/{}", line.name), equipment.model.clone());
        // It works by the same rules; model and effort are its own.
        turn.conversation.equip(turn.id, Equipment { model: None, effort: None, ..equipment });
        let (resume, in_background) = (None, extension.background);
        return SlashOutcome::Delegation(Box::new(Delegation {
            kind,
            description,
            prompt: text,
            model,
            resume,
            is_isolated: false,
            may_run_foreign: false,
            in_background,
            name: None,
            carried: Equipment::default(),
        }));
    }
    turn.conversation.equip(turn.id, equipment);
    replace_prompt(services, turn.id, item, line, source, text);
    SlashOutcome::Input(words, prompt.parts().to_vec())
}

/// Takes a prompt that names a prompt of an MCP server; `None` where there is no such one.
async fn take_server_prompt(
    turn: TurnContext<'_>,
    item: &ItemId,
    prompt: &Prompt,
    line: CommandLine<'_>,
    cancel: &CancellationToken,
) -> Option<SlashOutcome> {
    let (services, servers) = (turn.services, turn.services.servers.all());
    let found = servers.prompts().into_iter().find(|known| known.command == line.name)?;
    let arguments: Vec<_> = split(line.arguments)
        .into_iter()
        .map(|word| match word.split_once('=') {
            Some((name, value)) if found.arguments.iter().any(|known| known.name == name) => {
                (Some(name.to_owned()), value.to_owned())
            }
            Some(_) | None => (None, word),
        })
        .collect();
    let given = tokio::select! {
        given = servers.prompt(&found.server, &found.name, &arguments) => given,
        () = cancel.cancelled() => return Some(SlashOutcome::Answered),
    };
    let parts = match given {
        Ok(parts) => parts,
        Err(failure) => {
            record_use(services, turn.id, item, line, CommandSource::Command, Vec::new());
            let report = CommandReport::failure(format!("`/{}` was not run: {failure}", line.name));
            record_answer(services, turn.id, ItemId::generate(), line, report);
            return Some(SlashOutcome::Answered);
        }
    };
    let text = |part: McpPromptPart| match part {
        McpPromptPart::Text(text) => text,
        McpPromptPart::Image(_) => "[an image that is not shown here]".to_owned(),
    };
    let text = parts.into_iter().map(text).collect::<Vec<_>>().join("\n\n");
    replace_prompt(services, turn.id, item, line, CommandSource::Command, text);
    // The text of a server mentions no file of the user's.
    Some(SlashOutcome::Input(String::new(), prompt.parts().to_vec()))
}

/// Takes a prompt that only looks like a command.
fn take_text(turn: TurnContext<'_>, item: &ItemId, prompt: &Prompt) -> SlashOutcome {
    let services = turn.services;
    let content = with_news(services, prompt.text().to_owned());
    let (id, item) = (turn.id.clone(), item.clone());
    services.core.commit(Record::Commanded { turn: id, item, command: None, content });
    services.edits.enter_given_news(turn.id);
    SlashOutcome::Input(prompt.text().to_owned(), prompt.parts().to_vec())
}

/// Whether a name behind a slash is that of a file or folder.
async fn is_path(name: &str) -> bool {
    tokio::fs::metadata(format!("/{name}")).await.is_ok()
}
