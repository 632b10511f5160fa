//! The text of an instruction file: without comments, with its imports known, and cut where it is too long.
//!
//! Rule: text in code is neither a comment nor an import.

use crate::memory::spans::without_spans;

/// Says whether lines are in a fenced block, one after another.
#[derive(Default)]
struct FenceTracker(Option<&'static str>);

impl FenceTracker {
    /// Whether this line is code, or begins or ends it.
    fn holds(&mut self, line: &str) -> bool {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        let was_open = self.0.is_some();
        match (self.0, mark) {
            (None, Some(mark)) => self.0 = Some(mark),
            (Some(open), Some(mark)) if open == mark => self.0 = None,
            (Some(_), _) | (None, None) => {}
        }
        was_open || mark.is_some()
    }
}

/// A text without its HTML comments. An unclosed one is text.
pub(super) fn without_comments(text: &str) -> String {
    let (mut kept, mut fence) = (String::with_capacity(text.len()), FenceTracker::default());
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
        let line = &rest[..length];
        match line.find("<!--").filter(|_| fence.0.is_none()) {
            Some(begin) if !fence.holds(&line[..begin]) => match rest[begin..].find("-->") {
                Some(end) => {
                    kept.push_str(&rest[..begin]);
                    rest = &rest[begin + end + "-->".len()..];
                }
                None => {
                    kept.push_str(rest);
                    break;
                }
            },
            Some(_) => {
                kept.push_str(line);
                rest = &rest[length..];
            }
            None => {
                fence.holds(line);
                kept.push_str(line);
                rest = &rest[length..];
            }
        }
    }
    kept
}

/// The imports of a text with `@`, in order.
pub(super) fn imports(text: &str) -> Vec<String> {
    let mut fence = FenceTracker::default();
    let lines = text.lines().filter(|line| !fence.holds(line)).map(without_spans);
    lines.flat_map(|line| line.split_whitespace().filter_map(import).collect::<Vec<_>>()).collect()
}

/// Whether a text says nothing but what it imports.
pub(super) fn is_only_imports(text: &str) -> bool {
    let mut words = text.split_whitespace().peekable();
    words.peek().is_some() && words.all(|word| import(word).is_some())
}

fn import(word: &str) -> Option<String> {
    let path = word.strip_prefix('@')?.trim_end_matches([',', ';', ':', ')', '.']);
    let is_path = !path.is_empty() && !path.starts_with(['@', '#']);
    is_path.then(|| path.to_owned())
}

/// The beginning of a text that fits into this many bytes, whole lines of it where there are any.
pub(super) fn cut_at_line(text: &str, room: usize) -> &str {
    if text.len() <= room {
        return text;
    }
    let mut end = room;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let whole = text[..end].rfind('\n').unwrap_or(end);
    &text[..whole]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_code_stays() {
        let text = "a<!-- one\ntwo -->b\n```html\n<!-- kept -->\n```\n<!-- gone --> c\n<!-- never closed";
        assert_eq!(without_comments(text), "ab\n```html\n<!-- kept -->\n```\n c\n<!-- never closed");
    }

    #[test]
    fn imports_are_found_outside_of_code_alone() {
        let text = "See @docs/a.md and `@b.md`, or @~/c.md.\n```\n@d.md\n```\nmail a@b.c";
        assert_eq!(imports(text), ["docs/a.md", "~/c.md"]);
        assert!(
            is_only_imports("@AGENTS.md\n") && !is_only_imports("Read @AGENTS.md") && !is_only_imports("")
        );
    }

    #[test]
    fn a_long_text_is_cut_after_a_line() {
        assert_eq!(cut_at_line("one\ntwo\n", 6), "one");
        assert_eq!(cut_at_line("äöü", 3), "ä");
        assert_eq!(cut_at_line("one", 3), "one");
    }
}
