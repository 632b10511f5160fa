//! Judging calls by the picture that is in force.

use std::sync::Arc;

use serde_json::Value;

use super::Gatekeeper;
use crate::conversation::WorktreeIsolation;
use kode_base::call::{ReadCheck, ToolKind, Touch};
use kode_base::mode::Mode;
use kode_base::paths::{AbsPath, ResolvedPaths, Target};
use kode_config::in_force::{EffectivePolicy, PolicyView};
use kode_permission::equipment::Equipment;
use kode_permission::gate::{self, GateCase};
use kode_permission::{GateDecision, RuleSavings, Verdict};
use kode_process::sandbox::Sandbox;
use kode_record::event::ItemBody;
use kode_text::workspace::real_paths::RealPaths;
use kode_tool::declared::declared;

/// The number of newest calls that a rule is tried on.
const SPARED_LOOK: usize = 50;

/// A verdict, and the sandbox of the call if it runs: both from one picture.
#[derive(Clone, Debug)]
pub(crate) struct Judgment {
    /// The verdict.
    pub(crate) verdict: Verdict,
    /// Its confinement when it runs.
    pub(crate) bounds: CallBounds,
}

/// The confinement of a running call, by its verdict.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallBounds {
    /// The sandbox its commands run in; `None` if absent, or where they run outside of it.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    /// Where the paths it names led when it was judged.
    pub(crate) resolved: ResolvedPaths,
}

impl Gatekeeper {
    /// Judges a call of the session's own conversation.
    pub(crate) fn judge(&self, case: &GateCase<'_>, mode: Mode) -> Judgment {
        self.judge_by(&self.view(&Equipment::default()), case, mode)
    }

    /// The view that calls are judged by now, with the equipment of a skill or command.
    pub(crate) fn view(&self, equipment: &Equipment) -> PolicyView {
        PolicyView {
            in_force: self.in_force_with(equipment),
            workspace: Arc::clone(&self.workspace),
            ignored: None,
        }
    }

    /// Judges a call by a view.
    pub(crate) fn judge_by(&self, view: &PolicyView, case: &GateCase<'_>, mode: Mode) -> Judgment {
        let PolicyView { in_force, workspace, .. } = view;
        let outside =
            |isolation: &WorktreeIsolation| case.touches.iter().find_map(|touch| isolation.refuses(touch));
        if let Some(refusal) = self.isolation().and_then(|isolation| outside(isolation)) {
            return Judgment { verdict: refusal, bounds: CallBounds::default() };
        }
        let mode = in_force.mode(mode);
        let deliveries = self.deliveries();
        let delivery = |target: &Target| {
            let of = |target: &Target| {
                let named = (target, workspace.roots());
                deliveries.reaching(named, (&workspace.real(target), workspace.real_roots()))
            };
            // A folder is made for the file that is written into it.
            of(target)
                .or_else(|| case.touches.iter().find_map(|touch| touch.write_within(target).and_then(of)))
        };
        let real_paths = RealPaths::default();
        let verdict =
            view.within(mode, &real_paths, &delivery, |circumstances| gate::judge(case, circumstances));
        let files = case.touches.iter().filter_map(Touch::target).filter_map(Target::file);
        let resolved = resolved(files, &real_paths);
        Judgment { verdict, bounds: CallBounds { sandbox: in_force.sandbox_for(case.touches), resolved } }
    }

    /// As [`Self::judge_by`], for a command in the text of a file: in plan mode only read-only commands run, regardless of
    /// allow rules.
    pub(crate) fn judge_embedded(&self, view: &PolicyView, case: &GateCase<'_>, mode: Mode) -> Judgment {
        let judgment = self.judge_by(view, case, mode);
        let is_allowed = judgment.verdict.decision == GateDecision::Allow;
        if view.in_force.mode(mode) != Mode::Plan || !is_allowed {
            return judgment;
        }
        let without = PolicyView { in_force: Arc::new(view.in_force.without_allowance()), ..view.clone() };
        let verdict = self.judge_by(&without, case, mode).verdict;
        let verdict = match verdict.decision {
            GateDecision::Allow => judgment.verdict,
            GateDecision::Ask | GateDecision::Deny => {
                Verdict::deny("in plan mode the commands of a file run only where they change nothing")
            }
        };
        Judgment { verdict, ..judgment }
    }

    /// Whether a call would run without a question if these rules were in force as well.
    pub(crate) fn would_run(&self, case: &GateCase<'_>, mode: Mode, rules: &[String]) -> bool {
        let with = self.in_force().with_rules(rules, &self.workspace.cwd());
        let verdict = with.judge(case, with.mode(mode), &self.workspace, &|_| None);
        verdict.decision == GateDecision::Allow
    }

    /// Whether the model may be given what a prompt names. Returns where it led when it was judged.
    ///
    /// # Errors
    /// Why not: a rule, a secret, a read that needs a permission, or a path in the workspace that leads out of it by a link.
    pub(crate) fn may_attach(&self, target: &Target) -> Result<ResolvedPaths, String> {
        let real_paths = RealPaths::default();
        let PolicyView { in_force, workspace, .. } = self.view(&Equipment::default());
        let mode = self.core.state().config.mode;
        let verdict = in_force.within(mode, &workspace, &real_paths, &|_| None, |circumstances| {
            gate::judge_attached(target, circumstances)
        });
        match verdict.decision {
            GateDecision::Allow => Ok(resolved(target.file(), &real_paths)),
            GateDecision::Ask | GateDecision::Deny => Err(verdict.reason),
        }
    }

    /// Whether the model may be given files, and why not, by the picture of now: for one piece of work on another thread.
    pub(crate) fn mentionable(&self) -> impl Fn(&Target, &RealPaths) -> Result<(), String> + Send + 'static {
        self.mentionable_in(self.view(&Equipment::default()))
    }

    /// As [`Self::mentionable`], by a view.
    pub(crate) fn mentionable_in(
        &self,
        view: PolicyView,
    ) -> impl Fn(&Target, &RealPaths) -> Result<(), String> + Send + 'static {
        let judge = view.judge_names(self.core.state().config.mode);
        move |target, real_paths| {
            let verdict = judge(target, real_paths);
            if verdict.decision == GateDecision::Allow { Ok(()) } else { Err(verdict.reason) }
        }
    }

    /// The files that a search may read: those that need no permission.
    pub(crate) fn may_read(&self, mode: Mode) -> ReadCheck {
        self.view(&Equipment::default()).may_read(mode)
    }

    /// How many of the newest calls of this session these rules would have allowed without a question.
    pub(crate) fn spared_by(&self, rules: &[String]) -> RuleSavings {
        let cwd = self.workspace.cwd();
        let (calls, mode): (Vec<_>, Mode) = {
            let state = self.core.state();
            let calls = state.main.items.newest().iter().rev().filter_map(|item| match &item.body {
                ItemBody::ToolCall(call) => Some((call.name.clone(), call.kind?, call.input.clone())),
                _ => None,
            });
            (calls.take(SPARED_LOOK).collect(), state.config.mode)
        };
        let without = self.in_force();
        let with = without.with_rules(rules, &cwd);
        let resolve = |path: &str| self.workspace.resolve(path).ok();
        let runs = |picture: &EffectivePolicy, (tool, kind, input): &(String, ToolKind, Arc<Value>)| {
            let touches = declared(tool, input, &cwd, &resolve)?;
            let case = GateCase { tool, kind: *kind, input, touches: &touches };
            Some(picture.judge(&case, mode, &self.workspace, &|_| None).decision == GateDecision::Allow)
        };
        let spared = calls
            .iter()
            .filter(|call| runs(&without, call) == Some(false) && runs(&with, call) == Some(true));
        RuleSavings { matched: count(spared.count()), of: count(calls.len()) }
    }

    /// The picture of now, with the equipment of a skill or command.
    fn in_force_with(&self, equipment: &Equipment) -> Arc<EffectivePolicy> {
        let in_force = self.in_force();
        match equipment.is_empty() {
            true => in_force,
            false => Arc::new(in_force.with_equipment(equipment, &self.workspace.cwd())),
        }
    }
}

/// Where files led when they were judged, links followed. One that could not be followed was judged by its name: it leads to
/// itself, and nothing that a link makes of it later counts.
pub(crate) fn resolved<'a>(
    files: impl IntoIterator<Item = &'a AbsPath>,
    real_paths: &RealPaths,
) -> ResolvedPaths {
    let real = |file: &AbsPath| real_paths.file(file).unwrap_or_else(|| file.clone());
    files.into_iter().map(|file| (file.clone(), real(file))).collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
