//! The plugins, and switching them on and off.
//!
//! Rule: only the user switches, in the user's own settings, and gets the resulting state; a list changes nothing. No model
//! gets here: its tools know the commands of files alone.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::{Value, json};

use super::CommandContext;
use kode_base::blocking;
use kode_base::paths::AbsPath;
use kode_config::command::CommandReport;
use kode_config::plugin::{PluginId, PluginListing, PluginState};

impl CommandContext<'_> {
    pub(super) async fn plugin(&self) -> CommandReport {
        let words: Vec<&str> = self.arguments.split_whitespace().collect();
        match words.as_slice() {
            [] | ["list"] => self.plugins(),
            ["enable", name] => self.switch_plugin(name, true).await,
            ["disable", name] => self.switch_plugin(name, false).await,
            _ => CommandReport::failure(
                "Say `/plugin`, `/plugin enable PLUGIN` or `/plugin disable PLUGIN`; `kode-ls plugin` in a terminal does the rest.",
            ),
        }
    }

    fn plugins(&self) -> CommandReport {
        let policy = Arc::clone(&self.session.gate().in_force().policy);
        let plugins = &policy.declared.plugins;
        let mut text = String::new();
        for plugin in plugins {
            let version = plugin.version.as_deref().map(|version| format!(" {version}")).unwrap_or_default();
            let why = match &plugin.state {
                PluginState::LeftOut(reason) => format!(", for {reason}"),
                PluginState::Waiting => ": it waits for your approval, `/trust`".to_owned(),
                PluginState::On(_) | PluginState::Off => String::new(),
            };
            let _ = writeln!(text, "- **{}**{version}: {}{why}", plugin.id, plugin.state.name());
        }
        if plugins.is_empty() {
            text.push_str("No plugin is installed.\n");
        }
        text.push_str(
            "\n`/plugin enable PLUGIN` and `/plugin disable PLUGIN` switch one. In a terminal `kode-ls plugin marketplace add SOURCE` \
             adds a marketplace, and `kode-ls plugin install PLUGIN` installs one of its plugins; this conversation takes that over \
             by itself.\n",
        );
        let states: serde_json::Map<_, _> = plugins
            .iter()
            .map(|plugin| (plugin.id.clone(), Value::String(plugin.state.name().to_owned())))
            .collect();
        CommandReport::text(text).with(json!({ "plugins": states }))
    }

    async fn switch_plugin(&self, name: &str, is_on: bool) -> CommandReport {
        let before = self.session.gate().refreshed().await;
        let id = match meant(&before.policy.declared.plugins, name, is_on) {
            Ok(id) => id,
            Err(reason) => return CommandReport::failure(reason),
        };
        let (source, switched) = (self.session.gate().source(), id.clone());
        let file = match blocking(move || source.switch_plugin(&switched, is_on)).await {
            Ok(file) => file,
            Err(error) => return CommandReport::failure(format!("Nothing was switched: {error}")),
        };
        let now = self.session.gate().refreshed().await;
        if self.in_turn || !self.session.is_busy() {
            self.session.extensions().refresh().await;
        }
        self.session.servers().refresh().await;
        let id = id.to_string();
        match now.policy.declared.plugins.iter().find(|plugin| plugin.id == id) {
            Some(plugin) => self.outcome(plugin, is_on, &file).await,
            None => CommandReport::failure(format!("**{id}** is no longer installed.")),
        }
    }

    /// The state of a plugin after it was switched in a file.
    async fn outcome(&self, plugin: &PluginListing, is_on: bool, file: &AbsPath) -> CommandReport {
        let (id, state) = (&plugin.id, plugin.state.name());
        let data = json!({ "plugins": { id: state } });
        let written = format!("{} says so", self.path(file));
        let report = match (&plugin.state, is_on) {
            (PluginState::On(opened), true) => {
                let opened = Arc::clone(opened);
                let (brings, _) = blocking(move || opened.contents()).await;
                let mut text = format!("**{id}** is on; {written}. It brings:\n\n");
                text.extend(brings.iter().map(|line| format!("- {line}\n")));
                CommandReport::text(text)
            }
            (PluginState::Off, false) => CommandReport::text(format!("**{id}** is off; {written}.")),
            (PluginState::LeftOut(reason), _) => {
                CommandReport::failure(format!("**{id}** is left out, for {reason}; {written}."))
            }
            _ => {
                let other = plugin.source.as_ref().map_or("something else".to_owned(), ToString::to_string);
                CommandReport::failure(format!(
                    "{written} now, but **{id}** is {state}, because {other} goes before it. Change it there."
                ))
            }
        };
        report.with(data)
    }
}

/// The plugin that is meant by a name, with its marketplace or alone.
fn meant(plugins: &[PluginListing], name: &str, is_on: bool) -> Result<PluginId, String> {
    let is_meant = |plugin: &&PluginListing| plugin.id == name || plugin.id.split('@').next() == Some(name);
    let found: Vec<&PluginListing> = plugins.iter().filter(is_meant).collect();
    let is_there = |plugin: &PluginListing| plugin.root.is_some() || !is_on;
    match found.as_slice() {
        [one] if is_there(one) => PluginId::parse(&one.id),
        [] | [_] => Err(format!(
            "No plugin `{name}` is installed. `kode-ls plugin install {name}` in a terminal installs it, once its marketplace is added."
        )),
        several => {
            let names: Vec<String> = several.iter().map(|plugin| format!("`{}`", plugin.id)).collect();
            Err(format!("`{name}` may be any of {}; name one.", names.join(", ")))
        }
    }
}
