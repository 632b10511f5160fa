//! Nothing: this package is there for its dependency.
//!
//! Rule: the targets are defined elsewhere.
