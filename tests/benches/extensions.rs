//! The cost of a user's own files before they are of use: skills, commands, agents and MCP servers, some of them dead.
//!
//! Rule: each time is beside that of a project without any of it, measured by turns, because what counts is that no caller
//! waits for them. Nothing here passes or fails.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench extensions`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kode_e2e::measure::{Spread, figure, heading, row};
use kode_e2e::{Client, Offer, Project, Script, say};
use serde_json::json;

const SKILLS: usize = 200;
const COMMANDS: usize = 100;
const AGENTS: usize = 50;
const SERVERS: usize = 10;
/// A small server over stdio.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/dialects/tickets.py");
/// Runs that are not counted.
const WARM_UP: usize = 2;
/// Runs that are counted, by turns.
const RUNS: usize = 12;

/// One of the steps.
type Step = fn(&Times) -> Duration;

/// How long one start takes, step by step.
struct Times {
    initialize: Duration,
    session: Duration,
    turn: Duration,
}

fn main() {
    println!("{}", kode_e2e::binary().display());
    let projects: [(Project, PathBuf); 3] = std::array::from_fn(|_| {
        let project = project();
        let home = project.outside().join("user");
        fs::create_dir_all(&home).unwrap();
        (project, home)
    });
    let [_, (_, reader), (_, user)] = &projects;
    write_files(reader);
    write_files(user);
    write_servers(user);
    let mut times: [Vec<Times>; 3] = Default::default();
    for run in 0..WARM_UP + RUNS {
        for (at, (project, home)) in projects.iter().enumerate() {
            let taken = start(project, home);
            if run >= WARM_UP {
                times[at].push(taken);
            }
        }
    }
    let steps: [(&str, Step, &str); 3] = [
        ("start to `initialize`", |times| times.initialize, "not delayed"),
        ("agent/session/new", |times| times.session, "20 ms"),
        ("first prompt, to the end of its turn", |times| times.turn, "not delayed"),
    ];
    for (name, step, budget) in steps {
        heading(&format!("{name}, {RUNS} runs"));
        let [bare, files, full] =
            times.each_ref().map(|times| Spread::of(times.iter().map(step).collect(), 1));
        row("nothing of the user's", &bare, "");
        let all = format!("{SKILLS} skills, {COMMANDS} commands, {AGENTS} agents");
        row(&all, &files, budget);
        row(&format!("and {SERVERS} servers"), &full, budget);
        figure("more", (full.median - bare.median) * 1e3, " ms", "");
    }
}

fn project() -> Project {
    Project::new(&Script::default().otherwise([say("So it is.")]))
}

/// Many skills, commands and agents of a user.
fn write_files(home: &Path) {
    let text = "Do it well. ".repeat(100);
    for at in 0..SKILLS {
        let head = format!("---\nname: skill-{at}\ndescription: The skill of number {at}.\n---\n{text}");
        write(home.join(format!(".claude/skills/skill-{at}/SKILL.md")), &head);
    }
    for at in 0..COMMANDS {
        let head = format!("---\ndescription: The command of number {at}.\n---\n{text} $ARGUMENTS");
        write(home.join(format!(".claude/commands/command-{at}.md")), &head);
    }
    for at in 0..AGENTS {
        let head = format!(
            "---\nname: agent-{at}\ndescription: The agent of number {at}.\ntools: Read\n---\n{text}"
        );
        write(home.join(format!(".claude/agents/agent-{at}.md")), &head);
    }
}

/// Many servers of a user. One is dead, and one never answers.
fn write_servers(home: &Path) {
    let server = |at: usize| match at {
        0 => json!({ "command": "no-such-program-anywhere" }),
        1 => json!({ "command": "sleep", "args": ["1000"] }),
        _ => json!({ "command": "python3", "args": [SERVER] }),
    };
    let servers: BTreeMap<String, _> = (0..SERVERS).map(|at| (format!("server-{at}"), server(at))).collect();
    write(home.join(".claude.json"), &json!({ "mcpServers": servers }).to_string());
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().expect("a file has a folder")).unwrap();
    fs::write(path, text).unwrap();
}

fn start(project: &Project, home: &Path) -> Times {
    let begun = Instant::now();
    let client: Client = project.start_as(&[], &[("HOME", home.to_str().expect("paths here are text"))]);
    client.initialize(Offer::kode().params(&project.workspace()));
    let initialize = begun.elapsed();
    let begun = Instant::now();
    let session = client.session();
    let new = begun.elapsed();
    let begun = Instant::now();
    let done = session.run("say it");
    let turn = begun.elapsed();
    assert_eq!(done["stopReason"], "end_turn", "{done}");
    assert_eq!(client.shut_down(), 0);
    Times { initialize, session: new, turn }
}
