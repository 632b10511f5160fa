//! The parts of a chat document: its prompts, its answers, the conversation it is bound to.
//!
//! Rule: a pure function of the text. Only whole lines mean anything, the last of each kind counts, and no line that
//! a model writes can be one of them.

use std::ops::Range;

use kode_engine::base::ids::{SessionId, TurnId};

/// The line above a prompt.
pub(super) const PROMPT: &str = "## You";
/// The line above an answer.
pub(super) const ANSWER: &str = "## Kode";

const SESSION: &str = "<!-- kode session ";
const ANSWERING: &str = "<!-- kode answering ";
const END: &str = " -->";

/// Ids are short; a longer one is invalid.
const MAX_ID: usize = 100;

/// The parts, in bytes of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ChatLayout {
    /// The conversation that the document is bound to.
    pub(super) session: Option<SessionId>,
    /// The prompt that waits to be sent, without the white space around it; empty if absent.
    pub(super) prompt: Range<usize>,
    /// Where the last prompt may begin: behind its heading, or at the beginning of a document without headings.
    pub(super) begin: usize,
    /// Where the last answer is written, as long as it is not whole.
    pub(super) answering: Option<OpenAnswer>,
}

/// The place of an answer that is not whole yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenAnswer {
    /// The turn that answers.
    pub(super) turn: TurnId,
    /// Where what has been written begins: behind the heading.
    pub(super) begin: usize,
    /// The line that holds the place, without its line ending.
    pub(super) line: Range<usize>,
}

impl ChatLayout {
    /// Looks through a text.
    pub(super) fn of(text: &str) -> Self {
        let mut layout = Self::default();
        let (mut at, mut is_prompt, mut end) = (0, true, text.len());
        for whole in text.split_inclusive('\n') {
            let line = whole.trim_end();
            let next = at + whole.len();
            if line == PROMPT || line == ANSWER {
                (is_prompt, end) = (line == PROMPT, text.len());
                (layout.begin, layout.answering) = (next, None);
            } else if let Some(id) = id(line, SESSION) {
                layout.session = Some(SessionId::from_external(id));
                // Blank text above belongs to no prompt; else the prompt ends here.
                if text[layout.begin..at].trim().is_empty() {
                    layout.begin = next;
                } else {
                    end = end.min(at);
                }
            } else if let Some(id) = id(line, ANSWERING) {
                let turn = TurnId::from_external(id);
                layout.answering = Some(OpenAnswer { turn, begin: layout.begin, line: at..at + line.len() });
            }
            at = next;
        }
        let is_open = is_prompt && layout.answering.is_none();
        let section = if is_open { layout.begin..end.max(layout.begin) } else { at..at };
        layout.prompt = trimmed(text, section);
        layout
    }

    /// The prompt that waits to be sent.
    pub(super) fn prompt_in<'a>(&self, text: &'a str) -> &'a str {
        &text[self.prompt.clone()]
    }
}

/// The line that binds a document to a conversation.
pub(super) fn session_line(id: &SessionId) -> String {
    format!("{SESSION}{id}{END}")
}

/// The line that holds the place of an answer.
pub(super) fn answering_line(turn: &TurnId) -> String {
    format!("{ANSWERING}{turn}{END}")
}

/// Whether a line could be, or become, one that means something here.
pub(super) fn is_reserved(line: &str) -> bool {
    [PROMPT, ANSWER].iter().any(|reserved| line.trim_end() == *reserved) || line.starts_with("<!-- kode ")
}

/// Whether a line that has only begun could become one that means something here.
pub(super) fn may_be_reserved(begun: &str) -> bool {
    [PROMPT, ANSWER].iter().any(|reserved| reserved.starts_with(begun.trim_end()))
        || "<!-- kode ".starts_with(begun)
        || begun.starts_with("<!-- kode ")
}

fn id<'a>(line: &'a str, begin: &str) -> Option<&'a str> {
    let id = line.strip_prefix(begin)?.strip_suffix(END)?;
    let fits = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    (!id.is_empty() && id.len() <= MAX_ID && id.chars().all(fits)).then_some(id)
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let section = &text[range.clone()];
    let start = range.start + (section.len() - section.trim_start().len());
    start..start + section.trim().len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prompt(text: &str) -> &str {
        ChatLayout::of(text).prompt_in(text)
    }

    #[test]
    fn the_prompt_is_what_is_below_the_last_heading() {
        for (text, expected) in [
            ("", ""),
            ("just ask", "just ask"),
            ("# Title\n\n## You\n\nfix it\n", "fix it"),
            ("## You\r\nfix it\r\nnow\r\n", "fix it\r\nnow"),
            ("## You\nfirst\n\n## Kode\n\nanswer\n\n## You\n\nsecond ## You\n", "second ## You"),
            ("## You\nfirst\n\n## Kode\n\nanswer\n", ""),
            ("## You\nfirst\n<!-- kode session ses_1 -->\n", "first"),
            ("<!-- kode session ses_1 -->\n\nfirst\n", "first"),
            ("## You\n<!-- kode session ses_1 -->\nfirst\n", "first"),
            ("### You\nx", "### You\nx"),
        ] {
            assert_eq!(prompt(text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_last_session_named_counts_and_only_ids_are_ids() {
        let session = |text: &str| ChatLayout::of(text).session.map(|id| id.to_string());
        let two = "<!-- kode session ses_1 -->\n<!-- kode session ses_2 -->\n";
        assert_eq!(session(two).as_deref(), Some("ses_2"));
        for none in ["<!-- kode session -->", "<!-- kode session ../x -->", " <!-- kode session a -->"] {
            assert_eq!(session(none), None, "{none}");
        }
    }

    #[test]
    fn an_answer_that_is_not_whole_has_a_place_and_leaves_no_prompt_to_send() {
        let text = "## You\nask\n\n## Kode\n\nso far\n<!-- kode answering turn_1 -->\nnext";
        let layout = ChatLayout::of(text);
        let answering = layout.answering.clone().unwrap();
        assert_eq!(answering.turn.as_str(), "turn_1");
        assert_eq!(&text[answering.begin..answering.line.start], "\nso far\n");
        assert_eq!(&text[answering.line], "<!-- kode answering turn_1 -->");
        assert_eq!(layout.prompt_in(text), "");
    }

    proptest! {
        #[test]
        fn any_text_has_a_layout(
            parts in proptest::collection::vec(
                prop_oneof![
                    Just("## You\n".to_owned()), Just("## Kode\r\n".to_owned()),
                    Just("<!-- kode session ses_1 -->\n".to_owned()),
                    Just("<!-- kode answering turn_1 -->".to_owned()), "\\PC{0,9}", Just("\n".to_owned()),
                ],
                0..12,
            )
        ) {
            let text = parts.concat();
            let layout = ChatLayout::of(&text);
            let prompt = layout.prompt_in(&text);
            prop_assert_eq!(prompt, prompt.trim());
            // A first line that lost its indentation may read like a heading and was none.
            let is_whole = layout.prompt.start == 0 || text[..layout.prompt.start].ends_with('\n');
            let mut lines = prompt.lines().skip(usize::from(!is_whole));
            prop_assert!(!lines.any(|line| line == PROMPT || line == ANSWER));
            if let Some(answering) = layout.answering {
                prop_assert!(answering.begin <= answering.line.start);
                prop_assert!(prompt.is_empty());
            }
        }

        #[test]
        fn what_may_become_reserved_is_known_from_its_first_character_on(cut in 1_usize..8) {
            for line in ["## You", "## Kode", "<!-- kode session x -->"] {
                prop_assert!(is_reserved(line));
                let cut = cut.min(line.len());
                prop_assert!(may_be_reserved(&line[..cut]), "{}", &line[..cut]);
            }
        }
    }
}
