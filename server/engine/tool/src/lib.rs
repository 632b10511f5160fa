//! The trait of a tool, and the registry of tools.
//!
//! Rule: a tool declares what it touches and returns data or a change set; it never prompts, writes or draws.
//! A tool is one file: a typed input whose doc comments are the text the model reads, `plan`, and its tests.
//!
//! Must not know: any single tool, sessions.
//! Used by: record, tools, mcp, languages, acp, agent, engine.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

pub mod declared;
pub mod delegation;
pub mod guest;
mod input;
pub mod languages;
pub mod names;
pub mod offer;
pub mod report;
pub mod servers;
pub mod status;
pub mod team;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::delegation::Delegation;
use crate::team::TeamAction;
use kode_base::call::{ReadCheck, ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::ids::CallId;
use kode_base::mode::Mode;
use kode_base::paths::ResolvedPaths;
use kode_base::question::{QuestionDraft, Reply};
use kode_base::todo::Todo;
use kode_config::agents::{AgentType, AgentTypes, KnownAgents, NOT_FOR_AGENTS, TASK};
use kode_config::extension::{Catalog, Extension};
use kode_config::mcp::names::covers;
use kode_model::{Image, InputSchema, ToolDeclaration};
use kode_permission::rules::names as rule_names;
use kode_process::sandbox::Sandbox;
use kode_process::shell::Shell;
use kode_text::edit::ChangeSet;
use kode_text::workspace::Workspace;

/// How long the work of one call may take, where the tool does not say otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// The constant facts of a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolFacts {
    /// Canonical name, the only one shown to the model.
    pub name: &'static str,
    /// Its effect on the world.
    pub kind: ToolKind,
    /// Whether calls may run beside each other.
    pub concurrency_safe: bool,
    /// Its purpose and use, for the model.
    pub description: &'static str,
}

/// The plan of a call, made before any prompt or action.
pub struct CallPlan {
    /// One line for people, for example `Edit src/main.rs`.
    pub title: String,
    /// Everything it touches.
    pub touches: Vec<Touch>,
    /// The action once it is allowed.
    pub action: CallAction,
}

impl fmt::Debug for CallPlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Plan")
            .field("title", &self.title)
            .field("touches", &self.touches)
            .finish_non_exhaustive()
    }
}

/// The work of a call: either something run, or a change set that the pipeline has applied.
pub enum CallAction {
    /// Runs the work.
    Run(RunFn),
    /// Has these changes applied; the result is written from the applied changes.
    Change(ChangeSet),
    /// Has these changes shown where the user is asked, and nothing done: another program makes them.
    Show(ChangeSet),
    /// Has the user asked; the result is written from the answer.
    Ask(Box<QuestionDraft>),
    /// Has the session's mode changed.
    SetMode(Mode),
    /// Has the session's todo list replaced.
    SetTodos(Vec<Todo>),
    /// Has a sub-agent do it; the result is written from its last output.
    Delegate(Box<Delegation>),
    /// Has the text of a skill or command made, or a sub-agent do what it says.
    Use(Box<ExtensionUse>),
    /// Has a message sent or waited for, or the shared list of tasks shown or changed.
    Team(TeamAction),
}

/// A skill or command that the model wants to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionUse {
    /// Its kind.
    pub extension: Extension,
    /// Its arguments, as one text.
    pub arguments: String,
}

/// The conditions that decide which tools the model gets, and in which form.
#[derive(Clone, Copy)]
pub struct OfferContext<'a> {
    /// The mode of the conversation.
    pub mode: Mode,
    /// Whether there are diagnostics of language servers.
    pub can_diagnose: bool,
    /// Whether a language server serves a language of the workspace.
    pub has_languages: bool,
    /// The skills and commands there are.
    pub catalog: &'a Catalog,
    /// The types of sub-agents there are.
    pub agents: &'a AgentTypes,
    /// Whether a rule takes a tool away.
    pub is_denied: &'a dyn Fn(&str) -> bool,
    /// Whether a model's window is so small that it gets tools by need.
    pub by_need: bool,
    /// Whether the model was trained on patches of several files.
    pub takes_patches: bool,
    /// Whether the conversation is one of a team: its session has or had sub-agents in the background, or it is one.
    pub in_team: bool,
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

/// Reports what a running call has put out so far. Rate limiting is the receiver's.
pub type ProgressReporter = Arc<dyn Fn(String) + Send + Sync>;

/// Asks the user something for a running call; gives nothing when the call is cancelled first, or no user can be asked.
pub type QuestionAsker = Arc<dyn Fn(QuestionDraft) -> BoxFuture<'static, Option<Reply>> + Send + Sync>;

/// The context of a call while it plans and runs.
#[derive(Clone)]
pub struct CallContext {
    /// The call.
    pub call_id: CallId,
    /// The text of files as the user sees it, and what this session has read.
    pub workspace: Arc<Workspace>,
    /// Where commands run.
    pub shell: Arc<Shell>,
    /// The sandbox of the commands of this call back, as it was judged.
    pub sandbox: Option<Arc<Sandbox>>,
    /// Where the paths of this call led when it was judged: what lies elsewhere by now is not opened.
    pub resolved: ResolvedPaths,
    /// The sub-agents that can be called.
    pub agents: Arc<KnownAgents>,
    /// The skills and commands that can be used: those in the list that the model got.
    pub catalog: Arc<Catalog>,
    /// Hosts that may have private addresses: those that allow rules of the user's own name exactly.
    pub private_hosts: Arc<[String]>,
    /// The places that a search may show. Denied places are left out silently: a count would reveal the content of a file.
    pub may_read: ReadCheck,
    /// Fires when the call, the turn or the session is cancelled.
    pub cancel: CancellationToken,
    /// Takes output while the call runs.
    pub progress: ProgressReporter,
    /// The most bytes of text in the result; `None` for the bound of the tool.
    pub text_limit: Option<usize>,
    /// Asks the user while the call runs; nothing without a user to ask.
    pub ask: Option<QuestionAsker>,
}

/// A tool with a typed input. Implement this; the registry erases the type.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The arguments. Unknown fields are refused (`#[serde(deny_unknown_fields)]`); doc comments are the schema text.
    type Input: DeserializeOwned + JsonSchema + Send + 'static;

    /// The constant facts.
    fn facts(&self) -> ToolFacts;

    /// The text for the model about the tool as things are; `None` when it has no use now and is not offered.
    fn describe(&self, _offer: &OfferContext<'_>) -> Option<String> {
        Some(self.facts().description.to_owned())
    }

    /// A Lark grammar of the only argument `input`, for APIs that take a call as free text.
    fn grammar(&self) -> Option<&'static str> {
        None
    }

    /// How long the work of one call may take; `None` when the tool keeps its own time.
    fn timeout(&self) -> Option<Duration> {
        Some(TIMEOUT)
    }

    /// Checks the arguments against the world and says what the call will do. Has no side effects but the
    /// session's own record of its reads.
    ///
    /// # Errors
    /// [`ToolError`] when the call cannot work; it is the call's result.
    async fn plan(&self, input: Self::Input, context: &CallContext) -> Result<CallPlan, ToolError>;
}

/// A tool whose input type is erased: parsing happens here, once.
#[async_trait]
pub trait ErasedTool: Send + Sync {
    /// The constant facts.
    fn facts(&self) -> ToolFacts;
    /// The text for the model about the tool as things are; `None` when it is not offered.
    fn describe(&self, offer: &OfferContext<'_>) -> Option<String>;
    /// A Lark grammar of the only argument `input`, for APIs that take a call as free text.
    fn grammar(&self) -> Option<&'static str> {
        None
    }
    /// How long the work of one call may take; `None` when the tool keeps its own time.
    fn timeout(&self) -> Option<Duration>;
    /// JSON Schema of the arguments, always the same.
    fn input_schema(&self) -> InputSchema;
    /// Parses the arguments and plans the call.
    ///
    /// # Errors
    /// [`ToolErrorKind::InvalidInput`] with the path and the known fields, or the tool's own error.
    async fn plan(&self, input: Value, context: &CallContext) -> Result<CallPlan, ToolError>;
}

struct TypedTool<T> {
    tool: T,
    /// Each request and each call needs it.
    schema: OnceLock<InputSchema>,
}

/// A tool with its input type erased.
pub fn erased<T: Tool>(tool: T) -> Arc<dyn ErasedTool> {
    Arc::new(TypedTool { tool, schema: OnceLock::new() })
}

/// Tools that come and go while a session continues.
pub trait ToolSource: Send + Sync {
    /// All there are now, in the order of their names.
    fn tools(&self) -> Arc<Vec<Arc<dyn ErasedTool>>>;

    /// The one that a name means, its own or any other that it goes by.
    fn find(&self, name: &str) -> Option<Arc<dyn ErasedTool>>;
}

#[async_trait]
impl<T: Tool> ErasedTool for TypedTool<T> {
    fn facts(&self) -> ToolFacts {
        self.tool.facts()
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        self.tool.describe(offer)
    }

    fn grammar(&self) -> Option<&'static str> {
        self.tool.grammar()
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout()
    }

    fn input_schema(&self) -> InputSchema {
        let made = || {
            let mut schema = schemars::schema_for!(T::Input).to_value();
            if let Some(object) = schema.as_object_mut() {
                object.remove("$schema");
                object.remove("title");
            }
            InputSchema::from(schema)
        };
        self.schema.get_or_init(made).clone()
    }

    async fn plan(&self, input: Value, context: &CallContext) -> Result<CallPlan, ToolError> {
        let input = input::parse(self.facts().name, &self.input_schema(), input)?;
        self.tool.plan(input, context).await
    }
}

/// The tools of a session, by name.
#[derive(Clone, Default)]
pub struct Registry {
    tools: BTreeMap<&'static str, Arc<dyn ErasedTool>>,
    /// Tools that come and go; none of them takes the name of another.
    source: Option<Arc<dyn ToolSource>>,
}

/// Several sources as one; where two have a tool of one name, the earlier source counts.
pub struct ToolSources(pub Vec<Arc<dyn ToolSource>>);

impl ToolSource for ToolSources {
    fn tools(&self) -> Arc<Vec<Arc<dyn ErasedTool>>> {
        let lists: Vec<_> =
            self.0.iter().map(|source| source.tools()).filter(|tools| !tools.is_empty()).collect();
        if let [only] = &lists[..] {
            return Arc::clone(only);
        }
        let mut tools = BTreeMap::new();
        for tool in lists.iter().flat_map(|list| list.iter()) {
            tools.entry(tool.facts().name).or_insert_with(|| Arc::clone(tool));
        }
        Arc::new(tools.into_values().collect())
    }

    fn find(&self, name: &str) -> Option<Arc<dyn ErasedTool>> {
        self.0.iter().find_map(|source| source.find(name))
    }
}

/// Some of the tools of a source, as they were; they go by the same names.
struct ToolSubset {
    source: Arc<dyn ToolSource>,
    named: Arc<Vec<Arc<dyn ErasedTool>>>,
}

impl ToolSource for ToolSubset {
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
    /// Adds a tool; one of the same name is replaced.
    pub fn add<T: Tool>(&mut self, tool: T) {
        self.tools.insert(tool.facts().name, erased(tool));
    }

    /// Finds a tool by its name, or by another name that the table of names has for it.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Arc<dyn ErasedTool>> {
        let known = self.tools.get(name).or_else(|| self.tools.get(rule_names::canonical(name))).cloned();
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

    /// The tools whose name `keep` wants.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&'static str) -> bool) -> Self {
        let tools = self.iter().map(|tool| (tool.facts().name, tool)).filter(|(name, _)| keep(name));
        let tools: BTreeMap<_, _> = tools.collect();
        let named = Arc::new(tools.values().cloned().collect::<Vec<_>>());
        let source =
            self.source.clone().map(|source| Arc::new(ToolSubset { source, named }) as Arc<dyn ToolSource>);
        Self { tools, source }
    }

    /// The tools of a sub-agent of this type that a conversation with these tools calls.
    ///
    /// # Errors
    /// [`ToolErrorKind::Failed`] when it names tools and none of them is there.
    pub fn for_agent(&self, kind: &AgentType, may_delegate: bool) -> Result<Self, ToolError> {
        let canonical = |name: &String| self.find(name).map(|tool| tool.facts().name);
        let allowed = kind.tools.as_ref().map(|tools| tools.iter().filter_map(canonical).collect::<Vec<_>>());
        if let (Some(allowed), Some(named)) = (&allowed, &kind.tools)
            && allowed.is_empty()
            && !named.is_empty()
            && kind.servers.is_empty()
            && !self.iter().any(|tool| named.iter().any(|written| covers(written, tool.facts().name)))
        {
            return Err(ToolError::new(
                ToolErrorKind::Failed,
                format!("The agent type `{}` names no tool that is there: {}.", kind.name, named.join(", ")),
                "Use another type, or have the user put the `tools` of its file right.",
            ));
        }
        let refused: Vec<_> = kind.disallowed_tools.iter().filter_map(canonical).collect();
        Ok(self.only(|name| {
            let is_allowed = match &allowed {
                // A call without it does not delegate.
                None => name != TASK,
                Some(allowed) => {
                    let is_named = allowed.contains(&name)
                        || kind.tools.iter().flatten().any(|written| covers(written, name));
                    (is_named && (name != TASK || may_delegate))
                        || kind.has_server_of(name)
                        // A sub-agent with tools is offered these while it is in a team.
                        || (!allowed.is_empty() && names::OF_TEAM.contains(&name))
                }
            };
            let is_refused =
                refused.contains(&name) || kind.disallowed_tools.iter().any(|written| covers(written, name));
            is_allowed && !is_refused && !NOT_FOR_AGENTS.contains(&name)
        }))
    }

    /// The text for the model about the tools as things are. Modes that refuse all edits are notified of nothing that makes
    /// them; commands stay, for the gate lets those run that only look.
    #[must_use]
    pub fn declarations_for(&self, offer: &OfferContext<'_>) -> Vec<ToolDeclaration> {
        let is_offered = |kind| !matches!(offer.mode, Mode::Plan | Mode::Readonly) || kind != ToolKind::Write;
        self.iter()
            .filter(|tool| is_offered(tool.facts().kind) && !(offer.is_denied)(tool.facts().name))
            .filter_map(|tool| {
                Some(ToolDeclaration {
                    name: tool.facts().name.to_owned(),
                    description: tool.describe(offer)?,
                    input_schema: tool.input_schema(),
                    grammar: tool.grammar(),
                })
            })
            .collect()
    }
}
