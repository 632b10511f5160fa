//! What is kept of a command's output: its beginning and its end, whatever its size.
//!
//! Rule: memory is bounded, nothing is cut inside a character, and the number of characters cut is exact. Output
//! stays as the command wrote it, escape sequences included (commands are told `TERM=dumb`), except that of a line
//! drawn over with lone carriage returns only what a terminal would show last is kept.

use std::collections::VecDeque;

use encoding_rs::{Decoder, UTF_8};

/// How many characters of output are kept at most.
pub const OUTPUT_BUDGET: usize = 30_000;
/// Of output over the budget: how many characters are kept from the beginning.
const HEAD: usize = OUTPUT_BUDGET * 60 / 100;
/// Of output over the budget: how many characters are kept from the end.
const TAIL: usize = OUTPUT_BUDGET * 30 / 100;
/// What the end needs room for until it is known whether the output goes over the budget.
const TAIL_ROOM: usize = OUTPUT_BUDGET - HEAD;
/// Lines longer than this many bytes are not progress bars; their carriage returns stay.
const MAX_PROGRESS_LINE: usize = 4096;

/// The output of a command, standard output and standard error in the order they arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Captured {
    /// The text; where the middle is missing, a marker line says how much.
    pub text: String,
    /// How many characters are missing from the middle.
    pub cut: usize,
}

/// Takes in a command's bytes as they come.
pub(super) struct Capture {
    decoder: Decoder,
    line: ProgressLine,
    kept: Kept,
}

impl Capture {
    pub(super) fn new() -> Self {
        Self {
            decoder: UTF_8.new_decoder_without_bom_handling(),
            line: ProgressLine::default(),
            kept: Kept::default(),
        }
    }

    /// Takes in some bytes and gives back the text they complete, for whoever watches the command run.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.decode(bytes, false)
    }

    /// Ends the output.
    pub(super) fn finish(mut self) -> Captured {
        self.decode(&[], true);
        self.line.finish(&mut self.kept);
        self.kept.finish()
    }

    fn decode(&mut self, bytes: &[u8], last: bool) -> String {
        let room = self.decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0);
        let mut text = String::with_capacity(room);
        // The room is what the decoder asked for, so that one call takes in everything.
        let _ = self.decoder.decode_to_string(bytes, &mut text, last);
        self.line.push(&text, &mut self.kept);
        text
    }
}

/// Holds back the line being written until nothing can be drawn over it any more.
#[derive(Default)]
struct ProgressLine {
    line: String,
    returned: bool,
    too_long: bool,
}

impl ProgressLine {
    fn push(&mut self, text: &str, kept: &mut Kept) {
        for piece in text.split_inclusive(['\n', '\r']) {
            let body = piece.trim_end_matches(['\n', '\r']);
            if !body.is_empty() {
                self.write(body, kept);
            }
            if piece.ends_with('\n') {
                self.end(kept);
            } else if piece.ends_with('\r') {
                if self.too_long {
                    kept.push("\r");
                } else {
                    self.returned = true;
                }
            }
        }
    }

    fn write(&mut self, body: &str, kept: &mut Kept) {
        if self.too_long {
            kept.push(body);
            return;
        }
        if std::mem::take(&mut self.returned) {
            self.line.clear();
        }
        self.line.push_str(body);
        if self.line.len() > MAX_PROGRESS_LINE {
            self.too_long = true;
            kept.push(&self.line);
            self.line.clear();
        }
    }

    fn end(&mut self, kept: &mut Kept) {
        kept.push(&self.line);
        kept.push(if self.returned { "\r\n" } else { "\n" });
        self.line.clear();
        self.returned = false;
        self.too_long = false;
    }

    fn finish(&mut self, kept: &mut Kept) {
        kept.push(&self.line);
    }
}

/// The first and the last characters of a text.
#[derive(Default)]
struct Kept {
    head: String,
    head_chars: usize,
    tail: VecDeque<char>,
    total: usize,
}

impl Kept {
    fn push(&mut self, text: &str) {
        let chars = text.chars().count();
        self.total += chars;
        let to_head = chars.min(HEAD - self.head_chars);
        let split = text.char_indices().nth(to_head).map_or(text.len(), |(index, _)| index);
        let (head, rest) = text.split_at(split);
        self.head.push_str(head);
        self.head_chars += to_head;

        let arriving = (chars - to_head).min(TAIL_ROOM);
        let leaving = (self.tail.len() + arriving).saturating_sub(TAIL_ROOM);
        self.tail.drain(..leaving);
        self.tail.extend(rest.chars().skip(chars - to_head - arriving));
    }

    fn finish(self) -> Captured {
        let Self { head: mut text, tail, total, .. } = self;
        if total <= OUTPUT_BUDGET {
            text.extend(tail);
            return Captured { text, cut: 0 };
        }
        let cut = total - HEAD - TAIL;
        text.push_str(&marker(cut));
        text.extend(tail.iter().skip(tail.len() - TAIL));
        Captured { text, cut }
    }
}

fn marker(cut: usize) -> String {
    format!("\n[... {cut} characters of output cut here ...]\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capture<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Captured {
        let mut capture = Capture::new();
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish()
    }

    /// The same, written for clearness with everything in memory.
    fn naive(bytes: &[u8]) -> Captured {
        let text: String = String::from_utf8_lossy(bytes).split_inclusive('\n').map(naive_line).collect();
        let chars: Vec<char> = text.chars().collect();
        if chars.len() <= 30_000 {
            return Captured { text, cut: 0 };
        }
        let cut = chars.len() - 27_000;
        let head: String = chars[..18_000].iter().collect();
        let tail: String = chars[chars.len() - 9_000..].iter().collect();
        Captured { text: head + &marker(cut) + &tail, cut }
    }

    fn naive_line(line: &str) -> String {
        let ended = line.ends_with('\n');
        let body = line.trim_end_matches('\n');
        let shown = body.trim_end_matches('\r');
        let end = match (ended, shown.len() < body.len()) {
            (true, true) => "\r\n",
            (true, false) => "\n",
            (false, _) => "",
        };
        let drawn: Vec<&str> = shown.split('\r').collect();
        match drawn.iter().position(|text| text.len() > MAX_PROGRESS_LINE) {
            Some(long) if ended => drawn[long..].join("\r") + &body[shown.len()..] + "\n",
            Some(long) => drawn[long..].join("\r") + &body[shown.len()..],
            None => drawn.last().copied().unwrap_or_default().to_owned() + end,
        }
    }

    #[test]
    fn short_output_is_kept_as_it_is() {
        let text = "one\ntwo\r\n\u{1b}[31mred\u{1b}[0m\n";
        assert_eq!(capture([text.as_bytes()]), Captured { text: text.to_owned(), cut: 0 });
    }

    #[test]
    fn output_of_exactly_the_budget_is_whole_and_one_more_character_is_cut() {
        let whole = "é".repeat(OUTPUT_BUDGET);
        assert_eq!(capture([whole.as_bytes()]).cut, 0);
        let over = "é".repeat(OUTPUT_BUDGET + 1);
        let captured = capture([over.as_bytes()]);
        assert_eq!(captured.cut, 3_001);
        assert_eq!(captured.text.matches('é').count(), 27_000);
        assert!(captured.text.contains("[... 3001 characters of output cut here ...]"));
    }

    #[test]
    fn a_character_split_between_chunks_is_one_character() {
        let bytes = "a😀b".as_bytes();
        for split in 0..=bytes.len() {
            assert_eq!(capture([&bytes[..split], &bytes[split..]]).text, "a😀b");
        }
    }

    #[test]
    fn what_is_not_utf8_is_replaced_even_at_the_very_end() {
        assert_eq!(capture([&b"a\xffb\xf0\x9f"[..]]).text, "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn of_a_progress_line_only_the_last_state_is_kept() {
        let text = b" 10%\r 50%\r100%\ndone\r\r\nwaiting\rready".as_slice();
        assert_eq!(capture([text]).text, "100%\ndone\r\nready");
    }

    #[test]
    fn memory_does_not_grow_with_the_output() {
        let mut capture = Capture::new();
        let chunk = "x".repeat(64 * 1024);
        for _ in 0..64 {
            capture.push(chunk.as_bytes());
        }
        assert!(capture.kept.head.capacity() <= 2 * HEAD);
        assert!(capture.kept.tail.capacity() <= 2 * TAIL_ROOM);
        assert!(capture.line.line.capacity() <= 2 * chunk.len());
        assert_eq!(capture.finish().cut, 64 * 64 * 1024 - 27_000);
    }

    fn output() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            4 => (any::<u8>(), 1..40usize).prop_map(|(byte, count)| vec![byte; count]),
            2 => "\\PC{0,20}".prop_map(String::into_bytes),
            2 => Just(b"\r".to_vec()),
            2 => Just(b"\n".to_vec()),
            1 => ("[aé😀]", 1_000..9_000usize).prop_map(|(text, count)| text.repeat(count).into_bytes()),
        ];
        proptest::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn capture_equals_the_naive_one_however_the_bytes_are_split(
            bytes in output(),
            splits in proptest::collection::vec(any::<proptest::sample::Index>(), 0..6),
        ) {
            let mut splits: Vec<usize> = splits.iter().map(|split| split.index(bytes.len() + 1)).collect();
            splits.extend([0, bytes.len()]);
            splits.sort_unstable();
            let chunks = splits.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
            prop_assert_eq!(capture(chunks), naive(&bytes));
        }
    }
}
