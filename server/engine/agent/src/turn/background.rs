//! The model's knowledge of background commands that have ended.
//!
//! Rule: an end is reported to the model once, in the session's own conversation only.

use crate::turn::services::TurnContext;
use kode_base::ids::CallId;
use kode_base::reminder;
use kode_record::background::{BackgroundTask, TaskEntry};
use kode_record::record::Record;

/// The most ends that are described at once; the others are counted.
const MAX_DESCRIBED: usize = 20;

/// Adds to the conversation, before the model is called, which background commands have ended since it last knew.
pub(super) fn report_ends(turn: TurnContext<'_>) {
    if !turn.conversation.is_main() {
        return;
    }
    let services = turn.services;
    let unreported = services.core.state().background.unreported();
    if unreported.is_empty() {
        return;
    }
    let text = reminder(&described(&unreported, |call| {
        let path = services.environment.shell.tasks().outputs()?.path(call);
        path.as_path().exists().then(|| path.to_string())
    }));
    turn.commit(Record::Remark { turn: turn.id.clone(), text });
    for task in unreported {
        services.core.commit(Record::Background { entry: TaskEntry::Told { task: task.id } });
    }
}

fn described(ended: &[BackgroundTask], file: impl Fn(&CallId) -> Option<String>) -> String {
    let mut lines = vec!["Commands and sub-agents in the background that have ended since:".to_owned()];
    for task in ended.iter().take(MAX_DESCRIBED) {
        // A command line is data: it must not be able to begin a line of its own.
        let title = task.title.replace(char::is_control, "\u{fffd}");
        let end = task.ended.as_ref().map(|(_, end)| end.to_string().replace(char::is_control, " "));
        let kept = file(&task.call).map(|file| format!("; its output is in `{file}`")).unwrap_or_default();
        lines.push(format!("- {} (`{title}`) {}{kept}", task.id, end.unwrap_or_default()));
    }
    if ended.len() > MAX_DESCRIBED {
        lines.push(format!("- and {} more", ended.len() - MAX_DESCRIBED));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use kode_base::ids::TaskId;
    use kode_process::shell::TaskEnd;

    use super::*;

    #[test]
    fn a_reminder_of_ended_tasks_is_bounded_and_titles_cannot_begin_a_line() {
        let ended = |number: usize| BackgroundTask {
            id: TaskId::numbered(number),
            call: CallId::from_external(format!("call_{number}")),
            title: "a\n- bash_9".to_owned(),
            started: Timestamp::UNIX_EPOCH,
            ended: Some((Timestamp::UNIX_EPOCH, TaskEnd::Failed { reason: "x\ny".to_owned() })),
        };
        let many: Vec<_> = (1..=MAX_DESCRIBED + 2).map(ended).collect();
        let text =
            described(&many, |call| (call.as_str() == "call_1").then(|| "/state/call_1.txt".to_owned()));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + MAX_DESCRIBED + 1);
        assert_eq!(
            lines[1],
            "- bash_1 (`a\u{fffd}- bash_9`) failed: x y; its output is in `/state/call_1.txt`"
        );
        assert_eq!(lines[2], "- bash_2 (`a\u{fffd}- bash_9`) failed: x y");
        assert_eq!(lines[1 + MAX_DESCRIBED], "- and 2 more");
    }
}
