//! The Brave Search API.
//!
//! Rule: the key is in a header only, and nothing prints it.

use std::fmt;

use async_trait::async_trait;
use url::Url;

use super::{MAX_ASKED, SearchError, SearchProvider, SearchResult, ask, results};

const SERVICE: &str = "Brave Search";
/// Where the API is.
const ENDPOINT: &str = "https://api.search.brave.com/res/v1/web/search";

/// The Brave Search API with a key for it.
#[derive(Clone)]
pub struct Brave {
    endpoint: Option<Url>,
    key: String,
}

impl Brave {
    /// The API at its own address or another, used with this key.
    #[must_use]
    pub fn new(endpoint: Option<&Url>, key: String) -> Self {
        Self { endpoint: endpoint.cloned().or_else(|| Url::parse(ENDPOINT).ok()), key }
    }
}

impl fmt::Debug for Brave {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Brave").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

#[async_trait]
impl SearchProvider for Brave {
    fn name(&self) -> &'static str {
        SERVICE
    }

    async fn search(&self, query: &str) -> Result<Vec<SearchResult>, SearchError> {
        let Some(mut url) = self.endpoint.clone() else {
            let reason = format!("`{ENDPOINT}` is no address");
            return Err(SearchError::Unreachable { service: SERVICE, reason });
        };
        url.query_pairs_mut().append_pair("q", query).append_pair("count", &MAX_ASKED.to_string());
        let answer = ask(SERVICE, &url, |request| request.header("x-subscription-token", &self.key)).await?;
        match answer.get("web") {
            // A search without results has no such part.
            None => Ok(Vec::new()),
            Some(web) => results(SERVICE, web.get("results"), ["title", "url", "description"]),
        }
    }
}
