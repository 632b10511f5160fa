//! Commits noticed in real repositories.

use std::path::Path;
use std::process::Command;

use crate::edits::tests::EditBench;
use kode_text::edit::ledger::review::HunkState;

/// Runs git as a person would, but for their own configuration. Folders are relative to the workspace.
fn git(bench: &EditBench, folder: &str, arguments: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(bench.rig.path(folder))
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(status.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&status.stderr));
}

/// A repository in a folder of the workspace with these files, each `one`, committed.
fn repository(bench: &EditBench, folder: &str, files: &[&str]) {
    for file in files {
        bench.rig.write(&Path::new(folder).join(file).display().to_string(), "one\n");
    }
    std::fs::create_dir_all(bench.rig.path(folder)).unwrap();
    git(bench, folder, &["init", "-q"]);
    commit(bench, folder);
}

fn commit(bench: &EditBench, folder: &str) {
    git(bench, folder, &["add", "-A"]);
    git(bench, folder, &["commit", "-q", "--allow-empty", "-m", "m"]);
}

/// The agent changes the files, `happen` happens, and these are the files that still wait.
async fn waiting<'a>(bench: &EditBench, files: &[&'a str], happen: impl FnOnce()) -> Vec<&'a str> {
    for file in files {
        bench.replaces(file, "one", "1").await;
    }
    happen();
    bench.session.edits().keep_committed().await;
    files.iter().copied().filter(|file| !bench.review(file).is_empty()).collect()
}

#[tokio::test]
async fn what_is_committed_is_kept_whatever_its_name() {
    let bench = EditBench::new();
    let files = ["a.txt", "sub dir/it's \"b\".txt", "ü/ö$x*.txt", "-c"];
    repository(&bench, ".", &files);
    assert_eq!(waiting(&bench, &files, || commit(&bench, ".")).await, [""; 0]);
}

#[tokio::test]
async fn only_what_git_has_as_it_is_counts_as_committed() {
    let bench = EditBench::new();
    bench.rig.write(".gitignore", "ignored/\n");
    repository(&bench, ".", &["in.txt", "staged.txt", "later.txt"]);
    repository(&bench, "embedded", &["e.txt"]);
    for file in ["ignored/i.txt", "untracked.txt"] {
        bench.rig.write(file, "one\n");
    }
    let files = ["in.txt", "staged.txt", "later.txt", "ignored/i.txt", "untracked.txt", "embedded/e.txt"];
    let left = waiting(&bench, &files, || {
        git(&bench, ".", &["add", "staged.txt"]);
        git(&bench, ".", &["commit", "-q", "-m", "m", "--", "in.txt"]);
    });
    assert_eq!(left.await, files[1..]);
    commit(&bench, "embedded");
    bench.session.edits().keep_committed().await;
    assert!(bench.review("embedded/e.txt").is_empty(), "its own repository has it");
}

#[tokio::test]
async fn submodules_and_linked_work_trees_are_repositories_of_their_own() {
    let bench = EditBench::new();
    repository(&bench, "../module", &["m.txt"]);
    repository(&bench, "main", &["a.txt"]);
    git(&bench, "main", &["submodule", "--quiet", "add", "../../module", "sub"]);
    commit(&bench, "main");
    git(&bench, "main", &["worktree", "add", "-q", "../linked"]);
    let files = ["main/sub/m.txt", "linked/a.txt"];
    assert_eq!(waiting(&bench, &files, || commit(&bench, "linked")).await, ["main/sub/m.txt"]);
}

#[tokio::test]
async fn a_commit_keeps_what_is_there_and_nothing_that_is_not() {
    let bench = EditBench::new();
    let files = ["closed.txt", "open.txt", "gone.txt"];
    repository(&bench, ".", &files);
    bench.rig.open("open.txt", "one\n");
    // The reported command keeps others from looking first.
    let runs = bench.session.edits().command_runs();
    let left = waiting(&bench, &files, || {
        bench.rig.write("closed.txt", "one\n");
        std::fs::remove_file(bench.rig.path("gone.txt")).unwrap();
        commit(&bench, ".");
    });
    assert_eq!(left.await, files, "the texts are not those that the ledger knows");
    drop(runs);
    bench.session.edits().keep_committed().await;
    let kept = bench.states().into_iter().filter(|state| *state == Some(HunkState::Kept)).count();
    assert_eq!(
        (kept, bench.review("closed.txt").len()),
        (1, 0),
        "it is undone, and only the removal is kept"
    );
    assert_eq!(bench.review("open.txt").len(), 1, "it is not saved");
    assert!(bench.review("gone.txt").is_empty(), "its removal is committed");
}

#[tokio::test]
async fn every_document_that_is_not_saved_waits_however_many_are_open() {
    let bench = EditBench::new();
    let names: Vec<String> = (0..70).map(|number| format!("{number:02}.txt")).collect();
    let files: Vec<&str> = names.iter().map(String::as_str).collect();
    repository(&bench, ".", &files);
    files.iter().for_each(|file| bench.rig.open(file, "one\n"));
    assert_eq!(waiting(&bench, &files, || commit(&bench, ".")).await, files);
    files.iter().for_each(|file| bench.rig.save_by_itself(file));
    commit(&bench, ".");
    bench.session.edits().keep_committed().await;
    assert_eq!(files.iter().filter(|file| !bench.review(file).is_empty()).count(), 0);
}

/// A filter is a program that the repository names.
#[tokio::test]
async fn no_program_that_a_repository_names_is_run() {
    let bench = EditBench::new();
    repository(&bench, ".", &["plain.txt", "a.dat"]);
    bench.rig.write(".gitattributes", "*.dat filter=evil\n");
    commit(&bench, ".");
    let ran = bench.rig.path("../ran");
    for key in ["filter.evil.clean", "core.fsmonitor", "core.sshCommand"] {
        git(&bench, ".", &["config", key, &format!("touch '{}'; cat", ran.display())]);
    }
    let left = waiting(&bench, &["plain.txt", "a.dat"], || {
        git(&bench, ".", &["-c", "core.fsmonitor=false", "commit", "-q", "-m", "m", "--", "plain.txt"]);
        let _ = std::fs::remove_file(&ran);
        bench.rig.write("a.dat", "1\n");
    });
    assert_eq!(left.await, ["a.dat"]);
    assert!(!ran.exists());
}
