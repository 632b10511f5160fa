//! The offer of the server: tools, models and types of sub-agents.
//!
//! Rule: facts for people to see and choose from; nothing here is needed to follow a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::item::ToolKind;
use crate::permission::Mode;
use crate::problem::FileProblem;
use crate::text::{SessionId, Timestamp};

/// Nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsParams {}

/// The tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListToolsResult {
    /// The tools in the order of their names.
    pub tools: Vec<ToolInfo>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// Its canonical name, the only one shown to the model.
    pub name: String,
    /// Its name in words, for people.
    #[serde(default)]
    pub display_name: String,
    /// Its purpose: `agents`, `code`, `commands`, `files`, `planning`, `questions`, `search` or `web`.
    #[serde(default)]
    pub category: String,
    /// Words to search it by.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Whether its calls are asked for in the mode `default` where no rule decides. Some calls of other tools are, too: those that
    /// read outside of the workspace, for example.
    #[serde(default)]
    pub needs_permission: bool,
    /// Its effect on the world.
    pub kind: ToolKind,
    /// Whether it only looks.
    pub read_only: bool,
    /// Whether its calls may run beside each other.
    pub concurrency_safe: bool,
    /// The first sentence of the description.
    #[serde(default)]
    pub summary: String,
    /// Its purpose and use, as the model reads it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Names from other agents that mean the same.
    pub aliases: Vec<String>,
}

/// Nothing to choose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListModelsParams {}

/// The models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListModelsResult {
    /// The model profiles in the order of their names.
    pub models: Vec<ModelInfo>,
    /// Whether new sessions have a usable model. If not, clients offer to set one up (`agent/setup/*`).
    #[serde(default)]
    pub usable: bool,
    /// The purposes of profiles.
    pub pointers: ModelPointers,
    /// The day the built-in prices are of, as `2026-01-31`.
    pub prices_as_of: String,
    /// The published catalog that overrides the built-in table, if the user has named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalog: Option<CatalogInfo>,
    /// The problems of the descriptions of models beyond single profiles, for people.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// A published catalog of models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogInfo {
    /// Its path or address.
    pub source: String,
    /// The number of models that it lists.
    pub models: u64,
    /// The time of its file's last change, or of the last download.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
}

/// The purposes of profiles; each has the name of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelPointers {
    /// Conversations.
    pub main: String,
    /// Sub-agents.
    pub task: String,
    /// Summaries of long conversations.
    pub compact: String,
    /// Small things that are to be quick and cheap.
    pub quick: String,
}

/// The format a model is asked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WireFormat {
    /// Anthropic Messages.
    AnthropicMessages,
    /// OpenAI Chat Completions, and compatible servers.
    ChatCompletions,
    /// OpenAI Responses.
    Responses,
    /// Gemini's own format.
    Gemini,
    /// Ollama's own chat format.
    Ollama,
}

/// The abilities of a model, as its provider serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelCapabilities {
    /// Whether it calls tools.
    pub tools: bool,
    /// Whether it reasons before it answers.
    pub thinking: bool,
    /// Whether it sees pictures.
    pub images: bool,
}

/// The cost of a model, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelPrices {
    /// Input that is not cached.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input that is read from the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input that is written to the provider's cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// Why a model cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelProblem {
    /// The problem.
    pub message: String,
    /// The next step.
    pub hint: String,
}

/// A model profile. Of one that cannot be used only its name, where it is described and the problem are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// The name of the profile, by which it is chosen.
    pub name: String,
    /// Its provider.
    pub provider: String,
    /// The model's name as the provider knows it.
    pub model: String,
    /// Tokens that input and output may have together.
    pub context_window: u64,
    /// Tokens that one answer may have.
    pub max_tokens: u64,
    /// Whether new sessions use it.
    pub active: bool,
    /// The format it is asked in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<WireFormat>,
    /// The server's name, and its port where it is not the usual one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    /// Its abilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<ModelCapabilities>,
    /// Its cost; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prices: Option<ModelPrices>,
    /// Where it is described, in words for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// The profile that is asked when it fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Why it cannot be used; absent when it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ModelProblem>,
}

/// The session of the sub-agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListAgentsParams {
    /// The session, whose folders are looked into; without it those of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// The types of sub-agents, as their files say now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListAgentsResult {
    /// The types in the order of their names.
    pub agents: Vec<AgentInfo>,
    /// Types that others of the same name hide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadowed: Vec<ShadowedFile>,
    /// The problems of files of sub-agents, skills, commands and output styles.
    pub problems: Vec<FileProblem>,
}

/// The owner of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FileSource {
    /// The administrator's.
    Managed,
    /// The project's.
    Project,
    /// The user's, for all projects.
    User,
    /// A plugin's that is on.
    Plugin,
    /// Built in.
    BuiltIn,
}

/// Something that another of the same name hides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShadowedFile {
    /// The common name.
    pub name: String,
    /// The owner of the hidden one.
    pub source: FileSource,
    /// The path of its file; absent when it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The path of the file that hides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A type of sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentInfo {
    /// Its name.
    pub name: String,
    /// Its purpose, as the model that calls it reads it.
    pub description: String,
    /// Its owner.
    pub source: FileSource,
    /// The path of the file it is from; absent when it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The command line of the other agent's program that does its tasks (`runs`); absent where kode-ls does them itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<String>,
    /// Its model, by whatever names one; absent when its file says none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools it may use; absent for all that the session has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// The tools it may not use, regardless of other keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// The color to show it in, as its file names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color: Option<String>,
    /// The mode it works in where the session's is not stricter; absent for the session's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// The most model calls of one task, where its file says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The skills whose text it begins with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// The MCP servers whose tools it has beside those that are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<String>,
}

/// The session of the output styles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListStylesParams {
    /// The session, whose folders are looked into; without it those of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// The output styles, as their files say now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListStylesResult {
    /// The styles, the strongest first.
    pub styles: Vec<StyleInfo>,
    /// Styles that others of the same name hide.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shadowed: Vec<ShadowedFile>,
    /// The problems of files of output styles.
    pub problems: Vec<FileProblem>,
}

/// An output style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StyleInfo {
    /// Its name, in any letter case.
    pub name: String,
    /// Its purpose; may be empty.
    pub description: String,
    /// Its owner.
    pub source: FileSource,
    /// The path of the file it is from; absent when it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the model learns how to go about code as well.
    pub keeps_coding_instructions: bool,
    /// Whether the session that was named answers in it now.
    pub active: bool,
}

/// The checked subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoctorParams {
    /// The session, whose folders are looked into; without it those of the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
}

/// The state of users' files: in use, with their origin, hidden by others, or left out with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DoctorResult {
    /// The findings, by kind, then by name; instruction files in the order in which the model has them.
    pub findings: Vec<Finding>,
    /// The problems of files, settings included.
    pub problems: Vec<FileProblem>,
    /// The same as Markdown, for people.
    pub text: String,
}

/// Something that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// Its name.
    pub name: String,
    /// Its owner, in a word for people.
    pub source: String,
    /// The path of its file; absent when it is built in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its outcome.
    pub fate: FindingFate,
    /// The path of the file that hides it, where one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why it is left out, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A kind of thing that files describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FindingKind {
    /// A type of sub-agent.
    Agent,
    /// A skill.
    Skill,
    /// A command.
    Command,
    /// An output style.
    Style,
    /// An instruction file.
    Instructions,
    /// A plugin.
    Plugin,
    /// A group of hooks.
    Hook,
    /// An MCP server.
    Server,
    /// A language server.
    LanguageServer,
    /// A variable for what the agent starts.
    Variable,
    /// A command that prints something for the agent.
    Helper,
}

/// The outcome of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FindingFate {
    /// It is in use.
    Loaded,
    /// Another of the same name is used.
    Shadowed,
    /// It waits for the user's approval.
    Waiting,
    /// It is not used.
    LeftOut,
}
