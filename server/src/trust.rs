//! What the user says about what files of the workspace ask for, from whichever surface, and what the editor says of settings.
//!
//! Rule: files are read and written off the threads that answer clients; whatever changes is looked at by all live sessions
//! before anybody is told that it is done.

use std::sync::Arc;

use futures::future::join_all;
use kode_engine::base::paths::AbsPath;
use kode_engine::config::policy::{KeepRuleError, PolicySource};
use kode_engine::config::settings::{EditorUpdate, TrustRequest, TrustState};
use lsp_types::ConfigurationItem;
use serde_json::Value;

use crate::agent::Agent;
use crate::backend::Shared;
use crate::plain::review::publish::ReviewPublisher;
use crate::policies;

/// The section of the editor's configuration that is asked for.
const SECTION: &str = "kode-ls";
/// That of the user's own, for clients that tell them apart.
const USER_SECTION: &str = "kode-ls.user";

/// What the user does about something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// It counts from now on.
    Approve,
    /// It counts no more.
    Revoke,
    /// It is not asked about again until it changes.
    Dismiss,
}

/// What files of a workspace ask for.
pub(crate) async fn state(agent: &Agent, roots: Vec<AbsPath>) -> TrustState {
    let (policies, wishes) = (Arc::clone(&agent.policies), wishes(agent, &roots).await);
    let state = off_thread(move || policies.of_workspace(&roots).with_wishes(wishes).trust());
    state.await.unwrap_or_default()
}

/// What agents, skills and commands of a workspace ask for.
async fn wishes(agent: &Agent, roots: &[AbsPath]) -> Vec<TrustRequest> {
    agent.engine.extensions(roots).now().await.wishes().cloned().collect()
}

/// Does it about what these digests stand for, and says how many still stood in the files.
///
/// # Errors
/// [`KeepRuleError`]; nothing is changed then.
pub(crate) async fn act(
    agent: &Agent,
    roots: Vec<AbsPath>,
    act: Act,
    digests: Vec<String>,
) -> Result<usize, KeepRuleError> {
    let (policies, wishes) = (Arc::clone(&agent.policies), wishes(agent, &roots).await);
    let done = off_thread(move || {
        let policy = policies.of_workspace(&roots).with_wishes(wishes);
        match act {
            Act::Approve => policy.approve(&digests),
            Act::Revoke => policy.revoke(&digests),
            Act::Dismiss => policy.dismiss(&digests).map(|()| digests.len()),
        }
    });
    let done =
        done.await.unwrap_or_else(|| Err(KeepRuleError::File("the work on it broke off".to_owned())))?;
    settings_changed(agent).await;
    Ok(done)
}

/// Has all live sessions look at the settings, and the editor told what is wrong with them.
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
    ReviewPublisher::settings_changed(&agent.shared);
}

/// Takes in that settings files have changed: models, sessions, diagnostics, and the files that are watched now.
pub(crate) async fn files_changed(agent: &Arc<Agent>) {
    let (policies, own) = (Arc::clone(&agent.policies), agent.own_models());
    if let Some(models) = off_thread(move || policies::models(&policies, own)).await {
        agent.engine.replace_models(models).await;
    }
    settings_changed(agent).await;
    agent.watch_settings();
}

/// Asks the editor for its settings, where it can be asked, and takes them in. Nothing waits for it.
pub(crate) fn pull_configuration(agent: &Arc<Agent>) {
    let Some(facts) = agent.shared.facts.get().filter(|facts| facts.configuration) else { return };
    let tells_apart = facts.kode.user_settings;
    let sections: &[&str] = if tells_apart { &[SECTION, USER_SECTION] } else { &[SECTION] };
    let item = |section: &&str| ConfigurationItem { scope_uri: None, section: Some((*section).to_owned()) };
    let items: Vec<_> = sections.iter().map(item).collect();
    let agent = Arc::clone(agent);
    // The request is owned by a task of its own: the service cannot bear an answer nobody waits for.
    tokio::spawn(async move {
        match agent.shared.client.configuration(items).await {
            Ok(answers) => {
                let mut answers = answers.into_iter();
                let (settings, user) = (answers.next().unwrap_or_default(), answers.next());
                configured(&agent, settings, user.filter(|_| tells_apart)).await;
            }
            Err(error) => tracing::info!(%error, "the editor gives no configuration"),
        }
    });
}

/// Takes in what the editor pushes, where it cannot be asked.
pub(crate) fn configuration_changed(shared: &Arc<Shared>, mut pushed: Value) {
    let Some(agent) = shared.live_agent().cloned() else { return };
    if shared.facts.get().is_some_and(|facts| facts.configuration) {
        return pull_configuration(&agent);
    }
    let settings = pushed.get_mut(SECTION).map(Value::take).unwrap_or_default();
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
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => {
            tracing::error!(%error, "work on settings broke off");
            None
        }
    }
}
