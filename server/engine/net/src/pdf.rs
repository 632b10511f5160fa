//! The text of PDF documents, page by page.
//!
//! Rule: a document is untrusted. The size of its streams, the number of its pages and the length of its text are bounded,
//! and a panic of the parser ends as [`PdfError::Unreadable`].

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use lopdf::{Document, Error, LoadOptions};

/// Page limit of one reading.
const MAX_PAGES: usize = 200;

/// Text limit of one reading, in bytes.
const MAX_TEXT_BYTES: usize = 200 << 10;

/// The size to which one stream may be decompressed, in bytes.
const MAX_STREAM_BYTES: usize = 32 << 20;

/// Why a document has no text here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PdfError {
    /// It opens with a password only.
    #[error("it is protected by a password")]
    Protected,
    /// The parser failed.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// Its pages hold pictures alone, as scans do.
    #[error("its {0} pages hold no text")]
    NoText(usize),
}

/// Whether the bytes begin as a PDF document does.
#[must_use]
pub fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-")
}

/// The text of a document: each page after a line `[Page N of TOTAL]`, and a last line where it is cut.
///
/// # Errors
/// [`PdfError`].
pub fn text(bytes: &[u8]) -> Result<String, PdfError> {
    let read = catch_unwind(AssertUnwindSafe(|| {
        let document = Document::load_mem_with_options(bytes, options())?;
        Ok(rendered(&document))
    }));
    let unreadable = |reason: String| PdfError::Unreadable(reason);
    match read {
        Ok(Ok(text)) => text,
        Ok(Err(Error::InvalidPassword | Error::Decryption(_))) => Err(PdfError::Protected),
        Ok(Err(error)) => Err(unreadable(error.to_string())),
        Err(_) => Err(unreadable("the parser panicked".to_owned())),
    }
}

fn options() -> LoadOptions {
    LoadOptions { max_decompressed_size: Some(MAX_STREAM_BYTES), ..LoadOptions::default() }
}

fn rendered(document: &Document) -> Result<String, PdfError> {
    let pages: Vec<u32> = document.get_pages().into_keys().collect();
    let total = pages.len();
    let (mut text, mut has_text) = (String::new(), false);
    for (at, page) in pages.into_iter().enumerate() {
        if at == MAX_PAGES || text.len() >= MAX_TEXT_BYTES {
            let _ = writeln!(text, "[The text ends here: {at} of {total} pages are shown]");
            break;
        }
        let _ = writeln!(text, "[Page {page} of {total}]");
        let chunks = document.extract_text_chunks_with_limit(&[page], MAX_STREAM_BYTES);
        let said: String = chunks.into_iter().filter_map(Result::ok).collect();
        for line in said.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
            has_text = true;
            text.push_str(line);
            text.push('\n');
        }
        if text.len() > MAX_TEXT_BYTES {
            let end = (0..=MAX_TEXT_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
            text.truncate(end);
            text.push('\n');
        }
    }
    if has_text { Ok(text) } else { Err(PdfError::NoText(total)) }
}

#[cfg(test)]
mod tests {
    use lopdf::content::{Content, Operation};
    use lopdf::{Object, Stream, dictionary};

    use super::*;

    /// A document with one page for each text.
    fn document(texts: &[&str]) -> Vec<u8> {
        let mut document = Document::with_version("1.5");
        let pages = document.new_object_id();
        let font = document.add_object(
            dictionary! { "Type" => "Font", "Subtype" => "Type1", "BaseFont" => "Courier", "Encoding" => "WinAnsiEncoding" },
        );
        let resources = document.add_object(dictionary! { "Font" => dictionary! { "F1" => font } });
        let kids: Vec<Object> = texts
            .iter()
            .map(|text| {
                let show = |line: &str| Operation::new("Tj", vec![Object::string_literal(line)]);
                let mut operations =
                    vec![Operation::new("BT", vec![]), Operation::new("Tf", vec!["F1".into(), 12.into()])];
                for line in text.lines() {
                    operations.push(show(line));
                    operations.push(Operation::new("T*", vec![]));
                }
                operations.push(Operation::new("ET", vec![]));
                let content = Content { operations }.encode().unwrap();
                let content = document.add_object(Stream::new(dictionary! {}, content));
                let page = dictionary! { "Type" => "Page", "Parent" => pages, "Contents" => content };
                document.add_object(page).into()
            })
            .collect();
        let count = i64::try_from(kids.len()).unwrap();
        let tree = dictionary! { "Type" => "Pages", "Kids" => kids, "Count" => count, "Resources" => resources,
        "MediaBox" => vec![0.into(), 0.into(), 595.into(), 842.into()] };
        document.objects.insert(pages, Object::Dictionary(tree));
        let catalog = document.add_object(dictionary! { "Type" => "Catalog", "Pages" => pages });
        document.trailer.set("Root", catalog);
        let mut bytes = Vec::new();
        document.save_to(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_text_comes_page_by_page() {
        let bytes = document(&["Invoice 4711\nTotal: 12.50", "Second page"]);
        assert!(is_pdf(&bytes));
        let expected = "[Page 1 of 2]\nInvoice 4711\nTotal: 12.50\n[Page 2 of 2]\nSecond page\n";
        assert_eq!(text(&bytes).unwrap(), expected);
    }

    #[test]
    fn a_document_without_text_is_named_so() {
        assert_eq!(text(&document(&["", ""])), Err(PdfError::NoText(2)));
    }

    #[test]
    fn long_documents_are_cut_with_a_note() {
        let page = "word ".repeat(15_000);
        let cut = text(&document(&[&page, &page, &page, &page])).unwrap();
        assert!(cut.len() < MAX_TEXT_BYTES + 100, "{}", cut.len());
        assert!(
            cut.ends_with("[The text ends here: 3 of 4 pages are shown]\n"),
            "{}",
            &cut[cut.len() - 80..]
        );
    }

    #[test]
    fn damaged_documents_end_as_errors() {
        let whole = document(&["Invoice 4711"]);
        for cut in [5, 40, whole.len() / 2] {
            assert!(text(&whole[..cut]).is_err(), "{cut}");
        }
        assert!(matches!(text(b"no document"), Err(PdfError::Unreadable(_))));
    }
}
