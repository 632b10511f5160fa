//! Tells a client that the list of sessions is another one than it was: other servers change it too.
//!
//! Rule: only who has listed sessions is told, with nothing but that; looking never takes more than a hundredth of the time.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use kode_engine::agent::sessions::{Archived, ListSessions, SessionPage, Workspaces};
use kode_protocol::{SessionListChanged, SessionListChangedParams};
use tokio::time::{Instant, sleep};

use super::Agent;

/// The least time between two looks at the list.
const PAUSE: Duration = Duration::from_secs(2);

/// How many times as long as a look takes is waited before the next.
const REST: u32 = 100;

/// So many of the newest sessions are looked at.
const LOOKED_AT: usize = 200;

/// Watches the list from now on, where the client wants to hear of events. It ends with the agent.
pub(crate) fn watch_list(agent: &Arc<Agent>) {
    let wants = agent.connection.facts.get().is_some_and(|facts| facts.kode.events);
    if !wants || agent.lists_sessions.set(()).is_err() {
        return;
    }
    let weak = Arc::downgrade(agent);
    tokio::spawn(async move {
        let mut known = None;
        while let Some(agent) = weak.upgrade().filter(|agent| !agent.connection.lifecycle.is_ending()) {
            let began = Instant::now();
            let now = look(&agent).await;
            if now.is_some() && known.is_some() && now != known {
                let params = SessionListChangedParams {};
                agent.connection.client.send_notification::<SessionListChanged>(params).await;
            }
            known = now.or(known);
            // Who waits here must not keep the agent.
            drop(agent);
            sleep(PAUSE.max(began.elapsed() * REST)).await;
        }
    });
}

/// The list in short; `None` when it could not be made.
async fn look(agent: &Arc<Agent>) -> Option<u64> {
    let lister = Arc::clone(agent);
    let listed = tokio::task::spawn_blocking(move || {
        let newest = ListSessions::newest(Workspaces::These(lister.folders()), LOOKED_AT);
        lister.engine.list_sessions(&ListSessions { archived: Archived::Include, ..newest })
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
