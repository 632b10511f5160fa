//! The cost of the wall over the wire: a turn with `true` in a small and in a large workspace, in several sessions at once, also in
//! containers of an engine, and the judgement of a long command line. The command alone is measured by `inside commands`.
//!
//! Rule: times of the large workspace and of the long line are measured by turns beside those of the small one and of a short one.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench sandbox`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kode_e2e::measure::{Spread, by_turns, figure, heading, row, time};
use kode_e2e::{Client, Offer, Project, Script, call, engine, say};
use serde_json::{Value, json};

/// Runs that are not counted.
const WARM_UP: usize = 5;
/// Runs of each that are counted, by turns.
const RUNS: usize = 60;
/// Nested repositories of the large workspace, and files in each: 100,000 files in all.
const REPOSITORIES: usize = 200;
const FILES: usize = 500;
/// Runs of the turns in several sessions at once.
const ROUNDS: usize = 10;
/// Parts of the long command line.
const PARTS: usize = 10_000;
fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = folder.path().canonicalize().expect("it is there");
    fs::create_dir(base.join("ws")).expect("it is ours");
    let program = kode_e2e::binary();
    println!("{}", program.display());
    turns();
    at_once();
    judgements(&program, &base);
}

/// A turn with one `true` in each of some sessions at once: in the sandbox of this machine, and in containers of an engine.
fn at_once() {
    heading(&format!("a turn with one `true` in each session at once, {ROUNDS} runs"));
    for sessions in [1, 8, 64] {
        let local = turns_at_once(sessions, None);
        row(&format!("{sessions} sessions, this machine"), &local, "");
        match engine::named() {
            Some(remote) => {
                let remote = turns_at_once(sessions, Some(&remote));
                row(&format!("{sessions} sessions, containers"), &remote, "");
            }
            None => println!(
                "{sessions} sessions, containers: not measured, because {} names no engine",
                engine::ENGINE
            ),
        }
    }
}

fn turns_at_once(sessions: usize, remote: Option<&Value>) -> Spread {
    let script = Script::default().when("^go", [call("Bash", json!({ "command": "true" })), say("done")]);
    let project = Project::new(&script);
    repository(&project.workspace(), 1_000);
    let home = project.outside().join("user");
    fs::create_dir_all(home.join(".kode")).expect("it is ours");
    let settings = remote.map_or(json!({}), |remote| json!({ "sandbox": { "remote": remote } }));
    fs::write(home.join(".kode/settings.json"), settings.to_string()).expect("it is ours");
    let client = project.start_as(&[], &[("HOME", home.to_str().expect("a path of ours is UTF-8"))]);
    client.initialize(Offer::kode().params(&project.workspace()));
    let sessions: Vec<_> =
        (0..sessions).map(|_| client.session_with(json!({ "mode": "bypassPermissions" }))).collect();
    let round = || {
        time(|| {
            let turns: Vec<String> = sessions.iter().map(|session| session.prompt("go")).collect();
            for (session, turn) in sessions.iter().zip(&turns) {
                assert_eq!(session.wait_done(turn)["stopReason"], "end_turn");
            }
        })
    };
    round();
    let times = (0..ROUNDS).map(|_| round()).collect();
    let results = project.model.last_results();
    assert!(results.iter().all(|(_, is_error)| !is_error), "{results:?}");
    Spread::of(times, 1)
}

/// A turn with one `true` in a workspace of a common size, and in one with many files and repositories, where one that makes a folder is
/// measured as well.
fn turns() {
    let make = json!({ "command": "mkdir made-$$-$RANDOM$RANDOM" });
    let script = Script::default()
        .when("^go", [call("Bash", json!({ "command": "true" })), say("done")])
        .when("^make", [call("Bash", make), say("done")]);
    let [small, large] = [0, REPOSITORIES].map(|repositories| {
        let project = Project::new(&script);
        repository(&project.workspace(), 1_000);
        for number in 0..repositories {
            repository(&project.path(&format!("group-{}/module-{number}", number % 10)), FILES);
        }
        let client = project.connect(&Offer::kode());
        (project, client)
    });
    let session = |client: &'static Client| client.session_with(json!({ "mode": "bypassPermissions" }));
    let [small, large] = [small, large].map(|(project, client)| {
        // Both live as long as the process.
        std::mem::forget(project);
        session(Box::leak(Box::new(client)))
    });
    let turn = |session: &kode_e2e::Session<'_>, prompt| {
        time(|| {
            let done = session.run(prompt);
            assert_eq!(done["stopReason"], "end_turn", "{done}");
        })
    };
    let measures: [&mut dyn FnMut() -> Duration; 3] =
        [&mut || turn(&small, "go"), &mut || turn(&large, "go"), &mut || turn(&large, "make")];
    let [small, large, made] = by_turns(WARM_UP, RUNS, measures).map(|times| Spread::of(times, 1));
    heading(&format!("a turn with one `true`, {RUNS} runs"));
    row("1,000 files, 1 repository", &small, "");
    row(&format!("{} files, {} repositories", REPOSITORIES * FILES, REPOSITORIES + 1), &large, "");
    row("the same with a command that makes a folder", &made, "");
    figure("large over small", (large.median - small.median) * 1e3, " ms", "15 ms");
}

/// A folder with a repository as `git init` makes one, and with files.
fn repository(folder: &Path, files: usize) {
    for name in [
        "config",
        "description",
        "HEAD",
        "hooks/pre-commit.sample",
        "info/exclude",
        "refs/heads/x",
        "objects/x",
    ] {
        write(&folder.join(".git").join(name));
    }
    for file in 0..files {
        write(&folder.join(format!("src/{}/{file}.rs", file % 20)));
    }
}

/// How long it takes to judge a long command line, beside a short one.
fn judgements(program: &Path, base: &Path) {
    let question = |command: String| {
        let question =
            json!({ "tool": "Bash", "input": { "command": command }, "workspace": base.join("ws") });
        format!("{question}\n")
    };
    let [short, long] = ["ls".to_owned(), format!("{}ls", "ls && ".repeat(PARTS - 1))].map(question);
    fs::write(base.join("short"), short).expect("it is ours");
    fs::write(base.join("long"), long).expect("it is ours");
    let explain = |name: &str| {
        let mut command = Command::new(program);
        command.args(["permissions", "explain"]).current_dir(base.join("ws")).stdout(Stdio::null());
        command.stdin(fs::File::open(base.join(name)).expect("it was written"));
        time(|| {
            let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
            assert!(status.success(), "{command:?}: {status}");
        })
    };
    let times = by_turns(WARM_UP, RUNS, [&mut || explain("short"), &mut || explain("long")]);
    let [short, long] = times.map(|times| Spread::of(times, 1));
    heading(&format!("judging a command line, {RUNS} runs"));
    row("one part, with the start of the program", &short, "");
    row(&format!("{PARTS} parts"), &long, "");
    figure("long over short", (long.median - short.median) * 1e3, " ms", "50 ms");
}

fn write(path: &Path) {
    fs::create_dir_all(path.parent().expect("a file has a folder")).expect("it is ours");
    fs::write(path, "text\n").expect("it is ours");
}
