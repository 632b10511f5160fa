//! Fetching a git repository.
//!
//! Rule: git runs as elsewhere in this program: no hooks, no helper of the repository, no submodules; only the newest commit, over
//! few protocols, and for a bounded time. Fetched files are only read.

use tokio_util::sync::CancellationToken;

use super::{LIMIT, StoreError};
use kode_base::blocking;
use kode_base::paths::AbsPath;
use kode_process::git::{GIT, GitRunner, quote};
use kode_process::shell::Shell;

/// The largest file that git may write, in kilobytes: all it fetches is one file.
const MAX_KILOBYTES: u32 = 512 << 10;

/// The allowed address, and its omitted parts.
const BOUNDS: &str = "export GIT_ALLOW_PROTOCOL=file:https:ssh GIT_LFS_SKIP_SMUDGE=1";

/// Fetches the newest commit of a branch, a tag, or a commit by its name, into a folder that is not there yet.
///
/// # Errors
/// [`StoreError::Fetch`] with what git says.
pub(super) async fn fetch(address: &str, reference: Option<&str>, into: &AbsPath) -> Result<(), StoreError> {
    let failed = |reason: String| StoreError::Fetch { address: address.to_owned(), reason };
    let made = into.clone();
    blocking(move || std::fs::create_dir_all(&made)).await.map_err(|error| failed(error.to_string()))?;
    let (address, reference) = (quote(address), quote(reference.unwrap_or("HEAD")));
    let line = format!(
        "{BOUNDS}; ulimit -f {MAX_KILOBYTES}; {GIT} init --quiet --template= . && {GIT} fetch --quiet --depth 1 \
         --no-tags --no-recurse-submodules -- {address} {reference} && {GIT} checkout --quiet --detach FETCH_HEAD"
    );
    let runner = GitRunner { shell: &Shell::new(into.clone()), sandbox: None, limit: LIMIT };
    runner.run(into, &line, &CancellationToken::new()).await.map(drop).map_err(failed)
}
