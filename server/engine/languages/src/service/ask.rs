//! Requests that read: outlines, symbols, places, signatures and calls.
//!
//! Rule: lines of a result are those of the text that the server had; a column is in characters where that text may be read here.

use std::collections::HashMap;

use futures::future::{BoxFuture, join_all};
use serde_json::{Value, json};

use super::{LanguageResults, ResultSource, WorkspaceServers};
use crate::documents::SyncedText;
use crate::editor::{self, FileRequest};
use crate::positions::{Encoding, LineIndex, Position, PositionRange};
use crate::results::{self, Destination, DocumentSymbol, SymbolInformation};
use crate::running::{Feature, RunningLanguageServer};
use crate::uri;
use kode_base::paths::{AbsPath, Target};
use kode_text::workspace::Workspace;
use kode_text::workspace::language::{
    Answer, CallDirection, CallNode, LanguageError, Place, PlaceKind, Symbol, TextPosition,
};

const OUTLINE: Feature = Feature { capability: "documentSymbolProvider", name: "outlines" };
const SYMBOLS: Feature = Feature { capability: "workspaceSymbolProvider", name: "symbols of a workspace" };
const DEFINITION: Feature = Feature { capability: "definitionProvider", name: "definitions" };
const DECLARATION: Feature = Feature { capability: "declarationProvider", name: "declarations" };
const TYPE: Feature = Feature { capability: "typeDefinitionProvider", name: "definitions of types" };
const IMPLEMENTATION: Feature = Feature { capability: "implementationProvider", name: "implementations" };
const REFERENCES: Feature = Feature { capability: "referencesProvider", name: "references" };
const HOVER: Feature = Feature { capability: "hoverProvider", name: "signatures" };
const CALLS: Feature = Feature { capability: "callHierarchyProvider", name: "hierarchies of calls" };

/// The most symbols of one result.
const MAX_SYMBOLS: usize = 5_000;
/// The most places of one result.
const MAX_PLACES: usize = 5_000;
/// The most functions of a hierarchy of calls.
const MAX_CALLS: usize = 200;

impl WorkspaceServers {
    pub(super) async fn ask_outline(
        &self,
        workspace: &Workspace,
        target: &Target,
    ) -> Result<Answer<Vec<Symbol>>, LanguageError> {
        let about = FileRequest { target, file: None, is_exact: false };
        let method = "textDocument/documentSymbol";
        let document =
            |target: &Target, _: Encoding| json!({ "textDocument": { "uri": uri::of_target(target) } });
        let found = self.ask(workspace, about, (OUTLINE, method), document).await?;
        let mut symbols = Vec::new();
        for (_, result) in &found.list {
            symbols.extend(outline(result.clone(), &found.target));
        }
        symbols.truncate(MAX_SYMBOLS);
        Ok(found.answer(symbols))
    }

    pub(super) async fn ask_symbols(
        &self,
        workspace: &Workspace,
        query: &str,
    ) -> Result<Answer<Vec<Symbol>>, LanguageError> {
        let parameters = json!({ "query": query });
        let of_editor = self.symbols_of_editor(workspace, &parameters).await;
        if let Ok(symbols) = &of_editor
            && !symbols.is_empty()
        {
            return Ok(Answer { value: symbols.clone(), unfinished: None });
        }
        match (self.own_symbols(workspace, &parameters).await, of_editor) {
            // The servers of the editor are all there are.
            (Err(LanguageError::NoServer(_)), Err(failure)) => Err(failure),
            (Err(LanguageError::NoServer(_)), Ok(none)) if self.editor.is_offered() => {
                Ok(Answer { value: none, unfinished: None })
            }
            (own, _) => own,
        }
    }

    async fn symbols_of_editor(
        &self,
        workspace: &Workspace,
        parameters: &Value,
    ) -> Result<Vec<Symbol>, LanguageError> {
        if !self.editor.is_offered() {
            return Ok(Vec::new());
        }
        let found = editor::ask(&self.editor, workspace, "workspace/symbol", parameters, None).await?;
        let of_server = |(_, result)| results::items::<SymbolInformation>(result);
        let symbols = found.list.into_iter().flat_map(of_server).filter_map(of_information);
        Ok(symbols.take(MAX_SYMBOLS).collect())
    }

    async fn own_symbols(
        &self,
        workspace: &Workspace,
        parameters: &Value,
    ) -> Result<Answer<Vec<Symbol>>, LanguageError> {
        let servers = self.all_of_workspace(workspace).await?;
        let asked = servers.iter().map(|running| running.request(SYMBOLS, "workspace/symbol", parameters));
        let (mut symbols, mut failure, mut unfinished) = (Vec::new(), None, None);
        for (running, result) in servers.iter().zip(join_all(asked).await) {
            match result {
                Ok(result) => {
                    let found: Vec<SymbolInformation> = results::items(result);
                    symbols.extend(found.into_iter().filter_map(of_information));
                    unfinished = unfinished.or_else(|| running.state.work.unfinished());
                }
                Err(error) => failure = Some(error),
            }
        }
        // One server without symbols of the workspace costs nothing where another has them.
        match failure {
            Some(error) if symbols.is_empty() => Err(error),
            _ => {
                symbols.truncate(MAX_SYMBOLS);
                Ok(Answer { value: symbols, unfinished })
            }
        }
    }

    /// Asks about the symbol at a position.
    async fn ask_at(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
        asked: (Feature, &str),
    ) -> Result<LanguageResults, LanguageError> {
        let about = FileRequest { target: &at.file.target, file: Some(at.file), is_exact: false };
        self.ask(workspace, about, asked, |target, encoding| position(target, at, encoding)).await
    }

    pub(super) async fn ask_places(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
        kind: PlaceKind,
    ) -> Result<Answer<Vec<Place>>, LanguageError> {
        let asked = match kind {
            PlaceKind::Definition => (DEFINITION, "textDocument/definition"),
            PlaceKind::Declaration => (DECLARATION, "textDocument/declaration"),
            PlaceKind::Type => (TYPE, "textDocument/typeDefinition"),
            PlaceKind::Implementation => (IMPLEMENTATION, "textDocument/implementation"),
        };
        let found = self.ask_at(workspace, at, asked).await?;
        Ok(found.answer(found.places(workspace).await))
    }

    pub(super) async fn ask_references(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
    ) -> Result<Answer<Vec<Place>>, LanguageError> {
        let about = FileRequest { target: &at.file.target, file: Some(at.file), is_exact: false };
        let parameters = |target: &Target, encoding: Encoding| {
            let mut parameters = position(target, at, encoding);
            parameters["context"] = json!({ "includeDeclaration": true });
            parameters
        };
        let asked = (REFERENCES, "textDocument/references");
        let found = self.ask(workspace, about, asked, parameters).await?;
        Ok(found.answer(found.places(workspace).await))
    }

    pub(super) async fn ask_hover(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
    ) -> Result<Answer<Option<String>>, LanguageError> {
        let found = self.ask_at(workspace, at, (HOVER, "textDocument/hover")).await?;
        let texts: Vec<String> =
            found.list.iter().filter_map(|(_, result)| results::hover_text(result)).collect();
        Ok(found.answer((!texts.is_empty()).then(|| texts.join("\n\n"))))
    }

    pub(super) async fn ask_calls(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
        direction: CallDirection,
        levels: usize,
    ) -> Result<Answer<Vec<CallNode>>, LanguageError> {
        let found = self.ask_at(workspace, at, (CALLS, "textDocument/prepareCallHierarchy")).await?;
        let mut nodes = Vec::new();
        for (source, items) in &found.list {
            let (room, path) = (MAX_CALLS, Vec::new());
            let mut walk = CallWalk { workspace, source, texts: found.own_texts(), direction, room, path };
            for item in items.as_array().into_iter().flatten() {
                nodes.extend(walk.node(item, Vec::new(), levels).await?);
            }
        }
        Ok(found.answer(nodes))
    }

    /// All servers of the workspace's languages, started.
    async fn all_of_workspace(
        &self,
        workspace: &Workspace,
    ) -> Result<Vec<std::sync::Arc<RunningLanguageServer>>, LanguageError> {
        let selection = self.selection().await;
        let open: Vec<AbsPath> =
            workspace.documents().into_iter().filter_map(|document| document.path).collect();
        let survey = std::sync::Arc::clone(&selection);
        let (definitions, samples) = kode_base::blocking(move || survey.survey(&open)).await;
        let mut instances = Vec::new();
        for root in workspace.roots() {
            for definition in &definitions {
                // Any file of the language represents the root of its project.
                let probe = root.join("probe");
                let (of, roots) = (std::sync::Arc::clone(definition), workspace.roots().to_vec());
                let project =
                    kode_base::blocking(move || crate::selection::root_of(&of, &probe, &roots)).await;
                let project = project.unwrap_or_else(|| root.clone());
                instances.push(self.instances.of(definition, project, &selection.launcher));
            }
        }
        let started = join_all(instances.iter().map(|instance| instance.running())).await;
        let (mut servers, mut failure) = (Vec::new(), None);
        for started in started {
            match started {
                Ok(running) => servers.push(running),
                Err(error) => failure = Some(error),
            }
        }
        if servers.is_empty() {
            return Err(failure.unwrap_or_else(|| LanguageError::NoServer("the workspace".to_owned())));
        }
        for running in &servers {
            // Some servers read their project when they get a file of it.
            let sample = samples.values().find(|path| running.serves(path)).cloned().map(Target::File);
            running.sync(workspace, sample.as_slice()).await?;
        }
        join_all(servers.iter().map(|running| running.state.work.ready())).await;
        Ok(servers)
    }
}

/// The parameters of a request about a position.
pub(super) fn position(target: &Target, at: TextPosition<'_>, encoding: Encoding) -> Value {
    let index = LineIndex::new(&at.file.text);
    json!({
        "textDocument": { "uri": uri::of_target(target) },
        "position": index.position(at.offset, encoding),
    })
}

/// The symbols of an outline in either form.
fn outline(result: Value, target: &Target) -> Vec<Symbol> {
    let mut symbols = Vec::new();
    let is_flat = result.get(0).is_some_and(|first| first.get("location").is_some());
    if is_flat {
        let flat: Vec<SymbolInformation> = results::items(result);
        symbols.extend(flat.into_iter().filter_map(of_information).take(MAX_SYMBOLS));
        symbols.sort_by_key(|symbol| symbol.line);
    } else {
        let nested: Vec<DocumentSymbol> = results::items(result);
        flatten(nested, target, (&mut Vec::new(), &mut symbols));
    }
    symbols
}

/// The symbols of an outline, each after the one around it.
fn flatten(
    nested: Vec<DocumentSymbol>,
    target: &Target,
    (around, into): (&mut Vec<String>, &mut Vec<Symbol>),
) {
    for symbol in nested {
        if into.len() >= MAX_SYMBOLS {
            return;
        }
        into.push(Symbol {
            name: symbol.name.clone(),
            kind: results::kind_name(symbol.kind),
            detail: symbol.detail.unwrap_or_default(),
            container: around.last().cloned().unwrap_or_default(),
            target: target.clone(),
            line: symbol.range.start.line + 1,
            last_line: last_line(symbol.range),
            name_line: symbol.selection_range.start.line + 1,
            depth: around.len(),
        });
        around.push(symbol.name);
        flatten(symbol.children, target, (around, into));
        around.pop();
    }
}

fn of_information(symbol: SymbolInformation) -> Option<Symbol> {
    let zero = Position { line: 0, character: 0 };
    let range = symbol.location.range.unwrap_or(PositionRange { start: zero, end: zero });
    Some(Symbol {
        name: symbol.name,
        kind: results::kind_name(symbol.kind),
        detail: String::new(),
        container: symbol.container_name.unwrap_or_default(),
        target: uri::target(&symbol.location.uri)?,
        line: range.start.line + 1,
        last_line: last_line(range),
        name_line: range.start.line + 1,
        depth: 0,
    })
}

/// The last line of a range, from 1: a range that ends at the start of a line ends with the line before.
fn last_line(range: PositionRange) -> u32 {
    let ends_before = range.end.character == 0 && range.end.line > range.start.line;
    if ends_before { range.end.line } else { range.end.line + 1 }
}

impl LanguageResults {
    /// The places of the results, by file and line, each once.
    async fn places(&self, workspace: &Workspace) -> Vec<Place> {
        let mut all = Vec::new();
        for (source, result) in &self.list {
            let found = results::destinations(result.clone());
            all.extend(places(workspace, source, self.own_texts(), found).await);
        }
        all.sort();
        all.dedup();
        all
    }
}

/// The places of a result in no order.
async fn places(
    workspace: &Workspace,
    source: &ResultSource,
    texts: &HashMap<Target, SyncedText>,
    found: Vec<Destination>,
) -> Vec<Place> {
    let mut by_file: HashMap<Target, Vec<Destination>> = HashMap::new();
    for destination in found.into_iter().take(MAX_PLACES) {
        if let Some(target) = uri::target(&destination.uri) {
            by_file.entry(target).or_default().push(destination);
        }
    }
    let mut all = Vec::new();
    for (target, destinations) in by_file {
        let text = text_of(workspace, texts, &target).await;
        let index = text.as_deref().map(LineIndex::new);
        let encoding = source.encoding();
        all.extend(destinations.into_iter().map(|one| place(&target, &one, index.as_ref(), encoding)));
    }
    all
}

fn place(
    target: &Target,
    destination: &Destination,
    index: Option<&LineIndex<'_>>,
    encoding: Encoding,
) -> Place {
    let start = destination.name.start;
    let column = index.map_or(start.character, |index| {
        index.position(index.offset(start, encoding), Encoding::Utf32).character
    });
    let last_line = last_line(destination.whole).max(start.line + 1);
    Place { target: target.clone(), line: start.line + 1, column: column + 1, last_line }
}

/// The text of a file, where it lies in the workspace.
async fn text_of(
    workspace: &Workspace,
    texts: &HashMap<Target, SyncedText>,
    target: &Target,
) -> Option<std::sync::Arc<str>> {
    if let Some(synced) = texts.get(target) {
        return Some(std::sync::Arc::clone(&synced.file.text));
    }
    if !workspace.contains(target) {
        return None;
    }
    workspace.text(target).await.ok().map(|file| file.text)
}

/// A walk through a hierarchy of calls.
struct CallWalk<'w> {
    workspace: &'w Workspace,
    source: &'w ResultSource,
    texts: &'w HashMap<Target, SyncedText>,
    direction: CallDirection,
    /// How many functions may still be added.
    room: usize,
    /// The functions on the way, so that recursion ends.
    path: Vec<(String, Position)>,
}

impl CallWalk<'_> {
    /// A function with its calls, `levels` deep; `None` for an item that is not of the protocol's form.
    fn node<'n>(
        &'n mut self,
        item: &'n Value,
        lines: Vec<u32>,
        levels: usize,
    ) -> BoxFuture<'n, Result<Option<CallNode>, LanguageError>> {
        Box::pin(async move {
            let Some((uri, name, kind, range)) = call_item(item) else { return Ok(None) };
            let destination = Destination { uri: uri.clone(), name: range, whole: range };
            let place = places(self.workspace, self.source, self.texts, vec![destination]).await;
            let Some(place) = place.into_iter().next() else { return Ok(None) };
            let key = (uri, range.start);
            let mut calls = Vec::new();
            if levels > 0 && !self.path.contains(&key) {
                self.path.push(key);
                calls = self.next(item, levels - 1).await?;
                self.path.pop();
            }
            Ok(Some(CallNode { name, kind, place, lines, calls }))
        })
    }

    async fn next(&mut self, item: &Value, levels: usize) -> Result<Vec<CallNode>, LanguageError> {
        let (method, other) = match self.direction {
            CallDirection::Incoming => ("callHierarchy/incomingCalls", "from"),
            CallDirection::Outgoing => ("callHierarchy/outgoingCalls", "to"),
        };
        let found = self.source.request(CALLS, method, &json!({ "item": item })).await?;
        let mut nodes = Vec::new();
        for call in found.as_array().into_iter().flatten() {
            if self.room == 0 {
                break;
            }
            self.room -= 1;
            let ranges: Vec<PositionRange> =
                results::items(call.get("fromRanges").cloned().unwrap_or_default());
            let mut lines: Vec<u32> = ranges.iter().map(|range| range.start.line + 1).collect();
            lines.dedup();
            let next = call.get(other).unwrap_or(&Value::Null);
            nodes.extend(self.node(next, lines, levels).await?);
        }
        Ok(nodes)
    }
}

fn call_item(item: &Value) -> Option<(String, String, &'static str, PositionRange)> {
    let text = |name: &str| item.get(name).and_then(Value::as_str).map(str::to_owned);
    let kind = item.get("kind").and_then(Value::as_u64).and_then(|kind| u32::try_from(kind).ok());
    let range = serde_json::from_value(item.get("selectionRange")?.clone()).ok()?;
    Some((text("uri")?, text("name")?, results::kind_name(kind.unwrap_or_default()), range))
}
