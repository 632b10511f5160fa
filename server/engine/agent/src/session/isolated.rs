//! A sub-agent that works in a git worktree of its own: what it sees of the files, and what the gate goes by for its calls.
//!
//! Rule: in its worktree it may do what it might do in the workspace; the workspace it may read and never change, whatever rules
//! and modes allow. What refuses in the workspace refuses in the worktree as well.

use std::sync::{Arc, Mutex};

use crate::session::guard::Judged;
use crate::session::{Session, lock};
use kode_base::call::{Exposure, MayRead, ToolKind, Touch};
use kode_base::paths::{AbsPath, Target};
use kode_config::in_force::{EffectivePolicy, PolicyView};
use kode_config::policy::Policy;
use kode_permission::gate::{Confinement, GateCase};
use kode_permission::rules::PlacedRule;
use kode_permission::rules::places::real_on_disk;
use kode_permission::{GateDecision, Verdict};
use kode_process::sandbox::Sandbox;
use kode_process::worktree::Worktree;
use kode_text::workspace::Workspace;

/// Where such a sub-agent works.
pub(crate) struct Isolated {
    /// Its worktree.
    pub(crate) worktree: Worktree,
    /// The files as it sees them: the folders of the workspace, as they are in the worktree.
    pub(crate) workspace: Arc<Workspace>,
    /// What it must not change: the workspace, and the files of whoever called it.
    outside: [Arc<Workspace>; 2],
    /// What held commands in the workspace last, and what holds its own in its place.
    sandbox: Mutex<Option<(Arc<Sandbox>, Arc<Sandbox>)>>,
    /// What the gate went by last in the workspace, and what in its place.
    in_force: Mutex<Option<(Arc<EffectivePolicy>, Arc<EffectivePolicy>)>>,
}

impl Isolated {
    /// The place of a sub-agent in that worktree, who was called by somebody that sees these files.
    pub(crate) fn new(session: &Session, caller: &Arc<Workspace>, worktree: Worktree) -> Self {
        let within = |folder: &AbsPath| worktree.place_of(&real_on_disk(folder));
        let whole = || worktree.path.clone();
        let cwd = within(&caller.cwd()).unwrap_or_else(whole);
        let mut roots: Vec<_> = caller.roots().iter().filter_map(within).collect();
        if roots.is_empty() {
            roots.push(whole());
        }
        let workspace = Arc::new(session.workspace.elsewhere(roots, cwd));
        let outside = [Arc::clone(&session.workspace), Arc::clone(caller)];
        Self { worktree, workspace, outside, sandbox: Mutex::default(), in_force: Mutex::default() }
    }

    /// What holds its commands, made from what holds those in the workspace: they write in the worktree, and in git's own files.
    fn sandbox(&self, outer: &Arc<Sandbox>) -> std::io::Result<Arc<Sandbox>> {
        let mut known = lock(&self.sandbox);
        if let Some((of, own)) = &*known
            && Arc::ptr_eq(of, outer)
        {
            return Ok(Arc::clone(own));
        }
        let all = self.outside.iter().flat_map(|outside| outside.roots().iter().chain(outside.real_roots()));
        let roots: Vec<_> = all.collect();
        let mut writable = self.workspace.roots().to_vec();
        writable.push(self.worktree.git.clone());
        // What the user has allowed besides the workspace, where it lies neither in it nor around it.
        let beside = outer
            .policy()
            .writable
            .iter()
            .filter(|folder| !roots.iter().any(|root| folder.is_within(root) || root.is_within(folder)));
        writable.extend(beside.cloned());
        let outside: Vec<_> =
            roots.into_iter().filter(|root| !self.worktree.path.is_within(root)).cloned().collect();
        let own = Arc::new(outer.writing_in(writable, &outside)?);
        *known = Some((Arc::clone(outer), Arc::clone(&own)));
        Ok(own)
    }

    /// What the gate goes by for its calls, made from what it goes by in the workspace.
    fn in_force(&self, outer: &Arc<EffectivePolicy>) -> Arc<EffectivePolicy> {
        let mut known = lock(&self.in_force);
        if let Some((of, own)) = &*known
            && Arc::ptr_eq(of, outer)
        {
            return Arc::clone(own);
        }
        let mut policy = Policy::clone(&outer.policy);
        let moved = policy.rules.iter().filter_map(|rule| {
            let root = self.worktree.place_of(&real_on_disk(rule.root.as_ref()?))?;
            Some(PlacedRule { root: Some(root), ..rule.clone() })
        });
        let moved: Vec<_> = moved.collect();
        policy.rules.extend(moved);
        if let Some(sandbox) = policy.sandbox.take() {
            match self.sandbox(&sandbox) {
                Ok(own) => policy.sandbox = Some(own),
                Err(error) => policy.confinement = Confinement::Missing(error.to_string()),
            }
        }
        let own = Arc::new(outer.elsewhere(Arc::new(policy), &self.workspace.cwd()));
        *known = Some((Arc::clone(outer), Arc::clone(&own)));
        own
    }

    /// The same picture as seen from the worktree.
    pub(crate) fn view(&self, outer: &PolicyView) -> PolicyView {
        PolicyView { in_force: self.in_force(&outer.in_force), workspace: Arc::clone(&self.workspace) }
    }

    /// Judges a call of its sub-agent: `in_workspace` is what would be said of it there.
    pub(crate) fn judge(
        &self,
        case: &GateCase<'_>,
        in_workspace: Judged,
        own: impl FnOnce() -> Judged,
    ) -> Judged {
        let is_refused =
            in_workspace.verdict.decision == GateDecision::Deny && in_workspace.verdict.rule.is_some();
        // It sees the workspace as whoever called it does.
        let is_look = case.kind == ToolKind::ReadOnly && in_workspace.verdict.decision == GateDecision::Allow;
        if is_refused || is_look {
            return in_workspace;
        }
        match case.touches.iter().find_map(|touch| self.leaves(touch)) {
            Some(refusal) => Judged { verdict: refusal, sandbox: None },
            None => own(),
        }
    }

    /// Why a call may not do that, where it would change the workspace itself. What counts is where a write ends: a link in the
    /// worktree may lead into the workspace.
    fn leaves(&self, touch: &Touch) -> Option<Verdict> {
        let Touch::Write(target @ Target::File(path)) = touch else { return None };
        let real = self.workspace.real(target);
        let is_in = |workspace: &Workspace, place: &AbsPath| {
            workspace.roots().iter().chain(workspace.real_roots()).any(|root| place.is_within(root))
        };
        let ends_in = |workspace: &Workspace| real.file().is_some_and(|real| is_in(workspace, real));
        if ends_in(&self.workspace)
            || !self.outside.iter().any(|outside| ends_in(outside) || is_in(outside, path))
        {
            return None;
        }
        let own = self.worktree.place_of(&real_on_disk(path));
        let instead =
            own.map(|own| format!("; the same file of the worktree is `{own}`")).unwrap_or_default();
        Some(Verdict::deny(format!(
            "this sub-agent works in the worktree `{}` and does not change the workspace itself{instead}",
            self.worktree.path
        )))
    }
}

/// What may be looked into in a worktree: what may be there, and what may be in the workspace.
pub(crate) fn either(one: MayRead, other: MayRead) -> MayRead {
    Arc::new(move |target: &Target, look: Exposure| one(target, look) || other(target, look))
}
