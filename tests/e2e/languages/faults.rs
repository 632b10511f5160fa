//! A language server that ends, hangs, floods or lies: the model gets an error that names it, and no process is left.

use std::fs;
use std::path::Path;

use kode_e2e::call;
use kode_e2e::system::is_running;
use serde_json::json;

use super::{log, open, project_of, result, results, unasked};

/// The processes of the server that were started.
pub(super) fn started(log: &Path) -> Vec<u32> {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().filter_map(|line| line.strip_prefix("started ")?.parse().ok()).collect()
}

#[test]
fn a_server_that_fails_is_an_error_with_its_reason_and_leaves_no_process() {
    for (how, said) in [
        ("exit", "the dictionary is missing"),
        ("hang", "did not answer within"),
        ("crash", "it ended"),
        ("huge", "exceeds the limit"),
    ] {
        let project =
            project_of([call("References", json!({ "symbol": "alpha", "file_path": "a.word", "line": 1 }))]);
        project.write("a.word", "def alpha\n");
        let client = open(&project, how);
        unasked(&client).run("go");
        let (text, failed) = result(&project);
        assert!(failed && text.contains(said) && text.contains("Grep"), "{how}: {text}");
        assert_eq!(client.shut_down(), 0);
        let processes = started(&log(&project));
        assert!(!processes.is_empty() && !processes.iter().any(|process| is_running(*process)), "{how}");
    }
}

#[test]
fn a_server_that_ended_is_started_again_within_bounds() {
    let reference = || call("References", json!({ "symbol": "alpha", "file_path": "a.word", "line": 1 }));
    let project = project_of([reference(), reference(), reference(), reference(), reference(), reference()]);
    project.write("a.word", "def alpha\n");
    let client = open(&project, "crash");
    unasked(&client).run("go");
    let results = results(&project);
    assert!(results.iter().all(|(_, failed)| *failed), "{results:?}");
    assert!(results[5].0.contains("is not started again"), "{results:?}");
    assert_eq!(started(&log(&project)).len(), 4, "the first start and three more");
}

#[test]
fn a_flood_of_messages_delays_nothing() {
    let project = project_of([
        call("Symbols", json!({ "file_path": "a.word" })),
        call("References", json!({ "symbol": "alpha", "file_path": "a.word" })),
    ]);
    project.write("a.word", "def alpha\n");
    let client = open(&project, "flood");
    unasked(&client).run("go");
    let results = results(&project);
    assert_eq!(results[1], ("1 lines in 1 files\na.word\n  1: def alpha".to_owned(), false));
}

#[test]
fn all_sessions_share_one_process_and_it_ends_with_the_last() {
    let project = project_of([call("Symbols", json!({ "file_path": "a.word" }))]);
    project.write("a.word", "def alpha\n");
    let client = open(&project, "");
    unasked(&client).run("go");
    let [process] = started(&log(&project)).try_into().unwrap();
    assert!(is_running(process));
    client.kill();
    // The end of its input ends it.
    let began = std::time::Instant::now();
    while is_running(process) {
        assert!(began.elapsed() < kode_e2e::LIMIT, "{process} is left");
        std::thread::yield_now();
    }
}

/// Waits until the server has got a request, then kills the client's process, and waits until the server is gone.
#[cfg(any(target_os = "linux", windows))]
pub(super) fn kill_while_it_hangs(client: &kode_e2e::Client, log: &Path) {
    let began = std::time::Instant::now();
    while !fs::read_to_string(log).unwrap_or_default().contains("textDocument/references") {
        assert!(began.elapsed() < kode_e2e::LIMIT, "the server was asked nothing");
        std::thread::yield_now();
    }
    client.kill();
    while started(log).iter().any(|process| is_running(*process)) {
        assert!(began.elapsed() < kode_e2e::LIMIT, "the server is left");
        std::thread::yield_now();
    }
}

#[test]
#[cfg(any(target_os = "linux", windows))]
fn a_server_that_hangs_ends_with_a_process_that_is_killed() {
    let project =
        project_of([call("References", json!({ "symbol": "alpha", "file_path": "a.word", "line": 1 }))]);
    project.write("a.word", "def alpha\n");
    let client = open(&project, "deaf");
    unasked(&client).prompt("go");
    kill_while_it_hangs(&client, &log(&project));
}
