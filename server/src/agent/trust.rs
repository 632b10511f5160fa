//! The user's decisions about what files of the workspace request, from every front end.
//!
//! Rule: files are read and written off the threads that answer clients. All live sessions apply a decision before the
//! request that made it is answered.

use std::sync::Arc;

use kode_engine::base::paths::AbsPath;
use kode_engine::config::policy::{KeepRuleError, PolicySource};
use kode_engine::config::settings::{TrustRequest, TrustState};

use super::Agent;
use super::settings::{off_thread, settings_changed};

/// The user's decision about a trust request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrustDecision {
    /// It takes effect.
    Approve,
    /// It no longer takes effect.
    Revoke,
    /// It is not offered again until it changes.
    Dismiss,
}

/// The pending and approved trust requests of a workspace.
pub(crate) async fn state(agent: &Agent, roots: Vec<AbsPath>) -> TrustState {
    let (policies, trust_requests) = (Arc::clone(&agent.policies), trust_requests(agent, &roots).await);
    let state = off_thread(move || policies.of_workspace(&roots).with_trust_requests(trust_requests).trust());
    state.await.unwrap_or_default()
}

/// The trust requests of agents, skills and commands of a workspace.
async fn trust_requests(agent: &Agent, roots: &[AbsPath]) -> Vec<TrustRequest> {
    agent.engine.extensions(roots).now().await.trust_requests().cloned().collect()
}

/// Applies a decision to the requests with these digests. Returns the number of those that are still in the files.
///
/// # Errors
/// [`KeepRuleError`]; nothing is changed then.
pub(crate) async fn act(
    agent: &Agent,
    roots: Vec<AbsPath>,
    act: TrustDecision,
    digests: Vec<String>,
) -> Result<usize, KeepRuleError> {
    let (policies, trust_requests) = (Arc::clone(&agent.policies), trust_requests(agent, &roots).await);
    let done = off_thread(move || {
        let policy = policies.of_workspace(&roots).with_trust_requests(trust_requests);
        match act {
            TrustDecision::Approve => policy.approve(&digests),
            TrustDecision::Revoke => policy.revoke(&digests),
            TrustDecision::Dismiss => policy.dismiss(&digests).map(|()| digests.len()),
        }
    });
    let done =
        done.await.unwrap_or_else(|| Err(KeepRuleError::File("the work on it broke off".to_owned())))?;
    settings_changed(agent).await;
    Ok(done)
}
