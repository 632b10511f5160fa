//! The permissions of users, projects and administrators, as the gate takes it.
//!
//! Rule: a policy is read whole and never changed; a newer one replaces it between two calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::plugin::{Plugin, PluginId};
use crate::preferences::Preferences;
use crate::sandbox_profile::{self, SandboxProfiles};
use crate::settings::{Declarations, TrustRequest, TrustState, WithheldSetting};
use kode_base::mode::Mode;
use kode_base::paths::AbsPath;
use kode_model::models::Pointer;
use kode_permission::gate::Confinement;
use kode_permission::rules::{Behavior, Order, PlacedRule, Rule, SettingsProblem};
use kode_permission::{Scope, Sensitive};
use kode_process::sandbox::Sandbox;

/// The settled rules.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The rules, in any order.
    pub rules: Vec<PlacedRule>,
    /// Which of two rules wins that do not deny.
    pub order: Order,
    /// Which files hold secrets.
    pub sensitive: Sensitive,
    /// The sandbox of the commands.
    pub confinement: Confinement,
    /// The sandbox, where commands are held back by one.
    pub sandbox: Option<Arc<Sandbox>>,
    /// The profiles of the sandbox.
    pub profiles: Arc<SandboxProfiles>,
    /// Whether a profile lets commands write in no folder of the workspace.
    pub is_read_only: bool,
    /// Folders beside the workspace that count as part of it.
    pub additional: Vec<AbsPath>,
    /// Mode of new sessions.
    pub default_mode: Option<Mode>,
    /// Whether the mode in which everything runs is switched off.
    pub is_bypass_disabled: bool,
    /// How the agent is to work.
    pub preferences: Preferences,
    /// Why the rules protect less than the user thinks, if they do; nothing runs unasked then.
    pub lost: Option<String>,
    /// The unapproved trust requests of workspace files.
    pub withheld: Vec<WithheldSetting>,
    /// The digest of the requests that the user has not dismissed.
    pub to_ask: Vec<String>,
    /// The digest of the contents of the files the policy was made from.
    pub contents: Vec<(AbsPath, u64)>,
    /// Scripts of the workspace that hooks run outside of the sandbox.
    pub hook_scripts: Vec<AbsPath>,
    /// Entries that other modules run, start or pass on.
    pub declared: Arc<Declarations>,
    /// The invalid entries of the settings, and their places.
    pub problems: Vec<SettingsProblem>,
}

impl Default for Policy {
    /// Nothing settled: no rules, no sandbox, the built-in table of secrets.
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            order: Order::default(),
            sensitive: Sensitive::default(),
            confinement: Confinement::Off,
            sandbox: None,
            profiles: Arc::new(sandbox_profile::built_in()),
            is_read_only: false,
            additional: Vec::new(),
            default_mode: None,
            is_bypass_disabled: false,
            preferences: Preferences::default(),
            lost: None,
            withheld: Vec::new(),
            to_ask: Vec::new(),
            contents: Vec::new(),
            hook_scripts: Vec::new(),
            declared: Arc::default(),
            problems: Vec::new(),
        }
    }
}

/// The default state of new sessions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionDefaults {
    /// The mode, if the settings name one.
    pub mode: Option<Mode>,
    /// Whether the mode in which everything runs is switched off.
    pub is_bypass_disabled: bool,
    /// The profile or model that the settings name, if they do.
    pub model: Option<String>,
    /// The profiles the workspace uses instead of those of the user's own pointers.
    pub pointers: BTreeMap<Pointer, String>,
}

/// A mode that the settings have switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "mode {} is switched off in the settings by `permissions.disableBypassPermissionsMode`; \
     `kode-ls doctor` lists the files",
    Mode::BypassPermissions.name()
)]
pub struct ModeDisabled;

impl SessionDefaults {
    /// The mode a session begins in: the one that is wanted, else the settings' own.
    ///
    /// # Errors
    /// [`ModeDisabled`], when that mode is wanted and switched off.
    pub fn mode(&self, wanted: Option<Mode>) -> Result<Mode, ModeDisabled> {
        match wanted {
            Some(mode) => allowed(mode, self.is_bypass_disabled),
            None => Ok(allowed(self.mode.unwrap_or_default(), self.is_bypass_disabled).unwrap_or_default()),
        }
    }
}

impl Policy {
    /// Whether a session may be put into a mode.
    ///
    /// # Errors
    /// [`ModeDisabled`].
    pub fn allow_mode(&self, mode: Mode) -> Result<Mode, ModeDisabled> {
        allowed(mode, self.is_bypass_disabled)
    }
}

fn allowed(mode: Mode, is_bypass_disabled: bool) -> Result<Mode, ModeDisabled> {
    if mode == Mode::BypassPermissions && is_bypass_disabled { Err(ModeDisabled) } else { Ok(mode) }
}

/// Why a rule was not kept or not removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeepRuleError {
    /// There are no settings to keep it in.
    #[error("there are no settings files here to keep rules in")]
    NoSettings,
    /// The text is no rule.
    #[error("`{rule}` is not a rule: {reason}")]
    BadRule {
        /// The text.
        rule: String,
        /// Its problems.
        reason: String,
    },
    /// The file could not be read or written.
    #[error("{0}")]
    File(String),
}

/// Where a policy comes from, and where standing answers are kept.
pub trait PolicySource: Send + Sync {
    /// The policy as it is now. The same `Arc` as before when nothing has changed; cheap then. Blocks on the disk.
    fn current(&self) -> Arc<Policy>;

    /// The policy of the last [`PolicySource::current`], where the system says that nothing it depends on has changed since; `None`
    /// where it does not say so. Never blocks.
    fn unchanged(&self) -> Option<Arc<Policy>> {
        None
    }

    /// The plugins that are on now; costs less than the whole policy where that has to be made first. Blocks on the disk.
    fn plugins_in_use(&self) -> Vec<Arc<Plugin>> {
        self.current().declared.plugins_in_use().cloned().collect()
    }

    /// The preferences as they are now; cost less than the whole policy where that has to be made first. Blocks on the disk.
    fn preferences(&self) -> Preferences {
        self.current().preferences.clone()
    }

    /// Whether standing answers can be kept beyond the session.
    fn can_keep(&self) -> bool {
        false
    }

    /// Keeps a rule in the user's own settings of the project or of all projects, and says in which file.
    ///
    /// # Errors
    /// [`KeepRuleError`]; the file is then as it was.
    fn keep(&self, _scope: Scope, _behavior: Behavior, _rule: &Rule) -> Result<AbsPath, KeepRuleError> {
        Err(KeepRuleError::NoSettings)
    }

    /// Removes a rule from the file it is in, and says whether it stood there.
    ///
    /// # Errors
    /// [`KeepRuleError`]; the file is then as it was.
    fn remove(&self, _file: &AbsPath, _behavior: Behavior, _rule: &Rule) -> Result<bool, KeepRuleError> {
        Err(KeepRuleError::NoSettings)
    }

    /// Writes into the user's own settings whether a plugin is on, and says into which file.
    ///
    /// # Errors
    /// [`KeepRuleError`]; the file is then as it was.
    fn switch_plugin(&self, _plugin: &PluginId, _is_on: bool) -> Result<AbsPath, KeepRuleError> {
        Err(KeepRuleError::NoSettings)
    }

    /// Whether the user has approved exactly this, which a file of the workspace asks for.
    fn is_approved(&self, _trust_request: &TrustRequest) -> bool {
        false
    }

    /// Whether the user does not want to be asked about this again.
    fn is_put_off(&self, _trust_request: &TrustRequest) -> bool {
        false
    }

    /// Approves exactly these, which files of the workspace ask for that are no settings.
    ///
    /// # Errors
    /// [`KeepRuleError`]; nothing is approved then.
    fn approve_trust_requests(&self, _trust_requests: &[TrustRequest]) -> Result<(), KeepRuleError> {
        Err(KeepRuleError::NoSettings)
    }

    /// The trust requests of workspace files, what waits of it and what counts.
    fn trust(&self) -> TrustState {
        TrustState::default()
    }

    /// Approves of what waits now what these digests stand for, and says how much that is.
    ///
    /// # Errors
    /// [`KeepRuleError`]; nothing is approved then.
    fn approve(&self, _digests: &[String]) -> Result<usize, KeepRuleError> {
        Err(KeepRuleError::NoSettings)
    }

    /// Takes approvals back, and says how many.
    ///
    /// # Errors
    /// [`KeepRuleError`]; the approvals stay then.
    fn revoke(&self, _digests: &[String]) -> Result<usize, KeepRuleError> {
        Err(KeepRuleError::NoSettings)
    }

    /// Remembers that the user does not want to be asked about these.
    ///
    /// # Errors
    /// [`KeepRuleError`].
    fn dismiss(&self, _digests: &[String]) -> Result<(), KeepRuleError> {
        Err(KeepRuleError::NoSettings)
    }
}

/// The same policy always.
impl PolicySource for Arc<Policy> {
    fn current(&self) -> Arc<Policy> {
        Arc::clone(self)
    }
}
