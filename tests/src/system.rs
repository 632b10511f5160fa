//! The metadata of a process and of those it has started: memory, descriptors, threads, watches.
//!
//! Rule: everything is read from `/proc`, but whether a process runs, which every system answers; a process that ends
//! meanwhile counts for nothing.

use std::fs;
use std::path::{Path, PathBuf};

/// A check of one process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Its memory, shared pages by their share, in bytes.
    pub proportional: u64,
    /// Its memory, shared pages in full, in bytes.
    pub resident: u64,
    /// Its open descriptors.
    pub descriptors: usize,
    /// Its threads.
    pub threads: usize,
    /// Its inotify watches.
    pub watches: usize,
    /// The processes it has started, and those these have started.
    pub descendants: usize,
}

impl Usage {
    /// The current usage of the process.
    #[must_use]
    pub fn of(process: u32) -> Self {
        let place = PathBuf::from(format!("/proc/{process}"));
        let entries = |name: &str| fs::read_dir(place.join(name)).map_or(0, Iterator::count);
        Self {
            proportional: kib(&place.join("smaps_rollup"), "Pss:") * 1024,
            resident: kib(&place.join("smaps_rollup"), "Rss:") * 1024,
            descriptors: entries("fd"),
            threads: entries("task"),
            watches: watches(&place),
            descendants: descendants(process),
        }
    }
}

/// The number of a line of a file of `/proc`; 0 if absent.
fn kib(file: &Path, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or_default()
}

fn watches(process: &Path) -> usize {
    let descriptors = fs::read_dir(process.join("fdinfo")).into_iter().flatten().flatten();
    let texts = descriptors.map(|descriptor| fs::read_to_string(descriptor.path()).unwrap_or_default());
    texts.map(|text| text.lines().filter(|line| line.starts_with("inotify ")).count()).sum()
}

fn descendants(process: u32) -> usize {
    let parents: Vec<(u32, u32)> =
        processes().filter_map(|process| Some((process, parent(process)?))).collect();
    let mut family = vec![process];
    let mut at = 0;
    while let Some(&one) = family.get(at) {
        family.extend(parents.iter().filter(|(_, parent)| *parent == one).map(|(child, _)| *child));
        at += 1;
    }
    family.len() - 1
}

/// The processes that work in a folder or below it.
#[must_use]
pub fn processes_in(folder: &Path) -> Vec<u32> {
    let works = |process: &u32| {
        fs::read_link(format!("/proc/{process}/cwd")).is_ok_and(|place| place.starts_with(folder))
    };
    processes().filter(works).collect()
}

/// Whether a process runs; a zombie does not.
#[cfg(target_os = "linux")]
#[must_use]
pub fn is_running(process: u32) -> bool {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    text.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
}

/// Whether a process runs; a zombie does not.
#[cfg(not(target_os = "linux"))]
#[must_use]
pub fn is_running(process: u32) -> bool {
    use sysinfo::{Pid, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System};
    let process = Pid::from_u32(process);
    let mut system = System::new();
    system.refresh_processes_specifics(
        ProcessesToUpdate::Some(&[process]),
        true,
        ProcessRefreshKind::nothing(),
    );
    system.process(process).is_some_and(|process| process.status() != ProcessStatus::Zombie)
}

fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn parent(process: u32) -> Option<u32> {
    // The name, in parentheses, may hold anything; what comes behind it are numbers.
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The memory of a process, shared pages by their share, in bytes.
///
/// # Panics
/// Where the system does not tell it.
#[must_use]
pub fn proportional_set_size(process: u32) -> f64 {
    let path = format!("/proc/{process}/smaps_rollup");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.unwrap_or_else(|| panic!("{path} names no Pss")) * 1024.0
}

/// The bytes of all files in a folder and below it.
#[must_use]
pub fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(facts) if facts.is_dir() => bytes_in(&entry.path()),
        Ok(facts) => facts.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}
