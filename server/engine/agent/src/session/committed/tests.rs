//! Commits noticed in real repositories.

use std::path::Path;
use std::process::Command;

use crate::session::changes::tests::Desk;
use kode_text::edit::ledger::review::HunkState;

/// Runs git as a person would, but for their own configuration. Folders are relative to the workspace.
fn git(desk: &Desk, folder: &str, arguments: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(desk.rig.path(folder))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(status.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&status.stderr));
}

/// A repository in a folder of the workspace with these files, each `one`, committed.
fn repository(desk: &Desk, folder: &str, files: &[&str]) {
    for file in files {
        desk.rig.write(&Path::new(folder).join(file).display().to_string(), "one\n");
    }
    std::fs::create_dir_all(desk.rig.path(folder)).unwrap();
    git(desk, folder, &["init", "-q"]);
    commit(desk, folder);
}

fn commit(desk: &Desk, folder: &str) {
    git(desk, folder, &["add", "-A"]);
    git(desk, folder, &["commit", "-q", "--allow-empty", "-m", "m"]);
}

/// The agent changes the files, `happen` happens, and these are the files that still wait.
async fn waiting<'a>(desk: &Desk, files: &[&'a str], happen: impl FnOnce()) -> Vec<&'a str> {
    for file in files {
        desk.replaces(file, "one", "1").await;
    }
    happen();
    desk.session.keep_committed().await;
    files.iter().copied().filter(|file| !desk.review(file).is_empty()).collect()
}

#[tokio::test]
async fn what_is_committed_is_kept_whatever_its_name() {
    let desk = Desk::new();
    let files = ["a.txt", "sub dir/it's \"b\".txt", "ü/ö$x*.txt", "-c"];
    repository(&desk, ".", &files);
    assert_eq!(waiting(&desk, &files, || commit(&desk, ".")).await, [""; 0]);
}

#[tokio::test]
async fn only_what_git_has_as_it_is_counts_as_committed() {
    let desk = Desk::new();
    desk.rig.write(".gitignore", "ignored/\n");
    repository(&desk, ".", &["in.txt", "staged.txt", "later.txt"]);
    repository(&desk, "embedded", &["e.txt"]);
    for file in ["ignored/i.txt", "untracked.txt"] {
        desk.rig.write(file, "one\n");
    }
    let files = ["in.txt", "staged.txt", "later.txt", "ignored/i.txt", "untracked.txt", "embedded/e.txt"];
    let left = waiting(&desk, &files, || {
        git(&desk, ".", &["add", "staged.txt"]);
        git(&desk, ".", &["commit", "-q", "-m", "m", "--", "in.txt"]);
    });
    assert_eq!(left.await, files[1..]);
    commit(&desk, "embedded");
    desk.session.keep_committed().await;
    assert!(desk.review("embedded/e.txt").is_empty(), "its own repository has it");
}

#[tokio::test]
async fn submodules_and_linked_work_trees_are_repositories_of_their_own() {
    let desk = Desk::new();
    repository(&desk, "../module", &["m.txt"]);
    repository(&desk, "main", &["a.txt"]);
    git(&desk, "main", &["submodule", "--quiet", "add", "../../module", "sub"]);
    commit(&desk, "main");
    git(&desk, "main", &["worktree", "add", "-q", "../linked"]);
    let files = ["main/sub/m.txt", "linked/a.txt"];
    assert_eq!(waiting(&desk, &files, || commit(&desk, "linked")).await, ["main/sub/m.txt"]);
}

#[tokio::test]
async fn a_commit_keeps_what_is_there_and_nothing_that_is_not() {
    let desk = Desk::new();
    let files = ["closed.txt", "open.txt", "gone.txt"];
    repository(&desk, ".", &files);
    desk.rig.open("open.txt", "one\n");
    // The command that is said to run keeps others from looking first.
    let runs = desk.session.command_runs();
    let left = waiting(&desk, &files, || {
        desk.rig.write("closed.txt", "one\n");
        std::fs::remove_file(desk.rig.path("gone.txt")).unwrap();
        commit(&desk, ".");
    });
    assert_eq!(left.await, files, "the texts are not those that the ledger knows");
    drop(runs);
    desk.session.keep_committed().await;
    let kept = desk.states().into_iter().filter(|state| *state == Some(HunkState::Kept)).count();
    assert_eq!((kept, desk.review("closed.txt").len()), (1, 0), "it is undone, and only the removal is kept");
    assert_eq!(desk.review("open.txt").len(), 1, "it is not saved");
    assert!(desk.review("gone.txt").is_empty(), "its removal is committed");
}

#[tokio::test]
async fn every_document_that_is_not_saved_waits_however_many_are_open() {
    let desk = Desk::new();
    let names: Vec<String> = (0..70).map(|number| format!("{number:02}.txt")).collect();
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    repository(&desk, ".", &files);
    files.iter().for_each(|file| desk.rig.open(file, "one\n"));
    assert_eq!(waiting(&desk, &files, || commit(&desk, ".")).await, files);
    files.iter().for_each(|file| desk.rig.save_by_itself(file));
    commit(&desk, ".");
    desk.session.keep_committed().await;
    assert_eq!(files.iter().filter(|file| !desk.review(file).is_empty()).count(), 0);
}

/// A filter is a program that the repository names.
#[tokio::test]
async fn no_program_that_a_repository_names_is_run() {
    let desk = Desk::new();
    repository(&desk, ".", &["plain.txt", "a.dat"]);
    desk.rig.write(".gitattributes", "*.dat filter=evil\n");
    commit(&desk, ".");
    let ran = desk.rig.path("../ran");
    for key in ["filter.evil.clean", "core.fsmonitor", "core.sshCommand"] {
        git(&desk, ".", &["config", key, &format!("touch '{}'; cat", ran.display())]);
    }
    let left = waiting(&desk, &["plain.txt", "a.dat"], || {
        git(&desk, ".", &["-c", "core.fsmonitor=false", "commit", "-q", "-m", "m", "--", "plain.txt"]);
        let _ = std::fs::remove_file(&ran);
        desk.rig.write("a.dat", "1\n");
    });
    assert_eq!(left.await, ["a.dat"]);
    assert!(!ran.exists());
}
