//! The processes of this host: which exist, and which are above this one.
//!
//! Rule: an id says nothing about a process of another host. An editor that reaches this host over a connection sends the id
//! of a process of its own host, which can be that of any process here; only a process above this one can be the editor.

/// The most processes between this one and the editor.
#[cfg(unix)]
const MAX_ANCESTORS: usize = 32;

/// Whether a process can be the editor: on Linux if it is above this one, elsewhere if it exists.
pub(crate) fn is_editor(process: u32) -> bool {
    #[cfg(target_os = "linux")]
    return ancestors().contains(&process);
    #[cfg(not(target_os = "linux"))]
    process_exists(process)
}

#[cfg(unix)]
pub(crate) fn process_exists(id: u32) -> bool {
    let Some(process) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) else { return false };
    // A process of another user refuses the signal and exists.
    rustix::process::test_kill_process(process) != Err(rustix::io::Errno::SRCH)
}

#[cfg(not(unix))]
pub(crate) fn process_exists(id: u32) -> bool {
    use sysinfo::{Pid, ProcessRefreshKind, ProcessesToUpdate, System};
    let process = Pid::from_u32(id);
    let (only, nothing) = (ProcessesToUpdate::Some(&[process]), ProcessRefreshKind::nothing());
    let mut system = System::new();
    system.refresh_processes_specifics(only, true, nothing);
    system.process(process).is_some()
}

/// The process above this one.
#[cfg(unix)]
pub(crate) fn parent() -> Option<u32> {
    let parent = rustix::process::getppid()?;
    u32::try_from(parent.as_raw_nonzero().get()).ok()
}

/// The processes above this one, the nearest first.
#[cfg(unix)]
pub(crate) fn ancestors() -> Vec<u32> {
    let mut ancestors: Vec<u32> = parent().into_iter().collect();
    while let Some(above) = ancestors.last().and_then(|process| parent_of(*process)) {
        if above <= 1 || ancestors.contains(&above) || ancestors.len() >= MAX_ANCESTORS {
            break;
        }
        ancestors.push(above);
    }
    ancestors
}

/// The process above another; known where the system has `/proc`.
#[cfg(unix)]
fn parent_of(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name of the program comes before it, and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_processes_above_this_one_are_known() {
        let above = ancestors();
        assert_eq!(above.first().copied(), parent());
        assert!(!above.contains(&std::process::id()));
    }

    #[test]
    fn a_process_that_is_not_above_this_one_is_no_editor() {
        let mut other = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let is_found = is_editor(other.id());
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!((is_found, is_editor(i32::MAX.cast_unsigned())), (!cfg!(target_os = "linux"), false));
        assert!(is_editor(parent().unwrap()));
    }
}
