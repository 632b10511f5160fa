//! Files as URIs of the protocol, and back.
//!
//! Rule: only files have a place in a workspace; other schemes are left out by the caller.

use kode_base::paths::{AbsPath, Target};
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
    Url::from_file_path(path.as_path()).map_or_else(|()| format!("file://{path}"), String::from)
}

/// The file that a URI names; `None` for other schemes.
pub(crate) fn target(uri: &str) -> Option<Target> {
    let url = Url::parse(uri).ok().filter(|url| url.scheme() == "file")?;
    AbsPath::new(url.to_file_path().ok()?).ok().map(Target::File)
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
