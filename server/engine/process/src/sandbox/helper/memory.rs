//! The memory limit of a command.
//!
//! Rule: no limit on addresses, because programs reserve far more than they use; the free memory of the machine decides.
//! When it runs out, the command ends, and neither the server nor the editor.

#![expect(
    clippy::disallowed_methods,
    reason = "it writes files of its own, or those that a call was allowed"
)]

use std::fs;
use std::time::Duration;

/// The kernel's memory figures.
const MEMORY: &str = "/proc/meminfo";
/// How willingly the kernel ends a process when it has no memory left.
const WILLINGNESS: &str = "/proc/self/oom_score_adj";
/// The most willing there is.
const FIRST: &str = "1000";
/// The share of the memory that is left to others, as a divisor.
const SHARE: u64 = 20;
/// How often it is read.
const INTERVAL: Duration = Duration::from_millis(100);

/// Has the kernel end this process, and all that it starts, before any other.
pub(super) fn end_first() {
    if let Err(error) = fs::write(WILLINGNESS, FIRST) {
        tracing::debug!(%error, "the kernel chooses by itself whom it ends when memory runs out");
    }
}

/// Waits until the machine has hardly any memory left.
pub(super) async fn is_exhausted() {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let text = fs::read_to_string(MEMORY).unwrap_or_default();
        if let (Some(all), Some(left)) = (kilobytes(&text, "MemTotal:"), kilobytes(&text, "MemAvailable:"))
            && left < all / SHARE
        {
            return;
        }
    }
}

fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::kilobytes;

    #[test]
    fn the_kernels_table_is_read() {
        let text = "MemTotal:       24000000 kB\nMemFree:   10 kB\nMemAvailable:     512 kB\n";
        assert_eq!(
            (kilobytes(text, "MemTotal:"), kilobytes(text, "MemAvailable:")),
            (Some(24_000_000), Some(512))
        );
        assert_eq!(kilobytes(text, "Swap:"), None);
    }
}
