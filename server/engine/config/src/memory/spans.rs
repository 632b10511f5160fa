//! Inline code in Markdown.
//!
//! Rule: what a code span quotes is never read as a mention or an import.

/// A line with blanks where it has code in backquotes.
pub fn without_spans(line: &str) -> String {
    let mut parts = line.split('`');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(after) => {
                plain.push(' ');
                plain.push_str(after);
            }
            // One that is never closed begins no code.
            None => {
                plain.push('`');
                plain.push_str(code);
            }
        }
    }
    plain
}
