//! How types of LSP look in the schema, for `lsp_types` does not describe itself.
//!
//! Rule: only names and shapes; nothing of these types ever exists, the fields hold the ones of `lsp_types`.

use schemars::JsonSchema;

/// A position in a document, counted in the position encoding that was negotiated by LSP.
#[derive(JsonSchema)]
#[schemars(rename = "Position")]
#[expect(dead_code, reason = "only described, never made")]
pub(crate) struct PositionShape {
    /// The line, from 0.
    line: u32,
    /// The code unit in the line, from 0.
    character: u32,
}

/// A range of a document, its end exclusive.
#[derive(JsonSchema)]
#[schemars(rename = "Range")]
#[expect(dead_code, reason = "only described, never made")]
pub(crate) struct RangeShape {
    /// Where it begins.
    start: PositionShape,
    /// Where it ends.
    end: PositionShape,
}
