//! Background commands of a session: what is recorded of them, what clients are told, and what the model is told.
//!
//! Rule: the journal knows of each that it began, that it ended and that the model knows of its end; one whose end it
//! does not know when a session is taken up ended with the server. The model is told of an end once.

use std::io;
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::session::Session;
use crate::session::conversation::Conversation;
use kode_base::ids::{CallId, TaskId, TurnId};
use kode_base::{blocking, reminder};
use kode_model::{Block, History};
use kode_process::shell::{OutputPage, TaskEnd, TaskReport, page_of};
use kode_record::background::{BackgroundTask, TaskEntry};
use kode_record::record::Record;

/// So many ends are told at once, the others are only counted.
const MAX_TOLD: usize = 20;

/// What the records of background commands add up to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Background {
    known: Vec<Known>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Known {
    task: BackgroundTask,
    is_told: bool,
}

/// Whose output is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputOf {
    /// That of a call.
    Call(CallId),
    /// That of a background command.
    Task(TaskId),
}

/// A part of an output, and whether more can come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOutput {
    /// The part.
    pub page: OutputPage,
    /// Whether the command is over, so that nothing comes after `page.total`.
    pub is_complete: bool,
}

/// Why an output cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// No call of that id has a result.
    #[error("there is no call `{0}` with a result in this session")]
    UnknownCall(CallId),
    /// No background command of that id.
    #[error("there is no background command `{0}` in this session")]
    UnknownTask(TaskId),
    /// The file it is kept in cannot be read.
    #[error("the kept output cannot be read: {0}")]
    Storage(#[from] io::Error),
}

impl Background {
    /// Folds one entry into it.
    pub(crate) fn apply(&mut self, entry: TaskEntry) {
        match entry {
            TaskEntry::Started { task: id, call, title, at } => {
                let task = BackgroundTask { id, call, title, started: at, ended: None };
                self.known.push(Known { task, is_told: false });
            }
            TaskEntry::Ended { task, end, at } => {
                if let Some(known) = self.find_mut(&task) {
                    known.task.ended = Some((at, end));
                }
            }
            TaskEntry::Told { task } => {
                if let Some(known) = self.find_mut(&task) {
                    known.is_told = true;
                }
            }
        }
    }

    /// All of them, oldest first.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = &BackgroundTask> {
        self.known.iter().map(|known| &known.task)
    }

    /// Those that run, oldest first.
    pub fn running(&self) -> impl Iterator<Item = &BackgroundTask> {
        self.tasks().filter(|task| task.ended.is_none())
    }

    pub(super) fn find(&self, id: &TaskId) -> Option<&BackgroundTask> {
        self.tasks().find(|task| task.id == *id)
    }

    fn find_mut(&mut self, id: &TaskId) -> Option<&mut Known> {
        self.known.iter_mut().find(|known| known.task.id == *id)
    }

    /// Those whose end the model does not know.
    fn untold(&self) -> Vec<BackgroundTask> {
        let untold = self.known.iter().filter(|known| known.task.ended.is_some() && !known.is_told);
        untold.map(|known| known.task.clone()).collect()
    }
}

impl Session {
    /// The background commands, oldest first, also those that have ended.
    #[must_use]
    pub fn background_tasks(&self) -> Vec<BackgroundTask> {
        self.state().background.tasks().cloned().collect()
    }

    /// A part of what a call or a background command has put out: of a command the whole output where it is kept, else
    /// the result as the model got it. `limit` is in bytes and bounded.
    ///
    /// # Errors
    /// [`OutputError`].
    pub async fn read_output(
        &self,
        of: OutputOf,
        offset: u64,
        limit: usize,
    ) -> Result<SessionOutput, OutputError> {
        let (call, is_running) = {
            let state = self.state();
            let task = match &of {
                OutputOf::Task(id) => {
                    Some(state.background.find(id).ok_or_else(|| OutputError::UnknownTask(id.clone()))?)
                }
                OutputOf::Call(call) => state.background.tasks().find(|task| task.call == *call),
            };
            let call = match (&of, task) {
                (_, Some(task)) => task.call.clone(),
                (OutputOf::Call(call), None) => call.clone(),
                (OutputOf::Task(id), None) => return Err(OutputError::UnknownTask(id.clone())),
            };
            (call, task.filter(|task| task.ended.is_none()).map(|task| task.id.clone()))
        };
        let tasks = Arc::clone(self.shell.tasks());
        let wanted = call.clone();
        let kept = blocking(move || {
            if let Some(running) = &is_running
                && let Some(task) = tasks.find(running.as_str())
            {
                task.flush();
            }
            let page = tasks.outputs().map(|outputs| outputs.read(&wanted, offset, limit)).transpose();
            page.map(|page| page.flatten().map(|page| (page, is_running.is_none())))
        })
        .await?;
        if let Some((page, is_complete)) = kept {
            return Ok(SessionOutput { page, is_complete });
        }
        let result = self.result_of(&call).ok_or(OutputError::UnknownCall(call))?;
        Ok(SessionOutput { page: page_of(&result, offset, limit), is_complete: true })
    }

    /// Begins to end a background command, with everything it has started. False when it had ended before.
    ///
    /// # Errors
    /// [`OutputError::UnknownTask`].
    pub fn stop_task(&self, id: &TaskId) -> Result<bool, OutputError> {
        if self.state().background.find(id).is_none() {
            return Err(OutputError::UnknownTask(id.clone()));
        }
        Ok(self.shell.tasks().find(id.as_str()).is_some_and(|task| task.begin_kill()))
    }

    /// Takes note of what happens to background commands from now on.
    pub(super) fn follow_tasks(self: &Arc<Self>) {
        self.shell.tasks().count_from(self.state().background.known.len());
        let session: Weak<Self> = Arc::downgrade(self);
        self.shell.tasks().observe(move |report| {
            if let Some(session) = session.upgrade() {
                session.note_task(report);
            }
        });
    }

    /// Enters the end of those that ran when an earlier server ended.
    pub(super) fn end_lost_tasks(&self) {
        let lost: Vec<_> = self.state().background.running().map(|task| task.id.clone()).collect();
        for task in lost {
            self.note_task(TaskReport::Ended { task, end: TaskEnd::WithSession });
        }
    }

    fn note_task(&self, report: TaskReport) {
        let at = Timestamp::now();
        let entry = match report {
            TaskReport::Started { task, call, title } => TaskEntry::Started { task, call, title, at },
            TaskReport::Ended { task, end } => TaskEntry::Ended { task, end, at },
            TaskReport::Seen { task } => TaskEntry::Told { task },
        };
        self.commit(Record::Background { entry });
    }

    /// The result of a call as the model got it.
    fn result_of(&self, call: &CallId) -> Option<String> {
        let state = self.state();
        let of = |block: &Block| match block {
            Block::ToolResult { tool_use_id, content, .. } if tool_use_id == call.as_str() => {
                Some(content.clone())
            }
            _ => None,
        };
        let in_thread =
            |messages: &History| messages.iter().rev().flat_map(|message| &message.content).find_map(of);
        let threads = std::iter::once(&state.main).chain(state.agents.values().map(|agent| &agent.thread));
        threads.map(|thread| &thread.messages).find_map(in_thread)
    }
}

/// Tells the model, before it is asked, which background commands have ended since it last knew. Only the session's own
/// conversation is told.
pub(crate) fn tell_of_ends(conversation: &Conversation<'_>, turn: &TurnId) {
    if conversation.agent.is_some() {
        return;
    }
    let session = conversation.session;
    let untold = session.state().background.untold();
    if untold.is_empty() {
        return;
    }
    let text = reminder(&described(&untold, |call| {
        let path = session.shell.tasks().outputs()?.path(call);
        path.as_path().exists().then(|| path.to_string())
    }));
    conversation.commit(Record::Remark { turn: turn.clone(), text });
    for task in untold {
        session.commit(Record::Background { entry: TaskEntry::Told { task: task.id } });
    }
}

fn described(ended: &[BackgroundTask], file: impl Fn(&CallId) -> Option<String>) -> String {
    let mut lines = vec!["Commands and sub-agents in the background that have ended since:".to_owned()];
    for task in ended.iter().take(MAX_TOLD) {
        // A command line is data: it must not be able to begin a line of its own.
        let title = task.title.replace(char::is_control, "\u{fffd}");
        let end = task.ended.as_ref().map(|(_, end)| end.to_string().replace(char::is_control, " "));
        let kept = file(&task.call).map(|file| format!("; its output is in `{file}`")).unwrap_or_default();
        lines.push(format!("- {} (`{title}`) {}{kept}", task.id, end.unwrap_or_default()));
    }
    if ended.len() > MAX_TOLD {
        lines.push(format!("- and {} more", ended.len() - MAX_TOLD));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> TaskId {
        TaskId::numbered(number)
    }

    fn started(number: usize, title: &str) -> TaskEntry {
        let call = CallId::from_external(format!("call_{number}"));
        TaskEntry::Started { task: id(number), call, title: title.to_owned(), at: Timestamp::UNIX_EPOCH }
    }

    fn ended(number: usize, end: TaskEnd) -> TaskEntry {
        TaskEntry::Ended { task: id(number), end, at: Timestamp::UNIX_EPOCH }
    }

    fn folded(entries: impl IntoIterator<Item = TaskEntry>) -> Background {
        let mut background = Background::default();
        entries.into_iter().for_each(|entry| background.apply(entry));
        background
    }

    #[test]
    fn an_end_is_told_until_the_model_knows_it_in_whichever_order_that_is_entered() {
        let end = || ended(1, TaskEnd::Killed);
        let told = || TaskEntry::Told { task: id(1) };
        assert_eq!(folded([started(1, "a")]).untold(), []);
        assert_eq!(folded([started(1, "a"), end()]).untold().len(), 1);
        assert_eq!(folded([started(1, "a"), end(), told()]).untold(), []);
        assert_eq!(folded([started(1, "a"), told(), end()]).untold(), []);
        let two = folded([started(1, "a"), started(2, "b"), end()]);
        assert_eq!(two.running().map(|task| task.id.clone()).collect::<Vec<_>>(), [id(2)]);
    }

    #[test]
    fn what_is_told_is_bounded_and_cannot_begin_a_line_of_its_own() {
        let many = (1..=MAX_TOLD + 2).flat_map(|number| {
            [started(number, "a\n- bash_9"), ended(number, TaskEnd::Failed { reason: "x\ny".to_owned() })]
        });
        let text = described(&folded(many).untold(), |call| {
            (call.as_str() == "call_1").then(|| "/state/call_1.txt".to_owned())
        });
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + MAX_TOLD + 1);
        assert_eq!(
            lines[1],
            "- bash_1 (`a\u{fffd}- bash_9`) failed: x y; its output is in `/state/call_1.txt`"
        );
        assert_eq!(lines[2], "- bash_2 (`a\u{fffd}- bash_9`) failed: x y");
        assert_eq!(lines[1 + MAX_TOLD], "- and 2 more");
    }

    #[test]
    fn entries_are_written_and_read_the_same_way() {
        for entry in [started(1, "a"), ended(1, TaskEnd::Exited { code: 1 }), TaskEntry::Told { task: id(1) }]
        {
            let record = Record::Background { entry };
            let json = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), record, "{json}");
        }
    }
}
