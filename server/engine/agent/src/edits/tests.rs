//! Changes, resolutions and checkpoints of a session, with files on disk and an editor in memory.

use HunkState::{Applied, Conflict};

use super::*;
use crate::edits::review::{AmendedPolicy, ResolveError};
use crate::engine::{CONCURRENCY, Engine, EngineOptions, NewSession};
use crate::session::Session;
use kode_base::ids::{CallId, ChangeId, TurnId};
use kode_base::mode::Mode;
use kode_config::policies::NoPolicyProvider;
use kode_journal as journal;
use kode_mcp::Mcp;
use kode_model::models::{Models, NoConnector};
use kode_model::profile::Profile;
use kode_permission::Deliveries;
use kode_record::event::Subscription;
use kode_testing::text::{Meanwhile, Rig};
use kode_text::edit::ledger::review::{FileReview, Selection};
use kode_text::edit::{Author, FileChange};
use kode_tool::Registry;
use kode_tool::languages::NoLanguages;

/// A session on a rig's files.
pub(crate) struct EditBench {
    pub(crate) rig: Rig,
    pub(crate) engine: Engine,
    pub(crate) session: Arc<Session>,
    pub(crate) events: Subscription,
    pub(crate) turn: TurnId,
}

impl EditBench {
    pub(crate) fn new() -> Self {
        let rig = Rig::new();
        let options = EngineOptions {
            home: rig.root().join("../state"),
            tools: Registry::default(),
            servers: Arc::new(Mcp::new(rig.root().join("../state"))),
            languages: Arc::new(NoLanguages),
            host: rig.editor.clone(),
            models: Models::new(Ok(Profile::demo()), Arc::new(NoConnector)),
            policies: Arc::new(NoPolicyProvider),
            concurrency: CONCURRENCY,
            save_before_commands: true,
            deliveries: Deliveries::default(),
        };
        let engine = Engine::new(options);
        let roots = vec![rig.root().clone()];
        let new = NewSession { roots, mode: Some(Mode::AcceptEdits), model: None };
        let session = engine.new_session(new).unwrap();
        let events = session.events().subscribe(0, vec![]);
        Self { rig, engine, session, events, turn: TurnId::generate() }
    }

    /// Ends the session as a closed server does, and takes it up again from its journal.
    pub(crate) async fn restart(&mut self) {
        let id = self.session.id().clone();
        self.session.close();
        let roots = [self.rig.root().clone()];
        self.session = self.engine.load_session_reporting(&roots, &id, Some(0), |_| {}).await.unwrap();
        self.events = self.session.events().subscribe(0, vec![]);
    }

    pub(crate) fn target(&self, name: &str) -> Target {
        self.rig.workspace().resolve(name).unwrap()
    }

    /// A change of the agent's that makes these edits of the text as it is now.
    pub(crate) async fn plans(&self, name: &str, edits: Vec<TextEdit>) -> ChangeSet {
        let base = self.session.services().environment.workspace.text(&self.target(name)).await.ok();
        let file = FileChange { target: self.target(name), base, edits };
        ChangeSet {
            label: "Kode".into(),
            summary: String::new(),
            files: vec![file],
            removals: Vec::new(),
            author: Author::Agent,
        }
    }

    /// The agent makes edits of the text as it is now.
    pub(crate) async fn agent(&self, name: &str, edits: Vec<TextEdit>) -> Result<(), ApplyError> {
        let set = self.plans(name, edits).await;
        let change = ChangeOrigin {
            id: ChangeId::generate(),
            turn: self.turn.clone(),
            call: CallId::generate(),
            kind: HunkKind::Text,
            permission: None,
        };
        self.session.edits().apply_change(set, &change, &[], &CancellationToken::new()).await.map(drop)
    }

    /// The agent puts `new` in the place of the first `old`.
    pub(crate) async fn replaces(&self, name: &str, old: &str, new: &str) {
        let text = self.session.services().environment.workspace.text(&self.target(name)).await.unwrap().text;
        let at = text.find(old).unwrap();
        self.agent(name, vec![edit(at..at + old.len(), new)]).await.unwrap();
    }

    /// The user puts `new` in the place of the first `old`.
    pub(crate) fn types(&self, name: &str, old: &str, new: &str) {
        let at = self.rig.shown(name).find(old).unwrap();
        self.rig.editor.edit(&self.target(name), vec![edit(at..at + old.len(), new)]);
    }

    pub(crate) async fn resolve(
        &mut self,
        selection: Selection,
        action: ReviewAction,
        amended: AmendedPolicy,
    ) -> ResolutionOutcome {
        let id = self.session.edits().resolve(&selection, action, amended).unwrap();
        self.settled(&id).await
    }

    pub(crate) async fn revert(&mut self) -> ResolutionOutcome {
        let id = self.session.edits().revert(None).unwrap();
        self.settled(&id).await
    }

    pub(crate) async fn settled(&mut self, id: &ResolutionId) -> ResolutionOutcome {
        loop {
            let batch = self.events.next().await.unwrap().unwrap();
            let outcomes = batch.into_iter().filter_map(|record| match record.event {
                Event::EditsResolved { outcome } if outcome.id == *id => Some(*outcome),
                _ => None,
            });
            if let Some(outcome) = outcomes.into_iter().next_back() {
                return outcome;
            }
        }
    }

    pub(crate) fn review(&self, name: &str) -> Vec<(HunkState, String, String)> {
        let file = self.session.edits().review_of(&self.target(name));
        let hunks = file.into_iter().flat_map(|file| file.hunks);
        hunks.map(|hunk| (hunk.state, hunk.old_text, hunk.new_text)).collect()
    }

    pub(crate) fn hunks(&self, name: &str) -> Vec<HunkId> {
        let file = self.session.edits().review_of(&self.target(name));
        file.into_iter().flat_map(|file| file.hunks).map(|hunk| hunk.id).collect()
    }

    /// Every hunk there ever was, waiting or not.
    pub(crate) fn all_hunks(&self) -> Vec<HunkId> {
        let book = self.session.edits().synced();
        let every = book.ledger.in_place_of(std::slice::from_ref(&self.turn));
        every.into_values().flatten().collect()
    }

    pub(crate) fn states(&self) -> Vec<Option<HunkState>> {
        let book = self.session.edits().synced();
        book.ledger.every_hunk().iter().map(|hunk| book.ledger.state(hunk)).collect()
    }

    /// Waits until these are the hunks of a file that wait: their states and new texts.
    async fn until_review(&mut self, name: &str, expected: &[(HunkState, &str)]) {
        let is_so = |bench: &Self| {
            let review = bench.review(name);
            review.iter().map(|(state, _, new_text)| (*state, new_text.as_str())).eq(expected.iter().copied())
        };
        while !is_so(self) {
            let next = tokio::time::timeout(std::time::Duration::from_secs(60), self.events.next()).await;
            next.unwrap_or_else(|_| panic!("{:?}", self.review(name))).unwrap().unwrap();
        }
    }

    pub(crate) fn news(&self) -> Option<String> {
        self.session.edits().gather_news();
        self.session.edits().take_news()
    }

    /// The state of the ledger is true.
    pub(crate) async fn check(&self, names: &[&str]) {
        for name in names {
            let target = self.target(name);
            let shown = self
                .session
                .services()
                .environment
                .workspace
                .text(&target)
                .await
                .map(|file| file.text)
                .unwrap_or_default();
            let known = self.session.edits().synced().ledger.text(&target).map(Rope::to_string);
            let is_open = self.rig.editor.documents_now().contains(&target);
            // Of a closed file the ledger learns at the next check.
            if let (Some(known), true) = (known, is_open) {
                assert_eq!(known, *shown, "{name}");
            }
            if let Some(file) = self.session.edits().review_of(&target) {
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

pub(crate) fn edit(range: std::ops::Range<usize>, new_text: &str) -> TextEdit {
    TextEdit { range, new_text: new_text.to_owned() }
}

#[tokio::test]
async fn changes_of_open_and_closed_files_are_hunks_that_can_be_undone_and_brought_back() {
    let mut bench = EditBench::new();
    bench.rig.write("closed.txt", "one\r\ntwo\r\n");
    bench.rig.write("open.txt", "on disk\n");
    bench.rig.open("open.txt", "a\nb\nc\nd\n");
    bench.replaces("closed.txt", "two", "2").await;
    bench.agent("open.txt", vec![edit(0..1, "A"), edit(6..7, "D")]).await.unwrap();
    assert_eq!(bench.review("closed.txt"), [(Applied, "two\r\n".into(), "2\r\n".into())]);
    let both = [(Applied, "a\n".into(), "A\n".into()), (Applied, "d\n".into(), "D\n".into())];
    assert_eq!(bench.review("open.txt"), both);
    let second = bench.hunks("open.txt").pop().unwrap();
    let outcome =
        bench.resolve(Selection::Hunks(vec![second.clone()]), ReviewAction::Undo, AmendedPolicy::Ask).await;
    assert_eq!((outcome.resolved, outcome.failed.len()), (vec![second], 0));
    assert_eq!(bench.rig.shown("open.txt"), "A\nb\nc\nd\n");
    bench.resolve(Selection::Session, ReviewAction::Undo, AmendedPolicy::Ask).await;
    assert_eq!(
        (bench.rig.shown("open.txt").as_str(), bench.rig.text("closed.txt").as_str()),
        ("a\nb\nc\nd\n", "one\r\ntwo\r\n")
    );
    assert_eq!(bench.session.edits().review().len(), 0);
    bench.revert().await;
    bench.revert().await;
    assert_eq!(
        (bench.rig.shown("open.txt").as_str(), bench.rig.text("closed.txt").as_str()),
        ("A\nb\nc\nD\n", "one\r\n2\r\n")
    );
    assert_eq!(bench.review("open.txt"), both);
    assert_eq!(bench.session.edits().revert(None), Err(ResolveError::UnknownResolution));
}

#[tokio::test]
async fn where_the_user_wrote_into_a_change_the_user_decides() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "start\nend\n");
    bench.agent("a.txt", vec![edit(6..6, "hello world\n")]).await.unwrap();
    bench.types("a.txt", "hello world", "hello dear world");
    let outcome = bench.resolve(Selection::Session, ReviewAction::Undo, AmendedPolicy::Ask).await;
    assert_eq!((outcome.resolved.len(), outcome.conflicts.len()), (0, 1));
    assert_eq!(bench.review("a.txt"), [(Conflict, "dear ".into(), "hello dear world\n".into())]);
    assert_eq!(bench.rig.shown("a.txt"), "start\nhello dear world\nend\n");
    bench.resolve(Selection::Session, ReviewAction::Undo, AmendedPolicy::Undo).await;
    assert_eq!(bench.rig.shown("a.txt"), "start\ndear end\n");
    bench.revert().await;
    assert_eq!(bench.rig.shown("a.txt"), "start\nhello dear world\nend\n");
}

#[tokio::test]
async fn what_is_typed_while_a_change_is_on_its_way_is_the_users() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "one\ntwo\nthree\n");
    bench.rig.meanwhile(Meanwhile::Typed("zero\none\ntwo\nthree\n".into()));
    bench.replaces("a.txt", "three", "3").await;
    bench.rig.meanwhile(Meanwhile::Typed("zero\none\ntwo!\n3\n".into()));
    bench.resolve(Selection::Session, ReviewAction::Undo, AmendedPolicy::Ask).await;
    assert_eq!(bench.rig.shown("a.txt"), "zero\none\ntwo!\nthree\n");
    bench.check(&["a.txt"]).await;
}

#[tokio::test]
async fn a_file_the_agent_made_goes_when_that_is_undone_unless_the_user_wrote_in_it() {
    let mut bench = EditBench::new();
    for name in ["new.txt", "other.txt"] {
        bench.agent(name, vec![edit(0..0, "made\n")]).await.unwrap();
    }
    bench.rig.write("other.txt", "made\nmine\n");
    bench.resolve(Selection::Session, ReviewAction::Undo, AmendedPolicy::Ask).await;
    assert!(!bench.rig.path("new.txt").exists());
    assert_eq!(bench.rig.text("other.txt"), "mine\n");
    bench.revert().await;
    assert_eq!(
        (bench.rig.text("new.txt").as_str(), bench.rig.text("other.txt").as_str()),
        ("made\n", "made\nmine\n")
    );
}

#[tokio::test]
async fn saving_by_hand_keeps_and_saving_by_itself_does_not() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "one\n");
    bench.replaces("a.txt", "one", "1").await;
    bench.rig.save_by_itself("a.txt");
    assert_eq!(bench.review("a.txt").len(), 1);
    bench.rig.save("a.txt");
    assert_eq!(bench.review("a.txt").len(), 0);
    bench.revert().await;
    assert_eq!(bench.review("a.txt"), [(Applied, "one\n".into(), "1\n".into())]);
}

#[tokio::test]
async fn what_was_closed_without_saving_is_not_applied_any_more() {
    let mut bench = EditBench::new();
    for name in ["dropped.txt", "saved.txt"] {
        bench.rig.write(name, "one\n");
        bench.rig.open(name, "one\n");
        bench.replaces(name, "one", "1").await;
    }
    bench.rig.save_by_itself("saved.txt");
    for name in ["saved.txt", "dropped.txt"] {
        bench.rig.close(name);
    }
    bench.until_review("dropped.txt", &[]).await;
    assert_eq!(bench.review("saved.txt"), [(Applied, "one\n".into(), "1\n".into())]);
    assert_eq!(bench.states(), [Some(HunkState::Undone), Some(Applied)]);
}

#[tokio::test]
async fn what_others_do_to_a_closed_file_reaches_its_hunks() {
    let mut bench = EditBench::new();
    bench.rig.write("a.txt", "one\ntwo\n");
    bench.replaces("a.txt", "one", "1").await;
    bench.rig.write("a.txt", "one\ntwo\n");
    bench.until_review("a.txt", &[]).await;
}

#[tokio::test]
async fn what_a_command_is_changing_is_not_taken_for_the_users() {
    let mut bench = EditBench::new();
    bench.rig.write("a.txt", "one\n");
    bench.replaces("a.txt", "one", "1").await;
    let runs = bench.session.edits().command_runs();
    bench.rig.write("a.txt", "one\n");
    let target = bench.target("a.txt");
    bench.session.edits().catch_up_with(&target).await;
    bench.session.edits().read_stale().await;
    assert_eq!(bench.review("a.txt").len(), 1);
    drop(runs);
    bench.until_review("a.txt", &[]).await;
}

#[tokio::test]
async fn the_model_hears_once_what_became_of_its_changes() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "one\ntwo\nthree\n");
    bench.agent("a.txt", vec![edit(0..3, "1"), edit(8..13, "drei")]).await.unwrap();
    assert_eq!(bench.news(), None);
    let first = bench.hunks("a.txt")[0].clone();
    bench.resolve(Selection::Hunks(vec![first]), ReviewAction::Undo, AmendedPolicy::Ask).await;
    bench.types("a.txt", "rei", "rey");
    let reported = bench.news().unwrap();
    for expected in ["`a.txt` at line 1: undone\n  -1\n  +one", "at line 3: changed\n  -drei\n  +drey"] {
        assert!(reported.contains(expected), "{reported}");
    }
    bench.session.edits().enter_given_news(&bench.turn);
    assert_eq!(bench.news(), None);
}

#[tokio::test]
async fn a_session_taken_up_again_knows_its_hunks_and_where_they_are_now() {
    let mut bench = EditBench::new();
    let (gbk, _, _) =
        encoding_rs::GBK.encode("人人生而自由,\r\n在尊严和权利上一律平等。\r\n他们赋有理性\r\n");
    bench.rig.write("gbk.txt", &gbk);
    bench.rig.open("open.txt", "a\nb\n");
    bench.replaces("gbk.txt", "一律", "全部").await;
    bench.replaces("open.txt", "b", "B").await;
    bench.types("open.txt", "a", "aa");
    bench.session.close();
    bench.session.closed().await;
    // No listener exists.
    bench.types("open.txt", "aa", "top\naa");
    bench.restart().await;
    assert_eq!(bench.review("open.txt"), [(Applied, "b\n".into(), "B\n".into())]);
    bench.check(&["open.txt"]).await;
    bench.resolve(Selection::Session, ReviewAction::Undo, AmendedPolicy::Ask).await;
    assert_eq!(bench.rig.shown("open.txt"), "top\naa\nb\n");
    assert_eq!(bench.rig.bytes("gbk.txt"), &*gbk);
    bench.restart().await;
    bench.revert().await;
    assert_eq!(bench.rig.shown("open.txt"), "top\naa\nB\n");
}

#[tokio::test]
async fn what_was_typed_piece_by_piece_is_the_same_after_a_restart() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "start\nend\n");
    bench.agent("a.txt", vec![edit(6..6, "hello\n")]).await.unwrap();
    bench.types("a.txt", "ll", "");
    bench.types("a.txt", "he", "hel");
    bench.types("a.txt", "hel", "hell");
    bench.resolve(Selection::Session, ReviewAction::Undo, AmendedPolicy::Undo).await;
    let shown = bench.rig.shown("a.txt");
    bench.types("a.txt", "end", "end!");
    let live = format!("{:?}", bench.session.edits().synced().ledger);
    bench.restart().await;
    assert_eq!(format!("{:?}", bench.session.edits().synced().ledger), live);
    assert_eq!(bench.rig.shown("a.txt"), shown.replace("end", "end!"));
}

#[tokio::test]
async fn a_damaged_line_costs_the_hunks_of_one_file_and_not_the_session() {
    for lost in 0..8 {
        let mut bench = EditBench::new();
        for name in ["a.txt", "b.txt"] {
            bench.rig.open(name, "one\ntwo\nthree\n");
            bench.replaces(name, "one", "a much longer first line").await;
            bench.types(name, "two", "two and more");
            bench.replaces(name, "three", "3").await;
        }
        bench.session.close();
        bench.session.closed().await;
        let path = bench.session.core().journal().path().to_owned();
        let journal = std::fs::read_to_string(&path).unwrap();
        let edits: Vec<usize> = (0..journal.lines().count())
            .filter(|at| journal.lines().nth(*at).unwrap().contains("\"type\":\"edits\""))
            .collect();
        let kept = journal.lines().enumerate().filter(|(at, _)| Some(at) != edits.get(lost));
        let kept: String = kept.map(|(_, line)| format!("{line}\n")).collect();
        std::fs::write(&path, kept).unwrap();
        bench.restart().await;
        bench.check(&["a.txt", "b.txt"]).await;
        let known = bench.session.edits().review().into_iter().filter(|file| file.hunks.len() == 2).count();
        assert!(known >= 1, "line {lost}: {known}");
    }
}

#[tokio::test]
async fn a_closed_session_leaves_the_journal_to_its_successor() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "one\n");
    bench.replaces("a.txt", "one", "1").await;
    let old = Arc::clone(&bench.session);
    bench.restart().await;
    let before = journal::read::<Record>(bench.session.core().journal().path()).unwrap().records.len();
    bench.types("a.txt", "1", "11");
    assert_eq!(
        old.edits().resolve(&Selection::Session, ReviewAction::Undo, AmendedPolicy::Ask),
        Err(ResolveError::Closed)
    );
    drop(old.edits().synced());
    old.edits().flush();
    bench.session.edits().flush();
    assert_eq!(
        journal::read::<Record>(bench.session.core().journal().path()).unwrap().records.len(),
        before + 1
    );
}

#[tokio::test]
async fn a_change_that_comes_late_is_the_agents() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "one\ntwo\n");
    bench.rig.meanwhile(Meanwhile::Silent);
    let refused = bench.agent("a.txt", vec![edit(4..7, "2")]).await;
    assert!(matches!(refused, Err(ApplyError::Unconfirmed { .. })), "{refused:?}");
    assert_eq!(bench.review("a.txt"), []);
    bench.types("a.txt", "one", "one!");
    bench.types("a.txt", "two", "2");
    assert_eq!(bench.review("a.txt"), [(Applied, "two\n".into(), "2\n".into())]);
    bench.resolve(Selection::Session, ReviewAction::Undo, AmendedPolicy::Ask).await;
    assert_eq!(bench.rig.shown("a.txt"), "one!\ntwo\n");
}

#[tokio::test]
async fn a_change_that_nobody_answered_is_the_agents_after_a_restart_though_others_followed() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "one\ntwo\n");
    bench.rig.write("b.txt", "three\n");
    bench.rig.meanwhile(Meanwhile::Silent);
    bench.agent("a.txt", vec![edit(4..7, "2")]).await.unwrap_err();
    bench.agent("b.txt", vec![edit(0..5, "3")]).await.unwrap();
    bench.session.close();
    bench.session.edits().close().await;
    bench.types("a.txt", "two", "2");
    bench.restart().await;
    assert_eq!(bench.review("a.txt"), [(Applied, "two\n".into(), "2\n".into())]);
    bench.restart().await;
    assert_eq!(bench.review("a.txt"), [(Applied, "two\n".into(), "2\n".into())]);
}

#[tokio::test]
async fn a_change_that_was_never_made_takes_nothing_from_the_same_change_of_a_later_call() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "one\ntwo\n");
    bench.rig.meanwhile(Meanwhile::Silent);
    bench.agent("a.txt", vec![edit(4..7, "2")]).await.unwrap_err();
    bench.agent("a.txt", vec![edit(4..7, "2")]).await.unwrap();
    let made = bench.hunks("a.txt");
    bench.restart().await;
    assert_eq!(bench.review("a.txt"), [(Applied, "two\n".into(), "2\n".into())]);
    assert_eq!(bench.hunks("a.txt"), made);
}

#[tokio::test]
async fn where_the_user_wrote_into_what_is_on_a_hunk_both_stay() {
    let mut bench = EditBench::new();
    bench.rig.open("a.txt", "start\nend\n");
    bench.agent("a.txt", vec![edit(6..6, "aaa\nfoo\nbbb\n")]).await.unwrap();
    let first = bench.hunks("a.txt");
    bench.replaces("a.txt", "foo", "barbaz").await;
    bench.types("a.txt", "barbaz", "bar");
    let outcome =
        bench.resolve(Selection::Hunks(first.clone()), ReviewAction::Undo, AmendedPolicy::Ask).await;
    assert_eq!((outcome.resolved, outcome.conflicts), (vec![], first));
    assert_eq!(bench.rig.shown("a.txt"), "start\naaa\nbar\nbbb\nend\n");
}
