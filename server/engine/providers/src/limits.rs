//! Usage windows: how much of a provider's limits is left, as the headers of its answers tell.
//!
//! Rule: only what a provider tells is known. The newest answer replaces what an older one told.

use parking_lot::Mutex;

use jiff::Timestamp;
use reqwest::header::HeaderMap;

use crate::failure::duration;
use kode_model::UsageWindow;

/// Headers of Anthropic's API, by window: the kind, as the header has it and as it is called here.
const ANTHROPIC: [(&str, &str); 4] = [
    ("requests", "requests"),
    ("tokens", "tokens"),
    ("input-tokens", "input tokens"),
    ("output-tokens", "output tokens"),
];

/// Headers that OpenAI's API and compatible ones send, by kind.
const OPENAI: [(&str, &str); 2] = [("requests", "requests"), ("tokens", "tokens")];

/// Windows of Anthropic's plans, in the header and here.
const PLANS: [(&str, &str); 2] = [("5h", "5 hours"), ("7d", "7 days")];

/// The windows that the newest answer told.
#[derive(Debug, Default)]
pub(super) struct NewestLimits(Mutex<Vec<UsageWindow>>);

impl NewestLimits {
    /// Takes in what the headers of an answer tell, if they tell anything.
    pub(super) fn note(&self, headers: &HeaderMap) {
        let reported = read(headers, Timestamp::now());
        if !reported.is_empty() {
            *self.0.lock() = reported;
        }
    }

    /// The windows, in the order of their headers.
    pub(super) fn now(&self) -> Vec<UsageWindow> {
        self.0.lock().clone()
    }
}

fn read(headers: &HeaderMap, now: Timestamp) -> Vec<UsageWindow> {
    let value = |name: String| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let share = |limit: Option<&str>, left: Option<&str>| {
        let (limit, left) = (limit?.parse::<f64>().ok()?, left?.parse::<f64>().ok()?);
        (limit > 0.0).then(|| (1.0 - left / limit).clamp(0.0, 1.0))
    };
    let at = |text: Option<&str>| {
        let text = text?;
        text.parse::<Timestamp>().ok().or_else(|| now.checked_add(duration(text)?).ok())
    };
    let anthropic = ANTHROPIC.iter().filter_map(|(kind, name)| {
        let of = |what: &str| value(format!("anthropic-ratelimit-{kind}-{what}"));
        let used = share(of("limit"), of("remaining"))?;
        Some(UsageWindow { name: (*name).to_owned(), used, resets: at(of("reset")) })
    });
    let plans = PLANS.iter().filter_map(|(window, name)| {
        let of = |what: &str| value(format!("anthropic-ratelimit-unified-{window}-{what}"));
        let used = of("utilization")?.parse::<f64>().ok()?.clamp(0.0, 1.0);
        let resets = of("reset").and_then(|seconds| Timestamp::from_second(seconds.parse().ok()?).ok());
        Some(UsageWindow { name: (*name).to_owned(), used, resets })
    });
    let openai = OPENAI.iter().filter_map(|(kind, name)| {
        let of = |what: &str| value(format!("x-ratelimit-{what}-{kind}"));
        let used = share(of("limit"), of("remaining"))?;
        Some(UsageWindow { name: (*name).to_owned(), used, resets: at(of("reset")) })
    });
    plans.chain(anthropic).chain(openai).collect()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    fn windows(entries: &[(&'static str, &'static str)]) -> Vec<(String, f64, Option<String>)> {
        let headers = entries
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let reported = read(&headers.collect(), now).into_iter();
        reported.map(|window| (window.name, window.used, window.resets.map(|at| at.to_string()))).collect()
    }

    #[test]
    fn windows_are_read_as_each_provider_reports_them() {
        let at = |text: &str| Some(text.to_owned());
        assert_eq!(windows(&[]), []);
        assert_eq!(
            windows(&[
                ("anthropic-ratelimit-requests-limit", "50"),
                ("anthropic-ratelimit-requests-remaining", "20"),
                ("anthropic-ratelimit-requests-reset", "2026-01-01T00:01:00Z"),
                ("anthropic-ratelimit-unified-5h-utilization", "0.25"),
                ("anthropic-ratelimit-unified-5h-reset", "1767229200"),
            ]),
            [
                ("5 hours".to_owned(), 0.25, at("2026-01-01T01:00:00Z")),
                ("requests".to_owned(), 0.6, at("2026-01-01T00:01:00Z")),
            ]
        );
        assert_eq!(
            windows(&[
                ("x-ratelimit-limit-tokens", "1000"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "6m0s"),
                ("x-ratelimit-limit-requests", "0"),
                ("x-ratelimit-remaining-requests", "0"),
            ]),
            [("tokens".to_owned(), 1.0, at("2026-01-01T00:06:00Z"))]
        );
        assert_eq!(
            windows(&[("x-ratelimit-limit-tokens", "many"), ("x-ratelimit-remaining-tokens", "1")]),
            []
        );
    }
}
