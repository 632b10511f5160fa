//! One language server of one root: started when it is needed, and again within bounds when it has ended by itself.
//!
//! Rule: however many calls need it at once, one of them starts it. A server that cannot be started is not tried again at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::launch::Launcher;
use crate::running::RunningLanguageServer;
use kode_base::paths::AbsPath;
use kode_base::task;
use kode_config::language_servers::LanguageServerDefinition;
use kode_text::workspace::language::LanguageError;

/// How long a failed start stays a failure.
const FAILURE_REST: Duration = Duration::from_secs(60);
/// The span in which ends of a server are counted.
const COUNTED: Duration = Duration::from_secs(600);

/// One language server of one root.
pub(crate) struct Instance {
    pub(crate) definition: Arc<LanguageServerDefinition>,
    pub(crate) root: AbsPath,
    launcher: Arc<dyn Launcher>,
    state: Mutex<InstanceState>,
}

#[derive(Default)]
struct InstanceState {
    running: Option<Arc<RunningLanguageServer>>,
    /// When it ended by itself.
    ends: Vec<Instant>,
    /// The last failed start.
    failure: Option<(Instant, String)>,
}

impl Instance {
    /// A server that is not started.
    pub(crate) fn new(
        definition: Arc<LanguageServerDefinition>,
        root: AbsPath,
        launcher: Arc<dyn Launcher>,
    ) -> Arc<Self> {
        Arc::new(Self { definition, root, launcher, state: Mutex::default() })
    }

    /// The running server, started if need be.
    ///
    /// # Errors
    /// [`LanguageError::Unavailable`].
    pub(crate) async fn running(self: &Arc<Self>) -> Result<Arc<RunningLanguageServer>, LanguageError> {
        // A start continues when the call that wanted it is cancelled.
        let instance = Arc::clone(self);
        let started = task::spawn(async move { instance.start().await }).await;
        let started = started.unwrap_or_else(|_| Err("its start failed".to_owned()));
        started.map_err(|reason| LanguageError::Unavailable { server: self.definition.name.clone(), reason })
    }

    /// The running server, if it runs.
    pub(crate) async fn if_running(&self) -> Option<Arc<RunningLanguageServer>> {
        self.state.lock().await.running.clone().filter(|running| running.is_open())
    }

    /// Ends the server and waits until it is gone.
    pub(crate) async fn end(&self) {
        let running = self.state.lock().await.running.take();
        if let Some(running) = running {
            running.end().await;
        }
    }

    async fn start(&self) -> Result<Arc<RunningLanguageServer>, String> {
        let mut state = self.state.lock().await;
        if let Some(running) = &state.running {
            if running.is_open() {
                return Ok(Arc::clone(running));
            }
            if !running.was_ended() {
                state.ends.push(Instant::now());
            }
            state.running = None;
        }
        state.ends.retain(|end| end.elapsed() < COUNTED);
        if state.ends.len() > self.definition.max_restarts as usize {
            return Err(format!(
                "it ended {} times within {} minutes and is not started again",
                state.ends.len(),
                COUNTED.as_secs() / 60
            ));
        }
        if let Some((at, reason)) = &state.failure
            && at.elapsed() < FAILURE_REST
        {
            return Err(reason.clone());
        }
        state.failure = None;
        let started = match self.launcher.launch(&self.definition, &self.root).await {
            Ok(launched) => {
                RunningLanguageServer::start(launched, Arc::clone(&self.definition), self.root.clone()).await
            }
            Err(reason) => Err(reason),
        };
        match started {
            Ok(running) => {
                state.running = Some(Arc::clone(&running));
                Ok(running)
            }
            Err(reason) => {
                tracing::warn!(server = self.definition.name, reason, "a language server was not started");
                state.failure = Some((Instant::now(), reason.clone()));
                Err(reason)
            }
        }
    }
}
