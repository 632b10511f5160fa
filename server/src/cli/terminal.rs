//! Text for a person at a terminal.
//!
//! Rule: text that came from a model, a tool or a file is shown with its control and invisible characters escaped:
//! it must not be able to paint over what the user is asked.

use std::io::{self, IsTerminal, Write};

use kode_engine::permission::{PermissionPrompt, Preview, Scope};

/// Writes a line to standard error. A closed standard error is nobody's loss.
pub(super) fn error_line(text: &str) {
    drop(writeln!(io::stderr().lock(), "{text}"));
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

/// Whether a person can be asked: both ends are a terminal.
pub(super) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Makes text safe to show: control, format and invisible characters are escaped; line ends and tabs stay.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .map(|char| if is_hidden(char) { char.escape_unicode().to_string() } else { char.to_string() })
        .collect()
}

fn is_hidden(char: char) -> bool {
    if matches!(char, '\n' | '\t') {
        return false;
    }
    char.is_control()
        || matches!(char,
            '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}' | '\u{e000}'..='\u{f8ff}' | '\u{e0000}'..='\u{10ffff}')
}

/// A unified diff, in color where standard error is a terminal.
pub(super) fn diff(unified: &str) -> String {
    let color = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    printable(unified)
        .lines()
        .map(|line| {
            let code = match line.as_bytes().first() {
                _ if !color => None,
                Some(b'+') => Some(32),
                Some(b'-') => Some(31),
                Some(b'@') => Some(36),
                _ => None,
            };
            match code {
                Some(code) => format!("  \u{1b}[{code}m{line}\u{1b}[0m\n"),
                None => format!("  {line}\n"),
            }
        })
        .collect()
}

/// A permission prompt as text.
pub(super) fn prompt(prompt: &PermissionPrompt) -> String {
    let mut text = format!("\n? {}\n  {}\n", printable(&prompt.title), printable(&prompt.reason));
    match &prompt.preview {
        Preview::Command { command, cwd } => {
            text.push_str(&format!("  in {}\n", printable(cwd)));
            for line in printable(command).lines() {
                text.push_str(&format!("  $ {line}\n"));
            }
        }
        Preview::Diff { unified, .. } => text.push_str(&diff(unified)),
        Preview::Paths { paths } => {
            for path in paths {
                text.push_str(&format!("  {}\n", printable(path)));
            }
        }
    }
    for risk in &prompt.risks {
        text.push_str(&format!("  ! {}\n", printable(risk)));
    }
    text
}

/// The answers a prompt offers, as text.
pub(super) fn choices(prompt: &PermissionPrompt) -> String {
    match (&prompt.rule, prompt.scopes.contains(&Scope::Session)) {
        (Some(rule), true) => {
            format!("  [y] yes  [s] yes, and for this session: {}  [n] no, or say why: ", printable(rule))
        }
        _ => "  [y] yes  [n] no, or say why: ".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_paint_over_a_prompt_is_escaped() {
        assert_eq!(printable("rm -rf x\r\u{1b}[2K ls"), "rm -rf x\\u{d}\\u{1b}[2K ls");
        assert_eq!(printable("a\u{202e}b\u{200b}c"), "a\\u{202e}b\\u{200b}c");
        assert_eq!(printable("Grüße, 世界 🙂\n\tok"), "Grüße, 世界 🙂\n\tok");
    }
}
