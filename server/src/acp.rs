//! `kode-ls acp`: the agent for clients of the Agent Client Protocol, one JSON message a line on standard input and output.
//!
//! Rule: the protocol is a front end like plain LSP and the command line: engine, loop and gate are the same, and nothing
//! here decides what may run. Standard output carries messages alone.

mod agent;
mod aside;
mod commands;
mod config;
mod content;
mod diff;
mod dispatch;
mod error;
mod follow;
mod host;
#[cfg(unix)]
mod hunks;
mod initialize;
mod kode;
mod mode;
#[cfg(unix)]
mod paired;
mod permission;
mod prompts;
mod question;
mod requests;
mod servers;
mod session;
mod sessions;
mod terminal;
mod tool_call;
mod updates;

use std::process::ExitCode;
use std::sync::Arc;

use crate::lifecycle::Lifecycle;
use crate::{runtime, transport};

pub(crate) use agent::LaunchOptions;

/// Serves one client on standard input and output until it leaves.
///
/// # Errors
/// When the runtime cannot start, or a standard stream cannot be opened.
pub(crate) fn main(options: LaunchOptions) -> anyhow::Result<ExitCode> {
    runtime::run(async {
        let lifecycle = Arc::new(Lifecycle::default());
        runtime::end_on_signal(&lifecycle);
        let (input, output) = transport::stdio::open()?;
        dispatch::serve(input, output, options, lifecycle).await;
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}
