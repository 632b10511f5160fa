//! Models in settings files, and imports from other agents.

use std::collections::BTreeMap;
use std::time::Duration;

use super::*;
use kode_model::models::{Models, NoConnector, Pointer};

#[test]
fn profiles_are_read_by_name_and_as_a_list() {
    let fixture = Fixture::new();
    fixture.write(
        "home/.kode/settings.json",
        r#"{
            // Kode's form.
            "modelProfiles": [
                {"name": "a", "provider": "openai", "modelName": "m", "baseURL": "http://localhost:1", "apiKey": "",
                 "maxTokens": 8192, "contextLength": 128000, "isActive": true, "createdAt": 1},
                {"name": "off", "provider": "openai", "modelName": "m", "isActive": false},
                {"modelName": "nameless"},
            ],
            "modelPointers": {"main": "a", "quick": "", "odd": "a"},
            "fallbackModel": "b", "apiKeyHelper": "print-key", "apiKeyHelperTtlMs": 1000,
            "modelCatalog": {"m": {"contextWindow": 1000}, "n": {"prices": {"input": -1, "output": 0}}},
        }"#,
    );
    fixture.write(
        "home/.claude/settings.json",
        r#"{"modelProfiles": {"b": {"model": "m", "apiKey": "sk-hush", "maxTokens": "sk-hush"}}, "modelPointers": {"main": "b"}}"#,
    );
    let settings = fixture.load();
    let models = &settings.values.models;
    let names: Vec<Vec<_>> =
        models.layers.iter().map(|layer| layer.profiles.keys().cloned().collect()).collect();
    assert_eq!(names, [vec!["a".to_owned()], vec!["b".to_owned()]]);
    let a = models.layers[0].profiles["a"].as_ref().unwrap();
    assert_eq!((a.max_tokens, a.context_window, &a.api_key), (Some(8192), Some(128_000), &None));
    assert_eq!(models.layers[0].pointers, BTreeMap::from([(Pointer::Main, "a".to_owned())]));
    assert!(models.layers[1].profiles["b"].is_err());
    assert_eq!((models.fallback.as_deref(), models.helper.as_deref()), (Some("b"), Some("print-key")));
    assert_eq!((models.helper_ttl, models.catalog.len()), (Some(Duration::from_secs(1)), 1));
    let lines: Vec<_> = settings.problems.iter().map(|problem| problem.place.unwrap().line).collect();
    assert_eq!(lines, [6, 8, 10, 0], "{:?}", settings.problems);
    assert!(!format!("{:?}", settings.problems).contains("sk-hush"), "{:?}", settings.problems);
}

#[test]
fn files_of_the_workspace_only_name_what_there_is() {
    let fixture = Fixture::new();
    let text = r#"{"modelProfiles": {"a": {"apiKey": "k"}}, "apiKeyHelper": "evil", "fallbackModel": "a",
        "modelCatalog": {}, "modelPointers": {"quick": "a"}}"#;
    let files = ["work/.kode/settings.json", "work/.claude/settings.local.json"]
        .map(|file| fixture.write(file, text));
    let settings = fixture.load();
    assert_eq!(settings.values.models, ModelValues::default());
    let reported =
        settings.problems.iter().filter(|problem| problem.message.contains("user settings")).count();
    assert_eq!((reported, settings.withheld.len()), (8, 2));
    fixture.approve(&settings, &files[0]).unwrap();
    let models = fixture.load().values.models;
    assert_eq!(models.pointers, BTreeMap::from([(Pointer::Quick, "a".to_owned())]));
    assert_eq!(models.layers, []);
}

#[test]
fn other_agents_models_are_taken_over() {
    let fixture = Fixture::new();
    fixture.write(
        "home/.kode.json",
        r#"{
            "numStartups": 3,
            "modelProfiles": [
                {"name": "Kimi", "provider": "kimi", "modelName": "kimi-k3", "baseURL": "https://k.example/v1",
                 "apiKey": "k", "maxTokens": 8192, "contextLength": 1000000, "reasoningEffort": "minimal",
                 "isActive": true, "lastUsed": 5, "whatever": {}}
            ],
            "modelPointers": {"main": "kimi-k3", "task": "", "compact": "kimi-k3", "quick": "gone"}
        }"#,
    );
    fixture.write(
        "home/.blade/config.json",
        r#"{"currentModelId": "1", "models": [
            {"id": "1", "name": "Blade's", "provider": "openai-compatible", "apiKey": "k",
             "baseUrl": "https://b.example/v1", "model": "b", "maxContextTokens": 64000}]}"#,
    );
    let layers = fixture.sources.imported_models();
    let sources = ModelValues::default().sources(Default::default(), layers);
    let models = Models::assemble(sources, &|_| None, Arc::new(NoConnector));
    assert_eq!(models.unusable().count(), 0, "{:?}", models.unusable().collect::<Vec<_>>());
    assert_eq!((models.default_name(), models.pointer(Pointer::Compact)), ("Kimi", "Kimi".to_owned()));
    let blade = models.profile("Blade's").unwrap();
    assert_eq!((blade.context_window, blade.base_url.as_str()), (64_000, "https://b.example/v1"));
    fixture.write("home/.kode.json", "{ broken");
    assert_eq!(fixture.sources.imported_models().len(), 1, "a broken file costs itself alone");
}
