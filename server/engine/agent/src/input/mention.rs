//! The mentions of a text: words that begin with `@`.
//!
//! Rule: this only parses. The caller checks whether the thing exists; a mention of a missing one stays text. An `@` inside a
//! word or in code is no mention.

use kode_config::memory::spans::without_spans;
use kode_record::prompt::{DiffOf, LineSpan};

/// The most mentions of one text.
pub const MAX_MENTIONS: usize = 50;

/// Ends of a word that are punctuation of the sentence and not of a name.
const PUNCTUATION: [char; 20] = [
    '.', ',', ';', ':', '!', '?', ')', ']', '}', '\'', '"', '`', '>', '*', '，', '。', '；', '：', '！', '？',
];

/// A mention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The named thing.
    pub named: MentionTarget,
    /// Whether it is in quotes: then it is a mention even where the thing is missing.
    pub is_quoted: bool,
    /// Its text.
    pub written: String,
}

/// The thing that a mention names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MentionTarget {
    /// A file or folder.
    Path {
        /// As written.
        path: String,
        /// The lines.
        lines: Option<LineSpan>,
    },
    /// A definition.
    Symbol(String),
    /// The diagnostics of a file, or all.
    Diagnostics(Option<String>),
    /// A diff of the repository.
    Diff(DiffOf),
    /// Another conversation.
    Session(String),
    /// A resource of an MCP server.
    Resource {
        /// The server.
        server: String,
        /// Its address there.
        uri: String,
    },
}

/// The mentions of a text, in order, each once.
#[must_use]
pub fn mentions(text: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    for line in prose(text) {
        let mut at = 0;
        while let Some(next) = line[at..].find('@').map(|next| at + next) {
            at = next + 1;
            let before = line[..next].chars().next_back();
            if before.is_some_and(|char| !char.is_whitespace() && !"([{\"'`,;:<（，。；：、".contains(char))
            {
                continue;
            }
            let Some((mention, length)) = mention(&line[at..]) else { continue };
            at += length;
            if !found.contains(&mention) && found.len() < MAX_MENTIONS {
                found.push(mention);
            }
        }
    }
    found
}

/// The lines of a text without code: fenced blocks, and spans in backquotes.
fn prose(text: &str) -> Vec<String> {
    let mut fence: Option<&str> = None;
    let mut lines = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => lines.push(without_spans(line)),
        }
    }
    lines
}

/// The text after an `@`, and how many bytes of the text it takes.
fn mention(after: &str) -> Option<(Mention, usize)> {
    let made = |named, is_quoted, length: usize| {
        Some((Mention { named, is_quoted, written: format!("@{}", &after[..length]) }, length))
    };
    if let Some(quoted) = after.strip_prefix('"') {
        let end = quoted.find('"').filter(|end| *end > 0)?;
        let rest = &quoted[end + 1..];
        let suffix = word(rest);
        let (lines, taken) = match range(suffix) {
            Some(("", lines)) => (Some(lines), suffix.len()),
            Some(_) | None => (None, 0),
        };
        let path = quoted[..end].to_owned();
        return made(MentionTarget::Path { path, lines }, true, end + 2 + taken);
    }
    if let Some(quoted) = after.strip_prefix("session:\"") {
        let end = quoted.find('"').filter(|end| *end > 0)?;
        return made(MentionTarget::Session(quoted[..end].to_owned()), true, "session:\"".len() + end + 1);
    }
    let word = word(after);
    if word.is_empty() {
        return None;
    }
    made(named(word)?, false, word.len())
}

/// The word at the beginning of a text, without the punctuation behind it.
fn word(text: &str) -> &str {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    text[..end].trim_end_matches(PUNCTUATION)
}

fn named(word: &str) -> Option<MentionTarget> {
    let (head, rest) = match word.split_once(':') {
        Some((head, rest)) => (head, Some(rest)),
        None => (word, None),
    };
    Some(match (head, rest) {
        ("diagnostics", path) => MentionTarget::Diagnostics(path.map(str::to_owned)),
        ("diff", None) => MentionTarget::Diff(DiffOf::Head),
        ("diff", Some("staged")) => MentionTarget::Diff(DiffOf::Staged),
        ("diff", Some(revision)) => MentionTarget::Diff(DiffOf::Revision(revision.to_owned())),
        ("session", Some(session)) => MentionTarget::Session(session.to_owned()),
        ("symbol", Some(name)) => MentionTarget::Symbol(is_symbol(name).then(|| name.to_owned())?),
        _ => match word.strip_prefix('#') {
            Some(name) => MentionTarget::Symbol(is_symbol(name).then(|| name.to_owned())?),
            None => match (resource(word), range(word)) {
                (Some((server, uri)), _) => {
                    MentionTarget::Resource { server: server.to_owned(), uri: uri.to_owned() }
                }
                (None, Some((path, lines))) if !path.is_empty() => {
                    MentionTarget::Path { path: path.to_owned(), lines: Some(lines) }
                }
                (None, Some(_) | None) => MentionTarget::Path { path: word.to_owned(), lines: None },
            },
        },
    })
}

/// A server with the address of something it has: `server:scheme://…`.
fn resource(word: &str) -> Option<(&str, &str)> {
    let (server, uri) = word.split_once(':')?;
    let (scheme, rest) = uri.split_once(':')?;
    let is_scheme = scheme.starts_with(|char: char| char.is_ascii_alphabetic())
        && scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+.-".contains(char));
    let is_server = !server.is_empty() && !server.contains(['/', '\\']);
    (is_scheme && is_server && !rest.is_empty()).then_some((server, uri))
}

/// Whether a text can be the name of something in code, with or without what it lies in.
fn is_symbol(name: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || matches!(char, '_' | '$' | ':' | '.');
    name.chars().all(is_part) && name.chars().any(|char| char.is_alphabetic() || char == '_')
}

/// A name with lines behind it: `#L10-20`, `#L10-L20`, `#L10`, `:10-20`, `:10`.
fn range(word: &str) -> Option<(&str, LineSpan)> {
    let (name, lines) = match word.rsplit_once("#L") {
        Some((name, lines)) => (name, lines),
        None => word.rsplit_once(':')?,
    };
    let (first, last) = match lines.split_once('-') {
        Some((first, last)) => (first, last.strip_prefix('L').unwrap_or(last)),
        None => (lines, lines),
    };
    let number = |text: &str| text.parse::<u32>().ok().filter(|number| *number > 0);
    let (first, last) = (number(first)?, number(last)?);
    Some((name, LineSpan { first, last: last.max(first) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(path: &str, lines: Option<(u32, u32)>) -> MentionTarget {
        MentionTarget::Path { path: path.into(), lines: lines.map(|(first, last)| LineSpan { first, last }) }
    }

    #[test]
    fn every_form_of_a_mention_is_understood() {
        for (text, expected) in [
            ("see @src/a.rs.", path("src/a.rs", None)),
            ("(@src/a.rs#L10-20)", path("src/a.rs", Some((10, 20)))),
            ("@src/a.rs#L10-L20, please", path("src/a.rs", Some((10, 20)))),
            ("@a.rs:7", path("a.rs", Some((7, 7)))),
            ("@a.rs:7-9", path("a.rs", Some((7, 9)))),
            ("@\"my notes/a b.md\"#L2", path("my notes/a b.md", Some((2, 2)))),
            ("@src/", path("src/", None)),
            ("看 @src/a.rs。", path("src/a.rs", None)),
            ("@#Session::submit", MentionTarget::Symbol("Session::submit".into())),
            ("@symbol:main", MentionTarget::Symbol("main".into())),
            ("@diagnostics", MentionTarget::Diagnostics(None)),
            ("@diagnostics:src/a.rs", MentionTarget::Diagnostics(Some("src/a.rs".into()))),
            ("@diff", MentionTarget::Diff(DiffOf::Head)),
            ("@diff:staged", MentionTarget::Diff(DiffOf::Staged)),
            ("@diff:main..HEAD", MentionTarget::Diff(DiffOf::Revision("main..HEAD".into()))),
            ("@session:\"fix the parser\"", MentionTarget::Session("fix the parser".into())),
            ("@session:ses_1", MentionTarget::Session("ses_1".into())),
            (
                "see @docs:file:///a/b.md, please",
                MentionTarget::Resource { server: "docs".into(), uri: "file:///a/b.md".into() },
            ),
        ] {
            let found: Vec<_> = mentions(text).into_iter().map(|mention| mention.named).collect();
            assert_eq!(found, [expected], "{text}");
        }
    }

    #[test]
    fn an_address_and_code_are_no_mentions() {
        for text in [
            "write to a.b@example.com",
            "the decorator `@Override` and `import '@scope/pkg'`",
            "```ts\nimport x from '@scope/pkg'\n@Component\n```",
            "a@b @ c",
            "@\"\"",
        ] {
            assert_eq!(mentions(text), [], "{text}");
        }
    }

    #[test]
    fn one_thing_named_twice_is_one_and_quotes_are_known() {
        let found = mentions("@a.rs and @a.rs and @\"b c\"");
        let shape: Vec<_> =
            found.iter().map(|mention| (mention.written.as_str(), mention.is_quoted)).collect();
        assert_eq!(shape, [("@a.rs", false), ("@\"b c\"", true)]);
    }
}
