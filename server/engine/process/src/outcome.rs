//! How a command ended, and what it put out.
//!
//! Rule: plain data.

use std::process::ExitStatus;

use kode_base::paths::AbsPath;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this exit code.
    Code(i32),
    /// By a signal that did not come from us.
    Signal(i32),
    /// Stopped because it took longer than allowed.
    TimedOut,
    /// Stopped because the call was cancelled.
    Cancelled,
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match status.code() {
            Some(code) => Self::Code(code),
            None => Self::Signal(signal(status)),
        }
    }
}

/// The signal that ended a program.
#[cfg(unix)]
fn signal(status: ExitStatus) -> i32 {
    std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or_default()
}

/// Where every program ends with a code there is no signal.
#[cfg(not(unix))]
fn signal(_status: ExitStatus) -> i32 {
    0
}

/// The output of a command, standard output and standard error in the order they arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The text; where the middle is missing, a marker line says how much.
    pub text: String,
    /// How many characters are missing from the middle.
    pub cut: usize,
    /// Where the whole of it is, if it is kept.
    pub file: Option<OutputFile>,
}

impl CapturedOutput {
    /// Whether a line is the one that says how much is missing.
    #[must_use]
    pub fn is_marker(&self, line: &str) -> bool {
        self.cut > 0 && line == marker(self.cut).trim()
    }
}

pub(crate) fn marker(cut: usize) -> String {
    format!("\n[... {cut} characters of output cut here ...]\n")
}

/// Where a command's output is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFile {
    /// The file.
    pub path: AbsPath,
    /// Why not all of the output is in it; nothing when it is.
    pub missing: Option<String>,
}
