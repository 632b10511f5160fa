//! Deciding calls by permission rules: a thousand rules of all kinds against a thousand calls.
//!
//! Rule: each call is asked for in all three behaviors, as the gate does, and no two calls are alike, so that nothing
//! remembered from one helps another. The floor is hashing the paths' names.

use std::collections::HashSet;
use std::hint::black_box;

use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::permission::rules::{
    Behavior, PathBases, PlacedRule, RuleSet, RuleSource, RuleSubject, SettingsLayer,
};

use crate::measure::{Spread, by_turns, heading, row, time};

const RULES: usize = 1_000;
const CALLS: usize = 1_000;
const WARM_UP: usize = 2;
const RUNS: usize = 21;

pub(crate) fn run() {
    let placed = placed();
    let cwd = AbsPath::new("/work/project").expect("it is absolute");
    let home = AbsPath::new("/home/me").expect("it is absolute");
    let places =
        PathBases { cwd: &cwd, home: Some(&home), real: &AbsPath::clone, is_case_insensitive: &|_| false };
    let (rules, problems) = RuleSet::new(placed.clone(), &places);
    assert_eq!((rules.iter().count(), problems.len()), (RULES, 0));
    let calls: Vec<(Target, Target)> = (0..CALLS).map(call).collect();
    let hosts: Vec<String> =
        (0..CALLS).map(|number| format!("a{number}.host{}.example", number % 400)).collect();
    let [floor, compiled, paths, links, fetches] = by_turns(
        WARM_UP,
        RUNS,
        [
            &mut || {
                time(|| {
                    let names =
                        calls.iter().flat_map(|(given, _)| given.file()).flat_map(|path| path.as_path());
                    names.collect::<HashSet<_>>().len()
                })
            },
            &mut || time(|| RuleSet::new(placed.clone(), &places)),
            &mut || time(|| calls.iter().map(|(given, _)| decide(&rules, given, given)).sum::<usize>()),
            &mut || time(|| calls.iter().map(|(given, real)| decide(&rules, given, real)).sum::<usize>()),
            &mut || time(|| hosts.iter().map(|host| fetch(&rules, host)).sum::<usize>()),
        ],
    )
    .map(|times| Spread::of(times, 1));
    heading("1,000 rules × 1,000 calls");
    row("floor (names of the paths hashed)", &floor, "");
    row("rules compiled", &compiled, "");
    row("writes decided", &paths, "50 ms");
    row("writes through links decided", &links, "50 ms");
    row("fetches decided", &fetches, "50 ms");
}

fn decide(rules: &RuleSet, given: &Target, real: &Target) -> usize {
    let subject = RuleSubject::Write { given, real };
    Behavior::ALL.into_iter().filter(|behavior| black_box(rules.find(*behavior, &subject)).is_some()).count()
}

fn fetch(rules: &RuleSet, host: &str) -> usize {
    let subject = RuleSubject::Fetch { host };
    Behavior::ALL.into_iter().filter(|behavior| black_box(rules.find(*behavior, &subject)).is_some()).count()
}

fn call(number: usize) -> (Target, Target) {
    let file = |folder: &str| {
        let path = format!("{folder}/src/module_{}/part_{}/file_{number}.rs", number % 37, number % 11);
        Target::File(AbsPath::new(path).expect("it is absolute"))
    };
    (file("/work/project"), file("/work/real/project"))
}

/// A third each deny, ask and allow; a tenth each of ten kinds, two of which begin with a wildcard that has to be tried.
fn placed() -> Vec<PlacedRule> {
    (0..RULES)
        .map(|number| {
            let text = match number % 10 {
                0 => format!("Read(src/module_{number}/**)"),
                1 => format!("Edit(secret_{number}.txt)"),
                2 => format!("Edit(**/*.x{number})"),
                3 => format!("Edit(//etc/{number}/*.conf)"),
                4 => format!("Edit(**/gen_{number}_*/out)"),
                5 => format!("Read(*_secret_{number}*)"),
                6 => format!("WebFetch(domain:*.host{number}.example)"),
                7 => format!("Bash(tool{number} *)"),
                8 => format!("mcp__server{number}__tool"),
                _ => format!("Edit(~/notes/{number}/[a-z]*.md)"),
            };
            PlacedRule {
                behavior: Behavior::ALL[(number / 10) % 3],
                rule: text.parse().expect("it is a rule"),
                source: RuleSource { layer: SettingsLayer::User, file: None, place: None },
                root: None,
            }
        })
        .collect()
}
