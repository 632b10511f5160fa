//! One type of agent as a Markdown file: what it is in the head between two lines of `---`, its prompt below.
//!
//! Rule: unknown keys are left alone, and a key of ours with a value that makes no sense is an error that names it.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::agents::guest::{GuestProgram, RUNS_KEY};
use crate::agents::{AgentMemory, AgentType};
use crate::extension::copilot::{self, TranslatedTools};
use crate::extension::front_matter;
use crate::extension::head::FrontMatterFile;
use crate::extension::places::{ExtensionFolder, ExtensionOrigin, check_within};
use crate::extension::problem::FileFault;
use crate::extension::template::model_trust_request;
use crate::hooks::declared::FileHooks;
use crate::mcp::file_servers::FileServers;
use crate::settings::TrustRequest;
use kode_base::effort::Effort;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_base::regular;
use kode_permission::rules::SettingsProblem;

/// The most bytes of a file.
const MAX_BYTES: u64 = 256 * 1024;

/// The most files of a folder.
const MAX_FILES: usize = 200;

/// Maximum depth of folders that are searched for files.
const MAX_DEPTH: usize = 6;

/// The most characters of a name.
const MAX_NAME: usize = 64;

/// The most characters of the name of a color.
const MAX_COLOR: usize = 32;

/// The value of `isolation` for a worktree for each sub-agent.
const WORKTREE: &str = "worktree";

/// As it is written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawAgent {
    name: Option<String>,
    description: Option<String>,
    #[serde(default, deserialize_with = "given")]
    tools: Option<Names>,
    #[serde(default, alias = "disallowed-tools")]
    disallowed_tools: Option<Names>,
    model: Option<String>,
    #[serde(rename = "model_name")]
    model_name: Option<String>,
    permission_mode: Option<String>,
    effort: Option<String>,
    #[serde(alias = "max-turns")]
    max_turns: Option<u32>,
    color: Option<String>,
    skills: Option<Names>,
    mcp_servers: Option<Value>,
    hooks: Option<Value>,
    memory: Option<String>,
    background: Option<bool>,
    isolation: Option<String>,
    initial_prompt: Option<String>,
    runs: Option<Value>,
    #[serde(alias = "fork-context")]
    fork_context: Option<bool>,
}

/// Names as a list or as one text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    Many(Vec<String>),
    One(String),
}

/// The result of a file: the type with its ignored parts, or the reason why it is missing.
pub(super) struct AgentFile {
    pub(super) file: AbsPath,
    pub(super) agent: Option<AgentType>,
    pub(super) problems: Vec<SettingsProblem>,
}

/// Reads the files of a place and the folders in it, in the order of their paths.
pub(super) fn read_all(place: &ExtensionFolder) -> Vec<AgentFile> {
    let mut paths = Vec::new();
    // A plugin may name a file itself.
    if place.folder.as_path().is_file() {
        paths.push(place.folder.clone().into());
    }
    collect(place.folder.as_path(), 0, &mut paths);
    paths.sort();
    let files = paths.into_iter().filter_map(|path| AbsPath::new(path).ok());
    files.map(|file| read(file, place)).collect()
}

fn collect(folder: &Path, depth: usize, paths: &mut Vec<PathBuf>) {
    // Mostly there is no such folder.
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth < MAX_DEPTH {
            collect(&path, depth + 1, paths);
        } else if !is_folder && path.extension().is_some_and(|extension| extension == "md") {
            if paths.len() == MAX_FILES {
                tracing::warn!(folder = %folder.display(), "only {MAX_FILES} agent files of a folder are read");
                return;
            }
            paths.push(path);
        }
    }
}

fn read(file: AbsPath, place: &ExtensionFolder) -> AgentFile {
    let text = text(file.as_path(), place.within.as_ref());
    // The folder that the folder of settings lies in, in which that of agents does.
    let root = place.folder.parent().and_then(|settings| settings.parent());
    let root = root.unwrap_or_else(|| place.folder.clone());
    let at = FrontMatterFile { file: file.clone(), root, origin: place.origin };
    let parsed = match &text {
        Ok(text) => parse(text, &at).and_then(|parsed| match (place.plugin.is_some(), &parsed.0.runs) {
            (true, Some(_)) => {
                let message = format!(
                    "it comes from a plugin and names a program in `{RUNS_KEY}`; write the file yourself"
                );
                Err(FileFault::error(message))
            }
            _ => Ok(parsed),
        }),
        Err(reason) => Err(FileFault::error(reason.clone())),
    };
    let text = text.unwrap_or_default();
    let (agent, faults) = match parsed {
        Ok((mut agent, mut faults)) => {
            if place.plugin.is_some() {
                faults.extend(of_plugin(&mut agent, &text));
                agent.name = place.name_of(&agent.name);
            }
            agent.trust_requests = trust_requests(&agent, &at);
            (Some(agent), faults)
        }
        Err(fault) => {
            let message = format!("This agent is left out: {}.", fault.message);
            (None, vec![FileFault { message, ..fault }])
        }
    };
    let of_hooks = agent.iter().filter_map(|agent| agent.hooks.as_ref()).flat_map(FileHooks::problems);
    let problems = faults.into_iter().map(|fault| fault.of(&file, &text)).chain(of_hooks).collect();
    AgentFile { agent, problems, file }
}

/// The trust requests of a project file.
fn trust_requests(agent: &AgentType, at: &FrontMatterFile) -> Vec<TrustRequest> {
    if at.origin != ExtensionOrigin::Project {
        return Vec::new();
    }
    let runs = agent.runs.as_ref().and_then(GuestProgram::trust_request);
    let model = model_trust_request(&at.root, &at.file, agent.model.as_deref(), agent.effort);
    let hooks = agent.hooks.iter().flat_map(FileHooks::trust_requests);
    let servers = agent.own_servers.iter().flat_map(FileServers::trust_requests);
    runs.into_iter().chain(model).chain(hooks).chain(servers).collect()
}

/// Takes from an agent of a plugin what only the user's own files may give: hooks, servers of its own, and a mode.
fn of_plugin(agent: &mut AgentType, text: &str) -> Vec<FileFault> {
    let head = front_matter::split(text).0.unwrap_or_default();
    let mut faults = Vec::new();
    let mut warn = |key: &str| {
        let message = format!("`{key}` of an agent that a plugin brings is ignored.");
        faults.push(FileFault::warning(message).at_key(head, key));
    };
    if agent.hooks.take().is_some() {
        warn("hooks");
    }
    if let Some(own) = agent.own_servers.take() {
        agent.servers.retain(|name| !own.names().any(|own| own == name));
        warn("mcpServers");
    }
    if agent.mode.take().is_some() {
        warn("permissionMode");
    }
    faults
}

fn text(path: &Path, within: Option<&AbsPath>) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("it cannot be read: {error}");
    check_within(path, within)?;
    regular::read_text(path, MAX_BYTES).map_err(unreadable)
}

/// The type that a file describes, and what of it does not count.
pub(super) fn parse(text: &str, file: &FrontMatterFile) -> Result<(AgentType, Vec<FileFault>), FileFault> {
    let (head, body) = front_matter::split(text);
    let at_first = |message: &str| FileFault { line: Some(0), ..FileFault::error(message) };
    let head = head.ok_or_else(|| at_first("it does not begin with a head between two lines of `---`"))?;
    let mut written: RawAgent = serde_saphyr::from_str(head).map_err(|error| FileFault::of_head(&error))?;
    let of_copilot = copilot::agent_name(&file.file).map(|name| written.translate(&name, head));
    let at = |key: &'static str| move |message: String| FileFault::error(message).at_key(head, key);
    let name = written.name.as_deref().map(str::trim).filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| at("name")("its head has no `name`".to_owned()))?.to_owned();
    if name.chars().count() > MAX_NAME
        || name.contains(|char: char| char.is_control() || char.is_whitespace())
    {
        let message = format!("its `name` has blanks or more than {MAX_NAME} characters");
        return Err(at("name")(message));
    }
    let description =
        written.description.as_deref().map(|text| text.replace("\\n", "\n")).unwrap_or_default();
    if description.trim().is_empty() {
        return Err(at("description")("its head has no `description`".to_owned()));
    }
    let mut faults = written.faults(head);
    let servers_of_copilot = of_copilot.map(|(servers, of_file)| {
        faults.extend(of_file);
        servers
    });
    let hooks = written.hooks.map(|hooks| FileHooks::read(&hooks, head, file.clone()));
    let hooks = hooks.and_then(|read| {
        read.map_err(|reason| faults.push(FileFault::warning(format!("{reason}.")).at_key(head, "hooks")))
            .ok()
    });
    let mut names = written.mcp_servers.as_ref().map(servers).unwrap_or_default();
    let read = written.mcp_servers.as_ref().map(|servers| FileServers::read(servers, head, file));
    let (own_servers, of_servers) = read.unwrap_or_default();
    faults.extend(of_servers);
    names.extend(own_servers.iter().flat_map(FileServers::names).map(str::to_owned));
    names.extend(servers_of_copilot.into_iter().flatten());
    let tools = written.tools.map(Names::tools);
    let is_all = |tools: &Vec<String>| tools.iter().any(|tool| tool == "*");
    let model = written.model_name.or(written.model).map(|model| model.trim().to_owned());
    let runs = written.runs.as_ref().map(|value| GuestProgram::read(value, file)).transpose();
    let agent = AgentType {
        name,
        description: description.trim().to_owned(),
        prompt: body.trim().to_owned(),
        tools: tools.filter(|tools| !is_all(tools)),
        disallowed_tools: written.disallowed_tools.map(Names::tools).unwrap_or_default(),
        model: model.filter(|model| !model.is_empty() && model != "inherit"),
        mode: written.permission_mode.as_deref().map(mode).transpose().map_err(at("permissionMode"))?,
        effort: written.effort.as_deref().map(effort).transpose().map_err(at("effort"))?.flatten(),
        max_turns: written.max_turns.map(|turns| turns.max(1)),
        color: written.color.as_deref().map(color).transpose().map_err(at("color"))?.flatten(),
        skills: written.skills.map(Names::plain).unwrap_or_default(),
        servers: names,
        own_servers,
        hooks,
        fork_context: written.fork_context.unwrap_or_default(),
        background: written.background.unwrap_or_default(),
        is_isolated: written.isolation.as_deref().is_some_and(|kind| kind.trim() == WORKTREE),
        memory: written.memory.as_deref().map(memory).transpose().map_err(at("memory"))?.flatten(),
        runs: runs.map_err(at(RUNS_KEY))?,
        origin: file.origin,
        file: Some(file.file.clone()),
        trust_requests: Vec::new(),
    };
    Ok((without_what_a_guest_has_itself(agent), faults))
}

/// The type without what has no meaning for another agent: it has tools, models and servers of its own.
fn without_what_a_guest_has_itself(agent: AgentType) -> AgentType {
    if agent.runs.is_none() {
        return agent;
    }
    AgentType {
        tools: None,
        disallowed_tools: Vec::new(),
        model: None,
        effort: None,
        max_turns: None,
        servers: Vec::new(),
        own_servers: None,
        fork_context: false,
        ..agent
    }
}

impl RawAgent {
    /// Takes a file of Copilot for one of ours, with the name that its file has. Returns the servers whose tools it names, and the
    /// faults.
    fn translate(&mut self, name: &str, head: &str) -> (Vec<String>, Vec<FileFault>) {
        let mut faults = Vec::new();
        let mut warn = |key: &str, message: &str| faults.push(FileFault::warning(message).at_key(head, key));
        let name = self.name.take().unwrap_or_else(|| name.to_owned());
        if self.description.is_none() {
            self.description = Some(format!("The agent {name}."));
        }
        self.name = Some(name.split_whitespace().collect::<Vec<_>>().join("-"));
        if self.model.take().is_some() {
            warn(
                "model",
                "`model` of an agent of Copilot is ignored: this agent uses the model of the session.",
            );
        }
        let named = self.tools.take().map(Names::plain);
        let Some(TranslatedTools { tools, servers, unknown }) = named.as_deref().map(copilot::tools) else {
            return (Vec::new(), faults);
        };
        if !unknown.is_empty() {
            let message =
                format!("`tools` names what there is not here, and it is ignored: {}.", unknown.join(", "));
            warn("tools", &message);
        }
        self.tools = Some(Names::Many(tools));
        (servers, faults)
    }

    /// The known keys of the front matter without an effect.
    fn faults(&self, head: &str) -> Vec<FileFault> {
        let mut faults = Vec::new();
        let mut warn = |key: &str, message: &str| faults.push(FileFault::warning(message).at_key(head, key));
        if let Some(Names::Many(names)) = &self.tools
            && names.is_empty()
        {
            warn("tools", "`tools` is empty: this agent has no tools. Leave the key out for all of them.");
        }
        if self.model.is_some() && self.model_name.is_some() {
            warn("model", "`model` is ignored beside `model_name`.");
        }
        if let Some(kind) = self.isolation.as_deref().map(str::trim)
            && !matches!(kind, "" | "none" | WORKTREE)
        {
            let message = format!(
                "`isolation: {kind}` is ignored: this agent works in the workspace itself. `{WORKTREE}` is known."
            );
            warn("isolation", &message);
        }
        if self.runs.is_some() {
            for (key, is_there) in [
                ("tools", self.tools.is_some()),
                ("disallowedTools", self.disallowed_tools.is_some()),
                ("model", self.model.is_some() || self.model_name.is_some()),
                ("effort", self.effort.is_some()),
                ("maxTurns", self.max_turns.is_some()),
                ("mcpServers", self.mcp_servers.is_some()),
                ("forkContext", self.fork_context.is_some()),
            ] {
                if is_there {
                    warn(key, &format!("`{key}` is ignored beside `{RUNS_KEY}`: that agent has its own."));
                }
            }
        }
        if self.initial_prompt.is_some() {
            warn(
                "initialPrompt",
                "`initialPrompt` is ignored: a sub-agent starts with the task it is given.",
            );
        }
        faults
    }
}

/// A key that is there with nothing after it is an empty list, not a key left out.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Names>, D::Error> {
    let names: Option<Names> = Option::deserialize(deserializer)?;
    Ok(Some(names.unwrap_or(Names::Many(Vec::new()))))
}

fn mode(name: &str) -> Result<Mode, String> {
    match name {
        "delegate" => Ok(Mode::Default),
        name => Mode::parse(name).ok_or_else(|| {
            let known: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
            format!("its `permissionMode` is `{name}` and not one of {}", known.join(", "))
        }),
    }
}

/// Other agents know levels above `high`; it is the highest there is here.
fn effort(name: &str) -> Result<Option<Effort>, String> {
    match name.trim().to_lowercase().as_str() {
        "low" => Ok(Some(Effort::Low)),
        "medium" => Ok(Some(Effort::Medium)),
        "high" | "xhigh" | "max" => Ok(Some(Effort::High)),
        "" | "auto" | "inherit" => Ok(None),
        _ => Err(format!("its `effort` is `{name}` and not one of low, medium, high")),
    }
}

/// The name of a color, for clients that show it.
fn color(name: &str) -> Result<Option<String>, String> {
    let name = name.trim();
    let fits = |char: char| char.is_ascii_alphanumeric() || matches!(char, '#' | '-' | '_');
    if name.chars().count() > MAX_COLOR || !name.chars().all(fits) {
        return Err("its `color` is not the name of a color".to_owned());
    }
    Ok((!name.is_empty()).then(|| name.to_owned()))
}

fn memory(name: &str) -> Result<Option<AgentMemory>, String> {
    match name.trim() {
        "user" => Ok(Some(AgentMemory::User)),
        "project" => Ok(Some(AgentMemory::Project)),
        "local" => Ok(Some(AgentMemory::Local)),
        "" | "none" => Ok(None),
        _ => Err(format!("its `memory` is `{name}` and not one of user, project, local")),
    }
}

/// The names of servers: a list or one text; of those that are described here nothing.
fn servers(written: &Value) -> Vec<String> {
    match written {
        Value::Array(servers) => servers.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Value::String(text) => separate(text),
        _ => Vec::new(),
    }
}

impl Names {
    /// Names that are no tools.
    fn plain(self) -> Vec<String> {
        let written = match self {
            Self::Many(names) => names,
            Self::One(text) => separate(&text),
        };
        written.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    }

    /// The names of tools. What a rule adds in parentheses limits nothing here: the gate judges every call anyway.
    fn tools(self) -> Vec<String> {
        let written = match self {
            Self::Many(names) => names,
            Self::One(text) => separate(&text),
        };
        let name = |written: String| match written.trim().split_once('(') {
            Some((name, _)) => name.trim().to_owned(),
            None => written.trim().to_owned(),
        };
        let mut names: Vec<String> = Vec::new();
        for name in written.into_iter().map(name).filter(|name| !name.is_empty()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }
}

/// Splits at commas and blanks that are in no parentheses.
fn separate(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|char: char| {
        match char {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (char == ',' || char.is_whitespace())
    });
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}
