//! Finding the programs that the server starts by name: the shell, git, servers of tools.
//!
//! Rule: a program is never taken from a folder that the agent may write in, wherever `PATH` has it. Where it was found once
//! it is taken from for good.

#![expect(clippy::disallowed_methods, reason = "it searches the PATH")]

use std::collections::{BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use parking_lot::RwLock;

use crate::interpreter::{MISSING_GIT_BASH, SHELLS, ShellSearch};
use kode_base::command_shell::CommandShell;
use kode_base::paths::{AbsPath, real_path};

/// Folders of the system, whatever `PATH` says.
#[cfg(not(windows))]
const SYSTEM: [&str; 6] =
    ["/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin", "/run/current-system/sw/bin"];
/// Folders of the system, below that of Windows itself.
#[cfg(windows)]
const SYSTEM: [&str; 3] = ["System32", "System32/OpenSSH", "System32/WindowsPowerShell/v1.0"];
/// Folders that everybody may write in.
#[cfg(not(windows))]
const SHARED: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
#[cfg(windows)]
const SHARED: [&str; 0] = [];
/// The ends of the names of programs; a name without one of them gets each in turn.
#[cfg(windows)]
const ENDS: [&str; 4] = [".exe", ".com", ".cmd", ".bat"];

/// The known programs.
#[derive(Debug, Default)]
struct ProgramTable {
    /// Folders that the agent may write in, by name and resolved.
    writable: BTreeSet<PathBuf>,
    found: HashMap<String, PathBuf>,
}

static KNOWN: LazyLock<RwLock<ProgramTable>> = LazyLock::new(RwLock::default);

/// Why a program is not started.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// It is nowhere.
    #[error("`{0}` is in no folder of PATH")]
    Nowhere(String),
    /// It is the shell of another system.
    #[error("`{0}` was not found: {MISSING_GIT_BASH}")]
    NoShell(String),
    /// It is where the agent may have put it.
    #[error(
        "`{name}` is only in {folder}, which the agent may write in; name it by its path to use it from there"
    )]
    Writable {
        /// The program.
        name: String,
        /// The folder.
        folder: PathBuf,
    },
}

/// Takes no program from these folders and what lies in them from now on.
pub fn exclude<'p>(folders: impl IntoIterator<Item = &'p AbsPath>) {
    let mut names = Vec::new();
    for folder in folders {
        let resolved = real_path(folder.as_path()).ok();
        names.extend(resolved.into_iter().chain([folder.as_path().to_path_buf()]));
    }
    let is_known = |known: &ProgramTable| names.iter().all(|name| known.writable.contains(name));
    if is_known(&KNOWN.read()) {
        return;
    }
    let mut known = KNOWN.write();
    known.writable.extend(names);
    let ProgramTable { writable, found } = &mut *known;
    found.retain(|_, program| !is_writable(program, writable));
}

/// The program of that name; a name with a slash in it is a path and stays what it is. On Windows, both names of the shell mean
/// the one that runs commands.
///
/// # Errors
/// [`ProgramError`].
pub fn find(name: &str) -> Result<PathBuf, ProgramError> {
    if is_path(name.as_bytes()) {
        return Ok(PathBuf::from(name));
    }
    if cfg!(windows) && SHELLS.contains(&name) {
        return git_bash().ok_or_else(|| ProgramError::NoShell(name.to_owned()));
    }
    if let Some(found) = KNOWN.read().found.get(name)
        && is_program(found)
    {
        return Ok(found.clone());
    }
    let mut known = KNOWN.write();
    let found = search(name, &folders(), &known.writable)?;
    known.found.insert(name.to_owned(), found.clone());
    Ok(found)
}

/// The programs that run commands of a shell, the preferred one first.
pub(crate) fn shells(shell: CommandShell) -> impl Iterator<Item = PathBuf> {
    let (one, of_unix): (_, &[&str]) = match shell {
        CommandShell::PowerShell => (powershell(), &[]),
        CommandShell::Bash if cfg!(windows) => (git_bash(), &[]),
        CommandShell::Bash => (None, &SHELLS),
    };
    one.into_iter().chain(of_unix.iter().filter_map(|shell| find(shell).ok()))
}

/// The program that runs commands of a shell first, if there is one.
#[must_use]
pub fn shell(shell: CommandShell) -> Option<PathBuf> {
    shells(shell).next()
}

/// The PowerShell of this machine: the one that `KODE_LS_POWERSHELL` names; on Windows also `pwsh.exe`, or that of Windows.
fn powershell() -> Option<PathBuf> {
    // Elsewhere no folder of `PATH` is searched for it, and this is asked before each request to the model.
    let path = if cfg!(windows) { searched() } else { Vec::new() };
    searching(&path, |search| search.powershell(cfg!(windows)))
}

fn git_bash() -> Option<PathBuf> {
    searching(&searched(), |search| search.bash())
}

fn searching<T>(path: &[PathBuf], find: impl FnOnce(&ShellSearch<'_>) -> T) -> T {
    find(&ShellSearch { variable: &variable, path, is_file: &Path::is_file })
}

/// Where `PATH` has a program, in folders that the agent may write in as well; for programs that the user names and starts. A name with a slash in it is a
/// path. `None` for a program that is nowhere.
#[must_use]
pub fn on_path(name: &OsStr) -> Option<PathBuf> {
    if is_path(name.as_encoded_bytes()) {
        return Some(PathBuf::from(name)).filter(|path| is_program(path));
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).find_map(|folder| program_in(&folder, name))
}

/// `PATH` without the folders that the agent may write in, for programs that run outside of the sandbox.
#[must_use]
pub fn search_path() -> OsString {
    // A folder with a separator in its name cannot be in it.
    std::env::join_paths(searched())
        .or_else(|_| std::env::join_paths(folders_of_system()))
        .unwrap_or_default()
}

/// The folders of `PATH` and of the system that the agent may not write in.
fn searched() -> Vec<PathBuf> {
    let known = KNOWN.read();
    folders().into_iter().filter(|folder| may_be_searched(folder, &known.writable)).collect()
}

/// A variable of this process.
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether the program that a shell would take for a name lies in no folder that the agent may write in. A name that is
/// nowhere is harmless.
#[must_use]
pub fn is_taken_from_outside(name: &str) -> bool {
    let known = KNOWN.read();
    for folder in folders() {
        let program = program_in(&folder, OsStr::new(name));
        if program.is_some() || !folder.is_absolute() {
            return may_be_searched(&folder, &known.writable)
                && program.is_none_or(|program| !leads_into(&program, &known.writable));
        }
    }
    true
}

/// The folders of `PATH`, and those of the system behind them.
fn folders() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(folders_of_system());
    folders
}

#[cfg(not(windows))]
fn folders_of_system() -> Vec<PathBuf> {
    SYSTEM.iter().map(PathBuf::from).collect()
}

#[cfg(windows)]
fn folders_of_system() -> Vec<PathBuf> {
    let windows = std::env::var_os("SystemRoot").map_or_else(|| PathBuf::from("C:/Windows"), PathBuf::from);
    SYSTEM.iter().map(|folder| windows.join(folder)).chain([windows.clone()]).collect()
}

/// Whether the name of a program is a path.
fn is_path(name: &[u8]) -> bool {
    name.contains(&b'/') || cfg!(windows) && name.iter().any(|byte| b"\\:".contains(byte))
}

/// The program of a name in a folder.
#[cfg(not(windows))]
fn program_in(folder: &Path, name: &OsStr) -> Option<PathBuf> {
    Some(folder.join(name)).filter(|program| is_program(program))
}

/// The program of a name in a folder, with each end that names of programs have.
#[cfg(windows)]
fn program_in(folder: &Path, name: &OsStr) -> Option<PathBuf> {
    let lower = name.to_string_lossy().to_ascii_lowercase();
    if ENDS.iter().any(|end| lower.ends_with(end)) {
        return Some(folder.join(name)).filter(|program| is_program(program));
    }
    ENDS.iter().find_map(|end| {
        let mut name = name.to_owned();
        name.push(end);
        Some(folder.join(name)).filter(|program| is_program(program))
    })
}

fn search(name: &str, folders: &[PathBuf], writable: &BTreeSet<PathBuf>) -> Result<PathBuf, ProgramError> {
    let mut left_out = None;
    for folder in folders {
        let Some(program) = program_in(folder, OsStr::new(name)) else { continue };
        if may_be_searched(folder, writable) && !leads_into(&program, writable) {
            return Ok(program);
        }
        left_out.get_or_insert_with(|| folder.clone());
    }
    Err(match left_out {
        Some(folder) => ProgramError::Writable { name: name.to_owned(), folder },
        None => ProgramError::Nowhere(name.to_owned()),
    })
}

fn may_be_searched(folder: &Path, writable: &BTreeSet<PathBuf>) -> bool {
    let is_shared = |path: &Path| SHARED.iter().any(|shared| path.starts_with(shared));
    folder.is_absolute()
        && !is_writable(folder, writable)
        && !is_shared(folder)
        && real_path(folder).map_or(true, |real| !is_writable(&real, writable) && !is_shared(&real))
}

/// Whether links of a program lead into such a folder.
fn leads_into(program: &Path, writable: &BTreeSet<PathBuf>) -> bool {
    real_path(program).is_ok_and(|real| is_writable(&real, writable))
}

/// Whether a path lies in one of these folders. System folders are never a workspace.
fn is_writable(path: &Path, writable: &BTreeSet<PathBuf>) -> bool {
    let is_of_system = folders_of_system().iter().any(|folder| path.starts_with(folder));
    !is_of_system && path.ancestors().any(|folder| writable.contains(folder))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    path.is_file()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_program_is_never_taken_from_where_the_agent_may_write() {
        // The sources may be in a shared folder, where no program is taken from.
        let places = [Some(PathBuf::from(env!("CARGO_MANIFEST_DIR"))), std::env::home_dir()];
        let is_shared = |place: &PathBuf| SHARED.iter().any(|shared| place.starts_with(shared));
        let place = places.into_iter().flatten().find(|place| !is_shared(place)).unwrap();
        let folder = tempfile::tempdir_in(place).unwrap();
        let base = real_path(folder.path()).unwrap();
        for name in ["ws/bin", "links", "tools"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in ["ws/bin/bash", "ws/bin/own", "tools/bash"] {
            fs::write(base.join(name), "").unwrap();
            fs::set_permissions(base.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        symlink(base.join("ws/bin/bash"), base.join("links/bash")).unwrap();
        symlink(base.join("ws/bin"), base.join("alias")).unwrap();
        let writable = BTreeSet::from([base.join("ws")]);
        let folders = ["ws/bin", "alias", "links", "tools"].map(|name| base.join(name));
        let relative = [PathBuf::from("."), PathBuf::new()];
        let all = [&relative[..], &folders].concat();
        assert_eq!(search("bash", &all, &writable), Ok(base.join("tools/bash")));
        let only = search("own", &all, &writable).unwrap_err();
        assert!(only.to_string().contains("ws/bin"), "{only}");
        assert_eq!(search("none", &all, &writable), Err(ProgramError::Nowhere("none".into())));
        assert_eq!(find("./x/y"), Ok(PathBuf::from("./x/y")));
    }
}
