//! URIs of files as paths, and paths as URIs in the spelling of the client that they go to.
//!
//! Rule: the system is a value, so that the reading and writing of Windows are tested on every system. All spellings of one file
//! give one path: percent-encoded or not, `c:`, `C:`, `c%3A` or `c|`. A URI that would name something else than its text says
//! (a device, a stream, another machine's root) names no file.

use std::fmt::Write as _;

use url::Url;

use crate::path_style::{PathStyle, is_drive};
use crate::paths::AbsPath;
use crate::windows_names;

/// The file that a URI names, as a path of the given system; `None` for other schemes, for parts of a file (a query or fragment),
/// for text that is no URI, and for names that no file of the system has.
#[must_use]
pub fn path_of(style: PathStyle, uri: &Url) -> Option<String> {
    if uri.scheme() != "file" || uri.query().is_some() || uri.fragment().is_some() {
        return None;
    }
    let names: Vec<String> = uri.path_segments()?.map(decoded).collect::<Option<_>>()?;
    let is_name = |name: &String| !name.contains('/') && !name.contains('\0');
    if !names.iter().all(is_name) {
        return None;
    }
    match style {
        PathStyle::Unix => uri.host_str().is_none().then(|| format!("/{}", names.join("/"))),
        PathStyle::Windows => windows_path(uri.host_str(), &names),
    }
}

/// The file of this machine that a URI names. On Unix a name may be any bytes.
#[must_use]
pub fn path_here(uri: &Url) -> Option<AbsPath> {
    if uri.scheme() != "file" || uri.query().is_some() || uri.fragment().is_some() {
        return None;
    }
    #[cfg(unix)]
    return AbsPath::new(uri.to_file_path().ok()?).ok();
    #[cfg(not(unix))]
    AbsPath::new(path_of(PathStyle::HERE, uri)?).ok()
}

/// The URI of a file of this machine, with its drive, if it has one, as it is written there.
#[must_use]
pub fn of_path(path: &AbsPath, drives: DriveSpelling) -> String {
    match PathStyle::HERE {
        PathStyle::Windows => of_windows_path(&path.to_string(), drives),
        PathStyle::Unix => Url::from_file_path(path).ok().map(String::from),
    }
    // An absolute path always has a URI.
    .unwrap_or_else(|| path.to_string())
}

fn windows_path(host: Option<&str>, names: &[String]) -> Option<String> {
    let (root, names) = match (host, names) {
        (None, [drive, names @ ..]) => {
            let mut drive = drive.replace('|', ":");
            drive.make_ascii_uppercase();
            (is_drive(&drive).then_some(drive)?, names)
        }
        (Some(host), [share, names @ ..]) if !share.is_empty() => {
            windows_names::check_editor_name(share).ok()?;
            (format!(r"\\{host}\{share}"), names)
        }
        _ => return None,
    };
    let names: Vec<&str> = names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    names.iter().try_for_each(|name| windows_names::check_editor_name(name)).ok()?;
    Some(if names.is_empty() { format!(r"{root}\") } else { format!(r"{root}\{}", names.join(r"\")) })
}

/// A percent-encoded name; `None` where it is no UTF-8.
fn decoded(name: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        let code = (*first == b'%').then(|| after.get(..2)).flatten();
        let code =
            code.and_then(|digits| std::str::from_utf8(digits).ok()).filter(|digits| !digits.contains('+'));
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).ok()
}

/// The URI of a path of Windows, with the drive as it is written there; `None` for a path that is not absolute.
#[must_use]
pub fn of_windows_path(path: &str, drives: DriveSpelling) -> Option<String> {
    let names = PathStyle::Windows.names(path);
    let (root, names) = names.split_first()?;
    let mut uri = if let Some(share) = root.strip_prefix(r"\\") {
        format!("file://{}", share.replace('\\', "/"))
    } else {
        let drive = is_drive(root).then(|| root.chars().next()).flatten()?;
        format!("file:///{}", drives.of(drive))
    };
    if names.is_empty() {
        uri.push('/');
    }
    for name in names {
        uri.push('/');
        for byte in name.bytes() {
            // The letters of names that need no code, as browsers have it.
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => uri.push(byte.into()),
                b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b','
                | b';' | b'=' | b':' | b'@' | b'[' | b']' => uri.push(byte.into()),
                _ => {
                    // Writing to a text cannot fail.
                    let _ = write!(uri, "%{byte:02X}");
                }
            }
        }
    }
    Some(uri)
}

/// How a client writes drives in URIs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DriveSpelling {
    is_small: bool,
    colon: ColonSpelling,
}

/// How a client writes the colon of a drive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ColonSpelling {
    #[default]
    Plain,
    Encoded,
    EncodedSmall,
}

impl DriveSpelling {
    /// The spelling that a URI of a client shows; `None` for one without a drive.
    #[must_use]
    pub fn shown_by(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix("file:///")?;
        let drive = rest.chars().next().filter(char::is_ascii_alphabetic)?;
        let colons = [
            (":", ColonSpelling::Plain),
            ("%3A", ColonSpelling::Encoded),
            ("%3a", ColonSpelling::EncodedSmall),
        ];
        let (after, colon) =
            colons.into_iter().find_map(|(text, colon)| Some((rest[1..].strip_prefix(text)?, colon)))?;
        let is_whole = after.is_empty() || after.starts_with('/');
        is_whole.then_some(Self { is_small: drive.is_ascii_lowercase(), colon })
    }

    fn of(self, drive: char) -> String {
        let drive = if self.is_small { drive.to_ascii_lowercase() } else { drive.to_ascii_uppercase() };
        let colon = match self.colon {
            ColonSpelling::Plain => ":",
            ColonSpelling::Encoded => "%3A",
            ColonSpelling::EncodedSmall => "%3a",
        };
        format!("{drive}{colon}")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// URIs that clients send on Windows, each with the file that it names.
    const READ: [(&str, Option<&str>); 46] = [
        // VS Code.
        ("file:///c%3A/Users/x/a.rs", Some(r"C:\Users\x\a.rs")),
        ("file:///c%3A/Users/x/a%20b.rs", Some(r"C:\Users\x\a b.rs")),
        ("file:///c%3A/Users/x/%C3%BC%20%28b%29.rs", Some(r"C:\Users\x\ü (b).rs")),
        ("file:///d%3A/", Some(r"D:\")),
        ("file:///c%3a/Users/x", Some(r"C:\Users\x")),
        // Neovim, Helix, Zed.
        ("file:///C:/Users/x/a.rs", Some(r"C:\Users\x\a.rs")),
        ("file:///C:/Users/x/%C3%BC.rs", Some(r"C:\Users\x\ü.rs")),
        ("file:///C:/", Some(r"C:\")),
        ("file:///C:", Some(r"C:\")),
        // Emacs, Vim.
        ("file:///c:/Users/x/a.rs", Some(r"C:\Users\x\a.rs")),
        ("file:///c:/Users/x/a b.rs", Some(r"C:\Users\x\a b.rs")),
        ("file:///c:/Users/x/ü.rs", Some(r"C:\Users\x\ü.rs")),
        ("file:///c:/Users/x/%E6%97%A5%E6%9C%AC.md", Some(r"C:\Users\x\日本.md")),
        ("file:///c|/Users/x", Some(r"C:\Users\x")),
        ("file:///C%7C/Users/x", Some(r"C:\Users\x")),
        ("file:/c:/Users/x", Some(r"C:\Users\x")),
        (r"file:\\\c:\Users\x", Some(r"C:\Users\x")),
        ("file://localhost/c:/Users/x", Some(r"C:\Users\x")),
        ("file:///c:/Users//x///a.rs", Some(r"C:\Users\x\a.rs")),
        ("file:///c:/Users/./x/../y/a.rs", Some(r"C:\Users\y\a.rs")),
        ("file:///c:/../../Windows/a", Some(r"C:\Windows\a")),
        ("file:///%63:/Users/x", Some(r"C:\Users\x")),
        ("file:///c:/%55sers/%78", Some(r"C:\Users\x")),
        ("file:///c:/Users/100%25/a", Some(r"C:\Users\100%\a")),
        ("file:///c:/Users/RUNNER~1/a.rs", Some(r"C:\Users\RUNNER~1\a.rs")),
        ("file:///z:/.git/config", Some(r"Z:\.git\config")),
        // Shares.
        ("file://server/share/a.rs", Some(r"\\server\share\a.rs")),
        ("file://server/share", Some(r"\\server\share\")),
        ("file://server/", None),
        ("file://wsl.localhost/Debian/home/x", Some(r"\\wsl.localhost\Debian\home\x")),
        ("file://server/share/a%3Ab", None),
        // No files, or files under a name of something else.
        ("file:///Users/x", None),
        ("file:///", None),
        ("file:///cc:/x", None),
        ("file:///c:/x/a.txt:stream", None),
        ("file:///c:/x/a.txt%3Astream", None),
        ("file:///c:/x/a.txt%3A%3A$DATA", None),
        ("file:///c:/x/NUL", None),
        ("file:///c:/x/con.txt", None),
        ("file:///c:/x/a.", None),
        ("file:///c:/x/a%20", None),
        ("file:///c:/x/a%5C..%5Cb", None),
        ("file:///c:/x/a%2Fb", None),
        ("file:///c:/x/a%00b", None),
        ("file:///c:/x/%FF.rs", None),
        ("file:///c:/x/a.rs#cell", None),
    ];

    #[test]
    fn each_spelling_of_a_file_on_windows_is_read_as_one_path() {
        for (uri, expected) in READ {
            let parsed = Url::parse(uri).unwrap();
            assert_eq!(path_of(PathStyle::Windows, &parsed).as_deref(), expected, "{uri}");
        }
        for uri in [
            "untitled:Untitled-1",
            "untitled:c:/x",
            "git:/c%3A/a.rs?HEAD",
            "vscode-notebook-cell:/c%3A/n.ipynb#0",
        ] {
            assert_eq!(path_of(PathStyle::Windows, &Url::parse(uri).unwrap()), None, "{uri}");
        }
    }

    #[test]
    fn paths_are_written_as_the_client_writes_drives() {
        for (shown, path, expected) in [
            ("file:///c%3A/w", r"C:\w\a.rs", "file:///c%3A/w/a.rs"),
            ("file:///c%3A/w", r"D:\w\a b.rs", "file:///d%3A/w/a%20b.rs"),
            ("file:///c%3a/w", r"C:\w", "file:///c%3a/w"),
            ("file:///C%3A/w", r"c:\w", "file:///C%3A/w"),
            ("file:///C:/w", r"C:\w\ü.rs", "file:///C:/w/%C3%BC.rs"),
            ("file:///C:/", r"c:\w", "file:///C:/w"),
            ("file:///C:", r"C:\", "file:///C:/"),
            ("file:///c:/w", r"C:\w\100%\#1?.rs", "file:///c:/w/100%25/%231%3F.rs"),
            ("file:///c:/w", r"C:\w\(a)[b]@c+d.rs", "file:///c:/w/(a)[b]@c+d.rs"),
            ("file:///c:/w", r"C:\w\{a}^`.rs", "file:///c:/w/%7Ba%7D%5E%60.rs"),
            ("file:///c%3A/w", r"\\server\share\a b", "file://server/share/a%20b"),
            ("file:///c%3A/w", r"\\server\share\", "file://server/share/"),
            ("file:///c:/w", "C:/w/a/b", "file:///c:/w/a/b"),
        ] {
            let drives = DriveSpelling::shown_by(shown).unwrap();
            assert_eq!(of_windows_path(path, drives).as_deref(), Some(expected), "{path}");
        }
        for uri in [
            "file:///home/x",
            "file://server/share",
            "untitled:c:/x",
            "file:///c",
            "file:///c:x",
            "file:///1:/x",
        ] {
            assert_eq!(DriveSpelling::shown_by(uri), None, "{uri}");
        }
        assert_eq!(of_windows_path("w/a.rs", DriveSpelling::default()), None);
    }

    #[test]
    fn on_unix_a_path_is_what_the_uri_says() {
        for (uri, expected) in [
            ("file:///tmp/a%20b/%C3%BC.rs", Some("/tmp/a b/ü.rs")),
            ("file://localhost/tmp/./x/../a", Some("/tmp/a")),
            ("file:///c%3A/x", Some("/c:/x")),
            ("file:///tmp/a.txt%3Astream", Some("/tmp/a.txt:stream")),
            ("file:///tmp/a%5Cb", Some(r"/tmp/a\b")),
            ("file://server/share/a", None),
            ("file:///tmp/a%2Fb", None),
        ] {
            assert_eq!(path_of(PathStyle::Unix, &Url::parse(uri).unwrap()).as_deref(), expected, "{uri}");
        }
    }

    proptest! {
        /// A path is the same after its way through a URI, however the client writes drives.
        #[test]
        fn a_path_is_the_same_after_its_way_through_a_uri(
            drive in "[A-Z]",
            names in prop::collection::vec("[a-zA-Z0-9 %#?üß日(){}^+&=;@'!.-]{0,7}[a-z0-9ü]", 0..5),
            shown in prop::sample::select(vec!["file:///c%3A/", "file:///C:/", "file:///c:/", "file:///c%3a/"]),
        ) {
            prop_assume!(names.iter().all(|name| windows_names::check_editor_name(name).is_ok()));
            let path = format!(r"{drive}:\{}", names.join(r"\"));
            let uri = of_windows_path(&path, DriveSpelling::shown_by(shown).unwrap()).unwrap();
            prop_assert_eq!(path_of(PathStyle::Windows, &Url::parse(&uri).unwrap()), Some(path));
            prop_assert_eq!(DriveSpelling::shown_by(&uri), DriveSpelling::shown_by(shown));
            // Nothing in it has to be written in another way.
            let parsed = Url::parse(&uri).unwrap();
            prop_assert_eq!(parsed.as_str(), uri);
        }

        /// No text makes the reading panic, and a result names a file on a drive or share, without a stream.
        #[test]
        fn what_is_read_is_a_path(rest in "\\PC{0,30}") {
            if let Ok(uri) = Url::parse(&format!("file:///{rest}"))
                && let Some(path) = path_of(PathStyle::Windows, &uri)
            {
                let rest = path.strip_prefix(r"\\").unwrap_or(&path[2..]);
                prop_assert!(!rest.contains(':') && !rest.contains('/'), "{}", path);
            }
        }
    }
}
