//! `kode-ls sandbox`: runs one command in the sandbox that the agent's commands get.
//!
//! Rule: the command's output and exit code are passed on as they are; reports about the sandbox go to
//! standard error. Without a sandbox nothing is run.

#[cfg(any(target_os = "linux", target_os = "macos"))]
mod held;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use kode_engine::process::sandbox::{HostEntry, SandboxKind, detect};

use crate::cli::terminal;

/// The exit code when there is no sandbox for the command.
const EXIT_NO_SANDBOX: u8 = 125;

/// The arguments of `kode-ls sandbox`.
#[derive(Debug, Args)]
pub struct SandboxArgs {
    /// The sandbox for the command
    #[arg(long, value_enum, default_value_t)]
    kind: KindArg,
    /// Allow writes in this folder besides the current one; may be repeated
    #[arg(long, value_name = "FOLDER")]
    write: Vec<PathBuf>,
    /// Deny writes to this file or folder; may be repeated
    #[arg(long, value_name = "PATH")]
    read_only: Vec<PathBuf>,
    /// Hide this file or folder; may be repeated
    #[arg(long, value_name = "PATH")]
    hide: Vec<PathBuf>,
    /// Allow network access
    #[arg(long, conflicts_with = "allow_host")]
    network: bool,
    /// Allow this host over http and https, through a proxy; may be repeated. `*.example.com` matches its subdomains, `example.com:8080` another port
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<HostEntry>,
    /// Maximum number of processes at a time
    #[arg(long, value_name = "NUMBER")]
    max_processes: Option<u64>,
    /// Print the enforced limits
    #[arg(long)]
    verbose: bool,
    /// The command
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// The sandbox for the command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum KindArg {
    /// The strongest kind available
    #[default]
    Auto,
    /// Namespaces made by bubblewrap
    Bubblewrap,
    /// Landlock and seccomp alone, the weaker kind
    Landlock,
    /// The policies of macOS
    Seatbelt,
}

impl KindArg {
    fn choose(self) -> Result<SandboxKind, String> {
        match self {
            Self::Auto => detect().best(),
            Self::Bubblewrap => detect().bubblewrap(),
            Self::Landlock => detect().landlock_alone(),
            Self::Seatbelt => detect().seatbelt(),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// When its policy cannot be made; that there is no sandbox is exit code 125.
pub fn run(args: SandboxArgs) -> anyhow::Result<ExitCode> {
    let kind = match args.kind.choose() {
        Ok(kind) => kind,
        Err(reason) => {
            terminal::error_line(&format!(
                "kode-ls: nothing was run, because no sandbox is available here: {reason}"
            ));
            return Ok(ExitCode::from(EXIT_NO_SANDBOX));
        }
    };
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    return held::run(kind, &args);
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    anyhow::bail!("the sandbox {} is one of another system", kind.name())
}

/// Runs the helper on the arguments after its own.
#[must_use]
pub fn helper_main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    return kode_engine::process::sandbox::helper::main(arguments);
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        drop(arguments);
        ExitCode::from(EXIT_NO_SANDBOX)
    }
}
