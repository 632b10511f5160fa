//! Servers that the file of an agent describes itself: started with a sub-agent of its type, ended with that.
//!
//! Rule: they are servers like any other, held and named alike, and approved by their very text where the file is the
//! project's; only that sub-agent has their tools, and none of them holds it up for longer than its limit to start.

use std::sync::Arc;

use crate::Servers;
use kode_config::mcp::file_servers::FileServers;
use kode_config::policy::{Policy, PolicySource};
use kode_config::settings::{Declarations, TrustRequest};
use kode_permission::rules::names::is_mcp;
use kode_tool::{ErasedTool, ToolSource};

/// The settings, but for the servers: those of a file in the place of theirs.
struct FilePolicy {
    settings: Arc<dyn PolicySource>,
    file: FileServers,
}

impl PolicySource for FilePolicy {
    fn current(&self) -> Arc<Policy> {
        let policy = self.settings.current();
        let is_approved = |trust_request: &TrustRequest| self.settings.is_approved(trust_request);
        let servers = self.file.settled(&is_approved);
        let declared = Arc::new(Declarations { servers, ..Declarations::clone(&policy.declared) });
        Arc::new(Policy { declared, ..Policy::clone(&policy) })
    }
}

impl Servers {
    /// The servers that a file describes, in the surroundings of these. Starts nothing.
    pub(crate) fn of_file(&self, file: FileServers) -> Arc<Self> {
        self.like(|settings| Arc::new(FilePolicy { settings, file }))
    }

    /// The tools of these servers as they are now, without those that all servers share.
    pub(crate) fn own_tools(&self) -> Vec<Arc<dyn ErasedTool>> {
        self.tools().iter().filter(|tool| is_mcp(tool.facts().name)).cloned().collect()
    }
}
