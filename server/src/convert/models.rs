//! Model profiles as clients see them.
//!
//! Rule: no key, header or whole address leaves here: of a server its name alone.

use kode_engine::agent::state::spending::Spending;
use kode_engine::base::effort::Effort;
use kode_engine::model::catalog::ModelCatalog;
use kode_engine::model::models::{Models, Pointer, UnusableProfile};
use kode_engine::model::price::Prices;
use kode_engine::model::profile::Profile;
use kode_engine::model::{Capabilities, ModelError, Usage, Wire};
use kode_engine::providers::discovery::{LocalServer, ServedModel};
use kode_protocol as wire;

use crate::convert;

/// All profiles, those that cannot be used included. `active` is the one new sessions use.
#[must_use]
pub fn list(models: &Models, active: &str) -> wire::ListModelsResult {
    let usable = models.profiles().map(|profile| info(models, profile, active));
    let unusable = models.unusable().map(|unusable| broken(unusable, active));
    let mut listed: Vec<_> = usable.chain(unusable).collect();
    if let Some(missing) = models.missing().filter(|_| !listed.iter().any(|info| info.name == active)) {
        let environment = UnusableProfile {
            name: models.default_name().to_owned(),
            source: "the environment".to_owned(),
            error: missing.clone(),
        };
        listed.push(broken(&environment, active));
    }
    listed.sort_by(|one, other| one.name.cmp(&other.name));
    wire::ListModelsResult {
        usable: listed.iter().any(|info| info.active && info.problem.is_none()),
        models: listed,
        pointers: wire::ModelPointers {
            main: models.pointer(Pointer::Main),
            task: models.pointer(Pointer::Task),
            compact: models.pointer(Pointer::Compact),
            quick: models.pointer(Pointer::Quick),
        },
        prices_as_of: ModelCatalog::built_in().as_of().to_owned(),
        catalog: models.published().map(|catalog| wire::CatalogInfo {
            source: catalog.source.clone(),
            models: u64::try_from(catalog.len()).unwrap_or(u64::MAX),
            read_at: catalog.read_at.map(convert::timestamp),
        }),
        problems: models.problems().to_vec(),
    }
}

fn info(models: &Models, profile: &Profile, active: &str) -> wire::ModelInfo {
    wire::ModelInfo {
        name: profile.name.clone(),
        provider: convert::provider(profile.provider).to_owned(),
        model: profile.model.clone(),
        context_window: profile.context_window,
        max_tokens: u64::from(profile.max_tokens),
        active: profile.name == active,
        wire: Some(match profile.wire() {
            Wire::AnthropicMessages => wire::WireFormat::AnthropicMessages,
            Wire::ChatCompletions => wire::WireFormat::ChatCompletions,
            Wire::Responses => wire::WireFormat::Responses,
            Wire::Gemini => wire::WireFormat::Gemini,
            Wire::Ollama => wire::WireFormat::Ollama,
        }),
        host: profile.host(),
        capabilities: Some(capabilities(profile.capabilities)),
        prices: profile.prices.map(prices),
        source: models.source(&profile.name).unwrap_or_default().to_owned(),
        fallback: profile.fallback.as_ref().map(|fallback| fallback.profile.clone()),
        problem: None,
    }
}

fn broken(unusable: &UnusableProfile, active: &str) -> wire::ModelInfo {
    wire::ModelInfo {
        name: unusable.name.clone(),
        provider: String::new(),
        model: String::new(),
        context_window: 0,
        max_tokens: 0,
        active: unusable.name == active,
        wire: None,
        host: String::new(),
        capabilities: None,
        prices: None,
        source: unusable.source.clone(),
        fallback: None,
        problem: Some(wire::ModelProblem {
            message: unusable.error.message.clone(),
            hint: unusable.error.hint().to_owned(),
        }),
    }
}

/// A model as its server reports it, and the usable profile that names it.
#[must_use]
pub fn served(model: &ServedModel, profile: Option<&Profile>) -> wire::ServedModel {
    wire::ServedModel {
        name: model.name.clone(),
        context_window: model.context_window,
        max_tokens: model.max_output.map(u64::from),
        tools: model.tools,
        images: model.images,
        thinking: model.thinking,
        loaded: model.loaded,
        profile: profile.map(|profile| profile.name.clone()),
    }
}

/// A server of this machine and its models, each with the profile that names it.
#[must_use]
pub fn server(server: &LocalServer, profiles: &Models) -> wire::ModelServer {
    let named = |model: &ServedModel| served(model, profiles.profile_of(&server.base_url, &model.name));
    wire::ModelServer {
        provider: server.provider.clone(),
        label: server.label.clone(),
        base_url: server.base_url.clone(),
        profile: None,
        models: server.models.iter().map(named).collect(),
        problem: None,
    }
}

/// Why a server or model cannot be asked, and what to do.
#[must_use]
pub fn problem(error: &ModelError) -> wire::ModelProblem {
    wire::ModelProblem { message: error.message.clone(), hint: error.hint().to_owned() }
}

fn capabilities(capabilities: Capabilities) -> wire::ModelCapabilities {
    wire::ModelCapabilities {
        tools: capabilities.tool_use,
        thinking: capabilities.thinking,
        images: capabilities.images,
    }
}

fn prices(prices: Prices) -> wire::ModelPrices {
    wire::ModelPrices {
        input: prices.input,
        output: prices.output,
        cache_read: prices.cache_read,
        cache_write: prices.cache_write,
    }
}

/// How hard models think.
#[must_use]
pub fn effort(effort: Effort) -> wire::Effort {
    match effort {
        Effort::Low => wire::Effort::Low,
        Effort::Medium => wire::Effort::Medium,
        Effort::High => wire::Effort::High,
    }
}

/// How hard models are to think; `None` as their profiles say.
#[must_use]
pub fn effort_from_wire(effort: wire::EffortChoice) -> Option<Effort> {
    match effort {
        wire::EffortChoice::Auto => None,
        wire::EffortChoice::Low => Some(Effort::Low),
        wire::EffortChoice::Medium => Some(Effort::Medium),
        wire::EffortChoice::High => Some(Effort::High),
    }
}

/// The usage of a session by model.
#[must_use]
pub fn spending(spending: &Spending) -> wire::SessionUsage {
    let mut usage = Usage::default();
    let models = spending.models().map(|(model, spent)| {
        usage += spent.usage;
        wire::ModelUsage {
            model: model.to_owned(),
            calls: spent.calls,
            usage: convert::usage(spent.usage),
            cost: spent.cost.total(),
        }
    });
    let models = models.collect();
    let turns = spending.turns().map(|spent| wire::TurnUsage {
        turn_id: convert::turn_id(&spent.turn),
        usage: convert::usage(spent.usage),
        cost: spent.cost.total(),
    });
    let total = spending.total();
    wire::SessionUsage {
        usage: convert::usage(usage),
        cost: total.total(),
        known_cost: total.usd,
        models,
        turns: turns.collect(),
    }
}
