//! Trials of programs that set sandboxes up: short, alone, without input, and with a bound on time and output.
//!
//! Rule: a trial inherits no variable, and its words are kept to be shown.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders"
)]

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a trial may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How long is waited between two checks of it.
const PAUSE: Duration = Duration::from_micros(200);
/// How many bytes of its words are kept.
const MAX_SAID: u64 = 4096;

/// The output of a program, if it ends well and in time.
///
/// # Errors
/// Its own words about its failure, or why it did not run to its end.
pub(super) fn said(program: &Path, arguments: &[impl AsRef<OsStr>]) -> Result<String, String> {
    let output = limited(program, arguments).map_err(|error| error.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
    match (output.status.success(), text(output.stderr)) {
        (true, _) => Ok(text(output.stdout)),
        (false, said) if said.is_empty() => Err(output.status.to_string()),
        (false, said) => Err(said),
    }
}

fn limited(program: &Path, arguments: &[impl AsRef<OsStr>]) -> io::Result<Output> {
    let mut command = Command::new(program);
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
            return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {LIMIT:?}")));
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
