//! Hooks that the front matter of agents, skills and commands declares, in the form that settings use.
//!
//! Rule: parsing only. A hook that a project file declares needs an approval of its text and scripts before it runs.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::extension::head::{FrontMatterFile, line_of_item};
use crate::hooks::config::Hooks;
use crate::hooks::event::HookEvent;
use crate::settings::TrustRequest;
use crate::settings::declared::{Approval, Declaration};
use kode_base::ids::TurnId;
use kode_permission::rules::SettingsProblem;

/// The key of an approval of them, before the name of the event.
pub const HOOKS_KEY: &str = "hooks.";

/// The most bytes of what one file says of hooks.
pub(crate) const MAX_BYTES: usize = 64 << 10;

/// The hooks of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileHooks {
    /// The file.
    pub at: FrontMatterFile,
    pub(crate) groups: Vec<HookGroup>,
}

/// A group of handlers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HookGroup {
    /// The event, as it is written.
    pub(crate) event: String,
    pub(crate) value: Value,
    /// The line it begins on, from zero.
    pub(crate) line: u32,
}

/// The hooks of a skill or command, and their turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnHooks {
    /// The turn.
    pub turn: TurnId,
    /// The subject.
    pub hooks: FileHooks,
}

impl FileHooks {
    /// The `hooks` of a front matter.
    ///
    /// # Errors
    /// Why none of them can run, for people.
    pub(crate) fn read(written: &Value, head: &str, at: FrontMatterFile) -> Result<Self, String> {
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
            groups.extend(written.iter().enumerate().map(|(nth, value)| HookGroup {
                event: event.clone(),
                value: value.clone(),
                line: line_of_item(head, "hooks", event, nth),
            }));
        }
        Ok(Self { at, groups })
    }

    /// The part of it that needs the user's approval. Blocks on the disk.
    pub(crate) fn trust_requests(&self) -> Vec<TrustRequest> {
        self.groups.iter().filter_map(|group| self.at.trust_request(group.key(), &group.value)).collect()
    }

    /// Its problems, and on which line.
    pub(crate) fn problems(&self) -> Vec<SettingsProblem> {
        let entries = self.groups.iter().map(|group| self.entry(group, false, Approval::NotNeeded));
        Hooks::of_entries(entries, false, &self.at.root).problems
    }

    /// It as hooks, as far as it is approved. Blocks on the disk.
    pub fn settled(
        &self,
        is_of_agent: bool,
        is_approved: &dyn Fn(&TrustRequest) -> bool,
    ) -> impl Iterator<Item = Declaration> {
        self.groups.iter().map(move |group| {
            let approval = self.at.approval(group.key(), &group.value, is_approved);
            self.entry(group, is_of_agent, approval)
        })
    }

    fn entry(&self, group: &HookGroup, is_of_agent: bool, approval: Approval) -> Declaration {
        Declaration {
            name: group.event_in(is_of_agent).to_owned(),
            value: group.value.clone(),
            source: self.at.source(group.line),
            root: self.at.root.clone(),
            approval,
            plugin: None,
        }
    }

    /// Whether any of them is for this event; `is_of_agent` reads `Stop` as the end of the sub-agent.
    pub fn has(&self, event: HookEvent, is_of_agent: bool) -> bool {
        self.groups.iter().any(|group| group.event_in(is_of_agent) == event.name())
    }
}

impl HookGroup {
    /// The key of an approval of it.
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

/// Maximum number of files that declare hooks in one conversation; those used first give way.
pub(crate) const MAX_FILES: usize = 50;

/// Takes in what a file declares; what the same file declared before counts no more.
pub fn take_in(known: &mut Vec<TurnHooks>, used: TurnHooks) {
    known.retain(|known| known.hooks.at.file != used.hooks.at.file);
    if known.len() >= MAX_FILES {
        known.remove(0);
    }
    known.push(used);
}
