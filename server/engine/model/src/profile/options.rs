//! The options of a profile, and the profile that they make.
//!
//! Rule: written values win over the environment, and that over the catalog. A key of the environment goes
//! only to the server it is for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use url::Url;

use super::address::{ServerAddress, is_versioned, wire_of};
use super::clouds;
use super::keys::{Credentials, HELPER_TTL, KeyHelper, KeyOption};
use super::{
    DEFAULT_BASE_URL, DEFAULT_MODEL, DEFAULT_OPENAI_BASE_URL, DEFAULT_OPENAI_MODEL, Profile, WindowSource,
    configuration,
};
use crate::catalog::{CapabilityOptions, KnownProvider, ModelCatalog};
use crate::fallback::{Fallback, Trigger};
use crate::price::Prices;
use crate::provider::Provider;
use crate::{ModelError, Wire};
use kode_base::effort::Effort;
use kode_base::secret::Secret;
use kode_net::http::{CONNECT_TIMEOUT, HttpOptions, ProxyOption, is_loopback};

/// The most tokens of an answer of a model of which nothing is known.
const DEFAULT_MAX_TOKENS: u32 = 16_000;
/// The most tokens of an answer of a known model, if it can give that many.
const KNOWN_MAX_TOKENS: u32 = 32_000;
/// The window of an unknown model.
const DEFAULT_CONTEXT_WINDOW: u64 = 200_000;
/// The assumed window of a model on the user's machine, until its server tells.
const LOCAL_CONTEXT_WINDOW: u64 = 32_768;
/// The largest file that holds a key.
const MAX_KEY_FILE: u64 = 64 * 1024;
/// An answer gets at most this part of a context window, unless the user says more.
const WINDOW_SHARE: u64 = 4;
/// How long a server may be silent.
const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(300);
/// No time limit is longer.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The options of a profile; the rest comes from the environment, the catalog and the defaults.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ProfileOptions {
    /// The provider of the model: a wire format (`anthropic`, `openai`, `openai-responses`), `demo`, or a known provider.
    pub provider: Option<String>,
    /// The server, with or without the paths of the wire format.
    #[serde(alias = "baseURL")]
    pub base_url: Option<String>,
    /// The model's name.
    #[serde(alias = "modelName")]
    pub model: Option<String>,
    /// The API key itself, or `{"fromEnv": "NAME"}`.
    pub api_key: Option<KeyOption>,
    /// The environment variable that holds the API key.
    pub api_key_env: Option<String>,
    /// A command that prints the API key.
    pub api_key_helper: Option<String>,
    /// How long its key is used, in milliseconds.
    pub api_key_helper_ttl_ms: Option<u64>,
    /// The most tokens one answer may have.
    pub max_tokens: Option<u32>,
    /// How many tokens the model can read.
    #[serde(alias = "contextLength")]
    pub context_window: Option<u64>,
    /// Reasoning effort.
    #[serde(alias = "reasoningEffort")]
    pub effort: Option<Effort>,
    /// Sampling temperature, from 0 to 1.
    pub temperature: Option<f32>,
    /// Nucleus sampling, from 0 to 1.
    pub top_p: Option<f32>,
    /// Further headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// How often a failed request is tried again.
    pub max_retries: Option<u32>,
    /// The fallback when it fails.
    pub fallback: Option<FallbackOption>,
    /// Whether the provider may keep answers; yes if not said.
    pub store: Option<bool>,
    /// The abilities of the model.
    pub capabilities: CapabilityOptions,
    /// Its cost.
    pub prices: Option<Prices>,
    /// The address of a proxy, or `none`; that of the system if not said.
    pub proxy: Option<Secret>,
    /// Files with further certificates to trust, in PEM.
    pub ca_certificates: Vec<PathBuf>,
    /// How long making a connection may take, in milliseconds.
    pub connect_timeout_ms: Option<u64>,
    /// How long the server may be silent, in milliseconds.
    pub idle_timeout_ms: Option<u64>,
    /// The region or location of a cloud: Bedrock and Vertex.
    #[serde(alias = "location")]
    pub region: Option<String>,
    /// The profile in AWS' shared files that signs requests: Bedrock.
    pub aws_profile: Option<String>,
    /// The project that is charged: Vertex.
    pub project: Option<String>,
    /// The version of the API that deployments are asked by: Azure.
    pub api_version: Option<String>,
}

/// The fallback when a profile fails: its name, or its name and the triggers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum FallbackOption {
    /// By its name; the usual triggers.
    Name(String),
    /// With triggers.
    Full(Fallback),
}

impl From<FallbackOption> for Fallback {
    fn from(option: FallbackOption) -> Self {
        match option {
            FallbackOption::Name(profile) => Self { profile, triggers: Trigger::usual() },
            FallbackOption::Full(fallback) => fallback,
        }
    }
}

/// The surroundings of a profile.
pub struct ProfileContext<'a> {
    /// The value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// The known models.
    pub catalog: &'a ModelCatalog,
    /// The helper for the key of Anthropic or of `ANTHROPIC_BASE_URL`, where a profile and the environment have none.
    pub helper: Option<KeyHelper>,
}

/// The provider of a model and its address.
pub(super) struct ModelServer {
    pub(super) provider: Provider,
    pub(super) address: ServerAddress,
    /// The provider, if it is known by name.
    pub(super) known: Option<OwnKey>,
    /// Whether it is the one that the environment's own key and the common helper are for.
    pub(super) is_of_environment: bool,
    /// Whether the user said what it speaks.
    pub(super) is_named: bool,
    /// Whether it is a program of the user's own machine, which serves less than a model can read.
    pub(super) is_local: bool,
    /// How requests are signed or who prints their token where no key is given: a cloud's own way.
    pub(super) usual: Option<(Credentials, Option<KeyHelper>)>,
}

/// The key of a provider that is known by name.
pub(super) struct OwnKey {
    /// The variable that holds it; none for servers that want no key.
    pub(super) variable: Option<String>,
    /// Where the provider is.
    pub(super) base_url: String,
    /// Whether the profile asks the provider's own host.
    pub(super) is_there: bool,
}

impl ProfileContext<'_> {
    /// A variable; an empty one counts as not set.
    pub(super) fn set(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.trim().is_empty())
    }

    pub(super) fn expand(&self, text: &str, option: &str) -> Result<String, ModelError> {
        kode_base::variables::expand(text, self.variable).complete().map_err(|name| {
            configuration(format!(
                "The environment variable `{name}`, which the option `{option}` names, is not set."
            ))
        })
    }
}

impl Profile {
    /// The profile called `name` that `options` describe, completed from the environment (`ANTHROPIC_API_KEY`,
    /// `ANTHROPIC_AUTH_TOKEN`, `ANTHROPIC_BASE_URL`, `ANTHROPIC_MODEL`, `OPENAI_API_KEY`, `OPENAI_BASE_URL`,
    /// `OPENAI_MODEL`) and the catalog.
    ///
    /// # Errors
    /// [`crate::ModelErrorKind::Configuration`] naming the option or variable that is missing or wrong.
    pub fn resolve(
        name: &str,
        options: ProfileOptions,
        around: &ProfileContext<'_>,
    ) -> Result<Self, ModelError> {
        if options.provider.as_deref() == Some(Provider::Demo.name()) {
            return Ok(Self { name: name.to_owned(), ..Self::demo() });
        }
        let server = server(&options, around)?;
        let wire = server.provider.wire();
        let model = match &options.model {
            Some(model) => around.expand(model, "model")?,
            None => model_of_environment(server.provider, around)?,
        };
        let host = Url::parse(&server.address.base).ok();
        let host_name = host.as_ref().and_then(Url::host_str).unwrap_or_default();
        let facts = around.catalog.facts(&model, wire, host_name);
        let (context_window, window_source) = window(&options, &server, facts.context_window);
        let capabilities = options.capabilities.over(facts.capabilities);
        let capabilities = crate::Capabilities {
            // A stated effort means that the model reasons.
            thinking: capabilities.thinking
                || (options.effort.is_some() && options.capabilities.thinking.is_none()),
            ..capabilities
        };
        let (credentials, key_helper) = credentials(&options, &server, host.as_ref(), around)?;
        let sampling = |share: Option<f32>| share.filter(|_| capabilities.temperature);
        let profile = Self {
            name: name.to_owned(),
            provider: server.provider,
            base_url: server.address.base,
            query: server.address.query,
            model,
            credentials,
            key_helper,
            max_tokens: options.max_tokens.unwrap_or_else(|| max_tokens(facts.max_output, context_window)),
            context_window,
            window_source,
            effort: options.effort,
            temperature: options.temperature,
            top_p: options.top_p,
            headers: headers(&options.headers, around)?,
            max_retries: options.max_retries.unwrap_or(crate::retry::DEFAULT_RETRIES),
            idle_timeout: duration(options.idle_timeout_ms, DEFAULT_IDLE_TIMEOUT, "idleTimeoutMs")?,
            http: http(&options, around)?,
            capabilities,
            tools_are_set: options.capabilities.tools.is_some(),
            prices: options.prices.or(facts.prices),
            fallback: options.fallback.map(Fallback::from),
            store: options.store.unwrap_or(true),
        };
        profile.check()?;
        Ok(Self { temperature: sampling(profile.temperature), top_p: sampling(profile.top_p), ..profile })
    }

    /// The profile the environment alone describes. `lookup` gives the value of a variable.
    ///
    /// # Errors
    /// As [`Profile::resolve`].
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ModelError> {
        let around = ProfileContext { variable: &lookup, catalog: ModelCatalog::built_in(), helper: None };
        Self::resolve("main", ProfileOptions::default(), &around)
    }
}

/// The context window: the user's, else the catalog's, within what a local program is likely to serve.
fn window(options: &ProfileOptions, server: &ModelServer, known: Option<u64>) -> (u64, WindowSource) {
    match (options.context_window, known) {
        (Some(window), _) => (window, WindowSource::Configured),
        (None, Some(window)) if window <= LOCAL_CONTEXT_WINDOW || !server.is_local => {
            (window, WindowSource::Catalog)
        }
        (None, Some(_) | None) if server.is_local => (LOCAL_CONTEXT_WINDOW, WindowSource::Assumed),
        (None, Some(_) | None) => (DEFAULT_CONTEXT_WINDOW, WindowSource::Assumed),
    }
}

/// The provider of the model: by what the options say, else by what their address says, else by the keys there are.
fn server(options: &ProfileOptions, around: &ProfileContext<'_>) -> Result<ModelServer, ModelError> {
    let written = options.base_url.as_deref().map(|address| around.expand(address, "baseUrl")).transpose()?;
    let named = options.provider.as_deref().map(|name| provider(name, around)).transpose()?;
    let is_named = named.is_some();
    let provider = match named {
        Some(ProviderName::Known(known)) if known.provider == Provider::Ollama && written.is_none() => {
            return of_known(known, around.set("OLLAMA_HOST").map(|host| ollama_address(&host)).as_deref());
        }
        Some(ProviderName::Known(known)) => return of_known(known, written.as_deref()),
        Some(ProviderName::Format(Provider::Bedrock)) => {
            return clouds::bedrock(options, written.as_deref(), around);
        }
        Some(ProviderName::Format(Provider::Vertex | Provider::VertexGemini)) => {
            return clouds::vertex(options, written.as_deref(), around);
        }
        Some(ProviderName::Format(Provider::Azure | Provider::AzureResponses)) => {
            return clouds::azure(options, written.as_deref(), around);
        }
        Some(ProviderName::Format(provider)) => provider,
        None => guess(options, written.as_deref(), around),
    };
    let wire = provider.wire();
    let (variable, usual) = match wire {
        Wire::ChatCompletions | Wire::Responses => ("OPENAI_BASE_URL", DEFAULT_OPENAI_BASE_URL),
        Wire::AnthropicMessages | Wire::Gemini | Wire::Ollama => ("ANTHROPIC_BASE_URL", DEFAULT_BASE_URL),
    };
    let of_environment = around.set(variable);
    let address = match &written {
        Some(written) => ServerAddress::read(written, wire)?,
        None => ServerAddress::read(of_environment.as_deref().unwrap_or(usual), wire)?,
    };
    let is_at = |own: &str| ServerAddress::read(own, wire).is_ok_and(|own| own.base == address.base);
    let is_of_environment = written.is_none() || is_at(usual) || of_environment.as_deref().is_some_and(is_at);
    Ok(ModelServer {
        provider,
        address,
        known: None,
        is_of_environment,
        is_named,
        is_local: false,
        usual: None,
    })
}

/// The server of a provider that is known by name.
fn of_known(known: &KnownProvider, written: Option<&str>) -> Result<ModelServer, ModelError> {
    let written_wire = written.filter(|address| is_openai_end(address)).map(|_| Provider::OpenAi);
    // The endpoint of Gemini that is compatible with OpenAI's.
    let provider = match (known.provider, written_wire) {
        (Provider::Gemini, Some(compatible)) => compatible,
        (provider, _) => provider,
    };
    let address = ServerAddress::read(written.unwrap_or(&known.base_url), provider.wire())?;
    let origin = |address: &str| Url::parse(address).ok().map(|url| url.origin());
    let is_there = origin(&address.base) == origin(&known.base_url);
    let (variable, base_url) = (known.api_key_env.clone(), known.base_url.clone());
    Ok(ModelServer {
        provider,
        address,
        known: Some(OwnKey { variable, base_url, is_there }),
        is_of_environment: false,
        is_named: true,
        is_local: known.is_local(),
        usual: None,
    })
}

/// The address in `OLLAMA_HOST`, which names a host, a port or both, mostly without a scheme. All interfaces of a server
/// are loopback for its client.
fn ollama_address(host: &str) -> String {
    const PORT: u16 = 11_434;
    let host = host.trim();
    let address = if host.contains("://") { host.to_owned() } else { format!("http://{host}") };
    let address = address.replacen("://:", "://127.0.0.1:", 1);
    let Ok(mut url) = Url::parse(&address) else { return address };
    if matches!(url.host_str(), Some("0.0.0.0" | "[::]")) {
        // A loopback address is a host.
        let _ = url.set_host(Some("127.0.0.1"));
    }
    if url.port().is_none() && !host.contains("://") {
        // So has every address a port.
        let _ = url.set_port(Some(PORT));
    }
    url.to_string()
}

/// Whether an address ends as the endpoints do that are compatible with OpenAI's.
fn is_openai_end(address: &str) -> bool {
    let path = address.trim_end_matches('/');
    path.ends_with("/openai") || wire_of(address) == Some(Wire::ChatCompletions)
}

/// The meaning of a provider's name.
enum ProviderName<'a> {
    /// A provider that is known by name.
    Known(&'a KnownProvider),
    /// A wire format, spoken by whatever server.
    Format(Provider),
}

fn provider<'a>(name: &str, around: &'a ProfileContext<'_>) -> Result<ProviderName<'a>, ModelError> {
    let name = name.trim().to_lowercase();
    // Some formats have one usual server, which the catalog knows.
    if let Some(known) = around.catalog.provider(&name) {
        return Ok(ProviderName::Known(known));
    }
    if let Some(provider) = Provider::parse(&name) {
        return Ok(ProviderName::Format(provider));
    }
    let names: Vec<_> = around.catalog.provider_names().collect();
    Err(configuration(format!(
        "There is no provider `{name}`. Write the format your server speaks (`anthropic`, `openai` for Chat Completions, \
         `openai-responses`) and its `baseUrl`, a cloud (`bedrock`, `vertex`, `azure`), or one of: {}.",
        names.join(", ")
    )))
}

fn guess(options: &ProfileOptions, address: Option<&str>, around: &ProfileContext<'_>) -> Provider {
    let of_wire = |wire| match wire {
        // No address ends in a way that names one of the last two.
        Wire::AnthropicMessages | Wire::Gemini | Wire::Ollama => Provider::Anthropic,
        Wire::ChatCompletions => Provider::OpenAi,
        Wire::Responses => Provider::OpenAiResponses,
    };
    if let Some(address) = address {
        return match wire_of(address) {
            Some(wire) => of_wire(wire),
            None if is_anthropics(address, around) => Provider::Anthropic,
            None if is_openai(address) => Provider::OpenAiResponses,
            None if is_versioned(address) => Provider::OpenAi,
            None => Provider::Anthropic,
        };
    }
    let has_key =
        options.api_key.is_some() || options.api_key_env.is_some() || options.api_key_helper.is_some();
    let has_anthropic =
        ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"].iter().any(|name| around.set(name).is_some());
    if has_key || has_anthropic || around.set("OPENAI_API_KEY").is_none() {
        return Provider::Anthropic;
    }
    match around.set("OPENAI_BASE_URL") {
        // Servers that are compatible with OpenAI's speak its older format.
        Some(address) if !is_openai(&address) => wire_of(&address).map_or(Provider::OpenAi, of_wire),
        _ => Provider::OpenAiResponses,
    }
}

/// Whether an address is the one where the environment's Messages server is, or Anthropic's own.
fn is_anthropics(address: &str, around: &ProfileContext<'_>) -> bool {
    let base = |address: &str| {
        ServerAddress::read(address, Wire::AnthropicMessages).ok().map(|address| address.base)
    };
    let own = [Some(DEFAULT_BASE_URL.to_owned()), around.set("ANTHROPIC_BASE_URL")];
    let address = base(address);
    address.is_some() && own.iter().flatten().any(|own| base(own) == address)
}

fn is_openai(address: &str) -> bool {
    let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
    host.is_some_and(|host| host == "openai.com" || host.ends_with(".openai.com"))
}

fn model_of_environment(provider: Provider, around: &ProfileContext<'_>) -> Result<String, ModelError> {
    let (variable, usual) = match provider {
        Provider::Anthropic | Provider::Demo => ("ANTHROPIC_MODEL", Some(DEFAULT_MODEL)),
        Provider::OpenAiResponses => ("OPENAI_MODEL", Some(DEFAULT_OPENAI_MODEL)),
        // Which models such a server has is its own affair.
        Provider::OpenAi => ("OPENAI_MODEL", None),
        Provider::Bedrock | Provider::Vertex => ("ANTHROPIC_MODEL", None),
        Provider::Gemini
        | Provider::VertexGemini
        | Provider::Ollama
        | Provider::Azure
        | Provider::AzureResponses => {
            return Err(configuration("No model is named: write the option `model`."));
        }
    };
    around.set(variable).or(usual.map(str::to_owned)).ok_or_else(|| {
        configuration(format!("No model is named: write the option `model`, or set {variable}."))
    })
}

/// The key: the profile's own, that of the environment for its own server, that of the helper, or none on this machine.
fn credentials(
    options: &ProfileOptions,
    server: &ModelServer,
    host: Option<&Url>,
    around: &ProfileContext<'_>,
) -> Result<(Credentials, Option<KeyHelper>), ModelError> {
    let key = |text: String| Ok((Credentials::ApiKey(Secret::new(text.trim())), None));
    let of_variable = |name: &str, option: &str| match around.set(name) {
        Some(text) => key(text),
        None => Err(configuration(format!(
            "The environment variable `{name}`, which the option `{option}` names, is not set."
        ))),
    };
    match &options.api_key {
        Some(KeyOption::Text(text) | KeyOption::Value { value: text })
            if !text.expose().trim().is_empty() =>
        {
            return key(around.expand(text.expose(), "apiKey")?);
        }
        Some(KeyOption::Variable { from_env }) => return of_variable(from_env, "apiKey"),
        Some(KeyOption::File { from_file }) => return key(of_file(from_file, around)?),
        Some(KeyOption::Text(_) | KeyOption::Value { .. }) | None => {}
    }
    if let Some(name) = &options.api_key_env {
        return of_variable(name, "apiKeyEnv");
    }
    if let Some(command) = &options.api_key_helper {
        let ttl = duration(options.api_key_helper_ttl_ms, HELPER_TTL, "apiKeyHelperTtlMs")?;
        return Ok((Credentials::None, Some(KeyHelper { command: command.clone(), ttl })));
    }
    let of_known = server.known.as_ref().filter(|known| known.is_there);
    let of_known = of_known.and_then(|known| around.set(known.variable.as_deref()?));
    if let Some(text) = of_known {
        return key(text);
    }
    if let Some(usual) = &server.usual {
        return Ok(usual.clone());
    }
    let is_anthropic = server.provider.wire() == Wire::AnthropicMessages && server.known.is_none();
    if server.is_of_environment && is_anthropic {
        if let Some(text) = around.set("ANTHROPIC_API_KEY") {
            return key(text);
        }
        if let Some(token) = around.set("ANTHROPIC_AUTH_TOKEN") {
            return Ok((Credentials::Bearer(Secret::new(token.trim())), None));
        }
        if let Some(helper) = &around.helper {
            return Ok((Credentials::None, Some(helper.clone())));
        }
    } else if server.is_of_environment
        && let Some(text) = around.set("OPENAI_API_KEY")
    {
        return key(text);
    }
    let is_local = host.is_some_and(is_loopback);
    let sends_own = options.headers.keys().any(|name| {
        ["authorization", "x-api-key", "api-key"].iter().any(|known| name.eq_ignore_ascii_case(known))
    });
    // Programs like Ollama want no key on the user's other machines either.
    if is_local || server.is_local || sends_own {
        return Ok((Credentials::None, None));
    }
    Err(configuration(no_key(server, is_anthropic)))
}

/// The key in a file of the user's.
fn of_file(file: &Path, around: &ProfileContext<'_>) -> Result<String, ModelError> {
    let path = match (file.strip_prefix("~"), around.set("HOME")) {
        (Ok(rest), Some(home)) => PathBuf::from(home).join(rest),
        (Ok(_), None) | (Err(_), _) => file.to_owned(),
    };
    let failed = |why: &dyn std::fmt::Display| {
        configuration(format!(
            "The file `{}`, which the option `apiKey` names, cannot be read: {why}. Write the key into it, or run \
             `kode-ls setup`.",
            path.display()
        ))
    };
    if !path.is_absolute() {
        return Err(failed(&"the path is not absolute"));
    }
    let facts = std::fs::metadata(&path).map_err(|error| failed(&error))?;
    if facts.len() > MAX_KEY_FILE {
        return Err(failed(&format!("it is larger than {MAX_KEY_FILE} bytes")));
    }
    let text = std::fs::read_to_string(&path).map_err(|error| failed(&error))?;
    if text.trim().is_empty() { Err(failed(&"it is empty")) } else { Ok(text) }
}

/// Why there is no key for a server, and where one could be.
fn no_key(server: &ModelServer, is_anthropic: bool) -> String {
    let known = server.known.as_ref();
    let variable = known.filter(|known| known.is_there).and_then(|known| known.variable.as_deref());
    let usual = if is_anthropic { "ANTHROPIC_API_KEY" } else { "OPENAI_API_KEY" };
    if variable.is_some() || server.is_of_environment {
        let variable = variable.unwrap_or(usual);
        return format!("There is no API key: neither the option `apiKey` nor {variable} is set.");
    }
    let of_known = known.and_then(|known| Some((known.variable.as_deref()?, &known.base_url)));
    let elsewhere = match of_known {
        Some((variable, base_url)) => format!("{variable} is only sent to {base_url}."),
        None if is_anthropic => {
            "ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN and the common `apiKeyHelper` are only used for Anthropic and for \
             ANTHROPIC_BASE_URL."
                .to_owned()
        }
        None => "OPENAI_API_KEY is only sent to OpenAI and to OPENAI_BASE_URL.".to_owned(),
    };
    let mut text = format!(
        "There is no API key for this server: set `apiKey`, `apiKeyEnv` or `apiKeyHelper` in its profile. {elsewhere}"
    );
    if !server.is_named {
        let provider = server.provider.name();
        text.push_str(&format!(
            " It is treated as a server of the format `{provider}`; `provider` names another one."
        ));
    }
    text
}

fn headers(
    written: &BTreeMap<String, Secret>,
    around: &ProfileContext<'_>,
) -> Result<BTreeMap<String, Secret>, ModelError> {
    let expanded = |(name, value): (&String, &Secret)| {
        let value = around.expand(value.expose(), &format!("headers.{name}"))?;
        Ok((name.clone(), Secret::new(value)))
    };
    written.iter().map(expanded).collect()
}

fn http(options: &ProfileOptions, around: &ProfileContext<'_>) -> Result<HttpOptions, ModelError> {
    let proxy = match &options.proxy {
        None => ProxyOption::System,
        Some(text) => match around.expand(text.expose(), "proxy")?.trim() {
            "" => ProxyOption::System,
            "none" => ProxyOption::None,
            address => {
                let is_usable = Url::parse(address)
                    .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.host_str().is_some());
                if !is_usable {
                    return Err(configuration(
                        "The option `proxy` is no address; write it like `http://proxy.example:3128`, or `none`.",
                    ));
                }
                ProxyOption::At(Secret::new(address))
            }
        },
    };
    let mut ca_certificates = Vec::new();
    for file in &options.ca_certificates {
        let file = PathBuf::from(around.expand(&file.to_string_lossy(), "caCertificates")?);
        if !file.is_absolute() {
            return Err(configuration(format!(
                "The option `caCertificates` names `{}`; write the whole path, from the root on.",
                file.display()
            )));
        }
        ca_certificates.push(file);
    }
    ca_certificates.extend(around.set("NODE_EXTRA_CA_CERTS").map(PathBuf::from));
    let connect_timeout = duration(options.connect_timeout_ms, CONNECT_TIMEOUT, "connectTimeoutMs")?;
    Ok(HttpOptions { proxy, ca_certificates, connect_timeout })
}

fn duration(millis: Option<u64>, default: Duration, option: &str) -> Result<Duration, ModelError> {
    match millis.map(Duration::from_millis) {
        None => Ok(default),
        Some(wanted) if !wanted.is_zero() && wanted <= MAX_TIMEOUT => Ok(wanted),
        Some(_) => Err(configuration(format!(
            "The option `{option}` must be at least 1 and at most a day, in milliseconds."
        ))),
    }
}

/// The most tokens of an answer: what the model can give, within bounds that leave room to read.
fn max_tokens(max_output: Option<u32>, context_window: u64) -> u32 {
    let wanted = max_output.map_or(DEFAULT_MAX_TOKENS, |most| most.min(KNOWN_MAX_TOKENS));
    wanted.min(answer_share(context_window))
}

/// The part of a window that an answer gets, in tokens.
pub(super) fn answer_share(context_window: u64) -> u32 {
    u32::try_from(context_window / WINDOW_SHARE).unwrap_or(u32::MAX).max(1)
}
