//! SlashCommand: a command from the user's Markdown files, called by the model.
//!
//! Rule: as for skills; the commands that steer this program are never called by the model.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::skill::use_extension;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_config::extension::ExtensionKind;
use kode_tool::{CallContext, CallPlan, OfferContext, Tool, ToolFacts};

/// The arguments of SlashCommand.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SlashCommandInput {
    /// The command with its arguments, for example `/review-pr 123`.
    pub command: String,
}

/// Reads a command.
#[derive(Clone, Copy, Debug)]
pub struct SlashCommand;

const NAME: &str = "SlashCommand";

#[async_trait]
impl Tool for SlashCommand {
    type Input = SlashCommandInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: NAME,
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Reads one of the user's own commands, which then tells you what to do. Call it when the user \
                names one that is listed, or when what they want is what it does.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        let listing = offer.catalog.listing(ExtensionKind::Command)?;
        Some(format!("{}\n\nThe commands:\n{listing}", self.facts().description))
    }

    async fn plan(&self, input: SlashCommandInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let command = input.command.trim().trim_start_matches('/').trim();
        let (name, arguments) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
        if name.is_empty() {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                format!("{NAME}: `command` names no command."),
                "Give it as `/name arguments`.",
            ));
        }
        use_extension(NAME, ExtensionKind::Command, name, arguments.to_owned(), context)
    }
}
