//! Real files, the system's real events, and what sessions are notified of them.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use notify::EventKind;
use notify::event::RemoveKind;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::TargetWatchState;
use crate::testing::{Rig, read};
use crate::workspace::{ChangeAuthor, Freshness, WatchReport, Workspace};
use kode_base::paths::{AbsPath, Target, real_path};
use kode_base::reminder;

/// The reports to a session.
struct Reports(UnboundedReceiver<WatchReport>);

impl Reports {
    fn of(workspace: &Workspace) -> Self {
        let (sender, receiver) = unbounded_channel();
        workspace.report_changes(move |report| drop(sender.send(report)));
        Self(receiver)
    }

    async fn next(&mut self) -> WatchReport {
        // Only so that a fault ends the test.
        let report = tokio::time::timeout(Duration::from_secs(60), self.0.recv()).await;
        report.expect("nothing was told").unwrap()
    }

    /// Reports that were not read yet.
    fn rest(&mut self) -> Vec<WatchReport> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }
}

fn changed(target: Target) -> WatchReport {
    WatchReport::Changed { target, deleted: false }
}

fn deleted(target: Target) -> WatchReport {
    WatchReport::Changed { target, deleted: true }
}

/// The report for the model at the start of a turn.
fn reported(workspace: &Workspace) -> Option<String> {
    workspace.look_for_changes();
    workspace.reminder(&workspace.take_changes())
}

fn notified_of(lines: &str) -> Option<String> {
    let first = "Changed by others since you last read it. Read it again before you edit or rely on it:";
    Some(reminder(&format!("{first}\n{lines}")))
}

/// A rig with files of which the session has read the first, and the reports to that session. The last file is for
/// knowing that whatever happened before has been checked.
async fn rig(files: &[&str]) -> (Rig, Reports) {
    let rig = Rig::new();
    for file in files {
        rig.write(file, "one\n");
    }
    rig.write("sentinel.txt", "0");
    let reports = Reports::of(rig.workspace());
    rig.read(files[0]).await;
    rig.read("sentinel.txt").await;
    (rig, reports)
}

/// Waits until everything that has happened so far has been checked, and answers the reports.
async fn settled(rig: &Rig, reports: &mut Reports) -> Vec<WatchReport> {
    let sentinel = changed(rig.target("sentinel.txt"));
    let text = rig.text("sentinel.txt");
    // In one step, so that it is reported once.
    rig.write("sentinel.next", text + "0");
    std::fs::rename(rig.path("sentinel.next"), rig.path("sentinel.txt")).unwrap();
    let mut reported = Vec::new();
    loop {
        match reports.next().await {
            report if report == sentinel => return reported,
            report => reported.push(report),
        }
    }
}

#[tokio::test]
async fn a_write_by_another_program_is_reported_to_the_user_and_once_to_the_model() {
    let (rig, mut reports) = rig(&["a.txt"]).await;
    rig.write("a.txt", "two\n");
    assert_eq!(reports.next().await, changed(rig.target("a.txt")));
    let file = rig.workspace().text(&rig.target("a.txt")).await.unwrap();
    assert_eq!(rig.workspace().freshness(&file), Freshness::Changed);
    assert_eq!(reported(rig.workspace()), notified_of("- `a.txt`: on disk"));
    assert_eq!(reported(rig.workspace()), None);
    rig.write("a.txt", "three\n");
    assert_eq!(reports.next().await, changed(rig.target("a.txt")));
    assert_eq!(reported(rig.workspace()), notified_of("- `a.txt`: on disk"), "another change");
    rig.write("a.txt", "four\n");
    assert_eq!(reports.next().await, changed(rig.target("a.txt")));
    rig.read("a.txt").await;
    assert_eq!(reported(rig.workspace()), None, "what was read meanwhile need not be told");
}

#[tokio::test]
async fn an_atomic_replacement_is_a_change() {
    let (rig, mut reports) = rig(&["a.txt"]).await;
    rig.write("new", "two\n");
    std::fs::rename(rig.path("new"), rig.path("a.txt")).unwrap();
    assert_eq!(reports.next().await, changed(rig.target("a.txt")));
}

#[tokio::test]
async fn deletion_and_re_creation_are_reported_each() {
    let (rig, mut reports) = rig(&["a.txt"]).await;
    std::fs::remove_file(rig.path("a.txt")).unwrap();
    assert_eq!(reports.next().await, deleted(rig.target("a.txt")));
    assert_eq!(reported(rig.workspace()), notified_of("- `a.txt`: deleted"));
    rig.write("a.txt", "two\n");
    assert_eq!(reports.next().await, changed(rig.target("a.txt")));
    assert_eq!(reported(rig.workspace()), notified_of("- `a.txt`: on disk"));
    rig.write("a.txt", "one\n");
    assert_eq!(settled(&rig, &mut reports).await, [], "it is again what the session has read");
}

#[tokio::test]
async fn a_new_date_and_files_that_were_not_read_are_nothing() {
    let (rig, mut reports) = rig(&["a.txt", "b.txt", "c.txt"]).await;
    rig.write("a.txt", "one\n");
    rig.write("b.txt", "two\n");
    std::fs::remove_file(rig.path("c.txt")).unwrap();
    assert_eq!(settled(&rig, &mut reports).await, []);
    assert_eq!(reported(rig.workspace()), notified_of("- `sentinel.txt`: on disk"));
}

#[tokio::test]
async fn what_the_session_writes_itself_is_reported_to_other_sessions_only() {
    let (rig, mut reports) = rig(&["a.txt"]).await;
    let other = rig.other_session();
    let mut other_reports = Reports::of(&other);
    read(&other, "a.txt").await;
    for (old, new) in [("one", "two"), ("two", "three")] {
        rig.edit("a.txt", old, new).await.unwrap();
    }
    rig.create("sub/new.txt", "x").await;
    assert_eq!(other_reports.next().await, changed(rig.target("a.txt")));
    assert_eq!(reported(&other), notified_of("- `a.txt`: on disk"));
    assert_eq!(settled(&rig, &mut reports).await, []);
    rig.write("sub/new.txt", "y");
    assert_eq!(reports.next().await, changed(rig.target("sub/new.txt")), "a file it made is watched");
}

#[tokio::test]
async fn a_write_is_inspected_when_the_session_knows_what_it_has_written() {
    let (rig, mut reports) = rig(&["a.txt"]).await;
    for (text, is_own) in [("two\n", true), ("theirs\n", false)] {
        let own_write = rig.workspace().own_write(&rig.target("a.txt"));
        rig.write("a.txt", text);
        assert_eq!(settled(&rig, &mut reports).await, [], "it is not known yet whose text this is");
        if is_own {
            rig.workspace().note_text(&rig.target("a.txt"), text);
        }
        drop(own_write);
        let reported = settled(&rig, &mut reports).await;
        assert_eq!(reported.len(), usize::from(!is_own), "{reported:?}");
    }
}

#[tokio::test]
async fn a_change_merged_with_an_edit_is_reported_as_one() {
    let (rig, mut reports) = rig(&["a.txt"]).await;
    let change = rig.plan_edit("a.txt", "one", "ONE").await;
    rig.write("a.txt", "one\nmore\n");
    assert_eq!(reports.next().await, changed(rig.target("a.txt")));
    rig.workspace().apply(change, &rig.cancel).await.unwrap();
    assert_eq!(rig.text("a.txt"), "ONE\nmore\n");
    assert_eq!(settled(&rig, &mut reports).await, []);
    rig.workspace().look_for_changes();
    let reported: Vec<_> = rig.workspace().take_changes().into_iter().map(|change| change.target).collect();
    assert_eq!(reported, [rig.target("a.txt"), rig.target("sentinel.txt")]);
}

#[tokio::test]
async fn a_folder_that_goes_and_comes_back_is_watched_again() {
    let (rig, mut reports) = rig(&["sub/a.txt"]).await;
    for folder_is_moved in [false, true] {
        match folder_is_moved {
            true => std::fs::rename(rig.path("sub"), rig.path("moved")).unwrap(),
            false => std::fs::remove_dir_all(rig.path("sub")).unwrap(),
        }
        assert_eq!(reports.next().await, deleted(rig.target("sub/a.txt")));
        assert_eq!(reported(rig.workspace()), notified_of("- `sub/a.txt`: deleted"));
        rig.write("sub/a.txt", "new\n");
        assert_eq!(
            reported(rig.workspace()),
            notified_of("- `sub/a.txt`: on disk"),
            "the turn looks by itself"
        );
        assert_eq!(reports.next().await, changed(rig.target("sub/a.txt")));
        // The turn has asked for the folder to be watched, which is done before the sentinel is checked.
        assert_eq!(settled(&rig, &mut reports).await, []);
        reported(rig.workspace());
        rig.write("sub/a.txt", format!("newer, moved: {folder_is_moved}\n"));
        assert_eq!(reports.next().await, changed(rig.target("sub/a.txt")));
        rig.read("sub/a.txt").await;
    }
}

#[tokio::test]
async fn the_end_of_an_older_folder_that_is_reported_late_costs_the_watch_of_the_new_one_nothing() {
    let (rig, mut reports) = rig(&["sub/a.txt"]).await;
    assert_eq!(settled(&rig, &mut reports).await, []);
    let folder = real_path(rig.path("sub")).unwrap();
    let late = notify::Event::new(EventKind::Remove(RemoveKind::Folder)).add_path(folder);
    rig.workspace().tracker.watch.hear(&late);
    assert_eq!(settled(&rig, &mut reports).await, [], "nothing has happened");
    rig.write("sub/a.txt", "two\n");
    assert_eq!(reports.next().await, changed(rig.target("sub/a.txt")));
}

#[cfg(unix)]
#[tokio::test]
async fn a_change_behind_a_link_is_a_change() {
    let rig = Rig::new();
    rig.write("real/a.txt", "one\n");
    std::fs::create_dir(rig.path("links")).unwrap();
    std::os::unix::fs::symlink("../real/a.txt", rig.path("links/a.txt")).unwrap();
    let mut reports = Reports::of(rig.workspace());
    rig.read("links/a.txt").await;
    rig.write("real/a.txt", "two\n");
    assert_eq!(reports.next().await, changed(rig.target("links/a.txt")));
}

#[tokio::test]
async fn past_the_limit_it_is_reported_once_and_turns_look_by_themselves() {
    let rig = Rig::new();
    let files = ["a/1", "b/2", "c/3"];
    files.iter().for_each(|file| rig.write(file, "one\n"));
    let session = rig.session_with(|workspace| workspace.watching_at_most(1));
    let mut reports = Reports::of(&session);
    for file in files {
        read(&session, file).await;
    }
    let expected = "1 folders are watched, and not more".to_owned();
    assert_eq!(reports.next().await, WatchReport::NotWatching { reason: expected });
    rig.write("b/2", "two\n");
    rig.write("c/3", "one\n");
    rig.write("a/1", "two\n");
    assert_eq!(reports.next().await, changed(rig.target("a/1")), "what is watched is told at once");
    assert_eq!(reported(&session), notified_of("- `a/1`: on disk\n- `b/2`: on disk"));
    assert_eq!(reports.rest(), [changed(rig.target("b/2"))]);
}

#[tokio::test]
async fn a_change_that_keeps_size_and_date_is_found() {
    let rig = Rig::new();
    let session = rig.session_with(|workspace| workspace.watching_at_most(0));
    rig.write("a.txt", "one\n");
    let set_date = |date| {
        let file = std::fs::File::options().write(true).open(rig.path("a.txt")).unwrap();
        file.set_modified(date).unwrap();
    };
    let date = SystemTime::now() - Duration::from_secs(3_600);
    set_date(date);
    read(&session, "a.txt").await;
    rig.write("a.txt", "two\n");
    set_date(date);
    assert_eq!(reported(&session), notified_of("- `a.txt`: on disk"), "size and date are as before");
}

#[tokio::test]
async fn what_is_typed_is_reported_to_the_model_when_a_turn_begins() {
    let (rig, mut reports) = rig(&["a.txt"]).await;
    rig.open("untitled:U1", "note");
    rig.open("a.txt", "one\n");
    rig.read("untitled:U1").await;
    assert_eq!(reported(rig.workspace()), None, "opening changes nothing");
    rig.type_text("a.txt", "one!\n");
    rig.type_text("a.txt", "one!!\n");
    rig.write("a.txt", "on disk, which the open document hides\n");
    assert_eq!(settled(&rig, &mut reports).await, []);
    rig.workspace().look_for_changes();
    assert_eq!(reports.rest(), [changed(rig.target("a.txt"))], "one event for all the typing");
    let changes = rig.workspace().take_changes();
    assert_eq!((&changes[0].target, changes[0].origin), (&rig.target("a.txt"), ChangeAuthor::Editor));
    rig.type_text("a.txt", "one\n");
    rig.close("untitled:U1");
    assert_eq!(reported(rig.workspace()), notified_of("- `untitled:U1`: closed in the editor"));
    rig.close("a.txt");
    assert_eq!(
        reported(rig.workspace()),
        notified_of("- `a.txt`: on disk"),
        "closed unsaved, the file counts again"
    );
    rig.open("a.txt", "other\n");
    rig.workspace().look_for_changes();
    rig.workspace().take_changes();
    rig.close("a.txt");
    rig.open("a.txt", "another, of the same version\n");
    assert_eq!(reported(rig.workspace()), notified_of("- `a.txt`: in the editor"));
}

#[tokio::test]
async fn saving_what_the_agent_edited_is_no_change() {
    let (rig, mut reports) = rig(&["a.txt"]).await;
    rig.open("a.txt", "one\n");
    rig.edit("a.txt", "one", "two").await.unwrap();
    rig.save("a.txt");
    rig.close("a.txt");
    assert_eq!(settled(&rig, &mut reports).await, []);
}

#[tokio::test]
async fn many_changes_are_counted_and_names_stay_on_their_lines() {
    let rig = Rig::new();
    for number in 0..25 {
        let name = format!("{number:02}\nx");
        rig.write(&name, "one\n");
        rig.read(&name).await;
        rig.write(&name, "two\n");
    }
    let text = reported(rig.workspace()).unwrap();
    assert_eq!(text.lines().count(), 24, "{text}");
    assert!(text.contains("\n- `00\u{fffd}x`: on disk\n") && text.contains("\n- and 5 more\n"), "{text}");
}

#[tokio::test]
async fn the_watching_ends_with_the_session() {
    let (rig, mut reports) = rig(&["a.txt"]).await;
    let tracker = Arc::downgrade(&rig.workspace().tracker);
    rig.workspace().stop_watching();
    rig.write("a.txt", "two\n");
    assert_eq!(reported(rig.workspace()), notified_of("- `a.txt`: on disk"), "turns look even so");
    drop(rig);
    while reports.0.recv().await.is_some() {}
    assert_eq!(tracker.strong_count(), 0);
}

#[test]
fn an_event_names_a_target_by_another_spelling_where_its_folder_folds() {
    let target = |path: &str| Target::File(AbsPath::new(path).unwrap());
    let mut state = TargetWatchState::default();
    for folder in ["/folds", "/plain"] {
        let paths = ["README.md", "readme.md"].map(|name| Path::new(folder).join(name));
        state.targets.extend(paths.map(|path| (path, vec![target(&format!("{folder}/README.md"))])));
    }
    state.folding.insert("/folds".into());
    let named = |path: &str| state.named_by(Path::new(path));
    assert!(named("/folds/ReadMe.MD").contains(&target("/folds/README.md")));
    assert!(named("/folds/README.md").contains(&target("/folds/README.md")));
    assert_eq!(named("/folds/other"), []);
    assert_eq!(named("/plain/ReadMe.MD"), []);
}
