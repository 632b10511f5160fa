//! Connects profiles to providers, with keys that a command prints where the profile says so.
//!
//! Rule: nothing is sent before a model is asked.

use std::sync::Arc;

use async_trait::async_trait;

use crate::adapter::connect;
use crate::discovery::{self, Discovery};
use crate::keyed::KeyedModel;
use kode_model::models::{Connector, RunningServer, Serving};
use kode_model::profile::Profile;
use kode_model::{Model, ModelError};

/// Connects profiles to the providers of this crate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Providers;

#[async_trait]
impl Connector for Providers {
    async fn connect(&self, profile: &Profile) -> Result<Arc<dyn Model>, ModelError> {
        match &profile.key_helper {
            Some(helper) => Ok(Arc::new(KeyedModel::new(profile.clone(), helper.clone()))),
            None => connect(profile).await,
        }
    }

    async fn serving(&self, profile: &Profile) -> Serving {
        if !discovery::is_local(profile) {
            return Serving::default();
        }
        match Discovery::shared().model(profile).await {
            Ok(Some(model)) => Serving { context_window: model.context_window, tools: model.tools },
            Ok(None) => Serving::default(),
            Err(error) => {
                tracing::debug!(%error, profile = profile.name, "the server does not tell how it serves the model");
                Serving::default()
            }
        }
    }

    async fn running(&self) -> Vec<RunningServer> {
        let servers = Discovery::shared().local(false).await.into_iter();
        let running = servers.map(|server| RunningServer {
            label: server.label,
            base_url: server.base_url,
            models: server.models.into_iter().map(|model| model.name).collect(),
        });
        running.collect()
    }
}
