//! Servers of the Model Context Protocol: programs and places in the network that offer tools, resources and prompts.
//!
//! Rule: nothing of a workspace's files is started or reached before the user has approved that very text; nobody waits for
//! a server that nobody needs; one bad server costs itself alone; what servers say is data and gives no permission.

mod auth;
mod client;
pub mod config;
mod connection;
mod elicit;
pub mod failure;
pub mod names;
mod of_file;
mod offered;
pub mod prompts;
pub mod resources;
mod result;
mod rush;
mod seen;
mod server;
mod servers;
mod tool;
mod transport;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::future::join_all;

use crate::paths::AbsPath;
use crate::permission::policy::PolicySource;
use crate::shell::Secrets;

pub use failure::{Failure, FailureClass};
pub use of_file::FileServers;
pub use prompts::{PromptArgument, PromptInfo, PromptPart};
pub use resources::{ResourceInfo, ResourceText};
pub(crate) use rush::Rush;
pub use server::{ServerInfo, State};
pub use servers::{Member, Servers, ToolInfo};

use servers::Place;

/// The servers of all workspaces of an engine.
pub struct Mcp {
    place: Place,
    workspaces: Mutex<HashMap<Vec<AbsPath>, Weak<Servers>>>,
}

impl Mcp {
    /// For an engine whose state is in a folder. `secrets` are what no server gets unless its entry says so, those that are
    /// added later included.
    #[must_use]
    pub fn new(state: AbsPath, secrets: Secrets) -> Self {
        Self { place: Place { state, secrets }, workspaces: Mutex::default() }
    }

    /// The servers of a workspace: the same for all that have the same folders. Starts nothing.
    #[must_use]
    pub fn of(&self, roots: &[AbsPath], policy: impl FnOnce() -> Arc<dyn PolicySource>) -> Arc<Servers> {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = workspaces.get(roots).and_then(Weak::upgrade) {
            return known;
        }
        workspaces.retain(|_, servers| servers.strong_count() > 0);
        let made = Servers::new(roots.to_vec(), policy(), self.place.clone());
        workspaces.insert(roots.to_vec(), Arc::downgrade(&made));
        made
    }

    /// Ends all servers and waits until they are gone.
    pub async fn end(&self) {
        let all: Vec<_> = {
            let workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
            workspaces.values().filter_map(Weak::upgrade).collect()
        };
        join_all(all.iter().map(|servers| servers.end())).await;
    }
}
