//! What the user is asked before a call runs.
//!
//! Rule: the prompt shows exactly what will happen and exactly what a standing yes would cover, made by the same code that
//! carries both out.

use serde_json::Value;

use crate::session::Session;
use crate::session::conversation::Conversation;
use crate::session::guard::Judged;
use crate::turn::sample::Call;
use crate::turn::taken_up::Again;
use kode_base::call::{ToolKind, Touch};
use kode_base::ids::PermissionId;
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_permission::gate::{AnswerReach, GateCase};
use kode_permission::{Grant, Offer, PermissionPrompt, Preview, Scope, Verdict, standing};
use kode_text::workspace::Workspace;
use kode_tool::{CallAction, CallPlan, ErasedTool};

/// Longer lines are shown with both ends only; such a line gets no standing yes, because nobody has seen all of it.
const SHOWN_WHOLE: usize = 4_000;

/// The prompt for a call whose verdict is to ask.
pub(super) fn prompt(
    conversation: &Conversation<'_>,
    tool: &dyn ErasedTool,
    call: &Call,
    plan: &CallPlan,
    judged: &Judged,
) -> PermissionPrompt {
    let verdict = &judged.verdict;
    let offers = offers(conversation, tool, &call.input, plan, verdict);
    let mut scopes = vec![Scope::Once];
    scopes.extend(offers.iter().map(|offer| offer.scope));
    PermissionPrompt {
        id: id(call),
        call: call.id.clone(),
        item: call.item.clone(),
        agent: conversation.agent.clone(),
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

/// What the prompt for a call goes by: one that waited when the server ended is the same prompt.
pub(super) fn id(call: &Call) -> PermissionId {
    match &call.again {
        Some(Again::Permission(id, _)) => id.clone(),
        Some(Again::Question(_) | Again::Agent(..)) | None => PermissionId::generate(),
    }
}

/// What a yes for the session allows.
pub(super) fn grants(session: &Session, plan: &CallPlan) -> Vec<Grant> {
    Grant::for_touches(&plan.touches, &|target| session.workspace.real(target))
}

/// The standing answers the user may give: only what lets the same call run unasked the next time.
pub(super) fn offers(
    conversation: &Conversation<'_>,
    tool: &dyn ErasedTool,
    input: &Value,
    plan: &CallPlan,
    verdict: &Verdict,
) -> Vec<Offer> {
    let session = conversation.session;
    let cut = plan.touches.iter().any(|touch| match touch {
        Touch::Command { command, .. } => command.len() > SHOWN_WHOLE,
        Touch::Foreign { shown, .. } => shown.len() > SHOWN_WHOLE,
        Touch::Read(_) | Touch::Write(_) | Touch::Fetch { .. } | Touch::Named { .. } => false,
    });
    if cut || verdict.standing == AnswerReach::Never {
        return Vec::new();
    }
    let mut offers = Vec::new();
    let grants: Vec<_> = grants(session, plan).iter().map(Grant::rule).collect();
    if !grants.is_empty() {
        offers.push(Offer { scope: Scope::Session, rules: grants, spared: None });
    }
    // A rule speaks of the workspace: one that lets a call run in a worktree would be gone with the worktree.
    let is_in_workspace = conversation.isolated().is_none();
    if verdict.standing == AnswerReach::Rule && is_in_workspace && session.can_keep_rules() {
        for scope in [Scope::Project, Scope::User] {
            let root = (scope == Scope::Project).then(|| session.workspace.cwd());
            let mode = conversation.mode(session.mode());
            let facts = tool.facts();
            let case = GateCase { tool: facts.name, kind: facts.kind, input, touches: &plan.touches };
            if let Some(rules) = covering(session, &case, mode, root.as_ref()) {
                let spared = Some(session.spared_by(&rules));
                offers.push(Offer { scope, rules, spared });
            }
        }
    }
    offers
}

/// Rules with which the same call runs unasked the next time; `None` when there are none.
fn covering(
    session: &Session,
    case: &GateCase<'_>,
    mode: Mode,
    root: Option<&AbsPath>,
) -> Option<Vec<String>> {
    let mut rules = standing::rules(case.touches, root);
    if rules.is_empty() {
        return None;
    }
    if session.would_run(case, mode, &rules) {
        return Some(rules);
    }
    // A rule for a command speaks of no file beside it: what is redirected, and what other commands of the line read.
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
        if !session.would_run(&file, mode, &rules) {
            rules.extend(standing::rules(&touches, root));
        }
    }
    rules.dedup();
    session.would_run(case, mode, &rules).then_some(rules)
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

/// What could go wrong with a call, worst first.
fn risks(plan: &CallPlan, judged: &Judged, contains: impl Fn(&Target) -> bool) -> Vec<String> {
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
