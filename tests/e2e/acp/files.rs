//! Files by the client: unsaved text, typing during an edit, and clients whose file methods cannot be trusted.
//!
//! Rule: two clients are imitated from their sources. "zed" shows its buffers, merges a write with the typed text since it
//! was last asked for the file, and saves. "cc" shows the disk, and overwrites its buffer with what it is given.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use kode_e2e::{AcpClient, Project, Reply};
use serde_json::{Value, json};

use super::{EDITS, counting, edit_sessions, of_kind, project, script, text_of};

/// A buffer of the imitated Zed.
#[derive(Clone, Default)]
struct Buffer {
    text: String,
    /// The text at the last read: a write is a change of this one.
    snapshot: String,
}

/// The buffers by path, and what the user types while the agent writes.
#[derive(Default)]
struct Zed {
    buffers: HashMap<String, Buffer>,
    /// Text that is appended to a buffer after this many reads of it.
    typing: Vec<(usize, String)>,
    reads: usize,
    /// Whether the user types keys at the beginning, one after some answers.
    types: bool,
    next_key: usize,
    answers: usize,
    since_write: usize,
    /// After how many answers since a write there was a key: the steps of an edit.
    steps: BTreeSet<usize>,
    keys: String,
    /// The paths that the agent has written: the review of agent edits.
    written: Vec<String>,
}

impl Zed {
    fn open(&mut self, path: &str) -> Option<&mut Buffer> {
        if !self.buffers.contains_key(path) {
            let text = std::fs::read_to_string(path).ok()?;
            self.buffers.insert(path.to_owned(), Buffer { snapshot: text.clone(), text });
        }
        self.buffers.get_mut(path)
    }

    fn read(&mut self, path: &str) -> Option<String> {
        self.reads += 1;
        let reads = self.reads;
        let typed: String =
            self.typing.iter().filter(|(after, _)| *after == reads).map(|(_, text)| text.as_str()).collect();
        let key = self.key();
        let buffer = self.open(path)?;
        buffer.snapshot.clone_from(&buffer.text);
        let shown = buffer.text.clone();
        // Typed after the answer: the agent has not seen it.
        buffer.text.push_str(&typed);
        buffer.text.insert_str(0, &key);
        Some(shown)
    }

    /// The key that the user types now, if the user does.
    fn key(&mut self) -> String {
        self.answers += 1;
        self.since_write += 1;
        if !self.types || self.answers < self.next_key {
            return String::new();
        }
        // The number of answers to an edit depends on the keys: an even rhythm would fall in step with it.
        let scattered = self.keys.len().wrapping_mul(0x9e37_79b9) >> 16;
        self.next_key = self.answers + 3 + scattered % 7;
        let key = char::from(b'a' + u8::try_from(self.keys.len() % 26).unwrap());
        self.keys.push(key);
        self.steps.insert(self.since_write);
        key.into()
    }

    /// Applies a write as the difference to the snapshot, keeps the typed text before or behind it, formats, and saves.
    fn write(&mut self, path: &str, content: &str) {
        self.written.push(path.to_owned());
        self.since_write = 0;
        let buffer = self.buffers.entry(path.to_owned()).or_default();
        let (before, behind) = match buffer.text.strip_prefix(buffer.snapshot.as_str()) {
            Some(behind) => ("", behind),
            None => (buffer.text.strip_suffix(buffer.snapshot.as_str()).unwrap_or_default(), ""),
        };
        buffer.text = format!("{before}{content}{behind}").replace(" \n", "\n");
        buffer.snapshot.clone_from(&buffer.text);
        std::fs::write(path, &buffer.text).unwrap();
        let key = self.key();
        self.buffers.entry(path.to_owned()).or_default().text.insert_str(0, &key);
    }
}

fn path_of(request: &Value) -> String {
    let params = &request["params"];
    assert!(params.get("line").is_none_or(Value::is_null), "avante's lines are off by one: {request}");
    params["path"].as_str().unwrap().to_owned()
}

fn offers_files() -> Value {
    json!({ "fs": { "readTextFile": true, "writeTextFile": true } })
}

/// A client that behaves as Zed does, with a session in the mode that edits unasked.
fn zed(project: &Project, zed: Zed) -> (AcpClient, String, Arc<Mutex<Zed>>) {
    let client = project.acp_as(&[]);
    client.initialize_as("zed", offers_files());
    let state = Arc::new(Mutex::new(zed));
    let (reading, writing) = (Arc::clone(&state), Arc::clone(&state));
    client.on_request("fs/read_text_file", move |_, request| {
        match reading.lock().unwrap().read(&path_of(request)) {
            Some(content) => Reply::Result(json!({ "content": content })),
            None => Reply::Error(-32_002, "no such file".into()),
        }
    });
    client.on_request("fs/write_text_file", move |_, request| {
        let content = request["params"]["content"].as_str().unwrap();
        writing.lock().unwrap().write(&path_of(request), content);
        Reply::Result(Value::Null)
    });
    let session = client.new_session();
    client.set_mode(&session, "acceptEdits");
    (client, session, state)
}

#[test]
fn unsaved_text_is_read_and_kept_and_the_edit_reaches_the_client_s_review() {
    let project = project();
    let path = project.path("a.txt").display().to_string();
    let unsaved = Buffer { text: "one\ntwo\nunsaved\n".into(), snapshot: "one\ntwo\n".into() };
    let (client, session, state) =
        zed(&project, Zed { buffers: HashMap::from([(path.clone(), unsaved)]), ..Zed::default() });
    let updates = client.run(&session, "edit");
    assert_eq!(state.lock().unwrap().buffers[&path].text, "one\nTWO\nunsaved\n");
    assert_eq!(state.lock().unwrap().written, [path]);
    assert_eq!(project.read("a.txt"), "one\nTWO\nunsaved\n");
    let last = *of_kind(&updates, "tool_call_update").last().unwrap();
    assert_eq!(last["content"][0]["newText"], "one\nTWO\nunsaved\n");
}

#[test]
fn typing_between_any_two_steps_of_an_edit_loses_nothing() {
    for after in 1..=6 {
        let project = project();
        let path = project.path("a.txt").display().to_string();
        let typing = vec![(after, "typed\n".to_owned())];
        let (client, session, state) = zed(&project, Zed { typing, ..Zed::default() });
        client.run(&session, "edit");
        // The last read of the client may come before the typing: then it is in the buffer alone.
        let text = state.lock().unwrap().buffers[&path].text.clone();
        let reads = state.lock().unwrap().reads;
        let expected = if after <= reads { "one\nTWO\ntyped\n" } else { "one\nTWO\n" };
        assert_eq!(text, expected, "typed after read {after} of {reads}");
    }
}

#[test]
fn no_key_is_lost_where_the_client_merges_each_write_with_what_was_typed() {
    for _ in 0..edit_sessions() {
        let project = Project::new(&counting());
        project.write("a.txt", "\ncount: [0]\n");
        let path = project.path("a.txt").display().to_string();
        let (client, session, state) = zed(&project, Zed { types: true, ..Zed::default() });
        client.run(&session, "count");
        let state = state.lock().unwrap();
        // A write, its confirmation, and the reads before the next one.
        assert!((1..=6).all(|step| state.steps.contains(&step)), "keys after each step: {:?}", state.steps);
        let text = &state.buffers[&path].text;
        let newest_first: String = state.keys.chars().rev().collect();
        assert_eq!(*text, format!("{newest_first}\ncount: [{EDITS}]\n"));
    }
}

#[test]
fn a_created_file_reaches_the_client_s_review_and_undo_takes_it_away() {
    let project = project();
    let (client, session, state) = zed(&project, Zed::default());
    client.run(&session, "write");
    let path = project.path("new.txt").display().to_string();
    assert_eq!(state.lock().unwrap().written, [path]);
    assert_eq!(project.read("new.txt"), "made\n");
    client.run(&session, "/undo 1");
    assert!(!project.path("new.txt").exists());
}

#[test]
fn undo_of_an_edit_keeps_what_was_typed_since() {
    let project = project();
    let path = project.path("a.txt").display().to_string();
    let (client, session, state) = zed(&project, Zed::default());
    client.run(&session, "edit");
    state.lock().unwrap().buffers.get_mut(&path).unwrap().text.push_str("mine\n");
    client.run(&session, "/undo 1");
    assert_eq!(state.lock().unwrap().buffers[&path].text, "one\ntwo\nmine\n");
}

#[test]
fn files_outside_the_project_are_those_of_the_disk() {
    let project = Project::new(&script().when(
        "^outside",
        [kode_e2e::call("Read", json!({ "file_path": "{{cwd}}/../outside.txt" })), kode_e2e::say("Read.")],
    ));
    std::fs::write(project.outside().join("outside.txt"), "beside\n").unwrap();
    let (client, session, state) = zed(&project, Zed::default());
    client.set_mode(&session, "bypassPermissions");
    client.run(&session, "outside");
    assert_eq!(state.lock().unwrap().reads, 0);
    assert!(project.model.last_results()[0].0.contains("beside"));
}

#[test]
fn a_client_whose_files_are_not_its_editor_s_is_not_asked() {
    for (name, is_editor) in [(Some("CodeCompanion.nvim"), true), (None, true), (Some("acpx"), false)] {
        let project = project();
        let client = project.acp_as(&[]);
        let params = json!({
            "protocolVersion": 1, "clientCapabilities": offers_files(),
            "clientInfo": name.map(|name| json!({ "name": name, "version": "1.0" })),
        });
        client.call("initialize", params);
        for method in ["fs/read_text_file", "fs/write_text_file"] {
            client.on_request(method, |_, request| panic!("the client is asked: {request}"));
        }
        let session = client.new_session();
        client.set_mode(&session, "acceptEdits");
        let updates = client.run(&session, "edit");
        let said = text_of(&updates, "agent_message_chunk");
        assert_eq!(said.contains("does not show unsaved text"), is_editor, "{said}");
        assert!(said.ends_with("Edited."), "{said}");
        assert_eq!(project.read("a.txt"), "one\nTWO\n");
        let again = text_of(&client.run(&session, "hello"), "agent_message_chunk");
        assert_eq!(again, "Hello to you.", "one warning is enough");
    }
}

#[test]
fn a_client_that_does_not_answer_for_a_file_costs_the_disk_s_text_and_no_more() {
    let project = project();
    let client = project.acp_as(&[]);
    client.initialize_as("other", offers_files());
    client.on_request("fs/read_text_file", |_, _| Reply::Error(-32_603, "broken".into()));
    let session = client.new_session();
    client.set_mode(&session, "acceptEdits");
    client.run(&session, "edit");
    assert_eq!(project.read("a.txt"), "one\nTWO\n");
}
