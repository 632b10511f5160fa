//! The settings in force for one session: policy, standing permissions and equipment, compiled for the gate.
//!
//! Rule: a value never changes; every verdict is taken from one of them, and a change of the settings makes a new one.

use std::sync::Arc;

use crate::hooks::config::Hooks;
use crate::ignore_files::IgnoreLook;
use crate::policy::Policy;
use kode_base::call::{ReadCheck, Touch};
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, Target};
use kode_command::analyse_in;
use kode_permission::equipment::Equipment;
use kode_permission::gate::{self, Circumstances, GateCase};
use kode_permission::rules::{
    Behavior, PathBases, PlacedRule, Rule, RuleSet, RuleSource, SettingsLayer, SettingsProblem,
};
use kode_permission::{EditDelivery, Grant, Verdict};
use kode_process::sandbox::Sandbox;
use kode_text::workspace::Workspace;
use kode_text::workspace::real_paths::RealPaths;

/// The basis of the gate, until the policy or a standing answer changes.
#[derive(Clone, Debug)]
pub struct EffectivePolicy {
    /// The settled rules.
    pub policy: Arc<Policy>,
    /// Its rules and those of this session's standing answers, ready for use.
    pub rules: RuleSet,
    /// The invalid rules.
    pub problems: Vec<SettingsProblem>,
    /// The hooks that are declared, ready to be looked up.
    pub hooks: Arc<Hooks>,
    /// The session's standing answers.
    pub grants: Vec<Grant>,
    /// The equipment of the turn's skills and commands.
    pub equipment: Equipment,
    /// The folder that relative patterns were read in.
    pub cwd: AbsPath,
    /// The home folder.
    pub home: Option<AbsPath>,
    /// The session's own folders, links followed.
    pub own: Vec<AbsPath>,
    /// The profile of the sandbox that the policy was made with; `None` for that of the settings.
    pub profile: Option<String>,
}

/// The session's addition to the policy.
#[derive(Clone, Debug)]
pub struct SessionAdditions {
    /// The session's standing permissions.
    pub grants: Vec<Grant>,
    /// The equipment of the turn's skills and commands.
    pub equipment: Equipment,
    /// The folder that relative patterns are read in.
    pub cwd: AbsPath,
    /// The profile of the sandbox.
    pub profile: Option<String>,
}

/// The basis for judging a call: the rules in force, and the files that it can see.
#[derive(Clone)]
pub struct PolicyView {
    /// The basis of the gate.
    pub in_force: Arc<EffectivePolicy>,
    /// The files.
    pub workspace: Arc<Workspace>,
    /// A view of the ignore files that calls judged together share; `None` for one of the call's own.
    pub ignored: Option<Arc<IgnoreLook>>,
}

impl EffectivePolicy {
    /// Whether this is what the session adds to it.
    pub fn has(&self, added: &SessionAdditions) -> bool {
        self.grants == added.grants
            && self.equipment == added.equipment
            && self.cwd == added.cwd
            && self.profile == added.profile
    }

    /// Whether the other picture is made of the same.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.policy, &other.policy)
            && self.grants == other.grants
            && self.equipment == other.equipment
            && self.cwd == other.cwd
    }

    /// The mode that counts: one that settings have switched off does not.
    pub fn mode(&self, mode: Mode) -> Mode {
        self.policy.allow_mode(mode).unwrap_or_default()
    }

    /// The same picture with more rules of a session.
    pub fn with_rules(&self, rules: &[String], cwd: &AbsPath) -> Self {
        let mut grants = self.grants.clone();
        grants.extend(rules.iter().cloned().map(Grant::Rule));
        let made = Self::new(Arc::clone(&self.policy), &grants, &self.equipment, cwd);
        self.like(made)
    }

    /// The same picture with more that a skill or command declares.
    pub fn with_equipment(&self, more: &Equipment, cwd: &AbsPath) -> Self {
        let mut equipment = self.equipment.clone();
        equipment.take(more.clone());
        let made = Self::new(Arc::clone(&self.policy), &self.grants, &equipment, cwd);
        self.like(made)
    }

    /// The same picture without anything that allows: no rule, and no answer of the user's.
    pub fn without_allowance(&self) -> Self {
        let mut policy = Policy::clone(&self.policy);
        policy.rules.retain(|rule| rule.behavior != Behavior::Allow);
        let equipment = Equipment { allow: Vec::new(), ..self.equipment.clone() };
        let made = Self::new(Arc::new(policy), &[], &equipment, &self.cwd);
        self.like(made)
    }

    /// The same picture in another folder, by another policy that was made of this one's.
    pub fn elsewhere(&self, policy: Arc<Policy>, cwd: &AbsPath) -> Self {
        let made = Self::new(policy, &self.grants, &self.equipment, cwd);
        self.like(made)
    }

    /// Makes rules ready for use.
    pub fn new(policy: Arc<Policy>, grants: &[Grant], equipment: &Equipment, cwd: &AbsPath) -> Self {
        let home = std::env::home_dir().and_then(|home| AbsPath::new(home).ok());
        let mut rules = policy.rules.clone();
        rules.extend(grants.iter().filter_map(session_rule));
        rules.extend(equipment.rules());
        let (rules, mut problems) = RuleSet::new(rules, &PathBases::on_disk(cwd, home.as_ref()));
        let rules = rules.in_order(policy.order);
        problems.extend(policy.problems.iter().cloned());
        let (grants, equipment, cwd) = (grants.to_vec(), equipment.clone(), cwd.clone());
        let (hooks, own, profile) = (Arc::default(), Vec::new(), None);
        Self { policy, rules, problems, hooks, grants, equipment, cwd, home, own, profile }
    }

    /// The other picture, with the facts of this one that no policy has.
    fn like(&self, other: Self) -> Self {
        let (own, hooks, profile) = (self.own.clone(), Arc::clone(&self.hooks), self.profile.clone());
        Self { own, hooks, profile, ..other }
    }

    /// Judges a call in this picture.
    pub fn judge(
        &self,
        case: &GateCase<'_>,
        mode: Mode,
        workspace: &Workspace,
        delivery: &dyn Fn(&Target) -> Option<EditDelivery>,
    ) -> Verdict {
        self.within(mode, workspace, &RealPaths::default(), delivery, |circumstances| {
            gate::judge(case, circumstances)
        })
    }

    /// The sandbox for the commands of a call.
    pub fn sandbox_for(&self, touches: &[Touch]) -> Option<Arc<Sandbox>> {
        let leaves = |touch: &Touch| match touch {
            Touch::Command { command, directory, outside_sandbox, language } => {
                *outside_sandbox
                    || self.policy.confinement.excludes(&analyse_in(language, command, directory))
            }
            Touch::Read(_)
            | Touch::Write(_)
            | Touch::Fetch { .. }
            | Touch::Named { .. }
            | Touch::Foreign { .. } => false,
        };
        self.policy.sandbox.clone().filter(|_| !touches.iter().any(leaves))
    }

    /// A view of the ignore files that count.
    #[must_use]
    pub fn ignore_look(&self) -> IgnoreLook {
        IgnoreLook::without(&self.policy.preferences.disabled_ignore_files)
    }

    /// Runs `ask` with the circumstances of this workspace.
    pub fn within<T>(
        &self,
        mode: Mode,
        workspace: &Workspace,
        real_paths: &RealPaths,
        delivery: &dyn Fn(&Target) -> Option<EditDelivery>,
        ask: impl FnOnce(&Circumstances<'_>) -> T,
    ) -> T {
        self.within_look(mode, workspace, (real_paths, &self.ignore_look()), delivery, ask)
    }

    /// As [`Self::within`], with a view of the ignore files that several questions of one call share.
    fn within_look<T>(
        &self,
        mode: Mode,
        workspace: &Workspace,
        (real_paths, ignored): (&RealPaths, &IgnoreLook),
        delivery: &dyn Fn(&Target) -> Option<EditDelivery>,
        ask: impl FnOnce(&Circumstances<'_>) -> T,
    ) -> T {
        let additional = &self.policy.additional;
        let real = |target: &Target| real_paths.real(target);
        let contains = |target: &Target| {
            workspace.contains_by(target, real_paths)
                || real(target)
                    .file()
                    .is_some_and(|path| additional.iter().any(|folder| path.is_within(folder)))
        };
        let roots: Vec<_> = workspace.roots().iter().chain(workspace.real_roots()).cloned().collect();
        let is_own = |target: &Target| {
            let is_in = |path: &AbsPath| self.own.iter().any(|own| path.is_within(own));
            real(target).file().is_some_and(is_in)
        };
        let obeyed_by = |file: &AbsPath| {
            if self.policy.hook_scripts.contains(file) {
                Some("a hook of your settings names it, so that it runs outside of the sandbox")
            } else {
                kode_process::git_obeys::obeyed_by_git(file)
            }
        };
        ask(&Circumstances {
            mode,
            roots: &roots,
            home: self.home.as_ref(),
            rules: &self.rules,
            grants: &self.grants,
            sensitive: &self.policy.sensitive,
            ignored_by: &|path| ignored.denies(path.as_path()),
            tracked_ignored: &|folder| {
                let tracked = kode_process::plain_git::tracked(folder).into_iter();
                tracked
                    .filter_map(|file| Some((ignored.denies_entry(file.as_path(), &|| false)?, file)))
                    .map(|(by, file)| (file, by))
                    .collect()
            },
            confinement: &self.policy.confinement,
            lost: self.policy.lost.as_deref(),
            contains: &contains,
            is_own: &is_own,
            real: &real,
            delivery,
            is_plain_git: &kode_process::plain_git::is_plain,
            obeyed_by: &obeyed_by,
            is_program_from_outside: &kode_process::programs::is_taken_from_outside,
        })
    }
}

impl PolicyView {
    /// Runs `ask` with the circumstances of this view.
    pub fn within<T>(
        &self,
        mode: Mode,
        real_paths: &RealPaths,
        delivery: &dyn Fn(&Target) -> Option<EditDelivery>,
        ask: impl FnOnce(&Circumstances<'_>) -> T,
    ) -> T {
        let (in_force, workspace) = (&self.in_force, &self.workspace);
        // Another policy may have switched other names off.
        let shared = self
            .ignored
            .as_ref()
            .filter(|look| look.is_without(&in_force.policy.preferences.disabled_ignore_files));
        match shared {
            Some(ignored) => in_force.within_look(mode, workspace, (real_paths, ignored), delivery, ask),
            None => in_force.within(mode, workspace, real_paths, delivery, ask),
        }
    }

    /// The judgment of the names of files. Questions share what the ignore files of each folder say when it is asked for first, so
    /// that it is for one piece of work.
    pub fn judge_names(self, mode: Mode) -> impl Fn(&Target, &RealPaths) -> Verdict + Send + 'static {
        let Self { in_force, workspace, .. } = self;
        let ignored = in_force.ignore_look();
        move |target, real_paths| {
            in_force.within_look(mode, &workspace, (real_paths, &ignored), &|_| None, |circumstances| {
                gate::judge_named(target, circumstances)
            })
        }
    }

    /// Which files the searches of one call may look into.
    pub fn may_read(self, mode: Mode) -> ReadCheck {
        let Self { in_force, workspace, .. } = self;
        let ignored = in_force.ignore_look();
        Arc::new(move |target, look| {
            let looks = (&RealPaths::default(), &ignored);
            in_force.within_look(mode, &workspace, looks, &|_| None, |circumstances| {
                gate::may_read(target, look, circumstances)
            })
        })
    }
}

/// A standing answer as a rule.
pub(crate) fn session_rule(grant: &Grant) -> Option<PlacedRule> {
    let Grant::Rule(text) = grant else { return None };
    match text.parse::<Rule>() {
        Ok(rule) => {
            let source = RuleSource { layer: SettingsLayer::Session, file: None, place: None };
            Some(PlacedRule { behavior: Behavior::Allow, rule, source, root: None })
        }
        Err(error) => {
            tracing::warn!(rule = %text, %error, "a standing answer cannot be read and is ignored");
            None
        }
    }
}
