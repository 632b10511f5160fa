//! The texts that a server has: the open documents of the editor, and the closed files that requests are about.
//!
//! Rule: a server gets a text when a request needs it, never because the user types. What it has is checked against the editor and
//! the disk before each request, so that no result is about an older text than the user sees.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::connection::{LanguageConnection, RequestFailure};
use crate::uri;
use kode_base::paths::{AbsPath, Target};
use kode_config::language_servers::LanguageServerDefinition;
use kode_text::file_text::FileText;
use kode_text::workspace::Workspace;

/// The most closed files that a server is given as open documents.
const MAX_CLOSED: usize = 8;

/// A text that a server has.
#[derive(Clone, Debug)]
pub(crate) struct SyncedText {
    /// The text.
    pub(crate) file: FileText,
    /// Its version in this server.
    pub(crate) version: i64,
    /// When the server got it.
    pub(crate) at: tokio::time::Instant,
}

/// The texts that a server has.
#[derive(Default)]
pub(crate) struct ServerDocuments {
    open: HashMap<Target, OpenDocument>,
    /// Counts the rounds of synchronization.
    round: u64,
}

struct OpenDocument {
    synced: SyncedText,
    /// Whether it is open in the editor.
    is_of_editor: bool,
    /// The last round in which a request was about it.
    used: u64,
}

impl ServerDocuments {
    /// Sees to it that the server has the text of every open document in `root`, and of `wanted`.
    ///
    /// # Errors
    /// A closed connection.
    pub(crate) async fn sync(
        &mut self,
        connection: &LanguageConnection,
        definition: &LanguageServerDefinition,
        root: &AbsPath,
        (workspace, wanted): (&Workspace, &[Target]),
    ) -> Result<(), RequestFailure> {
        self.round += 1;
        let is_served = |target: &Target| {
            target.file().is_some_and(|path| path.is_within(root) && definition.language_of(path).is_some())
        };
        let shown: HashMap<Target, i32> = workspace
            .documents()
            .into_iter()
            .map(|document| (document.target(), document.version))
            .filter(|(target, _)| is_served(target))
            .collect();
        for (target, version) in &shown {
            let known = self.open.get(target).filter(|known| known.is_of_editor);
            let known = known.and_then(|known| known.synced.file.version());
            if known != Some(*version) {
                self.update(connection, definition, workspace, target, true).await?;
            }
        }
        for target in wanted {
            if !shown.contains_key(target) {
                self.update(connection, definition, workspace, target, false).await?;
            }
            if let Some(known) = self.open.get_mut(target) {
                known.used = self.round;
            }
        }
        let others: Vec<Target> = self
            .open
            .keys()
            .filter(|one| !shown.contains_key(*one) && !wanted.contains(*one))
            .cloned()
            .collect();
        for target in others {
            // Its text in the editor is gone, or it may have changed on the disk meanwhile.
            self.update(connection, definition, workspace, &target, false).await?;
        }
        self.close_oldest(connection).await
    }

    /// Gives the server another text of a file, and returns its version. The text of the user stays in here.
    ///
    /// # Errors
    /// A closed connection.
    pub(crate) async fn propose(
        &mut self,
        connection: &LanguageConnection,
        definition: &LanguageServerDefinition,
        (target, text): (&Target, &str),
    ) -> Result<i64, RequestFailure> {
        match self.open.get_mut(target) {
            Some(known) => {
                known.synced.version += 1;
                let version = known.synced.version;
                connection.notify("textDocument/didChange", &whole_text(target, version, text)).await?;
                Ok(version)
            }
            None => {
                let language = target.file().and_then(|path| definition.language_of(path));
                let item = json!({
                    "uri": uri::of_target(target), "languageId": language.unwrap_or("plaintext"),
                    "version": 1, "text": text,
                });
                connection.notify("textDocument/didOpen", &json!({ "textDocument": item })).await?;
                Ok(1)
            }
        }
    }

    /// Gives the server the text of the user again.
    ///
    /// # Errors
    /// A closed connection.
    pub(crate) async fn withdraw(
        &mut self,
        connection: &LanguageConnection,
        target: &Target,
    ) -> Result<(), RequestFailure> {
        match self.open.get_mut(target) {
            Some(known) => {
                known.synced.version += 1;
                known.synced.at = tokio::time::Instant::now();
                let changed = whole_text(target, known.synced.version, &known.synced.file.text);
                connection.notify("textDocument/didChange", &changed).await
            }
            None => {
                let document = json!({ "textDocument": { "uri": uri::of_target(target) } });
                connection.notify("textDocument/didClose", &document).await
            }
        }
    }

    /// The text of a file that the server has.
    pub(crate) fn text(&self, target: &Target) -> Option<SyncedText> {
        self.open.get(target).map(|open| open.synced.clone())
    }

    /// All texts that the server has.
    pub(crate) fn texts(&self) -> HashMap<Target, SyncedText> {
        self.open.iter().map(|(target, open)| (target.clone(), open.synced.clone())).collect()
    }

    /// Sends the text as it is now, where the server has another; closes what cannot be read any more.
    async fn update(
        &mut self,
        connection: &LanguageConnection,
        definition: &LanguageServerDefinition,
        workspace: &Workspace,
        target: &Target,
        is_of_editor: bool,
    ) -> Result<(), RequestFailure> {
        let Ok(file) = workspace.text(target).await else { return self.close(connection, target).await };
        let uri = uri::of_target(target);
        match self.open.get_mut(target) {
            Some(known) => {
                let is_same = known.synced.file.text == file.text;
                known.synced.file = file;
                known.is_of_editor = is_of_editor;
                if is_same {
                    return Ok(());
                }
                known.synced.version += 1;
                known.synced.at = tokio::time::Instant::now();
                let synced = known.synced.clone();
                let changed = whole_text(target, synced.version, &synced.file.text);
                connection.notify("textDocument/didChange", &changed).await?;
                if !is_of_editor {
                    let saved = json!({ "textDocument": { "uri": uri } });
                    connection.notify("textDocument/didSave", &saved).await?;
                }
                Ok(())
            }
            None => {
                let path = target.file();
                let language = path.and_then(|path| definition.language_of(path)).unwrap_or("plaintext");
                let item: Value = json!({
                    "uri": uri, "languageId": language, "version": 1, "text": &*file.text,
                });
                let synced = SyncedText { file, version: 1, at: tokio::time::Instant::now() };
                let open = OpenDocument { synced, is_of_editor, used: self.round };
                self.open.insert(target.clone(), open);
                connection.notify("textDocument/didOpen", &json!({ "textDocument": item })).await
            }
        }
    }

    async fn close(
        &mut self,
        connection: &LanguageConnection,
        target: &Target,
    ) -> Result<(), RequestFailure> {
        if self.open.remove(target).is_none() {
            return Ok(());
        }
        let document = json!({ "textDocument": { "uri": uri::of_target(target) } });
        connection.notify("textDocument/didClose", &document).await
    }

    /// Closes the closed files that requests were about the longest time ago, as far as there are too many.
    async fn close_oldest(&mut self, connection: &LanguageConnection) -> Result<(), RequestFailure> {
        let mut closed: Vec<(u64, Target)> = self
            .open
            .iter()
            .filter(|(_, open)| !open.is_of_editor && open.used < self.round)
            .map(|(target, open)| (open.used, target.clone()))
            .collect();
        let all = self.open.values().filter(|open| !open.is_of_editor).count();
        closed.sort();
        for (_, target) in closed.into_iter().take(all.saturating_sub(MAX_CLOSED)) {
            self.close(connection, &target).await?;
        }
        Ok(())
    }
}

/// The parameters of a change of a whole text.
fn whole_text(target: &Target, version: i64, text: &str) -> Value {
    json!({
        "textDocument": { "uri": uri::of_target(target), "version": version },
        "contentChanges": [{ "text": text }],
    })
}
