//! From the bytes of a body to text.
//!
//! Rule: only text comes through; its encoding is what the bytes, the server and the page say, in this order, and
//! invisible characters are dropped.

use std::borrow::Cow;

use chardetng::EncodingDetector;
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED};
use url::Url;

use super::WebError;
use super::convert::{ConvertedPage, to_markdown};
use crate::WebPage;

/// The most characters of a page's text.
pub(crate) const MAX_TEXT_CHARS: usize = 100_000;
/// How far into a page its encoding is looked for.
const ENCODING_PRESCAN_BYTES: usize = 1_024;
/// How many bytes the encoding detector checks.
const DETECT_BYTES: usize = 64 << 10;

/// A body as it was read.
#[derive(Debug)]
pub(super) struct PageBody {
    pub(super) bytes: Vec<u8>,
    pub(super) content_type: Option<String>,
    /// Whether there is more of it than was read.
    pub(super) is_cut: bool,
}

/// How a text is brought to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageFormat {
    Html,
    Plain,
}

/// Checks that a body is text by what the server says of it.
///
/// # Errors
/// [`WebError::NotText`] with type and size.
pub(super) fn check_type(content_type: Option<&str>, bytes: Option<u64>) -> Result<(), WebError> {
    let Some(content_type) = content_type else { return Ok(()) };
    let (essence, _) = split_type(content_type);
    match form(&essence) {
        Some(PageFormat::Html | PageFormat::Plain) => Ok(()),
        None => Err(not_text(essence, bytes)),
    }
}

impl PageBody {
    /// The page that this is the body of.
    ///
    /// # Errors
    /// [`WebError::NotText`] when no type is given and it does not look like text.
    pub(super) fn into_page(self, url: Url) -> Result<WebPage, WebError> {
        let (essence, charset) = self.content_type.as_deref().map(split_type).unwrap_or_default();
        let form = match form(&essence) {
            Some(form) => form,
            None => {
                sniff(&self.bytes).ok_or_else(|| not_text(essence.clone(), Some(self.bytes.len() as u64)))?
            }
        };
        let text = decode(&self.bytes, charset.as_deref());
        let content_type = match (essence.is_empty(), form) {
            (false, _) => essence,
            (true, PageFormat::Html) => "text/html".to_owned(),
            (true, PageFormat::Plain) => "text/plain".to_owned(),
        };
        let converted = match form {
            PageFormat::Html => to_markdown(&text, &url, MAX_TEXT_CHARS),
            PageFormat::Plain => ConvertedPage { text, title: None, is_cut: false },
        };
        let text = visible(&converted.text);
        let (text, over) = cut(text.trim(), MAX_TEXT_CHARS);
        let title = converted.title.map(|title| visible(&title).into_owned());
        let is_cut = self.is_cut || converted.is_cut || over;
        Ok(WebPage { url, content_type, title, text: text.to_owned(), is_cut })
    }
}

/// The type in lower case without parameters, and the charset parameter.
fn split_type(content_type: &str) -> (String, Option<String>) {
    let (essence, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    let charset = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("charset").then(|| value.trim().trim_matches(['"', '\'']).to_owned())
    });
    (essence.trim().to_ascii_lowercase(), charset)
}

fn form(essence: &str) -> Option<PageFormat> {
    match essence {
        "text/html" | "application/xhtml+xml" => Some(PageFormat::Html),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/ecmascript"
        | "application/x-javascript"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml"
        | "application/x-ndjson"
        | "application/jsonl"
        | "application/sql"
        | "application/x-sh" => Some(PageFormat::Plain),
        _ if essence.starts_with("text/") => Some(PageFormat::Plain),
        _ if essence.ends_with("+json") || essence.ends_with("+xml") || essence.ends_with("+yaml") => {
            Some(PageFormat::Plain)
        }
        _ => None,
    }
}

/// The type of bytes without a stated type; `None` if they are binary.
fn sniff(bytes: &[u8]) -> Option<PageFormat> {
    let start = &bytes[..bytes.len().min(ENCODING_PRESCAN_BYTES)];
    if Encoding::for_bom(start).is_none() && start.contains(&0) {
        return None;
    }
    let text = start.trim_ascii_start().to_ascii_lowercase();
    let is_html = text.starts_with(b"<!doctype html") || text.starts_with(b"<html");
    Some(if is_html { PageFormat::Html } else { PageFormat::Plain })
}

fn decode(bytes: &[u8], charset: Option<&str>) -> String {
    let said = || charset.and_then(|label| Encoding::for_label(label.as_bytes()));
    let encoding = said().or_else(|| declared(bytes)).unwrap_or_else(|| detected(bytes));
    // A byte order mark wins over every stated encoding.
    encoding.decode(bytes).0.into_owned()
}

/// The encoding that a page or an XML document declares at its beginning.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(ENCODING_PRESCAN_BYTES)];
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let xml = start.strip_prefix("<?xml").and_then(|rest| rest.split("?>").next());
    let value = match xml.and_then(|declaration| declaration.split_once("encoding")) {
        Some((_, value)) => value,
        None => start.split("<meta").skip(1).find_map(|tag| {
            let tag = tag.split('>').next()?;
            tag.split_once("charset").map(|(_, value)| value)
        })?,
    };
    let value = value.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label =
        value.split(|character: char| !(character.is_ascii_alphanumeric() || "-_:.".contains(character)));
    let encoding = Encoding::for_label(label.into_iter().next()?.as_bytes())?;
    // These cannot be true: the declaration itself was read as ASCII.
    Some(match encoding {
        _ if encoding == UTF_16LE || encoding == UTF_16BE => UTF_8,
        _ if encoding == X_USER_DEFINED => WINDOWS_1252,
        _ => encoding,
    })
}

fn detected(bytes: &[u8]) -> &'static Encoding {
    let start = &bytes[..bytes.len().min(DETECT_BYTES)];
    // A character that was cut in two at the end is no error.
    if std::str::from_utf8(start).map_or_else(|error| error.error_len().is_none(), |_| true) {
        return UTF_8;
    }
    let mut detector = EncodingDetector::new();
    detector.feed(start, true);
    detector.guess(None, true)
}

/// The text without characters that only a model reads.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    let is_hidden = |character: char| {
        (character.is_control() && !matches!(character, '\n' | '\t'))
            || matches!(character, '\u{ad}' | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
            || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
    };
    if text.contains(is_hidden) { Cow::Owned(text.replace(is_hidden, "")) } else { Cow::Borrowed(text) }
}

/// The text up to this many characters, and whether anything was left out.
pub(super) fn cut(text: &str, max_chars: usize) -> (&str, bool) {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

fn not_text(essence: String, bytes: Option<u64>) -> WebError {
    let size = bytes.map_or_else(|| "of unknown size".to_owned(), |bytes| format!("{bytes} bytes"));
    let content_type = if essence.is_empty() { "of no known type".to_owned() } else { essence };
    WebError::NotText { content_type, size }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content_type: Option<&str>, bytes: &[u8]) -> Result<WebPage, WebError> {
        let body =
            PageBody { bytes: bytes.to_vec(), content_type: content_type.map(str::to_owned), is_cut: false };
        body.into_page(Url::parse("https://example.com/").unwrap())
    }

    #[test]
    fn bytes_become_text_by_mark_header_declaration_or_guess() {
        let utf_16: Vec<u8> = "\u{feff}grün".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let cases: [(&str, &[u8], &str); 9] = [
            ("text/plain", "grün".as_bytes(), "grün"),
            ("text/plain; charset=ISO-8859-1", b"gr\xfcn", "grün"),
            ("text/plain; charset=\"utf-8\"", &utf_16, "grün"),
            ("TEXT/Plain;charset=nonsense", "grün".as_bytes(), "grün"),
            ("text/html", b"<meta charset='latin1'>gr\xfcn", "grün"),
            ("text/html", b"<meta http-equiv=x content='text/html; charset=shift_jis'>\x83e", "テ"),
            ("text/html", "<meta charset=utf-16>grün".as_bytes(), "grün"),
            (
                "application/xml",
                b"<?xml version='1.0' encoding='latin1'?>gr\xfcn",
                "<?xml version='1.0' encoding='latin1'?>grün",
            ),
            ("text/plain", b"Gr\xfc\xdfe aus K\xf6ln", "Grüße aus Köln"),
        ];
        for (content_type, bytes, expected) in cases {
            assert_eq!(page(Some(content_type), bytes).unwrap().text, expected, "{content_type}");
        }
    }

    #[test]
    fn what_has_no_type_is_inspected() {
        let html = page(None, b"\n<!DOCTYPE HTML><h1>Hi</h1>").unwrap();
        assert_eq!((html.content_type.as_str(), html.text.as_str()), ("text/html", "# Hi"));
        assert_eq!(page(None, b"just <b>text").unwrap().text, "just <b>text");
        let error = page(None, b"\x7fELF\0\0").unwrap_err().to_string();
        assert_eq!(error, "the page is not text but of no known type, 6 bytes");
    }

    #[test]
    fn only_text_passes_by_its_type() {
        for content_type in
            ["text/csv", "application/ld+json", "image/svg+xml", "Application/JSON; charset=utf-8"]
        {
            assert_eq!(check_type(Some(content_type), None), Ok(()), "{content_type}");
        }
        for content_type in ["image/png", "application/pdf", "application/octet-stream", "", "text"] {
            assert!(check_type(Some(content_type), Some(7)).is_err(), "{content_type}");
        }
        let error = check_type(Some("application/pdf"), Some(1234)).unwrap_err().to_string();
        assert_eq!(error, "the page is not text but application/pdf, 1234 bytes");
    }

    #[test]
    fn characters_that_nobody_sees_do_not_reach_the_model() {
        let page =
            page(Some("text/plain"), "a\u{1b}[31m\u{e0041}\u{202e}\u{200b}b\tc\r\nd".as_bytes()).unwrap();
        assert_eq!(page.text, "a[31mb\tc\nd");
    }

    #[test]
    fn a_long_text_is_cut() {
        let page = page(Some("text/plain"), "ü".repeat(MAX_TEXT_CHARS + 1).as_bytes()).unwrap();
        assert!(page.is_cut);
        assert_eq!(page.text.chars().count(), MAX_TEXT_CHARS);
    }
}
