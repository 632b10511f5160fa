//! The ledger of a session: every change the agent made or proposed, hunk by hunk, and what became of it.
//!
//! Rule: the ledger is a fold over its entries, live and on resume alike, and [`Ledger::apply`] is the only way it
//! changes. It knows texts and never files: the caller that applies an entry has verified the text.

mod entry;
mod pairs;
mod plan;
pub mod review;
pub mod split;
#[cfg(test)]
mod tests;
mod view;
mod whole;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use ropey::Rope;
use serde::{Deserialize, Serialize};

use crate::edit::TextEdit;
use crate::edit::change::edit_rope;
use crate::edit::ledger::review::{FileReview, HunkKind, HunkState, HunkView, ReviewAction, Selection};
use crate::edit::weave::{LayerId, LayerPlace, Weave, WeaveSurvey};
use crate::shell_change::FileImage;
use kode_base::ids::{CallId, ChangeId, HunkId, PermissionId, ResolutionId, TurnId};
use kode_base::paths::Target;
use kode_journal::{BlobId, Blobs};
use whole::{AsideText, WholeFileHunk};

pub use entry::{ChangeOrigin, FileBefore, LedgerEntry, NewHunk};
pub use plan::ResolutionPlan;
pub use split::split;
pub use view::HunkNews;
pub use whole::{FileReplacement, FileStep};

/// Hunks of one file that can still be taken out and put back; past it the oldest that nothing waits for become part
/// of the text for good.
const MAX_HUNKS_OF_FILE: usize = 2_000;

/// Bytes of a hunk's lines that are remembered as the agent left them.
const MAX_REMEMBERED_BYTES: usize = 16 << 10;

/// A hunk.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LedgerHunk {
    target: Target,
    layer: LayerId,
    change: ChangeOrigin,
    state: HunkState,
    /// Whether it ever was in the text.
    was_made: bool,
    /// Grows from change to change.
    order: u64,
    /// The state that the model knows: first by itself, when it made the hunk.
    reported: Vec<HunkNotice>,
}

/// The state of a hunk that the model knows.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct HunkNotice {
    /// The turn whose prompt told it; `None` when that is not known.
    turn: Option<TurnId>,
    state: HunkState,
    /// Its lines.
    lines: String,
}

/// A text that is followed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct TrackedText {
    #[serde(with = "rope")]
    text: Rope,
    weave: Weave,
    /// The hunks of the weave's layers that have not become part of the text.
    hunks: Vec<HunkId>,
    /// These by their layers.
    #[serde(skip)]
    by_layer: HunksByLayer,
}

/// The hunks of a text by their layers, sorted when they are asked for: each keystroke within a hunk asks.
#[derive(Clone, Default)]
struct HunksByLayer(OnceLock<HashMap<LayerId, HunkId>>);

impl std::fmt::Debug for HunksByLayer {
    /// Says nothing: two texts are the same whether or not they were asked.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HunksByLayer").finish_non_exhaustive()
    }
}

/// The outcome of the hunks of one resolution.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct LedgerResolution {
    id: ResolutionId,
    moves: Vec<(HunkId, HunkState)>,
    is_reverted: bool,
    /// Whether it took another one back.
    reverts: bool,
}

/// The agent's changes of one session.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ledger {
    #[serde(with = "pairs")]
    files: BTreeMap<Target, TrackedText>,
    hunks: BTreeMap<HunkId, LedgerHunk>,
    resolutions: Vec<LedgerResolution>,
    #[serde(with = "pairs::by_turn")]
    before: BTreeMap<TurnId, BTreeMap<Target, FileBefore>>,
    /// In the order in which they were made.
    replaced: Vec<(HunkId, WholeFileHunk)>,
    /// Where each of them is.
    places: BTreeMap<HunkId, usize>,
    /// How many changes there were.
    changes: u64,
    /// The mode bits of files whose creation was undone.
    #[serde(default, with = "pairs")]
    modes: BTreeMap<Target, u32>,
}

impl Ledger {
    /// Folds all entries of a journal, with what could not be folded.
    #[must_use]
    pub fn fold(entries: Vec<LedgerEntry>, blobs: &Blobs) -> (Self, Vec<io::Error>) {
        let mut ledger = Self::default();
        let load = |id: &BlobId| String::from_utf8(blobs.get(id)?).map_err(io::Error::other);
        let problems = entries.into_iter().filter_map(|entry| ledger.apply(entry, load).err()).collect();
        (ledger, problems)
    }

    /// Whether a change has ever been made in a text.
    #[must_use]
    pub fn has_made(&self, change: &ChangeId, target: &Target) -> bool {
        let mut hunks = self.hunks.values();
        hunks.any(|hunk| hunk.was_made && hunk.change.id == *change && hunk.target == *target)
    }

    /// Folds one entry in. `load` gives the text of a blob.
    ///
    /// # Errors
    /// When the text of a followed file cannot be had; the ledger forgets that file then.
    pub fn apply(
        &mut self,
        entry: LedgerEntry,
        load: impl FnOnce(&BlobId) -> io::Result<String>,
    ) -> io::Result<()> {
        match entry {
            LedgerEntry::Tracked { target, base } => match load(&base) {
                Ok(text) => self.track(target, Rope::from_str(&text)),
                Err(error) => {
                    self.forget(&target);
                    return Err(error);
                }
            },
            LedgerEntry::Typed { target, steps } => {
                for edits in steps {
                    self.check(&target, &edits)?;
                    if let Some(tracked) = self.files.get_mut(&target) {
                        tracked.weave.type_in(&tracked.text, &edits);
                        edit_rope(&mut tracked.text, &edits);
                    }
                }
            }
            LedgerEntry::Changed { target, change, hunks } => {
                let edits: Vec<TextEdit> = hunks.iter().flat_map(|hunk| hunk.edits.clone()).collect();
                self.check(&target, &edits)?;
                self.add(&target, &change, hunks);
            }
            LedgerEntry::Replaced { target, change, hunk, before, after, sets_aside } => {
                let (state, aside) = (HunkState::Applied, None);
                let reported = vec![HunkNotice { turn: None, state, lines: String::new() }];
                self.changes += 1;
                let order = self.changes;
                let replaced = WholeFileHunk {
                    target,
                    change,
                    state,
                    before,
                    after,
                    order,
                    reported,
                    sets_aside,
                    aside,
                };
                let place = self.replaced.len();
                self.places.insert(hunk.clone(), place);
                self.replaced.push((hunk, replaced));
                self.exchange(place);
            }
            LedgerEntry::Moved { target, resolution, reverts, moves } => {
                self.note_resolution(resolution, reverts.as_ref(), &moves);
                self.move_hunks(&target, &moves);
            }
            LedgerEntry::Withdrawn { target, hunks } => self.withdraw(&target, &hunks),
            LedgerEntry::Before { turn, target, before } => {
                self.before.entry(turn).or_default().entry(target).or_insert(before);
            }
            LedgerEntry::Unmade { target, mode } => {
                self.modes.insert(target, mode);
            }
            LedgerEntry::Told { turn, hunks } => self.note_reported(turn.as_ref(), &hunks),
        }
        Ok(())
    }

    /// The mode bits that a file had when its creation was last undone.
    #[must_use]
    pub fn unmade_mode(&self, target: &Target) -> Option<u32> {
        self.modes.get(target).copied()
    }

    /// The files of a turn before its changes.
    #[must_use]
    pub fn before(&self, turn: &TurnId) -> Option<&BTreeMap<Target, FileBefore>> {
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

    /// The user's changes of a text: the typed text, and hunks that were switched by an undo or redo in the editor, with
    /// their states now.
    #[must_use]
    pub fn distinguish(
        &self,
        target: &Target,
        edits: &[TextEdit],
    ) -> (Vec<TextEdit>, Vec<(HunkId, HunkState)>) {
        let Some(tracked) = self.files.get(target) else { return (Vec::new(), Vec::new()) };
        let of_layer = |layer: LayerId| tracked.by_layer(&self.hunks).get(&layer);
        // A user who types a refused change owns it: it does not become the agent's.
        let may_switch = |layer| {
            let hunk = of_layer(layer).and_then(|id| self.hunks.get(id));
            hunk.is_some_and(|hunk| hunk.was_made || hunk.state == HunkState::Proposed)
        };
        let (typed, switched) = tracked.weave.distinguish(&tracked.text, edits, &may_switch);
        let moves = switched.into_iter().filter_map(|(layer, active)| {
            let state = if active { HunkState::Applied } else { HunkState::Undone };
            Some((of_layer(layer)?.clone(), state))
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

    /// The kind of the change that made the file, if one of the hunks did.
    #[must_use]
    pub fn kind(&self, hunk: &HunkId) -> Option<HunkKind> {
        let text = self.text_hunk(hunk).map(|hunk| hunk.change.kind);
        text.or_else(|| self.replaced(hunk).map(|replaced| replaced.change.kind))
    }

    /// Every hunk, whatever its state.
    #[must_use]
    pub fn every_hunk(&self) -> Vec<HunkId> {
        self.files.values().flat_map(|tracked| &tracked.hunks).cloned().collect()
    }

    /// The states of all hunks, each with the call that made the hunk.
    pub fn states_by_call(&self) -> impl Iterator<Item = (&CallId, HunkState)> {
        let texts = self.hunks.values().map(|hunk| (&hunk.change.call, hunk.state));
        let whole = self.replaced.iter().map(|(_, hunk)| (&hunk.change.call, hunk.state));
        texts.chain(whole)
    }

    fn text_hunk(&self, id: &HunkId) -> Option<&LedgerHunk> {
        let aside = || self.asides().find_map(|aside| aside.hunks.get(id));
        self.hunks.get(id).or_else(aside)
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
        let (hunks, by_layer) = (Vec::new(), HunksByLayer::default());
        self.files.insert(target, TrackedText { text, weave, hunks, by_layer });
    }

    fn forget(&mut self, target: &Target) {
        if let Some(tracked) = self.files.remove(target) {
            for hunk in tracked.hunks {
                self.hunks.remove(&hunk);
            }
        }
    }

    fn add(&mut self, target: &Target, change: &ChangeOrigin, hunks: Vec<NewHunk>) {
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
                tracked.remove(std::slice::from_ref(id));
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
        let mut ids = Vec::with_capacity(added.len());
        for (id, layer) in added.into_iter().rev() {
            let place = survey.place(&tracked.text, layer);
            // The model does not treat proposals as done.
            let lines = remembered(if is_made { place.with } else { place.without });
            let reported = vec![HunkNotice { turn: None, state, lines }];
            let (target, change) = (target.clone(), change.clone());
            let hunk = LedgerHunk { target, layer, change, state, was_made: is_made, order, reported };
            self.hunks.insert(id.clone(), hunk);
            ids.push(id);
        }
        tracked.extend(ids);
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
                hunk.was_made |= state.is_in_text();
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
            let Some(AsideText { tracked, hunks }) = replaced.aside.as_mut() else { continue };
            let layers: Vec<LayerId> =
                ids.iter().filter_map(|id| hunks.remove(id)).map(|hunk| hunk.layer).collect();
            if !layers.is_empty() {
                tracked.weave.retire(&layers);
                tracked.remove(ids);
            }
        }
        let Some(tracked) = self.files.get_mut(target) else { return };
        let layers: Vec<LayerId> =
            ids.iter().filter_map(|id| self.hunks.remove(id)).map(|hunk| hunk.layer).collect();
        tracked.weave.retire(&layers);
        tracked.remove(ids);
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
                self.resolutions.push(LedgerResolution { id, moves: before, is_reverted, reverts });
            }
        }
    }

    fn note_reported(&mut self, turn: Option<&TurnId>, ids: &[HunkId]) {
        for id in ids {
            let place = self.places.get(id).copied();
            if let Some((_, replaced)) = place.and_then(|place| self.replaced.get_mut(place)) {
                let reported =
                    HunkNotice { turn: turn.cloned(), state: replaced.state, lines: String::new() };
                replaced.reported.push(reported);
            }
        }
        let mut surveys = BTreeMap::new();
        for id in ids {
            let Some(hunk) = self.hunks.get_mut(id) else { continue };
            let Some((target, tracked)) = self.files.get_key_value(&hunk.target) else { continue };
            let survey = surveys.entry(target).or_insert_with(|| tracked.weave.survey());
            let lines = hunk.now(survey.place(&tracked.text, hunk.layer));
            hunk.reported.push(HunkNotice { turn: turn.cloned(), state: hunk.state, lines });
        }
    }

    fn retire_oldest(&mut self, target: &Target) {
        let Some(tracked) = self.files.get_mut(target) else { return };
        let surplus = tracked.hunks.len().saturating_sub(MAX_HUNKS_OF_FILE);
        let is_done = |id: &&HunkId| self.hunks.get(id).is_none_or(|hunk| !hunk.state.is_waiting());
        let done: Vec<HunkId> = tracked.hunks.iter().filter(is_done).take(surplus).cloned().collect();
        if !done.is_empty() {
            self.withdraw(target, &done);
        }
    }

    fn switches(&self, moves: &[(HunkId, HunkState)]) -> Vec<(LayerId, bool)> {
        moves.iter().filter_map(|(id, state)| Some((self.hunks.get(id)?.layer, state.is_in_text()))).collect()
    }
}

impl LedgerHunk {
    /// Its lines as they are at its place.
    fn now(&self, place: LayerPlace) -> String {
        remembered(if self.state.is_in_text() { place.with } else { place.without })
    }
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

/// A text as a ledger is written.
mod rope {
    use ropey::Rope;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &Rope, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Rope, D::Error> {
        String::deserialize(deserializer).map(|text| Rope::from_str(&text))
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
