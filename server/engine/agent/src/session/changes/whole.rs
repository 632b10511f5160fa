//! Going back to checkpoints, and files that commands replaced as a whole.

use std::process::Command;

use HunkState::Applied;

use super::tests::{Desk, edit};
use super::*;
use crate::session::new_item;
use crate::session::review::{Amended, RestoreWhat, UserEdits};
use kode_base::ids::{CallId, ChangeId, CheckpointId, TurnId};
use kode_record::event::ItemBody;
use kode_record::options::TurnOptions;
use kode_text::edit::ledger::review::Selection;
use kode_text::workspace::Portion;

impl Desk {
    /// A turn begins with a prompt.
    fn asks(&mut self, text: &str) -> TurnId {
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
        self.session.commit(record);
        self.turn = turn.clone();
        turn
    }

    fn change(&self) -> ChangeOrigin {
        let (id, call) = (ChangeId::generate(), CallId::generate());
        ChangeOrigin { id, turn: self.turn.clone(), call, kind: HunkKind::Text, permission: None }
    }

    /// The agent runs a command.
    async fn runs(&self, script: &str) {
        let scan = self.session.before_command().await;
        let status = Command::new("sh").arg("-c").arg(script).current_dir(self.rig.path("")).status();
        assert!(status.unwrap().success());
        self.session.after_command(scan, &self.change()).await;
    }

    /// Undoes all, brings it back, and undoes it again, to the same each time.
    async fn goes_round(&mut self, look: impl Fn(&Self) -> Vec<String>, before: &[&str]) {
        let before: Vec<String> = before.iter().map(ToString::to_string).collect();
        let after = look(self);
        let undo = Selection::Session;
        let outcome = self.resolve(undo.clone(), ReviewAction::Undo, Amended::Ask).await;
        assert_eq!((look(self), outcome.failed.len()), (before.clone(), 0), "{outcome:?}");
        self.restart().await;
        let outcome = self.revert().await;
        assert_eq!((look(self), outcome.failed.len()), (after, 0), "{outcome:?}");
        let outcome = self.resolve(undo, ReviewAction::Undo, Amended::Ask).await;
        assert_eq!((look(self), outcome.failed.len()), (before.clone(), 0), "{outcome:?}");
    }

    async fn restores(&mut self, turn: &TurnId, what: RestoreWhat, edits: UserEdits) -> ResolutionOutcome {
        let id = self.session.restore(&CheckpointId::before(turn), what, edits).unwrap();
        self.settled(&id).await
    }
}

#[tokio::test]
async fn turns_that_the_conversation_has_lost_are_still_restored_with_the_files() {
    let mut desk = Desk::new();
    desk.rig.write("a.txt", "one\n");
    desk.rig.write("b.txt", "one\n");
    let first = desk.asks("first");
    desk.replaces("a.txt", "one", "1").await;
    let second = desk.asks("second");
    desk.replaces("b.txt", "one", "1").await;
    desk.restores(&second, RestoreWhat::Conversation, UserEdits::Keep).await;
    desk.asks("third");
    desk.restores(&first, RestoreWhat::Files, UserEdits::Keep).await;
    assert_eq!((desk.rig.text("a.txt"), desk.rig.text("b.txt")), ("one\n".into(), "one\n".into()));
}

#[tokio::test]
async fn after_going_back_the_session_is_named_told_and_trusted_as_if_the_rest_had_not_been() {
    let mut desk = Desk::new();
    desk.rig.write("a.txt", "one\ntwo\n");
    let first = desk.asks("first words");
    desk.replaces("a.txt", "two", "2").await;
    let file = desk.session.workspace.text(&desk.target("a.txt")).await.unwrap();
    desk.session.workspace.note_read(&file, &Portion::Whole);
    desk.restores(&first, RestoreWhat::Both, UserEdits::Keep).await;
    assert_eq!(desk.rig.text("a.txt"), "one\ntwo\n");
    assert_eq!(desk.news(), None);
    assert!(!desk.session.workspace.has_read_whole(&desk.target("a.txt")));
    assert_eq!(desk.session.snapshot(0).title, "");
    desk.revert().await;
    assert_eq!((desk.session.snapshot(0).title.as_str(), desk.news()), ("first words", None));
    desk.restores(&first, RestoreWhat::Both, UserEdits::Keep).await;
    desk.asks("other words");
    assert_eq!(desk.session.snapshot(0).title, "other words");
}

#[tokio::test]
async fn what_was_told_in_turns_that_are_gone_is_told_again() {
    let mut desk = Desk::new();
    desk.rig.open("a.txt", "one\ntwo\n");
    desk.asks("first");
    desk.replaces("a.txt", "two", "2").await;
    desk.resolve(Selection::Session, ReviewAction::Undo, Amended::Ask).await;
    assert!(desk.news().is_some());
    let second = desk.asks("second");
    desk.session.note_told(&second);
    assert_eq!(desk.news(), None);
    desk.restores(&second, RestoreWhat::Conversation, UserEdits::Keep).await;
    desk.restart().await;
    assert!(desk.news().is_some_and(|told| told.contains("`a.txt` at line 2: undone")));
}

#[tokio::test]
async fn a_step_that_the_editor_has_taken_back_already_does_not_stop_those_before_it() {
    let mut desk = Desk::new();
    desk.rig.open("a.txt", "one\ntwo\n");
    desk.agent("a.txt", vec![edit(0..3, "1")]).await.unwrap();
    desk.agent("a.txt", vec![edit(2..5, "2")]).await.unwrap();
    for hunk in desk.hunks("a.txt") {
        desk.resolve(Selection::Hunks(vec![hunk]), ReviewAction::Undo, Amended::Ask).await;
    }
    desk.rig.type_text("a.txt", "one\n2\n");
    desk.revert().await;
    desk.revert().await;
    assert_eq!(desk.rig.shown("a.txt"), "1\n2\n");
}

/// The text or bytes of a file, with whether it can be run; "-" when there is none.
fn seen(desk: &Desk, name: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = desk.rig.path(name);
    let Ok(metadata) = std::fs::metadata(&path) else { return "-".to_owned() };
    if metadata.is_dir() {
        return "/".to_owned();
    }
    let runs = if metadata.permissions().mode() & 0o100 == 0 { "" } else { "*" };
    format!("{}{runs}", std::fs::read(path).unwrap().escape_ascii())
}

#[tokio::test]
async fn binary_files_and_files_that_became_folders_are_undone_kept_and_brought_back() {
    let mut desk = Desk::new();
    desk.rig.write("a", "one\n");
    desk.rig.write("logo.png", b"\x89PNG\r\n\x1a\n\0\x01");
    desk.runs("printf '\\000\\002' >> logo.png; rm a; mkdir a; echo x > a/b").await;
    let kept = desk.resolve(Selection::Session, ReviewAction::Keep, Amended::Ask).await;
    assert_eq!((kept.resolved.len(), kept.failed.len(), desk.session.review().len()), (3, 0, 0), "{kept:?}");
    desk.revert().await;
    assert_eq!(desk.session.review().len(), 3);
    let look = |desk: &Desk| vec![seen(desk, "logo.png"), seen(desk, "a"), seen(desk, "a/b")];
    desk.goes_round(look, &["\\x89PNG\\r\\n\\x1a\\n\\x00\\x01", "one\\n", "-"]).await;
}

#[tokio::test]
async fn whole_files_and_texts_are_undone_in_the_reverse_order_of_their_changes() {
    let mut desk = Desk::new();
    desk.rig.write("run.sh", "one\n");
    desk.rig.write("a.txt", "one\ntwo\n");
    desk.replaces("a.txt", "two", "2").await;
    desk.runs("chmod +x run.sh; rm a.txt").await;
    desk.replaces("run.sh", "one", "1").await;
    desk.agent("a.txt", vec![edit(0..0, "new\n")]).await.unwrap();
    desk.runs("printf '\\000' > a.txt").await;
    let look = |desk: &Desk| vec![seen(desk, "run.sh"), seen(desk, "a.txt")];
    assert_eq!(look(&desk), ["1\\n*", "\\x00"]);
    desk.goes_round(look, &["one\\n", "one\\ntwo\\n"]).await;
}

#[tokio::test]
async fn a_restore_leaves_alone_what_the_user_deleted_and_makes_no_file_of_fragments() {
    let mut desk = Desk::new();
    desk.rig.write("a.txt", "one\ntwo\nthree\n");
    let turn = desk.asks("go");
    desk.replaces("a.txt", "two", "2").await;
    desk.agent("made.txt", vec![edit(0..0, "made\n")]).await.unwrap();
    for name in ["a.txt", "made.txt"] {
        std::fs::remove_file(desk.rig.path(name)).unwrap();
    }
    desk.restart().await;
    let outcome = desk.restores(&turn, RestoreWhat::Files, UserEdits::Keep).await;
    assert_eq!((outcome.resolved.len(), outcome.failed.len()), (2, 0), "{outcome:?}");
    assert_eq!((seen(&desk, "a.txt"), seen(&desk, "made.txt")), ("-".into(), "-".into()));
    let hunks = desk.session.sync_changes().ledger.every_hunk();
    let back = desk.resolve(Selection::Hunks(hunks), ReviewAction::Accept, Amended::Ask).await;
    assert_eq!((seen(&desk, "a.txt"), seen(&desk, "made.txt")), ("-".into(), "made\\n".into()));
    assert!(back.failed[0].1.contains("bring the file back first"), "{back:?}");
    // The user brings the file back as it was before the agent came.
    desk.rig.write("a.txt", "zero\none\ntwo\nthree\n");
    let hunks = desk.session.sync_changes().ledger.every_hunk();
    desk.resolve(Selection::Hunks(hunks), ReviewAction::Accept, Amended::Ask).await;
    assert_eq!(desk.rig.text("a.txt"), "zero\none\n2\nthree\n");
    assert_eq!(desk.review("a.txt"), [(Applied, "two\n".into(), "2\n".into())]);
}

#[tokio::test]
async fn discarding_makes_files_what_they_were_to_the_byte_and_can_be_taken_back() {
    let mut desk = Desk::new();
    let names = ["made.txt", "logo.png", "link", "bom.txt", "run.sh", "deleted.txt"];
    desk.rig.write("logo.png", b"\x89PNG\r\n\x1a\n\0\x01");
    desk.rig.write("bom.txt", "\u{feff}one\ntwo\n");
    desk.rig.write("run.sh", "one\n");
    desk.rig.write("deleted.txt", "one\n");
    std::os::unix::fs::symlink("run.sh", desk.rig.path("link")).unwrap();
    let look = |desk: &Desk| {
        let link = std::fs::read_link(desk.rig.path("link")).is_ok();
        (names.map(|name| seen(desk, name)), link)
    };
    let before = look(&desk);
    let turn = desk.asks("go");
    desk.agent("made.txt", vec![edit(0..0, "made\n")]).await.unwrap();
    desk.runs("printf '\\002' >> logo.png; rm link; echo x > link").await;
    for (name, new) in [("bom.txt", "1"), ("run.sh", "1"), ("deleted.txt", "1")] {
        desk.replaces(name, "one", new).await;
    }
    desk.rig.write("made.txt", "made\nmine\n");
    desk.rig.write("bom.txt", "1\nmine\ntwo\n");
    desk.rig.write("link", "x\nmine\n");
    std::fs::remove_file(desk.rig.path("deleted.txt")).unwrap();
    assert!(Command::new("chmod").arg("+x").arg(desk.rig.path("run.sh")).status().unwrap().success());
    let after = look(&desk);
    let checkpoint = CheckpointId::before(&turn);
    let preview = desk.session.preview_restore(&checkpoint, RestoreWhat::Files, UserEdits::Discard);
    let preview = preview.await.unwrap();
    assert_eq!((preview.files.len(), look(&desk)), (6, after.clone()), "{preview:?}");
    assert!(preview.files.iter().all(|file| file.problem.is_none()), "{preview:?}");
    let logo = preview.files.iter().find(|file| file.target == desk.target("logo.png")).unwrap();
    assert_eq!(logo.unified, "logo.png: binary file, 11 bytes, mode 644 → binary file, 10 bytes, mode 644");
    for _ in 0..2 {
        let outcome = desk.restores(&turn, RestoreWhat::Files, UserEdits::Discard).await;
        assert_eq!((look(&desk), outcome.failed.len()), (before.clone(), 0), "{outcome:?}");
        desk.restart().await;
        let outcome = desk.revert().await;
        assert_eq!((look(&desk), outcome.failed.len()), (after.clone(), 0), "{outcome:?}");
    }
}

#[tokio::test]
async fn discarding_empties_the_document_of_a_file_that_was_not_there() {
    let mut desk = Desk::new();
    let turn = desk.asks("go");
    desk.agent("a.txt", vec![edit(0..0, "made\n")]).await.unwrap();
    desk.rig.open("a.txt", "made\n");
    desk.rig.type_text("a.txt", "made\nmine\n");
    let outcome = desk.restores(&turn, RestoreWhat::Files, UserEdits::Discard).await;
    assert_eq!((desk.rig.shown("a.txt"), seen(&desk, "a.txt")), (String::new(), "-".into()), "{outcome:?}");
    let outcome = desk.revert().await;
    assert_eq!(desk.rig.shown("a.txt"), "made\nmine\n", "{outcome:?}");
    assert_eq!((seen(&desk, "a.txt"), outcome.failed.len()), ("made\\n".into(), 0));
}

/// A file that is open in the editor and that a command changes.
async fn open_and_changed(during: impl FnOnce(&Desk), after: impl FnOnce(&Desk)) -> (Desk, TurnId) {
    let mut desk = Desk::new();
    desk.rig.write("a.txt", "one\ntwo\nthree\n");
    desk.rig.open("a.txt", "one\ntwo\nthree\n");
    let turn = desk.asks("go");
    desk.replaces("a.txt", "three", "3").await;
    desk.rig.save_by_itself("a.txt");
    let began = desk.session.before_command().await;
    desk.rig.write("a.txt", "one\n2\n3\n");
    during(&desk);
    // The editor's events are taken in as they come.
    desk.session.take_in_typing().await;
    drop(desk.session.sync_changes());
    desk.session.after_command(began, &desk.change()).await;
    after(&desk);
    drop(desk.session.sync_changes());
    desk.check(&["a.txt"]).await;
    (desk, turn)
}

#[tokio::test]
async fn what_a_command_does_to_an_open_file_is_the_agents_whenever_the_editor_loads_it_again() {
    let reload = |desk: &Desk| desk.rig.type_text("a.txt", "one\n2\n3\n");
    let hunks = [(Applied, "two\n".into(), "2\n".into()), (Applied, "three\n".into(), "3\n".into())];
    for (desk, turn) in [open_and_changed(reload, |_| ()).await, open_and_changed(|_| (), reload).await] {
        let mut desk = desk;
        assert_eq!(desk.review("a.txt"), hunks);
        desk.restart().await;
        let outcome = desk.restores(&turn, RestoreWhat::Files, UserEdits::Keep).await;
        assert_eq!((outcome.resolved.len(), outcome.failed.len()), (2, 0), "{outcome:?}");
        assert_eq!(desk.rig.shown("a.txt"), "one\ntwo\nthree\n");
    }
}

#[tokio::test]
async fn what_the_user_types_or_saves_while_a_command_runs_stays_the_users() {
    let (desk, _) = open_and_changed(|desk| desk.types("a.txt", "one", "zero\none"), |_| ()).await;
    let seen = |desk: &Desk| (desk.review("a.txt").len(), desk.rig.shown("a.txt"));
    // The line of the agent's, and the file as a whole that the command has left on the disk.
    assert_eq!(seen(&desk), (2, "zero\none\ntwo\n3\n".into()));
    let saves = |desk: &Desk| {
        desk.types("a.txt", "two", "zwei");
        desk.rig.save_by_itself("a.txt");
    };
    let (mut desk, turn) = open_and_changed(saves, |_| ()).await;
    assert_eq!(seen(&desk), (1, "one\nzwei\n3\n".into()));
    desk.restores(&turn, RestoreWhat::Files, UserEdits::Keep).await;
    assert_eq!(desk.rig.shown("a.txt"), "one\nzwei\nthree\n");
}
