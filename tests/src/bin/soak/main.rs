//! Works with the program for as long as it is reported to, and says whether it grows: sessions with typing, edits, commands,
//! prompts and decisions on one server that lives all the time; kills and reconnects on others beside it.
//!
//! Rule: one round does the same as every other, so that whatever grows was left behind. It fails when a figure grows
//! by more than it may, when a killed server leaves a process, and when anything is answered otherwise than it should be.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a soak fails by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its report is what it is for")]

mod round;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kode_e2e::system::{Usage, bytes_in};
use kode_e2e::trend::{Allowed, Trend, svg};
use kode_e2e::{Client, Project};

/// Minimum number of rounds, however short the time: fewer tell nothing.
const MIN_ROUNDS: usize = 24;

/// Each this many rounds, a server beside the steady one is killed in the middle of its work.
const KILL_EVERY: usize = 4;

/// After this many turns the long session makes room for another.
const LONG_TURNS: usize = 64;

const MIB: f64 = 1024.0 * 1024.0;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let minutes = arguments.next().map_or(Ok(60.0), |text| text.parse::<f64>());
    let (Ok(minutes), Some(plot)) = (minutes, arguments.next().map(PathBuf::from)) else {
        eprintln!("soak MINUTES PLOT.svg: works for so long and draws what it has seen");
        return ExitCode::from(2);
    };
    let seen = soak(Duration::from_secs_f64(minutes * 60.0));
    let trends = seen.trends();
    let title = format!("{} rounds, {} kills, {:.1} minutes", seen.rounds(), seen.kills, seen.minutes);
    println!("{title}: what one server uses after each round");
    for trend in &trends {
        println!("{}", trend.line());
    }
    std::fs::write(&plot, svg(&title, &trends)).expect("the plot can be written");
    println!("plot: {}", plot.display());
    if trends.iter().all(Trend::is_flat) {
        println!("flat: nothing grows");
        return ExitCode::SUCCESS;
    }
    println!("NOT flat: see the figures marked GROWS");
    ExitCode::FAILURE
}

/// The figures after each round.
#[derive(Default)]
struct Seen {
    usages: Vec<Usage>,
    /// The bytes that the long session's turn has written.
    written: Vec<f64>,
    kills: usize,
    minutes: f64,
}

fn soak(length: Duration) -> Seen {
    let project = Project::new(&round::script());
    let client = project.open();
    let mut seen = Seen::default();
    let mut long: Option<String> = None;
    let begin = Instant::now();
    while begin.elapsed() < length || seen.rounds() < MIN_ROUNDS {
        let number = seen.rounds();
        round::work(&client, &project, number);
        if number % LONG_TURNS == 0 {
            long.take().into_iter().for_each(|id| round::close(&client, &id));
        }
        let id = long.get_or_insert_with(|| client.session().id.clone());
        let before = bytes_in(&project.home().join("sessions"));
        round::talk(&client, id);
        seen.written.push((bytes_in(&project.home().join("sessions")) - before) as f64 / 1024.0);
        if number % KILL_EVERY == KILL_EVERY - 1 {
            round::kill_and_come_back(&project);
            seen.kills += 1;
        }
        client.forget();
        client.editor.forget();
        seen.take(&client);
    }
    seen.minutes = begin.elapsed().as_secs_f64() / 60.0;
    assert_eq!(client.shut_down(), 0, "the steady server ends as it should");
    seen
}

impl Seen {
    fn rounds(&self) -> usize {
        self.usages.len()
    }

    fn take(&mut self, client: &Client) {
        self.usages.push(Usage::of(client.process_id()));
    }

    fn trends(&self) -> Vec<Trend> {
        let trend = |name, allowed, value: fn(&Usage) -> f64| Trend {
            name,
            values: self.usages.iter().map(value).collect(),
            allowed,
        };
        vec![
            trend("memory (PSS), MiB", Allowed::Share(0.1, 2.0), |usage| usage.proportional as f64 / MIB),
            trend("memory (RSS), MiB", Allowed::Share(0.1, 2.0), |usage| usage.resident as f64 / MIB),
            trend("descriptors", Allowed::Absolute(2.0), |usage| usage.descriptors as f64),
            trend("processes started by it", Allowed::Absolute(0.5), |usage| usage.descendants as f64),
            trend("inotify watches", Allowed::Absolute(2.0), |usage| usage.watches as f64),
            trend("threads", Allowed::Absolute(8.0), |usage| usage.threads as f64),
            Trend {
                name: "journal, KiB for one turn",
                values: self.written.clone(),
                allowed: Allowed::Share(0.1, 1.0),
            },
        ]
    }
}
