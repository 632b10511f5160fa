//! The adapter for servers that speak OpenAI Chat Completions, or what they take for it.
//!
//! Rule: one request, one answer or one typed error that carries what had arrived; never a tool call that was not
//! complete. What a server may lack is asked of its capabilities, not of its name.

mod answer;
#[cfg(test)]
mod faults;
mod request;
mod sealed;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use self::request::ChatDialect;
use crate::exchange::ModelExchange;
use kode_model::profile::Profile;
use kode_model::{
    Capabilities, DeltaSink, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, UsageWindow,
    Wire,
};

pub(super) use self::answer::ChatAnswer;

/// The text after the base URL.
const PATH: &str = "/chat/completions";

/// The server that keeps its prompt cache by a key of the request.
const CACHE_KEY_HOST: &str = "api.openai.com";

/// The text of a refusal about token counts in streams.
const USAGE_OPTION_NAMES: [&str; 2] = ["stream_options", "include_usage"];

/// A model behind a Chat Completions endpoint.
pub struct ChatCompletions {
    model: String,
    host: String,
    exchange: ModelExchange,
    capabilities: Capabilities,
    takes_cache_key: bool,
    /// Set when the server has refused to be asked for token counts in streams.
    refuses_usage_option: AtomicBool,
}

impl ChatCompletions {
    /// The model of `profile`, whose address is what precedes `/chat/completions`. Sends nothing.
    ///
    /// # Errors
    /// [`ModelErrorKind::Configuration`] when the profile's address or headers cannot be used.
    pub fn new(profile: &Profile) -> Result<Self, ModelError> {
        let exchange = ModelExchange::new(profile, PATH, &[])?;
        Ok(Self {
            model: profile.model.clone(),
            host: profile.host(),
            takes_cache_key: exchange.endpoint().host_str() == Some(CACHE_KEY_HOST),
            exchange,
            capabilities: profile.capabilities,
            refuses_usage_option: AtomicBool::new(false),
        })
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        include_usage: bool,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let dialect = ChatDialect {
            model: &self.model,
            host: &self.host,
            capabilities: self.capabilities,
            include_usage,
            takes_cache_key: self.takes_cache_key,
        };
        let body = request::body(dialect, request);
        self.exchange.run(&body, ChatAnswer::to(&request.messages), on_delta, cancel).await
    }
}

#[async_trait]
impl Model for ChatCompletions {
    fn name(&self) -> &str {
        &self.model
    }

    fn wire(&self) -> Wire {
        Wire::ChatCompletions
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn usage_windows(&self) -> Vec<UsageWindow> {
        self.exchange.windows().now()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let include_usage = self.capabilities.streaming && !self.refuses_usage_option.load(Ordering::Relaxed);
        match self.ask(request, include_usage, on_delta, cancel).await {
            Err(error) if include_usage && is_about_usage_option(&error) => {
                tracing::debug!(%error, "the server does not tell token counts in streams");
                self.refuses_usage_option.store(true, Ordering::Relaxed);
                self.ask(request, false, on_delta, cancel).await
            }
            ended => ended,
        }
    }
}

fn is_about_usage_option(error: &ModelError) -> bool {
    error.kind == ModelErrorKind::BadRequest
        && error.partial.is_none()
        && USAGE_OPTION_NAMES.iter().any(|name| error.message.contains(name))
}

/// The body of a request to a model that can do everything, as JSON.
#[must_use]
pub fn body_json(model: &str, request: &ModelRequest) -> serde_json::Value {
    let dialect = ChatDialect {
        model,
        host: "",
        capabilities: Capabilities::ALL,
        include_usage: true,
        takes_cache_key: true,
    };
    serde_json::to_value(request::body(dialect, request)).unwrap_or_default()
}
