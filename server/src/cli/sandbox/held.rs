//! One command in the sandbox of a system whose kernel holds it.
//!
//! Rule: see the module above. This process is the helper that sets the sandbox up.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use kode_engine::base::paths::AbsPath;
use kode_engine::process::sandbox::{
    GuardReport, HelperProgram, HelperReport, InputMode, Network, ResourceLimits, Sandbox, SandboxKind,
    SandboxOptions, SandboxPolicy, StartFailure,
};

use super::{EXIT_NO_SANDBOX, SandboxArgs};
use crate::cli::{terminal, working_directory};
use crate::display::printable;
use crate::home;

/// Runs the command in a sandbox of that kind.
///
/// # Errors
/// When its policy cannot be made.
pub(super) fn run(kind: SandboxKind, args: &SandboxArgs) -> anyhow::Result<ExitCode> {
    let sandbox = Sandbox::new(options(kind, args)?).context("no folder for temporary files")?;
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
    let (mut report, code) = kode_engine::process::sandbox::helper::run(&request, &args.command);
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
        helper: HelperProgram::beside(
            std::env::current_exe().context("the program does not know where it is")?,
        ),
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
        remote: None,
    })
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
        let filters = if enforced.seccomp { "on" } else { "off" };
        // Of Seatbelt neither is a part.
        let walls = match (enforced.kind == SandboxKind::Seatbelt.name(), &enforced.landlock) {
            (true, _) => String::new(),
            (false, landlock) => format!("landlock {landlock}, seccomp {filters}, "),
        };
        say(format!("held by {} ({walls}network {})", enforced.kind, enforced.network));
        enforced.weaker.iter().for_each(|reason| say(format!("weaker: {reason}")));
    }
}
