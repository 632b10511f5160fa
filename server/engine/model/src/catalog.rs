//! Well-known models with limits, abilities and prices, and well-known providers with their addresses.
//!
//! Rule: a name is found by the longest entry it begins with. Limits and abilities pass on to relatives, a price only to
//! dated versions of the very model: what a model costs is known, or it is not said. What the user enters wins.

mod published;

use std::sync::{Arc, OnceLock};

use serde::Deserialize;

use super::price::Prices;
use super::{Capabilities, Wire};
use crate::provider::Provider;

pub use published::PublishedCatalog;

/// The table this build knows.
const BUILT_IN: &str = include_str!("catalog.json");

/// Minimum number of digits of a date in a model's name.
const MIN_DATE_DIGITS: usize = 4;

/// Domains whose Chat Completions take PDF documents.
const PDF_HOSTS: [&str; 2] = ["openai.com", "openrouter.ai"];

/// Words that name a version of a model and not another model.
const VERSION_WORDS: [&str; 4] = ["latest", "preview", "stable", "exp"];

/// The known facts about models and providers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelCatalog {
    as_of: String,
    models: Vec<CatalogEntry>,
    providers: Vec<KnownProvider>,
    /// The published catalog that the user has named.
    #[serde(skip)]
    published: Option<Arc<PublishedCatalog>>,
    /// The user's entries.
    #[serde(skip)]
    own: Vec<CatalogEntry>,
}

/// The known facts about models whose names begin alike.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CatalogEntry {
    /// The prefix of the names.
    #[serde(rename = "match")]
    pub beginning: String,
    /// How many tokens they can read.
    pub context_window: Option<u64>,
    /// How many tokens an answer may have.
    pub max_output: Option<u32>,
    /// Their abilities.
    pub capabilities: CapabilityOptions,
    /// Their cost.
    pub prices: Option<Prices>,
    /// The domains at which they cost that; everywhere if none exist.
    pub hosts: Vec<String>,
}

/// The stated abilities of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CapabilityOptions {
    /// Whether it streams.
    pub streaming: Option<bool>,
    /// Whether it calls tools.
    #[serde(alias = "toolUse")]
    pub tools: Option<bool>,
    /// Whether it reasons.
    pub thinking: Option<bool>,
    /// Whether it has a place for the system prompt.
    #[serde(alias = "systemMessage")]
    pub system_role: Option<bool>,
    /// Whether it sees pictures.
    pub images: Option<bool>,
    /// Whether it reads PDF documents.
    pub pdf: Option<bool>,
    /// Whether temperature and nucleus sampling can be chosen.
    pub temperature: Option<bool>,
    /// Whether the limit of an answer is called `max_completion_tokens` in Chat Completions.
    pub max_completion_tokens: Option<bool>,
    /// Whether reasoning goes back to it with the calls that it came with, in Chat Completions.
    pub sends_reasoning_back: Option<bool>,
    /// Whether the server refuses calls without the model's signature.
    pub signed_calls: Option<bool>,
    /// Whether it was trained on patches of several files.
    pub patches: Option<bool>,
}

impl CapabilityOptions {
    /// These abilities, and `base` by default.
    #[must_use]
    pub fn over(self, base: Capabilities) -> Capabilities {
        let images = self.images.unwrap_or(base.images);
        Capabilities {
            streaming: self.streaming.unwrap_or(base.streaming),
            tool_use: self.tools.unwrap_or(base.tool_use),
            thinking: self.thinking.unwrap_or(base.thinking),
            system_message: self.system_role.unwrap_or(base.system_message),
            images,
            // A model without eyes reads documents as text unless its catalog says otherwise.
            pdf: self.pdf.unwrap_or(base.pdf && images),
            temperature: self.temperature.unwrap_or(base.temperature),
            max_completion_tokens: self.max_completion_tokens.unwrap_or(base.max_completion_tokens),
            sends_reasoning_back: self.sends_reasoning_back.unwrap_or(base.sends_reasoning_back),
            signed_calls: self.signed_calls.unwrap_or(base.signed_calls),
            patches: self.patches.unwrap_or(base.patches),
        }
    }
}

/// A provider with a name of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnownProvider {
    name: String,
    #[serde(default)]
    aliases: Vec<String>,
    /// Its wire format.
    pub provider: Provider,
    /// Where it is.
    pub base_url: String,
    /// The variable that usually holds its key; none for servers that want no key.
    pub api_key_env: Option<String>,
    /// The name of the provider for people.
    pub label: String,
    /// The model that first contact suggests, where the server itself cannot say which are there.
    #[serde(default)]
    pub suggested: Option<String>,
    /// Where users make a key.
    #[serde(default)]
    pub key_page: Option<String>,
}

impl KnownProvider {
    /// Its name in settings.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a program of the user's own machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.api_key_env.is_none()
    }
}

/// The known facts about one model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFacts {
    /// How many tokens it can read, if known.
    pub context_window: Option<u64>,
    /// How many tokens an answer may have, if known.
    pub max_output: Option<u32>,
    /// Its abilities, as far as known, else the usual ones.
    pub capabilities: Capabilities,
    /// Its cost, if known.
    pub prices: Option<Prices>,
}

impl ModelCatalog {
    /// The models that this build knows.
    #[must_use]
    pub fn built_in() -> &'static Self {
        static CATALOG: OnceLock<ModelCatalog> = OnceLock::new();
        CATALOG.get_or_init(|| {
            serde_json::from_str(BUILT_IN).unwrap_or_else(|error| {
                tracing::error!(%error, "the built-in catalog of models cannot be read");
                Self::default()
            })
        })
    }

    /// The models that this build knows, after the user's entries.
    #[must_use]
    pub fn with(own: Vec<CatalogEntry>) -> Self {
        Self { own, ..Self::built_in().clone() }
    }

    /// This catalog with a published one, which counts before what this build knows and after what the user has entered.
    #[must_use]
    pub fn published(self, published: Arc<PublishedCatalog>) -> Self {
        Self { published: Some(published), ..self }
    }

    /// The day its prices are of.
    #[must_use]
    pub fn as_of(&self) -> &str {
        &self.as_of
    }

    /// The provider of that name, if it is known by name.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&KnownProvider> {
        self.providers
            .iter()
            .find(|known| known.name == name || known.aliases.iter().any(|alias| alias == name))
    }

    /// The providers that are known by name.
    pub fn providers(&self) -> impl Iterator<Item = &KnownProvider> {
        self.providers.iter()
    }

    /// The names of the providers that are known by name.
    pub fn provider_names(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().map(|known| known.name.as_str())
    }

    /// The known facts about a model that `host` serves and that is asked in `wire`.
    #[must_use]
    pub fn facts(&self, model: &str, wire: Wire, host: &str) -> ModelFacts {
        let name = normal(model);
        let mut facts = ModelFacts {
            context_window: None,
            max_output: None,
            capabilities: usual(wire, host),
            prices: None,
        };
        if let Some((entry, rest)) = find(&self.models, &name) {
            facts = entry.over(facts);
            let is_here = entry.hosts.is_empty() || entry.hosts.iter().any(|known| is_of(host, known));
            if !is_version(rest) || !is_here {
                facts.prices = None;
            }
        }
        if let Some(entry) = self.published.as_ref().and_then(|published| published.entry(&name, host)) {
            facts = entry.over(facts);
        }
        if let Some((entry, _)) = find(&self.own, &name) {
            facts = entry.over(facts);
        }
        facts
    }
}

impl CatalogEntry {
    fn over(&self, base: ModelFacts) -> ModelFacts {
        ModelFacts {
            context_window: self.context_window.or(base.context_window),
            max_output: self.max_output.or(base.max_output),
            capabilities: self.capabilities.over(base.capabilities),
            prices: self.prices.or(base.prices),
        }
    }
}

/// The usual abilities of models that `host` serves in a wire format.
fn usual(wire: Wire, host: &str) -> Capabilities {
    match wire {
        Wire::AnthropicMessages | Wire::Responses | Wire::Gemini => Capabilities::ALL,
        // Behind this format there is anything; a server often refuses what it does not know.
        Wire::ChatCompletions | Wire::Ollama => Capabilities {
            thinking: false,
            images: false,
            pdf: PDF_HOSTS.iter().any(|domain| is_of(host, domain)),
            max_completion_tokens: false,
            sends_reasoning_back: false,
            ..Capabilities::ALL
        },
    }
}

/// The longest entry that a name begins with at a word's end, and the rest of the name.
fn find<'a, 'n>(entries: &'a [CatalogEntry], name: &'n str) -> Option<(&'a CatalogEntry, &'n str)> {
    let fits = entries.iter().filter_map(|entry| {
        let beginning = normal(&entry.beginning);
        let rest = name.strip_prefix(&beginning).filter(|_| !beginning.is_empty())?;
        let ends_here = rest.chars().next().is_none_or(|next| !next.is_ascii_alphanumeric());
        ends_here.then_some((entry, rest))
    });
    fits.min_by_key(|(_, rest)| rest.len())
}

/// A model's name as it is compared: without the path and the vendor before it, and with one kind of separator.
fn normal(model: &str) -> String {
    let name = model.rsplit('/').next().unwrap_or_default().to_lowercase();
    let name = name.replace(['.', '_', ':', '@', ' '], "-");
    ["us-", "eu-", "apac-", "global-", "anthropic-"]
        .into_iter()
        .fold(name.as_str(), |name, prefix| name.strip_prefix(prefix).unwrap_or(name))
        .to_owned()
}

/// Whether what follows a model's name only says which version of it is meant.
fn is_version(rest: &str) -> bool {
    let rest = rest.strip_suffix("[1m]").unwrap_or(rest);
    rest.split('-').filter(|part| !part.is_empty()).all(|part| {
        let is_date = part.chars().all(|char| char.is_ascii_digit());
        let is_number = part.strip_prefix('v').is_some_and(|number| number.parse::<u32>().is_ok());
        VERSION_WORDS.contains(&part) || is_number || is_date
    }) && (rest.is_empty() || rest.split('-').any(is_reporting))
}

/// A lone small number after a name is another model: `opus-4-9` is no version of `opus-4`.
fn is_reporting(part: &str) -> bool {
    part.len() >= MIN_DATE_DIGITS || part.starts_with('v')
}

/// Whether a host is a domain or beneath it.
fn is_of(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(model: &str) -> ModelFacts {
        ModelCatalog::built_in().facts(model, Wire::ChatCompletions, "api.example.com")
    }

    #[test]
    fn the_built_in_table_is_sound() {
        let catalog: ModelCatalog = serde_json::from_str(BUILT_IN).unwrap();
        assert!(catalog.as_of.parse::<jiff::civil::Date>().is_ok(), "{}", catalog.as_of);
        for entry in &catalog.models {
            let (window, output) = (entry.context_window.unwrap(), entry.max_output.unwrap());
            assert!(window > u64::from(output), "{}", entry.beginning);
            if let Some(prices) = &entry.prices {
                assert!(prices.is_sound() && prices.input <= prices.output, "{}", entry.beginning);
                assert!(prices.cache_read.is_none_or(|read| read <= prices.input), "{}", entry.beginning);
            }
            let same =
                catalog.models.iter().filter(|other| normal(&other.beginning) == normal(&entry.beginning));
            assert_eq!(same.count(), 1, "{}", entry.beginning);
        }
    }

    #[test]
    fn models_are_found_by_the_longest_beginning() {
        for (model, window, input) in [
            ("claude-sonnet-5", Some(1_000_000), Some(2.0)),
            ("claude-sonnet-4-5-20250929", Some(200_000), Some(3.0)),
            ("claude-sonnet-4-5@20250929", Some(200_000), Some(3.0)),
            ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", Some(200_000), Some(3.0)),
            ("anthropic/claude-opus-4.7", Some(1_000_000), Some(5.0)),
            ("claude-opus-5[1m]", Some(1_000_000), Some(5.0)),
            ("claude-opus-4-0", Some(200_000), None),
            ("claude-opus-5-9", Some(1_000_000), None),
            ("claude-other-9", Some(200_000), None),
            ("GPT-5", Some(400_000), Some(1.25)),
            ("gpt-5-2025-08-07", Some(400_000), Some(1.25)),
            ("gpt-5.9", Some(400_000), None),
            ("gpt-5-mini", Some(400_000), Some(0.25)),
            ("gpt-4o-latest", Some(128_000), Some(2.5)),
            ("gpt-4omega", Some(128_000), None),
            ("o3-2025-04-16", Some(200_000), Some(2.0)),
            ("o30", None, None),
            ("llama3.1:8b", Some(128_000), None),
            ("somebody-else", None, None),
            ("", None, None),
        ] {
            let facts = facts(model);
            assert_eq!(
                (facts.context_window, facts.prices.map(|prices| prices.input)),
                (window, input),
                "{model}"
            );
        }
    }

    #[test]
    fn prices_of_models_that_anybody_serves_count_at_their_makers_alone() {
        let at = |host| {
            ModelCatalog::built_in().facts("deepseek-chat", Wire::ChatCompletions, host).prices.is_some()
        };
        assert!(at("api.deepseek.com"));
        for elsewhere in ["localhost", "api.notdeepseek.com", "deepseek.com.example.org"] {
            assert!(!at(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn abilities_differ() {
        let gpt = facts("gpt-5.4").capabilities;
        assert!(gpt.max_completion_tokens && !gpt.temperature && gpt.images && gpt.tool_use);
        let unknown = facts("somebody-else").capabilities;
        assert!(!unknown.max_completion_tokens && unknown.temperature && !unknown.images && unknown.tool_use);
        let unknown =
            ModelCatalog::built_in().facts("somebody-else", Wire::AnthropicMessages, "").capabilities;
        assert_eq!(unknown, Capabilities::ALL);
    }

    #[test]
    fn gemini_3_and_later_sign_their_calls() {
        for (model, signs) in [
            ("gemini-3-pro-preview", true),
            ("google/gemini-3.8-flash", true),
            ("gemini-4-ultra", true),
            ("gemini-2.5-pro", false),
            ("gemini-2.0-flash-001", false),
            ("gemini-1.5-pro", false),
            ("gpt-5", false),
        ] {
            assert_eq!(facts(model).capabilities.signed_calls, signs, "{model}");
        }
    }

    #[test]
    fn gpt_5_and_later_take_patches() {
        for (model, takes) in [
            ("gpt-5", true),
            ("openai/gpt-5.6-sol", true),
            ("gpt-5-codex", true),
            ("gpt-6", true),
            ("gpt-4.1", false),
            ("gpt-4o", false),
            ("gpt-oss-120b", false),
            ("o3", false),
            ("claude-sonnet-4-5", false),
        ] {
            assert_eq!(facts(model).capabilities.patches, takes, "{model}");
        }
    }

    #[test]
    fn what_the_user_enters_wins_field_by_field() {
        let own: Vec<CatalogEntry> = serde_json::from_value(serde_json::json!([
            {"match": "gpt-5", "contextWindow": 1000, "capabilities": {"images": false}},
            {"match": "mine", "prices": {"input": 1.0, "output": 2.0}},
        ]))
        .unwrap();
        let catalog = ModelCatalog::with(own);
        let at = |model| catalog.facts(model, Wire::ChatCompletions, "");
        let gpt = at("gpt-5-2025-08-07");
        assert_eq!((gpt.context_window, gpt.max_output), (Some(1000), Some(128_000)));
        assert!(!gpt.capabilities.images && gpt.capabilities.thinking);
        assert_eq!(gpt.prices.map(|prices| prices.input), Some(1.25));
        assert_eq!(at("mine-large").prices.map(|prices| prices.output), Some(2.0));
    }

    #[test]
    fn providers_are_known_by_name_and_alias() {
        let catalog = ModelCatalog::built_in();
        assert_eq!(catalog.provider("moonshot"), catalog.provider("kimi"));
        assert!(catalog.provider("ollama").is_some_and(|ollama| ollama.api_key_env.is_none()));
        assert!(catalog.provider("nobody").is_none());
        for known in &catalog.providers {
            let address = super::super::profile::ServerAddress::read(&known.base_url, known.provider.wire());
            assert_eq!(address.unwrap().base, known.base_url, "{}", known.name);
        }
    }
}
