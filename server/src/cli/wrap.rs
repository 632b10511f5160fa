//! `kode-ls wrap`: another language server and the agent on one connection.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;

use crate::wrap;

/// The arguments of `kode-ls wrap`.
///
/// Options of the agent are under "kode-ls" in the `initializationOptions` of the editor; the server gets all others.
#[derive(Debug, Args)]
pub struct WrapArgs {
    /// The language server and its arguments
    #[arg(last = true, required = true, value_name = "SERVER")]
    command: Vec<OsString>,
}

/// Serves one editor on standard input and output until it leaves.
///
/// # Errors
/// When the process cannot serve.
pub fn run(args: WrapArgs) -> anyhow::Result<ExitCode> {
    wrap::main(args.command)
}
