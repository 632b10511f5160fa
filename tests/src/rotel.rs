//! Rotel: an OpenTelemetry collector that others wrote, so that nothing of ours judges our export.
//!
//! Rule: it runs only where `KODE_LS_ROTEL` names it, which `tests/run` sees to; then it has to work.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::LIMIT;
use crate::process::Process;

/// The variable that names its program.
const PROGRAM: &str = "KODE_LS_ROTEL";

/// How often its port is tried.
const POLL: Duration = Duration::from_millis(20);

/// A running collector that forwards all it takes.
#[derive(Debug)]
pub struct Rotel {
    address: String,
    process: Process,
}

impl Rotel {
    /// Starts one that forwards to another collector, with its files in `folder`; none where no program is named.
    ///
    /// # Panics
    /// When it cannot be started or does not listen.
    #[must_use]
    pub fn start(forward_to: &str, folder: &Path) -> Option<Self> {
        let program = env::var(PROGRAM).ok()?;
        let free =
            || TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
        let (http, grpc) = (free().to_string(), free().to_string());
        let file = |name: &str| folder.join(name).to_str().expect("paths of tests are text").to_owned();
        let (pid, log) = (file("rotel.pid"), file("rotel.log"));
        let arguments = [
            "start",
            "--otlp-http-endpoint",
            &http,
            "--otlp-grpc-endpoint",
            &grpc,
            "--pid-file",
            &pid,
            "--log-file",
            &log,
            "--exporter",
            "otlp",
            "--otlp-exporter-endpoint",
            forward_to,
            "--otlp-exporter-protocol",
            "http",
        ];
        let mut process = Process::start_program(Path::new(&program), &arguments, None, &[]);
        let until = Instant::now() + LIMIT;
        while TcpStream::connect(&http).is_err() {
            let ended = process.child().try_wait().expect("a child can be asked for");
            assert!(ended.is_none() && Instant::now() < until, "Rotel does not listen at {http}: {ended:?}");
            thread::sleep(POLL);
        }
        Some(Self { address: format!("http://{http}"), process })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Ends it, after it has forwarded all it took.
    ///
    /// # Panics
    /// When it does not end.
    pub fn end(mut self) {
        let id = self.process.child().id().to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().expect("kill is there");
        assert!(sent.success(), "Rotel is told to end");
        self.process.wait("Rotel");
    }
}
