//! The language servers of all workspaces, as the engine uses them.
//!
//! Rule: the engine starts and ends servers through this trait alone. How a server is reached is not known here.

use std::sync::Arc;

use async_trait::async_trait;

use kode_base::paths::AbsPath;
use kode_config::policy::PolicySource;
use kode_process::shell::Secrets;
use kode_text::workspace::language::LanguageServers;

/// The language servers of all workspaces.
#[async_trait]
pub trait LanguagePool: Send + Sync {
    /// The servers of workspace folders, `None` if none exist. Starts nothing. No server gets one of the `secrets`
    /// unless its entry names it; those that are added later are withheld as well.
    fn of(
        &self,
        roots: &[AbsPath],
        secrets: &Secrets,
        policy: &dyn Fn() -> Arc<dyn PolicySource>,
    ) -> Option<Arc<dyn LanguageServers>>;

    /// Ends all servers and waits until they are gone.
    async fn end(&self);
}

/// No language servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLanguages;

#[async_trait]
impl LanguagePool for NoLanguages {
    fn of(
        &self,
        _roots: &[AbsPath],
        _secrets: &Secrets,
        _policy: &dyn Fn() -> Arc<dyn PolicySource>,
    ) -> Option<Arc<dyn LanguageServers>> {
        None
    }

    async fn end(&self) {}
}
