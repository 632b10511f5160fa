//! Fetches pages.
//!
//! Rule: a name is resolved once for a connection, and the connection goes to the very addresses that were checked.
//! Redirects are followed on the same host only; time, bytes and text of a page are bounded.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{fmt, io};

use futures::FutureExt;
use futures::future::BoxFuture;
use hyper::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use kode_base::task;
use parking_lot::Mutex;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Proxy, Response, redirect};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::WebError;
use super::address::{AddressPolicy, AddressRules};
use super::body::{self, PageBody};
use super::cache::Cache;
use crate::WebPage;
use crate::http::{causes, client_builder, is_loopback};

/// How long a page may take, redirects included.
pub const TIME_LIMIT: Duration = Duration::from_secs(30);
/// How long making a connection may take, so that another address of the host can be tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of a body, decompressed; the rest is not read.
pub const MAX_BODY_BYTES: usize = 5 << 20;
/// How many redirects are followed.
pub const MAX_REDIRECTS: usize = 5;

/// The accepted types: text that needs no conversion first.
const ACCEPTED: &str = "text/markdown, text/plain;q=0.9, text/html;q=0.8, application/xhtml+xml;q=0.8, application/json;q=0.7, */*;q=0.1";

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// A page.
    Page {
        /// The page.
        page: Arc<WebPage>,
        /// Whether it was fetched by an earlier request.
        from_cache: bool,
    },
    /// The server redirects to another host, or to another place that needs a decision of its own. It was not
    /// followed.
    Elsewhere {
        /// The URL it redirects to.
        url: Url,
    },
}

/// Finds the addresses of names.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of a host name.
    ///
    /// # Errors
    /// The error of the system if none exist.
    fn addresses(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The system's own way to find addresses.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses(&self, host: &str) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let host = host.to_owned();
        async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect()) }
            .boxed()
    }
}

/// The parts of a client.
pub struct WebOptions {
    /// Which addresses may be connected to.
    pub policy: AddressPolicy,
    /// Hosts, by name or address, that may have private addresses.
    pub allowed_hosts: Vec<String>,
    /// How names are resolved.
    pub lookup: Arc<dyn Lookup>,
    /// The proxies; those of the system if not given. A proxy resolves names itself, so that of a URL that goes
    /// through one, only the host as it is written is checked.
    pub proxies: Option<Matcher>,
    /// The clock that pages age by.
    pub clock: fn() -> Instant,
}

impl Default for WebOptions {
    fn default() -> Self {
        Self {
            policy: AddressPolicy::default(),
            allowed_hosts: Vec::new(),
            lookup: Arc::new(SystemLookup),
            proxies: None,
            clock: Instant::now,
        }
    }
}

/// Fetches pages and keeps them for a while. Nothing is set up before the first request.
pub struct WebClient {
    rules: AddressRules,
    lookup: Arc<dyn Lookup>,
    proxies: OnceLock<Matcher>,
    clock: fn() -> Instant,
    cache: Mutex<Cache>,
    direct: [OnceLock<Result<Client, WebError>>; 2],
    proxied: Mutex<HashMap<Uri, Client>>,
}

impl fmt::Debug for WebClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WebClient").field("rules", &self.rules).finish_non_exhaustive()
    }
}

impl Default for WebClient {
    fn default() -> Self {
        Self::new(WebOptions::default())
    }
}

impl WebClient {
    /// A client with these options.
    #[must_use]
    pub fn new(options: WebOptions) -> Self {
        Self {
            rules: AddressRules::new(options.policy, &options.allowed_hosts),
            lookup: options.lookup,
            proxies: options.proxies.map_or_else(OnceLock::new, OnceLock::from),
            clock: options.clock,
            cache: Mutex::default(),
            direct: [const { OnceLock::new() }; 2],
            proxied: Mutex::default(),
        }
    }

    /// Checks what can be checked of a URL without any request. The hosts in `private_hosts` may have private addresses.
    ///
    /// # Errors
    /// [`WebError`] for another scheme than `http` and `https`, credentials, and hosts that are known to be private.
    pub fn check(&self, url: &Url, private_hosts: &[String]) -> Result<(), WebError> {
        self.rules.with_host_of(url, private_hosts).as_ref().unwrap_or(&self.rules).check(url)
    }

    /// Fetches a page, or takes it from the cache. The hosts in `private_hosts` may have private addresses; their pages are
    /// not cached, since those of a server under development change.
    ///
    /// # Errors
    /// [`WebError`]: what the check refuses, what the network, the server or the page make impossible, and
    /// cancellation.
    pub async fn fetch(
        &self,
        url: &Url,
        private_hosts: &[String],
        cancel: &CancellationToken,
    ) -> Result<FetchOutcome, WebError> {
        let mut url = url.clone();
        url.set_fragment(None);
        if let Some(rules) = self.rules.with_host_of(&url, private_hosts) {
            return within_limits(self.request(url, Some(&rules)), cancel).await;
        }
        self.rules.check(&url)?;
        let cached = self.cache.lock().get(&url, (self.clock)());
        if let Some(page) = cached {
            return Ok(FetchOutcome::Page { page, from_cache: true });
        }
        let fetched = within_limits(self.request(url.clone(), None), cancel).await?;
        if let FetchOutcome::Page { page, .. } = &fetched {
            let mut cache = self.cache.lock();
            cache.put(url, Arc::clone(page), (self.clock)());
        }
        Ok(fetched)
    }

    /// Requests a page by `rules`, or by those of the client.
    async fn request(&self, mut url: Url, rules: Option<&AddressRules>) -> Result<FetchOutcome, WebError> {
        for _ in 0..=MAX_REDIRECTS {
            rules.unwrap_or(&self.rules).check(&url)?;
            let response = self.send(&url, rules).await?;
            let status = response.status();
            if status.is_success() {
                let page = Arc::new(read_page(url, response).await?);
                return Ok(FetchOutcome::Page { page, from_cache: false });
            }
            if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
                return Err(WebError::Status { code: status.as_u16(), status: status.to_string() });
            }
            let next = redirect_target(&url, &response)?;
            if !is_same_place(&url, &next) {
                return Ok(FetchOutcome::Elsewhere { url: next });
            }
            url = next;
        }
        Err(WebError::TooManyRedirects { limit: MAX_REDIRECTS, next: url.to_string() })
    }

    async fn send(&self, url: &Url, rules: Option<&AddressRules>) -> Result<Response, WebError> {
        let client = self.client(url, rules)?;
        client
            .get(url.clone())
            .header(ACCEPT, ACCEPTED)
            .send()
            .await
            .map_err(|error| refusal(&error).unwrap_or_else(|| unreachable_host(url, error)))
    }

    /// The client that has the way to this URL.
    fn client(&self, url: &Url, rules: Option<&AddressRules>) -> Result<Client, WebError> {
        let proxies = self.proxies.get_or_init(Matcher::from_system);
        let target: Uri = url
            .as_str()
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| WebError::Url { reason: error.to_string() })?;
        let intercept = proxies.intercept(&target);
        // To a proxy, an address of this machine is one of the proxy's.
        if let Some(proxy) = intercept.filter(|_| rules.is_none() || !is_loopback(url)) {
            rules.unwrap_or(&self.rules).check_name(url)?;
            return self.proxied(&proxy);
        }
        let is_tls = url.scheme() == "https";
        match rules {
            Some(rules) => self.build_direct(is_tls, rules),
            None => {
                let direct = &self.direct[usize::from(is_tls)];
                direct.get_or_init(|| self.build_direct(is_tls, &self.rules)).clone()
            }
        }
    }

    fn build_direct(&self, is_tls: bool, rules: &AddressRules) -> Result<Client, WebError> {
        let resolver = CheckedLookup { rules: rules.clone(), lookup: Arc::clone(&self.lookup) };
        let mut builder = client_builder().no_proxy().dns_resolver(Arc::new(resolver));
        if !is_tls {
            // The system's certificates are slow to load, and plain http needs none.
            builder = builder.tls_certs_only([]);
        }
        finish(builder)
    }

    /// A client whose every connection goes to this proxy, so that no name is resolved here.
    fn proxied(&self, intercept: &Intercept) -> Result<Client, WebError> {
        let mut clients = self.proxied.lock();
        if let Some(client) = clients.get(intercept.uri()) {
            return Ok(client.clone());
        }
        let mut proxy = Proxy::all(intercept.uri().to_string()).map_err(|error| setup(&error))?;
        if let Some(credentials) = intercept.basic_auth() {
            proxy = proxy.custom_http_auth(credentials.clone());
        } else if let Some((user, password)) = intercept.raw_auth() {
            proxy = proxy.basic_auth(user, password);
        }
        let client = finish(client_builder().proxy(proxy))?;
        clients.insert(intercept.uri().clone(), client.clone());
        Ok(client)
    }
}

/// Waits for a page until it is cancelled or takes too long.
async fn within_limits(
    request: impl Future<Output = Result<FetchOutcome, WebError>>,
    cancel: &CancellationToken,
) -> Result<FetchOutcome, WebError> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(WebError::Cancelled),
        fetched = tokio::time::timeout(TIME_LIMIT, request) => {
            fetched.unwrap_or(Err(WebError::TimedOut { limit: TIME_LIMIT }))
        }
    }
}

fn finish(builder: reqwest::ClientBuilder) -> Result<Client, WebError> {
    // Requests are rare, so no connection is kept for the next one.
    let builder =
        builder.redirect(redirect::Policy::none()).connect_timeout(CONNECT_TIMEOUT).pool_max_idle_per_host(0);
    builder.build().map_err(|error| setup(&error))
}

fn setup(error: &reqwest::Error) -> WebError {
    WebError::Setup { reason: causes(error) }
}

/// The host and the problem; the URL is known to the caller.
fn unreachable_host(url: &Url, error: reqwest::Error) -> WebError {
    let host = url.host_str().unwrap_or_default().to_owned();
    WebError::Unreachable { host, reason: causes(&error.without_url()) }
}

/// Resolves names and lets only addresses through that may be connected to.
struct CheckedLookup {
    rules: AddressRules,
    lookup: Arc<dyn Lookup>,
}

impl Resolve for CheckedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let (rules, host) = (self.rules.clone(), name.as_str().to_owned());
        let addresses = self.lookup.addresses(&host);
        Box::pin(async move {
            let allowed: Vec<SocketAddr> = addresses
                .await?
                .into_iter()
                .filter(|address| rules.allows(&host, *address))
                .map(|address| SocketAddr::new(address, 0))
                .collect();
            if allowed.is_empty() {
                return Err(WebError::Private { host }.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// The refusal of an address, if that is why a request failed.
fn refusal(error: &reqwest::Error) -> Option<WebError> {
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        if let Some(refusal) = cause.downcast_ref::<WebError>() {
            return Some(refusal.clone());
        }
        source = cause.source();
    }
    None
}

fn redirect_target(url: &Url, response: &Response) -> Result<Url, WebError> {
    let bad = |reason: String| WebError::BadRedirect { reason };
    let location =
        response.headers().get(LOCATION).ok_or_else(|| bad("there is no `location`".to_owned()))?;
    let location = String::from_utf8_lossy(location.as_bytes());
    let mut next = url.join(&location).map_err(|error| bad(error.to_string()))?;
    next.set_fragment(None);
    match next.scheme() {
        "http" | "https" => Ok(next),
        scheme => Err(bad(format!("it leads to a `{scheme}` URL"))),
    }
}

/// Whether a redirect stays where the request was meant to go: same host, same port, and never from https to http.
fn is_same_place(from: &Url, to: &Url) -> bool {
    let is_upgrade =
        from.scheme() == "http" && to.scheme() == "https" && from.port().is_none() && to.port().is_none();
    let is_same_service = from.scheme() == to.scheme() && from.port() == to.port();
    from.host() == to.host() && (is_same_service || is_upgrade)
}

async fn read_page(url: Url, mut response: Response) -> Result<WebPage, WebError> {
    let header = response
        .headers()
        .get(CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let announced = response.content_length();
    body::check_type(header.as_deref(), announced)?;
    let mut bytes = Vec::new();
    let mut is_cut = false;
    while let Some(chunk) = response.chunk().await.map_err(|error| unreachable_host(&url, error))? {
        let room = MAX_BODY_BYTES - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            is_cut = true;
            break;
        }
    }
    // A connection that is not read to its end is of no more use.
    drop(response);
    let body = PageBody { bytes, content_type: header, is_cut };
    let page = task::spawn_blocking(move || body.into_page(url)).await;
    page.map_err(|error| WebError::Unreadable { reason: error.to_string() })?
}

#[cfg(test)]
mod tests;
