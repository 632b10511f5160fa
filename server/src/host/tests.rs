//! Edits against editors that are quick, slow, silent, stubborn or wrong.

use futures::FutureExt;
use kode_engine::text::host::DocumentEditOutcome::{Applied, Closed, Rejected, Stale, Unconfirmed};
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;
use crate::server::service;
use crate::testing::TestClient;

const URI: &str = "file:///tmp/a.rs";

/// An editor with one open document.
struct Editor {
    client: TestClient,
    host: Arc<LspHost>,
}

impl Editor {
    async fn new(capabilities: Value, text: &str) -> Self {
        let (service, socket) = service();
        let connection = Arc::clone(service.inner().connection());
        let mut client = TestClient::connect((service, socket), Arc::clone(&connection.lifecycle));
        client.initialize(capabilities).await;
        let document = json!({"uri": URI, "languageId": "rust", "version": 1, "text": text});
        client.notify("textDocument/didOpen", json!({"textDocument": document})).await;
        let mut editor = Self { client, host: Arc::new(LspHost::new(connection)) };
        editor.settle().await;
        editor
    }

    /// An editor that announces versioned edits.
    async fn versioned(text: &str) -> Self {
        Self::new(json!({"workspace": {"applyEdit": true, "workspaceEdit": {"documentChanges": true}}}), text)
            .await
    }

    /// Waits until the server has taken in all that was sent, and shows that it had nothing to say.
    async fn settle(&mut self) {
        let answer = self.client.request(1, "no/such", json!(null)).await;
        assert_eq!(answer["error"]["code"], -32601);
    }

    fn current(&self) -> DocumentSnapshot {
        self.host.documents().remove(0)
    }

    /// Starts the replacement of bytes of the current text.
    fn edit(&self, range: std::ops::Range<usize>, new_text: &str) -> JoinHandle<DocumentEditOutcome> {
        self.edit_on(self.current(), vec![TextEdit { range, new_text: new_text.to_owned() }])
    }

    fn edit_on(&self, base: DocumentSnapshot, edits: Vec<TextEdit>) -> JoinHandle<DocumentEditOutcome> {
        let host = Arc::clone(&self.host);
        let edit = DocumentEdit { base, edits, label: "Kode: Edit a.rs".to_owned() };
        tokio::spawn(async move { host.edit_document(edit).await })
    }

    async fn asked(&mut self) -> Value {
        let request = self.client.receive().await;
        assert_eq!(request["method"], "workspace/applyEdit");
        request
    }

    async fn answer(&mut self, request: &Value, result: Value) {
        self.client.send(json!({"id": request["id"], "result": result})).await;
    }

    async fn type_text(&mut self, version: i32, from: (u32, u32), to: (u32, u32), text: &str) {
        let range = json!({
            "start": {"line": from.0, "character": from.1},
            "end": {"line": to.0, "character": to.1},
        });
        self.changed(version, json!([{"range": range, "text": text}])).await;
    }

    async fn changed(&mut self, version: i32, changes: Value) {
        let document = json!({"uri": URI, "version": version});
        self.client
            .notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": changes}))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_edit_is_sent_versioned_and_labelled_in_the_negotiated_encoding() {
    let mut editor = Editor::versioned("a😀b\nc\n").await;
    let outcome = editor.edit(5..6, "B");
    let request = editor.asked().await;
    let range = json!({"start": {"line": 0, "character": 3}, "end": {"line": 0, "character": 4}});
    assert_eq!(
        request["params"],
        json!({
            "label": "Kode: Edit a.rs",
            "edit": {"documentChanges": [{
                "textDocument": {"uri": URI, "version": 1},
                "edits": [{"range": range, "newText": "B"}],
            }]},
        })
    );
    editor.type_text(2, (0, 3), (0, 4), "B").await;
    editor.answer(&request, json!({"applied": true})).await;
    let Applied(snapshot) = outcome.await.unwrap() else { panic!("not applied") };
    assert_eq!((snapshot.text.to_string().as_str(), snapshot.version), ("a😀B\nc\n", 2));
}

#[tokio::test(start_paused = true)]
async fn without_document_changes_the_plain_form_is_sent() {
    let capabilities = json!({
        "workspace": {"applyEdit": true},
        "general": {"positionEncodings": ["utf-8"]},
    });
    let mut editor = Editor::new(capabilities, "a😀b\n").await;
    let outcome = editor.edit(5..6, "B");
    let request = editor.asked().await;
    let range = json!({"start": {"line": 0, "character": 5}, "end": {"line": 0, "character": 6}});
    assert_eq!(request["params"]["edit"], json!({"changes": {URI: [{"range": range, "newText": "B"}]}}));
    editor.changed(2, json!([{"text": "a😀B\n"}])).await;
    assert!(matches!(outcome.await.unwrap(), Applied(_)));
}

#[tokio::test(start_paused = true)]
async fn a_document_that_shows_the_edit_needs_no_answer() {
    let mut editor = Editor::versioned("abc").await;
    let started = Instant::now();
    let outcome = editor.edit(0..1, "x");
    let request = editor.asked().await;
    editor.type_text(2, (0, 0), (0, 1), "x").await;
    assert!(matches!(outcome.await.unwrap(), Applied(_)));
    assert_eq!(started.elapsed(), Duration::ZERO);
    editor.answer(&request, json!({"applied": false})).await;
    editor.settle().await;
}

#[tokio::test(start_paused = true)]
async fn typing_around_an_unversioned_edit_is_part_of_what_was_applied() {
    let mut editor = Editor::new(json!({"workspace": {"applyEdit": true}}), "abc\n").await;
    let outcome = editor.edit(0..1, "x");
    let request = editor.asked().await;
    editor.type_text(2, (1, 0), (1, 0), "typed").await;
    editor.answer(&request, json!({"applied": true})).await;
    editor.type_text(3, (0, 0), (0, 1), "x").await;
    let Applied(snapshot) = outcome.await.unwrap() else { panic!("not applied") };
    assert_eq!(snapshot.text.to_string(), "xbc\ntyped");
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_claims_to_have_applied_has_five_seconds_to_show_it() {
    for (delay, shown) in [(4, true), (6, false)] {
        let mut editor = Editor::versioned("abc").await;
        let outcome = editor.edit(0..1, "x");
        let request = editor.asked().await;
        editor.answer(&request, json!({"applied": true})).await;
        tokio::time::sleep(Duration::from_secs(delay)).await;
        editor.type_text(2, (0, 0), (0, 1), "x").await;
        match outcome.await.unwrap() {
            Applied(_) => assert!(shown),
            Unconfirmed { reason } => {
                assert!(!shown);
                assert!(reason.contains("said it applied"), "{reason}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_stale_when_the_document_moved_and_a_rejection_when_it_did_not() {
    let refusal = json!({"applied": false, "failureReason": "read only"});
    // The change may come before the answer, shortly after it, or for another reason much later.
    for (typed_before, typed_after, stale) in [
        (true, None, true),
        (false, Some(Duration::from_millis(900)), true),
        (false, Some(Duration::from_secs(2)), false),
    ] {
        let mut editor = Editor::versioned("abc").await;
        let outcome = editor.edit(0..1, "x");
        let request = editor.asked().await;
        if typed_before {
            editor.type_text(2, (0, 3), (0, 3), "d").await;
        }
        editor.answer(&request, refusal.clone()).await;
        if let Some(delay) = typed_after {
            tokio::time::sleep(delay).await;
            editor.type_text(2, (0, 3), (0, 3), "d").await;
        }
        match outcome.await.unwrap() {
            Stale => assert!(stale),
            Rejected { reason } => assert_eq!((stale, reason.as_str()), (false, "read only")),
            other => panic!("{other:?}"),
        }
    }
}

/// The behavior of Neovim: it holds back the typed text for a moment, and an edit that comes in that moment is lost.
#[tokio::test(start_paused = true)]
async fn an_edit_that_is_said_to_be_applied_but_was_dropped_for_typing_is_stale() {
    for (typed_before, shown) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut editor = Editor::versioned("abc").await;
        let outcome = editor.edit(0..1, "x");
        let request = editor.asked().await;
        if typed_before {
            editor.type_text(2, (0, 3), (0, 3), "d").await;
        }
        editor.answer(&request, json!({"applied": true})).await;
        if !typed_before {
            tokio::time::sleep(Duration::from_millis(150)).await;
            editor.type_text(2, (0, 3), (0, 3), "d").await;
        }
        if shown {
            tokio::time::sleep(Duration::from_millis(900)).await;
            editor.type_text(3, (0, 0), (0, 1), "x").await;
        }
        match outcome.await.unwrap() {
            Applied(snapshot) => assert_eq!((shown, snapshot.text.to_string().as_str()), (true, "xbcd")),
            Stale => assert!(!shown),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn errors_and_illegible_answers_end_in_an_outcome() {
    let mut editor = Editor::versioned("abc").await;
    let outcome = editor.edit(0..1, "x");
    let request = editor.asked().await;
    let error = json!({"code": -32803, "message": "no such buffer"});
    editor.client.send(json!({"id": request["id"], "error": error})).await;
    let Rejected { reason } = outcome.await.unwrap() else { panic!("not rejected") };
    assert_eq!(reason, "no such buffer");

    let outcome = editor.edit(0..1, "x");
    let request = editor.asked().await;
    editor.answer(&request, json!(null)).await;
    let Unconfirmed { reason } = outcome.await.unwrap() else { panic!("not unconfirmed") };
    assert!(reason.contains("illegible"), "{reason}");

    let outcome = editor.edit(0..1, "x");
    let request = editor.asked().await;
    editor.answer(&request, json!({"applied": false})).await;
    let Rejected { reason } = outcome.await.unwrap() else { panic!("not rejected") };
    assert_eq!(reason, "the editor gave no reason");
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_never_answers_is_waited_for_thirty_seconds() {
    let mut editor = Editor::versioned("abc").await;
    let started = Instant::now();
    let outcome = editor.edit(0..1, "x");
    let request = editor.asked().await;
    let Unconfirmed { reason } = outcome.await.unwrap() else { panic!("not unconfirmed") };
    assert!(reason.contains("neither answered"), "{reason}");
    assert_eq!(started.elapsed(), EDIT_LIMIT);
    editor.answer(&request, json!({"applied": true})).await;
    editor.settle().await;
}

#[tokio::test(start_paused = true)]
async fn a_document_that_is_closed_ends_the_edit() {
    let mut editor = Editor::versioned("abc").await;
    let base = editor.current();
    let outcome = editor.edit(0..1, "x");
    let request = editor.asked().await;
    editor.client.notify("textDocument/didClose", json!({"textDocument": {"uri": URI}})).await;
    assert!(matches!(outcome.await.unwrap(), Closed));
    editor.answer(&request, json!({"applied": true})).await;
    let edits = vec![TextEdit { range: 0..1, new_text: "x".to_owned() }];
    assert!(matches!(editor.edit_on(base, edits).await.unwrap(), Closed));
    editor.settle().await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_where_it_cannot_succeed() {
    let mut editor = Editor::new(json!({"workspace": {"applyEdit": false}}), "abc").await;
    let Rejected { reason } = editor.edit(0..1, "x").await.unwrap() else { panic!("not rejected") };
    assert!(reason.starts_with("the editor does not offer workspace/applyEdit"), "{reason}");
    editor.settle().await;

    let mut editor = Editor::versioned("abc").await;
    let base = editor.current();
    editor.type_text(2, (0, 3), (0, 3), "d").await;
    editor.settle().await;
    let edits = vec![TextEdit { range: 0..1, new_text: "x".to_owned() }];
    assert!(matches!(editor.edit_on(base, edits).await.unwrap(), Stale));
    assert!(matches!(editor.edit(0..1, "a").await.unwrap(), Applied(_)), "an edit that changes nothing");
    editor.settle().await;
}

#[tokio::test(start_paused = true)]
async fn edits_of_one_document_go_one_after_the_other() {
    let mut editor = Editor::versioned("abc").await;
    let (mut first, second) = (editor.edit(0..1, "x"), editor.edit(2..3, "z"));
    let request = editor.asked().await;
    editor.settle().await;
    assert!((&mut first).now_or_never().is_none());
    editor.type_text(2, (0, 0), (0, 1), "x").await;
    editor.answer(&request, json!({"applied": true})).await;
    assert!(matches!(first.await.unwrap(), Applied(_)));
    assert!(matches!(second.await.unwrap(), Stale), "its base is gone");
}

impl Editor {
    /// An editor that saves when asked.
    async fn saving() -> Self {
        let kode = json!({"protocolVersion": 1, "saveDocuments": true});
        Self::new(json!({"experimental": {"kode": kode}}), "abc").await
    }

    fn save(&self) -> JoinHandle<SaveOutcome> {
        let host = Arc::clone(&self.host);
        let target = self.current().target();
        tokio::spawn(async move { host.save_document(&target).await })
    }

    async fn asked_to_save(&mut self) -> Value {
        let request = self.client.receive().await;
        assert_eq!(request["method"], "agent/editor/save");
        assert_eq!(request["params"], json!({"uris": [URI]}));
        request
    }

    async fn did_save(&mut self) {
        self.client.notify("textDocument/didSave", json!({"textDocument": {"uri": URI}})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_save_counts_when_the_editor_has_saved_or_says_so() {
    let mut editor = Editor::saving().await;
    let outcome = editor.save();
    let request = editor.asked_to_save().await;
    editor.did_save().await;
    assert_eq!(outcome.await.unwrap(), SaveOutcome::Saved);
    editor.answer(&request, json!({"failed": [{"uri": URI, "reason": "late"}]})).await;
    editor.settle().await;

    let failed = |reason: &str| SaveOutcome::Failed { reason: reason.to_owned() };
    let other_spelling = "file:///tmp/./a.rs";
    for (answer, expected) in [
        (json!({"saved": [other_spelling]}), SaveOutcome::Saved),
        (json!({"failed": [{"uri": other_spelling, "reason": "disk full"}]}), failed("disk full")),
        (json!({"saved": ["file:///tmp/b.rs"]}), failed("the editor did not report the result")),
    ] {
        let outcome = editor.save();
        let request = editor.asked_to_save().await;
        editor.answer(&request, answer).await;
        assert_eq!(outcome.await.unwrap(), expected);
    }
    let outcome = editor.save();
    let request = editor.asked_to_save().await;
    let error = json!({"code": -32803, "message": "no such buffer"});
    editor.client.send(json!({"id": request["id"], "error": error})).await;
    assert_eq!(outcome.await.unwrap(), failed("no such buffer"));
}

#[tokio::test(start_paused = true)]
async fn an_editor_that_never_saves_is_waited_for_ten_seconds() {
    let mut editor = Editor::saving().await;
    let started = Instant::now();
    let outcome = editor.save();
    let request = editor.asked_to_save().await;
    let SaveOutcome::Failed { reason } = outcome.await.unwrap() else { panic!("not failed") };
    assert!(reason.contains("10 s"), "{reason}");
    assert_eq!(started.elapsed(), SAVE_LIMIT);
    editor.answer(&request, json!({"saved": [URI]})).await;
    editor.settle().await;
}

#[tokio::test(start_paused = true)]
async fn only_open_documents_of_editors_that_offer_it_are_saved() {
    let mut editor = Editor::saving().await;
    assert!(editor.host.can_save());
    let closed = Target::Untitled("untitled:U1".into());
    assert_eq!(editor.host.save_document(&closed).await, SaveOutcome::NotOpen);
    editor.settle().await;
    let mut editor = Editor::versioned("abc").await;
    assert!(!editor.host.can_save());
    assert!(matches!(editor.save().await.unwrap(), SaveOutcome::Failed { .. }));
    editor.settle().await;
}

#[test]
fn an_edit_inside_a_line_ending_takes_all_of_it() {
    let base = Rope::from_str("a\r\nb\r\n");
    let edit = |range, new_text: &str| TextEdit { range, new_text: new_text.to_owned() };
    for (edits, expected) in [
        (vec![edit(2..3, "")], vec![edit(1..3, "\r")]),
        (vec![edit(1..2, "")], vec![edit(1..3, "\n")]),
        (vec![edit(2..2, "x")], vec![edit(1..3, "\rx\n")]),
        (vec![edit(0..2, "x"), edit(2..4, "y")], vec![edit(0..4, "xy")]),
        (vec![edit(1..3, "\n"), edit(4..6, "\n")], vec![edit(1..3, "\n"), edit(4..6, "\n")]),
    ] {
        assert_eq!(whole_line_endings(&base, &edits), expected, "{edits:?}");
    }
}

proptest! {
    #[test]
    fn an_editor_that_does_as_asked_gets_the_text_that_was_meant(
        base in "[a-cä漢😀\r\n]{1,30}",
        cuts in prop::collection::vec((any::<prop::sample::Index>(), "[xyä😀\r\n]{0,4}"), 2..8),
        encoding in prop::sample::select(vec![PositionEncoding::Utf8, PositionEncoding::Utf16, PositionEncoding::Utf32]),
    ) {
        let boundaries: Vec<usize> = base.char_indices().map(|(at, _)| at).chain([base.len()]).collect();
        let mut cuts: Vec<_> = cuts.into_iter().map(|(index, text)| (*index.get(&boundaries), text)).collect();
        cuts.sort_by_key(|(at, _)| *at);
        let edits: Vec<TextEdit> = cuts
            .chunks_exact(2)
            .map(|pair| TextEdit { range: pair[0].0..pair[1].0, new_text: pair[0].1.clone() })
            .collect();
        let rope = Rope::from_str(&base);
        let mut text = base.clone();
        for edit in to_lsp(&rope, &edits, encoding).into_iter().rev() {
            text.replace_range(encoding.byte_range(&rope, edit.range), &edit.new_text);
        }
        prop_assert_eq!(text, kode_engine::text::edit::change::apply_edits(&base, &edits));
    }
}
