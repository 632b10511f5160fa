//! The settings that say which models there are, and what other agents' files say of it.
//!
//! Rule: what says where a conversation is sent or with which key counts from the user and the administrator alone; a file
//! in the workspace may only name what there is. No key is repeated in reports.

use std::collections::BTreeMap;
use std::time::Duration;

use jsonc_parser::ast::{ObjectProp, Value as Node};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::read::{FileReader, json};
use super::text::{OPTIONS, SettingsText};
use super::{CONFIG, SettingsSources};
use kode_base::paths::AbsPath;
use kode_model::catalog::CatalogEntry;
use kode_model::models::{ModelSources, Pointer, ProfileLayer, PublishedSource};
use kode_model::profile::{HELPER_TTL, KeyHelper, ProfileOptions};
use kode_permission::rules::ProblemSeverity;

/// The file in which Kode keeps its profiles, in the home folder.
const KODE: &str = ".kode.json";
/// Keys of other agents beside a profile, without an effect here.
const FOREIGN: [&str; 12] = [
    "createdAt",
    "lastUsed",
    "isGPT5",
    "validationStatus",
    "lastValidation",
    "cancelled",
    "isFavorite",
    "temperatureOverride",
    "supportsThinking",
    "id",
    "stream",
    "timeout",
];

/// The models of the files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelValues {
    /// `modelProfiles` and `modelPointers` of the user and the administrator, by file, the strongest first.
    pub layers: Vec<ProfileLayer>,
    /// `modelPointers` of the workspace, as far as the user has approved them.
    pub pointers: BTreeMap<Pointer, String>,
    /// `fallbackModel`.
    pub fallback: Option<String>,
    /// `apiKeyHelper`.
    pub helper: Option<String>,
    /// `apiKeyHelperTtlMs`.
    pub helper_ttl: Option<Duration>,
    /// The entries of `modelCatalog`.
    pub catalog: Vec<CatalogEntry>,
    /// The file or address that `modelCatalog` names.
    pub published: Option<String>,
}

impl ModelValues {
    /// The sources of models in these settings, below `own` and above the imported ones.
    #[must_use]
    pub fn sources(&self, own: ProfileLayer, imported: Vec<ProfileLayer>) -> ModelSources {
        let helper = self.helper.clone();
        ModelSources {
            layers: std::iter::once(own).chain(self.layers.iter().cloned()).chain(imported).collect(),
            fallback: self.fallback.clone(),
            helper: helper.map(|command| KeyHelper { command, ttl: self.helper_ttl.unwrap_or(HELPER_TTL) }),
            catalog: self.catalog.clone(),
            published: self.published.clone().map(PublishedSource::At),
        }
    }
}

impl SettingsSources {
    /// The models that the user's files describe as other agents do: Kode's state, and `models` in a `config.json` as Blade
    /// writes them. A file that cannot be read is left out and logged: it is not ours to complain about.
    #[must_use]
    pub fn imported_models(&self) -> Vec<ProfileLayer> {
        let kode = self.home.as_ref().map(|home| home.join(KODE));
        let kode = kode.and_then(|file| Some(of_kode(&file, &object(&file)?)));
        let blade = self.user_folders.iter().map(|folder| folder.join(CONFIG));
        let blade = blade.filter_map(|file| Some(of_blade(&file, &object(&file)?)));
        kode.into_iter().chain(blade).filter(|layer| *layer != ProfileLayer::default()).collect()
    }
}

impl FileReader<'_, '_> {
    /// Takes a setting about models in. False for other settings.
    pub(super) fn model_setting(&mut self, property: &ObjectProp<'_>) -> bool {
        let name = property.name.as_str();
        match name {
            "modelPointers" => self.pointers(property),
            "modelProfiles" | "fallbackModel" | "apiKeyHelper" | "apiKeyHelperTtlMs" | "modelCatalog"
            | "models" | "currentModelId" => {
                if self.is_of_workspace() {
                    let message = format!(
                        "`{name}` is ignored here: files in the workspace cannot say where conversations are sent or with \
                         which key. Set this in your user settings, ~/.kode/settings.json."
                    );
                    self.report(ProblemSeverity::Warning, property.name.range(), message);
                } else {
                    self.own_model_setting(property);
                }
            }
            _ => return false,
        }
        true
    }

    fn own_model_setting(&mut self, property: &ObjectProp<'_>) {
        match property.name.as_str() {
            "modelProfiles" => self.profiles(property),
            "fallbackModel" => {
                if let Some(name) = self.read_model_value(property) {
                    self.settings.values.models.fallback.get_or_insert(name);
                }
            }
            "apiKeyHelper" => {
                if let Some(command) = self.read_model_value(property) {
                    self.settings.values.models.helper.get_or_insert(command);
                }
            }
            "apiKeyHelperTtlMs" => {
                if let Some(millis) = self.read_model_value(property) {
                    self.settings.values.models.helper_ttl.get_or_insert(Duration::from_millis(millis));
                }
            }
            // Read as a whole with those of other agents.
            "models" | "currentModelId" => {}
            _ => self.catalog(property),
        }
    }

    /// `modelPointers`: those of the user apply, those of the workspace once the user has approved them.
    fn pointers(&mut self, property: &ObjectProp<'_>) {
        self.section(property, |reader, property| {
            let name = property.name.as_str();
            let Some(pointer) = Pointer::ALL.into_iter().find(|pointer| pointer.name() == name) else {
                let message =
                    format!("There is no pointer `{name}`; there are main, task, compact and quick.");
                return reader.report(ProblemSeverity::Warning, property.name.range(), message);
            };
            let Some(target) = reader.read_model_value::<String>(property) else { return };
            // Kode writes empty ones.
            if target.is_empty() {
                return;
            }
            if !reader.is_of_workspace() {
                reader.layer().pointers.entry(pointer).or_insert(target);
            } else if reader.is_in_force(&format!("modelPointers.{name}"), &target, property.value.range()) {
                reader.settings.values.models.pointers.entry(pointer).or_insert(target);
            }
        });
    }

    fn profiles(&mut self, property: &ObjectProp<'_>) {
        let named: Vec<(String, &Node<'_>)> = match &property.value {
            Node::Object(object) => object
                .properties
                .iter()
                .map(|property| (property.name.as_str().to_owned(), &property.value))
                .collect(),
            Node::Array(list) => list
                .elements
                .iter()
                .filter_map(|node| {
                    let name = node.as_object().and_then(|object| object.get_string("name"));
                    if name.is_none() {
                        let message = "A profile in a list needs a `name`; this one is ignored.".to_owned();
                        self.report(ProblemSeverity::Warning, node.range(), message);
                    }
                    Some((name?.value.to_string(), node))
                })
                .collect(),
            other => {
                let message =
                    "`modelProfiles` has to be an object by name, or a list of profiles.".to_owned();
                return self.report(ProblemSeverity::Warning, other.range(), message);
            }
        };
        for (name, node) in named {
            let Some(profile) = profile(json(node), false) else { continue };
            if let Err(reason) = &profile {
                let message = format!("The model profile `{name}` cannot be used: {reason}.");
                self.report(ProblemSeverity::Warning, node.range(), message);
            }
            self.layer().profiles.entry(name).or_insert(profile);
        }
    }

    /// `modelCatalog`: an object by model, the place of a published catalog, or a list of entries and one such place.
    fn catalog(&mut self, property: &ObjectProp<'_>) {
        let entries: Vec<(Option<String>, &Node<'_>)> = match &property.value {
            Node::Object(object) => object
                .properties
                .iter()
                .map(|property| (Some(property.name.as_str().to_owned()), &property.value))
                .collect(),
            Node::Array(list) => list.elements.iter().map(|node| (None, node)).collect(),
            place @ Node::StringLit(_) => vec![(None, place)],
            other => {
                let message = "`modelCatalog` has to be an object by model, a list of entries, or the path or address of a \
                               models.dev catalog."
                    .to_owned();
                return self.report(ProblemSeverity::Warning, other.range(), message);
            }
        };
        for (name, node) in entries {
            let mut value = json(node);
            if let (None, Value::String(place)) = (&name, &value) {
                self.settings.values.models.published.get_or_insert_with(|| place.clone());
                continue;
            }
            if let (Some(name), Value::Object(object)) = (name, &mut value) {
                object.insert("match".to_owned(), Value::String(name));
            }
            match read::<CatalogEntry>(value) {
                Ok(entry) if entry.prices.is_none_or(|prices| prices.is_sound()) => {
                    self.settings.values.models.catalog.push(entry);
                }
                Ok(_) => {
                    let message = "This entry is ignored: a price has to be a number from 0 on.".to_owned();
                    self.report(ProblemSeverity::Warning, node.range(), message);
                }
                Err(reason) => {
                    self.report(
                        ProblemSeverity::Warning,
                        node.range(),
                        format!("This entry is ignored: {reason}."),
                    );
                }
            }
        }
    }

    /// The layer of the file that is read.
    fn layer(&mut self) -> &mut ProfileLayer {
        let source =
            self.origin_file().map_or_else(|| "the editor's settings".to_owned(), ToString::to_string);
        let layers = &mut self.settings.values.models.layers;
        let is_new = layers.last().is_none_or(|layer| layer.source != source);
        if is_new {
            layers.push(ProfileLayer { source, ..ProfileLayer::default() });
        }
        let last = layers.len() - 1;
        &mut layers[last]
    }

    fn read_model_value<T: DeserializeOwned>(&mut self, property: &ObjectProp<'_>) -> Option<T> {
        match read(json(&property.value)) {
            Ok(value) => Some(value),
            Err(reason) => {
                let message = format!("`{}` is ignored: {reason}.", property.name.as_str());
                self.report(ProblemSeverity::Warning, property.value.range(), message);
                None
            }
        }
    }
}

/// A profile as it is written; nothing when it is switched off. With `lenient`, unknown keys are left out.
fn profile(value: Value, lenient: bool) -> Option<Result<ProfileOptions, String>> {
    let Value::Object(mut object) = value else { return Some(Err("it is no object".to_owned())) };
    object.remove("name");
    if object.remove("isActive") == Some(Value::Bool(false)) {
        return None;
    }
    for foreign in FOREIGN {
        object.remove(foreign);
    }
    // Empty values of other agents are ignored.
    object.retain(|_, value| !matches!(value, Value::Null) && *value != Value::String(String::new()));
    if lenient {
        object.retain(|name, _| IMPORTED.contains(&name.as_str()));
        let is_effort = |value: &Value| matches!(value.as_str(), Some("low" | "medium" | "high"));
        object.retain(|name, value| name != "reasoningEffort" || is_effort(value));
    }
    Some(read(Value::Object(object)))
}

/// The imported parts of other agents' profiles.
const IMPORTED: [&str; 11] = [
    "provider",
    "modelName",
    "baseURL",
    "apiKey",
    "maxTokens",
    "contextLength",
    "reasoningEffort",
    "temperature",
    "topP",
    "proxy",
    "capabilities",
];

/// Reads a value; the reason why it cannot be read repeats no text of it, which may be a key.
fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| {
        let reason = error.to_string();
        reason
            .split("string \"")
            .next()
            .unwrap_or_default()
            .trim_end()
            .trim_end_matches([':', '.'])
            .to_owned()
    })
}

// -- other agents' files --------------------------------------------------------------------------------------------

/// The object in a file of another agent, if there is one.
fn object(file: &AbsPath) -> Option<Map<String, Value>> {
    let text = match SettingsText::read(file) {
        Ok(text) => text?,
        Err(reason) => {
            tracing::info!(%file, reason, "models are not imported");
            return None;
        }
    };
    let parsed = parse_to_ast(&text.text, &CollectOptions::default(), &OPTIONS);
    match parsed.map(|parsed| parsed.value.as_ref().map(json)) {
        Ok(Some(Value::Object(object))) => Some(object),
        Ok(_) => None,
        Err(error) => {
            tracing::info!(%file, kind = %error.kind(), "models are not imported");
            None
        }
    }
}

fn of_kode(file: &AbsPath, settings: &Map<String, Value>) -> ProfileLayer {
    let mut layer = ProfileLayer { source: file.to_string(), ..ProfileLayer::default() };
    for value in settings.get("modelProfiles").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = value["name"].as_str().or_else(|| value["modelName"].as_str()) else { continue };
        let mut value = value.clone();
        // Kode's values for all of them.
        if let (Value::Object(own), Some(proxy)) = (&mut value, settings.get("proxy")) {
            own.entry("proxy").or_insert_with(|| proxy.clone());
        }
        if let (Value::Object(own), Some(Value::Bool(false))) = (&mut value, settings.get("stream")) {
            own.insert("capabilities".to_owned(), json!({ "streaming": false }));
        }
        if let Some(profile) = profile(value, true) {
            layer.profiles.entry(name.to_owned()).or_insert(profile);
        }
    }
    for pointer in Pointer::ALL {
        let target = settings.get("modelPointers").and_then(|pointers| pointers[pointer.name()].as_str());
        if let Some(target) = target.filter(|target| !target.is_empty()) {
            layer.pointers.insert(pointer, target.to_owned());
        }
    }
    if layer.profiles.is_empty() { ProfileLayer::default() } else { layer }
}

fn of_blade(file: &AbsPath, settings: &Map<String, Value>) -> ProfileLayer {
    let mut layer = ProfileLayer { source: file.to_string(), ..ProfileLayer::default() };
    let current = settings.get("currentModelId").and_then(Value::as_str);
    for value in settings.get("models").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = value["name"].as_str().or_else(|| value["id"].as_str()) else { continue };
        let mut renamed = Map::new();
        for (theirs, ours) in [
            ("provider", "provider"),
            ("apiKey", "apiKey"),
            ("baseUrl", "baseURL"),
            ("model", "modelName"),
            ("temperature", "temperature"),
            ("maxContextTokens", "contextLength"),
            ("maxOutputTokens", "maxTokens"),
        ] {
            let for_all = || settings.get(theirs).filter(|_| matches!(theirs, "temperature"));
            if let Some(value) = value.get(theirs).or_else(for_all) {
                renamed.insert(ours.to_owned(), value.clone());
            }
        }
        if let Some(profile) = profile(Value::Object(renamed), true) {
            layer.profiles.entry(name.to_owned()).or_insert(profile);
            if current.is_some() && value["id"].as_str() == current {
                layer.pointers.insert(Pointer::Main, name.to_owned());
            }
        }
    }
    if layer.profiles.is_empty() { ProfileLayer::default() } else { layer }
}
