//! What a tool is, and the registry of them.
//!
//! Rule: a tool declares what it touches and returns data or a change set; it never prompts, writes or draws.
//! A tool is one file: a typed input whose doc comments are the text the model reads, `plan`, and its tests.

pub mod ask_user_question;
#[cfg(test)]
mod bad_input;
pub mod bash;
pub mod bash_output;
pub mod declared;
pub mod diagnostics;
pub mod edit;
pub mod glob;
pub mod grep;
mod input;
pub mod kill_shell;
pub mod ls;
pub mod multi_edit;
pub mod notebook_edit;
pub mod plan_mode;
pub mod read;
mod replacement;
pub mod skill;
pub mod slash_command;
pub mod task;
#[cfg(test)]
pub(crate) mod testing;
pub mod think;
pub mod todo_write;
mod walk;
pub mod web_fetch;
pub mod web_search;
pub mod write;

use task::Delegation;
pub(crate) use walk::is_vcs_folder;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::agents::{AgentTypes, KnownAgents};
use crate::edit::ChangeSet;
use crate::extension::{Catalog, Extension};
use crate::ids::CallId;
use crate::model::{Image, ToolDeclaration};
use crate::paths::{AbsPath, Target};
use crate::permission::Mode;
use crate::question::{Draft, Reply};
use crate::sandbox::Sandbox;
use crate::shell::Shell;
use crate::todo::Todo;
use crate::web::WebClient;
use crate::workspace::Workspace;

/// How long the work of one call may take, where the tool does not say otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// What a tool does to the world; drives the permission matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolKind {
    /// Looks only.
    ReadOnly,
    /// Changes files through change sets.
    Write,
    /// Runs something whose effects are not known beforehand.
    Execute,
}

/// The constant facts of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolFacts {
    /// Canonical name, the only one shown to the model.
    pub name: &'static str,
    /// Names from other agents that mean the same.
    pub aliases: &'static [&'static str],
    /// What it does to the world.
    pub kind: ToolKind,
    /// Whether calls may run beside each other.
    pub concurrency_safe: bool,
    /// What it does and when to use it, for the model.
    pub description: &'static str,
}

/// Something a call touches, so that the gate can judge it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Touch {
    /// Reads a file, document or folder.
    Read(Target),
    /// Changes or creates a file or document.
    Write(Target),
    /// Runs a command line in a folder.
    Command {
        /// The command line, exactly.
        command: String,
        /// The folder it starts in.
        directory: AbsPath,
        /// Whether it is to run outside the sandbox, where there is one.
        outside_sandbox: bool,
    },
    /// Fetches a web page.
    Fetch {
        /// The page.
        url: Url,
    },
    /// Uses something by its name: a kind of agent, a skill, a command, a search of the web.
    Named {
        /// The canonical name of the tool that uses it.
        tool: &'static str,
        /// The name, or the words searched for.
        name: String,
    },
    /// Has somebody else do something whose effects are known to nobody here: a tool of an MCP server.
    Foreign {
        /// The canonical name of the tool.
        tool: String,
        /// Whose it is and what it is given, exactly, for people.
        shown: String,
        /// Whether it is believed to look only.
        only_looks: bool,
    },
}

/// What a call will do, known before anything is asked or done.
pub struct Plan {
    /// One line for people, for example `Edit src/main.rs`.
    pub title: String,
    /// Everything it touches.
    pub touches: Vec<Touch>,
    /// What happens once it may.
    pub action: Action,
}

impl fmt::Debug for Plan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Plan")
            .field("title", &self.title)
            .field("touches", &self.touches)
            .finish_non_exhaustive()
    }
}

/// The work of a call: either something run, or a change set that the pipeline has applied.
pub enum Action {
    /// Runs the work.
    Run(RunFn),
    /// Has these changes applied; the result is written from what was applied.
    Change(ChangeSet),
    /// Has the user asked; the result is written from the answer.
    Ask(Box<Draft>),
    /// Has the session's mode changed.
    SetMode(Mode),
    /// Has the session's todo list replaced.
    SetTodos(Vec<Todo>),
    /// Has a sub-agent do it; the result is written from its last words.
    Delegate(Box<Delegation>),
    /// Has the text of a skill or command made, or a sub-agent do what it says.
    Use(Box<Use>),
}

/// A skill or command that the model wants to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// What it is.
    pub extension: Extension,
    /// Its arguments, as one text.
    pub arguments: String,
}

/// What decides which tools the model is told of, and what of them.
#[derive(Clone, Copy)]
pub struct Offering<'a> {
    /// The mode of the conversation.
    pub mode: Mode,
    /// Whether the editor tells what its language servers say.
    pub can_diagnose: bool,
    /// The skills and commands there are.
    pub catalog: &'a Catalog,
    /// The types of sub-agents there are.
    pub agents: &'a AgentTypes,
    /// Whether a rule takes a tool away.
    pub is_denied: &'a dyn Fn(&str) -> bool,
}

impl Touch {
    /// What is written, if it lies within this folder.
    #[must_use]
    pub fn write_within(&self, folder: &Target) -> Option<&Target> {
        match (self, folder) {
            (Self::Write(target @ Target::File(path)), Target::File(folder)) if path != folder => {
                path.is_within(folder).then_some(target)
            }
            (
                Self::Read(_)
                | Self::Write(_)
                | Self::Command { .. }
                | Self::Fetch { .. }
                | Self::Named { .. }
                | Self::Foreign { .. },
                _,
            ) => None,
        }
    }
}

/// The work of a call that is not a change set.
pub type RunFn = Box<dyn FnOnce(CallContext) -> BoxFuture<'static, Result<ToolOutput, ToolError>> + Send>;

/// The result of a call that worked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolOutput {
    /// The text for the model.
    pub model_text: String,
    /// The short text for people; the first line of `model_text` when empty.
    pub display: String,
    /// The same for machines: a patch, a list of matches, an exit code.
    pub structured: Option<Value>,
    /// Pictures for the model.
    pub images: Vec<Image>,
}

/// The classes of a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ToolErrorKind {
    /// No tool has this name.
    UnknownTool,
    /// The arguments are not JSON or do not fit the schema.
    InvalidInput,
    /// The file, folder or document is not there.
    NotFound,
    /// The file cannot be read or written by this user, or lies where it must not.
    Forbidden,
    /// The text is not what the call took it for: unread, changed, no match, several matches.
    Mismatch,
    /// The user's typing and the edit overlap.
    Conflict,
    /// A rule, a mode or the user said no.
    Denied,
    /// It took too long.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// It ran and failed.
    Failed,
}

/// A failed call: what happened, where, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The class.
    pub kind: ToolErrorKind,
    /// What happened and where.
    pub message: String,
    /// What to do next; never empty.
    pub hint: String,
    /// A number some clients and reminders know: 1 means more than one match.
    pub code: Option<u32>,
    /// What is known of the failure, for machines: the exit code of a command.
    pub structured: Option<Box<Value>>,
}

impl ToolError {
    /// An error with its hint.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: hint.into(), code: None, structured: None }
    }

    /// The text for the model.
    #[must_use]
    pub fn model_text(&self) -> String {
        format!("{}\n{}", self.message, self.hint)
    }
}

/// What of a file a search shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// That it exists.
    Name,
    /// What is in it.
    Content,
}

/// Whether a search may show something of a file. What no rule and no secret speaks against may be shown.
pub type MayRead = Arc<dyn Fn(&Target, Look) -> bool + Send + Sync>;

/// Reports what a running call has put out so far. Rate limiting is the receiver's.
pub type Progress = Arc<dyn Fn(String) + Send + Sync>;

/// Asks the user something for a running call; gives nothing when the call is cancelled first, or nobody can be asked.
pub type Asker = Arc<dyn Fn(Draft) -> BoxFuture<'static, Option<Reply>> + Send + Sync>;

/// What a call may use while it plans and runs.
#[derive(Clone)]
pub struct CallContext {
    /// The call.
    pub call_id: CallId,
    /// The text of files as the user sees it, and what this session has read.
    pub workspace: Arc<Workspace>,
    /// Where commands run.
    pub shell: Arc<Shell>,
    /// What holds the commands of this call back, as it was judged.
    pub sandbox: Option<Arc<Sandbox>>,
    /// The sub-agents that can be called.
    pub agents: Arc<KnownAgents>,
    /// The skills and commands that can be used: those that the model was told of.
    pub catalog: Arc<Catalog>,
    /// What a search may show. What it says no to is left out without a word: a count would tell what is in a file.
    pub may_read: MayRead,
    /// Fires when the call, the turn or the session is cancelled.
    pub cancel: CancellationToken,
    /// Takes output while the call runs.
    pub progress: Progress,
    /// Asks the user while the call runs; nothing where nobody can be asked.
    pub ask: Option<Asker>,
}

/// A tool with a typed input. Implement this; the registry erases the type.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The arguments. Unknown fields are refused (`#[serde(deny_unknown_fields)]`); doc comments are the schema text.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;

    /// The constant facts.
    fn facts(&self) -> ToolFacts;

    /// What the model is told of the tool as things are; `None` when it has no use now and is not offered.
    fn describe(&self, _offer: &Offering<'_>) -> Option<String> {
        Some(self.facts().description.to_owned())
    }

    /// How long the work of one call may take; `None` when the tool keeps its own time.
    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    /// Checks the arguments against the world and says what the call will do. Has no side effects but the
    /// session's own record of what was read.
    ///
    /// # Errors
    /// [`ToolError`] when the call cannot work; it is the call's result.
    async fn plan(&self, input: Self::Input, context: &CallContext) -> Result<Plan, ToolError>;
}

/// A tool whose input type is erased: parsing happens here, once.
#[async_trait]
pub trait ErasedTool: Send + Sync {
    /// The constant facts.
    fn facts(&self) -> ToolFacts;
    /// What the model is told of the tool as things are; `None` when it is not offered.
    fn describe(&self, offer: &Offering<'_>) -> Option<String>;
    /// How long the work of one call may take; `None` when the tool keeps its own time.
    fn timeout(&self) -> Option<Duration>;
    /// JSON Schema of the arguments.
    fn input_schema(&self) -> Value;
    /// Parses the arguments and plans the call.
    ///
    /// # Errors
    /// [`ToolErrorKind::InvalidInput`] with the path and the known fields, or the tool's own error.
    async fn plan(&self, input: Value, context: &CallContext) -> Result<Plan, ToolError>;
}

struct Erased<T>(T);

/// A tool with its input type erased.
pub(crate) fn erased<T: Tool>(tool: T) -> Arc<dyn ErasedTool> {
    Arc::new(Erased(tool))
}

/// Tools that come and go while a session goes on.
pub trait ToolSource: Send + Sync {
    /// All there are now, in the order of their names.
    fn tools(&self) -> Arc<Vec<Arc<dyn ErasedTool>>>;

    /// The one that a name means, its own or any other that it goes by.
    fn find(&self, name: &str) -> Option<Arc<dyn ErasedTool>>;
}

#[async_trait]
impl<T: Tool> ErasedTool for Erased<T> {
    fn facts(&self) -> ToolFacts {
        self.0.facts()
    }

    fn describe(&self, offer: &Offering<'_>) -> Option<String> {
        self.0.describe(offer)
    }

    fn timeout(&self) -> Option<Duration> {
        self.0.timeout()
    }

    fn input_schema(&self) -> Value {
        let mut schema = schemars::schema_for!(T::Input).to_value();
        if let Some(object) = schema.as_object_mut() {
            object.remove("$schema");
            object.remove("title");
        }
        schema
    }

    async fn plan(&self, input: Value, context: &CallContext) -> Result<Plan, ToolError> {
        let input = input::parse(self.facts().name, &self.input_schema(), input)?;
        self.0.plan(input, context).await
    }
}

/// The tools of a session, by name and alias.
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<&'static str, Arc<dyn ErasedTool>>,
    aliases: BTreeMap<&'static str, &'static str>,
    /// Tools that come and go; none of them takes the name of another.
    source: Option<Arc<dyn ToolSource>>,
}

/// Some of the tools of a source, as they were; they go by the same names.
struct Only {
    source: Arc<dyn ToolSource>,
    named: Arc<Vec<Arc<dyn ErasedTool>>>,
}

impl ToolSource for Only {
    fn tools(&self) -> Arc<Vec<Arc<dyn ErasedTool>>> {
        Arc::clone(&self.named)
    }

    fn find(&self, name: &str) -> Option<Arc<dyn ErasedTool>> {
        let found = self.source.find(name)?;
        let is_kept = self.named.iter().any(|tool| tool.facts().name == found.facts().name);
        is_kept.then_some(found)
    }
}

impl Registry {
    /// The built-in tools. WebSearch is not one of them: it is added with whatever says which service there is.
    #[must_use]
    pub fn built_in() -> Self {
        let mut registry = Self::default();
        registry.add(ask_user_question::AskUserQuestion);
        registry.add(bash::Bash);
        registry.add(bash_output::BashOutput);
        registry.add(diagnostics::Diagnostics);
        registry.add(edit::Edit);
        registry.add(glob::Glob);
        registry.add(grep::Grep);
        registry.add(kill_shell::KillShell);
        registry.add(ls::Ls);
        registry.add(multi_edit::MultiEdit);
        registry.add(notebook_edit::NotebookEdit);
        registry.add(plan_mode::EnterPlanMode);
        registry.add(plan_mode::ExitPlanMode);
        registry.add(read::Read);
        registry.add(task::Task);
        registry.add(think::Think);
        registry.add(web_fetch::WebFetch::new(Arc::new(WebClient::default())));
        registry.add(skill::Skill);
        registry.add(slash_command::SlashCommand);
        registry.add(todo_write::TodoWrite);
        registry.add(write::Write);
        registry
    }

    /// Adds a tool; one of the same name is replaced.
    pub fn add<T: Tool>(&mut self, tool: T) {
        let facts = tool.facts();
        for alias in facts.aliases {
            self.aliases.insert(alias, facts.name);
        }
        self.tools.insert(facts.name, Arc::new(Erased(tool)));
    }

    /// Finds a tool by its name or an alias of it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<dyn ErasedTool>> {
        let canonical = self.aliases.get(name).copied().unwrap_or(name);
        let known = self.tools.get(canonical).cloned();
        known.or_else(|| self.source.as_ref()?.find(name))
    }

    /// The same with tools that come and go.
    #[must_use]
    pub fn with_source(&self, source: Arc<dyn ToolSource>) -> Self {
        Self { source: Some(source), ..self.clone() }
    }

    /// The same with more tools; one of the same name is replaced.
    #[must_use]
    pub fn with(&self, more: impl IntoIterator<Item = Arc<dyn ErasedTool>>) -> Self {
        let mut registry = self.clone();
        registry.tools.extend(more.into_iter().map(|tool| (tool.facts().name, tool)));
        registry
    }

    /// All tools there are now: those that stay in the order of their names, then those that come and go.
    pub fn iter(&self) -> impl Iterator<Item = Arc<dyn ErasedTool>> {
        let others = self.source.as_ref().map(|source| source.tools()).unwrap_or_default();
        let others: Vec<_> =
            others.iter().filter(|tool| !self.tools.contains_key(tool.facts().name)).cloned().collect();
        self.tools.values().cloned().chain(others)
    }

    /// Those whose name `keep` wants, with their aliases.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&'static str) -> bool) -> Self {
        let tools = self.iter().map(|tool| (tool.facts().name, tool)).filter(|(name, _)| keep(name));
        let tools: BTreeMap<_, _> = tools.collect();
        let named = Arc::new(tools.values().cloned().collect::<Vec<_>>());
        let source =
            self.source.clone().map(|source| Arc::new(Only { source, named }) as Arc<dyn ToolSource>);
        Self { tools, aliases: self.aliases.clone(), source }
    }

    /// What the model is told of the tools as things are. Modes that refuse all edits are told of nothing that makes
    /// them; commands stay, for the gate lets those run that only look.
    #[must_use]
    pub fn declarations_for(&self, offer: &Offering<'_>) -> Vec<ToolDeclaration> {
        let is_offered = |kind| !matches!(offer.mode, Mode::Plan | Mode::Readonly) || kind != ToolKind::Write;
        self.iter()
            .filter(|tool| is_offered(tool.facts().kind) && !(offer.is_denied)(tool.facts().name))
            .filter_map(|tool| {
                Some(ToolDeclaration {
                    name: tool.facts().name.to_owned(),
                    description: tool.describe(offer)?,
                    input_schema: tool.input_schema(),
                })
            })
            .collect()
    }
}
