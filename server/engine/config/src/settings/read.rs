//! One settings file: from its text to rules, values and problems.
//!
//! Rule: one bad value disables itself alone, and is reported at its place. From a file in the workspace, what loosens
//! counts only if the user has approved that very text; what narrows always counts.

use jsonc_parser::ast::{Array, Object, ObjectProp, StringLit, Value as Node};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, parse_to_ast};
use serde_json::{Map, Value};

use super::text::{OPTIONS, SettingsText};
use super::trust::{Trust, TrustRequest};
use super::values::{SensitiveFile, SourcedValue, StatedProfile, StatedRemote, append, merge};
use super::{CONFIG, FOREIGN_CONFIG_FOLDER, Settings, WithheldSetting};
use crate::plugin::installed::InstalledPlugins;
use crate::sandbox_profile::is_profile_name;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_base::variables::{ExpandedText, expand};
use kode_permission::Sensitivity;
use kode_permission::rules::{
    Behavior, Order, PlacedRule, ProblemSeverity, Rule, RuleSource, SettingsLayer, SettingsProblem,
};

/// The mode of other agents in which a classifier decides.
const CLASSIFIER: &str = "auto";

/// A file and its state before it is read.
pub(super) struct FileOrigin<'a> {
    /// `None` for what the editor says.
    pub(super) file: Option<&'a AbsPath>,
    pub(super) layer: SettingsLayer,
    /// The base of `/x` in its rules.
    pub(super) root: &'a AbsPath,
    pub(super) owner: FileOwner<'a>,
    pub(super) home: Option<&'a AbsPath>,
    pub(super) trust: &'a Trust,
    /// The plugins there are.
    pub(super) installed: &'a InstalledPlugins,
    /// The value of a variable of the environment.
    pub(super) variable: fn(&str) -> Option<String>,
}

/// The session of the settings they are.
#[derive(Clone, Copy)]
pub(super) enum FileOwner<'a> {
    /// The user's or the administrator's.
    Person,
    /// The settings of a workspace folder; loosening values wait for approval.
    Workspace(&'a AbsPath),
    /// Of unknown origin, so that they narrow and never loosen.
    Unknown,
}

/// Takes a file in. Files are given from the strongest to the weakest.
pub(super) fn read(origin: &FileOrigin<'_>, text: &SettingsText, settings: &mut Settings) {
    let parsed = match parse_to_ast(&text.text, &CollectOptions::default(), &OPTIONS) {
        Ok(parsed) => parsed,
        Err(error) => {
            let place = Some(text.place(error.range()));
            settings.lose(SettingsProblem {
                file: origin.file.cloned(),
                place,
                severity: ProblemSeverity::Error,
                message: broken(&format!("{} here", error.kind())),
            });
            return;
        }
    };
    let mut reader = FileReader::new(origin, text, settings);
    match parsed.value {
        Some(Node::Object(object)) => reader.file(&object),
        Some(other) => {
            let range = other.range();
            reader.lose(range, broken("it holds something else than an object"));
        }
        // An empty file says nothing.
        None => {}
    }
}

/// The report about a file that cannot be used.
pub(super) fn broken(reason: &str) -> String {
    format!(
        "These settings are not in force: {reason}. Until that is repaired, the rules of this file, those that deny \
         included, protect nothing."
    )
}

pub(super) struct FileReader<'a, 's> {
    origin: &'a FileOrigin<'a>,
    text: &'a SettingsText,
    pub(super) settings: &'s mut Settings,
}

impl<'a, 's> FileReader<'a, 's> {
    /// A reader of one file.
    pub(super) fn new(
        origin: &'a FileOrigin<'a>,
        text: &'a SettingsText,
        settings: &'s mut Settings,
    ) -> Self {
        Self { origin, text, settings }
    }
}

impl FileReader<'_, '_> {
    fn file(&mut self, object: &Object<'_>) {
        let before = self.mark();
        for property in self.properties(object) {
            match property.name.as_str() {
                "permissions" => self.section(property, Self::permission),
                // As Blade calls it.
                "permissionMode" => self.default_mode(property),
                "sandbox" => self.section(property, Self::sandbox),
                "sensitiveFiles" => self.list(property, Self::sensitive_file),
                "tools" => self.section(property, Self::tool_setting),
                "webSearch" => self.web_search(property),
                "telemetry" => self.telemetry(property),
                "attribution" => self.section(property, Self::attribution),
                // Its servers are read with those of other files, and those alone.
                "mcpServers" if self.is_servers_file() => {}
                _ if self.model_setting(property) || self.declaration(property) => {}
                _ => self.preference(property),
            }
        }
        self.survey(object, before);
    }

    fn permission(&mut self, property: &ObjectProp<'_>) {
        match property.name.as_str() {
            "deny" => self.rules(Behavior::Deny, property),
            "ask" => self.rules(Behavior::Ask, property),
            "allow" => self.rules(Behavior::Allow, property),
            "defaultMode" => self.default_mode(property),
            "additionalDirectories" => self.list(property, Self::additional_directory),
            "order" => self.order(property),
            "disableBypassPermissionsMode" => match &property.value {
                Node::StringLit(text) if text.value == "disable" => {
                    self.settings.values.is_bypass_disabled = true;
                }
                other => self
                    .lose(other.range(), "Write `\"disable\"`; nothing else has a meaning here.".to_owned()),
            },
            _ => {}
        }
    }

    fn rules(&mut self, behavior: Behavior, property: &ObjectProp<'_>) {
        let Node::Array(list) = &property.value else {
            let message = format!("`{}` has to be a list of rules; none of it is in force.", behavior.name());
            return self.bad(behavior, property.value.range(), message);
        };
        for element in &list.elements {
            match element {
                Node::StringLit(text) => self.rule(behavior, text),
                other => {
                    let message = "A rule has to be a text, as in `\"Read(./secrets)\"`.".to_owned();
                    self.bad(behavior, other.range(), message);
                }
            }
        }
    }

    fn rule(&mut self, behavior: Behavior, text: &StringLit<'_>) {
        let parsed = Rule::parse(&text.value).and_then(|parsed| parsed.0.check(behavior).map(|()| parsed));
        let (rule, note) = match parsed {
            Ok(parsed) => parsed,
            Err(error) => {
                let effect = match behavior {
                    Behavior::Deny => "denies nothing",
                    Behavior::Ask => "asks for nothing",
                    Behavior::Allow => "allows nothing",
                };
                let message = format!("This rule {effect}: {error}.");
                return if error.is_about_unknown_tool() {
                    self.report(ProblemSeverity::Warning, text.range, message);
                } else {
                    self.bad(behavior, text.range, message);
                };
            }
        };
        if let Some(note) = note {
            self.report(ProblemSeverity::Warning, text.range, format!("In this rule, {note}."));
        }
        let root = Some(self.origin.root.clone());
        let placed = PlacedRule { behavior, rule, source: self.source(text.range), root };
        let key = format!("permissions.{}", behavior.name());
        if behavior == Behavior::Allow && !self.is_in_force(&key, &text.value, text.range) {
            self.settings.untrusted.push(placed);
        } else {
            self.settings.rules.push(placed);
        }
    }

    fn default_mode(&mut self, property: &ObjectProp<'_>) {
        let range = property.value.range();
        let Some(name) = self.text(&property.value) else { return };
        if name == CLASSIFIER {
            let message = "kode-ls has no mode in which a classifier decides; sessions start in `default`.";
            return self.report(ProblemSeverity::Information, range, message.to_owned());
        }
        let Some(mode) = Mode::parse(&name) else {
            return self.report(
                ProblemSeverity::Warning,
                range,
                format!("There is no mode `{name}`; it is ignored."),
            );
        };
        if mode == Mode::BypassPermissions && self.is_of_workspace() {
            let message =
                "Files in the workspace cannot switch permissions off; set this in your user settings.";
            return self.report(ProblemSeverity::Warning, range, message.to_owned());
        }
        if self.is_in_force("permissions.defaultMode", &name, range) {
            let value = self.sourced(mode, range);
            self.settings.values.default_mode.get_or_insert(value);
        }
    }

    /// `permissions.order`: Blade's lets more run unasked.
    fn order(&mut self, property: &ObjectProp<'_>) {
        let range = property.value.range();
        let Some(name) = self.text(&property.value) else { return };
        let order = match name.as_str() {
            "default" => Order::AskFirst,
            "blade" => Order::AllowFirst,
            _ => {
                let message = "Write `\"default\"` or `\"blade\"`; it is ignored.".to_owned();
                return self.report(ProblemSeverity::Warning, range, message);
            }
        };
        if order == Order::AskFirst || self.is_in_force("permissions.order", &name, range) {
            self.settings.values.order.get_or_insert(order);
        }
    }

    fn additional_directory(&mut self, node: &Node<'_>) {
        let Some(text) = self.string(node) else { return };
        let whole = self.expanded(&text, node.range());
        let folder = match whole.strip_prefix("~/") {
            Some(rest) => self.origin.home.map(|home| home.join(rest)),
            None if whole == "~" => self.origin.home.cloned(),
            None if whole.is_empty() || whole.starts_with('~') => None,
            None => Some(self.origin.root.join(&whole)),
        };
        let Some(folder) = folder else {
            let message = "Write a folder: a whole path, one relative to this workspace, or one after `~/`.";
            return self.report(ProblemSeverity::Warning, node.range(), message.to_owned());
        };
        if self.is_in_force("permissions.additionalDirectories", &text, node.range()) {
            // Whole by now, so that it is the same folder whichever file says so.
            let item = SourcedValue { root: None, ..self.sourced(folder, node.range()) };
            append(&mut self.settings.values.additional_directories, item);
        }
    }

    fn sandbox(&mut self, property: &ObjectProp<'_>) {
        match property.name.as_str() {
            "enabled" => {
                if let Some(value) = self.switch("sandbox.enabled", property, false) {
                    self.settings.values.sandbox.enabled.get_or_insert(value);
                }
            }
            "autoAllowBashIfSandboxed" => {
                if let Some(value) = self.switch("sandbox.autoAllowBashIfSandboxed", property, true) {
                    self.settings.values.sandbox.auto_allow_bash.get_or_insert(value);
                }
            }
            "allowUnsandboxedCommands" => {
                if let Some(value) = self.switch("sandbox.allowUnsandboxedCommands", property, true) {
                    self.settings.values.sandbox.allow_unsandboxed.get_or_insert(value);
                }
            }
            "excludedCommands" => self.list(property, |reader, node| {
                // A pattern of commands may be about variables.
                if let Some(item) = reader.loosening_as_written("sandbox.excludedCommands", node) {
                    append(&mut reader.settings.values.sandbox.excluded_commands, item);
                }
            }),
            "network" => self.section(property, Self::network),
            "filesystem" => self.section(property, Self::file_system),
            "profiles" if self.is_of_workspace() => {
                let message =
                    "Files in the workspace cannot define sandbox profiles; set this in your user settings.";
                self.report(ProblemSeverity::Warning, property.value.range(), message.to_owned());
            }
            "profiles" => self.section(property, Self::sandbox_profile),
            "remote" | "clientTerminal" if self.is_of_workspace() => {
                let message =
                    "Files in the workspace cannot say where commands run; set this in your user settings.";
                self.report(ProblemSeverity::Warning, property.value.range(), message.to_owned());
            }
            "clientTerminal" => {
                if let Some(value) = self.switch("sandbox.clientTerminal", property, true) {
                    self.settings.values.sandbox.client_terminal.get_or_insert(value);
                }
            }
            "remote" if self.settings.values.sandbox.remote.is_none() => {
                let mut remote = StatedRemote::default();
                self.section(property, |reader, property| reader.entry_of_remote(property, &mut remote));
                self.settings.values.sandbox.remote = Some(self.sourced(remote, property.value.range()));
            }
            _ => {}
        }
    }

    fn entry_of_remote(&mut self, property: &ObjectProp<'_>, remote: &mut StatedRemote) {
        let list = match property.name.as_str() {
            "engine" => &mut remote.engine,
            "options" => &mut remote.options,
            "command" => &mut remote.command,
            "image" => {
                remote.image = self.text(&property.value);
                return;
            }
            other => {
                let message =
                    format!("`{other}` is ignored: sandbox.remote has engine, image, options and command.");
                return self.report(ProblemSeverity::Warning, property.name.range(), message);
            }
        };
        self.list(property, |reader, node| list.extend(reader.text(node)));
    }

    /// A profile of the sandbox. Of each name the strongest file counts.
    fn sandbox_profile(&mut self, property: &ObjectProp<'_>) {
        let name = property.name.as_str().to_owned();
        if !is_profile_name(&name) {
            let message = format!(
                "`{name}` cannot be the name of a sandbox profile: take up to 40 letters, digits, `-`, `_` and `.`, and not \
                 `default`."
            );
            return self.report(ProblemSeverity::Warning, property.name.range(), message);
        }
        if self.settings.values.sandbox.profiles.contains_key(&name) {
            return;
        }
        let mut profile = StatedProfile::default();
        self.section(property, |reader, property| reader.entry_of_profile(property, &mut profile));
        self.settings.values.sandbox.profiles.insert(name, profile);
    }

    fn entry_of_profile(&mut self, property: &ObjectProp<'_>, profile: &mut StatedProfile) {
        match property.name.as_str() {
            "description" => profile.description = self.text(&property.value).unwrap_or_default(),
            "readOnly" => {
                if let Some(value) = self.switch("sandbox.profiles", property, false) {
                    profile.is_read_only = value;
                }
            }
            "allowedDomains" => {
                let mut hosts = Vec::new();
                self.list(property, |reader, node| hosts.extend(reader.narrowing(node)));
                profile.allowed_domains = Some(hosts);
            }
            "allowWrite" => {
                self.list(property, |reader, node| profile.allow_write.extend(reader.narrowing(node)));
            }
            other => {
                let message = format!(
                    "`{other}` is ignored: a sandbox profile has description, readOnly, allowedDomains and allowWrite."
                );
                self.report(ProblemSeverity::Warning, property.name.range(), message);
            }
        }
    }

    fn network(&mut self, property: &ObjectProp<'_>) {
        match property.name.as_str() {
            "allowedDomains" => self.list(property, |reader, node| {
                if let Some(item) = reader.loosening("sandbox.network.allowedDomains", node) {
                    append(&mut reader.settings.values.sandbox.allowed_domains, item);
                }
            }),
            "deniedDomains" => self.list(property, |reader, node| {
                if let Some(item) = reader.narrowing(node) {
                    append(&mut reader.settings.values.sandbox.denied_domains, item);
                }
            }),
            "allowLocalBinding" => {
                if let Some(value) = self.switch("sandbox.network.allowLocalBinding", property, true) {
                    self.settings.values.sandbox.allow_local_binding.get_or_insert(value);
                }
            }
            _ => {}
        }
    }

    fn file_system(&mut self, property: &ObjectProp<'_>) {
        match property.name.as_str() {
            "allowWrite" => self.list(property, |reader, node| {
                if let Some(item) = reader.loosening("sandbox.filesystem.allowWrite", node) {
                    append(&mut reader.settings.values.sandbox.allow_write, item);
                }
            }),
            "denyWrite" => self.list(property, |reader, node| {
                if let Some(item) = reader.narrowing(node) {
                    append(&mut reader.settings.values.sandbox.deny_write, item);
                }
            }),
            "denyRead" => self.list(property, |reader, node| {
                if let Some(item) = reader.narrowing(node) {
                    append(&mut reader.settings.values.sandbox.deny_read, item);
                }
            }),
            _ => {}
        }
    }

    fn sensitive_file(&mut self, node: &Node<'_>) {
        let range = node.range();
        let text = |name| node.as_object()?.get_string(name).map(|text| text.value.to_string());
        let (Some(pattern), Some(level)) = (text("pattern"), text("level")) else {
            let message =
                "Write `{ \"pattern\": \"…\", \"level\": \"high\" }`; the level may be medium or none, too.";
            return self.lose(range, message.to_owned());
        };
        let known = Sensitivity::ALL.into_iter().find(|(name, _)| *name == level);
        let Some((_, level)) = known else {
            return self.lose(range, format!("There is no level `{level}`; write high, medium or none."));
        };
        let parsed = match pattern.parse() {
            Ok(parsed) => parsed,
            Err(error) => return self.lose(range, format!("This pattern covers nothing: {error}.")),
        };
        let is_narrowing = level == Sensitivity::High;
        if is_narrowing || self.is_in_force("sensitiveFiles", &format!("{level:?} {pattern}"), range) {
            let item = self.sourced(SensitiveFile { pattern: parsed, level }, range);
            append(&mut self.settings.values.sensitive_files, item);
        }
    }

    fn tool_setting(&mut self, property: &ObjectProp<'_>) {
        if property.name.as_str() != "maxConcurrency" {
            return;
        }
        let range = property.value.range();
        let number = match &property.value {
            Node::NumberLit(number) => number.value.parse::<usize>().ok().filter(|number| *number > 0),
            _ => None,
        };
        let Some(number) = number else {
            return self.report(
                ProblemSeverity::Warning,
                range,
                "Write a whole number from 1 on.".to_owned(),
            );
        };
        if self.is_in_force("tools.maxConcurrency", &number.to_string(), range) {
            self.settings.values.max_concurrency.get_or_insert(number);
        }
    }

    fn web_search(&mut self, property: &ObjectProp<'_>) {
        let range = property.value.range();
        let value = Value::from(property.value.clone());
        if self.is_in_force("webSearch", &value.to_string(), range) {
            let value = self.expanded_in(value, range);
            match &mut self.settings.values.web_search {
                Some(strong) => merge(strong, &value),
                none @ None => *none = Some(value),
            }
        }
    }

    fn telemetry(&mut self, property: &ObjectProp<'_>) {
        let value = Value::from(property.value.clone());
        // Another agent has a switch of this name.
        if !value.is_object() {
            return;
        }
        if self.is_of_workspace() {
            let message = "`telemetry` is ignored here: files in the workspace cannot say where sessions are reported to. Set \
                           this in your user settings, ~/.kode/settings.json.";
            return self.report(ProblemSeverity::Warning, property.name.range(), message.to_owned());
        }
        self.settings.values.telemetry.get_or_insert(value);
    }

    /// A switch. In the position that loosens, one in the workspace needs the user's approval.
    pub(super) fn switch(&mut self, key: &str, property: &ObjectProp<'_>, loosens: bool) -> Option<bool> {
        let Node::BooleanLit(value) = &property.value else {
            self.lose(property.value.range(), "Write true or false.".to_owned());
            return None;
        };
        let counts =
            value.value != loosens || self.is_in_force(key, &value.value.to_string(), property.value.range());
        counts.then_some(value.value)
    }

    pub(super) fn loosening(&mut self, key: &str, node: &Node<'_>) -> Option<SourcedValue<String>> {
        let item = self.loosening_as_written(key, node)?;
        let value = self.expanded(&item.value, node.range());
        Some(SourcedValue { value, ..item })
    }

    fn loosening_as_written(&mut self, key: &str, node: &Node<'_>) -> Option<SourcedValue<String>> {
        let text = self.string(node)?;
        self.is_in_force(key, &text, node.range()).then(|| self.sourced(text, node.range()))
    }

    pub(super) fn narrowing(&mut self, node: &Node<'_>) -> Option<SourcedValue<String>> {
        let text = self.text(node)?;
        Some(self.sourced(text, node.range()))
    }

    pub(super) fn section(
        &mut self,
        property: &ObjectProp<'_>,
        mut each: impl FnMut(&mut Self, &ObjectProp<'_>),
    ) {
        match &property.value {
            Node::Object(object) => {
                for property in self.properties(object) {
                    each(self, property);
                }
            }
            other => {
                let message =
                    format!("`{}` has to be an object; nothing of it is in force.", property.name.as_str());
                self.lose(other.range(), message);
            }
        }
    }

    pub(super) fn list(&mut self, property: &ObjectProp<'_>, mut each: impl FnMut(&mut Self, &Node<'_>)) {
        match &property.value {
            Node::Array(Array { elements, .. }) => elements.iter().for_each(|element| each(self, element)),
            other => {
                let message =
                    format!("`{}` has to be a list; nothing of it is in force.", property.name.as_str());
                self.lose(other.range(), message);
            }
        }
    }

    /// All properties, also those under a key that was there before: nothing that denies must hide behind another.
    fn properties<'o, 't>(&mut self, object: &'o Object<'t>) -> &'o [ObjectProp<'t>] {
        for (at, property) in object.properties.iter().enumerate() {
            let name = property.name.as_str();
            if object.properties[..at].iter().any(|earlier| earlier.name.as_str() == name) {
                let message =
                    format!("`{name}` is here twice; lists are joined, otherwise the first one applies.");
                self.report(ProblemSeverity::Warning, property.name.range(), message);
            }
        }
        &object.properties
    }

    fn string(&mut self, node: &Node<'_>) -> Option<String> {
        if let Node::StringLit(text) = node {
            return Some(text.value.to_string());
        }
        self.lose(node.range(), "This has to be a text in quotes; it is ignored.".to_owned());
        None
    }

    /// As [`Self::string`], with variables put in.
    pub(super) fn text(&mut self, node: &Node<'_>) -> Option<String> {
        let text = self.string(node)?;
        // An unapproved value of a workspace applies here: it gets nothing out of the environment.
        if self.is_of_workspace() {
            return Some(text);
        }
        Some(self.expanded(&text, node.range()))
    }

    /// A text with variables put in. Missing ones stay as written, and are reported.
    pub(super) fn expanded(&mut self, text: &str, range: Range) -> String {
        let ExpandedText { text, missing } = expand(text, &self.origin.variable);
        if let Some(name) = missing.first() {
            let message = format!(
                "The environment variable `{name}` is not set; the text stays as it is written. \
                 `${{{name}:-…}}` gives it a default."
            );
            self.report(ProblemSeverity::Warning, range, message);
        }
        text
    }

    /// A value with variables put into its texts.
    pub(super) fn expanded_in(&mut self, value: Value, range: Range) -> Value {
        match value {
            Value::String(text) => Value::String(self.expanded(&text, range)),
            Value::Array(items) => items.into_iter().map(|item| self.expanded_in(item, range)).collect(),
            Value::Object(entries) => {
                let entries = entries.into_iter();
                entries.map(|(name, value)| (name, self.expanded_in(value, range))).collect()
            }
            other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
        }
    }

    /// Whether something that loosens counts. Where it does not, it is noted as waiting for the user.
    pub(super) fn is_in_force(&mut self, key: &str, text: &str, range: Range) -> bool {
        match (self.origin.owner, self.origin.file) {
            (FileOwner::Person, _) => true,
            (FileOwner::Workspace(workspace), Some(file)) => {
                let (key, text) = (key.to_owned(), text.to_owned());
                let trust_request = TrustRequest { root: workspace.clone(), file: file.clone(), key, text };
                let is_approved = self.origin.trust.is_approved(&trust_request);
                let withheld = WithheldSetting { trust_request, source: self.source(range) };
                match is_approved {
                    true => self.settings.approved.push(withheld),
                    false => self.settings.withheld.push(withheld),
                }
                is_approved
            }
            (FileOwner::Unknown | FileOwner::Workspace(_), _) => {
                let message = format!(
                    "`{key}` is ignored from the settings of the editor, which may be the workspace's; set it in your \
                     own settings file."
                );
                self.report(ProblemSeverity::Warning, range, message);
                false
            }
        }
    }

    /// Whether the settings are, or may be, those of the workspace.
    pub(super) fn is_of_workspace(&self) -> bool {
        match self.origin.owner {
            FileOwner::Person => false,
            FileOwner::Workspace(_) | FileOwner::Unknown => true,
        }
    }

    /// Whether the file is read once more, for its servers.
    fn is_servers_file(&self) -> bool {
        let folder = self.origin.file.and_then(|file| file.parent());
        self.origin.file.is_some_and(|file| file.file_name() == CONFIG)
            && folder.is_some_and(|folder| folder.file_name() == FOREIGN_CONFIG_FOLDER)
    }

    /// The file that is read; none for what the editor says.
    pub(super) fn origin_file(&self) -> Option<&AbsPath> {
        self.origin.file
    }

    /// The plugins there are.
    pub(super) fn installed(&self) -> &InstalledPlugins {
        self.origin.installed
    }

    /// The session of the settings they are.
    pub(super) fn owner(&self) -> FileOwner<'_> {
        self.origin.owner
    }

    /// The base of relative paths in the file.
    pub(super) fn root(&self) -> &AbsPath {
        self.origin.root
    }

    pub(super) fn source(&self, range: Range) -> RuleSource {
        let place = Some(self.text.place(range));
        RuleSource { layer: self.origin.layer, file: self.origin.file.cloned(), place }
    }

    pub(super) fn sourced<T>(&self, value: T, range: Range) -> SourcedValue<T> {
        SourcedValue { value, source: self.source(range), root: Some(self.origin.root.clone()) }
    }

    /// A rule that is not in force: bad where it would have protected something.
    fn bad(&mut self, behavior: Behavior, range: Range, message: String) {
        match behavior {
            Behavior::Deny | Behavior::Ask => self.lose(range, message),
            Behavior::Allow => self.report(ProblemSeverity::Warning, range, message),
        }
    }

    fn lose(&mut self, range: Range, message: String) {
        let problem = self.problem(ProblemSeverity::Error, range, message);
        self.settings.lose(problem);
    }

    pub(super) fn report(&mut self, severity: ProblemSeverity, range: Range, message: String) {
        let problem = self.problem(severity, range, message);
        self.settings.problems.push(problem);
    }

    fn problem(&self, severity: ProblemSeverity, range: Range, message: String) -> SettingsProblem {
        let place = Some(self.text.place(range));
        SettingsProblem { file: self.origin.file.cloned(), place, severity, message }
    }
}

/// A value of the file, whole numbers as such.
pub(crate) fn json(node: &Node<'_>) -> Value {
    match node {
        // The parser keeps the text of a number, which a whole number has to come from.
        Node::NumberLit(number) => serde_json::from_str(number.value).unwrap_or(Value::Null),
        Node::Array(list) => list.elements.iter().map(json).collect(),
        Node::Object(object) => {
            let mut values = Map::new();
            for property in &object.properties {
                values.entry(property.name.as_str()).or_insert_with(|| json(&property.value));
            }
            Value::Object(values)
        }
        other => Value::from(other.clone()),
    }
}
