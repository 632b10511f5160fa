//! The behaviors that kode-ls takes over from other agents: every one of them has its row, every row names tests that exist, and
//! the page of the documentation is the one that the rows make.
//!
//! Rule: a row is never removed or renumbered. One that holds no more is `open` and names the missing part, or `replaced`
//! and says why and where.

use std::collections::BTreeMap;
use std::fs;

use kode_e2e::behaviors::{BehaviorRow, COMMAND, CONFLICTS, PAGE, ROWS, conflicts, page, root, rows};

/// The areas of each system, with the number of their rows; the rows of an area are numbered from 1.
const AREAS: [(&str, &str); 4] = [
    (
        "K",
        "AGENT 10, BASH 6, BIN 2, CMD 1, CTX 2, EDIT 22, ERR 6, GLOB 4, GREP 4, LOOP 14, LS 2, MCP 14, META 1, MODEL 16, \
         MSG 6, NB 1, OBS 3, PERM 3, PHIL 1, PROMPT 1, READ 9, REM 1, SCHED 9, STORE 4, SUB 4, TEST 2, THINK 1, TODO 4, \
         TOOL 12, UI 1, WEB 4, WRITE 1",
    ),
    (
        "S",
        "API 4, CTX 5, EVT 9, FRESH 4, HOOK 5, IDE 1, LOOP 5, MCP 1, MODEL 2, MSG 6, OBS 1, PERM 5, RES 6, SAFE 4, SCHED 3, \
         STORE 3, TODO 2, TOOL 10",
    ),
    (
        "B",
        "ATT 1, BASH 2, CFG 10, CLI 8, CMD 11, CONF 2, CTX 13, EDIT 4, EXT 1, HOOK 15, IDE 3, LOOP 22, MCP 8, MODEL 4, MSG 3, \
         MULTI 1, OPS 1, PERM 10, PHIL 1, PIPE 9, PLAN 4, PROMPT 7, READ 2, SAFE 1, SENS 2, SKILL 3, STATE 4, STORE 6, SUB 2, \
         TEST 1, TOOL 9, UI 10, WEB 1",
    ),
    ("T", "FS 1, LOOP 2, PERM 1, SAFE 1, TODO 2, TOOL 2"),
];

/// The number of contradictions between the systems.
const CONFLICT_COUNT: usize = 36;

/// The longest sentence of a row, in characters.
const MAX_FACT: usize = 120;

/// All ids there have to be.
fn ids() -> Vec<String> {
    let of_area = |system: &str, area: &str| {
        let (name, count) = area.trim().split_once(' ').expect("an area and a number");
        let count: usize = count.parse().expect("a number");
        (1..=count).map(|number| format!("{system}-{name}-{number}")).collect::<Vec<_>>()
    };
    AREAS.iter().flat_map(|(system, areas)| areas.split(',').flat_map(|area| of_area(system, area))).collect()
}

/// Whether a text of a source has a test of this name, in the form of its language.
fn has_test(file: &str, text: &str, name: &str) -> bool {
    if file.ends_with(".lua") {
        return text.contains(&format!("tests['{name}']"));
    }
    if !file.ends_with(".rs") {
        return ["\"", "'", "`"].iter().any(|quote| text.contains(&format!("test({quote}{name}{quote}")));
    }
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let is_function = |line: &str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(name))
            .is_some_and(|rest| rest.starts_with('('))
    };
    let Some(at) = lines.iter().position(|line| is_function(line)) else { return false };
    let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("///"));
    above.into_iter().any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// The problems of a row.
fn faults(row: &BehaviorRow) -> Vec<String> {
    let mut faults = Vec::new();
    let (is_holding, is_replaced) = (row.state == "holds", row.state == "replaced");
    if !is_holding && !is_replaced && row.state != "open" {
        faults.push(format!("the state is `{}`; write holds, replaced or open", row.state));
    }
    if row.fact.is_empty() || row.fact.chars().count() > MAX_FACT || row.fact.ends_with('.') {
        faults
            .push(format!("the behavior is a sentence of at most {MAX_FACT} characters without a full stop"));
    }
    if row.tests.is_empty() && row.state != "open" {
        faults.push("no test is named".to_owned());
    }
    if row.reason.is_empty() != is_holding {
        faults.push("a reason stands where a row is replaced or open, and only there".to_owned());
    }
    if is_replaced != row.page.starts_with("server/docs/") {
        faults.push("a page of server/docs stands where a row is replaced, and only there".to_owned());
    }
    let page = row.page.split('#').next().unwrap_or_default();
    if !page.is_empty() && !root().join(page).is_file() {
        faults.push(format!("there is no page {page}"));
    }
    for test in &row.tests {
        let there = test.split_once("::").is_some_and(|(file, name)| {
            fs::read_to_string(root().join(file)).is_ok_and(|text| has_test(file, &text, name))
        });
        if !there {
            faults.push(format!("there is no test {test}"));
        }
    }
    faults
}

#[test]
fn every_behavior_has_its_row_once() {
    let mut counts: BTreeMap<String, i32> = ids().into_iter().map(|id| (id, -1)).collect();
    assert_eq!(counts.len(), 437);
    for row in rows() {
        *counts.entry(row.id).or_insert(1) += 1;
    }
    let wrong: Vec<String> = counts.into_iter().filter(|(_, count)| *count != 0).map(|(id, _)| id).collect();
    assert!(wrong.is_empty(), "{ROWS}: missing, unknown or there twice: {wrong:?}");
}

#[test]
fn every_row_names_tests_and_pages_that_exist() {
    let wrong: Vec<String> = rows()
        .iter()
        .flat_map(|row| faults(row).into_iter().map(|fault| format!("{}: {fault}", row.id)))
        .collect();
    assert!(wrong.is_empty(), "{ROWS}:\n{}", wrong.join("\n"));
}

#[test]
fn every_contradiction_has_its_choice_and_a_page_that_exists() {
    let conflicts = conflicts();
    let numbered: Vec<String> = (1..=CONFLICT_COUNT).map(|number| format!("C-{number}")).collect();
    assert_eq!(conflicts.iter().map(|row| row.id.clone()).collect::<Vec<_>>(), numbered, "{CONFLICTS}");
    for row in conflicts {
        let page = row.page.split('#').next().unwrap_or_default();
        assert!(page.starts_with("server/docs/") && root().join(page).is_file(), "{CONFLICTS}: {row:?}");
        assert!(!row.choice.is_empty() && !row.choice.ends_with('.'), "{CONFLICTS}: {row:?}");
    }
}

#[test]
fn the_page_of_behaviors_is_made_from_the_rows() {
    let kept = fs::read_to_string(root().join(PAGE)).unwrap_or_default();
    assert!(kept == page(&rows(), &conflicts()), "{PAGE} is stale; run `{COMMAND}` and commit it");
}

#[test]
fn a_row_that_breaks_a_rule_is_reported() {
    let good = BehaviorRow {
        id: "K-LOOP-1".to_owned(),
        state: "holds".to_owned(),
        fact: "It holds".to_owned(),
        tests: vec!["tests/e2e/behaviors.rs::a_row_that_breaks_a_rule_is_reported".to_owned()],
        reason: String::new(),
        page: String::new(),
    };
    assert_eq!(faults(&good), Vec::<String>::new());
    let of = |test: &str| BehaviorRow { tests: vec![test.to_owned()], ..good.clone() };
    for (row, fault) in [
        (BehaviorRow { state: "works".into(), ..good.clone() }, "the state is `works`"),
        (BehaviorRow { fact: "x".repeat(MAX_FACT + 1), ..good.clone() }, "at most 120"),
        (BehaviorRow { tests: vec![], ..good.clone() }, "no test is named"),
        (BehaviorRow { state: "open".into(), ..good.clone() }, "a reason stands"),
        (
            BehaviorRow { state: "replaced".into(), reason: "so".into(), ..good.clone() },
            "a page of server/docs",
        ),
        (BehaviorRow { page: "server/docs/none.md".into(), ..good.clone() }, "there is no page"),
        (of("tests/e2e/behaviors.rs::has_test"), "there is no test"),
        (of("tests/e2e/behaviors.rs::nothing"), "there is no test"),
        (of("tests/neovim/client/turn_test.lua::nothing"), "there is no test"),
    ] {
        let found = faults(&row);
        assert!(found.iter().any(|one| one.contains(fault)), "{fault}: {found:?}");
    }
}
