//! Hunks that are files as a whole: what commands did to files that are no text, were deleted, or are open.
//!
//! Rule: the last replacement comes back first. The text that was followed under a replaced file's name goes aside
//! with its hunks, and comes back with the file.

use super::*;

/// A hunk that is a file as a whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct WholeFileHunk {
    pub(super) target: Target,
    pub(super) change: ChangeOrigin,
    pub(super) state: HunkState,
    pub(super) before: FileImage,
    pub(super) after: FileImage,
    pub(super) order: u64,
    pub(super) reported: Vec<HunkNotice>,
    pub(super) sets_aside: bool,
    /// The text followed under the file's name when the hunk is in the other state.
    pub(super) aside: Option<AsideText>,
}

/// A text that was followed, with its hunks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct AsideText {
    pub(super) tracked: TrackedText,
    pub(super) hunks: BTreeMap<HunkId, LedgerHunk>,
}

/// Hunks of one file that can be brought into states at a time.
pub type FileStep = (Target, Vec<(HunkId, HunkState)>);

/// A file as a whole that is to become something else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileReplacement {
    /// The file.
    pub target: Target,
    /// The expected content, unless it was changed.
    pub expected: FileImage,
    /// The wanted content.
    pub wanted: FileImage,
}

impl Ledger {
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

    /// The wanted files for hunks that are files as a whole to be in these states.
    #[must_use]
    pub fn replacements(&self, moves: &[(HunkId, HunkState)]) -> Vec<FileReplacement> {
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

    /// The steps in which hunks can be brought into states, each of one file: the last change is taken out first, then
    /// the first change is brought back first. A step is one file as a whole, or hunks of a text.
    #[must_use]
    pub fn steps(&self, wanted: &BTreeMap<Target, Vec<(HunkId, HunkState)>>) -> Vec<FileStep> {
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
    pub fn reload_of(&self, target: &Target, before: &Rope, after: &Rope) -> Option<(HunkId, ChangeOrigin)> {
        let newest = self.replaced.iter().rev().find(|(_, replaced)| replaced.target == *target);
        let (id, replaced) = newest.filter(|(_, hunk)| hunk.state.is_in_text() && !hunk.sets_aside)?;
        let is = |image: &FileImage, text: &Rope| match image {
            FileImage::Kept { blob, .. } => *blob == BlobId::of(text.to_string().as_bytes()),
            FileImage::Absent | FileImage::Symlink { .. } | FileImage::NotKept { .. } => false,
        };
        let is_it = self.text(target).is_some_and(|text| text.is_instance(before) || text == before)
            && is(&replaced.after, after)
            && is(&replaced.before, before);
        let change = ChangeOrigin { kind: HunkKind::Text, ..replaced.change.clone() };
        is_it.then(|| (id.clone(), change))
    }

    pub(super) fn replaced(&self, hunk: &HunkId) -> Option<&WholeFileHunk> {
        self.places.get(hunk).and_then(|place| self.replaced.get(*place)).map(|(_, replaced)| replaced)
    }

    pub(super) fn asides(&self) -> impl Iterator<Item = &AsideText> {
        self.replaced.iter().filter_map(|(_, replaced)| replaced.aside.as_ref())
    }

    /// The hunks of texts that were replaced as a whole.
    pub(super) fn set_aside(&self) -> impl Iterator<Item = (&HunkId, &LedgerHunk)> {
        self.asides().flat_map(|aside| &aside.hunks)
    }

    /// Steps of one file with the orders of their hunks.
    pub(super) fn steps_of(
        &self,
        target: &Target,
        moves: Vec<(HunkId, HunkState)>,
    ) -> Vec<(Range<u64>, FileStep)> {
        let order = |id: &HunkId| {
            let of_text = self.text_hunk(id).map(|hunk| hunk.order);
            of_text.or_else(|| self.replaced(id).map(|replaced| replaced.order)).unwrap_or_default()
        };
        let mut moves: Vec<_> = moves.into_iter().map(|moved| (order(&moved.0), moved)).collect();
        moves.sort_by_key(|(order, _)| *order);
        let mut steps: Vec<(Range<u64>, FileStep)> = Vec::new();
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

    /// Swaps the text followed under a file's name with the text that its replacement has set aside.
    pub(super) fn exchange(&mut self, place: usize) {
        let Some((_, replaced)) = self.replaced.get_mut(place).filter(|(_, hunk)| hunk.sets_aside) else {
            return;
        };
        let hunks = &mut self.hunks;
        let now = self.files.remove(&replaced.target).map(|tracked| {
            let hunks = tracked.hunks.iter().filter_map(|id| hunks.remove_entry(id)).collect();
            AsideText { tracked, hunks }
        });
        if let Some(AsideText { tracked, hunks }) = std::mem::replace(&mut replaced.aside, now) {
            self.files.insert(replaced.target.clone(), tracked);
            self.hunks.extend(hunks);
        }
    }
}

impl WholeFileHunk {
    pub(super) fn replacement(&self, expected: &FileImage, wanted: &FileImage) -> FileReplacement {
        FileReplacement { target: self.target.clone(), expected: expected.clone(), wanted: wanted.clone() }
    }

    pub(super) fn view(&self, id: &HunkId) -> HunkView {
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
            diagnostics: None,
        }
    }
}
