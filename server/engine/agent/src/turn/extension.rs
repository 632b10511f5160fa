//! A skill or command that the model calls.
//!
//! Rule: the same text, made by the same rules, as when the user types its name; what it asks for beyond that it gets
//! only by the rules that hold for everybody, and in the conversation that uses it alone.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::hooks::carried::use_hooks;
use crate::turn::agent_slots::MAX_DEPTH;
use crate::turn::expand::{ExtensionExpansion, expand_extension};
use crate::turn::pipeline::cancelled;
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use kode_base::call::{ToolError, ToolErrorKind, ToolKind, Touch};
use kode_config::agents::TASK;
use kode_permission::GateDecision;
use kode_permission::equipment::Equipment;
use kode_permission::gate::GateCase;
use kode_record::event::NoticeLevel;
use kode_tool::delegation::Delegation;
use kode_tool::{ExtensionUse, ToolOutput};

/// The outcome of a call of a skill or command.
pub(super) enum UseOutcome {
    /// Its text is the result of the call.
    Text(ToolOutput),
    /// A sub-agent works on it.
    Delegation(Box<Delegation>),
}

/// Expands a skill or command that the model calls.
pub(super) async fn call_extension(
    turn: TurnContext<'_>,
    call: &ModelToolCall,
    wanted: &ExtensionUse,
    cancel: &CancellationToken,
) -> Result<UseOutcome, ToolError> {
    let (services, name) = (turn.services, &wanted.extension.name);
    let expanded = expand_extension(turn, &wanted.extension, &wanted.arguments, cancel).await;
    if cancel.is_cancelled() {
        return Err(cancelled());
    }
    let ExtensionExpansion { extension, mut text, words, equipment, notes } = expanded.map_err(|reason| {
        let hint = "Tell the user; they can change the file, or approve what it asks for.";
        ToolError::new(
            ToolErrorKind::Failed,
            format!("{}: `{name}` cannot be used: {reason}.", call.name),
            hint,
        )
    })?;
    if !extension.model_may_call {
        let hint = "Do without it, or ask the user to call it.";
        let message = format!("{}: `{name}` is for the user alone by now.", call.name);
        return Err(ToolError::new(ToolErrorKind::Forbidden, message, hint));
    }
    if !notes.is_empty() {
        let said = format!("`{name}`: {}.", notes.join("; "));
        turn.notice(NoticeLevel::Warning, said, None);
    }
    use_hooks(&turn.conversation.thread, turn.id, extension.hooks);
    if let Some(kind) = extension.agent {
        may_delegate(turn, call, &kind)?;
        let model = equipment.model.clone();
        turn.conversation.equip(turn.id, Equipment { model: None, effort: None, ..equipment });
        let description = format!("/{name}");
        return Ok(UseOutcome::Delegation(Box::new(Delegation {
            kind,
            description,
            prompt: text,
            model,
            resume: None,
            is_isolated: false,
            may_run_foreign: false,
            in_background: extension.background,
            name: None,
            carried: Equipment::default(),
        })));
    }
    turn.conversation.equip(turn.id, equipment);
    if let Some(mentioned) = services.input.mentioned(&words, cancel).await {
        text.push_str("\n\n");
        text.push_str(&mentioned);
    }
    let structured = json!({ "name": name, "path": extension.path.to_string() });
    Ok(UseOutcome::Text(ToolOutput {
        model_text: text,
        display: format!("Read {name}"),
        structured: Some(structured),
        ..ToolOutput::default()
    }))
}

/// Whether a sub-agent of this type may be given the work.
fn may_delegate(turn: TurnContext<'_>, call: &ModelToolCall, kind: &str) -> Result<(), ToolError> {
    let refused = |reason: String| {
        let hint = "Go on without it.";
        ToolError::new(
            ToolErrorKind::Denied,
            format!("{}: no sub-agent may do it: {reason}.", call.name),
            hint,
        )
    };
    if turn.conversation.depth() >= MAX_DEPTH {
        return Err(refused("sub-agents call no more of them".to_owned()));
    }
    let input = json!({ "subagent_type": kind });
    let mut touches = vec![Touch::Named { tool: TASK, name: kind.to_owned() }];
    let types = turn.services.extensions.agent_types();
    let program = types.find(kind).ok().and_then(|found| found.runs.clone());
    touches.extend(program.map(|program| program.touch(turn.conversation.workspace().cwd())));
    let case = GateCase { tool: TASK, kind: ToolKind::ReadOnly, input: &input, touches: &touches };
    let verdict = turn.services.gate.judge_for(turn.conversation, &case, None).verdict;
    match verdict.decision {
        GateDecision::Allow => Ok(()),
        GateDecision::Ask | GateDecision::Deny => Err(refused(verdict.reason)),
    }
}
