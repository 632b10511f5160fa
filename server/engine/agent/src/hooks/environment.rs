//! The exports of hooks at a session's beginning: the environment of its later commands.
//!
//! Rule: the file is run by a shell with the rights of the hook that wrote it, once, right after the hook; what comes of it
//! is data, of bounded size.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::HookRunner;
use super::transcript::replace;
use kode_base::paths::AbsPath;
use kode_base::{blocking, file_moves};
use kode_process::sandbox::Sandbox;
use kode_process::shell::piped::PipedSpec;

/// The most time to run the file.
const LIMIT: Duration = Duration::from_secs(10);

/// The most bytes of its output that are read.
const MAX_BYTES: usize = 256 << 10;

/// The most variables that are taken over.
const MAX_VARIABLES: usize = 200;

/// Is between the environment before and after.
const MARK: &str = "KODE_LS_ENVIRONMENT_FOLLOWS";

/// The variables that a shell changes by itself.
const ITS_OWN: [&str; 5] = ["_", "SHLVL", "PWD", "OLDPWD", "SHELLOPTS"];

/// A file for a hook's exports.
pub(super) struct EnvironmentFile(AbsPath);

impl EnvironmentFile {
    /// The variable that holds its path.
    pub(super) const VARIABLE: &str = "CLAUDE_ENV_FILE";

    /// Makes an empty one, where the hook can write it.
    pub(super) async fn make(hooks: &HookRunner, sandbox: Option<&Arc<Sandbox>>) -> Option<Self> {
        let folder = sandbox.map(|sandbox| sandbox.scratch().clone()).or_else(|| hooks.own_folder())?;
        let path = folder.join(format!("hook-env-{}.sh", uuid::Uuid::now_v7().simple()));
        let made = path.clone();
        match blocking(move || replace(made.as_path(), b"")).await {
            Ok(()) => Some(Self(path)),
            Err(error) => {
                tracing::warn!(%error, %path, "hooks can export nothing to later commands");
                None
            }
        }
    }

    pub(super) fn path(&self) -> &AbsPath {
        &self.0
    }

    /// Runs the file if it is not empty, gives its exports to the session's later commands, and removes it.
    pub(super) async fn apply(&self, hooks: &HookRunner, hook: &PipedSpec, cancel: &CancellationToken) {
        let path = self.0.clone();
        let is_written = blocking(move || {
            std::fs::symlink_metadata(path.as_path()).is_ok_and(|file| file.is_file() && file.len() > 0)
        });
        if is_written.await {
            let script =
                format!("env -0; printf '{MARK}\\0'; set -a; . \"$1\" >/dev/null 2>&1; set +a; env -0");
            let arguments = ["-c", &script, "sh", &self.0.to_string()].map(str::to_owned).to_vec();
            let spec = PipedSpec {
                program: "sh".to_owned(),
                arguments,
                input: Vec::new(),
                limit: LIMIT,
                max_bytes: MAX_BYTES,
                ..hook.clone()
            };
            match hooks.environment.shell.run_piped(spec, cancel).await {
                Ok(piped) => hooks.environment.shell.export(exported(&piped.stdout)),
                Err(error) => tracing::warn!(error, "the exports of a hook could not be read"),
            }
        }
        let path = self.0.clone();
        blocking(move || {
            if let Err(error) = file_moves::remove_file(path.as_path()) {
                tracing::debug!(%error, %path, "the file of a hook's exports is left");
            }
        })
        .await;
    }
}

/// The variables that are others behind the mark than before it.
fn exported(printed: &str) -> Vec<(String, String)> {
    let (before, after) = printed.split_once(&format!("{MARK}\0")).unwrap_or_default();
    let before: Vec<&str> = before.split('\0').collect();
    let new = after.split('\0').filter(|entry| !before.contains(entry));
    let new = new.filter_map(|entry| entry.split_once('='));
    let new = new.filter(|(name, _)| !name.is_empty() && !ITS_OWN.contains(name));
    new.take(MAX_VARIABLES).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_file_changed_is_exported() {
        let printed = format!("A=1\0B=2\0_=/bin/env\0{MARK}\0A=1\0B=3\0C=x=y\nz\0_=/usr/bin/env\0");
        let expected = [("B", "3"), ("C", "x=y\nz")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(exported(&printed), expected);
        assert_eq!(exported("A=1\0"), []);
    }
}
