//! The execution: an allowed call takes a slot and carries out its plan.
//!
//! Rule: that a call has started is safe on disk before it changes anything, and what became of it before the model learns of
//! it; a tool that honors neither a cancel nor its time is given up.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::Pipeline;
use super::diagnose::DiagnosticsBefore;
use super::refusal::cancelled;
use crate::edits::guest::GuestPause;
use crate::turn::agent_slots::known_agents;
use crate::turn::extension::{UseOutcome, call_extension};
use crate::turn::questions::ask_while_running;
use crate::turn::resume::PendingRequest;
use crate::turn::sample::ModelToolCall;
use crate::turn::{act, delegate, team};
use kode_base::call::{ToolError, ToolErrorKind, ToolKind};
use kode_base::ids::{ChangeId, HunkId, PermissionId};
use kode_base::paths::{ResolvedPaths, Target};
use kode_base::question::{QuestionDraft, Reply};
use kode_base::task;
use kode_record::event::{Breakpoint, Event};
use kode_text::edit::ChangeSet;
use kode_text::edit::ledger::ChangeOrigin;
use kode_text::edit::ledger::review::HunkKind;
use kode_tool::report::report;
use kode_tool::{CallAction, CallContext, CallPlan, ErasedTool, QuestionAsker, RunFn, ToolOutput};

/// The time that a cancelled tool has to stop by itself and return its result.
const CANCEL_GRACE: Duration = Duration::from_secs(5);

/// A question of a running call, with where the answer goes.
pub(super) type RunningQuestion = (QuestionDraft, oneshot::Sender<Option<Reply>>);

impl Pipeline<'_> {
    /// The origin of a change that this call makes.
    pub(super) fn change(&self, permission: Option<&PermissionId>) -> ChangeOrigin {
        ChangeOrigin {
            id: ChangeId::generate(),
            turn: self.call.turn.clone(),
            call: self.call.id.clone(),
            kind: HunkKind::Text,
            permission: permission.cloned(),
        }
    }

    /// Notes in the transcript that the call begins to run.
    fn begins(&self, title: &str) {
        self.turn.reach(Breakpoint::ToolExecuting, Some(&self.call.id));
        if self.embedded.is_none() {
            self.conversation().call_begins(&self.call.item, title);
        }
    }

    pub(super) async fn execute(
        &self,
        tool: &dyn ErasedTool,
        plan: CallPlan,
        names: &[HunkId],
        context: CallContext,
    ) -> Result<ToolOutput, ToolError> {
        let CallPlan { title, touches: _, action } = plan;
        let (action, delegation) = match action {
            // These take no slot: their own calls take theirs.
            CallAction::Delegate(delegation) => {
                if !self.is_resumed() {
                    self.begins(&title);
                }
                (None, Some(*delegation))
            }
            CallAction::Use(wanted) => {
                self.begins(&title);
                match call_extension(self.turn, self.call, &wanted, self.cancel).await? {
                    UseOutcome::Text(output) => return Ok(output),
                    UseOutcome::Delegation(delegation) => (None, Some(*delegation)),
                }
            }
            CallAction::Team(action) => {
                self.begins(&title);
                return team::act(self.turn, action, self.cancel).await;
            }
            CallAction::Run(_)
            | CallAction::Change(_)
            | CallAction::Show(_)
            | CallAction::Ask(_)
            | CallAction::SetMode(_)
            | CallAction::SetTodos(_) => (Some(action), None),
        };
        if let Some(delegation) = delegation {
            let progress = Arc::clone(&context.progress);
            return delegate::run(self.turn, self.call, delegation, progress, self.cancel).await;
        }
        let Some(action) = action else { return Err(fault(self.call)) };
        let kind = tool.facts().kind;
        // In one conversation calls wait for one another. Calls of different ones must not overlap either: the changes of a
        // command are the difference to the texts before it.
        let _exclusive = match kind {
            ToolKind::ReadOnly => None,
            ToolKind::Write | ToolKind::Execute => tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(cancelled()),
                exclusive = self.services().agent_slots.exclusive() => Some(exclusive),
            },
        };
        // Only a running call takes a slot; one that waits for the user holds back no other.
        let slot = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(cancelled()),
            slot = self.services().call_slots.take() => slot,
        };
        // A question that is asked again has started nothing.
        if !matches!(self.call.pending, Some(PendingRequest::Question(_))) {
            self.begins(&title);
        }
        if kind != ToolKind::ReadOnly {
            // After a power cut it must be known that this call had started, and who allowed it.
            self.services().core.sync().await;
        }
        // Changes of a guest up to now are not those of this call.
        let pause = match kind {
            ToolKind::ReadOnly => None,
            ToolKind::Write | ToolKind::Execute => Some(self.services().edits.pause_guests().await),
        };
        let mut own = match &action {
            CallAction::Change(change) => Some(changed_by(change)),
            _ => None,
        };
        let result = match action {
            CallAction::Change(change) => {
                let own = own.as_mut().filter(|_| pause.as_ref().is_some_and(GuestPause::is_watched));
                self.apply(change, names, &context.resolved, own).await
            }
            CallAction::Run(work) if kind == ToolKind::Execute => {
                let _until_its_changes_are_entered = self.services().edits.command_runs();
                let scan = self.services().edits.before_command().await;
                let result = self.work(work, context, tool.timeout()).await;
                // A failed command has changed files as well.
                self.services().edits.after_command(scan, &self.change(None)).await;
                self.services().core.sync().await;
                result
            }
            CallAction::Show(_) => Ok(ToolOutput::default()),
            CallAction::Run(work) => self.work(work, context, tool.timeout()).await,
            CallAction::Ask(draft) => {
                drop(slot);
                act::ask(self.turn, self.call, &title, *draft, self.cancel).await
            }
            CallAction::SetMode(mode) => act::set_mode(self.turn, mode),
            CallAction::SetTodos(todos) => act::set_todos(self.turn, todos),
            CallAction::Delegate(_) | CallAction::Use(_) | CallAction::Team(_) => Err(fault(self.call)),
        };
        if let Some(pause) = pause {
            // A change in conflict is not made: the guest was faster.
            let is_conflict = result.as_ref().is_err_and(|error| error.kind == ToolErrorKind::Conflict);
            let own = if is_conflict { Some(&[][..]) } else { own.as_deref() };
            self.services().edits.resume_guests(pause, own).await;
        }
        result
    }

    /// Applies a change set, and reports it with the diagnostics that it added and removed. `own` gets the files that it has
    /// written, where that matters.
    async fn apply(
        &self,
        change: ChangeSet,
        names: &[HunkId],
        judged: &ResolvedPaths,
        own: Option<&mut Vec<Target>>,
    ) -> Result<ToolOutput, ToolError> {
        let (summary, removals) = (change.summary.clone(), change.removals.clone());
        let workspace = self.conversation().workspace();
        let change_of = self.change(None);
        let before = DiagnosticsBefore::of(&change, workspace, self.cancel).await;
        let edits = &self.services().edits;
        let applied =
            edits.apply_change_in((workspace, judged), change, &change_of, names, self.cancel).await;
        // The changes are on disk before the model gets the result, also where only some files were changed.
        self.services().core.sync().await;
        let applied = applied?;
        if let Some(own) = own {
            *own = edits.written(&applied, &removals).await;
        }
        let mut output = report(&summary, &applied, &removals, workspace);
        let difference = before.compare((&applied, &change_of), (edits, workspace), self.cancel).await;
        output.model_text.push_str(&difference);
        Ok(output)
    }

    /// Runs the work in a task of its own, so that it can be given up when it honors neither a cancel nor its time.
    async fn work(
        &self,
        work: RunFn,
        context: CallContext,
        limit: Option<Duration>,
    ) -> Result<ToolOutput, ToolError> {
        let stop = context.cancel.clone();
        let mut task = task::spawn(async move { work(context).await });
        let over = async {
            match limit {
                Some(limit) => tokio::time::sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        let mut asked = self.asked.lock().await;
        let mut over = pin!(over);
        let ended = loop {
            break tokio::select! {
            biased;
            ended = &mut task => ended,
            () = self.cancel.cancelled() => match within_grace(&mut task).await {
                Some(ended) => ended,
                None => {
                    task.abort();
                    return Err(cancelled());
                }
            },
            ask = asked.recv() => {
                if let Some((draft, mut answer)) = ask {
                    // The caller may need no answer any more; the question is taken back then.
                    let taken_back = self.cancel.child_token();
                    let reply =
                        ask_while_running(self.turn, &self.call.id, &self.call.item, draft, &taken_back);
                    let mut reply = pin!(reply);
                    let reply = tokio::select! {
                        biased;
                        reply = &mut reply => reply,
                        () = answer.closed() => {
                            taken_back.cancel();
                            reply.await
                        }
                    };
                    drop(answer.send(reply));
                }
                continue;
            }
            () = &mut over => {
                stop.cancel();
                if within_grace(&mut task).await.is_none() {
                    task.abort();
                }
                return Err(timed_out(self.call, limit.unwrap_or_default()));
            }
            };
        };
        ended.unwrap_or_else(|_| Err(fault(self.call)))
    }

    pub(super) fn context(&self) -> CallContext {
        let (services, call) = (self.services(), self.call);
        let (item, id, events) = (call.item.clone(), call.id.clone(), Arc::clone(services.core.events()));
        let latest = Mutex::new(None);
        let asks = self.asks.clone();
        let ask: QuestionAsker = Arc::new(move |draft| {
            let asks = asks.clone();
            Box::pin(async move {
                let (sender, receiver) = oneshot::channel();
                asks.send((draft, sender)).await.ok()?;
                receiver.await.ok()?
            })
        });
        let in_force = services.gate.in_force_for(self.conversation());
        CallContext {
            call_id: call.id.clone(),
            workspace: Arc::clone(self.conversation().workspace()),
            shell: Arc::clone(&self.conversation().shell),
            sandbox: in_force.policy.sandbox.clone(),
            resolved: ResolvedPaths::default(),
            agents: Arc::new(known_agents(&services.core, &services.extensions)),
            catalog: services.extensions.catalog(),
            private_hosts: in_force.rules.own_hosts(),
            may_read: services.gate.may_read_for(self.conversation()),
            cancel: self.cancel.child_token(),
            text_limit: None,
            ask: Some(ask),
            progress: Arc::new(move |text| {
                let mut latest = latest.lock().unwrap_or_else(PoisonError::into_inner);
                if latest.as_ref() != Some(&text) {
                    *latest = Some(text.clone());
                    events.publish(Event::ToolProgress { item: item.clone(), call: id.clone(), text });
                }
            }),
        }
    }
}

async fn within_grace<T>(task: &mut (impl Future<Output = T> + Unpin)) -> Option<T> {
    tokio::time::timeout(CANCEL_GRACE, task).await.ok()
}

pub(super) fn fault(call: &ModelToolCall) -> ToolError {
    tracing::error!(call = %call.id, tool = %call.name, "the tool panicked");
    ToolError::new(
        ToolErrorKind::Failed,
        format!("{} failed because of a fault in kode-ls itself.", call.name),
        "Do not repeat the same call; the log has the details.",
    )
}

fn timed_out(call: &ModelToolCall, limit: Duration) -> ToolError {
    ToolError::new(
        ToolErrorKind::Timeout,
        format!("{} was stopped after {} ms, the time it is given.", call.name, limit.as_millis()),
        "Ask for less in one call, for example a smaller folder or a narrower pattern.",
    )
}

/// The files that a change is about.
fn changed_by(change: &ChangeSet) -> Vec<Target> {
    let files = change.files.iter().map(|file| &file.target);
    files.chain(change.removals.iter().map(|removal| &removal.target)).cloned().collect()
}
