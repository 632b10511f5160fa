//! The `kode-ls` binary.
//!
//! Rule: parse, start, serve; everything else is in the library.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use kode_ls::{backend, logging, transport};

/// The work of the server's own tasks is short; more threads would only cost start-up time.
const WORKER_THREADS: usize = 2;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if !arguments.iter().all(|argument| argument == "--stdio" || argument == "lsp") {
        let _ = writeln!(io::stderr(), "usage: kode-ls [lsp] [--stdio]");
        return ExitCode::from(2);
    }
    let _log = logging::init();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(WORKER_THREADS).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the runtime cannot start");
            return ExitCode::FAILURE;
        }
    };
    let ended = runtime.block_on(async {
        let (service, socket) = backend::service(backend::Options::default());
        let shared = service.inner().shared().clone();
        transport::serve(tokio::io::stdin(), tokio::io::stdout(), service, socket, &shared.lifecycle).await
    });
    // A read of stdin that is under way cannot be cancelled and must not keep the process alive.
    runtime.shutdown_timeout(Duration::ZERO);
    ended.into()
}
