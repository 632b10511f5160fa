//! Explains the decision on a call, for people who write rules, without running anything.
//!
//! Rule: the verdict is the gate's own. Paths are judged by their text and by where they lead on this machine, when they
//! exist; nothing is read but that, and nothing is run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use kode_base::call::{ToolErrorKind, ToolKind, Touch};
use kode_base::ids::CallId;
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, ResolvedPaths};
use kode_config::in_force::EffectivePolicy;
use kode_config::policy::Policy;
use kode_permission::equipment::Equipment;
use kode_permission::gate::{self, GateCase};
use kode_permission::rules::{
    Behavior, PlacedRule, ProblemSeverity, RuleSource, SettingsLayer, SettingsProblem,
};
use kode_permission::{GateDecision, Verdict, standing};
use kode_process::shell::Shell;
use kode_text::host::NoEditor;
use kode_text::workspace::Workspace;
use kode_tool::declared::declared;
use kode_tool::{CallContext, ErasedTool, Registry};

/// A question about one call.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PermissionQuery {
    /// The mode; `default` when it is not given.
    #[serde(default)]
    pub mode: Option<String>,
    /// The rules; those of the settings files when they are not given.
    #[serde(default)]
    pub rules: Option<RuleTexts>,
    /// Where relative paths and commands start; the workspace when it is not given.
    #[serde(default)]
    pub cwd: Option<String>,
    /// The workspace folder; the current folder when it is not given.
    #[serde(default)]
    pub workspace: Option<String>,
    /// The tool, by any of its names.
    pub tool: String,
    /// The arguments of the call.
    pub input: Value,
    /// Whether the arguments are those that a rule names, without others that a call needs.
    #[serde(skip)]
    pub is_partial: bool,
}

/// Rules as in settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RuleTexts {
    /// Allow rules.
    pub allow: Vec<String>,
    /// Ask rules.
    pub ask: Vec<String>,
    /// Deny rules.
    pub deny: Vec<String>,
}

/// The decision on a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The decision.
    #[serde(serialize_with = "by_name")]
    pub decision: Behavior,
    /// The rule that decided; absent when none did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The place of that rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Why, for people.
    pub reason: String,
    /// Rules that would let it run unasked, where a rule can.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub proposed: Vec<String>,
    /// Rules that cannot be used, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

fn by_name<S: serde::Serializer>(behavior: &Behavior, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(behavior.name())
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// A folder is not absolute.
    #[error("`{0}` is not an absolute path; give `workspace` and `cwd` in full")]
    NotAbsolute(String),
    /// No such mode.
    #[error("there is no mode `{0}`; the modes are: {1}")]
    UnknownMode(String, String),
}

/// The defaults of a query.
pub struct ExplanationContext<'a> {
    /// The folder of the question when it names none.
    pub folder: &'a AbsPath,
    /// The basis for judging calls; the question may give other rules.
    pub policy: &'a Policy,
    /// The tools, for their names and kinds.
    pub tools: &'a Registry,
}

/// Decides on a call.
///
/// # Errors
/// [`ExplainError`], naming the field.
pub async fn explain(
    question: &PermissionQuery,
    setting: &ExplanationContext<'_>,
) -> Result<Explanation, ExplainError> {
    let folder = |text: &String| AbsPath::new(text).map_err(|_| ExplainError::NotAbsolute(text.clone()));
    let root = question.workspace.as_ref().map(folder).transpose()?.unwrap_or_else(|| setting.folder.clone());
    let cwd = question.cwd.as_ref().map(folder).transpose()?.unwrap_or_else(|| root.clone());
    let mode = mode_of(question.mode.as_deref())?;
    let mut policy = setting.policy.clone();
    let mut problems = Vec::new();
    if let Some(texts) = &question.rules {
        (policy.rules, problems) = placed(texts, &root);
    }
    let in_force = EffectivePolicy::new(Arc::new(policy), &[], &Equipment::default(), &cwd);
    problems.extend(in_force.problems.iter().filter(|_| question.rules.is_some()).cloned());
    let workspace = Arc::new(Workspace::new(Arc::new(NoEditor), vec![root.clone()], cwd));
    let mode = in_force.mode(mode);
    let judge = |case: &GateCase<'_>| in_force.judge(case, mode, &workspace, &|_| None);
    let mut explanation = match question.is_partial {
        true => {
            let name = setting.tools.find(&question.tool).map(|tool| tool.facts().name);
            let touches = by_arguments(name.unwrap_or(&question.tool), &question.input, &workspace);
            judged(&question.tool, &question.input, touches, (&workspace, setting.tools), &judge)
        }
        false => explained(&question.tool, &question.input, &workspace, setting.tools, &judge).await,
    };
    explanation.problems = problems.into_iter().map(|problem| problem.message).collect();
    Ok(explanation)
}

/// The mode of that name; the default one for none.
///
/// # Errors
/// [`ExplainError::UnknownMode`].
pub(crate) fn mode_of(name: Option<&str>) -> Result<Mode, ExplainError> {
    let Some(name) = name else { return Ok(Mode::Default) };
    Mode::parse(name).ok_or_else(|| {
        let known: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
        ExplainError::UnknownMode(name.to_owned(), known.join(", "))
    })
}

/// The verdict on a call in a workspace, by the judge of its turns: it is planned as a turn plans it.
pub(crate) async fn explained(
    tool: &str,
    input: &Value,
    workspace: &Arc<Workspace>,
    tools: &Registry,
    judge: &(dyn Fn(&GateCase<'_>) -> Verdict + Sync),
) -> Explanation {
    let found = tools.find(tool);
    let facts = found.as_ref().map(|tool| tool.facts());
    let name = facts.map_or(tool, |facts| facts.name);
    let touches = match touched(name, found.as_deref(), input, workspace).await {
        Ok(touches) => touches,
        Err(reason) => {
            let (proposed, problems) = Default::default();
            let decision = Behavior::Deny;
            return Explanation { decision, rule: None, source: None, reason, proposed, problems };
        }
    };
    judged(tool, input, touches, (workspace, tools), judge)
}

/// The decision on a call with these touches.
fn judged(
    tool: &str,
    input: &Value,
    touches: Vec<Touch>,
    (workspace, tools): (&Arc<Workspace>, &Registry),
    judge: &dyn Fn(&GateCase<'_>) -> Verdict,
) -> Explanation {
    let found = tools.find(tool);
    let facts = found.as_ref().map(|tool| tool.facts());
    let name = facts.map_or(tool, |facts| facts.name);
    // A tool that is not known here, one of an MCP server for example, may do anything.
    let kind = facts.map_or(ToolKind::Execute, |facts| facts.kind);
    let verdict = judge(&GateCase { tool: name, kind, input, touches: &touches });
    Explanation {
        decision: match verdict.decision {
            GateDecision::Allow => Behavior::Allow,
            GateDecision::Ask => Behavior::Ask,
            GateDecision::Deny => Behavior::Deny,
        },
        proposed: proposed(&verdict, &touches, &workspace.cwd()),
        source: verdict.rule.as_ref().map(|rule| rule.source.to_string()),
        rule: verdict.rule.map(|rule| rule.text),
        reason: verdict.reason,
        problems: Vec::new(),
    }
}

/// The touches of a call by its plan. Where the plan fails for what a session knows and has read, and not for the
/// arguments, it differs from the arguments.
async fn touched(
    name: &str,
    tool: Option<&dyn ErasedTool>,
    input: &Value,
    workspace: &Arc<Workspace>,
) -> Result<Vec<Touch>, String> {
    let Some(tool) = tool else { return Ok(by_arguments(name, input, workspace)) };
    match tool.plan(input.clone(), &context(workspace)).await {
        Ok(plan) => Ok(plan.touches),
        Err(error) if error.kind == ToolErrorKind::InvalidInput && !OF_SESSIONS.contains(&name) => {
            Err(format!("the call fails before it is judged: {}", error.message))
        }
        Err(_) => Ok(by_arguments(name, input, workspace)),
    }
}

/// The touches that the arguments of a call name.
fn by_arguments(name: &str, input: &Value, workspace: &Workspace) -> Vec<Touch> {
    let resolve = |path: &str| workspace.resolve(path).ok();
    declared(name, input, &workspace.cwd(), &resolve).unwrap_or_default()
}

/// Tools whose arguments name what only a session knows.
const OF_SESSIONS: [&str; 3] = ["Task", "Skill", "SlashCommand"];

/// The context of a plan, of a call that is never carried out.
fn context(workspace: &Arc<Workspace>) -> CallContext {
    CallContext {
        call_id: CallId::generate(),
        workspace: Arc::clone(workspace),
        shell: Arc::new(Shell::new(workspace.cwd())),
        sandbox: None,
        resolved: ResolvedPaths::default(),
        agents: Arc::default(),
        catalog: Arc::default(),
        private_hosts: Arc::default(),
        may_read: Arc::new(|_, _| true),
        cancel: CancellationToken::new(),
        progress: Arc::new(|_| {}),
        text_limit: None,
        ask: None,
    }
}

fn proposed(verdict: &gate::Verdict, touches: &[Touch], workspace: &AbsPath) -> Vec<String> {
    if verdict.decision == GateDecision::Ask && verdict.standing == gate::AnswerReach::Rule {
        standing::rules(touches, Some(workspace))
    } else {
        Vec::new()
    }
}

/// Rules from their texts, and the problems of unreadable ones.
fn placed(texts: &RuleTexts, root: &AbsPath) -> (Vec<PlacedRule>, Vec<SettingsProblem>) {
    let lists = [(Behavior::Allow, &texts.allow), (Behavior::Ask, &texts.ask), (Behavior::Deny, &texts.deny)];
    let (mut rules, mut problems) = (Vec::new(), Vec::new());
    for (behavior, list) in lists {
        for text in list {
            let source = RuleSource { layer: SettingsLayer::CommandLine, file: None, place: None };
            match text.parse() {
                Ok(rule) => rules.push(PlacedRule { behavior, rule, source, root: Some(root.clone()) }),
                Err(error) => problems.push(SettingsProblem {
                    file: None,
                    place: None,
                    severity: ProblemSeverity::Error,
                    message: format!(
                        "`{text}` in {} is not a rule and has no effect: {error}.",
                        behavior.name()
                    ),
                }),
            }
        }
    }
    (rules, problems)
}
