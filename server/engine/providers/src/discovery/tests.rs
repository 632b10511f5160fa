//! Lists as the servers document and send them, over real HTTP on loopback.

use std::collections::HashMap;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// A server that answers paths with bodies, and counts its requests.
struct Pages {
    base_url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Pages {
    async fn start(pages: &[(&str, Value)]) -> Self {
        let pages: HashMap<String, String> =
            pages.iter().map(|(path, body)| ((*path).to_owned(), body.to_string())).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (pages, log) = (pages.clone(), Arc::clone(&log));
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                        let mut bytes = [0; 4096];
                        let read = stream.read(&mut bytes).await.unwrap_or_default();
                        if read == 0 {
                            return;
                        }
                        request.extend_from_slice(&bytes[..read]);
                    }
                    let line =
                        String::from_utf8_lossy(&request).lines().next().unwrap_or_default().to_owned();
                    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
                    log.lock().push(path.clone());
                    let plain = path.split('?').next().unwrap_or_default();
                    let (status, body) = match pages.get(plain) {
                        Some(body) => ("200 OK", body.as_str()),
                        None => ("404 Not Found", "{}"),
                    };
                    let answer = format!(
                        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    let _ = stream.write_all(answer.as_bytes()).await;
                });
            }
        });
        Self { base_url, asked }
    }

    fn profile(&self, provider: Provider, path: &str) -> Profile {
        Profile {
            provider,
            base_url: format!("{}{path}", self.base_url),
            model: "m".into(),
            ..Profile::demo()
        }
    }

    fn asked(&self) -> Vec<String> {
        let mut asked = self.asked.lock().clone();
        asked.sort_unstable();
        asked
    }
}

fn served(name: &str, window: Option<u64>) -> ServedModel {
    ServedModel { name: name.into(), context_window: window, ..ServedModel::default() }
}

/// Ollama's answers as its API reference shows them; the second model as older servers list it.
fn ollama_pages() -> Vec<(&'static str, Value)> {
    vec![
        (
            "/api/tags",
            json!({"models": [
                {"name": "gemma4:latest", "model": "gemma4:latest", "modified_at": "2025-10-03T23:34:03Z", "size": 3_338_801_804_u64,
                 "digest": "a2af6cc3eb7f", "details": {"format": "gguf", "family": "gemma4", "context_length": 131_072},
                 "capabilities": ["completion", "tools", "vision", "thinking"]},
                {"name": "qwen3-coder:30b", "model": "qwen3-coder:30b", "details": {"family": "qwen3moe"}},
                {"name": "embed", "model": "embed", "details": {"context_length": 2048}, "capabilities": ["embedding"]},
            ]}),
        ),
        (
            "/api/show",
            json!({"parameters": "temperature 0.7", "capabilities": ["completion", "tools"],
                "details": {"family": "qwen3moe"},
                "model_info": {"general.architecture": "qwen3moe", "qwen3moe.block_count": 48, "qwen3moe.context_length": 262_144}}),
        ),
        (
            "/api/ps",
            json!({"models": [{"name": "gemma4:latest", "model": "gemma4:latest", "size_vram": 1, "context_length": 4096}]}),
        ),
    ]
}

#[tokio::test]
async fn ollama_lists_models_with_their_windows_and_abilities() {
    let server = Pages::start(&ollama_pages()).await;
    let models = Discovery::default().models(&server.profile(Provider::Ollama, ""), false).await.unwrap();
    let of = |tools, images, thinking, loaded, model| ServedModel {
        tools: Some(tools),
        images: Some(images),
        thinking: Some(thinking),
        loaded: Some(loaded),
        ..model
    };
    assert_eq!(
        models,
        [
            of(true, true, true, true, served("gemma4:latest", Some(131_072))),
            of(true, false, false, false, served("qwen3-coder:30b", Some(262_144))),
        ]
    );
    assert_eq!(server.asked(), ["/api/ps", "/api/show", "/api/tags"], "only what is unknown is asked about");
}

#[tokio::test]
async fn the_list_of_a_compatible_server_reports_what_each_adds() {
    let list = json!({"object": "list", "data": [
        {"id": "vllm", "object": "model", "owned_by": "vllm", "max_model_len": 8_192},
        {"id": "openrouter", "context_length": 200_000, "architecture": {"input_modalities": ["text", "image"]},
         "top_provider": {"context_length": 200_000, "max_completion_tokens": 64_000, "is_moderated": false},
         "supported_parameters": ["tools", "reasoning", "temperature"]},
        {"id": "groq", "object": "model", "active": true, "context_window": 131_072, "max_completion_tokens": 32_768},
        {"id": "mistral", "max_context_length": 128_000, "capabilities": {"function_calling": true, "vision": false}},
        {"id": "anthropic", "type": "model", "display_name": "A", "max_input_tokens": 1_000_000, "max_tokens": 128_000},
        {"id": "plain", "object": "model"},
        {"id": "embed", "type": "embeddings"},
        {"object": "model"},
    ]});
    let models = read::openai(&list);
    let expected = [
        served("vllm", Some(8_192)),
        ServedModel {
            max_output: Some(64_000),
            tools: Some(true),
            images: Some(true),
            thinking: Some(true),
            ..served("openrouter", Some(200_000))
        },
        ServedModel { max_output: Some(32_768), ..served("groq", Some(131_072)) },
        ServedModel { tools: Some(true), images: Some(false), ..served("mistral", Some(128_000)) },
        ServedModel { max_output: Some(128_000), ..served("anthropic", Some(1_000_000)) },
        served("plain", None),
    ];
    assert_eq!(models, expected);
}

#[tokio::test]
async fn llama_cpp_reports_the_window_that_it_serves() {
    let server = Pages::start(&[
        ("/v1/models", json!({"data": [{"id": "tiny.gguf", "meta": {"n_ctx_train": 131_072}}]})),
        (
            "/props",
            json!({"default_generation_settings": {"n_ctx": 8_192, "params": {}}, "total_slots": 4,
                "modalities": {"vision": false}, "chat_template_caps": {"supports_tools": true}}),
        ),
    ])
    .await;
    let discovery = Discovery::default();
    let profile = server.profile(Provider::OpenAi, "/v1");
    let served = ServedModel {
        tools: Some(true),
        images: Some(false),
        loaded: Some(true),
        ..served("tiny.gguf", Some(8_192))
    };
    assert_eq!(discovery.models(&profile, false).await.unwrap(), std::slice::from_ref(&served));
    assert_eq!(discovery.model(&profile).await.unwrap(), Some(served), "the only model answers to any name");
}

#[tokio::test]
async fn lm_studio_reports_the_window_that_a_model_was_loaded_with() {
    let server = Pages::start(&[
        ("/v1/models", json!({"data": [{"id": "gemma-3"}, {"id": "idle"}]})),
        (
            "/api/v1/models",
            json!({"models": [
                {"type": "llm", "key": "gemma-3", "loaded_instances": [{"id": "gemma-3", "config": {"context_length": 4_096}}],
                 "max_context_length": 32_768, "capabilities": {"vision": true, "trained_for_tool_use": false}},
                {"type": "llm", "key": "idle", "loaded_instances": [], "max_context_length": 32_768,
                 "capabilities": {"vision": false, "trained_for_tool_use": true}},
            ]}),
        ),
    ])
    .await;
    let models = Discovery::default().models(&server.profile(Provider::OpenAi, "/v1"), false).await.unwrap();
    let of = |tools, images, loaded, model| ServedModel {
        tools,
        images: Some(images),
        loaded: Some(loaded),
        ..model
    };
    assert_eq!(
        models,
        [
            of(None, true, true, served("gemma-3", Some(4_096))),
            of(Some(true), false, false, served("idle", None)),
        ]
    );
}

#[tokio::test]
async fn gemini_lists_the_models_that_answer() {
    let list = json!({"models": [
        {"name": "models/gemini-3.8-flash", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536,
         "supportedGenerationMethods": ["generateContent", "countTokens"], "thinking": true},
        {"name": "models/embedding-001", "inputTokenLimit": 2_048, "supportedGenerationMethods": ["embedContent"]},
    ]});
    let expected = ServedModel {
        max_output: Some(65_536),
        thinking: Some(true),
        ..served("gemini-3.8-flash", Some(1_048_576))
    };
    assert_eq!(read::gemini(&list), [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_list_is_kept_for_a_while_and_a_silent_server_ends_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", silent.local_addr().unwrap());
    let profile = Profile { provider: Provider::OpenAi, base_url, ..Profile::demo() };
    let began = Instant::now();
    let error = Discovery::default().models(&profile, false).await.unwrap_err();
    assert_eq!((error.kind, began.elapsed()), (ModelErrorKind::Network, TIME_LIMIT));
}

#[tokio::test]
async fn a_known_list_is_not_asked_for_again_unless_the_user_wants_a_fresh_one() {
    let server = Pages::start(&[("/v1/models", json!({"data": [{"id": "m"}]}))]).await;
    let discovery = Discovery::default();
    let profile = server.profile(Provider::OpenAi, "/v1");
    let count = || server.asked().iter().filter(|path| *path == "/v1/models").count();
    for (fresh, expected) in [(false, 1), (false, 1), (true, 2)] {
        discovery.clone().models(&profile, fresh).await.unwrap();
        assert_eq!(count(), expected, "clones share what they know");
    }
}

#[tokio::test]
async fn a_refusal_says_what_is_wrong() {
    let server = Pages::start(&[]).await;
    let error =
        Discovery::default().models(&server.profile(Provider::OpenAi, "/v1"), false).await.unwrap_err();
    assert_eq!((error.kind, error.status), (ModelErrorKind::BadRequest, Some(404)));
    let none = Discovery::default().models(&server.profile(Provider::Bedrock, ""), false).await.unwrap_err();
    assert!(none.message.contains("lists no models"), "{}", none.message);
    assert_eq!(server.asked().len(), 3, "nothing is asked of a provider that lists none");
}

#[test]
fn names_are_compared_as_ollama_means_them() {
    assert!(is_called("gemma4:latest", "gemma4") && is_called("a", "a"));
    assert!(!is_called("gemma4:27b", "gemma4"));
}
