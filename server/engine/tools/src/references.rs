//! References: every use of a symbol, by file, with the text of its line.
//!
//! Rule: at most [`MAX_PLACES`] places, with the number of all; a use in a file that rules hide is left out without a word.

use std::fmt::Write as _;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::symbol::{self, Texts};
use crate::symbols::TIMEOUT;
use kode_base::call::{ToolError, ToolKind};
use kode_text::workspace::language::{LanguageServers, Place, TextPosition};
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts, ToolOutput};

/// The most places that are shown.
const MAX_PLACES: usize = 200;

/// The arguments of References.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferencesInput {
    /// The name of the symbol as it stands in the file, such as `parse` or `Parser::parse`.
    pub symbol: String,
    /// A file that uses or declares it.
    pub file_path: String,
    /// A line of that file with the symbol, from 1. Its declaration in the file, or its first use there, if left out.
    #[serde(default)]
    pub line: Option<u32>,
}

/// Finds the uses of a symbol.
#[derive(Clone, Copy, Debug)]
pub struct References;

#[async_trait]
impl Tool for References {
    type Input = ReferencesInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "References",
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Lists every use of a symbol in the workspace by file, with the text of each line, as the \
                language server knows it: no false hits in comments or of other symbols of the same name. Name the \
                symbol and a file that uses it; no column is needed. It sees unsaved text. Prefer it to Grep for \
                finding the uses of a function, type, field or variable.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.has_languages.then(|| self.facts().description.to_owned())
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn plan(&self, input: ReferencesInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = symbol::servers(&context.workspace)?;
        let (target, touches) = symbol::target(&input.file_path, context)?;
        let title = format!("References of {}", input.symbol);
        let run = move |context: CallContext| {
            async move {
                let found = symbol::find(&input.symbol, &target, input.line, &context).await?;
                at(found.position(), servers.as_ref(), &context).await
            }
            .boxed()
        };
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
    }
}

/// The result for the symbol at a position.
pub(crate) async fn at(
    position: TextPosition<'_>,
    servers: &dyn LanguageServers,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let places = servers.references(&context.workspace, position).await;
    let mut answer = places.map_err(|error| symbol::failure(&error))?;
    answer.value = by_line(symbol::visible(answer.value, context));
    let text = listed(&answer.value, context).await;
    let model_text = format!("{text}{}", symbol::note(&answer));
    Ok(output(model_text, &answer.value))
}

/// The places, one for each line.
fn by_line(mut places: Vec<Place>) -> Vec<Place> {
    places.dedup_by(|one, other| (&one.target, one.line) == (&other.target, other.line));
    places
}

async fn listed(places: &[Place], context: &CallContext) -> String {
    if places.is_empty() {
        return "The language server knows no use of it.".to_owned();
    }
    let files = places.chunk_by(|one, other| one.target == other.target).count();
    let mut text = format!("{} lines in {files} files\n", places.len());
    let mut texts = Texts::new(context);
    let mut room = MAX_PLACES;
    for of_file in places.chunk_by(|one, other| one.target == other.target) {
        if room == 0 {
            break;
        }
        let target = &of_file[0].target;
        let _ = writeln!(text, "{}", context.workspace.display(target));
        let found = texts.of(target).await;
        for place in of_file.iter().take(room) {
            let line = found.as_deref().map(|text| symbol::line_of(text, place.line)).unwrap_or_default();
            let _ = writeln!(text, "  {}: {line}", place.line);
        }
        room = room.saturating_sub(of_file.len());
    }
    if places.len() > MAX_PLACES {
        let _ = write!(text, "[{} more lines are not shown]", places.len() - MAX_PLACES);
    }
    text.trim_end().to_owned()
}

fn output(model_text: String, places: &[Place]) -> ToolOutput {
    let structured: Vec<Value> = places
        .iter()
        .take(MAX_PLACES)
        .map(|place| json!({ "path": place.target.to_string(), "line": place.line, "column": place.column }))
        .collect();
    ToolOutput {
        model_text,
        display: format!("{} lines", places.len()),
        structured: Some(Value::Array(structured)),
        ..ToolOutput::default()
    }
}
