//! One request and its answer over HTTP, the same for every wire format.
//!
//! Rule: one request, one answer or one typed error that carries what had arrived. Whatever the server sends is
//! bounded in size and in silence, a cancelled request stops at once, and no message shows a key.

pub(super) mod body;
pub(super) mod framing;
#[cfg(test)]
pub(super) mod testing;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Response, StatusCode};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

use self::body::{BodyContent, RequestBody};
use self::framing::Framing;
use crate::aws::Signer;
use crate::failure::{self, ReportedError};
use crate::limits::NewestLimits;
use kode_base::secret::Secret;
use kode_model::profile::{Credentials, Profile};
use kode_model::provider::Provider;
use kode_model::{DeltaSink, ModelError, ModelErrorKind, ModelResponse};
use kode_net::http::{self, HttpOptions};
use kode_net::sse::SseEvent;

/// The header that states the version of the Anthropic Messages format.
pub(super) const ANTHROPIC_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// The most bytes of one answer, unpacked.
const MAX_ANSWER_BYTES: usize = 64 * 1024 * 1024;

/// How many times the idle timeout a stream may continue with nothing but signs of life.
const PINGS_ONLY_FACTOR: u32 = 4;

/// How long to wait for the end of the body after the last event. Reading it lets the connection be used again.
const END_OF_BODY_WAIT: Duration = Duration::from_millis(5);

/// Shorter keys and header values are no secrets, and hiding them would only garble messages.
const MIN_SECRET_BYTES: usize = 8;

/// How far an event brought the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AnswerProgress {
    /// Only a sign of life came.
    SignOfLife,
    /// Something of the answer came.
    Content,
    /// The answer is complete.
    Done,
}

/// Why an answer cannot be read further.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerFault {
    /// It is not in the wire format.
    Unreadable(String),
    /// It ended without saying why.
    NoStopReason,
    /// The server itself reported an error.
    Reported(ReportedError),
}

/// An answer of one wire format as it grows.
pub(super) trait StreamedAnswer: Send {
    /// Takes the next event of a stream in.
    fn apply(
        &mut self,
        event: &SseEvent,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, AnswerFault>;

    /// Takes an answer in that was not streamed.
    fn apply_whole(&mut self, body: &[u8], on_delta: &mut DeltaSink<'_>) -> Result<(), AnswerFault>;

    /// Whether the answer is whole although its stream ended before an event said so.
    fn is_whole(&self) -> bool {
        false
    }

    /// The whole answer, after its end.
    fn into_response(self) -> ModelResponse;

    /// The received part of an interrupted answer: text and reasoning. None if it had not begun.
    fn into_partial(self) -> Option<ModelResponse>;
}

/// Where a provider wants the key of [`Credentials::ApiKey`]; tokens are bearers everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyHeader {
    /// In a header of that name.
    Named(&'static str),
    /// As `authorization: Bearer`.
    Bearer,
}

impl KeyHeader {
    fn of(provider: Provider) -> Self {
        match provider {
            Provider::Anthropic | Provider::Demo => Self::Named("x-api-key"),
            Provider::Gemini => Self::Named("x-goog-api-key"),
            Provider::Azure | Provider::AzureResponses => Self::Named("api-key"),
            Provider::OpenAi
            | Provider::OpenAiResponses
            | Provider::Ollama
            | Provider::Bedrock
            | Provider::Vertex
            | Provider::VertexGemini => Self::Bearer,
        }
    }
}

/// The way to one address of one server. Clones share the server's reported limits.
#[derive(Clone)]
pub(super) struct ModelExchange {
    endpoint: Url,
    /// Host and port, for messages.
    host: String,
    headers: HeaderMap,
    /// Text that no message may show, even if the server repeats it.
    secrets: Vec<Secret>,
    idle_timeout: Duration,
    http: HttpOptions,
    /// Signs requests to AWS.
    signer: Option<Arc<Signer>>,
    /// The usage windows of the newest answer.
    windows: Arc<NewestLimits>,
}

impl ModelExchange {
    /// The way to `path`, which begins with a slash, below the address of `profile`. `own_headers` are the wire
    /// format's. Sends nothing.
    ///
    /// # Errors
    /// [`ModelErrorKind::Configuration`] when the profile's address or headers cannot be used.
    pub(super) fn new(
        profile: &Profile,
        path: &str,
        own_headers: &[(&'static str, &'static str)],
    ) -> Result<Self, ModelError> {
        let configuration = |message: String| ModelError::new(ModelErrorKind::Configuration, message);
        let endpoint = profile.endpoint(path)?;
        let host = match (endpoint.host_str(), endpoint.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => return Err(configuration("The base URL names no host.".to_owned())),
        };
        let headers = headers(profile, own_headers).ok_or_else(unsendable)?;
        let secrets = profile.credentials.secret().into_iter().chain(profile.headers.values());
        let secrets = secrets.filter(|secret| secret.expose().len() >= MIN_SECRET_BYTES).cloned();
        Ok(Self {
            endpoint,
            host,
            headers,
            secrets: secrets.collect(),
            idle_timeout: profile.idle_timeout,
            http: profile.http.clone(),
            signer: Signer::of(&profile.credentials).map(Arc::new),
            windows: Arc::default(),
        })
    }

    /// The headers of requests that are no conversations, such as lists of models.
    ///
    /// # Errors
    /// [`ModelErrorKind::Configuration`] when the profile's key or headers cannot be sent.
    pub(super) fn headers_of(profile: &Profile) -> Result<HeaderMap, ModelError> {
        let own: &[_] = match profile.provider {
            Provider::Anthropic => &[ANTHROPIC_VERSION],
            _ => &[],
        };
        headers(profile, own).ok_or_else(unsendable)
    }

    /// The same way with a further part of the query.
    pub(super) fn with_query(mut self, (name, value): (&str, &str)) -> Self {
        self.endpoint.query_pairs_mut().append_pair(name, value);
        self
    }

    /// The usage windows that the newest answer told.
    pub(super) fn windows(&self) -> &NewestLimits {
        &self.windows
    }

    /// The address that is asked.
    pub(super) fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// Sends `body`, written as JSON, and reads what comes into `answer`.
    ///
    /// # Errors
    /// [`ModelError`], with what had arrived of the answer.
    pub(super) async fn run<A: StreamedAnswer>(
        &self,
        body: &impl BodyContent,
        mut answer: A,
        on_delta: &mut DeltaSink<'_>,
        cancel: &CancellationToken,
    ) -> Result<ModelResponse, ModelError> {
        let written = RequestBody::of(body).map_err(|error| {
            let message = format!("The request cannot be written as JSON: {error}.");
            ModelError::new(ModelErrorKind::BadRequest, message)
        });
        let ended = match written {
            // Cancelling drops the exchange wherever it is: connecting, waiting or reading.
            Ok(body) => tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    Err(ModelError::new(ModelErrorKind::Cancelled, "The request was cancelled."))
                }
                ended = self.send(body, &mut answer, on_delta) => ended,
            },
            Err(error) => Err(error),
        };
        conclude(answer, ended).map_err(|error| self.without_secrets(error))
    }

    /// Sends the request and reads the answer into `answer`, up to its end.
    async fn send(
        &self,
        mut body: RequestBody,
        answer: &mut impl StreamedAnswer,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let mut headers = self.headers.clone();
        if let Some(signer) = &self.signer {
            let whole = body.whole();
            signer.sign(&self.endpoint, &whole, &mut headers).await?;
            body = VecDeque::from([whole]).into();
        }
        let sending = http::client_for(&self.endpoint, &self.http)?
            .post(self.endpoint.clone())
            .headers(headers)
            .body(body.into_http())
            .send();
        let response = match timeout(self.idle_timeout, sending).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unreachable(error)),
            Err(_) => {
                let message = format!("{} did not answer within {:?}.", self.host, self.idle_timeout);
                return Err(ModelError::new(ModelErrorKind::Network, message));
            }
        };
        self.windows.note(response.headers());
        if !response.status().is_success() {
            return Err(failure::from_response(response, &self.host).await);
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match content_type.map(|value| value.split(';').next().unwrap_or_default().trim()) {
            Some("application/json") => self.read_whole(response, answer, on_delta).await,
            other => match Framing::of(other) {
                Some(framing) => self.read_events(framing, response, answer, on_delta).await,
                None => Err(self.no_answer(other.unwrap_or_default(), response.status())),
            },
        }
    }

    /// The error of an answer of a content type that is not read.
    fn no_answer(&self, content_type: &str, status: StatusCode) -> ModelError {
        let message =
            format!("{} answered with the content type `{content_type}`, not with a message.", self.host);
        ModelError { status: Some(status.as_u16()), ..ModelError::new(ModelErrorKind::Protocol, message) }
    }

    async fn read_events(
        &self,
        framing: Framing,
        mut response: Response,
        answer: &mut impl StreamedAnswer,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let mut events = EventReader::new(&self.host, framing);
        let mut received = 0;
        let mut last_progress = Instant::now();
        loop {
            let chunk = match self.next_chunk(&mut response, &mut received).await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return events.end(answer),
                // All had come, only the formal end had not.
                Err(error) if error.kind == ModelErrorKind::Interrupted && answer.is_whole() => return Ok(()),
                Err(error) => return Err(error),
            };
            match events.feed(&chunk, answer, on_delta)? {
                AnswerProgress::Content => last_progress = Instant::now(),
                AnswerProgress::SignOfLife => {}
                AnswerProgress::Done => {
                    let _ = timeout(END_OF_BODY_WAIT, response.chunk()).await;
                    return Ok(());
                }
            }
            if last_progress.elapsed() > self.idle_timeout.saturating_mul(PINGS_ONLY_FACTOR) {
                let reason = "the server sent signs of life but no answer for too long";
                return Err(interrupted(&self.host, reason));
            }
        }
    }

    /// Reads the answer of a server that does not stream.
    async fn read_whole(
        &self,
        mut response: Response,
        answer: &mut impl StreamedAnswer,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<(), ModelError> {
        let mut body = Vec::new();
        let mut received = 0;
        while let Some(chunk) = self.next_chunk(&mut response, &mut received).await? {
            body.extend_from_slice(&chunk);
        }
        answer.apply_whole(&body, on_delta).map_err(|fault| describe(fault, &self.host))
    }

    /// The next bytes of the body, or none at its end.
    async fn next_chunk(
        &self,
        response: &mut Response,
        received: &mut usize,
    ) -> Result<Option<bytes::Bytes>, ModelError> {
        let broke_off = |reason: &str| Err(interrupted(&self.host, reason));
        let chunk = match timeout(self.idle_timeout, response.chunk()).await {
            Ok(Ok(chunk)) => chunk,
            Ok(Err(error)) => return broke_off(&http::causes(&error.without_url())),
            Err(_) => return broke_off(&format!("nothing came for {:?}", self.idle_timeout)),
        };
        *received += chunk.as_ref().map_or(0, bytes::Bytes::len);
        if *received > MAX_ANSWER_BYTES {
            return Err(ModelError::new(
                ModelErrorKind::Protocol,
                format!("The answer of {} is larger than {MAX_ANSWER_BYTES} bytes.", self.host),
            ));
        }
        Ok(chunk)
    }

    fn without_secrets(&self, error: ModelError) -> ModelError {
        let hide = |message: String, secret: &Secret| message.replace(secret.expose(), "…");
        ModelError { message: self.secrets.iter().fold(error.message, hide), ..error }
    }

    fn unreachable(&self, error: reqwest::Error) -> ModelError {
        // Another try meets the same certificate.
        let is_final = error.is_builder() || http::is_untrusted(&error);
        let kind = if is_final { ModelErrorKind::Configuration } else { ModelErrorKind::Network };
        let reason = http::causes(&error.without_url());
        ModelError::new(kind, format!("{} could not be asked: {reason}.", self.host))
    }
}

/// The answer in the bytes of a stream of server-sent events that came in these pieces and then ended.
pub(super) fn replay<'a, A: StreamedAnswer>(
    answer: A,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    on_delta: &mut DeltaSink<'_>,
) -> Result<ModelResponse, ModelError> {
    replay_framed(Framing::events(), answer, pieces, on_delta)
}

/// As [`replay`], of a stream of any framing.
pub(super) fn replay_framed<'a, A: StreamedAnswer>(
    framing: Framing,
    mut answer: A,
    pieces: impl IntoIterator<Item = &'a [u8]>,
    on_delta: &mut DeltaSink<'_>,
) -> Result<ModelResponse, ModelError> {
    let mut events = EventReader::new("the recording", framing);
    let read = || {
        for piece in pieces {
            if events.feed(piece, &mut answer, on_delta)? == AnswerProgress::Done {
                return Ok(());
            }
        }
        events.end(&answer)
    };
    let ended = read();
    conclude(answer, ended)
}

/// The way from the bytes of a stream to the answer; needs no connection.
struct EventReader<'a> {
    host: &'a str,
    framing: Framing,
    events: Vec<SseEvent>,
}

impl<'a> EventReader<'a> {
    fn new(host: &'a str, framing: Framing) -> Self {
        Self { host, framing, events: Vec::new() }
    }

    /// Takes the next bytes in; gives the furthest that their events brought the answer.
    fn feed(
        &mut self,
        chunk: &[u8],
        answer: &mut impl StreamedAnswer,
        on_delta: &mut DeltaSink<'_>,
    ) -> Result<AnswerProgress, ModelError> {
        let fed = self.framing.feed(chunk, &mut self.events);
        let mut furthest = AnswerProgress::SignOfLife;
        for event in self.events.drain(..) {
            let progress = answer.apply(&event, on_delta).map_err(|fault| describe(fault, self.host))?;
            furthest = furthest.max(progress);
            if furthest == AnswerProgress::Done {
                return Ok(furthest);
            }
        }
        fed.map_err(|error| ModelError::new(ModelErrorKind::Protocol, format!("{}: {error}.", self.host)))?;
        Ok(furthest)
    }

    /// The meaning of the end of the bytes.
    fn end(&self, answer: &impl StreamedAnswer) -> Result<(), ModelError> {
        if answer.is_whole() {
            return Ok(());
        }
        Err(interrupted(self.host, "the stream ended before the answer did"))
    }
}

fn conclude<A: StreamedAnswer>(
    answer: A,
    ended: Result<(), ModelError>,
) -> Result<ModelResponse, ModelError> {
    match ended {
        Ok(()) => Ok(answer.into_response()),
        Err(error) => Err(ModelError { partial: answer.into_partial().map(Box::new), ..error }),
    }
}

fn describe(fault: AnswerFault, host: &str) -> ModelError {
    match fault {
        AnswerFault::Unreadable(reason) => ModelError::new(
            ModelErrorKind::Protocol,
            format!("{host} sent something that is no message: {reason}."),
        ),
        AnswerFault::NoStopReason => interrupted(host, "it ended without a stop reason"),
        AnswerFault::Reported(reported) => reported.into_error(host),
    }
}

fn interrupted(host: &str, reason: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Interrupted, format!("The answer of {host} broke off: {reason}."))
}

fn unsendable() -> ModelError {
    ModelError::new(ModelErrorKind::Configuration, "The profile's key or headers cannot be sent.")
}

fn headers(profile: &Profile, own_headers: &[(&'static str, &'static str)]) -> Option<HeaderMap> {
    let key = KeyHeader::of(profile.provider);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    for (name, value) in own_headers {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    let bearer = |secret: &Secret| sensitive(&format!("Bearer {}", secret.expose()));
    match (&profile.credentials, key) {
        // Requests to AWS are signed one by one.
        (Credentials::None | Credentials::Aws { .. }, KeyHeader::Named(_) | KeyHeader::Bearer) => {}
        (Credentials::ApiKey(secret), KeyHeader::Named(name)) => {
            headers.insert(name, sensitive(secret.expose())?);
        }
        (Credentials::ApiKey(secret), KeyHeader::Bearer)
        | (Credentials::Bearer(secret), KeyHeader::Named(_) | KeyHeader::Bearer) => {
            headers.insert(AUTHORIZATION, bearer(secret)?);
        }
    }
    for (name, value) in &profile.headers {
        headers.insert(HeaderName::try_from(name.as_str()).ok()?, sensitive(value.expose())?);
    }
    Some(headers)
}

/// A header value that the HTTP library neither logs nor keeps in its compression tables.
fn sensitive(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}
