//! Commands of Windows that no mode runs, and the places that it does not live without.
//!
//! Rule: judged on every system, by text alone: a Linux beside Windows reaches its drives and starts its programs.

use kode_base::path_style::{PathStyle, is_drive};

use crate::CommandWord;

/// Folders right below a drive.
const SYSTEM: [&str; 9] = [
    "windows",
    "users",
    "program files",
    "program files (x86)",
    "programdata",
    "system volume information",
    "recovery",
    "boot",
    "efi",
];
/// Variables whose value is such a folder, a drive or a home.
const VARIABLES: [&str; 11] = [
    "userprofile",
    "homepath",
    "homedrive",
    "systemdrive",
    "systemroot",
    "windir",
    "programfiles",
    "programdata",
    "appdata",
    "localappdata",
    "public",
];
/// Commands of PowerShell and `cmd` that delete.
const DELETERS: [&str; 8] = ["remove-item", "ri", "rm", "rd", "rmdir", "del", "erase", "deltree"];

/// The reasons why no mode runs a program with these arguments.
pub(super) fn of_command(name: &CommandWord, arguments: &[CommandWord]) -> Vec<String> {
    let words: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let name = PathStyle::Windows.program_name(&name.text).to_ascii_lowercase();
    let script = match name.as_str() {
        // Git Bash takes a single slash for its own root.
        "cmd" => after(&words, &["/c", "/k", "/r", "//c", "//k"]),
        "powershell" | "pwsh" => after(&words, &["-command", "-c", "/c", "/command"]),
        _ => None,
    };
    match script {
        Some(script) => of_script(&script),
        None => of_words(&name, &words).into_iter().collect(),
    }
}

/// The reasons why no mode runs a script of PowerShell or `cmd`.
pub(super) fn of_script(script: &str) -> Vec<String> {
    let commands = script.split(['&', '|', ';', '\n', '(', ')', '{', '}']);
    commands.filter_map(of_text).collect()
}

/// The text after an option that is followed by a script.
fn after(words: &[&str], options: &[&str]) -> Option<String> {
    let at = words.iter().position(|word| options.iter().any(|option| word.eq_ignore_ascii_case(option)))?;
    Some(words[at + 1..].join(" "))
}

fn of_text(command: &str) -> Option<String> {
    let words = quoted_words(command);
    let mut words = words.iter().map(String::as_str);
    let name = PathStyle::Windows.program_name(words.next()?).to_ascii_lowercase();
    of_words(&name, &words.collect::<Vec<_>>())
}

/// The words of a command, where quotes keep blanks together; both kinds are dropped.
fn quoted_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, _) if letter.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => word.push(letter),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

fn of_words(name: &str, words: &[&str]) -> Option<String> {
    let has =
        |wanted: &[&str]| words.iter().any(|word| wanted.iter().any(|one| word.eq_ignore_ascii_case(one)));
    // Here a slash and a letter are an option, and no drive as Git Bash writes it.
    let is_option = |word: &str| word.len() == 2 && word.starts_with('/');
    let precious = || words.iter().any(|word| !is_option(word) && is_precious(word));
    let is_recursive = || {
        words.iter().any(|word| {
            let word = word.to_ascii_lowercase();
            word == "/s" || word.len() > 1 && "-recurse".starts_with(&word)
        })
    };
    match name {
        "format" if words.iter().any(|word| is_drive(word.trim_end_matches(['\\', '/']))) => {
            Some("`format` formats a drive".to_owned())
        }
        "format-volume" | "clear-disk" | "initialize-disk" | "remove-partition" | "diskpart" => {
            Some(format!("`{name}` changes a disk"))
        }
        "bcdedit" | "bootrec" | "bcdboot" if !words.is_empty() && !has(&["/enum"]) => {
            Some(format!("`{name}` changes how the machine starts"))
        }
        "vssadmin" if has(&["delete"]) => Some("deletes the saved states of a drive".to_owned()),
        "wmic" if has(&["shadowcopy"]) && has(&["delete"]) => {
            Some("deletes the saved states of a drive".to_owned())
        }
        "cipher" if words.iter().any(|word| word.to_ascii_lowercase().starts_with("/w")) => {
            Some("`cipher` overwrites deleted files for good".to_owned())
        }
        "reg" if has(&["delete"]) && words.iter().any(|word| is_hive(word)) => {
            Some("deletes settings of the whole machine".to_owned())
        }
        "netsh" if has(&["advfirewall"]) && has(&["off", "reset"]) => {
            Some("switches the firewall off".to_owned())
        }
        "set-mppreference" | "disable-computerrestore" => {
            Some(format!("`{name}` takes the machine's protection away"))
        }
        "runas" | "gsudo" => Some(format!("`{name}` runs commands as another user")),
        "stop-computer" | "restart-computer" => Some(format!("`{name}` stops the machine")),
        "shutdown" => Some("`shutdown` stops the machine".to_owned()),
        "takeown" | "icacls" if precious() => {
            Some(format!("`{name}` changes who may use the files of the system"))
        }
        _ if DELETERS.contains(&name) && is_recursive() && precious() => {
            Some("deletes a drive, a home or a folder of the system with all that is in it".to_owned())
        }
        _ => None,
    }
}

/// Whether a key of the registry lies in the part of the whole machine.
fn is_hive(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["hklm", "hkey_local_machine", "hkcr", "hkey_classes_root", "hku", "hkey_users"].iter().any(|hive| {
        key.strip_prefix(hive).is_some_and(|rest| rest.is_empty() || rest.starts_with(['\\', ':']))
    })
}

/// Whether a text names a drive, a home or a folder of the system of Windows, or all that is in one, as Windows, Git Bash or a
/// Linux beside it writes that.
pub(super) fn is_precious(text: &str) -> bool {
    let text = text.replace(['"', '\''], "").to_ascii_lowercase();
    let text = text.trim_end_matches(['*', '.', '\\', '/']);
    let variable = text
        .strip_prefix("$env:")
        .or_else(|| text.strip_prefix("${env:").and_then(|name| name.strip_suffix('}')))
        .or_else(|| text.strip_prefix("${").and_then(|name| name.strip_suffix('}')))
        .or_else(|| text.strip_prefix('$'))
        .or_else(|| text.strip_prefix('%').and_then(|name| name.strip_suffix('%')));
    if variable.is_some_and(|name| VARIABLES.contains(&name)) {
        return true;
    }
    let of_linux = text.strip_prefix("/mnt").filter(|rest| is_bash_drive(rest));
    let bash = of_linux.unwrap_or(text);
    let path = if is_bash_drive(bash) { PathStyle::Windows.path_of_bash(bash) } else { None };
    let path = path.unwrap_or_else(|| text.into());
    let names = PathStyle::Windows.names(&path);
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        [drive] => is_drive(drive),
        [drive, top] => is_drive(drive) && SYSTEM.contains(top),
        [drive, "users", _] => is_drive(drive),
        _ => false,
    }
}

/// Whether a path begins with a drive as Git Bash writes it.
fn is_bash_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [b'/', drive] | [b'/', drive, b'/', ..] if drive.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use crate::tests::tables::at_work;

    fn objections(line: &str) -> Vec<String> {
        at_work(line).dangers.into_iter().map(|danger| danger.what).collect()
    }

    #[test]
    fn commands_that_end_a_windows_machine_are_in_no_mode() {
        for line in [
            "format C:",
            "format.com d:\\\\ /q",
            "C:/Windows/System32/diskpart.exe /s script.txt",
            "cmd /c \"rd /s /q C:\\\\\"",
            "cmd.exe /C 'del /f /s /q C:\\Users\\x\\*'",
            "cmd //c 'cd x' && cmd /c 'echo a & rd /s /q %USERPROFILE%'",
            "powershell -Command 'Remove-Item -Recurse -Force C:\\Windows'",
            "pwsh -NoProfile -c 'Get-Date; ri -r $env:USERPROFILE'",
            "powershell.exe -c \"Get-ChildItem | Format-Volume -DriveLetter D\"",
            "rm -rf /c",
            "rm -rf /c/Windows",
            "rm -rf /c/Users/x/",
            "rm -rf C:/",
            "rm -rf 'C:\\*'",
            "rm -rf /mnt/c",
            "rm -rf /mnt/d/Users/me",
            "rm -rf \"$USERPROFILE\"",
            "RM.EXE -rf /c/Users",
            "vssadmin delete shadows /all",
            "wmic.exe shadowcopy delete",
            "bcdedit /set safeboot minimal",
            "reg delete 'HKLM\\Software' /f",
            "netsh advfirewall set allprofiles state off",
            "shutdown.exe /s /t 0",
            "icacls 'C:\\' /grant Everyone:F /t",
            "runas /user:Administrator cmd",
        ] {
            assert_eq!(objections(line).len(), 1, "{line}: {:?}", objections(line));
        }
    }

    #[test]
    fn what_looks_like_them_is_judged_as_any_other_command() {
        for line in [
            "npm run format",
            "cargo fmt && format src",
            "cmd /c 'dir C:\\'",
            "cmd /c 'rd /s /q build'",
            "powershell -Command 'Get-ChildItem -Recurse C:\\Windows'",
            "powershell -c 'Remove-Item -Recurse node_modules'",
            "rm -rf /c/Users/x/project/target",
            "rm -rf C:/work/target",
            "rm -rf /mnt/c/work/target",
            "echo 'format C:'",
            "reg query 'HKLM\\Software'",
            "reg delete 'HKCU\\Software\\Mine' /f",
            "bcdedit /enum",
            "icacls build /grant me:F",
        ] {
            assert_eq!(objections(line), Vec::<String>::new(), "{line}");
        }
    }
}
