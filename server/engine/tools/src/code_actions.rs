//! CodeActions and ApplyCodeAction: the changes that a language server proposes for lines, and one of them made.
//!
//! Rule: an action is named by its number in the last list of the file. Its edits are computed before anything is asked, and are
//! one change of all files.

use std::fmt::Write as _;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::symbol;
use crate::symbols::TIMEOUT;
use kode_base::call::{ToolError, ToolKind};
use kode_text::workspace::language::CodeAction;
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts, ToolOutput};

/// The arguments of CodeActions.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeActionsInput {
    /// The file.
    pub file_path: String,
    /// The line, from 1.
    pub line: u32,
    /// The last line. The same if left out.
    #[serde(default)]
    pub end_line: Option<u32>,
    /// A kind, such as quickfix, refactor, source.organizeImports or source.fixAll. All if left out.
    #[serde(default)]
    pub kind: Option<String>,
}

/// The arguments of ApplyCodeAction.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApplyCodeActionInput {
    /// The file that CodeActions was called for.
    pub file_path: String,
    /// The number of the action in the last list for this file.
    pub id: String,
}

/// Lists code actions.
#[derive(Clone, Copy, Debug)]
pub struct CodeActions;

/// Applies a code action.
#[derive(Clone, Copy, Debug)]
pub struct ApplyCodeAction;

#[async_trait]
impl Tool for CodeActions {
    type Input = CodeActionsInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "CodeActions",
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Lists what the language server can do about lines of a file: quick fixes of diagnostics, \
                refactorings, organizing of imports. Apply one with ApplyCodeAction and its number.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.has_languages.then(|| self.facts().description.to_owned())
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn plan(&self, input: CodeActionsInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = symbol::servers(&context.workspace)?;
        let (target, touches) = symbol::target(&input.file_path, context)?;
        let title = format!("Code actions of {}:{}", context.workspace.display(&target), input.line);
        let run = move |context: CallContext| {
            async move {
                let lines = (input.line, input.end_line.unwrap_or(input.line));
                let kind = input.kind.as_deref();
                let found = servers.actions(&context.workspace, &target, lines, kind).await;
                let answer = found.map_err(|error| symbol::failure(&error))?;
                Ok(listed(&answer.value, &symbol::note(&answer)))
            }
            .boxed()
        };
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
    }
}

#[async_trait]
impl Tool for ApplyCodeAction {
    type Input = ApplyCodeActionInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "ApplyCodeAction",
            kind: ToolKind::Write,
            concurrency_safe: false,
            description: "Applies a code action of the language server, by its number in the last result of \
                CodeActions for the same file.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.has_languages.then(|| self.facts().description.to_owned())
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn plan(&self, input: ApplyCodeActionInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = symbol::servers(&context.workspace)?;
        let (target, touches) = symbol::target(&input.file_path, context)?;
        let applied = servers.apply_action(&context.workspace, &target, &input.id).await;
        let answer = applied.map_err(|error| symbol::failure(&error))?;
        let note = symbol::note(&answer);
        let (name, changes) = answer.value;
        let summary = format!("Applied the code action “{name}” in {} files{note}", changes.len());
        symbol::change_plan(name, summary, touches, changes)
    }
}

fn listed(actions: &[CodeAction], note: &str) -> ToolOutput {
    let mut text = String::new();
    for action in actions {
        let kind = if action.kind.is_empty() { String::new() } else { format!(" [{}]", action.kind) };
        let mark = if action.is_preferred { " (preferred)" } else { "" };
        let disabled = match &action.disabled {
            Some(reason) => format!(" (not available: {reason})"),
            None => String::new(),
        };
        let title: String = action.title.chars().take(symbol::MAX_LINE).collect();
        let _ = writeln!(text, "{}. {title}{kind}{mark}{disabled}", action.id);
    }
    if actions.is_empty() {
        text.push_str("The language server proposes nothing for these lines.");
    }
    let structured = actions.iter().map(|action| json!({ "id": action.id, "title": action.title }));
    ToolOutput {
        model_text: format!("{}{note}", text.trim_end()),
        display: format!("{} code actions", actions.len()),
        structured: Some(structured.collect()),
        ..ToolOutput::default()
    }
}
