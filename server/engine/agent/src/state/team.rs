//! The team of a session as its records add up: members, mailboxes, waits and the shared list of tasks.
//!
//! Rule: the fold only adds up. Whether something may happen is decided before, by the functions that return an entry or say
//! why not, under the lock of the session: of two members that want one thing, one gets it.

mod tasks;
#[cfg(test)]
mod tests;
mod waits;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use kode_base::ids::{AgentId, ItemId};
use kode_base::team::{EVERYONE, MAIN, MAX_MESSAGE, MAX_UNREAD, USER, derived_name};
use kode_record::event::{CallState, Event};
use kode_record::record::Record;
use kode_record::team::{MemberState, TeamEntry, TeamMember, TeamMessage, TeamView};
use tasks::SharedTasks;
pub(crate) use tasks::TaskError;

/// The most sub-agents that have ended and are still listed.
const MAX_ENDED: usize = 20;

/// The team of a session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Team {
    /// The sub-agents, in the order in which they began.
    agents: Vec<KnownMember>,
    /// The mailbox and the wait of the main conversation.
    main: Presence,
    tasks: SharedTasks,
    /// The number of messages so far.
    messages: u64,
    /// Whether a sub-agent has ever joined.
    has_begun: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct KnownMember {
    name: String,
    agent: AgentId,
    kind: String,
    description: String,
    is_live: bool,
    presence: Presence,
}

/// The mailbox and the waits of a member.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Presence {
    unread: Vec<TeamMessage>,
    /// The wait for a message; the sender is `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    wait: Option<Wait>,
    /// The calls that wait for the user, and whether each for a permission.
    asks: BTreeMap<ItemId, bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Wait {
    on: Option<String>,
}

/// Why something in the team does not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TeamError {
    /// The caller is neither the main conversation nor a sub-agent in the background.
    #[error("this sub-agent is in no team: only sub-agents in the background are")]
    NoMember,
    /// There was never a member of that name.
    #[error("there is no `{name}` in the team; {present}")]
    Unknown {
        /// The name.
        name: String,
        /// The members that are there, in words.
        present: String,
    },
    /// The member has ended.
    #[error("`{name}` has ended and reads nothing any more; {present}")]
    Ended {
        /// The name.
        name: String,
        /// The members that are there, in words.
        present: String,
    },
    /// A member would send to itself, or wait for itself.
    #[error("`{0}` is the caller itself")]
    Oneself(String),
    /// No other member is there.
    #[error("no other member of the team is there")]
    Alone,
    /// The user writes to the main conversation.
    #[error("`main` is the conversation itself")]
    ByPrompt,
    /// The text is empty.
    #[error("the message is empty")]
    Empty,
    /// The text is too long.
    #[error("the message has {0} bytes; it may have at most {MAX_MESSAGE}")]
    TooLong(usize),
    /// A mailbox is full.
    #[error(
        "the mailbox of `{0}` is full: it has {MAX_UNREAD} messages that `{0}` has not read. Nothing was sent"
    )]
    Full(String),
    /// The name of a new sub-agent is that of another.
    #[error("the name `{name}` is taken by another sub-agent of this session; {present}")]
    Taken {
        /// The name.
        name: String,
        /// The members that are there, in words.
        present: String,
    },
    /// All members in a cycle would wait for one another.
    #[error("no message would ever come: {0}")]
    Cycle(String),
    /// Something about a task.
    #[error(transparent)]
    Task(#[from] TaskError),
}

impl TeamError {
    /// The way out, for the model or the user.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoMember => "Give your answer as the result of your work.",
            Self::Unknown { .. } | Self::Ended { .. } => "Use one of these names, or continue without.",
            Self::Oneself(_) | Self::Alone => "Continue with your own work.",
            Self::ByPrompt => "Send a prompt to it.",
            Self::Empty => "Say something.",
            Self::TooLong(_) => "Write less, or put the text into a file and send its path.",
            Self::Full(_) => "Continue with other work and send it later, or wait for a message first.",
            Self::Taken { .. } => "Choose another name, or leave `name` out.",
            Self::Cycle(_) => "Send what the others wait for, or end with what you have.",
            Self::Task(error) => error.hint(),
        }
    }
}

impl Team {
    /// Folds one entry.
    pub(super) fn apply(&mut self, entry: TeamEntry) {
        match entry {
            TeamEntry::Joined { name, agent, kind, description } => {
                self.has_begun = true;
                self.agents.retain(|member| member.name != name);
                let presence = Presence::default();
                self.agents.push(KnownMember { name, agent, kind, description, is_live: true, presence });
            }
            TeamEntry::Withdrawn { name } => self.agents.retain(|member| member.name != name),
            TeamEntry::Left { name } => self.leave(&name),
            TeamEntry::Sent { message, to } => {
                self.messages = self.messages.max(message.number);
                for recipient in to {
                    if let Some(presence) = self.presence_mut(&recipient) {
                        presence.unread.push(message.clone());
                    }
                }
            }
            TeamEntry::Read { by, numbers } => {
                if let Some(presence) = self.presence_mut(&by) {
                    presence.unread.retain(|message| !numbers.contains(&message.number));
                }
            }
            TeamEntry::Waiting { name, on } => self.set_wait(&name, Some(Wait { on })),
            TeamEntry::Continued { name } => self.set_wait(&name, None),
            TeamEntry::TaskAdded { .. }
            | TeamEntry::TaskClaimed { .. }
            | TeamEntry::TaskCompleted { .. }
            | TeamEntry::TaskReleased { .. }
            | TeamEntry::TaskBlocked { .. } => self.tasks.apply(entry),
        }
    }

    fn set_wait(&mut self, name: &str, wait: Option<Wait>) {
        if let Some(presence) = self.presence_mut(name) {
            presence.wait = wait;
        }
    }

    fn leave(&mut self, name: &str) {
        self.tasks.release_all_of(name);
        let Some(member) = self.agents.iter_mut().find(|member| member.name == name) else { return };
        member.is_live = false;
        let Presence { unread, .. } = std::mem::take(&mut member.presence);
        for message in unread {
            // No sub-agent can send a message of the user again, and a returned message does not travel on.
            if message.unread_by.is_some() || message.from == USER {
                continue;
            }
            self.messages += 1;
            let number = self.messages;
            if let Some(sender) = self.presence_mut(&message.from) {
                let unread_by = Some(name.to_owned());
                sender.unread.push(TeamMessage { number, unread_by, ..message });
            }
        }
        let ended = self.agents.iter().filter(|member| !member.is_live).count();
        if ended > MAX_ENDED
            && let Some(oldest) = self.agents.iter().position(|member| !member.is_live)
        {
            self.agents.remove(oldest);
        }
    }

    /// Takes in a record of a conversation that says whether one of its calls waits for the user. True where the state of a
    /// member is another one by it.
    pub(super) fn note_call(&mut self, agent: Option<&AgentId>, record: &Record) -> bool {
        let name = match agent {
            None => MAIN.to_owned(),
            Some(agent) => match self.name_of_agent(agent) {
                Some(name) => name.to_owned(),
                None => return false,
            },
        };
        let is_shown = self.is_shown();
        let Some(presence) = self.presence_mut(&name) else { return false };
        let changed = match record {
            Record::CallMoved { item, state: CallState::ApprovalRequired, permission, .. } => {
                presence.asks.insert(item.clone(), permission.is_some()) != Some(permission.is_some())
            }
            Record::CallMoved { item, .. } | Record::CallEnded { item, .. } => {
                presence.asks.remove(item).is_some()
            }
            _ => false,
        };
        changed && is_shown
    }

    /// Whether clients are shown a team.
    pub(super) fn is_shown(&self) -> bool {
        !self.agents.is_empty() || !self.tasks.is_empty()
    }

    /// Whether a sub-agent has ever worked in the background: from then on the main conversation has the tools of the team.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The team as clients see it; `None` without one. `is_busy` is whether a turn of the main conversation runs.
    pub(crate) fn view(&self, is_busy: bool) -> Option<TeamView> {
        if !self.is_shown() {
            return None;
        }
        let main = TeamMember {
            name: MAIN.to_owned(),
            agent: None,
            kind: String::new(),
            description: String::new(),
            state: if is_busy { self.main.state() } else { MemberState::Idle },
            unread: self.main.unread.len(),
        };
        let agents = self.agents.iter().map(|member| TeamMember {
            name: member.name.clone(),
            agent: Some(member.agent.clone()),
            kind: member.kind.clone(),
            description: member.description.clone(),
            state: if member.is_live { member.presence.state() } else { MemberState::Ended },
            unread: member.presence.unread.len(),
        });
        Some(TeamView { members: std::iter::once(main).chain(agents).collect(), tasks: self.tasks.view() })
    }

    /// The event with the team as it is now.
    pub(super) fn event(&self, is_busy: bool) -> Event {
        Event::TeamChanged { team: self.view(is_busy).map(Box::new) }
    }

    /// The name of the member that is this sub-agent, also after its end.
    pub(crate) fn name_of_agent(&self, agent: &AgentId) -> Option<&str> {
        self.agents.iter().find(|member| member.agent == *agent).map(|member| member.name.as_str())
    }

    /// The name of the live member with this conversation; `None` for the main one.
    ///
    /// # Errors
    /// [`TeamError::NoMember`].
    pub(crate) fn caller(&self, agent: Option<&AgentId>) -> Result<String, TeamError> {
        let Some(agent) = agent else { return Ok(MAIN.to_owned()) };
        let member = self.agents.iter().find(|member| member.is_live && member.agent == *agent);
        member.map(|member| member.name.clone()).ok_or(TeamError::NoMember)
    }

    /// The names of the sub-agents at work, in the order in which they began.
    pub(crate) fn live(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().filter(|member| member.is_live).map(|member| member.name.as_str())
    }

    /// Whether this is the name of a member that is there.
    pub(crate) fn is_there(&self, name: &str) -> bool {
        name == MAIN || self.live().any(|live| live == name)
    }

    /// The members that are there, in words.
    pub(crate) fn present(&self) -> String {
        let names: Vec<_> =
            std::iter::once(MAIN).chain(self.live()).map(|name| format!("`{name}`")).collect();
        format!("there are {}", names.join(", "))
    }

    /// Whether a member waits for a message.
    pub(crate) fn is_waiting(&self, name: &str) -> bool {
        self.presence(name).is_some_and(|presence| presence.wait.is_some())
    }

    /// The unread messages of a member, oldest first.
    pub(crate) fn unread(&self, name: &str) -> &[TeamMessage] {
        self.presence(name).map(|presence| presence.unread.as_slice()).unwrap_or_default()
    }

    /// The entry of a sub-agent that begins: with the name that it had, the wanted one, or one of its type.
    ///
    /// # Errors
    /// [`TeamError::Taken`].
    pub(crate) fn joining(
        &self,
        agent: AgentId,
        wanted: Option<&str>,
        (kind, description): (&str, &str),
    ) -> Result<(String, TeamEntry), TeamError> {
        let is_taken =
            |name: &str| self.agents.iter().any(|member| member.name == name && member.agent != agent);
        let name = match (wanted, self.name_of_agent(&agent)) {
            (Some(wanted), _) if is_taken(wanted) => {
                return Err(TeamError::Taken { name: wanted.to_owned(), present: self.present() });
            }
            (Some(wanted), _) => wanted.to_owned(),
            (None, Some(known)) => known.to_owned(),
            (None, None) => derived_name(kind, is_taken),
        };
        let (kind, description) = (kind.to_owned(), description.to_owned());
        Ok((name.clone(), TeamEntry::Joined { name, agent, kind, description }))
    }

    /// The entry of a message, to one member or to all others.
    ///
    /// # Errors
    /// [`TeamError`]; no member gets it then.
    pub(crate) fn sending(&self, from: &str, to: &str, text: &str) -> Result<TeamEntry, TeamError> {
        if text.trim().is_empty() {
            return Err(TeamError::Empty);
        }
        if text.len() > MAX_MESSAGE {
            return Err(TeamError::TooLong(text.len()));
        }
        let to: Vec<String> = match to {
            EVERYONE => {
                let main = (from != USER).then_some(MAIN);
                let others = main.into_iter().chain(self.live()).filter(|name| *name != from);
                others.map(str::to_owned).collect()
            }
            // The user writes to the main conversation by a prompt.
            MAIN if from == USER => return Err(TeamError::ByPrompt),
            one => vec![self.other(from, one)?],
        };
        if to.is_empty() {
            return Err(TeamError::Alone);
        }
        if let Some(full) = to.iter().find(|name| self.unread(name).len() >= MAX_UNREAD) {
            return Err(TeamError::Full(full.clone()));
        }
        let (number, from, text, at) =
            (self.messages + 1, from.to_owned(), text.to_owned(), Timestamp::now());
        Ok(TeamEntry::Sent { message: TeamMessage { number, from, text, at, unread_by: None }, to })
    }

    /// The member of that name, which is there and not the caller.
    fn other(&self, caller: &str, name: &str) -> Result<String, TeamError> {
        let (owned, present) = (name.to_owned(), self.present());
        if name == caller {
            return Err(TeamError::Oneself(owned));
        }
        if self.is_there(name) {
            return Ok(owned);
        }
        match self.agents.iter().any(|member| member.name == name) {
            true => Err(TeamError::Ended { name: owned, present }),
            false => Err(TeamError::Unknown { name: owned, present }),
        }
    }

    /// The entry of a wait for a message.
    ///
    /// # Errors
    /// [`TeamError`] where the sender is not there, or no member could ever send.
    pub(crate) fn waiting(
        &self,
        name: &str,
        on: Option<&str>,
        is_busy: bool,
    ) -> Result<TeamEntry, TeamError> {
        let on = on.map(|on| self.other(name, on)).transpose()?;
        if on.is_none() && name == MAIN && self.live().next().is_none() {
            return Err(TeamError::Alone);
        }
        waits::check(self, name, on.as_deref(), is_busy)?;
        Ok(TeamEntry::Waiting { name: name.to_owned(), on })
    }

    /// The shared list.
    pub(crate) fn tasks(&self) -> &SharedTasks {
        &self.tasks
    }

    fn presence(&self, name: &str) -> Option<&Presence> {
        match name {
            MAIN => Some(&self.main),
            name => self.agents.iter().find(|member| member.name == name).map(|member| &member.presence),
        }
    }

    fn presence_mut(&mut self, name: &str) -> Option<&mut Presence> {
        match name {
            MAIN => Some(&mut self.main),
            name => {
                let mut live = self.agents.iter_mut().filter(|member| member.is_live);
                live.find(|member| member.name == name).map(|member| &mut member.presence)
            }
        }
    }
}

impl Presence {
    fn state(&self) -> MemberState {
        match (self.asks.values().next(), &self.wait) {
            (Some(_), _) if self.asks.values().any(|is_permission| *is_permission) => MemberState::Permission,
            (Some(_), _) => MemberState::Question,
            (None, Some(wait)) => MemberState::WaitingFor(wait.on.clone()),
            (None, None) => MemberState::Working,
        }
    }
}
