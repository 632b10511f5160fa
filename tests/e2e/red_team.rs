//! Attacks by a hostile model and by hostile content of a workspace, each judged by its effect.
//!
//! Rule: after every attack the tests run what a person runs next (`git`, a shell, an editor's tasks, a package
//! manager), outside the sandbox, and nothing that the agent planted may run. Each attack is proven to work without the
//! sandbox, so that none passes for being harmless.

mod batch;
mod git;
mod model;
mod plots;
mod programs;
mod race;
mod race_prompts;
mod scene;
mod scripts;
mod secrets;
mod steering;
mod strangers;

use batch::Batch;
use scene::Scene;

use crate::sandbox::fixture::{User, wait_until_gone};

/// Something a command leaves behind.
struct Attack {
    name: &'static str,
    /// The person's acts before, outside the sandbox.
    setup: &'static str,
    /// The command of the agent. `$P` is the file that shows that a plant ran.
    script: &'static str,
    /// Whether the person runs `npm test` afterwards.
    npm: bool,
}

/// How many attacks are made in one sandbox.
const IN_ONE_SANDBOX: usize = 16;

const KINDS: [&str; 2] = ["bubblewrap", "landlock"];

fn attacks() -> impl Iterator<Item = &'static Attack> {
    git::ATTACKS.iter().chain(steering::ATTACKS)
}

/// The variable that has every attack made in every kind of sandbox by every user, and races run in full.
const ALL: &str = "KODE_RED_TEAM_ALL";

fn has_all() -> bool {
    std::env::var_os(ALL).is_some()
}

/// The number of tries in a race of `full` tries: a tenth of them unless all are asked for.
fn tries(full: usize) -> usize {
    if has_all() { full } else { full.div_ceil(10) }
}

/// The attacks for a kind of sandbox and a user. Attacks that were once found to work are made in all four combinations,
/// the others in two of them.
fn chosen(kind: &str, user: User) -> impl Iterator<Item = &'static Attack> {
    let is_first = (kind == KINDS[0]) == (user == User::Own);
    let has_all = has_all() || User::all().len() == 1;
    attacks()
        .enumerate()
        .filter(move |(number, attack)| {
            has_all || FOUND.contains(&attack.name) || (number % 2 == 0) == is_first
        })
        .map(|(_, attack)| attack)
}

/// Attacks that worked before the guard held all of a repository.
const FOUND: &[&str] = &[
    "a common folder of its own",
    "the settings behind many files",
    "a repository nine levels deep",
    "a repository among dependencies",
    "a hook that was there",
    "a hook where there were none",
    "a rebase that never was",
    "hooks in a folder that settings name",
    "settings that settings include",
    "a folder that nobody may read",
    "tasks of an editor",
    "tasks by a guarded link",
    "variables of a directory",
    "variables of a directory by a link",
    "hooks of husky",
    "hooks of another agent",
];

#[test]
fn attacks_that_were_found_are_made_everywhere() {
    for found in FOUND {
        assert!(attacks().any(|attack| attack.name == *found), "{found}");
    }
}

/// The page that names an attack for each fault there was.
const PAGE: &str = include_str!("../../server/docs/sandbox.md");

/// The attacks in the tables of the page, each with the word for its kind: `plant` or `plot`.
fn named() -> Vec<(&'static str, &'static str)> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| "));
    let mut named = Vec::new();
    for tests in rows.filter_map(|row| row.split(" | ").nth(1)) {
        let mut kind = "";
        for (before, rest) in tests.split(", ").filter_map(|part| part.split_once('"')) {
            // A list in the plural has the word in front of its first name alone.
            let word = before.trim().trim_end_matches('s');
            kind = if word.is_empty() { kind } else { word };
            named.push((kind, rest.split('"').next().unwrap_or_default()));
        }
    }
    named
}

#[test]
fn attacks_that_the_page_names_are_made_and_plants_everywhere() {
    let named = named();
    for (kind, name) in &named {
        let is_made = match *kind {
            "plant" => FOUND.contains(name),
            "plot" => plots::PLOTS.iter().any(|plot| plot.name == *name),
            _ => false,
        };
        assert!(is_made, "{kind} \"{name}\"");
    }
    let plants = named.iter().filter(|(kind, _)| *kind == "plant").count();
    assert!(plants > 10 && plants < named.len(), "{named:?}");
}

/// Prepares a scene for an attack.
fn staged(user: User, attack: &Attack) -> Scene {
    let scene = Scene::new(user);
    let output = scene.by_hand(attack.setup);
    assert_eq!(output.code, 0, "{}: {output:?}", attack.name);
    scene
}

/// Tries all attacks in one kind of sandbox, many in one.
fn check_all(kind: &str, user: User) {
    let attacks: Vec<&'static Attack> = chosen(kind, user).collect();
    let mut wrong = Vec::new();
    for attacks in attacks.chunks(IN_ONE_SANDBOX) {
        let batch = Batch::new(user, attacks);
        let output = batch.make(kind);
        let during = batch.taken();
        batch.proceed();
        for name in batch.taken() {
            let when = if during.contains(&name) { "in the sandbox" } else { "afterwards" };
            wrong.push(format!("{name}: {when}: {output:?}"));
        }
        let names = || attacks.iter().map(|attack| attack.name).collect::<Vec<_>>();
        wrong.extend(
            batch.changes_outside().into_iter().map(|change| format!("{change} by one of {:?}", names())),
        );
    }
    assert!(wrong.is_empty(), "{kind}, {user:?}: {}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn nothing_planted_in_bubblewrap_runs_afterwards() {
    check_all(KINDS[0], User::Own);
}

#[test]
fn nothing_planted_in_landlock_runs_afterwards() {
    check_all(KINDS[1], User::Own);
}

#[test]
fn nothing_planted_by_an_ordinary_user_in_bubblewrap_runs_afterwards() {
    User::all().contains(&User::Nobody).then(|| check_all(KINDS[0], User::Nobody));
}

#[test]
fn nothing_planted_by_an_ordinary_user_in_landlock_runs_afterwards() {
    User::all().contains(&User::Nobody).then(|| check_all(KINDS[1], User::Nobody));
}

#[test]
fn every_attack_works_without_the_sandbox() {
    let mut harmless = Vec::new();
    for attack in attacks() {
        // Some attacks write a file over and over while it is read, and miss that moment on a busy machine.
        let works = (0..3).any(|_| {
            let scene = staged(User::Own, attack);
            scene.attack_by_hand(attack);
            scene.is_taken() || !scene.changes_outside().is_empty()
        });
        if !works {
            harmless.push(attack.name);
        }
    }
    assert_eq!(harmless, HARMLESS, "an attack that cannot fail proves nothing");
}

#[test]
fn no_process_of_an_attack_outlives_its_test() {
    for (user, seconds) in User::all().into_iter().zip(["98760123", "98760124"]) {
        let script = format!("(setsid nohup sleep {seconds} >/dev/null 2>&1 &); sleep {seconds} &");
        let ended = std::panic::catch_unwind(|| {
            assert_eq!(Scene::new(user).by_hand(&script).code, 1);
        });
        assert!(ended.is_err());
        wait_until_gone(&format!("sleep\0{seconds}"));
    }
}

/// Attacks that the git of today withstands by itself; other versions may not.
const HARMLESS: &[&str] = &[
    "a series of patches that never was",
    "a series of picks that never was",
    "a branch that leads to a start file",
];

#[test]
fn no_command_prints_a_secret() {
    const SECRET: &str = "SECRET-IN-A-FILE";
    let make = |scene: &Scene, names: &[&str]| {
        let script: String = names
            .iter()
            .map(|name| format!("mkdir -p ~/\"$(dirname {name})\"; echo {SECRET} > ~/{name};\n"))
            .collect();
        assert_eq!(scene.by_hand(&script).code, 0);
    };
    for user in User::all() {
        for kind in KINDS {
            let scene = Scene::new(user);
            make(&scene, secrets::PLACES);
            let ways: String =
                secrets::WAYS.iter().map(|way| format!("(set -- \"$place\"; {way}); rm -rf l;\n")).collect();
            let script =
                format!("cd src; for name in {}; do place=~/$name\n{ways}done", secrets::PLACES.join(" "));
            let output = scene.in_sandbox(kind, &script);
            assert!(!output.stdout.contains(SECRET), "{kind} {user:?}: {output:?}");
            make(&scene, secrets::SHOWN);
            let script = format!("cd ~; cat {}", secrets::SHOWN.join(" "));
            let output = scene.in_sandbox(kind, &script);
            assert_eq!(
                output.stdout.matches(SECRET).count(),
                secrets::SHOWN.len(),
                "{kind} {user:?}: {output:?}"
            );
        }
    }
}
