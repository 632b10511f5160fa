//! Hooks that are HTTP requests: the input is posted, and the response is read like the output of a command.
//!
//! Rule: a request goes where the settings say and nowhere else: no redirect is followed. Headers hold only the variables
//! that the handler names. Every answer but a good one decides nothing.

#![expect(clippy::disallowed_methods, reason = "headers of hooks name variables")]

use std::error::Error as _;

use futures::StreamExt;
use reqwest::redirect;
use url::{Host, Url};

use kode_base::variables::expand;
use kode_net::http::client_builder;

/// The longest answer, in bytes.
const MAX_ANSWER: usize = 1 << 20;

/// A request to make.
pub(super) struct HookRequest<'a> {
    pub(super) url: &'a str,
    pub(super) headers: &'a [(String, String)],
    /// Variables of the environment that headers may hold.
    pub(super) allowed: &'a [String],
    pub(super) body: String,
    /// Variables that the address and headers may hold anyway.
    pub(super) lookup: &'a (dyn Fn(&str) -> Option<String> + Sync),
}

/// Posts it. Answers the body of a good answer.
///
/// # Errors
/// The error, for people; without values of headers.
pub(super) async fn post(request: HookRequest<'_>) -> Result<String, String> {
    let HookRequest { url, headers, allowed, body, lookup } = request;
    let url = expand(url, lookup)
        .complete()
        .map_err(|name| format!("the variable {name} of its address is not set"))?;
    let is_known = |name: &str| allowed.iter().any(|allowed| allowed == name);
    let variable =
        |name: &str| lookup(name).or_else(|| is_known(name).then(|| std::env::var(name).ok()).flatten());
    let address = Url::parse(&url).map_err(|error| format!("its address is invalid: {error}"))?;
    let mut builder = client_builder().redirect(redirect::Policy::none()).pool_max_idle_per_host(0);
    if is_here(&address) {
        builder = builder.no_proxy();
    }
    if address.scheme() == "http" {
        // The system's certificates are slow to load, and plain http needs none.
        builder = builder.tls_certs_only([]);
    }
    let client = builder.build().map_err(|error| causes(&error))?;
    let mut post = client.post(address).header("content-type", "application/json").body(body);
    for (name, value) in headers {
        let value = expand(&bare_as_braced(value), &variable);
        // Without its value a header says something else than it is meant to.
        let value = value.complete().map_err(|missing| {
            format!(
                "the header {name} needs the variable {missing}, which is not set or not among allowedEnvVars"
            )
        })?;
        post = post.header(name, value);
    }
    let answer = post.send().await.map_err(|error| causes(&error.without_url()))?;
    let status = answer.status();
    if !status.is_success() {
        return Err(format!("the server answered {status}"));
    }
    let mut bytes = Vec::new();
    let mut parts = answer.bytes_stream();
    while let Some(part) = parts.next().await {
        bytes.extend_from_slice(&part.map_err(|error| causes(&error.without_url()))?);
        if bytes.len() > MAX_ANSWER {
            return Err(format!("the answer is longer than {MAX_ANSWER} bytes"));
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let is_object = || serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(&text).is_ok();
    if text.trim().is_empty() || is_object() {
        Ok(text)
    } else {
        Err("the answer is not a JSON object".to_owned())
    }
}

/// Whether a server is on this machine.
fn is_here(address: &Url) -> bool {
    match address.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// A text in which variables without braces have them.
fn bare_as_braced(text: &str) -> String {
    let mut braced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        braced.push_str(before);
        let end =
            after.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(after.len());
        if end == 0 {
            braced.push('$');
        } else {
            braced.push_str(&format!("${{{}}}", &after[..end]));
        }
        rest = &after[end..];
    }
    braced.push_str(rest);
    braced
}

fn causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_with_and_without_braces() {
        assert_eq!(bare_as_braced("Bearer $KEY, ${OTHER} $ 5$"), "Bearer ${KEY}, ${OTHER} $ 5$");
    }
}
