//! The cost of listing many sessions: without an index, from the index on the disk, and again. The memory of many live sessions,
//! and the cost of a server that has nothing to do.
//!
//! Rule: the floor of a list reads the names and asks the system for length and time of every journal, which is what any list has to
//! do to be true. Nothing here passes or fails.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench sessions`; a number after `--` sets how many, and `list`,
//! `live` and `rest` name the parts to run.

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
use kode_e2e::{Client, Offer, Project, Script, Session, call, say};
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

/// Sessions that are live at the same time, and the turns of each; a turn has three items.
const LIVE: usize = 64;
const LIVE_TURNS: usize = 334;
/// How long after the turns the memory is measured again.
const AFTER_TURNS: Duration = Duration::from_secs(3);
/// Sessions that have their turns in the measured server.
const LIVED: usize = 8;
/// Workspace folders of a server at rest, and how long it is watched.
const FOLDERS: usize = 10;
const REST: Duration = Duration::from_secs(60);

const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    let (numbers, parts): (Vec<String>, Vec<String>) = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with('-'))
        .partition(|argument| argument.parse::<usize>().is_ok());
    let sessions = numbers.last().and_then(|number| number.parse().ok()).unwrap_or(SESSIONS);
    println!("{}", kode_e2e::binary().display());
    let is_wanted = |name: &str| parts.is_empty() || parts.iter().any(|part| part == name);
    if is_wanted("list") {
        lists(sessions);
    }
    if is_wanted("live") {
        live();
    }
    if is_wanted("rest") {
        at_rest();
    }
}

/// The list of stored sessions, and a search in them.
fn lists(sessions: usize) {
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
    fill_with(project, sessions, &["one turn with a call", "another"])
}

/// Stores many sessions that are like one with these prompts.
fn fill_with(project: &Project, sessions: usize, prompts: &[&str]) -> PathBuf {
    let client = project.open();
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    for prompt in prompts {
        session.run(prompt);
    }
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
        drop(fs::remove_file(folder.join("index.jsonl")));
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

/// Many sessions in one server: opened, and after a turn in each.
fn live() {
    let turn = [call("Bash", json!({ "command": "seq 100" })), say("It is done. ")];
    let project = Project::new(&Script::default().when("^one", turn).otherwise([say("Hello.")]));
    fill_with(&project, LIVE, &["one turn"; LIVE_TURNS]);
    let client = project.open();
    client.call("agent/models/list", json!({}));
    let before = client.proportional_set_size();
    heading(&format!("{LIVE} live sessions of {} items", LIVE_TURNS * 3));
    figure("memory without a session", before / MIB, " MiB", "");
    let ids: Vec<String> = (0..LIVE).map(|number| format!("ses_{number}")).collect();
    for id in &ids {
        client.call("agent/session/load", json!({ "sessionId": id, "items": 100 }));
    }
    figure("memory with all of them opened", client.proportional_set_size() / MIB, " MiB", "200 MiB");
    for id in &ids {
        Session::new(&client, id).run("another");
    }
    figure("memory after a turn in each", client.proportional_set_size() / MIB, " MiB", "200 MiB");
    std::thread::sleep(AFTER_TURNS);
    figure("... and three seconds later", client.proportional_set_size() / MIB, " MiB", "200 MiB");
    client.shut_down();
    lived();
}

/// Sessions that had all their turns in one server, whose events it keeps.
fn lived() {
    let turn = [call("Bash", json!({ "command": "seq 100" })), say("It is done. ")];
    let project = Project::new(&Script::default().when("^one", turn).otherwise([say("Hello.")]));
    let client = project.open();
    client.call("agent/models/list", json!({}));
    let before = client.proportional_set_size();
    for _ in 0..LIVED {
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        (0..LIVE_TURNS).for_each(|_| drop(session.run("one turn")));
    }
    let each = (client.proportional_set_size() - before) / LIVED as f64;
    figure("memory of one that had its turns here", each / MIB, " MiB", "");
    client.shut_down();
}

/// A server that watches the folders of an editor and has nothing to do.
fn at_rest() {
    let project = Project::new(&Script::new([say("Hello.")]));
    let folders: Vec<PathBuf> =
        (0..FOLDERS).map(|number| project.outside().join(format!("w{number}"))).collect();
    for folder in &folders {
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("src/a.txt"), "one\n").unwrap();
    }
    let client = project.start();
    let mut params = Offer::kode().params(&project.workspace());
    let name = |folder: &PathBuf| url::Url::from_directory_path(folder).unwrap().to_string();
    let listed = folders.iter().map(|folder| json!({ "uri": name(folder), "name": "workspace" }));
    params["workspaceFolders"] = json!(listed.collect::<Vec<_>>());
    client.initialize(params);
    heading(&format!("a server at rest with {FOLDERS} workspace folders"));
    figure("memory before the first session", client.proportional_set_size() / MIB, " MiB", "");
    for folder in &folders {
        client.session_with(json!({ "workspaceFolder": name(folder) }));
    }
    figure("memory with a session in each", client.proportional_set_size() / MIB, " MiB", "");
    let before = client.processor_time();
    std::thread::sleep(REST);
    let share = (client.processor_time() - before).as_secs_f64() / REST.as_secs_f64();
    figure("share of a processor", share * 100.0, " %", "0.1 %");
    client.shut_down();
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
