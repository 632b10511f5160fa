//! The adapter for Ollama's own chat format, which alone lets a request set the context window that is served.
//!
//! Rule: one request, one answer or one typed error that carries what had arrived; never a tool call that was not
//! complete. The request asks the server to refuse a prompt that is too long and not to cut it.

mod answer;
#[cfg(test)]
mod faults;
mod request;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use self::request::OllamaDialect;
use crate::exchange::ModelExchange;
use kode_model::profile::Profile;
use kode_model::{
    Capabilities, DeltaSink, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, UsageWindow,
    Wire,
};

pub(super) use self::answer::OllamaAnswer;

/// The text after the base URL.
const PATH: &str = "/api/chat";

/// The text of a refusal of a model that does not think.
const NO_THINKING: &str = "does not support thinking";

/// A model behind an Ollama server.
pub struct Ollama {
    model: String,
    host: String,
    exchange: ModelExchange,
    capabilities: Capabilities,
    /// The context window that the request asks the server to serve.
    context_window: u64,
    /// Set when the server has refused to have the model think.
    refuses_thinking: AtomicBool,
}

impl Ollama {
    /// The model of `profile`. Sends nothing.
    ///
    /// # Errors
    /// [`ModelErrorKind::Configuration`] when the profile's address or headers cannot be used.
    pub fn new(profile: &Profile) -> Result<Self, ModelError> {
        Ok(Self {
            model: profile.model.clone(),
            host: profile.host(),
            exchange: ModelExchange::new(profile, PATH, &[])?,
            capabilities: profile.capabilities,
            context_window: profile.context_window,
            refuses_thinking: AtomicBool::new(false),
        })
    }

    async fn ask(
        &self,
        request: &ModelRequest,
        thinks: bool,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let capabilities = Capabilities { thinking: thinks, ..self.capabilities };
        let (model, host) = (self.model.as_str(), self.host.as_str());
        let dialect = OllamaDialect { model, host, capabilities, context_window: self.context_window };
        let body = request::body(dialect, request);
        self.exchange.run(&body, OllamaAnswer::to(&request.messages), on_delta, cancel).await
    }
}

#[async_trait]
impl Model for Ollama {
    fn name(&self) -> &str {
        &self.model
    }

    fn wire(&self) -> Wire {
        Wire::Ollama
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
        let thinks = self.capabilities.thinking && !self.refuses_thinking.load(Ordering::Relaxed);
        match self.ask(request, thinks, on_delta, cancel).await {
            Err(error) if thinks && is_about_thinking(&error) => {
                tracing::debug!(%error, "the model does not think");
                self.refuses_thinking.store(true, Ordering::Relaxed);
                self.ask(request, false, on_delta, cancel).await
            }
            ended => ended,
        }
    }
}

fn is_about_thinking(error: &ModelError) -> bool {
    error.kind == ModelErrorKind::BadRequest && error.partial.is_none() && error.message.contains(NO_THINKING)
}

/// The body of a request to a model that can do everything, as JSON.
#[must_use]
pub fn body_json(model: &str, request: &ModelRequest) -> serde_json::Value {
    let dialect = OllamaDialect { model, host: "", capabilities: Capabilities::ALL, context_window: 32_768 };
    serde_json::to_value(request::body(dialect, request)).unwrap_or_default()
}
