//! The documents that the wrapped server has open.
//!
//! Rule: those of the editor are known by their version. A file that the agent's tools ask about is open while they ask, and a
//! document of the editor replaces it.

use std::borrow::Cow;
use std::collections::HashMap;

use kode_engine::base::paths::Target;
use serde::Deserialize;
use serde_json::json;

use super::body::OutgoingFrame;
use crate::wrapped::ClosedText;

/// The start of the schemes of documents that only the agent has.
const OWN_SCHEME: &str = "kode-";

/// The document of a message, with its version and text.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DocumentParams<'a> {
    #[serde(borrow)]
    pub(super) text_document: DocumentName<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DocumentName<'a> {
    #[serde(borrow)]
    pub(super) uri: Cow<'a, str>,
    #[serde(default)]
    pub(super) version: Option<i64>,
    #[serde(borrow, default)]
    pub(super) language_id: Option<Cow<'a, str>>,
}

impl DocumentName<'_> {
    /// Whether only the agent has it.
    pub(super) fn is_of_agent(&self) -> bool {
        self.uri.starts_with(OWN_SCHEME)
    }
}

/// The documents that are open in the wrapped server.
#[derive(Debug, Default)]
pub(super) struct OpenTexts(HashMap<Target, ServerText>);

#[derive(Debug)]
struct ServerText {
    uri: String,
    /// The version in the editor; `None` for a file that is open for the agent's tools.
    version: Option<i64>,
    /// The calls of the tools that it is open for.
    calls: usize,
}

impl OpenTexts {
    /// Notes that the editor opens a document. Returns what the server has to be told before.
    pub(super) fn open(&mut self, target: Target, uri: &str, version: i64) -> Option<OutgoingFrame> {
        let known = self.0.get(&target);
        let calls = known.map_or(0, |known| known.calls);
        let before = known.filter(|known| known.version.is_none()).map(|known| close(&known.uri));
        self.0.insert(target, ServerText { uri: uri.to_owned(), version: Some(version), calls });
        before
    }

    /// Notes that the editor changes a document.
    pub(super) fn change(&mut self, target: &Target, version: i64) {
        if let Some(known) = self.0.get_mut(target).filter(|known| known.version.is_some()) {
            known.version = Some(version);
        }
    }

    /// Notes that the editor closes a document.
    pub(super) fn close(&mut self, target: &Target) {
        self.0.remove(target);
    }

    /// Forgets all documents: another server has none.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The version of a document of the editor.
    pub(super) fn version(&self, target: &Target) -> Option<i64> {
        self.0.get(target)?.version
    }

    /// The name that the server has for a document.
    pub(super) fn uri(&self, target: &Target) -> Option<&str> {
        self.0.get(target).map(|known| known.uri.as_str())
    }

    /// Opens a file for a call of the tools where it is not open. Returns what the server has to be told before the call.
    pub(super) fn lend(&mut self, file: &ClosedText) -> Option<OutgoingFrame> {
        if let Some(known) = self.0.get_mut(&file.target) {
            known.calls += 1;
            return None;
        }
        let text = file.text.as_deref()?;
        let known = ServerText { uri: file.uri.clone(), version: None, calls: 1 };
        self.0.insert(file.target.clone(), known);
        let document = json!({ "uri": file.uri, "languageId": file.language, "version": 0, "text": text });
        Some(OutgoingFrame::notification("textDocument/didOpen", &json!({ "textDocument": document })))
    }

    /// Notes that a call of the tools has ended. Returns what the server has to be told then.
    pub(super) fn give_back(&mut self, target: &Target) -> Option<OutgoingFrame> {
        let known = self.0.get_mut(target)?;
        known.calls = known.calls.saturating_sub(1);
        if known.calls > 0 || known.version.is_some() {
            return None;
        }
        let closed = close(&known.uri);
        self.0.remove(target);
        Some(closed)
    }
}

fn close(uri: &str) -> OutgoingFrame {
    OutgoingFrame::notification("textDocument/didClose", &json!({ "textDocument": { "uri": uri } }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wrapped::key;

    fn said(frame: Option<OutgoingFrame>) -> Option<String> {
        frame.map(|frame| {
            let message: serde_json::Value = serde_json::from_slice(&frame.0.concat()).unwrap();
            message["method"].as_str().unwrap().to_owned()
        })
    }

    fn file() -> ClosedText {
        let uri = "file:///w/a%20b.py".to_owned();
        let (target, language, text) = (key(&uri), "python".to_owned(), Some("x".to_owned()));
        ClosedText { target, uri, language, text }
    }

    #[test]
    fn a_closed_file_is_open_while_calls_are_about_it() {
        let (mut texts, file) = (OpenTexts::default(), file());
        assert_eq!(said(texts.lend(&file)).as_deref(), Some("textDocument/didOpen"));
        assert_eq!(said(texts.lend(&file)), None);
        assert_eq!(said(texts.give_back(&file.target)), None);
        assert_eq!(said(texts.give_back(&file.target)).as_deref(), Some("textDocument/didClose"));
    }

    #[test]
    fn a_document_of_the_editor_replaces_the_file_and_stays() {
        let (mut texts, file) = (OpenTexts::default(), file());
        texts.lend(&file);
        let before = texts.open(key("file:///w/a b.py"), "file:///w/a b.py", 3);
        assert_eq!(said(before).as_deref(), Some("textDocument/didClose"));
        assert_eq!(said(texts.give_back(&file.target)), None);
        assert_eq!(
            (texts.version(&file.target), texts.uri(&file.target)),
            (Some(3), Some("file:///w/a b.py"))
        );
        texts.change(&file.target, 4);
        assert_eq!(texts.version(&file.target), Some(4));
        texts.close(&file.target);
        assert_eq!(texts.uri(&file.target), None);
    }
}
