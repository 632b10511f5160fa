//! Names that Windows does not take for the file that they seem to name.
//!
//! Rule: the check is of text alone, so that it holds on every system and needs no disk. A path is either one that names the
//! same file for every program, or it is refused with the reason; nothing is rewritten.

use crate::path_style::PathStyle;

/// Names of devices, in any letter case, with or without an extension.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// Names of ports, followed by one digit.
const PORTS: [&str; 2] = ["COM", "LPT"];
/// The digits of ports; the raised ones count as well.
const PORT_DIGITS: &str = "0123456789¹²³";

/// Why a path of Windows is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameRefusal {
    /// A device.
    #[error("`{0}` is the name of a device on Windows")]
    Device(String),
    /// A stream of a file, or a drive in the middle of a path.
    #[error("`{0}` has a colon in it, which names a hidden stream of a file on Windows")]
    Stream(String),
    /// A name that Windows shortens.
    #[error("`{0}` ends with a dot or a space, which Windows drops")]
    End(String),
    /// A character that no name has.
    #[error("`{0}` has a character in it that names on Windows cannot have")]
    Character(String),
    /// A short form of another name.
    #[error("`{0}` may be the short form of another name; use the long one")]
    Short(String),
    /// A share, a device path or a path without its drive.
    #[error("`{0}` is not on a drive of this machine; only paths such as `C:\\folder\\file` are taken")]
    Root(String),
}

/// Checks a path as Windows reads it, absolute or relative; both separators count.
///
/// # Errors
/// [`NameRefusal`] for the first part that does not name what it seems to.
pub fn check(path: &str) -> Result<(), NameRefusal> {
    let is_separator = |letter: char| letter == '/' || letter == '\\';
    let mut rest = path;
    let bytes = path.as_bytes();
    if bytes.len() >= 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' {
        rest = &path[2..];
        if !rest.starts_with(is_separator) {
            // Relative to the current folder of that drive, which nothing here has a say in.
            return Err(NameRefusal::Root(path.to_owned()));
        }
    } else if path.starts_with(is_separator) {
        return Err(NameRefusal::Root(path.to_owned()));
    }
    rest.split(is_separator).filter(|part| !part.is_empty()).try_for_each(part)
}

/// Checks one name of a path that an editor gives: it knows its files, so that short forms of names are taken.
///
/// # Errors
/// [`NameRefusal`].
pub fn check_editor_name(name: &str) -> Result<(), NameRefusal> {
    if name.contains(['/', '\\']) {
        return Err(NameRefusal::Character(name.to_owned()));
    }
    match part(name) {
        Ok(()) | Err(NameRefusal::Short(_)) => Ok(()),
        Err(refusal) => Err(refusal),
    }
}

/// A path as Windows reads it from a folder: absolute, with `\` between its names, `.` and `..` folded, its drive with a capital
/// letter. The folder has the names that the editor gave it, be it on a share or with a short name.
///
/// # Errors
/// [`NameRefusal`] of the path, or of its names below the folder where the path begins with it.
pub fn resolve(folder: &str, path: &str) -> Result<String, NameRefusal> {
    let style = PathStyle::Windows;
    let folder = style.names(folder);
    let is_rooted = path.as_bytes().get(1) == Some(&b':') || path.starts_with(['/', '\\']);
    let mut names = style.names(path);
    if is_rooted {
        match names.strip_prefix(folder.as_slice()) {
            Some(below) => check(&below.join("\\"))?,
            None => check(path)?,
        }
    } else {
        check(path)?;
        names.splice(0..0, folder);
    }
    let mut folded: Vec<&str> = Vec::with_capacity(names.len());
    for name in &names {
        match &**name {
            "." => {}
            ".." => folded.truncate(folded.len().saturating_sub(1).max(1)),
            name => folded.push(name),
        }
    }
    Ok(if folded.len() == 1 { format!("{}\\", folded[0]) } else { folded.join("\\") })
}

fn part(name: &str) -> Result<(), NameRefusal> {
    let refused = |why: fn(String) -> NameRefusal| Err(why(name.to_owned()));
    if name == "." || name == ".." {
        return Ok(());
    }
    if name.contains(':') {
        return refused(NameRefusal::Stream);
    }
    if name.ends_with(['.', ' ']) {
        return refused(NameRefusal::End);
    }
    if name.chars().any(|letter| letter.is_control() || "<>\"|?*".contains(letter)) {
        return refused(NameRefusal::Character);
    }
    if is_device(name) {
        return refused(NameRefusal::Device);
    }
    if is_short(name) {
        return refused(NameRefusal::Short);
    }
    Ok(())
}

/// Whether a name is that of a device: what precedes the first dot counts, without spaces at its end.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_uppercase();
    let is_port = || {
        let port = PORTS.iter().find_map(|port| stem.strip_prefix(port));
        let mut digits = port.unwrap_or_default().chars();
        matches!((digits.next(), digits.next()), (Some(digit), None) if PORT_DIGITS.contains(digit))
    };
    DEVICES.contains(&&*stem) || is_port()
}

/// Whether a name has the form of `PROGRA~1` or `LONGNA~2.TXT`, by which a file with a longer name is reached.
fn is_short(name: &str) -> bool {
    let (stem, extension) = name.split_once('.').unwrap_or((name, ""));
    let Some((start, number)) = stem.rsplit_once('~') else { return false };
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number
        && !start.is_empty()
        && stem.chars().count() <= 8
        && extension.chars().count() <= 3
        && !extension.contains('.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parts of paths that Windows does not take for the file that they seem to name.
    fn hostile_parts() -> Vec<String> {
        let mut parts = Vec::new();
        let devices = ["con", "PRN", "Aux", "nul", "CONIN$", "conout$"].map(str::to_owned).into_iter();
        let ports = ["com", "LPT"]
            .iter()
            .flat_map(|port| "0123456789¹²³".chars().map(move |digit| format!("{port}{digit}")));
        for device in devices.chain(ports) {
            for end in ["", ".txt", ".tar.gz", " .txt", "  ", ".", ":", "::$DATA"] {
                parts.push(format!("{device}{end}"));
            }
        }
        for stream in
            ["a:b", "a.txt:hidden", "a::$DATA", "a:b:$DATA", ".git::$INDEX_ALLOCATION", ":a", "C:", "C:x"]
        {
            parts.push(stream.to_owned());
        }
        for end in ["a.", "a ", "a. ", "a..", ".git.", ".git ", "...", ". ", ".. ", "a.txt. . ."] {
            parts.push(end.to_owned());
        }
        for letter in "<>\"|?*\u{0}\u{1}\u{1f}\n\r\t\u{7f}".chars() {
            parts.push(format!("a{letter}b"));
        }
        for short in
            ["GIT~1", "git~1", "PROGRA~1", "PROGRA~2", "A~1.TXT", "LONGNA~9.C", "MICROS~1.NET", "AB12~1"]
        {
            parts.push(short.to_owned());
        }
        parts
    }

    #[test]
    fn a_name_that_means_something_else_on_windows_is_refused_wherever_it_is_in_a_path() {
        let mut tried = 0;
        for part in hostile_parts() {
            for path in [format!("C:\\w\\{part}"), format!("src/{part}/x.rs"), part.clone()] {
                assert!(check(&path).is_err(), "{path:?}");
                tried += 1;
            }
        }
        assert!(tried >= 300, "{tried}");
    }

    #[test]
    fn a_path_that_leaves_the_drives_is_refused() {
        for path in [
            r"\\server\share\a",
            r"//server/share/a",
            r"\\?\C:\w\a",
            r"\\.\pipe\a",
            r"\\.\C:\a",
            r"\??\C:\a",
            r"\w\a",
            "/w/a",
            "C:a",
            "c:",
            r"\\localhost\C$\w\a",
        ] {
            assert!(matches!(check(path), Err(NameRefusal::Root(_))), "{path}");
        }
    }

    #[test]
    fn names_of_projects_are_taken() {
        for path in [
            r"C:\Users\x\src\main.rs",
            "c:/Users/x/src/main.rs",
            "src/../README.md",
            "./.github/workflows/ci.yml",
            "console.log",
            "auxiliary/com.rs",
            "com10.txt",
            "lpt",
            "a~b.txt",
            "backup~",
            "much-longer-name~1.txt",
            "~1",
            "Ümlaut/日本語 name.txt",
            "a b/c d.txt",
            ".env",
            "nul-terminated.c",
        ] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
    }

    /// Texts by which a model, a user or a client may name a file, most of which name something else on Windows.
    fn hostile_texts() -> Vec<String> {
        let roots = [
            r"\\server\share\a",
            r"\\?\C:\w\a",
            r"\\.\pipe\a",
            r"\\.\C:\w\a",
            r"\??\C:\w\a",
            r"\w\a",
            "/w/a",
            "C:a",
            "c:",
            "//w/a",
        ];
        let outside = [
            r"..\x",
            "../../x",
            r"C:\Windows\x",
            r"D:\w\a",
            r"C:\w\..\x",
            r"C:\wother\a",
            r"C:\w/../wother/a",
        ];
        let parts = hostile_parts().into_iter();
        let named =
            parts.flat_map(|part| [part.clone(), format!("src/{part}/x.rs"), format!(r"C:\w\{part}")]);
        named.chain(roots.into_iter().chain(outside).map(str::to_owned)).collect()
    }

    /// Whether a path is in the folder, and each of its names names itself.
    fn is_plain_file_in(folder: &str, path: &str) -> bool {
        let (names, folder) = (PathStyle::Windows.names(path), PathStyle::Windows.names(folder));
        names
            .strip_prefix(folder.as_slice())
            .is_some_and(|below| below.iter().all(|name| part(name).is_ok() && !name.contains(':')))
    }

    #[test]
    fn a_hostile_text_names_no_stream_and_no_device_at_the_edge() {
        let texts = hostile_texts();
        assert!(texts.len() >= 300, "{}", texts.len());
        let mut outside = Vec::new();
        for text in &texts {
            match resolve(r"C:\w", text) {
                Ok(path) if is_plain_file_in(r"C:\w", &path) => panic!("{text:?} is taken as {path}"),
                // Outside, and named so: the gate asks, or refuses.
                Ok(path) => {
                    assert!(is_plain_file_in(&path[..3], &path), "{text:?}: {path}");
                    outside.push(path);
                }
                Err(_) => {}
            }
        }
        assert_eq!(
            outside,
            [r"C:\x", r"C:\x", r"C:\Windows\x", r"D:\w\a", r"C:\x", r"C:\wother\a", r"C:\wother\a"]
        );
    }

    #[test]
    fn a_path_is_resolved_from_a_folder_whatever_its_own_names_are() {
        for (folder, path, expected) in [
            (r"C:\w", "a.rs", r"C:\w\a.rs"),
            (r"C:\w", r"src/.\x/../a.rs", r"C:\w\src\a.rs"),
            (r"C:\w", "c:/w/a.rs", r"C:\w\a.rs"),
            (r"C:\w", ".", r"C:\w"),
            (r"C:\w", "../..", "C:\\"),
            (r"C:\Users\RUNNER~1\w", r"C:\Users\RUNNER~1\w\a.rs", r"C:\Users\RUNNER~1\w\a.rs"),
            (r"C:\Users\RUNNER~1\w", "a.rs", r"C:\Users\RUNNER~1\w\a.rs"),
            (r"\\server\share\w", "a.rs", r"\\server\share\w\a.rs"),
            (r"\\server\share\w", r"\\server\share\w\a.rs", r"\\server\share\w\a.rs"),
        ] {
            assert_eq!(resolve(folder, path).as_deref(), Ok(expected), "{path}");
        }
        assert!(resolve(r"\\server\share\w", r"\\server\other\a.rs").is_err());
        assert!(resolve(r"C:\w", r"C:\Users\RUNNER~1\a.rs").is_err());
    }

    proptest! {
        /// No text makes the edge panic, and what it takes names itself.
        #[test]
        fn a_text_that_is_resolved_names_itself(text in "\\PC{0,40}") {
            if let Ok(path) = resolve(r"C:\w", &text) {
                prop_assert!(is_plain_file_in(&path[..3], &path), "{}", path);
            }
        }

        /// No text makes the check panic, and what it takes has neither a stream nor a part that Windows would change.
        #[test]
        fn a_path_that_is_taken_names_itself(path in "\\PC{0,40}") {
            if check(&path).is_ok() {
                let rest = path.get(2..).filter(|_| path.as_bytes().get(1) == Some(&b':')).unwrap_or(&path);
                prop_assert!(!rest.contains(':'));
                for part in rest.split(['/', '\\']).filter(|part| !matches!(*part, "" | "." | "..")) {
                    prop_assert!(!part.ends_with(['.', ' ']), "{part:?}");
                }
            }
        }
    }
}
