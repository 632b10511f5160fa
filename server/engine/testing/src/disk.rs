//! Disks for tests: one in memory that power cuts can tear, and one that fails at a chosen call.
//!
//! Rule: both behave as the trait of real disks says, and nothing else of the journal knows them.

pub mod faults;
pub mod memory;
