//! The kinds of sub-agents: those built in, and those that users write as Markdown files.
//!
//! Rule: a broken file is reported and left out alone; a file can take tools and rights away from its sub-agents and
//! never add any that the conversation which calls them lacks.

mod file;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::extension::FOLDERS;
use crate::ids::AgentId;
use crate::model::Effort;
use crate::paths::AbsPath;
use crate::permission::Mode;
use crate::tools::{Registry, ToolError, ToolErrorKind};
use crate::workspace::blocking;

/// So many types there are at most.
const MAX_TYPES: usize = 100;

/// The most characters of a description in the list that the model reads.
const MAX_DESCRIPTION: usize = 1_024;

/// The type of a call that names none.
pub const DEFAULT_TYPE: &str = "general-purpose";

/// The tool that calls sub-agents.
pub const TASK: &str = "Task";

/// What only the session's own conversation may use: it talks with the user, or steers the session.
const NOT_FOR_AGENTS: [&str; 4] = ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "TodoWrite"];

/// What only looks.
const LOOKING: [&str; 4] = ["Read", "Glob", "Grep", "LS"];

/// A type of sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentType {
    /// What it is called by.
    pub name: String,
    /// What it is for, for the model that calls it.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it may use, by any of their names; `None` for all.
    pub tools: Option<Vec<String>>,
    /// The tools it may not use, whatever else is said.
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
    /// The file it is from; `None` when it is built in.
    pub file: Option<PathBuf>,
}

/// The types there are.
#[derive(Clone, Debug)]
pub struct AgentTypes {
    types: BTreeMap<String, AgentType>,
    /// Files that were left out, and why.
    pub problems: Vec<(PathBuf, String)>,
}

/// What a call may name: the types, and the sub-agents of the session with their types.
#[derive(Clone, Debug, Default)]
pub struct KnownAgents {
    /// The types.
    pub types: Arc<AgentTypes>,
    /// The sub-agents that can be resumed.
    pub begun: BTreeMap<AgentId, String>,
}

impl Default for AgentTypes {
    /// Those built in.
    fn default() -> Self {
        let mut types = Self { types: BTreeMap::new(), problems: Vec::new() };
        built_in().into_iter().for_each(|built_in| types.add(built_in));
        types
    }
}

impl AgentTypes {
    /// Looks for what there is beside these workspace folders and in the user's home.
    pub async fn of(roots: Vec<AbsPath>) -> Self {
        blocking(move || {
            let home = std::env::home_dir().and_then(|home| AbsPath::new(home).ok());
            Self::load(&roots, home.as_ref())
        })
        .await
    }

    /// Those built in, then those in this home, then those of these projects, the nearest last: of one name the last
    /// wins.
    #[must_use]
    pub fn load(roots: &[AbsPath], home: Option<&AbsPath>) -> Self {
        let mut types = Self::default();
        let beside = |place: &AbsPath| {
            let folder = |name: &&str| place.join(name).join("agents");
            FOLDERS.iter().rev().map(folder).collect::<Vec<_>>()
        };
        for folder in home.map(beside).unwrap_or_default() {
            types.add_all(folder.as_path(), None);
        }
        for root in roots.iter().rev() {
            let places = project_folders(root, home);
            let Some(top) = places.last() else { continue };
            for folder in places.iter().rev().flat_map(beside) {
                types.add_all(folder.as_path(), Some(top.as_path()));
            }
        }
        for (path, reason) in &types.problems {
            tracing::warn!(path = %path.display(), %reason, "a type of agent is left out");
        }
        types
    }

    /// The type of that name; letter case counts only where two names differ in nothing else.
    ///
    /// # Errors
    /// [`ToolErrorKind::InvalidInput`], naming the types there are.
    pub fn find(&self, name: &str) -> Result<&AgentType, ToolError> {
        let same = |known: &&AgentType| known.name.eq_ignore_ascii_case(name);
        self.types.get(name).or_else(|| self.iter().find(same)).ok_or_else(|| {
            let known: Vec<_> = self.types.keys().map(String::as_str).collect();
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
                None => "all tools".to_owned(),
                Some(tools) if tools.is_empty() => "no tools".to_owned(),
                Some(tools) => tools.join(", "),
            };
            format!("- {}: {} (Tools: {tools})", one.name, one.listed())
        };
        self.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Adds the types of a folder's files. Where `within` is given, links must not lead out of it.
    fn add_all(&mut self, folder: &Path, within: Option<&Path>) {
        for (path, read) in file::read_all(folder, within) {
            match read {
                Ok(_) if self.types.len() >= MAX_TYPES => {
                    self.problems.push((path, format!("there are {MAX_TYPES} types already")));
                }
                Ok(read) => self.add(read),
                Err(reason) => self.problems.push((path, reason)),
            }
        }
    }

    fn add(&mut self, added: AgentType) {
        // A file may replace a built-in type in the spelling of another agent.
        self.types.retain(|name, _| !name.eq_ignore_ascii_case(&added.name));
        self.types.insert(added.name.clone(), added);
    }
}

impl AgentType {
    /// What it is for, in one line of bounded length.
    #[must_use]
    pub fn listed(&self) -> String {
        let line = self.description.split_whitespace().collect::<Vec<_>>().join(" ");
        line.chars().take(MAX_DESCRIPTION).collect()
    }

    /// The tools of a sub-agent of this type that a conversation with `offered` calls.
    ///
    /// # Errors
    /// [`ToolErrorKind::Failed`] when it names tools and none of them is there.
    pub fn registry(&self, offered: &Registry, may_delegate: bool) -> Result<Registry, ToolError> {
        let canonical = |name: &String| offered.find(name).map(|tool| tool.facts().name);
        let allowed = self.tools.as_ref().map(|tools| tools.iter().filter_map(canonical).collect::<Vec<_>>());
        if let (Some(allowed), Some(named)) = (&allowed, &self.tools)
            && allowed.is_empty()
            && !named.is_empty()
        {
            return Err(ToolError::new(
                ToolErrorKind::Failed,
                format!("The agent type `{}` names no tool that is there: {}.", self.name, named.join(", ")),
                "Use another type, or have the user put the `tools` of its file right.",
            ));
        }
        let refused: Vec<_> = self.disallowed_tools.iter().filter_map(canonical).collect();
        Ok(offered.only(|name| {
            let is_allowed = match &allowed {
                // Who does not ask for it does not delegate.
                None => name != TASK,
                Some(allowed) => allowed.contains(&name) && (name != TASK || may_delegate),
            };
            is_allowed && !refused.contains(&name) && !NOT_FOR_AGENTS.contains(&name)
        }))
    }
}

/// The folder and those it lies in, up to that of its repository; the folder alone when it is in none. The user's home
/// is no project.
pub(crate) fn project_folders(root: &AbsPath, home: Option<&AbsPath>) -> Vec<AbsPath> {
    let mut folders = vec![root.clone()];
    loop {
        let Some(last) = folders.last() else { return folders };
        if last.join(".git").as_path().exists() {
            return folders;
        }
        match last.parent() {
            Some(parent) if Some(&parent) != home => folders.push(parent),
            Some(_) | None => return vec![root.clone()],
        }
    }
}

fn built_in() -> [AgentType; 4] {
    let built_in = |name: &str, description: &str, prompt: &str, tools: Option<Vec<&str>>| AgentType {
        name: name.to_owned(),
        description: description.to_owned(),
        prompt: prompt.trim().to_owned(),
        mode: tools.is_some().then_some(Mode::Plan),
        tools: tools.map(|tools| tools.into_iter().map(str::to_owned).collect()),
        disallowed_tools: Vec::new(),
        model: None,
        effort: None,
        max_turns: None,
        file: None,
    };
    [
        built_in(
            DEFAULT_TYPE,
            "Does a task of several steps by itself: research, changes and commands.",
            include_str!("agents/prompts/general.md"),
            None,
        ),
        built_in(
            "explore",
            "Finds out where and how something is done in the code, without changing anything. Use it for broad \
             searches whose details you do not need to see.",
            include_str!("agents/prompts/explore.md"),
            Some(LOOKING.to_vec()),
        ),
        built_in(
            "plan",
            "Works out step by step how a change should be made, without making it.",
            include_str!("agents/prompts/plan.md"),
            Some(LOOKING.to_vec()),
        ),
        built_in(
            "review",
            "Reviews changes and reports what is wrong with them, without changing anything.",
            include_str!("agents/prompts/review.md"),
            Some([&LOOKING[..], &["Bash"]].concat()),
        ),
    ]
}
