//! Conversions between LSP types and the engine's.
//!
//! Rule: pure functions over values; nothing here sends, waits or keeps state.

pub(crate) mod newer;
pub mod position;

pub use position::PositionEncoding;
