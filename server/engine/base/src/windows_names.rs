//! Names that Windows does not take for the file that they seem to name.
//!
//! Rule: the check is of text alone, so that it holds on every system and needs no disk. A path is either one that names the
//! same file for every program, or it is refused with the reason; nothing is rewritten.

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

    proptest! {
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
