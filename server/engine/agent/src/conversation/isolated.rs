//! The isolation of a session or sub-agent that works in a git worktree of its own: the files it sees, and its policy and
//! sandbox.
//!
//! Rule: in its worktree it may do what it might do in the workspace; the workspace it may read and never change, whatever
//! rules and modes allow.

use std::sync::{Arc, Mutex};

use crate::core::lock;
use kode_base::call::Touch;
use kode_base::paths::{AbsPath, Target};
use kode_config::ignore_files;
use kode_config::in_force::{EffectivePolicy, PolicyView};
use kode_config::policy::Policy;
use kode_permission::Verdict;
use kode_permission::gate::Confinement;
use kode_permission::rules::PlacedRule;
use kode_permission::rules::places::real_on_disk;
use kode_process::sandbox::Sandbox;
use kode_process::worktree::Worktree;
use kode_text::workspace::Workspace;

/// The isolation of a session or sub-agent.
pub(crate) struct WorktreeIsolation {
    /// Its name in a refusal.
    subject: &'static str,
    /// Its worktree.
    pub(crate) worktree: Worktree,
    /// The files as it sees them: the folders of the workspace, as they are in the worktree.
    pub(crate) workspace: Arc<Workspace>,
    /// The files it must not change: the workspace, and the files of its caller.
    outside: [Arc<Workspace>; 2],
    /// The last sandbox of the workspace, and the one made from it.
    sandbox: Mutex<Option<(Arc<Sandbox>, Arc<Sandbox>)>>,
    /// The last picture of the workspace, and the one made from it.
    in_force: Mutex<Option<(Arc<EffectivePolicy>, Arc<EffectivePolicy>)>>,
}

impl WorktreeIsolation {
    /// The isolation of a sub-agent in that worktree, called by a conversation that sees the files of `caller`.
    pub(crate) fn new(workspace: &Arc<Workspace>, caller: &Arc<Workspace>, worktree: Worktree) -> Self {
        let own = Arc::new(in_worktree(workspace, caller, &worktree));
        let outside = [Arc::clone(workspace), Arc::clone(caller)];
        Self::of("this sub-agent", worktree, own, outside)
    }

    /// The isolation of a session of that workspace. `saves` says whether open documents are saved before its commands run.
    pub(crate) fn of_session(workspace: &Arc<Workspace>, worktree: Worktree, saves: bool) -> Self {
        let own = in_worktree(workspace, workspace, &worktree).saving_before_commands(saves);
        Self::of("this session", worktree, Arc::new(own), [Arc::clone(workspace), Arc::clone(workspace)])
    }

    fn of(
        subject: &'static str,
        worktree: Worktree,
        workspace: Arc<Workspace>,
        outside: [Arc<Workspace>; 2],
    ) -> Self {
        let (sandbox, in_force) = (Mutex::default(), Mutex::default());
        Self { subject, worktree, workspace, outside, sandbox, in_force }
    }

    /// The sandbox of the workspace as it was when a policy was last made; `None` without one.
    pub(crate) fn outer_sandbox(&self) -> Option<Arc<Sandbox>> {
        lock(&self.sandbox).as_ref().map(|(outer, _)| Arc::clone(outer))
    }

    /// The workspace that the worktree was made of.
    pub(crate) fn outer(&self) -> &Arc<Workspace> {
        &self.outside[0]
    }

    /// The view of the workspace as seen from the worktree.
    pub(crate) fn view(&self, outer: &PolicyView) -> PolicyView {
        PolicyView {
            in_force: self.in_force(&outer.in_force),
            workspace: Arc::clone(&self.workspace),
            ignored: outer.ignored.clone(),
        }
    }

    /// The refusal of a write that would change the workspace itself. The place where the write ends decides: a link in the
    /// worktree may lead into the workspace.
    pub(crate) fn refuses(&self, touch: &Touch) -> Option<Verdict> {
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
            "{} works in the worktree `{}` and does not change the workspace itself{instead}",
            self.subject, self.worktree.path
        )))
    }

    /// The sandbox of its commands, made from that of the workspace: they write in the worktree, and in git's own files.
    fn sandbox(&self, outer: &Arc<Sandbox>, is_read_only: bool) -> std::io::Result<Arc<Sandbox>> {
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
        // Folders that the user has allowed besides the workspace, where they lie neither in it nor around it.
        let beside = outer
            .policy()
            .writable
            .iter()
            .filter(|folder| !roots.iter().any(|root| folder.is_within(root) || root.is_within(folder)));
        writable.extend(beside.cloned());
        let outside: Vec<_> =
            roots.into_iter().filter(|root| !self.worktree.path.is_within(root)).cloned().collect();
        let own = match is_read_only {
            true => {
                let seen: Vec<_> = writable.into_iter().chain(outside).collect();
                Arc::new(outer.writing_in(Vec::new(), &seen)?)
            }
            false => Arc::new(outer.writing_in(writable, &outside)?),
        };
        *known = Some((Arc::clone(outer), Arc::clone(&own)));
        Ok(own)
    }

    /// The picture that its calls are judged by, made from that of the workspace.
    fn in_force(&self, outer: &Arc<EffectivePolicy>) -> Arc<EffectivePolicy> {
        let mut known = lock(&self.in_force);
        if let Some((of, own)) = &*known
            && Arc::ptr_eq(of, outer)
        {
            return Arc::clone(own);
        }
        let policy = Arc::new(self.policy(&outer.policy));
        let own = Arc::new(outer.elsewhere(policy, &self.workspace.cwd()));
        *known = Some((Arc::clone(outer), Arc::clone(&own)));
        own
    }

    /// The policy in the worktree, made from that of the workspace.
    pub(crate) fn policy(&self, outer: &Policy) -> Policy {
        let mut policy = Policy::clone(outer);
        let moved = policy.rules.iter().filter_map(|rule| {
            let root = self.worktree.place_of(&real_on_disk(rule.root.as_ref()?))?;
            Some(PlacedRule { root: Some(root), ..rule.clone() })
        });
        let moved: Vec<_> = moved.collect();
        policy.rules.extend(moved);
        if let Some(sandbox) = policy.sandbox.take() {
            match self.sandbox(&sandbox, policy.is_read_only) {
                Ok(own) => policy.sandbox = Some(own),
                Err(error) => policy.confinement = Confinement::Missing(error.to_string()),
            }
        }
        policy
    }
}

/// The files of a workspace as they are in the worktree, for a conversation that sees those of `caller`.
fn in_worktree(workspace: &Workspace, caller: &Workspace, worktree: &Worktree) -> Workspace {
    let within = |folder: &AbsPath| worktree.place_of(&real_on_disk(folder));
    let whole = || worktree.path.clone();
    let cwd = within(&caller.cwd()).unwrap_or_else(whole);
    let mut roots: Vec<_> = caller.roots().iter().filter_map(within).collect();
    if roots.is_empty() {
        roots.push(whole());
    }
    for root in workspace.real_roots() {
        within(root).iter().for_each(|copy| ignore_files::count_in_copy(copy, root));
    }
    workspace.elsewhere(roots, cwd)
}
