//! A model that is asked with tools until its server says that it has none, and with tools in text from then on.
//!
//! Rule: the server decides, by refusing a request for its tools before anything of an answer has come. It is asked once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::textual::TextualModel;
use kode_model::{
    Capabilities, DeltaSink, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, UsageWindow,
    Wire,
};

/// The errors of servers about a model, a template or a start without tools, in lower case: Ollama, OpenRouter, llama.cpp,
/// vLLM.
const REFUSALS: [&str; 6] = [
    "does not support tools",
    "support tool use",
    "tools param requires --jinja",
    "tool choice requires --enable-auto-tool-choice",
    "does not support function calling",
    "tool use is not supported",
];

/// A model whose server may know no tools.
pub(crate) struct ToolFallbackModel {
    native: Arc<dyn Model>,
    textual: TextualModel,
    refuses_tools: AtomicBool,
}

impl ToolFallbackModel {
    pub(crate) fn new(native: Arc<dyn Model>) -> Self {
        Self {
            textual: TextualModel::new(Arc::clone(&native)),
            native,
            refuses_tools: AtomicBool::new(false),
        }
    }
}

#[async_trait]
impl Model for ToolFallbackModel {
    fn name(&self) -> &str {
        self.native.name()
    }

    fn wire(&self) -> Wire {
        self.native.wire()
    }

    fn capabilities(&self) -> Capabilities {
        self.native.capabilities()
    }

    fn usage_windows(&self) -> Vec<UsageWindow> {
        self.native.usage_windows()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        if !self.refuses_tools.load(Ordering::Relaxed) {
            match self.native.stream(request, on_delta, cancel).await {
                Err(error) if is_about_tools(&error) => {
                    tracing::info!(%error, model = self.name(), "tools are called in text from now on");
                    self.refuses_tools.store(true, Ordering::Relaxed);
                }
                ended => return ended,
            }
        }
        self.textual.stream(request, on_delta, cancel).await
    }
}

fn is_about_tools(error: &ModelError) -> bool {
    let words = error.message.to_lowercase();
    // llama.cpp answers with 500.
    let refuses = matches!(error.kind, ModelErrorKind::BadRequest | ModelErrorKind::Server);
    refuses && error.partial.is_none() && REFUSALS.iter().any(|refusal| words.contains(refusal))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::exchange::testing::{RawServer, answer};
    use crate::ollama::Ollama;
    use kode_model::profile::{Credentials, Profile};
    use kode_model::provider::Provider;
    use kode_model::{Block, Message, ToolDeclaration};

    #[tokio::test]
    async fn a_model_without_tools_calls_them_in_text_from_then_on() {
        let refusal = answer(
            "400 Bad Request",
            r#"{"error":"registry.ollama.ai/library/gemma:2b does not support tools"}"#,
        );
        let spoken = json!({"message": {"content": "<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"a\": 1}}\n</tool_call>"},
            "done": true, "done_reason": "stop"});
        let lines = answer("200 OK\r\ncontent-type: application/x-ndjson", &format!("{spoken}\n"));
        let server = RawServer::start(vec![refusal, lines]).await;
        let profile = Profile {
            provider: Provider::Ollama,
            base_url: server.base_url.clone(),
            credentials: Credentials::None,
            ..Profile::demo()
        };
        let model = ToolFallbackModel::new(Arc::new(Ollama::new(&profile).unwrap()));
        let tool = ToolDeclaration {
            name: "Read".into(),
            description: "Reads.".into(),
            input_schema: json!({"type": "object"}).into(),
            grammar: None,
        };
        let request = ModelRequest {
            messages: vec![Message::user(vec![Block::Text { text: "go".into() }])].into(),
            tools: vec![tool],
            max_tokens: 100,
            ..ModelRequest::default()
        };
        for _ in 0..2 {
            let response = model.complete(&request, &CancellationToken::new()).await.unwrap();
            assert!(
                matches!(&response.content[..], [Block::ToolUse { name, .. }] if name == "Read"),
                "{response:?}"
            );
        }
        let bodies: Vec<Value> = server
            .requests()
            .iter()
            .map(|request| serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap())
            .collect();
        let with_tools: Vec<bool> = bodies.iter().map(|body| body.get("tools").is_some()).collect();
        assert_eq!(with_tools, [true, false, false]);
        assert!(bodies[1].to_string().contains("<tool_call>"), "the manual is in the prompt");
    }

    #[test]
    fn only_refusals_of_tools_count() {
        let error = |kind, words: &str| ModelError::new(kind, words);
        assert!(is_about_tools(&error(ModelErrorKind::Server, "tools param requires --jinja flag")));
        assert!(is_about_tools(&error(
            ModelErrorKind::BadRequest,
            "No endpoints found that support tool use."
        )));
        assert!(!is_about_tools(&error(ModelErrorKind::BadRequest, "tools: Extra inputs are not permitted")));
        assert!(!is_about_tools(&error(ModelErrorKind::Network, "does not support tools")));
    }
}
