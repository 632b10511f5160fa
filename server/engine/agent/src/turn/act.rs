//! The actions of tools on the session itself: a question, a mode, the todo list.
//!
//! Rule: a tool only names the action. The result for the model is written here, from its real outcome.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::core::Core;
use crate::turn::pipeline::cancelled;
use crate::turn::questions::ask_for_call;
use crate::turn::resume::PendingRequest;
use crate::turn::sample::ModelToolCall;
use crate::turn::services::TurnContext;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::mode::Mode;
use kode_base::question::{
    InquiryAnswer, PLAN_ACCEPT, PLAN_ACCEPT_EDITS, Question, QuestionDraft, QuestionKind, Reply,
};
use kode_base::todo::{self, Todo, TodoCounts};
use kode_record::event::NoticeLevel;
use kode_record::record::Record;
use kode_tool::ToolOutput;

/// Asks the user and returns the answer for the model.
pub(super) async fn ask(
    turn: TurnContext<'_>,
    call: &ModelToolCall,
    title: &str,
    draft: QuestionDraft,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let kind = draft.kind;
    if kind == QuestionKind::Plan {
        only_main(turn)?;
    }
    if kind == QuestionKind::Plan && turn.services.core.state().config.mode != Mode::Plan {
        return Err(ToolError::new(
            ToolErrorKind::Failed,
            "There is no plan to accept: the session is not in plan mode.",
            "Carry the work out, or call EnterPlanMode first if it is to be planned.",
        ));
    }
    let again = match &call.pending {
        Some(PendingRequest::Question(question)) => Some(question.clone()),
        Some(PendingRequest::Permission(..) | PendingRequest::Agent(..)) | None => None,
    };
    let (question, reply) = ask_for_call(turn, (&call.id, &call.item, title), again, draft, cancel).await;
    let Some(mut reply) = reply else { return Err(cancelled()) };
    let feedback = reply.feedback.take().filter(|text| !text.trim().is_empty());
    match (kind, reply.answers.take()) {
        (QuestionKind::Choice, Some(answers)) => Ok(chosen(&question, &answers, feedback)),
        (QuestionKind::Plan, Some(answers)) => plan(turn, &question, &answers, feedback, reply),
        (QuestionKind::Choice, None) => {
            let hint = match feedback {
                Some(words) => format!("They said: {words}"),
                None => "Choose the best option and state your assumption, or stop if you cannot.".to_owned(),
            };
            Err(ToolError::new(ToolErrorKind::Denied, "The user did not answer.", hint))
        }
        (QuestionKind::Plan, None) => Err(plan_refused(turn, &question, feedback)),
        // No tool asks these.
        (QuestionKind::TurnLimit | QuestionKind::Candidates | QuestionKind::Rest, _) => Err(cancelled()),
    }
}

fn chosen(question: &Question, answers: &[InquiryAnswer], feedback: Option<String>) -> ToolOutput {
    let reported = question.reported(answers);
    let mut model_text = format!("The user answered:\n{reported}");
    if let Some(words) = feedback {
        model_text.push_str(&format!("They added: {words}\n"));
    }
    let display = reported.lines().map(|line| line.trim_start_matches("- ")).collect::<Vec<_>>().join("; ");
    let structured = json!({ "questions": question.draft.questions, "answers": answers });
    ToolOutput {
        model_text: model_text.trim_end().to_owned(),
        display,
        structured: Some(structured),
        ..ToolOutput::default()
    }
}

/// Leaves plan mode, or stays in it, by the user's answer.
fn plan(
    turn: TurnContext<'_>,
    question: &Question,
    answers: &[InquiryAnswer],
    feedback: Option<String>,
    reply: Reply,
) -> Result<ToolOutput, ToolError> {
    let picked = answers.first().cloned().unwrap_or_default();
    let label = picked.labels.first().map(String::as_str).unwrap_or_default();
    let words: Vec<_> = [picked.words().map(str::to_owned), feedback].into_iter().flatten().collect();
    let words = (!words.is_empty()).then(|| words.join("\n"));
    let mode = match label {
        PLAN_ACCEPT => reply.mode,
        PLAN_ACCEPT_EDITS => reply.mode.or(Some(Mode::AcceptEdits)),
        _ => return Err(plan_refused(turn, question, words)),
    };
    let mode = leave_plan_mode(&turn.services.core, mode);
    let presented = question.draft.plan.clone().unwrap_or_default();
    let changed = reply.plan.filter(|plan| *plan != presented);
    let mut model_text = format!(
        "The user accepted the plan. Plan mode is over, the mode is now {}. Carry the plan out, step by step; keep a \
        todo list if it has several steps.",
        mode.name()
    );
    if let Some(changed) = &changed {
        model_text
            .push_str(&format!("\nThey have changed it before. This is the plan they accepted:\n{changed}"));
    }
    if let Some(words) = words {
        model_text.push_str(&format!("\nThey added: {words}"));
    }
    let edited = changed.is_some();
    let display = if edited { "Accepted with changes" } else { "Accepted" };
    let plan = changed.unwrap_or(presented);
    let structured = json!({ "accepted": true, "mode": mode.name(), "plan": plan, "edited": edited });
    Ok(ToolOutput {
        model_text,
        display: format!("{display}; mode {}", mode.name()),
        structured: Some(structured),
        ..ToolOutput::default()
    })
}

/// The error of a plan that was not accepted. Without a reason of the user's the turn ends, so that they can give one.
fn plan_refused(turn: TurnContext<'_>, question: &Question, words: Option<String>) -> ToolError {
    let feedback = words.clone();
    let hint = match words {
        Some(words) => format!("They said: {words}\nChange the plan accordingly and present it again."),
        None => {
            turn.conversation.ask_to_stop();
            let hint = "Write what to change, or change the mode.".to_owned();
            let text = "The plan was not accepted; plan mode continues.".to_owned();
            turn.notice(NoticeLevel::Info, text, Some(hint));
            "Plan mode goes on. Wait for what the user says next, and change the plan accordingly.".to_owned()
        }
    };
    let mut structured = json!({ "accepted": false, "plan": question.draft.plan, "edited": false });
    if let Some(feedback) = feedback {
        structured["feedback"] = feedback.into();
    }
    ToolError {
        structured: Some(Box::new(structured)),
        ..ToolError::new(ToolErrorKind::Denied, "The user did not accept the plan.", hint)
    }
}

/// Changes the session's mode.
pub(super) fn set_mode(turn: TurnContext<'_>, mode: Mode) -> Result<ToolOutput, ToolError> {
    only_main(turn)?;
    let core = &turn.services.core;
    let now = core.state().config.mode;
    if now == mode {
        let hint = if mode == Mode::Plan {
            "Go on planning, and call ExitPlanMode with the whole plan when it is ready."
        } else {
            "Continue the work."
        };
        let message = format!("The session is in mode {} already.", mode.name());
        return Err(ToolError::new(ToolErrorKind::Failed, message, hint));
    }
    core.set_mode(mode);
    let model_text = if mode == Mode::Plan {
        "Plan mode is on: look and think, and change nothing; edits are refused. When the plan is ready, call \
            ExitPlanMode with the whole of it, and the user decides."
            .to_owned()
    } else {
        format!("The mode is now {}.", mode.name())
    };
    Ok(ToolOutput {
        model_text,
        display: format!("Mode {}", mode.name()),
        structured: None,
        ..ToolOutput::default()
    })
}

/// Replaces the todo list.
pub(super) fn set_todos(turn: TurnContext<'_>, todos: Vec<Todo>) -> Result<ToolOutput, ToolError> {
    only_main(turn)?;
    let counts = TodoCounts::of(&todos);
    let output = ToolOutput {
        model_text: todo::render(&todos),
        display: format!("{} of {} done", counts.completed, counts.total),
        structured: Some(json!({ "todos": todos, "counts": counts })),
        ..ToolOutput::default()
    };
    turn.services.core.commit(Record::Todos { todos });
    Ok(output)
}

/// Leaves plan mode for `mode`, or for the mode that it was entered from; returns the mode from now on. A mode that the user
/// has chosen meanwhile stays, unless another is asked for.
fn leave_plan_mode(core: &Core, mode: Option<Mode>) -> Mode {
    let (now, before) = {
        let state = core.state();
        (state.config.mode, state.config.mode_before_plan.unwrap_or_default())
    };
    let next = mode.unwrap_or(if now == Mode::Plan { before } else { now });
    core.set_mode(next);
    next
}

/// Refuses a sub-agent: it neither plans for the session nor keeps its list.
fn only_main(turn: TurnContext<'_>) -> Result<(), ToolError> {
    if turn.conversation.is_main() {
        return Ok(());
    }
    Err(ToolError::new(
        ToolErrorKind::Forbidden,
        "The mode and the todo list are the main conversation's.",
        "Continue without it, and list the remaining work in your answer.",
    ))
}
