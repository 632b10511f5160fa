//! The settings that count for a workspace on this machine.
//!
//! Rule: the same for every front end, so that a rule means the same in an editor and on the command line.

#![expect(clippy::disallowed_methods, reason = "variables name the model and its key")]

use std::sync::Arc;

use kode_engine::agent::engine::CONCURRENCY;
use kode_engine::base::paths::AbsPath;
use kode_engine::config::settings::{EditorSettings, PolicyOptions, SettingsPolicies, SettingsPolicy};
use kode_engine::model::models::{Models, ProfileLayer, PublishedSource};
use kode_engine::net::search::{HOW_TO_ENABLE, SearchConfig, SearchProvider};
use kode_engine::permission::rules::Behavior;
use kode_engine::process::sandbox::HelperProgram;
use kode_engine::providers::connector::Providers;
use kode_engine::providers::published;
use kode_engine::tool::Registry;
use kode_engine::tools::built_in::{built_in, with_shells};
use kode_engine::tools::web_search::{CurrentSearch, WebSearch};
use serde::Deserialize;
use serde_json::Value;

use crate::home;

/// The equipment of an engine by the settings of the user and the administrator, for any workspace.
pub(crate) struct EngineSettings {
    /// The most calls of a session that run at once.
    pub(crate) concurrency: usize,
    /// Whether the web can be searched.
    pub(crate) search: WebSearchStatus,
    /// The service that searches it.
    pub(crate) provider: Option<Arc<dyn SearchProvider>>,
}

/// Whether the web can be searched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WebSearchStatus {
    /// By this service.
    On(&'static str),
    /// No service is set up.
    Off,
    /// A service is set up in a way that cannot be used; why, for the user.
    Broken(String),
}

impl WebSearchStatus {
    /// The problem and the next step, if any.
    pub(crate) fn problem(&self) -> Option<String> {
        match self {
            Self::On(_) | Self::Off => None,
            Self::Broken(reason) => Some(format!("{reason}. {}", how_to_search())),
        }
    }
}

/// How the user turns searching on.
pub(crate) fn how_to_search() -> String {
    format!("{HOW_TO_ENABLE} That goes under `webSearch` into your own settings, ~/.kode/settings.json.")
}

/// The current equipment of an engine by settings. Reads the files; an invalid setting is left out and reported.
pub(crate) fn equipment(policies: &SettingsPolicies) -> EngineSettings {
    let values = policies.values();
    let (search, provider) = match values.web_search.as_ref().map(provider) {
        None => (WebSearchStatus::Off, None),
        Some(Ok(provider)) => (WebSearchStatus::On(provider.name()), Some(provider)),
        Some(Err(reason)) => (WebSearchStatus::Broken(reason), None),
    };
    if let Some(problem) = search.problem() {
        tracing::warn!("{problem}");
    }
    EngineSettings { concurrency: values.max_concurrency.unwrap_or(CONCURRENCY), search, provider }
}

/// The tools of an engine; one of them searches the web with whatever service there is.
pub(crate) fn tools(search: &CurrentSearch) -> Registry {
    let mut tools = with_shells(built_in());
    tools.add(WebSearch::new(search.clone()));
    tools
}

fn provider(config: &Value) -> Result<Arc<dyn SearchProvider>, String> {
    let config = SearchConfig::deserialize(config)
        .map_err(|error| format!("web search: the setting `webSearch` cannot be read: {error}"))?;
    config.provider(|name| std::env::var(name).ok()).map_err(|error| error.to_string())
}

/// The policies of this machine's settings files.
///
/// # Errors
/// When there is no place for the user's state, or this program cannot tell where it is.
pub(crate) fn all() -> anyhow::Result<SettingsPolicies> {
    with_rules(Vec::new())
}

/// The same with rules of the command line.
///
/// # Errors
/// As [`all`].
pub(crate) fn with_rules(command_line: Vec<(Behavior, String)>) -> anyhow::Result<SettingsPolicies> {
    Ok(SettingsPolicies::new(PolicyOptions {
        home: etcetera::home_dir().ok().and_then(|home| AbsPath::new(home).ok()),
        state: home::folder()?,
        helper: HelperProgram::beside(std::env::current_exe()?),
        command_line,
        editor: EditorSettings::default(),
    }))
}

/// The models of this machine: what `own` says before the settings of the user, what other agents' files say and the
/// environment. Reads files; what cannot be used is logged.
pub(crate) fn models(policies: &SettingsPolicies, own: ProfileLayer) -> Models {
    let mut sources = policies.models(own);
    if let Some(PublishedSource::At(place)) = &sources.published {
        sources.published = Some(read_published(place));
    }
    let models = Models::assemble(sources, &|name| std::env::var(name).ok(), Arc::new(Providers));
    for unusable in models.unusable() {
        let (name, source, error) = (&unusable.name, &unusable.source, &unusable.error);
        tracing::warn!(name, source, %error, "a model profile cannot be used");
    }
    for problem in models.problems() {
        tracing::warn!("{problem}");
    }
    models
}

fn read_published(place: &str) -> PublishedSource {
    let state = match home::folder() {
        Ok(state) => state,
        Err(error) => return PublishedSource::Unreadable(error.to_string()),
    };
    match published::load(place, etcetera::home_dir().ok().as_deref(), state.as_path()) {
        Ok(catalog) => PublishedSource::Read(catalog),
        Err(error) => PublishedSource::Unreadable(error.to_string()),
    }
}

/// Requests the published catalog that the settings name, where it is at an address and a day old; whether there is a new
/// copy.
///
/// # Errors
/// When there is no place for the user's state, or the server does not answer with a catalog.
pub(crate) async fn refresh_catalog(policies: &SettingsPolicies) -> anyhow::Result<bool> {
    let Some(PublishedSource::At(place)) = policies.models(ProfileLayer::default()).published else {
        return Ok(false);
    };
    Ok(published::refresh(&place, home::folder()?.as_path()).await?)
}

/// The policy of one folder.
///
/// # Errors
/// As [`all`].
pub(crate) fn of(folder: &AbsPath) -> anyhow::Result<SettingsPolicy> {
    Ok(all()?.of_workspace(std::slice::from_ref(folder)))
}
