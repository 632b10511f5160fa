//! `agent/config/*` and `agent/trust/*`.

use kode_engine::agent::session::Session;
use kode_engine::agent::state::config::ConfigChange;
use kode_engine::base::effort::Effort;
use kode_engine::base::mode::Mode;
use kode_engine::base::paths::AbsPath;
use kode_engine::base::task;
use kode_engine::config::settings::effective::EffectiveSetting;
use kode_engine::config::settings::{SetError, SettingsScope};
use kode_protocol as wire;
use serde_json::{Value, json};

use crate::agent::settings;
use crate::agent::trust::{self, TrustDecision};
use crate::backend::Backend;
use crate::convert;
use crate::convert::error::{self, RequestError};
use crate::handlers::params::Params;

/// The settings that a session can have of its own, by the key of the files that says the same.
const OF_SESSION: [&str; 4] = ["permissions.defaultMode", "model", "effortLevel", "outputStyle"];

/// Says what counts.
pub(crate) async fn get(backend: &Backend, params: Params) -> Result<wire::GetConfigResult, RequestError> {
    let params: wire::GetConfigParams = params.read()?;
    let agent = backend.agent()?;
    let session = params.session_id.as_ref().map(|id| backend.session(id)).transpose()?;
    let roots = session.as_ref().map_or_else(|| agent.folders(), |session| session.roots());
    let policies = std::sync::Arc::clone(&agent.policies);
    let found = task::spawn_blocking(move || {
        let policy = policies.of_workspace(&roots);
        (policy.effective(), policy.settings().files)
    });
    let (effective, files) = found.await.map_err(|error| error::internal(&error.to_string()))?;
    let mut settings: Vec<_> = effective.iter().map(setting).collect();
    settings.extend(session.iter().flat_map(|session| of_session(session)));
    if let Some(key) = &params.key {
        let inside = format!("{key}.");
        settings.retain(|setting| setting.key == *key || setting.key.starts_with(&inside));
        if settings.is_empty() {
            let known = kode_engine::config::settings::keys::key_of(key);
            let unknown =
                SetError::Unknown { path: key.clone(), near: kode_engine::config::settings::keys::near(key) };
            if known.is_none() {
                return Err(error::invalid_params("key", &unknown.to_string()));
            }
        }
    }
    Ok(wire::GetConfigResult { settings, files: files.iter().map(ToString::to_string).collect() })
}

/// A setting on the wire.
pub(crate) fn setting(effective: &EffectiveSetting) -> wire::ConfigSetting {
    let stated = effective.stated.iter().map(|stated| wire::ConfigStatement {
        value: stated.value.clone(),
        source: convert::rules::source(&stated.source),
        standing: convert::rules::standing(stated.standing),
    });
    wire::ConfigSetting {
        key: effective.path(),
        kind: effective.key.kind.name().to_owned(),
        value: effective.value.clone(),
        source: effective.source.as_ref().map(convert::rules::source),
        stated: stated.collect(),
    }
}

/// The session's own settings, which are in no file.
fn of_session(session: &Session) -> Vec<wire::ConfigSetting> {
    let now = session.snapshot(0);
    let own = |key: &str, value: Value| wire::ConfigSetting {
        key: format!("session.{key}"),
        kind: "session".to_owned(),
        value: Some(value).filter(|value| !value.is_null()),
        source: None,
        stated: Vec::new(),
    };
    vec![
        own("permissions.defaultMode", json!(now.mode.name())),
        own("model", json!(now.model)),
        own("effortLevel", json!(now.effort)),
        own("outputStyle", json!(now.output_style)),
    ]
}

/// Changes one setting.
pub(crate) async fn set(backend: &Backend, params: Params) -> Result<wire::SetConfigResult, RequestError> {
    let params: wire::SetConfigParams = params.read()?;
    let agent = backend.agent()?;
    let session = params.session_id.as_ref().map(|id| backend.session(id)).transpose()?;
    let scope = match params.scope {
        wire::ConfigScope::Local => SettingsScope::Local,
        wire::ConfigScope::Project => SettingsScope::Project,
        wire::ConfigScope::User => SettingsScope::User,
        wire::ConfigScope::Session => {
            let needed = || error::invalid_params("sessionId", "the scope `session` needs a session");
            return set_in_session(&session.ok_or_else(needed)?, &params.key, params.value).await;
        }
    };
    let roots = session.as_ref().map_or_else(|| agent.folders(), |session| session.roots());
    let policies = std::sync::Arc::clone(&agent.policies);
    let (key, value) = (params.key, params.value);
    let written =
        task::spawn_blocking(move || policies.of_workspace(&roots).set(scope, &key, value.as_ref()));
    let written = written.await.map_err(|error| error::internal(&error.to_string()))?;
    let change = written.map_err(|error| error::set(&error))?;
    if change.is_changed {
        settings::files_changed(agent).await;
    }
    Ok(wire::SetConfigResult { file: Some(change.file.to_string()), changed: change.is_changed })
}

/// Changes what the session alone goes by; no settings file is written.
async fn set_in_session(
    session: &std::sync::Arc<Session>,
    key: &str,
    value: Option<Value>,
) -> Result<wire::SetConfigResult, RequestError> {
    let key = key.strip_prefix("session.").unwrap_or(key);
    if !OF_SESSION.contains(&key) {
        let message = format!(
            "`{key}` is not a session setting; those are {}. Choose another scope",
            OF_SESSION.join(", ")
        );
        return Err(error::invalid_params("key", &message));
    }
    let unfit = |wanted: &str| error::invalid_params("value", &format!("`{key}`: {wanted}"));
    let text = match &value {
        None => None,
        Some(Value::String(text)) => Some(text.as_str()),
        Some(_) => return Err(unfit("write a text")),
    };
    let mut configure = ConfigChange::default();
    match (key, text) {
        ("permissions.defaultMode", text) => {
            let mode = match text {
                None => Mode::default(),
                Some(name) => Mode::parse(name).ok_or_else(|| unfit("there is no such mode"))?,
            };
            configure.mode = Some(session.gate().allow_mode(mode).await.map_err(error::mode)?);
        }
        ("model", Some(name)) => {
            configure.model = Some(session.models().named(name).map_err(|error| error::model(&error))?);
        }
        ("model", None) => return Err(unfit("name a model")),
        ("effortLevel", text) => {
            let effort = text.map(|text| serde_json::from_value::<Effort>(json!(text))).transpose();
            configure.effort = Some(effort.map_err(|_| unfit("write low, medium or high"))?);
        }
        (_, None) => configure.output_style = Some(None),
        (_, Some(name)) => {
            let found = session.extensions().style_named(name).await;
            let found = found.map_err(|problem| error::invalid_params("value", &problem))?;
            configure.output_style = Some(Some(found));
        }
    }
    session.configure(configure);
    Ok(wire::SetConfigResult { file: None, changed: true })
}

/// Lists what files of a workspace ask for.
pub(crate) async fn trust_list(
    backend: &Backend,
    params: Params,
) -> Result<wire::ListTrustResult, RequestError> {
    let params: wire::ListTrustParams = params.read()?;
    let roots = roots(backend, params.session_id.as_ref())?;
    Ok(convert::rules::trust(trust::state(backend.agent()?, roots).await))
}

/// Approves the shown texts.
pub(crate) async fn trust_approve(
    backend: &Backend,
    params: Params,
) -> Result<wire::TrustResult, RequestError> {
    act(backend, params, TrustDecision::Approve).await
}

/// Takes approvals back.
pub(crate) async fn trust_revoke(
    backend: &Backend,
    params: Params,
) -> Result<wire::TrustResult, RequestError> {
    act(backend, params, TrustDecision::Revoke).await
}

/// Dismisses the shown texts.
pub(crate) async fn trust_dismiss(backend: &Backend, params: Params) -> Result<(), RequestError> {
    act(backend, params, TrustDecision::Dismiss).await.map(|_| ())
}

async fn act(
    backend: &Backend,
    params: Params,
    act: TrustDecision,
) -> Result<wire::TrustResult, RequestError> {
    let params: wire::TrustParams = params.read()?;
    let roots = roots(backend, params.session_id.as_ref())?;
    let done = trust::act(backend.agent()?, roots, act, params.digests).await;
    let done = done.map_err(|error| error::keep(&error))?;
    Ok(wire::TrustResult { changed: u32::try_from(done).unwrap_or(u32::MAX) })
}

/// Takes in whether the editor trusts the workspace.
pub(crate) async fn trust_workspace(backend: &Backend, params: Params) -> Result<(), RequestError> {
    let params: wire::TrustWorkspaceParams = params.read()?;
    let agent = backend.agent()?;
    if agent.policies.editor().change(|word| word.is_distrusted = !params.trusted) {
        settings::settings_changed(agent).await;
    }
    Ok(())
}

fn roots(backend: &Backend, session: Option<&wire::SessionId>) -> Result<Vec<AbsPath>, RequestError> {
    match session {
        Some(id) => Ok(backend.session(id)?.roots()),
        None => Ok(backend.agent()?.folders()),
    }
}
