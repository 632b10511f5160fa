//! The cost of listing many sessions: without an index, from the index on the disk, and again.
//!
//! Rule: the floor reads the names and asks the system for length and time of every journal, which is what any list has to
//! do to be true. Nothing here passes or fails.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench sessions`; a number after `--` sets how many.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kode_e2e::measure::{Spread, by_turns, figure, heading, row, time};
use kode_e2e::{Client, Project, Script, call, say};
use serde_json::json;

/// Sessions, unless the command line says otherwise.
const SESSIONS: usize = 10_000;
/// Runs that are not counted, and that are.
const WARM_UP: usize = 2;
const RUNS: usize = 15;
/// Runs with nothing known, each of which reads all journals.
const COLD_RUNS: usize = 3;
/// Sessions of a page.
const PAGE: usize = 50;

const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    let sessions = std::env::args().filter_map(|argument| argument.parse().ok()).next_back();
    let sessions = sessions.unwrap_or(SESSIONS);
    println!("{}", kode_e2e::binary().display());
    let script = Script::default()
        .when("^one", [call("Bash", json!({ "command": "seq 200" })), say("It is done. ")])
        .otherwise([say("Hello.")]);
    let project = Project::new(&script);
    let folder = fill(&project, sessions);
    let journal = folder.join("ses_0/journal.jsonl");
    heading(&format!("list of {sessions} sessions, {RUNS} runs"));
    figure("bytes of a journal", journal.metadata().unwrap().len() as f64, "", "");
    cold(&project, &folder);
    indexed(&project, &folder);
    warm(&project, &folder);
    search(&project, sessions);
}

/// Stores many sessions that are like one of two turns.
fn fill(project: &Project, sessions: usize) -> PathBuf {
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run("one turn with a call");
    session.run("another");
    let id = session.id.clone();
    client.shut_down();
    let workspace = fs::read_dir(project.home().join("sessions")).unwrap();
    let folders = workspace.map(|entry| entry.unwrap().path());
    let folder = folders.into_iter().find(|folder| folder.join(&id).is_dir()).unwrap();
    let journal = fs::read_to_string(folder.join(&id).join("journal.jsonl")).unwrap();
    for number in 0..sessions {
        let name = format!("ses_{number}");
        fs::create_dir(folder.join(&name)).unwrap();
        fs::write(folder.join(&name).join("journal.jsonl"), journal.replace(&id, &name)).unwrap();
    }
    fs::remove_dir_all(folder.join(&id)).unwrap();
    folder
}

fn floor(folder: &Path) -> Duration {
    time(|| {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let seen = entries.filter_map(|entry| entry.path().join("journal.jsonl").metadata().ok());
        seen.map(|metadata| metadata.len()).sum::<u64>()
    })
}

fn list(client: &Client) -> Duration {
    let start = Instant::now();
    let page = client.call("agent/session/list", json!({ "limit": PAGE }));
    let time = start.elapsed();
    assert_eq!(page["sessions"].as_array().map(Vec::len), Some(PAGE), "{page}");
    assert_eq!(page["sessions"][0]["turns"], 2);
    time
}

/// Lists in a server that has just started, once what every request needs has been made.
fn in_new_server(project: &Project, prepare: &dyn Fn()) -> Duration {
    prepare();
    let client = project.open();
    client.call("agent/models/list", json!({}));
    let time = list(&client);
    client.shut_down();
    time
}

fn cold(project: &Project, folder: &Path) {
    let nothing_known = || {
        // The missing files are the expected result.
        drop(fs::remove_file(folder.join("index.json")));
    };
    let [floor, ours] =
        by_turns(0, COLD_RUNS, [&mut || floor(folder), &mut || in_new_server(project, &nothing_known)]);
    let (floor, ours) = (Spread::of(floor, 1), Spread::of(ours, 1));
    row("nothing known: every journal is read", &ours, "");
    figure("ratio to readdir + stat", ours.median / floor.median, "", "");
}

fn indexed(project: &Project, folder: &Path) {
    let [floor, ours] =
        by_turns(1, RUNS / 3, [&mut || floor(folder), &mut || in_new_server(project, &|| {})]);
    let (floor, ours) = (Spread::of(floor, 1), Spread::of(ours, 1));
    row("readdir + stat", &floor, "");
    row("first list of a server, cold, by the index", &ours, "60 ms");
    figure("ratio", ours.median / floor.median, "", "");
}

fn warm(project: &Project, folder: &Path) {
    let client = project.open();
    let before = client.proportional_set_size();
    let [floor, ours] = by_turns(WARM_UP, RUNS, [&mut || floor(folder), &mut || list(&client)]);
    let (floor, ours) = (Spread::of(floor, 1), Spread::of(ours, 1));
    row("readdir + stat", &floor, "");
    row("list again, warm", &ours, "100 ms");
    figure("ratio", ours.median / floor.median, "", "");
    figure("memory it leaves", (client.proportional_set_size() - before) / MIB, " MiB", "");
}

fn search(project: &Project, sessions: usize) {
    let client = project.open();
    heading(&format!("search of {sessions} sessions, {COLD_RUNS} runs"));
    for (what, query) in [("words that are nowhere", "no such words"), ("words that are everywhere", "done")]
    {
        let mut look = || {
            time(|| {
                let answer = client.call("agent/session/search", json!({ "query": query }));
                assert!(answer["hits"].is_array(), "{answer}");
            })
        };
        let [times] = by_turns(1, COLD_RUNS, [&mut look]);
        row(what, &Spread::of(times, 1), "");
    }
}
