//! Sessions that work in a git worktree of their own: how it is made, and how their files, policy and sandbox follow from those
//! of the workspace.
//!
//! Rule: the session stays one of its workspace, in lists and settings. A worktree that is gone is made again when the session
//! is loaded; where that fails the session opens all the same, and its transcript can be read.

use std::sync::{Arc, Mutex};

use tokio_util::sync::CancellationToken;

use super::opened::OpenedSession;
use super::{Engine, NewSession};
use crate::conversation::WorktreeIsolation;
use crate::core::lock;
use crate::session::Session;
use crate::sessions::SessionError;
use crate::state::SessionState;
use kode_base::blocking;
use kode_base::ids::SessionId;
use kode_base::paths::AbsPath;
use kode_config::plugin::{Plugin, PluginId};
use kode_config::policy::{KeepRuleError, Policy, PolicySource};
use kode_config::settings::{TrustRequest, TrustState};
use kode_permission::Scope;
use kode_permission::rules::{Behavior, Rule};
use kode_process::shell::Shell;
use kode_process::worktree::{Worktree, WorktreeSpec};
use kode_text::workspace::Workspace;

/// The files and the policy of a session.
pub(super) struct SessionPlace {
    /// The files that it sees.
    pub(super) workspace: Arc<Workspace>,
    /// Its isolation in a worktree, where it works in one.
    pub(super) isolation: Option<Arc<WorktreeIsolation>>,
    /// Where its policy comes from.
    pub(super) policy: Arc<dyn PolicySource>,
}

impl Engine {
    /// Begins a session in a new git worktree of the workspace, at its newest commit.
    ///
    /// # Errors
    /// As [`Engine::new_session`], and [`SessionError::Worktree`].
    pub async fn new_session_in_worktree(
        &self,
        new: NewSession,
        cancel: &CancellationToken,
    ) -> Result<Arc<Session>, SessionError> {
        let id = SessionId::generate();
        let worktree = self.make_worktree(&new.roots, id.as_str(), cancel).await?;
        let engine = self.clone();
        blocking(move || engine.begin_session(id, new, Some(worktree))).await
    }

    /// The same session with its worktree made again, where that is gone.
    pub(super) async fn with_worktree(&self, mut opened: OpenedSession) -> OpenedSession {
        let Some(worktree) = opened.state.worktree.clone() else { return opened };
        if worktree.is_there().await {
            return opened;
        }
        let name = worktree.path.file_name().to_owned();
        match self.make_worktree(&opened.state.roots, &name, &CancellationToken::new()).await {
            Ok(made) => opened.state.worktree = Some(made),
            // The session says itself that its folder is gone.
            Err(error) => tracing::warn!(%error, path = %worktree.path, "a worktree is not made again"),
        }
        opened
    }

    async fn make_worktree(
        &self,
        roots: &[AbsPath],
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Worktree, SessionError> {
        let cwd = roots.first().cloned().ok_or(SessionError::NoFolder)?;
        let source = self.policies.of(roots);
        let sandbox = blocking(move || source.current().sandbox.clone()).await;
        let shell = Shell::new(cwd.clone()).withholding(self.secrets.clone());
        let (sandbox, folder, cwd) = (sandbox.as_ref(), &self.worktrees, &cwd);
        let spec = WorktreeSpec { shell: &shell, sandbox, may_run_foreign: false, folder, cwd };
        Ok(Worktree::make(spec, name, cancel).await?)
    }

    /// The files and the policy of a session that begins or is loaded.
    pub(super) fn place_of(&self, state: &SessionState, workspace: Arc<Workspace>) -> SessionPlace {
        let policy = self.policies.of(&state.roots);
        let Some(worktree) = state.worktree.clone() else {
            return SessionPlace { workspace, isolation: None, policy };
        };
        let isolation = WorktreeIsolation::of_session(&workspace, worktree, self.save_before_commands);
        let isolation = Arc::new(isolation);
        let policy =
            WorktreePolicy { outer: policy, isolation: Arc::clone(&isolation), known: Mutex::default() };
        let workspace = Arc::clone(&isolation.workspace);
        SessionPlace { workspace, isolation: Some(isolation), policy: Arc::new(policy) }
    }
}

/// A policy of a workspace and the one that was made of it.
type DerivedPolicy = (Arc<Policy>, Arc<Policy>);

/// The policy of a session in a worktree: that of the workspace, with its rules and its sandbox moved there. Answers are kept
/// where the workspace keeps them.
struct WorktreePolicy {
    outer: Arc<dyn PolicySource>,
    isolation: Arc<WorktreeIsolation>,
    known: Mutex<Option<DerivedPolicy>>,
}

impl PolicySource for WorktreePolicy {
    fn current(&self) -> Arc<Policy> {
        let outer = self.outer.current();
        let mut known = lock(&self.known);
        if let Some((of, own)) = &*known
            && Arc::ptr_eq(of, &outer)
        {
            return Arc::clone(own);
        }
        let own = Arc::new(self.isolation.policy(&outer));
        *known = Some((outer, Arc::clone(&own)));
        own
    }

    fn unchanged(&self) -> Option<Arc<Policy>> {
        let outer = self.outer.unchanged()?;
        let known = lock(&self.known);
        known.as_ref().filter(|(of, _)| Arc::ptr_eq(of, &outer)).map(|(_, own)| Arc::clone(own))
    }

    fn plugins_in_use(&self) -> Vec<Arc<Plugin>> {
        self.outer.plugins_in_use()
    }

    fn can_keep(&self) -> bool {
        self.outer.can_keep()
    }

    fn keep(&self, scope: Scope, behavior: Behavior, rule: &Rule) -> Result<AbsPath, KeepRuleError> {
        self.outer.keep(scope, behavior, rule)
    }

    fn remove(&self, file: &AbsPath, behavior: Behavior, rule: &Rule) -> Result<bool, KeepRuleError> {
        self.outer.remove(file, behavior, rule)
    }

    fn switch_plugin(&self, plugin: &PluginId, is_on: bool) -> Result<AbsPath, KeepRuleError> {
        self.outer.switch_plugin(plugin, is_on)
    }

    fn is_approved(&self, trust_request: &TrustRequest) -> bool {
        self.outer.is_approved(trust_request)
    }

    fn is_put_off(&self, trust_request: &TrustRequest) -> bool {
        self.outer.is_put_off(trust_request)
    }

    fn approve_trust_requests(&self, trust_requests: &[TrustRequest]) -> Result<(), KeepRuleError> {
        self.outer.approve_trust_requests(trust_requests)
    }

    fn trust(&self) -> TrustState {
        self.outer.trust()
    }

    fn approve(&self, digests: &[String]) -> Result<usize, KeepRuleError> {
        self.outer.approve(digests)
    }

    fn revoke(&self, digests: &[String]) -> Result<usize, KeepRuleError> {
        self.outer.revoke(digests)
    }

    fn dismiss(&self, digests: &[String]) -> Result<(), KeepRuleError> {
        self.outer.dismiss(digests)
    }
}
