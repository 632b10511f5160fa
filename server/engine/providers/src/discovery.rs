//! The models that a server has, with the limits that it serves them with.
//!
//! Rule: one list takes at most [`TIME_LIMIT`] and is kept for [`KEPT`]. A server is asked only for a profile of the user's
//! or, on this machine, because the user asks for models. A server that tells less is no error: unknown stays unknown.

#![expect(clippy::disallowed_methods, reason = "variables name local servers")]

mod read;
#[cfg(test)]
mod tests;

use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::{join, join_all};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use url::Url;

use crate::exchange::ModelExchange;
use crate::failure;
use kode_model::catalog::ModelCatalog;
use kode_model::profile::{Profile, ProfileContext, ProfileOptions};
use kode_model::provider::Provider;
use kode_model::{ModelError, ModelErrorKind};
use kode_net::http::{self, is_loopback};

/// The longest that a list may take.
pub const TIME_LIMIT: Duration = Duration::from_secs(3);

/// How long a list is used before the server is asked again.
const KEPT: Duration = Duration::from_secs(300);

/// The most lists that are kept.
const MAX_KEPT: usize = 64;

/// The most bytes of one answer.
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// The most models of one list.
const MAX_MODELS: usize = 2_000;

/// How many models of an Ollama server are asked about one by one, where its list does not tell their limits.
const MAX_SHOWN: usize = 32;

/// A model as its server reports it. What it does not tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedModel {
    /// The name by which it is asked.
    pub name: String,
    /// How many tokens it can read as it is served.
    pub context_window: Option<u64>,
    /// How many tokens an answer may have.
    pub max_output: Option<u32>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// Whether it sees pictures.
    pub images: Option<bool>,
    /// Whether it reasons.
    pub thinking: Option<bool>,
    /// Whether it is in memory, on servers that load models on demand.
    pub loaded: Option<bool>,
}

/// A server on this machine that answers.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalServer {
    /// Its provider as settings name it.
    pub provider: String,
    /// Its name for people.
    pub label: String,
    /// Its address.
    pub base_url: String,
    /// Its models.
    pub models: Vec<ServedModel>,
}

/// Lists of models, kept for a while. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    kept: Arc<Mutex<HashMap<String, KeptList>>>,
}

/// A list, and when it was read.
type KeptList = (Vec<ServedModel>, Instant);

impl Discovery {
    /// The lists of this process.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Discovery> = OnceLock::new();
        SHARED.get_or_init(Self::default)
    }

    /// The models of a profile's server. `fresh` asks the server even if its list is known.
    ///
    /// # Errors
    /// The server's refusal, or that it lists no models.
    pub async fn models(&self, profile: &Profile, fresh: bool) -> Result<Vec<ServedModel>, ModelError> {
        let key = format!("{} {}", profile.provider.name(), profile.base_url);
        if !fresh && let Some(known) = self.known(&key) {
            return Ok(known);
        }
        let asked = timeout(TIME_LIMIT, ask(profile)).await;
        let models = asked.unwrap_or_else(|_| {
            let message =
                format!("{} did not list its models within {} s.", profile.host(), TIME_LIMIT.as_secs());
            Err(ModelError::new(ModelErrorKind::Network, message))
        })?;
        let mut kept = self.kept.lock();
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(key, (models.clone(), Instant::now()));
        Ok(models)
    }

    /// The servers that answer at the usual ports of this machine, and at `OLLAMA_HOST`, in the order of the catalog. Nothing
    /// outside of this machine is asked.
    pub async fn local(&self, fresh: bool) -> Vec<LocalServer> {
        let profiles = local_profiles();
        let listed = profiles.iter().map(|(name, label, profile)| async move {
            let models = self.models(profile, fresh).await.ok()?;
            let (provider, label) = ((*name).to_owned(), (*label).to_owned());
            Some(LocalServer { provider, label, base_url: profile.base_url.clone(), models })
        });
        join_all(listed).await.into_iter().flatten().collect()
    }

    /// The facts of a profile's own model, as its server tells them.
    ///
    /// # Errors
    /// As [`Discovery::models`].
    pub async fn model(&self, profile: &Profile) -> Result<Option<ServedModel>, ModelError> {
        let models = self.models(profile, false).await?;
        let is_same = |model: &&ServedModel| is_called(&model.name, &profile.model);
        // A server of one model answers whatever it is called.
        let only = || models.first().filter(|_| models.len() == 1 && is_local(profile));
        Ok(models.iter().find(is_same).or_else(only).cloned())
    }

    fn known(&self, key: &str) -> Option<Vec<ServedModel>> {
        let kept = self.kept.lock();
        kept.get(key).filter(|(_, since)| since.elapsed() < KEPT).map(|(models, _)| models.clone())
    }
}

/// The profiles of the programs that serve models on this machine, with the provider's name in settings and for people.
fn local_profiles() -> Vec<(&'static str, &'static str, Profile)> {
    let catalog = ModelCatalog::built_in();
    let variable = |name: &str| std::env::var(name).ok();
    let around = ProfileContext { variable: &variable, catalog, helper: None };
    catalog
        .providers()
        .filter(|known| known.is_local())
        .filter_map(|known| {
            let options = ProfileOptions {
                provider: Some(known.name().to_owned()),
                model: Some(known.name().to_owned()),
                ..ProfileOptions::default()
            };
            let profile = Profile::resolve(known.name(), options, &around).ok().filter(is_local)?;
            Some((known.name(), known.label.as_str(), profile))
        })
        .collect()
}

/// Whether a profile's server runs on this machine.
#[must_use]
pub fn is_local(profile: &Profile) -> bool {
    Url::parse(&profile.base_url).is_ok_and(|url| is_loopback(&url))
}

/// Whether a listed name is the one that a profile has. Ollama's names end in `:latest` by default.
fn is_called(listed: &str, name: &str) -> bool {
    listed == name || listed.strip_suffix(":latest") == Some(name)
}

async fn ask(profile: &Profile) -> Result<Vec<ServedModel>, ModelError> {
    let mut models = match profile.provider {
        Provider::Ollama => ollama(profile).await?,
        Provider::OpenAi | Provider::OpenAiResponses => openai(profile).await?,
        Provider::Anthropic => {
            let list = get(profile, &profile.base_url, "/v1/models?limit=1000").await?;
            read::openai(&list)
        }
        Provider::Gemini => {
            let list = get(profile, &profile.base_url, "/models?pageSize=1000").await?;
            read::gemini(&list)
        }
        Provider::Bedrock
        | Provider::Vertex
        | Provider::VertexGemini
        | Provider::Azure
        | Provider::AzureResponses
        | Provider::Demo => {
            let message =
                format!("The provider `{}` lists no models; name the model.", profile.provider.name());
            return Err(ModelError::new(ModelErrorKind::Configuration, message));
        }
    };
    models.truncate(MAX_MODELS);
    Ok(models)
}

/// The list of a server that is compatible with OpenAI's, with what the programs of this machine tell beside it.
async fn openai(profile: &Profile) -> Result<Vec<ServedModel>, ModelError> {
    let root = root(profile);
    if !is_local(profile) {
        return Ok(read::openai(&get(profile, &profile.base_url, "/models").await?));
    }
    let beside = join(get(profile, &root, "/props"), get(profile, &root, "/api/v1/models"));
    let (list, (props, native)) = join(get(profile, &profile.base_url, "/models"), beside).await;
    let mut models = read::openai(&list?);
    if let Ok(native) = native {
        read::lm_studio(&native, &mut models);
    }
    if let Ok(props) = props {
        read::llama_cpp(&props, &mut models);
    }
    Ok(models)
}

/// The list of an Ollama server. Older ones tell limits and abilities only one by one.
async fn ollama(profile: &Profile) -> Result<Vec<ServedModel>, ModelError> {
    let base = &profile.base_url;
    let (tags, loaded) = join(get(profile, base, "/api/tags"), get(profile, base, "/api/ps")).await;
    let mut models = read::ollama(&tags?);
    let unknown = models.iter_mut().filter(|model| model.context_window.is_none()).take(MAX_SHOWN);
    let shown = unknown.map(|model| async {
        let named = json!({ "model": model.name });
        if let Ok(shown) = fetch(profile, Method::POST, base, "/api/show", Some(&named)).await {
            read::ollama_shown(&shown, model);
        }
    });
    join_all(shown).await;
    if let Ok(loaded) = loaded {
        read::ollama_loaded(&loaded, &mut models);
    }
    Ok(models)
}

/// The text before the path of a profile's address.
fn root(profile: &Profile) -> String {
    let base = profile.base_url.trim_end_matches('/');
    base.strip_suffix("/v1").unwrap_or(base).to_owned()
}

async fn get(profile: &Profile, base: &str, path: &str) -> Result<Value, ModelError> {
    fetch(profile, Method::GET, base, path, None).await
}

/// One bounded request, with the profile's own key and headers.
async fn fetch(
    profile: &Profile,
    method: Method,
    base: &str,
    path: &str,
    body: Option<&Value>,
) -> Result<Value, ModelError> {
    let host = profile.host();
    let url = Url::parse(&format!("{base}{path}")).map_err(|error| {
        ModelError::new(ModelErrorKind::Configuration, format!("The base URL cannot be used: {error}."))
    })?;
    let headers = ModelExchange::headers_of(profile)?;
    let mut request = http::client_for(&url, &profile.http)?.request(method, url).headers(headers);
    if let Some(body) = body {
        request = request.body(body.to_string());
    }
    let unreachable = |error: reqwest::Error| {
        let reason = http::causes(&error.without_url());
        ModelError::new(ModelErrorKind::Network, format!("{host} could not be asked: {reason}."))
    };
    let mut response = request.send().await.map_err(unreachable)?;
    if response.status() != StatusCode::OK {
        return Err(failure::from_response(response, &host).await);
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > MAX_BYTES {
            let message = format!("The list of {host} is larger than {MAX_BYTES} bytes.");
            return Err(ModelError::new(ModelErrorKind::Protocol, message));
        }
    }
    serde_json::from_slice(&bytes).map_err(|error| {
        ModelError::new(ModelErrorKind::Protocol, format!("{host} sent a list that cannot be read: {error}."))
    })
}
