//! Asking from where the user is: code actions on the selection and on diagnostics, and `kode.ask`, which
//! they run.
//!
//! Rule: the target goes beside the text and is read when the prompt is submitted, from the buffer as it is then;
//! nothing is offered where the cursor only passes by.

use kode_engine::agent::prompt::Prompt;
use kode_engine::config::command::btw;
use kode_engine::config::extension::{Catalog, Extension};
use kode_engine::record::prompt::PromptPart;
use kode_engine::text::document::DocumentSnapshot;
use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, CodeActionTriggerKind, Command,
    Diagnostic, DiagnosticSeverity, NumberOrString, Range, Url,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::connection::ClientConnection;
use crate::convert::error::{self, RequestError};
use crate::convert::input::lines;
use crate::display::{both_ends, printable};
use crate::documents;
use crate::plain::review::actions::contains;
use crate::plain::review::diagnostics::SOURCE;
use crate::plain::{PlainFrontEnd, aside, queue};

/// The command that submits a prompt.
pub(super) const ASK: &str = "kode.ask";

/// The kind of actions that ask about a selection.
pub(crate) const ASKING: CodeActionKind = CodeActionKind::new("refactor.kode.ask");

/// The prefix of the codes of this server's diagnostics.
const CODE_PREFIX: &str = "kode.";

/// Maximum number of problems at one place with a fix on offer.
const MAX_PROBLEMS: usize = 3;

/// Maximum number of the user's own commands and skills on offer; all of them can be typed.
const MAX_OWN: usize = 12;

/// Maximum characters of a problem in a title.
const TITLE_LIMIT: usize = 80;

/// The prompts about a selection: title and text.
const ABOUT_SELECTION: [(&str, &str); 4] = [
    ("Explain the selection", "Explain the selected code. Change nothing."),
    (
        "Improve the selection",
        "Improve the selected code: make it simpler and easier to read, with the same behavior.",
    ),
    ("Document the selection", "Write documentation comments for the selected code."),
    ("Write tests for the selection", "Write tests for the selected code."),
];

/// The argument of `kode.ask`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AskArgument {
    text: String,
    /// The document that is meant.
    #[serde(default)]
    uri: Option<Url>,
    /// The part of it that is meant.
    #[serde(default)]
    range: Option<Range>,
    /// The diagnostic there.
    #[serde(default)]
    message: Option<String>,
}

/// Submits a prompt: `{sessionId, turnId}`, or `queueId` in place of the latter; `{sessionId}` alone for a side question.
pub(super) async fn ask(agent: &Agent, ask: AskArgument) -> Result<Value, RequestError> {
    let session = agent.plain_session_for_prompt().await.map_err(error::session)?;
    if let Some(question) = btw::asked(&ask.text) {
        return aside::ask(agent, &session, question);
    }
    let prompt = ask.into_prompt(&agent.connection)?;
    Ok(queue::submitted(&session, &session.prompts().submit(prompt).map_err(error::submit)?))
}

impl AskArgument {
    fn into_prompt(self, connection: &ClientConnection) -> Result<Prompt, RequestError> {
        let Some(uri) = self.uri else {
            if self.range.is_some() || self.message.is_some() {
                return Err(error::invalid_params("arguments[0].uri", "name the document with `uri`"));
            }
            return Ok(Prompt::from(self.text));
        };
        let (target, place) = (documents::target(&uri), self.range.map(lines));
        let selected = self.range.and_then(|range| selected(connection, &uri, range));
        let part = match (self.message, place, selected) {
            (Some(message), lines, _) => {
                PromptPart::Diagnostics { target: Some(target), lines, message: Some(message) }
            }
            (None, Some(lines), Some(text)) => PromptPart::Selection { target, lines, text },
            (None, lines, _) => PromptPart::Mention { target, lines },
        };
        Ok(Prompt::new(self.text, vec![part]))
    }
}

/// The text of a place in an open document; `None` if absent.
fn selected(connection: &ClientConnection, uri: &Url, range: Range) -> Option<String> {
    let document = connection.documents.snapshot(uri)?;
    let bytes = connection.documents.encoding().byte_range(&document.text, range);
    let text = document.text.byte_slice(bytes).to_string();
    (!text.trim().is_empty()).then_some(text)
}

/// The actions that ask about a place.
pub(crate) async fn actions(
    front_end: &PlainFrontEnd,
    params: &CodeActionParams,
    document: Option<&DocumentSnapshot>,
) -> Vec<CodeActionOrCommand> {
    let Some(facts) = front_end.connection.facts.get() else { return Vec::new() };
    // A panel that does not say so would not show the conversation that begins.
    if !facts.ask_actions || facts.kode.events && !facts.kode.ask_actions {
        return Vec::new();
    }
    let mut offered = Vec::new();
    if wants(params, &CodeActionKind::QUICKFIX) {
        let others = params.context.diagnostics.iter().filter(|problem| !is_own(problem));
        others.take(MAX_PROBLEMS).for_each(|problem| offered.extend(about_problem(params, problem)));
    }
    let is_selected = params.range.start != params.range.end && document.is_some();
    let is_asked = params.context.trigger_kind != Some(CodeActionTriggerKind::AUTOMATIC);
    if is_selected && is_asked && wants(params, &ASKING) {
        let words = ABOUT_SELECTION.map(|(title, text)| (title.to_owned(), text.to_owned()));
        let own = match front_end.live_agent() {
            Some(agent) => own_words(&agent.engine.extensions(&agent.folders()).now().await.catalog),
            None => Vec::new(),
        };
        offered.extend(words.into_iter().chain(own).map(|(title, text)| {
            let argument = json!({ "text": text, "uri": params.text_document.uri, "range": params.range });
            action(&title, ASKING, None, argument)
        }));
    }
    let fitting = |action: CodeAction| match facts.code_action_literals {
        true => Some(CodeActionOrCommand::CodeAction(action)),
        false => action.command.map(CodeActionOrCommand::Command),
    };
    offered.into_iter().filter_map(fitting).collect()
}

fn about_problem(params: &CodeActionParams, problem: &Diagnostic) -> [CodeAction; 2] {
    let title = |verb: &str| {
        let message = printable(&problem.message).split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{verb}: {}", both_ends(&message, TITLE_LIMIT).replace('\n', " "))
    };
    let severity = match problem.severity {
        Some(DiagnosticSeverity::ERROR) | None => "error",
        Some(DiagnosticSeverity::WARNING) => "warning",
        Some(_) => "hint",
    };
    let argument = |text: &str| {
        let uri = &params.text_document.uri;
        let message = format!("{severity}: {}", problem.message);
        json!({ "text": text, "uri": uri, "range": problem.range, "message": message })
    };
    let fix = argument("Fix this problem at its cause.");
    let explain = argument("Explain this problem and how it can be fixed. Change nothing.");
    [
        action(&title("Fix"), CodeActionKind::QUICKFIX, Some(problem), fix),
        action(&title("Explain"), CodeActionKind::QUICKFIX, Some(problem), explain),
    ]
}

/// The user's own commands and skills as what can be asked.
fn own_words(catalog: &Catalog) -> Vec<(String, String)> {
    let reached = |one: &&Extension| catalog.typed(&one.name).is_some_and(|typed| typed.path == one.path);
    let mut names: Vec<&str> = catalog.all().filter(reached).map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    names.truncate(MAX_OWN);
    names.into_iter().map(|name| (format!("/{}", printable(name)), format!("/{name}"))).collect()
}

fn action(title: &str, kind: CodeActionKind, problem: Option<&Diagnostic>, argument: Value) -> CodeAction {
    let title = format!("Kode: {title}");
    let command = Command { title: title.clone(), command: ASK.to_owned(), arguments: Some(vec![argument]) };
    CodeAction {
        title,
        kind: Some(kind),
        diagnostics: problem.map(|problem| vec![problem.clone()]),
        command: Some(command),
        ..CodeAction::default()
    }
}

/// Whether the editor asked for this kind, or for all.
fn wants(params: &CodeActionParams, kind: &CodeActionKind) -> bool {
    params.context.only.as_ref().is_none_or(|only| only.iter().any(|wanted| contains(wanted, kind)))
}

/// Whether a diagnostic is of this server. Some editors send it back without its source, so its code decides, too.
fn is_own(problem: &Diagnostic) -> bool {
    let has_own_code =
        matches!(&problem.code, Some(NumberOrString::String(code)) if code.starts_with(CODE_PREFIX));
    has_own_code || problem.source.as_deref().is_some_and(|source| [SOURCE, "kode-ls"].contains(&source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_diagnostics_are_known_by_source_or_code() {
        let diagnostic = |source: Option<&str>, code: Option<&str>| Diagnostic {
            source: source.map(str::to_owned),
            code: code.map(|code| NumberOrString::String(code.to_owned())),
            ..Diagnostic::default()
        };
        for (source, code) in [(Some("kode"), None), (Some("kode-ls"), None), (None, Some("kode.permission"))]
        {
            assert!(is_own(&diagnostic(source, code)), "{source:?} {code:?}");
        }
        assert!(!is_own(&diagnostic(Some("rustc"), Some("E0308"))));
    }
}
