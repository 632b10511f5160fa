//! The `PATH` of the user's login shell, for a server that was started without one: an editor that is opened from the Dock of
//! macOS has the folders of the system alone, and finds neither Homebrew nor the tool chains at home.
//!
//! Rule: the shell is asked once, at the start and before anything else runs, in the user's home, with a bound on time and
//! output. A `PATH` that already holds more is left as it is. Variables of a process cannot be changed safely while it runs, so
//! the program becomes itself again with the new one.

#![expect(
    clippy::disallowed_methods,
    reason = "it starts the user's own shell and this same program, and reads variables of the process"
)]

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// The folders that macOS gives to programs that no shell has started.
const OF_SYSTEM: [&str; 4] = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];
/// The shell of users who have chosen none.
const SHELL: &str = "/bin/zsh";
/// The line before and behind the answer: start files of shells print as well.
const MARK: &str = "--- kode-ls: the PATH ---";
/// How long the shell may take.
const LIMIT: Duration = Duration::from_secs(2);
/// How much of its output is read, in bytes.
const MAX_OUTPUT: u64 = 256 * 1024;
/// Set once the shell was asked, so that the program does not begin again for ever.
const ASKED: &str = "KODE_LS_LOGIN_PATH";

/// Becomes this same program with the `PATH` of the login shell, where this one has the folders of the system alone. It has to be
/// called before any thread is started. Returns where there is nothing to change.
///
/// # Errors
/// Why the program could not be started again; it keeps the `PATH` it has.
pub fn adopt() -> io::Result<()> {
    if std::env::var_os(ASKED).is_some() {
        return Ok(());
    }
    let current = std::env::var_os("PATH").unwrap_or_default();
    let shell = std::env::var_os("SHELL").map(PathBuf::from).filter(|shell| shell.is_absolute());
    let shell = shell.unwrap_or_else(|| PathBuf::from(SHELL));
    let home = std::env::home_dir().filter(|home| home.is_dir());
    let Some(path) = wider(&current, || ask(&shell, home.as_deref(), LIMIT)) else { return Ok(()) };
    let mut again = Command::new(std::env::current_exe()?);
    Err(again.args(std::env::args_os().skip(1)).env("PATH", path).env(ASKED, "1").exec())
}

/// The `PATH` to use instead of the current one, by the answer of a shell that is asked where that is needed.
fn wider(current: &OsStr, ask: impl FnOnce() -> io::Result<OsString>) -> Option<OsString> {
    let current: Vec<PathBuf> = std::env::split_paths(current).collect();
    let is_of_system = |folder: &PathBuf| OF_SYSTEM.iter().any(|known| folder == Path::new(known));
    if !current.iter().all(is_of_system) {
        return None;
    }
    // Without an answer the PATH stays as it is; there is no log yet for the reason.
    let answer = ask().ok()?;
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in std::env::split_paths(&answer).chain(current) {
        // A relative folder would be one of the workspace.
        if folder.is_absolute() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    if folders.iter().all(is_of_system) { None } else { std::env::join_paths(folders).ok() }
}

/// The `PATH` that a login shell gives to its programs.
fn ask(shell: &Path, home: Option<&Path>, limit: Duration) -> io::Result<OsString> {
    // A program prints it: shells differ in how they write a list.
    let script = format!("echo '{MARK}'; /usr/bin/printenv PATH; echo '{MARK}'");
    let mut command = Command::new(shell);
    // Tool chains are often added by the file for shells that people type in.
    command.args(["-l", "-i", "-c", &script]).current_dir(home.unwrap_or(Path::new("/")));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut asked = AskedShell(command.spawn()?);
    let output = asked.0.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = output.take(MAX_OUTPUT).read_to_end(&mut bytes).map(|_| bytes);
        // The caller may have given up.
        let _ = sender.send(read);
    });
    let bytes = receiver.recv_timeout(limit).map_err(|error| match error {
        RecvTimeoutError::Timeout => io::ErrorKind::TimedOut,
        RecvTimeoutError::Disconnected => io::ErrorKind::BrokenPipe,
    })??;
    let answer = between_marks(&bytes).ok_or(io::ErrorKind::InvalidData)?;
    Ok(OsString::from_vec(answer.to_vec()))
}

/// A shell that was asked. Dropping it ends it with all that it has started.
struct AskedShell(Child);

impl Drop for AskedShell {
    fn drop(&mut self) {
        // Gone already is as good.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// The one line between the marks.
fn between_marks(output: &[u8]) -> Option<&[u8]> {
    let mut lines = output.split(|byte| *byte == b'\n').skip_while(|line| *line != MARK.as_bytes());
    let (_, answer, end) = (lines.next()?, lines.next()?, lines.next()?);
    (end == MARK.as_bytes() && !answer.is_empty()).then_some(answer)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const BARE: &str = "/usr/bin:/bin:/usr/sbin:/sbin";

    /// A shell that is given `-l -i -c SCRIPT`; the script is `$4`. It has far more time than it takes.
    fn answer(lines: &str) -> (io::Result<OsString>, tempfile::TempDir) {
        answer_within(lines, Duration::from_secs(60))
    }

    fn answer_within(lines: &str, limit: Duration) -> (io::Result<OsString>, tempfile::TempDir) {
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let shell = folder.path().join("shell");
        fs::write(&shell, format!("#!/bin/sh\n{lines}\n")).unwrap();
        fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
        (ask(&shell, Some(folder.path()), limit), folder)
    }

    #[test]
    fn the_path_of_the_shell_is_found_among_what_its_start_files_print() {
        let lines = "echo Welcome; echo \"$PATH\"; PATH=/opt/homebrew/bin:/o\\ dd/bin exec /bin/sh -c \"$4\"";
        assert_eq!(answer(lines).0.unwrap(), "/opt/homebrew/bin:/o dd/bin");
        let (found, folder) = answer("pwd > here; echo \"$1 $2 $3\" > how; exec /bin/sh -c \"$4\"");
        found.unwrap();
        let here = fs::read_to_string(folder.path().join("here")).unwrap();
        assert_eq!(Path::new(here.trim()), folder.path(), "it runs at home, not in a workspace");
        assert_eq!(fs::read_to_string(folder.path().join("how")).unwrap(), "-l -i -c\n");
    }

    #[test]
    fn a_shell_that_answers_badly_or_never_is_given_up_with_all_that_it_started() {
        for lines in [
            "exit 1",
            "echo /opt/bin",
            "unset PATH; exec /bin/sh -c 'unset PATH; eval \"$1\"' sh \"$4\"",
            "echo '--- kode-ls: the PATH ---'; echo /a; echo /b",
            "echo '--- kode-ls: the PATH ---'; echo /a",
            "exec yes",
        ] {
            assert!(answer(lines).0.is_err(), "{lines}");
        }
        let mut limit = Duration::from_millis(100);
        let child = loop {
            let (refused, folder) = answer_within("sleep 600 & echo $! > child; wait", limit);
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::TimedOut);
            let child = fs::read_to_string(folder.path().join("child")).unwrap_or_default();
            if child.ends_with('\n') {
                break child;
            }
            // A busy machine has not come to it.
            limit *= 2;
            assert!(limit < Duration::from_secs(30), "the shell does not run at home");
        };
        let stat = format!("/proc/{}/stat", child.trim());
        let is_over = || {
            let stat = fs::read_to_string(&stat).unwrap_or_default();
            stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with(['Z', 'X']))
        };
        while !is_over() {
            thread::yield_now();
        }
        assert!(ask(Path::new("/no/such/shell"), None, LIMIT).is_err());
    }

    #[test]
    fn only_a_path_of_the_system_alone_is_widened() {
        let asked = |current: &str, answer: &str| wider(OsStr::new(current), || Ok(answer.into()));
        let path = asked(BARE, "/opt/homebrew/bin:bin:.::/usr/bin:/Users/ada/.cargo/bin");
        let expected = "/opt/homebrew/bin:/usr/bin:/Users/ada/.cargo/bin:/bin:/usr/sbin:/sbin";
        assert_eq!(path, Some(expected.into()), "no relative folder, none twice, and those of before");
        assert_eq!(asked("/bin:/usr/bin", "/opt/bin"), Some("/opt/bin:/bin:/usr/bin".into()));
        assert_eq!(asked(BARE, BARE), None);
        assert_eq!(wider(OsStr::new(BARE), || Err(io::ErrorKind::TimedOut.into())), None);
        let more = format!("/opt/homebrew/bin:{BARE}");
        assert_eq!(wider(OsStr::new(&more), || panic!("it is not asked")), None);
    }
}
