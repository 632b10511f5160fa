//! The end-to-end tests: one binary, one module for each side of the program.
