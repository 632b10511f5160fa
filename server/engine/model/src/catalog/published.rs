//! A catalog of models in the format of models.dev, which the user names.
//!
//! Rule: its limits and abilities count for a model of that name at any provider, its prices only at the provider that
//! lists them. A field that it lacks is taken from the built-in table.

use std::collections::HashMap;

use serde::Deserialize;

use super::{CapabilityOptions, CatalogEntry, is_of, normal};
use crate::price::{LongPrices, Prices};

/// From this many tokens on the prices under `context_over_200k` count.
const LONG: u64 = 200_000;

/// The domains of providers that the format lists without an address.
const DOMAINS: [(&str, &str); 10] = [
    ("anthropic", "anthropic.com"),
    ("openai", "openai.com"),
    ("google", "generativelanguage.googleapis.com"),
    ("google-vertex", "aiplatform.googleapis.com"),
    ("google-vertex-anthropic", "aiplatform.googleapis.com"),
    ("amazon-bedrock", "amazonaws.com"),
    ("azure", "azure.com"),
    ("mistral", "mistral.ai"),
    ("xai", "x.ai"),
    ("groq", "groq.com"),
];

/// The models of a published catalog.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PublishedCatalog {
    /// The file or address that it was read from.
    pub source: String,
    /// When it was read from there.
    pub read_at: Option<jiff::Timestamp>,
    models: HashMap<String, Vec<PublishedModel>>,
}

/// A model as one provider serves it.
#[derive(Clone, Debug, PartialEq)]
struct PublishedModel {
    domain: Option<String>,
    entry: CatalogEntry,
}

impl PublishedCatalog {
    /// Reads a catalog of `{PROVIDER: {"api", "models": {ID: {"limit", "cost", …}}}}`.
    ///
    /// # Errors
    /// The reason, when the bytes are no such catalog or list no model.
    pub fn read(bytes: &[u8], source: &str) -> Result<Self, String> {
        let providers: HashMap<String, RawProvider> = serde_json::from_slice(bytes)
            .map_err(|error| format!("{source} is no models.dev catalog: {error}"))?;
        let mut models: HashMap<String, Vec<PublishedModel>> = HashMap::new();
        for (id, provider) in providers {
            let domain = provider.domain(&id);
            for (name, model) in provider.models {
                let entry = model.entry(&name);
                models
                    .entry(normal(&name))
                    .or_default()
                    .push(PublishedModel { domain: domain.clone(), entry });
            }
        }
        if models.is_empty() {
            return Err(format!("{source} lists no models"));
        }
        for listed in models.values_mut() {
            // Providers come in no order. The widest window is the model's own, a smaller one is its provider's limit.
            listed.sort_by(|a, b| {
                let key = |model: &PublishedModel| (model.entry.context_window, model.entry.max_output);
                key(b).cmp(&key(a)).then_with(|| a.domain.cmp(&b.domain))
            });
        }
        Ok(Self { source: source.to_owned(), read_at: None, models })
    }

    /// The same with the time at which it was read from its source.
    #[must_use]
    pub fn dated(self, read_at: Option<jiff::Timestamp>) -> Self {
        Self { read_at, ..self }
    }

    /// How many models it lists, by their names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.models.len()
    }

    /// Whether it lists none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.models.is_empty()
    }

    /// The entry of a model at `host`, without prices if only others serve it. `name` is in the catalog's spelling.
    pub(super) fn entry(&self, name: &str, host: &str) -> Option<CatalogEntry> {
        let listed = self.models.get(name)?;
        let here =
            listed.iter().find(|model| model.domain.as_ref().is_some_and(|domain| is_of(host, domain)));
        let model = here.or_else(|| listed.first())?;
        let mut entry = model.entry.clone();
        if here.is_none() {
            entry.prices = None;
        }
        Some(entry)
    }
}

#[derive(Deserialize)]
struct RawProvider {
    #[serde(default)]
    api: Option<String>,
    #[serde(default)]
    models: HashMap<String, RawModel>,
}

impl RawProvider {
    fn domain(&self, id: &str) -> Option<String> {
        let address = self.api.as_deref().and_then(|api| url::Url::parse(api).ok());
        let host = address.and_then(|url| url.host_str().map(str::to_owned));
        host.or_else(|| {
            DOMAINS.iter().find(|(known, _)| *known == id).map(|(_, domain)| (*domain).to_owned())
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawModel {
    reasoning: Option<bool>,
    temperature: Option<bool>,
    tool_call: Option<bool>,
    modalities: Option<RawModalities>,
    limit: Option<RawLimit>,
    cost: Option<RawCost>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawModalities {
    input: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct RawLimit {
    context: Option<u64>,
    output: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
struct RawCost {
    input: f64,
    output: f64,
    #[serde(default)]
    cache_read: Option<f64>,
    #[serde(default)]
    cache_write: Option<f64>,
    #[serde(default)]
    context_over_200k: Option<RawLongCost>,
}

#[derive(Clone, Copy, Deserialize)]
struct RawLongCost {
    input: f64,
    output: f64,
    #[serde(default)]
    cache_read: Option<f64>,
    #[serde(default)]
    cache_write: Option<f64>,
}

impl RawModel {
    fn entry(self, name: &str) -> CatalogEntry {
        let takes = |kind: &str| {
            let modalities = self.modalities.as_ref()?;
            (!modalities.input.is_empty()).then(|| modalities.input.iter().any(|input| input == kind))
        };
        let capabilities = CapabilityOptions {
            tools: self.tool_call,
            thinking: self.reasoning,
            temperature: self.temperature,
            images: takes("image"),
            pdf: takes("pdf"),
            ..CapabilityOptions::default()
        };
        // The format writes 0 where a limit is not known.
        let limit = self.limit.unwrap_or_default();
        let output = limit.output.filter(|tokens| *tokens > 0);
        CatalogEntry {
            beginning: name.to_owned(),
            context_window: limit.context.filter(|tokens| *tokens > 0),
            max_output: output.and_then(|tokens| u32::try_from(tokens).ok()),
            capabilities,
            prices: self.cost.map(RawCost::prices).filter(Prices::is_sound),
            hosts: Vec::new(),
        }
    }
}

impl RawCost {
    fn prices(self) -> Prices {
        Prices {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read,
            cache_write: self.cache_write,
            above: self.context_over_200k.map(|long| LongPrices {
                tokens: LONG,
                input: long.input,
                output: long.output,
                cache_read: long.cache_read,
                cache_write: long.cache_write,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ModelCatalog;
    use super::*;
    use crate::Wire;
    use std::sync::Arc;

    /// Providers and models as models.dev publishes them, with its field names.
    const PUBLISHED: &str = r#"{
        "anthropic": {"id": "anthropic", "env": ["ANTHROPIC_API_KEY"], "name": "Anthropic", "models": {
            "claude-opus-9": {"id": "claude-opus-9", "name": "Claude Opus 9", "attachment": true, "reasoning": true,
                "temperature": false, "tool_call": true, "modalities": {"input": ["text", "image", "pdf"], "output": ["text"]},
                "cost": {"input": 4, "output": 20, "cache_read": 0.4, "cache_write": 5,
                    "context_over_200k": {"input": 8, "output": 30}},
                "limit": {"context": 2000000, "output": 256000}}}},
        "reseller": {"id": "reseller", "api": "https://api.reseller.example/v1", "models": {
            "anthropic/claude-opus-9": {"reasoning": true, "modalities": {"input": ["text"]},
                "cost": {"input": 6, "output": 24}, "limit": {"context": 400000, "output": 64000}},
            "tiny-1": {"tool_call": false, "limit": {"context": 0, "output": 0}}}}}"#;

    fn catalog() -> ModelCatalog {
        let published = PublishedCatalog::read(PUBLISHED.as_bytes(), "models.json").unwrap();
        assert_eq!(published.len(), 2);
        ModelCatalog::with(Vec::new()).published(Arc::new(published))
    }

    #[test]
    fn a_published_model_brings_limits_abilities_and_prices() {
        let facts = catalog().facts("claude-opus-9", Wire::AnthropicMessages, "api.anthropic.com");
        assert_eq!((facts.context_window, facts.max_output), (Some(2_000_000), Some(256_000)));
        assert!(facts.capabilities.pdf && facts.capabilities.images && !facts.capabilities.temperature);
        let prices = facts.prices.unwrap();
        assert_eq!((prices.input, prices.cache_write), (4.0, Some(5.0)));
        assert_eq!(prices.above.map(|long| (long.tokens, long.output)), Some((200_000, 30.0)));
    }

    #[test]
    fn prices_and_limits_are_those_of_the_provider_that_is_asked() {
        let at = |host| catalog().facts("anthropic/claude-opus-9", Wire::ChatCompletions, host);
        let here = at("api.reseller.example");
        assert_eq!((here.context_window, here.prices.map(|prices| prices.input)), (Some(400_000), Some(6.0)));
        let elsewhere = at("models.example.org");
        assert_eq!((elsewhere.context_window, elsewhere.prices), (Some(2_000_000), None));
    }

    #[test]
    fn what_the_catalog_lacks_is_taken_from_the_built_in_table() {
        let tiny = catalog().facts("tiny-1", Wire::ChatCompletions, "api.reseller.example");
        assert_eq!((tiny.context_window, tiny.capabilities.tool_use), (None, false));
        let known = catalog().facts("gpt-4o", Wire::ChatCompletions, "api.openai.com");
        assert_eq!((known.context_window, known.prices.is_some()), (Some(128_000), true));
    }

    #[test]
    fn a_file_that_is_no_catalog_is_refused_with_the_reason() {
        for (text, reason) in [
            ("not json", "is no models.dev catalog"),
            ("[]", "is no models.dev catalog"),
            ("{}", "lists no models"),
            (r#"{"a": {"models": {"b": {"limit": {"context": "many"}}}}}"#, "is no models.dev catalog"),
        ] {
            let error = PublishedCatalog::read(text.as_bytes(), "models.json").unwrap_err();
            assert!(error.starts_with("models.json ") && error.contains(reason), "{error}");
        }
    }
}
