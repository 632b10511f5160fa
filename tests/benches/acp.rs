//! The cost of the ACP face: until it is of use, a long session, its memory beside that of the LSP face.
//!
//! Rule: every run has a process of its own, over the pipes of a client. Nothing here passes or fails.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench acp`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::time::{Duration, Instant};

use kode_e2e::history::{History, Length};
use kode_e2e::measure::{Spread, figure, heading, row};
use kode_e2e::system::proportional_set_size;
use kode_e2e::{AcpClient, Project, Script, call, say, updates_of};
use serde_json::json;

/// Runs that are not counted, and that are.
const WARM_UP: usize = 3;
const RUNS: usize = 20;
/// Turns of the long session: each has three items.
const TURNS: usize = 3_334;
/// As often as a model with a large window has its conversation compacted.
const COMPACT_EVERY: usize = 100;
/// Rounds of the turn after which memory is measured.
const ROUNDS: usize = 20;

const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    println!("{}", kode_e2e::binary().display());
    beginning();
    long_session();
    memory();
}

/// From the start of the process to the answer of `initialize`, and a session after that.
fn beginning() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let (mut initialize, mut session) = (Vec::new(), Vec::new());
    for run in 0..WARM_UP + RUNS {
        let begun = Instant::now();
        let client = project.acp(json!({}));
        let initialized = begun.elapsed();
        let begun = Instant::now();
        client.new_session();
        if run >= WARM_UP {
            initialize.push(initialized);
            session.push(begun.elapsed());
        }
    }
    heading(&format!("the ACP face, {RUNS} runs"));
    row("start to `initialize`", &Spread::of(initialize, 1), "15 ms");
    row("`session/new`", &Spread::of(session, 1), "20 ms");
}

/// A stored session of 10,000 items, from `session/load` to its answer, which comes after the last update.
fn long_session() {
    let read = call("Read", json!({ "file_path": "{{cwd}}/file.txt" }));
    let project = Project::new(&Script::new([read, say("It is as it should be.")]));
    project.write("file.txt", "A line of a file as long as most lines are.\n".repeat(40));
    let client = project.open();
    let session = client.session();
    session.run("Read the file and say whether it is as it should be.");
    let id = session.id.clone();
    client.shut_down();
    let length = Length { turns: TURNS, bytes: 0, compact_every: COMPACT_EVERY };
    let turns = History::of(&project, &id).write(length);
    let load = || -> (Duration, usize) {
        let client = project.acp(json!({}));
        let begun = Instant::now();
        let params = json!({ "sessionId": id, "cwd": project.workspace(), "mcpServers": [] });
        client.call("session/load", params);
        let time = begun.elapsed();
        (time, client.look(|received| updates_of(&received.messages, &id).len()))
    };
    let mut loads: Vec<_> = (0..WARM_UP + RUNS / 2).map(|_| load()).collect();
    let updates = loads[0].1;
    let times = loads.split_off(WARM_UP).into_iter().map(|(time, _)| time).collect();
    heading(&format!("a session of {} items, {updates} updates", turns * 3));
    row("`session/load` to its last update", &Spread::of(times, 1), "300 ms");
}

/// The same turn in both faces.
fn memory() {
    let rounds = || (0..ROUNDS).map(|_| call("Read", json!({ "file_path": "{{cwd}}/lines.txt" })));
    let project = || {
        let project = Project::new(&Script::new(rounds().chain([say("Read it.")])));
        project.write("lines.txt", "A line of a file as long as most lines are.\n".repeat(200));
        project
    };
    let of_lsp = project();
    let lsp = of_lsp.open();
    lsp.session().run("read it");
    let of_acp = project();
    let acp: AcpClient = of_acp.acp(json!({}));
    let session = acp.new_session();
    acp.run(&session, "read it");
    let (lsp, acp) = (lsp.proportional_set_size(), proportional_set_size(acp.process_id()));
    heading(&format!("memory after a turn of {ROUNDS} rounds"));
    figure("LSP", lsp / MIB, " MiB", "");
    figure("ACP", acp / MIB, " MiB", "");
    figure("more than LSP", (acp - lsp) / MIB, " MiB", "3 MiB");
}
