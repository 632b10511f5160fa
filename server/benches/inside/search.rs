//! Grep and Glob over 100,000 files with 50 unsaved buffers, beside `rg` and `fd` on the same tree.
//!
//! Rule: the other tools are asked for the same answer, with hidden files and without version control folders, and
//! their output is read; everything runs on a warm cache.

#![allow(clippy::print_stdout, reason = "it says what is missing")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use kode_engine::base::ids::CallId;
use kode_engine::base::paths::{AbsPath, ResolvedPaths, Target, real_path};
use kode_engine::process::shell::Shell;
use kode_engine::text::document::DocumentSnapshot;
use kode_engine::text::host::{DocumentEdit, DocumentEditOutcome, DocumentObserver, Host, SaveOutcome};
use kode_engine::text::workspace::Workspace;
use kode_engine::tool::{CallAction, CallContext, Registry, ToolOutput};
use kode_engine::tools::built_in::built_in;
use ropey::Rope;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::measure::{Spread, by_turns, figure, heading, row, time};

const FOLDERS: usize = 1_000;
const FILES_PER_FOLDER: usize = 100;
const FILES: usize = FOLDERS * FILES_PER_FOLDER;
/// One file in this many holds the search text.
const RARE: usize = 500;
const BUFFERS: usize = 50;
const LINES_PER_FILE: usize = 25;
const WARM_UP: usize = 2;
const RUNS: usize = 11;

pub(crate) fn run() {
    let rg = program(&["rg"], "ripgrep: `apt install ripgrep` or `cargo install ripgrep`");
    let fd = program(&["fd", "fdfind"], "fd: `apt install fd-find` or `cargo install fd-find`");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = real_path(folder.path()).expect("it exists");
    let tree = Tree::new(&root);
    heading("search in 100,000 files with 50 unsaved buffers");
    let common = ["--hidden", "--glob", "!.git"];
    for (name, pattern) in [("rare", "needle_[0-9]+"), ("in every file", "value_7 ")] {
        let count = json!({ "pattern": pattern, "output_mode": "count" });
        let files = json!({ "pattern": pattern });
        compare(
            &tree,
            &format!("Grep count, {name}"),
            "Grep",
            &count,
            rg,
            &[&common[..], &["-c", pattern]].concat(),
        );
        compare(
            &tree,
            &format!("Grep files, {name}"),
            "Grep",
            &files,
            rg,
            &[&common[..], &["-l", pattern]].concat(),
        );
    }
    // Ours come newest first: the other program is made to ask for the times as well.
    let common = ["--hidden", "--exclude", ".git", "--type", "f", "--changed-within", "100years", "--glob"];
    for (name, pattern) in [("rare", "*_7.md"), ("every file", "*.rs")] {
        let input = json!({ "pattern": pattern });
        compare(&tree, &format!("Glob, {name}"), "Glob", &input, fd, &[&common[..], &[pattern]].concat());
    }
}

/// The first of these programs that is there.
fn program(names: &[&'static str], how: &str) -> Option<&'static str> {
    let is_there = |name: &&&str| {
        let status = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let found = names.iter().find(is_there).copied();
    if found.is_none() {
        println!("\nnot compared, because it is not installed: {how}");
    }
    found
}

fn compare(tree: &Tree, what: &str, tool: &str, input: &Value, program: Option<&str>, arguments: &[&str]) {
    let ours = || time(|| tree.run(tool, input));
    let theirs = || program.map(|program| run_program(program, arguments, &tree.root)).unwrap_or_default();
    let [theirs, ours] =
        by_turns(WARM_UP, RUNS, [&mut { theirs }, &mut { ours }]).map(|times| Spread::of(times, 1));
    if let Some(program) = program {
        row(&format!("{what}: {program}"), &theirs, "");
    }
    row(&format!("{what}: {tool}, {}", tree.run(tool, input).display), &ours, "");
    if program.is_some() {
        figure("    ratio", ours.median / theirs.median, "", "1.15");
    }
}

fn run_program(program: &str, arguments: &[&str], root: &Path) -> Duration {
    let mut command = Command::new(program);
    // No terminal reads a pipe, so nothing is spent on colors.
    command.args(arguments).current_dir(root).stdin(Stdio::null());
    time(|| command.output().expect("it was started before"))
}

/// Many files, and some of them open with other text.
struct Tree {
    root: std::path::PathBuf,
    context: CallContext,
    tools: Registry,
    runtime: tokio::runtime::Runtime,
}

impl Tree {
    fn new(root: &Path) -> Self {
        let mut documents = Vec::new();
        for folder in 0..FOLDERS {
            let path = root.join(format!("module_{}/part_{folder}", folder % 30));
            fs::create_dir_all(&path).expect("the folder is ours");
            for number in 0..FILES_PER_FOLDER {
                let file = folder * FILES_PER_FOLDER + number;
                let extension =
                    if number == 7 && folder.is_multiple_of(RARE / FILES_PER_FOLDER) { "md" } else { "rs" };
                let path = path.join(format!("file_{number}.{extension}"));
                fs::write(&path, content(file, "saved")).expect("the folder is ours");
                if file.is_multiple_of(FILES / BUFFERS) {
                    documents.push(document(&path, &content(file, "typed")));
                }
            }
        }
        let path = AbsPath::new(root).expect("it is absolute");
        let workspace = Workspace::new(Arc::new(Editor(documents)), vec![path.clone()], path.clone());
        let context = CallContext {
            call_id: CallId::generate(),
            workspace: Arc::new(workspace),
            shell: Arc::new(Shell::new(path)),
            agents: Arc::default(),
            catalog: Arc::default(),
            private_hosts: Arc::default(),
            may_read: Arc::new(|_, _| true),
            sandbox: None,
            resolved: ResolvedPaths::default(),
            cancel: CancellationToken::new(),
            progress: Arc::new(|_| {}),
            text_limit: None,
            ask: None,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
        Self { root: root.to_owned(), context, tools: built_in(), runtime }
    }

    fn run(&self, tool: &str, input: &Value) -> ToolOutput {
        let tool = self.tools.find(tool).expect("it is built in");
        self.runtime.block_on(async {
            let plan = tool.plan(input.clone(), &self.context).await.expect("the arguments are good");
            match plan.action {
                CallAction::Run(run) => run(self.context.clone()).await.expect("the search works"),
                CallAction::Change(_)
                | CallAction::Show(_)
                | CallAction::Delegate(_)
                | CallAction::Ask(_)
                | CallAction::SetMode(_)
                | CallAction::SetTodos(_)
                | CallAction::Team(_)
                | CallAction::Use(_) => {
                    panic!("a search changes nothing")
                }
            }
        })
    }
}

fn content(file: usize, state: &str) -> String {
    let mut text = format!("// {state}\n");
    for line in 0..LINES_PER_FILE {
        let _ = writeln!(text, "    let value_{line} = function_{file}(argument, \"{line}\");");
    }
    if file.is_multiple_of(RARE) {
        let _ = writeln!(text, "    needle_{file}();");
    }
    text
}

fn document(path: &Path, text: &str) -> DocumentSnapshot {
    let path = AbsPath::new(path).expect("it is absolute");
    let uri = format!("file://{path}");
    let language_id = "rust".to_owned();
    DocumentSnapshot { uri, path: Some(path), language_id, version: 2, text: Rope::from_str(text) }
}

/// An editor that has documents open and does nothing.
struct Editor(Vec<DocumentSnapshot>);

#[async_trait]
impl Host for Editor {
    fn document(&self, target: &Target) -> Option<DocumentSnapshot> {
        self.0.iter().find(|document| document.target() == *target).cloned()
    }

    fn documents(&self) -> Vec<DocumentSnapshot> {
        self.0.clone()
    }

    async fn edit_document(&self, _edit: DocumentEdit) -> DocumentEditOutcome {
        DocumentEditOutcome::Closed
    }

    fn observe_documents(&self, _observer: Weak<dyn DocumentObserver>) {}

    fn can_save(&self) -> bool {
        false
    }

    async fn save_document(&self, _target: &Target) -> SaveOutcome {
        SaveOutcome::NotOpen
    }
}
