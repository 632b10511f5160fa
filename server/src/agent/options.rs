//! The user's options: what an editor passes in `initializationOptions`.
//!
//! Rule: an option that cannot be read is reported to the user and ignored. All others count.

use std::collections::BTreeMap;

use kode_engine::base::mode::Mode;
use kode_engine::config::settings::EditorUpdate;
use kode_engine::model::models::{Pointer, ProfileLayer};
use kode_engine::model::profile::ProfileOptions;
use kode_engine::permission::{Deliveries, EditDeliveryRule};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::client::ClientFacts;

/// The options of an editor in `initializationOptions`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct UserOptions {
    /// The model new sessions use: the name of a profile, of a pointer, or of a model.
    pub profile: Option<String>,
    /// The profile `main`; missing parts come from the environment.
    pub model: ProfileOptions,
    /// Further profiles by name.
    pub models: BTreeMap<String, ProfileOptions>,
    /// The purposes of profiles: `main`, `task`, `compact`, `quick`.
    pub pointers: BTreeMap<Pointer, String>,
    /// The mode new sessions start in; that of the settings files when it is not given.
    #[serde(deserialize_with = "mode_of_any_name")]
    pub mode: Option<Mode>,
    /// How changes reach the files; the first rule that matches decides, and where none does the mode.
    pub delivery: Vec<EditDeliveryRule>,
    /// Whether documents that the agent has changed are saved before a command runs; true when it is not said.
    pub save_before_commands: Option<bool>,
    /// Whether changes that wait for a decision are shown as diagnostics.
    pub review_diagnostics: ReviewDiagnostics,
    /// Whether code actions ask about problems and selections; true when it is not said. Read with the capabilities.
    pub ask_actions: Option<bool>,
    /// Abilities of the client that its capabilities lack, in the same form; read with those.
    pub client_capabilities: Value,
    /// Settings of unknown origin: they may restrict but never loosen.
    pub settings: Value,
    /// Settings that are the user's own.
    pub user_settings: Value,
    /// Whether the editor trusts the workspace; while it does not, no approval counts.
    pub workspace_trusted: Option<bool>,
}

/// Whether changes that wait for a decision are shown as diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReviewDiagnostics {
    /// In clients that do not learn of changes by events.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl UserOptions {
    /// Reads `initializationOptions`; `null` gives the defaults. Also returns the problem of each option that is ignored, for
    /// the user.
    pub(crate) fn read(value: &Value) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mut usable = match value {
            Value::Null => Map::new(),
            // Clients written in Lua encode an empty table so.
            Value::Array(list) if list.is_empty() => Map::new(),
            Value::Object(options) => options.clone(),
            other => {
                problems.push(format!(
                    "initializationOptions of kode-ls are ignored: {} is not an object",
                    kind(other)
                ));
                Map::new()
            }
        };
        usable.retain(|name, value| {
            let one = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
            let problem = Self::deserialize(one)
                .map_err(|error| reason(&error))
                .and_then(|options| Deliveries::new(options.delivery).map_err(|bad| bad.to_string()));
            if let Err(problem) = &problem {
                problems.push(format!("initializationOptions.{name} of kode-ls is ignored: {problem}"));
            }
            problem.is_ok()
        });
        match Self::deserialize(Value::Object(usable)) {
            Ok(options) => (options, problems),
            Err(error) => {
                problems.push(format!("initializationOptions of kode-ls are ignored: {}", reason(&error)));
                (Self::default(), problems)
            }
        }
    }

    /// The settings in `initialize`, with the editor's trust in the workspace.
    pub(crate) fn editor_settings(&self, facts: Option<&ClientFacts>) -> EditorUpdate {
        let distrusts = |trusted: Option<bool>| trusted == Some(false);
        EditorUpdate {
            settings: self.settings.clone(),
            user_settings: self.user_settings.clone(),
            is_distrusted: distrusts(self.workspace_trusted)
                || facts.is_some_and(|facts| distrusts(facts.kode.workspace_trusted)),
        }
    }

    /// The model profiles among the options.
    pub(crate) fn models(&self) -> ProfileLayer {
        let mut profiles: BTreeMap<_, _> =
            self.models.iter().map(|(name, profile)| (name.clone(), Ok(profile.clone()))).collect();
        if self.model != ProfileOptions::default() {
            profiles.insert(Pointer::Main.name().to_owned(), Ok(self.model.clone()));
        }
        ProfileLayer { source: "initializationOptions".to_owned(), profiles, pointers: self.pointers.clone() }
    }
}

/// A mode by any of its names.
fn mode_of_any_name<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Mode>, D::Error> {
    let Some(name) = Option::<String>::deserialize(source)? else { return Ok(None) };
    let mode = Mode::parse(&name);
    mode.map(Some).ok_or_else(|| D::Error::custom(format!("there is no mode `{name}`")))
}

/// Why an option cannot be read. The reader quotes texts that are of the wrong type; such a text may be a key.
fn reason(error: &serde_json::Error) -> String {
    let reason = error.to_string();
    reason.split("string \"").next().unwrap_or_default().trim_end().to_owned()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_read_and_modes_have_all_their_names() {
        let read = |value: Value| {
            let (options, problems) = UserOptions::read(&value);
            assert_eq!(problems, Vec::<String>::new(), "{value}");
            options
        };
        let options = read(json!({ "profile": "demo", "mode": "acceptEdits" }));
        assert_eq!((options.profile.as_deref(), options.mode), (Some("demo"), Some(Mode::AcceptEdits)));
        assert_eq!(read(json!({ "mode": "YOLO" })).mode, Some(Mode::BypassPermissions));
        assert_eq!(read(json!({ "reviewDiagnostics": "off" })).review_diagnostics, ReviewDiagnostics::Off);
        for nothing in [json!(null), json!({}), json!([]), json!({ "mode": null })] {
            assert_eq!(read(nothing).mode, None);
        }
    }

    #[test]
    fn a_wrong_option_is_named_and_costs_itself_alone() {
        for (wrong, named) in [
            (json!({ "mode": 7 }), "initializationOptions.mode"),
            (json!({ "mode": "fast" }), "there is no mode `fast`"),
            (json!({ "reviewDiagnostics": true }), "initializationOptions.reviewDiagnostics"),
            (json!({ "askActions": "no" }), "initializationOptions.askActions"),
            (json!({ "surprise": 1 }), "initializationOptions.surprise"),
        ] {
            let mut with_others = wrong.clone();
            with_others["profile"] = "demo".into();
            let (options, problems) = UserOptions::read(&with_others);
            assert_eq!(options.profile.as_deref(), Some("demo"), "{wrong}");
            assert!(problems.len() == 1 && problems[0].contains(named), "{problems:?}");
        }
        let (_, problems) = UserOptions::read(&json!("demo"));
        assert!(problems[0].contains("a string is not an object"), "{problems:?}");
        let secret = json!({ "models": { "main": { "maxTokens": "sk-secret" } } });
        assert!(!UserOptions::read(&secret).1[0].contains("sk-secret"));
    }
}
