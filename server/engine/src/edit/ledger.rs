//! The ledger of a session: every change the agent made or proposed, hunk by hunk, and what became of it.
//!
//! Rule: the ledger is a fold over its entries, live and on resume alike, and [`Ledger::apply`] is the only way it
//! changes. It knows texts and never files: whoever applies an entry has made sure that the text is so.

mod split;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::ops::Range;

use ropey::Rope;
use serde::{Deserialize, Serialize};

use crate::edit::TextEdit;
use crate::edit::weave::{Layer, Place, Survey, Weave};
use crate::ids::{CallId, ChangeId, HunkId, PermissionId, ResolutionId, TurnId};
use crate::journal::{BlobId, Blobs};
use crate::paths::Target;
use crate::session::review::{FileReview, HunkKind, HunkState, HunkView, ReviewAction, Selection};
use crate::workspace::shadow::Image;
pub use split::split;

/// Hunks of one file that can still be taken out and put back; past it the oldest that nothing waits for become part
/// of the text for good.
const MAX_HUNKS_OF_FILE: usize = 2_000;

/// Bytes of a hunk's lines that are remembered as the agent left them.
const MAX_REMEMBERED_BYTES: usize = 16 << 10;

/// A fact about the agent's changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Entry {
    /// A text is followed from now on.
    Tracked {
        /// The file or document.
        target: Target,
        /// Its text.
        base: BlobId,
    },
    /// Somebody other than the agent changed a text.
    Typed {
        /// The file or document.
        target: Target,
        /// What changed, step by step: each step's edits are of the text after the step before. Steps are not joined:
        /// what is deleted and typed again piece by piece comes back otherwise than in one piece.
        steps: Vec<Vec<TextEdit>>,
    },
    /// The agent changed a text, or wants to.
    Changed {
        /// The file or document.
        target: Target,
        /// The change.
        change: Change,
        /// The places, in their order.
        hunks: Vec<NewHunk>,
    },
    /// A command replaced a file as a whole: one that is not text, that was deleted, or that is open in the editor.
    Replaced {
        /// The file.
        target: Target,
        /// Whose it is.
        change: Change,
        /// The hunk's id.
        hunk: HunkId,
        /// What was there.
        before: Image,
        /// What was there then.
        after: Image,
        /// Whether the text that was followed under the file's name went with it, and comes back with it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        sets_aside: bool,
    },
    /// Hunks moved into other states, and the text with them.
    Moved {
        /// The file or document.
        target: Target,
        /// The act of the user's that did it; `None` for what the user did in the editor.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resolution: Option<ResolutionId>,
        /// The resolution that was taken back by this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reverts: Option<ResolutionId>,
        /// The hunks and their states now.
        moves: Vec<(HunkId, HunkState)>,
    },
    /// Proposals are no longer asked about: they were accepted and come back as changes, or their call has ended. Also
    /// a file as a whole that comes back as a change of lines.
    Withdrawn {
        /// The file or document.
        target: Target,
        /// The proposals.
        hunks: Vec<HunkId>,
    },
    /// What a file was before a turn changed it for the first time.
    Before {
        /// The turn.
        turn: TurnId,
        /// The file or document.
        target: Target,
        /// What it was.
        before: Before,
    },
    /// The model was told what became of these hunks.
    Told {
        /// The turn whose prompt told it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<TurnId>,
        /// The hunks, as they were told of.
        hunks: Vec<HunkId>,
    },
}

/// What a file was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Before {
    /// There was none.
    Absent,
    /// An open document; how it was on disk nobody has looked.
    Document {
        /// Its text.
        text: BlobId,
    },
    /// A closed file.
    File {
        /// Its bytes.
        bytes: BlobId,
    },
    /// What a command found.
    Image {
        /// What that was.
        image: Image,
    },
}

/// Whose a change is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// Its id.
    pub id: ChangeId,
    /// The turn.
    pub turn: TurnId,
    /// The call.
    pub call: CallId,
    /// What it does to the file.
    pub kind: HunkKind,
    /// The prompt that asks about it; `None` when it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<PermissionId>,
}

/// A place of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewHunk {
    /// Its id.
    pub id: HunkId,
    /// What it changes, in bytes of the text before the whole change.
    pub edits: Vec<TextEdit>,
}

/// A hunk.
#[derive(Clone, Debug)]
struct Hunk {
    target: Target,
    layer: Layer,
    change: Change,
    state: HunkState,
    /// Grows from change to change.
    order: u64,
    /// What the model was told: first by itself, when it made the hunk.
    told: Vec<Told>,
}

/// What the model was told of a hunk.
#[derive(Clone, Debug)]
struct Told {
    /// The turn whose prompt told it; `None` when that is not known.
    turn: Option<TurnId>,
    state: HunkState,
    /// Its lines.
    lines: String,
}

/// A hunk that is a file as a whole.
#[derive(Clone, Debug)]
struct Replaced {
    target: Target,
    change: Change,
    state: HunkState,
    before: Image,
    after: Image,
    order: u64,
    told: Vec<Told>,
    sets_aside: bool,
    /// What is followed under the file's name when the hunk is in the other state.
    aside: Option<Aside>,
}

/// A text that was followed, with its hunks.
#[derive(Clone, Debug)]
struct Aside {
    tracked: Tracked,
    hunks: BTreeMap<HunkId, Hunk>,
}

/// Hunks of one file that can be brought into states at a time.
pub type Step = (Target, Vec<(HunkId, HunkState)>);

/// A file as a whole that is to become something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The file.
    pub target: Target,
    /// What is there if nobody has touched it.
    pub expected: Image,
    /// What is to be there.
    pub wanted: Image,
}

/// A text that is followed.
#[derive(Clone, Debug)]
struct Tracked {
    text: Rope,
    weave: Weave,
    /// The hunks of the weave's layers that have not become part of the text.
    hunks: Vec<HunkId>,
}

/// What became of the hunks of one resolution.
#[derive(Clone, Debug)]
struct Resolution {
    id: ResolutionId,
    moves: Vec<(HunkId, HunkState)>,
    is_reverted: bool,
    /// Whether it took another one back.
    reverts: bool,
}

/// What an action comes to for the hunks of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The states hunks will have.
    pub moves: Vec<(HunkId, HunkState)>,
    /// Hunks that the user's own text stands in, and that are left alone for now.
    pub conflicts: Vec<HunkId>,
}

/// What the model has not been told of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// The hunk.
    pub hunk: HunkId,
    /// Its file.
    pub target: Target,
    /// Where it is now.
    pub state: HunkState,
    /// Its lines as the model knows them.
    pub known: String,
    /// Its lines now.
    pub now: String,
    /// The number of the first of these, from 1.
    pub line: usize,
}

/// The agent's changes of one session.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    files: BTreeMap<Target, Tracked>,
    hunks: BTreeMap<HunkId, Hunk>,
    resolutions: Vec<Resolution>,
    before: BTreeMap<TurnId, BTreeMap<Target, Before>>,
    /// In the order in which they were made.
    replaced: Vec<(HunkId, Replaced)>,
    /// Where each of them is.
    places: BTreeMap<HunkId, usize>,
    /// How many changes there were.
    changes: u64,
}

impl Ledger {
    /// Folds all entries of a journal, with what could not be folded.
    #[must_use]
    pub fn fold(entries: Vec<Entry>, blobs: &Blobs) -> (Self, Vec<io::Error>) {
        let mut ledger = Self::default();
        let load = |id: &BlobId| String::from_utf8(blobs.get(id)?).map_err(io::Error::other);
        let problems = entries.into_iter().filter_map(|entry| ledger.apply(entry, load).err()).collect();
        (ledger, problems)
    }

    /// Folds one entry in. `load` gives the text of a blob.
    ///
    /// # Errors
    /// When the text of a followed file cannot be had; what is known of that file is then forgotten.
    pub fn apply(
        &mut self,
        entry: Entry,
        load: impl FnOnce(&BlobId) -> io::Result<String>,
    ) -> io::Result<()> {
        match entry {
            Entry::Tracked { target, base } => match load(&base) {
                Ok(text) => self.track(target, Rope::from_str(&text)),
                Err(error) => {
                    self.forget(&target);
                    return Err(error);
                }
            },
            Entry::Typed { target, steps } => {
                for edits in steps {
                    self.check(&target, &edits)?;
                    if let Some(tracked) = self.files.get_mut(&target) {
                        tracked.weave.type_in(&tracked.text, &edits);
                        edit_rope(&mut tracked.text, &edits);
                    }
                }
            }
            Entry::Changed { target, change, hunks } => {
                let edits: Vec<TextEdit> = hunks.iter().flat_map(|hunk| hunk.edits.clone()).collect();
                self.check(&target, &edits)?;
                self.add(&target, &change, hunks);
            }
            Entry::Replaced { target, change, hunk, before, after, sets_aside } => {
                let (state, aside) = (HunkState::Applied, None);
                let told = vec![Told { turn: None, state, lines: String::new() }];
                self.changes += 1;
                let order = self.changes;
                let replaced =
                    Replaced { target, change, state, before, after, order, told, sets_aside, aside };
                let place = self.replaced.len();
                self.places.insert(hunk.clone(), place);
                self.replaced.push((hunk, replaced));
                self.exchange(place);
            }
            Entry::Moved { target, resolution, reverts, moves } => {
                self.note_resolution(resolution, reverts.as_ref(), &moves);
                self.move_hunks(&target, &moves);
            }
            Entry::Withdrawn { target, hunks } => self.withdraw(&target, &hunks),
            Entry::Before { turn, target, before } => {
                self.before.entry(turn).or_default().entry(target).or_insert(before);
            }
            Entry::Told { turn, hunks } => self.note_told(turn.as_ref(), &hunks),
        }
        Ok(())
    }

    /// What the files were that a turn has changed.
    #[must_use]
    pub fn before(&self, turn: &TurnId) -> Option<&BTreeMap<Target, Before>> {
        self.before.get(turn)
    }

    /// Whether the text of a target is followed.
    #[must_use]
    pub fn is_tracked(&self, target: &Target) -> bool {
        self.files.contains_key(target)
    }

    /// The targets whose texts are followed.
    pub fn targets(&self) -> impl Iterator<Item = &Target> {
        self.files.keys()
    }

    /// The text of a target as the ledger knows it.
    #[must_use]
    pub fn text(&self, target: &Target) -> Option<&Rope> {
        self.files.get(target).map(|tracked| &tracked.text)
    }

    /// Takes the same text in another rope, so that comparing it with the editor's costs nothing.
    pub fn adopt(&mut self, target: &Target, text: &Rope) {
        if let Some(tracked) = self.files.get_mut(target)
            && !tracked.text.is_instance(text)
            && tracked.text == *text
        {
            tracked.text = text.clone();
        }
    }

    /// Takes a rope that is known to hold the same text: comparing them would cost each keystroke the whole text.
    pub fn adopt_same(&mut self, target: &Target, text: &Rope) {
        if let Some(tracked) = self.files.get_mut(target) {
            debug_assert!(tracked.text == *text, "the ledger has lost {target}");
            tracked.text = text.clone();
        }
    }

    /// What the user did to a text: what was typed, and hunks that were switched by an undo or redo in the editor, with
    /// their states now.
    #[must_use]
    pub fn tell_apart(
        &self,
        target: &Target,
        edits: &[TextEdit],
    ) -> (Vec<TextEdit>, Vec<(HunkId, HunkState)>) {
        let Some(tracked) = self.files.get(target) else { return (Vec::new(), Vec::new()) };
        let (typed, switched) = tracked.weave.tell_apart(&tracked.text, edits);
        if switched.is_empty() {
            return (typed, Vec::new());
        }
        let by_layer = tracked.by_layer(&self.hunks);
        let moves = switched.into_iter().filter_map(|(layer, active)| {
            let state = if active { HunkState::Applied } else { HunkState::Undone };
            Some(((*by_layer.get(&layer)?).clone(), state))
        });
        (typed, moves.collect())
    }

    /// The hunk's file, if there is such a hunk.
    #[must_use]
    pub fn target_of(&self, hunk: &HunkId) -> Option<&Target> {
        let text = self.text_hunk(hunk).map(|hunk| &hunk.target);
        text.or_else(|| self.replaced(hunk).map(|replaced| &replaced.target))
    }

    /// Where a hunk is in its life.
    #[must_use]
    pub fn state(&self, hunk: &HunkId) -> Option<HunkState> {
        let text = self.text_hunk(hunk).map(|hunk| hunk.state);
        text.or_else(|| self.replaced(hunk).map(|replaced| replaced.state))
    }

    /// Whether a hunk is a file as a whole.
    #[must_use]
    pub fn is_whole(&self, hunk: &HunkId) -> bool {
        self.places.contains_key(hunk)
    }

    /// Whether a hunk is of a text that a command has put another file in the place of.
    #[must_use]
    pub fn is_set_aside(&self, hunk: &HunkId) -> bool {
        !self.hunks.contains_key(hunk) && self.text_hunk(hunk).is_some()
    }

    /// What has to become of files for hunks that are files as a whole to be in these states.
    #[must_use]
    pub fn replacements(&self, moves: &[(HunkId, HunkState)]) -> Vec<Replacement> {
        let replacement = |(id, state): &(HunkId, HunkState)| {
            let replaced = self.replaced(id)?;
            match (replaced.state.is_in_text(), state.is_in_text()) {
                (true, false) => Some(replaced.replacement(&replaced.after, &replaced.before)),
                (false, true) => Some(replaced.replacement(&replaced.before, &replaced.after)),
                (true, true) | (false, false) => None,
            }
        };
        moves.iter().filter_map(replacement).collect()
    }

    /// The steps in which hunks can be brought into states, each of one file: what was made last is taken out first, then
    /// what was made first is brought back first. A step is one file as a whole, or hunks of a text.
    #[must_use]
    pub fn steps(&self, wanted: &BTreeMap<Target, Vec<(HunkId, HunkState)>>) -> Vec<Step> {
        let (mut out, mut back) = (Vec::new(), Vec::new());
        for (target, moves) in wanted {
            let leaves = |(id, state): &(HunkId, HunkState)| {
                !state.is_in_text() && self.state(id).is_some_and(HunkState::is_in_text)
            };
            let (leaving, others): (Vec<_>, Vec<_>) = moves.iter().cloned().partition(leaves);
            out.extend(self.steps_of(target, leaving));
            back.extend(self.steps_of(target, others));
        }
        out.sort_by_key(|(orders, _)| std::cmp::Reverse(orders.end));
        back.sort_by_key(|(orders, _)| orders.start);
        out.into_iter().chain(back).map(|(_, step)| step).collect()
    }

    /// The file as a whole that a command has put in the place of `before`, if that is what a document has become when
    /// it was loaded again, with whose it is.
    #[must_use]
    pub fn reload_of(&self, target: &Target, before: &Rope, after: &Rope) -> Option<(HunkId, Change)> {
        let newest = self.replaced.iter().rev().find(|(_, replaced)| replaced.target == *target);
        let (id, replaced) = newest.filter(|(_, hunk)| hunk.state.is_in_text() && !hunk.sets_aside)?;
        let is = |image: &Image, text: &Rope| match image {
            Image::Kept { blob, .. } => *blob == BlobId::of(text.to_string().as_bytes()),
            Image::Absent | Image::Symlink { .. } | Image::NotKept { .. } => false,
        };
        let is_it = self.text(target).is_some_and(|text| text.is_instance(before) || text == before)
            && is(&replaced.after, after)
            && is(&replaced.before, before);
        let change = Change { kind: HunkKind::Text, ..replaced.change.clone() };
        is_it.then(|| (id.clone(), change))
    }

    /// The hunks that a selection means, by file.
    #[must_use]
    pub fn select(&self, selection: &Selection) -> BTreeMap<Target, Vec<HunkId>> {
        let is_meant = |id: &HunkId, hunk: &Hunk| match selection {
            Selection::Hunks(ids) => ids.contains(id),
            Selection::File(target) => hunk.target == *target && hunk.state.is_waiting(),
            Selection::Turn(turn) => hunk.change.turn == *turn && hunk.state.is_waiting(),
            Selection::Session => hunk.state.is_waiting(),
        };
        let mut selected: BTreeMap<Target, Vec<HunkId>> = BTreeMap::new();
        // The newest first: what was replaced last is the first to come back.
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

    /// What an action comes to for hunks of one file. With `force` what the user has changed is taken out as well, and
    /// the user's own text stays.
    #[must_use]
    pub fn plan(&self, target: &Target, ids: &[HunkId], action: ReviewAction, force: bool) -> Plan {
        let wanted = ids.iter().filter_map(|id| {
            let state = self.state(id)?.after(action)?;
            Some((id.clone(), state))
        });
        self.plan_moves(target, wanted.collect(), force)
    }

    /// What it comes to to bring hunks of one file into states.
    #[must_use]
    pub fn plan_moves(&self, target: &Target, wanted: Vec<(HunkId, HunkState)>, force: bool) -> Plan {
        let mut plan = Plan::default();
        let (whole, mut waiting): (Vec<_>, Vec<_>) =
            wanted.into_iter().partition(|(id, _)| self.is_whole(id) || self.is_set_aside(id));
        plan.moves = whole.into_iter().filter(|(id, state)| self.state(id) != Some(*state)).collect();
        let Some(tracked) = self.files.get(target) else { return plan };
        waiting.reverse();
        let (survey, by_layer) = (tracked.weave.survey(), tracked.by_layer(&self.hunks));
        let mut known = HashSet::new();
        for (id, state) in waiting {
            let moves = self.closure(&survey, &by_layer, id.clone(), state);
            let touches_users =
                |hunk: &Hunk| hunk.state.is_in_text() != state.is_in_text() && survey.is_amended(hunk.layer);
            if !force && moves.iter().any(|moved| self.hunks.get(moved).is_some_and(touches_users)) {
                plan.conflicts.push(id);
                continue;
            }
            plan.moves.extend(moves.into_iter().filter(|id| known.insert(id.clone())).map(|id| (id, state)));
        }
        plan
    }

    /// A hunk that is to be in a state, with what stands on it and goes with it, or what it stands on and comes with it.
    fn closure(
        &self,
        survey: &Survey<'_>,
        by_layer: &HashMap<Layer, &HunkId>,
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
                waiting.extend(
                    others.into_iter().filter_map(|layer| by_layer.get(&layer)).map(|id| (*id).clone()),
                );
            }
            moves.push(id);
        }
        moves
    }

    /// What an action on one resolution of the past comes to: the moves that take it back, by file.
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
        let is_step = |resolution: &&Resolution| {
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
        let is_meant = |change: &Change, state: HunkState| state.is_in_text() && turns.contains(&change.turn);
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

    /// The hunks of a target that are applied and that nobody has looked at.
    #[must_use]
    pub fn applied(&self, target: &Target) -> Vec<HunkId> {
        let of_text = self.files.get(target).into_iter().flat_map(|tracked| &tracked.hunks);
        let whole = self.replaced.iter().filter(|(_, replaced)| replaced.target == *target).map(|(id, _)| id);
        of_text.chain(whole).filter(|id| self.state(id) == Some(HunkState::Applied)).cloned().collect()
    }

    /// The files with hunks that are applied and that nobody has looked at.
    #[must_use]
    pub fn applied_targets(&self) -> Vec<Target> {
        let mut targets: Vec<Target> = self.files.keys().cloned().collect();
        targets.extend(self.replaced.iter().map(|(_, replaced)| replaced.target.clone()));
        targets.sort_unstable();
        targets.dedup();
        targets.retain(|target| !self.applied(target).is_empty());
        targets
    }

    /// The kind of the change that made the file, if one of the hunks did.
    #[must_use]
    pub fn kind(&self, hunk: &HunkId) -> Option<HunkKind> {
        let text = self.text_hunk(hunk).map(|hunk| hunk.change.kind);
        text.or_else(|| self.replaced(hunk).map(|replaced| replaced.change.kind))
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

    /// The files whose hunks wait for the user.
    #[must_use]
    pub fn review(&self) -> Vec<FileReview> {
        let mut targets: Vec<&Target> = self.files.keys().collect();
        targets.extend(self.replaced.iter().map(|(_, replaced)| &replaced.target));
        targets.sort_unstable();
        targets.dedup();
        targets.into_iter().filter_map(|target| self.review_of(target)).collect()
    }

    /// The hunks of a file that wait for the user; `None` when there are none.
    #[must_use]
    pub fn review_of(&self, target: &Target) -> Option<FileReview> {
        let tracked = self.files.get(target);
        let whole =
            self.replaced.iter().filter(|(_, hunk)| hunk.target == *target && hunk.state.is_waiting());
        let mut hunks: Vec<HunkView> = whole.map(|(id, hunk)| hunk.view(id)).collect();
        if let Some(tracked) = tracked {
            let survey = tracked.weave.survey();
            hunks.extend(tracked.hunks.iter().filter_map(|id| {
                let hunk = self.hunks.get(id).filter(|hunk| hunk.state.is_waiting())?;
                Some(tracked.view(&survey, id, hunk))
            }));
        }
        hunks.sort_by_key(|hunk| (hunk.range.start, hunk.range.end));
        (!hunks.is_empty()).then(|| FileReview {
            target: target.clone(),
            text: tracked.map(|tracked| tracked.text.clone()).unwrap_or_default(),
            version: None,
            hunks,
        })
    }

    /// The text of a file with hunks brought into other states.
    #[must_use]
    pub fn text_with(&self, target: &Target, moves: &[(HunkId, HunkState)]) -> Option<String> {
        let tracked = self.files.get(target)?;
        Some(tracked.weave.project(&tracked.text, &self.switches(moves)))
    }

    /// What the model does not know of its changes, when the conversation has forgotten these turns.
    #[must_use]
    pub fn news(&self, forgotten: &BTreeSet<TurnId>) -> Vec<News> {
        let mut news = Vec::new();
        for (target, tracked) in &self.files {
            let survey = tracked.weave.survey();
            for id in &tracked.hunks {
                let Some(hunk) = self.hunks.get(id) else { continue };
                let Some(told) = known(&hunk.change, &hunk.told, forgotten) else { continue };
                let place = survey.place(&tracked.text, hunk.layer);
                let line = tracked.text.byte_to_line(place.lines.start) + 1;
                let now = hunk.now(place);
                let is_known = told.state.is_in_text() == hunk.state.is_in_text()
                    && (!hunk.state.is_in_text() || told.lines == now || !survey.is_amended(hunk.layer));
                if is_known || hunk.state == HunkState::Proposed {
                    continue;
                }
                news.push(News {
                    hunk: id.clone(),
                    target: target.clone(),
                    state: hunk.state,
                    known: told.lines.clone(),
                    now,
                    line,
                });
            }
        }
        let is_news = |replaced: &Replaced| {
            let told = known(&replaced.change, &replaced.told, forgotten);
            told.is_some_and(|told| told.state.is_in_text() != replaced.state.is_in_text())
        };
        let whole = self.replaced.iter().filter(|(_, replaced)| is_news(replaced));
        news.extend(whole.map(|(id, replaced)| News {
            hunk: id.clone(),
            target: replaced.target.clone(),
            state: replaced.state,
            known: String::new(),
            now: String::new(),
            line: 1,
        }));
        news
    }

    /// Every hunk there is, in no state in particular.
    #[cfg(test)]
    pub(crate) fn every_hunk(&self) -> Vec<HunkId> {
        self.files.values().flat_map(|tracked| &tracked.hunks).cloned().collect()
    }

    fn replaced(&self, hunk: &HunkId) -> Option<&Replaced> {
        self.places.get(hunk).and_then(|place| self.replaced.get(*place)).map(|(_, replaced)| replaced)
    }

    fn text_hunk(&self, id: &HunkId) -> Option<&Hunk> {
        let aside = || self.asides().find_map(|aside| aside.hunks.get(id));
        self.hunks.get(id).or_else(aside)
    }

    fn asides(&self) -> impl Iterator<Item = &Aside> {
        self.replaced.iter().filter_map(|(_, replaced)| replaced.aside.as_ref())
    }

    /// The hunks of texts that were replaced as a whole.
    fn set_aside(&self) -> impl Iterator<Item = (&HunkId, &Hunk)> {
        self.asides().flat_map(|aside| &aside.hunks)
    }

    /// Steps of one file with the orders of their hunks.
    fn steps_of(&self, target: &Target, moves: Vec<(HunkId, HunkState)>) -> Vec<(Range<u64>, Step)> {
        let order = |id: &HunkId| {
            let of_text = self.text_hunk(id).map(|hunk| hunk.order);
            of_text.or_else(|| self.replaced(id).map(|replaced| replaced.order)).unwrap_or_default()
        };
        let mut moves: Vec<_> = moves.into_iter().map(|moved| (order(&moved.0), moved)).collect();
        moves.sort_by_key(|(order, _)| *order);
        let mut steps: Vec<(Range<u64>, Step)> = Vec::new();
        let mut is_open = false;
        for (order, moved) in moves {
            let is_whole = self.is_whole(&moved.0);
            match steps.last_mut() {
                Some((orders, (_, step))) if is_open && !is_whole => {
                    orders.end = order;
                    step.push(moved);
                }
                _ => steps.push((order..order, (target.clone(), vec![moved]))),
            }
            is_open = !is_whole;
        }
        steps
    }

    /// What is followed under a file's name changes places with what its replacement has set aside.
    fn exchange(&mut self, place: usize) {
        let Some((_, replaced)) = self.replaced.get_mut(place).filter(|(_, hunk)| hunk.sets_aside) else {
            return;
        };
        let hunks = &mut self.hunks;
        let now = self.files.remove(&replaced.target).map(|tracked| {
            let hunks = tracked.hunks.iter().filter_map(|id| hunks.remove_entry(id)).collect();
            Aside { tracked, hunks }
        });
        if let Some(Aside { tracked, hunks }) = std::mem::replace(&mut replaced.aside, now) {
            self.files.insert(replaced.target.clone(), tracked);
            self.hunks.extend(hunks);
        }
    }

    /// Whether edits fit a text. An entry before them may have been lost with a damaged line of the journal: nothing is
    /// known of that file then.
    fn check(&mut self, target: &Target, edits: &[TextEdit]) -> io::Result<()> {
        let Some(tracked) = self.files.get(target) else { return Ok(()) };
        let text = &tracked.text;
        let fits = |at: usize| at <= text.len_bytes() && text.char_to_byte(text.byte_to_char(at)) == at;
        let mut end = 0;
        let all_fit = edits.iter().all(|edit| {
            let in_order = end <= edit.range.start && edit.range.start <= edit.range.end;
            end = edit.range.end;
            in_order && fits(edit.range.start) && fits(edit.range.end)
        });
        if all_fit {
            return Ok(());
        }
        self.forget(target);
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the changes of {target} do not fit its text"),
        ))
    }

    fn track(&mut self, target: Target, text: Rope) {
        let weave = Weave::new(text.len_bytes());
        self.forget(&target);
        self.files.insert(target, Tracked { text, weave, hunks: Vec::new() });
    }

    fn forget(&mut self, target: &Target) {
        if let Some(tracked) = self.files.remove(target) {
            for hunk in tracked.hunks {
                self.hunks.remove(&hunk);
            }
        }
    }

    fn add(&mut self, target: &Target, change: &Change, hunks: Vec<NewHunk>) {
        let Some(tracked) = self.files.get_mut(target) else { return };
        self.changes += 1;
        let order = self.changes;
        let is_made = change.permission.is_none();
        let state = if is_made { HunkState::Applied } else { HunkState::Proposed };
        let mut added = Vec::with_capacity(hunks.len());
        // From the end: the text before a hunk is then still the text that its edits count in.
        for NewHunk { id, edits } in hunks.iter().rev() {
            // A proposal that was accepted comes back under its name.
            if let Some(old) = self.hunks.remove(id).filter(|old| old.target == *target) {
                tracked.hunks.retain(|known| known != id);
                tracked.weave.retire(&[old.layer]);
            }
            let layer = tracked.weave.add_layer(&tracked.text, edits, is_made);
            added.push((id.clone(), layer));
        }
        if is_made {
            let edits: Vec<TextEdit> = hunks.into_iter().flat_map(|hunk| hunk.edits).collect();
            edit_rope(&mut tracked.text, &edits);
        }
        let survey = tracked.weave.survey();
        for (id, layer) in added.into_iter().rev() {
            let place = survey.place(&tracked.text, layer);
            // What is only proposed the model does not take for done.
            let lines = remembered(if is_made { place.with } else { place.without });
            let told = vec![Told { turn: None, state, lines }];
            let hunk = Hunk { target: target.clone(), layer, change: change.clone(), state, order, told };
            self.hunks.insert(id.clone(), hunk);
            tracked.hunks.push(id);
        }
        self.retire_oldest(target);
    }

    fn move_hunks(&mut self, target: &Target, moves: &[(HunkId, HunkState)]) {
        for (id, state) in moves {
            let Some(place) = self.places.get(id).copied() else { continue };
            let Some((_, replaced)) = self.replaced.get_mut(place) else { continue };
            let is_exchanged = replaced.state.is_in_text() != state.is_in_text();
            replaced.state = *state;
            if is_exchanged {
                self.exchange(place);
            }
        }
        for (_, replaced) in &mut self.replaced {
            let Some(aside) = replaced.aside.as_mut().filter(|_| replaced.target == *target) else {
                continue;
            };
            for (id, state) in moves {
                if let Some(hunk) = aside.hunks.get_mut(id) {
                    hunk.state = *state;
                }
            }
        }
        let switches = self.switches(moves);
        let Some(tracked) = self.files.get_mut(target) else { return };
        let edits = tracked.weave.edits_to_switch(&switches);
        tracked.weave.switch(&tracked.text, &switches);
        edit_rope(&mut tracked.text, &edits);
        for (id, state) in moves {
            if let Some(hunk) = self.hunks.get_mut(id) {
                hunk.state = *state;
            }
        }
    }

    fn withdraw(&mut self, target: &Target, ids: &[HunkId]) {
        if ids.iter().any(|id| self.is_whole(id)) {
            self.replaced.retain(|(id, _)| !ids.contains(id));
            let places = self.replaced.iter().enumerate();
            self.places = places.map(|(place, (id, _))| (id.clone(), place)).collect();
        }
        for (_, replaced) in &mut self.replaced {
            let Some(Aside { tracked, hunks }) = replaced.aside.as_mut() else { continue };
            let layers: Vec<Layer> =
                ids.iter().filter_map(|id| hunks.remove(id)).map(|hunk| hunk.layer).collect();
            if !layers.is_empty() {
                tracked.weave.retire(&layers);
                tracked.hunks.retain(|id| !ids.contains(id));
            }
        }
        let Some(tracked) = self.files.get_mut(target) else { return };
        let layers: Vec<Layer> =
            ids.iter().filter_map(|id| self.hunks.remove(id)).map(|hunk| hunk.layer).collect();
        tracked.weave.retire(&layers);
        tracked.hunks.retain(|id| !ids.contains(id));
    }

    fn note_resolution(
        &mut self,
        resolution: Option<ResolutionId>,
        reverts: Option<&ResolutionId>,
        moves: &[(HunkId, HunkState)],
    ) {
        if let Some(reverted) = self.resolutions.iter_mut().find(|known| Some(&known.id) == reverts) {
            reverted.is_reverted = true;
        }
        let Some(id) = resolution else { return };
        let before = moves.iter().filter_map(|(hunk, _)| Some((hunk.clone(), self.state(hunk)?)));
        let before: Vec<_> = before.collect();
        match self.resolutions.iter_mut().find(|known| known.id == id) {
            // One resolution has an entry for each of its files.
            Some(known) => known.moves.extend(before),
            None => {
                let (is_reverted, reverts) = (false, reverts.is_some());
                self.resolutions.push(Resolution { id, moves: before, is_reverted, reverts });
            }
        }
    }

    fn note_told(&mut self, turn: Option<&TurnId>, ids: &[HunkId]) {
        for id in ids {
            let place = self.places.get(id).copied();
            if let Some((_, replaced)) = place.and_then(|place| self.replaced.get_mut(place)) {
                let told = Told { turn: turn.cloned(), state: replaced.state, lines: String::new() };
                replaced.told.push(told);
            }
        }
        let mut surveys = BTreeMap::new();
        for id in ids {
            let Some(hunk) = self.hunks.get_mut(id) else { continue };
            let Some((target, tracked)) = self.files.get_key_value(&hunk.target) else { continue };
            let survey = surveys.entry(target).or_insert_with(|| tracked.weave.survey());
            let lines = hunk.now(survey.place(&tracked.text, hunk.layer));
            hunk.told.push(Told { turn: turn.cloned(), state: hunk.state, lines });
        }
    }

    fn retire_oldest(&mut self, target: &Target) {
        let Some(tracked) = self.files.get_mut(target) else { return };
        let surplus = tracked.hunks.len().saturating_sub(MAX_HUNKS_OF_FILE);
        let is_done = |id: &&HunkId| self.hunks.get(id).is_none_or(|hunk| !hunk.state.is_waiting());
        let done: Vec<HunkId> = tracked.hunks.iter().filter(is_done).take(surplus).cloned().collect();
        self.withdraw(target, &done);
    }

    fn switches(&self, moves: &[(HunkId, HunkState)]) -> Vec<(Layer, bool)> {
        moves.iter().filter_map(|(id, state)| Some((self.hunks.get(id)?.layer, state.is_in_text()))).collect()
    }
}

impl Replaced {
    fn replacement(&self, expected: &Image, wanted: &Image) -> Replacement {
        Replacement { target: self.target.clone(), expected: expected.clone(), wanted: wanted.clone() }
    }

    fn view(&self, id: &HunkId) -> HunkView {
        HunkView {
            id: id.clone(),
            turn: self.change.turn.clone(),
            call: self.change.call.clone(),
            kind: self.change.kind,
            state: self.state,
            range: 0..0,
            lines: 0..0,
            old_text: String::new(),
            new_text: String::new(),
            amended: false,
            permission: None,
        }
    }
}

impl Hunk {
    /// Its lines as they are at its place.
    fn now(&self, place: Place) -> String {
        remembered(if self.state.is_in_text() { place.with } else { place.without })
    }
}

impl Tracked {
    fn by_layer(&self, hunks: &BTreeMap<HunkId, Hunk>) -> HashMap<Layer, &HunkId> {
        self.hunks.iter().filter_map(|id| Some((hunks.get(id)?.layer, id))).collect()
    }

    fn view(&self, survey: &Survey<'_>, id: &HunkId, hunk: &Hunk) -> HunkView {
        let place = survey.place(&self.text, hunk.layer);
        HunkView {
            id: id.clone(),
            turn: hunk.change.turn.clone(),
            call: hunk.change.call.clone(),
            kind: hunk.change.kind,
            state: hunk.state,
            range: place.range,
            lines: lines_of(&self.text, &place.lines),
            old_text: place.without,
            new_text: place.with,
            amended: survey.is_amended(hunk.layer),
            permission: hunk.change.permission.clone().filter(|_| hunk.state == HunkState::Proposed),
        }
    }
}

/// What the model knows of a hunk in a conversation that has forgotten these turns; `None` when that is nothing.
fn known<'t>(change: &Change, told: &'t [Told], forgotten: &BTreeSet<TurnId>) -> Option<&'t Told> {
    let is_there = |told: &&Told| told.turn.as_ref().is_none_or(|turn| !forgotten.contains(turn));
    told.iter().rev().find(is_there).filter(|_| !forgotten.contains(&change.turn))
}

/// The lines that whole lines, given in bytes, are.
fn lines_of(text: &Rope, bytes: &Range<usize>) -> Range<usize> {
    let start = text.byte_to_line(bytes.start);
    let end = text.byte_to_line(bytes.end);
    // The last line of a text without a line ending at its end reaches to the end of the text.
    let is_unfinished = !bytes.is_empty() && text.line_to_byte(end) < bytes.end;
    start..end + usize::from(is_unfinished)
}

impl HunkState {
    /// Whether the hunk is in the text.
    #[must_use]
    pub fn is_in_text(self) -> bool {
        match self {
            Self::Applied | Self::Kept | Self::Conflict => true,
            Self::Proposed | Self::Undone => false,
        }
    }

    /// Whether the user may still want to decide about it.
    #[must_use]
    pub fn is_waiting(self) -> bool {
        match self {
            Self::Proposed | Self::Applied | Self::Conflict => true,
            Self::Kept | Self::Undone => false,
        }
    }

    /// The state after an action; `None` where it makes no sense.
    fn after(self, action: ReviewAction) -> Option<Self> {
        match (action, self) {
            (ReviewAction::Accept, Self::Undone) => Some(Self::Applied),
            (ReviewAction::Reject | ReviewAction::Undo, Self::Applied | Self::Conflict | Self::Kept) => {
                Some(Self::Undone)
            }
            (ReviewAction::Keep, Self::Applied | Self::Conflict) => Some(Self::Kept),
            // Proposals are decided by answering the prompt that asks about them.
            (_, Self::Proposed) => None,
            (ReviewAction::Accept, Self::Applied | Self::Kept | Self::Conflict)
            | (ReviewAction::Reject | ReviewAction::Undo | ReviewAction::Keep, Self::Undone)
            | (ReviewAction::Keep, Self::Kept) => None,
        }
    }
}

/// Applies sorted, non-overlapping byte edits to a rope.
pub fn edit_rope(text: &mut Rope, edits: &[TextEdit]) {
    for edit in edits.iter().rev() {
        let start = text.byte_to_char(edit.range.start);
        text.remove(start..text.byte_to_char(edit.range.end));
        text.insert(start, &edit.new_text);
    }
}

fn remembered(mut text: String) -> String {
    let mut end = text.len().min(MAX_REMEMBERED_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
