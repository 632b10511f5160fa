//! The `kode-ls` program. Everything is in the library.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests write files and start programs"))]

use std::process::ExitCode;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    kode_ls::cli::main()
}
