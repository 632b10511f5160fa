//! The reports of an editor about a document: the encoding of positions, the first text, then changes, each with its start
//! and length in characters and the text that takes their place.
//!
//! Rule: the document is what a plain string would be after the same changes, in every encoding; and the edits that
//! watchers are notified of turn the text before into the text after.

use std::sync::{Arc, Weak};

use kode_engine::text::edit::change::apply_edits;
use kode_engine::text::host::{DocumentEvent, DocumentObserver};
use kode_ls::documents::Documents;
use kode_ls::lsp::position::PositionEncoding;
use lsp_types::{
    DidChangeTextDocumentParams, Position, PositionEncodingKind, Range, TextDocumentContentChangeEvent,
    TextDocumentItem, VersionedTextDocumentIdentifier,
};
use url::Url;

use crate::input::Input;

/// The most notifications of one input, and the most changes of one.
const MAX_NOTIFICATIONS: i32 = 32;
const MAX_CHANGES: usize = 4;

/// Compares what it is reported with itself.
struct Witness;

impl DocumentObserver for Witness {
    fn observe(&self, event: &DocumentEvent) {
        if let DocumentEvent::Changed { before, after, edits: Some(edits) } = event {
            assert_eq!(apply_edits(&before.text.to_string(), edits), after.text.to_string());
        }
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kinds = [PositionEncodingKind::UTF8, PositionEncodingKind::UTF16, PositionEncodingKind::UTF32];
    let kind = &kinds[input.below(kinds.len())];
    let uri = Url::parse("file:///w/a.rs").expect("a URI");
    let documents = Documents::default();
    documents.set_encoding(PositionEncoding::negotiate(std::slice::from_ref(kind)));
    let witness: Arc<dyn DocumentObserver> = Arc::new(Witness);
    let watcher: Weak<dyn DocumentObserver> = Arc::downgrade(&witness);
    documents.observe(watcher);
    let mut plain = input.text().into_owned();
    documents.open(TextDocumentItem::new(uri.clone(), "rust".to_owned(), 0, plain.clone()));
    for version in 1..=MAX_NOTIFICATIONS {
        if input.is_empty() {
            break;
        }
        let changes = 1 + input.below(MAX_CHANGES);
        let content_changes = (0..changes).map(|_| change(&mut input, kind, &mut plain)).collect();
        let text_document = VersionedTextDocumentIdentifier::new(uri.clone(), version);
        documents.change(DidChangeTextDocumentParams { text_document, content_changes });
        let shown = documents.snapshot(&uri).expect("it is open");
        assert_eq!((shown.text.to_string(), shown.version), (plain.clone(), version));
    }
}

/// The next change, which is made in `plain` as well.
fn change(
    input: &mut Input<'_>,
    kind: &PositionEncodingKind,
    plain: &mut String,
) -> TextDocumentContentChangeEvent {
    let (at, length) = (input.below(256), input.below(32));
    let text = input.text().into_owned();
    let start = boundary(plain, at);
    let end = boundary(plain, at + length).max(start);
    let range = Range::new(position(plain, start, kind), position(plain, end, kind));
    plain.replace_range(start..end, &text);
    TextDocumentContentChangeEvent { range: Some(range), range_length: None, text }
}

/// The byte of the `count`th character, moved in front of a line break that it would cut in two.
fn boundary(text: &str, count: usize) -> usize {
    let byte = text.char_indices().nth(count).map_or(text.len(), |(byte, _)| byte);
    if text[..byte].ends_with('\r') && text[byte..].starts_with('\n') { byte - 1 } else { byte }
}

/// Where a byte is, counted by hand.
fn position(text: &str, byte: usize, kind: &PositionEncodingKind) -> Position {
    let before = &text[..byte];
    let breaks = before.matches('\n').count() + before.matches('\r').count() - before.matches("\r\n").count();
    let line = &before[before.rfind(['\n', '\r']).map_or(0, |at| at + 1)..];
    let units = if *kind == PositionEncodingKind::UTF8 {
        line.len()
    } else if *kind == PositionEncodingKind::UTF16 {
        line.encode_utf16().count()
    } else {
        line.chars().count()
    };
    let [line, character] = [breaks, units].map(|count| u32::try_from(count).expect("small"));
    Position::new(line, character)
}
