//! Tool calls in the words of the protocol.
//!
//! Rule: the title of a command is the command itself, the content of an edit is its diff, and a location is a file of the
//! session's folders: clients open what they are pointed at.

use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    Meta, Terminal, TerminalId, ToolCall, ToolCallContent, ToolCallId, ToolCallLocation, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields, ToolKind,
};
use kode_engine::base::command_shell::CommandShell;
use kode_engine::base::ids::ItemId;
use kode_engine::base::paths::AbsPath;
use kode_engine::record::event::{CallState, ToolCallItem};
use serde_json::{Value, json};

use super::diff::diffs;
use crate::display::both_ends;

/// The most characters of a command's output that are shown.
const MAX_OUTPUT: usize = 30_000;

/// The most characters of a title.
const MAX_TITLE: usize = 2_000;

/// The folders of a session, for locations and for the paths of diffs.
#[derive(Clone, Debug)]
pub(super) struct SessionPlaces {
    pub(super) roots: Vec<AbsPath>,
    pub(super) cwd: AbsPath,
}

/// The facts about a call beside its item.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ToolCallView<'a> {
    /// The call of the sub-agent that made it.
    pub(super) parent: Option<&'a ItemId>,
    /// The newest output of its command.
    pub(super) output: Option<&'a str>,
    /// The terminal of the client that runs its command, and shows its output.
    pub(super) terminal: Option<&'a TerminalId>,
}

impl SessionPlaces {
    /// The file behind a path as it is shown to people: relative paths are those of the session.
    pub(super) fn file(&self, shown: &str) -> PathBuf {
        let beside_root = |root: &AbsPath| Some(root.join(shown)).filter(|file| file.as_path().exists());
        let found = self.roots.iter().find_map(beside_root);
        found.unwrap_or_else(|| self.cwd.join(shown)).into()
    }

    /// The location of a file, if it is in the session's folders.
    pub(super) fn location(&self, path: &str, line: Option<u32>) -> Option<ToolCallLocation> {
        let file = self.cwd.join(path);
        let is_inside = self.roots.iter().any(|root| file.is_within(root) && file != *root);
        is_inside.then(|| ToolCallLocation::new(PathBuf::from(file)).line(line))
    }
}

/// A call as it is announced, and as a transcript shows it.
pub(super) fn announced(
    item: &ItemId,
    call: &ToolCallItem,
    context: ToolCallView<'_>,
    places: &SessionPlaces,
) -> ToolCall {
    ToolCall::new(id(item), title(call))
        .name(call.name.clone())
        .kind(kind(&call.name, &call.input))
        .status(status(call.state))
        .content(content(call, context, places))
        .locations(locations(call, places))
        .raw_input(raw_input(call))
        .raw_output(raw_output(call))
        .meta(meta(call, context))
}

/// A call as it is now, for a client that knows it.
pub(super) fn updated(
    item: &ItemId,
    call: &ToolCallItem,
    context: ToolCallView<'_>,
    places: &SessionPlaces,
) -> ToolCallUpdate {
    let fields = ToolCallUpdateFields::new()
        .status(status(call.state))
        .title(title(call))
        .content(content(call, context, places))
        .locations(locations(call, places))
        .raw_input(raw_input(call))
        .raw_output(raw_output(call));
    ToolCallUpdate::new(id(item), fields).meta(meta(call, context))
}

/// The newest output of a running call, or the terminal that shows it.
pub(super) fn progress(item: &ItemId, text: &str, terminal: Option<&TerminalId>) -> ToolCallUpdate {
    let content = terminal.map_or_else(|| output(text).into(), shown_terminal);
    let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress).content(vec![content]);
    ToolCallUpdate::new(id(item), fields)
}

/// The id of a call: that of its item, because models may use one id twice.
pub(super) fn id(item: &ItemId) -> ToolCallId {
    ToolCallId::new(item.as_str())
}

/// The kind of a call of a tool.
pub(super) fn kind(tool: &str, input: &Value) -> ToolKind {
    match tool {
        // The guest has reported it in the words of the protocol.
        "Guest" => serde_json::from_value(input["kind"].clone()).unwrap_or_default(),
        "Read" | "LS" | "BashOutput" | "ListMcpResources" | "ReadMcpResource" => ToolKind::Read,
        "Edit" | "MultiEdit" | "Write" | "NotebookEdit" | "apply_patch" => ToolKind::Edit,
        "Glob" | "Grep" | "ToolSearch" => ToolKind::Search,
        "Bash" | "PowerShell" | "KillShell" => ToolKind::Execute,
        "WebFetch" | "WebSearch" => ToolKind::Fetch,
        "SendMessage" | "Task" | "TeamTasks" | "Think" | "TodoWrite" | "WaitForMessage" => ToolKind::Think,
        "EnterPlanMode" | "ExitPlanMode" => ToolKind::SwitchMode,
        _ => ToolKind::Other,
    }
}

/// The state of a call. What waits for the user is pending.
fn status(state: CallState) -> ToolCallStatus {
    match state {
        CallState::Pending | CallState::ApprovalRequired => ToolCallStatus::Pending,
        CallState::Executing => ToolCallStatus::InProgress,
        CallState::Completed => ToolCallStatus::Completed,
        CallState::Failed | CallState::Denied | CallState::Sealed => ToolCallStatus::Failed,
    }
}

/// The title of a call; that of a command is the command.
fn title(call: &ToolCallItem) -> String {
    let command = call.input.get("command").and_then(Value::as_str);
    let command = command.filter(|_| CommandShell::of_tool(&call.name).is_some());
    both_ends(command.unwrap_or(&call.title), MAX_TITLE)
}

fn raw_input(call: &ToolCallItem) -> Option<Value> {
    (!call.input.is_null()).then(|| call.input.as_ref().clone())
}

fn raw_output(call: &ToolCallItem) -> Option<Value> {
    let structured = call.structured.as_ref().filter(|_| call.state.is_final())?;
    // Its patch is in the content already.
    let mut output = structured.clone();
    if let Some(fields) = output.as_object_mut() {
        fields.remove("unified");
        fields.remove("patch");
        fields.remove("files");
    }
    Some(output)
}

fn content(call: &ToolCallItem, context: ToolCallView<'_>, places: &SessionPlaces) -> Vec<ToolCallContent> {
    let mut content: Vec<ToolCallContent> =
        call.structured.iter().flat_map(|structured| patches(structured, places)).collect();
    match context.terminal {
        Some(terminal) => content.push(shown_terminal(terminal)),
        None => {
            let text = context.output.filter(|text| !text.trim().is_empty());
            content.extend(text.map(|text| output(text).into()));
        }
    }
    if call.state.is_final() && !call.display.is_empty() && content.is_empty() {
        content.push(both_ends(&call.display, MAX_OUTPUT).into());
    }
    content
}

/// The diffs of a call that changed files.
fn patches(structured: &Value, places: &SessionPlaces) -> Vec<ToolCallContent> {
    let files = match structured.get("files").and_then(Value::as_array) {
        Some(files) => files.as_slice(),
        None => std::slice::from_ref(structured),
    };
    let of_file = |file: &Value| {
        let unified = file.get("unified").and_then(Value::as_str)?;
        let path = file.get("absolutePath").and_then(Value::as_str).map(PathBuf::from);
        Some(diffs(unified, &|shown| path.clone().unwrap_or_else(|| places.file(shown))))
    };
    files.iter().filter_map(of_file).flatten().map(ToolCallContent::from).collect()
}

fn shown_terminal(terminal: &TerminalId) -> ToolCallContent {
    ToolCallContent::Terminal(Terminal::new(terminal.clone()))
}

/// The output of a command, fenced so that clients show it as it is.
fn output(text: &str) -> String {
    let text = both_ends(text, MAX_OUTPUT);
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}console\n{}\n{fence}", text.trim_end())
}

fn locations(call: &ToolCallItem, places: &SessionPlaces) -> Vec<ToolCallLocation> {
    let text = |key: &str| call.input.get(key).and_then(Value::as_str);
    let path = text("file_path").or_else(|| text("notebook_path")).or_else(|| text("path"));
    let line = call.input.get("offset").and_then(Value::as_u64).and_then(|line| u32::try_from(line).ok());
    path.and_then(|path| places.location(path, line)).into_iter().collect()
}

fn meta(call: &ToolCallItem, context: ToolCallView<'_>) -> Meta {
    let mut kode = json!({ "toolName": call.name, "callId": call.call.as_str() });
    if let Some(parent) = context.parent {
        kode["parentToolCallId"] = json!(parent.as_str());
    }
    if call.state == CallState::Denied {
        kode["denied"] = json!(true);
    }
    Meta::from_iter([("kode".to_owned(), kode)])
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kode_engine::base::ids::CallId;
    use kode_engine::record::event::CallOutcome;

    use super::*;

    fn places() -> SessionPlaces {
        let root = AbsPath::new("/w").unwrap();
        SessionPlaces { roots: vec![root.clone()], cwd: root }
    }

    fn call(name: &str, input: Value) -> ToolCallItem {
        let at = Timestamp::UNIX_EPOCH;
        ToolCallItem::pending(CallId::from_external("call_1"), name.to_owned(), None, input, at)
    }

    fn shown(call: &ToolCallItem, context: ToolCallView<'_>) -> Value {
        let item = ItemId::from_external("item_1");
        serde_json::to_value(announced(&item, call, context, &places())).unwrap()
    }

    fn ended(mut call: ToolCallItem, state: CallState, structured: Value) -> ToolCallItem {
        let outcome =
            CallOutcome { state, display: "Done".into(), structured: Some(structured), error: None };
        call.end(outcome, Timestamp::UNIX_EPOCH);
        call
    }

    #[test]
    fn a_command_is_titled_by_itself_and_shows_its_output() {
        let mut bash = call("Bash", json!({ "command": "cargo test -p a" }));
        bash.title = "Run cargo".to_owned();
        let shown = shown(&bash, ToolCallView { output: Some("a ``` b\n"), ..ToolCallView::default() });
        assert_eq!(shown["title"], "cargo test -p a");
        assert_eq!(
            (&shown["kind"], &shown["rawInput"]["command"]),
            (&json!("execute"), &json!("cargo test -p a"))
        );
        assert_eq!(shown["content"][0]["content"]["text"], "````console\na ``` b\n````");
    }

    #[test]
    fn an_edit_shows_its_diff_at_its_place() {
        let structured = json!({
            "absolutePath": "/w/a.rs", "unified": "--- a/a.rs\n+++ b/a.rs\n@@ -1,1 +1,1 @@\n-x\n+y\n", "patch": [],
        });
        let edit = ended(call("Edit", json!({ "file_path": "a.rs" })), CallState::Completed, structured);
        let shown = shown(&edit, ToolCallView::default());
        let diff = json!({ "type": "diff", "path": "/w/a.rs", "oldText": "x\n", "newText": "y\n" });
        assert_eq!(shown["content"], json!([diff]));
        assert_eq!(shown["locations"], json!([{ "path": "/w/a.rs" }]));
        assert_eq!(shown["rawOutput"], json!({ "absolutePath": "/w/a.rs" }));
        assert_eq!(shown["status"], "completed");
    }

    #[test]
    fn a_file_outside_the_folders_is_no_location() {
        for (path, expected) in [("/etc/passwd", 0), ("../x", 0), ("/w", 0), ("sub/x", 1)] {
            let read = shown(&call("Read", json!({ "file_path": path })), ToolCallView::default());
            assert_eq!(read["locations"].as_array().map_or(0, Vec::len), expected, "{path}");
        }
    }

    #[test]
    fn the_call_of_a_sub_agent_names_the_call_it_works_for() {
        let parent = ItemId::from_external("item_0");
        let read = call("Read", json!({}));
        let shown = shown(&read, ToolCallView { parent: Some(&parent), ..ToolCallView::default() });
        assert_eq!(shown["_meta"]["kode"]["parentToolCallId"], "item_0");
    }
}
