//! The shared list of tasks of a team.
//!
//! Rule: a task has at most one owner, a task with uncompleted blockers has none, and blockers form no cycle. A change that
//! would break this is refused before it is recorded.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use kode_base::team::{MAIN, MAX_TASK_TITLE, MAX_TASKS};
use kode_record::team::{TeamEntry, TeamTask, TeamTaskState};
use kode_tool::team::TaskAction;

/// The most completed tasks that the model is shown; older ones are counted.
const MAX_COMPLETED_SHOWN: usize = 20;

/// The shared list.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SharedTasks {
    tasks: Vec<TeamTask>,
    /// The number of tasks that were ever added.
    added: u32,
}

/// Why a task is not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// The list is full.
    #[error("the shared list has {MAX_TASKS} tasks that are not completed, which is the most")]
    Full,
    /// The title is empty or too long.
    #[error("the title of a task has 1 to {MAX_TASK_TITLE} bytes; this one has {0}")]
    Title(usize),
    /// No task has that number.
    #[error("there is no task {0} in the shared list")]
    Unknown(u32),
    /// Another member has it.
    #[error("task {0} is claimed by `{1}`")]
    Claimed(u32, String),
    /// It is completed.
    #[error("task {0} was completed by `{1}`")]
    Completed(u32, String),
    /// Others have to be completed before.
    #[error("task {0} is blocked by {1}")]
    Blocked(u32, String),
    /// Its owner works on it already.
    #[error("task {0} is claimed by `{1}`, so nothing can be put before it")]
    InWork(u32, String),
    /// The caller does not have it.
    #[error("task {0} is not claimed by you")]
    NotYours(u32),
    /// It would have to be completed before itself.
    #[error("the tasks would wait for one another: {0}")]
    Cycle(String),
}

impl TaskError {
    /// The way out, for the model.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::Full => "Complete tasks first, or join several into one.",
            Self::Title(_) => "Name the work in one line.",
            Self::Unknown(_) => "`list` shows the tasks with their numbers.",
            Self::Claimed(..) | Self::Completed(..) => "Take another task; `list` shows those that are free.",
            Self::Blocked(..) => "Take a task that is not blocked, or wait for a message that it is free.",
            Self::InWork(..) => "Release it first.",
            Self::NotYours(_) => "Claim it first. Only the main conversation changes tasks of others.",
            Self::Cycle(_) => "Leave one of these dependencies out.",
        }
    }
}

impl SharedTasks {
    pub(super) fn apply(&mut self, entry: TeamEntry) {
        match entry {
            TeamEntry::TaskAdded { task } => {
                self.added = self.added.max(task.number);
                if self.tasks.len() >= MAX_TASKS {
                    self.forget_completed();
                }
                self.tasks.push(task);
            }
            TeamEntry::TaskClaimed { task, by } => self.set(task, TeamTaskState::Claimed, Some(by)),
            TeamEntry::TaskCompleted { task, by } => self.set(task, TeamTaskState::Completed, Some(by)),
            TeamEntry::TaskReleased { task } => self.set(task, TeamTaskState::Open, None),
            TeamEntry::TaskBlocked { task, blocked_by } => {
                if let Some(task) = self.tasks.iter_mut().find(|known| known.number == task) {
                    task.blocked_by = blocked_by;
                }
            }
            TeamEntry::Joined { .. }
            | TeamEntry::Withdrawn { .. }
            | TeamEntry::Left { .. }
            | TeamEntry::Sent { .. }
            | TeamEntry::Read { .. }
            | TeamEntry::Waiting { .. }
            | TeamEntry::Continued { .. } => {}
        }
    }

    fn set(&mut self, number: u32, state: TeamTaskState, owner: Option<String>) {
        if let Some(task) = self.tasks.iter_mut().find(|task| task.number == number) {
            (task.state, task.owner) = (state, owner);
        }
    }

    /// Makes room: the oldest completed task goes.
    fn forget_completed(&mut self) {
        if let Some(oldest) = self.tasks.iter().position(|task| task.state == TeamTaskState::Completed) {
            self.tasks.remove(oldest);
        }
    }

    /// Gives the tasks of a member that has ended back.
    pub(super) fn release_all_of(&mut self, name: &str) {
        for task in &mut self.tasks {
            if task.state == TeamTaskState::Claimed && task.owner.as_deref() == Some(name) {
                (task.state, task.owner) = (TeamTaskState::Open, None);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The tasks, each with those of its blockers that are not completed.
    pub(super) fn view(&self) -> Vec<TeamTask> {
        let shown = |task: &TeamTask| TeamTask { blocked_by: self.blockers(task), ..task.clone() };
        self.tasks.iter().map(shown).collect()
    }

    /// The entry of an action, after which the list is as wanted; `None` for an action that changes nothing.
    pub(crate) fn change(&self, caller: &str, action: &TaskAction) -> Result<Option<TeamEntry>, TaskError> {
        let by = || caller.to_owned();
        Ok(Some(match action {
            TaskAction::List => return Ok(None),
            TaskAction::Add { title, blocked_by } => self.adding(title, blocked_by)?,
            TaskAction::Claim(number) => {
                let task = self.changeable(*number)?;
                match &task.owner {
                    Some(owner) if owner == caller => return Ok(None),
                    Some(owner) => return Err(TaskError::Claimed(*number, owner.clone())),
                    None => {}
                }
                let blockers = self.blockers(task);
                if !blockers.is_empty() {
                    return Err(TaskError::Blocked(*number, tasks_in_words(&blockers)));
                }
                TeamEntry::TaskClaimed { task: *number, by: by() }
            }
            TaskAction::Complete(number) => {
                let task = self.owned(*number, caller)?;
                let blockers = self.blockers(task);
                if !blockers.is_empty() {
                    return Err(TaskError::Blocked(*number, tasks_in_words(&blockers)));
                }
                TeamEntry::TaskCompleted { task: *number, by: by() }
            }
            TaskAction::Release(number) => {
                let task = self.owned(*number, caller)?;
                if task.owner.is_none() {
                    return Ok(None);
                }
                TeamEntry::TaskReleased { task: *number }
            }
            TaskAction::Block { task, blocked_by } => self.blocking(*task, blocked_by)?,
        }))
    }

    fn adding(&self, title: &str, blocked_by: &[u32]) -> Result<TeamEntry, TaskError> {
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        if title.is_empty() || title.len() > MAX_TASK_TITLE {
            return Err(TaskError::Title(title.len()));
        }
        let unfinished = self.tasks.iter().filter(|task| task.state != TeamTaskState::Completed).count();
        if unfinished >= MAX_TASKS {
            return Err(TaskError::Full);
        }
        let (number, state, owner) = (self.added + 1, TeamTaskState::Open, None);
        // A new task blocks no other yet, so it closes no cycle.
        let blocked_by = self.known(blocked_by)?;
        Ok(TeamEntry::TaskAdded { task: TeamTask { number, title, state, owner, blocked_by } })
    }

    fn blocking(&self, number: u32, blocked_by: &[u32]) -> Result<TeamEntry, TaskError> {
        let task = self.changeable(number)?;
        if let Some(owner) = &task.owner {
            return Err(TaskError::InWork(number, owner.clone()));
        }
        let blocked_by = self.known(blocked_by)?;
        if let Some(path) = blocked_by.iter().find_map(|blocker| self.path(*blocker, number)) {
            let path: Vec<_> = std::iter::once(number).chain(path).map(|task| task.to_string()).collect();
            return Err(TaskError::Cycle(path.join(" after ")));
        }
        Ok(TeamEntry::TaskBlocked { task: number, blocked_by })
    }

    /// The numbers in their order and once, all of them of tasks.
    fn known(&self, numbers: &[u32]) -> Result<Vec<u32>, TaskError> {
        let numbers: BTreeSet<u32> = numbers.iter().copied().collect();
        for number in &numbers {
            // A completed task may have made room for others.
            let was_there = (1..=self.added).contains(number);
            if !was_there {
                return Err(TaskError::Unknown(*number));
            }
        }
        Ok(numbers.into_iter().collect())
    }

    /// The tasks from one to another, by their blockers.
    fn path(&self, from: u32, to: u32) -> Option<Vec<u32>> {
        let mut seen = BTreeSet::new();
        let mut open = vec![vec![from]];
        while let Some(path) = open.pop() {
            let last = *path.last()?;
            if last == to {
                return Some(path);
            }
            if !seen.insert(last) {
                continue;
            }
            let blockers = self.find(last).map(|task| task.blocked_by.as_slice()).unwrap_or_default();
            open.extend(blockers.iter().map(|next| path.iter().copied().chain([*next]).collect()));
        }
        None
    }

    /// The uncompleted tasks before a task.
    fn blockers(&self, task: &TeamTask) -> Vec<u32> {
        let is_open = |number: &u32| {
            self.find(*number).is_some_and(|blocker| blocker.state != TeamTaskState::Completed)
        };
        task.blocked_by.iter().copied().filter(is_open).collect()
    }

    fn find(&self, number: u32) -> Option<&TeamTask> {
        self.tasks.iter().find(|task| task.number == number)
    }

    /// A task that is not completed.
    fn changeable(&self, number: u32) -> Result<&TeamTask, TaskError> {
        let task = self.find(number).ok_or(TaskError::Unknown(number))?;
        match (task.state, &task.owner) {
            (TeamTaskState::Completed, owner) => {
                Err(TaskError::Completed(number, owner.clone().unwrap_or_default()))
            }
            (TeamTaskState::Open | TeamTaskState::Claimed, _) => Ok(task),
        }
    }

    /// A task that the caller may complete and release.
    fn owned(&self, number: u32, caller: &str) -> Result<&TeamTask, TaskError> {
        let task = self.changeable(number)?;
        match &task.owner {
            _ if caller == MAIN => Ok(task),
            Some(owner) if owner == caller => Ok(task),
            Some(owner) => Err(TaskError::Claimed(number, owner.clone())),
            None => Err(TaskError::NotYours(number)),
        }
    }

    /// The list for the model.
    pub(crate) fn text(&self) -> String {
        if self.tasks.is_empty() {
            return "The shared list is empty.".to_owned();
        }
        let completed = self.tasks.iter().filter(|task| task.state == TeamTaskState::Completed).count();
        let mut left_out = completed.saturating_sub(MAX_COMPLETED_SHOWN);
        let mut lines = Vec::new();
        if left_out > 0 {
            lines.push(format!("({left_out} older completed tasks)"));
        }
        for task in &self.tasks {
            if task.state == TeamTaskState::Completed && left_out > 0 {
                left_out -= 1;
                continue;
            }
            let owner = task.owner.as_deref().unwrap_or_default();
            let blockers = self.blockers(task);
            let state = match task.state {
                TeamTaskState::Completed => format!("completed by `{owner}`"),
                TeamTaskState::Claimed => format!("claimed by `{owner}`"),
                TeamTaskState::Open if blockers.is_empty() => "free".to_owned(),
                TeamTaskState::Open => format!("blocked by {}", tasks_in_words(&blockers)),
            };
            // A title is data: it must not be able to begin a line of its own.
            lines.push(format!(
                "{}. [{state}] {}",
                task.number,
                task.title.replace(char::is_control, "\u{fffd}")
            ));
        }
        lines.join("\n")
    }
}

fn tasks_in_words(numbers: &[u32]) -> String {
    let numbers: Vec<_> = numbers.iter().map(u32::to_string).collect();
    match numbers.len() {
        1 => format!("task {}", numbers.concat()),
        _ => format!("tasks {}", numbers.join(", ")),
    }
}
