//! Prints the page of the behaviors that kode-ls takes over from other agents.
//!
//! Rule: the page is made from the rows alone; a test compares the committed one with it.

#![allow(clippy::print_stdout, reason = "the page goes to standard output")]

use kode_e2e::behaviors::{conflicts, page, rows};

fn main() {
    print!("{}", page(&rows(), &conflicts()));
}
