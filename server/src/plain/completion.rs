//! `textDocument/completion` in prompts: what `agent/complete` answers, for every editor that completes.
//!
//! Rule: answers in chat documents and prompt buffers alone, with an edit of as little as all answers have in common at the
//! cursor; nothing is left to be resolved.

use std::sync::Arc;

use kode_engine::agent::input::complete::{Completion, CompletionKind, word_at};
use lsp_types::{
    CompletionItem, CompletionItemKind, CompletionList, CompletionParams, CompletionTextEdit,
    InsertTextFormat, TextEdit,
};

use super::{PlainFrontEnd, chat};
use crate::agent::candidates;
use crate::convert::error::RequestError;

/// The typed text to be asked: a mention and its content, or a command.
pub(crate) const TRIGGERS: [&str; 5] = ["@", "/", "#", ":", "\""];

/// The completions at the cursor; `None` where no prompt is.
pub(crate) async fn complete(
    front_end: &Arc<PlainFrontEnd>,
    params: &CompletionParams,
) -> Result<Option<CompletionList>, RequestError> {
    let place = &params.text_document_position;
    let connection = &front_end.connection;
    let Some(document) = connection.documents.snapshot(&place.text_document.uri) else { return Ok(None) };
    let encoding = connection.documents.encoding();
    let cursor = encoding.byte_offset(&document.text, place.position);
    let Some((prompt, session)) = chat::prompt_at(&document, cursor) else { return Ok(None) };
    let text = document.text.byte_slice(prompt.clone()).to_string();
    let Some(word) = word_at(&text, text.len()) else { return Ok(None) };
    let agent = Arc::clone(front_end.agent()?);
    let session = session.and_then(|id| agent.engine.session(&id).ok());
    let mut found = candidates(&agent, session.as_deref(), word).await?;
    let typed = &text[word.start..];
    let mut kept = typed.len() - name(typed).len();
    if connection.facts.get().is_some_and(|facts| facts.completes_words) {
        // Other completions could only follow the existing text.
        found.retain(|found| found.insert.starts_with(&typed[..kept]));
    } else if !found.iter().all(|found| found.insert.starts_with(&typed[..kept])) {
        kept = word.sign.len_utf8();
    }
    let range = encoding.range(&document.text, prompt.start + word.start + kept..cursor);
    let items = found.into_iter().enumerate().map(|(at, found)| item(at, found, kept, range));
    // The matches are decided here, by more than the beginning of the word.
    Ok(Some(CompletionList { is_incomplete: true, items: items.collect() }))
}

/// The name that a text ends with: what a client replaces that honors no ranges.
fn name(text: &str) -> &str {
    let is_part = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '$');
    let before = text.trim_end_matches(is_part);
    text[before.len()..].trim_start_matches(|char: char| char.is_ascii_digit())
}

/// An item that puts in what comes behind the first `kept` bytes.
fn item(at: usize, found: Completion, kept: usize, range: lsp_types::Range) -> CompletionItem {
    let Completion { kind, label, insert, detail } = found;
    let insert = insert[kept..].to_owned();
    CompletionItem {
        label,
        kind: Some(match kind {
            CompletionKind::File => CompletionItemKind::FILE,
            CompletionKind::Folder => CompletionItemKind::FOLDER,
            CompletionKind::Diagnostics | CompletionKind::Diff | CompletionKind::Session => {
                CompletionItemKind::REFERENCE
            }
            CompletionKind::Command => CompletionItemKind::FUNCTION,
            CompletionKind::Skill => CompletionItemKind::MODULE,
        }),
        detail: (!detail.is_empty()).then_some(detail),
        sort_text: Some(format!("{at:04}")),
        filter_text: Some(insert.clone()),
        insert_text_format: Some(InsertTextFormat::PLAIN_TEXT),
        text_edit: Some(CompletionTextEdit::Edit(TextEdit { range, new_text: insert })),
        ..CompletionItem::default()
    }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_text_ends_with_a_name_as_old_clients_see_it() {
        for (text, expected) in [
            ("@gree", "gree"),
            ("@", ""),
            ("@src/ma", "ma"),
            ("@my-file_2", "file_2"),
            ("@12", ""),
            ("@1a", "a"),
            ("@äb", "b"),
            ("@\"my no", "no"),
            ("/compact", "compact"),
        ] {
            assert_eq!(name(text), expected, "{text}");
        }
    }
}
