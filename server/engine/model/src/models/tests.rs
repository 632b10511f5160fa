//! Profiles from several places, and names that are looked up.

use serde_json::json;

use super::*;
use crate::fallback::Trigger;

fn layer(source: &str, profiles: serde_json::Value, pointers: &[(Pointer, &str)]) -> ProfileLayer {
    let profiles = profiles.as_object().unwrap().iter().map(|(name, options)| {
        (name.clone(), serde_json::from_value(options.clone()).map_err(|error| error.to_string()))
    });
    ProfileLayer {
        source: source.to_owned(),
        profiles: profiles.collect(),
        pointers: pointers.iter().map(|(pointer, name)| (*pointer, (*name).to_owned())).collect(),
    }
}

fn assemble(layers: Vec<ProfileLayer>, variables: &[(&str, &str)]) -> Models {
    let lookup =
        |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Models::assemble(ModelSources { layers, ..ModelSources::default() }, &lookup, Arc::new(NoConnector))
}

fn names(models: &Models) -> Vec<&str> {
    models.profiles().map(|profile| profile.name.as_str()).collect()
}

const KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "k");

#[test]
fn the_environment_is_main_where_nobody_says_more() {
    let models = assemble(vec![], &[KEY]);
    assert_eq!(names(&models), ["demo", "main"]);
    assert_eq!((models.default_name(), models.source("main")), ("main", Some("the environment")));
    for pointer in Pointer::ALL {
        assert_eq!(models.pointer(pointer), "main", "{pointer:?}");
    }
    let none = assemble(vec![], &[]);
    assert_eq!((none.default_name(), names(&none)), ("main", vec!["demo"]));
    assert!(none.missing().unwrap().message.contains("ANTHROPIC_API_KEY"));
}

#[test]
fn the_strongest_place_counts_for_a_name_whole() {
    let models = assemble(
        vec![
            layer("editor", json!({"a": {"model": "strong", "apiKey": "k"}}), &[]),
            layer(
                "settings",
                json!({"a": {"model": "weak", "apiKey": "k", "maxTokens": 5}, "b": {"model": "b", "apiKey": "k"}}),
                &[
                    (Pointer::Main, "b"),
                    (Pointer::Quick, "a"),
                    (Pointer::Task, "weak"),
                    (Pointer::Compact, "strong"),
                ],
            ),
        ],
        &[KEY],
    );
    assert_eq!(names(&models), ["a", "b", "demo", "environment"]);
    assert_eq!(models.profile("a").unwrap().model, "strong");
    assert_ne!(models.profile("a").unwrap().max_tokens, 5);
    assert_eq!((models.source("a"), models.source("b")), (Some("editor"), Some("settings")));
    let pointed: Vec<_> = Pointer::ALL.iter().map(|pointer| models.pointer(*pointer)).collect();
    assert_eq!(pointed, ["b", "b", "a", "a"], "main, task to nothing, compact by a model's name, quick");
    assert!(models.problems()[0].contains("`weak`"), "{:?}", models.problems());
}

#[test]
fn a_main_profile_of_a_stronger_place_beats_a_pointer_of_a_weaker_one() {
    let main = |model| json!({"main": {"model": model, "apiKey": "k"}});
    let other = layer("settings", json!({"b": {"model": "b", "apiKey": "k"}}), &[(Pointer::Main, "b")]);
    let models = assemble(vec![layer("editor", main("mine"), &[]), other.clone()], &[]);
    assert_eq!((models.default_name(), models.missing().is_none()), ("main", true));
    let models = assemble(vec![other, layer("imported", main("theirs"), &[])], &[]);
    assert_eq!(models.default_name(), "b");
}

#[test]
fn a_bad_profile_costs_itself_alone_and_says_why() {
    let models = assemble(
        vec![
            layer(
                "settings",
                json!({
                    "bad": {"apiKeyEnv": "NOT_SET"}, "worse": {"surprise": 1},
                    "good": {"model": "g", "apiKey": "k"},
                }),
                &[],
            ),
            layer("imported", json!({"bad": {"model": "b", "apiKey": "k"}}), &[]),
        ],
        &[KEY],
    );
    assert_eq!(names(&models), ["demo", "good", "main"]);
    let unusable: Vec<_> = models.unusable().map(|unusable| (&*unusable.name, &*unusable.source)).collect();
    assert_eq!(unusable, [("bad", "settings"), ("worse", "settings")]);
    assert!(models.profile("bad").unwrap_err().message.contains("NOT_SET"));
    assert!(models.resolve("bad").is_err(), "a weaker profile of that name is another one");
}

#[test]
fn names_are_looked_up_from_the_exact_to_the_alike() {
    let profiles = json!({
        "fast": {"model": "claude-haiku-4-5", "apiKey": "k"},
        "sonnet": {"model": "other-model", "apiKey": "k"},
        "main": {"model": "claude-opus-5", "apiKey": "k"},
    });
    let models = assemble(vec![layer("settings", profiles, &[(Pointer::Quick, "fast")])], &[]);
    for (name, expected) in [
        ("fast", Some("fast")),
        ("sonnet", Some("sonnet")),
        ("opus", Some("main")),
        ("haiku", Some("fast")),
        ("quick", Some("fast")),
        ("task", Some("main")),
        ("claude-opus-5", Some("main")),
        ("haiku-4-5", Some("fast")),
        ("nothing", None),
        ("", None),
    ] {
        assert_eq!(models.resolve(name).ok().as_deref(), expected, "{name}");
    }
    let own = BTreeMap::from([(Pointer::Main, "fast".to_owned()), (Pointer::Task, "gone".to_owned())]);
    assert_eq!(models.resolve_with("opus", &own).unwrap(), "fast");
    assert_eq!(models.pointer_with(Pointer::Task, &own), "main", "one that leads nowhere is not said");
}

#[test]
fn fallbacks_lead_to_profiles_and_never_to_themselves() {
    let profiles = json!({
        "main": {"model": "m", "apiKey": "k", "fallback": {"profile": "other", "triggers": ["refusal"]}},
        "other": {"model": "o", "apiKey": "k"},
        "lost": {"model": "l", "apiKey": "k", "fallback": "nobody"},
    });
    let layers = vec![layer("settings", profiles, &[])];
    let sources = ModelSources { layers, fallback: Some("other".to_owned()), ..ModelSources::default() };
    let models = Models::assemble(sources, &|_| None, Arc::new(NoConnector));
    let fallback = |name| models.profile(name).unwrap().fallback.clone();
    assert_eq!(fallback("main").unwrap().triggers, [Trigger::Refusal]);
    assert_eq!(fallback("other"), None);
    assert_eq!(fallback("demo").unwrap().profile, "other");
    assert_eq!(fallback("lost"), None);
    assert!(models.problems()[0].contains("`nobody`"), "{:?}", models.problems());
}

#[test]
fn keys_and_headers_are_withheld() {
    let profiles = json!({"a": {"model": "m", "apiKey": "one", "headers": {"x-key": "two"}}});
    let models = assemble(vec![layer("settings", profiles, &[])], &[]);
    assert_eq!(models.secrets(), [Secret::new("one"), Secret::new("two")]);
}
