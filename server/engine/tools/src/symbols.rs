//! Symbols: the outline of a file, or the declarations of the workspace that fit a name.
//!
//! Rule: at most [`MAX_OUTLINE`] lines of an outline and [`MAX_FOUND`] declarations, with the number of all.

use std::fmt::Write as _;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::symbol;
use kode_base::call::{Exposure, ToolError, ToolErrorKind, ToolKind};
use kode_text::workspace::Workspace;
use kode_text::workspace::language::{Answer, LanguageServers, Symbol};
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts, ToolOutput};

/// The most declarations of an outline.
const MAX_OUTLINE: usize = 400;
/// The most declarations that are found by a name.
const MAX_FOUND: usize = 100;
/// The longest work of a call: a server may have to start and to read its project.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);

/// The arguments of Symbols.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SymbolsInput {
    /// The file whose outline is wanted.
    #[serde(default)]
    pub file_path: Option<String>,
    /// A name or part of one to search for in the whole workspace.
    #[serde(default)]
    pub query: Option<String>,
}

/// Lists declarations.
#[derive(Clone, Copy, Debug)]
pub struct Symbols;

#[async_trait]
impl Tool for Symbols {
    type Input = SymbolsInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "Symbols",
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Lists the declarations of a file (`file_path`), or the declarations of the workspace that \
                fit a name (`query`), with their lines, as the language server knows them. Cheaper than reading a \
                long file, and more exact than Grep for finding where a name is declared.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.has_languages.then(|| self.facts().description.to_owned())
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn plan(&self, input: SymbolsInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = symbol::servers(&context.workspace)?;
        let text = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        match (text(input.file_path), text(input.query)) {
            (Some(path), None) => {
                let (target, touches) = symbol::target(&path, context)?;
                let title = format!("Symbols of {}", context.workspace.display(&target));
                let run = move |context: CallContext| {
                    async move {
                        let outline = servers.outline(&context.workspace, &target).await;
                        outline.map(|answer| outlined(&answer)).map_err(|error| symbol::failure(&error))
                    }
                    .boxed()
                };
                Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
            }
            (None, Some(query)) => {
                let title = format!("Symbols named {query}");
                let run = move |context: CallContext| {
                    async move { search(servers.as_ref(), &query, &context).await }.boxed()
                };
                Ok(CallPlan { title, touches: Vec::new(), action: CallAction::Run(Box::new(run)) })
            }
            (Some(_), Some(_)) | (None, None) => Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                "Symbols takes either `file_path` or `query`.",
                "Give `file_path` for the outline of a file, or `query` to search the workspace.",
            )),
        }
    }
}

/// The declarations of the workspace that fit a name.
pub(crate) async fn search(
    servers: &dyn LanguageServers,
    query: &str,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let found = servers.find_symbols(&context.workspace, query.trim()).await;
    let mut found = found.map_err(|error| symbol::failure(&error))?;
    found.value.retain(|symbol| {
        context.workspace.contains(&symbol.target) && (context.may_read)(&symbol.target, Exposure::Name)
    });
    Ok(listed(&found, query.trim(), &context.workspace))
}

/// The result for the outline of a file.
pub(crate) fn outlined(answer: &Answer<Vec<Symbol>>) -> ToolOutput {
    let symbols = &answer.value;
    let mut text = String::new();
    for symbol in symbols.iter().take(MAX_OUTLINE) {
        let Symbol { name, kind, detail, line, last_line, depth, .. } = symbol;
        let detail = detail.split_whitespace().collect::<Vec<_>>().join(" ");
        let detail: String = detail.chars().take(symbol::MAX_LINE).collect();
        let _ = writeln!(text, "{:depth$}{line}-{last_line} {kind} {name} {detail}", "", depth = depth * 2);
    }
    let text: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    finish(text, symbols.len(), MAX_OUTLINE, answer)
}

fn listed(answer: &Answer<Vec<Symbol>>, query: &str, workspace: &Workspace) -> ToolOutput {
    let mut symbols: Vec<&Symbol> = answer.value.iter().collect();
    // Servers match loosely: the very name comes first.
    symbols.sort_by_key(|symbol| (symbol.name != query, !symbol.name.starts_with(query), symbol.name.len()));
    let mut text = String::new();
    for symbol in symbols.iter().take(MAX_FOUND) {
        let Symbol { name, kind, container, target, line, .. } = symbol;
        let container = if container.is_empty() { String::new() } else { format!(" in {container}") };
        let _ = writeln!(text, "{}:{line} {kind} {name}{container}", workspace.display(target));
    }
    finish(text, symbols.len(), MAX_FOUND, answer)
}

fn finish(mut text: String, count: usize, most: usize, answer: &Answer<Vec<Symbol>>) -> ToolOutput {
    if count == 0 {
        text.push_str("The language server knows no such declaration.");
    }
    if count > most {
        let _ = write!(text, "[{} more declarations are not shown]", count - most);
    }
    let model_text = format!("{}{}", text.trim_end(), symbol::note(answer));
    let structured = answer.value.iter().take(most).map(|symbol| {
        json!({
            "name": symbol.name, "kind": symbol.kind, "path": symbol.target.to_string(),
            "line": symbol.line, "lastLine": symbol.last_line,
        })
    });
    ToolOutput {
        model_text,
        display: format!("{count} symbols"),
        structured: Some(structured.collect()),
        ..ToolOutput::default()
    }
}
