//! The ledger by its entries alone: no files, no editor.

use super::*;
use kode_base::ids::{CallId, ChangeId};

/// A ledger with one followed text.
struct Page {
    ledger: Ledger,
    target: Target,
}

impl Page {
    fn new(text: &str) -> Self {
        let target = Target::Untitled("untitled:U1".to_owned());
        let mut ledger = Ledger::default();
        let base = BlobId::of(text.as_bytes());
        let tracked = LedgerEntry::Tracked { target: target.clone(), base };
        ledger.apply(tracked, |_| Ok(text.to_owned())).unwrap();
        Self { ledger, target }
    }

    fn enter(&mut self, entry: LedgerEntry) {
        self.ledger.apply(entry, |_| Err(io::Error::other("no blob is named"))).unwrap();
    }

    fn change(&self, permission: Option<&PermissionId>) -> ChangeOrigin {
        ChangeOrigin {
            id: ChangeId::generate(),
            turn: TurnId::generate(),
            call: CallId::generate(),
            kind: HunkKind::Text,
            permission: permission.cloned(),
        }
    }

    fn agent(&mut self, edits: &[(std::ops::Range<usize>, &str)]) -> Vec<HunkId> {
        let change = self.change(None);
        self.add(change, edits)
    }

    fn add(&mut self, change: ChangeOrigin, edits: &[(std::ops::Range<usize>, &str)]) -> Vec<HunkId> {
        let edits: Vec<TextEdit> = edits
            .iter()
            .map(|(range, text)| TextEdit { range: range.clone(), new_text: (*text).to_owned() })
            .collect();
        let hunks = split(&self.text(), &edits).into_iter();
        let hunks: Vec<NewHunk> = hunks.map(|edits| NewHunk { id: HunkId::generate(), edits }).collect();
        let ids = hunks.iter().map(|hunk| hunk.id.clone()).collect();
        self.enter(LedgerEntry::Changed { target: self.target.clone(), change, hunks });
        ids
    }

    fn act(&mut self, hunks: &[HunkId], action: ReviewAction) -> ResolutionPlan {
        let plan = self.ledger.plan(&self.target, hunks, action, false);
        let (resolution, reverts) = (Some(ResolutionId::generate()), None);
        self.enter(LedgerEntry::Moved {
            target: self.target.clone(),
            resolution,
            reverts,
            moves: plan.moves.clone(),
        });
        plan
    }

    fn text(&self) -> String {
        self.ledger.text(&self.target).unwrap().to_string()
    }
}

#[test]
fn a_hunk_is_changed_lines_without_a_whole_unchanged_line_between() {
    let text = "a\nb\nc\nd\ne\n";
    let edits = [(0..1, "A"), (2..3, "B"), (6..7, "D"), (8..9, "E")];
    let edits = edits.map(|(range, text)| TextEdit { range, new_text: text.to_owned() });
    let starts: Vec<Vec<usize>> =
        split(text, &edits).iter().map(|hunk| hunk.iter().map(|edit| edit.range.start).collect()).collect();
    assert_eq!(starts, [[0, 2], [6, 8]]);
    // One replacement of everything is only what it changes.
    let all = TextEdit { range: 0..text.len(), new_text: "a\nB\nc\nd\nE\nf\n".to_owned() };
    let hunks = split(text, &[all]);
    assert_eq!(hunks.len(), 2, "{hunks:?}");
    assert_eq!(split(text, &[TextEdit { range: 0..text.len(), new_text: text.to_owned() }]).len(), 0);
}

#[test]
fn what_is_on_a_hunk_goes_with_it_and_what_it_is_on_comes_with_it() {
    let mut page = Page::new("one\n");
    let first = page.agent(&[(0..3, "two")]).remove(0);
    let second = page.agent(&[(0..3, "three")]).remove(0);
    let plan = page.act(std::slice::from_ref(&first), ReviewAction::Undo);
    assert_eq!((plan.moves.len(), page.text().as_str()), (2, "one\n"));
    let plan = page.act(&[second], ReviewAction::Accept);
    assert_eq!((plan.moves.len(), page.text().as_str()), (2, "three\n"));
    assert_eq!(page.ledger.state(&first), Some(HunkState::Applied));
}

#[test]
fn actions_that_make_no_sense_plan_nothing() {
    let mut page = Page::new("one\n");
    let hunk = page.agent(&[(0..3, "two")]);
    assert_eq!(page.ledger.plan(&page.target, &hunk, ReviewAction::Accept, false), ResolutionPlan::default());
    page.act(&hunk, ReviewAction::Keep);
    assert_eq!(page.ledger.plan(&page.target, &hunk, ReviewAction::Keep, false), ResolutionPlan::default());
    assert_eq!(page.ledger.select(&Selection::Session).len(), 0, "nothing waits");
    page.act(&hunk, ReviewAction::Undo);
    assert_eq!(page.text(), "one\n");
    assert_eq!(page.ledger.plan(&page.target, &hunk, ReviewAction::Undo, false), ResolutionPlan::default());
}

#[test]
fn proposals_are_not_in_the_text_and_are_decided_by_their_prompt() {
    let mut page = Page::new("one\ntwo\nthree\n");
    let prompt = PermissionId::generate();
    let change = page.change(Some(&prompt));
    let hunks = page.add(change, &[(0..3, "1"), (8..13, "3")]);
    assert_eq!(page.text(), "one\ntwo\nthree\n");
    assert_eq!(page.ledger.proposals(&prompt).into_values().flatten().collect::<Vec<_>>(), hunks);
    assert_eq!(
        page.ledger.plan(&page.target, &hunks, ReviewAction::Accept, false),
        ResolutionPlan::default()
    );
    let view = page.ledger.review_of(&page.target).unwrap().hunks.remove(1);
    assert_eq!((view.state, view.lines), (HunkState::Proposed, 2..3));
    assert_eq!((view.old_text.as_str(), view.new_text.as_str()), ("three\n", "3\n"));
    page.enter(LedgerEntry::Withdrawn { target: page.target.clone(), hunks: vec![hunks[0].clone()] });
    let moves = vec![(hunks[1].clone(), HunkState::Undone)];
    let target = page.target.clone();
    page.enter(LedgerEntry::Moved { target, resolution: None, reverts: None, moves });
    assert!(page.ledger.review_of(&page.target).is_none());
    page.act(&hunks[1..], ReviewAction::Accept);
    assert_eq!(page.text(), "one\ntwo\n3\n");
}

#[test]
fn an_undo_in_the_editor_is_recognised_for_hunks_that_came_or_went_since_the_last_one() {
    let mut page = Page::new("one two three\n");
    let undo = |range: Range<usize>, text: &str| [TextEdit { range, new_text: text.to_owned() }];
    let first = page.agent(&[(0..3, "1")]).remove(0);
    let undone = |hunk: &HunkId| vec![(hunk.clone(), HunkState::Undone)];
    assert_eq!(page.ledger.distinguish(&page.target, &undo(0..1, "one")).1, undone(&first));
    let second = page.agent(&[(6..11, "3")]).remove(0);
    assert_eq!(page.text(), "1 two 3\n");
    assert_eq!(page.ledger.distinguish(&page.target, &undo(6..7, "three")).1, undone(&second));
    page.enter(LedgerEntry::Withdrawn { target: page.target.clone(), hunks: vec![first] });
    assert_eq!(page.ledger.distinguish(&page.target, &undo(0..1, "one")).1, vec![]);
    assert_eq!(page.ledger.distinguish(&page.target, &undo(6..7, "three")).1, undone(&second));
}

#[test]
fn steps_are_taken_back_one_by_one_from_the_newest() {
    let mut page = Page::new("a\nb\nc\n");
    let hunks = page.agent(&[(0..1, "A"), (4..5, "C")]);
    page.act(&hunks[..1], ReviewAction::Undo);
    page.act(&hunks[1..], ReviewAction::Keep);
    for expected in [(HunkState::Undone, HunkState::Applied), (HunkState::Applied, HunkState::Applied)] {
        let newest = page.ledger.newest_resolution().cloned().unwrap();
        let moves = page.ledger.moves_to_revert(&newest).unwrap().remove(&page.target).unwrap();
        let (resolution, target) = (Some(ResolutionId::generate()), page.target.clone());
        page.enter(LedgerEntry::Moved { target, resolution, reverts: Some(newest), moves });
        let state = |hunk| page.ledger.state(hunk).unwrap();
        assert_eq!((state(&hunks[0]), state(&hunks[1])), expected);
    }
    assert_eq!(page.ledger.newest_resolution(), None);
}

#[test]
fn files_as_a_whole_come_back_the_last_first_and_go_again_the_first_first() {
    let mut page = Page::new("");
    let image = |text: &str| FileImage::Kept { blob: BlobId::of(text.as_bytes()), mode: 0o644 };
    let file = Target::Untitled("untitled:whole".to_owned());
    let hunks: Vec<HunkId> = [("1", "2"), ("2", "3")]
        .iter()
        .map(|(before, after)| {
            let (hunk, change) = (HunkId::generate(), page.change(None));
            let (target, before, after) = (file.clone(), image(before), image(after));
            page.enter(LedgerEntry::Replaced {
                target,
                change,
                hunk: hunk.clone(),
                before,
                after,
                sets_aside: false,
            });
            hunk
        })
        .collect();
    let undone: Vec<_> = hunks.iter().map(|hunk| (hunk.clone(), HunkState::Undone)).collect();
    let steps = |ledger: &Ledger, moves: &[(HunkId, HunkState)]| -> Vec<(FileImage, FileImage)> {
        let steps = ledger.steps(&BTreeMap::from([(file.clone(), moves.to_vec())]));
        let whole = steps.iter().flat_map(|(_, moves)| ledger.replacements(moves));
        whole.map(|step| (step.expected, step.wanted)).collect()
    };
    assert_eq!(steps(&page.ledger, &undone), [(image("3"), image("2")), (image("2"), image("1"))]);
    page.enter(LedgerEntry::Moved { target: file.clone(), resolution: None, reverts: None, moves: undone });
    let back: Vec<_> = hunks.iter().map(|hunk| (hunk.clone(), HunkState::Applied)).collect();
    assert_eq!(steps(&page.ledger, &back), [(image("1"), image("2")), (image("2"), image("3"))]);
}

#[test]
fn who_does_by_hand_what_was_refused_has_done_it_and_not_the_agent() {
    let mut page = Page::new("one two\n");
    let prompt = PermissionId::generate();
    let change = page.change(Some(&prompt));
    let hunks = page.add(change, &[(3..7, "")]);
    let edits = [TextEdit { range: 3..7, new_text: String::new() }];
    let done = vec![(hunks[0].clone(), HunkState::Applied)];
    assert_eq!(page.ledger.distinguish(&page.target, &edits).1, done, "it is the user's way of accepting it");
    let moves = vec![(hunks[0].clone(), HunkState::Undone)];
    let target = page.target.clone();
    page.enter(LedgerEntry::Moved { target, resolution: None, reverts: None, moves });
    assert_eq!(page.ledger.distinguish(&page.target, &edits), (edits.to_vec(), vec![]));
    page.act(&hunks, ReviewAction::Accept);
    page.act(&hunks, ReviewAction::Undo);
    assert_eq!(page.ledger.distinguish(&page.target, &edits).1, done, "it was the agent's once");
}
