//! Format: a file, or lines of it, formatted by its language server.
//!
//! Rule: the edits are computed before anything is asked; a text that is formatted already is no change.

use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::symbol;
use crate::symbols::TIMEOUT;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts, ToolOutput};

/// The arguments of Format.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FormatInput {
    /// The file.
    pub file_path: String,
    /// The first line to format, from 1. The whole file if left out.
    #[serde(default)]
    pub line: Option<u32>,
    /// The last line to format. The same as `line` if left out.
    #[serde(default)]
    pub end_line: Option<u32>,
}

/// Formats a file.
#[derive(Clone, Copy, Debug)]
pub struct Format;

#[async_trait]
impl Tool for Format {
    type Input = FormatInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "Format",
            kind: ToolKind::Write,
            concurrency_safe: false,
            description: "Formats a file, or lines of it, by its language server, where that has a formatter.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.has_languages.then(|| self.facts().description.to_owned())
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn plan(&self, input: FormatInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = symbol::servers(&context.workspace)?;
        let (target, touches) = symbol::target(&input.file_path, context)?;
        let lines = match (input.line, input.end_line) {
            (Some(first), last) => Some((first, last.unwrap_or(first))),
            (None, None) => None,
            (None, Some(_)) => {
                return Err(ToolError::new(
                    ToolErrorKind::InvalidInput,
                    "Format: `end_line` without `line`.",
                    "Give both lines, or neither for the whole file.",
                ));
            }
        };
        let path = context.workspace.display(&target);
        let title = format!("Format {path}");
        let formatted = servers.format(&context.workspace, &target, lines).await;
        let changes = formatted.map_err(|error| symbol::failure(&error))?.value;
        if changes.is_empty() {
            let run = move |_: CallContext| {
                let model_text = format!("`{path}` is formatted already; nothing was changed.");
                let display = "Already formatted".to_owned();
                async move { Ok(ToolOutput { model_text, display, ..ToolOutput::default() }) }.boxed()
            };
            return Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) });
        }
        symbol::change_plan(title, format!("Formatted {path}"), touches, changes)
    }
}
