//! `textDocument/codeAction`: what can be decided about the hunks under the cursor, in the file, in the session.
//!
//! Rule: an action carries a command and no edit, the preview of a proposed hunk apart, which the editor itself asks
//! about; nothing that reaches beyond the cursor is offered unless the user asked for actions.

use std::collections::HashMap;

use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::edit::ledger::review::{FileReview, HunkState, HunkView, ReviewAction};
use lsp_types::{
    AnnotatedTextEdit, ChangeAnnotation, CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams,
    CodeActionTriggerKind, Command, Diagnostic, DocumentChanges, OneOf,
    OptionalVersionedTextDocumentIdentifier, TextDocumentEdit, TextEdit, Url, WorkspaceEdit,
};
use serde_json::{Value, json};

use super::diagnostics;
use super::place::{HunkLocation, replaced};
use super::resolve::{REVERT, command};
use super::words::{counts, location, several, short, title};
use super::{PendingHunks, ReviewSummary, SessionReview, waits};
use crate::client::ClientFacts;
use crate::lsp::PositionEncoding;

/// The kind of actions on the hunks under the cursor.
pub(crate) const HERE: CodeActionKind = CodeActionKind::new("refactor.kode.review");

/// The kind of actions on the whole file or session, while the cursor is elsewhere.
pub(crate) const EVERYWHERE: CodeActionKind = CodeActionKind::new("source.kode.review");

/// The name of the one annotation in a preview.
const ANNOTATION: &str = "kode";

/// The abilities of the editor, and its display.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ActionSupport<'a> {
    /// The unit of positions.
    pub(crate) encoding: PositionEncoding,
    /// Whether actions may be more than commands.
    pub(crate) literals: bool,
    /// Whether an edit is asked about before it is made.
    pub(crate) preview: bool,
    /// The document as it is on the screen, if it is open.
    pub(crate) document: Option<&'a DocumentSnapshot>,
}

impl<'a> ActionSupport<'a> {
    /// The abilities of a client, while it shows this document.
    pub(crate) fn new(facts: &ClientFacts, document: Option<&'a DocumentSnapshot>) -> Self {
        Self {
            encoding: facts.encoding,
            literals: facts.code_action_literals,
            preview: facts.document_changes && facts.change_annotations && facts.honors_change_annotations,
            document,
        }
    }
}

/// The actions for a range of a document.
pub(crate) fn actions(
    reviews: &[(SessionReview, ReviewSummary)],
    request: &CodeActionParams,
    editor: ActionSupport<'_>,
) -> Vec<CodeActionOrCommand> {
    let several_sessions = reviews.len() > 1;
    let offer = ReviewOffer { request, editor };
    let mut offered = Vec::new();
    for (review, around) in reviews {
        let text = &review.file.text;
        let placed = review.file.hunks.iter().filter(|hunk| waits(hunk));
        let touched: Vec<_> = placed
            .map(|hunk| (hunk, HunkLocation::of(text, hunk)))
            .filter(|(_, place)| place.touches(text, request.range))
            .collect();
        let whose =
            if several_sessions { format!(" of “{}”", short(&review.title)) } else { String::new() };
        for (hunk, place) in &touched {
            let label = around.calls.get(&hunk.call).map(|call| short(call));
            let preview = offer.preview(&review.file, hunk, label);
            offered.extend(offer.on_hunk(review, (hunk, place), preview, &whose));
        }
        offered.extend(offer.on_all(review, around.waiting, !touched.is_empty(), &whose));
    }
    offered
}

struct ReviewOffer<'a> {
    request: &'a CodeActionParams,
    editor: ActionSupport<'a>,
}

impl ReviewOffer<'_> {
    fn on_hunk(
        &self,
        review: &SessionReview,
        (hunk, place): (&HunkView, &HunkLocation),
        preview: Option<WorkspaceEdit>,
        whose: &str,
    ) -> Vec<CodeActionOrCommand> {
        let attached: Vec<Diagnostic> = self
            .request
            .context
            .diagnostics
            .iter()
            .filter(|diagnostic| diagnostics::is_of(diagnostic, hunk, place, &review.file.text))
            .cloned()
            .collect();
        let mut kinds = vec![HERE];
        if !attached.is_empty() {
            kinds.insert(0, CodeActionKind::QUICKFIX);
        }
        let Some(kind) = self.wanted(kinds) else { return Vec::new() };
        let location = location(place, hunk);
        let decide = |action, text: &str, arguments: Value| CodeAction {
            title: format!("Kode: {text} {location}{whose}"),
            kind: Some(kind.clone()),
            diagnostics: (!attached.is_empty()).then(|| attached.clone()),
            command: Some(command(text, action, arguments)),
            ..CodeAction::default()
        };
        let this = json!({ "sessionId": review.session, "hunkIds": [hunk.id] });
        let mut actions = match hunk.state {
            HunkState::Proposed => vec![
                decide(ReviewAction::Accept, "Allow this change", this.clone()),
                decide(ReviewAction::Reject, "Deny this change", this),
            ],
            HunkState::Applied => vec![
                decide(ReviewAction::Keep, "Keep this change", this.clone()),
                decide(ReviewAction::Undo, "Undo this change", this),
            ],
            HunkState::Conflict => {
                let mut amended = this.clone();
                amended["amended"] = json!("undo");
                vec![
                    decide(ReviewAction::Undo, "Undo, leaving what I typed", amended),
                    decide(ReviewAction::Keep, "Keep as it is", this),
                ]
            }
            HunkState::Kept | HunkState::Undone => Vec::new(),
        };
        if let Some(edit) = preview {
            let title = format!("Kode: Preview this change {location}{whose}");
            let kind = Some(kind);
            actions.push(CodeAction { title, kind, edit: Some(edit), ..CodeAction::default() });
        }
        actions.into_iter().filter_map(|action| self.fitting(action)).collect()
    }

    /// The actions on all hunks of the file and of the session.
    fn on_all(
        &self,
        review: &SessionReview,
        everywhere: PendingHunks,
        touched: bool,
        whose: &str,
    ) -> Vec<CodeActionOrCommand> {
        let kinds = if touched { vec![HERE, EVERYWHERE] } else { vec![EVERYWHERE] };
        let Some(kind) = self.wanted(kinds) else { return Vec::new() };
        // Editors ask by themselves at every move of the cursor, and some carry out what they get when they save.
        let automatic = self.request.context.trigger_kind == Some(CodeActionTriggerKind::AUTOMATIC);
        if automatic && kind == EVERYWHERE {
            return Vec::new();
        }
        let mut actions = Vec::new();
        let mut add = |text: String, command: Command| {
            let title = format!("Kode: {text}{whose}");
            let kind = Some(kind.clone());
            actions.push(CodeAction { title, kind, command: Some(command), ..CodeAction::default() });
        };
        let here = PendingHunks::of([&review.file]);
        let every = [ReviewAction::Accept, ReviewAction::Reject, ReviewAction::Keep, ReviewAction::Undo];
        for action in every {
            let count = here.for_action(action);
            if count > usize::from(touched) {
                let text = format!("{} all in this file ({})", title(action), several(count, "change"));
                let file = json!({ "sessionId": review.session, "uri": self.request.text_document.uri });
                add(text.clone(), command(&text, action, file));
            }
        }
        for action in every {
            let count = everywhere.for_action(action);
            if count > here.for_action(action) {
                let text = format!("{} all changes ({count})", title(action));
                let session = json!({ "sessionId": review.session, "all": true });
                add(text.clone(), command(&text, action, session));
            }
        }
        let text = "Undo the last decision".to_owned();
        let arguments = Some(vec![json!({ "sessionId": review.session })]);
        add(text.clone(), Command { title: text, command: REVERT.to_owned(), arguments });
        actions.into_iter().filter_map(|action| self.fitting(action)).collect()
    }

    /// The first of these kinds that was asked for.
    fn wanted(&self, kinds: Vec<CodeActionKind>) -> Option<CodeActionKind> {
        let Some(only) = &self.request.context.only else { return kinds.into_iter().next() };
        kinds.into_iter().find(|kind| only.iter().any(|wanted| contains(wanted, kind)))
    }

    /// The action as the editor can take it.
    fn fitting(&self, action: CodeAction) -> Option<CodeActionOrCommand> {
        fitting(action, self.editor.literals)
    }

    /// The hunk as an edit that the editor shows and asks about; the engine sees it in the text when it comes.
    fn preview(&self, file: &FileReview, hunk: &HunkView, label: Option<String>) -> Option<WorkspaceEdit> {
        if hunk.state != HunkState::Proposed || !self.editor.preview {
            return None;
        }
        let is_same = |document: &&DocumentSnapshot| {
            document.text.is_instance(&file.text) || document.text == file.text
        };
        let version = Some(self.editor.document.filter(is_same)?.version);
        let range = self.editor.encoding.range(&file.text, replaced(&file.text, hunk)?);
        let edit = TextEdit { range, new_text: hunk.new_text.clone() };
        let label = label.unwrap_or_else(|| "A change of Kode".to_owned());
        Some(annotated(&self.request.text_document.uri, version, edit, label, counts(hunk)))
    }
}

fn annotated(
    uri: &Url,
    version: Option<i32>,
    text_edit: TextEdit,
    label: String,
    description: String,
) -> WorkspaceEdit {
    let annotation =
        ChangeAnnotation { label, needs_confirmation: Some(true), description: Some(description) };
    let edit = AnnotatedTextEdit { text_edit, annotation_id: ANNOTATION.to_owned() };
    WorkspaceEdit {
        changes: None,
        document_changes: Some(DocumentChanges::Edits(vec![TextDocumentEdit {
            text_document: OptionalVersionedTextDocumentIdentifier { uri: uri.clone(), version },
            edits: vec![OneOf::Right(edit)],
        }])),
        change_annotations: Some(HashMap::from([(ANNOTATION.to_owned(), annotation)])),
    }
}

/// The action as an editor can take it that has `literals` or has not.
pub(super) fn fitting(action: CodeAction, literals: bool) -> Option<CodeActionOrCommand> {
    if literals {
        return Some(CodeActionOrCommand::CodeAction(action));
    }
    let title = action.title;
    action.command.map(|command| CodeActionOrCommand::Command(Command { title, ..command }))
}

/// Whether `kind` is `wanted` or one of its sub-kinds.
pub(crate) fn contains(wanted: &CodeActionKind, kind: &CodeActionKind) -> bool {
    let rest = kind.as_str().strip_prefix(wanted.as_str());
    wanted.as_str().is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::review::diagnostics::diagnostics;
    use crate::plain::review::testing::{PATH, WithHunks, file, session};

    const EDITOR: ActionSupport<'_> =
        ActionSupport { encoding: PositionEncoding::Utf16, literals: true, preview: false, document: None };

    /// A request for one line, with what else its context says.
    fn request(line: u32, context: Value) -> CodeActionParams {
        let mut whole = json!({ "diagnostics": [] });
        whole.as_object_mut().unwrap().extend(context.as_object().unwrap().clone());
        let position = json!({ "line": line, "character": 1 });
        serde_json::from_value(json!({
            "textDocument": { "uri": format!("file://{PATH}") },
            "range": { "start": position, "end": position },
            "context": whole,
        }))
        .unwrap()
    }

    /// The actions where nothing waits outside of the document.
    fn given(
        reviews: &[SessionReview],
        request: &CodeActionParams,
        editor: ActionSupport<'_>,
    ) -> Vec<CodeActionOrCommand> {
        let around = |review: &SessionReview| ReviewSummary {
            waiting: PendingHunks::of([&review.file]),
            ..ReviewSummary::default()
        };
        let reviews: Vec<_> = reviews.iter().map(|review| (review.clone(), around(review))).collect();
        actions(&reviews, request, editor)
    }

    fn titles(actions: &[CodeActionOrCommand]) -> Vec<&str> {
        let titles = actions.iter().map(|action| match action {
            CodeActionOrCommand::CodeAction(action) => action.title.as_str(),
            CodeActionOrCommand::Command(command) => command.title.as_str(),
        });
        titles.collect()
    }

    fn commands(actions: &[CodeActionOrCommand]) -> Vec<Value> {
        let actions = actions.iter().map(|action| serde_json::to_value(action).unwrap());
        actions.map(|action| action["command"].clone()).collect()
    }

    #[test]
    fn each_state_has_its_two_actions_on_the_lines_of_the_hunk_alone() {
        let text = "zero\nnew\ntwo\nthree\nmine\nfive\n";
        let file = file(text)
            .applied("new\n", "old\nolder\n", 1..2)
            .proposed("three\n", "3\n", 3)
            .applied("mine\n", "", 4..5)
            .in_conflict();
        let reviews = [session("Fix", file.clone())];
        let asked = json!({ "triggerKind": 2 });
        let at = |line| given(&reviews, &request(line, asked.clone()), EDITOR);
        assert_eq!(titles(&at(0)), Vec::<&str>::new(), "nothing is offered unasked where nothing is");
        assert_eq!(
            titles(&at(1))[..2],
            ["Kode: Keep this change (line 2, +1 -2)", "Kode: Undo this change (line 2, +1 -2)"]
        );
        assert_eq!(
            titles(&at(3))[..2],
            ["Kode: Allow this change (line 4, +1 -1)", "Kode: Deny this change (line 4, +1 -1)"]
        );
        assert_eq!(
            titles(&at(4))[..2],
            ["Kode: Undo, leaving what I typed (line 5, +1 -0)", "Kode: Keep as it is (line 5, +1 -0)"]
        );
        let conflict = commands(&at(4));
        assert_eq!(conflict[0]["command"], "kode.undoEdits");
        assert_eq!(
            conflict[0]["arguments"],
            json!([{ "sessionId": reviews[0].session, "hunkIds": [file.hunks[2].id], "amended": "undo" }])
        );
        assert_eq!(conflict[1]["command"], "kode.keepEdits");
        assert_eq!(conflict[1]["arguments"][0].get("amended"), None);
    }

    #[test]
    fn a_hunk_that_only_removes_is_found_at_its_place() {
        let reviews = [session("Fix", file("a\nb\n").removed("gone\n", 2))];
        let found = given(&reviews, &request(1, json!({})), EDITOR);
        assert_eq!(titles(&found)[0], "Kode: Keep this change (line 2, +0 -1)");
        assert!(!titles(&given(&reviews, &request(0, json!({})), EDITOR))[0].contains("this change"));
    }

    #[test]
    fn all_in_the_file_and_in_the_session_are_counted() {
        let file = file("a\nb\nc\n").applied("a\n", "", 0..1).applied("b\n", "", 1..2);
        let review = session("Fix", file);
        let around = ReviewSummary {
            waiting: PendingHunks { applied: 7, ..PendingHunks::default() },
            ..ReviewSummary::default()
        };
        let uri = format!("file://{PATH}");
        let found = actions(&[(review.clone(), around)], &request(0, json!({})), EDITOR);
        assert_eq!(
            titles(&found)[2..],
            [
                "Kode: Keep all in this file (2 changes)",
                "Kode: Undo all in this file (2 changes)",
                "Kode: Keep all changes (7)",
                "Kode: Undo all changes (7)",
                "Kode: Undo the last decision",
            ]
        );
        let commands = commands(&found);
        assert_eq!(commands[2]["arguments"], json!([{ "sessionId": review.session, "uri": uri }]));
        assert_eq!(commands[5]["arguments"], json!([{ "sessionId": review.session, "all": true }]));
        assert_eq!(commands[6]["command"], "kode.revertEdits");
    }

    #[test]
    fn only_the_kinds_that_were_asked_for_are_given() {
        let reviews = [session("Fix", file("a\nb\nc\n").applied("a\n", "", 0..1).applied("b\n", "", 1..2))];
        let kinds = |line, context: Value| -> Vec<(bool, String)> {
            let found = given(&reviews, &request(line, context), EDITOR);
            let found = found.iter().map(|action| serde_json::to_value(action).unwrap());
            let here = |action: &Value| action["title"].as_str().unwrap().contains("this change");
            let mut kinds: Vec<_> =
                found.map(|action| (here(&action), action["kind"].as_str().unwrap().to_owned())).collect();
            kinds.dedup();
            kinds
        };
        let (here, source) = ("refactor.kode.review".to_owned(), "source.kode.review".to_owned());
        assert_eq!(kinds(0, json!({})), [(true, here.clone()), (false, here.clone())]);
        assert_eq!(kinds(2, json!({})), [(false, source.clone())]);
        assert_eq!(kinds(0, json!({ "only": ["source"] })), [(false, source.clone())]);
        assert_eq!(kinds(0, json!({ "only": ["source"], "triggerKind": 2 })), [], "as on saving");
        assert_eq!(kinds(0, json!({ "only": ["refactor.kode"] })), [(true, here.clone()), (false, here)]);
        for other in ["quickfix", "refactor.k", "source.fixAll", "refactor.kode.review.x"] {
            assert_eq!(kinds(0, json!({ "only": [other] })), [], "{other}");
        }
    }

    #[test]
    fn an_action_on_a_diagnostic_is_its_quick_fix() {
        let file = file("a\nb\n").applied("a\n", "", 0..1).applied("b\n", "", 1..2);
        let mut shown = diagnostics(&file, PositionEncoding::Utf16, |_| None);
        // Editors that keep no `data` send the rest back.
        shown[0].data = None;
        let other: Diagnostic = Diagnostic { source: Some("rustc".to_owned()), ..shown[0].clone() };
        let reviews = [session("Fix", file)];
        let context = json!({ "diagnostics": [other, shown[0], shown[1]], "only": ["quickfix"] });
        let found = given(&reviews, &request(0, context), EDITOR);
        assert_eq!(found.len(), 2);
        let found = serde_json::to_value(&found).unwrap();
        assert_eq!(found[0]["kind"], "quickfix");
        assert_eq!(found[0]["diagnostics"], json!([shown[0]]));
    }

    #[test]
    fn two_sessions_in_one_document_are_distinguished() {
        let one = session("Fix the typo", file("a\nb\n").applied("a\n", "", 0..1));
        let two = session("Rename\nit", file("a\nb\n").proposed("a\n", "A\n", 0));
        let found = given(&[one.clone(), two.clone()], &request(0, json!({})), EDITOR);
        let named: Vec<_> =
            titles(&found).into_iter().filter(|title| title.contains("this change")).collect();
        assert_eq!(
            named,
            [
                "Kode: Keep this change (line 1, +1 -0) of “Fix the typo”",
                "Kode: Undo this change (line 1, +1 -0) of “Fix the typo”",
                "Kode: Allow this change (line 1, +1 -1) of “Rename it”",
                "Kode: Deny this change (line 1, +1 -1) of “Rename it”",
            ]
        );
        let sessions: Vec<_> = commands(&found)
            .into_iter()
            .map(|command| command["arguments"][0]["sessionId"].clone())
            .collect();
        assert_eq!((&sessions[0], sessions.last().unwrap()), (&json!(one.session), &json!(two.session)));
    }

    #[test]
    fn a_preview_is_for_editors_that_ask_about_the_text_it_was_made_for() {
        let mut review = session("Fix", file("🙂a\r\nb\r\n").proposed("🙂a\r\n", "A\r\n", 0));
        let calls = [(review.file.hunks[0].call.clone(), "Edit a.rs".to_owned())].into();
        let around = ReviewSummary { calls, ..ReviewSummary::default() };
        let shown = DocumentSnapshot {
            uri: format!("file://{PATH}"),
            path: None,
            language_id: "rust".to_owned(),
            version: 7,
            text: ropey::Rope::from_str("🙂a\r\nb\r\n"),
        };
        let typed = DocumentSnapshot { text: ropey::Rope::from_str("x🙂a\r\nb\r\n"), ..shown.clone() };
        let previewing = ActionSupport { preview: true, document: Some(&shown), ..EDITOR };
        let find = |review: &SessionReview, editor| {
            let reviews = [(review.clone(), around.clone())];
            let found = actions(&reviews, &request(0, json!({})), editor);
            let found = found.iter().map(|action| serde_json::to_value(action).unwrap());
            found.filter(|action| action.get("edit").is_some()).collect::<Vec<_>>()
        };
        let [preview] = find(&review, previewing).try_into().unwrap();
        assert_eq!(preview["title"], "Kode: Preview this change (line 1, +1 -1)");
        assert_eq!(
            preview["edit"],
            json!({
                "documentChanges": [{
                    "textDocument": { "uri": format!("file://{PATH}"), "version": 7 },
                    "edits": [{
                        "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 1, "character": 0 } },
                        "newText": "A\r\n",
                        "annotationId": "kode",
                    }],
                }],
                "changeAnnotations": {
                    "kode": { "label": "Edit a.rs", "needsConfirmation": true, "description": "+1 -1" },
                },
            })
        );
        assert!(find(&review, EDITOR).is_empty(), "the editor would not ask");
        assert!(find(&review, ActionSupport { literals: false, ..previewing }).is_empty());
        assert!(
            find(&review, ActionSupport { document: Some(&typed), ..previewing }).is_empty(),
            "typed since"
        );
        assert!(find(&review, ActionSupport { document: None, ..previewing }).is_empty(), "not open");
        review.file.hunks[0].old_text = "other\r\n".to_owned();
        assert!(find(&review, previewing).is_empty(), "the text to replace is another");
    }

    #[test]
    fn an_editor_without_literals_gets_commands() {
        let reviews = [session("Fix", file("a\n").applied("a\n", "", 0..1))];
        let found = given(&reviews, &request(0, json!({})), ActionSupport { literals: false, ..EDITOR });
        let found = serde_json::to_value(&found).unwrap();
        assert_eq!(found[0]["title"], "Kode: Keep this change (line 1, +1 -0)");
        assert_eq!(found[0]["command"], "kode.keepEdits");
    }
}
