//! From a profile to the model that answers for it.
//!
//! Rule: the one place that knows every provider.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::anthropic::Anthropic;
use crate::chat::ChatCompletions;
use crate::gemini::Gemini;
use crate::ollama::Ollama;
use crate::responses::Responses;
use crate::scripted::{Script, ScriptedServer};
use crate::textual::TextualModel;
use crate::toolless::ToolFallbackModel;
use kode_model::profile::Profile;
use kode_model::provider::Provider;
use kode_model::{
    Capabilities, DeltaSink, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, Wire,
};

/// The model of a profile that has its key, ready to be asked. Nothing is sent yet; for the demo its server is started,
/// which stops when the model is dropped.
///
/// # Errors
/// [`ModelErrorKind::Configuration`] when the profile cannot work.
pub(crate) async fn connect(profile: &Profile) -> Result<Arc<dyn Model>, ModelError> {
    let model = adapter(profile).await?;
    Ok(match profile.wire() {
        _ if !profile.capabilities.tool_use => Arc::new(TextualModel::new(model)),
        // Behind these formats there are programs whose templates know no tools.
        Wire::ChatCompletions | Wire::Ollama => Arc::new(ToolFallbackModel::new(model)),
        Wire::AnthropicMessages | Wire::Responses | Wire::Gemini => model,
    })
}

/// The model in the wire format of its provider.
async fn adapter(profile: &Profile) -> Result<Arc<dyn Model>, ModelError> {
    match profile.provider {
        Provider::Anthropic | Provider::Bedrock | Provider::Vertex => Ok(Arc::new(Anthropic::new(profile)?)),
        Provider::OpenAiResponses | Provider::AzureResponses => Ok(Arc::new(Responses::new(profile)?)),
        Provider::OpenAi | Provider::Azure => Ok(Arc::new(ChatCompletions::new(profile)?)),
        Provider::Gemini | Provider::VertexGemini => Ok(Arc::new(Gemini::new(profile)?)),
        Provider::Ollama => Ok(Arc::new(Ollama::new(profile)?)),
        Provider::Demo => {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let started = async { ScriptedServer::serve(Script::demo()?, address).await }.await;
            let server = started.map_err(|error| {
                ModelError::new(
                    ModelErrorKind::Configuration,
                    format!("The demo model could not be started on loopback: {error}."),
                )
            })?;
            // Its port is another one at every start, and its answers stay its own.
            let served = Profile { base_url: server.base_url(), ..profile.clone() };
            let model = Anthropic::new(&served)?.at_host(profile.host());
            Ok(Arc::new(DemoModel { model, _server: server }))
        }
    }
}

/// The demo: a real adapter that speaks to a server of this process.
struct DemoModel {
    model: Anthropic,
    /// Kept alive as long as the model is.
    _server: ScriptedServer,
}

#[async_trait]
impl Model for DemoModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn wire(&self) -> Wire {
        self.model.wire()
    }

    fn capabilities(&self) -> Capabilities {
        self.model.capabilities()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        self.model.stream(request, on_delta, cancel).await
    }
}
