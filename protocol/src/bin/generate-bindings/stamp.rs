//! The stamp of generated files: version, schema hash, and the command that makes them.
//!
//! Rule: a file names the command that makes it.

/// Regenerates stale files.
pub(crate) const COMMAND: &str = "cargo run -p kode-protocol --bin generate-bindings";

/// The schema that a generated file was made from.
pub(crate) struct Stamp {
    pub(crate) protocol_version: u32,
    pub(crate) schema_hash: String,
}
