//! The matchers of other agents, each in a process of its own.
//!
//! Rule: a matcher is what its package has, called as its own tool calls it; the programs in `tests/matchers` only carry
//! requests to it. The installer names the folder of the packages in `KODE_MATCHERS`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cases::Case;

/// Cases between two lines of progress.
const PROGRESS: usize = 2_000;

/// A matcher of another agent.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    program: &'static str,
    script: &'static str,
}

/// The matchers, in the order of their columns.
pub(crate) fn all() -> [Peer; 3] {
    [
        Peer { name: "pi", program: "node", script: "pi.mjs" },
        Peer { name: "gemini-cli", program: "node", script: "gemini.mjs" },
        Peer { name: "aider", program: "python3", script: "aider.py" },
    ]
}

impl Peer {
    /// The text that the matcher makes of each case; `None` where it refuses.
    pub(crate) fn answers(&self, cases: &[Case]) -> Vec<Option<String>> {
        let packages = std::env::var_os("KODE_MATCHERS").map(PathBuf::from);
        let packages = packages.expect("KODE_MATCHERS names what tests/tools/install-matchers.sh prints");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("matchers").join(self.script);
        let mut child = Command::new(self.program)
            .arg(script)
            .arg(packages)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", self.program));
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut answers = Vec::with_capacity(cases.len());
        for (number, case) in cases.iter().enumerate() {
            writeln!(input, "{}", json!({ "text": case.text, "old": case.old, "new": case.new })).unwrap();
            input.flush().unwrap();
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            let answer: Value =
                serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}: {error}: {line}", self.name));
            answers.push(answer["text"].as_str().map(str::to_owned));
            if (number + 1) % PROGRESS == 0 {
                eprintln!("{}: {} of {} cases", self.name, number + 1, cases.len());
            }
        }
        drop(input);
        assert!(child.wait().unwrap().success(), "{} ends well", self.name);
        answers
    }
}
