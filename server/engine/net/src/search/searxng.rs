//! A SearXNG server, or another that answers in the same way.
//!
//! Rule: the endpoint is the server's address; where the search is beneath it is known here.

use async_trait::async_trait;
use url::Url;

use super::{SearchError, SearchProvider, SearchResult, ask, results};

const SERVICE: &str = "SearXNG";

/// A server.
#[derive(Clone, Debug)]
pub struct SearXng {
    search: Url,
}

impl SearXng {
    /// The server at this address, with or without `/search`.
    #[must_use]
    pub fn new(endpoint: &Url) -> Self {
        let mut search = endpoint.clone();
        let path = search.path().trim_end_matches('/');
        let path = if path.ends_with("/search") { path.to_owned() } else { format!("{path}/search") };
        search.set_path(&path);
        Self { search }
    }
}

#[async_trait]
impl SearchProvider for SearXng {
    fn name(&self) -> &'static str {
        SERVICE
    }

    async fn search(&self, query: &str) -> Result<Vec<SearchResult>, SearchError> {
        let mut url = self.search.clone();
        url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
        let answer = ask(SERVICE, &url, |request| request).await?;
        results(SERVICE, answer.get("results"), ["title", "url", "content"])
    }
}
