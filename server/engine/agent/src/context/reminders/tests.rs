//! Each kind of reminder: what brings it, what it says, how often.

use super::*;

fn facts() -> ReminderFacts {
    ReminderFacts {
        mode: Some((Mode::Plan, Mode::AcceptEdits)),
        is_steered: true,
        failed_edits: vec!["a.rs".into()],
        changed: Some("changed".into()),
        todos: Some((TodoReminderReason::Stale, "stale".into())),
    }
}

fn kinds(facts: ReminderFacts) -> Vec<ReminderKind> {
    due(facts).into_iter().map(|(kind, _)| kind).collect()
}

#[test]
fn what_is_due_comes_in_the_order_of_its_importance_and_each_kind_once() {
    use ReminderKind::{
        EditFailed, FilesChanged, ModeChanged, SessionStart, Steered, TodoChanged, TodoStale,
    };
    assert_eq!(kinds(facts()), [ModeChanged, Steered, EditFailed, FilesChanged, TodoStale]);
    assert_eq!(kinds(ReminderFacts::default()), []);
    for (reason, kind) in [
        (TodoReminderReason::Initial, SessionStart),
        (TodoReminderReason::Changed, TodoChanged),
        (TodoReminderReason::Stale, TodoStale),
    ] {
        assert_eq!(
            kinds(ReminderFacts { todos: Some((reason, "x".into())), ..ReminderFacts::default() }),
            [kind]
        );
    }
    assert_eq!(kinds(ReminderFacts { mode: Some((Mode::Plan, Mode::Plan)), ..ReminderFacts::default() }), []);
}

#[test]
fn each_kind_says_what_to_do() {
    let said = |facts: ReminderFacts| due(facts).remove(0).1;
    let mode = |known, now| said(ReminderFacts { mode: Some((known, now)), ..ReminderFacts::default() });
    let steered = said(ReminderFacts { is_steered: true, ..ReminderFacts::default() });
    let files = (0..MAX_NAMED + 2).map(|number| format!("{number}.rs")).collect();
    let failed = said(ReminderFacts { failed_edits: files, ..ReminderFacts::default() });
    for (text, expected) in [
        (mode(Mode::Default, Mode::Plan), "call ExitPlanMode with the whole of it"),
        (mode(Mode::Plan, Mode::Default), "Plan mode is over. The user has set the mode to default: edits"),
        (mode(Mode::Default, Mode::Readonly), "The user has set the mode to readonly: edits are refused"),
        (steered, "while you were working"),
        (
            failed,
            "Read `0.rs`, `1.rs`, `2.rs`, `3.rs`, `4.rs`, `5.rs`, `6.rs`, `7.rs`, `8.rs`, `9.rs` and 2 more again",
        ),
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_turn_and_a_session_are_bounded_for_each_category() {
    let mut inner = ReminderMemory::default();
    let turns: Vec<_> = (0..3).map(|_| TurnId::generate()).collect();
    let mut allowed = |category: ReminderCategory| -> Vec<usize> {
        let of = |turn| (0..60).filter(|_| inner.allow(category, Some(turn))).count();
        turns.iter().map(of).collect()
    };
    assert_eq!(allowed(ReminderCategory::Todos), [5, 5, 0]);
    assert_eq!(allowed(ReminderCategory::Files), [50, 50, 50], "one category leaves the others alone");
}
