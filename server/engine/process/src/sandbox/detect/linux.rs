//! Trials of the sandboxes of Linux.
//!
//! Rule: see the module above.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders"
)]

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{Bubblewrap, SandboxSupport};
use crate::sandbox::helper::{landlock, namespaces, seccomp};
use crate::sandbox::policy::Network;
use kode_base::paths::AbsPath;

/// Where bubblewrap may be.
const FOLDERS: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];
/// How long a trial may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How long is waited between two checks of it.
const PAUSE: Duration = Duration::from_micros(200);
/// How much of what a trial says is kept.
const MAX_SAID: u64 = 4096;

pub(super) fn try_all() -> SandboxSupport {
    SandboxSupport {
        bubblewrap: bubblewrap(),
        landlock: landlock::version(),
        seccomp: seccomp::is_supported(),
    }
}

fn bubblewrap() -> Result<Bubblewrap, String> {
    let program =
        FOLDERS.iter().map(|folder| Path::new(folder).join("bwrap")).find(|program| program.is_file());
    let program = program.ok_or("bubblewrap is not installed (the program `bwrap`)")?;
    let program = AbsPath::new(program).map_err(|error| error.to_string())?;
    let mut arguments = namespaces(&Network::Off);
    arguments.extend(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--"]);
    arguments.extend([program.as_path().to_str().unwrap_or_default(), "--version"]);
    // Its content is itself again: so the trial reports the version as well.
    let version =
        said(&program, &arguments).map_err(|error| format!("bubblewrap does not work here: {error}"))?;
    let version = version.trim().trim_start_matches("bubblewrap ").to_owned();
    Ok(Bubblewrap { program, version })
}

/// The output of a program, if it ends well and in time.
fn said(program: &AbsPath, arguments: &[&str]) -> Result<String, String> {
    let output = limited(program, arguments).map_err(|error| error.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

fn limited(program: &AbsPath, arguments: &[&str]) -> std::io::Result<Output> {
    let mut command = Command::new(program.as_path());
    command.args(arguments).env_clear().current_dir("/").stdin(Stdio::null());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let deadline = Instant::now() + LIMIT;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            return Err(std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                format!("no answer within {LIMIT:?}"),
            ));
        }
        thread::sleep(PAUSE);
    };
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    if let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) {
        out.take(MAX_SAID).read_to_end(&mut stdout)?;
        err.take(MAX_SAID).read_to_end(&mut stderr)?;
    }
    Ok(Output { status, stdout, stderr })
}
