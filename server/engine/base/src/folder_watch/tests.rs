//! The one watch with the system's own, in temporary folders.

use std::fs;
use std::sync::mpsc::{Receiver, channel};

use super::*;
use crate::paths::real_path;

/// A watch, and the paths that it reports, those of one event together.
fn hearing() -> (FolderWatch, Receiver<(EventKind, Vec<PathBuf>)>) {
    let (sender, receiver) = channel();
    let watch = FolderWatch::new(move |event| {
        let event = event.unwrap();
        // The receiver may be gone before the last word.
        let _ = sender.send((event.kind, event.paths));
    });
    (watch.unwrap(), receiver)
}

/// Waits until the watch reports a path.
fn wait(reported: &Receiver<(EventKind, Vec<PathBuf>)>, path: &Path) {
    while !reported.recv().unwrap().1.iter().any(|reported| reported == path) {}
}

/// Waits until the folders of ended subscriptions are left.
fn wait_until_left(other: &FolderWatch) {
    while other.shared.ended.lock().is_leaving {
        std::thread::yield_now();
    }
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = real_path(folder.path()).unwrap();
    (folder, path)
}

#[test]
fn all_who_ask_share_one_watch_and_whoever_leaves_takes_nothing_from_the_others() {
    let (_kept, root) = folder();
    let ((one, reported_one), (other, reported_other)) = (hearing(), hearing());
    assert!(Arc::ptr_eq(&one.shared, &other.shared));
    one.watch(&root).unwrap();
    other.watch(&root).unwrap();
    fs::write(root.join("a"), "").unwrap();
    wait(&reported_one, &root.join("a"));
    wait(&reported_other, &root.join("a"));
    drop(one);
    fs::write(root.join("b"), "").unwrap();
    wait(&reported_other, &root.join("b"));
    assert!(reported_one.iter().all(|(_, paths)| paths != [root.join("b")]), "it has ended");
    other.unwatch(&root);
    fs::write(root.join("c"), "").unwrap();
    // A later subscription gets its events later.
    let (_kept, elsewhere) = folder();
    other.watch(&elsewhere).unwrap();
    fs::write(elsewhere.join("d"), "").unwrap();
    let reported: Vec<_> = std::iter::from_fn(|| {
        let (_, paths) = reported_other.recv().unwrap();
        (paths != [elsewhere.join("d")]).then_some(paths)
    })
    .flatten()
    .collect();
    assert!(!reported.contains(&root.join("c")), "{reported:?}");
}

#[test]
fn a_subscription_ends_while_the_system_answers_nothing() {
    let (_kept, root) = folder();
    let ((one, _), (other, reported_other)) = (hearing(), hearing());
    one.watch(&root).unwrap();
    other.watch(&root).unwrap();
    let busy = other.shared.watcher.lock();
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        drop(one);
        sender.send(()).unwrap();
    });
    ended.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
    drop(busy);
    wait_until_left(&other);
    let hearers = other.shared.known.lock().folders[&root].hearers.clone();
    assert_eq!(hearers, [other.id]);
    fs::write(root.join("a"), "").unwrap();
    wait(&reported_other, &root.join("a"));
}

#[test]
fn a_folder_with_two_names_is_heard_of_by_the_name_that_was_given() {
    let (_kept, root) = folder();
    let (real, link) = (root.join("real"), root.join("link"));
    fs::create_dir(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let ((by_name, reported_name), (by_link, reported_link)) = (hearing(), hearing());
    by_name.watch(&real).unwrap();
    by_link.watch(&link).unwrap();
    fs::write(real.join("a"), "").unwrap();
    wait(&reported_name, &real.join("a"));
    wait(&reported_link, &link.join("a"));
    by_link.unwatch(&link);
    fs::write(real.join("b"), "").unwrap();
    wait(&reported_name, &real.join("b"));
    by_link.watch(&link).unwrap();
    drop(by_name);
    wait_until_left(&by_link);
    fs::write(real.join("c"), "").unwrap();
    wait(&reported_link, &link.join("c"));
}

#[test]
fn a_folder_that_comes_again_is_heard_of_when_it_is_asked_for_again() {
    let (_kept, root) = folder();
    let place = root.join("place");
    let (watch, reported) = hearing();
    assert!(watch.watch(&place).is_err(), "it is not there");
    for number in 0..3 {
        fs::create_dir(&place).unwrap();
        watch.watch(&place).unwrap();
        let file = place.join(format!("{number}"));
        fs::write(&file, "").unwrap();
        wait(&reported, &file);
        // Moved away, it is another folder's place.
        fs::rename(&place, root.join(format!("old-{number}"))).unwrap();
    }
    fs::create_dir(&place).unwrap();
    watch.watch(&place).unwrap();
    fs::write(root.join("old-2/late"), "").unwrap();
    fs::write(place.join("new"), "").unwrap();
    let reported: Vec<_> = std::iter::from_fn(|| {
        let (_, paths) = reported.recv().unwrap();
        (paths != [place.join("new")]).then_some(paths)
    })
    .flatten()
    .collect();
    assert!(!reported.contains(&place.join("late")), "{reported:?}");
}

#[test]
fn nobody_is_notified_of_reading() {
    let (_kept, root) = folder();
    fs::write(root.join("a"), "text").unwrap();
    let (watch, reported) = hearing();
    watch.watch(&root).unwrap();
    for _ in 0..10 {
        fs::read(root.join("a")).unwrap();
    }
    fs::write(root.join("end"), "").unwrap();
    let (kind, paths) = reported.recv().unwrap();
    assert!(kind.is_create() && paths == [root.join("end")], "{kind:?} {paths:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_system_is_not_asked_for_files_that_are_opened() {
    const IN_OPEN: u32 = 0x20;
    let (_kept, root) = folder();
    let (watch, _reported) = hearing();
    watch.watch(&root).unwrap();
    let mut masks = Vec::new();
    for entry in fs::read_dir("/proc/self/fdinfo").unwrap() {
        // Another test may have closed it.
        let Ok(facts) = fs::read_to_string(entry.unwrap().path()) else { continue };
        let watches = facts.lines().filter(|line| line.starts_with("inotify "));
        masks.extend(
            watches.filter_map(|line| line.split(" mask:").nth(1)?.split(' ').next().map(str::to_owned)),
        );
    }
    assert!(!masks.is_empty(), "the folder is watched");
    let is_asked = |mask: &String| u32::from_str_radix(mask, 16).unwrap() & IN_OPEN != 0;
    assert!(!masks.iter().any(is_asked), "{masks:?}");
}
