//! `plugin.json`: what a plugin says of itself.
//!
//! Rule: a wrong value disables itself alone and is reported at its place; unknown keys are ignored, and known keys without
//! use are reported. Whether a path may be used is decided by who uses it.

use jsonc_parser::ast::{Object, Value as Node};
use jsonc_parser::common::Ranged;
use serde_json::{Map, Value};

use super::document::{self, PluginDocument};
use super::{FOLDERS, check_name};
use crate::extension::places::ExtensionPart;
use crate::settings::json;
use kode_base::paths::AbsPath;
use kode_permission::rules::{FileRange, ProblemSeverity, SettingsProblem};

/// The name of the file.
pub(super) const FILE: &str = "plugin.json";

/// The keys of a manifest that say what a plugin brings or is: those that a marketplace may say as well.
const KEYS: [&str; 12] = [
    "name",
    "version",
    "description",
    "commands",
    "agents",
    "skills",
    "outputStyles",
    "hooks",
    "mcpServers",
    "lspServers",
    "dependencies",
    "userConfig",
];

/// The known keys without use, and why.
const UNUSED: [(&str, &str); 2] = [
    ("dependencies", "install the plugins that this one needs by hand"),
    ("userConfig", "set variables of the environment instead, under `env` in your settings"),
];

/// A path or an object that a manifest gives for hooks or servers.
#[derive(Clone, Debug)]
pub(super) enum PathOrInline {
    /// The path of a file.
    Path(String, FileRange),
    /// The thing itself: names, values and places.
    Inline(Vec<(String, Value, FileRange)>),
}

/// The manifest of a plugin.
#[derive(Clone, Debug, Default)]
pub(super) struct Manifest {
    pub(super) name: Option<String>,
    pub(super) version: Option<String>,
    pub(super) description: String,
    /// Paths of files and folders of parts.
    pub(super) paths: Vec<(ExtensionPart, String, FileRange)>,
    pub(super) hooks: Vec<PathOrInline>,
    pub(super) servers: Vec<PathOrInline>,
    pub(super) language_servers: Vec<PathOrInline>,
}

/// The manifest of a plugin's folder; `None` without one.
pub(super) fn file_in(root: &AbsPath) -> Option<AbsPath> {
    let files = FOLDERS.map(|folder| root.join(folder).join(FILE));
    files.into_iter().find(|file| file.as_path().symlink_metadata().is_ok())
}

/// Takes a manifest in.
pub(super) fn take(document: &mut PluginDocument<'_>, object: &Object<'_>) -> Manifest {
    let mut manifest = Manifest::default();
    for property in &object.properties {
        let (name, node) = (property.name.as_str(), &property.value);
        match name {
            "name" => manifest.name = document.text(property),
            "version" => manifest.version = document.text(property),
            "description" => manifest.description = document.text(property).unwrap_or_default(),
            "commands" => manifest.paths(document, ExtensionPart::Commands, name, node),
            "agents" => manifest.paths(document, ExtensionPart::Agents, name, node),
            "skills" => manifest.paths(document, ExtensionPart::Skills, name, node),
            "outputStyles" => manifest.paths(document, ExtensionPart::Styles, name, node),
            "hooks" => {
                let given = given(document, name, node);
                manifest.hooks.extend(given);
            }
            "mcpServers" => {
                let given = given(document, name, node);
                manifest.servers.extend(given);
            }
            "lspServers" => {
                let given = given(document, name, node);
                manifest.language_servers.extend(given);
            }
            _ => {
                if let Some((_, why)) = UNUSED.iter().find(|(unused, _)| *unused == name) {
                    let message = format!("`{name}` is not in use: {why}.");
                    document.report(ProblemSeverity::Information, property.name.range(), message);
                }
            }
        }
    }
    let wrong = match &manifest.name {
        None => Some("This plugin is not used: its manifest has no `name`.".to_owned()),
        Some(name) => check_name(name).err().map(|reason| format!("This plugin is not used: {reason}.")),
    };
    if let Some(message) = wrong {
        let named = object.properties.iter().find(|property| property.name.as_str() == "name");
        document.report(ProblemSeverity::Error, named.map_or(object.range(), |named| named.range()), message);
    }
    manifest
}

impl Manifest {
    fn paths(&mut self, document: &mut PluginDocument<'_>, part: ExtensionPart, name: &str, node: &Node<'_>) {
        let paths = document.texts(name, node);
        self.paths.extend(paths.into_iter().map(|(path, place)| (part, path, place)));
    }
}

/// Hooks or servers: a path, a list of paths, or the thing itself.
fn given(document: &mut PluginDocument<'_>, name: &str, node: &Node<'_>) -> Vec<PathOrInline> {
    match node {
        Node::Object(object) => vec![PathOrInline::Inline(entries(document, object))],
        other => {
            let paths = document.texts(name, other).into_iter();
            paths.map(|(path, place)| PathOrInline::Path(path, place)).collect()
        }
    }
}

/// The entries of an object with their places.
pub(super) fn entries(document: &PluginDocument<'_>, object: &Object<'_>) -> Vec<(String, Value, FileRange)> {
    let entry = |property: &jsonc_parser::ast::ObjectProp<'_>| {
        let place = document.place(property.value.range());
        (property.name.as_str().to_owned(), json(&property.value), place)
    };
    object.properties.iter().map(entry).collect()
}

/// The problems of a manifest that is there, and what it says.
pub(super) fn read(
    root: &AbsPath,
    problems: &mut Vec<SettingsProblem>,
) -> Option<(AbsPath, Option<Manifest>)> {
    let file = file_in(root)?;
    let manifest = document::read(&file, root, problems, take);
    Some((file, manifest))
}

/// A manifest from what a marketplace says of a plugin that has none of its own.
pub(super) fn from_marketplace(said: &Value) -> Value {
    let said = said.as_object().into_iter().flatten();
    let kept = said.filter(|(name, _)| KEYS.contains(&name.as_str()));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}
