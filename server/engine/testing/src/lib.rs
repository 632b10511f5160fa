//! Test rigs that more than one crate of the engine uses: an editor in memory, a web server, disks that fail, and what
//! providers refuse.
//!
//! Rule: a dev-dependency only. The crates whose own tests need a rig include its file, because a crate under test and
//! the same crate as a dependency are two crates.

#![expect(clippy::unwrap_used, reason = "a rig that cannot be built fails its test")]

pub mod disk;
pub mod folding;
pub mod text;
pub mod validity;
pub mod web;
