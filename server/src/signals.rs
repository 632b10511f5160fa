//! The signals that ask a process to end.
//!
//! Rule: they are requests, not ends: what runs is cancelled, its children are ended and the journal is synced
//! before the process goes.

use std::io;

/// Listens for the signals that ask for the end: interrupt, terminate, hang up. The last two only where there are
/// such.
pub(crate) struct EndSignals {
    #[cfg(unix)]
    streams: [tokio::signal::unix::Signal; 3],
}

impl EndSignals {
    /// Starts listening; from now on the signals do not end the process by themselves.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
            let [interrupt, terminate, hangup] = kinds.map(signal);
            Ok(Self { streams: [interrupt?, terminate?, hangup?] })
        }
        #[cfg(not(unix))]
        Ok(Self {})
    }

    /// Waits for the next of them.
    pub(crate) async fn next(&mut self) {
        #[cfg(unix)]
        {
            let [interrupt, terminate, hangup] = &mut self.streams;
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = hangup.recv() => {}
            }
        }
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
