//! The user's options: what an editor passes in `initializationOptions`.
//!
//! Rule: read as a whole or not at all; an option that cannot be read is reported to the user and never stops the server.

use std::collections::BTreeMap;

use kode_engine::base::mode::Mode;
use kode_engine::config::settings::EditorUpdate;
use kode_engine::model::models::{Pointer, ProfileLayer};
use kode_engine::model::profile::ProfileOptions;
use kode_engine::permission::{Deliveries, EditDeliveryRule};
use serde::Deserialize;
use serde_json::Value;

use crate::client::ClientFacts;

/// What an editor can set in `initializationOptions`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct UserOptions {
    /// The model new sessions use: the name of a profile, of a pointer, or of a model.
    pub profile: Option<String>,
    /// The profile `main`; what is missing comes from the environment.
    pub model: ProfileOptions,
    /// Further profiles by name.
    pub models: BTreeMap<String, ProfileOptions>,
    /// What profiles are used for: `main`, `task`, `compact`, `quick`.
    pub pointers: BTreeMap<Pointer, String>,
    /// The mode new sessions start in; that of the settings files when it is not given.
    pub mode: Option<Mode>,
    /// How changes reach the files; the first rule that matches decides, and where none does the mode.
    pub delivery: Vec<EditDeliveryRule>,
    /// Whether documents that the agent has changed are saved before a command runs; true when it is not said.
    pub save_before_commands: Option<bool>,
    /// Whether changes that wait for a decision are shown as diagnostics.
    pub review_diagnostics: ReviewDiagnostics,
    /// What the client can do and does not tell in its capabilities, in the same form; read with those.
    pub client_capabilities: Value,
    /// Settings as a settings file holds them, of which nobody says whose they are: they narrow and never loosen.
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
    /// In clients that do not hear of changes by events.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl UserOptions {
    /// Reads `initializationOptions`; `null` gives the defaults.
    ///
    /// # Errors
    /// Which option cannot be used and why, for the user.
    pub(crate) fn read(value: &Value) -> Result<Self, String> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let options = Self::deserialize(value).map_err(|error| {
            // The reader quotes texts that are of the wrong type; such a text may be a key.
            let reason = error.to_string();
            let reason = reason.split("string \"").next().unwrap_or_default().trim_end();
            format!("initializationOptions of kode-ls cannot be read and are ignored: {reason}")
        })?;
        match Deliveries::new(options.delivery.clone()) {
            Ok(_) => Ok(options),
            Err(bad) => {
                Err(format!("initializationOptions of kode-ls cannot be used and are ignored: {bad}"))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let options = UserOptions::read(&json!({ "profile": "demo", "mode": "acceptEdits" })).unwrap();
        assert_eq!((options.profile.as_deref(), options.mode), (Some("demo"), Some(Mode::AcceptEdits)));
        let quiet = UserOptions::read(&json!({ "reviewDiagnostics": "off" })).unwrap();
        assert_eq!(quiet.review_diagnostics, ReviewDiagnostics::Off);
        for nothing in [json!(null), json!({})] {
            assert_eq!(UserOptions::read(&nothing).unwrap().mode, None, "{nothing}");
        }
        for wrong in [
            json!({ "mode": 7 }),
            json!({ "reviewDiagnostics": true }),
            json!({ "surprise": 1 }),
            json!("demo"),
        ] {
            assert!(UserOptions::read(&wrong).unwrap_err().contains("initializationOptions"), "{wrong}");
        }
    }
}
