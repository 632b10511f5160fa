//! Every seed, and what becomes of it when it is damaged in ways that are the same in each run.
//!
//! Rule: a target without seeds, and seeds without a target, fail the test.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kode_fuzz::TARGETS;

/// How many damaged copies of each seed are tried.
const COPIES: u64 = 64;

/// The most changes of one copy.
const CHANGES: usize = 6;

fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let files = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

/// A sequence that is as good as random and always the same.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end.max(1) as u64).unwrap()
    }

    /// Some places of `bytes` left out, repeated, overwritten, or filled with a part of `other`.
    fn damage(&mut self, bytes: &[u8], other: &[u8]) -> Vec<u8> {
        let mut damaged = bytes.to_vec();
        for _ in 0..=self.below(CHANGES) {
            let start = self.below(damaged.len() + 1);
            let end = (start + self.below(16)).min(damaged.len());
            match self.below(4) {
                0 => drop(damaged.drain(start..end)),
                1 => {
                    let again = damaged[start..end].to_vec();
                    damaged.splice(start..start, again);
                }
                2 => damaged[start..end].iter_mut().for_each(|byte| *byte ^= 1 << (self.below(8) as u8)),
                _ => {
                    let from = self.below(other.len() + 1);
                    let to = (from + self.below(64)).min(other.len());
                    damaged.splice(start..end, other[from..to].iter().copied());
                }
            }
        }
        damaged
    }
}

fn replay(target: &str) {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    let seeds = seeds(target);
    assert!(!seeds.is_empty(), "{target} has no seeds");
    for (number, (path, seed)) in seeds.iter().enumerate() {
        // Which seed it was is only of interest when it fails, and is captured by the test until then.
        println!("{}", path.display());
        run(seed);
        let mut sequence = Sequence(0x9e37_79b9_7f4a_7c15 ^ number as u64);
        for _ in 0..COPIES {
            let other = &seeds[sequence.below(seeds.len())].1;
            let damaged = sequence.damage(seed, other);
            println!("{:?}", String::from_utf8_lossy(&damaged));
            run(&damaged);
        }
    }
}

macro_rules! replays {
    ($($target:ident)*) => {
        $(
            #[test]
            fn $target() {
                replay(stringify!($target));
            }
        )*

        #[test]
        fn every_target_is_replayed_and_every_seed_has_a_target() {
            let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
            let replayed: BTreeSet<String> = [$(stringify!($target)),*].map(str::to_owned).into();
            assert_eq!(replayed, targets);
            let folders = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds")).unwrap();
            let folders = folders.map(|folder| folder.unwrap().file_name().into_string().unwrap());
            assert_eq!(folders.collect::<BTreeSet<String>>(), targets);
        }
    };
}

replays! { answers archive edits frames front_matter globs journal notebook patches positions rules shell sse sync }
