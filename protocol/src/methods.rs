//! All methods, one line each: name, parameters, result.
//!
//! Rule: a method exists by standing in this table; the table makes the type that implements `lsp_types`' trait
//! and the entry that the generated bindings are made from, so neither can be forgotten.

use lsp_types::notification::Notification;
use lsp_types::request::Request;
use schemars::{Schema, SchemaGenerator};

use crate::alert::{LeaveParams, LeaveResult, ReportFocusParams, RingBellParams};
use crate::ask::{AskSessionParams, AskSessionResult};
use crate::catalogue::{
    DoctorParams, DoctorResult, ListAgentsParams, ListAgentsResult, ListModelsParams, ListModelsResult,
    ListStylesParams, ListStylesResult, ListToolsParams, ListToolsResult,
};
use crate::checkpoint::{
    ListCheckpointsParams, ListCheckpointsResult, RestoreCheckpointParams, RestoreCheckpointResult,
};
use crate::commands::{ListCommandsParams, ListCommandsResult};
use crate::complete::{CompleteParams, CompleteResult};
use crate::config::{
    GetConfigParams, GetConfigResult, ListTrustParams, ListTrustResult, SetConfigParams, SetConfigResult,
    TrustParams, TrustResult, TrustWorkspaceParams,
};
use crate::context::{CompactSessionParams, ContextUse, GetContextParams, GetWindowParams, WindowPage};
use crate::document::{DocumentText, DocumentTextParams};
use crate::editor::{
    EditorDiagnosticsParams, EditorDiagnosticsResult, EditorLspParams, EditorLspResult, SaveDocumentsParams,
    SaveDocumentsResult,
};
use crate::edits::{
    ListEditsParams, ListEditsResult, MarkReviewedParams, ProposeEditsParams, ProposeEditsResult, Resolution,
    ResolveEditsParams, ResolveEditsResult, RevertEditsParams,
};
use crate::event::AgentEventParams;
use crate::hooks::{ListHooksParams, ListHooksResult};
use crate::mcp::{
    AuthenticateMcpResult, ListMcpParams, ListMcpResult, ListMcpToolsParams, ListMcpToolsResult,
    McpServerParams,
};
use crate::models::{
    DiscoverModelsParams, DiscoverModelsResult, ListProvidersParams, ListProvidersResult, SaveSetupParams,
    SaveSetupResult, SetupChoice, SetupTrialResult,
};
use crate::permission::{
    AddRuleParams, AddRuleResult, ExplainPermissionParams, ExplainPermissionResult, ListPermissionsParams,
    ListPermissionsResult, ListRulesParams, ListRulesResult, RemoveRuleParams, RemoveRuleResult,
    RespondPermissionParams,
};
use crate::question::RespondQuestionParams;
use crate::queue::{SetDraftParams, UpdateQueueParams, UpdateQueueResult};
use crate::session::{
    CloseSessionParams, ConfigureSessionParams, ConfigureSessionResult, GetItemsParams, GetUsageParams,
    ItemPage, LoadSessionParams, LoadSubagentParams, NewSessionParams, NewSessionResult, SessionUsage,
    Snapshot, Subagent, TakeOverSessionParams,
};
use crate::sessions::{
    ArchiveSessionParams, DeleteSessionParams, ListSessionsParams, ListSessionsResult, RenameSessionParams,
    SearchSessionsParams, SearchSessionsResult, SessionListChangedParams,
};
use crate::task::{
    ListTasksParams, ListTasksResult, MoveToBackgroundParams, MoveToBackgroundResult, ReadOutputParams,
    ReadOutputResult, StopTaskParams,
};
use crate::team::{SendToTeamParams, SendToTeamResult};
use crate::todo::{ListTodosParams, ListTodosResult};
use crate::tools::{
    CallToolParams, CallToolResult, RegisterToolsParams, RegisterToolsResult, ToolCancelledParams,
};
use crate::transfer::{
    ExportSessionParams, ExportSessionResult, ForkSessionParams, ImportSessionParams, ImportSessionResult,
};
use crate::turn::{
    CancelResult, CancelToolParams, CancelTurnParams, ImagePart, ReadAttachmentParams, RetryTurnParams,
    RetryTurnResult, StartTurnParams, StartTurnResult,
};

/// A request as the bindings need it.
#[derive(Clone, Copy, Debug)]
pub struct RequestEntry {
    /// The name on the wire.
    pub method: &'static str,
    /// Its effect, line by line.
    pub doc: &'static [&'static str],
    /// The schema of its parameters.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// The schema of its result.
    pub result: fn(&mut SchemaGenerator) -> Schema,
}

/// A notification as the bindings need it.
#[derive(Clone, Copy, Debug)]
pub struct NotificationEntry {
    /// The name on the wire.
    pub method: &'static str,
    /// Its report, line by line.
    pub doc: &'static [&'static str],
    /// The schema of its parameters.
    pub params: fn(&mut SchemaGenerator) -> Schema,
}

macro_rules! requests {
    (
        $(#[$table_doc:meta])* $table:ident:
        $($(#[doc = $doc:literal])* $name:ident = $method:literal, $params:ty => $result:ty;)*
    ) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug)]
            pub enum $name {}

            impl Request for $name {
                type Params = $params;
                type Result = $result;
                const METHOD: &'static str = $method;
            }
        )*

        $(#[$table_doc])*
        pub const $table: &[RequestEntry] = &[$(
            RequestEntry {
                method: $method,
                doc: &[$($doc),*],
                params: SchemaGenerator::subschema_for::<$params>,
                result: SchemaGenerator::subschema_for::<$result>,
            },
        )*];
    };
}

macro_rules! notifications {
    ($($(#[doc = $doc:literal])* $name:ident = $method:literal, $params:ty;)*) => {
        $(
            $(#[doc = $doc])*
            #[derive(Debug)]
            pub enum $name {}

            impl Notification for $name {
                type Params = $params;
                const METHOD: &'static str = $method;
            }
        )*

        /// All notifications from the server to the client.
        pub const NOTIFICATIONS: &[NotificationEntry] = &[$(
            NotificationEntry {
                method: $method,
                doc: &[$($doc),*],
                params: SchemaGenerator::subschema_for::<$params>,
            },
        )*];
    };
}

requests! {
    /// All requests from the client to the server.
    REQUESTS:

    /// Begins a session and follows it: its events are sent from now on.
    ///
    /// Errors: `invalidParams`, `modelNotConfigured`, `storageFailure`.
    NewSession = "agent/session/new", NewSessionParams => NewSessionResult;
    /// Lists the sessions of this workspace, also those that cannot be read.
    ///
    /// Errors: `invalidParams`.
    ListSessions = "agent/session/list", ListSessionsParams => ListSessionsResult;
    /// Gives a session a title, whether it is live or not; `title_changed` tells clients that follow it. No model gives
    /// it another one then.
    ///
    /// Errors: `unknownSession`, `sessionBusy`, `invalidParams`, `storageFailure`.
    RenameSession = "agent/session/rename", RenameSessionParams => ();
    /// Puts a session away, so that it is not listed unless asked for and never deleted for its age, or takes it out
    /// again. `archived_changed` tells clients that follow it.
    ///
    /// Errors: `unknownSession`, `sessionBusy`, `storageFailure`.
    ArchiveSession = "agent/session/archive", ArchiveSessionParams => ();
    /// Deletes a session and all that was kept for it; a live one is closed first. `sessionBusy`: a turn runs in it, or it
    /// is open in another window.
    ///
    /// Errors: `unknownSession`, `sessionBusy`, `storageFailure`.
    DeleteSession = "agent/session/delete", DeleteSessionParams => ();
    /// Searches prompts, answers, titles and tool calls of all sessions. The request can be cancelled.
    ///
    /// Errors: `invalidParams`.
    SearchSessions = "agent/session/search", SearchSessionsParams => SearchSessionsResult;
    /// Follows a session, taking it up from its journal when it is not live, and tells all about it. One that another server
    /// writes is followed as it is written: `following` says so.
    ///
    /// Errors: `unknownSession`, `storageFailure`.
    LoadSession = "agent/session/load", LoadSessionParams => Snapshot;
    /// Makes this server the one that writes a session, instead of the one that does, and tells all about it.
    ///
    /// Errors: `unknownSession`, `takeOverDeclined`, `writerSilent`, `sessionBusy` when another client was first,
    /// `storageFailure`.
    TakeOverSession = "agent/session/takeOver", TakeOverSessionParams => Snapshot;
    /// Gives a page of the older items of a live session, or of one of its sub-agents.
    ///
    /// Errors: `unknownSession`, `invalidParams`, `storageFailure`.
    GetItems = "agent/session/items", GetItemsParams => ItemPage;
    /// Gives what a sub-agent of a live session did, as it is now.
    ///
    /// Errors: `unknownSession`, `invalidParams`.
    LoadSubagent = "agent/subagent/load", LoadSubagentParams => Subagent;
    /// Ends a live session: what runs is cancelled, the journal stays.
    ///
    /// Errors: `unknownSession`.
    CloseSession = "agent/session/close", CloseSessionParams => ();
    /// Begins a session with what another one said up to some item, and follows it. It has the conversation and nothing that
    /// is the other's alone: no changes of files, no commands, no prompts that wait, nothing that was allowed.
    ///
    /// Errors: `unknownSession`, `invalidParams`, `storageFailure`.
    ForkSession = "agent/session/fork", ForkSessionParams => NewSessionResult;
    /// Gives a session as a document. Nothing is written or sent anywhere.
    ///
    /// Errors: `unknownSession`, `storageFailure`.
    ExportSession = "agent/session/export", ExportSessionParams => ExportSessionResult;
    /// Makes a session from the folder of an agent of the Kode SDK, which stays as it is.
    ///
    /// Errors: `invalidParams`, `storageFailure`.
    ImportSession = "agent/session/import", ImportSessionParams => ImportSessionResult;
    /// Changes mode and model of a session and returns the state in force.
    ///
    /// Errors: `unknownSession`, `modelNotConfigured`.
    ConfigureSession = "agent/session/configure", ConfigureSessionParams => ConfigureSessionResult;
    /// Says what a live session has taken of its models since it began: tokens and money, by model and by turn.
    ///
    /// Errors: `unknownSession`.
    GetUsage = "agent/usage/get", GetUsageParams => SessionUsage;
    /// Compacts the conversation of a session at once, or after the prompts that wait: a summary replaces older
    /// messages. `context_compression` tells how it goes.
    ///
    /// Errors: `unknownSession`, `sessionBusy`.
    CompactSession = "agent/session/compact", CompactSessionParams => StartTurnResult;
    /// Says how full the context window of a session is, and of what.
    ///
    /// Errors: `unknownSession`, `modelNotConfigured`.
    GetContext = "agent/context/get", GetContextParams => ContextUse;
    /// Gives a page of the messages of a conversation as they were before a compaction.
    ///
    /// Errors: `unknownSession`, `invalidParams`.
    GetWindow = "agent/context/window", GetWindowParams => WindowPage;
    /// Submits a prompt and says at once what became of it. One that begins with `/` and a name is a command.
    ///
    /// Errors: `unknownSession`, `sessionBusy`, `invalidParams`.
    StartTurn = "agent/turn/start", StartTurnParams => StartTurnResult;
    /// Answers a question from the conversation as it is, also while a turn runs: `/btw` in a prompt. No tool runs, nothing
    /// of it is kept but its tokens, and two may be asked at a time. The request waits for the answer and can be cancelled.
    ///
    /// Errors: `unknownSession`, `sessionBusy`, `invalidParams`, `modelNotConfigured`, `modelFailed`, `chatDisabled`.
    AskSession = "agent/session/ask", AskSessionParams => AskSessionResult;
    /// Says what can stand at the cursor of a prompt: files and more after `@`, commands and skills after `/`.
    ///
    /// Errors: `unknownSession`, `invalidParams`.
    Complete = "agent/complete", CompleteParams => CompleteResult;
    /// Edits, removes, moves or promotes a queued prompt; `queue_changed` has the new state of the queue.
    ///
    /// Errors: `unknownSession`, `unknownPrompt`, `alreadyResolved`, `sessionBusy`, `invalidParams`.
    UpdateQueue = "agent/queue/update", UpdateQueueParams => UpdateQueueResult;
    /// Keeps the unsent prompt of a session; `draft_changed` tells other clients.
    ///
    /// Errors: `unknownSession`, `invalidParams`.
    SetDraft = "agent/draft/set", SetDraftParams => ();
    /// Cancels the running turn; prompts that wait stay, and begin no more by themselves until a person says so.
    ///
    /// Errors: `unknownSession`.
    CancelTurn = "agent/turn/cancel", CancelTurnParams => CancelResult;
    /// Ends the wait before a model that failed is asked again.
    ///
    /// Errors: `unknownSession`.
    RetryTurn = "agent/turn/retry", RetryTurnParams => RetryTurnResult;
    /// Reads an image that went with a prompt.
    ///
    /// Errors: `unknownSession`, `invalidParams`, `storageFailure`.
    ReadAttachment = "agent/attachment/read", ReadAttachmentParams => ImagePart;
    /// Cancels one call of the running turn; its siblings continue.
    ///
    /// Errors: `unknownSession`, `unknownCall`.
    CancelTool = "agent/tool/cancel", CancelToolParams => CancelResult;
    /// Answers a permission prompt; the first answer wins.
    ///
    /// Errors: `unknownSession`, `unknownPermission`, `alreadyResolved`, `invalidParams`.
    RespondPermission = "agent/permission/respond", RespondPermissionParams => ();
    /// Lists the permission prompts that wait.
    ///
    /// Errors: `unknownSession`.
    ListPermissions = "agent/permission/list", ListPermissionsParams => ListPermissionsResult;
    /// Lists the rules in force, what waits for approval, and what cannot be used.
    ///
    /// Errors: `unknownSession`.
    ListRules = "agent/permission/rules", ListRulesParams => ListRulesResult;
    /// Writes a rule into the user's settings of this project or of all projects.
    ///
    /// Errors: `unknownSession`, `invalidParams`, `storageFailure`.
    AddRule = "agent/permission/addRule", AddRuleParams => AddRuleResult;
    /// Removes a rule from the settings file it is in.
    ///
    /// Errors: `unknownSession`, `invalidParams`, `storageFailure`.
    RemoveRule = "agent/permission/removeRule", RemoveRuleParams => RemoveRuleResult;
    /// Says what would become of a call, without running anything.
    ///
    /// Errors: `unknownSession`, `invalidParams`.
    ExplainPermission = "agent/permission/explain", ExplainPermissionParams => ExplainPermissionResult;
    /// Says what counts of all settings and where it comes from. Secrets are masked.
    ///
    /// Errors: `unknownSession`, `invalidParams`.
    GetConfig = "agent/config/get", GetConfigParams => GetConfigResult;
    /// Changes one setting, in a file of ours or in a session alone. A value set in a file of the workspace is approved with
    /// it; `config_changed` tells sessions.
    ///
    /// Errors: `unknownSession`, `invalidParams`, `storageFailure`.
    SetConfig = "agent/config/set", SetConfigParams => SetConfigResult;
    /// Lists what files of the workspace ask for: what waits for the user, and what they have approved.
    ///
    /// Errors: `unknownSession`.
    ListTrust = "agent/trust/list", ListTrustParams => ListTrustResult;
    /// Approves exactly the shown texts, and nothing that has come into a file since.
    ///
    /// Errors: `unknownSession`, `storageFailure`.
    ApproveTrust = "agent/trust/approve", TrustParams => TrustResult;
    /// Takes approvals back; nothing asks for what they were about until it changes.
    ///
    /// Errors: `unknownSession`, `storageFailure`.
    RevokeTrust = "agent/trust/revoke", TrustParams => TrustResult;
    /// Notes that the user does not want to be asked about these again until they change.
    ///
    /// Errors: `unknownSession`, `storageFailure`.
    DismissTrust = "agent/trust/dismiss", TrustParams => ();
    /// Says whether the editor trusts the workspace. While it does not, no approval counts.
    TrustWorkspace = "agent/trust/workspace", TrustWorkspaceParams => ();
    /// Reports whether the editor is in front. While it is, no alert of the setting `notify` goes out; a client that never
    /// reports counts as not in front.
    ReportFocus = "agent/client/focus", ReportFocusParams => ();
    /// Says that the client goes and may come back, as a window does that is loaded again. Where a turn runs, the server outlives the
    /// end of the connection without `shutdown` until no turn runs, for half an hour at most. Files that were open are closed ones
    /// then, and another server follows the sessions, answers what they ask, and continues with them afterwards.
    LeaveClient = "agent/client/leave", LeaveParams => LeaveResult;
    /// Answers a question of the model, or refuses to; the first answer wins.
    ///
    /// Errors: `unknownSession`, `unknownQuestion`, `alreadyResolved`, `invalidParams`.
    RespondQuestion = "agent/question/respond", RespondQuestionParams => ();
    /// Lists what there is to do in a session.
    ///
    /// Errors: `unknownSession`.
    ListTodos = "agent/todos/list", ListTodosParams => ListTodosResult;
    /// Lists what a session has changed, file by file and hunk by hunk, unchanged now.
    ///
    /// Errors: `unknownSession`, `storageFailure`, `invalidParams`.
    ListEdits = "agent/edits/list", ListEditsParams => ListEditsResult;
    /// Begins to accept, reject, keep or undo hunks; `edits_resolved` tells how it went.
    ///
    /// Errors: `unknownSession`, `unknownHunk`, `nothingToDo`, `sessionBusy`, `invalidParams`.
    ResolveEdits = "agent/edits/resolve", ResolveEditsParams => ResolveEditsResult;
    /// Marks the changes of a file as reviewed, or removes the mark. Nothing is kept or undone by it, and a hunk that comes or
    /// changes afterwards ends it; `edits_changed` reports it.
    ///
    /// Errors: `unknownSession`, `nothingToDo`, `invalidParams`.
    MarkReviewed = "agent/edits/review", MarkReviewedParams => ();
    /// Puts a text of the user's choice into a document as a change of the agent's, to be reviewed like the others; the model
    /// learns of it with the next prompt. Answered when it is done.
    ///
    /// Errors: `unknownSession`, `nothingToDo`, `invalidParams`.
    ProposeEdits = "agent/edits/propose", ProposeEditsParams => ProposeEditsResult;
    /// Begins to take an act on hunks or a restore back; `edits_resolved` tells how it went, and can be taken back too.
    ///
    /// Errors: `unknownSession`, `unknownResolution`, `sessionBusy`.
    RevertEdits = "agent/edits/revert", RevertEditsParams => Resolution;
    /// Gives a text without the hunks that are neither kept nor undone.
    ///
    /// Errors: `unknownSession`, `unknownDocument`, `storageFailure`, `invalidParams`.
    DocumentBaseline = "agent/document/baseline", DocumentTextParams => DocumentText;
    /// Gives a text with the proposed hunks.
    ///
    /// Errors: `unknownSession`, `unknownDocument`, `storageFailure`, `invalidParams`.
    DocumentProposed = "agent/document/proposed", DocumentTextParams => DocumentText;
    /// Lists the checkpoints of a session.
    ///
    /// Errors: `unknownSession`.
    ListCheckpoints = "agent/checkpoint/list", ListCheckpointsParams => ListCheckpointsResult;
    /// Begins to restore a checkpoint, or tells what that would do; `edits_resolved` tells how it went.
    ///
    /// Errors: `unknownSession`, `unknownCheckpoint`, `nothingToDo`, `sessionBusy`, `invalidParams`.
    RestoreCheckpoint = "agent/checkpoint/restore", RestoreCheckpointParams => RestoreCheckpointResult;
    /// Lists the background commands of a session, also those that have ended.
    ///
    /// Errors: `unknownSession`.
    ListTasks = "agent/tasks/list", ListTasksParams => ListTasksResult;
    /// Begins to end a background command; `background_ended` tells that it is gone.
    ///
    /// Errors: `unknownSession`, `unknownTask`.
    StopTask = "agent/tasks/stop", StopTaskParams => CancelResult;
    /// Moves the command that a call of Bash runs to the background: the same process runs on without a limit in time, and the
    /// call ends with a result that says so. `background_started` tells about it. `unknownCall`: no such call runs now.
    /// `nothingToDo`: it is a call of another tool, or in the background already. `sessionBusy`: too many run there.
    ///
    /// Errors: `unknownSession`, `unknownCall`, `nothingToDo`, `sessionBusy`.
    MoveToBackground = "agent/tasks/background", MoveToBackgroundParams => MoveToBackgroundResult;
    /// Sends a message of the user to a sub-agent in the background, which reads it with its next step. Errors of `to` and
    /// `text` are `invalidParams`; `sessionBusy` means that a mailbox is full, and no member gets it then.
    ///
    /// Errors: `unknownSession`, `invalidParams`, `nothingToDo`, `sessionBusy`.
    SendToTeam = "agent/team/send", SendToTeamParams => SendToTeamResult;
    /// Gives a page of the whole output of a call or a background command.
    ///
    /// Errors: `unknownSession`, `unknownCall`, `unknownTask`, `invalidParams`, `storageFailure`.
    ReadOutput = "agent/output/read", ReadOutputParams => ReadOutputResult;
    /// Lists the tools.
    ListTools = "agent/tools/list", ListToolsParams => ListToolsResult;
    /// Lists the model profiles.
    ListModels = "agent/models/list", ListModelsParams => ListModelsResult;
    /// Lists the models of one profile's server, or of the model servers on this machine. Takes at most three seconds and
    /// blocks no other request.
    ///
    /// Errors: `invalidParams` for an unknown profile.
    DiscoverModels = "agent/models/discover", DiscoverModelsParams => DiscoverModelsResult;
    /// Lists the providers that can be set up. Sends no request to them.
    ListProviders = "agent/setup/providers", ListProvidersParams => ListProvidersResult;
    /// Tries a choice of provider, key and model with one short request. Stores nothing.
    ///
    /// Errors: `invalidParams` for a choice that makes no valid profile.
    TrySetup = "agent/setup/try", SetupChoice => SetupTrialResult;
    /// Stores a choice as a profile in the user's settings, and an entered key in a file of its own.
    ///
    /// Errors: `invalidParams` for a choice that makes no valid profile, or a file that cannot be written.
    SaveSetup = "agent/setup/save", SaveSetupParams => SaveSetupResult;
    /// Lists the types of sub-agents, which of them hide others, and the problems of the files of sub-agents, skills,
    /// commands and output styles.
    ///
    /// Errors: `unknownSession`.
    ListAgents = "agent/agents/list", ListAgentsParams => ListAgentsResult;
    /// Lists the hooks of settings, agents and skills: what runs at which event, its place, whether it may run, and how it
    /// ended last in the session. Nothing is run.
    ///
    /// Errors: `unknownSession`.
    ListHooks = "agent/hooks/list", ListHooksParams => ListHooksResult;
    /// Lists the MCP servers, what becomes of them and what went wrong. Starts none.
    ///
    /// Errors: `unknownSession`.
    ListMcp = "agent/mcp/list", ListMcpParams => ListMcpResult;
    /// Lists the tools of connected MCP servers.
    ///
    /// Errors: `unknownSession`.
    ListMcpTools = "agent/mcp/tools", ListMcpToolsParams => ListMcpToolsResult;
    /// Begins to connect to an MCP server again, or for the first time; `mcp_changed` tells how it goes.
    ///
    /// Errors: `unknownSession`, `invalidParams`.
    ReconnectMcp = "agent/mcp/reconnect", McpServerParams => ();
    /// Begins to sign the user in to an MCP server and gives the page to open. When they have signed in, `mcp_changed` tells
    /// that the server is connected to.
    ///
    /// Errors: `unknownSession`, `invalidParams`.
    AuthenticateMcp = "agent/mcp/authenticate", McpServerParams => AuthenticateMcpResult;
    /// Switches an MCP server on for as long as this process lives, and says that what its tools say of themselves now is
    /// fine.
    ///
    /// Errors: `unknownSession`, `invalidParams`.
    EnableMcp = "agent/mcp/enable", McpServerParams => ();
    /// Switches an MCP server off for as long as this process lives.
    ///
    /// Errors: `unknownSession`, `invalidParams`.
    DisableMcp = "agent/mcp/disable", McpServerParams => ();
    /// Registers the tools of a provider in the client, for all sessions of this connection; replaces those that it had.
    ///
    /// Errors: `invalidParams`.
    RegisterTools = "agent/tools/register", RegisterToolsParams => RegisterToolsResult;
    /// Lists the output styles.
    ///
    /// Errors: `unknownSession`.
    ListStyles = "agent/styles/list", ListStylesParams => ListStylesResult;
    /// Reports the state of users' files: in use, with their origin, hidden by others, or left out with the reason.
    ///
    /// Errors: `unknownSession`.
    Doctor = "agent/doctor", DoctorParams => DoctorResult;
    /// Lists the commands that can be typed after `/`, also those that are hidden or left out.
    ///
    /// Errors: `unknownSession`.
    ListCommands = "agent/commands/list", ListCommandsParams => ListCommandsResult;
}

requests! {
    /// All requests from the server to the client.
    SERVER_REQUESTS:

    /// Saves open documents and says which were saved. Sent only to clients that have offered `saveDocuments`.
    SaveDocuments = "agent/editor/save", SaveDocumentsParams => SaveDocumentsResult;
    /// Tells what all language servers of the editor say about files. Sent only to clients that have offered
    /// `diagnostics`.
    EditorDiagnostics = "agent/editor/diagnostics", EditorDiagnosticsParams => EditorDiagnosticsResult;
    /// Asks the language servers of the editor: a request of LSP that reads or computes edits. Sent only to clients that have
    /// offered `languageServers`, and only for a call of a tool.
    ///
    /// Errors: -32801 where the document has another version, -32802 after the limit, -32803 with the reason of a server.
    EditorLsp = "agent/editor/lsp", EditorLspParams => EditorLspResult;
    /// Has the client carry out a call of a tool that it has registered. An error is the call's, with its text for the model.
    CallTool = "agent/tools/call", CallToolParams => CallToolResult;
}

notifications! {
    /// Tells what happened in a session that the client follows.
    AgentEvent = "agent/event", AgentEventParams;
    /// Tells a client that wants events and has listed sessions that the list has changed: a session
    /// was started, named, archived, deleted, opened or left, here or in another server.
    SessionListChanged = "agent/session/listChanged", SessionListChangedParams;
    /// Tells a client that a call of one of its tools is over before it has answered.
    ToolCancelled = "agent/tools/cancelled", ToolCancelledParams;
    /// Asks a client that has offered `bell` to ring the bell of its terminal.
    RingBell = "agent/client/bell", RingBellParams;
}
