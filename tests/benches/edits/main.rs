//! How requests to replace a passage fare that do not quote the file exactly, here and with three other agents.
//!
//! Rule: a case is a passage of real code, the text that should replace it, and one way in which models distort both; the
//! right outcome is known. Ours is the function that Edit and MultiEdit call. A wrong text is worse than a refusal.
//!
//! Run it with `tests/bench edits`. Behind `--`, a number sets the number of cases, `--seed=NUMBER` chooses others,
//! `--alone` leaves the other agents out, and `--show=wrong`, `=refused` or `=unnamed` prints our cases of that outcome:
//! wrong texts, harmless requests refused, and refusals that name another passage.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its table is what it is for")]

mod cases;
mod judge;
mod peers;
mod sources;

use std::time::Instant;

use kode_e2e::distortion::Distortion;
use kode_e2e::measure::{Spread, by_turns, heading, row, time};

use self::cases::{Case, cases};
use self::judge::{Outcome, Tally, of_ours, of_text, ours, shown_lines};

/// Cases, unless the command line says otherwise.
const CASES: usize = 20_000;
/// Where the sequence of cases begins.
const SEED: u64 = 20_260_823;
/// Lines of the text in which the time is measured.
const LONG_TEXT: usize = 10_000;
/// Runs that are not counted, and that are.
const WARM_UP: usize = 2;
const RUNS: usize = 15;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let count = arguments.iter().filter_map(|argument| argument.parse().ok()).next_back().unwrap_or(CASES);
    let is_alone = arguments.iter().any(|argument| argument == "--alone");
    let option = |name: &str| arguments.iter().find_map(|argument| argument.strip_prefix(name));
    let seed = option("--seed=").map_or(SEED, |seed| seed.parse().expect("--seed=NUMBER"));
    let sources = sources::read();
    let cases = cases(&sources, count, seed);
    println!(
        "{} cases from {} files, seed {seed}",
        cases.len(),
        sources.iter().map(|(_, files)| files.len()).sum::<usize>()
    );

    let begun = Instant::now();
    let outcomes: Vec<Outcome> = cases.iter().map(of_ours).collect();
    eprintln!("ours: {} cases in {:.1} s", outcomes.len(), begun.elapsed().as_secs_f64());
    if let Some(kind) = option("--show=") {
        show(&cases, &outcomes, kind);
    }
    let mut columns = vec![("ours", outcomes)];
    if !is_alone {
        for peer in peers::all() {
            let texts = peer.answers(&cases);
            let outcomes = cases.iter().zip(texts).map(|(case, text)| of_text(case, text.as_deref()));
            columns.push((peer.name, outcomes.collect()));
        }
    }
    let columns: Vec<(&str, Tally)> =
        columns.into_iter().map(|(name, outcomes)| (name, Tally::of(&cases, &outcomes))).collect();
    table(&columns);
    gates(&columns);
    times(&cases);
}

/// The cases of one outcome, with the expected and the actual text.
fn show(cases: &[Case], outcomes: &[Outcome], kind: &str) {
    for (case, outcome) in cases.iter().zip(outcomes) {
        let is_shown = match kind {
            "wrong" => *outcome == Outcome::Wrong,
            "refused" => case.distortion.is_harmless() && matches!(outcome, Outcome::Refused { .. }),
            "unnamed" => *outcome == Outcome::Refused { names_passage: false },
            _ => panic!("--show=wrong, --show=refused or --show=unnamed"),
        };
        if is_shown {
            let lines: Vec<&str> = case.text.split('\n').collect();
            let around = case.lines.start.saturating_sub(3)..(case.lines.end + 1).min(lines.len());
            eprintln!(
                "{kind}: {:?}\n--- old\n{:?}\n--- new\n{:?}\n--- lines {:?}\n{:#?}\n--- ours\n{:?}\n",
                case.distortion,
                case.old,
                case.new,
                case.lines,
                &lines[around],
                ours(case, &case.text)
            );
        }
    }
}

/// Applied right, refused and wrong of each distortion, ours beside the others.
fn table(columns: &[(&str, Tally)]) {
    print!("\n{:<44}", "right / refused / wrong, of 100 cases");
    columns.iter().for_each(|(name, _)| print!("{name:>22}"));
    println!();
    for distortion in Distortion::ALL {
        print!("{:<44}", distortion.name());
        for (_, tally) in columns {
            print!("{:>22}", tally.shares(distortion));
        }
        println!();
    }
}

fn mark(is_met: bool) -> &'static str {
    if is_met { "ok" } else { "OVER" }
}

fn gates(columns: &[(&str, Tally)]) {
    println!("\n{:<52}{:>12}  budget", "edits", "");
    let gate = |name: &str, value: String, budget: &str, is_met: bool| {
        println!("{name:<52}{value:>12}  {budget} {}", mark(is_met));
    };
    let own = &columns[0].1;
    gate("wrong texts written", own.wrong().to_string(), "0", own.wrong() == 0);
    let harmless = own.right_of_harmless();
    gate(
        "harmless distortions applied at the first try",
        format!("{harmless:.1} %"),
        "98 %",
        harmless >= 98.0,
    );
    let named = own.named();
    gate("refusals that name the right passage", format!("{named:.1} %"), "95 %", named >= 95.0);
    for distortion in Distortion::ALL {
        let ahead: Vec<&str> = columns[1..]
            .iter()
            .filter(|(_, peer)| peer.is_ahead_of(own, distortion))
            .map(|(name, _)| *name)
            .collect();
        if !ahead.is_empty() {
            gate(&format!("first or equal: {}", distortion.name()), ahead.join(" "), "no one ahead", false);
        }
    }
}

/// The time of one request in a long text: unchanged, distorted, and refused with the nearest passage.
fn times(cases: &[Case]) {
    let mut long: Vec<&str> = Vec::new();
    let mut texts = cases.iter().map(|case| &*case.text).collect::<Vec<_>>();
    texts.dedup();
    for line in texts.iter().flat_map(|text| text.split_inclusive('\n')) {
        if long.len() == LONG_TEXT {
            break;
        }
        long.push(line);
    }
    let long = long.concat();
    heading(&format!("one request in {LONG_TEXT} lines"));
    for distortion in [Distortion::Verbatim, Distortion::ShiftAll, Distortion::Entities, Distortion::Quotes] {
        let Some(case) =
            cases.iter().find(|case| case.distortion == distortion && case.old.lines().count() > 5)
        else {
            continue;
        };
        let text = format!("{long}\n{}", case.text);
        let mut measured = || time(|| ours(case, &text));
        let [times] = by_turns(WARM_UP, RUNS, [&mut measured]);
        row(&format!("replaced: {}", distortion.name()), &Spread::of(times, 1), "5 ms");
    }
    let Some(case) =
        cases.iter().find(|case| case.distortion == Distortion::Stale && case.old.lines().count() > 5)
    else {
        return;
    };
    let text = format!("{long}\n{}", case.text);
    let mut measured = || time(|| shown_lines(case, &text));
    let [times] = by_turns(WARM_UP, RUNS, [&mut measured]);
    row("refused, with the nearest passage", &Spread::of(times, 1), "5 ms");
}
