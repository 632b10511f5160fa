//! The turns of a session, going back before one of them, and forward again.
//!
//! Rule: the files remember turns that the conversation has gone back before. The cut part is kept until the next
//! prompt or compaction.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::state::SessionState;
use crate::state::agents::SubAgent;
use crate::state::thread;
use crate::state::titles::SessionTitle;
use kode_base::ids::{AgentId, ResolutionId, TurnId};
use kode_base::todo::Todo;
use kode_config::hooks::declared::{TurnHooks, take_in};
use kode_record::event::Event;
use kode_record::goal::Goal;

/// The turns of a session and its last rewind.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rewinds {
    /// All turns, oldest first, including those that the conversation went back before.
    turns: Vec<TurnId>,
    /// The part that the last rewind cut off.
    cut: Option<RewindCut>,
    /// The files that are still to be restored.
    restoring: Option<PendingRestore>,
}

/// Files that are to be restored together with the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PendingRestore {
    /// The user's action.
    pub(crate) resolution: ResolutionId,
    /// The turns whose changes are undone.
    pub(crate) turns: Vec<TurnId>,
}

/// The part of a session that a rewind cut off.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RewindCut {
    resolution: ResolutionId,
    main: thread::ThreadCut,
    agents: BTreeMap<AgentId, thread::ThreadCut>,
    #[serde(default)]
    hooks: Vec<TurnHooks>,
    todos: Vec<Todo>,
    /// The goal, where it was set in the part that was cut off.
    #[serde(default)]
    goal: Option<Box<Goal>>,
    title: SessionTitle,
}

impl Rewinds {
    /// Notes a turn that begins.
    pub(super) fn begin_turn(&mut self, turn: &TurnId) {
        self.turns.push(turn.clone());
        self.cut = None;
    }

    /// Drops the part that was cut off: it belongs to a history that is replaced.
    pub(super) fn forget_cut(&mut self) {
        self.cut = None;
    }

    /// Notes that files are to be restored to before a turn, with those of an earlier action that is not through.
    fn restore_since(&mut self, turn: &TurnId, resolution: ResolutionId) {
        let unfinished = self.restoring.take().map(|restoring| restoring.turns).unwrap_or_default();
        let since = self.turns_since(turn);
        let turns = self.turns.iter().filter(|known| since.contains(known) || unfinished.contains(known));
        let turns = turns.cloned().collect();
        self.restoring = Some(PendingRestore { resolution, turns });
    }

    /// Notes that files were restored.
    pub(super) fn restored(&mut self, resolution: &ResolutionId) {
        self.restoring.take_if(|restoring| restoring.resolution == *resolution);
    }

    /// The files that are still to be restored.
    pub(crate) fn restoring(&self) -> Option<&PendingRestore> {
        self.restoring.as_ref()
    }

    /// The newest turn, also where the conversation went back before it.
    #[must_use]
    pub fn newest_turn(&self) -> Option<&TurnId> {
        self.turns.last()
    }

    /// The turns from this one on, oldest first, including those that the conversation went back before; empty for an
    /// unknown turn.
    #[must_use]
    pub fn turns_since(&self, turn: &TurnId) -> Vec<TurnId> {
        self.turns.iter().skip_while(|known| *known != turn).cloned().collect()
    }

    /// The rewind that can be reverted.
    #[must_use]
    pub fn revertible(&self) -> Option<&ResolutionId> {
        self.cut.as_ref().map(|cut| &cut.resolution)
    }
}

impl SessionState {
    /// The turns that the conversation went back before: the model knows nothing of them.
    #[must_use]
    pub fn forgotten_turns(&self) -> BTreeSet<TurnId> {
        let mut forgotten: BTreeSet<TurnId> = self.rewinds.turns.iter().cloned().collect();
        for turn in self.main.turns() {
            forgotten.remove(turn);
        }
        forgotten
    }

    /// Whether everything can be read that going back before this turn needs.
    #[must_use]
    pub(crate) fn can_rewind(&self, turn: &TurnId) -> bool {
        let gone = self.gone_since(turn);
        let threads = self.agents.values().map(|agent| &agent.thread);
        std::iter::once(&self.main).chain(threads).all(|thread| thread.can_rewind(&gone))
    }

    /// Goes back before a turn; with `files` their restoring begins.
    pub(super) fn rewind(&mut self, turn: &TurnId, resolution: ResolutionId, files: bool) -> Vec<Event> {
        if files {
            self.rewinds.restore_since(turn, resolution.clone());
        }
        let Some(first) = self.main.prompt(turn).map(|prompt| prompt.item.clone()) else { return Vec::new() };
        let gone = self.gone_since(turn);
        let Some(main) = self.main.rewind(&gone) else { return Vec::new() };
        let cut = |(id, agent): (&AgentId, &mut SubAgent)| Some((id.clone(), agent.thread.rewind(&gone)?));
        let agents = self.agents.iter_mut().filter_map(cut).collect();
        let hooks = self.hooks.extract_if(.., |used| gone.contains(&used.turn)).collect();
        let (todos, todos_changed) = self.todos.rewind(turn);
        let goal = self.goal.take_if(|goal| gone.contains(&goal.turn));
        let goal_changed = goal.is_some().then_some(Event::GoalChanged { goal: None });
        let title = self.title.clone();
        self.rewinds.cut = Some(RewindCut { resolution, main, agents, hooks, todos, goal, title });
        let first_said =
            self.main.prompts().find(|prompt| prompt.is_said).map(|prompt| prompt.title.as_str());
        let renamed = self.title.rename_after(first_said, self.main.items.count() > 0);
        let changed = todos_changed.into_iter().chain(goal_changed).chain(renamed);
        std::iter::once(Event::Rewound { item: first }).chain(changed).collect()
    }

    /// Goes forward again to where the conversation was before a rewind.
    pub(super) fn unwind(&mut self, resolution: &ResolutionId) -> Vec<Event> {
        self.rewinds.restored(resolution);
        let cut = self.rewinds.cut.take_if(|cut| cut.resolution == *resolution);
        let Some(cut) = cut else { return Vec::new() };
        let known = self.main.items.count();
        self.main.unwind(cut.main);
        let todos = self.todos.restore(cut.todos);
        cut.hooks.into_iter().for_each(|used| take_in(&mut self.hooks, used));
        for (agent, cut) in cut.agents {
            self.agent_mut(agent).thread.unwind(cut);
        }
        let goal = cut.goal.filter(|_| self.goal.is_none()).map(|goal| {
            self.goal = Some(goal);
            Event::GoalChanged { goal: self.goal.clone() }
        });
        let title = self.title.restore(cut.title);
        let items = self.main.items.part(known..self.main.items.count()).read_what_can_be();
        let back = items.into_iter().map(|item| Event::ItemAdded { item });
        back.chain(todos).chain(goal).chain(title).collect()
    }

    fn gone_since(&self, turn: &TurnId) -> BTreeSet<TurnId> {
        self.rewinds.turns_since(turn).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_restore_that_is_not_through_are_restored_with_those_of_the_next() {
        let mut rewinds = Rewinds::default();
        let [first, second, third] = std::array::from_fn(|_| TurnId::generate());
        let [one, other] = std::array::from_fn(|_| ResolutionId::generate());
        rewinds.begin_turn(&first);
        rewinds.begin_turn(&second);
        rewinds.restore_since(&second, one.clone());
        rewinds.begin_turn(&third);
        rewinds.restore_since(&third, other.clone());
        rewinds.restored(&one);
        let turns = vec![second, third];
        assert_eq!(rewinds.restoring(), Some(&PendingRestore { resolution: other.clone(), turns }));
        rewinds.restored(&other);
        assert_eq!(rewinds.restoring(), None);
    }
}
