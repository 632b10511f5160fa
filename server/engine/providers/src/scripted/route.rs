//! The addresses at which a scripted model answers: those of the APIs themselves, and those of clouds.
//!
//! Rule: a route says which format is spoken, where the model's name and the wish to stream stand, which key is wanted, and
//! how a stream is framed. Everything behind it is the same for all routes of a format.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use url::Url;

use super::refusal::Refusal;
use super::script::Quirks;
use kode_base::secret::Secret;
use kode_model::Wire;
use kode_net::aws::event_stream::{EventMessage, write};
use kode_net::aws::sign::{AwsCredentials, CredentialScope};

/// The identity whose signatures a scripted Bedrock takes: that of AWS' own examples.
pub(super) const AWS_KEY_ID: &str = "AKIDEXAMPLE";
const AWS_SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

/// An address at which answers are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptedRoute {
    pub(super) wire: Wire,
    place: RoutePlace,
    /// The model, where the path names it.
    pub(super) model: Option<String>,
    /// Whether the answer is streamed, where the path says so.
    streams: Option<bool>,
}

/// The session of the address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RoutePlace {
    Api,
    Bedrock,
    Vertex,
    Azure,
}

/// How the events of a stream are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteFraming {
    Events,
    Lines,
    Messages,
}

impl ScriptedRoute {
    /// The route of a path; `None` for other paths.
    pub(super) fn of(segments: &[&str]) -> Option<Self> {
        let plain = |wire| Some(Self { wire, place: RoutePlace::Api, model: None, streams: None });
        match segments {
            ["v1", "messages"] => plain(Wire::AnthropicMessages),
            ["v1", "chat", "completions"] | ["chat", "completions"] => plain(Wire::ChatCompletions),
            ["v1", "responses"] | ["responses"] => plain(Wire::Responses),
            ["api", "chat"] => plain(Wire::Ollama),
            ["v1beta" | "v1", "models", call] => Self::verb(Wire::Gemini, RoutePlace::Api, call),
            ["v1", "projects", _, "locations", _, "publishers", publisher, "models", call] => {
                let wire = if *publisher == "google" { Wire::Gemini } else { Wire::AnthropicMessages };
                Self::verb(wire, RoutePlace::Vertex, call)
            }
            ["model", model, verb @ ("invoke" | "invoke-with-response-stream")] => Some(Self {
                wire: Wire::AnthropicMessages,
                place: RoutePlace::Bedrock,
                model: Some(percent_decode_str(model).decode_utf8_lossy().into_owned()),
                streams: Some(*verb != "invoke"),
            }),
            ["openai", "deployments", _, "chat", "completions"] | ["openai", "v1", "chat", "completions"] => {
                plain(Wire::ChatCompletions).map(|route| Self { place: RoutePlace::Azure, ..route })
            }
            ["openai", "v1", "responses"] => {
                plain(Wire::Responses).map(|route| Self { place: RoutePlace::Azure, ..route })
            }
            _ => None,
        }
    }

    /// The route of a last segment `model:verb`.
    fn verb(wire: Wire, place: RoutePlace, call: &str) -> Option<Self> {
        let (model, verb) = call.rsplit_once(':')?;
        let streams = match (wire, verb) {
            (Wire::Gemini, "streamGenerateContent") | (Wire::AnthropicMessages, "streamRawPredict") => true,
            (Wire::Gemini, "generateContent") | (Wire::AnthropicMessages, "rawPredict") => false,
            _ => return None,
        };
        Some(Self { wire, place, model: Some(model.to_owned()), streams: Some(streams) })
    }

    /// How a stream of it is sent.
    pub(super) fn framing(&self) -> RouteFraming {
        match (self.place, self.wire) {
            (RoutePlace::Bedrock, _) => RouteFraming::Messages,
            (_, Wire::Ollama) => RouteFraming::Lines,
            _ => RouteFraming::Events,
        }
    }

    /// Whether an answer to `body` is streamed.
    pub(super) fn is_streamed(&self, body: &Value) -> bool {
        match (self.streams, self.wire) {
            (Some(streams), _) => streams,
            // Ollama streams unless the request disables it.
            (None, Wire::Ollama) => body["stream"] != false,
            (None, _) => body["stream"] == true,
        }
    }

    /// Checks that a request says who it is from, in the way of its place.
    ///
    /// # Errors
    /// 401 without a key, 400 without what else the place wants, 403 for a wrong signature.
    pub(super) fn admits(
        &self,
        headers: &HeaderMap,
        uri: &hyper::Uri,
        body: &[u8],
        quirks: &Quirks,
    ) -> Result<(), Refusal> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let authorization = header(AUTHORIZATION.as_str());
        let has_token = authorization.strip_prefix("Bearer ").is_some_and(|token| !token.is_empty());
        match (self.place, self.wire) {
            _ if quirks.keyless => Ok(()),
            (_, Wire::Ollama) => Ok(()),
            (RoutePlace::Bedrock, _) if has_token => Ok(()),
            (RoutePlace::Bedrock, _) => signed(headers, uri, body),
            (RoutePlace::Vertex, _) if has_token => Ok(()),
            (RoutePlace::Vertex, _) => {
                Err(Refusal::new(401, "Request is missing required authentication credential."))
            }
            (RoutePlace::Azure, _) if header("api-key").is_empty() && !has_token => {
                Err(Refusal::new(401, "Access denied due to invalid subscription key."))
            }
            (RoutePlace::Azure, _) if uri.path().contains("/deployments/") && uri.query().is_none() => {
                Err(Refusal::new(404, "Resource not found: the api-version query parameter is required."))
            }
            (RoutePlace::Azure, _) => Ok(()),
            (RoutePlace::Api, Wire::AnthropicMessages) if !has_token && header("x-api-key").is_empty() => {
                Err(Refusal::new(401, "x-api-key header is required"))
            }
            (RoutePlace::Api, Wire::AnthropicMessages) if header("anthropic-version").is_empty() => {
                Err(Refusal::invalid("anthropic-version: header is required"))
            }
            (RoutePlace::Api, Wire::Gemini) if header("x-goog-api-key").is_empty() => {
                Err(Refusal::new(403, "Method doesn't allow unregistered callers."))
            }
            (RoutePlace::Api, Wire::ChatCompletions | Wire::Responses) if !has_token => {
                Err(Refusal::new(401, "You didn't provide an API key."))
            }
            (RoutePlace::Api, _) => Ok(()),
        }
    }

    /// The body as the format itself has it, with what clouds want elsewhere put into its place.
    ///
    /// # Errors
    /// When the body lacks what the place wants in it, or has what it wants elsewhere.
    pub(super) fn plain(&self, mut body: Value) -> Result<Value, Refusal> {
        let version = match (self.place, self.wire) {
            (RoutePlace::Bedrock, _) => "bedrock-2023-05-31",
            (RoutePlace::Vertex, Wire::AnthropicMessages) => "vertex-2023-10-16",
            _ => return Ok(body),
        };
        let Some(fields) = body.as_object_mut() else { return Ok(body) };
        if fields.remove("anthropic_version") != Some(json!(version)) {
            return Err(Refusal::invalid(format!("anthropic_version: expected `{version}`")));
        }
        let known = if self.place == RoutePlace::Bedrock { &["model", "stream"][..] } else { &["model"] };
        if let Some(name) = known.iter().find(|name| fields.contains_key(**name)) {
            return Err(Refusal::invalid(format!("{name}: Extra inputs are not permitted")));
        }
        fields.insert("model".to_owned(), json!(self.model));
        fields.insert("stream".to_owned(), json!(self.streams));
        Ok(body)
    }
}

impl RouteFraming {
    /// The content type of a stream.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Events => "text/event-stream; charset=utf-8",
            Self::Lines => "application/x-ndjson",
            Self::Messages => "application/vnd.amazon.eventstream",
        }
    }

    /// An event as it is sent.
    pub(super) fn frame(self, event: Bytes) -> Bytes {
        match self {
            Self::Events | Self::Lines => event,
            Self::Messages => {
                let text = String::from_utf8_lossy(&event);
                let data = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or_default();
                let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
                let message = EventMessage {
                    headers: vec![
                        header(":event-type", "chunk"),
                        header(":content-type", "application/json"),
                        header(":message-type", "event"),
                    ],
                    payload: json!({"bytes": STANDARD.encode(data), "p": "abc"}).to_string().into_bytes(),
                };
                Bytes::from(write(&message))
            }
        }
    }
}

/// Checks the signature of a request by signing it again.
fn signed(headers: &HeaderMap, uri: &hyper::Uri, body: &[u8]) -> Result<(), Refusal> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let denied = |why: &str| Refusal::new(403, format!("The request signature does not match: {why}."));
    let sent = header(AUTHORIZATION.as_str());
    let credential = sent.split_once("Credential=").and_then(|(_, rest)| rest.split_once(','));
    let parts: Vec<&str> =
        credential.map(|(credential, _)| credential.split('/').collect()).unwrap_or_default();
    let [AWS_KEY_ID, _, region, "bedrock", "aws4_request"] = parts[..] else {
        return Err(denied("the credential is not that of this server"));
    };
    let token = Some(header("x-amz-security-token")).filter(|token| !token.is_empty());
    let credentials = AwsCredentials {
        access_key_id: AWS_KEY_ID.to_owned(),
        secret_access_key: Secret::new(AWS_SECRET),
        session_token: token.map(Secret::new),
    };
    let url =
        Url::parse(&format!("http://{}{uri}", header("host"))).map_err(|error| denied(&error.to_string()))?;
    let scope = CredentialScope { region, service: "bedrock", time: header("x-amz-date") };
    let names =
        sent.split_once("SignedHeaders=").and_then(|(_, rest)| rest.split_once(',')).map(|(names, _)| names);
    // These are signed in any case.
    let is_further = |name: &&str| !["host", "x-amz-date", "x-amz-security-token"].contains(name);
    let further = names.unwrap_or_default().split(';').filter(is_further);
    let further: Vec<(&str, &str)> = further.map(|name| (name, header(name))).collect();
    let own = credentials.sign(scope, "POST", &url, &further, body);
    match own.last().is_some_and(|own| own.value.expose() == sent) {
        true => Ok(()),
        false => Err(denied("it was made with another key, or of another request")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_api_and_cloud_has_its_routes() {
        let of = |path: &str| {
            let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
            ScriptedRoute::of(&segments)
                .map(|route| (route.wire, route.place, route.framing(), route.streams))
        };
        let (api, bedrock, vertex, azure) =
            (RoutePlace::Api, RoutePlace::Bedrock, RoutePlace::Vertex, RoutePlace::Azure);
        let (messages, chat, events) = (Wire::AnthropicMessages, Wire::ChatCompletions, RouteFraming::Events);
        for (path, expected) in [
            ("/v1/messages", Some((messages, api, events, None))),
            ("/api/chat", Some((Wire::Ollama, api, RouteFraming::Lines, None))),
            ("/v1beta/models/gemini-3:generateContent", Some((Wire::Gemini, api, events, Some(false)))),
            (
                "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent",
                Some((Wire::Gemini, vertex, events, Some(true))),
            ),
            (
                "/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict",
                Some((messages, vertex, events, Some(true))),
            ),
            (
                "/model/a%3A0/invoke-with-response-stream",
                Some((messages, bedrock, RouteFraming::Messages, Some(true))),
            ),
            ("/openai/deployments/d/chat/completions", Some((chat, azure, events, None))),
            ("/openai/v1/responses", Some((Wire::Responses, azure, events, None))),
            ("/v1beta/models/gemini-3:countTokens", None),
            ("/v1/models", None),
        ] {
            assert_eq!(of(path), expected, "{path}");
        }
    }
}
