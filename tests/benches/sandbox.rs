//! The cost of the wall: `true` in either kind of sandbox beside plain `true`, a turn with `true` in a small and in a large
//! workspace, in several sessions at once, also in containers of an engine, and the judgement of a long command line.
//!
//! Rule: the helper and the turns run as the server runs them; times are measured by turns beside those of plain `true`,
//! of bubblewrap alone and of the small workspace.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench sandbox`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::fs;
use std::io::Write;
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
/// Bubblewrap, where Debian has it.
const BUBBLEWRAP: &str = "/usr/bin/bwrap";
/// The namespaces the sandbox has, and nothing more.
const ALONE: [&str; 14] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "true",
];

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = folder.path().canonicalize().expect("it is there");
    lay_out(&base);
    let program = kode_e2e::binary();
    println!("{}", program.display());
    let bubblewrap = request(&base, "bubblewrap", json!({ "name": "bubblewrap", "program": BUBBLEWRAP }));
    let landlock = request(&base, "landlock", json!({ "name": "landlock" }));
    let times = by_turns(
        WARM_UP,
        RUNS,
        [
            &mut || time_of(Command::new("true").current_dir(base.join("ws")), None),
            &mut || time_of(Command::new(BUBBLEWRAP).args(ALONE), None),
            &mut || sandboxed(&program, &base, &bubblewrap),
            &mut || sandboxed(&program, &base, &landlock),
        ],
    );
    let [plain, alone, bubblewrap, landlock] = times.map(|times| Spread::of(times, 1));
    heading(&format!("a command, start to end, {RUNS} runs"));
    row("plain `true`", &plain, "");
    row("bubblewrap alone", &alone, "");
    row("sandboxed `true`, bubblewrap", &bubblewrap, "");
    row("sandboxed `true`, landlock", &landlock, "");
    let over = |spread: &Spread| (spread.median - plain.median) * 1e3;
    figure("bubblewrap over plain", over(&bubblewrap), " ms", "15 ms");
    figure("landlock over plain", over(&landlock), " ms", "15 ms");
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

/// A turn with one `true` in a workspace of a common size, and in one with many files and repositories.
fn turns() {
    let script = Script::default().otherwise(
        (0..WARM_UP + RUNS).flat_map(|_| [call("Bash", json!({ "command": "true" })), say("done")]),
    );
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
    let turn = |session: &kode_e2e::Session<'_>| {
        time(|| {
            let done = session.run("go");
            assert_eq!(done["stopReason"], "end_turn", "{done}");
        })
    };
    let times = by_turns(WARM_UP, RUNS, [&mut || turn(&small), &mut || turn(&large)]);
    let [small, large] = times.map(|times| Spread::of(times, 1));
    heading(&format!("a turn with one `true`, {RUNS} runs"));
    row("1,000 files, 1 repository", &small, "");
    row(&format!("{} files, {} repositories", REPOSITORIES * FILES, REPOSITORIES + 1), &large, "");
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

/// A workspace of a size that is common, with a repository.
fn lay_out(base: &Path) {
    for name in ["ws/.git/config", "ws/.git/hooks/pre-commit", "ws/.vscode/tasks.json", "tmp/x", "command/x"]
    {
        write(&base.join(name));
    }
    for folder in 0..50 {
        for file in 0..20 {
            write(&base.join(format!("ws/src/{folder}/{file}.rs")));
        }
    }
}

fn write(path: &Path) {
    fs::create_dir_all(path.parent().expect("a file has a folder")).expect("it is ours");
    fs::write(path, "text\n").expect("it is ours");
}

fn request(base: &Path, name: &str, kind: Value) -> Vec<u8> {
    let control = base.join(format!("control-{name}"));
    fs::create_dir(&control).expect("it is ours");
    let request = json!({
        "policy": {
            "kind": kind,
            "writable": [base.join("ws")],
            "scratch": base.join("tmp"),
            "readOnly": [],
            "hidden": ["/etc/shadow", "/etc/gshadow", "/root/.npmrc", "/root/.ssh"],
            "home": null,
            "network": { "name": "off" },
            "limits": { "processes": 4096, "openFiles": 65536, "fileSize": 1_u64 << 34 },
            "input": "none",
        },
        "control": control,
    })
    .to_string();
    let length = u32::try_from(request.len()).expect("it is small");
    [length.to_be_bytes().as_slice(), request.as_bytes()].concat()
}

fn sandboxed(program: &Path, base: &Path, request: &[u8]) -> Duration {
    let mut command = Command::new(program);
    command.args(["__sandbox", "--", "true"]).current_dir(base.join("ws"));
    time_of(&mut command, Some(request))
}

fn time_of(command: &mut Command, request: Option<&[u8]>) -> Duration {
    command.stdin(if request.is_some() { Stdio::piped() } else { Stdio::null() });
    time(|| {
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut stdin = child.stdin.take();
        if let (Some(stdin), Some(request)) = (&mut stdin, request) {
            stdin.write_all(request).expect("the helper reads");
        }
        let status = child.wait().expect("a child can be waited for");
        assert!(status.success(), "{command:?}: {status}");
        drop(stdin);
    })
}
