//! How the user wants the agent to work: what the settings say beside permissions.
//!
//! Rule: every preference has a value; nothing in here lets a call run that would not run without it.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::budget::Budget;
use crate::hooks::event::STOP_LIMIT;
use kode_base::effort::Effort;
use kode_model::models::Pointer;

/// The share of a model's context window at which a conversation is compacted, unless the settings say otherwise.
pub const COMPACT_THRESHOLD: f64 = 0.8;

/// Rounds without an update of the todo list after which the model is reminded of it, unless the settings say
/// otherwise.
pub const TODO_REMINDER_ROUNDS: u32 = 10;

/// How the user wants the agent to work.
#[derive(Clone, Debug, PartialEq)]
pub struct Preferences {
    /// `model`: the profile or model new sessions begin with, or an alias of one.
    pub model: Option<String>,
    /// `modelPointers` of the workspace: the profiles it uses instead of those of the user's own pointers.
    pub pointers: BTreeMap<Pointer, String>,
    /// `effortLevel`: how hard models think, where their profile does not say.
    pub effort: Option<Effort>,
    /// `attribution` and `includeCoAuthoredBy`: what the agent's commits and pull requests end with.
    pub attribution: Attribution,
    /// `fileCheckpointingEnabled`: whether files can be brought back to before a prompt.
    pub checkpointing: bool,
    /// `respectGitignore`: whether no ignored files are offered where prompts name files.
    pub respect_gitignore: bool,
    /// `language`: the language of the answers; that of the user's message when `None`.
    pub language: Option<String>,
    /// `outputStyle`: the name of the style of the answers.
    pub output_style: Option<String>,
    /// `appendSystemPrompt`: text at the end of the system prompt.
    pub append_system_prompt: Option<String>,
    /// `disabledIgnoreFiles`: names of ignore files that do not count, for example `.cursorignore`.
    pub disabled_ignore_files: Vec<String>,
    /// `claudeMdExcludes`: patterns of instruction files that are left out.
    pub memory_excludes: Vec<String>,
    /// `autoCompactEnabled`: whether a conversation is compacted before it grows out of the context window.
    pub auto_compact: bool,
    /// `autoCompactThreshold`: the share of the context window at which it is, from 0.2 to 1.
    pub compact_threshold: f64,
    /// `maxTurns`: the most model calls of one turn. −1 means the built-in limit, 0 that nothing is asked at all.
    pub max_turns: Option<i64>,
    /// `maxCostUsd` and `maxMinutes`: what a turn may take before the user is asked.
    pub budget: Budget,
    /// `incompleteIntent`: the reaction to an answer that only announces what it is going to do.
    pub incomplete_intent: IncompleteIntent,
    /// `stopHookLimit`: how often in a turn hooks may have the agent continue when it has said all.
    pub stop_hook_limit: u32,
    /// `candidateAnswers`: whether each prompt is answered twice, for the user to choose.
    pub candidate_answers: bool,
    /// `projectOverview`: whether the model learns when a session begins what lies in the working directory.
    pub project_overview: bool,
    /// `sessionTitles`: whether a model is asked for titles of sessions; by default only if `quick` points to
    /// another profile than the session's.
    pub session_titles: Option<bool>,
    /// `lspServersOnPath`: whether well-known language servers on the `PATH` are used without an entry.
    pub language_servers_on_path: bool,
    /// `cleanupPeriodDays`: days after which an unused session is deleted; `None` means never.
    pub cleanup_days: Option<u32>,
    /// `notify` and its companions: how the user is alerted while the editor is not in front.
    pub alerts: AlertSettings,
    /// `todoReminderRounds`: rounds without an update of the todo list after which the model is reminded of it.
    pub todo_reminder_rounds: u32,
}

/// How the user is alerted when a turn ends or something waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertSettings {
    /// `notify`.
    pub by: AlertKind,
    /// `notifyCommand`: the command of [`AlertKind::Command`].
    pub command: Option<String>,
    /// `notifyAfterSeconds`: turns that took less are not reported, and prompts wait that long where the focus is unknown.
    pub after: Duration,
}

/// The form of an alert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertKind {
    /// None.
    #[default]
    Off,
    /// The bell of the terminal.
    Bell,
    /// A notification of the desktop.
    Desktop,
    /// A command of the user.
    Command,
}

/// The seconds of `notifyAfterSeconds`, unless the settings say otherwise.
const ALERT_AFTER: Duration = Duration::from_secs(10);

impl Default for AlertSettings {
    fn default() -> Self {
        Self { by: AlertKind::Off, command: None, after: ALERT_AFTER }
    }
}

/// The texts at the end of commit messages and pull request descriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// `attribution.commit`.
    pub commit: Option<String>,
    /// `attribution.pr`.
    pub pull_request: Option<String>,
}

/// The default text at the end of commit messages.
const USUAL_TRAILER: &str = "Assisted-by: kode-ls";

impl Attribution {
    /// This one, where `is_named` does not switch it off; where it switches it on without a text of its own, the usual
    /// trailer.
    #[must_use]
    pub fn or_usual(&self, is_named: Option<bool>) -> Self {
        match is_named {
            Some(false) => Self::default(),
            Some(true) => {
                let commit = self.commit.clone().or_else(|| Some(USUAL_TRAILER.to_owned()));
                Self { commit, pull_request: self.pull_request.clone() }
            }
            None => self.clone(),
        }
    }
}

/// How to handle an answer that only announces work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IncompleteIntent {
    /// The model is asked to do it.
    #[default]
    Retry,
    /// The turn ends, and the user is notified.
    Stop,
    /// The fallback model is asked to do it.
    Fallback,
}

impl Default for Preferences {
    fn default() -> Self {
        Self {
            model: None,
            pointers: BTreeMap::new(),
            effort: None,
            attribution: Attribution::default(),
            checkpointing: true,
            respect_gitignore: true,
            language: None,
            output_style: None,
            append_system_prompt: None,
            disabled_ignore_files: Vec::new(),
            memory_excludes: Vec::new(),
            auto_compact: true,
            compact_threshold: COMPACT_THRESHOLD,
            max_turns: None,
            budget: Budget::default(),
            incomplete_intent: IncompleteIntent::default(),
            stop_hook_limit: STOP_LIMIT,
            candidate_answers: false,
            project_overview: true,
            session_titles: None,
            language_servers_on_path: true,
            cleanup_days: None,
            alerts: AlertSettings::default(),
            todo_reminder_rounds: TODO_REMINDER_ROUNDS,
        }
    }
}
