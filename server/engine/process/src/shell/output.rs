//! The kept part of a command's output: its beginning and its end, whatever its size, and the whole in a file.
//!
//! Rule: memory is bounded, nothing is cut inside a character, and the number of characters cut is exact. Output
//! stays as the command wrote it, escape sequences included (commands get `TERM=dumb`), except that of a line
//! drawn over with lone carriage returns only what a terminal would show last is kept.

use std::collections::VecDeque;

use super::console::ConsoleDecoder;
use super::spill::Spill;
use crate::outcome::{CapturedOutput, marker};

/// How many characters of output are kept by default.
pub const OUTPUT_BUDGET: usize = 30_000;
/// How many are kept at most, regardless of settings.
pub const MAX_OUTPUT_BUDGET: usize = 150_000;
/// The variable that says how many are kept.
pub(super) const BUDGET_VARIABLE: &str = "BASH_MAX_OUTPUT_LENGTH";
/// Lines longer than this many bytes are not progress bars; their carriage returns stay.
const MAX_PROGRESS_LINE: usize = 4096;

/// How many characters of output are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutputBudget(usize);

impl Default for OutputBudget {
    fn default() -> Self {
        Self(OUTPUT_BUDGET)
    }
}

impl OutputBudget {
    /// As a variable says it. A value that is not a number above 0 counts as not set.
    pub(super) fn of(written: Option<&str>) -> Self {
        let Some(written) = written else { return Self::default() };
        match written.trim().parse::<usize>() {
            Ok(chars) if chars > 0 => Self(chars.min(MAX_OUTPUT_BUDGET)),
            Ok(_) | Err(_) => {
                tracing::warn!(written, "{BUDGET_VARIABLE} is no number above 0 and is not followed");
                Self::default()
            }
        }
    }

    /// Of output over the budget: how many characters are kept from the beginning.
    fn head(self) -> usize {
        self.0 * 60 / 100
    }

    /// Of output over the budget: how many characters are kept from the end.
    fn tail(self) -> usize {
        self.0 * 30 / 100
    }

    /// The room for the end until it is known whether the output exceeds the budget.
    fn tail_room(self) -> usize {
        self.0 - self.head()
    }
}

/// Takes in a command's bytes as they come.
pub(super) struct Capture {
    decoder: ConsoleDecoder,
    line: ProgressLine,
    kept: OutputEnds,
}

impl Capture {
    /// Output over the budget goes to `spill` as well, all of it.
    pub(super) fn new(budget: OutputBudget, spill: Option<Spill>) -> Self {
        Self {
            decoder: ConsoleDecoder::here(),
            line: ProgressLine::default(),
            kept: OutputEnds { budget, spill, ..OutputEnds::default() },
        }
    }

    /// Takes in some bytes and gives back the text they complete, for observers of the command.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        self.decode(bytes, false)
    }

    /// Ends the output; `on_rest` gets the text for bytes that no character came of, if there are any.
    pub(super) fn finish(mut self, on_rest: impl FnOnce(&str)) -> CapturedOutput {
        let rest = self.decode(&[], true);
        if !rest.is_empty() {
            on_rest(&rest);
        }
        self.line.hand_over(&mut self.kept);
        self.kept.take()
    }

    fn decode(&mut self, bytes: &[u8], last: bool) -> String {
        let text = self.decoder.decode(bytes, last);
        self.line.push(&text, &mut self.kept);
        self.kept.flush();
        text
    }
}

/// Takes in a command's text as it comes, and gives it out piece by piece while the command continues.
#[derive(Default)]
pub(super) struct UnreadOutput {
    line: ProgressLine,
    kept: OutputEnds,
}

impl UnreadOutput {
    /// All output goes to `spill` as well, from the first character on.
    pub(super) fn new(budget: OutputBudget, spill: Option<Spill>) -> Self {
        Self {
            line: ProgressLine::default(),
            kept: OutputEnds { budget, spill, spills: true, ..OutputEnds::default() },
        }
    }

    /// Output over the budget goes to `spill` as well, all of it.
    pub(super) fn spilling_when_long(budget: OutputBudget, spill: Option<Spill>) -> Self {
        Self { line: ProgressLine::default(), kept: OutputEnds { budget, spill, ..OutputEnds::default() } }
    }

    /// Has all output go to the file, from the first character on.
    pub(super) fn spill_all(&mut self) {
        self.kept.spill_all();
        self.kept.flush();
    }

    /// Takes in some text.
    pub(super) fn push(&mut self, text: &str) {
        self.line.push(text, &mut self.kept);
        self.kept.flush();
    }

    /// Whether there is anything to give out.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.total == 0 && self.line.line.is_empty()
    }

    /// Gives out what came since the last time, the line that is being written included.
    pub(super) fn take(&mut self) -> CapturedOutput {
        self.hand_over();
        self.kept.take()
    }

    /// Sees to it that the file has all that came until now.
    pub(super) fn hand_over(&mut self) {
        self.line.hand_over(&mut self.kept);
        self.kept.flush();
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
    fn push(&mut self, text: &str, kept: &mut OutputEnds) {
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

    fn write(&mut self, body: &str, kept: &mut OutputEnds) {
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

    fn end(&mut self, kept: &mut OutputEnds) {
        kept.push(&self.line);
        kept.push(if self.returned { "\r\n" } else { "\n" });
        self.line.clear();
        self.returned = false;
        self.too_long = false;
    }

    /// Lets go of the line as it is now; it can be drawn over no more.
    fn hand_over(&mut self, kept: &mut OutputEnds) {
        kept.push(&self.line);
        self.line.clear();
    }
}

/// The first and the last characters of a text.
#[derive(Default)]
struct OutputEnds {
    budget: OutputBudget,
    head: String,
    head_chars: usize,
    tail: VecDeque<char>,
    total: usize,
    spill: Option<Spill>,
    /// Whether all that came until now is in the file.
    spills: bool,
}

impl OutputEnds {
    fn push(&mut self, text: &str) {
        let chars = text.chars().count();
        self.total += chars;
        self.spill(text);
        let to_head = chars.min(self.budget.head() - self.head_chars);
        let split = text.char_indices().nth(to_head).map_or(text.len(), |(index, _)| index);
        let (head, rest) = text.split_at(split);
        self.head.push_str(head);
        self.head_chars += to_head;

        let arriving = (chars - to_head).min(self.budget.tail_room());
        let leaving = (self.tail.len() + arriving).saturating_sub(self.budget.tail_room());
        self.tail.drain(..leaving);
        self.tail.extend(rest.chars().skip(chars - to_head - arriving));
    }

    /// Hands text on to the file, once there is more than is kept here.
    fn spill(&mut self, text: &str) {
        if self.spill.is_none() {
            return;
        }
        if !self.spills {
            if self.total <= self.budget.0 {
                return;
            }
            self.spill_all();
        }
        self.spill.iter_mut().for_each(|spill| spill.push(text));
    }

    /// Hands over all that came until now, of which nothing was left out so far, and what comes from now on.
    fn spill_all(&mut self) {
        if std::mem::replace(&mut self.spills, true) {
            return;
        }
        let Some(spill) = &mut self.spill else { return };
        spill.push(&self.head);
        spill.push(&self.tail.iter().collect::<String>());
    }

    fn flush(&mut self) {
        self.spill.iter_mut().for_each(Spill::flush);
    }

    /// Returns the kept output, and starts over with the same file.
    fn take(&mut self) -> CapturedOutput {
        self.flush();
        let (mut text, tail) = (std::mem::take(&mut self.head), std::mem::take(&mut self.tail));
        let total = std::mem::take(&mut self.total);
        self.head_chars = 0;
        let file = self.spill.as_ref().and_then(Spill::file);
        if total <= self.budget.0 {
            text.extend(tail);
            return CapturedOutput { text, cut: 0, file };
        }
        let cut = total - self.budget.head() - self.budget.tail();
        text.push_str(&marker(cut));
        text.extend(tail.iter().skip(tail.len() - self.budget.tail()));
        CapturedOutput { text, cut, file }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::shell::Outputs;
    use kode_base::ids::CallId;
    use kode_base::paths::AbsPath;

    fn capture<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> CapturedOutput {
        let mut capture = Capture::new(OutputBudget::default(), None);
        for chunk in chunks {
            capture.push(chunk);
        }
        capture.finish(|_| ())
    }

    /// The same, written for clearness with everything in memory.
    fn naive(bytes: &[u8]) -> CapturedOutput {
        let text: String = String::from_utf8_lossy(bytes).split_inclusive('\n').map(naive_line).collect();
        let chars: Vec<char> = text.chars().collect();
        if chars.len() <= 30_000 {
            return CapturedOutput { text, cut: 0, file: None };
        }
        let cut = chars.len() - 27_000;
        let head: String = chars[..18_000].iter().collect();
        let tail: String = chars[chars.len() - 9_000..].iter().collect();
        CapturedOutput { text: head + &marker(cut) + &tail, cut, file: None }
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
    fn a_variable_says_how_much_is_kept() {
        for (written, kept) in [
            (None, OUTPUT_BUDGET),
            (Some("100"), 100),
            (Some("1"), 1),
            (Some("9999999"), MAX_OUTPUT_BUDGET),
            (Some("0"), OUTPUT_BUDGET),
            (Some("much"), OUTPUT_BUDGET),
        ] {
            let budget = OutputBudget::of(written);
            for length in [kept, kept + 1] {
                let mut capture = Capture::new(budget, None);
                capture.push("é".repeat(length).as_bytes());
                let captured = capture.finish(|_| ());
                let left = captured.text.chars().filter(|char| *char == 'é').count();
                assert_eq!(captured.cut, length - left, "{written:?}");
                assert_eq!((captured.cut == 0, left <= kept), (length == kept, true), "{written:?} {length}");
            }
        }
    }

    #[test]
    fn short_output_is_kept_as_it_is() {
        let text = "one\ntwo\r\n\u{1b}[31mred\u{1b}[0m\n";
        assert_eq!(capture([text.as_bytes()]), CapturedOutput { text: text.to_owned(), cut: 0, file: None });
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
        let mut capture = Capture::new(OutputBudget::default(), None);
        let chunk = "x".repeat(64 * 1024);
        for _ in 0..64 {
            capture.push(chunk.as_bytes());
        }
        assert!(capture.kept.head.capacity() <= 2 * OutputBudget::default().head());
        assert!(capture.kept.tail.capacity() <= 2 * OutputBudget::default().tail_room());
        assert!(capture.line.line.capacity() <= 2 * chunk.len());
        assert_eq!(capture.finish(|_| ()).cut, 64 * 64 * 1024 - 27_000);
    }

    fn spill() -> (tempfile::TempDir, Spill) {
        let folder = tempfile::tempdir().unwrap();
        let outputs = Arc::new(Outputs::new(AbsPath::new(folder.path()).unwrap()));
        (folder, outputs.spill(&CallId::from_external("call_1")))
    }

    #[test]
    fn the_whole_of_long_output_is_in_a_file_and_short_output_is_in_none() {
        for (length, is_kept) in [(OUTPUT_BUDGET, false), (OUTPUT_BUDGET + 1, true), (400_000, true)] {
            let (_folder, spill) = spill();
            let text: String = (0..length).map(|at| if at % 50 == 0 { '\n' } else { 'é' }).collect();
            let mut capture = Capture::new(OutputBudget::default(), Some(spill));
            text.as_bytes().chunks(1_001).for_each(|chunk| drop(capture.push(chunk)));
            let file = capture.finish(|_| ()).file;
            assert_eq!(file.is_some(), is_kept, "{length}");
            let kept = file.map(|file| std::fs::read_to_string(file.path).unwrap());
            assert!(kept.is_none_or(|kept| kept == text), "{length}");
        }
    }

    #[test]
    fn unread_output_is_given_out_once_and_kept_in_the_file_as_a_whole() {
        let (_folder, spill) = spill();
        let mut unread = UnreadOutput::new(OutputBudget::default(), Some(spill));
        assert!(unread.is_empty() && unread.take().text.is_empty());
        unread.push("one\n10%\r20%");
        assert_eq!(unread.take().text, "one\n20%");
        assert!(unread.is_empty());
        unread.push("\r30%\n");
        let long = "x".repeat(OUTPUT_BUDGET);
        unread.push(&long);
        let captured = unread.take();
        assert_eq!(captured.cut, "30%\n".len() + 3_000);
        assert_eq!((unread.take().text.as_str(), unread.take().cut), ("", 0));
        let kept = std::fs::read_to_string(captured.file.unwrap().path).unwrap();
        assert_eq!(kept, format!("one\n20%30%\n{long}"));
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
