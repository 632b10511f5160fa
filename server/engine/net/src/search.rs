//! Searches of the web, by whichever service the user has set up.
//!
//! Rule: without configuration there is no search. A service's answer is bounded data; a key goes to its service
//! only, never over plain http to another machine, and never into an error.

mod brave;
mod searxng;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::RequestBuilder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::body::{cut, visible};
use super::convert::plain_text;
use crate::http::{causes, client, is_loopback};

pub use brave::Brave;
pub use searxng::SearXng;

/// How to turn searching on, for people.
pub const HOW_TO_ENABLE: &str = "Web search is off until a service is configured: give the address of a SearXNG \
    server that answers in JSON, {\"provider\": \"searxng\", \"endpoint\": \"https://search.example.org\"}, or the name \
    of the environment variable with a key of the Brave Search API, {\"provider\": \"brave\", \"apiKeyEnv\": \
    \"BRAVE_API_KEY\"}.";

/// The most results a service is asked for; filters leave fewer.
pub(super) const MAX_ASKED: usize = 20;
/// How long a search may take.
const TIME_LIMIT: Duration = Duration::from_secs(20);
/// The most bytes of an answer.
const MAX_ANSWER_BYTES: usize = 2 << 20;
/// The most characters of a title.
const MAX_TITLE_CHARS: usize = 200;
/// The most characters of a snippet.
const MAX_SNIPPET_CHARS: usize = 500;
/// How much of a title or snippet is checked before its tags are taken out.
const MAX_HTML_CHARS: usize = 4_000;
/// The most characters of a URL; longer ones could not be fetched.
const MAX_URL_CHARS: usize = super::address::MAX_URL_CHARS;

/// One thing found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SearchResult {
    /// The page's title.
    pub title: String,
    /// Where it is.
    pub url: Url,
    /// Some of its text.
    pub snippet: String,
}

/// Why a search failed. Holds no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// No connection, or a broken one.
    #[error("{service} could not be reached: {reason}")]
    Unreachable {
        /// The service.
        service: &'static str,
        /// The error of the system.
        reason: String,
    },
    /// The service says no.
    #[error("{service} answered {status}")]
    Status {
        /// The service.
        service: &'static str,
        /// Number and name.
        status: String,
        /// The number.
        code: u16,
    },
    /// The answer is not what the service is known to say.
    #[error("{service} gave an answer that cannot be read: {reason}")]
    Answer {
        /// The service.
        service: &'static str,
        /// Its problems.
        reason: String,
    },
    /// It took too long.
    #[error("{service} did not answer within {} seconds", TIME_LIMIT.as_secs())]
    TimedOut {
        /// The service.
        service: &'static str,
    },
}

/// A service that searches the web.
#[async_trait]
pub trait SearchProvider: Send + Sync + 'static {
    /// The service's name, for people.
    fn name(&self) -> &'static str;

    /// The results for a query, best first.
    ///
    /// # Errors
    /// [`SearchError`] when the service does not answer or not as it should.
    async fn search(&self, query: &str) -> Result<Vec<SearchResult>, SearchError>;
}

/// The services there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderKind {
    /// A SearXNG server, or another with the same JSON.
    Searxng,
    /// The Brave Search API.
    Brave,
}

/// Which service searches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchConfig {
    /// The service.
    pub provider: ProviderKind,
    /// Its address: that of the server for SearXNG, of the API for Brave, where it may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<Url>,
    /// The name of the environment variable that holds the key, where one is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
}

/// A configuration that names no usable service.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("web search: `{field}` {reason}")]
pub struct SearchConfigError {
    /// The field.
    pub field: &'static str,
    /// Its problems, and what it should be.
    pub reason: String,
}

impl SearchConfig {
    /// The service that is configured. `env` reads environment variables.
    ///
    /// # Errors
    /// [`SearchConfigError`] when an address or a key is missing or unusable.
    pub fn provider(
        &self,
        env: impl Fn(&str) -> Option<String>,
    ) -> Result<Arc<dyn SearchProvider>, SearchConfigError> {
        let endpoint = self.endpoint.as_ref();
        if let Some(endpoint) = endpoint.filter(|url| !matches!(url.scheme(), "http" | "https")) {
            let reason = format!("must be an http or https URL, not `{endpoint}`");
            return Err(SearchConfigError { field: "endpoint", reason });
        }
        match self.provider {
            ProviderKind::Searxng => match endpoint {
                Some(endpoint) => Ok(Arc::new(SearXng::new(endpoint))),
                None => Err(SearchConfigError {
                    field: "endpoint",
                    reason: "is missing: give the address of the SearXNG server".to_owned(),
                }),
            },
            ProviderKind::Brave => {
                let plain = endpoint.filter(|url| url.scheme() == "http" && !is_loopback(url));
                if let Some(endpoint) = plain {
                    let reason = format!("must be https, because a key is sent: `{endpoint}`");
                    return Err(SearchConfigError { field: "endpoint", reason });
                }
                Ok(Arc::new(Brave::new(endpoint, self.key(env)?)))
            }
        }
    }

    fn key(&self, env: impl Fn(&str) -> Option<String>) -> Result<String, SearchConfigError> {
        let error = |reason| SearchConfigError { field: "apiKeyEnv", reason };
        let name = self.api_key_env.as_deref().ok_or_else(|| {
            error("is missing: give the name of the environment variable that holds the key".to_owned())
        })?;
        let key = env(name).map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        key.ok_or_else(|| error(format!("names `{name}`, which is not set in the environment")))
    }
}

/// Makes a request and reads the JSON that comes back, within all bounds.
async fn ask(
    service: &'static str,
    url: &Url,
    prepare: impl FnOnce(RequestBuilder) -> RequestBuilder,
) -> Result<Value, SearchError> {
    let client =
        client(url).map_err(|error| SearchError::Unreachable { service, reason: error.to_string() })?;
    let request = prepare(client.get(url.clone()).header("accept", "application/json"));
    // The address may hold the search text, and a proxy's password; neither belongs into an error.
    let broken =
        |error: reqwest::Error| SearchError::Unreachable { service, reason: causes(&error.without_url()) };
    let answer = async {
        let mut response = request.send().await.map_err(broken)?;
        let status = response.status();
        if !status.is_success() {
            return Err(SearchError::Status { service, status: status.to_string(), code: status.as_u16() });
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if bytes.len() + chunk.len() > MAX_ANSWER_BYTES {
                let reason = format!("it is longer than {MAX_ANSWER_BYTES} bytes");
                return Err(SearchError::Answer { service, reason });
            }
            bytes.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&bytes)
            .map_err(|error| SearchError::Answer { service, reason: format!("it is not JSON: {error}") })
    };
    tokio::time::timeout(TIME_LIMIT, answer).await.unwrap_or(Err(SearchError::TimedOut { service }))
}

/// Results from a list in an answer, by the names of their fields. Results that are no web pages are left out.
fn results(
    service: &'static str,
    list: Option<&Value>,
    [title, url, snippet]: [&str; 3],
) -> Result<Vec<SearchResult>, SearchError> {
    let list = list
        .and_then(Value::as_array)
        .ok_or_else(|| SearchError::Answer { service, reason: "it has no list of results".to_owned() })?;
    let text = |result: &Value, field: &str, max_chars| {
        let html = result.get(field).and_then(Value::as_str).unwrap_or_default();
        let text = plain_text(cut(html, MAX_HTML_CHARS).0);
        cut(&visible(&text), max_chars).0.to_owned()
    };
    let parse = |result: &Value| {
        let url = result.get(url)?.as_str().filter(|url| url.len() <= MAX_URL_CHARS)?;
        let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        let title = text(result, title, MAX_TITLE_CHARS);
        Some(SearchResult { title, url, snippet: text(result, snippet, MAX_SNIPPET_CHARS) })
    };
    Ok(list.iter().filter_map(parse).take(MAX_ASKED).collect())
}

#[cfg(test)]
mod tests;
