//! The confirmation: who lets a call run that nothing allows by itself, and what of it.
//!
//! Rule: hooks speak for the user only where no rule asks and no guarded place is touched; what is carried out is never
//! more than what was shown, and a refusal by what is in force by then wins over every yes.

use std::sync::Arc;

use serde_json::Value;

use super::Pipeline;
use super::refusal::{cancelled, changed_by_hook, of_hook, refused, refused_by_hook};
use crate::hooks::tool::Answered as HookAnswer;
use crate::session::guard::Judged;
use crate::session::proposal::{Accepted, Proposal};
use crate::turn::prompt;
use crate::turn::sample::Call;
use crate::turn::taken_up::Again;
use kode_base::call::{ToolError, ToolErrorKind};
use kode_base::ids::{HunkId, PermissionId};
use kode_config::hooks::event::HookEvent;
use kode_permission::gate::AnswerReach;
use kode_permission::{
    GateDecision, Grant, Offer, PermissionDecision, PermissionOutcome, PermissionPrompt, PromptAnswer,
    PromptOutcome, Scope, Verdict,
};
use kode_process::sandbox::Sandbox;
use kode_record::event::NoticeLevel;
use kode_record::record::Record;
use kode_text::workspace::KnownText;
use kode_tool::{CallAction, CallContext, CallPlan, ErasedTool};

/// A plan that may be carried out.
pub(super) struct Confirmed {
    pub(super) plan: CallPlan,
    /// What the model is told first: what the user changed about the call.
    pub(super) remark: String,
    /// The names under which the hunks of the change were proposed.
    pub(super) names: Vec<HunkId>,
    /// What holds its commands back, whatever the settings say by now.
    pub(super) sandbox: Option<Arc<Sandbox>>,
}

impl Confirmed {
    /// A plan that the user was not asked about.
    pub(super) fn unasked(plan: CallPlan, sandbox: Option<Arc<Sandbox>>) -> Self {
        Self { plan, remark: String::new(), names: Vec::new(), sandbox }
    }
}

/// What became of a call that hooks were asked about in the user's place.
enum ByHook {
    /// It may be carried out.
    Settled(Confirmed),
    /// The user decides.
    Open(Box<Open>),
}

/// A call that the user is to decide about.
struct Open {
    plan: CallPlan,
    judged: Judged,
    /// The arguments, where a hook has changed them.
    input: Option<Value>,
}

impl Pipeline<'_> {
    /// Whether the user has seen the call in the answer they chose and let it run. That speaks for what is asked only
    /// because nothing allows it: an ask rule, a guarded place and what is proposed first ask all the same.
    pub(super) fn is_spared(&self, verdict: &Verdict) -> bool {
        self.call.spared_by.is_some() && is_only_unspoken_for(verdict)
    }

    /// Whether the user was asked for permission when the server ended, and has not answered.
    pub(super) fn was_asked(&self) -> bool {
        matches!(self.call.again, Some(Again::Permission(..)))
    }

    /// Notes who let the call run.
    pub(super) async fn note_allowed(&self, by: &str) {
        let decision = PermissionDecision {
            id: PermissionId::generate(),
            call: self.call.id.clone(),
            outcome: PermissionOutcome::Allow,
            scope: Scope::Once,
            by: by.to_owned(),
            feedback: None,
        };
        self.session.commit(Record::Decided { decision, grants: Vec::new() });
        self.session.sync().await;
    }

    /// Has hooks answer, then the user. A hook speaks for the user only where they are asked because nothing allows the
    /// call as it stands by then: rules that ask and guarded places are for the user, whatever a hook has made of the call.
    pub(super) async fn confirm(
        &self,
        tool: &dyn ErasedTool,
        plan: CallPlan,
        judged: Judged,
        context: &CallContext,
    ) -> Result<Confirmed, ToolError> {
        match self.confirm_by_hook(tool, plan, judged, context).await? {
            ByHook::Settled(confirmed) => Ok(confirmed),
            ByHook::Open(open) => {
                let Open { plan, judged, input } = *open;
                let Some(input) = input else {
                    return self.confirm_by_user(tool, plan, judged, context).await;
                };
                // The user is shown what would run, and what stands from then on is that.
                let remark = changed_by_hook(&input);
                let call = Call { input, ..self.call.clone() };
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
        judged: Judged,
        context: &CallContext,
    ) -> Result<ByHook, ToolError> {
        if !self.conversation.has_hooks(HookEvent::PermissionRequest) {
            return Ok(ByHook::Open(Box::new(Open { plan, judged, input: None })));
        }
        let answered = {
            let offers = prompt::offers(self.conversation, tool, &self.call.input, &plan, &judged.verdict);
            let case = self.case(tool, &self.call.input, &plan.touches);
            self.conversation.answer_for_user(self.looked(&case), &offers, self.cancel).await
        };
        let Some(HookAnswer { answer, updates, interrupt }) = answered else {
            return Ok(ByHook::Open(Box::new(Open { plan, judged, input: None })));
        };
        if interrupt {
            self.conversation.ask_to_stop();
        }
        if !answer.allow {
            self.note_answer(prompt::id(self.call), &answer, Vec::new()).await;
            let reason = answer.feedback.as_deref().unwrap_or("it gives no reason");
            return Err(refused_by_hook(&plan.title, reason, &[]));
        }
        let input = answer.updated_input.clone();
        let (plan, judged) = match &input {
            // Settings, mode and links may have changed meanwhile.
            None => {
                self.session.look().await;
                self.judge_again(tool, plan, judged)?
            }
            Some(input) => {
                let changed = self.plan(tool, input.clone(), context).await;
                self.session.look().await;
                let changed = changed.and_then(|plan| {
                    let now = self.judge(tool, &plan, input)?;
                    stays_held(judged.sandbox.is_some(), &now, &plan)?;
                    Ok((plan, now))
                });
                changed.map_err(|error| of_hook(input, error))?
            }
        };
        let speaks_for_user =
            judged.verdict.decision == GateDecision::Allow || is_only_unspoken_for(&judged.verdict);
        if !speaks_for_user {
            tracing::info!(call = %self.call.id, reason = judged.verdict.reason, "a hook's yes is not enough");
            return Ok(ByHook::Open(Box::new(Open { plan, judged, input })));
        }
        let grants = self.session.take_updates(updates).await;
        self.note_answer(prompt::id(self.call), &answer, grants).await;
        let remark = input.as_ref().map(changed_by_hook).unwrap_or_default();
        Ok(ByHook::Settled(Confirmed { plan, remark, names: Vec::new(), sandbox: judged.sandbox }))
    }

    /// Asks the user. What they allow is the plan that was shown, or a part of it, or one made from the arguments they
    /// gave instead; the model is told which.
    async fn confirm_by_user(
        &self,
        tool: &dyn ErasedTool,
        plan: CallPlan,
        judged: Judged,
        context: &CallContext,
    ) -> Result<Confirmed, ToolError> {
        let prompt = prompt::prompt(self.conversation, tool, self.call, &plan, &judged);
        let mut offers = prompt.offers.clone();
        let id = prompt.id.clone();
        let proposal = match &plan.action {
            CallAction::Change(change) => self.session.propose(change, &self.change(Some(&id))).await,
            CallAction::Run(_)
            | CallAction::Ask(_)
            | CallAction::SetMode(_)
            | CallAction::SetTodos(_)
            | CallAction::Delegate(_)
            | CallAction::Use(_) => Proposal::default(),
        };
        let Some(answer) = self.ask_user(prompt, self.known_texts(&plan)).await else {
            self.session.withdraw_proposals(&proposal.names());
            return Err(cancelled());
        };
        let planned = match answer.updated_input.clone().filter(|_| answer.allow) {
            None if !answer.allow => Ok((plan, judged)),
            None => {
                self.session.look().await;
                self.judge_again(tool, plan, judged)
            }
            // The user has seen what they wrote, so no second question; but a refusal is still a refusal.
            Some(input) => {
                let planned = self.plan(tool, input.clone(), context).await;
                self.session.look().await;
                planned.and_then(|plan| {
                    let judged = self.judge(tool, &plan, &input)?;
                    offers = prompt::offers(self.conversation, tool, &input, &plan, &judged.verdict);
                    Ok((plan, judged))
                })
            }
        };
        let grants = match &planned {
            // What stands from now on is what runs now, not what the model had asked for.
            Ok((plan, _)) if answer.allow && answer.scope != Scope::Once => {
                prompt::grants(self.session, plan)
            }
            _ => Vec::new(),
        };
        if !grants.is_empty() && matches!(answer.scope, Scope::Project | Scope::User) {
            self.keep(&answer, &offers).await;
        }
        // Even if no file could be written, the same call is not asked for again.
        self.note_answer(id, &answer, grants).await;
        let accepted = self.accepted(&answer, proposal);
        self.session.reject_proposals(&accepted.rejected);
        let (plan, judged) = planned.inspect_err(|_| self.session.withdraw_proposals(&accepted.names))?;
        let nothing_is_left = accepted.names.is_empty() && !accepted.rejected.is_empty();
        if !answer.allow || nothing_is_left {
            return Err(refused(&plan.title, answer.feedback.as_deref()));
        }
        let mut confirmed = self.confirmed(plan, judged.sandbox, answer.updated_input, accepted);
        if let Some(words) = answer.feedback.as_deref().filter(|words| !words.trim().is_empty()) {
            confirmed.remark.push_str(&format!("The user said: {}\n", words.trim()));
        }
        Ok(confirmed)
    }

    /// Judges a call anew that somebody has allowed: a refusal wins, and what holds the call back is never less than what
    /// was shown.
    fn judge_again(
        &self,
        tool: &dyn ErasedTool,
        plan: CallPlan,
        before: Judged,
    ) -> Result<(CallPlan, Judged), ToolError> {
        let now = self.judge(tool, &plan, &self.call.input)?;
        let sandbox = now.sandbox.or(before.sandbox);
        Ok((plan, Judged { sandbox, ..now }))
    }

    /// Records an answer to a prompt.
    async fn note_answer(&self, id: PermissionId, answer: &PromptAnswer, grants: Vec<Grant>) {
        let decision = PermissionDecision {
            id,
            call: self.call.id.clone(),
            outcome: if answer.allow { PermissionOutcome::Allow } else { PermissionOutcome::Deny },
            scope: answer.scope,
            by: answer.by.clone(),
            feedback: answer.feedback.clone(),
        };
        self.session.commit(Record::Decided { decision, grants });
        self.session.sync().await;
    }

    /// What of the proposed hunks the answer takes and what it refuses.
    fn accepted(&self, answer: &PromptAnswer, proposal: Proposal) -> Accepted {
        match (&answer.updated_input, answer.allow) {
            (_, false) => proposal.accepted(Some(&[])),
            (Some(_), true) => proposal.accepted(None),
            (None, true) => match &answer.hunks {
                Some(hunks) => proposal.accepted(Some(hunks)),
                None => {
                    let mut names = proposal.names();
                    let refused = self.session.refused_proposals(&names);
                    names.retain(|name| !refused.contains(name));
                    proposal.accepted(Some(&names))
                }
            },
        }
    }

    /// Asks the user; nothing when the call was cancelled first.
    async fn ask_user(&self, prompt: PermissionPrompt, known: Vec<KnownText>) -> Option<PromptAnswer> {
        if self.embedded.is_none() {
            self.conversation.call_waits(&self.call.item, &prompt.title, Some(&prompt.id), known);
        }
        let message = format!("kode-ls needs your permission to use {}: {}", prompt.tool, prompt.title);
        self.session.notify("permission_prompt", "Permission needed", message);
        self.session.begin_waiting();
        let answered = self.session.broker.ask(prompt, self.cancel).await;
        self.session.end_waiting();
        match answered {
            PromptOutcome::By(answer) => {
                self.session.note_answer();
                Some(answer)
            }
            PromptOutcome::Cancelled => None,
        }
    }

    /// What is known of the texts that a plan changes.
    fn known_texts(&self, plan: &CallPlan) -> Vec<KnownText> {
        let CallAction::Change(change) = &plan.action else { return Vec::new() };
        let targets = change.files.iter().map(|file| &file.target);
        targets.filter_map(|target| self.session.workspace.known_text(target)).collect()
    }

    /// The plan as the user has allowed it.
    fn confirmed(
        &self,
        mut plan: CallPlan,
        sandbox: Option<Arc<Sandbox>>,
        updated_input: Option<Value>,
        accepted: Accepted,
    ) -> Confirmed {
        let names = accepted.names.clone();
        if let Some(input) = updated_input {
            let remark = format!("The user changed the arguments to {input}\n");
            return Confirmed { plan, remark, names, sandbox };
        }
        let mut remark = String::new();
        if let (CallAction::Change(change), false) = (&mut plan.action, accepted.rejected.is_empty()) {
            let left_out = accepted.split(change);
            let patch = kode_text::workspace::preview::preview(&left_out, self.conversation.workspace());
            remark = format!("The user accepted only a part of this change. What they left out:\n{patch}\n");
        }
        Confirmed { plan, remark, names, sandbox }
    }

    /// Keeps a standing yes that reaches beyond the session.
    async fn keep(&self, answer: &PromptAnswer, offers: &[Offer]) {
        let offered = offers.iter().find(|offer| offer.scope == answer.scope).map(|offer| &offer.rules);
        let rules = answer.rules.as_ref().or(offered).cloned().unwrap_or_default();
        for error in self.session.keep_rules(answer.scope, rules).await {
            let hint =
                "It counts until this session ends; the rule can be written into the settings by hand.";
            self.conversation.notice(
                &self.call.turn,
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
fn stays_held(has_to: bool, judged: &Judged, plan: &CallPlan) -> Result<(), ToolError> {
    if !has_to || judged.sandbox.is_some() {
        return Ok(());
    }
    Err(ToolError::new(
        ToolErrorKind::Forbidden,
        format!("{}: a hook changed the call into one that leaves the sandbox.", plan.title),
        "Leaving the sandbox is for the user to allow; call it without the hook's change.",
    ))
}
