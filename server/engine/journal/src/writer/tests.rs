//! Records on a real disk and on bad ones.

use std::fs::OpenOptions;
use std::io::Write;

use proptest::prelude::*;

use super::end::UNWRITTEN_LIMIT;
use super::*;
use crate::disks::faults::{Fault, Faulty};
use crate::disks::memory::Memory;
use crate::testing::{Note, note as remark};
use crate::{read, read_on};

/// A journal on a disk that fails when it is reported to.
fn on_bad_disk() -> (Faulty, Journal) {
    let folder = Path::new("/state");
    let disk = Faulty::new(Arc::new(Memory::with_folder(folder)), None);
    let journal = Journal::open_on(Arc::new(disk.clone()), &folder.join("journal.jsonl"), None).unwrap();
    (disk, journal)
}

fn read_back(disk: &Faulty) -> (Vec<Note>, u64) {
    let read = read_on(disk, Path::new("/state/journal.jsonl")).unwrap();
    (read.records, read.skipped)
}

#[tokio::test]
async fn records_come_back_in_order_and_the_file_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/journal.jsonl");
    let journal = Journal::open(&path).unwrap();
    journal.append(&remark("one")).unwrap();
    journal.append(&remark("two\nlines")).unwrap();
    journal.sync().await.unwrap();
    let read = read::<Note>(&path).unwrap();
    assert_eq!(read.records, [remark("one"), remark("two\nlines")]);
    assert_eq!(read.skipped, 0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn what_no_reader_would_take_is_refused_and_costs_itself_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let journal = Journal::open(&path).unwrap();
    let length = |text: &str| {
        let before = std::fs::metadata(&path).unwrap().len();
        journal.append(&remark(text)).map(|()| std::fs::metadata(&path).unwrap().len() - before)
    };
    let error = length(&"a".repeat(LINE_LIMIT)).unwrap_err();
    assert_eq!((error.waiting, error.source.kind()), (0, io::ErrorKind::FileTooLarge));
    assert!(error.to_string().contains(&LINE_LIMIT.to_string()), "{error}");
    let frame = usize::try_from(length("").unwrap()).unwrap();
    // Times are written with as many digits as they need: this leaves room for all of them.
    length(&"a".repeat(LINE_LIMIT - frame - 16)).unwrap();
    let read = read::<Note>(&path).unwrap();
    assert_eq!((read.records.len(), read.skipped), (2, 0));
}

#[test]
fn a_damaged_line_costs_itself_alone_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    Journal::open(&path).unwrap().append(&remark("one")).unwrap();
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(
        b"{\"v\":1,\"written\":\"2026-01-01T00:00:00Z\",\"type\":\"fromTheFuture\"}\n\0\0\0\0\n\nnot json\n",
    )
    .unwrap();
    Journal::open(&path).unwrap().append(&remark("two")).unwrap();
    let read = read::<Note>(&path).unwrap();
    assert_eq!(read.records, [remark("one"), remark("two")]);
    assert_eq!(read.skipped, 3);
}

#[test]
fn records_the_disk_refused_are_written_with_the_next() {
    let (disk, journal) = on_bad_disk();
    journal.append(&remark("one")).unwrap();
    disk.fail_from_now_on(Some(Fault::NoSpace));
    let error = journal.append(&remark("two")).unwrap_err();
    assert_eq!((error.waiting, error.source.kind()), (1, io::ErrorKind::StorageFull));
    assert_eq!(journal.append(&remark("three")).unwrap_err().waiting, 2);
    disk.fail_from_now_on(None);
    journal.append(&remark("four")).unwrap();
    assert_eq!(read_back(&disk), (["one", "two", "three", "four"].map(remark).to_vec(), 0));
}

#[tokio::test]
async fn a_refusing_disk_is_reported_once_when_it_begins_and_once_when_it_is_over() {
    let (disk, journal) = on_bad_disk();
    disk.fail_from_now_on(Some(Fault::NoSpace));
    for number in 0..5 {
        assert!(journal.append(&remark(&number.to_string())).is_err());
    }
    assert!(journal.sync().await.is_err());
    let news = journal.take_news();
    let [StorageNews { message, recovered: false }] = news.as_slice() else { panic!("{news:?}") };
    for reported in [journal.path().to_str().unwrap(), "1 records", "Make room on the disk", "tried again"] {
        assert!(message.contains(reported), "{message}");
    }
    disk.fail_from_now_on(None);
    journal.append(&remark("5")).unwrap();
    assert_eq!(journal.take_news(), [], "what was not synced may yet be refused");
    journal.sync().await.unwrap();
    journal.sync().await.unwrap();
    let news = journal.take_news();
    assert!(
        matches!(news.as_slice(), [StorageNews { recovered: true, message }] if message.contains("Nothing was lost"))
    );
    assert_eq!(read_back(&disk).0.len(), 6);
}

#[tokio::test]
async fn a_failed_sync_has_everything_since_the_last_one_written_again() {
    let folder = Path::new("/state");
    let memory = Memory::with_folder(folder);
    let disk = Faulty::new(Arc::new(memory.clone()), None);
    let journal = Journal::open_on(Arc::new(disk.clone()), &folder.join("journal.jsonl"), None).unwrap();
    journal.append(&remark("safe")).unwrap();
    journal.sync().await.unwrap();
    journal.append(&remark("dropped by the system")).unwrap();
    disk.fail_from_now_on(Some(Fault::Io));
    assert!(journal.sync().await.is_err());
    disk.fail_from_now_on(None);
    journal.append(&remark("later")).unwrap();
    journal.sync().await.unwrap();
    memory.cut_power(7);
    let all = ["safe", "dropped by the system", "later"].map(remark).to_vec();
    assert_eq!(read_back(&disk), (all, 0));
}

#[tokio::test]
async fn who_waits_at_the_same_time_shares_a_sync_and_nobody_waits_for_nothing() {
    let (disk, journal) = on_bad_disk();
    journal.sync().await.unwrap();
    assert_eq!(disk.syncs(), 0, "there was nothing to sync");
    let waits = (0..50).map(|number| {
        journal.append(&remark(&number.to_string())).unwrap();
        journal.sync()
    });
    // All have appended before the first of them waits.
    let waits: Vec<_> = waits.collect();
    assert!(futures::future::join_all(waits).await.into_iter().all(|synced| synced.is_ok()));
    assert!(disk.syncs() <= 2, "{}", disk.syncs());
    let before = disk.syncs();
    journal.sync().await.unwrap();
    assert_eq!(disk.syncs(), before);
    disk.fail_from_now_on(Some(Fault::Io));
    journal.append(&remark("last")).unwrap_err();
    let calls = disk.calls();
    // All wait before the first of them asks the disk.
    let turn = Arc::clone(&journal.shared.syncing).lock_owned().await;
    let mut waits: Vec<_> = (0..50).map(|_| Box::pin(journal.sync())).collect();
    for wait in &mut waits {
        assert!(futures::poll!(wait.as_mut()).is_pending());
    }
    drop(turn);
    let failed = futures::future::join_all(waits).await;
    assert!(failed.into_iter().all(|synced| synced.is_err()));
    assert!(disk.calls() - calls < 10, "a failure is shared as well: {}", disk.calls() - calls);
}

#[test]
fn a_journal_has_one_writer_and_the_next_may_begin_when_it_lets_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let first = Journal::open(&path).unwrap();
    assert_eq!(Journal::open(&path).unwrap_err().kind(), io::ErrorKind::ResourceBusy);
    first.release();
    Journal::open(&path).unwrap().append(&remark("second")).unwrap();
}

#[tokio::test]
async fn a_full_queue_of_unwritten_records_is_written_once_the_disk_has_room() {
    let (disk, journal) = on_bad_disk();
    disk.fail_from_now_on(Some(Fault::NoSpace));
    for number in 0..=UNWRITTEN_LIMIT {
        assert!(journal.append(&remark(&number.to_string())).is_err());
    }
    assert!(journal.sync().await.is_err());
    disk.fail_from_now_on(None);
    journal.sync().await.unwrap();
    assert_eq!(read_back(&disk).0.len(), UNWRITTEN_LIMIT);
    let news = journal.take_news();
    assert!(news.last().is_some_and(|news| news.recovered && news.message.contains("1 records were lost")));
    assert_eq!(journal.release(), None);
}

#[tokio::test]
async fn what_is_reported_again_leaves_room_for_what_is_not() {
    let grown = || Note::Transient { text: "more".to_owned() };
    let (disk, journal) = on_bad_disk();
    disk.fail_from_now_on(Some(Fault::NoSpace));
    for _ in 0..UNWRITTEN_LIMIT {
        journal.append(&grown()).unwrap_err();
    }
    journal.append(&remark("kept")).unwrap_err();
    disk.fail_from_now_on(None);
    journal.sync().await.unwrap();
    let (records, _) = read_back(&disk);
    assert_eq!(records.len(), UNWRITTEN_LIMIT / 2 + 1);
    assert_eq!(records.last(), Some(&remark("kept")));
    let news = journal.take_news();
    assert!(news.last().is_some_and(|news| news.recovered && news.message.contains("Nothing was lost")));
}

#[tokio::test]
async fn a_content_that_cannot_be_kept_holds_up_no_record_and_is_reported() {
    let folder = Path::new("/state");
    let disk: Arc<dyn Disk> = Arc::new(Memory::with_folder(folder));
    let bad = Faulty::new(Arc::new(Memory::with_folder(folder)), None);
    let blobs = Blobs::on(Arc::new(bad.clone()), folder.join("blobs"));
    let journal = Journal::open_on(Arc::clone(&disk), &folder.join("journal.jsonl"), Some(blobs.clone()));
    let journal = journal.unwrap();
    bad.fail_from_now_on(Some(Fault::NoSpace));
    blobs.put(b"before").unwrap_err();
    journal.append(&remark("one")).unwrap();
    assert!(journal.sync().await.is_err(), "what names the content is not safe");
    assert_eq!(journal.shared.writer.lock().end.synced(), 1, "and the record is on the disk all the same");
    let news = journal.release().unwrap();
    assert!(news.message.contains("1 contents of files were not kept"), "{news:?}");
}

#[test]
fn to_load_a_journal_that_is_gone_makes_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone/journal.jsonl");
    let opened = Journal::open_patiently(disk::real(), &path, OpenMode::Existing, None);
    assert_eq!(opened.unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(!folder.path().join("gone").exists());
}

#[test]
fn what_is_lost_at_the_end_is_said() {
    let (disk, journal) = on_bad_disk();
    disk.fail_from_now_on(Some(Fault::Io));
    journal.append(&remark("one")).unwrap_err();
    journal.append(&remark("two")).unwrap_err();
    let news = journal.release().unwrap();
    assert!(!news.recovered && news.message.contains("2 records were"), "{news:?}");
    assert_eq!(journal.release(), None);
    disk.fail_from_now_on(None);
    assert!(journal.append(&remark("three")).is_err());
    assert_eq!(read_back(&disk).0, [], "another process may be writing by now");
}

#[test]
fn no_two_lines_are_the_same() {
    let (disk, journal) = on_bad_disk();
    (0..200).for_each(|_| journal.append(&remark("again")).unwrap());
    assert_eq!(read_back(&disk), (vec![remark("again"); 200], 0));
    let bytes = disk::read_all(&disk, journal.path()).unwrap();
    let lines: HashSet<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 201);
}

proptest! {
    #[test]
    fn a_journal_cut_at_any_byte_keeps_every_whole_line(cut in 0_usize..400, texts in proptest::collection::vec(".{0,20}", 1..5)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        let journal = Journal::open(&path).unwrap();
        for text in &texts {
            journal.append(&remark(text)).unwrap();
        }
        drop(journal);
        let bytes = std::fs::read(&path).unwrap();
        let cut = cut.min(bytes.len());
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let whole = bytes[..cut].iter().filter(|byte| **byte == b'\n').count();

        Journal::open(&path).unwrap().append(&remark("after")).unwrap();

        let read = read::<Note>(&path).unwrap();
        let mut expected: Vec<_> = texts[..whole].iter().map(|text| remark(text)).collect();
        expected.push(remark("after"));
        prop_assert_eq!(read.records, expected);
        prop_assert_eq!(read.skipped, 0);
    }
}

#[tokio::test]
async fn a_journal_whose_folder_was_removed_is_written_again_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session/journal.jsonl");
    let journal = Journal::open(&path).unwrap();
    journal.append(&remark("before")).unwrap();
    journal.sync().await.unwrap();
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    journal.append(&remark("without a folder")).unwrap();
    journal.sync().await.unwrap();
    journal.append(&remark("after")).unwrap();
    journal.sync().await.unwrap();
    let read = read::<Note>(&path).unwrap();
    assert_eq!(
        (read.records, read.skipped),
        (vec![remark("before"), remark("without a folder"), remark("after")], 0)
    );
    let news = journal.take_news();
    assert_eq!(news.len(), 1, "{news:?}");
    assert!(news[0].recovered && news[0].message.contains("Another process removed"), "{news:?}");
    let other = Journal::open(&path).map_err(|error| error.kind());
    assert_eq!(other.unwrap_err(), io::ErrorKind::ResourceBusy, "the new file is locked as the old one was");
}

#[tokio::test]
async fn a_removed_journal_that_cannot_be_written_again_is_reported_and_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("session/journal.jsonl");
    let journal = Journal::open(&path).unwrap();
    journal.append(&remark("before")).unwrap();
    std::fs::remove_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path.parent().unwrap(), "a file in the place of the folder").unwrap();
    journal.append(&remark("meanwhile")).unwrap();
    journal.sync().await.unwrap_err();
    let news = journal.take_news();
    assert!(!news[0].recovered && journal.is_failing(), "{news:?}");
    std::fs::remove_file(path.parent().unwrap()).unwrap();
    journal.sync().await.unwrap();
    assert!(!journal.is_failing());
    assert_eq!(read::<Note>(&path).unwrap().records, [remark("before"), remark("meanwhile")]);
}

#[test]
fn zeros_at_the_end_of_a_journal_count_as_a_loss_and_half_a_line_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    for (stump, skipped) in [(&b"\0\0\0\0"[..], 1), (b"{\"v\":1,\"se\0\0", 1), (b"{\"v\":1,\"se", 0)] {
        drop(std::fs::remove_file(&path));
        Journal::open(&path).unwrap().append(&remark("one")).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(stump).unwrap();
        let read = read::<Note>(&path).unwrap();
        assert_eq!((read.records, read.skipped), (vec![remark("one")], skipped), "{stump:?}");
    }
}
