//! Settings of a running agent: the files that are watched, and the settings of the editor.
//!
//! Rule: files are read off the threads that answer clients, and a change is applied by all live sessions before the front
//! end shows it.

use std::sync::{Arc, Weak};

use futures::future::join_all;
use kode_engine::config::settings::EditorUpdate;
use lsp_types::ConfigurationItem;
use serde_json::Value;
use tokio::runtime::Handle;

use super::Agent;
use super::watching::SettingsWatch;
use crate::policies;

/// The section of the editor's configuration that is asked for.
const SECTION: &str = "kode-ls";
/// That of the user's own, for clients that tell them apart.
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
    agent.engine.look_at_plugins();
    let sessions = agent.engine.live_sessions();
    // Beside each other: where the disk of one is slow, the others need not wait for it.
    let looked = sessions.into_iter().map(|session| async move {
        session.look_at_settings().await;
        // A server that must not run any more ends now, and not with the next prompt.
        session.servers().refresh().await;
    });
    join_all(looked).await;
    if let Some(front_end) = agent.front_end.upgrade() {
        front_end.settings_changed();
    }
}

/// Takes in that settings files have changed: models, sessions, diagnostics, and the files that are watched now.
pub(crate) async fn files_changed(agent: &Arc<Agent>) {
    let (policies, own) = (Arc::clone(&agent.policies), agent.options.models());
    if let Some(models) = off_thread(move || policies::models(&policies, own)).await {
        agent.engine.replace_models(models).await;
    }
    settings_changed(agent).await;
    agent.watch_settings();
}

/// Asks the editor for its settings, where it can be asked, and takes them in. Nothing waits for it.
pub(crate) fn pull_configuration(agent: &Arc<Agent>) {
    let Some(facts) = agent.connection.facts.get().filter(|facts| facts.configuration) else { return };
    let tells_apart = facts.kode.user_settings;
    let sections: &[&str] = if tells_apart { &[SECTION, USER_SECTION] } else { &[SECTION] };
    let item = |section: &&str| ConfigurationItem { scope_uri: None, section: Some((*section).to_owned()) };
    let items: Vec<_> = sections.iter().map(item).collect();
    let agent = Arc::clone(agent);
    // The request is owned by a task of its own: the service cannot bear an answer nobody waits for.
    tokio::spawn(async move {
        match agent.connection.client.configuration(items).await {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                let (settings, user) = (answers.next().unwrap_or_default(), answers.next());
                configured(&agent, settings, user.filter(|_| tells_apart)).await;
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
    tokio::spawn(async move { configured(&agent, settings, None).await });
}

async fn configured(agent: &Agent, settings: Value, user: Option<Value>) {
    let object = |value: Value| if value.is_object() { value } else { Value::Null };
    let (settings, user) = (object(settings), user.map(object));
    let is_new = agent.policies.editor().change(|word: &mut EditorUpdate| {
        // What came with `initialize` counts as long as the editor says nothing else.
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

/// Does something that waits for the disk; `None` when it broke off.
pub(super) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => {
            tracing::error!(%error, "work on settings broke off");
            None
        }
    }
}
