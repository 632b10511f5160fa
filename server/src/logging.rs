//! Logs: to stderr and to files that rotate daily.
//!
//! Rule: stdout carries frames only; a log that cannot be written is reported once on stderr and stops nothing.
//! Log files are for the user's eyes only.

#![expect(
    clippy::disallowed_methods,
    reason = "it writes files of its own, or those that a call was allowed, and it reads variables of the process for its callers"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use tracing_appender::non_blocking::{NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use kode_engine::base::private;

use crate::home;

/// The log filter, in the syntax of `tracing`'s filters: a level, or levels by module.
pub const LEVEL_VARIABLE: &str = "KODE_LS_LOG";

/// Log files that are kept, one per day.
const KEPT_FILES: usize = 7;

/// Log lines that may wait to be written to the file; more are dropped there. Room for all of them is taken at
/// the start, and the library's own limit would cost half of the start-up time.
const BUFFERED_LINES: usize = 4_096;

/// Keeps logging alive; pending lines are written once this is dropped.
#[derive(Debug)]
#[must_use]
pub struct Guards {
    _file: Option<WorkerGuard>,
    _stderr: WorkerGuard,
}

/// Starts logging for the process, to stderr and, where one can be opened, to a file.
pub fn init() -> Guards {
    start(true)
}

/// The same for a process in a terminal: logs go to stderr only if [`LEVEL_VARIABLE`] is set.
pub fn init_for_people() -> Guards {
    start(std::env::var_os(LEVEL_VARIABLE).is_some())
}

fn start(logs_to_stderr: bool) -> Guards {
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::WARN.into())
        .with_env_var(LEVEL_VARIABLE)
        .from_env_lossy();
    let home = home::folder().map(PathBuf::from).map_err(io::Error::other);
    let (file, guard) = match home.and_then(|home| open_file(&home.join("log"))) {
        Ok((file, guard)) => (Some(file), Some(guard)),
        Err(error) => {
            // No output is left when stderr is closed as well.
            let _ = writeln!(io::stderr(), "kode-ls: no log file is written: {error}");
            (None, None)
        }
    };
    // An editor that does not read our stderr must not be able to stop us with a full pipe.
    let (stderr, stderr_guard) =
        NonBlockingBuilder::default().buffered_lines_limit(BUFFERED_LINES).finish(io::stderr());
    let subscriber = tracing_subscriber::registry()
        .with(filter)
        .with(logs_to_stderr.then(|| fmt::layer().with_ansi(false).with_writer(stderr)))
        .with(file.map(|file| fmt::layer().with_ansi(false).with_writer(file)));
    if subscriber.try_init().is_ok() {
        std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    }
    Guards { _file: guard, _stderr: stderr_guard }
}

fn open_file(folder: &Path) -> io::Result<(NonBlocking, WorkerGuard)> {
    private::create_folders(folder)?;
    let appender = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("kode-ls")
        .filename_suffix("log")
        .max_log_files(KEPT_FILES)
        .build(folder)
        .map_err(io::Error::other)?;
    hide_files(folder);
    Ok(NonBlockingBuilder::default().buffered_lines_limit(BUFFERED_LINES).finish(appender))
}

/// The appender opens files with the usual mode, those of later days too; the folder keeps others out of these.
fn hide_files(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if let Err(error) = private::restrict_file(&entry.path()) {
            tracing::warn!(path = %entry.path().display(), %error, "a log file can be read by others");
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_is_logged_is_written_and_for_the_user_alone() {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("state/log");
        let (mut file, guard) = open_file(&folder).unwrap();
        writeln!(file, "a line").unwrap();
        drop(guard);
        let files: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 1);
        assert_eq!(fs::read_to_string(&files[0]).unwrap(), "a line\n");
        assert_eq!((mode(&folder), mode(&files[0])), (0o700, 0o600));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_an_error() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("file"), "").unwrap();
        assert!(open_file(&home.path().join("file/log")).is_err());
    }
}
