//! The cost of long sessions: appending, listing, opening, resuming after a kill, memory.
//!
//! Rule: an append is beside a bare one to a file of its own, measured by turns with it. A session is opened over
//! stdio by the built program, and every run has a server of its own. Nothing here passes or fails.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --features journal --bench journal`; a number after `--` sets
//! the size of the large journal in MiB.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kode_e2e::history::{History, Length};
use kode_e2e::measure::{Spread, by_turns, figure, heading, row, time};
use kode_e2e::{Client, Project, Script, call, say};
use kode_engine::agent::state::SessionState;
use kode_engine::base::ids::TurnId;
use kode_engine::journal::{Journal, JournalLines, SHELF, Shelf};
use kode_engine::record::record::Record;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// The size of the large journal, unless the command line says otherwise.
const LARGE_MIB: u64 = 1024;
/// Bytes of an appended record.
const RECORD: usize = 1_000;
/// Appends of one run without and with waiting for the disk.
const APPENDS: u32 = 1_000;
const SYNCS: u32 = 20;
/// Runs that are not counted, and that are.
const WARM_UP: usize = 1;
const RUNS: usize = 10;
/// Turns of the long session: each has three items.
const TURNS: usize = 3_334;
/// As often as a model with a large window has its conversation compacted.
const COMPACT_EVERY: usize = 100;
/// Items that are asked for.
const ITEMS: usize = 50;
/// Lines of the file that is read in each turn.
const LINES: usize = 40;

const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    let large = std::env::args().filter_map(|argument| argument.parse().ok()).next_back();
    let large = large.unwrap_or(LARGE_MIB) << 20;
    println!("{}", kode_e2e::binary().display());
    append(1 << 10);
    append(large);
    sessions(large);
}

fn remark() -> Record {
    Record::Remark { turn: TurnId::generate(), text: "a".repeat(RECORD) }
}

fn size_of(bytes: u64) -> String {
    if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) }
}

/// Makes a journal of this many bytes.
fn fill(path: &Path, bytes: u64) {
    Journal::open(path).unwrap().append(&remark()).unwrap();
    let line = fs::read(path).unwrap();
    let mut file = BufWriter::new(File::create(path).unwrap());
    for _ in 0..bytes / line.len() as u64 {
        file.write_all(&line).unwrap();
    }
    file.into_inner().unwrap().sync_all().unwrap();
}

fn append(bytes: u64) {
    let folder = tempfile::tempdir().unwrap();
    let (path, bare) = (folder.path().join("journal.jsonl"), folder.path().join("bare"));
    fill(&path, bytes);
    let line = fs::read(&path).unwrap();
    let line: Vec<u8> = line.split_inclusive(|byte| *byte == b'\n').next().unwrap_or(b"a\n").to_vec();
    fs::copy(&path, &bare).unwrap();
    let journal = Journal::open(&path).unwrap();
    let mut file = OpenOptions::new().append(true).open(&bare).unwrap();
    let runtime = Runtime::new().unwrap();
    heading(&format!("append {RECORD} bytes to a journal of {}, {RUNS} runs", size_of(bytes)));
    let record = remark();
    let [floor, ours] = by_turns(
        WARM_UP,
        RUNS,
        [&mut || time(|| (0..APPENDS).for_each(|_| file.write_all(&line).unwrap())), &mut || {
            time(|| (0..APPENDS).for_each(|_| journal.append(&record).unwrap()))
        }],
    );
    let (floor, ours) = (Spread::of(floor, APPENDS), Spread::of(ours, APPENDS));
    row("bare write", &floor, "");
    row("journal", &ours, "");
    figure("ratio", ours.median / floor.median, "", "");
    let mut handed = file.try_clone().unwrap();
    let [floor, thread, ours] = by_turns(
        WARM_UP,
        RUNS,
        [
            &mut || {
                time(|| {
                    for _ in 0..SYNCS {
                        file.write_all(&line).unwrap();
                        file.sync_data().unwrap();
                    }
                })
            },
            &mut || {
                time(|| {
                    for _ in 0..SYNCS {
                        handed.write_all(&line).unwrap();
                        let handed = handed.try_clone().unwrap();
                        let synced = runtime.spawn_blocking(move || handed.sync_data());
                        runtime.block_on(synced).unwrap().unwrap();
                    }
                })
            },
            &mut || {
                time(|| {
                    for _ in 0..SYNCS {
                        journal.append(&record).unwrap();
                        runtime.block_on(journal.sync()).unwrap();
                    }
                })
            },
        ],
    );
    let [floor, thread, ours] = [floor, thread, ours].map(|times| Spread::of(times, SYNCS));
    row("bare write + fdatasync", &floor, "");
    row("the same, synced by another thread", &thread, "");
    row("journal + sync", &ours, "");
    figure("ratio", ours.median / floor.median, "", "1.2");
    figure("ratio to the other thread", ours.median / thread.median, "", "");
}

/// A project with a stored session of one turn, and its id.
fn stored() -> (Project, String) {
    let read = call("Read", json!({ "file_path": "{{cwd}}/file.txt" }));
    let project = Project::new(&Script::new([read, say("It is as it should be.")]));
    project.write("file.txt", "A line of a file as long as most lines are.\n".repeat(LINES));
    let client = project.open();
    let session = client.session();
    session.run("Read the file and say whether it is as it should be.");
    let id = session.id.clone();
    assert_eq!(client.shut_down(), 0);
    (project, id)
}

/// Loads a session and gives its newest items; how long that took.
fn load(client: &Client, id: &str) -> Duration {
    let start = Instant::now();
    let params = json!({ "sessionId": id, "items": ITEMS });
    let request = client.send_request("agent/session/load", params);
    // However long it takes: the measurement is not judged.
    while !client.is_answered(request) {
        std::thread::sleep(Duration::from_micros(100));
    }
    let took = start.elapsed();
    let snapshot = client.await_answer(request).unwrap();
    assert_eq!(snapshot["items"].as_array().map(Vec::len), Some(ITEMS));
    took
}

/// Opens a session by a server of its own, which is killed then: the time of the load alone, and that from the start of
/// the server on.
fn open(project: &Project, id: &str) -> (Duration, Duration) {
    let start = Instant::now();
    let client = project.open();
    let load = load(&client, id);
    let all = start.elapsed();
    client.kill();
    (load, all)
}

fn sessions(large: u64) {
    let (project, id) = stored();
    let history = History::of(&project, &id);
    for (what, length) in [
        ("a session of 10,000 items", Length { turns: TURNS, bytes: 0, compact_every: COMPACT_EVERY }),
        ("a large session", Length { turns: 0, bytes: large, compact_every: COMPACT_EVERY }),
    ] {
        let turns = history.write(length);
        let bytes = fs::metadata(&history.path).unwrap().len();
        heading(&format!("{what}: {} items, {}", turns * 3, size_of(bytes)));
        let runs = if bytes > 100 << 20 { 2 } else { RUNS };
        let without = || {
            for name in ["base.bin", "items.jsonl"] {
                drop(fs::remove_file(history.beside(name)));
            }
            open(&project, &id)
        };
        let cold: Vec<_> = (0..runs).map(|_| without()).collect();
        report("without a base", &cold, "", "");
        // The end of a session leaves a base.
        let client = project.open();
        load(&client, &id);
        memory(&client, "PSS after a load without a base");
        assert_eq!(client.shut_down(), 0);
        let base = fs::metadata(history.beside("base.bin")).expect("a base was written").len();
        let warm: Vec<_> = (0..WARM_UP + RUNS).map(|_| open(&project, &id)).skip(WARM_UP).collect();
        report("with a base", &warm, "50 ms", "");
        figure("the base", base as f64 / MIB, " MiB", "");
        let client = project.open();
        load(&client, &id);
        memory(&client, "PSS after a load with a base");
        page(&client, &id);
        client.kill();
        list(&project, &history);
        replay(&history.path);
    }
}

fn report(what: &str, times: &[(Duration, Duration)], load: &str, all: &str) {
    row(&format!("load, {what}"), &Spread::of(times.iter().map(|(load, _)| *load).collect(), 1), load);
    row(&format!("start and load, {what}"), &Spread::of(times.iter().map(|(_, all)| *all).collect(), 1), all);
}

fn memory(client: &Client, what: &str) {
    figure(what, client.proportional_set_size() / MIB, " MiB", "60 MiB with 10,000 items");
}

/// The oldest page and the newest one that is not in memory.
fn page(client: &Client, id: &str) {
    let snapshot = client.call("agent/session/load", json!({ "sessionId": id, "items": 2_000 }));
    let before = snapshot["items"][0]["itemId"].clone();
    let ask = || {
        let params = json!({ "sessionId": id, "before": before, "limit": ITEMS });
        let page: Value = client.call("agent/session/items", params);
        assert_eq!(page["items"].as_array().map(Vec::len), Some(ITEMS));
    };
    let [times] = by_turns(WARM_UP, RUNS, [&mut || time(ask)]);
    row(&format!("a page of {ITEMS} older items"), &Spread::of(times, 1), "");
}

/// Lists the session on the command line as if for the first time: by its journal alone.
fn list(project: &Project, history: &History) {
    let cold = || {
        for name in ["summary.json", "../index.jsonl"] {
            drop(fs::remove_file(history.beside(name)));
        }
        time(|| assert_eq!(project.run(&["sessions"], "").code, 0))
    };
    let times = (0..WARM_UP + RUNS).map(|_| cold()).skip(WARM_UP).collect();
    row("`kode-ls sessions`, by the journal alone", &Spread::of(times, 1), "50 ms");
}

/// Folds a journal without a server.
fn replay(path: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let shelf = Arc::new(Shelf::create(&folder.path().join(SHELF)).unwrap());
    let (mut records, mut state) = (0_u32, None::<SessionState>);
    let start = Instant::now();
    for line in JournalLines::open(path, 0).unwrap() {
        let (_, record) = line.unwrap();
        records += 1;
        match &mut state {
            Some(state) => drop(state.apply(record)),
            None => {
                state = SessionState::open(&record);
                if let Some(state) = &mut state {
                    state.attach(&shelf);
                }
            }
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    figure("replay", f64::from(records) / seconds, " records/s", "");
    figure("replay", fs::metadata(path).unwrap().len() as f64 / 1e6 / seconds, " MB/s", "");
}
