//! Between the engine's questions and todo lists and those of the wire.
//!
//! Rule: values only, no decisions; matches are exhaustive.

use kode_engine::base::ids::{AgentId, SessionId};
use kode_engine::base::question::{
    Candidate, CandidateCall, InquiryAnswer, Question, QuestionKind, QuestionOutcome, QuestionResolution,
};
use kode_engine::base::todo::{Todo, TodoCounts, TodoReminderReason, TodoStatus};
use kode_engine::record::reminder::ReminderKind;
use kode_protocol as wire;

use crate::convert::{agent_id, call_id, item_id, mode, session_id, timestamp};

/// A question of a session.
#[must_use]
pub fn question(session: &SessionId, question: Question) -> wire::Question {
    let inquiries = question.draft.questions.into_iter().map(|inquiry| wire::Inquiry {
        question: inquiry.question,
        header: inquiry.header,
        options: inquiry
            .options
            .into_iter()
            .map(|option| wire::QuestionOption { label: option.label, description: option.description })
            .collect(),
        multi_select: inquiry.multi_select,
    });
    wire::Question {
        session_id: session_id(session),
        question_id: wire::QuestionId::new(question.id.as_str()),
        kind: kind(question.draft.kind),
        call_id: question.call.as_ref().map(call_id),
        item_id: question.item.as_ref().map(item_id),
        questions: inquiries.collect(),
        plan: question.draft.plan,
        candidates: question.draft.candidates.into_iter().map(candidate).collect(),
        until: question.draft.until.map(timestamp),
        timestamp: timestamp(question.timestamp),
    }
}

fn kind(kind: QuestionKind) -> wire::QuestionKind {
    match kind {
        QuestionKind::Choice => wire::QuestionKind::Choice,
        QuestionKind::Plan => wire::QuestionKind::Plan,
        QuestionKind::TurnLimit => wire::QuestionKind::TurnLimit,
        QuestionKind::Candidates => wire::QuestionKind::Candidates,
        QuestionKind::Rest => wire::QuestionKind::Rest,
    }
}

fn candidate(candidate: Candidate) -> wire::Candidate {
    let call = |call: CandidateCall| wire::CandidateCall { name: call.name, input: call.input };
    wire::Candidate { text: candidate.text, calls: candidate.calls.into_iter().map(call).collect() }
}

/// The event that reports a question.
#[must_use]
pub fn asked(session: &SessionId, asked: Question) -> wire::Event {
    wire::Event::QuestionAsked(Box::new(wire::QuestionAsked { question: question(session, asked) }))
}

/// The outcome of a question.
#[must_use]
pub fn resolved(resolved: QuestionResolution) -> wire::QuestionAnswered {
    let answer = |picked: InquiryAnswer| wire::QuestionAnswer { labels: picked.labels, text: picked.text };
    wire::QuestionAnswered {
        question_id: wire::QuestionId::new(resolved.id.as_str()),
        call_id: resolved.call.as_ref().map(call_id),
        outcome: match resolved.outcome {
            QuestionOutcome::Answered => wire::QuestionOutcome::Answered,
            QuestionOutcome::Refused => wire::QuestionOutcome::Refused,
            QuestionOutcome::Cancelled => wire::QuestionOutcome::Cancelled,
        },
        answers: resolved.answers.into_iter().map(answer).collect(),
        feedback: resolved.feedback,
        plan: resolved.plan,
        mode: resolved.mode.map(mode),
        by: resolved.by,
    }
}

/// Answers that a client gives.
#[must_use]
pub fn answers_from_wire(answers: Vec<wire::QuestionAnswer>) -> Vec<InquiryAnswer> {
    answers.into_iter().map(|answer| InquiryAnswer { labels: answer.labels, text: answer.text }).collect()
}

/// A todo list.
#[must_use]
pub fn todos(todos: &[Todo]) -> Vec<wire::Todo> {
    let todo = |todo: &Todo| wire::Todo {
        content: todo.content.clone(),
        status: match todo.status {
            TodoStatus::Pending => wire::TodoStatus::Pending,
            TodoStatus::InProgress => wire::TodoStatus::InProgress,
            TodoStatus::Completed => wire::TodoStatus::Completed,
        },
        active_form: todo.active_form.clone(),
    };
    todos.iter().map(todo).collect()
}

/// How many entries of a list are how far.
#[must_use]
pub fn todo_counts(todos: &[Todo]) -> wire::TodoCounts {
    let TodoCounts { total, pending, in_progress, completed } = TodoCounts::of(todos);
    wire::TodoCounts {
        total: total as u64,
        pending: pending as u64,
        in_progress: in_progress as u64,
        completed: completed as u64,
    }
}

/// That the list is another one.
#[must_use]
pub fn todo_changed(list: &[Todo]) -> wire::TodoChanged {
    wire::TodoChanged { todos: todos(list), counts: todo_counts(list) }
}

/// That a query begins, or of what the model was reminded.
#[must_use]
pub fn reminder(kind: ReminderKind, agent: Option<&AgentId>, messages: usize) -> wire::Event {
    wire::Event::Reminder(wire::Reminder {
        kind: match kind {
            ReminderKind::ModeChanged => wire::ReminderKind::ModeChanged,
            ReminderKind::Steered => wire::ReminderKind::Steered,
            ReminderKind::EditFailed => wire::ReminderKind::EditFailed,
            ReminderKind::FilesChanged => wire::ReminderKind::FilesChanged,
            ReminderKind::SessionStart => wire::ReminderKind::SessionStart,
            ReminderKind::TodoChanged => wire::ReminderKind::TodoChanged,
            ReminderKind::TodoStale => wire::ReminderKind::TodoStale,
        },
        agent_id: agent.map(agent_id),
        messages: u64::try_from(messages).unwrap_or(u64::MAX),
    })
}

/// That the model was reminded of its list.
#[must_use]
pub fn todo_reminder(reason: TodoReminderReason) -> wire::TodoReminder {
    let reason = match reason {
        TodoReminderReason::Initial => wire::TodoReminderReason::Initial,
        TodoReminderReason::Stale => wire::TodoReminderReason::Stale,
        TodoReminderReason::Changed => wire::TodoReminderReason::Changed,
    };
    wire::TodoReminder { reason }
}
