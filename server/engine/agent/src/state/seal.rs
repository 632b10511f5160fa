//! Sealing: the result of a call that did not end.
//!
//! Rule: every call has a result, so that the model's provider accepts the history. The result says how far the call had
//! come and what to do about it.

use serde_json::json;

use kode_base::call::ToolKind;
use kode_base::ids::AgentId;
use kode_config::agents::TASK;
use kode_model::Block;
use kode_record::event::{CallOutcome, CallState, ToolCallItem};

/// The outcome of a call that did not end, for people, and its result for the model. `agent` is the sub-agent that worked
/// for it.
pub(crate) fn sealing(call: &ToolCallItem, why: &str, agent: Option<&AgentId>) -> (CallOutcome, Block) {
    let error = format!("The call has no result: {why}.");
    let recommendations = recommendations(call, agent);
    let content = format!("{error}\n{}", recommendations.join("\n"));
    let structured = json!({
    "ok": false, "error": error, "state": call.state, "recommendations": recommendations,
    });
    let outcome = CallOutcome {
        state: CallState::Sealed,
        display: format!("Not finished: {why}"),
        structured: Some(structured),
        error: None,
    };
    let result = Block::result(call.call.as_str(), content, true);
    (outcome, result)
}

/// Recommendations for a call without a result, by how far it had come and what it does.
fn recommendations(call: &ToolCallItem, agent: Option<&AgentId>) -> Vec<String> {
    let said: &[&str] = match (call.state, call.kind) {
        (CallState::Executing, _) if call.name == TASK => {
            let mut said =
                vec!["It had begun: check what its sub-agent did before you give the task again.".to_owned()];
            if let Some(agent) = agent {
                said.push(format!(
                    "Pass `{agent}` as `resume` to let the sub-agent continue with its context."
                ));
            }
            return said;
        }
        (CallState::Executing, Some(ToolKind::Execute)) => &[
            "It had begun: check what it did, inside and outside the workspace, before you repeat it.",
            "Check the files, processes and other systems that the command changes; its processes may still run.",
        ],
        (CallState::Executing, Some(ToolKind::Write)) => &[
            "It had begun: the change may have been made or not.",
            "Read the file before you make the change again.",
        ],
        (CallState::Executing, Some(ToolKind::ReadOnly)) => {
            &["It had begun, but changes nothing: repeat it if it is still needed."]
        }
        (CallState::Executing, None) => {
            &["It had begun: check what it did, inside and outside the workspace, before you repeat it."]
        }
        (CallState::ApprovalRequired, _) => &[
            "It had not begun: it waited for the user, who has not allowed it.",
            "Repeat it if it is still needed; the user is asked again.",
        ],
        (
            CallState::Pending
            | CallState::Completed
            | CallState::Failed
            | CallState::Denied
            | CallState::Sealed,
            _,
        ) => &["It had not begun: repeat it if it is still needed."],
    };
    said.iter().map(|&said| said.to_owned()).collect()
}
