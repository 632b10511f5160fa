//! Starts the agent of a connection: settings, models, tools and the engine, then the watch over settings files and the
//! daily clean-up.
//!
//! Rule: nothing in here waits for the client, and nothing but the settings is read before the agent is there.

use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use jiff::Timestamp;
use kode_engine::acp::guest::Guests;
use kode_engine::agent::engine::{Engine, EngineOptions};
use kode_engine::agent::hooks::EndReason;
use kode_engine::agent::input::complete::Completer;
use kode_engine::agent::sessions::CleanupOptions;
use kode_engine::base::task;
use kode_engine::config::policies::PolicyProvider;
use kode_engine::languages::Languages;
use kode_engine::mcp::Mcp;
use kode_engine::permission::Deliveries;
use kode_engine::process::sandbox;
use kode_engine::tool::ToolSource;
use kode_engine::tools::web_search::CurrentSearch;
use lsp_types::MessageType;

use super::alerts::Alerts;
use super::front_end::FrontEnd;
use super::options::UserOptions;
use super::{Agent, settings};
use crate::connection::ClientConnection;
use crate::display::readable;
use crate::home;
use crate::host::{EditorLanguages, LspHost};
use crate::policies;
use crate::telemetry;

/// The longest wait of the first prompt for MCP servers that are starting.
const MCP_WAIT: Duration = Duration::from_millis(1_500);

/// How long after the agent has started old sessions are deleted: the request that started it comes first.
const CLEANUP_DELAY: Duration = Duration::from_secs(10);

/// Starts the agent with the options of `initialize`. Sessions are shown by `front_end`.
///
/// # Errors
/// When there is no folder for the user's state.
pub(crate) fn start(
    connection: &Arc<ClientConnection>,
    front_end: Weak<dyn FrontEnd>,
) -> anyhow::Result<Arc<Agent>> {
    // The first session waits for the result: the earlier the detection starts the better.
    drop(std::thread::spawn(sandbox::detect));
    let facts = connection.facts.get();
    // A wrong option must not keep an editor from working; `initialized` has reported it to the user.
    let options = facts.map(|facts| UserOptions::read(&facts.initialization_options).0);
    let options = options.unwrap_or_default();
    let policies = policies::all()?;
    policies.editor().say(options.editor_settings(facts));
    let equipment = policies::equipment(&policies);
    let policies = Arc::new(policies);
    if let Some(problem) = equipment.search.problem() {
        let client = connection.client.clone();
        task::spawn(async move { client.show_message(MessageType::WARNING, readable(&problem)).await });
    }
    let search = CurrentSearch::default();
    search.set(equipment.provider);
    let home = home::folder()?;
    let engine = Engine::new(EngineOptions {
        home: home.clone(),
        tools: policies::tools(&search),
        servers: Arc::new(Mcp::new(home).waiting(MCP_WAIT).asking_for_pages(true)),
        languages: Arc::new(Languages::with_editor(Arc::new(EditorLanguages::new(Arc::clone(connection))))),
        host: Arc::new(LspHost::new(Arc::clone(connection))),
        models: policies::models(&policies, options.models()),
        deliveries: Deliveries::new(options.delivery.clone())?,
        policies: Arc::clone(&policies) as Arc<dyn PolicyProvider>,
        concurrency: equipment.concurrency,
        save_before_commands: options.save_before_commands.unwrap_or(true),
    })
    .with_guests(Arc::new(Guests))
    .with_client_tools(Arc::clone(&connection.tools) as Arc<dyn ToolSource>);
    telemetry::begin(&engine, &policies);
    if let Some(name) = facts.and_then(|facts| facts.name.as_deref()) {
        engine.name_client(name);
    }
    let agent = Arc::new_cyclic(|agent| Agent {
        engine,
        search,
        options,
        connection: Arc::clone(connection),
        front_end,
        policies,
        watch: settings::watch(agent.clone()),
        completer: Completer::default(),
        lists_sessions: OnceLock::new(),
        shown: Mutex::default(),
        plain: Mutex::default(),
    });
    agent.engine.observe(Arc::new(Alerts::new(&agent)));
    start_cleanup(&agent);
    agent.watch_settings();
    settings::pull_configuration(&agent);
    let ending = Arc::clone(&agent);
    connection.lifecycle.at_end(async move { ending.engine.shutdown_for(EndReason::PromptInputExit).await });
    Ok(agent)
}

/// Deletes sessions that are older than the settings allow, and unused copies of plugins, at most once a day; announces
/// the first deletion a day ahead, and reports deleted sessions to the user. Nothing waits for it.
fn start_cleanup(agent: &Agent) {
    let (catalogue, connection) = (Arc::clone(agent.engine.catalogue()), Arc::clone(&agent.connection));
    let policies = Arc::clone(&agent.policies);
    task::spawn(async move {
        tokio::time::sleep(CLEANUP_DELAY).await;
        let cleaning = task::spawn_blocking(move || {
            let days = policies.cleanup_days();
            let options = CleanupOptions { now: Timestamp::now(), days, announces: true };
            catalogue.clean_up(options).map(|done| (done, days))
        });
        match cleaning.await {
            Ok(Ok((Some(cleaned), Some(days)))) if cleaned.sessions > 0 => {
                let text = format!(
                    "Kode: deleted {} sessions ({} MB) that were unused for {days} days. Set \
                         `cleanupPeriodDays` in your settings to keep sessions longer; archived sessions \
                         stay.",
                    cleaned.sessions,
                    cleaned.bytes.div_ceil(1_000_000)
                );
                connection.client.show_message(MessageType::INFO, text).await;
            }
            Ok(Ok((Some(cleaned), Some(days)))) if cleaned.due + cleaned.due_files > 0 => {
                let text = format!(
                    "Kode: from tomorrow on, {} sessions ({} MB) and {} older outputs of commands will be deleted, because \
                     `cleanupPeriodDays` in your settings is {days}. Set it to 0 to keep everything; archived \
                     sessions stay.",
                    cleaned.due,
                    cleaned.due_bytes.div_ceil(1_000_000),
                    cleaned.due_files,
                );
                connection.client.show_message(MessageType::WARNING, text).await;
            }
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the stored sessions were not cleaned up"),
            Err(error) => tracing::error!(%error, "cleaning up the stored sessions broke off"),
        }
    });
}
