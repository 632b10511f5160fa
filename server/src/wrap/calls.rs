//! Requests on their way: who has asked, who is asked, and what has been answered.
//!
//! Rule: ids of ours are counted in one series for all sides. The number of requests is bounded.

use std::collections::{BTreeSet, HashMap};

use bytes::Bytes;
use kode_engine::base::paths::Target;
use kode_engine::languages::EditorFailure;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::body::Body;
use super::results::SharedRequest;

/// The most requests that wait for an answer in each direction.
pub(super) const MAX_CALLS: usize = 16_384;

/// A server behind the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelayedServer {
    /// The wrapped server.
    Child,
    /// The agent.
    Agent,
}

/// The side that waits for the answer of a call.
#[derive(Debug)]
pub(super) enum Caller {
    /// The editor, with this id.
    Editor(Bytes),
    /// The editor with its `shutdown`.
    Shutdown(Bytes),
    /// The agent's tools.
    Tools(ToolCall),
    /// The relay: the answer of the wrapped server to the editor's `initialize`.
    Opening,
    /// The relay: the answer of the agent to the editor's `initialize`.
    AgentOpening,
    /// The relay: the answer of a wrapped server that was started again.
    Reopening,
    /// The relay: the agent has the texts of all messages before this.
    Barrier,
}

/// A call of the agent's tools.
#[derive(Debug)]
pub(super) struct ToolCall {
    /// Where the answer goes.
    pub(super) answer: oneshot::Sender<Result<Value, EditorFailure>>,
    /// The version of the text that the answer has to be about.
    pub(super) version: Option<(Target, i64)>,
    /// The file that is open for this call.
    pub(super) opened: Option<Target>,
}

/// The part of one server in a call.
#[derive(Debug, Default)]
pub(super) enum CallPart {
    /// It is not asked.
    #[default]
    Unasked,
    /// It has not answered.
    Waiting,
    /// Its answer.
    Answered(Body),
    /// It will not answer, for this reason.
    Lost(String),
}

/// A request that waits for answers.
#[derive(Debug)]
pub(super) struct Call {
    /// The side that waits.
    pub(super) caller: Caller,
    /// The kind of the call, where both servers answer.
    pub(super) shared: Option<SharedRequest>,
    /// The part of the wrapped server.
    pub(super) child: CallPart,
    /// The part of the agent.
    pub(super) agent: CallPart,
    deadline: Option<Instant>,
}

impl Call {
    /// A call that was sent to no server yet.
    pub(super) fn new(caller: Caller) -> Self {
        Self { caller, shared: None, child: CallPart::Unasked, agent: CallPart::Unasked, deadline: None }
    }

    /// The part of a server.
    pub(super) fn part(&mut self, of: RelayedServer) -> &mut CallPart {
        match of {
            RelayedServer::Child => &mut self.child,
            RelayedServer::Agent => &mut self.agent,
        }
    }

    /// Whether an answer is missing.
    pub(super) fn is_open(&self) -> bool {
        self.waiting().next().is_some()
    }

    /// The servers that have not answered.
    pub(super) fn waiting(&self) -> impl Iterator<Item = RelayedServer> + use<> {
        let child = matches!(self.child, CallPart::Waiting).then_some(RelayedServer::Child);
        let agent = matches!(self.agent, CallPart::Waiting).then_some(RelayedServer::Agent);
        child.into_iter().chain(agent)
    }
}

/// The requests that wait, and those of servers that the editor is to answer.
#[derive(Default)]
pub(super) struct CallTable {
    next: u64,
    calls: HashMap<u64, Call>,
    by_editor: HashMap<Bytes, u64>,
    deadlines: BTreeSet<(Instant, u64)>,
    /// Requests of servers; `None` is the relay.
    asked: HashMap<u64, (Option<RelayedServer>, Bytes)>,
}

impl CallTable {
    /// Whether another request of the editor has no room.
    pub(super) fn is_full(&self) -> bool {
        self.calls.len() >= MAX_CALLS
    }

    /// Takes in a call, and returns its id.
    pub(super) fn insert(&mut self, call: Call) -> u64 {
        self.next += 1;
        if let Caller::Editor(id) = &call.caller {
            self.by_editor.insert(id.clone(), self.next);
        }
        self.calls.insert(self.next, call);
        self.next
    }

    /// The call with this id.
    pub(super) fn get_mut(&mut self, id: u64) -> Option<&mut Call> {
        self.calls.get_mut(&id)
    }

    /// Sets when a call has waited long enough; the first of several times counts.
    pub(super) fn limit(&mut self, id: u64, deadline: Instant) {
        let Some(call) = self.calls.get_mut(&id) else { return };
        let earlier = call.deadline.map_or(deadline, |known| known.min(deadline));
        if let Some(known) = call.deadline.replace(earlier) {
            self.deadlines.remove(&(known, id));
        }
        self.deadlines.insert((earlier, id));
    }

    /// The next time at which a call has waited long enough.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// The calls that have waited long enough.
    pub(super) fn overdue(&self, now: Instant) -> Vec<u64> {
        self.deadlines.iter().take_while(|(deadline, _)| *deadline <= now).map(|(_, id)| *id).collect()
    }

    /// Takes out a call.
    pub(super) fn remove(&mut self, id: u64) -> Option<Call> {
        let call = self.calls.remove(&id)?;
        if let Caller::Editor(editor) = &call.caller {
            // A client that uses an id twice has replaced the first.
            if self.by_editor.get(editor) == Some(&id) {
                self.by_editor.remove(editor);
            }
        }
        if let Some(deadline) = call.deadline {
            self.deadlines.remove(&(deadline, id));
        }
        Some(call)
    }

    /// The call that the editor has made with this id.
    pub(super) fn of_editor(&self, id: &Bytes) -> Option<u64> {
        self.by_editor.get(id).copied()
    }

    /// The calls in which an answer of this server is missing.
    pub(super) fn waiting_for(&self, server: RelayedServer) -> Vec<u64> {
        let mut waiting: Vec<u64> = self
            .calls
            .iter()
            .filter(|(_, call)| call.waiting().any(|one| one == server))
            .map(|(id, _)| *id)
            .collect();
        waiting.sort_unstable();
        waiting
    }

    /// Takes in a request of a server to the editor, and returns its id there; `None` where there are too many.
    pub(super) fn ask(&mut self, server: Option<RelayedServer>, id: Bytes) -> Option<u64> {
        if self.asked.len() >= MAX_CALLS {
            return None;
        }
        self.next += 1;
        self.asked.insert(self.next, (server, id));
        Some(self.next)
    }

    /// The server that an answer of the editor is for, with the id of the request there.
    pub(super) fn answered(&mut self, id: u64) -> Option<(Option<RelayedServer>, Bytes)> {
        self.asked.remove(&id)
    }

    /// The id under which the editor has a request of a server.
    pub(super) fn asked_as(&self, server: RelayedServer, id: &Bytes) -> Option<u64> {
        let is_this = |(of, known): &(Option<RelayedServer>, Bytes)| *of == Some(server) && known == id;
        self.asked.iter().find(|(_, asked)| is_this(asked)).map(|(id, _)| *id)
    }

    /// Forgets the requests of a server, and returns their ids at the editor.
    pub(super) fn forget(&mut self, server: RelayedServer) -> Vec<u64> {
        let of_server = |(of, _): &(Option<RelayedServer>, Bytes)| *of == Some(server);
        let gone: Vec<u64> =
            self.asked.iter().filter(|(_, asked)| of_server(asked)).map(|(id, _)| *id).collect();
        self.asked.retain(|_, asked| !of_server(asked));
        gone
    }
}
