//! Limits that Linux has besides: the number of processes by control groups, also for root, and no capabilities.
//!
//! Rule: see the module above.

#![expect(
    clippy::disallowed_methods,
    reason = "it writes files of its own, or those that a call was allowed"
)]

use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

/// Where the number of processes can be limited for root too, whom `RLIMIT_NPROC` does not bind.
const PIDS_CONTROLLERS: [&str; 2] = ["/sys/fs/cgroup/pids", "/sys/fs/cgroup"];
/// This thread, where a process or thread id is wanted. Moving another one, or a whole process, waits for all
/// processors of the machine; moving oneself does not, and this process has one thread.
const ONESELF: &str = "0";
/// How the groups are called that are made there, before the process id.
const GROUP: &str = "kode-ls-";

/// Gives up all capabilities; with no new privileges they do not come back.
pub(in crate::sandbox::helper) fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// A control group that limits the number of processes, with this process in it until it is dropped.
#[derive(Debug)]
pub(in crate::sandbox::helper) struct ProcessGroup {
    folder: PathBuf,
    parent: PathBuf,
}

impl ProcessGroup {
    /// Makes one beneath that of this process, where that is allowed and needed. Without it `RLIMIT_NPROC` is all
    /// there is.
    pub(in crate::sandbox::helper) fn enter(processes: u64) -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let id = std::process::id().to_string();
        PIDS_CONTROLLERS.iter().find_map(|controller| {
            let parent = own_group(Path::new(controller))?;
            sweep(&parent);
            let folder = parent.join(format!("{GROUP}{id}"));
            fs::create_dir(&folder).ok()?;
            let limit = folder.join("pids.max");
            // Dropping the group undoes its setup so far.
            let group = Self { folder, parent };
            let limited = limit.exists() && fs::write(limit, processes.to_string()).is_ok();
            (limited && fs::write(members(&group.folder), ONESELF).is_ok()).then_some(group)
        })
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        // A thread that was never in it is moved to where it is.
        let left = fs::write(members(&self.parent), ONESELF);
        if let Err(error) = left.and_then(|()| fs::remove_dir(&self.folder)) {
            tracing::debug!(%error, folder = %self.folder.display(), "a control group is left; a later command sweeps it");
        }
    }
}

/// The file that a group is entered by: the one for threads where there is one.
fn members(group: &Path) -> PathBuf {
    let threads = group.join("tasks");
    if threads.exists() { threads } else { group.join("cgroup.procs") }
}

/// The group of this process below a controller's folder.
fn own_group(controller: &Path) -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let named = |line: &&str| {
        let names = line.split(':').nth(1).unwrap_or_default();
        if controller.ends_with("pids") {
            names.split(',').any(|name| name == "pids")
        } else {
            names.is_empty()
        }
    };
    let group = groups.lines().find(named)?.splitn(3, ':').nth(2)?.to_owned();
    let own = controller.join(group.trim_start_matches('/'));
    Some(own).filter(|own| own.is_dir())
}

/// Removes the groups of helpers that were killed. One that holds processes cannot be removed.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(id) = name.to_str().and_then(|name| name.strip_prefix(GROUP)) else { continue };
        if !Path::new("/proc").join(id).exists() {
            // Another helper may be quicker, or processes of it may be ending.
            let _ = fs::remove_dir(entry.path());
        }
    }
}
