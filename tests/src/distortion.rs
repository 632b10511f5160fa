//! The ways in which models distort what they quote.
//!
//! Rule: a distortion changes the passage and the new text alike, as one habit does, and is applied only where it changes the
//! passage.

use std::ops::Range;

/// One way to distort a request, or the text under it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distortion {
    /// None: the passage unchanged.
    Verbatim,
    /// The indentation in the other kind of blanks.
    TabsAndSpaces,
    /// All lines one level deeper or less deep.
    ShiftAll,
    /// Some of the lines one level deeper or less deep.
    ShiftSome,
    /// Blanks at the ends of lines.
    TrailingBlanks,
    /// The other kind of line breaks.
    LineBreaks,
    /// Curly quotes.
    Quotes,
    /// Dashes for hyphens.
    Dashes,
    /// No-break spaces for spaces.
    NoBreakSpaces,
    /// A byte order mark at the beginning.
    ByteOrderMark,
    /// The line numbers of `Read` before the lines.
    LineNumbers,
    /// Two backslashes for each.
    Backslashes,
    /// HTML entities.
    Entities,
    /// `...` for the lines in the middle.
    Elision,
    /// One line left out.
    MissingLine,
    /// The passage before the user changed a word of it.
    Stale,
}

/// The possible outcomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The intended text.
    Applied,
    /// The intended text, or a refusal.
    AppliedOrRefused,
    /// Nothing: the model has seen an older text.
    Refused,
}

/// A request and the text it meets.
pub struct Request {
    /// The text that the request meets.
    pub text: String,
    /// The passage as the request has it.
    pub old: String,
    /// The expected text, as the request has it.
    pub new: String,
    /// The text as it should be afterwards.
    pub intended: String,
    /// Its possible outcomes.
    pub expected: Expected,
}

/// Numbers that look like chance and follow from their seed.
pub struct Dice(u64);

impl Dice {
    /// The cases of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ (value >> 31)) % sides.max(1)
    }

    /// An index of a list of that length; 0 for an empty one.
    ///
    /// # Panics
    /// Never: an index fits.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.roll(length as u64)).unwrap()
    }
}

type Lines = Vec<String>;
type Rewrite = Box<dyn Fn(&str) -> String>;

impl Distortion {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Verbatim,
        Self::TabsAndSpaces,
        Self::ShiftAll,
        Self::ShiftSome,
        Self::TrailingBlanks,
        Self::LineBreaks,
        Self::Quotes,
        Self::Dashes,
        Self::NoBreakSpaces,
        Self::ByteOrderMark,
        Self::LineNumbers,
        Self::Backslashes,
        Self::Entities,
        Self::Elision,
        Self::MissingLine,
        Self::Stale,
    ];

    /// Its name in a table.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Verbatim => "as it stands",
            Self::TabsAndSpaces => "tabs for spaces, spaces for tabs",
            Self::ShiftAll => "all lines one level off",
            Self::ShiftSome => "some lines one level off",
            Self::TrailingBlanks => "trailing blanks",
            Self::LineBreaks => "CRLF for LF, LF for CRLF",
            Self::Quotes => "curly quotes",
            Self::Dashes => "dashes for hyphens",
            Self::NoBreakSpaces => "no-break spaces",
            Self::ByteOrderMark => "byte order mark",
            Self::LineNumbers => "line numbers of Read left in",
            Self::Backslashes => "doubled backslashes",
            Self::Entities => "HTML entities",
            Self::Elision => "`...` for lines",
            Self::MissingLine => "a line missing",
            Self::Stale => "a stale version",
        }
    }

    /// Whether nothing of what the model means is lost.
    #[must_use]
    pub fn is_harmless(self) -> bool {
        !matches!(self, Self::ShiftSome | Self::Elision | Self::MissingLine | Self::Stale)
    }

    /// The request for `old` to become `new` between `before` and `after`; `None` where there is nothing to distort.
    #[must_use]
    pub fn apply(
        self,
        text: &str,
        before: &str,
        old: &[String],
        new: &[String],
        after: &str,
        dice: &mut Dice,
    ) -> Option<Request> {
        let (mut text, mut intended) = (text.to_owned(), format!("{before}{}{after}", new.join("\n")));
        let mut expected = Expected::Applied;
        let (asked, wanted) = match self {
            Self::Verbatim => (old.to_vec(), new.to_vec()),
            Self::LineBreaks => {
                let crlf = |text: &str| text.replace('\n', "\r\n");
                if dice.roll(2) == 0 {
                    (text, intended) = (crlf(&text), crlf(&intended));
                    (old.to_vec(), new.to_vec())
                } else {
                    (vec![crlf(&old.join("\n"))], vec![crlf(&new.join("\n"))])
                }
            }
            Self::TrailingBlanks => trailing_blanks(old, new, dice),
            Self::ShiftSome => {
                expected = Expected::AppliedOrRefused;
                shift_some(old, new, unit(&text), dice)?
            }
            Self::ByteOrderMark => (with_mark(old), with_mark(new)),
            Self::LineNumbers => line_numbers(old, new, before.matches('\n').count() + 1, dice),
            Self::Elision => {
                expected = Expected::AppliedOrRefused;
                elision(old, new, dice)?
            }
            Self::MissingLine => {
                expected = Expected::Refused;
                missing_line(old, new, dice)?
            }
            Self::Stale => {
                expected = Expected::Refused;
                let at = dice.index(old.len());
                let mut typed = old.to_vec();
                typed[at] = with_other_word(&typed[at], dice)?;
                text = format!("{before}{}{after}", typed.join("\n"));
                (old.to_vec(), new.to_vec())
            }
            Self::TabsAndSpaces
            | Self::ShiftAll
            | Self::Quotes
            | Self::Dashes
            | Self::NoBreakSpaces
            | Self::Backslashes
            | Self::Entities => {
                let rewrite = self.rewrite(&text, old, new, dice)?;
                (
                    old.iter().map(|line| rewrite(line)).collect(),
                    new.iter().map(|line| rewrite(line)).collect(),
                )
            }
        };
        let (asked, wanted) = (asked.join("\n"), wanted.join("\n"));
        let is_distorted =
            matches!(self, Self::Verbatim | Self::Stale | Self::LineBreaks) || asked != old.join("\n");
        // A passage that, as sent, is elsewhere byte for byte is a right request for that place.
        let elsewhere = match expected {
            Expected::Refused => text.contains(&asked),
            Expected::Applied | Expected::AppliedOrRefused => {
                stands_elsewhere(&text, &asked, before.matches('\n').count())
            }
        };
        (is_distorted && !elsewhere && asked != wanted).then_some(Request {
            text,
            old: asked,
            new: wanted,
            intended,
            expected,
        })
    }

    /// The change of each line of both.
    fn rewrite(self, text: &str, old: &[String], new: &[String], dice: &mut Dice) -> Option<Rewrite> {
        let unit = unit(text);
        let side = dice.roll(2) == 0;
        Some(match self {
            Self::TabsAndSpaces => {
                let width = if unit == "\t" { [2, 4, 8][dice.index(3)] } else { unit.len() };
                let to_spaces = unit == "\t";
                Box::new(move |line| reindented(line, width, to_spaces))
            }
            Self::ShiftAll => {
                let solid = || old.iter().chain(new).filter(|line| !line.trim().is_empty());
                let is_less = side && solid().all(|line| line.starts_with(&unit));
                Box::new(move |line| shifted(line, &unit, is_less))
            }
            Self::Quotes => Box::new(curly),
            Self::Dashes => {
                let dash = if side { "\u{2013}" } else { "\u{2014}" };
                Box::new(move |line| line.replace('-', dash))
            }
            Self::NoBreakSpaces => Box::new(move |line| {
                let body = line.trim_start_matches([' ', '\t']);
                let indent = &line[..line.len() - body.len()];
                let indent = if side { indent.to_owned() } else { indent.replace(' ', "\u{a0}") };
                format!("{indent}{}", body.replace(' ', "\u{a0}"))
            }),
            Self::Backslashes => Box::new(|line| line.replace('\\', "\\\\")),
            Self::Entities => Box::new(move |line| {
                let line = line.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
                if side { line } else { line.replace('"', "&quot;").replace('\'', "&#39;") }
            }),
            _ => return None,
        })
    }
}

/// Whether whole lines are in a text below another line than the one of that number, from 0.
fn stands_elsewhere(text: &str, lines: &str, first: usize) -> bool {
    text.match_indices(lines).any(|(at, found)| {
        let (before, behind) = (&text[..at], &text[at + found.len()..]);
        let is_whole = (before.is_empty() || before.ends_with('\n'))
            && (behind.is_empty() || behind.starts_with(['\n', '\r']));
        is_whole && before.matches('\n').count() != first
    })
}

/// One level of indentation in a text: a tab, or its most frequent step of spaces.
fn unit(text: &str) -> String {
    let indents: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).map(indent).collect();
    if indents.iter().filter(|indent| indent.starts_with('\t')).count() * 2
        > indents.iter().filter(|indent| !indent.is_empty()).count()
    {
        return "\t".to_owned();
    }
    let mut counts = [0_usize; 9];
    for pair in indents.windows(2) {
        if let Some(step) = pair[1].len().checked_sub(pair[0].len()).filter(|step| (2..=8).contains(step)) {
            counts[step] += 1;
        }
    }
    let most = (2..=8).max_by_key(|step| counts[*step] * 10 + 8 - step).unwrap_or(4);
    " ".repeat(most)
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn reindented(line: &str, width: usize, to_spaces: bool) -> String {
    let indent = indent(line);
    let body = &line[indent.len()..];
    if to_spaces {
        return indent.replace('\t', &" ".repeat(width)) + body;
    }
    if indent.contains('\t') {
        return line.to_owned();
    }
    "\t".repeat(indent.len() / width) + &" ".repeat(indent.len() % width) + body
}

fn shifted(line: &str, unit: &str, is_less: bool) -> String {
    match (line.trim().is_empty(), is_less) {
        (true, _) => line.to_owned(),
        (false, true) => line.strip_prefix(unit).unwrap_or(line).to_owned(),
        (false, false) => format!("{unit}{line}"),
    }
}

/// Quotes that open and close by turns.
fn curly(line: &str) -> String {
    let mut opens = true;
    line.chars()
        .map(|letter| match letter {
            '"' => {
                opens = !opens;
                if opens { '\u{201d}' } else { '\u{201c}' }
            }
            '\'' => '\u{2019}',
            other => other,
        })
        .collect()
}

fn trailing_blanks(old: &[String], new: &[String], dice: &mut Dice) -> (Lines, Lines) {
    let blanks = [" ", "  ", "\t"][dice.index(3)];
    let least = &old[dice.index(old.len())];
    // Equal lines are equal in the request too, those of the new text among them.
    let seed = dice.roll(u64::MAX);
    let is_chosen = |line: &String| {
        line == least
            || line.bytes().fold(seed, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte)) % 2 == 0
    };
    let with_blanks = |line: &String| if is_chosen(line) { format!("{line}{blanks}") } else { line.clone() };
    let distorted: Lines = old.iter().map(with_blanks).collect();
    (distorted.clone(), copied(old, &distorted, new))
}

/// The lines of `new`, those of `old` as they are in `distorted`.
fn copied(old: &[String], distorted: &[String], new: &[String]) -> Lines {
    let of = |line: &String| old.iter().position(|known| known == line).map(|at| distorted[at].clone());
    new.iter().map(|line| of(line).unwrap_or_else(|| line.clone())).collect()
}

fn shift_some(old: &[String], new: &[String], unit: String, dice: &mut Dice) -> Option<(Lines, Lines)> {
    let solid: Vec<usize> = (0..old.len()).filter(|at| !old[*at].trim().is_empty()).collect();
    if solid.len() < 2 {
        return None;
    }
    let is_less = dice.roll(2) == 0;
    let mut chosen: Vec<usize> = solid.iter().copied().filter(|_| dice.roll(2) == 0).collect();
    if chosen.is_empty() || chosen.len() == solid.len() {
        chosen = vec![solid[dice.index(solid.len())]];
    }
    let distorted: Lines = old
        .iter()
        .enumerate()
        .map(|(at, line)| if chosen.contains(&at) { shifted(line, &unit, is_less) } else { line.clone() })
        .collect();
    let mut wanted = copied(old, &distorted, new);
    // A model that writes the first line at another depth writes a changed first line so too.
    if chosen.contains(&0) && !old.contains(&new[0]) {
        wanted[0] = shifted(&new[0], &unit, is_less);
    }
    Some((distorted, wanted))
}

fn with_mark(lines: &[String]) -> Lines {
    let mut lines = lines.to_vec();
    lines[0].insert(0, '\u{feff}');
    lines
}

fn line_numbers(old: &[String], new: &[String], first: usize, dice: &mut Dice) -> (Lines, Lines) {
    let mark = if dice.roll(2) == 0 { '\t' } else { '\u{2192}' };
    let numbered = |lines: &[String]| -> Lines {
        lines.iter().enumerate().map(|(at, line)| format!("{:>6}{mark}{line}", first + at)).collect()
    };
    (numbered(old), if dice.roll(2) == 0 { numbered(new) } else { new.to_vec() })
}

/// The middle of both left out; the new text changes the beginning or the end.
fn elision(old: &[String], new: &[String], dice: &mut Dice) -> Option<(Lines, Lines)> {
    if old.len() < 4 || new.len() < 4 {
        return None;
    }
    let (head, tail) = (1 + dice.index(old.len() - 3), 1);
    let is_same = new.get(head..new.len() - tail) == Some(&old[head..old.len() - tail]);
    let dots = ["...", "    ..."][dice.index(2)];
    let short = |lines: &[String]| -> Lines {
        let mut short = lines[..head].to_vec();
        short.push(dots.to_owned());
        short.extend_from_slice(&lines[lines.len() - tail..]);
        short
    };
    is_same.then(|| (short(old), short(new)))
}

fn missing_line(old: &[String], new: &[String], dice: &mut Dice) -> Option<(Lines, Lines)> {
    let inner: Vec<usize> =
        (1..old.len().saturating_sub(1)).filter(|at| !old[*at].trim().is_empty()).collect();
    let at = *inner.get(dice.index(inner.len()))?;
    let mut asked = old.to_vec();
    let lost = asked.remove(at);
    Some((asked, new.iter().filter(|line| **line != lost).cloned().collect()))
}

/// A line with one of its words changed; `None` when it has none.
#[must_use]
pub fn with_other_word(line: &str, dice: &mut Dice) -> Option<String> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, letter) in line.char_indices().filter(|(_, letter)| is_word(*letter)) {
        match words.last_mut() {
            Some(word) if word.end == at => word.end += letter.len_utf8(),
            _ => words.push(at..at + letter.len_utf8()),
        }
    }
    // A letter behind a backslash is no word, and `lt` behind an ampersand is not either.
    words.retain(|word| !line[..word.start].ends_with(['\\', '&']));
    let word = words.get(dice.index(words.len()))?;
    let suffix = ["_next", "2", "Old", "_x"][dice.index(4)];
    Some(format!("{}{suffix}{}", &line[..word.end], &line[word.end..]))
}
