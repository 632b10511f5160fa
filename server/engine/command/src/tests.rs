//! Checks of the reading of command lines, from single words to a comparison with a real shell.
//!
//! Rule: a line is called understood only if the shell does the same.

mod bounds;
mod differential;
mod properties;
mod risks;
mod rules;
pub(crate) mod tables;
mod touched;
