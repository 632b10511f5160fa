//! Going back to checkpoints, and files that commands replaced as a whole.

use std::process::Command;

use HunkState::Applied;

use super::*;
use crate::edits::review::{AmendedPolicy, RestoreWhat, UserEdits};
use crate::edits::tests::{EditBench, edit};
use crate::state::new_item;
use kode_base::ids::{CallId, ChangeId, CheckpointId, TurnId};
use kode_model::Usage;
use kode_record::event::{ItemBody, TurnEnd};
use kode_record::options::TurnOptions;
use kode_record::record::TurnFigures;
use kode_text::edit::ledger::review::Selection;
use kode_text::workspace::Portion;

impl EditBench {
    /// A turn begins with a prompt, after the one before has ended.
    fn asks(&mut self, text: &str) -> TurnId {
        self.ends_turn();
        let turn = TurnId::generate();
        let item = new_item(&turn, ItemBody::user_message(text));
        let record = Record::Prompt {
            turn: turn.clone(),
            queued: None,
            item,
            content: vec![],
            parts: vec![],
            options: TurnOptions::default(),
        };
        self.session.core().commit(record);
        self.turn = turn.clone();
        turn
    }

    fn ends_turn(&self) {
        let Some(turn) = self.session.core().state().running.id.clone() else { return };
        let (reason, usage, figures) = (TurnEnd::EndTurn, Usage::default(), TurnFigures::default());
        self.session.core().commit(Record::TurnEnded { turn, reason, usage, figures });
    }

    fn change(&self) -> ChangeOrigin {
        let (id, call) = (ChangeId::generate(), CallId::generate());
        ChangeOrigin { id, turn: self.turn.clone(), call, kind: HunkKind::Text, permission: None }
    }

    /// The agent runs a command.
    async fn runs(&self, script: &str) {
        let scan = self.session.edits().before_command().await;
        let status = Command::new("sh").arg("-c").arg(script).current_dir(self.rig.path("")).status();
        assert!(status.unwrap().success());
        self.session.edits().after_command(scan, &self.change()).await;
    }

    /// Undoes all, brings it back, and undoes it again, to the same each time.
    async fn goes_round(&mut self, look: impl Fn(&Self) -> Vec<String>, before: &[&str]) {
        let before: Vec<String> = before.iter().map(ToString::to_string).collect();
        let after = look(self);
        let undo = Selection::Session;
        let outcome = self.resolve(undo.clone(), ReviewAction::Undo, AmendedPolicy::Ask).await;
        assert_eq!((look(self), outcome.failed.len()), (before.clone(), 0), "{outcome:?}");
        self.restart().await;
        let outcome = self.revert().await;
        assert_eq!((look(self), outcome.failed.len()), (after, 0), "{outcome:?}");
        let outcome = self.resolve(undo, ReviewAction::Undo, AmendedPolicy::Ask).await;
        assert_eq!((look(self), outcome.failed.len()), (before.clone(), 0), "{outcome:?}");
    }

    async fn restores(&mut self, turn: &TurnId, what: RestoreWhat, edits: UserEdits) -> ResolutionOutcome {
        self.ends_turn();
        let id = self.session.edits().restore(&CheckpointId::before(turn), what, edits).unwrap();
        self.settled(&id).await
    }
}

#[tokio::test]
async fn turns_that_the_conversation_has_lost_are_still_restored_with_the_files() {
    let mut bench = EditBench::new();
    bench.rig.write("a.txt", "one\n");
    bench.rig.write("b.txt", "one\n");
    let first = bench.asks("first");
    bench.replaces("a.txt", "one", "1").await;
    let second = bench.asks("second");
    bench.replaces("b.txt", "one", "1").await;
    bench.restores(&second, RestoreWhat::Conversation, UserEdits::Keep).await;
    bench.asks("third");
    bench.restores(&first, RestoreWhat::Files, UserEdits::Keep).await;
    assert_eq!((bench.rig.text("a.txt"), bench.rig.text("b.txt")), ("one\n".into(), "one\n".into()));
}

#[tokio::test]
async fn after_going_back_the_session_is_named_reported_and_trusted_as_if_the_rest_had_not_been() {
    let mut bench = EditBench::new();
    bench.rig.write("a.txt", "one\ntwo\n");
    let first = bench.asks("first words");
    bench.replaces("a.txt", "two", "2").await;
    let file = bench.session.services().environment.workspace.text(&bench.target("a.txt")).await.unwrap();
    bench.session.services().environment.workspace.note_read(&file, &Portion::Whole);
    bench.restores(&first, RestoreWhat::Both, UserEdits::Keep).await;
    assert_eq!(bench.rig.text("a.txt"), "one\ntwo\n");
    assert_eq!(bench.news(), None);
    assert!(!bench.session.services().environment.workspace.has_read_whole(&bench.target("a.txt")));
    assert_eq!(bench.session.snapshot(0).title, "");
    bench.revert().await;
    assert_eq!((bench.session.snapshot(0).title.as_str(), bench.news()), ("first words", None));
    bench.restores(&first, RestoreWhat::Both, UserEdits::Keep).await;
    bench.asks("other words");
    assert_eq!(bench.session.snapshot(0).title, "other words");
}

#[tokio::test]
async fn what_was_reported_in_turns_that_are_gone_is_reported_again() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "one\ntwo\n");
    bench.asks("first");
    bench.replaces("a.txt", "two", "2").await;
    bench.resolve(Selection::Session, ReviewAction::Undo, AmendedPolicy::Ask).await;
    assert!(bench.news().is_some());
    let second = bench.asks("second");
    bench.session.edits().enter_given_news(&second);
    assert_eq!(bench.news(), None);
    bench.restores(&second, RestoreWhat::Conversation, UserEdits::Keep).await;
    bench.restart().await;
    assert!(bench.news().is_some_and(|reported| reported.contains("`a.txt` at line 2: undone")));
}

#[tokio::test]
async fn a_step_that_the_editor_has_taken_back_already_does_not_stop_those_before_it() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "one\ntwo\n");
    bench.agent("a.txt", vec![edit(0..3, "1")]).await.unwrap();
    bench.agent("a.txt", vec![edit(2..5, "2")]).await.unwrap();
    for hunk in bench.hunks("a.txt") {
        bench.resolve(Selection::Hunks(vec![hunk]), ReviewAction::Undo, AmendedPolicy::Ask).await;
    }
    bench.rig.type_text("a.txt", "one\n2\n");
    bench.revert().await;
    bench.revert().await;
    assert_eq!(bench.rig.shown("a.txt"), "1\n2\n");
}

/// The text or bytes of a file, with whether it can be run; "-" if absent.
fn seen(bench: &EditBench, name: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = bench.rig.path(name);
    let Ok(metadata) = std::fs::metadata(&path) else { return "-".to_owned() };
    if metadata.is_dir() {
        return "/".to_owned();
    }
    let runs = if metadata.permissions().mode() & 0o100 == 0 { "" } else { "*" };
    format!("{}{runs}", std::fs::read(path).unwrap().escape_ascii())
}

#[tokio::test]
async fn binary_files_and_files_that_became_folders_are_undone_kept_and_brought_back() {
    let mut bench = EditBench::new();
    bench.rig.write("a", "one\n");
    bench.rig.write("logo.png", b"\x89PNG\r\n\x1a\n\0\x01");
    bench.runs("printf '\\000\\002' >> logo.png; rm a; mkdir a; echo x > a/b").await;
    let kept = bench.resolve(Selection::Session, ReviewAction::Keep, AmendedPolicy::Ask).await;
    assert_eq!(
        (kept.resolved.len(), kept.failed.len(), bench.session.edits().review().len()),
        (3, 0, 0),
        "{kept:?}"
    );
    bench.revert().await;
    assert_eq!(bench.session.edits().review().len(), 3);
    let look = |bench: &EditBench| vec![seen(bench, "logo.png"), seen(bench, "a"), seen(bench, "a/b")];
    bench.goes_round(look, &["\\x89PNG\\r\\n\\x1a\\n\\x00\\x01", "one\\n", "-"]).await;
}

#[tokio::test]
async fn whole_files_and_texts_are_undone_in_the_reverse_order_of_their_changes() {
    let mut bench = EditBench::new();
    bench.rig.write("run.sh", "one\n");
    bench.rig.write("a.txt", "one\ntwo\n");
    bench.replaces("a.txt", "two", "2").await;
    bench.runs("chmod +x run.sh; rm a.txt").await;
    bench.replaces("run.sh", "one", "1").await;
    bench.agent("a.txt", vec![edit(0..0, "new\n")]).await.unwrap();
    bench.runs("printf '\\000' > a.txt").await;
    let look = |bench: &EditBench| vec![seen(bench, "run.sh"), seen(bench, "a.txt")];
    assert_eq!(look(&bench), ["1\\n*", "\\x00"]);
    bench.goes_round(look, &["one\\n", "one\\ntwo\\n"]).await;
}

#[tokio::test]
async fn a_restore_leaves_alone_what_the_user_deleted_and_makes_no_file_of_fragments() {
    let mut bench = EditBench::new();
    bench.rig.write("a.txt", "one\ntwo\nthree\n");
    let turn = bench.asks("go");
    bench.replaces("a.txt", "two", "2").await;
    bench.agent("made.txt", vec![edit(0..0, "made\n")]).await.unwrap();
    for name in ["a.txt", "made.txt"] {
        std::fs::remove_file(bench.rig.path(name)).unwrap();
    }
    bench.restart().await;
    let outcome = bench.restores(&turn, RestoreWhat::Files, UserEdits::Keep).await;
    assert_eq!((outcome.resolved.len(), outcome.failed.len()), (2, 0), "{outcome:?}");
    assert_eq!((seen(&bench, "a.txt"), seen(&bench, "made.txt")), ("-".into(), "-".into()));
    let hunks = bench.session.edits().synced().ledger.every_hunk();
    let back = bench.resolve(Selection::Hunks(hunks), ReviewAction::Accept, AmendedPolicy::Ask).await;
    assert_eq!((seen(&bench, "a.txt"), seen(&bench, "made.txt")), ("-".into(), "made\\n".into()));
    assert!(back.failed[0].1.contains("bring the file back first"), "{back:?}");
    // The user brings the file back as it was before the agent came.
    bench.rig.write("a.txt", "zero\none\ntwo\nthree\n");
    let hunks = bench.session.edits().synced().ledger.every_hunk();
    bench.resolve(Selection::Hunks(hunks), ReviewAction::Accept, AmendedPolicy::Ask).await;
    assert_eq!(bench.rig.text("a.txt"), "zero\none\n2\nthree\n");
    assert_eq!(bench.review("a.txt"), [(Applied, "two\n".into(), "2\n".into())]);
}

#[tokio::test]
async fn discarding_makes_files_what_they_were_to_the_byte_and_can_be_taken_back() {
    let mut bench = EditBench::new();
    let names = ["made.txt", "logo.png", "link", "bom.txt", "run.sh", "deleted.txt"];
    bench.rig.write("logo.png", b"\x89PNG\r\n\x1a\n\0\x01");
    bench.rig.write("bom.txt", "\u{feff}one\ntwo\n");
    bench.rig.write("run.sh", "one\n");
    bench.rig.write("deleted.txt", "one\n");
    std::os::unix::fs::symlink("run.sh", bench.rig.path("link")).unwrap();
    let look = |bench: &EditBench| {
        let link = std::fs::read_link(bench.rig.path("link")).is_ok();
        (names.map(|name| seen(bench, name)), link)
    };
    let before = look(&bench);
    let turn = bench.asks("go");
    bench.agent("made.txt", vec![edit(0..0, "made\n")]).await.unwrap();
    bench.runs("printf '\\002' >> logo.png; rm link; echo x > link").await;
    for (name, new) in [("bom.txt", "1"), ("run.sh", "1"), ("deleted.txt", "1")] {
        bench.replaces(name, "one", new).await;
    }
    bench.rig.write("made.txt", "made\nmine\n");
    bench.rig.write("bom.txt", "1\nmine\ntwo\n");
    bench.rig.write("link", "x\nmine\n");
    std::fs::remove_file(bench.rig.path("deleted.txt")).unwrap();
    assert!(Command::new("chmod").arg("+x").arg(bench.rig.path("run.sh")).status().unwrap().success());
    let after = look(&bench);
    let checkpoint = CheckpointId::before(&turn);
    let preview = bench.session.edits().preview_restore(&checkpoint, RestoreWhat::Files, UserEdits::Discard);
    let preview = preview.await.unwrap();
    assert_eq!((preview.files.len(), look(&bench)), (6, after.clone()), "{preview:?}");
    assert!(preview.files.iter().all(|file| file.problem.is_none()), "{preview:?}");
    let logo = preview.files.iter().find(|file| file.target == bench.target("logo.png")).unwrap();
    assert_eq!(logo.unified, "logo.png: binary file, 11 bytes, mode 644 → binary file, 10 bytes, mode 644");
    for _ in 0..2 {
        let outcome = bench.restores(&turn, RestoreWhat::Files, UserEdits::Discard).await;
        assert_eq!((look(&bench), outcome.failed.len()), (before.clone(), 0), "{outcome:?}");
        bench.restart().await;
        let outcome = bench.revert().await;
        assert_eq!((look(&bench), outcome.failed.len()), (after.clone(), 0), "{outcome:?}");
    }
}

#[tokio::test]
async fn discarding_empties_the_document_of_a_file_that_was_not_there() {
    let mut bench = EditBench::new();
    let turn = bench.asks("go");
    bench.agent("a.txt", vec![edit(0..0, "made\n")]).await.unwrap();
    bench.rig.open("a.txt", "made\n");
    bench.rig.type_text("a.txt", "made\nmine\n");
    let outcome = bench.restores(&turn, RestoreWhat::Files, UserEdits::Discard).await;
    assert_eq!((bench.rig.shown("a.txt"), seen(&bench, "a.txt")), (String::new(), "-".into()), "{outcome:?}");
    let outcome = bench.revert().await;
    assert_eq!(bench.rig.shown("a.txt"), "made\nmine\n", "{outcome:?}");
    assert_eq!((seen(&bench, "a.txt"), outcome.failed.len()), ("made\\n".into(), 0));
}

/// A file that is open in the editor and that a command changes.
async fn open_and_changed(
    during: impl FnOnce(&EditBench),
    after: impl FnOnce(&EditBench),
) -> (EditBench, TurnId) {
    let mut bench = EditBench::new();
    bench.rig.write("a.txt", "one\ntwo\nthree\n");
    bench.rig.open("a.txt", "one\ntwo\nthree\n");
    let turn = bench.asks("go");
    bench.replaces("a.txt", "three", "3").await;
    bench.rig.save_by_itself("a.txt");
    let began = bench.session.edits().before_command().await;
    bench.rig.write("a.txt", "one\n2\n3\n");
    during(&bench);
    // The editor's events are taken in as they come.
    bench.session.edits().take_in_typing().await;
    drop(bench.session.edits().synced());
    bench.session.edits().after_command(began, &bench.change()).await;
    after(&bench);
    drop(bench.session.edits().synced());
    bench.check(&["a.txt"]).await;
    (bench, turn)
}

#[tokio::test]
async fn what_a_command_does_to_an_open_file_is_the_agents_whenever_the_editor_loads_it_again() {
    let reload = |bench: &EditBench| bench.rig.type_text("a.txt", "one\n2\n3\n");
    let hunks = [(Applied, "two\n".into(), "2\n".into()), (Applied, "three\n".into(), "3\n".into())];
    for (bench, turn) in [open_and_changed(reload, |_| ()).await, open_and_changed(|_| (), reload).await] {
        let mut bench = bench;
        assert_eq!(bench.review("a.txt"), hunks);
        bench.restart().await;
        let outcome = bench.restores(&turn, RestoreWhat::Files, UserEdits::Keep).await;
        assert_eq!((outcome.resolved.len(), outcome.failed.len()), (2, 0), "{outcome:?}");
        assert_eq!(bench.rig.shown("a.txt"), "one\ntwo\nthree\n");
    }
}

#[tokio::test]
async fn what_the_user_types_or_saves_while_a_command_runs_stays_the_users() {
    let (bench, _) = open_and_changed(|bench| bench.types("a.txt", "one", "zero\none"), |_| ()).await;
    let seen = |bench: &EditBench| (bench.review("a.txt").len(), bench.rig.shown("a.txt"));
    // The line of the agent's, and the file as a whole that the command has left on the disk.
    assert_eq!(seen(&bench), (2, "zero\none\ntwo\n3\n".into()));
    let saves = |bench: &EditBench| {
        bench.types("a.txt", "two", "zwei");
        bench.rig.save_by_itself("a.txt");
    };
    let (mut bench, turn) = open_and_changed(saves, |_| ()).await;
    assert_eq!(seen(&bench), (1, "one\nzwei\n3\n".into()));
    bench.restores(&turn, RestoreWhat::Files, UserEdits::Keep).await;
    assert_eq!(bench.rig.shown("a.txt"), "one\nzwei\nthree\n");
}

#[tokio::test]
async fn a_guest_that_writes_while_others_do_is_named_for_all_files_but_theirs() {
    let mut bench = EditBench::new();
    bench.rig.open("saved.txt", "two\n");
    for name in ["own.txt", "guest.txt", "any.txt", "saved.txt"] {
        bench.rig.write(name, "one\n");
    }
    bench.asks("go");
    let (edits, change) = (Arc::clone(bench.session.edits()), bench.change());
    edits.guest_begins(change.clone()).await;
    let pause = edits.pause_guests().await;
    // What is in a document now may have been saved by the user.
    for name in ["own.txt", "guest.txt", "saved.txt"] {
        bench.rig.write(name, "two\n");
    }
    edits.resume_guests(pause, Some(&[bench.target("own.txt")])).await;
    // Where any file may be one of others, none is the guest's.
    let pause = edits.pause_guests().await;
    bench.rig.write("any.txt", "two\n");
    edits.resume_guests(pause, None).await;
    // One change is made within another.
    let (outer, inner) = (edits.pause_guests().await, edits.pause_guests().await);
    bench.rig.write("inner.txt", "two\n");
    edits.resume_guests(inner, Some(&[bench.target("inner.txt")])).await;
    edits.resume_guests(outer, Some(&[])).await;
    assert_eq!(edits.guest_ends(&change.id).await, [bench.target("guest.txt")]);
    assert_eq!(bench.review("guest.txt"), [(Applied, "one\n".into(), "two\n".into())]);
    for name in ["own.txt", "any.txt", "saved.txt", "inner.txt"] {
        assert_eq!(bench.review(name), [], "{name}");
    }
}

#[tokio::test]
async fn a_guest_that_writes_the_same_as_a_call_and_is_faster_is_named_for_it() {
    let mut bench = EditBench::new();
    bench.rig.open("shown.txt", "one\n");
    for name in ["own.txt", "guest.txt", "shown.txt"] {
        bench.rig.write(name, "one\n");
    }
    bench.types("shown.txt", "one", "zero\none");
    bench.asks("go");
    let (edits, change) = (Arc::clone(bench.session.edits()), bench.change());
    edits.guest_begins(change.clone()).await;
    let mut sets = Vec::new();
    for (name, at) in [("own.txt", 0), ("guest.txt", 0), ("shown.txt", 5)] {
        sets.push(bench.plans(name, vec![edit(at..at + 3, "two")]).await);
    }
    let pause = edits.pause_guests().await;
    // The call is planned by now. It changes the document that is open, and the guest its file.
    for name in ["guest.txt", "shown.txt"] {
        bench.rig.write(name, "two\n");
    }
    let mut own = Vec::new();
    for set in sets {
        let applied = edits.apply_change(set, &bench.change(), &[], &CancellationToken::new()).await.unwrap();
        own.extend(edits.written(&applied, &[]).await);
    }
    assert_eq!(own, [bench.target("own.txt")]);
    edits.resume_guests(pause, Some(&own)).await;
    let by_guest = [bench.target("guest.txt"), bench.target("shown.txt")];
    assert_eq!(edits.guest_ends(&change.id).await, by_guest);
    assert_eq!(bench.review("guest.txt"), [(Applied, "one\n".into(), "two\n".into())]);
    assert_eq!(bench.review("own.txt").len(), 1);
}
