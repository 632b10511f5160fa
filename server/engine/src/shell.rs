//! SKELETON (header stays)
//! Processes: the only place that spawns one.
//!
//! Rule: a command runs in a process group of its own with no standard input, its output is bounded, and when it
//! ends, is cancelled or takes too long the whole group is gone before the result is given.

use crate::paths::AbsPath;

/// Where a session's commands run.
pub struct Shell {}

impl Shell {
    /// A shell whose commands start in `cwd`.
    pub fn new(cwd: AbsPath) -> Self {
        let _ = cwd;
        Self {}
    }
}
