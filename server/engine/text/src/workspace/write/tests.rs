//! Writing files of a temporary folder, with what may happen to them meanwhile.

use std::time::Duration;

use super::*;
use crate::testing::{Meanwhile, Rig};
use kode_base::paths::real_path;

const BASE: &str = "one\ntwo\nthree\nfour\n";

/// A rig with `a.txt` on disk, read by the session.
async fn closed() -> Rig {
    let rig = Rig::new();
    rig.write("a.txt", BASE);
    rig.read("a.txt").await;
    rig
}

/// The same file open in the editor.
async fn open() -> Rig {
    let rig = closed().await;
    rig.open("a.txt", BASE);
    rig
}

/// Plans an edit of `two`, lets something happen, and applies it.
async fn apply_after(rig: &Rig, happen: impl FnOnce(&Rig)) -> Result<Vec<AppliedFile>, ApplyError> {
    let change = rig.plan_edit("a.txt", "two", "TWO").await;
    happen(rig);
    rig.workspace().apply(change, &rig.cancel).await
}

#[tokio::test]
async fn an_open_document_changes_through_the_editor_and_not_on_disk() {
    let rig = open().await;
    let applied = apply_after(&rig, |_| {}).await.unwrap();
    assert_eq!(rig.shown("a.txt"), "one\nTWO\nthree\nfour\n");
    assert_eq!(rig.text("a.txt"), BASE);
    assert_eq!((applied[0].rebased, applied[0].format), (0, None));
}

#[tokio::test(start_paused = true)]
async fn typing_elsewhere_is_kept_whenever_it_happens() {
    let rig = open().await;
    rig.meanwhile(Meanwhile::Typed("zero\none\ntwo\nthree\nfour\n".to_owned()));
    rig.meanwhile(Meanwhile::Typed("zero\none\ntwo\nthree\nfour!\n".to_owned()));
    let applied = apply_after(&rig, |rig| rig.type_text("a.txt", "one\ntwo\nthree\nfour.\n")).await.unwrap();
    assert_eq!(rig.shown("a.txt"), "zero\none\nTWO\nthree\nfour!\n");
    assert_eq!(applied[0].rebased, 3);
    assert_eq!(applied[0].old_text, "zero\none\ntwo\nthree\nfour!\n");
}

#[tokio::test]
async fn typing_into_the_replaced_text_is_a_conflict_that_keeps_it() {
    let rig = open().await;
    let typed = "one\ntw+o\nthree\nfour\n";
    rig.meanwhile(Meanwhile::Typed(typed.to_owned()));
    let error = apply_after(&rig, |_| {}).await.unwrap_err();
    assert!(
        matches!(&error, ApplyError::Conflict { path, line: 2, theirs } if path == "a.txt" && theirs == "tw+o"),
        "{error:?}"
    );
    assert_eq!(rig.shown("a.txt"), typed);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_came_too_late_waits_for_a_pause_in_the_typing() {
    let rig = open().await;
    let typed = |keys: usize| format!("{BASE}{}\n", "k".repeat(keys));
    rig.meanwhile(Meanwhile::Typed(typed(1)));
    let typing = async {
        for keys in 2..=25 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            rig.type_text("a.txt", &typed(keys));
        }
    };
    let (applied, ()) = tokio::join!(apply_after(&rig, |_| {}), typing);
    assert_eq!(applied.unwrap()[0].old_text, typed(25));
    assert_eq!(rig.shown("a.txt"), typed(25).replace("two", "TWO"));
}

#[tokio::test(start_paused = true)]
async fn typing_without_a_pause_is_not_waited_for_for_ever() {
    let rig = open().await;
    rig.meanwhile(Meanwhile::Typed(format!("{BASE}k\n")));
    let typing = async {
        for keys in 2.. {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if rig.shown("a.txt").contains("TWO") {
                break;
            }
            rig.type_text("a.txt", &format!("{BASE}{}\n", "k".repeat(keys)));
        }
    };
    let (applied, ()) = tokio::join!(apply_after(&rig, |_| {}), typing);
    // A key may fall between the reading and the edit of the attempt that no pause came before.
    assert!((1..=2).contains(&applied.unwrap()[0].rebased));
}

#[tokio::test(start_paused = true)]
async fn a_text_that_never_rests_is_given_up() {
    let rig = open().await;
    for number in 0..MAX_ATTEMPTS {
        rig.meanwhile(Meanwhile::Typed(format!("{BASE}{number}\n")));
    }
    let error = apply_after(&rig, |_| {}).await.unwrap_err();
    assert!(matches!(error, ApplyError::Moving { .. }), "{error:?}");
    assert_eq!(rig.shown("a.txt"), format!("{BASE}4\n"));
}

#[tokio::test]
async fn a_document_closed_meanwhile_is_written_on_disk() {
    let rig = open().await;
    rig.meanwhile(Meanwhile::Closed);
    apply_after(&rig, |_| {}).await.unwrap();
    assert_eq!(rig.text("a.txt"), "one\nTWO\nthree\nfour\n");
}

#[tokio::test]
async fn a_file_opened_meanwhile_is_changed_in_the_editor() {
    let rig = closed().await;
    apply_after(&rig, |rig| rig.open("a.txt", "unsaved\none\ntwo\nthree\nfour\n")).await.unwrap();
    assert_eq!(rig.shown("a.txt"), "unsaved\none\nTWO\nthree\nfour\n");
    assert_eq!(rig.text("a.txt"), BASE);
}

#[tokio::test]
async fn an_untitled_document_closed_meanwhile_is_gone() {
    let rig = Rig::new();
    rig.open("untitled:U1", BASE);
    rig.read("untitled:U1").await;
    rig.meanwhile(Meanwhile::Closed);
    let error = ToolError::from(rig.edit("untitled:U1", "two", "TWO").await.unwrap_err());
    assert_eq!(error.kind, ToolErrorKind::Mismatch);
    assert!(error.message.contains("closed meanwhile"), "{error}");
}

#[tokio::test]
async fn an_editor_that_refuses_or_stays_silent_is_an_error() {
    let rig = open().await;
    rig.meanwhile(Meanwhile::Refused);
    let error = apply_after(&rig, |_| {}).await.unwrap_err();
    assert!(matches!(error, ApplyError::Rejected { .. }), "{error:?}");
    rig.meanwhile(Meanwhile::Silent);
    let error = apply_after(&rig, |_| {}).await.unwrap_err();
    assert!(matches!(error, ApplyError::Unconfirmed { .. }), "{error:?}");
}

#[tokio::test]
async fn cancelling_ends_the_wait_for_the_editor() {
    let rig = open().await;
    rig.meanwhile(Meanwhile::Hung);
    let change = rig.plan_edit("a.txt", "two", "TWO").await;
    let apply = rig.workspace().apply(change.clone(), &rig.cancel);
    let (result, ()) = tokio::join!(apply, async { rig.cancel.cancel() });
    assert!(matches!(result.unwrap_err(), ApplyError::Abandoned { .. } | ApplyError::Cancelled { .. }));
    let error = rig.workspace().apply(change, &rig.cancel).await.unwrap_err();
    assert!(matches!(error, ApplyError::Cancelled { .. }), "{error:?}");
    assert_eq!(rig.shown("a.txt"), BASE);
}

#[tokio::test]
async fn a_file_changed_elsewhere_on_disk_is_merged_and_then_counts_as_unseen() {
    let rig = closed().await;
    let applied = apply_after(&rig, |rig| rig.write("a.txt", "one\ntwo\nthree\n4\n")).await.unwrap();
    assert_eq!((rig.text("a.txt").as_str(), applied[0].rebased), ("one\nTWO\nthree\n4\n", 1));
    let file = rig.workspace().text(&rig.target("a.txt")).await.unwrap();
    assert_eq!(rig.workspace().freshness(&file), Freshness::Changed);
}

#[tokio::test]
async fn what_became_of_a_file_outside_decides() {
    type Event = fn(&Rig);
    type Check = fn(&ApplyError) -> bool;
    let cases: [(Event, Check); 6] = [
        (|rig| rig.write("a.txt", "one\n2\nthree\nfour\n"), |e| matches!(e, ApplyError::Conflict { .. })),
        (|rig| std::fs::remove_file(rig.path("a.txt")).unwrap(), |e| matches!(e, ApplyError::Gone { .. })),
        (|rig| rig.write("a.txt", b"\x89PNG\r\n\x1a\n"), |e| matches!(e, ApplyError::Unreadable(_))),
        (
            |rig| {
                std::fs::remove_file(rig.path("a.txt")).unwrap();
                std::fs::create_dir(rig.path("a.txt")).unwrap();
            },
            |e| matches!(e, ApplyError::Unreadable(ReadError::Directory { .. })),
        ),
        (
            |rig| {
                let mut permissions = std::fs::metadata(rig.path("a.txt")).unwrap().permissions();
                permissions.set_readonly(true);
                std::fs::set_permissions(rig.path("a.txt"), permissions).unwrap();
            },
            |e| matches!(e, ApplyError::Forbidden { .. }),
        ),
        (
            |rig| {
                rig.write("a.txt", [BASE.as_bytes(), "\u{e9}\u{e9}\u{e9}\u{e9}".as_bytes(), b"\xff"].concat())
            },
            |e| matches!(e, ApplyError::Encode { .. }),
        ),
    ];
    for (number, (happen, is_expected)) in cases.into_iter().enumerate() {
        let error = apply_after(&closed().await, happen).await.unwrap_err();
        assert!(is_expected(&error), "case {number}: {error:?}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_leaves_the_workspace_since_the_plan_is_refused() {
    let rig = closed().await;
    rig.write("../outside.txt", BASE);
    let error = apply_after(&rig, |rig| {
        std::fs::remove_file(rig.path("a.txt")).unwrap();
        std::os::unix::fs::symlink(rig.path("../outside.txt"), rig.path("a.txt")).unwrap();
    });
    let error = error.await.unwrap_err();
    assert!(matches!(error, ApplyError::Forbidden { .. }), "{error:?}");
    assert_eq!(rig.text("../outside.txt"), BASE);
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_file_is_not_made_through_a_link_that_leaves_the_workspace() {
    let rig = Rig::new();
    let change = rig.plan_new("sub/new.txt", "x");
    std::fs::create_dir(rig.path("../out")).unwrap();
    std::os::unix::fs::symlink(rig.path("../out"), rig.path("sub")).unwrap();
    let error = rig.workspace().apply(change, &rig.cancel).await.unwrap_err();
    assert!(matches!(error, ApplyError::Forbidden { .. }), "{error:?}");
    assert!(!rig.path("../out/new.txt").exists());
}

/// A file `ws/folder/a.txt` that was read, and another folder of the workspace with a file of the same name.
#[cfg(unix)]
async fn two_folders() -> Rig {
    let rig = Rig::new();
    for name in ["folder/a.txt", "other/a.txt"] {
        rig.write(name, BASE);
    }
    rig.read("folder/a.txt").await;
    rig
}

/// Puts a link to `other` in the place of `folder`.
#[cfg(unix)]
fn turn_round(rig: &Rig) {
    std::fs::rename(rig.path("folder"), rig.path("moved")).unwrap();
    std::os::unix::fs::symlink("other", rig.path("folder")).unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn a_call_changes_nothing_where_a_link_leads_that_came_after_the_verdict() {
    let rig = two_folders().await;
    let mut change = rig.plan_edit("folder/a.txt", "two", "TWO").await;
    change.files.append(&mut rig.plan_new("folder/new.txt", "new").files);
    let judged: ResolvedPaths = ["folder/a.txt", "folder/new.txt"]
        .map(|name| AbsPath::new(real_path(rig.path(name)).unwrap_or(rig.path(name))).unwrap())
        .map(|path| (path.clone(), path))
        .into_iter()
        .collect();
    turn_round(&rig);
    for file in change.files.clone() {
        let change = ChangeSet { files: vec![file], ..change.clone() };
        let error = rig.workspace().apply_judged(change, &judged, &rig.cancel).await.unwrap_err();
        assert!(matches!(error, ApplyError::Replaced { .. }), "{error:?}");
    }
    assert_eq!(rig.text("other/a.txt"), BASE);
    assert_eq!(std::fs::read_dir(rig.path("other")).unwrap().count(), 1);
}

#[cfg(unix)]
#[tokio::test]
async fn links_and_permissions_stay_as_they_are() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let rig = Rig::new();
    rig.write("real.sh", BASE);
    std::fs::set_permissions(rig.path("real.sh"), std::fs::Permissions::from_mode(0o750)).unwrap();
    symlink("real.sh", rig.path("a.txt")).unwrap();
    rig.read("a.txt").await;
    apply_after(&rig, |_| {}).await.unwrap();
    assert!(rig.path("a.txt").symlink_metadata().unwrap().is_symlink());
    assert_eq!(rig.text("real.sh"), "one\nTWO\nthree\nfour\n");
    assert_eq!(rig.path("real.sh").metadata().unwrap().permissions().mode() & 0o7777, 0o750);
    assert_eq!(std::fs::read_dir(rig.path("")).unwrap().count(), 2, "no temporary file is left");
}

#[tokio::test]
async fn a_new_file_never_replaces_one_that_has_appeared() {
    let rig = Rig::new();
    let change = rig.plan_new("deep/er/new.txt", "mine");
    rig.write("deep/er/new.txt", "theirs");
    let error = rig.workspace().apply(change, &rig.cancel).await.unwrap_err();
    assert!(matches!(error, ApplyError::Exists { .. }), "{error:?}");
    assert_eq!(rig.text("deep/er/new.txt"), "theirs");
}

#[tokio::test]
async fn of_the_agents_changes_all_are_made_or_none_and_of_the_users_those_that_can_be() {
    let rig = closed().await;
    rig.write("c.txt", BASE);
    rig.read("c.txt").await;
    rig.open("c.txt", BASE);
    let planned = async || {
        let mut change = rig.plan_new("new/d.txt", "d");
        change.files.append(&mut rig.plan_edit("c.txt", "two", "TWO").await.files);
        change.files.append(&mut rig.plan_edit("a.txt", "two", "TWO").await.files);
        change.files.append(&mut rig.plan_new("b.txt", "b").files);
        change
    };
    let change = planned().await;
    rig.write("b.txt", "theirs");
    rig.type_text("c.txt", "one\ntwo\nthree\nfour typed\n");
    let error = rig.workspace().apply(change, &rig.cancel).await.unwrap_err();
    assert!(error.to_string().contains("None of the files was changed"), "{error}");
    assert_eq!(ToolError::from(error).kind, ToolErrorKind::Conflict);
    assert_eq!((rig.text("a.txt").as_str(), rig.text("b.txt").as_str()), (BASE, "theirs"));
    assert_eq!(rig.shown("c.txt"), "one\ntwo\nthree\nfour typed\n");
    assert!(!rig.path("new/d.txt").exists());
    // Undone text counts as read: the next edit needs no reading.
    assert!(
        rig.workspace().freshness(&rig.workspace().text(&rig.target("a.txt")).await.unwrap())
            == Freshness::Current
    );
    std::fs::remove_file(rig.path("b.txt")).unwrap();
    let change = ChangeSet { author: Author::User, ..planned().await };
    rig.write("b.txt", "theirs");
    let error = rig.workspace().apply(change, &rig.cancel).await.unwrap_err();
    assert!(error.to_string().ends_with("Already changed before that: new/d.txt, c.txt, a.txt"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn only_an_undone_file_of_the_workspace_is_removed_and_no_link() {
    use std::os::unix::fs::symlink;
    let rig = Rig::new();
    for name in ["empty.txt", "open.txt", "linked.txt", "../outside/empty.txt"] {
        rig.write(name, "");
    }
    rig.write("full.txt", BASE);
    rig.open("open.txt", "");
    rig.write("unsaved.txt", "made\n");
    rig.open("unsaved.txt", "");
    rig.open("shown.txt", BASE);
    rig.write("shown.txt", "");
    symlink("linked.txt", rig.path("link.txt")).unwrap();
    symlink("../outside", rig.path("folder")).unwrap();
    let remove = async |name| {
        rig.workspace().remove_undone(&rig.target(name), "made\n").await.map_err(|error| error.kind())
    };
    for name in ["empty.txt", "open.txt", "unsaved.txt"] {
        assert_eq!(remove(name).await, Ok(()), "{name}");
        assert!(!rig.path(name).exists(), "{name}");
    }
    let kept = [
        ("full.txt", io::ErrorKind::ResourceBusy),
        ("shown.txt", io::ErrorKind::ResourceBusy),
        ("link.txt", io::ErrorKind::InvalidInput),
        ("folder", io::ErrorKind::InvalidInput),
        ("folder/empty.txt", io::ErrorKind::InvalidInput),
    ];
    for (name, expected) in kept {
        assert_eq!(remove(name).await, Err(expected), "{name}");
        assert!(rig.path(name).symlink_metadata().is_ok(), "{name}");
    }
}
