//! Fetching a file from the web for plugins: lists, and what registries of packages have.
//!
//! Rule: encrypted, or from this very machine; each step of the few redirects is checked alike, and none leads from elsewhere to this
//! machine. Size and time are bounded, and the user's credentials are sent nowhere.

use reqwest::header::{ACCEPT, LOCATION};
use reqwest::{Response, Url};

use super::{LIMIT, StoreError};
use kode_net::http::{causes, client, is_loopback};

/// Maximum number of redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// Fetches a file of at most `most` bytes.
///
/// # Errors
/// [`StoreError::Fetch`].
pub(super) async fn fetch(address: &str, accept: &str, most: usize) -> Result<Vec<u8>, StoreError> {
    let failed = |reason: String| StoreError::Fetch { address: address.to_owned(), reason };
    let late = |_| Err(format!("it took longer than {} seconds", LIMIT.as_secs()));
    tokio::time::timeout(LIMIT, read(address, accept, most)).await.unwrap_or_else(late).map_err(failed)
}

/// An address that may be asked.
///
/// # Errors
/// Why it may not, without a period.
pub(in crate::plugin) fn check(address: &str) -> Result<Url, String> {
    let url = Url::parse(address).map_err(|error| format!("`{address}` is no address: {error}"))?;
    if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
        return Err(format!("`{address}` is not an `https://` address"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address with a name or a password in it is not asked".to_owned());
    }
    Ok(url)
}

async fn read(address: &str, accept: &str, most: usize) -> Result<Vec<u8>, String> {
    let first = check(address)?;
    let mut url = first.clone();
    for _ in 0..=MAX_REDIRECTS {
        let request =
            client(&url).map_err(|error| error.to_string())?.get(url.clone()).header(ACCEPT, accept);
        let response = request.send().await.map_err(|error| causes(&error.without_url()))?;
        match response.status() {
            status if status.is_success() => return body(response, most).await,
            status if status.is_redirection() => url = next(&first, &url, &response)?,
            status => return Err(format!("the server answered {status}")),
        }
    }
    Err(format!("there were more than {MAX_REDIRECTS} redirects"))
}

/// Where an answer leads that is no file.
fn next(first: &Url, url: &Url, response: &Response) -> Result<Url, String> {
    let location = response.headers().get(LOCATION).and_then(|location| location.to_str().ok());
    location.map_or_else(
        || Err(format!("the server answered {}", response.status())),
        |to| follow(first, url, to),
    )
}

/// Where a redirect leads that was answered at `url`, after the request to `first`.
fn follow(first: &Url, url: &Url, location: &str) -> Result<Url, String> {
    let next = url.join(location).map_err(|error| format!("it is redirected to `{location}`: {error}"))?;
    let next = check(next.as_str()).map_err(|reason| format!("it is redirected, and {reason}"))?;
    match is_loopback(&next) && !is_loopback(first) {
        true => Err("it is redirected to this machine".to_owned()),
        false => Ok(next),
    }
}

async fn body(mut response: Response, most: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| causes(&error.without_url()))? {
        if bytes.len() + chunk.len() > most {
            return Err(format!("it is larger than {most} bytes"));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_stays_encrypted_and_never_leads_to_this_machine_from_elsewhere() {
        let (away, here) = ("https://a.example/x/list.json", "http://127.0.0.1:1/list.json");
        for (first, location, expected) in [
            (away, "y.json", Ok("https://a.example/x/y.json")),
            (away, "//b.example/y", Ok("https://b.example/y")),
            (away, "http://b.example/y", Err("is not an `https://` address")),
            (away, "http://127.0.0.1/y", Err("to this machine")),
            (away, "https://localhost/y", Err("to this machine")),
            (away, "https://[::1]/y", Err("to this machine")),
            (away, "https://me:word@b.example/y", Err("a name or a password")),
            (away, "file:///etc/passwd", Err("is not an `https://` address")),
            (here, "http://127.0.0.1:2/y", Ok("http://127.0.0.1:2/y")),
            (here, "https://b.example/y", Ok("https://b.example/y")),
        ] {
            let first = Url::parse(first).unwrap();
            match (follow(&first, &first, location), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found.as_str(), expected),
                (Err(failed), Err(expected)) => assert!(failed.contains(expected), "{location}: {failed}"),
                (found, _) => panic!("{location}: {found:?}"),
            }
        }
        // On the way it may have come to another host, and is no more welcome here.
        let (first, on_the_way) = (Url::parse(away).unwrap(), Url::parse("https://b.example/").unwrap());
        assert!(follow(&first, &on_the_way, "https://127.0.0.1/").is_err());
    }
}
