//! Connects profiles to providers, with keys that a command prints where the profile says so.
//!
//! Rule: nothing is sent before a model is asked.

use std::sync::Arc;

use async_trait::async_trait;

use crate::adapter::connect;
use crate::keyed::KeyedModel;
use kode_model::models::Connector;
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
}
