//! Background commands.
//!
//! Rule: values only, no decisions.

use kode_engine::process::shell::TaskEnd;
use kode_engine::record::background::BackgroundTask;
use kode_protocol as wire;

use super::{call_id, timestamp};

/// A background command.
#[must_use]
pub fn task(task: BackgroundTask) -> wire::BackgroundTask {
    wire::BackgroundTask {
        task_id: wire::TaskId::new(task.id.as_str()),
        call_id: call_id(&task.call),
        title: task.title,
        started_at: timestamp(task.started),
        end: task.ended.map(|(at, how)| end(timestamp(at), how)),
    }
}

/// That one was started.
pub(super) fn started(started: BackgroundTask) -> wire::Event {
    wire::Event::BackgroundStarted(wire::BackgroundStarted { task: task(started) })
}

/// That one has ended.
pub(super) fn ended(ended: BackgroundTask) -> wire::Event {
    wire::Event::BackgroundEnded(wire::BackgroundEnded { task: task(ended) })
}

fn end(ended_at: wire::Timestamp, end: TaskEnd) -> wire::BackgroundExit {
    let (status, exit_code, signal, reason) = match end {
        TaskEnd::Exited { code } => (wire::BackgroundStatus::Exited, Some(code), None, None),
        TaskEnd::Signaled { signal } => (wire::BackgroundStatus::Signaled, None, Some(signal), None),
        TaskEnd::Killed => (wire::BackgroundStatus::Killed, None, None, None),
        TaskEnd::WithSession => (wire::BackgroundStatus::EndedWithSession, None, None, None),
        TaskEnd::Failed { reason } => (wire::BackgroundStatus::Failed, None, None, Some(reason)),
    };
    wire::BackgroundExit { ended_at, status, exit_code, signal, reason }
}
