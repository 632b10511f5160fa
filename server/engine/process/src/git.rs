//! Running git for ourselves: as a command line, with nothing of the repository's that runs by itself.
//!
//! Rule: no hooks, no file system monitor, no submodules, no questions at a terminal; the repository is the one of the folder,
//! whatever the program was started in.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::outcome::Exit;
use crate::programs;
use crate::sandbox::Sandbox;
use crate::shell::{CommandSpec, Shell};
use kode_base::command_shell::CommandShell;
use kode_base::paths::AbsPath;

/// The text before the first call of git in a command line.
const ENVIRONMENT: &str = "unset GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY \
     GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE; export GIT_TERMINAL_PROMPT=0 GIT_OPTIONAL_LOCKS=0";

/// The name of git in a command line.
pub const GIT: &str = "git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c submodule.recurse=false";

/// Runs command lines with git in them.
#[derive(Clone, Debug)]
pub struct GitRunner<'a> {
    /// The shell whose variables they get.
    pub shell: &'a Shell,
    /// The sandbox of the commands; with none they have the user's rights.
    pub sandbox: Option<Arc<Sandbox>>,
    /// The longest that one of them may take.
    pub limit: Duration,
}

impl GitRunner<'_> {
    /// Runs a command line in a folder and gives what it put out.
    ///
    /// # Errors
    /// What git said last, for people.
    pub async fn run(
        &self,
        directory: &AbsPath,
        line: &str,
        cancel: &CancellationToken,
    ) -> Result<String, String> {
        // Neither git nor what it runs is taken from the workspace.
        let path = programs::search_path().to_string_lossy().into_owned();
        let spec = CommandSpec {
            shell: CommandShell::Bash,
            command: format!("PATH={}; {ENVIRONMENT}; {line}", quote(&path)),
            directory: directory.clone(),
            timeout: self.limit,
            sandbox: self.sandbox.clone(),
            call: None,
        };
        // Where the command line goes is its own matter.
        let shell = self.shell.elsewhere(directory.clone());
        let outcome = shell.run(spec, |_| {}, cancel).await.map_err(|error| error.to_string())?;
        match outcome.exit {
            Exit::Code(0) => Ok(outcome.output.text),
            Exit::TimedOut => Err(format!("git took longer than {} seconds", self.limit.as_secs())),
            Exit::Cancelled => Err("cancelled".to_owned()),
            Exit::Code(_) | Exit::Signal(_) => Err(last_line(&outcome.output.text)),
        }
    }
}

/// The last output of git.
fn last_line(text: &str) -> String {
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.unwrap_or("git failed and says nothing").to_owned()
}

/// A text as one word of a command line.
pub fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
