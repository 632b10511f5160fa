//! Text for the user's terminal, and lines from it.
//!
//! Rule: text from a model, a tool or a file goes through [`crate::display`]. Input that was typed before a question appeared
//! does not answer it.

#![expect(clippy::disallowed_methods, reason = "variables decide about colors")]

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::OnceLock;
use std::time::Duration;

use clap::ValueEnum;
use kode_engine::permission::{PermissionPrompt, Preview};

use crate::answers::choices;
use crate::display::{Parts, parts, printable, readable};

/// The size of a terminal that reports none.
const SIZE: (usize, usize) = (80, 24);

/// The interval at which a canceled question is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// When output is colored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// In a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

static COLOR: OnceLock<Color> = OnceLock::new();

impl Color {
    /// Applies to the rest of the process. The first call wins.
    pub(super) fn set(self) {
        COLOR.get_or_init(|| self);
    }
}

/// Writes a line to standard error. A closed standard error is no error.
pub(super) fn error_line(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Writes a question to standard error, without a line break behind it.
pub(super) fn question(text: &str) {
    let mut stderr = io::stderr().lock();
    drop(stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()));
}

/// A terminal that does not show the typed text, until this is dropped.
#[derive(Debug)]
pub(super) struct EchoGuard {
    #[cfg(unix)]
    before: Option<rustix::termios::Termios>,
}

impl EchoGuard {
    /// Turns the echo of standard input off, where it is a terminal.
    #[cfg(unix)]
    pub(super) fn begin() -> Self {
        use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut quiet) = before.clone() {
            quiet.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &quiet);
        }
        Self { before }
    }

    /// Does nothing: the console of this system shows the typed text.
    #[cfg(not(unix))]
    pub(super) fn begin() -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for EchoGuard {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let now = rustix::termios::OptionalActions::Now;
            let _ = rustix::termios::tcsetattr(io::stdin(), now, before);
        }
    }
}

/// Writes to standard output.
///
/// # Errors
/// The system's error, mostly that the reader is gone.
pub(super) fn output(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// Writes the model's answer to standard output: to a terminal without what could steer it, else as it is.
///
/// # Errors
/// As [`output`].
pub(super) fn answer(text: &str) -> io::Result<()> {
    let text = if io::stdout().is_terminal() { readable(text) } else { text.to_owned() };
    output(&format!("{text}\n"))
}

/// Whether a person can be asked: both ends are a terminal.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a yes-or-no question. Anything but a yes is a no.
///
/// # Errors
/// When the terminal fails.
pub(super) fn agrees(question: &str) -> io::Result<bool> {
    forget_typed();
    let mut stderr = io::stderr().lock();
    write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush())?;
    drop(stderr);
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim(), "y" | "Y" | "yes"))
}

/// Reads a line; `None` at the end of the input, or once it is not wanted any more. Blocks.
pub(super) fn line(question: &str, is_wanted: impl Fn() -> bool) -> Option<String> {
    forget_typed();
    let mut stderr = io::stderr().lock();
    drop(write!(stderr, "{question}").and_then(|()| stderr.flush()));
    drop(stderr);
    while is_wanted() {
        if !has_line(LOOK) {
            continue;
        }
        // Input that comes with the end of the question is for the next one.
        if !is_wanted() {
            break;
        }
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line).unwrap_or(0);
        return (read > 0).then(|| line.trim().to_owned());
    }
    None
}

/// Discards unread input.
fn forget_typed() {
    #[cfg(unix)]
    if io::stdin().is_terminal() {
        let flushed = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
        if let Err(error) = flushed {
            tracing::debug!(%error, "unread input could not be discarded");
        }
    }
}

/// Waits for input, for at most `limit`.
fn has_line(limit: Duration) -> bool {
    #[cfg(unix)]
    {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let limit = Timespec { tv_sec: 0, tv_nsec: i64::from(limit.subsec_nanos()) };
        let stdin = io::stdin();
        let mut wanted = [PollFd::new(&stdin, PollFlags::IN)];
        // After a signal the caller polls again.
        !matches!(poll(&mut wanted, Some(&limit)), Ok(0) | Err(rustix::io::Errno::INTR))
    }
    #[cfg(not(unix))]
    {
        let _ = limit;
        true
    }
}

/// Columns and rows of the terminal that standard error is.
pub(super) fn size() -> (usize, usize) {
    #[cfg(unix)]
    if let Ok(size) = rustix::termios::tcgetwinsize(io::stderr())
        && size.ws_col > 0
        && size.ws_row > 0
    {
        return (usize::from(size.ws_col), usize::from(size.ws_row));
    }
    SIZE
}

/// A unified diff, in color where standard error is a terminal.
pub(super) fn diff(unified: &str) -> String {
    let colored = if is_colored() { colored } else { str::to_owned };
    printable(unified).lines().map(|line| format!("  {}\n", colored(line))).collect()
}

/// Dim text, where standard error has colors.
pub(super) fn dim(text: &str) -> String {
    if is_colored() { format!("\u{1b}[2m{text}\u{1b}[0m") } else { text.to_owned() }
}

fn is_colored() -> bool {
    match COLOR.get().copied().unwrap_or_default() {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let is_off = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            io::stderr().is_terminal() && !is_off
        }
    }
}

fn colored(line: &str) -> String {
    let code = match line.as_bytes().first() {
        Some(b'+') => 32,
        Some(b'-') => 31,
        Some(b'@') => 36,
        _ => return line.to_owned(),
    };
    format!("\u{1b}[{code}m{line}\u{1b}[0m")
}

/// A permission prompt as text. Unless it `is_whole`, its middle is cut to fit the screen.
pub(super) fn prompt(prompt: &PermissionPrompt, is_whole: bool) -> String {
    let is_diff = matches!(prompt.preview, Preview::Diff { .. });
    let color: fn(&str) -> String = if is_diff && is_colored() { colored } else { str::to_owned };
    let Parts { head, body, foot } = parts(prompt);
    let answers: Vec<String> = choices(prompt)
        .iter()
        .enumerate()
        .map(|(at, choice)| format!("{}  {}", at + 1, choice.text()))
        .collect();
    let (columns, rows) = size();
    let width = columns.saturating_sub(2).max(1);
    let height = |lines: &[String]| {
        lines.iter().map(|line| line.chars().count().div_ceil(width).max(1)).sum::<usize>()
    };
    // The empty line above, and the input line below.
    let room = rows.saturating_sub(height(&head) + height(&foot) + height(&answers) + 2);
    let shown = if is_whole { body.len() } else { fitting(&body, width, room) };
    let mut lines = head;
    lines.extend(body.iter().take(shown).map(|line| color(line)));
    if let Some(left_out) = body.len().checked_sub(shown).filter(|left_out| *left_out > 0) {
        lines.push(dim(&format!("… {left_out} more lines (d shows all)")));
    }
    lines.extend(foot.iter().map(|line| dim(line)));
    lines.extend(answers);
    format!("\n? {}", lines.join("\n  "))
}

/// The number of lines that fit into `rows`, with a row for the line that reports a cut.
fn fitting(lines: &[String], width: usize, rows: usize) -> usize {
    let mut used = 0;
    let mut shown = 0;
    for line in lines {
        used += line.chars().count().div_ceil(width).max(1);
        if used > rows {
            break;
        }
        shown += 1;
    }
    // Show at least one line on the smallest screen.
    if shown < lines.len() { shown.saturating_sub(1).max(1) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_leaves_a_row_for_the_line_that_reports_it() {
        let lines: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        assert_eq!(fitting(&lines, 80, 10), 10);
        assert_eq!(fitting(&lines, 80, 9), 8);
        assert_eq!(fitting(&lines, 80, 0), 1);
        let wide = vec!["x".repeat(200), "y".to_owned()];
        assert_eq!(fitting(&wide, 80, 4), 2);
        assert_eq!(fitting(&wide, 80, 3), 1);
    }
}
