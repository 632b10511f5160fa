//! Where the engine finds the policy of a workspace.
//!
//! Rule: a lookup starts no process and waits for no network.

use std::sync::Arc;

use crate::policy::{Policy, PolicySource, SessionDefaults};
use kode_base::paths::AbsPath;

/// Finds the settled permissions of a workspace.
pub trait PolicyProvider: Send + Sync {
    /// The policy source for these workspace folders; the first is the working directory.
    fn of(&self, roots: &[AbsPath]) -> Arc<dyn PolicySource>;

    /// The initial state of sessions in these folders. Starts nothing.
    fn beginning(&self, _roots: &[AbsPath]) -> SessionDefaults {
        SessionDefaults::default()
    }
}

/// Nothing was settled for any workspace: no settings files, no sandbox.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPolicyProvider;

impl PolicyProvider for NoPolicyProvider {
    fn of(&self, _roots: &[AbsPath]) -> Arc<dyn PolicySource> {
        Arc::new(Arc::new(Policy::default()))
    }
}
