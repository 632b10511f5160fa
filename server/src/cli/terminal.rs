//! Text for a person at a terminal.
//!
//! Rule: text that came from a model, a tool or a file goes through [`crate::display`]; color only where a terminal
//! shows it.

use std::io::{self, IsTerminal, Write};

use kode_engine::permission::{PermissionPrompt, Preview, Scope};

use crate::display::{printable, prompt_lines, readable};

/// Writes a line to standard error. A closed standard error is nobody's loss.
pub(super) fn error_line(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Writes a question to standard error, without a line break behind it.
pub(super) fn question(text: &str) {
    let mut stderr = io::stderr().lock();
    drop(stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush()));
}

/// A terminal that does not show what is typed, until this is dropped.
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

    /// Does nothing: the console of this system shows what is typed.
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
/// What the system says, above all that nobody reads any more.
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

/// A unified diff, in color where standard error is a terminal.
pub(super) fn diff(unified: &str) -> String {
    let colored = if is_colored() { colored } else { str::to_owned };
    printable(unified).lines().map(|line| format!("  {}\n", colored(line))).collect()
}

fn is_colored() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
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

/// A permission prompt as text.
pub(super) fn prompt(prompt: &PermissionPrompt) -> String {
    let colored =
        if is_colored() && matches!(prompt.preview, Preview::Diff { .. }) { colored } else { str::to_owned };
    let lines: Vec<_> = prompt_lines(prompt).iter().map(|line| colored(line)).collect();
    format!("\n? {}", lines.join("\n  "))
}

/// The answers a prompt offers, as text.
pub(super) fn choices(prompt: &PermissionPrompt) -> String {
    let standing = [
        (Scope::Session, "[s] yes, and for this session"),
        (Scope::Project, "[p] always in this project"),
        (Scope::User, "[u] always everywhere"),
    ];
    let offered = standing.iter().filter_map(|(scope, choice)| {
        prompt.covers(*scope).map(|rules| format!("  {choice}: {}\n", printable(&rules)))
    });
    format!("{}  [y] yes  [n] no, or say why: ", offered.collect::<String>())
}
