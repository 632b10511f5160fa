//! LSP: the nine operations of the tool of this name that plugins, hooks and models know, by line and column.
//!
//! Rule: an alias for the tools by name, with the same results. It is not offered to models that have not asked for it: those by
//! name are easier to use.

use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::symbols::TIMEOUT;
use crate::{call_hierarchy, definition, references, symbol, symbols};
use kode_base::call::{ToolError, ToolKind};
use kode_base::paths::Target;
use kode_text::workspace::language::{
    CallDirection, LanguageError, LanguageServers, PlaceKind, TextPosition,
};
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts, ToolOutput};

/// The arguments of LSP.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LspInput {
    /// The operation.
    pub operation: Operation,
    /// The file.
    pub file_path: String,
    /// The line, from 1.
    #[serde(default)]
    pub line: Option<usize>,
    /// The column in characters, from 1.
    #[serde(default)]
    pub character: Option<usize>,
    /// What workspaceSymbol searches for.
    #[serde(default)]
    pub query: Option<String>,
}

/// An operation of LSP.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
pub enum Operation {
    /// Where the symbol is defined.
    GoToDefinition,
    /// Where it is used.
    FindReferences,
    /// Its signature and documentation.
    Hover,
    /// The outline of the file.
    DocumentSymbol,
    /// Declarations of the workspace.
    WorkspaceSymbol,
    /// Where it is implemented.
    GoToImplementation,
    /// The function there.
    PrepareCallHierarchy,
    /// Its callers.
    IncomingCalls,
    /// The functions that it calls.
    OutgoingCalls,
}

/// Asks a language server by line and column.
#[derive(Clone, Copy, Debug)]
pub struct Lsp;

#[async_trait]
impl Tool for Lsp {
    type Input = LspInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "LSP",
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Asks the language server about a position of a file. Symbols, Definition, References and \
                CallHierarchy do the same by the name of a symbol.",
        }
    }

    fn describe(&self, _offer: &OfferContext<'_>) -> Option<String> {
        None
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn plan(&self, input: LspInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = symbol::servers(&context.workspace)?;
        let (target, touches) = symbol::target(&input.file_path, context)?;
        let title = format!("{:?} in {}", input.operation, context.workspace.display(&target));
        let run = move |context: CallContext| {
            async move {
                match input.operation {
                    Operation::DocumentSymbol => {
                        let outline = servers.outline(&context.workspace, &target).await;
                        outline
                            .map(|answer| symbols::outlined(&answer))
                            .map_err(|error| symbol::failure(&error))
                    }
                    Operation::WorkspaceSymbol => {
                        let query = input.query.unwrap_or_default();
                        symbols::search(servers.as_ref(), &query, &context).await
                    }
                    _ => at_position(&input, &target, servers.as_ref(), &context).await,
                }
            }
            .boxed()
        };
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
    }
}

async fn at_position(
    input: &LspInput,
    target: &Target,
    servers: &dyn LanguageServers,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let file = context.workspace.text(target).await?;
    let offset = offset(&file.text, input.line.unwrap_or(1), input.character.unwrap_or(1));
    let at = TextPosition { file: &file, offset };
    let workspace = &context.workspace;
    let failure = |error: LanguageError| symbol::failure(&error);
    match input.operation {
        Operation::GoToDefinition => definition::at(at, PlaceKind::Definition, servers, context).await,
        Operation::GoToImplementation => {
            definition::at(at, PlaceKind::Implementation, servers, context).await
        }
        Operation::FindReferences => references::at(at, servers, context).await,
        Operation::PrepareCallHierarchy => {
            let calls = servers.calls(workspace, at, CallDirection::Incoming, 0).await.map_err(failure)?;
            Ok(call_hierarchy::output(&calls.value, symbol::note(&calls), context))
        }
        Operation::IncomingCalls | Operation::OutgoingCalls => {
            let direction = match input.operation {
                Operation::IncomingCalls => CallDirection::Incoming,
                _ => CallDirection::Outgoing,
            };
            let calls = servers.calls(workspace, at, direction, 1).await.map_err(failure)?;
            Ok(call_hierarchy::output(&calls.value, symbol::note(&calls), context))
        }
        Operation::Hover | Operation::DocumentSymbol | Operation::WorkspaceSymbol => {
            let declared = servers.places(workspace, at, PlaceKind::Definition).await;
            let declared = declared.map(|answer| answer.value).unwrap_or_default();
            if !declared.is_empty() && symbol::visible(declared, context).is_empty() {
                let model_text = "Rules hide the file that declares this.".to_owned();
                return Ok(ToolOutput { model_text, ..ToolOutput::default() });
            }
            let answer = servers.hover(workspace, at).await.map_err(failure)?;
            let note = symbol::note(&answer);
            let text =
                answer.value.unwrap_or_else(|| "The language server knows nothing of this place.".to_owned());
            Ok(ToolOutput { model_text: format!("{text}{note}"), ..ToolOutput::default() })
        }
    }
}

/// The byte of a line and column from 1; the end of the line where the column is behind it.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let mut start = 0;
    for (number, content) in (1..).zip(text.split_inclusive('\n')) {
        if number == line {
            let content = content.trim_end_matches(['\n', '\r']);
            let at = content.char_indices().nth(column.saturating_sub(1));
            return start + at.map_or(content.len(), |(at, _)| at);
        }
        start += content.len();
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_counts_characters_and_stays_in_its_line() {
        let text = "äb\r\ncd\n";
        let at = |line, column| offset(text, line, column);
        assert_eq!((at(1, 2), at(1, 99), at(2, 1), at(9, 1)), (2, 3, 5, 8));
    }
}
