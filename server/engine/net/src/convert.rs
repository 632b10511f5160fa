//! From HTML to Markdown.
//!
//! Rule: only what a reader of the page would see and came for is kept. A page is read as a stream of tags, never
//! as a tree: time and memory grow with its length alone, whatever it does to its structure.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use html5ever::interface::TokenizerResult;
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use url::Url;

use super::markdown::{Inline, MarkdownWriter, TextGap};

/// How much of a page is read at once.
const PIECE_BYTES: usize = 16 << 10;
/// How long a page is read; reading tags with very many attributes is slow.
const TIME_LIMIT: Duration = Duration::from_secs(3);
/// The longest target of a link that is kept.
const MAX_LINK_CHARS: usize = 500;
/// The most characters of a title.
const MAX_TITLE_CHARS: usize = 300;

/// The entities that snippets of search results have, `&amp;` last: it must not make new ones.
const ENTITIES: [(&str, &str); 7] = [
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&quot;", "\""),
    ("&#39;", "'"),
    ("&#x27;", "'"),
    ("&nbsp;", " "),
    ("&amp;", "&"),
];
/// Elements whose content no reader sees as text.
const UNSEEN: [&str; 24] = [
    "script", "style", "noscript", "template", "svg", "iframe", "object", "embed", "canvas", "audio",
    "video", "map", "select", "datalist", "button", "textarea", "dialog", "nav", "frameset", "noframes",
    "noembed", "applet", "xmp", "menu",
];
/// Elements that are about the site and not about the page, unless they are in its main part.
const FRAME: [&str; 3] = ["header", "footer", "aside"];
/// Roles that say the same of any element.
const FRAME_ROLES: [&str; 6] = ["navigation", "banner", "contentinfo", "search", "complementary", "dialog"];
/// Elements that are a page's main part.
const MAIN: [&str; 2] = ["main", "article"];
/// Elements without content.
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];
/// Elements that often end without an end tag.
const OPEN_ENDED: [&str; 10] = ["p", "li", "dt", "dd", "td", "th", "tr", "tbody", "thead", "option"];
/// Elements that hold those, and whose end is theirs too.
const CONTAINERS: [&str; 14] = [
    "ul",
    "ol",
    "dl",
    "table",
    "div",
    "section",
    "main",
    "article",
    "aside",
    "header",
    "footer",
    "blockquote",
    "form",
    "body",
];
/// Elements that are paragraphs of their own.
const BLOCKS: [&str; 20] = [
    "p", "div", "section", "article", "main", "header", "footer", "aside", "figure", "form", "fieldset",
    "details", "address", "dl", "hgroup", "center", "nav", "menu", "body", "dialog",
];
/// Elements that are lines of their own.
const LINES: [&str; 8] = ["dt", "dd", "figcaption", "summary", "legend", "caption", "option", "label"];

/// The text of a fragment of HTML in one line, without marks and links.
pub(super) fn plain_text(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        // A `<` that begins no tag is text.
        let is_tag = tag.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/');
        match tag.split_once('>').filter(|_| is_tag) {
            Some((_, after)) => rest = after,
            None => {
                text.push('<');
                rest = tag;
            }
        }
    }
    text.push_str(rest);
    for (entity, character) in ENTITIES {
        text = text.replace(entity, character);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConvertedPage {
    /// The text, as Markdown.
    pub(super) text: String,
    /// The title, if there is one.
    pub(super) title: Option<String>,
    /// Whether the page continues after the text.
    pub(super) is_cut: bool,
}

/// Whether what frames a page is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frame {
    Drop,
    Keep,
}

/// Converts a page to Markdown, at least `max_chars` of it if it is that long. Links are made absolute; of images
/// only the description is kept.
pub(super) fn to_markdown(html: &str, base: &Url, max_chars: usize) -> ConvertedPage {
    let converted = convert(html, base, max_chars, Frame::Drop);
    // Some pages have everything in what other pages use as a frame.
    if converted.text.is_empty() { convert(html, base, max_chars, Frame::Keep) } else { converted }
}

fn convert(html: &str, base: &Url, max_chars: usize, frame: Frame) -> ConvertedPage {
    let started = Instant::now();
    let tokenizer = Tokenizer::new(TokenReader::new(base.clone(), frame), TokenizerOpts::default());
    let input = BufferQueue::default();
    let mut rest = html;
    while !rest.is_empty() && !tokenizer.sink.has_written(max_chars) && started.elapsed() < TIME_LIMIT {
        let (piece, after) = rest.split_at(piece_end(rest));
        rest = after;
        input.push_back(StrTendril::from_slice(piece));
        // Scripts are not run, and the encoding is settled: there is nothing to do but to continue.
        while tokenizer.feed(&input) != TokenizerResult::Done {}
    }
    if rest.is_empty() {
        tokenizer.end();
    }
    let page = tokenizer.sink.page.into_inner();
    let title: String = page.title.split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = title.chars().take(MAX_TITLE_CHARS).collect();
    ConvertedPage {
        text: page.writer.finish(),
        title: (!title.is_empty()).then_some(title),
        is_cut: !rest.is_empty(),
    }
}

fn piece_end(text: &str) -> usize {
    (PIECE_BYTES..text.len()).find(|end| text.is_char_boundary(*end)).unwrap_or(text.len())
}

/// Takes the tokens of a page.
struct TokenReader {
    page: RefCell<PageReader>,
}

struct PageReader {
    writer: MarkdownWriter,
    base: Url,
    frame: Frame,
    title: String,
    is_title: bool,
    /// How many elements are open that are a main part.
    main: usize,
    skip: Option<Skip>,
}

/// An element that is left out with all that is in it.
struct Skip {
    name: String,
    /// How many elements of this name are open.
    depth: usize,
    /// How many containers are open in it.
    containers: usize,
}

impl TokenReader {
    fn new(base: Url, frame: Frame) -> Self {
        let page = PageReader {
            writer: MarkdownWriter::default(),
            base,
            frame,
            title: String::new(),
            is_title: false,
            main: 0,
            skip: None,
        };
        Self { page: RefCell::new(page) }
    }

    fn has_written(&self, chars: usize) -> bool {
        // Four bytes are the longest character; the caller counts exactly.
        self.page.borrow().writer.len() > chars.saturating_mul(4)
    }
}

impl TokenSink for TokenReader {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let mut page = self.page.borrow_mut();
        match token {
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                page.start(&tag);
                return raw_text(&tag).map_or(TokenSinkResult::Continue, TokenSinkResult::RawData);
            }
            Token::TagToken(tag) => page.end(&tag),
            Token::CharacterTokens(text) => page.text(&text),
            Token::DoctypeToken(_)
            | Token::CommentToken(_)
            | Token::NullCharacterToken
            | Token::EOFToken
            | Token::ParseError(_) => {}
        }
        TokenSinkResult::Continue
    }
}

/// How the text after a start tag is read, if not as HTML.
fn raw_text(tag: &Tag) -> Option<RawKind> {
    match &*tag.name {
        "script" => Some(RawKind::ScriptData),
        "style" | "xmp" | "iframe" | "noembed" | "noframes" => Some(RawKind::Rawtext),
        "title" | "textarea" => Some(RawKind::Rcdata),
        _ => None,
    }
}

impl PageReader {
    fn text(&mut self, text: &str) {
        if self.skip.is_some() {
            return;
        }
        if self.is_title {
            if self.title.len() < MAX_TITLE_CHARS * 4 {
                self.title.push_str(text);
            }
            return;
        }
        self.writer.text(text);
    }

    fn start(&mut self, tag: &Tag) {
        let name = &*tag.name;
        if let Some(skip) = &mut self.skip {
            if !skip.ends_before(name) {
                skip.start(tag);
                return;
            }
            self.skip = None;
        }
        let is_void = VOID.contains(&name);
        if self.is_left_out(tag) {
            let is_empty = is_void || (tag.self_closing && name == "svg");
            if !is_empty {
                self.skip = Some(Skip { name: name.to_owned(), depth: 1, containers: 0 });
            }
            return;
        }
        match name {
            "title" => self.is_title = self.title.is_empty(),
            "base" => self.rebase(tag),
            "br" => self.writer.line_break(),
            "hr" => self.writer.rule(),
            "img" => self.image(tag),
            "a" => {
                self.writer.end_inline(|inline| matches!(inline, Inline::Link(_)));
                if let Some(target) = attribute(tag, "href").and_then(|href| self.link_target(href)) {
                    self.writer.begin_inline(Inline::Link(target));
                }
            }
            "pre" => self.writer.begin_preformatted(language(tag)),
            "code" if self.writer.is_preformatted() => self.writer.language(language(tag)),
            "ul" | "ol" => self.writer.begin_list(name == "ol"),
            "li" => self.writer.begin_item(),
            "blockquote" => self.writer.begin_quote(),
            "table" => self.writer.begin_table(),
            "tr" => self.writer.begin_row(),
            "td" | "th" => self.writer.begin_cell(),
            _ => match (mark(name), heading(name)) {
                (Some(mark), _) => self.writer.begin_inline(Inline::Mark(mark)),
                (None, Some(level)) => self.writer.begin_heading(level),
                (None, None) => self.writer.gap(gap(name)),
            },
        }
        self.main += usize::from(MAIN.contains(&name));
    }

    fn end(&mut self, tag: &Tag) {
        let name = &*tag.name;
        if let Some(skip) = &mut self.skip {
            match skip.end(name) {
                SkipEnd::Goes => return,
                SkipEnd::With => {
                    self.skip = None;
                    return;
                }
                SkipEnd::Before => self.skip = None,
            }
        }
        match name {
            "title" => self.is_title = false,
            "a" => self.writer.end_inline(|inline| matches!(inline, Inline::Link(_))),
            "pre" => self.writer.end_preformatted(),
            "ul" | "ol" => self.writer.end_list(),
            "li" => self.writer.gap(TextGap::Line),
            "blockquote" => self.writer.end_quote(),
            "table" => self.writer.end_table(),
            "tr" => self.writer.end_row(),
            _ => match (mark(name), heading(name)) {
                (Some(mark), _) => self.writer.end_inline(|inline| *inline == Inline::Mark(mark)),
                (None, Some(_)) => self.writer.end_heading(),
                (None, None) => self.writer.gap(gap(name)),
            },
        }
        self.main = self.main.saturating_sub(usize::from(MAIN.contains(&name)));
    }

    /// Whether an element is unseen, hidden, or only frames the page.
    fn is_left_out(&self, tag: &Tag) -> bool {
        let name = &*tag.name;
        let frames = || {
            FRAME.contains(&name) || attribute(tag, "role").is_some_and(|role| FRAME_ROLES.contains(&role))
        };
        let is_frame = match self.frame {
            Frame::Drop => name == "nav" || name == "menu" || (self.main == 0 && frames()),
            Frame::Keep => false,
        };
        let is_unseen = UNSEEN.contains(&name) && name != "nav" && name != "menu";
        // The elements that hold the whole page are hidden on pages that show themselves by script.
        is_unseen || is_frame || (is_hidden(tag) && name != "body" && name != "html")
    }

    fn image(&mut self, tag: &Tag) {
        let description = attribute(tag, "alt").unwrap_or_default().trim();
        if !description.is_empty() {
            self.writer.text(" (image: ");
            self.writer.text(description);
            self.writer.text(") ");
        }
    }

    fn rebase(&mut self, tag: &Tag) {
        let base = attribute(tag, "href").and_then(|href| self.base.join(href).ok());
        if let Some(base) = base.filter(|base| matches!(base.scheme(), "http" | "https")) {
            self.base = base;
        }
    }

    /// The absolute URL of a link that leads anywhere.
    fn link_target(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') || href.len() > MAX_LINK_CHARS {
            return None;
        }
        let url = self.base.join(href).ok()?;
        let target = match url.scheme() {
            "http" | "https" | "mailto" => url.as_str().replace('(', "%28").replace(')', "%29"),
            _ => return None,
        };
        (target.len() <= MAX_LINK_CHARS).then_some(target)
    }
}

/// The effect of an end tag on left-out content.
enum SkipEnd {
    /// It continues.
    Goes,
    /// It ends, and this is its end tag.
    With,
    /// It ended before this tag.
    Before,
}

impl Skip {
    fn is_open_ended(&self) -> bool {
        OPEN_ENDED.contains(&self.name.as_str())
    }

    /// Whether the element has ended, without end tag, before an element that begins.
    fn ends_before(&self, name: &str) -> bool {
        let is_block = || BLOCKS.contains(&name) || CONTAINERS.contains(&name) || name == "li";
        let ends = name == self.name
            || match self.name.as_str() {
                "p" => is_block(),
                "dt" | "dd" => matches!(name, "dt" | "dd"),
                "td" | "th" => matches!(name, "td" | "th" | "tr" | "tbody"),
                "tr" => name == "tbody",
                _ => false,
            };
        self.is_open_ended() && self.containers == 0 && ends
    }

    fn start(&mut self, tag: &Tag) {
        let name = &*tag.name;
        let is_empty = VOID.contains(&name) || (tag.self_closing && self.name == "svg");
        if is_empty {
            return;
        }
        self.containers += usize::from(CONTAINERS.contains(&name));
        self.depth += usize::from(name == self.name);
    }

    fn end(&mut self, name: &str) -> SkipEnd {
        if CONTAINERS.contains(&name) {
            if self.is_open_ended() && self.containers == 0 {
                return SkipEnd::Before;
            }
            self.containers = self.containers.saturating_sub(1);
        }
        if name != self.name {
            return SkipEnd::Goes;
        }
        self.depth -= 1;
        if self.depth == 0 { SkipEnd::With } else { SkipEnd::Goes }
    }
}

fn is_hidden(tag: &Tag) -> bool {
    let style =
        attribute(tag, "style").unwrap_or_default().to_ascii_lowercase().replace(char::is_whitespace, "");
    attribute(tag, "hidden").is_some()
        || attribute(tag, "aria-hidden") == Some("true")
        || ["display:none", "visibility:hidden", "opacity:0;", "font-size:0;", "font-size:0px"]
            .iter()
            .any(|rule| style.contains(rule) || format!("{style};").ends_with(rule))
}

/// The language that a class names, if it does.
fn language(tag: &Tag) -> &str {
    let classes = attribute(tag, "class").unwrap_or_default().split_ascii_whitespace();
    let mut languages =
        classes.filter_map(|class| class.strip_prefix("language-").or_else(|| class.strip_prefix("lang-")));
    let is_plain = |name: &&str| {
        name.chars().all(|character| character.is_ascii_alphanumeric() || "+-#_".contains(character))
    };
    languages.find(is_plain).unwrap_or_default()
}

fn mark(name: &str) -> Option<&'static str> {
    match name {
        "b" | "strong" => Some("**"),
        "i" | "em" => Some("*"),
        "s" | "del" | "strike" => Some("~~"),
        "code" | "kbd" | "samp" | "tt" => Some("`"),
        _ => None,
    }
}

fn heading(name: &str) -> Option<usize> {
    let level = name.strip_prefix('h')?.parse().ok()?;
    (1..=6).contains(&level).then_some(level)
}

/// The gap around an element.
fn gap(name: &str) -> TextGap {
    if BLOCKS.contains(&name) {
        TextGap::Paragraph
    } else if LINES.contains(&name) {
        TextGap::Line
    } else {
        TextGap::None
    }
}

fn attribute<'tag>(tag: &'tag Tag, name: &str) -> Option<&'tag str> {
    tag.attrs.iter().find(|attribute| &*attribute.name.local == name).map(|attribute| &*attribute.value)
}

#[cfg(test)]
mod tests;
