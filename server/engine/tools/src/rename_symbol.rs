//! RenameSymbol: a symbol gets another name everywhere, in one change.
//!
//! Rule: the language server computes the edits before anything is asked, so that the user sees all files and the whole
//! difference in one prompt; either all of them are made or none.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::symbol;
use crate::symbols::TIMEOUT;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_text::workspace::language::LanguageError;
use kode_tool::{CallContext, CallPlan, OfferContext, Tool, ToolFacts};

/// How often the place is looked up, when the text moves while the server computes.
const ATTEMPTS: usize = 2;

/// The arguments of RenameSymbol.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenameSymbolInput {
    /// The name of the symbol as it stands in the file, such as `parse` or `Parser::parse`.
    pub symbol: String,
    /// A file that uses or declares it.
    pub file_path: String,
    /// A line of that file with the symbol, from 1. Its declaration in the file, or its first use there, if left out.
    #[serde(default)]
    pub line: Option<u32>,
    /// The new name, without the names around it.
    pub new_name: String,
}

/// Renames a symbol.
#[derive(Clone, Copy, Debug)]
pub struct RenameSymbol;

#[async_trait]
impl Tool for RenameSymbol {
    type Input = RenameSymbolInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "RenameSymbol",
            kind: ToolKind::Write,
            concurrency_safe: false,
            description: "Renames a function, type, field, variable or another symbol in all files of the workspace, \
                as the language server knows its uses: nothing else of the same name changes. One call replaces many \
                edits, and the files need not have been read. Comments and texts are usually left as they are.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.has_languages.then(|| self.facts().description.to_owned())
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn plan(&self, input: RenameSymbolInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = symbol::servers(&context.workspace)?;
        let (target, touches) = symbol::target(&input.file_path, context)?;
        let RenameSymbolInput { symbol, line, new_name, .. } = input;
        if new_name.trim().is_empty() || new_name.chars().any(char::is_control) {
            return Err(ToolError::new(
                ToolErrorKind::InvalidInput,
                "RenameSymbol: `new_name` is empty or has control characters.",
                "Give the new name alone.",
            ));
        }
        for attempt in 1.. {
            let found = symbol::find(&symbol, &target, line, context).await?;
            match servers.rename(&context.workspace, found.position(), new_name.trim()).await {
                Ok(answer) => {
                    let places: usize = answer.value.iter().map(|file| file.edits.len()).sum();
                    let files = answer.value.len();
                    let note = symbol::note(&answer);
                    let summary = format!(
                        "Renamed `{symbol}` to `{new_name}` at {places} places in {files} files{note}"
                    );
                    let title = format!("Rename {symbol} to {new_name} in {files} files");
                    return symbol::change_plan(title, summary, touches, answer.value);
                }
                Err(LanguageError::Moved(..)) if attempt < ATTEMPTS => {}
                Err(error) => return Err(symbol::failure(&error)),
            }
        }
        unreachable!("the last attempt returns")
    }
}
