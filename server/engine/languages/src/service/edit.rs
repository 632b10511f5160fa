//! Requests that change: renaming, code actions and formatting.
//!
//! Rule: nothing is changed here. A server's edits become changes of the text that it had, and the gate, the ledger and the user
//! decide about them.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::ask::position;
use super::{
    LanguageResults, LanguageTexts, MAX_ACTION_FILES, ReadyServer, ResultSource, WorkspaceServers,
    shown_target,
};
use crate::editor::FileRequest;
use crate::edits::{self, EditFault};
use crate::positions::{Encoding, LineIndex, Position, PositionRange, narrow};
use crate::running::Feature;
use crate::uri;
use kode_base::paths::Target;
use kode_text::edit::FileChange;
use kode_text::file_text::FileText;
use kode_text::workspace::Workspace;
use kode_text::workspace::language::{Answer, CodeAction, LanguageError, TextPosition};

const RENAME: Feature = Feature { capability: "renameProvider", name: "renaming" };
const ACTIONS: Feature = Feature { capability: "codeActionProvider", name: "code actions" };
const COMMANDS: Feature = Feature { capability: "executeCommandProvider", name: "commands" };
const FORMAT: Feature = Feature { capability: "documentFormattingProvider", name: "formatting" };
const FORMAT_LINES: Feature =
    Feature { capability: "documentRangeFormattingProvider", name: "formatting of lines" };

/// How often edits are asked for, when the text changes meanwhile.
const ATTEMPTS: usize = 2;
/// The most actions that are offered for one place.
const MAX_ACTIONS: usize = 60;
/// The lines at the start of a text that tell its indentation.
const INDENT_LINES: usize = 1_000;
/// The width of an indentation that a text does not tell.
const DEFAULT_INDENT: usize = 4;

impl WorkspaceServers {
    pub(super) async fn ask_rename(
        &self,
        workspace: &Workspace,
        at: TextPosition<'_>,
        new_name: &str,
    ) -> Result<Answer<Vec<FileChange>>, LanguageError> {
        let mut attempt = 1;
        loop {
            // The position is one of the caller's text.
            let about = FileRequest { target: &at.file.target, file: Some(at.file), is_exact: true };
            let parameters = |target: &Target, encoding: Encoding| {
                let mut parameters = position(target, at, encoding);
                parameters["newName"] = new_name.into();
                parameters
            };
            let found = self.ask(workspace, about, (RENAME, "textDocument/rename"), parameters).await?;
            let edits: Vec<(ResultSource, Value)> = found.first_edit().into_iter().collect();
            match found.changes(edits, workspace).await {
                Ok(changes) => return Ok(found.answer(changes)),
                Err(LanguageError::Moved(..)) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) async fn ask_actions(
        &self,
        workspace: &Workspace,
        target: &Target,
        lines: (u32, u32),
        kind: Option<&str>,
    ) -> Result<Answer<Vec<CodeAction>>, LanguageError> {
        let text = self.text_for(workspace, target).await?;
        let diagnostics = self.diagnostics_of_lines(workspace, target, lines).await?;
        let parameters = |target: &Target, encoding: Encoding| {
            let mut context = json!({ "diagnostics": diagnostics, "triggerKind": 1 });
            if let Some(kind) = kind {
                context["only"] = json!([kind]);
            }
            let document = json!({ "uri": uri::of_target(target) });
            let range = line_range(&text.text, lines, encoding);
            json!({ "textDocument": document, "range": range, "context": context })
        };
        let about = FileRequest { target, file: Some(&text), is_exact: true };
        let found = self.ask(workspace, about, (ACTIONS, "textDocument/codeAction"), parameters).await?;
        let mut proposed: Vec<(ResultSource, Value)> = Vec::new();
        for (source, result) in &found.list {
            let list = result.as_array().into_iter().flatten();
            proposed.extend(list.map(|action| (source.clone(), action.clone())));
        }
        proposed.truncate(MAX_ACTIONS);
        let actions =
            (1..).zip(&proposed).filter_map(|(number, (_, action))| code_action(number, action)).collect();
        let answer = found.answer(actions);
        let mut kept = self.actions.lock();
        if kept.len() >= MAX_ACTION_FILES {
            kept.clear();
        }
        kept.insert(found.target, proposed);
        Ok(answer)
    }

    /// The diagnostics of lines for their code actions. The client of an editor knows those of its own servers, so that no
    /// instance is started for them.
    async fn diagnostics_of_lines(
        &self,
        workspace: &Workspace,
        target: &Target,
        lines: (u32, u32),
    ) -> Result<Vec<Value>, LanguageError> {
        if self.editor.is_offered() {
            let instance = self.instance(workspace, target).await.ok();
            let running = match instance {
                Some(instance) => instance.if_running().await,
                None => None,
            };
            if running.is_none() {
                return Ok(Vec::new());
            }
        }
        let ReadyServer { running, target } = self.prepare(workspace, target).await?;
        let Some(synced) = running.text(&target).await else { return Ok(Vec::new()) };
        let range = line_range(&synced.file.text, lines, running.encoding);
        Ok(self.diagnostics_at(workspace, &running, &target, range).await)
    }

    pub(super) async fn ask_apply(
        &self,
        workspace: &Workspace,
        target: &Target,
        id: &str,
    ) -> Result<Answer<(String, Vec<FileChange>)>, LanguageError> {
        let target = shown_target(workspace, target).await;
        let number = id.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let action = {
            let kept = self.actions.lock();
            number.and_then(|number| kept.get(&target)?.get(number).cloned())
        };
        let Some((source, mut action)) = action else {
            let reason = "it has not proposed an action with this id for the file".to_owned();
            return Err(LanguageError::Failed { server: workspace.display(&target), reason });
        };
        let found = self.texts_now(workspace, &source, target).await?;
        let needs_edit = action.get("edit").is_none_or(Value::is_null) && !is_command(&action);
        if needs_edit && source.resolves_actions() {
            action = source.request(ACTIONS, "codeAction/resolve", &action).await?;
        }
        let mut edits: Vec<Value> =
            action.get("edit").filter(|edit| !edit.is_null()).cloned().into_iter().collect();
        if let Some(command) = command_of(&action) {
            edits.extend(source.run(&command, !edits.is_empty()).await?);
        }
        if edits.is_empty() {
            let reason = "the action makes no edits".to_owned();
            return Err(LanguageError::Failed { server: source.name().to_owned(), reason });
        }
        let title = action.get("title").and_then(Value::as_str).unwrap_or("a code action").to_owned();
        let edits = edits.into_iter().map(|edit| (source.clone(), edit)).collect();
        let changes = found.changes(edits, workspace).await?;
        Ok(found.answer((title, changes)))
    }

    /// The texts of a server as they are now, without a result.
    async fn texts_now(
        &self,
        workspace: &Workspace,
        source: &ResultSource,
        target: Target,
    ) -> Result<LanguageResults, LanguageError> {
        let texts = match source {
            ResultSource::Own(running) => {
                running.sync(workspace, std::slice::from_ref(&target)).await?;
                LanguageTexts::Own(running.texts().await)
            }
            ResultSource::Editor(_) => {
                let documents = workspace.documents().into_iter();
                LanguageTexts::Editor(documents.map(|one| (one.target(), one.version)).collect())
            }
        };
        Ok(LanguageResults { list: vec![(source.clone(), Value::Null)], target, texts })
    }

    pub(super) async fn ask_format(
        &self,
        workspace: &Workspace,
        target: &Target,
        lines: Option<(u32, u32)>,
    ) -> Result<Answer<Vec<FileChange>>, LanguageError> {
        let text = self.text_for(workspace, target).await?;
        let parameters = |target: &Target, encoding: Encoding| {
            let mut parameters = json!({
                "textDocument": { "uri": uri::of_target(target) }, "options": indentation(&text.text),
            });
            if let Some(lines) = lines {
                parameters["range"] = json!(line_range(&text.text, lines, encoding));
            }
            parameters
        };
        let asked = match lines {
            Some(_) => (FORMAT_LINES, "textDocument/rangeFormatting"),
            None => (FORMAT, "textDocument/formatting"),
        };
        let about = FileRequest { target, file: Some(&text), is_exact: true };
        let found = self.ask(workspace, about, asked, parameters).await?;
        let texts = found.texts_of(vec![found.target.clone()], workspace).await?;
        let Some((source, edits)) = found.first_edit() else { return Ok(found.answer(Vec::new())) };
        let change = edits::text_change(edits, &found.target, workspace, &texts, source.encoding()).await;
        let change = change.map_err(|fault| failure(fault, &source))?;
        Ok(found.answer(change.into_iter().collect()))
    }

    /// The text of a file as the user sees it.
    async fn text_for(&self, workspace: &Workspace, target: &Target) -> Result<FileText, LanguageError> {
        let text = workspace.text(target).await;
        text.map_err(|error| LanguageError::Unreadable(error.to_string()))
    }
}

impl LanguageResults {
    /// The first result that is one: two servers would make the same edits twice.
    pub(super) fn first_edit(&self) -> Option<(ResultSource, Value)> {
        self.list.iter().find(|(_, result)| !result.is_null()).cloned()
    }

    /// The changes that edits of a workspace make.
    pub(super) async fn changes(
        &self,
        edits: Vec<(ResultSource, Value)>,
        workspace: &Workspace,
    ) -> Result<Vec<FileChange>, LanguageError> {
        let Some(source) = edits.first().map(|(source, _)| source.clone()) else { return Ok(Vec::new()) };
        let edits: Vec<Value> = edits.into_iter().map(|(_, edit)| edit).collect();
        let targets = edits::targets(&edits).map_err(|fault| failure(fault, &source))?;
        let texts = self.texts_of(targets, workspace).await?;
        let changes = edits::changes(&edits, workspace, &texts, source.encoding()).await;
        changes.map_err(|fault| failure(fault, &source))
    }
}

impl ResultSource {
    /// Whether an action without edits gets them by another request.
    fn resolves_actions(&self) -> bool {
        match self {
            Self::Own(running) => running.has_nested("codeActionProvider", "resolveProvider"),
            Self::Editor(_) => true,
        }
    }

    /// Runs the command of an action and returns the edits that the server wants to make for it. The editor would apply those of
    /// its own servers without a review, so that such a command is not run.
    async fn run(&self, command: &Value, has_edit: bool) -> Result<Vec<Value>, LanguageError> {
        match self {
            Self::Own(running) => {
                running.state.begin_capture();
                let ran = running.request(COMMANDS, "workspace/executeCommand", command).await;
                let edits = running.state.end_capture();
                ran.map(|_| edits)
            }
            Self::Editor(_) if has_edit => Ok(Vec::new()),
            Self::Editor(server) => {
                let reason = "the action is a command of the editor, whose edits cannot be reviewed. \
                    The user can apply it in the editor";
                Err(LanguageError::Failed { server: server.name.clone(), reason: reason.to_owned() })
            }
        }
    }
}

/// The range of whole lines, from 1.
fn line_range(text: &str, (first, last): (u32, u32), encoding: Encoding) -> PositionRange {
    let index = LineIndex::new(text);
    let end = index.line((last.max(first) as usize).saturating_sub(1)).end;
    let start = Position { line: first.saturating_sub(1).min(narrow(index.count() - 1)), character: 0 };
    PositionRange { start, end: index.position(end, encoding) }
}

fn code_action(number: usize, action: &Value) -> Option<CodeAction> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let title = text(action.get("title"));
    let disabled = action.get("disabled").map(|disabled| text(disabled.get("reason")));
    (!title.is_empty()).then(|| CodeAction {
        id: number.to_string(),
        title,
        kind: text(action.get("kind")),
        is_preferred: action.get("isPreferred") == Some(&Value::Bool(true)),
        disabled,
    })
}

/// Whether an item of a list of actions is a bare command.
fn is_command(action: &Value) -> bool {
    action.get("command").is_some_and(Value::is_string)
}

/// The parameters that run the command of an action; `None` where it has none.
fn command_of(action: &Value) -> Option<Value> {
    let command = if is_command(action) { action } else { action.get("command")? };
    let name = command.get("command")?.as_str()?;
    Some(json!({ "command": name, "arguments": command.get("arguments").cloned().unwrap_or_default() }))
}

/// The options of formatting that fit a text.
fn indentation(text: &str) -> Value {
    let indented = text.lines().take(INDENT_LINES).filter(|line| line.starts_with([' ', '\t']));
    let mut widths: HashMap<usize, usize> = HashMap::new();
    let (mut tabs, mut before) = (0, 0);
    for line in indented {
        if line.starts_with('\t') {
            tabs += 1;
            continue;
        }
        let width = line.len() - line.trim_start_matches(' ').len();
        let step = width.abs_diff(before);
        before = width;
        if matches!(step, 2 | 4 | 8) {
            *widths.entry(step).or_default() += 1;
        }
    }
    let spaces: usize = widths.values().sum();
    let width = widths.into_iter().max_by_key(|(width, count)| (*count, usize::MAX - width));
    json!({
        "tabSize": width.map_or(DEFAULT_INDENT, |(width, _)| width),
        "insertSpaces": tabs <= spaces,
        "trimTrailingWhitespace": true,
    })
}

fn failure(fault: EditFault, source: &ResultSource) -> LanguageError {
    let server = source.name().to_owned();
    match fault {
        EditFault::Moved(file) => LanguageError::Moved(file, server),
        EditFault::Unusable(reason) => LanguageError::Failed { server, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formatting_keeps_the_indentation_of_the_text() {
        for (text, width, spaces) in [
            ("a\n  b\n    c\n  d\n", 2, true),
            ("a\n    b\n        c\n", 4, true),
            ("a\n\tb\n\t\tc\n", DEFAULT_INDENT, false),
            ("a\n", DEFAULT_INDENT, true),
        ] {
            let options = indentation(text);
            assert_eq!(
                (&options["tabSize"], &options["insertSpaces"]),
                (&json!(width), &json!(spaces)),
                "{text:?}"
            );
        }
    }

    #[test]
    fn commands_are_found_in_both_forms() {
        let bare = json!({ "title": "x", "command": "a", "arguments": [1] });
        let within = json!({ "title": "x", "command": bare });
        assert_eq!(command_of(&bare), Some(json!({ "command": "a", "arguments": [1] })));
        assert_eq!(command_of(&within), command_of(&bare));
        assert_eq!(command_of(&json!({ "title": "x", "edit": {} })), None);
    }
}
