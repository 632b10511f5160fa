//! Comparing long texts: a file of 50,000 lines with 500 changed places, and two random texts.
//!
//! Rule: the floor is reading both texts line by line and comparing neighbors, which any comparison must do.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use kode_engine::text::edit::TextEdit;
use kode_engine::text::edit::diff::{DIFF_DEADLINE, Patch, line_changes, word_changes};
use kode_engine::text::edit::ledger::split;

use crate::measure::{Spread, by_turns, figure, heading, row, time};

const LINES: usize = 50_000;
const CHANGES: usize = 500;
/// Number of different lines of random texts: the fewer, the more ways there are to match them.
const RANDOM_LINES: [u64; 3] = [20, 500, 10_000];
const WARM_UP: usize = 2;
const RUNS: usize = 21;
/// Runs against the deadline, each of which takes all the time it may.
const DEADLINE_RUNS: usize = 5;

pub(crate) fn run() {
    changed_places();
    RANDOM_LINES.into_iter().for_each(deadline);
}

fn changed_places() {
    let (old, new) = (source(false), source(true));
    let whole = [TextEdit { range: 0..old.len(), new_text: new.clone() }];
    let places = line_changes(&old, &new);
    assert_eq!(places.len(), CHANGES);
    let [floor, patch, lines, rewritten, edited] = by_turns(
        WARM_UP,
        RUNS,
        [
            &mut || time(|| black_box(old.lines().zip(new.lines()).filter(|(old, new)| old != new).count())),
            &mut || time(|| Patch::between(&old, &new)),
            &mut || time(|| line_changes(&old, &new)),
            &mut || time(|| split(&old, &whole)),
            &mut || time(|| split(&old, &places)),
        ],
    )
    .map(|times| Spread::of(times, 1));
    heading("diff of 50,000 lines with 500 changed places");
    row("floor (both line by line, neighbors compared)", &floor, "");
    row("Patch::between", &patch, "50 ms");
    row("line_changes", &lines, "50 ms");
    row("ledger::split of the file written anew", &rewritten, "50 ms");
    row("ledger::split of 500 edits", &edited, "50 ms");
    figure("ratio of Patch::between", patch.median / floor.median, "", "");
}

fn deadline(different: u64) {
    let (old, new) = (random(1, different), random(2, different));
    let [floor, patch, lines, words] = by_turns(
        0,
        DEADLINE_RUNS,
        [
            &mut || time(|| black_box(old.lines().zip(new.lines()).filter(|(old, new)| old != new).count())),
            &mut || time(|| Patch::between(&old, &new)),
            &mut || time(|| line_changes(&old, &new)),
            &mut || time(|| word_changes(&old, &new)),
        ],
    )
    .map(|times: Vec<Duration>| Spread::of(times, 1));
    let budget = format!("{} ms, the deadline", DIFF_DEADLINE.as_millis());
    heading(&format!("two random texts, 50,000 of {different} lines each"));
    row("floor (both line by line, neighbors compared)", &floor, "");
    row("Patch::between", &patch, &budget);
    row("line_changes", &lines, &budget);
    row("word_changes", &words, &budget);
}

/// A text as code is: many lines occur often.
fn source(changed: bool) -> String {
    let mut text = String::new();
    for line in 0..LINES {
        let is_changed = changed && line % (LINES / CHANGES) == 50;
        let _ = match (is_changed, line % 5) {
            (true, _) => writeln!(text, "        let changed_{line} = now({line});"),
            (false, 0) => {
                writeln!(text, "    fn function_{line}(&self, argument: usize) -> Option<usize> {{")
            }
            (false, 1 | 2) => writeln!(text, "        let value = self.call_{}(argument)?;", line % 700),
            (false, 3) => writeln!(text, "    }}"),
            (false, _) => writeln!(text),
        };
    }
    text
}

/// A few lines in no order.
fn random(seed: u64, different: u64) -> String {
    let mut state = seed;
    let mut text = String::new();
    for _ in 0..LINES {
        // A linear congruential generator: the same texts in every run.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let _ = writeln!(text, "line {:016x}", (state >> 33) % different);
    }
    text
}
