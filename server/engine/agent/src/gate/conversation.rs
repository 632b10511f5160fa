//! Judging the calls of a conversation, with its equipment and in its worktree.
//!
//! Rule: a refusal in the workspace is a refusal in a worktree as well.

use std::sync::Arc;

use super::{CallBounds, Gatekeeper, Judgment};
use crate::conversation::{Conversation, WorktreeIsolation};
use kode_base::call::{Exposure, ReadCheck, ToolKind};
use kode_base::mode::Mode;
use kode_base::paths::Target;
use kode_config::ignore_files::IgnoreLook;
use kode_config::in_force::{EffectivePolicy, PolicyView};
use kode_permission::GateDecision;
use kode_permission::equipment::Equipment;
use kode_permission::gate::GateCase;
use kode_text::workspace::real_paths::RealPaths;

/// Judges a call by a view in a mode.
type JudgeFn = fn(&Gatekeeper, &PolicyView, &GateCase<'_>, Mode) -> Judgment;

impl Gatekeeper {
    /// The picture that is in force for a conversation now.
    pub(crate) fn in_force_for(&self, conversation: &Conversation) -> Arc<EffectivePolicy> {
        self.view_for(conversation, &conversation.equipment()).in_force
    }

    /// Judges a call of a conversation; `ignored` is the view of ignore files that calls judged together share.
    pub(crate) fn judge_for(
        &self,
        conversation: &Conversation,
        case: &GateCase<'_>,
        ignored: Option<&Arc<IgnoreLook>>,
    ) -> Judgment {
        self.judge_with(conversation, (&conversation.equipment(), ignored), case, Self::judge_by)
    }

    /// Judges a command in the text of a file, with the equipment of that file.
    pub(crate) fn judge_embedded_for(
        &self,
        conversation: &Conversation,
        case: &GateCase<'_>,
        of_file: &Equipment,
    ) -> Judgment {
        let mut equipment = conversation.equipment();
        equipment.take(of_file.clone());
        self.judge_with(conversation, (&equipment, None), case, Self::judge_embedded)
    }

    /// The files that searches of a conversation may read.
    pub(crate) fn may_read_for(&self, conversation: &Conversation) -> ReadCheck {
        let (mode, equipment) = (conversation.current_mode(), conversation.equipment());
        let in_workspace = self.view(&equipment).may_read(mode);
        match conversation.isolation() {
            None => in_workspace,
            Some(_) => either(self.view_for(conversation, &equipment).may_read(mode), in_workspace),
        }
    }

    /// The files that a conversation may be given besides those it asks for.
    pub(crate) fn mentionable_for(
        &self,
        conversation: &Conversation,
    ) -> impl Fn(&Target, &RealPaths) -> Result<(), String> + Send + 'static {
        self.mentionable_in(self.view_for(conversation, &Equipment::default()))
    }

    fn view_for(&self, conversation: &Conversation, equipment: &Equipment) -> PolicyView {
        let view = self.view(equipment);
        match conversation.isolation() {
            Some(isolation) => isolation.view(&view),
            None => view,
        }
    }

    fn judge_with(
        &self,
        conversation: &Conversation,
        (equipment, ignored): (&Equipment, Option<&Arc<IgnoreLook>>),
        case: &GateCase<'_>,
        judge: JudgeFn,
    ) -> Judgment {
        let mode = conversation.current_mode();
        let view = PolicyView { ignored: ignored.cloned(), ..self.view(equipment) };
        let in_workspace = judge(self, &view, case, mode);
        match conversation.isolation() {
            None => in_workspace,
            Some(isolation) => {
                in_worktree(isolation, case, in_workspace, || judge(self, &isolation.view(&view), case, mode))
            }
        }
    }
}

/// Judges a call of a sub-agent in a worktree; `in_workspace` is its judgment there, and `own` judges it in the worktree.
fn in_worktree(
    isolation: &WorktreeIsolation,
    case: &GateCase<'_>,
    in_workspace: Judgment,
    own: impl FnOnce() -> Judgment,
) -> Judgment {
    let is_refused =
        in_workspace.verdict.decision == GateDecision::Deny && in_workspace.verdict.rule.is_some();
    // It sees the workspace as its caller does.
    let is_look = case.kind == ToolKind::ReadOnly && in_workspace.verdict.decision == GateDecision::Allow;
    if is_refused || is_look {
        return in_workspace;
    }
    match case.touches.iter().find_map(|touch| isolation.refuses(touch)) {
        Some(refusal) => Judgment { verdict: refusal, bounds: CallBounds::default() },
        None => own(),
    }
}

/// The reads that either allows: those of the worktree, and those of the workspace.
fn either(one: ReadCheck, other: ReadCheck) -> ReadCheck {
    Arc::new(move |target: &Target, look: Exposure| one(target, look) || other(target, look))
}
