//! Prints the page of all strings that people read, for a review of them as a list.
//!
//! Rule: the page is made from the sources alone.

#![allow(clippy::print_stdout, reason = "the page goes to standard output")]

use std::path::Path;

use kode_e2e::strings::page;

fn main() {
    print!("{}", page(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..")));
}
