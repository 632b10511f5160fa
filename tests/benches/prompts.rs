//! The time between a person and the first words, and between an edit and what comes after it: a prompt in a workspace
//! of 100,000 files, and a round that changes an open document.
//!
//! Rule: a floor is measured by turns with it: the same request by a bare HTTP client, and for the edit the steps that no
//! agent can do without, a synced append and a round trip to the client. Nothing here passes or fails.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench prompts`; a number after `--` sets the files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::time::{Duration, Instant};

use kode_e2e::measure::{Spread, by_turns, figure, heading, row, time};
use kode_e2e::{Project, Script, call, say};
use serde_json::{Value, json};

/// Files of the workspace, unless the command line says otherwise, and how many lie in a folder.
const FILES: usize = 100_000;
const IN_A_FOLDER: usize = 100;
/// Runs that are not counted, and that are.
const WARM_UP: usize = 5;
const RUNS: usize = 40;
/// About what the records of an edit take in a journal, in bytes.
const RECORDS: usize = 4_096;

const TEXT: &str = "first line\nsecond line\nthird line\n";

fn main() {
    let files = std::env::args().filter_map(|argument| argument.parse().ok()).next_back().unwrap_or(FILES);
    println!("{}", kode_e2e::binary().display());
    first_request(files);
    edit_round();
}

/// From the prompt to its first request at the model, and to the end of its turn, of one short answer.
fn first_request(files: usize) {
    let project = Project::new(&Script::new([say("Yes.")]));
    for number in 0..files {
        project.write(&format!("src/{}/{number}.rs", number / IN_A_FOLDER), "fn a() {}\n");
    }
    let client = project.open();
    client.session().run("is it?");
    let body = project.model.last_request().to_string();
    let floor = Http::new();
    let clock = Cell::new(ModelClock::default());
    let (began, ends) = (Instant::now(), RefCell::new(Vec::new()));
    let asked = |ask: &dyn Fn()| {
        let known = project.model.exchanges().len();
        let sent = began.elapsed();
        ask();
        let answered = began.elapsed();
        (sent, answered, project.model.exchanges().swap_remove(known))
    };
    let [http, ours] = by_turns(
        WARM_UP,
        RUNS,
        [
            &mut || {
                let (sent, answered, exchange) = asked(&|| floor.ask(project.model.base_url(), &body));
                clock.set(ModelClock::of((sent, answered), &exchange));
                clock.get().read(&exchange, "receivedNs").saturating_sub(sent)
            },
            &mut || {
                let session = client.session();
                let (sent, answered, exchange) = asked(&|| drop(session.run("is it?")));
                ends.borrow_mut().push(answered - sent);
                clock.get().read(&exchange, "receivedNs").saturating_sub(sent)
            },
        ],
    );
    let (http, ours) = (Spread::of(http, 1), Spread::of(ours, 1));
    let ends = Spread::of(ends.into_inner(), 1);
    heading(&format!("prompt to its first request at the model, {files} files, {RUNS} runs"));
    row("http (the same request)", &http, "");
    row("kode-ls", &ours, "");
    row("kode-ls, to the end of its turn", &ends, "");
    figure("over http", (ours.median - http.median) * 1e3, " ms", "5 ms");
}

/// The clock of the model's server as the one here reads it: an exchange lies within what its client has seen of it, and as
/// deep in it at the beginning as at the end.
#[derive(Clone, Copy, Default)]
struct ModelClock {
    /// The clock here at the zero of the model's clock, in nanoseconds.
    begins: i128,
}

impl ModelClock {
    fn of((sent, answered): (Duration, Duration), exchange: &Value) -> Self {
        let here = i128::try_from((sent + answered).as_nanos()).unwrap();
        Self {
            begins: (here - i128::from(at(exchange, "receivedNs")) - i128::from(at(exchange, "sentNs"))) / 2,
        }
    }

    fn read(self, exchange: &Value, name: &str) -> Duration {
        Duration::from_nanos(u64::try_from(self.begins + i128::from(at(exchange, name))).unwrap())
    }
}

/// From the answer with an edit of an open document to the next request.
fn edit_round() {
    let edit = |old: &str, new: &str| {
        call("Edit", json!({ "file_path": "{{cwd}}/a.txt", "old_string": old, "new_string": new }))
    };
    let script = Script::default()
        .when("^read", [call("Read", json!({ "file_path": "{{cwd}}/a.txt" })), say("Read.")])
        .when("^there", [edit("second line", "2nd line"), say("Done.")])
        .when("^back", [edit("2nd line", "second line"), say("Done.")]);
    let project = Project::new(&script);
    project.write("a.txt", TEXT);
    let client = project.open();
    client.editor.open(&project.uri("a.txt"), TEXT);
    let session = client.session_with(json!({ "mode": "acceptEdits" }));
    session.run("read");
    let mut journal = journal(&project);
    let mut is_there = false;
    let [floor, ours] = by_turns(
        WARM_UP,
        RUNS,
        [
            &mut || {
                time(|| {
                    journal.write_all(&[b'x'; RECORDS]).unwrap();
                    journal.sync_data().unwrap();
                    session.call("agent/todos/list", json!({}))
                })
            },
            &mut || {
                is_there = !is_there;
                session.run(if is_there { "there" } else { "back" });
                gap(&project.model.exchanges())
            },
        ],
    );
    let (floor, ours) = (Spread::of(floor, 1), Spread::of(ours, 1));
    heading(&format!("answer with an edit of an open document to the next request, {RUNS} runs"));
    row("floor (append, sync, one round trip)", &floor, "");
    row("kode-ls, edit applied and verified", &ours, "");
    figure("over the floor", (ours.median - floor.median) * 1e3, " ms", "3 ms");
}

fn journal(project: &Project) -> File {
    OpenOptions::new().create(true).append(true).open(project.outside().join("floor.jsonl")).unwrap()
}

/// The time between the newest two requests: from the last byte of an answer until the next one has come.
fn gap(exchanges: &[Value]) -> Duration {
    let [.., before, last] = exchanges else { panic!("the model was asked twice") };
    Duration::from_nanos(at(last, "receivedNs").saturating_sub(at(before, "sentNs")))
}

/// A time of an exchange by the model's clock, in nanoseconds.
fn at(exchange: &Value, name: &str) -> u64 {
    exchange[name].as_u64().expect("a time")
}

/// A bare client that keeps its connection.
struct Http {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
}

impl Http {
    fn new() -> Self {
        // The crate needs a cryptography provider; an error only says that one is set already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, client: reqwest::Client::builder().no_proxy().tcp_nodelay(true).build().unwrap() }
    }

    fn ask(&self, base_url: &str, body: &str) {
        self.runtime.block_on(async {
            let request = self.client.post(format!("{base_url}/v1/messages")).header("x-api-key", "k");
            let request = request.header("anthropic-version", "2023-06-01");
            let request = request.header("content-type", "application/json").body(body.to_owned());
            let mut response = request.send().await.unwrap();
            assert!(response.status().is_success(), "{}", response.status());
            while let Some(chunk) = response.chunk().await.unwrap() {
                std::hint::black_box(chunk);
            }
        });
    }
}
