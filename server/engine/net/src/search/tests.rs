//! Searching by services on loopback, and configuring them.

use serde_json::json;

use super::*;
use crate::testing::{Answer, Server};

fn config(value: Value) -> SearchConfig {
    serde_json::from_value(value).unwrap()
}

fn env(name: &str) -> Option<String> {
    (name == "KEY").then(|| " secret-key\n".to_owned())
}

#[tokio::test]
async fn a_searxng_server_is_asked_for_json() {
    let answer = json!({"query": "x", "results": [
        {"url": "https://a.example/1", "title": "A &amp; <b>B</b>", "content": "a < b\n and\u{202e} c", "engine": "e"},
        {"url": "javascript:alert(1)", "title": "bad"},
        {"url": "https://b.example/", "title": null},
    ]});
    let server = Server::start(move |_| Answer::new("application/json", answer.to_string())).await;
    for endpoint in [server.url(""), server.url("/search/")] {
        let config = config(json!({"provider": "searxng", "endpoint": endpoint}));
        let results = config.provider(env).unwrap().search("rust & c").await.unwrap();
        assert_eq!(server.asked().last().unwrap(), "/search?q=rust+%26+c&format=json");
        let found: Vec<_> =
            results.iter().map(|one| (one.title.as_str(), one.url.as_str(), one.snippet.as_str())).collect();
        assert_eq!(found, [("A & B", "https://a.example/1", "a < b and c"), ("", "https://b.example/", "")]);
    }
}

#[tokio::test]
async fn brave_is_asked_with_the_key_in_a_header() {
    let answer = json!({"type": "search", "web": {"results": [
        {"title": "T", "url": "https://a.example/", "description": "one <strong>two</strong> &quot;three&quot;"},
    ]}});
    let server = Server::start(move |asked| match asked.uri().query() {
        Some(query) if query.contains("nothing") => Answer::new("application/json", "{}"),
        _ => Answer::new("application/json", answer.to_string()),
    })
    .await;
    let config = config(json!({"provider": "brave", "endpoint": server.url("/v1"), "apiKeyEnv": "KEY"}));
    let provider = config.provider(env).unwrap();
    let results = provider.search("x").await.unwrap();
    assert_eq!(results[0].snippet, "one two \"three\"");
    assert_eq!(server.asked(), ["/v1?q=x&count=20"]);
    assert_eq!(server.last_header("x-subscription-token").as_deref(), Some("secret-key"));
    assert_eq!(provider.search("nothing").await, Ok(Vec::new()));
}

#[tokio::test]
async fn an_answer_that_cannot_be_used_is_an_error_without_the_key() {
    let server = Server::start(|asked| match asked.uri().path() {
        "/status" => Answer::status(429),
        "/html" => Answer::new("text/html", "<p>no"),
        "/list" => Answer::new("application/json", r#"{"web": {"results": 3}}"#),
        "/redirect" => Answer::redirect(302, "/list"),
        _ => Answer::new("application/json", vec![b' '; MAX_ANSWER_BYTES + 1]),
    })
    .await;
    for (path, expected) in [
        ("/status", "Brave Search answered 429 Too Many Requests"),
        ("/html", "Brave Search gave an answer that cannot be read: it is not JSON"),
        ("/list", "Brave Search gave an answer that cannot be read: it has no list of results"),
        ("/redirect", "Brave Search answered 302 Found"),
        ("/long", "Brave Search gave an answer that cannot be read: it is longer than"),
    ] {
        let config = config(json!({"provider": "brave", "endpoint": server.url(path), "apiKeyEnv": "KEY"}));
        let error = config.provider(env).unwrap().search("x").await.unwrap_err();
        assert!(error.to_string().starts_with(expected), "{error}");
        assert!(!format!("{error:?}").contains("secret-key"));
    }
}

#[test]
fn a_configuration_that_names_no_service_says_why() {
    for (value, expected) in [
        (json!({"provider": "searxng"}), "`endpoint` is missing"),
        (json!({"provider": "searxng", "endpoint": "file:///x"}), "`endpoint` must be an http or https URL"),
        (json!({"provider": "brave"}), "`apiKeyEnv` is missing"),
        (json!({"provider": "brave", "apiKeyEnv": "NONE"}), "`NONE`, which is not set"),
        (json!({"provider": "brave", "apiKeyEnv": "KEY", "endpoint": "http://a.example/"}), "must be https"),
    ] {
        let error = config(value).provider(env).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for value in [json!({"provider": "other"}), json!({"provider": "brave", "key": "x"}), json!({})] {
        assert!(serde_json::from_value::<SearchConfig>(value).is_err());
    }
    for kind in ["searxng", "brave"] {
        assert!(HOW_TO_ENABLE.contains(kind));
    }
}
