//! Language servers as `lspServers` and `.lsp.json` declare them, made ready for use.
//!
//! Rule: parsing only; nothing is started. An entry that cannot be used costs its own server alone, and the error says what to
//! change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::mcp::config::digest;
use crate::plugin::Folders;
use crate::settings::declared::{Approval, Declaration};
use kode_base::paths::AbsPath;
use kode_base::variables;

/// The default of `startupTimeout`.
pub const STARTUP_TIMEOUT: Duration = Duration::from_secs(30);
/// The default of `shutdownTimeout`.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);
/// The default of `maxRestarts`.
pub const MAX_RESTARTS: u32 = 3;

/// No time in an entry is longer.
const MAX_TIME: Duration = Duration::from_secs(600);
/// The most characters of the name of a server.
const MAX_NAME: usize = 100;
/// The greatest `maxRestarts`.
const MOST_RESTARTS: u32 = 100;

/// A language server that can be started.
#[derive(Clone, Debug, PartialEq)]
pub struct LanguageServerDefinition {
    /// The name of its entry.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables of the environment that the entry gives it.
    pub variables: Vec<(String, String)>,
    /// The language ids of its files, by their extension without a dot.
    pub languages: BTreeMap<String, String>,
    /// `initializationOptions`, as they are sent.
    pub initialization_options: Value,
    /// `settings`: the answers to its requests for configuration.
    pub settings: Value,
    /// The folder that it serves; the root of the workspace or project when `None`.
    pub folder: Option<AbsPath>,
    /// Files that mark the root of a project. The outermost folder of the workspace that has one is the root.
    pub root_markers: Vec<String>,
    /// The longest time from its start to its answer to `initialize`.
    pub startup_timeout: Duration,
    /// The time that it has to end by itself.
    pub shutdown_timeout: Duration,
    /// How often it is started again after it ended by itself. 0 means never.
    pub max_restarts: u32,
    /// Whether it runs in the sandbox where there is one.
    pub sandboxed: bool,
    /// Whether it may use the network in the sandbox.
    pub network: bool,
    /// Whether it is started only in a sandbox: no setting names it.
    pub needs_sandbox: bool,
    /// The plugin that brings it, if one does.
    pub plugin: Option<Arc<Folders>>,
    /// A text that differs between any two different entries.
    pub digest: String,
}

/// An entry as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RawServer {
    command: String,
    args: Vec<String>,
    extension_to_language: BTreeMap<String, String>,
    transport: Option<String>,
    env: BTreeMap<String, Value>,
    initialization_options: Value,
    settings: Value,
    workspace_folder: Option<String>,
    root_markers: Vec<String>,
    startup_timeout: Option<u64>,
    shutdown_timeout: Option<u64>,
    restart_on_crash: Option<bool>,
    max_restarts: Option<u32>,
    sandbox: Option<bool>,
    network: Option<bool>,
}

impl LanguageServerDefinition {
    /// Reads an entry of settings or of a plugin. `variable` returns the variables of the environment.
    ///
    /// # Errors
    /// The problems of the entry, and what to change.
    pub fn read(entry: &Declaration, variable: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let name = &entry.name;
        if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(format!("its name has to have 1 to {MAX_NAME} characters"));
        }
        let raw: RawServer = serde_path_to_error::deserialize(&entry.value)
            .map_err(|error| format!("at `{}`: {}", error.path(), error.inner()))?;
        if raw.transport.as_deref().is_some_and(|transport| transport != "stdio") {
            return Err("its `transport` is not supported. Only `stdio` is".to_owned());
        }
        let lookup = |name: &str| {
            let of_plugin = entry.plugin.as_ref().and_then(|plugin| plugin.variable(name));
            of_plugin.or_else(|| variable(name))
        };
        let expand = |field: &str, text: &str| {
            variables::expand(text, &lookup).complete().map_err(|missing| {
                format!("the variable `{missing}` in its `{field}` is not set. `${{{missing}:-…}}` gives it a default")
            })
        };
        let command = expand("command", &raw.command)?;
        if command.trim().is_empty() || command.contains('\0') {
            return Err("it has no `command`".to_owned());
        }
        let languages = raw.extension_to_language.iter().map(|(extension, language)| {
            (extension.trim_start_matches('.').to_lowercase(), language.clone())
        });
        let languages: BTreeMap<_, _> = languages.filter(|(extension, _)| !extension.is_empty()).collect();
        if languages.is_empty() {
            return Err(r#"it has no `extensionToLanguage`, such as `{ ".go": "go" }`"#.to_owned());
        }
        let text_of = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let folder =
            raw.workspace_folder.as_deref().map(|folder| expand("workspaceFolder", folder)).transpose()?;
        let time = |written: Option<u64>, default| {
            written.map_or(default, |milliseconds| Duration::from_millis(milliseconds.max(1)).min(MAX_TIME))
        };
        let restarts = raw.max_restarts.unwrap_or(MAX_RESTARTS).min(MOST_RESTARTS);
        Ok(Self {
            name: name.clone(),
            command,
            arguments: raw.args.iter().map(|text| expand("args", text)).collect::<Result<_, _>>()?,
            variables: raw
                .env
                .iter()
                .filter(|(name, _)| !name.is_empty() && !name.contains(['=', '\0']))
                .map(|(name, value)| Ok((name.clone(), expand(&format!("env.{name}"), &text_of(value))?)))
                .collect::<Result<_, String>>()?,
            languages,
            initialization_options: raw.initialization_options,
            settings: raw.settings,
            folder: folder.map(|folder| entry.root.join(folder)),
            root_markers: raw.root_markers,
            startup_timeout: time(raw.startup_timeout, STARTUP_TIMEOUT),
            shutdown_timeout: time(raw.shutdown_timeout, SHUTDOWN_TIMEOUT),
            max_restarts: if raw.restart_on_crash == Some(false) { 0 } else { restarts },
            sandboxed: raw.sandbox.unwrap_or(true),
            network: raw.network.unwrap_or(false),
            needs_sandbox: false,
            plugin: entry.plugin.clone(),
            digest: digest(name, &entry.value),
        })
    }

    /// The language id of a file, by its extension; `None` for a file that the server does not serve.
    #[must_use]
    pub fn language_of(&self, path: &AbsPath) -> Option<&str> {
        let extension = path.as_path().extension()?.to_str()?.to_lowercase();
        self.languages.get(&extension).map(String::as_str)
    }
}

/// The entries that are in force, one for each name, and the reasons why the others are not.
#[must_use]
pub fn in_force<'d>(
    entries: &'d [Declaration],
    variable: &dyn Fn(&str) -> Option<String>,
) -> (Vec<LanguageServerDefinition>, Vec<(&'d str, String)>) {
    let (mut definitions, mut problems): (Vec<LanguageServerDefinition>, Vec<_>) = (Vec::new(), Vec::new());
    for entry in entries {
        if definitions.iter().any(|known| known.name == entry.name) || is_switched_off(&entry.value) {
            continue;
        }
        let read = match &entry.approval {
            Approval::Waiting(_) => Err("it waits for your approval".to_owned()),
            Approval::NotNeeded | Approval::Approved => LanguageServerDefinition::read(entry, variable),
        };
        match read {
            Ok(definition) => definitions.push(definition),
            Err(reason) => problems.push((entry.name.as_str(), reason)),
        }
    }
    problems.retain(|(name, _)| !definitions.iter().any(|known| known.name == *name));
    (definitions, problems)
}

/// Whether an entry switches its own server off.
#[must_use]
pub fn is_switched_off(value: &Value) -> bool {
    *value == Value::Bool(false) || value.get("enabled") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::TrustRequest;
    use kode_permission::rules::{RuleSource, SettingsLayer};

    fn entry(name: &str, value: Value) -> Declaration {
        Declaration {
            name: name.to_owned(),
            value,
            source: RuleSource { layer: SettingsLayer::User, file: None, place: None },
            root: AbsPath::new("/w").unwrap(),
            approval: Approval::NotNeeded,
            plugin: None,
        }
    }

    fn read(value: Value) -> Result<LanguageServerDefinition, String> {
        let variable = |name: &str| (name == "TOKEN").then(|| "t0ken".to_owned());
        LanguageServerDefinition::read(&entry("go", value), &variable)
    }

    #[test]
    fn an_entry_of_a_plugin_s_file_is_read_whole() {
        let definition = read(json!({
            "command": "gopls", "args": ["serve", "${TOKEN}"], "extensionToLanguage": { ".go": "go", "MOD": "go.mod" },
            "transport": "stdio", "env": { "GOFLAGS": "-mod=${MODE:-mod}", "N": 1 },
            "initializationOptions": { "a": 1 }, "settings": { "gopls": {} }, "workspaceFolder": "sub",
            "startupTimeout": 5000, "shutdownTimeout": 0, "maxRestarts": 7,
        }))
        .unwrap();
        assert_eq!(definition.arguments, ["serve", "t0ken"]);
        assert_eq!(definition.variables[0], ("GOFLAGS".to_owned(), "-mod=mod".to_owned()));
        assert_eq!(definition.language_of(&AbsPath::new("/w/a/GO.MOD").unwrap()), Some("go.mod"));
        assert_eq!(definition.language_of(&AbsPath::new("/w/a/go").unwrap()), None);
        assert_eq!(definition.folder.unwrap().to_string(), "/w/sub");
        let times = (definition.startup_timeout, definition.shutdown_timeout, definition.max_restarts);
        assert_eq!(times, (Duration::from_secs(5), Duration::from_millis(1), 7));
        assert!(definition.sandboxed && !definition.network && !definition.needs_sandbox);
        let once = json!({ "command": "x", "extensionToLanguage": { ".x": "x" }, "restartOnCrash": false });
        assert_eq!(read(once).unwrap().max_restarts, 0);
    }

    #[test]
    fn an_entry_that_cannot_be_used_says_what_to_change() {
        for (value, said) in [
            (json!({ "extensionToLanguage": { ".go": "go" } }), "`command`"),
            (json!({ "command": "gopls" }), "`extensionToLanguage`"),
            (json!({ "command": "gopls", "extensionToLanguage": { ".": "go" } }), "`extensionToLanguage`"),
            (json!({ "command": "${NOWHERE}", "extensionToLanguage": { ".go": "go" } }), "`NOWHERE`"),
            (json!({ "command": "gopls", "transport": "socket" }), "`stdio`"),
            (json!({ "command": "gopls", "args": "serve" }), "`args`"),
        ] {
            let error = read(value.clone()).unwrap_err();
            assert!(error.contains(said), "{value}: {error}");
        }
    }

    #[test]
    fn the_first_entry_of_a_name_applies_unless_it_waits_for_approval() {
        let usable = |command: &str| json!({ "command": command, "extensionToLanguage": { ".go": "go" } });
        let root = AbsPath::new("/w").unwrap();
        let request =
            TrustRequest { file: root.join("s"), root, key: "lspServers.go".into(), text: "{}".into() };
        let waiting =
            Declaration { approval: Approval::Waiting(request), ..entry("go", usable("of-workspace")) };
        let entries = [waiting.clone(), entry("go", usable("own")), entry("go", usable("weaker"))];
        let (definitions, problems) = in_force(&entries, &|_| None);
        assert_eq!(definitions.iter().map(|one| one.command.as_str()).collect::<Vec<_>>(), ["own"]);
        assert_eq!(problems, []);
        let (definitions, problems) = in_force(std::slice::from_ref(&waiting), &|_| None);
        assert!(definitions.is_empty() && problems[0].1.contains("approval"), "{problems:?}");
        let off = entry("go", json!({ "enabled": false }));
        assert_eq!(in_force(&[off], &|_| None), (Vec::new(), Vec::new()));
    }
}
