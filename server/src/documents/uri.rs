//! Which document or file a URI names.
//!
//! Rule: all spellings of one file (percent-encoded or not, `.` and `..`) are one document, and past this edge a file has the name
//! by which its disk lists it. A URI of no file on this machine is distinguished by its URI alone.

use kode_engine::base::file_uri;
use kode_engine::base::paths::{AbsPath, Target};
use kode_engine::base::spelling::Spellings;
use lsp_types::Url;

/// The identity of an open document, the same for every spelling of its URI but for letters and Unicode forms that its disk may
/// take for others: an editor that shows a file under two such names has two texts of it. Known without a question to the disk.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum DocumentKey {
    /// A document with a file behind it.
    File(AbsPath),
    /// An untitled document or a foreign scheme.
    Uri(String),
}

impl DocumentKey {
    pub(super) fn of(uri: &Url) -> Self {
        file_uri::path_here(uri).map_or_else(|| Self::Uri(uri.as_str().to_owned()), Self::File)
    }

    pub(super) fn path(&self) -> Option<&AbsPath> {
        match self {
            Self::File(path) => Some(path),
            Self::Uri(_) => None,
        }
    }

    pub(super) fn of_target(target: &Target) -> Self {
        match target {
            Target::File(path) => Self::File(path.clone()),
            Target::Untitled(uri) => {
                Url::parse(uri).map_or_else(|_| Self::Uri(uri.clone()), |uri| Self::of(&uri))
            }
        }
    }
}

/// The file a URI names, as its disk spells it: `None` for other schemes, for files of other machines (`file://server/share` where that
/// is no path) and for parts of a file (a query or fragment).
#[must_use]
pub fn file_path(uri: &Url) -> Option<AbsPath> {
    file_uri::path_here(uri).map(|path| Spellings::here().spelled(&path))
}

/// The engine's name of the file or document of a URI.
#[must_use]
pub fn target(uri: &Url) -> Target {
    file_path(uri).map_or_else(|| Target::Untitled(uri.as_str().to_owned()), Target::File)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_file_are_one_document() {
        let spellings = [
            "file:///tmp/a%20b/%C3%BC.rs",
            "file:///tmp/a b/ü.rs",
            "file://localhost/tmp/./x/../a%20b/%c3%bc.rs",
        ];
        let expected = DocumentKey::File(AbsPath::new("/tmp/a b/ü.rs").unwrap());
        for spelling in spellings {
            assert_eq!(DocumentKey::of(&Url::parse(spelling).unwrap()), expected, "{spelling}");
        }
    }

    #[test]
    fn the_case_of_a_path_is_kept() {
        let path = file_path(&Url::parse("file:///Tmp/README.md").unwrap()).unwrap();
        assert_eq!(path, AbsPath::new("/Tmp/README.md").unwrap());
    }

    #[test]
    fn what_is_no_file_here_has_no_path() {
        for uri in [
            "untitled:Untitled-1",
            "untitled:/tmp/new.rs",
            "git:/tmp/a.rs?HEAD",
            "file://server/share/a.rs",
            "file:///tmp/a.rs#cell",
            "vscode-notebook-cell:/tmp/n.ipynb#W0s",
        ] {
            assert_eq!(file_path(&Url::parse(uri).unwrap()), None, "{uri}");
        }
    }
}
