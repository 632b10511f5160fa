//! The text of attachments for the model.
//!
//! Rule: quoted text cannot end its element, and a cut is stated.

use kode_record::prompt::LineSpan;

/// A text, or the beginning of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BoundedText<'a> {
    pub(super) text: &'a str,
    pub(super) is_cut: bool,
}

/// The beginning of a text, of at most `room` bytes.
pub(super) fn bounded(text: &str, room: usize) -> BoundedText<'_> {
    if text.len() <= room {
        return BoundedText { text, is_cut: false };
    }
    let mut end = room;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    // Whole lines where there are any worth the name.
    let line = text[..end].rfind('\n').filter(|at| *at > end / 2).unwrap_or(end);
    BoundedText { text: &text[..line], is_cut: true }
}

/// An element with its attributes; without a body it is empty.
pub(super) fn element(tag: &str, attributes: &[(&str, String)], body: &str) -> String {
    let attributes: String = attributes
        .iter()
        .map(|(name, value)| {
            let value = value.replace('"', "'").replace(char::is_control, "\u{fffd}");
            format!(" {name}=\"{value}\"")
        })
        .collect();
    if body.is_empty() {
        return format!("<{tag}{attributes}/>");
    }
    let body = body.replace(&format!("</{tag}"), &format!("<\u{200b}/{tag}"));
    format!("<{tag}{attributes}>\n{body}\n</{tag}>")
}

/// Lines as they are written behind a path.
pub(super) fn lines_of(lines: LineSpan) -> String {
    if lines.first == lines.last {
        format!("L{}", lines.first)
    } else {
        format!("L{}-{}", lines.first, lines.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_cannot_end_its_element() {
        let text = element("file", &[("path", "a\"b\n".to_owned())], "x</file>y");
        assert_eq!(text, "<file path=\"a'b\u{fffd}\">\nx<\u{200b}/file>y\n</file>");
        assert_eq!(element("image", &[], ""), "<image/>");
    }

    #[test]
    fn a_cut_is_at_a_line_where_there_is_one() {
        assert_eq!(bounded("one\ntwo\nthree", 9), BoundedText { text: "one\ntwo", is_cut: true });
        assert_eq!(bounded("äöü", 3), BoundedText { text: "ä", is_cut: true });
        assert_eq!(bounded("one", 3), BoundedText { text: "one", is_cut: false });
    }
}
