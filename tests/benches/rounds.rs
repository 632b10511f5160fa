//! The cost of a round of the loop between two answers of the model: time, bytes, memory, and how they grow.
//!
//! Rule: the scripted model measures, in a process of its own and with one clock for both sides: from the last byte of
//! an answer until the next request has come as a whole. The floor sends the same requests, reads the same streams and
//! the same files, and does nothing else. Nothing here passes or fails.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench rounds`; a number after `--` sets the rounds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use kode_e2e::measure::{Spread, by_turns, figure, heading, row};
use kode_e2e::{Client, Offer, Project, Script, Step, call, say, step};
use reqwest::Client as Http;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// Rounds of the long turn, unless the command line says otherwise.
const ROUNDS: usize = 500;
/// Long turns that are counted, after one that is not.
const TURNS: usize = 3;
/// Runs of a short turn that are not counted, and that are.
const WARM_UP: usize = 5;
const RUNS: usize = 40;
/// Calls of the round with many.
const CALLS: usize = 10;
/// Pieces of the long text, and their characters.
const DELTAS: usize = 20_000;
const PIECE: &str = "abcd ";

const LINE: &str = "A line of a file as long as most lines are.\n";
const LINES: usize = 200;
const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    let rounds = std::env::args().filter_map(|argument| argument.parse().ok()).next_back().unwrap_or(ROUNDS);
    println!("{}", kode_e2e::binary().display());
    let floor = Floor::new();
    one_round(&floor);
    many_rounds(&floor, rounds.max(20));
    long_text(&floor);
}

/// The bare loop: one connection that is kept, requests that are ready, streams read to their end.
struct Floor {
    runtime: Runtime,
    http: Http,
}

impl Floor {
    fn new() -> Self {
        // The crate needs a cryptography provider; an error only says that one is set already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { runtime, http: Http::builder().no_proxy().tcp_nodelay(true).build().unwrap() }
    }

    /// Sends the requests one after the other; after each answer but the last, reads the files of that round.
    fn run(&self, base_url: &str, bodies: &Receiver<Vec<u8>>, files: impl Fn(usize) -> Vec<String>) {
        let url = format!("{base_url}/v1/messages");
        self.runtime.block_on(async {
            for (round, body) in bodies.iter().enumerate() {
                for file in files(round) {
                    std::hint::black_box(std::fs::read(file).unwrap());
                }
                let request =
                    self.http.post(&url).header("x-api-key", "k").header("anthropic-version", "2023-06-01");
                let request = request.header("content-type", "application/json").body(body);
                let mut response = request.send().await.unwrap();
                assert!(response.status().is_success(), "{}", response.status());
                while let Some(chunk) = response.chunk().await.unwrap() {
                    std::hint::black_box(chunk);
                }
            }
        });
    }
}

/// The requests of a turn, made from its last one, which holds all messages; made ahead by a thread of their own.
fn bodies(mut last: Value) -> Receiver<Vec<u8>> {
    let Value::Array(messages) = last["messages"].take() else { panic!("{last} has no messages") };
    let messages: Vec<String> = messages.iter().map(Value::to_string).collect();
    assert_eq!(messages.len() % 2, 1, "the user has the last word");
    let (head, tail) = {
        let frame = last.to_string();
        let (head, tail) = frame.split_once("\"messages\":null").expect("they were taken out");
        (format!("{head}\"messages\":["), format!("]{tail}"))
    };
    let (made, wanted) = sync_channel(2);
    thread::spawn(move || {
        for count in (1..=messages.len()).step_by(2) {
            let body = format!("{head}{}{tail}", messages[..count].join(","));
            // The floor has panicked when it is not in use.
            if made.send(body.into_bytes()).is_err() {
                break;
            }
        }
    });
    wanted
}

/// The time between each answer and the next request, of the newest `count` requests.
fn gaps(project: &Project, count: usize) -> Vec<Duration> {
    let exchanges = project.model.exchanges();
    let newest = &exchanges[exchanges.len() - count..];
    let at = |exchange: &Value, name: &str| exchange[name].as_u64().expect("a time");
    newest
        .windows(2)
        .map(|pair| Duration::from_nanos(at(&pair[1], "receivedNs").saturating_sub(at(&pair[0], "sentNs"))))
        .collect()
}

fn read(file: &str) -> Step {
    call("Read", json!({ "file_path": format!("{{{{cwd}}}}/{file}") }))
}

fn open(project: &Project) -> Client {
    // The model is taken to read all there can be, so that nothing is compacted.
    let options = json!({ "model": { "contextWindow": 1_000_000_000_u64 } });
    project.connect(&Offer::kode().options(options))
}

fn path(project: &Project, file: &str) -> String {
    project.path(file).to_str().expect("paths of tests are text").to_owned()
}

/// The first round of a turn, with one call and with many.
fn one_round(floor: &Floor) {
    let mut many = step();
    for number in 0..CALLS {
        many = many.call("Read", json!({ "file_path": format!("{{{{cwd}}}}/{number}.txt") }));
    }
    let script =
        Script::default().when("^one$", [read("0.txt"), say("Done.")]).when("^many$", [many, say("Done.")]);
    let project = Project::new(&script);
    for number in 0..CALLS {
        project.write(&format!("{number}.txt"), LINE.repeat(LINES));
    }
    let client = open(&project);
    heading(&format!("answer to next request, first round, {RUNS} runs"));
    for (prompt, calls, budget) in [("one", 1, "1 ms"), ("many", CALLS, "3 ms")] {
        let files: Vec<String> = (0..calls).map(|number| path(&project, &format!("{number}.txt"))).collect();
        client.session().run(prompt);
        let last = project.model.last_request();
        let [http, ours] = by_turns(
            WARM_UP,
            RUNS,
            [
                &mut || {
                    floor.run(project.model.base_url(), &bodies(last.clone()), |round| {
                        if round == 0 { Vec::new() } else { files.clone() }
                    });
                    gaps(&project, 2)[0]
                },
                &mut || {
                    client.session().run(prompt);
                    gaps(&project, 2)[0]
                },
            ],
        );
        let (http, ours) = (Spread::of(http, 1), Spread::of(ours, 1));
        row(&format!("http, {calls} read(s)"), &http, "");
        row(&format!("kode-ls, {calls} read(s)"), &ours, "");
        figure("over http", (ours.median - http.median) * 1e3, " ms", budget);
        figure("ratio", ours.median / http.median, "", "");
    }
}

/// The places in a long turn that are checked: their names, and the gaps that count there.
fn places(rounds: usize) -> Vec<(usize, std::ops::Range<usize>)> {
    let mut ends: Vec<usize> = [1, 10, 100, 500].into_iter().filter(|end| *end < rounds).collect();
    ends.push(rounds);
    ends.into_iter().map(|end| (end, end - end.div_ceil(10)..end)).collect()
}

/// One turn of many rounds, each of which reads a file.
fn many_rounds(floor: &Floor, rounds: usize) {
    let looks: Vec<usize> =
        [10, 100, 500].into_iter().filter(|round| *round < rounds).chain([rounds]).collect();
    let mut steps = Vec::new();
    for round in &looks {
        let before = steps.iter().map(|(times, _)| times).sum::<usize>();
        steps.push((round - before - 1, read("{{round}}.txt")));
        steps.push((1, read("{{round}}.txt").gate(&format!("round-{round}"), 0)));
    }
    let steps = steps.into_iter().filter(|(times, _)| *times > 0).map(|(times, step)| step.repeat(times));
    let project = Project::new(&Script::new(steps.chain([say("Done.")])));
    for round in 0..rounds {
        project.write(&format!("{round}.txt"), LINE.repeat(LINES));
    }
    let client = open(&project);
    let mut memory = vec![("idle".to_owned(), client.proportional_set_size())];
    let (mut ours, mut http, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        let session = client.session();
        // Every other mode asks after its limit of model calls whether the turn is to continue.
        session.call("agent/session/configure", json!({ "mode": "bypassPermissions" }));
        let prompt = session.prompt("read them all");
        if turn == 0 {
            for round in &looks {
                let gate = format!("round-{round}");
                project.model.wait_until_held(&gate);
                memory.push((format!("before answer {round}"), client.proportional_set_size()));
                project.model.release(&gate);
            }
        }
        let done = session.wait_done(&prompt);
        assert_eq!(done["stopReason"], "end_turn", "{done}");
        let count = rounds + 1;
        let of_ours = gaps(&project, count);
        sizes = project
            .model
            .exchanges()
            .iter()
            .rev()
            .take(count)
            .map(|one| one["bytes"].as_u64().unwrap())
            .collect();
        sizes.reverse();
        let folder = project.workspace();
        let files =
            |round: usize| round.checked_sub(1).map(|file| file_of(&folder, file)).into_iter().collect();
        floor.run(project.model.base_url(), &bodies(project.model.last_request()), files);
        if turn > 0 {
            ours.push(of_ours);
            http.push(gaps(&project, count));
        }
    }
    report_rounds(&ours, &http, &sizes, rounds);
    println!("\nmemory (PSS)");
    for (when, bytes) in memory {
        figure(&when, bytes / MIB, " MiB", "");
    }
}

fn file_of(folder: &Path, number: usize) -> String {
    folder.join(format!("{number}.txt")).to_str().expect("paths of tests are text").to_owned()
}

fn report_rounds(ours: &[Vec<Duration>], http: &[Vec<Duration>], sizes: &[u64], rounds: usize) {
    heading(&format!("answer to next request in a turn of {rounds} rounds, {TURNS} turns"));
    let at = |turns: &[Vec<Duration>], range: &std::ops::Range<usize>| {
        Spread::of(turns.iter().flat_map(|turn| turn[range.clone()].iter().copied()).collect(), 1)
    };
    let mut over = Vec::new();
    for (end, range) in places(rounds) {
        let (http, ours) = (at(http, &range), at(ours, &range));
        let place = if range.len() == 1 {
            format!("round {end}")
        } else {
            format!("round {}–{end}", range.start + 1)
        };
        row(&format!("http, {place}"), &http, "");
        row(&format!("kode-ls, {place}"), &ours, "");
        figure("over http", (ours.median - http.median) * 1e3, " ms", "1 ms");
        figure("ratio", ours.median / http.median, "", "");
        figure("bytes of the request after it", sizes[end] as f64 / 1e3, " kB", "");
        over.push((end as f64, ours.median, http.median, sizes[end] as f64));
    }
    let ten = over.iter().find(|(end, ..)| *end >= 10.0).expect("there are as many rounds");
    let last = over.last().expect("there are rounds");
    println!("\ngrowth from round {} to {}", ten.0, last.0);
    let exponent = |from: f64, to: f64| (to / from).ln() / (last.0 / ten.0).ln();
    figure("exponent, kode-ls", exponent(ten.1, last.1), "", "");
    figure("exponent, http", exponent(ten.2, last.2), "", "");
    figure("exponent, bytes", exponent(ten.3, last.3), "", "1");
    figure("kode-ls over http: last by tenth", (last.1 / last.2) / (ten.1 / ten.2), "", "1.3");
    let added: Vec<u64> = sizes.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).collect();
    let (least, most) = (added.iter().min().expect("rounds"), added.iter().max().expect("rounds"));
    figure("bytes a round adds, least", *least as f64 / 1e3, " kB", "");
    figure("bytes a round adds, most", *most as f64 / 1e3, " kB", "");
}

/// A long text in many pieces, from the prompt to the end of the turn at the client.
fn long_text(floor: &Floor) {
    let text = PIECE.repeat(DELTAS);
    let script = Script::new([step().text(&text).chunk(PIECE.len())]);
    let project = Project::new(&script);
    let client = open(&project);
    client.session().run("talk");
    let last = project.model.last_request();
    let mut reported = 0;
    let [http, ours] = by_turns(
        1,
        RUNS / 8,
        [
            &mut || {
                let bodies = bodies(last.clone());
                let start = Instant::now();
                floor.run(project.model.base_url(), &bodies, |_| Vec::new());
                start.elapsed()
            },
            &mut || {
                let session = client.session();
                let start = Instant::now();
                session.run("talk");
                let time = start.elapsed();
                reported = session.events().len();
                time
            },
        ],
    );
    let (http, ours) = (Spread::of(http, 1), Spread::of(ours, 1));
    heading(&format!("{DELTAS} deltas of text, prompt to end, {} runs", RUNS / 8));
    row("http", &http, "");
    row("kode-ls", &ours, "");
    figure("ratio", ours.median / http.median, "", "1.5");
    figure("events told to the client", reported as f64, "", "");
}
