//! What a command line would do, found out without running it.
//!
//! Rule: only what is understood through and through is called known; everything else is an unknown with its
//! reason, and an unknown never makes a call more permissive.

pub mod pattern;

pub use pattern::{BadPattern, CommandPattern};
