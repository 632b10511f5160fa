//! What the sandbox costs a command: `true` in either kind beside plain `true`.
//!
//! Rule: the helper is started as the server starts it, for a workspace with the files it looks for; times stand beside
//! those of plain `true` and of bubblewrap alone, measured by turns.
//!
//! Run it with `cargo build --release && cargo bench -p kode-e2e --bench sandbox`.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot measure ends by panicking"
)]
#![allow(clippy::print_stdout, reason = "its table is what it is for")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kode_e2e::measure::{Spread, by_turns, figure, heading, row, time};
use serde_json::{Value, json};

/// Runs that are not counted.
const WARM_UP: usize = 5;
/// Runs of each that are counted, by turns.
const RUNS: usize = 60;
/// Bubblewrap, where Debian has it.
const BUBBLEWRAP: &str = "/usr/bin/bwrap";
/// The namespaces the sandbox has, and nothing more.
const ALONE: [&str; 14] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-net",
    "--unshare-ipc",
    "--unshare-uts",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--proc",
    "/proc",
    "--dev",
    "/dev",
    "true",
];

fn main() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let base = folder.path().canonicalize().expect("it is there");
    lay_out(&base);
    let program = kode_e2e::binary();
    println!("{}", program.display());
    let bubblewrap = request(&base, "bubblewrap", json!({ "name": "bubblewrap", "program": BUBBLEWRAP }));
    let landlock = request(&base, "landlock", json!({ "name": "landlock" }));
    let times = by_turns(
        WARM_UP,
        RUNS,
        [
            &mut || time_of(Command::new("true").current_dir(base.join("ws")), None),
            &mut || time_of(Command::new(BUBBLEWRAP).args(ALONE), None),
            &mut || sandboxed(&program, &base, &bubblewrap),
            &mut || sandboxed(&program, &base, &landlock),
        ],
    );
    let [plain, alone, bubblewrap, landlock] = times.map(|times| Spread::of(times, 1));
    heading(&format!("a command, start to end, {RUNS} runs"));
    row("plain `true`", &plain, "");
    row("bubblewrap alone", &alone, "");
    row("sandboxed `true`, bubblewrap", &bubblewrap, "");
    row("sandboxed `true`, landlock", &landlock, "");
    let over = |spread: &Spread| (spread.median - plain.median) * 1e3;
    figure("bubblewrap over plain", over(&bubblewrap), " ms", "15 ms");
    figure("landlock over plain", over(&landlock), " ms", "15 ms");
}

/// A workspace of a size that is common, with a repository.
fn lay_out(base: &Path) {
    for name in ["ws/.git/config", "ws/.git/hooks/pre-commit", "ws/.vscode/tasks.json", "tmp/x", "command/x"]
    {
        write(&base.join(name));
    }
    for folder in 0..50 {
        for file in 0..20 {
            write(&base.join(format!("ws/src/{folder}/{file}.rs")));
        }
    }
}

fn write(path: &Path) {
    fs::create_dir_all(path.parent().expect("a file has a folder")).expect("it is ours");
    fs::write(path, "text\n").expect("it is ours");
}

fn request(base: &Path, name: &str, kind: Value) -> Vec<u8> {
    let control = base.join(format!("control-{name}"));
    fs::create_dir(&control).expect("it is ours");
    let request = json!({
        "policy": {
            "kind": kind,
            "writable": [base.join("ws")],
            "scratch": base.join("tmp"),
            "readOnly": [],
            "hidden": ["/etc/shadow", "/etc/gshadow", "/root/.npmrc", "/root/.ssh"],
            "home": null,
            "network": { "name": "off" },
            "limits": { "processes": 4096, "openFiles": 65536, "fileSize": 1_u64 << 34 },
            "input": "none",
        },
        "control": control,
    })
    .to_string();
    let length = u32::try_from(request.len()).expect("it is small");
    [length.to_be_bytes().as_slice(), request.as_bytes()].concat()
}

fn sandboxed(program: &Path, base: &Path, request: &[u8]) -> Duration {
    let mut command = Command::new(program);
    command.args(["__sandbox", "--", "true"]).current_dir(base.join("ws"));
    time_of(&mut command, Some(request))
}

fn time_of(command: &mut Command, request: Option<&[u8]>) -> Duration {
    command.stdin(if request.is_some() { Stdio::piped() } else { Stdio::null() });
    time(|| {
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut stdin = child.stdin.take();
        if let (Some(stdin), Some(request)) = (&mut stdin, request) {
            stdin.write_all(request).expect("the helper reads");
        }
        let status = child.wait().expect("a child can be waited for");
        assert!(status.success(), "{command:?}: {status}");
        drop(stdin);
    })
}
