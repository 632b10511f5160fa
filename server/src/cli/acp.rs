//! `kode-ls acp`: the agent for clients of the Agent Client Protocol.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use kode_engine::base::mode::Mode;

use crate::acp::{self, LaunchOptions};
use crate::cli::{ModelArgs, setup};

/// The arguments of `kode-ls acp`.
#[derive(Debug, Args)]
pub struct AcpArgs {
    #[command(subcommand)]
    action: Option<AcpAction>,

    /// Permission mode of new sessions [default: from the settings]
    #[arg(long, value_name = "MODE", value_parser = super::run::parse_mode)]
    mode: Option<Mode>,

    #[command(flatten)]
    model: ModelArgs,
}

#[derive(Debug, Subcommand)]
enum AcpAction {
    /// Choose a provider, enter a key, test it, and save a profile; clients run it in a terminal
    Setup(setup::SetupArgs),
}

/// Serves one client on standard input and output, or sets up a model.
///
/// # Errors
/// When the process cannot serve, or the setup fails.
pub fn run(args: AcpArgs) -> anyhow::Result<ExitCode> {
    match args.action {
        Some(AcpAction::Setup(setup)) => super::block_on(setup::run(setup)),
        None => {
            let model = args.model;
            acp::main(LaunchOptions {
                models: Box::new(move |policies| model.models(policies)),
                mode: args.mode,
            })
        }
    }
}
