//! How a system writes paths and names its programs.
//!
//! Rule: the system is a value, so that rules for Windows are tested on every system; what asks the disk lies elsewhere.

use std::borrow::Cow;

/// The ends of the names of programs on Windows.
const PROGRAM_ENDS: [&str; 4] = [".exe", ".com", ".cmd", ".bat"];

/// The way of one system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStyle {
    /// `/` is the one separator and the one root.
    Unix,
    /// Both slashes separate, and each drive has a root.
    Windows,
}

impl PathStyle {
    /// That of the system this runs on.
    pub const HERE: Self = if cfg!(windows) { Self::Windows } else { Self::Unix };

    /// Whether a letter separates names.
    #[must_use]
    pub const fn is_separator(self, letter: char) -> bool {
        letter == '/' || matches!(self, Self::Windows) && letter == '\\'
    }

    /// The names of an absolute path from the root down. On Windows the first one is the drive with a capital letter (`C:`), or
    /// the server and the share (`\\server\share`).
    #[must_use]
    pub fn names(self, path: &str) -> Vec<Cow<'_, str>> {
        let split = |rest| str::split(rest, move |letter| self.is_separator(letter));
        if self == Self::Windows
            && let Some(rest) = path.strip_prefix(r"\\").or_else(|| path.strip_prefix("//"))
        {
            let mut names = split(rest).filter(|name| !name.is_empty());
            let share = [names.next(), names.next()].into_iter().flatten();
            let share = share.fold(String::from('\\'), |share, name| share + r"\" + name);
            return std::iter::once(Cow::Owned(share)).chain(names.map(Cow::Borrowed)).collect();
        }
        let mut names: Vec<_> = split(path).filter(|name| !name.is_empty()).map(Cow::Borrowed).collect();
        if self == Self::Windows
            && let Some(first) = names.first_mut().filter(|first| is_drive(first))
        {
            first.to_mut().make_ascii_uppercase();
        }
        names
    }

    /// The file that a word of a bash command names. Git Bash writes `C:\x` as `/c/x`; its other absolute paths lie in its own
    /// folder, and a drive without a separator is relative to that drive's own folder: both give `None`.
    #[must_use]
    pub fn path_of_bash(self, word: &str) -> Option<Cow<'_, str>> {
        if self == Self::Unix {
            return Some(Cow::Borrowed(word));
        }
        let bytes = word.as_bytes();
        if let [drive, b':', rest @ ..] = bytes
            && drive.is_ascii_alphabetic()
        {
            return matches!(rest, [b'/' | b'\\', ..]).then_some(Cow::Borrowed(word));
        }
        match bytes {
            [b'/', drive] if drive.is_ascii_alphabetic() => Some(format!("{}:/", &word[1..2]).into()),
            [b'/', drive, b'/', ..] if drive.is_ascii_alphabetic() => {
                Some(format!("{}:{}", &word[1..2], &word[2..]).into())
            }
            [b'/' | b'\\', ..] => None,
            _ => Some(Cow::Borrowed(word)),
        }
    }

    /// The name of a program without its folder and, on Windows, without the end that makes it one.
    #[must_use]
    pub fn program_name(self, program: &str) -> &str {
        let name = program.rsplit(|letter| self.is_separator(letter)).next().unwrap_or(program);
        if self == Self::Unix {
            return name;
        }
        let cut = |end: &&str| {
            let at = name.len().checked_sub(end.len()).filter(|at| *at > 0 && name.is_char_boundary(*at))?;
            name[at..].eq_ignore_ascii_case(end).then_some(&name[..at])
        };
        PROGRAM_ENDS.iter().find_map(cut).unwrap_or(name)
    }
}

/// Whether a name is that of a drive.
#[must_use]
pub fn is_drive(name: &str) -> bool {
    matches!(name.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_a_path_begin_with_its_drive_or_share_on_windows() {
        for (path, expected) in [
            (r"C:\Users\x", &["C:", "Users", "x"][..]),
            ("c:/Users//x/", &["C:", "Users", "x"]),
            (r"c:\", &["C:"]),
            (r"\\server\share\a", &[r"\\server\share", "a"]),
            ("//server/share", &[r"\\server\share"]),
        ] {
            assert_eq!(PathStyle::Windows.names(path), expected, "{path}");
        }
        assert_eq!(PathStyle::Unix.names(r"/a\b//c/"), [r"a\b", "c"]);
        assert_eq!(PathStyle::Unix.names("/c:/x"), ["c:", "x"]);
    }

    #[test]
    fn words_of_git_bash_name_files_of_drives_and_nothing_else() {
        for (word, expected) in [
            ("/c/Users/x", Some("c:/Users/x")),
            ("/d", Some("d:/")),
            ("/d/", Some("d:/")),
            ("C:/x", Some("C:/x")),
            (r"C:\x", Some(r"C:\x")),
            ("src/a.rs", Some("src/a.rs")),
            ("cc/x", Some("cc/x")),
            ("/cc/x", None),
            ("/tmp/x", None),
            ("/dev/null", None),
            ("/", None),
            ("//server/share/x", None),
            (r"\x", None),
            ("C:x", None),
            ("C:", None),
        ] {
            assert_eq!(PathStyle::Windows.path_of_bash(word).as_deref(), expected, "{word}");
            assert_eq!(PathStyle::Unix.path_of_bash(word).as_deref(), Some(word));
        }
    }

    #[test]
    fn programs_are_named_without_folder_and_end() {
        for (program, windows, unix) in [
            ("rm", "rm", "rm"),
            ("/usr/bin/rm.EXE", "rm", "rm.EXE"),
            (r"C:\Windows\System32\format.com", "format", r"C:\Windows\System32\format.com"),
            ("npx.cmd", "npx", "npx.cmd"),
            (".exe", ".exe", ".exe"),
            ("é.exe", "é", "é.exe"),
            ("a.exe/", "", ""),
        ] {
            assert_eq!(PathStyle::Windows.program_name(program), windows, "{program}");
            assert_eq!(PathStyle::Unix.program_name(program), unix, "{program}");
        }
    }
}
