//! Which shell runs commands.
//!
//! Rule: commands are written and judged in the language of bash. On Windows that is Git Bash, found by git, and never the
//! `bash.exe` of the system, which starts another system with other files and programs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The shells of Unix, the preferred one first.
pub(crate) const SHELLS: [&str; 2] = ["bash", "sh"];
/// The variable that names the shell on Windows.
const VARIABLE: &str = "KODE_LS_BASH";
/// Where Git for Windows has bash, from its folder.
const IN_GIT: [&str; 2] = ["bin/bash.exe", "usr/bin/bash.exe"];
/// Folders of installed programs, by variable, with where Git for Windows is installed in them.
const INSTALLED: [(&str, &str); 4] = [
    ("ProgramFiles", "Git"),
    ("ProgramW6432", "Git"),
    ("ProgramFiles(x86)", "Git"),
    ("LOCALAPPDATA", "Programs/Git"),
];
/// Folders whose `bash.exe` starts the Linux subsystem.
const OF_SUBSYSTEM: [&str; 3] = ["system32", "sysnative", "windowsapps"];

/// The remedy where Windows has no bash.
pub(crate) const MISSING_GIT_BASH: &str =
    "install Git for Windows, or name its bash.exe in the variable KODE_LS_BASH";

/// Why there is no shell, and the remedy.
pub(crate) const MISSING: &str = if cfg!(windows) {
    MISSING_GIT_BASH
} else {
    "neither `bash` nor `sh` is in a folder of PATH that the agent may not write in"
};

/// The command that prints the current folder as other programs of the system name it; a bash outside of MSYS has only one
/// name for it.
pub(crate) const PWD: &str = if cfg!(windows) { "{ command pwd -W || command pwd; }" } else { "command pwd" };

/// The facts about a machine that decide where bash is.
pub(crate) struct WindowsMachine<'a> {
    /// A variable of the environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The folders of `PATH` that the agent may not write in.
    pub(crate) path: &'a [PathBuf],
    /// Whether a file is there.
    pub(crate) is_file: &'a dyn Fn(&Path) -> bool,
}

impl WindowsMachine<'_> {
    /// Bash: the named one, that of the git in `PATH`, that of an installed git, or one in `PATH`.
    pub(crate) fn bash(&self) -> Option<PathBuf> {
        if let Some(named) = (self.variable)(VARIABLE) {
            // A name that leads nowhere is an error of the user; another shell would hide it.
            return Some(PathBuf::from(named)).filter(|named| (self.is_file)(named));
        }
        let of_git = self.path.iter().filter(|folder| (self.is_file)(&folder.join("git.exe")));
        let of_git = of_git.flat_map(|folder| folder.ancestors().skip(1).take(2));
        let installed = INSTALLED.iter().filter_map(|(variable, folder)| {
            let programs = (self.variable)(variable)?;
            Some(Path::new(&programs).join(folder))
        });
        let git = of_git.map(Path::to_path_buf).chain(installed);
        let git = git.flat_map(|folder| IN_GIT.map(|bash| folder.join(bash)));
        let in_path = self.path.iter().filter(|folder| !is_of_subsystem(folder));
        git.chain(in_path.map(|folder| folder.join("bash.exe"))).find(|bash| (self.is_file)(bash))
    }
}

fn is_of_subsystem(folder: &Path) -> bool {
    // Its name, as text: these are names of Windows, wherever this runs.
    let folder = folder.to_string_lossy().to_ascii_lowercase();
    let name = folder.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
    name.is_some_and(|name| OF_SUBSYSTEM.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bash(variables: &[(&str, &str)], path: &[&str], files: &[&str]) -> Option<String> {
        let path: Vec<PathBuf> = path.iter().map(PathBuf::from).collect();
        let machine = WindowsMachine {
            variable: &|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            },
            path: &path,
            is_file: &|path| files.iter().any(|file| path == Path::new(file)),
        };
        machine.bash().map(|bash| bash.display().to_string())
    }

    #[test]
    fn bash_is_found_by_git_and_is_never_that_of_the_linux_subsystem() {
        let wsl = "C:/Windows/System32";
        let files = [
            "C:/Windows/System32/bash.exe",
            "C:/Users/x/AppData/Local/Microsoft/WindowsApps/bash.exe",
            "D:/Git/cmd/git.exe",
            "D:/Git/bin/bash.exe",
            "C:/Program Files/Git/usr/bin/bash.exe",
            "C:/msys64/usr/bin/bash.exe",
        ];
        let expect = |found: Option<String>, expected: &str| assert_eq!(found.as_deref(), Some(expected));
        expect(bash(&[], &[wsl, "D:/Git/cmd"], &files), "D:/Git/bin/bash.exe");
        let installed = [("ProgramFiles", "C:/Program Files")];
        expect(bash(&installed, &[wsl], &files), "C:/Program Files/Git/usr/bin/bash.exe");
        let apps = "C:/Users/x/AppData/Local/Microsoft/WindowsApps";
        expect(bash(&[], &[wsl, apps, "C:/msys64/usr/bin"], &files), "C:/msys64/usr/bin/bash.exe");
        assert_eq!(bash(&[], &[wsl, apps, "c:\\windows\\SYSTEM32\\"], &files), None);
        expect(
            bash(&[(VARIABLE, "C:/msys64/usr/bin/bash.exe")], &["D:/Git/cmd"], &files),
            "C:/msys64/usr/bin/bash.exe",
        );
        assert_eq!(bash(&[(VARIABLE, "C:/gone/bash.exe")], &["D:/Git/cmd"], &files), None);
    }
}
