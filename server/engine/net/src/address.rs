//! Which addresses and URLs may be fetched.
//!
//! Rule: an address is fetched from only if it is known to be public; whatever is reserved, translated or tunneled
//! (it may lead back into this network) is not. A URL is parsed once, and everybody uses that parse.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::WebError;

/// The most characters of a URL.
pub const MAX_URL_CHARS: usize = 2_000;

/// Ends of names that mean hosts of the network at hand, and those by which clouds are controlled.
const PRIVATE_NAMES: [&str; 11] = [
    "internal",
    "intranet",
    "local",
    "localdomain",
    "localhost",
    "lan",
    "home",
    "home.arpa",
    "corp",
    "private",
    "test",
];

/// IPv4 networks that are not public, with the length of their prefix.
const SPECIAL_V4: [(Ipv4Addr, u32); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    // It looks public, and machines in one cloud are controlled by it.
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    // Relays of 6to4.
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    (Ipv4Addr::new(255, 255, 255, 255), 32),
];

/// The one IPv6 network that public addresses are given from. Mapped, translated (NAT64), local, link and multicast
/// addresses all lie outside of it.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// IPv6 networks within [`PUBLIC_V6`] that are not public.
const SPECIAL_V6: [(Ipv6Addr, u32); 4] = [
    // Protocol assignments, Teredo among them.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    // 6to4.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Which addresses may be connected to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AddressPolicy {
    /// Public ones.
    #[default]
    GlobalOnly,
    /// Public ones and these.
    Also(Vec<IpAddr>),
}

impl AddressPolicy {
    /// Whether this address may be connected to.
    #[must_use]
    pub fn allows(&self, address: IpAddr) -> bool {
        is_global(address)
            || match self {
                Self::GlobalOnly => false,
                Self::Also(addresses) => addresses.contains(&address),
            }
    }
}

/// The policy, and the hosts it does not count for.
#[derive(Clone, Debug, Default)]
pub(super) struct AddressRules {
    policy: AddressPolicy,
    allowed_hosts: Vec<String>,
}

impl AddressRules {
    pub(super) fn new(policy: AddressPolicy, allowed_hosts: &[String]) -> Self {
        let plain = |host: &String| plain_name(host.trim_start_matches('[').trim_end_matches(']'));
        Self { policy, allowed_hosts: allowed_hosts.iter().map(plain).collect() }
    }

    /// These rules with further hosts that may have private addresses; `None` where the URL names none of them.
    pub(super) fn with_host_of(&self, url: &Url, private_hosts: &[String]) -> Option<Self> {
        let more = Self::new(self.policy.clone(), private_hosts);
        let host = plain_name(url.host_str()?.trim_start_matches('[').trim_end_matches(']'));
        more.allowed_hosts.contains(&host).then(|| Self {
            policy: more.policy,
            allowed_hosts: self.allowed_hosts.iter().cloned().chain([host]).collect(),
        })
    }

    /// Whether a connection to `host` may go to this address.
    pub(super) fn allows(&self, host: &str, address: IpAddr) -> bool {
        let is_host = !(address.is_unspecified() || address.is_multicast());
        self.policy.allows(address) || (is_host && self.allowed_hosts.contains(&plain_name(host)))
    }

    /// Checks what can be checked of a URL without asking a name server.
    ///
    /// # Errors
    /// [`WebError`] for another scheme than `http` and `https`, credentials, and hosts that are known to be private.
    pub(super) fn check(&self, url: &Url) -> Result<(), WebError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(WebError::Scheme { scheme: url.scheme().to_owned() });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(WebError::Credentials);
        }
        let (host, address) = match url.host() {
            Some(Host::Ipv4(address)) => (address.to_string(), Some(IpAddr::V4(address))),
            Some(Host::Ipv6(address)) => (address.to_string(), Some(IpAddr::V6(address))),
            Some(Host::Domain(name)) => {
                let name = plain_name(name);
                let is_loopback = name == "localhost" || name.ends_with(".localhost");
                // A connecting library might read a name as an address after all.
                let address = name.parse().ok().or(is_loopback.then_some(IpAddr::V4(Ipv4Addr::LOCALHOST)));
                (name, address)
            }
            None => return Err(WebError::Url { reason: "it has no host".to_owned() }),
        };
        match address {
            Some(address) if !self.allows(&host, address) => Err(WebError::Private { host }),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks the name of a host that a proxy is to look up: one that is known to be private is not asked of it.
    ///
    /// # Errors
    /// [`WebError::Private`].
    pub(super) fn check_name(&self, url: &Url) -> Result<(), WebError> {
        let Some(Host::Domain(name)) = url.host() else { return Ok(()) };
        let host = plain_name(name);
        let is_private = !host.contains('.')
            || PRIVATE_NAMES
                .iter()
                .any(|end| host.strip_suffix(end).is_some_and(|start| start.ends_with('.')));
        if is_private && !self.allowed_hosts.contains(&host) {
            return Err(WebError::Private { host });
        }
        Ok(())
    }
}

/// Parses a URL that someone wants to fetch. The fragment is dropped: it is never sent.
///
/// # Errors
/// [`WebError::Url`] when it is no URL or too long.
pub fn parse_url(text: &str) -> Result<Url, WebError> {
    let chars = text.chars().count();
    if chars > MAX_URL_CHARS {
        let reason = format!("it has {chars} characters; at most {MAX_URL_CHARS} are allowed");
        return Err(WebError::Url { reason });
    }
    let mut url = Url::parse(text).map_err(|error| WebError::Url { reason: error.to_string() })?;
    url.set_fragment(None);
    Ok(url)
}

/// Whether an address is public.
#[must_use]
pub fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|(network, length)| {
            let mask = u32::MAX << (u32::BITS - length);
            address.to_bits() & mask == network.to_bits()
        }),
        IpAddr::V6(address) => {
            let is_in = |(network, length): &(Ipv6Addr, u32)| {
                let mask = u128::MAX << (u128::BITS - length);
                address.to_bits() & mask == network.to_bits()
            };
            is_in(&PUBLIC_V6) && !SPECIAL_V6.iter().any(is_in)
        }
    }
}

/// A host name as it is compared: in lower case, without the dot of the root.
fn plain_name(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses of this machine, of its network, or of nothing that is public, in all notations.
    const PRIVATE_HOSTS: &[&str] = &[
        "0.0.0.0",
        "0",
        "0.1.2.3",
        "10.0.0.1",
        "10.255.255.255",
        "10.1",
        "0xa.0.0.1",
        "012.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "127.255.255.254",
        "127.0.0.1.",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "0x7F.0x0.0x0.0x1",
        "%31%32%37.0.0.1",
        "１２７.０.０.１",
        "127。0。0。1",
        "①②⑦.0.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "0xa9fea9fe",
        "2852039166",
        "0251.0376.0251.0376",
        "169.254.0.1",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.1",
        "192.0.0.170",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.0.1",
        "192.168.255.255",
        "3232235521",
        "0xc0a80001",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "4294967295",
        "[::]",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:8.8.8.8]",
        "[::ffff:0:8.8.8.8]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::8.8.8.8]",
        "[64:ff9b:1::1]",
        "[100::1]",
        "[2001::1]",
        "[2001:0:7f00:1::]",
        "[2001:2::1]",
        "[2001:10::1]",
        "[2001:20::1]",
        "[2001:db8::1]",
        "[2002:7f00:1::]",
        "[2002:a9fe:a9fe::1]",
        "[3fff::1]",
        "[3fff:fff::1]",
        "[5f00::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "[febf::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[ff0e::1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "api.localhost",
        "a.b.LocalHost.",
    ];

    fn check(text: &str) -> Result<(), WebError> {
        AddressRules::default().check(&parse_url(text)?)
    }

    #[test]
    fn no_notation_of_a_private_address_passes() {
        assert!(PRIVATE_HOSTS.len() >= 60);
        for host in PRIVATE_HOSTS {
            for url in [format!("http://{host}/"), format!("https://{host}:8443/x?y")] {
                let checked = check(&url);
                assert!(matches!(checked, Err(WebError::Private { .. })), "{url}: {checked:?}");
            }
        }
    }

    #[test]
    fn public_addresses_and_names_pass() {
        for host in [
            "8.8.8.8",
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "172.15.255.255",
            "172.32.0.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "[2606:4700::1111]",
            "[2001:200::1]",
            "[2a00:1450::1]",
            "example.com",
            "localhost.example.com",
            "mylocalhost",
            "10.0.0.1.example.com",
            "xn--bcher-kva.example",
        ] {
            assert_eq!(check(&format!("https://{host}/")), Ok(()), "{host}");
        }
    }

    #[test]
    fn urls_that_are_not_for_fetching_are_refused() {
        let long = format!("https://example.com/{}", "a".repeat(MAX_URL_CHARS));
        for url in ["", "example.com", "https://", "http://[::1", "http://1.2.3.4.5.6/", "http://a b/", &long]
        {
            assert!(matches!(check(url), Err(WebError::Url { .. })), "{url}");
        }
        for url in
            ["file:///etc/passwd", "ftp://example.com/", "gopher://x/", "data:text/html,x", "javascript:1"]
        {
            assert!(matches!(check(url), Err(WebError::Scheme { .. })), "{url}");
        }
        for url in ["http://user@example.com/", "http://:secret@example.com/", "https://a:b@127.0.0.1/"] {
            assert_eq!(check(url), Err(WebError::Credentials), "{url}");
        }
    }

    #[test]
    fn a_host_that_was_allowed_may_be_private_and_no_other() {
        let hosts = ["Wiki.Corp.", "10.0.0.5", "[fd00::5]"].map(str::to_owned);
        let rules = AddressRules::new(AddressPolicy::GlobalOnly, &hosts);
        let private = "10.0.0.1".parse().unwrap();
        assert!(rules.allows("wiki.corp", private));
        assert!(!rules.allows("x.wiki.corp", private) && !rules.allows("corp", private));
        assert!(!rules.allows("wiki.corp", "0.0.0.0".parse().unwrap()));
        for (url, expected) in
            [("http://10.0.0.5/", true), ("http://[fd00::5]/", true), ("http://10.0.0.6/", false)]
        {
            assert_eq!(rules.check(&Url::parse(url).unwrap()).is_ok(), expected, "{url}");
        }
    }
}
