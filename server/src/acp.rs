//! `kode-ls acp`: the agent for clients of the Agent Client Protocol, one JSON message a line on standard input and output.
//!
//! Rule: the protocol is a front end like plain LSP and the command line: engine, loop and gate are the same, and nothing
//! here decides what may run. Standard output carries messages alone.

mod agent;
mod commands;
mod config;
mod content;
mod diff;
mod dispatch;
mod error;
mod follow;
mod host;
mod initialize;
mod lines;
mod mode;
mod peer;
mod permission;
mod prompts;
mod question;
mod requests;
mod servers;
mod session;
mod sessions;
mod tool_call;
mod updates;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use crate::lifecycle::Lifecycle;
use crate::signals::EndSignals;
use crate::{logging, transport};

pub(crate) use agent::LaunchOptions;

/// The work of the process's own tasks is short; more threads would only cost start-up time.
const WORKER_THREADS: usize = 2;

/// Serves one client on standard input and output until it leaves.
///
/// # Errors
/// When the runtime cannot start, or a standard stream cannot be opened.
pub(crate) fn main(options: LaunchOptions) -> anyhow::Result<ExitCode> {
    let _log = logging::init();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .context("the runtime cannot start")?;
    let ended = runtime.block_on(async {
        let lifecycle = Arc::new(Lifecycle::default());
        end_on_signal(&lifecycle);
        let (input, output) = transport::stdio::open()?;
        dispatch::serve(input, output, options, lifecycle).await;
        std::io::Result::Ok(())
    });
    // A read of standard input that is under way cannot be cancelled and must not keep the process alive.
    runtime.shutdown_timeout(Duration::ZERO);
    ended.context("standard input and output cannot be opened")?;
    Ok(ExitCode::SUCCESS)
}

/// Ends the process in order when the system asks for it.
fn end_on_signal(lifecycle: &Arc<Lifecycle>) {
    match EndSignals::listen() {
        Ok(mut signals) => {
            let lifecycle = Arc::clone(lifecycle);
            tokio::spawn(async move {
                signals.next().await;
                lifecycle.stop();
            });
        }
        Err(error) => tracing::warn!(%error, "signals end this process at once"),
    }
}
