//! Processes of the program under test.
//!
//! Rule: a process gets an environment of its own, without the keys and settings of the user who runs the tests, and a
//! process group of its own; dropping the handle ends that group and nothing else.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::{LIMIT, binary};

/// Names the log level of the program under test, and has its log printed by the test.
pub(crate) const LOG_VARIABLE: &str = "KODE_E2E_LOG";

/// A home folder that is not there.
const NO_HOME: &str = if cfg!(windows) { "C:\\nonexistent" } else { "/nonexistent" };

/// Settings of the surroundings that no test may depend on.
const REMOVED: [&str; 21] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_MODEL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_MODEL",
    "KODE_LS_HOME",
    "KODE_LS_LOG",
    "KODE_LS_CONFIG_DIR",
    "KODE_CONFIG_DIR",
    "CLAUDE_CONFIG_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
];

/// A started program.
#[derive(Debug)]
pub struct Process {
    child: Child,
    ended: Option<ExitStatus>,
}

/// The result of a program that ran to its end.
#[derive(Debug)]
pub struct Output {
    /// The exit code; a signal's number plus 128 when a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Process {
    /// Starts `kode-ls` with pipes on all three streams.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(arguments: &[&str], cwd: Option<&Path>, environment: &[(&str, &str)]) -> Self {
        Self::start_program(&binary(), arguments, cwd, environment)
    }

    /// Starts another program in the same manner.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start_program(
        program: &Path,
        arguments: &[&str],
        cwd: Option<&Path>,
        environment: &[(&str, &str)],
    ) -> Self {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if let Some(cwd) = cwd {
            command.current_dir(cwd);
        }
        for name in REMOVED {
            command.env_remove(name);
        }
        if let Some(level) = std::env::var_os(LOG_VARIABLE) {
            command.env("KODE_LS_LOG", level);
        }
        // No user's settings count here; a test that wants some says where they are.
        command.env("HOME", NO_HOME).envs(environment.iter().copied());
        if cfg!(windows) {
            // The system's own name of it.
            let home = environment.iter().rev().find(|(name, _)| *name == "HOME");
            command.env("USERPROFILE", home.map_or(NO_HOME, |(_, home)| home));
        }
        group::lead(&mut command);
        let child = command.spawn().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self { child, ended: None }
    }

    /// The child process, for its streams.
    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Kills the process at once, as a crash would.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            // Fails only when the process has ended by itself.
            let _ = self.child.kill();
            self.ended = self.child.wait().ok();
        }
    }

    /// Waits for the end of the process and gives its exit code.
    ///
    /// # Panics
    /// When it does not end within [`LIMIT`].
    pub fn wait(&mut self, what: &str) -> i32 {
        if let Some(status) = self.ended {
            return code(status);
        }
        let pid = self.child.id();
        let (done, ended) = mpsc::channel::<()>();
        // `wait` has no limit of its own: a watcher kills the group when the limit is over.
        let watcher = thread::spawn(move || {
            let late = ended.recv_timeout(LIMIT).is_err_and(|error| error == mpsc::RecvTimeoutError::Timeout);
            if late {
                group::kill(pid);
            }
            late
        });
        let status = self.child.wait().expect("a child can be waited for");
        drop(done);
        self.ended = Some(status);
        assert!(!watcher.join().expect("the watcher does not panic"), "{what}: did not end within {LIMIT:?}");
        code(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            group::kill(self.child.id());
            let _ = self.child.wait();
        }
    }
}

/// Runs `kode-ls` to its end with `input` on standard input.
///
/// # Panics
/// When it does not end within [`LIMIT`].
#[must_use]
pub fn run(arguments: &[&str], cwd: Option<&Path>, environment: &[(&str, &str)], input: &str) -> Output {
    run_program(&binary(), arguments, cwd, environment, input)
}

/// As [`run`], for another program.
///
/// # Panics
/// When it does not end within [`LIMIT`].
#[must_use]
pub fn run_program(
    program: &Path,
    arguments: &[&str],
    cwd: Option<&Path>,
    environment: &[(&str, &str)],
    input: &str,
) -> Output {
    let mut process = Process::start_program(program, arguments, cwd, environment);
    let child = process.child();
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let input = input.to_owned();
    thread::spawn(move || {
        // A program that does not read its input closes it.
        let _ = stdin.write_all(input.as_bytes());
    });
    let stdout = in_background(move || read_all(stdout.expect("stdout is a pipe")));
    let stderr = in_background(move || read_all(stderr.expect("stderr is a pipe")));
    let name = format!("{} {}", program.display(), arguments.join(" "));
    let code = process.wait(&name);
    // A process that the program started may hold its output open.
    let read = |stream: mpsc::Receiver<String>| {
        stream.recv_timeout(LIMIT).unwrap_or_else(|error| panic!("{name}: its output has no end: {error}"))
    };
    Output { code, stdout: read(stdout), stderr: read(stderr) }
}

/// Has another thread read, so that the one who waits for it can have a limit.
pub(crate) fn in_background<T: Send + 'static>(
    read: impl FnOnce() -> T + Send + 'static,
) -> mpsc::Receiver<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // The reader is gone after the limit.
        let _ = sender.send(read());
    });
    receiver
}

fn read_all(mut stream: impl Read) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("a pipe can be read");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(unix)]
fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;

    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

#[cfg(windows)]
fn code(status: ExitStatus) -> i32 {
    status.code().expect("a process that has ended has a code")
}

#[cfg(unix)]
mod group {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use rustix::process::{Pid, Signal, kill_process_group};

    /// Has the process lead a group of its own.
    pub(super) fn lead(command: &mut Command) {
        command.process_group(0);
    }

    /// Kills the group; fails only when it has ended by itself.
    pub(super) fn kill(leader: u32) {
        let _ = Pid::from_raw(leader.cast_signed()).map(|leader| kill_process_group(leader, Signal::KILL));
    }
}

#[cfg(windows)]
mod group {
    use std::process::{Command, Stdio};

    /// Processes need no group here: the system's own program finds those that a process started.
    pub(super) fn lead(_: &mut Command) {}

    /// Kills the process and those that it started; fails only when it has ended by itself.
    pub(super) fn kill(leader: u32) {
        // The program of wine refuses `/T` and ends nothing then, and a wait for the process would have no end.
        let _ = end(&["/T"], leader) || end(&[], leader);
    }

    fn end(options: &[&str], process: u32) -> bool {
        let mut command = Command::new("taskkill");
        command.arg("/F").args(options).args(["/PID", &process.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}
