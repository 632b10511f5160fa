//! Whatever happens to a conversation, its history can be sent, and going back restores the former state.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::state::{SessionState, new_item};
use crate::transfer::ForkPoint;
use crate::transfer::fork::fork;
use kode_base::ids::{CallId, ResolutionId, SessionId};
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_journal::SHELF;
use kode_model::{Image, Usage};
use kode_record::compaction::{BeforeAfter, Cause};
use kode_record::options::TurnOptions;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Prompt(bool),
    /// This many calls, some with thinking; the results of this many of them come.
    Answer(usize, usize, bool),
    Remark,
    /// Keeps about this many percent.
    Compact(usize),
    /// Goes back this many turns.
    Rewind(usize),
    Unwind,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<bool>().prop_map(Step::Prompt),
        5 => (0..4_usize, 0..5_usize, any::<bool>()).prop_map(|(calls, results, thinks)| Step::Answer(calls, results, thinks)),
        1 => Just(Step::Remark),
        2 => (0..100_usize).prop_map(Step::Compact),
        1 => (1..5_usize).prop_map(Step::Rewind),
        1 => Just(Step::Unwind),
    ]
}

/// Histories before turns.
type Befores = Vec<(TurnId, History)>;

/// A session whose journal is kept, and what has left memory with it.
pub(crate) struct Kept {
    _folder: tempfile::TempDir,
    state: SessionState,
    pub(crate) records: Vec<Record>,
    /// The history before each turn that is in it.
    befores: Befores,
    /// The turns that an undo of a rewind brings back.
    cut: Option<(ResolutionId, History, Befores)>,
    calls: usize,
}

impl Kept {
    pub(crate) fn new() -> Self {
        let root = AbsPath::new("/w").unwrap();
        let (roots, model) = (vec![root.clone()], "demo".to_owned());
        let opened = Record::Opened {
            session: SessionId::generate(),
            roots,
            cwd: root,
            mode: Mode::Default.into(),
            model,
            forked_from: None,
            worktree: None,
        };
        let mut state = SessionState::open(&opened).unwrap();
        let folder = tempfile::tempdir().unwrap();
        state.attach(&Arc::new(Shelf::create(&folder.path().join(SHELF)).unwrap()));
        Self { _folder: folder, state, records: vec![opened], befores: Vec::new(), cut: None, calls: 0 }
    }

    fn write(&mut self, record: Record) {
        self.records.push(record.clone());
        self.state.apply(record);
    }

    pub(crate) fn take(&mut self, step: &Step) {
        let turn = self.befores.last().map_or_else(TurnId::generate, |(turn, _)| turn.clone());
        match step {
            Step::Prompt(has_picture) => self.prompt(*has_picture),
            Step::Answer(calls, results, thinks) => self.answer(&turn, *calls, *results, *thinks),
            Step::Remark => self.write(Record::Remark { turn, text: "interrupted".into() }),
            Step::Compact(percent) => self.compact(turn, *percent),
            Step::Rewind(turns) => self.rewind(*turns),
            Step::Unwind => {
                let Some((resolution, messages, befores)) = self.cut.take() else { return };
                self.write(Record::Unwound { resolution });
                assert_eq!(self.state.main.messages, messages);
                self.befores = befores;
            }
        }
    }

    fn prompt(&mut self, has_picture: bool) {
        let turn = TurnId::generate();
        let said = format!("prompt {}", self.records.len());
        let mut content = vec![Block::Text { text: said.clone() }];
        if has_picture {
            content.push(Block::Image(Image {
                media_type: "image/png".into(),
                data: "AA==".into(),
                text: None,
            }));
        }
        // Items that a prompt closes belong to the turn before.
        let mut closed = self.state.main.clone();
        closed.close_calls();
        let item = new_item(&turn, ItemBody::user_message(said));
        self.write(Record::Prompt {
            turn: turn.clone(),
            queued: None,
            item,
            content,
            parts: vec![],
            options: TurnOptions::default(),
        });
        self.befores.push((turn, closed.messages));
        self.cut = None;
    }

    fn answer(&mut self, turn: &TurnId, calls: usize, results: usize, thinks: bool) {
        let mut content = Vec::new();
        if thinks {
            content.push(Block::Thinking { thinking: "hm".into(), signature: "s".into() });
        }
        let (mut items, mut ids) = (Vec::new(), Vec::new());
        for _ in 0..calls {
            self.calls += 1;
            let id = format!("c{}", self.calls);
            let call = CallId::from_external(&id);
            let pending =
                ToolCallItem::pending(call, "Read".into(), None, json!({}), jiff::Timestamp::UNIX_EPOCH);
            let item = new_item(turn, ItemBody::ToolCall(Box::new(pending)));
            ids.push((id.clone(), item.id.clone()));
            items.push(item);
            content.push(Block::ToolUse { id, name: "Read".into(), input: json!({}), input_error: None });
        }
        if calls == 0 {
            content.push(Block::Text { text: "said".into() });
        }
        let message = Message::assistant(content);
        self.write(Record::Answer {
            turn: turn.clone(),
            message,
            items,
            usage: Usage::default(),
            streamed: vec![],
            duration_ms: None,
            mode: None,
        });
        for (id, item) in ids.into_iter().take(results) {
            let outcome = CallOutcome {
                state: CallState::Completed,
                display: String::new(),
                structured: None,
                error: None,
            };
            let result = Block::result(id, "result", false);
            let (at, instructed) = (jiff::Timestamp::UNIX_EPOCH, vec![]);
            self.write(Record::CallEnded { item, at, outcome, result, instructed, executed: None });
        }
    }

    /// The beginning of an answer that is still to come.
    fn stream(&mut self, turn: &TurnId) -> ItemId {
        let body = ItemBody::AgentMessage {
            text: "half of".into(),
            complete: false,
            interrupted: false,
            model: None,
            duration_ms: None,
        };
        let item = new_item(turn, body);
        let id = item.id.clone();
        self.write(Record::Streamed { item });
        self.write(Record::Grown { item: id.clone(), text: " an answer".into() });
        id
    }

    fn compact(&mut self, turn: TurnId, percent: usize) {
        if self.state.main.messages.is_empty() {
            return;
        }
        let kept_from = self.state.main.messages.len() * percent / 100;
        let compaction = Compaction {
            window: WindowId::generate(),
            turn,
            cause: Cause::Asked,
            focus: None,
            messages: BeforeAfter::default(),
            tokens: BeforeAfter::default(),
            trigger: None,
            model: None,
            usage: Usage::default(),
            duration_ms: 0,
            kept_from,
            summary: Some("summary".into()),
            failure: None,
            files: vec![],
            head: vec![Block::Text { text: "summary".into() }],
            pictures_left_out: kept_from % 3,
        };
        let window = compaction.window.clone();
        let mut closed = self.state.main.clone();
        closed.close_calls();
        self.write(Record::Compacted { compaction: Box::new(compaction) });
        let stored = self.state.main.window(&window).unwrap();
        let shelf = self.state.shelf().map(std::sync::Arc::as_ref);
        assert_eq!(*stored.read(shelf).unwrap(), closed.messages[..]);
        self.cut = None;
    }

    fn rewind(&mut self, turns: usize) {
        let at = self.befores.len().saturating_sub(turns);
        let Some((turn, before)) = self.befores.get(at).cloned() else { return };
        let mut closed = self.state.main.clone();
        closed.close_calls();
        let resolution = ResolutionId::generate();
        self.write(Record::Rewound { turn, resolution: resolution.clone(), files: false });
        assert_eq!(self.state.main.messages, before);
        let befores = self.befores.clone();
        self.befores.truncate(at);
        self.cut = Some((resolution, closed.messages, befores));
    }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.to_owned() }
}

#[test]
fn what_steers_a_turn_is_known_as_what_the_user_said_apart_from_its_prompt() {
    let mut kept = Kept::new();
    kept.prompt(false);
    let turn = kept.befores[0].0.clone();
    let prompt = kept.state.main.newest_prompt().unwrap();
    let steer = |kept: &mut Kept, words: &str| {
        let item = new_item(&turn, ItemBody::user_message(words));
        let (queued, content, id) = (kode_base::ids::QueueId::generate(), vec![text(words)], item.id.clone());
        kept.write(Record::Steered { turn: turn.clone(), queued, item, content, parts: vec![] });
        let content = vec![text("a file")];
        kept.write(Record::Attached {
            turn: turn.clone(),
            item: id,
            content,
            shown: vec![],
            instructed: vec![],
        });
    };
    // Before the first answer it is in the message of the prompt.
    steer(&mut kept, "one");
    kept.answer(&turn, 1, 1, false);
    steer(&mut kept, "two");
    steer(&mut kept, "three");
    kept.answer(&turn, 1, 1, false);
    let said = |at, words: &str| SentPrompt { at, blocks: vec![text(words), text("a file")], words: 1 };
    let main = &kept.state.main;
    assert_eq!(main.newest_prompt(), Some(prompt));
    assert_eq!(main.steered(), [said(Some(0), "one"), said(Some(2), "two"), said(Some(2), "three")]);
    // Five messages, the last two of which are kept.
    kept.compact(turn.clone(), 60);
    steer(&mut kept, "four");
    let lost = ["one", "two", "three"].map(|words| said(None, words));
    assert_eq!(kept.state.main.steered()[..3], lost);
    assert_eq!(kept.state.main.steered()[3], said(Some(2), "four"));
    // Another prompt starts over, and going back brings back the former messages.
    kept.prompt(false);
    assert_eq!(kept.state.main.steered(), []);
    kept.rewind(1);
    assert_eq!(kept.state.main.steered().len(), 4);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_fork_at_any_item_has_what_was_said_until_then_and_can_be_sent(
        steps in proptest::collection::vec(step(), 1..25),
        streams in any::<bool>(),
    ) {
        let mut kept = Kept::new();
        let mut shown: Vec<ItemId> = Vec::new();
        for step in &steps {
            kept.take(step);
            let new = kept.state.main.items.newest().iter().map(|item| item.id.clone());
            let new: Vec<_> = new.filter(|id| !shown.contains(id)).collect();
            shown.extend(new);
        }
        let turn = kept.befores.last().filter(|_| streams).map(|(turn, _)| turn.clone());
        let streamed = turn.map(|turn| kept.stream(&turn));
        shown.extend(streamed.clone());
        let (origin, id) = (kept.state.id.clone(), SessionId::generate());
        for item in shown {
            let forked = |at| SessionState::fold(fork(kept.records.clone(), &at, &origin, &id).unwrap()).unwrap();
            let (after, before) = (forked(ForkPoint::After(item.clone())), forked(ForkPoint::Before(item.clone())));
            prop_assert!(after.main.item(&item).is_some() && before.main.item(&item).is_none());
            if streamed.as_ref() == Some(&item) {
                let said = after.main.messages.last().and_then(|message| message.content.last()).cloned();
                prop_assert_eq!(said, Some(text("half of an answer")));
            }
            for state in [after, before] {
                prop_assert_eq!((&state.id, state.forked_from.as_ref()), (&id, Some(&origin)));
                prop_assert_eq!(state.main.unanswered(), vec![]);
                prop_assert_eq!(state.main.broken_off(jiff::Timestamp::now()), vec![], "it has ended");
                prop_assert_eq!(&state.running.id, &None);
                prop_assert_eq!(&normalise(&state.main.messages)[..], &state.main.messages[..]);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn histories_can_be_sent_and_going_back_brings_back_what_was_there(
        steps in proptest::collection::vec(step(), 0..40),
    ) {
        let mut kept = Kept::new();
        for step in &steps {
            kept.take(step);
            let mut closed = kept.state.main.clone();
            closed.close_calls();
            prop_assert_eq!(&normalise(&closed.messages)[..], &closed.messages[..]);
        }
        let lines: Vec<String> =
            kept.records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let read = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let folded = SessionState::fold(read).unwrap();
        prop_assert_eq!(folded.main.messages, kept.state.main.messages);
    }
}

#[test]
fn instructions_that_were_given_follow_the_conversation_back_and_forth() {
    let mut thread = Thread::default();
    let folder = |name: &str| AbsPath::new(format!("/w/{name}")).unwrap();
    let known = |thread: &Thread| thread.instructed().map(AbsPath::file_name).collect::<Vec<_>>();
    let mut turns = Vec::new();
    for name in ["a", "b"] {
        let turn = TurnId::generate();
        let item = new_item(&turn, ItemBody::user_message(name));
        let (content, parts) = (vec![Block::Text { text: name.into() }], vec![]);
        let (id, instructed) = (item.id.clone(), vec![folder(name)]);
        thread.apply(Record::Prompt {
            turn: turn.clone(),
            queued: None,
            item,
            content,
            parts,
            options: TurnOptions::default(),
        });
        let (content, shown) = (vec![Block::Text { text: "rules".into() }], vec![]);
        thread.apply(Record::Attached { turn: turn.clone(), item: id, content, shown, instructed });
        turns.push(turn);
    }
    assert_eq!(known(&thread), ["b", "a"]);
    let cut = thread.rewind(&BTreeSet::from([turns[1].clone()])).unwrap();
    assert_eq!(known(&thread), ["a"]);
    thread.unwind(cut);
    assert_eq!(known(&thread), ["b", "a"]);
}
