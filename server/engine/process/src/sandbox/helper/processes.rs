//! The processes below this one; on Linux by what the kernel says in `/proc`.
//!
//! Rule: a process that is asked about may be gone already; that is never an error.

#[cfg(target_os = "linux")]
use std::fs;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

use futures::StreamExt;
use futures::stream::{SelectAll, unfold};
#[cfg(target_os = "linux")]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
#[cfg(target_os = "linux")]
use rustix::io::Errno;
#[cfg(any(target_os = "macos", test))]
use rustix::process::waitpid;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};
#[cfg(target_os = "linux")]
use rustix::process::{PidfdFlags, getpid, kill_process, pidfd_open, wait};
use tokio::signal::unix::{SignalKind, signal};

/// How long killing everything below may take.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_secs(1);
/// The longest pause between two looks.
#[cfg(target_os = "linux")]
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
/// The most children that are waited for at the same time.
#[cfg(target_os = "linux")]
const MAX_AWAITED: usize = 64;

/// Signals that are handed on to the command.
const FORWARDED: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];

/// Why waiting for a child is over.
#[derive(Clone, Copy, Debug)]
pub(super) enum WaitEnd {
    /// The child has ended.
    Ended(WaitStatus),
    /// The other awaited event has happened.
    Stopped,
}

/// How a child ended, if it has. Collects all that have ended: orphans come to this process.
#[cfg(target_os = "linux")]
pub(super) fn collect_all(child: Pid) -> Option<WaitStatus> {
    while let Ok(Some((id, status))) = wait(WaitOptions::NOHANG) {
        if id == child {
            return Some(status);
        }
    }
    None
}

/// How a child ended, if it has. Others are collected by their own parents.
#[cfg(any(target_os = "macos", test))]
pub(super) fn collect_child(child: Pid) -> Option<WaitStatus> {
    waitpid(Some(child), WaitOptions::NOHANG).ok().flatten().map(|(_, status)| status)
}

/// Waits for the end of a child, by `collect` whenever some child has ended, until `stop` is there. `on_signal` gets the
/// signals that ask this process to end, and after the first of them the child has `patience` left.
pub(super) fn supervise(
    start: impl FnOnce() -> io::Result<Pid>,
    mut on_signal: impl FnMut(Pid, Signal),
    collect: impl Fn(Pid) -> Option<WaitStatus>,
    patience: Duration,
    stop: impl Future<Output = ()>,
) -> io::Result<WaitEnd> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // Before the child is there, so that its end cannot be missed.
        let mut ended = signal(SignalKind::child())?;
        let mut signals = SelectAll::new();
        for forwarded in FORWARDED {
            let stream = signal(SignalKind::from_raw(forwarded.as_raw()))?;
            signals.push(Box::pin(unfold(stream, move |mut stream| async move {
                stream.recv().await.map(|()| (forwarded, stream))
            })));
        }
        let child = start()?;
        // It may have been started earlier.
        if let Some(status) = collect(child) {
            return Ok(WaitEnd::Ended(status));
        }
        let mut stop = pin!(stop);
        let mut late = pin!(tokio::time::sleep(Duration::MAX));
        let mut asked = false;
        loop {
            tokio::select! {
                _ = ended.recv() => {
                    if let Some(status) = collect(child) {
                        return Ok(WaitEnd::Ended(status));
                    }
                }
                Some(signal) = signals.next() => {
                    on_signal(child, signal);
                    if !asked {
                        asked = true;
                        late.set(tokio::time::sleep(patience));
                    }
                }
                () = &mut late => return Ok(WaitEnd::Stopped),
                () = &mut stop => return Ok(WaitEnd::Stopped),
            }
        }
    })
}

/// The children of a process, the oldest first.
#[cfg(target_os = "linux")]
pub(super) fn children(parent: Pid) -> Vec<Pid> {
    let id = parent.as_raw_nonzero();
    let text = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|id| Pid::from_raw(id.parse().ok()?)).collect()
}

/// Kills everything below this process but `except`, and collects it. This must be the process that orphans fall to.
///
/// A killed process leaves its children to this one, so that the next look finds them.
#[cfg(target_os = "linux")]
pub(super) fn kill_all_below(except: &[Pid]) {
    let own = getpid();
    let deadline = Instant::now() + PATIENCE;
    loop {
        let mut below = children(own);
        below.retain(|child| !except.contains(child));
        for child in &below {
            // Gone meanwhile is as good.
            let _ = kill_process(*child, Signal::KILL);
        }
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        if below.is_empty() || Instant::now() > deadline {
            return;
        }
        wait_for_any(&below);
    }
}

/// Waits until one of these children has ended, for [`PAUSE`] at most; not at all where one was collected before.
#[cfg(target_os = "linux")]
fn wait_for_any(children: &[Pid]) {
    let mut opened = Vec::with_capacity(children.len().min(MAX_AWAITED));
    for child in children.iter().take(MAX_AWAITED) {
        match pidfd_open(*child, PidfdFlags::empty()) {
            Ok(child) => opened.push(child),
            Err(Errno::SRCH) => return,
            Err(_) => {}
        }
    }
    let mut awaited: Vec<_> = opened.iter().map(|child| PollFd::new(child, PollFlags::IN)).collect();
    // Without descriptors, which old kernels do not have, it waits all that time. A signal ends it early, which is as good.
    let _ = poll(&mut awaited, Some(&PAUSE));
}

/// Waits until nothing is below this process but `except`, at most for `limit`.
#[cfg(target_os = "linux")]
pub(super) fn linger(except: &[Pid], limit: Duration) {
    let deadline = Instant::now() + limit;
    loop {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let mut left = children(getpid());
        left.retain(|child| !except.contains(child));
        if left.is_empty() || Instant::now() > deadline {
            return;
        }
        wait_for_any(&left);
    }
}
