//! A language server for words: `def NAME` declares one, every other `NAME` uses it, `oops` is an error. Its first argument names
//! the way in which it misbehaves.
//!
//! Rule: it speaks the protocol by hand, so that what it sends wrong is wrong on purpose. It enters its start and the methods that
//! it receives in the file that `FAULT_LOG` names.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a server for tests fails a test by panicking")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "its streams are what it spoils")]

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::exit;
use std::time::Duration;

use serde_json::{Value, json};
use url::Url;

/// The extension of its files.
const EXTENSION: &str = "word";

struct Server {
    how: String,
    root: PathBuf,
    /// The open documents with their versions.
    open: BTreeMap<PathBuf, (i64, String)>,
}

fn note(line: &str) {
    if let Ok(path) = std::env::var("FAULT_LOG") {
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

fn send(message: &Value) {
    let body = message.to_string();
    let mut out = io::stdout().lock();
    write!(out, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    out.flush().unwrap();
}

fn notify(method: &str, parameters: &Value) {
    send(&json!({ "jsonrpc": "2.0", "method": method, "params": parameters }));
}

fn read(input: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if input.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        match line.trim().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.parse().unwrap()
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    input.read_exact(&mut body).unwrap();
    Some(serde_json::from_slice(&body).unwrap())
}

/// Does nothing until the client is gone: a test that fails leaves no process.
fn hang() -> ! {
    #[cfg(unix)]
    let parent = std::os::unix::process::parent_id();
    loop {
        std::thread::sleep(Duration::from_millis(200));
        #[cfg(unix)]
        if std::os::unix::process::parent_id() != parent {
            exit(1);
        }
    }
}

/// Does nothing, whatever becomes of the client; ends in the end, so that a test that fails leaves no process for long.
fn hang_on() -> ! {
    std::thread::sleep(Duration::from_secs(120));
    exit(1);
}

fn path_of(parameters: &Value) -> PathBuf {
    let uri = parameters["textDocument"]["uri"].as_str().unwrap();
    Url::parse(uri).unwrap().to_file_path().unwrap()
}

fn uri_of(path: &Path) -> String {
    Url::from_file_path(path).unwrap().to_string()
}

/// Columns are those of UTF-16: it takes no other encoding.
fn range(line: usize, text: &str, start: usize, end: usize) -> Value {
    let column = |at: usize| text[..at].encode_utf16().count();
    json!({
        "start": { "line": line, "character": column(start) }, "end": { "line": line, "character": column(end) },
    })
}

/// The places of a word in a text, line by line.
fn places(text: &str, word: &str) -> Vec<Value> {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for (at, _) in line.match_indices(word) {
            let end = at + word.len();
            if !line[..at].ends_with(is_word) && !line[end..].starts_with(is_word) {
                found.push(range(number, line, at, end));
            }
        }
    }
    found
}

/// The declarations of a text: number of the line, and name.
fn declarations(text: &str) -> Vec<(usize, String)> {
    let lines = text.lines().enumerate();
    lines.filter_map(|(number, line)| Some((number, line.strip_prefix("def ")?.trim().to_owned()))).collect()
}

impl Server {
    /// All texts: the open documents, and the files of the root.
    fn texts(&self) -> BTreeMap<PathBuf, String> {
        let mut texts = BTreeMap::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == EXTENSION) {
                    texts.insert(path.clone(), fs::read_to_string(path).unwrap_or_default());
                }
            }
        }
        texts.extend(self.open.iter().map(|(path, (_, text))| (path.clone(), text.clone())));
        texts
    }

    fn text(&self, path: &Path) -> String {
        self.texts().remove(path).unwrap_or_default()
    }

    fn word_at(&self, parameters: &Value) -> String {
        let text = self.text(&path_of(parameters));
        let line =
            text.lines().nth(parameters["position"]["line"].as_u64().unwrap() as usize).unwrap_or_default();
        let units: Vec<u16> = line.encode_utf16().collect();
        let at = parameters["position"]["character"].as_u64().unwrap() as usize;
        let start = String::from_utf16_lossy(&units[at.min(units.len())..]);
        start.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect()
    }

    fn publish(&self, path: &Path) {
        let (version, text) = &self.open[path];
        let problem = |word: &str, severity: u32| -> Vec<Value> {
            let places = places(text, word).into_iter();
            places
                .map(|range| {
                    json!({ "range": range, "severity": severity, "message": format!("`{word}` is no word"),
                        "source": "words", "code": severity })
                })
                .collect()
        };
        let mut list = problem("oops", 1);
        list.extend(problem("hmm", 2));
        // Under "elsewhere" each error is one in line 3 as well.
        if self.how == "elsewhere" && !list.is_empty() && text.contains("oops") {
            let message = "`oops` is somewhere";
            list.push(
                json!({ "range": range(2, "a", 0, 1), "severity": 1, "message": message, "source": "words", "code": 3 }),
            );
        }
        let version = if self.how == "moves" { version - 1 } else { *version };
        let parameters = json!({ "uri": uri_of(path), "version": version, "diagnostics": list });
        notify("textDocument/publishDiagnostics", &parameters);
        if self.how == "flood" {
            let zero = json!({ "line": 0, "character": 0 });
            let one = json!({ "range": { "start": zero, "end": zero }, "message": "x".repeat(200) });
            for number in 0..3_000 {
                let uri = format!("file:///flood/{number}");
                notify("textDocument/publishDiagnostics", &json!({ "uri": uri, "diagnostics": [one] }));
                notify("window/logMessage", &json!({ "type": 3, "message": "x".repeat(2_000) }));
            }
        }
    }

    fn rename(&self, parameters: &Value) -> Value {
        let (word, new) = (self.word_at(parameters), &parameters["newName"]);
        let mut changes = Vec::new();
        for (path, text) in self.texts() {
            let edits: Vec<Value> = places(&text, &word)
                .into_iter()
                .map(|range| json!({ "range": range, "newText": new }))
                .collect();
            if edits.is_empty() {
                continue;
            }
            let moved = i64::from(self.how == "moves") * 7;
            let version = self.open.get(&path).map(|(version, _)| version + moved);
            changes.push(
                json!({ "textDocument": { "uri": uri_of(&path), "version": version }, "edits": edits }),
            );
        }
        json!({ "documentChanges": changes })
    }

    /// The edits that go with moved files: words that are their names without the extension become the new ones.
    fn moves(&self, parameters: &Value) -> Value {
        let stem = |file: &Value, name: &str| {
            let path = Url::parse(file[name].as_str().unwrap()).unwrap().to_file_path().unwrap();
            path.file_stem().unwrap().to_str().unwrap().to_owned()
        };
        let mut changes = BTreeMap::new();
        for file in parameters["files"].as_array().unwrap() {
            let (old, new) = (stem(file, "oldUri"), stem(file, "newUri"));
            for (path, text) in self.texts() {
                let edit = |range| json!({ "range": range, "newText": new });
                let edits: Vec<Value> = places(&text, &old).into_iter().map(edit).collect();
                changes.entry(uri_of(&path)).or_insert_with(Vec::new).extend(edits);
            }
        }
        json!({ "changes": changes })
    }

    fn answer(&self, method: &str, parameters: &Value) -> Value {
        match method {
            "workspace/willRenameFiles" => self.moves(parameters),
            "textDocument/documentSymbol" => {
                let text = self.text(&path_of(parameters));
                let lines: Vec<&str> = text.lines().collect();
                let symbol = |(line, name): &(usize, String)| {
                    let whole = range(*line, lines[*line], 0, lines[*line].len());
                    let start = lines[*line].len() - name.len();
                    let own = range(*line, lines[*line], start, lines[*line].len());
                    json!({ "name": name, "kind": 12, "range": whole, "selectionRange": own })
                };
                declarations(&text).iter().map(symbol).collect()
            }
            "workspace/symbol" => {
                let query = parameters["query"].as_str().unwrap();
                let mut found = Vec::new();
                for (path, text) in self.texts() {
                    for (line, name) in
                        declarations(&text).into_iter().filter(|(_, name)| name.contains(query))
                    {
                        let location = json!({ "uri": uri_of(&path), "range": range(line, "def ", 0, 4) });
                        found.push(json!({ "name": name, "kind": 12, "location": location }));
                    }
                }
                Value::Array(found)
            }
            "textDocument/definition" => {
                let word = self.word_at(parameters);
                let mut found = Vec::new();
                for (path, text) in self.texts() {
                    let lines: Vec<&str> = text.lines().collect();
                    for (line, _) in declarations(&text).into_iter().filter(|(_, name)| *name == word) {
                        let end = lines[line].len();
                        found
                            .push(json!({ "uri": uri_of(&path), "range": range(line, lines[line], 4, end) }));
                    }
                }
                Value::Array(found)
            }
            "textDocument/references" => {
                let word = self.word_at(parameters);
                let of_file = |(path, text): (PathBuf, String)| {
                    let place = |range| json!({ "uri": uri_of(&path), "range": range });
                    places(&text, &word).into_iter().map(place).collect::<Vec<_>>()
                };
                self.texts().into_iter().flat_map(of_file).collect()
            }
            "textDocument/hover" => {
                json!({ "contents": { "kind": "markdown", "value": format!("the word {}", self.word_at(parameters)) } })
            }
            "textDocument/completion" => {
                let item = |(_, name): (usize, String)| json!({ "label": name });
                declarations(&self.text(&path_of(parameters))).into_iter().map(item).collect()
            }
            "textDocument/rename" => self.rename(parameters),
            "textDocument/codeAction" => {
                let (path, line) = (path_of(parameters), parameters["range"]["start"]["line"].clone());
                let fixes =
                    places(&self.text(&path), "oops").into_iter().filter(|at| at["start"]["line"] == line);
                let fix = |range: Value| {
                    let edit =
                        json!({ "changes": { uri_of(&path): [{ "range": range, "newText": "fine" }] } });
                    json!({ "title": "Say fine", "kind": "quickfix", "isPreferred": true, "edit": edit,
                        "diagnostics": parameters["context"]["diagnostics"] })
                };
                fixes.map(fix).collect()
            }
            "textDocument/formatting" => {
                let text = self.text(&path_of(parameters));
                let trimmed = text.lines().enumerate().filter(|(_, line)| line.trim_end() != *line);
                let edit = |(number, line): (usize, &str)| json!({ "range": range(number, line, line.trim_end().len(), line.len()), "newText": "" });
                trimmed.map(edit).collect()
            }
            _ => Value::Null,
        }
    }

    fn take(&mut self, method: &str, parameters: &Value) {
        match method {
            "textDocument/didOpen" => {
                let document = &parameters["textDocument"];
                let text = document["text"].as_str().unwrap().to_owned();
                let path = path_of(parameters);
                self.open.insert(path.clone(), (document["version"].as_i64().unwrap(), text));
                self.publish(&path);
            }
            "textDocument/didChange" => {
                let text = parameters["contentChanges"][0]["text"].as_str().unwrap().to_owned();
                let path = path_of(parameters);
                self.open
                    .insert(path.clone(), (parameters["textDocument"]["version"].as_i64().unwrap(), text));
                self.publish(&path);
            }
            "textDocument/didClose" => {
                self.open.remove(&path_of(parameters));
            }
            "exit" => exit(0),
            _ => {}
        }
    }
}

/// Under "named" it names its files, else it leaves them to the client; under "follows" it computes what goes with moved files.
fn capabilities(how: &str) -> Value {
    let filters = json!({ "filters": [{ "pattern": { "glob": format!("**/*.{EXTENSION}") } }] });
    let operations = if how.starts_with("follows") { json!({ "willRename": filters }) } else { Value::Null };
    let selector =
        json!({ "documentSelector": [{ "language": "words", "pattern": format!("**/*.{EXTENSION}") }] });
    let definitions = if how == "named" { selector } else { json!(true) };
    json!({
        "workspace": { "fileOperations": operations },
        "textDocumentSync": 1, "documentSymbolProvider": true, "workspaceSymbolProvider": true,
        "definitionProvider": definitions, "referencesProvider": true, "hoverProvider": true,
        "renameProvider": { "prepareProvider": false }, "codeActionProvider": true,
        "documentFormattingProvider": true, "implementationProvider": true,
        "completionProvider": { "triggerCharacters": ["."], "resolveProvider": true },
    })
}

fn main() {
    let how = std::env::args().nth(1).unwrap_or_default();
    note(&format!("started {}", std::process::id()));
    match how.as_str() {
        "exit" => {
            eprintln!("words: the dictionary is missing");
            exit(3);
        }
        "hang" => hang(),
        _ => {}
    }
    let mut server = Server { how, root: PathBuf::new(), open: BTreeMap::new() };
    let mut input = io::stdin().lock();
    while let Some(message) = read(&mut input) {
        let (method, parameters) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
        note(method);
        if method == "initialize" {
            let root = parameters["rootUri"].as_str().unwrap();
            server.root = Url::parse(root).unwrap().to_file_path().unwrap();
            let result = json!({ "capabilities": capabilities(&server.how) });
            send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            continue;
        }
        if message.get("id").is_none() {
            server.take(method, parameters);
            continue;
        }
        let is_stuck = match method {
            "textDocument/implementation" => server.how == "stuck",
            "workspace/willRenameFiles" => server.how == "follows and sticks",
            _ => false,
        };
        if is_stuck {
            hang();
        }
        if method == "textDocument/references" {
            match server.how.as_str() {
                "crash" => exit(9),
                "deaf" => hang_on(),
                "huge" => {
                    let mut out = io::stdout().lock();
                    write!(out, "Content-Length: 500000000\r\n\r\n").unwrap();
                    let chunk = vec![b' '; 1 << 20];
                    // The client hangs up long before all of it is written.
                    while out.write_all(&chunk).is_ok() {}
                    exit(1);
                }
                _ => {}
            }
        }
        let result = server.answer(method, parameters);
        send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
    }
    // An end of the input without `exit`: the client is gone.
}
