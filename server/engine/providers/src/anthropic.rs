//! The adapter for servers that speak the Anthropic Messages format, over HTTP with streamed answers.
//!
//! Rule: one request, one answer or one typed error that carries what had arrived; never a tool call that was not
//! complete. The exchange itself is the same as that of every other wire format.

mod answer;
#[cfg(test)]
mod faults;
mod request;
#[cfg(test)]
mod tests;
mod wire;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::exchange::{KeyHeader, ModelExchange};
use kode_model::profile::Profile;
use kode_model::{Capabilities, DeltaSink, Model, ModelError, ModelRequest, ModelResponse, Wire};

pub(super) use self::answer::MessagesAnswer;

/// What stands after the base URL.
const PATH: &str = "/v1/messages";

/// The version of the wire format, which the server asks for in a header.
const WIRE_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// A model behind an Anthropic Messages endpoint.
pub struct Anthropic {
    model: String,
    exchange: ModelExchange,
    capabilities: Capabilities,
}

impl Anthropic {
    /// The model of `profile`. Sends nothing.
    ///
    /// # Errors
    /// [`kode_model::ModelErrorKind::Configuration`] when the profile's address or headers cannot be used.
    pub fn new(profile: &Profile) -> Result<Self, ModelError> {
        let exchange = ModelExchange::new(profile, PATH, KeyHeader::Named("x-api-key"), &[WIRE_VERSION])?;
        Ok(Self { model: profile.model.clone(), exchange, capabilities: profile.capabilities })
    }
}

#[async_trait]
impl Model for Anthropic {
    fn name(&self) -> &str {
        &self.model
    }

    fn wire(&self) -> Wire {
        Wire::AnthropicMessages
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let body = request::body(&self.model, self.capabilities, request);
        self.exchange.run(&body, MessagesAnswer::to(&request.messages), on_delta, cancel).await
    }
}

/// The body of a request to a model that can do everything, as JSON.
#[must_use]
pub fn body_json(model: &str, request: &ModelRequest) -> serde_json::Value {
    serde_json::to_value(request::body(model, Capabilities::ALL, request)).unwrap_or_default()
}
