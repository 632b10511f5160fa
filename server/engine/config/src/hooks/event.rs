//! The hook points of a session, by the names that settings give them.
//!
//! Rule: the set is closed. A name that only another agent fires is known as such, so that settings can say so.

/// A moment at which hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookEvent {
    /// A call is about to be judged.
    PreToolUse,
    /// The user is about to be asked whether a call may run.
    PermissionRequest,
    /// A call has worked.
    PostToolUse,
    /// A call has failed.
    PostToolUseFailure,
    /// The user has submitted a prompt.
    UserPromptSubmit,
    /// A session begins, or continues after an end or a compaction.
    SessionStart,
    /// A session is closed.
    SessionEnd,
    /// The agent is about to end its turn.
    Stop,
    /// A sub-agent is about to begin.
    SubagentStart,
    /// A sub-agent is about to end its work.
    SubagentStop,
    /// The user is waited for.
    Notification,
    /// A conversation is about to be compacted.
    PreCompact,
    /// A conversation was compacted.
    PostCompact,
    /// The same moment as [`HookEvent::PreCompact`], by the name another agent has for it.
    Compaction,
}

/// Names of events that other agents have, and that never come here.
pub(crate) const ELSEWHERE: [&str; 18] = [
    "UserPromptExpansion",
    "PostToolBatch",
    "PermissionDenied",
    "StopFailure",
    "InstructionsLoaded",
    "ConfigChange",
    "CwdChanged",
    "DirectoryAdded",
    "FileChanged",
    "WorktreeCreate",
    "WorktreeRemove",
    "TaskCreated",
    "TaskCompleted",
    "TeammateIdle",
    "Elicitation",
    "ElicitationResult",
    "MessageDisplay",
    "Setup",
];

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::PreToolUse,
        Self::PermissionRequest,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::SessionEnd,
        Self::Stop,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::Notification,
        Self::PreCompact,
        Self::PostCompact,
        Self::Compaction,
    ];

    /// The name in settings and in the input of hooks.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PermissionRequest => "PermissionRequest",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::Notification => "Notification",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::Compaction => "Compaction",
        }
    }

    /// The event of a name; `None` for one that never comes here.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Whether another agent has an event of that name.
    #[must_use]
    pub fn is_known_elsewhere(name: &str) -> bool {
        ELSEWHERE.contains(&name)
    }

    /// Whether it is about a call of a tool.
    #[must_use]
    pub fn is_of_tool(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PermissionRequest | Self::PostToolUse | Self::PostToolUseFailure
        )
    }

    /// The effect of exit code 2, and of a decision to block.
    pub fn blocking(self) -> BlockEffect {
        match self {
            Self::PreToolUse | Self::UserPromptSubmit | Self::PreCompact | Self::Compaction => {
                BlockEffect::Blocks
            }
            Self::Stop | Self::SubagentStop => BlockEffect::GoesOn,
            Self::PostToolUse | Self::PostToolUseFailure => BlockEffect::TellsModel,
            Self::SessionStart | Self::SessionEnd | Self::SubagentStart | Self::PostCompact => {
                BlockEffect::TellsUser
            }
            Self::PermissionRequest | Self::Notification => BlockEffect::Ignored,
        }
    }

    /// Whether what a hook prints is context for the model when it is no JSON.
    pub fn takes_plain_text(self) -> bool {
        matches!(self, Self::UserPromptSubmit | Self::SessionStart)
    }
}

/// The effect of a blocking hook at an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockEffect {
    /// The event is blocked.
    Blocks,
    /// The agent continues with the reason.
    GoesOn,
    /// The model gets the reason.
    TellsModel,
    /// The user gets the reason.
    TellsUser,
    /// Nothing.
    Ignored,
}

/// So often in a turn hooks may have the agent continue when it is about to end, unless the settings say otherwise.
pub const STOP_LIMIT: u32 = 5;
