//! What the server's refusals mean.
//!
//! Rule: total over every status and every body; what the server wrote is quoted, bounded, with the host and the
//! request's id, and no more of an error body is read than [`MAX_ERROR_BYTES`].

use std::time::Duration;

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use tokio::time::timeout;

use super::wire::ErrorEvent;
use crate::model::{ModelError, ModelErrorKind};

/// The most bytes of an error's body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How long the body of an error is waited for; its status alone will do.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(10);

/// The most characters of the server's own words that are shown.
const MAX_QUOTED_CHARS: usize = 2_000;

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

/// The class of an error that the server names by type in the middle of a stream.
pub(super) fn kind_of_type(kind: &str) -> ModelErrorKind {
    match kind {
        "authentication_error" | "permission_error" => ModelErrorKind::Authentication,
        "rate_limit_error" => ModelErrorKind::RateLimited,
        "invalid_request_error" | "not_found_error" | "request_too_large" | "billing_error" => {
            ModelErrorKind::BadRequest
        }
        // `overloaded_error`, `api_error`, `timeout_error`, and whatever comes to be: the request was accepted.
        _ => ModelErrorKind::Server,
    }
}

fn describe(status: StatusCode, headers: &HeaderMap, body: &[u8], host: &str) -> ModelError {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let parsed: Option<ErrorEvent> = serde_json::from_slice(body).ok();
    let (error_type, words, id_in_body) = match parsed {
        Some(ErrorEvent { error, request_id }) => (error.kind, error.message, request_id),
        None => (String::new(), String::from_utf8_lossy(body).trim().to_owned(), None),
    };
    let mut message = format!("{host} answered {}", status.as_u16());
    if !error_type.is_empty() {
        message.push_str(&format!(" ({})", quote(&error_type)));
    } else if let Some(reason) = status.canonical_reason() {
        message.push_str(&format!(" ({reason})"));
    }
    if status.is_redirection() {
        let target = quote(header(LOCATION.as_str()).unwrap_or("another address"));
        message.push_str(&format!(
            ": a redirect to {target}. Redirects are not followed, so that the key goes nowhere else; set the base \
             URL to the right address"
        ));
    } else if !words.is_empty() {
        message.push_str(&format!(": {}", quote(&words)));
    }
    if let Some(id) = header("request-id").or(id_in_body.as_deref()) {
        message.push_str(&format!(" [request {}]", quote(id)));
    }
    ModelError {
        status: Some(status.as_u16()),
        retry_after: retry_after(headers, Timestamp::now()),
        ..ModelError::new(kind_of_status(status), message)
    }
}

fn kind_of_status(status: StatusCode) -> ModelErrorKind {
    match status.as_u16() {
        300..=399 => ModelErrorKind::Configuration,
        401 | 403 => ModelErrorKind::Authentication,
        429 => ModelErrorKind::RateLimited,
        // A timeout and a request that came too early pass by themselves.
        408 | 425 => ModelErrorKind::Server,
        400..=499 => ModelErrorKind::BadRequest,
        500..=599 => ModelErrorKind::Server,
        _ => ModelErrorKind::Protocol,
    }
}

/// How long the server asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let value = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = value("retry-after-ms")
        .and_then(|text| text.parse::<f64>().ok())
        .and_then(|milliseconds| Duration::try_from_secs_f64(milliseconds / 1000.0).ok());
    if milliseconds.is_some() {
        return milliseconds;
    }
    let text = value(RETRY_AFTER.as_str())?;
    match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Err(_) => {
            let date = rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()?;
            // A date that has passed means now.
            Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
        }
    }
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
        use ModelErrorKind::{Authentication, BadRequest, Configuration, Protocol, RateLimited, Server};
        for (status, kind) in [
            (101, Protocol),
            (302, Configuration),
            (307, Configuration),
            (400, BadRequest),
            (401, Authentication),
            (403, Authentication),
            (404, BadRequest),
            (408, Server),
            (413, BadRequest),
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
        ] {
            let expected = expected.map(Duration::from_millis);
            assert_eq!(retry_after(&headers(entries), now), expected, "{entries:?}");
        }
    }
}
