//! The program that sandbox helpers are started from: a small one beside this program, or this program itself.
//!
//! Rule: a helper is of the same source as the program that starts it. The small program compares the builds and becomes the
//! other one where they differ, so that a file that is left from an earlier build or version changes nothing but time.

#[cfg(any(target_os = "linux", target_os = "macos"))]
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::ARGUMENT;
#[cfg(any(target_os = "linux", target_os = "macos"))]
use kode_base::paths::AbsPath;
use kode_base::paths::real_path;

/// The file name of the small program. It starts in a third of the time: the kernel and the loader touch 1 MB of it, and
/// 5 MB of the other.
#[cfg(any(target_os = "linux", target_os = "macos"))]
const FILE: &str = "kode-ls-helper";
/// The text in front of a build.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) const BUILD_PREFIX: &str = "build-";
/// The build of this source, as an argument.
#[cfg(any(target_os = "linux", target_os = "macos"))]
pub(super) const BUILD: &str = concat!("build-", env!("KODE_SANDBOX_BUILD"));

/// The program that sandbox helpers are started from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HelperProgram {
    file: PathBuf,
    /// Where `file` is the small program: the other one, for another build.
    other: Option<PathBuf>,
}

impl HelperProgram {
    /// The program at this path, which is the helper when it is started with [`ARGUMENT`].
    #[must_use]
    pub fn itself(program: PathBuf) -> Self {
        Self { file: program, other: None }
    }

    /// The small program beside this program, or this program where there is none that may be run, and on systems without a
    /// sandbox. Links are followed now, so that one which is replaced later leads to no other program.
    #[must_use]
    pub fn beside(program: PathBuf) -> Self {
        let program = real_path(&program).unwrap_or(program);
        #[cfg(any(target_os = "linux", target_os = "macos"))]
        {
            use rustix::fs::{Access, access};

            if let Ok(small) = real_path(program.with_file_name(FILE))
                && small.is_file()
                && access(&small, Access::EXEC_OK).is_ok()
            {
                return Self { file: small, other: Some(program) };
            }
        }
        Self::itself(program)
    }

    /// Its files that lie in one of these folders: those that are there, and those that would be taken if they were there.
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    pub(super) fn files_in(&self, folders: &[AbsPath]) -> (Vec<AbsPath>, Vec<AbsPath>) {
        let folders: Vec<_> = folders.iter().filter_map(|folder| real_path(folder.as_path()).ok()).collect();
        let program = self.other.as_ref().unwrap_or(&self.file);
        let files = BTreeSet::from([program.clone(), self.file.clone(), program.with_file_name(FILE)]);
        let files = files.into_iter().filter_map(|file| {
            let folder = real_path(file.parent()?).ok()?;
            let file = real_path(&file).unwrap_or_else(|_| folder.join(file.file_name().unwrap_or_default()));
            folders.iter().any(|root| file.starts_with(root)).then(|| AbsPath::new(file).ok())?
        });
        files.partition(|file| file.as_path().exists())
    }

    /// The file to start.
    #[must_use]
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Its first arguments, which come before those of the helper.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        match &self.other {
            #[cfg(any(target_os = "linux", target_os = "macos"))]
            Some(other) => vec![BUILD.into(), other.into()],
            _ => vec![ARGUMENT.into()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn its_files_are_known_where_they_lie_in_a_folder_to_write_in() {
        let folder = tempfile::tempdir().unwrap();
        let root = AbsPath::new(real_path(folder.path()).unwrap()).unwrap();
        let (inside, outside) = (root.join("inside"), root.join("outside"));
        for folder in [&inside, &outside] {
            std::fs::create_dir(folder.as_path()).unwrap();
            std::fs::write(folder.join("kode-ls").as_path(), "").unwrap();
        }
        std::os::unix::fs::symlink(outside.as_path(), inside.join("link").as_path()).unwrap();
        let of = |path: AbsPath| HelperProgram::itself(path.into()).files_in(std::slice::from_ref(&inside));
        let there = (vec![inside.join("kode-ls")], vec![inside.join(FILE)]);
        assert_eq!(of(inside.join("kode-ls")), there);
        assert_eq!(of(outside.join("kode-ls")), (Vec::new(), Vec::new()));
        assert_eq!(of(inside.join("link/kode-ls")), (Vec::new(), Vec::new()));
    }

    #[test]
    #[cfg(unix)]
    fn the_small_program_is_taken_where_it_lies_beside_and_may_be_run() {
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let root = real_path(folder.path()).unwrap();
        let own = root.join("kode-ls");
        assert_eq!(HelperProgram::beside(own.clone()), HelperProgram::itself(own.clone()));
        let small = root.join(FILE);
        std::fs::write(&own, "").unwrap();
        std::fs::write(&small, "").unwrap();
        std::fs::set_permissions(&small, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(HelperProgram::beside(own.clone()), HelperProgram::itself(own.clone()));
        std::fs::set_permissions(&small, std::fs::Permissions::from_mode(0o755)).unwrap();
        let link = root.join("link");
        std::os::unix::fs::symlink(&own, &link).unwrap();
        for program in [own.clone(), link] {
            let helper = HelperProgram::beside(program);
            assert_eq!(helper.file(), small);
            assert_eq!(helper.arguments(), [BUILD.into(), own.clone().into_os_string()]);
        }
    }
}
