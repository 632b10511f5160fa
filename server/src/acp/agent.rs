//! The engine of one connection: settings, models, tools, and the watch over settings files.
//!
//! Rule: started by the first request that needs it, so that `initialize` reads nothing.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use kode_engine::acp::guest::Guests;
use kode_engine::agent::engine::{Engine, EngineOptions};
use kode_engine::agent::hooks::EndReason;
use kode_engine::agent::sessions::CleanupOptions;
use kode_engine::base::mode::Mode;
use kode_engine::base::paths::AbsPath;
use kode_engine::base::task;
use kode_engine::config::policies::PolicyProvider;
use kode_engine::config::settings::SettingsPolicies;
use kode_engine::languages::Languages;
use kode_engine::mcp::Mcp;
use kode_engine::model::models::Models;
use kode_engine::permission::Deliveries;
use kode_engine::process::sandbox;
use kode_engine::process::shell::terminal::TerminalProvider;
use kode_engine::text::host::Host;
use kode_engine::tool::servers::ServerPool;
use kode_engine::tools::web_search::CurrentSearch;
use tokio::runtime::Handle;

use super::host::AcpHost;
use super::initialize::AcpClient;
use super::servers::ClientServerPool;
use super::terminal::AcpTerminals;
use crate::agent::SettingsWatch;
use crate::lifecycle::Lifecycle;
use crate::{home, policies, telemetry};
use kode_engine::acp::peer::RpcPeer;

/// The longest wait of the first prompt for MCP servers that are starting.
const MCP_WAIT: Duration = Duration::from_millis(1_500);

/// How long after the start old sessions are deleted: the request that started the engine comes first.
const CLEANUP_DELAY: Duration = Duration::from_secs(10);

/// Assembles the models, and names the profile that new sessions use.
type ModelAssembly = Box<dyn Fn(&SettingsPolicies) -> (Models, Option<String>) + Send + Sync>;

/// The options of the command line.
pub(crate) struct LaunchOptions {
    /// Assembles the models as the command line, the settings and the environment give them.
    pub(crate) models: ModelAssembly,
    /// The mode of new sessions; that of the settings when `None`.
    pub(crate) mode: Option<Mode>,
}

/// The engine of one connection.
pub(super) struct AcpAgent {
    pub(super) engine: Engine,
    pub(super) policies: Arc<SettingsPolicies>,
    /// The profile that the command line names for new sessions.
    pub(super) profile: Option<String>,
    /// The MCP servers, with those that the client gives.
    pub(super) servers: Arc<ClientServerPool>,
    /// The client as the engine's editor.
    pub(super) host: Arc<AcpHost>,
    /// The terminals of the client.
    pub(super) terminals: Arc<AcpTerminals>,
    options: Arc<LaunchOptions>,
    search: CurrentSearch,
    watch: Arc<SettingsWatch>,
}

impl AcpAgent {
    /// Starts the engine for this client.
    ///
    /// # Errors
    /// When there is no folder for the user's state.
    pub(super) fn start(
        options: &Arc<LaunchOptions>,
        peer: &Arc<RpcPeer>,
        client: &AcpClient,
        lifecycle: &Lifecycle,
    ) -> anyhow::Result<Arc<Self>> {
        // The first session waits for the result: the earlier the detection starts the better.
        drop(std::thread::spawn(sandbox::detect));
        let policies = policies::all()?;
        let equipment = policies::equipment(&policies);
        let (models, profile) = (options.models)(&policies);
        let policies = Arc::new(policies);
        let host = AcpHost::new(peer, client);
        let terminals = AcpTerminals::new(peer, client, &policies);
        let search = CurrentSearch::default();
        search.set(equipment.provider);
        let home = home::folder()?;
        let state = home.clone();
        let servers =
            ClientServerPool::new(move || Mcp::new(state.clone()).waiting(MCP_WAIT).asking_for_pages(true));
        let engine = Engine::new(EngineOptions {
            home,
            tools: policies::tools(&search),
            servers: Arc::clone(&servers) as Arc<dyn ServerPool>,
            languages: Arc::new(Languages::default()),
            host: Arc::clone(&host) as Arc<dyn Host>,
            models,
            deliveries: Deliveries::default(),
            policies: Arc::clone(&policies) as Arc<dyn PolicyProvider>,
            concurrency: equipment.concurrency,
            save_before_commands: true,
        })
        .with_guests(Arc::new(Guests))
        .with_terminals(Arc::clone(&terminals) as Arc<dyn TerminalProvider>);
        telemetry::begin(&engine, &policies);
        engine.name_client(client.label());
        let agent = Arc::new_cyclic(|agent: &Weak<Self>| Self {
            engine,
            policies,
            profile,
            servers,
            host,
            terminals,
            options: Arc::clone(options),
            search,
            watch: watch(agent.clone()),
        });
        agent.start_cleanup();
        let ending = agent.engine.clone();
        lifecycle.at_end(async move { ending.shutdown_for(EndReason::PromptInputExit).await });
        Ok(agent)
    }

    /// Watches the settings files of all live sessions, and no others. Nothing waits for it.
    pub(super) fn watch_settings(&self) {
        let sessions = self.engine.live_sessions();
        let workspaces: BTreeSet<Vec<AbsPath>> = sessions.iter().map(|session| session.roots()).collect();
        if !self.watch.is_of(&workspaces) {
            self.watch.watch(workspaces, &self.policies);
        }
    }

    /// Assembles the models from the files and the environment as they are now.
    pub(super) async fn refresh_models(&self) {
        let (policies, options) = (Arc::clone(&self.policies), Arc::clone(&self.options));
        let models = task::spawn_blocking(move || (options.models)(&policies).0).await;
        match models {
            Ok(models) => drop(self.engine.replace_models(models).await),
            Err(error) => tracing::error!(%error, "assembling the models broke off"),
        }
    }

    /// Applies changed settings files to models, searches and live sessions.
    async fn settings_changed(&self) {
        self.refresh_models().await;
        let policies = Arc::clone(&self.policies);
        if let Ok(equipment) = task::spawn_blocking(move || policies::equipment(&policies)).await {
            self.engine.set_concurrency(equipment.concurrency);
            self.search.set(equipment.provider);
        }
        self.engine.inspect_plugins();
        let sessions = self.engine.live_sessions();
        // Concurrently, so that a slow disk delays its own session alone.
        let refreshing = sessions.into_iter().map(|session| async move {
            session.gate().refresh().await;
            session.servers().refresh().await;
        });
        futures::future::join_all(refreshing).await;
        self.watch_settings();
    }

    /// Deletes sessions that are older than the settings allow, at most once a day, if a client that shows messages has
    /// announced that. Nothing waits for it.
    fn start_cleanup(&self) {
        let (catalogue, policies) = (Arc::clone(self.engine.catalogue()), Arc::clone(&self.policies));
        task::spawn(async move {
            tokio::time::sleep(CLEANUP_DELAY).await;
            let cleaning = task::spawn_blocking(move || {
                let days = policies.cleanup_days();
                catalogue.clean_up(CleanupOptions { now: Timestamp::now(), days, announces: false })
            });
            match cleaning.await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the stored sessions were not cleaned up"),
                Err(error) => tracing::error!(%error, "cleaning up the stored sessions broke off"),
            }
        });
    }
}

/// A watch that applies settings files when they change, until the agent is dropped.
fn watch(agent: Weak<AcpAgent>) -> Arc<SettingsWatch> {
    let runtime = Handle::current();
    SettingsWatch::start(move || {
        let Some(agent) = agent.upgrade() else { return };
        runtime.spawn(async move { agent.settings_changed().await });
    })
}
