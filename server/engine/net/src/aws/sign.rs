//! AWS Signature Version 4, for requests whose body is known.
//!
//! Rule: the signature is a pure function of request, credentials and time. The secret key leaves this module only as a
//! signature. Source: "Create a signed AWS API request", AWS General Reference.

use std::fmt::Write;

use ring::hmac;
use sha2::{Digest, Sha256};
use url::Url;

use kode_base::secret::Secret;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// The characters that canonical paths and queries keep beside letters and digits.
const UNRESERVED: &[u8] = b"-_.~";

/// The identity that signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsCredentials {
    /// The public half.
    pub access_key_id: String,
    /// The private half.
    pub secret_access_key: Secret,
    /// The token of a temporary identity.
    pub session_token: Option<Secret>,
}

/// The place and time of a signature.
#[derive(Clone, Copy, Debug)]
pub struct CredentialScope<'a> {
    /// For example `us-east-1`.
    pub region: &'a str,
    /// The signing name of the service, for example `bedrock`.
    pub service: &'a str,
    /// The time in UTC as `YYYYMMDDTHHMMSSZ`.
    pub time: &'a str,
}

/// A header that a signed request carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedHeader {
    /// Its name, in lower case.
    pub name: &'static str,
    /// Its value.
    pub value: Secret,
}

impl AwsCredentials {
    /// The headers to add to a request with `method`, `url`, `headers` (names in lower case) and `body`. The `host`
    /// header is taken from `url` and must be sent unchanged there.
    #[must_use]
    pub fn sign(
        &self,
        scope: CredentialScope<'_>,
        method: &str,
        url: &Url,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Vec<SignedHeader> {
        let host = host(url);
        let mut signed: Vec<(&str, &str)> = headers.to_vec();
        signed.push(("host", &host));
        signed.push(("x-amz-date", scope.time));
        if let Some(token) = &self.session_token {
            signed.push(("x-amz-security-token", token.expose()));
        }
        signed.sort_unstable();
        let names = signed.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(";");
        let canonical = canonical(method, url, &signed, &names, body);
        let date = scope.time.get(..8).unwrap_or_default();
        let place = format!("{date}/{}/{}/aws4_request", scope.region, scope.service);
        let to_sign = format!("{ALGORITHM}\n{}\n{place}\n{}", scope.time, hex(&Sha256::digest(canonical)));
        let signature = hex(mac(&self.key(scope, date), to_sign.as_bytes()).as_ref());
        let authorization = format!(
            "{ALGORITHM} Credential={}/{place}, SignedHeaders={names}, Signature={signature}",
            self.access_key_id
        );
        let added = [
            Some(SignedHeader { name: "x-amz-date", value: Secret::new(scope.time) }),
            self.session_token.clone().map(|value| SignedHeader { name: "x-amz-security-token", value }),
            Some(SignedHeader { name: "authorization", value: Secret::new(authorization) }),
        ];
        added.into_iter().flatten().collect()
    }

    /// The key of one day, region and service.
    fn key(&self, scope: CredentialScope<'_>, date: &str) -> hmac::Tag {
        let secret = format!("AWS4{}", self.secret_access_key.expose());
        let day = mac_with(secret.as_bytes(), date.as_bytes());
        let region = mac(&day, scope.region.as_bytes());
        let service = mac(&region, scope.service.as_bytes());
        mac(&service, b"aws4_request")
    }
}

/// The host as the `host` header has it.
fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn canonical(method: &str, url: &Url, headers: &[(&str, &str)], names: &str, body: &[u8]) -> String {
    let mut text = format!("{method}\n{}\n{}\n", escaped(url.path(), b"/"), query(url));
    for (name, value) in headers {
        let words: Vec<&str> = value.split_ascii_whitespace().collect();
        text.push_str(&format!("{name}:{}\n", words.join(" ")));
    }
    text.push_str(&format!("\n{names}\n{}", hex(&Sha256::digest(body))));
    text
}

/// The query, sorted by name and value.
fn query(url: &Url) -> String {
    let pairs = url.query_pairs().map(|(name, value)| (escaped(&name, b""), escaped(&value, b"")));
    let mut pairs: Vec<(String, String)> = pairs.collect();
    pairs.sort_unstable();
    pairs.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
}

/// A text with everything percent-encoded but letters, digits, `-_.~` and `kept`. The path of a request is encoded
/// already, and is encoded once more here, as all services but S3 want it.
fn escaped(text: &str, kept: &[u8]) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || UNRESERVED.contains(&byte) || kept.contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

fn mac(key: &hmac::Tag, data: &[u8]) -> hmac::Tag {
    mac_with(key.as_ref(), data)
}

fn mac_with(key: &[u8], data: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), data)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: CredentialScope<'_> =
        CredentialScope { region: "us-east-1", service: "service", time: "20150830T123600Z" };

    fn credentials() -> AwsCredentials {
        AwsCredentials {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: Secret::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
            session_token: None,
        }
    }

    fn signature(method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
        let signed = credentials().sign(SCOPE, method, &Url::parse(url).unwrap(), headers, body);
        signed.last().unwrap().value.expose().rsplit_once("Signature=").unwrap().1.to_owned()
    }

    /// Cases of the public test suite of Signature Version 4.
    #[test]
    fn signatures_are_those_of_the_public_test_suite() {
        for (method, url, headers, body, expected) in [
            (
                "GET",
                "https://example.amazonaws.com/",
                &[][..],
                "",
                "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
            ),
            (
                "GET",
                "https://example.amazonaws.com/?Param2=value2&Param1=value1",
                &[],
                "",
                "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
            ),
            (
                "POST",
                "https://example.amazonaws.com/",
                &[("content-type", "application/x-www-form-urlencoded")],
                "Param1=value1",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
        ] {
            assert_eq!(signature(method, url, headers, body.as_bytes()), expected, "{method} {url}");
        }
    }

    #[test]
    fn a_temporary_identity_signs_its_token_and_no_output_shows_a_secret() {
        let credentials = AwsCredentials { session_token: Some(Secret::new("token-1")), ..credentials() };
        let url = Url::parse("https://bedrock-runtime.us-east-1.amazonaws.com/model/a%3A0/invoke").unwrap();
        let signed = credentials.sign(SCOPE, "POST", &url, &[], b"{}");
        let names: Vec<&str> = signed.iter().map(|header| header.name).collect();
        assert_eq!(names, ["x-amz-date", "x-amz-security-token", "authorization"]);
        let authorization = signed[2].value.expose();
        assert!(
            authorization.contains("SignedHeaders=host;x-amz-date;x-amz-security-token, "),
            "{authorization}"
        );
        let shown = format!("{credentials:?} {signed:?}");
        assert!(!shown.contains("token-1") && !shown.contains("wJalrXUtn"), "{shown}");
    }
}
