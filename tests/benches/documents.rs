//! The cost of large documents and many changes for an editor: keystrokes in 100 MB, a file with 1,000 hunks, a look into a
//! file of 500 MB.
//!
//! Rule: everything goes over the wire of the built program. A keystroke is a notification of its own; many are sent at
//! once and then a request, whose answer says that all have been taken. Nothing here passes or fails.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench documents`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};

use kode_e2e::keyboard::{KEYSTROKES, Keyboard, open_large};
use kode_e2e::measure::{Spread, by_turns, figure, heading, row, time};
use kode_e2e::{Client, Project, Script, Session, call, say};
use serde_json::{Value, json};

/// With its line break.
const LINE_BYTES: usize = 100;
const LARGE_LINES: usize = 1_000_000;
const SMALL_LINES: usize = 10;
const HUNKS: usize = 1_000;
/// Lines from one hunk to the next.
const DISTANCE: usize = 10;
/// Lines of a file of 500 MB.
const WINDOW_LINES: usize = 5_000_000;
const WARM_UP: usize = 2;
const RUNS: usize = 15;

const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    println!("{}", kode_e2e::binary().display());
    typing();
    hunks();
    window();
}

fn typing() {
    let line = format!("{}\n", "x".repeat(LINE_BYTES - 1));
    let marked = |lines: usize| format!("the first line\n{}", line.repeat(lines));
    let script = Script::new([
        call("Read", json!({ "file_path": "{{cwd}}/followed.txt", "limit": 10 })),
        call(
            "Edit",
            json!({
                "file_path": "{{cwd}}/followed.txt",
                "old_string": "the first line", "new_string": "the changed line",
            }),
        ),
        say("Edited."),
    ]);
    let project = Project::new(&script);
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    let small = Keyboard::new(&client, &project.uri("small.txt"), SMALL_LINES);
    let large = Keyboard::new(&client, &project.uri("large.txt"), LARGE_LINES);
    client.editor.open(&small.uri, &marked(SMALL_LINES));
    open_large(&client, &large.uri, &marked(LARGE_LINES));
    let [floor, alone] = by_turns(WARM_UP, RUNS, [&mut || small.type_some(), &mut || large.type_some()])
        .map(|times| Spread::of(times, KEYSTROKES));

    let followed = Keyboard::new(&client, &project.uri("followed.txt"), LARGE_LINES);
    open_large(&client, &followed.uri, &marked(LARGE_LINES));
    let done = session.run("edit it");
    assert_eq!(done["stopReason"], "end_turn", "{done}");
    assert_eq!(
        list(&session)["files"][0]["hunks"].as_array().map(Vec::len),
        Some(1),
        "{:?}",
        session.calls()
    );
    let [shown, taken_in] = by_turns(
        WARM_UP,
        RUNS,
        [&mut || followed.type_some(), &mut || followed.type_and(|| drop(list(&session)))],
    )
    .map(|times| Spread::of(times, KEYSTROKES));

    let typed = 1_000 + followed.typed() - 1;
    assert_eq!(list(&session)["files"][0]["version"], typed, "the ledger is where the document is");

    heading("keystroke (`didChange`), over the wire");
    row("floor (in a document of 1 KB)", &floor, "");
    row("in 100 MB", &alone, "");
    row("in 100 MB, followed by a ledger", &shown, "");
    row("in 100 MB, until the ledger has taken it in", &taken_in, "");
    figure("ratio", alone.median / floor.median, "", "");
    figure("ratio, followed by a ledger", shown.median / floor.median, "", "");
}

fn hunks() {
    let edit = json!({
        "file_path": "{{cwd}}/many.txt", "old_string": "needle", "new_string": "pin", "replace_all": true,
    });
    let script = Script::new([
        call("Read", json!({ "file_path": "{{cwd}}/many.txt", "limit": 10 })),
        call("Edit", edit),
        say("Edited."),
    ]);
    let project = Project::new(&script);
    let mut text = String::new();
    for line in 0..HUNKS * DISTANCE {
        let word = if line % DISTANCE == 0 { "needle" } else { "hay" };
        let _ = writeln!(text, "    let value_{line} = {word}(argument);");
    }
    let client = project.open();
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    let (plain, many) = (project.uri("plain.txt"), project.uri("many.txt"));
    client.editor.open(&plain, &text);
    client.editor.open(&many, &text);
    let done = session.run("edit it");
    assert_eq!(done["stopReason"], "end_turn", "{done}");
    assert_eq!(
        list(&session)["files"][0]["hunks"].as_array().map(Vec::len),
        Some(HUNKS),
        "{:?}",
        session.calls()
    );

    let without = Keyboard::new(&client, &plain, HUNKS * DISTANCE);
    let with = Keyboard::new(&client, &many, HUNKS * DISTANCE);
    let idle = client.session();
    let [typed_without, typed_with] = by_turns(
        WARM_UP,
        RUNS,
        [&mut || without.type_and(|| drop(list(&session))), &mut || with.type_and(|| drop(list(&session)))],
    )
    .map(|times| Spread::of(times, KEYSTROKES));
    let lenses = |uri: &str| client.call("textDocument/codeLens", json!({ "textDocument": { "uri": uri } }));
    let [no_hunks, listed, no_lenses, lenses] = by_turns(
        WARM_UP,
        RUNS,
        [
            &mut || time(|| list(&idle)),
            &mut || time(|| list(&session)),
            &mut || time(|| lenses(&plain)),
            &mut || time(|| lenses(&many)),
        ],
    )
    .map(|times| Spread::of(times, 1));

    heading("a file with 1,000 live hunks, over the wire");
    row("floor (keystroke in the same text, no hunks)", &typed_without, "");
    row("keystroke, until the ledger has taken it in", &typed_with, "100 µs beyond the floor");
    row("floor (`agent/edits/list` without hunks)", &no_hunks, "");
    row("`agent/edits/list`", &listed, "");
    row("floor (`textDocument/codeLens` without hunks)", &no_lenses, "");
    row("`textDocument/codeLens`", &lenses, "");
}

fn window() {
    let read = |file: &str, offset: usize| {
        let file = format!("{{{{cwd}}}}/{file}");
        call("Read", json!({ "file_path": file, "offset": offset, "limit": 100 }))
    };
    let script = Script::default()
        .when("^short", [read("short.txt", 1), say("Read.")])
        .when("^long", [read("long.txt", WINDOW_LINES / 2), say("Read.")]);
    let project = Project::new(&script);
    project.write("short.txt", "A line of a short file.\n".repeat(200));
    let mut long = BufWriter::new(File::create(project.path("long.txt")).expect("the folder is ours"));
    for line in 0..WINDOW_LINES {
        writeln!(long, "{line:>width$}", width = LINE_BYTES - 1).expect("the folder is ours");
    }
    drop(long.into_inner().expect("the disk has room"));
    let client = project.open();
    let session = client.session();
    let turns = |prompt: &str| {
        let done = session.run(prompt);
        assert_eq!(done["stopReason"], "end_turn", "{done}");
        peak(&client) / MIB
    };
    let idle = peak(&client) / MIB;
    let short = turns("short");
    let (mut long, mut times) = (0.0, Vec::new());
    for _ in 0..3 {
        times.push(time(|| long = turns("long")));
    }
    println!("\na window of 100 lines in the middle of 500 MB{:>57}", "budget");
    figure("peak memory after `initialize`", idle, " MiB", "");
    figure("floor (after the same of 200 lines)", short, " MiB", "");
    figure("after the window", long, " MiB", "");
    figure("growth", long - short, " MiB", "16 MiB");
    row("the turn", &Spread::of(times, 1), "");
}

fn list(session: &Session<'_>) -> Value {
    session.call("agent/edits/list", json!({}))
}

/// The most memory a server has used so far, in bytes.
fn peak(client: &Client) -> f64 {
    let path = format!("/proc/{}/status", client.process_id());
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.unwrap_or_else(|| panic!("{path} names no VmHWM")) * 1024.0
}
