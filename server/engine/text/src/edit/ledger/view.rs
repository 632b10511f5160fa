//! How the ledger is seen: by the user as hunks that wait, by the model as news.
//!
//! Rule: looking changes nothing and finds the places of all hunks of a text in one pass.

use super::*;

/// The unreported changes of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkNews {
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

impl Ledger {
    /// The files whose hunks wait for the user.
    #[must_use]
    pub fn review(&self) -> Vec<FileReview> {
        let mut targets: Vec<&Target> = self.files.keys().collect();
        targets.extend(self.replaced.iter().map(|(_, replaced)| &replaced.target));
        targets.sort_unstable();
        targets.dedup();
        targets.into_iter().filter_map(|target| self.review_of(target)).collect()
    }

    /// The hunks of a file that wait for the user; `None` if none exist.
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
            diagnostics: None,
        })
    }

    /// The text of a file with hunks brought into other states.
    #[must_use]
    pub fn text_with(&self, target: &Target, moves: &[(HunkId, HunkState)]) -> Option<String> {
        let tracked = self.files.get(target)?;
        Some(tracked.weave.project(&tracked.text, &self.switches(moves)))
    }

    /// The unknown part of its changes for the model, when the conversation has forgotten these turns.
    #[must_use]
    pub fn news(&self, forgotten: &BTreeSet<TurnId>) -> Vec<HunkNews> {
        let mut news = Vec::new();
        for (target, tracked) in &self.files {
            let survey = tracked.weave.survey();
            for id in &tracked.hunks {
                let Some(hunk) = self.hunks.get(id) else { continue };
                let Some(reported) = known(&hunk.change, &hunk.reported, forgotten) else { continue };
                let place = survey.place(&tracked.text, hunk.layer);
                let line = tracked.text.byte_to_line(place.lines.start) + 1;
                let now = hunk.now(place);
                let is_known = reported.state.is_in_text() == hunk.state.is_in_text()
                    && (!hunk.state.is_in_text() || reported.lines == now || !survey.is_amended(hunk.layer));
                if is_known || hunk.state == HunkState::Proposed {
                    continue;
                }
                news.push(HunkNews {
                    hunk: id.clone(),
                    target: target.clone(),
                    state: hunk.state,
                    known: reported.lines.clone(),
                    now,
                    line,
                });
            }
        }
        let is_news = |replaced: &WholeFileHunk| {
            let reported = known(&replaced.change, &replaced.reported, forgotten);
            reported.is_some_and(|reported| reported.state.is_in_text() != replaced.state.is_in_text())
        };
        let whole = self.replaced.iter().filter(|(_, replaced)| is_news(replaced));
        news.extend(whole.map(|(id, replaced)| HunkNews {
            hunk: id.clone(),
            target: replaced.target.clone(),
            state: replaced.state,
            known: String::new(),
            now: String::new(),
            line: 1,
        }));
        news
    }
}

impl TrackedText {
    /// Its hunks by their layers. `hunks` are those of the ledger.
    pub(super) fn by_layer(&self, hunks: &BTreeMap<HunkId, LedgerHunk>) -> &HashMap<LayerId, HunkId> {
        let layer = |id: &HunkId| Some((hunks.get(id)?.layer, id.clone()));
        self.by_layer.0.get_or_init(|| self.hunks.iter().filter_map(layer).collect())
    }

    pub(super) fn extend(&mut self, hunks: Vec<HunkId>) {
        self.by_layer.0.take();
        self.hunks.extend(hunks);
    }

    pub(super) fn remove(&mut self, hunks: &[HunkId]) {
        self.by_layer.0.take();
        self.hunks.retain(|id| !hunks.contains(id));
    }

    pub(super) fn view(&self, survey: &WeaveSurvey<'_>, id: &HunkId, hunk: &LedgerHunk) -> HunkView {
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
            diagnostics: None,
        }
    }
}

/// The model's knowledge of a hunk in a conversation that has forgotten these turns; `None` when that is nothing.
fn known<'t>(
    change: &ChangeOrigin,
    reported: &'t [HunkNotice],
    forgotten: &BTreeSet<TurnId>,
) -> Option<&'t HunkNotice> {
    let is_there =
        |reported: &&HunkNotice| reported.turn.as_ref().is_none_or(|turn| !forgotten.contains(turn));
    reported.iter().rev().find(is_there).filter(|_| !forgotten.contains(&change.turn))
}

/// The lines that whole lines, given in bytes, are.
fn lines_of(text: &Rope, bytes: &Range<usize>) -> Range<usize> {
    let start = text.byte_to_line(bytes.start);
    let end = text.byte_to_line(bytes.end);
    // The last line of a text without a line ending at its end reaches to the end of the text.
    let is_unfinished = !bytes.is_empty() && text.line_to_byte(end) < bytes.end;
    start..end + usize::from(is_unfinished)
}
