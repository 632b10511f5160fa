//! The rules that are in force in a session: listed, explained, changed.
//!
//! Rule: a list shows the rules that calls are judged by, and an explanation is the gate's own verdict.

use std::sync::Arc;

use serde_json::Value;

use super::Gatekeeper;
use crate::explain::{ExplainError, Explanation, explained, mode_of};
use kode_base::blocking;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_config::policy::{KeepRuleError, ModeDisabled};
use kode_config::settings::{TrustState, WithheldSetting};
use kode_permission::Scope;
use kode_permission::equipment::Equipment;
use kode_permission::gate::GateCase;
use kode_permission::rules::{Behavior, PlacedRule, Rule, RuleError, SettingsProblem};

/// The settings that are in force, and those that are not.
#[derive(Clone, Debug)]
pub struct ActiveRules {
    /// The rules, including the grants of this session.
    pub rules: Vec<PlacedRule>,
    /// Settings of workspace files that the user has not approved.
    pub withheld: Vec<WithheldSetting>,
    /// Invalid settings.
    pub problems: Vec<SettingsProblem>,
    /// The effective mode.
    pub mode: Mode,
}

impl Gatekeeper {
    /// The rules, as the settings were at the last refresh.
    #[must_use]
    pub fn rules_in_force(&self) -> ActiveRules {
        let in_force = self.in_force();
        ActiveRules {
            rules: in_force.rules.iter().cloned().collect(),
            withheld: in_force.policy.withheld.clone(),
            problems: in_force.problems.clone(),
            mode: in_force.mode(self.mode()),
        }
    }

    /// Explains the verdict of a call without running it. Grants of exact commands and files are left out: they are no
    /// rules.
    ///
    /// # Errors
    /// [`ExplainError`], for an unknown mode.
    pub async fn explain(
        &self,
        tool: &str,
        input: Value,
        mode: Option<String>,
    ) -> Result<Explanation, ExplainError> {
        let view = self.view(&Equipment::default());
        let mode = match mode {
            Some(name) => mode_of(Some(&name))?,
            None => self.mode(),
        };
        let judge = |case: &GateCase<'_>| self.judge_by(&view, case, mode).verdict;
        Ok(explained(tool, &input, &self.workspace, &self.tools, &judge).await)
    }

    /// Writes a rule into the user's settings of this project or of all projects. Returns the file.
    ///
    /// # Errors
    /// [`KeepRuleError`]; the file is unchanged then.
    pub async fn add_rule(
        self: &Arc<Self>,
        scope: Scope,
        behavior: Behavior,
        rule: Rule,
    ) -> Result<AbsPath, KeepRuleError> {
        let source = self.source();
        let kept = blocking(move || source.keep(scope, behavior, &rule)).await;
        self.refresh().await;
        kept
    }

    /// Removes a rule from its file. Returns whether the file contained it.
    ///
    /// # Errors
    /// [`KeepRuleError`]; the file is unchanged then.
    pub async fn remove_rule(
        self: &Arc<Self>,
        file: AbsPath,
        behavior: Behavior,
        rule: Rule,
    ) -> Result<bool, KeepRuleError> {
        let source = self.source();
        let removed = blocking(move || source.remove(&file, behavior, &rule)).await;
        self.refresh().await;
        removed
    }

    /// Stores rules that allow, in the settings. Returns the errors.
    pub(crate) async fn keep_rules(&self, scope: Scope, rules: Vec<String>) -> Vec<KeepRuleError> {
        let source = self.source();
        blocking(move || {
            let keep = |text: &String| {
                let bad = |error: RuleError| KeepRuleError::BadRule {
                    rule: text.clone(),
                    reason: error.to_string(),
                };
                source.keep(scope, Behavior::Allow, &text.parse::<Rule>().map_err(bad)?)
            };
            rules.iter().map(keep).filter_map(Result::err).collect()
        })
        .await
    }

    /// The trust requests of workspace files, approved and waiting. Reads the settings files.
    pub async fn trust(self: &Arc<Self>) -> TrustState {
        self.refresh().await;
        let source = self.source();
        blocking(move || source.trust()).await
    }

    /// Returns `mode` if the settings allow it. Reads the settings files.
    ///
    /// # Errors
    /// [`ModeDisabled`], when the settings have switched it off.
    pub async fn allow_mode(self: &Arc<Self>, mode: Mode) -> Result<Mode, ModeDisabled> {
        self.refreshed().await.policy.allow_mode(mode)
    }

    /// Whether ignored files are completed in prompts.
    #[must_use]
    pub fn shows_ignored_files(&self) -> bool {
        !self.in_force().policy.preferences.respect_gitignore
    }

    /// The names of ignore files that the user has switched off.
    #[must_use]
    pub fn disabled_ignore_files(&self) -> Vec<String> {
        self.in_force().policy.preferences.disabled_ignore_files.clone()
    }

    fn mode(&self) -> Mode {
        self.core.state().config.mode
    }
}
