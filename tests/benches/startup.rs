//! The cost of kode-ls before it is of use: time until it answers `initialize`, memory, size.
//!
//! Rule: a time is beside that of a floor measured in the same minute, because the time of one machine says
//! nothing about another. Nothing here passes or fails.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench startup`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use kode_e2e::measure::{Spread, figure, heading, row};
use kode_e2e::{Project, Script, call, say};
use serde_json::json;

/// The floor: the same LSP crate, answering `initialize` and nothing else.
const ECHO: &str = env!("CARGO_BIN_EXE_echo-server");
/// Runs that are not counted; they bring the programs into memory.
const WARM_UP: usize = 5;
/// Runs of each server that are counted, by turns.
const RUNS: usize = 40;
/// Rounds of the turn after which memory is measured.
const ROUNDS: usize = 20;

const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    let kode_ls = kode_e2e::binary();
    println!("{}", kode_ls.display());
    startup(&kode_ls);
    memory();
    size(&kode_ls);
}

fn startup(kode_ls: &Path) {
    let home = tempfile::tempdir().expect("a temporary folder");
    let (mut echo, mut ours) = (Vec::new(), Vec::new());
    for run in 0..WARM_UP + RUNS {
        let times = [Path::new(ECHO), kode_ls].map(|program| time_to_initialize(program, home.path()));
        if run >= WARM_UP {
            echo.push(times[0]);
            ours.push(times[1]);
        }
    }
    let (echo, ours) = (Spread::of(echo, 1), Spread::of(ours, 1));
    heading(&format!("start to `initialize`, {RUNS} runs"));
    row("echo (same LSP crate, no more)", &echo, "");
    row("kode-ls", &ours, "15 ms where echo takes at most 8 ms");
    figure("ratio", ours.median / echo.median, "", "2");
}

/// Starts a server, waits for its answer to `initialize`, and ends it.
fn time_to_initialize(program: &Path, home: &Path) -> Duration {
    let params = json!({ "processId": null, "rootUri": null, "capabilities": {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string();
    let mut command = Command::new(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).env("KODE_LS_HOME", home);
    let start = Instant::now();
    let mut server = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let mut stdin = server.stdin.take().expect("stdin is a pipe");
    write!(stdin, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("the server reads");
    let mut stdout = BufReader::new(server.stdout.take().expect("stdout is a pipe"));
    let mut header = String::new();
    while !header.ends_with("\r\n\r\n") {
        assert_ne!(
            stdout.read_line(&mut header).expect("a pipe can be read"),
            0,
            "{} ended",
            program.display()
        );
    }
    let length = header.split_once(": ").and_then(|(_, rest)| rest.lines().next()?.parse().ok());
    let mut answer = vec![0; length.expect("a length comes first")];
    stdout.read_exact(&mut answer).expect("the server answers");
    let time = start.elapsed();
    server.kill().and_then(|()| server.wait()).expect("a child can be ended");
    time
}

fn memory() {
    let rounds = (0..ROUNDS).map(|_| call("Read", json!({ "file_path": "{{cwd}}/lines.txt" })));
    let project = Project::new(&Script::new(rounds.chain([say("Read it.")])));
    project.write("lines.txt", "A line of a file as long as most lines are.\n".repeat(200));
    let client = project.open();
    let idle = client.proportional_set_size();
    let done = client.session().run("read it");
    assert_eq!(done["stopReason"], "end_turn", "{done}");
    let after = client.proportional_set_size();
    println!("\nmemory (PSS)");
    figure("after `initialize`", idle / MIB, " MiB", "15 MiB");
    figure(&format!("after a turn of {ROUNDS} rounds"), after / MIB, " MiB", "25 MiB");
}

fn size(kode_ls: &Path) {
    let bytes = fs::metadata(kode_ls).expect("it was started").len();
    println!();
    figure("size of the program", bytes as f64 / 1e6, " MB", "25 MB");
}
