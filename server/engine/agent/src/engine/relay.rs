//! The writer's side of the relay: it notes the requests that wait for the user, and accepts answers of other processes.
//!
//! Rule: a relayed answer takes the same way as one of this process, so the first answer wins.

use std::sync::Arc;

use crate::history::relay::{PendingRequests, RelayError, RelayedAnswer};
use crate::session::Session;
use kode_base::blocking;
use kode_base::ids::{LeaseId, QuestionId};
use kode_base::question::Reply;
use kode_journal::lease::Lease;

/// Notes the requests of a session that wait now, for processes that follow it.
pub(super) async fn write_pending(
    session: &Arc<Session>,
    lease: &Lease,
    mut pending: PendingRequests,
) -> PendingRequests {
    let (session, lease) = (Arc::clone(session), lease.clone());
    blocking(move || {
        let requests = session.requests();
        pending.wait(requests.permissions(), requests.questions());
        if let Err(error) = lease.write_pending(&pending) {
            // The user can still answer in this process.
            tracing::warn!(%error, "the requests that wait could not be noted for processes that follow the session");
        }
        pending
    })
    .await
}

/// Delivers the answers that other processes relayed to the writer of a session.
pub(super) async fn deliver_answers(session: &Arc<Session>, lease: &Lease, writer: &LeaseId) {
    let (notes, to) = (lease.clone(), writer.clone());
    for (id, answer) in blocking(move || notes.take_answers::<RelayedAnswer>(&to)).await {
        let outcome = match answer {
            RelayedAnswer::Permission { id, answer } => {
                session.requests().respond(&id, answer).map_err(RelayError::of)
            }
            RelayedAnswer::Question { id, reply } => deliver_reply(session, &id, reply).await,
        };
        let notes = lease.clone();
        blocking(move || notes.write_outcome(&id, &outcome.err())).await;
    }
}

async fn deliver_reply(session: &Arc<Session>, id: &QuestionId, reply: Reply) -> Result<(), RelayError> {
    if let Some(mode) = reply.mode {
        let allowed = session.gate().allow_mode(mode).await;
        allowed.map_err(|error| RelayError::Unfit { message: error.to_string() })?;
    }
    session.requests().reply(id, reply).map_err(RelayError::of)
}
