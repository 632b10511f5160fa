//! Which hosts commands may reach: names as they are listed and as they are asked for, read by one reader.
//!
//! Rule: a name is read once, strictly, and only the parsed name is compared and connected to; an unlisted host is not
//! reached, and a denied host is not reached even if listed.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The ports of a host that is listed without one.
pub const WEB_PORTS: [u16; 2] = [80, 443];
/// The most characters of a host name, and of what lies between its dots.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// The prefix of an entry for all names beneath another.
const BENEATH: &str = "*.";

/// A host: a name in lower case without the dot of the root, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ProxyHost {
    /// A name of letters, digits, dots and hyphens, which cannot be read as an address.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Where a connection is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTarget {
    /// The host.
    pub host: ProxyHost,
    /// The port; the scheme's if none was given.
    pub port: Option<u16>,
}

/// One entry of a list of hosts: `example.com`, `*.example.com` (those beneath it and not itself), `192.0.2.1`,
/// `[2001:db8::1]`, each with a port (`example.com:8080`) or without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostEntry {
    beneath: bool,
    target: HostTarget,
}

/// Why something is no host, or no entry for hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Another character, a name or a part of it that is empty or too long.
    #[error("it is no host name of letters, digits, dots and hyphens")]
    Name,
    /// A name that some programs read as an address.
    #[error("it is an address in a form that is not taken")]
    Address,
    /// An invalid port.
    #[error("its port is not a number from 1 to 65535")]
    Port,
    /// A star that does not match the names beneath another.
    #[error("a star matches only all names beneath another, as in `*.example.com`")]
    Star,
}

/// Why a host is not reached.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostRefusal {
    /// Nothing in the list is it.
    #[error("host {0} is not in sandbox.network.allowedDomains")]
    NotListed(ProxyHost),
    /// It is listed for other ports.
    #[error("port {1} of host {0} is not in sandbox.network.allowedDomains")]
    Port(ProxyHost, u16),
    /// It is in the other list.
    #[error("host {0} is in sandbox.network.deniedDomains")]
    Denied(ProxyHost),
}

/// Whether a connection to a port of a host is allowed.
///
/// # Errors
/// [`HostRefusal`] when it is not. Nothing listed is nothing allowed.
pub fn check(
    allowed: &[HostEntry],
    denied: &[HostEntry],
    host: &ProxyHost,
    port: u16,
) -> Result<(), HostRefusal> {
    if is_denied(denied, host, port) {
        return Err(HostRefusal::Denied(host.clone()));
    }
    let mut listed = allowed.iter().filter(|entry| entry.covers(host)).peekable();
    if listed.peek().is_none() {
        return Err(HostRefusal::NotListed(host.clone()));
    }
    let has_port = |entry: &HostEntry| match entry.target.port {
        Some(own) => own == port,
        None => WEB_PORTS.contains(&port),
    };
    if listed.any(has_port) { Ok(()) } else { Err(HostRefusal::Port(host.clone(), port)) }
}

/// Whether a port of a host is denied, whatever is allowed.
#[must_use]
pub fn is_denied(denied: &[HostEntry], host: &ProxyHost, port: u16) -> bool {
    denied.iter().any(|entry| entry.covers(host) && entry.target.port.is_none_or(|own| own == port))
}

impl HostEntry {
    /// Whether the entry is for this host, on whatever port.
    #[must_use]
    pub fn covers(&self, host: &ProxyHost) -> bool {
        match (&self.target.host, host, self.beneath) {
            (ProxyHost::Name(own), ProxyHost::Name(name), true) => {
                name.strip_suffix(own.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
            }
            (own, host, false) => own == host,
            (
                ProxyHost::Name(_) | ProxyHost::Address(_),
                ProxyHost::Name(_) | ProxyHost::Address(_),
                true,
            ) => false,
        }
    }
}

impl FromStr for HostEntry {
    type Err = HostError;

    fn from_str(text: &str) -> Result<Self, HostError> {
        let (beneath, rest) = match text.strip_prefix(BENEATH) {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if rest.contains('*') {
            return Err(HostError::Star);
        }
        // An address without brackets has colons of its own.
        let target = match text.parse::<Ipv6Addr>() {
            Ok(address) => HostTarget { host: ProxyHost::Address(address.into()), port: None },
            Err(_) => rest.parse()?,
        };
        match (beneath, &target.host) {
            (true, ProxyHost::Address(_)) => Err(HostError::Star),
            (true, ProxyHost::Name(_)) | (false, _) => Ok(Self { beneath, target }),
        }
    }
}

impl FromStr for HostTarget {
    type Err = HostError;

    /// Reads `host` or `host:port`, unchanged in a request; an IPv6 address is in brackets.
    fn from_str(text: &str) -> Result<Self, HostError> {
        if let Some(rest) = text.strip_prefix('[') {
            let (address, rest) = rest.split_once(']').ok_or(HostError::Address)?;
            let address: Ipv6Addr = address.parse().map_err(|_| HostError::Address)?;
            let port = match rest.strip_prefix(':') {
                Some(port) => Some(port_of(port)?),
                None if rest.is_empty() => None,
                None => return Err(HostError::Address),
            };
            return Ok(Self { host: ProxyHost::Address(address.into()), port });
        }
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port_of(port)?)),
            None => (text, None),
        };
        Ok(Self { host: host_of(name)?, port })
    }
}

fn port_of(text: &str) -> Result<u16, HostError> {
    // A number may begin with a plus for the standard library.
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|port| is_number && *port != 0).ok_or(HostError::Port)
}

fn host_of(text: &str) -> Result<ProxyHost, HostError> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    if name.len() > MAX_NAME || !name.split('.').all(is_label) {
        return Err(HostError::Name);
    }
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Ok(ProxyHost::Address(address.into()));
    }
    // A name that ends in a number is an address to the system, in one of many notations.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_hexadecimal =
        last.strip_prefix("0x").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_hexadecimal || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(HostError::Address);
    }
    Ok(ProxyHost::Name(name))
}

fn is_label(label: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(is_allowed)
}

impl fmt::Display for ProxyHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for HostEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { beneath, target: HostTarget { host, port } } = self;
        write!(f, "{}{host}", if *beneath { BENEATH } else { "" })?;
        port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl TryFrom<String> for HostEntry {
    type Error = HostError;

    fn try_from(text: String) -> Result<Self, HostError> {
        text.parse()
    }
}

impl From<HostEntry> for String {
    fn from(pattern: HostEntry) -> Self {
        pattern.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn patterns(texts: &[&str]) -> Vec<HostEntry> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    /// Whether `asked`, unchanged in a request, is reached with these lists.
    fn passes(allowed: &[&str], denied: &[&str], asked: &str) -> bool {
        let Ok(HostTarget { host, port }) = asked.parse::<HostTarget>() else { return false };
        check(&patterns(allowed), &patterns(denied), &host, port.unwrap_or(443)).is_ok()
    }

    #[test]
    fn only_what_is_listed_is_reached_however_it_is_written() {
        let allowed =
            ["example.com", "*.Beneath.example.", "other.example:8080", "192.0.2.1", "[2001:db8::1]"];
        for asked in [
            "example.com",
            "EXAMPLE.com.:443",
            "example.com:80",
            "a.beneath.example",
            "a.b.beneath.example",
            "other.example:8080",
            "192.0.2.1",
            "[2001:DB8:0::1]:443",
        ] {
            assert!(passes(&allowed, &[], asked), "{asked}");
        }
        for asked in [
            "",
            ".",
            "example.com:8080",
            "example.com:22",
            "example.com:0",
            "example.com:",
            "example.com:+443",
            "example.com:65979",
            "example.com..",
            ".example.com",
            "wwwexample.com",
            "www.example.com",
            "example.com.evil.example",
            "evil.example\0.example.com",
            "evil.example\0example.com",
            "example.com\0",
            "example.com@evil.example",
            "evil.example@example.com",
            "evil.example#example.com",
            "evil.example/example.com",
            "example.com\r\nHost: evil.example",
            "example.com evil.example",
            "example%2ecom",
            "example。com",
            "ｅxample.com",
            "exam_ple.com",
            "*.example.com",
            "beneath.example",
            ".beneath.example",
            "evilbeneath.example",
            "-.beneath.examples",
            "other.example",
            "192.0.2.2",
            "192.0.2.1.",
            "192.0.513",
            "0xc0.0.2.1",
            "0300.0.2.1",
            "3221225985",
            "0xc0000201",
            "1.example.0x1",
            "2001:db8::1",
            "[2001:db8::2]",
            "[2001:db8::1%eth0]",
            "[::ffff:192.0.2.1]",
            "[example.com]",
            "[2001:db8::1]example.com",
        ] {
            // With the dot of the root an address is still that address.
            assert_eq!(passes(&allowed, &[], asked), asked == "192.0.2.1.", "{asked:?}");
        }
    }

    #[test]
    fn an_empty_list_is_no_host_and_what_is_denied_wins() {
        assert!(!passes(&[], &[], "example.com"));
        assert!(!passes(&["example.com"], &["EXAMPLE.COM."], "example.com"));
        assert!(!passes(&["*.example.com", "a.example.com"], &["*.example.com"], "a.example.com"));
        assert!(!passes(&["*.example.com"], &["b.a.example.com"], "b.a.example.com"));
        assert!(passes(&["*.example.com"], &["b.a.example.com"], "a.example.com"));
        assert!(!passes(&["example.com"], &["example.com:443"], "example.com:443"));
        assert!(passes(&["example.com"], &["example.com:443"], "example.com:80"));
    }

    #[test]
    fn a_refusal_says_why() {
        let refused = |allowed: &[&str], denied: &[&str], port| {
            let host = ProxyHost::Name("example.com".to_owned());
            check(&patterns(allowed), &patterns(denied), &host, port).unwrap_err().to_string()
        };
        assert_eq!(refused(&[], &[], 80), "host example.com is not in sandbox.network.allowedDomains");
        assert_eq!(
            refused(&["example.com"], &[], 22),
            "port 22 of host example.com is not in sandbox.network.allowedDomains"
        );
        let denied = refused(&["example.com"], &["example.com"], 80);
        assert_eq!(denied, "host example.com is in sandbox.network.deniedDomains");
    }

    #[test]
    fn entries_that_are_none_are_refused() {
        for (text, error) in [
            ("*", HostError::Star),
            ("*.*.example.com", HostError::Star),
            ("*example.com", HostError::Star),
            ("a.*.example.com", HostError::Star),
            ("*.192.0.2.1", HostError::Star),
            ("*.", HostError::Name),
            ("", HostError::Name),
            ("https://example.com", HostError::Port),
            ("example.com/path", HostError::Name),
            ("127.1", HostError::Address),
            ("example.com:http", HostError::Port),
        ] {
            assert_eq!(text.parse::<HostEntry>(), Err(error), "{text}");
        }
        for text in ["example.com", "*.example.com:8443", "192.0.2.1:80", "[2001:db8::1]:80"] {
            let pattern: HostEntry = text.parse().unwrap();
            assert_eq!(serde_json::to_string(&pattern).unwrap(), format!("\"{text}\""));
        }
        assert_eq!("2001:db8::1".parse::<HostEntry>().unwrap().to_string(), "[2001:db8::1]");
    }

    proptest! {
        #[test]
        fn what_is_beneath_a_name_is_neither_it_nor_one_that_ends_like_it(
            name in "[a-z][a-z0-9-]{0,9}(\\.[a-z][a-z0-9]{0,5}){1,2}",
            front in "[a-z][a-z0-9-]{0,9}",
        ) {
            let pattern = format!("*.{name}");
            let beneath = format!("{front}.{name}");
            let ends_like_it = format!("{front}{name}");
            prop_assert!(passes(&[&pattern], &[], &beneath));
            prop_assert!(!passes(&[&pattern], &[], &name));
            prop_assert!(!passes(&[&pattern], &[], &ends_like_it));
            let continued = format!("{beneath}.z{front}");
            let is_beneath = continued.ends_with(&format!(".{name}"));
            prop_assert!(is_beneath || !passes(&[&pattern], &[], &continued));
        }

        #[test]
        fn what_is_read_is_written_and_read_again_alike(text in "\\PC{0,40}") {
            if let Ok(pattern) = text.parse::<HostEntry>() {
                prop_assert_eq!(pattern.to_string().parse::<HostEntry>(), Ok(pattern));
            }
        }
    }
}
