//! The commands a rule refers to: the text between the parentheses of `Bash(...)`.
//!
//! Rule: printing a pattern and reading it again gives the same pattern. Where a command is not plain text, an
//! allow rule does not cover it and a deny rule does.

use std::fmt;
use std::str::FromStr;

use super::effects::is_safe;
use super::lexer::{PROCESS, RawWord, SUBSTITUTION, word};
use super::wrappers::program;
use super::{Analysis, CommandWord, SimpleCommand, Unknown};
use kode_base::path_style::PathStyle;

/// The commands a rule refers to.
///
/// - `a b` refers to that command and its very arguments.
/// - `a b:*` and `a b *` refer to every command that begins with these arguments.
/// - `*` anywhere else represents any text, also across arguments: `ls*` refers to `ls -l` and of `lsof`.
///
/// Quotes and backslashes mean what they mean in a shell; `\*` is a star.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommandPattern {
    text: String,
    shape: PatternShape,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum PatternShape {
    All,
    Exact(Vec<String>),
    Prefix(Vec<String>),
    /// Text and stars; arguments are joined by [`GAP`].
    Glob(Vec<Piece>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Piece {
    Char(char),
    Star,
}

/// Is between arguments: no argument can hold it.
const GAP: char = '\0';

/// How many options before the first operand are looked past.
const MAX_READINGS: usize = 64;

/// Options of git that take a value.
const GIT_VALUES: [&str; 6] = ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"];
/// Options of git that take no value; any other option may take one.
const GIT_FLAGS: [&str; 9] = [
    "-p",
    "-P",
    "--paginate",
    "--no-pager",
    "--bare",
    "--no-replace-objects",
    "--literal-pathspecs",
    "--no-optional-locks",
    "--no-lazy-fetch",
];

/// Why a text is no command pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// There is nothing in it.
    #[error("the command is empty; write `Bash` without parentheses for all commands")]
    Empty,
    /// It holds a character that no command line can hold in one line.
    #[error("the command holds a control character (U+{:04X}); leave it out", u32::from(*.0))]
    Control(char),
    /// It joins several commands.
    #[error("the command holds `{0}` outside quotes; write one rule for each command")]
    Operator(char),
}

impl FromStr for CommandPattern {
    type Err = BadPattern;

    fn from_str(text: &str) -> Result<Self, BadPattern> {
        Self::read(text, '\\')
    }
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

fn shape(text: &str, escape: char) -> Result<PatternShape, BadPattern> {
    let text = text.trim();
    if text == "*" || text == ":*" {
        return Ok(PatternShape::All);
    }
    let (body, prefix) = match text.strip_suffix(":*").or_else(|| text.strip_suffix(" *")) {
        Some(body) => (body.trim_end(), true),
        None => (text, false),
    };
    let words = words(body, escape)?;
    let starred = words.iter().any(|pieces| pieces.contains(&Piece::Star));
    if starred {
        let mut glob = words.join(&Piece::Char(GAP));
        if prefix {
            // `a* b:*` ends at the word or continues with others.
            glob.extend([Piece::Char(GAP), Piece::Star]);
        }
        return Ok(PatternShape::Glob(glob));
    }
    let plain = words.iter().map(|pieces| pieces.iter().filter_map(|piece| piece.char()).collect()).collect();
    Ok(if prefix { PatternShape::Prefix(plain) } else { PatternShape::Exact(plain) })
}

impl Piece {
    fn folded(self) -> Vec<Self> {
        match self {
            Self::Char(c) => c.to_lowercase().map(Self::Char).collect(),
            Self::Star => vec![Self::Star],
        }
    }

    fn char(self) -> Option<char> {
        match self {
            Self::Char(c) => Some(c),
            Self::Star => None,
        }
    }
}

/// Splits a pattern into words, quotes taken away and stars kept apart from quoted ones. A letter behind `escape` is only a letter.
fn words(text: &str, escape: char) -> Result<Vec<Vec<Piece>>, BadPattern> {
    let mut words = Vec::new();
    let mut current: Option<Vec<Piece>> = None;
    let mut quote = None;
    // A pattern with a quote that never ends means the character.
    let quotes = |mark: char| text.matches(mark).count().is_multiple_of(2);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(mark), _) if c == mark => quote = None,
            (Some('"') | None, _) if c == escape => {
                current.get_or_insert_default().extend(chars.next().map(Piece::Char));
            }
            (Some(_), _) => current.get_or_insert_default().push(Piece::Char(c)),
            (None, '\'' | '"') if quotes(c) => {
                quote = Some(c);
                current.get_or_insert_default();
            }
            (None, ' ') => words.extend(current.take()),
            (None, ';' | '|' | '&' | '<' | '>') => return Err(BadPattern::Operator(c)),
            (None, '*') => current.get_or_insert_default().push(Piece::Star),
            (None, _) => current.get_or_insert_default().push(Piece::Char(c)),
        }
    }
    words.extend(current);
    Ok(words)
}

impl CommandPattern {
    /// A pattern in the language of PowerShell: a backtick does what a backslash does for bash, and an alias is its command.
    ///
    /// # Errors
    /// [`BadPattern`].
    pub fn of_powershell(text: &str) -> Result<Self, BadPattern> {
        let mut pattern = Self::read(text, '`')?;
        if let PatternShape::Exact(words) | PatternShape::Prefix(words) = &mut pattern.shape
            && let Some(first) = words.first_mut()
            && let Some(name) = super::powershell::canonical(first)
        {
            name.clone_into(first);
        }
        Ok(pattern)
    }

    fn read(text: &str, escape: char) -> Result<Self, BadPattern> {
        if text.trim().is_empty() {
            return Err(BadPattern::Empty);
        }
        if let Some(control) = text.chars().find(|c| c.is_control()) {
            return Err(BadPattern::Control(control));
        }
        Ok(Self { text: text.to_owned(), shape: shape(text, escape)? })
    }

    /// The same pattern in small letters, to be held against [`Analysis::folded`].
    #[must_use]
    pub fn folded(&self) -> Self {
        let fold = |words: &[String]| words.iter().map(|word| word.to_lowercase()).collect();
        let shape = match &self.shape {
            PatternShape::All => PatternShape::All,
            PatternShape::Exact(words) => PatternShape::Exact(fold(words)),
            PatternShape::Prefix(words) => PatternShape::Prefix(fold(words)),
            PatternShape::Glob(pieces) => {
                PatternShape::Glob(pieces.iter().flat_map(|piece| piece.folded()).collect())
            }
        };
        Self { text: self.text.clone(), shape }
    }

    /// A pattern for exactly these arguments.
    pub(super) fn exact(argv: &[String]) -> Option<Self> {
        quoted(argv)?.parse().ok()
    }

    /// A pattern for every command that begins with these arguments.
    pub(super) fn prefix(argv: &[String]) -> Option<Self> {
        format!("{}:*", quoted(argv)?).parse().ok()
    }

    /// Whether an allow rule with this text lets the command run. A program that is not named in plain text, and
    /// variables set for it that could change what it runs, are never allowed. `a b` takes plain arguments only;
    /// with a star, arguments that expand are covered unless they could turn into an option that runs programs.
    #[must_use]
    pub fn allows(&self, command: &SimpleCommand) -> bool {
        let named = command.argv.first().is_some_and(|name| name.literal);
        if !named || !command.assignments.iter().all(is_safe) {
            return false;
        }
        let plain = command.argv.iter().all(|word| word.literal);
        let texts = || command.argv.iter().map(|word| word.text.as_str());
        match &self.shape {
            PatternShape::All => true,
            PatternShape::Exact(words) => plain && words.iter().map(String::as_str).eq(texts()),
            PatternShape::Prefix(words) => {
                command.prefix_covered
                    && words.len() <= command.argv.len()
                    && words
                        .iter()
                        .zip(&command.argv)
                        .all(|(word, given)| given.literal && *word == given.text)
            }
            PatternShape::Glob(pieces) => {
                command.prefix_covered && glob_matches(pieces, &command.argv, Expansion::Text)
            }
        }
    }

    /// Whether a deny or ask rule with this text concerns any part of a line: any command, also inside wrappers and
    /// scripts, whatever variables are set for it, by the program's name with and without its folder, and whatever
    /// options stand before or between the arguments that the rule names. An argument
    /// that expands is treated as anything that the rule names. Unknown text concerns the rule when it is opaque, or
    /// when the rule's words are in its text in their order, once quotes are taken away; the commands inside a
    /// substitution speak for themselves.
    #[must_use]
    pub fn forbids(&self, analysis: &Analysis) -> bool {
        self.first_forbidden(analysis).is_some()
    }

    /// The part of a line that [`CommandPattern::forbids`] is about, unchanged in the line.
    #[must_use]
    pub fn first_forbidden<'a>(&self, analysis: &'a Analysis) -> Option<&'a str> {
        let mut commands = analysis.commands.iter();
        let command = commands.find(|command| self.concerns(command, Expansion::Anything));
        let unknown = || analysis.unknowns.iter().find(|unknown| self.may_concern(unknown));
        command
            .map(|command| command.text.as_str())
            .or_else(|| unknown().map(|unknown| unknown.text.as_str()))
    }

    /// Whether a deny rule with this text refers to a command of a line whatever its variables hold.
    #[must_use]
    pub fn surely_forbids(&self, analysis: &Analysis) -> bool {
        analysis.commands.iter().any(|command| {
            command.argv.first().is_some_and(|name| name.literal) && self.concerns(command, Expansion::Text)
        })
    }

    fn concerns(&self, command: &SimpleCommand, expansion: Expansion) -> bool {
        let Some(name) = command.argv.first() else { return false };
        let base = program(name);
        let mut readings = vec![command.argv.clone()];
        // `./x` is a program of the folder's own; every other path may lead to the system's.
        let own = name.text == format!("./{base}") && !runs_among_programs(command);
        if base != name.text && !own {
            let mut argv = command.argv.clone();
            argv[0].text = base.to_owned();
            readings.push(argv);
        }
        let shorter: Vec<Vec<CommandWord>> = readings.iter().flat_map(|argv| without_options(argv)).collect();
        let words = match &self.shape {
            PatternShape::Prefix(words) => words.as_slice(),
            PatternShape::All | PatternShape::Exact(_) | PatternShape::Glob(_) => &[],
        };
        if readings.iter().any(|argv| begins_among_options(words, argv, expansion)) {
            return true;
        }
        readings.extend(shorter);
        let pieces = self.pieces();
        readings.iter().any(|argv| glob_matches(&pieces, argv, expansion))
            || matches!(self.shape, PatternShape::Prefix(_))
                && readings.iter().any(|argv| {
                    // The prefix without anything after it.
                    glob_matches(&pieces[..pieces.len().saturating_sub(2)], argv, expansion)
                })
    }

    fn pieces(&self) -> Vec<Piece> {
        let join = |words: &[String]| -> Vec<Piece> {
            words.join(&GAP.to_string()).chars().map(Piece::Char).collect()
        };
        match &self.shape {
            PatternShape::All => vec![Piece::Star],
            PatternShape::Exact(words) => join(words),
            PatternShape::Prefix(words) => {
                let mut pieces = join(words);
                pieces.extend([Piece::Char(GAP), Piece::Star]);
                pieces
            }
            PatternShape::Glob(pieces) => pieces.clone(),
        }
    }

    fn may_concern(&self, unknown: &Unknown) -> bool {
        if unknown.opaque {
            return true;
        }
        // The commands inside a substitution are listed, so that the rule was held against each of them.
        if [SUBSTITUTION, PROCESS].contains(&unknown.reason.as_str()) {
            return false;
        }
        let text: String = unknown.text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
        let pieces = self.pieces();
        let words = pieces.split(|piece| matches!(piece, Piece::Star | Piece::Char(GAP)));
        let mut rest = text.as_str();
        for (at, word) in words.enumerate() {
            let word: String = word.iter().filter_map(|piece| piece.char()).collect();
            let found = match at {
                0 => after_name(rest, PathStyle::HERE.program_name(&word)),
                _ => rest.split_once(word.as_str()).map(|(_, after)| after),
            };
            match found {
                Some(after) => rest = after,
                None => return false,
            }
        }
        true
    }
}

/// The text after a program's name, where a text names it.
fn after_name<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let ends = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut places = text.match_indices(name);
    let at = places.find(|(at, _)| name.is_empty() || ends(text[..*at].chars().next_back()))?.0;
    text.get(at + name.len()..)
}

/// A command without the options that stand before its first operand, in every reading of which of them take a
/// value: `git -C x push` as `git push`.
fn without_options(argv: &[CommandWord]) -> Vec<Vec<CommandWord>> {
    let mut reached = vec![false; argv.len() + 1];
    reached[1.min(argv.len())] = true;
    let mut readings = Vec::new();
    for at in 1..argv.len() {
        if !reached[at] {
            continue;
        }
        if at > 1 && readings.len() < MAX_READINGS {
            readings.push(argv[..1].iter().chain(&argv[at..]).cloned().collect());
        }
        for next in skips(argv, at) {
            reached[next] = true;
        }
    }
    readings
}

/// Whether a command begins with these words when options may stand between them.
fn begins_among_options(words: &[String], argv: &[CommandWord], expansion: Expansion) -> bool {
    let Some((name, _)) = words.split_first() else { return false };
    if argv.first().is_none_or(|given| given.text != *name) {
        return false;
    }
    // `reached[at]`: how many of the words can have been found before this argument.
    let mut reached = vec![vec![false; words.len() + 1]; argv.len() + 1];
    reached[1][1] = true;
    for at in 1..argv.len() {
        let skips = skips(argv, at);
        for found in 1..words.len() {
            if !reached[at][found] {
                continue;
            }
            let expands = !argv[at].literal && expansion == Expansion::Anything;
            if expands && argv[at].open {
                return true;
            }
            if expands || argv[at].text == words[found] {
                reached[at + 1][found + 1] = true;
            }
            for next in &skips {
                reached[*next][found] = true;
            }
        }
    }
    reached.iter().any(|found| found[words.len()])
}

/// Where reading continues after an option, with and without a value; nowhere after an operand.
fn skips(argv: &[CommandWord], at: usize) -> Vec<usize> {
    let text = argv[at].text.as_str();
    // `cargo +nightly build` chooses a toolchain.
    if text.starts_with('+') {
        return vec![at + 1];
    }
    if !text.starts_with('-') {
        return Vec::new();
    }
    let git = program(&argv[0]) == "git";
    if git && GIT_VALUES.contains(&text) {
        return vec![(at + 2).min(argv.len())];
    }
    let flag = git && GIT_FLAGS.contains(&text);
    let alone = flag || text == "--" || text.contains('=');
    if alone { vec![at + 1] } else { vec![at + 1, (at + 2).min(argv.len())] }
}

fn runs_among_programs(command: &SimpleCommand) -> bool {
    command.directory.as_ref().is_none_or(|directory| directory.file_name().ends_with("bin"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expansion {
    /// A word that expands is the text that is in the line.
    Text,
    /// A word that expands may be anything.
    Anything,
}

/// Whether text and stars fit a command; both may hold stars.
fn glob_matches(pattern: &[Piece], argv: &[CommandWord], reading: Expansion) -> bool {
    let mut text = Vec::new();
    for (at, word) in argv.iter().enumerate() {
        if at > 0 {
            text.push(Piece::Char(GAP));
        }
        if word.literal || reading == Expansion::Text {
            text.extend(word.text.chars().map(Piece::Char));
        } else {
            text.push(Piece::Star);
        }
    }
    // `reach[j]`: the text read so far fits the first `j` pieces of the pattern.
    let close = |reach: &mut [bool]| {
        for (at, piece) in pattern.iter().enumerate() {
            if *piece == Piece::Star && reach[at] {
                reach[at + 1] = true;
            }
        }
    };
    let mut reach = vec![false; pattern.len() + 1];
    reach[0] = true;
    close(&mut reach);
    for piece in text {
        let mut next = vec![false; pattern.len() + 1];
        for at in 0..=pattern.len() {
            if !reach[at] {
                continue;
            }
            match piece {
                // A star in the text may stand for any part of the pattern.
                Piece::Star => next[at..].fill(true),
                Piece::Char(_) if pattern.get(at) == Some(&piece) => next[at + 1] = true,
                Piece::Char(_) => {}
            }
            if pattern.get(at) == Some(&Piece::Star) && piece != Piece::Star {
                next[at] = true;
            }
        }
        close(&mut next);
        reach = next;
    }
    reach[pattern.len()]
}

/// Arguments as a pattern that reads back to them; `None` when they cannot are in one.
fn quoted(argv: &[String]) -> Option<String> {
    let mut texts = Vec::new();
    for argument in argv {
        let reading: RawWord = word(argument, 0);
        let plain = reading.end == argument.len()
            && reading.text == *argument
            && !reading.expands
            && reading.problems.is_empty()
            && !argument.contains([' ', '*', '\'', '"', '\\'])
            && !argument.is_empty();
        if argument.contains(['\'', '"']) || argument.chars().any(char::is_control) {
            return None;
        }
        texts.push(if plain { argument.clone() } else { format!("'{argument}'") });
    }
    Some(texts.join(" "))
}
