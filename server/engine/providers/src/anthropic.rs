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
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC};
use tokio_util::sync::CancellationToken;

use crate::exchange::{ANTHROPIC_VERSION, ModelExchange};
use kode_model::profile::Profile;
use kode_model::provider::Provider;
use kode_model::{
    Capabilities, DeltaSink, Model, ModelError, ModelRequest, ModelResponse, UsageWindow, Wire,
};

pub(super) use self::answer::MessagesAnswer;

/// The text after the base URL.
const PATH: &str = "/v1/messages";

/// The version that Bedrock and Vertex ask for in the body.
const BEDROCK_VERSION: &str = "bedrock-2023-05-31";
const VERTEX_VERSION: &str = "vertex-2023-10-16";

/// Everything that AWS wants encoded in a segment of a path.
const UNSAFE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The stream of Bedrock.
const EVENT_STREAM: (&str, &str) = ("accept", "application/vnd.amazon.eventstream");

/// A model behind an Anthropic Messages endpoint.
pub struct Anthropic {
    model: String,
    host: String,
    exchange: ModelExchange,
    capabilities: Capabilities,
    form: BodyForm,
}

/// The additional body fields of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyForm {
    /// Model and streaming.
    Api,
    /// The version. Model and streaming are in the path.
    Bedrock,
    /// The version and streaming. The model is in the path.
    Vertex,
}

impl Anthropic {
    /// The model of `profile`. Sends nothing.
    ///
    /// # Errors
    /// [`kode_model::ModelErrorKind::Configuration`] when the profile's address or headers cannot be used.
    pub fn new(profile: &Profile) -> Result<Self, ModelError> {
        let streams = profile.capabilities.streaming;
        let (form, path, header) = match profile.provider {
            Provider::Bedrock => {
                let verb = if streams { "invoke-with-response-stream" } else { "invoke" };
                (BodyForm::Bedrock, format!("/model/{}/{verb}", segment(&profile.model)), Some(EVENT_STREAM))
            }
            Provider::Vertex => {
                let verb = if streams { "streamRawPredict" } else { "rawPredict" };
                (BodyForm::Vertex, format!("/{}:{verb}", profile.model), None)
            }
            _ => (BodyForm::Api, PATH.to_owned(), Some(ANTHROPIC_VERSION)),
        };
        let exchange = ModelExchange::new(profile, &path, header.as_slice())?;
        let (model, host) = (profile.model.clone(), profile.host());
        Ok(Self { model, host, exchange, capabilities: profile.capabilities, form })
    }

    /// The same model with the answers of `host` as its own.
    pub(super) fn at_host(self, host: String) -> Self {
        Self { host, ..self }
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

    fn usage_windows(&self) -> Vec<UsageWindow> {
        self.exchange.windows().now()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let body = request::body(&self.model, &self.host, self.capabilities, request);
        let body = match self.form {
            BodyForm::Api => body,
            BodyForm::Bedrock => body.versioned(BEDROCK_VERSION, false),
            BodyForm::Vertex => body.versioned(VERTEX_VERSION, true),
        };
        self.exchange.run(&body, MessagesAnswer::to(&request.messages), on_delta, cancel).await
    }
}

/// The body of a request to a model that can do everything, as JSON.
#[must_use]
pub fn body_json(model: &str, request: &ModelRequest) -> serde_json::Value {
    serde_json::to_value(request::body(model, "", Capabilities::ALL, request)).unwrap_or_default()
}

/// A name as one segment of a path. Names of inference profiles hold slashes and colons.
fn segment(name: &str) -> String {
    percent_encoding::utf8_percent_encode(name, UNSAFE).to_string()
}
