//! The adapter for servers that speak the OpenAI Responses format, over HTTP with streamed answers.
//!
//! Rule: one request, one answer or one typed error that carries what had arrived; never a tool call that was not
//! complete. Where the server keeps answers, a request continues from the newest one it has and sends only the new part;
//! whatever the server turns out not to know or not to offer is done without, at most once for each thing and only as
//! long as nothing of an answer was shown.

mod answer;
#[cfg(test)]
mod faults;
mod item;
mod kept;
mod request;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use self::kept::StoredAnswers;
use self::request::{Features, ResponseBookmark};
use crate::exchange::ModelExchange;
use kode_model::profile::Profile;
use kode_model::{
    Capabilities, DeltaSink, Message, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse,
    UsageWindow, Wire,
};

pub(super) use self::answer::ResponsesAnswer;

/// How the names of models begin that take reasoning settings.
const REASONING_MODELS: [&str; 6] = ["o1", "o3", "o4", "gpt-5", "codex", "gpt-oss"];

/// How the names of models begin that refuse them.
const PLAIN_MODELS: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt"];

/// The name parts of models that refuse them although their names begin like others.
const PLAIN_VARIANT: &str = "-chat";

/// A model behind a Responses endpoint.
pub struct Responses {
    model: String,
    host: String,
    exchange: ModelExchange,
    /// Whether the server may keep answers.
    stored: bool,
    kept: StoredAnswers,
    capabilities: Capabilities,
    /// The fields that the server has refused so far.
    lacks: MissingFeatures,
}

/// The fields that a server has refused; they are not sent again.
#[derive(Default)]
struct MissingFeatures {
    storage: AtomicBool,
    summaries: AtomicBool,
    sealed: AtomicBool,
    freeform: AtomicBool,
}

impl Responses {
    /// The model of `profile`. Sends nothing.
    ///
    /// # Errors
    /// [`ModelErrorKind::Configuration`] when the profile's address or headers cannot be used.
    pub fn new(profile: &Profile) -> Result<Self, ModelError> {
        Ok(Self {
            model: profile.model.clone(),
            host: profile.host(),
            exchange: ModelExchange::new(profile, "/responses", &[])?,
            stored: profile.store,
            kept: StoredAnswers::default(),
            capabilities: profile.capabilities,
            lacks: MissingFeatures::default(),
        })
    }

    fn features(&self, request: &ModelRequest, reasoning_back: bool) -> Features {
        let lacks = |thing: &AtomicBool| thing.load(Ordering::Relaxed);
        Features {
            stored: self.stored && !lacks(&self.lacks.storage),
            reasoning: reasons(&self.model, self.capabilities, request),
            sampling: self.capabilities.temperature,
            summaries: !lacks(&self.lacks.summaries),
            sealed: !lacks(&self.lacks.sealed),
            reasoning_back,
            freeform: self.capabilities.patches && !lacks(&self.lacks.freeform),
            capabilities: self.capabilities,
        }
    }
}

#[async_trait]
impl Model for Responses {
    fn name(&self) -> &str {
        &self.model
    }

    fn wire(&self) -> Wire {
        Wire::Responses
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
        let mut from_bookmark = true;
        let mut reasoning_back = true;
        let own = OwnModel { model: &self.model, host: &self.host };
        // Every further round does without one thing more, so there are only as many as there are things.
        loop {
            let features = self.features(request, reasoning_back);
            let bookmark = (features.stored && from_bookmark)
                .then(|| self.kept.bookmark(own, &request.messages))
                .flatten();
            let body = request::body(own, features, request, bookmark);
            let resumable = Arc::new(AtomicBool::new(false));
            let answer = ResponsesAnswer::to(&request.messages, Arc::clone(&resumable));
            let mut shown = false;
            let mut sink = |delta| {
                shown = true;
                on_delta(delta);
            };
            let error = match self.exchange.run(&body, answer, &mut sink, cancel).await {
                Ok(response) => {
                    // The server's copy holds the reminders as well, which are for one request alone.
                    let continues = features.stored && request.reminders.is_empty();
                    if let (Some(id), true) = (&response.id, continues && resumable.load(Ordering::Acquire)) {
                        self.kept.remember(id.clone(), &request.messages, request.messages.len());
                    }
                    return Ok(response);
                }
                Err(error) => error,
            };
            let Some(missing) = MissingFeature::of(&error, features, bookmark).filter(|_| !shown) else {
                return Err(error);
            };
            tracing::warn!(model = %self.model, without = ?missing, %error, "the request is sent again");
            match missing {
                MissingFeature::Bookmark(id) => {
                    self.kept.forget(id);
                    from_bookmark = false;
                }
                MissingFeature::Storage => self.lacks.storage.store(true, Ordering::Relaxed),
                MissingFeature::Summaries => self.lacks.summaries.store(true, Ordering::Relaxed),
                MissingFeature::Sealed => self.lacks.sealed.store(true, Ordering::Relaxed),
                MissingFeature::Freeform => self.lacks.freeform.store(true, Ordering::Relaxed),
                MissingFeature::OwnReasoning => reasoning_back = false,
            }
        }
    }
}

/// A feature that a server lacks although the request relied on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingFeature<'a> {
    /// The answer to continue from, or what belongs to it.
    Bookmark(&'a str),
    /// Any storage: nothing of this organization is kept.
    Storage,
    /// Summaries of reasoning, for this organization.
    Summaries,
    /// Sealed reasoning, for this model.
    Sealed,
    /// Tools whose calls are free text.
    Freeform,
    /// The key to the sealed reasoning that was sent back.
    OwnReasoning,
}

impl<'a> MissingFeature<'a> {
    /// The missing feature of the error, if the request relied on it.
    fn of(error: &ModelError, features: Features, bookmark: Option<ResponseBookmark<'a>>) -> Option<Self> {
        if error.kind == ModelErrorKind::Cancelled {
            return None;
        }
        let words = error.message.to_lowercase();
        let says = |all: &[&str]| all.iter().all(|part| words.contains(part));
        if says(&["zero data retention"]) {
            return features.stored.then_some(Self::Storage);
        }
        if let Some(ResponseBookmark { response, .. }) = bookmark {
            let forgotten = [
                &["previous_response_not_found"][..],
                &["previous response", "not found"],
                &["previous_response_id"],
                &["no tool output found"],
                &["no tool call found"],
            ];
            if forgotten.iter().any(|all| says(all)) {
                return Some(Self::Bookmark(response));
            }
        }
        // Servers of others name the type, or the place of the tool, that they do not know.
        if features.freeform && says(&["custom"]) && (says(&["tool"]) || says(&["type"])) {
            return Some(Self::Freeform);
        }
        let asked = features.reasoning;
        if asked && features.summaries && says(&["reasoning summar"]) {
            Some(Self::Summaries)
        } else if asked && features.sealed && says(&["encrypted content", "not supported"]) {
            Some(Self::Sealed)
        } else if features.reasoning_back
            && (says(&["encrypted content", "could not be"])
                || says(&["invalid_encrypted_content"])
                || says(&["item", "'rs_"])
                || says(&["of type 'reasoning'"]))
        {
            Some(Self::OwnReasoning)
        } else {
            None
        }
    }
}

/// The body of a request for everything, to a server that keeps nothing, as JSON.
#[must_use]
pub fn body_json(model: &str, request: &ModelRequest) -> serde_json::Value {
    let features = Features {
        stored: false,
        reasoning: true,
        sampling: true,
        summaries: true,
        sealed: true,
        reasoning_back: true,
        freeform: true,
        capabilities: Capabilities::ALL,
    };
    let body = request::body(OwnModel { model, host: "" }, features, request, None);
    serde_json::from_slice(&serde_json::to_vec(&body).unwrap_or_default()).unwrap_or_default()
}

/// Whether the model takes reasoning settings: known by its name or because it takes no sampling ones, else if an effort
/// is asked for.
fn reasons(model: &str, capabilities: Capabilities, request: &ModelRequest) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let begins = |names: &[&str]| names.iter().any(|begin| name.starts_with(begin));
    if !capabilities.thinking || begins(&PLAIN_MODELS) || name.contains(PLAIN_VARIANT) {
        return false;
    }
    begins(&REASONING_MODELS) || !capabilities.temperature || request.effort.is_some()
}

/// The model that is asked and the host that serves it.
#[derive(Clone, Copy, Debug)]
struct OwnModel<'a> {
    model: &'a str,
    host: &'a str,
}

impl OwnModel<'_> {
    /// Whether this model gave a message: sealed reasoning and stored answers of another one are of no use to it.
    fn gave(self, message: &Message) -> bool {
        message.origin.as_ref().is_some_and(|origin| origin.is(Wire::Responses, self.model, self.host))
    }
}
