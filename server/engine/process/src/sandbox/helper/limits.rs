//! The limits of a command: limits of its processes on every system, and on Linux a limit on their number and no capabilities.
//!
//! Rule: limits are only ever lowered.

#[cfg(target_os = "linux")]
mod linux;

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::sandbox::ResourceLimits;

#[cfg(target_os = "linux")]
pub(super) use linux::{ProcessGroup, drop_capabilities};

/// The most files that the system lets a process have open; a higher limit is an error.
const OPEN_FILES: u64 = if cfg!(target_os = "macos") { 10_240 } else { 1 << 20 };

/// Lowers the limits of this process and all it will start.
pub(super) fn lower(limits: &ResourceLimits) -> io::Result<()> {
    for (resource, wanted) in [
        (Resource::Core, 0),
        (Resource::Nofile, limits.open_files.min(OPEN_FILES)),
        (Resource::Fsize, limits.file_size),
        (Resource::Nproc, limits.processes),
    ] {
        let now = getrlimit(resource);
        let lower = |now: Option<u64>| Some(now.map_or(wanted, |now| now.min(wanted)));
        setrlimit(resource, Rlimit { current: lower(now.current), maximum: lower(now.maximum) })?;
    }
    Ok(())
}
