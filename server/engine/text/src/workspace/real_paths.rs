//! Where many targets lead, links followed, without following the folders they share again and again.
//!
//! Rule: a result is valid for one snapshot of the disk, the one that began when this was made: it serves one decision, or
//! one list of names, and is thrown away. Nothing is opened by what it says.

use std::cell::RefCell;
use std::collections::HashMap;

use super::overlay::real_path;
use kode_base::paths::{AbsPath, Target};

/// Places that were followed, each with where it leads; nothing for those that cannot be followed.
#[derive(Debug, Default)]
pub struct RealPaths {
    files: RefCell<HashMap<AbsPath, Option<AbsPath>>>,
    folders: RefCell<HashMap<AbsPath, Option<AbsPath>>>,
}

impl RealPaths {
    /// Where a target leads; the target itself when it is no link or cannot be followed. Checks the disk.
    pub fn real(&self, target: &Target) -> Target {
        target.file().and_then(|path| self.file(path)).map_or_else(|| target.clone(), Target::File)
    }

    /// Where a path leads; `None` when it cannot be followed. Checks the disk.
    pub fn file(&self, path: &AbsPath) -> Option<AbsPath> {
        if let Some(known) = self.files.borrow().get(path) {
            return known.clone();
        }
        let real = self.in_its_folder(path).or_else(|| real_path(path).ok());
        self.files.borrow_mut().insert(path.clone(), real.clone());
        real
    }

    /// Where a path leads that is there and no link itself.
    fn in_its_folder(&self, path: &AbsPath) -> Option<AbsPath> {
        let (folder, name) = (path.parent()?, path.as_path().file_name()?);
        if path.as_path().symlink_metadata().ok()?.is_symlink() {
            return None;
        }
        let mut folders = self.folders.borrow_mut();
        let real = folders.entry(folder).or_insert_with_key(|folder| real_path(folder).ok());
        real.as_ref().map(|real| real.join(name))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn places_lead_where_the_system_says_whatever_links_and_gaps_are_on_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        fs::create_dir_all(root.join("real/deep").as_path()).unwrap();
        for file in ["real/a", "real/deep/b"] {
            fs::write(root.join(file).as_path(), "").unwrap();
        }
        symlink("real", root.join("link").as_path()).unwrap();
        symlink("deep/b", root.join("real/to-b").as_path()).unwrap();
        symlink("nothing", root.join("real/dangling").as_path()).unwrap();
        symlink("circle", root.join("circle").as_path()).unwrap();
        let paths = RealPaths::default();
        let names = [
            "link/a",
            "link/deep/b",
            "link/to-b",
            "link/dangling",
            "link/missing",
            "missing/too",
            "real/a/below",
            "circle/x",
            "link",
            "real",
            "circle",
            "",
            "/",
        ];
        // Twice: the second time nothing is checked.
        for name in names.iter().chain(&names) {
            let path = root.join(name);
            let expected = real_path(&path).ok();
            assert_eq!(paths.file(&path), expected, "{name}");
            let expected = Target::File(expected.unwrap_or_else(|| path.clone()));
            assert_eq!(paths.real(&Target::File(path)), expected, "{name}");
        }
        let untitled = Target::Untitled("untitled:1".to_owned());
        assert_eq!(paths.real(&untitled), untitled);
    }
}
