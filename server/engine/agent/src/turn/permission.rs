//! The permission prompt of a call.
//!
//! Rule: the prompt shows exactly what will happen and exactly what a standing yes would cover, made by the same code that
//! carries both out.

use serde_json::Value;

use crate::gate::Gatekeeper;
use crate::gate::Judgment;
use crate::turn::resume::PendingRequest;
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use kode_base::call::{ToolKind, Touch};
use kode_base::ids::PermissionId;
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_permission::gate::{AnswerReach, GateCase};
use kode_permission::{Grant, Offer, PermissionPrompt, Preview, Scope, Verdict, standing};
use kode_text::workspace::Workspace;
use kode_tool::{CallAction, CallPlan, ErasedTool};

/// The longest line that is shown whole, in characters; a longer one gets no permanent permission.
const SHOWN_WHOLE: usize = 4_000;

/// The prompt for a call whose verdict is to ask.
pub(super) fn prompt(
    turn: TurnContext<'_>,
    tool: &dyn ErasedTool,
    call: &ModelToolCall,
    plan: &CallPlan,
    judged: &Judgment,
) -> PermissionPrompt {
    let (verdict, conversation) = (&judged.verdict, turn.conversation);
    let offers = offers(turn, tool, &call.input, plan, verdict);
    let mut scopes = vec![Scope::Once];
    scopes.extend(offers.iter().map(|offer| offer.scope));
    PermissionPrompt {
        id: id(call),
        call: call.id.clone(),
        item: call.item.clone(),
        agent: conversation.agent().cloned(),
        tool: call.name.clone(),
        title: plan.title.clone(),
        reason: match &conversation.assignment {
            None => verdict.reason.clone(),
            Some(assignment) => {
                format!("{} (asked by the sub-agent `{}`)", verdict.reason, assignment.kind)
            }
        },
        preview: preview(conversation.workspace(), plan, judged.sandbox.is_some()),
        risks: risks(plan, judged, |target| conversation.workspace().contains(target)),
        scopes,
        offers,
        input: call.input.clone(),
        timestamp: jiff::Timestamp::now(),
    }
}

/// The id of a call's prompt: a prompt that waited when the server ended keeps its id.
pub(super) fn id(call: &ModelToolCall) -> PermissionId {
    match &call.pending {
        Some(PendingRequest::Permission(id, _)) => id.clone(),
        Some(PendingRequest::Question(_) | PendingRequest::Agent(..)) | None => PermissionId::generate(),
    }
}

/// The grants of a permission for the session.
pub(super) fn grants(workspace: &Workspace, plan: &CallPlan) -> Vec<Grant> {
    Grant::for_touches(&plan.touches, &|target| workspace.real(target))
}

/// The permanent permissions that are offered: only those with which the same call runs unasked the next time.
pub(super) fn offers(
    turn: TurnContext<'_>,
    tool: &dyn ErasedTool,
    input: &Value,
    plan: &CallPlan,
    verdict: &Verdict,
) -> Vec<Offer> {
    let (gate, workspace) = (&turn.services.gate, &turn.services.environment.workspace);
    let cut = plan.touches.iter().any(|touch| match touch {
        Touch::Command { command, .. } => command.len() > SHOWN_WHOLE,
        Touch::Foreign { shown, .. } => shown.len() > SHOWN_WHOLE,
        Touch::Read(_) | Touch::Write(_) | Touch::Fetch { .. } | Touch::Named { .. } => false,
    });
    if cut || verdict.standing == AnswerReach::Never {
        return Vec::new();
    }
    let mut offers = Vec::new();
    let grants: Vec<_> = grants(workspace, plan).iter().map(Grant::rule).collect();
    if !grants.is_empty() {
        offers.push(Offer { scope: Scope::Session, rules: grants, spared: None });
    }
    // A rule speaks of the workspace: one that lets a call run in a worktree would be gone with the worktree.
    let is_in_workspace = turn.conversation.isolation().is_none();
    if verdict.standing == AnswerReach::Rule && is_in_workspace && gate.can_keep_rules() {
        for scope in [Scope::Project, Scope::User] {
            let root = (scope == Scope::Project).then(|| workspace.cwd());
            let mode = turn.mode();
            let facts = tool.facts();
            let case = GateCase { tool: facts.name, kind: facts.kind, input, touches: &plan.touches };
            if let Some(rules) = covering(gate, &case, mode, root.as_ref()) {
                let spared = Some(gate.spared_by(&rules));
                offers.push(Offer { scope, rules, spared });
            }
        }
    }
    offers
}

/// Rules with which the same call runs unasked the next time; `None` when there are none.
fn covering(
    gate: &Gatekeeper,
    case: &GateCase<'_>,
    mode: Mode,
    root: Option<&AbsPath>,
) -> Option<Vec<String>> {
    let mut rules = standing::rules(case.touches, root);
    if rules.is_empty() {
        return None;
    }
    if gate.would_run(case, mode, &rules) {
        return Some(rules);
    }
    // A rule for a command does not cover other files: redirections, and files that other commands of the line read.
    for touch in standing::files(case.touches) {
        let (tool, kind) = match touch {
            Touch::Write(_) => ("Edit", ToolKind::Write),
            Touch::Read(_)
            | Touch::Command { .. }
            | Touch::Fetch { .. }
            | Touch::Named { .. }
            | Touch::Foreign { .. } => ("Read", ToolKind::ReadOnly),
        };
        let touches = [touch];
        let file = GateCase { tool, kind, input: &Value::Null, touches: &touches };
        if !gate.would_run(&file, mode, &rules) {
            rules.extend(standing::rules(&touches, root));
        }
    }
    rules.dedup();
    gate.would_run(case, mode, &rules).then_some(rules)
}

fn preview(workspace: &Workspace, plan: &CallPlan, sandboxed: bool) -> Preview {
    match (&plan.action, plan.touches.as_slice()) {
        (CallAction::Change(change), _) => Preview::Diff {
            paths: change.files.iter().map(|file| workspace.display(&file.target)).collect(),
            unified: kode_text::workspace::preview::preview(change, workspace),
        },
        (_, [Touch::Command { command, directory, .. }, ..]) => {
            Preview::Command { command: command.clone(), cwd: directory.to_string(), sandboxed }
        }
        (_, touches) => Preview::Paths {
            paths: touches
                .iter()
                .filter_map(|touch| match touch {
                    Touch::Read(target) | Touch::Write(target) => {
                        Some(shown(target, &workspace.real(target)))
                    }
                    Touch::Fetch { url } => Some(url.to_string()),
                    Touch::Named { name, .. } => Some(name.clone()),
                    Touch::Foreign { shown, .. } => Some(shown.clone()),
                    Touch::Command { .. } => None,
                })
                .collect(),
        },
    }
}

/// A path, and where it leads when it is a link.
fn shown(target: &Target, real: &Target) -> String {
    if target == real { target.to_string() } else { format!("{target} → {real}") }
}

/// A word of a command line in which letters of different alphabets stand side by side, so that it may look like
/// another.
fn mixed_word(text: &str) -> Option<&str> {
    let alphabet = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' => Some(0),
        '\u{0370}'..='\u{03ff}' => Some(1),
        '\u{0400}'..='\u{052f}' => Some(2),
        '\u{0530}'..='\u{058f}' => Some(3),
        '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}' => Some(4),
        _ => None,
    };
    text.split(|letter: char| !letter.is_alphanumeric()).find(|word| {
        let mut alphabets = word.chars().filter_map(alphabet);
        alphabets.next().is_some_and(|first| alphabets.any(|other| other != first))
    })
}

/// The risks of a call, the worst first.
fn risks(plan: &CallPlan, judged: &Judgment, contains: impl Fn(&Target) -> bool) -> Vec<String> {
    let mut risks = Vec::new();
    for touch in &plan.touches {
        let (risk, text) = match touch {
            Touch::Command { command, directory, outside_sandbox } => {
                risks.extend(kode_command::warnings(&kode_command::analyse(command, directory)));
                let leaves = judged.sandbox.is_none() && *outside_sandbox;
                let risk = leaves.then_some(
                    "The command runs outside the sandbox: it reaches the network and all that you can reach.",
                );
                (risk.map(str::to_owned), Some(command.as_str()))
            }
            Touch::Read(target) | Touch::Write(target) => {
                let outside = !contains(target);
                (outside.then(|| format!("{target} is outside the workspace.")), None)
            }
            Touch::Fetch { url } => {
                let risk = "What the page says reaches the model, and the site learns of the request.";
                (Some(risk.to_owned()), url.domain())
            }
            Touch::Named { .. } => (None, None),
            Touch::Foreign { shown, .. } => {
                let risk = "An MCP server does it; what it changes outside the workspace cannot be undone from here.";
                (Some(risk.to_owned()), Some(shown.as_str()))
            }
        };
        if let Some(word) = text.and_then(mixed_word) {
            risks.push(format!(
                "`{word}` mixes letters of different alphabets: it may not be what it looks like."
            ));
        }
        risks.extend(risk);
    }
    risks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_only_looks_like_another_is_found() {
        assert_eq!(mixed_word("curl pаypal.com"), Some("pаypal"));
        for plain in ["grep -rn 'Привет' src", "echo naïve Grüße", "ls x1"] {
            assert_eq!(mixed_word(plain), None, "{plain}");
        }
    }
}
