//! The folders that path rules are relative to, and what their file systems make of letter case.
//!
//! Rule: a folder counts under its name and under where that leads, so that a rule holds however the folder is reached.

use kode_base::paths::AbsPath;
use kode_base::real_folders::RealFolders;
use kode_base::spelling::Spellings;

/// The base of path patterns.
pub struct PathBases<'a> {
    /// The working directory.
    pub cwd: &'a AbsPath,
    /// The home folder; without one, rules that begin with `~/` mean nothing.
    pub home: Option<&'a AbsPath>,
    /// Where a folder leads, links followed; the folder itself when that cannot be told.
    pub real: &'a dyn Fn(&AbsPath) -> AbsPath,
    /// Whether names in a folder are the same in either letter case.
    pub is_case_insensitive: &'a dyn Fn(&AbsPath) -> bool,
}

impl<'a> PathBases<'a> {
    /// Places on this machine's disks, asked once for each folder when the rules are compiled.
    #[must_use]
    pub fn on_disk(cwd: &'a AbsPath, home: Option<&'a AbsPath>) -> Self {
        Self { cwd, home, real: &real_on_disk, is_case_insensitive: &is_case_insensitive_on_disk }
    }
}

/// Where a path leads, links followed as far as there is something to follow.
#[must_use]
pub fn real_on_disk(path: &AbsPath) -> AbsPath {
    real_among(path, &mut RealFolders::default())
}

/// As [`real_on_disk`], for one of a list of paths that share `folders`.
#[must_use]
pub fn real_among(path: &AbsPath, folders: &mut RealFolders) -> AbsPath {
    let mut missing = Vec::new();
    let mut place = path.clone();
    loop {
        if let Some(real) = folders.real(place.as_path()).ok().and_then(|real| AbsPath::new(real).ok()) {
            return missing.iter().rev().fold(real, |real, name| real.join(name));
        }
        match (place.as_path().file_name().map(ToOwned::to_owned), place.parent()) {
            (Some(name), Some(parent)) => {
                missing.push(name);
                place = parent;
            }
            (None, _) | (_, None) => return path.clone(),
        }
    }
}

/// Whether the names in a folder are the same in either letter case, by the word of its disk. Nothing is written.
#[must_use]
pub fn is_case_insensitive_on_disk(folder: &AbsPath) -> bool {
    Spellings::here().folds(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_followed_as_far_as_they_exist() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(kode_base::paths::real_path(folder.path()).unwrap()).unwrap();
        std::fs::create_dir(root.join("real").as_path()).unwrap();
        std::os::unix::fs::symlink("real", root.join("link").as_path()).unwrap();
        assert_eq!(real_on_disk(&root.join("link/new/er")), root.join("real/new/er"));
        assert_eq!(real_on_disk(&root), root);
    }

    #[test]
    fn letter_case_is_reported_without_writing() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(folder.path()).unwrap();
        let name = root.join("Name");
        std::fs::create_dir(name.as_path()).unwrap();
        let expected = root.join("nAME").as_path().exists();
        assert_eq!(is_case_insensitive_on_disk(&root), expected);
        assert_eq!(is_case_insensitive_on_disk(&name), expected, "it has no names of its own");
    }
}
