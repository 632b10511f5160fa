//! Requests that change: renaming, code actions and formatting.
//!
//! Rule: nothing is changed here. A server's edits become changes of the text that it had, and the gate, the ledger and the user
//! decide about them.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::{MAX_ACTION_FILES, ReadyServer, WorkspaceServers, answer};
use crate::documents::SyncedText;
use crate::edits::{self, EditFault};
use crate::positions::{LineIndex, Position, PositionRange, narrow};
use crate::running::{Feature, RunningLanguageServer};
use crate::uri;
use kode_base::paths::Target;
use kode_text::edit::FileChange;
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
        for attempt in 1.. {
            let prepared = self.prepare(workspace, &at.file.target).await?;
            let running = &prepared.running;
            let texts = running.texts().await;
            // The position is one of the caller's text.
            let is_same = texts.get(&prepared.target).is_some_and(|synced| synced.file.text == at.file.text);
            if !is_same {
                return Err(moved(workspace, &prepared.target, running));
            }
            let mut parameters = prepared.position(at);
            parameters["newName"] = new_name.into();
            let edit = running.request(RENAME, "textDocument/rename", &parameters).await?;
            match edits::changes(&[edit], workspace, &texts, running.encoding).await {
                Ok(changes) => return Ok(answer(running, changes)),
                Err(EditFault::Moved(_)) if attempt < ATTEMPTS => {}
                Err(fault) => return Err(failure(fault, running)),
            }
        }
        unreachable!("the last attempt returns")
    }

    pub(super) async fn ask_actions(
        &self,
        workspace: &Workspace,
        target: &Target,
        lines: (u32, u32),
        kind: Option<&str>,
    ) -> Result<Answer<Vec<CodeAction>>, LanguageError> {
        let ReadyServer { running, target } = self.prepare(workspace, target).await?;
        let Some(synced) = running.text(&target).await else {
            return Err(moved(workspace, &target, &running));
        };
        let range = line_range(&synced, lines, &running);
        let diagnostics = self.diagnostics_at(workspace, &running, &target, range).await;
        let mut context = json!({ "diagnostics": diagnostics, "triggerKind": 1 });
        if let Some(kind) = kind {
            context["only"] = json!([kind]);
        }
        let document = json!({ "uri": uri::of_target(&target) });
        let parameters = json!({ "textDocument": document, "range": range, "context": context });
        let found = running.request(ACTIONS, "textDocument/codeAction", &parameters).await?;
        let found: Vec<Value> = match found {
            Value::Array(list) => list.into_iter().take(MAX_ACTIONS).collect(),
            _ => Vec::new(),
        };
        let actions = (1..).zip(&found).filter_map(|(number, action)| code_action(number, action)).collect();
        let mut kept = self.actions.lock();
        if kept.len() >= MAX_ACTION_FILES {
            kept.clear();
        }
        kept.insert(target, found);
        Ok(answer(&running, actions))
    }

    pub(super) async fn ask_apply(
        &self,
        workspace: &Workspace,
        target: &Target,
        id: &str,
    ) -> Result<Answer<(String, Vec<FileChange>)>, LanguageError> {
        let ReadyServer { running, target } = self.prepare(workspace, target).await?;
        let number = id.trim().parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let action = {
            let kept = self.actions.lock();
            number.and_then(|number| kept.get(&target)?.get(number).cloned())
        };
        let failed =
            |reason: &str| LanguageError::Failed { server: running.name.clone(), reason: reason.to_owned() };
        let Some(mut action) = action else {
            return Err(failed("it has not proposed an action with this id for the file"));
        };
        let texts = running.texts().await;
        let needs_edit = action.get("edit").is_none_or(Value::is_null) && !is_command(&action);
        if needs_edit && running.has_nested("codeActionProvider", "resolveProvider") {
            action = running.request(ACTIONS, "codeAction/resolve", &action).await?;
        }
        let mut found: Vec<Value> =
            action.get("edit").filter(|edit| !edit.is_null()).cloned().into_iter().collect();
        if let Some(command) = command_of(&action) {
            running.state.begin_capture();
            let ran = running.request(COMMANDS, "workspace/executeCommand", &command).await;
            found.extend(running.state.end_capture());
            ran?;
        }
        if found.is_empty() {
            return Err(failed("the action makes no edits"));
        }
        let title = action.get("title").and_then(Value::as_str).unwrap_or("a code action").to_owned();
        let changes = edits::changes(&found, workspace, &texts, running.encoding).await;
        let changes = changes.map_err(|fault| failure(fault, &running))?;
        Ok(answer(&running, (title, changes)))
    }

    pub(super) async fn ask_format(
        &self,
        workspace: &Workspace,
        target: &Target,
        lines: Option<(u32, u32)>,
    ) -> Result<Answer<Vec<FileChange>>, LanguageError> {
        let ReadyServer { running, target } = self.prepare(workspace, target).await?;
        let texts = running.texts().await;
        let Some(synced) = texts.get(&target) else { return Err(moved(workspace, &target, &running)) };
        let mut parameters = json!({
            "textDocument": { "uri": uri::of_target(&target) }, "options": indentation(&synced.file.text),
        });
        let found = match lines {
            Some(lines) => {
                parameters["range"] = json!(line_range(synced, lines, &running));
                running.request(FORMAT_LINES, "textDocument/rangeFormatting", &parameters).await?
            }
            None => running.request(FORMAT, "textDocument/formatting", &parameters).await?,
        };
        let change = edits::text_change(found, &target, workspace, &texts, running.encoding).await;
        let change = change.map_err(|fault| failure(fault, &running))?;
        Ok(answer(&running, change.into_iter().collect()))
    }
}

/// The range of whole lines, from 1.
fn line_range(
    synced: &SyncedText,
    (first, last): (u32, u32),
    running: &RunningLanguageServer,
) -> PositionRange {
    let index = LineIndex::new(&synced.file.text);
    let end = index.line((last.max(first) as usize).saturating_sub(1)).end;
    let start = Position { line: first.saturating_sub(1).min(narrow(index.count() - 1)), character: 0 };
    PositionRange { start, end: index.position(end, running.encoding) }
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

fn moved(workspace: &Workspace, target: &Target, running: &RunningLanguageServer) -> LanguageError {
    LanguageError::Moved(workspace.display(target), running.name.clone())
}

fn failure(fault: EditFault, running: &RunningLanguageServer) -> LanguageError {
    match fault {
        EditFault::Moved(file) => LanguageError::Moved(file, running.name.clone()),
        EditFault::Unusable(reason) => LanguageError::Failed { server: running.name.clone(), reason },
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
