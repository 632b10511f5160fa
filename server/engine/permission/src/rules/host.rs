//! Hosts as rules write them behind `domain:`, and hosts as addresses hold them, in one spelling.
//!
//! Rule: both sides go through the same parser, the one that fetches use, so that no name passes a rule in a second
//! spelling; what that parser refuses is no host.

use std::fmt;
use std::str::FromStr;

use url::Host;

/// The hosts a rule refers to: one of that very name, the names below one, or all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostPattern {
    /// `*`: every host.
    All,
    /// This host, in its canonical spelling.
    Exactly(String),
    /// `*.host`: every host below this one, but not itself.
    Below(String),
}

/// Why a text is no pattern of hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadHost {
    /// There is nothing in it.
    #[error("the host is empty; write the tool's name without parentheses for all hosts")]
    Empty,
    /// An address instead of a host.
    #[error("`{0}` is more than a host; write only the name, as in `domain:example.com`")]
    Address(String),
    /// A `*` where none may be.
    #[error(
        "`{0}` has a `*` that is not the whole first part; write `*.example.com` for all hosts below one"
    )]
    Wildcard(String),
    /// No host has this name.
    #[error("`{0}` is no host name; write one like `example.com`")]
    Invalid(String),
}

/// The canonical spelling of a host: lower case, punycode, no dot at the end. `None` for an invalid host.
#[must_use]
pub fn canonical(host: &str) -> Option<String> {
    let canonical = match Host::parse(host).ok()? {
        Host::Domain(name) => name.strip_suffix('.').map_or(name.clone(), str::to_owned),
        address @ (Host::Ipv4(_) | Host::Ipv6(_)) => return Some(address.to_string()),
    };
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
    let is_name = canonical.split('.').all(|label| !label.is_empty()) && canonical.chars().all(is_letter);
    is_name.then_some(canonical)
}

impl FromStr for HostPattern {
    type Err = BadHost;

    fn from_str(text: &str) -> Result<Self, BadHost> {
        if text.is_empty() {
            return Err(BadHost::Empty);
        }
        if text == "*" {
            return Ok(Self::All);
        }
        let is_address = text.starts_with('[') && text.ends_with(']');
        if text.contains(['/', '@', '?', '#']) || (text.contains(':') && !is_address) {
            return Err(BadHost::Address(text.to_owned()));
        }
        let (name, is_below) = match text.strip_prefix("*.") {
            Some(name) => (name, true),
            None => (text, false),
        };
        if name.contains('*') {
            return Err(BadHost::Wildcard(text.to_owned()));
        }
        let name = canonical(name).ok_or_else(|| BadHost::Invalid(text.to_owned()))?;
        Ok(if is_below { Self::Below(name) } else { Self::Exactly(name) })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("*"),
            Self::Exactly(name) => formatter.write_str(name),
            Self::Below(name) => write!(formatter, "*.{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_host_has_one_spelling() {
        for (host, spelling) in [
            ("Example.COM", Some("example.com")),
            ("example.com.", Some("example.com")),
            ("bücher.example", Some("xn--bcher-kva.example")),
            ("XN--bcher-kva.example", Some("xn--bcher-kva.example")),
            ("127.1", Some("127.0.0.1")),
            ("[::1]", Some("[::1]")),
            ("a\0b", None),
            ("a b", None),
            ("", None),
            (".", None),
            ("127.0.0.1.", Some("127.0.0.1")),
            ("example.com..", None),
            ("a..b", None),
            (".example.com", None),
        ] {
            assert_eq!(canonical(host).as_deref(), spelling, "{host}");
        }
    }

    #[test]
    fn what_is_no_host_is_an_error_that_says_what_to_write() {
        for (text, error) in [
            ("", BadHost::Empty),
            ("https://a.b", BadHost::Address("https://a.b".to_owned())),
            ("a.b:80", BadHost::Address("a.b:80".to_owned())),
            ("a.*", BadHost::Wildcard("a.*".to_owned())),
            ("*a.b", BadHost::Wildcard("*a.b".to_owned())),
            ("a b", BadHost::Invalid("a b".to_owned())),
        ] {
            assert_eq!(text.parse::<HostPattern>(), Err(error), "{text}");
        }
    }
}
