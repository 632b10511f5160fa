//! The HTTP clients of the process, shared by all models.
//!
//! Rule: nothing is built before the first request needs it; redirects are never followed, so that no key goes
//! where it was not meant to; loopback is never reached through a proxy.

use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, redirect};
use url::{Host, Url};

use super::{ModelError, ModelErrorKind};

/// How long making a connection may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

const USER_AGENT: &str = concat!("kode-ls/", env!("CARGO_PKG_VERSION"));

/// The ways out, each with a client of its own because proxy and certificates belong to a client.
#[derive(Clone, Copy)]
enum Route {
    /// `http` on this machine: the system's certificates, slow to load and missing on some, are not needed.
    Loopback,
    /// `https` on this machine.
    LoopbackTls,
    /// Anywhere else, through the system's proxy if there is one.
    Outside,
}

static CLIENTS: [OnceLock<Result<Client, String>>; 3] = [const { OnceLock::new() }; 3];

/// The client for requests to `url`.
///
/// # Errors
/// [`ModelErrorKind::Configuration`] when no client can be built, for example without any trusted certificate.
pub fn client(url: &Url) -> Result<&'static Client, ModelError> {
    let route = match (is_loopback(url), url.scheme()) {
        (true, "http") => Route::Loopback,
        (true, _) => Route::LoopbackTls,
        (false, _) => Route::Outside,
    };
    CLIENTS[route as usize].get_or_init(|| build(route)).as_ref().map_err(|reason| {
        ModelError::new(
            ModelErrorKind::Configuration,
            format!(
                "The HTTP client could not be set up: {reason}. Check the system's CA certificates and proxy."
            ),
        )
    })
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

/// An error and its causes in one line; libraries keep the telling part in the causes.
#[must_use]
pub fn causes(error: &dyn std::error::Error) -> String {
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
pub(crate) fn client_builder() -> ClientBuilder {
    // An error only says that a provider is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder().user_agent(USER_AGENT)
}

fn build(route: Route) -> Result<Client, String> {
    let builder = client_builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirect::Policy::none())
        .tcp_nodelay(true);
    let builder = match route {
        Route::Loopback => builder.no_proxy().tls_certs_only([]),
        Route::LoopbackTls => builder.no_proxy(),
        Route::Outside => builder,
    };
    builder.build().map_err(|error| causes(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_told_from_the_rest() {
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
    fn one_client_serves_all_requests_of_a_route() {
        let client_for = |url: &str| client(&Url::parse(url).unwrap()).unwrap();
        assert!(std::ptr::eq(client_for("http://127.0.0.1:1/a"), client_for("http://localhost:2/b")));
    }

    #[test]
    fn causes_are_told_once() {
        let inner = std::io::Error::other("connection refused");
        let outer = std::io::Error::other(inner);
        assert_eq!(causes(&outer), "connection refused");
    }
}
