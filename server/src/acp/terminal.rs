//! Terminals of the client, for commands that run outside of the sandbox.
//!
//! Rule: none is asked for unless the user's settings say so and the client offers them. A terminal is shown in the call whose
//! command it runs, and is released with the command.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use agent_client_protocol_schema::v1::{
    CreateTerminalRequest, CreateTerminalResponse, EnvVariable, KillTerminalRequest, KillTerminalResponse,
    ReleaseTerminalRequest, ReleaseTerminalResponse, SessionId as WireSessionId, TerminalExitStatus,
    TerminalId, TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse,
};
use async_trait::async_trait;
use kode_engine::acp::peer::{PeerCallError, RpcPeer};
use kode_engine::base::ids::{CallId, SessionId};
use kode_engine::base::task;
use kode_engine::config::settings::SettingsPolicies;
use kode_engine::process::outcome::Exit;
use kode_engine::process::shell::terminal::{
    ClientTerminal, ClientTerminals, MAX_OUTPUT, TerminalCommand, TerminalError, TerminalOutput,
    TerminalProvider,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::initialize::AcpClient;

/// How long the client may take for an answer that needs neither its user nor the command.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// The numbers of signals by their names, as clients give them.
const SIGNALS: [(&str, i32); 12] = [
    ("SIGHUP", 1),
    ("SIGINT", 2),
    ("SIGQUIT", 3),
    ("SIGILL", 4),
    ("SIGABRT", 6),
    ("SIGBUS", 7),
    ("SIGFPE", 8),
    ("SIGKILL", 9),
    ("SIGSEGV", 11),
    ("SIGPIPE", 13),
    ("SIGALRM", 14),
    ("SIGTERM", 15),
];

/// The terminals of one connection's client.
pub(super) struct AcpTerminals {
    peer: Arc<RpcPeer>,
    has_terminals: bool,
    policies: Arc<SettingsPolicies>,
    sessions: Mutex<HashMap<SessionId, Weak<TerminalTable>>>,
}

/// The terminals of one session, by the calls whose commands they run.
#[derive(Debug, Default)]
pub(super) struct TerminalTable(Mutex<HashMap<CallId, TerminalId>>);

/// The client's terminals for one session.
struct AcpSessionTerminals {
    peer: Arc<RpcPeer>,
    policies: Arc<SettingsPolicies>,
    session: WireSessionId,
    table: Arc<TerminalTable>,
}

/// One terminal of the client.
struct AcpTerminal {
    peer: Arc<RpcPeer>,
    session: WireSessionId,
    id: TerminalId,
}

impl AcpTerminals {
    pub(super) fn new(
        peer: &Arc<RpcPeer>,
        client: &AcpClient,
        policies: &Arc<SettingsPolicies>,
    ) -> Arc<Self> {
        Arc::new(Self {
            peer: Arc::clone(peer),
            has_terminals: client.capabilities.terminal,
            policies: Arc::clone(policies),
            sessions: Mutex::default(),
        })
    }

    /// The terminals of a session, by call: the same table as long as it is used.
    pub(super) fn table(&self, session: &SessionId) -> Arc<TerminalTable> {
        let mut sessions = lock(&self.sessions);
        if let Some(table) = sessions.get(session).and_then(Weak::upgrade) {
            return table;
        }
        sessions.retain(|_, table| table.strong_count() > 0);
        let table = Arc::<TerminalTable>::default();
        sessions.insert(session.clone(), Arc::downgrade(&table));
        table
    }
}

impl fmt::Debug for AcpTerminals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AcpTerminals")
            .field("has_terminals", &self.has_terminals)
            .finish_non_exhaustive()
    }
}

impl TerminalProvider for AcpTerminals {
    fn of_session(&self, session: &SessionId) -> Option<Arc<dyn ClientTerminals>> {
        self.has_terminals.then(|| {
            Arc::new(AcpSessionTerminals {
                peer: Arc::clone(&self.peer),
                policies: Arc::clone(&self.policies),
                session: WireSessionId::new(session.as_str()),
                table: self.table(session),
            }) as Arc<dyn ClientTerminals>
        })
    }
}

impl TerminalTable {
    /// The terminal that runs the command of a call.
    pub(super) fn of_call(&self, call: &CallId) -> Option<TerminalId> {
        lock(&self.0).get(call).cloned()
    }

    /// Forgets the terminal of a call that has ended.
    pub(super) fn forget(&self, call: &CallId) {
        lock(&self.0).remove(call);
    }
}

impl fmt::Debug for AcpSessionTerminals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AcpSessionTerminals").field("session", &self.session).finish_non_exhaustive()
    }
}

#[async_trait]
impl ClientTerminals for AcpSessionTerminals {
    async fn are_chosen(&self) -> bool {
        let policies = Arc::clone(&self.policies);
        let chosen = task::spawn_blocking(move || policies.values().sandbox.client_terminal);
        chosen.await.ok().flatten().unwrap_or(false)
    }

    /// Clients may ask their users first: the answer has no time limit.
    async fn create(&self, command: TerminalCommand) -> Result<Box<dyn ClientTerminal>, TerminalError> {
        let variables = command.variables.into_iter();
        let request = CreateTerminalRequest::new(self.session.clone(), command.program)
            .args(command.arguments)
            .env(variables.map(|(name, value)| EnvVariable::new(name, value)).collect::<Vec<_>>())
            .cwd(std::path::PathBuf::from(command.directory))
            .output_byte_limit(MAX_OUTPUT);
        let (peer, session) = (Arc::clone(&self.peer), self.session.clone());
        // In a task of its own: where the caller has given up by the time of the answer, the terminal is released at once.
        let creating = task::spawn(async move {
            let created: CreateTerminalResponse = peer.request("terminal/create", request, None).await?;
            Ok(AcpTerminal { peer, session, id: created.terminal_id })
        });
        let created: Result<AcpTerminal, PeerCallError> =
            creating.await.map_err(|error| TerminalError(error.to_string()))?;
        let terminal = created.map_err(|error| reason(&error))?;
        lock(&self.table.0).insert(command.call, terminal.id.clone());
        Ok(Box::new(terminal))
    }
}

impl AcpTerminal {
    async fn request<P: Serialize, R: DeserializeOwned>(
        &self,
        method: &str,
        params: P,
        limit: Option<Duration>,
    ) -> Result<R, TerminalError> {
        self.peer.request(method, params, limit).await.map_err(|error| reason(&error))
    }
}

#[async_trait]
impl ClientTerminal for AcpTerminal {
    async fn output(&self) -> Result<TerminalOutput, TerminalError> {
        let request = TerminalOutputRequest::new(self.session.clone(), self.id.clone());
        let shown: TerminalOutputResponse =
            self.request("terminal/output", request, Some(ANSWER_LIMIT)).await?;
        let exit = shown.exit_status.as_ref().map(exit);
        Ok(TerminalOutput { text: shown.output, is_cut: shown.truncated, exit })
    }

    async fn ended(&self) -> Result<Exit, TerminalError> {
        let request = WaitForTerminalExitRequest::new(self.session.clone(), self.id.clone());
        let ended: WaitForTerminalExitResponse =
            self.request("terminal/wait_for_exit", request, None).await?;
        Ok(exit(&ended.exit_status))
    }

    async fn kill(&self) -> Result<(), TerminalError> {
        let request = KillTerminalRequest::new(self.session.clone(), self.id.clone());
        let _: Option<KillTerminalResponse> =
            self.request("terminal/kill", request, Some(ANSWER_LIMIT)).await?;
        Ok(())
    }
}

impl Drop for AcpTerminal {
    /// Releases the terminal; nothing waits for the answer.
    fn drop(&mut self) {
        let (peer, session, id) = (Arc::clone(&self.peer), self.session.clone(), self.id.clone());
        task::spawn(async move {
            let request = ReleaseTerminalRequest::new(session, id);
            let released: Result<Option<ReleaseTerminalResponse>, _> =
                peer.request("terminal/release", request, Some(ANSWER_LIMIT)).await;
            match released {
                Ok(_) | Err(PeerCallError::Gone) => {}
                Err(error) => tracing::warn!(%error, "the client did not release a terminal"),
            }
        });
    }
}

fn exit(status: &TerminalExitStatus) -> Exit {
    match (&status.signal, status.exit_code) {
        (None, Some(code)) => Exit::Code(code.cast_signed()),
        (Some(signal), _) => {
            let known = SIGNALS.iter().find(|(name, _)| name == signal).map(|(_, number)| *number);
            Exit::Signal(known.or_else(|| signal.parse().ok()).unwrap_or_default())
        }
        (None, None) => Exit::Signal(0),
    }
}

fn reason(error: &PeerCallError) -> TerminalError {
    TerminalError(error.to_string())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_command_is_read_as_clients_write_it() {
        for (signal, code, expected) in [
            (None, Some(0), Exit::Code(0)),
            (None, Some(u32::MAX), Exit::Code(-1)),
            (Some("SIGTERM"), None, Exit::Signal(15)),
            (Some("9"), None, Exit::Signal(9)),
            (Some("killed"), Some(1), Exit::Signal(0)),
            (None, None, Exit::Signal(0)),
        ] {
            let status = TerminalExitStatus::new().exit_code(code).signal(signal.map(str::to_owned));
            assert_eq!(exit(&status), expected, "{signal:?} {code:?}");
        }
    }
}
