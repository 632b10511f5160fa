//! The texts for the model about a call that does not run, or not as it was written.
//!
//! Rule: each text says what happened and what to do next, and a refusal never invites another way around it.

use serde_json::{Value, json};

use crate::gate::Judgment;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_permission::{GateDecision, NOBODY, PromptAnswer};
use kode_tool::CallPlan;

pub(in crate::turn) fn cancelled() -> ToolError {
    ToolError::new(
        ToolErrorKind::Cancelled,
        "The user cancelled this call.",
        "Do not repeat it unless asked to.",
    )
}

/// The judgment, unless it refuses the call.
pub(super) fn unless_refused(plan: &CallPlan, judged: Judgment) -> Result<Judgment, ToolError> {
    match judged.verdict.decision {
        GateDecision::Allow | GateDecision::Ask => Ok(judged),
        GateDecision::Deny => Err(ToolError::new(
            ToolErrorKind::Denied,
            format!("{} was refused: {}.", plan.title, judged.verdict.reason),
            "Do not try it another way; go on without it.",
        )),
    }
}

/// The text for the model where a hook has changed a call.
pub(super) fn changed_by_hook(input: &Value) -> String {
    format!("A hook changed the arguments to {input}\n")
}

/// An error of arguments that a hook has given.
pub(super) fn of_hook(input: &Value, error: ToolError) -> ToolError {
    ToolError { message: format!("{}{}", changed_by_hook(input), error.message), ..error }
}

pub(super) fn refused_by_hook(title: &str, reason: &str, reported: &[String]) -> ToolError {
    let mut hint = "Do not try it another way; do what the hook asks for, or go on without it.".to_owned();
    for text in reported {
        hint.push_str(&format!("\n\n{text}"));
    }
    ToolError::new(ToolErrorKind::Denied, format!("A hook refused: {title}. Its reason: {reason}"), hint)
}

pub(super) fn stopped(title: &str) -> ToolError {
    let hint = "Wait for what the user says next.";
    ToolError::new(
        ToolErrorKind::Denied,
        format!("A hook stopped the turn, so this does not run: {title}."),
        hint,
    )
}

pub(super) fn refused(title: &str, answer: &PromptAnswer) -> ToolError {
    let is_unasked = answer.by == NOBODY;
    let who = if is_unasked { "No user can be asked, so this was refused" } else { "The user refused" };
    let feedback = answer.feedback.as_deref().map(str::trim).filter(|feedback| !feedback.is_empty());
    let hint = match feedback {
        Some(feedback) => format!("They said: {feedback}"),
        None if is_unasked => {
            "Do not try it another way; continue without it, and report the work left undone.".to_owned()
        }
        None => "Do not try it another way; go on without it, or ask what they want instead.".to_owned(),
    };
    let structured = feedback.map(|feedback| Box::new(json!({ "feedback": feedback })));
    ToolError { structured, ..ToolError::new(ToolErrorKind::Denied, format!("{who}: {title}."), hint) }
}
