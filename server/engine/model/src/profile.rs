//! Profiles: which model is asked where, with which key, limits and prices.
//!
//! Rule: a profile that exists can be used: address, headers and limits are checked when it is made. Keys are
//! [`Secret`]s, which no debug output shows. The environment is read through the caller, so tests need none.

mod address;
mod clouds;
mod keys;
mod options;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::header::{HeaderName, HeaderValue};
use url::Url;

use super::fallback::Fallback;
use super::models::Serving;
use super::price::Prices;
use super::retry::{DEFAULT_RETRIES, RetryPolicy};
use super::{Capabilities, ModelError, ModelErrorKind, Wire};
use crate::provider::Provider;
use kode_base::effort::Effort;
use kode_base::secret::Secret;
use kode_net::http::HttpOptions;

pub use address::ServerAddress;
pub use keys::{Credentials, HELPER_TTL, KeyHelper, KeyOption};
pub use options::{FallbackOption, ProfileContext, ProfileOptions};

/// The model asked when none is chosen.
pub const DEFAULT_MODEL: &str = "claude-sonnet-5";

/// The server asked when none is chosen.
pub const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// The model asked when OpenAI is and none is chosen.
pub const DEFAULT_OPENAI_MODEL: &str = "gpt-5.6-sol";

/// Where OpenAI is.
pub const DEFAULT_OPENAI_BASE_URL: &str = "https://api.openai.com/v1";

/// The name of the built-in scripted model.
pub const DEMO_MODEL: &str = "scripted-demo";

const DEMO_MAX_TOKENS: u32 = 16_000;
const DEMO_CONTEXT_WINDOW: u64 = 200_000;
const DEMO_IDLE_TIMEOUT: Duration = Duration::from_secs(300);

/// Where the size of a context window is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSource {
    /// The user set it.
    Configured,
    /// The catalog has it.
    Catalog,
    /// Nothing is known: it is a guess.
    Assumed,
    /// The server told it, in a list of its models, an error, or an answer to a prompt that was cut.
    Served,
}

/// Everything needed to ask one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Its name for users.
    pub name: String,
    /// Its provider.
    pub provider: Provider,
    /// The server, without a trailing slash: for the Messages format what precedes `/v1/messages`, for the
    /// others what precedes `/chat/completions` and `/responses`.
    pub base_url: String,
    /// The text after the `?` of every request, if anything does.
    pub query: Option<String>,
    /// The model's name as the provider knows it.
    pub model: String,
    /// How requests prove who they are from.
    pub credentials: Credentials,
    /// The command that prints the key, where one does; the connecting code runs it.
    pub key_helper: Option<KeyHelper>,
    /// The most tokens one answer may have.
    pub max_tokens: u32,
    /// How many tokens the model can read.
    pub context_window: u64,
    /// Where the context window is from.
    pub window_source: WindowSource,
    /// Reasoning effort, if not the provider's own.
    pub effort: Option<Effort>,
    /// Sampling temperature from 0 to 1, if not the provider's own.
    pub temperature: Option<f32>,
    /// Nucleus sampling from 0 to 1, if not the provider's own.
    pub top_p: Option<f32>,
    /// Further headers of every request.
    pub headers: BTreeMap<String, Secret>,
    /// How often a failed request is tried again.
    pub max_retries: u32,
    /// How long the server may be silent.
    pub idle_timeout: Duration,
    /// How the server is reached.
    pub http: HttpOptions,
    /// The abilities of the model.
    pub capabilities: Capabilities,
    /// Whether the user said if the model calls tools.
    pub tools_are_set: bool,
    /// Its cost, if that is known.
    pub prices: Option<Prices>,
    /// The fallback when it fails, if anybody.
    pub fallback: Option<Fallback>,
    /// Whether the provider may keep answers, so that the next request continues from them. Only the Responses format
    /// has a say in it.
    pub store: bool,
}

impl Profile {
    /// The profile of the built-in scripted model. Its server's port is only known once it is connected.
    #[must_use]
    pub fn demo() -> Self {
        Self {
            name: Provider::Demo.name().to_owned(),
            provider: Provider::Demo,
            base_url: "http://127.0.0.1".to_owned(),
            query: None,
            model: DEMO_MODEL.to_owned(),
            credentials: Credentials::ApiKey(Secret::new("demo")),
            key_helper: None,
            max_tokens: DEMO_MAX_TOKENS,
            context_window: DEMO_CONTEXT_WINDOW,
            window_source: WindowSource::Configured,
            effort: None,
            temperature: None,
            top_p: None,
            headers: BTreeMap::new(),
            max_retries: DEFAULT_RETRIES,
            idle_timeout: DEMO_IDLE_TIMEOUT,
            http: HttpOptions::default(),
            capabilities: Capabilities::ALL,
            tools_are_set: true,
            prices: None,
            fallback: None,
            store: true,
        }
    }

    /// Where requests to `path`, which begins with a slash, go.
    ///
    /// # Errors
    /// [`ModelErrorKind::Configuration`] when that is no address.
    pub fn endpoint(&self, path: &str) -> Result<Url, ModelError> {
        let mut url = Url::parse(&format!("{}{path}", self.base_url))
            .map_err(|error| configuration(format!("The base URL cannot be used: {error}.")))?;
        url.set_query(self.query.as_deref());
        Ok(url)
    }

    /// The server's name, and its port where it is not the usual one.
    #[must_use]
    pub fn host(&self) -> String {
        let Ok(url) = Url::parse(&self.base_url) else { return String::new() };
        let host = url.host_str().unwrap_or_default();
        url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Takes in how the server serves the model. What the user set stays, but for a window that is not served.
    pub(crate) fn serve(&mut self, serving: Serving) {
        if serving.tools == Some(false) && !self.tools_are_set {
            self.capabilities.tool_use = false;
        }
        let is_upper_bound =
            self.provider == Provider::Ollama || self.window_source == WindowSource::Configured;
        let served = serving.context_window.filter(|window| *window > 0);
        let Some(window) = served.filter(|window| !is_upper_bound || *window < self.context_window) else {
            return;
        };
        (self.context_window, self.window_source) = (window, WindowSource::Served);
        self.max_tokens = self.max_tokens.min(options::answer_share(window));
    }

    /// Whether a connection that was made for `other` serves this profile as well.
    pub(crate) fn connects_as(&self, other: &Self) -> bool {
        // Ollama gets the window with every request; no other provider does.
        let is_reported = self.provider == Provider::Ollama;
        let same = |one: &Self| Self {
            context_window: if is_reported { one.context_window } else { 0 },
            window_source: WindowSource::Assumed,
            max_tokens: 0,
            ..one.clone()
        };
        same(self) == same(other)
    }

    /// The wire format it is asked in.
    #[must_use]
    pub fn wire(&self) -> Wire {
        self.provider.wire()
    }

    /// How patient requests of this profile are.
    #[must_use]
    pub fn retry_policy(&self) -> RetryPolicy {
        RetryPolicy { max_retries: self.max_retries, ..RetryPolicy::default() }
    }

    /// Checks that the profile can work.
    ///
    /// # Errors
    /// Of kind [`ModelErrorKind::Configuration`], naming the option.
    pub fn check(&self) -> Result<(), ModelError> {
        if self.model.trim().is_empty() {
            return Err(configuration("The option `model` is empty; name a model or leave it out."));
        }
        if self.max_tokens == 0 {
            return Err(configuration("The option `maxTokens` must be at least 1."));
        }
        if self.context_window <= u64::from(self.max_tokens) {
            return Err(configuration(format!(
                "The option `contextWindow` ({}) must be greater than `maxTokens` ({}).",
                self.context_window, self.max_tokens
            )));
        }
        for (name, share) in [("temperature", self.temperature), ("topP", self.top_p)] {
            if share.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
                return Err(configuration(format!("The option `{name}` must be between 0 and 1.")));
            }
        }
        for (name, value) in &self.headers {
            let valid =
                HeaderName::try_from(name.as_str()).is_ok() && HeaderValue::try_from(value.expose()).is_ok();
            if !valid {
                return Err(configuration(format!("The option `headers` has an invalid entry `{name}`.")));
            }
        }
        let key = self.credentials.secret();
        if key.is_some_and(|key| key.expose().is_empty()) {
            return Err(configuration("The API key is empty."));
        }
        if self.prices.is_some_and(|prices| !prices.is_sound()) {
            return Err(configuration("The option `prices` holds a number that is no price."));
        }
        if key.is_some_and(|key| HeaderValue::try_from(key.expose()).is_err()) {
            return Err(configuration("The API key holds characters that cannot be sent in a header."));
        }
        Ok(())
    }
}

fn configuration(message: impl Into<String>) -> ModelError {
    ModelError::new(ModelErrorKind::Configuration, message)
}
