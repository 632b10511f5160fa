//! The table of keys.
//!
//! Rule: one line a key, by what it is about; a key of another program is here too, so that no diagnostic says that
//! it does not exist.

use super::{Key, KeyReach, KeyShape, KeyTopic};

const ANY_NUMBER: KeyShape = KeyShape::Whole { min: i64::MIN, max: i64::MAX };
const COUNT: KeyShape = KeyShape::Whole { min: 1, max: i64::MAX };
const TIMES: KeyShape = KeyShape::Whole { min: 0, max: 1_000 };
const AMOUNT: KeyShape = KeyShape::Number { min: f64::MIN_POSITIVE, max: f64::MAX };
const SHARE: KeyShape = KeyShape::Number { min: 0.2, max: 1.0 };
const EFFORTS: KeyShape = KeyShape::Choice(&["low", "medium", "high"]);
const MODES: KeyShape = KeyShape::Choice(&[
    "default",
    "acceptEdits",
    "plan",
    "dontAsk",
    "bypassPermissions",
    "approval",
    "readonly",
]);

/// It is for terminals or accounts, and is not expected here.
const ELSEWHERE: KeyReach = KeyReach::Ignored("");
const SOCKETS: KeyReach = KeyReach::Ignored("commands in the sandbox reach no sockets of other programs");
const PROXIES: KeyReach = KeyReach::Ignored("the sandbox brings a proxy of its own");
const ADMINISTRATORS: KeyReach = KeyReach::Ignored(
    "kode-ls has no such switch; what it would forbid has to be forbidden by rules, which no lower file lifts",
);
const LATER: KeyReach = KeyReach::Ignored("kode-ls has nothing like it yet");

const fn key(path: &'static str, kind: KeyTopic, shape: KeyShape, reach: KeyReach, doc: &'static str) -> Key {
    Key { path, shape, kind, reach, doc, default: "" }
}

const fn behavior(path: &'static str, shape: KeyShape, reach: KeyReach, doc: &'static str) -> Key {
    key(path, KeyTopic::Behavior, shape, reach, doc)
}

const fn api(path: &'static str, shape: KeyShape, reach: KeyReach, doc: &'static str) -> Key {
    key(path, KeyTopic::Api, shape, reach, doc)
}

const fn interface(path: &'static str, shape: KeyShape, reach: KeyReach, doc: &'static str) -> Key {
    key(path, KeyTopic::Interface, shape, reach, doc)
}

const fn foreign(path: &'static str, reach: KeyReach) -> Key {
    key(path, KeyTopic::Interface, KeyShape::Anything, reach, "Read and left alone")
}

impl Key {
    const fn by_default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }
}

use KeyReach::{Approved, Everywhere, Loosens, Own};
use KeyShape::{
    Anything, Choice, ListsByName, Objects, ObjectsByName, ObjectsByNameOrList, Switch, SwitchesByName, Text,
    Texts, TextsByName,
};

/// All keys.
pub const KEYS: &[Key] = &[
    interface("$schema", Text, Everywhere, "Where the schema of this file is, for editors that complete"),
    // Permissions.
    behavior("permissions.allow", Texts, Approved, "Rules: calls that run without asking"),
    behavior("permissions.ask", Texts, Everywhere, "Rules: calls that always ask"),
    behavior("permissions.deny", Texts, Everywhere, "Rules: calls that are refused"),
    behavior("permissions.defaultMode", MODES, Approved, "The mode of new sessions")
        .by_default("\"default\""),
    behavior(
        "permissions.additionalDirectories",
        Texts,
        Approved,
        "Folders that are reached like the workspace",
    ),
    behavior(
        "permissions.disableBypassPermissionsMode",
        Choice(&["disable"]),
        Everywhere,
        "Switches that mode off",
    ),
    behavior(
        "permissions.order",
        Choice(&["default", "blade"]),
        Loosens,
        "Which rule wins: `default` is deny, ask, allow; `blade` is deny, allow, ask",
    )
    .by_default("\"default\""),
    behavior(
        "sensitiveFiles",
        Objects,
        Loosens,
        "A table of secrets before the built-in one: pattern and level",
    ),
    // Commands and the sandbox.
    behavior("sandbox.enabled", Switch, Loosens, "Whether commands run in the sandbox").by_default("true"),
    behavior(
        "sandbox.autoAllowBashIfSandboxed",
        Switch,
        Loosens,
        "Whether sandboxed commands run without asking",
    )
    .by_default("false"),
    behavior(
        "sandbox.allowUnsandboxedCommands",
        Switch,
        Loosens,
        "Whether a call may ask to run outside of it",
    )
    .by_default("true"),
    behavior("sandbox.excludedCommands", Texts, Approved, "Commands that always run outside of it"),
    behavior("sandbox.network.allowedDomains", Texts, Approved, "Hosts that commands reach from the sandbox"),
    behavior(
        "sandbox.network.deniedDomains",
        Texts,
        Everywhere,
        "Hosts that commands never reach, even if allowed",
    ),
    behavior(
        "sandbox.network.allowLocalBinding",
        Switch,
        Loosens,
        "Whether names may resolve to private addresses",
    )
    .by_default("false"),
    behavior("sandbox.filesystem.allowWrite", Texts, Approved, "Folders that commands may write in as well"),
    behavior("sandbox.filesystem.denyWrite", Texts, Everywhere, "Files and folders that they may not write"),
    behavior("sandbox.filesystem.denyRead", Texts, Everywhere, "Files and folders that they may not see"),
    behavior(
        "sandbox.profiles",
        ObjectsByName,
        Own,
        "Named ways to hold commands, for a session or a turn: description, readOnly, allowedDomains, allowWrite",
    ),
    behavior(
        "sandbox.remote.engine",
        Texts,
        Own,
        "A container engine and its first arguments: each command runs in a container of it",
    ),
    behavior("sandbox.remote.image", Text, Own, "The image of those containers"),
    behavior("sandbox.remote.options", Texts, Own, "Further options of the engine's `run`"),
    behavior(
        "sandbox.remote.command",
        Texts,
        Own,
        "A program of yours and its first arguments that runs each command elsewhere, instead of an engine",
    ),
    behavior(
        "sandbox.clientTerminal",
        Switch,
        Own,
        "Whether commands outside of the sandbox run in terminals of a client of the Agent Client Protocol",
    )
    .by_default("false"),
    foreign("sandbox.network.allowUnixSockets", SOCKETS),
    foreign("sandbox.network.allowAllUnixSockets", SOCKETS),
    foreign("sandbox.network.httpProxyPort", PROXIES),
    foreign("sandbox.network.socksProxyPort", PROXIES),
    foreign(
        "sandbox.ignoreViolations",
        KeyReach::Ignored("the sandbox refuses, and reports nothing that could be ignored"),
    ),
    foreign(
        "sandbox.enableWeakerNestedSandbox",
        KeyReach::Ignored("the sandbox is as strong as the machine lets it be"),
    ),
    behavior("env", TextsByName, Approved, "Variables for commands, hooks and MCP servers"),
    behavior(
        "defaultShell",
        Choice(&["bash", "powershell"]),
        Everywhere,
        "Not followed: each shell has a tool of its own",
    )
    .by_default("\"bash\""),
    behavior("tools.maxConcurrency", COUNT, Approved, "How many calls run at once").by_default("10"),
    // Hooks, skills, servers.
    behavior("hooks", ListsByName, Approved, "Commands that run when something happens, by event"),
    behavior("disableAllHooks", Switch, Approved, "Whether no hook runs").by_default("false"),
    behavior(
        "disableSkillShellExecution",
        Switch,
        Everywhere,
        "Whether no command embedded in a skill or command runs",
    )
    .by_default("false"),
    behavior("mcpServers", ObjectsByName, Approved, "MCP servers by name"),
    behavior("lspServers", ObjectsByName, Approved, "Language servers by name"),
    behavior(
        "lspServersOnPath",
        Switch,
        Loosens,
        "Whether well-known language servers on the `PATH` are used without an entry in `lspServers`",
    )
    .by_default("true"),
    behavior("enableAllProjectMcpServers", Switch, Own, "Whether servers of `.mcp.json` need no approval")
        .by_default("false"),
    behavior("enabledMcpjsonServers", Texts, Own, "Servers of `.mcp.json` that are approved, by name"),
    behavior(
        "disabledMcpjsonServers",
        Texts,
        Everywhere,
        "Servers of `.mcp.json` that are never started, by name",
    ),
    // Answers.
    api("model", Text, Approved, "The profile or model of new sessions, or an alias"),
    api("effortLevel", EFFORTS, Approved, "How hard models think, where their profile does not say"),
    api(
        "alwaysThinkingEnabled",
        Switch,
        Approved,
        "Whether models think where no effort is named: `true` is `medium`",
    ),
    behavior("language", Text, Everywhere, "The language of the answers"),
    behavior("outputStyle", Text, Everywhere, "The style of the answers").by_default("\"Default\""),
    behavior("appendSystemPrompt", Text, Approved, "Text at the end of the system prompt"),
    behavior("attribution.commit", Text, Everywhere, "Text at the end of the agent's commit messages"),
    behavior("attribution.pr", Text, Everywhere, "Text at the end of the agent's pull request descriptions"),
    behavior("includeCoAuthoredBy", Switch, Everywhere, "Whether commits of the agent name it")
        .by_default("false"),
    behavior("disabledIgnoreFiles", Texts, Own, "Names of ignore files that do not count"),
    behavior("claudeMdExcludes", Texts, Approved, "Instruction files that are left out"),
    behavior(
        "projectOverview",
        Switch,
        Everywhere,
        "Whether the model gets an overview of the working directory",
    )
    .by_default("true"),
    behavior("stopHookLimit", TIMES, Approved, "How often in a turn hooks may continue a finished answer")
        .by_default("5"),
    behavior("candidateAnswers", Switch, Approved, "Whether each prompt is answered twice, to choose")
        .by_default("false"),
    behavior(
        "incompleteIntent",
        Choice(&["retry", "stop", "fallback"]),
        Loosens,
        "How to handle an answer that only announces work",
    )
    .by_default("\"retry\""),
    behavior(
        "maxTurns",
        ANY_NUMBER,
        Approved,
        "The most model calls of a turn; -1 is the built-in limit, 0 no chat",
    ),
    behavior("maxCostUsd", AMOUNT, Approved, "The cost of a turn at which you are asked"),
    behavior("maxMinutes", AMOUNT, Approved, "How long a turn may take before you are asked"),
    behavior(
        "autoCompactEnabled",
        Switch,
        Everywhere,
        "Whether a conversation is compacted before it is too long",
    )
    .by_default("true"),
    behavior("autoCompactThreshold", SHARE, Approved, "The share of the context window at which it is")
        .by_default("0.8"),
    behavior(
        "todoReminderRounds",
        COUNT,
        Everywhere,
        "Rounds without an update after which the model is reminded of its todo list",
    )
    .by_default("10"),
    // Sessions and files.
    behavior(
        "fileCheckpointingEnabled",
        Switch,
        Approved,
        "Whether files can be brought back to before a prompt",
    )
    .by_default("true"),
    behavior(
        "cleanupPeriodDays",
        ANY_NUMBER,
        Own,
        "Days after which an unused session is deleted; without it or with 0, never",
    ),
    interface(
        "notify",
        Choice(&["off", "bell", "desktop", "command"]),
        Own,
        "How you are alerted of an ended turn or a waiting prompt while the editor is not in front",
    )
    .by_default("\"off\""),
    interface("notifyCommand", Text, Own, "The command of `notify: \"command\"`"),
    interface("notifyAfterSeconds", TIMES, Own, "Turns that took less are not reported").by_default("10"),
    behavior("sessionTitles", Switch, Loosens, "Whether a model is asked for titles of sessions"),
    interface("respectGitignore", Switch, Everywhere, "Whether `@` offers no ignored files")
        .by_default("true"),
    foreign("statusLine", KeyReach::Ignored("the editor's status bar shows what `agent/*` tells")),
    behavior("webSearch", Anything, Approved, "The service that searches the web"),
    behavior(
        "telemetry",
        Anything,
        Own,
        "The OpenTelemetry collector that sessions are exported to: `endpoint`, `headers` from variables, `content`",
    ),
    // Plugins.
    behavior(
        "enabledPlugins",
        SwitchesByName,
        Loosens,
        "Plugins that are on or off, by `plugin@marketplace`",
    ),
    // Models.
    api("modelProfiles", ObjectsByNameOrList, Own, "Model profiles: an object by name, or a list"),
    api("modelPointers.main", Text, Approved, "The profile of conversations"),
    api("modelPointers.task", Text, Approved, "The profile of sub-agents"),
    api("modelPointers.compact", Text, Approved, "The profile of summaries"),
    api("modelPointers.quick", Text, Approved, "The profile of small things"),
    api(
        "modelCatalog",
        Anything,
        Own,
        "Limits, abilities and prices of models; or the location of a models.dev catalog",
    ),
    api("fallbackModel", Text, Own, "The profile that is asked when another fails"),
    api("apiKeyHelper", Text, Own, "A command that prints the key of Anthropic"),
    api("apiKeyHelperTtlMs", COUNT, Own, "How long that key is used").by_default("300000"),
    // As Blade writes them.
    behavior(
        "permissionMode",
        Text,
        Approved,
        "As Blade calls `permissions.defaultMode`, with its own names of modes",
    ),
    api("models", Objects, Own, "Model profiles as Blade writes them"),
    api("currentModelId", Text, Own, "Which of them is used"),
    foreign("modelProviders", KeyReach::Ignored("name the provider in each model profile")),
    foreign("temperature", KeyReach::Ignored("set it in a model profile")),
    foreign("timeout", KeyReach::Ignored("set `idleTimeoutMs` in a model profile")),
    foreign("maxContextTokens", KeyReach::Ignored("set `contextWindow` in a model profile")),
    foreign("maxOutputTokens", KeyReach::Ignored("set `maxTokens` in a model profile")),
    foreign("stream", ELSEWHERE),
    foreign("topP", KeyReach::Ignored("set it in a model profile")),
    foreign("debug", ELSEWHERE),
    // The keys of other programs that this one lacks.
    // Each has a source to add one from.
    foreign("extraKnownMarketplaces", ELSEWHERE),
    foreign("agent", LATER),
    foreign("worktree", LATER),
    foreign("plansDirectory", LATER),
    foreign("askUserQuestionTimeout", KeyReach::Ignored("questions wait until they are answered")),
    foreign("autoMemoryEnabled", LATER),
    foreign("fileSuggestion", LATER),
    foreign("availableModels", LATER),
    foreign("modelOverrides", LATER),
    foreign("fastMode", LATER),
    foreign("includeGitInstructions", LATER),
    foreign("skipWebFetchPreflight", ELSEWHERE),
    foreign("skipDangerousModePermissionPrompt", ELSEWHERE),
    foreign("awsAuthRefresh", KeyReach::Ignored("keys come from profiles and their `apiKeyHelper`")),
    foreign("awsCredentialExport", KeyReach::Ignored("keys come from profiles and their `apiKeyHelper`")),
    foreign("otelHeadersHelper", ELSEWHERE),
    foreign("proxy", KeyReach::Ignored("set it in a model profile")),
    foreign("allowManagedHooksOnly", ADMINISTRATORS),
    foreign("allowManagedPermissionRulesOnly", ADMINISTRATORS),
    foreign("allowManagedMcpServersOnly", ADMINISTRATORS),
    foreign("allowedMcpServers", ADMINISTRATORS),
    foreign("deniedMcpServers", ADMINISTRATORS),
    foreign("allowedHttpHookUrls", ADMINISTRATORS),
    foreign("httpHookAllowedEnvVars", ADMINISTRATORS),
    foreign("strictKnownMarketplaces", LATER),
    foreign("blockedMarketplaces", LATER),
    // Of terminals and accounts.
    foreign("theme", ELSEWHERE),
    foreign("uiTheme", ELSEWHERE),
    foreign("editorMode", ELSEWHERE),
    foreign("vimMode", ELSEWHERE),
    foreign("verbose", ELSEWHERE),
    foreign("viewMode", ELSEWHERE),
    foreign("tui", ELSEWHERE),
    foreign("fontSize", ELSEWHERE),
    foreign("showStatusBar", ELSEWHERE),
    foreign("preferredNotifChannel", ELSEWHERE),
    foreign("autoUpdates", ELSEWHERE),
    foreign("autoUpdatesChannel", ELSEWHERE),
    foreign("minimumVersion", ELSEWHERE),
    foreign("forceLoginMethod", ELSEWHERE),
    foreign("forceLoginOrgUUID", ELSEWHERE),
    foreign("companyAnnouncements", ELSEWHERE),
    foreign("feedbackSurveyRate", ELSEWHERE),
    foreign("prUrlTemplate", ELSEWHERE),
    foreign("voiceEnabled", ELSEWHERE),
    foreign("terminalProgressBarEnabled", ELSEWHERE),
    foreign("showTurnDuration", ELSEWHERE),
    foreign("spinnerVerbs", ELSEWHERE),
    foreign("spinnerTipsEnabled", ELSEWHERE),
    foreign("spinnerTipsOverride", ELSEWHERE),
    foreign("prefersReducedMotion", ELSEWHERE),
    foreign("teammateMode", ELSEWHERE),
    foreign("disableAutoMode", ELSEWHERE),
    foreign("autoMode", ELSEWHERE),
];
