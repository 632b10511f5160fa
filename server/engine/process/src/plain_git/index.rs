//! The submodules and files that a repository's index lists.
//!
//! Rule: an index that is not understood from its first entry to its last yields nothing, which is not the same as no
//! submodules.

use std::fs;
use std::path::{Component, Path, PathBuf};

use kode_base::paths;

/// A longer index is not checked, in bytes.
const MAX_INDEX: u64 = 64 * 1024 * 1024;
/// An entry's fields before its flags: times, places, mode, owners, size and name of the content.
const FIELDS: usize = 60;
/// Where the mode is among them.
const MODE: usize = 24;
/// The length of the name of the content that closes the file.
const CHECKSUM: usize = 20;

const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;
const LINK: u32 = 0o120_000;
const SUBMODULE: u32 = 0o160_000;

/// The folders of the submodules, as the index names them; none when there is no index. `None` when it is not
/// understood.
pub(super) fn submodules(path: &Path) -> Option<Vec<PathBuf>> {
    if !super::exists(path) {
        return Some(Vec::new());
    }
    let metadata = fs::metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > MAX_INDEX {
        return None;
    }
    let mut found = Vec::new();
    each_entry(&fs::read(path).ok()?, |mode, name| {
        match mode {
            FILE | PROGRAM | LINK => {}
            SUBMODULE => found.push(inside(name)?),
            _ => return None,
        }
        Some(())
    })?;
    Some(found)
}

/// The files that the index at a path lists, as paths in its worktree; none when there is no index, or it is not understood.
pub(super) fn files(path: &Path) -> Vec<PathBuf> {
    let is_small = fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() <= MAX_INDEX);
    let Some(bytes) = is_small.then(|| fs::read(path).ok()).flatten() else { return Vec::new() };
    let mut found = Vec::new();
    let understood = each_entry(&bytes, |_, name| {
        found.extend(inside(name));
        Some(())
    });
    if understood.is_none() {
        tracing::debug!(path = %path.display(), "an index of git is not understood");
    }
    found
}

/// Calls `take` with the mode and the name of each entry; `None` when it refuses one, and when the index is not understood.
fn each_entry(bytes: &[u8], mut take: impl FnMut(u32, &[u8]) -> Option<()>) -> Option<()> {
    let header = bytes.strip_prefix(b"DIRC")?;
    let (version, count) = (number(header, 0)?, number(header, 4)?);
    if !(2..=4).contains(&version) {
        return None;
    }
    let mut at = 12;
    let mut name = Vec::new();
    for _ in 0..count {
        let start = at;
        let mode = number(bytes, start + MODE)?;
        let extended = bytes.get(start + FIELDS)? & 0x40 != 0;
        at = start + FIELDS + if extended { 4 } else { 2 };
        let shared = if version == 4 { name.len().checked_sub(offset(bytes, &mut at)?)? } else { 0 };
        let rest = bytes.get(at..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        name.truncate(shared);
        name.extend_from_slice(&rest[..end]);
        at += end + 1;
        if version < 4 {
            // Entries are padded with one to eight zeros, so that their length can be divided by eight.
            at = start + (at - start).next_multiple_of(8);
        }
        take(mode, &name)?;
    }
    has_plain_extensions(bytes.get(at..)?).then_some(())
}

/// Whether no part behind the entries moves entries to another file.
fn has_plain_extensions(mut rest: &[u8]) -> bool {
    while rest.len() > CHECKSUM {
        let (Some(name), Some(length)) = (rest.get(..4), number(rest, 4)) else { return false };
        // Git ignores those with a capital first letter when it does not know them.
        if !name[0].is_ascii_uppercase() {
            return false;
        }
        let Some(after) = usize::try_from(length).ok().and_then(|length| rest.get(8..)?.get(length..)) else {
            return false;
        };
        rest = after;
    }
    rest.len() == CHECKSUM
}

fn inside(name: &[u8]) -> Option<PathBuf> {
    let path = paths::from_bytes(name)?;
    path.components().all(|part| matches!(part, Component::Normal(_))).then_some(path)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

/// A number of git's own varied length: each further byte adds one before it shifts.
fn offset(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut value = 0_usize;
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value = value.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
        value = value.checked_add(1)?;
    }
}
