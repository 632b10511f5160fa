//! Acknowledged data survives: a scripted run over a journal and its blobs is made to fail at every single call to
//! the disk, in every way, and then read back.
//!
//! Rule: an acknowledged record is one that was appended before a sync that succeeded, and a blob one whose `put` has
//! succeeded or that a sync has covered since.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::{self, Disk};
use super::disks::faults::{Fault, Faulty, Plan};
use super::disks::memory::Memory;
use super::testing::{Note, note};
use super::{BlobId, Blobs, Journal, read_on};

/// How often a power cut at the same call is tried with another outcome.
const POWER_CUTS: u64 = 6;

fn remark(number: usize) -> Note {
    // Of many lengths, so that lines begin and end all over the blocks.
    note(&format!("{number} {}", "x".repeat(number * 7 % 90)))
}

fn journal_path() -> PathBuf {
    PathBuf::from("/state/sessions/w/s/journal.jsonl")
}

/// The promises of a run.
#[derive(Debug, Default)]
struct Promise {
    /// How many records were submitted.
    appended: usize,
    /// How many of them are safe.
    safe: usize,
    /// Blobs that are safe.
    blobs: Vec<BlobId>,
    /// Blobs that were submitted and refused so far.
    refused: Vec<BlobId>,
    /// Whether a journal was closed while records waited: what came after them may have continued without them.
    is_gapped: bool,
}

struct Run {
    disk: Arc<dyn Disk>,
    promise: Promise,
}

impl Run {
    async fn session(&mut self, rounds: usize) {
        let blobs = Blobs::on(Arc::clone(&self.disk), journal_path().with_file_name("blobs"));
        let Ok(journal) = Journal::open_on(Arc::clone(&self.disk), &journal_path(), Some(blobs.clone()))
        else {
            return;
        };
        for round in 0..rounds {
            self.append(&journal);
            self.append(&journal);
            self.sync(&journal).await;
            let bytes = format!("{round} {}", "content ".repeat(round + self.promise.appended));
            let id = BlobId::of(bytes.as_bytes());
            match blobs.put(bytes.as_bytes()) {
                Ok(_) => self.promise.blobs.push(id),
                Err(error) => {
                    journal.note_failure_of("copies of changed files", &error);
                    self.promise.refused.push(id);
                }
            }
            self.append(&journal);
            self.sync(&journal).await;
            self.append(&journal);
        }
        self.sync(&journal).await;
        self.promise.is_gapped |= journal.release().is_some();
    }

    fn append(&mut self, journal: &Journal) {
        // Kept or refused for now: whether it is safe, a sync says.
        drop(journal.append(&remark(self.promise.appended)));
        self.promise.appended += 1;
    }

    async fn sync(&mut self, journal: &Journal) {
        if journal.sync().await.is_ok() {
            if !self.promise.is_gapped {
                self.promise.safe = self.promise.appended;
            }
            self.promise.blobs.append(&mut self.promise.refused);
        }
    }
}

/// Two processes, one after the other, on a disk that fails by plan.
async fn run(memory: &Memory, plan: Option<Plan>) -> (Promise, u64) {
    let disk = Faulty::new(Arc::new(memory.clone()), plan);
    let mut run = Run { disk: Arc::new(disk.clone()), promise: Promise::default() };
    run.session(2).await;
    memory.end_process();
    run.session(1).await;
    (run.promise, disk.calls())
}

/// Reads back and continues.
async fn check(memory: &Memory, promise: &Promise, may_tear: bool, what: &str) {
    memory.end_process();
    let disk: Arc<dyn Disk> = Arc::new(memory.clone());
    let blobs = Blobs::on(Arc::clone(&disk), journal_path().with_file_name("blobs"));
    let journal = Journal::open_on(Arc::clone(&disk), &journal_path(), Some(blobs.clone())).unwrap();
    journal.append(&Note::Mark).unwrap();
    journal.sync().await.unwrap();
    let read = read_on(&*disk, &journal_path()).unwrap();
    let (last, before) = read.records.split_last().unwrap();
    assert_eq!(*last, Note::Mark, "{what}");
    assert!(may_tear || read.skipped == 0, "{what}: {} lines are damaged", read.skipped);
    let numbers: Vec<usize> = before
        .iter()
        .map(|record| {
            let Note::Text { text } = record else { panic!("{what}: {record:?}") };
            let number = text.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(*record, remark(number), "{what}");
            number
        })
        .collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{what}: {numbers:?}");
    let whole = numbers.iter().zip(0..).take_while(|(number, at)| *number == at).count();
    assert!(whole >= promise.safe, "{what}: {promise:?}, and there is {numbers:?}");
    for blob in &promise.blobs {
        assert!(blobs.get(blob).is_ok(), "{what}: {blob} is lost");
    }
}

/// The same run, failing at each call in turn.
async fn at_every_call(fault: Fault, for_ever: bool, power_cuts: &[u64]) {
    for at in 1.. {
        let seeds: Vec<Option<u64>> = match power_cuts {
            [] => vec![None],
            seeds => seeds.iter().copied().map(Some).collect(),
        };
        let mut is_over = false;
        for seed in seeds {
            let memory = Memory::with_folder(Path::new("/state"));
            let (promise, calls) = run(&memory, Some(Plan { fault, at, for_ever })).await;
            if let Some(seed) = seed {
                memory.cut_power(seed.wrapping_add(at * 1_000));
            }
            let what = format!("{fault:?} at call {at}, for ever: {for_ever}, power cut: {seed:?}");
            check(&memory, &promise, seed.is_some(), &what).await;
            is_over = calls < at;
            if is_over {
                assert_eq!(promise.safe, 14 - 2, "{what}: the run is not what it was");
            }
        }
        if is_over {
            assert!(at > 60, "there were only {at} calls");
            return;
        }
    }
}

const FAULTS: [Fault; 4] = [Fault::NoSpace, Fault::Io, Fault::Interrupted, Fault::ShortWrite];

#[tokio::test]
async fn a_call_that_fails_once_costs_nothing() {
    for fault in FAULTS {
        at_every_call(fault, false, &[]).await;
    }
}

#[tokio::test]
async fn a_disk_that_fails_for_ever_costs_nothing_that_was_acknowledged() {
    for fault in FAULTS {
        at_every_call(fault, true, &[]).await;
    }
}

#[tokio::test]
async fn a_process_that_ends_between_any_two_calls_costs_nothing_that_was_acknowledged() {
    at_every_call(Fault::Crash, true, &[]).await;
}

#[tokio::test]
async fn a_power_cut_between_any_two_calls_costs_nothing_that_was_acknowledged() {
    let seeds: Vec<u64> = (1..=POWER_CUTS).collect();
    at_every_call(Fault::Crash, true, &seeds).await;
    // And one after a disk that failed before.
    for fault in [Fault::NoSpace, Fault::Io] {
        at_every_call(fault, false, &seeds[..2]).await;
        at_every_call(fault, true, &seeds[..2]).await;
    }
}

#[tokio::test]
async fn a_file_that_is_written_atomically_is_the_old_or_the_new_one() {
    let (folder, path) = (Path::new("/state"), Path::new("/state/summary.json"));
    for at in 1.. {
        for seed in 0..POWER_CUTS {
            let memory = Memory::with_folder(folder);
            disk::write_atomically_on(&memory, path, &[b"the old one"]).unwrap();
            let plan = Plan { fault: Fault::Crash, at, for_ever: true };
            let disk = Faulty::new(Arc::new(memory.clone()), Some(plan));
            let written =
                disk::write_atomically_on(&disk, path, &[b"another, longer than ", b"a block of the disk"]);
            memory.cut_power(at * 1_000 + seed);
            let left = memory.bytes(path).unwrap();
            let is_new = left == b"another, longer than a block of the disk";
            assert!(is_new || left == b"the old one" && written.is_err(), "at {at}: {left:?}");
            if disk.calls() < at {
                return;
            }
        }
    }
}
