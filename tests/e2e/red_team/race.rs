//! Races: a process swaps a folder for a link that leads outside while the model reads, searches and writes in it.
//!
//! Rule: the swaps continue as fast as the kernel makes them; no byte from outside reaches the model, and nothing outside
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

use super::tries;

const SECRET: &str = "SECRET-OUTSIDE";
const INSIDE: &str = "inside\n";
/// Calls in one answer of the model.
const CALLS: usize = 100;
/// Answers in one session.
const ROUNDS: usize = 5;
/// Sessions of reads, all tries: 10,000 calls.
const READERS: usize = 20;
/// Sessions of searches, and of writes, all tries.
const OTHERS: usize = 3;
/// Swaps in a race of changes, all tries.
pub(super) const SWAPS: usize = 10_000;

/// A thread that swaps two names until it is dropped.
pub(super) struct Swapper {
    is_over: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    pub(super) fn start(pairs: Vec<(PathBuf, PathBuf)>) -> Self {
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

    pub(super) fn swaps(&self) -> usize {
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
        // Paths that lead outside are refused without a question.
        let session = client.session_with(json!({ "mode": "dontAsk" }));
        session.run(prompt);
        let request = project.model.last_request();
        let messages = request["messages"].as_array().unwrap();
        results.extend(messages.iter().flat_map(results_of).map(|(text, _)| text));
    }
    results
}

#[test]
fn reads_in_a_race_return_nothing_from_outside() {
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
    let (calls, readers, others) = (CALLS * ROUNDS, tries(READERS), tries(OTHERS));
    let mut inside = 0;
    for (prompt, sessions) in
        [("folder", readers / 2), ("file", readers / 2), ("search", others), ("write", others)]
    {
        let results = results(&project, prompt, sessions);
        assert_eq!(results.len(), sessions * calls, "{prompt}");
        let leaked: Vec<_> = results.iter().filter(|text| text.contains(SECRET)).collect();
        assert!(leaked.is_empty(), "{prompt}: {} of {}: {:?}", leaked.len(), results.len(), leaked.first());
        inside += results.iter().filter(|text| text.contains(INSIDE.trim_end())).count();
    }
    assert!(inside > 0, "calls met what is inside as well");
    assert!(swapper.swaps() > readers * calls, "{} swaps", swapper.swaps());
    assert_eq!(fs::read_to_string(outside.join("file.txt")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

/// The content of a file outside in the races of writes: the text that the model leaves in the file inside, so that no
/// comparison of texts holds a write back.
const SAME: &str = "inside A\n";
/// How often the calls are in one answer of the model.
const TIMES: usize = 6;
/// Sessions of changes, all tries.
const WRITERS: usize = 4;
/// A notebook with one cell.
const NOTEBOOK: &str = r#"{"cells":[{"cell_type":"code","id":"a","metadata":{},"source":["1"],"outputs":[],"execution_count":null}],"metadata":{},"nbformat":4,"nbformat_minor":5}"#;

/// Every way to change a file, each of a folder and of a file that are swapped.
fn changes() -> Step {
    let patch = |text: &str| json!({ "input": format!("*** Begin Patch\n{text}\n*** End Patch") });
    let mut answer = step();
    for _ in 0..TIMES {
        for file in ["{{cwd}}/folder/file.txt", "{{cwd}}/file.txt"] {
            let edit = json!({ "file_path": file, "old_string": "A", "new_string": "B" });
            let edits = json!({ "file_path": file, "edits": [{ "old_string": "B", "new_string": "C" }] });
            answer = answer
                .call("Read", json!({ "file_path": file }))
                .call("Write", json!({ "file_path": file, "content": SAME }))
                .call("Edit", edit)
                .call("MultiEdit", edits)
                .call("Write", json!({ "file_path": file, "content": SAME }));
        }
        let cell = json!({ "notebook_path": "{{cwd}}/folder/note.ipynb", "cell_id": "a", "new_source": "2" });
        answer = answer
            .call("Write", json!({ "file_path": "{{cwd}}/folder/new/file.txt", "content": SAME }))
            .call("Read", json!({ "file_path": "{{cwd}}/folder/note.ipynb" }))
            .call("NotebookEdit", cell)
            .call("apply_patch", patch("*** Add File: folder/added.txt\n+inside A"))
            .call("Read", json!({ "file_path": "{{cwd}}/folder/added.txt" }))
            .call("apply_patch", patch("*** Update File: folder/added.txt\n*** Move to: folder/moved.txt\n@@\n-inside A\n+inside B"))
            .call("apply_patch", patch("*** Delete File: folder/added.txt"))
            .call("apply_patch", patch("*** Delete File: folder/moved.txt"));
    }
    answer.repeat(ROUNDS)
}

#[test]
fn swaps_while_the_model_changes_files_change_nothing_outside() {
    let project = Project::new(&Script::new([changes(), say("done")]));
    let (home, outside) = (project.outside().join("user"), project.outside().join("elsewhere"));
    fs::create_dir_all(home.join(".kode")).unwrap();
    let allowed =
        json!({ "permissions": { "allow": ["Edit(folder/**)", "Edit(file.txt)", "Read(folder/**)"] } });
    fs::write(home.join(".kode/settings.json"), allowed.to_string()).unwrap();
    fs::create_dir(&outside).unwrap();
    let files = [("file.txt", SAME), ("added.txt", SAME), ("note.ipynb", NOTEBOOK)];
    for (name, text) in files {
        fs::write(outside.join(name), text).unwrap();
    }
    project.write("folder/file.txt", SAME).write("folder/note.ipynb", NOTEBOOK).write("file.txt", SAME);
    symlink(&outside, project.path("link")).unwrap();
    symlink(outside.join("file.txt"), project.path("file-link")).unwrap();
    let pairs = [("folder", "link"), ("file.txt", "file-link")]
        .map(|(one, other)| (project.path(one), project.path(other)));
    let swapper = Swapper::start(pairs.to_vec());
    let client = project.start_as(&[], &[("HOME", home.to_str().unwrap())]);
    client.initialize(Offer::kode().params(&project.workspace()));
    let (mut changed, mut refused, writers) = (0, 0, tries(WRITERS));
    for _ in 0..writers {
        // Paths that lead outside are refused without a question.
        let session = client.session_with(json!({ "mode": "dontAsk" }));
        session.run("change");
        let request = project.model.last_request();
        let results = request["messages"].as_array().unwrap().iter().flat_map(results_of);
        for (_, is_error) in results {
            *(if is_error { &mut refused } else { &mut changed }) += 1;
        }
        for (name, text) in files {
            assert_eq!(fs::read_to_string(outside.join(name)).unwrap(), text, "{name}");
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), files.len(), "nothing was made");
    }
    assert!(changed > writers * ROUNDS && refused > 0, "{changed} calls worked, {refused} did not");
    assert!(swapper.swaps() > tries(SWAPS), "{} swaps", swapper.swaps());
}
