//! The table of keys, and its derived data.

use std::collections::BTreeSet;
use std::path::Path;

use super::*;

#[test]
fn every_key_stands_there_once_and_is_no_section_of_another() {
    let mut seen = BTreeSet::new();
    for key in KEYS {
        assert!(seen.insert(key.path), "{} stands there twice", key.path);
        assert!(!key.doc.ends_with('.') && !key.doc.is_empty(), "{}", key.path);
        let inside = format!("{}.", key.path);
        assert!(KEYS.iter().all(|other| !other.path.starts_with(&inside)), "{}", key.path);
        if let Some(default) = key.default_value() {
            assert_eq!(key.shape.check(&default), Ok(()), "{}", key.path);
        }
        assert!(key.default.is_empty() || key.default_value().is_some(), "{}", key.path);
    }
}

#[test]
fn paths_lead_to_keys_into_keys_to_sections_and_to_slips() {
    assert!(matches!(find("permissions"), KeyMatch::Section));
    assert!(matches!(find("permissions.allow"), KeyMatch::Key(key) if key.name() == "allow"));
    assert!(matches!(find("permission"), KeyMatch::Nothing(None)));
    let slip = |path: &str| match find(path) {
        KeyMatch::Nothing(slip) => slip.map(|key| key.path),
        KeyMatch::Key(_) | KeyMatch::Section => Some("is there"),
    };
    for (path, expected) in [
        ("permissions.alow", Some("permissions.allow")),
        ("permissions.Deny", Some("permissions.deny")),
        ("outputstyle", Some("outputStyle")),
        ("modell", Some("model")),
        ("envs", Some("env")),
        ("my", None),
        ("somethingElse", None),
    ] {
        assert_eq!(slip(path), expected, "{path}");
    }
    let (key, name) = key_of("env.A.B").unwrap();
    assert_eq!((key.path, name), ("env", Some("A.B")));
    assert_eq!(
        key_of("modelProfiles.local").map(|(key, name)| (key.path, name)),
        Some(("modelProfiles", Some("local")))
    );
    assert!(key_of("env.").is_none() && key_of("language.x").is_none() && key_of("permissions").is_none());
}

#[test]
fn values_fit_their_shapes_or_it_is_said_what_would() {
    use serde_json::json;
    for (path, good, bad) in [
        ("sandbox.enabled", json!(true), json!("true")),
        ("tools.maxConcurrency", json!(1), json!(0)),
        ("autoCompactThreshold", json!(0.5), json!(2)),
        ("maxTurns", json!(-1), json!(1.5)),
        ("maxCostUsd", json!(0.5), json!(0)),
        ("language", json!("German"), json!(1)),
        ("effortLevel", json!("low"), json!("lower")),
        ("permissions.deny", json!(["Bash"]), json!(["Bash", 1])),
        ("env", json!({ "A": "b" }), json!({ "A": 1 })),
        ("mcpServers", json!({ "a": {} }), json!({ "a": [] })),
        ("hooks", json!({ "Stop": [] }), json!({ "Stop": {} })),
        ("sensitiveFiles", json!([{}]), json!([""])),
    ] {
        let key = key(path).unwrap();
        assert_eq!(key.shape.check(&good), Ok(()), "{path}");
        assert!(key.shape.check(&bad).unwrap_err().starts_with("write "), "{path}");
    }
}

#[test]
fn the_schema_in_the_repository_is_fresh() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..").join(SCHEMA_FILE);
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    let made = format!("{:#}\n", schema());
    assert!(kept == made, "run `cargo run -- config schema > {SCHEMA_FILE}` and commit it");
}

#[test]
fn the_documentation_lists_every_key_as_the_table_has_it() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let text = std::fs::read_to_string(file).unwrap();
    for key in KEYS.iter().filter(|key| key.is_in_use()) {
        let reach = match key.reach {
            KeyReach::Everywhere => "at once",
            KeyReach::Approved => "approved",
            KeyReach::Loosens => "loosens",
            KeyReach::Own => "own",
            KeyReach::Ignored(_) => continue,
        };
        let row = format!("| `{}` | {reach} | {} |", key.path, key.doc);
        assert!(text.contains(&row), "server/docs/configuration.md lacks this row:\n{row}");
    }
}
