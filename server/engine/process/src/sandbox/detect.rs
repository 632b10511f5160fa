//! Which sandboxes this machine offers, found out by trying.
//!
//! Rule: programs are taken from fixed folders of the system alone, never from `PATH`, which a workspace may have a say
//! in; a trial has a time limit, and its outcome is kept.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts programs that were found outside of writable folders"
)]

use std::io::Read;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use super::policy::{Network, SandboxKind};
use kode_base::paths::AbsPath;

/// Where bubblewrap may be.
const FOLDERS: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];
/// How long a trial may take.
const LIMIT: Duration = Duration::from_secs(5);
/// How long is waited between two checks it.
const PAUSE: Duration = Duration::from_micros(200);
/// How much of what a trial says is kept.
const MAX_SAID: u64 = 4096;
/// The oldest Landlock that can hold a command alone.
const LEAST_LANDLOCK: u32 = 3;

/// The support of this machine.
#[derive(Clone, Debug)]
pub struct SandboxSupport {
    /// Bubblewrap, or why it cannot be used.
    pub bubblewrap: Result<Bubblewrap, String>,
    /// The version of Landlock, if there is one; 6 represents all since.
    pub landlock: Option<u32>,
    /// Whether calls of the system can be filtered.
    pub seccomp: bool,
}

/// A bubblewrap that works.
#[derive(Clone, Debug)]
pub struct Bubblewrap {
    /// The program.
    pub program: AbsPath,
    /// Its version, as it prints it.
    pub version: String,
}

impl SandboxSupport {
    /// The best kind there is.
    ///
    /// # Errors
    /// The reason why no sandbox exists; every command asks then.
    pub fn best(&self) -> Result<SandboxKind, String> {
        self.bubblewrap().or_else(|bubblewrap| {
            self.landlock_alone().map_err(|landlock| format!("{bubblewrap}; {landlock}"))
        })
    }

    /// The kind made by bubblewrap.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn bubblewrap(&self) -> Result<SandboxKind, String> {
        if !self.seccomp {
            return Err("this machine has no filter for calls of the system".to_owned());
        }
        let bubblewrap = self.bubblewrap.as_ref().map_err(Clone::clone)?;
        Ok(SandboxKind::Bubblewrap { program: bubblewrap.program.clone() })
    }

    /// The weaker kind.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn landlock_alone(&self) -> Result<SandboxKind, String> {
        match self.landlock {
            None => Err("this kernel has no Landlock".to_owned()),
            Some(version) if version < LEAST_LANDLOCK => {
                Err(format!("this kernel's Landlock is version {version}; {LEAST_LANDLOCK} is needed"))
            }
            Some(_) if !self.seccomp => Err("this machine has no filter for calls of the system".to_owned()),
            Some(_) => Ok(SandboxKind::Landlock),
        }
    }
}

/// The kind that this machine offers. The first call tries it, which blocks for up to some seconds.
pub fn detect() -> &'static SandboxSupport {
    static SUPPORT: OnceLock<SandboxSupport> = OnceLock::new();
    SUPPORT.get_or_init(try_all)
}

#[cfg(target_os = "linux")]
fn try_all() -> SandboxSupport {
    use super::helper::{landlock, seccomp};

    SandboxSupport {
        bubblewrap: bubblewrap(),
        landlock: landlock::version(),
        seccomp: seccomp::is_supported(),
    }
}

#[cfg(not(target_os = "linux"))]
fn try_all() -> SandboxSupport {
    let bubblewrap = Err("there is a sandbox for commands on Linux only".to_owned());
    SandboxSupport { bubblewrap, landlock: None, seccomp: false }
}

#[cfg(target_os = "linux")]
fn bubblewrap() -> Result<Bubblewrap, String> {
    let program =
        FOLDERS.iter().map(|folder| Path::new(folder).join("bwrap")).find(|program| program.is_file());
    let program = program.ok_or("bubblewrap is not installed (the program `bwrap`)")?;
    let program = AbsPath::new(program).map_err(|error| error.to_string())?;
    let mut arguments = super::helper::namespaces(&Network::Off);
    arguments.extend(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--"]);
    arguments.extend([program.as_path().to_str().unwrap_or_default(), "--version"]);
    // Its content is itself again: so the trial reports the version as well.
    let version =
        said(&program, &arguments).map_err(|error| format!("bubblewrap does not work here: {error}"))?;
    let version = version.trim().trim_start_matches("bubblewrap ").to_owned();
    Ok(Bubblewrap { program, version })
}

/// The output of a program, if it ends well and in time.
#[cfg(target_os = "linux")]
fn said(program: &AbsPath, arguments: &[&str]) -> Result<String, String> {
    let output = limited(program, arguments).map_err(|error| error.to_string())?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).trim().to_owned();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr)) }
}

#[cfg(target_os = "linux")]
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
