//! Fetching a git repository.
//!
//! Rule: git runs as elsewhere in this program: no hooks, no helper of the repository, no submodules; only the newest commit, over
//! few protocols, and for a bounded time. What is fetched is only ever read.

use tokio_util::sync::CancellationToken;

use super::{LIMIT, StoreError};
use crate::paths::AbsPath;
use crate::shell::{CommandSpec, Exit, Shell};
use crate::workspace::blocking;

/// The largest file that git may write, in kilobytes: all it fetches is one file.
const MAX_KILOBYTES: u32 = 512 << 10;

/// The repository is the one that is made here, whatever the program was started in; nobody is asked for passwords.
const ENVIRONMENT: &str = "unset GIT_DIR GIT_WORK_TREE GIT_COMMON_DIR GIT_INDEX_FILE GIT_OBJECT_DIRECTORY \
     GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_NAMESPACE; \
     export GIT_ALLOW_PROTOCOL=file:https:ssh GIT_TERMINAL_PROMPT=0 GIT_LFS_SKIP_SMUDGE=1";

const GIT: &str = "git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c submodule.recurse=false";

/// Fetches the newest commit of a branch, a tag, or a commit by its name, into a folder that is not there yet.
///
/// # Errors
/// [`StoreError::Fetch`] with what git says.
pub(super) async fn fetch(address: &str, reference: Option<&str>, into: &AbsPath) -> Result<(), StoreError> {
    let failed = |reason: String| StoreError::Fetch { address: address.to_owned(), reason };
    let made = into.clone();
    blocking(move || std::fs::create_dir_all(&made)).await.map_err(|error| failed(error.to_string()))?;
    let (address, reference) = (quote(address), quote(reference.unwrap_or("HEAD")));
    let command = format!(
        "{ENVIRONMENT}; ulimit -f {MAX_KILOBYTES}; {GIT} init --quiet --template= . && {GIT} fetch --quiet --depth 1 \
         --no-tags --no-recurse-submodules -- {address} {reference} && {GIT} checkout --quiet --detach FETCH_HEAD"
    );
    let spec = CommandSpec { command, directory: into.clone(), timeout: LIMIT, sandbox: None, call: None };
    let outcome = Shell::new(into.clone()).run(spec, |_| {}, &CancellationToken::new()).await;
    let outcome = outcome.map_err(|error| failed(error.to_string()))?;
    match outcome.exit {
        Exit::Code(0) => Ok(()),
        Exit::TimedOut => Err(failed(format!("it took longer than {} seconds", LIMIT.as_secs()))),
        Exit::Code(_) | Exit::Signal(_) | Exit::Cancelled => Err(failed(last_line(&outcome.output.text))),
    }
}

/// What git said last.
fn last_line(text: &str) -> String {
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    last.unwrap_or("git failed and says nothing").to_owned()
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
