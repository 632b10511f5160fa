//! Where the user's state lives.
//!
//! Rule: one folder for everything that outlives a process, sessions and logs, and one beside it for worktrees, which commands have to
//! see; `KODE_LS_HOME` overrides it; nothing of it ever goes into the repository.

#![expect(clippy::disallowed_methods, reason = "a variable names the state folder")]

use anyhow::Context;
use etcetera::BaseStrategy;
use kode_engine::base::paths::AbsPath;

/// The state folder: `KODE_LS_HOME`, else `kode-ls` in the platform's folder for state. It need not exist yet.
///
/// # Errors
/// When `KODE_LS_HOME` is not absolute, or there is no home folder to go by.
pub fn folder() -> anyhow::Result<AbsPath> {
    if let Some(home) = std::env::var_os("KODE_LS_HOME").filter(|home| !home.is_empty()) {
        return AbsPath::new(std::path::PathBuf::from(home)).context("KODE_LS_HOME must be an absolute path");
    }
    let base = etcetera::choose_base_strategy().context("there is no home folder; set KODE_LS_HOME")?;
    let folder = base.state_dir().unwrap_or_else(|| base.data_dir()).join("kode-ls");
    Ok(AbsPath::new(folder)?)
}
