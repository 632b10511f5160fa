//! Definition: where a symbol is defined, its signature and documentation, and the passage itself.
//!
//! Rule: passages come from the workspace alone; of a place outside the path, the line and the signature are known.

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
use kode_text::edit::diff::push_numbered;
use kode_text::workspace::language::{LanguageServers, Place, PlaceKind, TextPosition};
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts, ToolOutput};

/// The most places of one call.
const MAX_PLACES: usize = 10;
/// The most lines of a passage, and of all passages of a call.
const MAX_PASSAGE: u32 = 80;
/// The most characters of a signature with its documentation.
const MAX_HOVER: usize = 3_000;

/// The arguments of Definition.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DefinitionInput {
    /// The name of the symbol as it stands in the file, such as `parse` or `Parser::parse`.
    pub symbol: String,
    /// A file that uses or declares it.
    pub file_path: String,
    /// A line of that file with the symbol, from 1. Its declaration in the file, or its first use there, if left out.
    #[serde(default)]
    pub line: Option<u32>,
    /// What is wanted of it. The definition if left out.
    #[serde(default)]
    pub kind: Option<KindInput>,
}

/// A kind of place.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KindInput {
    /// Where it is defined.
    Definition,
    /// Where it is declared.
    Declaration,
    /// Where its type is defined.
    Type,
    /// Where an interface, trait or abstract method is implemented.
    Implementation,
}

impl KindInput {
    fn kind(self) -> PlaceKind {
        match self {
            Self::Definition => PlaceKind::Definition,
            Self::Declaration => PlaceKind::Declaration,
            Self::Type => PlaceKind::Type,
            Self::Implementation => PlaceKind::Implementation,
        }
    }
}

/// Finds where a symbol is defined.
#[derive(Clone, Copy, Debug)]
pub struct Definition;

#[async_trait]
impl Tool for Definition {
    type Input = DefinitionInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: "Definition",
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Finds where a symbol is defined, declared or implemented, or where its type is, as the \
                language server knows it: place, signature, documentation and the passage itself. Name the symbol and \
                a file that uses it; no column is needed. It sees unsaved text. Prefer it to Grep for following code.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        offer.has_languages.then(|| self.facts().description.to_owned())
    }

    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    async fn plan(&self, input: DefinitionInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let servers = symbol::servers(&context.workspace)?;
        let (target, touches) = symbol::target(&input.file_path, context)?;
        let title = format!("Definition of {}", input.symbol);
        let run = move |context: CallContext| {
            async move {
                let found = symbol::find(&input.symbol, &target, input.line, &context).await?;
                let kind = input.kind.map_or(PlaceKind::Definition, KindInput::kind);
                at(found.position(), kind, servers.as_ref(), &context).await
            }
            .boxed()
        };
        Ok(CallPlan { title, touches, action: CallAction::Run(Box::new(run)) })
    }
}

/// The result for the symbol at a position.
pub(crate) async fn at(
    position: TextPosition<'_>,
    kind: PlaceKind,
    servers: &dyn LanguageServers,
    context: &CallContext,
) -> Result<ToolOutput, ToolError> {
    let workspace = &context.workspace;
    let places = servers.places(workspace, position, kind).await;
    let mut answer = places.map_err(|error| symbol::failure(&error))?;
    let is_known = !answer.value.is_empty();
    answer.value = symbol::visible(answer.value, context);
    // A signature is a help; its absence is no failure. Where rules hide the declaration, they hide its text.
    let hover = match kind {
        _ if is_known && answer.value.is_empty() => None,
        PlaceKind::Definition | PlaceKind::Declaration => servers.hover(workspace, position).await.ok(),
        PlaceKind::Type | PlaceKind::Implementation => None,
    };
    let hover = hover.and_then(|answer| answer.value).unwrap_or_default();
    let hover: String = hover.chars().take(MAX_HOVER).collect();
    let mut text = String::new();
    if !hover.is_empty() {
        let _ = writeln!(text, "{hover}\n");
    }
    describe(&mut text, &answer.value, servers, context).await;
    let model_text = format!("{}{}", text.trim_end(), symbol::note(&answer));
    Ok(output(model_text, &answer.value, context))
}

fn output(model_text: String, places: &[Place], context: &CallContext) -> ToolOutput {
    let shown = |place: &Place| format!("{}:{}", context.workspace.display(&place.target), place.line);
    let display = match places {
        [] => "No place".to_owned(),
        [place] => shown(place),
        [place, rest @ ..] => format!("{} and {} more", shown(place), rest.len()),
    };
    let structured: Vec<Value> = places
        .iter()
        .map(|place| json!({ "path": place.target.to_string(), "line": place.line, "column": place.column }))
        .collect();
    ToolOutput { model_text, display, structured: Some(Value::Array(structured)), ..ToolOutput::default() }
}

/// Appends the places with their passages.
async fn describe(text: &mut String, places: &[Place], servers: &dyn LanguageServers, context: &CallContext) {
    if places.is_empty() {
        text.push_str("The language server knows no such place.");
        return;
    }
    let mut texts = Texts::new(context);
    let mut room = MAX_PASSAGE;
    for place in places.iter().take(MAX_PLACES) {
        let last = passage_end(place, servers, context).await;
        let path = context.workspace.display(&place.target);
        let _ = writeln!(text, "{path}:{}-{last}", place.line);
        let Some(found) = texts.of(&place.target).await.filter(|_| room > 0) else { continue };
        let count = (last - place.line + 1).min(room);
        room -= count;
        let first = (place.line as usize).saturating_sub(1);
        for (number, line) in (place.line as usize..).zip(found.lines().skip(first).take(count as usize)) {
            push_numbered(text, number, line, symbol::MAX_LINE);
            text.push('\n');
        }
        if count < last - place.line + 1 {
            let _ = writeln!(text, "[lines {}-{last} are not shown]", place.line + count);
        }
        text.push('\n');
    }
    if places.len() > MAX_PLACES {
        let _ = writeln!(text, "[{} more places are not shown]", places.len() - MAX_PLACES);
    }
}

/// The last line of the declaration at a place, from the outline of its file where the server named the name alone.
async fn passage_end(place: &Place, servers: &dyn LanguageServers, context: &CallContext) -> u32 {
    if place.last_line > place.line || !context.workspace.contains(&place.target) {
        return place.last_line;
    }
    let Ok(outline) = servers.outline(&context.workspace, &place.target).await else {
        return place.last_line;
    };
    let named = outline.value.iter().filter(|symbol| symbol.name_line == place.line);
    named.map(|symbol| symbol.last_line).max().unwrap_or(place.last_line).max(place.line)
}
