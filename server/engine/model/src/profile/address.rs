//! Addresses of servers, as users write them and as requests need them.
//!
//! Rule: one server has one base whatever was pasted; what belongs to the wire format is taken off, what belongs to the
//! server stays. An address with a password is refused and never repeated.

use url::Url;

use super::{DEFAULT_BASE_URL, configuration};
use crate::{ModelError, Wire};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerAddress {
    /// The text before the paths of the wire format, without a trailing slash.
    pub base: String,
    /// The text after the `?` of every request, as Azure wants its version there.
    pub query: Option<String>,
}

impl ServerAddress {
    /// Reads an address. For the Messages format the base is what precedes `/v1/messages`, for OpenAI's formats what
    /// precedes `/chat/completions` and `/responses`, for Gemini's what precedes `/models`, and for Ollama's what
    /// precedes `/api`. A server's bare name gets `/v1` for OpenAI's formats and `/v1beta` for Gemini's.
    ///
    /// # Errors
    /// [`crate::ModelErrorKind::Configuration`] for anything but a plain `http` or `https` address.
    pub fn read(text: &str, wire: Wire) -> Result<Self, ModelError> {
        // The address is not repeated where it may hold a password.
        let mut url = Url::parse(text.trim()).map_err(|error| {
            configuration(format!(
                "The base URL is no address ({error}); write it like `{DEFAULT_BASE_URL}`."
            ))
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(configuration(
                "The base URL holds a user name or password; give the key as `apiKey`, or use `headers`.",
            ));
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(configuration(format!(
                "The base URL has the scheme `{}`; only http and https can be used.",
                url.scheme()
            )));
        }
        if url.fragment().is_some() {
            return Err(configuration("The base URL holds a fragment; write only scheme, host and path."));
        }
        let query = url.query().filter(|query| !query.is_empty()).map(str::to_owned);
        if url.query().is_some() && !matches!(wire, Wire::ChatCompletions | Wire::Responses) {
            return Err(configuration(
                "The base URL holds a query or fragment; write only scheme, host and path.",
            ));
        }
        url.set_query(None);
        let path = match wire {
            Wire::AnthropicMessages => without(url.path(), &["/messages", "/v1"]),
            Wire::ChatCompletions | Wire::Responses => {
                let path = without(url.path(), &["/chat/completions", "/responses"]);
                if path.is_empty() { "/v1".to_owned() } else { path }
            }
            Wire::Gemini => {
                let path = without(url.path(), &["/models"]);
                if path.is_empty() { "/v1beta".to_owned() } else { path }
            }
            Wire::Ollama => without(url.path(), &["/chat", "/api", "/v1"]),
        };
        url.set_path(&path);
        Ok(Self { base: url.as_str().trim_end_matches('/').to_owned(), query })
    }
}

/// The wire format that an address ends in, if it names one.
#[must_use]
pub(super) fn wire_of(address: &str) -> Option<Wire> {
    let url = Url::parse(address.trim()).ok()?;
    let path = url.path().trim_end_matches('/');
    [
        ("/messages", Wire::AnthropicMessages),
        ("/chat/completions", Wire::ChatCompletions),
        ("/responses", Wire::Responses),
    ]
    .into_iter()
    .find_map(|(end, wire)| path.ends_with(end).then_some(wire))
}

/// Whether an address ends in a version or in `openai`, as the bases of servers do that are compatible with OpenAI's.
#[must_use]
pub(super) fn is_versioned(address: &str) -> bool {
    let Ok(url) = Url::parse(address.trim()) else { return false };
    let end = url.path().trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let is_version =
        end.strip_prefix('v').is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()));
    is_version || end == "openai"
}

/// A path without slashes at its end and without these ends, each taken off once.
fn without(path: &str, ends: &[&str]) -> String {
    ends.iter()
        .fold(path.trim_end_matches('/'), |path, end| {
            path.strip_suffix(end).unwrap_or(path).trim_end_matches('/')
        })
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelErrorKind;

    #[test]
    fn addresses_are_read_as_users_write_them() {
        let (messages, chat, responses) = (Wire::AnthropicMessages, Wire::ChatCompletions, Wire::Responses);
        for (text, wire, expected) in [
            ("https://api.anthropic.com", messages, "https://api.anthropic.com"),
            ("https://api.anthropic.com/", messages, "https://api.anthropic.com"),
            ("https://api.anthropic.com/v1", messages, "https://api.anthropic.com"),
            (" https://api.anthropic.com/v1// ", messages, "https://api.anthropic.com"),
            ("https://api.anthropic.com/v1/messages/", messages, "https://api.anthropic.com"),
            ("http://[::1]:8080/messages", messages, "http://[::1]:8080"),
            ("http://proxy/team/a/v1/messages", messages, "http://proxy/team/a"),
            ("HTTP://LOCALHOST:80/dev1", messages, "http://localhost/dev1"),
            ("https://api.deepseek.com/anthropic", messages, "https://api.deepseek.com/anthropic"),
            ("https://api.openai.com", chat, "https://api.openai.com/v1"),
            ("https://api.openai.com/", responses, "https://api.openai.com/v1"),
            ("https://api.openai.com/v1", chat, "https://api.openai.com/v1"),
            ("https://api.openai.com/v1/", responses, "https://api.openai.com/v1"),
            ("https://api.openai.com/v1/chat/completions", chat, "https://api.openai.com/v1"),
            ("https://api.openai.com/v1/chat/completions/", responses, "https://api.openai.com/v1"),
            ("https://api.openai.com/v1/responses", responses, "https://api.openai.com/v1"),
            ("https://api.openai.com/v1/responses", chat, "https://api.openai.com/v1"),
            ("http://localhost:11434", chat, "http://localhost:11434/v1"),
            ("http://127.0.0.1:8000/v1/chat/completions", chat, "http://127.0.0.1:8000/v1"),
            ("http://[::1]:1234/v1", chat, "http://[::1]:1234/v1"),
            ("https://ark.example.com/api/v3", chat, "https://ark.example.com/api/v3"),
            ("https://ark.example.com/api/v3/chat/completions", chat, "https://ark.example.com/api/v3"),
            ("https://api.groq.com/openai/v1", chat, "https://api.groq.com/openai/v1"),
            ("https://d.example.com/compatible-mode/v1/", chat, "https://d.example.com/compatible-mode/v1"),
            ("https://g.example.com/v1beta/openai/", chat, "https://g.example.com/v1beta/openai"),
            ("https://api.z.ai/api/paas/v4/chat/completions", chat, "https://api.z.ai/api/paas/v4"),
            ("https://gateway.example/chat/completions", chat, "https://gateway.example/v1"),
            ("https://gateway.example/a/messages", chat, "https://gateway.example/a/messages"),
        ] {
            let read = ServerAddress::read(text, wire).unwrap();
            assert_eq!((read.base.as_str(), read.query), (expected, None), "{text} {wire:?}");
        }
    }

    #[test]
    fn addresses_of_gemini_and_ollama_are_read() {
        for (text, wire, expected) in [
            ("https://g.example", Wire::Gemini, "https://g.example/v1beta"),
            ("https://g.example/v1beta/", Wire::Gemini, "https://g.example/v1beta"),
            ("https://g.example/v1/models", Wire::Gemini, "https://g.example/v1"),
            ("http://localhost:11434", Wire::Ollama, "http://localhost:11434"),
            ("http://localhost:11434/v1", Wire::Ollama, "http://localhost:11434"),
            ("http://localhost:11434/api/chat", Wire::Ollama, "http://localhost:11434"),
            ("https://gateway.example/ollama/api", Wire::Ollama, "https://gateway.example/ollama"),
        ] {
            assert_eq!(ServerAddress::read(text, wire).unwrap().base, expected, "{text}");
        }
    }

    #[test]
    fn a_version_in_the_query_is_kept_for_the_formats_that_have_one() {
        let azure = "https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21";
        let read = ServerAddress::read(azure, Wire::ChatCompletions).unwrap();
        assert_eq!(read.base, "https://r.openai.azure.com/openai/deployments/d");
        assert_eq!(read.query.as_deref(), Some("api-version=2024-10-21"));
        let bare =
            ServerAddress::read("https://r.openai.azure.com/?api-version=v1", Wire::Responses).unwrap();
        assert_eq!(
            (bare.base.as_str(), bare.query.as_deref()),
            ("https://r.openai.azure.com/v1", Some("api-version=v1"))
        );
        assert!(ServerAddress::read(azure, Wire::AnthropicMessages).is_err());
    }

    #[test]
    fn what_is_no_address_is_refused_without_repeating_it() {
        for (text, expected) in [
            ("", "no address"),
            ("api.anthropic.com", "no address"),
            ("localhost:8080", "scheme"),
            ("ftp://example.com", "scheme"),
            ("https://user:password@example.com", "password"),
            ("https://example.com?key=1", "query"),
            ("https://example.com#top", "fragment"),
        ] {
            let error = ServerAddress::read(text, Wire::AnthropicMessages).unwrap_err();
            assert_eq!(error.kind, ModelErrorKind::Configuration);
            assert!(error.message.contains(expected), "{text}: {}", error.message);
            assert!(!error.message.contains("user:"), "a password must not be repeated: {}", error.message);
        }
    }

    #[test]
    fn a_pasted_address_reports_its_format() {
        for (text, expected) in [
            ("https://a/v1/messages", Some(Wire::AnthropicMessages)),
            ("https://a/v1/chat/completions/", Some(Wire::ChatCompletions)),
            ("https://a/v1/responses?x=1", Some(Wire::Responses)),
            ("https://a/v1", None),
            ("nothing", None),
        ] {
            assert_eq!(wire_of(text), expected, "{text}");
        }
        for (text, expected) in [
            ("https://a/v1", true),
            ("https://a/x/v1beta/", true),
            ("https://a/v1beta/openai", true),
            ("https://a", false),
            ("https://a/anthropic", false),
            ("https://v1.example/vault", false),
        ] {
            assert_eq!(is_versioned(text), expected, "{text}");
        }
    }
}
