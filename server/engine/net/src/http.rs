//! The HTTP clients of the process, shared by all models.
//!
//! Rule: equal options share a client, and their number is bounded; nothing is built before the first request needs it; redirects are never followed, so that no key goes
//! where it was not meant to; loopback is never reached through a proxy.

#![expect(clippy::disallowed_methods, reason = "it makes the HTTP client that all requests share")]

use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use reqwest::{Certificate, Client, ClientBuilder, redirect};
use url::{Host, Url};

use kode_base::secret::Secret;

/// How long making a connection may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum number of clients that are kept; each has connections of its own.
const MAX_CLIENTS: usize = 32;

/// The largest file of certificates.
const MAX_CERTIFICATES_BYTES: u64 = 4 * 1024 * 1024;

const USER_AGENT: &str = concat!("kode-ls/", env!("CARGO_PKG_VERSION"));

/// The ways out, each with a client of its own because proxy and certificates belong to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum HttpRoute {
    /// `http` on this machine: the system's certificates, slow to load and missing on some, are not needed.
    Loopback,
    /// `https` on this machine.
    LoopbackTls,
    /// Anywhere else, through the system's proxy if there is one.
    Outside,
}

/// How a profile's server is reached.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HttpOptions {
    /// Through which proxy.
    pub proxy: ProxyOption,
    /// Files with certificates to trust besides the system's, in PEM.
    pub ca_certificates: Vec<PathBuf>,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
}

/// Through which proxy a server is reached. One on this machine never is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProxyOption {
    /// That of the system, if it has one.
    System,
    /// None.
    None,
    /// This one; its address may hold a password.
    At(Secret),
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self { proxy: ProxyOption::System, ca_certificates: Vec::new(), connect_timeout: CONNECT_TIMEOUT }
    }
}

/// Why there is no HTTP client, for example without any trusted certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "The HTTP client could not be set up: {0}. Check the CA certificates and the proxy, the system's and those of the \
     profile."
)]
pub struct HttpError(String);

/// A client, made at the first request that needs it, or the reason why it failed.
type ClientSlot = Arc<OnceLock<Result<Client, String>>>;

static CLIENTS: Mutex<Option<HashMap<(HttpRoute, HttpOptions), ClientSlot>>> = Mutex::new(None);

/// The client for requests to `url` without options of their own.
///
/// # Errors
/// As [`client_for`].
pub fn client(url: &Url) -> Result<Client, HttpError> {
    client_for(url, &HttpOptions::default())
}

/// The client for requests to `url` with these options; equal options share one. Certificates are read when it is made.
///
/// # Errors
/// [`HttpError`] when no client can be built.
pub fn client_for(url: &Url, options: &HttpOptions) -> Result<Client, HttpError> {
    let route = match (is_loopback(url), url.scheme()) {
        (true, "http") => HttpRoute::Loopback,
        (true, _) => HttpRoute::LoopbackTls,
        (false, _) => HttpRoute::Outside,
    };
    let slot = {
        let mut clients = CLIENTS.lock();
        let clients = clients.get_or_insert_default();
        // A user of a dropped client holds it until it is done.
        if clients.len() >= MAX_CLIENTS && !clients.contains_key(&(route, options.clone())) {
            clients.clear();
        }
        Arc::clone(clients.entry((route, options.clone())).or_default())
    };
    slot.get_or_init(|| build(route, options)).clone().map_err(HttpError)
}

/// Whether `url` leads to this very machine.
#[must_use]
pub fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    }
}

/// Whether the peer's certificate is not trusted, has expired, or is for another name.
#[must_use]
pub fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        // I/O errors leave the errors that they wrap out of their causes.
        let mut inner = error;
        while let Some(wrapped) = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            inner = wrapped;
        }
        if matches!(inner.downcast_ref(), Some(rustls::Error::InvalidCertificate(_))) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An error and its causes in one line; libraries keep the telling part in the causes.
#[must_use]
pub fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// A client without a route yet; every client of the process begins here, because TLS needs the cryptography that
/// this installs.
pub fn client_builder() -> ClientBuilder {
    // An error only says that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().user_agent(USER_AGENT)
}

fn build(route: HttpRoute, options: &HttpOptions) -> Result<Client, String> {
    let builder = client_builder()
        .connect_timeout(options.connect_timeout)
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true);
    let builder = match (route, &options.proxy) {
        (HttpRoute::Loopback | HttpRoute::LoopbackTls, _) | (HttpRoute::Outside, ProxyOption::None) => {
            builder.no_proxy()
        }
        (HttpRoute::Outside, ProxyOption::System) => builder,
        (HttpRoute::Outside, ProxyOption::At(address)) => {
            // The error would repeat the address, and with it a password.
            let proxy =
                reqwest::Proxy::all(address.expose()).map_err(|_| "the proxy is no address".to_owned())?;
            builder.no_proxy().proxy(proxy)
        }
    };
    let builder = match route {
        HttpRoute::Loopback => builder.tls_certs_only([]),
        HttpRoute::LoopbackTls | HttpRoute::Outside => {
            let mut certificates = Vec::new();
            for file in &options.ca_certificates {
                certificates.extend(certificates_in(file)?);
            }
            if certificates.is_empty() { builder } else { builder.tls_certs_merge(certificates) }
        }
    };
    builder.build().map_err(|error| causes(&error))
}

fn certificates_in(file: &Path) -> Result<Vec<Certificate>, String> {
    let unreadable =
        |error: String| format!("the certificates in {} cannot be read: {error}", file.display());
    let size = std::fs::metadata(file).map_err(|error| unreadable(error.to_string()))?.len();
    if size > MAX_CERTIFICATES_BYTES {
        return Err(unreadable(format!("it is larger than {MAX_CERTIFICATES_BYTES} bytes")));
    }
    let text = std::fs::read(file).map_err(|error| unreadable(error.to_string()))?;
    let found = Certificate::from_pem_bundle(&text).map_err(|error| unreadable(causes(&error)))?;
    if found.is_empty() { Err(unreadable("it contains no certificates".to_owned())) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_distinguished_from_the_rest() {
        for (url, expected) in [
            ("http://127.0.0.1:1/", true),
            ("http://127.9.9.9/", true),
            ("http://[::1]:80/", true),
            ("https://localhost/", true),
            ("http://api.localhost/", true),
            ("http://localhost.example.com/", false),
            ("http://127.0.0.1.example.com/", false),
            ("https://api.anthropic.com/", false),
            ("http://10.0.0.1/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn causes_are_reported_once() {
        let inner = std::io::Error::other("connection refused");
        let outer = std::io::Error::other(inner);
        assert_eq!(causes(&outer), "connection refused");
    }
}
