//! `kode-ls sandbox`: runs one command in the sandbox that the agent's commands get.
//!
//! Rule: the command's output and exit code are passed on as they are; reports about the sandbox go to
//! standard error. Without a sandbox nothing is run.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueEnum};
use kode_engine::base::paths::AbsPath;
use kode_engine::process::sandbox::policy::HelperRequest;
use kode_engine::process::sandbox::{
    GuardReport, HelperReport, HostEntry, InputMode, Network, ResourceLimits, Sandbox, SandboxKind,
    SandboxOptions, SandboxPolicy, StartFailure, detect,
};

use crate::cli::{terminal, working_directory};
use crate::display::printable;
use crate::home;

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
}

impl KindArg {
    fn choose(self) -> Result<SandboxKind, String> {
        match self {
            Self::Auto => detect().best(),
            Self::Bubblewrap => detect().bubblewrap(),
            Self::Landlock => detect().landlock_alone(),
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
    let sandbox = Sandbox::new(options(kind, &args)?).context("no folder for temporary files")?;
    let policy = SandboxPolicy { input: InputMode::Rest, ..sandbox.policy().clone() };
    // It needs a thread of its own: the helper is this process here.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let requested = {
        let _inside = runtime.enter();
        sandbox.request(policy, true)
    };
    let (request, lease) = match requested {
        Ok(requested) => requested,
        Err(error) => {
            terminal::error_line(&format!(
                "kode-ls: the command was not run: {}",
                printable(&error.to_string())
            ));
            return Ok(ExitCode::from(EXIT_NO_SANDBOX));
        }
    };
    let (mut report, code) = helper(request, &args.command);
    let left = lease.end(&report.guarded.restored);
    report.guarded = report.guarded.and(left);
    runtime.shutdown_background();
    print_report(&report, args.verbose);
    Ok(code)
}

fn options(kind: SandboxKind, args: &SandboxArgs) -> anyhow::Result<SandboxOptions> {
    let cwd = working_directory(None)?;
    let absolute = |paths: &[PathBuf]| paths.iter().map(|path| cwd.join(path)).collect::<Vec<_>>();
    let mut writable = vec![cwd.clone()];
    writable.extend(absolute(&args.write));
    let home = etcetera::home_dir().ok().and_then(|home| AbsPath::new(home).ok());
    Ok(SandboxOptions {
        helper: std::env::current_exe().context("the program does not know where it is")?,
        kind,
        writable,
        read_only: absolute(&args.read_only),
        scripts: Vec::new(),
        hidden: absolute(&args.hide),
        hides: None,
        home,
        state: home::folder()?,
        network: match (args.network, args.allow_host.is_empty()) {
            (true, _) => Network::On,
            (false, true) => Network::Off,
            (false, false) => {
                Network::Allowed { hosts: args.allow_host.clone(), denied: Vec::new(), local: false }
            }
        },
        limits: ResourceLimits {
            processes: args.max_processes.unwrap_or(ResourceLimits::default().processes),
            ..ResourceLimits::default()
        },
    })
}

#[cfg(target_os = "linux")]
fn helper(request: HelperRequest, command: &[OsString]) -> (HelperReport, ExitCode) {
    kode_engine::process::sandbox::helper::run(&request, command)
}

#[cfg(not(target_os = "linux"))]
fn helper(_request: HelperRequest, _command: &[OsString]) -> (HelperReport, ExitCode) {
    // No kind is ever chosen where there is no helper.
    (HelperReport::default(), ExitCode::from(EXIT_NO_SANDBOX))
}

/// Runs the helper on the arguments after its own.
#[must_use]
pub fn helper_main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    #[cfg(target_os = "linux")]
    return kode_engine::process::sandbox::helper::main(arguments);
    #[cfg(not(target_os = "linux"))]
    {
        drop(arguments);
        ExitCode::from(EXIT_NO_SANDBOX)
    }
}

fn print_report(report: &HelperReport, verbose: bool) {
    let say = |text: String| terminal::error_line(&format!("kode-ls: {}", printable(&text)));
    match &report.failure {
        Some(StartFailure::Sandbox(reason)) => say(format!("the command was not run: {reason}")),
        Some(StartFailure::NotFound(reason) | StartFailure::NotStarted(reason)) => say(reason.clone()),
        None => {}
    }
    let GuardReport { set_aside, restored, changed } = &report.guarded;
    for file in set_aside {
        let (path, kept) = (file.path.display(), file.kept.display());
        say(format!("it made {path}, which {} obeys; it was set aside: {kept}", file.obeyed_by));
        if file.is_complete {
            say(format!("to keep it: mv '{kept}' '{path}'"));
        }
    }
    for restored in restored {
        let aside = restored.set_aside.as_ref();
        let aside = aside.map(|kept| format!("; what it had put there is in {}", kept.display()));
        say(format!(
            "it changed {}, which was put back{}",
            restored.path.display(),
            aside.unwrap_or_default()
        ));
    }
    for (path, reason) in changed {
        say(format!("it changed {}, which could not be put back: {reason}", path.display()));
    }
    if let (true, Some(enforced)) = (verbose, &report.enforced) {
        say(format!(
            "held by {} (landlock {}, seccomp {}, network {})",
            enforced.kind,
            enforced.landlock,
            if enforced.seccomp { "on" } else { "off" },
            enforced.network
        ));
        enforced.weaker.iter().for_each(|reason| say(format!("weaker: {reason}")));
    }
}
