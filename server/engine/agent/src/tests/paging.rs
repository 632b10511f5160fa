//! A long session: its older items come from the disk, and its base makes it open quickly.

use super::*;
use crate::edits::review::{RestoreWhat, UserEdits};
use crate::history::paging::PagingError;
use crate::state::transcript::{KEPT, PAGE};
use kode_journal::SHELF;
use kode_journal::base::BASE;

/// A session of this many turns, each with a prompt, a call and an answer of this many characters.
async fn long(bench: &Bench, turns: usize, characters: usize) -> Arc<Session> {
    let session = bench.session();
    let mut events = session.events().subscribe(0, vec![]);
    for turn in 0..turns {
        {
            let mut script = bench.model.script.lock().unwrap();
            script.push_back(Say::Answer(vec![call(&format!("c{turn}"), "Probe", "return")]));
            script.push_back(Say::Answer(vec![text(&"a".repeat(characters))]));
        }
        session.prompts().submit(prompt(&format!("prompt {turn}"))).unwrap();
        until(&mut events, is_done).await;
    }
    session
}

/// All items, read page by page from the newest on.
async fn paged(session: &Arc<Session>) -> Vec<Arc<Item>> {
    let snapshot = session.snapshot(10);
    let (mut items, mut more) = (snapshot.items, snapshot.more_items);
    while more {
        let page = session.history().items_before(None, items[0].id.clone(), 7).await.unwrap();
        assert!(!page.items.is_empty() && page.items.len() <= 7);
        more = page.more_items;
        items.splice(0..0, page.items);
    }
    items
}

async fn loaded(bench: &Bench, session: &Session) -> Arc<Session> {
    bench.engine.load_session(&[bench.root()], session.id()).await.unwrap()
}

fn folder(bench: &Bench) -> std::path::PathBuf {
    journal_of(bench.home.path()).parent().unwrap().to_path_buf()
}

#[tokio::test(start_paused = true)]
async fn a_long_transcript_is_read_page_by_page_and_comes_back_after_a_kill_and_without_its_caches() {
    let bench = Bench::new(vec![]);
    let session = long(&bench, 40, 4_000).await;
    let items = session.snapshot(usize::MAX).items;
    assert_eq!(items.len(), 40 * 3);
    assert!(session.core().state().main.items.newest().len() < KEPT + PAGE, "the others have left memory");
    assert_eq!(paged(&session).await, items);
    let first = items[0].id.clone();
    let page = session.history().items_before(None, first, 5).await.unwrap();
    assert!(page.items.is_empty() && !page.more_items);
    let unknown = session.history().items_before(None, ItemId::generate(), 5).await;
    assert!(matches!(unknown, Err(PagingError::UnknownItem(_))), "{unknown:?}");
    bench.engine.shutdown().await;
    let folder = folder(&bench);
    assert!(folder.join(BASE).exists() && folder.join(SHELF).exists());
    let mut bench = Bench::in_home(bench.home, vec![]);
    for damage in ["none", "no base", "no shelf", "bad shelf", "none"] {
        match damage {
            "no base" => std::fs::remove_file(folder.join(BASE)).unwrap(),
            "no shelf" => std::fs::remove_file(folder.join(SHELF)).unwrap(),
            "bad shelf" => {
                let mut bytes = std::fs::read(folder.join(SHELF)).unwrap();
                bytes.fill(b'x');
                std::fs::write(folder.join(SHELF), bytes).unwrap();
            }
            _ => {}
        }
        let session = loaded(&bench, &session).await;
        assert_eq!(paged(&session).await, items, "{damage}");
        if damage == "bad shelf" {
            assert!(!folder.join(BASE).exists(), "it says where things lay on another shelf");
        }
        assert_eq!(session.edits().checkpoints().len(), 40);
        assert_eq!(session.snapshot(0).title, "prompt 0");
        bench.engine.shutdown().await;
        bench = Bench::in_home(bench.home, vec![]);
    }
    let session = loaded(&bench, &session).await;
    bench.engine.shutdown().await;
    let garbage = vec![b'x'; std::fs::read(folder.join(SHELF)).unwrap().len()];
    std::fs::write(folder.join(SHELF), &garbage).unwrap();
    let refused = session.history().items_before(None, items[20].id.clone(), 5).await;
    assert!(matches!(refused, Err(PagingError::Storage(_))), "{refused:?}");
    assert!(std::fs::read(folder.join(SHELF)).unwrap() == garbage, "another process may write it by now");
}

#[tokio::test(start_paused = true)]
async fn going_back_beyond_what_is_in_memory_and_forward_again_brings_everything_back() {
    let bench = Bench::new(vec![]);
    let session = long(&bench, 40, 10).await;
    let (items, history) = (session.snapshot(usize::MAX).items, session.history().messages_from(0));
    for (turn, damaged) in [(1, false), (7, true), (39, false), (0, false)] {
        if damaged {
            let path = folder(&bench).join(SHELF);
            let mut bytes = std::fs::read(&path).unwrap();
            bytes.fill(b'x');
            std::fs::write(path, bytes).unwrap();
        }
        let checkpoint = CheckpointId::before(&items[turn * 3].turn);
        let id = session.edits().restore(&checkpoint, RestoreWhat::Conversation, UserEdits::Keep).unwrap();
        assert_eq!(session.snapshot(usize::MAX).items, items[..turn * 3]);
        assert_eq!(paged(&session).await, items[..turn * 3]);
        session.edits().unwind(&id).unwrap();
        assert_eq!(session.snapshot(usize::MAX).items, items);
        assert_eq!(session.history().messages_from(0), history);
    }
    // Messages after going back follow the remaining ones.
    let checkpoint = CheckpointId::before(&items[6].turn);
    session.edits().restore(&checkpoint, RestoreWhat::Conversation, UserEdits::Keep).unwrap();
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    session.prompts().submit(prompt("another")).unwrap();
    until(&mut events, is_done).await;
    let now = session.snapshot(usize::MAX).items;
    assert_eq!((now.len(), &now[..6]), (8, &items[..6]));
    bench.engine.shutdown().await;
    let bench = Bench::in_home(bench.home, vec![]);
    assert_eq!(loaded(&bench, &session).await.snapshot(usize::MAX).items, now);
}

#[tokio::test(start_paused = true)]
async fn after_a_mebibyte_a_turn_leaves_a_base_and_a_killed_session_opens_from_it() {
    let bench = Bench::new(vec![]);
    let session = long(&bench, 3, 100_000).await;
    session.history().base_written().await;
    assert!(!folder(&bench).join(BASE).exists(), "it is not worth it yet");
    let mut events = session.events().subscribe(session.events().newest(), vec![]);
    for _ in 0..3 {
        bench.model.script.lock().unwrap().push_back(Say::Answer(vec![text(&"b".repeat(400_000))]));
        session.prompts().submit(prompt("more")).unwrap();
        until(&mut events, is_done).await;
        // The next turn begins when memory was checked.
        session.prompts().submit(prompt("and again")).unwrap();
        until(&mut events, is_done).await;
        session.history().base_written().await;
    }
    let folder = folder(&bench);
    let items = session.snapshot(usize::MAX).items;
    let (history, checkpoints) = (session.history().messages_from(0), session.edits().checkpoints().len());
    // A kill: another process opens a copy of the current state on disk.
    let copy = tempfile::tempdir().unwrap();
    let other = copy.path().join("state/sessions").join(folder.parent().unwrap().file_name().unwrap());
    let other = other.join(session.id().as_str());
    std::fs::create_dir_all(&other).unwrap();
    for name in ["journal.jsonl", BASE, SHELF] {
        if folder.join(name).exists() {
            std::fs::copy(folder.join(name), other.join(name)).unwrap();
        }
    }
    assert!(other.join(BASE).exists());
    let blobs = kode_journal::Blobs::new(other.join("blobs"));
    let (disk, journal) = (kode_journal::disk::RealDisk, other.join("journal.jsonl"));
    let beginning = kode_journal::read(&journal).unwrap().records.remove(0);
    let source = crate::history::open::OpeningSource {
        disk: &disk,
        journal: &journal,
        blobs: &blobs,
        beginning: &beginning,
    };
    let opening = crate::history::open::open(&source, None, &|_| {}).unwrap();
    assert!(
        opening.base.offset > 1 << 20 && opening.read < 1 << 20,
        "{} {}",
        opening.base.offset,
        opening.read
    );
    let state = opening.replay.unwrap().state;
    assert_eq!(state.main.items.part(0..state.main.items.count()).read().unwrap(), items);
    let messages: Vec<_> =
        state.main.messages_from(0).map(|(number, message)| (number, message.clone())).collect();
    assert_eq!((messages, state.main.prompts().count()), (history, checkpoints));
}
