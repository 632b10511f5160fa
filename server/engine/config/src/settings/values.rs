//! The settings that are typed, merged over all files.
//!
//! Rule: files are taken in from the strongest to the weakest: a scalar stays once it is set, a list grows by what it does
//! not hold yet.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::models::ModelValues;
use crate::budget::Budget;
use crate::preferences::{AlertKind, AlertSettings, Attribution, IncompleteIntent, Preferences};
use kode_base::effort::Effort;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_permission::Sensitivity;
use kode_permission::rules::{Order, PathPattern, RuleSource};

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcedValue<T> {
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub source: RuleSource,
    /// The folder that relative paths in it are relative to, if its file has one.
    pub root: Option<AbsPath>,
}

/// Typed settings of all files together. `None` and empty mean that no file in force says anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SettingsValues {
    /// `permissions.defaultMode`: the mode sessions begin in.
    pub default_mode: Option<SourcedValue<Mode>>,
    /// `permissions.additionalDirectories`: folders that are reached like the workspace.
    pub additional_directories: Vec<SourcedValue<AbsPath>>,
    /// `permissions.disableBypassPermissionsMode` is `"disable"` somewhere.
    pub is_bypass_disabled: bool,
    /// `permissions.order`.
    pub order: Option<Order>,
    /// `sandbox`.
    pub sandbox: SandboxSettings,
    /// `sensitiveFiles`, the strongest first: the first that matches decides.
    pub sensitive_files: Vec<SourcedValue<SensitiveFile>>,
    /// `tools.maxConcurrency`: how many calls may run beside each other.
    pub max_concurrency: Option<usize>,
    /// How the agent is to work.
    pub stated: StatedPreferences,
    /// Which models there are.
    pub models: ModelValues,
    /// `webSearch`, merged key by key, for searches.
    pub web_search: Option<Value>,
    /// `telemetry` of the strongest file of the user or the administrator that has it.
    pub telemetry: Option<Value>,
}

/// The preferences in the files; each is a field of [`Preferences`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatedPreferences {
    /// `model`.
    pub model: Option<String>,
    /// `effortLevel`.
    pub effort: Option<Effort>,
    /// `alwaysThinkingEnabled`.
    pub always_thinking: Option<bool>,
    /// `attribution`.
    pub attribution: Attribution,
    /// `includeCoAuthoredBy`.
    pub co_authored: Option<bool>,
    /// `fileCheckpointingEnabled`.
    pub checkpointing: Option<bool>,
    /// `respectGitignore`.
    pub respect_gitignore: Option<bool>,
    /// `language`.
    pub language: Option<String>,
    /// `outputStyle`.
    pub output_style: Option<String>,
    /// `appendSystemPrompt`.
    pub append_system_prompt: Option<String>,
    /// `disabledIgnoreFiles`.
    pub disabled_ignore_files: Vec<SourcedValue<String>>,
    /// `claudeMdExcludes`.
    pub memory_excludes: Vec<SourcedValue<String>>,
    /// `autoCompactEnabled`.
    pub auto_compact: Option<bool>,
    /// `autoCompactThreshold`.
    pub compact_threshold: Option<f64>,
    /// `maxTurns`.
    pub max_turns: Option<i64>,
    /// `maxCostUsd`.
    pub max_cost_usd: Option<f64>,
    /// `maxMinutes`.
    pub max_minutes: Option<f64>,
    /// `incompleteIntent`.
    pub incomplete_intent: Option<IncompleteIntent>,
    /// `candidateAnswers`.
    pub candidate_answers: Option<bool>,
    /// `stopHookLimit`.
    pub stop_hook_limit: Option<u32>,
    /// `projectOverview`.
    pub project_overview: Option<bool>,
    /// `sessionTitles`.
    pub session_titles: Option<bool>,
    /// `lspServersOnPath`.
    pub language_servers_on_path: Option<bool>,
    /// `cleanupPeriodDays`; 0 and less mean never.
    pub cleanup_days: Option<i64>,
    /// `notify`.
    pub notify: Option<AlertKind>,
    /// `notifyCommand`.
    pub notify_command: Option<String>,
    /// `notifyAfterSeconds`.
    pub notify_after_seconds: Option<u32>,
    /// `todoReminderRounds`.
    pub todo_reminder_rounds: Option<u32>,
}

impl StatedPreferences {
    /// The preferences, with defaults for absent ones.
    #[must_use]
    pub fn preferences(&self) -> Preferences {
        let default = Preferences::default();
        Preferences {
            model: self.model.clone(),
            pointers: default.pointers,
            // To think as usual is what other agents call to think.
            effort: self.effort.or(self.always_thinking.unwrap_or(false).then_some(Effort::Medium)),
            attribution: self.attribution.or_usual(self.co_authored),
            checkpointing: self.checkpointing.unwrap_or(default.checkpointing),
            respect_gitignore: self.respect_gitignore.unwrap_or(default.respect_gitignore),
            language: self.language.clone(),
            output_style: self.output_style.clone(),
            append_system_prompt: self.append_system_prompt.clone(),
            disabled_ignore_files: self.disabled_ignore_files.iter().map(|name| name.value.clone()).collect(),
            memory_excludes: self.memory_excludes.iter().map(|pattern| pattern.value.clone()).collect(),
            auto_compact: self.auto_compact.unwrap_or(default.auto_compact),
            compact_threshold: self.compact_threshold.unwrap_or(default.compact_threshold),
            max_turns: self.max_turns,
            budget: Budget { max_cost_usd: self.max_cost_usd, max_minutes: self.max_minutes },
            incomplete_intent: self.incomplete_intent.unwrap_or_default(),
            stop_hook_limit: self.stop_hook_limit.unwrap_or(default.stop_hook_limit),
            candidate_answers: self.candidate_answers.unwrap_or_default(),
            project_overview: self.project_overview.unwrap_or(default.project_overview),
            session_titles: self.session_titles,
            language_servers_on_path: self
                .language_servers_on_path
                .unwrap_or(default.language_servers_on_path),
            // Others delete everything at 0; a slip must not cost all sessions.
            alerts: AlertSettings {
                by: self.notify.unwrap_or_default(),
                command: self.notify_command.clone(),
                after: self
                    .notify_after_seconds
                    .map_or(default.alerts.after, |seconds| Duration::from_secs(seconds.into())),
            },
            cleanup_days: match self.cleanup_days {
                Some(days) if days <= 0 => None,
                Some(days) => Some(u32::try_from(days).unwrap_or(u32::MAX)),
                None => default.cleanup_days,
            },
            todo_reminder_rounds: self.todo_reminder_rounds.unwrap_or(default.todo_reminder_rounds),
        }
    }
}

/// `sandbox`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxSettings {
    /// `enabled`.
    pub enabled: Option<bool>,
    /// `autoAllowBashIfSandboxed`.
    pub auto_allow_bash: Option<bool>,
    /// `allowUnsandboxedCommands`.
    pub allow_unsandboxed: Option<bool>,
    /// `excludedCommands`: commands that run outside of it, as in the parentheses of `Bash(…)`.
    pub excluded_commands: Vec<SourcedValue<String>>,
    /// `network.allowedDomains`, as written.
    pub allowed_domains: Vec<SourcedValue<String>>,
    /// `network.deniedDomains`, as written.
    pub denied_domains: Vec<SourcedValue<String>>,
    /// `network.allowLocalBinding`.
    pub allow_local_binding: Option<bool>,
    /// `filesystem.allowWrite`, as written.
    pub allow_write: Vec<SourcedValue<String>>,
    /// `filesystem.denyWrite`, as written.
    pub deny_write: Vec<SourcedValue<String>>,
    /// `filesystem.denyRead`, as written.
    pub deny_read: Vec<SourcedValue<String>>,
    /// `profiles`, by name.
    pub profiles: BTreeMap<String, StatedProfile>,
    /// `clientTerminal`.
    pub client_terminal: Option<bool>,
    /// `remote`, of the strongest file that has one.
    pub remote: Option<SourcedValue<StatedRemote>>,
}

/// The program that starts commands elsewhere, as the user's settings state it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedRemote {
    /// `engine`.
    pub engine: Vec<String>,
    /// `image`.
    pub image: Option<String>,
    /// `options`.
    pub options: Vec<String>,
    /// `command`.
    pub command: Vec<String>,
}

/// A profile of the sandbox, as the user's settings state it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedProfile {
    /// `description`.
    pub description: String,
    /// `readOnly`.
    pub is_read_only: bool,
    /// `allowedDomains`, as written; `None` where commands reach what they reach without the profile.
    pub allowed_domains: Option<Vec<SourcedValue<String>>>,
    /// `allowWrite`, as written.
    pub allow_write: Vec<SourcedValue<String>>,
}

/// How a file is protected beyond the built-in table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitiveFile {
    /// Which files.
    pub pattern: PathPattern,
    /// How sensitive they are.
    pub level: Sensitivity,
}

/// Adds what a list does not hold yet.
pub(super) fn append<T: PartialEq>(list: &mut Vec<SourcedValue<T>>, item: SourcedValue<T>) {
    if !list.iter().any(|known| known.value == item.value && known.root == item.root) {
        list.push(item);
    }
}

/// Fills in what the stronger value does not say.
pub(super) fn merge(strong: &mut Value, weak: &Value) {
    if let (Value::Object(strong), Value::Object(weak)) = (strong, weak) {
        for (key, value) in weak {
            match strong.get_mut(key) {
                Some(known) => merge(known, value),
                None => {
                    strong.insert(key.clone(), value.clone());
                }
            }
        }
    }
}
