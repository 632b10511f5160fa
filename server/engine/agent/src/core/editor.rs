//! The editor state that the model was given last.

use std::sync::Mutex;

use crate::core::lock;
use kode_record::prompt::EditorContext;

/// The editor state of the newest prompt that carried one.
#[derive(Debug, Default)]
pub(crate) struct EditorMemo(Mutex<Option<EditorContext>>);

impl EditorMemo {
    /// Notes the state of a prompt. False when the prompt before carried the same.
    pub(crate) fn note(&self, context: &EditorContext) -> bool {
        let before = lock(&self.0).replace(context.clone());
        before.as_ref() != Some(context)
    }

    /// Forgets the state, so that the next prompt carries it in any case.
    pub(crate) fn forget(&self) {
        lock(&self.0).take();
    }
}
