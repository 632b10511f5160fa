//! Nothing: this package is there for its dependency.
//!
//! Rule: what is to be fuzzed, and how, is said elsewhere.
