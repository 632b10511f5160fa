//! The user's actions on hunks: accept, reject, keep, undo, and reverting one of these.
//!
//! Rule: asking answers at once, with what cannot be done; doing continues in a task of its own, and how it went is
//! reported by one event.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::edits::EditBook;
use crate::edits::Edits;
use crate::edits::review::{AmendedPolicy, ResolveError, ReviewSide};
use crate::edits::switch::ReviewStep;
use crate::state::digest;
use kode_base::ids::{CallId, HunkId, PermissionId, ResolutionId};
use kode_base::paths::Target;
use kode_base::task;
use kode_permission::{PromptAnswer, Scope};
use kode_record::event::Event;
use kode_record::record::Record;
use kode_record::resolution::ResolutionOutcome;
use kode_text::edit::ledger::Ledger;
use kode_text::edit::ledger::review::{FileReview, HunkState, ReviewAction, Selection};
use kode_text::workspace::Workspace;

/// Hunks and the states they are to have, by file.
type WantedStates = BTreeMap<Target, Vec<(HunkId, HunkState)>>;

/// Counts a running action of the user's until it is dropped.
pub(crate) struct ResolvingGuard(Arc<AtomicUsize>);

impl Drop for ResolvingGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Edits {
    /// The files with hunks that are proposed, applied or in conflict, in the order of their names.
    #[must_use]
    pub fn review(&self) -> Vec<FileReview> {
        let book = self.synced();
        book.ledger.review().into_iter().filter_map(|file| book.as_it_waits(file, &self.workspace)).collect()
    }

    /// The states of all hunks, each with the call that made the hunk.
    #[must_use]
    pub fn hunk_states(&self) -> Vec<(CallId, HunkState)> {
        let book = self.synced();
        book.ledger.states_by_call().map(|(call, state)| (call.clone(), state)).collect()
    }

    /// The hunks of one file that wait for the user, by the name under which the editor has it open; `None` if none exist.
    #[must_use]
    pub fn review_of(&self, target: &Target) -> Option<FileReview> {
        let book = self.synced();
        book.ledger.review_of(target).and_then(|file| book.as_it_waits(file, &self.workspace))
    }

    /// A side of a file that the agent has changed; `None` for any other file, and where the sides are the same.
    #[must_use]
    pub fn side(&self, target: &Target, side: ReviewSide) -> Option<String> {
        side_of(&self.synced().ledger, target, side)
    }

    /// Marks the changes of a file as reviewed, or removes the mark.
    ///
    /// # Errors
    /// [`ResolveError`]: nothing in the file waits for the user, or the session was closed.
    pub fn mark_reviewed(&self, target: &Target, is_reviewed: bool) -> Result<(), ResolveError> {
        if self.core.is_closing() {
            return Err(ResolveError::Closed);
        }
        let review = self.review_of(target).ok_or(ResolveError::Nothing { action: "review" })?;
        let hunks = if is_reviewed { review.hunks.iter().map(digest).collect() } else { Vec::new() };
        self.core.commit(Record::FileReviewed { target: review.target, hunks });
        Ok(())
    }

    /// Whether the user has reviewed all changes of a file as they are.
    #[must_use]
    pub fn is_reviewed(&self, review: &FileReview) -> bool {
        self.core.state().is_reviewed(review)
    }

    /// Begins to accept, reject, keep or undo hunks. [`Event::EditsResolved`] has the outcome.
    ///
    /// # Errors
    /// [`ResolveError`]; nothing is started then.
    pub fn resolve(
        self: &Arc<Self>,
        selection: &Selection,
        action: ReviewAction,
        amended: AmendedPolicy,
    ) -> Result<ResolutionId, ResolveError> {
        self.resolve_saying(selection, action, amended, None)
    }

    /// As [`Self::resolve`], with what the user says to the model about it: with the answer to the call that waits, else
    /// with the next prompt.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub fn resolve_saying(
        self: &Arc<Self>,
        selection: &Selection,
        action: ReviewAction,
        amended: AmendedPolicy,
        words: Option<&str>,
    ) -> Result<ResolutionId, ResolveError> {
        if self.core.is_closing() {
            return Err(ResolveError::Closed);
        }
        let force = amended == AmendedPolicy::Undo;
        let mut book = self.synced();
        if let Selection::Hunks(ids) = selection
            && let Some(unknown) = ids.iter().find(|id| book.ledger.state(id).is_none())
        {
            return Err(ResolveError::UnknownHunk(unknown.clone()));
        }
        let selected = book.ledger.select(selection);
        let answers = self.decide(&mut book, &selected, action, words);
        let wanted: WantedStates = selected
            .into_iter()
            .map(|(target, ids)| (target.clone(), wanted(&book.ledger, &target, &ids, action)))
            .filter(|(_, moves)| !moves.is_empty())
            .collect();
        drop(book);
        let Some(decided) = answers else {
            if wanted.is_empty() {
                return Err(ResolveError::Nothing { action: action.verb() });
            }
            if let Some(words) = words {
                self.remark_with_next_prompt(words);
            }
            return Ok(self.begin(wanted, Some(action), None, force, vec![]));
        };
        Ok(self.begin(wanted, Some(action), None, force, decided))
    }

    /// Begins to revert a resolution, by default the newest. [`Event::EditsResolved`] has the outcome.
    ///
    /// # Errors
    /// [`ResolveError`]; nothing is started then.
    pub fn revert(self: &Arc<Self>, resolution: Option<&ResolutionId>) -> Result<ResolutionId, ResolveError> {
        if self.core.is_closing() {
            return Err(ResolveError::Closed);
        }
        let rewound = self.core.state().rewinds.revertible().cloned();
        let newest = self.synced().ledger.newest_resolution().cloned();
        // Ids grow with time.
        let newest = || newest.into_iter().chain(rewound.clone()).max();
        let id = resolution.cloned().or_else(newest).ok_or(ResolveError::UnknownResolution)?;
        let wanted = self.synced().ledger.moves_to_revert(&id);
        if rewound.as_ref() == Some(&id) {
            self.unwind(&id)?;
        } else if wanted.is_none() {
            return Err(ResolveError::UnknownResolution);
        }
        Ok(self.begin(wanted.unwrap_or_default(), None, Some(id), true, vec![]))
    }

    /// Notes decisions about proposals and answers the prompts all of whose proposals are decided. Answers the decided
    /// proposals, or `None` when the selection has none.
    fn decide(
        &self,
        book: &mut EditBook,
        selected: &BTreeMap<Target, Vec<HunkId>>,
        action: ReviewAction,
        words: Option<&str>,
    ) -> Option<Vec<HunkId>> {
        let is_accepted = match action {
            ReviewAction::Accept => true,
            ReviewAction::Reject => false,
            ReviewAction::Keep | ReviewAction::Undo => return None,
        };
        let mut prompts: Vec<PermissionId> = Vec::new();
        let mut decided = Vec::new();
        for hunk in selected.values().flatten() {
            let Some(prompt) = book.ledger.permission_of(hunk).cloned() else { continue };
            book.decided.insert(hunk.clone(), is_accepted);
            decided.push(hunk.clone());
            if !prompts.contains(&prompt) {
                prompts.push(prompt);
            }
        }
        for prompt in prompts {
            if let Some(words) = words {
                book.remarks.entry(prompt.clone()).or_default().push(words.to_owned());
            }
            let all: Vec<HunkId> = book.ledger.proposals(&prompt).into_values().flatten().collect();
            if all.iter().any(|hunk| !book.decided.contains_key(hunk)) {
                continue;
            }
            let accepted: Vec<HunkId> =
                all.iter().filter(|hunk| book.decided.get(hunk) == Some(&true)).cloned().collect();
            book.decided.retain(|hunk, _| !all.contains(hunk));
            let remarks = book.remarks.remove(&prompt).unwrap_or_default();
            let answer = PromptAnswer {
                allow: !accepted.is_empty(),
                scope: Scope::Once,
                feedback: (!remarks.is_empty()).then(|| remarks.join("\n")),
                updated_input: None,
                rules: None,
                hunks: Some(accepted),
                mode: None,
                by: "review".to_owned(),
            };
            // The prompt itself was answered meanwhile: that answer applies.
            if let Err(error) = self.requests.respond(&prompt, answer) {
                tracing::info!(%error, "the review came too late");
            }
        }
        (!decided.is_empty()).then_some(decided)
    }

    /// Counts an action of the user's as work of the session until the guard is dropped.
    pub(crate) fn begin_resolving(&self) -> ResolvingGuard {
        self.resolving.fetch_add(1, Ordering::SeqCst);
        ResolvingGuard(Arc::clone(&self.resolving))
    }

    /// Whether a step of the user's is being carried out, or waits to be.
    pub(crate) fn is_resolving(&self) -> bool {
        self.resolving.load(Ordering::SeqCst) > 0
    }

    fn begin(
        self: &Arc<Self>,
        wanted: WantedStates,
        action: Option<ReviewAction>,
        reverts: Option<ResolutionId>,
        force: bool,
        decided: Vec<HunkId>,
    ) -> ResolutionId {
        let id = ResolutionId::generate();
        let count: usize = wanted.values().map(Vec::len).sum();
        let label = match action {
            Some(action) => format!("Kode: {} {count} {}", action.verb(), plural(count)),
            None => format!("Kode: take back a step on {count} {}", plural(count)),
        };
        let step = ReviewStep { id: id.clone(), reverts, label, force };
        let (edits, under_way) = (Arc::clone(self), self.begin_resolving());
        task::spawn(async move {
            let mut outcome = edits.carry_out(&wanted, &step).await;
            outcome.action = action;
            outcome.resolved.extend(decided);
            edits.core.sync().await;
            edits.core.publish(Event::EditsResolved { outcome: Box::new(outcome) });
            drop(under_way);
        });
        id
    }

    /// Brings hunks into states: the newest hunk is removed first.
    async fn carry_out(&self, wanted: &WantedStates, step: &ReviewStep) -> ResolutionOutcome {
        let pause = self.pause_guests().await;
        let outcome = {
            let _one_at_a_time = self.writing.lock().await;
            self.carry_out_alone(wanted, step).await
        };
        self.resume_guests(pause, None).await;
        outcome
    }

    /// As [`Self::switch`], for a caller that holds the writing lock.
    pub(crate) async fn carry_out_alone(
        &self,
        wanted: &WantedStates,
        step: &ReviewStep,
    ) -> ResolutionOutcome {
        let id = step.id.clone();
        let (resolved, conflicts, failed) = (Vec::new(), Vec::new(), Vec::new());
        let mut outcome = ResolutionOutcome { id, action: None, resolved, conflicts, failed };
        let steps = self.synced().ledger.steps(wanted);
        for (target, moves) in steps {
            // The remaining steps of such a file depend on the failed one.
            if outcome.failed.iter().any(|(failed, _)| *failed == target) {
                continue;
            }
            if self.book().is_closed {
                outcome.failed.push((target, "the session was closed meanwhile".to_owned()));
                continue;
            }
            match self.switch(&target, &moves, step).await {
                Ok(switched) => {
                    outcome.resolved.extend(switched.resolved);
                    outcome.conflicts.extend(switched.conflicts);
                }
                Err(reason) => outcome.failed.push((target, reason)),
            }
        }
        outcome
    }
}

/// A side of a file by its ledger; `None` for an unknown file, and where the sides are the same.
pub(crate) fn side_of(ledger: &Ledger, target: &Target, side: ReviewSide) -> Option<String> {
    let waiting = |state| {
        let file = ledger.review_of(target)?;
        Some(file.hunks.into_iter().map(|hunk| (hunk.id, state)).collect::<Vec<_>>())
    };
    let moves = match side {
        ReviewSide::Baseline => waiting(HunkState::Undone)?,
        ReviewSide::Proposed => waiting(HunkState::Applied)?,
        ReviewSide::Current => Vec::new(),
    };
    ledger.text_with(target, &moves)
}

impl EditBook {
    /// The file with the version its document has, and without proposals that the user has decided about; `None` when
    /// nothing else is left.
    fn as_it_waits(&self, mut file: FileReview, workspace: &Workspace) -> Option<FileReview> {
        file.version = self.versions.get(&file.target).copied();
        file.hunks.retain(|hunk| !self.decided.contains_key(&hunk.id));
        let mut outside = self.reports.fill_in(&mut file, workspace);
        self.review_reports.fill_in(&mut file, &mut outside, workspace);
        file.diagnostics = (!outside.is_empty()).then(|| outside.proposed(workspace));
        (!file.hunks.is_empty()).then_some(file)
    }
}

pub(super) fn wanted(
    ledger: &Ledger,
    target: &Target,
    ids: &[HunkId],
    action: ReviewAction,
) -> Vec<(HunkId, HunkState)> {
    let plan = ledger.plan(target, ids, action, true);
    plan.moves.into_iter().filter(|(id, _)| ids.contains(id)).collect()
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "change" } else { "changes" }
}
