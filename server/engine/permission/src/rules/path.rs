//! Patterns of paths as rules write them: ignore-file patterns behind an anchor.
//!
//! Rule: printing a pattern and reading it again gives the same pattern, and a text that could be treated as a pattern but
//! would match nothing is an error with what to write instead.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::glob::{BadGlob, Brackets, NameGlob};
use kode_base::path_style::{PathStyle, is_drive};
use kode_base::paths::AbsPath;

/// Into how many patterns the braces of one may unfold.
const MAX_VARIANTS: usize = 64;
/// How long a pattern may be, in bytes.
const MAX_LENGTH: usize = 4096;

/// A pattern of paths.
///
/// `//x` is `x` at the root of the file system, which has the drives of Windows as its folders (`//C:/x`, or `C:/x` for short),
/// `~/x` in the home folder, `/x` in the folder the settings file belongs
/// to, `./x` in the working directory. Anything else is relative to the working directory; without a slash before its
/// end it means names at any depth. `*`, `?`, `[a-z]`, `**` and `\` are those of ignore files, `{a,b}` is either.
/// The content of a matching folder matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PathPattern {
    text: String,
    anchor: PathAnchor,
    variants: Vec<PatternVariant>,
    /// The variants with brackets and braces treated as letters, where there are any.
    literally: Option<PatternVariant>,
}

/// Where a pattern begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathAnchor {
    /// `//x`: the root of the file system.
    Root,
    /// `~/x`: the home folder.
    Home,
    /// `/x`: the folder the settings file belongs to.
    Settings,
    /// Everything else: the working directory.
    Directory,
}

/// One way to unfold the braces of a pattern.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PatternVariant {
    /// How many folders above the anchor it begins.
    pub(super) up: usize,
    /// The names, from the anchor down.
    pub(super) segments: Vec<PathSegment>,
    /// Whether it refers to the last name itself or only to its content.
    pub(super) cover: Cover,
}

/// A part of a pattern between slashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum PathSegment {
    /// `**`: any number of folders.
    Deep,
    /// A name.
    Name(String),
    /// A pattern of names.
    Glob(NameGlob),
}

/// The range of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Cover {
    /// The matching path, and its content.
    All,
    /// The content of the matching path: the pattern ends in `/` or `/**`.
    Contents,
}

/// Why a text is no pattern of paths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// There is nothing in it.
    #[error("the path is empty; write the tool's name without parentheses for all files")]
    Empty,
    /// It is longer than any path.
    #[error("the path is longer than {MAX_LENGTH} bytes; write several rules")]
    TooLong,
    /// A blank at an end is most likely not meant.
    #[error("the path begins or ends with a blank; remove it, or write `\\ ` where it is part of a name")]
    Blank,
    /// A character no path has.
    #[error("the path holds the control character U+{:04X}; take it away", u32::from(*.0))]
    Control(char),
    /// An exception, which a single rule cannot be.
    #[error("a rule cannot be an exception from others; write `\\!` for a name that begins with `!`")]
    Exception,
    /// A path of Windows as Windows writes it.
    #[error("a `\\` keeps the letter behind it from being part of a pattern; write `{0}`")]
    Backslashes(String),
    /// Another user's home folder.
    #[error("`{0}` is not known here; write `~/` for your own home folder or the whole path after `//`")]
    OtherHome(String),
    /// `..` behind a pattern.
    #[error("`..` can only be at the beginning; write the path without it")]
    Parent,
    /// A `[` without `]`.
    #[error("`[` is not closed; write `\\[` for the letter itself")]
    UnclosedClass,
    /// A range the wrong way round.
    #[error("the range `{0}-{1}` is empty; write the lower letter first")]
    ReversedRange(char, char),
    /// A `{` without `}`.
    #[error("`{{` is not closed; write `\\{{` for the letter itself")]
    UnclosedBrace,
    /// Braces that unfold into too much.
    #[error("the braces stand for more than {MAX_VARIANTS} paths; write several rules")]
    TooManyVariants,
    /// A backslash with nothing behind it.
    #[error("a `\\` is at the end of a name; write `/` between names, and `\\\\` for the letter itself")]
    TrailingBackslash,
}

impl PathPattern {
    /// The pattern of this very path, whatever letters are in it, and of its content.
    #[must_use]
    pub fn exactly(path: &AbsPath) -> Self {
        Self::beneath("//", names(path))
    }

    /// The pattern of this very path, anchored in the folder the settings file belongs to; that of the whole path
    /// where it does not lie there.
    #[must_use]
    pub fn exactly_within(path: &AbsPath, settings: &AbsPath) -> Self {
        match path.as_path().strip_prefix(settings.as_path()) {
            Ok(rest) => {
                let names = rest.components().map(|name| name.as_os_str().to_string_lossy().into_owned());
                Self::beneath("/", names.collect())
            }
            Err(_) => Self::exactly(path),
        }
    }

    fn beneath(anchor: &str, names: Vec<String>) -> Self {
        let mut text = anchor.to_owned();
        let mut segments = Vec::new();
        for name in names {
            if !segments.is_empty() {
                text.push('/');
            }
            for letter in name.chars() {
                if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | ' ') {
                    text.push('\\');
                }
                text.push(letter);
            }
            segments.push(PathSegment::Name(name));
        }
        let anchor = if anchor == "//" { PathAnchor::Root } else { PathAnchor::Settings };
        Self {
            text,
            anchor,
            variants: vec![PatternVariant { up: 0, segments, cover: Cover::All }],
            literally: None,
        }
    }

    /// Where it begins.
    #[must_use]
    pub fn anchor(&self) -> PathAnchor {
        self.anchor
    }

    /// Whether it means names wherever they are, by having neither an anchor nor a slash before its end, or `**/` first.
    pub(super) fn is_anywhere(&self) -> bool {
        let begins_anywhere = |variant: &PatternVariant| variant.segments.first() == Some(&PathSegment::Deep);
        self.anchor == PathAnchor::Directory
            && !self.text.starts_with("./")
            && self.variants.iter().all(begins_anywhere)
    }

    /// Its ways to be unfolded.
    pub(super) fn variants(&self) -> &[PatternVariant] {
        &self.variants
    }

    /// The same with brackets and braces treated as letters, where there are any.
    pub(super) fn literally(&self) -> Option<&PatternVariant> {
        self.literally.as_ref()
    }
}

impl FromStr for PathPattern {
    type Err = BadPath;

    fn from_str(text: &str) -> Result<Self, BadPath> {
        if text.is_empty() {
            return Err(BadPath::Empty);
        }
        if text.len() > MAX_LENGTH {
            return Err(BadPath::TooLong);
        }
        if text.starts_with(' ') || (text.ends_with(' ') && !text.ends_with("\\ ")) {
            return Err(BadPath::Blank);
        }
        if let Some(control) = text.chars().find(|letter| letter.is_control()) {
            return Err(BadPath::Control(control));
        }
        if text.starts_with('!') {
            return Err(BadPath::Exception);
        }
        let (anchor, rest, is_anchored) = anchored(text)?;
        let mut unfolded = Vec::new();
        unfold(rest, &mut unfolded)?;
        let variants = unfolded
            .iter()
            .map(|text| variant(text, is_anchored, Brackets::Class))
            .collect::<Result<Vec<_>, _>>()?;
        let has_brackets = rest.contains(['[', '{']);
        let literally = if has_brackets { variant(rest, is_anchored, Brackets::Letter).ok() } else { None };
        Ok(Self { text: text.to_owned(), anchor, variants, literally })
    }
}

impl fmt::Display for PathPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The names of a path from the root down, as rules compare them.
pub(super) fn names(path: &AbsPath) -> Vec<String> {
    PathStyle::HERE.names(&path.as_path().to_string_lossy()).into_iter().map(Cow::into_owned).collect()
}

/// The anchor, what follows it, and whether that begins right there.
fn anchored(text: &str) -> Result<(PathAnchor, &str, bool), BadPath> {
    if let Some(rest) = text.strip_prefix("//") {
        return Ok((PathAnchor::Root, rest, true));
    }
    if let Some(rest) = text.strip_prefix('~') {
        let (user, rest) = rest.split_once('/').unwrap_or((rest, ""));
        return match user {
            "" => Ok((PathAnchor::Home, rest, true)),
            _ => Err(BadPath::OtherHome(format!("~{user}"))),
        };
    }
    if text.get(..2).is_some_and(is_drive) {
        match text.as_bytes().get(2) {
            None | Some(b'/') => return Ok((PathAnchor::Root, text, true)),
            Some(b'\\') => return Err(BadPath::Backslashes(text.replace('\\', "/"))),
            Some(_) => {}
        }
    }
    if let Some(rest) = text.strip_prefix('/') {
        return Ok((PathAnchor::Settings, rest, true));
    }
    if text == "." || text == ".." {
        return Ok((PathAnchor::Directory, text, true));
    }
    match text.strip_prefix("./") {
        Some(rest) => Ok((PathAnchor::Directory, rest, true)),
        None => Ok((PathAnchor::Directory, text, false)),
    }
}

/// Unfolds the first braces that hold a comma, and then those in the results.
fn unfold(text: &str, into: &mut Vec<String>) -> Result<(), BadPath> {
    let Some((before, choices, after)) = first_braces(text)? else {
        if into.len() == MAX_VARIANTS {
            return Err(BadPath::TooManyVariants);
        }
        into.push(text.to_owned());
        return Ok(());
    };
    choices.iter().try_for_each(|choice| unfold(&format!("{before}{choice}{after}"), into))
}

type Braces<'a> = (&'a str, Vec<&'a str>, &'a str);

fn first_braces(text: &str) -> Result<Option<Braces<'_>>, BadPath> {
    let (mut depth, mut start, mut part) = (0_usize, 0, 0);
    let mut choices = Vec::new();
    let mut is_escaped = false;
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '{' => {
                depth += 1;
                if depth == 1 {
                    (start, part) = (at, at + 1);
                    choices.clear();
                }
            }
            ',' if depth == 1 => {
                choices.push(&text[part..at]);
                part = at + 1;
            }
            '}' if depth == 1 && choices.is_empty() => depth = 0,
            '}' if depth == 1 => {
                choices.push(&text[part..at]);
                return Ok(Some((&text[..start], choices, &text[at + 1..])));
            }
            '}' if depth > 1 => depth -= 1,
            _ => {}
        }
    }
    if depth == 0 { Ok(None) } else { Err(BadPath::UnclosedBrace) }
}

fn variant(text: &str, is_anchored: bool, brackets: Brackets) -> Result<PatternVariant, BadPath> {
    let text = text.strip_prefix("./").unwrap_or(text);
    // A backslash before a slash is left at the end of its name, to be complained about.
    let mut parts: Vec<&str> = text.split('/').collect();
    let is_of_folders = parts.len() > 1 && parts.last() == Some(&"");
    if is_of_folders || parts == [""] {
        parts.pop();
    }
    let mut is_of_contents = is_of_folders;
    while parts.last() == Some(&"**") {
        is_of_contents = true;
        parts.pop();
        if is_of_folders && parts.last() != Some(&"**") {
            // `a/**/`: the folders in `a`, not `a`.
            parts.push("*");
        }
    }
    let cover = if is_of_contents { Cover::Contents } else { Cover::All };
    let is_anywhere = match parts.as_slice() {
        [] => true,
        [name] => *name != ".." && *name != "." && !text.trim_end_matches('/').contains('/'),
        _ => false,
    };
    let mut up = 0;
    let mut segments = Vec::new();
    if is_anywhere && !is_anchored {
        segments.push(PathSegment::Deep);
    }
    for part in parts {
        match part {
            "" | "." => {}
            ".." if segments.is_empty() => up += 1,
            ".." => match segments.pop() {
                Some(PathSegment::Name(_)) => {}
                Some(PathSegment::Deep | PathSegment::Glob(_)) | None => return Err(BadPath::Parent),
            },
            "**" if segments.last() == Some(&PathSegment::Deep) => {}
            "**" => segments.push(PathSegment::Deep),
            part => {
                let glob = NameGlob::parse(part, brackets)?;
                segments.push(glob.literal().map_or(PathSegment::Glob(glob), PathSegment::Name));
            }
        }
    }
    Ok(PatternVariant { up, segments, cover })
}

impl From<BadGlob> for BadPath {
    fn from(bad: BadGlob) -> Self {
        match bad {
            BadGlob::UnclosedClass => Self::UnclosedClass,
            BadGlob::ReversedRange(from, to) => Self::ReversedRange(from, to),
            BadGlob::TrailingBackslash => Self::TrailingBackslash,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_match_nothing_is_an_error_that_says_what_to_write() {
        for (text, error) in [
            ("", BadPath::Empty),
            (" a", BadPath::Blank),
            ("a ", BadPath::Blank),
            ("a\nb", BadPath::Control('\n')),
            ("!a", BadPath::Exception),
            (r"C:\Users\a*", BadPath::Backslashes("C:/Users/a*".to_owned())),
            ("~root/a", BadPath::OtherHome("~root".to_owned())),
            ("*/../a", BadPath::Parent),
            ("a[bc", BadPath::UnclosedClass),
            ("a[z-a]", BadPath::ReversedRange('z', 'a')),
            ("a{b,c", BadPath::UnclosedBrace),
            ("a\\", BadPath::TrailingBackslash),
            (&"{a,b}".repeat(7), BadPath::TooManyVariants),
            (&"a".repeat(MAX_LENGTH + 1), BadPath::TooLong),
        ] {
            assert_eq!(text.parse::<PathPattern>(), Err(error), "{text}");
        }
    }

    #[test]
    fn a_drive_is_a_folder_at_the_root_and_reads_as_itself() {
        for (path, rule) in [
            (r"c:\Users\Ada [x]\a.rs", r"//C:/Users/Ada\ \[x\]/a.rs"),
            (r"\\server\share\a", r"//\\\\server\\share/a"),
        ] {
            let names = PathStyle::Windows.names(path).into_iter().map(Cow::into_owned).collect();
            let exact = PathPattern::beneath("//", names);
            assert_eq!(exact.to_string(), rule);
            let again: PathPattern = rule.parse().unwrap();
            assert_eq!((again.variants, again.anchor), (exact.variants, PathAnchor::Root), "{rule}");
        }
        let (short, long): (PathPattern, PathPattern) =
            ("C:/Users/*".parse().unwrap(), "//C:/Users/*".parse().unwrap());
        assert_eq!((short.variants, short.anchor), (long.variants, long.anchor));
        for no_drive in ["C:x", "CC:/x"] {
            assert_eq!(no_drive.parse::<PathPattern>().unwrap().anchor, PathAnchor::Directory, "{no_drive}");
        }
    }

    #[test]
    fn the_pattern_of_a_very_path_reads_as_itself() {
        for path in ["/w/app/[id]/{a,b}/page *?.tsx", "/w/!a", "/w/ a ", "/w/a\\b", "/"] {
            let path = AbsPath::new(path).unwrap();
            for pattern in [
                PathPattern::exactly(&path),
                PathPattern::exactly_within(&path, &AbsPath::new("/w").unwrap()),
            ] {
                let again: PathPattern = pattern.to_string().parse().unwrap();
                assert_eq!(again.variants, pattern.variants, "{pattern}");
                assert_eq!(again.anchor, pattern.anchor);
            }
        }
    }
}
