//! Documents against a naive model, and against editors that make mistakes.

use std::time::Duration;

use futures::FutureExt;
use kode_engine::text::edit::change::apply_edits;
use lsp_types::{Position, Range, TextDocumentSaveReason, VersionedTextDocumentIdentifier};
use proptest::prelude::*;

use super::*;

use kode_testing::folding::{FoldingDisk, NameFolding};

const URI: &str = "file:///tmp/a.rs";

fn url(uri: &str) -> Url {
    Url::parse(uri).unwrap()
}

fn item(uri: &str, version: i32, text: &str) -> TextDocumentItem {
    TextDocumentItem::new(url(uri), "rust".to_owned(), version, text.to_owned())
}

fn opened(text: &str) -> Documents {
    let documents = Documents::default();
    documents.open(item(URI, 1, text));
    documents
}

fn full(text: &str) -> TextDocumentContentChangeEvent {
    TextDocumentContentChangeEvent { range: None, range_length: None, text: text.to_owned() }
}

fn change(from: (u32, u32), to: (u32, u32), text: &str) -> TextDocumentContentChangeEvent {
    let range = Range::new(Position::new(from.0, from.1), Position::new(to.0, to.1));
    TextDocumentContentChangeEvent { range: Some(range), range_length: None, text: text.to_owned() }
}

fn notify(documents: &Documents, version: i32, content_changes: Vec<TextDocumentContentChangeEvent>) {
    let text_document = VersionedTextDocumentIdentifier::new(url(URI), version);
    documents.change(DidChangeTextDocumentParams { text_document, content_changes });
}

fn current(documents: &Documents) -> DocumentSnapshot {
    documents.snapshot(&url(URI)).unwrap()
}

fn text_of(documents: &Documents) -> String {
    current(documents).text.to_string()
}

/// An observer that records all events.
#[derive(Default)]
struct Witness(Mutex<Vec<DocumentEvent>>);

impl DocumentObserver for Witness {
    fn observe(&self, event: &DocumentEvent) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Witness {
    fn of(documents: &Documents) -> Arc<Self> {
        let witness = Arc::new(Self::default());
        let weak: Weak<Self> = Arc::downgrade(&witness);
        documents.observe(weak);
        witness
    }

    fn seen(&self) -> Vec<DocumentEvent> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn will_save(documents: &Documents, reason: TextDocumentSaveReason) {
    let text_document = TextDocumentIdentifier::new(url(URI));
    documents.will_save(&WillSaveTextDocumentParams { text_document, reason });
}

/// Saves the document and says whether it counts as a person's act.
fn save(documents: &Documents, witness: &Witness) -> bool {
    documents.saved(&TextDocumentIdentifier::new(url(URI)));
    let seen = witness.seen();
    let [DocumentEvent::Saved { by_user, .. }] = seen.as_slice() else { panic!("{seen:?}") };
    *by_user
}

fn edit(range: std::ops::Range<usize>, new_text: &str) -> TextEdit {
    TextEdit { range, new_text: new_text.to_owned() }
}

#[test]
fn a_document_lives_from_open_to_close() {
    let documents = opened("one\n");
    notify(&documents, 2, vec![change((0, 3), (0, 3), " two"), change((1, 0), (1, 0), "three")]);
    let snapshot = current(&documents);
    assert_eq!((snapshot.text.to_string().as_str(), snapshot.version), ("one two\nthree", 2));
    assert_eq!((snapshot.uri.as_str(), snapshot.language_id.as_str()), (URI, "rust"));
    notify(&documents, 3, vec![full("new")]);
    assert_eq!(text_of(&documents), "new");
    assert_eq!(snapshot.text.to_string(), "one two\nthree", "a snapshot does not change");
    documents.close(&TextDocumentIdentifier::new(url(URI)));
    assert!(documents.snapshot(&url(URI)).is_none() && documents.all().is_empty());
}

#[test]
fn documents_are_found_by_path_and_by_any_spelling() {
    let documents = Documents::default();
    documents.open(item("file:///tmp/a%20b.rs", 1, "file"));
    documents.open(item("untitled:Untitled-1", 1, "untitled"));
    let path = kode_engine::base::paths::AbsPath::new("/tmp/a b.rs").unwrap();
    let by_path = documents.snapshot_of(&Target::File(path.clone())).unwrap();
    assert_eq!((by_path.uri.as_str(), by_path.path.as_ref()), ("file:///tmp/a%20b.rs", Some(&path)));
    assert!(documents.snapshot(&url("file:///tmp/x/../a b.rs")).is_some());
    let untitled = documents.snapshot_of(&Target::Untitled("untitled:Untitled-1".to_owned())).unwrap();
    assert_eq!((untitled.path, untitled.text.to_string().as_str()), (None, "untitled"));
    let uris: Vec<_> = documents.all().into_iter().map(|document| document.uri).collect();
    assert_eq!(uris, ["file:///tmp/a%20b.rs", "untitled:Untitled-1"]);
}

#[test]
fn mistakes_of_an_editor_are_survived() {
    let documents = opened("abc");
    documents.open(item(URI, 7, "again"));
    assert_eq!((text_of(&documents).as_str(), current(&documents).version), ("again", 7));
    notify(&documents, 3, vec![change((9, 9), (9, 9), "!")]);
    assert_eq!((text_of(&documents).as_str(), current(&documents).version), ("again!", 3));
    notify(&documents, 3, vec![change((0, 5), (0, 2), "e")]);
    assert_eq!(text_of(&documents), "age!", "a range written backwards");
    notify(&documents, 4, vec![change((7, 0), (3, 1), "?")]);
    assert_eq!(text_of(&documents), "age!?", "a range past the end");
    notify(&documents, 5, Vec::new());
    documents.close(&TextDocumentIdentifier::new(url("file:///never/opened")));
    documents.close(&TextDocumentIdentifier::new(url(URI)));
    notify(&documents, 6, vec![full("lost")]);
    assert!(documents.snapshot(&url(URI)).is_none());
}

#[test]
fn an_expectation_sees_an_edit_that_is_undone_in_the_same_notification() {
    let documents = opened("fn a() {}\n");
    let base = current(&documents);
    let expectation = documents.expect(&base, &[edit(3..4, "b")]).unwrap();
    notify(&documents, 2, vec![change((0, 3), (0, 4), "b"), change((0, 3), (0, 4), "a")]);
    let Some(EditSettlement::Shown(shown)) = expectation.seen() else { panic!("the edit was missed") };
    assert_eq!(shown.text.to_string(), "fn b() {}\n");
    assert_eq!(text_of(&documents), "fn a() {}\n");
}

#[test]
fn an_expectation_sees_an_edit_among_typing_and_in_parts() {
    let documents = opened("one two three\n");
    let base = current(&documents);
    let expectation = documents.expect(&base, &[edit(0..3, "1"), edit(8..13, "3")]).unwrap();
    notify(&documents, 2, vec![change((1, 0), (1, 0), "typed")]);
    assert!(expectation.seen().is_none());
    notify(&documents, 3, vec![change((0, 8), (0, 13), "3")]);
    assert!(expectation.seen().is_none(), "half of the edit is not the edit");
    notify(&documents, 4, vec![change((0, 0), (0, 3), "1")]);
    let Some(EditSettlement::Shown(shown)) = expectation.seen() else { panic!("the edit was missed") };
    assert_eq!(shown.text.to_string(), "1 two 3\ntyped");
}

#[tokio::test]
async fn an_expectation_ends_when_the_document_closes() {
    let documents = opened("abc");
    let mut expectation = documents.expect(&current(&documents), &[edit(0..1, "x")]).unwrap();
    assert!(expectation.moved().now_or_never().is_none());
    documents.close(&TextDocumentIdentifier::new(url(URI)));
    expectation.moved().await;
    assert!(matches!(expectation.settled().await, EditSettlement::Closed));
}

#[test]
fn only_the_text_as_it_is_now_can_be_expected_to_change() {
    let documents = opened("abc");
    let base = current(&documents);
    let edits = [edit(0..1, "x")];
    notify(&documents, 2, vec![change((0, 3), (0, 3), "d")]);
    assert_eq!(documents.expect(&base, &edits).unwrap_err(), ExpectError::Stale);
    documents.open(item(URI, 1, "other text, same version"));
    assert_eq!(documents.expect(&base, &edits).unwrap_err(), ExpectError::Stale);
    documents.open(item(URI, 1, "abc"));
    assert!(documents.expect(&base, &edits).is_ok(), "the same text, read anew");
    documents.close(&TextDocumentIdentifier::new(url(URI)));
    assert_eq!(documents.expect(&base, &edits).unwrap_err(), ExpectError::Closed);
}

#[test]
fn an_abandoned_expectation_is_forgotten_at_the_next_change() {
    let documents = opened("abc");
    drop(documents.expect(&current(&documents), &[edit(0..1, "x")]).unwrap());
    notify(&documents, 2, vec![change((0, 3), (0, 3), "d")]);
    assert!(documents.lock().open.values().all(|document| document.expected.is_empty()));
}

#[test]
fn only_the_last_change_of_a_notification_is_worth_comparing_a_huge_text() {
    for (length, seen_in_passing) in [(10, true), (COMPARE_BUDGET / 2 + 1, false)] {
        let base = "x".repeat(length);
        let edited = format!("y{}", &base[1..]);
        let documents = opened(&base);
        let expect = || documents.expect(&current(&documents), &[edit(0..1, "y")]).unwrap();
        let expectation = expect();
        notify(&documents, 2, vec![full(&format!("{edited} typed")), full(&base)]);
        assert_eq!(expectation.seen().is_some(), seen_in_passing, "{length} bytes");
        let expectation = expect();
        notify(&documents, 3, vec![full(&edited), full(&base)]);
        assert!(expectation.seen().is_some(), "the very text expected is found at any size");
        let expectation = expect();
        notify(&documents, 4, vec![full(&base), full(&format!("{edited} typed"))]);
        assert!(expectation.seen().is_some(), "{length} bytes, last change");
    }
}

#[test]
fn observers_are_reported_everything_in_order_as_long_as_they_live() {
    let documents = opened("one\n");
    let (witness, gone) = (Witness::of(&documents), Witness::of(&documents));
    drop(gone);
    notify(&documents, 2, vec![change((0, 3), (0, 3), "!"), change((0, 0), (0, 1), "O")]);
    notify(&documents, 3, vec![change((0, 0), (0, 1), "o"), full("new")]);
    documents.open(item(URI, 4, "again"));
    documents.saved(&TextDocumentIdentifier::new(url(URI)));
    documents.close(&TextDocumentIdentifier::new(url(URI)));
    documents.close(&TextDocumentIdentifier::new(url(URI)));
    documents.open(item(URI, 1, "anew"));
    let seen = witness.seen().into_iter().map(|event| match event {
        DocumentEvent::Opened(document) => format!("opened {} {}", document.version, document.text),
        DocumentEvent::Changed { before, after, edits } => {
            format!(
                "{} {:?} -> {} {:?} {edits:?}",
                before.version,
                before.text.to_string(),
                after.version,
                after.text.to_string()
            )
        }
        DocumentEvent::Saved { document, by_user } => format!("saved {} {by_user}", document.text),
        DocumentEvent::Closed(document) => format!("closed {}", document.text),
    });
    let edits = [edit(0..1, "O"), edit(3..3, "!")];
    assert_eq!(
        seen.collect::<Vec<_>>(),
        [
            format!("1 \"one\\n\" -> 2 \"One!\\n\" {:?}", Some(edits)),
            "2 \"One!\\n\" -> 3 \"new\" None".to_owned(),
            "opened 4 again".to_owned(),
            "saved again true".to_owned(),
            "closed again".to_owned(),
            "opened 1 anew".to_owned(),
        ]
    );
    assert_eq!(documents.lock().observers.len(), 1);
}

#[test]
fn observers_hear_of_an_edit_before_those_who_wait_for_it() {
    struct Early(Mutex<Option<EditExpectation>>);
    impl DocumentObserver for Early {
        fn observe(&self, _event: &DocumentEvent) {
            let expectation = self.0.lock().unwrap();
            assert!(expectation.as_ref().unwrap().seen().is_none(), "somebody may act on it already");
        }
    }
    let documents = opened("abc");
    let expectation = documents.expect(&current(&documents), &[edit(0..1, "x")]).unwrap();
    let early = Arc::new(Early(Mutex::new(Some(expectation))));
    let weak: Weak<Early> = Arc::downgrade(&early);
    documents.observe(weak);
    notify(&documents, 2, vec![change((0, 0), (0, 1), "x")]);
    assert!(early.0.lock().unwrap().as_ref().unwrap().seen().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_save_is_a_persons_unless_something_says_otherwise() {
    let documents = opened("abc");
    let witness = Witness::of(&documents);
    assert!(save(&documents, &witness), "an editor that gives no reasons");
    for (reason, by_user) in [
        (TextDocumentSaveReason::MANUAL, true),
        (TextDocumentSaveReason::AFTER_DELAY, false),
        (TextDocumentSaveReason::FOCUS_OUT, false),
    ] {
        will_save(&documents, reason);
        assert_eq!(save(&documents, &witness), by_user, "{reason:?}");
        assert!(save(&documents, &witness), "a reason is good for one save");
    }
    let target = current(&documents).target();
    let expectation = documents.expect_save(&target).unwrap();
    will_save(&documents, TextDocumentSaveReason::MANUAL);
    assert!(!save(&documents, &witness), "we asked for it");
    assert_eq!(expectation.saved().now_or_never(), Some(()));
    let refused = documents.expect_save(&target).unwrap();
    documents.save_refused(&target);
    assert!(save(&documents, &witness), "the editor had refused ours");
    assert!(refused.saved().now_or_never().is_none());
    let late = documents.expect_save(&target).unwrap();
    tokio::time::advance(SAVE_LIMIT + Duration::from_millis(1)).await;
    assert!(save(&documents, &witness), "what we asked for is long past");
    assert_eq!(late.saved().now_or_never(), Some(()));
}

/// The specification read word for word: find the line, count units, clamp.
fn model_offset(text: &str, position: Position, encoding: PositionEncoding) -> usize {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut rest = text.char_indices().peekable();
    while let Some((index, character)) = rest.next() {
        let end = match character {
            '\r' if rest.peek().is_some_and(|(_, next)| *next == '\n') => {
                rest.next();
                index + 2
            }
            '\r' | '\n' => index + 1,
            _ => continue,
        };
        lines.push((start, index));
        start = end;
    }
    lines.push((start, text.len()));
    let Some((start, end)) = lines.get(position.line as usize).copied() else { return text.len() };
    let mut units = 0;
    for (index, character) in text[start..end].char_indices() {
        units += match encoding {
            PositionEncoding::Utf8 => character.len_utf8(),
            PositionEncoding::Utf16 => character.len_utf16(),
            PositionEncoding::Utf32 => 1,
        };
        if units > position.character as usize {
            return start + index;
        }
    }
    end
}

fn any_change() -> impl Strategy<Value = TextDocumentContentChangeEvent> {
    let text = "[a-cä漢😀\u{2028}\n\r]{0,6}";
    let ranged = ((0..6u32, 0..8u32), (0..6u32, 0..8u32), text).prop_map(|(a, b, text)| change(a, b, &text));
    prop_oneof![20 => ranged, 1 => text.prop_map(|text| full(&text))]
}

proptest! {
    #[test]
    fn changes_have_the_effect_the_specification_gives_them(
        start in "[a-cä漢😀\r\n]{0,30}",
        changes in prop::collection::vec(any_change(), 1..12),
        encoding in prop::sample::select(vec![PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32]),
    ) {
        let documents = opened(&start);
        let witness = Witness::of(&documents);
        documents.set_encoding(encoding);
        let mut model = start.clone();
        let whole = changes.iter().any(|change| change.range.is_none());
        for change in &changes {
            match change.range {
                None => model.clone_from(&change.text),
                Some(range) => {
                    let a = model_offset(&model, range.start, encoding);
                    let b = model_offset(&model, range.end, encoding);
                    model.replace_range(a.min(b)..a.max(b), &change.text);
                }
            }
        }
        notify(&documents, 2, changes);
        prop_assert_eq!(&text_of(&documents), &model);
        let [DocumentEvent::Changed { edits, .. }] = &*witness.seen() else { panic!("one event") };
        prop_assert_eq!(edits.is_none(), whole);
        if let Some(edits) = edits {
            prop_assert_eq!(apply_edits(&start, edits), model);
        }
    }

    #[test]
    fn edits_of_a_rope_and_of_a_string_agree(
        base in "[a-cä漢😀\r\n]{1,30}",
        cuts in prop::collection::vec((any::<prop::sample::Index>(), "[xyä😀\r\n]{0,4}"), 1..5),
    ) {
        let boundaries: Vec<usize> = base.char_indices().map(|(at, _)| at).chain([base.len()]).collect();
        let mut at: Vec<(usize, String)> = cuts.into_iter().map(|(index, text)| (*index.get(&boundaries), text)).collect();
        at.sort_by_key(|(offset, _)| *offset);
        let edits: Vec<TextEdit> = at.chunks_exact(2).map(|pair| edit(pair[0].0..pair[1].0, &pair[0].1)).collect();
        let expected = apply_edits(&base, &edits);
        prop_assert_eq!(expectation::apply(&Rope::from_str(&base), &edits).to_string(), expected);
    }
}

/// Documents on a disk that folds, with these files on it.
fn folding(files: &[&str]) -> (FoldingDisk, Documents) {
    let disk = FoldingDisk::new(NameFolding::LettersAndForms);
    files.iter().for_each(|file| disk.write(file));
    (disk.clone(), Documents::on(Arc::new(Spellings::new(disk))))
}

fn file(path: &str) -> Target {
    Target::File(AbsPath::new(path).unwrap())
}

#[test]
fn a_document_is_found_by_each_spelling_of_its_file_and_keeps_the_uri_of_its_client() {
    let (disk, documents) = folding(&["/w/Src/README.md", "/w/Src/\u{fc}.rs"]);
    for (uri, path, spellings) in [
        ("file:///w/src/readme.md", "/w/Src/README.md", ["/w/Src/README.md", "/W/SRC/Readme.MD"]),
        ("file:///w/Src/u%CC%88.rs", "/w/Src/\u{fc}.rs", ["/w/Src/\u{fc}.rs", "/w/src/U\u{308}.rs"]),
        ("file:///w/Src/New%28a%29.txt", "/w/Src/New(a).txt", ["/w/Src/New(a).txt", "/w/src/nEW(A).TXT"]),
    ] {
        documents.open(item(uri, 1, "text"));
        let snapshot = documents.snapshot(&url(uri)).unwrap();
        assert_eq!((&*snapshot.uri, snapshot.target()), (uri, file(path)));
        for spelling in spellings {
            assert_eq!(
                documents.snapshot_of(&file(spelling)).map(|found| found.uri).as_deref(),
                Some(uri),
                "{spelling}"
            );
            assert_eq!(documents.uri_of(&file(spelling)), uri);
        }
        assert!(documents.edit_turn(&snapshot).is_some() && documents.expect_save(&file(path)).is_some());
    }
    assert!(documents.snapshot_of(&file("/w/Src/other")).is_none());
    // Saved under its own name, it is the same document.
    disk.write("/w/Src/New(a).txt");
    assert!(documents.snapshot_of(&file("/w/SRC/NEW(A).txt")).is_some());
    documents.close(&TextDocumentIdentifier::new(url("file:///w/src/readme.md")));
    assert!(documents.snapshot_of(&file("/w/Src/README.md")).is_none());
}

#[test]
fn a_keystroke_asks_the_disk_nothing() {
    let (disk, documents) = folding(&["/tmp/A.rs"]);
    documents.open(item(URI, 1, "text"));
    let asked = disk.questions();
    notify(&documents, 2, vec![change((0, 0), (0, 0), "x")]);
    assert_eq!((text_of(&documents).as_str(), disk.questions()), ("xtext", asked));
}

#[test]
fn an_editor_that_shows_a_file_under_two_names_has_two_texts_of_it() {
    let (_, documents) = folding(&["/tmp/a.rs"]);
    documents.open(item("file:///tmp/A.RS", 7, "other"));
    documents.open(item(URI, 1, "text"));
    notify(&documents, 2, vec![change((0, 0), (0, 0), "x")]);
    assert_eq!(text_of(&documents), "xtext");
    assert_eq!(documents.snapshot(&url("file:///tmp/A.RS")).unwrap().text.to_string(), "other");
}
