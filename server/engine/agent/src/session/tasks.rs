//! The background commands of a session: their records, their output, moving others to them, and ending them.
//!
//! Rule: the journal contains of each its beginning, its end, and that the model knows of its end. A command without an end
//! in the journal of a resumed session has ended with the server.

use std::io;
use std::sync::{Arc, Weak};

use jiff::Timestamp;

use crate::core::Core;
use crate::state::team::TeamError;
use crate::turn::team::send_from_user;
use kode_base::blocking;
use kode_base::command_shell::CommandShell;
use kode_base::ids::{CallId, TaskId};
use kode_model::{Block, History};
use kode_process::shell::{MoveError, OutputPage, Shell, StartError, TaskEnd, TaskReport, page_of};
use kode_record::background::{BackgroundTask, TaskEntry};
use kode_record::record::Record;

/// The owner of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputOwner {
    /// A call.
    Call(CallId),
    /// A background command.
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

/// Why an output cannot be read.
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

/// Why a command was not moved to the background.
#[derive(Debug, thiserror::Error)]
pub enum MoveCallError {
    /// The session has no call of that id.
    #[error("there is no call `{0}` in this session")]
    Unknown(CallId),
    /// It is over.
    #[error("the call `{0}` has ended meanwhile")]
    Ended(CallId),
    /// Its command runs there.
    #[error("the command of this call runs in the background already, as {0}")]
    InBackground(TaskId),
    /// It is a call of another tool.
    #[error("only commands of Bash can be moved to the background; this is a call of {0}")]
    OtherTool(String),
    /// Its command was not started yet, or is just ending.
    #[error("the command of the call `{0}` does not run now")]
    NotRunning(CallId),
    /// There is no place for it.
    #[error("the command runs on where it is: {0}")]
    NoPlace(StartError),
}

/// The background commands of a session.
pub struct BackgroundTasks {
    core: Arc<Core>,
    shell: Arc<Shell>,
}

impl BackgroundTasks {
    pub(super) fn new(core: &Arc<Core>, shell: &Arc<Shell>) -> Arc<Self> {
        Arc::new(Self { core: Arc::clone(core), shell: Arc::clone(shell) })
    }

    /// The background commands, oldest first, also those that have ended.
    #[must_use]
    pub fn list(&self) -> Vec<BackgroundTask> {
        self.core.state().background.tasks().cloned().collect()
    }

    /// A part of the output of a call or a background command: of a command the whole output where it is stored, otherwise
    /// the result as the model got it. `limit` is in bytes and bounded.
    ///
    /// # Errors
    /// [`OutputError`].
    pub async fn read_output(
        &self,
        of: OutputOwner,
        offset: u64,
        limit: usize,
    ) -> Result<SessionOutput, OutputError> {
        let (call, is_running) = {
            let state = self.core.state();
            let task = match &of {
                OutputOwner::Task(id) => {
                    Some(state.background.find(id).ok_or_else(|| OutputError::UnknownTask(id.clone()))?)
                }
                OutputOwner::Call(call) => state.background.tasks().find(|task| task.call == *call),
            };
            let call = match (&of, task) {
                (_, Some(task)) => task.call.clone(),
                (OutputOwner::Call(call), None) => call.clone(),
                (OutputOwner::Task(id), None) => return Err(OutputError::UnknownTask(id.clone())),
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

    /// Whether any of them runs.
    pub(super) fn are_running(&self) -> bool {
        self.core.state().background.running().next().is_some()
    }

    /// Begins to end a background command, with everything it has started. False when it had ended before.
    ///
    /// # Errors
    /// [`OutputError::UnknownTask`].
    pub fn stop(&self, id: &TaskId) -> Result<bool, OutputError> {
        if self.core.state().background.find(id).is_none() {
            return Err(OutputError::UnknownTask(id.clone()));
        }
        Ok(self.shell.tasks().find(id.as_str()).is_some_and(|task| task.begin_kill()))
    }

    /// Moves the command that a call runs to the background, where it runs on; the call ends with a result that says so.
    ///
    /// # Errors
    /// [`MoveCallError`]; the command runs on as before then, if it does.
    pub fn move_to_background(&self, call: &CallId) -> Result<TaskId, MoveCallError> {
        match self.shell.tasks().move_to_background(call) {
            Ok(task) => Ok(task.id().clone()),
            Err(MoveError::NoPlace(error)) => Err(MoveCallError::NoPlace(error)),
            Err(MoveError::NotRunning(call)) => Err(self.not_movable(call)),
        }
    }

    /// Why the command of a call cannot be moved.
    fn not_movable(&self, call: CallId) -> MoveCallError {
        if let Some(task) = self.core.state().background.tasks().find(|task| task.call == call) {
            return MoveCallError::InBackground(task.id.clone());
        }
        if self.result_of(&call).is_some() {
            return MoveCallError::Ended(call);
        }
        match self.tool_of(&call) {
            None => MoveCallError::Unknown(call),
            Some(tool) if CommandShell::of_tool(&tool).is_some() => MoveCallError::NotRunning(call),
            Some(tool) => MoveCallError::OtherTool(tool),
        }
    }

    /// Sends a message of the user to a sub-agent in the background, or to all of them. Returns the names of its
    /// recipients.
    ///
    /// # Errors
    /// [`TeamError`]; no member gets it then.
    pub fn send(&self, to: &str, text: &str) -> Result<Vec<String>, TeamError> {
        send_from_user(&self.core, to, text)
    }

    /// Records the beginnings and ends of background commands from now on.
    pub(super) fn follow(self: &Arc<Self>) {
        self.shell.tasks().count_from(self.core.state().background.tasks().count());
        let tasks: Weak<Self> = Arc::downgrade(self);
        self.shell.tasks().observe(move |report| {
            if let Some(tasks) = tasks.upgrade() {
                tasks.record(report);
            }
        });
    }

    /// Records the end of commands that ran when an earlier server ended.
    pub(super) fn end_lost(&self) {
        let lost: Vec<_> = self.core.state().background.running().map(|task| task.id.clone()).collect();
        for task in lost {
            self.record(TaskReport::Ended { task, end: TaskEnd::WithSession });
        }
    }

    fn record(&self, report: TaskReport) {
        let at = Timestamp::now();
        let entry = match report {
            TaskReport::Started { task, call, title } => TaskEntry::Started { task, call, title, at },
            TaskReport::Ended { task, end } => TaskEntry::Ended { task, end, at },
            TaskReport::Seen { task } => TaskEntry::Told { task },
        };
        self.core.commit(Record::Background { entry });
    }

    /// The result of a call as the model got it.
    fn result_of(&self, call: &CallId) -> Option<String> {
        self.find_block(|block| match block {
            Block::ToolResult { tool_use_id, content, .. } if tool_use_id == call.as_str() => {
                Some(content.clone())
            }
            _ => None,
        })
    }

    /// The name of the tool that a call is of.
    fn tool_of(&self, call: &CallId) -> Option<String> {
        self.find_block(|block| match block {
            Block::ToolUse { id, name, .. } if id == call.as_str() => Some(name.clone()),
            _ => None,
        })
    }

    /// The newest found one of the blocks of all conversations.
    fn find_block(&self, of: impl Fn(&Block) -> Option<String>) -> Option<String> {
        let state = self.core.state();
        let in_thread =
            |messages: &History| messages.iter().rev().flat_map(|message| &message.content).find_map(&of);
        let threads = std::iter::once(&state.main).chain(state.agents.values().map(|agent| &agent.thread));
        threads.map(|thread| &thread.messages).find_map(in_thread)
    }
}
