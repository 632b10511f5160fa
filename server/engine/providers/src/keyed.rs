//! A model whose key a command of the user's prints.
//!
//! Rule: the command is run when a request needs a key, and again when its key has grown old or was refused, once for each
//! refusal; one run serves all who wait for it. The key is held nowhere else.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::adapter::connect;
use kode_base::secret::Secret;
use kode_model::profile::{Credentials, KeyHelper, Profile};
use kode_model::{
    Capabilities, DeltaSink, Model, ModelError, ModelErrorKind, ModelRequest, ModelResponse, UsageWindow,
    Wire,
};
use kode_process::shell::helper;

/// How long the command may take.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The most bytes of a key.
const MAX_KEY_BYTES: usize = 8 * 1024;

/// A model whose key a command prints.
pub(crate) struct KeyedModel {
    profile: Profile,
    helper: KeyHelper,
    ready: tokio::sync::Mutex<Option<ReadyModel>>,
}

/// The model with the newest key.
struct ReadyModel {
    model: Arc<dyn Model>,
    since: Instant,
}

impl KeyedModel {
    pub(crate) fn new(profile: Profile, helper: KeyHelper) -> Self {
        Self { profile, helper, ready: tokio::sync::Mutex::default() }
    }

    /// The model with a key that is neither old nor that of `refused`.
    async fn model(&self, refused: Option<&Arc<dyn Model>>) -> Result<Arc<dyn Model>, ModelError> {
        let mut ready = self.ready.lock().await;
        if let Some(ready) = &*ready {
            let is_refused = refused.is_some_and(|refused| Arc::ptr_eq(refused, &ready.model));
            if !is_refused && ready.since.elapsed() < self.helper.ttl {
                return Ok(Arc::clone(&ready.model));
            }
        }
        let key = self.key().await?;
        let credentials = Credentials::ApiKey(Secret::new(key));
        let profile = Profile { credentials, ..self.profile.clone() };
        profile.check()?;
        let model = connect(&profile).await?;
        *ready = Some(ReadyModel { model: Arc::clone(&model), since: Instant::now() });
        Ok(model)
    }

    /// Runs the command. What it printed is in no error: it may be a part of a key.
    async fn key(&self) -> Result<String, ModelError> {
        let printed = helper::output_of(&self.helper.command, TIME_LIMIT, MAX_KEY_BYTES).await;
        let reason = match printed {
            Ok(text) if text.trim().is_empty() => "printed nothing".to_owned(),
            Ok(text) => return Ok(text.trim().to_owned()),
            Err(failure) => failure.to_string(),
        };
        Err(ModelError::new(
            ModelErrorKind::Configuration,
            format!(
                "The command in `apiKeyHelper` of the model profile `{}` {reason}. It has to print the key, and nothing \
                 else, within {} seconds.",
                self.profile.name,
                TIME_LIMIT.as_secs()
            ),
        ))
    }
}

#[async_trait]
impl Model for KeyedModel {
    #[expect(clippy::misnamed_getters, reason = "the name of a model is not that of its profile")]
    fn name(&self) -> &str {
        &self.profile.model
    }

    fn wire(&self) -> Wire {
        self.profile.wire()
    }

    fn capabilities(&self) -> Capabilities {
        self.profile.capabilities
    }

    fn usage_windows(&self) -> Vec<UsageWindow> {
        // While the key is printed again there is no newest answer.
        let ready = self.ready.try_lock().ok();
        ready.and_then(|ready| Some(ready.as_ref()?.model.usage_windows())).unwrap_or_default()
    }

    async fn stream(
        &self,
        request: &ModelRequest,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        // The exchange itself honors the token and keeps what had arrived; the command is killed when it is dropped.
        let ready = async |refused: Option<&Arc<dyn Model>>| {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    Err(ModelError::new(ModelErrorKind::Cancelled, "The request was cancelled."))
                }
                ready = self.model(refused) => ready,
            }
        };
        let model = ready(None).await?;
        match model.stream(request, on_delta, cancel).await {
            Err(error) if error.kind == ModelErrorKind::Authentication => {
                ready(Some(&model)).await?.stream(request, on_delta, cancel).await
            }
            ended => ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use kode_model::{Block, Message};

    /// A server that takes one key alone and answers with the keys it has seen.
    async fn server(good: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut seen = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = Vec::new();
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    let mut bytes = [0; 4096];
                    let read = stream.read(&mut bytes).await.unwrap();
                    request.extend_from_slice(&bytes[..read]);
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let key = request
                    .lines()
                    .find_map(|line| line.strip_prefix("x-api-key: "))
                    .unwrap_or("none")
                    .to_owned();
                let is_good = key == good;
                seen.push(key);
                let (status, body) = if is_good {
                    let text = seen.join(" ");
                    (
                        "200 OK",
                        serde_json::json!({
                            "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
                            "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 1, "output_tokens": 1},
                        }),
                    )
                } else {
                    (
                        "401 Unauthorized",
                        serde_json::json!({
                            "type": "error", "error": {"type": "authentication_error", "message": "no"},
                        }),
                    )
                };
                let body = body.to_string();
                let answer = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        format!("http://{address}")
    }

    /// A model whose helper prints the next line of a list at each run.
    async fn keyed(folder: &std::path::Path, keys: &str, good: &'static str, ttl: Duration) -> KeyedModel {
        let list = folder.join("keys");
        std::fs::write(&list, keys).unwrap();
        let list = list.display();
        let command = format!("head -n 1 {list}; sed -i 1d {list}");
        let base_url = server(good).await;
        let profile = Profile {
            base_url,
            provider: kode_model::provider::Provider::Anthropic,
            credentials: Credentials::None,
            ..Profile::demo()
        };
        KeyedModel::new(profile, KeyHelper { command, ttl })
    }

    async fn ask(model: &KeyedModel) -> Result<String, ModelError> {
        let messages = vec![Message::user(vec![Block::Text { text: "hi".into() }])];
        let request = ModelRequest { messages: messages.into(), max_tokens: 10, ..ModelRequest::default() };
        let response = model.complete(&request, &CancellationToken::new()).await?;
        match &response.content[..] {
            [Block::Text { text }] => Ok(text.clone()),
            other => panic!("{other:?}"),
        }
    }

    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn a_refused_key_is_asked_for_again_once() {
        let folder = tempfile::tempdir().unwrap();
        let model = keyed(folder.path(), "old\nnew\nnever\n", "new", LONG).await;
        assert_eq!(ask(&model).await.unwrap(), "old new");
        assert_eq!(ask(&model).await.unwrap(), "old new new", "the good key is kept");
        let model = keyed(folder.path(), "bad\nworse\nnever\n", "good", LONG).await;
        let error = ask(&model).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Authentication);
        assert_eq!(std::fs::read_to_string(folder.path().join("keys")).unwrap(), "never\n");
    }

    #[tokio::test]
    async fn an_old_key_is_asked_for_again() {
        let folder = tempfile::tempdir().unwrap();
        let model = keyed(folder.path(), "same\nsame\nsame\n", "same", Duration::ZERO).await;
        for left in [2, 1] {
            ask(&model).await.unwrap();
            assert_eq!(std::fs::read_to_string(folder.path().join("keys")).unwrap().lines().count(), left);
        }
    }

    #[tokio::test]
    async fn a_helper_that_prints_nothing_or_no_key_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        for (keys, expected) in [("", "printed nothing"), ("a\u{7f}b\n", "characters that cannot be sent")] {
            let model = keyed(folder.path(), keys, "k", LONG).await;
            let error = ask(&model).await.unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration);
            assert!(error.message.contains(expected), "{}", error.message);
        }
    }
}
