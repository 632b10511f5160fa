//! The rules that are in force in a session, for people: listed, explained, changed.
//!
//! Rule: what is listed is what the gate goes by, and an explanation is the gate's own verdict.

use serde_json::Value;

use crate::explain::{Explanation, Question, Setting, Unanswerable, explain};
use crate::session::Session;
use kode_base::blocking;
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_config::policy::KeepRuleError;
use kode_config::settings::{TrustState, WithheldSetting};
use kode_permission::Scope;
use kode_permission::rules::{Behavior, PlacedRule, Rule, SettingsProblem};

/// What is in force, and what is not and why.
#[derive(Clone, Debug)]
pub struct RulesInForce {
    /// The rules, those of this session's standing answers included.
    pub rules: Vec<PlacedRule>,
    /// What files of the workspace ask for and the user has not approved.
    pub withheld: Vec<WithheldSetting>,
    /// What cannot be used.
    pub problems: Vec<SettingsProblem>,
    /// The mode that counts.
    pub mode: Mode,
}

impl Session {
    /// What the gate goes by, as the settings were when they were looked at last.
    #[must_use]
    pub fn rules_in_force(&self) -> RulesInForce {
        let in_force = self.in_force();
        RulesInForce {
            rules: in_force.rules.iter().cloned().collect(),
            withheld: in_force.policy.withheld.clone(),
            problems: in_force.problems.clone(),
            mode: in_force.mode(self.mode()),
        }
    }

    /// Says what would become of a call now, without running anything. Standing answers to exact commands and files are
    /// left out: they are no rules.
    ///
    /// # Errors
    /// [`Unanswerable`], when there is no such mode.
    pub fn explain(
        &self,
        tool: &str,
        input: Value,
        mode: Option<String>,
    ) -> Result<Explanation, Unanswerable> {
        let in_force = self.in_force();
        let mode = mode.or_else(|| Some(in_force.mode(self.mode()).name().to_owned()));
        let cwd = self.workspace.cwd();
        let question =
            Question { mode, rules: None, cwd: None, workspace: None, tool: tool.to_owned(), input };
        explain(
            &question,
            &Setting {
                folder: &cwd,
                rules: in_force.rules.iter().cloned().collect(),
                order: in_force.policy.order,
                sensitive: &in_force.policy.sensitive,
                confinement: &in_force.policy.confinement,
                additional: &in_force.policy.additional,
                tools: &self.tools,
            },
        )
    }

    /// Writes a rule into the user's settings of this project or of all projects, and says into which file.
    ///
    /// # Errors
    /// [`KeepRuleError`]; the file is then as it was.
    pub async fn add_rule(
        &self,
        scope: Scope,
        behavior: Behavior,
        rule: Rule,
    ) -> Result<AbsPath, KeepRuleError> {
        let source = self.policy_source();
        let kept = blocking(move || source.keep(scope, behavior, &rule)).await;
        self.look().await;
        kept
    }

    /// Removes a rule from the file it stands in, and says whether it stood there.
    ///
    /// # Errors
    /// [`KeepRuleError`]; the file is then as it was.
    pub async fn remove_rule(
        &self,
        file: AbsPath,
        behavior: Behavior,
        rule: Rule,
    ) -> Result<bool, KeepRuleError> {
        let source = self.policy_source();
        let removed = blocking(move || source.remove(&file, behavior, &rule)).await;
        self.look().await;
        removed
    }

    /// What files of the workspace ask for, what waits of it and what counts. Looks at the settings files.
    pub async fn trust(&self) -> TrustState {
        self.look().await;
        let source = self.policy_source();
        blocking(move || source.trust()).await
    }

    /// Whether ignored files are offered where a prompt names files.
    #[must_use]
    pub fn shows_ignored_files(&self) -> bool {
        !self.in_force().policy.preferences.respect_gitignore
    }
}
