//! A file with a thousand hunks that wait: a keystroke in it, the list of them, and what acting on all of them begins with.
//!
//! Rule: everything is measured at a tenth of the hunks as well, and the exponent of the growth is printed: 1 is what a
//! single pass costs, 2 is one pass for each hunk.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use kode_engine::base::ids::{CallId, ChangeId, HunkId, TurnId};
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::journal::BlobId;
use kode_engine::text::edit::TextEdit;
use kode_engine::text::edit::change::edit_rope;
use kode_engine::text::edit::ledger::review::{HunkKind, HunkState, ReviewAction};
use kode_engine::text::edit::ledger::{ChangeOrigin, Ledger, LedgerEntry, NewHunk};
use ropey::Rope;

use crate::measure::{Spread, by_turns, figure, heading, row, time};

const HUNKS: usize = 1_000;
const FEW_HUNKS: usize = HUNKS / 10;
/// Lines from one hunk to the next.
const DISTANCE: usize = 10;
const KEYSTROKES: u32 = 50;
const WARM_UP: usize = 3;
const RUNS: usize = 41;

pub(crate) fn run() {
    let (few, many) = (measure(FEW_HUNKS), measure(HUNKS));
    heading("a file with 1,000 live hunks");
    row("rope (bare insert in the same text)", &many[0].spread, "");
    for (many, few) in many.iter().zip(&few).skip(1) {
        row(many.name, &many.spread, many.budget);
        let growth = (many.spread.median / few.spread.median).log10();
        figure("    exponent from 100 to 1,000 hunks", growth, "", "");
    }
    figure("ratio of a keystroke between hunks", many[1].spread.median / many[0].spread.median, "", "");
    let (list, cut) = (&many[5].spread, &many[4].spread);
    figure("ratio of the list", list.median / cut.median, "", "");
}

struct Measured {
    name: &'static str,
    spread: Spread,
    budget: &'static str,
}

fn measure(hunks: usize) -> Vec<Measured> {
    let file = File::new(hunks);
    let mut rope = file.rope();
    let [mut between, mut equal, mut within] = [(); 3].map(|()| file.ledger.clone());
    let mut undone = file.ledger.clone();
    undone.apply(file.moved(HunkState::Undone), |_| unreachable!()).expect("no text is loaded");
    let target = &file.target;
    let [bare, typed, typed_equal, amended, cut, list, news, undo, accept, made] = by_turns(
        WARM_UP,
        RUNS,
        [
            &mut || type_bare(&mut rope),
            &mut || file.type_at(&mut between, DISTANCE / 2, "some "),
            &mut || file.type_at(&mut equal, DISTANCE / 2, "="),
            &mut || file.type_at(&mut within, 0, "some "),
            &mut || time(|| file.cut_lines()),
            &mut || time(|| black_box(file.ledger.review())),
            &mut || time(|| black_box(undone.news(&BTreeSet::new()))),
            &mut || time(|| file.ledger.plan(target, &file.ids, ReviewAction::Undo, true)),
            &mut || time(|| undone.plan(target, &file.ids, ReviewAction::Accept, true)),
            &mut || {
                let (mut ledger, entry) = (file.untouched(), file.changed());
                time(|| ledger.apply(entry, |_| unreachable!()))
            },
        ],
    );
    let per_key = |times: Vec<Duration>| Spread::of(times, KEYSTROKES);
    let once = |times: Vec<Duration>| Spread::of(times, 1);
    [
        ("rope", per_key(bare), ""),
        ("keystroke between hunks, taken in", per_key(typed), "100 µs"),
        ("one of many equal keys between hunks, taken in", per_key(typed_equal), "100 µs"),
        ("keystroke within a hunk, taken in", per_key(amended), "60 µs"),
        ("floor of a list (the hunks' lines cut out)", once(cut), ""),
        ("Ledger::review", once(list), ""),
        ("Ledger::news of undone hunks", once(news), ""),
        ("Ledger::plan of undoing all", once(undo), ""),
        ("Ledger::plan of putting all back", once(accept), ""),
        ("a change of so many hunks, entered", once(made), ""),
    ]
    .map(|(name, spread, budget)| Measured { name, spread, budget })
    .into()
}

fn type_bare(rope: &mut Rope) -> Duration {
    time(|| {
        for _ in 0..KEYSTROKES {
            let at = rope.line_to_char(rope.len_lines() / 2);
            rope.insert(at, "y");
        }
    })
}

/// A followed file and its ledger.
struct File {
    target: Target,
    base: String,
    ids: Vec<HunkId>,
    hunks: Vec<NewHunk>,
    change: ChangeOrigin,
    ledger: Ledger,
}

impl File {
    /// Every this many lines a line is replaced by two.
    fn new(hunks: usize) -> Self {
        let mut base = String::new();
        let mut edits = Vec::new();
        for line in 0..hunks * DISTANCE {
            let start = base.len();
            let _ = writeln!(base, "    let value_{line} = function_{line}(argument);");
            if line % DISTANCE == DISTANCE / 2 {
                let new_text = format!("    let other_{line} = 1;\n    let value_{line} = 2;\n");
                edits.push(TextEdit { range: start..base.len(), new_text });
            }
        }
        let hunks: Vec<NewHunk> =
            edits.into_iter().map(|edit| NewHunk { id: HunkId::generate(), edits: vec![edit] }).collect();
        let change = ChangeOrigin {
            id: ChangeId::generate(),
            turn: TurnId::generate(),
            call: CallId::generate(),
            kind: HunkKind::Text,
            permission: None,
        };
        let mut file = Self {
            target: Target::File(AbsPath::new("/file.rs").expect("it is absolute")),
            base,
            ids: hunks.iter().map(|hunk| hunk.id.clone()).collect(),
            hunks,
            change,
            ledger: Ledger::default(),
        };
        file.ledger = file.untouched();
        file.ledger.apply(file.changed(), |_| unreachable!()).expect("no text is loaded");
        file
    }

    fn untouched(&self) -> Ledger {
        let mut ledger = Ledger::default();
        let base = BlobId::of(self.base.as_bytes());
        let tracked = LedgerEntry::Tracked { target: self.target.clone(), base };
        ledger.apply(tracked, |_| Ok(self.base.clone())).expect("the text is there");
        ledger
    }

    fn changed(&self) -> LedgerEntry {
        let (target, change) = (self.target.clone(), self.change.clone());
        LedgerEntry::Changed { target, change, hunks: self.hunks.clone() }
    }

    fn moved(&self, state: HunkState) -> LedgerEntry {
        let moves = self.ids.iter().map(|id| (id.clone(), state)).collect();
        LedgerEntry::Moved { target: self.target.clone(), resolution: None, reverts: None, moves }
    }

    fn rope(&self) -> Rope {
        self.ledger.text(&self.target).expect("it is followed").clone()
    }

    /// Types some characters at a line in the middle that is this many lines behind one with a hunk, the way a session
    /// takes them in.
    fn type_at(&self, ledger: &mut Ledger, lines_behind: usize, keys: &str) -> Duration {
        let text = ledger.text(&self.target).expect("it is followed").clone();
        let line = (0..text.len_lines())
            .skip(text.len_lines() / 2)
            .find(|line| text.line(*line).to_string().contains("other_"))
            .expect("there are hunks");
        let start = text.line_to_byte(line + lines_behind) + "    l".len();
        ledger.adopt(&self.target, &text);
        let mut shown = text;
        time(|| {
            for (at, key) in (start..).zip(keys.chars().cycle().take(KEYSTROKES as usize)) {
                let edits = vec![TextEdit { range: at..at, new_text: key.to_string() }];
                edit_rope(&mut shown, &edits);
                let (typed, moves) = ledger.distinguish(&self.target, &edits);
                assert!(moves.is_empty(), "typing moves no hunk");
                let entry = LedgerEntry::Typed { target: self.target.clone(), steps: vec![typed] };
                ledger.apply(entry, |_| unreachable!()).expect("no text is loaded");
                ledger.adopt_same(&self.target, &shown);
            }
        })
    }

    /// The minimal work of any list: cut the lines of each hunk out of the text, and their old ones.
    fn cut_lines(&self) -> Vec<(String, String)> {
        let text = self.ledger.text(&self.target).expect("it is followed");
        let mut shift = 0;
        let edits = self.hunks.iter().flat_map(|hunk| &hunk.edits);
        edits
            .map(|edit| {
                let start = edit.range.start + shift;
                shift += edit.new_text.len() - edit.range.len();
                let new = text.byte_slice(start..start + edit.new_text.len()).to_string();
                (self.base[edit.range.clone()].to_owned(), new)
            })
            .collect()
    }
}
