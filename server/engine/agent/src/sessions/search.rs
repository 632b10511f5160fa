//! Full-text search in all sessions.
//!
//! Rule: a journal is read line by line; a line is taken apart only if its bytes may hold the words, however JSON has written
//! them. What counts is what a person was shown: pictures and thoughts are not searched.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::lines::LineReader;
use super::list::{ListPosition, StoredFolder};
use super::{Catalogue, WorkspaceFilter};
use crate::sessions::JOURNAL;
use kode_base::ids::{ItemId, SessionId};

/// The most hits of a page.
pub const MAX_HITS: usize = 500;

/// The longest text that is searched for, in characters.
const MAX_QUERY: usize = 200;

/// How long a search may take before it begins with no further session.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The characters that are shown before and behind a hit.
const BEFORE: usize = 40;
const BEHIND: usize = 120;

/// A search.
#[derive(Clone, Debug)]
pub struct SearchSessions {
    /// In whose sessions.
    pub workspaces: WorkspaceFilter,
    /// The words, in this order; letter case is ignored.
    pub text: String,
    /// The most hits wanted, at most [`MAX_HITS`].
    pub limit: usize,
    /// [`SearchPage::next`] of the page before.
    pub cursor: Option<String>,
}

/// A hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The session.
    pub session: SessionId,
    /// Its title.
    pub title: String,
    /// The item of the transcript; `None` for the title of a session.
    pub item: Option<ItemId>,
    /// The kind of text.
    pub kind: HitKind,
    /// When that was written.
    pub written: Option<Timestamp>,
    /// The text around it, on one line.
    pub snippet: String,
    /// The range of the hit in it, in bytes.
    pub range: Range<usize>,
}

/// The kind of text of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HitKind {
    /// A message of the user.
    Prompt,
    /// An answer of the model.
    Answer,
    /// The title that a session was given.
    Title,
    /// The title of a tool call.
    ToolTitle,
    /// The result of a tool call.
    ToolOutput,
}

/// A page of hits: the session last used first, and in it the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<Hit>,
    /// The cursor of the next page; `None` when all was searched.
    pub next: Option<String>,
    /// Whether it ended because it took long, and not because there was enough.
    pub is_out_of_time: bool,
}

/// Why nothing is searched.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuery {
    /// There are no words.
    #[error("there is nothing to search for; write at least one character that can be seen")]
    Empty,
    /// There are too many.
    #[error("at most {MAX_QUERY} characters can be searched for")]
    TooLong,
    /// The cursor is of no page.
    #[error("this cursor belongs to no page of a search; start without one")]
    Cursor,
    /// The words cannot be searched for.
    #[error("these words cannot be searched for: {0}")]
    Words(String),
}

/// Where a page ended: before a line of a session, or behind a session.
struct SearchCursor {
    place: ListPosition,
    /// Only lines before it count; 0 when the session is done.
    before: u64,
}

/// The words that are searched for.
struct SearchWords {
    /// Escaped as in JSON.
    raw: RegexMatcher,
    /// As plain text.
    text: RegexMatcher,
}

/// Something that was found in a line.
struct LineHit {
    line: u64,
    item: ItemId,
    kind: HitKind,
    written: Option<Timestamp>,
    snippet: String,
    range: Range<usize>,
}

impl Catalogue {
    /// Searches the sessions of workspaces, also open ones. Returns the hits so far when `cancel` is set.
    ///
    /// # Errors
    /// [`BadQuery`].
    pub fn search(&self, query: &SearchSessions, cancel: &CancellationToken) -> Result<SearchPage, BadQuery> {
        let words = SearchWords::new(query.text.trim())?;
        let cursor =
            query.cursor.as_deref().map(|cursor| SearchCursor::parse(cursor).ok_or(BadQuery::Cursor));
        let cursor = cursor.transpose()?;
        let limit = query.limit.clamp(1, MAX_HITS);
        let began = Instant::now();
        let mut page = SearchPage::default();
        let mut done: Option<ListPosition> = None;
        for found in self.all(&query.workspaces) {
            let before = match &cursor {
                Some(cursor) if found.place.id == cursor.place.id => cursor.before,
                Some(cursor) if found.place <= cursor.place => 0,
                Some(_) | None => u64::MAX,
            };
            if before == 0 {
                continue;
            }
            if let Some(done) = done.take_if(|_| began.elapsed() > TIME_LIMIT) {
                page.is_out_of_time = true;
                page.next = Some(SearchCursor { place: done, before: 0 }.text());
                break;
            }
            let room = limit - page.hits.len();
            let next = search_session(&words, &found, (before, room), cancel, &mut page.hits);
            if cancel.is_cancelled() {
                break;
            }
            if next > 0 || page.hits.len() >= limit {
                page.next = Some(SearchCursor { place: found.place, before: next }.text());
                break;
            }
            done = Some(found.place);
        }
        Ok(page)
    }
}

/// Adds the newest hits of a session that lie before a line. Answers the line before which there may be more, or 0.
fn search_session(
    words: &SearchWords,
    found: &StoredFolder,
    (before, room): (u64, usize),
    cancel: &CancellationToken,
    hits: &mut Vec<Hit>,
) -> u64 {
    let session = SessionId::from_external(found.place.id.clone());
    let title = &found.entry.digest.title;
    // Without a title of its own it is called by its first prompt, which is found as such.
    if found.entry.digest.titled.is_some()
        && before == u64::MAX
        && let Some((snippet, range)) = words.find(title)
    {
        let (item, kind, written) = (None, HitKind::Title, None);
        hits.push(Hit {
            session: session.clone(),
            title: title.clone(),
            item,
            kind,
            written,
            snippet,
            range,
        });
    }
    let mut newest = VecDeque::new();
    let mut next = 0;
    let lines = search_lines(words, &found.folder.join(JOURNAL), before, cancel, |hit| {
        newest.retain(|known: &LineHit| (&known.item, known.kind) != (&hit.item, hit.kind));
        newest.push_back(hit);
        // Hits of one line stay together, so that the next page can begin before it.
        while newest.len() > room && newest.front().map(|hit| hit.line) != newest.back().map(|hit| hit.line) {
            newest.pop_front();
            next = newest.front().map_or(0, |hit| hit.line);
        }
    });
    if let Err(error) = lines {
        tracing::debug!(%error, session = %session, "a journal could not be searched to its end");
    }
    // The dropped part of a line is read again only with the whole line.
    newest.retain(|hit| hit.line >= next);
    hits.extend(newest.into_iter().rev().map(|hit| Hit {
        session: session.clone(),
        title: title.clone(),
        item: Some(hit.item),
        kind: hit.kind,
        written: hit.written,
        snippet: hit.snippet,
        range: hit.range,
    }));
    next
}

fn search_lines(
    words: &SearchWords,
    journal: &Path,
    before: u64,
    cancel: &CancellationToken,
    mut each: impl FnMut(LineHit),
) -> io::Result<()> {
    let mut lines = LineReader::from(File::open(journal)?, 0)?;
    loop {
        let place = lines.place();
        if place >= before || cancel.is_cancelled() {
            return Ok(());
        }
        let Some(line) = lines.read()? else { return Ok(()) };
        if words.may_be_in(line) {
            let mut found = |written, item: &ItemId, kind, text: &str| {
                if let Some((snippet, range)) = words.find(text) {
                    each(LineHit { line: place, item: item.clone(), kind, written, snippet, range });
                }
            };
            if texts(line, None, &mut found).is_none() {
                tracing::debug!(place, path = %journal.display(), "a line that cannot be read was not searched");
            }
        }
    }
}

#[derive(Deserialize)]
struct SearchHead<'a> {
    #[serde(default)]
    written: Option<Timestamp>,
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ItemRecordLine {
    item: SearchItem,
}

#[derive(Deserialize)]
struct AnswerRecordLine {
    items: Vec<SearchItem>,
}

#[derive(Deserialize)]
struct SearchItem {
    id: ItemId,
    body: SearchBody,
}

#[derive(Deserialize)]
struct SearchBody {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
struct CallMoveLine {
    item: ItemId,
    title: String,
}

#[derive(Deserialize)]
struct CallEndLine {
    item: ItemId,
    outcome: SearchOutcome,
    result: CallResult,
}

#[derive(Deserialize)]
struct SearchOutcome {
    #[serde(default)]
    display: String,
}

#[derive(Deserialize)]
struct CallResult {
    #[serde(default)]
    content: String,
}

#[derive(Deserialize)]
struct SearchAgentLine<'a> {
    #[serde(borrow)]
    record: &'a RawValue,
}

/// Hands over the texts of a record that a person was shown; `None` when it cannot be read.
fn texts(
    line: &[u8],
    within: Option<Timestamp>,
    found: &mut impl FnMut(Option<Timestamp>, &ItemId, HitKind, &str),
) -> Option<()> {
    fn read<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
        serde_json::from_slice(line).ok()
    }
    let SearchHead { written, kind } = read(line)?;
    let written = written.or(within);
    let mut item = |item: &SearchItem| {
        let kind = match item.body.kind.as_str() {
            "userMessage" => HitKind::Prompt,
            "agentMessage" => HitKind::Answer,
            _ => return,
        };
        found(written, &item.id, kind, &item.body.text);
    };
    match kind.as_ref() {
        "prompt" | "steered" | "item" => item(&read::<ItemRecordLine>(line)?.item),
        "answer" => read::<AnswerRecordLine>(line)?.items.iter().for_each(item),
        "callMoved" => {
            let CallMoveLine { item, title } = read(line)?;
            found(written, &item, HitKind::ToolTitle, &title);
        }
        "callEnded" => {
            let CallEndLine { item, outcome, result } = read(line)?;
            // The later of two hits in one item applies: the text for the model, where both have it.
            found(written, &item, HitKind::ToolOutput, &outcome.display);
            found(written, &item, HitKind::ToolOutput, &result.content);
        }
        "inAgent" => {
            let SearchAgentLine { record } = read(line)?;
            texts(record.get().as_bytes(), written, found)?;
        }
        _ => {}
    }
    Some(())
}

impl SearchWords {
    fn new(text: &str) -> Result<Self, BadQuery> {
        match text.chars().count() {
            0 => return Err(BadQuery::Empty),
            count if count > MAX_QUERY => return Err(BadQuery::TooLong),
            _ => {}
        }
        let build = |pattern: &str| {
            let built = RegexMatcherBuilder::new().case_insensitive(true).build(pattern);
            built.map_err(|error| BadQuery::Words(error.to_string()))
        };
        let raw: String = text.chars().map(in_json).collect();
        Ok(Self { raw: build(&raw)?, text: build(&regex_syntax::escape(text))? })
    }

    /// Whether a line of JSON can contain the words.
    fn may_be_in(&self, line: &[u8]) -> bool {
        // A matcher that fails must hide nothing.
        self.raw.is_match(line).unwrap_or(true)
    }

    /// The words in a text, with their surroundings.
    fn find(&self, text: &str) -> Option<(String, Range<usize>)> {
        let found = self.text.find(text.as_bytes()).ok()??;
        let (head, rest) = text.split_at_checked(found.start())?;
        let (words, tail) = rest.split_at_checked(found.len())?;
        let start = head.char_indices().rev().take(BEFORE).last().map_or(head.len(), |(at, _)| at);
        let end = tail.char_indices().nth(BEHIND).map_or(tail.len(), |(at, _)| at);
        let shown = |char: char| if char.is_control() { ' ' } else { char };
        // The replaced text may be longer than a space.
        let part = |text: &str| text.chars().map(shown).collect::<String>();
        let (before, words) = (part(&head[start..]), part(words));
        let range = before.len()..before.len() + words.len();
        Some((before + &words + &part(&tail[..end]), range))
    }
}

/// A pattern for all ways in which JSON can write a character.
fn in_json(char: char) -> String {
    let plain = regex_syntax::escape(char.encode_utf8(&mut [0; 4]));
    // These have one form only.
    if char.is_ascii_alphanumeric() || char == ' ' {
        return plain;
    }
    let short = match char {
        '"' => Some("\\\\\""),
        '\\' => Some("\\\\\\\\"),
        '/' => Some("\\\\/"),
        '\n' => Some("\\\\n"),
        '\t' => Some("\\\\t"),
        '\r' => Some("\\\\r"),
        _ => None,
    };
    let mut pattern = format!("(?:{plain}");
    if let Some(short) = short {
        pattern.push('|');
        pattern.push_str(short);
    }
    // Digits and the letters of numbers may be capitals, like all else.
    let variants = std::iter::once(char).chain(char.to_lowercase()).chain(char.to_uppercase());
    for variant in variants {
        pattern.push('|');
        for unit in variant.encode_utf16(&mut [0; 2]) {
            pattern.push_str(&format!("\\\\u{unit:04x}"));
        }
    }
    pattern + ")"
}

impl SearchCursor {
    fn parse(text: &str) -> Option<Self> {
        let (place, before) = text.split_once(':')?;
        Some(Self { place: ListPosition::parse(place)?, before: before.parse().ok()? })
    }

    fn text(&self) -> String {
        format!("{}:{}", self.place.cursor(), self.before)
    }
}
