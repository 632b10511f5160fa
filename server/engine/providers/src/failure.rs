//! The meaning of the server's refusals, in any wire format.
//!
//! Rule: total over every status and every body; what the server wrote is quoted, bounded, with the host and the
//! request's id, and no more of an error body is read than [`MAX_ERROR_BYTES`].

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use tokio::time::timeout;

use kode_model::{ModelError, ModelErrorKind};

/// The most bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How long the body of an error is waited for; its status alone will do.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(10);

/// The most characters of the server's own words that are shown.
const MAX_QUOTED_CHARS: usize = 2_000;

/// Headers that say when a limit is reset, as a duration.
const RESET_HEADERS: [&str; 2] = ["x-ratelimit-reset-requests", "x-ratelimit-reset-tokens"];

/// The codes of an account without credit; waiting does not help.
const PAYMENT_NAMES: [&str; 4] =
    ["insufficient_quota", "billing_error", "billing_hard_limit_reached", "insufficient_balance"];

/// The texts about an account without credit, in lower case.
const PAYMENT_WORDS: [&str; 2] = ["credit balance is too low", "insufficient balance"];

/// The codes of a request that is too long.
const TOO_LONG_NAMES: [&str; 4] =
    ["context_length_exceeded", "string_above_max_length", "request_too_large", "exceed_context_size_error"];

/// The texts about a request that is too long, in lower case.
const TOO_LONG_WORDS: [&str; 17] = [
    "prompt is too long",
    "input is too long",
    "prompt too long",
    "maximum context length",
    "maximum prompt length",
    "context length",
    "context limit",
    "context size",
    "context window",
    "context overflow",
    "too many tokens",
    "too many input tokens",
    "reduce the length of the messages",
    "reduce the length of your prompt",
    "maximum number of tokens allowed",
    "tokens + `max_new_tokens` must be",
    "range of input length should be",
];

/// The text before the number of tokens that a server can read, in lower case.
const WINDOW_WORDS: [&str; 8] = [
    "n_ctx",
    "available context size",
    "maximum context length is",
    "maximum context length of",
    "context length of only",
    "maximum prompt length is",
    "maximum number of tokens allowed",
    "context window of",
];

/// The text of Anthropic's API behind that number.
const WINDOW_BEFORE: &str = " maximum";

/// No model reads fewer tokens; a smaller number is about something else.
const MIN_WINDOW: u64 = 256;

/// The error that a response without success means. `host` is for the message.
pub(super) async fn from_response(mut response: Response, host: &str) -> ModelError {
    let mut body = Vec::new();
    // A body that breaks off or does not come in time is as good as none.
    let _ = timeout(ERROR_BODY_WAIT, async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = MAX_ERROR_BYTES - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if body.len() == MAX_ERROR_BYTES {
                break;
            }
        }
    })
    .await;
    describe(response.status(), response.headers(), &body, host)
}

/// An error as a server reports it: in the body of a refusal, or in the middle of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedError {
    /// The server's name for the class of the error.
    pub(super) kind: String,
    /// Its name or number for the very error.
    pub(super) code: String,
    /// Its words.
    pub(super) message: String,
    /// Its id of the request.
    pub(super) request_id: Option<String>,
}

impl ReportedError {
    /// The error in a body, in any of the shapes that servers write: `{"error": {"type", "code", "message"}}`,
    /// `{"error": "words"}`, `{"detail": …}`, `{"message": "words"}`, or a list that begins with one of them.
    pub(super) fn read(body: &[u8]) -> Option<Self> {
        Self::of(&serde_json::from_slice(body).ok()?)
    }

    /// The error in JSON that has been parsed already.
    pub(super) fn of(body: &Value) -> Option<Self> {
        if let Value::Array(items) = body {
            return items.first().and_then(Self::of);
        }
        let request_id = body.get("request_id").and_then(Value::as_str).map(str::to_owned);
        let (detail, message) = match (body.get("error"), body.get("detail"), body.get("message")) {
            (Some(detail @ Value::Object(_)), ..) => (detail, words_of(detail)),
            (Some(Value::String(words)), ..) | (_, None, Some(Value::String(words))) => (body, words.clone()),
            (_, Some(Value::String(words)), _) => (body, words.clone()),
            (_, Some(detail @ (Value::Array(_) | Value::Object(_))), _) => (body, detail.to_string()),
            _ => return None,
        };
        let kind = scalar(detail.get("type")).filter(|kind| kind != "error").unwrap_or_default();
        Some(Self { kind, code: scalar(detail.get("code")).unwrap_or_default(), message, request_id })
    }

    /// The error of a request that had been accepted: the server reported this instead of the rest of the answer.
    pub(super) fn into_error(self, host: &str) -> ModelError {
        let name = [&self.kind, &self.code].into_iter().find(|name| !name.is_empty());
        let name = name.map(|name| format!(" ({})", quote(name))).unwrap_or_default();
        let words = quote(&self.message);
        let message = format!("{host} broke the answer off{name}: {words}");
        let kind = self.class(None);
        ModelError { context_window: self.window(kind), ..ModelError::new(kind, message) }
    }

    /// The number of tokens that the model can read, where the error is that there were more.
    fn window(&self, kind: ModelErrorKind) -> Option<u64> {
        let words = Some(self.message.to_lowercase()).filter(|_| kind == ModelErrorKind::ContextTooLong)?;
        let behind = WINDOW_WORDS.iter().find_map(|phrase| {
            let rest = words.split_once(phrase)?.1;
            number(rest.trim_start_matches(|char: char| !char.is_ascii_digit()))
        });
        let before = || {
            let head = words.split_once(WINDOW_BEFORE)?.0;
            number(&head[head.rfind(|char: char| !char.is_ascii_digit() && char != ',')? + 1..])
        };
        behind.or_else(before).filter(|window| *window >= MIN_WINDOW)
    }

    /// The class of the error, with the status it came with if it came with one.
    fn class(&self, status: Option<StatusCode>) -> ModelErrorKind {
        if self.is_too_long(status) {
            return ModelErrorKind::ContextTooLong;
        }
        let named =
            |names: &[&str]| names.contains(&self.kind.as_str()) || names.contains(&self.code.as_str());
        let words = self.message.to_lowercase();
        if named(&PAYMENT_NAMES) || PAYMENT_WORDS.iter().any(|phrase| words.contains(phrase)) {
            return ModelErrorKind::Payment;
        }
        let number = || self.code.parse().ok().and_then(|code| StatusCode::from_u16(code).ok());
        if let Some(status) = status.or_else(number) {
            return kind_of_status(status);
        }
        if named(&["authentication_error", "permission_error", "invalid_api_key"]) {
            ModelErrorKind::Authentication
        } else if named(&["rate_limit_error", "rate_limit_exceeded", "too_many_requests"]) {
            ModelErrorKind::RateLimited
        } else if named(&["invalid_request_error", "not_found_error", "invalid_prompt", "model_not_found"]) {
            ModelErrorKind::BadRequest
        } else {
            // `overloaded_error`, `server_error`, and whatever comes to be: the request was accepted.
            ModelErrorKind::Server
        }
    }

    /// Whether the request was too long.
    fn is_too_long(&self, status: Option<StatusCode>) -> bool {
        let words = self.message.to_lowercase();
        let status = status.map(|status| status.as_u16());
        // Limits by the minute refer to tokens as well, but pass; only a request above them never fits.
        if status == Some(413) || words.contains("request too large") {
            return true;
        }
        let possible = matches!(status, None | Some(400 | 404 | 422 | 500));
        let named = TOO_LONG_NAMES.iter().any(|name| self.kind == *name || self.code == *name);
        possible && (named || TOO_LONG_WORDS.iter().any(|phrase| words.contains(phrase)))
    }
}

/// The words of an error, and those of the server behind the one that was asked.
fn words_of(detail: &Value) -> String {
    let mut words = scalar(detail.get("message")).unwrap_or_default();
    if let Some(Value::String(behind)) = detail.pointer("/metadata/raw") {
        words.push_str(&format!(" ({behind})"));
    }
    // Older servers of llama.cpp say how much they can read only beside their words.
    if let Some(Value::Number(window)) = detail.get("n_ctx").filter(|_| !words.contains(['0', '1', '2'])) {
        words.push_str(&format!(" (n_ctx {window})"));
    }
    words
}

/// The number that a text begins with, thousands separated or not.
fn number(text: &str) -> Option<u64> {
    let end = text.find(|char: char| !char.is_ascii_digit() && char != ',').unwrap_or(text.len());
    text[..end].replace(',', "").parse().ok()
}

fn scalar(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn describe(status: StatusCode, headers: &HeaderMap, body: &[u8], host: &str) -> ModelError {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let reported = ReportedError::read(body).unwrap_or_else(|| ReportedError {
        message: String::from_utf8_lossy(body).trim().to_owned(),
        ..ReportedError::default()
    });
    let name = [&reported.kind, &reported.code].into_iter().find(|name| !name.is_empty());
    let mut message = format!("{host} answered {}", status.as_u16());
    if let Some(name) = name {
        message.push_str(&format!(" ({})", quote(name)));
    } else if let Some(reason) = status.canonical_reason() {
        message.push_str(&format!(" ({reason})"));
    }
    if status.is_redirection() {
        let target = quote(header(LOCATION.as_str()).unwrap_or("another address"));
        message.push_str(&format!(
            ": a redirect to {target}. Redirects are not followed, so that the key goes nowhere else; set the base \
             URL to the right address"
        ));
    } else if !reported.message.is_empty() {
        message.push_str(&format!(": {}", quote(&reported.message)));
    }
    let id = header("request-id").or_else(|| header("x-request-id")).or(reported.request_id.as_deref());
    if let Some(id) = id {
        message.push_str(&format!(" [request {}]", quote(id)));
    }
    let kind = reported.class(Some(status));
    ModelError {
        status: Some(status.as_u16()),
        retry_after: retry_after(status, headers, Timestamp::now()).or_else(|| retry_info(status, body)),
        context_window: reported.window(kind),
        ..ModelError::new(kind, message)
    }
}

fn kind_of_status(status: StatusCode) -> ModelErrorKind {
    match status.as_u16() {
        300..=399 => ModelErrorKind::Configuration,
        401 | 403 => ModelErrorKind::Authentication,
        402 => ModelErrorKind::Payment,
        429 => ModelErrorKind::RateLimited,
        // A timeout and a request that came too early pass by themselves.
        408 | 425 => ModelErrorKind::Server,
        400..=499 => ModelErrorKind::BadRequest,
        500..=599 => ModelErrorKind::Server,
        _ => ModelErrorKind::Protocol,
    }
}

/// How long the server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date, or else when the
/// limits that were met are reset.
fn retry_after(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = value("retry-after-ms")
        .and_then(|text| text.parse::<f64>().ok())
        .and_then(|milliseconds| Duration::try_from_secs_f64(milliseconds / 1000.0).ok());
    if milliseconds.is_some() {
        return milliseconds;
    }
    let Some(text) = value(RETRY_AFTER.as_str()) else {
        let limited = status == StatusCode::TOO_MANY_REQUESTS;
        let resets = RESET_HEADERS.iter().filter(|_| limited).filter_map(|name| duration(value(name)?));
        return resets.max();
    };
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => {
            let date = rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()?;
            // A date that has passed means now.
            Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
        }
    }
}

/// How long Google's servers ask to wait: they say it in the body.
fn retry_info(status: StatusCode, body: &[u8]) -> Option<Duration> {
    let body: Value =
        serde_json::from_slice(body).ok().filter(|_| status == StatusCode::TOO_MANY_REQUESTS)?;
    let error = body.get(0).unwrap_or(&body).get("error")?;
    let details = error.get("details").and_then(Value::as_array)?;
    details.iter().find_map(|detail| duration(detail.get("retryDelay")?.as_str()?))
}

/// A duration such as `6m0s`, `7.66s` or `20ms`.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let number_end = rest.find(|char: char| char != '.' && !char.is_ascii_digit())?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 0.001,
            _ => return None,
        };
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?;
        total = total.checked_add(part)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

/// The server's words, on one line and not too many.
fn quote(words: &str) -> String {
    let mut quoted: String =
        words.chars().map(|char| if char.is_control() { ' ' } else { char }).take(MAX_QUOTED_CHARS).collect();
    if words.chars().nth(MAX_QUOTED_CHARS).is_some() {
        quoted.push('…');
    }
    quoted
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn headers(entries: &[(&'static str, &str)]) -> HeaderMap {
        let entry = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        entries.iter().map(entry).collect()
    }

    fn described(status: u16, entries: &[(&'static str, &str)], body: &str) -> ModelError {
        describe(StatusCode::from_u16(status).unwrap(), &headers(entries), body.as_bytes(), "api.example")
    }

    #[test]
    fn every_status_has_a_kind() {
        use ModelErrorKind::{
            Authentication, BadRequest, Configuration, ContextTooLong, Payment, Protocol, RateLimited, Server,
        };
        for (status, kind) in [
            (101, Protocol),
            (302, Configuration),
            (307, Configuration),
            (400, BadRequest),
            (401, Authentication),
            (403, Authentication),
            (404, BadRequest),
            (408, Server),
            (402, Payment),
            (413, ContextTooLong),
            (422, BadRequest),
            (429, RateLimited),
            (500, Server),
            (502, Server),
            (503, Server),
            (529, Server),
            (999, Protocol),
        ] {
            let error = described(status, &[], "");
            assert_eq!((error.kind, error.status), (kind, Some(status)));
            assert!(error.message.contains(&status.to_string()), "{}", error.message);
        }
    }

    #[test]
    fn messages_say_who_answered_what() {
        let json = r#"{"type":"error","error":{"type":"overloaded_error","message":"Over\nloaded"},"request_id":"b"}"#;
        for (status, entries, body, expected) in [
            (
                529,
                &[("request-id", "req_1")][..],
                json,
                "api.example answered 529 (overloaded_error): Over loaded [request req_1]",
            ),
            (529, &[], json, "api.example answered 529 (overloaded_error): Over loaded [request b]"),
            (502, &[], "<html>bad</html>", "api.example answered 502 (Bad Gateway): <html>bad</html>"),
            (500, &[], "", "api.example answered 500 (Internal Server Error)"),
            (400, &[], r#"{"error":{}}"#, "api.example answered 400 (Bad Request)"),
        ] {
            assert_eq!(described(status, entries, body).message, expected);
        }
    }

    #[test]
    fn long_words_are_cut() {
        let error = described(400, &[], &"é".repeat(5_000));
        assert!(error.message.chars().count() < MAX_QUOTED_CHARS + 100);
        assert!(error.message.ends_with('…'));
    }

    #[test]
    fn retry_after_is_read_in_every_form() {
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        for (entries, expected) in [
            (&[][..], None),
            (&[("retry-after", "7")], Some(7_000)),
            (&[("retry-after", " 0.25 ")], Some(250)),
            (&[("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT")], Some(30_000)),
            (&[("retry-after", "Wed, 31 Dec 2025 23:00:00 GMT")], Some(0)),
            (&[("retry-after-ms", "1500"), ("retry-after", "9")], Some(1_500)),
            (&[("retry-after-ms", "soon"), ("retry-after", "9")], Some(9_000)),
            (&[("retry-after", "-1")], None),
            (&[("retry-after", "nan")], None),
            (&[("retry-after", "1e300")], None),
            (&[("retry-after", "tomorrow")], None),
            (&[("x-ratelimit-reset-requests", "20ms"), ("x-ratelimit-reset-tokens", "6m0s")], Some(360_000)),
            (&[("x-ratelimit-reset-tokens", "1h2m3.5s")], Some(3_723_500)),
            (&[("x-ratelimit-reset-tokens", "6m0s"), ("retry-after", "1")], Some(1_000)),
            (&[("x-ratelimit-reset-tokens", "")], None),
            (&[("x-ratelimit-reset-tokens", "6")], None),
            (&[("x-ratelimit-reset-tokens", "1..s")], None),
            (&[("x-ratelimit-reset-tokens", "3 days")], None),
        ] {
            let expected = expected.map(Duration::from_millis);
            let limited = StatusCode::TOO_MANY_REQUESTS;
            assert_eq!(retry_after(limited, &headers(entries), now), expected, "{entries:?}");
        }
        let reset = headers(&[("x-ratelimit-reset-tokens", "6m0s")]);
        let other = retry_after(StatusCode::BAD_GATEWAY, &reset, now);
        assert_eq!(other, None, "a limit that was not met is not waited for");
    }

    #[test]
    fn the_wait_that_google_asks_for_is_read_from_the_body() {
        let info = r#"{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}"#;
        let body =
            format!(r#"{{"error": {{"code": 429, "message": "m", "details": [{{"@type": "x"}}, {info}]}}}}"#);
        let wait = Some(Duration::from_millis(34_500));
        assert_eq!(described(429, &[], &body).retry_after, wait);
        assert_eq!(
            described(429, &[], &format!("[{body}]")).retry_after,
            wait,
            "as the compatible endpoint has it"
        );
        assert_eq!(described(429, &[("retry-after", "1")], &body).retry_after, Some(Duration::from_secs(1)));
        assert_eq!(described(400, &[], &body).retry_after, None);
    }

    #[test]
    fn the_window_that_a_server_names_is_read() {
        for (words, window) in [
            (
                "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
                Some(8_192),
            ),
            (
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens",
                Some(4_096),
            ),
            ("prompt is too long: 210000 tokens > 200000 maximum", Some(200_000)),
            (
                "This model's maximum prompt length is 131072 but the request contains 140000 tokens",
                Some(131_072),
            ),
            (
                "Trying to keep the first 6000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens",
                Some(4_096),
            ),
            (
                "The input token count (1200000) exceeds the maximum number of tokens allowed (1,048,576).",
                Some(1_048_576),
            ),
            ("the input length exceeds the context length", None),
            ("prompt is too long: maximum 7", None),
        ] {
            let body = serde_json::json!({"error": {"message": words}}).to_string();
            let error = described(400, &[], &body);
            assert_eq!(
                (error.kind, error.context_window),
                (ModelErrorKind::ContextTooLong, window),
                "{words}"
            );
        }
        let old = r#"{"error":{"code":400,"message":"the request exceeds the available context size","n_ctx":4096}}"#;
        assert_eq!(described(400, &[], old).context_window, Some(4_096));
        let other = described(400, &[], r#"{"error":{"message":"maximum context length is"}}"#);
        assert_eq!(other.context_window, None);
        assert_eq!(described(400, &[], r#"{"error":{"message":"n_ctx 4096"}}"#).context_window, None);
    }

    #[test]
    fn every_shape_of_an_error_is_read() {
        let reported = |kind: &str, code: &str, message: &str| {
            let [kind, code, message] = [kind, code, message].map(str::to_owned);
            Some(ReportedError { kind, code, message, request_id: None })
        };
        for (body, expected) in [
            (r#"{"type":"error","error":{"type":"a","message":"b"}}"#, reported("a", "", "b")),
            (r#"{"error":{"message":"b","type":"a","code":"c","param":null}}"#, reported("a", "c", "b")),
            (r#"{"error":{"message":"b","code":429,"metadata":{"raw":"x"}}}"#, reported("", "429", "b (x)")),
            (r#"{"error":{}}"#, reported("", "", "")),
            (r#"{"error":"b"}"#, reported("", "", "b")),
            (r#"{"detail":"b"}"#, reported("", "", "b")),
            (r#"{"detail":[{"loc":["body"]}]}"#, reported("", "", r#"[{"loc":["body"]}]"#)),
            (r#"{"message":"b","type":"a","code":400}"#, reported("a", "400", "b")),
            (r#"{"type":"error","code":"c","message":"b"}"#, reported("", "c", "b")),
            (r#"[{"error":{"code":400,"message":"b"}}]"#, reported("", "400", "b")),
            (r#"{"choices":[]}"#, None),
            (r#"{"error":null}"#, None),
            ("[]", None),
            ("7", None),
            ("<html>", None),
        ] {
            assert_eq!(ReportedError::read(body.as_bytes()), expected, "{body}");
        }
    }

    #[test]
    fn requests_that_are_too_long_are_distinguished_from_the_rest() {
        use ModelErrorKind::{BadRequest, ContextTooLong, Payment, RateLimited, Server};
        for (status, code, words, expected) in [
            (400, "context_length_exceeded", "", ContextTooLong),
            (400, "string_above_max_length", "", ContextTooLong),
            (400, "", "prompt is too long: 210000 tokens > 200000 maximum", ContextTooLong),
            (400, "", "input length and `max_tokens` exceed context limit: 1 + 2 > 2", ContextTooLong),
            (400, "", "This model's maximum context length is 4096 tokens. However", ContextTooLong),
            (400, "", "This model's maximum prompt length is 131072 but", ContextTooLong),
            (400, "", "Your input exceeds the context window of this model.", ContextTooLong),
            (400, "", "the request exceeds the available context size", ContextTooLong),
            (400, "", "too many tokens: size limit exceeded by 11", ContextTooLong),
            (400, "", "Please reduce the length of the messages or completion.", ContextTooLong),
            (
                400,
                "",
                "The input token count (3) exceeds the maximum number of tokens allowed (2)",
                ContextTooLong,
            ),
            (422, "", "Range of input length should be [1, 30720]", ContextTooLong),
            (500, "", "loaded with context length of only 4096 tokens", ContextTooLong),
            (429, "", "Request too large for m on tokens per min: Limit 3, Requested 4", ContextTooLong),
            (413, "", "", ContextTooLong),
            (429, "", "Too many tokens, please wait before trying again.", RateLimited),
            (400, "", "max_tokens is too large: 50000. This model supports at most 16384", BadRequest),
            (400, "", "messages: roles must alternate", BadRequest),
            (503, "", "prompt is too long", Server),
            (429, "insufficient_quota", "You exceeded your current quota", Payment),
            (400, "", "Your credit balance is too low to access the Anthropic API.", Payment),
            (429, "rate_limit_exceeded", "Slow down", RateLimited),
        ] {
            let body = serde_json::json!({"error": {"message": words, "code": code}}).to_string();
            assert_eq!(described(status, &[], &body).kind, expected, "{status} {code} {words}");
        }
    }

    #[test]
    fn errors_in_the_middle_of_a_stream_are_known_by_their_names() {
        use ModelErrorKind::{Authentication, BadRequest, ContextTooLong, Payment, RateLimited, Server};
        for (kind, code, message, expected) in [
            ("overloaded_error", "", "", Server),
            ("server_error", "", "", Server),
            ("", "", "", Server),
            ("", "502", "", Server),
            ("", "429", "", RateLimited),
            ("rate_limit_error", "", "", RateLimited),
            ("", "rate_limit_exceeded", "", RateLimited),
            ("tokens", "insufficient_quota", "", Payment),
            ("billing_error", "", "", Payment),
            ("invalid_request_error", "", "no such model", BadRequest),
            ("invalid_request_error", "", "Prompt is too long", ContextTooLong),
            ("request_too_large", "", "", ContextTooLong),
            ("permission_error", "", "", Authentication),
            ("invalid_request_error", "invalid_api_key", "", Authentication),
        ] {
            let [kind, code, message] = [kind, code, message].map(str::to_owned);
            let reported = ReportedError { kind, code, message, request_id: None };
            assert_eq!(reported.clone().into_error("h").kind, expected, "{reported:?}");
        }
        let named = ReportedError { code: "c".into(), message: "wo\nrds".into(), ..ReportedError::default() };
        assert_eq!(named.into_error("h").message, "h broke the answer off (c): wo rds");
    }
}
