//! Text from models, tools and files made fit for people's eyes.
//!
//! Rule: everything that is shown in a prompt goes through here; what could paint over it or hide in it is escaped,
//! and a text that is cut shows both ends.

use std::fmt::Write as _;

use kode_engine::base::question::{Inquiry, Question};
use kode_engine::permission::{PermissionPrompt, Preview};
use kode_engine::record::event::ModelRetry;

/// Makes text safe to show: control, format and invisible characters are escaped; line ends and tabs stay.
#[must_use]
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        if is_hidden(char) { safe.extend(char.escape_unicode()) } else { safe.push(char) }
    }
    safe
}

/// Makes prose safe to show: control characters and those that turn the direction of writing are escaped; joiners
/// and variants, without which emoji and some scripts fall apart, stay.
#[must_use]
pub fn readable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        let steers = char.is_control() && !matches!(char, '\n' | '\t')
            || matches!(char, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if steers { safe.extend(char.escape_unicode()) } else { safe.push(char) }
    }
    safe
}

/// JSON in which no character steers a terminal: those are written as escapes, which a reader of JSON takes for the same text.
#[must_use]
pub fn json_text(json: &str) -> String {
    let mut safe = String::with_capacity(json.len());
    for char in json.chars() {
        if is_hidden(char) {
            let mut units = [0; 2];
            for unit in char.encode_utf16(&mut units) {
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(char);
        }
    }
    safe
}

/// Cuts text to about `limit` characters, the middle left out and the cut named.
#[must_use]
pub fn both_ends(text: &str, limit: usize) -> String {
    let count = text.chars().count();
    if count <= limit {
        return text.to_owned();
    }
    let (head, tail) = (limit * 2 / 3, limit / 3);
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{start}\n… {} characters left out …\n{end}", count - head - tail)
}

/// A permission prompt in three parts, line by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The title and the risks.
    pub head: Vec<String>,
    /// Exactly what will happen.
    pub body: Vec<String>,
    /// The reason and the limits.
    pub foot: Vec<String>,
}

/// A permission prompt in the order in which it is read.
#[must_use]
pub fn parts(prompt: &PermissionPrompt) -> Parts {
    let mut head = vec![prompt.title.clone()];
    head.extend(prompt.risks.iter().map(|risk| format!("! {risk}")));
    let mut body = Vec::new();
    match &prompt.preview {
        Preview::Command { command, cwd, sandboxed: _ } => {
            body.push(format!("In {cwd}:"));
            body.extend(command.lines().map(|line| format!("$ {line}")));
        }
        Preview::Diff { unified, .. } => body.extend(unified.lines().map(str::to_owned)),
        Preview::Paths { paths } => body.extend(paths.iter().cloned()),
    }
    let mut foot = vec![format!("Reason: {}", prompt.reason)];
    foot.extend(prompt.notes.iter().cloned());
    // One line each: a path with a line end in it must not be able to add lines of its own.
    let safe = |lines: Vec<String>| lines.iter().map(|line| printable(line).replace('\n', "\\n")).collect();
    Parts { head: safe(head), body: safe(body), foot: safe(foot) }
}

/// A permission prompt line by line: title, risks, exactly what will happen, reason, limits.
#[must_use]
pub fn prompt_lines(prompt: &PermissionPrompt) -> Vec<String> {
    let Parts { head, body, foot } = parts(prompt);
    [head, body, foot].concat()
}

/// One thing that the model asks, with its options and the plan it may be about, line by line.
pub fn question_lines(question: &Question, inquiry: &Inquiry) -> Vec<String> {
    let plan = question.draft.plan.iter().flat_map(|plan| plan.lines());
    let mut lines: Vec<String> = plan.map(printable).collect();
    let one_line = |text: &str| printable(text).replace('\n', " ");
    for (candidate, option) in question.draft.candidates.iter().zip(&inquiry.options) {
        lines.push(format!("── {}", one_line(&option.label)));
        lines.extend(candidate.text.lines().map(printable));
        let calls = candidate.calls.iter();
        lines.extend(
            calls.map(|call| format!("→ {} {}", one_line(&call.name), one_line(&call.input.to_string()))),
        );
    }
    lines.push(format!("{}: {}", one_line(&inquiry.header), one_line(&inquiry.question)));
    lines.extend(inquiry.options.iter().enumerate().map(|(at, option)| {
        let (label, description) = (one_line(&option.label), one_line(&option.description));
        let dash = if description.is_empty() { "" } else { " - " };
        format!("  {}. {label}{dash}{description}", at + 1)
    }));
    lines
}

/// Says on one line that a model call failed and is tried again.
#[must_use]
pub fn retry_line(retry: &ModelRetry) -> String {
    let ModelRetry { attempt, of, delay_ms, left_ms, reason, .. } = retry;
    let seconds = |millis: &u64| millis.div_ceil(1_000);
    format!(
        "attempt {attempt} failed, retry {attempt} of {of} in {} s (at most {} s in all): {}",
        seconds(delay_ms),
        seconds(left_ms),
        printable(reason)
    )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_paint_over_a_prompt_is_escaped() {
        assert_eq!(printable("rm -rf x\r\u{1b}[2K ls"), "rm -rf x\\u{d}\\u{1b}[2K ls");
        assert_eq!(printable("a\u{202e}b\u{200b}c"), "a\\u{202e}b\\u{200b}c");
        assert_eq!(printable("Grüße, 世界 🙂\n\tok"), "Grüße, 世界 🙂\n\tok");
    }

    #[test]
    fn prose_keeps_its_emoji_and_loses_what_steers() {
        assert_eq!(readable("⚠\u{fe0f} ok\u{1b}[2J\u{202e}x"), "⚠\u{fe0f} ok\\u{1b}[2J\\u{202e}x");
    }

    #[test]
    fn json_says_the_same_without_characters_that_steer() {
        let text = "a\u{202e}b\u{1f642}\u{e0001}";
        let json = json_text(&serde_json::to_string(text).unwrap());
        assert_eq!(json, "\"a\\u202eb\u{1f642}\\udb40\\udc01\"");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

    #[test]
    fn a_cut_text_shows_both_ends_and_says_how_much_is_missing() {
        let text: String = ('a'..='z').cycle().take(300).collect();
        let cut = both_ends(&text, 30);
        assert!(cut.starts_with("abcdefghij") && cut.ends_with(&text[290..]));
        assert!(cut.contains("270 characters left out"));
        assert_eq!(both_ends("short", 30), "short");
    }
}
