//! The workspace, the shell and the tools that a session works with.

use std::sync::Arc;

use kode_process::shell::Shell;
use kode_text::workspace::Workspace;
use kode_tool::Registry;

/// The workspace, the shell and the tools that a session works with. Clones are the same ones.
#[derive(Clone)]
pub(crate) struct Environment {
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) shell: Arc<Shell>,
    pub(crate) tools: Arc<Registry>,
}
