//! A model around one that cannot call tools: calls go back and forth as text in the form that the tool manual tells.
//!
//! Rule: the engine sees the same calls and results as with any other model, and the model behind sees only text. What
//! represents a call is never shown as text of the answer, wherever the answer is cut into pieces.

mod reader;
mod request;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use self::reader::TextualReader;
use crate::arguments;
use crate::call_ids::CallIds;
use kode_model::{
    Block, Capabilities, Delta, DeltaSink, Model, ModelError, ModelRequest, ModelResponse, StopReason,
    UsageWindow, Wire,
};

/// A model that is reported tools in its system prompt and calls them in its text.
pub struct TextualModel {
    model: Arc<dyn Model>,
}

impl TextualModel {
    /// Around `model`, which never gets tools in its own format.
    #[must_use]
    pub fn new(model: Arc<dyn Model>) -> Self {
        Self { model }
    }
}

#[async_trait]
impl Model for TextualModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn wire(&self) -> Wire {
        self.model.wire()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { tool_use: true, ..self.model.capabilities() }
    }

    fn usage_windows(&self) -> Vec<UsageWindow> {
        self.model.usage_windows()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let reported = request::reported(request);
        if request.tools.is_empty() {
            return self.model.stream(&reported, on_delta, cancel).await;
        }
        let ids = CallIds::of(&request.messages);
        let mut shown = TextualReader::new(ids.clone(), on_delta);
        let ended = self.model.stream(&reported, &mut |delta| shown.show(delta), cancel).await;
        match ended {
            Ok(response) => {
                shown.end(arguments::may_close(&response.stop_reason));
                Ok(read(response, ids))
            }
            Err(error) => {
                let partial = error.partial.map(|partial| Box::new(without_calls(*partial)));
                Err(ModelError { partial, ..error })
            }
        }
    }
}

/// The answer with its calls as calls.
fn read(response: ModelResponse, ids: CallIds) -> ModelResponse {
    let is_cut = matches!(response.stop_reason, StopReason::MaxTokens | StopReason::Refusal);
    let mut content = blocks(response.content, ids, arguments::may_close(&response.stop_reason));
    if is_cut {
        content.retain(|block| !is_call(block));
    }
    let stop_reason = match response.stop_reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::Other(_)
            if content.iter().any(is_call) =>
        {
            StopReason::ToolUse
        }
        other => other,
    };
    ModelResponse { content, stop_reason, ..response }
}

/// The received part of an interrupted answer, without the texts of calls.
fn without_calls(partial: ModelResponse) -> ModelResponse {
    let mut content = blocks(partial.content, CallIds::default(), false);
    content.retain(|block| !is_call(block));
    ModelResponse { content, ..partial }
}

fn blocks(content: Vec<Block>, ids: CallIds, may_close: bool) -> Vec<Block> {
    let mut ignore = |_: Delta| {};
    let mut reader = TextualReader::new(ids, &mut ignore);
    for (index, block) in content.into_iter().enumerate() {
        match block {
            Block::Text { text } => reader.show(Delta::Text { index, text }),
            other => reader.keep(other),
        }
    }
    reader.end(may_close);
    reader.into_blocks()
}

fn is_call(block: &Block) -> bool {
    matches!(block, Block::ToolUse { .. })
}
