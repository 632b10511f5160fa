//! Journals with any damage: intact records are there, damaged ones are reported, and the session continues.
//!
//! Rule: a whole line that is in a file counts once, regardless of the text around it; nothing that is read from a file
//! makes the reader, the folds or the session fail.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::OnceLock;

use proptest::prelude::*;
use proptest::sample::Index;

use super::*;
use crate::edits::review::AmendedPolicy;
use crate::tests::journal_of;
use kode_journal::{Blobs, read};
use kode_testing::validity::everywhere;
use kode_text::edit::ledger::Ledger;
use kode_text::edit::ledger::review::{ReviewAction, Selection};
use kode_tools::built_in::built_in;

/// A whole session's journal.
struct Corpus {
    lines: Vec<Vec<u8>>,
    /// Its place in a home, and its workspace folder.
    place: PathBuf,
    root: AbsPath,
    id: SessionId,
    home: tempfile::TempDir,
}

fn corpus() -> &'static Corpus {
    static CORPUS: OnceLock<Corpus> = OnceLock::new();
    CORPUS.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(record_corpus())
    })
}

/// A session with calls, edits, undone edits, todos, prompts that waited, a compaction and an interruption.
async fn record_corpus() -> Corpus {
    let tool = |id: &str, name: &str, input: serde_json::Value| Block::ToolUse {
        id: id.into(),
        name: name.into(),
        input,
        input_error: None,
    };
    let write =
        |id: &str, content: &str| tool(id, "Write", json!({ "file_path": "a.txt", "content": content }));
    let edit = |id: &str, old: &str, new: &str| {
        tool(id, "Edit", json!({ "file_path": "a.txt", "old_string": old, "new_string": new }))
    };
    let todos = json!({ "todos": [{ "content": "x", "status": "in_progress", "activeForm": "x-ing" }] });
    let script = vec![
        Say::Answer(vec![text("writing"), write("c0", "one\ntwo\nthree\nfour\nfive\n")]),
        Say::Answer(vec![edit("c1", "two", "zwei"), tool("c2", "TodoWrite", todos)]),
        Say::Answer(vec![text("first done")]),
        Say::Answer(vec![edit("c3", "four", "vier"), tool("c4", "Nothing", json!({}))]),
        Say::Answer(vec![text("second done")]),
        Say::Answer(vec![text("third done ".repeat(400).as_str())]),
        Say::Answer(vec![text("<summary>they wrote a file</summary>")]),
        Say::Answer(vec![edit("c5", "five", "fuenf")]),
        Say::Hang("half a thou"),
    ];
    let bench = Bench::with_tools(tempfile::tempdir().unwrap(), script, built_in());
    let new = NewSession { roots: vec![bench.root()], mode: Some(Mode::AcceptEdits), model: None };
    let session = bench.engine.new_session(new).unwrap();
    let mut events = session.events().subscribe(0, vec![]);
    for (prompts, turns) in [(&["write", "and edit"][..], 2), (&["more"], 1), (&["/compact"], 1)] {
        prompts.iter().for_each(|words| drop(session.prompts().submit(prompt(words)).unwrap()));
        let mut done = 0;
        until(&mut events, |event| {
            done += usize::from(is_done(event));
            done == turns
        })
        .await;
    }
    session.edits().resolve(&Selection::Session, ReviewAction::Undo, AmendedPolicy::Undo).unwrap();
    until(&mut events, |event| matches!(event, Event::EditsResolved { .. })).await;
    session.prompts().submit(prompt("again")).unwrap();
    let is_said = |item: &Item| matches!(item.body, ItemBody::AgentMessage { complete: false, .. });
    until(&mut events, |event| matches!(event, Event::ItemAdded { item } if is_said(item))).await;
    session.prompts().submit(prompt("waits")).unwrap();
    let (id, root) = (session.id().clone(), bench.root());
    bench.engine.shutdown().await;
    let path = journal_of(bench.home.path());
    let bytes = std::fs::read(&path).unwrap();
    let lines: Vec<_> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let place = path.strip_prefix(bench.home.path()).unwrap().to_owned();
    let text = String::from_utf8_lossy(&bytes);
    for kind in ["compacted", "edits", "todos", "queued", "callEnded", "turnEnded"] {
        assert!(text.contains(&format!("\"type\":\"{kind}\"")), "no {kind} in {text}");
    }
    Corpus { lines, place, root, id, home: bench.home }
}

/// The damage of a file.
#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    /// Zeros instead of the former bytes, or other bytes.
    Overwritten(Index, usize, u8),
    Removed(Index),
    Repeated(Index, Index),
    Moved(Index, Index),
    /// A line of another program.
    Foreign(Index, &'static [u8]),
    /// An id in a line is one that does not exist.
    OtherId(Index, Index),
}

const FOREIGN: [&[u8]; 8] = [
    b"{\"v\":1,\"written\":\"2026-01-01T00:00:00Z\",\"type\":\"fromTheFuture\",\"x\":[1]}\n",
    b"{\"v\":2,\"written\":\"2026-01-01T00:00:00Z\",\"type\":\"drafted\"}\n",
    b"{\"v\":1,\"written\":\"2026-01-01T00:00:00Z\",\"type\":\"turnEnded\"}\n",
    b"{\"role\":\"user\",\"content\":\"from another program\"}\n",
    b"[[[[[[[[\n",
    b"\xff\xfe\xc3\x28 not text\n",
    b"\0\0\0\0\0\0\0\0",
    b"\n\n  \n",
];

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<Index>;
    prop_oneof![
        1 => at().prop_map(Damage::Cut),
        2 => (at(), 1..5_000_usize, prop_oneof![3 => Just(0), 1 => any::<u8>()])
            .prop_map(|(start, length, byte)| Damage::Overwritten(start, length, byte)),
        2 => at().prop_map(Damage::Removed),
        2 => (at(), at()).prop_map(|(which, to)| Damage::Repeated(which, to)),
        2 => (at(), at()).prop_map(|(which, to)| Damage::Moved(which, to)),
        2 => (at(), prop::sample::select(&FOREIGN[..])).prop_map(|(at, line)| Damage::Foreign(at, line)),
        1 => (at(), at()).prop_map(|(line, id)| Damage::OtherId(line, id)),
    ]
}

/// The corpus with damages: those of lines first, then those of bytes.
fn damaged(damages: &[Damage]) -> Vec<u8> {
    let mut lines = corpus().lines.clone();
    for damage in damages {
        if lines.is_empty() {
            break;
        }
        let (count, places) = (lines.len(), lines.len() + 1);
        match damage {
            Damage::Removed(which) => drop(lines.remove(which.index(count))),
            Damage::Repeated(which, to) => {
                let line = lines[which.index(count)].clone();
                lines.insert(to.index(places), line);
            }
            Damage::Moved(which, to) => {
                let line = lines.remove(which.index(count));
                lines.insert(to.index(count), line);
            }
            Damage::Foreign(at, line) => lines.insert(at.index(places), line.to_vec()),
            Damage::OtherId(which, id) => rename(&mut lines[which.index(count)], id),
            Damage::Cut(_) | Damage::Overwritten(..) => {}
        }
    }
    let mut bytes = lines.concat();
    for damage in damages {
        match damage {
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len() + 1)),
            Damage::Overwritten(start, length, byte) => {
                let start = start.index(bytes.len() + 1);
                let end = bytes.len().min(start + length);
                bytes[start..end].fill(*byte);
            }
            Damage::Removed(_)
            | Damage::Repeated(..)
            | Damage::Moved(..)
            | Damage::Foreign(..)
            | Damage::OtherId(..) => {}
        }
    }
    bytes
}

/// Changes the last character of one of the ids in a line.
fn rename(line: &mut [u8], which: &Index) {
    let is_id =
        |at: &usize| line[*at] == b'_' && line[at + 1..].iter().take(20).all(u8::is_ascii_alphanumeric);
    let ids: Vec<usize> = (0..line.len().saturating_sub(21)).filter(is_id).collect();
    if let Some(at) = ids.get(which.index(ids.len().max(1))) {
        line[at + 20] = if line[at + 20] == b'0' { b'1' } else { b'0' };
    }
}

/// Puts a journal into a home of its own, with the blobs of the corpus.
fn home_of(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(&corpus().place);
    let blobs = path.with_file_name("blobs");
    std::fs::create_dir_all(&blobs).unwrap();
    let kept = corpus().home.path().join(&corpus().place).with_file_name("blobs");
    for blob in std::fs::read_dir(kept).unwrap() {
        let blob = blob.unwrap();
        std::fs::copy(blob.path(), blobs.join(blob.file_name())).unwrap();
    }
    std::fs::write(&path, bytes).unwrap();
    (home, path)
}

/// Reads and folds what may be a journal, and checks all that it adds up to: whatever the bytes are, this ends, and the
/// next request is one that every provider takes.
fn fuzz(bytes: &[u8]) -> (kode_journal::ReadJournal<Record>, Option<SessionState>) {
    let (_home, path) = home_of(bytes);
    let read = read(&path).unwrap();
    let blobs = Blobs::new(path.with_file_name("blobs"));
    let entries = read.records.iter().filter_map(|record| match record {
        Record::Edits { entry } => Some(entry.clone()),
        _ => None,
    });
    let (ledger, _problems) = Ledger::fold(entries.collect(), &blobs);
    let turns: Vec<TurnId> = read.records.iter().filter_map(turn_of).collect();
    drop(ledger.in_place_of(&turns));
    for target in ledger.targets() {
        assert!(ledger.text(target).is_some());
    }
    let hunks = ledger.every_hunk();
    assert_eq!(hunks.iter().collect::<BTreeSet<_>>().len(), hunks.len(), "a hunk is there twice");
    let Some(mut state) = SessionState::fold(read.records.clone()) else { return (read, None) };
    let ids: HashSet<&ItemId> = state.main.items.newest().iter().map(|item| &item.id).collect();
    assert_eq!(ids.len(), state.main.items.newest().len(), "an item is there twice");
    let turn = TurnId::generate();
    let item = new_item(&turn, ItemBody::user_message("and now".to_owned()));
    let content = vec![text("and now")];
    state.apply(Record::Prompt {
        turn,
        queued: None,
        item,
        content,
        parts: vec![],
        options: kode_record::options::TurnOptions::default(),
    });
    let threads = std::iter::once(&state.main).chain(state.agents.values().map(|agent| &agent.thread));
    for thread in threads.filter(|thread| thread.unanswered().is_empty() && !thread.messages.is_empty()) {
        let messages = thread.messages.clone();
        let request = ModelRequest { messages, max_tokens: 8000, ..ModelRequest::default() };
        if let Err(what) = everywhere(&request) {
            panic!("{what}");
        }
    }
    (read, Some(state))
}

fn turn_of(record: &Record) -> Option<TurnId> {
    match record {
        Record::Prompt { turn, .. } => Some(turn.clone()),
        _ => None,
    }
}

/// Whether a damage can make another whole line of one.
fn is_rewritten(damage: &Damage) -> bool {
    matches!(damage, Damage::OtherId(..) | Damage::Overwritten(_, _, 1..))
}

/// The lines of the corpus that stand whole in a file, perhaps with zeros around them.
fn whole_lines(bytes: &[u8]) -> usize {
    let known: HashSet<&[u8]> = corpus().lines.iter().map(|line| trimmed(line)).collect();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n"));
    lines.map(trimmed).filter(|line| known.contains(line)).collect::<HashSet<_>>().len()
}

fn trimmed(line: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| *byte != 0 && !byte.is_ascii_whitespace();
    let start = line.iter().position(is_text).unwrap_or(line.len());
    &line[start..line.iter().rposition(is_text).map_or(start, |end| end + 1)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_to_a_journal_what_is_whole_is_there_once(damages in prop::collection::vec(damage(), 1..5)) {
        let bytes = damaged(&damages);
        let (read, _state) = fuzz(&bytes);
        let whole = whole_lines(&bytes);
        prop_assert!(read.records.len() >= whole, "{} of {whole} records", read.records.len());
        // A line that is written over may be repeated afterwards.
        let repeated = damages.iter().filter(|damage| matches!(damage, Damage::Repeated(..))).count();
        let rewritten = damages.iter().filter(|damage| is_rewritten(damage)).count() * (1 + repeated);
        prop_assert!(read.records.len() <= whole + rewritten, "{} of {whole} records", read.records.len());
        // Every other line with anything in it is counted; one between whole lines cannot go unnoticed.
        let is_said = |line: &&[u8]| line.ends_with(b"\n") && !line.iter().all(u8::is_ascii_whitespace);
        let all = bytes.split_inclusive(|byte| *byte == b'\n').filter(is_said);
        let others = all.filter(|line| !corpus().lines.iter().any(|known| known == line)).count();
        prop_assert!(read.skipped as usize + rewritten >= others, "{} of {others} were told", read.skipped);
    }

    #[test]
    fn any_bytes_are_read_to_their_end(
        pieces in prop::collection::vec(
            prop_oneof![
                any::<Index>().prop_map(|line| { let lines = &corpus().lines; lines[line.index(lines.len())].clone() }),
                prop::collection::vec(any::<u8>(), 0..200),
                prop::sample::select(&FOREIGN[..]).prop_map(<[u8]>::to_vec),
            ],
            0..12,
        ),
        cut in any::<Index>(),
        from in any::<Index>(),
    ) {
        let mut bytes = pieces.concat();
        bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
        bytes.drain(..from.index(bytes.len() + 1) / 2);
        fuzz(&bytes);
    }
}

#[test]
fn a_journal_whose_beginning_stands_elsewhere_is_folded_whole() {
    let whole = fuzz(&corpus().lines.concat()).1.unwrap();
    let mut lines = corpus().lines.clone();
    let beginning = lines.remove(0);
    lines.push(beginning);
    let moved = fuzz(&lines.concat()).1.unwrap();
    assert_eq!(
        moved.main.items.newest()[..moved.main.items.count() - 1],
        whole.main.items.newest()[..whole.main.items.count() - 1]
    );
}

/// A line beyond the limit takes no more memory than the limit, and costs itself alone.
#[test]
fn an_overlong_line_costs_itself_alone() {
    let mut bytes = corpus().lines[0].clone();
    bytes.extend(std::iter::repeat_n(b'a', (64 << 20) + 10));
    bytes.push(b'\n');
    bytes.extend(corpus().lines[1..].concat());
    let (read, _state) = fuzz(&bytes);
    assert_eq!((read.records.len(), read.skipped), (corpus().lines.len(), 1));
}

/// Loads a damaged session and asks something in it. Answers the skipped lines, as reported to its client.
async fn continues(bytes: &[u8]) -> Option<u64> {
    let (home, path) = home_of(bytes);
    let bench = Bench::in_home(home, vec![]);
    let roots = [corpus().root.clone()];
    let session = match bench.engine.load_session(&roots, &corpus().id).await {
        Ok(session) => session,
        Err(error) => {
            assert!(error.to_string().contains("does not add up"), "{error}");
            return None;
        }
    };
    assert_eq!((session.id(), session.roots()), (&corpus().id, roots.to_vec()));
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    let waiting = session.snapshot(0).queue.len();
    drop(session.edits().review());
    drop(session.edits().checkpoints());
    session.prompts().submit(prompt("and now")).unwrap();
    let mut done = 0;
    until(&mut events, |event| {
        done += usize::from(is_done(event));
        done == waiting + 1
    })
    .await;
    for request in bench.requests() {
        // The system prompt is checked where it is made.
        everywhere(&ModelRequest { system: vec![], ..request }).unwrap();
    }
    let items = session.snapshot(usize::MAX).items;
    let notices = items
        .iter()
        .filter(|item| matches!(&item.body, ItemBody::Notice { kind: Some(NoticeKind::Damaged), .. }));
    // The events of its clients, by the journal.
    let records = read(&path).unwrap().records;
    let skipped = records.iter().rev().find_map(|record| match record {
        Record::Resumed { skipped_records, .. } => Some(*skipped_records),
        _ => None,
    });
    assert_eq!(notices.count(), usize::from(skipped > Some(0)));
    bench.engine.shutdown().await;
    skipped
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_with_a_damaged_journal_continues_and_says_so(damages in prop::collection::vec(damage(), 1..4)) {
        let bytes = damaged(&damages);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        let skipped = runtime.unwrap().block_on(continues(&bytes));
        let is_readable = !fuzz(&bytes).0.records.is_empty();
        prop_assert_eq!(skipped.is_some(), is_readable);
    }
}

#[test]
fn a_session_whose_first_line_is_lost_opens_in_its_folder_and_says_so() {
    let lines = &corpus().lines;
    let zeros = vec![0; lines[0].len()];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    runtime.unwrap().block_on(async {
        let reported = continues(&[zeros, lines[1..].concat()].concat()).await;
        assert_eq!(reported, Some(1), "the zeros stand before a whole line");
        assert_eq!(continues(&lines[1..].concat()).await, Some(1), "nothing of it is left");
        assert_eq!(continues(&lines.concat()).await, Some(0));
        assert_eq!(continues(b"").await, None);
        assert_eq!(continues(b"nothing of ours\n").await, None);
    });
}
