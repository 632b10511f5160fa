//! aimock: a server of all three wire formats that others wrote, so that nothing of ours judges ours.
//!
//! Rule: it runs only where `KODE_LS_AIMOCK` names it, which `tests/run` sees to; then it has to work.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Value, json};

use crate::process::Process;

/// The variable that names aimock's program; node runs it.
const PROGRAM: &str = "KODE_LS_AIMOCK";

/// A running aimock.
#[derive(Debug)]
pub struct Aimock {
    base_url: String,
    _process: Process,
}

impl Aimock {
    /// Serves fixtures, which are written to `file`; none where no aimock is named.
    ///
    /// # Panics
    /// When it cannot be started or does not say where it listens.
    #[must_use]
    pub fn start(fixtures: &[Value], file: &Path) -> Option<Self> {
        let program = env::var(PROGRAM).ok()?;
        std::fs::write(file, json!({ "fixtures": fixtures }).to_string()).expect("fixtures can be written");
        let file = file.to_str().expect("paths of tests are text");
        let node = env::var("NODE").unwrap_or_else(|_| "node".to_owned());
        let arguments = [
            &program,
            "--port",
            "0",
            "--fixtures",
            file,
            "--strict",
            "--validate-on-load",
            "--chunk-size",
            "5",
        ];
        let environment = [("AIMOCK_STRICT_TURN_INDEX", "1")];
        let mut process = Process::start_program(Path::new(&node), &arguments, None, &environment);
        let stdout = BufReader::new(process.child().stdout.take().expect("stdout is a pipe"));
        let mut said = Vec::new();
        let mut lines = stdout.lines().map_while(Result::ok);
        let base_url = lines.find_map(|line| {
            let address = line.split_once("listening on ").map(|(_, address)| address.trim().to_owned());
            said.push(line);
            address
        });
        let base_url = base_url.unwrap_or_else(|| panic!("aimock does not listen: {said:?}"));
        // A thread has to read its further output, or it would wait at a full pipe.
        std::thread::spawn(move || lines.count());
        Some(Self { base_url, _process: process })
    }

    /// Where it listens.
    #[must_use]
    pub fn base_url(&self) -> &str {
        &self.base_url
    }
}
