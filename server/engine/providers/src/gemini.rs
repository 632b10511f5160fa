//! The adapter for servers that speak Gemini's own format: Google's API, and Google models on Vertex AI.
//!
//! Rule: one request, one answer or one typed error that carries what had arrived; never a tool call that was not
//! complete. Parts with a signature go back as the parts they were.

mod answer;
#[cfg(test)]
mod faults;
mod request;
mod sealed;
#[cfg(test)]
mod tests;
mod wire;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use self::request::GeminiDialect;
use crate::exchange::ModelExchange;
use kode_model::profile::Profile;
use kode_model::provider::Provider;
use kode_model::{
    Capabilities, DeltaSink, Model, ModelError, ModelRequest, ModelResponse, UsageWindow, Wire,
};

pub(super) use self::answer::GeminiAnswer;

/// Has the server stream server-sent events and not one JSON array.
const STREAMED: (&str, &str) = ("alt", "sse");

/// A model behind a Gemini endpoint.
pub struct Gemini {
    model: String,
    host: String,
    exchange: ModelExchange,
    capabilities: Capabilities,
}

impl Gemini {
    /// The model of `profile`. Sends nothing.
    ///
    /// # Errors
    /// [`kode_model::ModelErrorKind::Configuration`] when the profile's address or headers cannot be used.
    pub fn new(profile: &Profile) -> Result<Self, ModelError> {
        // On Vertex the base is the publisher's folder of models.
        let folder = if profile.provider == Provider::VertexGemini { "" } else { "/models" };
        let name = profile.model.strip_prefix("models/").unwrap_or(&profile.model);
        let (verb, query) = match profile.capabilities.streaming {
            true => ("streamGenerateContent", Some(STREAMED)),
            false => ("generateContent", None),
        };
        let exchange = ModelExchange::new(profile, &format!("{folder}/{name}:{verb}"), &[])?;
        Ok(Self {
            model: profile.model.clone(),
            host: profile.host(),
            exchange: match query {
                Some(query) => exchange.with_query(query),
                None => exchange,
            },
            capabilities: profile.capabilities,
        })
    }
}

#[async_trait]
impl Model for Gemini {
    fn name(&self) -> &str {
        &self.model
    }

    fn wire(&self) -> Wire {
        Wire::Gemini
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
        let dialect = GeminiDialect { model: &self.model, host: &self.host, capabilities: self.capabilities };
        let body = request::body(dialect, request);
        self.exchange.run(&body, GeminiAnswer::to(&request.messages), on_delta, cancel).await
    }
}

/// The body of a request to a model that can do everything, as JSON.
#[must_use]
pub fn body_json(model: &str, request: &ModelRequest) -> serde_json::Value {
    let dialect = GeminiDialect { model, host: "", capabilities: Capabilities::ALL };
    serde_json::to_value(request::body(dialect, request)).unwrap_or_default()
}
