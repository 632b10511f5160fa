//! The kinds of sub-agents: those built in, and those that users write as Markdown files.
//!
//! Rule: a broken file is reported and left out alone; a file can take tools and rights away from its sub-agents and
//! never add any that the conversation which calls them lacks.

mod built_in;
mod file;
pub mod guest;
pub mod notes;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::extension::places::{ExtensionFolders, ExtensionOrigin, ExtensionPart};
use crate::extension::problem::FileFault;
use crate::hooks::declared::FileHooks;
use crate::mcp::file_servers::FileServers;
use crate::mcp::names::server_part;
use crate::settings::TrustRequest;
use guest::GuestProgram;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::effort::Effort;
use kode_base::ids::AgentId;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_permission::rules::{SettingsProblem, names};

/// Maximum number of types.
const MAX_TYPES: usize = 100;

/// The most characters of a description in the list that the model reads.
const MAX_DESCRIPTION: usize = 1_024;

/// The type of a call that names none.
pub const DEFAULT_TYPE: &str = "general-purpose";

/// The tool that calls sub-agents.
pub const TASK: &str = "Task";

/// Tools that only the session's own conversation may use: it talks with the user, or steers the session.
pub const NOT_FOR_AGENTS: [&str; 4] = ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "TodoWrite"];

/// A type of sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentType {
    /// Its name.
    pub name: String,
    /// Its purpose, for the model that calls it.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it may use, by any of their names; `None` for all.
    pub tools: Option<Vec<String>>,
    /// The tools it may not use, regardless of other keys.
    pub disallowed_tools: Vec<String>,
    /// Its model, by profile or alias; `None` for that of the session, and for a built-in type the one set for
    /// sub-agents.
    pub model: Option<String>,
    /// The mode it works in where the session's is not stricter; `None` for the session's.
    pub mode: Option<Mode>,
    /// How hard its model thinks; `None` for as hard as without it.
    pub effort: Option<Effort>,
    /// The most model calls of one turn, where it is less than the usual limit.
    pub max_turns: Option<u32>,
    /// The color that clients show it in, by name.
    pub color: Option<String>,
    /// The skills whose whole text it begins with.
    pub skills: Vec<String>,
    /// The MCP servers whose tools it has beside those it names, those among them that its file describes.
    pub servers: Vec<String>,
    /// The MCP servers that its file describes: they run for a sub-agent of it alone.
    pub own_servers: Option<FileServers>,
    /// The hooks that count while a sub-agent of it works.
    pub hooks: Option<FileHooks>,
    /// Whether it begins with a copy of the conversation that calls it.
    pub fork_context: bool,
    /// Whether its caller continues while it works.
    pub background: bool,
    /// Whether each of its sub-agents works in a git worktree of its own.
    pub is_isolated: bool,
    /// Where it keeps notes from one task to the next.
    pub memory: Option<AgentMemory>,
    /// The program of another agent that does its work; `None` where a model does it here.
    pub runs: Option<GuestProgram>,
    /// Its owner.
    pub origin: ExtensionOrigin,
    /// The file it is from; `None` when it is built in.
    pub file: Option<AbsPath>,
    /// Its trust requests: a project file gets none of them by itself.
    pub trust_requests: Vec<TrustRequest>,
}

/// Where sub-agents of a type keep notes from one task to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentMemory {
    /// With the user's own files, for all projects.
    User,
    /// With the project's files.
    Project,
    /// With the project's files, for this user alone.
    Local,
}

/// Something that another of the same name hides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShadowedAgent {
    /// The common name.
    pub name: String,
    /// The owner of the hidden one.
    pub origin: ExtensionOrigin,
    /// Its file; `None` when it is built in.
    pub file: Option<AbsPath>,
    /// The file that hides it.
    pub by: Option<AbsPath>,
}

/// The types there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTypes {
    /// By name in small letters.
    types: BTreeMap<String, AgentType>,
    /// Types that others of the same name hide.
    pub shadowed: Vec<ShadowedAgent>,
    /// The problems of files.
    pub problems: Vec<SettingsProblem>,
}

/// The names for a call: the types, and the sub-agents of the session with their types.
#[derive(Clone, Debug, Default)]
pub struct KnownAgents {
    /// The types.
    pub types: Arc<AgentTypes>,
    /// The sub-agents that can be resumed.
    pub begun: BTreeMap<AgentId, String>,
}

impl Default for AgentTypes {
    /// The built-in types.
    fn default() -> Self {
        let mut types = Self { types: BTreeMap::new(), shadowed: Vec::new(), problems: Vec::new() };
        built_in::all().into_iter().for_each(|built_in| types.add(built_in));
        types
    }
}

impl AgentTypes {
    /// The types that the files of these places describe, and those built in; of one name the strongest. Blocks on the
    /// disk.
    #[must_use]
    pub fn load(places: &ExtensionFolders) -> Self {
        let mut types = Self { types: BTreeMap::new(), shadowed: Vec::new(), problems: Vec::new() };
        for place in places.of(ExtensionPart::Agents) {
            for found in file::read_all(&place) {
                types.problems.extend(found.problems);
                match found.agent {
                    Some(_) if types.types.len() >= MAX_TYPES => {
                        let fault = FileFault::error(format!(
                            "This agent is left out: there are {MAX_TYPES} already."
                        ));
                        types.problems.push(fault.of(&found.file, ""));
                    }
                    Some(agent) => types.add(agent),
                    None => {}
                }
            }
        }
        built_in::all().into_iter().for_each(|built_in| types.add(built_in));
        types
    }

    /// Checks what the files name: skills, missing models and tools are reported.
    pub(crate) fn check(&mut self, has_skill: &dyn Fn(&str) -> bool, has_model: &dyn Fn(&str) -> bool) {
        for agent in self.types.values() {
            let Some(file) = &agent.file else { continue };
            let mut warn = |message: String| self.problems.push(FileFault::warning(message).of(file, ""));
            for skill in agent.skills.iter().filter(|skill| !has_skill(skill)) {
                warn(format!("`skills` names `{skill}`, and there is no such skill."));
            }
            if let Some(model) = agent.model.as_deref().filter(|model| !has_model(model)) {
                warn(format!("There is no model `{model}`: this agent uses the model of the session."));
            }
            let named = agent.tools.iter().flatten().chain(&agent.disallowed_tools);
            for tool in named.filter(|tool| !is_tool(tool)) {
                let meant = names::similar(tool).map(|meant| format!(" Did you mean `{meant}`?"));
                warn(format!("There is no tool `{tool}`.{}", meant.unwrap_or_default()));
            }
        }
    }

    /// The trust requests of project files.
    pub fn trust_requests(&self) -> impl Iterator<Item = &TrustRequest> {
        self.iter().flat_map(|agent| &agent.trust_requests)
    }

    /// The type of that name, whatever its letter case.
    ///
    /// # Errors
    /// [`ToolErrorKind::InvalidInput`], naming the types there are.
    pub fn find(&self, name: &str) -> Result<&AgentType, ToolError> {
        self.types.get(&name.to_lowercase()).ok_or_else(|| {
            let known: Vec<_> = self.iter().map(|one| one.name.as_str()).collect();
            ToolError::new(
                ToolErrorKind::InvalidInput,
                format!("There is no type of agent `{name}`."),
                format!("Use one of: {}.", known.join(", ")),
            )
        })
    }

    /// All types in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &AgentType> {
        self.types.values()
    }

    /// The list that the model reads.
    #[must_use]
    pub fn listing(&self) -> String {
        let line = |one: &AgentType| {
            let tools = match &one.tools {
                _ if one.runs.is_some() => "another agent with tools of its own".to_owned(),
                None => "all tools".to_owned(),
                Some(tools) if tools.is_empty() => "no tools".to_owned(),
                Some(tools) => tools.join(", "),
            };
            format!("- {}: {} (Tools: {tools})", one.name, one.listed())
        };
        self.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Adds a type, where no stronger one has its name.
    fn add(&mut self, added: AgentType) {
        match self.types.get(&added.name.to_lowercase()) {
            Some(stronger) => self.shadowed.push(ShadowedAgent {
                name: added.name,
                origin: added.origin,
                file: added.file,
                by: stronger.file.clone(),
            }),
            None => drop(self.types.insert(added.name.to_lowercase(), added)),
        }
    }
}

impl AgentType {
    /// Its purpose, in one line of bounded length.
    #[must_use]
    pub fn listed(&self) -> String {
        let line = self.description.split_whitespace().collect::<Vec<_>>().join(" ");
        line.chars().take(MAX_DESCRIPTION).collect()
    }

    /// Whether a tool is one of a server that it names.
    pub fn has_server_of(&self, tool: &str) -> bool {
        let of = |server: &String| {
            let part = server_part(server, &BTreeSet::new());
            let rest = tool.strip_prefix("mcp__").and_then(|rest| rest.strip_prefix(part.as_str()));
            rest.is_some_and(|rest| rest.starts_with("__"))
        };
        self.servers.iter().any(of)
    }
}

/// Whether a tool goes by a name, as far as anybody knows before servers are asked for theirs.
fn is_tool(name: &str) -> bool {
    names::is_mcp(name) || names::built_in().any(|tool| tool == names::canonical(name))
}
