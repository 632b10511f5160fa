//! Declarations of settings files for other parts of the engine to run, start or pass on: hooks, MCP servers, language
//! servers, variables of the environment, helper commands, plugins.
//!
//! Rule: what a file in the workspace declares waits until the user has approved that very text and the very contents of the
//! workspace's files it names; what waits is neither run nor started nor passed on. A switch in the workspace may turn
//! things off at once, and on only with approval.

use std::sync::Arc;

use jsonc_parser::ast::{ObjectProp, Value as Node};
use jsonc_parser::common::Ranged;
use serde_json::Value;

use super::read::{FileOwner, FileReader, json};
use super::scripts::{ReferencedFile, named_files, names_folder};
use super::{Settings, TrustRequest};
use crate::plugin::{Folders, Plugin, PluginListing, PluginState};
use kode_base::paths::AbsPath;
use kode_permission::rules::{ProblemSeverity, RuleSource};

/// Everything that is declared, each list the strongest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Declarations {
    /// `hooks`: one entry for each group of handlers, by the name of its event.
    pub hooks: Vec<Declaration>,
    /// `mcpServers`, of `.mcp.json` and `.mcprc`, too: one entry for each server. Of several with one name the first that
    /// does not wait counts.
    pub servers: Vec<Declaration>,
    /// `lspServers`: one entry for each language server. Of several with one name the first that does not wait applies.
    pub language_servers: Vec<Declaration>,
    /// `env`: one entry for each variable. Of several with one name the first that does not wait counts.
    pub env: Vec<Declaration>,
    /// Commands that print something for us: `statusLine`.
    pub helpers: Vec<Declaration>,
    /// All plugins that are installed or named, in the order of their names. What those bring that are on is among the
    /// others, the weakest.
    pub plugins: Vec<PluginListing>,
    /// The plugins that are on and off.
    pub switches: Switches,
}

/// One thing that a file declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Its name.
    pub name: String,
    /// The declaration of the file.
    pub value: Value,
    /// Its place.
    pub source: RuleSource,
    /// The folder that relative paths in it are relative to.
    pub root: AbsPath,
    /// Whether it may be used.
    pub approval: Approval,
    /// The plugin that brings it, if one does.
    pub plugin: Option<Arc<Folders>>,
}

/// Whether something that is declared may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It comes from the user or the administrator.
    NotNeeded,
    /// The user has approved it unchanged.
    Approved,
    /// It is not in force until the user approves this.
    Waiting(TrustRequest),
}

/// The switches for all declared entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// `disableAllHooks`.
    pub disable_all_hooks: Option<bool>,
    /// `disableSkillShellExecution`: commands and skills run nothing while their text is put together.
    pub disable_shell_embeds: Option<bool>,
    /// `enableAllProjectMcpServers`: the user approves every server of every project.
    pub enable_all_servers: Option<bool>,
    /// `enabledMcpjsonServers`: servers of projects that the user approves by name.
    pub enabled_servers: Vec<String>,
    /// `disabledMcpjsonServers`: servers of projects that are not to be started.
    pub disabled_servers: Vec<String>,
}

#[derive(Clone, Copy)]
pub(super) enum DeclarationKind {
    Hook,
    Server,
    LanguageServer,
    Variable,
    Helper,
}

impl Declaration {
    /// Whether it may be used.
    #[must_use]
    pub fn is_in_force(&self) -> bool {
        !matches!(self.approval, Approval::Waiting(_))
    }
}

impl Declarations {
    /// Scripts in these folders that hooks in force run, those that are not there yet as well where no approval is asked for when
    /// they come. Relative names are those of the workspace's folders, the `roots`. Blocks on the disk.
    pub(super) fn hook_scripts(&self, roots: &[AbsPath], folders: &[AbsPath]) -> Vec<AbsPath> {
        let mut scripts = Vec::new();
        for hook in self.hooks.iter().filter(|hook| hook.is_in_force()) {
            let is_awaited = hook.approval == Approval::NotNeeded;
            let text = hook.value.to_string();
            let is_meant = |folder: &&AbsPath| roots.contains(folder) || names_folder(&text, folder);
            let named = folders.iter().filter(is_meant).flat_map(|folder| named_files(folder, &hook.value));
            scripts.extend(named.filter(|file| file.is_script(is_awaited)).map(|file| file.path));
        }
        scripts.sort_unstable();
        scripts.dedup();
        scripts
    }

    /// The variables of the environment for what the agent starts, by name.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let in_force = self.env.iter().filter(|entry| entry.is_in_force());
        let first = in_force.enumerate().filter(|(at, entry)| {
            !self
                .env
                .iter()
                .filter(|entry| entry.is_in_force())
                .take(*at)
                .any(|known| known.name == entry.name)
        });
        first.filter_map(|(_, entry)| Some((entry.name.as_str(), entry.value.as_str()?)))
    }

    /// The plugins that are on.
    pub fn plugins_in_use(&self) -> impl Iterator<Item = &Arc<Plugin>> {
        self.plugins.iter().filter_map(|plugin| match &plugin.state {
            PluginState::On(plugin) => Some(plugin),
            PluginState::Off | PluginState::Waiting | PluginState::LeftOut(_) => None,
        })
    }

    fn list(&mut self, kind: DeclarationKind) -> &mut Vec<Declaration> {
        match kind {
            DeclarationKind::Hook => &mut self.hooks,
            DeclarationKind::Server => &mut self.servers,
            DeclarationKind::LanguageServer => &mut self.language_servers,
            DeclarationKind::Variable => &mut self.env,
            DeclarationKind::Helper => &mut self.helpers,
        }
    }
}

impl Settings {
    /// Lets the user's word about servers of projects count, once all files are read.
    pub(super) fn settle_servers(&mut self, is_distrusted: bool) {
        let switches = &self.declared.switches;
        for entry in &mut self.declared.servers {
            let Approval::Waiting(trust_request) = &entry.approval else { continue };
            let is_disabled = switches.disabled_servers.contains(&entry.name);
            let is_named =
                switches.enable_all_servers == Some(true) || switches.enabled_servers.contains(&entry.name);
            let is_enabled = is_named && !is_distrusted;
            // Entries that will not be started ask for no approval.
            if is_disabled || is_enabled {
                self.withheld.retain(|withheld| withheld.trust_request != *trust_request);
            }
            if is_enabled && !is_disabled {
                entry.approval = Approval::Approved;
            }
        }
    }
}

impl FileReader<'_, '_> {
    /// Takes in what other parts run or start. False when the property says nothing of the kind.
    pub(super) fn declaration(&mut self, property: &ObjectProp<'_>) -> bool {
        let name = property.name.as_str();
        match name {
            "hooks" => self.section(property, |reader, event| {
                let name = event.name.as_str().to_owned();
                reader.list(event, |reader, group| reader.declare(DeclarationKind::Hook, &name, group));
            }),
            "mcpServers" => self.servers(property),
            "lspServers" => self.language_servers(property),
            "env" => self.section(property, Self::environment_variable),
            "statusLine" => self.declare(DeclarationKind::Helper, name, &property.value),
            "enabledPlugins" => self.section(property, Self::plugin_switch),
            "extraKnownMarketplaces" => self.section(property, Self::known_marketplace),
            "disableAllHooks" => {
                // Hooks may be the user's guards: switching them off loosens as well.
                if let Node::BooleanLit(value) = &property.value {
                    let text = value.value.to_string();
                    if self.is_in_force(name, &text, property.value.range()) {
                        self.settings.declared.switches.disable_all_hooks.get_or_insert(value.value);
                    }
                } else {
                    self.switch(name, property, false);
                }
            }
            "disableSkillShellExecution" => {
                if let Some(value) = self.switch(name, property, false) {
                    self.settings.declared.switches.disable_shell_embeds.get_or_insert(value);
                }
            }
            "enableAllProjectMcpServers" | "enabledMcpjsonServers" if self.is_of_workspace() => {
                let message = format!(
                    "`{name}` has no effect here: servers of a project are approved one by one. It takes \
                         effect in your own settings."
                );
                self.report(ProblemSeverity::Information, property.name.range(), message);
            }
            "enableAllProjectMcpServers" => {
                if let Some(value) = self.switch(name, property, true) {
                    self.settings.declared.switches.enable_all_servers.get_or_insert(value);
                }
            }
            "enabledMcpjsonServers" => self.list(property, |reader, node| {
                if let Some(item) = reader.loosening("enabledMcpjsonServers", node) {
                    reader.settings.declared.switches.enabled_servers.push(item.value);
                }
            }),
            "disabledMcpjsonServers" => self.list(property, |reader, node| {
                if let Some(item) = reader.narrowing(node) {
                    reader.settings.declared.switches.disabled_servers.push(item.value);
                }
            }),
            _ => return false,
        }
        true
    }

    /// Takes in an object of servers by name.
    pub(super) fn servers(&mut self, property: &ObjectProp<'_>) {
        self.section(property, |reader, server| {
            reader.declare(DeclarationKind::Server, server.name.as_str(), &server.value);
        });
    }

    /// Takes in an object of language servers by name. They protect nothing, so that a value of another form is a warning.
    fn language_servers(&mut self, property: &ObjectProp<'_>) {
        if !matches!(property.value, Node::Object(_)) {
            let message = "`lspServers` is ignored: write an object with an entry for each language server.";
            return self.report(ProblemSeverity::Warning, property.value.range(), message.to_owned());
        }
        self.section(property, |reader, server| {
            reader.declare(DeclarationKind::LanguageServer, server.name.as_str(), &server.value);
        });
    }

    fn environment_variable(&mut self, property: &ObjectProp<'_>) {
        let name = property.name.as_str();
        let is_name = !name.is_empty() && !name.contains(['=', '\0']);
        match (&property.value, is_name) {
            (Node::StringLit(_), true) => self.declare(DeclarationKind::Variable, name, &property.value),
            (_, true) => {
                let message = format!("`{name}` has to be a text in quotes; the variable is not set.");
                self.report(ProblemSeverity::Warning, property.value.range(), message);
            }
            (_, false) => {
                let message = format!("`{name}` cannot be the name of a variable; it is not set.");
                self.report(ProblemSeverity::Warning, property.name.range(), message);
            }
        }
    }

    /// Takes one thing in, approved or waiting.
    pub(super) fn declare(&mut self, kind: DeclarationKind, name: &str, node: &Node<'_>) {
        let value = json(node);
        let key = match kind {
            DeclarationKind::Hook => format!("hooks.{name}"),
            DeclarationKind::Server => format!("mcpServers.{name}"),
            DeclarationKind::LanguageServer => format!("lspServers.{name}"),
            DeclarationKind::Variable => format!("env.{name}"),
            DeclarationKind::Helper => name.to_owned(),
        };
        let (workspace, file) = match (self.owner(), self.origin_file()) {
            (FileOwner::Workspace(workspace), Some(file)) => (Some(workspace.clone()), Some(file.clone())),
            (FileOwner::Person | FileOwner::Workspace(_), _) => (None, None),
            (FileOwner::Unknown, _) => {
                self.is_in_force(&key, "", node.range());
                return;
            }
        };
        let approval = match workspace.zip(file) {
            None => Approval::NotNeeded,
            Some((workspace, file)) => {
                let files = named_files(&workspace, &value);
                self.settings.inspect(files.iter().map(|file| file.path.clone()));
                let contents: String = files.iter().map(ReferencedFile::line).collect();
                let text = format!("{value}{contents}");
                // Nothing uses these yet, so they ask for no approval.
                let is_unused = matches!(kind, DeclarationKind::Helper);
                if !is_unused && self.is_in_force(&key, &text, node.range()) {
                    Approval::Approved
                } else {
                    Approval::Waiting(TrustRequest { root: workspace, file, key, text })
                }
            }
        };
        let source = self.source(node.range());
        let root = self.root().clone();
        self.settings.declared.list(kind).push(Declaration {
            name: name.to_owned(),
            value,
            source,
            root,
            approval,
            plugin: None,
        });
    }
}

#[cfg(test)]
mod tests;
