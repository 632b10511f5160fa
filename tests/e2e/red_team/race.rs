//! Races: a process swaps a folder for a link that leads outside while the model reads, searches and writes in it.
//!
//! Rule: the swaps go on as fast as the kernel makes them; no byte from outside reaches the model, and nothing outside
//! changes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use kode_e2e::{Offer, Project, Script, Step, results_of, say, step};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

const SECRET: &str = "SECRET-OUTSIDE";
const INSIDE: &str = "inside\n";
/// Calls in one answer of the model.
const CALLS: usize = 100;
/// Answers in one session.
const ROUNDS: usize = 5;
/// Sessions of reads: 10,000 calls.
const READERS: usize = 20;
/// Sessions of searches, and of writes.
const OTHERS: usize = 3;

/// A thread that swaps two names until it is dropped.
struct Swapper {
    is_over: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(pairs: Vec<(PathBuf, PathBuf)>) -> Self {
        let (is_over, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = std::thread::spawn({
            let (is_over, swaps) = (Arc::clone(&is_over), Arc::clone(&swaps));
            move || {
                while !is_over.load(Ordering::Relaxed) {
                    for (one, other) in &pairs {
                        renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                    }
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { is_over, swaps, thread: Some(thread) }
    }

    fn swaps(&self) -> usize {
        self.swaps.load(Ordering::Relaxed)
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn many(tool: &str, input: &Value) -> Step {
    (0..CALLS).fold(step(), |step, _| step.call(tool, input.clone())).repeat(ROUNDS)
}

/// Runs sessions of one program of the model, and gives what the model was answered.
fn results(project: &Project, prompt: &str, sessions: usize) -> Vec<String> {
    let client = project.connect(&Offer::kode());
    let mut results = Vec::new();
    for _ in 0..sessions {
        // What leads outside is refused without a question.
        let session = client.session_with(json!({ "mode": "dontAsk" }));
        session.run(prompt);
        let request = project.model.last_request();
        let messages = request["messages"].as_array().unwrap();
        results.extend(messages.iter().flat_map(results_of).map(|(text, _)| text));
    }
    results
}

#[test]
fn ten_thousand_reads_in_a_race_return_nothing_from_outside() {
    let folder = json!({ "file_path": "{{cwd}}/folder/file.txt" });
    let file = json!({ "file_path": "{{cwd}}/file.txt" });
    let search = json!({ "pattern": ".", "path": "{{cwd}}/folder", "output_mode": "content" });
    let write = json!({ "file_path": "{{cwd}}/folder/file.txt", "content": INSIDE });
    let script = Script::default()
        .when("^folder$", [many("Read", &folder), say("done")])
        .when("^file$", [many("Read", &file), say("done")])
        .when("^search$", [many("Grep", &search), say("done")])
        .when("^write$", [many("Write", &write), say("done")]);
    let project = Project::new(&script);
    let outside = project.outside().join("elsewhere");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file.txt"), SECRET).unwrap();
    project.write("folder/file.txt", INSIDE).write("file.txt", INSIDE);
    project.write(".kode/settings.json", json!({}).to_string());
    symlink(&outside, project.path("link")).unwrap();
    symlink(outside.join("file.txt"), project.path("file-link")).unwrap();
    let pairs = [("folder", "link"), ("file.txt", "file-link")]
        .map(|(one, other)| (project.path(one), project.path(other)));
    let swapper = Swapper::start(pairs.to_vec());
    let calls = CALLS * ROUNDS;
    let mut inside = 0;
    for (prompt, sessions) in
        [("folder", READERS / 2), ("file", READERS / 2), ("search", OTHERS), ("write", OTHERS)]
    {
        let results = results(&project, prompt, sessions);
        assert_eq!(results.len(), sessions * calls, "{prompt}");
        let leaked: Vec<_> = results.iter().filter(|text| text.contains(SECRET)).collect();
        assert!(leaked.is_empty(), "{prompt}: {} of {}: {:?}", leaked.len(), results.len(), leaked.first());
        inside += results.iter().filter(|text| text.contains(INSIDE.trim_end())).count();
    }
    assert!(inside > 0, "calls met what is inside as well");
    assert!(swapper.swaps() > READERS * calls, "{} swaps", swapper.swaps());
    assert_eq!(fs::read_to_string(outside.join("file.txt")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}
