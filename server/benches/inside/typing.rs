//! A keystroke in a document of 100 MB: the document's own cost and that of the ledger that follows it, beside the bare
//! edit of a rope.
//!
//! Rule: a keystroke is one inserted character in a notification of its own, as editors send them, at the place of the
//! one before; each run types at another place.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use kode_engine::base::paths::Target;
use kode_engine::journal::BlobId;
use kode_engine::text::edit::TextEdit;
use kode_engine::text::edit::ledger::{Ledger, LedgerEntry};
use kode_engine::text::host::{DocumentEvent, DocumentObserver};
use kode_ls::documents::{Documents, target};
use lsp_types::{
    DidChangeTextDocumentParams, Position, Range, TextDocumentContentChangeEvent, TextDocumentItem, Url,
    VersionedTextDocumentIdentifier,
};
use ropey::Rope;

use crate::measure::{Spread, by_turns, figure, heading, row, time};

const LINES: u32 = 1_000_000;
/// With its line break.
const LINE_BYTES: usize = 100;
const KEYSTROKES: u32 = 100;
const WARM_UP: usize = 5;
const RUNS: usize = 41;
const URI: &str = "file:///large.txt";

pub(crate) fn run() {
    let text = format!("{}\n", "x".repeat(LINE_BYTES - 1)).repeat(LINES as usize);
    let (mut rope, mut kept) = (Rope::from_str(&text), Rope::from_str(&text));
    let (alone, followed) = (Buffer::new(&text), Buffer::new(&text));
    let follower = Arc::new(Follower::default());
    followed.documents.observe(Arc::downgrade(&follower) as Weak<dyn DocumentObserver>);
    let mut ledger = ledger_of(&text, &followed);
    drop(text);

    let (mut bare_runs, mut kept_runs, mut alone_runs, mut followed_runs) =
        (places(), places(), places(), places());
    let mut taken_in = Vec::new();
    let [bare, kept, alone, shown] = by_turns(
        WARM_UP,
        RUNS,
        [
            &mut || type_bare(&mut rope, bare_runs.next().unwrap_or_default()),
            &mut || type_kept(&mut kept, kept_runs.next().unwrap_or_default()),
            &mut || alone.type_at(alone_runs.next().unwrap_or_default()),
            &mut || {
                let shown = followed.type_at(followed_runs.next().unwrap_or_default());
                taken_in.push(follower.take_in(&mut ledger));
                shown
            },
        ],
    );
    let taken_in = taken_in.split_off(WARM_UP);
    let [bare, kept, alone, shown, taken_in] =
        [bare, kept, alone, shown, taken_in].map(|times| Spread::of(times, KEYSTROKES));
    heading("keystroke in 100 MB, in the process");
    row("rope (find the place and insert)", &bare, "");
    row("rope (UTF-16, and the text before is kept)", &kept, "");
    row("Documents::change", &alone, "");
    row("Documents::change, followed by a ledger", &shown, "");
    row("the ledger takes it in, on its own thread", &taken_in, "");
    figure("ratio", alone.median / bare.median, "", "");
    figure("ratio to the rope that keeps the text before", alone.median / kept.median, "", "3");
    figure("ratio to it, followed by a ledger", shown.median / kept.median, "", "3");
    figure("ratio to it of the ledger", taken_in.median / kept.median, "", "");
}

/// The edit with what any language server does besides: the position counts UTF-16, and the former text is kept until
/// all have been told.
fn type_kept(rope: &mut Rope, line: u32) -> Duration {
    time(|| {
        for column in 0..KEYSTROKES {
            let before = rope.clone();
            let start = rope.char_to_utf16_cu(rope.line_to_char(line as usize));
            let at = rope.utf16_cu_to_char(start + column as usize);
            rope.insert(at, key(column));
            drop(before);
        }
    })
}

/// The lines where the runs type, spread over the text.
fn places() -> impl Iterator<Item = u32> {
    (1u32..).map(|run| (run * 7_919 * 104_729) % LINES)
}

/// The typed text as the key of this number.
fn key(number: u32) -> &'static str {
    ["s", "o", "m", "e", " "][number as usize % 5]
}

fn type_bare(rope: &mut Rope, line: u32) -> Duration {
    time(|| {
        for column in 0..KEYSTROKES {
            let at = rope.line_to_char(line as usize) + column as usize;
            rope.insert(at, key(column));
        }
    })
}

/// An open document.
struct Buffer {
    documents: Documents,
    uri: Url,
    version: Mutex<i32>,
}

impl Buffer {
    fn new(text: &str) -> Self {
        let uri = Url::parse(URI).expect("it is one");
        let documents = Documents::default();
        documents.open(TextDocumentItem::new(uri.clone(), "plaintext".to_owned(), 1, text.to_owned()));
        Self { documents, uri, version: Mutex::new(1) }
    }

    fn type_at(&self, line: u32) -> Duration {
        let mut version = self.version.lock().expect("nobody panics");
        let params: Vec<DidChangeTextDocumentParams> = (0..KEYSTROKES)
            .map(|column| {
                *version += 1;
                let at = Position::new(line, column);
                let change = TextDocumentContentChangeEvent {
                    range: Some(Range::new(at, at)),
                    range_length: None,
                    text: key(column).to_owned(),
                };
                DidChangeTextDocumentParams {
                    text_document: VersionedTextDocumentIdentifier::new(self.uri.clone(), *version),
                    content_changes: vec![change],
                }
            })
            .collect();
        time(|| params.into_iter().for_each(|params| self.documents.change(params)))
    }
}

/// Keeps events for the ledger, as a session does.
#[derive(Default)]
struct Follower(Mutex<Vec<DocumentEvent>>);

impl DocumentObserver for Follower {
    fn observe(&self, event: &DocumentEvent) {
        self.0.lock().expect("nobody panics").push(event.clone());
    }
}

impl Follower {
    fn take_in(&self, ledger: &mut Ledger) -> Duration {
        let events = std::mem::take(&mut *self.0.lock().expect("nobody panics"));
        time(|| events.into_iter().for_each(|event| take_in(ledger, event)))
    }
}

/// The work of a session for a change of a document that its ledger follows.
fn take_in(ledger: &mut Ledger, event: DocumentEvent) {
    let DocumentEvent::Changed { after, edits: Some(edits), .. } = event else {
        panic!("nothing but typing happens here")
    };
    let target = after.target();
    let (typed, moves): (Vec<TextEdit>, _) = ledger.distinguish(&target, &edits);
    assert!(moves.is_empty(), "typing moves no hunk");
    ledger
        .apply(LedgerEntry::Typed { target: target.clone(), steps: vec![typed] }, |_| unreachable!())
        .expect("no text is loaded");
    ledger.adopt_same(&target, &after.text);
}

fn ledger_of(text: &str, buffer: &Buffer) -> Ledger {
    let target: Target = target(&buffer.uri);
    let mut ledger = Ledger::default();
    let tracked = LedgerEntry::Tracked { target: target.clone(), base: BlobId::of(text.as_bytes()) };
    ledger.apply(tracked, |_| Ok(text.to_owned())).expect("the text is there");
    let document = buffer.documents.snapshot(&buffer.uri).expect("it is open");
    ledger.adopt(&target, &document.text);
    ledger
}
