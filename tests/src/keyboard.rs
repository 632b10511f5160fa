//! Typing for the benchmarks, past the scripted editor, which would check all of a document for each key.
//!
//! Rule: a keystroke is a notification of its own; many are sent at once, and a request behind them whose answer says that
//! all have been taken.

use std::cell::Cell;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::connection::frame;
use crate::editor::Typing;
use crate::measure::time;

/// The keys of one run.
pub const KEYSTROKES: u32 = 500;

/// Opens a document that is larger than a message may be: its second half is pasted.
pub fn open_large(client: &Client, uri: &str, text: &str) {
    let (first, second) = text.split_at(text.len() / 2);
    client.editor.open(uri, first);
    client.editor.type_text(uri, &Typing::at(u16::MAX, second));
    client.call("textDocument/hover", hover(uri));
}

/// A request that is answered when all before it has been taken.
fn hover(uri: &str) -> Value {
    json!({ "textDocument": { "uri": uri }, "position": { "line": 0, "character": 0 } })
}

/// Types into one document.
pub struct Keyboard<'a> {
    client: &'a Client,
    /// The document.
    pub uri: String,
    lines: usize,
    typed: Cell<u32>,
}

impl<'a> Keyboard<'a> {
    /// Types into an open document with this many lines.
    #[must_use]
    pub fn new(client: &'a Client, uri: &str, lines: usize) -> Self {
        Self { client, uri: uri.to_owned(), lines, typed: Cell::new(0) }
    }

    /// The keys so far.
    #[must_use]
    pub fn typed(&self) -> u32 {
        self.typed.get()
    }

    /// Types, and waits until the document has it.
    pub fn type_some(&self) -> Duration {
        self.type_and(|| drop(self.client.call("textDocument/hover", hover(&self.uri))))
    }

    /// Types at one place, another one each time, and does what waits for it.
    pub fn type_and(&self, wait: impl FnOnce()) -> Duration {
        let first = self.typed.get();
        self.typed.set(first + KEYSTROKES);
        let line = 2 + (first as usize).wrapping_mul(7_919) % (self.lines - 1);
        let mut frames = Vec::new();
        for key in 0..KEYSTROKES {
            let at = json!({ "line": line, "character": key });
            // Versions of the editor's own edits come before.
            let version = 1_000 + first + key;
            let letter = char::from(b'a' + u8::try_from(key % 26).unwrap_or_default());
            let params = json!({
                "textDocument": { "uri": self.uri, "version": version },
                "contentChanges": [{ "range": { "start": at, "end": at }, "text": letter }],
            });
            let message = json!({ "jsonrpc": "2.0", "method": "textDocument/didChange", "params": params });
            frames.extend(frame(message.to_string().as_bytes()));
        }
        time(|| {
            self.client.send_bytes(frames);
            wait();
        })
    }
}
