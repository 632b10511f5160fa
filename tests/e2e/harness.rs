//! Exercises that scripts solve through the editing tools, while a user types into the same open file.
//!
//! Rule: a file is right when the tests of its exercise say so, which fail on the stub, and when its text is the solution with every
//! character that was typed, in the editor, in the server and on disk. How exercises are written is in
//! `tests/fixtures/harness/README.md`.

mod exercise;
mod language;
mod plan;
mod play;
mod user;

use std::fs;

use kode_e2e::distortion::Distortion;
use kode_e2e::{Offer, Project, Script};
use serde_json::{Value, json};

use self::exercise::Exercise;
use self::language::{Language, Verdict};
use self::plan::{EditTool, Plan, Planner};
use self::play::{Table, Tally};

/// Exercises of each language.
const EXERCISES: usize = 20;
/// Exercises of each language that each tool solves.
const OF_EACH_TOOL: usize = 5;
/// Characters that are typed into the files of a language, at least.
const TYPED_CHARACTERS: usize = 2_000;

/// Prints the results with `--nocapture`.
#[expect(clippy::print_stderr, reason = "asked for by the person who runs the test")]
fn show(language: Language, tally: &Tally) {
    let count = |kinds: &[Distortion], kind| kinds.iter().filter(|known| **known == kind).count();
    for kind in Distortion::ALL {
        let (applied, refused) = (count(&tally.applied, kind), count(&tally.refused, kind));
        eprintln!("{language:?}: {:<36} applied {applied:>3}, refused {refused:>3}", kind.name());
    }
    let (typed, lost) = (tally.typed_characters, tally.lost_characters);
    eprintln!("{language:?}: {} solved, {typed} characters typed, {lost} lost", tally.tools.len());
}

fn names(verdicts: &[Verdict], is_wrong: impl Fn(&Verdict) -> bool) -> Vec<String> {
    let wrong = verdicts.iter().filter(|verdict| is_wrong(verdict));
    wrong.map(|verdict| format!("{}:\n{}", verdict.name, verdict.output)).collect()
}

/// The stubs fail their tests, for no other reason than that nothing is solved.
fn check_stubs(language: Language, exercises: &[Exercise], project: &Project) {
    let folder = project.outside().join("stubs");
    fs::create_dir(&folder).unwrap();
    for exercise in exercises {
        fs::write(folder.join(exercise.file()), exercise.on_disk(&exercise.stub)).unwrap();
    }
    let verdicts = language.judge(exercises, &folder);
    let wrong = names(&verdicts, |verdict| verdict.is_green || !verdict.is_unsolved);
    assert!(wrong.is_empty(), "stubs must fail an assertion or be not implemented:\n{}", wrong.join("\n"));
}

fn solve(language: Language) {
    let exercises = Exercise::all(language);
    assert_eq!(exercises.len(), EXERCISES, "{language:?}");
    let mut planner = Planner::default();
    let plans: Vec<Plan> =
        exercises.iter().enumerate().map(|(number, exercise)| planner.plan(exercise, number)).collect();
    let script = exercises
        .iter()
        .zip(&plans)
        .fold(Script::default(), |script, (exercise, plan)| plan.add_to(script, exercise));
    let project = Project::new(&script);
    check_stubs(language, &exercises, &project);

    let client = project.open();
    let patching = project.start();
    let model = json!({
        "provider": "openai-responses", "model": "gpt-5-codex", "apiKey": "key", "store": false,
        "baseUrl": format!("{}/v1", project.model.base_url()),
    });
    patching.initialize(Offer::kode().options(json!({ "model": model })).params(&project.workspace()));
    let mut tally = Tally::default();
    for (exercise, plan) in exercises.iter().zip(&plans) {
        let client = if plan.tool == EditTool::ApplyPatch { &patching } else { &client };
        Table { project: &project, client, exercise }.play(plan, &mut tally);
    }
    show(language, &tally);
    assert_eq!(project.model.refusals(), Vec::<Value>::new());
    assert_eq!(tally.lost_characters, 0);
    assert!(tally.typed_characters > TYPED_CHARACTERS, "{}", tally.typed_characters);
    for tool in EditTool::ALL {
        let solved = tally.tools.iter().filter(|known| **known == tool).count();
        assert!(solved >= OF_EACH_TOOL, "{language:?}: {solved} with {tool:?}");
    }
    for kind in Distortion::ALL.into_iter().filter(|kind| kind.is_harmless()) {
        assert!(tally.applied.contains(&kind), "{language:?}: no request with {}", kind.name());
    }
    for kind in Distortion::ALL.into_iter().filter(|kind| !kind.is_harmless()) {
        let is_seen = tally.applied.contains(&kind) || tally.refused.contains(&kind);
        assert!(is_seen, "{language:?}: no request with {}", kind.name());
    }
    assert!(tally.refused.len() >= EXERCISES / 2, "{language:?}: {:?}", tally.refused);
    let verdicts = language.judge(&exercises, &project.workspace());
    let wrong = names(&verdicts, |verdict| !verdict.is_green);
    assert!(wrong.is_empty(), "{} are not solved:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn exercises_in_python_are_solved_while_the_user_types() {
    solve(Language::Python);
}

#[test]
fn exercises_in_javascript_are_solved_while_the_user_types() {
    solve(Language::JavaScript);
}

#[test]
fn exercises_in_rust_are_solved_while_the_user_types() {
    solve(Language::Rust);
}
