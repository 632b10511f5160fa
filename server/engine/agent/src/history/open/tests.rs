//! However a session is opened, it is the session that its journal tells.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::history::base::FORM;
use crate::state::new_item;
use crate::state::thread::tests::{Kept as History, Step, step};
use kode_base::ids::{AgentId, CallId, TurnId};
use kode_base::todo::{Todo, TodoStatus};
use kode_journal::Journal;
use kode_journal::base::BaseMark;
use kode_journal::disk::RealDisk;
use kode_model::Usage;
use kode_record::context::Pace;
use kode_record::event::{Event, EventLog, EventRecord, ItemBody, RunState};
use kode_record::options::TurnOptions;

/// A stored session.
struct Stored {
    _folder: tempfile::TempDir,
    path: PathBuf,
    blobs: Blobs,
    /// Where the line of each record begins, and where the last one ends.
    at: Vec<u64>,
}

impl Stored {
    /// Writes records as a live session would that takes its base after `cut` of them.
    fn new(records: &[Record], blob: Option<&str>, cut: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let blobs = Blobs::new(folder.path().join("blobs"));
        if let Some(text) = blob {
            blobs.put(text.as_bytes()).unwrap();
        }
        let journal = Journal::open(&path).unwrap();
        let (mut state, mut seq, mut at) = (None::<SessionState>, 0, vec![0]);
        for record in records {
            let reported = match &mut state {
                Some(state) => state.apply(record.clone()).len() as u64,
                None => {
                    state = SessionState::open(record);
                    0
                }
            };
            journal.append_line(journal.prepare(record).unwrap(), seq).unwrap();
            seq += reported;
            at.push(journal.whole_length().unwrap());
            if at.len() - 1 == cut || cut == 0 {
                journal.start_over().unwrap();
            }
        }
        Self { _folder: folder, path, blobs, at }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.with_file_name(name)
    }

    fn open(&self) -> OpenedJournal {
        self.open_since(None, &|_| {})
    }

    fn open_since(&self, since: Option<u64>, report: &dyn Fn(LoadProgress)) -> OpenedJournal {
        let beginning = History::new().records.remove(0);
        let source =
            OpeningSource { disk: &RealDisk, journal: &self.path, blobs: &self.blobs, beginning: &beginning };
        open(&source, since, report).unwrap()
    }

    /// Opens the journal's beginning, and writes the base of that beside the whole journal. Answers the number of the
    /// newest event in it.
    fn put_base(&self, records: usize) -> u64 {
        let whole = fs::read(&self.path).unwrap();
        let offset = self.at[records];
        fs::write(&self.path, &whole[..usize::try_from(offset).unwrap()]).unwrap();
        let opening = self.open();
        let Replay { state, kept } = opening.replay.unwrap();
        let (length, newest) =
            (state.shelf().unwrap().length(), EventLog::with(state.id.clone(), kept).newest());
        let content =
            BaseContent { state: &state, ledger: &opening.ledger, skipped: opening.base.skipped, newest };
        let mark = BaseMark::of(&self.path, offset).unwrap();
        base::write(&self.file(BASE), FORM, mark, length, &base::encode(&content).unwrap()).unwrap();
        // Items put on the shelf after the base was written are still there when the server was killed.
        if let Ok(mut shelf) = fs::OpenOptions::new().append(true).open(self.file(SHELF)) {
            std::io::Write::write_all(&mut shelf, b"later").unwrap();
        }
        fs::write(&self.path, whole).unwrap();
        newest
    }
}

/// An opened session as a base holds it.
fn content(opening: &OpenedJournal) -> base::ContentBytes {
    let state = &opening.replay.as_ref().unwrap().state;
    let content = BaseContent { state, ledger: &opening.ledger, skipped: opening.base.skipped, newest: 0 };
    base::encode(&content).unwrap()
}

/// The events that an opened session tells after a number.
fn reported(opening: OpenedJournal, since: u64) -> Vec<EventRecord> {
    let Replay { state, kept } = opening.replay.unwrap();
    let mut reader = EventLog::with(state.id, kept).subscribe(since, vec![]);
    let mut events = Vec::new();
    loop {
        let more = reader.ready().unwrap();
        if more.is_empty() {
            return events;
        }
        events.extend(more);
    }
}

/// Records of a session with sub-agents, changes and all that belongs to the whole of it.
fn records(steps: &[(Step, u8)]) -> (Vec<Record>, &'static str) {
    let base = "one\ntwo\nthree\n";
    let mut history = History::new();
    let mut records = Vec::new();
    let mut seen = 0;
    let (agent, turn) = (AgentId::generate(), TurnId::generate());
    let target = kode_base::paths::Target::Untitled("untitled:1".to_owned());
    for (step, also) in steps {
        history.take(step);
        records.extend(history.records[seen..].iter().cloned());
        seen = history.records.len();
        match also {
            0 => {
                let todo = Todo {
                    content: "look".into(),
                    status: TodoStatus::Pending,
                    active_form: "Looking".into(),
                };
                records.push(Record::Todos { todos: vec![todo] });
            }
            1 => {
                let item = new_item(&turn, ItemBody::user_message("a task"));
                let content = vec![kode_model::Block::Text { text: "a task".into() }];
                let record = Record::Prompt {
                    turn: turn.clone(),
                    queued: None,
                    item,
                    content,
                    parts: vec![],
                    options: TurnOptions::default(),
                };
                records.push(Record::InAgent { agent: agent.clone(), record: Box::new(record) });
            }
            2 => records.push(Record::Charged {
                turn: turn.clone(),
                model: "m".into(),
                usage: Usage { input_tokens: 3, ..Usage::default() },
                cost: Some(0.25),
                context: None,
                pace: Pace::default(),
                provider: String::new(),
                aside: false,
            }),
            3 => {
                let blob = BlobId::of(base.as_bytes());
                records.push(Record::Edits {
                    entry: LedgerEntry::Tracked { target: target.clone(), base: blob },
                });
            }
            4 => {
                let edit = kode_text::edit::TextEdit { range: 0..0, new_text: "x\n".into() };
                let entry = LedgerEntry::Typed { target: target.clone(), steps: vec![vec![edit]] };
                records.push(Record::Edits { entry });
            }
            5 => {
                let hunk = kode_text::edit::ledger::NewHunk {
                    id: kode_base::ids::HunkId::generate(),
                    edits: vec![kode_text::edit::TextEdit { range: 0..3, new_text: "new".into() }],
                };
                let change = kode_text::edit::ledger::ChangeOrigin {
                    id: kode_base::ids::ChangeId::generate(),
                    turn: turn.clone(),
                    call: CallId::from_external("c"),
                    kind: kode_text::edit::ledger::review::HunkKind::Text,
                    permission: None,
                };
                let entry = LedgerEntry::Changed { target: target.clone(), change, hunks: vec![hunk] };
                records.push(Record::Edits { entry });
            }
            _ => {}
        }
    }
    if records.is_empty() {
        records.extend(history.records);
    }
    (records, base)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_session_from_its_base_is_the_session_that_its_whole_journal_reports(
        steps in proptest::collection::vec((step(), 0..12_u8), 1..90),
        cut in 0.0..1.0_f64,
    ) {
        let (records, blob) = records(&steps);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        let cut = 1 + (cut * records.len() as f64) as usize;
        let cut = cut.min(records.len());
        let stored = Stored::new(&records, Some(blob), cut);
        let newest = stored.put_base(cut);
        let open = || stored.open_since(Some(newest), &|_| {});
        let opening = open();
        prop_assert_eq!(opening.base.offset, stored.at[cut], "the base is used");
        prop_assert_eq!(opening.read, stored.at[records.len()] - stored.at[cut]);
        let from_base = (content(&opening), reported(opening, newest));
        let shelf = fs::read(stored.file(SHELF)).ok();
        fs::remove_file(stored.file(BASE)).unwrap();
        let opening = open();
        prop_assert!(from_base.0 == content(&opening), "it is the same");
        prop_assert_eq!(from_base.1, reported(opening, newest), "the same is told");
        prop_assert_eq!(shelf, fs::read(stored.file(SHELF)).ok());
    }
}

/// A session so long that much of it has left memory.
fn long() -> Stored {
    let steps: Vec<_> = (0..60)
        .flat_map(|_| {
            [(Step::Prompt(true), 9), (Step::Answer(2, 2, true), 3), (Step::Answer(0, 0, false), 4)]
        })
        .chain([(Step::Compact(20), 9), (Step::Prompt(false), 9)])
        .collect();
    let (records, blob) = records(&steps);
    Stored::new(&records, Some(blob), 0)
}

#[test]
fn a_base_that_cannot_be_used_costs_a_full_fold_and_nothing_else() {
    let stored = long();
    let whole = content(&stored.open());
    let half = stored.at.len() / 2;
    stored.put_base(half);
    let good = fs::read(stored.file(BASE)).unwrap();
    let other = String::from_utf8_lossy(&good[..200]).replacen(FORM, &"0".repeat(FORM.len()), 1);
    let other = [&other.as_bytes()[..200], &good[200..]].concat();
    let truncated = good[..good.len() / 2].to_vec();
    for bad in [None, Some(Vec::new()), Some(b"garbage".to_vec()), Some(truncated), Some(other)] {
        match &bad {
            Some(bytes) => fs::write(stored.file(BASE), bytes).unwrap(),
            None => fs::remove_file(stored.file(BASE)).unwrap(),
        }
        let opening = stored.open();
        assert_eq!((opening.base.offset, opening.read), (0, *stored.at.last().unwrap()));
        assert!(content(&opening) == whole);
        assert!(!stored.file(BASE).exists(), "it leans on a shelf that was made anew");
        stored.put_base(half);
    }
    assert_eq!(stored.open().base.offset, stored.at[half]);
}

#[test]
fn a_shelf_that_is_gone_or_too_short_is_made_again() {
    let stored = long();
    let whole = content(&stored.open());
    let shelf = fs::read(stored.file(SHELF)).unwrap();
    assert!(!shelf.is_empty());
    for left in [None, Some(1), Some(shelf.len() / 3)] {
        stored.put_base(stored.at.len() - 1);
        match left {
            Some(left) => fs::write(stored.file(SHELF), &shelf[..left]).unwrap(),
            None => fs::remove_file(stored.file(SHELF)).unwrap(),
        }
        let opening = stored.open();
        assert_eq!(opening.base.offset, 0);
        assert!(content(&opening) == whole);
        assert!(fs::read(stored.file(SHELF)).unwrap() == shelf);
    }
}

#[test]
fn a_journal_that_is_not_the_one_of_the_base_is_folded_as_a_whole() {
    let stored = long();
    stored.put_base(stored.at.len() - 1);
    let bytes = fs::read(&stored.path).unwrap();
    let shorter = usize::try_from(stored.at[stored.at.len() - 3]).unwrap();
    fs::write(&stored.path, &bytes[..shorter]).unwrap();
    let opening = stored.open();
    assert_eq!((opening.base.offset, opening.read), (0, shorter as u64));
}

#[test]
fn who_wants_events_from_before_the_base_gets_them_from_the_whole_journal() {
    let stored = long();
    let newest = stored.put_base(stored.at.len() / 2);
    let since = |since| stored.open_since(Some(since), &|_| {});
    assert_eq!(since(newest).base.offset, stored.at[stored.at.len() / 2]);
    assert_eq!(since(newest - 1).base.offset, 0);
}

#[test]
fn events_of_a_journal_are_kept_for_a_reader_with_a_bookmark_and_else_only_counted() {
    let stored = long();
    let told = reported(stored.open_since(Some(0), &|_| {}), 0);
    let newest = told.last().unwrap().bookmark.seq;
    let Replay { state, kept } = stored.open().replay.unwrap();
    let log = EventLog::with(state.id, kept);
    assert_eq!(log.newest(), newest, "the numbers go on from there");
    assert_eq!(log.subscribe(newest - 1, vec![]).ready().unwrap_err().oldest, newest + 1);
    log.publish(Event::StateChanged { state: RunState::Ready });
    assert_eq!(log.subscribe(newest, vec![]).ready().unwrap()[0].bookmark.seq, newest + 1);
}

#[test]
fn damaged_lines_before_a_base_are_counted_as_before() {
    let stored = long();
    let mut bytes = fs::read(&stored.path).unwrap();
    let (from, to) = (usize::try_from(stored.at[7]).unwrap(), usize::try_from(stored.at[8]).unwrap());
    bytes[from..to - 1].fill(b'x');
    fs::write(&stored.path, bytes).unwrap();
    stored.put_base(stored.at.len() - 5);
    let opening = stored.open();
    assert_eq!((opening.base.skipped, opening.base.offset), (1, stored.at[stored.at.len() - 5]));
}

#[test]
fn a_journal_without_a_session_is_none() {
    let stored = Stored::new(&[], None, 0);
    fs::write(&stored.path, "{\"v\":1}\n\n").unwrap();
    let opening = stored.open();
    assert!(opening.replay.is_none());
    assert_eq!(opening.base.skipped, 1);
}

#[test]
fn how_far_reading_is_is_reported() {
    let stored = long();
    let bytes = fs::read(&stored.path).unwrap();
    let line = |text: String| {
        let record = Record::Remark { turn: TurnId::generate(), text };
        let line = kode_journal::JournalLine { v: 1, seq: 0, written: jiff::Timestamp::now(), record };
        serde_json::to_string(&line).unwrap() + "\n"
    };
    let more: String = (0..10).map(|number| line(format!("{number}{}", "a".repeat(1 << 20)))).collect();
    fs::write(&stored.path, [bytes, more.into_bytes()].concat()).unwrap();
    let total = fs::metadata(&stored.path).unwrap().len();
    let reported = std::cell::RefCell::new(Vec::new());
    stored.open_since(None, &|loading| reported.borrow_mut().push(loading));
    let reported = reported.into_inner();
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(reported.iter().all(|loading| loading.total == total && loading.read <= total));
    assert!(reported[0].read < reported[1].read);
}
