//! Notifies a client when the list of sessions has changed, by this server or another one.
//!
//! Rule: only a client that has listed sessions is notified. Polling takes at most a hundredth of the time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use kode_engine::agent::sessions::{ArchiveFilter, ListSessions, SessionPage, WorkspaceFilter};
use kode_engine::base::task;
use kode_protocol::{SessionListChanged, SessionListChangedParams};
use tokio::time::{Instant, sleep};

use super::Agent;

/// The least time between two polls of the list.
const PAUSE: Duration = Duration::from_secs(2);

/// The pause after a poll, as a multiple of its duration.
const REST: u32 = 100;

/// The number of newest sessions that are compared.
const LOOKED_AT: usize = 200;

/// Starts to poll the list for a client that receives events, once. The polling ends with the agent.
pub(crate) fn watch_list(agent: &Arc<Agent>) {
    let wants = agent.connection.facts.get().is_some_and(|facts| facts.kode.events);
    if !wants || agent.lists_sessions.set(()).is_err() {
        return;
    }
    let weak = Arc::downgrade(agent);
    task::spawn(async move {
        let mut known = None;
        while let Some(agent) = weak.upgrade().filter(|agent| !agent.connection.lifecycle.is_ending()) {
            let began = Instant::now();
            let now = look(&agent).await;
            if now.is_some() && known.is_some() && now != known {
                let params = SessionListChangedParams {};
                agent.connection.client.send_notification::<SessionListChanged>(params).await;
            }
            known = now.or(known);
            // The pause must not keep the agent alive.
            drop(agent);
            sleep(PAUSE.max(began.elapsed() * REST)).await;
        }
    });
}

/// A digest of the list; `None` when it could not be read.
async fn look(agent: &Arc<Agent>) -> Option<u64> {
    let lister = Arc::clone(agent);
    let listed = task::spawn_blocking(move || {
        let newest = ListSessions::newest(WorkspaceFilter::These(lister.folders()), LOOKED_AT);
        lister.engine.list_sessions(&ListSessions { archived: ArchiveFilter::Include, ..newest })
    });
    match listed.await {
        Ok(Ok(page)) => Some(in_short(&page)),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the list of sessions could not be made");
            None
        }
        Err(error) => {
            tracing::error!(%error, "listing sessions broke off");
            None
        }
    }
}

fn in_short(page: &SessionPage) -> u64 {
    let mut hasher = DefaultHasher::new();
    page.next.is_some().hash(&mut hasher);
    for session in &page.sessions {
        let presence = format!("{:?}", session.presence);
        (session.id.as_str(), &session.title, session.archived, presence).hash(&mut hasher);
    }
    hasher.finish()
}
