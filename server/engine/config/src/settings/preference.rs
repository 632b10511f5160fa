//! The settings that say how the agent is to work.
//!
//! Rule: a file in the workspace states what narrows or only colors the work at once; what costs money or speaks to the model
//! in the user's name waits for the user's approval.

use jsonc_parser::ast::{ObjectProp, Value as Node};
use jsonc_parser::common::Ranged;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::read::FileReader;
use super::values::{StatedPreferences, append};
use crate::budget::Budget;
use kode_base::steering::IGNORE_FILES;
use kode_permission::rules::ProblemSeverity;

/// The lowest share of the context window at which a conversation is compacted: below it summaries would be written all
/// the time.
const MIN_COMPACT_THRESHOLD: f64 = 0.2;

/// How `incompleteIntent` says that the turn ends.
const STOP: &str = "stop";

/// How `cleanupPeriodDays` says that no session is deleted.
const NEVER: i64 = 0;

impl FileReader<'_, '_> {
    /// Takes one setting in; keys of other modules are left alone.
    pub(super) fn preference(&mut self, property: &ObjectProp<'_>) {
        match property.name.as_str() {
            "model" => self.trust_request(property, |stated| &mut stated.model),
            "appendSystemPrompt" => self.trust_request(property, |stated| &mut stated.append_system_prompt),
            "stopHookLimit" => self.trust_request(property, |stated| &mut stated.stop_hook_limit),
            "candidateAnswers" => self.trust_request(property, |stated| &mut stated.candidate_answers),
            "effortLevel" => self.trust_request(property, |stated| &mut stated.effort),
            "alwaysThinkingEnabled" => self.trust_request(property, |stated| &mut stated.always_thinking),
            "includeCoAuthoredBy" => self.state(property, |stated| &mut stated.co_authored),
            "fileCheckpointingEnabled" => self.trust_request(property, |stated| &mut stated.checkpointing),
            "respectGitignore" => self.state(property, |stated| &mut stated.respect_gitignore),
            "defaultShell" => self.shell(property),
            "language" => self.state(property, |stated| &mut stated.language),
            "outputStyle" => self.state(property, |stated| &mut stated.output_style),
            "autoCompactEnabled" => self.state(property, |stated| &mut stated.auto_compact),
            "projectOverview" => self.state(property, |stated| &mut stated.project_overview),
            "maxTurns" => self.trust_request(property, |stated| &mut stated.max_turns),
            "maxCostUsd" => self.amount(property, |stated| &mut stated.max_cost_usd),
            "maxMinutes" => self.amount(property, |stated| &mut stated.max_minutes),
            // To stop asks no model again.
            "incompleteIntent" if value_of(property).as_str() == Some(STOP) => {
                self.state(property, |stated| &mut stated.incomplete_intent);
            }
            "incompleteIntent" => self.trust_request(property, |stated| &mut stated.incomplete_intent),
            "autoCompactThreshold" => {
                let shares = MIN_COMPACT_THRESHOLD..=1.0;
                if value_of(property).as_f64().is_some_and(|share| shares.contains(&share)) {
                    self.trust_request(property, |stated| &mut stated.compact_threshold);
                } else {
                    let message = format!(
                        "`autoCompactThreshold` is ignored: write the share of the context window, a number from \
                         {MIN_COMPACT_THRESHOLD} to 1."
                    );
                    self.report(ProblemSeverity::Warning, property.value.range(), message);
                }
            }
            // Not to ask a model costs nothing.
            "sessionTitles" if value_of(property).as_bool() == Some(false) => {
                self.state(property, |stated| &mut stated.session_titles);
            }
            // To start fewer programs needs no approval.
            "lspServersOnPath" if value_of(property).as_bool() == Some(false) => {
                self.state(property, |stated| &mut stated.language_servers_on_path);
            }
            "lspServersOnPath" => self.trust_request(property, |stated| &mut stated.language_servers_on_path),
            "sessionTitles" => self.trust_request(property, |stated| &mut stated.session_titles),
            "cleanupPeriodDays" if self.is_of_workspace() => {
                let message =
                    "Files in the workspace cannot have sessions deleted; set this in your user settings.";
                self.report(ProblemSeverity::Warning, property.value.range(), message.to_owned());
            }
            "cleanupPeriodDays" => {
                // An invalid number of days must not delete sessions.
                if value_of(property).as_i64().is_none() {
                    self.settings.values.stated.cleanup_days.get_or_insert(NEVER);
                }
                self.state(property, |stated| &mut stated.cleanup_days);
            }
            "notify" | "notifyCommand" | "notifyAfterSeconds" => self.alerts(property),
            "todoReminderRounds" => {
                if value_of(property).as_u64().is_some_and(|rounds| rounds > 0) {
                    self.state(property, |stated| &mut stated.todo_reminder_rounds);
                } else {
                    let message = "`todoReminderRounds` is ignored: write a whole number of rounds above 0.";
                    self.report(ProblemSeverity::Warning, property.value.range(), message.to_owned());
                }
            }
            "disabledIgnoreFiles" if self.is_of_workspace() => {
                let message =
                    "Files in the workspace cannot switch ignore files off; set this in your user settings.";
                self.report(ProblemSeverity::Warning, property.value.range(), message.to_owned());
            }
            "disabledIgnoreFiles" => self.list(property, |reader, node| {
                let Some(name) = reader.text(node) else { return };
                if IGNORE_FILES.contains(&name.as_str()) {
                    let item = reader.sourced(name, node.range());
                    append(&mut reader.settings.values.stated.disabled_ignore_files, item);
                } else {
                    let message =
                        format!("`{name}` is no ignore file; those are {}.", IGNORE_FILES.join(", "));
                    reader.report(ProblemSeverity::Warning, node.range(), message);
                }
            }),
            "claudeMdExcludes" => self.list(property, |reader, node| {
                if let Some(item) = reader.loosening("claudeMdExcludes", node) {
                    append(&mut reader.settings.values.stated.memory_excludes, item);
                }
            }),
            _ => {}
        }
    }

    /// `notify` and its companions, which ring and run a program: the user's own alone.
    fn alerts(&mut self, property: &ObjectProp<'_>) {
        match property.name.as_str() {
            _ if self.is_of_workspace() => {
                let message = "Files in the workspace cannot set alerts; set this in your user settings.";
                self.report(ProblemSeverity::Warning, property.value.range(), message.to_owned());
            }
            "notify" => self.state(property, |stated| &mut stated.notify),
            "notifyCommand" => self.state(property, |stated| &mut stated.notify_command),
            _ => self.state(property, |stated| &mut stated.notify_after_seconds),
        }
    }

    /// `attribution`: what commits and pull requests end with.
    pub(super) fn attribution(&mut self, property: &ObjectProp<'_>) {
        match property.name.as_str() {
            "commit" => self.state(property, |stated| &mut stated.attribution.commit),
            "pr" => self.state(property, |stated| &mut stated.attribution.pull_request),
            _ => {}
        }
    }

    /// `defaultShell`: not followed.
    fn shell(&mut self, property: &ObjectProp<'_>) {
        let message = match value_of(property).as_str() {
            Some("bash") => return,
            Some("powershell") => {
                "Each shell has a tool of its own, which the model chooses; `defaultShell` is ignored."
            }
            Some(_) | None => "Write `\"bash\"`; `defaultShell` is ignored.",
        };
        self.report(ProblemSeverity::Warning, property.value.range(), message.to_owned());
    }

    /// A part of the budget of a turn: one of a workspace could be greater than the user's own.
    fn amount(&mut self, property: &ObjectProp<'_>, field: fn(&mut StatedPreferences) -> &mut Option<f64>) {
        if value_of(property).as_f64().is_some_and(Budget::is_amount) {
            self.trust_request(property, field);
        } else {
            let message = format!("`{}` is ignored: write a number above 0.", property.name.as_str());
            self.report(ProblemSeverity::Warning, property.value.range(), message);
        }
    }

    /// A setting that counts from any file.
    fn state<T: DeserializeOwned>(
        &mut self,
        property: &ObjectProp<'_>,
        field: fn(&mut StatedPreferences) -> &mut Option<T>,
    ) {
        let value = value_of(property);
        // An unapproved value of a workspace file may reach the model, which must not see the environment.
        let value =
            if self.is_of_workspace() { value } else { self.expanded_in(value, property.value.range()) };
        self.take(property, value, field);
    }

    fn take<T: DeserializeOwned>(
        &mut self,
        property: &ObjectProp<'_>,
        value: Value,
        field: fn(&mut StatedPreferences) -> &mut Option<T>,
    ) {
        match serde_json::from_value(value) {
            Ok(value) => {
                field(&mut self.settings.values.stated).get_or_insert(value);
            }
            Err(error) => {
                let message = format!("`{}` is ignored: {error}.", property.name.as_str());
                self.report(ProblemSeverity::Warning, property.value.range(), message);
            }
        }
    }

    /// A setting that counts from a file in the workspace only if the user has approved it.
    fn trust_request<T: DeserializeOwned>(
        &mut self,
        property: &ObjectProp<'_>,
        field: fn(&mut StatedPreferences) -> &mut Option<T>,
    ) {
        let text = value_of(property).to_string();
        if self.is_in_force(property.name.as_str(), &text, property.value.range()) {
            let value = self.expanded_in(value_of(property), property.value.range());
            self.take(property, value, field);
        }
    }
}

fn value_of(property: &ObjectProp<'_>) -> Value {
    match &property.value {
        // The parser keeps the text of a number, which a whole number has to come from.
        Node::NumberLit(number) => serde_json::from_str(number.value).unwrap_or(Value::Null),
        other => Value::from(other.clone()),
    }
}
