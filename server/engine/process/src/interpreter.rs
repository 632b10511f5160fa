//! Which programs run commands of the shells.
//!
//! Rule: on Windows bash is Git Bash, found by git, and never the `bash.exe` of the system, which starts another system with other
//! files and programs. PowerShell is one of this system: elsewhere than on Windows the user has to name it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use kode_base::command_shell::CommandShell;

/// The shells of Unix, the preferred one first.
pub(crate) const SHELLS: [&str; 2] = ["bash", "sh"];
/// The variable that names the bash of Windows.
const VARIABLE: &str = "KODE_LS_BASH";
/// The variable that names PowerShell.
const POWERSHELL: &str = "KODE_LS_POWERSHELL";
/// The PowerShell that comes with Windows, from its folder.
const IN_WINDOWS: &str = "System32/WindowsPowerShell/v1.0/powershell.exe";
/// Where Git for Windows has bash, from its folder.
const IN_GIT: [&str; 2] = ["bin/bash.exe", "usr/bin/bash.exe"];
/// Folders of installed programs, by variable, with where Git for Windows is installed in them.
const INSTALLED: [(&str, &str); 4] = [
    ("ProgramFiles", "Git"),
    ("ProgramW6432", "Git"),
    ("ProgramFiles(x86)", "Git"),
    ("LOCALAPPDATA", "Programs/Git"),
];
/// Folders of installed programs, by variable, with where PowerShell is installed in them.
const POWERSHELL_7: [(&str, &str); 2] =
    [("ProgramFiles", "PowerShell/7/pwsh.exe"), ("ProgramW6432", "PowerShell/7/pwsh.exe")];
/// Folders whose `bash.exe` starts the Linux subsystem.
const OF_SUBSYSTEM: [&str; 3] = ["system32", "sysnative", "windowsapps"];

/// The remedy where Windows has no bash.
pub(crate) const MISSING_GIT_BASH: &str =
    "install Git for Windows, or name its bash.exe in the variable KODE_LS_BASH";

/// Why no program runs commands of a shell, and the remedy; without a final period.
pub(crate) fn missing(shell: CommandShell) -> String {
    match shell {
        CommandShell::Bash if cfg!(windows) => format!("no shell was found: {MISSING_GIT_BASH}"),
        CommandShell::Bash => {
            "no shell was found: neither `bash` nor `sh` is in a folder of PATH that the agent may not write in"
                .to_owned()
        }
        CommandShell::PowerShell => {
            format!("no PowerShell was found: install PowerShell 7, or name the program in the variable {POWERSHELL}")
        }
    }
}

/// The command that prints the current folder as other programs of the system name it; a bash outside of MSYS has only one
/// name for it.
pub(crate) const PWD: &str = if cfg!(windows) { "{ command pwd -W || command pwd; }" } else { "command pwd" };

/// The facts about a machine that decide where its shells are.
pub(crate) struct ShellSearch<'a> {
    /// A variable of the environment.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The folders of `PATH` that the agent may not write in.
    pub(crate) path: &'a [PathBuf],
    /// Whether a file is there.
    pub(crate) is_file: &'a dyn Fn(&Path) -> bool,
}

impl ShellSearch<'_> {
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

    /// PowerShell: the named one; on Windows one in `PATH`, an installed one, or that of Windows.
    pub(crate) fn powershell(&self, is_windows: bool) -> Option<PathBuf> {
        if let Some(named) = (self.variable)(POWERSHELL) {
            return Some(PathBuf::from(named)).filter(|named| (self.is_file)(named));
        }
        if !is_windows {
            return None;
        }
        // The folder of the store's programs has names without files, which start what the user may have there.
        let in_path = self.path.iter().filter(|folder| !is_of_subsystem(folder));
        let below = |variable: &str, place: &str| Some(Path::new(&(self.variable)(variable)?).join(place));
        let installed = POWERSHELL_7.iter().filter_map(|(variable, place)| below(variable, place));
        let of_windows = below("SystemRoot", IN_WINDOWS);
        let in_path = in_path.map(|folder| folder.join("pwsh.exe"));
        in_path.chain(installed).chain(of_windows).find(|program| (self.is_file)(program))
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

    /// The result of a search on a machine.
    fn found(
        variables: &[(&str, &str)],
        path: &[&str],
        files: &[&str],
        find: impl FnOnce(&ShellSearch<'_>) -> Option<PathBuf>,
    ) -> Option<String> {
        let path: Vec<PathBuf> = path.iter().map(PathBuf::from).collect();
        let search = ShellSearch {
            variable: &|name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            },
            path: &path,
            is_file: &|path| files.iter().any(|file| path == Path::new(file)),
        };
        find(&search).map(|program| program.display().to_string())
    }

    fn bash(variables: &[(&str, &str)], path: &[&str], files: &[&str]) -> Option<String> {
        found(variables, path, files, |search| search.bash())
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

    #[test]
    fn powershell_is_the_named_one_or_on_windows_the_newest_that_is_there() {
        let files = [
            "C:/Users/x/AppData/Local/Microsoft/WindowsApps/pwsh.exe",
            "D:/pwsh/pwsh.exe",
            "C:/Program Files/PowerShell/7/pwsh.exe",
            "C:/Windows/System32/WindowsPowerShell/v1.0/powershell.exe",
            "/opt/pwsh",
        ];
        let variables = [("ProgramFiles", "C:/Program Files"), ("SystemRoot", "C:/Windows")];
        let apps = "C:/Users/x/AppData/Local/Microsoft/WindowsApps";
        let named = |program| [("KODE_LS_POWERSHELL", program), ("SystemRoot", "C:/Windows")];
        let of = |variables: &[(&str, &str)], path: &[&str], is_windows| {
            found(variables, path, &files, |search| search.powershell(is_windows))
        };
        assert_eq!(of(&variables, &[apps, "D:/pwsh"], true).as_deref(), Some("D:/pwsh/pwsh.exe"));
        assert_eq!(of(&variables, &[apps], true).as_deref(), Some(files[2]));
        assert_eq!(of(&variables[1..], &[apps], true).as_deref(), Some(files[3]));
        assert_eq!(of(&[], &[apps], true), None);
        assert_eq!(of(&named("/opt/pwsh"), &["D:/pwsh"], true).as_deref(), Some("/opt/pwsh"));
        assert_eq!(of(&named("/opt/gone"), &["D:/pwsh"], true), None, "a wrong name is not passed over");
        assert_eq!(of(&variables, &["D:/pwsh"], false), None);
        assert_eq!(of(&named("/opt/pwsh"), &[], false).as_deref(), Some("/opt/pwsh"));
    }
}
