//! The helper of sandboxes as a program of its own, which `kode-ls` starts for commands and for the servers of others.
//!
//! Rule: it does nothing that `kode-ls` does not do in its place, and it links nothing but what that needs.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

use std::process::ExitCode;

#[cfg(any(target_os = "linux", target_os = "macos"))]
fn main() -> ExitCode {
    kode_engine::process::sandbox::helper::program_main(std::env::args_os().skip(1))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
#[expect(clippy::print_stderr, reason = "there is nothing else to say it in")]
fn main() -> ExitCode {
    eprintln!("kode-ls-helper: this system has no sandbox");
    ExitCode::FAILURE
}
