//! The `kode-ls` program. Everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    kode_ls::cli::main()
}
