//! A program and everything that it starts, as one thing that is waited for and ended.
//!
//! Rule: a process group on Unix, a job object on Windows. Dropping it kills all members that have not left it; a job
//! object cannot be left.

#[cfg(unix)]
#[path = "process_group/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "process_group/windows.rs"]
mod system;

pub(crate) use system::ProcessTree;
