//! Settings of a running agent: the files that are watched, and the settings of the editor.
//!
//! Rule: files are read off the threads that answer clients, and a change is applied by all live sessions before the front
//! end shows it.

use std::sync::{Arc, Weak};

use futures::future::join_all;
use kode_engine::base::task;
use kode_engine::config::settings::EditorUpdate;
use lsp_types::ConfigurationItem;
use serde_json::Value;
use tokio::runtime::Handle;

use super::Agent;
use super::settings_watch::SettingsWatch;
use crate::policies;

/// The section of the editor's configuration that is asked for.
const SECTION: &str = "kode-ls";
/// The section of the user's own settings, for clients that separate them.
const USER_SECTION: &str = "kode-ls.user";

/// A watch that applies settings files when they change, until the agent is dropped.
pub(super) fn watch(agent: Weak<Agent>) -> Arc<SettingsWatch> {
    let runtime = Handle::current();
    SettingsWatch::start(move || {
        let Some(agent) = agent.upgrade() else { return };
        runtime.spawn(async move { files_changed(&agent).await });
    })
}

/// Has all live sessions apply the settings, and the front end show their problems.
pub(crate) async fn settings_changed(agent: &Agent) {
    let policies = Arc::clone(&agent.policies);
    if let Some(equipment) = off_thread(move || policies::equipment(&policies)).await {
        agent.engine.set_concurrency(equipment.concurrency);
        agent.search.set(equipment.provider);
    }
    agent.engine.inspect_plugins();
    let sessions = agent.engine.live_sessions();
    // Concurrently, so that a slow disk delays its own session alone.
    let looked = sessions.into_iter().map(|session| async move {
        session.gate().refresh().await;
        // An MCP server that is no longer allowed ends now, not with the next prompt.
        session.servers().refresh().await;
    });
    join_all(looked).await;
    if let Some(front_end) = agent.front_end.upgrade() {
        front_end.settings_changed();
    }
}

/// Applies changed settings files to models and sessions, and watches the files that they name now.
pub(crate) async fn files_changed(agent: &Arc<Agent>) {
    let (policies, own) = (Arc::clone(&agent.policies), agent.options.models());
    if let Some(models) = off_thread(move || policies::models(&policies, own)).await {
        agent.engine.replace_models(models).await;
    }
    settings_changed(agent).await;
    agent.watch_settings();
}

/// Requests the editor's settings from a client that answers `workspace/configuration`, and applies them. Returns at once.
pub(crate) fn pull_configuration(agent: &Arc<Agent>) {
    let Some(facts) = agent.connection.facts.get().filter(|facts| facts.configuration) else { return };
    let distinguish = facts.kode.user_settings;
    let sections: &[&str] = if distinguish { &[SECTION, USER_SECTION] } else { &[SECTION] };
    let item = |section: &&str| ConfigurationItem { scope_uri: None, section: Some((*section).to_owned()) };
    let items: Vec<_> = sections.iter().map(item).collect();
    let agent = Arc::clone(agent);
    // A task of its own owns the request: the service fails on an answer without a receiver.
    task::spawn(async move {
        match agent.connection.client.configuration(items).await {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                let (settings, user) = (answers.next().unwrap_or_default(), answers.next());
                configured(&agent, settings, user.filter(|_| distinguish)).await;
            }
            Err(error) => tracing::info!(%error, "the editor gives no configuration"),
        }
    });
}

/// Applies the settings of `workspace/didChangeConfiguration`; a client that answers `workspace/configuration` is asked
/// for them instead.
pub(crate) fn configuration_changed(agent: &Arc<Agent>, mut pushed: Value) {
    if agent.connection.facts.get().is_some_and(|facts| facts.configuration) {
        return pull_configuration(agent);
    }
    let settings = pushed.get_mut(SECTION).map(Value::take).unwrap_or_default();
    let agent = Arc::clone(agent);
    task::spawn(async move { configured(&agent, settings, None).await });
}

async fn configured(agent: &Agent, settings: Value, user: Option<Value>) {
    let object = |value: Value| if value.is_object() { value } else { Value::Null };
    let (settings, user) = (object(settings), user.map(object));
    let is_new = agent.policies.editor().change(|word: &mut EditorUpdate| {
        // The settings of `initialize` apply until the editor sends others.
        if !settings.is_null() {
            word.settings = settings;
        }
        if let Some(user) = user {
            word.user_settings = user;
        }
    });
    if is_new {
        settings_changed(agent).await;
    }
}

/// Runs work that waits for the disk; `None` when it panicked.
pub(super) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => {
            tracing::error!(%error, "work on settings broke off");
            None
        }
    }
}
