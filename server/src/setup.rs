//! First contact: from a provider, a key and a model to a profile that works.
//!
//! Rule: a choice is tried through the real adapters before it is kept. A key goes into a file that the user alone can read,
//! and into no settings file, log or message.

#![expect(clippy::disallowed_methods, reason = "variables hold keys")]

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kode_engine::base::paths::AbsPath;
use kode_engine::base::secret::Secret;
use kode_engine::base::task;
use kode_engine::base::{file_moves, private};
use kode_engine::config::settings::{SettingsPolicies, SettingsScope};
use kode_engine::model::catalog::ModelCatalog;
use kode_engine::model::models::Connector;
use kode_engine::model::profile::{
    DEFAULT_BASE_URL, DEFAULT_MODEL, DEFAULT_OPENAI_BASE_URL, DEFAULT_OPENAI_MODEL, KeyOption, Profile,
    ProfileContext, ProfileOptions,
};
use kode_engine::model::{Block, Message, ModelError, ModelErrorKind, ModelRequest};
use kode_engine::providers::connector::Providers;
use kode_engine::providers::discovery::{Discovery, ServedModel};
use kode_protocol::{SetupChoice, SetupField, SetupKey, SetupProvider};
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, settings};
use crate::home;

/// The longest that the model of a trial may take. Local servers load the model first.
const TRIAL_LIMIT: Duration = Duration::from_secs(90);

/// The most tokens of the answer of a trial. Models that reason first need some for that.
const TRIAL_TOKENS: u32 = 1_024;

/// The prompt of a trial.
const TRIAL_PROMPT: &str = "Answer with the one word: ready";

/// The folder of key files in the state folder.
const KEYS: &str = "keys";

/// The options of a profile that a choice may set.
const OPTIONS: [&str; 6] = ["baseUrl", "region", "project", "apiVersion", "awsProfile", "contextWindow"];

/// Why a choice cannot be tried or kept.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetupError {
    /// There is no such provider.
    #[error("there is no provider `{0}`; `agent/setup/providers` lists them")]
    UnknownProvider(String),
    /// An option of the choice does not exist in a profile, or does not fit.
    #[error("the option `{0}` cannot be used here: {1}")]
    BadOption(String, String),
    /// No profile can be made of it.
    #[error(transparent)]
    Profile(#[from] ModelError),
    /// A file cannot be written.
    #[error("{} cannot be written: {reason}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        reason: String,
    },
    /// The settings cannot be written.
    #[error("the settings were not changed: {0}")]
    Settings(String),
}

/// The outcome of a trial.
pub(crate) struct SetupTrial {
    /// The model that was asked, and how long it took; or why it did not answer.
    pub(crate) outcome: Result<(String, Duration), ModelError>,
    /// The models of the server, where it lists them.
    pub(crate) models: Vec<ServedModel>,
}

/// Where a choice was kept.
pub(crate) struct SavedSetup {
    pub(crate) profile: String,
    pub(crate) file: AbsPath,
    pub(crate) key_file: Option<PathBuf>,
}

/// The providers that can be set up, those that most people use first.
pub(crate) fn providers(variable: &dyn Fn(&str) -> Option<String>) -> Vec<SetupProvider> {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
    let keyed =
        |id: &str, label: &str, base_url: &str, variable: &str, model: &str, page: &str| SetupProvider {
            id: id.to_owned(),
            label: label.to_owned(),
            base_url: Some(base_url.to_owned()),
            needs_key: true,
            key_variable: Some(variable.to_owned()),
            key_is_set: is_set(variable),
            in_use: false,
            key_page: Some(page.to_owned()),
            model: Some(model.to_owned()),
            fields: Vec::new(),
        };
    let mut providers = vec![
        keyed(
            "anthropic",
            "Anthropic",
            DEFAULT_BASE_URL,
            "ANTHROPIC_API_KEY",
            DEFAULT_MODEL,
            "https://console.anthropic.com/settings/keys",
        ),
        keyed(
            "openai-responses",
            "OpenAI",
            DEFAULT_OPENAI_BASE_URL,
            "OPENAI_API_KEY",
            DEFAULT_OPENAI_MODEL,
            "https://platform.openai.com/api-keys",
        ),
    ];
    providers.extend(ModelCatalog::built_in().providers().map(|known| SetupProvider {
        id: known.name().to_owned(),
        label: known.label.clone(),
        base_url: Some(known.base_url.clone()),
        needs_key: !known.is_local(),
        key_variable: known.api_key_env.clone(),
        key_is_set: known.api_key_env.as_deref().is_some_and(is_set),
        in_use: false,
        key_page: known.key_page.clone(),
        model: known.suggested.clone(),
        fields: Vec::new(),
    }));
    providers.extend(clouds(variable, &is_set));
    providers
}

/// The clouds, and a server of the user's own.
fn clouds(variable: &dyn Fn(&str) -> Option<String>, is_set: &dyn Fn(&str) -> bool) -> Vec<SetupProvider> {
    let field = |name: &str, label: &str, from: &[&str], example: &str, required: bool| {
        let value = from.iter().find_map(|name| variable(name));
        SetupField {
            name: name.to_owned(),
            label: label.to_owned(),
            required: required && value.is_none(),
            example: Some(value.unwrap_or_else(|| example.to_owned())),
        }
    };
    let cloud = |id: &str, label: &str, key: Option<&str>, model: &str, fields| SetupProvider {
        id: id.to_owned(),
        label: label.to_owned(),
        base_url: None,
        needs_key: false,
        key_variable: key.map(str::to_owned),
        key_is_set: key.is_some_and(is_set),
        in_use: false,
        key_page: None,
        model: Some(model.to_owned()).filter(|model| !model.is_empty()),
        fields,
    };
    vec![
        cloud(
            "bedrock",
            "Amazon Bedrock",
            Some("AWS_BEARER_TOKEN_BEDROCK"),
            "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
            vec![
                field("region", "Region", &["AWS_REGION", "AWS_DEFAULT_REGION"], "us-east-1", true),
                field("awsProfile", "AWS profile", &["AWS_PROFILE"], "default", false),
            ],
        ),
        cloud(
            "vertex",
            "Google Vertex AI",
            None,
            "claude-sonnet-5",
            vec![
                field(
                    "project",
                    "Project",
                    &["ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"],
                    "my-project",
                    true,
                ),
                field("region", "Location", &["CLOUD_ML_REGION", "GOOGLE_CLOUD_LOCATION"], "global", false),
            ],
        ),
        SetupProvider {
            needs_key: true,
            ..cloud(
                "azure",
                "Azure",
                Some("AZURE_OPENAI_API_KEY"),
                "",
                vec![
                    field(
                        "baseUrl",
                        "Endpoint",
                        &["AZURE_OPENAI_ENDPOINT"],
                        "https://RESOURCE.openai.azure.com",
                        true,
                    ),
                    field("apiVersion", "API version", &["AZURE_OPENAI_API_VERSION"], "2024-10-21", false),
                ],
            )
        },
        cloud(
            "openai-compatible",
            "A server that is compatible with OpenAI's",
            None,
            "",
            vec![field("baseUrl", "Address", &[], "http://localhost:8080/v1", true)],
        ),
    ]
}

/// Tries a choice: lists the models of the server where it does that, then asks one for one word. Nothing is kept.
///
/// # Errors
/// [`SetupError`] for a choice that no profile can be made of.
pub(crate) async fn attempt(choice: &SetupChoice) -> Result<SetupTrial, SetupError> {
    let environment = |name: &str| std::env::var(name).ok();
    let provider = provider(choice, &environment)?;
    let named = choice.model.clone().filter(|model| !model.trim().is_empty());
    // A profile has a model; the list of its server does not depend on which.
    let placeholder = named.clone().or(provider.model.clone()).unwrap_or_else(|| "any".to_owned());
    let lister = profile(choice, &placeholder, &environment)?;
    let listed = Discovery::shared().models(&lister, true).await;
    let models = match listed {
        Ok(models) => models,
        // A wrong key or address fails here in the same words as a request for an answer.
        Err(error) if matches!(error.kind, ModelErrorKind::Authentication | ModelErrorKind::Network) => {
            return Ok(SetupTrial { outcome: Err(error), models: Vec::new() });
        }
        Err(_) => Vec::new(),
    };
    let suggested =
        provider.model.filter(|model| models.is_empty() || models.iter().any(|served| served.name == *model));
    let loaded = models.iter().find(|served| served.loaded == Some(true)).or(models.first());
    let Some(model) = named.or(suggested).or_else(|| loaded.map(|served| served.name.clone())) else {
        let message = "No model is named, and the server lists none: name the model.";
        let outcome = Err(ModelError::new(ModelErrorKind::BadRequest, message));
        return Ok(SetupTrial { outcome, models });
    };
    let outcome = ask(&profile(choice, &model, &environment)?).await;
    Ok(SetupTrial { outcome: outcome.map(|took| (model, took)), models })
}

/// Asks a model for one word; gives the time that it took.
async fn ask(profile: &Profile) -> Result<Duration, ModelError> {
    let model = Providers.connect(profile).await?;
    let request = ModelRequest {
        messages: vec![Message::user(vec![Block::Text { text: TRIAL_PROMPT.to_owned() }])].into(),
        max_tokens: TRIAL_TOKENS.min(profile.max_tokens),
        ..ModelRequest::default()
    };
    let began = Instant::now();
    let answered = timeout(TRIAL_LIMIT, model.complete(&request, &CancellationToken::new())).await;
    match answered {
        Ok(answer) => answer.map(|_| began.elapsed()),
        Err(_) => {
            let message = format!("{} did not answer within {TRIAL_LIMIT:?}.", profile.host());
            Err(ModelError::new(ModelErrorKind::Network, message))
        }
    }
}

/// As [`save`], by the settings of an agent, which uses the profile at once.
///
/// # Errors
/// As [`save`].
pub(crate) async fn keep(
    agent: &Arc<Agent>,
    choice: SetupChoice,
    name: Option<String>,
    main: bool,
) -> Result<SavedSetup, SetupError> {
    let policies = Arc::clone(&agent.policies);
    let failed = |reason: String| SetupError::Settings(reason);
    let state = home::folder().map_err(|error| failed(error.to_string()))?;
    let saved = task::spawn_blocking(move || save(&policies, &state, &choice, name.as_deref(), main));
    let saved = saved.await.map_err(|error| failed(error.to_string()))??;
    settings::files_changed(agent).await;
    Ok(saved)
}

/// Keeps a choice as a profile of the user's settings. Blocks on the disk.
///
/// # Errors
/// [`SetupError`]; the settings are as they were before then.
pub(crate) fn save(
    policies: &SettingsPolicies,
    state: &AbsPath,
    choice: &SetupChoice,
    name: Option<&str>,
    main: bool,
) -> Result<SavedSetup, SetupError> {
    let environment = |name: &str| std::env::var(name).ok();
    let provider = provider(choice, &environment)?;
    let name = name.map_or_else(|| provider.id.clone(), str::to_owned);
    if name.is_empty() || name.contains(['/', '\\', '.']) || name == "demo" {
        return Err(SetupError::BadOption(
            "name".to_owned(),
            "write a name without slashes and dots".to_owned(),
        ));
    }
    let model = choice
        .model
        .clone()
        .or(provider.model.clone())
        .ok_or_else(|| SetupError::BadOption("model".to_owned(), "name the model".to_owned()))?;
    // An unusable profile is not stored.
    profile(choice, &model, &environment)?;
    let key_file = match &choice.key {
        SetupKey::Value { value } => Some(write_key(state, &name, value)?),
        SetupKey::None {} | SetupKey::Variable { .. } | SetupKey::Command { .. } => None,
    };
    let mut written =
        Map::from_iter([("provider".to_owned(), json!(provider.id)), ("model".to_owned(), json!(model))]);
    match (&choice.key, &key_file) {
        (_, Some(file)) => drop(written.insert("apiKey".to_owned(), json!({ "fromFile": file }))),
        (SetupKey::Variable { name }, None) => {
            drop(written.insert("apiKey".to_owned(), json!({ "fromEnv": name })))
        }
        (SetupKey::Command { command }, None) => {
            drop(written.insert("apiKeyHelper".to_owned(), json!(command)))
        }
        (SetupKey::None {} | SetupKey::Value { .. }, None) => {}
    }
    written.extend(choice.options.as_object().cloned().unwrap_or_default());
    let settings = policies.of_workspace(&[]);
    let set = |path: &str, value: &Value| {
        settings
            .set(SettingsScope::User, path, Some(value))
            .map_err(|error| SetupError::Settings(error.to_string()))
    };
    let change = set(&format!("modelProfiles.{name}"), &Value::Object(written))?;
    if main {
        set("modelPointers.main", &json!(name))?;
    }
    Ok(SavedSetup { profile: name, file: change.file, key_file })
}

/// The provider of a choice.
fn provider(
    choice: &SetupChoice,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<SetupProvider, SetupError> {
    let found = providers(variable).into_iter().find(|provider| provider.id == choice.provider);
    found.ok_or_else(|| SetupError::UnknownProvider(choice.provider.clone()))
}

/// The profile of a choice with a model.
fn profile(
    choice: &SetupChoice,
    model: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Profile, SetupError> {
    if !choice.options.is_object() && !choice.options.is_null() {
        return Err(SetupError::BadOption("options".to_owned(), "write an object".to_owned()));
    }
    let mut written: Map<String, Value> = choice
        .options
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| match OPTIONS.contains(&name.as_str()) {
            true => Ok((name.clone(), value.clone())),
            false => Err(SetupError::BadOption(name.clone(), format!("those are {}", OPTIONS.join(", ")))),
        })
        .collect::<Result<_, _>>()?;
    written.insert("provider".to_owned(), json!(choice.provider));
    written.insert("model".to_owned(), json!(model));
    let options: ProfileOptions = serde_json::from_value(Value::Object(written))
        .map_err(|error| SetupError::BadOption("options".to_owned(), error.to_string()))?;
    let (api_key, api_key_helper) = match &choice.key {
        SetupKey::None {} => (None, None),
        SetupKey::Value { value } => (Some(KeyOption::Value { value: Secret::new(value.trim()) }), None),
        SetupKey::Variable { name } => (Some(KeyOption::Variable { from_env: name.clone() }), None),
        SetupKey::Command { command } => (None, Some(command.clone())),
    };
    let options = ProfileOptions { api_key, api_key_helper, ..options };
    let around = ProfileContext { variable, catalog: ModelCatalog::built_in(), helper: None };
    Ok(Profile::resolve("trial", options, &around)?)
}

/// Writes a key into a file of its own, which replaces an older one of that name.
fn write_key(state: &AbsPath, name: &str, key: &str) -> Result<PathBuf, SetupError> {
    let folder = state.as_path().join(KEYS);
    let path = folder.join(name);
    let unwritable =
        |error: std::io::Error| SetupError::Unwritable { path: path.clone(), reason: error.to_string() };
    std::fs::create_dir_all(&folder).map_err(unwritable)?;
    private::restrict_folder(&folder).map_err(unwritable)?;
    // A new file is readable by the user alone from its creation on.
    let mut file = tempfile::NamedTempFile::new_in(&folder).map_err(unwritable)?;
    private::restrict_file(file.path()).map_err(unwritable)?;
    file.write_all(key.trim().as_bytes()).map_err(unwritable)?;
    file_moves::persist(file, &path).map_err(unwritable)?;
    Ok(path)
}

/// A choice of a provider alone.
#[must_use]
pub(crate) fn choice(provider: &str) -> SetupChoice {
    SetupChoice { provider: provider.to_owned(), model: None, key: SetupKey::None {}, options: Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(_: &str) -> Option<String> {
        None
    }

    #[test]
    fn every_provider_on_offer_makes_a_profile() {
        for offered in providers(&nothing) {
            let mut choice = choice(&offered.id);
            if offered.needs_key {
                choice.key = SetupKey::Value { value: "key".into() };
            }
            for field in offered.fields.iter().filter(|field| field.required) {
                choice.options[&field.name] = json!(field.example);
            }
            let made = profile(&choice, offered.model.as_deref().unwrap_or("m"), &nothing);
            assert!(made.is_ok(), "{}: {:?}", offered.id, made.err());
        }
    }

    #[test]
    fn what_a_provider_needs_is_asked_for_unless_the_environment_has_it() {
        let with = |name: &str| (name == "AWS_REGION").then(|| "eu-west-1".to_owned());
        let region = |variable: &dyn Fn(&str) -> Option<String>| {
            let bedrock = providers(variable).into_iter().find(|provider| provider.id == "bedrock").unwrap();
            let field = bedrock.fields.into_iter().find(|field| field.name == "region").unwrap();
            (field.required, field.example)
        };
        assert_eq!(region(&nothing), (true, Some("us-east-1".to_owned())));
        assert_eq!(region(&with), (false, Some("eu-west-1".to_owned())));
    }

    #[test]
    fn a_choice_that_cannot_work_says_why() {
        let unknown = profile(&choice("nobody"), "m", &nothing).unwrap_err().to_string();
        assert!(unknown.contains("nobody"), "{unknown}");
        let keyless = profile(&choice("anthropic"), "m", &nothing).unwrap_err().to_string();
        assert!(keyless.contains("ANTHROPIC_API_KEY"), "{keyless}");
        let mut odd = choice("ollama");
        odd.options = json!({ "headers": {} });
        let odd = profile(&odd, "m", &nothing).unwrap_err().to_string();
        assert!(odd.contains("`headers`") && odd.contains("baseUrl"), "{odd}");
    }

    #[cfg(unix)]
    #[test]
    fn a_key_file_is_for_the_user_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let state = AbsPath::new(folder.path()).unwrap();
        for key in ["first", " second\n"] {
            let path = write_key(&state, "main", key).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), key.trim());
            let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
        let left: Vec<_> = std::fs::read_dir(folder.path().join(KEYS)).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing is left behind: {left:?}");
    }
}
