//! The surroundings of a workspace's servers: folders, variables, secrets, sandbox and limits.
//!
//! Rule: plain data, made again when the settings change.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use kode_base::paths::AbsPath;
use kode_base::secret::Secret;
use kode_config::mcp::config::{McpLimits, ServerDefinition};
use kode_process::sandbox::Sandbox;

/// The variable that tells programs which project they work for.
pub(crate) const PROJECT_FOLDER: &str = "CLAUDE_PROJECT_DIR";

/// How servers are started: the common part of a workspace.
pub(crate) struct ServerSurroundings {
    /// The workspace folders.
    pub(crate) roots: Vec<AbsPath>,
    /// The folder that programs start in.
    pub(crate) project: AbsPath,
    /// Variables of the environment that settings give to all that is started.
    pub(crate) variables: Vec<(String, String)>,
    /// The denials of every server without an entry of its own.
    pub(crate) secrets: Vec<Secret>,
    /// The sandbox, where there is one.
    pub(crate) sandbox: Option<Arc<Sandbox>>,
    /// The product's folder for its state.
    pub(crate) state: AbsPath,
    /// Whether users can be asked to open pages.
    pub(crate) asks_for_pages: bool,
    /// The folder for caches of servers; none where the machine has no place for it.
    pub(crate) cache: Option<AbsPath>,
    /// Times and sizes.
    pub(crate) limits: McpLimits,
}

impl ServerSurroundings {
    /// The folder for what a server fetches, made if need be.
    pub(crate) fn cache_of(&self, definition: &ServerDefinition) -> io::Result<AbsPath> {
        let cache = self.cache.as_ref().ok_or_else(|| io::Error::other("there is no folder for caches"))?;
        let folder = cache.join(&definition.digest);
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// The sandbox that the programs of a server run in, where there is one.
    pub(crate) fn sandbox_of(&self, definition: &ServerDefinition) -> Option<Arc<Sandbox>> {
        self.sandbox.clone().filter(|_| definition.sandboxed)
    }

    /// The variables of the programs of a server, besides its entry's own.
    pub(crate) fn variables_of_programs(&self, definition: &ServerDefinition) -> BTreeMap<String, String> {
        let mut variables: BTreeMap<String, String> = self.variables.iter().cloned().collect();
        variables.insert(PROJECT_FOLDER.to_owned(), self.project.to_string());
        variables.extend(definition.plugin.iter().flat_map(|plugin| plugin.variables()));
        variables
    }
}
