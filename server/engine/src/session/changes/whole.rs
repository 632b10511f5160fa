//! Going back to checkpoints, and files that commands replaced as a whole.

use super::tests::{Desk, edit};
use super::*;
use crate::event::ItemBody;
use crate::ids::{CheckpointId, TurnId};
use crate::session::new_item;
use crate::session::review::{Amended, RestoreWhat, Selection, UserEdits};
use crate::workspace::Portion;

impl Desk {
    /// A turn begins with a prompt.
    fn asks(&mut self, text: &str) -> TurnId {
        let turn = TurnId::generate();
        let item = new_item(&turn, ItemBody::UserMessage { text: text.into() });
        let record = Record::Prompt { turn: turn.clone(), queued: None, item, content: vec![] };
        self.session.commit(record, |_| vec![]);
        self.turn = turn.clone();
        turn
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
