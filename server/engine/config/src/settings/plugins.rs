//! The plugins of settings: the enabled ones, and their programs and servers.
//!
//! Rule: the user's own settings apply at once, as long as the plugin equals the installed one. A file of the workspace
//! switches a plugin off at once, and on only when the user has installed it and approved it with the very files it has
//! now. Nothing is fetched because a file says so.

use jsonc_parser::ast::{ObjectProp, Value as Node};
use jsonc_parser::common::{Range, Ranged};

use super::Settings;
use super::declared::Approval;
use super::read::{FileOwner, FileReader, json};
use crate::plugin::installed::{InstalledPlugin, InstalledPlugins};
use crate::plugin::{FolderTree, Plugin, PluginId, PluginListing, PluginState, marketplace};
use kode_permission::rules::{ProblemSeverity, RuleSource, SettingsProblem};

/// The statement of a file about one plugin.
#[derive(Clone, Debug)]
pub(super) struct PluginSwitch {
    id: PluginId,
    /// Whether it is to be on.
    is_on: bool,
    approval: SwitchApproval,
    source: RuleSource,
}

/// Whether a switch counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SwitchApproval {
    NotNeeded,
    Approved,
    Waiting,
}

impl FileReader<'_, '_> {
    /// Takes in whether a plugin is on.
    pub(super) fn plugin_switch(&mut self, property: &ObjectProp<'_>) {
        let (name, range) = (property.name.as_str(), property.value.range());
        let id = match PluginId::parse(name) {
            Ok(id) => id,
            Err(reason) => {
                return self.report(ProblemSeverity::Warning, property.name.range(), format!("{reason}."));
            }
        };
        let Node::BooleanLit(value) = &property.value else {
            let message = "Write true or false; the plugin stays as it would be without this.".to_owned();
            return self.report(ProblemSeverity::Warning, range, message);
        };
        let approval = match (value.value, self.owner()) {
            (false, _) | (true, FileOwner::Person) => Some(SwitchApproval::NotNeeded),
            (true, FileOwner::Workspace(_) | FileOwner::Unknown) => self.approval_of(&id, range),
        };
        let Some(approval) = approval else { return };
        let source = self.source(range);
        self.settings.switches.push(PluginSwitch { id, is_on: value.value, approval, source });
    }

    /// Whether the user lets a file of the workspace switch a plugin on, as its files are now. `None` where nothing can be asked:
    /// that is reported.
    fn approval_of(&mut self, id: &PluginId, range: Range) -> Option<SwitchApproval> {
        let key = format!("enabledPlugins.{id}");
        let Some(plugin) = self.installed().find(id).cloned() else {
            let message = format!(
                "The plugin `{id}` is wanted here and not installed. `kode-ls plugin install {id}` installs it, once its \
                 marketplace is added."
            );
            self.report(ProblemSeverity::Information, range, message);
            return None;
        };
        let tree = match FolderTree::of(&plugin.root) {
            Ok(tree) => tree,
            Err(reason) => {
                let message = format!("The plugin `{id}` cannot be approved, for {reason}; it stays off.");
                self.report(ProblemSeverity::Warning, range, message);
                return None;
            }
        };
        self.settings.inspect(tree.entries.into_iter());
        let version = plugin.version.unwrap_or_else(|| "of no version".to_owned());
        let text = format!("true\n{id} {version} sha256:{}", tree.digest);
        let is_in_force = self.is_in_force(&key, &text, range);
        Some(if is_in_force { SwitchApproval::Approved } else { SwitchApproval::Waiting })
    }

    /// Tells how a marketplace that a file names is added.
    pub(super) fn known_marketplace(&mut self, property: &ObjectProp<'_>) {
        let name = property.name.as_str();
        if self.installed().has_marketplace(name) {
            return;
        }
        let source = marketplace::PluginSource::read(&json(&property.value)["source"]);
        let message = match source.and_then(marketplace::PluginSource::of_marketplace) {
            Ok(source) => format!(
                "Nothing is fetched from the marketplace `{name}` by itself. `kode-ls plugin marketplace add {}` adds it.",
                source.shown()
            ),
            Err(reason) => format!("The marketplace `{name}` cannot be added: {reason}."),
        };
        self.report(ProblemSeverity::Information, property.name.range(), message);
    }
}

impl Settings {
    /// Lets plugins count that are on, once all files are read. Blocks on the disk.
    pub(super) fn settle_plugins(&mut self, installed: &InstalledPlugins) {
        self.problems.extend(installed.problems.iter().cloned());
        let switches = std::mem::take(&mut self.switches);
        let mut ids: Vec<&PluginId> = switches.iter().map(|switch| &switch.id).collect();
        ids.extend(installed.iter().map(|(id, _)| id));
        ids.sort();
        ids.dedup();
        for id in ids {
            let of_it = || switches.iter().filter(|switch| switch.id == *id);
            // A waiting entry has no effect yet, and a weaker one applies meanwhile.
            let counting = of_it().find(|switch| switch.approval != SwitchApproval::Waiting);
            let waiting = of_it().find(|switch| switch.approval == SwitchApproval::Waiting);
            let plugin = installed.find(id);
            let (state, source) = match (counting, waiting) {
                (Some(switch), _) if switch.is_on => {
                    let source = switch.source.clone();
                    (self.settle_plugin(id, plugin, installed, switch), Some(source))
                }
                (_, Some(switch)) => (PluginState::Waiting, Some(switch.source.clone())),
                (switch, None) => (PluginState::Off, switch.map(|switch| switch.source.clone())),
            };
            self.declared.plugins.push(PluginListing {
                id: id.to_string(),
                version: plugin.and_then(|plugin| plugin.version.clone()),
                root: plugin.map(|plugin| plugin.root.clone()),
                source,
                state,
            });
        }
    }

    /// Takes in the parts of a plugin, if it equals the installed one.
    fn settle_plugin(
        &mut self,
        id: &PluginId,
        plugin: Option<&InstalledPlugin>,
        installed: &InstalledPlugins,
        switch: &PluginSwitch,
    ) -> PluginState {
        let left_out = |settings: &mut Self, severity, reason: String| {
            let message = format!("The plugin `{id}` is not used: {reason}.");
            let (file, place) = (switch.source.file.clone(), switch.source.place);
            settings.problems.push(SettingsProblem { file, place, severity, message });
            PluginState::LeftOut(reason)
        };
        let Some(plugin) = plugin else {
            let reason = format!("it is not installed; `kode-ls plugin install {id}` installs it");
            return left_out(self, ProblemSeverity::Information, reason);
        };
        if let Some(digest) = &plugin.digest {
            let tree = FolderTree::of(&plugin.root);
            match &tree {
                Ok(tree) => self.inspect(tree.entries.iter().cloned()),
                Err(_) => self.inspect([plugin.root.clone()].into_iter()),
            }
            let changed = match tree {
                Ok(tree) if tree.digest == *digest => None,
                Ok(_) => Some("its files are not those that were installed".to_owned()),
                Err(reason) => Some(reason),
            };
            if let Some(reason) = changed {
                let reason = format!("{reason}; `kode-ls plugin update {id}` reinstalls it");
                return left_out(self, ProblemSeverity::Error, reason);
            }
        }
        let data = installed.data_of(id, plugin);
        let opened = Plugin::open(&plugin.root, &data, Some(&id.name));
        self.inspect(opened.files.iter().chain(&opened.manifest).cloned());
        self.problems.extend(opened.problems.iter().cloned());
        if let Some(fault) = opened.fault() {
            return PluginState::LeftOut(fault.trim_end_matches('.').to_owned());
        }
        let approval = match switch.approval {
            SwitchApproval::NotNeeded => Approval::NotNeeded,
            SwitchApproval::Approved | SwitchApproval::Waiting => Approval::Approved,
        };
        let with_approval = |entry: &super::declared::Declaration| super::declared::Declaration {
            approval: approval.clone(),
            ..entry.clone()
        };
        self.declared.hooks.extend(opened.hooks.iter().map(with_approval));
        self.declared.servers.extend(opened.servers.iter().map(with_approval));
        self.declared.language_servers.extend(opened.language_servers.iter().map(with_approval));
        PluginState::On(std::sync::Arc::new(opened))
    }
}

#[cfg(test)]
mod tests;
