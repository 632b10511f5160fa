//! The permission changes of hooks: the entries of `updatedPermissions`.
//!
//! Rule: a hook of a file in the workspace never allows more than in its session. An unknown entry changes
//! nothing and is reported.

use serde_json::{Map, Value, json};

use super::HookRunner;
use kode_base::blocking;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_permission::rules::{Behavior, PlacedRule, Rule, SettingsLayer};
use kode_permission::{Grant, Offer, Scope};

/// The most entries of one answer, and the most rules of one entry.
const MAX_ENTRIES: usize = 50;

/// Where a change is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpdateDestination {
    /// Until the session ends.
    Session,
    /// The user's own file of the project.
    Local,
    /// The user's file of all projects.
    User,
}

/// One change of the permissions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PermissionUpdate {
    /// These rules are added; `replaces`: in the place of all others of their behavior.
    Add { behavior: Behavior, rules: Vec<Rule>, destination: UpdateDestination, replaces: bool },
    /// These rules are taken out.
    Remove { behavior: Behavior, rules: Vec<Rule>, destination: UpdateDestination },
    /// The session is put into a mode.
    Mode(Mode),
    /// These folders may be read.
    Folders(Vec<AbsPath>),
}

/// The permission changes of a hook.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PermissionUpdates {
    pub(crate) entries: Vec<PermissionUpdate>,
    /// Whether a file of the workspace has the hook run.
    pub(crate) is_of_workspace: bool,
}

/// The arguments a hook gives in the place of a call's, if they can be arguments.
pub(super) fn input_of(value: Option<&Value>, notes: &mut Vec<String>) -> Option<Value> {
    match value {
        None | Some(Value::Null) => None,
        Some(input @ Value::Object(_)) => Some(input.clone()),
        Some(_) => {
            notes.push("its updatedInput is no object, so the arguments stay as they are".to_owned());
            None
        }
    }
}

/// Reads the entries.
pub(super) fn read(value: Option<&Value>, notes: &mut Vec<String>) -> Vec<PermissionUpdate> {
    let Some(entries) = value.and_then(Value::as_array) else { return Vec::new() };
    let entries = entries.iter().take(MAX_ENTRIES);
    let read = entries.filter_map(|entry| {
        entry_of(entry, notes)
            .map_err(|problem| notes.push(format!("an updated permission is ignored: {problem}")))
            .ok()
    });
    read.collect()
}

fn entry_of(entry: &Value, notes: &mut Vec<String>) -> Result<PermissionUpdate, String> {
    let entry = entry.as_object().ok_or("it is no object")?;
    let text = |name: &str| entry.get(name).and_then(Value::as_str);
    let destination = match text("destination") {
        None | Some("session") => UpdateDestination::Session,
        Some("localSettings") => UpdateDestination::Local,
        Some("userSettings") => UpdateDestination::User,
        Some("projectSettings") => {
            notes.push(
                "projectSettings are everybody's; what a hook adds is kept in the user's own file of the project"
                    .to_owned(),
            );
            UpdateDestination::Local
        }
        Some(other) => return Err(format!("there is no destination `{other}`")),
    };
    match text("type").unwrap_or_default() {
        kind @ ("addRules" | "replaceRules") => Ok(PermissionUpdate::Add {
            behavior: behavior(entry)?,
            rules: rules(entry)?,
            destination,
            replaces: kind == "replaceRules",
        }),
        "removeRules" => {
            Ok(PermissionUpdate::Remove { behavior: behavior(entry)?, rules: rules(entry)?, destination })
        }
        "setMode" => {
            let mode = text("mode").unwrap_or_default();
            Mode::parse(mode).map(PermissionUpdate::Mode).ok_or_else(|| format!("there is no mode `{mode}`"))
        }
        "addDirectories" => {
            let folders =
                entry.get("directories").and_then(Value::as_array).ok_or("it has no directories")?;
            let folders = folders.iter().take(MAX_ENTRIES).map(|folder| {
                let folder = folder.as_str().unwrap_or_default();
                AbsPath::new(folder).map_err(|_| format!("`{folder}` is no absolute path"))
            });
            Ok(PermissionUpdate::Folders(folders.collect::<Result<_, _>>()?))
        }
        "removeDirectories" => Err("folders are taken out in the settings only".to_owned()),
        other => Err(format!("there is no type `{other}`")),
    }
}

fn behavior(entry: &Map<String, Value>) -> Result<Behavior, String> {
    match entry.get("behavior").and_then(Value::as_str) {
        Some("allow") | None => Ok(Behavior::Allow),
        Some("deny") => Ok(Behavior::Deny),
        Some("ask") => Ok(Behavior::Ask),
        Some(other) => Err(format!("there is no behavior `{other}`")),
    }
}

fn rules(entry: &Map<String, Value>) -> Result<Vec<Rule>, String> {
    let rules = entry.get("rules").and_then(Value::as_array).ok_or("it has no rules")?;
    let rule = |rule: &Value| {
        let tool = rule.get("toolName").and_then(Value::as_str).ok_or("a rule has no toolName")?;
        let content = rule.get("ruleContent").and_then(Value::as_str);
        let text = content.map_or_else(|| tool.to_owned(), |content| format!("{tool}({content})"));
        text.parse::<Rule>().map_err(|error| format!("`{text}`: {error}"))
    };
    rules.iter().take(MAX_ENTRIES).map(rule).collect()
}

/// The standing answers that the user would be offered, as entries a hook can give back.
pub(crate) fn suggestions(offers: &[Offer]) -> Value {
    let entries = offers.iter().map(|offer| {
        let rules = offer.rules.iter().filter_map(|text| text.parse::<Rule>().ok()).map(|rule| {
            let content = rule.specifier().map(ToString::to_string);
            match content {
                Some(content) => json!({ "toolName": rule.tool(), "ruleContent": content }),
                None => json!({ "toolName": rule.tool() }),
            }
        });
        let destination = match offer.scope {
            Scope::Once | Scope::Session => "session",
            Scope::Project => "localSettings",
            Scope::User => "userSettings",
        };
        json!({
            "type": "addRules", "rules": rules.collect::<Vec<_>>(), "behavior": "allow", "destination": destination,
        })
    });
    entries.collect()
}

impl HookRunner {
    /// Applies the changes of an answer. Returns the new grants of the session; failed changes are in the log.
    pub(crate) async fn apply_updates(&self, updates: PermissionUpdates) -> Vec<Grant> {
        let (grants, problems) = self.update(updates).await;
        for problem in problems {
            tracing::warn!(problem, "a permission change of a hook was not applied");
        }
        grants
    }

    async fn update(&self, updates: PermissionUpdates) -> (Vec<Grant>, Vec<String>) {
        let (mut grants, mut problems) = (Vec::new(), Vec::new());
        let PermissionUpdates { entries, is_of_workspace } = updates;
        for update in entries {
            match update {
                PermissionUpdate::Mode(Mode::BypassPermissions) if is_of_workspace => {
                    problems.push("a hook of the workspace cannot switch permissions off".to_owned());
                }
                PermissionUpdate::Mode(mode) => match self.gate.in_force().policy.allow_mode(mode) {
                    Ok(mode) => self.core.set_mode(mode),
                    Err(error) => problems.push(error.to_string()),
                },
                PermissionUpdate::Folders(folders) => {
                    grants.extend(folders.iter().map(|folder| Grant::Rule(format!("Read(/{folder}/**)"))));
                }
                PermissionUpdate::Add { behavior: Behavior::Allow, rules, destination, .. }
                    if destination == UpdateDestination::Session || is_of_workspace =>
                {
                    let is_good = |rule: &&Rule| rule.check(Behavior::Allow).is_ok();
                    grants.extend(rules.iter().filter(is_good).map(|rule| Grant::Rule(rule.to_string())));
                }
                PermissionUpdate::Add { destination: UpdateDestination::Session, .. }
                | PermissionUpdate::Remove { destination: UpdateDestination::Session, .. } => {
                    problems.push("for a session a hook can only add rules that allow".to_owned());
                }
                PermissionUpdate::Add { replaces: true, .. } if is_of_workspace => {
                    problems.push("a hook of the workspace cannot replace rules".to_owned());
                }
                PermissionUpdate::Add { behavior, rules, destination, replaces } => {
                    let gone = if replaces { self.rules_in(behavior, destination) } else { Vec::new() };
                    problems.extend(self.change_rules(behavior, gone, rules, destination).await);
                }
                PermissionUpdate::Remove { .. } if is_of_workspace => {
                    problems.push("a hook of the workspace cannot take rules out".to_owned());
                }
                PermissionUpdate::Remove { behavior, rules, destination } => {
                    let mut gone = self.rules_in(behavior, destination);
                    gone.retain(|placed| rules.contains(&placed.rule));
                    problems.extend(self.change_rules(behavior, gone, Vec::new(), destination).await);
                }
            }
        }
        (grants, problems)
    }

    fn rules_in(&self, behavior: Behavior, destination: UpdateDestination) -> Vec<PlacedRule> {
        let layer = match destination {
            UpdateDestination::Session => SettingsLayer::Session,
            UpdateDestination::Local => SettingsLayer::Local,
            UpdateDestination::User => SettingsLayer::User,
        };
        let in_force = self.gate.in_force();
        let rules = in_force.policy.rules.iter();
        rules.filter(|rule| rule.source.layer == layer && rule.behavior == behavior).cloned().collect()
    }

    async fn change_rules(
        &self,
        behavior: Behavior,
        gone: Vec<PlacedRule>,
        added: Vec<Rule>,
        destination: UpdateDestination,
    ) -> Vec<String> {
        let source = self.gate.source();
        let scope = match destination {
            UpdateDestination::Session => Scope::Session,
            UpdateDestination::Local => Scope::Project,
            UpdateDestination::User => Scope::User,
        };
        blocking(move || {
            let removed = gone.iter().filter_map(|placed| {
                let file = placed.source.file.as_ref()?;
                source.remove(file, behavior, &placed.rule).err()
            });
            let mut problems: Vec<String> = removed.map(|error| error.to_string()).collect();
            let kept = added.iter().filter_map(|rule| source.keep(scope, behavior, rule).err());
            problems.extend(kept.map(|error| error.to_string()));
            problems
        })
        .await
    }
}
