//! `agent/models/discover` and `agent/setup/*`.
//!
//! Rule: what asks a server is bounded, and holds up nothing else. No answer repeats a key.

#![expect(clippy::disallowed_methods, reason = "variables hold keys")]

use std::sync::Arc;

use kode_engine::base::task;
use kode_engine::providers::discovery::Discovery;
use kode_protocol as wire;

use crate::agent::{Agent, settings};
use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;
use crate::policies;
use crate::setup::{self, SetupError};

/// Lists the models of a profile's server, or of the programs of this machine.
pub(crate) async fn discover(
    backend: &Backend,
    params: Params,
) -> Result<wire::DiscoverModelsResult, RequestError> {
    let params: wire::DiscoverModelsParams = params.read()?;
    let discovery = Discovery::shared();
    refresh_catalog(backend.agent()?);
    let Some(name) = &params.profile else {
        let servers = discovery.local(params.fresh).await;
        let models = backend.agent()?.engine.models();
        return Ok(wire::DiscoverModelsResult {
            servers: servers.iter().map(|server| convert::models::server(server, &models)).collect(),
        });
    };
    let models = backend.agent()?.engine.models();
    let named = models.resolve(name).and_then(|name| models.profile(&name).cloned());
    let profile = named.map_err(|error| error::invalid_params("profile", &error.to_string()))?;
    let listed = discovery.models(&profile, params.fresh).await;
    let server = wire::ModelServer {
        provider: convert::provider(profile.provider).to_owned(),
        label: profile.host(),
        base_url: profile.base_url.clone(),
        profile: Some(profile.name.clone()),
        problem: listed.as_ref().err().map(convert::models::problem),
        models: listed
            .unwrap_or_default()
            .iter()
            .map(|model| convert::models::served(model, models.profile_of(&profile.base_url, &model.name)))
            .collect(),
    };
    Ok(wire::DiscoverModelsResult { servers: vec![server] })
}

/// Has the published catalog requested that the user has named, and the models resolved again with it.
fn refresh_catalog(agent: &Arc<Agent>) {
    let agent = Arc::clone(agent);
    task::spawn(async move {
        match policies::refresh_catalog(&agent.policies).await {
            Ok(true) => settings::files_changed(&agent).await,
            Ok(false) => {}
            Err(error) => tracing::warn!(error = format!("{error:#}"), "the published catalog is not new"),
        }
    });
}

/// Lists the providers that can be set up.
pub(crate) async fn providers(
    backend: &Backend,
    params: Params,
) -> Result<wire::ListProvidersResult, RequestError> {
    let wire::ListProvidersParams {} = params.read()?;
    let models = backend.agent()?.engine.models();
    let mut providers = setup::providers(&|name| std::env::var(name).ok());
    for provider in &mut providers {
        provider.in_use = models.profiles().any(|profile| {
            provider.base_url.as_ref() == Some(&profile.base_url)
                || convert::provider(profile.provider) == provider.id
        });
    }
    Ok(wire::ListProvidersResult { providers })
}

/// Tries a choice.
pub(crate) async fn attempt(
    _backend: &Backend,
    params: Params,
) -> Result<wire::SetupTrialResult, RequestError> {
    let choice: wire::SetupChoice = params.read()?;
    let trial = setup::attempt(&choice).await.map_err(|error| unusable(&error))?;
    let problem = trial.outcome.as_ref().err().map(convert::models::problem);
    let answered = trial.outcome.ok();
    Ok(wire::SetupTrialResult {
        ok: answered.is_some(),
        duration_ms: answered.as_ref().and_then(|(_, took)| u64::try_from(took.as_millis()).ok()),
        model: answered.map(|(model, _)| model),
        models: trial.models.iter().map(|model| convert::models::served(model, None)).collect(),
        problem,
    })
}

/// Keeps a choice, which new sessions use at once.
pub(crate) async fn save(backend: &Backend, params: Params) -> Result<wire::SaveSetupResult, RequestError> {
    let params: wire::SaveSetupParams = params.read()?;
    let saved = setup::keep(backend.agent()?, params.choice, params.name, params.main).await;
    let saved = saved.map_err(|error| unusable(&error))?;
    Ok(wire::SaveSetupResult {
        profile: saved.profile,
        file: saved.file.to_string(),
        key_file: saved.key_file.map(|file| file.display().to_string()),
    })
}

fn unusable(error: &SetupError) -> RequestError {
    let field = match error {
        SetupError::UnknownProvider(_) => "provider",
        SetupError::BadOption(..) => "options",
        SetupError::Profile(_) | SetupError::Unwritable { .. } | SetupError::Settings(_) => "choice",
    };
    error::invalid_params(field, &error.to_string())
}
