//! The background commands of a session as their records add up, and the team of the sub-agents among them.
//!
//! Rule: the journal knows of each command that it started, that it ended, and that the model knows of its end.

use serde::{Deserialize, Serialize};

use crate::state::events;
use crate::state::team::Team;
use kode_base::ids::TaskId;
use kode_record::background::{BackgroundTask, TaskEntry};
use kode_record::event::Event;

/// The background commands of a session, and the team of the sub-agents in the background.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Background {
    known: Vec<KnownTask>,
    /// The main conversation and the sub-agents in the background, with what they share.
    #[serde(default)]
    pub(crate) team: Team,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KnownTask {
    task: BackgroundTask,
    is_reported: bool,
}

impl Background {
    /// Folds one entry into it.
    pub(super) fn apply(&mut self, entry: TaskEntry) -> Option<Event> {
        let event = events::task_event(&entry);
        self.enter(entry);
        let (id, event) = event?;
        Some(event(Box::new(self.find(&id)?.clone())))
    }

    fn enter(&mut self, entry: TaskEntry) {
        match entry {
            TaskEntry::Started { task: id, call, title, at } => {
                let task = BackgroundTask { id, call, title, started: at, ended: None };
                self.known.push(KnownTask { task, is_reported: false });
            }
            TaskEntry::Ended { task, end, at } => {
                if let Some(known) = self.find_mut(&task) {
                    known.task.ended = Some((at, end));
                }
            }
            TaskEntry::Told { task } => {
                if let Some(known) = self.find_mut(&task) {
                    known.is_reported = true;
                }
            }
        }
    }

    /// The commands, oldest first.
    pub fn tasks(&self) -> impl DoubleEndedIterator<Item = &BackgroundTask> {
        self.known.iter().map(|known| &known.task)
    }

    /// The running commands, oldest first.
    pub fn running(&self) -> impl Iterator<Item = &BackgroundTask> {
        self.tasks().filter(|task| task.ended.is_none())
    }

    /// The command of an id.
    #[must_use]
    pub fn find(&self, id: &TaskId) -> Option<&BackgroundTask> {
        self.tasks().find(|task| task.id == *id)
    }

    fn find_mut(&mut self, id: &TaskId) -> Option<&mut KnownTask> {
        self.known.iter_mut().find(|known| known.task.id == *id)
    }

    /// The ended commands whose end the model does not know.
    pub(crate) fn unreported(&self) -> Vec<BackgroundTask> {
        let unreported = self.known.iter().filter(|known| known.task.ended.is_some() && !known.is_reported);
        unreported.map(|known| known.task.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use kode_base::ids::CallId;
    use kode_process::shell::TaskEnd;
    use kode_record::record::Record;

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
        entries.into_iter().for_each(|entry| drop(background.apply(entry)));
        background
    }

    #[test]
    fn an_end_is_reported_until_the_model_knows_it_in_whichever_order_that_is_entered() {
        let end = || ended(1, TaskEnd::Killed);
        let reported = || TaskEntry::Told { task: id(1) };
        assert_eq!(folded([started(1, "a")]).unreported(), []);
        assert_eq!(folded([started(1, "a"), end()]).unreported().len(), 1);
        assert_eq!(folded([started(1, "a"), end(), reported()]).unreported(), []);
        assert_eq!(folded([started(1, "a"), reported(), end()]).unreported(), []);
        let two = folded([started(1, "a"), started(2, "b"), end()]);
        assert_eq!(two.running().map(|task| task.id.clone()).collect::<Vec<_>>(), [id(2)]);
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
