//! The prices of an answer.
//!
//! Rule: unknown prices are not guessed: without prices there is no cost, and a sum with an unknown part says so.

use serde::{Deserialize, Serialize};

use super::Usage;

/// Number of tokens that prices are for.
const TOKENS_PER_PRICE: f64 = 1_000_000.0;

/// Prices of a model in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// Input that is not cached.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input that is read from the provider's cache; the same as other input if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input that is written to the provider's cache; the same as other input if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// The prices of longer requests, if different.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub above: Option<LongPrices>,
}

/// Prices of requests beyond a length, for all their tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LongPrices {
    /// They count for requests of more tokens than these, cached ones included.
    pub tokens: u64,
    /// Input that is not cached.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input that is read from the provider's cache; the same as other input if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input that is written to the provider's cache; the same as other input if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

impl Prices {
    /// Whether these are prices: no number is negative or beyond counting.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let long = self.above.map_or([None; 4], |long| {
            [Some(long.input), Some(long.output), long.cache_read, long.cache_write]
        });
        let short = [Some(self.input), Some(self.output), self.cache_read, self.cache_write];
        short.into_iter().chain(long).flatten().all(|price| price.is_finite() && price >= 0.0)
    }

    /// The cost of one answer, in US dollars; `None` when its tokens add up to no number.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let long = self.above.filter(|long| usage.prompt_tokens() > long.tokens);
        let (input, output, cache_read, cache_write) = match long {
            Some(long) => (long.input, long.output, long.cache_read, long.cache_write),
            None => (self.input, self.output, self.cache_read, self.cache_write),
        };
        let parts = [
            (usage.input_tokens, input),
            (usage.output_tokens, output),
            (usage.cache_read_tokens, cache_read.unwrap_or(input)),
            (usage.cache_write_tokens, cache_write.unwrap_or(input)),
        ];
        let cost: f64 =
            parts.into_iter().map(|(tokens, price)| number(tokens) * price / TOKENS_PER_PRICE).sum();
        cost.is_finite().then_some(cost)
    }
}

/// The cost of several answers together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// The part that is known, in US dollars.
    pub usd: f64,
    /// Whether something is not in it because its price is unknown.
    pub is_partial: bool,
}

impl Cost {
    /// The cost of one answer.
    #[must_use]
    pub fn of(prices: Option<&Prices>, usage: &Usage) -> Self {
        Self::known(prices.and_then(|prices| prices.cost(usage)), usage)
    }

    /// The cost of one answer that is `known`, or is not.
    #[must_use]
    pub fn known(known: Option<f64>, usage: &Usage) -> Self {
        // An answer without tokens costs nothing, whatever the prices are.
        Self { usd: known.unwrap_or_default(), is_partial: known.is_none() && *usage != Usage::default() }
    }

    /// The whole cost, if all of it is known.
    #[must_use]
    pub fn total(&self) -> Option<f64> {
        (!self.is_partial).then_some(self.usd)
    }
}

impl std::ops::AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.usd += other.usd;
        self.is_partial |= other.is_partial;
    }
}

/// Token counts fit a float's whole numbers for any session there can be.
#[expect(clippy::cast_precision_loss, reason = "a count beyond 2^53 tokens may be off by one")]
fn number(tokens: u64) -> f64 {
    tokens as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICES: Prices =
        Prices { input: 3.0, output: 15.0, cache_read: Some(0.3), cache_write: Some(3.75), above: None };

    fn usage(input: u64, output: u64, read: u64, write: u64) -> Usage {
        Usage {
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: read,
            cache_write_tokens: write,
            thinking_tokens: output,
        }
    }

    #[test]
    fn every_kind_of_token_has_its_price() {
        let million = 1_000_000;
        let long = LongPrices {
            tokens: million,
            input: 6.0,
            output: 20.0,
            cache_read: Some(0.6),
            cache_write: None,
        };
        let bare = Prices { cache_read: None, cache_write: None, ..PRICES };
        for (prices, usage, expected) in [
            (PRICES, usage(million, 0, 0, 0), 3.0),
            (PRICES, usage(0, million, 0, 0), 15.0),
            (PRICES, usage(0, 0, million, 0), 0.3),
            (PRICES, usage(0, 0, 0, million), 3.75),
            (PRICES, usage(1000, 200, 5000, 100), 0.003 + 0.003 + 0.0015 + 0.000_375),
            (bare, usage(0, 0, million, million), 6.0),
            (Prices { above: Some(long), ..PRICES }, usage(million, 0, 0, 0), 3.0),
            (Prices { above: Some(long), ..PRICES }, usage(million, million, million, 0), 26.6),
            (PRICES, Usage::default(), 0.0),
        ] {
            let cost = prices.cost(&usage).unwrap();
            assert!((cost - expected).abs() < 1e-9, "{usage:?}: {cost} instead of {expected}");
        }
    }

    #[test]
    fn an_unknown_price_is_no_zero() {
        let mut sum = Cost::of(Some(&PRICES), &usage(1_000_000, 0, 0, 0));
        assert_eq!(sum.total(), Some(3.0));
        sum += Cost::of(None, &Usage::default());
        assert_eq!(sum.total(), Some(3.0), "what used no tokens costs nothing");
        sum += Cost::of(None, &usage(1, 0, 0, 0));
        assert_eq!((sum.total(), sum.usd), (None, 3.0));
    }

    #[test]
    fn prices_below_zero_are_none() {
        assert!(PRICES.is_sound());
        assert!(!Prices { output: -1.0, ..PRICES }.is_sound());
        assert!(!Prices { cache_read: Some(f64::NAN), ..PRICES }.is_sound());
    }
}
