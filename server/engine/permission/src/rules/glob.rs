//! Patterns of one file or folder name: `*`, `?`, `[a-z]` and `\` as in ignore files.
//!
//! Rule: letters are counted, not bytes, and the time is the product of the two lengths at worst. Ready-made matchers
//! count bytes, so that a rule against `?.pem` would let a name of one accented letter through.

/// A pattern of one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NameGlob(Vec<Token>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Token {
    Letter(char),
    Any,
    Star,
    Class { is_negated: bool, ranges: Vec<(char, char)> },
}

/// Whether brackets in a pattern are classes of letters or letters themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brackets {
    /// `[a-z]` is one letter from a to z.
    Class,
    /// `[` is `[`.
    Letter,
}

/// Why a text is no pattern of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BadGlob {
    UnclosedClass,
    ReversedRange(char, char),
    TrailingBackslash,
}

impl NameGlob {
    pub(super) fn parse(text: &str, brackets: Brackets) -> Result<Self, BadGlob> {
        let mut tokens = Vec::new();
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            tokens.push(match letter {
                '\\' => Token::Letter(letters.next().ok_or(BadGlob::TrailingBackslash)?),
                '?' => Token::Any,
                '*' if tokens.last() == Some(&Token::Star) => continue,
                '*' => Token::Star,
                '[' if brackets == Brackets::Class => class(&mut letters)?,
                letter => Token::Letter(letter),
            });
        }
        Ok(Self(tokens))
    }

    /// A text in which `*` alone is special.
    pub(super) fn with_stars(text: &str) -> Self {
        Self(
            text.chars()
                .map(|letter| if letter == '*' { Token::Star } else { Token::Letter(letter) })
                .collect(),
        )
    }

    /// The one name the pattern means, if there is only one.
    pub(super) fn literal(&self) -> Option<String> {
        let letter = |token: &Token| match token {
            Token::Letter(letter) => Some(*letter),
            Token::Any | Token::Star | Token::Class { .. } => None,
        };
        self.0.iter().map(letter).collect()
    }

    /// The letters a name must have to match.
    pub(super) fn letters(&self) -> Letters {
        let letter = |token: &Token| match token {
            Token::Letter(letter) => Some(*letter),
            Token::Any | Token::Star | Token::Class { .. } => None,
        };
        Letters::of(self.0.iter().filter_map(letter))
    }

    /// The extension the pattern means, if it is `*.extension`.
    pub(super) fn extension(&self) -> Option<String> {
        let (Some(Token::Star), Some(Token::Letter('.'))) = (self.0.first(), self.0.get(1)) else {
            return None;
        };
        Self(self.0[2..].to_vec()).literal().filter(|extension| !extension.contains('.'))
    }

    /// The pattern for names that have been folded.
    pub(super) fn folded(&self) -> Self {
        let fold = |token: &Token| match token {
            Token::Letter(letter) => Token::Letter(fold_letter(*letter)),
            Token::Any => Token::Any,
            Token::Star => Token::Star,
            Token::Class { is_negated, ranges } => {
                Token::Class { is_negated: *is_negated, ranges: ranges.clone() }
            }
        };
        Self(self.0.iter().map(fold).collect())
    }

    /// Whether a name matches. For folded names the pattern has to be the folded one.
    pub(super) fn matches(&self, name: &str, is_folded: bool) -> bool {
        let tokens = &self.0;
        let (mut token, mut rest) = (0, name);
        let mut star: Option<(usize, &str)> = None;
        loop {
            let mut letters = rest.chars();
            let letter = letters.next();
            match (tokens.get(token), letter) {
                (None, None) => return true,
                (Some(Token::Star), _) => {
                    token += 1;
                    star = Some((token, rest));
                    continue;
                }
                (Some(expected), Some(letter)) if expected.is(letter, is_folded) => {
                    token += 1;
                    rest = letters.as_str();
                    continue;
                }
                (None | Some(_), _) => {}
            }
            // Nothing fits here: the last star takes one letter more.
            let Some((after, taken)) = &mut star else { return false };
            let mut letters = taken.chars();
            if letters.next().is_none() {
                return false;
            }
            *taken = letters.as_str();
            (token, rest) = (*after, *taken);
        }
    }
}

impl Token {
    fn is(&self, letter: char, is_folded: bool) -> bool {
        match self {
            Self::Letter(expected) => *expected == letter,
            Self::Any | Self::Star => true,
            Self::Class { is_negated, ranges } => {
                let holds = |letter: char| ranges.iter().any(|(from, to)| (*from..=*to).contains(&letter));
                // A negation in one letter case must not slip in through the other, and the reverse.
                let other = || is_folded && simple(letter.to_uppercase()).is_some_and(holds);
                if *is_negated { !holds(letter) || (is_folded && !other()) } else { holds(letter) || other() }
            }
        }
    }
}

/// A set of letters, in which some letters share a place: what it lacks is lacking for sure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Letters(u64);

impl Letters {
    pub(super) fn of(letters: impl Iterator<Item = char>) -> Self {
        Self(letters.fold(0, |set, letter| set | 1 << (u32::from(letter) % u64::BITS)))
    }

    /// Both together.
    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether a name with these letters can have all of `needed`.
    pub(super) fn may_have(self, needed: Self) -> bool {
        needed.0 & !self.0 == 0
    }
}

/// A name with letter case taken out, letter by letter, so that the number of letters stays.
pub(super) fn fold(name: &str) -> String {
    name.chars().map(fold_letter).collect()
}

/// Through the upper case first: some letters have no lower case of their own, but share their upper case with one
/// that has.
fn fold_letter(letter: char) -> char {
    if letter.is_ascii() {
        return letter.to_ascii_lowercase();
    }
    let upper = simple(letter.to_uppercase()).unwrap_or(letter);
    simple(upper.to_lowercase()).unwrap_or(upper)
}

fn simple(mut letters: impl Iterator<Item = char>) -> Option<char> {
    letters.next().filter(|_| letters.next().is_none())
}

/// Reads a class behind its `[`.
fn class(letters: &mut std::str::Chars<'_>) -> Result<Token, BadGlob> {
    let mut ranges = Vec::new();
    let negation = letters.clone().next().filter(|letter| matches!(letter, '!' | '^'));
    if negation.is_some() {
        letters.next();
    }
    let mut is_first = true;
    loop {
        let mut next = || match letters.next() {
            Some('\\') => letters.next().map(|letter| (letter, true)),
            letter => letter.map(|letter| (letter, false)),
        };
        let (from, is_escaped) = next().ok_or(BadGlob::UnclosedClass)?;
        if from == ']' && !is_escaped && !is_first {
            return Ok(Token::Class { is_negated: negation.is_some(), ranges });
        }
        is_first = false;
        let mut ahead = letters.clone();
        let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|letter| letter != ']');
        if !is_range {
            ranges.push((from, from));
            continue;
        }
        letters.next();
        let to = match letters.next() {
            Some('\\') => letters.next(),
            letter => letter,
        };
        let to = to.ok_or(BadGlob::UnclosedClass)?;
        if from > to {
            return Err(BadGlob::ReversedRange(from, to));
        }
        ranges.push((from, to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        NameGlob::parse(pattern, Brackets::Class).unwrap().matches(name, false)
    }

    fn matches_folded(pattern: &str, name: &str) -> bool {
        NameGlob::parse(pattern, Brackets::Class).unwrap().folded().matches(&fold(name), true)
    }

    #[test]
    fn letters_are_counted_and_not_bytes() {
        for (pattern, name, expected) in [
            ("?.pem", "é.pem", true),
            ("??.pem", "é.pem", false),
            ("[é]", "é", true),
            ("[!a]", "é", true),
            ("*a*b", "xaxxb", true),
            ("*a*b", "xaxxbc", false),
            ("", "", true),
            ("*", "", true),
            (r"\*", "*", true),
            (r"\*", "a", false),
            ("[]a]", "]", true),
            ("[a-]", "-", true),
            ("[^a-c]", "b", false),
            (r"[\]]", "]", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn folding_hides_letter_case_only() {
        for (pattern, name, expected) in [
            (".ENV", ".env", true),
            ("[A-Z]x", "qX", true),
            ("[a-z]x", "QX", true),
            ("[A-_]", "a", true),
            ("ſecret", "SECRET", true),
            ("straße", "STRASSE", false),
            ("σας", "ΣΑΣ", true),
        ] {
            assert_eq!(matches_folded(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pattern_of_many_stars_takes_no_time() {
        assert!(!matches(&"*a".repeat(100), &"a".repeat(99)));
        assert!(matches(&"*a".repeat(100), &"a".repeat(1000)));
    }
}
