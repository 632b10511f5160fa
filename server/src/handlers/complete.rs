//! `agent/complete`: what can stand at the cursor of a prompt. `textDocument/completion` answers the same.
//!
//! Rule: answered from lists that are made beside everything else; nothing else waits for it.

use std::sync::Arc;

use kode_engine::agent::input::complete::{CompletionKind, word_at};
use kode_protocol as wire;

use crate::agent::candidates;
use crate::backend::Backend;
use crate::convert::error::RequestError;
use crate::handlers::params::Params;
use crate::lsp::PositionEncoding;

/// Says what can stand at the cursor.
pub(crate) async fn complete(
    backend: &Backend,
    params: Params,
) -> Result<wire::CompleteResult, RequestError> {
    let wire::CompleteParams { session_id, text, cursor } = params.read()?;
    let agent = Arc::clone(backend.agent()?);
    let session = session_id.map(|id| backend.session(&id)).transpose()?;
    let encoding = backend.connection().documents.encoding();
    let Some(word) = word_at(&text, byte_at(encoding, &text, cursor)) else {
        return Ok(wire::CompleteResult { start: cursor, items: Vec::new() });
    };
    let found = candidates(&agent, session.as_deref(), word).await?;
    let items = found.into_iter().map(|found| wire::CompletionItem {
        kind: kind(found.kind),
        label: found.label,
        insert_text: found.insert,
        detail: found.detail,
    });
    Ok(wire::CompleteResult { start: encoding.units(&text[..word.start]), items: items.collect() })
}

fn kind(kind: CompletionKind) -> wire::CompletionKind {
    match kind {
        CompletionKind::File => wire::CompletionKind::File,
        CompletionKind::Folder => wire::CompletionKind::Folder,
        CompletionKind::Diagnostics => wire::CompletionKind::Diagnostics,
        CompletionKind::Diff => wire::CompletionKind::Diff,
        CompletionKind::Session => wire::CompletionKind::Session,
        CompletionKind::Command => wire::CompletionKind::Command,
        CompletionKind::Skill => wire::CompletionKind::Skill,
    }
}

/// The byte that a place counted in the client's encoding means: the end when it is past it, the beginning of a
/// character when it is inside.
fn byte_at(encoding: PositionEncoding, text: &str, place: u32) -> usize {
    let mut before = 0;
    for (at, char) in text.char_indices() {
        let length = match encoding {
            PositionEncoding::Utf8 => char.len_utf8(),
            PositionEncoding::Utf16 => char.len_utf16(),
            PositionEncoding::Utf32 => 1,
        };
        if before + length > place as usize {
            return at;
        }
        before += length;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_in_the_text_is_counted_as_the_client_counts() {
        for (encoding, place) in
            [(PositionEncoding::Utf8, 5), (PositionEncoding::Utf16, 3), (PositionEncoding::Utf32, 2)]
        {
            assert_eq!(byte_at(encoding, "😀a@b", place), 5, "{encoding:?}");
            assert_eq!(encoding.units("😀a"), place);
        }
        assert_eq!(byte_at(PositionEncoding::Utf16, "😀", 1), 0);
        assert_eq!(byte_at(PositionEncoding::Utf16, "a", 9), 1);
    }
}
