//! Explains the decision on a call, for people who write rules, without running anything.
//!
//! Rule: the verdict is the gate's own. Paths are judged by their text and by where they lead on this machine, when they
//! exist; nothing is read but that, and nothing is run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use kode_base::call::{ToolKind, Touch};
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_permission::gate::{self, Circumstances, Confinement, GateCase};
use kode_permission::rules::places::real_on_disk;
use kode_permission::rules::{
    Behavior, Order, PathBases, PlacedRule, ProblemSeverity, RuleSet, RuleSource, SettingsLayer,
    SettingsProblem,
};
use kode_permission::{GateDecision, Sensitive, standing};
use kode_process::plain_git as git;
use kode_tool::Registry;
use kode_tool::declared::declared;

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
    /// The rules when the question gives none.
    pub rules: Vec<PlacedRule>,
    /// Which of two rules wins that do not deny.
    pub order: Order,
    /// Which files hold secrets.
    pub sensitive: &'a Sensitive,
    /// The sandbox of commands.
    pub confinement: &'a Confinement,
    /// Folders beside the workspace that count as part of it.
    pub additional: &'a [AbsPath],
    /// The tools, for their names and kinds.
    pub tools: &'a Registry,
}

/// Decides on a call.
///
/// # Errors
/// [`ExplainError`], naming the field.
pub fn explain(
    question: &PermissionQuery,
    setting: &ExplanationContext<'_>,
) -> Result<Explanation, ExplainError> {
    let folder = |text: &String| AbsPath::new(text).map_err(|_| ExplainError::NotAbsolute(text.clone()));
    let workspace =
        question.workspace.as_ref().map(folder).transpose()?.unwrap_or_else(|| setting.folder.clone());
    let cwd = question.cwd.as_ref().map(folder).transpose()?.unwrap_or_else(|| workspace.clone());
    let mode = match &question.mode {
        None => Mode::Default,
        Some(name) => Mode::parse(name).ok_or_else(|| {
            let known: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
            ExplainError::UnknownMode(name.clone(), known.join(", "))
        })?,
    };
    let home = std::env::home_dir().and_then(|home| AbsPath::new(home).ok());
    let (placed, mut problems) = match &question.rules {
        Some(texts) => placed(texts, &workspace),
        None => (setting.rules.clone(), Vec::new()),
    };
    let (rules, unusable) = RuleSet::new(placed, &PathBases::on_disk(&cwd, home.as_ref()));
    let rules = rules.in_order(setting.order);
    problems.extend(unusable);

    let tool = setting.tools.find(&question.tool);
    let facts = tool.as_ref().map(|tool| tool.facts());
    let name = facts.map_or(&*question.tool, |facts| facts.name);
    let resolve = |path: &str| match (path.strip_prefix("~/"), &home) {
        _ if path.starts_with("untitled:") => Some(Target::Untitled(path.to_owned())),
        (Some(rest), Some(home)) => Some(Target::File(home.join(rest))),
        _ => Some(Target::File(cwd.join(path))),
    };
    let touches = declared(name, &question.input, &cwd, &resolve).unwrap_or_default();
    let real = |target: &Target| match target {
        Target::File(path) => Target::File(real_on_disk(path)),
        Target::Untitled(_) => target.clone(),
    };
    let real_workspace = real_on_disk(&workspace);
    let contains = |target: &Target| {
        let real = real(target);
        let Some(path) = real.file() else { return true };
        path.is_within(&real_workspace) || setting.additional.iter().any(|folder| path.is_within(folder))
    };
    let roots = [workspace.clone(), real_workspace.clone()];
    let circumstances = Circumstances {
        mode,
        roots: &roots,
        home: home.as_ref(),
        rules: &rules,
        grants: &[],
        sensitive: setting.sensitive,
        confinement: setting.confinement,
        lost: None,
        contains: &contains,
        is_own: &|_| false,
        real: &real,
        delivery: &|_| None,
        is_plain_git: &git::is_plain,
    };
    // A tool that is not known here, one of an MCP server for example, may do anything.
    let kind = facts.map_or(ToolKind::Execute, |facts| facts.kind);
    let case = GateCase { tool: name, kind, input: &question.input, touches: &touches };
    let verdict = gate::judge(&case, &circumstances);
    Ok(Explanation {
        decision: match verdict.decision {
            GateDecision::Allow => Behavior::Allow,
            GateDecision::Ask => Behavior::Ask,
            GateDecision::Deny => Behavior::Deny,
        },
        proposed: proposed(&verdict, &touches, &workspace),
        source: verdict.rule.as_ref().map(|rule| rule.source.to_string()),
        rule: verdict.rule.map(|rule| rule.text),
        reason: verdict.reason,
        problems: problems.into_iter().map(|problem| problem.message).collect(),
    })
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
                        "`{text}` in {} is no rule and does not count: {error}.",
                        behavior.name()
                    ),
                }),
            }
        }
    }
    (rules, problems)
}
