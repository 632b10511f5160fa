//! Task: hands a piece of work to a sub-agent.
//!
//! Rule: the call is checked here against the known types; the sub-agent itself is run by the turn, and every one
//! of its calls is judged like any other.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use kode_base::blocking;
use kode_base::call::{CommandLanguage, ToolError, ToolErrorKind, ToolKind, Touch};
use kode_base::ids::AgentId;
use kode_base::team::check_name;
use kode_config::agents::{DEFAULT_TYPE, TASK};
use kode_permission::equipment::Equipment;
use kode_process::plain_git::is_plain;
use kode_tool::delegation::Delegation;
use kode_tool::{CallAction, CallContext, CallPlan, OfferContext, Tool, ToolFacts};

/// The arguments of Task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskInput {
    /// What it is about, in three to five words.
    pub description: String,
    /// The task, with everything the sub-agent has to know: it sees nothing of this conversation.
    pub prompt: String,
    /// The type of agent, one of those listed above. `general-purpose` if left out.
    #[serde(default)]
    pub subagent_type: Option<String>,
    /// The model to use instead of the type's own. Mostly left out.
    #[serde(default)]
    pub model: Option<String>,
    /// The id of an earlier sub-agent, from its result: it goes on with all that it knows.
    #[serde(default)]
    pub resume: Option<String>,
    /// `worktree` for a git worktree of its own: it begins at the newest commit, sees no changes that are not committed, and
    /// changes nothing here. You get its branch. For changes that others must not meet. Mostly left out: the type says it.
    #[serde(default)]
    pub isolation: Option<Isolation>,
    /// Whether to go on at once while it works; you are told when it has ended. Mostly left out: the type says it, and
    /// several calls in one answer run at the same time anyway. Sub-agents always wait for those that they call.
    #[serde(default)]
    pub run_in_background: Option<bool>,
    /// A name for one in the background, by which other agents send it messages, for example `api-tests`. Its type with a
    /// number if left out.
    #[serde(default)]
    pub name: Option<String>,
}

/// Where a sub-agent works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// In a git worktree of its own.
    Worktree,
    /// Where the type says, which is the workspace itself for most.
    None,
}

/// The request to git for a worktree.
const ADD: &str = "git worktree add";

/// Whether a worktree cannot be made without git running programs that the repository names, with nothing that holds them.
async fn runs_foreign(context: &CallContext) -> bool {
    let directory = context.workspace.cwd();
    context.sandbox.is_none() && !blocking(move || is_plain(&directory)).await
}

/// Calls sub-agents.
#[derive(Clone, Copy, Debug)]
pub struct Task;

#[async_trait]
impl Tool for Task {
    type Input = TaskInput;

    fn facts(&self) -> ToolFacts {
        ToolFacts {
            name: TASK,
            // It does nothing by itself: what its sub-agent does is judged call by call.
            kind: ToolKind::ReadOnly,
            concurrency_safe: true,
            description: "Hands a task to a sub-agent, which works on it by itself with a conversation of its own and \
                answers once. Use it for work of many steps whose details you do not need to see, such as broad \
                searches, and for independent pieces of work: several calls in one answer run at the same time. Do \
                small things yourself. The user does not see the answer of a sub-agent; tell them what matters of it.",
        }
    }

    fn describe(&self, offer: &OfferContext<'_>) -> Option<String> {
        Some(format!("{}\n\nTypes of agents:\n{}", self.facts().description, offer.agents.listing()))
    }

    async fn plan(&self, input: TaskInput, context: &CallContext) -> Result<CallPlan, ToolError> {
        let invalid =
            |message: String, hint: &str| ToolError::new(ToolErrorKind::InvalidInput, message, hint);
        if input.prompt.trim().is_empty() {
            return Err(invalid("The prompt is empty.".to_owned(), "Say what the sub-agent shall do."));
        }
        let agents = &context.agents;
        let resume = input.resume.filter(|id| !id.trim().is_empty()).map(AgentId::from_external);
        let wanted = match &resume {
            None => input.subagent_type.as_deref().unwrap_or(DEFAULT_TYPE).to_owned(),
            Some(id) => {
                let begun = agents.begun.get(id).ok_or_else(|| {
                    let hint = "Take the id from the result of an earlier call, or begin a new sub-agent.";
                    ToolError::new(ToolErrorKind::NotFound, format!("There is no sub-agent `{id}`."), hint)
                })?;
                if input.subagent_type.is_some_and(|named| !named.eq_ignore_ascii_case(begun)) {
                    let message = format!("The sub-agent `{id}` is of type `{begun}`.");
                    return Err(invalid(message, "Leave `subagent_type` out when you resume one."));
                }
                begun.clone()
            }
        };
        let kind = agents.types.find(&wanted)?;
        let is_isolated = kind.is_isolated || input.isolation == Some(Isolation::Worktree);
        let runs = kind.runs.as_ref().map(|program| program.touch(context.workspace.cwd()));
        if let (Some(_), Some(id)) = (&runs, &resume) {
            let message = format!("The sub-agent `{id}` was a guest, which has ended with its call.");
            return Err(invalid(message, "Start a new one, and describe the finished work in its task."));
        }
        let (kind, in_background) = (kind.name.clone(), input.run_in_background.unwrap_or(kind.background));
        let name = input.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        if let Some(name) = &name {
            if !in_background {
                let hint = "Set `run_in_background`, or leave `name` out.";
                return Err(invalid("Only a sub-agent in the background has a name.".to_owned(), hint));
            }
            check_name(name).map_err(|error| {
                invalid(
                    format!("No sub-agent was started: {error}."),
                    "Choose another name, or leave `name` out.",
                )
            })?;
        }
        let mut touches = vec![Touch::Named { tool: TASK, name: kind.clone() }];
        let may_run_foreign = is_isolated && resume.is_none() && runs_foreign(context).await;
        if may_run_foreign {
            let directory = context.workspace.cwd();
            // First, for it is what the user is asked about.
            let (command, language) = (ADD.to_owned(), CommandLanguage::Bash);
            touches.insert(0, Touch::Command { command, directory, outside_sandbox: false, language });
        }
        // Another agent is a program, and is judged as one.
        runs.into_iter().for_each(|touch| touches.insert(0, touch));
        let description = input.description.split_whitespace().collect::<Vec<_>>().join(" ");
        let delegation = Delegation {
            kind: kind.clone(),
            description,
            prompt: input.prompt,
            model: input.model,
            resume,
            is_isolated,
            may_run_foreign,
            in_background,
            name,
            carried: Equipment::default(),
        };
        Ok(CallPlan {
            title: format!("{kind}: {}", delegation.description),
            touches,
            action: CallAction::Delegate(Box::new(delegation)),
        })
    }
}
