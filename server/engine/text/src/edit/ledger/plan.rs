//! Which hunks an act of the user's means, and what it comes to.
//!
//! Rule: planning changes nothing; the layers on a hunk go with it, and the layers below come with it.

use super::*;

/// The effect of an action on the hunks of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolutionPlan {
    /// The states hunks will have.
    pub moves: Vec<(HunkId, HunkState)>,
    /// Hunks that the user's own text is in, and that are left alone for now.
    pub conflicts: Vec<HunkId>,
}

impl Ledger {
    /// The hunks that a selection means, by file.
    #[must_use]
    pub fn select(&self, selection: &Selection) -> BTreeMap<Target, Vec<HunkId>> {
        let is_meant = |id: &HunkId, hunk: &LedgerHunk| match selection {
            Selection::Hunks(ids) => ids.contains(id),
            Selection::File(target) => hunk.target == *target && hunk.state.is_waiting(),
            Selection::Turn(turn) => hunk.change.turn == *turn && hunk.state.is_waiting(),
            Selection::Session => hunk.state.is_waiting(),
        };
        let mut selected: BTreeMap<Target, Vec<HunkId>> = BTreeMap::new();
        // The newest first: the last replacement comes back first.
        for (id, replaced) in self.replaced.iter().rev() {
            let is_meant = match selection {
                Selection::Hunks(ids) => ids.contains(id),
                Selection::File(target) => replaced.target == *target && replaced.state.is_waiting(),
                Selection::Turn(turn) => replaced.change.turn == *turn && replaced.state.is_waiting(),
                Selection::Session => replaced.state.is_waiting(),
            };
            if is_meant {
                selected.entry(replaced.target.clone()).or_default().push(id.clone());
            }
        }
        for (id, hunk) in self.set_aside().filter(|(id, hunk)| is_meant(id, hunk)) {
            selected.entry(hunk.target.clone()).or_default().push(id.clone());
        }
        for (target, tracked) in &self.files {
            let meant =
                tracked.hunks.iter().filter(|id| self.hunks.get(id).is_some_and(|hunk| is_meant(id, hunk)));
            let meant: Vec<HunkId> = meant.cloned().collect();
            if !meant.is_empty() {
                selected.entry(target.clone()).or_default().extend(meant);
            }
        }
        selected
    }

    /// The effect of an action on hunks of one file. With `force` the user's changes are taken out as well, and
    /// the user's own text stays.
    #[must_use]
    pub fn plan(&self, target: &Target, ids: &[HunkId], action: ReviewAction, force: bool) -> ResolutionPlan {
        let wanted = ids.iter().filter_map(|id| {
            let state = self.state(id)?.after(action)?;
            Some((id.clone(), state))
        });
        self.plan_moves(target, wanted.collect(), force)
    }

    /// The steps that bring hunks of one file into states.
    #[must_use]
    pub fn plan_moves(
        &self,
        target: &Target,
        wanted: Vec<(HunkId, HunkState)>,
        force: bool,
    ) -> ResolutionPlan {
        let mut plan = ResolutionPlan::default();
        let (whole, mut waiting): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|(id, _)| self.is_whole(id) || self.is_set_aside(id));
        plan.moves = whole.into_iter().filter(|(id, state)| self.state(id) != Some(*state)).collect();
        let Some(tracked) = self.files.get(target) else { return plan };
        waiting.reverse();
        let (survey, by_layer) = (tracked.weave.survey(), tracked.by_layer(&self.hunks));
        let mut known = HashSet::new();
        for (id, state) in waiting {
            let moves = self.closure(&survey, by_layer, id.clone(), state);
            let touches_users = |hunk: &LedgerHunk| {
                hunk.state.is_in_text() != state.is_in_text() && survey.is_amended(hunk.layer)
            };
            if !force && moves.iter().any(|moved| self.hunks.get(moved).is_some_and(touches_users)) {
                plan.conflicts.push(id);
                continue;
            }
            plan.moves.extend(moves.into_iter().filter(|id| known.insert(id.clone())).map(|id| (id, state)));
        }
        plan
    }

    /// A hunk that is to be in a state, with the layers on it that go with it, or the layers below that come with it.
    fn closure(
        &self,
        survey: &WeaveSurvey<'_>,
        by_layer: &HashMap<LayerId, HunkId>,
        root: HunkId,
        state: HunkState,
    ) -> Vec<HunkId> {
        let mut moves: Vec<HunkId> = Vec::new();
        let mut known = HashSet::new();
        let mut waiting = vec![root];
        while let Some(id) = waiting.pop() {
            let Some(hunk) = self.hunks.get(&id).filter(|hunk| hunk.state != state) else { continue };
            if !known.insert(id.clone()) {
                continue;
            }
            if state.is_in_text() != hunk.state.is_in_text() {
                let others = match state.is_in_text() {
                    true => survey.supports(hunk.layer),
                    false => survey.dependents(hunk.layer),
                };
                waiting.extend(others.iter().filter_map(|layer| by_layer.get(layer)).cloned());
            }
            moves.push(id);
        }
        moves
    }

    /// The effect of an action on one resolution of the past: the moves that take it back, by file.
    #[must_use]
    pub fn moves_to_revert(
        &self,
        resolution: &ResolutionId,
    ) -> Option<BTreeMap<Target, Vec<(HunkId, HunkState)>>> {
        let resolution =
            self.resolutions.iter().find(|known| known.id == *resolution && !known.is_reverted)?;
        let mut by_file: BTreeMap<Target, Vec<(HunkId, HunkState)>> = BTreeMap::new();
        for (id, state) in &resolution.moves {
            if let Some(target) = self.target_of(id) {
                by_file.entry(target.clone()).or_default().push((id.clone(), *state));
            }
        }
        Some(by_file)
    }

    /// The newest resolution that was not taken back, and did not take back another: going back step by step must not
    /// turn in a circle.
    #[must_use]
    pub fn newest_resolution(&self) -> Option<&ResolutionId> {
        let is_step = |resolution: &&LedgerResolution| {
            let is_known = || resolution.moves.iter().any(|(hunk, _)| self.state(hunk).is_some());
            !resolution.is_reverted && !resolution.reverts && is_known()
        };
        self.resolutions.iter().rev().find(is_step).map(|resolution| &resolution.id)
    }

    /// The edits of a target's text that bring its hunks into these states.
    #[must_use]
    pub fn edits_for(&self, target: &Target, moves: &[(HunkId, HunkState)]) -> Vec<TextEdit> {
        let Some(tracked) = self.files.get(target) else { return Vec::new() };
        tracked.weave.edits_to_switch(&self.switches(moves))
    }

    /// The hunks of these turns that are in place, by file; of files as a whole the newest first.
    #[must_use]
    pub fn in_place_of(&self, turns: &[TurnId]) -> BTreeMap<Target, Vec<HunkId>> {
        let is_meant =
            |change: &ChangeOrigin, state: HunkState| state.is_in_text() && turns.contains(&change.turn);
        let mut found: BTreeMap<Target, Vec<HunkId>> = BTreeMap::new();
        for (id, replaced) in
            self.replaced.iter().rev().filter(|(_, hunk)| is_meant(&hunk.change, hunk.state))
        {
            found.entry(replaced.target.clone()).or_default().push(id.clone());
        }
        for id in self.files.values().flat_map(|tracked| &tracked.hunks) {
            if let Some(hunk) = self.hunks.get(id).filter(|hunk| is_meant(&hunk.change, hunk.state)) {
                found.entry(hunk.target.clone()).or_default().push(id.clone());
            }
        }
        for (id, hunk) in self.set_aside().filter(|(_, hunk)| is_meant(&hunk.change, hunk.state)) {
            found.entry(hunk.target.clone()).or_default().push(id.clone());
        }
        found
    }

    /// The hunks of a target that are applied and not reviewed.
    #[must_use]
    pub fn applied(&self, target: &Target) -> Vec<HunkId> {
        let of_text = self.files.get(target).into_iter().flat_map(|tracked| &tracked.hunks);
        let whole = self.replaced.iter().filter(|(_, replaced)| replaced.target == *target).map(|(id, _)| id);
        of_text.chain(whole).filter(|id| self.state(id) == Some(HunkState::Applied)).cloned().collect()
    }

    /// The files with hunks that are applied and not reviewed.
    #[must_use]
    pub fn applied_targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = self.files.keys().cloned().collect();
        targets.extend(self.replaced.iter().map(|(_, replaced)| replaced.target.clone()));
        targets.sort_unstable();
        targets.dedup();
        targets.retain(|target| !self.applied(target).is_empty());
        targets
    }

    /// The proposals of a prompt, by file.
    #[must_use]
    pub fn proposals(&self, permission: &PermissionId) -> BTreeMap<Target, Vec<HunkId>> {
        let mut found = BTreeMap::new();
        for (target, tracked) in &self.files {
            let of_prompt = tracked.hunks.iter().filter(|id| {
                let hunk = self.hunks.get(id);
                hunk.is_some_and(|hunk| {
                    hunk.state == HunkState::Proposed && hunk.change.permission.as_ref() == Some(permission)
                })
            });
            let of_prompt: Vec<HunkId> = of_prompt.cloned().collect();
            if !of_prompt.is_empty() {
                found.insert(target.clone(), of_prompt);
            }
        }
        found
    }

    /// The prompt that asks about a hunk.
    #[must_use]
    pub fn permission_of(&self, hunk: &HunkId) -> Option<&PermissionId> {
        let hunk = self.hunks.get(hunk).filter(|hunk| hunk.state == HunkState::Proposed)?;
        hunk.change.permission.as_ref()
    }
}
