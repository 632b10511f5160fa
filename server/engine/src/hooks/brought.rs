//! Hooks that files of agents, skills and commands bring along in their heads, in the form that they have in settings.
//!
//! Rule: they run only where they are in force: those of an agent while a sub-agent of its type works, those of a skill or
//! command from its use on in the conversation that used it, and both in the sub-agents beneath. What a file of the project
//! brings along needs the user's approval, text and scripts, and that is looked at again before it runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::HookEvent;
use super::config::Hooks;
use crate::extension::head::{HeadFile, line_of_item};
use crate::ids::TurnId;
use crate::journal::Record;
use crate::permission::rules::Problem;
use crate::session::conversation::Conversation;
use crate::session::guard::InForce;
use crate::settings::Wish;
use crate::settings::declared::{Approval, Entry};
use crate::workspace::blocking;

/// What an approval of them is kept under, before the name of the event.
pub(crate) const HOOKS_KEY: &str = "hooks.";

/// The most bytes of what one file says of hooks.
const MAX_BYTES: usize = 64 << 10;

/// So many files bring hooks along in one conversation; those used first give way.
pub(crate) const MAX_FILES: usize = 50;

/// What a file says of hooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileHooks {
    /// The file.
    pub at: HeadFile,
    groups: Vec<Group>,
}

/// A group of handlers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    /// The event, as it is written.
    event: String,
    value: Value,
    /// The line it begins on, from zero.
    line: u32,
}

/// What a file brings along, and whether the end of a sub-agent is meant where it says `Stop`.
#[derive(Clone, Debug)]
pub(crate) struct Brought {
    pub(crate) hooks: FileHooks,
    pub(crate) is_of_agent: bool,
}

/// What a skill or command has brought along, and in which turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UsedHooks {
    /// The turn.
    pub turn: TurnId,
    /// What.
    pub hooks: FileHooks,
}

impl FileHooks {
    /// What the `hooks` of a head say.
    ///
    /// # Errors
    /// Why none of them can run, for people.
    pub(crate) fn read(written: &Value, head: &str, at: HeadFile) -> Result<Self, String> {
        let Value::Object(events) = written else {
            return Err(
                "`hooks` is no object with events, as in a settings file, so none of them runs".into()
            );
        };
        if written.to_string().len() > MAX_BYTES {
            return Err(format!("`hooks` has more than {MAX_BYTES} bytes, so none of them runs"));
        }
        let mut groups = Vec::new();
        for (event, written) in events {
            let written = match written {
                Value::Array(groups) => groups.as_slice(),
                other => std::slice::from_ref(other),
            };
            groups.extend(written.iter().enumerate().map(|(nth, value)| Group {
                event: event.clone(),
                value: value.clone(),
                line: line_of_item(head, "hooks", event, nth),
            }));
        }
        Ok(Self { at, groups })
    }

    /// What of it needs the user's approval. Blocks on the disk.
    pub(crate) fn wishes(&self) -> Vec<Wish> {
        self.groups.iter().filter_map(|group| self.at.wish(group.key(), &group.value)).collect()
    }

    /// What is wrong with it, and on which line.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let entries = self.groups.iter().map(|group| self.entry(group, false, Approval::NotNeeded));
        Hooks::of_entries(entries, false, &self.at.root).problems
    }

    /// It as hooks, as far as it is approved. Blocks on the disk.
    pub(super) fn settled(
        &self,
        is_of_agent: bool,
        is_approved: &dyn Fn(&Wish) -> bool,
    ) -> impl Iterator<Item = Entry> {
        self.groups.iter().map(move |group| {
            let approval = self.at.approval(group.key(), &group.value, is_approved);
            self.entry(group, is_of_agent, approval)
        })
    }

    fn entry(&self, group: &Group, is_of_agent: bool, approval: Approval) -> Entry {
        Entry {
            name: group.event_in(is_of_agent).to_owned(),
            value: group.value.clone(),
            source: self.at.source(group.line),
            root: self.at.root.clone(),
            approval,
            plugin: None,
        }
    }

    fn has(&self, event: HookEvent, is_of_agent: bool) -> bool {
        self.groups.iter().any(|group| group.event_in(is_of_agent) == event.name())
    }
}

impl Group {
    /// What an approval of it is kept under.
    fn key(&self) -> String {
        format!("{HOOKS_KEY}{}", self.event)
    }

    /// The event that is meant.
    fn event_in(&self, is_of_agent: bool) -> &str {
        match self.event.as_str() {
            "Stop" if is_of_agent => HookEvent::SubagentStop.name(),
            event => event,
        }
    }
}

impl Conversation<'_> {
    /// Whether any hook could run at an event. Looks at no file: what was looked at last counts.
    pub(crate) fn has_hooks(&self, event: HookEvent) -> bool {
        let hooks = &self.session.in_force().hooks;
        !hooks.has_none(event) || (!hooks.is_disabled && self.brings(event))
    }

    /// Lets the hooks that a skill or command brings along count in this conversation from now on.
    pub(crate) fn bring_hooks(&self, turn: &TurnId, hooks: Option<FileHooks>) {
        if let Some(hooks) = hooks {
            let used = Box::new(UsedHooks { turn: turn.clone(), hooks });
            self.commit(Record::HooksBrought { used });
        }
    }

    /// What files bring along that counts in this conversation. What stands above it reaches beneath, but for what is done
    /// when a sub-agent above it ends.
    pub(crate) fn brought(&self) -> Vec<Brought> {
        let all = |used: &[UsedHooks], is_of_agent| {
            let brought = |used: &UsedHooks| Brought { hooks: used.hooks.clone(), is_of_agent };
            used.iter().map(brought).collect::<Vec<_>>()
        };
        let state = self.session.state();
        let mut brought = all(&state.hooks, false);
        if let Some(assignment) = &self.assignment {
            brought.extend(assignment.hooks.iter().cloned());
        }
        if let Some(agent) = self.agent.as_ref().and_then(|agent| state.agents.get(agent)) {
            brought.extend(all(&agent.hooks, true));
        }
        brought
    }

    /// What of this reaches the sub-agents of this conversation, without what counts in the whole session anyway.
    pub(crate) fn hooks_for_agents(&self) -> Vec<Brought> {
        let of_session = self.session.state().hooks.len();
        let brought = self.brought().into_iter().skip(of_session);
        brought.map(|brought| Brought { is_of_agent: false, ..brought }).collect()
    }

    /// The hooks that files bring along, as far as they are approved now.
    pub(super) async fn brought_hooks(&self, in_force: &InForce) -> Hooks {
        let brought = self.brought();
        if brought.is_empty() {
            return Hooks::default();
        }
        let (source, cwd) = (self.session.policy_source(), self.session.workspace.cwd());
        let is_disabled = in_force.hooks.is_disabled;
        blocking(move || {
            let is_approved = |wish: &Wish| source.is_approved(wish);
            let entries = brought.iter().flat_map(|one| one.hooks.settled(one.is_of_agent, &is_approved));
            Hooks::of_entries(entries, is_disabled, &cwd)
        })
        .await
    }

    fn brings(&self, event: HookEvent) -> bool {
        let used =
            |used: &[UsedHooks], is_of_agent| used.iter().any(|used| used.hooks.has(event, is_of_agent));
        let state = self.session.state();
        let of_agent = self.agent.as_ref().and_then(|agent| state.agents.get(agent));
        let assigned = self.assignment.iter().flat_map(|assignment| &assignment.hooks);
        used(&state.hooks, false)
            || of_agent.is_some_and(|agent| used(&agent.hooks, true))
            || assigned.into_iter().any(|brought| brought.hooks.has(event, brought.is_of_agent))
    }
}

/// Takes in what a file brings along; what the same file brought along before counts no more.
pub(crate) fn take_in(known: &mut Vec<UsedHooks>, used: UsedHooks) {
    known.retain(|known| known.hooks.at.file != used.hooks.at.file);
    if known.len() >= MAX_FILES {
        known.remove(0);
    }
    known.push(used);
}

#[cfg(test)]
mod tests;
