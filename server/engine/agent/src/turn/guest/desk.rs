//! The desk at which a guest's requests are answered, and the transcript of what it reports.
//!
//! Rule: each request and each reported action is a call in the transcript of the sub-agent. A call that was carried out here says
//! so by its name; whatever a guest did itself has the name `Guest` and is marked as not ours.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::tools::{self, GuestRead, GuestWrite, OwnAction};
use super::{alone, named};
use crate::core::lock;
use crate::turn::pipeline;
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_base::ids::{CallId, ChangeId, ItemId};
use kode_base::paths::Target;
use kode_model::Block;
use kode_record::event::{CallOutcome, CallState, ItemBody, ToolCallItem};
use kode_record::record::{ExecutedCall, Record};
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::ledger::review::HunkKind;
use kode_text::edit::matching::adopt_line_breaks;
use kode_text::file_text::FileText;
use kode_tool::erased;
use kode_tool::guest::{GuestAction, GuestActionKind, GuestActionState, GuestAnswer, GuestDesk, GuestReport};
use kode_tool::names::{GUEST, READ};

/// The most bytes of texts that a guest has read and that are kept to merge its writes.
const MAX_BASES: usize = 64 << 20;

/// The most bytes of one message of a guest; the rest is left out.
const MAX_MESSAGE: usize = 1 << 20;

/// The most actions of a guest in the transcript; more are not shown.
const MAX_ACTIONS: usize = 2_000;

/// The shortest time between two records of a message that grows.
const GROWTH_INTERVAL: Duration = Duration::from_millis(50);

/// The one who allows a write that the guest had asked for with the very text.
const BY_REQUEST: &str = "the answer to the guest's request";

/// The mark of what a guest did itself.
const NOT_OURS: &str = "Done by the guest itself: not ours, cannot be undone";

/// The desk of one guest.
pub(super) struct Desk<'a> {
    turn: TurnContext<'a>,
    /// The name of its type.
    kind: &'a str,
    cancel: &'a CancellationToken,
    state: Mutex<DeskState>,
}

#[derive(Default)]
struct DeskState {
    message: Option<GuestMessage>,
    actions: HashMap<String, KnownAction>,
    /// The texts that the guest knows.
    bases: HashMap<Target, GuestText>,
    /// The texts that the user, or a rule, has allowed it to give files when it asked; each for one write.
    allowed: HashMap<Target, String>,
    /// The files that it has changed itself.
    around: BTreeSet<Target>,
}

impl DeskState {
    /// Notes the texts that the guest may give files.
    fn allow(&mut self, texts: Vec<(Target, String)>) {
        let size: usize = self.allowed.values().map(String::len).sum();
        if size + texts.iter().map(|(_, text)| text.len()).sum::<usize>() > MAX_BASES {
            self.allowed.clear();
        }
        self.allowed.extend(texts);
    }
}

/// A text that the guest takes for that of a file.
#[derive(Clone)]
struct GuestText {
    text: FileText,
    /// Whether it asks here for the text. If not it reads the disk.
    is_given: bool,
}

/// A message while it arrives.
struct GuestMessage {
    item: ItemId,
    is_thought: bool,
    text: String,
    /// How much of it was recorded.
    recorded: usize,
    at: Instant,
    is_cut: bool,
}

/// An action that the guest has reported.
#[derive(Clone)]
struct KnownAction {
    call: ModelToolCall,
    action: GuestAction,
    title: String,
    began: Instant,
    is_over: bool,
}

impl<'a> Desk<'a> {
    pub(super) fn new(turn: TurnContext<'a>, kind: &'a str, cancel: &'a CancellationToken) -> Self {
        Self { turn, kind, cancel, state: Mutex::default() }
    }

    /// Ends the message that arrives, and the actions that have no end.
    pub(super) fn finish(&self) {
        let mut state = lock(&self.state);
        self.end_message(&mut state);
        let open: Vec<KnownAction> = state.actions.values().filter(|known| !known.is_over).cloned().collect();
        drop(state);
        for known in open {
            self.end(&known, &[], Some("It was not reported how this ended"));
        }
    }

    /// The names of all files that the guest has changed itself, with these as the last.
    pub(super) fn around(&self, last: Vec<Target>) -> Vec<String> {
        let mut state = lock(&self.state);
        state.around.extend(last);
        let workspace = self.turn.conversation.workspace();
        state.around.iter().map(|target| workspace.display(target)).collect()
    }

    /// Adds a call to the transcript.
    fn begin(&self, name: &str, kind: Option<ToolKind>, input: Value, title: &str) -> ModelToolCall {
        let turn = self.turn;
        let id = CallId::generate();
        let mut body =
            ToolCallItem::pending(id.clone(), name.to_owned(), kind, input.clone(), Timestamp::now());
        title.clone_into(&mut body.title);
        let item = turn.new_item(ItemBody::ToolCall(Box::new(body)));
        let call = ModelToolCall {
            turn: turn.id.clone(),
            id,
            item: item.id.clone(),
            name: name.to_owned(),
            input,
            input_error: None,
            spared_by: None,
            pending: None,
        };
        self.turn.commit(Record::Item { item, streamed: false });
        call
    }

    fn body(&self, message: &GuestMessage, complete: bool) -> ItemBody {
        let text = message.text.clone();
        match message.is_thought {
            true => ItemBody::Thinking { text, complete },
            false => {
                let model = Some(self.kind.to_owned());
                ItemBody::AgentMessage { text, complete, interrupted: false, model, duration_ms: None }
            }
        }
    }

    /// Takes a piece of a message in.
    fn say(&self, text: &str, is_thought: bool) {
        let mut state = lock(&self.state);
        if state.message.as_ref().is_some_and(|message| message.is_thought != is_thought) {
            self.end_message(&mut state);
        }
        let Some(message) = &mut state.message else {
            let mut message = GuestMessage {
                item: ItemId::generate(),
                is_thought,
                text: String::new(),
                recorded: 0,
                at: Instant::now(),
                is_cut: false,
            };
            message.push(text);
            message.recorded = message.text.len();
            let mut item = self.turn.new_item(self.body(&message, false));
            item.id = message.item.clone();
            self.turn.commit(Record::Streamed { item });
            state.message = Some(message);
            return;
        };
        message.push(text);
        if message.at.elapsed() >= GROWTH_INTERVAL {
            self.grow(message);
        }
    }

    fn grow(&self, message: &mut GuestMessage) {
        let text = message.text[message.recorded..].to_owned();
        message.recorded = message.text.len();
        message.at = Instant::now();
        if !text.is_empty() {
            self.turn.commit(Record::Grown { item: message.item.clone(), text });
        }
    }

    fn end_message(&self, state: &mut DeskState) {
        let Some(message) = state.message.take() else { return };
        let mut item = self.turn.new_item(self.body(&message, true));
        item.id = message.item.clone();
        self.turn.commit(Record::Item { item, streamed: true });
    }

    /// The action as it is known now, in the transcript; `None` beyond the bound.
    fn known(&self, reported: GuestAction) -> Option<KnownAction> {
        let mut state = lock(&self.state);
        if !state.actions.contains_key(&reported.id) {
            if state.actions.len() >= MAX_ACTIONS {
                tracing::warn!(guest = self.kind, "further actions of a guest are not shown");
                return None;
            }
            self.end_message(&mut state);
            let title = title(&reported);
            let call = self.begin(GUEST, None, arguments(&reported, &title), &title);
            let known =
                KnownAction { call, action: reported.clone(), title, began: Instant::now(), is_over: false };
            state.actions.insert(reported.id.clone(), known);
        }
        let known = state.actions.get_mut(&reported.id)?;
        let action = &mut known.action;
        action.kind = reported.kind.or(action.kind);
        action.input = reported.input.or(action.input.take());
        action.text = reported.text.or(action.text.take());
        action.state = reported.state.or(action.state);
        if !reported.paths.is_empty() {
            action.paths = reported.paths;
        }
        if reported.title.is_some() {
            action.title = reported.title;
            known.title = title(action);
        }
        Some(known.clone())
    }

    /// Notes that an action is over. Answers whether it was not before.
    fn close(&self, id: &str) -> bool {
        let mut state = lock(&self.state);
        state.actions.get_mut(id).is_some_and(|known| !std::mem::replace(&mut known.is_over, true))
    }

    fn origin(&self, call: &ModelToolCall) -> ChangeOrigin {
        ChangeOrigin {
            id: ChangeId::generate(),
            turn: call.turn.clone(),
            call: call.id.clone(),
            kind: HunkKind::Text,
            permission: None,
        }
    }

    /// Enters what an action has changed, and ends its call.
    async fn settle(&self, known: KnownAction) {
        let mut changed = Vec::new();
        if !known.action.kind.unwrap_or_default().only_looks() {
            let _exclusive = alone(self.turn, self.cancel).await;
            changed = self.turn.services.edits.guest_acted(&self.origin(&known.call)).await;
        }
        let workspace = self.turn.conversation.workspace();
        let is_edit = known.action.kind.is_some_and(GuestActionKind::names_its_files);
        let paths: Vec<Target> = match is_edit {
            true => {
                known.action.paths.iter().filter_map(|path| workspace.resolve(path.to_str()?).ok()).collect()
            }
            false => Vec::new(),
        };
        // An edit names its files; other changes are of something else.
        let own = changed.iter().filter(|target| paths.is_empty() || paths.contains(target));
        let names: Vec<String> = own.map(|target| workspace.display(target)).collect();
        lock(&self.state).around.extend(changed);
        self.end(&known, &names, None);
    }

    /// Ends the call of an action that changed these files.
    fn end(&self, known: &KnownAction, changed: &[String], fault: Option<&str>) {
        let kind = known.action.kind.unwrap_or_default();
        let has_failed = known.action.state == Some(GuestActionState::Failed) || fault.is_some();
        let display = match (kind, changed.is_empty()) {
            (kind, true) if kind.only_looks() => "Done by the guest itself".to_owned(),
            (GuestActionKind::Edit | GuestActionKind::Delete | GuestActionKind::Move, false) => {
                format!("Changed around kode-ls, in the review: {}", named(changed))
            }
            (GuestActionKind::Edit | GuestActionKind::Delete | GuestActionKind::Move, true) => {
                "Reported by the guest; no file was changed around kode-ls".to_owned()
            }
            (_, true) => NOT_OURS.to_owned(),
            (_, false) => format!("{NOT_OURS}; its changes of files are in the review: {}", named(changed)),
        };
        let display = match fault {
            Some(fault) => format!("{fault}. {display}"),
            None => display,
        };
        let structured = json!({
            "guest": self.kind, "kind": kind.name(), "ours": false, "changed": changed,
            "output": known.action.text,
        });
        let outcome = CallOutcome {
            state: if has_failed { CallState::Failed } else { CallState::Completed },
            display: display.clone(),
            structured: Some(structured),
            error: has_failed.then_some(ToolErrorKind::Failed),
        };
        let result = Block::ToolResult {
            tool_use_id: known.call.id.as_str().to_owned(),
            content: known.action.text.clone().unwrap_or(display),
            images: Vec::new(),
            is_error: has_failed,
        };
        let duration_ms = u64::try_from(known.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let executed = Some(ExecutedCall { name: known.call.name.clone(), duration_ms });
        self.turn.conversation.thread.end_call(&known.call.item, outcome, (result, Vec::new()), executed);
    }

    fn path(path: PathBuf) -> Result<String, ToolError> {
        path.into_os_string().into_string().map_err(|_| {
            let message = "The path is not Unicode.";
            ToolError::new(ToolErrorKind::InvalidInput, message, "Name another file.")
        })
    }

    fn base(&self, path: &str) -> Option<FileText> {
        let target = self.turn.conversation.workspace().resolve(path).ok()?;
        lock(&self.state).bases.get(&target).map(|known| known.text.clone())
    }

    /// Keeps the text that the guest takes for that of a file.
    fn keep_base(&self, known: GuestText) {
        let mut state = lock(&self.state);
        let size: usize = state.bases.values().map(|known| known.text.text.len()).sum();
        if size + known.text.text.len() > MAX_BASES {
            state.bases.clear();
        }
        state.bases.insert(known.text.target.clone(), known);
    }

    /// Keeps the saved texts of files that the guest is about to change. Some write the disk themselves and report the same write
    /// here: the disk then no longer shows what they had read.
    async fn keep_saved(&self, action: &GuestAction) {
        let workspace = self.turn.conversation.workspace();
        let targets = action.paths.iter().filter_map(|path| workspace.resolve(path.to_str()?).ok());
        for target in targets {
            if lock(&self.state).bases.get(&target).is_some_and(|known| known.is_given) {
                continue;
            }
            if let Some(text) = workspace.saved_file(&target).await {
                self.keep_base(GuestText { text, is_given: false });
            }
        }
    }

    /// Keeps what the guest has written as what it takes for the text of a file, whatever the user has typed into it.
    async fn keep_written(&self, path: &str, content: &str) {
        let workspace = self.turn.conversation.workspace();
        let Ok(target) = workspace.resolve(path) else { return };
        let known = lock(&self.state).bases.get(&target).cloned();
        let known = match known {
            Some(known) => Some(known),
            None => workspace.text(&target).await.ok().map(|text| GuestText { text, is_given: false }),
        };
        let Some(GuestText { text, is_given }) = known else { return };
        let content = adopt_line_breaks(&text.text, content.trim_start_matches('\u{feff}'));
        if let Ok(text) = text.rewritten(content.as_ref().into()) {
            self.keep_base(GuestText { text, is_given });
        }
    }
}

impl GuestMessage {
    fn push(&mut self, text: &str) {
        if self.is_cut {
            return;
        }
        let room = MAX_MESSAGE.saturating_sub(self.text.len());
        if text.len() <= room {
            self.text.push_str(text);
            return;
        }
        let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        self.text.push_str(&text[..end]);
        self.text.push('…');
        self.is_cut = true;
    }
}

/// The arguments of the call that represents an action.
fn arguments(action: &GuestAction, title: &str) -> Value {
    json!({ "kind": action.kind.unwrap_or_default().name(), "title": title, "input": action.input })
}

/// The title of an action, by the guest.
fn title(action: &GuestAction) -> String {
    let title = action.title.as_deref().map(|title| title.split_whitespace().collect::<Vec<_>>().join(" "));
    title
        .filter(|title| !title.is_empty())
        .unwrap_or_else(|| action.kind.unwrap_or_default().name().to_owned())
}

/// The lines that a guest asks for.
fn lines(text: &str, line: Option<u32>, limit: Option<u32>) -> String {
    if line.is_none() && limit.is_none() {
        return text.to_owned();
    }
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let from = count(line.unwrap_or(1)).saturating_sub(1);
    text.split_inclusive('\n').skip(from).take(limit.map_or(usize::MAX, count)).collect()
}

#[async_trait]
impl GuestDesk for Desk<'_> {
    async fn read(&self, path: PathBuf, line: Option<u32>, limit: Option<u32>) -> Result<String, ToolError> {
        let path = Self::path(path)?;
        let input = json!({ "file_path": path });
        let call = {
            let mut state = lock(&self.state);
            self.end_message(&mut state);
            self.begin(READ, Some(ToolKind::ReadOnly), input, READ)
        };
        let found = Arc::new(Mutex::new(None));
        let tool = erased(GuestRead { found: Arc::clone(&found) });
        pipeline::run_guest(self.turn, &call, tool, self.cancel).await?;
        let Some(text) = lock(&found).take() else {
            let message = format!("`{path}` was not read: a hook replaced the result.");
            return Err(ToolError::new(ToolErrorKind::Failed, message, "Continue without it."));
        };
        let answer = lines(&text.text, line, limit);
        self.keep_base(GuestText { text, is_given: true });
        Ok(answer)
    }

    async fn write(&self, path: PathBuf, content: String) -> Result<(), ToolError> {
        let path = Self::path(path)?;
        let input = json!({ "file_path": path, "content": content });
        let mut call = {
            let mut state = lock(&self.state);
            self.end_message(&mut state);
            self.begin("Write", Some(ToolKind::Write), input, "Write")
        };
        let target = self.turn.conversation.workspace().resolve(&path).ok();
        let allowed = target.and_then(|target| lock(&self.state).allowed.remove(&target));
        call.spared_by = allowed.filter(|allowed| *allowed == content).map(|_| BY_REQUEST.to_owned());
        let tool = erased(GuestWrite { base: self.base(&path) });
        let started = Instant::now();
        let mut result = pipeline::judge_guest(self.turn, &call, tool, self.cancel).await;
        // While the user was asked, the guest may have written the file itself.
        if result.as_ref().is_err_and(|error| error.kind == ToolErrorKind::Conflict)
            && tools::has_text(self.turn.conversation.workspace(), &path, &content).await
        {
            result = Ok(tools::unchanged());
        }
        pipeline::end_guest(self.turn, &call, result.clone(), started);
        result?;
        self.keep_written(&path, &content).await;
        Ok(())
    }

    async fn permit(&self, mut action: GuestAction) -> GuestAnswer {
        let edits = std::mem::take(&mut action.edits);
        let Some(known) = self.known(action) else { return GuestAnswer::Denied };
        // Some report an action before they know its arguments, and name them as they ask.
        let input = arguments(&known.action, &known.title);
        let call = ModelToolCall { input: input.clone(), ..known.call.clone() };
        let action = GuestAction { edits, ..known.action.clone() };
        let shown = Arc::default();
        let tool =
            Arc::new(OwnAction { action, shown: Arc::clone(&shown), title: known.title.clone(), input });
        // A fault here is an error as well, and must not let the guest act.
        match pipeline::judge_guest(self.turn, &call, tool, self.cancel).await {
            Ok(_) => {
                lock(&self.state).allow(std::mem::take(&mut lock(&shown)));
                if known.action.kind.is_some_and(GuestActionKind::names_its_files) {
                    self.keep_saved(&known.action).await;
                }
                GuestAnswer::Allowed
            }
            Err(error) => {
                let answer = match error.kind {
                    ToolErrorKind::Cancelled => GuestAnswer::Cancelled,
                    _ => GuestAnswer::Denied,
                };
                if self.close(&known.action.id) {
                    pipeline::end_guest(self.turn, &known.call, Err(error), known.began);
                }
                answer
            }
        }
    }

    fn report(&self, report: GuestReport) -> Option<BoxFuture<'_, ()>> {
        match report {
            GuestReport::Text(text) => self.say(&text, false),
            GuestReport::Thought(text) => self.say(&text, true),
            GuestReport::Action(mut action) => {
                // They matter where it asks.
                action.edits.clear();
                let known = self.known(action)?;
                match known.action.state {
                    Some(GuestActionState::Completed | GuestActionState::Failed)
                        if self.close(&known.action.id) =>
                    {
                        return Some(self.settle(known).boxed());
                    }
                    Some(GuestActionState::Running) if !known.is_over => {
                        self.turn.conversation.call_begins(&known.call.item, &known.title);
                    }
                    Some(_) | None => {}
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_text_is_counted_from_the_first_line() {
        let text = "one\r\ntwo\nthree";
        for (line, limit, expected) in [
            (None, None, text),
            (Some(1), None, text),
            (Some(2), Some(1), "two\n"),
            (None, Some(1), "one\r\n"),
            (Some(3), Some(9), "three"),
            (Some(0), Some(1), "one\r\n"),
            (Some(9), None, ""),
        ] {
            assert_eq!(lines(text, line, limit), expected, "{line:?} {limit:?}");
        }
    }

    #[test]
    fn a_message_is_cut_at_its_bound_once() {
        let item = ItemId::generate();
        let mut message = GuestMessage {
            item,
            is_thought: false,
            text: String::new(),
            recorded: 0,
            at: Instant::now(),
            is_cut: false,
        };
        message.push(&"é".repeat(MAX_MESSAGE));
        message.push("more");
        assert!(message.text.len() <= MAX_MESSAGE + '…'.len_utf8() && message.text.ends_with("é…"));
    }
}
