//! The models of a session: the profiles that names and roles stand for in its workspace, and the models that rest.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::Instant;

use crate::core::{Core, lock};
use crate::gate::Gatekeeper;
use kode_base::effort::Effort;
use kode_config::extension::template::MODEL_KEY;
use kode_config::settings::TrustRequest;
use kode_model::ModelError;
use kode_model::models::{CurrentModels, Models, Pointer, RunningServer, Serving};
use kode_model::profile::Profile;

/// The models of a session.
pub struct SessionModels {
    core: Arc<Core>,
    gate: Arc<Gatekeeper>,
    models: CurrentModels,
    /// When each profile that failed is asked again.
    cooldowns: Mutex<HashMap<String, Instant>>,
}

/// The model and the effort that a file chooses.
#[derive(Debug)]
pub(crate) struct ModelOverride {
    /// The name of the profile, or the reason for its absence; `None` where the file chooses no applicable one.
    pub(crate) model: Option<Result<String, ModelError>>,
    /// The thinking effort.
    pub(crate) effort: Option<Effort>,
    /// Whether part of the choice waits for the user's approval.
    pub(crate) waits: bool,
}

impl SessionModels {
    pub(crate) fn new(core: &Arc<Core>, gate: &Arc<Gatekeeper>, models: CurrentModels) -> Arc<Self> {
        let (core, gate) = (Arc::clone(core), Arc::clone(gate));
        Arc::new(Self { core, gate, models, cooldowns: Mutex::default() })
    }

    /// The models as they are now.
    #[must_use]
    pub fn now(&self) -> Arc<Models> {
        self.models.now()
    }

    /// The profile of a name in this workspace.
    ///
    /// # Errors
    /// [`ModelError`], when no usable profile has that name.
    pub fn named(&self, name: &str) -> Result<String, ModelError> {
        self.now().resolve_with(name, &self.gate.in_force().policy.preferences.pointers)
    }

    /// The profile of a role in this workspace; that of [`Pointer::Main`] is the session's own.
    #[must_use]
    pub fn pointer(&self, pointer: Pointer) -> String {
        if pointer == Pointer::Main {
            return self.core.state().config.model.clone();
        }
        self.now().pointer_with(pointer, &self.gate.in_force().policy.preferences.pointers)
    }

    /// The choice of a file that names this model and this effort; `waiting` are the requests of the file that the user
    /// has not approved. Until then a file of the workspace can choose a role that the user has given a model to, and
    /// nothing else.
    pub(crate) fn chosen(
        &self,
        model: Option<&str>,
        effort: Option<Effort>,
        waiting: &[TrustRequest],
    ) -> ModelOverride {
        let waits = waiting.iter().any(|trust_request| trust_request.key == MODEL_KEY);
        if !waits {
            return ModelOverride { model: model.map(|name| self.named(name)), effort, waits };
        }
        let role = model.and_then(Pointer::parse);
        ModelOverride { model: role.map(|role| Ok(self.pointer(role))), effort: None, waits }
    }

    /// The models, with the window that the server of a profile serves, as far as the server reports it in time. The server
    /// is queried once, and only if it runs on this machine.
    pub(crate) async fn served(&self, profile: &str) -> Arc<Models> {
        if let Ok(known) = self.now().profile(profile) {
            self.models.look_up(known);
            self.models.looked_up(known).await;
        }
        self.now()
    }

    /// Stores the window that the server of a profile serves.
    pub(crate) async fn learn_window(&self, profile: &Profile, window: u64) {
        let serving = Serving { context_window: Some(window), ..Serving::default() };
        self.models.learn(profile, serving).await;
    }

    /// The model servers that run on this machine.
    pub(crate) async fn running(&self) -> Vec<RunningServer> {
        self.models.running().await
    }

    /// Whether a profile rests after a failure.
    pub(crate) fn rests(&self, profile: &str) -> bool {
        lock(&self.cooldowns).get(profile).is_some_and(|until| Instant::now() < *until)
    }

    /// Lets a profile rest.
    pub(crate) fn rest(&self, profile: &str, time: Duration) {
        lock(&self.cooldowns).insert(profile.to_owned(), Instant::now() + time);
    }

    /// Ends the rest of a profile.
    pub(crate) fn wake(&self, profile: &str) {
        lock(&self.cooldowns).remove(profile);
    }
}
