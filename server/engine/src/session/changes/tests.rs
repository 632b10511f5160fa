//! Changes, resolutions and checkpoints of a session, with files on disk and an editor in memory.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::engine::{Engine, EngineOptions, Models, NewSession};
use crate::event::Subscription;
use crate::ids::{CallId, ChangeId, TurnId};
use crate::journal;
use crate::model::profile::Profile;
use crate::permission::{Deliveries, Mode};
use crate::session::review::{Amended, FileReview, ResolveError, Selection};
use crate::workspace::testing::{Meanwhile, Rig};

/// A session on a rig's files.
struct Desk {
    rig: Rig,
    engine: Engine,
    session: Arc<Session>,
    events: Subscription,
    turn: TurnId,
}

impl Desk {
    fn new() -> Self {
        let rig = Rig::new();
        let options = EngineOptions {
            home: rig.root().join("../state"),
            host: rig.editor.clone(),
            models: Models::new(Ok(Profile::demo())),
            save_before_commands: true,
            deliveries: Deliveries::default(),
        };
        let engine = Engine::new(options);
        let roots = vec![rig.root().clone()];
        let session = engine.new_session(NewSession { roots, mode: Mode::AcceptEdits, model: None }).unwrap();
        let events = session.events().subscribe(0, vec![]);
        Self { rig, engine, session, events, turn: TurnId::generate() }
    }

    /// Ends the session as a closed server does, and takes it up again from its journal.
    async fn restart(&mut self) {
        let id = self.session.id().clone();
        self.session.close();
        self.session = self.engine.load_session(&[self.rig.root().clone()], &id).await.unwrap();
        self.events = self.session.events().subscribe(0, vec![]);
        self.session.catch_up_with_texts().await;
    }

    fn target(&self, name: &str) -> Target {
        self.rig.workspace().resolve(name).unwrap()
    }

    /// The agent makes edits of the text as it is now.
    async fn agent(&self, name: &str, edits: Vec<TextEdit>) -> Result<(), ApplyError> {
        let base = self.session.workspace.text(&self.target(name)).await.ok();
        let file = FileChange { target: self.target(name), base, edits };
        let set = ChangeSet {
            label: "Kode".into(),
            summary: String::new(),
            files: vec![file],
            author: Author::Agent,
        };
        let change = Change {
            id: ChangeId::generate(),
            turn: self.turn.clone(),
            call: CallId::generate(),
            kind: HunkKind::Text,
            permission: None,
        };
        self.session.apply_change(set, &change, &[], &CancellationToken::new()).await.map(drop)
    }

    /// The agent puts `new` in the place of the first `old`.
    async fn replaces(&self, name: &str, old: &str, new: &str) {
        let text = self.session.workspace.text(&self.target(name)).await.unwrap().text;
        let at = text.find(old).unwrap();
        self.agent(name, vec![edit(at..at + old.len(), new)]).await.unwrap();
    }

    /// The user puts `new` in the place of the first `old`.
    fn types(&self, name: &str, old: &str, new: &str) {
        let at = self.rig.shown(name).find(old).unwrap();
        self.rig.editor.edit(&self.target(name), vec![edit(at..at + old.len(), new)]);
    }

    async fn resolve(
        &mut self,
        selection: Selection,
        action: ReviewAction,
        amended: Amended,
    ) -> ResolutionOutcome {
        let id = self.session.resolve(&selection, action, amended).unwrap();
        self.settled(&id).await
    }

    async fn revert(&mut self) -> ResolutionOutcome {
        let id = self.session.revert(None).unwrap();
        self.settled(&id).await
    }

    async fn settled(&mut self, id: &ResolutionId) -> ResolutionOutcome {
        loop {
            let batch = self.events.next().await.unwrap().unwrap();
            let outcomes = batch.into_iter().filter_map(|record| match record.event {
                Event::EditsResolved { outcome } if outcome.id == *id => Some(outcome),
                _ => None,
            });
            if let Some(outcome) = outcomes.last() {
                return outcome;
            }
        }
    }

    fn review(&self, name: &str) -> Vec<(HunkState, String, String)> {
        let file = self.session.review_of(&self.target(name));
        let hunks = file.into_iter().flat_map(|file| file.hunks);
        hunks.map(|hunk| (hunk.state, hunk.old_text, hunk.new_text)).collect()
    }

    fn hunks(&self, name: &str) -> Vec<HunkId> {
        let file = self.session.review_of(&self.target(name));
        file.into_iter().flat_map(|file| file.hunks).map(|hunk| hunk.id).collect()
    }

    /// Every hunk there ever was, waiting or not.
    fn all_hunks(&self) -> Vec<HunkId> {
        let book = self.session.sync_changes();
        let every = book.ledger.in_place_of(std::slice::from_ref(&self.turn));
        every.into_values().flatten().collect()
    }

    fn news(&self) -> Option<String> {
        self.session.gather_news();
        self.session.changes.news_for_prompt()
    }

    /// What the ledger says is so.
    async fn check(&self, names: &[&str]) {
        for name in names {
            let target = self.target(name);
            let shown = self.session.workspace.text(&target).await.map(|file| file.text).unwrap_or_default();
            let known = self.session.sync_changes().ledger.text(&target).map(Rope::to_string);
            let is_open = self.rig.editor.documents_now().contains(&target);
            // Of a closed file the ledger learns when somebody looks.
            if let (Some(known), true) = (known, is_open) {
                assert_eq!(known, *shown, "{name}");
            }
            if let Some(file) = self.session.review_of(&target) {
                check_places(&file);
            }
        }
    }
}

fn check_places(file: &FileReview) {
    let text = file.text.to_string();
    for hunk in &file.hunks {
        let lines = file.text.line_to_byte(hunk.lines.start)..file.text.line_to_byte(hunk.lines.end);
        assert!(lines.start <= hunk.range.start && hunk.range.end <= lines.end, "{hunk:?}");
        assert!(text.is_char_boundary(hunk.range.start) && text.is_char_boundary(hunk.range.end), "{hunk:?}");
        let stands = if hunk.state.is_in_text() { &hunk.new_text } else { &hunk.old_text };
        assert_eq!(&text[lines], stands, "{hunk:?}");
    }
}

fn edit(range: std::ops::Range<usize>, new_text: &str) -> TextEdit {
    TextEdit { range, new_text: new_text.to_owned() }
}

use HunkState::{Applied, Conflict};

#[tokio::test]
async fn changes_of_open_and_closed_files_are_hunks_that_can_be_undone_and_brought_back() {
    let mut desk = Desk::new();
    desk.rig.write("closed.txt", "one\r\ntwo\r\n");
    desk.rig.write("open.txt", "on disk\n");
    desk.rig.open("open.txt", "a\nb\nc\nd\n");
    desk.replaces("closed.txt", "two", "2").await;
    desk.agent("open.txt", vec![edit(0..1, "A"), edit(6..7, "D")]).await.unwrap();
    assert_eq!(desk.review("closed.txt"), [(Applied, "two\r\n".into(), "2\r\n".into())]);
    let both = [(Applied, "a\n".into(), "A\n".into()), (Applied, "d\n".into(), "D\n".into())];
    assert_eq!(desk.review("open.txt"), both);
    let second = desk.hunks("open.txt").pop().unwrap();
    let outcome =
        desk.resolve(Selection::Hunks(vec![second.clone()]), ReviewAction::Undo, Amended::Ask).await;
    assert_eq!((outcome.resolved, outcome.failed.len()), (vec![second], 0));
    assert_eq!(desk.rig.shown("open.txt"), "A\nb\nc\nd\n");
    desk.resolve(Selection::Session, ReviewAction::Undo, Amended::Ask).await;
    assert_eq!(
        (desk.rig.shown("open.txt").as_str(), desk.rig.text("closed.txt").as_str()),
        ("a\nb\nc\nd\n", "one\r\ntwo\r\n")
    );
    assert_eq!(desk.session.review().len(), 0);
    desk.revert().await;
    desk.revert().await;
    assert_eq!(
        (desk.rig.shown("open.txt").as_str(), desk.rig.text("closed.txt").as_str()),
        ("A\nb\nc\nD\n", "one\r\n2\r\n")
    );
    assert_eq!(desk.review("open.txt"), both);
    assert_eq!(desk.session.revert(None), Err(ResolveError::UnknownResolution));
}

#[tokio::test]
async fn where_the_user_wrote_into_a_change_the_user_decides() {
    let mut desk = Desk::new();
    desk.rig.open("a.txt", "start\nend\n");
    desk.agent("a.txt", vec![edit(6..6, "hello world\n")]).await.unwrap();
    desk.types("a.txt", "hello world", "hello dear world");
    let outcome = desk.resolve(Selection::Session, ReviewAction::Undo, Amended::Ask).await;
    assert_eq!((outcome.resolved.len(), outcome.conflicts.len()), (0, 1));
    assert_eq!(desk.review("a.txt"), [(Conflict, "dear ".into(), "hello dear world\n".into())]);
    assert_eq!(desk.rig.shown("a.txt"), "start\nhello dear world\nend\n");
    desk.resolve(Selection::Session, ReviewAction::Undo, Amended::Undo).await;
    assert_eq!(desk.rig.shown("a.txt"), "start\ndear end\n");
    desk.revert().await;
    assert_eq!(desk.rig.shown("a.txt"), "start\nhello dear world\nend\n");
}

#[tokio::test]
async fn what_is_typed_while_a_change_is_on_its_way_is_the_users() {
    let mut desk = Desk::new();
    desk.rig.open("a.txt", "one\ntwo\nthree\n");
    desk.rig.meanwhile(Meanwhile::Typed("zero\none\ntwo\nthree\n".into()));
    desk.replaces("a.txt", "three", "3").await;
    desk.rig.meanwhile(Meanwhile::Typed("zero\none\ntwo!\n3\n".into()));
    desk.resolve(Selection::Session, ReviewAction::Undo, Amended::Ask).await;
    assert_eq!(desk.rig.shown("a.txt"), "zero\none\ntwo!\nthree\n");
    desk.check(&["a.txt"]).await;
}

#[tokio::test]
async fn a_file_the_agent_made_goes_when_that_is_undone_unless_the_user_wrote_in_it() {
    let mut desk = Desk::new();
    for name in ["new.txt", "other.txt"] {
        desk.agent(name, vec![edit(0..0, "made\n")]).await.unwrap();
    }
    desk.rig.write("other.txt", "made\nmine\n");
    desk.resolve(Selection::Session, ReviewAction::Undo, Amended::Ask).await;
    assert!(!desk.rig.path("new.txt").exists());
    assert_eq!(desk.rig.text("other.txt"), "mine\n");
    desk.revert().await;
    assert_eq!(
        (desk.rig.text("new.txt").as_str(), desk.rig.text("other.txt").as_str()),
        ("made\n", "made\nmine\n")
    );
}

#[tokio::test]
async fn saving_by_hand_keeps_and_saving_by_itself_does_not() {
    let mut desk = Desk::new();
    desk.rig.open("a.txt", "one\n");
    desk.replaces("a.txt", "one", "1").await;
    desk.rig.save_by_itself("a.txt");
    assert_eq!(desk.review("a.txt").len(), 1);
    desk.rig.save("a.txt");
    assert_eq!(desk.review("a.txt").len(), 0);
    desk.revert().await;
    assert_eq!(desk.review("a.txt"), [(Applied, "one\n".into(), "1\n".into())]);
}

#[tokio::test]
async fn the_model_hears_once_what_became_of_its_changes() {
    let mut desk = Desk::new();
    desk.rig.open("a.txt", "one\ntwo\nthree\n");
    desk.agent("a.txt", vec![edit(0..3, "1"), edit(8..13, "drei")]).await.unwrap();
    assert_eq!(desk.news(), None);
    let first = desk.hunks("a.txt")[0].clone();
    desk.resolve(Selection::Hunks(vec![first]), ReviewAction::Undo, Amended::Ask).await;
    desk.types("a.txt", "rei", "rey");
    let told = desk.news().unwrap();
    for expected in ["`a.txt` at line 1: undone\n  -1\n  +one", "at line 3: changed\n  -drei\n  +drey"] {
        assert!(told.contains(expected), "{told}");
    }
    desk.session.note_told();
    assert_eq!(desk.news(), None);
}

#[tokio::test]
async fn a_session_taken_up_again_knows_its_hunks_and_where_they_are_now() {
    let mut desk = Desk::new();
    let (gbk, _, _) =
        encoding_rs::GBK.encode("人人生而自由,\r\n在尊严和权利上一律平等。\r\n他们赋有理性\r\n");
    desk.rig.write("gbk.txt", &gbk);
    desk.rig.open("open.txt", "a\nb\n");
    desk.replaces("gbk.txt", "一律", "全部").await;
    desk.replaces("open.txt", "b", "B").await;
    desk.types("open.txt", "a", "aa");
    desk.session.close();
    desk.session.closed().await;
    // Nobody listens.
    desk.types("open.txt", "aa", "top\naa");
    desk.restart().await;
    assert_eq!(desk.review("open.txt"), [(Applied, "b\n".into(), "B\n".into())]);
    desk.check(&["open.txt"]).await;
    desk.resolve(Selection::Session, ReviewAction::Undo, Amended::Ask).await;
    assert_eq!(desk.rig.shown("open.txt"), "top\naa\nb\n");
    assert_eq!(desk.rig.bytes("gbk.txt"), &*gbk);
    desk.restart().await;
    desk.revert().await;
    assert_eq!(desk.rig.shown("open.txt"), "top\naa\nB\n");
}

// -- random histories -----------------------------------------------------------------------------------------------

const NAMES: [&str; 3] = ["one.txt", "two.txt", "closed.txt"];

/// Something that happens. Numbers are places, taken modulo what there is.
#[derive(Clone, Debug)]
enum Happening {
    Agent { file: usize, places: Vec<(usize, usize, usize)>, meanwhile: Option<(usize, usize)> },
    Typing { file: usize, place: usize, removed: usize, typed: usize, exactly: bool },
    EditorUndo { file: usize },
    Save { file: usize, by_user: bool },
    CloseAndOpen { file: usize },
    Outside { place: usize, typed: usize },
    Resolve { hunk: usize, how_many: usize, action: ReviewAction, force: bool },
    Revert,
    Restart,
}

fn happening() -> impl Strategy<Value = Happening> {
    let edit = || (0..200usize, 0..8usize, 0..6usize);
    let action = prop_oneof![
        Just(ReviewAction::Accept),
        Just(ReviewAction::Reject),
        Just(ReviewAction::Keep),
        Just(ReviewAction::Undo)
    ];
    let meanwhile = proptest::option::weighted(0.3, (0..200usize, 1..4usize));
    prop_oneof![
        4 => (0..3usize, proptest::collection::vec(edit(), 1..4), meanwhile)
            .prop_map(|(file, places, meanwhile)| Happening::Agent { file, places, meanwhile }),
        6 => (0..2usize, edit(), any::<bool>()).prop_map(|(file, (place, removed, typed), exactly)| {
            Happening::Typing { file, place, removed, typed, exactly }
        }),
        2 => (0..2usize).prop_map(|file| Happening::EditorUndo { file }),
        1 => (0..2usize, any::<bool>()).prop_map(|(file, by_user)| Happening::Save { file, by_user }),
        1 => (0..2usize).prop_map(|file| Happening::CloseAndOpen { file }),
        1 => (0..200usize, 1..5usize).prop_map(|(place, typed)| Happening::Outside { place, typed }),
        4 => (0..20usize, 1..4usize, action, any::<bool>()).prop_map(|(hunk, how_many, action, force)| {
            Happening::Resolve { hunk, how_many, action, force }
        }),
        1 => Just(Happening::Revert),
        1 => Just(Happening::Restart),
    ]
}

/// What the model knows: each character comes once, and says by its code whose it is.
#[derive(Default)]
struct Model {
    next: u32,
    /// Characters of the files as they were, and of the user's, that the user has not deleted.
    kept: BTreeSet<char>,
    /// The agent's characters that the user has put in the text with an editor's own means.
    adopted: BTreeSet<char>,
    /// For each document the texts an editor would go back to.
    undo: [Vec<String>; 2],
}

// Of the private use area: each is a word of its own to a comparison of words.
const ORIGINAL: u32 = 0xe000;
const AGENT: u32 = 0xe800;
const USER: u32 = 0xf000;

fn is_agents(char: char) -> bool {
    (AGENT..USER).contains(&u32::from(char))
}

impl Model {
    fn take(&mut self, from: u32, count: usize) -> String {
        // A line break now and then, so that there are lines; it is nobody's.
        let mut text = String::new();
        for _ in 0..count {
            self.next += 1;
            text.extend(char::from_u32(from + self.next));
            if self.next % 5 == 0 {
                text.push('\n');
            }
        }
        text
    }

    /// The user has made `after` of `before`.
    fn note_users(&mut self, before: &str, after: &str) {
        for char in before.chars().filter(|char| !after.contains(*char)) {
            self.kept.remove(&char);
        }
        for char in after.chars().filter(|char| !before.contains(*char)) {
            if is_agents(char) {
                self.adopted.insert(char);
            } else if char != '\n' {
                self.kept.insert(char);
            }
        }
    }
}

fn place_in(text: &str, place: usize) -> usize {
    let count = text.chars().count() + 1;
    text.char_indices().map(|(at, _)| at).nth(place % count).unwrap_or(text.len())
}

fn end_in(text: &str, start: usize, chars: usize) -> usize {
    text[start..].char_indices().map(|(at, _)| start + at).nth(chars).unwrap_or(text.len())
}

async fn happen(desk: &mut Desk, model: &mut Model, happening: Happening) {
    match happening {
        Happening::Agent { file, mut places, meanwhile } => {
            let name = NAMES[file];
            let target = desk.target(name);
            let base = desk.session.workspace.text(&target).await.unwrap();
            let text = base.text.to_string();
            places.sort_by_key(|(place, _, _)| place_in(&text, *place));
            let mut edits: Vec<TextEdit> = Vec::new();
            for (place, removed, typed) in places {
                let start = place_in(&text, place);
                if edits.last().is_none_or(|last| start > last.range.end) && removed + typed > 0 {
                    edits.push(edit(start..end_in(&text, start, removed), &model.take(AGENT, typed)));
                }
            }
            if edits.is_empty() {
                return;
            }
            if let (Some((place, typed)), true) = (meanwhile, file < 2) {
                let at = place_in(&text, place);
                let typed = model.take(USER, typed);
                let after = format!("{}{typed}{}", &text[..at], &text[at..]);
                model.note_users(&text, &after);
                model.undo[file].clear();
                desk.rig.meanwhile(Meanwhile::Typed(after));
            } else if file < 2 {
                model.undo[file].push(text);
            }
            // An overlap is refused, and then nothing has happened.
            drop(desk.agent(name, edits).await);
        }
        Happening::Typing { file, place, removed, typed, exactly } => {
            let name = NAMES[file];
            let before = desk.rig.shown(name);
            let start = place_in(&before, place);
            let change = edit(start..end_in(&before, start, removed), &model.take(USER, typed));
            let after = crate::edit::change::apply_edits(&before, std::slice::from_ref(&change));
            model.note_users(&before, &after);
            model.undo[file].push(before);
            match exactly {
                true => desk.rig.editor.edit(&desk.target(name), vec![change]),
                false => desk.rig.type_text(name, &after),
            }
        }
        Happening::EditorUndo { file } => {
            let name = NAMES[file];
            if let Some(earlier) = model.undo[file].pop() {
                model.note_users(&desk.rig.shown(name), &earlier);
                desk.rig.type_text(name, &earlier);
            }
        }
        Happening::Save { file, by_user: true } => desk.rig.save(NAMES[file]),
        Happening::Save { file, by_user: false } => desk.rig.save_by_itself(NAMES[file]),
        Happening::CloseAndOpen { file } => {
            let text = desk.rig.shown(NAMES[file]);
            desk.rig.save_by_itself(NAMES[file]);
            desk.rig.close(NAMES[file]);
            desk.rig.open(NAMES[file], &text);
        }
        Happening::Outside { place, typed } => {
            let before = desk.rig.text(NAMES[2]);
            let at = place_in(&before, place);
            let after = format!("{}{}{}", &before[..at], model.take(USER, typed), &before[at..]);
            model.note_users(&before, &after);
            desk.rig.write(NAMES[2], after);
        }
        Happening::Resolve { hunk, how_many, action, force } => {
            let mut hunks: Vec<HunkId> = desk.session.sync_changes().ledger.every_hunk();
            if hunks.is_empty() {
                return;
            }
            let at = hunk % hunks.len();
            hunks.rotate_left(at);
            hunks.truncate(how_many);
            let amended = if force { Amended::Undo } else { Amended::Ask };
            if let Ok(id) = desk.session.resolve(&Selection::Hunks(hunks), action, amended) {
                let outcome = desk.settled(&id).await;
                assert!(outcome.failed.is_empty(), "{outcome:?}");
                model.undo.iter_mut().for_each(Vec::clear);
            }
        }
        Happening::Revert => {
            if let Ok(id) = desk.session.revert(None) {
                let outcome = desk.settled(&id).await;
                assert!(outcome.failed.is_empty(), "{outcome:?}");
                model.undo.iter_mut().for_each(Vec::clear);
            }
        }
        Happening::Restart => desk.restart().await,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn no_random_history_loses_what_the_user_wrote_and_undoing_all_leaves_just_that(
        happenings in proptest::collection::vec(happening(), 1..25),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (mut desk, mut model) = (Desk::new(), Model::default());
            for name in NAMES {
                let text = model.take(ORIGINAL, 30);
                desk.rig.write(name, &text);
                model.kept.extend(text.chars().filter(|char| *char != '\n'));
            }
            for name in &NAMES[..2] {
                let text = desk.rig.text(name);
                desk.rig.open(name, &text);
            }
            for happening in happenings {
                happen(&mut desk, &mut model, happening).await;
                desk.check(&NAMES).await;
            }
            let all = desk.all_hunks();
            if !all.is_empty() {
                let outcome = desk.resolve(Selection::Hunks(all), ReviewAction::Undo, Amended::Undo).await;
                assert!(outcome.failed.is_empty() && outcome.conflicts.is_empty(), "{outcome:?}");
            }
            desk.check(&NAMES).await;
            let left: BTreeSet<char> =
                [desk.rig.shown(NAMES[0]), desk.rig.shown(NAMES[1]), desk.rig.text(NAMES[2])]
                    .concat()
                    .chars()
                    .filter(|char| *char != '\n' && !model.adopted.contains(char))
                    .collect();
            let lost: Vec<&char> = model.kept.difference(&left).collect();
            let too_much: Vec<&char> = left.difference(&model.kept).collect();
            assert!(lost.is_empty() && too_much.is_empty(), "lost {lost:?}, too much {too_much:?}");
            let live = format!("{:?}", desk.session.sync_changes().ledger);
            desk.session.write_changes();
            desk.session.sync().await;
            let read = journal::read(desk.session.journal.path()).unwrap();
            let entries = read.records.into_iter().filter_map(|record| match record {
                Record::Edits { entry } => Some(entry),
                _ => None,
            });
            let (folded, problems) = Ledger::fold(entries.collect(), &desk.session.changes.blobs);
            assert!(problems.is_empty(), "{problems:?}");
            assert_eq!(format!("{folded:?}"), live, "the journal tells another story");
        });
    }
}
