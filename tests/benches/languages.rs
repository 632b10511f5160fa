//! The savings and costs of language servers for the model: bytes for all uses of a symbol, the time of our part of a call,
//! the delay of a wrapped server, the costs without a call, and the processes that are left.
//!
//! Rule: everything goes over the wire of the built program. The uses are those of real symbols in the TypeScript of this
//! repository, found by a real server and by Grep with Read. Nothing here passes or fails.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench languages`; it wants what
//! `tests/tools/install-languages.sh` installs.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kode_e2e::measure::{figure, heading};
use kode_e2e::{
    Client, Connection, Offer, Process, Project, Script, Step, call, copy_folder, results_of, say,
};
use serde_json::{Value, json};

/// Symbols of the VS Code client that are in at least ten files, or are named by a common word.
const SYMBOLS: [&str; 10] =
    ["count", "act", "told", "step", "SessionView", "stop", "ask", "messageOf", "keyOf", "toRange"];
/// Calls whose time is taken.
const CALLS: usize = 200;
/// Completions whose time is taken, at the bare server and at the wrapped one by turns.
const COMPLETIONS: usize = 2_000;
/// Processes whose memory is taken, with servers and without.
const IDLE_RUNS: usize = 9;
/// Calls of one session.
const CALLS_OF_SESSION: usize = 10;
/// Sessions of one process, each with a call.
const SESSIONS: usize = 1_000;
/// Processes that are killed while a server of theirs runs.
const KILLS: usize = 50;
/// How long the processes of a killed one may take to be gone.
const GRACE: Duration = Duration::from_secs(5);

fn main() {
    let is_tiny = std::env::var("KODE_BENCH_TINY").is_ok_and(|value| !value.is_empty());
    let part = |count: usize| if is_tiny { count.min(3) } else { count };
    // The named parts run alone; cargo adds options of its own.
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with('-')).collect();
    let runs = |name: &str| named.is_empty() || named.iter().any(|one| one == name);
    println!("{}", kode_e2e::binary().display());
    if runs("uses") {
        uses();
    }
    if runs("calls") {
        our_part(part(CALLS));
    }
    if runs("wrap") {
        wrapping(part(COMPLETIONS));
    }
    if runs("idle") {
        idle(part(IDLE_RUNS));
    }
    if runs("processes") {
        processes(part(SESSIONS), part(KILLS));
    }
}

/// A client whose user has this language server in their settings, without a sandbox.
fn open(project: &Project, entry: &Value) -> Client {
    let home = project.outside().join("user");
    fs::create_dir_all(home.join(".kode-ls")).unwrap();
    let settings = json!({ "lspServers": { "server": entry }, "sandbox": { "enabled": false } });
    fs::write(home.join(".kode-ls/settings.json"), settings.to_string()).unwrap();
    let client = project.start_as(&[], &[("HOME", home.to_str().unwrap())]);
    client.initialize(Offer::kode().params(&project.workspace()));
    client
}

fn words(project: &Project) -> Value {
    let program = kode_e2e::binary().with_file_name("fault-language-server");
    let log = project.outside().join("words.log");
    json!({
        "command": program, "args": [""], "extensionToLanguage": { ".word": "words" }, "env": { "FAULT_LOG": log },
    })
}

/// All uses of ten symbols: the bytes that the model gets.
fn uses() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let source = repository.join("editors/vscode/src");
    let server = servers().join("node_modules/.bin/typescript-language-server");
    let entry = json!({
        "command": server, "args": ["--stdio"],
        "extensionToLanguage": { ".ts": "typescript", ".tsx": "typescriptreact" },
    });
    let files = source_files(&source);
    let mut script = Script::default();
    for symbol in SYMBOLS {
        let declared = files.iter().find(|(_, text)| declaration(text, symbol).is_some());
        let (file, text) = declared.unwrap_or_else(|| panic!("{symbol} is not declared"));
        let arguments = json!({
            "symbol": symbol, "file_path": format!("src/{file}"), "line": declaration(text, symbol),
        });
        script = script.when(&format!("^uses {symbol}$"), [call("References", arguments), say("Seen.")]);
        script = script.when(&format!("^search {symbol}$"), searching(symbol, &files));
    }
    let project = Project::new(&script);
    copy_folder(&source, &project.path("src"));
    let options = json!({ "compilerOptions": {
        "target": "es2023", "module": "preserve", "jsx": "preserve", "noEmit": true, "allowImportingTsExtensions": true,
    }, "include": ["src"] });
    project.write("tsconfig.json", options.to_string());
    let client = open(&project, &entry);
    heading("bytes to the model for all uses of a symbol");
    let (mut all, mut of_search) = (0, 0);
    for symbol in SYMBOLS {
        let [found, searched] = [format!("uses {symbol}"), format!("search {symbol}")]
            .map(|prompt| bytes(&project, &client, &prompt));
        figure(&format!("{symbol}: References"), found as f64, " B", "");
        figure(&format!("{symbol}: Grep and Read"), searched as f64, " B", "");
        all += found;
        of_search += searched;
    }
    figure("all ten: Grep and Read beside References", of_search as f64 / all as f64, " ×", "");
    assert_eq!(client.shut_down(), 0);
}

/// Grep for the word, then Read of each file that has it: what tells a use from another symbol of the name.
fn searching(symbol: &str, files: &[(String, String)]) -> Vec<Step> {
    let pattern = format!("\\b{symbol}\\b");
    let input = json!({ "pattern": pattern, "path": "{{cwd}}/src", "output_mode": "content", "-n": true });
    let mut steps = vec![call("Grep", input)];
    let found = files.iter().filter(|(_, text)| has_word(text, symbol));
    steps.extend(
        found.map(|(file, _)| call("Read", json!({ "file_path": format!("{{{{cwd}}}}/src/{file}") }))),
    );
    steps.push(say("Seen."));
    steps
}

/// The bytes of all results of a turn in a session of its own.
fn bytes(project: &Project, client: &Client, prompt: &str) -> usize {
    let session = client.session_with(json!({ "mode": "bypassPermissions" }));
    session.run(prompt);
    let request = project.model.last_request();
    let results: Vec<_> = request["messages"].as_array().unwrap().iter().flat_map(results_of).collect();
    for (text, failed) in &results {
        assert!(!failed, "{prompt}: {text}");
    }
    results.iter().map(|(text, _)| text.len()).sum()
}

fn source_files(folder: &Path) -> Vec<(String, String)> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(current).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".ts") || name.ends_with(".tsx") {
                files.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

/// The line of the exported declaration of a symbol, from 1.
fn declaration(text: &str, symbol: &str) -> Option<usize> {
    let kinds: BTreeSet<_> = ["function", "const", "class", "interface"].into();
    let is_declared = |line: &str| {
        let mut words =
            line.split(|char: char| !char.is_alphanumeric() && char != '_').filter(|word| !word.is_empty());
        words.next() == Some("export")
            && words.find(|word| kinds.contains(word)).is_some()
            && words.next() == Some(symbol)
    };
    text.lines().position(is_declared).map(|line| line + 1)
}

fn has_word(text: &str, word: &str) -> bool {
    let is_word = |char: char| char.is_alphanumeric() || char == '_';
    text.match_indices(word)
        .any(|(at, _)| !text[..at].ends_with(is_word) && !text[at + word.len()..].starts_with(is_word))
}

fn servers() -> PathBuf {
    let installed = std::env::var_os("KODE_LS_LANGUAGE_SERVERS").map(PathBuf::from);
    installed.unwrap_or_else(|| {
        let home = || PathBuf::from(std::env::var_os("HOME").expect("a home folder")).join(".cache");
        let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).unwrap_or_else(home);
        let tools = std::env::var_os("KODE_LS_TOOLS").map(PathBuf::from);
        tools.unwrap_or_else(|| cache.join("kode-ls-tools")).join("languages")
    })
}

/// The time of a call whose server answers at once.
fn our_part(calls: usize) {
    // The same call again and again would be asked about.
    let ask = |line: usize| {
        call("LSP", json!({ "operation": "hover", "filePath": "a.word", "line": line + 1, "character": 5 }))
    };
    let steps = (0..CALLS_OF_SESSION).map(ask).chain([say("Seen.")]);
    let project = Project::new(&Script::default().otherwise(steps));
    project.write("a.word", "def alpha\n".repeat(CALLS_OF_SESSION));
    let client = open(&project, &words(&project));
    let mut times: Vec<u64> = Vec::new();
    // The first session starts the server.
    for number in 0..=calls.div_ceil(CALLS_OF_SESSION) {
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        session.run("go");
        let events = session.events();
        let executed = events.iter().filter(|event| event["type"] == "tool_executed");
        times.extend(executed.filter(|_| number > 0).map(|event| event["durationMs"].as_u64().unwrap()));
    }
    assert!(times.len() >= calls);
    times.sort_unstable();
    heading("a call whose server answers at once, in whole milliseconds");
    figure("the median", times[times.len() / 2] as f64, " ms", "");
    figure("the 95th percentile", times[times.len() * 95 / 100] as f64, " ms", "5 ms");
    assert_eq!(client.shut_down(), 0);
}

/// The delay that `kode-ls wrap` adds to a completion: the same server bare and wrapped, asked by turns.
fn wrapping(completions: usize) {
    let project = Project::new(&Script::default());
    // The length of a completion in a large class.
    let text: String = (0..100).map(|number| format!("def alpha_{number}\n")).collect();
    project.write("a.word", &text);
    let server = kode_e2e::binary().with_file_name("fault-language-server");
    let command = server.to_str().unwrap();
    let mut process = Process::start_program(&server, &[""], Some(&project.workspace()), &[]);
    let bare = Connection::new(&mut process);
    let client = project.start_as(&["wrap", "--", command, ""], &[]);
    bare.request("initialize", Offer::plain().params(&project.workspace())).unwrap();
    bare.notify("initialized", json!({}));
    client.initialize(Offer::plain().params(&project.workspace()));
    let uri = project.uri("a.word");
    let item = json!({ "uri": uri, "languageId": "words", "version": 1, "text": text });
    bare.notify("textDocument/didOpen", json!({ "textDocument": item }));
    client.editor.open(&uri, &text);
    let place = json!({ "textDocument": { "uri": uri }, "position": { "line": 3, "character": 4 } });
    let ask = |connection: &Connection| {
        let began = Instant::now();
        let found = connection.request("textDocument/completion", place.clone()).unwrap();
        let taken = began.elapsed();
        assert_eq!(found.as_array().unwrap().len(), 100);
        taken
    };
    let (mut direct, mut wrapped) = (Vec::new(), Vec::new());
    for _ in 0..completions {
        direct.push(ask(&bare));
        wrapped.push(ask(&client));
    }
    direct.sort_unstable();
    wrapped.sort_unstable();
    heading("a completion of 100 items through `kode-ls wrap`");
    for (name, share) in [("the median", 50), ("the 95th percentile", 95)] {
        let [direct, wrapped] =
            [&direct, &wrapped].map(|times| times[times.len() * share / 100].as_secs_f64() * 1e3);
        figure(&format!("{name}, bare"), direct, " ms", "");
        figure(&format!("{name}, added"), wrapped - direct, " ms", if share == 95 { "1 ms" } else { "" });
    }
    assert_eq!(client.shut_down(), 0);
}

/// The cost of servers in a turn that calls none: requests to the model, processes and memory.
fn idle(runs: usize) {
    let (mut requests, mut processes) = ([0; 2], 0);
    let mut memory = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        for has_servers in [false, true] {
            let project = Project::new(&Script::new([say("Seen.")]));
            project.write("a.word", "def alpha\n");
            let mut entry = words(&project);
            entry["enabled"] = has_servers.into();
            let client = open(&project, &entry);
            client.session_with(json!({ "mode": "bypassPermissions" })).run("go");
            memory[usize::from(has_servers)].push(client.proportional_set_size());
            requests[usize::from(has_servers)] += project.model.requests().len();
            processes += started(&project).len();
            assert_eq!(client.shut_down(), 0);
        }
    }
    let [without, with] = memory.map(|mut sizes| {
        sizes.sort_by(f64::total_cmp);
        sizes[sizes.len() / 2]
    });
    heading("a turn without a call to a language server, beside one where there is none");
    figure("requests to the model, added", requests[1] as f64 - requests[0] as f64, "", "0");
    figure("processes started", processes as f64, "", "0");
    figure("memory, added", (with - without) / f64::from(1 << 20), " MiB", "1 MiB");
}

/// The processes of servers that are left after sessions and after kills.
fn processes(sessions: usize, kills: usize) {
    let input = json!({ "symbol": "alpha", "file_path": "a.word", "line": 1 });
    let project = Project::new(&Script::default().otherwise([call("References", input), say("Seen.")]));
    project.write("a.word", "def alpha\n");
    let client = open(&project, &words(&project));
    for _ in 0..sessions {
        let session = client.session_with(json!({ "mode": "bypassPermissions" }));
        session.run("go");
        session.call("agent/session/close", json!({}));
    }
    let started = started(&project).len();
    assert_eq!(client.shut_down(), 0);
    heading(&format!("processes of language servers after {sessions} sessions and {kills} kills"));
    figure("started for all sessions", started as f64, "", "1");
    figure("left after the sessions", left(&project) as f64, "", "0");
    for _ in 0..kills {
        let client = open(&project, &words(&project));
        client.session_with(json!({ "mode": "bypassPermissions" })).run("go");
        client.kill();
    }
    figure("left after the kills", left(&project) as f64, "", "0");
}

fn started(project: &Project) -> Vec<u32> {
    let log = fs::read_to_string(project.outside().join("words.log")).unwrap_or_default();
    log.lines().filter_map(|line| line.strip_prefix("started ")?.parse().ok()).collect()
}

/// How many of the started processes are there still, after a short time.
fn left(project: &Project) -> usize {
    let is_alive = |process: &u32| {
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        !status.is_empty() && !status.contains("State:\tZ")
    };
    let deadline = Instant::now() + GRACE;
    loop {
        let left = started(project).iter().filter(|process| is_alive(process)).count();
        if left == 0 || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
