//! The parsers of foreign bytes, each with its invariants.
//!
//! Rule: a target takes any bytes, ends, and panics only when something does not hold. The seeds in `seeds/` are written
//! by hand; `tests/replay.rs` runs them all, `tests/fuzz/run` lets libFuzzer continue from them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a target tells what it found by panicking")]

mod input;
mod targets;

use targets::{
    answers, archive, edits, frames, front_matter, globs, journal, notebook, patches, positions, rules,
    shell, sse, sync,
};

/// A target: its name, and its function of bytes.
pub type Target = (&'static str, fn(&[u8]));

/// All there are.
pub const TARGETS: [Target; 14] = [
    ("answers", answers::run),
    ("archive", archive::run),
    ("edits", edits::run),
    ("frames", frames::run),
    ("front_matter", front_matter::run),
    ("globs", globs::run),
    ("journal", journal::run),
    ("notebook", notebook::run),
    ("patches", patches::run),
    ("positions", positions::run),
    ("rules", rules::run),
    ("shell", shell::run),
    ("sse", sse::run),
    ("sync", sync::run),
];
