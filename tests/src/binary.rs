//! Where the program under test is.
//!
//! Rule: the tests run what cargo built beside them, or what `KODE_LS_BIN` names; they never build anything.

use std::env;
use std::path::PathBuf;

/// The program under test: `KODE_LS_BIN`, else `kode-ls` of the profile that the tests were built with.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn binary() -> PathBuf {
    if let Some(path) = env::var_os("KODE_LS_BIN") {
        return PathBuf::from(path);
    }
    let test = env::current_exe().expect("the test knows its own path");
    let deps = test.ancestors().find(|folder| folder.ends_with("deps")).expect("tests are in `deps`");
    let binary = deps.with_file_name(format!("kode-ls{}", env::consts::EXE_SUFFIX));
    assert!(
        binary.is_file(),
        "{} is not there: run `cargo build` first (with `--release` for release tests), or set KODE_LS_BIN",
        binary.display()
    );
    binary
}
