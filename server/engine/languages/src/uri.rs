//! Files as URIs of the protocol, and back.
//!
//! Rule: only files have a place in a workspace; other schemes are left out by the caller.

use kode_base::file_uri::{self, DriveSpelling};
use kode_base::paths::{AbsPath, Target};
use kode_base::spelling::Spellings;
use url::Url;

/// The URI of a file or document.
pub(crate) fn of_target(target: &Target) -> String {
    match target {
        Target::File(path) => of_path(path),
        Target::Untitled(uri) => uri.clone(),
    }
}

/// The URI of a file or folder.
pub(crate) fn of_path(path: &AbsPath) -> String {
    file_uri::of_path(path, DriveSpelling::default())
}

/// The file that a URI names, as its disk spells it; `None` for other schemes.
pub(crate) fn target(uri: &str) -> Option<Target> {
    let path = file_uri::path_here(&Url::parse(uri).ok()?)?;
    Some(Target::File(Spellings::here().spelled(&path)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_same_after_its_way_through_a_uri() {
        let path = AbsPath::new("/w/ä b%/#c?.rs").unwrap();
        let uri = of_path(&path);
        assert!(uri.is_ascii() && !uri.contains('#'), "{uri}");
        assert_eq!(target(&uri), Some(Target::File(path)));
        assert_eq!(target("untitled:1"), None);
        assert_eq!(target("file:///w/%C3%A4"), Some(Target::File(AbsPath::new("/w/ä").unwrap())));
    }
}
