//! One server: started when it is needed, held connected, tried again when it fails, ended when it is unused.
//!
//! Rule: one task alone makes and ends connections; everybody else reads the state it tells. Before it makes one it asks whether
//! settings still let it: a script that was swapped meanwhile is not started. A failure that only a person can put right is not
//! tried again by itself, and every wait has a limit.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::auth::SIGN_IN_LIMIT;
use crate::connection::{Connection, ServerChannel};
use crate::servers::offered::ServerOffer;
use crate::surroundings::ServerSurroundings;
use crate::{Servers, auth, seen};
use kode_base::blocking;
use kode_base::task;
use kode_config::mcp::config::{HEALTH_INTERVAL, Recovery, RemoteServer, ServerDefinition, ServerLink};
use kode_config::mcp::fault::{McpFailure, McpFailureClass};
use kode_permission::rules::RuleSource;
use kode_tool::servers::SignInPage;
use kode_tool::status::{ServerInfo, ServerState};

/// A connection that has held so long was a good one: failures before it do not count.
const STABLE: Duration = Duration::from_secs(60);
/// Changes that a server reports are checked together when they come so close.
const SETTLE: Duration = Duration::from_millis(100);
/// A wait between attempts is shorter by a random part of up to one in this many.
const JITTER: u32 = 4;

/// The reports of the task.
#[derive(Clone, Debug, Default)]
struct ServerStatus {
    state: Option<ServerState>,
    attempts: u32,
    failure: Option<McpFailure>,
    latency: Option<Duration>,
    title: Option<String>,
    note: Option<String>,
}

/// The task that holds the connection.
struct ServerTask {
    stop: CancellationToken,
    handle: JoinHandle<()>,
}

/// A server.
pub(crate) struct McpServer {
    /// Its name in the settings.
    pub(crate) name: String,
    /// Its part of the names of its tools.
    pub(crate) part: String,
    /// The place of its entry.
    pub(crate) source: RuleSource,
    /// How it is reached, where it may be.
    pub(crate) definition: Option<Arc<ServerDefinition>>,
    /// The state when no task runs.
    resting: ServerState,
    /// Why its entry cannot be used.
    unusable: Option<McpFailure>,
    surroundings: Arc<ServerSurroundings>,
    reported: Mutex<ServerStatus>,
    offered: Mutex<Arc<ServerOffer>>,
    way: Mutex<Option<ServerChannel>>,
    task: Mutex<Option<ServerTask>>,
    again: Notify,
    /// A caller waits for it.
    is_wanted: Notify,
    /// Grows with everything that is reported.
    revision: watch::Sender<u64>,
    /// Why it waits for the user's approval, where it was approved before.
    reason: Option<String>,
    /// The sets that contain it, which learn its outcome and are asked whether it may run.
    all: Weak<Servers>,
    /// Itself, for its tools.
    me: Weak<McpServer>,
}

/// The result of an entry.
pub(crate) enum EntryOutcome {
    /// A server that may be started.
    Usable(Box<ServerDefinition>),
    /// One that may not, and its text; with the reason, if there is more to report.
    Resting(ServerState, Option<String>),
    /// An entry that cannot be used.
    Unusable(McpFailure),
}

impl McpServer {
    pub(crate) fn new(
        (name, part, source): (String, String, RuleSource),
        entered: EntryOutcome,
        surroundings: Arc<ServerSurroundings>,
        all: Weak<Servers>,
    ) -> Arc<Self> {
        let (definition, resting, unusable, reason) = match entered {
            EntryOutcome::Usable(definition) => {
                (Some(Arc::new(*definition)), ServerState::Stopped, None, None)
            }
            EntryOutcome::Resting(state, reason) => (None, state, None, reason),
            EntryOutcome::Unusable(failure) => (None, ServerState::Failed, Some(failure), None),
        };
        Arc::new_cyclic(|me| Self {
            name,
            part,
            source,
            definition,
            resting,
            unusable,
            surroundings,
            reported: Mutex::default(),
            offered: Mutex::default(),
            way: Mutex::default(),
            task: Mutex::default(),
            again: Notify::new(),
            is_wanted: Notify::new(),
            revision: watch::Sender::new(0),
            reason,
            all,
            me: me.clone(),
        })
    }

    /// Starts it, unless it runs or may not.
    pub(crate) fn start(self: &Arc<Self>) {
        let Some(definition) = self.definition.clone() else { return };
        let mut task = self.task.lock();
        if task.is_some() {
            return;
        }
        let stop = CancellationToken::new();
        *self.reported.lock() =
            ServerStatus { state: Some(ServerState::Starting), ..ServerStatus::default() };
        let handle = task::spawn(Arc::clone(self).run(definition, stop.clone()));
        *task = Some(ServerTask { stop, handle });
    }

    /// Ends it and waits until all of it is gone.
    pub(crate) async fn stop(&self) {
        let task = self.task.lock().take();
        let Some(task) = task else { return };
        task.stop.cancel();
        if let Err(error) = task.handle.await {
            tracing::error!(%error, server = self.name, "the task of a server broke");
        }
        *self.offered.lock() = Arc::default();
        *self.reported.lock() = ServerStatus::default();
        self.changed();
    }

    /// Connects again, whatever the state.
    pub(crate) fn reconnect(self: &Arc<Self>) {
        self.start();
        self.again.notify_one();
    }

    /// Why it waits for the user's approval, where it was approved before.
    pub(crate) fn reason(&self) -> Option<String> {
        self.reason.clone()
    }

    /// Its current state.
    pub(crate) fn state(&self) -> ServerState {
        self.reported.lock().state.unwrap_or(self.resting)
    }

    /// Whether it is being connected to for the first time and nothing has gone wrong yet.
    pub(crate) fn is_nearly_there(&self) -> bool {
        let reported = self.reported.lock();
        reported.state == Some(ServerState::Starting) && reported.attempts == 0
    }

    /// Its offer.
    pub(crate) fn offered(&self) -> Arc<ServerOffer> {
        Arc::clone(&self.offered.lock())
    }

    /// How it is reached over the network, if it is.
    pub(crate) fn address(&self) -> Option<(Arc<ServerDefinition>, RemoteServer)> {
        let definition = self.definition.clone()?;
        match &definition.link {
            ServerLink::Network(address) => Some((Arc::clone(&definition), address.clone())),
            ServerLink::Stdio(_) => None,
        }
    }

    /// Its surroundings.
    pub(crate) fn surroundings(&self) -> &ServerSurroundings {
        &self.surroundings
    }

    /// Itself, for people.
    pub(crate) fn info(&self) -> ServerInfo {
        let (reported, offered) = (self.reported.lock().clone(), self.offered());
        let notes = self.definition.iter().flat_map(|definition| definition.notes.iter().cloned());
        ServerInfo {
            name: self.name.clone(),
            kind: self.definition.as_ref().map_or("", |definition| definition.kind()),
            target: self.definition.as_ref().map(|definition| definition.shown()).unwrap_or_default(),
            state: reported.state.unwrap_or(self.resting),
            source: self.source.clone(),
            attempts: reported.attempts,
            failure: reported.failure.or_else(|| self.unusable.clone()),
            latency: reported.latency,
            title: reported.title,
            tools: offered.tools.len(),
            prompts: offered.prompts.len(),
            resources: offered.resources.len(),
            changed_tools: offered.changed.clone(),
            notes: notes
                .chain(self.reason.clone())
                .chain(reported.note)
                .chain(offered.notes.iter().cloned())
                .collect(),
        }
    }

    /// Takes what its tools say of themselves now for what they said first.
    pub(crate) async fn accept_tools(&self) {
        let Some(definition) = &self.definition else { return };
        let offered = self.offered();
        if offered.changed.is_empty() {
            return;
        }
        let (state, digest) = (self.surroundings.state.clone(), definition.digest.clone());
        let described = offered.described.clone();
        if let Err(error) = blocking(move || seen::accept(&state, &digest, described)).await {
            tracing::warn!(%error, server = self.name, "the descriptions of its tools could not be stored");
        }
        *self.offered.lock() = Arc::new(ServerOffer { changed: Vec::new(), ..(*offered).clone() });
        self.changed();
    }

    /// Begins to sign the user in. When they have, it is connected to.
    ///
    /// # Errors
    /// Why that cannot be done.
    pub(crate) async fn authenticate(self: &Arc<Self>) -> Result<SignInPage, McpFailure> {
        let Some((definition, address)) = self.address() else {
            return Err(McpFailure::permanent(
                format!("`{}` is not in the network, so there is nothing to sign in to", self.name),
                "Give it what it needs in `env` of its entry.",
            ));
        };
        let challenge = self.reported.lock().failure.as_ref().map(|failure| failure.challenge.clone());
        let challenge = challenge.unwrap_or_default();
        let sign_in = auth::begin(&definition, &address, &self.surroundings.state, &challenge).await?;
        let (url, server) = (sign_in.url.clone(), Arc::clone(self));
        let (mut report, outcome) = oneshot::channel();
        task::spawn(async move {
            // A caller that waits for the outcome may take any time; a sign-in without one ends.
            let given_up = async {
                sleep(SIGN_IN_LIMIT).await;
                report.closed().await;
            };
            let outcome = tokio::select! {
                outcome = sign_in.complete(&definition) => outcome,
                () = given_up => Err(McpFailure::auth(&definition.name, "")),
            };
            match &outcome {
                Ok(()) => server.reconnect(),
                Err(failure) => server.report(|reported| reported.failure = Some(failure.clone())),
            }
            // The caller may be gone.
            drop(report.send(outcome));
        });
        let name = self.name.clone();
        let outcome = async move { outcome.await.unwrap_or_else(|_| Err(McpFailure::auth(&name, ""))) };
        Ok(SignInPage { url, outcome: Box::pin(outcome) })
    }

    /// The way to ask it, as soon as there is one, within its limit to start.
    ///
    /// # Errors
    /// The reason of the failure.
    pub(crate) async fn way(&self) -> Result<ServerChannel, McpFailure> {
        let mut revision = self.revision.subscribe();
        self.is_wanted.notify_one();
        let ready = async {
            loop {
                revision.borrow_and_update();
                if let (ServerState::Connected, Some(way)) = (self.state(), self.way.lock().clone()) {
                    return Ok(way);
                }
                match self.state() {
                    ServerState::Starting | ServerState::Connected => {}
                    ServerState::Disabled | ServerState::WaitingForApproval | ServerState::Stopped => {
                        return Err(McpFailure::permanent(
                            format!("the MCP server `{}` is not running", self.name),
                            "Go on without it; the user can start it with `/mcp`.",
                        ));
                    }
                    ServerState::NeedsAuth | ServerState::Failed => {
                        let failure = self.reported.lock().failure.clone().or_else(|| self.unusable.clone());
                        return Err(
                            failure.unwrap_or_else(|| McpFailure::permanent("it failed", "Use `/mcp`."))
                        );
                    }
                }
                if revision.changed().await.is_err() {
                    return Err(McpFailure::permanent("the server is gone", "Go on without it."));
                }
            }
        };
        match timeout(self.surroundings.limits.start, ready).await {
            Ok(way) => way,
            Err(_) => {
                let failure = self.reported.lock().failure.clone();
                let said = failure.map(|failure| format!(": {}", failure.message)).unwrap_or_default();
                Err(McpFailure::transient(
                    format!("the MCP server `{}` is not connected yet{said}", self.name),
                    "It is tried again by itself; go on without it meanwhile.",
                ))
            }
        }
    }

    /// Its one task.
    async fn run(self: Arc<Self>, definition: Arc<ServerDefinition>, stop: CancellationToken) {
        let mut attempts = 0;
        tokio::select! {
            () = self.calm() => {}
            () = self.is_wanted.notified() => {}
            () = stop.cancelled() => return,
        }
        loop {
            let lets = tokio::select! {
                lets = self.is_let() => lets,
                () = stop.cancelled() => break,
            };
            if !lets {
                // A caller that does not keep it ends it.
                *self.offered.lock() = Arc::default();
                stop.cancelled().await;
                break;
            }
            self.report(|reported| {
                reported.state = Some(ServerState::Starting);
                reported.attempts = attempts;
            });
            let began = Instant::now();
            let failure = match self.connect_and_hold(&definition, &stop).await {
                ConnectionEnd::Stopped => break,
                ConnectionEnd::Again => {
                    attempts = 0;
                    continue;
                }
                ConnectionEnd::Failed(failure) => failure,
            };
            *self.way.lock() = None;
            if began.elapsed() >= STABLE {
                attempts = 0;
            }
            attempts += 1;
            tracing::info!(server = self.name, %failure, attempts, "a server cannot be used");
            let wait = wait_before(attempts, &failure, definition.recovery);
            let state = match (wait, failure.class) {
                (Some(_), _) => ServerState::Starting,
                (None, McpFailureClass::Auth) => ServerState::NeedsAuth,
                (None, McpFailureClass::Transient | McpFailureClass::Permanent) => ServerState::Failed,
            };
            if wait.is_none() {
                *self.offered.lock() = Arc::default();
            }
            self.report(|reported| {
                reported.state = Some(state);
                reported.attempts = attempts;
                reported.failure = Some(failure);
                reported.latency = None;
            });
            let over = async {
                match wait {
                    Some(wait) => sleep(wait).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => {}
                () = self.again.notified() => attempts = 0,
                () = stop.cancelled() => break,
            }
        }
        *self.way.lock() = None;
    }

    /// Returns when no prompt is in the way of its start.
    async fn calm(&self) {
        if let Some(all) = self.all.upgrade() {
            all.calm().await;
        }
    }

    /// Whether settings still let it be what it was made from.
    async fn is_let(&self) -> bool {
        match self.all.upgrade() {
            Some(all) => all.lets(self).await,
            None => false,
        }
    }

    async fn connect_and_hold(
        &self,
        definition: &Arc<ServerDefinition>,
        stop: &CancellationToken,
    ) -> ConnectionEnd {
        let opened = tokio::select! {
            opened = self.open(definition) => opened,
            () = stop.cancelled() => return ConnectionEnd::Stopped,
        };
        let (mut connection, offered) = match opened {
            Ok(opened) => opened,
            Err(failure) => return ConnectionEnd::Failed(failure),
        };
        *self.offered.lock() = Arc::new(offered);
        *self.way.lock() = Some(connection.way.clone());
        let title = connection.info().and_then(|info| {
            let named = info.server_info.as_ref()?;
            Some(format!("{} {}", named.title.as_ref().unwrap_or(&named.name), named.version))
        });
        let note = connection.note.take();
        self.report(|reported| {
            let latency = reported.latency;
            *reported = ServerStatus {
                state: Some(ServerState::Connected),
                latency,
                title,
                note,
                ..ServerStatus::default()
            };
        });
        let held = self.hold(definition, &mut connection, stop).await;
        *self.way.lock() = None;
        connection.close().await;
        held
    }

    /// Connects, and looks what there is.
    async fn open(
        &self,
        definition: &Arc<ServerDefinition>,
    ) -> Result<(Connection, ServerOffer), McpFailure> {
        let connection = Connection::open(definition, &self.surroundings).await?;
        match self.look(definition, &connection).await {
            Ok(offered) => Ok((connection, offered)),
            Err(failure) => {
                let failure = McpFailure { stderr: connection.complaints(), ..failure };
                connection.close().await;
                Err(failure)
            }
        }
    }

    async fn look(
        &self,
        definition: &ServerDefinition,
        connection: &Connection,
    ) -> Result<ServerOffer, McpFailure> {
        let limit = self.surroundings.limits.start;
        let info = connection.info();
        let looked =
            timeout(limit, ServerOffer::look(self, definition, &connection.way, info.as_deref())).await;
        looked.unwrap_or_else(|_| {
            Err(McpFailure::transient(
                format!("the server did not say within {} s what it offers", limit.as_secs_f32()),
                "It is tried again by itself.",
            ))
        })
    }

    /// Holds a connection until it is lost or it is unused.
    async fn hold(
        &self,
        definition: &Arc<ServerDefinition>,
        connection: &mut Connection,
        stop: &CancellationToken,
    ) -> ConnectionEnd {
        let way = connection.way.clone();
        let mut changes = way.handler.changes();
        let health = definition.health;
        let mut ticks = interval(health.unwrap_or(HEALTH_INTERVAL));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return ConnectionEnd::Stopped,
                () = self.again.notified() => return ConnectionEnd::Again,
                failure = connection.lost() => return ConnectionEnd::Failed(failure),
                reported = changes.changed() => {
                    if reported.is_err() {
                        return ConnectionEnd::Again;
                    }
                    let look = async {
                        sleep(SETTLE).await;
                        changes.borrow_and_update();
                        self.look(definition, connection).await
                    };
                    let looked = tokio::select! {
                        looked = look => looked,
                        () = stop.cancelled() => return ConnectionEnd::Stopped,
                    };
                    match looked {
                        Ok(offered) => *self.offered.lock() = Arc::new(offered),
                        Err(failure) => return ConnectionEnd::Failed(failure),
                    }
                    self.changed();
                }
                _ = ticks.tick(), if health.is_some() => {
                    // One that works on a call may well be too busy to answer.
                    let alive = tokio::select! {
                        alive = way.ping() => alive,
                        () = stop.cancelled() => return ConnectionEnd::Stopped,
                    };
                    match alive {
                        Ok(latency) => self.report(|reported| reported.latency = Some(latency)),
                        Err(failure) if way.handler.is_idle() => {
                            let stderr = connection.complaints();
                            return ConnectionEnd::Failed(McpFailure { stderr, ..failure });
                        }
                        Err(failure) => tracing::debug!(%failure, server = self.name, "it is busy"),
                    }
                }
            }
        }
    }

    fn report(&self, report: impl FnOnce(&mut ServerStatus)) {
        report(&mut self.reported.lock());
        self.changed();
    }

    fn changed(&self) {
        self.revision.send_modify(|revision| *revision += 1);
        if let Some(all) = self.all.upgrade() {
            all.changed();
        }
    }

    /// Itself, for what it offers.
    pub(crate) fn weak(&self) -> Weak<Self> {
        self.me.clone()
    }
}

/// How holding a connection ended.
enum ConnectionEnd {
    Stopped,
    Again,
    Failed(McpFailure),
}

/// The wait before the next attempt; `None` without an automatic one.
fn wait_before(attempts: u32, failure: &McpFailure, recovery: Recovery) -> Option<Duration> {
    match failure.class {
        McpFailureClass::Permanent | McpFailureClass::Auth => return None,
        McpFailureClass::Transient => {}
    }
    if !recovery.enabled || attempts >= recovery.attempts {
        return None;
    }
    let doubled = recovery.first_delay.saturating_mul(1u32.checked_shl(attempts - 1).unwrap_or(u32::MAX));
    let wait = doubled.min(recovery.max_delay);
    Some(wait - wait.mul_f64(random_part()) / JITTER)
}

/// A number from 0 up to 1 that differs from time to time.
fn random_part() -> f64 {
    let bits = uuid::Uuid::now_v7().as_u128() & u128::from(u16::MAX);
    f64::from(u16::try_from(bits).unwrap_or_default()) / f64::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_bound_and_end_with_the_attempts() {
        let transient = McpFailure::transient("x", "y");
        let recovery = Recovery { attempts: 10, ..Recovery::default() };
        let mut last = Duration::ZERO;
        for attempts in 1..10 {
            let wait = wait_before(attempts, &transient, recovery).unwrap();
            let whole = recovery.first_delay.saturating_mul(1 << (attempts - 1)).min(recovery.max_delay);
            assert!(wait <= whole && wait >= whole * 3 / 4, "{attempts}: {wait:?}");
            assert!(wait >= last * 3 / 4);
            last = wait;
        }
        assert_eq!(wait_before(10, &transient, recovery), None);
        assert_eq!(wait_before(1, &transient, Recovery { enabled: false, ..recovery }), None);
        for failure in [McpFailure::permanent("x", "y"), McpFailure::auth("s", "")] {
            assert_eq!(wait_before(1, &failure, recovery), None);
        }
    }
}
