//! Files that are moved: the changes that go with it, such as those of imports.
//!
//! Rule: the servers are asked before anything is moved, and their edits are of the texts at the old places. Where the servers of an
//! editor do not compute them, none of ours is started for it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::WorkspaceServers;
use crate::editor::FileRequest;
use crate::instance::Instance;
use crate::positions::Encoding;
use crate::running::Feature;
use crate::uri;
use kode_base::paths::Target;
use kode_text::edit::FileChange;
use kode_text::workspace::Workspace;
use kode_text::workspace::language::LanguageError;

const MOVES: Feature = Feature { capability: "workspace", name: "moving of files" };
const METHOD: &str = "workspace/willRenameFiles";

/// The old place of a file, and the new one.
type MovedFile = (Target, Target);

impl WorkspaceServers {
    /// Asks the server of each moved file; about all files of one server at once.
    pub(super) async fn ask_moves(
        &self,
        workspace: &Workspace,
        moved: &[MovedFile],
    ) -> Result<Vec<FileChange>, LanguageError> {
        if self.editor.is_offered() {
            let is_asked = self.editor.moves_files();
            return if is_asked { self.moves_of_server(workspace, moved).await } else { Ok(Vec::new()) };
        }
        let mut of_instances: Vec<(Arc<Instance>, Vec<MovedFile>)> = Vec::new();
        for one in moved {
            let instance = match self.instance(workspace, &one.0).await {
                Ok(instance) => instance,
                Err(LanguageError::NoServer(_)) => continue,
                Err(error) => return Err(error),
            };
            match of_instances.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &instance)) {
                Some((_, files)) => files.push(one.clone()),
                None => of_instances.push((instance, vec![one.clone()])),
            }
        }
        let mut changes = Vec::new();
        for (instance, files) in of_instances {
            if instance.running().await?.moves_files() {
                changes.extend(self.moves_of_server(workspace, &files).await?);
            }
        }
        Ok(changes)
    }

    /// Asks the one server of these files.
    async fn moves_of_server(
        &self,
        workspace: &Workspace,
        moved: &[MovedFile],
    ) -> Result<Vec<FileChange>, LanguageError> {
        let Some((first, _)) = moved.first() else { return Ok(Vec::new()) };
        let files: Vec<Value> = moved
            .iter()
            .map(|(old, new)| json!({ "oldUri": uri::of_target(old), "newUri": uri::of_target(new) }))
            .collect();
        let parameters = |_: &Target, _: Encoding| json!({ "files": files });
        let about = FileRequest { target: first, file: None, is_exact: false };
        let found = self.ask(workspace, about, (MOVES, METHOD), parameters).await?;
        let edits = found.first_edit().into_iter().collect();
        found.changes(edits, workspace).await
    }
}
