//! Checks of the reading of command lines, from single words to a comparison with a real shell.
//!
//! Rule: what is called understood is what the shell does.

mod bounds;
mod differential;
mod properties;
mod risks;
mod rules;
mod tables;
mod touched;
