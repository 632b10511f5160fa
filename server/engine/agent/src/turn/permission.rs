//! The permission prompt of a call.
//!
//! Rule: the prompt shows exactly what will happen and exactly what a permanent permission would cover, made by the same
//! code that carries both out.

use std::collections::HashSet;

use serde_json::Value;

use crate::gate::Gatekeeper;
use crate::gate::Judgment;
use crate::turn::resume::PendingRequest;
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use kode_base::call::{ToolKind, Touch};
use kode_base::ids::PermissionId;
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target, is_deceptive, one_line};
use kode_command::{Analysis, FileAccess, TouchedPath, analyse_in};
use kode_permission::gate::{AnswerReach, GateCase};
use kode_permission::{Grant, Offer, PermissionPrompt, Preview, Scope, Verdict, standing};
use kode_process::sandbox::SandboxKind;
use kode_text::workspace::Workspace;
use kode_tool::names::GUEST;
use kode_tool::{CallAction, CallPlan, ErasedTool};

/// The longest line that is shown whole, in characters; a longer one gets no permanent permission.
const SHOWN_WHOLE: usize = 4_000;
/// The most links that a risk names.
const MAX_LINKS: usize = 5;

/// The most paths outside the workspace that a risk names.
const MAX_OUTSIDE: usize = 3;

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
        title: one_line(&plan.title).into_owned(),
        reason: match &conversation.assignment {
            None => one_line(&verdict.reason).into_owned(),
            Some(assignment) => {
                format!("{} (asked by the sub-agent `{}`)", one_line(&verdict.reason), assignment.kind)
            }
        },
        preview: preview(conversation.workspace(), plan, judged.bounds.sandbox.is_some()),
        risks: {
            let mut risks = risks(plan, judged, |target| conversation.workspace().contains(target));
            risks.splice(0..0, links(plan, conversation.workspace()));
            risks
        },
        notes: notes(plan, judged),
        diagnostics: None,
        scopes,
        offers,
        mode: mode(turn, tool, &call.input, plan),
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
        // A text that is not shown as it is can be allowed for this call alone.
        Touch::Command { command, .. } => command.len() > SHOWN_WHOLE || escaped(command) != *command,
        Touch::Foreign { shown, .. } => shown.len() > SHOWN_WHOLE || escaped(shown) != *shown,
        Touch::Read(target) | Touch::Write(target) => target.to_string().contains(is_deceptive),
        Touch::Fetch { .. } | Touch::Named { .. } => false,
    });
    if cut || verdict.standing == AnswerReach::Never {
        return Vec::new();
    }
    let mut offers = Vec::new();
    let grants: Vec<_> = grants(workspace, plan).iter().map(Grant::rule).collect();
    if !grants.is_empty() {
        offers.push(Offer { scope: Scope::Session, rules: grants, spared: None });
    }
    // A rule refers to the workspace: one that lets a call run in a worktree would be gone with the worktree.
    let is_in_workspace = turn.conversation.isolation().is_none() && gate.isolation().is_none();
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

/// The mode in which a change to the workspace runs unasked; `None` for other calls and in other modes than the default.
fn mode(turn: TurnContext<'_>, tool: &dyn ErasedTool, input: &Value, plan: &CallPlan) -> Option<Mode> {
    let is_change = matches!(plan.action, CallAction::Change(_));
    let is_default = turn.services.core.state().config.mode == Mode::Default;
    if !is_change || !is_default || turn.conversation.isolation().is_some() {
        return None;
    }
    let facts = tool.facts();
    let case = GateCase { tool: facts.name, kind: facts.kind, input, touches: &plan.touches };
    let mode = Mode::AcceptEdits;
    turn.services.gate.would_run(&case, turn.conversation.mode(mode), &[]).then_some(mode)
}

/// Rules with which the same call runs unasked the next time; `None` if none exist.
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
        (CallAction::Change(change) | CallAction::Show(change), _) => Preview::Diff {
            paths: {
                let removed = change.removals.iter().map(|removal| &removal.target);
                let targets = change.files.iter().map(|file| &file.target).chain(removed);
                targets.map(|target| changed(target, workspace)).collect()
            },
            unified: kode_text::workspace::preview::preview(change, workspace),
        },
        (_, [Touch::Command { command, directory, .. }, ..]) => {
            let cwd = one_line(&directory.to_string()).into_owned();
            Preview::Command { command: escaped(command), cwd, sandboxed }
        }
        (_, touches) => Preview::Paths {
            paths: touches
                .iter()
                .filter_map(|touch| match touch {
                    Touch::Read(target) | Touch::Write(target) => {
                        Some(shown(target, &workspace.real(target)))
                    }
                    Touch::Fetch { url } => Some(url.to_string()),
                    Touch::Named { name, .. } => Some(escaped(name)),
                    Touch::Foreign { shown, .. } => Some(escaped(shown)),
                    Touch::Command { .. } => None,
                })
                .collect(),
        },
    }
}

/// Text of several lines in which no character changes how others are shown.
fn escaped(text: &str) -> String {
    let is_escaped = |letter: char| is_deceptive(letter) && !matches!(letter, '\n' | '\t');
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_escaped(letter) { shown.extend(letter.escape_default()) } else { shown.push(letter) }
    }
    shown
}

/// A path, and where it leads when it is a link.
fn shown(target: &Target, real: &Target) -> String {
    let text = if target == real { target.to_string() } else { format!("{target} → {real}") };
    one_line(&text).into_owned()
}

/// A file that is changed as the workspace shows it, and where it leads when it is a link.
fn changed(target: &Target, workspace: &Workspace) -> String {
    let (name, real) = (workspace.display(target), workspace.real(target));
    let text = if *target == real { name } else { format!("{name} → {real}") };
    one_line(&text).into_owned()
}

/// Where the links lead that a call goes through: those it names, and those among the files of its command line.
fn links(plan: &CallPlan, workspace: &Workspace) -> Vec<String> {
    let mut files = Vec::new();
    for touch in &plan.touches {
        match touch {
            Touch::Read(target) | Touch::Write(target) => files.push(target.clone()),
            Touch::Command { command, directory, language, .. } => {
                let touched = analyse_in(language, command, directory)
                    .commands
                    .into_iter()
                    .flat_map(|command| command.touches);
                files.extend(touched.filter_map(|touch| match touch.path {
                    TouchedPath::Known(path) => Some(Target::File(path)),
                    TouchedPath::Unknown(_) => None,
                }));
            }
            Touch::Fetch { .. } | Touch::Named { .. } | Touch::Foreign { .. } => {}
        }
    }
    files.sort();
    files.dedup();
    // Access to the workspace itself is no news.
    let leads = |target: &Target| {
        let (name, real) = (target.file()?, workspace.real(target));
        let folder = name.parent().map(Target::File).map(|folder| workspace.real(&folder));
        let inside = folder.as_ref().and_then(Target::file).map(|folder| folder.join(name.file_name()));
        let is_link = inside.is_none_or(|inside| real.file() != Some(&inside)) || !workspace.contains(target);
        (is_link && *target != real).then(|| format!("`{target}` leads to `{real}`."))
    };
    files.iter().filter_map(leads).take(MAX_LINKS).map(|text| one_line(&text).into_owned()).collect()
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

/// The risks of a call, the worst first, each once.
fn risks(plan: &CallPlan, judged: &Judgment, contains: impl Fn(&Target) -> bool) -> Vec<String> {
    let risks = plan.touches.iter().flat_map(|touch| touch_risks(touch, judged, &contains));
    let mut known = HashSet::new();
    risks.map(|risk| one_line(&risk).into_owned()).filter(|risk| known.insert(risk.clone())).collect()
}

fn touch_risks(touch: &Touch, judged: &Judgment, contains: &impl Fn(&Target) -> bool) -> Vec<String> {
    let (mut risks, text) = match touch {
        Touch::Command { command, directory, outside_sandbox, language } => {
            let analysis = analyse_in(language, command, directory);
            (command_risks(&analysis, *outside_sandbox, judged, contains), Some(command.as_str()))
        }
        Touch::Read(target) | Touch::Write(target) => {
            let outside = (!contains(target)).then(|| format!("{target} is outside the workspace."));
            (outside.into_iter().collect(), None)
        }
        Touch::Fetch { url } => {
            let host = url.domain().map(|host| format!("Reaches the network: {host}."));
            (host.into_iter().collect(), url.domain())
        }
        Touch::Named { .. } => (Vec::new(), None),
        Touch::Foreign { shown, .. } => (Vec::new(), Some(shown.as_str())),
    };
    if let Some(word) = text.and_then(mixed_word) {
        let mixed =
            format!("`{word}` mixes letters of different alphabets: it may not be what it looks like.");
        risks.insert(0, mixed);
    }
    risks
}

/// The risks of a command line, by the effects of its commands.
fn command_risks(
    analysis: &Analysis,
    outside_sandbox: bool,
    judged: &Judgment,
    contains: &impl Fn(&Target) -> bool,
) -> Vec<String> {
    let mut risks = kode_command::warnings(analysis);
    let writes = analysis.commands.iter().flat_map(|command| &command.touches);
    let outside = writes.filter_map(|touch| match (&touch.access, &touch.path) {
        (FileAccess::Write, TouchedPath::Known(path)) if !path.to_string().starts_with("/dev/") => {
            (!contains(&Target::File(path.clone()))).then(|| path.to_string())
        }
        _ => None,
    });
    let outside: Vec<String> = outside.take(MAX_OUTSIDE).collect();
    if !outside.is_empty() {
        risks.push(format!("Writes outside the workspace: {}.", outside.join(", ")));
    }
    if outside_sandbox && judged.bounds.sandbox.is_none() {
        risks.push("Runs outside the sandbox, with your rights and the network.".to_owned());
    }
    risks
}

/// The limits of a call, such as the sandbox.
fn notes(plan: &CallPlan, judged: &Judgment) -> Vec<String> {
    let sandbox = judged.bounds.sandbox.as_ref();
    let is_weaker = sandbox.is_some_and(|sandbox| sandbox.policy().kind == SandboxKind::Landlock);
    let is_command = plan.touches.iter().any(|touch| matches!(touch, Touch::Command { .. }));
    if let Some(launcher) = sandbox.and_then(|sandbox| sandbox.remote()).filter(|_| is_command) {
        return vec![format!("Runs {launcher}, as `sandbox.remote` says: it can change the workspace.")];
    }
    let note = plan.touches.iter().find_map(|touch| match (touch, sandbox.is_some()) {
        (Touch::Command { .. }, true) if is_weaker => Some(
            "Runs in the sandbox of the weaker kind (Landlock alone): it can change the workspace, list other processes, \
             and change modes and times of your files. Guarded files are restored after it.",
        ),
        (Touch::Command { .. }, true) => {
            Some("Runs in the sandbox: it can change the workspace and has no network.")
        }
        (Touch::Command { outside_sandbox: false, .. }, false) => {
            Some("Runs without a sandbox, with your rights.")
        }
        (Touch::Foreign { tool, .. }, _) if tool == GUEST => {
            Some("The guest carries it out itself; Kode cannot undo it.")
        }
        (Touch::Foreign { .. }, _) => Some("An MCP server carries it out; Kode cannot undo it."),
        _ => None,
    });
    note.map(str::to_owned).into_iter().collect()
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
