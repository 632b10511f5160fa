//! The confirmation: the user, or a hook for them, decides on a call that no rule allows.
//!
//! Rule: hooks speak for the user only where no rule asks and no guarded place is touched; the executed call is never
//! more than the shown one, and a refusal by the rules in force by then wins over every yes.

use std::convert::Infallible;

use serde_json::Value;

use super::Pipeline;
use super::diagnose::TriedChange;
use super::refusal::{cancelled, changed_by_hook, of_hook, refused, refused_by_hook};
use crate::edits::{AcceptedHunks, Proposal};
use crate::gate::{CallBounds, Judgment};
use crate::hooks::call::PermissionReply;
use crate::turn::permission;
use crate::turn::resume::PendingRequest;
use crate::turn::sample::ModelToolCall;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::ids::{HunkId, PermissionId};
use kode_config::hooks::event::HookEvent;
use kode_permission::gate::AnswerReach;
use kode_permission::{
    GateDecision, Grant, Offer, PermissionOutcome, PermissionPrompt, PermissionResolution, PromptAnswer,
    Scope, Verdict,
};
use kode_record::event::{Breakpoint, NoticeLevel};
use kode_record::record::Record;
use kode_text::edit::ChangeSet;
use kode_text::workspace::KnownText;
use kode_tool::{CallAction, CallContext, CallPlan, ErasedTool};

/// A plan that may be carried out.
pub(super) struct ConfirmedPlan {
    pub(super) plan: CallPlan,
    /// The beginning of the result for the model: the user's changes of the call.
    pub(super) remark: String,
    /// The names under which the hunks of the change were proposed.
    pub(super) names: Vec<HunkId>,
    /// Its confinement, independent of later changes of settings and disk.
    pub(super) bounds: CallBounds,
}

impl ConfirmedPlan {
    /// A plan that the user was not asked about.
    pub(super) fn unasked(plan: CallPlan, bounds: CallBounds) -> Self {
        Self { plan, remark: String::new(), names: Vec::new(), bounds }
    }
}

/// The decision of hooks in the user's place.
enum HookDecision {
    /// The call may run.
    Settled(Box<ConfirmedPlan>),
    /// The user decides.
    Open(Box<OpenDecision>),
}

/// A call that the user decides about.
struct OpenDecision {
    plan: CallPlan,
    judged: Judgment,
    /// The arguments, where a hook has changed them.
    input: Option<Value>,
}

impl Pipeline<'_> {
    /// Whether the user has seen the call in the answer they chose and let it run. That spares only the question about a call
    /// that nothing allows: ask rules, guarded places and proposals ask nevertheless.
    pub(super) fn is_spared(&self, verdict: &Verdict) -> bool {
        self.call.spared_by.is_some() && is_only_unspoken_for(verdict)
    }

    /// Whether the user was asked for permission when the server ended, and has not answered.
    pub(super) fn was_asked(&self) -> bool {
        matches!(self.call.pending, Some(PendingRequest::Permission(..)))
    }

    /// Notes who let the call run.
    pub(super) async fn note_allowed(&self, by: &str) {
        let decision = PermissionResolution {
            id: PermissionId::generate(),
            call: self.call.id.clone(),
            outcome: PermissionOutcome::Allow,
            scope: Scope::Once,
            by: by.to_owned(),
            feedback: None,
        };
        self.services().core.commit(Record::Decided { decision, grants: Vec::new() });
        self.services().core.sync().await;
    }

    /// Has hooks answer, then the user. A hook speaks for the user only where they are asked because nothing allows the
    /// call in its current form: ask rules and guarded places are for the user, whatever arguments a hook gives.
    pub(super) async fn confirm(
        &self,
        tool: &dyn ErasedTool,
        plan: CallPlan,
        judged: Judgment,
        context: &CallContext,
    ) -> Result<ConfirmedPlan, ToolError> {
        match self.confirm_by_hook(tool, plan, judged, context).await? {
            HookDecision::Settled(confirmed) => Ok(*confirmed),
            HookDecision::Open(open) => {
                let OpenDecision { plan, judged, input } = *open;
                let Some(input) = input else {
                    return self.confirm_by_user(tool, plan, judged, context).await;
                };
                // The user sees the call that would run, and a permanent permission applies to it.
                let remark = changed_by_hook(&input);
                let call = ModelToolCall { input, ..self.call.clone() };
                let pipeline = Pipeline { call: &call, ..*self };
                let mut confirmed = pipeline.confirm_by_user(tool, plan, judged, context).await?;
                confirmed.remark.insert_str(0, &remark);
                Ok(confirmed)
            }
        }
    }

    /// Has hooks answer in the user's place, as far as they may.
    async fn confirm_by_hook(
        &self,
        tool: &dyn ErasedTool,
        plan: CallPlan,
        judged: Judgment,
        context: &CallContext,
    ) -> Result<HookDecision, ToolError> {
        if !self.services().hooks.has_hooks(self.conversation(), HookEvent::PermissionRequest) {
            return Ok(HookDecision::Open(Box::new(OpenDecision { plan, judged, input: None })));
        }
        let answered = {
            let offers = permission::offers(self.turn, tool, &self.call.input, &plan, &judged.verdict);
            let case = self.case(tool, &self.call.input, &plan.touches);
            self.services()
                .hooks
                .answer_for_user(self.conversation(), self.hooked(&case), &offers, self.cancel)
                .await
        };
        let Some(PermissionReply { answer, updates, interrupt }) = answered else {
            return Ok(HookDecision::Open(Box::new(OpenDecision { plan, judged, input: None })));
        };
        if interrupt {
            self.conversation().ask_to_stop();
        }
        if !answer.allow {
            self.note_answer(permission::id(self.call), &answer, Vec::new()).await;
            let reason = answer.feedback.as_deref().unwrap_or("it gives no reason");
            return Err(refused_by_hook(&plan.title, reason, &[]));
        }
        let input = answer.updated_input.clone();
        let (plan, judged) = match &input {
            // Settings, mode and links may have changed meanwhile.
            None => {
                self.services().gate.refresh().await;
                self.judge_again(tool, plan, judged)?
            }
            Some(input) => {
                let changed = self.plan(tool, input.clone(), context).await;
                self.services().gate.refresh().await;
                let changed = changed.and_then(|plan| {
                    let now = self.judge(tool, &plan, input)?;
                    stays_held(judged.bounds.sandbox.is_some(), &now, &plan)?;
                    Ok((plan, now))
                });
                changed.map_err(|error| of_hook(input, error))?
            }
        };
        let speaks_for_user =
            judged.verdict.decision == GateDecision::Allow || is_only_unspoken_for(&judged.verdict);
        if !speaks_for_user {
            tracing::info!(call = %self.call.id, reason = judged.verdict.reason, "a hook's yes is not enough");
            return Ok(HookDecision::Open(Box::new(OpenDecision { plan, judged, input })));
        }
        let grants = self.services().hooks.apply_updates(updates).await;
        self.note_answer(permission::id(self.call), &answer, grants).await;
        let remark = input.as_ref().map(changed_by_hook).unwrap_or_default();
        let confirmed = ConfirmedPlan { plan, remark, names: Vec::new(), bounds: judged.bounds };
        Ok(HookDecision::Settled(Box::new(confirmed)))
    }

    /// Asks the user. What they allow is the plan that was shown, or a part of it, or one made from the arguments they
    /// gave instead; the model gets the difference.
    async fn confirm_by_user(
        &self,
        tool: &dyn ErasedTool,
        plan: CallPlan,
        judged: Judgment,
        context: &CallContext,
    ) -> Result<ConfirmedPlan, ToolError> {
        self.turn.reach(Breakpoint::AwaitingApproval, Some(&self.call.id));
        let prompt = permission::prompt(self.turn, tool, self.call, &plan, &judged);
        let mut offers = prompt.offers.clone();
        let id = prompt.id.clone();
        let proposal = match &plan.action {
            CallAction::Change(change) => {
                self.services().edits.propose(change, &self.change(Some(&id))).await
            }
            CallAction::Run(_)
            | CallAction::Show(_)
            | CallAction::Ask(_)
            | CallAction::SetMode(_)
            | CallAction::SetTodos(_)
            | CallAction::Team(_)
            | CallAction::Delegate(_)
            | CallAction::Use(_) => Proposal::default(),
        };
        let asked = self.ask_user(prompt, self.known_texts(&plan));
        let answer = match &plan.action {
            CallAction::Change(change) => tokio::select! {
                // The prompt comes first, and its answer ends the trial.
                biased;
                answer = asked => answer,
                never = self.try_change(change, &proposal, &id) => match never {},
            },
            _ => asked.await,
        };
        let Some(answer) = answer else {
            self.services().edits.withdraw_proposals(&proposal.names());
            return Err(cancelled());
        };
        if let Some(mode) = answer.mode.filter(|_| answer.allow) {
            self.services().core.set_mode(mode);
        }
        let planned = match answer.updated_input.clone().filter(|_| answer.allow) {
            None if !answer.allow => Ok((plan, judged)),
            None => {
                self.services().gate.refresh().await;
                self.judge_again(tool, plan, judged)
            }
            // The user wrote these arguments and is not asked again; a refusal is still a refusal.
            Some(input) => {
                let planned = self.plan(tool, input.clone(), context).await;
                self.services().gate.refresh().await;
                planned.and_then(|plan| {
                    let judged = self.judge(tool, &plan, &input)?;
                    offers = permission::offers(self.turn, tool, &input, &plan, &judged.verdict);
                    Ok((plan, judged))
                })
            }
        };
        let grants = match &planned {
            // Permanent permissions are for the call that runs now, not for the one that the model made.
            Ok((plan, _)) if answer.allow && answer.scope != Scope::Once => {
                permission::grants(&self.services().environment.workspace, plan)
            }
            _ => Vec::new(),
        };
        if !grants.is_empty() && matches!(answer.scope, Scope::Project | Scope::User) {
            self.keep(&answer, &offers).await;
        }
        // Even if no file could be written, the same call is not asked for again.
        self.note_answer(id, &answer, grants).await;
        let accepted = self.accepted(&answer, proposal);
        self.services().edits.reject_proposals(&accepted.rejected);
        let (plan, judged) =
            planned.inspect_err(|_| self.services().edits.withdraw_proposals(&accepted.names))?;
        let nothing_is_left = accepted.names.is_empty() && !accepted.rejected.is_empty();
        if !answer.allow || nothing_is_left {
            return Err(refused(&plan.title, &answer));
        }
        let mut confirmed = self.confirmed(plan, judged.bounds, answer.updated_input, accepted);
        if let Some(words) = answer.feedback.as_deref().filter(|words| !words.trim().is_empty()) {
            confirmed.remark.push_str(&format!("The user said: {}\n", words.trim()));
        }
        Ok(confirmed)
    }

    /// Has language servers that run check the text that a change would make, and adds the difference to its prompt and its
    /// hunks. Ends with the prompt alone.
    async fn try_change(&self, change: &ChangeSet, proposal: &Proposal, id: &PermissionId) -> Infallible {
        let tried = TriedChange::of(change, proposal, self.conversation().workspace()).await;
        if let Some(TriedChange { whole, parts }) = tried {
            self.services().edits.report_diagnostics(change, parts).await;
            self.services().requests.report_diagnostics(id, whole);
        }
        std::future::pending().await
    }

    /// Judges a call again that was allowed: a refusal wins, and the confinement of the call is never less than the
    /// shown one.
    fn judge_again(
        &self,
        tool: &dyn ErasedTool,
        plan: CallPlan,
        before: Judgment,
    ) -> Result<(CallPlan, Judgment), ToolError> {
        let now = self.judge(tool, &plan, &self.call.input)?;
        let sandbox = now.bounds.sandbox.clone().or(before.bounds.sandbox);
        Ok((plan, Judgment { bounds: CallBounds { sandbox, ..now.bounds }, ..now }))
    }

    /// Records an answer to a prompt.
    async fn note_answer(&self, id: PermissionId, answer: &PromptAnswer, grants: Vec<Grant>) {
        let decision = PermissionResolution {
            id,
            call: self.call.id.clone(),
            outcome: if answer.allow { PermissionOutcome::Allow } else { PermissionOutcome::Deny },
            scope: answer.scope,
            by: answer.by.clone(),
            feedback: answer.feedback.clone(),
        };
        self.services().core.commit(Record::Decided { decision, grants });
        self.services().core.sync().await;
    }

    /// The proposed hunks that the answer accepts and rejects.
    fn accepted(&self, answer: &PromptAnswer, proposal: Proposal) -> AcceptedHunks {
        match (&answer.updated_input, answer.allow) {
            (_, false) => proposal.accepted(Some(&[])),
            (Some(_), true) => proposal.accepted(None),
            (None, true) => match &answer.hunks {
                Some(hunks) => proposal.accepted(Some(hunks)),
                None => {
                    let mut names = proposal.names();
                    let refused = self.services().edits.refused_proposals(&names);
                    names.retain(|name| !refused.contains(name));
                    proposal.accepted(Some(&names))
                }
            },
        }
    }

    /// Asks the user; nothing when the call was cancelled first.
    async fn ask_user(&self, prompt: PermissionPrompt, known: Vec<KnownText>) -> Option<PromptAnswer> {
        if self.embedded.is_none() {
            self.conversation().thread.call_waits(&self.call.item, &prompt.title, Some(&prompt.id), known);
        }
        let message = format!("kode-ls needs your permission to use {}: {}", prompt.tool, prompt.title);
        self.services().hooks.notify("permission_prompt", "Permission needed", message);
        self.services().requests.ask_permission(prompt, self.cancel).await
    }

    /// The known texts that a plan changes.
    fn known_texts(&self, plan: &CallPlan) -> Vec<KnownText> {
        let CallAction::Change(change) = &plan.action else { return Vec::new() };
        let removed = change.removals.iter().map(|removal| &removal.target);
        let targets = change.files.iter().map(|file| &file.target).chain(removed);
        targets.filter_map(|target| self.services().environment.workspace.known_text(target)).collect()
    }

    /// The plan as the user has allowed it.
    fn confirmed(
        &self,
        mut plan: CallPlan,
        bounds: CallBounds,
        updated_input: Option<Value>,
        accepted: AcceptedHunks,
    ) -> ConfirmedPlan {
        let names = accepted.names.clone();
        if let Some(input) = updated_input {
            let remark = format!("The user changed the arguments to {input}\n");
            return ConfirmedPlan { plan, remark, names, bounds };
        }
        let mut remark = String::new();
        if let (CallAction::Change(change), false) = (&mut plan.action, accepted.rejected.is_empty()) {
            let left_out = accepted.split(change);
            // It counts all edits; the report counts those that were made.
            change.summary.clear();
            let patch = kode_text::workspace::preview::preview(&left_out, self.conversation().workspace());
            remark = format!("The user accepted only a part of this change. What they left out:\n{patch}\n");
        }
        ConfirmedPlan { plan, remark, names, bounds }
    }

    /// Stores a permanent permission beyond the session.
    async fn keep(&self, answer: &PromptAnswer, offers: &[Offer]) {
        let offered = offers.iter().find(|offer| offer.scope == answer.scope).map(|offer| &offer.rules);
        let rules = answer.rules.as_ref().or(offered).cloned().unwrap_or_default();
        for error in self.services().gate.keep_rules(answer.scope, rules).await {
            let hint =
                "It applies until this session ends; the rule can be written into the settings by hand.";
            self.turn.notice(
                NoticeLevel::Warning,
                format!("A standing answer was not kept: {error}."),
                Some(hint.to_owned()),
            );
        }
    }
}

/// Whether a call is asked about only because nothing allows it: no rule asks for it, and it is at no guarded place.
pub(super) fn is_only_unspoken_for(verdict: &Verdict) -> bool {
    verdict.rule.is_none() && verdict.standing == AnswerReach::Rule
}

/// Refuses a call that a hook has changed from one that the sandbox holds into one that it does not hold.
fn stays_held(has_to: bool, judged: &Judgment, plan: &CallPlan) -> Result<(), ToolError> {
    if !has_to || judged.bounds.sandbox.is_some() {
        return Ok(());
    }
    Err(ToolError::new(
        ToolErrorKind::Forbidden,
        format!("{}: a hook changed the call into one that leaves the sandbox.", plan.title),
        "Leaving the sandbox is for the user to allow; call it without the hook's change.",
    ))
}
