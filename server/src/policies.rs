//! The settings that count for a workspace on this machine.
//!
//! Rule: the same for every front end, so that a rule means the same in an editor and on the command line.

use kode_engine::paths::AbsPath;
use kode_engine::settings::{PolicyOptions, SettingsPolicies, SettingsPolicy};

use crate::home;

/// The policies of this machine's settings files.
///
/// # Errors
/// When there is no place for the user's state, or this program cannot tell where it is.
pub(crate) fn all() -> anyhow::Result<SettingsPolicies> {
    Ok(SettingsPolicies::new(PolicyOptions {
        home: etcetera::home_dir().ok().and_then(|home| AbsPath::new(home).ok()),
        state: home::folder()?,
        helper: std::env::current_exe()?,
        command_line: Vec::new(),
    }))
}

/// The policy of one folder.
///
/// # Errors
/// As [`all`].
pub(crate) fn of(folder: &AbsPath) -> anyhow::Result<SettingsPolicy> {
    Ok(all()?.of_workspace(std::slice::from_ref(folder)))
}
