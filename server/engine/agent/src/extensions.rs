//! The extensions of a session as its last turn found them: agents, skills, commands and styles of users' files.

use std::sync::{Arc, Mutex};

use crate::core::environment::Environment;
use crate::core::lock;
use crate::gate::Gatekeeper;
use kode_base::blocking;
use kode_base::paths::AbsPath;
use kode_config::agents::AgentTypes;
use kode_config::extension::Catalog;
use kode_config::extension::live::Extensions;
use kode_config::style::Styles;
use kode_text::workspace::AccessOrder;

/// The most files, of those that were read or changed last, whose folders are searched for skills.
const MAX_TOUCHED: usize = 200;

/// The extensions of a session.
pub struct SessionExtensions {
    environment: Environment,
    gate: Arc<Gatekeeper>,
    live: Extensions,
    catalog: Mutex<Arc<Catalog>>,
    agents: Mutex<Arc<AgentTypes>>,
    styles: Mutex<Arc<Styles>>,
}

impl SessionExtensions {
    pub(crate) fn new(environment: &Environment, gate: &Arc<Gatekeeper>, live: Extensions) -> Arc<Self> {
        Arc::new(Self {
            environment: environment.clone(),
            gate: Arc::clone(gate),
            live,
            catalog: Mutex::default(),
            agents: Mutex::default(),
            styles: Mutex::default(),
        })
    }

    /// The extensions of the session's folders, read and watched.
    #[must_use]
    pub fn live(&self) -> &Extensions {
        &self.live
    }

    /// Reads the extensions; the result applies from the next turn on.
    pub(crate) async fn refresh(&self) {
        let found = self.live.now().await;
        let catalog = self.with_touched(&found.catalog).await;
        let requests = catalog.trust_requests().chain(found.agents.trust_requests()).cloned().collect();
        self.gate.set_extension_requests(requests);
        *lock(&self.catalog) = catalog;
        *lock(&self.agents) = Arc::clone(&found.agents);
        *lock(&self.styles) = Arc::clone(&found.styles);
    }

    /// The skills and commands, as the last turn found them.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&lock(&self.catalog))
    }

    /// The types of sub-agents, as the last turn found them.
    pub(crate) fn agent_types(&self) -> Arc<AgentTypes> {
        Arc::clone(&lock(&self.agents))
    }

    /// The output styles, as the last turn found them.
    pub(crate) fn styles(&self) -> Arc<Styles> {
        Arc::clone(&lock(&self.styles))
    }

    /// The skills and commands there are now, including those of folders that were worked in.
    pub async fn skills_and_commands(&self) -> Arc<Catalog> {
        let found = self.live.now().await;
        self.with_touched(&found.catalog).await
    }

    /// The output style of a name, whatever its letter case, by its own name.
    ///
    /// # Errors
    /// The error for a missing one, with the known names.
    pub async fn style_named(&self, name: &str) -> Result<String, String> {
        self.live.now().await.styles.find(name).map(|style| style.name.clone())
    }

    /// These skills and commands, and those of folders that were worked in.
    async fn with_touched(&self, found: &Arc<Catalog>) -> Arc<Catalog> {
        let workspace = &self.environment.workspace;
        let touched = workspace.accessed(AccessOrder::Latest, MAX_TOUCHED);
        let touched: Vec<AbsPath> = touched.iter().filter_map(|one| one.target.file().cloned()).collect();
        if touched.is_empty() {
            return Arc::clone(found);
        }
        let (found, roots) = (Catalog::clone(found), workspace.roots().to_vec());
        Arc::new(blocking(move || found.having_touched(&roots, &touched)).await)
    }
}
